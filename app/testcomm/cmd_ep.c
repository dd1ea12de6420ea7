/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_ep.c - endpoints: made from an address, flushed, closed
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testcomm.h"

#define EP_MAX_ADDRESS 65536

struct tc_ep *
tc_ep_find(struct tc *tc, const char *name)
{
	for (unsigned i = 0; i < tc->n_eps; i++) {
		if (strcmp(tc->ep[i]->name, name) == 0)
			return tc->ep[i];
	}
	tc_error(tc, "there is no endpoint \"%s\"", name);
	return NULL;
}

static void
ep_failed(void *arg, ucp_ep_h handle, ucs_status_t status)
{
	struct tc_ep *ep = arg;

	(void)handle;
	ep->error = status;
}

/* Bytes as hexadecimal digits, up to the end of the text. @return 0 or -1 */
int
tc_hex(const char *text, uint8_t *out, size_t *len, size_t max)
{
	size_t n = 0;

	for (; isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1]); text += 2) {
		char two[3] = {text[0], text[1], '\0'};

		if (n == max)
			return -1;
		out[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	*len = n;
	return n > 0 && *text == '\0' ? 0 : -1;
}

/* The first line of a file, of malloc(); with wait, when it is there. NULL after an error. */
char *
tc_file(struct tc *tc, const char *path, bool wait)
{
	uint64_t end = tc_now_us() + tc->timeout_ms * 1000;
	size_t size = 2 * EP_MAX_ADDRESS + 2;
	char *text = malloc(size);
	FILE *f;

	while ((f = fopen(path, "r")) == NULL && wait && errno == ENOENT && tc_now_us() < end &&
		!tc_interrupted()) {
		tc_progress(tc);
		usleep(1000);
	}
	if (f == NULL) {
		tc_error(tc, "the file %s cannot be read: %s", path, strerror(errno));
	} else if (text == NULL || fgets(text, (int)size, f) == NULL) {
		tc_error(tc, "%s is empty", path);
	} else {
		fclose(f);
		text[strcspn(text, "\r\n")] = '\0';
		return text;
	}
	if (f != NULL)
		fclose(f);
	free(text);
	return NULL;
}

static int
ep_file(struct tc *tc, const char *path, bool wait, uint8_t *out, size_t *len)
{
	char *text = tc_file(tc, path, wait);
	int rc;

	if (text == NULL)
		return -1;
	rc = tc_hex(text, out, len, EP_MAX_ADDRESS);
	free(text);
	return rc == 0 ? 0 : tc_error(tc, "%s contains no address", path);
}

/* "@FILE", the name of a worker, or hexadecimal; a worker's name takes precedence. */
static int
ep_address(struct tc *tc, const char *text, bool wait, uint8_t *out, size_t *len)
{
	if (text[0] == '@')
		return ep_file(tc, text + 1, wait, out, len);
	for (unsigned i = 0; i < tc->n_workers; i++) {
		ucp_address_t *addr;
		ucs_status_t status;

		if (strcmp(tc->worker[i]->name, text) != 0)
			continue;
		status = ucp_worker_get_address(tc->worker[i]->worker, &addr, len);
		if (status != UCS_OK)
			return tc_error(tc, "worker %s has no address: %s", text,
				ucs_status_string(status));
		if (*len <= EP_MAX_ADDRESS)
			memcpy(out, addr, *len);
		ucp_worker_release_address(tc->worker[i]->worker, addr);
		return *len <= EP_MAX_ADDRESS ? 0 : tc_error(tc, "the address is too long");
	}
	if (tc_hex(text, out, len, EP_MAX_ADDRESS) == 0)
		return 0;
	return tc_error(tc, "\"%.40s\" is not a worker, an @FILE or a hexadecimal address", text);
}

/* A new endpoint, not in the list yet; NULL after an error was printed. */
struct tc_ep *
tc_ep_new(struct tc *tc, const char *name, struct tc_worker *w)
{
	struct tc_ep *ep;

	if (tc_name_check(tc, name) != 0)
		return NULL;
	if (tc->n_eps == TC_MAX_EPS) {
		tc_error(tc, "there are already %d endpoints, the maximum", TC_MAX_EPS);
		return NULL;
	}
	ep = calloc(1, sizeof(*ep));
	if (ep == NULL) {
		tc_error(tc, "no memory");
		return NULL;
	}
	snprintf(ep->name, sizeof(ep->name), "%s", name);
	ep->worker = w;
	return ep;
}

void
tc_ep_add(struct tc *tc, struct tc_ep *ep)
{
	tc->ep[tc->n_eps++] = ep;
	fprintf(tc->out, "endpoint %s on worker %s\n", ep->name, ep->worker->name);
}

/* Create the endpoint and add it, or free ep. The caller sets only the destination in params. */
int
tc_ep_open(struct tc *tc, struct tc_ep *ep, ucp_ep_params_t *params, bool peer)
{
	ucs_status_t status;

	params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params->err_handler.cb = ep_failed;
	params->err_handler.arg = ep;
	if (peer) {
		params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
		params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	}
	status = ucp_ep_create(ep->worker->worker, params, &ep->ep);
	tc->last.status = status;
	if (status == UCS_OK) {
		tc_ep_add(tc, ep);
		return 0;
	}
	free(ep);
	return tc_error(tc, "the endpoint cannot be created: %s", ucs_status_string(status));
}

/* The options of a new endpoint: they follow its name, worker and destination. */
int
tc_ep_options(struct tc *tc, int argc, char **argv, bool *wait, bool *peer)
{
	*wait = *peer = false;
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "wait") == 0)
			*wait = true;
		else if (strcmp(argv[i], "peer") == 0)
			*peer = true;
		else
			return tc_error(tc, "\"%s\" is neither wait nor peer", argv[i]);
	}
	return 0;
}

static int
ep_create(struct tc *tc, int argc, char **argv)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	struct tc_worker *w;
	struct tc_ep *ep;
	bool wait, peer;
	uint8_t *addr;
	size_t len;
	int rc = -1;

	if (tc_ep_options(tc, argc, argv, &wait, &peer) != 0)
		return -1;
	w = tc_worker_find(tc, argv[1]);
	ep = w != NULL ? tc_ep_new(tc, argv[0], w) : NULL;
	if (ep == NULL)
		return -1;
	addr = calloc(1, EP_MAX_ADDRESS);
	params.address = (const ucp_address_t *)addr;
	if (addr != NULL && ep_address(tc, argv[2], wait, addr, &len) == 0)
		rc = tc_ep_open(tc, ep, &params, peer);
	else
		free(ep);
	free(addr);
	return rc;
}

static int
ep_finish(struct tc *tc, struct tc_req *r, ucs_status_ptr_t p, const char *what, const char *name)
{
	int rc;

	tc_req_posted(tc, r, p);
	rc = tc_req_wait(tc, r, tc->timeout_ms);
	tc_req_last(tc, r);
	if (rc != 0)
		return tc_error(tc, "the %s of %s did not end within %llu ms", what, name,
			(unsigned long long)tc->timeout_ms);
	if (r->status != UCS_OK)
		rc = tc_error(
			tc, "the %s of %s failed: %s", what, name, ucs_status_string(r->status));
	tc->last.req = NULL;
	tc_req_free(tc, r);
	return rc;
}

static int
ep_flush(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	ucp_request_param_t param = {0};
	struct tc_req *r;

	(void)argc;
	if (ep == NULL)
		return -1;
	r = tc_req_new(tc, TC_FLUSH, ep->worker, 0, 0);
	if (r == NULL)
		return -1;
	tc_req_param(&param, r);
	return ep_finish(tc, r, ucp_ep_flush_nbx(ep->ep, &param), "flush", ep->name);
}

/* Take it out of the list and free it; its requests go on without it. */
static void
ep_remove(struct tc *tc, struct tc_ep *ep)
{
	unsigned i = 0;

	for (unsigned k = 0; k < tc->n_reqs; k++) {
		if (tc->req[k]->ep == ep)
			tc->req[k]->ep = NULL;
	}
	while (tc->ep[i] != ep)
		i++;
	for (; i + 1 < tc->n_eps; i++)
		tc->ep[i] = tc->ep[i + 1];
	tc->n_eps--;
	free(ep);
}

static int
ep_close_one(struct tc *tc, struct tc_ep *ep, bool force)
{
	ucp_request_param_t param = {0};
	char name[TC_MAX_NAME];
	struct tc_req *r;
	ucs_status_ptr_t p;

	tc_keys_drop(tc, ep);
	if (ep->reply) {
		ep_remove(tc, ep);
		return 0;
	}
	r = tc_req_new(tc, TC_CLOSE, ep->worker, 0, 0);
	if (r == NULL)
		return -1;
	tc_req_param(&param, r);
	if (force) {
		param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
		param.flags = UCP_EP_CLOSE_FLAG_FORCE;
	}
	memcpy(name, ep->name, sizeof(name));
	p = ucp_ep_close_nbx(ep->ep, &param);
	if (UCS_PTR_IS_ERR(p) && UCS_PTR_STATUS(p) == UCS_ERR_INVALID_PARAM) {
		/* a forced close without error handling: refused, and the endpoint stays open */
		tc_req_free(tc, r);
		tc->last.status = UCS_ERR_INVALID_PARAM;
		return tc_error(tc, "endpoint %s is not closed: %s", name,
			ucs_status_string(UCS_ERR_INVALID_PARAM));
	}
	ep_remove(tc, ep);
	return ep_finish(tc, r, p, "close", name);
}

static int
ep_close(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);

	if (ep == NULL)
		return -1;
	if (argc > 1 && strcmp(argv[1], "force") != 0)
		return tc_error(tc, "\"%s\" is not \"force\"", argv[1]);
	return ep_close_one(tc, ep, argc > 1);
}

/* At exit: close what is left, with a short wait each. */
void
tc_eps_close(struct tc *tc)
{
	uint64_t timeout_ms = tc->timeout_ms;

	if (tc->timeout_ms > 1000)
		tc->timeout_ms = 1000;
	while (tc->n_eps > 0 && ep_close_one(tc, tc->ep[tc->n_eps - 1], false) == 0)
		;
	tc->timeout_ms = timeout_ms;
}

static int
ep_list(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < tc->n_eps; i++) {
		const struct tc_ep *ep = tc->ep[i];

		fprintf(tc->out, "endpoint %s on worker %s%s%s\n", ep->name, ep->worker->name,
			ep->error != UCS_OK ? ", failed: " : "",
			ep->error != UCS_OK ? ucs_status_string(ep->error) : "");
	}
	tc->last.count = tc->n_eps;
	return 0;
}

const struct tc_cmd tc_cmd_ep[] = {
	{"ep create", "NAME WORKER ADDRESS|WORKER|@FILE [wait] [peer]",
		"make an endpoint; wait: until FILE is there; peer: report the peer's failure", 3,
		5, ep_create},
	{"ep list", "", "the endpoints", 0, 0, ep_list},
	{"ep flush", "EP", "wait until everything sent has arrived", 1, 1, ep_flush},
	{"ep close", "EP [force]", "flush and close; force: discard pending operations", 1, 2,
		ep_close},
	{0},
};
