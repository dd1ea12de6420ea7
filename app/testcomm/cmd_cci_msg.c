/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_cci_msg.c - CCI events, messages and remote memory
 */
#include <stdlib.h>
#include <string.h>

#include "tc_cci.h"

/* ---- events ---- */

static void
event_show_text(struct tc *tc, const void *data, uint32_t len)
{
	tc_cci.last.value = len;
	snprintf(tc_cci.last.text, sizeof(tc_cci.last.text), "%.*s", (int)len, (const char *)data);
	fprintf(tc->out, ", %u bytes", len);
	if (len > 0)
		fprintf(tc->out, ": %.60s", tc_cci.last.text);
}

/* A connect or accept is complete: its object has a handle, or is removed. */
static void
event_connected(struct tc *tc, struct tc_cci_conn *c, int status, cci_connection_t *conn)
{
	fprintf(tc->out, " of %s: %s", c->name, tc_cci_status(status));
	tc_cci.last.status = status;
	c->conn = conn;
	if (conn == NULL)
		tc_remove((void **)tc_cci.conn, c);
}

static const char *
event_conn_name(cci_connection_t *conn)
{
	const struct tc_cci_conn *c = conn->context;

	return c->name;
}

static void
event_show(struct tc *tc, cci_event_t *event)
{
	fprintf(tc->out, "%s", cci_event_type_str(event->type));
	switch (event->type) {
	case CCI_EVENT_SEND:
		tc_cci.last.status = event->send.status;
		tc_cci.last.value = (uintptr_t)event->send.context;
		fprintf(tc->out, " %llu: %s", (unsigned long long)tc_cci.last.value,
			tc_cci_status(event->send.status));
		break;
	case CCI_EVENT_RECV:
		fprintf(tc->out, " on %s", event_conn_name(event->recv.connection));
		event_show_text(tc, event->recv.ptr, event->recv.len);
		break;
	case CCI_EVENT_CONNECT:
		event_connected(tc, event->connect.context, event->connect.status,
			event->connect.connection);
		break;
	case CCI_EVENT_CONNECT_REQUEST:
		event_show_text(tc, event->request.data_ptr, event->request.data_len);
		break;
	case CCI_EVENT_ACCEPT:
		event_connected(tc, event->accept.context, event->accept.status,
			event->accept.connection);
		break;
	case CCI_EVENT_KEEPALIVE_TIMEDOUT:
		fprintf(tc->out, " of %s", event_conn_name(event->keepalive.connection));
		break;
	default:
		break;
	}
}

static int
event_keep(struct tc *tc, struct tc_cci_ep *owner, cci_event_t *event)
{
	struct tc_cci_event *ev;
	char name[TC_MAX_NAME];

	snprintf(name, sizeof(name), "e%u", tc_cci.next_event++);
	ev = tc_new(tc, (void **)tc_cci.event, sizeof(*ev), name);
	if (ev == NULL)
		return -1;
	ev->owner = owner;
	ev->event = event;
	fprintf(tc->out, ", kept as %s", name);
	return 0;
}

static int
cci_event(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_need(tc, (void **)tc_cci.ep, "CCI endpoint", argv[0]);
	uint64_t ms = tc->timeout_ms, end;
	cci_event_t *event;
	bool hold = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "hold") == 0)
			hold = true;
		else if (tc_number(tc, argv[i], &ms) != 0)
			return -1;
	}
	if (e == NULL)
		return -1;
	end = tc_now_us() + ms * 1000;
	do
		tc_progress(tc);
	while (e->n_queue == 0 && tc_now_us() < end && !tc_interrupted());
	if (e->n_queue == 0)
		return tc_cci_done(tc, "no event", CCI_EAGAIN);
	event = e->queue[0];
	e->n_queue--;
	memmove(&e->queue[0], &e->queue[1], e->n_queue * sizeof(e->queue[0]));
	tc_cci.last.status = CCI_SUCCESS;
	tc_cci.last.type = event->type;
	hold |= event->type == CCI_EVENT_CONNECT_REQUEST;
	event_show(tc, event);
	if (!hold)
		cci_return_event(event);
	else if (event_keep(tc, e, event) != 0)
		return -1;
	fprintf(tc->out, "\n");
	return 0;
}

static int
cci_return(struct tc *tc, int argc, char **argv)
{
	bool all = strcmp(argv[0], "all") == 0;
	struct tc_cci_event *ev;
	int rc = CCI_SUCCESS;

	(void)argc;
	if (!all && tc_need(tc, (void **)tc_cci.event, "CCI event", argv[0]) == NULL)
		return -1;
	for (unsigned i = 0; i < TC_MAX_LIST && rc == CCI_SUCCESS; i++) {
		ev = tc_cci.event[i];
		if (ev == NULL || (!all && strcmp(ev->name, argv[0]) != 0))
			continue;
		rc = cci_return_event(ev->event);
		if (rc == CCI_SUCCESS)
			tc_remove((void **)tc_cci.event, ev);
	}
	return tc_cci_done(tc, "return", rc);
}

/* ---- messages ---- */

static struct tc_cci_conn *
conn_need(struct tc *tc, const char *name)
{
	struct tc_cci_conn *c = tc_need(tc, (void **)tc_cci.conn, "CCI connection", name);

	if (c != NULL && c->conn == NULL) {
		tc_error(tc, "%s is not connected yet; take its event first", name);
		return NULL;
	}
	return c;
}

static int
flags_parse(struct tc *tc, int argc, char **argv, const char *allowed, int *flags)
{
	static const struct {
		const char *name;
		int flag;
	} names[] = {{"blocking", CCI_FLAG_BLOCKING}, {"no_copy", CCI_FLAG_NO_COPY},
		{"silent", CCI_FLAG_SILENT}, {"read", CCI_FLAG_READ}, {"write", CCI_FLAG_WRITE},
		{"fence", CCI_FLAG_FENCE}};

	for (int i = 0; i < argc; i++) {
		size_t k = 0;

		while (k < sizeof(names) / sizeof(names[0]) && strcmp(names[k].name, argv[i]) != 0)
			k++;
		if (k == sizeof(names) / sizeof(names[0]) || strstr(allowed, argv[i]) == NULL)
			return tc_error(tc, "\"%s\" is not one of %s", argv[i], allowed);
		*flags |= names[k].flag;
	}
	return 0;
}

static int
cci_message(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_conn *c = conn_need(tc, argv[0]);
	bool text = argv[1][0] == '"';
	uint64_t size = strlen(argv[1]) - 1;
	uint8_t *buf;
	int flags = 0, rc;

	if (c == NULL || (!text && tc_number(tc, argv[1], &size) != 0) ||
		flags_parse(tc, argc - 2, argv + 2, "silent, blocking", &flags) != 0)
		return -1;
	if (size > UINT32_MAX)
		return tc_error(tc, "a message has at most 4 GiB");
	buf = malloc(size + 1);
	if (buf == NULL)
		return tc_error(tc, "no memory");
	if (text)
		memcpy(buf, argv[1] + 1, size);
	else
		tc_fill(buf, size, tc->pattern, 0, 0);
	rc = cci_send(c->conn, buf, (uint32_t)size, (void *)(uintptr_t)size, flags);
	free(buf);
	return tc_cci_done(tc, "send", rc);
}

/* ---- memory ---- */

static int
cci_mem(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_ep *e = tc_need(tc, (void **)tc_cci.ep, "CCI endpoint", argv[1]);
	struct tc_cci_mem *m;
	uint64_t size;
	int flags = 0, rc;

	if (e == NULL || tc_number(tc, argv[2], &size) != 0 ||
		flags_parse(tc, argc - 3, argv + 3, "read, write", &flags) != 0)
		return -1;
	if (size == 0 || size > TC_MAX_SIZE)
		return tc_error(tc, "%s bytes cannot be registered", argv[2]);
	m = tc_new(tc, (void **)tc_cci.mem, sizeof(*m), argv[0]);
	if (m == NULL)
		return -1;
	m->owner = e;
	m->size = size;
	m->buf = malloc(size);
	if (m->buf == NULL) {
		tc_remove((void **)tc_cci.mem, m);
		return tc_error(tc, "no memory for %s bytes", argv[2]);
	}
	tc_fill(m->buf, size, tc->pattern, 0, 0);
	rc = cci_rma_register(e->ep, m->buf, size, flags, &m->handle);
	if (rc != CCI_SUCCESS) {
		free(m->buf);
		tc_remove((void **)tc_cci.mem, m);
	}
	return tc_cci_done(tc, "register", rc);
}

static int
cci_deregister(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_mem *m = tc_need(tc, (void **)tc_cci.mem, "CCI memory", argv[0]);
	int rc;

	(void)argc;
	if (m == NULL)
		return -1;
	rc = cci_rma_deregister(m->owner->ep, m->handle);
	if (rc == CCI_SUCCESS) {
		free(m->buf);
		tc_remove((void **)tc_cci.mem, m);
	}
	return tc_cci_done(tc, "deregister", rc);
}

static int
cci_handle(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_mem *m = tc_need(tc, (void **)tc_cci.mem, "CCI memory", argv[0]);

	(void)argc;
	if (m == NULL)
		return -1;
	for (unsigned i = 0; i < 4; i++)
		fprintf(tc->out, "%016llx", (unsigned long long)m->handle->stuff[i]);
	fprintf(tc->out, "\n");
	return 0;
}

/* The name of memory of this process, or 64 digits as "cci handle" prints them. */
static int
handle_find(struct tc *tc, const char *text, struct cci_rma_handle *out)
{
	const struct tc_cci_mem *m = tc_find((void **)tc_cci.mem, text);

	if (m != NULL) {
		*out = *m->handle;
		return 0;
	}
	if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
		return tc_error(tc, "\"%.64s\" is neither memory nor a handle", text);
	for (unsigned i = 0; i < 4; i++) {
		char word[17] = {0};

		memcpy(word, text + 16 * i, 16);
		out->stuff[i] = strtoull(word, NULL, 16);
	}
	return 0;
}

static int
cci_move(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_conn *c = conn_need(tc, argv[0]);
	struct tc_cci_mem *m = tc_need(tc, (void **)tc_cci.mem, "CCI memory", argv[2]);
	struct cci_rma_handle remote;
	uint64_t local_at, remote_at, len;
	const char *message = NULL;
	int flags = 0, rc;

	if (c == NULL || m == NULL || flags_parse(tc, 1, argv + 1, "read, write", &flags) != 0 ||
		tc_number(tc, argv[3], &local_at) != 0 || handle_find(tc, argv[4], &remote) != 0 ||
		tc_number(tc, argv[5], &remote_at) != 0 || tc_number(tc, argv[6], &len) != 0)
		return -1;
	if (argc > 7 && strcmp(argv[argc - 2], "message") == 0) {
		message = argv[argc - 1];
		argc -= 2;
	}
	if (flags_parse(tc, argc - 7, argv + 7, "fence, silent, blocking", &flags) != 0)
		return -1;
	rc = cci_rma(c->conn, message, message != NULL ? (uint32_t)strlen(message) : 0, m->handle,
		local_at, &remote, remote_at, len, (void *)(uintptr_t)len, flags);
	return tc_cci_done(tc, "rma", rc);
}

static int
cci_fill(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_mem *m = tc_need(tc, (void **)tc_cci.mem, "CCI memory", argv[0]);
	uint64_t pattern = tc->pattern;

	if (m == NULL || (argc > 1 && tc_number(tc, argv[1], &pattern) != 0))
		return -1;
	tc_fill(m->buf, m->size, pattern, 0, 0);
	return 0;
}

static int
cci_check(struct tc *tc, int argc, char **argv)
{
	struct tc_cci_mem *m = tc_need(tc, (void **)tc_cci.mem, "CCI memory", argv[0]);
	uint64_t pattern = tc->pattern, at;

	if (m == NULL || (argc > 1 && tc_number(tc, argv[1], &pattern) != 0))
		return -1;
	at = tc_mismatch(m->buf, m->size, pattern, 0, 0);
	if (at != UINT64_MAX)
		return tc_error(tc, "%s differs from the pattern at offset %llu", m->name,
			(unsigned long long)at);
	fprintf(tc->out, "%s: %llu bytes are correct\n", m->name, (unsigned long long)m->size);
	return 0;
}

/* ---- expect ---- */

static int
cci_expect_status(struct tc *tc, int argc, char **argv)
{
	const char *status = tc_cci_status(tc_cci.last.status);

	(void)argc;
	if (strcmp(status, argv[0]) == 0)
		return 0;
	return tc_error(tc, "expected status %s, got %s", argv[0], status);
}

static int
cci_expect_event(struct tc *tc, int argc, char **argv)
{
	int type = tc_cci.last.type;
	const char *name = type < 0 ? "CCI_EVENT_NONE" : cci_event_type_str((cci_event_type_t)type);

	(void)argc;
	if (strcmp(name + strlen("CCI_EVENT_"), argv[0]) == 0)
		return 0;
	return tc_error(tc, "expected event %s, got %s", argv[0], name);
}

static int
cci_expect_text(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	if (strcmp(tc_cci.last.text, argv[0]) == 0)
		return 0;
	return tc_error(tc, "expected text \"%s\", got \"%.200s\"", argv[0], tc_cci.last.text);
}

static int
cci_expect_value(struct tc *tc, int argc, char **argv)
{
	uint64_t want;

	(void)argc;
	if (tc_number(tc, argv[0], &want) != 0)
		return -1;
	if (want == tc_cci.last.value)
		return 0;
	return tc_error(tc, "expected value %s, got %llu", argv[0],
		(unsigned long long)tc_cci.last.value);
}

const struct tc_cmd tc_cmd_cci_msg[] = {
	{"cci event", "CCI [hold] [MS]",
		"take the next event; requests and, with hold, others are kept until cci return", 1, 3,
		cci_event},
	{"cci return", "EVENT|all", "return kept events", 1, 1, cci_return},
	{"cci send", "CONN SIZE|\"TEXT\" [silent] [blocking]",
		"send SIZE bytes of the pattern, or the text", 2, 4, cci_message},
	{"cci register", "NAME CCI SIZE [read] [write]",
		"allocate memory, fill it with the pattern and register it", 3, 5, cci_mem},
	{"cci deregister", "CCIMEM", "deregister and free it", 1, 1, cci_deregister},
	{"cci handle", "CCIMEM", "its handle, for another process", 1, 1, cci_handle},
	{"cci rma", "CONN read|write CCIMEM AT CCIMEM|HANDLE AT LEN [fence] [silent] [blocking] [message \"TEXT\"]",
		"move bytes between memory of this side, the first, and of the other", 7, 12, cci_move},
	{"cci fill", "CCIMEM [PATTERN]", "fill memory with a pattern", 1, 2, cci_fill},
	{"cci check", "CCIMEM [PATTERN]", "compare it with one", 1, 2, cci_check},
	{"cci expect status", "STATUS", "fail unless the last CCI command had this status", 1, 1,
		cci_expect_status},
	{"cci expect event", "TYPE", "fail unless it took an event of this type", 1, 1, cci_expect_event},
	{"cci expect text", "\"TEXT\"", "the same of the bytes that came", 1, 1, cci_expect_text},
	{"cci expect value", "N", "of its number", 1, 1, cci_expect_value},
	{0},
};
