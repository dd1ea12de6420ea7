/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev.c - the driver list, devices, queues, and the peers of a queue
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "plx_check.h"
#include "plx_dev.h"
#include "plx_dev_cm.h"
#include "plx_dev_ops.h"
#include "plx_log.h"
#include "plx_proc.h"

PLX_LOG_DEFINE(dev, "plx.dev");

#define SCORE_KNOWN (1 << 29) /* the two queues have met: so do both sides use the same pair */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct plx_dev_ops *drivers[PLX_DEV_MAX];
static unsigned n_drivers;
static struct plx_dev *devs[PLX_DEV_MAX];

const struct plx_stat_row plx_queue_stat_rows[] = {
	PLX_STAT_ROW(struct plx_queue_stat, tx_msgs),
	PLX_STAT_ROW(struct plx_queue_stat, tx_bytes),
	PLX_STAT_ROW(struct plx_queue_stat, tx_full),
	PLX_STAT_ROW(struct plx_queue_stat, rx_msgs),
	PLX_STAT_ROW(struct plx_queue_stat, rx_bytes),
	PLX_STAT_ROW(struct plx_queue_stat, rx_drop_bad_cell),
	PLX_STAT_ROW(struct plx_queue_stat, rx_drop_bad_peer),
	PLX_STAT_ROW(struct plx_queue_stat, rx_skip_dead),
	PLX_STAT_ROW(struct plx_queue_stat, rma_ops),
	PLX_STAT_ROW(struct plx_queue_stat, rma_bytes),
	PLX_STAT_ROW(struct plx_queue_stat, rma_mapped),
	PLX_STAT_ROW(struct plx_queue_stat, rma_refused),
	PLX_STAT_ROW(struct plx_queue_stat, peers),
	PLX_STAT_ROW(struct plx_queue_stat, peers_dead),
	PLX_STAT_END,
};

/* What stands in for a hook that a driver leaves out, so that no caller tests for NULL. */
static int
dummy_rma(const struct plx_rma_op *op)
{
	(void)op;
	return -EOPNOTSUPP;
}

static enum plx_rx_found
dummy_rx_look(struct plx_queue *q, struct plx_rx *rx)
{
	(void)q;
	(void)rx;
	return PLX_RX_BURST;
}

static int
dummy_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	(void)peer;
	(void)data;
	(void)len;
	(void)remote;
	(void)key;
	return -EOPNOTSUPP;
}

static void *
dummy_peer_shared(struct plx_peer *peer)
{
	(void)peer;
	return NULL;
}

unsigned
plx_dev_no_burst(const struct plx_rma_op *ops, unsigned n)
{
	(void)ops;
	(void)n;
	return 0;
}

/* How many of the pointers of a table are set: hooks stand in it and nothing else. */
static size_t
n_set(const void *table, size_t len)
{
	static const uintptr_t none;
	size_t n = 0;

	for (size_t i = 0; i < len; i += sizeof(none))
		n += memcmp((const char *)table + i, &none, sizeof(none)) != 0;
	return n;
}

#define WHOLE(table)  (n_set(&(table), sizeof(table)) * sizeof(uintptr_t) == sizeof(table))
#define FITS(table)   (n_set(&(table), sizeof(table)) == 0 || WHOLE(table))

static bool
is_complete(const struct plx_dev_ops *ops)
{
	size_t from = offsetof(struct plx_dev_ops, open), len = offsetof(struct plx_dev_ops, sleep) - from;

	return ops->name != NULL && ops->peer_len >= sizeof(struct plx_peer) &&
		n_set((const char *)ops + from, len) * sizeof(uintptr_t) == len &&
		FITS(ops->sleep) && FITS(ops->rma) && FITS(ops->shared) && FITS(ops->keys) &&
		FITS(ops->tag) && FITS(ops->group) && FITS(ops->datagram) && FITS(ops->ports) &&
		(ops->cm == NULL || WHOLE(*ops->cm)) && (ops->stats == NULL) == (ops->stat_rows == NULL);
}

/* Whether an open device says no more of itself than its driver has hooks for. */
static bool
caps_fit(const struct plx_dev *dev)
{
	const struct plx_dev_ops *ops = dev->ops;

	return ((dev->caps & (PLX_DEV_GET | PLX_DEV_PUT | PLX_DEV_KEYS)) == 0 || ops->rma.rma != NULL) &&
		((dev->caps & PLX_DEV_SHARED) == 0 || ops->shared.peer != NULL) &&
		((dev->caps & PLX_DEV_KEYS) == 0 || ops->keys.reg != NULL);
}

int
plx_dev_register(const struct plx_dev_ops *ops)
{
	int rc = 0;

	if (!is_complete(ops)) {
		PLX_LOG(ERR, dev, "driver %s lacks a hook", ops->name != NULL ? ops->name : "without a name");
		return -EINVAL;
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_drivers; i++)
		if (drivers[i] == ops)
			goto out;
	if (n_drivers == PLX_DEV_MAX)
		rc = -ENOSPC;
	else if (ops->settings != NULL)
		rc = plx_conf_add(ops->settings);
	if (rc == 0)
		drivers[n_drivers++] = ops;
out:
	pthread_mutex_unlock(&lock);
	return rc;
}

const char *
plx_dev_driver(unsigned i, const struct plx_dev_names **names)
{
	const char *name = NULL;

	pthread_mutex_lock(&lock);
	if (i < n_drivers) {
		name = drivers[i]->name;
		if (names != NULL)
			*names = drivers[i]->names;
	}
	pthread_mutex_unlock(&lock);
	return name;
}

/* Called with the lock held. */
static int
dev_find_slot(const char *name, struct plx_dev **out)
{
	for (unsigned i = 0; i < PLX_DEV_MAX; i++) {
		if (devs[i] != NULL && strcmp(devs[i]->ops->name, name) == 0) {
			*out = devs[i];
			return i;
		}
	}
	*out = NULL;
	for (unsigned i = 0; i < PLX_DEV_MAX; i++)
		if (devs[i] == NULL)
			return i;
	return -ENOSPC;
}

static int
dev_create(const char *name, const struct plx_conf *conf, struct plx_dev **out)
{
	struct plx_dev *dev;
	int rc = -ENODEV;

	for (unsigned i = 0; i < n_drivers; i++) {
		if (strcmp(drivers[i]->name, name) != 0)
			continue;
		dev = calloc(1, sizeof(*dev));
		if (dev == NULL)
			return -ENOMEM;
		dev->ops = drivers[i];
		rc = dev->ops->open(dev, conf);
		if (rc == 0 && !caps_fit(dev)) {
			PLX_LOG(ERR, dev, "driver %s has no hooks for what it says it can do", name);
			dev->ops->close(dev);
			rc = -EINVAL;
		}
		if (rc != 0) {
			free(dev);
			return rc;
		}
		*out = dev;
		return 0;
	}
	return rc;
}

int
plx_dev_open(const char *name, const struct plx_conf *conf, struct plx_dev **out)
{
	struct plx_dev *dev;
	int slot, rc = 0;

	pthread_mutex_lock(&lock);
	slot = dev_find_slot(name, &dev);
	if (slot < 0)
		rc = slot;
	else if (dev == NULL)
		rc = dev_create(name, conf, &dev);
	else if (plx_dev_has_failed(dev))
		rc = -ENXIO;
	if (rc == 0) {
		devs[slot] = dev;
		dev->refs++;
		*out = dev;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void
plx_dev_close(struct plx_dev *dev)
{
	if (dev == NULL)
		return;
	pthread_mutex_lock(&lock);
	if (--dev->refs == 0) {
		for (unsigned i = 0; i < PLX_DEV_MAX; i++)
			if (devs[i] == dev)
				devs[i] = NULL;
		dev->ops->close(dev);
		free(dev);
	}
	pthread_mutex_unlock(&lock);
}

int
plx_dev_fail(const char *name)
{
	struct plx_dev *dev;

	pthread_mutex_lock(&lock);
	(void)dev_find_slot(name, &dev);
	if (dev != NULL)
		/* alone: who sees it looks at nothing else */
		atomic_store_explicit(&dev->failed, true, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return dev != NULL ? 0 : -ENODEV;
}

bool
plx_dev_has_failed(const struct plx_dev *dev)
{
	return atomic_load_explicit(&dev->failed, memory_order_relaxed);
}

const char *
plx_dev_name(const struct plx_dev *dev)
{
	return dev->ops->name;
}

const struct plx_dev_cm_ops *
plx_dev_cm(const struct plx_dev *dev)
{
	return plx_dev_has_failed(dev) ? NULL : dev->ops->cm;
}

int
plx_dev_look(const char *name, const struct plx_conf *conf, unsigned port, struct plx_dev_port *out)
{
	struct plx_dev_port found = {.up = true};
	struct plx_dev *dev;
	int rc = plx_dev_open(name, conf, &dev);

	if (rc != 0)
		return rc == -ENXIO ? -ENODEV : rc;
	if (dev->ops->ports.look != NULL)
		rc = dev->ops->ports.look(conf, port, &found);
	else if (port != 0)
		rc = -ENODEV;
	plx_dev_close(dev);
	if (rc == 0)
		*out = found;
	return rc;
}

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
	q->tx_short = ops->tx_short;
	q->tx = ops->tx;
	q->rx_burst = ops->rx_burst;
	q->rx_release = ops->rx_release;
	q->rma = ops->rma.rma != NULL ? ops->rma.rma : dummy_rma;
	q->rx_look = ops->rx_look != NULL ? ops->rx_look : dummy_rx_look;
	q->put_short = ops->keys.put_short != NULL ? ops->keys.put_short : dummy_put_short;
	q->peer_shared = ops->shared.peer != NULL ? ops->shared.peer : dummy_peer_shared;
	q->owner = owner;
	q->dev = dev;
	q->conf = conf;
	q->port = port;
	q->caps = dev->caps;
	for (unsigned i = 0; i < PLX_DEV_PEER_HASH; i++)
		LIST_INIT(&q->peers[i]);
	rc = ops->queue_open(q);
	if (rc != 0) {
		free(q);
		return rc;
	}
	q->conf = NULL;
	*out = q;
	return 0;
}

/* What a child does with a queue of its parent's: the device is not told. */
static int
lost_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	(void)peer;
	(void)op;
	(void)hdr;
	(void)data;
	(void)len;
	return -ECONNRESET;
}

static int
lost_tx(const struct plx_tx *tx)
{
	(void)tx;
	return -ECONNRESET;
}

static void
lost_queue(struct plx_queue *q)
{
	(void)q;
}

static uint16_t
lost_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	(void)q;
	(void)rx;
	(void)n;
	return 0;
}

static void
lost_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	(void)q;
	(void)rx;
	(void)n;
}

static int
lost_rma(const struct plx_rma_op *op)
{
	(void)op;
	return -ECONNRESET;
}

static int
lost_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	(void)peer;
	(void)data;
	(void)len;
	(void)remote;
	(void)key;
	return -ECONNRESET;
}

static int
lost_arm(struct plx_queue *q)
{
	(void)q;
	return -EBUSY;
}

static int
lost_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	(void)peer;
	(void)addr;
	return -ECONNRESET;
}

static int
lost_peer_connect(struct plx_peer *peer)
{
	(void)peer;
	return -ECONNRESET;
}

static void
lost_peer_close(struct plx_peer *peer)
{
	(void)peer;
}

static int
lost_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	(void)q;
	(void)recv;
	(void)seen;
	return -ENOSPC;
}

static int
lost_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	(void)q;
	(void)ctx;
	(void)force;
	(void)seen;
	return 0;
}

static void
lost_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	(void)q;
	(void)mem;
	(void)revoke;
}

/* By driver: what it says of a queue and its addresses stays, what it does is gone. */
static struct {
	struct plx_dev dev;
	struct plx_dev_ops ops;
} lost[PLX_DEV_MAX];

static void
lost_fill(struct plx_dev_ops *to, const struct plx_dev_ops *ops)
{
	*to = (struct plx_dev_ops){.name = ops->name, .peer_len = ops->peer_len, .ports.look = ops->ports.look,
		.queue_addr = ops->queue_addr, .ports.name = ops->ports.name,
		.addr_whose = ops->addr_whose, .addr_why = ops->addr_why, .peer_is = ops->peer_is,
		.stat_rows = ops->stat_rows, .stats = ops->stats,
		.queue_close = lost_queue, .flush = lost_queue, .sleep.disarm = lost_queue,
		.sleep.arm = lost_arm, .peer_open = lost_peer_open, .peer_connect = lost_peer_connect,
		.peer_close = lost_peer_close, .keys.dereg = lost_mem_dereg,
		.tag.post = lost_tag_post, .tag.cancel = lost_tag_cancel, .datagram.tx = lost_tx};
}

static struct plx_dev *
lost_dev(const struct plx_dev_ops *ops)
{
	unsigned i = 0;

	while (i < PLX_DEV_MAX - 1 && lost[i].ops.name != NULL && lost[i].ops.name != ops->name)
		i++;
	lost_fill(&lost[i].ops, ops);
	lost[i].dev.ops = &lost[i].ops;
	return &lost[i].dev;
}

void
plx_queue_lose(struct plx_queue *q)
{
	q->dev = lost_dev(q->dev->ops);
	q->tx_short = lost_tx_short;
	q->tx = lost_tx;
	q->rx_burst = lost_rx_burst;
	q->rx_release = lost_rx_release;
	q->rma = lost_rma;
	q->rx_look = dummy_rx_look;
	q->put_short = lost_put_short;
	q->peer_shared = dummy_peer_shared;
	q->group_mtu = 0;
}

/* Devices are opened anew: what the parent's stand for is the parent's. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(devs, 0, sizeof(devs));
}

RTE_INIT(dev_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void
peer_free(struct plx_peer *peer)
{
	LIST_REMOVE(peer, link);
	peer->q->dev->ops->peer_close(peer);
	free(peer);
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
			peer_free(LIST_FIRST(&q->peers[i]));
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

	snprintf(text, len, "%s", err == -EINVAL ? "its address makes no sense" : strerror(-err));
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
	return q->dev->ops->tag.post(q, recv, seen);
}

int
plx_queue_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	return q->dev->ops->tag.cancel(q, ctx, force, seen);
}

int
plx_queue_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights,
	struct plx_dev_mem *out)
{
	if (q->dev->ops->keys.reg == NULL)
		return -EOPNOTSUPP;
	return q->dev->ops->keys.reg(q, addr, len, rights, out);
}

void
plx_queue_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	if (mem->drv != NULL)
		q->dev->ops->keys.dereg(q, mem, revoke);
	mem->drv = NULL;
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

int
plx_queue_lossy_open(struct plx_queue *q, uint32_t *where)
{
	return q->dev->ops->datagram.open != NULL ? q->dev->ops->datagram.open(q, where) : -EOPNOTSUPP;
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

const void *
plx_queue_drv_stats(const struct plx_queue *q, const struct plx_stat_row **rows)
{
	*rows = q->dev->ops->stat_rows;
	return q->dev->ops->stats != NULL ? q->dev->ops->stats(q) : NULL;
}

unsigned
plx_peer_rma_burst(const struct plx_rma_op *ops, unsigned n)
{
	const struct plx_queue *q = ops->peer->q;

	return q->dev->ops->rma.burst != NULL ? q->dev->ops->rma.burst(ops, n) : 0;
}

bool
plx_queue_holds(const struct plx_queue *q)
{
	return q->dev->ops->flush != NULL;
}

void
plx_queue_flush(struct plx_queue *q)
{
	q->held = false;
	q->dev->ops->flush(q);
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
				peer_free(peer);
				q->n_dead--;
			}
		}
	}
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

static int
addr_uid(const struct plx_addr *addr, uint64_t *uid)
{
	if (addr->len < sizeof(*uid) || addr->len > PLX_ADDR_MAX)
		return -EINVAL;
	memcpy(uid, addr->bytes, sizeof(*uid));
	return 0;
}

static struct plx_peer *
peer_find(const struct plx_queue *q, uint64_t uid, const struct plx_addr *addr)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	struct plx_peer *peer;

	LIST_FOREACH(peer, &q->peers[uid % PLX_DEV_PEER_HASH], link) {
		if (peer->uid == uid && !peer->left && (ops->peer_is == NULL || ops->peer_is(peer, addr)))
			break;
	}
	return peer;
}

/* The same of both sides: what makes equal ways different, and spreads peers over them. */
static uint32_t
spread_of(const struct plx_queue *q, uint64_t uid)
{
	struct plx_addr own;
	uint64_t own_uid;

	plx_queue_addr(q, &own);
	memcpy(&own_uid, own.bytes, sizeof(own_uid));
	return (own_uid ^ uid) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

int64_t
plx_queue_score(struct plx_queue *q, const struct plx_addr *addr)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	const struct plx_peer *peer;
	uint64_t uid;
	int score = addr_uid(addr, &uid);

	if (score == 0 && ops->ports.score != NULL)
		score = ops->ports.score(q, addr);
	if (score < 0)
		return score;
	peer = peer_find(q, uid, addr);
	if (peer != NULL)
		score = peer->state == PLX_PEER_DEAD ? 0 : score | SCORE_KNOWN;
	return (int64_t)score << 32 | spread_of(q, uid);
}

int
plx_peer_get(struct plx_queue *q, const struct plx_addr *addr, struct plx_peer **out)
{
	const struct plx_dev_ops *ops = q->dev->ops;
	struct plx_peer *peer;
	uint64_t uid;
	int rc = addr_uid(addr, &uid);

	if (rc != 0)
		return rc;
	peer = peer_find(q, uid, addr);
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
