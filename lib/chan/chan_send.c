/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_send.c - operations of a channel: order, acknowledgement, sending again
 *
 * Design notes
 * - ops has the incomplete operations, in the order of issue; next is the first that is not
 *   completely sent. On RO a message waits until all earlier RMA is complete, and RMA with a
 *   message delays later operations until the message is sent. On RU the message of an RMA joins
 *   the end when the RMA is complete.
 * - Numbers are assigned when a message is sent. After RNR next goes back to the message that
 *   found no buffer, and so do the numbers. So they do after COPY.
 * - A long message whose buffer the application does not touch is announced (FETCH), and the
 *   receiver reads it, in its turn and at once. With the same system call, and after the data, it
 *   reads a word of the operation, which is cleared before the application gets the buffer back;
 *   so later contents are never taken for the message. If that fails for any reason the receiver
 *   asks for the message (COPY), and all later ones are sent.
 * - A completion that nobody waits for may come late: the ACK waits for a message to go with.
 *   With a send timeout, or when the application blocks, the message requests it.
 */
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "chan_int.h"

/* @return whether its data is in a buffer of the application. */
static inline bool
is_users(const struct plx_chan_op *op)
{
	return op->data != op->bytes && !op->own_buf;
}

static void
op_end(struct plx_chans *cs, struct plx_chan_op *op, int status)
{
	if (unlikely(is_users(op)))
		/* before the application learns of it */
		__atomic_store_n(&op->lent, 0, __ATOMIC_RELEASE);
	op->item.status = status;
	chan_tell(cs, &op->item);
}

/* Unlink and complete. */
static void
op_out(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op, int status)
{
	if (c->next == op)
		c->next = TAILQ_NEXT(op, link);
	TAILQ_REMOVE(&c->ops, op, link);
	op_end(cs, op, status);
}

/* Complete what is acknowledged or moved. */
static void
send_reap(struct plx_chans *cs, struct plx_chan *c)
{
	struct plx_chan_op *op, *after;

	for (op = TAILQ_FIRST(&c->ops); op != NULL && op != c->next; op = after) {
		after = TAILQ_NEXT(op, link);
		if (op->state == PLX_CHAN_OP_SENT && (int32_t)(op->seq - c->acked) < 0)
			op_out(cs, c, op, 0);
		else if (op->state == PLX_CHAN_OP_OVER)
			op_out(cs, c, op, op->item.status);
		else if (c->attr == PLX_CHAN_RO || op->state == PLX_CHAN_OP_SENT)
			break;
	}
}

/* @return whether the receiver should read it itself. */
static inline bool
is_fetched(const struct plx_chans *cs, const struct plx_chan *c, const struct plx_chan_op *op)
{
	return op->len >= cs->fetch_min && is_users(op) && !c->copies &&
		(c->ep->peer->caps & PLX_DEV_GET) != 0;
}

static __rte_noinline int
fetch_tx(const struct plx_chan *c, struct plx_chan_op *op)
{
	struct plx_wire_chan_fetch h = {.msg = op->hdr, .addr = (uintptr_t)op->data,
		.lent_addr = (uintptr_t)&op->lent, .len = op->len};
	struct plx_tx tx = {.peer = c->ep->peer, .hdr = &h, .hdr_len = sizeof(h),
		.op = PLX_WIRE_CHAN_FETCH};

	/* the device orders it before the message */
	op->lent = plx_wire_chan_lent(&op->hdr);
	return plx_peer_tx(&tx);
}

/* A message and the note for the peer. */
static inline int
reliable_tx(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op)
{
	const uint32_t rest = sizeof(op->hdr) - sizeof(uint64_t);
	struct plx_tx tx;
	uint64_t word;
	int rc;

	op->hdr = (struct plx_wire_chan_msg){.to = c->remote, .number = c->tx_seq,
		.ack = c->rx_next, .urgent = op->urgent || op->due_ticks != 0};
	if (likely(op->data == op->bytes && op->len + rest <= c->ep->peer->short_max)) {
		memcpy(&word, &op->hdr, sizeof(word));
		rc = plx_ep_tx_short(c->ep, PLX_WIRE_CHAN_MSG, word,
			(const uint8_t *)&op->hdr + sizeof(word), rest + op->len);
	} else if (is_fetched(cs, c, op)) {
		rc = fetch_tx(c, op);
	} else {
		tx = (struct plx_tx){.peer = c->ep->peer, .hdr = &op->hdr,
			.hdr_len = sizeof(op->hdr), .data = op->data, .len = op->len,
			.op = PLX_WIRE_CHAN_MSG};
		rc = plx_peer_tx(&tx);
	}
	if (c->owes_ack && rc == 0)
		plx_chan_ack_told(cs, c);
	return rc;
}

static inline int
msg_tx(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op)
{
	if (likely(chan_reliable(c)))
		return reliable_tx(cs, c, op);
	return chan_tx(c->ep, PLX_WIRE_CHAN_LOSSY, c->remote, 0, op);
}

/* The device has the message of op. */
static inline void
msg_sent(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op)
{
	PLX_STAT_INC(cs->stat.msgs);
	op->seq = c->tx_seq++;
	op->state = PLX_CHAN_OP_SENT;
	c->next = TAILQ_NEXT(op, link);
	if (unlikely(!chan_reliable(c)))
		op_out(cs, c, op, 0);
}

/* RMA at the head of the unsent operations. @return whether to look at the next operation */
static bool
rma_step(struct plx_chans *cs, struct plx_chan *c, struct plx_chan_op *op)
{
	if (op->state == PLX_CHAN_OP_NEW) {
		if (op->rma.fence && c->n_moves > 0)
			return false;
		PLX_STAT_INC(cs->stat.rmas);
		op->state = PLX_CHAN_OP_MOVES;
		c->n_moves++;
		cs->move(cs, op);
		return true;
	}
	if (op->state == PLX_CHAN_OP_MOVES && op->has_msg && c->attr == PLX_CHAN_RO)
		return false;
	c->next = TAILQ_NEXT(op, link);
	return true;
}

/* @param open whether nothing else is pending. @return 0 or -EAGAIN the device is full */
static int
send_push(struct plx_chans *cs, struct plx_chan *c, bool open)
{
	struct plx_chan_op *op;
	int rc = 0;

	c->pushing = true;
	while (rc == 0 && (op = c->next) != NULL && !c->rnr && c->state == PLX_CHAN_OPEN) {
		if (op->rma.len != 0 && op->state != PLX_CHAN_OP_MSG &&
			op->state != PLX_CHAN_OP_SENT) {
			if (!rma_step(cs, c, op))
				break;
			continue;
		}
		if (c->n_moves > 0 && c->attr == PLX_CHAN_RO)
			break;
		rc = open ? msg_tx(cs, c, op) : -EAGAIN;
		if (rc == 0)
			msg_sent(cs, c, op);
	}
	c->pushing = false;
	send_reap(cs, c);
	return rc == -EAGAIN ? rc : 0; /* any other error is the ep's, which has failed */
}

static int
pend_send(struct plx_pend *p)
{
	struct plx_chan *c = container_of(p, struct plx_chan, pend);
	int rc = send_push(c->chans, c, true);

	c->pended = rc == -EAGAIN;
	return rc;
}

static void
pend_fail(struct plx_pend *p, int err)
{
	(void)err; /* the failing code knows of the channel */
	container_of(p, struct plx_chan, pend)->pended = false;
}

void
chan_msg_init(struct plx_chan *c)
{
	TAILQ_INIT(&c->ops);
	c->pend.send = pend_send;
	c->pend.fail = pend_fail;
	c->pend.conn_id = c->id;
}

void
chan_push(struct plx_chans *cs, struct plx_chan *c)
{
	if (c->pended || c->pushing)
		return;
	if (send_push(cs, c, plx_ep_open(c->ep)) == -EAGAIN) {
		c->pended = true;
		plx_ep_pend(c->ep, &c->pend);
	}
}

static __rte_noinline void
post_timed(struct plx_chan *c, struct plx_chan_op *op)
{
	op->due_ticks = rte_rdtsc() + c->send_ticks;
	chan_timer_at(c, op->due_ticks);
}

void
plx_chan_post(struct plx_chans *cs, struct plx_chan_op *op)
{
	struct plx_chan *c = op->item.chan;

	if (unlikely(c->state != PLX_CHAN_OPEN)) {
		op_end(cs, op, c->err != 0 ? c->err : -ECONNRESET);
		return;
	}
	op->state = PLX_CHAN_OP_NEW;
	op->due_ticks = 0;
	if (unlikely(c->attr >= PLX_CHAN_UNICAST_N)) {
		chan_group_post(cs, op);
		return;
	}
	if (unlikely(c->attr == PLX_CHAN_UU) && chan_lossy_post(cs, op))
		return;
	if (unlikely(c->send_ticks != 0))
		post_timed(c, op);
	/* The most frequent case: a message that nothing delays. It is sent, then it is
	 * recorded. */
	if (likely(c->next == NULL && op->rma.len == 0 && plx_ep_open(c->ep) && !c->rnr &&
		    c->n_moves == 0 && msg_tx(cs, c, op) == 0)) {
		TAILQ_INSERT_TAIL(&c->ops, op, link);
		msg_sent(cs, c, op);
		return;
	}
	TAILQ_INSERT_TAIL(&c->ops, op, link);
	if (c->next != NULL)
		return; /* behind others */
	c->next = op;
	chan_push(cs, c);
}

void
plx_chan_moved(struct plx_chans *cs, struct plx_chan_op *op, int err)
{
	struct plx_chan *c = op->item.chan;

	c->n_moves--;
	op->state = PLX_CHAN_OP_OVER;
	op->item.status = err;
	if (unlikely(c->state != PLX_CHAN_OPEN)) {
		if (c->err != 0)
			op->item.status = c->err;
		return; /* it completes in its place: see chan_drop_ops() */
	}
	if (err == 0 && op->has_msg) {
		op->state = PLX_CHAN_OP_MSG;
		/* on RO, too, next may be another one: after RNR, before it */
		if (c->next != op && c->attr != PLX_CHAN_RO) {
			TAILQ_REMOVE(&c->ops, op, link);
			TAILQ_INSERT_TAIL(&c->ops, op, link);
			if (c->next == NULL)
				c->next = op;
		}
	}
	if (!c->pushing) {
		chan_push(cs, c);
		send_reap(cs, c);
	}
}

void
chan_drop_ops(struct plx_chans *cs, struct plx_chan *c, int err)
{
	struct plx_chan_op *op;

	if (cs->unreaped == c)
		plx_chans_reap_slow(cs);
	/* A moving operation comes back through plx_chan_moved(). */
	if (c->n_moves > 0 || c->pended)
		plx_ep_cancel(c->ep, c->id, err);
	while ((op = TAILQ_FIRST(&c->ops)) != NULL)
		op_out(cs, c, op, op->state == PLX_CHAN_OP_OVER ? op->item.status : err);
}

void
plx_chans_reap_slow(struct plx_chans *cs)
{
	struct plx_chan *c = cs->unreaped;

	cs->unreaped = NULL;
	send_reap(cs, c);
}

void
plx_chan_on_ack(struct plx_chans *cs, struct plx_peer *src, const struct plx_wire_chan *h)
{
	struct plx_chan *c = chan_find(cs, src, h->to);

	if (unlikely(c == NULL || c->state != PLX_CHAN_OPEN))
		PLX_STAT_INC(cs->stat.rx_drop_no_chan);
	else if (likely(chan_acked(cs, c, h->value)))
		send_reap(cs, c);
}

/* Send everything from this number on again. @return whether that is valid */
static bool
go_back(struct plx_chans *cs, struct plx_chan *c, uint32_t value)
{
	struct plx_chan_op *op;

	if (!chan_acked(cs, c, value))
		return false;
	send_reap(cs, c);
	TAILQ_FOREACH(op, &c->ops, link) {
		if (op == c->next || op->state == PLX_CHAN_OP_SENT)
			break;
	}
	c->next = op;
	c->tx_seq = value;
	return true;
}

void
chan_on_rnr(struct plx_chans *cs, struct plx_chan *c, uint32_t value)
{
	if (!go_back(cs, c, value))
		return;
	PLX_STAT_INC(cs->stat.rnr_heard);
	c->rnr = true;
}

void
chan_on_copy(struct plx_chans *cs, struct plx_chan *c, uint32_t value)
{
	c->copies = true;
	if (go_back(cs, c, value))
		chan_push(cs, c);
}

static const char *
op_state(const struct plx_chan *c, const struct plx_chan_op *op)
{
	if (op->state == PLX_CHAN_OP_MOVES)
		return "data moves";
	if (c->rnr)
		return "the receiver has no buffer";
	if (op->state == PLX_CHAN_OP_SENT)
		return "not acknowledged";
	return c->pended ? "the device is full" : "not sent";
}

static void
chan_waits(const struct plx_chan *c, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg)
{
	struct plx_wait_info info = {.op = c->state == PLX_CHAN_CONNECTING ? "cci_connect" : "cci_accept",
		.state = "not answered"};
	const struct plx_chan_op *op;

	if (c->state == PLX_CHAN_CONNECTING || c->state == PLX_CHAN_ACCEPTING)
		fn(&info, arg);
	TAILQ_FOREACH(op, &c->ops, link) {
		info = (struct plx_wait_info){.op = op->has_msg ? "cci_send" : "cci_rma", .state = op_state(c, op),
			.len = op->rma.len != 0 ? op->rma.len : op->len};
		if (op->state != PLX_CHAN_OP_OVER)
			fn(&info, arg);
	}
}

void
plx_chans_waits_each(const struct plx_ep *ep, void (*fn)(const struct plx_wait_info *info, void *arg), void *arg)
{
	const struct plx_chan *c;

	LIST_FOREACH(c, &plx_chan_ep(ep)->all, link)
		chan_waits(c, fn, arg);
}
