/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_client_server.c - a server that echoes, and a client that finds it by a
 * socket address
 *
 * usage: ucp_client_server PORT              the server; it ends with its first client
 *        ucp_client_server PORT ADDRESS TEXT the client
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#define TAG_ASK	   1
#define TAG_ANSWER 2
#define TEXT_MAX   1000

static ucp_worker_h worker;
static int peer_gone;

static void
check(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
	exit(EXIT_FAILURE);
}

static void
finish(ucs_status_ptr_t req, const char *what)
{
	ucs_status_t status;

	if (UCS_PTR_IS_ERR(req))
		check(UCS_PTR_STATUS(req), what);
	if (req == NULL)
		return;
	while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	ucp_request_free(req);
	check(status, what);
}

/* Called once for an ep, from progress, when the other side has closed, refused or died. */
static void
on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	peer_gone = 1;
	if (status != UCS_ERR_CONNECTION_RESET)
		fprintf(stderr, "the other side: %s\n", ucs_status_string(status));
}

static void
send_text(ucp_ep_h ep, const char *text, ucp_tag_t tag)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	finish(ucp_tag_send_nbx(ep, text, strlen(text) + 1, tag, &param), "send");
}

static void
recv_text(char *text, ucp_tag_t tag)
{
	ucp_request_param_t param = {.op_attr_mask = 0};
	ucs_status_ptr_t req = ucp_tag_recv_nbx(worker, text, TEXT_MAX, tag, UINT64_MAX, &param);

	/* A receive belongs to no ep: it would wait for ever for one that has failed. */
	while (UCS_PTR_IS_PTR(req) && ucp_request_check_status(req) == UCS_INPROGRESS) {
		ucp_worker_progress(worker);
		if (peer_gone)
			ucp_request_cancel(worker, req);
	}
	finish(req, "receive");
}

/* A client asks; answer with an ep, now or later, or refuse with ucp_listener_reject(). */
static void
on_request(ucp_conn_request_h request, void *arg)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_handler.cb = on_error,
		.conn_request = request,
	};

	check(ucp_ep_create(worker, &params, arg), "ucp_ep_create");
}

static void
server(struct sockaddr_in *addr)
{
	ucp_ep_h ep = NULL;
	ucp_listener_params_t params = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
			UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(struct sockaddr *)addr, sizeof(*addr)},
		.conn_handler = {on_request, &ep},
	};
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE};
	ucp_listener_h listener;
	char text[TEXT_MAX];

	check(ucp_listener_create(worker, &params, &listener), "ucp_listener_create");
	printf("listening\n");
	fflush(stdout);
	while (ep == NULL)
		ucp_worker_progress(worker);
	recv_text(text, TAG_ASK);
	text[TEXT_MAX - 1] = '\0';
	printf("asked: %s\n", text);
	send_text(ep, text, TAG_ANSWER);
	while (!peer_gone) /* the client closes, and the error callback runs */
		ucp_worker_progress(worker);
	finish(ucp_ep_close_nbx(ep, &force), "close");
	ucp_listener_destroy(listener);
}

static void
client(struct sockaddr_in *addr, const char *question)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
			UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
		.sockaddr = {(struct sockaddr *)addr, sizeof(*addr)},
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler.cb = on_error,
	};
	ucp_request_param_t flush = {.op_attr_mask = 0};
	char text[TEXT_MAX];
	ucp_ep_h ep;

	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
	send_text(ep, question, TAG_ASK); /* goes out when the connection stands */
	recv_text(text, TAG_ANSWER);
	text[TEXT_MAX - 1] = '\0';
	printf("answer: %s\n", text);
	finish(ucp_ep_close_nbx(ep, &flush), "close");
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	struct sockaddr_in addr = {.sin_family = AF_INET};
	ucp_context_h context;

	if ((argc != 2 && argc != 4) ||
		inet_pton(AF_INET, argc == 4 ? argv[2] : "0.0.0.0", &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: %s PORT [ADDRESS TEXT]\n", argv[0]);
		return EXIT_FAILURE;
	}
	addr.sin_port = htons(atoi(argv[1]));
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	if (argc == 2)
		server(&addr);
	else
		client(&addr, argv[3]);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return EXIT_SUCCESS;
}
