/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_time.c - timers of a channel: connecting, sending, keepalive
 *
 * Design notes
 * - A channel has one timer, due at the first of its times or before: an operation that completes
 *   in time moves no timer. So a timer that fires may find nothing to do.
 */
#include <rte_common.h>
#include <rte_cycles.h>

#include "chan_int.h"

/* When the first operation is late. The timeout may differ between operations. */
static uint64_t
first_due(const struct plx_chan *c)
{
	const struct plx_chan_op *op;
	uint64_t due = UINT64_MAX;

	TAILQ_FOREACH(op, &c->ops, link) {
		if (op->due_ticks != 0 && op->state != PLX_CHAN_OP_OVER)
			due = RTE_MIN(due, op->due_ticks);
	}
	return due;
}

/* An operation has waited too long: the channel is broken. @return whether it is */
static bool
send_late(struct plx_chan *c, uint64_t now_ticks)
{
	uint64_t due;

	plx_chans_reap(c->chans); /* an acknowledged operation is not late */
	due = first_due(c);
	if (due > now_ticks) {
		if (due != UINT64_MAX)
			chan_timer_at(c, due);
		return false;
	}
	PLX_STAT_INC(c->chans->stat.timeouts);
	chan_close(c);
	chan_break(c->chans, c, c->rnr ? -ENOSR : -ETIMEDOUT);
	return true;
}

static void
keep_alive(struct plx_chan *c, uint64_t now_ticks)
{
	if (c->keep_ticks == 0)
		return;
	if (c->keep_due > now_ticks) {
		chan_timer_at(c, c->keep_due);
		return;
	}
	if (c->pinged && !c->heard) {
		PLX_STAT_INC(c->chans->stat.keepalive_timeouts);
		c->keep_ticks = 0;
		chan_tell_of(c->chans, c, PLX_CHAN_SILENCE, 0);
		return;
	}
	PLX_STAT_INC(c->chans->stat.keepalives);
	c->pinged = true;
	c->heard = false;
	c->keep_due = now_ticks + c->keep_ticks;
	chan_timer_at(c, c->keep_due);
	if (c->state == PLX_CHAN_OPEN)
		chan_ctl(c->ep, PLX_WIRE_CHAN_PING, c->remote, 0);
}

static void
timer_fires(struct plx_timer *t, uint64_t now_ticks)
{
	struct plx_chan *c = container_of(t, struct plx_chan, timer);

	switch (c->state) {
	case PLX_CHAN_CONNECTING:
		if (c->connect_ticks > now_ticks)
			chan_timer_at(c, c->connect_ticks);
		else if (c->connect_ticks != 0)
			chan_break(c->chans, c, -ETIMEDOUT);
		break;
	case PLX_CHAN_OPEN:
		if (!send_late(c, now_ticks))
			keep_alive(c, now_ticks);
		break;
	case PLX_CHAN_CLOSED:
		keep_alive(c, now_ticks);
		break;
	default:
		break;
	}
}

void
chan_timer_init(struct plx_chan *c)
{
	c->timer.armed = false;
	c->timer.fn = timer_fires;
}

void
plx_chan_set_keepalive(struct plx_chan *c, uint64_t ticks)
{
	if (!chan_reliable(c))
		return;
	c->keep_ticks = ticks;
	c->pinged = false;
	c->keep_due = rte_rdtsc() + ticks;
	if (ticks != 0 && c->state >= PLX_CHAN_OPEN)
		chan_timer_at(c, c->keep_due);
}

void
plx_chan_set_timeout(struct plx_chan *c, uint64_t ticks)
{
	if (chan_reliable(c))
		c->send_ticks = ticks;
}

uint64_t
plx_chans_next_ticks(const struct plx_chans *cs)
{
	const struct plx_timer *t;

	if (!cs->on)
		return UINT64_MAX;
	/* the worker has a timer of its own, which is no reason to wake */
	TAILQ_FOREACH(t, &cs->timers->list, link) {
		if (t->fn == timer_fires)
			return t->due_ticks;
	}
	return UINT64_MAX;
}
