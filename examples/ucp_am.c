/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_am.c - a client asks a server by active messages, and is answered
 *
 * The process forks; parent (client) and child (server) pass their worker addresses
 * through pipes. The client sends numbers in a header and in data, a few and then
 * many. The server adds them up: a short message lies in front of its handler, a
 * long one has to be fetched first. It answers on the ep that came with the question.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

enum { ASK = 1, ANSWER = 2, N_MANY = 1000000 };

struct question {
	uint64_t serial, n;
};

struct answer {
	uint64_t serial, sum;
};

struct server {
	ucp_worker_h worker;
	ucp_ep_h reply_ep;
	struct question q;
	uint64_t *fetched;
	int answers;
};

static struct answer last;

static void
check(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
	exit(EXIT_FAILURE);
}

static void
answer(struct server *s, const uint64_t *v)
{
	struct answer a = {.serial = s->q.serial};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_COPY_HEADER};
	ucs_status_ptr_t req;

	for (uint64_t i = 0; i < s->q.n; i++)
		a.sum += v[i];
	/* The header is ours again when the call returns, and there is nothing else. */
	req = ucp_am_send_nbx(s->reply_ep, ANSWER, &a, sizeof(a), NULL, 0, &param);
	check(UCS_PTR_STATUS(req) == UCS_INPROGRESS ? UCS_OK : UCS_PTR_STATUS(req), "answer");
	if (UCS_PTR_IS_PTR(req))
		ucp_request_free(req);
	s->answers++;
}

static void
on_fetched(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct server *s = user_data;

	(void)length;
	check(status, "fetch");
	answer(s, s->fetched);
	free(s->fetched);
	ucp_request_free(request);
}

static ucs_status_t
on_ask(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct server *s = arg;
	ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
			UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv_am = on_fetched, .user_data = s};
	ucs_status_ptr_t req;

	if (header_length != sizeof(s->q) || !(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP))
		return UCS_ERR_INVALID_PARAM; /* what comes from outside is checked */
	memcpy(&s->q, header, sizeof(s->q));
	if (s->q.n != length / sizeof(uint64_t))
		return UCS_ERR_INVALID_PARAM;
	s->reply_ep = param->reply_ep;
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
		answer(s, data);
		return UCS_OK;
	}
	s->fetched = malloc(length);
	if (s->fetched == NULL)
		return UCS_ERR_NO_MEMORY; /* the send ends with this */
	req = ucp_am_recv_data_nbx(s->worker, data, s->fetched, length, &fetch);
	return UCS_PTR_IS_ERR(req) ? UCS_PTR_STATUS(req) : UCS_INPROGRESS;
}

static ucs_status_t
on_answer(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	(void)arg, (void)data, (void)length, (void)param;
	if (header_length == sizeof(last))
		memcpy(&last, header, sizeof(last));
	return UCS_OK;
}

static void
set_handler(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t cb, void *arg)
{
	ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = id, .cb = cb, .arg = arg};

	check(ucp_worker_set_am_recv_handler(worker, &param), "ucp_worker_set_am_recv_handler");
}

/* Ask for the sum of 1 to n and wait for the answer. */
static void
ask(ucp_worker_h worker, ucp_ep_h ep, uint64_t serial, uint64_t n)
{
	struct question q = {serial, n};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_REPLY};
	uint64_t *v = malloc(n * sizeof(*v));
	ucs_status_ptr_t req;

	if (v == NULL)
		exit(EXIT_FAILURE);
	for (uint64_t i = 0; i < n; i++)
		v[i] = i + 1;
	req = ucp_am_send_nbx(ep, ASK, &q, sizeof(q), v, n * sizeof(*v), &param);
	while (last.serial != serial)
		ucp_worker_progress(worker);
	if (UCS_PTR_IS_PTR(req)) {
		while (ucp_request_check_status(req) == UCS_INPROGRESS)
			ucp_worker_progress(worker);
		check(ucp_request_check_status(req), "send");
		ucp_request_free(req);
	}
	free(v);
	printf("the sum of 1 to %llu: %llu\n", (unsigned long long)n, (unsigned long long)last.sum);
}

int
main(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	struct server server = {.answers = 0};
	char address[4096] = {0};
	ucp_address_t *own;
	ucp_context_h context;
	ucp_worker_h worker;
	size_t len;
	ucp_ep_h ep;
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) != 0 || (pid = fork()) < 0)
		return EXIT_FAILURE;
	check(ucp_init(&params, NULL, &context), "ucp_init"); /* after the fork */
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	if (pid == 0) {
		server.worker = worker;
		set_handler(worker, ASK, on_ask, &server);
		check(ucp_worker_get_address(worker, &own, &len), "ucp_worker_get_address");
		if (write(fds[1], own, len) != (ssize_t)len)
			return EXIT_FAILURE;
		while (server.answers < 2)
			ucp_worker_progress(worker);
		ucp_worker_release_address(worker, own);
		ucp_ep_destroy(server.reply_ep); /* the answers are out then */
	} else {
		set_handler(worker, ANSWER, on_answer, NULL);
		if (read(fds[0], address, sizeof(address)) <= 0)
			return EXIT_FAILURE;
		ep_params.address = (ucp_address_t *)address;
		check(ucp_ep_create(worker, &ep_params, &ep), "ucp_ep_create");
		ask(worker, ep, 1, 10);
		ask(worker, ep, 2, N_MANY);
		ucp_ep_destroy(ep);
	}
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return pid == 0 || (waitpid(pid, &status, 0) == pid && status == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
