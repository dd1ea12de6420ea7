/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_cci.c - CCI endpoints and connections: created, requested, answered, closed
 */
#include <stdlib.h>
#include <string.h>

#include "tc_cci.h"

struct tc_cci tc_cci;

static const struct {
	int status;
	const char *name;
} cci_statuses[] = {
	{CCI_SUCCESS, "SUCCESS"},
	{CCI_ERROR, "ERROR"},
	{CCI_ERR_DISCONNECTED, "DISCONNECTED"},
	{CCI_ERR_RNR, "RNR"},
	{CCI_ERR_DEVICE_DEAD, "DEVICE_DEAD"},
	{CCI_ERR_RMA_HANDLE, "RMA_HANDLE"},
	{CCI_ERR_RMA_OP, "RMA_OP"},
	{CCI_ERR_NOT_IMPLEMENTED, "NOT_IMPLEMENTED"},
	{CCI_ERR_NOT_FOUND, "NOT_FOUND"},
	{CCI_EINVAL, "EINVAL"},
	{CCI_ETIMEDOUT, "ETIMEDOUT"},
	{CCI_ENOMEM, "ENOMEM"},
	{CCI_ENODEV, "ENODEV"},
	{CCI_ENETDOWN, "ENETDOWN"},
	{CCI_EBUSY, "EBUSY"},
	{CCI_ERANGE, "ERANGE"},
	{CCI_EAGAIN, "EAGAIN"},
	{CCI_ENOBUFS, "ENOBUFS"},
	{CCI_EMSGSIZE, "EMSGSIZE"},
	{CCI_ENOMSG, "ENOMSG"},
	{CCI_EADDRNOTAVAIL, "EADDRNOTAVAIL"},
	{CCI_ECONNREFUSED, "ECONNREFUSED"},
};

const char *
tc_cci_status(int status)
{
	for (size_t i = 0; i < sizeof(cci_statuses) / sizeof(cci_statuses[0]); i++) {
		if (cci_statuses[i].status == status)
			return cci_statuses[i].name;
	}
	return "unknown";
}

int
tc_cci_done(struct tc *tc, const char *what, int status)
{
	tc_cci.last.status = status;
	tc_cci.last.type = -1;
	if (status == CCI_SUCCESS)
		return 0;
	fprintf(tc->out, "%s: %s\n", what, tc_cci_status(status));
	return 0;
}

/* Take the events of all endpoints, as far as there is room. */
unsigned
tc_cci_progress(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		struct tc_cci_ep *e = tc_cci.ep[i];

		while (e != NULL && e->n_queue < TC_MAX_LIST &&
			cci_get_event(e->ep, &e->queue[e->n_queue]) == CCI_SUCCESS) {
			e->n_queue++;
			n++;
		}
	}
	return n;
}

/* ---- endpoints ---- */

static int
cci_create(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_new(tc, (void **)tc_cci.ep, sizeof(*e), argv[0]);
	uint32_t caps;
	int rc;

	if (e == NULL)
		return -1;
	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	if (rc == CCI_SUCCESS) {
		if (argc > 1)
			rc = cci_create_endpoint_at(NULL, argv[1], 0, &e->ep, NULL);
		else
			rc = cci_create_endpoint(NULL, 0, &e->ep, NULL);
		if (rc != CCI_SUCCESS)
			cci_finalize();
	}
	if (rc != CCI_SUCCESS)
		tc_remove((void **)tc_cci.ep, e);
	else
		fprintf(tc->out, "CCI endpoint %s on device %s\n", e->name, e->ep->device->name);
	return tc_cci_done(tc, "the endpoint cannot be created", rc);
}

static void
cci_forget(struct tc_cci_ep *e)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc_cci.conn[i] != NULL && tc_cci.conn[i]->owner == e)
			tc_remove((void **)tc_cci.conn, tc_cci.conn[i]);
		if (tc_cci.event[i] != NULL && tc_cci.event[i]->owner == e)
			tc_remove((void **)tc_cci.event, tc_cci.event[i]);
		if (tc_cci.mem[i] != NULL && tc_cci.mem[i]->owner == e) {
			free(tc_cci.mem[i]->buf);
			tc_remove((void **)tc_cci.mem, tc_cci.mem[i]);
		}
	}
	tc_remove((void **)tc_cci.ep, e);
}

static int
cci_destroy(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_need(tc, (void **)tc_cci.ep, "CCI endpoint", argv[0]);
	int rc;

	(void)argc;
	if (e == NULL)
		return -1;
	rc = cci_destroy_endpoint(e->ep);
	cci_finalize();
	cci_forget(e);
	return tc_cci_done(tc, "destroy", rc);
}

void
tc_cci_end(void)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc_cci.ep[i] == NULL)
			continue;
		cci_destroy_endpoint(tc_cci.ep[i]->ep);
		cci_finalize();
		cci_forget(tc_cci.ep[i]);
	}
}

static int
cci_list(struct tc *tc, int argc, char **argv)
{
	static const char *const attrs[] = {"ro", "ru", "uu", "tx", "rx"};
	uint64_t n = 0;

	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		const struct tc_cci_conn *c = tc_cci.conn[i];

		if (tc_cci.ep[i] != NULL)
			fprintf(tc->out, "endpoint %s\n", tc_cci.ep[i]->name);
		if (c != NULL)
			fprintf(tc->out, "connection %s of %s, %s\n", c->name, c->owner->name,
				c->conn != NULL ? attrs[c->conn->attribute] : "not there yet");
		if (tc_cci.event[i] != NULL)
			fprintf(tc->out, "event %s of %s: %s\n", tc_cci.event[i]->name,
				tc_cci.event[i]->owner->name,
				cci_event_type_str(tc_cci.event[i]->event->type));
		if (tc_cci.mem[i] != NULL)
			fprintf(tc->out, "memory %s of %s, %llu bytes\n", tc_cci.mem[i]->name,
				tc_cci.mem[i]->owner->name, (unsigned long long)tc_cci.mem[i]->size);
		n += tc_cci.ep[i] != NULL;
	}
	tc_cci.last.value = n;
	return 0;
}

static int
cci_uri(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_need(tc, (void **)tc_cci.ep, "CCI endpoint", argv[0]);
	char *uri;
	int rc;

	(void)argc;
	if (e == NULL)
		return -1;
	rc = cci_get_opt(e->ep, CCI_OPT_ENDPT_URI, &uri);
	if (rc == CCI_SUCCESS) {
		fprintf(tc->out, "%s\n", uri);
		free(uri);
	}
	return tc_cci_done(tc, "uri", rc);
}

static const struct {
	const char *name;
	cci_opt_name_t opt;
	bool of_conn;
} cci_opts[] = {
	{"send_timeout", CCI_OPT_ENDPT_SEND_TIMEOUT, false},
	{"recv_buf_count", CCI_OPT_ENDPT_RECV_BUF_COUNT, false},
	{"send_buf_count", CCI_OPT_ENDPT_SEND_BUF_COUNT, false},
	{"keepalive", CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, false},
	{"send_timeout", CCI_OPT_CONN_SEND_TIMEOUT, true},
	{"keepalive", CCI_OPT_CONN_KEEPALIVE_TIMEOUT, true},
};

static int
cci_option(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_conn *c = tc_find((void **)tc_cci.conn, argv[0]);
	struct tc_cci_ep *e = tc_find((void **)tc_cci.ep, argv[0]);
	cci_opt_handle_t *handle;
	uint64_t value = 0;
	uint32_t v;
	size_t i;
	int rc;

	if (e == NULL && (c == NULL || c->conn == NULL))
		return tc_error(tc, "\"%s\" is neither an endpoint nor a connection", argv[0]);
	handle = e != NULL ? (cci_opt_handle_t *)e->ep : (cci_opt_handle_t *)c->conn;
	for (i = 0; i < sizeof(cci_opts) / sizeof(cci_opts[0]); i++) {
		if (cci_opts[i].of_conn == (e == NULL) && strcmp(cci_opts[i].name, argv[1]) == 0)
			break;
	}
	if (i == sizeof(cci_opts) / sizeof(cci_opts[0]))
		return tc_error(tc, "\"%s\" is not one of its options", argv[1]);
	if (argc > 2 && tc_number(tc, argv[2], &value) != 0)
		return -1;
	v = (uint32_t)value;
	rc = argc > 2 ? cci_set_opt(handle, cci_opts[i].opt, &v) :
		cci_get_opt(handle, cci_opts[i].opt, &v);
	if (rc == CCI_SUCCESS)
		fprintf(tc->out, "%s %s %u\n", argv[0], argv[1], v);
	tc_cci.last.value = v;
	return tc_cci_done(tc, "option", rc);
}

/* ---- connections ---- */

/* A URI, the name of an endpoint of this process, or @FILE, which is waited for. */
static int
cci_find_uri(struct tc *tc, const char *text, char *out, size_t len)
{
	struct tc_cci_ep *e = tc_find((void **)tc_cci.ep, text);
	char *uri = NULL;

	if (text[0] == '@') {
		uri = tc_file(tc, text + 1, true);
		if (uri == NULL)
			return -1;
	} else if (e != NULL && cci_get_opt(e->ep, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS) {
		uri = NULL;
	}
	snprintf(out, len, "%s", uri != NULL ? uri : text);
	free(uri);
	return 0;
}

static int
cci_attribute(struct tc *tc, const char *text, cci_conn_attribute_t *out)
{
	static const char *const names[] = {"ro", "ru", "uu", "tx", "rx"};

	for (int i = 0; i < 5; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (cci_conn_attribute_t)i;
			return 0;
		}
	}
	return tc_error(tc, "\"%s\" is not one of ro, ru, uu, tx, rx", text);
}

static int
cci_ask(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_need(tc, (void **)tc_cci.ep, "CCI endpoint", argv[1]);
	cci_conn_attribute_t attribute = CCI_CONN_ATTR_RO;
	struct timeval timeout;
	struct tc_cci_conn *c;
	uint64_t ms = 0;
	char uri[1024];
	int rc;

	if (e == NULL || cci_find_uri(tc, argv[2], uri, sizeof(uri)) != 0 ||
		(argc > 3 && cci_attribute(tc, argv[3], &attribute) != 0) ||
		(argc > 4 && tc_number(tc, argv[4], &ms) != 0))
		return -1;
	c = tc_new(tc, (void **)tc_cci.conn, sizeof(*c), argv[0]);
	if (c == NULL)
		return -1;
	c->owner = e;
	timeout.tv_sec = (time_t)(ms / 1000);
	timeout.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	rc = cci_connect(e->ep, uri, c->name, (uint32_t)strlen(c->name), attribute, c, 0,
		argc > 4 ? &timeout : NULL);
	if (rc != CCI_SUCCESS)
		tc_remove((void **)tc_cci.conn, c);
	return tc_cci_done(tc, "connect", rc);
}

static int
cci_answer(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_event *ev = tc_need(tc, (void **)tc_cci.event, "CCI event", argv[0]);
	struct tc_cci_conn *c;
	int rc;

	if (ev == NULL)
		return -1;
	if (argc == 1) {
		rc = cci_reject(ev->event);
		ev->answered |= rc == CCI_SUCCESS;
		return tc_cci_done(tc, "reject", rc);
	}
	c = tc_new(tc, (void **)tc_cci.conn, sizeof(*c), argv[1]);
	if (c == NULL)
		return -1;
	c->owner = ev->owner;
	rc = cci_accept(ev->event, c);
	ev->answered |= rc == CCI_SUCCESS;
	if (rc != CCI_SUCCESS)
		tc_remove((void **)tc_cci.conn, c);
	return tc_cci_done(tc, "accept", rc);
}

static int
cci_hang_up(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_conn *c = tc_need(tc, (void **)tc_cci.conn, "CCI connection", argv[0]);
	int rc;

	(void)argc;
	if (c == NULL)
		return -1;
	if (c->conn == NULL)
		return tc_error(tc, "%s is not connected yet; take its event first", c->name);
	rc = cci_disconnect(c->conn);
	tc_remove((void **)tc_cci.conn, c);
	return tc_cci_done(tc, "disconnect", rc);
}

const struct tc_cmd tc_cmd_cci[] = {
	{"cci create", "NAME [SERVICE]", "make a CCI endpoint", 1, 2, cci_create},
	{"cci destroy", "CCI", "destroy it with all its objects", 1, 1, cci_destroy},
	{"cci list", "", "endpoints, connections, kept events, memory", 0, 0, cci_list},
	{"cci uri", "CCI", "its URI; \"> FILE\" for others to connect to", 1, 1, cci_uri},
	{"cci option", "CCI|CONN send_timeout|recv_buf_count|send_buf_count|keepalive [VALUE]",
		"get an option, or set it", 2, 3, cci_option},
	{"cci connect", "NAME CCI URI|CCI|@FILE [ro|ru|uu|tx|rx] [MS]",
		"request a connection, open after its event; tx, rx: of a group", 3, 5,
		cci_ask},
	{"cci accept", "EVENT NAME", "accept a connection request", 2, 2, cci_answer},
	{"cci reject", "EVENT", "reject it", 1, 1, cci_answer},
	{"cci disconnect", "CONN", "close a connection on this side", 1, 1, cci_hang_up},
	{0},
};
