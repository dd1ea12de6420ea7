/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_offer_test.c - short puts and gets that a target which polls does itself
 */
#include <errno.h>
#include <string.h>

#include "plx_rma_cell.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"

#define LEN    8192u
#define TARGET 1

static struct unit_workers u;
static struct plx_region_key region;
static struct plx_rkey rkey;
static uint8_t there[LEN], here[LEN];

static int
move(uint8_t kind, void *buf, uint64_t len, uint64_t offset)
{
	const struct plx_rma_do d = {.kind = kind, .ep = u.to[0][TARGET].ep,
		.conn_id = u.to[0][TARGET].conn_id, .rkey = &rkey, .buf = buf, .len = len,
		.remote = (uintptr_t)there + offset, .late = true};

	return plx_worker_rma_now(u.w[0], &d, true);
}

/* 8 bytes, whose buffer is the program's again at once. */
static void
put(uint8_t value, uint64_t offset)
{
	uint8_t word[8];

	memset(word, value, 8);
	UNIT_EQ(move(PLX_RMA_PUT, word, 8, offset), 0);
	memset(word, 0xee, 8);
}

static struct plx_req *
flush(void)
{
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_flush(u.w[0], PLX_FLUSH_EP, &u.to[0][TARGET], req);
	return req;
}

static const struct plx_rma_stat *
stat_of(unsigned i)
{
	return &u.w[i]->rma.stat;
}

static struct plx_rma_cell *
cell(uint64_t i)
{
	const struct plx_queue *q = unit_queue(&u, TARGET);

	return plx_rma_cell_at(q->shared, q->shared_len, i);
}

static uint64_t
owner_of(uint64_t i)
{
	return atomic_load_explicit(&cell(i)->owner, memory_order_relaxed);
}

/* Offers stand until the test ends that; the first operation shows that the device can. */
static void
begin(void)
{
	fake_reset(11);
	unit_workers_conf(&u);
	unit_workers_open(&u, UNIT_WORKERS);
	memset(there, 0, LEN);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)there, LEN, PLX_REGION_READ | PLX_REGION_WRITE, &region), 0);
	rkey = (struct plx_rkey){.base = (uintptr_t)there, .len = LEN, .can = UINT8_MAX, .key = region};
	here[0] = 1;
	UNIT_EQ(move(PLX_RMA_PUT, here, 8, 0), 0);
	UNIT_EQ(stat_of(0)->dev, 1);
	UNIT_TRUE(u.w[0]->rma.offer_ticks > rte_get_tsc_hz() / 1000000);
	u.w[0]->rma.offer_ticks = UINT32_MAX;
}

static void
end(void)
{
	plx_region_remove(&region);
	unit_workers_close(&u);
}

/* No offer stands longer than to the initiator's next turn. */
static void
time_is_up(void)
{
	u.w[0]->rma.offer_ticks = 0;
}

static void
a_target_that_polls_does_it(void)
{
	struct plx_req *all;
	uint8_t got[64];

	begin();
	put(5, 16);
	UNIT_EQ(there[16], 0);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(there[16], 5);
	UNIT_END(&u, flush(), 0);
	memset(there, 7, 64);
	UNIT_EQ(move(PLX_RMA_GET, got, 64, 0), -EINPROGRESS);
	all = flush();
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_END(&u, all, 0);
	UNIT_EQ(got[0], 7);
	UNIT_EQ(got[63], 7);
	UNIT_EQ(stat_of(0)->offers, 2);
	UNIT_EQ(stat_of(0)->offers_back, 0);
	UNIT_EQ(stat_of(TARGET)->puts, 1);
	UNIT_EQ(stat_of(TARGET)->gets, 1);
	end();
}

/* To the last byte of a cell, and no further. */
static void
longer_ones_go_by_the_device(void)
{
	begin();
	memset(here, 3, LEN);
	UNIT_EQ(move(PLX_RMA_PUT, here, PLX_RMA_OFFER_LEN, 0), -EINPROGRESS);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(stat_of(0)->offers, 1);
	UNIT_EQ(there[PLX_RMA_OFFER_LEN - 1], 3);
	UNIT_EQ(there[PLX_RMA_OFFER_LEN], 0);
	UNIT_EQ(move(PLX_RMA_PUT, here, PLX_RMA_OFFER_LEN + 1, 0), -EINPROGRESS);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(stat_of(0)->offers, 1);
	UNIT_EQ(there[PLX_RMA_OFFER_LEN], 3);
	end();
}

/* The target never runs a turn. Later its turn finds nothing to do. */
static void
an_unanswered_offer_is_taken_back(void)
{
	begin();
	time_is_up();
	put(5, 16);
	UNIT_EQ(there[16], 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 5);
	UNIT_EQ(plx_worker_is_flushed(u.w[0], &u.to[0][TARGET]), true);
	UNIT_EQ(stat_of(0)->offers_back, 1);
	there[16] = 6;
	unit_turns(&u, 3);
	UNIT_EQ(there[16], 6);
	UNIT_EQ(stat_of(TARGET)->puts, 0);
	end();
}

/* A target that computes costs an offer in 256; one that polls again gets all. */
static void
who_does_not_poll_is_offered_ever_less(void)
{
	begin();
	time_is_up();
	for (unsigned i = 0; i < 1024; i++) {
		put((uint8_t)i, 0);
		plx_worker_progress(u.w[0]);
		UNIT_EQ(there[0], (uint8_t)i);
	}
	UNIT_EQ(stat_of(0)->offers, 11); /* before 1, 3, 7 ... 255, 255, 255 that are not */
	u.w[0]->rma.offer_ticks = UINT32_MAX;
	for (unsigned i = 0; i < 512; i++) {
		put((uint8_t)i, 0);
		UNIT_END(&u, flush(), 0);
		UNIT_EQ(there[0], (uint8_t)i);
	}
	UNIT_TRUE(stat_of(0)->offers > 11 + 256);
	end();
}

/* Late messages of offers that were taken back never move anything twice. */
static void
the_later_put_stays_whoever_does_it(void)
{
	begin();
	for (unsigned i = 0; i < 200; i++) {
		u.w[0]->rma.offer_ticks = i % 3 == 0 ? 0 : UINT32_MAX;
		plx_rma_ep(u.to[0][TARGET].ep)->skip = i % 2;
		put(1, 0);
		put((uint8_t)(i + 2), 0);
		if (i % 5 == 0)
			plx_worker_progress(u.w[TARGET]);
		UNIT_END(&u, flush(), 0);
		unit_turns(&u, 2);
		UNIT_EQ(there[0], (uint8_t)(i + 2));
	}
	UNIT_TRUE(stat_of(0)->offers > stat_of(0)->offers_back && stat_of(0)->offers_back > 20);
	end();
}

/* Long ones, pieces, and what a fence holds back. */
static void
others_wait_behind_an_offer(void)
{
	struct plx_rma_piece v = {here, (uintptr_t)there, 8, UCS_MEMORY_TYPE_HOST};
	unsigned n = 1;

	begin();
	put(5, 0);
	UNIT_EQ(move(PLX_RMA_PUT, here, 8, 0), 0);
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_PUT, &v, &n, 0), -EAGAIN);
	UNIT_EQ(n, 0);
	UNIT_EQ(plx_worker_fence(u.w[0]), 0);
	UNIT_EQ(plx_worker_is_fenced(u.w[0]), true);
	UNIT_EQ(move(PLX_RMA_PUT, here, LEN, 0), -EAGAIN);
	UNIT_END(&u, flush(), 0);
	n = 1;
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_PUT, &v, &n, 0), 0);
	end();
}

/* What the target refuses is the device's, which knows no regions. */
static void
a_refused_one_goes_by_the_device(void)
{
	begin();
	rkey.key.token ^= 1;
	put(5, 0);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(there[0], 5);
	UNIT_EQ(stat_of(TARGET)->refused, 1);
	put(6, 0);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(stat_of(0)->offers, 1);
	end();
}

static void
a_closed_handle_withdraws_its_offer(void)
{
	begin();
	put(5, 0);
	UNIT_TRUE(owner_of(0) != 0);
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
	UNIT_EQ(owner_of(0), 0);
	unit_turns(&u, 3);
	UNIT_EQ(there[0], 1);
	UNIT_END(&u, flush(), -ECANCELED);
	put(6, 0);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(there[0], 6);
	end();
}

/* The target is at it: it frees the cell when it is done. */
static void
who_leaves_meanwhile_leaves_the_cell_to_the_target(void)
{
	begin();
	put(5, 0);
	atomic_store_explicit(&cell(0)->state, PLX_RMA_CELL_TAKEN, memory_order_relaxed);
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
	UNIT_TRUE(owner_of(0) != 0);
	UNIT_EQ(atomic_load_explicit(&cell(0)->state, memory_order_relaxed), PLX_RMA_CELL_LEFT);
	UNIT_END(&u, flush(), -ECANCELED);
	put(6, 0);
	UNIT_TRUE(owner_of(1) != 0);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(there[0], 6);
	end();
}

static void
a_dead_target_ends_what_is_offered(void)
{
	begin();
	put(5, 0);
	unit_kill(&u, TARGET);
	UNIT_END(&u, flush(), -ECONNRESET);
	end();
}

static void
cells_of_ended_processes_are_free_again(void)
{
	begin();
	put(5, 0);
	UNIT_END(&u, flush(), 0);
	for (uint64_t i = 1; cell(i) != NULL; i++) /* no process has this number */
		atomic_store_explicit(&cell(i)->owner, UINT64_MAX - i, memory_order_relaxed);
	UNIT_EQ(plx_ep_connect(u.to[TARGET][2].ep), 0);
	unit_kill(&u, 2);
	unit_turns(&u, 2);
	unit_check_peers(u.w[TARGET]);
	unit_turns(&u, 2);
	for (uint64_t i = 1; cell(i) != NULL; i++)
		UNIT_EQ(owner_of(i), 0);
	end();
}

/* All are another's: nothing is offered, and nothing waits. */
static void
without_a_cell_the_device_does_it(void)
{
	begin();
	for (uint64_t i = 0; cell(i) != NULL; i++)
		atomic_store_explicit(&cell(i)->owner, 99, memory_order_relaxed);
	put(5, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[0], 5);
	UNIT_EQ(stat_of(0)->offers, 0);
	end();
}

/* The ring is full: the cell's state says that nothing is offered. */
static void
without_room_for_the_message_the_device_does_it(void)
{
	begin();
	fake.full_percent = 100;
	put(5, 16);
	UNIT_EQ(there[16], 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 5);
	UNIT_EQ(stat_of(0)->offers, 0);
	fake.full_percent = 0;
	end();
}

/* What peers write there, and messages without an offer, are input. */
static void
bad_cells_are_refused(void)
{
	static const struct plx_rma_cell_op bad[] = {
		{.len = 8, .kind = PLX_RMA_ATOMIC},
		{.len = PLX_RMA_CELL_DATA + 1, .kind = PLX_RMA_PUT},
		{.len = 8, .kind = PLX_RMA_GET, .addr = 16},
	};
	struct plx_wire_offer h = {.cell = UINT64_MAX};
	struct plx_rma *r;

	begin();
	r = &u.w[TARGET]->rma;
	plx_rma_on_offer(r, &u.w[TARGET]->eps, u.to[TARGET][0].ep->peer, &h);
	UNIT_EQ(r->stat.drop_bad_range, 1);
	h.cell = 2;
	plx_rma_on_offer(r, &u.w[TARGET]->eps, u.to[TARGET][0].ep->peer, &h);
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		cell(2)->op = bad[i];
		cell(2)->op.index = region.index;
		cell(2)->op.token = region.token;
		atomic_store_explicit(&cell(2)->state, PLX_RMA_CELL_OFFERED, memory_order_relaxed);
		plx_rma_on_offer(r, &u.w[TARGET]->eps, u.to[TARGET][0].ep->peer, &h);
		UNIT_TRUE(cell(2)->err < 0);
		UNIT_EQ(atomic_load_explicit(&cell(2)->state, memory_order_relaxed), PLX_RMA_CELL_DONE);
	}
	UNIT_EQ(r->stat.refused, RTE_DIM(bad));
	UNIT_EQ(there[16], 0);
	end();
}

/* Another process writes to a cell that is ours. */
static void
a_spoilt_cell_is_not_used_again(void)
{
	begin();
	put(5, 0);
	atomic_store_explicit(&cell(0)->state, 77, memory_order_relaxed);
	UNIT_END(&u, flush(), 0);
	UNIT_EQ(there[0], 5);
	UNIT_EQ(plx_rma_ep(u.to[0][TARGET].ep)->cell, 0);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_target_that_polls_does_it),
	UNIT_TEST(longer_ones_go_by_the_device),
	UNIT_TEST(an_unanswered_offer_is_taken_back),
	UNIT_TEST(who_does_not_poll_is_offered_ever_less),
	UNIT_TEST(the_later_put_stays_whoever_does_it),
	UNIT_TEST(others_wait_behind_an_offer),
	UNIT_TEST(a_refused_one_goes_by_the_device),
	UNIT_TEST(a_closed_handle_withdraws_its_offer),
	UNIT_TEST(who_leaves_meanwhile_leaves_the_cell_to_the_target),
	UNIT_TEST(a_dead_target_ends_what_is_offered),
	UNIT_TEST(cells_of_ended_processes_are_free_again),
	UNIT_TEST(without_a_cell_the_device_does_it),
	UNIT_TEST(without_room_for_the_message_the_device_does_it),
	UNIT_TEST(bad_cells_are_refused),
	UNIT_TEST(a_spoilt_cell_is_not_used_again),
	CU_TEST_INFO_NULL,
};

int
main(void)
{
	CU_SuiteInfo suites[] = {{"rma_offer", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	if (unit_start() != 0)
		return 77;
	return unit_run(suites);
}
