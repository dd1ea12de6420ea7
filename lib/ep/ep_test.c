/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ep_test.c - order under a full device, and everything that waits fails once
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "plx_ep.h"
#include "plx_unit.h"

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *a, *b;
static struct plx_eps eps;
static struct plx_ep *ep; /* of a, to b */
static unsigned n_failed;
static int failed_err;

static void
on_failed(struct plx_ep *failed, int err)
{
	CU_ASSERT_PTR_EQUAL(failed, ep);
	failed_err = err;
	n_failed++;
}

static void
begin_with(uint64_t eager_end, bool eager_auto, uint32_t device_max)
{
	struct plx_peer *peer;
	struct plx_addr addr;

	plx_conf_defaults(&conf);
	fake_reset(7);
	UNIT_EQ_FATAL(plx_dev_open("fake", &conf, &dev), 0);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &a), 0);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &b), 0);
	plx_eps_open(&eps, on_failed);
	eps.eager_end = eager_end;
	eps.eager_auto = eager_auto;
	a->eager_max = device_max;
	plx_queue_addr(b, &addr);
	UNIT_EQ_FATAL(plx_peer_get(a, &addr, &peer), 0);
	ep = plx_ep_of(&eps, peer);
	CU_ASSERT_FATAL(ep != NULL);
	CU_ASSERT_PTR_EQUAL(plx_ep_of(&eps, peer), ep);
	plx_peer_put(peer);
	UNIT_EQ(peer->refs, 1); /* the ep's */
	n_failed = 0;
}

static void
begin(void)
{
	begin_with(0, false, 0);
}

static void
end(void)
{
	if (ep != NULL)
		UNIT_TRUE(TAILQ_EMPTY(&ep->pending) && TAILQ_EMPTY(&ep->waits.head));
	UNIT_EQ(eps.ctl.n_free, eps.ctl.n_objs);
	plx_eps_close(&eps);
	plx_queue_close(a);
	plx_queue_close(b);
	plx_dev_close(dev);
}

/* What b received: the opcode and first 8 bytes of each. */
static uint64_t
take(uint64_t next)
{
	struct plx_rx rx[4];
	uint16_t n;

	while ((n = b->rx_burst(b, rx, 4)) != 0) {
		for (uint16_t k = 0; k < n; k++, next++) {
			uint64_t v;

			UNIT_EQ_FATAL(rx[k].len, 16);
			memcpy(&v, rx[k].data, sizeof(v));
			UNIT_EQ_FATAL(v, next);
			UNIT_EQ(rx[k].op, (uint8_t)next);
		}
		b->rx_release(b, rx, n);
	}
	return next;
}

struct item {
	struct plx_pend pend;
	struct plx_wait wait;
	uint64_t number;
	unsigned sent, failed;
	int err;
};

static int
item_send(struct plx_pend *p)
{
	struct item *it = (struct item *)p;
	uint64_t hdr[2] = {it->number, 0};
	struct plx_tx tx = {.peer = ep->peer, .hdr = hdr, .hdr_len = 16, .op = (uint8_t)it->number};
	int rc = plx_peer_tx(&tx);

	it->sent += rc == 0;
	return rc;
}

static void
item_fail(struct plx_pend *p, int err)
{
	struct item *it = (struct item *)p;

	it->failed++;
	it->err = err;
}

static void
item_wait_fail(struct plx_wait *w, int err)
{
	struct item *it = container_of(w, struct item, wait);

	CU_ASSERT_PTR_NULL(w->list); /* it waits no more */
	it->failed++;
	it->err = err;
}

static void
order_is_kept_when_the_device_is_full(void)
{
	static struct item items[3000];
	uint64_t next = 0;

	begin();
	fake.full_percent = 60;
	fake.depth = 7;
	fake.delay_max = 2;
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t hdr[2] = {i, 0};

		if (i % 3 != 0) { /* control messages: copied when they must wait */
			UNIT_EQ_FATAL(plx_ep_tx_ctl(ep, (uint8_t)i, hdr, 16), 0);
			memset(hdr, 0xff, sizeof(hdr));
		} else {
			UNIT_EQ_FATAL(plx_ep_connect(ep), 0);
			items[i] = (struct item){.pend = {.send = item_send, .fail = item_fail},
				.number = i};
			if (!plx_ep_open(ep) || item_send(&items[i].pend) != 0)
				plx_ep_pend(ep, &items[i].pend);
		}
		if (i % 5 == 0) {
			plx_eps_flush(&eps);
			next = take(next);
		}
	}
	UNIT_TRUE(eps.stat.tx_pending > 100);
	for (unsigned i = 0; i < 100000 && next < 3000; i++) {
		plx_eps_flush(&eps);
		next = take(next);
	}
	UNIT_EQ(next, 3000);
	for (uint64_t i = 0; i < 3000; i += 3)
		CU_ASSERT_FATAL(items[i].sent == 1 && items[i].failed == 0);
	UNIT_TRUE(TAILQ_EMPTY(&eps.stalled) && !ep->stalled);
	end();
}

static void
nothing_overtakes_what_waits(void)
{
	struct item it = {.pend = {.send = item_send, .fail = item_fail}};
	uint64_t hdr[2] = {1, 0};

	begin();
	UNIT_TRUE(!plx_ep_open(ep)); /* not connected yet */
	UNIT_EQ(plx_ep_connect(ep), 0);
	UNIT_TRUE(plx_ep_open(ep));
	fake_block(a, true);
	UNIT_EQ(item_send(&it.pend), -EAGAIN);
	plx_ep_pend(ep, &it.pend);
	fake_block(a, false);
	UNIT_TRUE(!plx_ep_open(ep)); /* though the device would take it */
	UNIT_EQ(plx_ep_tx_ctl(ep, 1, hdr, 16), 0);
	UNIT_EQ(fake_on_the_way(a, b), 0);
	UNIT_EQ(plx_eps_flush(&eps), 2);
	UNIT_EQ(take(0), 2);
	UNIT_TRUE(plx_ep_open(ep));
	end();
}

#define ITEMS 10

static struct item pends[ITEMS], waits[ITEMS];

static void
items_wait(void)
{
	uint64_t hdr[2] = {0, 0};

	UNIT_EQ(plx_ep_connect(ep), 0);
	fake_block(a, true);
	for (unsigned i = 0; i < ITEMS; i++) {
		pends[i] = (struct item){.pend = {.send = item_send, .fail = item_fail}};
		waits[i] = (struct item){.number = 0};
		pends[i].pend.conn_id = 7;
		plx_ep_pend(ep, &pends[i].pend);
		plx_ep_wait(ep, &waits[i].wait, 7, item_wait_fail);
		UNIT_EQ(plx_ep_tx_ctl(ep, 1, hdr, 16), 0);
	}
	UNIT_EQ(ep->n_waits, ITEMS);
	plx_ep_wait_end(&waits[3].wait); /* this one had its answer */
	plx_ep_wait_end(&waits[3].wait);
	UNIT_EQ(ep->n_waits, ITEMS - 1);
	UNIT_EQ(plx_eps_flush(&eps), 0);
}

static void
items_have_failed(int err)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		UNIT_EQ(pends[i].failed, 1);
		UNIT_EQ(pends[i].sent, 0);
		UNIT_EQ(pends[i].err, err);
		UNIT_EQ(waits[i].failed, i != 3);
		UNIT_EQ(waits[i].err, i != 3 ? err : 0);
	}
	UNIT_EQ(ep->n_waits, 0);
}

static void
failure_ends_everything_once(void)
{
	uint64_t hdr[2] = {0, 0};

	begin();
	items_wait();
	plx_ep_fail(ep, -ECONNRESET);
	items_have_failed(-ECONNRESET);
	UNIT_EQ(n_failed, 1);
	UNIT_EQ(failed_err, -ECONNRESET);
	UNIT_EQ(ep->err, -ECONNRESET);
	plx_ep_fail(ep, -EIO); /* it has failed already */
	items_have_failed(-ECONNRESET);
	UNIT_EQ(n_failed, 1);
	UNIT_EQ(eps.stat.eps_failed, 1);
	UNIT_TRUE(!plx_ep_open(ep));
	UNIT_EQ(plx_ep_connect(ep), -ECONNRESET);
	UNIT_EQ(plx_ep_tx_ctl(ep, 1, hdr, 16), -ECONNRESET);
	UNIT_EQ(plx_eps_flush(&eps), 0);
	UNIT_TRUE(TAILQ_EMPTY(&eps.stalled));
	end();
}

static void
a_cancel_ends_what_one_handle_sent_and_nothing_else(void)
{
	struct item other = {.pend = {.send = item_send, .fail = item_fail, .conn_id = 8}};
	struct item other_wait = {.number = 0};
	struct plx_rx rx[PLX_DEV_RX_BURST];

	begin();
	items_wait();
	plx_ep_pend(ep, &other.pend);
	plx_ep_wait(ep, &other_wait.wait, 8, item_wait_fail);
	UNIT_TRUE(plx_ep_has_pending(ep, 7) && plx_ep_has_pending(ep, 8));
	plx_ep_cancel(ep, 9, -ECANCELED); /* nobody's */
	UNIT_EQ(pends[0].failed + waits[0].failed, 0);
	plx_ep_cancel(ep, 7, -ECANCELED);
	UNIT_EQ(ep->n_waits, 1);
	UNIT_TRUE(!plx_ep_has_pending(ep, 7) && plx_ep_has_pending(ep, 8));
	UNIT_EQ(other_wait.failed, 0);
	plx_ep_wait_end(&other_wait.wait);
	items_have_failed(-ECANCELED);
	UNIT_EQ(n_failed, 0);
	UNIT_EQ(ep->err, 0);
	fake_block(a, false);
	UNIT_EQ(plx_eps_flush(&eps), ITEMS + 1); /* control messages are of no handle */
	UNIT_EQ(other.sent, 1);
	UNIT_EQ(fake_on_the_way(a, b), ITEMS + 1);
	UNIT_EQ(b->rx_burst(b, rx, PLX_DEV_RX_BURST), ITEMS + 1);
	b->rx_release(b, rx, ITEMS + 1);
	UNIT_TRUE(!plx_ep_has_pending(ep, 8));
	end();
}

static unsigned n_passed;

static void
passed(void *arg)
{
	n_passed++;
	UNIT_TRUE(arg == &n_passed);
}

static void
a_mark_is_passed_behind_what_was_queued(void)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];

	begin();
	n_passed = 0;
	items_wait();
	UNIT_EQ(plx_ep_mark(ep, passed, &n_passed), 0);
	UNIT_EQ(plx_eps_flush(&eps), 0);
	UNIT_EQ(n_passed, 0);
	fake_block(a, false);
	plx_eps_flush(&eps);
	UNIT_EQ(n_passed, 1);
	while (b->rx_burst(b, rx, 1) == 1)
		b->rx_release(b, rx, 1);
	plx_ep_fail(ep, -ECONNRESET);
	end();
}

static void
a_device_may_send_more_without_asking(void)
{
	static const struct {
		uint64_t end;
		bool is_auto;
		uint32_t device;
		uint64_t want;
	} rows[] = {{101, true, 0, 101}, {101, true, 100, 101}, {101, true, 1000, 1001}, {101, false, 1000, 101},
		{0, false, 1000, 0}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		begin_with(rows[i].end, rows[i].is_auto, rows[i].device);
		UNIT_EQ(ep->eager_own, rows[i].want);
		UNIT_EQ(ep->eager_end, rows[i].want);
		plx_ep_on_flow(ep, &(struct plx_wire_flow){.stop = 1});
		UNIT_EQ(ep->eager_end, 0);
		plx_ep_on_flow(ep, &(struct plx_wire_flow){.stop = 0});
		UNIT_EQ(ep->eager_end, rows[i].want);
		end();
	}
}

/* A tagged message that is to be eager, as the worker sends it. */
static int
unasked_send(struct plx_pend *p)
{
	struct item *it = (struct item *)p;

	if (ep->eager_end != 0)
		return item_send(p);
	if (it->err != 0)
		return it->err;
	p->send = item_send;
	return plx_ep_announce_early(ep, p) ? item_send(p) : 0;
}

static void
tell(uint32_t stop)
{
	plx_ep_on_flow(ep, &(struct plx_wire_flow){.stop = stop});
}

static void
item_pends(struct item *it, uint64_t number, enum plx_pend_order order)
{
	*it = (struct item){.pend = {.send = order == PLX_PEND_UNASKED ? unasked_send : item_send,
		.fail = item_fail, .conn_id = 7}, .number = number};
	if (order != PLX_PEND_ANNOUNCED || plx_ep_announce(ep, &it->pend))
		plx_ep_pend_as(ep, &it->pend, order);
}

/* The peer wants all announced while messages wait for the device, and as many are as may be. */
static void
begin_announced(uint32_t n)
{
	begin();
	n_passed = 0;
	ep->eager_end = ep->eager_own = 100;
	UNIT_EQ(plx_ep_connect(ep), 0);
	fake_block(a, true);
	ep->n_announced = n;
}

static void
flush_announced(void)
{
	tell(PLX_WIRE_FLOW_ANNOUNCE);
	fake_block(a, false);
	plx_eps_flush(&eps);
}

/* Each place that gets free lets one go. @return the number of the next message that came */
static uint64_t
announced_end(uint64_t next)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		plx_ep_announce_end(ep);
		plx_eps_flush(&eps);
		next = take(next);
	}
	return next;
}

static void
a_mark_is_not_passed_before_what_is_held_ahead_of_it(void)
{
	uint64_t hdr[2] = {0, 0};

	begin_announced(PLX_EP_MAX_ANNOUNCED);
	item_pends(&pends[0], 1, PLX_PEND_UNASKED);
	UNIT_EQ(plx_ep_mark(ep, passed, &n_passed), 0);
	UNIT_EQ(plx_ep_tx_ctl(ep, 0, hdr, 16), 0);
	item_pends(&pends[1], 2, PLX_PEND_UNASKED);
	UNIT_EQ(plx_ep_mark(ep, passed, &n_passed), 0);
	flush_announced();
	UNIT_EQ(take(0), 1); /* the control message only */
	UNIT_EQ(n_passed, 0);
	UNIT_EQ(ep->eager_end, 0);
	plx_ep_announce_end(ep);
	plx_eps_flush(&eps);
	UNIT_EQ(take(1), 2);
	UNIT_EQ(n_passed, 1);
	plx_ep_announce_end(ep);
	plx_eps_flush(&eps);
	UNIT_EQ(take(2), 3);
	UNIT_EQ(n_passed, 2);
	UNIT_EQ(ep->n_announced, PLX_EP_MAX_ANNOUNCED);
	end();
}

static void
one_that_is_announced_does_not_overtake_what_is_held(void)
{
	uint64_t hdr[2] = {0, 0};

	begin_announced(PLX_EP_MAX_ANNOUNCED - 1);
	item_pends(&pends[0], 1, PLX_PEND_UNASKED);
	UNIT_EQ(plx_ep_tx_ctl(ep, 0, hdr, 16), 0);
	item_pends(&pends[1], 2, PLX_PEND_UNASKED);
	item_pends(&pends[2], 3, PLX_PEND_ANNOUNCED); /* it has the last place */
	item_pends(&pends[3], 4, PLX_PEND_ANNOUNCED);
	UNIT_TRUE(!pends[2].pend.held && pends[3].pend.held);
	flush_announced();
	UNIT_EQ(take(0), 2); /* the first has got it */
	UNIT_EQ(ep->n_announced, PLX_EP_MAX_ANNOUNCED);
	tell(PLX_WIRE_FLOW_GO);
	UNIT_EQ(ep->eager_end, 0); /* nor is one eager */
	UNIT_EQ(announced_end(2), 5);
	UNIT_EQ(ep->eager_end, 100);
	UNIT_EQ(ep->n_announced, PLX_EP_MAX_ANNOUNCED - ITEMS + 3);
	end();
}

static void
what_is_held_can_be_taken_out_and_the_rest_goes_on(void)
{
	begin_announced(PLX_EP_MAX_ANNOUNCED);
	for (unsigned i = 0; i < 4; i++)
		item_pends(&pends[i], i, PLX_PEND_UNASKED);
	pends[2].err = -ENOMEM; /* it can't be announced */
	UNIT_EQ(plx_ep_mark(ep, passed, &n_passed), 0);
	flush_announced();
	UNIT_EQ(pends[2].failed, 1);
	UNIT_EQ(n_passed, 0);
	UNIT_TRUE(TAILQ_EMPTY(&ep->pending));
	plx_ep_unpend(ep, &pends[3].pend);
	plx_ep_unpend(ep, &pends[1].pend);
	UNIT_EQ(announced_end(0), 1);
	UNIT_EQ(n_passed, 1);
	UNIT_EQ(pends[1].sent + pends[3].sent, 0);
	item_pends(&pends[1], 1, PLX_PEND_ANY); /* lists are whole */
	plx_eps_flush(&eps);
	UNIT_EQ(take(1), 2);
	end();
}

static void
a_mark_is_passed_when_the_ep_fails(void)
{
	begin();
	n_passed = 0;
	items_wait();
	UNIT_EQ(plx_ep_mark(ep, passed, &n_passed), 0);
	plx_ep_fail(ep, -ECONNRESET);
	UNIT_EQ(n_passed, 1);
	end();
}

static void
what_a_closing_handle_sent_waits_by_itself(void)
{
	struct item other = {.number = 0};
	struct plx_wait_list list;
	uint64_t n;

	begin();
	items_wait();
	n = ep->n_waits;
	plx_ep_wait(ep, &other.wait, 8, item_wait_fail);
	plx_ep_closing_begin(ep, 8, &list);
	UNIT_EQ(ep->n_waits, n + 1);
	UNIT_TRUE(TAILQ_FIRST(&list.head) == &other.wait);
	plx_ep_wait_end(&other.wait);
	UNIT_TRUE(TAILQ_EMPTY(&list.head));
	UNIT_EQ(ep->n_waits, n);
	plx_ep_closing_end(&list);
	plx_ep_closing_begin(ep, 7, &list);
	UNIT_TRUE(TAILQ_EMPTY(&ep->waits.head));
	plx_ep_fail(ep, -ECONNRESET); /* it ends these as well */
	items_have_failed(-ECONNRESET);
	UNIT_EQ(ep->n_waits, 0);
	plx_ep_closing_end(&list);
	end();
}

static void
what_the_device_refuses_for_good_fails_and_the_rest_goes_on(void)
{
	static uint8_t long_hdr[PLX_WIRE_HDR_MAX];
	struct item it = {.pend = {.send = item_send, .fail = item_fail}, .number = 0};

	begin();
	fake.mtu = 20;
	/* A peer of its own with a small mtu: 48 bytes of header never fit. */
	plx_eps_close(&eps);
	plx_queue_close(a);
	plx_eps_open(&eps, on_failed);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &a), 0);
	{
		struct plx_peer *peer;
		struct plx_addr addr;

		plx_queue_addr(b, &addr);
		UNIT_EQ_FATAL(plx_peer_get(a, &addr, &peer), 0);
		ep = plx_ep_of(&eps, peer);
		plx_peer_put(peer);
	}
	UNIT_EQ(plx_ep_connect(ep), 0);
	fake_block(a, true);
	UNIT_EQ(plx_ep_tx_ctl(ep, 1, long_hdr, sizeof(long_hdr)), -EMSGSIZE);
	plx_ep_pend(ep, &it.pend);
	UNIT_EQ(plx_ep_tx_ctl(ep, 1, long_hdr, sizeof(long_hdr)), 0); /* waits, unseen */
	fake_block(a, false);
	UNIT_EQ(plx_eps_flush(&eps), 2);
	UNIT_EQ(it.sent, 1);
	UNIT_EQ(eps.stat.tx_failed, 1);
	UNIT_EQ(take(0), 1);
	UNIT_EQ(ep->err, 0);
	end();
}

static void
a_failed_ep_stays_while_somebody_has_it(void)
{
	struct plx_ep_user user[2] = {0};
	struct item it = {.number = 0};
	struct plx_peer *peer;

	begin();
	peer = ep->peer;
	plx_ep_user_add(ep, &user[0]);
	plx_ep_user_add(ep, &user[1]);
	UNIT_EQ(ep->refs, 2);
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_EQUAL(peer->user, ep); /* it has not failed */
	plx_ep_fail(ep, -ECONNRESET);
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_EQUAL(peer->user, ep);
	plx_ep_user_remove(&user[0]);
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_EQUAL(peer->user, ep);
	plx_ep_user_remove(&user[1]);
	CU_ASSERT_PTR_NULL(user[1].ep);
	plx_ep_wait(ep, &it.wait, PLX_CONN_NONE, item_wait_fail);
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_EQUAL(peer->user, ep);
	plx_ep_wait_end(&it.wait);
	ep->n_msgs = 1; /* a kept message names it */
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_EQUAL(peer->user, ep);
	ep->n_msgs = 0;
	plx_eps_sweep(&eps);
	CU_ASSERT_PTR_NULL(peer->user);
	UNIT_EQ(peer->refs, 0);
	ep = NULL;
	end();
}

static void
an_ep_of_a_dead_peer_has_failed_from_the_start(void)
{
	struct plx_peer *peer;

	begin();
	peer = ep->peer;
	plx_ep_fail(ep, -ECONNRESET);
	plx_eps_sweep(&eps);
	plx_peer_dead(peer, -ECONNRESET);
	ep = plx_ep_of(&eps, peer);
	UNIT_EQ(ep->err, -ECONNRESET);
	UNIT_EQ(plx_ep_connect(ep), -ECONNRESET);
	end();
}

static void
a_failed_connect_answers_with_its_error(void)
{
	uint64_t hdr[2] = {0, 0};

	begin();
	fake_kill(b);
	UNIT_EQ(plx_ep_tx_ctl(ep, 1, hdr, 16), -ECONNRESET);
	UNIT_EQ(ep->peer->state, PLX_PEER_DEAD);
	UNIT_EQ(plx_ep_connect(ep), -ECONNRESET);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(order_is_kept_when_the_device_is_full),
	UNIT_TEST(nothing_overtakes_what_waits),
	UNIT_TEST(a_device_may_send_more_without_asking),
	UNIT_TEST(failure_ends_everything_once),
	UNIT_TEST(a_cancel_ends_what_one_handle_sent_and_nothing_else),
	UNIT_TEST(a_mark_is_passed_behind_what_was_queued),
	UNIT_TEST(a_mark_is_not_passed_before_what_is_held_ahead_of_it),
	UNIT_TEST(one_that_is_announced_does_not_overtake_what_is_held),
	UNIT_TEST(what_is_held_can_be_taken_out_and_the_rest_goes_on),
	UNIT_TEST(a_mark_is_passed_when_the_ep_fails),
	UNIT_TEST(what_a_closing_handle_sent_waits_by_itself),
	UNIT_TEST(what_the_device_refuses_for_good_fails_and_the_rest_goes_on),
	UNIT_TEST(a_failed_ep_stays_while_somebody_has_it),
	UNIT_TEST(an_ep_of_a_dead_peer_has_failed_from_the_start),
	UNIT_TEST(a_failed_connect_answers_with_its_error),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"ep", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
