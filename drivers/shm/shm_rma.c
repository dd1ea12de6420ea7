/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_rma.c - private memory of a peer by cross-memory attach, and its shared area
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "shm_int.h"

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
	if (p->self) {
		/* By the kernel's hand as well: a bad address ends in an error. */
		rc = cma(op, p->addr.pid);
		if (rc == -EPERM || rc == -ENOSYS) {
			void *remote = (void *)(uintptr_t)op->remote;

			memmove(op->put ? remote : op->local, op->put ? op->local : remote, op->len);
			rc = 0;
		}
		if (rc != 0)
			return rc;
	} else if (op->peer->caps & PLX_DEV_GET) {
		rc = cma(op, p->addr.pid);
		if (rc == -EPERM || rc == -ENOSYS) {
			/* Not allowed to: this peer goes without from now on. */
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

void *
shm_peer_shared(struct plx_peer *peer)
{
	struct shm_peer *p = shm_peer(peer);

	return p->seg != NULL ? p->seg->shared : NULL;
}
