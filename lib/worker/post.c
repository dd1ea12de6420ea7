/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post.c - an operation of the application's side: at once if it may act as the owner, else
 * through the inbox
 */
#include <stdatomic.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "worker_post.h"

#define POSTED_RUNS 4  /* messages that other threads post meanwhile */
#define TURN_COUNTS 4  /* weight of a turn of a posting thread, in turns of a waiting one */
#define CALL_PAUSES 32 /* polls before the core is yielded; a turn takes less, on a core of its own */

/* A device's time is converted at each look, and comes out some ticks apart; a reactor sleeps in milliseconds. */
static bool
is_sooner(uint64_t due_ticks, uint64_t was_ticks)
{
	return due_ticks < was_ticks && was_ticks - due_ticks > rte_get_tsc_hz() / 1000;
}

/* Restore the sleeping reactor's arming; wake it if there is work, or will be before it wakes. */
void
worker_free_after_call(struct plx_worker *w)
{
	uint64_t due = w->poller.due_ticks;
	bool wake;

	if (unlikely(w->wake.on))
		worker_wake_app(w, 1);
	wake = w->poller.armed && (w->poller.arm(w) != 0 || is_sooner(w->poller.due_ticks, due));
	plx_poller_give(&w->poller, 0);
	if (unlikely(wake))
		plx_reactor_wake(&w->poller);
}

void
worker_give_behind_turn(struct plx_worker *w)
{
	(void)plx_rndv_later(&w->rndv, true);
	w->poller.fn(w, true);
	(void)plx_rndv_later(&w->rndv, false);
	plx_poller_give(&w->poller, TURN_COUNTS);
}

enum plx_gate_pass
plx_worker_begin_slow(struct plx_worker *w)
{
	return worker_begin(w) ? PLX_GATE_GIVEN : PLX_GATE_NOT;
}

void
plx_worker_end_slow(struct plx_worker *w, enum plx_gate_pass pass, bool turn)
{
	if (pass == PLX_GATE_GIVEN) {
		worker_end(w, turn);
		return;
	}
	w->poller.gate.entered = true;
	if (w->turn_due <= 0)
		worker_give_behind_turn(w);
	else
		worker_give(w, false);
}

/* @param runs how many are left @return whether there is work, which this thread may not do as the owner */
static bool
run_while_taken(struct plx_worker *w, unsigned *runs)
{
	for (; *runs != 0 && plx_inbox_waits(&w->inbox); --*runs) {
		if (!plx_poller_take(&w->poller, false))
			return true;
		PLX_STAT_ADD(w->stat.submits, plx_inbox_run(&w->inbox));
		worker_give(w, true);
	}
	return false;
}

bool
worker_run_posted(struct plx_worker *w)
{
	const struct plx_gate *g = &w->poller.gate;
	unsigned runs = POSTED_RUNS;
	uintptr_t owner;

	/* pairs with plx_poller_give(): another owner sees the post, or this thread sees
	 * that it has finished */
	atomic_thread_fence(memory_order_seq_cst);
	do {
		if (!run_while_taken(w, &runs)) /* after the last run others may have left a message to this thread */
			return !plx_inbox_waits(&w->inbox);
		owner = plx_gate_owner(g); /* once: a reactor that gives up between two reads would be missed */
	} while (plx_gate_is_idle(g, owner));
	return owner >= PLX_GATE_TAKEN || !plx_inbox_waits(&w->inbox);
}

bool
worker_run_before(struct plx_worker *w)
{
	unsigned n = 1;

	for (unsigned i = 0; i < POSTED_RUNS && n != 0 && plx_inbox_waits(&w->inbox); i++) {
		n = plx_inbox_run(&w->inbox);
		PLX_STAT_ADD(w->stat.submits, n);
	}
	return !plx_inbox_waits(&w->inbox);
}

/* Earlier posts run first. */
void
worker_run_all_before(struct plx_worker *w)
{
	PLX_STAT_ADD(w->stat.submits, plx_inbox_drain(&w->inbox));
}

static __rte_noinline void
run_posted_meanwhile(struct plx_worker *w)
{
	if (!worker_run_posted(w))
		plx_reactor_wake(&w->poller);
}

void
worker_look_behind(struct plx_worker *w)
{
	if (unlikely(plx_inbox_waits(&w->inbox)))
		run_posted_meanwhile(w);
}

void
worker_post(struct plx_worker *w, plx_inbox_fn fn, void *arg)
{
	struct plx_inbox_cell *c;
	uint64_t pos;
	bool later;

	if (worker_begin(w)) {
		later = plx_rndv_later(&w->rndv, true);
		fn(arg);
		(void)plx_rndv_later(&w->rndv, later);
		worker_end(w, true);
		return;
	}
	c = worker_cell(w, &pos);
	c->fn = fn;
	c->has_body = false;
	c->arg = arg;
	worker_cell_post(w, c, pos);
}

bool
worker_submit_far(struct plx_worker *w, void (*fn)(void *req), struct plx_req *req)
{
	uint64_t len = req->len; /* it may be complete, and reused, when this returns */

	worker_post(w, fn, req);
	worker_leave_long(w, len);
	return true;
}

struct call {
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool done;
};

static void
call_run(void *arg)
{
	struct call *c = arg;

	c->fn(c->arg);
	/* pairs with the acquire in plx_worker_call() */
	atomic_store_explicit(&c->done, true, memory_order_release);
}

void
plx_worker_call(struct plx_worker *w, void (*fn)(void *arg), void *arg)
{
	struct call c = {.fn = fn, .arg = arg};
	struct plx_yield y = {.every = CALL_PAUSES}; /* of this thread: several may wait */

	if (!w->dedicated) {
		plx_eps_need_turn(&w->eps);
		worker_hold_done(w);
		fn(arg);
		worker_release_done(w);
		return;
	}
	worker_post(w, call_run, &c);
	while (!atomic_load_explicit(&c.done, memory_order_acquire)) {
		rte_pause();
		plx_yield_empty(&y);
	}
}
