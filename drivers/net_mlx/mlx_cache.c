/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cache.c - registrations of private memory that are kept for the next transfer
 *
 * Design notes
 * The list has one reference to each registration in it, and each transfer one. The last one to let
 * go gives it back to the device. The watch, which may neither allocate nor free, moves those
 * whose memory is gone to another list, for the next owner of a queue that comes by.
 *
 * Owners do not wait for the lock. He who does not get it registers for his transfer alone.
 *
 * What peers may write is used by one transfer at a time, so that it can be revoked.
 *
 * A registration is watched after it was made: its memory is in use by a transfer meanwhile,
 * and a program that unmaps or discards it then has lost its data anyway.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "mlx_cache.h"
#include "mlx_glue.h"
#include "mlx_int.h"
#include "mlx_watch.h"

#define LOOK_BACK 16 /* registrations that begin before an address, of which one may hold it */

TAILQ_HEAD(mr_list, mlx_mr);

struct mlx_mr {
	const struct mlx_port *port;
	struct ibv_mr *ibv;
	int access;	       /* enum ibv_access_flags */
	_Atomic uint32_t refs; /* transfers, and the list */
	struct mr_list *in;    /* of the cache's; NULL: none. Under the lock */
	TAILQ_ENTRY(mlx_mr) link;
};

static struct {
	struct mlx_watch watch;	 /* its lock guards all below */
	pthread_mutex_t users_lock;
	uint32_t n_users;	 /* queues; under users_lock */
	_Atomic bool on;
	struct mlx_mr **at;	 /* by address */
	uint32_t n, n_max;
	uint64_t len, len_max;	 /* bytes */
	struct mr_list used;	 /* the same; those used last are first */
	struct mr_list gone;	 /* their memory is */
	_Atomic uint32_t n_gone, n_shrunk; /* since they were counted last */
} cache = {.watch = {.lock = PTHREAD_MUTEX_INITIALIZER}, .users_lock = PTHREAD_MUTEX_INITIALIZER,
	.used = TAILQ_HEAD_INITIALIZER(cache.used), .gone = TAILQ_HEAD_INITIALIZER(cache.gone)};

static uintptr_t
begin_of(const struct mlx_mr *mr)
{
	return (uintptr_t)mr->ibv->addr;
}

static uintptr_t
end_of(const struct mlx_mr *mr)
{
	return begin_of(mr) + mr->ibv->length;
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
is_idle(const struct mlx_mr *mr)
{
	/* alone: only who has the lock makes it more */
	return atomic_load_explicit(&mr->refs, memory_order_relaxed) == 1;
}

/* @return how many begin at addr or before it */
static uint32_t
n_before(uintptr_t addr)
{
	uint32_t low = 0, high = cache.n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (begin_of(cache.at[mid]) <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct mlx_mr *
find(const struct mlx_port *port, uintptr_t addr, size_t len, int access)
{
	uint32_t i = n_before(addr), least = i > LOOK_BACK ? i - LOOK_BACK : 0;

	while (i-- > least) {
		struct mlx_mr *mr = cache.at[i];

		if (mr->port == port && (mr->access & access) == access &&
			(is_idle(mr) || !(mr->access & IBV_ACCESS_REMOTE_WRITE)) &&
			addr - begin_of(mr) <= mr->ibv->length &&
			len <= mr->ibv->length - (addr - begin_of(mr)))
			return mr;
	}
	return NULL;
}

static void
unlist(struct mlx_mr *mr, struct mr_list *to)
{
	TAILQ_REMOVE(&cache.used, mr, link);
	TAILQ_INSERT_TAIL(to, mr, link);
	mr->in = to == &cache.gone ? to : NULL;
	cache.len -= mr->ibv->length;
}

static void
gone_take(struct mr_list *to)
{
	struct mlx_mr *mr;

	TAILQ_FOREACH(mr, &cache.gone, link)
		mr->in = NULL;
	TAILQ_CONCAT(to, &cache.gone, link);
}

static void
on_gone(uintptr_t from, uintptr_t to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cache.n; i++) {
		struct mlx_mr *mr = cache.at[i];

		if (page_down(begin_of(mr)) >= to || page_up(end_of(mr)) <= from) {
			cache.at[n++] = mr;
			continue;
		}
		unlist(mr, &cache.gone);
		atomic_fetch_add_explicit(&cache.n_gone, 1, memory_order_relaxed);
	}
	cache.n = n;
}

/* Of the pages in [from, to), those of no other registration. */
static void
unwatch(uintptr_t from, uintptr_t to)
{
	for (uint32_t i = 0; i < cache.n && from < to; i++) {
		uintptr_t begin = page_down(begin_of(cache.at[i])), end = page_up(end_of(cache.at[i]));

		if (end <= from || begin >= to)
			continue;
		if (begin > from)
			mlx_watch_del(&cache.watch, from, begin);
		from = end;
	}
	if (from < to)
		mlx_watch_del(&cache.watch, from, to);
}

static void
evict(struct mlx_mr *mr, struct mr_list *to)
{
	uint32_t i = n_before(begin_of(mr));

	while (cache.at[--i] != mr)
		;
	memmove(&cache.at[i], &cache.at[i + 1], (--cache.n - i) * sizeof(cache.at[0]));
	unlist(mr, to);
	unwatch(page_down(begin_of(mr)), page_up(end_of(mr)));
}

/* @return one that nobody uses, not used for longest; NULL: none */
static struct mlx_mr *
oldest_idle(void)
{
	struct mlx_mr *mr;

	TAILQ_FOREACH_REVERSE(mr, &cache.used, mr_list, link)
		if (is_idle(mr))
			break;
	return mr;
}

static bool
make_room(size_t len, struct mr_list *evicted)
{
	while (cache.n == cache.n_max || len > cache.len_max - cache.len) {
		struct mlx_mr *mr = oldest_idle();

		if (mr == NULL)
			return false;
		evict(mr, evicted);
	}
	return true;
}

static int
list(struct mlx_mr *mr, struct mr_list *evicted)
{
	uint32_t i;
	int rc;

	if (!make_room(mr->ibv->length, evicted))
		return -ENOSPC;
	rc = mlx_watch_add(&cache.watch, page_down(begin_of(mr)), page_up(end_of(mr)));
	if (rc != 0)
		return rc;
	i = n_before(begin_of(mr));
	memmove(&cache.at[i + 1], &cache.at[i], (cache.n++ - i) * sizeof(cache.at[0]));
	cache.at[i] = mr;
	cache.len += mr->ibv->length;
	TAILQ_INSERT_HEAD(&cache.used, mr, link);
	mr->in = &cache.used;
	atomic_fetch_add_explicit(&mr->refs, 1, memory_order_relaxed);
	return 0;
}

/* -- without the lock -- */

static uint32_t
put_all(struct mr_list *l)
{
	struct mlx_mr *mr;
	uint32_t n = 0;

	while ((mr = TAILQ_FIRST(l)) != NULL) {
		TAILQ_REMOVE(l, mr, link);
		mlx_mr_put(mr);
		n++;
	}
	return n;
}

/* Those of one port, or all; used or not. */
static void
drop(const struct mlx_port *port)
{
	struct mr_list out = TAILQ_HEAD_INITIALIZER(out);
	struct mlx_mr *mr, *next;

	pthread_mutex_lock(&cache.watch.lock);
	for (mr = TAILQ_FIRST(&cache.used); mr != NULL; mr = next) {
		next = TAILQ_NEXT(mr, link);
		if (port == NULL || mr->port == port)
			evict(mr, &out);
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
	rc = mlx_watch_open(&cache.watch, on_gone);
	if (rc != 0) {
		free(cache.at);
		PLX_LOG(INFO, mlx, "memory can't be watched, no registration is kept: error %d", -rc);
		return 0;
	}
	atomic_store_explicit(&cache.on, true, memory_order_release); /* pairs with mlx_mr_get() */
	return 0;
}

int
mlx_cache_open(uint32_t n_max, uint64_t len_max)
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
mlx_cache_close(void)
{
	pthread_mutex_lock(&cache.users_lock);
	if (--cache.n_users == 0 && atomic_load_explicit(&cache.on, memory_order_relaxed)) {
		atomic_store_explicit(&cache.on, false, memory_order_relaxed);
		drop(NULL);
		mlx_watch_close(&cache.watch);
		free(cache.at);
	}
	pthread_mutex_unlock(&cache.users_lock);
}

void
mlx_cache_forget(const struct mlx_port *port)
{
	drop(port);
}

/* Everything that nobody uses. @return whether there was something */
static bool
shrink(void)
{
	struct mr_list out = TAILQ_HEAD_INITIALIZER(out);
	struct mlx_mr *mr;

	pthread_mutex_lock(&cache.watch.lock);
	while ((mr = oldest_idle()) != NULL) {
		evict(mr, &out);
		atomic_fetch_add_explicit(&cache.n_shrunk, 1, memory_order_relaxed);
	}
	gone_take(&out);
	pthread_mutex_unlock(&cache.watch.lock);
	return put_all(&out) > 0;
}

struct ibv_mr *
mlx_reg(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	do {
		errno = 0;
		mr = mlx_glue.reg_mr(pd, addr, len, access);
	} while (mr == NULL && errno == ENOMEM && shrink());
	return mr;
}

static struct mlx_mr *
mr_make(const struct mlx_port *port, void *addr, size_t len, int access, struct mlx_stat *stat)
{
	struct mlx_mr *mr = malloc(sizeof(*mr));

	if (mr == NULL)
		return NULL;
	mr->port = port;
	mr->access = access;
	mr->in = NULL;
	atomic_init(&mr->refs, 1);
	mr->ibv = mlx_reg(port->pd, addr, len, access);
	if (mr->ibv != NULL) {
		PLX_STAT_INC(stat->mem_regs);
		return mr;
	}
	free(mr);
	return NULL;
}

static void
keep(struct mlx_mr *mr, struct mlx_stat *stat)
{
	struct mr_list out = TAILQ_HEAD_INITIALIZER(out);
	int rc = -EINVAL;

	if (mlx_watch_can(&cache.watch, mr->ibv->addr, mr->ibv->length) &&
		pthread_mutex_trylock(&cache.watch.lock) == 0) {
		rc = list(mr, &out);
		pthread_mutex_unlock(&cache.watch.lock);
	}
	if (rc != 0)
		PLX_STAT_INC(stat->cache_unfit);
	PLX_STAT_ADD(stat->cache_evicted, put_all(&out));
}

static struct mlx_mr *
look(const struct mlx_port *port, uintptr_t addr, size_t len, int access)
{
	struct mlx_mr *mr;

	if (pthread_mutex_trylock(&cache.watch.lock) != 0)
		return NULL;
	mr = find(port, addr, len, access);
	if (mr != NULL && !mlx_watch_quiet(&cache.watch))
		mr = NULL;
	if (mr != NULL) {
		atomic_fetch_add_explicit(&mr->refs, 1, memory_order_relaxed);
		TAILQ_REMOVE(&cache.used, mr, link);
		TAILQ_INSERT_HEAD(&cache.used, mr, link);
	}
	pthread_mutex_unlock(&cache.watch.lock);
	return mr;
}

struct mlx_mr *
mlx_mr_get(const struct mlx_port *port, void *addr, size_t len, int access, struct mlx_stat *stat)
{
	struct mlx_mr *mr;

	/* pairs with cache_start() */
	if (!atomic_load_explicit(&cache.on, memory_order_acquire))
		return mr_make(port, addr, len, access, stat);
	mr = look(port, (uintptr_t)addr, len, access);
	if (mr != NULL) {
		PLX_STAT_INC(stat->cache_hits);
		return mr;
	}
	PLX_STAT_INC(stat->cache_misses);
	mr = mr_make(port, addr, len, access, stat);
	if (mr != NULL)
		keep(mr, stat);
	return mr;
}

void
mlx_mr_put(struct mlx_mr *mr)
{
	/* each release pairs with the acquire of the last */
	if (mr == NULL || atomic_fetch_sub_explicit(&mr->refs, 1, memory_order_acq_rel) != 1)
		return;
	mlx_glue.dereg_mr(mr->ibv);
	free(mr);
}

void
mlx_mr_revoke(struct mlx_mr *mr)
{
	struct mr_list out = TAILQ_HEAD_INITIALIZER(out);

	pthread_mutex_lock(&cache.watch.lock);
	if (mr->in == &cache.used)
		evict(mr, &out);
	else if (mr->in == &cache.gone)
		gone_take(&out);
	pthread_mutex_unlock(&cache.watch.lock);
	put_all(&out);
	mlx_mr_put(mr);
}

const struct ibv_mr *
mlx_mr_ibv(const struct mlx_mr *mr)
{
	return mr->ibv;
}

void
mlx_cache_control(struct mlx_stat *stat)
{
	struct mr_list out = TAILQ_HEAD_INITIALIZER(out);

	/* each alone: seen late it is taken the next time */
	if (atomic_load_explicit(&cache.n_shrunk, memory_order_relaxed) != 0)
		PLX_STAT_ADD(stat->cache_evicted,
			atomic_exchange_explicit(&cache.n_shrunk, 0, memory_order_relaxed));
	if (atomic_load_explicit(&cache.n_gone, memory_order_relaxed) == 0 ||
		pthread_mutex_trylock(&cache.watch.lock) != 0)
		return;
	gone_take(&out);
	PLX_STAT_ADD(stat->cache_gone,
		atomic_exchange_explicit(&cache.n_gone, 0, memory_order_relaxed));
	pthread_mutex_unlock(&cache.watch.lock);
	put_all(&out);
}

/* The registrations are the parent's, and so is the thread that watches their memory. */
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

RTE_INIT(mlx_cache_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
