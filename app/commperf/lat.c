/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * lat.c - latency: a ping-pong of single messages; half of each round trip, and its distribution
 *
 * Design notes
 * - A message is answered as soon as it arrives. The status of a send is checked a round later,
 *   before its place is reused: with CCI that is an event, which comes with the answer or after
 *   it.
 * - Reading the clock is part of the measurement, as in other such programs. If it is slow
 *   compared with a message it can be read once in many round trips.
 */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define LAT_MAX_SAMPLES (1u << 20)

static int
lat_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static inline int
lat_send(struct perf_side *s, size_t size, uint64_t seq, unsigned flags, struct perf_io *io)
{
	if (unlikely(perf_wait(s, io) != 0))
		return -1;
	if (unlikely(s->o->verify))
		perf_fill(s->sbuf, size, seq);
	return s->send(s, io, PERF_PEER, s->sbuf, size, PERF_TAG, flags);
}

static inline int
lat_recv(struct perf_side *s, size_t size, uint64_t seq, struct perf_io *io)
{
	if (unlikely(s->recv(s, io, s->rbuf, size, PERF_TAG, s->o->mask) != 0))
		return -1;
	if (unlikely(perf_wait(s, io) != 0))
		return -1;
	if (unlikely(s->o->verify))
		perf_check(s, io, s->rbuf, size, seq);
	return 0;
}

static int
lat_sent(struct perf_side *s, struct perf_io tx[LAT_SENDS])
{
	for (int i = 0; i < LAT_SENDS; i++) {
		if (perf_wait(s, &tx[i]) != 0)
			return -1;
	}
	return 0;
}

/* Rank 0: ping, wait for the pong; read the clock after a batch. */
static int
lat_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, unsigned flags,
	struct lat_clock *clock)
{
	struct perf_io tx[LAT_SENDS] = {{.done = 1}, {.done = 1}}, rx;

	clock->left = s->o->batch;
	clock->last = rte_rdtsc();
	if (s->loops != NULL && s->loops->ping != NULL)
		return s->loops->ping(s, size, n, seq, clock);
	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(lat_send(s, size, seq + i, flags, &tx[i % LAT_SENDS]) != 0))
			return -1;
		if (unlikely(lat_recv(s, size, seq + i, &rx) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return lat_sent(s, tx);
}

static int
lat_pong(struct perf_side *s, size_t size, uint64_t n, unsigned flags)
{
	struct perf_io tx[LAT_SENDS] = {{.done = 1}, {.done = 1}}, rx;

	if (s->loops != NULL && s->loops->ping != NULL)
		return s->loops->pong == NULL ? 0 : s->loops->pong(s, size, n);
	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(lat_recv(s, size, i, &rx) != 0))
			return -1;
		if (unlikely(lat_send(s, size, i, flags, &tx[i % LAT_SENDS]) != 0))
			return -1;
	}
	return lat_sent(s, tx);
}

/* Half a round trip is one way; an operation without an answer from side B is one way. */
static double
lat_ways(const struct perf_side *s)
{
	return s->loops != NULL && s->loops->ping != NULL && s->loops->pong == NULL ? 1 : 2;
}

static double
lat_at(const struct perf_side *s, const struct lat_clock *l, double part)
{
	uint64_t i = (uint64_t)(part * (double)l->n);

	return perf_ns(s, l->ticks[i < l->n ? i : l->n - 1]) / (lat_ways(s) * 1e3 * s->o->batch);
}

/* Make room for more samples: keep every second one. */
static void
lat_halve(struct lat_clock *l)
{
	l->n = (l->n + 1) / 2;
	for (uint64_t i = 1; i < l->n; i++)
		l->ticks[i] = l->ticks[2 * i];
	l->every *= 2;
}

/* Until the duration ends, rank 0 measures chunks of round trips and rank 1 answers them. */
static int
lat_timed(struct perf_side *s, unsigned flags, struct lat_clock *l,
	struct perf_timed *total)
{
	uint64_t n, start;
	int rc;

	while ((rc = perf_timed_next(total, &n)) == 0 && n > 0) {
		if (s->rank == 1) {
			if (lat_pong(s, total->size, n, flags) != 0)
				return -1;
			continue;
		}
		while (l->n + n / (s->o->batch * l->every) + 1 > LAT_MAX_SAMPLES)
			lat_halve(l);
		start = rte_rdtsc();
		if (lat_ping(s, total->size, n, 0, flags, l) != 0)
			return -1;
		perf_timed_add(total, n, rte_rdtsc() - start);
	}
	return rc;
}

static int
lat_row(struct perf_side *s, const struct perf_test *t, const struct lat_clock *l,
	const struct perf_timed *total)
{
	struct perf_row *row = perf_row_new(s, t, total->size);

	if (row == NULL)
		return perf_fail(s, "out of memory");
	qsort(l->ticks, l->n, sizeof(*l->ticks), lat_cmp);
	row->n = total->n;
	row->value = lat_at(s, l, 0.5);
	snprintf(row->unit, sizeof(row->unit), "us");
	perf_row_field(row, "min", lat_at(s, l, 0));
	perf_row_field(row, "p50", row->value);
	perf_row_field(row, "avg", perf_ns(s, total->ticks) / (lat_ways(s) * 1e3 * (double)total->n));
	perf_row_field(row, "p90", lat_at(s, l, 0.9));
	perf_row_field(row, "p99", lat_at(s, l, 0.99));
	perf_row_field(row, "p99.9", lat_at(s, l, 0.999));
	perf_row_field(row, "max", lat_at(s, l, 1));
	return 0;
}

/* Rank 0 measures n round trips, or as many as the duration allows. */
static int
lat_measure(struct perf_side *s, uint64_t warm, uint64_t n, unsigned flags,
	struct lat_clock *l, struct perf_timed *total)
{
	struct lat_clock warming = {0};
	uint64_t start;

	if (lat_ping(s, total->size, warm, 0, flags, &warming) != 0)
		return -1;
	if (s->o->duration > 0)
		return lat_timed(s, flags, l, total);
	total->n = n;
	start = rte_rdtsc();
	if (lat_ping(s, total->size, n, warm, flags, l) != 0)
		return -1;
	total->ticks = rte_rdtsc() - start;
	return 0;
}

int
lat_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	unsigned flags = strcmp(t->name, "tag_sync_lat") == 0 ? PERF_SYNC : 0, batch = s->o->batch;
	uint64_t n = perf_iters(s->o, true, size), warm = perf_warmup(s->o, n), batches = (n + batch - 1) / batch;
	struct perf_timed total = {.s = s, .test = t->name, .size = size, .unit = "us",
		.alone = s->loops != NULL && s->loops->ping != NULL && s->loops->pong == NULL,
		.factor = 1e6 / lat_ways(s)};
	struct lat_clock l = {.every = (batches + LAT_MAX_SAMPLES - 1) / LAT_MAX_SAMPLES};
	int rc;

	if (s->o->duration > 0)
		warm += warm & 1;
	if (s->rank == 1 && s->o->duration > 0)
		return lat_pong(s, size, warm, flags) != 0 ? -1 : lat_timed(s, flags, NULL, &total);
	if (s->rank == 1)
		return lat_pong(s, size, warm + batches * batch, flags);
	l.ticks = calloc(s->o->duration > 0 ? LAT_MAX_SAMPLES : (batches + l.every - 1) / l.every, sizeof(*l.ticks));
	if (l.ticks == NULL)
		return perf_fail(s, "no memory for the samples");
	rc = lat_measure(s, warm, batches * batch, flags, &l, &total);
	if (rc == 0)
		rc = lat_row(s, t, &l, &total);
	free(l.ticks);
	return rc;
}
