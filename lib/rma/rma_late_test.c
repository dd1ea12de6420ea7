/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_late_test.c - short puts and gets that wait for each other
 */
#include <errno.h>
#include <string.h>

#include "plx_proc.h"
#include "rma_int.h"
#include "rma_test.h"

#define LEN    (256u << 10)

static struct plx_region_key region;
static struct plx_rkey rkey;
static uint8_t there[LEN], here[LEN];

static struct plx_rma_do
op_of(uint8_t kind, void *buf, uint64_t len, uint64_t offset)
{
	return (struct plx_rma_do){.kind = kind, .ep = u.to[0][TARGET].ep,
		.conn_id = u.to[0][TARGET].conn_id, .rkey = &rkey, .buf = buf, .len = len,
		.remote = (uintptr_t)there + offset, .late = true};
}

/* Of a program that needs no request. */
static int
hidden(uint8_t kind, void *buf, uint64_t len, uint64_t offset)
{
	const struct plx_rma_do d = op_of(kind, buf, len, offset);

	return plx_worker_rma_now(u.w[0], &d, true);
}

static struct plx_req *
visible(uint8_t kind, void *buf, uint64_t len, uint64_t offset)
{
	const struct plx_rma_do d = op_of(kind, buf, len, offset);
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_rma(u.w[0], &d, req);
	return req;
}

/* The first operation shows that the device can, and is not one of those that wait. */
static void
begin(void)
{
	fake_reset(7);
	unit_workers_conf(&u);
	unit_workers_open(&u, UNIT_WORKERS);
	UNIT_TRUE_FATAL((fake.caps & PLX_DEV_PUT) != 0 && (fake.caps & PLX_DEV_GET) != 0);
	u.w[0]->rma.batch_len = 0; /* all by the device */
	memset(there, 0, LEN);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)there, LEN, PLX_REGION_READ | PLX_REGION_WRITE, &region), 0);
	rkey = (struct plx_rkey){.base = (uintptr_t)there, .len = LEN, .can = UINT8_MAX, .key = region};
	here[0] = 1;
	UNIT_EQ(hidden(PLX_RMA_PUT, here, 8, 0), 0);
	UNIT_EQ(there[0], 1);
	UNIT_EQ(stat_of(0)->late, 0);
}

static void
end(void)
{
	plx_region_remove(&region);
	unit_workers_close(&u);
}

/* As many as given, of 8 bytes each. */
static void
put_row(unsigned n, uint8_t value)
{
	for (unsigned i = 0; i < n; i++) {
		memset(here, value + (int)i, 8);
		UNIT_EQ(hidden(PLX_RMA_PUT, here, 8, 8 * i), 0);
	}
	memset(here, 0xee, 8); /* the program's again */
}

static bool
is_row(unsigned n, uint8_t value)
{
	for (unsigned i = 0; i < n; i++)
		if (there[8 * i] != (uint8_t)(value + i) || there[8 * i + 7] != (uint8_t)(value + i))
			return false;
	return true;
}

/* It is over when the call returns. */
static void
flush_now(enum plx_flush_kind kind)
{
	struct plx_req *req;

	UNIT_EQ(plx_worker_is_flushed(u.w[0], kind == PLX_FLUSH_EP ? &u.to[0][TARGET] : NULL), false);
	req = flush(kind);
	UNIT_TRUE(plx_req_is_done(req));
	UNIT_END(&u, req, 0);
}

static void
by_flush_of_the_ep(void)
{
	flush_now(PLX_FLUSH_EP);
}

static void
by_flush_of_the_worker(void)
{
	flush_now(PLX_FLUSH_WORKER);
}

static void
by_fence(void)
{
	UNIT_EQ(plx_worker_fence(u.w[0]), 0);
	UNIT_EQ(plx_worker_is_fenced(u.w[0]), false);
}

static void
by_progress(void)
{
	UNIT_EQ(u.w[0]->eps.due & PLX_DUE_WORK, PLX_DUE_WORK);
	plx_worker_progress(u.w[0]);
}

static void
short_puts_are_moved_by_one_call(void)
{
	static void (*const how[])(void) = {by_flush_of_the_ep, by_flush_of_the_worker, by_fence,
		by_progress};

	begin();
	for (unsigned i = 0; i < RTE_DIM(how); i++) {
		memset(there, 0, LEN);
		fake.bursts = 0;
		put_row(PLX_RMA_LATE_N - 1, 1);
		UNIT_EQ(there[0], 0);
		how[i]();
		UNIT_TRUE(is_row(PLX_RMA_LATE_N - 1, 1));
		UNIT_EQ(fake.bursts, 1);
		UNIT_EQ(stat_of(0)->bursts, i + 1);
		UNIT_EQ(stat_of(0)->late, (PLX_RMA_LATE_N - 1) * (i + 1));
	}
	UNIT_EQ(stat_of(TARGET)->puts, 0);
	end();
}

/* A program that never calls progress takes no more memory. */
static void
the_last_of_a_row_moves_all(void)
{
	uint32_t n_free = 0;

	begin();
	for (unsigned k = 0; k < 100; k++) {
		put_row(PLX_RMA_LATE_N, (uint8_t)k);
		UNIT_TRUE(is_row(PLX_RMA_LATE_N, (uint8_t)k));
		if (k == 0)
			n_free = u.w[0]->chan_reqs.pool.n_free;
	}
	UNIT_EQ(u.w[0]->chan_reqs.pool.n_free, n_free);
	UNIT_EQ(fake.bursts, 100);
	end();
}

static void
puts_and_gets_keep_their_order(void)
{
	uint8_t a[8], b[8];

	begin();
	put_row(1, 1);
	put_row(1, 2);
	UNIT_EQ(hidden(PLX_RMA_GET, a, 8, 0), -EINPROGRESS);
	put_row(1, 3);
	UNIT_EQ(hidden(PLX_RMA_GET, b, 8, 0), -EINPROGRESS);
	by_flush_of_the_ep();
	UNIT_EQ(a[0], 2);
	UNIT_EQ(b[0], 3);
	UNIT_EQ(there[0], 3);
	end();
}

/* Two of this length. */
static void
gets_move_together(uint64_t len)
{
	struct plx_req *reqs[2];

	fake.bursts = 0;
	memset(there, (int)(len >> 8), LEN);
	for (unsigned i = 0; i < 2; i++)
		reqs[i] = visible(PLX_RMA_GET, here + i * len, len, i * len);
	UNIT_EQ(plx_req_is_done(reqs[0]), false);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(fake.bursts, 1);
	UNIT_END(&u, reqs[0], 0);
	UNIT_END(&u, reqs[1], 0);
	UNIT_EQ(memcmp(here, there, 2 * len), 0);
}

static void
what_is_too_short_to_be_shared_waits(void)
{
	begin();
	u.w[0]->rma.share_min = UINT64_MAX; /* nor are both together */
	gets_move_together(32u << 10);
	gets_move_together(PLX_RMA_SHARE_MIN - 1);
	end();
}

static void
one_that_is_too_long_takes_the_others_with_it(void)
{
	begin();
	u.w[0]->rma.share_min = UINT64_MAX;
	put_row(1, 1);
	memset(here, 2, LEN);
	UNIT_EQ(hidden(PLX_RMA_PUT, here, PLX_RMA_LATE_LEN + 1, 0), 0);
	UNIT_EQ(there[0], 2);
	put_row(1, 3);
	memset(here, 4, LEN);
	UNIT_END(&u, visible(PLX_RMA_PUT, here, PLX_RMA_LATE_LEN + 1, 0), 0);
	UNIT_EQ(there[0], 4);
	end();
}

static unsigned n_called;

static void
called(struct plx_req *req)
{
	(void)req;
	n_called++;
}

/* A flush moves; callbacks are for progress. */
static void
callbacks_run_in_progress(void)
{
	struct plx_req *reqs[3];

	begin();
	n_called = 0;
	memset(there, 5, 64);
	for (unsigned i = 0; i < 3; i++) {
		reqs[i] = visible(PLX_RMA_GET, here + 64 * i, 64, 0);
		reqs[i]->done = called;
		UNIT_EQ(here[64 * i] == 5, false);
	}
	by_flush_of_the_ep();
	for (unsigned i = 0; i < 3; i++)
		UNIT_EQ(here[64 * i + 63], 5);
	UNIT_EQ(n_called, 0);
	plx_worker_progress(u.w[0]);
	UNIT_EQ(n_called, 3);
	for (unsigned i = 0; i < 3; i++)
		UNIT_END(&u, reqs[i], 0);
	end();
}

static void
cancels_all(struct plx_req *req)
{
	(void)req;
	plx_ep_cancel(u.to[0][TARGET].ep, u.to[0][TARGET].conn_id, -ECANCELED);
}

/* What was moved together is over when the first callback runs. */
static void
a_callback_may_close_the_handle_of_the_others(void)
{
	struct plx_req *reqs[4];

	begin();
	for (unsigned i = 0; i < 4; i++) {
		reqs[i] = visible(i == 3 ? PLX_RMA_PUT : PLX_RMA_GET, here + 64 * i, 64, 128);
		reqs[i]->done = i == 0 ? cancels_all : NULL;
	}
	plx_worker_progress(u.w[0]);
	for (unsigned i = 0; i < 4; i++) {
		UNIT_TRUE(plx_req_is_done(reqs[i]));
		UNIT_EQ(reqs[i]->status, i == 3 ? -ECANCELED : 0);
		plx_req_put(reqs[i]);
	}
	end();
}

/* Closed by force: the buffers are not looked at any more. */
static void
what_waits_ends_with_its_handle(void)
{
	struct plx_req *get;

	begin();
	put_row(1, 9);
	UNIT_EQ(hidden(PLX_RMA_PUT, here, 64, 0), -EINPROGRESS);
	get = visible(PLX_RMA_GET, here, 64, 0);
	cancels_all(NULL);
	UNIT_END(&u, get, -ECANCELED);
	unit_turns(&u, 2);
	UNIT_EQ(there[0], 1);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECANCELED);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

static void
a_bad_one_fails_alone(void)
{
	struct plx_req *get;

	begin();
	fake.bad_addr = there + 16;
	put_row(4, 1);
	get = visible(PLX_RMA_GET, here, 8, 16);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -EFAULT);
	UNIT_END(&u, get, -EFAULT);
	UNIT_EQ(there[8], 2);
	UNIT_EQ(there[16], 0);
	UNIT_EQ(there[24], 4);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	end();
}

/* It could before: what waits goes on by message, a copied put with its bytes. */
static void
what_the_device_refuses_goes_by_message(void)
{
	struct plx_req *get, *all;

	begin();
	put_row(8, 1);
	memset(here, 7, 64);
	UNIT_EQ(hidden(PLX_RMA_PUT, here, 64, 64), -EINPROGRESS);
	get = visible(PLX_RMA_GET, here + 64, 128, 0);
	u.to[0][TARGET].ep->peer->caps &= ~(PLX_DEV_GET | PLX_DEV_PUT);
	all = flush(PLX_FLUSH_EP);
	UNIT_EQ(plx_req_is_done(all), false);
	UNIT_END(&u, all, 0);
	UNIT_END(&u, get, 0);
	UNIT_TRUE(is_row(8, 1));
	UNIT_EQ(there[64 + 63], 7);
	UNIT_SAME(here + 64, there, 128);
	UNIT_EQ(stat_of(TARGET)->puts, 9);
	UNIT_EQ(hidden(PLX_RMA_PUT, here, 8, 0), -EAGAIN);
	end();
}

static void
a_dead_target_ends_what_waits(void)
{
	struct plx_req *get;

	begin();
	put_row(3, 1);
	get = visible(PLX_RMA_GET, here, 64, 0);
	unit_kill(&u, TARGET);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECONNRESET);
	UNIT_END(&u, get, -ECONNRESET);
	UNIT_EQ(there[8], 0);
	end();
}

/* Both worker and target: who sleeps now would move nothing until it is woken. */
static void
who_has_some_that_wait_does_not_sleep(void)
{
	begin();
	UNIT_EQ(TAILQ_EMPTY(&u.w[0]->rma.eps), true);
	put_row(1, 1);
	UNIT_EQ(TAILQ_EMPTY(&u.w[0]->rma.eps), false); /* lib/worker/sleep.c */
	plx_worker_progress(u.w[0]);
	UNIT_EQ(TAILQ_EMPTY(&u.w[0]->rma.eps), true);
	end();
}

static void
pieces_are_moved_at_once_behind_what_waits(void)
{
	struct plx_rma_piece v[PLX_RMA_BURST];
	unsigned n = PLX_RMA_BURST;

	begin();
	put_row(1, 9);
	for (unsigned i = 0; i < n; i++) {
		v[i] = (struct plx_rma_piece){here + 16 * i, (uintptr_t)there + 24 * i, 16,
			UCS_MEMORY_TYPE_HOST};
		memset(here + 16 * i, (int)i, 16);
	}
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_PUT, v, &n, 0), 0);
	UNIT_EQ(n, PLX_RMA_BURST);
	for (unsigned i = 0; i < n; i++)
		UNIT_SAME(there + 24 * i, here + 16 * i, 16);
	fake.bad_addr = there + 24 * 5;
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_GET, v, &n, 0), -EFAULT);
	UNIT_EQ(n, 5);
	fake.bad_addr = NULL;
	u.to[0][TARGET].ep->peer->caps &= ~(PLX_DEV_GET | PLX_DEV_PUT);
	n = 4;
	UNIT_EQ(plx_worker_rma_pieces(u.w[0], u.to[0][TARGET].ep, PLX_RMA_GET, v, &n, 0), -EAGAIN);
	UNIT_EQ(n, 0);
	end();
}

/* @return whether a put of 8 bytes is there when the call returns; then waits for it */
static bool
put_is_at_once(uint8_t value, void (*wait)(void))
{
	const uint64_t late = stat_of(0)->late;
	bool now;

	put_row(1, value);
	now = is_row(1, value);
	UNIT_EQ(stat_of(0)->late - late, now ? 0 : 1);
	wait();
	UNIT_TRUE(is_row(1, value));
	return now;
}

static void
wait_by_flush(void)
{
	if (!plx_worker_is_flushed(u.w[0], &u.to[0][TARGET]))
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
}

static void
wait_by_progress(void)
{
	plx_worker_progress(u.w[0]);
}

static void
after_some_that_waited_in_vain(struct plx_rma_ep *e)
{
	e->skip = RMA_SKIP_MAX; /* the target computes */
	for (unsigned i = 0; i < RMA_LONE_N; i++)
		UNIT_TRUE(!put_is_at_once((uint8_t)i, wait_by_flush));
}

static void
a_program_that_waits_for_each_gets_it_at_once(void)
{
	static void (*const how[])(void) = {wait_by_flush, wait_by_progress};
	struct plx_rma_ep *e;

	for (unsigned k = 0; k < RTE_DIM(how); k++) {
		begin();
		e = plx_rma_ep(u.to[0][TARGET].ep);
		after_some_that_waited_in_vain(e);
		for (unsigned i = 0; i < 20; i++) {
			UNIT_TRUE(put_is_at_once((uint8_t)(10 + i), how[k]));
			UNIT_EQ(hidden(PLX_RMA_GET, here, 8, 0), 0);
			UNIT_EQ(here[0], 10 + i);
			how[k]();
		}
		UNIT_EQ(stat_of(0)->late, RMA_LONE_N);
		end();
	}
}

static void
of_a_row_only_the_first_does_not_wait(void)
{
	struct plx_rma_ep *e;

	begin();
	e = plx_rma_ep(u.to[0][TARGET].ep);
	after_some_that_waited_in_vain(e);
	put_row(5, 20);
	UNIT_TRUE(is_row(1, 20));
	UNIT_EQ(there[8], 0);
	wait_by_flush();
	UNIT_TRUE(is_row(5, 20));
	UNIT_EQ(fake.bursts, 1);
	put_row(5, 30); /* none came alone the last time */
	UNIT_TRUE(is_row(5, 20));
	wait_by_flush();
	UNIT_EQ(fake.bursts, 2);
	end();
}

/* A target that polls is asked, now and then also one that did not answer; and what is in flight comes first. */
static void
one_waits_for_the_target_and_those_before_it(void)
{
	struct plx_rma_ep *e;
	unsigned n = 0;

	begin();
	e = plx_rma_ep(u.to[0][TARGET].ep);
	after_some_that_waited_in_vain(e);
	e->skip = 0;
	UNIT_TRUE(!put_is_at_once(9, wait_by_flush));
	e->skip = RMA_SKIP_MAX;
	while (put_is_at_once((uint8_t)n, wait_by_flush))
		n++;
	UNIT_EQ(n, RMA_SKIP_MAX - 1);
	UNIT_EQ(e->skip, 0);
	e->skip = RMA_SKIP_MAX;
	put_row(2, 50);
	UNIT_EQ(there[8], 0);
	UNIT_TRUE(!plx_worker_is_flushed(u.w[0], &u.to[0][TARGET])); /* asked, but not waited for */
	put_row(1, 60);
	UNIT_EQ(there[0], 50);
	wait_by_flush();
	UNIT_TRUE(is_row(1, 60));
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(short_puts_are_moved_by_one_call),
	UNIT_TEST(the_last_of_a_row_moves_all),
	UNIT_TEST(puts_and_gets_keep_their_order),
	UNIT_TEST(what_is_too_short_to_be_shared_waits),
	UNIT_TEST(one_that_is_too_long_takes_the_others_with_it),
	UNIT_TEST(callbacks_run_in_progress),
	UNIT_TEST(a_callback_may_close_the_handle_of_the_others),
	UNIT_TEST(what_waits_ends_with_its_handle),
	UNIT_TEST(a_bad_one_fails_alone),
	UNIT_TEST(what_the_device_refuses_goes_by_message),
	UNIT_TEST(a_dead_target_ends_what_waits),
	UNIT_TEST(who_has_some_that_wait_does_not_sleep),
	UNIT_TEST(pieces_are_moved_at_once_behind_what_waits),
	UNIT_TEST(a_program_that_waits_for_each_gets_it_at_once),
	UNIT_TEST(of_a_row_only_the_first_does_not_wait),
	UNIT_TEST(one_waits_for_the_target_and_those_before_it),
	CU_TEST_INFO_NULL,
};

int
main(void)
{
	CU_SuiteInfo suites[] = {{"rma_late", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	if (unit_start() != 0)
		return 77;
	return unit_run(suites);
}
