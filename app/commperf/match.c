/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * match.c - the cost of finding one among many: posted receives, or unexpected messages, by
 * depth
 *
 * Design notes
 * - One worker and a loopback ep. One operation is: send to a random posted receive, wait, post
 *   it again; or receive a random unexpected message, send it again. A window of them is in
 *   flight, as messages of many peers would be, and the depth is the same before each window.
 * - The operation has a cost even in a short queue; "delta" is the added cost of the depth.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "perf.h"

#define MATCH_MAX_SAMPLES 20000
#define MATCH_MAX_WINDOW  64u
#define MATCH_LEN         8
#define MATCH_LIMIT_S     2
#define MATCH_TAG         (UINT64_C(0x5) << 40)

struct match {
	struct perf_side *s;
	uint64_t depth;
	uint64_t mask;
	bool posted;
	struct perf_io *rx; /* posted: one a tag; unexpected: the first is used */
	struct perf_io *tx; /* unexpected: one a tag; posted: the first is used */
	uint64_t random;
	uint64_t n; /* operations in flight */
	uint64_t window[MATCH_MAX_WINDOW]; /* their entries, all different */
	uint64_t ticks[MATCH_MAX_SAMPLES]; /* of rounds */
};

static double
match_limit(const struct match *m)
{
	return m->s->o->time_limit > 0 ? m->s->o->time_limit : MATCH_LIMIT_S;
}

static uint64_t
match_random(struct match *m)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random % m->depth;
}

static int
match_send(struct match *m, uint64_t i, struct perf_io *io)
{
	return m->s->be->send(m->s, io, PERF_SELF, m->s->sbuf, MATCH_LEN, MATCH_TAG + i, 0);
}

static int
match_recv(struct match *m, uint64_t i, struct perf_io *io)
{
	return m->s->be->recv(m->s, io, m->s->rbuf, MATCH_LEN, MATCH_TAG + i, m->mask);
}

static int
match_check(struct match *m, const struct perf_io *io, uint64_t i)
{
	if (io->tag == MATCH_TAG + i && io->len == MATCH_LEN)
		return 0;
	return perf_fail(m->s, "%s depth %llu: tag %#llx matched, %#llx was expected",
		m->posted ? "posted" : "unexpected", (unsigned long long)m->depth,
		(unsigned long long)io->tag, (unsigned long long)(MATCH_TAG + i));
}

/* The entries of the next round. */
static void
match_draw(struct match *m)
{
	uint64_t k;

	for (uint64_t n = 0; n < m->n; n += k == n) {
		m->window[n] = match_random(m);
		for (k = 0; k < n && m->window[k] != m->window[n]; k++)
			;
	}
}

/* Send to these posted receives, wait for them, post them again. */
static int
match_posted(struct match *m)
{
	for (uint64_t k = 0; k < m->n; k++)
		if (match_send(m, m->window[k], &m->tx[k]) != 0)
			return -1;
	for (uint64_t k = 0; k < m->n; k++) {
		uint64_t i = m->window[k];

		if (perf_wait(m->s, &m->rx[i]) != 0 || match_check(m, &m->rx[i], i) != 0 ||
			perf_wait(m->s, &m->tx[k]) != 0 || match_recv(m, i, &m->rx[i]) != 0)
			return -1;
	}
	return 0;
}

/* Receive these unexpected messages, and send them again. */
static int
match_kept(struct match *m)
{
	for (uint64_t k = 0; k < m->n; k++)
		if (match_recv(m, m->window[k], &m->rx[k]) != 0)
			return -1;
	for (uint64_t k = 0; k < m->n; k++) {
		uint64_t i = m->window[k];

		if (perf_wait(m->s, &m->rx[k]) != 0 || match_check(m, &m->rx[k], i) != 0 ||
			perf_wait(m->s, &m->tx[k]) != 0 || match_send(m, i, &m->tx[k]) != 0)
			return -1;
	}
	while (m->s->be->progress(m->s) != 0) /* they arrive */
		;
	return 0;
}

/* Fill the queue to its depth. Unexpected messages that the library does not take yet stay
 * in flight. */
static int
match_fill(struct match *m)
{
	uint64_t limit = rte_rdtsc() + (uint64_t)(match_limit(m) * m->s->tsc_hz);

	for (uint64_t i = 0; i < m->depth; i++) {
		if ((m->posted ? match_recv(m, i, &m->rx[i]) : match_send(m, i, &m->tx[i])) != 0)
			return -1;
		m->s->be->progress(m->s);
		if ((i & 0xff) == 0)
			perf_alive(m->s);
	}
	for (uint64_t i = 0; i < m->depth && !m->posted; i++) {
		while (!m->tx[i].done && rte_rdtsc() < limit)
			m->s->be->progress(m->s);
	}
	return 0;
}

static int
match_empty(struct match *m)
{
	for (uint64_t i = 0; i < m->depth; i++) {
		struct perf_io *tx = &m->tx[m->posted ? 0 : i], *rx = &m->rx[m->posted ? i : 0];

		if ((m->posted ? match_send(m, i, tx) : match_recv(m, i, rx)) != 0)
			return -1;
		if (perf_wait(m->s, rx) != 0 || perf_wait(m->s, tx) != 0)
			return -1;
		if ((i & 0xff) == 0)
			perf_alive(m->s);
	}
	return 0;
}

static int
match_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sort the samples; the mean of all but the slowest hundredth, which other activity of the
 * machine causes.
 */
static double
match_mean(struct match *m, uint64_t samples)
{
	uint64_t keep = samples - samples / 100, sum = 0;

	qsort(m->ticks, samples, sizeof(m->ticks[0]), match_cmp);
	for (uint64_t i = 0; i < keep; i++)
		sum += m->ticks[i];
	return perf_ns(m->s, sum) / (double)keep;
}

/* At most max rounds. */
static int
match_loop(struct match *m, uint64_t max, uint64_t *n)
{
	uint64_t start = rte_rdtsc(), now = start, last;
	uint64_t limit = (uint64_t)(match_limit(m) * m->s->tsc_hz);

	for (*n = 0; *n < max && (now - start < limit || *n < 3); (*n)++) {
		match_draw(m);
		last = rte_rdtsc();
		if (unlikely((m->posted ? match_posted(m) : match_kept(m)) != 0))
			return -1;
		now = rte_rdtsc();
		if (*n < MATCH_MAX_SAMPLES)
			m->ticks[*n] = now - last;
		if (unlikely((*n & 0xf) == 0))
			perf_alive(m->s);
	}
	return 0;
}

/* One line: kind, mask and depth. base is the figure of a short queue; 0: measure the base,
 * no row. */
static int
match_one(struct match *m, const struct perf_test *t, double base, double *out)
{
	uint64_t max = m->s->o->iters != 0 ? m->s->o->iters : MATCH_MAX_SAMPLES;
	uint64_t n, samples;
	struct perf_row *row;

	perf_progress(m->s, "%s %s %s, depth %llu", t->name, m->posted ? "posted" : "kept",
		m->mask == UINT64_MAX ? "exact" : "partial", (unsigned long long)m->depth);
	m->random = m->s->o->seed * 2 + 1;
	m->n = RTE_MIN(m->s->o->window, MATCH_MAX_WINDOW);
	m->n = RTE_MIN(m->n, (m->depth + 1) / 2);
	max = max / m->n + 1;
	if (match_fill(m) != 0)
		return -1;
	if (match_loop(m, max / 10 + 1, &n) != 0 || match_loop(m, max, &n) != 0)
		return -1;
	if (match_empty(m) != 0)
		return -1;
	samples = n < MATCH_MAX_SAMPLES ? n : MATCH_MAX_SAMPLES;
	*out = match_mean(m, samples) / m->n;
	if (base == 0)
		return 0;
	row = perf_row_new(m->s, t, MATCH_LEN);
	if (row == NULL)
		return perf_fail(m->s, "out of memory");
	snprintf(row->label, sizeof(row->label), "%s %s", m->posted ? "posted" : "unexpected",
		m->mask == UINT64_MAX ? "exact" : "partial");
	row->depth = m->depth;
	row->n = n * m->n;
	row->value = *out;
	snprintf(row->unit, sizeof(row->unit), "ns");
	perf_row_field(row, "ns/op", *out);
	perf_row_field(row, "delta", *out - base);
	perf_row_field(row, "p50", perf_ns(m->s, m->ticks[samples / 2]) / m->n);
	perf_row_field(row, "p99", perf_ns(m->s, m->ticks[samples * 99 / 100]) / m->n);
	return 0;
}

static int
match_kind(struct match *m, const struct perf_test *t)
{
	const struct perf_opts *o = m->s->o;
	double base, ns;

	m->depth = 2 * RTE_MIN(o->window, MATCH_MAX_WINDOW);
	if (match_one(m, t, 0, &base) != 0)
		return -1;
	for (unsigned i = 0; i < o->n_depths; i++) {
		m->depth = o->depths[i];
		if (match_one(m, t, base, &ns) != 0)
			return -1;
	}
	return 0;
}

int
match_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	uint64_t max = 2 * MATCH_MAX_WINDOW, masks[2] = {UINT64_MAX, PERF_MASK_MPICH};
	void *own = NULL;
	struct match *m;
	size_t len;
	int rc;

	(void)size;
	if (s->o->mask != UINT64_MAX)
		masks[1] = s->o->mask;
	for (unsigned i = 0; i < s->o->n_depths; i++)
		max = s->o->depths[i] > max ? s->o->depths[i] : max;
	if ((masks[1] & (max - 1)) != max - 1 && (masks[1] & 0xffffff) != 0xffffff)
		return perf_fail(s, "the mask must keep the low 24 bits, which distinguish tags");
	m = calloc(1, sizeof(*m));
	if (m != NULL) {
		m->rx = calloc(max, sizeof(*m->rx));
		m->tx = calloc(max, sizeof(*m->tx));
	}
	if (m == NULL || m->rx == NULL || m->tx == NULL) {
		rc = perf_fail(s, "out of memory");
		goto out;
	}
	m->s = s;
	rc = s->be->address(s, &own, &len);
	if (rc == 0)
		rc = s->be->connect(s, PERF_SELF, own, len);
	free(own);
	for (int i = 0; i < 4 && rc == 0; i++) {
		m->posted = i < 2;
		m->mask = masks[i & 1];
		rc = match_kind(m, t);
	}
out:
	if (rc == 0 && m != NULL) { /* after a failure the library may still write to them */
		free(m->rx);
		free(m->tx);
		free(m);
	}
	return rc;
}
