/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * soft_tag.c - matching of tags for a device that has none in hardware
 *
 * Design notes
 * - It behaves like a network card with a tag list. `given` counts the tagged messages that
 *   matched no receive here; as long as the owner has not processed all of them a new receive is
 *   suspended and matches nothing, since one of them may be its message.
 * - A message that matched a receive is complete before the burst is handed on. The owner does
 *   not see it, but the device does when the burst is released: in order and complete.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_copy.h"
#include "plx_soft_tag.h"
#include "plx_wire.h"

#define SOFT_INLINE_MAX 192 /* bytes that the callback reads in place instead of a copy */

struct soft_recv {
	struct plx_dev_recv r;
	bool waits; /* for the counts to agree */
	TAILQ_ENTRY(soft_recv) link;
};

TAILQ_HEAD(soft_list, soft_recv);

/* Owner: the queue's worker. */
struct plx_soft_tag {
	struct soft_list active, waiting, free; /* the first two in the order posted */
	uint16_t given;
	uint16_t n_burst; /* messages of the burst that is not released yet */
	uint16_t (*rx_burst)(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
	void (*rx_release)(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
	struct plx_rx burst[PLX_DEV_RX_BURST];
	struct soft_recv recvs[];
};

_Static_assert(sizeof(struct soft_recv *) <= UCT_TAG_PRIV_LEN, "priv holds where it is");

/* Software has processed `seen` messages: once these are all, suspended receives may match. */
static void
count_told(struct plx_soft_tag *s, uint16_t seen)
{
	struct soft_recv *r;

	if (seen != s->given || TAILQ_EMPTY(&s->waiting))
		return;
	TAILQ_FOREACH(r, &s->waiting, link)
		r->waits = false;
	TAILQ_CONCAT(&s->active, &s->waiting, link);
}

static void
recv_free(struct plx_soft_tag *s, struct soft_recv *r)
{
	TAILQ_REMOVE(r->waits ? &s->waiting : &s->active, r, link);
	TAILQ_INSERT_HEAD(&s->free, r, link);
}

/* A message has matched a receive: call its callbacks. */
static void
deliver(const struct plx_rx *rx, const struct plx_dev_recv *r, uint64_t tag)
{
	uct_tag_context_t *ctx = r->ctx;
	const uint8_t *data = rx->data + sizeof(struct plx_wire_eager);
	size_t len = rx->len - sizeof(struct plx_wire_eager);

	ctx->tag_consumed_cb(ctx);
	if (rx->op != PLX_WIRE_EAGER) {
		ctx->rndv_cb(ctx, tag, rx, sizeof(*rx), UCS_OK, UCT_TAG_RECV_CB_INLINE_DATA);
	} else if (len > r->len) {
		ctx->completed_cb(ctx, tag, 0, len, NULL, UCS_ERR_MESSAGE_TRUNCATED);
	} else if (len <= SOFT_INLINE_MAX) {
		ctx->completed_cb(ctx, tag, 0, len, (void *)(uintptr_t)data, UCS_OK);
	} else {
		plx_copy(r->buf, data, len);
		ctx->completed_cb(ctx, tag, 0, len, NULL, UCS_OK);
	}
}

/* @return whether the message matched a receive, and is complete */
static bool
match(struct plx_soft_tag *s, const struct plx_rx *rx)
{
	struct soft_recv *r;
	uint64_t tag;

	if (!plx_wire_is_tagged(rx->op, rx->len))
		return false;
	memcpy(&tag, rx->data, sizeof(tag)); /* once: its sender may still write there */
	TAILQ_FOREACH(r, &s->active, link) {
		if ((tag & r->r.mask) == r->r.tag) {
			struct plx_dev_recv met = r->r;

			recv_free(s, r); /* first: callbacks may post */
			deliver(rx, &met, tag);
			return true;
		}
	}
	s->given++;
	return false;
}

static uint16_t
soft_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	struct plx_soft_tag *s = q->soft_tag;
	uint16_t left = 0;

	n = s->rx_burst(q, s->burst, n < PLX_DEV_RX_BURST ? n : PLX_DEV_RX_BURST);
	s->n_burst = n;
	for (uint16_t i = 0; i < n; i++)
		if (!match(s, &s->burst[i]))
			rx[left++] = s->burst[i];
	if (left == 0 && n != 0) /* nothing is handed on, so nothing will be released */
		q->rx_release(q, rx, 0);
	return left;
}

/* Matched messages are released with those of the owner. */
static void
soft_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	struct plx_soft_tag *s = q->soft_tag;

	(void)rx, (void)n;
	s->rx_release(q, s->burst, s->n_burst);
	s->n_burst = 0;
}

int
plx_soft_tag_open(struct plx_queue *q)
{
	uint32_t n = (uint32_t)plx_conf_u64(q->conf, PLX_CONF_TAG_OFFLOAD_LIST);
	struct plx_soft_tag *s;

	if (!plx_conf_u64(q->conf, PLX_CONF_TAG_OFFLOAD))
		return 0;
	s = calloc(1, sizeof(*s) + n * sizeof(s->recvs[0]));
	if (s == NULL)
		return -ENOMEM;
	TAILQ_INIT(&s->active);
	TAILQ_INIT(&s->waiting);
	TAILQ_INIT(&s->free);
	for (uint32_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&s->free, &s->recvs[i], link);
	s->rx_burst = q->rx_burst;
	s->rx_release = q->rx_release;
	q->soft_tag = s;
	q->rx_burst = soft_rx_burst;
	q->rx_release = soft_rx_release;
	q->tag_caps.list_n = n;
	return 0;
}

void
plx_soft_tag_close(struct plx_queue *q)
{
	free(q->soft_tag);
	q->soft_tag = NULL;
}

int
plx_soft_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	struct plx_soft_tag *s = q->soft_tag;
	struct soft_recv *r;

	count_told(s, seen);
	if (recv == NULL)
		return 0;
	r = TAILQ_FIRST(&s->free);
	if (r == NULL)
		return -ENOSPC;
	TAILQ_REMOVE(&s->free, r, link);
	r->r = *recv;
	r->waits = true;
	TAILQ_INSERT_TAIL(&s->waiting, r, link);
	memcpy(recv->ctx->priv, &r, sizeof(struct soft_recv *));
	count_told(s, seen);
	return 0;
}

int
plx_soft_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	struct plx_soft_tag *s = q->soft_tag;
	struct soft_recv *r;

	memcpy(&r, ctx->priv, sizeof(struct soft_recv *));
	recv_free(s, r);
	count_told(s, seen);
	if (!force)
		ctx->completed_cb(ctx, 0, 0, 0, NULL, UCS_ERR_CANCELED);
	return 0;
}
