/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_rma.c - a peer's memory: what it allocated is mapped, the rest by cross-memory attach
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plx_copy.h"
#include "shm_int.h"

/* The first line of a segment: its windows, and whether it is the one that was meant. */
struct head {
	uint64_t magic, uid, len;
	uint32_t counts[4];
	uint64_t windows_ino, windows_len;
	uint32_t windows_fd, fences;
};
_Static_assert(offsetof(struct head, windows_ino) == offsetof(struct shm_seg, windows_ino) &&
	offsetof(struct head, windows_fd) == offsetof(struct shm_seg, windows_fd), "shared layout");

/* Its segment is the owner's to map, who may not have done so yet: here only its head is read. */
int
shm_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out)
{
	const struct shm_peer *p = (const struct shm_peer *)peer;
	struct head head;
	struct stat st;
	ssize_t n;
	int fd;

	if (p->self)
		return -EOPNOTSUPP;
	fd = plx_seg_open_of(p->addr.pid, p->addr.fd, O_RDONLY, &st);
	if (fd < 0)
		return fd;
	n = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (n != sizeof(head) || head.magic != SHM_MAGIC || head.uid != p->addr.uid)
		return -ESRCH;
	*out = (struct plx_seg_name){.proc = {p->addr.host, p->addr.start, p->addr.pid},
		.fd = head.windows_fd, .ino = head.windows_ino, .len = head.windows_len};
	return 0;
}

static void
windows_open(struct shm_peer *p)
{
	/* written by the peer: once, and checked by who opens it */
	const struct plx_seg_name name = {.proc = {p->addr.host, p->addr.start, p->addr.pid},
		.fd = __atomic_load_n(&p->seg->windows_fd, __ATOMIC_RELAXED),
		.ino = __atomic_load_n(&p->seg->windows_ino, __ATOMIC_RELAXED),
		.len = __atomic_load_n(&p->seg->windows_len, __ATOMIC_RELAXED)};
	int rc = plx_windows_open(&name, &p->windows);

	p->no_windows = rc != 0;
	if (rc != 0)
		PLX_LOG(DEBUG, shm, "no windows of process %u: %s", p->addr.pid, strerror(-rc));
}

void
shm_windows_close(struct shm_peer *p)
{
	plx_windows_close(p->windows);
	p->windows = NULL;
}

/* What lies in memory that is mapped here. @return whether it did, and was copied */
static bool
copy_mapped(const struct plx_rma_op *op)
{
	struct shm_peer *p = shm_peer(op->peer);
	void *there;

	if (p->windows == NULL) {
		if (p->no_windows || p->seg == NULL || !shm_queue(op->peer->q)->windows)
			return false;
		windows_open(p);
		if (p->no_windows)
			return false;
	}
	there = plx_windows_find(p->windows, op->remote, op->len);
	if (there == NULL)
		return false;
	plx_copy(op->put ? there : op->local, op->put ? op->local : there, op->len);
	PLX_STAT_INC(op->peer->q->stat.rma_mapped);
	return true;
}

static int
cma(const struct plx_rma_op *op, pid_t pid)
{
	size_t done = 0;

	while (done < op->len) {
		struct iovec local = {(char *)op->local + done, op->len - done};
		struct iovec remote = {(void *)(uintptr_t)(op->remote + done), op->len - done};
		ssize_t n = op->put ? process_vm_writev(pid, &local, 1, &remote, 1, 0)
				    : process_vm_readv(pid, &local, 1, &remote, 1, 0);

		if (n < 0)
			return errno == ESRCH ? -ECONNRESET : -errno;
		if (n == 0)
			return -EFAULT;
		done += n; /* short when the rest is not mapped there, or over 2 GiB */
	}
	return 0;
}

int
shm_rma(const struct plx_rma_op *op)
{
	struct shm_peer *p = shm_peer(op->peer);
	struct plx_queue *q = op->peer->q;
	int rc;

	if (p->gone)
		return -ECONNRESET;
	if ((op->peer->caps & PLX_DEV_GET) && copy_mapped(op)) {
		rc = 0;
	} else if (op->peer->caps & PLX_DEV_GET) {
		/* To ourselves as well: that it is us is what an address says, and a bad one ends in an error. */
		rc = cma(op, p->addr.pid);
		if (rc == -EPERM || rc == -ENOSYS || (rc == -ECONNRESET && plx_proc_headless(p->addr.pid))) {
			/* The kernel does not, or can't: this peer goes without from now on. */
			op->peer->caps &= ~(PLX_DEV_GET | PLX_DEV_PUT);
			PLX_STAT_INC(q->stat.rma_refused);
			return -EOPNOTSUPP;
		}
		if (rc != 0)
			return rc;
	} else {
		return -EOPNOTSUPP;
	}
	PLX_STAT_INC(q->stat.rma_ops);
	PLX_STAT_ADD(q->stat.rma_bytes, op->len);
	return 0;
}

/* @return how many of these the kernel has moved */
static unsigned
cma_burst(const struct plx_rma_op *ops, unsigned n, pid_t pid)
{
	struct iovec local[PLX_RMA_BURST], remote[PLX_RMA_BURST];
	uint64_t bytes = 0;
	ssize_t moved;
	unsigned i;

	for (i = 0; i < n; i++) {
		local[i] = (struct iovec){ops[i].local, ops[i].len};
		remote[i] = (struct iovec){(void *)(uintptr_t)ops[i].remote, ops[i].len};
	}
	moved = ops->put ? process_vm_writev(pid, local, n, remote, n, 0)
			 : process_vm_readv(pid, local, n, remote, n, 0);
	/* It ends where memory ends; the errors are for shm_rma() to tell. */
	for (i = 0; i < n && moved >= 0 && bytes + ops[i].len <= (uint64_t)moved; i++)
		bytes += ops[i].len;
	return i;
}

unsigned
shm_rma_burst(const struct plx_rma_op *ops, unsigned n)
{
	struct shm_peer *p = shm_peer(ops->peer);
	struct plx_queue *q = ops->peer->q;
	unsigned i, done = 0;

	if (p->gone || (ops->peer->caps & PLX_DEV_GET) == 0)
		return 0;
	while (done < n && copy_mapped(&ops[done]))
		done++;
	if (done < n)
		done += cma_burst(ops + done, n - done, p->addr.pid);
	for (i = 0; i < done; i++)
		PLX_STAT_ADD(q->stat.rma_bytes, ops[i].len);
	PLX_STAT_ADD(q->stat.rma_ops, done);
	return done;
}

void *
shm_peer_shared(struct plx_peer *peer)
{
	struct shm_peer *p = shm_peer(peer);

	return p->seg != NULL ? p->seg->shared : NULL;
}
