/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * inbox.c - messages from any thread to an owner
 */
#include <sched.h>
#include <string.h>

#include "plx_inbox.h"
#include "plx_mem.h"

#define INBOX_BURST 32

int
plx_inbox_open(struct plx_inbox *in, bool many)
{
	const size_t len = PLX_INBOX_LEN * sizeof(in->cells[0]);

	memset(in, 0, sizeof(*in));
	/* In our heap, which a forked child does not share with its parent. */
	in->cells = plx_mem_alloc(len);
	if (in->cells == NULL)
		return -ENOMEM;
	memset((void *)in->cells, 0, len);
	in->many = many;
	in->empty = PLX_INBOX_PAUSE;
	return 0;
}

void
plx_inbox_close(struct plx_inbox *in)
{
	plx_mem_free(in->cells);
	in->cells = NULL;
}

bool
plx_inbox_room_slow(struct plx_inbox *in, uint64_t pos)
{
	/* pairs with the release in plx_inbox_run(): the cell's contents have been read */
	uint64_t done = atomic_load_explicit(&in->done, memory_order_acquire);

	/* pairs with the acquire in plx_inbox_room(), of another producer */
	atomic_store_explicit(&in->seen, done, memory_order_release);
	return (int64_t)(pos - done) < PLX_INBOX_LEN;
}

/* @return the message at pos, or NULL if it is not written yet */
static inline struct plx_inbox_cell *
cell_at(const struct plx_inbox *in, uint64_t pos)
{
	struct plx_inbox_cell *c = &in->cells[pos % PLX_INBOX_LEN];

	/* pairs with the release in plx_inbox_give() */
	return atomic_load_explicit(&c->seq, memory_order_acquire) ==
		       (uint32_t)(pos / PLX_INBOX_LEN) + 1 ? c : NULL;
}

bool
plx_inbox_empty(const struct plx_inbox *in)
{
	return cell_at(in, in->tail) == NULL;
}

unsigned
plx_inbox_run(struct plx_inbox *in)
{
	/*
	 * Looking at the next cell waits for a line that its producer is about to write,
	 * and delays the effect of this message: a lone one is run without that look.
	 */
	unsigned most = plx_inbox_rested(in) ? 1 : INBOX_BURST, n;
	bool within = in->runs; /* a message's function calls us, and its cell is in use */
	struct plx_inbox_cell *c;

	in->runs = true;
	for (n = 0; n < most && (c = cell_at(in, in->tail)) != NULL; n++) {
		in->tail++;
		c->fn(c->has_body ? c->body : c->arg);
	}
	in->runs = within;
	if (n == 0) {
		in->empty++;
		return 0;
	}
	in->empty = 0;
	/* pairs with the acquire in plx_inbox_room_slow() */
	if (likely(!within))
		atomic_store_explicit(&in->done, in->tail, memory_order_release);
	return n;
}

unsigned
plx_inbox_drain(struct plx_inbox *in)
{
	uint64_t end = plx_inbox_posted(in);
	unsigned n, total = 0;

	while ((int64_t)(end - in->tail) > 0) {
		n = plx_inbox_run(in);
		total += n;
		if (n == 0) /* its producer has lost the core */
			sched_yield();
	}
	return total;
}
