/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * bw.c - bandwidth: a window of messages in flight, in one direction or in both
 *
 * Design notes
 * - The clock runs from the first send, after the receiver has reported its window as posted, to
 *   the receiver's acknowledgement of the last message: all counted messages have arrived.
 * - A slot is reused when its own operation is complete; operations complete in order, so only
 *   the oldest is waited for.
 */
#include "perf.h"

static struct perf_io bw_tx[PERF_MAX_WINDOW];
static struct perf_io bw_rx[PERF_MAX_WINDOW];

struct bw_flow {
	size_t size;
	size_t stride; /* 0: all slots share one buffer */
	uint64_t n;
	uint64_t seq; /* number of the first message, for the pattern */
	uint64_t sent;
	uint64_t posted;
	uint64_t got;
	unsigned window;
	unsigned send_at, post_at, take_at; /* slots of the next message */
};

static inline unsigned
bw_slot(const struct bw_flow *f, unsigned *at)
{
	unsigned i = *at;

	*at = perf_slot_next(i, f->window);
	return i;
}

static inline int
bw_send(struct perf_side *s, struct bw_flow *f)
{
	unsigned i = bw_slot(f, &f->send_at);
	uint8_t *buf = s->sbuf + i * f->stride;

	if (unlikely(s->o->verify))
		perf_fill(buf, f->size, f->seq + f->sent);
	f->sent++;
	return s->send(s, &bw_tx[i], PERF_PEER, buf, f->size, PERF_TAG, 0);
}

static inline int
bw_post(struct perf_side *s, struct bw_flow *f)
{
	unsigned i = bw_slot(f, &f->post_at);

	f->posted++;
	return s->recv(s, &bw_rx[i], s->rbuf + i * f->stride, f->size, PERF_TAG, s->o->mask);
}

/* The oldest receive is complete: check it and post the next. */
static inline int
bw_take(struct perf_side *s, struct bw_flow *f)
{
	unsigned i = bw_slot(f, &f->take_at);

	if (unlikely(bw_rx[i].status != 0))
		return perf_fail(s, "a receive completed with status %d", bw_rx[i].status);
	if (unlikely(s->o->verify))
		perf_check(s, &bw_rx[i], s->rbuf + i * f->stride, f->size, f->seq + f->got);
	f->got++;
	if (unlikely((f->got & 0xfff) == 0))
		perf_alive(s);
	return f->posted < f->n ? bw_post(s, f) : 0;
}

static int
bw_send_all(struct perf_side *s, struct bw_flow *f)
{
	while (f->sent < f->n) {
		struct perf_io *io = &bw_tx[f->send_at];

		if (unlikely(!io->done || io->status != 0) && perf_wait(s, io) != 0)
			return -1;
		if (unlikely(bw_send(s, f) != 0))
			return -1;
		if (unlikely((f->sent & 0xfff) == 0))
			perf_alive(s);
	}
	return 0;
}

static int
bw_take_all(struct perf_side *s, struct bw_flow *f)
{
	while (f->got < f->n) {
		if (unlikely(perf_wait(s, &bw_rx[f->take_at]) != 0 || bw_take(s, f) != 0))
			return -1;
	}
	return 0;
}

/* Both directions: send within the window, take what has arrived, else run a turn. */
static int
bw_both(struct perf_side *s, struct bw_flow *f)
{
	uint64_t spins = 0;

	while (f->sent < f->n || f->got < f->n) {
		bool moved = false;

		if (f->sent < f->n && bw_tx[f->send_at].done) {
			if (bw_send(s, f) != 0)
				return -1;
			moved = true;
		}
		if (f->got < f->n && bw_rx[f->take_at].done) {
			if (bw_take(s, f) != 0)
				return -1;
			moved = true;
		}
		spins = moved ? 0 : spins + 1;
		s->be->progress(s);
		if (unlikely(spins != 0 && (spins & 0xfff) == 0) && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	return 0;
}

static int
bw_drain(struct perf_side *s, const struct bw_flow *f)
{
	for (unsigned i = 0; i < f->window; i++) {
		if (perf_wait(s, &bw_tx[i]) != 0)
			return -1;
	}
	return 0;
}

/* An empty message to the other side, and one from it. */
static int
bw_word(struct perf_side *s, bool give, bool take)
{
	struct perf_io tx = {.done = 1}, rx = {.done = 1};

	if (take && s->be->recv(s, &rx, NULL, 0, PERF_TAG_ACK, UINT64_MAX) != 0)
		return -1;
	if (give && s->be->send(s, &tx, PERF_PEER, NULL, 0, PERF_TAG_ACK, 0) != 0)
		return -1;
	return perf_wait(s, &tx) != 0 || perf_wait(s, &rx) != 0 ? -1 : 0;
}

int
bw_stream(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, bool tx, bool rx)
{
	struct bw_flow f = {.size = size, .stride = perf_stride(s), .n = n, .seq = seq,
		.window = s->o->window};
	const bool posts = s->loops == NULL || s->loops->stream == NULL;
	int rc;

	for (unsigned i = 0; i < f.window; i++)
		bw_tx[i] = bw_rx[i] = (struct perf_io){.done = 1};
	while (posts && rx && f.posted < f.window && f.posted < n) {
		if (bw_post(s, &f) != 0)
			return -1;
	}
	if (bw_word(s, rx, tx) != 0)
		return -1;
	s->start_ticks = rte_rdtsc();
	if (posts)
		rc = tx && rx ? bw_both(s, &f) : tx ? bw_send_all(s, &f) : bw_take_all(s, &f);
	else
		rc = s->loops->stream(s, size, n, seq, tx, rx);
	if (rc != 0 || bw_drain(s, &f) != 0 || bw_word(s, rx, tx) != 0)
		return -1;
	s->end_ticks = rte_rdtsc();
	return 0;
}

static int
bw_timed(struct perf_timed *total, bool tx, bool rx)
{
	struct perf_side *s = total->s;
	uint64_t n;
	int rc;

	while ((rc = perf_timed_next(total, &n)) == 0 && n > 0) {
		if (bw_stream(s, total->size, n, total->n, tx, rx) != 0)
			return -1;
		perf_timed_add(total, n, s->end_ticks - s->start_ticks);
	}
	return rc;
}

int
bw_count(struct perf_timed *total, uint64_t n, bool both)
{
	struct perf_side *s = total->s;
	uint64_t warm = perf_warmup(s->o, n);
	bool tx = both || s->rank == 0, rx = both || s->rank == 1;

	if (warm > 0 && bw_stream(s, total->size, warm, 0, tx, rx) != 0)
		return -1;
	if (s->o->duration > 0)
		return bw_timed(total, tx, rx);
	if (bw_stream(s, total->size, n, warm, tx, rx) != 0)
		return -1;
	total->n = n;
	total->ticks = s->end_ticks - s->start_ticks;
	return 0;
}

static int
bw_measure(struct perf_side *s, const struct perf_test *t, size_t size, bool both)
{
	double sec, ways = both ? 2 : 1;
	struct perf_timed total = {.s = s, .test = t->name, .size = size, .unit = "MB/s", .rate = true,
		.factor = (double)size * ways * 1e-6};
	struct perf_row *row;

	if (bw_count(&total, perf_iters(s->o, false, size), both) != 0)
		return -1;
	if (s->rank != 0)
		return 0;
	row = perf_row_new(s, t, size);
	if (row == NULL)
		return perf_fail(s, "out of memory");
	sec = perf_ns(s, total.ticks) * 1e-9;
	row->n = total.n;
	row->value = (double)total.n * total.factor / sec;
	row->higher_better = true;
	snprintf(row->unit, sizeof(row->unit), "MB/s");
	perf_row_field(row, "MB/s", row->value);
	perf_row_field(row, "Mmsg/s", (double)total.n * ways / sec * 1e-6);
	perf_row_field(row, "us/msg", sec * 1e6 / (double)total.n);
	return 0;
}

int
bw_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	return bw_measure(s, t, size, false);
}

int
bidir_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	if (((PERF_TAG ^ PERF_TAG_ACK) & s->o->mask) == 0)
		return perf_fail(s, "the mask leaves too few bits for tag_bidir");
	return bw_measure(s, t, size, true);
}
