/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_gate_test.c - the inbox, the lock and the gate on a weakly ordered machine, in every order: see weak.h
 *
 * Design notes
 * The code of lib/gate runs as it is. What calls it is shortened: post() and run_posted() are those of
 * lib/worker, take_turns() is that of plx_poller_take(), and the reactor() that of lib/reactor, which then sleeps
 * until it is woken. Timeouts, which find forgotten messages late, are left out.
 */
#include <stdlib.h>
#include <string.h>

#include "plx_fence.h"
#include "plx_gate.h"
#include "plx_inbox.h"
#include "plx_lock.h"
#include "plx_mem.h"
#include "plx_poller.h"

/* -- in place of lib/mem -- */

bool plx_fence_open(void) { return true; }
bool plx_fence_has(void) { return true; }
void plx_fence_all(void) { weak_barrier(); }
void *plx_mem_alloc(size_t len) { return aligned_alloc(64, len); }
void plx_mem_free(void *p) { free(p); }

/* -- the inbox -- */

static struct plx_inbox in;
static uint64_t body[2], sum;

static void
add(void *arg)
{
	sum += *(uint64_t *)arg;
}

static void
inbox_new(bool many)
{
	plx_inbox_close(&in);
	if (plx_inbox_open(&in, many) != 0)
		abort();
	sum = 0;
	body[0] = body[1] = 0;
	weak_share(&in, sizeof(in));
	weak_share(in.cells, PLX_INBOX_LEN * sizeof(in.cells[0]));
	weak_share(body, sizeof(body));
	weak_share(&sum, sizeof(sum));
	weak_name(&in.head, "head");
	weak_name(&in.seen, "seen");
	weak_name(&in.done, "done");
	for (unsigned i = 0; i < 3; i++)
		weak_name(&in.cells[i].seq, "seq");
}

static void
inbox_setup(void)
{
	inbox_new(false);
}

static void
post_one(unsigned i)
{
	body[i] = i + 1;
	weak_check(plx_inbox_post(&in, add, &body[i]) == 0);
}

static void
inbox_post_two(void)
{
	post_one(0);
	post_one(1);
}

static void
inbox_run_two(void)
{
	for (unsigned n = 0, ran; n < 2; n += ran) {
		ran = plx_inbox_run(&in);
		if (ran == 0)
			weak_pause();
	}
}

static void
inbox_end(void)
{
	weak_check(sum == 3 && in.tail == 2);
}

static void
inbox_setup_many(void)
{
	inbox_new(true);
}

static void
inbox_post_first(void)
{
	post_one(0);
}

static void
inbox_post_second(void)
{
	post_one(1);
}

/* Full but for what the owner is about to run: the cell is used again. */
static void
inbox_setup_full(void)
{
	static uint64_t zero;

	inbox_new(false);
	for (unsigned i = 0; i < PLX_INBOX_LEN; i++)
		if (plx_inbox_post(&in, add, &zero) != 0)
			abort();
	in.empty = PLX_INBOX_PAUSE; /* one at a time */
}

static void
inbox_setup_full_many(void)
{
	inbox_setup_full();
	in.many = true;
}

static void
inbox_post_full(void)
{
	uint64_t pos;
	struct plx_inbox_cell *c;

	while ((c = plx_inbox_take(&in, &pos)) == NULL)
		weak_pause();
	c->fn = add;
	c->has_body = false;
	c->arg = &body[0];
	plx_inbox_give(&in, c, pos);
}

static void
inbox_try_full(void)
{
	uint64_t pos;
	struct plx_inbox_cell *c = plx_inbox_take(&in, &pos);

	if (c == NULL)
		return;
	c->fn = add;
	c->has_body = false;
	c->arg = &body[1];
	plx_inbox_give(&in, c, pos);
}

static void
inbox_run_first(void)
{
	for (unsigned i = 0; i < 2; i++) {
		in.empty = PLX_INBOX_PAUSE;
		weak_check(plx_inbox_run(&in) == 1);
	}
}

static const struct weak_scene inbox_scenes[] = {
	{.name = "one posts to the inbox", inbox_setup, {inbox_post_two, inbox_run_two}, inbox_end},
	{.name = "two post to the inbox", inbox_setup_many, {inbox_post_first, inbox_post_second, inbox_run_two}, inbox_end},
	{.name = "a cell is used again", inbox_setup_full, {inbox_post_full, inbox_run_first}, NULL},
	{.name = "a cell is used again, by two", inbox_setup_full_many,
		{inbox_try_full, inbox_try_full, inbox_run_first}, NULL},
};

/* -- the lock -- */

static struct plx_lock lock;
static uint64_t counted; /* under it */

static void
lock_new(uintptr_t to)
{
	plx_lock_open(&lock);
	lock.bias.to = to;
	counted = 0;
	weak_share(&lock, sizeof(lock));
	weak_share(&counted, sizeof(counted));
	weak_name(&lock.bias.to, "to");
	weak_name(&lock.bias.inside, "inside");
	weak_name(&lock.owner, "owner");
	weak_name(&lock.taken, "taken");
}

static void
lock_setup_new(void)
{
	lock_new(PLX_LOCK_NOBODY);
}

static void
lock_setup_biased(void)
{
	lock_new((uintptr_t)weak_self_of(0));
}

static void
lock_setup_all(void)
{
	lock_new(PLX_LOCK_ALL);
}

static void
lock_once(void)
{
	plx_lock_enter(&lock);
	counted++;
	plx_lock_leave(&lock);
}

static void
lock_twice(void)
{
	lock_once();
	lock_once();
}

static void
lock_try(void)
{
	if (!plx_lock_try_enter(&lock))
		return;
	counted++;
	plx_lock_leave(&lock);
}

static void
lock_end(void)
{
	weak_check(lock.bias.inside == 0 && lock.taken == PLX_LOCK_FREE && lock.depth == 0);
}

static const struct weak_scene lock_new_two = {.name = "two take a new lock", lock_setup_new,
	{lock_once, lock_once}, lock_end,
	.moves = "inside"};
static const struct weak_scene lock_biased = {.name = "a bias is revoked", lock_setup_biased,
	{lock_once, lock_once}, lock_end,
	.moves = "inside"};
static const struct weak_scene lock_tried = {.name = "a lock is tried", lock_setup_biased,
	{lock_once, lock_try}, lock_end,
	.moves = "inside"};
static const struct weak_scene lock_slept = {.name = "two sleep at a lock", lock_setup_all,
	{lock_twice, lock_once},
	lock_end, .impatient = true};

/* -- the gate -- */

#define POSTED_RUNS 2

static struct plx_poller poller;
static uint64_t owned;	/* by the owner */
static bool woken;	/* the reactor */
static bool grants;	/* it does; else it frees the worker */

/* In place of lib/reactor, whose policy decides more than these. */
void plx_poller_asks_long(struct plx_poller *p) { (void)p; }

bool
plx_poller_take_slow(struct plx_poller *p, bool polls)
{
	(void)polls;
	if (plx_gate_is_granted(&p->gate))
		return plx_gate_take_granted(&p->gate);
	if (plx_gate_is_held(&p->gate) || !plx_gate_take_free(&p->gate, PLX_GATE_TAKEN))
		return false;
	p->gate.for_call = true;
	return true;
}

void plx_poller_give_taken(struct plx_poller *p) { plx_gate_give_taken(&p->gate); }
void plx_poller_return(struct plx_poller *p) { (void)p; }

static void
run_message(void *arg)
{
	(void)arg;
	owned++;
}

/* Those of lib/worker/post.c and worker_post.h. */
static bool
run_while_taken(unsigned *runs)
{
	for (; *runs != 0 && plx_inbox_waits(&in); --*runs) {
		if (!plx_poller_take(&poller, false))
			return true;
		plx_inbox_run(&in);
		plx_poller_give(&poller, 0);
	}
	return false;
}

static bool
run_posted(void)
{
	const struct plx_gate *g = &poller.gate;
	unsigned runs = POSTED_RUNS;
	uintptr_t owner;

	atomic_thread_fence(memory_order_seq_cst);
	do {
		if (!run_while_taken(&runs))
			return !plx_inbox_waits(&in);
		owner = plx_gate_owner(g);
	} while (plx_gate_is_idle(g, owner));
	return owner >= PLX_GATE_TAKEN || !plx_inbox_waits(&in);
}

static void
post(void)
{
	weak_check(plx_inbox_post(&in, run_message, NULL) == 0);
	if (plx_gate_is_held(&poller.gate) || !run_posted())
		woken = true;
}

static bool
begin(void)
{
	if (!plx_poller_take(&poller, false))
		return false;
	if (plx_inbox_waits(&in))
		plx_inbox_run(&in);
	return true;
}

static void
call(void)
{
	if (!begin()) {
		post();
		return;
	}
	owned++;
	plx_poller_give(&poller, 0);
	if (in.many && plx_inbox_waits(&in) && !run_posted())
		woken = true;
}

static void
call_twice(void)
{
	call();
	call();
}

/* A turn, as the owner; then others may have the worker, until it is taken back. */
static void
reactor(void)
{
	plx_inbox_run(&in);
	owned++;
	if (grants)
		plx_gate_grant(&poller.gate);
	else
		plx_gate_free(&poller.gate);
	atomic_thread_fence(memory_order_seq_cst);
	if (plx_gate_owner(&poller.gate) == PLX_GATE_FREE ? plx_gate_take_free(&poller.gate, PLX_GATE_REACTOR)
							   : plx_gate_revoke(&poller.gate)) {
		plx_inbox_run(&in);
		owned++;
	}
}

static void
gate_new(bool one, bool by_grant)
{
	inbox_new(!one);
	memset((void *)&poller, 0, sizeof(poller));
	plx_gate_open(&poller.gate, one);
	poller.gate.bias.to = PLX_GATE_REACTOR;
	owned = 0;
	woken = false;
	grants = by_grant;
	weak_share(&poller, sizeof(poller));
	weak_share(&owned, sizeof(owned));
	weak_name(&poller.gate.bias.to, "to");
	weak_name(&poller.gate.bias.inside, "inside");
}

static void gate_setup_one(void) { gate_new(true, true); }
static void gate_setup_free(void) { gate_new(true, false); }
static void gate_setup_several(void) { gate_new(false, true); }

/* Granted, to A. */
static void
gate_setup_biased(void)
{
	gate_new(false, true);
	poller.gate.grantee = poller.gate.bias.to = (uintptr_t)weak_self_of(0);
}

static void
gate_end(void)
{
	weak_check(!plx_inbox_waits(&in) || woken);
	weak_check(poller.gate.bias.inside == 0);
}

static const struct weak_scene gate_one = {.name = "a reactor grants to one thread", gate_setup_one,
	{reactor, call}, gate_end,
	.moves = "inside"};
static const struct weak_scene gate_free = {.name = "a reactor frees its worker", gate_setup_free,
	{reactor, call_twice}, gate_end};
static const struct weak_scene gate_moves = {.name = "a second thread takes the worker", gate_setup_biased,
	{call, call}, gate_end,
	.moves = "inside", .most = 300000};
static const struct weak_scene gate_several = {.name = "a reactor grants to several", gate_setup_several,
	{reactor, call, call},
	gate_end, .most = 300000};

#define S(i) &inbox_scenes[i]
#define ALL(op, name) WEAK_WITHOUT(op, name)
static const struct weak_row rows[] = {
	{S(0), WEAK_NOTHING, {0}},
	{S(1), WEAK_NOTHING, {0}},
	{S(2), WEAK_NOTHING, {0}},
	{S(3), WEAK_NOTHING, {0}},
	{S(0), WEAK_RACE, ALL(WEAK_STORE, "seq")},
	{S(0), WEAK_RACE, ALL(WEAK_LOAD, "seq")},
	{S(2), WEAK_RACE, ALL(WEAK_STORE, "done")},
	{S(2), WEAK_RACE, ALL(WEAK_LOAD, "done")},
	{S(3), WEAK_RACE, ALL(WEAK_STORE, "seen")},
	{S(3), WEAK_RACE, ALL(WEAK_LOAD, "seen")},
	{&lock_new_two, WEAK_NOTHING, {0}},
	{&lock_biased, WEAK_NOTHING, {0}},
	{&lock_tried, WEAK_NOTHING, {0}},
	{&lock_slept, WEAK_NOTHING, {0}},
	{&lock_biased, WEAK_RACE, ALL(WEAK_BARRIER, NULL)},
	{&lock_biased, WEAK_RACE, ALL(WEAK_SIGNAL_FENCE, NULL)},
	{&lock_biased, WEAK_RACE, ALL(WEAK_STORE, "inside")},
	{&lock_biased, WEAK_RACE, ALL(WEAK_LOAD, "inside")},
	{&lock_slept, WEAK_RACE, ALL(WEAK_RMW, "taken")},
	{&gate_one, WEAK_NOTHING, {0}},
	{&gate_free, WEAK_NOTHING, {0}},
	{&gate_moves, WEAK_NOTHING, {0}},
	{&gate_several, WEAK_NOTHING, {0}},
	{&gate_one, WEAK_RACE, ALL(WEAK_BARRIER, NULL)},
	{&gate_one, WEAK_RACE, ALL(WEAK_SIGNAL_FENCE, NULL)},
	{&gate_one, WEAK_RACE, ALL(WEAK_STORE, "to")},
	{&gate_one, WEAK_RACE, ALL(WEAK_STORE, "inside")},
	{&gate_one, WEAK_RACE, ALL(WEAK_LOAD, "inside")},
	{&gate_one, WEAK_RACE, ALL(WEAK_LOAD, "to")},
	{&gate_free, WEAK_RACE, ALL(WEAK_RMW, "to")},
	{&gate_moves, WEAK_WRONG, ALL(WEAK_BARRIER, NULL)},
	{&gate_several, WEAK_WRONG, ALL(WEAK_FENCE, NULL)},
	{&gate_moves, WEAK_WRONG, ALL(WEAK_FENCE, NULL)},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}
