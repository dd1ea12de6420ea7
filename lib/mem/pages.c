/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pages.c - the heap of a program's own EAL, with its mbufs, as segments that peers map
 *
 * Design notes
 * - The EAL has a file for each huge page, or one for all its memory without huge pages. Each
 *   file that is mapped as a whole is listed as a segment. With --single-file-segments a file grows
 *   and shrinks: such memory is left to the kernel's copies.
 * - The EAL tells when it takes and returns pages, under its memory lock, which comes before ours.
 *   A peer that still has a returned page mapped reads the page that it was.
 * - A forked child offers nothing: the pages are its parent's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_memory.h>

#include "mem_int.h"
#include "plx_meet.h"
#include "plx_pages.h"
#include "plx_window.h"

#define EVENTS "plx_pages"

struct page {
	struct plx_seg seg; /* base, len and fd are the EAL's */
	uint64_t token;	    /* nobody knows it: there are no keys of it */
	LIST_ENTRY(page) link;
};

static struct {
	pthread_mutex_t lock;
	bool open;
	LIST_HEAD(, page) list;
	uint64_t bytes;
} pages = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Called with the lock. */
static void
page_add(void *base, size_t len, int fd)
{
	struct page *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return;
	p->seg = (struct plx_seg){.base = base, .len = len, .fd = fd, .huge = true, .own_user = true};
	if (getrandom(&p->seg.id, sizeof(p->seg.id), 0) != sizeof(p->seg.id) ||
		getrandom(&p->token, sizeof(p->token), 0) != sizeof(p->token) ||
		plx_window_add(&p->seg, p->token) == 0) {
		plx_meet_withdraw(p->seg.id);
		free(p);
		return;
	}
	LIST_INSERT_HEAD(&pages.list, p, link);
	pages.bytes += len;
}

/* Called with the lock. */
static void
page_remove(struct page *p)
{
	LIST_REMOVE(p, link);
	pages.bytes -= p->seg.len;
	plx_window_remove(&p->seg);
	plx_meet_withdraw(p->seg.id);
	free(p);
}

/* Called with the lock. */
static bool
is_listed(const void *base)
{
	struct page *p;

	LIST_FOREACH(p, &pages.list, link) {
		if (p->seg.base == base)
			break;
	}
	return p != NULL;
}

/* The file that begins at a page. @return its length if it is within len bytes, or 0 */
static size_t
file_at(const struct rte_memseg *ms, size_t len, int *fd)
{
	uint64_t file;
	size_t offset;

	*fd = rte_memseg_get_fd_thread_unsafe(ms);
	if (*fd < 0 || rte_memseg_get_fd_offset_thread_unsafe(ms, &offset) != 0 || offset != 0)
		return 0;
	file = plx_meet_pages_len(*fd);
	return file <= len && file % ms->hugepage_sz == 0 ? file : 0;
}

static void
range_add(const struct rte_memseg_list *msl, const void *at, size_t len)
{
	size_t step;

	pthread_mutex_lock(&pages.lock);
	for (; pages.open && len > 0; at = RTE_PTR_ADD(at, step), len -= step) {
		const struct rte_memseg *ms = rte_mem_virt2memseg(at, msl);
		int fd;

		if (ms == NULL)
			break;
		step = file_at(ms, len, &fd);
		if (step != 0 && !is_listed(at))
			page_add((void *)(uintptr_t)at, step, fd);
		step = step != 0 ? step : ms->hugepage_sz;
		step = RTE_MIN(step, len);
	}
	pthread_mutex_unlock(&pages.lock);
}

static void
range_remove(const void *at, size_t len)
{
	struct page *p, *next;

	pthread_mutex_lock(&pages.lock);
	for (p = LIST_FIRST(&pages.list); p != NULL; p = next) {
		next = LIST_NEXT(p, link);
		if ((uintptr_t)p->seg.base - (uintptr_t)at < len)
			page_remove(p);
	}
	pthread_mutex_unlock(&pages.lock);
}

/* The EAL calls it under its lock of memory. */
static void
on_event(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list(addr);

	(void)arg;
	if (event == RTE_MEM_EVENT_FREE)
		range_remove(addr, len);
	else if (msl != NULL && !msl->external)
		range_add(msl, addr, len);
}

static int
on_walk(const struct rte_memseg_list *msl, const struct rte_memseg *ms, size_t len, void *arg)
{
	(void)arg;
	if (!msl->external)
		range_add(msl, ms->addr, len);
	return 0;
}

void
plx_pages_open(void)
{
	pthread_mutex_lock(&pages.lock);
	pages.open = true;
	pthread_mutex_unlock(&pages.lock);
	/* ENOTSUP: legacy memory, which does not change. */
	if (rte_mem_event_callback_register(EVENTS, on_event, NULL) != 0 && rte_errno != ENOTSUP) {
		PLX_LOG(WARNING, mem, "the EAL's memory is not offered to peers: %s", rte_strerror(rte_errno));
		return;
	}
	(void)rte_memseg_contig_walk(on_walk, NULL);
	PLX_LOG(INFO, mem, "%llu MiB of the program's EAL are offered to peers of this user",
		(unsigned long long)(plx_pages_bytes() >> 20));
}

void
plx_pages_close(void)
{
	struct page *p;
	bool was;

	pthread_mutex_lock(&pages.lock);
	was = pages.open;
	pages.open = false;
	pthread_mutex_unlock(&pages.lock);
	if (!was)
		return;
	(void)rte_mem_event_callback_unregister(EVENTS, NULL);
	pthread_mutex_lock(&pages.lock);
	while ((p = LIST_FIRST(&pages.list)) != NULL)
		page_remove(p);
	pthread_mutex_unlock(&pages.lock);
}

uint64_t
plx_pages_bytes(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&pages.lock);
	bytes = pages.bytes;
	pthread_mutex_unlock(&pages.lock);
	return bytes;
}

static void
after_fork_in_child(void)
{
	struct page *p;

	pthread_mutex_init(&pages.lock, NULL);
	pages.open = false;
	pages.bytes = 0;
	while ((p = LIST_FIRST(&pages.list)) != NULL) {
		LIST_REMOVE(p, link);
		free(p);
	}
}

RTE_INIT(pages_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
