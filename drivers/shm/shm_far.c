/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_far.c - how far a receiver's core is, and how fast lines come from it
 *
 * Design notes
 * - A line that the receiver has read is taken from its caches before it is written again. Lines
 *   that are stored past the caches are not taken back, but the receiver reads them from memory.
 *   Where the two cores share no cache that is 2 to 5 times as fast, from 1 KiB on. Where they
 *   share one it depends on the processor: 8 KiB took 1.3 us either way on one, on another 1.0 us
 *   past the caches and 0.5 us in them.
 * - The sender learns how far the receiver is from the time of reading a line that the receiver
 *   has written, and how fast lines come by timing those of a long message, now and then. An
 *   interrupt, or a line that has left the caches, makes a time longer, nothing makes it shorter:
 *   two long times in a row count, and one short time ends it.
 */
#include <rte_atomic.h>
#include <rte_cycles.h>

#if defined(RTE_ARCH_X86_64)
#include <immintrin.h>
#endif

#include "plx_line.h"

#include "shm_int.h"

#define LINES 1024 /* the time of one has few ticks on some processors */

/* Earlier loads are over, later ones have not begun. */
static inline uint64_t
ticks_now(void)
{
#if defined(RTE_ARCH_X86_64)
	uint64_t now;

	_mm_lfence();
	now = rte_rdtsc();
	_mm_lfence();
	return now;
#else
	return rte_rdtsc_precise();
#endif
}

void
shm_far_open(struct shm_queue *sq, const struct plx_conf *conf)
{
	const uint64_t hz = rte_get_tsc_hz();

	if (plx_conf_u64(conf, SHM_CONF(FAR)) == PLX_CONF_NO) {
		sq->far_ticks = UINT64_MAX;
		sq->probe_ticks = UINT64_MAX;
		return;
	}
	sq->far_ticks = hz * SHM_FAR_NS / 1000000000;
	sq->lines_ticks = hz * SHM_LINE_NS * LINES / 1000000000;
	sq->probe_ticks = hz * SHM_PROBE_US / 1000000;
}

static void
past_set(struct shm_peer *p)
{
	p->past_min = p->far ? SHM_PAST_FAR : p->drags ? SHM_PAST_LONG : UINT32_MAX;
}

void
shm_far_peer_open(struct shm_peer *p)
{
	if (shm_queue(p->peer.q)->probe_ticks == UINT64_MAX)
		p->probe_at = UINT64_MAX;
	past_set(p);
}

void
shm_far_learn(struct shm_peer *p, uint64_t ticks)
{
	const bool slow = ticks > shm_queue(p->peer.q)->far_ticks;

	p->far = slow && p->slow;
	p->slow = slow;
	past_set(p);
}

uint64_t
shm_far_read(struct shm_peer *p)
{
	const uint64_t begin = ticks_now();
	/* pairs with the release in shm_slot_publish(): the cells' content is no longer read */
	const uint64_t pos = atomic_load_explicit(&p->slot->rx_pos, memory_order_acquire);

	if (pos != p->rx_seen) /* else the line may have stayed here */
		shm_far_learn(p, ticks_now() - begin);
	return pos;
}

void
shm_far_learn_lines(struct shm_peer *p, uint64_t ticks, uint32_t n)
{
	const bool slow = ticks * LINES > n * shm_queue(p->peer.q)->lines_ticks;

	p->drags = slow && p->slow_lines;
	p->slow_lines = slow;
	past_set(p);
}

void
shm_far_probe(struct shm_peer *p, uint8_t *to, uint32_t len)
{
	const uint32_t n = len / SHM_LINE;
	const uint64_t begin = ticks_now();

	for (uint32_t i = 0; i < n; i++)
		plx_line_own(to + i * SHM_LINE);
	for (uint32_t i = 0; i < n; i++)
		*(volatile uint8_t *)(to + i * SHM_LINE) = 0;
	rte_mb(); /* all lines are here */
	p->probe_at = ticks_now();
	shm_far_learn_lines(p, p->probe_at - begin, n);
	p->probe_at += shm_queue(p->peer.q)->probe_ticks;
}
