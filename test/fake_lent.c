/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_lent.c - the fake device's messages whose data is not copied
 *
 * Design notes
 * The data moves when its target next looks for messages, before it sees any, and some polls of its sender later
 * that is reported: so a sender that returns the buffer before the end is found out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_dev.h"

#define IOV_MAX_N 3

struct fake_lent {
	TAILQ_ENTRY(fake_lent) link;
	struct plx_tx_zcopy tx;
	struct iovec iov[IOV_MAX_N];
	uint8_t *to; /* in the message */
	bool moved;
	uint32_t wait; /* polls until it is reported */
};

static TAILQ_HEAD(, fake_lent) lent = TAILQ_HEAD_INITIALIZER(lent);

void
fake_lent_open(struct plx_queue *q)
{
	q->zcopy_min = fake.zcopy_min;
	q->zcopy_iov = IOV_MAX_N;
}

/* Instead of the data: where it is to go. */
static void
note(void *arg, uint64_t offset, void *to, uint64_t len)
{
	struct fake_lent *l = arg;

	(void)offset;
	l->to = to;
	memset(to, 0xdd, len);
}

int
fake_lent_tx(const struct plx_tx_zcopy *tx)
{
	struct fake_lent *l = calloc(1, sizeof(*l));
	const struct plx_tx as = {.peer = tx->peer, .hdr = tx->hdr, .hdr_len = tx->hdr_len, .op = tx->op,
		.len = (uint32_t)plx_tx_zcopy_len(tx), .pack = note, .pack_arg = l};
	int rc = l != NULL ? plx_peer_tx(&as) : -EAGAIN;

	if (rc != 0) {
		free(l);
		return rc;
	}
	fake.n_typed += tx->mem_type != 0;
	l->tx = *tx;
	memcpy(l->iov, tx->iov, tx->n_iov * sizeof(l->iov[0]));
	l->wait = fake.lent_wait;
	l->wait += fake.delay_max != 0 ? (uint32_t)(fake_rng() % (fake.delay_max + 1)) : 0;
	TAILQ_INSERT_TAIL(&lent, l, link);
	fake.n_lent++;
	return -EINPROGRESS;
}

static void
move(struct fake_lent *l)
{
	uint8_t *to = l->to;

	for (unsigned i = 0; i < l->tx.n_iov; i++) {
		memcpy(to, l->iov[i].iov_base, l->iov[i].iov_len);
		to += l->iov[i].iov_len;
	}
	l->moved = true;
}

static void
end(struct fake_lent *l, bool tell, int err)
{
	struct plx_tx_zcopy tx = l->tx;

	TAILQ_REMOVE(&lent, l, link);
	free(l);
	if (tell)
		tx.done(tx.arg, err);
}

bool
fake_lent_waits(void)
{
	return !TAILQ_EMPTY(&lent);
}

void
fake_lent_run(struct plx_queue *q, uint64_t uid)
{
	struct fake_lent *l;

	TAILQ_FOREACH(l, &lent, link) {
		if (!l->moved && l->tx.peer->uid == uid)
			move(l);
	}
	do { /* what one tells may begin others: from the front again */
		TAILQ_FOREACH(l, &lent, link) {
			if (l->tx.peer->q == q && l->moved && l->wait-- == 0)
				break;
		}
		if (l != NULL)
			end(l, true, 0);
	} while (l != NULL);
}

void
fake_lent_drop(const struct plx_peer *peer, bool lives, bool tell)
{
	struct fake_lent *l;

	do {
		TAILQ_FOREACH(l, &lent, link) {
			if (l->tx.peer == peer)
				break;
		}
		if (l == NULL)
			break;
		if (lives && !l->moved)
			move(l);
		end(l, tell, -ECONNRESET);
	} while (l != NULL);
}
