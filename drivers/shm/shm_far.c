/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_far.c - how far a receiver's core is
 *
 * Design notes
 * - A line that the receiver has read is taken from its caches before it is written again. Where
 *   the two cores share a cache this is quick. Where they don't, lines that are stored past the
 *   caches arrive 2 to 5 times as fast; between near cores these are faster from 8 KiB on.
 * - The sender learns how far the receiver is from the time of reading a line that the receiver
 *   has written. An interrupt, or a line that has left the caches, makes it longer, nothing makes
 *   it shorter: two long times in a row mean far, one short time near.
 */
#include <rte_cycles.h>

#if defined(RTE_ARCH_X86_64)
#include <immintrin.h>
#endif

#include "shm_int.h"

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

uint64_t
shm_far_ticks(const struct plx_conf *conf)
{
	if (plx_conf_u64(conf, SHM_CONF(FAR)) == PLX_CONF_NO)
		return UINT64_MAX;
	return rte_get_tsc_hz() * SHM_FAR_NS / 1000000000;
}

void
shm_far_learn(struct shm_peer *p, uint64_t ticks)
{
	const bool slow = ticks > shm_queue(p->peer.q)->far_ticks;

	p->past_min = slow && p->slow ? SHM_PAST_FAR : SHM_PAST_NEAR;
	p->slow = slow;
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
