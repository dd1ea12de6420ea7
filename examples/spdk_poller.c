/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * spdk_poller.c - a poller of SPDK moves the messages of a worker
 *
 * usage: spdk_poller [--no-huge]
 *
 * The spdk_thread owns the worker: its poller runs the turns, and all callbacks with them, between
 * the other pollers of that thread. The payload is in memory of spdk_dma_malloc(). A program with
 * spdk_app_start() does the same in its start function, and needs none of the loops of main().
 *
 * SPDK is no package of Debian. meson builds this where pkg-config finds spdk_thread and
 * spdk_env_dpdk, which have to be made for the DPDK that Pollux has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spdk/env.h>
#include <spdk/thread.h>

#include <ucp/api/ucp.h>

#define N_MSGS	100u
#define LEN	32768u
#define MEM_MIB 64

struct app {
	ucp_worker_h worker;
	ucp_ep_h ep;
	struct spdk_poller *poller;
	uint8_t *from, *to;
	unsigned pending; /* of the send and the receive of a message */
	unsigned n, good;
};

static void
check(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
	exit(EXIT_FAILURE);
}

static void exchange(struct app *app);

/* When both sides of a message are complete, the next one starts. */
static void
completed(struct app *app, ucs_status_t status)
{
	check(status, "a message");
	if (--app->pending > 0)
		return;
	app->good += memcmp(app->from, app->to, LEN) == 0;
	if (++app->n < N_MSGS)
		exchange(app);
}

static void
sent(void *request, ucs_status_t status, void *arg)
{
	ucp_request_free(request);
	completed(arg, status);
}

static void
received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)info;
	ucp_request_free(request);
	completed(arg, status);
}

/* Send the next message to this worker itself. Both sides complete by callback, in the poller. */
static void
exchange(struct app *app)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
		UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.recv = received, .user_data = app};
	ucs_status_ptr_t req;

	app->pending = 2;
	memset(app->from, (int)app->n, LEN);
	req = ucp_tag_recv_nbx(app->worker, app->to, LEN, app->n, UINT64_MAX, &param);
	check(UCS_PTR_IS_ERR(req) ? UCS_PTR_STATUS(req) : UCS_OK, "ucp_tag_recv_nbx");
	param.cb.send = sent;
	req = ucp_tag_send_nbx(app->ep, app->from, LEN, app->n, &param);
	check(UCS_PTR_IS_ERR(req) ? UCS_PTR_STATUS(req) : UCS_OK, "ucp_tag_send_nbx");
}

/* One turn. Its result tells SPDK whether the thread was busy or idle. */
static int
poll_worker(void *arg)
{
	struct app *app = arg;

	return ucp_worker_progress(app->worker) != 0 ? SPDK_POLLER_BUSY : SPDK_POLLER_IDLE;
}

static void
open_worker(struct app *app, ucp_context_h context)
{
	ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	size_t len;

	check(ucp_worker_create(context, &params, &app->worker), "ucp_worker_create");
	check(ucp_worker_get_address(app->worker, &address, &len), "ucp_worker_get_address");
	ep_params.address = address;
	check(ucp_ep_create(app->worker, &ep_params, &app->ep), "ucp_ep_create");
	ucp_worker_release_address(app->worker, address);
}

/* A program with spdk_app_start() does not need this. */
static struct spdk_thread *
start_spdk(int no_huge)
{
	struct spdk_env_opts opts = {.opts_size = sizeof(opts)};
	struct spdk_thread *thread;

	spdk_env_opts_init(&opts);
	opts.name = "spdk_poller";
	opts.core_mask = "0x1";
	opts.mem_size = MEM_MIB;
	opts.no_pci = true;
	opts.no_huge = no_huge;
	if (spdk_env_init(&opts) != 0 || spdk_thread_lib_init(NULL, 0) != 0)
		return NULL;
	thread = spdk_thread_create("app", NULL);
	if (thread != NULL)
		spdk_set_thread(thread);
	return thread;
}

static void
stop_spdk(struct spdk_thread *thread)
{
	spdk_thread_exit(thread);
	while (!spdk_thread_is_exited(thread))
		spdk_thread_poll(thread, 0, 0);
	spdk_thread_destroy(thread);
	spdk_thread_lib_fini();
	spdk_env_fini();
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	struct spdk_thread *thread = start_spdk(argc > 1 && strcmp(argv[1], "--no-huge") == 0);
	struct app app = {.n = 0};
	ucp_context_h context;

	if (thread == NULL) /* SPDK starts the EAL, before the library looks for one */
		return EXIT_FAILURE;
	check(ucp_init(&params, NULL, &context), "ucp_init");
	open_worker(&app, context);
	app.from = spdk_dma_malloc(LEN, 64, NULL);
	app.to = spdk_dma_malloc(LEN, 64, NULL);
	app.poller = spdk_poller_register(poll_worker, &app, 0);
	if (app.from == NULL || app.to == NULL || app.poller == NULL)
		return EXIT_FAILURE;
	exchange(&app);
	while (app.n < N_MSGS)
		spdk_thread_poll(thread, 0, 0); /* runs all pollers */
	printf("%u of %u messages moved by a poller\n", app.good, N_MSGS);
	spdk_poller_unregister(&app.poller); /* before its worker */
	ucp_ep_destroy(app.ep);
	ucp_worker_destroy(app.worker);
	ucp_cleanup(context);
	spdk_dma_free(app.from);
	spdk_dma_free(app.to);
	stop_spdk(thread);
	return app.good == N_MSGS ? EXIT_SUCCESS : EXIT_FAILURE;
}
