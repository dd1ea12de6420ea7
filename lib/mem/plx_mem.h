/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_mem.h - memory from the system: segments that others can open, the heap, pools
 *
 * Everything here prefers huge pages and continues with 4 KiB pages if none are free; the first
 * time that happens one INFO line says how to get some.
 */
#ifndef PLX_MEM_H
#define PLX_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "plx_fork.h"

/** Memory with a file descriptor by which another process can map it. */
struct plx_seg {
	void *base;
	size_t len;  /* bytes, a multiple of the page size in use */
	int fd;
	uint64_t id; /* random: a process that knows it may get the segment, plx_seg_name() */
	bool huge;
	bool own_user; /* offered to processes of our own user only */
};

/**
 * @return whether a file of len bytes exceeds the limit of this process: trying is a fatal
 *   signal. Thread: any.
 */
bool plx_mem_too_long(uint64_t len);

/**
 * Create a segment: zeroed, shared, freed with its last user.
 * @param addr where to put it (the range must be free), or NULL for anywhere
 * @param len bytes, rounded up to pages
 * @param huge try huge pages first
 * Thread: any. Blocks: may. Errors: -ENOMEM; -EEXIST addr is in use.
 */
int plx_seg_create(struct plx_seg *seg, void *addr, size_t len, bool huge);

/**
 * The same, anywhere, of which only the first now bytes are about to be used: huge pages behind
 * them are reserved, but none is taken. Call plx_mem_populate() before those are used.
 */
int plx_seg_create_part(struct plx_seg *seg, size_t len, size_t now, bool huge);

/**
 * Take the pages of a part of mapped memory. Huge pages may be reserved and then denied (by a
 * control group), which is a fatal signal at the first touch; here it is an error. Kernels before
 * 5.14 can't tell: there it succeeds and does nothing.
 * @param va begins on a page
 * @return false: they are denied. Thread: any. Blocks: may.
 */
bool plx_mem_populate(void *va, size_t len);

/** Unmap and close. Accepts a segment whose base is NULL. Thread: any. */
void plx_seg_destroy(struct plx_seg *seg);

/**
 * Prepare the heap of pools; called once after the EAL is up. In a child of a process with
 * an EAL it is that of malloc(), on 4 KiB pages.
 * @param huge whether to try huge pages
 * @return 0 or -errno. Thread: control.
 */
int plx_mem_init(bool huge);

/** @return whether the next memory would be on huge pages. Thread: any. Blocks: may. */
bool plx_mem_has_huge(void);

/**
 * Allocate from the heap, which grows if needed; free with plx_mem_free().
 * @return NULL without memory. Thread: any. Blocks: may (system calls when it grows).
 */
void *plx_mem_alloc(size_t len);

/** Free memory of the heap. Accepts NULL. Thread: any. */
void plx_mem_free(void *p);

/** Slow path of plx_mem_is_inherited(). */
bool plx_mem_in_parents_heap(const void *p);

/**
 * In a forked child: whether p is in its parent's heap. On huge pages, when none is free,
 * the kernel takes a page away from the child as the parent writes to it: an access would
 * be a fatal signal. One test of a flag in a process whose parents had no EAL. Thread: any.
 * Blocks: never.
 */
static inline bool
plx_mem_is_inherited(const void *p)
{
	return __builtin_expect(plx_fork_eal, 0) && plx_mem_in_parents_heap(p);
}

/**
 * Before fork(), by the thread that calls it in a callback: the child gets the heap on 4 KiB pages,
 * as it returns into functions that use it (mem.c). Takes as long, and as much memory, as to copy
 * what is on huge pages. Where the copy can't be mapped the child has the heap as any other child. The
 * same holds if the caller is a signal's handler that has interrupted this thread in a function of the
 * heap. Thread: any, one at a time. Blocks: while another changes the heap.
 */
void plx_mem_copy_for_child(void);

/** After fork(), in the parent, by the same thread. Accepts that there is no copy. */
void plx_mem_drop_copy(void);

struct rte_ring;

/**
 * A ring for one producer and one consumer, in memory of the heap: rte_ring_create()
 * allocates in the EAL's own, which a child shares with its parent. Free with
 * plx_mem_free().
 * @param n places, a power of two
 * @return 0, -ENOMEM. Thread: any. Blocks: as plx_mem_alloc().
 */
int plx_mem_ring(uint32_t n, struct rte_ring **out);

/** Bytes in the heap, and the part on huge pages. Thread: any. */
void plx_mem_stats(uint64_t *total, uint64_t *huge);

/* One free object; the links live in the objects themselves. */
struct plx_pool_obj {
	SLIST_ENTRY(plx_pool_obj) next;
};

#define PLX_POOL_MAX_CHUNKS 39

/**
 * Equal objects for one owner thread: chunks of the heap, each as large as all earlier
 * ones, with the free objects on a list, last in first out. (An rte_mempool has a fixed
 * size, is a FIFO, which walks through all of its memory, has no cache for threads without
 * an lcore, and takes three of the EAL's 2,560 memory zones: a process with a hundred
 * workers runs out of them.) A forked child finds its parent's pools empty: it allocates
 * memory of its own.
 */
struct plx_pool {
	SLIST_HEAD(, plx_pool_obj) free;
	uint32_t n_free;
	uint32_t obj_len;	/* bytes */
	uint32_t first_n;	/* objects in the first chunk */
	uint32_t n_chunks;
	uint64_t n_objs;
	uint64_t max_objs;	/* 0: unbounded */
	struct {
		char *base;
		uint64_t n;
	} chunks[PLX_POOL_MAX_CHUNKS];
	void (*init)(void *obj, void *arg); /* once for each object, when it is made */
	void *init_arg;
	LIST_ENTRY(plx_pool) link;
	char name[16];
};

/**
 * Make a pool; it allocates nothing before the first get.
 * @param obj_len bytes of an object, aligned to a cache line inside
 * @param first_n objects in the first chunk
 * @param max_objs bound, 0 for none
 * @param init called once for each object, NULL for none
 * Thread: control.
 */
void plx_pool_open(struct plx_pool *p, const char *name, uint32_t obj_len, uint32_t first_n,
	uint64_t max_objs, void (*init)(void *obj, void *arg), void *init_arg);

/** Free everything, including objects in use. Accepts a pool of zeroes. Thread: owner. */
void plx_pool_close(struct plx_pool *p);

/** Call fn for each object ever made, free or not. Thread: owner. */
void plx_pool_each(struct plx_pool *p, void (*fn)(void *obj, void *arg), void *arg);

/** Slow path of plx_pool_get(): one more chunk. @return an object or NULL. Thread: owner. */
void *plx_pool_grow(struct plx_pool *p);

/** Make sure that n objects are free. @return whether they are. Thread: owner. */
bool plx_pool_reserve(struct plx_pool *p, uint32_t n);

/** @return an object, with its old content, or NULL: none is free. Thread: owner. */
static inline void *
plx_pool_get_free(struct plx_pool *p)
{
	struct plx_pool_obj *obj = SLIST_FIRST(&p->free);

	if (__builtin_expect(obj == NULL, 0))
		return NULL;
	SLIST_REMOVE_HEAD(&p->free, next);
	p->n_free--;
	return obj;
}

/** The same, and the pool grows. @return NULL without memory */
static inline void *
plx_pool_get(struct plx_pool *p)
{
	void *obj = plx_pool_get_free(p);

	return __builtin_expect(obj != NULL, 1) ? obj : plx_pool_grow(p);
}

/** Free an object. Overwrites its first 8 bytes. Thread: owner. */
static inline void
plx_pool_put(struct plx_pool *p, void *obj)
{
	SLIST_INSERT_HEAD(&p->free, (struct plx_pool_obj *)obj, next);
	p->n_free++;
}

#endif
