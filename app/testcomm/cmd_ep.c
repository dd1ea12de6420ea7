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

static int
ep_hex(const char *text, uint8_t *out, size_t *len)
{
	size_t n = 0;

	for (; isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1]); text += 2) {
		char two[3] = {text[0], text[1], '\0'};

		if (n == EP_MAX_ADDRESS)
			return -1;
		out[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	*len = n;
	return n > 0 && (*text == '\0' || *text == '\n') ? 0 : -1;
}

/* The text of an address file; with wait, until it is there. */
static int
ep_file(struct tc *tc, const char *path, bool wait, uint8_t *out, size_t *len)
{
	uint64_t end = tc_now_us() + tc->timeout_ms * 1000;
	char *text = malloc(2 * EP_MAX_ADDRESS + 2);
	FILE *f;
	int rc;

	if (text == NULL)
		return tc_error(tc, "no memory");
	while ((f = fopen(path, "r")) == NULL && wait && errno == ENOENT && tc_now_us() < end &&
		!tc_interrupted()) {
		tc_progress(tc);
		usleep(1000);
	}
	if (f == NULL) {
		rc = tc_error(tc, "the address file %s cannot be read: %s", path, strerror(errno));
	} else {
		rc = fgets(text, 2 * EP_MAX_ADDRESS + 2, f) != NULL ? ep_hex(text, out, len) : -1;
		if (rc != 0)
			tc_error(tc, "%s contains no address", path);
		fclose(f);
	}
	free(text);
	return rc;
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
	if (ep_hex(text, out, len) == 0)
		return 0;
	return tc_error(tc, "\"%.40s\" is no worker, no @FILE and no hexadecimal address", text);
}

static int
ep_open(struct tc *tc, struct tc_ep *ep, const uint8_t *addr, bool peer_errors)
{
	ucp_ep_params_t params = {0};
	ucs_status_t status;

	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params.address = (const ucp_address_t *)addr;
	if (peer_errors) {
		params.field_mask |=
			UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
		params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
		params.err_handler.cb = ep_failed;
		params.err_handler.arg = ep;
	}
	status = ucp_ep_create(ep->worker->worker, &params, &ep->ep);
	tc->last.status = status;
	if (status == UCS_OK)
		return 0;
	return tc_error(tc, "the endpoint cannot be created: %s", ucs_status_string(status));
}

static int
ep_create(struct tc *tc, int argc, char **argv)
{
	bool wait = false, peer = false;
	struct tc_worker *w;
	struct tc_ep *ep;
	uint8_t *addr;
	size_t len;
	int rc;

	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "wait") == 0)
			wait = true;
		else if (strcmp(argv[i], "peer") == 0)
			peer = true;
		else
			return tc_error(tc, "\"%s\" is neither wait nor peer", argv[i]);
	}
	w = tc_worker_find(tc, argv[1]);
	if (w == NULL || tc_name_check(tc, argv[0]) != 0)
		return -1;
	if (tc->n_eps == TC_MAX_EPS)
		return tc_error(tc, "there are already %d endpoints, the maximum", TC_MAX_EPS);
	addr = calloc(1, EP_MAX_ADDRESS);
	ep = calloc(1, sizeof(*ep));
	if (addr == NULL || ep == NULL) {
		rc = tc_error(tc, "no memory");
		goto out;
	}
	snprintf(ep->name, sizeof(ep->name), "%s", argv[0]);
	ep->worker = w;
	rc = ep_address(tc, argv[2], wait, addr, &len);
	if (rc == 0)
		rc = ep_open(tc, ep, addr, peer);
	if (rc == 0) {
		tc->ep[tc->n_eps++] = ep;
		fprintf(tc->out, "endpoint %s on worker %s\n", ep->name, w->name);
		ep = NULL;
	}
out:
	free(addr);
	free(ep);
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
		return tc_error(tc, "the %s of %s did not end in %llu ms", what, name,
			(unsigned long long)tc->timeout_ms);
	if (r->status != UCS_OK)
		rc = tc_error(
			tc, "the %s of %s failed: %s", what, name, ucs_status_string(r->status));
	tc->last.req = NULL;
	tc_req_free(tc, r);
	return rc;
}

static void
ep_param(ucp_request_param_t *param, struct tc_req *r)
{
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param->cb.send = tc_send_done;
	param->user_data = r;
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
	ep_param(&param, r);
	return ep_finish(tc, r, ucp_ep_flush_nbx(ep->ep, &param), "flush", ep->name);
}

static int
ep_close_one(struct tc *tc, struct tc_ep *ep, bool force)
{
	ucp_request_param_t param = {0};
	char name[TC_MAX_NAME];
	struct tc_req *r;
	ucs_status_ptr_t p;
	unsigned i = 0;

	r = tc_req_new(tc, TC_CLOSE, ep->worker, 0, 0);
	if (r == NULL)
		return -1;
	ep_param(&param, r);
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
	while (tc->ep[i] != ep)
		i++;
	for (; i + 1 < tc->n_eps; i++)
		tc->ep[i] = tc->ep[i + 1];
	tc->n_eps--;
	free(ep);
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
