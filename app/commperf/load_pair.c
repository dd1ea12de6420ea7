/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * load_pair.c - two ranks among many: a ping-pong and a stream for a given time, on a common
 * signal
 *
 * Design notes
 * - All pairs begin together: side A reports by one byte that it is ready, and begins when it
 *   gets one. Until then both sides sleep, so that starting pairs have the cores.
 * - Side A's clock ends it: the first byte of a message says whether it is the last. The other
 *   bytes are a pattern, compared in the last one.
 * - Next to other programs most of the time nothing happens at all, so the figures are averages
 *   of the whole time: a median would describe only the moments when both sides run.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf.h"

#define LOAD_LAST   0x80 /* in the first byte */
#define LOAD_S      0.4
#define LOAD_WARMUP 4
#define LOAD_WINDOW_BYTES (512u << 10)

static struct perf_io load_tx[PERF_MAX_WINDOW], load_rx[PERF_MAX_WINDOW];

struct load_side {
	struct perf_side *s;
	size_t size;
	unsigned window;
	uint64_t n; /* round trips, or messages */
	uint64_t ticks;
};

/* Side A: report ready; sleep until all pairs are. */
static int
load_gate(struct perf_side *s)
{
	struct pollfd pfd = {.fd = s->o->gate[0], .events = POLLIN};
	char byte = 1;

	if (pfd.fd < 0)
		return 0;
	if (write(s->o->gate[1], &byte, 1) != 1)
		return perf_fail(s, "the launcher has exited before the start");
	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	return read(pfd.fd, &byte, 1) == 1 ? 0 : perf_fail(s, "the launcher has exited before the start");
}

/* Both sides sleep until the start. */
static int
load_begin(struct perf_side *s)
{
	void *word;
	size_t len;

	if (s->rank == 0)
		return load_gate(s) != 0 || chan_send(s->ctl_fd, "go", 2, s->o->timeout) != 0 ? -1 : 0;
	if (chan_recv(NULL, s->ctl_fd, &word, &len, 1e6) != 0)
		return perf_fail(s, "the other side has exited");
	free(word);
	return 0;
}

static void
load_mark(struct perf_side *s, bool last)
{
	s->sbuf[0] = (uint8_t)((s->sbuf[0] & ~LOAD_LAST) | (last ? LOAD_LAST : 0));
}

static bool
load_is_last(const struct perf_side *s)
{
	return (s->rbuf[0] & LOAD_LAST) != 0;
}

/* The last message: all but its mark is the pattern. */
static void
load_check(struct load_side *l, struct perf_io *io)
{
	struct perf_side *s = l->s;
	uint8_t first[8];

	perf_fill(first, sizeof(first), 0);
	s->rbuf[0] = (uint8_t)((s->rbuf[0] & ~LOAD_LAST) | (first[0] & LOAD_LAST));
	perf_check(s, io, s->rbuf, l->size, 0);
}

static int
load_post(struct load_side *l, struct perf_io *io)
{
	return l->s->be->recv(l->s, io, l->s->rbuf, l->size, PERF_TAG, UINT64_MAX);
}

static int
load_send(struct load_side *l, struct perf_io *io)
{
	return l->s->be->send(l->s, io, PERF_PEER, l->s->sbuf, l->size, PERF_TAG, 0);
}

/* Side A: ping-pong until the time has passed. */
static int
load_ping(struct load_side *l, uint64_t ticks)
{
	uint64_t start = rte_rdtsc(), now = start;
	struct perf_io tx, rx;
	bool last;

	l->n = 0;
	do {
		last = now - start >= ticks;
		load_mark(l->s, last);
		if (load_post(l, &rx) != 0 || load_send(l, &tx) != 0 || perf_wait(l->s, &rx) != 0 ||
			perf_wait(l->s, &tx) != 0)
			return -1;
		l->n++;
		now = rte_rdtsc();
		perf_alive(l->s);
	} while (!last);
	l->ticks = now - start;
	load_check(l, &rx);
	return 0;
}

static int
load_pong(struct load_side *l)
{
	struct perf_io tx = {.done = 1}, rx;
	bool last;

	do {
		if (load_post(l, &rx) != 0 || perf_wait(l->s, &rx) != 0 || perf_wait(l->s, &tx) != 0)
			return -1;
		last = load_is_last(l->s);
		load_mark(l->s, last);
		if (load_send(l, &tx) != 0)
			return -1;
	} while (!last);
	load_check(l, &rx);
	return perf_wait(l->s, &tx);
}

static int
load_word(struct perf_side *s, bool send)
{
	struct perf_io io;
	int rc = send ? s->be->send(s, &io, PERF_PEER, NULL, 0, PERF_TAG_ACK, 0)
		      : s->be->recv(s, &io, NULL, 0, PERF_TAG_ACK, UINT64_MAX);

	return rc != 0 ? rc : perf_wait(s, &io);
}

/* Side A: windows, each answered by a word, until the time has passed. */
static int
load_give(struct load_side *l, uint64_t ticks)
{
	uint64_t start, now;
	bool last;

	if (load_word(l->s, false) != 0) /* the first window is posted */
		return -1;
	start = now = rte_rdtsc();
	l->n = 0;
	do {
		last = now - start >= ticks;
		load_mark(l->s, last);
		for (unsigned i = 0; i < l->window; i++) {
			if (load_send(l, &load_tx[i]) != 0)
				return -1;
		}
		for (unsigned i = 0; i < l->window; i++) {
			if (perf_wait(l->s, &load_tx[i]) != 0)
				return -1;
		}
		if (load_word(l->s, false) != 0)
			return -1;
		l->n += l->window;
		now = rte_rdtsc();
		perf_alive(l->s);
	} while (!last);
	l->ticks = now - start;
	return 0;
}

static int
load_take(struct load_side *l)
{
	bool last = false;

	for (;;) {
		for (unsigned i = 0; i < l->window && !last; i++) {
			if (load_post(l, &load_rx[i]) != 0)
				return -1;
		}
		if (load_word(l->s, true) != 0 || last)
			break;
		for (unsigned i = 0; i < l->window; i++) {
			if (perf_wait(l->s, &load_rx[i]) != 0)
				return -1;
		}
		last = load_is_last(l->s);
	}
	if (!last)
		return -1;
	load_check(l, &load_rx[l->window - 1]);
	return 0;
}

static int
load_row(struct load_side *l, const struct perf_test *t, bool rate)
{
	struct perf_row *row = perf_row_new(l->s, t, l->size);
	double sec = perf_ns(l->s, l->ticks) * 1e-9;

	if (row == NULL)
		return perf_fail(l->s, "out of memory");
	snprintf(row->label, sizeof(row->label), "%s", rate ? "rate" : "lat");
	row->n = l->n;
	row->higher_better = rate;
	row->value = rate ? (double)l->n / sec * 1e-3 : sec * 1e6 / (2 * (double)l->n);
	snprintf(row->unit, sizeof(row->unit), "%s", rate ? "kmsg/s" : "us");
	perf_row_field(row, row->unit, row->value);
	return 0;
}

static int
load_phase(struct load_side *l, const struct perf_test *t, bool rate)
{
	double sec = l->s->o->time_limit > 0 ? l->s->o->time_limit : LOAD_S;
	uint64_t ticks = (uint64_t)(sec * l->s->tsc_hz);
	int rc;

	if (load_begin(l->s) != 0)
		return -1;
	if (l->s->rank == 1)
		return rate ? load_take(l) : load_pong(l);
	rc = rate ? load_give(l, ticks) : load_ping(l, ticks);
	return rc == 0 ? load_row(l, t, rate) : rc;
}

int
load_pair_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct load_side l = {.s = s, .size = size};

	if (size == 0)
		return perf_fail(s, "%s needs at least one byte", t->name);
	l.window = (unsigned)RTE_MIN(s->o->window, LOAD_WINDOW_BYTES / size + 1);
	perf_fill(s->sbuf, size, 0);
	for (int i = 0; i < LOAD_WARMUP; i++) { /* the two are connected */
		if ((s->rank == 0 ? load_ping(&l, 0) : load_pong(&l)) != 0)
			return -1;
	}
	return load_phase(&l, t, false) != 0 ? -1 : load_phase(&l, t, true);
}
