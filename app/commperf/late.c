/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * late.c - unexpected messages: they arrive first, and their receives are posted then
 *
 * Design notes
 * - One at a time the receiver probes until the message is there, and receives it by its handle.
 * - A window: B sends it and a last word. Messages of one ep match in order, so when A has the
 *   word the whole window waits at A. The clock runs while A receives it.
 */
#include "perf_ucp.h"

static void
late_came(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	struct perf_io *io = user_data;

	io->len = info->length;
	perf_ucp_done(request, status, user_data);
}

static int
late_recv(struct perf_side *s, struct perf_io *io, void *buf, size_t len, uint64_t tag, uint64_t mask)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv = late_came,
		.user_data = io};
	ucp_tag_recv_info_t info;
	const void *to = buf;
	ucp_tag_message_h message;
	ucp_worker_h worker;
	uint64_t spins = 0;
	ucp_ep_h ep;

	perf_ucp_handles(s, &worker, &ep);
	while ((message = ucp_tag_probe_nb(worker, tag, mask, 1, &info)) == NULL) {
		s->be->progress(s);
		if (unlikely((++spins & 0xfff) == 0) && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	io->done = 0;
	io->status = 0;
	io->len = info.length;
	io->tag = info.sender_tag;
	perf_ucp_type(s, false, &to, &len, &p);
	return perf_ucp_posted(s, "ucp_tag_msg_recv_nbx", io,
		ucp_tag_msg_recv_nbx(worker, (void *)(uintptr_t)to, len, message, &p));
}

const struct perf_loops perf_loops_late = {.recv = late_recv};

static struct perf_io late_io[PERF_MAX_WINDOW];

static int
late_wait_all(struct perf_side *s)
{
	for (unsigned i = 0; i < s->o->window; i++) {
		if (perf_wait(s, &late_io[i]) != 0)
			return -1;
	}
	return 0;
}

static int
late_word(struct perf_side *s, bool send)
{
	struct perf_io io;
	int rc = send ? s->be->send(s, &io, PERF_PEER, NULL, 0, PERF_TAG_ACK, 0)
		      : s->be->recv(s, &io, NULL, 0, PERF_TAG_ACK, UINT64_MAX);

	return rc != 0 ? rc : perf_wait(s, &io);
}

/* Rank 1: on A's request send a window and the word after it. */
static int
late_give(struct perf_side *s, size_t size, uint64_t seq)
{
	size_t stride = perf_stride(s);

	if (late_word(s, false) != 0)
		return -1;
	for (unsigned i = 0; i < s->o->window; i++) {
		if (s->o->verify)
			perf_fill(s->sbuf + i * stride, size, seq + i);
		if (s->be->send(s, &late_io[i], PERF_PEER, s->sbuf + i * stride, size, PERF_TAG, 0) != 0)
			return -1;
	}
	return late_word(s, true) != 0 ? -1 : late_wait_all(s);
}

/* Rank 0: request a window and receive it when it has arrived completely. */
static int
late_take(struct perf_side *s, size_t size, uint64_t seq, uint64_t *ticks)
{
	size_t stride = perf_stride(s);
	uint64_t start;

	if (late_word(s, true) != 0 || late_word(s, false) != 0)
		return -1;
	start = rte_rdtsc();
	for (unsigned i = 0; i < s->o->window; i++) {
		if (s->be->recv(s, &late_io[i], s->rbuf + i * stride, size, PERF_TAG, s->o->mask) != 0)
			return -1;
	}
	if (late_wait_all(s) != 0)
		return -1;
	*ticks += rte_rdtsc() - start;
	for (unsigned i = 0; s->o->verify && i < s->o->window; i++)
		perf_check(s, &late_io[i], s->rbuf + i * stride, size, seq + i);
	perf_alive(s);
	return 0;
}

static int
late_rounds(struct perf_side *s, size_t size, uint64_t n, uint64_t *ticks)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t seq = i * s->o->window;

		if ((s->rank == 0 ? late_take(s, size, seq, ticks) : late_give(s, size, seq)) != 0)
			return -1;
	}
	return 0;
}

int
late_bw_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	uint64_t window = s->o->window, n = perf_iters(s->o, true, size), ticks = 0, warming = 0;
	uint64_t warm = (perf_warmup(s->o, n) + window - 1) / window;
	struct perf_row *row;
	double sec;

	if (((PERF_TAG ^ PERF_TAG_ACK) & s->o->mask) == 0)
		return perf_fail(s, "the mask leaves too few bits for %s", t->name);
	n = (n + window - 1) / window;
	if (late_rounds(s, size, warm, &warming) != 0 || late_rounds(s, size, n, &ticks) != 0)
		return -1;
	if (s->rank != 0)
		return 0;
	row = perf_row_new(s, t, size);
	if (row == NULL)
		return perf_fail(s, "out of memory");
	sec = perf_ns(s, ticks) * 1e-9;
	row->n = n * window;
	row->value = (double)size * (double)row->n / sec * 1e-6;
	row->higher_better = true;
	snprintf(row->unit, sizeof(row->unit), "MB/s");
	perf_row_field(row, "MB/s", row->value);
	perf_row_field(row, "Mmsg/s", (double)row->n / sec * 1e-6);
	perf_row_field(row, "us/msg", sec * 1e6 / (double)row->n);
	return 0;
}
