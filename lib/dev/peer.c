/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * peer.c - the peers of a queue
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev_int.h"
#include "plx_check.h"
#include "plx_proc.h"

void
dev_peer_free(struct plx_peer *peer)
{
	LIST_REMOVE(peer, link);
	peer->q->dev->ops->peer_close(peer);
	free(peer);
}

void
plx_peer_each(struct plx_queue *q, void (*fn)(struct plx_peer *peer, void *arg), void *arg)
{
	struct plx_peer *peer, *next;

	for (unsigned i = 0; i < PLX_DEV_PEER_HASH; i++) {
		for (peer = LIST_FIRST(&q->peers[i]); peer != NULL; peer = next) {
			next = LIST_NEXT(peer, link);
			fn(peer, arg);
		}
	}
}

int
dev_addr_uid(const struct plx_addr *addr, uint64_t *uid)
{
	if (addr->len < sizeof(*uid) || addr->len > PLX_ADDR_MAX)
		return -EINVAL;
	memcpy(uid, addr->bytes, sizeof(*uid));
	return 0;
}

struct plx_peer *
dev_peer_find(const struct plx_queue *q, uint64_t uid, const struct plx_addr *addr)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	struct plx_peer *peer;

	LIST_FOREACH(peer, &q->peers[uid % PLX_DEV_PEER_HASH], link) {
		if (peer->uid == uid && !peer->left && (ops->peer_is == NULL || ops->peer_is(peer, addr)))
			break;
	}
	return peer;
}

int
plx_peer_get(struct plx_queue *q, const struct plx_addr *addr, struct plx_peer **out)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	struct plx_peer *peer;
	uint64_t uid;
	int rc = dev_addr_uid(addr, &uid);

	if (rc != 0)
		return rc;
	peer = dev_peer_find(q, uid, addr);
	if (peer != NULL)
		goto found;
	peer = aligned_alloc(PLX_LINE, (ops->peer_len + PLX_LINE - 1) / PLX_LINE * PLX_LINE);
	if (peer == NULL)
		return -ENOMEM;
	memset(peer, 0, ops->peer_len);
	peer->q = q;
	peer->uid = uid;
	rc = ops->peer_open(peer, addr);
	if (rc != 0) {
		free(peer);
		return rc;
	}
	LIST_INSERT_HEAD(&q->peers[uid % PLX_DEV_PEER_HASH], peer, link);
	PLX_STAT_INC(q->stat.peers);
found:
	peer->refs++;
	*out = peer;
	return 0;
}

void
plx_peer_met(struct plx_peer *peer)
{
	struct plx_proc self;

	if (peer->met)
		return;
	peer->met = true;
	if (!plx_check_wanted())
		return;
	if (plx_proc_self(&self) != 0 || peer->proc != plx_proc_id(&self))
		plx_check_peer(plx_dev_name(peer->q->dev));
}

int
plx_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out)
{
	const struct plx_dev_ops *ops = peer->q->dev->ops;

	return ops->shared.windows != NULL ? ops->shared.windows(peer, out) : -EOPNOTSUPP;
}

const void *
plx_peer_view(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map)
{
	const struct plx_dev_ops *ops = peer->q->dev->ops;

	*map = NULL;
	return (peer->caps & PLX_DEV_SHARED) != 0 ? ops->shared.view(peer, addr, len, map) : NULL;
}

bool
plx_peer_has_left(const struct plx_peer *peer)
{
	const struct plx_dev_ops *ops = peer->q->dev->ops;

	return ops->peer_has_left != NULL && ops->peer_has_left(peer);
}

bool
plx_peer_may_leave(const struct plx_peer *peer)
{
	return peer->q->dev->ops->peer_has_left != NULL;
}

int
plx_peer_connect(struct plx_peer *peer)
{
	int rc;

	if (peer->state == PLX_PEER_OPEN)
		return 0;
	if (peer->state == PLX_PEER_DEAD)
		return peer->err;
	rc = peer->q->dev->ops->peer_connect(peer);
	if (rc == 0) {
		peer->state = PLX_PEER_OPEN;
		plx_peer_met(peer);
	} else if (rc != -ENOMEM && rc != -EMFILE && rc != -ENFILE) {
		plx_peer_dead(peer, rc);
	}
	return rc;
}

void
plx_peer_settle(struct plx_peer *peer)
{
	if (peer->state == PLX_PEER_OPEN && peer->q->dev->ops->peer_settle != NULL)
		peer->q->dev->ops->peer_settle(peer);
}

void
plx_peer_put(struct plx_peer *peer)
{
	PLX_ASSERT(peer->refs > 0);
	peer->refs--;
}

void
plx_peer_leave(struct plx_peer *peer)
{
	PLX_ASSERT(peer->state == PLX_PEER_DEAD);
	peer->left = true;
	plx_peer_put(peer);
}

void
plx_peer_dead(struct plx_peer *peer, int err)
{
	if (peer->state == PLX_PEER_DEAD)
		return;
	peer->state = PLX_PEER_DEAD;
	peer->err = err;
	peer->q->n_dead++;
	PLX_STAT_INC(peer->q->stat.peers_dead);
	if (peer->q->on_dead != NULL)
		peer->q->on_dead(peer);
}

int
plx_peer_lossy_to(struct plx_peer *peer, uint32_t where)
{
	const struct plx_dev_ops *ops = peer->q->dev->ops;

	return ops->datagram.to != NULL ? ops->datagram.to(peer, where) : -EINVAL;
}

int
plx_peer_lossy_tx(const struct plx_tx *tx)
{
	PLX_ASSERT(tx->hdr_len + tx->len <= tx->peer->lossy_mtu);
	return tx->peer->state == PLX_PEER_DEAD ? tx->peer->err
						: tx->peer->q->dev->ops->datagram.tx(tx);
}

int
plx_peer_tx_zcopy(const struct plx_tx_zcopy *tx)
{
	PLX_ASSERT(tx->n_iov > 0 && tx->n_iov <= tx->peer->q->zcopy_iov);
	if (!plx_queue_takes(tx->peer->q, tx->mem_type))
		return -EOPNOTSUPP;
	return tx->peer->state == PLX_PEER_DEAD ? tx->peer->err : tx->peer->q->dev->ops->zcopy.tx(tx);
}

unsigned
plx_peer_rma_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	const struct plx_dev_rma_ops *rma = &peer->q->dev->ops->rma;

	PLX_ASSERT(n > 0 && n <= PLX_RMA_BURST);
	for (unsigned i = 0; i < n; i++)
		if (!plx_queue_takes(peer->q, pieces[i].mem_type))
			n = i;
	return n != 0 && rma->burst != NULL ? rma->burst(peer, put, pieces, n) : 0;
}
