/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_share_test.c - long puts and gets that both sides copy at once
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_cursor.h"
#include "plx_rma_cell.h"
#include "rma_test.h"

#define LEN   (3u << 20)
#define CHUNK (64u << 10)
#define PART  PLX_RMA_SHARE_MAX

static struct plx_region_key region;
static struct plx_rkey rkey;
static uint8_t there[LEN], here[LEN];

static struct plx_req *
begun(uint8_t kind, uint64_t len, uint64_t offset)
{
	const struct plx_rma_do d = {.kind = kind, .ep = u.to[0][TARGET].ep, .conn_id = u.to[0][TARGET].conn_id,
		.rkey = &rkey, .buf = here + offset, .len = len, .remote = (uintptr_t)there + offset, .late = true};
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_rma(u.w[0], &d, req);
	return req;
}

static struct plx_req *put(uint64_t len, uint64_t offset) { return begun(PLX_RMA_PUT, len, offset); }

/* As the face does it first. */
static int
put_now(uint64_t len)
{
	const struct plx_rma_do d = {.kind = PLX_RMA_PUT, .ep = u.to[0][TARGET].ep, .conn_id = u.to[0][TARGET].conn_id,
		.rkey = &rkey, .buf = here, .len = len, .remote = (uintptr_t)there, .late = true};

	return plx_worker_rma_now(u.w[0], &d, true);
}

static struct plx_rma_cell *
cell(uint64_t i)
{
	const struct plx_queue *q = unit_queue(&u, TARGET);

	return plx_rma_cell_at(q->shared, q->shared_len, i);
}

static void
fill(uint8_t seed)
{
	for (uint32_t i = 0; i < LEN; i++)
		here[i] = (uint8_t)(i * 31 + (i >> 12) + seed);
	memset(there, 0xaa, LEN);
}

/* The initiator copies one chunk a turn. */
static void
begin(void)
{
	fake_reset(13);
	unit_workers_conf(&u);
	unit_workers_open(&u, UNIT_WORKERS);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)there, LEN, PLX_REGION_READ | PLX_REGION_WRITE, &region), 0);
	rkey = (struct plx_rkey){.base = (uintptr_t)there, .len = LEN, .can = UINT8_MAX, .key = region};
	fill(1);
	UNIT_EQ(put_now(8), 0); /* the device has shown that it can */
	u.w[0]->rma.chunk = 1;
}

static void
end(void)
{
	plx_region_remove(&region);
	unit_workers_close(&u);
}

static void
both_sides_copy_from_their_ends(void)
{
	struct plx_req *req;

	begin();
	req = put(8 * CHUNK, 0);
	UNIT_EQ(memcmp(there, here, CHUNK), 0);
	UNIT_EQ(there[CHUNK], 0xaa);
	UNIT_EQ(plx_req_is_done(req), false);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	UNIT_EQ(there[8 * CHUNK], 0xaa);
	UNIT_END(&u, req, 0);
	UNIT_EQ(stat_of(0)->shares, 1);
	UNIT_EQ(stat_of(0)->shares_helped, 1);
	UNIT_EQ(stat_of(TARGET)->puts, 1);
	end();
}

static void
both_sides_copy_a_get_from_their_ends(void)
{
	struct plx_req *req;

	begin();
	memset(here, 0xbb, LEN);
	for (uint32_t i = 0; i < LEN; i++)
		there[i] = (uint8_t)(i * 29 + (i >> 12));
	req = begun(PLX_RMA_GET, 8 * CHUNK, 0);
	UNIT_EQ(memcmp(here, there, CHUNK), 0);
	UNIT_EQ(here[CHUNK], 0xbb);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(memcmp(here + CHUNK, there + CHUNK, 7 * CHUNK), 0);
	UNIT_EQ(here[8 * CHUNK], 0xbb);
	UNIT_END(&u, req, 0);
	UNIT_EQ(stat_of(0)->shares_helped, 1);
	UNIT_EQ(stat_of(TARGET)->gets, 1);
	UNIT_EQ(stat_of(TARGET)->puts, 0);
	end();
}

/* A get of which the target has the last chunk. */
static struct plx_req *
get_with_a_chunk_away(void)
{
	struct plx_req *req = begun(PLX_RMA_GET, 8 * CHUNK, 0);
	struct plx_rma_share *s = &cell(0)->share;

	UNIT_EQ(plx_cursor_take(&s->next, (uint32_t)(s->next >> 32), 8, true), 7);
	return req;
}

static void
close_handle(void)
{
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
}

static void
turns(void)
{
	for (unsigned i = 0; i < 10; i++)
		plx_worker_progress(u.w[0]);
}

/* The target takes no more, and what it has is waited for, copied or given back. */
static void
a_get_that_is_closed_waits_for_the_target(void)
{
	struct plx_req *req;

	begin();
	for (unsigned i = 0; i < 2; i++) {
		plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
		req = get_with_a_chunk_away();
		close_handle();
		turns();
		UNIT_EQ(plx_req_is_done(req), false);
		UNIT_EQ(plx_cursor_take(&cell(0)->share.next, (uint32_t)(cell(0)->share.next >> 32), 8, true), PLX_CURSOR_NONE);
		UNIT_TRUE(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed) != 0);
		if (i == 0)
			cell(0)->share.done++;
		else
			cell(0)->share.bad |= 1u << 7;
		UNIT_END(&u, req, -ECANCELED);
		UNIT_EQ(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed), 0);
	}
	end();
}

static void
a_get_that_is_closed_ends_at_once_when_the_target_has_nothing(void)
{
	struct plx_req *req;

	begin();
	req = begun(PLX_RMA_GET, 8 * CHUNK, 0);
	close_handle();
	UNIT_EQ(plx_req_is_done(req), true);
	UNIT_END(&u, req, -ECANCELED);
	plx_worker_progress(u.w[TARGET]); /* the message is late */
	UNIT_EQ(stat_of(TARGET)->gets, 0);
	end();
}

/* Nor is a flush, which says that the buffer is the program's, over before. The ep stays as long. */
static void
a_get_outlives_its_ep(void)
{
	struct plx_req *req, *all;
	struct plx_ep *ep;
	uint64_t held;

	begin();
	ep = u.to[0][TARGET].ep;
	held = ep->n_msgs;
	req = get_with_a_chunk_away();
	plx_ep_fail(ep, -ECONNRESET);
	all = flush(PLX_FLUSH_EP);
	turns();
	UNIT_EQ(plx_req_is_done(req), false);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_TRUE(ep->n_msgs > held);
	cell(0)->share.done++;
	UNIT_END(&u, req, -ECONNRESET);
	UNIT_END(&u, all, -ECONNRESET);
	UNIT_EQ(ep->n_msgs, held);
	UNIT_EQ(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed), 0);
	end();
}

static _Atomic bool counted;

static void *
count_later(void *done)
{
	usleep(20000);
	counted = true;
	atomic_fetch_add((_Atomic uint64_t *)done, 1);
	return NULL;
}

/* As when its worker is destroyed. */
static void
who_leaves_waits_for_a_get(void)
{
	struct plx_req *req;
	pthread_t t;

	begin();
	req = get_with_a_chunk_away();
	counted = false;
	UNIT_EQ_FATAL(pthread_create(&t, NULL, count_later, (void *)&cell(0)->share.done), 0);
	plx_rma_ep_settle(u.to[0][TARGET].ep);
	UNIT_EQ(counted, true);
	plx_rma_ep_leave(u.to[0][TARGET].ep);
	pthread_join(t, NULL);
	UNIT_END(&u, req, -ECANCELED);
	end();
}

/* Also when the target has the last chunk. */
static void
a_flush_waits_for_both(void)
{
	struct plx_req *req, *all;
	struct plx_rma_share *s;
	uint32_t gen;

	begin();
	req = put(4 * CHUNK, 0);
	all = flush(PLX_FLUSH_EP);
	s = &cell(0)->share;
	gen = (uint32_t)(s->next >> 32);
	UNIT_EQ(plx_cursor_take(&s->next, gen, 4, true), 3);
	for (unsigned i = 0; i < 10; i++)
		plx_worker_progress(u.w[0]);
	UNIT_EQ(plx_req_is_done(req), false);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_EQ(memcmp(there, here, 3 * CHUNK), 0);
	UNIT_EQ(there[3 * CHUNK], 0xaa);
	s->done++;
	UNIT_END(&u, req, 0);
	UNIT_END(&u, all, 0);
	end();
}

/* 2 MiB and 5 bytes: two parts, and a rest that is too short to share. */
static void
a_very_long_put_is_shared_part_by_part(void)
{
	begin();
	UNIT_END(&u, put(2 * PART + 5, 3), 0);
	UNIT_EQ(memcmp(there + 3, here + 3, 2 * PART + 5), 0);
	UNIT_EQ(there[2 * PART + 8], 0xaa);
	UNIT_EQ(stat_of(0)->shares, 2);
	UNIT_EQ(stat_of(0)->shares_helped, 2);
	end();
}

static void
a_target_that_computes_is_not_waited_for(void)
{
	struct plx_req *req;

	begin();
	u.w[0]->rma.chunk = UINT64_MAX;
	req = put(PART, 0);
	UNIT_EQ(plx_req_is_done(req), true);
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, PART), 0);
	UNIT_EQ(stat_of(0)->shares, 1);
	UNIT_EQ(stat_of(0)->shares_helped, 0);
	UNIT_EQ(put_now(PART), 0); /* and the next one is the device's at once */
	UNIT_EQ(put_now(PART), -EAGAIN);
	fill(2);
	plx_worker_progress(u.w[TARGET]); /* the message is late */
	UNIT_EQ(there[PART - 1], 0xaa);
	UNIT_EQ(stat_of(TARGET)->refused, 0);
	end();
}

static void
shorter_puts_are_not_shared(void)
{
	begin();
	u.w[0]->rma.chunk = UINT64_MAX;
	UNIT_EQ(put_now(PLX_RMA_SHARE_MIN - 1), -EINPROGRESS); /* it waits for others */
	UNIT_EQ(put_now(PLX_RMA_SHARE_MIN), -EAGAIN);
	UNIT_EQ(stat_of(0)->shares, 0);
	end();
}

/* The initiator copies what the target gives back. */
static void
a_target_that_cannot_read_gives_its_chunk_back(void)
{
	struct plx_req *req;

	begin();
	req = put(8 * CHUNK, 0);
	fake.get_err = -EIO;
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ((uint32_t)cell(0)->share.bad, 1u << 7);
	UNIT_EQ(there[8 * CHUNK - 1], 0xaa);
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	UNIT_EQ(stat_of(0)->shares_helped, 0);
	end();
}

/* The initiator's own chunk fails while the target may have others. */
static void
an_error_ends_the_put_and_not_the_next(void)
{
	begin();
	for (unsigned i = 1; i < 8; i++) {
		struct plx_req *req = put(8 * CHUNK, 0);

		fake.bad_addr = there + i * CHUNK + 7;
		for (unsigned k = 0; k < i; k++)
			plx_worker_progress(u.w[0]);
		UNIT_END(&u, req, -EFAULT);
		fake.bad_addr = NULL;
		plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
		UNIT_END(&u, put(8 * CHUNK, 0), 0);
		UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	}
	end();
}

/* An error that comes to both: what the target gives back is behind those that are waited for. */
static void
a_put_that_neither_side_can_copy_ends(void)
{
	struct plx_req *req;

	begin();
	req = put(8 * CHUNK, 0);
	fake.get_err = -EIO;
	fake.bad_addr = there + CHUNK + 7;
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ((uint32_t)cell(0)->share.bad, 1u << 7);
	UNIT_END(&u, req, -EFAULT);
	end();
}

/* Pages that the target cannot read: the initiator writes that chunk. */
static void
a_chunk_that_only_the_target_cannot_copy_is_copied(void)
{
	struct plx_req *req;

	begin();
	req = put(8 * CHUNK, 0);
	fake.bad_addr = here + 5 * CHUNK + 7;
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ((uint32_t)cell(0)->share.done, 2);
	UNIT_EQ((uint32_t)cell(0)->share.bad, 1u << 5);
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	end();
}

static void
a_device_that_may_not_any_more_is_replaced_by_messages(void)
{
	struct plx_req *req;

	begin();
	req = put(PART, 0);
	fake.refuse_percent = 100;
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, PART), 0);
	UNIT_EQ(stat_of(0)->msg, 1);
	end();
}

/* The target finds nothing to do; the initiator goes on alone. */
static void
who_leaves_takes_the_put_back(void)
{
	struct plx_req *req;

	begin();
	req = put(8 * CHUNK, 0);
	plx_rma_ep_leave(u.to[0][TARGET].ep);
	UNIT_EQ(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed), 0);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(there[8 * CHUNK - 1], 0xaa);
	u.w[0]->rma.chunk = CHUNK;
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	end();
}

/* A target that copied for one who has left does not count in the cell's next put. */
static void
a_late_target_counts_in_no_other_put(void)
{
	struct plx_req *req;
	uint32_t gen;

	begin();
	req = put(8 * CHUNK, 0);
	gen = (uint32_t)(cell(0)->share.next >> 32);
	UNIT_EQ(plx_cursor_take(&cell(0)->share.next, gen, 8, true), 7);
	plx_rma_ep_leave(u.to[0][TARGET].ep);
	UNIT_EQ(plx_cursor_take(&cell(0)->share.next, gen, 8, true), PLX_CURSOR_NONE);
	u.w[0]->rma.chunk = UINT64_MAX;
	UNIT_END(&u, req, 0);
	u.w[0]->rma.chunk = 1;
	plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
	req = put(8 * CHUNK, 0);
	UNIT_EQ((uint32_t)(cell(0)->share.next >> 32), gen + 1);
	UNIT_EQ((uint32_t)(cell(0)->share.done >> 32), gen + 1);
	UNIT_EQ(plx_cursor_take(&cell(0)->share.next, gen, 8, true), PLX_CURSOR_NONE);
	UNIT_END(&u, req, 0);
	end();
}

static void
offer_to(unsigned target)
{
	plx_rma_on_offer(&u.w[target]->rma, &u.w[target]->eps, u.to[target][0].ep->peer,
		&(struct plx_wire_offer){.cell = 0});
}

/* Messages of former puts find this one, and each of them a chunk that can't be read. */
static void
all_chunks_that_are_given_back_are_copied(void)
{
	struct plx_req *req;

	begin();
	UNIT_END(&u, put(8 * CHUNK, 0), 0); /* both have connected */
	fill(3);
	fake.get_err = -EIO;
	req = put(8 * CHUNK, 0);
	for (unsigned i = 0; i < 3; i++)
		offer_to(TARGET);
	UNIT_EQ((uint32_t)cell(0)->share.bad, 7u << 5);
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	end();
}

/* A target that gives chunks back that it never had ends the put, and no loop of ours is longer than that. */
static void
more_chunks_than_there_are_are_not_copied(void)
{
	struct plx_rma_share *s;
	struct plx_req *req;
	uint64_t moved;

	begin();
	req = put(8 * CHUNK, 0);
	s = &cell(0)->share;
	s->bad = (s->bad & ~(uint64_t)UINT32_MAX) | UINT32_MAX;
	u.w[0]->rma.chunk = UINT64_MAX;
	moved = unit_queue(&u, 0)->stat.rma_ops;
	plx_worker_progress(u.w[0]);
	UNIT_EQ(unit_queue(&u, 0)->stat.rma_ops - moved, 7);
	UNIT_END(&u, req, 0);
	UNIT_EQ(memcmp(there, here, 8 * CHUNK), 0);
	end();
}

/* Devices that want to be asked again, targets that run now and then, and puts of all lengths. */
static void
the_later_put_stays_whoever_copies_it(void)
{
	begin();
	fake.again_percent = 20;
	for (unsigned i = 0; i < 60; i++) {
		uint64_t len = 40000 + i * 7919 % 90 * 20000;
		struct plx_req *first, *second;

		fill((uint8_t)i);
		plx_rma_ep(u.to[0][TARGET].ep)->skip = i % 2;
		u.w[0]->rma.chunk = i % 3 == 0 ? UINT64_MAX : 1;
		first = put(len, i);
		second = put(len / 2, i);
		if (i % 5 == 0)
			plx_worker_progress(u.w[TARGET]);
		UNIT_END(&u, first, 0);
		UNIT_END(&u, second, 0);
		UNIT_EQ(memcmp(there + i, here + i, len), 0);
		UNIT_EQ(there[i + len], 0xaa);
	}
	UNIT_TRUE(stat_of(0)->shares_helped > 5);
	end();
}

static _Atomic bool resets;

static void *
reset_next(void *next)
{
	while (resets)
		atomic_store((_Atomic uint64_t *)next, UINT64_C(1) << 32);
	return NULL;
}

/* An initiator that begins again and again keeps no target. */
static void
a_target_copies_no_more_than_there_is(void)
{
	struct plx_rma_share *s;
	pthread_t t;

	begin();
	s = &cell(0)->share;
	s->token = region.token;
	s->index = region.index;
	s->addr = (uintptr_t)there;
	s->buf = (uintptr_t)here;
	s->len = PART;
	s->chunk = CHUNK;
	cell(0)->state = PLX_RMA_CELL_SHARED;
	s->next = UINT64_C(1) << 32;
	resets = true;
	UNIT_EQ_FATAL(pthread_create(&t, NULL, reset_next, &s->next), 0);
	for (unsigned i = 0; i < 100; i++)
		offer_to(TARGET);
	resets = false;
	pthread_join(t, NULL);
	UNIT_TRUE(unit_queue(&u, TARGET)->stat.rma_ops <= 100 * PART / CHUNK);
	cell(0)->state = PLX_RMA_CELL_IDLE;
	end();
}

/* What peers write to cells is input. */
static void
bad_shares_are_refused(void)
{
	const struct {
		uint64_t to;
		uint32_t len, chunk, kind;
	} bad[] = {
		{(uintptr_t)there, PART + 1, CHUNK, PLX_RMA_PUT},
		{(uintptr_t)there, PART, 1, PLX_RMA_PUT},
		{(uintptr_t)there, PART, 0, PLX_RMA_PUT},
		{(uintptr_t)there, PART, PLX_RMA_SHARE_CHUNK, PLX_RMA_PUT}, /* more than there are bits */
		{(uintptr_t)there + LEN - CHUNK, 2 * CHUNK, CHUNK, PLX_RMA_PUT},
		{16, CHUNK, CHUNK, PLX_RMA_PUT},
		{16, CHUNK, CHUNK, PLX_RMA_GET},
		{(uintptr_t)there, PART, CHUNK, PLX_RMA_ATOMIC},
	};
	struct plx_rma *r;

	begin();
	r = &u.w[TARGET]->rma;
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		struct plx_rma_cell *c = cell(1);

		c->share.token = region.token;
		c->share.index = region.index;
		c->share.addr = bad[i].to;
		c->share.buf = (uintptr_t)here;
		c->share.len = bad[i].len;
		c->share.chunk = bad[i].chunk;
		c->share.kind = bad[i].kind;
		c->share.next = 1ull << 32;
		c->state = PLX_RMA_CELL_SHARED;
		plx_rma_on_offer(r, &u.w[TARGET]->eps, u.to[TARGET][0].ep->peer, &(struct plx_wire_offer){.cell = 1});
		UNIT_EQ(r->stat.refused, i + 1);
		UNIT_EQ(c->share.next, 1ull << 32);
		c->state = PLX_RMA_CELL_IDLE;
	}
	end();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(both_sides_copy_from_their_ends),
		UNIT_TEST(both_sides_copy_a_get_from_their_ends),
		UNIT_TEST(a_get_that_is_closed_waits_for_the_target),
		UNIT_TEST(a_get_that_is_closed_ends_at_once_when_the_target_has_nothing),
		UNIT_TEST(a_get_outlives_its_ep),
		UNIT_TEST(who_leaves_waits_for_a_get),
		UNIT_TEST(a_flush_waits_for_both),
		UNIT_TEST(a_very_long_put_is_shared_part_by_part),
		UNIT_TEST(a_target_that_computes_is_not_waited_for),
		UNIT_TEST(shorter_puts_are_not_shared),
		UNIT_TEST(a_target_that_cannot_read_gives_its_chunk_back),
		UNIT_TEST(an_error_ends_the_put_and_not_the_next),
		UNIT_TEST(a_put_that_neither_side_can_copy_ends),
		UNIT_TEST(a_chunk_that_only_the_target_cannot_copy_is_copied),
		UNIT_TEST(a_device_that_may_not_any_more_is_replaced_by_messages),
		UNIT_TEST(who_leaves_takes_the_put_back),
		UNIT_TEST(a_late_target_counts_in_no_other_put),
		UNIT_TEST(all_chunks_that_are_given_back_are_copied),
		UNIT_TEST(more_chunks_than_there_are_are_not_copied),
		UNIT_TEST(the_later_put_stays_whoever_copies_it),
		UNIT_TEST(a_target_copies_no_more_than_there_is),
		UNIT_TEST(bad_shares_are_refused),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"rma_share", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	if (unit_start() != 0)
		return 77;
	return unit_run(suites);
}
