/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * sleep.c - the time to wake a sleeping side: from the call that sends to the answer
 *
 * Design notes
 * - Side B waits as programs that share their core do: it arms the worker and waits for its file
 *   descriptor. Side A polls, so that one wake-up is measured, and pauses before each message,
 *   so that B sleeps: otherwise the message may arrive before B is armed, with one library and
 *   not with the other. B's answer says whether it slept.
 * - The wait also polls the other side's socket, for nothing else would end it.
 */
#include <poll.h>
#include <stdlib.h>

#include "perf_ucp.h"

#define SLEEP_PAUSE_US 100
#define SLEEP_MAX      UINT64_C(10000) /* round trips */
#define SLEEP_WARMUP   10
#define SLEEP_SLEPT    (UINT64_C(1) << 40) /* in the tag of an answer */

static struct sleep_worker {
	ucp_worker_h worker;
	int efd;
} sleeper;

int
perf_sleep_open(struct perf_side *s)
{
	ucs_status_t status;
	ucp_ep_h ep;

	perf_ucp_handles(s, &sleeper.worker, &ep);
	status = ucp_worker_get_efd(sleeper.worker, &sleeper.efd);
	return status == UCS_OK ? 0
				: perf_fail(s, "ucp_worker_get_efd: %s", ucs_status_string(status));
}

static int
sleep_until_woken(struct perf_side *s)
{
	struct pollfd fds[2] = {{.fd = sleeper.efd, .events = POLLIN},
		{.fd = s->ctl_fd, .events = POLLRDHUP}};
	int rc;

	rc = poll(fds, 2, (int)RTE_MIN(s->o->timeout * 1e3, 1e9));
	if (rc == 0)
		return perf_fail(s, "nothing woke this side for %.0f s (--timeout)", s->o->timeout);
	if (rc > 0 && fds[1].revents != 0)
		return perf_fail(s, "the other side has exited");
	return 0; /* also when a signal ended it */
}

/* Progress while there is any, then sleep. */
static int
sleep_wait(struct perf_side *s, struct perf_io *io, bool *slept)
{
	while (!io->done) {
		ucs_status_t status;

		if (s->be->progress(s) != 0)
			continue;
		status = ucp_worker_arm(sleeper.worker);
		if (status == UCS_ERR_BUSY)
			continue;
		if (status != UCS_OK)
			return perf_fail(s, "ucp_worker_arm: %s", ucs_status_string(status));
		*slept = true;
		if (sleep_until_woken(s) != 0)
			return -1;
	}
	return io->status == 0 ? 0 : perf_fail(s, "an operation completed with status %d", io->status);
}

/* Rank 1: an answer to each message, whose tag says whether the message woke it. */
static int
sleep_answer(struct perf_side *s, size_t size, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct perf_io io;
		bool slept = false;

		if (s->be->recv(s, &io, s->rbuf, size, PERF_TAG, UINT64_MAX) != 0 ||
			sleep_wait(s, &io, &slept) != 0)
			return -1;
		if (s->o->verify) {
			perf_check(s, &io, s->rbuf, size, i);
			perf_fill(s->sbuf, size, i);
		}
		if (s->be->send(s, &io, PERF_PEER, s->sbuf, size,
			    PERF_TAG | (slept ? SLEEP_SLEPT : 0), 0) != 0 ||
			perf_wait(s, &io) != 0)
			return -1;
		perf_alive(s);
	}
	return 0;
}

/* Rank 0: give side B time to fall asleep. */
static void
sleep_pause(struct perf_side *s)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(SLEEP_PAUSE_US * 1e-6 * s->tsc_hz);

	while (rte_rdtsc() < end)
		s->be->progress(s);
	perf_alive(s);
}

/* A message and its answer. */
static int
sleep_ask(struct perf_side *s, size_t size, uint64_t seq, uint64_t *ticks, bool *slept)
{
	struct perf_io tx, rx;
	uint64_t start;

	if (s->be->recv(s, &rx, s->rbuf, size, PERF_TAG, ~SLEEP_SLEPT) != 0)
		return -1;
	if (s->o->verify)
		perf_fill(s->sbuf, size, seq);
	sleep_pause(s);
	start = rte_rdtsc();
	if (s->be->send(s, &tx, PERF_PEER, s->sbuf, size, PERF_TAG, 0) != 0 || perf_wait(s, &rx) != 0)
		return -1;
	*ticks = rte_rdtsc() - start;
	*slept = (rx.tag & SLEEP_SLEPT) != 0;
	if (s->o->verify)
		perf_check(s, &rx, s->rbuf, size, seq);
	return perf_wait(s, &tx);
}

static int
sleep_before(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int
sleep_row(struct perf_side *s, const struct perf_test *t, size_t size, uint64_t *ticks, uint64_t n,
	uint64_t slept)
{
	struct perf_row *row = perf_row_new(s, t, size);
	double sum = 0;

	if (row == NULL)
		return perf_fail(s, "out of memory");
	qsort(ticks, n, sizeof(ticks[0]), sleep_before);
	for (uint64_t i = 0; i < n; i++)
		sum += perf_ns(s, ticks[i]) / 1e3;
	row->n = n;
	row->value = perf_ns(s, ticks[n / 2]) / 1e3;
	snprintf(row->unit, sizeof(row->unit), "us");
	perf_row_field(row, "min", perf_ns(s, ticks[0]) / 1e3);
	perf_row_field(row, "p50", row->value);
	perf_row_field(row, "avg", sum / (double)n);
	perf_row_field(row, "p90", perf_ns(s, ticks[n * 9 / 10]) / 1e3);
	perf_row_field(row, "p99", perf_ns(s, ticks[n * 99 / 100]) / 1e3);
	perf_row_field(row, "slept %", 100.0 * (double)slept / (double)n);
	return 0;
}

int
sleep_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	uint64_t n = RTE_MIN(perf_iters(s->o, true, size), SLEEP_MAX), warm = SLEEP_WARMUP, slept = 0;
	uint64_t *ticks;
	int rc = 0;

	if (s->rank == 1)
		return sleep_answer(s, size, warm + n);
	ticks = calloc(n, sizeof(*ticks));
	if (ticks == NULL)
		return perf_fail(s, "out of memory");
	for (uint64_t i = 0; i < warm + n && rc == 0; i++) {
		bool one = false;

		rc = sleep_ask(s, size, i, &ticks[i < warm ? 0 : i - warm], &one);
		slept += i >= warm && one;
	}
	if (rc == 0)
		rc = sleep_row(s, t, size, ticks, n, slept);
	free(ticks);
	return rc;
}
