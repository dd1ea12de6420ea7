/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reg_cache.c - registrations of private memory that are kept for the next transfer
 *
 * Design notes
 * - The list has one reference to each registration in it, and each transfer one. The last one to
 *   drop it deregisters. The watch, which may neither allocate nor free, moves those of unmapped
 *   memory to another list, for the next owner of a queue.
 * - Owners do not wait for the lock. Without it an owner registers for its transfer alone.
 * - Memory that peers may write is used by one transfer at a time, so that it can be revoked.
 * - A registration is watched after it was made: a transfer uses its memory meanwhile, and a
 *   program that unmaps or discards it then has lost its data anyway.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "plx_reg_cache.h"
#include "plx_stat.h"
#include "plx_watch.h"

#include "mem_int.h"

#define LOOK_BACK 16 /* registrations before an address, one of which may contain it */

TAILQ_HEAD(reg_list, plx_reg);

struct plx_reg {
	const struct plx_reg_domain *domain;
	void *handle;	       /* the domain's */
	uintptr_t addr;
	size_t len;	       /* bytes */
	int access;	       /* the domain's bits */
	_Atomic uint32_t refs; /* transfers, and the list */
	struct reg_list *in;   /* of the cache's; NULL: none. Under the lock */
	TAILQ_ENTRY(plx_reg) link;
};

static struct {
	struct plx_watch watch;	 /* its lock guards all below */
	pthread_mutex_t users_lock;
	uint32_t n_users;	 /* queues; under users_lock */
	_Atomic bool on;
	struct plx_reg **at;	 /* by address */
	uint32_t n, n_max;
	uint64_t len, len_max;	 /* bytes */
	struct reg_list used;	 /* the same; those used last are first */
	struct reg_list gone;	 /* of unmapped memory */
	_Atomic uint32_t n_gone, n_shrunk; /* since the last count */
} cache = {.watch = {.lock = PTHREAD_MUTEX_INITIALIZER}, .users_lock = PTHREAD_MUTEX_INITIALIZER,
	.used = TAILQ_HEAD_INITIALIZER(cache.used), .gone = TAILQ_HEAD_INITIALIZER(cache.gone)};

static uintptr_t
end_of(const struct plx_reg *reg)
{
	return reg->addr + reg->len;
}

static uintptr_t
page_down(uintptr_t addr)
{
	return addr & ~(uintptr_t)(cache.watch.page - 1);
}

static uintptr_t
page_up(uintptr_t addr)
{
	return page_down(addr + cache.watch.page - 1);
}

/* -- called with the lock: nothing is allocated, freed or logged -- */

static bool
is_idle(const struct plx_reg *reg)
{
	/* alone: only the owner of the lock increments it */
	return atomic_load_explicit(&reg->refs, memory_order_relaxed) == 1;
}

/* @return the number of entries that begin at addr or before */
static uint32_t
n_before(uintptr_t addr)
{
	uint32_t low = 0, high = cache.n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (cache.at[mid]->addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct plx_reg *
find(const struct plx_reg_domain *domain, uintptr_t addr, size_t len, int access)
{
	uint32_t i = n_before(addr), least = i > LOOK_BACK ? i - LOOK_BACK : 0;

	while (i-- > least) {
		struct plx_reg *reg = cache.at[i];

		if (reg->domain == domain && (reg->access & access) == access &&
			(is_idle(reg) || !(reg->access & domain->exclusive)) &&
			addr - reg->addr <= reg->len &&
			len <= reg->len - (addr - reg->addr))
			return reg;
	}
	return NULL;
}

static void
unlist(struct plx_reg *reg, struct reg_list *to)
{
	TAILQ_REMOVE(&cache.used, reg, link);
	TAILQ_INSERT_TAIL(to, reg, link);
	reg->in = to == &cache.gone ? to : NULL;
	cache.len -= reg->len;
}

static void
gone_take(struct reg_list *to)
{
	struct plx_reg *reg;

	TAILQ_FOREACH(reg, &cache.gone, link)
		reg->in = NULL;
	TAILQ_CONCAT(to, &cache.gone, link);
}

static void
on_gone(uintptr_t from, uintptr_t to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cache.n; i++) {
		struct plx_reg *reg = cache.at[i];

		if (page_down(reg->addr) >= to || page_up(end_of(reg)) <= from) {
			cache.at[n++] = reg;
			continue;
		}
		unlist(reg, &cache.gone);
		atomic_fetch_add_explicit(&cache.n_gone, 1, memory_order_relaxed);
	}
	cache.n = n;
}

/* The pages in [from, to) that no other registration has. */
static void
unwatch(uintptr_t from, uintptr_t to)
{
	for (uint32_t i = 0; i < cache.n && from < to; i++) {
		uintptr_t begin = page_down(cache.at[i]->addr), end = page_up(end_of(cache.at[i]));

		if (end <= from || begin >= to)
			continue;
		if (begin > from)
			plx_watch_del(&cache.watch, from, begin);
		from = end;
	}
	if (from < to)
		plx_watch_del(&cache.watch, from, to);
}

static void
evict(struct plx_reg *reg, struct reg_list *to)
{
	uint32_t i = n_before(reg->addr);

	while (cache.at[--i] != reg)
		;
	memmove(&cache.at[i], &cache.at[i + 1], (--cache.n - i) * sizeof(cache.at[0]));
	unlist(reg, to);
	unwatch(page_down(reg->addr), page_up(end_of(reg)));
}

/* @return the least recently used idle one; NULL: none */
static struct plx_reg *
oldest_idle(void)
{
	struct plx_reg *reg;

	TAILQ_FOREACH_REVERSE(reg, &cache.used, reg_list, link)
		if (is_idle(reg))
			break;
	return reg;
}

static bool
make_room(size_t len, struct reg_list *evicted)
{
	while (cache.n == cache.n_max || len > cache.len_max - cache.len) {
		struct plx_reg *reg = oldest_idle();

		if (reg == NULL)
			return false;
		evict(reg, evicted);
	}
	return true;
}

static int
list(struct plx_reg *reg, struct reg_list *evicted)
{
	uint32_t i;
	int rc;

	if (!make_room(reg->len, evicted))
		return -ENOSPC;
	rc = plx_watch_add(&cache.watch, page_down(reg->addr), page_up(end_of(reg)));
	if (rc != 0)
		return rc;
	i = n_before(reg->addr);
	memmove(&cache.at[i + 1], &cache.at[i], (cache.n++ - i) * sizeof(cache.at[0]));
	cache.at[i] = reg;
	cache.len += reg->len;
	TAILQ_INSERT_HEAD(&cache.used, reg, link);
	reg->in = &cache.used;
	atomic_fetch_add_explicit(&reg->refs, 1, memory_order_relaxed);
	return 0;
}

/* -- without the lock -- */

static uint32_t
put_all(struct reg_list *l)
{
	struct plx_reg *reg;
	uint32_t n = 0;

	while ((reg = TAILQ_FIRST(l)) != NULL) {
		TAILQ_REMOVE(l, reg, link);
		plx_reg_put(reg);
		n++;
	}
	return n;
}

/* The registrations of one domain, or all; in use or not. */
static void
drop(const struct plx_reg_domain *domain)
{
	struct reg_list out = TAILQ_HEAD_INITIALIZER(out);
	struct plx_reg *reg, *next;

	pthread_mutex_lock(&cache.watch.lock);
	for (reg = TAILQ_FIRST(&cache.used); reg != NULL; reg = next) {
		next = TAILQ_NEXT(reg, link);
		if (domain == NULL || reg->domain == domain)
			evict(reg, &out);
	}
	gone_take(&out);
	pthread_mutex_unlock(&cache.watch.lock);
	put_all(&out);
}

/* Called with users_lock. */
static int
cache_start(uint32_t n_max, uint64_t len_max)
{
	int rc;

	if (n_max == 0 || len_max == 0)
		return 0;
	cache.at = malloc(n_max * sizeof(cache.at[0]));
	if (cache.at == NULL)
		return -ENOMEM;
	cache.n_max = n_max;
	cache.len_max = len_max;
	cache.n_gone = cache.n_shrunk = 0;
	rc = plx_watch_open(&cache.watch, on_gone);
	if (rc != 0) {
		free(cache.at);
		PLX_LOG(INFO, mem, "memory can't be watched, so registrations are not cached: error %d", -rc);
		return 0;
	}
	atomic_store_explicit(&cache.on, true, memory_order_release); /* pairs with plx_reg_get() */
	return 0;
}

int
plx_reg_cache_open(uint32_t n_max, uint64_t len_max)
{
	int rc = 0;

	pthread_mutex_lock(&cache.users_lock);
	if (cache.n_users == 0)
		rc = cache_start(n_max, len_max);
	cache.n_users += rc == 0;
	pthread_mutex_unlock(&cache.users_lock);
	return rc;
}

void
plx_reg_cache_close(void)
{
	pthread_mutex_lock(&cache.users_lock);
	if (--cache.n_users == 0 && atomic_load_explicit(&cache.on, memory_order_relaxed)) {
		atomic_store_explicit(&cache.on, false, memory_order_relaxed);
		drop(NULL);
		plx_watch_close(&cache.watch);
		free(cache.at);
	}
	pthread_mutex_unlock(&cache.users_lock);
}

void
plx_reg_cache_forget(const struct plx_reg_domain *domain)
{
	drop(domain);
}

/* All idle ones. @return whether there was one */
static bool
shrink(void)
{
	struct reg_list out = TAILQ_HEAD_INITIALIZER(out);
	struct plx_reg *reg;

	pthread_mutex_lock(&cache.watch.lock);
	while ((reg = oldest_idle()) != NULL) {
		evict(reg, &out);
		atomic_fetch_add_explicit(&cache.n_shrunk, 1, memory_order_relaxed);
	}
	gone_take(&out);
	pthread_mutex_unlock(&cache.watch.lock);
	return put_all(&out) > 0;
}

void *
plx_reg_raw(const struct plx_reg_domain *domain, void *addr, size_t len, int access)
{
	void *handle;

	do {
		errno = 0;
		handle = domain->reg(domain, addr, len, access);
	} while (handle == NULL && errno == ENOMEM && shrink());
	return handle;
}

static struct plx_reg *
reg_make(const struct plx_reg_domain *domain, void *addr, size_t len, int access, struct plx_reg_stat *stat)
{
	struct plx_reg *reg = malloc(sizeof(*reg));

	if (reg == NULL)
		return NULL;
	reg->domain = domain;
	reg->addr = (uintptr_t)addr;
	reg->len = len;
	reg->access = access;
	reg->in = NULL;
	atomic_init(&reg->refs, 1);
	reg->handle = plx_reg_raw(domain, addr, len, access);
	if (reg->handle != NULL) {
		PLX_STAT_INC(stat->made);
		return reg;
	}
	free(reg);
	return NULL;
}

static void
keep(struct plx_reg *reg, struct plx_reg_stat *stat)
{
	struct reg_list out = TAILQ_HEAD_INITIALIZER(out);
	int rc = -EINVAL;

	if (plx_watch_can(&cache.watch, (const void *)reg->addr, reg->len) &&
		pthread_mutex_trylock(&cache.watch.lock) == 0) {
		rc = list(reg, &out);
		pthread_mutex_unlock(&cache.watch.lock);
	}
	if (rc != 0)
		PLX_STAT_INC(stat->unfit);
	PLX_STAT_ADD(stat->evicted, put_all(&out));
}

static struct plx_reg *
look(const struct plx_reg_domain *domain, uintptr_t addr, size_t len, int access)
{
	struct plx_reg *reg;

	if (pthread_mutex_trylock(&cache.watch.lock) != 0)
		return NULL;
	reg = find(domain, addr, len, access);
	if (reg != NULL && !plx_watch_quiet(&cache.watch))
		reg = NULL;
	if (reg != NULL) {
		atomic_fetch_add_explicit(&reg->refs, 1, memory_order_relaxed);
		TAILQ_REMOVE(&cache.used, reg, link);
		TAILQ_INSERT_HEAD(&cache.used, reg, link);
	}
	pthread_mutex_unlock(&cache.watch.lock);
	return reg;
}

struct plx_reg *
plx_reg_get(const struct plx_reg_domain *domain, void *addr, size_t len, int access, struct plx_reg_stat *stat)
{
	struct plx_reg *reg;

	/* pairs with cache_start() */
	if (!atomic_load_explicit(&cache.on, memory_order_acquire))
		return reg_make(domain, addr, len, access, stat);
	reg = look(domain, (uintptr_t)addr, len, access);
	if (reg != NULL) {
		PLX_STAT_INC(stat->hits);
		return reg;
	}
	PLX_STAT_INC(stat->misses);
	reg = reg_make(domain, addr, len, access, stat);
	if (reg != NULL)
		keep(reg, stat);
	return reg;
}

void
plx_reg_put(struct plx_reg *reg)
{
	/* each release pairs with the acquire of the last */
	if (reg == NULL || atomic_fetch_sub_explicit(&reg->refs, 1, memory_order_acq_rel) != 1)
		return;
	reg->domain->dereg(reg->handle);
	free(reg);
}

void
plx_reg_revoke(struct plx_reg *reg)
{
	struct reg_list out = TAILQ_HEAD_INITIALIZER(out);

	pthread_mutex_lock(&cache.watch.lock);
	if (reg->in == &cache.used)
		evict(reg, &out);
	else if (reg->in == &cache.gone)
		gone_take(&out);
	pthread_mutex_unlock(&cache.watch.lock);
	put_all(&out);
	plx_reg_put(reg);
}

void *
plx_reg_handle(const struct plx_reg *reg)
{
	return reg->handle;
}

void
plx_reg_cache_control(struct plx_reg_stat *stat)
{
	struct reg_list out = TAILQ_HEAD_INITIALIZER(out);

	/* each alone: a value seen late is counted the next time */
	if (atomic_load_explicit(&cache.n_shrunk, memory_order_relaxed) != 0)
		PLX_STAT_ADD(stat->evicted,
			atomic_exchange_explicit(&cache.n_shrunk, 0, memory_order_relaxed));
	if (atomic_load_explicit(&cache.n_gone, memory_order_relaxed) == 0 ||
		pthread_mutex_trylock(&cache.watch.lock) != 0)
		return;
	gone_take(&out);
	PLX_STAT_ADD(stat->gone,
		atomic_exchange_explicit(&cache.n_gone, 0, memory_order_relaxed));
	pthread_mutex_unlock(&cache.watch.lock);
	put_all(&out);
}

/* The registrations belong to the parent, and so does the thread that watches their memory. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&cache.watch.lock, NULL);
	pthread_mutex_init(&cache.users_lock, NULL);
	atomic_store_explicit(&cache.on, false, memory_order_relaxed);
	cache.n_users = cache.n = 0;
	cache.len = 0;
	TAILQ_INIT(&cache.used);
	TAILQ_INIT(&cache.gone);
}

RTE_INIT(plx_reg_cache_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
