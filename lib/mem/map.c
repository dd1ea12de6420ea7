/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * map.c - segments of other processes, each mapped once
 *
 * Design notes
 * A segment has no name in a file system: it is opened through /proc/PID/fd of a
 * process that has it open. Process start time, inode and length tell whether it
 * is still the one that was meant.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "plx_region.h"

struct plx_map {
	struct plx_seg_name name;
	struct plx_seg seg;
	bool write;
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
	struct stat st;
	int rc;

	if (fstat(seg->fd, &st) != 0)
		return -errno;
	rc = plx_proc_self(&out->proc);
	if (rc != 0)
		return rc;
	out->fd = seg->fd;
	out->ino = st.st_ino;
	out->len = seg->len;
	return 0;
}

/* path_fd names a file without opening it; which file it names can't change any more. */
static bool
is_memory(int path_fd, struct stat *st)
{
	struct statfs fs;

	return fstat(path_fd, st) == 0 && S_ISREG(st->st_mode) && st->st_nlink == 0 && fstatfs(path_fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

static bool
is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS); /* files of other kinds know none */

	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

int
plx_seg_open_of(uint32_t pid, uint32_t fd, int flags, struct stat *st)
{
	int path_fd = plx_proc_fd_open(pid, fd), rc = -EACCES;

	if (path_fd < 0)
		return path_fd == -ENOENT ? -ESRCH : path_fd == -EACCES ? -EPERM : path_fd;
	if (is_memory(path_fd, st))
		rc = plx_proc_fd_reopen(path_fd, flags);
	close(path_fd);
	if (rc < 0 || is_sealed(rc))
		return rc;
	close(rc);
	return -EACCES; /* one that may become shorter would fault when touched */
}

/* Open it, and only then look whether it is what was meant: after that it can't change. */
static int
name_open(const struct plx_seg_name *name, bool write)
{
	struct plx_proc self;
	struct stat st;
	int fd, rc = plx_proc_self(&self);

	if (rc != 0)
		return rc;
	if (name->proc.host != self.host)
		return -EHOSTUNREACH;
	fd = plx_seg_open_of(name->proc.pid, name->fd, write ? O_RDWR : O_RDONLY, &st);
	if (fd < 0)
		return fd;
	if (plx_proc_start(name->proc.pid) != name->proc.start)
		rc = -ESRCH;
	else if (st.st_ino != name->ino || (uint64_t)st.st_size != name->len || name->len == 0)
		rc = -ESRCH;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int
plx_seg_open(const struct plx_seg_name *name, bool write, struct plx_seg *out)
{
	int fd = name_open(name, write), rc;
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

static bool
same(const struct plx_seg_name *a, const struct plx_seg_name *b)
{
	return a->proc.host == b->proc.host && a->proc.start == b->proc.start &&
		a->proc.pid == b->proc.pid && a->fd == b->fd && a->ino == b->ino && a->len == b->len;
}

/* Called with the lock held. */
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
	close(m->seg.fd); /* the mapping is enough, and fds are few */
	m->seg.fd = -1;
	m->name = *name;
	m->write = write;
	LIST_INSERT_HEAD(&maps.list, m, link);
	*out = m;
	return 0;
}

int
plx_map_get(const struct plx_seg_name *name, bool write, struct plx_map **out)
{
	struct plx_map *m;
	int rc = 0;

	pthread_mutex_lock(&maps.lock);
	LIST_FOREACH(m, &maps.list, link) {
		if (m->write == write && same(&m->name, name))
			break;
	}
	if (m == NULL)
		rc = map_make(name, write, &m);
	if (rc == 0) {
		m->refs++;
		*out = m;
	}
	pthread_mutex_unlock(&maps.lock);
	return rc;
}

void
plx_map_put(struct plx_map *m)
{
	if (m == NULL)
		return;
	pthread_mutex_lock(&maps.lock);
	if (--m->refs == 0) {
		LIST_REMOVE(m, link);
		munmap(m->seg.base, m->seg.len);
		free(m);
	}
	pthread_mutex_unlock(&maps.lock);
}

void *
plx_map_base(const struct plx_map *m)
{
	return m->seg.base;
}
