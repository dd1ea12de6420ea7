/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * threads.c - messages a second when several threads use one worker
 *
 * Design notes
 * - Side A has --threads threads in one worker of UCS_THREAD_MODE_MULTI, each with a window of
 *   its own on one ep; side B receives all messages with one thread.
 * - Data that a thread shares with the callbacks, which run in any thread, is atomic.
 * - submit ns is the time inside ucp_tag_send_nbx, a call, as the sending threads see it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "perf_ucp.h"

#define THREADS_MSGS  2000000 /* of all threads */
#define THREADS_TAG   UINT64_C(0x7a6)
#define THREADS_SAMPLE 64 /* one call in THREADS_SAMPLE is timed */

struct threads_io {
	_Atomic int done;
};

struct threads_one {
	pthread_t id;
	ucp_worker_h worker;
	ucp_ep_h ep;
	const uint8_t *buf;
	size_t size;
	uint64_t n;
	unsigned window;
	bool started, failed;
	uint64_t call_ticks, n_calls; /* of the sends that were timed */
	_Atomic bool *go;
	struct threads_io io[PERF_MAX_WINDOW];
};

static void
threads_sent(void *request, ucs_status_t status, void *user_data)
{
	struct threads_io *io = user_data;

	/* pairs with the acquire in threads_wait() */
	atomic_store_explicit(&io->done, status == UCS_OK ? 1 : -1, memory_order_release);
	ucp_request_free(request);
}

static bool
threads_wait(struct threads_one *t, struct threads_io *io)
{
	int done;

	while ((done = atomic_load_explicit(&io->done, memory_order_acquire)) == 0)
		ucp_worker_progress(t->worker);
	return done > 0;
}

static bool
threads_send(struct threads_one *t, struct threads_io *io, uint64_t i)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
					 UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = threads_sent,
		.user_data = io};
	bool timed = i % THREADS_SAMPLE == 0;
	uint64_t start = timed ? rte_rdtsc() : 0;
	ucs_status_ptr_t ret;

	atomic_store_explicit(&io->done, 0, memory_order_relaxed);
	ret = ucp_tag_send_nbx(t->ep, t->buf, t->size, THREADS_TAG, &p);
	if (timed) {
		t->call_ticks += rte_rdtsc() - start;
		t->n_calls++;
	}
	if (ret == NULL)
		atomic_store_explicit(&io->done, 1, memory_order_relaxed);
	return !UCS_PTR_IS_ERR(ret);
}

static void *
threads_main(void *arg)
{
	struct threads_one *t = arg;
	unsigned at = 0;

	while (!atomic_load_explicit(t->go, memory_order_acquire))
		;
	for (uint64_t i = 0; i < t->n && !t->failed; i++, at = perf_slot_next(at, t->window))
		t->failed = !threads_wait(t, &t->io[at]) || !threads_send(t, &t->io[at], i);
	for (unsigned i = 0; i < t->window && !t->failed; i++)
		t->failed = !threads_wait(t, &t->io[i]);
	return NULL;
}

static int
threads_send_all(struct perf_side *s, struct threads_one *v, unsigned n_threads, uint64_t n)
{
	_Atomic bool go = false;
	bool failed = false;
	unsigned i;

	for (i = 0; i < n_threads && !failed; i++) {
		v[i].n = n / n_threads;
		v[i].go = &go;
		v[i].failed = false;
		v[i].call_ticks = v[i].n_calls = 0;
		for (unsigned k = 0; k < v[i].window; k++)
			atomic_store_explicit(&v[i].io[k].done, 1, memory_order_relaxed);
		v[i].started = pthread_create(&v[i].id, NULL, threads_main, &v[i]) == 0;
		failed = !v[i].started;
	}
	s->start_ticks = rte_rdtsc();
	/* pairs with the acquire in threads_main(): no thread begins before all are started */
	atomic_store_explicit(&go, true, memory_order_release);
	while (i-- > 0) {
		if (v[i].started)
			pthread_join(v[i].id, NULL);
		failed = failed || v[i].failed;
	}
	return failed ? perf_fail(s, "a sending thread failed") : 0;
}

static int
threads_take_all(struct perf_side *s, size_t size, uint64_t n)
{
	static struct perf_io io[PERF_MAX_WINDOW];
	unsigned window = PERF_MAX_WINDOW;

	for (uint64_t i = 0; i < n + window; i++) {
		struct perf_io *one = &io[i % window];

		if (i >= window && perf_wait(s, one) != 0)
			return -1;
		if (i < n && s->be->recv(s, one, s->rbuf, size, THREADS_TAG, UINT64_MAX) != 0)
			return -1;
		if (i >= n)
			one->done = 1; /* there were fewer than the window */
		if ((i & 0xfff) == 0)
			perf_alive(s);
	}
	return 0;
}

/* All n messages; B reports the last one. */
static int
threads_stream(struct perf_side *s, struct threads_one *v, size_t size, uint64_t n)
{
	struct perf_io word = {0};
	int rc;

	if (perf_barrier(s) != 0)
		return -1;
	rc = s->rank == 0 ? threads_send_all(s, v, s->o->threads, n) : threads_take_all(s, size, n);
	if (rc != 0)
		return -1;
	rc = s->rank == 0 ? s->be->recv(s, &word, NULL, 0, PERF_TAG_ACK, UINT64_MAX)
			  : s->be->send(s, &word, PERF_PEER, NULL, 0, PERF_TAG_ACK, 0);
	if (rc != 0 || perf_wait(s, &word) != 0)
		return -1;
	s->end_ticks = rte_rdtsc();
	return 0;
}

static double
threads_call_ns(struct perf_side *s, const struct threads_one *v, unsigned n)
{
	uint64_t ticks = 0, calls = 0;

	for (unsigned i = 0; i < n; i++) {
		ticks += v[i].call_ticks;
		calls += v[i].n_calls;
	}
	return calls != 0 ? perf_ns(s, ticks) / (double)calls : 0;
}

static int
threads_measure(struct perf_side *s, const struct perf_test *t, size_t size, struct threads_one *v)
{
	uint64_t n = s->o->iters != 0 ? s->o->iters : THREADS_MSGS;
	struct perf_row *row;

	n = RTE_MAX(n / s->o->threads, UINT64_C(1)) * s->o->threads; /* each the same number */
	if (threads_stream(s, v, size, RTE_MAX(n / 10 / s->o->threads, UINT64_C(1)) *
			s->o->threads) != 0 ||
		threads_stream(s, v, size, n) != 0)
		return -1;
	if (s->rank != 0)
		return 0;
	row = rate_row(s, t, size, n, s->end_ticks - s->start_ticks);
	if (row == NULL)
		return -1;
	perf_row_field(row, "threads", s->o->threads);
	perf_row_field(row, "submit ns", threads_call_ns(s, v, s->o->threads));
	return 0;
}

int
threads_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct threads_one *v = calloc(s->o->threads, sizeof(*v));
	int rc;

	if (v == NULL)
		return perf_fail(s, "out of memory");
	for (unsigned i = 0; i < s->o->threads; i++) {
		perf_ucp_handles(s, &v[i].worker, &v[i].ep);
		v[i].buf = s->sbuf;
		v[i].size = size;
		v[i].window = s->o->window;
	}
	rc = threads_measure(s, t, size, v);
	free(v);
	return rc;
}
