/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mem.c - segments with a file descriptor, and the heap of pools
 *
 * Design notes
 * - The heap is a DPDK external heap ("plx") to which we add memory ourselves. The EAL's own
 *   allocator either has huge pages or has not; here each piece is first requested on huge pages
 *   and then taken on 4 KiB pages, so that a process without free huge pages continues.
 * - A forked child takes its memory from malloc(). The inherited pieces are private, but the
 *   EAL's metadata of them, and of its own heap, may be shared with the parent (its own heap
 *   always is without huge pages): both would allocate the same bytes. So no process takes
 *   anything from the EAL's own heap, and a child never frees inherited memory.
 * - A child that is forked in a callback returns into functions of the library that go on with the
 *   heap. On huge pages, when none is free, that is a fatal signal: the kernel can copy no page for
 *   the child, and takes one from it as the parent writes there. So the parent copies the heap to
 *   4 KiB pages first, and the child moves the copy to the heap's place.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring.h>

#include "plx_fork.h"
#include "plx_log.h"

#include "mem_int.h"
#include "plx_meet.h"
#include "plx_mem.h"

#define HUGE_LEN   (2ull << 20)
#define MEMFD_2MB  (21u << 26) /* MFD_HUGE_2MB, which glibc does not name */
#define SMALL_LEN  4096ull
#define HEAP_NAME  "plx"
#define HEAP_STEP  (2ull << 20) /* least step of the heap */
#define HEAP_SLACK 8192		/* overhead of the allocator for one piece */
#define HEAP_PIECES RTE_MAX_MEMSEG_LISTS /* limit of the EAL */

static struct {
	pthread_mutex_t lock;
	bool ready;
	bool huge;
	int socket;
	uint64_t total; /* bytes in the heap */
	uint64_t on_huge;
	bool told;
	unsigned n_pieces;
	unsigned n_copied; /* of pieces, during a fork: the first ones */
	struct {
		char *base;
		size_t len;
		bool huge;
		void *copy; /* for the child, during a fork; or NULL */
	} pieces[HEAP_PIECES];
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = SOCKET_ID_ANY};

static _Thread_local volatile bool in_heap; /* this thread has the lock, or waits for it */

static void
heap_take(void)
{
	in_heap = true;
	pthread_mutex_lock(&heap.lock);
}

static void
heap_drop(void)
{
	pthread_mutex_unlock(&heap.lock);
	in_heap = false;
}

static uint64_t
round_up(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

static void
tell_once(void)
{
	if (__atomic_exchange_n(&heap.told, true, __ATOMIC_RELAXED))
		return;
	PLX_LOG(INFO, mem, "no huge pages (none are free, or a control group allows none), going on with "
		"4 KiB pages; as root: echo 512 > /proc/sys/vm/nr_hugepages makes transfers faster");
}

bool
plx_mem_populate(void *va, size_t len)
{
	return madvise(va, len, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

bool
plx_mem_too_long(uint64_t len)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
	       len > lim.rlim_cur;
}

static int
seg_try(struct plx_seg *seg, void *addr, size_t len, size_t now, bool huge)
{
	int flags = MAP_SHARED | (addr != NULL ? MAP_FIXED_NOREPLACE : 0);
	int rc;

	seg->len = round_up(len, huge ? HUGE_LEN : SMALL_LEN);
	seg->huge = huge;
	if (getrandom(&seg->id, sizeof(seg->id), 0) != sizeof(seg->id))
		return -EIO;
	if (plx_mem_too_long(seg->len))
		return -EFBIG;
	seg->fd = memfd_create("pollux", MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB | MEMFD_2MB : 0));
	if (seg->fd < 0)
		return -errno;
	/* Sealed, so that a process that maps it need not fear that it shrinks. */
	if (ftruncate(seg->fd, seg->len) != 0 || fcntl(seg->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		goto fail;
	seg->base = mmap(addr, seg->len, PROT_READ | PROT_WRITE, flags, seg->fd, 0);
	if (seg->base == MAP_FAILED)
		goto fail;
	if (addr != NULL && seg->base != addr) { /* the flag is unknown to kernels before 4.17 */
		munmap(seg->base, seg->len);
		errno = EEXIST;
		goto fail;
	}
	if (huge && !plx_mem_populate(seg->base, round_up(now, HUGE_LEN))) {
		munmap(seg->base, seg->len);
		errno = ENOMEM;
		goto fail;
	}
	return 0;
fail:
	rc = -errno;
	close(seg->fd);
	return rc;
}

static int
seg_create(struct plx_seg *seg, void *addr, size_t len, size_t now, bool huge)
{
	struct plx_seg s = {.base = NULL};
	int rc;

	if (len == 0 || len > SIZE_MAX - HUGE_LEN)
		return -ENOMEM;
	rc = huge ? seg_try(&s, addr, len, now, true) : -ENOMEM;
	if (rc != 0) {
		if (huge)
			tell_once();
		rc = seg_try(&s, addr, len, now, false);
	}
	if (rc != 0)
		return rc;
	*seg = s;
	return 0;
}

int
plx_seg_create(struct plx_seg *seg, void *addr, size_t len, bool huge)
{
	return seg_create(seg, addr, len, len, huge);
}

int
plx_seg_create_part(struct plx_seg *seg, size_t len, size_t now, bool huge)
{
	return seg_create(seg, NULL, len, now, huge);
}

void
plx_seg_destroy(struct plx_seg *seg)
{
	if (seg->base == NULL)
		return;
	plx_meet_withdraw(seg->id);
	munmap(seg->base, seg->len);
	close(seg->fd);
	seg->base = NULL;
	seg->fd = -1;
}

/* Call with the lock. */
static int
heap_add(size_t len)
{
	size_t page = HUGE_LEN;
	void *va = MAP_FAILED;

	/* In growing steps: the EAL has room for about a hundred pieces. */
	len = round_up(RTE_MAX(len, heap.total / 4), HEAP_STEP);
	if (heap.huge)
		va = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (va != MAP_FAILED && !plx_mem_populate(va, len)) {
		munmap(va, len);
		va = MAP_FAILED;
	}
	if (va == MAP_FAILED) {
		if (heap.huge)
			tell_once();
		page = SMALL_LEN;
		va = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (va == MAP_FAILED)
		return -ENOMEM;
	if (heap.n_pieces == HEAP_PIECES ||
		rte_malloc_heap_memory_add(HEAP_NAME, va, len, NULL, len / page, page) != 0) {
		munmap(va, len);
		return -ENOMEM;
	}
	heap.pieces[heap.n_pieces].base = va;
	heap.pieces[heap.n_pieces].huge = page == HUGE_LEN;
	heap.pieces[heap.n_pieces++].len = len;
	heap.total += len;
	heap.on_huge += page == HUGE_LEN ? len : 0;
	return 0;
}

bool
plx_mem_has_huge(void)
{
	struct plx_seg seg;

	if (!heap.huge || seg_try(&seg, NULL, HUGE_LEN, HUGE_LEN, true) != 0)
		return false;
	plx_seg_destroy(&seg);
	return true;
}

int
plx_mem_init(bool huge)
{
	int rc = 0;

	heap_take();
	if (!heap.ready) {
		heap.huge = huge;
		if (rte_malloc_heap_create(HEAP_NAME) != 0 && rte_errno != EEXIST) {
			rc = -rte_errno;
		} else {
			heap.socket = rte_malloc_heap_get_socket(HEAP_NAME);
			heap.ready = true;
		}
	}
	heap_drop();
	return rc;
}

/* Call with the lock. */
static int
heap_reserve(size_t len)
{
	struct rte_malloc_socket_stats st;

	if (rte_malloc_get_socket_stats(heap.socket, &st) == 0 &&
		st.greatest_free_size >= len + HEAP_SLACK)
		return 0;
	return heap_add(len + HEAP_SLACK);
}

/* Call with the lock. */
static bool
heap_has(const char *p)
{
	for (unsigned i = 0; i < heap.n_pieces; i++)
		if (p >= heap.pieces[i].base && p < heap.pieces[i].base + heap.pieces[i].len)
			return true;
	return false;
}

bool
plx_mem_in_parents_heap(const void *p)
{
	return heap_has(p); /* a child adds nothing to the pieces */
}

/* In a child: see the design notes. */
static void *
own_alloc(size_t len)
{
	void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, round_up(len, RTE_CACHE_LINE_SIZE));

	if (p != NULL)
		heap.total += malloc_usable_size(p);
	return p;
}

static void
own_free(void *p)
{
	if (p == NULL || heap_has(p))
		return;
	heap.total -= malloc_usable_size(p);
	free(p);
}

static void *
heap_alloc(size_t len)
{
	void *p = rte_malloc_socket("plx", len, RTE_CACHE_LINE_SIZE, heap.socket);

	if (p == NULL && heap_reserve(len) == 0)
		p = rte_malloc_socket("plx", len, RTE_CACHE_LINE_SIZE, heap.socket);
	return p;
}

/*
 * The EAL's heap has a lock of its own, which sanitizers do not see: memory that one thread
 * frees and another allocates would be a race to them.
 */
void *
plx_mem_alloc(size_t len)
{
	void *p;

	heap_take();
	p = plx_fork_eal ? own_alloc(len) : heap_alloc(len);
	heap_drop();
	return p;
}

void
plx_mem_free(void *p)
{
	heap_take();
	if (plx_fork_eal)
		own_free(p);
	else
		rte_free(p);
	heap_drop();
}

void
plx_mem_stats(uint64_t *total, uint64_t *huge)
{
	heap_take();
	*total = heap.total;
	*huge = heap.on_huge;
	heap_drop();
}

int
plx_mem_ring(uint32_t n, struct rte_ring **out)
{
	ssize_t len = rte_ring_get_memsize(n);
	struct rte_ring *r;

	if (len < 0)
		return (int)len;
	r = plx_mem_alloc((size_t)len);
	if (r == NULL)
		return -ENOMEM;
	(void)rte_ring_init(r, "plx", n, RING_F_SP_ENQ | RING_F_SC_DEQ);
	*out = r;
	return 0;
}

/* Reactors go on meanwhile, as other threads do while fork() copies pages. */
void
plx_mem_copy_for_child(void)
{
	if (in_heap) /* a signal's handler forks in the middle of a change */
		return;
	heap_take();
	for (unsigned i = 0; i < heap.n_pieces; i++, heap.n_copied = i) {
		void *copy;

		if (!heap.pieces[i].huge)
			continue;
		copy = mmap(NULL, heap.pieces[i].len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			break; /* the child keeps the huge pages, as long as the kernel can */
		memcpy(copy, heap.pieces[i].base, heap.pieces[i].len);
		heap.pieces[i].copy = copy;
	}
	heap_drop();
}

/* Without the lock: these pieces stay as they are, and one thread forks at a time. */
void
plx_mem_drop_copy(void)
{
	for (unsigned i = 0; i < heap.n_copied; i++) {
		if (heap.pieces[i].copy != NULL)
			munmap(heap.pieces[i].copy, heap.pieces[i].len);
		heap.pieces[i].copy = NULL;
	}
	heap.n_copied = 0;
}

static void
take_copies(void)
{
	for (unsigned i = 0; i < heap.n_pieces; i++) {
		size_t len = heap.pieces[i].len;
		void *copy = heap.pieces[i].copy;

		heap.pieces[i].copy = NULL;
		heap.pieces[i].huge = false; /* what a child inherits on huge pages it can't read, and doesn't use */
		if (copy != NULL)
			(void)mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, heap.pieces[i].base);
	}
}

/* Allocated memory stays; the heap belongs to the parent. */
static void
after_fork_in_child(void)
{
	take_copies();
	heap.n_copied = 0;
	pthread_mutex_init(&heap.lock, NULL);
	heap.total = heap.on_huge = 0;
	heap.huge = heap.huge && !heap.ready;
}

RTE_INIT(mem_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
