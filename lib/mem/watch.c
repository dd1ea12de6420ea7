/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * watch.c - notification when memory gets other pages under the same address
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_watch.h"

#define EVENTS  (UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP)
#define BATCH	16	     /* events taken at once */
#define STACK	(256 << 10)  /* of the thread, bytes */
#define PRESENT (1ull << 63) /* of an entry of pagemap */
#define OF_FILE (1ull << 61) /* or shared */

static _Atomic int child_fd = -1; /* must not stay in a forked child, or closing it here is not
                                   * enough */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
child_close(void)
{
	if (child_fd >= 0)
		close(child_fd);
	child_fd = -1;
}

static void
forks_see(void)
{
	(void)pthread_atfork(NULL, NULL, child_close);
}

static void
event_take(struct plx_watch *w, const struct uffd_msg *m)
{
	switch (m->event) {
	case UFFD_EVENT_REMAP:
		w->gone(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
		plx_watch_del(w, m->arg.remap.to, m->arg.remap.to + m->arg.remap.len);
		break;
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		w->gone(m->arg.remove.start, m->arg.remove.end);
		break;
	default:
		break;
	}
}

/* The waiting thread continues with the read, so process its event before releasing the lock. */
static void
events_take(struct plx_watch *w)
{
	struct uffd_msg m[BATCH];
	ssize_t n;

	pthread_mutex_lock(&w->lock);
	n = read(w->uffd, m, sizeof(m));
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(m[0]); i++)
		event_take(w, &m[i]);
	pthread_mutex_unlock(&w->lock);
}

/* This thread must not change any mapping: it would wait for itself. */
static void *
watch_run(void *arg)
{
	struct plx_watch *w = arg;
	struct pollfd fds[] = {{.fd = w->uffd, .events = POLLIN}, {.fd = w->stop, .events = POLLIN}};

	while (fds[1].revents == 0) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents != 0)
			events_take(w);
	}
	return NULL;
}

static int
thread_start(struct plx_watch *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&w->thread, &attr, watch_run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(w->thread, "plx-watch");
	return -rc;
}

static void
all_close(struct plx_watch *w)
{
	child_fd = -1;
	if (w->uffd >= 0)
		close(w->uffd);
	if (w->pagemap >= 0)
		close(w->pagemap);
	if (w->stop >= 0)
		close(w->stop);
	if (w->own != MAP_FAILED)
		munmap(w->own, w->page);
}

/* It needs no rights: faults of the kernel's own accesses are not requested. */
static int
uffd_open(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = EVENTS};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP))
		return fd;
	close(fd);
	errno = EOPNOTSUPP;
	return -1;
}

int
plx_watch_open(struct plx_watch *w, plx_watch_gone *gone)
{
	int rc = 0;

	w->gone = gone;
	w->page = sysconf(_SC_PAGESIZE);
	w->uffd = w->pagemap = w->stop = -1;
	w->own = mmap(NULL, w->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->own == MAP_FAILED || (w->uffd = uffd_open()) < 0 ||
		(w->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) < 0 ||
		(w->stop = eventfd(0, EFD_CLOEXEC)) < 0)
		rc = -errno;
	if (rc == 0)
		rc = plx_watch_add(w, (uintptr_t)w->own, (uintptr_t)w->own + w->page);
	if (rc == 0)
		rc = thread_start(w);
	if (rc == 0) {
		child_fd = w->uffd;
		pthread_once(&once, forks_see);
		return 0;
	}
	all_close(w);
	return rc;
}

void
plx_watch_close(struct plx_watch *w)
{
	const uint64_t one = 1;

	if (write(w->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(w->thread, NULL);
	all_close(w);
}

bool
plx_watch_can(const struct plx_watch *w, const void *addr, size_t len)
{
	uint64_t pages[512];
	uintptr_t first = (uintptr_t)addr / w->page, n = ((uintptr_t)addr + len - 1) / w->page - first + 1;

	while (n > 0) {
		uintptr_t part = RTE_MIN(n, RTE_DIM(pages));
		ssize_t got = pread(w->pagemap, pages, part * sizeof(pages[0]), first * sizeof(pages[0]));

		if (got != (ssize_t)(part * sizeof(pages[0])))
			return false;
		for (uintptr_t i = 0; i < part; i++)
			if ((pages[i] & (PRESENT | OF_FILE)) != PRESENT)
				return false;
		first += part;
		n -= part;
	}
	return true;
}

/* Pages that are write-protected, and none is, so there are no faults. */
int
plx_watch_add(struct plx_watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_register reg = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};

	return ioctl(w->uffd, UFFDIO_REGISTER, &reg) == 0 ? 0 : -errno;
}

void
plx_watch_del(struct plx_watch *w, uintptr_t from, uintptr_t to)
{
	struct uffdio_range range = {from, to - from};

	(void)ioctl(w->uffd, UFFDIO_UNREGISTER, &range); /* it may be unmapped */
}

/* The kernel refuses to change a page's protection while a thread waits for us. */
bool
plx_watch_quiet(const struct plx_watch *w)
{
	struct uffdio_writeprotect wp = {.range = {(uintptr_t)w->own, w->page}};

	return ioctl(w->uffd, UFFDIO_WRITEPROTECT, &wp) == 0;
}
