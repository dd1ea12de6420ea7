/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * region.c - the process's table of regions
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_common.h>

#include "plx_region.h"

#define SLOTS	 1024u /* of a chunk */
#define CHUNKS	 (PLX_REGION_MAX / SLOTS)
#define LIVE	 (1ull << 31)
#define USES	 (LIVE - 1)

struct region_slot {
	_Atomic uint64_t state; /* LIVE | accesses in progress */
	uint64_t token, base, len; /* valid during an access */
	uint32_t rights;
	uint32_t next_free;	   /* while free; 0: none */
};

static struct {
	pthread_mutex_t lock;
	struct region_slot *_Atomic chunks[CHUNKS];
	uint32_t n_made;     /* slots ever used; the first is never used */
	uint32_t first_free; /* 0: none */
} regions = {.lock = PTHREAD_MUTEX_INITIALIZER, .n_made = 1};

static struct region_slot *
slot_at(uint32_t index)
{
	struct region_slot *chunk;

	if (index == 0 || index >= PLX_REGION_MAX)
		return NULL;
	/* pairs with the release in slot_make() */
	chunk = atomic_load_explicit(&regions.chunks[index / SLOTS], memory_order_acquire);
	return chunk != NULL ? &chunk[index % SLOTS] : NULL;
}

/* A slot that was never used. Called with the lock held. @return its index or -errno */
static int
slot_make(void)
{
	uint32_t i = regions.n_made;
	struct region_slot *chunk;

	if (i == PLX_REGION_MAX)
		return -ENOSPC;
	if (atomic_load_explicit(&regions.chunks[i / SLOTS], memory_order_relaxed) == NULL) {
		chunk = calloc(SLOTS, sizeof(*chunk));
		if (chunk == NULL)
			return -ENOMEM;
		/* pairs with the acquire in slot_at() */
		atomic_store_explicit(&regions.chunks[i / SLOTS], chunk, memory_order_release);
	}
	regions.n_made++;
	return i;
}

int
plx_region_add(uint64_t base, uint64_t len, uint8_t rights, struct plx_region_key *out)
{
	struct region_slot *s;
	uint64_t token;
	int i;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		return -EIO;
	pthread_mutex_lock(&regions.lock);
	i = regions.first_free;
	if (i == 0)
		i = slot_make();
	if (i < 0) {
		pthread_mutex_unlock(&regions.lock);
		return i;
	}
	s = slot_at(i);
	regions.first_free = s->next_free;
	s->next_free = 0;
	s->token = token;
	s->base = base;
	s->len = len;
	s->rights = rights;
	/* pairs with the acquire in plx_region_hold() */
	atomic_store_explicit(&s->state, LIVE, memory_order_release);
	pthread_mutex_unlock(&regions.lock);
	*out = (struct plx_region_key){.index = i, .token = token};
	return 0;
}

void
plx_region_remove(const struct plx_region_key *key)
{
	struct region_slot *s = slot_at(key->index);

	if (s == NULL)
		return;
	atomic_fetch_and_explicit(&s->state, ~LIVE, memory_order_relaxed);
	/* pairs with the release in plx_region_drop(): the last access has ended */
	while (atomic_load_explicit(&s->state, memory_order_acquire) & USES)
		sched_yield();
	pthread_mutex_lock(&regions.lock);
	s->next_free = regions.first_free;
	regions.first_free = key->index;
	pthread_mutex_unlock(&regions.lock);
}

int
plx_region_hold(const struct plx_region_key *key, uint64_t addr, uint64_t len, uint8_t rights)
{
	struct region_slot *s = slot_at(key->index);
	uint64_t st;
	int rc = 0;

	if (s == NULL)
		return -EINVAL;
	st = atomic_load_explicit(&s->state, memory_order_relaxed);
	do {
		if (!(st & LIVE))
			return -EINVAL;
		/* pairs with the release in plx_region_add() */
	} while (!atomic_compare_exchange_weak_explicit(&s->state, &st, st + 1, memory_order_acquire,
		memory_order_relaxed));
	if (s->token != key->token || (rights != 0 && s->rights == 0))
		rc = -EINVAL;
	else if ((s->rights & rights) != rights)
		rc = -EACCES;
	else if (addr < s->base || addr - s->base > s->len || len > s->len - (addr - s->base))
		rc = -ERANGE;
	if (rc != 0)
		plx_region_drop(key);
	return rc;
}

void
plx_region_drop(const struct plx_region_key *key)
{
	/* pairs with the acquire in plx_region_remove() */
	atomic_fetch_sub_explicit(&slot_at(key->index)->state, 1, memory_order_release);
}

/* Regions of the parent stay in the table: no peer of the child has a key of them. */
static void
before_fork(void)
{
	pthread_mutex_lock(&regions.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&regions.lock);
}
RTE_INIT(region_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}
