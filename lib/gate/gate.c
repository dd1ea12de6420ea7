/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * gate.c - ownership changes with a locked instruction
 */
#include <string.h>

#include "plx_gate.h"

void
plx_gate_open(struct plx_gate *g, bool one)
{
	bool fences = one ? plx_fence_has() : plx_fence_open();

	memset((void *)g, 0, sizeof(*g));
	g->one = one && fences;
	g->grantee = g->one ? PLX_GATE_ONE : fences ? 0 : PLX_GATE_ALL;
}

static bool
change(struct plx_gate *g, uintptr_t was, uintptr_t to)
{
	/* pairs with the releases where the worker is returned, granted or freed */
	return atomic_compare_exchange_strong_explicit(&g->bias.to, &was, to, memory_order_acquire,
		memory_order_relaxed);
}

static inline void
set_owner(struct plx_gate *g, uintptr_t to)
{
	/* pairs with the acquires in change() and plx_bias_enter() */
	atomic_store_explicit(&g->bias.to, to, memory_order_release);
}

/* The same, and this thread looks at what others have posted next: a sequentially consistent store is no fence. */
static inline void
set_owner_and_look(struct plx_gate *g, uintptr_t to)
{
	set_owner(g, to);
	/* pairs with the fence of a thread that has posted, or that leaves */
	atomic_thread_fence(memory_order_seq_cst);
}

static inline uintptr_t
granted(const struct plx_gate *g)
{
	return g->grantee != 0 ? g->grantee : PLX_GATE_ALL;
}

/*
 * This thread has TAKEN a granted worker: decide which thread the next grant names. The first
 * thread gets the bias; once a second one comes nobody has it any more.
 * @return whether a thread that had the bias may be inside
 */
static bool
set_grantee(struct plx_gate *g, uintptr_t was)
{
	if (g->grantee == 0) {
		g->grantee = plx_bias_self();
		return false;
	}
	g->grantee = PLX_GATE_ALL;
	return was != PLX_GATE_ALL;
}

/*
 * Steps a to c in plx_bias.h. Meanwhile others may see TAKEN and leave their messages to
 * this thread: after a failed attempt it looks at the inbox, see plx_gate_is_idle().
 */
static bool
take(struct plx_gate *g, enum plx_gate_owner to)
{
	uintptr_t was = plx_gate_owner(g);

	if (was < PLX_GATE_ALL || !change(g, was, to))
		return false;
	if (to == PLX_GATE_REACTOR ? was > PLX_GATE_ALL : set_grantee(g, was))
		plx_fence_all();
	if (likely(!plx_bias_is_inside(&g->bias)))
		return true;
	set_owner_and_look(g, granted(g));
	return false;
}

bool
plx_gate_take_granted(struct plx_gate *g)
{
	if (!take(g, PLX_GATE_TAKEN))
		return false;
	g->entered = false;
	return true;
}

bool
plx_gate_take_free(struct plx_gate *g, enum plx_gate_owner to)
{
	if (!change(g, PLX_GATE_FREE, to))
		return false;
	if (to == PLX_GATE_TAKEN)
		g->entered = false;
	return true;
}

void
plx_gate_give_taken(struct plx_gate *g)
{
	set_owner_and_look(g, g->for_call ? PLX_GATE_FREE : granted(g));
}

bool
plx_gate_free_granted(struct plx_gate *g)
{
	uintptr_t self = plx_gate_self(g);
	uintptr_t was = self;

	if (plx_gate_owner(g) == self) /* so nobody is inside */
		/* pairs with the acquire in change() */
		return atomic_compare_exchange_strong_explicit(&g->bias.to, &was, PLX_GATE_FREE,
			memory_order_release, memory_order_relaxed);
	if (!take(g, PLX_GATE_TAKEN))
		return false;
	set_owner(g, PLX_GATE_FREE);
	return true;
}

void
plx_gate_grant(struct plx_gate *g)
{
	g->for_call = false;
	set_owner(g, granted(g));
}

void
plx_gate_free(struct plx_gate *g)
{
	set_owner(g, PLX_GATE_FREE);
}

bool
plx_gate_revoke(struct plx_gate *g)
{
	return take(g, PLX_GATE_REACTOR);
}
