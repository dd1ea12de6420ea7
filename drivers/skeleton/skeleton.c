/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skeleton.c - an example of a driver: queues of one process send to each other
 *
 * Design notes
 * It has the hooks that every driver has, and a setting; doc/guides/new_driver.md goes through it. A sender
 * makes a lane to each queue that it connects to: a ring of cells with one writer and one reader. The receiver
 * finds the lane at its door, and meets the sender by that. Either end leaves the lane when it closes, and the last frees it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_common.h>

#include "plx_proc.h"
#include "plx_skeleton.h"

#define MTU	  4096 /* header and data, bytes */
#define SHORT_MAX 256

enum { CELLS, N_SETTINGS };

static const struct plx_conf_row rows[N_SETTINGS] = {
	PLX_ROW_UINT(CELLS, "skeleton.cells", "messages", "64", 2, 4096, false,
		"Messages on the way from one worker to another at the most."),
};

static struct plx_conf_rows settings = {.rows = rows, .n = N_SETTINGS};

/** An address; others get it as bytes, and may give us anything. The uid stands first. */
struct skel_addr {
	uint64_t uid;
	uint64_t host, proc; /* of plx_proc */
};

struct skel_cell {
	uint32_t len;
	uint8_t op;
	uint8_t bytes[MTU];
};

struct skel_lane {
	/* line 0: writer: sender */
	_Atomic uint64_t tail;
	_Atomic bool sender_left;
	/* line 1: writer: receiver */
	alignas(PLX_LINE) _Atomic uint64_t head;
	_Atomic bool receiver_left;
	uint64_t taken; /* given to the receiver's owner, up to here */
	/* line 2: set when it is made; and cold */
	alignas(PLX_LINE) struct skel_addr from;
	uint64_t n_cells;
	_Atomic uint32_t refs;
	STAILQ_ENTRY(skel_lane) link; /* at a door: state.lock */
	struct skel_cell cells[];
};

/* The other end. Owner: the queue's worker. */
struct skel_peer {
	struct plx_peer peer;
	struct skel_lane *tx, *rx;   /* NULL: none yet */
	TAILQ_ENTRY(skel_peer) link; /* those with rx */
};

struct skel_queue {
	struct plx_queue *q;
	struct skel_addr addr;
	uint64_t n_cells;
	TAILQ_HEAD(skel_senders, skel_peer) senders; /* who was looked at longest ago comes first */
	_Atomic bool knocked;		 /* there is something at the door */
	STAILQ_HEAD(, skel_lane) door;	 /* state.lock: lanes to us that we don't know */
	LIST_ENTRY(skel_queue) link;	 /* the same */
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, skel_queue) queues;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct skel_peer *
peer_of(struct plx_peer *peer)
{
	return container_of(peer, struct skel_peer, peer);
}

/* -- lanes -- */

static void
lane_leave(struct skel_lane *lane, _Atomic bool *left)
{
	/* pairs with is_over(): what was sent before is seen before */
	atomic_store_explicit(left, true, memory_order_release);
	if (atomic_fetch_sub_explicit(&lane->refs, 1, memory_order_acq_rel) == 1)
		free(lane);
}

static bool
lane_is_empty(const struct skel_lane *lane)
{
	/* pairs with the release in send_cell() */
	return atomic_load_explicit(&lane->tail, memory_order_acquire) == lane->taken;
}

/* Take what stands at the door: peers that we may not have heard of. */
static void
open_door(struct skel_queue *sq)
{
	struct skel_lane *lane;
	struct plx_peer *peer;

	atomic_store_explicit(&sq->knocked, false, memory_order_relaxed); /* the lock orders the rest */
	pthread_mutex_lock(&state.lock);
	while ((lane = STAILQ_FIRST(&sq->door)) != NULL) {
		struct plx_addr addr = {.len = sizeof(lane->from)};

		STAILQ_REMOVE_HEAD(&sq->door, link);
		memcpy(addr.bytes, &lane->from, sizeof(lane->from));
		peer = NULL;
		if (plx_peer_get(sq->q, &addr, &peer) == 0)
			plx_peer_put(peer); /* known is enough */
		if (peer == NULL || peer_of(peer)->rx != NULL) { /* no memory, or it has closed its first lane */
			PLX_STAT_INC(sq->q->stat.rx_drop_bad_peer);
			lane_leave(lane, &lane->receiver_left);
			continue;
		}
		peer_of(peer)->rx = lane;
		TAILQ_INSERT_HEAD(&sq->senders, peer_of(peer), link);
	}
	pthread_mutex_unlock(&state.lock);
}

/* -- devices and queues -- */

static int
skel_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED;
	return 0;
}

static void
skel_close(struct plx_dev *dev)
{
	(void)dev;
}

static int
skel_queue_open(struct plx_queue *q)
{
	struct skel_queue *sq = calloc(1, sizeof(*sq));
	struct plx_proc self;
	int rc;

	if (sq == NULL)
		return -ENOMEM;
	rc = plx_proc_self(&self);
	if (rc == 0 && getrandom(&sq->addr.uid, sizeof(sq->addr.uid), 0) != sizeof(sq->addr.uid))
		rc = -EIO;
	if (rc != 0) {
		free(sq);
		return rc;
	}
	sq->q = q;
	sq->addr.host = self.host;
	sq->addr.proc = self.id;
	sq->n_cells = plx_conf_u64(q->conf, settings.first + CELLS);
	TAILQ_INIT(&sq->senders);
	STAILQ_INIT(&sq->door);
	q->priv = sq;
	pthread_mutex_lock(&state.lock);
	LIST_INSERT_HEAD(&state.queues, sq, link);
	pthread_mutex_unlock(&state.lock);
	return 0;
}

static void
skel_queue_close(struct plx_queue *q)
{
	struct skel_queue *sq = q->priv;
	struct skel_lane *lane;

	pthread_mutex_lock(&state.lock);
	LIST_REMOVE(sq, link);
	pthread_mutex_unlock(&state.lock);
	while ((lane = STAILQ_FIRST(&sq->door)) != NULL) {
		STAILQ_REMOVE_HEAD(&sq->door, link);
		lane_leave(lane, &lane->receiver_left);
	}
	free(sq);
}

static void
skel_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	const struct skel_queue *sq = q->priv;

	addr->len = sizeof(sq->addr);
	memcpy(addr->bytes, &sq->addr, sizeof(sq->addr));
}

/* -- peers -- */

static int
skel_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	const struct skel_queue *sq = peer->q->priv;
	struct skel_addr a;

	if (addr->len != sizeof(a))
		return -EINVAL;
	memcpy(&a, addr->bytes, sizeof(a));
	if (a.host != sq->addr.host || a.proc != sq->addr.proc)
		return -EHOSTUNREACH;
	peer->proc = a.proc;
	peer->mtu = MTU;
	peer->short_max = SHORT_MAX;
	peer->caps = peer->q->caps;
	return 0;
}

static struct skel_lane *
lane_new(const struct skel_queue *from)
{
	const size_t len = sizeof(struct skel_lane) + from->n_cells * sizeof(struct skel_cell);
	struct skel_lane *lane = aligned_alloc(PLX_LINE, RTE_ALIGN_CEIL(len, (size_t)PLX_LINE));

	if (lane == NULL)
		return NULL;
	memset(lane, 0, sizeof(*lane));
	lane->from = from->addr;
	lane->n_cells = from->n_cells;
	atomic_store_explicit(&lane->refs, 2, memory_order_relaxed); /* nobody else has it yet */
	return lane;
}

static int
skel_peer_connect(struct plx_peer *peer)
{
	struct skel_lane *lane = lane_new(peer->q->priv);
	struct skel_queue *to;

	if (lane == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&state.lock);
	LIST_FOREACH(to, &state.queues, link) {
		if (to->addr.uid == peer->uid)
			break;
	}
	if (to != NULL) {
		STAILQ_INSERT_TAIL(&to->door, lane, link);
		atomic_store_explicit(&to->knocked, true, memory_order_relaxed);
		peer_of(peer)->tx = lane;
	}
	pthread_mutex_unlock(&state.lock);
	if (to == NULL)
		free(lane);
	return to != NULL ? 0 : -ECONNREFUSED;
}

static void
skel_peer_close(struct plx_peer *peer)
{
	struct skel_peer *p = peer_of(peer);
	struct skel_queue *sq = peer->q->priv;

	if (p->tx != NULL)
		lane_leave(p->tx, &p->tx->sender_left);
	if (p->rx == NULL)
		return;
	TAILQ_REMOVE(&sq->senders, p, link);
	lane_leave(p->rx, &p->rx->receiver_left);
}

/* The other end has closed, and all that it sent is released. */
static bool
is_over(const struct skel_peer *p)
{
	bool left = false;

	/* pairs with lane_leave() */
	if (p->tx != NULL)
		left = atomic_load_explicit(&p->tx->receiver_left, memory_order_acquire);
	if (p->rx != NULL)
		left |= atomic_load_explicit(&p->rx->sender_left, memory_order_acquire);
	return left && (p->rx == NULL || (lane_is_empty(p->rx) && atomic_load_explicit(&p->rx->head, memory_order_relaxed) == p->rx->taken));
}

static void
look_after(struct plx_peer *peer, void *arg)
{
	(void)arg;
	if (is_over(peer_of(peer)))
		plx_peer_dead(peer, -ECONNRESET);
}

/* What is rare: peers that have gone. First those that are not known yet, who may have sent something. */
static void
skel_queue_control(struct plx_queue *q)
{
	open_door(q->priv);
	plx_peer_each(q, look_after, NULL);
}

/* -- messages -- */

static int
send_cell(const struct plx_tx *tx)
{
	struct plx_queue *q = tx->peer->q;
	struct skel_lane *lane = peer_of(tx->peer)->tx;
	uint64_t tail;
	struct skel_cell *c;

	if (tx->peer->state == PLX_PEER_DEAD)
		return tx->peer->err;
	if (tx->hdr_len + tx->len > MTU)
		return -EMSGSIZE;
	tail = atomic_load_explicit(&lane->tail, memory_order_relaxed); /* ours */
	/* pairs with the release in skel_rx_release() */
	if (tail - atomic_load_explicit(&lane->head, memory_order_acquire) == lane->n_cells) {
		PLX_STAT_INC(q->stat.tx_full);
		return -EAGAIN;
	}
	c = &lane->cells[tail % lane->n_cells];
	c->op = tx->op;
	c->len = tx->hdr_len + tx->len;
	memcpy(c->bytes, tx->hdr, tx->hdr_len);
	if (tx->pack != NULL)
		tx->pack(tx->pack_arg, tx->pack_offset, c->bytes + tx->hdr_len, tx->len);
	else if (tx->len != 0)
		memcpy(c->bytes + tx->hdr_len, tx->data, tx->len);
	/* pairs with lane_is_empty() */
	atomic_store_explicit(&lane->tail, tail + 1, memory_order_release);
	PLX_STAT_INC(q->stat.tx_msgs);
	PLX_STAT_ADD(q->stat.tx_bytes, c->len);
	return 0;
}

static int
skel_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	const struct plx_tx tx = {.peer = peer, .op = op, .hdr = &hdr, .hdr_len = sizeof(hdr),
		.data = data, .len = len};

	return send_cell(&tx);
}

/* What one sender has for us. */
static uint16_t
take(struct skel_peer *p, struct plx_rx *rx, uint16_t n)
{
	struct skel_lane *lane = p->rx;
	uint16_t got = 0;

	for (; got < n && !lane_is_empty(lane); got++) {
		const struct skel_cell *c = &lane->cells[lane->taken++ % lane->n_cells];

		rx[got].src = &p->peer;
		rx[got].data = c->bytes;
		rx[got].len = c->len;
		rx[got].op = c->op;
	}
	return got;
}

/* Nobody is passed over: who was looked at goes behind the others. */
static uint16_t
skel_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct skel_queue *sq = q->priv;
	struct skel_peer *p, *last;
	uint16_t got = 0;

	if (atomic_load_explicit(&sq->knocked, memory_order_relaxed))
		open_door(sq);
	last = TAILQ_LAST(&sq->senders, skel_senders);
	while (got < n && (p = TAILQ_FIRST(&sq->senders)) != NULL) {
		TAILQ_REMOVE(&sq->senders, p, link);
		TAILQ_INSERT_TAIL(&sq->senders, p, link);
		got += take(p, rx + got, n - got);
		if (p == last)
			break;
	}
	return got;
}

static void
skel_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct skel_lane *lane = peer_of(rx[i].src)->rx;

		/* pairs with the acquire in send_cell(): the cell may be written again */
		atomic_fetch_add_explicit(&lane->head, 1, memory_order_release);
		PLX_STAT_INC(q->stat.rx_msgs);
		PLX_STAT_ADD(q->stat.rx_bytes, rx[i].len);
	}
}

const struct plx_dev_ops plx_skeleton_ops = {
	.name = "skeleton",
	.settings = &settings,
	.peer_len = sizeof(struct skel_peer),
	.open = skel_open,
	.close = skel_close,
	.queue_open = skel_queue_open,
	.queue_close = skel_queue_close,
	.queue_addr = skel_queue_addr,
	.queue_control = skel_queue_control,
	.peer_open = skel_peer_open,
	.peer_connect = skel_peer_connect,
	.peer_close = skel_peer_close,
	.tx_short = skel_tx_short,
	.tx = send_cell,
	.rx_burst = skel_rx_burst,
	.rx_release = skel_rx_release,
};
