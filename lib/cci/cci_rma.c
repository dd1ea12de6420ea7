/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_rma.c - registrations, and moving bytes between them
 *
 * Design notes
 * - A handle names a region to the peer and proves the right to it: its slot in the process's
 *   table, a token of 64 random bits, base and length. The target checks all of it at each
 *   access, so a deregistered or forged handle is refused.
 * - Nobody checks the initiator's own memory again. So it stays registered while an operation in
 *   flight moves bytes from or to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cci_int.h"

#define RMA_FLAGS                                                                                  \
	(CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT | CCI_FLAG_READ | CCI_FLAG_WRITE | \
		CCI_FLAG_FENCE)

/* The words of a handle. */
struct handle {
	uint32_t index, zero;
	uint64_t token;
	uint64_t base;
	uint64_t len;
};
_Static_assert(sizeof(struct handle) == sizeof(struct cci_rma_handle), "ABI");

static struct cci_mr *
mr_find(struct cci_ep *ep, cci_rma_handle_t *h)
{
	struct handle in;
	struct cci_mr *m;

	memcpy(&in, h, sizeof(in));
	LIST_FOREACH(m, &ep->mrs[in.index % CCI_MR_HASH], link) {
		if (memcmp(&m->pub, h, sizeof(*h)) == 0)
			break;
	}
	return m;
}

int
cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **rma_handle)
{
	struct cci_ep *ep = cci_ep_of(endpoint);
	uint8_t rights = 0;
	struct cci_mr *m;
	struct handle h;
	int rc;

	if (endpoint == NULL || start == NULL || rma_handle == NULL || length == 0 ||
		length > UINTPTR_MAX - (uintptr_t)start ||
		(flags & ~(CCI_FLAG_READ | CCI_FLAG_WRITE)) != 0)
		return CCI_EINVAL;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return CCI_ENOMEM;
	if (flags & CCI_FLAG_READ)
		rights |= PLX_REGION_READ;
	if (flags & CCI_FLAG_WRITE)
		rights |= PLX_REGION_WRITE;
	rc = plx_region_add((uintptr_t)start, length, rights, &m->key);
	if (rc != 0) {
		free(m);
		return cci_status(rc);
	}
	m->base = start;
	m->len = length;
	h = (struct handle){m->key.index, 0, m->key.token ^ plx_worker_key_domain(ep->core),
		(uintptr_t)start, length};
	memcpy(&m->pub, &h, sizeof(h));
	cci_lock(ep);
	LIST_INSERT_HEAD(&ep->mrs[m->key.index % CCI_MR_HASH], m, link);
	cci_unlock(ep);
	*rma_handle = &m->pub;
	return CCI_SUCCESS;
}

/* A reactor may know that an operation has completed that counts here. */
static bool
is_busy(struct cci_ep *ep, const struct cci_mr *m)
{
	cci_hear(ep, &m->n_ops);
	return m->n_ops > 0;
}

int
cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle)
{
	struct cci_ep *ep = cci_ep_of(endpoint);
	bool busy = false;
	struct cci_mr *m;

	if (endpoint == NULL || rma_handle == NULL)
		return CCI_EINVAL;
	if (plx_worker_is_inherited(ep->core))
		return CCI_SUCCESS;
	cci_lock(ep);
	m = mr_find(ep, rma_handle);
	if (m != NULL) {
		busy = is_busy(ep, m);
		if (!busy)
			LIST_REMOVE(m, link);
	}
	cci_started(ep);
	cci_unlock(ep);
	if (m == NULL)
		return CCI_EINVAL;
	if (busy)
		return CCI_EBUSY;
	plx_region_remove(&m->key);
	free(m);
	return CCI_SUCCESS;
}

void
cci_mrs_free(struct cci_ep *ep)
{
	struct cci_mr *m;

	for (unsigned i = 0; i < CCI_MR_HASH; i++) {
		while ((m = LIST_FIRST(&ep->mrs[i])) != NULL) {
			LIST_REMOVE(m, link);
			plx_region_remove(&m->key);
			free(m);
		}
	}
}

/* The local registration, if the bytes are inside and it belongs to this endpoint. */
static struct cci_mr *
local_of(struct cci_ep *ep, cci_rma_handle_t *h, uint64_t offset, uint64_t len)
{
	struct cci_mr *m = mr_find(ep, h);

	return m == NULL || offset > m->len || len > m->len - offset ? NULL : m;
}

static bool
flags_are_good(int flags)
{
	const int both = CCI_FLAG_READ | CCI_FLAG_WRITE;

	return (flags & ~RMA_FLAGS) == 0 && (flags & both) != 0 && (flags & both) != both;
}

int
cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	cci_rma_handle_t *local_handle, uint64_t local_offset, cci_rma_handle_t *remote_handle,
	uint64_t remote_offset, uint64_t data_len, const void *context, int flags)
{
	struct iovec iov = {(void *)(uintptr_t)msg_ptr, msg_len};
	struct cci_conn *c = cci_conn_of(connection);
	struct plx_chan_op *op;
	struct handle remote;
	struct cci_ep *ep;
	struct cci_mr *local;
	int rc, status;

	if (plx_mem_is_inherited(connection))
		return CCI_ERR_DISCONNECTED;
	if (connection == NULL || local_handle == NULL || remote_handle == NULL || data_len == 0 ||
		connection->attribute > CCI_CONN_ATTR_RU || !flags_are_good(flags) ||
		(msg_ptr == NULL && msg_len != 0))
		return CCI_EINVAL;
	if (msg_len > connection->max_send_size)
		return CCI_EMSGSIZE;
	ep = c->ep;
	memcpy(&remote, remote_handle, sizeof(remote));
	cci_lock(ep);
	local = local_of(ep, local_handle, local_offset, data_len);
	if (local == NULL) {
		rc = -EINVAL;
		goto out;
	}
	local->n_ops++; /* others may use the endpoint while this waits for room */
	/* The target checks each piece; here all of it, so that nothing is moved in part. */
	rc = remote.zero != 0 || remote_offset > remote.len || data_len > remote.len - remote_offset
		? -EKEYREJECTED : cci_op_get(c, context, flags, &op);
	if (rc != 0)
		goto drop;
	/* The message is copied whatever the flags say: its buffer has no event of its own. */
	rc = cci_op_data(ep, op, &iov, 1, msg_len, 0);
	if (rc != 0) {
		plx_chan_op_put(plx_worker_chans(ep->core), op);
		goto drop;
	}
	op->has_msg = msg_len != 0;
	op->rma.len = data_len;
	op->rma.local = local->base + local_offset;
	op->item.event[0] = (uintptr_t)local; /* until it is an event */
	op->rma.remote = remote.base + remote_offset;
	op->rma.index = remote.index;
	op->rma.token = remote.token;
	op->rma.get = (flags & CCI_FLAG_READ) != 0;
	op->rma.fence = (flags & CCI_FLAG_FENCE) != 0;
	status = cci_op_run(c, op, flags);
	cci_unlock(ep);
	return status;
drop:
	local->n_ops--;
out:
	cci_unlock(ep);
	return cci_status(rc);
}
