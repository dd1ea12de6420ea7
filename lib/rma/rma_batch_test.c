/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_batch_test.c - puts and gets that a target which polls does itself
 */
#include <errno.h>
#include <string.h>

#include "rma_test.h"

#define LEN    8192u
#define PART   (1024 - PLX_RMA_BATCH_HEAD) /* of a put or a get, in a message of the device */
#define PARTS  ((LEN + PART - 1) / PART)

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

/* With a request. */
static struct plx_req *
begun(uint64_t len, uint64_t offset)
{
	const struct plx_rma_do d = {.kind = PLX_RMA_PUT, .ep = u.to[0][TARGET].ep, .conn_id = u.to[0][TARGET].conn_id,
		.rkey = &rkey, .buf = here, .len = len, .remote = (uintptr_t)there + offset, .late = true};
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_rma(u.w[0], &d, req);
	return req;
}

static uint64_t
owner_of(uint64_t i)
{
	return atomic_load_explicit(&cell(i)->owner, memory_order_relaxed);
}

/* Batches wait until the test ends that; the first operation shows that the device can. */
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
	UNIT_TRUE(u.w[0]->rma.ask_ticks > rte_get_tsc_hz() / 1000000);
	u.w[0]->rma.ask_ticks = UINT32_MAX;
}

static struct plx_rma_ep *
state(void)
{
	return plx_rma_ep(u.to[0][TARGET].ep);
}

/* An answer that the target may have sent or not. */
static void
answer(uint32_t id, const void *data, uint32_t len)
{
	plx_rma_on_batch_done(&u.w[0]->rma, u.to[0][TARGET].ep, &(struct plx_wire_rma_batch_done){.id = id}, data, len);
}

static void
end(void)
{
	plx_region_remove(&region);
	unit_workers_close(&u);
}

/* No batch waits longer than to the initiator's next turn. */
static void
time_is_up(void)
{
	u.w[0]->rma.ask_ticks = 0;
	state()->batch_until = 0;
}

/* It does both, and both are over only when its answer has come. */
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
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	memset(there, 7, 64);
	UNIT_EQ(move(PLX_RMA_GET, got, 64, 0), -EINPROGRESS);
	all = flush(PLX_FLUSH_EP);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_END(&u, all, 0);
	UNIT_EQ(got[0], 7);
	UNIT_EQ(got[63], 7);
	UNIT_EQ(stat_of(0)->batches, 2);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	UNIT_EQ(stat_of(TARGET)->puts, 1);
	UNIT_EQ(stat_of(TARGET)->gets, 1);
	end();
}

/* The first goes at once, the others as many as a batch has room for. */
static void
many_go_in_few_messages(void)
{
	uint8_t got[64][8];

	begin();
	for (unsigned i = 0; i < 64; i++)
		put((uint8_t)(i + 1), 8 * i);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->batches, 1 + 4);
	UNIT_EQ(stat_of(TARGET)->puts, 64);
	for (unsigned i = 0; i < 64; i++)
		UNIT_EQ(move(PLX_RMA_GET, got[i], 8, 8 * i), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->batches, 2 * (1 + 4));
	for (unsigned i = 0; i < 64; i++)
		UNIT_TRUE(got[i][0] == i + 1 && got[i][7] == i + 1);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	end();
}

/* Of both kinds, up to as many as the device has room for. */
static void
a_long_one_goes_in_parts_if_the_device_says_so(void)
{
	static uint8_t got[LEN];

	begin();
	for (unsigned i = 0; i < LEN; i++)
		here[i] = (uint8_t)(i * 7 + i / 256);
	UNIT_EQ(move(PLX_RMA_PUT, here, LEN, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(memcmp(there, here, LEN), 0);
	UNIT_EQ(stat_of(0)->batches, 0);
	memset(there, 0, LEN);
	fake.bulk = true;
	fake.depth = 4;
	UNIT_EQ(move(PLX_RMA_PUT, here, LEN, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(memcmp(there, here, LEN), 0);
	UNIT_EQ(stat_of(0)->batches, PARTS);
	UNIT_EQ(move(PLX_RMA_GET, got, LEN, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(memcmp(got, here, LEN), 0);
	UNIT_EQ(stat_of(0)->batches, 2 * PARTS);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	end();
}

/* The device and the target learn when more data is in flight than caches hold. */
static void
much_data_is_told_to_the_device_and_the_target(void)
{
	const uint64_t many = PLX_RMA_MUCH / LEN;
	static uint8_t got[LEN];

	begin();
	unit_fill(here, LEN, 1);
	fake.bulk = true;
	for (unsigned much = 0; much < 2; much++) {
		memset(there, 0, LEN);
		memset(got, 0, LEN);
		atomic_fetch_add(&u.w[0]->rma.n_ops, much ? many - 1 : many - 2); /* others */
		fake.n_much = 0;
		UNIT_EQ(move(PLX_RMA_PUT, here, LEN, 0), -EINPROGRESS);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(memcmp(there, here, LEN), 0);
		UNIT_EQ(fake.n_much, much ? stat_of(0)->batches / 3 : 0); /* the third is this one */
		fake.n_much = 0;
		UNIT_EQ(move(PLX_RMA_GET, got, LEN, 0), -EINPROGRESS);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(memcmp(got, here, LEN), 0);
		UNIT_EQ(fake.n_much, much ? stat_of(0)->batches / 4 : 0); /* the answers */
		atomic_fetch_sub(&u.w[0]->rma.n_ops, much ? many - 1 : many - 2);
	}
	UNIT_EQ(stat_of(0)->batches_back, 0);
	end();
}

/* A message to any core is faster than a call of the device, but only with few bytes. */
static void
short_ones_go_in_batches_to_any_core(void)
{
	begin();
	memset(here, 3, LEN);
	UNIT_EQ(move(PLX_RMA_PUT, here, 1024, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->batches, 2);
	UNIT_EQ(there[1023], 3);
	UNIT_EQ(there[1024], 0);
	UNIT_EQ(move(PLX_RMA_PUT, here, 1025, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->batches, 2);
	UNIT_EQ(there[1024], 3);
	end();
}

/* One block of up to 64 bytes goes as a short message, longer ones do not. */
static void
one_block_of_any_length_arrives(void)
{
	static const uint64_t lens[] = {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 66, 128};
	uint8_t got[128];

	begin();
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		memset(here, (int)i + 1, sizeof(got));
		memset(there, 0, sizeof(got));
		memset(got, 0, sizeof(got));
		(void)move(PLX_RMA_PUT, here, lens[i], 3);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_TRUE(there[2] == 0 && there[3 + lens[i]] == 0);
		UNIT_EQ(memcmp(there + 3, here, lens[i]), 0);
		UNIT_EQ(move(PLX_RMA_GET, got, lens[i], 3), -EINPROGRESS);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(memcmp(got, here, lens[i]), 0);
		UNIT_TRUE(lens[i] == sizeof(got) || got[lens[i]] == 0);
	}
	UNIT_EQ(stat_of(0)->batches, 2 * RTE_DIM(lens));
	end();
}

/* Until the answer comes, or the time is up, nothing but a message is looked for. */
static void
who_waits_for_an_answer_only_looks(void)
{
	struct plx_eps *eps;
	struct plx_req *all;
	unsigned looks = 0;

	begin();
	eps = &u.w[0]->eps;
	put(5, 16);
	all = flush(PLX_FLUSH_EP);
	UNIT_EQ(eps->due, PLX_DUE_WORK);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(eps->due, PLX_DUE_BEHIND);
	plx_worker_progress(u.w[TARGET]);
	plx_worker_progress(u.w[0]); /* the message, and what waits for it */
	UNIT_TRUE(plx_req_is_done(all));
	UNIT_END(&u, all, 0);
	UNIT_EQ(eps->due, 0);
	put(6, 16);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(eps->due, PLX_DUE_BEHIND);
	put(7, 24); /* there is more to do */
	UNIT_EQ(eps->due & PLX_DUE_WORK, PLX_DUE_WORK);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches, 3);
	UNIT_EQ(eps->due & PLX_DUE_WORK, PLX_DUE_WORK); /* it has sent */
	plx_worker_progress(u.w[0]);
	UNIT_EQ(eps->due, PLX_DUE_BEHIND);
	time_is_up();
	while (stat_of(0)->batches_back == 0 && looks++ < 2 * PLX_WORKER_LOOKS)
		plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches_back, 2);
	UNIT_TRUE(looks > 1 && looks <= PLX_WORKER_LOOKS + 1);
	UNIT_TRUE(there[16] == 6 && there[24] == 7);
	end();
}

static struct plx_req *flushed_in_callback;

static void
posts_and_flushes(struct plx_req *req)
{
	(void)req;
	put(9, 64);
	put(8, 72);
	flushed_in_callback = flush(PLX_FLUSH_EP);
}

/* Behind an answer, and behind a step of the device, which counts what the target is not asked for. */
static void
a_callback_may_post_and_flush(void)
{
	struct plx_req *req, *other;

	begin();
	for (unsigned by_device = 0; by_device < 2; by_device++) {
		memset(there, 0, 128);
		state()->skip = by_device;
		req = begun(8, 0);
		req->done = posts_and_flushes;
		other = begun(8, 8); /* two, so that they are one call of the device */
		flushed_in_callback = NULL;
		for (unsigned i = 0; i < 10 && flushed_in_callback == NULL; i++)
			unit_turns(&u, 1);
		UNIT_TRUE_FATAL(flushed_in_callback != NULL);
		UNIT_EQ(state()->skip, 0);
		UNIT_END(&u, flushed_in_callback, 0);
		UNIT_TRUE(there[0] == here[0] && there[64] == 9 && there[72] == 8);
		plx_req_put(req);
		UNIT_END(&u, other, 0);
	}
	end();
}

/* The target never runs a turn. Later its turn finds nothing to do. */
static void
an_unanswered_batch_is_recalled(void)
{
	begin();
	time_is_up();
	put(5, 16);
	UNIT_EQ(there[16], 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 5);
	UNIT_EQ(plx_worker_is_flushed(u.w[0], &u.to[0][TARGET]), true);
	UNIT_EQ(stat_of(0)->batches_back, 1);
	there[16] = 6;
	unit_turns(&u, 3);
	UNIT_EQ(there[16], 6);
	UNIT_EQ(stat_of(TARGET)->puts, 0);
	end();
}

/* Its answer comes late, and changes nothing. */
static void
a_late_answer_to_a_get_finds_no_batch(void)
{
	uint8_t got[8] = {0};

	begin();
	time_is_up();
	memset(there, 5, 8);
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(got[0], 5);
	memset(there, 6, 8);
	unit_turns(&u, 3);
	UNIT_EQ(stat_of(TARGET)->gets, 1);
	UNIT_EQ(stat_of(0)->batches_late, 1);
	UNIT_EQ(got[0], 5);
	end();
}

/* Answers may be there that no turn has seen: posting recalls nothing. */
static void
who_posts_does_not_recall(void)
{
	begin();
	put(1, 0);
	state()->batch_until = rte_rdtsc();
	for (unsigned i = 1; i < 40; i++)
		put((uint8_t)(i + 1), 8 * i);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	plx_worker_progress(u.w[TARGET]);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[8 * 39], 40);
	end();
}

/* A target that computes costs a batch in 256 steps; one that polls again gets all. */
static void
who_does_not_poll_is_asked_ever_less(void)
{
	begin();
	time_is_up();
	for (unsigned i = 0; i < 1024; i++) {
		put((uint8_t)i, 0);
		plx_worker_progress(u.w[0]);
		UNIT_EQ(there[0], (uint8_t)i);
	}
	UNIT_EQ(stat_of(0)->batches, 11); /* before 1, 3, 7 ... 255, 255, 255 that are not */
	u.w[0]->rma.ask_ticks = UINT32_MAX;
	for (unsigned i = 0; i < 512; i++) {
		put((uint8_t)i, 0);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(there[0], (uint8_t)i);
	}
	UNIT_TRUE(stat_of(0)->batches > 11 + 256);
	end();
}

/* Late messages of batches that were recalled never move anything twice. */
static void
the_later_put_stays_whoever_does_it(void)
{
	begin();
	for (unsigned i = 0; i < 200; i++) {
		u.w[0]->rma.ask_ticks = i % 3 == 0 ? 0 : UINT32_MAX;
		state()->skip = i % 2;
		put(1, 0);
		put((uint8_t)(i + 2), 0);
		if (i % 5 == 0)
			plx_worker_progress(u.w[TARGET]);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		unit_turns(&u, 2);
		UNIT_EQ(there[0], (uint8_t)(i + 2));
	}
	UNIT_TRUE(stat_of(0)->batches > stat_of(0)->batches_back && stat_of(0)->batches_back > 20);
	end();
}

/* Long ones, pieces, and what a fence holds back. */
static void
others_wait_behind_a_batch(void)
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
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	n = 1;
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_PUT, &v, &n, 0), 0);
	end();
}

/* No batch has operations from both sides of a fence. */
static void
a_fence_ends_a_batch(void)
{
	struct plx_req *after;

	begin();
	put(1, 0);
	put(2, 0);
	UNIT_EQ(plx_worker_fence(u.w[0]), 0);
	here[0] = 3;
	after = begun(8, 8);
	plx_worker_progress(u.w[0]);
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(there[0], 2);
	UNIT_EQ(there[8], 0);
	UNIT_END(&u, after, 0);
	UNIT_EQ(there[8], 3);
	end();
}

/* More are not on the way: the answers have to find room. */
static void
so_many_are_not_answered_and_no_more(void)
{
	static uint8_t got[LEN];

	begin();
	fake.bulk = true;
	for (unsigned i = 0; i < 64 * 16; i++)
		put(9, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches, PLX_RMA_BATCHES);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(TARGET)->puts, 64 * 16);
	UNIT_EQ(state()->n_batches, 0);
	UNIT_EQ(move(PLX_RMA_GET, got, LEN, 0), -EINPROGRESS);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(state()->n_batches, PARTS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(got[0], 9);
	end();
}

/* Where the answers to many gets find no room, fewer are asked for from then on. */
static void
who_gets_too_much_gets_less(void)
{
	static uint8_t got[LEN];

	begin();
	fake.bulk = true;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 4; k++)
			UNIT_EQ(move(PLX_RMA_GET, got, LEN, 0), -EINPROGRESS);
		plx_worker_progress(u.w[0]);
		UNIT_EQ(state()->n_batches, i == 0 ? PLX_RMA_BATCHES_GET : PLX_RMA_BATCHES_SURE);
		time_is_up();
		plx_worker_progress(u.w[0]);
		UNIT_TRUE(stat_of(0)->batches_back != 0);
		u.w[0]->rma.ask_ticks = UINT32_MAX;
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		state()->skip = 0;
	}
	end();
}

/* The device checks no regions, so it does what the target refuses. What was sent before is complete. */
static void
a_refused_one_goes_by_the_device(void)
{
	uint8_t got[8] = {0};

	begin();
	put(4, 8);
	plx_worker_progress(u.w[TARGET]);
	rkey.key.token ^= 1;
	put(5, 0);
	put(6, 16);
	plx_worker_progress(u.w[0]); /* with the answer to the first */
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(there[8], 4);
	UNIT_EQ(there[0], 1);
	UNIT_EQ(stat_of(TARGET)->refused, 1); /* and the other one is of a generation that has ended */
	time_is_up();
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 5);
	UNIT_EQ(there[16], 6);
	UNIT_EQ(state()->skip, UINT8_MAX);
	put(7, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->batches, 2);
	state()->skip = 0;
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	unit_turns(&u, 1);
	UNIT_EQ(stat_of(TARGET)->refused, 2);
	UNIT_EQ(got[0], 7);
	end();
}

/* The device finds whose error it is, and the others are over without one. */
static void
an_error_of_the_device_is_of_its_operation(void)
{
	struct plx_req *req[3];

	begin();
	put(1, 0);
	for (unsigned i = 0; i < 3; i++)
		req[i] = begun(64, 64 + 64 * i);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches, 2);
	fake.bad_addr = there + 64 + 64 + 3;
	time_is_up();
	plx_worker_progress(u.w[0]);
	UNIT_END(&u, req[0], 0);
	UNIT_END(&u, req[1], -EFAULT);
	UNIT_END(&u, req[2], 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	fake.bad_addr = NULL;
	end();
}

/* And what was recalled goes by messages. */
static void
a_device_that_can_no_more_leaves_all_to_messages(void)
{
	uint8_t got[8] = {0};

	begin();
	put(5, 0);
	put(6, 8);
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches, 3);
	fake.refuse_percent = 100;
	time_is_up();
	plx_worker_progress(u.w[0]);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(stat_of(0)->msg, 3);
	UNIT_TRUE(there[0] == 5 && there[8] == 6 && got[0] == 5);
	fake.refuse_percent = 0;
	end();
}

/* While the device is busy, recalled puts stay before later ones. */
static void
what_is_recalled_waits_for_the_device(void)
{
	begin();
	fake.again_percent = 100;
	time_is_up();
	put(5, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[0], 1);
	put(6, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[0], 1);
	fake.again_percent = 0;
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 6);
	end();
}

static void
a_closed_handle_withdraws_its_batches(void)
{
	uint8_t got[8] = {0};

	begin();
	put(5, 0);
	put(6, 8);
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(state()->n_batches, 3);
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
	UNIT_EQ(state()->n_batches, 0);
	unit_turns(&u, 3);
	UNIT_EQ(there[0], 1);
	UNIT_EQ(there[8], 0);
	UNIT_EQ(got[0], 0);
	UNIT_EQ(stat_of(0)->batches_late, 1);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECANCELED);
	put(6, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 6);
	end();
}

/* The target has begun: nobody else does it, however long that takes. */
static void
what_is_claimed_is_waited_for(void)
{
	struct plx_req *all;
	unsigned n;

	begin();
	time_is_up();
	put(5, 0);
	put(6, 8);
	UNIT_TRUE(plx_rma_cell_claim(cell(0), state()->gen, 0));
	all = flush(PLX_FLUSH_EP);
	for (unsigned i = 0; i < 20; i++)
		plx_worker_progress(u.w[0]);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_EQ(there[0], 1);
	UNIT_EQ(there[8], 0); /* its order stays */
	n = (unsigned)stat_of(0)->batches;
	state()->skip = 0;
	put(7, 16); /* and that of those behind it */
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->batches, n);
	UNIT_EQ(plx_rma_cell_claim(cell(0), state()->gen - 1, 1), false);
	answer(state()->batch_id - 2, NULL, 0);
	UNIT_END(&u, all, 0);
	UNIT_EQ(there[0], 1);
	UNIT_EQ(there[8], 6);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[16], 7);
	end();
}

/* While the target claims one after the other it is not hurried. */
static void
a_target_that_goes_on_is_not_recalled(void)
{
	begin();
	put(5, 0);
	put(6, 8);
	plx_worker_progress(u.w[0]);
	for (unsigned i = 0; i < 2; i++) {
		UNIT_TRUE(plx_rma_cell_claim(cell(0), state()->gen, i));
		time_is_up();
		plx_worker_progress(u.w[0]);
		UNIT_EQ(stat_of(0)->batches_back, 0);
	}
	answer(state()->batch_id - 2, NULL, 0);
	answer(state()->batch_id - 1, NULL, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

/* A handle that is closed does not wait for a claimed batch: the target's answer finds none. */
static void
a_closed_handle_leaves_what_is_claimed(void)
{
	begin();
	put(5, 0);
	UNIT_TRUE(plx_rma_cell_claim(cell(0), state()->gen, 0));
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECANCELED);
	answer(state()->batch_id - 1, NULL, 0);
	UNIT_EQ(state()->n_batches, 0);
	put(6, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 6);
	end();
}

static void
a_dead_target_ends_what_it_was_asked(void)
{
	begin();
	put(5, 0);
	put(6, 0);
	plx_worker_progress(u.w[0]);
	UNIT_TRUE(plx_rma_cell_claim(cell(0), state()->gen, 0));
	time_is_up();
	plx_worker_progress(u.w[0]); /* it learns of the claim */
	state()->batch_until = 0;
	plx_worker_progress(u.w[0]);
	UNIT_TRUE(state()->n_batches != 0);
	unit_kill(&u, TARGET);
	unit_check_peers(u.w[0]);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(u.w[0]->eps.due, PLX_DUE_WORK); /* the next one reports it, if this one has not */
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECONNRESET);
	unit_turns(&u, 3);
	UNIT_EQ(state()->n_batches, 0);
	UNIT_EQ(u.w[0]->rma.n_eps, 0);
	UNIT_EQ(u.w[0]->rma.n_send, 0);
	end();
}

static void
cells_of_ended_processes_are_free_again(void)
{
	begin();
	put(5, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
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

/* All are another's: nothing is sent, and nothing waits. */
static void
without_a_cell_the_device_does_it(void)
{
	begin();
	for (uint64_t i = 0; cell(i) != NULL; i++)
		atomic_store_explicit(&cell(i)->owner, 99, memory_order_relaxed);
	put(5, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[0], 5);
	UNIT_EQ(stat_of(0)->batches, 0);
	end();
}

/* The ring is full: who does not make room is not waited for. */
static void
without_room_the_device_does_it(void)
{
	begin();
	fake.full_percent = 100;
	put(5, 16);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 0);
	state()->batch_until = 1;
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 5);
	UNIT_EQ(stat_of(0)->batches, 0);
	UNIT_EQ(state()->skip, 1);
	fake.full_percent = 0;
	end();
}

/* And who has made room before is given time again. */
static void
a_full_ring_is_waited_for_a_while(void)
{
	struct plx_rma_piece v = {here, (uintptr_t)there + 16, 8, UCS_MEMORY_TYPE_HOST};
	unsigned n = 1;

	begin();
	put(4, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(state()->batch_until, 0);
	fake.full_percent = 100;
	put(5, 16);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(there[16], 0);
	UNIT_EQ(state()->skip, 0);
	for (unsigned i = 0; i < 2; i++, n = 1) /* nothing passes it */
		UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_PUT, &v, &n, 0), -EAGAIN);
	fake.full_percent = 0;
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[16], 5);
	UNIT_EQ(stat_of(0)->batches, 2);
	end();
}

/* The answer to a put comes when there is room. A get is not answered; the device does it. */
static void
answers_need_room(void)
{
	struct plx_req *all;
	uint8_t got[8] = {0};

	begin();
	put(5, 0);
	put(6, 8);
	plx_worker_progress(u.w[0]);
	fake.full_percent = 100;
	plx_worker_progress(u.w[TARGET]);
	UNIT_EQ(there[8], 6);
	all = flush(PLX_FLUSH_EP);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(plx_req_is_done(all), false);
	fake.full_percent = 0;
	UNIT_END(&u, all, 0);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	fake.full_percent = 100;
	plx_worker_progress(u.w[TARGET]);
	fake.full_percent = 0;
	unit_turns(&u, 2);
	UNIT_EQ(got[0], 0);
	time_is_up();
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(got[0], 5);
	UNIT_EQ(stat_of(0)->batches_back, 1);
	end();
}

/* Its answer does not come, and those to puts behind it do: it is not waited for as long as these go on. */
static void
a_get_without_an_answer_is_recalled_behind_others(void)
{
	uint8_t got[8] = {0};

	begin();
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	fake.full_percent = 100;
	plx_worker_progress(u.w[TARGET]);
	fake.full_percent = 0;
	for (unsigned i = 0; i < 2 * 8 && got[0] == 0; i++) {
		put((uint8_t)i, 8);
		unit_turns(&u, 2);
	}
	UNIT_EQ(got[0], 1);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

/* A program that only posts, to a target that computes, is not given memory for ever. */
static void
who_only_posts_does_recall_at_last(void)
{
	begin();
	u.w[0]->rma.ask_ticks = (uint32_t)(1u << 16);
	while (stat_of(0)->batches_back == 0)
		put(9, 0);
	UNIT_EQ(there[0], 9);
	for (unsigned i = 0; i < 2000; i++)
		put(8, 0);
	UNIT_TRUE(stat_of(0)->bursts != 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 8);
	end();
}

/* No turn sees the answers, whatever time passes: this does not mean that the target computes. */
static void
gets_of_a_program_that_posts_are_not_recalled(void)
{
	static uint8_t got[480][8];

	begin();
	time_is_up();
	memset(there, 3, LEN);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(move(PLX_RMA_GET, got[i], 8, 8 * i), -EINPROGRESS);
	UNIT_EQ(state()->n_batches, PLX_RMA_BATCHES_GET);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	UNIT_EQ(state()->skip, 0);
	u.w[0]->rma.ask_ticks = UINT32_MAX;
	plx_worker_progress(u.w[TARGET]);
	unit_turns(&u, 20);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	UNIT_TRUE(stat_of(TARGET)->gets > PLX_RMA_BATCHES_GET);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(got[i][7], 3);
	end();
}

/* A long list is posted in one call: most of it need not wait for answers that this call can't see. */
static void
gets_go_past_those_that_wait_for_answers(void)
{
	static uint8_t got[1000][8];
	unsigned n_early = 0;

	begin();
	memset(there, 4, LEN);
	memset(got, 0, sizeof(got));
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(move(PLX_RMA_GET, got[i], 8, 8 * i), -EINPROGRESS);
	UNIT_EQ(state()->n_batches, PLX_RMA_BATCHES_GET);
	UNIT_TRUE(fake.bursts > 0);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		n_early += got[i][7] == 4;
	UNIT_TRUE(n_early >= RTE_DIM(got) - 2 * PLX_RMA_BURST);
	UNIT_EQ(got[0][7], 0); /* the target's */
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(got[i][7], 4);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	end();
}

#define LONG_GETS 8

static uint8_t long_got[LONG_GETS][LEN];

/* The first is in batches as far as a call that posts sends these. */
static void
long_gets_begin(void)
{
	fake.bulk = true;
	for (unsigned i = 0; i < LEN; i++)
		there[i] = (uint8_t)(i / 64 + 1);
	memset(long_got, 0, sizeof(long_got));
	for (unsigned i = 0; i < LONG_GETS; i++)
		UNIT_EQ(move(PLX_RMA_GET, long_got[i], LEN, 0), -EINPROGRESS);
}

/* As behind many others. */
static void
long_gets_go_on(void)
{
	atomic_fetch_add(&u.w[0]->rma.n_ops, PLX_RMA_MANY);
	plx_rma_run_late(&u.w[0]->rma, u.to[0][TARGET].ep);
	atomic_fetch_sub(&u.w[0]->rma.n_ops, PLX_RMA_MANY);
}

static unsigned
long_gets_done(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LONG_GETS; i++)
		n += long_got[i][LEN - 1] != 0;
	return n;
}

static void
long_gets_end(void)
{
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	for (unsigned i = 0; i < LONG_GETS; i++)
		UNIT_SAME(long_got[i], there, LEN);
}

/* The device would end it without its beginning. */
static void
what_is_in_batches_in_part_does_not_go_on(void)
{
	begin();
	long_gets_begin();
	plx_worker_progress(u.w[0]); /* more than one in batches, and no more batches */
	UNIT_EQ(state()->n_batches, PLX_RMA_BATCHES_GET);
	UNIT_TRUE(PLX_RMA_BATCHES_GET % PARTS != 0);
	long_gets_go_on(); /* only behind that one */
	UNIT_EQ(state()->n_batches, PLX_RMA_BATCHES_GET);
	UNIT_EQ(long_gets_done(), 0);
	long_gets_end();
	end();
}

/* So that the next ones can. */
static void
a_get_that_would_be_in_batches_in_part_waits(void)
{
	begin();
	long_gets_begin();
	long_gets_go_on();
	UNIT_EQ(state()->n_batches, PARTS);
	UNIT_EQ(long_gets_done(), LONG_GETS - 1);
	long_gets_end();
	end();
}

static void
gets_do_not_go_past_puts(void)
{
	static uint8_t got[700][8];

	begin();
	put(7, 0);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(move(PLX_RMA_GET, got[i], 8, 0), -EINPROGRESS);
	UNIT_EQ(fake.bursts, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	for (unsigned i = 0; i < RTE_DIM(got); i++)
		UNIT_EQ(got[i][7], 7);
	end();
}

/* The puts behind it would take requests for ever. */
static void
an_unseen_get_does_not_stop_who_only_posts(void)
{
	uint8_t got[8];

	begin();
	u.w[0]->rma.ask_ticks = (uint32_t)(1u << 16);
	memset(there, 1, 8);
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	for (unsigned i = 0; i < 200000 && stat_of(0)->batches_back == 0; i++)
		put(9, 0);
	UNIT_TRUE(stat_of(0)->batches_back != 0);
	UNIT_EQ(state()->skip, 0); /* the target may have answered */
	UNIT_EQ(state()->most_gets, PLX_RMA_BATCHES_GET);
	UNIT_EQ(got[7], 1);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], 9);
	end();
}

static void
puts_do_not_go_past_others(void)
{
	begin();
	for (unsigned i = 0; i < 2000; i++)
		put((uint8_t)i, 0);
	UNIT_EQ(there[0], 1); /* of the first operation, before any batch */
	UNIT_EQ(fake.bursts, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(there[0], (uint8_t)1999);
	end();
}

/* The target may have to read them from memory. */
static void
many_bytes_have_more_time(void)
{
	const uint64_t ask = 1u << 30;
	uint8_t got[8];
	uint64_t now;

	begin();
	fake.bulk = true;
	u.to[0][TARGET].ep->peer->mtu = LEN + PLX_RMA_BATCH_HEAD;
	u.w[0]->rma.ask_ticks = (uint32_t)ask;
	now = rte_rdtsc();
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	UNIT_EQ((state()->batch_until - now) / ask, 1);
	UNIT_EQ(move(PLX_RMA_GET, here, LEN, 0), -EINPROGRESS);
	unit_turns(&u, 2); /* the first is over, and the target has the second */
	UNIT_EQ((state()->batch_until - now) / ask, 1 + LEN / 2048);
	time_is_up(); /* its answer finds no room in a message here */
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

/* A message from anybody. */
static void
ask(struct plx_wire_rma_batch h, const struct plx_wire_rma_block *b, uint32_t n, uint32_t bytes)
{
	uint8_t data[1024];

	memset(data, 0x77, sizeof(data));
	memcpy(data, b, n * sizeof(*b));
	plx_rma_on_batch(&u.w[TARGET]->rma, u.to[TARGET][0].ep, &h, data, n * (uint32_t)sizeof(*b) + bytes);
}

static void
bad_batches_are_refused(void)
{
	const struct plx_rma_stat *s;
	struct plx_wire_rma_block b[PLX_RMA_BATCH_N + 1];
	struct plx_wire_rma_batch h = {.n = 1, .kind = PLX_RMA_PUT};
	uint64_t claims;

	begin();
	put(5, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	s = stat_of(TARGET);
	for (unsigned i = 0; i < RTE_DIM(b); i++)
		b[i] = (struct plx_wire_rma_block){.addr = (uintptr_t)there + 64, .token = region.token, .index = region.index,
			.len = 8};
	h.gen = state()->gen;
	h.number = state()->number;
	claims = cell(0)->claims;
	ask((struct plx_wire_rma_batch){.n = 0}, b, 0, 0);
	ask((struct plx_wire_rma_batch){.n = PLX_RMA_BATCH_N + 1}, b, PLX_RMA_BATCH_N + 1, 8 * (PLX_RMA_BATCH_N + 1));
	ask((struct plx_wire_rma_batch){.n = 1, .kind = PLX_RMA_ATOMIC}, b, 1, 8);
	ask((struct plx_wire_rma_batch){.n = 2}, b, 1, 8);
	ask(h, b, 1, 7);
	ask(h, b, 1, 9);
	b[0].len = PLX_RMA_BATCH_LEN + 1;
	ask((struct plx_wire_rma_batch){.n = 1, .kind = PLX_RMA_GET}, b, 1, 0);
	b[0].len = b[1].len = UINT32_MAX; /* the sum of both is not that of 32 bits */
	ask((struct plx_wire_rma_batch){.n = 2, .kind = PLX_RMA_GET}, b, 2, 0);
	b[0].len = b[1].len = 8;
	UNIT_EQ(s->drop_bad_range, 8);
	h.cell = UINT16_MAX;
	ask(h, b, 1, 8);
	h.cell = 0;
	u.to[TARGET][0].ep->peer->proc = 5; /* another one's */
	ask(h, b, 1, 8);
	u.to[TARGET][0].ep->peer->proc = 0;
	UNIT_EQ(s->refused, 2);
	h.number++; /* not the next one */
	ask(h, b, 1, 8);
	h.number--;
	h.gen--; /* recalled */
	ask(h, b, 1, 8);
	h.gen++;
	UNIT_EQ(cell(0)->claims, claims);
	UNIT_EQ(there[64], 0);
	b[1].addr = (uintptr_t)there + LEN - 7; /* all or none */
	h.n = 2;
	ask(h, b, 2, 16);
	UNIT_EQ(s->refused, 3);
	UNIT_EQ(there[64], 0);
	UNIT_TRUE(cell(0)->claims != claims);
	UNIT_EQ(s->puts, 1);
	end(); /* waits for all accesses to the region */
}

static void
bad_answers_are_dropped(void)
{
	uint8_t got[8] = {0}, data[16];
	uint32_t id;

	begin();
	memset(there, 5, 8);
	memset(data, 9, sizeof(data));
	UNIT_EQ(move(PLX_RMA_GET, got, 8, 0), -EINPROGRESS);
	id = state()->batch_id - 1;
	answer(id + 1, data, 8);
	UNIT_EQ(stat_of(0)->batches_late, 1);
	answer(id, data, 7);
	answer(id, data, 9);
	answer(id, data, 0);
	UNIT_EQ(stat_of(0)->drop_bad_range, 3);
	UNIT_EQ(got[0], 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(got[0], 5);
	answer(id, data, 8);
	UNIT_EQ(stat_of(0)->batches_late, 2);
	put(6, 0);
	answer(state()->batch_id - 1, data, 8);
	UNIT_EQ(stat_of(0)->drop_bad_range, 4);
	UNIT_EQ(state()->n_batches, 1);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

/* Another process writes to a cell that is ours: whatever it claims, the device does the rest. */
static void
a_spoilt_cell_ends_what_it_was_used_for(void)
{
	static const uint64_t spoilt[] = {0, 77, UINT64_MAX};

	begin();
	for (unsigned i = 0; i < RTE_DIM(spoilt); i++) {
		state()->skip = 0;
		time_is_up();
		put((uint8_t)(10 + i), 0);
		cell(0)->claims = i == 2 ? (uint64_t)state()->gen << 32 | 1000 : spoilt[i];
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(there[0], 10 + i);
		UNIT_EQ(state()->skip, UINT8_MAX);
		u.w[0]->rma.ask_ticks = UINT32_MAX;
		state()->skip = 0;
		put((uint8_t)(20 + i), 0);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
		UNIT_EQ(there[0], 20 + i);
		UNIT_EQ(stat_of(TARGET)->puts, i + 1);
	}
	end();
}

/* No number is used twice in a generation. */
static void
after_the_last_number_comes_the_next_generation(void)
{
	uint32_t gen;

	begin();
	put(5, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	gen = state()->gen;
	state()->number = UINT32_MAX;
	cell(0)->claims = (uint64_t)gen << 32 | UINT32_MAX;
	put(6, 0);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_EQ(state()->gen, gen + 1);
	UNIT_EQ(state()->number, 1);
	UNIT_EQ(there[0], 6);
	UNIT_EQ(stat_of(0)->batches_back, 0);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_target_that_polls_does_it),
	UNIT_TEST(many_go_in_few_messages),
	UNIT_TEST(a_long_one_goes_in_parts_if_the_device_says_so),
	UNIT_TEST(much_data_is_told_to_the_device_and_the_target),
	UNIT_TEST(short_ones_go_in_batches_to_any_core),
	UNIT_TEST(one_block_of_any_length_arrives),
	UNIT_TEST(who_waits_for_an_answer_only_looks),
	UNIT_TEST(a_callback_may_post_and_flush),
	UNIT_TEST(an_unanswered_batch_is_recalled),
	UNIT_TEST(a_late_answer_to_a_get_finds_no_batch),
	UNIT_TEST(who_posts_does_not_recall),
	UNIT_TEST(who_does_not_poll_is_asked_ever_less),
	UNIT_TEST(the_later_put_stays_whoever_does_it),
	UNIT_TEST(others_wait_behind_a_batch),
	UNIT_TEST(a_fence_ends_a_batch),
	UNIT_TEST(so_many_are_not_answered_and_no_more),
	UNIT_TEST(who_gets_too_much_gets_less),
	UNIT_TEST(a_refused_one_goes_by_the_device),
	UNIT_TEST(an_error_of_the_device_is_of_its_operation),
	UNIT_TEST(a_device_that_can_no_more_leaves_all_to_messages),
	UNIT_TEST(what_is_recalled_waits_for_the_device),
	UNIT_TEST(a_closed_handle_withdraws_its_batches),
	UNIT_TEST(what_is_claimed_is_waited_for),
	UNIT_TEST(a_target_that_goes_on_is_not_recalled),
	UNIT_TEST(a_closed_handle_leaves_what_is_claimed),
	UNIT_TEST(a_dead_target_ends_what_it_was_asked),
	UNIT_TEST(cells_of_ended_processes_are_free_again),
	UNIT_TEST(without_a_cell_the_device_does_it),
	UNIT_TEST(without_room_the_device_does_it),
	UNIT_TEST(a_full_ring_is_waited_for_a_while),
	UNIT_TEST(answers_need_room),
	UNIT_TEST(a_get_without_an_answer_is_recalled_behind_others),
	UNIT_TEST(who_only_posts_does_recall_at_last),
	UNIT_TEST(gets_of_a_program_that_posts_are_not_recalled),
	UNIT_TEST(gets_go_past_those_that_wait_for_answers),
	UNIT_TEST(what_is_in_batches_in_part_does_not_go_on),
	UNIT_TEST(a_get_that_would_be_in_batches_in_part_waits),
	UNIT_TEST(gets_do_not_go_past_puts),
	UNIT_TEST(an_unseen_get_does_not_stop_who_only_posts),
	UNIT_TEST(puts_do_not_go_past_others),
	UNIT_TEST(many_bytes_have_more_time),
	UNIT_TEST(bad_batches_are_refused),
	UNIT_TEST(bad_answers_are_dropped),
	UNIT_TEST(a_spoilt_cell_ends_what_it_was_used_for),
	UNIT_TEST(after_the_last_number_comes_the_next_generation),
	CU_TEST_INFO_NULL,
};

int
main(void)
{
	CU_SuiteInfo suites[] = {{"rma_batch", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	if (unit_start() != 0)
		return 77;
	return unit_run(suites);
}
