/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_batch.c - puts and gets of private memory, done by the target if it polls, otherwise by the device
 *
 * Design notes
 * - The device needs a system call, and it alone copies. A target that polls copies at the same time as the
 *   initiator, out of a message. So puts and gets go as batches: a message has blocks of several operations, or of
 *   a part of a long one, and the bytes of puts. The target answers each batch, with the bytes of gets.
 * - A target that computes answers nothing. When ask_ticks have passed without an answer, and more for long blocks,
 *   the initiator recalls its batches, and the device does them. The next operations go by the device, twice as
 *   many each time.
 * - A put is done once: by the target that claims its batch, or by the initiator that recalls it, see
 *   plx_rma_cell_claim(). A claimed batch is waited for. A get changes nothing at the target, so
 *   nobody claims it: an answer that comes late finds no batch.
 * - Batches are done in their order, and what was recalled is done before anything else, so of two puts to the
 *   same memory the later one stays. Only gets may go past batches, and these only past gets (rma.c).
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "plx_copy.h"
#include "rma_int.h"

#define SHORT_LEN  1024u /* longer ones, or more bytes at once, go to near cores only */
#define NUMBER_MAX UINT32_MAX
#define ASK_LEN    2048u /* bytes for which a batch waits as long again: the target may have to read them from memory */
#define POSTS_TIMES 32 /* ask_ticks that a batch waits longer while the program posts */

_Static_assert(sizeof(struct plx_wire_rma_batch) + PLX_RMA_BATCH_N * sizeof(struct plx_wire_rma_block) <=
	PLX_RMA_BATCH_HEAD, "a batch's message has room for its blocks");

/* --- a batch is sent --- */

/* The first operation, or a part of it, and those that can go with it, whole. */
static void
batch_fill(struct rma_batch *b, struct plx_rma_req *first, uint32_t most)
{
	struct plx_rma_req *o = first;

	for (; o != NULL && b->n < PLX_RMA_BATCH_N && o->late && o->how == PLX_RMA_DEV && o->kind == first->kind &&
		o->epoch == first->epoch;
		o = TAILQ_NEXT(o, link)) {
		uint64_t left = plx_req_of_own(o)->len - o->offset;
		uint32_t len = (uint32_t)RTE_MIN(left, (uint64_t)(most - b->bytes));

		if (len < left && b->n > 0)
			break;
		b->block[b->n++] = (struct rma_batch_block){o, o->offset, len};
		b->bytes += len;
		if (len < left)
			break;
	}
	b->kind = first->kind;
}

/* For plx_tx.pack: the blocks, and the bytes of puts. */
static void
batch_pack(void *arg, uint64_t offset, void *to, uint64_t len)
{
	const struct rma_batch *b = arg;
	uint8_t *data = (uint8_t *)to + b->n * sizeof(struct plx_wire_rma_block);

	(void)offset;
	(void)len;
	for (unsigned i = 0; i < b->n; i++) {
		const struct rma_batch_block *k = &b->block[i];
		const struct plx_wire_rma_block w = {.addr = k->o->remote + k->offset, .token = k->o->token,
			.index = k->o->index, .len = k->len};

		memcpy((uint8_t *)to + i * sizeof(w), &w, sizeof(w));
		if (b->kind != PLX_RMA_PUT)
			continue;
		plx_copy(data, (const uint8_t *)plx_req_of_own(k->o)->buf + k->offset, k->len);
		data += k->len;
	}
}

#define ONE_MAX (sizeof(struct plx_wire_rma_block) + 64) /* bytes behind the header of a batch that goes as a short message */

/* A batch of one block: a short message has the first word of the header apart. */
static int
batch_send_one(const struct plx_tx *tx)
{
	struct {
		uint64_t rest;
		uint8_t more[ONE_MAX];
	} m;
	uint64_t head;

	_Static_assert(sizeof(struct plx_wire_rma_batch) == sizeof(head) + sizeof(m.rest), "two words");
	memcpy(&head, tx->hdr, sizeof(head));
	memcpy(&m.rest, (const uint8_t *)tx->hdr + sizeof(head), sizeof(m.rest));
	batch_pack(tx->pack_arg, 0, m.more, tx->len);
	return plx_peer_tx_short(tx->peer, tx->op, head, &m, (uint32_t)sizeof(m.rest) + tx->len);
}

static int
batch_send(const struct plx_rma *r, struct plx_ep *ep, struct rma_batch *b)
{
	const struct plx_rma_ep *e = plx_rma_ep(ep);
	const bool much = rma_is_much(r, plx_req_of_own(b->block[0].o)->len);
	const struct plx_wire_rma_batch h = {.id = b->id, .gen = e->gen, .number = e->number, .cell = e->cell - 1u,
		.n = b->n, .kind = b->kind | (much ? PLX_WIRE_RMA_MUCH : 0)};
	const struct plx_tx tx = {.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .op = PLX_WIRE_RMA_BATCH,
		.len = b->n * (uint32_t)sizeof(struct plx_wire_rma_block) + (b->kind == PLX_RMA_PUT ? b->bytes : 0),
		.pack = batch_pack, .pack_arg = b, .much = much,
		.skew = (uint8_t)(b->n * sizeof(struct plx_wire_rma_block))};

	if (b->n == 1 && tx.len <= ONE_MAX && sizeof(uint64_t) + ONE_MAX <= ep->peer->short_max)
		return batch_send_one(&tx);
	return plx_peer_tx(&tx);
}

/* @return whether some of them are the device's: until these are done nothing more is sent */
static bool
is_recalled(const struct plx_rma_ep *e)
{
	const struct rma_batch *first = TAILQ_FIRST(&e->batches);

	return first != NULL && (first->claimed || first->recalled);
}

/* While the program posts, gets go past whole ones only: whether the first would be left in batches in part. */
static bool
is_for_later(const struct plx_rma_ep *e, const struct plx_rma_req *o, uint32_t most)
{
	return e->n_batches != 0 && o->offset == 0 &&
	       plx_req_of_own(o)->len > (uint64_t)(e->most_gets - e->n_batches) * most;
}

/*
 * Whether the target is to do the next operation to send.
 * @param most set to the bytes of a batch, at most
 * @return 1; 0: the device; -EAGAIN not yet
 */
static int
batch_way(const struct plx_rma *r, struct plx_rma_req *o, uint32_t *most)
{
	struct plx_ep *ep = o->ep;
	struct plx_rma_ep *e = plx_rma_ep(ep);
	const struct plx_rma_op op = {.peer = ep->peer, .local = plx_req_of_own(o)->buf, .remote = o->remote,
		.len = plx_req_of_own(o)->len, .put = o->kind == PLX_RMA_PUT};
	bool is_short = op.len - o->offset <= SHORT_LEN;
	int way;

	if (r->batch_len == 0 || ep->peer->mtu <= PLX_RMA_BATCH_HEAD || !rma_may_ask(ep))
		return 0;
	if (e->n_batches >= (op.put ? PLX_RMA_BATCHES : e->most_gets) || is_recalled(e))
		return -EAGAIN;
	if (unlikely(e->number == NUMBER_MAX)) {
		if (e->n_batches != 0)
			return -EAGAIN;
		(void)rma_claims_end(ep);
	}
	*most = RTE_MIN(r->batch_len, ep->peer->mtu - PLX_RMA_BATCH_HEAD);
	if (r->posts && !op.put && is_for_later(e, o, *most))
		return -EAGAIN;
	if (is_short && TAILQ_NEXT(o, link) == NULL)
		return 1; /* a message is faster than a call of the device, to any core */
	way = plx_peer_bulk(&op, 1);
	if (way == 0 && is_short) {
		*most = RTE_MIN(*most, SHORT_LEN);
		return 1;
	}
	/* A short one needs less room, and a get has its bytes on the other way. */
	return way == -EAGAIN && (is_short || !op.put) ? 1 : way;
}

/* The time from which on the batch that the target does now is late: it would have read it from memory by then. */
static uint64_t
batch_until(const struct plx_rma *r, const struct rma_batch *b)
{
	return rte_rdtsc() + (1 + (uint64_t)b->bytes / ASK_LEN) * r->ask_ticks;
}

/* The batch is the target's. */
static void
batch_sent(struct plx_rma *r, struct plx_rma_ep *e, struct rma_batch *b)
{
	struct plx_rma_req *o = NULL;

	if (e->n_batches == 0)
		e->batch_until = batch_until(r, b);
	TAILQ_INSERT_TAIL(&e->batches, b, link);
	e->n_batches++;
	b->number = e->number;
	e->number += b->kind == PLX_RMA_PUT;
	e->batch_id++;
	for (unsigned i = 0; i < b->n; i++) {
		o = b->block[i].o;
		o->offset += b->block[i].len;
		o->n_out++;
	}
	e->n_out += b->n;
	rma_set_send(r, e, o->offset < plx_req_of_own(o)->len ? o : TAILQ_NEXT(o, link));
	if (e->send == NULL)
		e->n_late = 0;
	PLX_STAT_INC(r->stat.batches);
}

/* While the program posts, the answer to a get may be there, but no turn looks; of puts the claims tell. */
static bool
is_unseen(const struct plx_rma *r, const struct rma_batch *b)
{
	return r->posts && b->kind == PLX_RMA_GET;
}

/* What is posted meanwhile to a target that computes has to end at last. */
static bool
may_wait_unseen(const struct plx_rma *r)
{
	return atomic_load_explicit(&r->n_ops, memory_order_relaxed) < PLX_RMA_TOO_MANY;
}

bool
rma_has_gets_only(const struct plx_rma_ep *e)
{
	const struct rma_batch *b;

	TAILQ_FOREACH(b, &e->batches, link)
		if (b->kind != PLX_RMA_GET || b->recalled)
			return false;
	return e->n_batches != 0;
}

/* While the program posts, answers may be there that no turn has seen: much more time passes before it is late. */
static bool
is_late(const struct plx_rma *r, uint64_t until)
{
	return rte_rdtsc() >= until + (r->posts ? (uint64_t)POSTS_TIMES * r->ask_ticks : 0);
}

/* There is no room for a batch. @return -EAGAIN; 0 the target does not make any: the device goes on */
static int
batch_blocked(struct plx_rma *r, struct plx_ep *ep)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);

	if (e->n_batches != 0)
		return -EAGAIN;
	if (e->batch_until == 0)
		e->batch_until = rte_rdtsc() + r->ask_ticks;
	if (!is_late(r, e->batch_until))
		return -EAGAIN;
	e->batch_until = 0;
	rma_answered(ep, false);
	return 0;
}

int
rma_batch_step(struct plx_rma *r, struct plx_rma_ep *e)
{
	struct plx_rma_req *o = e->send;
	struct plx_ep *ep = o->ep;
	struct rma_batch *b;
	uint32_t most;
	int rc = batch_way(r, o, &most);

	e->batched = rc != 0;
	if (rc == -EAGAIN)
		return batch_blocked(r, ep);
	b = rc == 1 ? rma_batch_get(r) : NULL;
	if (b == NULL)
		return 0;
	batch_fill(b, o, most);
	b->id = e->batch_id;
	rc = batch_send(r, ep, b);
	if (rc == 0) {
		batch_sent(r, e, b);
		return 1;
	}
	rma_batch_put(r, b);
	return rc == -EAGAIN ? batch_blocked(r, ep) : 0; /* the device finds the error */
}

/* --- and over --- */

/* The device has found that it can't do a part of the operation: all of it goes by messages. */
static void
op_by_message(struct plx_rma *r, struct plx_rma_req *o)
{
	o->how = PLX_RMA_MSG;
	o->late = o->again = false;
	if (o->kind == PLX_RMA_GET)
		o->got = 0;
	PLX_STAT_INC(r->stat.msg);
	rma_send_again(r, plx_req_of_own(o));
}

/* End a block. With its last block an operation moves to ended. */
static void
block_end(struct plx_rma *r, struct plx_rma_ep *e, const struct rma_batch_block *k, int err, struct rma_ended *ended)
{
	struct plx_rma_req *o = k->o;

	o->n_out--;
	e->n_out--;
	if (err == -EOPNOTSUPP)
		o->again = true;
	else if (err != 0 && o->err == 0)
		o->err = err;
	if (o->err != 0 || o->again)
		rma_send_stop(r, plx_req_of_own(o));
	if (o->n_out > 0 || o->offset < plx_req_of_own(o)->len)
		return;
	if (o->again && o->err == 0)
		op_by_message(r, o);
	else
		rma_end_later(r, o, ended);
}

/* The first n blocks of a batch are over. @return operations that are */
static unsigned
blocks_end(struct plx_rma *r, struct plx_rma_ep *e, struct rma_batch *b, unsigned n, int err)
{
	struct rma_ended ended = TAILQ_HEAD_INITIALIZER(ended);

	for (unsigned i = 0; i < n; i++)
		block_end(r, e, &b->block[i], err, &ended);
	b->n -= n;
	if (b->n == 0)
		rma_batch_end(r, e, b);
	else
		memmove(b->block, b->block + n, b->n * sizeof(b->block[0]));
	return rma_end_all(r, &ended);
}

void
plx_rma_on_batch_done(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_batch_done *h,
	const uint8_t *data, uint32_t len)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);
	struct rma_batch *b = TAILQ_FIRST(&e->batches);

	while (b != NULL && b->id != h->id)
		b = TAILQ_NEXT(b, link);
	if (b == NULL || b->recalled) {
		PLX_STAT_INC(r->stat.batches_late);
		return;
	}
	if (len != (b->kind == PLX_RMA_GET ? b->bytes : 0)) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	for (unsigned i = 0; i < b->n && len != 0; i++) {
		const struct rma_batch_block *k = &b->block[i];

		rma_copy((uint8_t *)plx_req_of_own(k->o)->buf + k->offset, data, k->len,
			rma_is_much(r, plx_req_of_own(k->o)->len));
		data += k->len;
	}
	e->unanswered = 0;
	if (b->kind == PLX_RMA_PUT && !b->claimed) /* else of a generation that has ended */
		e->claimed = b->number + 1;
	/* Others go on waiting, but not those before it: answers keep their order. */
	if (e->n_batches > 1)
		e->batch_until = b == TAILQ_FIRST(&e->batches) ? batch_until(r, TAILQ_NEXT(b, link)) : 0;
	(void)blocks_end(r, e, b, b->n, 0);
}

/* @return whether the target has claimed more since the last look */
static bool
claims_grow(const struct plx_ep *ep)
{
	struct plx_rma_ep *e = plx_rma_ep(ep);
	struct plx_rma_cell *c = e->cell != 0 ? rma_cell_of(ep) : NULL;
	uint64_t v = c != NULL ? atomic_load_explicit(&c->claims, memory_order_relaxed) : 0;
	uint32_t was = e->claimed;

	if (v >> 32 != e->gen || (uint32_t)v > e->number)
		return false;
	e->claimed = (uint32_t)v;
	return e->claimed != was;
}

/* The device does a batch. @return operations that are over; -EAGAIN not yet */
static int
batch_by_device(struct plx_rma *r, struct plx_rma_ep *e, struct rma_batch *b)
{
	struct plx_rma_piece v[PLX_RMA_BATCH_N];
	unsigned n = b->n, ended;
	int rc;

	for (unsigned i = 0; i < n; i++) {
		const struct rma_batch_block *k = &b->block[i];

		v[i] = (struct plx_rma_piece){(uint8_t *)plx_req_of_own(k->o)->buf + k->offset, k->o->remote + k->offset,
			k->len, UCS_MEMORY_TYPE_HOST};
	}
	rc = rma_pieces_move(rma_ep_of(e), b->kind == PLX_RMA_PUT, v, &n);
	if (rc != 0 && rc != -EAGAIN && n == 0)
		return (int)blocks_end(r, e, b, 1, rc);
	ended = n > 0 ? blocks_end(r, e, b, n, 0) : 0;
	return rc == -EAGAIN ? rc : (int)ended;
}

unsigned
rma_batches_run(struct plx_rma *r, struct plx_rma_ep *e)
{
	struct plx_ep *ep = rma_ep_of(e);
	struct rma_batch *b = TAILQ_FIRST(&e->batches);
	unsigned n = 0;
	int rc;

	if (!b->recalled) {
		const bool unseen = is_unseen(r, b);

		if (b->claimed || (unseen && may_wait_unseen(r)) || !is_late(r, e->batch_until))
			return 0;
		e->batch_until = batch_until(r, b);
		if (b->kind == PLX_RMA_PUT && claims_grow(ep))
			return 0;
		if (!unseen)
			rma_answered(ep, false);
		if (!unseen && b->kind == PLX_RMA_GET && e->n_batches > PLX_RMA_BATCHES_SURE)
			e->most_gets = PLX_RMA_BATCHES_SURE;
		rma_batches_recall(r, ep);
	}
	while ((b = TAILQ_FIRST(&e->batches)) != NULL && b->recalled) {
		rc = batch_by_device(r, e, b);
		if (rc == -EAGAIN) {
			plx_eps_need_turn(ep->eps); /* no message tells when it can */
			break;
		}
		n += rc;
	}
	return n;
}
