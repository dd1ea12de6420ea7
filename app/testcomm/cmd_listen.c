/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_listen.c - listeners, connection requests, and endpoints by socket addresses
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

#define LISTEN_MAX_TEXT (INET6_ADDRSTRLEN + 16)

/* "HOST:PORT", with an IPv6 address in brackets. */
static int
listen_parse(struct tc *tc, const char *text, struct sockaddr_storage *out, socklen_t *len)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	char host[LISTEN_MAX_TEXT];
	struct addrinfo *found;
	bool brackets = text[0] == '[';

	if (colon == NULL || (size_t)(colon - text) >= sizeof(host) ||
		(brackets && (colon == text || colon[-1] != ']')))
		return tc_error(tc, "\"%.40s\" is not an address: write 127.0.0.1:PORT or [::1]:PORT", text);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - 2 * brackets, text + brackets);
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
		return tc_error(tc, "\"%.40s\" is not an address: write 127.0.0.1:PORT or [::1]:PORT", text);
	memcpy(out, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static const char *
listen_text(const struct sockaddr_storage *a, char *out)
{
	char host[INET6_ADDRSTRLEN] = "?", port[8] = "?";
	socklen_t len = a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(out, LISTEN_MAX_TEXT, a->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return out;
}

static struct tc_listener *
listener_find(struct tc *tc, const char *name)
{
	return tc_need(tc, (void **)tc->listener, "listener", name);
}

static int
listener_at(struct tc *tc, const struct tc_listener *l, struct sockaddr_storage *out)
{
	ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
	ucs_status_t status = ucp_listener_query(l->listener, &attr);

	tc->last.status = status;
	if (status != UCS_OK)
		return tc_error(tc, "%s has no address: %s", l->name, ucs_status_string(status));
	*out = attr.sockaddr;
	return 0;
}

/* ---- listeners ---- */

static void
listen_asked(ucp_conn_request_h request, void *arg)
{
	struct tc_listener *l = arg;
	struct tc_connreq *c;
	char name[TC_MAX_NAME];

	snprintf(name, sizeof(name), "c%u", l->tc->next_connreq++);
	c = tc_new(l->tc, (void **)l->tc->connreq, sizeof(*c), name);
	if (c == NULL) {
		ucp_listener_reject(l->listener, request);
		return;
	}
	c->request = request;
	c->listener = l;
}

static int
listener_open(struct tc *tc, struct tc_listener *l, const char *text)
{
	ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER, .conn_handler = {listen_asked, l}};
	struct sockaddr_storage at;
	char name[LISTEN_MAX_TEXT];
	socklen_t len;

	if (listen_parse(tc, text, &at, &len) != 0)
		return -1;
	params.sockaddr.addr = (const struct sockaddr *)&at;
	params.sockaddr.addrlen = len;
	tc->last.status = ucp_listener_create(l->worker->worker, &params, &l->listener);
	if (tc->last.status != UCS_OK)
		return tc_error(tc, "cannot listen at %s: %s", text, ucs_status_string(tc->last.status));
	if (listener_at(tc, l, &at) == 0)
		fprintf(tc->out, "listener %s at %s\n", l->name, listen_text(&at, name));
	return 0;
}

static int
listener_create(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[1]);
	struct tc_listener *l;

	if (w == NULL)
		return -1;
	l = tc_new(tc, (void **)tc->listener, sizeof(*l), argv[0]);
	if (l == NULL)
		return -1;
	l->worker = w;
	l->tc = tc;
	if (listener_open(tc, l, argc > 2 ? argv[2] : "127.0.0.1:0") == 0)
		return 0;
	tc_remove((void **)tc->listener, l);
	return -1;
}

static int
listener_list(struct tc *tc, int argc, char **argv)
{
	struct sockaddr_storage at;
	char text[LISTEN_MAX_TEXT];

	(void)argc;
	(void)argv;
	tc->last.count = 0;
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		const struct tc_listener *l = tc->listener[i];

		if (l == NULL || listener_at(tc, l, &at) != 0)
			continue;
		fprintf(tc->out, "listener %s of worker %s at %s\n", l->name, l->worker->name,
			listen_text(&at, text));
		tc->last.count++;
	}
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->connreq[i] != NULL)
			fprintf(tc->out, "request %s, not answered\n", tc->connreq[i]->name);
	}
	return 0;
}

static int
listener_address(struct tc *tc, int argc, char **argv)
{
	struct tc_listener *l = listener_find(tc, argv[0]);
	struct sockaddr_storage at;
	char text[LISTEN_MAX_TEXT];

	(void)argc;
	if (l == NULL || listener_at(tc, l, &at) != 0)
		return -1;
	fprintf(tc->out, "%s\n", listen_text(&at, text));
	return 0;
}

/* Requests are rejected with their listener. */
static void
listener_free(struct tc *tc, struct tc_listener *l)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		struct tc_connreq *c = tc->connreq[i];

		if (c == NULL || c->listener != l)
			continue;
		ucp_listener_reject(l->listener, c->request);
		tc_remove((void **)tc->connreq, c);
	}
	ucp_listener_destroy(l->listener);
	tc_remove((void **)tc->listener, l);
}

/* A worker is destroyed: its listeners go. */
void
tc_listeners_drop(struct tc *tc, struct tc_worker *w)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->listener[i] != NULL && tc->listener[i]->worker == w)
			listener_free(tc, tc->listener[i]);
	}
}

static int
listener_destroy(struct tc *tc, int argc, char **argv)
{
	struct tc_listener *l = listener_find(tc, argv[0]);

	(void)argc;
	if (l == NULL)
		return -1;
	listener_free(tc, l);
	return 0;
}

/* A request of this listener that was not shown, or NULL. */
static struct tc_connreq *
connreq_new(struct tc *tc, const struct tc_listener *l)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->connreq[i] != NULL && tc->connreq[i]->listener == l && !tc->connreq[i]->shown)
			return tc->connreq[i];
	}
	return NULL;
}

static int
listener_wait(struct tc *tc, int argc, char **argv)
{
	ucp_conn_request_attr_t attr = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};
	struct tc_listener *l = listener_find(tc, argv[0]);
	uint64_t ms = tc->timeout_ms, end;
	char text[LISTEN_MAX_TEXT] = "a client";
	struct tc_connreq *c;

	if (l == NULL || (argc > 1 && tc_number(tc, argv[1], &ms) != 0))
		return -1;
	end = tc_now_us() + ms * 1000;
	while ((c = connreq_new(tc, l)) == NULL && tc_now_us() < end && !tc_interrupted())
		tc_progress(tc);
	if (c == NULL)
		return tc_error(tc, "no client has connected to %s within %llu ms", l->name, (unsigned long long)ms);
	c->shown = true;
	tc->last.status = ucp_conn_request_query(c->request, &attr);
	if (tc->last.status == UCS_OK)
		listen_text(&attr.client_address, text);
	fprintf(tc->out, "request %s from %s\n", c->name, text);
	return 0;
}

/* ---- endpoints ---- */

/* The name of a listener here, "@FILE" with an address, or an address. */
static int
listen_find(struct tc *tc, const char *text, bool wait, struct sockaddr_storage *at, socklen_t *len)
{
	const struct tc_listener *l = tc_find((void **)tc->listener, text);
	char *line;
	int rc;

	if (l != NULL) {
		*len = sizeof(*at);
		return listener_at(tc, l, at);
	}
	if (text[0] != '@')
		return listen_parse(tc, text, at, len);
	line = tc_file(tc, text + 1, wait);
	if (line == NULL)
		return -1;
	rc = listen_parse(tc, line, at, len);
	free(line);
	return rc;
}

static int
ep_connect(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[1]);
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER};
	struct sockaddr_storage at;
	struct tc_ep *ep;
	bool wait, peer;
	socklen_t len;

	if (w == NULL || tc_ep_options(tc, argc, argv, &wait, &peer) != 0 ||
		listen_find(tc, argv[2], wait, &at, &len) != 0)
		return -1;
	ep = tc_ep_new(tc, argv[0], w);
	if (ep == NULL)
		return -1;
	params.sockaddr.addr = (const struct sockaddr *)&at;
	params.sockaddr.addrlen = len;
	return tc_ep_open(tc, ep, &params, peer);
}

static int
ep_accept(struct tc *tc, int argc, char **argv)
{
	struct tc_connreq *c = tc_need(tc, (void **)tc->connreq, "connection request", argv[1]);
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST};
	struct tc_ep *ep;

	if (argc > 2 && strcmp(argv[2], "peer") != 0)
		return tc_error(tc, "\"%s\" is not \"peer\"", argv[2]);
	ep = c != NULL ? tc_ep_new(tc, argv[0], c->listener->worker) : NULL;
	if (ep == NULL)
		return -1;
	params.conn_request = c->request;
	tc_remove((void **)tc->connreq, c);
	return tc_ep_open(tc, ep, &params, argc > 2);
}

static int
ep_reject(struct tc *tc, int argc, char **argv)
{
	struct tc_connreq *c = tc_need(tc, (void **)tc->connreq, "connection request", argv[0]);

	(void)argc;
	if (c == NULL)
		return -1;
	tc->last.status = ucp_listener_reject(c->listener->listener, c->request);
	tc_remove((void **)tc->connreq, c);
	if (tc->last.status == UCS_OK)
		return 0;
	return tc_error(tc, "it cannot be rejected: %s", ucs_status_string(tc->last.status));
}

static int
ep_error(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	uint64_t ms = tc->timeout_ms, end;

	if (ep == NULL || (argc > 1 && tc_number(tc, argv[1], &ms) != 0))
		return -1;
	end = tc_now_us() + ms * 1000;
	while (ep->error == UCS_OK && tc_now_us() < end && !tc_interrupted())
		tc_progress(tc);
	tc->last = (struct tc_last){.status = ep->error};
	fprintf(tc->out, "endpoint %s: %s\n", ep->name, tc_status_name(ep->error));
	return 0;
}

const struct tc_cmd tc_cmd_listen[] = {
	{"listener create", "NAME WORKER [HOST:PORT]",
		"listen at an address; by default at a free port of 127.0.0.1", 2, 3, listener_create},
	{"listener list", "", "the listeners and the requests that were not answered", 0, 0,
		listener_list},
	{"listener address", "LISTENER", "where it listens; \"> FILE\" writes it for others", 1, 1,
		listener_address},
	{"listener wait", "LISTENER [MS]", "wait for the next connection request", 1, 2, listener_wait},
	{"listener destroy", "LISTENER", "destroy it; requests are rejected", 1, 1, listener_destroy},
	{"ep connect", "NAME WORKER HOST:PORT|LISTENER|@FILE [wait] [peer]",
		"make an endpoint to a listener", 3, 5, ep_connect},
	{"ep accept", "NAME CONNREQ [peer]", "make the endpoint that a request asks for", 2, 3, ep_accept},
	{"ep reject", "CONNREQ", "reject a request", 1, 1, ep_reject},
	{"ep error", "EP [MS]", "wait until its failure is reported", 1, 2, ep_error},
	{0},
};
