/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skel_msg.c - messages: sent, taken, and not copied
 *
 * Design notes
 * A sender that does not copy leaves its data where it is, and the receiver fetches it as it takes the message: one
 * copy instead of two. Then the sender tells its owner. A sender that goes before that fetches it for the receiver.
 *
 * A receiver that keeps a message takes the buffer out of its cell and leaves a spare one there.
 */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_pause.h>

#include "skel_int.h"

/* -- sending -- */

static bool
is_full(const struct skel_lane *lane, uint64_t tail)
{
	/* pairs with the release in skel_rx_release() */
	return tail - atomic_load_explicit(&lane->head, memory_order_acquire) == lane->n_cells ||
	       tail - lane->told == lane->n_cells;
}

/* The next cell of a lane. @return 0; -EAGAIN none is free, and others */
static int
cell_get(struct plx_peer *peer, uint64_t len, struct skel_cell **out)
{
	struct skel_lane *lane = skel_peer(peer)->tx;
	struct skel_queue *sq = peer->q->priv;
	uint64_t tail;

	if (peer->state == PLX_PEER_DEAD)
		return peer->err;
	if (len > SKEL_MTU)
		return -EMSGSIZE;
	tail = atomic_load_explicit(&lane->tail, memory_order_relaxed); /* ours */
	if (sq->n_told_later == 0)
		lane->told = tail;
	if (is_full(lane, tail)) {
		PLX_STAT_INC(peer->q->stat.tx_full);
		return -EAGAIN;
	}
	*out = &lane->cells[tail % lane->n_cells];
	(*out)->len = (uint32_t)len;
	(*out)->done = NULL;
	return 0;
}

/* The cell is filled. */
static void
cell_give(struct plx_peer *peer, const struct skel_cell *c)
{
	/* pairs with skel_lane_is_empty(); one writer */
	atomic_fetch_add_explicit(&skel_peer(peer)->tx->tail, 1, memory_order_release);
	skel_bell_ring(skel_peer(peer)->tx->bell);
	PLX_STAT_INC(peer->q->stat.tx_msgs);
	PLX_STAT_ADD(peer->q->stat.tx_bytes, c->len);
}

int
skel_tx(const struct plx_tx *tx)
{
	struct skel_cell *c = NULL;
	int rc = cell_get(tx->peer, tx->hdr_len + tx->len, &c);

	if (rc != 0)
		return rc;
	c->op = tx->op;
	atomic_store_explicit(&c->where, SKEL_HERE, memory_order_relaxed); /* cell_give() orders it */
	memcpy(c->buf->bytes, tx->hdr, tx->hdr_len);
	if (tx->pack != NULL)
		tx->pack(tx->pack_arg, tx->pack_offset, c->buf->bytes + tx->hdr_len, tx->len);
	else if (tx->len != 0)
		memcpy(c->buf->bytes + tx->hdr_len, tx->data, tx->len);
	cell_give(tx->peer, c);
	return 0;
}

int
skel_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	const struct plx_tx tx = {.peer = peer, .op = op, .hdr = &hdr, .hdr_len = sizeof(hdr),
		.data = data, .len = len};

	return skel_tx(&tx);
}

int
skel_tx_zcopy(const struct plx_tx_zcopy *tx)
{
	struct skel_queue *sq = tx->peer->q->priv;
	struct skel_cell *c = NULL;
	int rc = cell_get(tx->peer, tx->hdr_len + plx_tx_zcopy_len(tx), &c);

	if (rc != 0)
		return rc;
	c->op = tx->op;
	c->hdr_len = tx->hdr_len;
	c->n_iov = tx->n_iov;
	c->done = tx->done;
	c->arg = tx->arg;
	memcpy(c->buf->bytes, tx->hdr, tx->hdr_len);
	memcpy(c->iov, tx->iov, tx->n_iov * sizeof(c->iov[0]));
	atomic_store_explicit(&c->where, SKEL_THERE, memory_order_relaxed); /* cell_give() orders it */
	sq->n_told_later++;
	cell_give(tx->peer, c);
	return -EINPROGRESS;
}

/* Have the data in the cell's buffer. @return false: the other side is doing that */
static bool
cell_fetch(struct skel_cell *c)
{
	uint8_t *to = c->buf->bytes + c->hdr_len, where = SKEL_THERE;

	if (likely(atomic_load_explicit(&c->where, memory_order_acquire) == SKEL_HERE))
		return true;
	/* what the sender wrote is there by the lane's tail */
	if (!atomic_compare_exchange_strong_explicit(&c->where, &where, SKEL_MOVING, memory_order_acquire,
		    memory_order_acquire))
		return where == SKEL_HERE;
	for (unsigned i = 0; i < c->n_iov; i++) {
		memcpy(to, c->iov[i].iov_base, c->iov[i].iov_len);
		to += c->iov[i].iov_len;
	}
	/* pairs with the acquires above, and with that in skel_tell() */
	atomic_store_explicit(&c->where, SKEL_HERE, memory_order_release);
	return true;
}

void
skel_tell(struct skel_peer *p, int err)
{
	struct skel_queue *sq = p->peer.q->priv;
	struct skel_lane *lane = p->tx;

	while (lane != NULL && lane->told != atomic_load_explicit(&lane->tail, memory_order_relaxed)) {
		struct skel_cell *c = &lane->cells[lane->told % lane->n_cells];
		bool here = atomic_load_explicit(&c->where, memory_order_acquire) == SKEL_HERE;

		if (c->done != NULL) {
			if (!here && err == 0)
				break;
			sq->n_told_later--;
			c->done(c->arg, here ? 0 : err);
		}
		lane->told++;
	}
}

void
skel_take_back(struct skel_peer *p)
{
	struct skel_queue *sq = p->peer.q->priv;
	struct skel_lane *lane = p->tx;

	for (; sq->n_told_later != 0 && lane->told != atomic_load_explicit(&lane->tail, memory_order_relaxed); lane->told++) {
		struct skel_cell *c = &lane->cells[lane->told % lane->n_cells];

		if (c->done == NULL)
			continue;
		while (!cell_fetch(c))
			rte_pause(); /* for as long as the other takes to copy */
		sq->n_told_later--;
	}
}

/* -- receiving -- */

/* Take up to n messages from one sender. */
static uint16_t
take(struct skel_peer *p, struct plx_rx *rx, uint16_t n)
{
	struct skel_lane *lane = p->rx;
	uint16_t got = 0;

	for (; got < n && !skel_lane_is_empty(lane); got++) {
		uint16_t i = lane->taken % lane->n_cells;
		struct skel_cell *c = &lane->cells[i];

		if (unlikely(!cell_fetch(c)))
			break; /* its sender goes, and copies it */
		lane->taken++;
		rx[got].src = &p->peer;
		rx[got].data = c->buf->bytes;
		rx[got].len = c->len;
		rx[got].op = c->op;
		memcpy(rx[got].drv, &i, sizeof(i));
	}
	return got;
}

/* No sender is passed over: each goes behind the others after a look. */
uint16_t
skel_take(struct skel_queue *sq, struct plx_rx *rx, uint16_t n)
{
	struct skel_peer *p, *last = TAILQ_LAST(&sq->senders, skel_senders);
	uint16_t got = 0;

	while (got < n && (p = TAILQ_FIRST(&sq->senders)) != NULL) {
		TAILQ_REMOVE(&sq->senders, p, link);
		TAILQ_INSERT_TAIL(&sq->senders, p, link);
		got += take(p, rx + got, n - got);
		if (p == last)
			break;
	}
	return got;
}

void
skel_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct skel_lane *lane = skel_peer(rx[i].src)->rx;

		/* pairs with the acquire in is_full(): the cell may be written again */
		atomic_fetch_add_explicit(&lane->head, 1, memory_order_release);
		PLX_STAT_INC(q->stat.rx_msgs);
		PLX_STAT_ADD(q->stat.rx_bytes, rx[i].len);
	}
}

void *
skel_rx_keep(struct plx_queue *q, struct plx_rx *rx)
{
	struct skel_queue *sq = q->priv;
	struct skel_buf *spare = LIST_FIRST(&sq->spare), *kept;
	struct skel_cell *c;
	uint16_t i;

	if (spare == NULL)
		return NULL;
	memcpy(&i, rx->drv, sizeof(i));
	c = &skel_peer(rx->src)->rx->cells[i];
	kept = c->buf;
	c->buf = spare;
	LIST_REMOVE(spare, link);
	LIST_INSERT_HEAD(&sq->kept, kept, link);
	return kept;
}

void
skel_rx_return(struct plx_queue *q, void *kept)
{
	struct skel_queue *sq = q->priv;
	struct skel_buf *b = kept;

	LIST_REMOVE(b, link);
	LIST_INSERT_HEAD(&sq->spare, b, link);
}
