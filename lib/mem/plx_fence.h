/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_fence.h - one thread fences for all, so that the others need not
 */
#ifndef PLX_FENCE_H
#define PLX_FENCE_H

#include <stdbool.h>

/**
 * Register the process, which takes the kernel 10 ms where there are other threads; again does nothing.
 * Thread: any. Blocks: may.
 * @return whether plx_fence_all() works here: membarrier(2)
 */
bool plx_fence_open(void);

/**
 * The same without the wait: where there are other threads the first plx_fence_all() registers. For what may
 * never need it. Thread: any. Blocks: no.
 */
bool plx_fence_has(void);

/**
 * Every thread of the process passes a full barrier before this returns: where the others have a
 * compiler's barrier. Only where plx_fence_open() or plx_fence_has() has once said yes; in a child as well.
 * Ends the process with a message where the call has been refused since then.
 */
void plx_fence_all(void);

/**
 * The same between processes: begin to register this one, in a thread of its own, as the
 * kernel may take seconds; repeated calls have no effect. Thread: any. Blocks: no.
 * @return whether plx_fence_world() of any process fences this one from now on
 */
bool plx_fence_world_open(void);

/** @return whether it has, without asking for it. Thread: any. Blocks: no. */
bool plx_fence_world_is_open(void);

/**
 * Every thread of every registered process executes a full barrier before this returns.
 * @return false if the process may not call it. Thread: any. Blocks: may.
 */
bool plx_fence_world(void);

#endif
