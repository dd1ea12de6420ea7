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
#include "rma_int.h"
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

/* Short ones: how many, and bytes of each. They are in the opposite order in the target's memory. */
#define N     64
#define BLOCK (8u << 10)

static struct plx_req *blocks[N];

static uint8_t *block_here(unsigned i) { return here + i * BLOCK; }
static uint8_t *block_there(unsigned i) { return there + (N - 1 - i) * BLOCK; }

static struct plx_req *
block_begun(uint8_t kind, unsigned i, uint64_t len, struct plx_ep_user *to)
{
	const struct plx_rma_do d = {.kind = kind, .ep = to->ep, .conn_id = to->conn_id, .rkey = &rkey,
		.buf = block_here(i), .len = len, .remote = (uintptr_t)block_there(i), .late = true};
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_rma(u.w[0], &d, req);
	return req;
}

/* N short ones, which the initiator's next turn moves: a chunk of them each turn. */
static void
blocks_begun(uint8_t kind)
{
	for (unsigned i = 0; i < N; i++)
		blocks[i] = block_begun(kind, i, BLOCK, &u.to[0][TARGET]);
	plx_worker_progress(u.w[0]);
}

static void
blocks_end(int err)
{
	for (unsigned i = 0; i < N; i++)
		UNIT_END(&u, blocks[i], err);
}

/* @return how many are where they are to be */
static unsigned
blocks_moved(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += memcmp(block_there(i), block_here(i), BLOCK) == 0;
	return n;
}

static unsigned
blocks_done(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += plx_req_is_done(blocks[i]);
	return n;
}

/* As the face does it first. */
static int
put_now(uint64_t len)
{
	const struct plx_rma_do d = {.kind = PLX_RMA_PUT, .ep = u.to[0][TARGET].ep, .conn_id = u.to[0][TARGET].conn_id,
		.rkey = &rkey, .buf = here, .len = len, .remote = (uintptr_t)there, .late = true};

	return plx_worker_rma_now(u.w[0], &d, true);
}

/* A target takes the last of n chunks, and is not done with it. */
static uint32_t
target_takes(uint32_t n)
{
	struct plx_rma_share *s = &cell(0)->share;

	return plx_cursor_take(&s->next, (uint32_t)(s->next >> 32), n, true);
}

/* A message comes that names a cell. */
static void
share_message(unsigned target, uint64_t i)
{
	plx_rma_on_share(&u.w[target]->rma, u.to[target][0].ep, &(struct plx_wire_share){.cell = i});
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
	u.w[0]->rma.batch_len = 0; /* none by the target alone */
	u.w[0]->rma.chunk = 1;
	u.w[0]->rma.share_ticks = 0; /* many always take long enough */
	plx_rma_ep(u.to[0][TARGET].ep)->pace = 1;
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

	UNIT_EQ(target_takes(8), 7);
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
		UNIT_EQ(target_takes(8), PLX_CURSOR_NONE);
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

static void
both_sides_copy_many_puts(void)
{
	begin();
	blocks_begun(PLX_RMA_PUT);
	UNIT_EQ(blocks_moved(), N / 4);
	UNIT_EQ(blocks_done(), 0);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(blocks_moved(), N);
	UNIT_EQ(there[N * BLOCK], 0xaa);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 1);
	UNIT_EQ(stat_of(0)->shares_helped, 1);
	UNIT_EQ(stat_of(TARGET)->puts, 1);
	UNIT_EQ(stat_of(0)->bursts, 0);
	end();
}

static void
both_sides_copy_many_gets(void)
{
	begin();
	for (uint32_t i = 0; i < LEN; i++)
		there[i] = (uint8_t)(i * 29 + (i >> 12));
	memset(here, 0xbb, LEN);
	blocks_begun(PLX_RMA_GET);
	UNIT_EQ(blocks_moved(), N / 4);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(blocks_moved(), N);
	UNIT_EQ(here[N * BLOCK], 0xbb);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares_helped, 1);
	UNIT_EQ(stat_of(TARGET)->gets, 1);
	end();
}

/* Of any lengths: each arrives, and nothing beside it. */
static void
blocks_of_all_lengths_are_shared(void)
{
	begin();
	for (unsigned round = 0; round < 40; round++) {
		fill((uint8_t)round);
		plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
		fake.again_percent = round % 2 * 20;
		u.w[0]->rma.chunk = round % 3 == 0 ? UINT64_MAX : 1;
		for (unsigned i = 0; i < N; i++)
			blocks[i] = block_begun(PLX_RMA_PUT, i, 1 + (i * 2503 + round * 977) % BLOCK, &u.to[0][TARGET]);
		for (unsigned k = 0; k < round % 7; k++)
			plx_worker_progress(u.w[k % 2 * TARGET]);
		blocks_end(0);
		for (unsigned i = 0; i < N; i++) {
			uint64_t len = 1 + (i * 2503 + round * 977) % BLOCK;

			UNIT_SAME(block_there(i), block_here(i), len);
			UNIT_TRUE(len == BLOCK || block_there(i)[len] == 0xaa);
		}
	}
	UNIT_TRUE(stat_of(0)->shares_helped > 5);
	end();
}

/* While the program posts on, what the target may still copy is left to it. */
static void
who_posts_leaves_the_rest_to_the_target(void)
{
	struct plx_req *req[2 * PLX_RMA_LATE_N];
	struct plx_rma_share *s;

	begin();
	u.w[0]->rma.chunk = UINT64_MAX;
	for (unsigned i = 0; i < PLX_RMA_LATE_N - 1; i++)
		req[i] = block_begun(PLX_RMA_PUT, i % N, BLOCK, &u.to[0][TARGET]);
	UNIT_EQ(stat_of(0)->shares, 0);
	fake.again_percent = 100;
	req[PLX_RMA_LATE_N - 1] = block_begun(PLX_RMA_PUT, 0, BLOCK, &u.to[0][TARGET]);
	fake.again_percent = 0;
	UNIT_EQ(stat_of(0)->shares, 1);
	s = &cell(0)->share;
	UNIT_EQ(target_takes(8), 7);
	s->done++;
	s->next += 5; /* one is left */
	u.w[0]->rma.chunk = 1;
	plx_rma_ep(u.to[0][TARGET].ep)->part->redo = 0;
	plx_rma_ep(u.to[0][TARGET].ep)->part->mine += 6;
	for (unsigned i = PLX_RMA_LATE_N; i < 2 * PLX_RMA_LATE_N; i++)
		req[i] = block_begun(PLX_RMA_PUT, i % N, BLOCK, &u.to[0][TARGET]);
	UNIT_EQ(plx_cursor_taken(s->next), 7);
	plx_worker_progress(u.w[0]); /* a turn takes it */
	UNIT_EQ(plx_req_is_done(req[0]), true);
	for (unsigned i = 0; i < 2 * PLX_RMA_LATE_N; i++)
		UNIT_END(&u, req[i], 0);
	end();
}

static void
few_bytes_are_not_shared(void)
{
	begin();
	for (unsigned i = 0; i < N; i++)
		blocks[i] = block_begun(PLX_RMA_PUT, i, PLX_RMA_SHARE_MIN / N - 1, &u.to[0][TARGET]);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(blocks_done(), N);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 0);
	UNIT_EQ(stat_of(0)->bursts, 1);
	end();
}

/* And the next many are the device's at once. */
static void
many_are_copied_without_a_target_that_computes(void)
{
	begin();
	u.w[0]->rma.chunk = UINT64_MAX;
	blocks_begun(PLX_RMA_PUT);
	UNIT_EQ(blocks_done(), N);
	UNIT_EQ(blocks_moved(), N);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 1);
	blocks_begun(PLX_RMA_PUT);
	UNIT_EQ(blocks_done(), N);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 1);
	UNIT_EQ(stat_of(0)->bursts, 1);
	fill(2);
	plx_worker_progress(u.w[TARGET]); /* the message is late */
	UNIT_EQ(there[0], 0xaa);
	UNIT_EQ(stat_of(TARGET)->refused, 0);
	end();
}

/* The one that can't be moved fails, the others are moved; and so is what only the target can't move. */
static void
the_error_of_one_is_that_of_no_other(void)
{
	for (unsigned bad = 0; bad < N; bad += 9) {
		bool of_target = bad % 2 != 0, fails = !of_target && bad >= N / 4;

		begin();
		blocks_begun(PLX_RMA_PUT);
		fake.bad_addr = of_target ? block_here(bad) + 5 : block_there(bad) + 5;
		for (unsigned i = 0; i < N; i++)
			plx_worker_progress(u.w[of_target && i == 0 ? TARGET : 0]);
		for (unsigned i = 0; i < N; i++)
			UNIT_END(&u, blocks[i], fails && i == bad ? -EFAULT : 0);
		UNIT_EQ(blocks_moved(), N - fails);
		fake.bad_addr = NULL;
		end();
	}
}

/* A program may have seen what has arrived, and have used that memory again, while another put fails. */
static void
what_is_put_well_is_put_once(void)
{
	begin();
	for (unsigned bad = N / 4; bad < N / 2; bad += 5) { /* in the second chunk; the target has the last one */
		struct plx_rma_share *s = &cell(0)->share;

		fill(1);
		plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
		blocks_begun(PLX_RMA_PUT);
		UNIT_EQ(target_takes(4), 3);
		for (unsigned i = 3 * N / 4; i < N; i++)
			memcpy(block_there(i), block_here(i), BLOCK);
		s->done++;
		memset(block_there(0), 0xcc, 64);
		memset(block_there(N - 1), 0xcc, 64);
		fake.bad_addr = block_there(bad) + 5;
		for (unsigned i = 0; i < 2 * N; i++)
			plx_worker_progress(u.w[0]);
		for (unsigned i = 0; i < N; i++)
			UNIT_END(&u, blocks[i], i == bad ? -EFAULT : 0);
		UNIT_EQ(block_there(0)[0], 0xcc);
		UNIT_EQ(block_there(N - 1)[0], 0xcc);
		UNIT_EQ(blocks_moved(), N - 3);
		fake.bad_addr = NULL;
	}
	end();
}

/* With those that are kept in their requests. */
static void
short_puts_are_shared_with_long_ones(void)
{
	begin();
	for (unsigned i = 0; i < N; i++)
		blocks[i] = block_begun(PLX_RMA_PUT, i, i % 2 ? 1 + i % PLX_RMA_COPY_LEN : BLOCK, &u.to[0][TARGET]);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->shares, 1);
	plx_worker_progress(u.w[TARGET]);
	blocks_end(0);
	for (unsigned i = 0; i < N; i++)
		UNIT_SAME(block_there(i), block_here(i), i % 2 ? 1 + i % PLX_RMA_COPY_LEN : BLOCK);
	end();
}

/* The device alone moves cached memory; a slow pace shows that memory is not cached. */
static void
the_time_of_the_last_ones_decides(void)
{
	struct plx_rma_ep *e;

	begin();
	e = plx_rma_ep(u.to[0][TARGET].ep);
	u.w[0]->rma.share_ticks = 1u << 20;
	u.w[0]->rma.chunk = UINT64_MAX;
	e->pace = 1;
	blocks_begun(PLX_RMA_PUT);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 0);
	e->pace = 1u << 20;
	blocks_begun(PLX_RMA_PUT);
	blocks_end(0);
	UNIT_EQ(stat_of(0)->shares, 1);
	UNIT_TRUE(e->pace != 0 && e->pace != 1u << 20);
	end();
}

static void
blocks_that_the_target_gives_back_are_copied(void)
{
	begin();
	blocks_begun(PLX_RMA_PUT);
	fake.get_err = -EIO;
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ((uint32_t)cell(0)->share.bad, 1u << 3);
	blocks_end(0);
	UNIT_EQ(blocks_moved(), N);
	end();
}

static void
many_go_by_messages_when_the_device_may_not_any_more(void)
{
	begin();
	blocks_begun(PLX_RMA_GET);
	fake.refuse_percent = 100;
	blocks_end(0);
	UNIT_EQ(blocks_moved(), N);
	UNIT_TRUE(stat_of(0)->msg > 0);
	end();
}

static void
many_that_are_closed_wait_for_the_target(void)
{
	struct plx_rma_share *s;

	begin();
	for (unsigned i = 0; i < 2; i++) {
		plx_rma_ep(u.to[0][TARGET].ep)->skip = 0;
		blocks_begun(PLX_RMA_GET);
		s = &cell(0)->share;
		UNIT_EQ(target_takes(4), 3);
		close_handle();
		turns();
		UNIT_EQ(blocks_done(), 0);
		UNIT_EQ(target_takes(4), PLX_CURSOR_NONE);
		UNIT_TRUE(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed) != 0);
		if (i == 0)
			s->done++;
		else
			s->bad |= 1u << 3;
		blocks_end(-ECANCELED);
		UNIT_EQ(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed), 0);
	}
	end();
}

/* As one long put does. A target that has not read its blocks yet reads no others later. */
static void
many_puts_that_are_closed_end_at_once(void)
{
	const struct plx_rma_list *list;

	begin();
	blocks_begun(PLX_RMA_PUT);
	list = &plx_rma_ep(u.to[0][TARGET].ep)->part->list;
	UNIT_EQ(list->number, cell(0)->share.token);
	UNIT_EQ(target_takes(4), 3);
	close_handle();
	UNIT_EQ(blocks_done(), N);
	blocks_end(-ECANCELED);
	UNIT_EQ(list->number, 0);
	blocks_begun(PLX_RMA_PUT);
	UNIT_EQ(cell(0)->share.buf, (uintptr_t)list);
	UNIT_EQ(list->number, cell(0)->share.token);
	blocks_end(0);
	end();
}

static void
many_that_are_closed_end_at_once_when_the_target_has_nothing(void)
{
	begin();
	blocks_begun(PLX_RMA_GET);
	close_handle();
	UNIT_EQ(blocks_done(), N);
	blocks_end(-ECANCELED);
	plx_worker_progress(u.w[TARGET]); /* the message is late */
	UNIT_EQ(stat_of(TARGET)->gets, 0);
	end();
}

/* Nor is a flush over before. */
static void
many_outlive_their_ep(void)
{
	struct plx_req *all;
	struct plx_ep *ep;
	uint64_t held;

	begin();
	ep = u.to[0][TARGET].ep;
	held = ep->n_msgs;
	blocks_begun(PLX_RMA_GET);
	UNIT_EQ(target_takes(4), 3);
	plx_ep_fail(ep, -ECONNRESET);
	all = flush(PLX_FLUSH_EP);
	turns();
	UNIT_EQ(blocks_done(), 0);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_EQ(ep->n_msgs, held + N);
	cell(0)->share.done++;
	blocks_end(-ECONNRESET);
	UNIT_END(&u, all, -ECONNRESET);
	UNIT_EQ(ep->n_msgs, held);
	UNIT_EQ(atomic_load_explicit(&cell(0)->owner, memory_order_relaxed), 0);
	end();
}

/* The target counts while they fail: those before that end with the others. */
static void
many_fail_while_the_target_counts(void)
{
	struct plx_rma *r;
	struct plx_ep *ep;
	uint64_t held;

	begin();
	r = &u.w[0]->rma;
	ep = u.to[0][TARGET].ep;
	held = ep->n_msgs;
	blocks_begun(PLX_RMA_GET);
	UNIT_EQ(target_takes(4), 3);
	UNIT_EQ(rma_share_outlives(plx_rma_req(blocks[0]), -EIO), true);
	UNIT_EQ(rma_share_outlives(plx_rma_req(blocks[1]), -EIO), true);
	UNIT_EQ(ep->n_msgs, held + 2);
	cell(0)->share.done++;
	UNIT_EQ(rma_share_outlives(plx_rma_req(blocks[2]), -EIO), false);
	UNIT_EQ(ep->n_msgs, held);
	UNIT_EQ(blocks_done(), 2);
	UNIT_EQ(rma_share_outlives(plx_rma_req(blocks[3]), -EIO), false);
	for (unsigned i = 2; i < N; i++)
		rma_end(r, blocks[i], -EIO);
	blocks_end(-EIO);
	end();
}

/* Two handles on one peer: each one's operations end when it is closed, so they are not shared together. */
static void
operations_of_two_handles_are_not_shared(void)
{
	struct plx_ep_user other;

	begin();
	other = u.to[0][TARGET];
	other.conn_id++;
	for (unsigned i = 0; i < N; i++)
		blocks[i] = block_begun(PLX_RMA_PUT, i, BLOCK, i % 2 ? &other : &u.to[0][TARGET]);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->shares, 0);
	UNIT_EQ(stat_of(0)->bursts, 1);
	blocks_end(0);
	UNIT_EQ(blocks_moved(), N);
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
		share_message(TARGET, 0);
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
		share_message(TARGET, 0);
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
		share_message(TARGET, 1);
		UNIT_EQ(r->stat.refused, i + 1);
		UNIT_EQ(c->share.next, 1ull << 32);
		c->state = PLX_RMA_CELL_IDLE;
	}
	end();
}

static void
share_bad_blocks(void)
{
	const struct plx_rma_block good = {.local = (uintptr_t)here, .addr = (uintptr_t)there, .token = region.token,
		.index = region.index, .len = 64};
	const struct {
		uint32_t len, chunk;
		struct plx_rma_block second;
		bool reads; /* the list is proven when it is read */
		bool other; /* another list is there now */
	} bad[] = {
		{PLX_RMA_BLOCKS_N + 1, 64, good, false, false},
		{2, PLX_RMA_BLOCKS_CHUNK + 1, good, false, false},
		{2, 0, good, false, false},
		{0, 1, good, false, false},
		{PLX_RMA_SHARE_N + 1, 1, good, false, false}, /* more chunks than there are bits */
		{2, 2, {good.local, good.addr, region.token ^ 1, region.index, 64}, true, false},
		{2, 2, {good.local, good.addr, region.token, region.index + 1, 64}, true, false},
		{2, 2, {good.local, (uintptr_t)there + LEN - 8, region.token, region.index, 64}, true, false},
		{2, 2, {good.local, (uintptr_t)there, region.token, region.index, UINT32_MAX}, true, false},
		{2, 2, {good.local, (uintptr_t)there, region.token, region.index, PART - 63}, true, false}, /* too much for a turn */
		{2, 2, good, true, true},
	};
	static struct plx_rma_list list;
	struct plx_rma *r = &u.w[TARGET]->rma;

	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		struct plx_rma_cell *c = cell(1);

		list.number = 5 + bad[i].other;
		list.block[0] = good;
		list.block[1] = bad[i].second;
		c->share.buf = (uintptr_t)&list;
		c->share.token = 5;
		c->share.len = bad[i].len;
		c->share.chunk = bad[i].chunk;
		c->share.kind = PLX_RMA_PUT | PLX_RMA_BLOCKS;
		c->share.next = 1ull << 32;
		c->share.done = 1ull << 32;
		c->share.bad = 1ull << 32;
		c->state = PLX_RMA_CELL_SHARED;
		memset(there, 0xaa, 128);
		share_message(TARGET, 1);
		UNIT_EQ(c->share.done, 1ull << 32);
		UNIT_EQ(c->share.bad, 1ull << 32 | bad[i].reads);
		UNIT_EQ(there[0], 0xaa);
		c->state = PLX_RMA_CELL_IDLE;
	}
	UNIT_EQ(r->stat.refused, 5);
}

/* A list is input, too: a target that refuses one block gives the chunk back, and moves nothing of it. */
static void
bad_blocks_are_refused(void)
{
	begin();
	share_bad_blocks();
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
		UNIT_TEST(both_sides_copy_many_puts),
		UNIT_TEST(both_sides_copy_many_gets),
		UNIT_TEST(blocks_of_all_lengths_are_shared),
		UNIT_TEST(who_posts_leaves_the_rest_to_the_target),
		UNIT_TEST(few_bytes_are_not_shared),
		UNIT_TEST(many_are_copied_without_a_target_that_computes),
		UNIT_TEST(the_error_of_one_is_that_of_no_other),
		UNIT_TEST(what_is_put_well_is_put_once),
		UNIT_TEST(short_puts_are_shared_with_long_ones),
		UNIT_TEST(the_time_of_the_last_ones_decides),
		UNIT_TEST(blocks_that_the_target_gives_back_are_copied),
		UNIT_TEST(many_go_by_messages_when_the_device_may_not_any_more),
		UNIT_TEST(many_that_are_closed_wait_for_the_target),
		UNIT_TEST(many_puts_that_are_closed_end_at_once),
		UNIT_TEST(many_that_are_closed_end_at_once_when_the_target_has_nothing),
		UNIT_TEST(many_outlive_their_ep),
		UNIT_TEST(many_fail_while_the_target_counts),
		UNIT_TEST(operations_of_two_handles_are_not_shared),
		UNIT_TEST(bad_blocks_are_refused),
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
