/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * worker_test.c - workers on the fake device: order, matching, cancel, probe, flush, death
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_log.h>
#include <rte_ring.h>

#include "plx_unit.h"
#include "plx_unit_worker.h"
#include "worker_int.h"

#define LEN 200000

static struct unit_workers u;
static uint8_t from[LEN], to[LEN + 64];

static void
begin(void)
{
	fake_reset(21);
	unit_workers_conf(&u);
	unit_fill(from, LEN, 6);
	memset(to, 0xcc, sizeof(to));
}

/* -- order -- */

static void
order_is_that_of_the_sends_whatever_the_protocol(void)
{
	enum { N = 600 };
	const uint64_t lens[] = {0, 8, 112, 113, 1016, 1017, 5000, 32768, 32769, 70000};
	static uint8_t in[N][70000];
	static struct plx_req *send[N], *recv[N];

	for (unsigned late = 0; late < 2; late++) {
		begin();
		fake.full_percent = 20;
		fake.delay_max = 4;
		fake.depth = 20;
		fake.again_percent = 0;
		unit_workers_open(&u, 2);
		for (unsigned i = 0; i < N && !late; i++)
			recv[i] = unit_recv(&u, 1, in[i], sizeof(in[i]), 0, 0);
		for (unsigned i = 0; i < N; i++) {
			send[i] = unit_send(&u, 0, 1, from + i, lens[fake_rng() % 10], i, i % 7 == 0);
			if (i % 50 == 0)
				unit_turns(&u, 1);
		}
		if (late)
			unit_turns(&u, 2000); /* all unexpected */
		for (unsigned i = 0; i < N && late; i++)
			recv[i] = unit_recv(&u, 1, in[i], sizeof(in[i]), 0, 0);
		for (unsigned i = 0; i < N; i++) {
			UNIT_TRUE_FATAL(unit_finish(&u, recv[i]));
			UNIT_EQ_FATAL(recv[i]->recv.info_tag, i);
			UNIT_EQ(recv[i]->recv.info_len, send[i]->len);
			UNIT_SAME(in[i], from + i, send[i]->len);
			UNIT_END(&u, send[i], 0);
			UNIT_END(&u, recv[i], 0);
		}
		unit_workers_close(&u);
	}
}

static void
a_short_send_that_finds_nothing_in_its_way_is_done_at_once(void)
{
	struct plx_req *recv;

	begin();
	unit_workers_open(&u, 2);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 1000, 1), 0);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 1017, 1), -EAGAIN);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, LEN, 1), -EAGAIN);
	fake_block(unit_queue(&u, 0), true);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), -EAGAIN);
	fake_block(unit_queue(&u, 0), false);
	for (unsigned i = 0; i < 2; i++) {
		recv = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT);
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		UNIT_EQ(recv->recv.info_len, i == 0 ? 8 : 1000);
		UNIT_END(&u, recv, 0);
	}
	unit_workers_close(&u);
}

/* -- what a peer may make the other keep -- */

#define MANY (PLX_EP_MAX_ANNOUNCED + 300)

static unsigned passed;

static void
pass(void *arg)
{
	(void)arg;
	passed++;
}

/* More of them than a receiver need keep wait at the sender, which nothing else does. */
static void
beyond_a_bound_tagged_messages_wait_unannounced_and_in_order(void)
{
	static struct plx_req *send[MANY];
	struct plx_req *recv, *flush;
	struct plx_ep *ep;

	begin();
	unit_workers_open(&u, 2);
	ep = u.to[0][1].ep;
	for (unsigned i = 0; i < MANY; i++)
		send[i] = unit_send(&u, 0, 1, from, 8, i, i % 2 == 0); /* that are synchronous, or */
	unit_turns(&u, 100);
	UNIT_EQ(u.w[0]->eps.stat.tx_held, 0); /* are eager */
	for (unsigned i = 0; i < MANY; i++) {
		recv = unit_recv(&u, 1, to, LEN, 0, 0);
		UNIT_END(&u, recv, 0);
		UNIT_END(&u, send[i], 0);
	}
	for (unsigned i = 0; i < MANY; i++)
		send[i] = unit_send(&u, 0, 1, from, 8, i, true);
	flush = plx_req_get(&u.w[0]->reqs);
	plx_worker_flush(u.w[0], PLX_FLUSH_EP, &u.to[0][1], flush);
	passed = 0;
	UNIT_EQ(plx_ep_mark(ep, pass, NULL), 0);
	unit_turns(&u, 5000);
	UNIT_EQ(ep->n_announced, PLX_EP_MAX_ANNOUNCED);
	UNIT_EQ(u.w[0]->eps.stat.tx_held, 300);
	UNIT_EQ(u.w[1]->eps.stat.refused, 0);
	UNIT_TRUE(!plx_req_is_done(flush) && passed == 0);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], ep, from, 8, MANY), -EAGAIN); /* behind them */
	UNIT_TRUE(TAILQ_EMPTY(&ep->pending)); /* nothing else waits */
	for (unsigned i = 0; i < MANY; i++) {
		recv = unit_recv(&u, 1, to, LEN, 0, 0);
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		UNIT_EQ_FATAL(recv->recv.info_tag, i);
		plx_req_put(recv);
		UNIT_END(&u, send[i], 0);
	}
	UNIT_END(&u, flush, 0);
	UNIT_EQ(passed, 1);
	UNIT_EQ(ep->n_announced, 0);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], ep, from, 8, 1), 0);
	UNIT_END(&u, unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT), 0);
	unit_workers_close(&u);
}

static void
what_is_held_can_be_cancelled_with_its_handle(void)
{
	static struct plx_req *send[MANY];

	begin();
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < MANY; i++)
		send[i] = unit_send(&u, 0, 1, from, 8, i, true);
	plx_ep_cancel(u.to[0][1].ep, u.to[0][1].conn_id, -ECANCELED);
	UNIT_EQ(u.to[0][1].ep->n_announced, 0);
	for (unsigned i = 0; i < MANY; i++)
		UNIT_END(&u, send[i], -ECANCELED);
	unit_turns(&u, 3000);
	for (unsigned i = 0; i < PLX_EP_MAX_ANNOUNCED; i++) /* that were announced */
		UNIT_END(&u, unit_recv(&u, 1, to, LEN, 0, 0), 0);
	unit_workers_close(&u);
}

/* Told to announce, a sender does so with what waits in its queue, too, and without losing its order. */
static void
what_waits_to_go_unasked_is_announced_when_the_peer_says_so(void)
{
	const uint64_t lens[] = {8, 0, 1000, 5000, 70000, 8};
	struct plx_req *send[RTE_DIM(lens)], *recv;
	struct plx_ep *ep;

	begin();
	unit_workers_open(&u, 2);
	ep = u.to[0][1].ep;
	UNIT_EQ(plx_ep_connect(ep), 0);
	fake_block(unit_queue(&u, 0), true);
	for (unsigned i = 0; i < RTE_DIM(lens); i++)
		send[i] = unit_send(&u, 0, 1, from, lens[i], i, false);
	plx_ep_on_flow(ep, &(struct plx_wire_flow){.stop = PLX_WIRE_FLOW_ANNOUNCE});
	fake_block(unit_queue(&u, 0), false);
	unit_turns(&u, 100);
	UNIT_EQ(ep->n_announced, RTE_DIM(lens));
	UNIT_EQ(u.w[1]->stat.eager_bytes_kept, 0);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		recv = unit_recv(&u, 1, to, LEN, 0, 0);
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		UNIT_EQ(recv->recv.info_tag, i);
		UNIT_EQ(recv->recv.info_len, lens[i]);
		UNIT_SAME(to, from, lens[i]);
		plx_req_put(recv);
		UNIT_END(&u, send[i], 0);
	}
	plx_ep_on_flow(ep, &(struct plx_wire_flow){.stop = PLX_WIRE_FLOW_GO});
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], ep, from, 8, 1), 0);
	UNIT_END(&u, unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT), 0);
	unit_workers_close(&u);
}

/* A peer that ignores the refusal had as much of our memory as it liked. */
static void
who_goes_on_sending_when_told_to_stop_is_refused(void)
{
	uint64_t most;
	struct plx_ep *ep;
	unsigned n = 0;

	begin();
	unit_workers_set(&u, "tag.unexpected_max", "0");
	unit_workers_open(&u, 2);
	ep = u.to[0][1].ep;
	most = PLX_EP_KEPT_MORE;
	for (; n < 500000 && u.w[1]->eps.stat.refused == 0; n++) {
		ep->eager_end = LEN; /* it has not heard */
		UNIT_TRUE_FATAL(plx_worker_tag_send_now(u.w[0], ep, from, 1000, 1) == 0);
		plx_worker_turn(u.w[1]);
	}
	UNIT_EQ(u.w[1]->eps.stat.refused, 1);
	UNIT_EQ(u.w[1]->stat.rx_drop_refused, 1);
	UNIT_TRUE(u.w[1]->msgs.bytes <= most && u.w[1]->msgs.bytes > most / 2);
	unit_turns(&u, 10);
	UNIT_EQ(u.w[0]->eps.stat.refused_by_peer, 1); /* it learns of it */
	UNIT_EQ(ep->err, -ECONNRESET);
	for (unsigned i = 1; i < n; i++)
		UNIT_END(&u, unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT), 0);
	UNIT_EQ(u.w[1]->msgs.bytes, 0);
	unit_workers_close(&u);
}

/* Each stream and each handle that a peer names took memory, and lists that are searched. */
static void
a_peer_names_so_many_streams_and_no_more(void)
{
	struct plx_ep *ep;

	begin();
	unit_workers_open(&u, 2);
	ep = u.to[1][0].ep;
	for (uint32_t i = 0; i < PLX_EP_MAX_UNMET; i++)
		plx_stream_on_data(&u.w[1]->streams, ep->peer, 1000 + i, from, 8);
	UNIT_EQ(u.w[1]->eps.stat.refused, 0);
	UNIT_EQ(plx_stream_ep(ep)->n_unmet, PLX_EP_MAX_UNMET);
	plx_stream_on_data(&u.w[1]->streams, ep->peer, 1000, from, 8); /* of a known one */
	UNIT_EQ(u.w[1]->eps.stat.refused, 0);
	plx_stream_on_data(&u.w[1]->streams, ep->peer, 999, from, 8);
	UNIT_EQ(u.w[1]->eps.stat.refused, 1);
	UNIT_EQ(u.w[1]->streams.stat.rx_drop_refused, 1);
	unit_turns(&u, 3);
	UNIT_EQ(ep->err, -ECONNRESET);
	UNIT_EQ(plx_stream_ep(ep)->n_unmet, 0); /* all went with it */
	unit_workers_close(&u);
}

static void
a_peer_wants_answers_to_so_many_handles_and_no_more(void)
{
	static struct plx_ep_user users[PLX_EP_MAX_UNMET + 1];
	struct plx_ep *ep;

	begin();
	unit_workers_open(&u, 2);
	ep = u.to[1][0].ep;
	memset(users, 0, sizeof(users));
	for (uint32_t i = 0; i < PLX_EP_MAX_UNMET; i++)
		UNIT_EQ_FATAL(plx_worker_ep_answer(u.w[1], ep, 1000 + i, &users[i]), 0);
	plx_worker_ep_put(u.w[1], &users[0]); /* one that is closed makes room */
	UNIT_EQ_FATAL(plx_worker_ep_answer(u.w[1], ep, 999, &users[0]), 0);
	UNIT_EQ(u.w[1]->eps.stat.refused, 0);
	UNIT_EQ(plx_worker_ep_answer(u.w[1], ep, 998, &users[PLX_EP_MAX_UNMET]), -ECANCELED);
	UNIT_EQ(u.w[1]->eps.stat.refused, 1);
	for (uint32_t i = 0; i < PLX_EP_MAX_UNMET; i++)
		plx_worker_ep_put(u.w[1], &users[i]);
	unit_turns(&u, 3);
	unit_workers_close(&u);
}

static unsigned n_delivered;

static int
deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx)
{
	(void)am;
	(void)h;
	(void)rx;
	n_delivered++;
	return 0;
}

static void
never_called(void)
{
}

/* An application that has a reactor and does not listen had as many messages in its list as came. */
static void
active_messages_that_nobody_takes_stay_in_the_device_at_last(void)
{
	const struct plx_am_handler h = {.cb = never_called};
	struct plx_worker *w;
	unsigned n = 0;

	begin();
	fake.depth = 20;
	unit_workers_set(&u, "tag.unexpected_max", "64k");
	unit_workers_open(&u, 2);
	w = u.w[1];
	UNIT_EQ_FATAL(plx_mem_ring(PLX_AM_RING_LEN, &w->am.ring), 0); /* as with a reactor */
	UNIT_EQ_FATAL(plx_am_set(&w->am, 0, &h), 0);
	w->am.deliver = deliver;
	n_delivered = 0;
	for (unsigned i = 0; i < 20000; i++) {
		int rc = plx_worker_am_send_now(u.w[0], u.to[0][1].ep, (struct plx_wire_am){.id = 0}, NULL, from, 8, 0);

		n += rc == 0;
		plx_worker_turn(w);
	}
	UNIT_TRUE(n < 20000 && n >= PLX_AM_RING_LEN - 1);
	UNIT_TRUE(w->eps.stat.rx_held != 0);
	for (unsigned i = 0; i < 20000 && n_delivered < n; i++) {
		plx_am_poll(&w->am);
		plx_am_flush(&w->am);
		plx_worker_turn(w);
	}
	UNIT_EQ(n_delivered, n);
	UNIT_TRUE(!w->eps.is_short);
	unit_workers_close(&u);
}

/* Its sender polls the line that an answer is written to: one that does not answer leaves it there. */
static void
a_turn_that_takes_a_message_asks_for_the_line_of_the_answer(void)
{
	static uint8_t line[64];
	struct plx_peer *back;
	struct plx_req *recv[3];

	begin();
	unit_workers_open(&u, 2);
	back = u.to[1][0].ep->peer;
	back->tx_line = line;
	for (unsigned i = 0; i < 3; i++) {
		back->tx_asked = NULL;
		for (unsigned k = 0; k <= i; k++) { /* one is taken by another way than several */
			recv[k] = unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT);
			UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
		}
		for (unsigned k = 0; k <= i; k++) {
			UNIT_TRUE_FATAL(unit_finish(&u, recv[k]));
			UNIT_END(&u, recv[k], 0);
		}
		CU_ASSERT_PTR_EQUAL(back->tx_asked, line);
	}
	back->tx_line = NULL;
	unit_workers_close(&u);
}

static bool was_held[2];
static unsigned n_noted;

static void
note_hold(struct plx_req *req)
{
	was_held[n_noted++] = unit_queue(&u, 1)->hold;
	plx_req_put(req);
}

/* What a lone message makes its callback send need not wait for the end of the turn. */
static void
what_callbacks_of_a_burst_send_goes_together_at_the_end_of_the_turn(void)
{
	struct plx_queue *q;
	struct plx_req *recv;

	for (unsigned n = 1; n <= 2; n++) {
		begin();
		unit_workers_open(&u, 2);
		q = unit_queue(&u, 1);
		u.w[1]->holding[u.w[1]->n_holding++] = q;
		n_noted = 0;
		for (unsigned i = 0; i < n; i++) {
			recv = plx_req_get(&u.w[1]->reqs);
			recv->done = note_hold;
			plx_worker_tag_recv(u.w[1], to, LEN, 1, UNIT_EXACT, recv);
			UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
		}
		UNIT_EQ(plx_worker_progress(u.w[1]), n);
		UNIT_EQ_FATAL(n_noted, n);
		for (unsigned i = 0; i < n; i++)
			UNIT_EQ(was_held[i], n > 1);
		UNIT_EQ(q->hold, false);
		UNIT_EQ(u.w[1]->holds, false);
		u.w[1]->n_holding = 0;
		unit_workers_close(&u);
	}
}

/* @return how often in so many looks and turns as last as long as 64 empty turns the core is to be offered */
static unsigned
offers(enum plx_offer how)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 64 * PLX_WORKER_LOOKS / PLX_LOOKS_WORTH; i++) {
		UNIT_EQ(plx_worker_progress(u.w[0]), 0);
		n += plx_worker_offers(u.w[0]) == how;
	}
	return n;
}

static void
an_idle_worker_naps_while_processors_move_its_data(void)
{
	for (unsigned k = 0; k < 2; k++) {
		begin();
		unit_workers_set(&u, "worker.sleep_us", k == 0 ? "0" : "1");
		unit_workers_open(&u, 1);
		UNIT_EQ(offers(PLX_OFFER_NOT), 64 * PLX_WORKER_LOOKS / PLX_LOOKS_WORTH);
		unit_queue(&u, 0)->by_cpu = true;
		UNIT_EQ(u.w[0]->stat.sleeps, 0);
		UNIT_EQ(offers(PLX_OFFER_NAP), 4 * k);
		UNIT_EQ(u.w[0]->stat.sleeps, 4 * k);
		unit_queue(&u, 0)->by_cpu = false;
		UNIT_EQ(offers(PLX_OFFER_NOT), 64 * PLX_WORKER_LOOKS / PLX_LOOKS_WORTH);
		UNIT_EQ(u.w[0]->stat.sleeps, 4 * k);
		unit_workers_close(&u);
	}
}

static void
an_idle_worker_offers_its_core_behind_progress_and_not_in_it(void)
{
	begin();
	unit_workers_set(&u, "worker.wait", "yield");
	unit_workers_open(&u, 1);
	unit_turns(&u, 64);
	UNIT_EQ(u.w[0]->stat.yields, 0); /* the thread that runs the turns may have a lock */
	u.w[0]->empty_turns = 0;
	UNIT_EQ(offers(PLX_OFFER_YIELD), 4);
	UNIT_EQ(u.w[0]->stat.yields, 4);
	u.w[0]->eps.due |= PLX_DUE_TURN; /* a callback asks */
	UNIT_EQ(offers(PLX_OFFER_NOT), 64 * PLX_WORKER_LOOKS / PLX_LOOKS_WORTH);
	u.w[0]->eps.due &= ~PLX_DUE_TURN;
	unit_workers_close(&u);
}

static void
how_an_idle_worker_waits_is_a_setting_or_learned(void)
{
	for (unsigned k = 0; k < 2; k++) {
		begin();
		unit_workers_set(&u, "worker.wait", k == 0 ? "spin" : "auto");
		unit_workers_open(&u, 1);
		u.w[0]->spin.until = rte_rdtsc() + (uint64_t)(0.9 * PLX_SPIN_JUMP_US / 1e6 * rte_get_tsc_hz());
		u.w[0]->spin.yields = true; /* that is learned */
		u.w[0]->timers_turn = UINT64_MAX; /* behind which a turn is due */
		unit_turns(&u, 1);
		u.w[0]->empty_turns = 0;
		UNIT_EQ(offers(PLX_OFFER_YIELD), 4 * k);
		/* who spins looks at the clock when it has waited for long only */
		u.w[0]->spin.until = 0;
		u.w[0]->spin.yields = false;
		u.w[0]->empty_turns = 0;
		(void)offers(PLX_OFFER_NOT);
		UNIT_EQ(u.w[0]->spin.until, 0);
		u.w[0]->empty_turns = 1000;
		(void)offers(PLX_OFFER_NOT);
		UNIT_EQ(u.w[0]->spin.until != 0, k == 1);
		unit_workers_close(&u);
	}
}

static void
a_dedicated_worker_offers_the_core_as_often_as_it_is_taken(void)
{
	struct plx_worker *w;

	begin();
	unit_workers_open(&u, 1);
	w = u.w[0];
	w->dedicated = true;
	UNIT_EQ(plx_worker_offers(w), PLX_OFFER_LEARN); /* the first one learns that it begins */
	plx_worker_offer(w, PLX_OFFER_LEARN);
	for (unsigned i = 1; i < PLX_YIELD_FIRST; i++)
		UNIT_EQ(plx_worker_offers(w), PLX_OFFER_NOT);
	UNIT_EQ(plx_worker_offers(w), PLX_OFFER_LEARN);
	UNIT_EQ(plx_worker_offers(w), PLX_OFFER_NOT);
	w->dedicated = false;
	unit_workers_close(&u);
}

static void
a_worker_sends_to_itself(void)
{
	const uint64_t lens[] = {0, 8, 5000, LEN};

	begin();
	unit_workers_open(&u, 1);
	for (unsigned i = 0; i < 4; i++) {
		struct plx_req *send = unit_send(&u, 0, 0, from, lens[i], 4, i % 2);
		struct plx_req *recv = unit_recv(&u, 0, to, LEN, 4, UNIT_EXACT);

		UNIT_END(&u, recv, 0);
		UNIT_END(&u, send, 0);
		UNIT_SAME(to, from, lens[i]);
	}
	unit_workers_close(&u);
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

/* To one thread of the application, or to several; the reactor has the turns free. */
static void
gate_for(struct plx_worker *w, bool one)
{
	w->poller.gate = (struct plx_gate){.one = one, .grantee = one ? PLX_GATE_ONE : PLX_GATE_ALL};
}

/* Two workers, of which the second has what a reactor needs. */
static struct plx_worker *
dedicated_open(void)
{
	struct plx_worker *w;
	struct plx_am am;

	begin();
	fake.delay_max = 0;
	unit_workers_open(&u, 2);
	w = u.w[1];
	UNIT_EQ_FATAL(plx_inbox_open(&w->inbox, false), 0);
	UNIT_EQ_FATAL(plx_cq_create(&w->reqs.cq), 0);
	w->reqs.to = w->reqs.cq;
	UNIT_EQ_FATAL(plx_am_open(&am, &w->eps, &w->msgs, true), 0);
	w->am.ring = am.ring;
	gate_for(w, true);
	w->dedicated = true;
	w->app_work = WORKER_APP_DEDICATED;
	w->eps.due = PLX_DUE_WORK;
	return w;
}

/* It is an inline one again. */
static void
dedicated_end(struct plx_worker *w)
{
	w->dedicated = false;
	w->app_work = 0;
	rte_ring_free(w->am.ring);
	w->am.ring = NULL;
	plx_cq_destroy(w->reqs.cq);
	w->reqs.cq = w->reqs.to = NULL;
	plx_inbox_close(&w->inbox);
}

static void
after_a_lone_operation_the_next_worker_comes_first(void)
{
	struct plx_worker *w = dedicated_open();

	plx_worker_turn(w);
	for (unsigned i = 0; i < 2; i++) { /* the second time it has not rested */
		uint64_t kept = w->stat.eager_bytes_kept;

		UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
		UNIT_EQ(plx_inbox_post(&w->inbox, on_nothing, NULL), 0);
		UNIT_TRUE(plx_worker_turn(w) != 0);
		UNIT_EQ(w->stat.eager_bytes_kept - kept, i == 0 ? 0 : 16);
	}
	dedicated_end(w);
	for (unsigned i = 0; i < 2; i++)
		UNIT_END(&u, unit_recv(&u, 1, to, LEN, 1, UNIT_EXACT), 0);
	unit_workers_close(&u);
}

static struct plx_req *
post_recv(struct plx_worker *w, uint64_t len)
{
	struct plx_req *req = plx_req_get(&w->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_tag_recv(w, to, len, 1, UNIT_EXACT, req);
	return req;
}

static void
while_turns_are_granted_posts_run_at_once_and_progress_gives_turns(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *req;

	for (unsigned granted = 0; granted < 2; granted++) {
		w->poller.gate.bias.to = granted ? PLX_GATE_ONE : PLX_GATE_REACTOR;
		req = post_recv(w, 8);
		UNIT_EQ(plx_tag_stats(w->tag)->posted, granted);
		UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
		plx_worker_progress(w);
		UNIT_EQ(plx_req_is_done(req), granted);
		for (unsigned i = 0; i < 3 && !granted; i++)
			plx_worker_turn(w); /* the reactor's */
		plx_worker_progress(w);
		UNIT_TRUE(plx_req_is_done(req));
		plx_req_put(req);
	}
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_ONE);
	dedicated_end(w);
	unit_workers_close(&u);
}

static void
a_long_operation_returns_turns_that_are_granted(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *recv[3], *send;

	w->poller.gate.bias.to = PLX_GATE_ONE;
	recv[0] = post_recv(w, 8192);
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_ONE);
	UNIT_EQ(w->poller.long_until, 0);
	recv[1] = post_recv(w, LEN);
	UNIT_EQ(plx_tag_stats(w->tag)->posted, 2); /* it was begun before */
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_FREE);
	UNIT_TRUE(w->poller.long_until > rte_rdtsc());
	w->poller.gate.bias.to = PLX_GATE_ONE;
	send = plx_req_get(&w->reqs);
	plx_worker_tag_send(w, &u.to[1][0], from, LEN, 1, PLX_SEND_ANY, send);
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_FREE);
	dedicated_end(w);
	for (unsigned i = 0; i < 2; i++)
		UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	for (unsigned i = 0; i < 2; i++)
		UNIT_END(&u, recv[i], 0);
	recv[2] = unit_recv(&u, 0, to, LEN, 1, UNIT_EXACT);
	UNIT_END(&u, recv[2], 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

static struct {
	struct plx_worker *w;
	struct plx_req *next;
	uint64_t len;
	unsigned first, told;
	bool calls;
} cb;

static void
on_next(struct plx_req *req)
{
	UNIT_EQ(req, cb.next);
	UNIT_TRUE(!cb.calls);
	cb.told++;
}

static void
on_first(struct plx_req *req)
{
	(void)req;
	UNIT_TRUE((cb.w->eps.due & PLX_DUE_TURN) != 0); /* it needed no ring */
	UNIT_TRUE(plx_gate_is_within(&cb.w->poller.gate));
	UNIT_EQ(plx_worker_begin(cb.w), PLX_GATE_GIVEN);
	plx_worker_end(cb.w, PLX_GATE_GIVEN, false);
	cb.first++;
	cb.calls = true;
	plx_worker_tag_recv(cb.w, to, cb.len, 2, UNIT_EXACT, cb.next);
	cb.calls = false;
	UNIT_EQ(cb.told, 0);
	UNIT_TRUE(plx_gate_is_granted(&cb.w->poller.gate));
}

/* In progress of a thread which has the turns. @param len of what its callback posts then */
static void
run_callback(struct plx_worker *w, uint64_t len)
{
	struct plx_req *req;

	memset(&cb, 0, sizeof(cb));
	cb.w = w;
	cb.len = len;
	cb.next = plx_req_get(&w->reqs);
	cb.next->done = on_next;
	w->poller.gate.bias.to = w->poller.gate.grantee;
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 2), 0);
	plx_worker_progress(w); /* it is kept */
	req = post_recv(w, 8);
	req->done = on_first;
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	plx_worker_progress(w);
	UNIT_EQ(cb.first, 1);
	UNIT_EQ(cb.told, 1); /* behind its call, in the same progress */
	plx_req_put(req);
	plx_req_put(cb.next);
}

static void
callbacks_of_granted_turns_run_in_them_and_what_they_call_is_told_behind_it(void)
{
	struct plx_worker *w = dedicated_open();

	for (unsigned i = 0; i < 2; i++) {
		gate_for(w, i == 0);
		run_callback(w, 8);
		UNIT_EQ(w->poller.gate.bias.to, w->poller.gate.grantee);
		UNIT_EQ(w->poller.gate.within, 0);
		run_callback(w, LEN); /* it moves on without the application */
		UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_FREE);
		UNIT_TRUE(w->reqs.to == w->reqs.cq);
	}
	dedicated_end(w);
	unit_workers_close(&u);
}

static struct plx_req *posted[4];

static void
on_message_cancels(struct plx_req *req)
{
	(void)req;
	UNIT_TRUE(plx_gate_is_within(&cb.w->poller.gate));
	cb.first++;
	for (unsigned i = 1; i < RTE_DIM(posted); i++)
		plx_worker_cancel(cb.w, posted[i]);
}

/* Of posts after a pause the first runs alone: the others wait while its callback runs. */
static struct plx_worker *
posts_begin(unsigned n)
{
	struct plx_worker *w = dedicated_open();

	memset(&cb, 0, sizeof(cb));
	cb.w = w;
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	while (!plx_inbox_rested(&w->inbox))
		plx_worker_turn(w);
	for (unsigned i = 0; i < n; i++)
		posted[i] = post_recv(w, 8);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	return w;
}

/* The receives were cancelled before they were there, and waited for ever. */
static void
a_callback_in_granted_turns_cancels_what_was_posted_to_the_reactor(void)
{
	struct plx_worker *w = posts_begin(RTE_DIM(posted));

	posted[0]->done = on_message_cancels;
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	for (unsigned i = 0; i < 4; i++)
		plx_worker_progress(w);
	UNIT_EQ(cb.first, 1);
	UNIT_EQ(plx_tag_stats(w->tag)->posted, 0);
	for (unsigned i = 0; i < RTE_DIM(posted); i++) {
		UNIT_TRUE(plx_req_is_done(posted[i]));
		UNIT_EQ(posted[i]->status, i == 0 ? 0 : -ECANCELED);
		plx_req_put(posted[i]);
	}
	dedicated_end(w);
	unit_workers_close(&u);
}

/* As a face does: by a line of the inbox, or at once. */
static bool
tag_send(struct plx_worker *w, uint64_t tag)
{
	enum plx_gate_pass pass = plx_worker_begin(w);
	int rc;

	if (pass == PLX_GATE_NOT)
		return plx_worker_tag_send_posted(w, &u.to[1][0], from, 8, tag);
	rc = plx_worker_tag_send_now(w, u.to[1][0].ep, from, 8, tag);
	plx_worker_end(w, pass, true);
	return rc == 0;
}

static void
on_message_sends(struct plx_req *req)
{
	(void)req;
	cb.first++;
	UNIT_TRUE(tag_send(cb.w, 3));
}

static void
a_callback_in_granted_turns_sends_behind_what_was_posted_to_the_reactor(void)
{
	struct plx_worker *w = posts_begin(1);
	struct plx_req *recv[3];

	for (unsigned i = 0; i < 3; i++)
		recv[i] = unit_recv(&u, 0, to + 8 * (i + 1), 8, 0, 0);
	posted[0]->done = on_message_sends;
	atomic_store(&u.to[1][0].ep->quick, true);
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	for (uint64_t tag = 1; tag <= 2; tag++)
		UNIT_TRUE(tag_send(w, tag));
	w->poller.gate.bias.to = PLX_GATE_ONE;
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	for (unsigned i = 0; i < 4; i++)
		plx_worker_progress(w);
	UNIT_EQ(cb.first, 1);
	plx_req_put(posted[0]);
	dedicated_end(w);
	for (unsigned i = 0; i < 3; i++) {
		UNIT_TRUE_FATAL(unit_finish(&u, recv[i]));
		UNIT_EQ(recv[i]->recv.info_tag, i + 1);
		UNIT_END(&u, recv[i], 0);
	}
	unit_workers_close(&u);
}

static void
send_quick(struct plx_worker *w, uint64_t tag)
{
	atomic_store(&u.to[1][0].ep->quick, true);
	UNIT_TRUE(tag_send(w, tag));
}

static void
while_turns_are_granted_short_sends_go_out_at_once_behind_those_before(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *recv[3];

	for (unsigned i = 0; i < 3; i++)
		recv[i] = unit_recv(&u, 0, to + 8 * i, 8, 0, 0);
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	send_quick(w, 1);
	UNIT_EQ(w->stat.tag_sends, 0);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	send_quick(w, 2);
	UNIT_EQ(w->stat.tag_sends, 2);
	UNIT_EQ(w->stat.tag_quick, 1);
	UNIT_EQ(w->stat.direct, 1);
	w->poller.gate.bias.to = PLX_GATE_TAKEN; /* by another thread, which looks behind its turn */
	send_quick(w, 3);
	UNIT_EQ(w->stat.tag_sends, 2);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	plx_worker_progress(w);
	UNIT_EQ(w->stat.tag_sends, 3);
	dedicated_end(w);
	for (unsigned i = 0; i < 3; i++) {
		UNIT_TRUE_FATAL(unit_finish(&u, recv[i]));
		UNIT_EQ(recv[i]->recv.info_tag, i + 1);
		UNIT_END(&u, recv[i], 0);
	}
	unit_workers_close(&u);
}

/* As inline, but earlier completions are delivered first. */
static void
while_turns_are_granted_a_flush_of_nothing_ends_at_once(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_ep_user *user = &u.to[1][0];
	struct plx_req *recv;

	UNIT_EQ(plx_ep_connect(user->ep), 0);
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	UNIT_TRUE(!plx_worker_is_flushed(w, NULL) && !plx_worker_is_flushed(w, user));
	w->poller.gate.bias.to = PLX_GATE_ONE;
	UNIT_TRUE(plx_worker_is_flushed(w, NULL) && plx_worker_is_flushed(w, user));
	recv = post_recv(w, 8);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	plx_worker_turn(w); /* the reactor's: it is done, and the application does not know */
	UNIT_TRUE(!plx_worker_is_flushed(w, NULL));
	plx_worker_progress(w);
	UNIT_TRUE(plx_req_is_done(recv));
	plx_req_put(recv);
	UNIT_TRUE(plx_worker_is_flushed(w, NULL));
	fake_block(unit_queue(&u, 1), true);
	UNIT_EQ(plx_ep_tx_ctl(user->ep, PLX_WIRE_FLOW, &(struct plx_wire_flow){.stop = PLX_WIRE_FLOW_GO},
			sizeof(struct plx_wire_flow)), 0);
	UNIT_TRUE(!plx_worker_is_flushed(w, NULL) && !plx_worker_is_flushed(w, user));
	fake_block(unit_queue(&u, 1), false);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	dedicated_end(w);
	unit_turns(&u, 10);
	unit_workers_close(&u);
}

static int
stream_granted(struct plx_worker *w, struct plx_req *req)
{
	return plx_worker_stream_recv_granted(w, &u.to[1][0], to, 100, 1, false, req);
}

static void
while_turns_are_granted_bytes_that_are_here_are_received_at_once(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req req, *recv;

	plx_req_init(&req, &w->reqs, PLX_REQ_USER);
	UNIT_EQ(plx_worker_stream_send_now(u.w[0], &u.to[0][1], from, 8), 0);
	plx_worker_turn(w);
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	UNIT_EQ(stream_granted(w, &req), -EAGAIN);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	recv = post_recv(w, 8);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	plx_worker_turn(w); /* the reactor's: it is done, and the application does not know */
	UNIT_EQ(stream_granted(w, &req), -EAGAIN);
	plx_worker_progress(w);
	UNIT_TRUE(plx_req_is_done(recv));
	plx_req_put(recv);
	UNIT_EQ(stream_granted(w, &req), 0);
	UNIT_EQ(plx_stream_got(&req), 8);
	UNIT_EQ(stream_granted(w, &req), -EAGAIN);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	dedicated_end(w);
	unit_turns(&u, 10);
	unit_workers_close(&u);
}

/* It would wait for a turn of the reactor's. */
static void
a_probe_asks_no_reactor_that_has_kept_nothing(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_probe probe = {.len = 1};

	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	probe.msg = (void *)w;
	plx_worker_tag_probe(w, 0, 0, true, &probe);
	CU_ASSERT_PTR_NULL(probe.msg);
	UNIT_EQ(plx_inbox_posted(&w->inbox), 0);
	dedicated_end(w);
	unit_workers_close(&u);
}

static void
who_sends_and_does_not_wait_gives_turns_but_none_between_receives(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *recv[32];
	uint64_t turns;

	w->poller.gate.bias.to = PLX_GATE_ONE;
	turns = w->stat.turns;
	for (unsigned i = 0; i < 32; i++)
		recv[i] = post_recv(w, 8);
	UNIT_EQ(w->stat.turns, turns);
	UNIT_EQ(w->poller.n_asked, 0);
	for (unsigned i = 0; i < 32; i++)
		send_quick(w, i);
	UNIT_TRUE(w->stat.turns > turns);
	UNIT_TRUE(w->stat.turns - turns < 32);
	UNIT_EQ(w->poller.n_asked, 4 * (w->stat.turns - turns)); /* counted as who waits */
	turns = w->stat.turns;
	for (unsigned i = 0; i < 32; i++) { /* nor who gives them anyway */
		send_quick(w, i);
		plx_worker_progress(w);
	}
	UNIT_EQ(w->stat.turns - turns, 32);
	dedicated_end(w);
	for (unsigned i = 0; i < 32; i++) {
		UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
		UNIT_END(&u, recv[i], 0);
	}
	for (unsigned i = 0; i < 64; i++)
		UNIT_END(&u, unit_recv(&u, 0, to, 8, 0, 0), 0);
	unit_workers_close(&u);
}

static void
a_plain_post_enters_turns_that_are_granted_when_nothing_is_before_it(void)
{
	struct plx_worker *w = dedicated_open();
	const enum plx_gate_owner turns[] = {PLX_GATE_REACTOR, PLX_GATE_TAKEN};

	for (unsigned i = 0; i < 2; i++) {
		w->poller.gate.bias.to = turns[i];
		UNIT_EQ(plx_worker_begin(w), PLX_GATE_NOT);
		UNIT_EQ(w->poller.gate.bias.to, turns[i]);
		UNIT_TRUE(!w->poller.gate.bias.inside);
	}
	w->poller.gate.bias.to = PLX_GATE_ONE;
	UNIT_EQ(plx_inbox_post(&w->inbox, on_nothing, NULL), 0);
	UNIT_EQ(plx_worker_begin(w), PLX_GATE_GIVEN); /* behind it */
	UNIT_EQ(w->stat.submits, 1);
	plx_worker_end(w, PLX_GATE_GIVEN, false);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ(plx_worker_begin(w), PLX_GATE_ENTERED);
		UNIT_TRUE(w->poller.gate.bias.inside);
		UNIT_EQ(plx_worker_begin(w), PLX_GATE_NOT); /* it is in */
		plx_worker_end(w, PLX_GATE_ENTERED, i != 0);
		UNIT_TRUE(!w->poller.gate.bias.inside);
	}
	UNIT_EQ(w->stat.direct, 3);
	gate_for(w, false); /* one of several has TAKEN them */
	w->poller.gate.bias.to = PLX_GATE_ALL;
	UNIT_EQ(plx_worker_begin(w), PLX_GATE_GIVEN);
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_TAKEN);
	plx_worker_end(w, PLX_GATE_GIVEN, false);
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_ALL);
	dedicated_end(w);
	unit_workers_close(&u);
}

/* Else the reactor would grant it again to the thread that has returned it for something long. */
static void
turns_that_are_granted_do_not_say_that_the_reactor_ran_posts(void)
{
	struct plx_worker *w = dedicated_open();

	for (unsigned granted = 0; granted < 2; granted++) {
		w->poller.gate.bias.to = PLX_GATE_REACTOR;
		for (unsigned i = 0; i < 3; i++) {
			UNIT_EQ(plx_inbox_post(&w->inbox, on_nothing, NULL), 0);
			plx_worker_turn(w);
		}
		UNIT_EQ(w->poller.posts, 3);
		w->poller.gate.bias.to = PLX_GATE_ONE;
		if (granted)
			UNIT_EQ(plx_inbox_post(&w->inbox, on_nothing, NULL), 0);
		plx_worker_progress(w);
		UNIT_EQ(w->poller.posts, 0);
	}
	dedicated_end(w);
	unit_workers_close(&u);
}

static void
who_posts_plainly_gives_turns_too_and_wakes_who_sleeps(void)
{
	struct plx_worker *w = dedicated_open();
	uint64_t turns = w->stat.turns;

	w->poller.gate.bias.to = PLX_GATE_ONE;
	for (unsigned i = 0; i < 4 * PLX_WORKER_TURN_EVERY; i++) {
		UNIT_EQ(plx_worker_begin(w), PLX_GATE_ENTERED);
		plx_worker_end(w, PLX_GATE_ENTERED, i >= 2 * PLX_WORKER_TURN_EVERY);
	}
	UNIT_EQ(w->stat.turns - turns, 2);
	UNIT_EQ(w->wake.n_events, 0);
	w->wake.on = true;
	UNIT_EQ(plx_worker_begin(w), PLX_GATE_ENTERED);
	plx_worker_end(w, PLX_GATE_ENTERED, false);
	UNIT_EQ(w->wake.n_events, 1);
	w->wake.on = false;
	UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_ONE);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	dedicated_end(w);
	unit_workers_close(&u);
}

/* To its end, and that of the workers. */
static void
long_data_comes(struct plx_worker *w, struct plx_req *send, struct plx_req *req)
{
	for (unsigned i = 0; i < 100 && !plx_req_is_done(req); i++) {
		plx_worker_progress(w);
		plx_worker_turn(u.w[0]);
	}
	UNIT_TRUE(plx_req_is_done(req));
	UNIT_SAME(to, from, LEN);
	plx_req_put(req);
	UNIT_END(&u, send, 0);
	dedicated_end(w);
	unit_workers_close(&u);
}

/* A program that computes between its posts has none of its time taken for copies. */
static void
a_post_moves_no_long_data(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *send = unit_send(&u, 0, 1, from, LEN, 1, false), *req;

	memset(to, 0, LEN);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	req = post_recv(w, LEN);
	w->poller.gate.bias.to = PLX_GATE_ONE; /* it had them returned */
	for (unsigned i = 0; i < 4 * PLX_WORKER_TURN_EVERY; i++) {
		UNIT_EQ(plx_worker_begin(w), PLX_GATE_ENTERED);
		plx_worker_end(w, PLX_GATE_ENTERED, true);
	}
	UNIT_TRUE(!TAILQ_EMPTY(&w->rndv.recvs)); /* it has arrived */
	UNIT_EQ(to[0], 0);
	UNIT_EQ(to[LEN - 1], 0);
	long_data_comes(w, send, req);
}

/* Asking the sender for help may have to wake it, which takes longer than the post itself. */
static void
a_post_leaves_what_is_announced_to_the_next_turn(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *send = unit_send(&u, 0, 1, from, LEN, 1, false), *req;
	const struct plx_rndv_stat *s = &w->rndv.stat;

	for (unsigned i = 0; i < 100 && plx_tag_stats(w->tag)->kept == 0; i++) {
		plx_worker_turn(u.w[0]);
		plx_worker_turn(w);
	}
	UNIT_EQ_FATAL(plx_tag_stats(w->tag)->kept, 1);
	memset(to, 0, LEN);
	w->poller.gate.bias.to = PLX_GATE_ONE;
	req = post_recv(w, LEN);
	UNIT_EQ(plx_tag_stats(w->tag)->kept, 0);
	UNIT_EQ(s->recvs, 1);
	UNIT_EQ(s->get + s->split + s->frag + s->put, 0);
	UNIT_TRUE(!TAILQ_EMPTY(&w->rndv.recvs)); /* its reactor is not to sleep */
	plx_worker_turn(w);
	UNIT_EQ(s->get + s->split + s->frag + s->put, 1);
	w->poller.gate.bias.to = PLX_GATE_ONE; /* it had them returned */
	long_data_comes(w, send, req);
}

static unsigned arms;

static int
arm_busy(void *arg)
{
	(void)arg;
	arms++;
	return -EBUSY;
}

static void
who_takes_turns_of_a_reactor_that_sleeps_looks_whether_it_still_may(void)
{
	struct plx_worker *w = dedicated_open();

	w->poller.arm = arm_busy;
	gate_for(w, false); /* taken for a call */
	for (unsigned armed = 0; armed < 2; armed++) {
		arms = 0;
		w->poller.gate.bias.to = PLX_GATE_ALL;
		w->poller.gate.for_call = true;
		w->poller.armed = armed;
		send_quick(w, 1);
		UNIT_EQ(w->poller.gate.bias.to, PLX_GATE_FREE);
		UNIT_EQ(arms, armed);
	}
	UNIT_EQ(w->poller.n_asked, 0);
	dedicated_end(w);
	for (unsigned i = 0; i < 2; i++)
		UNIT_END(&u, unit_recv(&u, 0, to, 8, 1, UNIT_EXACT), 0);
	unit_workers_close(&u);
}

static bool near;
static unsigned disarms;

bool __wrap_plx_poller_is_near(const struct plx_poller *p);

bool
__wrap_plx_poller_is_near(const struct plx_poller *p)
{
	(void)p;
	return near;
}

static int
arm_quiet(void *arg)
{
	(void)arg;
	arms++;
	return 0;
}

static void
on_disarm(void *arg)
{
	(void)arg;
	disarms++;
}

/* The kernel's part of a sleep: what the reactor does meanwhile. */
static void
nothing(void)
{
}

static void (*while_it_naps)(void) = nothing;
static unsigned n_wakes;

long __wrap_syscall(long number, _Atomic uint32_t *word, int op, uint32_t value, ...);

long
__wrap_syscall(long number, _Atomic uint32_t *word, int op, uint32_t value, ...)
{
	UNIT_EQ_FATAL(number, SYS_futex);
	UNIT_TRUE(word == &u.w[1]->wake.naps);
	if (op == FUTEX_WAKE_PRIVATE) {
		n_wakes++;
		return 1;
	}
	UNIT_EQ(op, FUTEX_WAIT_PRIVATE);
	UNIT_EQ(value, *word);
	while_it_naps();
	return 0;
}

/* @return whether w slept */
static bool
naps(struct plx_worker *w, bool is_near, bool woke)
{
	uint64_t before = w->stat.sleeps;

	near = is_near;
	atomic_store(&unit_queue(&u, 1)->woke, woke);
	w->yield.every = PLX_YIELD_MAX;
	arms = disarms = 0;
	plx_worker_offer(w, PLX_OFFER_LEARN);
	if (w->stat.sleeps == before)
		return false;
	UNIT_EQ(w->stat.sleeps, before + 1);
	UNIT_EQ(w->yield.every, PLX_YIELD_SHARED);
	return true;
}

static void
who_waits_for_a_receiver_that_it_woke_leaves_it_the_core(void)
{
	struct plx_worker *w = dedicated_open();
	const uint64_t one = 1;
	int fd = eventfd(0, EFD_NONBLOCK);

	w->poller.arg = w;
	w->poller.arm = arm_quiet;
	w->poller.disarm = on_disarm;
	w->poller.fds = &fd;
	w->poller.n_fds = 1;
	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	UNIT_TRUE(!naps(w, false, true));
	UNIT_TRUE(!naps(w, true, false));
	UNIT_TRUE(naps(w, true, true));
	UNIT_EQ(arms, 0); /* the reactor's */
	w->poller.gate.bias.to = PLX_GATE_ONE;
	UNIT_TRUE(!naps(w, true, false));
	UNIT_TRUE(naps(w, true, true));
	UNIT_EQ(arms, 1);
	UNIT_EQ(disarms, 1);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	UNIT_TRUE(unit_queue(&u, 1)->woke); /* nothing came yet */
	UNIT_EQ(write(fd, &one, sizeof(one)), sizeof(one));
	UNIT_TRUE(naps(w, true, true));
	UNIT_TRUE(!unit_queue(&u, 1)->woke);
	w->poller.arm = arm_busy; /* turns are needed */
	UNIT_TRUE(!naps(w, true, true));
	UNIT_EQ(disarms, 0);
	gate_for(w, false); /* another thread may have them */
	UNIT_TRUE(!naps(w, true, true));
	w->poller.n_fds = 0;
	w->poller.fds = NULL;
	w->poller.arm = NULL;
	close(fd);
	dedicated_end(w);
	unit_workers_close(&u);
}

static void
reactor_turns(void)
{
	for (unsigned i = 0; i < 3; i++)
		plx_worker_turn(u.w[1]);
}

static void
reactor_takes(void)
{
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), 0);
	reactor_turns();
}

static void
who_naps_is_woken_by_what_it_is_told(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *req;

	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	req = post_recv(w, 8);
	n_wakes = 0;
	while_it_naps = reactor_turns; /* it takes the receive, and tells nothing */
	UNIT_TRUE(naps(w, true, true));
	UNIT_EQ(n_wakes, 0);
	UNIT_TRUE(unit_queue(&u, 1)->woke); /* the time was over */
	while_it_naps = reactor_takes;
	UNIT_TRUE(naps(w, true, true));
	UNIT_EQ(n_wakes, 1);
	UNIT_TRUE(!unit_queue(&u, 1)->woke);
	UNIT_TRUE(!naps(w, true, true)); /* told, and not yet collected */
	plx_worker_turn(w);
	UNIT_EQ(n_wakes, 1);
	while_it_naps = nothing;
	plx_worker_progress(w);
	UNIT_TRUE(plx_req_is_done(req));
	plx_req_put(req);
	dedicated_end(w);
	unit_workers_close(&u);
}

static int (*queue_tx)(const struct plx_tx *tx);
static struct plx_req *acked;
static bool told, done; /* when the acknowledgement left */

static int
tx_acked(const struct plx_tx *tx)
{
	if (tx->op == PLX_WIRE_ACK) {
		told = plx_cq_next(u.w[1]->reqs.cq) != NULL;
		done = plx_req_is_done(acked);
	}
	return queue_tx(tx);
}

static void
an_application_elsewhere_is_told_before_the_sender_is(void)
{
	struct plx_worker *w = dedicated_open();

	w->poller.gate.bias.to = PLX_GATE_REACTOR;
	queue_tx = unit_queue(&u, 1)->tx;
	unit_queue(&u, 1)->tx = tx_acked;
	for (unsigned here = 0; here < 2; here++) {
		struct plx_req *send = unit_send(&u, 0, 1, from, LEN, 1, false);

		w->reqs.to = here ? NULL : w->reqs.cq;
		acked = post_recv(w, LEN);
		told = done = false;
		for (unsigned i = 0; i < 100 && !plx_req_is_done(send); i++) {
			plx_worker_turn(w);
			plx_worker_turn(u.w[0]);
		}
		UNIT_TRUE(plx_req_is_done(send));
		UNIT_TRUE(told != here);
		UNIT_TRUE(!done); /* a callback runs here: the sender first */
		plx_worker_progress(w);
		UNIT_TRUE(plx_req_is_done(acked));
		plx_req_put(acked);
		UNIT_END(&u, send, 0);
	}
	unit_queue(&u, 1)->tx = queue_tx;
	w->reqs.to = w->reqs.cq;
	dedicated_end(w);
	unit_workers_close(&u);
}

static void
a_long_operation_has_the_core_offered_soon_again(void)
{
	struct plx_worker *w = dedicated_open();
	struct plx_req *req;

	w->poller.gate.bias.to = PLX_GATE_ONE;
	w->yield.every = PLX_YIELD_MAX;
	req = post_recv(w, PLX_WORKER_LONG_LEN - 1);
	UNIT_EQ(w->yield.every, PLX_YIELD_MAX);
	plx_worker_cancel(w, req);
	UNIT_END(&u, req, -ECANCELED);
	req = post_recv(w, PLX_WORKER_LONG_LEN);
	UNIT_EQ(w->yield.every, PLX_YIELD_LONG);
	w->poller.gate.bias.to = PLX_GATE_ONE; /* it had them returned */
	plx_worker_cancel(w, req);
	UNIT_END(&u, req, -ECANCELED);
	dedicated_end(w);
	unit_workers_close(&u);
}

/* -- streams -- */

/* N messages; the next receive is posted when the one before is done. @return bytes that were kept */
static uint64_t
read_one_by_one(uint64_t len)
{
	enum { N = 80 };

	begin();
	fake.mtu = 4096;
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < N; i++)
		UNIT_EQ(plx_worker_stream_send_now(u.w[0], &u.to[0][1], from + i, len), 0);
	for (unsigned i = 0; i < N; i++) {
		struct plx_req *req = plx_req_get(&u.w[1]->reqs);

		plx_worker_stream_recv(u.w[1], &u.to[1][0], to, len, 1, true, req);
		UNIT_END(&u, req, 0);
		UNIT_SAME(to, from + i, len);
	}
	len = u.w[1]->streams.stat.rx_kept_bytes / len;
	unit_workers_close(&u);
	return len;
}

static void
a_reader_with_one_receive_at_a_time_is_given_time_to_post_the_next(void)
{
	CU_ASSERT(read_one_by_one(8) > 60); /* a turn each would cost more than the copies */
	CU_ASSERT(read_one_by_one(2000) < PLX_DEV_RX_BURST);
}

/* -- sync -- */

static void
a_sync_send_is_done_when_it_is_matched_and_not_before(void)
{
	const uint64_t lens[] = {0, 8, 1000, 1009, 5000, 40000, LEN};

	for (unsigned posted = 0; posted < 2; posted++) {
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct plx_req *send, *recv = NULL;

			begin();
			unit_workers_open(&u, 2);
			if (posted)
				recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
			send = unit_send(&u, 0, 1, from, lens[i], 4, true);
			if (!posted) {
				unit_turns(&u, 50);
				UNIT_TRUE(!plx_req_is_done(send));
				recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
			}
			UNIT_END(&u, recv, 0);
			UNIT_END(&u, send, 0);
			UNIT_SAME(to, from, lens[i]);
			unit_workers_close(&u);
		}
	}
}

/* -- cancel -- */

static void
a_cancelled_receive_matches_nothing(void)
{
	struct plx_req *recv[3], *send;

	begin();
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 3; i++)
		recv[i] = unit_recv(&u, 1, to + i, 1, 4, UNIT_EXACT);
	plx_worker_cancel(u.w[1], recv[1]);
	UNIT_TRUE(plx_req_is_done(recv[1]));
	plx_worker_cancel(u.w[1], recv[1]); /* once more is nothing */
	UNIT_END(&u, recv[1], -ECANCELED);
	for (unsigned i = 0; i < 2; i++) {
		send = unit_send(&u, 0, 1, from + i, 1, 4, false);
		UNIT_END(&u, send, 0);
	}
	UNIT_END(&u, recv[0], 0);
	UNIT_END(&u, recv[2], 0);
	UNIT_EQ(to[0], from[0]);
	UNIT_EQ(to[1], 0xcc);
	UNIT_EQ(to[2], from[1]);
	unit_workers_close(&u);
}

static void
what_is_matched_already_is_not_cancelled(void)
{
	struct plx_req *recv, *send;

	begin();
	fake.depth = 2;
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, 20000, 4, false); /* in fragments, two at a time */
	unit_turns(&u, 2);
	UNIT_TRUE(!recv->posted && !plx_req_is_done(recv));
	plx_worker_cancel(u.w[1], recv);
	UNIT_TRUE(!plx_req_is_done(recv));
	plx_worker_cancel(u.w[0], send); /* a send: nothing */
	UNIT_END(&u, send, 0);
	UNIT_END(&u, recv, 0);
	UNIT_SAME(to, from, 20000);
	unit_workers_close(&u);
}

/* -- probe -- */

static void
a_probe_tells_and_takes(void)
{
	const uint64_t lens[] = {8, 5000, LEN};

	for (unsigned i = 0; i < 3; i++) {
		struct plx_req *recv, *send;
		struct plx_probe probe;

		begin();
		unit_workers_open(&u, 2);
		plx_worker_tag_probe(u.w[1], 4, UNIT_EXACT, true, &probe);
		CU_ASSERT_PTR_NULL(probe.msg);
		send = unit_send(&u, 0, 1, from, lens[i], 4, false);
		unit_turns(&u, 50);
		plx_worker_tag_probe(u.w[1], 5, UNIT_EXACT, true, &probe);
		CU_ASSERT_PTR_NULL(probe.msg);
		for (unsigned k = 0; k < 3; k++) {
			plx_worker_tag_probe(u.w[1], 0, 0, false, &probe);
			CU_ASSERT_FATAL(probe.msg != NULL);
			UNIT_EQ(probe.tag, 4);
			UNIT_EQ(probe.len, lens[i]);
		}
		plx_worker_tag_probe(u.w[1], 4, UNIT_EXACT, true, &probe);
		CU_ASSERT_FATAL(probe.msg != NULL);
		recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT); /* it is not for this one */
		unit_turns(&u, 5);
		UNIT_TRUE(recv->posted);
		plx_worker_cancel(u.w[1], recv);
		UNIT_END(&u, recv, -ECANCELED);
		recv = plx_req_get(&u.w[1]->reqs);
		plx_worker_msg_recv(u.w[1], probe.msg, to, LEN, recv);
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		UNIT_EQ(recv->recv.info_tag, 4);
		UNIT_EQ(recv->recv.info_len, lens[i]);
		UNIT_END(&u, recv, 0);
		UNIT_END(&u, send, 0);
		UNIT_SAME(to, from, lens[i]);
		unit_workers_close(&u);
	}
}

static void
a_receive_now_takes_only_what_is_here_in_full(void)
{
	struct plx_req *send[3], *req;

	begin();
	unit_workers_open(&u, 2);
	req = plx_req_get(&u.w[1]->reqs);
	UNIT_EQ(plx_worker_tag_recv_now(u.w[1], to, LEN, 1, UNIT_EXACT, req), -EAGAIN);
	send[0] = unit_send(&u, 0, 1, from, 100, 1, true);
	send[1] = unit_send(&u, 0, 1, from, 5000, 2, false);
	send[2] = unit_send(&u, 0, 1, from, LEN, 3, false);
	unit_turns(&u, 50);
	UNIT_EQ(plx_worker_tag_recv_now(u.w[1], to, LEN, 3, UNIT_EXACT, req), -EAGAIN);
	UNIT_EQ(plx_worker_tag_recv_now(u.w[1], to, LEN, 2, UNIT_EXACT, req), 0);
	UNIT_EQ(req->recv.info_len, 5000);
	UNIT_SAME(to, from, 5000);
	UNIT_TRUE(!plx_req_is_done(send[0]));
	UNIT_EQ(plx_worker_tag_recv_now(u.w[1], to, 60, 1, UNIT_EXACT, req), -EMSGSIZE);
	UNIT_EQ(req->recv.info_len, 100);
	plx_req_put(req);
	req = unit_recv(&u, 1, to, LEN, 3, UNIT_EXACT);
	UNIT_END(&u, req, 0);
	for (unsigned i = 0; i < 3; i++)
		UNIT_END(&u, send[i], 0);
	unit_workers_close(&u);
}

/* -- partial messages, truncation -- */

static void
a_receive_meets_a_message_that_is_still_arriving(void)
{
	for (unsigned pieces = 1; pieces < 20; pieces++) {
		struct plx_req *recv, *send;

		begin();
		fake.depth = 1;
		unit_workers_open(&u, 2);
		send = unit_send(&u, 0, 1, from, 19000, 4, false);
		unit_turns(&u, pieces);
		recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		UNIT_TRUE(!plx_req_is_done(recv) || pieces == 19);
		UNIT_END(&u, recv, 0);
		UNIT_END(&u, send, 0);
		UNIT_SAME(to, from, 19000);
		UNIT_EQ(to[19000], 0xcc);
		unit_workers_close(&u);
	}
}

static void
fragments_of_many_messages_do_not_mix(void)
{
	enum { N = 12 };
	static uint8_t in[N][20000];
	struct plx_req *send[N], *recv[N];

	begin();
	fake.depth = 2;
	fake.delay_max = 3;
	unit_workers_open(&u, 3);
	for (unsigned i = 0; i < N; i++) {
		if (i % 2 == 0)
			recv[i] = unit_recv(&u, 2, in[i], sizeof(in[i]), i, UNIT_EXACT);
		send[i] = unit_send(&u, i % 3 == 0, 2, from + i, 18000 + i, i, false);
	}
	unit_turns(&u, 10);
	for (unsigned i = 1; i < N; i += 2)
		recv[i] = unit_recv(&u, 2, in[i], sizeof(in[i]), i, UNIT_EXACT);
	for (unsigned i = 0; i < N; i++) {
		UNIT_END(&u, recv[i], 0);
		UNIT_END(&u, send[i], 0);
		UNIT_SAME(in[i], from + i, 18000 + i);
	}
	unit_workers_close(&u);
}

static void
a_message_too_long_is_cut_and_told(void)
{
	const uint64_t lens[] = {9, 113, 1017, 5000, 33000};

	for (unsigned posted = 0; posted < 2; posted++) {
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			for (unsigned sync = 0; sync < 2; sync++) {
				struct plx_req *send, *recv = NULL;
				uint64_t room = lens[i] - 1 - i * 100;

				begin();
				unit_workers_open(&u, 2);
				room = room < lens[i] ? room : 3;
				if (posted)
					recv = unit_recv(&u, 1, to, room, 4, UNIT_EXACT);
				send = unit_send(&u, 0, 1, from, lens[i], 4, sync);
				unit_turns(&u, 60);
				if (!posted)
					recv = unit_recv(&u, 1, to, room, 4, UNIT_EXACT);
				UNIT_TRUE_FATAL(unit_finish(&u, recv));
				UNIT_EQ(recv->recv.info_len, lens[i]);
				UNIT_EQ(to[room], 0xcc);
				UNIT_END(&u, recv, -EMSGSIZE);
				UNIT_END(&u, send, 0);
				unit_workers_close(&u);
			}
		}
	}
}

static void
large_eager_messages_are_kept_however_large(void)
{
	static uint8_t big[8 << 20], in[8 << 20];
	struct plx_req *send, *recv;

	begin();
	unit_workers_set(&u, "proto.eager_max", "16m");
	unit_workers_open(&u, 2);
	unit_fill(big, sizeof(big), 77);
	send = unit_send(&u, 0, 1, big, sizeof(big), 4, false);
	unit_turns(&u, 1000);
	UNIT_END(&u, send, 0);
	UNIT_EQ(u.w[1]->stat.rx_drop_no_memory, 0);
	recv = unit_recv(&u, 1, in, sizeof(in), 4, UNIT_EXACT);
	unit_turns(&u, 10);
	UNIT_TRUE(plx_req_is_done(recv));
	if (!plx_req_is_done(recv)) {
		plx_worker_cancel(u.w[1], recv);
	} else {
		UNIT_SAME(in, big, sizeof(big));
	}
	plx_req_put(recv);
	unit_workers_close(&u);
}

/* -- flush -- */

static struct plx_req *
flush(unsigned i, enum plx_flush_kind kind, const struct plx_ep_user *user)
{
	struct plx_req *req = plx_req_get(&u.w[i]->reqs);

	plx_worker_flush(u.w[i], kind, user, req);
	return req;
}

static void
a_flush_ends_when_what_was_before_it_has_left(void)
{
	struct plx_req *send, *f[3], *recv, *sync;

	begin();
	unit_workers_open(&u, 2);
	for (unsigned kind = 0; kind < 3; kind++) /* nothing to wait for */
		UNIT_END(&u, flush(0, (enum plx_flush_kind)kind, &u.to[0][1]), 0);
	sync = unit_send(&u, 0, 1, from, 10, 5, true);
	fake_block(unit_queue(&u, 0), true);
	send = unit_send(&u, 0, 1, from, 10, 4, false);
	for (unsigned kind = 0; kind < 3; kind++)
		f[kind] = flush(0, (enum plx_flush_kind)kind, &u.to[0][1]);
	unit_turns(&u, 50);
	for (unsigned kind = 0; kind < 3; kind++)
		UNIT_TRUE(!plx_req_is_done(f[kind]));
	UNIT_END(&u, flush(0, PLX_FLUSH_EP, &u.to[0][0]), 0); /* another's is not held up */
	fake_block(unit_queue(&u, 0), false);
	unit_turns(&u, 5);
	UNIT_TRUE(plx_req_is_done(f[PLX_FLUSH_EP]));
	UNIT_TRUE(plx_req_is_done(f[PLX_FLUSH_WORKER]));
	UNIT_TRUE(!plx_req_is_done(f[PLX_FLUSH_CLOSE])); /* an answer is missing */
	recv = unit_recv(&u, 1, to, LEN, 5, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, sync, 0);
	UNIT_END(&u, send, 0);
	for (unsigned kind = 0; kind < 3; kind++)
		UNIT_END(&u, f[kind], 0);
	recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	unit_workers_close(&u);
}

static unsigned n_flushed;

static void
flush_again(struct plx_req *req)
{
	n_flushed++;
	plx_req_put(req);
	if (n_flushed < 8) {
		struct plx_req *again = plx_req_get(&u.w[0]->reqs);

		again->done = flush_again;
		plx_worker_flush(u.w[0], PLX_FLUSH_WORKER, NULL, again);
	}
}

static void
a_flush_may_be_asked_for_when_a_flush_is_done(void)
{
	struct plx_req *send, *recv;

	begin();
	unit_workers_open(&u, 2);
	n_flushed = 0;
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 4), 0);
	fake_block(unit_queue(&u, 0), true);
	send = unit_send(&u, 0, 1, from, 10, 4, false);
	for (unsigned i = 0; i < 4; i++) {
		struct plx_req *f = plx_req_get(&u.w[0]->reqs);

		f->done = flush_again;
		plx_worker_flush(u.w[0], PLX_FLUSH_WORKER, NULL, f);
	}
	fake_block(unit_queue(&u, 0), false);
	unit_turns(&u, 20);
	UNIT_EQ(n_flushed, 11); /* the four, and seven more */
	UNIT_TRUE(TAILQ_EMPTY(&u.w[0]->flushes));
	UNIT_END(&u, send, 0);
	for (unsigned i = 0; i < 2; i++) {
		recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		UNIT_END(&u, recv, 0);
	}
	unit_workers_close(&u);
}

/* What is sent behind a flush of the worker does not hold it up. */
static void
a_flush_of_the_worker_ends_though_sends_go_on(void)
{
	struct plx_req *sends[200], *f, *recv;
	unsigned n = 0;

	begin();
	fake.depth = 1;
	unit_workers_open(&u, 2);
	while (n < 50)
		sends[n++] = unit_send(&u, 0, 1, from, 10, 4, false);
	f = flush(0, PLX_FLUSH_WORKER, NULL);
	while (n < 200 && !plx_req_is_done(f)) {
		sends[n++] = unit_send(&u, 0, 1, from, 10, 4, false);
		unit_turns(&u, 1);
		UNIT_TRUE(!TAILQ_EMPTY(&u.w[0]->eps.stalled));
	}
	UNIT_END(&u, f, 0);
	UNIT_TRUE(n < 200);
	for (unsigned i = 0; i < n; i++) {
		UNIT_END(&u, sends[i], 0);
		recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		UNIT_END(&u, recv, 0);
	}
	unit_workers_close(&u);
}

static const uint8_t *
addr_of(unsigned i)
{
	static uint8_t addr[PLX_WIRE_ADDR_MAX];

	UNIT_TRUE_FATAL(plx_worker_addr(u.w[i], addr, sizeof(addr)) > 0);
	return addr;
}

static void
a_flush_answers_the_error_of_what_has_failed(void)
{
	struct plx_req *before[2];
	struct plx_req *send;

	begin();
	unit_workers_open(&u, 3);
	fake_block(unit_queue(&u, 0), true);
	send = unit_send(&u, 0, 1, from, 10, 4, false);
	before[0] = flush(0, PLX_FLUSH_EP, &u.to[0][1]);
	before[1] = flush(0, PLX_FLUSH_WORKER, NULL);
	unit_kill(&u, 1);
	unit_check_peers(u.w[0]);
	unit_turns(&u, 2);
	fake_block(unit_queue(&u, 0), false);
	UNIT_END(&u, before[0], -ECONNRESET);
	UNIT_END(&u, before[1], -ECONNRESET);
	UNIT_END(&u, send, -ECONNRESET);
	for (unsigned i = 0; i < 2; i++) { /* as long as the handle is open */
		UNIT_END(&u, flush(0, PLX_FLUSH_EP, &u.to[0][1]), -ECONNRESET);
		UNIT_END(&u, flush(0, PLX_FLUSH_WORKER, NULL), -ECONNRESET);
	}
	UNIT_END(&u, flush(0, PLX_FLUSH_EP, &u.to[0][2]), 0);
	UNIT_END(&u, flush(0, PLX_FLUSH_CLOSE, &u.to[0][1]), 0); /* it is closed all the same */
	plx_worker_ep_put(u.w[0], &u.to[0][1]);
	UNIT_END(&u, flush(0, PLX_FLUSH_WORKER, NULL), 0);
	UNIT_EQ_FATAL(plx_worker_ep_get(u.w[0], addr_of(2), &u.to[0][1]), 0); /* for the end */
	unit_workers_close(&u);
}

/* -- no memory to answer -- */

/* The receiver's pools grow no more, and its device takes nothing: what it cannot answer it leaves there. */
static void
without_memory_for_answers_nothing_is_received_and_nothing_lost(void)
{
	enum { N = 3 * PLX_EPS_CTL_RESERVE };
	static struct plx_req *sends[N], *recvs[N];
	unsigned n_done = 0;

	begin();
	unit_workers_open(&u, 2);
	UNIT_END(&u, unit_send(&u, 1, 0, from, 8, 1, false), 0); /* so that it is connected */
	UNIT_END(&u, unit_recv(&u, 0, to, LEN, 1, UNIT_EXACT), 0);
	u.w[1]->eps.ctl.max_objs = u.w[1]->eps.ctl.n_objs;
	fake_block(unit_queue(&u, 1), true);
	for (unsigned i = 0; i < N; i++) {
		recvs[i] = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		sends[i] = unit_send(&u, 0, 1, from, 8, 4, true);
	}
	unit_turns(&u, N);
	for (unsigned i = 0; i < N; i++) {
		n_done += plx_req_is_done(recvs[i]);
		UNIT_TRUE(!plx_req_is_done(sends[i]));
	}
	UNIT_TRUE(n_done > 0 && n_done < N); /* it has stopped receiving */
	UNIT_TRUE(u.w[1]->eps.stat.rx_held > 0);
	UNIT_EQ(u.to[1][0].ep->err, 0);
	fake_block(unit_queue(&u, 1), false);
	for (unsigned i = 0; i < N; i++) {
		UNIT_END(&u, sends[i], 0);
		UNIT_END(&u, recvs[i], 0);
	}
	unit_workers_close(&u);
}

/* -- callbacks -- */

static unsigned n_inner, n_called;

static void
ask_for_progress(struct plx_req *req)
{
	n_called++;
	n_inner += plx_worker_progress(u.w[1]);
	plx_req_put(req);
	if (n_called < 50) { /* and go on */
		struct plx_req *next = plx_req_get(&u.w[1]->reqs);

		next->done = ask_for_progress;
		plx_worker_tag_recv(u.w[1], to, LEN, 4, UNIT_EXACT, next);
	}
}

static void
a_callback_may_do_anything_but_take_a_turn(void)
{
	struct plx_req *recv;

	begin();
	unit_workers_open(&u, 2);
	n_inner = n_called = 0;
	recv = plx_req_get(&u.w[1]->reqs);
	recv->done = ask_for_progress;
	plx_worker_tag_recv(u.w[1], to, LEN, 4, UNIT_EXACT, recv);
	for (unsigned i = 0; i < 50; i++)
		UNIT_END(&u, unit_send(&u, 0, 1, from, i * 100, 4, i % 3 == 0), 0);
	unit_turns(&u, 10);
	UNIT_EQ(n_called, 50);
	UNIT_EQ(n_inner, 0);
	unit_workers_close(&u);
}

/* -- death -- */

static void
when_a_peer_dies_all_that_waits_for_it_fails_once(void)
{
	struct plx_req *big, *sync, *eager[50], *f, *recv;

	begin();
	unit_workers_open(&u, 3);
	recv = unit_recv(&u, 0, to, LEN, 4, UNIT_EXACT); /* waits for nobody in particular */
	big = unit_send(&u, 0, 1, from, LEN, 1, false);
	sync = unit_send(&u, 0, 1, from, 10, 1, true);
	fake_block(unit_queue(&u, 0), true);
	for (unsigned i = 0; i < 50; i++)
		eager[i] = unit_send(&u, 0, 1, from, i * 200, 1, false);
	f = flush(0, PLX_FLUSH_CLOSE, &u.to[0][1]);
	fake_block(unit_queue(&u, 0), false);
	unit_kill(&u, 1);
	unit_turns(&u, 3);
	unit_check_peers(u.w[0]);
	unit_turns(&u, 3);
	UNIT_END(&u, big, -ECONNRESET);
	UNIT_END(&u, sync, -ECONNRESET);
	for (unsigned i = 0; i < 50; i++)
		UNIT_END(&u, eager[i], -ECONNRESET);
	UNIT_TRUE(plx_req_is_done(f));
	plx_req_put(f);
	UNIT_EQ(u.w[0]->n_failed, 1);
	UNIT_EQ(u.to[0][1].ep->err, -ECONNRESET);
	UNIT_EQ(u.to[0][2].ep->err, 0);
	UNIT_EQ(plx_worker_tag_send_now(u.w[0], u.to[0][1].ep, from, 8, 1), -ECONNRESET);
	UNIT_END(&u, unit_send(&u, 0, 1, from, LEN, 1, true), -ECONNRESET);
	UNIT_END(&u, unit_send(&u, 0, 1, from, 8, 1, false), -ECONNRESET);
	UNIT_TRUE(recv->posted);
	UNIT_END(&u, unit_send(&u, 2, 0, from, 8, 4, false), 0); /* others go on */
	UNIT_END(&u, recv, 0);
	for (unsigned i = 0; i < 10; i++)
		unit_check_peers(u.w[0]);
	UNIT_EQ(u.w[0]->n_failed, 1);
	unit_workers_close(&u);
}

static void
a_message_cut_off_by_death_ends_its_receive(void)
{
	for (unsigned turns = 0; turns < 25; turns++) {
		struct plx_req *recv, *send;

		begin();
		fake_reset(turns);
		fake.depth = 1;
		unit_workers_open(&u, 2);
		if (turns % 2)
			recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		send = unit_send(&u, 0, 1, from, 19000, 4, false);
		unit_turns(&u, turns);
		if (turns % 2 == 0)
			recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);
		(void)send;
		unit_kill(&u, 0);
		for (unsigned i = 0; i < 3; i++) {
			unit_turns(&u, 5);
			unit_check_peers(u.w[1]);
		}
		unit_turns(&u, 5);
		if (recv->posted)
			plx_worker_cancel(u.w[1], recv);
		UNIT_TRUE_FATAL(plx_req_is_done(recv));
		if (recv->status == 0)
			UNIT_SAME(to, from, 19000);
		else
			UNIT_TRUE(recv->status < 0);
		plx_req_put(recv);
		unit_workers_close(&u);
	}
}

static void
what_a_dead_peer_sent_whole_can_still_be_received(void)
{
	struct plx_req *recv[3];

	begin();
	unit_workers_open(&u, 2);
	unit_send(&u, 0, 1, from, 100, 1, false);
	unit_send(&u, 0, 1, from, 100, 2, true);
	unit_send(&u, 0, 1, from, LEN, 3, false);
	unit_turns(&u, 3);
	unit_kill(&u, 0);
	unit_turns(&u, 3);
	unit_check_peers(u.w[1]);
	unit_turns(&u, 3);
	for (unsigned i = 0; i < 3; i++)
		recv[i] = unit_recv(&u, 1, to, LEN, i + 1, UNIT_EXACT);
	unit_turns(&u, 3);
	UNIT_END(&u, recv[0], 0);
	UNIT_END(&u, recv[1], 0);
	UNIT_END(&u, recv[2], -ECONNRESET); /* its data was there */
	unit_workers_close(&u);
}

static void
after_a_cancel_an_ep_is_used_again(void)
{
	struct plx_req *send[4], *recv;

	begin();
	unit_workers_open(&u, 2);
	fake_block(unit_queue(&u, 0), true);
	send[0] = unit_send(&u, 0, 1, from, LEN, 1, false);
	send[1] = unit_send(&u, 0, 1, from, 10, 1, true);
	send[2] = unit_send(&u, 0, 1, from, 10, 1, false);
	send[3] = unit_send(&u, 0, 1, from, 20000, 1, false);
	plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
	for (unsigned i = 0; i < 4; i++)
		UNIT_END(&u, send[i], -ECANCELED);
	fake_block(unit_queue(&u, 0), false);
	send[0] = unit_send(&u, 0, 1, from, LEN, 2, false);
	recv = unit_recv(&u, 1, to, LEN, 0, 0);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send[0], 0);
	UNIT_SAME(to, from, LEN);
	unit_workers_close(&u);
}

static void
a_mtu_that_falls_when_connecting_is_kept_to(void)
{
	const uint64_t lens[] = {8, 112, 200, 1000, 5000, LEN};

	begin();
	fake.connect_mtu = 200;
	unit_workers_set(&u, "rndv.scheme", "frag");
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 6; i++) {
		for (unsigned sync = 0; sync < 2; sync++) {
			struct plx_req *send = unit_send(&u, 0, 1, from, lens[i], 4, sync);
			struct plx_req *recv = unit_recv(&u, 1, to, LEN, 4, UNIT_EXACT);

			UNIT_END(&u, recv, 0);
			UNIT_END(&u, send, 0);
			UNIT_SAME(to, from, lens[i]);
		}
	}
	unit_workers_close(&u);
}

static void
messages_of_channels_to_a_worker_without_are_counted(void)
{
	static const struct {
		uint8_t op;
		uint32_t len;
	} msgs[] = {
		{PLX_WIRE_CHAN_MSG, sizeof(struct plx_wire_chan_msg) + 8},
		{PLX_WIRE_CHAN_LOSSY, sizeof(struct plx_wire_chan) + 8},
		{PLX_WIRE_CHAN_ANSWER, sizeof(struct plx_wire_chan_answer)},
	};
	const uint8_t bytes[64] = {0};

	begin();
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 3; i++)
		fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), msgs[i].op, bytes, msgs[i].len);
	unit_turns(&u, 3);
	UNIT_EQ(u.w[0]->chans.stat.rx_drop_no_chan, 1); /* which is looked up first */
	UNIT_EQ(u.w[0]->stat.rx_drop_bad_op, 2);
	unit_workers_close(&u);
}

static void
a_worker_says_what_it_is(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	begin();
	unit_workers_open(&u, 2);
	plx_worker_dump(f, u.w[0]);
	fclose(f);
	for (const struct plx_stat_row *row = plx_worker_stat_rows; row->name != NULL; row++)
		CU_ASSERT(strstr(text, row->name) != NULL);
	for (const struct plx_stat_row *row = plx_queue_stat_rows; row->name != NULL; row++)
		CU_ASSERT(strstr(text, row->name) != NULL);
	free(text);
	unit_workers_close(&u);
}

static void
a_worker_without_turns_has_an_age(void)
{
	uint64_t before = rte_rdtsc(), looked;

	begin();
	unit_workers_open(&u, 1);
	looked = u.w[0]->waits_of.looked_ticks;
	CU_ASSERT(looked >= before && looked <= rte_rdtsc());
	unit_workers_close(&u);
}

/* Which peer can't be reached is logged once, device by device; what the peer wrote is printed as text. */
static void
the_log_says_for_each_device_why_it_does_not_reach_a_peer(void)
{
	struct plx_wire_addr addr = {.uid = 1, .n_devs = 2};
	struct plx_ep_user user = {.ep = NULL};
	uint8_t packed[PLX_WIRE_ADDR_MAX];
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	begin();
	unit_workers_open(&u, 1);
	memcpy(addr.devs[0].name, "a\x1b\n\xff", 5);
	memcpy(addr.devs[1].name, "fake", 5);
	addr.devs[1].len = 16;
	memset(addr.devs[1].bytes, 0x55, 16);
	UNIT_TRUE_FATAL(plx_wire_addr_pack(&addr, packed, sizeof(packed)) > 0);
	rte_openlog_stream(f);
	plx_log_set_level(RTE_LOG_WARNING);
	UNIT_EQ(plx_worker_ep_get(u.w[0], packed, &user), -EHOSTUNREACH);
	plx_log_set_level(RTE_LOG_EMERG);
	rte_openlog_stream(NULL);
	fclose(f);
	CU_ASSERT(strstr(text, "can't reach a peer: a???: this worker has no such device; "
			       "fake: No route to host\n") != NULL);
	free(text);
	unit_workers_close(&u);
}

static void
a_device_that_may_lose_messages_has_no_worker(void)
{
	struct plx_worker_params params = {.conf = &u.conf};
	struct plx_worker *w;

	unit_workers_conf(&u);
	for (unsigned i = 0; i < 2; i++) {
		fake.caps &= ~(uint32_t)(i == 0 ? PLX_DEV_RELIABLE : PLX_DEV_ORDERED);
		UNIT_EQ(plx_worker_create(&params, &w), -EPROTONOSUPPORT);
		fake.caps |= PLX_DEV_RELIABLE | PLX_DEV_ORDERED;
	}
}

static void
without_a_device_there_is_no_worker(void)
{
	struct plx_worker_params params = {.conf = &u.conf};
	struct plx_worker *w = NULL;

	begin();
	unit_workers_set(&u, "worker.devices", "none,nor_this");
	UNIT_EQ(plx_worker_create(&params, &w), -ENODEV);
	CU_ASSERT_PTR_NULL(w);
	unit_workers_set(&u, "worker.devices", "none, fake");
	UNIT_EQ_FATAL(plx_worker_create(&params, &w), 0);
	UNIT_EQ(w->n_queues, 1);
	plx_worker_destroy(w);
	plx_worker_destroy(NULL);
}

/* A peer that guesses the number of a connection being made cannot close it. */
static void
only_who_is_connected_to_closes_a_handle_before_it_is_connected(void)
{
	struct plx_wire_ep_close h = {.conn_id = PLX_WIRE_CONN_ID_MIN + 7};
	struct plx_ep_stub stub;
	struct plx_ep *real;

	unit_workers_conf(&u);
	unit_workers_open(&u, 3);
	real = u.to[0][1].ep;
	for (unsigned from = 1; from < 3; from++) {
		u.to[0][from].ep->peer->proc = from;
		plx_ep_stub_open(&stub, &u.w[0]->eps, h.conn_id);
		worker_on_ep_close(u.w[0], u.to[0][from].ep->peer, &h);
		UNIT_TRUE(stub.closed);
		plx_ep_stub_connect(&stub, real);
		UNIT_EQ(plx_ep_stub_was_closed(&stub), from == 1);
		plx_ep_stub_close(&stub);
	}
	unit_workers_close(&u);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(order_is_that_of_the_sends_whatever_the_protocol),
	UNIT_TEST(beyond_a_bound_tagged_messages_wait_unannounced_and_in_order),
	UNIT_TEST(what_is_held_can_be_cancelled_with_its_handle),
	UNIT_TEST(what_waits_to_go_unasked_is_announced_when_the_peer_says_so),
	UNIT_TEST(who_goes_on_sending_when_told_to_stop_is_refused),
	UNIT_TEST(a_peer_names_so_many_streams_and_no_more),
	UNIT_TEST(a_peer_wants_answers_to_so_many_handles_and_no_more),
	UNIT_TEST(active_messages_that_nobody_takes_stay_in_the_device_at_last),
	UNIT_TEST(a_short_send_that_finds_nothing_in_its_way_is_done_at_once),
	UNIT_TEST(a_turn_that_takes_a_message_asks_for_the_line_of_the_answer),
	UNIT_TEST(what_callbacks_of_a_burst_send_goes_together_at_the_end_of_the_turn),
	UNIT_TEST(a_worker_sends_to_itself),
	UNIT_TEST(an_idle_worker_naps_while_processors_move_its_data),
	UNIT_TEST(an_idle_worker_offers_its_core_behind_progress_and_not_in_it),
	UNIT_TEST(how_an_idle_worker_waits_is_a_setting_or_learned),
	UNIT_TEST(a_dedicated_worker_offers_the_core_as_often_as_it_is_taken),
	UNIT_TEST(after_a_lone_operation_the_next_worker_comes_first),
	UNIT_TEST(while_turns_are_granted_posts_run_at_once_and_progress_gives_turns),
	UNIT_TEST(a_long_operation_returns_turns_that_are_granted),
	UNIT_TEST(callbacks_of_granted_turns_run_in_them_and_what_they_call_is_told_behind_it),
	UNIT_TEST(a_callback_in_granted_turns_cancels_what_was_posted_to_the_reactor),
	UNIT_TEST(a_callback_in_granted_turns_sends_behind_what_was_posted_to_the_reactor),
	UNIT_TEST(while_turns_are_granted_short_sends_go_out_at_once_behind_those_before),
	UNIT_TEST(while_turns_are_granted_a_flush_of_nothing_ends_at_once),
	UNIT_TEST(while_turns_are_granted_bytes_that_are_here_are_received_at_once),
	UNIT_TEST(a_probe_asks_no_reactor_that_has_kept_nothing),
	UNIT_TEST(who_sends_and_does_not_wait_gives_turns_but_none_between_receives),
	UNIT_TEST(a_plain_post_enters_turns_that_are_granted_when_nothing_is_before_it),
	UNIT_TEST(turns_that_are_granted_do_not_say_that_the_reactor_ran_posts),
	UNIT_TEST(who_posts_plainly_gives_turns_too_and_wakes_who_sleeps),
	UNIT_TEST(a_post_moves_no_long_data),
	UNIT_TEST(a_post_leaves_what_is_announced_to_the_next_turn),
	UNIT_TEST(who_takes_turns_of_a_reactor_that_sleeps_looks_whether_it_still_may),
	UNIT_TEST(who_waits_for_a_receiver_that_it_woke_leaves_it_the_core),
	UNIT_TEST(who_naps_is_woken_by_what_it_is_told),
	UNIT_TEST(an_application_elsewhere_is_told_before_the_sender_is),
	UNIT_TEST(a_long_operation_has_the_core_offered_soon_again),
	UNIT_TEST(a_reader_with_one_receive_at_a_time_is_given_time_to_post_the_next),
	UNIT_TEST(a_sync_send_is_done_when_it_is_matched_and_not_before),
	UNIT_TEST(a_cancelled_receive_matches_nothing),
	UNIT_TEST(what_is_matched_already_is_not_cancelled),
	UNIT_TEST(a_probe_tells_and_takes),
	UNIT_TEST(a_receive_now_takes_only_what_is_here_in_full),
	UNIT_TEST(a_receive_meets_a_message_that_is_still_arriving),
	UNIT_TEST(fragments_of_many_messages_do_not_mix),
	UNIT_TEST(a_message_too_long_is_cut_and_told),
	UNIT_TEST(large_eager_messages_are_kept_however_large),
	UNIT_TEST(a_flush_ends_when_what_was_before_it_has_left),
	UNIT_TEST(a_flush_may_be_asked_for_when_a_flush_is_done),
	UNIT_TEST(a_flush_of_the_worker_ends_though_sends_go_on),
	UNIT_TEST(a_flush_answers_the_error_of_what_has_failed),
	UNIT_TEST(without_memory_for_answers_nothing_is_received_and_nothing_lost),
	UNIT_TEST(a_callback_may_do_anything_but_take_a_turn),
	UNIT_TEST(when_a_peer_dies_all_that_waits_for_it_fails_once),
	UNIT_TEST(a_message_cut_off_by_death_ends_its_receive),
	UNIT_TEST(what_a_dead_peer_sent_whole_can_still_be_received),
	UNIT_TEST(after_a_cancel_an_ep_is_used_again),
	UNIT_TEST(a_mtu_that_falls_when_connecting_is_kept_to),
	UNIT_TEST(messages_of_channels_to_a_worker_without_are_counted),
	UNIT_TEST(a_worker_says_what_it_is),
	UNIT_TEST(a_worker_without_turns_has_an_age),
	UNIT_TEST(the_log_says_for_each_device_why_it_does_not_reach_a_peer),
	UNIT_TEST(a_device_that_may_lose_messages_has_no_worker),
	UNIT_TEST(without_a_device_there_is_no_worker),
	UNIT_TEST(only_who_is_connected_to_closes_a_handle_before_it_is_connected),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"worker", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
