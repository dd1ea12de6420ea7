/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_reg_cache.h - registrations of private memory that are kept for the next transfer
 *
 * One cache serves all drivers and queues of the process. A registration is dropped when its
 * memory is unmapped, moved or discarded (plx_watch.h), and the least recently used one when
 * there are too many. Memory that can't be watched is not cached: each transfer has a
 * registration of its own.
 */
#ifndef PLX_REG_CACHE_H
#define PLX_REG_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct plx_reg;

/**
 * Where memory is registered, such as a port of a device: a registration is valid for its
 * domain only. The driver embeds it in a struct of its own.
 */
struct plx_reg_domain {
	/**
	 * @return a handle, or NULL: errno says why; after ENOMEM the cache makes room and
	 *   tries again
	 */
	void *(*reg)(const struct plx_reg_domain *domain, void *addr, size_t len, int access);
	void (*dereg)(void *handle);
	int exclusive; /* access bits for writes of peers: one transfer at a time may use such
	                * memory */
};

/** Counters of one user; writer: its owner. */
struct plx_reg_stat {
	uint64_t made;
	uint64_t hits, misses;
	uint64_t unfit;	  /* could not be cached: not private, or all entries are in use */
	uint64_t evicted; /* for others, or because memory was short */
	uint64_t gone;	  /* their memory was unmapped, moved or discarded */
};

/**
 * A queue begins to use the cache; the first one's bounds apply.
 * @param n_max most cached registrations; 0: none
 * @param len_max most bytes of them
 * @return 0, or -ENOMEM. Thread: control.
 */
int plx_reg_cache_open(uint32_t n_max, uint64_t len_max);
/** A queue closes; the last one destroys the cache. Thread: control. */
void plx_reg_cache_close(void);
/** A domain closes. Thread: any. */
void plx_reg_cache_forget(const struct plx_reg_domain *domain);
/** Release registrations of unmapped memory. Thread: any. */
void plx_reg_cache_control(struct plx_reg_stat *stat);

/**
 * Get a registration of memory in a domain.
 * @param access least access bits
 * @return NULL: errno says why. Thread: any.
 */
struct plx_reg *plx_reg_get(const struct plx_reg_domain *domain, void *addr, size_t len, int access,
	struct plx_reg_stat *stat);
/** Release it. Accepts NULL. Thread: any. */
void plx_reg_put(struct plx_reg *reg);
/** The same, and peers with its key must not use it from now on. Thread: any. */
void plx_reg_revoke(struct plx_reg *reg);
/** @return what the domain's hook returned. */
void *plx_reg_handle(const struct plx_reg *reg);

/**
 * As the domain's hook; the caller undoes it; the cache makes room if the system is short
 * of it.
 */
void *plx_reg_raw(const struct plx_reg_domain *domain, void *addr, size_t len, int access);

#endif
