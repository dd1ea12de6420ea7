/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * window.c - the table of segments that peers may map, ours and those of peers
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_log.h"

#include "mem_int.h"
#include "plx_meet.h"
#include "plx_window.h"

#define PAGE 4096u
#define TABLE_MAGIC 0x3357444e58584c50ull /* "PLXXNDW3" */

/* A segment in the table; every word is written and read by itself. */
struct window {
	_Atomic uint64_t base; /* in the owner's process; 0: no segment */
	_Atomic uint64_t len;  /* bytes */
	_Atomic uint64_t id;
	_Atomic uint64_t proof; /* derived from the token */
};

struct table {
	_Atomic uint64_t magic;
	_Atomic uint64_t version; /* odd while it changes; writer: owner */
	_Atomic uint64_t n; /* places ever used */
	struct window w[PLX_WINDOW_MAX];
};

/* Of this process. */
static struct {
	pthread_mutex_t lock;
	struct plx_seg seg; /* the table */
	pid_t pid;	    /* its owner: a forked child makes its own */
	uint32_t refs;	    /* holders and segments */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Atomic uint32_t plx_window_n; /* relaxed: a hint for those who send */

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

/* All processes that may map the segments read the table, and the token is for those with a key. */
static uint64_t
proof_of(uint64_t token)
{
	uint64_t h = (token ^ token >> 32) * 0xff51afd7ed558ccdull;

	return (h ^ h >> 29) & UINT64_MAX >> 8;
}

/* Called with the lock. */

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
	plx_seg_destroy(&own.seg); /* inherited from the parent */
	rc = plx_seg_create(&own.seg, NULL, sizeof(*t), false);
	if (rc != 0) {
		own.refs = 0;
		return rc;
	}
	t = own.seg.base;
	set(&t->magic, TABLE_MAGIC);
	(void)fcntl(own.seg.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE); /* peers only read; an old kernel can't say so */
	own.pid = getpid();
	own.refs = 1;
	return 0;
}

static void
table_drop(void)
{
	if (!table_is_held() || --own.refs > 0)
		return;
	/* The next one has the same name: those who have this one mapped yet see that it is not the one. */
	set(&((struct table *)own.seg.base)->magic, 0);
	plx_seg_destroy(&own.seg);
}

void
plx_window_table_of(const struct plx_proc *proc, struct plx_seg_name *out)
{
	*out = (struct plx_seg_name){.proc = *proc, .id = proc->id,
		.len = (sizeof(struct table) + PAGE - 1) / PAGE * PAGE};
}

int
plx_window_table_get(struct plx_seg_name *out)
{
	struct plx_proc self;
	int rc = plx_proc_self(&self);

	if (rc != 0)
		return rc;
	plx_window_table_of(&self, out);
	pthread_mutex_lock(&own.lock);
	rc = table_hold();
	if (rc == 0) {
		/* It names all segments: processes of this user have access anyway. */
		own.seg.id = out->id;
		rc = plx_meet_offer(out->id, (int[PLX_MEET_FDS]){own.seg.fd, -1, -1}, true);
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
	/* pairs with the fence in table_copy(): a reader that sees a word of the change
	 * sees the odd version */
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
	uint64_t n = word(&t->n);

	for (unsigned i = 0; i < n; i++)
		if (word(&t->w[i].base) == base)
			return &t->w[i];
	return base == 0 && n < PLX_WINDOW_MAX ? &t->w[n] : NULL;
}

static void
place_set(struct table *t, struct window *w, uint64_t base, const struct plx_seg_name *name,
	uint64_t proof)
{
	uint64_t i = w - t->w;

	table_begin(t);
	if (i == word(&t->n))
		set(&t->n, i + 1);
	set(&w->proof, proof);
	set(&w->base, base);
	set(&w->len, name->len);
	set(&w->id, name->id);
	table_end(t);
}

uint32_t
plx_window_add(const struct plx_seg *seg, uint64_t token)
{
	struct plx_seg_name name;
	struct window *w = NULL;
	uint32_t place = 0;

	if (plx_seg_name(seg, &name) != 0)
		return 0;
	pthread_mutex_lock(&own.lock);
	if (table_is_held())
		w = place_of(own.seg.base, (uintptr_t)seg->base);
	if (w == NULL && table_hold() == 0) {
		w = place_of(own.seg.base, 0);
		if (w != NULL) {
			place_set(own.seg.base, w, (uintptr_t)seg->base, &name, proof_of(token));
			atomic_fetch_add_explicit(&plx_window_n, 1, memory_order_relaxed);
		} else {
			table_drop();
		}
	}
	if (w != NULL)
		place = (uint32_t)(w - ((struct table *)own.seg.base)->w) + 1;
	pthread_mutex_unlock(&own.lock);
	if (place == 0)
		PLX_LOG(DEBUG, mem, "segment %p is not offered to peers", seg->base);
	return place;
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
		place_set(own.seg.base, w, 0, &none, 0);
		atomic_fetch_sub_explicit(&plx_window_n, 1, memory_order_relaxed);
		table_drop();
	}
	pthread_mutex_unlock(&own.lock);
}

/* One of a peer's segments. */
struct mapped {
	uint64_t base, len, id;
	bool refused; /* can't be mapped: not tried again */
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

static int
table_map(const struct plx_seg_name *name, struct plx_map **out)
{
	struct plx_map *map;
	int rc;

	if (name->len < sizeof(struct table))
		return -EINVAL;
	for (unsigned i = 0; i < 2; i++) { /* one that was known may be the owner's last */
		rc = plx_map_get(name, false, &map);
		if (rc != 0)
			return rc;
		if (word(&((const struct table *)plx_map_base(map))->magic) == TABLE_MAGIC) {
			*out = map;
			return 0;
		}
		plx_map_forget(map);
		plx_map_put(map);
	}
	return -EINVAL;
}

/* The peer may write anything there. @return the number of places to read */
static uint32_t
table_n(const struct table *t)
{
	uint64_t n = word(&t->n);

	return n < PLX_WINDOW_MAX ? n : PLX_WINDOW_MAX;
}

#define COPY_TRIES 1000 /* changes of the table before giving up */

/* @return whether the place was copied without a change meanwhile */
static bool
window_copy(const struct table *t, uint32_t place, struct mapped *to, uint64_t *proof)
{
	const struct window *w = &t->w[place - 1];

	for (unsigned i = 0; i < COPY_TRIES; i++) {
		/* pairs with the release in table_end() */
		uint64_t version = atomic_load_explicit(&t->version, memory_order_acquire);

		*to = (struct mapped){.base = word(&w->base), .len = word(&w->len),
			.id = word(&w->id)};
		*proof = word(&w->proof);
		/* pairs with the fence in table_begin() */
		atomic_thread_fence(memory_order_acquire);
		if (version % 2 == 0 && word(&t->version) == version)
			return true;
	}
	return false;
}

int
plx_window_map(const struct plx_seg_name *table, uint32_t place, uint64_t token, uint64_t base,
	uint64_t len, bool write, struct plx_map **out)
{
	struct plx_seg_name name = {.proc = table->proc};
	struct plx_map *map;
	struct mapped m;
	uint64_t proof;
	int rc;

	if (place == 0 || place > PLX_WINDOW_MAX)
		return -EINVAL;
	rc = table_map(table, &map);
	if (rc != 0)
		return rc;
	if (!window_copy(plx_map_base(map), place, &m, &proof) || m.base != base || m.len != len ||
		m.len == 0 || proof != proof_of(token))
		rc = -ESRCH;
	plx_map_put(map);
	if (rc != 0)
		return rc;
	name.id = m.id;
	name.len = m.len;
	return plx_map_get(&name, write, out);
}

int
plx_windows_open(const struct plx_seg_name *name, struct plx_windows **out)
{
	struct plx_windows *w = calloc(1, sizeof(*w));
	int rc;

	if (w == NULL)
		return -ENOMEM;
	rc = table_map(name, &w->map);
	if (rc != 0) {
		free(w);
		return rc;
	}
	w->table = plx_map_base(w->map);
	w->proc = name->proc;
	w->last.version = &w->table->version;
	*out = w;
	return 0;
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

/* @return the number of segments copied to `to`, or -1: the table is changing */
static int
table_copy(const struct table *t, uint64_t version, uint32_t places, struct mapped *to)
{
	int n = 0;

	for (unsigned i = 0; i < places; i++) {
		struct mapped m = {.base = word(&t->w[i].base), .len = word(&t->w[i].len),
			.id = word(&t->w[i].id)};

		if (m.len != 0 && m.base <= UINT64_MAX - m.len)
			to[n++] = m;
	}
	/* pairs with the fence in table_begin() */
	atomic_thread_fence(memory_order_acquire);
	return version % 2 == 0 && word(&t->version) == version ? n : -1;
}

static int
by_base(const void *a, const void *b)
{
	const struct mapped *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

/* Entries of both lists, each in the order of its bases, go to the new one as mapped. */
static void
keep(struct plx_windows *w, struct mapped *list, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct mapped *old;

		while (k < w->n && w->w[k].base < list[i].base)
			k++;
		if (k == w->n)
			return;
		old = &w->w[k];
		if (old->base == list[i].base && old->len == list[i].len && old->id == list[i].id) {
			list[i].map = old->map;
			list[i].refused = old->refused;
			old->map = NULL;
		}
	}
}

/* Read the present table, and keep what is mapped and still listed. */
static bool
renew(struct plx_windows *w, uint64_t version)
{
	uint32_t places = table_n(w->table);
	struct mapped *list = places > 0 ? calloc(places, sizeof(*list)) : NULL;
	int n = places > 0 && list == NULL ? -1 : table_copy(w->table, version, places, list);

	if (n < 0) {
		free(list);
		return false;
	}
	if (n > 0)
		qsort(list, n, sizeof(*list), by_base);
	keep(w, list, n);
	mapped_free(w->w, w->n);
	w->w = list;
	w->n = n;
	w->last.seen = version;
	w->last.len = 0;
	return true;
}

/* @return the last that begins at addr or before, or NULL */
static struct mapped *
find_at(const struct plx_windows *w, uint64_t addr)
{
	uint32_t from = 0, to = w->n;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (w->w[mid].base <= addr)
			from = mid + 1;
		else
			to = mid;
	}
	return from > 0 ? &w->w[from - 1] : NULL;
}

/* Remember the gap behind m, or before the first segment if m is NULL: it is in no segment. */
static void *
find_none(struct plx_windows *w, const struct mapped *m)
{
	const uint32_t next = m != NULL ? (uint32_t)(m - w->w) + 1 : 0;

	w->last.base = m != NULL ? m->base + m->len : 0;
	w->last.len = (next < w->n ? w->w[next].base : UINT64_MAX) - w->last.base;
	w->last.here = NULL;
	return NULL;
}

void *
plx_windows_find_slow(struct plx_windows *w, uint64_t addr, uint64_t *len)
{
	uint64_t version = atomic_load_explicit(&w->table->version, memory_order_acquire);
	struct plx_seg_name name = {.proc = w->proc, .pages = true};
	struct mapped *m;

	if (version != w->last.seen && !renew(w, version))
		return NULL;
	m = find_at(w, addr);
	if (m == NULL || addr - m->base >= m->len)
		return find_none(w, m);
	if (*len > UINT64_MAX - addr)
		return NULL;
	name.id = m->id;
	name.len = m->len;
	if (m->map == NULL && (m->refused || plx_map_get(&name, true, &m->map) != 0)) {
		m->refused = true;
		return NULL;
	}
	w->last.base = m->base;
	w->last.len = m->len;
	w->last.here = plx_map_base(m->map);
	*len = RTE_MIN(*len, m->len - (addr - m->base));
	return w->last.here + (addr - m->base);
}

void *
plx_windows_view(struct plx_windows *w, uint64_t addr, uint64_t *len, struct plx_map **map)
{
	void *here = plx_windows_find_slow(w, addr, len);

	if (here != NULL)
		*map = plx_map_hold(find_at(w, addr)->map);
	return here;
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&own.lock, NULL);
	own.refs = 0;
	atomic_store_explicit(&plx_window_n, 0, memory_order_relaxed);
}

RTE_INIT(window_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
