/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pool.c - equal objects for one owner: a growing chain of chunks
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "mem_int.h"
#include "plx_mem.h"

#define POOL_CHUNK_MAX (128ull << 20) /* bytes; chunks double up to here */

/* All pools of this process, for its children. */
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, plx_pool) list;
} pools = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
before_fork(void)
{
	pthread_mutex_lock(&pools.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&pools.lock);
}

static void
forget(struct plx_pool *p)
{
	SLIST_INIT(&p->free);
	p->n_free = 0;
	p->n_chunks = 0;
	p->n_objs = 0;
}

/* The chunks are in the parent's heap: see plx_mem_is_inherited(). */
static void
after_fork_in_child(void)
{
	struct plx_pool *p;

	LIST_FOREACH(p, &pools.list, link)
		forget(p);
	pthread_mutex_unlock(&pools.lock);
}

RTE_INIT(pool_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void
plx_pool_open(struct plx_pool *p, const char *name, uint32_t obj_len, uint32_t first_n,
	uint64_t max_objs, void (*init)(void *obj, void *arg), void *init_arg)
{
	memset(p, 0, sizeof(*p));
	forget(p);
	p->obj_len = RTE_CACHE_LINE_ROUNDUP(obj_len);
	p->first_n = first_n;
	p->max_objs = max_objs;
	p->init = init;
	p->init_arg = init_arg;
	snprintf(p->name, sizeof(p->name), "%s", name);
	pthread_mutex_lock(&pools.lock);
	LIST_INSERT_HEAD(&pools.list, p, link);
	pthread_mutex_unlock(&pools.lock);
}

void *
plx_pool_grow(struct plx_pool *p)
{
	uint64_t n;
	char *base;

	if (p->n_chunks == PLX_POOL_MAX_CHUNKS)
		return NULL;
	n = p->n_objs != 0 ? p->n_objs : p->first_n;
	while (n > p->first_n && n * p->obj_len > POOL_CHUNK_MAX)
		n /= 2;
	if (p->max_objs != 0 && p->n_objs + n > p->max_objs)
		n = p->max_objs - p->n_objs;
	if (n == 0)
		return NULL;
	base = plx_mem_alloc(n * p->obj_len);
	if (base == NULL) {
		PLX_LOG_RATELIMIT(WARNING, mem, "out of memory for %u more of %s", (unsigned)n,
			p->name);
		return NULL;
	}
	p->chunks[p->n_chunks].base = base;
	p->chunks[p->n_chunks++].n = n;
	p->n_objs += n;
	for (uint64_t i = 0; i < n; i++) {
		if (p->init != NULL)
			p->init(base + i * p->obj_len, p->init_arg);
		plx_pool_put(p, base + i * p->obj_len);
	}
	return plx_pool_get(p);
}

bool
plx_pool_reserve(struct plx_pool *p, uint32_t n)
{
	void *obj;

	while (p->n_free < n) {
		obj = plx_pool_grow(p);
		if (obj == NULL)
			return false;
		plx_pool_put(p, obj);
	}
	return true;
}

void
plx_pool_each(struct plx_pool *p, void (*fn)(void *obj, void *arg), void *arg)
{
	for (uint32_t c = 0; c < p->n_chunks; c++)
		for (uint64_t i = 0; c < p->n_chunks && i < p->chunks[c].n; i++) /* fn may fork: forget() */
			fn(p->chunks[c].base + i * p->obj_len, arg);
}

void
plx_pool_close(struct plx_pool *p)
{
	if (p->obj_len == 0) /* it was never opened */
		return;
	pthread_mutex_lock(&pools.lock);
	LIST_REMOVE(p, link);
	pthread_mutex_unlock(&pools.lock);
	for (uint32_t i = 0; i < p->n_chunks; i++)
		plx_mem_free(p->chunks[i].base);
	forget(p);
	p->obj_len = 0;
}
