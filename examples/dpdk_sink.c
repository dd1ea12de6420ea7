/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dpdk_sink.c - a DPDK program that receives mbufs from another, unrelated DPDK program
 *
 * usage: dpdk_sink [EAL options] -- PORT BYTES     then start dpdk_source with the same arguments
 *
 * It has an EAL and lcores of its own, and shares nothing with the source: no primary and secondary
 * process, no file prefix, no binary. Messages are received into mbufs of its own pool: what is
 * longer than one mbuf into a chain. Its last lcore runs the worker.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <plx_mbuf.h>

#define N_POSTED 16 /* receives at a time */
#define N_SEGS	 3  /* of a chain */
#define SEG_ROOM (UINT16_MAX - (uint32_t)RTE_PKTMBUF_HEADROOM) /* the most */

struct slot {
	struct rte_mbuf *m;
	ucp_dt_iov_t iov[N_SEGS]; /* stays as long as the receive */
	ucs_status_ptr_t req;
	size_t len;
};

static struct rte_mempool *pool;
static ucp_worker_h worker;
static ucp_ep_h ep;
static unsigned n_segs; /* of a message */
static int peer_gone;
static uint64_t n_msgs, n_bytes, n_wrong;

static void
check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, ucs_status_string(status));
}

static void
on_error(void *arg, ucp_ep_h failed, ucs_status_t status)
{
	(void)arg, (void)failed, (void)status;
	peer_gone = 1;
}

static void
on_request(ucp_conn_request_h request, void *arg)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_handler.cb = on_error,
		.conn_request = request,
	};

	(void)arg;
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
}

/* All bytes of a message are its number, which the source counts. */
static void
look(struct rte_mbuf *m)
{
	uint8_t want = *rte_pktmbuf_mtod(m, uint8_t *);

	n_msgs++;
	n_bytes += m->pkt_len;
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		for (uint16_t i = 0; i < s->data_len; i++)
			n_wrong += rte_pktmbuf_mtod(s, uint8_t *)[i] != want;
}

static void
on_recv(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	struct slot *s = arg;

	(void)request;
	s->len = status == UCS_OK ? info->length : 0;
}

static void
post(struct slot *s)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
			UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.recv = on_recv, .user_data = s};
	struct rte_mbuf *segs[N_SEGS];

	if (rte_pktmbuf_alloc_bulk(pool, segs, n_segs) != 0)
		rte_exit(EXIT_FAILURE, "no mbufs\n");
	s->m = segs[0];
	for (unsigned i = 1; i < n_segs; i++)
		if (rte_pktmbuf_chain(s->m, segs[i]) != 0)
			rte_exit(EXIT_FAILURE, "no chain\n");
	(void)plx_mbuf_room_iov(s->m, s->iov, n_segs);
	if (n_segs == 1) { /* contiguous: it comes from the source's mbuf into this one by one copy */
		s->req = ucp_tag_recv_nbx(worker, s->iov[0].buffer, s->iov[0].length, 0, 0, &param);
	} else {
		param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		param.datatype = UCP_DATATYPE_IOV;
		s->req = ucp_tag_recv_nbx(worker, s->iov, n_segs, 0, 0, &param);
	}
	if (UCS_PTR_IS_ERR(s->req))
		check(UCS_PTR_STATUS(s->req), "ucp_tag_recv_nbx");
}

/* @return whether a message has come */
static int
serve(struct slot *s)
{
	if (ucp_request_check_status(s->req) == UCS_INPROGRESS)
		return 0;
	ucp_request_free(s->req);
	if (s->len != 0 && plx_mbuf_set_len(s->m, (uint32_t)s->len) == 0)
		look(s->m);
	rte_pktmbuf_free(s->m);
	return 1;
}

/* Messages match the receives in the order in which these were posted. */
static int
run(void *arg)
{
	struct slot slots[N_POSTED];
	unsigned next = 0;
	int some;

	(void)arg;
	for (unsigned i = 0; i < N_POSTED; i++)
		post(&slots[i]);
	do {
		ucp_worker_progress(worker);
		for (some = 0; serve(&slots[next]); next = (next + 1) % N_POSTED, some = 1)
			post(&slots[next]);
	} while (!peer_gone || some); /* its last messages came before its end */
	for (unsigned i = 0; i < N_POSTED; i++) {
		ucp_request_cancel(worker, slots[i].req);
		while (!serve(&slots[i]))
			ucp_worker_progress(worker);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_listener_params_t listen = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(struct sockaddr *)&addr, sizeof(addr)},
		.conn_handler = {on_request, NULL},
	};
	int used = rte_eal_init(argc, argv); /* before anything of the library */
	unsigned lcore, last = RTE_MAX_LCORE;
	ucp_listener_h listener;
	ucp_context_h context;
	ucs_status_ptr_t req;

	if (used < 0)
		rte_exit(EXIT_FAILURE, "the EAL does not start, see above; --in-memory or --no-huge may help\n");
	n_segs = argc - used == 3 ? ((unsigned)atoi(argv[used + 2]) + SEG_ROOM - 1) / SEG_ROOM : 0;
	if (n_segs == 0 || n_segs > N_SEGS)
		rte_exit(EXIT_FAILURE, "usage: dpdk_sink [EAL options] -- PORT BYTES\n");
	addr.sin_port = htons((uint16_t)atoi(argv[used + 1]));
	pool = rte_pktmbuf_pool_create("sink", 2 * N_POSTED * n_segs, 0, 0, UINT16_MAX,
		(int)rte_socket_id());
	if (pool == NULL)
		rte_exit(EXIT_FAILURE, "no pool: %s\n", rte_strerror(rte_errno));
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	check(ucp_listener_create(worker, &listen, &listener), "ucp_listener_create");
	printf("listening\n");
	fflush(stdout);
	while (ep == NULL)
		ucp_worker_progress(worker);
	RTE_LCORE_FOREACH_WORKER(lcore)
		last = lcore;
	if (last == RTE_MAX_LCORE || rte_eal_remote_launch(run, NULL, last) != 0)
		(void)run(NULL);
	rte_eal_mp_wait_lcore();
	printf("lcore %d received %llu messages, %llu bytes, %llu wrong\n", last == RTE_MAX_LCORE ? -1 : (int)last,
		(unsigned long long)n_msgs, (unsigned long long)n_bytes, (unsigned long long)n_wrong);
	req = ucp_ep_close_nbx(ep, &force);
	if (UCS_PTR_IS_PTR(req))
		ucp_request_free(req);
	ucp_listener_destroy(listener);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	printf("mbufs in use: %u\n", rte_mempool_in_use_count(pool));
	return rte_eal_cleanup() == 0 && n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
