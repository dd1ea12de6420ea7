/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_hello.c - two processes exchange a message, sleeping while they wait
 *
 * The process forks; parent and child pass their worker addresses through pipes,
 * which stands for whatever a real program has for that (MPI has PMI). Then the
 * parent sends a tagged message and the child answers it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#define TAG 0x1234
#define ALL UINT64_MAX

static void
check(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
	exit(EXIT_FAILURE);
}

static void
check_io(ssize_t got, ssize_t want)
{
	if (got == want)
		return;
	perror("pipe");
	exit(EXIT_FAILURE);
}

/* A worker does nothing by itself: a thread that waits runs its turns, or sleeps until it needs one. */
static void
progress_or_sleep(ucp_worker_h worker)
{
	struct pollfd p = {.events = POLLIN};

	if (ucp_worker_progress(worker) != 0)
		return;
	if (ucp_worker_arm(worker) == UCS_ERR_BUSY) /* something came meanwhile */
		return;
	check(ucp_worker_get_efd(worker, &p.fd), "ucp_worker_get_efd");
	poll(&p, 1, -1);
}

/* Every operation returns NULL (done), a request (not yet) or an error. */
static void
finish(ucp_worker_h worker, ucs_status_ptr_t req, const char *what)
{
	ucs_status_t status = UCS_OK;

	if (UCS_PTR_IS_ERR(req))
		check(UCS_PTR_STATUS(req), what);
	if (req == NULL)
		return;
	while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS)
		progress_or_sleep(worker);
	ucp_request_free(req);
	check(status, what);
}

static void
send_text(ucp_worker_h worker, ucp_ep_h ep, const char *text)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	finish(worker, ucp_tag_send_nbx(ep, text, strlen(text) + 1, TAG, &param), "send");
}

static void
recv_text(ucp_worker_h worker, char *text, size_t len)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	finish(worker, ucp_tag_recv_nbx(worker, text, len, TAG, ALL, &param), "receive");
}

/* Tell our address and learn the other's. */
static ucp_ep_h
meet(ucp_worker_h worker, int to, int from)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	size_t len;
	ucp_ep_h ep;
	void *other;

	check(ucp_worker_get_address(worker, &address, &len), "ucp_worker_get_address");
	check_io(write(to, &len, sizeof(len)), sizeof(len));
	check_io(write(to, address, len), len);
	ucp_worker_release_address(worker, address);
	check_io(read(from, &len, sizeof(len)), sizeof(len));
	other = malloc(len);
	check_io(read(from, other, len), len);
	params.address = other;
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
	free(other); /* the ep has what it needs */
	return ep;
}

static void
run(int is_parent, int to, int from)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	ucp_request_param_t close_param = {.op_attr_mask = 0};
	ucp_context_h context;
	ucp_worker_h worker;
	char text[100];
	ucp_ep_h ep;

	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	ep = meet(worker, to, from);
	if (is_parent) {
		send_text(worker, ep, "hello");
		recv_text(worker, text, sizeof(text));
		printf("the answer: %s\n", text);
	} else {
		recv_text(worker, text, sizeof(text));
		strncat(text, ", world", sizeof(text) - strlen(text) - 1);
		send_text(worker, ep, text);
	}
	finish(worker, ucp_ep_close_nbx(ep, &close_param), "close");
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

int
main(void)
{
	int down[2], up[2], status;
	pid_t child;

	if (pipe(down) != 0 || pipe(up) != 0) {
		perror("pipe");
		return EXIT_FAILURE;
	}
	child = fork(); /* before ucp_init(): a context belongs to one process */
	if (child == 0) {
		run(0, up[1], down[0]);
		return EXIT_SUCCESS;
	}
	run(1, down[1], up[0]);
	if (waitpid(child, &status, 0) != child || status != 0)
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
