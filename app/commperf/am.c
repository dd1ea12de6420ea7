/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * am.c - active messages, and streams: loops of programs that take messages without a tag
 *
 * Design notes
 * - A program reads an active message in place, in its callback; one whose data is still at the
 *   sender is fetched into the window's buffers.
 * - Both sides count messages from the creation of the worker, and the count selects the
 *   pattern: a message may come before the loop that waits for it has begun.
 * - The sender of a fetched message may complete before the fetch here, and send the next: that
 *   one is fetched when the oldest buffer of the window is free. So at most a window of them
 *   waits.
 * - A stream is read with WAITALL, each receive the size of a message, so that the loops of
 *   tagged messages can be used.
 */
#include "perf_ucp.h"

#define AM_ID 7

/* A message whose data is at the sender. */
struct am_fetch {
	void *desc;
	uint64_t seq;
	uint8_t *buf;
	size_t len;
	bool over;
};

static struct am {
	struct perf_side *s;
	ucp_worker_h worker;
	ucp_ep_h ep;
	uint64_t sent, begun, came, taken; /* messages; came: complete; taken: by a waiting loop */
	int status;			   /* the first error in a callback */
	/* counts of fetched messages: arrived, with a buffer, complete in order */
	uint64_t asked, started, finished;
	struct am_fetch fetch[2 * PERF_MAX_WINDOW];
	struct perf_io tx[PERF_MAX_WINDOW];
} am;

static void
am_whole(struct perf_side *s, const uint8_t *data, size_t len, uint64_t seq)
{
	const struct perf_io io = {.len = len};

	am.came++;
	if (unlikely(s->o->verify || len != s->size))
		perf_check(s, &io, data, s->size, seq);
}

static inline struct am_fetch *
am_fetch_at(uint64_t i)
{
	return &am.fetch[i % RTE_DIM(am.fetch)];
}

static void am_fetch_next(struct perf_side *s);

static void
am_fetched(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct am_fetch *f = user_data;

	(void)length;
	if (status != UCS_OK)
		am.status = status;
	am_whole(am.s, f->buf, f->len, f->seq);
	f->over = true;
	while (am.finished < am.started && am_fetch_at(am.finished)->over)
		am.finished++;
	if (request == NULL)
		return; /* the waiting loop continues */
	ucp_request_free(request);
	am_fetch_next(am.s);
}

static void
am_fetch_one(struct perf_side *s, struct am_fetch *f, unsigned slot)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv_am = am_fetched,
		.user_data = f};
	const void *to;
	size_t count = f->len;
	ucs_status_ptr_t ret;

	f->buf = s->rbuf + slot * perf_stride(s);
	to = f->buf;
	if (perf_ucp_memh(s) != NULL) {
		p.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
		p.memh = perf_ucp_memh(s);
	}
	perf_ucp_type(s, false, &to, &count, &p);
	ret = ucp_am_recv_data_nbx(am.worker, f->desc, (void *)(uintptr_t)to, count, &p);
	if (ret == NULL)
		am_fetched(NULL, UCS_OK, f->len, f);
	else if (UCS_PTR_IS_ERR(ret))
		am.status = UCS_PTR_STATUS(ret);
}

static void
am_fetch_next(struct perf_side *s)
{
	while (am.started < am.asked && am.started - am.finished < s->o->window) {
		uint64_t i = am.started++;

		am_fetch_one(s, am_fetch_at(i), (unsigned)(i % s->o->window));
	}
}

/* @return false: more messages wait than a sender may have in flight, or more than a buffer
 *   takes */
static bool
am_fetch(struct perf_side *s, void *desc, size_t len, uint64_t seq)
{
	if (len > s->size || am.asked - am.finished == RTE_DIM(am.fetch)) {
		am.status = UCS_ERR_MESSAGE_TRUNCATED;
		return false;
	}
	*am_fetch_at(am.asked++) = (struct am_fetch){.desc = desc, .seq = seq, .len = len};
	am_fetch_next(s);
	return true;
}

static ucs_status_t
am_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct perf_side *s = arg;
	uint64_t seq = am.begun++;

	(void)header;
	(void)header_length;
	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		return am_fetch(s, data, length, seq) ? UCS_INPROGRESS : UCS_OK;
	am_whole(s, data, length, seq);
	return UCS_OK;
}

int
perf_am_listen(struct perf_side *s)
{
	ucp_am_handler_param_t p = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
						  UCP_AM_HANDLER_PARAM_FIELD_CB |
						  UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = AM_ID,
		.cb = am_message,
		.arg = s};
	ucs_status_t status;

	am = (struct am){.s = s};
	perf_ucp_handles(s, &am.worker, &am.ep);
	status = ucp_worker_set_am_recv_handler(am.worker, &p);
	return status == UCS_OK ? 0
				: perf_fail(s, "ucp_worker_set_am_recv_handler: %s",
					  ucs_status_string(status));
}

static inline int
am_send(struct perf_side *s, unsigned slot, const ucp_request_param_t *given)
{
	uint8_t *buf = s->sbuf + slot * perf_stride(s);
	const void *from = buf;
	size_t count = s->size;
	ucp_request_param_t p = *given;
	struct perf_io *io = &am.tx[slot];

	if (unlikely(perf_wait(s, io) != 0))
		return -1;
	if (unlikely(s->o->verify))
		perf_fill(buf, s->size, am.sent);
	am.sent++;
	io->done = 0;
	p.user_data = io;
	perf_ucp_type(s, true, &from, &count, &p);
	return perf_ucp_posted(
		s, "ucp_am_send_nbx", io, ucp_am_send_nbx(am.ep, AM_ID, NULL, 0, from, count, &p));
}

/* Wait until n messages have arrived that no loop has taken. Each that comes restarts the timeout. */
static inline int
am_wait(struct perf_side *s, uint64_t n)
{
	uint64_t spins = 0, seen = am.came;

	am.taken += n;
	while (am.came < am.taken && am.status == 0) {
		s->be->progress(s);
		if (likely((++spins & 0xfff) != 0))
			continue;
		if (seen != am.came)
			spins = 0x1000;
		seen = am.came;
		if (perf_wait_slow(s, spins) != 0)
			return -1;
	}
	return likely(am.status == 0) ? 0
				      : perf_fail(s, "an active message: %s",
						ucs_status_string((ucs_status_t)am.status));
}

static ucp_request_param_t
am_begin(struct perf_side *s)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = perf_ucp_done};

	perf_ucp_handles(s, &am.worker, &am.ep);
	if (perf_ucp_memh(s) != NULL && s->size > 0) {
		p.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
		p.memh = perf_ucp_memh(s);
	}
	for (unsigned i = 0; i < s->o->window; i++)
		am.tx[i] = (struct perf_io){.done = 1};
	return p;
}

static int
am_drain(struct perf_side *s)
{
	for (unsigned i = 0; i < s->o->window; i++) {
		if (perf_wait(s, &am.tx[i]) != 0)
			return -1;
	}
	return 0;
}

static int
am_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock)
{
	ucp_request_param_t p = am_begin(s);
	unsigned slot = 0;

	(void)size;
	(void)seq;
	for (uint64_t i = 0; i < n; i++, slot = perf_slot_next(slot, s->o->window)) {
		if (unlikely(am_send(s, slot, &p) != 0 || am_wait(s, 1) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return am_drain(s);
}

static int
am_pong(struct perf_side *s, size_t size, uint64_t n)
{
	ucp_request_param_t p = am_begin(s);
	unsigned slot = 0;

	(void)size;
	for (uint64_t i = 0; i < n; i++, slot = perf_slot_next(slot, s->o->window)) {
		if (unlikely(am_wait(s, 1) != 0 || am_send(s, slot, &p) != 0))
			return -1;
	}
	return am_drain(s);
}

static int
am_stream(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, bool tx, bool rx)
{
	ucp_request_param_t p = am_begin(s);
	unsigned slot = 0;

	(void)size;
	(void)seq;
	for (uint64_t i = 0; tx && i < n; i++, slot = perf_slot_next(slot, s->o->window)) {
		if (unlikely(am_send(s, slot, &p) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
	}
	return rx && am_wait(s, n) != 0 ? -1 : am_drain(s);
}

const struct perf_loops perf_loops_am = {.ping = am_ping, .pong = am_pong, .stream = am_stream};

/* ---- streams ---- */

static void
stream_came(void *request, ucs_status_t status, size_t length, void *user_data)
{
	struct perf_io *io = user_data;

	io->status = status;
	io->len = length;
	io->done = 1;
	ucp_request_free(request);
}

static int
stream_send(struct perf_side *s, struct perf_io *io, enum perf_dest dest, const void *buf, size_t len,
	uint64_t tag, unsigned flags)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = perf_ucp_done,
		.user_data = io};
	ucp_worker_h worker;
	ucp_ep_h ep;

	(void)dest;
	(void)tag;
	(void)flags;
	perf_ucp_handles(s, &worker, &ep);
	io->done = 0;
	io->status = 0;
	perf_ucp_type(s, true, &buf, &len, &p);
	return perf_ucp_posted(
		s, "ucp_stream_send_nbx", io, ucp_stream_send_nbx(ep, buf, len, &p));
}

static int
stream_recv(
	struct perf_side *s, struct perf_io *io, void *buf, size_t len, uint64_t tag, uint64_t mask)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA |
						 UCP_OP_ATTR_FIELD_FLAGS,
		.cb.recv_stream = stream_came,
		.flags = UCP_STREAM_RECV_FLAG_WAITALL,
		.user_data = io};
	const void *to = buf;
	ucp_worker_h worker;
	size_t came = 0;
	ucp_ep_h ep;
	void *ret;

	(void)tag;
	(void)mask;
	if (unlikely(len == 0))
		return perf_fail(s, "a stream has no messages of 0 bytes");
	perf_ucp_handles(s, &worker, &ep);
	io->done = 0;
	io->status = 0;
	perf_ucp_type(s, false, &to, &len, &p);
	ret = ucp_stream_recv_nbx(ep, (void *)(uintptr_t)to, len, &came, &p);
	if (ret == NULL)
		io->len = came;
	return perf_ucp_posted(s, "ucp_stream_recv_nbx", io, ret);
}

const struct perf_loops perf_loops_stream = {.send = stream_send, .recv = stream_recv};
