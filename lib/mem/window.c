/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * window.c - the table of segments that peers may map, ours and those of peers
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plx_log.h"

#include "mem_int.h"
#include "plx_window.h"

#define TABLE_MAGIC 0x3157444e58584c50ull /* "PLXXNDW1" */

/* A segment in the table; every word is written and read by itself. */
struct window {
	_Atomic uint64_t base; /* in the owner's process; 0: no segment */
	_Atomic uint64_t len;  /* bytes */
	_Atomic uint64_t ino;
	_Atomic uint64_t fd;
};

struct table {
	_Atomic uint64_t magic;
	_Atomic uint64_t version; /* odd while it changes; writer: owner */
	struct window w[PLX_WINDOW_MAX];
};

/* Of this process. */
static struct {
	pthread_mutex_t lock;
	struct plx_seg seg; /* the table */
	pid_t pid;	    /* whose it is: a forked child makes its own */
	uint32_t refs;	    /* holders and segments */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t
word(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

static void
set(_Atomic uint64_t *p, uint64_t v)
{
	atomic_store_explicit(p, v, memory_order_relaxed);
}

/* The following are called with the lock held. */

static bool
table_is_held(void)
{
	return own.refs > 0 && own.pid == getpid();
}

static int
table_hold(void)
{
	struct table *t;
	int rc;

	if (table_is_held()) {
		own.refs++;
		return 0;
	}
	plx_seg_destroy(&own.seg); /* the parent's, as it was inherited */
	rc = plx_seg_create(&own.seg, NULL, sizeof(*t), false);
	if (rc != 0) {
		own.refs = 0;
		return rc;
	}
	t = own.seg.base;
	set(&t->magic, TABLE_MAGIC);
	own.pid = getpid();
	own.refs = 1;
	return 0;
}

static void
table_drop(void)
{
	if (table_is_held() && --own.refs == 0)
		plx_seg_destroy(&own.seg);
}

int
plx_window_table_get(struct plx_seg_name *out)
{
	int rc;

	pthread_mutex_lock(&own.lock);
	rc = table_hold();
	if (rc == 0) {
		rc = plx_seg_name(&own.seg, out);
		if (rc != 0)
			table_drop();
	}
	pthread_mutex_unlock(&own.lock);
	return rc;
}

void
plx_window_table_put(void)
{
	pthread_mutex_lock(&own.lock);
	table_drop();
	pthread_mutex_unlock(&own.lock);
}

static void
table_begin(struct table *t)
{
	set(&t->version, word(&t->version) + 1);
	/* pairs with the fence in table_copy(): who saw a word of the change sees the odd version */
	atomic_thread_fence(memory_order_release);
}

static void
table_end(struct table *t)
{
	/* pairs with the acquire in plx_windows_find() */
	atomic_store_explicit(&t->version, word(&t->version) + 1, memory_order_release);
}

/* @return the first place with this base, 0: a free one; or NULL */
static struct window *
place_of(struct table *t, uint64_t base)
{
	for (unsigned i = 0; i < PLX_WINDOW_MAX; i++)
		if (word(&t->w[i].base) == base)
			return &t->w[i];
	return NULL;
}

static void
place_set(struct table *t, struct window *w, uint64_t base, const struct plx_seg_name *name)
{
	table_begin(t);
	set(&w->base, base);
	set(&w->len, name->len);
	set(&w->ino, name->ino);
	set(&w->fd, name->fd);
	table_end(t);
}

void
plx_window_add(const struct plx_seg *seg)
{
	struct plx_seg_name name;
	struct window *w = NULL;

	if (plx_seg_name(seg, &name) != 0)
		return;
	pthread_mutex_lock(&own.lock);
	if (table_hold() == 0) {
		w = place_of(own.seg.base, 0);
		if (w != NULL)
			place_set(own.seg.base, w, (uintptr_t)seg->base, &name);
		else
			table_drop();
	}
	pthread_mutex_unlock(&own.lock);
	if (w == NULL)
		PLX_LOG(DEBUG, mem, "segment %p is not listed for peers", seg->base);
}

void
plx_window_remove(const struct plx_seg *seg)
{
	const struct plx_seg_name none = {.len = 0};
	struct window *w = NULL;

	if (seg->base == NULL)
		return;
	pthread_mutex_lock(&own.lock);
	if (table_is_held())
		w = place_of(own.seg.base, (uintptr_t)seg->base);
	if (w != NULL) {
		place_set(own.seg.base, w, 0, &none);
		table_drop();
	}
	pthread_mutex_unlock(&own.lock);
}

/* One of a peer's segments. */
struct mapped {
	uint64_t base, len, ino;
	uint32_t fd;
	bool refused; /* it can't be mapped: not tried again */
	struct plx_map *map;
};

struct plx_windows {
	struct plx_windows_last last; /* first: plx_windows_find() */
	struct plx_proc proc;
	struct plx_map *map;
	const struct table *table;
	uint32_t n;
	struct mapped *w;
};

int
plx_windows_open(const struct plx_seg_name *name, struct plx_windows **out)
{
	struct plx_windows *w;
	int rc;

	if (name->len < sizeof(struct table))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	rc = plx_map_get(name, false, &w->map);
	if (rc == 0) {
		w->table = plx_map_base(w->map);
		if (word(&w->table->magic) == TABLE_MAGIC) {
			w->proc = name->proc;
			w->last.version = &w->table->version;
			*out = w;
			return 0;
		}
		plx_map_put(w->map);
		rc = -EINVAL;
	}
	free(w);
	return rc;
}

static void
mapped_free(struct mapped *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		plx_map_put(w[i].map);
	free(w);
}

void
plx_windows_close(struct plx_windows *w)
{
	if (w == NULL)
		return;
	mapped_free(w->w, w->n);
	plx_map_put(w->map);
	free(w);
}

/* @return how many segments were copied to `to`, or -1: the table changes just now */
static int
table_copy(const struct table *t, uint64_t version, struct mapped *to)
{
	int n = 0;

	for (unsigned i = 0; i < PLX_WINDOW_MAX; i++) {
		struct mapped m = {.base = word(&t->w[i].base), .len = word(&t->w[i].len),
			.ino = word(&t->w[i].ino), .fd = (uint32_t)word(&t->w[i].fd)};

		if (m.len != 0 && m.base <= UINT64_MAX - m.len)
			to[n++] = m;
	}
	/* pairs with the fence in table_begin() */
	atomic_thread_fence(memory_order_acquire);
	return version % 2 == 0 && word(&t->version) == version ? n : -1;
}

/* Learn the table as it is now, and keep what is mapped and still listed. */
static bool
renew(struct plx_windows *w, uint64_t version)
{
	struct mapped now[PLX_WINDOW_MAX], *list = NULL;
	int n = table_copy(w->table, version, now);

	if (n < 0 || (n > 0 && (list = calloc(n, sizeof(*list))) == NULL))
		return false;
	for (int i = 0; i < n; i++) {
		list[i] = now[i];
		for (uint32_t k = 0; k < w->n; k++) {
			struct mapped *old = &w->w[k];

			if (old->base == now[i].base && old->len == now[i].len &&
				old->ino == now[i].ino && old->fd == now[i].fd) {
				list[i].map = old->map;
				list[i].refused = old->refused;
				old->map = NULL;
			}
		}
	}
	mapped_free(w->w, w->n);
	w->w = list;
	w->n = n;
	w->last.seen = version;
	w->last.len = 0;
	return true;
}

void *
plx_windows_find_slow(struct plx_windows *w, uint64_t addr, uint64_t len)
{
	uint64_t version = atomic_load_explicit(&w->table->version, memory_order_acquire);

	if (version != w->last.seen && !renew(w, version))
		return NULL;
	for (uint32_t i = 0; i < w->n; i++) {
		struct mapped *m = &w->w[i];
		const struct plx_seg_name name = {.proc = w->proc, .fd = m->fd, .ino = m->ino,
			.len = m->len};

		if (!plx_window_has(m->base, m->len, addr, len))
			continue;
		if (m->map == NULL && (m->refused || plx_map_get(&name, true, &m->map) != 0)) {
			m->refused = true;
			return NULL;
		}
		w->last.base = m->base;
		w->last.len = m->len;
		w->last.here = plx_map_base(m->map);
		return w->last.here + (addr - m->base);
	}
	return NULL;
}
