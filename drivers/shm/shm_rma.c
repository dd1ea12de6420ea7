/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_rma.c - a peer's memory: its UCP allocations are mapped, the rest by cross-memory attach
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "plx_copy.h"
#include "shm_int.h"

int
shm_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out)
{
	const struct shm_peer *p = (const struct shm_peer *)peer;

	if (p->self)
		return -EOPNOTSUPP;
	plx_window_table_of(&(struct plx_proc){p->addr.host, p->addr.proc, p->addr.pid}, out);
	return 0;
}

static void
windows_open(struct shm_peer *p)
{
	struct plx_seg_name name;
	int rc;

	plx_window_table_of(&(struct plx_proc){p->addr.host, p->addr.proc, p->addr.pid}, &name);
	rc = plx_windows_open(&name, &p->windows);
	p->no_windows = rc != 0;
	if (rc != 0)
		PLX_LOG(DEBUG, shm, "can't map the memory of process %u: %s", p->addr.pid, strerror(-rc));
}

void
shm_windows_close(struct shm_peer *p)
{
	plx_windows_close(p->windows);
	p->windows = NULL;
}

/* Copy to or from memory that is mapped here. @return whether it is, and was copied */
static bool
copy_mapped(const struct plx_rma_op *op)
{
	struct shm_peer *p = shm_peer(op->peer);
	char *local = op->local;

	if (p->windows == NULL) {
		if (p->no_windows || p->seg == NULL || !shm_queue(op->peer->q)->windows)
			return false;
		windows_open(p);
		if (p->no_windows)
			return false;
	}
	for (uint64_t done = 0, n; done < op->len; done += n) {
		void *there;

		n = op->len - done;
		there = plx_windows_find(p->windows, op->remote + done, &n);
		if (there == NULL)
			return false;
		plx_copy(op->put ? there : local + done, op->put ? local + done : there, n);
	}
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
		done += n; /* short if the remainder is not mapped there, or over 2 GiB */
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
		/* Also to ourselves: only the address claims that, and a bad one is an error. */
		rc = p->pid != 0 ? cma(op, p->pid) : -EPERM;
		/* The kernel finds no memory by the pid of a process whose first thread has
		 * ended. */
		if (rc == -EPERM || rc == -ENOSYS || (rc == -ECONNRESET && !plx_meet_gone(p->addr.proc))) {
			/* The kernel refuses or can't: disable it for this peer. */
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
	/* A transfer stops where memory ends; shm_rma() reports the error. */
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
	if (done < n && p->pid != 0)
		done += cma_burst(ops + done, n - done, p->pid);
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
