/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dpdk_service.c - a service core of DPDK moves the messages of a program that computes
 *
 * usage: dpdk_service [EAL options]     two lcores, as --lcores 0@0,1@1
 *
 * The second lcore becomes a service core. The worker sends mbufs to itself: the main lcore posts
 * and looks at the requests, and never calls ucp_worker_progress().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <plx_service.h>

#define N_MSGS 100u
#define LEN    32768u

static ucp_worker_h worker;

static void
check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, ucs_status_string(status));
}

static void
must(int rc, const char *what)
{
	if (rc != 0)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, strerror(-rc));
}

/* The service core completes it meanwhile. */
static void
wait_for(ucs_status_ptr_t req, const char *what)
{
	ucs_status_t status = UCS_PTR_STATUS(req);

	if (UCS_PTR_IS_PTR(req)) {
		while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS)
			rte_pause(); /* a real program computes here */
		ucp_request_free(req);
	}
	check(status, what);
}

/* @return whether the message has come as it was sent */
static int
exchange(ucp_ep_h ep, struct rte_mempool *pool, unsigned number)
{
	ucp_request_param_t param = {.op_attr_mask = 0};
	struct rte_mbuf *to = rte_pktmbuf_alloc(pool), *from = rte_pktmbuf_alloc(pool);
	ucs_status_ptr_t recv, send;
	int good;

	if (to == NULL || from == NULL)
		rte_exit(EXIT_FAILURE, "no mbufs\n");
	memset(rte_pktmbuf_append(from, LEN), (int)number, LEN);
	recv = ucp_tag_recv_nbx(worker, rte_pktmbuf_mtod(to, void *), LEN, number, UINT64_MAX, &param);
	send = ucp_tag_send_nbx(ep, rte_pktmbuf_mtod(from, void *), LEN, number, &param);
	wait_for(send, "send");
	wait_for(recv, "receive");
	good = memcmp(rte_pktmbuf_mtod(to, void *), rte_pktmbuf_mtod(from, void *), LEN) == 0;
	rte_pktmbuf_free(to);
	rte_pktmbuf_free(from);
	return good;
}

static ucp_ep_h
ep_to_itself(void)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	size_t len;
	ucp_ep_h ep;

	check(ucp_worker_get_address(worker, &address, &len), "ucp_worker_get_address");
	params.address = address;
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
	ucp_worker_release_address(worker, address);
	return ep;
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_MULTI};
	struct rte_mempool *pool;
	ucp_context_h context;
	unsigned core, good = 0;
	uint32_t service;
	ucp_ep_h ep;

	if (rte_eal_init(argc, argv) < 0) /* before anything of the library */
		rte_exit(EXIT_FAILURE, "the EAL does not start, see above; --in-memory or --no-huge may help\n");
	if (rte_lcore_count() < 2)
		rte_exit(EXIT_FAILURE, "usage: dpdk_service [EAL options], for two lcores\n");
	core = rte_get_next_lcore(-1, 1, 0);
	pool = rte_pktmbuf_pool_create("mbufs", 15, 0, 0, LEN + RTE_PKTMBUF_HEADROOM, (int)rte_socket_id());
	if (pool == NULL)
		rte_exit(EXIT_FAILURE, "no pool\n");
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	ep = ep_to_itself();
	must(plx_service_start("pollux", worker, &service), "plx_service_start");
	must(rte_service_lcore_add(core), "rte_service_lcore_add");
	must(rte_service_map_lcore_set(service, core, 1), "rte_service_map_lcore_set");
	must(rte_service_lcore_start(core), "rte_service_lcore_start");
	for (unsigned i = 0; i < N_MSGS; i++)
		good += (unsigned)exchange(ep, pool, i);
	must(plx_service_stop(service), "plx_service_stop");
	must(rte_service_lcore_stop(core), "rte_service_lcore_stop");
	printf("%u of %u messages moved by service core %u\n", good, N_MSGS, core);
	ucp_ep_destroy(ep);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return rte_eal_cleanup() == 0 && good == N_MSGS ? EXIT_SUCCESS : EXIT_FAILURE;
}
