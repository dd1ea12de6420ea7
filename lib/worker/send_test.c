/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * send_test.c - a send connects once, and goes the way that was chosen
 */
#include <errno.h>

#include "plx_unit.h"
#include "plx_unit_worker.h"
#include "worker_int.h"

#define LEN 200000

static struct unit_workers u;
static uint8_t from[LEN], to[LEN];
static unsigned n_connects; /* of the sender's ep */

int __real_plx_ep_connect_slow(struct plx_ep *ep);
int __wrap_plx_ep_connect_slow(struct plx_ep *ep);

int
__wrap_plx_ep_connect_slow(struct plx_ep *ep)
{
	n_connects += ep == u.to[0][1].ep;
	return __real_plx_ep_connect_slow(ep);
}

static struct plx_ep *
begin(void)
{
	fake_reset(31);
	unit_workers_conf(&u);
	unit_fill(from, LEN, 6);
	unit_workers_open(&u, 2);
	n_connects = 0;
	return u.to[0][1].ep;
}

static struct plx_req *
request(void)
{
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	return req;
}

/* As a face does. */
static void
tag_send(uint64_t len)
{
	struct plx_req *recv = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT), *send;
	int how = plx_worker_tag_try(u.w[0], u.to[0][1].ep, from, len, 1);

	UNIT_TRUE_FATAL(how >= 0);
	if (how > 0) {
		send = request();
		plx_worker_tag_send(u.w[0], &u.to[0][1], from, len, 1, (enum plx_send_how)how, send);
		UNIT_END(&u, send, 0);
	}
	UNIT_TRUE_FATAL(unit_finish(&u, recv));
	UNIT_EQ(recv->recv.info_len, len);
	UNIT_SAME(to, from, len);
	UNIT_END(&u, recv, 0);
}

static void
a_tagged_send_connects_once_whatever_its_protocol(void)
{
	const uint64_t lens[] = {8, 1000, 5000, LEN};

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		begin();
		tag_send(lens[i]);
		UNIT_EQ(n_connects, 1);
		tag_send(lens[i]);
		UNIT_EQ(n_connects, 1);
		unit_workers_close(&u);
	}
}

static void
a_synchronous_send_connects_once(void)
{
	const uint64_t lens[] = {8, LEN};
	struct plx_req *recv, *send;

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		begin();
		recv = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT);
		send = unit_send(&u, 0, 1, from, lens[i], 1, true);
		UNIT_END(&u, send, 0);
		UNIT_END(&u, recv, 0);
		UNIT_EQ(n_connects, 1);
		unit_workers_close(&u);
	}
}

/* What would be chosen now is another one. */
static void
a_tagged_send_is_not_chosen_again(void)
{
	struct plx_req *recv, *send;
	struct plx_ep *ep = begin();

	recv = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT);
	UNIT_EQ_FATAL(plx_worker_tag_try(u.w[0], ep, from, LEN, 1), PLX_SEND_RNDV);
	ep->eager_end = u.w[0]->eps.eager_end = UINT64_MAX;
	send = request();
	plx_worker_tag_send(u.w[0], &u.to[0][1], from, LEN, 1, PLX_SEND_RNDV, send);
	UNIT_EQ(u.w[0]->rndv.stat.sends, 1);
	UNIT_END(&u, send, 0);
	UNIT_END(&u, recv, 0);
	recv = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 1, false); /* this one is, and goes in pieces */
	UNIT_EQ(u.w[0]->rndv.stat.sends, 1);
	UNIT_END(&u, send, 0);
	UNIT_END(&u, recv, 0);
	unit_workers_close(&u);
}

static int
deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx)
{
	(void)am, (void)h, (void)rx;
	return 0;
}

static void
never_called(void)
{
}

static void
active_messages_connect_once_and_are_not_chosen_again(void)
{
	const struct plx_am_handler h = {.cb = never_called};
	const uint64_t lens[] = {8, 5000, LEN};
	struct plx_req *send;
	struct plx_ep *ep;
	int how;

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		ep = begin();
		u.w[1]->am.deliver = deliver;
		UNIT_EQ_FATAL(plx_am_set(&u.w[1]->am, 0, &h), 0);
		how = plx_worker_am_try(u.w[0], ep, (struct plx_wire_am){.id = 0}, NULL, from, lens[i], 0);
		UNIT_EQ(how, i == 0 ? 0 : i == 1 ? PLX_AM_FRAGS : PLX_AM_RTS);
		ep->eager_own = i == 1 ? 0 : UINT64_MAX;
		if (how > 0) {
			send = request();
			plx_worker_am_send(u.w[0], &u.to[0][1], (struct plx_wire_am){.id = 0}, NULL, from, lens[i],
				(uint32_t)how, send);
			UNIT_EQ(u.w[0]->rndv.stat.sends, i == 2);
			UNIT_END(&u, send, 0);
		}
		UNIT_EQ(n_connects, 1);
		unit_turns(&u, 10);
		unit_workers_close(&u);
	}
}

/* A message that the settings allow may take any number of pieces. */
static void
what_a_device_has_sent_eagerly_goes_in_few_pieces(void)
{
	const uint64_t most = PLX_EP_PIECES_MAX * (uint64_t)begin()->peer->mtu;
	const struct plx_wire_am am = {.id = 0}, short_head = {.id = 0, .hdr_len = 1};
	struct plx_ep *ep = u.to[0][1].ep;
	struct plx_seg seg;

	tag_send(8); /* connects */
	ep->eager_end = ep->eager_own = UINT64_MAX;
	u.w[0]->eps.eager_end = 201;
	UNIT_TRUE_FATAL(most < LEN);
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most, 1), PLX_SEND_FRAGS);
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most + 1, 1), PLX_SEND_RNDV);
	UNIT_EQ(plx_worker_am_try(u.w[0], ep, am, NULL, from, most / 2, 0), PLX_AM_FRAGS);
	UNIT_EQ(plx_worker_am_try(u.w[0], ep, am, NULL, from, most + 1, 0), PLX_AM_RTS);
	UNIT_EQ(plx_worker_am_try(u.w[0], ep, am, NULL, from, most + 1, PLX_AM_EAGER) & PLX_AM_CHOSEN, PLX_AM_FRAGS);
	ep->peer->caps |= PLX_DEV_SHARED;
	UNIT_EQ_FATAL(plx_seg_create(&seg, NULL, 4096, false), 0);
	UNIT_TRUE(plx_window_add(&seg, 7) != 0); /* where a peer may find the buffer */
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most, 1), PLX_SEND_RNDV);
	UNIT_EQ(plx_worker_am_try(u.w[0], ep, am, NULL, from, most / 2, 0), PLX_AM_RTS);
	UNIT_TRUE(plx_worker_am_try(u.w[0], ep, short_head, from, from, 199, 0) != PLX_AM_RTS); /* padding does not count */
	ep->peer->caps &= ~PLX_DEV_SHARED;
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most, 1), PLX_SEND_FRAGS);
	plx_window_remove(&seg);
	plx_seg_destroy(&seg);
	ep->peer->caps |= PLX_DEV_SHARED;
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most, 1), PLX_SEND_FRAGS);
	u.w[0]->eps.eager_end = most + 2;
	UNIT_EQ(plx_worker_tag_try(u.w[0], ep, from, most + 1, 1), PLX_SEND_FRAGS);
	unit_workers_close(&u);
}

static void
a_send_of_a_stream_connects_once(void)
{
	const uint64_t lens[] = {8, 5000, LEN};
	struct plx_req *recv, *send;

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		begin();
		recv = plx_req_get(&u.w[1]->reqs);
		UNIT_TRUE_FATAL(recv != NULL);
		plx_worker_stream_recv(u.w[1], &u.to[1][0], to, lens[i], 1, true, recv);
		if (plx_worker_stream_send_now(u.w[0], &u.to[0][1], from, lens[i]) != 0) {
			send = request();
			plx_worker_stream_send(u.w[0], &u.to[0][1], from, lens[i], send);
			UNIT_END(&u, send, 0);
		}
		UNIT_END(&u, recv, 0);
		UNIT_SAME(to, from, lens[i]);
		UNIT_EQ(n_connects, 1);
		unit_workers_close(&u);
	}
}

/* Each switch over what a peer says counts what it does not know. */
static void
what_a_switch_does_not_know_is_counted(void)
{
	struct plx_rx rx = {.op = PLX_WIRE_GRANT, .data = from, .len = 64};
	struct plx_worker *w;
	struct plx_req *recv;

	begin();
	w = u.w[1];
	rx.src = u.to[1][0].ep->peer;
	worker_rx_rma(w, &rx);
	UNIT_EQ(w->stat.rx_drop_bad_op, 1);
	recv = plx_req_get(&w->reqs);
	UNIT_TRUE_FATAL(recv != NULL);
	worker_finish_recv(w, recv, &rx);
	UNIT_EQ(w->stat.rx_drop_bad_op, 2);
	UNIT_END(&u, recv, -EIO);
	unit_workers_close(&u);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_tagged_send_connects_once_whatever_its_protocol),
	UNIT_TEST(a_synchronous_send_connects_once),
	UNIT_TEST(a_tagged_send_is_not_chosen_again),
	UNIT_TEST(active_messages_connect_once_and_are_not_chosen_again),
	UNIT_TEST(what_a_device_has_sent_eagerly_goes_in_few_pieces),
	UNIT_TEST(a_send_of_a_stream_connects_once),
	UNIT_TEST(what_a_switch_does_not_know_is_counted),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"send", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
