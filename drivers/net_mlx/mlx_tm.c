/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm.c - receives in the device's list, from the post to the last callback
 *
 * Design notes
 * - The device counts the tagged messages that matched no receive, and suspends a new receive
 *   until it gets the same number; lib/offload sends the count of processed ones. A token whose
 *   message never came (its sender died) was counted by the device and nobody sees it: so
 *   `dropped` is added to the count.
 * - While a receive that was withdrawn by force may still be in the list no count is sent, as the
 *   list may begin to match once the counts agree. That happens when there was no room for the
 *   command: it waits in `dues`.
 * - A receive whose last completion has come is not removed: the handle may be another's by now.
 * - When the device executes no commands any more it counts as removed: its queue pairs are
 *   closed. After that no buffer is written, and every cancel succeeds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mlx_mem.h"
#include "mlx_slot.h"
#include "mlx_tm.h"
#include "plx_wire.h"

enum recv_state {
	RECV_FREE,
	RECV_POSTED,
	RECV_MET,   /* the message is not complete yet */
	RECV_TOKEN, /* the message is the next of its sender */
	RECV_ENDED, /* complete, but the device still has an answer */
};

struct tm_recv {
	TAILQ_ENTRY(tm_recv) link; /* of free, or dues */
	uct_tag_context_t *ctx;	   /* NULL: no callbacks */
	struct mlx_peer *peer;	   /* RECV_MET, RECV_TOKEN: the message's sender */
	struct mlx_memref memref;
	size_t len;
	uint64_t stag;
	uint32_t handle;
	uint32_t app;
	uint8_t state;
	bool asked;	/* a command to remove it is due or in flight, and will be answered */
	bool due;	/* in dues */
	bool placed;	/* the device has written everything */
};

/* Owner: the queue's. */
struct mlx_tm {
	struct mlx_queue *mq;
	struct mlx_tm_hw *hw;
	uint16_t seen;	  /* the last count from software */
	uint16_t dropped; /* tagged messages that nobody got */
	bool leaving;
	TAILQ_HEAD(, tm_recv) free, dues;
	struct tm_recv recvs[];
};

_Static_assert(sizeof(struct tm_recv *) <= UCT_TAG_PRIV_LEN, "priv holds where it is");

static uint32_t
number(const struct mlx_tm *tm, const struct tm_recv *r)
{
	return r - tm->recvs;
}

/* -- commands -- */

static int
del(struct mlx_tm *tm, const struct tm_recv *r)
{
	struct mlx_tm_cmd cmd = {.recv = number(tm, r), .handle = r->handle,
		.count = tm->seen + tm->dropped, .counts = TAILQ_EMPTY(&tm->dues)};
	int rc = mlx_tm_hw_del(tm->hw, &cmd, r->asked);

	if (rc == 0)
		PLX_STAT_INC(tm->mq->stat.tm_dels);
	else if (rc != -EAGAIN)
		mlx_port_failed(tm->mq->port);
	return rc;
}

/* @return whether the count was sent */
static bool
count_tell(struct mlx_tm *tm)
{
	int rc = mlx_tm_hw_sync(tm->hw, tm->seen + tm->dropped);

	if (rc == 0)
		PLX_STAT_INC(tm->mq->stat.tm_syncs);
	else if (rc != -EAGAIN)
		mlx_port_failed(tm->mq->port);
	return rc == 0;
}

static void
recv_free(struct mlx_tm *tm, struct tm_recv *r)
{
	r->state = RECV_FREE;
	TAILQ_INSERT_TAIL(&tm->free, r, link);
}

/* It is out of the list, or will be before any count is sent. */
static void
del_done(struct mlx_tm *tm, struct tm_recv *r)
{
	if (!r->asked)
		recv_free(tm, r);
}

/* Whether a command can remove it from the list: otherwise its completion has come, and is
 * reported soon. */
static bool
is_listed(const struct mlx_tm *tm, const struct tm_recv *r)
{
	return !tm->hw->met[number(tm, r)].over;
}

/* The command is not needed any more. */
static void
due_end(struct mlx_tm *tm, struct tm_recv *r)
{
	if (!r->due)
		return;
	TAILQ_REMOVE(&tm->dues, r, link);
	r->due = r->asked = false;
}

/* Commands that found no room. @return whether all are sent */
static bool
dues_work(struct mlx_tm *tm)
{
	struct tm_recv *r;

	while ((r = TAILQ_FIRST(&tm->dues)) != NULL) {
		if (!is_listed(tm, r)) {
			due_end(tm, r);
			continue;
		}
		TAILQ_REMOVE(&tm->dues, r, link);
		if (del(tm, r) != 0) {
			TAILQ_INSERT_HEAD(&tm->dues, r, link);
			return false;
		}
		r->due = false;
		del_done(tm, r);
	}
	return true;
}

static int
add(struct mlx_tm *tm, struct tm_recv *r, const struct plx_dev_recv *recv)
{
	struct mlx_tm_cmd cmd = {.recv = number(tm, r), .count = tm->seen + tm->dropped,
		.counts = true};
	int rc = 0;

	r->memref = (struct mlx_memref){0};
	if (recv->len != 0)
		rc = mlx_memref_get(tm->mq, recv->buf, recv->len, 0, IBV_ACCESS_LOCAL_WRITE, &r->memref);
	if (rc != 0)
		return -EOPNOTSUPP;
	rc = mlx_tm_hw_add(tm->hw, &cmd, recv, recv->len != 0 ? r->memref.mr->lkey : 0);
	if (rc == 0) {
		r->handle = cmd.handle;
		return 0;
	}
	mlx_memref_put(&r->memref);
	return rc == -ENOSPC || rc == -EAGAIN ? rc : -EOPNOTSUPP;
}

/* Nobody got a tagged message. The count has no other occasion to be sent. */
static void
count_dropped(struct mlx_tm *tm)
{
	PLX_STAT_INC(tm->mq->stat.tm_dropped);
	tm->dropped++;
	if (!tm->leaving && dues_work(tm))
		(void)count_tell(tm); /* or with the next command */
}

int
mlx_tm_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_tm *tm = mq->tm;
	struct tm_recv *r;
	int rc;

	tm->seen = seen;
	if (mlx_port_is_gone(mq->port) || !dues_work(tm))
		return -EAGAIN;
	if (recv == NULL)
		return count_tell(tm) ? 0 : -EAGAIN;
	r = TAILQ_FIRST(&tm->free);
	rc = r != NULL ? add(tm, r, recv) : -ENOSPC;
	if (rc != 0) {
		PLX_STAT_INC(mq->stat.tm_refused);
		return rc;
	}
	TAILQ_REMOVE(&tm->free, r, link);
	r->state = RECV_POSTED;
	r->ctx = recv->ctx;
	r->len = recv->len;
	r->asked = r->due = r->placed = false;
	memcpy(recv->ctx->priv, &r, sizeof(r));
	PLX_STAT_INC(mq->stat.tm_adds);
	return 0;
}

int
mlx_tm_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	struct mlx_tm *tm = mlx_queue(q)->tm;
	struct tm_recv *r;

	memcpy(&r, ctx->priv, sizeof(r));
	tm->seen = seen;
	if (force) {
		PLX_ASSERT(r->state == RECV_POSTED && !r->asked);
		r->ctx = NULL;
		r->state = RECV_ENDED;
		mlx_memref_put(&r->memref); /* it matches nothing any more */
	} else {
		r->asked = is_listed(tm, r);
	}
	if (!is_listed(tm, r))
		return 0;
	r->due = !dues_work(tm) || del(tm, r) != 0;
	if (r->due)
		TAILQ_INSERT_TAIL(&tm->dues, r, link);
	else
		del_done(tm, r);
	return 0;
}

/* -- what came -- */

/* The device has no more completions for its message, and the owner is about to get the
 * last callback. */
static uct_tag_context_t *
recv_end(struct mlx_tm *tm, struct tm_recv *r)
{
	uct_tag_context_t *ctx = r->ctx;

	mlx_memref_put(&r->memref);
	r->ctx = NULL;
	r->state = RECV_ENDED;
	due_end(tm, r);
	if (!r->asked && r->placed)
		recv_free(tm, r);
	return tm->leaving ? NULL : ctx;
}

static void
recv_complete(struct mlx_tm *tm, struct tm_recv *r, size_t len, ucs_status_t status)
{
	uint64_t stag = r->stag;
	uct_tag_context_t *ctx = recv_end(tm, r);

	if (ctx != NULL)
		ctx->completed_cb(ctx, stag, 0, len, NULL, status);
}

static void
on_met(struct mlx_tm *tm, struct tm_recv *r, struct mlx_peer *p)
{
	const struct mlx_tm_met *met = &tm->hw->met[number(tm, r)];

	r->state = RECV_MET;
	r->peer = p;
	r->stag = met->tag;
	r->app = met->app;
	PLX_STAT_INC(tm->mq->stat.tm_met);
	if (r->ctx != NULL && !tm->leaving)
		r->ctx->tag_consumed_cb(r->ctx);
}

/* The sender violates the protocol of mlx_tm.h. */
static void
bad_peer(struct mlx_tm *tm, struct mlx_peer *p)
{
	PLX_STAT_INC(tm->mq->stat.tm_drop_bad);
	plx_link_lose(&p->link, -EBADMSG);
}

/* Its message is complete. */
static void
on_placed(struct mlx_tm *tm, struct tm_recv *r, const struct mlx_hw_comp *comp)
{
	struct plx_queue *q = tm->mq->q;
	struct mlx_peer *p = r->peer;

	r->placed = true;
	if (p != NULL)
		mlx_slot_placed(tm->mq, p, comp->imm);
	if (r->app == MLX_TM_TOKEN && p != NULL && p->tm_waits == MLX_TM_NOBODY && comp->len == 0) {
		r->state = RECV_TOKEN;
		p->tm_waits = MLX_TM_RECVS + number(tm, r);
		return;
	}
	if (r->app != MLX_TM_WHOLE) {
		if (p != NULL)
			bad_peer(tm, p);
		recv_complete(tm, r, 0, UCS_ERR_IO_ERROR);
		return;
	}
	PLX_STAT_INC(tm->mq->stat.tm_placed);
	PLX_STAT_INC(q->stat.rx_msgs);
	PLX_STAT_ADD(q->stat.rx_bytes, sizeof(uint64_t) + comp->len);
	recv_complete(tm, r, comp->len, comp->len <= r->len ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED);
}

/* The message does not arrive in the buffer. */
static void
on_failed(struct mlx_tm *tm, struct tm_recv *r, const struct mlx_hw_comp *comp)
{
	r->placed = true;
	if (comp->status == MLX_TM_FAILED) {
		PLX_STAT_INC(tm->mq->stat.tm_failed);
		recv_complete(tm, r, 0, UCS_ERR_IO_ERROR);
		return;
	}
	if (r->peer != NULL)
		mlx_slot_placed(tm->mq, r->peer, comp->imm);
	recv_complete(tm, r, comp->len, UCS_ERR_MESSAGE_TRUNCATED);
}

/* The device's answer to a command that removed a receive from the list. */
static void
on_answer(struct mlx_tm *tm, struct tm_recv *r, bool gone)
{
	r->asked = false;
	if (!gone)
		PLX_STAT_INC(tm->mq->stat.tm_late);
	if (gone && r->state == RECV_POSTED) {
		r->placed = true;
		recv_complete(tm, r, 0, UCS_ERR_CANCELED);
	} else if (r->state == RECV_ENDED && r->placed) {
		recv_free(tm, r);
	}
}

static void
take_recv(struct mlx_tm *tm, struct mlx_peer *p, const struct mlx_hw_comp *comp)
{
	struct tm_recv *r = &tm->recvs[comp->slot];
	bool second = comp->status == MLX_TM_PLACED;

	/* Its message was given up, and this is its last completion. */
	if (r->state == RECV_ENDED && !r->placed) {
		r->placed = true;
		due_end(tm, r);
		if (!r->asked)
			recv_free(tm, r);
		return;
	}
	if (comp->status == MLX_TM_FAILED && r->state == RECV_MET)
		second = true;
	if (r->state != (second ? RECV_MET : RECV_POSTED)) {
		PLX_STAT_INC(tm->mq->stat.tm_drop_bad);
		return;
	}
	if (!second)
		on_met(tm, r, p);
	if (comp->status == MLX_TM_PLACED || comp->status == MLX_TM_MET_PLACED)
		on_placed(tm, r, comp);
	else if (comp->status != MLX_TM_MET)
		on_failed(tm, r, comp);
	else if (p == NULL) /* its queue pair is closed: no more completions */
		recv_complete(tm, r, 0, UCS_ERR_CONNECTION_RESET);
}

/* A tagged message without a match. @return whether *rx is one */
static bool
take_unexpected(struct mlx_tm *tm, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	struct ibv_tmh tmh;
	uint8_t *at = mlx_bufs_at(&tm->mq->rx_bufs, comp->slot);
	uint64_t tag;

	PLX_STAT_INC(tm->mq->stat.tm_unexpected);
	if (!mlx_slot_accept(tm->mq, p, comp, rx)) {
		count_dropped(tm);
		return false;
	}
	memcpy(&tmh, at, sizeof(tmh));
	if (comp->len == sizeof(tmh) && be32toh(tmh.app_ctx) == MLX_TM_TOKEN &&
		p->tm_waits == MLX_TM_NOBODY) {
		p->tm_waits = MLX_TM_SOFTWARE;
		mlx_slot_drop(tm->mq, rx);
		return false;
	}
	if (comp->len < sizeof(tmh) || tmh.opcode != IBV_TMH_EAGER ||
		be32toh(tmh.app_ctx) != MLX_TM_WHOLE ||
		rx->op != PLX_WIRE_EAGER || p->tm_waits != MLX_TM_NOBODY) {
		bad_peer(tm, p);
		mlx_slot_drop(tm->mq, rx);
		count_dropped(tm);
		return false;
	}
	tag = be64toh(tmh.tag);
	rx->data += sizeof(tmh) - sizeof(tag);
	rx->len -= sizeof(tmh) - sizeof(tag);
	memcpy(at + sizeof(tmh) - sizeof(tag), &tag, sizeof(tag));
	return true;
}

/* The message of a token. @return whether software has to process it */
static bool
take_announced(struct mlx_tm *tm, struct mlx_peer *p, struct plx_rx *rx)
{
	uint32_t waits = p->tm_waits;
	uct_tag_context_t *ctx;
	struct tm_recv *r;
	uint64_t tag;

	p->tm_waits = MLX_TM_NOBODY;
	if (waits == MLX_TM_SOFTWARE)
		return true;
	r = &tm->recvs[waits - MLX_TM_RECVS];
	memcpy(&tag, rx->data, sizeof(tag));
	if (tag != r->stag) {
		bad_peer(tm, p);
		recv_complete(tm, r, 0, UCS_ERR_IO_ERROR);
	} else {
		ctx = recv_end(tm, r);
		if (ctx != NULL)
			ctx->rndv_cb(ctx, tag, rx, sizeof(*rx), UCS_OK, UCT_TAG_RECV_CB_INLINE_DATA);
	}
	mlx_slot_done(tm->mq, rx);
	return false;
}

/* Any other message. @return whether *rx is one for software */
static bool
take_no_tag(struct mlx_tm *tm, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	if (!mlx_slot_accept(tm->mq, p, comp, rx))
		return false;
	if (rx->len >= sizeof(struct ibv_tmh)) {
		rx->data += sizeof(struct ibv_tmh);
		rx->len -= sizeof(struct ibv_tmh);
		if (plx_wire_is_tagged(rx->op, rx->len) == (p->tm_waits != MLX_TM_NOBODY))
			return p->tm_waits == MLX_TM_NOBODY || take_announced(tm, p, rx);
	}
	bad_peer(tm, p);
	mlx_slot_drop(tm->mq, rx);
	return false;
}

bool
mlx_tm_take(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx)
{
	switch (comp->status) {
	case MLX_TM_UNEXPECTED:
		return take_unexpected(mq->tm, p, comp, rx);
	case MLX_TM_NO_TAG:
		return take_no_tag(mq->tm, p, comp, rx);
	case MLX_TM_GONE:
	case MLX_TM_LATE:
		on_answer(mq->tm, &mq->tm->recvs[comp->slot], comp->status == MLX_TM_GONE);
		return false;
	case MLX_TM_BROKEN:
		mlx_port_failed(mq->port);
		return false;
	default:
		take_recv(mq->tm, p, comp);
		return false;
	}
}

void
mlx_tm_peer_lost(struct mlx_queue *mq, struct mlx_peer *p)
{
	struct mlx_tm *tm = mq->tm;

	if (p->tm_waits == MLX_TM_SOFTWARE)
		count_dropped(tm);
	p->tm_waits = MLX_TM_NOBODY;
	for (uint32_t i = 0; i < tm->hw->list_n; i++) {
		struct tm_recv *r = &tm->recvs[i];

		if (r->peer != p || (r->state != RECV_MET && r->state != RECV_TOKEN))
			continue;
		PLX_STAT_INC(mq->stat.tm_failed);
		recv_complete(tm, r, 0, UCS_ERR_CONNECTION_RESET);
	}
}

/* Nothing writes to their buffers any more, and commands get no answer. */
static __rte_noinline __rte_cold void
asked_end(struct mlx_tm *tm)
{
	for (uint32_t i = 0; i < tm->hw->list_n; i++) {
		struct tm_recv *r = &tm->recvs[i];

		if (r->state != RECV_POSTED || !r->asked)
			continue;
		r->placed = true;
		due_end(tm, r);
		r->asked = false;
		recv_complete(tm, r, 0, UCS_ERR_CANCELED);
	}
}

void
mlx_tm_work(struct mlx_queue *mq)
{
	(void)dues_work(mq->tm);
	if (unlikely(mlx_port_is_gone(mq->port)) && mq->link.n_made == 0)
		asked_end(mq->tm);
}

/* -- opening and closing -- */

int
mlx_tm_open(struct mlx_queue *mq, const struct mlx_hw_conf *conf)
{
	uint32_t want = (uint32_t)plx_conf_u64(mq->q->conf, PLX_CONF_TAG_OFFLOAD_LIST);
	struct mlx_tm_hw *hw;
	struct mlx_tm *tm;
	int rc = mlx_tm_hw_open(conf, want, &hw);

	if (rc != 0)
		return rc;
	tm = calloc(1, sizeof(*tm) + hw->list_n * sizeof(tm->recvs[0]));
	if (tm == NULL) {
		hw->ops.close(&hw->base);
		return -ENOMEM;
	}
	tm->mq = mq;
	tm->hw = hw;
	TAILQ_INIT(&tm->free);
	TAILQ_INIT(&tm->dues);
	for (uint32_t i = 0; i < hw->list_n; i++)
		TAILQ_INSERT_TAIL(&tm->free, &tm->recvs[i], link);
	mq->tm = tm;
	mq->hw = &hw->base;
	mq->rx_spare += MLX_TM_SLOTS;
	mq->addr.flags |= MLX_ADDR_TM;
	mq->q->tag_caps.list_n = hw->list_n;
	/* The behaviour of a device for a message longer than the receive is not known. */
	mq->q->tag_caps.len_min = mq->addr.rx_len - sizeof(struct ibv_tmh);
	return 0;
}

void
mlx_tm_leave(struct mlx_queue *mq)
{
	mq->tm->leaving = true;
}

void
mlx_tm_close(struct mlx_queue *mq)
{
	if (mq->tm == NULL)
		return;
	for (uint32_t i = 0; i < mq->q->tag_caps.list_n; i++)
		if (mq->tm->recvs[i].ctx != NULL)
			mlx_memref_put(&mq->tm->recvs[i].memref);
	free(mq->tm);
}
