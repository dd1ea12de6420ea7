/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pool.c - equal objects for one owner: a growing chain of rte_mempools
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_mempool.h>

#include "mem_int.h"
#include "plx_mem.h"

void
plx_pool_open(struct plx_pool *p, const char *name, uint32_t obj_len, uint32_t first_n,
	uint64_t max_objs, void (*init)(void *obj, void *arg), void *init_arg)
{
	memset(p, 0, sizeof(*p));
	SLIST_INIT(&p->free);
	p->obj_len = RTE_CACHE_LINE_ROUNDUP(obj_len);
	p->first_n = first_n;
	p->max_objs = max_objs;
	p->init = init;
	p->init_arg = init_arg;
	snprintf(p->name, sizeof(p->name), "%s", name);
}

static struct rte_mempool *
chunk_create(const struct plx_pool *p, uint32_t n)
{
	static _Atomic uint32_t serial;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "plx_%.10s_%u", p->name,
		atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
	return rte_mempool_create(name, n, p->obj_len, 0, 0, NULL, NULL, NULL, NULL,
		plx_mem_socket(), RTE_MEMPOOL_F_SP_PUT | RTE_MEMPOOL_F_SC_GET);
}

static void
chunk_obj_free(struct rte_mempool *mp __rte_unused, void *arg, void *obj, unsigned idx __rte_unused)
{
	struct plx_pool *p = arg;

	if (p->init != NULL)
		p->init(obj, p->init_arg);
	plx_pool_put(p, obj);
}

void *
plx_pool_grow(struct plx_pool *p)
{
	struct rte_mempool *mp;
	uint64_t n;

	if (p->n_chunks == PLX_POOL_MAX_CHUNKS)
		return NULL;
	/* Each chunk as large as all before it together, up to about 16 MiB. */
	n = p->n_objs != 0 ? p->n_objs : p->first_n;
	while (n > p->first_n && n * p->obj_len > (16ull << 20))
		n /= 2;
	if (p->max_objs != 0 && p->n_objs + n > p->max_objs)
		n = p->max_objs - p->n_objs;
	if (n == 0)
		return NULL;
	mp = chunk_create(p, n);
	if (mp == NULL) {
		/* The heap is full: add room for the objects, their headers and the ring. */
		if (mem_heap_reserve(n * (p->obj_len + 64 + 32) + (256 << 10)) != 0)
			return NULL;
		mp = chunk_create(p, n);
	}
	if (mp == NULL) {
		PLX_LOG_RATELIMIT(WARNING, mem, "no memory for %u more of %s", (unsigned)n,
			p->name);
		return NULL;
	}
	p->chunks[p->n_chunks++] = mp;
	p->n_objs += n;
	rte_mempool_obj_iter(mp, chunk_obj_free, p);
	return plx_pool_get(p);
}

struct each_arg {
	void (*fn)(void *obj, void *arg);
	void *arg;
};

static void
chunk_obj_each(struct rte_mempool *mp __rte_unused, void *arg, void *obj, unsigned idx __rte_unused)
{
	struct each_arg *e = arg;

	e->fn(obj, e->arg);
}

void
plx_pool_each(struct plx_pool *p, void (*fn)(void *obj, void *arg), void *arg)
{
	struct each_arg e = {fn, arg};

	for (uint32_t i = 0; i < p->n_chunks; i++)
		rte_mempool_obj_iter(p->chunks[i], chunk_obj_each, &e);
}

void
plx_pool_close(struct plx_pool *p)
{
	for (uint32_t i = 0; i < p->n_chunks; i++)
		rte_mempool_free(p->chunks[i]);
	SLIST_INIT(&p->free);
	p->n_chunks = 0;
	p->n_objs = 0;
	p->n_free = 0;
}
