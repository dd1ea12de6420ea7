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

/* @return whether the table is mapped, or can be now */
static inline bool
has_windows(struct shm_peer *p)
{
	if (likely(p->windows != NULL))
		return true;
	if (p->no_windows || p->seg == NULL || !shm_queue(p->peer.q)->windows)
		return false;
	windows_open(p);
	return !p->no_windows;
}

const void *
shm_peer_view(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map)
{
	struct shm_peer *p = shm_peer(peer);

	/* Our own memory has no mapping that would hold it. */
	return !p->self && !p->gone && has_windows(p) ? plx_windows_view(p->windows, addr, len, map) : NULL;
}

bool
shm_is_mapped(struct shm_peer *p, uint64_t addr)
{
	uint64_t len = 1;

	return has_windows(p) && plx_windows_find(p->windows, addr, &len) != NULL;
}

/* Copy to or from memory that is mapped here. @return whether it is, and was copied */
static inline bool
copy_piece(struct plx_windows *w, bool put, const struct plx_rma_piece *piece)
{
	char *local = piece->local;

	for (uint64_t done = 0, n; done < piece->len; done += n) {
		void *there;

		n = piece->len - done;
		there = plx_windows_find(w, piece->remote + done, &n);
		if (there == NULL)
			return false;
		plx_copy(put ? there : local + done, put ? local + done : there, n);
	}
	return true;
}

/* @return how many of the pieces are mapped here, and were copied: the first ones */
static unsigned
copy_mapped(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	struct shm_peer *p = shm_peer(peer);
	unsigned i = 0;

	if (has_windows(p))
		while (i < n && copy_piece(p->windows, put, &pieces[i]))
			i++;
	PLX_STAT_ADD(peer->q->stat.rma_mapped, i);
	return i;
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
	const struct plx_rma_piece piece = {op->local, op->remote, op->len, op->mem_type};
	struct plx_queue *q = op->peer->q;
	int rc;

	if (p->gone)
		return -ECONNRESET;
	if ((op->peer->caps & PLX_DEV_GET) && copy_mapped(op->peer, op->put, &piece, 1) == 1) {
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

/* Add to a list that the kernel walks; memory that continues the last entry joins it. */
static unsigned
cma_add(struct iovec *v, unsigned n, void *addr, size_t len)
{
	if (n > 0 && (uintptr_t)v[n - 1].iov_base + v[n - 1].iov_len == (uintptr_t)addr) {
		v[n - 1].iov_len += len;
		return n;
	}
	v[n] = (struct iovec){addr, len};
	return n + 1;
}

/* @return how many of these the kernel has moved */
static unsigned
cma_burst(pid_t pid, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	struct iovec local[PLX_RMA_BURST], remote[PLX_RMA_BURST];
	unsigned i, n_local = 0, n_remote = 0;
	uint64_t bytes = 0;
	ssize_t moved;

	for (i = 0; i < n; i++) {
		n_local = cma_add(local, n_local, pieces[i].local, pieces[i].len);
		n_remote = cma_add(remote, n_remote, (void *)(uintptr_t)pieces[i].remote, pieces[i].len);
	}
	moved = put ? process_vm_writev(pid, local, n_local, remote, n_remote, 0)
		    : process_vm_readv(pid, local, n_local, remote, n_remote, 0);
	/* A transfer stops where memory ends; shm_rma() reports the error. */
	for (i = 0; i < n && moved >= 0 && bytes + pieces[i].len <= (uint64_t)moved; i++)
		bytes += pieces[i].len;
	return i;
}

unsigned
shm_rma_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	struct shm_peer *p = shm_peer(peer);
	struct plx_queue *q = peer->q;
	uint64_t bytes = 0;
	unsigned done;

	if (p->gone || (peer->caps & PLX_DEV_GET) == 0)
		return 0;
	done = copy_mapped(peer, put, pieces, n);
	if (done < n && p->pid != 0)
		done += cma_burst(p->pid, put, pieces + done, n - done);
	for (unsigned i = 0; i < done; i++)
		bytes += pieces[i].len;
	PLX_STAT_ADD(q->stat.rma_bytes, bytes);
	PLX_STAT_ADD(q->stat.rma_ops, done);
	return done;
}

void *
shm_peer_shared(struct plx_peer *peer)
{
	struct shm_peer *p = shm_peer(peer);

	return p->seg != NULL ? p->seg->shared : NULL;
}
