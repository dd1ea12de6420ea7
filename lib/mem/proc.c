/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * proc.c - which process this is, and whether another is still the one it was
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plx_proc.h"

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

uint64_t
plx_proc_host(void)
{
	char text[128];
	uint64_t h = 0xcbf29ce484222325ull; /* FNV */
	ssize_t n = read_text("/proc/sys/kernel/random/boot_id", text, 64);
	ssize_t m = n > 0 ? readlink("/proc/self/ns/pid", text + n, sizeof(text) - n) : -1;

	if (m <= 0)
		return 0;
	for (ssize_t i = 0; i < n + m; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return h;
}

/* @return 0, -ESRCH no such process, or another error: nobody knows */
static int
proc_stat(uint32_t pid, char *state, uint64_t *start)
{
	char path[64], text[1024];
	unsigned long long ticks;
	const char *p;
	ssize_t rc;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	rc = read_text(path, text, sizeof(text));
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : (int)rc;
	p = strrchr(text, ')'); /* the name before it may contain anything */
	if (p == NULL ||
		sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
			      " %*d %*d %llu", state, &ticks) != 2)
		return -EIO;
	*start = ticks;
	return 0;
}

uint64_t
plx_proc_start(uint32_t pid)
{
	uint64_t start;
	char state;

	return proc_stat(pid, &state, &start) == 0 ? start : 0;
}

bool
plx_proc_gone(uint32_t pid, uint64_t start)
{
	uint64_t now;
	char state;
	int rc = proc_stat(pid, &state, &now);

	if (rc != 0)
		return rc == -ESRCH;
	return state == 'Z' || state == 'X' || (start != 0 && now != start);
}

uint64_t
plx_proc_id(const struct plx_proc *p)
{
	uint64_t h = (p->host ^ p->start * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return (h ^ h >> 32 ^ (uint64_t)p->pid << 1) | 1;
}

void
plx_proc_self(struct plx_proc *out)
{
	out->pid = getpid();
	out->host = plx_proc_host();
	out->start = plx_proc_start(out->pid);
}

int
plx_proc_fetch(const void *from, void *to, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *)(uintptr_t)from, len};
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (n == (ssize_t)len)
		return 0;
	if (n >= 0 || errno == EFAULT)
		return -EFAULT;
	memcpy(to, from, len); /* not allowed in this sandbox: as UCX does it */
	return 0;
}
