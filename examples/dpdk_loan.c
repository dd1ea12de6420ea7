/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dpdk_loan.c - a DPDK program reads long messages where they lie in the memory of another one
 *
 * usage: dpdk_loan [EAL options] -- PORT                    receives; start it first
 *        dpdk_loan [EAL options] -- PORT BYTES MESSAGES     sends, up to 4 MiB each
 *
 * The sender sends from its EAL's heap. The receiver borrows every other message as a chain of mbufs
 * (plx_mbuf.h), and the others as pointers and lengths (plx_loan.h). No byte is copied, and each send
 * completes when the receiver gives the loan back. What can't be borrowed is kept or copied: short
 * messages, and perhaps the first one.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <plx_mbuf.h>

enum { AS_MBUFS = 1, AS_IOV = 2 }; /* ids of the handlers */

#define LEN_MAX (4u << 20)
#define N_MBUFS 255u /* of 64 KiB: three of the longest messages, copied */

static ucp_worker_h worker;
static ucp_ep_h ep;
static int peer_gone;
static unsigned n_mbufs, n_iov, n_others, n_wrong;

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

/* The byte that message i consists of. */
static uint8_t
byte_of(unsigned i)
{
	return (uint8_t)(1 + i % 255);
}

/* @return whether the next message has other bytes here than it should */
static int
is_wrong(const void *at, size_t len)
{
	uint8_t want = byte_of(n_mbufs + n_iov + n_others);

	for (size_t i = 0; i < len; i++)
		if (((const uint8_t *)at)[i] != want)
			return 1;
	return 0;
}

/* A message as a chain: borrowed, kept or copied. Freeing its last mbuf returns a loan. */
static void
on_chain(struct plx_mbuf_receiver *r, struct rte_mbuf *m, ucs_status_t status, enum plx_mbuf_how how)
{
	int wrong = 0;

	(void)r;
	check(status, "a message");
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		wrong |= is_wrong(rte_pktmbuf_mtod(s, void *), s->data_len);
	n_wrong += wrong || plx_mbuf_check(m) != UCS_OK; /* after reading: the sender may have withdrawn it */
	*(how == PLX_MBUF_LOANED ? &n_mbufs : &n_others) += 1;
	rte_pktmbuf_free(m);
}

static ucs_status_t
on_message(void *arg, const void *header, size_t header_len, void *data, size_t len, const ucp_am_recv_param_t *param)
{
	(void)header, (void)header_len;
	return plx_mbuf_recv_am(arg, data, len, param);
}

/* The same without mbufs. */
static ucs_status_t
on_loan(void *arg, const void *header, size_t header_len, void *data, size_t len, const ucp_am_recv_param_t *param)
{
	ucp_dt_iov_t iov[PLX_LOAN_MAX_IOV];
	plx_loan_h loan;
	int wrong = 0;
	size_t n;

	(void)header, (void)header_len;
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) || plx_loan_take(worker, data, &loan) != UCS_OK)
		return plx_mbuf_recv_am(arg, data, len, param);
	n = plx_loan_iov(loan, iov, PLX_LOAN_MAX_IOV);
	for (size_t i = 0; i < n; i++)
		wrong |= is_wrong(iov[i].buffer, iov[i].length);
	n_wrong += wrong || plx_loan_check(loan) != UCS_OK;
	n_iov++;
	plx_loan_return(loan);
	return UCS_INPROGRESS; /* the message was taken */
}

static void
on_request(ucp_conn_request_h request, void *arg)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_handler.cb = on_error, .conn_request = request,
	};

	(void)arg;
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
}

static void
set_handler(unsigned id, ucp_am_recv_callback_t cb, struct plx_mbuf_receiver *r)
{
	ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
		.id = id, .cb = cb, .arg = r, .flags = UCP_AM_FLAG_PERSISTENT_DATA};

	check(ucp_worker_set_am_recv_handler(worker, &param), "ucp_worker_set_am_recv_handler");
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

static void
receiver(const struct sockaddr_in *addr)
{
	struct plx_mbuf_receiver r = {.worker = worker, .done = on_chain,
		.pool = rte_pktmbuf_pool_create("mbufs", N_MBUFS, 0, 0, UINT16_MAX, (int)rte_socket_id()),
		.kept = plx_mbuf_kept_pool("kept", N_MBUFS)};
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	ucp_listener_params_t params = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(const struct sockaddr *)addr, sizeof(*addr)}, .conn_handler = {on_request, NULL}};
	ucp_listener_h listener;

	if (r.pool == NULL || r.kept == NULL)
		rte_exit(EXIT_FAILURE, "no pools: %s\n", rte_strerror(rte_errno));
	set_handler(AS_MBUFS, on_message, &r);
	set_handler(AS_IOV, on_loan, &r);
	check(ucp_listener_create(worker, &params, &listener), "ucp_listener_create");
	while (!peer_gone)
		ucp_worker_progress(worker);
	printf("%u messages, %u wrong: %u borrowed as mbufs, %u in place, %u kept or copied\n", n_mbufs + n_iov + n_others,
		n_wrong, n_mbufs, n_iov, n_others);
	printf("mbufs in use: %u\n", rte_mempool_in_use_count(r.pool));
	wait_for(ucp_ep_close_nbx(ep, &force), "ucp_ep_close_nbx");
	ucp_listener_destroy(listener);
}

static void
sender(const struct sockaddr_in *addr, size_t len, unsigned n)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER, .err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.sockaddr = {(const struct sockaddr *)addr, sizeof(*addr)}};
	ucp_request_param_t param = {.op_attr_mask = 0};
	uint8_t *buf = rte_malloc(NULL, len, 0); /* of the EAL's heap: the receiver can map it */

	if (buf == NULL)
		rte_exit(EXIT_FAILURE, "no memory\n");
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
	for (unsigned i = 0; i < n; i++) {
		memset(buf, byte_of(i), len);
		wait_for(ucp_am_send_nbx(ep, i % 2 == 0 ? AS_MBUFS : AS_IOV, NULL, 0, buf, len, &param), "ucp_am_send_nbx");
	}
	wait_for(ucp_ep_close_nbx(ep, &param), "ucp_ep_close_nbx");
	rte_free(buf);
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	int used = rte_eal_init(argc, argv), n = argc - used; /* before anything of the library */
	ucp_context_h context;
	long len = used >= 0 && n == 4 ? atol(argv[used + 2]) : 1;

	if (used < 0)
		rte_exit(EXIT_FAILURE, "the EAL does not start, see above; --in-memory or --no-huge may help\n");
	if ((n != 2 && n != 4) || len < 1 || len > LEN_MAX)
		rte_exit(EXIT_FAILURE, "usage: dpdk_loan [EAL options] -- PORT [BYTES MESSAGES]\n");
	addr.sin_port = htons((uint16_t)atoi(argv[used + 1]));
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
	if (n == 4)
		sender(&addr, (size_t)len, (unsigned)atoi(argv[used + 3]));
	else
		receiver(&addr);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return rte_eal_cleanup() == 0 && n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
