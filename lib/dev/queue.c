/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * queue.c - queues: opened and closed, and the optional functions of a driver besides messages
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev_int.h"

/* Parts of a rank: each counts more than all later ones. */
#define RANK_WORKS (1 << 30)
#define RANK_KNOWN (1 << 29)
#define RANK_SELF  (1 << 12) /* a worker sends to itself by one queue */
#define RANK_NET   (1 << 11)
#define RANK_SPEED 7	     /* from this bit on */
#define RANK_PLACE (1 << 6)
#define RANK_NEAR  (1 << 4)  /* for each side */

#define ROW(field) PLX_STAT_ROW(struct plx_queue_stat, field)

const struct plx_stat_row plx_queue_stat_rows[] = {
	ROW(tx_msgs), ROW(tx_bytes), ROW(tx_full), ROW(rx_msgs), ROW(rx_bytes),
	ROW(rx_drop_bad_cell), ROW(rx_drop_bad_peer), ROW(rx_skip_dead), ROW(rma_ops),
	ROW(rma_bytes), ROW(rma_mapped), ROW(rma_refused), ROW(peers), ROW(peers_dead),
	PLX_STAT_END,
};

int
plx_queue_open_port(struct plx_dev *dev, const struct plx_conf *conf, unsigned port, void *owner,
	struct plx_queue **out)
{
	const struct plx_dev_ops *ops = dev->ops;
	struct plx_queue *q;
	int rc;

	if (port >= (ops->ports.name != NULL ? PLX_DEV_PORTS : 1))
		return -ENODEV;
	q = aligned_alloc(PLX_LINE, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	dev_fill_hooks(q, ops);
	q->owner = owner;
	q->dev = dev;
	q->conf = conf;
	q->port = port;
	q->caps = dev->caps;
	q->mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
	for (unsigned i = 0; i < PLX_DEV_PEER_HASH; i++)
		LIST_INIT(&q->peers[i]);
	rc = ops->queue_open(q);
	if (rc != 0) {
		free(q);
		return rc;
	}
	q->conf = NULL;
	q->mem_types &= UCS_MEMORY_TYPES_CPU_ACCESSIBLE;
	*out = q;
	return 0;
}

void
plx_queue_close(struct plx_queue *q)
{
	if (q == NULL)
		return;
	q->closing = true;
	if (q->dev->ops->queue_leave != NULL)
		q->dev->ops->queue_leave(q);
	for (unsigned i = 0; i < PLX_DEV_PEER_HASH; i++)
		while (!LIST_EMPTY(&q->peers[i]))
			dev_peer_free(LIST_FIRST(&q->peers[i]));
	q->dev->ops->queue_close(q);
	free(q);
}

void
plx_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	q->dev->ops->queue_addr(q, addr);
}

void
plx_queue_addr_whose(const struct plx_queue *q, const struct plx_addr *addr, char *text, size_t len)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	snprintf(text, len, "a peer");
	if (ops->addr_whose != NULL)
		ops->addr_whose(addr, text, len);
}

void
plx_queue_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text,
	size_t len)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	snprintf(text, len, "%s", err == -EINVAL ? "its address is malformed" : strerror(-err));
	if (err != -EINVAL && ops->addr_why != NULL)
		ops->addr_why(q, addr, err, text, len);
}

const char *
plx_queue_port(const struct plx_queue *q)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	return ops->ports.name != NULL ? ops->ports.name(q) : NULL;
}

bool
plx_queue_is_up(const struct plx_queue *q)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	return ops->ports.is_up == NULL || ops->ports.is_up(q);
}

int
plx_queue_efd(struct plx_queue *q)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	return ops->sleep.efd != NULL ? ops->sleep.efd(q) : -EOPNOTSUPP;
}

int
plx_queue_arm(struct plx_queue *q)
{
	return q->dev->ops->sleep.arm(q);
}

void
plx_queue_disarm(struct plx_queue *q)
{
	q->dev->ops->sleep.disarm(q);
}

bool
plx_queue_looks(const struct plx_queue *q)
{
	return q->dev->ops->rx_look != NULL;
}

int
plx_queue_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	if (recv != NULL && !plx_queue_takes(q, recv->mem_type))
		return -EOPNOTSUPP;
	return q->dev->ops->tag.post(q, recv, seen);
}

int
plx_queue_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	return q->dev->ops->tag.cancel(q, ctx, force, seen);
}

int
plx_queue_group_join(struct plx_queue *q, uint64_t group, bool rx)
{
	return q->group_mtu != 0 ? q->dev->ops->group.join(q, group, rx) : -EOPNOTSUPP;
}

void
plx_queue_group_leave(struct plx_queue *q, uint64_t group, bool rx)
{
	if (q->group_mtu != 0)
		q->dev->ops->group.leave(q, group, rx);
}

int
plx_queue_group_tx(struct plx_queue *q, uint64_t group, const void *data, uint32_t len)
{
	return q->group_mtu != 0 ? q->dev->ops->group.tx(q, group, data, len) : -ENOENT;
}

void *
plx_queue_rx_keep(struct plx_queue *q, struct plx_rx *rx)
{
	PLX_ASSERT(q->keep_min != 0);
	return q->dev->ops->keep.keep(q, rx);
}

void
plx_queue_rx_return(struct plx_queue *q, void *kept)
{
	q->dev->ops->keep.give_back(q, kept);
}

int
plx_queue_lossy_open(struct plx_queue *q, uint32_t *where)
{
	return q->dev->ops->datagram.open != NULL ? q->dev->ops->datagram.open(q, where) : -EOPNOTSUPP;
}

const void *
plx_queue_drv_stats(const struct plx_queue *q, const struct plx_stat_row **rows)
{
	*rows = q->dev->ops->stat_rows;
	return q->dev->ops->stats != NULL ? q->dev->ops->stats(q) : NULL;
}

uint64_t
plx_queue_deadline(struct plx_queue *q)
{
	const struct plx_dev_ops *ops = q->dev->ops;

	return ops->deadline != NULL ? ops->deadline(q) : UINT64_MAX;
}

void
plx_queue_control(struct plx_queue *q)
{
	struct plx_peer *peer, *next;

	if (q->dev->ops->queue_control != NULL)
		q->dev->ops->queue_control(q);
	for (unsigned i = 0; i < PLX_DEV_PEER_HASH && q->n_dead > 0; i++) {
		for (peer = LIST_FIRST(&q->peers[i]); peer != NULL; peer = next) {
			next = LIST_NEXT(peer, link);
			if (peer->state == PLX_PEER_DEAD && peer->refs == 0) {
				dev_peer_free(peer);
				q->n_dead--;
			}
		}
	}
}

int64_t
plx_dev_path_rank(const struct plx_dev_path *p)
{
	int rank = (p->works ? RANK_WORKS : 0) | (p->known ? RANK_KNOWN : 0) | (p->self ? RANK_SELF : 0) |
		(p->one_net ? RANK_NET : 0) | p->speed << RANK_SPEED | (p->one_place ? RANK_PLACE : 0) | p->n_near * RANK_NEAR;

	return (int64_t)(p->dead ? 0 : rank) << 32 | p->spread;
}

/* What does not depend on the device. */
static void
path_look(const struct plx_queue *q, const struct plx_addr *addr, uint64_t uid, struct plx_dev_path *path)
{
	const struct plx_peer *peer = dev_peer_find(q, uid, addr);
	struct plx_addr own;
	uint64_t own_uid;

	plx_queue_addr(q, &own);
	memcpy(&own_uid, own.bytes, sizeof(own_uid));
	path->spread = (own_uid ^ uid) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	path->self = own_uid == uid;
	path->dead = peer != NULL && peer->state == PLX_PEER_DEAD;
	path->known = peer != NULL;
}

int64_t
plx_queue_rank(struct plx_queue *q, const struct plx_addr *addr)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	struct plx_dev_path path = {.works = false};
	uint64_t uid;
	int rc = dev_addr_uid(addr, &uid);

	if (rc == 0 && ops->ports.path != NULL)
		rc = ops->ports.path(q, addr, &path);
	if (rc != 0)
		return rc;
	path_look(q, addr, uid, &path);
	return plx_dev_path_rank(&path);
}
