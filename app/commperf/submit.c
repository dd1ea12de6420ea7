/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * submit.c - the cost of a posting call for the application, not of the work
 *
 * Design notes
 * - Each side answers a burst of one window with another. Side A reads the clock before and
 *   after its calls, and not in each: that takes as long as a call.
 * - A program's own calls, on the handles: the work of commperf's other tests around each call
 *   is no part of its cost.
 * - All receives of a burst are posted before its sends, and nothing is in flight then, so no
 *   call finds a device or a ring full.
 */
#include <stdlib.h>

#include "perf_ucp.h"

#define SUBMIT_ROUNDS	  UINT64_C(20000)
#define SUBMIT_MAX_ROUNDS (UINT64_C(1) << 20)

static struct perf_io submit_tx[PERF_MAX_WINDOW];
static struct perf_io submit_rx[PERF_MAX_WINDOW];

struct submit_ticks {
	uint64_t *send, *recv; /* of all calls of a burst */
	uint64_t n;
};

static void
submit_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	(void)info;
	perf_ucp_done(request, status, user_data);
}

/* The result of the call: complete, in progress, or an error, which is returned. */
static inline int
submit_posted(struct perf_io *io, ucs_status_ptr_t ret)
{
	if (ret == NULL)
		io->done = 1;
	return UCS_PTR_IS_ERR(ret) ? (int)UCS_PTR_STATUS(ret) : 0;
}

static int
submit_recvs(struct perf_side *s, size_t size)
{
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv = submit_received};
	ucp_worker_h worker;
	ucp_ep_h ep;
	int rc = 0;

	perf_ucp_handles(s, &worker, &ep);
	for (unsigned i = 0; i < s->o->window; i++) {
		submit_rx[i].done = 0;
		p.user_data = &submit_rx[i];
		rc |= submit_posted(&submit_rx[i],
			ucp_tag_recv_nbx(worker, s->rbuf, size, PERF_TAG, s->o->mask, &p));
	}
	return rc == 0 ? 0 : perf_fail(s, "ucp_tag_recv_nbx failed");
}

static int
submit_sends(struct perf_side *s, size_t size)
{
	ucp_request_param_t p = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = perf_ucp_done};
	ucp_worker_h worker;
	ucp_ep_h ep;
	int rc = 0;

	perf_ucp_handles(s, &worker, &ep);
	for (unsigned i = 0; i < s->o->window; i++) {
		submit_tx[i].done = 0;
		p.user_data = &submit_tx[i];
		rc |= submit_posted(&submit_tx[i], ucp_tag_send_nbx(ep, s->sbuf, size, PERF_TAG, &p));
	}
	return rc == 0 ? 0 : perf_fail(s, "ucp_tag_send_nbx failed");
}

static int
submit_wait(struct perf_side *s, struct perf_io *io)
{
	for (unsigned i = 0; i < s->o->window; i++) {
		if (perf_wait(s, &io[i]) != 0)
			return -1;
	}
	perf_alive(s);
	return 0;
}

static int
submit_ask(struct perf_side *s, size_t size, uint64_t n, struct submit_ticks *t)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t start = rte_rdtsc(), posted, sent;

		if (submit_recvs(s, size) != 0)
			return -1;
		posted = rte_rdtsc();
		if (submit_sends(s, size) != 0)
			return -1;
		sent = rte_rdtsc();
		if (submit_wait(s, submit_rx) != 0 || submit_wait(s, submit_tx) != 0)
			return -1;
		if (t == NULL)
			continue;
		t->recv[t->n] = posted - start;
		t->send[t->n++] = sent - posted;
	}
	return 0;
}

static int
submit_answer(struct perf_side *s, size_t size, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (submit_wait(s, submit_rx) != 0)
			return -1;
		if (i + 1 < n && submit_recvs(s, size) != 0)
			return -1;
		if (submit_sends(s, size) != 0 || submit_wait(s, submit_tx) != 0)
			return -1;
	}
	return 0;
}

static int
submit_before(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double
submit_at(const struct perf_side *s, const uint64_t *ticks, uint64_t i)
{
	return perf_ns(s, ticks[i]) / s->o->window;
}

static int
submit_row(struct perf_side *s, const struct perf_test *test, size_t size, struct submit_ticks *t)
{
	struct perf_row *row = perf_row_new(s, test, size);
	double sum = 0;

	if (row == NULL)
		return perf_fail(s, "out of memory");
	for (uint64_t i = 0; i < t->n; i++)
		sum += submit_at(s, t->send, i);
	qsort(t->send, t->n, sizeof(t->send[0]), submit_before);
	qsort(t->recv, t->n, sizeof(t->recv[0]), submit_before);
	row->n = t->n * s->o->window;
	row->value = submit_at(s, t->send, t->n / 2);
	snprintf(row->unit, sizeof(row->unit), "ns");
	perf_row_field(row, "send p50", row->value);
	perf_row_field(row, "send p10", submit_at(s, t->send, t->n / 10));
	perf_row_field(row, "send p90", submit_at(s, t->send, t->n * 9 / 10));
	perf_row_field(row, "send avg", sum / (double)t->n);
	perf_row_field(row, "recv p50", submit_at(s, t->recv, t->n / 2));
	perf_row_field(row, "recv p90", submit_at(s, t->recv, t->n * 9 / 10));
	return 0;
}

int
submit_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	uint64_t n = s->o->iters != 0 ? RTE_MIN(s->o->iters, SUBMIT_MAX_ROUNDS) : SUBMIT_ROUNDS;
	uint64_t warm = perf_warmup(s->o, n);
	struct submit_ticks v = {0};
	int rc;

	if (s->rank != 0) {
		rc = submit_recvs(s, size);
		rc = perf_barrier(s) != 0 || rc != 0 ? -1 : submit_answer(s, size, warm + n);
		return rc;
	}
	v.send = calloc(2 * n, sizeof(v.send[0]));
	if (v.send == NULL)
		return perf_fail(s, "out of memory");
	v.recv = v.send + n;
	rc = perf_barrier(s);
	if (rc == 0)
		rc = submit_ask(s, size, warm, NULL);
	if (rc == 0)
		rc = submit_ask(s, size, n, &v);
	if (rc == 0)
		rc = submit_row(s, t, size, &v);
	free(v.send);
	return rc;
}
