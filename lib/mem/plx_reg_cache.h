/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_reg_cache.h - registrations of private memory that are kept for the next transfer
 *
 * One cache for all drivers and queues of the process. What is kept is forgotten when its memory is
 * unmapped, moved or discarded (plx_watch.h), and what was not used for longest when there is too much.
 * Where memory can't be watched nothing is kept, and each transfer has a registration of its own.
 */
#ifndef PLX_REG_CACHE_H
#define PLX_REG_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct plx_reg;

/**
 * Where memory is registered, such as a port of a device: a registration is good for its domain only.
 * The driver keeps it in a struct of its own and finds the rest there.
 */
struct plx_reg_domain {
	/** @return a handle, or NULL: errno says why; at ENOMEM it is tried again after there is more room */
	void *(*reg)(const struct plx_reg_domain *domain, void *addr, size_t len, int access);
	void (*dereg)(void *handle);
	int exclusive; /* bits of access by which peers write: one transfer at a time may use such memory */
};

/** Counters of one user; writer: its owner. */
struct plx_reg_stat {
	uint64_t made;
	uint64_t hits, misses;
	uint64_t unfit;	  /* could not be kept: no private memory, or all that is kept is in use */
	uint64_t evicted; /* for others, or because memory was short */
	uint64_t gone;	  /* their memory was unmapped, moved or discarded */
};

/**
 * A queue begins to use the cache; the first one's bounds count.
 * @param n_max registrations that are kept at the most; 0: none are
 * @param len_max bytes of them in sum
 * @return 0, or -ENOMEM. Thread: control.
 */
int plx_reg_cache_open(uint32_t n_max, uint64_t len_max);
/** A queue has ended; the last one takes the cache with it. Thread: control. */
void plx_reg_cache_close(void);
/** A domain ends. Thread: any. */
void plx_reg_cache_forget(const struct plx_reg_domain *domain);
/** Give back what is gone. Thread: any. */
void plx_reg_cache_control(struct plx_reg_stat *stat);

/**
 * Memory, registered in a domain.
 * @param access bits that it needs at the least
 * @return NULL: errno says why. Thread: any.
 */
struct plx_reg *plx_reg_get(const struct plx_reg_domain *domain, void *addr, size_t len, int access,
	struct plx_reg_stat *stat);
/** It is not used any more. Accepts NULL. Thread: any. */
void plx_reg_put(struct plx_reg *reg);
/** The same, and peers that have its key may not use it from now on. Thread: any. */
void plx_reg_revoke(struct plx_reg *reg);
/** @return what the domain's hook returned. */
void *plx_reg_handle(const struct plx_reg *reg);

/** As the domain's hook, which the caller undoes itself, after the cache made room if the system is short of it. */
void *plx_reg_raw(const struct plx_reg_domain *domain, void *addr, size_t len, int access);

#endif
