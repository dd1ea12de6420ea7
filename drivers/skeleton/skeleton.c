/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skeleton.c - an example of a driver: queues of one process send to each other
 *
 * Design notes
 * It has the hooks that every driver has, three tables and two settings; doc/guides/new_driver.md goes through it. A sender
 * makes a lane to each queue that it connects to: a ring of cells with one writer and one reader (skel_lane.c). The
 * receiver finds the lane at its door, and meets the sender by that. Either end leaves the lane when it closes, and the
 * last frees it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "plx_clock.h"
#include "plx_proc.h"
#include "plx_skeleton.h"
#include "skel_int.h"

enum { CELLS, LOOK_MS, N_SETTINGS };

static const struct plx_conf_row rows[N_SETTINGS] = {
	PLX_ROW_UINT(CELLS, "skeleton.cells", "messages", "64", 2, 4096, false,
		"Messages in flight from one worker to another, at the most."),
	PLX_ROW_UINT(LOOK_MS, "skeleton.look_ms", "ms", "20", 1, 60000, false,
		"How often a worker that sleeps looks whether its peers are still there."),
};

static struct plx_conf_rows settings = {.rows = rows, .n = N_SETTINGS};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, skel_queue) queues;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
		if (peer == NULL || skel_peer(peer)->rx != NULL) { /* no memory, or it has closed its first lane */
			PLX_STAT_INC(sq->q->stat.rx_drop_bad_peer);
			skel_lane_leave(lane, &lane->receiver_left);
			continue;
		}
		skel_peer(peer)->rx = lane;
		sq->n_ends++;
		TAILQ_INSERT_HEAD(&sq->senders, skel_peer(peer), link);
	}
	pthread_mutex_unlock(&state.lock);
}

/* -- devices and queues -- */

static int
spares_make(struct skel_queue *sq)
{
	for (unsigned i = 0; i < SKEL_SPARES; i++) {
		struct skel_buf *b = malloc(sizeof(*b));

		if (b == NULL)
			return -ENOMEM;
		LIST_INSERT_HEAD(&sq->spare, b, link);
	}
	return 0;
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
	if (rc != 0)
		goto free_sq;
	rc = spares_make(sq);
	if (rc != 0)
		goto free_sq;
	sq->bell = skel_bell_new();
	if (sq->bell == NULL) {
		rc = -ENOMEM;
		goto free_sq;
	}
	sq->q = q;
	sq->addr.host = self.host;
	sq->addr.proc = self.id;
	sq->n_cells = plx_conf_u64(q->conf, settings.first + CELLS);
	sq->look_ns = plx_conf_u64(q->conf, settings.first + LOOK_MS) * 1000000;
	sq->looked_ns = plx_clock_ns();
	TAILQ_INIT(&sq->senders);
	STAILQ_INIT(&sq->door);
	q->priv = sq;
	q->zcopy_min = SKEL_ZCOPY_MIN;
	q->zcopy_iov = SKEL_IOV;
	q->keep_min = SKEL_KEEP_MIN;
	pthread_mutex_lock(&state.lock);
	LIST_INSERT_HEAD(&state.queues, sq, link);
	pthread_mutex_unlock(&state.lock);
	return 0;
free_sq:
	skel_bufs_free(&sq->spare);
	free(sq);
	return rc;
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
		skel_lane_leave(lane, &lane->receiver_left);
	}
	skel_bufs_free(&sq->spare);
	skel_bufs_free(&sq->kept);
	skel_bell_put(sq->bell);
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
	peer->mtu = SKEL_MTU;
	peer->short_max = SKEL_SHORT_MAX;
	peer->caps = peer->q->caps;
	return 0;
}

static int
skel_peer_connect(struct plx_peer *peer)
{
	struct skel_queue *sq = peer->q->priv, *to;
	struct skel_lane *lane = skel_lane_new(sq);

	if (lane == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&state.lock);
	LIST_FOREACH(to, &state.queues, link) {
		if (to->addr.uid == peer->uid)
			break;
	}
	if (to != NULL) {
		lane->bell = skel_bell_get(to->bell);
		STAILQ_INSERT_TAIL(&to->door, lane, link);
		atomic_store_explicit(&to->knocked, true, memory_order_relaxed);
		skel_bell_ring(lane->bell);
		skel_peer(peer)->tx = lane;
		sq->n_ends++;
	}
	pthread_mutex_unlock(&state.lock);
	if (to == NULL) {
		skel_lane_leave(lane, &lane->receiver_left);
		skel_lane_leave(lane, &lane->sender_left);
	}
	return to != NULL ? 0 : -ECONNREFUSED;
}

static void
skel_peer_close(struct plx_peer *peer)
{
	struct skel_peer *p = skel_peer(peer);
	struct skel_queue *sq = peer->q->priv;

	if (p->tx != NULL) {
		skel_take_back(p);
		skel_lane_leave(p->tx, &p->tx->sender_left);
		sq->n_ends--;
	}
	if (p->rx == NULL)
		return;
	sq->n_ends--;
	TAILQ_REMOVE(&sq->senders, p, link);
	skel_lane_leave(p->rx, &p->rx->receiver_left);
}

/* The other end has closed, and all its messages are released. */
static bool
is_over(const struct skel_peer *p)
{
	bool left = false;

	/* pairs with skel_lane_leave() */
	if (p->tx != NULL)
		left = atomic_load_explicit(&p->tx->receiver_left, memory_order_acquire);
	if (p->rx != NULL)
		left |= atomic_load_explicit(&p->rx->sender_left, memory_order_acquire);
	return left && (p->rx == NULL || (skel_lane_is_empty(p->rx) && atomic_load_explicit(&p->rx->head, memory_order_relaxed) == p->rx->taken));
}

static void
look_after(struct plx_peer *peer, void *arg)
{
	(void)arg;
	if (peer->state == PLX_PEER_DEAD || !is_over(skel_peer(peer)))
		return;
	plx_peer_dead(peer, -ECONNRESET);
	skel_tell(skel_peer(peer), -ECONNRESET);
}

/* Rare work: dead peers. New ones first, which may have sent messages. */
static void
skel_queue_control(struct plx_queue *q)
{
	struct skel_queue *sq = q->priv;

	open_door(sq);
	plx_peer_each(q, look_after, NULL);
	sq->looked_ns = plx_clock_ns();
}

/* -- messages; the rest is in skel_msg.c -- */

static void
tell(struct plx_peer *peer, void *arg)
{
	(void)arg;
	skel_tell(skel_peer(peer), 0);
}

static uint16_t
skel_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct skel_queue *sq = q->priv;

	if (atomic_load_explicit(&sq->knocked, memory_order_relaxed))
		open_door(sq);
	if (sq->n_told_later != 0)
		plx_peer_each(q, tell, NULL);
	return skel_take(sq, rx, n);
}

const struct plx_dev_ops plx_skeleton_ops = {
	.name = "skeleton",
	.settings = &settings,
	.peer_len = sizeof(struct skel_peer),
	.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED,
	.queue_open = skel_queue_open,
	.queue_close = skel_queue_close,
	.queue_addr = skel_queue_addr,
	.queue_control = skel_queue_control,
	.deadline = skel_deadline,
	.peer_open = skel_peer_open,
	.peer_connect = skel_peer_connect,
	.peer_close = skel_peer_close,
	.tx_short = skel_tx_short,
	.tx = skel_tx,
	.rx_burst = skel_rx_burst,
	.rx_release = skel_rx_release,
	.sleep.efd = skel_efd,
	.sleep.arm = skel_arm,
	.sleep.disarm = skel_disarm,
	.zcopy.tx = skel_tx_zcopy,
	.keep.keep = skel_rx_keep,
	.keep.give_back = skel_rx_return,
};
