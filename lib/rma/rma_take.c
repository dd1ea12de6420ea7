/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_take.c - batches of puts and gets that a peer asks this side to do
 *
 * Design notes
 * - The target keeps no state of a batch, but an answer to puts that finds no room. All of a message is checked before
 *   anything of it is done.
 * - What it can't do it does not answer. Puts it refuses, so that later ones of the same generation are the
 *   initiator's, too.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "plx_copy.h"
#include "rma_int.h"

/* A batch, as read from its message. */
struct take {
	struct plx_wire_rma_block block[PLX_RMA_BATCH_N];
	uint8_t kind; /* PUT or GET */
	bool much;
	uint8_t n;
	uint64_t bytes;
};

static struct plx_region_key
key_of(const struct plx_rma *r, const struct plx_wire_rma_block *b)
{
	return rma_region_key(r, b->index, b->token);
}

/* End the access to the first n blocks. */
static void
take_drop(const struct plx_rma *r, const struct take *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct plx_region_key key = key_of(r, &t->block[i]);

		plx_region_drop(&key);
	}
}

/* Begin the access to all blocks, or to none. @return 0 or -errno */
static int
take_hold(const struct plx_rma *r, const struct take *t, uint8_t rights)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct plx_region_key key = key_of(r, &t->block[i]);
		int rc = plx_region_hold(&key, t->block[i].addr, t->block[i].len, rights);

		if (rc != 0) {
			take_drop(r, t, i);
			return rc;
		}
	}
	return 0;
}

/* @return whether a message has the blocks that its header says, and they are within bounds */
static bool
take_read(struct take *t, const struct plx_wire_rma_batch *h, const uint8_t *data, uint32_t len)
{
	t->kind = h->kind & ~PLX_WIRE_RMA_MUCH;
	t->much = (h->kind & PLX_WIRE_RMA_MUCH) != 0;
	t->n = h->n;
	t->bytes = 0;
	if (h->n == 0 || h->n > PLX_RMA_BATCH_N || t->kind > PLX_RMA_GET || len < h->n * sizeof(t->block[0]))
		return false;
	if (likely(h->n == 1))
		memcpy(t->block, data, sizeof(t->block[0]));
	else
		memcpy(t->block, data, h->n * sizeof(t->block[0]));
	for (unsigned i = 0; i < t->n; i++)
		t->bytes += t->block[i].len;
	return t->bytes <= PLX_RMA_BATCH_LEN;
}

static void
take_puts(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_batch *h, const struct take *t,
	const uint8_t *data)
{
	const struct plx_queue *q = ep->peer->q;
	struct plx_rma_cell *c = plx_rma_cell_at(q->shared, q->shared_len, h->cell);

	if (c == NULL || !rma_cell_is_of(c, ep->peer)) {
		PLX_STAT_INC(r->stat.refused);
		return;
	}
	if (take_hold(r, t, PLX_REGION_WRITE) != 0) {
		PLX_STAT_INC(r->stat.refused);
		plx_rma_cell_refuse(c, h->gen, h->number);
		return;
	}
	plx_peer_tx_soon(ep->peer);
	if (plx_rma_cell_claim(c, h->gen, h->number)) {
		for (unsigned i = 0; i < t->n; i++) {
			rma_copy((void *)(uintptr_t)t->block[i].addr, data, t->block[i].len, t->much);
			data += t->block[i].len;
		}
		PLX_STAT_ADD(r->stat.puts, t->n);
		rma_batch_ack(r, ep, h->id);
	}
	take_drop(r, t, t->n);
}

/* For plx_tx.pack */
static void
gets_pack(void *arg, uint64_t offset, void *to, uint64_t len)
{
	const struct take *t = arg;

	(void)offset;
	(void)len;
	for (unsigned i = 0; i < t->n; i++) {
		plx_copy(to, (const void *)(uintptr_t)t->block[i].addr, t->block[i].len);
		to = (uint8_t *)to + t->block[i].len;
	}
}

static void
take_gets(struct plx_rma *r, struct plx_ep *ep, uint32_t id, struct take *t)
{
	const struct plx_wire_rma_batch_done h = {.id = id};
	const struct plx_tx tx = {.peer = ep->peer, .hdr = &h, .hdr_len = sizeof(h), .op = PLX_WIRE_RMA_BATCH_DONE,
		.len = (uint32_t)t->bytes, .pack = gets_pack, .pack_arg = t, .much = t->much};
	int rc;

	if (!plx_ep_open(ep))
		return; /* messages wait for room: who asked does it before that */
	if (take_hold(r, t, PLX_REGION_READ) != 0) {
		PLX_STAT_INC(r->stat.refused);
		return;
	}
	plx_peer_tx_soon(ep->peer);
	if (t->n == 1 && t->bytes <= ep->peer->short_max)
		rc = plx_peer_tx_short(ep->peer, tx.op, id, (const void *)(uintptr_t)t->block[0].addr, tx.len);
	else
		rc = plx_peer_tx(&tx);
	if (rc == 0)
		PLX_STAT_ADD(r->stat.gets, t->n);
	take_drop(r, t, t->n);
}

void
plx_rma_on_batch(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_rma_batch *h, const uint8_t *data,
	uint32_t len)
{
	struct take t;
	uint32_t head;

	if (!take_read(&t, h, data, len)) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	head = t.n * (uint32_t)sizeof(t.block[0]);
	if (t.kind == PLX_RMA_PUT && len != head + t.bytes) {
		PLX_STAT_INC(r->stat.drop_bad_range);
		return;
	}
	/* To be answered, the initiator has to be connected as well. */
	if (unlikely(!ep->connected)) {
		plx_eps_need_turn(ep->eps);
		if (plx_ep_connect(ep) != 0)
			return;
	}
	if (t.kind == PLX_RMA_PUT)
		take_puts(r, ep, h, &t, data + head);
	else
		take_gets(r, ep, h->id, &t);
}
