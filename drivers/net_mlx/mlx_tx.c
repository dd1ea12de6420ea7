/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tx.c - sending: credit, request, doorbell; and send completions
 *
 * Design notes
 * - Short messages are inlined in the request, others are copied into a registered buffer; the
 *   application may reuse its memory at once in both cases. Only some requests are signalled,
 *   since a completion covers all earlier ones. But requests and buffers belong to the whole
 *   queue, and those after the last signalled one stay in use until the next send to the peer: so
 *   when half of either is in use every request that takes one is signalled. Then at most that
 *   half stays in use.
 */
#include <errno.h>
#include <string.h>

#include "plx_copy.h"
#include "plx_wire.h"

#include "mlx5_sq.h"
#include "mlx_mem.h"
#include "mlx_tx.h"
#include "mlx_verbs.h"

const struct ibv_tmh mlx_tx_no_tag = {.opcode = IBV_TMH_NO_TAG};

static __rte_noinline int
tx_refuse(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->link.state == PLX_LINK_DEAD)
		return p->peer.err;
	if (p->link.state == PLX_LINK_OPEN) {
		if (!plx_credit_has(&p->link.credit)) {
			p->link.credit.ran_out = true;
			PLX_STAT_INC(mq->stat.tx_no_credit);
		} else {
			PLX_STAT_INC(mq->stat.tx_no_room);
		}
	} else {
		plx_link_want(&p->link, false);
	}
	PLX_STAT_INC(p->peer.q->stat.tx_full);
	return -EAGAIN;
}

/* As mlx_rma() does. */
static __rte_noinline int
write_refuse(struct mlx_peer *p)
{
	if (p->link.state == PLX_LINK_DEAD)
		return p->peer.err;
	plx_link_want(&p->link, false);
	return -EAGAIN;
}

static inline bool
tx_ready(const struct mlx_queue *mq, const struct mlx_peer *p)
{
	return likely(mlx_tx_has_room(mq, p) && plx_credit_has(&p->link.credit));
}

static inline bool
wants_signal(const struct mlx_queue *mq, struct mlx_peer *p)
{
	return unlikely(++p->unsignalled >= MLX_SIGNAL_EVERY || mq->tx_out >= MLX_TX_ALL / 2 ||
		mq->tx_bufs.n - mq->tx_bufs.n_free >= MLX_SEND_BUFS / 2);
}

static inline void
tx_rung(struct mlx_queue *mq, struct mlx_peer *p, int rc)
{
	PLX_STAT_INC(mq->stat.tx_rings);
	if (unlikely(rc != 0))
		plx_link_lose(&p->link, rc);
}

static void
tx_ring(struct mlx_queue *mq, struct mlx_peer *p)
{
	tx_rung(mq, p, mq->hw->ops->ring(p->qp));
}

/* One request, at once. */
static inline int
tx_one(const struct mlx_hw_ops *ops, struct mlx_hw_qp *qp, const struct mlx_hw_wr *wr)
{
	if (likely(qp->at_once))
		return mlx_verbs_post_one(qp, wr);
	ops->post(qp, wr, 1);
	return ops->ring(qp);
}

/* A request is about to be posted: what is to be done when it is over. */
static inline void
tx_note(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr, struct mlx_txrec rec)
{
	if (wr->flags & MLX_WR_SIGNAL || wants_signal(mq, p)) {
		wr->flags |= MLX_WR_SIGNAL;
		p->unsignalled = 0;
		rec.signalled = true;
		mq->tx_due++;
		PLX_STAT_INC(mq->stat.tx_signalled);
	}
	rec.holds = true;
	p->recs[p->qp->next % MLX_TX_RECS] = rec;
	p->tx_room--;
	mq->tx_out++;
}

/* It was posted, and the device learns of it when the turn ends. */
static inline void
tx_hold(struct mlx_queue *mq, struct mlx_peer *p)
{
	if (p->held)
		return;
	p->held = mq->q->held = true;
	SLIST_INSERT_HEAD(&mq->held, p, held_link);
}

/* Post one request. The device learns of it now, or when the turn ends. */
static inline void
tx_post(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr, struct mlx_txrec rec)
{
	tx_note(mq, p, wr, rec);
	if (!mq->q->hold) {
		tx_rung(mq, p, tx_one(mq->hw->ops, p->qp, wr));
		return;
	}
	mq->hw->ops->post(p->qp, wr, 1);
	tx_hold(mq, p);
}

/*
 * Whether the usual short request may be sent: one with an immediate doorbell, unsignalled,
 * and without work at its completion. It takes no buffer, so the number of buffers in use
 * does not matter.
 */
static __rte_always_inline bool
tx_is_usual(const struct mlx_queue *mq, const struct mlx_peer *p, enum mlx_by by)
{
	return likely(p->link.state == PLX_LINK_OPEN && p->tx_room > 1 &&
		(by == MLX_BY_MLX5 || p->qp->at_once) &&
		p->unsignalled + 1 < MLX_SIGNAL_EVERY && mq->tx_out < MLX_TX_ALL / 2 &&
		!mq->q->hold);
}

/* Post it; its entry in recs[] is already clear. */
static __rte_always_inline void
tx_usual(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_wr *wr, enum mlx_by by)
{
	p->unsignalled++;
	p->tx_room--;
	mq->tx_out++;
	if (by == MLX_BY_VERBS) {
		tx_rung(mq, p, mlx_verbs_post_one(p->qp, wr));
		return;
	}
	mlx5_post_now(p->qp, wr);
	PLX_STAT_INC(mq->stat.tx_rings);
}

void
mlx_tx_post(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr, struct mlx_txrec rec)
{
	tx_post(mq, p, wr, rec);
}

/* The credits in a message's imm; it takes one. */
static inline uint32_t
tx_credits(struct mlx_peer *p)
{
	struct plx_credit_note note = plx_credit_take(&p->link.credit);

	return MLX_IMM(0, note.n, (note.are_new ? MLX_IMM_NEW : 0) |
		(note.ran_out ? MLX_IMM_SHORT : 0));
}

static inline void
tx_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr, uint32_t imm, uint32_t buf)
{
	wr->op = MLX_WR_SEND;
	wr->imm = imm | tx_credits(p);
	tx_post(mq, p, wr, (struct mlx_txrec){.buf = buf});
}

static inline void
tx_inline(struct mlx_queue *mq, struct mlx_peer *p, const void *msg, uint32_t len, uint32_t imm)
{
	struct mlx_hw_wr wr = {.flags = MLX_WR_INLINE, .addr = (uintptr_t)msg, .len = len};

	PLX_STAT_INC(mq->stat.tx_inline);
	tx_send(mq, p, &wr, imm, MLX_NONE);
}

static inline int
tx_taken(struct mlx_peer *p, uint32_t len)
{
	struct plx_queue *q = p->peer.q;

	p->link.used_at = mlx_queue(q)->link.looks;
	PLX_STAT_INC(q->stat.tx_msgs);
	PLX_STAT_ADD(q->stat.tx_bytes, len);
	return 0;
}

static inline void
copy_short(uint8_t *to, uint64_t hdr, const void *data, uint32_t len)
{
	memcpy(to, &hdr, sizeof(hdr));
	if (len > 0)
		plx_copy(to + sizeof(hdr), data, len);
}

/* In any state of the peer, by any hardware. */
static __rte_noinline int
tx_short_any(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);
	uint8_t msg[MLX_INLINE_MAX];

	if (unlikely(!tx_ready(mq, p)))
		return tx_refuse(p);
	copy_short(msg, hdr, data, len);
	tx_inline(mq, p, msg, sizeof(hdr) + len, MLX_IMM(op, 0, 0));
	return tx_taken(p, sizeof(hdr) + len);
}

static __rte_always_inline int
tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len,
	enum mlx_by by)
{
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);
	uint8_t msg[MLX_INLINE_MAX];
	struct mlx_hw_wr wr = {.op = MLX_WR_SEND, .flags = MLX_WR_INLINE, .addr = (uintptr_t)msg,
		.len = sizeof(hdr) + len};

	PLX_ASSERT(len <= peer->short_max);
	if (unlikely(!tx_is_usual(mq, p, by) || !plx_credit_has(&p->link.credit)))
		return tx_short_any(peer, op, hdr, data, len);
	copy_short(msg, hdr, data, len);
	wr.imm = MLX_IMM(op, 0, 0) | tx_credits(p);
	PLX_STAT_INC(mq->stat.tx_inline);
	tx_usual(mq, p, &wr, by);
	return tx_taken(p, sizeof(hdr) + len);
}

int
mlx_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return tx_short(peer, op, hdr, data, len, MLX_BY_VERBS);
}

int
mlx_tx_short_mlx5(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return tx_short(peer, op, hdr, data, len, MLX_BY_MLX5);
}

static inline void
copy_msg(uint8_t *to, const struct plx_tx *tx)
{
	memcpy(to, tx->hdr, tx->hdr_len);
	if (unlikely(tx->pack != NULL))
		tx->pack(tx->pack_arg, tx->pack_offset, to + tx->hdr_len, tx->len);
	else if (tx->len != 0)
		plx_copy(to + tx->hdr_len, tx->data, tx->len);
}

static inline uint32_t
tx_buf_get(struct mlx_queue *mq)
{
	uint32_t buf = mlx_bufs_get(&mq->tx_bufs);

	if (unlikely(buf == MLX_NONE)) {
		PLX_STAT_INC(mq->stat.tx_no_buf);
		PLX_STAT_INC(mq->q->stat.tx_full);
	}
	return buf;
}

static inline int
tx_copied(struct mlx_queue *mq, struct mlx_peer *p, const struct plx_tx *tx)
{
	uint32_t buf = tx_buf_get(mq);
	struct mlx_hw_wr wr = {.len = tx->hdr_len + tx->len};
	uint8_t *to;

	if (unlikely(buf == MLX_NONE))
		return -EAGAIN;
	to = mlx_bufs_at(&mq->tx_bufs, buf);
	copy_msg(to, tx);
	wr.addr = (uintptr_t)to;
	wr.lkey = mlx_bufs_lkey(&mq->tx_bufs, buf);
	PLX_STAT_INC(mq->stat.tx_copied);
	tx_send(mq, p, &wr, MLX_IMM(tx->op, 0, 0), buf);
	return 0;
}

static inline int
tx_whole(struct mlx_peer *p, const struct plx_tx *tx, uint32_t len)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	uint8_t msg[MLX_INLINE_MAX];

	if (unlikely(!tx_ready(mq, p)))
		return tx_refuse(p);
	if (len > MLX_INLINE_MAX)
		return tx_copied(mq, p, tx);
	copy_msg(msg, tx);
	tx_inline(mq, p, msg, len, MLX_IMM(tx->op, 0, 0));
	return 0;
}

int
mlx_tx(const struct plx_tx *tx)
{
	struct mlx_peer *p = mlx_peer(tx->peer);
	uint32_t len = tx->hdr_len + tx->len;
	int rc;

	if (unlikely(len > p->peer.mtu && p->link.state != PLX_LINK_DEAD))
		return -EMSGSIZE;
	rc = tx_whole(p, tx, len);
	return rc != 0 ? rc : tx_taken(p, len);
}

int
mlx_tx_framed(const struct plx_tx *tx, uint32_t len)
{
	struct mlx_peer *p = mlx_peer(tx->peer);
	int rc = tx_whole(p, tx, tx->hdr_len + tx->len);

	return rc != 0 || len == 0 ? rc : tx_taken(p, len);
}

/* The header, and before it what a device that matches tags wants. @return its length */
static uint32_t
zcopy_hdr(const struct mlx_peer *p, const struct plx_tx_zcopy *tx, uint8_t *to)
{
	uint32_t at = mlx_peer_has_tags(p) ? sizeof(mlx_tx_no_tag) : 0;

	memcpy(to, &mlx_tx_no_tag, at);
	memcpy(to + at, tx->hdr, tx->hdr_len);
	return at + tx->hdr_len;
}

/* The header goes from a buffer of ours, the data from where it lies; its completion is reported. */
static void
zcopy_post(struct mlx_queue *mq, struct mlx_peer *p, const struct plx_tx_zcopy *tx, uint32_t buf)
{
	uint8_t *hdr = mlx_bufs_at(&mq->tx_bufs, buf);
	const struct ibv_sge sge[MLX_HW_SGES] = {
		{(uintptr_t)hdr, zcopy_hdr(p, tx, hdr), mlx_bufs_lkey(&mq->tx_bufs, buf)},
		{(uintptr_t)tx->iov->iov_base, (uint32_t)tx->iov->iov_len, mlx_mem_lkey(tx->mem)}};
	struct mlx_hw_wr wr = {.op = MLX_WR_SEND, .flags = MLX_WR_SIGNAL, .imm = MLX_IMM(tx->op, 0, 0) | tx_credits(p)};

	tx_note(mq, p, &wr, (struct mlx_txrec){.buf = buf, .done = tx->done, .arg = tx->arg, .of_owner = true});
	mq->hw->ops->post_gather(p->qp, &wr, sge);
	if (mq->q->hold)
		tx_hold(mq, p);
	else
		tx_ring(mq, p);
}

int
mlx_tx_zcopy(const struct plx_tx_zcopy *tx)
{
	struct mlx_peer *p = mlx_peer(tx->peer);
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	uint64_t len = tx->hdr_len + tx->iov->iov_len;
	uint32_t buf;

	if (len > p->peer.mtu)
		return -EMSGSIZE;
	if (tx->mem == NULL || (mlx_peer_has_tags(p) && plx_wire_is_tagged(tx->op, (uint32_t)len)))
		return -EOPNOTSUPP;
	if (!tx_ready(mq, p))
		return tx_refuse(p);
	buf = tx_buf_get(mq);
	if (buf == MLX_NONE)
		return -EAGAIN;
	PLX_STAT_INC(mq->stat.tx_zcopy);
	zcopy_post(mq, p, tx, buf);
	tx_taken(p, (uint32_t)len);
	return -EINPROGRESS;
}

/* Control messages still go while the connection is about to close. */
static bool
may_speak(const struct mlx_peer *p)
{
	return p->link.state == PLX_LINK_OPEN ||
		(p->link.state == PLX_LINK_PARKING && !plx_link_is_parked(&p->link));
}

static inline int
put_taken(struct mlx_peer *p, uint32_t len)
{
	struct plx_queue *q = p->peer.q;

	p->link.used_at = mlx_queue(q)->link.looks;
	PLX_STAT_INC(q->stat.rma_ops);
	PLX_STAT_ADD(q->stat.rma_bytes, len);
	return 0;
}

static inline struct mlx_hw_wr
put_wr(const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	return (struct mlx_hw_wr){.op = MLX_WR_WRITE, .flags = MLX_WR_INLINE,
		.addr = (uintptr_t)data, .len = len, .remote = remote, .rkey = (uint32_t)key};
}

static __rte_noinline int
put_short_any(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	struct mlx_hw_wr wr = put_wr(data, len, remote, key);
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);

	if (unlikely(!mlx_tx_has_room(mq, p)))
		return write_refuse(p);
	tx_post(mq, p, &wr, (struct mlx_txrec){.buf = MLX_NONE});
	return put_taken(p, len);
}

static __rte_always_inline int
put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key,
	enum mlx_by by)
{
	struct mlx_hw_wr wr = put_wr(data, len, remote, key);
	struct mlx_queue *mq = mlx_queue(peer->q);
	struct mlx_peer *p = mlx_peer(peer);

	PLX_ASSERT(len <= peer->short_max && key != 0);
	if (unlikely(!tx_is_usual(mq, p, by)))
		return put_short_any(peer, data, len, remote, key);
	tx_usual(mq, p, &wr, by);
	return put_taken(p, len);
}

int
mlx_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	return put_short(peer, data, len, remote, key, MLX_BY_VERBS);
}

int
mlx_put_short_mlx5(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	return put_short(peer, data, len, remote, key, MLX_BY_MLX5);
}

bool
mlx_tx_ctl(struct mlx_peer *p, uint8_t flags)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	bool signal = flags & MLX_IMM_BYE || p->link.state == PLX_LINK_PARKING;
	struct mlx_hw_wr wr = {.flags = signal ? MLX_WR_SIGNAL : 0};

	if (!may_speak(p) || !plx_credit_has_last(&p->link.credit) || p->tx_room == 0 ||
		mq->tx_out >= MLX_TX_ALL)
		return false;
	if (mlx_peer_has_tags(p)) {
		wr.flags |= MLX_WR_INLINE;
		wr.addr = (uintptr_t)&mlx_tx_no_tag;
		wr.len = sizeof(mlx_tx_no_tag);
	}
	PLX_STAT_INC(mq->stat.tx_credits_only);
	tx_send(mq, p, &wr, MLX_IMM(0, 0, flags | MLX_IMM_CTL), MLX_NONE);
	return true;
}

static void
probe_done(void *arg, int err)
{
	struct mlx_peer *p = arg;

	(void)err; /* the error has already lost the peer */
	p->probing = false;
}

void
mlx_tx_probe(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	struct mlx_hw_wr wr = {.op = MLX_WR_WRITE, .flags = MLX_WR_SIGNAL};

	if (!may_speak(p) || p->probing || p->tx_room == 0 || mq->tx_out >= MLX_TX_ALL)
		return;
	p->probing = true;
	PLX_STAT_INC(mq->stat.probes);
	tx_post(mq, p, &wr, (struct mlx_txrec){.done = probe_done, .arg = p, .buf = MLX_NONE});
}

void
mlx_flush(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);
	struct mlx_peer *p;
	SLIST_HEAD(, mlx_peer) owes = {mq->owes.slh_first};

	/* Before the doorbells, which serve them as well; those without room are retried. */
	SLIST_INIT(&mq->owes);
	while ((p = SLIST_FIRST(&owes)) != NULL) {
		SLIST_REMOVE_HEAD(&owes, owes_link);
		p->owes = plx_credit_urgent(&p->link.credit) && !mlx_tx_ctl(p, 0) &&
			p->link.state == PLX_LINK_OPEN;
		if (p->owes)
			mlx_owes(mq, p);
	}
	while ((p = SLIST_FIRST(&mq->held)) != NULL) {
		SLIST_REMOVE_HEAD(&mq->held, held_link);
		p->held = false;
		tx_ring(mq, p);
	}
}

/* Requests up to and including seq are complete. */
static void
tx_over(struct mlx_queue *mq, struct mlx_peer *p, uint16_t seq, int err)
{
	while ((int16_t)(seq - p->tx_done) >= 0) {
		struct mlx_txrec *at = &p->recs[p->tx_done % MLX_TX_RECS], rec = *at;

		p->tx_done++;
		p->tx_room++;
		mq->tx_out--;
		if (!rec.holds)
			continue;
		at->holds = at->signalled = false;
		mq->tx_due -= rec.signalled;
		if (rec.buf != MLX_NONE)
			mlx_bufs_put(&mq->tx_bufs, rec.buf);
		if (rec.done != NULL && !(rec.of_owner && mq->q->closing))
			rec.done(rec.arg, err);
	}
}

static __rte_noinline __rte_cold void
tx_failed(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp)
{
	int err = -ECONNRESET;

	switch (comp->status) {
	case MLX_COMP_FLUSHED:
		break; /* the previous one had the reason */
	case MLX_COMP_RETRY:
		PLX_STAT_INC(mq->stat.qp_retry);
		err = -ETIME;
		break;
	case MLX_COMP_RNR:
		PLX_STAT_INC(mq->stat.qp_rnr);
		break;
	case MLX_COMP_ACCESS:
		PLX_STAT_INC(mq->stat.qp_access);
		break;
	default:
		PLX_STAT_INC(mq->stat.qp_other);
		break;
	}
	plx_link_lose(&p->link, err);
}

bool
mlx_tx_waits(struct mlx_queue *mq)
{
	if (mq->n_kept_tx == 0)
		mq->n_kept_tx = mq->hw->ops->poll_tx(mq->hw, mq->kept_tx, MLX_HW_POLL_MAX);
	return mq->n_kept_tx != 0;
}

static inline uint16_t
tx_take(struct mlx_queue *mq, struct mlx_hw_comp *comp)
{
	uint16_t n = mq->n_kept_tx;

	if (likely(n == 0)) {
		n = mq->hw->ops->poll_tx(mq->hw, comp, MLX_HW_POLL_MAX);
		mq->tx_seen += n == MLX_HW_POLL_MAX ? MLX_HW_POLL_MAX : MLX_TX_ALL;
		return n;
	}
	memcpy(comp, mq->kept_tx, n * sizeof(*comp));
	mq->n_kept_tx = 0;
	return n;
}

unsigned
mlx_tx_poll(struct mlx_queue *mq)
{
	struct mlx_hw_comp comp[MLX_HW_POLL_MAX];
	uint16_t n = tx_take(mq, comp);

	for (uint16_t i = 0; i < n; i++) {
		struct mlx_peer *p = mlx_peer_find(mq, comp[i].qpn);

		if (p == NULL)
			continue; /* of a closed queue pair: ended with it */
		if (likely(comp[i].status == MLX_COMP_OK)) {
			p->link.rx_ns = mq->link.now_ns;
			tx_over(mq, p, comp[i].seq, 0);
		} else {
			tx_failed(mq, p, &comp[i]);
		}
	}
	return n;
}

void
mlx_tx_drop(struct mlx_peer *p, int err)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);

	if (p->recs == NULL)
		return;
	if (p->tx_room != MLX_TX_DEPTH)
		tx_over(mq, p, p->tx_done + (MLX_TX_DEPTH - p->tx_room) - 1, err);
}
