/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_inbox.h - how other threads ask the owner to do something
 *
 * An rte_ring of {fn, arg} with many producers and one consumer. Producers may be
 * preempted in the middle, so the ring is one whose tail does not wait for them
 * longer than it must (RTS).
 */
#ifndef PLX_INBOX_H
#define PLX_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#define PLX_INBOX_LEN 4096 /* messages that may wait */

/** Runs in the owner's thread. */
typedef void (*plx_inbox_fn)(void *arg);

struct plx_inbox {
	struct rte_ring *ring;
};

/** Errors: -ENOMEM. Thread: control. */
int plx_inbox_open(struct plx_inbox *in);

/** Messages not run are forgotten. Thread: control, when nobody posts. */
void plx_inbox_close(struct plx_inbox *in);

/** Post one message. @return 0, or -EAGAIN full. Thread: any. Blocks: never. */
int plx_inbox_post(struct plx_inbox *in, plx_inbox_fn fn, void *arg);

/** @return whether nothing waits. Thread: owner. */
bool plx_inbox_empty(const struct plx_inbox *in);

/** Run what waits, a bounded number. @return how many ran. Thread: owner. */
unsigned plx_inbox_run(struct plx_inbox *in);

#endif
