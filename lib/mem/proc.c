/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * proc.c - which process this is, and whether another is still the one it was
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

static uint32_t
hash(const char *text, ssize_t len)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV */

	for (ssize_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return h ^ h >> 32;
}

static int
host_read(uint64_t *out)
{
	char text[192];
	ssize_t boot = read_text("/proc/sys/kernel/random/boot_id", text, 64);
	ssize_t n = boot;

	/* Those who are in different user namespaces may not both open what the other has open. */
	for (unsigned i = 0; n > 0 && i < 2; i++) {
		ssize_t m = readlink(i == 0 ? "/proc/thread-self/ns/pid" : "/proc/thread-self/ns/user", text + n,
			sizeof(text) - n);

		n = m > 0 ? n + m : -EIO;
	}
	if (n <= 0)
		return n < 0 ? (int)n : -EIO;
	*out = (uint64_t)hash(text, boot) << 32 | hash(text, n);
	return 0;
}

bool
plx_proc_host_same_boot(uint64_t a, uint64_t b)
{
	return a >> 32 == b >> 32;
}

/* Fields of /proc/PID/stat. */
struct stat_line {
	char state;
	int n_threads;
	uint64_t start;
};

/* @return 0, -ESRCH no such process, or another error: nobody knows */
static int
proc_stat(uint32_t pid, struct stat_line *out)
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
			      " %d %*d %llu", &out->state, &out->n_threads, &ticks) != 3)
		return -EIO;
	out->start = ticks;
	return 0;
}

uint64_t
plx_proc_start(uint32_t pid)
{
	struct stat_line s;

	return proc_stat(pid, &s) == 0 ? s.start : 0;
}

/* Its first thread has ended, and others go on: it is a zombie that lives, and /proc/PID/fd is empty. */
static bool
is_headless(const struct stat_line *s)
{
	return s->state == 'Z' && s->n_threads > 1;
}

bool
plx_proc_gone(uint32_t pid, uint64_t start)
{
	struct stat_line s;
	int rc = proc_stat(pid, &s);

	if (rc != 0)
		return rc == -ESRCH;
	return (s.state == 'Z' && !is_headless(&s)) || s.state == 'X' || (start != 0 && s.start != start);
}

bool
plx_proc_headless(uint32_t pid)
{
	struct stat_line s;

	return proc_stat(pid, &s) == 0 && is_headless(&s);
}

/* By the files of another of its threads. */
static int
fd_open_by_thread(uint32_t pid, uint32_t fd)
{
	char path[64];
	struct dirent *e;
	int rc = -ENOENT;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	if (d == NULL)
		return -errno;
	while (rc < 0 && (e = readdir(d)) != NULL) {
		uint32_t tid = strtoul(e->d_name, NULL, 10); /* 0: "." or ".." */

		if (tid == 0 || tid == pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%u", pid, tid, fd);
		rc = open(path, O_PATH | O_CLOEXEC);
		rc = rc < 0 ? -errno : rc;
	}
	closedir(d);
	return rc;
}

int
plx_proc_fd_open(uint32_t pid, uint32_t fd)
{
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
	rc = open(path, O_PATH | O_CLOEXEC);
	rc = rc < 0 ? -errno : rc;
	return rc == -ENOENT && plx_proc_headless(pid) ? fd_open_by_thread(pid, fd) : rc;
}

int
plx_proc_fd_reopen(int path_fd, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", path_fd);
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

bool
plx_proc_runs(uint32_t tid)
{
	struct stat_line s;

	return proc_stat(tid, &s) == 0 && s.state == 'R';
}

/* What the kernel compares before one process may open what another has open. */
struct creds {
	unsigned uid[4], gid[4]; /* real, effective, saved, of the file system */
	unsigned long long permitted, effective;
};

/* The numbers behind "Name:" in /proc/PID/status. */
static bool
status_ids(const char *text, const char *name, unsigned id[4])
{
	const char *line = strstr(text, name);

	return line != NULL &&
	       sscanf(line + strlen(name), "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4;
}

static bool
status_caps(const char *text, const char *name, unsigned long long *caps)
{
	const char *line = strstr(text, name);

	return line != NULL && sscanf(line + strlen(name), "%llx", caps) == 1;
}

static bool
creds_read(const char *who, struct creds *c)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%s/status", who);
	return read_text(path, text, sizeof(text)) > 0 && status_ids(text, "\nUid:", c->uid) &&
	       status_ids(text, "\nGid:", c->gid) && status_caps(text, "\nCapPrm:", &c->permitted) &&
	       status_caps(text, "\nCapEff:", &c->effective);
}

static bool
has_cap(const struct creds *c, unsigned cap)
{
	return c->effective >> cap & 1;
}

/*
 * Whether one finds what the other has open: /proc/PID/fd is its owner's, and ptrace(2) says the rest
 * (access mode checking: PTRACE_MODE_READ_FSCREDS, within one user namespace).
 */
static bool
may_open(const struct creds *caller, const struct creds *target, bool dumpable)
{
	unsigned owner = dumpable ? target->uid[1] : 0;

	if (caller->uid[3] != owner && !has_cap(caller, CAP_DAC_READ_SEARCH) &&
		!has_cap(caller, CAP_DAC_OVERRIDE))
		return false;
	if (has_cap(caller, CAP_SYS_PTRACE))
		return true;
	for (unsigned i = 0; i < 3; i++)
		if (caller->uid[3] != target->uid[i] || caller->gid[3] != target->gid[i])
			return false;
	return dumpable && (target->permitted & ~caller->effective) == 0;
}

static bool
is_dumpable(void)
{
	return prctl(PR_GET_DUMPABLE) == 1;
}

/* Whether this process is an ordinary one: one user, no capability. */
static bool
is_plain(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	return getresuid(&ruid, &euid, &suid) == 0 && getresgid(&rgid, &egid, &sgid) == 0 &&
	       ruid == euid && suid == euid && rgid == egid && sgid == egid && is_dumpable() &&
	       syscall(SYS_capget, &head, caps) == 0 && (caps[0].permitted | caps[1].permitted) == 0;
}

int
plx_proc_reach(uint32_t pid, uint32_t fd)
{
	struct creds self, other;
	char path[64], who[16];
	struct stat st, target;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st) != 0) /* it has ended; or processes of others are hidden */
		return errno == ENOENT && kill(pid, 0) != 0 && errno == EPERM ? -EPERM : 0;
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
	if (stat(path, &target) != 0) /* nor may anybody look into one that has just ended */
		return (errno == EACCES || errno == EPERM) && !plx_proc_gone(pid, 0) ? -EPERM : 0;
	if (st.st_uid == geteuid() && st.st_gid == getegid() && is_plain())
		return 0; /* most are like this */
	snprintf(who, sizeof(who), "%u", pid);
	if (!creds_read("self", &self) || !creds_read(who, &other))
		return 0; /* nobody knows */
	return may_open(&other, &self, is_dumpable()) ? 0 : -EPERM;
}

uint64_t
plx_proc_id(const struct plx_proc *p)
{
	uint64_t h = (p->host ^ p->start * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return (h ^ h >> 32 ^ (uint64_t)p->pid << 1) | 1;
}

/*
 * This process, as it was read once. A forked child finds the pid of its parent, and reads anew.
 * Threads that read at the same time write the same.
 */
static struct {
	_Atomic uint64_t host, start;
	_Atomic uint32_t pid; /* 0: not read, or it could not be */
} self;

int
plx_proc_self(struct plx_proc *out)
{
	struct plx_proc p = {.pid = getpid()};
	struct stat_line s;
	int rc;

	/* pairs with the release below */
	if (atomic_load_explicit(&self.pid, memory_order_acquire) == p.pid) {
		p.host = atomic_load_explicit(&self.host, memory_order_relaxed);
		p.start = atomic_load_explicit(&self.start, memory_order_relaxed);
		*out = p;
		return 0;
	}
	rc = host_read(&p.host);
	if (rc == 0)
		rc = proc_stat(p.pid, &s);
	if (rc != 0)
		return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ? rc : -EIO;
	p.start = s.start;
	*out = p;
	atomic_store_explicit(&self.host, p.host, memory_order_relaxed);
	atomic_store_explicit(&self.start, p.start, memory_order_relaxed);
	/* pairs with the acquire above: who sees the pid sees the rest */
	atomic_store_explicit(&self.pid, p.pid, memory_order_release);
	return 0;
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
