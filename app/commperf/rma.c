/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma.c - reads and writes of the other side's memory: one at a time, or a window of them
 *
 * Design notes
 * - Side B only runs turns. An operation is complete when the back end says so, which is when
 *   the data has arrived.
 */
#include <string.h>

#include "perf.h"

static struct perf_io rma_io[PERF_MAX_WINDOW];

struct rma_what {
	bool write;
	bool verify;
	size_t size;
	size_t stride;
	unsigned window;
};

static int
rma_run_n(struct perf_side *s, const struct rma_what *w, uint64_t n)
{
	unsigned slot = 0;

	for (unsigned i = 0; i < w->window; i++)
		rma_io[i] = (struct perf_io){.done = 1};
	for (uint64_t i = 0; i < n; i++, slot = perf_slot_next(slot, w->window)) {
		if (unlikely(perf_wait(s, &rma_io[slot]) != 0))
			return -1;
		if (unlikely(s->be->rma(s, &rma_io[slot], w->write, slot * w->stride, w->size) != 0))
			return -1;
		if (unlikely((i & 0xff) == 0))
			perf_alive(s);
	}
	for (unsigned i = 0; i < w->window; i++) {
		if (perf_wait(s, &rma_io[i]) != 0)
			return -1;
	}
	return s->be->rma_flush != NULL ? s->be->rma_flush(s) : 0;
}

int
rma_verify(struct perf_side *s, size_t size)
{
	struct rma_what one = {.write = true, .size = size, .window = 1};

	perf_fill(s->sbuf, size, 1);
	if (rma_run_n(s, &one, 1) != 0)
		return -1;
	memset(s->sbuf, 0, size);
	one.write = false;
	if (rma_run_n(s, &one, 1) != 0)
		return -1;
	rma_io[0].len = size;
	perf_check(s, &rma_io[0], s->sbuf, size, 1);
	return 0;
}

static int
rma_row(struct perf_side *s, const struct perf_test *t, const struct rma_what *w,
	const struct perf_timed *total)
{
	struct perf_row *row = perf_row_new(s, t, w->size);
	double sec = perf_ns(s, total->ticks) * 1e-9;
	uint64_t n = total->n;

	if (row == NULL)
		return perf_fail(s, "out of memory");
	row->n = n;
	row->higher_better = w->window > 1;
	row->value = w->window > 1 ? (double)w->size * (double)n / sec * 1e-6 : sec * 1e6 / (double)n;
	snprintf(row->unit, sizeof(row->unit), "%s", w->window > 1 ? "MB/s" : "us");
	perf_row_field(row, row->unit, row->value);
	if (w->window > 1)
		perf_row_field(row, "us/op", sec * 1e6 / (double)n);
	else
		perf_row_field(row, "MB/s", (double)w->size * (double)n / sec * 1e-6);
	return 0;
}

static int
rma_chunk(struct perf_side *s, const void *arg, uint64_t n)
{
	return rma_run_n(s, arg, n);
}

int
rma_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	bool lat = strstr(t->name, "_lat") != NULL;
	struct rma_what w = {.write = strstr(t->name, "get") == NULL && strstr(t->name, "read") == NULL, .size = size,
		.window = lat ? 1 : s->o->window};
	struct perf_timed total = {.s = s, .test = t->name, .size = size, .unit = lat ? "us" : "MB/s",
		.rate = !lat, .factor = lat ? 1e6 : (double)size * 1e-6};
	int rc;

	w.stride = perf_stride(s);
	if (s->be->rma_open(s) != 0)
		return -1;
	if (s->rank == 0) {
		rc = s->o->verify ? rma_verify(s, size) : 0;
		if (rc == 0)
			rc = perf_count_alone(&total, rma_chunk, &w);
		if (rc != 0 || rma_row(s, t, &w, &total) != 0)
			return -1;
	}
	s->patient = s->rank == 1;
	rc = perf_barrier(s);
	s->patient = false;
	return rc != 0 || s->be->rma_close(s) != 0 ? -1 : 0;
}

/* ---- latency: each operation on the clock ---- */

/* Between open and close of the memory, rank 0 measures and rank 1 answers or runs turns. */
static int
rma_lat_run(struct perf_side *s, const struct perf_test *t, size_t size, bool answered)
{
	int rc = 0;

	if (size == 0)
		return perf_fail(s, "%s needs at least one byte to poll", t->name);
	if (s->be->rma_open(s) != 0)
		return -1;
	if (s->rank == 0 && s->o->verify)
		rc = rma_verify(s, size);
	if (rc == 0)
		rc = perf_barrier(s);
	memset(s->rbuf, 2, size); /* no stamp on either side before the first put */
	if (rc == 0)
		rc = perf_barrier(s);
	if (rc == 0 && (s->rank == 0 || answered))
		rc = lat_run(s, t, size);
	s->patient = s->rank == 1;
	if (rc == 0)
		rc = perf_barrier(s);
	s->patient = false;
	return rc != 0 ? rc : s->be->rma_close(s);
}

int
put_lat_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	return rma_lat_run(s, t, size, true);
}

int
get_lat_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	return rma_lat_run(s, t, size, false);
}

/* The last byte of message i, which is written last: differs from the previous message's. */
static inline uint8_t
put_stamp(uint64_t i)
{
	return i & 1 ? 0x55 : 0xaa;
}

static inline int
put_send(struct perf_side *s, size_t size, uint64_t i, struct perf_io *io)
{
	if (unlikely(perf_wait(s, io) != 0))
		return -1;
	s->sbuf[size - 1] = put_stamp(i);
	return s->be->rma(s, io, true, 0, size);
}

static inline int
put_see(struct perf_side *s, size_t size, uint64_t i)
{
	const uint8_t *last = s->rbuf + size - 1, stamp = put_stamp(i);
	uint64_t spins = 0;

	/* pairs with the library's store at the other side */
	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != stamp) {
		s->be->progress(s);
		if (unlikely((++spins & 0xfff) == 0) && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	return 0;
}

static int
put_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock)
{
	struct perf_io io = {.done = 1};

	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(put_send(s, size, seq + i, &io) != 0 || put_see(s, size, seq + i) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return perf_wait(s, &io) != 0 ? -1 : s->be->rma_flush(s);
}

static int
put_pong(struct perf_side *s, size_t size, uint64_t n)
{
	struct perf_io io = {.done = 1};

	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(put_see(s, size, i) != 0 || put_send(s, size, i, &io) != 0))
			return -1;
	}
	return perf_wait(s, &io) != 0 ? -1 : s->be->rma_flush(s);
}

static int
get_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock)
{
	struct perf_io io = {.done = 1};

	(void)seq;
	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(s->be->rma(s, &io, false, 0, size) != 0 || perf_wait(s, &io) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return 0;
}

const struct perf_loops perf_loops_put = {.ping = put_ping, .pong = put_pong};
const struct perf_loops perf_loops_get = {.ping = get_ping};
