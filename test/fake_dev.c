/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_dev.c - a device in memory, between queues of one thread, with faults on request
 */
#include "fake_dev.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_soft_tag.h"

#include "test_util.h"

#define FAKE_HOST   UINT64_C(0x656b6166) /* "fake" */
#define FAKE_SHARED (PLX_SHARED_RNDV + 4096)
#define FAKE_POISON 0xdd

struct fake_msg {
	STAILQ_ENTRY(fake_msg) link;
	uint64_t due; /* poll from which it is seen */
	uint32_t len;
	uint8_t op;
	bool is_kept, is_released;
	uint8_t bytes[]; /* of exactly len, so that ASan sees who reads on */
};

/* At an odd address, unless the test wants it otherwise. */
static uint8_t *
data_of(struct fake_msg *m)
{
	return m->bytes + fake.lies_well;
}

_Static_assert((offsetof(struct fake_msg, bytes) + 1) % 8 == 0, "it lies well then");

STAILQ_HEAD(fake_msgs, fake_msg);

/* What one queue has sent to another; lives at the receiver. */
struct fake_pipe {
	LIST_ENTRY(fake_pipe) link;
	uint64_t from; /* uid */
	uint32_t n;    /* in msgs or borrowed */
	uint64_t last_due;
	struct fake_msgs msgs;
};

struct fake_addr {
	uint64_t uid, host;
};

struct fake_queue {
	struct plx_queue *q;
	uint64_t uid;
	uint64_t polls;
	bool dead;
	bool blocked;
	LIST_HEAD(, fake_pipe) pipes;
	uint32_t n_pipes;
	struct fake_msgs borrowed;
	struct fake_msgs kept; /* and released */
	uint32_t n_kept;
	LIST_ENTRY(fake_queue) link;
};

static const struct fake_conf fake_good = {
	.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_GET | PLX_DEV_PUT | PLX_DEV_SHARED,
	.mtu = 1024,
	.short_max = 112,
	.port = 5,
	.atomics = PLX_DEV_ATOMICS_OWN,
	.keep_max = 20,
};

struct fake_conf fake;

static uint64_t rng_state;
static uint64_t next_uid = 0x100;
static LIST_HEAD(, fake_queue) queues = LIST_HEAD_INITIALIZER(queues);

static void __attribute__((format(printf, 1, 2), noreturn))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "fake device: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	abort();
}

void
fake_reset(uint64_t seed)
{
	fake = fake_good;
	rng_state = seed;
}

uint64_t
fake_rng(void)
{
	return util_splitmix64(&rng_state);
}

static bool
chance(uint32_t percent)
{
	return percent != 0 && fake_rng() % 100 < percent;
}

static struct fake_queue *
queue_of(const struct plx_queue *q)
{
	return q->priv;
}

/* The queue with this uid while it lives, or NULL. */
static struct fake_queue *
queue_find(uint64_t uid)
{
	struct fake_queue *fq;

	LIST_FOREACH(fq, &queues, link) {
		if (fq->uid == uid && !fq->dead)
			return fq;
	}
	return NULL;
}

static struct fake_pipe *
pipe_find(const struct fake_queue *to, uint64_t from)
{
	struct fake_pipe *p;

	LIST_FOREACH(p, &to->pipes, link) {
		if (p->from == from)
			return p;
	}
	return NULL;
}

static struct fake_pipe *
pipe_get(struct fake_queue *to, uint64_t from)
{
	struct fake_pipe *p = pipe_find(to, from);

	if (p != NULL)
		return p;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		die("no memory");
	p->from = from;
	STAILQ_INIT(&p->msgs);
	LIST_INSERT_HEAD(&to->pipes, p, link);
	to->n_pipes++;
	return p;
}

static struct fake_msg *
msg_new(uint8_t op, uint32_t len)
{
	struct fake_msg *m = malloc(sizeof(*m) + len);

	if (m == NULL)
		die("no memory");
	m->due = 0;
	m->len = len;
	m->op = op;
	m->is_kept = m->is_released = false;
	return m;
}

static void
msg_free(struct fake_msg *m)
{
	memset(data_of(m), FAKE_POISON, m->len);
	free(m);
}

static void
msgs_free(struct fake_msgs *list, uint32_t keep)
{
	struct fake_msgs kept = STAILQ_HEAD_INITIALIZER(kept);
	struct fake_msg *m;

	while ((m = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, link);
		if (keep > 0) {
			STAILQ_INSERT_TAIL(&kept, m, link);
			keep--;
		} else {
			msg_free(m);
		}
	}
	STAILQ_INIT(list);
	STAILQ_CONCAT(list, &kept);
}

static void
pipe_put(struct fake_queue *to, struct fake_pipe *p, struct fake_msg *m)
{
	m->due = to->polls + (fake.delay_max != 0 ? fake_rng() % (fake.delay_max + 1) : 0);
	if (m->due < p->last_due)
		m->due = p->last_due; /* order */
	p->last_due = m->due;
	STAILQ_INSERT_TAIL(&p->msgs, m, link);
	p->n++;
}

static int
fake_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = fake.caps;
	return 0;
}

static int
fake_queue_open(struct plx_queue *q)
{
	struct fake_queue *fq = calloc(1, sizeof(*fq));

	if (fq == NULL)
		return -ENOMEM;
	fq->q = q;
	fq->uid = next_uid++;
	LIST_INIT(&fq->pipes);
	STAILQ_INIT(&fq->borrowed);
	STAILQ_INIT(&fq->kept);
	fake_lent_open(q);
	q->keep_min = fake.keep_min;
	q->mem_types |= fake.mem_types;
	LIST_INSERT_HEAD(&queues, fq, link);
	q->priv = fq;
	if (fake.caps & PLX_DEV_SHARED) {
		q->shared = aligned_alloc(PLX_LINE, FAKE_SHARED);
		if (q->shared == NULL)
			die("no memory");
		memset(q->shared, 0, FAKE_SHARED);
		q->shared_len = FAKE_SHARED;
	}
	if (plx_soft_tag_open(q) != 0)
		die("no memory");
	return 0;
}

static void
fake_queue_close(struct plx_queue *q)
{
	struct fake_queue *fq = queue_of(q);
	struct fake_pipe *p;

	if (!STAILQ_EMPTY(&fq->borrowed))
		die("a queue is closed with messages not released");
	fake_keys_close(q);
	fake_lossy_close(q);
	while ((p = LIST_FIRST(&fq->pipes)) != NULL) {
		LIST_REMOVE(p, link);
		msgs_free(&p->msgs, 0);
		free(p);
	}
	msgs_free(&fq->kept, 0);
	LIST_REMOVE(fq, link);
	plx_soft_tag_close(q);
	free(q->shared);
	free(fq);
}

static void
fake_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	const struct fake_addr a = {queue_of(q)->uid, FAKE_HOST};

	addr->len = sizeof(a);
	memcpy(addr->bytes, &a, sizeof(a));
}

static enum plx_rx_found
fake_rx_look(struct plx_queue *q, struct plx_rx *rx)
{
	const struct fake_pipe *p;

	(void)rx;
	LIST_FOREACH(p, &queue_of(q)->pipes, link) {
		if (p->n != 0)
			return PLX_RX_BURST;
	}
	return fake_keys_wait() || fake_lent_waits() || fake_lossy_waits(q) ? PLX_RX_BURST : PLX_RX_NONE;
}

/* Gone, and all that it sent is taken: now it is reported. */
static void
peer_look(struct plx_peer *peer, void *arg)
{
	const struct fake_pipe *p = pipe_find(arg, peer->uid);

	if (peer->state == PLX_PEER_DEAD || queue_find(peer->uid) != NULL)
		return;
	if (p != NULL && p->n != 0)
		return;
	fake_keys_drop(peer, true);
	fake_lent_drop(peer, false, true);
	plx_peer_dead(peer, -ECONNRESET);
}

static void
fake_queue_control(struct plx_queue *q)
{
	plx_peer_each(q, peer_look, queue_of(q));
}

static int
fake_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	struct plx_proc self;
	struct fake_addr a;

	if (addr->len != sizeof(a))
		return -EINVAL;
	memcpy(&a, addr->bytes, sizeof(a));
	if (a.host != FAKE_HOST)
		return -EHOSTUNREACH;
	peer->mtu = fake.mtu;
	peer->short_max = fake.short_max;
	peer->caps = (uint8_t)(fake.caps & peer->q->caps);
	if (plx_proc_self(&self) != 0) /* all are in this process, but none knows it: proc is 0 */
		return -EIO;
	peer->domain = plx_dev_domain(plx_proc_id(&self), fake.port);
	return 0;
}

static int
fake_peer_connect(struct plx_peer *peer)
{
	if (queue_find(peer->uid) == NULL)
		return -ECONNRESET;
	if (fake.connect_mtu != 0 && fake.connect_mtu < peer->mtu)
		peer->mtu = fake.connect_mtu;
	if (peer->short_max > peer->mtu - sizeof(uint64_t)) /* a short message is a message */
		peer->short_max = peer->mtu - (uint32_t)sizeof(uint64_t);
	return 0;
}

static void
fake_peer_close(struct plx_peer *peer)
{
	fake_keys_drop(peer, false);
	fake_lent_drop(peer, queue_find(peer->uid) != NULL, false);
}

static int
fake_tx(const struct plx_tx *tx)
{
	struct fake_queue *from = queue_of(tx->peer->q);
	struct fake_queue *to = queue_find(tx->peer->uid);
	struct fake_pipe *p;
	struct fake_msg *m;

	if (from->dead)
		die("a queue that was killed sends");
	if (tx->peer->state == PLX_PEER_NEW)
		die("something is sent to a peer that was never connected");
	if (tx->peer->state == PLX_PEER_DEAD)
		return tx->peer->err;
	if (to == NULL)
		return -ECONNRESET;
	if (tx->hdr_len + (uint64_t)tx->len > tx->peer->mtu)
		return -EMSGSIZE;
	p = pipe_get(to, from->uid);
	if (from->blocked || (fake.depth != 0 && p->n >= fake.depth) || chance(fake.full_percent)) {
		PLX_STAT_INC(from->q->stat.tx_full);
		return -EAGAIN;
	}
	m = msg_new(tx->op, tx->hdr_len + tx->len);
	memcpy(data_of(m), tx->hdr, tx->hdr_len);
	if (tx->pack != NULL)
		tx->pack(tx->pack_arg, tx->pack_offset, data_of(m) + tx->hdr_len, tx->len);
	else if (tx->len != 0)
		memcpy(data_of(m) + tx->hdr_len, tx->data, tx->len);
	pipe_put(to, p, m);
	fake.n_much += tx->much;
	PLX_STAT_INC(from->q->stat.tx_msgs);
	PLX_STAT_ADD(from->q->stat.tx_bytes, m->len);
	return 0;
}

static int
fake_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	struct plx_tx tx = {.peer = peer, .hdr = &hdr, .hdr_len = sizeof(hdr), .data = data,
		.len = len, .op = op};

	if (len > peer->short_max)
		die("tx_short of %u bytes, short_max is %u", len, peer->short_max);
	return fake_tx(&tx);
}

/* A peer for each queue that has sent us something. */
static struct plx_peer *
peer_of(struct fake_queue *fq, uint64_t uid)
{
	struct plx_addr addr = {.len = sizeof(struct fake_addr)};
	const struct fake_addr a = {uid, FAKE_HOST};
	struct plx_peer *peer;

	memcpy(addr.bytes, &a, sizeof(a));
	if (plx_peer_get(fq->q, &addr, &peer) != 0)
		die("no memory");
	plx_peer_put(peer);
	return peer;
}

static uint16_t
pipe_rx(struct fake_queue *fq, struct fake_pipe *p, struct plx_rx *rx, uint16_t n)
{
	struct fake_msg *m;
	uint16_t got = 0;

	while (got < n && (m = STAILQ_FIRST(&p->msgs)) != NULL && m->due <= fq->polls) {
		STAILQ_REMOVE_HEAD(&p->msgs, link);
		STAILQ_INSERT_TAIL(&fq->borrowed, m, link);
		rx[got].src = peer_of(fq, p->from);
		rx[got].data = data_of(m);
		rx[got].len = m->len;
		rx[got].op = m->op;
		got++;
	}
	return got;
}

static uint16_t
fake_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct fake_queue *fq = queue_of(q);
	struct fake_pipe *p;
	uint16_t got = 0;
	uint32_t skip;

	if (fq->dead)
		die("a queue that was killed receives");
	if (!STAILQ_EMPTY(&fq->borrowed))
		die("a burst is taken before the last was released");
	fq->polls++;
	fake_keys_run(q);
	fake_lent_run(q, fq->uid);
	fake_lossy_run(q);
	if (fq->n_pipes == 0)
		return 0;
	if (chance(fake.short_percent))
		n = 1 + fake_rng() % n;
	/* Begin with any sender: between senders there is no order. */
	skip = fake_rng() % fq->n_pipes;
	for (unsigned pass = 0; pass < 2; pass++) {
		uint32_t i = 0;

		LIST_FOREACH(p, &fq->pipes, link) {
			if ((i++ >= skip) == (pass == 0))
				got += pipe_rx(fq, p, rx + got, n - got);
		}
	}
	return got;
}

static void
fake_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct fake_queue *fq = queue_of(q);

	for (uint16_t i = 0; i < n; i++) {
		struct fake_msg *m = STAILQ_FIRST(&fq->borrowed);
		struct fake_pipe *p;

		if (m == NULL || data_of(m) != rx[i].data)
			die("released what was not given, or out of order");
		STAILQ_REMOVE_HEAD(&fq->borrowed, link);
		PLX_STAT_INC(q->stat.rx_msgs);
		PLX_STAT_ADD(q->stat.rx_bytes, m->len);
		p = pipe_find(fq, rx[i].src->uid);
		if (p != NULL)
			p->n--;
		m->is_released = true;
		if (m->is_kept)
			STAILQ_INSERT_TAIL(&fq->kept, m, link);
		else
			msg_free(m);
	}
}

static void *
fake_keep(struct plx_queue *q, struct plx_rx *rx)
{
	struct fake_queue *fq = queue_of(q);
	struct fake_msg *m;

	STAILQ_FOREACH(m, &fq->borrowed, link) {
		if (data_of(m) == rx->data)
			break;
	}
	if (m == NULL || m->is_kept)
		die("what is to be kept is not borrowed");
	if (fq->n_kept == fake.keep_max)
		return NULL;
	m->is_kept = true;
	fq->n_kept++;
	fake.n_kept++;
	return m;
}

static void
fake_give_back(struct plx_queue *q, void *kept)
{
	struct fake_queue *fq = queue_of(q);
	struct fake_msg *m = kept;

	if (!m->is_kept)
		die("what is given back was not kept");
	m->is_kept = false;
	fq->n_kept--;
	if (!m->is_released)
		return;
	STAILQ_REMOVE(&fq->kept, m, fake_msg, link);
	msg_free(m);
}

static int
rma_do(const struct plx_rma_op *op)
{
	struct plx_queue *q = op->peer->q;
	void *remote = (void *)(uintptr_t)op->remote;

	if (op->peer->state == PLX_PEER_DEAD || queue_find(op->peer->uid) == NULL)
		return -ECONNRESET;
	if (!(op->peer->caps & (PLX_DEV_KEYS | (op->put ? PLX_DEV_PUT : PLX_DEV_GET))))
		return -EOPNOTSUPP;
	if ((op->put ? fake.put_err : fake.get_err) != 0)
		return op->put ? fake.put_err : fake.get_err;
	if (chance(fake.again_percent))
		return -EAGAIN;
	if (chance(fake.refuse_percent)) {
		op->peer->caps &= ~(PLX_DEV_GET | PLX_DEV_PUT);
		PLX_STAT_INC(q->stat.rma_refused);
		return -EOPNOTSUPP;
	}
	if (op->peer->caps & PLX_DEV_KEYS)
		return fake_keys_rma(op);
	if (op->remote < FAKE_FAULT_ADDR_MAX ||
		(uintptr_t)fake.bad_addr - op->remote < op->len)
		return -EFAULT;
	memmove(op->put ? remote : op->local, op->put ? op->local : remote, op->len);
	PLX_STAT_INC(q->stat.rma_ops);
	PLX_STAT_ADD(q->stat.rma_bytes, op->len);
	return 0;
}

static int
fake_rma(const struct plx_rma_op *op)
{
	if (op->peer->caps & PLX_DEV_KEYS && op->done == NULL)
		die("an operation whose end is wanted, and nobody to be told");
	fake.n_typed += op->mem_type != 0;
	return rma_do(op);
}

static int
fake_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key)
{
	if ((peer->caps & PLX_DEV_KEYS) == 0 || len == 0 || len > peer->short_max || key == 0)
		die("a put that is not short, or has no key");
	return rma_do(&(struct plx_rma_op){.peer = peer, .local = (void *)(uintptr_t)data,
		.remote = remote, .len = len, .put = true, .key = key});
}

static unsigned
fake_rma_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct plx_rma_op op = {.peer = peer, .local = pieces[i].local,
			.remote = pieces[i].remote, .len = pieces[i].len, .put = put};

		if (fake_rma(&op) != 0)
			break;
	}
	fake.bursts += i > 1;
	return i;
}

static void *
fake_peer_shared(struct plx_peer *peer)
{
	const struct fake_queue *to = queue_find(peer->uid);

	return to != NULL ? to->q->shared : NULL;
}

static bool
fake_peer_has_left(const struct plx_peer *peer)
{
	return fake.all_left || queue_find(peer->uid) == NULL;
}

static int
fake_bulk(const struct plx_rma_op *op, uint32_t n)
{
	const struct fake_queue *from = queue_of(op->peer->q);
	struct fake_queue *to = queue_find(op->peer->uid);

	if (!fake.bulk || to == NULL)
		return 0;
	if (n == 0)
		return 1;
	return from->blocked || (fake.depth != 0 && pipe_get(to, from->uid)->n + n > fake.depth) ? -EAGAIN : 1;
}

static void
lent_end(struct plx_peer *peer, void *arg)
{
	(void)arg;
	fake_lent_drop(peer, queue_find(peer->uid) != NULL, false);
}

void
fake_kill(struct plx_queue *q)
{
	struct fake_queue *dead = queue_of(q), *fq;

	plx_peer_each(q, lent_end, NULL);
	dead->dead = true;
	LIST_FOREACH(fq, &queues, link) {
		struct fake_pipe *p = pipe_find(fq, dead->uid);
		uint32_t keep;

		if (p == NULL || p->n == 0)
			continue;
		keep = fake_rng() % (p->n + 1);
		msgs_free(&p->msgs, keep);
		p->n = keep;
	}
}

void
fake_inject(struct plx_queue *from, struct plx_queue *to, uint8_t op, const void *bytes,
	uint32_t len)
{
	struct fake_msg *m = msg_new(op, len);

	if (len != 0)
		memcpy(data_of(m), bytes, len);
	pipe_put(queue_of(to), pipe_get(queue_of(to), queue_of(from)->uid), m);
}

uint32_t
fake_on_the_way(const struct plx_queue *from, const struct plx_queue *to)
{
	const struct fake_pipe *p = pipe_find(queue_of(to), queue_of(from)->uid);

	return p != NULL ? p->n : 0;
}

void
fake_block(struct plx_queue *q, bool blocked)
{
	queue_of(q)->blocked = blocked;
}

static int
fake_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out)
{
	(void)peer;
	(void)out;
	return -EOPNOTSUPP;
}

/* The peer's memory is ours; of this much in one piece, as pages of an EAL. */
static const void *
fake_peer_view(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map)
{
	(void)peer;
	(void)map;
	if (fake.view_piece == 0)
		return NULL;
	*len = RTE_MIN(*len, fake.view_piece - addr % fake.view_piece);
	return (const void *)(uintptr_t)addr;
}

const struct plx_dev_ops fake_dev_ops = {
	.name = "fake",
	.peer_len = sizeof(struct fake_peer),
	.open = fake_open,
	.queue_open = fake_queue_open,
	.queue_close = fake_queue_close,
	.queue_addr = fake_queue_addr,
	.rx_look = fake_rx_look,
	.queue_control = fake_queue_control,
	.peer_open = fake_peer_open,
	.peer_connect = fake_peer_connect,
	.peer_close = fake_peer_close,
	.keys.reg = fake_mem_reg,
	.keys.dereg = fake_mem_dereg,
	.keys.region_reg = fake_region_reg,
	.keys.region_dereg = fake_region_dereg,
	.tx_short = fake_tx_short,
	.tx = fake_tx,
	.rx_burst = fake_rx_burst,
	.rx_release = fake_rx_release,
	.zcopy.tx = fake_lent_tx,
	.keep.keep = fake_keep,
	.keep.give_back = fake_give_back,
	.rma.rma = fake_rma,
	.keys.put_short = fake_put_short,
	.rma.burst = fake_rma_burst,
	.peer_has_left = fake_peer_has_left,
	.bulk = fake_bulk,
	.shared.peer = fake_peer_shared,
	.shared.windows = fake_peer_windows,
	.shared.view = fake_peer_view,
	.datagram.open = fake_lossy_open,
	.datagram.to = fake_lossy_to,
	.datagram.tx = fake_lossy_tx,
	.tag.post = plx_soft_tag_post,
	.tag.cancel = plx_soft_tag_cancel,
};
