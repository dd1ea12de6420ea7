/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dpdk_source.c - a DPDK program that sends mbufs to another, unrelated DPDK program
 *
 * usage: dpdk_source [EAL options] -- PORT BYTES MESSAGES     start dpdk_sink first
 *
 * Each message is an mbuf, or a chain when it is longer, which goes as it is: nothing is copied
 * here, and the mbufs are freed when the sink has the message.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <plx_mbuf.h>

#define N_FLIGHT 8 /* messages that are sent at a time */
#define N_SEGS	 3
#define SEG_LEN	 (UINT16_MAX - (uint32_t)RTE_PKTMBUF_HEADROOM) /* the most */
#define LEN_MAX	 (N_SEGS * SEG_LEN)

struct slot {
	struct rte_mbuf *m;
	ucp_dt_iov_t iov[N_SEGS]; /* stays as long as the send */
	ucs_status_ptr_t req;
};

static struct rte_mempool *pool;
static ucp_worker_h worker;

static void
check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, ucs_status_string(status));
}

static void
on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg, (void)ep;
	if (status != UCS_ERR_CONNECTION_RESET)
		fprintf(stderr, "the sink: %s\n", ucs_status_string(status));
}

static void
wait_for(ucs_status_ptr_t req, const char *what)
{
	ucs_status_t status = UCS_PTR_STATUS(req);

	if (UCS_PTR_IS_PTR(req)) {
		while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS)
			ucp_worker_progress(worker);
		ucp_request_free(req);
	}
	check(status, what);
}

/* A message of len bytes, all of them the same. */
static struct rte_mbuf *
make(uint8_t byte, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool), *s = m;

	for (;;) {
		uint16_t part = (uint16_t)RTE_MIN(len, SEG_LEN);

		if (s == NULL || (s != m && rte_pktmbuf_chain(m, s) != 0))
			rte_exit(EXIT_FAILURE, "no mbufs\n");
		memset(rte_pktmbuf_append(m, part), byte, part);
		len -= part;
		if (len == 0)
			return m;
		s = rte_pktmbuf_alloc(pool);
	}
}

static void
send_mbuf(ucp_ep_h ep, struct slot *s)
{
	ucp_request_param_t iov = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = UCP_DATATYPE_IOV};
	ucp_request_param_t one = {.op_attr_mask = 0};

	if (rte_pktmbuf_is_contiguous(s->m))
		s->req = ucp_tag_send_nbx(ep, rte_pktmbuf_mtod(s->m, void *), s->m->data_len, 1, &one);
	else
		s->req = ucp_tag_send_nbx(ep, s->iov, (size_t)plx_mbuf_iov(s->m, s->iov, N_SEGS), 1, &iov);
}

/* The request is over, and the mbuf is free again. */
static void
finish(struct slot *s)
{
	if (s->m == NULL)
		return;
	wait_for(s->req, "ucp_tag_send_nbx");
	rte_pktmbuf_free(s->m);
	s->m = NULL;
}

static void
run(ucp_ep_h ep, uint32_t n, uint32_t len)
{
	struct slot slots[N_FLIGHT] = {{.m = NULL}};

	for (uint32_t i = 0; i < n; i++) {
		struct slot *s = &slots[i % N_FLIGHT];

		finish(s);
		s->m = make((uint8_t)(1 + i % 255), len);
		send_mbuf(ep, s);
	}
	for (unsigned i = 0; i < N_FLIGHT; i++)
		finish(&slots[i]);
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_ep_params_t ep_params = {
		.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
			UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
		.sockaddr = {(struct sockaddr *)&addr, sizeof(addr)},
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler.cb = on_error,
	};
	ucp_request_param_t flush = {.op_attr_mask = 0};
	int used = rte_eal_init(argc, argv); /* before anything of the library */
	ucp_context_h context;
	uint32_t n, len;
	ucp_ep_h ep;

	if (used < 0)
		rte_exit(EXIT_FAILURE, "the EAL does not start, see above; --in-memory or --no-huge may help\n");
	len = argc - used == 4 ? (uint32_t)atoi(argv[used + 2]) : 0;
	n = len > 0 ? (uint32_t)atoi(argv[used + 3]) : 0;
	if (n == 0 || len > LEN_MAX)
		rte_exit(EXIT_FAILURE, "usage: dpdk_source [EAL options] -- PORT BYTES MESSAGES\n");
	addr.sin_port = htons((uint16_t)atoi(argv[used + 1]));
	pool = rte_pktmbuf_pool_create("source", 2 * N_FLIGHT * N_SEGS, 0, 0, UINT16_MAX,
		(int)rte_socket_id());
	if (pool == NULL)
		rte_exit(EXIT_FAILURE, "no pool: %s\n", rte_strerror(rte_errno));
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	check(ucp_ep_create(worker, &ep_params, &ep), "ucp_ep_create");
	run(ep, n, len);
	printf("sent %u messages of %u bytes from lcore %u\n", n, len, rte_lcore_id());
	wait_for(ucp_ep_close_nbx(ep, &flush), "ucp_ep_close_nbx");
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	printf("mbufs in use: %u\n", rte_mempool_in_use_count(pool));
	return rte_eal_cleanup() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
