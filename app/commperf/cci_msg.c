/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_msg.c - the loops of messages as a CCI program writes them
 *
 * Design notes
 * - The loops of bw.c and lat.c emulate posted receives, which would be half of the receiver's
 *   work: CCI has none, and a program counts, answers and returns the event. Words between the
 *   tests may arrive meanwhile, and the first messages before the loop: their events are kept.
 */
#include <cci.h>

#include "perf.h"

struct msg_loop {
	struct perf_side *s;
	struct perf_cci cci;
	size_t size;
	size_t stride;
	uint64_t seq;   /* number of the first message, for the pattern */
	uint64_t sent;
	uint64_t ended; /* completed sends */
	uint64_t got;
	unsigned at;    /* slot of the next send */
	bool failed;
};

static struct msg_loop
msg_loop(struct perf_side *s, size_t size, uint64_t seq)
{
	struct msg_loop m = {.s = s, .size = size, .stride = perf_stride(s), .seq = seq};

	perf_cci_handles(s, &m.cci);
	return m;
}

static __rte_noinline int
msg_fail(struct msg_loop *m, const char *what, int status)
{
	m->failed = true;
	return perf_fail(m->s, "%s: %s (%d)", what, cci_strerror(NULL, status), status);
}

static __rte_noinline void
msg_check(struct msg_loop *m, const cci_event_t *event)
{
	struct perf_io io = {.len = event->recv.len};

	if (m->s->o->verify)
		perf_check(m->s, &io, event->recv.ptr, m->size, m->seq + m->got);
	else
		m->failed = perf_fail(m->s, "a message of %u bytes", event->recv.len) != 0;
}

/* Read a message and return its event. */
static inline void
msg_take(struct msg_loop *m, cci_event_t *event)
{
	if (unlikely(event->recv.len != m->size || m->s->o->verify))
		msg_check(m, event);
	m->got++;
	cci_return_event(event);
}

/* @return the event if it is a message's; or NULL: it was another, and has been processed */
static inline cci_event_t *
msg_of(struct msg_loop *m, cci_event_t *event)
{
	if (event->type == CCI_EVENT_RECV && event->recv.connection == m->cci.conn)
		return event;
	if (likely(event->type == CCI_EVENT_SEND && event->send.context == m)) {
		m->ended++;
		if (unlikely(event->send.status != CCI_SUCCESS))
			msg_fail(m, "a send ended", (int)event->send.status);
		cci_return_event(event);
	} else {
		perf_cci_event(m->s, event);
	}
	return NULL;
}

/* Poll once. @return a message, or NULL; spins counts empty polls */
static inline cci_event_t *
msg_look(struct msg_loop *m, uint64_t *spins)
{
	cci_event_t *event;

	if (likely(cci_get_event(m->cci.ep, &event) == CCI_SUCCESS)) {
		*spins = 0;
		return msg_of(m, event);
	}
	if (unlikely((++*spins & 0xfff) == 0) && perf_wait_slow(m->s, *spins) != 0)
		m->failed = true;
	return NULL;
}

/* Process one event. @return 0, or -1 after perf_fail() */
static inline int
msg_turn(struct msg_loop *m, uint64_t *spins)
{
	cci_event_t *event = msg_look(m, spins);

	if (event != NULL)
		msg_take(m, event);
	return unlikely(m->failed) ? -1 : 0;
}

/* @return the next message, not returned yet, or NULL after perf_fail() */
static inline cci_event_t *
msg_wait(struct msg_loop *m)
{
	cci_event_t *event = m->got == 0 ? perf_cci_held(m->s) : NULL;
	uint64_t spins = 0;

	while (event == NULL && likely(!m->failed))
		event = msg_look(m, &spins);
	return event;
}

static __rte_noinline int
msg_ended(struct msg_loop *m, uint64_t n)
{
	uint64_t spins = 0;

	while (m->ended < n) {
		if (msg_turn(m, &spins) != 0)
			return -1;
	}
	return 0;
}

static inline int
msg_send(struct msg_loop *m)
{
	uint8_t *buf = m->s->sbuf + m->at * m->stride;
	uint64_t spins = 0;
	int rc;

	m->at = perf_slot_next(m->at, m->s->o->window);
	if (unlikely(m->s->o->verify))
		perf_fill(buf, m->size, m->seq + m->sent);
	while (unlikely((rc = cci_send(m->cci.conn, buf, (uint32_t)m->size, m,
				 m->cci.send_flags)) == CCI_ENOBUFS)) {
		if (msg_turn(m, &spins) != 0)
			return -1;
	}
	if (unlikely(rc != CCI_SUCCESS))
		return msg_fail(m, "cci_send", rc);
	m->sent++;
	if (unlikely(m->cci.send_flags & CCI_FLAG_SILENT))
		m->ended++;
	return 0;
}

/* Ping and pong: check the status of the previous send now. */
static inline int
msg_room(struct msg_loop *m)
{
	return likely(m->sent - m->ended < LAT_SENDS) ? 0 : msg_ended(m, m->sent - LAT_SENDS + 1);
}

static int
cci_msg_stream(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, bool tx, bool rx)
{
	struct msg_loop m = msg_loop(s, size, seq);
	const uint64_t n_tx = tx ? n : 0, n_rx = rx ? n : 0;
	uint64_t spins = 0;
	cci_event_t *event;

	while ((event = perf_cci_held(s)) != NULL)
		msg_take(&m, event);
	while (m.sent < n_tx || m.got < n_rx || m.ended < n_tx) {
		if (m.sent < n_tx && m.sent - m.ended < s->o->window) {
			if (unlikely(msg_send(&m) != 0))
				return -1;
			if (unlikely((m.sent & 0xfff) == 0))
				perf_alive(s);
			if (n_rx == 0)
				continue;
		}
		if (unlikely(msg_turn(&m, &spins) != 0))
			return -1;
	}
	return 0;
}

static int
cci_msg_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock)
{
	struct msg_loop m = msg_loop(s, size, seq);
	cci_event_t *event;

	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(msg_room(&m) != 0 || msg_send(&m) != 0))
			return -1;
		event = msg_wait(&m);
		if (unlikely(event == NULL))
			return -1;
		msg_take(&m, event);
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return msg_ended(&m, m.sent);
}

/* Answer before returning the event of the message. */
static int
cci_msg_pong(struct perf_side *s, size_t size, uint64_t n)
{
	struct msg_loop m = msg_loop(s, size, 0);
	cci_event_t *event;

	for (uint64_t i = 0; i < n; i++) {
		event = msg_wait(&m);
		if (unlikely(event == NULL || msg_room(&m) != 0 || msg_send(&m) != 0))
			return -1;
		msg_take(&m, event);
	}
	return msg_ended(&m, m.sent);
}

const struct perf_loops perf_loops_cci = {
	.stream = cci_msg_stream,
	.ping = cci_msg_ping,
	.pong = cci_msg_pong,
};
