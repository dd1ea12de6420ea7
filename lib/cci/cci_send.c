/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_send.c - messages
 */
#include <errno.h>
#include <string.h>

#include "cci_int.h"

#define SEND_FLAGS (CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT)

#define WAIT_LONG 1000 /* empty turns after which endpoints of other threads run turns, too */

/*
 * Others may use the endpoint while this one waits. The peer may be an endpoint of the same
 * thread, or of one that makes no calls now: other endpoints of the process run turns.
 * @param idle consecutive empty turns; kept here
 */
static void
wait_turn(struct cci_ep *ep, unsigned *idle)
{
	enum plx_offer offer = PLX_OFFER_NOT;
	bool found = plx_worker_progress(ep->core) != 0;

	if (!found)
		offer = plx_worker_offers(ep->core);
	cci_unlock(ep);
	*idle = found ? 0 : *idle + 1;
	if (found || cci_others_turn(ep, *idle > WAIT_LONG) == 0)
		plx_worker_offer(ep->core, offer);
	cci_lock(ep);
}

/* Wait for a send buffer, if the caller blocks. */
static __rte_noinline int
wait_for_room(struct cci_conn *c, int flags)
{
	const uint32_t id = c->chan.id;
	struct cci_ep *ep = c->ep;
	unsigned idle = 0;

	while (ep->n_sends >= ep->sends_max) {
		if ((flags & CCI_FLAG_BLOCKING) == 0)
			return -ENOBUFS;
		wait_turn(ep, &idle);
		/* another thread has ended it, and perhaps made a new one in its memory */
		if (c->chan.id != id)
			return -ECONNRESET;
	}
	return 0;
}

/* Its fields, other than the data. */
static inline void
op_fill(struct plx_chan_op *op, struct cci_conn *c, const void *context, int flags)
{
	op->item.chan = &c->chan;
	op->item.chan_id = c->chan.id;
	op->item.flags = flags;
	op->context = (void *)(uintptr_t)context;
}

static inline int
op_get(struct cci_conn *c, const void *context, int flags, struct plx_chan_op **out)
{
	struct cci_ep *ep = c->ep;
	struct plx_chan_op *op;
	int rc;

	rc = likely(ep->n_sends < ep->sends_max) ? 0 : wait_for_room(c, flags);
	if (likely(rc == 0))
		rc = plx_chan_err(&c->chan);
	if (unlikely(rc != 0))
		return rc;
	op = plx_chan_op_get(plx_worker_chans(ep->core));
	if (unlikely(op == NULL))
		return -ENOMEM;
	op_fill(op, c, context, flags);
	op->urgent = (flags & CCI_FLAG_BLOCKING) != 0;
	*out = op;
	return 0;
}

int
cci_op_get(struct cci_conn *c, const void *context, int flags, struct plx_chan_op **out)
{
	return op_get(c, context, flags, out);
}

int
cci_op_data(struct cci_ep *ep, struct plx_chan_op *op, const struct iovec *iov, uint32_t n,
	uint32_t len, int flags)
{
	uint8_t *to = op->bytes;

	op->len = len;
	if (len > sizeof(op->bytes)) {
		if ((flags & CCI_FLAG_NO_COPY) && n == 1) {
			op->data = iov->iov_base;
			return 0;
		}
		to = plx_chan_buf_get(plx_worker_chans(ep->core));
		if (to == NULL)
			return -ENOMEM;
		op->own_buf = true;
	}
	op->data = to;
	for (uint32_t i = 0; i < n; i++) {
		if (iov[i].iov_len != 0)
			plx_copy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	return 0;
}

/* @return its status */
static __rte_noinline int
wait_for_end(struct cci_ep *ep, struct plx_chan_op *op)
{
	unsigned idle = 0;
	int status;

	while (!op->item.answered)
		wait_turn(ep, &idle);
	status = cci_status(op->item.status);
	plx_chan_op_put(plx_worker_chans(ep->core), op);
	return status;
}

static inline int
op_run(struct cci_conn *c, struct plx_chan_op *op, int flags)
{
	struct cci_ep *ep = c->ep;

	ep->n_sends++;
	plx_worker_chan_post(ep->core, op);
	cci_started(ep);
	/* a group's messages are sent at the end of a turn, which also processes joins */
	if (unlikely(c->pub.attribute == CCI_CONN_ATTR_UU_MC_TX))
		plx_worker_progress(ep->core);
	return likely((flags & CCI_FLAG_BLOCKING) == 0) ? CCI_SUCCESS : wait_for_end(ep, op);
}

int
cci_op_run(struct cci_conn *c, struct plx_chan_op *op, int flags)
{
	return op_run(c, op, flags);
}

/*
 * The most frequent case: short, without anything to remember. With the lock. One body, instantiated
 * for each mode of the gate: nothing stands behind the lock, or the reactor's turns do.
 * @return whether it is sent; if not nothing has happened
 */
static __rte_always_inline bool
send_short(struct cci_conn *c, const void *msg, uint32_t len, const void *context, int flags, enum plx_gate_mode mode)
{
	enum plx_gate_pass pass = PLX_GATE_ENTERED;
	struct cci_ep *ep = c->ep;
	struct plx_chan_op *op;
	int rc;

	if (unlikely(ep->n_sends >= ep->sends_max))
		return false;
	if (mode == PLX_GATE_SHARED && (pass = plx_worker_begin(ep->core)) == PLX_GATE_NOT)
		return false;
	op = plx_chan_op_short(plx_worker_chans(ep->core), &c->chan, len);
	if (likely(op != NULL)) {
		if (likely(len == 8))
			memcpy(op->bytes, msg, 8);
		else if (len != 0)
			plx_copy(op->bytes, msg, len);
		rc = plx_chan_tx_short(&c->chan, op, len);
		op_fill(op, c, context, flags);
		op->len = len;
		ep->n_sends++;
		plx_worker_chan_post_short(ep->core, &c->chan, op, rc);
	}
	if (mode == PLX_GATE_SHARED)
		plx_worker_end(ep->core, pass, true);
	return op != NULL;
}

static __rte_noinline bool
send_shared(struct cci_conn *c, const void *msg, uint32_t len, const void *context, int flags)
{
	return send_short(c, msg, len, context, flags, PLX_GATE_SHARED);
}

/* With a descriptor an operation may have to wake the program: see cci_started(). */
static inline bool
send_quick(struct cci_conn *c, const void *msg, uint32_t len, const void *context, int flags)
{
	if (likely(c->ep->plain))
		return send_short(c, msg, len, context, flags, PLX_GATE_LOCKED);
	return !c->ep->has_fd && !plx_worker_is_held(c->ep->core) && send_shared(c, msg, len, context, flags);
}

/* Any that passed its checks, with the lock, which is dropped. */
static __rte_noinline int
send_any(struct cci_conn *c, const struct iovec *iov, uint32_t n, uint32_t len, const void *context, int flags)
{
	struct cci_ep *ep = c->ep;
	struct plx_chan_op *op;
	int rc = op_get(c, context, flags, &op), status;

	if (likely(rc == 0)) {
		rc = cci_op_data(ep, op, iov, n, len, flags);
		if (likely(rc == 0)) {
			status = op_run(c, op, flags);
			cci_unlock(ep);
			return status;
		}
		plx_chan_op_put(plx_worker_chans(ep->core), op);
	}
	cci_unlock(ep);
	return cci_status(rc);
}

/* The same without the lock: several threads use the endpoint. */
static inline int
send_msg(struct cci_conn *c, const struct iovec *iov, uint32_t n, uint32_t len, const void *context,
	int flags)
{
	cci_lock(c->ep);
	if (n == 1 && (flags & ~CCI_FLAG_SILENT) == 0 && send_quick(c, iov->iov_base, len, context, flags)) {
		cci_unlock(c->ep);
		return CCI_SUCCESS;
	}
	return send_any(c, iov, n, len, context, flags);
}

/* Without an event nobody knows when a buffer that was not copied is free, except on RO. */
static inline bool
flags_are_good(cci_connection_t *c, int flags)
{
	const int lost = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;

	return (flags & ~SEND_FLAGS) == 0 && c->attribute != CCI_CONN_ATTR_UU_MC_RX &&
		((flags & (lost | CCI_FLAG_BLOCKING)) != lost || c->attribute == CCI_CONN_ATTR_RO);
}

/* The rare parts of cci_send() are separate, so that it saves few registers. */
static __rte_noinline int
send_checked(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
	int flags)
{
	struct iovec iov = {(void *)(uintptr_t)msg_ptr, msg_len};

	if (plx_mem_is_inherited(connection))
		return CCI_ERR_DISCONNECTED;
	if (connection == NULL || (msg_ptr == NULL && msg_len != 0) ||
		!flags_are_good(connection, flags))
		return CCI_EINVAL;
	if (msg_len > connection->max_send_size)
		return CCI_EMSGSIZE;
	return send_msg(cci_conn_of(connection), &iov, 1, msg_len, context, flags);
}

/* It was not short, or the reactor has the turns. With the lock. */
static __rte_noinline int
send_late(struct cci_conn *c, const void *msg, uint32_t len, const void *context, int flags)
{
	struct iovec iov = {(void *)(uintptr_t)msg, len};

	if (likely(flags_are_good(&c->pub, flags)))
		return send_any(c, &iov, 1, len, context, flags);
	cci_unlock(c->ep);
	return CCI_EINVAL;
}

int
cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
	int flags)
{
	struct cci_conn *c;

	if (unlikely(connection == NULL || plx_mem_is_inherited(connection) || msg_ptr == NULL || (flags & ~CCI_FLAG_SILENT) != 0 ||
		    msg_len > connection->max_send_size))
		return send_checked(connection, msg_ptr, msg_len, context, flags);
	c = cci_conn_of(connection);
	if (unlikely(!plx_lock_take_quick(&c->ep->lock)))
		return send_checked(connection, msg_ptr, msg_len, context, flags);
	if (unlikely(!send_quick(c, msg_ptr, msg_len, context, flags)))
		return send_late(c, msg_ptr, msg_len, context, flags);
	plx_lock_drop_quick(&c->ep->lock);
	return CCI_SUCCESS;
}

int
cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
	const void *context, int flags)
{
	uint64_t len = 0;

	if (plx_mem_is_inherited(connection))
		return CCI_ERR_DISCONNECTED;
	if (connection == NULL || (data == NULL && iovcnt != 0) ||
		!flags_are_good(connection, flags))
		return CCI_EINVAL;
	for (uint32_t i = 0; i < iovcnt; i++) {
		if (data[i].iov_base == NULL && data[i].iov_len != 0)
			return CCI_EINVAL;
		if (data[i].iov_len > connection->max_send_size)
			return CCI_EMSGSIZE;
		len += data[i].iov_len;
	}
	if (len > connection->max_send_size)
		return CCI_EMSGSIZE;
	return send_msg(cci_conn_of(connection), data, iovcnt, len, context, flags);
}
