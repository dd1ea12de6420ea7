/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * map.c - segments of other processes, each mapped once
 *
 * Design notes
 * - A segment has no name in a file system: its owner sends it to processes that know its random
 *   number (plx_meet.h).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_meet.h"
#include "plx_region.h"

struct plx_map {
	struct plx_seg_name name;
	struct plx_seg seg;
	bool write;
	bool listed;
	uint32_t refs;
	LIST_ENTRY(plx_map) link;
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, plx_map) list;
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

int
plx_seg_name(const struct plx_seg *seg, struct plx_seg_name *out)
{
	int rc = plx_proc_self(&out->proc);

	if (rc != 0)
		return rc;
	out->id = seg->id;
	out->len = seg->len;
	out->pages = false;
	return plx_meet_offer(seg->id, (int[PLX_MEET_FDS]){seg->fd, -1, -1}, seg->own_user);
}

static int
ask_once(const struct plx_seg_name *name, struct plx_answer *got)
{
	struct plx_ask ask;
	int rc = plx_ask_open(&ask, &name->proc, name->id);

	if (rc == 0)
		rc = plx_ask_wait(&ask, got, PLX_ASK_MS);
	plx_ask_close(&ask);
	return rc;
}

#define BUSY_MS 10 /* wait for a process that could not answer */

static int
name_open(const struct plx_seg_name *name)
{
	struct plx_answer got;
	int rc = ask_once(name, &got), fd;

	for (unsigned ms = 0; rc == -EBUSY && ms < PLX_ASK_MS; ms += BUSY_MS) {
		usleep(BUSY_MS * 1000);
		rc = ask_once(name, &got);
	}
	if (rc != 0)
		return rc;
	fd = got.fd[PLX_MEET_MEM];
	if (!plx_meet_is_memory(fd, name->len, got.own_user) &&
		!(name->pages && got.own_user && plx_meet_pages_len(fd) == name->len)) {
		plx_answer_close(&got);
		return -EACCES;
	}
	got.fd[PLX_MEET_MEM] = -1;
	plx_answer_close(&got);
	return fd;
}

int
plx_seg_open(const struct plx_seg_name *name, bool write, struct plx_seg *out)
{
	int fd = name_open(name), rc;
	void *base;

	if (fd < 0)
		return fd;
	base = mmap(NULL, name->len, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*out = (struct plx_seg){.base = base, .len = name->len, .fd = fd};
	return 0;
}

/* Call with the lock. */
static struct plx_map *
map_find(const struct plx_seg_name *name, bool write)
{
	struct plx_map *m;

	LIST_FOREACH(m, &maps.list, link) {
		if (m->write == write && m->name.proc.id == name->proc.id && m->name.id == name->id &&
			m->name.len == name->len)
			break;
	}
	return m;
}

static int
map_make(const struct plx_seg_name *name, bool write, struct plx_map **out)
{
	struct plx_map *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return -ENOMEM;
	rc = plx_seg_open(name, write, &m->seg);
	if (rc != 0) {
		free(m);
		return rc;
	}
	close(m->seg.fd); /* the mapping is enough, and descriptors are scarce */
	m->seg.fd = -1;
	m->name = *name;
	m->write = write;
	*out = m;
	return 0;
}

static void
map_free(struct plx_map *m)
{
	munmap(m->seg.base, m->seg.len);
	free(m);
}

int
plx_map_get(const struct plx_seg_name *name, bool write, struct plx_map **out)
{
	struct plx_map *m, *fresh = NULL;
	int rc = 0;

	pthread_mutex_lock(&maps.lock);
	m = map_find(name, write);
	if (m == NULL) {
		/* Not under the lock: the owner may not answer for a while. */
		pthread_mutex_unlock(&maps.lock);
		rc = map_make(name, write, &fresh);
		pthread_mutex_lock(&maps.lock);
		m = map_find(name, write);
		if (m == NULL && rc == 0) {
			m = fresh;
			fresh = NULL;
			LIST_INSERT_HEAD(&maps.list, m, link);
			m->listed = true;
		}
	}
	if (m != NULL) {
		m->refs++;
		*out = m;
		rc = 0;
	}
	pthread_mutex_unlock(&maps.lock);
	if (fresh != NULL)
		map_free(fresh);
	return rc;
}

/* Called with the lock held. */
static void
map_delist(struct plx_map *m)
{
	if (m->listed)
		LIST_REMOVE(m, link);
	m->listed = false;
}

void
plx_map_forget(struct plx_map *m)
{
	pthread_mutex_lock(&maps.lock);
	map_delist(m);
	pthread_mutex_unlock(&maps.lock);
}

struct plx_map *
plx_map_hold(struct plx_map *m)
{
	if (m == NULL)
		return NULL;
	pthread_mutex_lock(&maps.lock);
	m->refs++;
	pthread_mutex_unlock(&maps.lock);
	return m;
}

void
plx_map_put(struct plx_map *m)
{
	bool last;

	if (m == NULL)
		return;
	pthread_mutex_lock(&maps.lock);
	last = --m->refs == 0;
	if (last)
		map_delist(m);
	pthread_mutex_unlock(&maps.lock);
	if (last)
		map_free(m);
}

void *
plx_map_base(const struct plx_map *m)
{
	return m->seg.base;
}

/* Inherited keys keep their mappings, until the child destroys them. */
static void
before_fork(void)
{
	pthread_mutex_lock(&maps.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&maps.lock);
}
RTE_INIT(map_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}
