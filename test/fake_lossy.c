/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_lossy.c - messages of the fake device that may get lost
 *
 * They overtake all else: whoever looks has them at once.
 */
#include "fake_dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lossy_msg {
	STAILQ_ENTRY(lossy_msg) link;
	uint64_t from; /* uid */
	uint32_t len;
	uint8_t op;
	uint8_t bytes[]; /* of exactly len */
};

/* A queue that takes them. */
struct lossy_end {
	LIST_ENTRY(lossy_end) link;
	struct plx_queue *q;
	uint32_t where;
	STAILQ_HEAD(, lossy_msg) msgs;
};

static LIST_HEAD(, lossy_end) ends = LIST_HEAD_INITIALIZER(ends);
static uint32_t next_where = 0x70;

static struct lossy_end *
end_of(const struct plx_queue *q, uint32_t where)
{
	struct lossy_end *e;

	LIST_FOREACH(e, &ends, link)
		if (e->q == q || e->where == where)
			break;
	return e;
}

int
fake_lossy_open(struct plx_queue *q, uint32_t *where)
{
	struct lossy_end *e = end_of(q, 0);

	if (fake.lossy_mtu == 0)
		return -EOPNOTSUPP;
	if (e == NULL) {
		e = calloc(1, sizeof(*e));
		if (e == NULL)
			return -ENOMEM;
		e->q = q;
		e->where = next_where++;
		STAILQ_INIT(&e->msgs);
		LIST_INSERT_HEAD(&ends, e, link);
	}
	*where = e->where;
	return 0;
}

int
fake_lossy_to(struct plx_peer *peer, uint32_t where)
{
	if (end_of(peer->q, 0) == NULL || where == 0 || where >= next_where)
		return -EINVAL;
	peer->lossy_mtu = fake.lossy_mtu;
	((struct fake_peer *)peer)->lossy_where = where;
	return 0;
}

int
fake_lossy_tx(const struct plx_tx *tx)
{
	struct lossy_end *to = end_of(NULL, ((struct fake_peer *)tx->peer)->lossy_where);
	struct lossy_msg *m;
	struct plx_addr addr;

	if (fake.lossy_full)
		return -EAGAIN;
	fake.n_lossy++;
	if (to == NULL || fake_rng() % 100 < fake.lossy_percent)
		return 0;
	m = malloc(sizeof(*m) + tx->hdr_len + tx->len);
	if (m == NULL)
		abort();
	plx_queue_addr(tx->peer->q, &addr);
	memcpy(&m->from, addr.bytes, sizeof(m->from));
	m->len = tx->hdr_len + tx->len;
	m->op = tx->op;
	memcpy(m->bytes, tx->hdr, tx->hdr_len);
	if (tx->len != 0)
		memcpy(m->bytes + tx->hdr_len, tx->data, tx->len);
	STAILQ_INSERT_TAIL(&to->msgs, m, link);
	return 0;
}

static void
deliver(struct plx_queue *q, const struct lossy_msg *m)
{
	struct plx_peer *peer;

	LIST_FOREACH(peer, &q->peers[m->from % PLX_DEV_PEER_HASH], link) {
		const struct plx_rx rx = {.src = peer, .data = m->bytes, .len = m->len, .op = m->op};

		if (peer->uid == m->from && peer->lossy_mtu != 0 && peer->state != PLX_PEER_DEAD) {
			q->on_lossy(q, &rx);
			return;
		}
	}
}

bool
fake_lossy_waits(const struct plx_queue *q)
{
	const struct lossy_end *e = end_of(q, 0);

	return e != NULL && !STAILQ_EMPTY(&e->msgs);
}

void
fake_lossy_run(struct plx_queue *q)
{
	struct lossy_end *e = end_of(q, 0);
	struct lossy_msg *m;

	while (e != NULL && (m = STAILQ_FIRST(&e->msgs)) != NULL) {
		STAILQ_REMOVE_HEAD(&e->msgs, link);
		deliver(q, m);
		free(m);
	}
}

void
fake_lossy_close(const struct plx_queue *q)
{
	struct lossy_end *e = end_of(q, 0);
	struct lossy_msg *m;

	if (e == NULL)
		return;
	while ((m = STAILQ_FIRST(&e->msgs)) != NULL) {
		STAILQ_REMOVE_HEAD(&e->msgs, link);
		free(m);
	}
	LIST_REMOVE(e, link);
	free(e);
}
