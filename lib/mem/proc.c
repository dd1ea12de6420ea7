/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * proc.c - which process this is
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_common.h>

#include "mem_int.h"
#include "plx_hash.h"
#include "plx_proc.h"

PLX_LOG_DEFINE(mem, "plx.mem");

static ssize_t
read_text(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	return n;
}

static uint32_t
hash(const char *text, ssize_t len)
{
	uint64_t h = plx_hash_on(PLX_HASH_BEGIN, text, len > 0 ? (size_t)len : 0);

	return h ^ h >> 32;
}

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

static bool
is_scarce(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/* A number of this network namespace, 0: not known. @return 0 or -errno: try later */
static int
names_read(uint32_t *out)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);
	char text[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) != 0)
		cookie = 0;
	close(fd);
	n = cookie == 0 ? readlink("/proc/thread-self/ns/net", text, sizeof(text)) : 0;
	*out = cookie != 0 ? hash((const char *)&cookie, sizeof(cookie)) : n > 0 ? hash(text, n) : 0;
	return 0;
}

/* If /proc does not show the boot, a visible socket of the peer proves the same. */
static int
host_read(uint64_t *out)
{
	uint32_t names = 0;
	char text[64];
	ssize_t boot = read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	int rc = boot < 0 && is_scarce((int)-boot) ? (int)boot : names_read(&names);

	if (rc == 0)
		*out = (uint64_t)(boot > 0 ? hash(text, boot) : 0) << 32 | names;
	return rc;
}

bool
plx_proc_host_same_boot(uint64_t a, uint64_t b)
{
	return a >> 32 == b >> 32 || a >> 32 == 0 || b >> 32 == 0;
}

bool
plx_proc_same_names(const struct plx_proc *a, const struct plx_proc *b)
{
	return plx_proc_host_same_boot(a->host, b->host) && (uint32_t)a->host == (uint32_t)b->host;
}

bool
plx_proc_runs(uint32_t tid)
{
	char path[64], text[1024];
	const char *p;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid); /* no thread of another process with its number */
	if (read_text(path, text, sizeof(text)) < 0)
		return false;
	p = strrchr(text, ')'); /* the name before it may contain anything */
	return p != NULL && strncmp(p, ") R", 3) == 0;
}

/*
 * This process, determined once. The pid is above the random bits of the number, so that a
 * forked child detects that the number is not its own.
 */
#define RANDOM_BITS 42

static struct {
	_Atomic uint64_t host, id;
	_Atomic uint32_t folder; /* replaces the low half of host, or 0 */
} self;

void
plx_proc_set_folder(const char *path)
{
	struct stat st;
	uint64_t what[2] = {0, 0};

	/* the same folder has the same numbers, wherever it is mounted */
	if (path != NULL && stat(path, &st) == 0) {
		what[0] = st.st_dev;
		what[1] = st.st_ino;
	}
	atomic_store_explicit(&self.folder, path != NULL ? hash((const char *)what, sizeof(what)) | 1 : 0,
		memory_order_relaxed);
}

int
plx_proc_self(struct plx_proc *out)
{
	struct plx_proc p = {.pid = getpid()};
	/* pairs with the release below: a thread that sees the number sees the host */
	uint64_t id = atomic_load_explicit(&self.id, memory_order_acquire), fresh, host;
	uint32_t folder;
	int rc;

	while (id >> RANDOM_BITS != p.pid) {
		if (getrandom(&fresh, sizeof(fresh), 0) != sizeof(fresh))
			return -EIO;
		fresh = (uint64_t)p.pid << RANDOM_BITS | fresh >> (64 - RANDOM_BITS);
		/* Concurrent threads find the same host, and use the number of the first. */
		rc = host_read(&host);
		if (rc != 0)
			return rc;
		atomic_store_explicit(&self.host, host, memory_order_relaxed);
		if (atomic_compare_exchange_strong_explicit(&self.id, &id, fresh, memory_order_acq_rel,
			    memory_order_acquire))
			id = fresh;
	}
	p.host = atomic_load_explicit(&self.host, memory_order_relaxed);
	folder = atomic_load_explicit(&self.folder, memory_order_relaxed);
	if (folder != 0)
		p.host = p.host >> 32 << 32 | folder;
	p.id = id;
	*out = p;
	return 0;
}

#define FETCH_STEP 4096u /* a pipe takes that at once */

/* A write checks where it reads from, in each sandbox. */
static int
fetch_by_pipe(const uint8_t *from, uint8_t *to, size_t len)
{
	int fd[2], rc = 0;

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	for (size_t done = 0; done < len && rc == 0; done += FETCH_STEP) {
		ssize_t step = RTE_MIN(len - done, FETCH_STEP);

		if (write(fd[1], from + done, step) != step || read(fd[0], to + done, step) != step)
			rc = -EFAULT;
	}
	close(fd[0]);
	close(fd[1]);
	return rc;
}

int
plx_proc_fetch(const void *from, void *to, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *)(uintptr_t)from, len};
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	int rc;

	if (n == (ssize_t)len)
		return 0;
	if (n >= 0 || errno == EFAULT)
		return -EFAULT;
	rc = fetch_by_pipe(from, to, len); /* a sandbox refuses that call, or the kernel has none */
	if (rc == 0 || rc == -EFAULT)
		return rc;
	memcpy(to, from, len); /* without a descriptor: as UCX does */
	return 0;
}
