/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_child.c - another process to talk to, and to kill
 *
 * The child is this program again, so that it starts with nothing of the
 * parent's. It says hello with tag 1 and then runs turns until it is killed.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "ucp_api_test.h"

void
child_open(struct child *c, ucp_worker_h w, const char *role)
{
	child_spawn(c, role, "");
	child_put_address(c->to, w);
	c->addr = child_get_address(c->from);
}

void
child_open_client(struct child *c, uint16_t port)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", port);
	child_spawn(c, "client", text);
}

void
child_hello(struct child *c, ucp_worker_h w, ucp_ep_h ep)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull, in = 0, out = 1;
	struct op recv, send;

	(void)c;
	util_recv(&recv, w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&send, ep, &out, 8, 1, UTIL_NBX);
	while (!(util_done(&recv) && util_done(&send)) && util_now_ns() < end)
		ucp_worker_progress(w);
	CU_ASSERT_FATAL(util_done(&recv) && util_done(&send));
	util_free(&recv);
	util_free(&send);
	CU_ASSERT_EQUAL(in, 4711);
}

static ucp_ep_h
client_ep(ucp_worker_h w, const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_ep_params_t params;
	ucp_ep_h ep;

	params.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
		UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
	params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
	params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params.sockaddr.addr = (struct sockaddr *)&to;
	params.sockaddr.addrlen = sizeof(to);
	UTIL_OK(ucp_ep_create(w, &params, &ep));
	return ep;
}

int
child_main(char **argv)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	uint64_t out = 4711, in;
	struct op send, recv;
	ucp_ep_h ep;

	alarm(120);
	if (strcmp(argv[0], "client") == 0) {
		ep = client_ep(w, argv[1]);
	} else {
		child_put_address(CHILD_OUT, w);
		ep = util_ep(w, child_get_address(CHILD_IN));
	}
	util_send(&send, ep, &out, 8, 1, UTIL_NBX);
	util_recv(&recv, w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	for (;;)
		ucp_worker_progress(w);
}
