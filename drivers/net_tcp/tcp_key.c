/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_key.c - memory that peers may read and write by a key
 *
 * Design notes
 * The keys of regions lie in a table at the place that the key says. A key is drawn until its place is free, so
 * a look-up is one comparison, without a lock: any worker may look while any thread adds and removes. A place is
 * taken by a compare-and-swap; its region is written before its key, and a reader looks at the key again behind it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_common.h>

#include "plx_fork.h"
#include "plx_region.h"

#include "tcp_key.h"

/* -- regions of the process -- */

#define PLACES 16384u
#define TAKEN  1u /* a place whose key is not known yet */
#define DRAWS  256u

static struct {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t token;
	_Atomic uint32_t index;
} places[PLACES];

static _Atomic uint32_t n_regions;

/* @return a key whose place is taken now, or 0 */
static uint64_t
place_take(void)
{
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t none = 0;
		uint32_t any;

		if (getrandom(&any, sizeof(any), 0) != sizeof(any))
			return 0;
		if (atomic_compare_exchange_strong_explicit(&places[any % PLACES].key, &none, TAKEN,
			memory_order_relaxed, memory_order_relaxed))
			return PLX_DEV_KEY_SET | any;
	}
	return 0;
}

static uint8_t
region_rights(uint8_t rights)
{
	return ((rights & PLX_DEV_MEM_READ) ? PLX_REGION_READ : 0) | ((rights & PLX_DEV_MEM_WRITE) ? PLX_REGION_WRITE : 0) |
		((rights & PLX_DEV_MEM_ATOMIC) ? PLX_REGION_CPU64 : 0);
}

/* What a peer's place says. @return whether there is such a key */
static bool
place_look(uint64_t key, struct plx_region_key *out)
{
	uint32_t i = (uint32_t)key % PLACES;

	/* each pairs with its release in tcp_region_reg() */
	if (atomic_load_explicit(&places[i].key, memory_order_acquire) != key)
		return false;
	out->index = atomic_load_explicit(&places[i].index, memory_order_acquire);
	out->token = atomic_load_explicit(&places[i].token, memory_order_acquire);
	return atomic_load_explicit(&places[i].key, memory_order_relaxed) == key;
}

int
tcp_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len, uint8_t rights,
	struct plx_dev_key *out)
{
	struct plx_region_key region;
	uint64_t key;
	int rc;

	(void)conf;
	if (port != 0)
		return -ENODEV;
	rc = plx_region_add((uintptr_t)addr, len, region_rights(rights), &region);
	if (rc != 0)
		return rc;
	key = atomic_fetch_add_explicit(&n_regions, 1, memory_order_relaxed) < TCP_REGIONS ? place_take() : 0;
	if (key == 0) {
		atomic_fetch_sub_explicit(&n_regions, 1, memory_order_relaxed);
		plx_region_remove(&region);
		return -ENOSPC;
	}
	atomic_store_explicit(&places[key % PLACES].index, region.index, memory_order_release);
	atomic_store_explicit(&places[key % PLACES].token, region.token, memory_order_release);
	atomic_store_explicit(&places[key % PLACES].key, key, memory_order_release);
	out->mem = (struct plx_dev_mem){.key = key, .drv = (void *)((uintptr_t)plx_forks + 1)};
	out->port = TCP_DOMAIN_PORT;
	/* By key a swap is a loop of compares, and swaps of one sender overtake each other; messages keep their order. */
	out->atomics = PLX_DEV_ATOMICS_NONE;
	return 0;
}

void
tcp_region_dereg(struct plx_dev_key *key)
{
	struct plx_region_key region;

	if (!place_look(key->mem.key, &region))
		return;
	atomic_store_explicit(&places[key->mem.key % PLACES].key, TAKEN, memory_order_relaxed);
	if (key->mem.drv == (void *)((uintptr_t)plx_forks + 1)) /* else accesses of the parent's threads never end here */
		plx_region_remove(&region);
	atomic_store_explicit(&places[key->mem.key % PLACES].key, 0, memory_order_release);
	atomic_fetch_sub_explicit(&n_regions, 1, memory_order_relaxed);
}

/* -- memory of a queue -- */

#define OWN (1ull << 63) /* in keys of queues */

_Static_assert((TCP_REGS & (TCP_REGS - 1)) == 0, "a key has the index of its registration");

struct tcp_reg {
	uint64_t key, ended; /* 0: none; the one before */
	uint64_t base, len;
	uint16_t next;	/* of those that are free: the oldest is the next that is used */
	uint8_t rights;
};

struct tcp_keys {
	struct tcp_reg regs[TCP_REGS];
	uint16_t first, last; /* free ones; TCP_REGS: none */
	uint32_t n_drawn;     /* numbers that are left */
	uint64_t drawn[TCP_DRAWN];
};

static void
reg_free(struct tcp_keys *k, uint16_t i)
{
	k->regs[i].next = TCP_REGS;
	if (k->first == TCP_REGS)
		k->first = i;
	else
		k->regs[k->last].next = i;
	k->last = i;
}

int
tcp_keys_open(struct tcp_keys **out)
{
	struct tcp_keys *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return -ENOMEM;
	k->first = TCP_REGS;
	for (uint16_t i = 0; i < TCP_REGS; i++)
		reg_free(k, i);
	*out = k;
	return 0;
}

void
tcp_keys_close(struct tcp_keys *k)
{
	free(k);
}

static int
draw(struct tcp_keys *k, uint64_t *n_calls, uint64_t *out)
{
	if (k->n_drawn == 0) {
		if (getrandom(k->drawn, sizeof(k->drawn), GRND_NONBLOCK) != sizeof(k->drawn))
			return -EIO;
		k->n_drawn = TCP_DRAWN;
		PLX_STAT_INC(*n_calls);
	}
	*out = k->drawn[--k->n_drawn];
	k->drawn[k->n_drawn] = 0;
	return 0;
}

int
tcp_key_new(struct tcp_keys *k, void *addr, size_t len, uint8_t rights, uint64_t *n_calls, struct plx_dev_mem *out)
{
	uint16_t i = k->first;
	struct tcp_reg *r = &k->regs[i];
	uint64_t any;

	if (i == TCP_REGS)
		return -ENOSPC;
	if (draw(k, n_calls, &any) != 0)
		return -EIO;
	k->first = r->next;
	r->key = OWN | PLX_DEV_KEY_SET | (any & ~(uint64_t)(TCP_REGS - 1)) | i;
	r->base = (uintptr_t)addr;
	r->len = len;
	r->rights = rights;
	*out = (struct plx_dev_mem){.key = r->key, .drv = r};
	return 0;
}

void
tcp_key_end(struct tcp_keys *k, struct plx_dev_mem *mem)
{
	struct tcp_reg *r = mem->drv;

	r->ended = r->key;
	r->key = 0;
	reg_free(k, (uint16_t)(r - k->regs));
}

static int
own_check(const struct tcp_keys *k, uint64_t key, uint64_t addr, uint64_t len, uint8_t rights)
{
	const struct tcp_reg *r = &k->regs[key % TCP_REGS];

	if (r->key != key)
		return r->ended == key ? -ESTALE : -EINVAL;
	if ((r->rights & rights) != rights)
		return -EACCES;
	return addr - r->base <= r->len && len <= r->len - (addr - r->base) ? 0 : -ERANGE;
}

int
tcp_key_hold(struct tcp_keys *k, uint64_t key, uint64_t addr, uint64_t len, uint8_t rights)
{
	struct plx_region_key region;

	if ((key & OWN) != 0)
		return k != NULL ? own_check(k, key, addr, len, rights) : -EINVAL;
	if ((key & PLX_DEV_KEY_SET) == 0 || !place_look(key, &region))
		return -EINVAL;
	return plx_region_hold(&region, addr, len, region_rights(rights));
}

void
tcp_key_drop(uint64_t key)
{
	struct plx_region_key region = {
		.index = atomic_load_explicit(&places[key % PLACES].index, memory_order_relaxed)};

	/* The place is that of the region as long as it is held: see tcp_region_dereg(). */
	if ((key & OWN) == 0)
		plx_region_drop(&region);
}

uint64_t
tcp_word_change(uint64_t *at, uint8_t atomic, const uint64_t operand[2])
{
	uint64_t old = operand[0];

	if (atomic == PLX_DEV_FADD)
		return __atomic_fetch_add(at, operand[0], __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(at, &old, operand[1], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}
