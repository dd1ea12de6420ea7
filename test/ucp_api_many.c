/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_many.c - a hundred thousand operations end in a time that grows with their number only
 *
 * Design notes
 * A search through what is outstanding for each that ends would take half a minute and more here;
 * LIMIT_S is far from that and from what is measured (below a second).
 */
#include "ucp_api_test.h"

#define N	 100000
#define LEN_LONG (128 * KIB) /* announced by all devices */
#define LIMIT_S	 15

static struct op ops[N];
static uint8_t out[LEN_LONG], in[LEN_LONG];

static uint64_t begun;

static void
watch_start(void)
{
	begun = util_now_ns();
}

static void
watch_stop(void)
{
	double s = (double)(util_now_ns() - begun) * 1e-9;

	if (s > LIMIT_S)
		printf("(%.1f s) ", s);
	CU_ASSERT(s <= LIMIT_S);
}

static unsigned
n_done(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += util_done(&ops[i]);
	return n;
}

/* Ask rarely: to look at all of them in each turn would be what takes the time. */
static bool
all_done(struct pair *p)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * UINT64_C(1000000000);
	unsigned first = 0;

	while (util_now_ns() < end) {
		while (first < N && util_done(&ops[first]))
			first++;
		if (first == N)
			return true;
		for (unsigned k = 0; k < 100; k++)
			util_pair_turn(p);
	}
	return false;
}

static void
all_free(ucs_status_t status)
{
	unsigned other = 0;

	for (unsigned i = 0; i < N; i++) {
		other += ops[i].status != status;
		util_free(&ops[i]);
	}
	CU_ASSERT_EQUAL(other, 0);
}

static void
send_all(ucp_ep_h ep, size_t len)
{
	for (unsigned i = 0; i < N; i++)
		util_send(&ops[i], ep, out, len, i, UTIL_NO_IMM);
}

static void
turns(struct pair *p, unsigned n)
{
	while (n-- > 0)
		util_pair_turn(p);
}

static void
many_announced_sends_are_cancelled(void)
{
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ep = util_ep_with_handler(p.n[0].w, p.n[1].addr, NULL, NULL);
	send_all(ep, LEN_LONG);
	turns(&p, 500); /* some have arrived, the rest waits behind a full ring */
	watch_start();
	CU_ASSERT(util_ep_close(&p, ep, UCP_EP_CLOSE_FLAG_FORCE));
	CU_ASSERT_FATAL(all_done(&p));
	watch_stop();
	all_free(UCS_ERR_CANCELED);
	util_pair_close(&p);
}

static void
many_announced_sends_are_cancelled_after_all_have_arrived(void)
{
	ucp_tag_recv_info_t info;
	struct op recv;
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ep = util_ep_with_handler(p.n[0].w, p.n[1].addr, NULL, NULL);
	send_all(ep, LEN_LONG);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p,
		ucp_tag_probe_nb(p.n[1].w, N - 1, UTIL_ALL_BITS, 0, &info) != NULL));
	watch_start();
	CU_ASSERT(util_ep_close(&p, ep, UCP_EP_CLOSE_FLAG_FORCE));
	CU_ASSERT_FATAL(all_done(&p));
	all_free(UCS_ERR_CANCELED);
	for (unsigned i = 0; i < N; i++) {
		util_recv(&recv, p.n[1].w, in, sizeof(in), N - 1 - i, UTIL_ALL_BITS, UTIL_NO_IMM);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		CU_ASSERT_EQUAL_FATAL(recv.status, UCS_ERR_CONNECTION_RESET);
		util_free(&recv);
	}
	watch_stop();
	util_pair_close(&p);
}

/* Receives that match them, one by one, while the sender has its hands full with what is left. */
static void
many_sends_of_another_handle_do_not_hold_up_a_close(void)
{
	struct op recv;
	struct pair p;
	ucp_ep_h ep;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	ep = util_ep(p.n[0].w, p.n[1].addr);
	send_all(p.n[0].ep, LEN_LONG);
	turns(&p, 500);
	watch_start();
	CU_ASSERT(util_ep_close(&p, ep, 0)); /* nothing was sent on it */
	for (unsigned i = 0; i < N; i++) {
		util_recv(&recv, p.n[1].w, in, 8, i, UTIL_ALL_BITS, UTIL_NO_IMM);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
	}
	CU_ASSERT_FATAL(all_done(&p));
	watch_stop();
	all_free(UCS_OK);
	util_pair_close(&p);
}

static void
many_flushes_end(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.send = util_sent};
	struct op recv, send;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	memset(ops, 0, sizeof(ops));
	for (unsigned i = 0; i < N; i++) { /* each behind a message of its own */
		param.user_data = &ops[i];
		util_send(&send, p.n[0].ep, out, 2000, 1, UTIL_NO_IMM);
		util_free(&send); /* no callback: its op is reused */
		ops[i].req = i % 2 == 0 ? ucp_ep_flush_nbx(p.n[0].ep, &param)
					: ucp_worker_flush_nbx(p.n[0].w, &param);
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(ops[i].req));
	}
	watch_start();
	for (unsigned i = 0; i < N; i++) {
		util_recv(&recv, p.n[1].w, in, 2000, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
	}
	CU_ASSERT_FATAL(all_done(&p));
	watch_stop();
	all_free(UCS_OK);
	util_pair_close(&p);
}

static void
many_operations_fail_with_their_peer(void)
{
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	ucp_ep_destroy(p.n[0].ep);
	p.n[0].ep = util_ep_with_handler(p.n[0].w, p.n[1].addr, NULL, NULL);
	exchange(&p, 0, 8, 1, true, UTIL_NBX);
	send_all(p.n[0].ep, LEN_LONG);
	turns(&p, 200);
	watch_start();
	ucp_worker_release_address(p.n[1].w, p.n[1].addr);
	ucp_worker_destroy(p.n[1].w);
	p.n[1].w = util_worker(p.n[1].ctx, UCS_THREAD_MODE_SINGLE); /* so that the pair is one again */
	p.n[1].ep = NULL;
	UTIL_OK(ucp_worker_get_address(p.n[1].w, &p.n[1].addr, &p.n[1].addr_len));
	CU_ASSERT_FATAL(all_done(&p));
	watch_stop();
	all_free(UCS_ERR_CONNECTION_RESET);
	util_pair_close(&p);
}

static void
many_receives_are_cancelled(void)
{
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (unsigned i = 0; i < N; i++)
		util_recv(&ops[i], p.n[1].w, in, 8, i % 3 == 0 ? 7 : i, i % 2 == 0 ? UTIL_ALL_BITS : 0xff,
			UTIL_NO_IMM);
	watch_start();
	for (unsigned i = 0; i < N; i++) /* from the middle outwards */
		ucp_request_cancel(p.n[1].w, ops[i % 2 == 0 ? (N + i) / 2 : (N - i) / 2].req);
	CU_ASSERT_FATAL(all_done(&p));
	CU_ASSERT_EQUAL(n_done(), N);
	watch_stop();
	all_free(UCS_ERR_CANCELED);
	util_pair_close(&p);
}

#define NOT_UCX "no forced close over its shared memory"

const struct api_test api_many_tests[] = {
	T_NOT_UCX(many_announced_sends_are_cancelled, NOT_UCX),
	T_NOT_UCX(many_announced_sends_are_cancelled_after_all_have_arrived, NOT_UCX),
	T_NOT_UCX(many_sends_of_another_handle_do_not_hold_up_a_close, "its flush waits for its lanes"),
	T_NOT_UCX(many_flushes_end, "a flush of each lane"),
	T_NOT_UCX(many_operations_fail_with_their_peer, NOT_UCX),
	T_NOT_UCX(many_receives_are_cancelled, "goes through what is posted"),
	{NULL, NULL, NULL, NULL},
};
