/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_model.c - a device that matches tags and reports it late, as hardware does
 */
#include "tag_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_wire.h"

struct model_bytes {
	uint64_t tag;
	uint32_t id;
	uint32_t pad;
};

struct tag_model model;

static struct model_bytes lent[PLX_DEV_RX_BURST]; /* until rx_release */
static struct plx_peer nobody;
static struct plx_peer *sender = &nobody; /* while there is no other */

static void
wrong(const char *what)
{
	if (model.wrong == NULL)
		model.wrong = what;
}

void
model_reset(uint32_t list_n)
{
	memset(&model, 0, sizeof(model));
	model.list_n = list_n;
	model.burst = 1;
}

const struct model_event *
model_event(uint32_t i)
{
	return &model.events[(model.head + i) % MODEL_EVENTS];
}

static struct model_event *
event_add(enum model_event_kind kind, const struct plx_dev_recv *r)
{
	struct model_event *e = &model.events[(model.head + model.n_events++) % MODEL_EVENTS];

	if (model.n_events > MODEL_EVENTS) {
		fprintf(stderr, "model: too many events\n");
		abort();
	}
	memset(e, 0, sizeof(*e));
	e->kind = kind;
	if (r != NULL)
		e->r = *r;
	return e;
}

static void
event_tell(enum model_event_kind kind, const struct plx_dev_recv *r, uint64_t tag, uint32_t id)
{
	struct model_event *e = event_add(kind, r);

	e->msg.tag = tag;
	e->msg.id = id;
}

static uint32_t
list_find(const uct_tag_context_t *ctx)
{
	uint32_t i;

	for (i = 0; i < model.n_list; i++)
		if (model.list[i].r.ctx == ctx)
			break;
	return i;
}

static void
list_remove(uint32_t i)
{
	memmove(&model.list[i], &model.list[i + 1], (--model.n_list - i) * sizeof(model.list[0]));
}

void
model_arrive(uint64_t tag, uint32_t id, bool halves)
{
	for (uint32_t i = 0; i < model.n_list; i++) {
		const struct plx_dev_recv r = model.list[i].r;

		if (!model.list[i].active || (tag & r.mask) != r.tag)
			continue;
		list_remove(i);
		if (halves)
			event_tell(MODEL_CONSUMED, &r, tag, id);
		event_tell(halves ? MODEL_COMPLETED : MODEL_MET, &r, tag, id);
		return;
	}
	model.given++;
	event_tell(MODEL_UNEXPECTED, NULL, tag, id);
}

static void
count_told(uint16_t seen)
{
	if (model.bug == MODEL_BUG_COUNT)
		seen = model.given;
	if ((uint16_t)(model.given - seen) > MODEL_EVENTS)
		wrong("software has dealt with more than it was given");
	if (seen != model.given)
		return;
	for (uint32_t i = 0; i < model.n_list; i++)
		model.list[i].active = true;
}

static int
model_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen)
{
	(void)q;
	if (model.post_err != 0)
		return model.post_err;
	count_told(seen);
	if (recv == NULL)
		return 0;
	if ((recv->tag & ~recv->mask) != 0)
		wrong("a tag has bits outside its mask");
	if (list_find(recv->ctx) != model.n_list)
		wrong("a context is posted twice");
	if (model.n_list == model.list_n)
		return -ENOSPC;
	model.list[model.n_list].r = *recv;
	model.list[model.n_list++].active = false;
	count_told(seen);
	return 0;
}

/* Software believes that it is cancelled, whatever the device has to say. */
static void
cancel_believed(uct_tag_context_t *ctx)
{
	uint32_t n = model.n_events, head = model.head;

	model.n_events = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct model_event e = model.events[(head + i) % MODEL_EVENTS];

		if (e.r.ctx != ctx)
			*event_add(e.kind, NULL) = e;
	}
	ctx->completed_cb(ctx, 0, 0, 0, NULL, UCS_ERR_CANCELED);
}

static int
model_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen)
{
	uint32_t i = list_find(ctx);

	(void)q;
	if (model.cancel_err != 0) {
		model.n_list = 0;
		return model.cancel_err;
	}
	if (force && (i == model.n_list || model.list[i].active))
		wrong("a receive is taken back by force that a message may have met");
	if (i != model.n_list) {
		if (!force)
			event_add(MODEL_CANCELLED, &model.list[i].r);
		list_remove(i);
	} /* else what it was met by is on the way */
	count_told(seen);
	if (!force && model.bug == MODEL_BUG_CANCEL)
		cancel_believed(ctx);
	return 0;
}

static void
event_call(const struct model_event *e)
{
	uct_tag_context_t *ctx = e->r.ctx;
	uint32_t id = e->msg.id;

	if (e->kind == MODEL_CANCELLED) {
		ctx->completed_cb(ctx, 0, 0, 0, NULL, UCS_ERR_CANCELED);
		return;
	}
	if (e->kind != MODEL_COMPLETED)
		ctx->tag_consumed_cb(ctx);
	if (e->kind != MODEL_CONSUMED)
		ctx->completed_cb(ctx, e->msg.tag, 0, MODEL_MSG_LEN, &id, UCS_OK);
}

static uint16_t
model_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n)
{
	uint16_t got = 0;

	(void)q;
	for (uint16_t i = 0; i < model.burst && model.n_events != 0 && got < n; i++) {
		struct model_event e = *model_event(0);

		model.head = (model.head + 1) % MODEL_EVENTS;
		model.n_events--;
		if (e.kind != MODEL_UNEXPECTED) {
			event_call(&e);
			continue;
		}
		lent[got] = (struct model_bytes){e.msg.tag, e.msg.id, 0};
		rx[got] = (struct plx_rx){.src = sender, .data = (uint8_t *)&lent[got],
			.len = sizeof(uint64_t) + MODEL_MSG_LEN, .op = PLX_WIRE_EAGER};
		got++;
	}
	return got;
}

static void
model_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n)
{
	(void)q;
	(void)rx;
	memset(lent, 0xee, n * sizeof(lent[0]));
}

static int
model_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED;
	return 0;
}

static void
model_close(struct plx_dev *dev)
{
	(void)dev;
}

static int
model_queue_open(struct plx_queue *q)
{
	q->tag_caps.list_n = model.list_n;
	model.q = q;
	return 0;
}

static void
model_queue_close(struct plx_queue *q)
{
	(void)q;
	model.q = NULL;
}

static void
model_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	static const uint64_t uid = UINT64_C(0x6c65646f6d);

	(void)q;
	addr->len = sizeof(uid);
	memcpy(addr->bytes, &uid, sizeof(uid));
}

static int
model_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	(void)addr;
	peer->mtu = 1024;
	sender = peer;
	return 0;
}

static int
model_peer_connect(struct plx_peer *peer)
{
	(void)peer;
	return 0;
}

static void
model_peer_close(struct plx_peer *peer)
{
	if (sender == peer)
		sender = &nobody;
}

static int
model_tx(const struct plx_tx *tx)
{
	(void)tx;
	return -EAGAIN;
}

static int
model_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	(void)peer;
	(void)op;
	(void)hdr;
	(void)data;
	(void)len;
	return -EAGAIN;
}

const struct plx_dev_ops tag_model_ops = {
	.name = "model",
	.peer_len = sizeof(struct plx_peer),
	.open = model_open,
	.close = model_close,
	.queue_open = model_queue_open,
	.queue_close = model_queue_close,
	.queue_addr = model_queue_addr,
	.peer_open = model_peer_open,
	.peer_connect = model_peer_connect,
	.peer_close = model_peer_close,
	.tx_short = model_tx_short,
	.tx = model_tx,
	.rx_burst = model_rx_burst,
	.rx_release = model_rx_release,
	.tag.post = model_post,
	.tag.cancel = model_cancel,
};
