/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_chan.c - channels: from the application's side, their RMA, and arrivals for them
 */
#include <errno.h>
#include <string.h>

#include "worker_int.h"

#define FETCH_MIN	32768u	    /* bytes of a put that its target fetches, if it can */
#define READ_DIRECT_MIN (16u << 10) /* bytes; a shorter read goes by message as a whole */
#define READ_END	8	    /* bytes at each end of a longer one that do */

static struct plx_worker *
worker_of_chans(struct plx_chans *cs)
{
	return container_of(cs, struct plx_worker, chans);
}

/* The meaning of the peer's answer to the caller. */
static int
move_status(int err)
{
	if (err == -EACCES)
		return -EOPNOTSUPP;
	if (err == -ETIME) /* a peer that does not answer: like all else on its channels */
		return -ECONNRESET;
	return err == -EINVAL || err == -ERANGE || err == -EFAULT ? -EKEYREJECTED : err;
}

static void
moved(struct plx_req *req)
{
	struct plx_chan_op *op = req->cb_arg;
	int err = move_status(req->status);

	plx_req_put(req);
	plx_chan_moved(op->item.chans, op, err);
}

/* A part of an operation. @return 0, and done follows, or -ENOMEM */
static int
move_piece(struct plx_chan_op *op, uint64_t at, uint64_t len, bool checked,
	void (*done)(struct plx_req *req))
{
	struct plx_worker *w = worker_of_chans(op->item.chans);
	struct plx_rkey rkey = {.key = {op->rma.index, op->rma.token}};
	struct plx_rma_do d = {.conn_id = op->item.chan->id, .ep = op->item.chan->ep, .rkey = &rkey,
		.buf = (char *)op->rma.local + at, .len = len, .remote = op->rma.remote + at,
		.kind = op->rma.get ? PLX_RMA_GET : PLX_RMA_PUT, .checked = checked};
	struct plx_req *req = plx_req_get(&w->chan_reqs);

	if (req == NULL)
		return -ENOMEM;
	req->done = done;
	req->cb_arg = op;
	plx_rma_prepare(&w->rma, &d, req);
	plx_rma_start(&w->rma, req);
	return 0;
}

/* The middle of a read has arrived: its end, read again, shows whether it was still registered. */
static void
middle_moved(struct plx_req *req)
{
	struct plx_chan_op *op = req->cb_arg;
	int err = move_status(req->status);

	plx_req_put(req);
	if (err == 0 && op->item.chan->state == PLX_CHAN_OPEN) {
		err = move_piece(op, op->rma.len - READ_END, READ_END, true, moved);
		if (err == 0)
			return;
	}
	plx_chan_moved(op->item.chans, op, err);
}

/* Both ends are valid, so the middle is: one region contains both. */
static void
end_over(struct plx_chan_op *op, int err)
{
	const uint64_t middle = op->rma.len - 2 * READ_END;

	if (op->rma.err == 0)
		op->rma.err = err;
	if (--op->rma.n_ends > 0)
		return;
	err = op->rma.err;
	if (err == 0 && op->item.chan->state == PLX_CHAN_OPEN) {
		err = move_piece(op, READ_END, middle, false, middle_moved);
		if (err == 0)
			return;
	}
	plx_chan_moved(op->item.chans, op, err);
}

static void
end_moved(struct plx_req *req)
{
	struct plx_chan_op *op = req->cb_arg;
	int err = move_status(req->status);

	plx_req_put(req);
	end_over(op, err);
}

/*
 * The target checks each access. It fetches a long write itself. A device that reads the
 * peer's memory asks nobody, so of a long read the two ends go by message first, and the
 * target checks key, rights and bounds of these.
 */
static void
move(struct plx_chans *cs, struct plx_chan_op *op)
{
	int rc;

	if (!op->rma.get || op->rma.len < READ_DIRECT_MIN ||
		!plx_rma_is_direct(&worker_of_chans(cs)->rma, op->item.chan->ep, PLX_RMA_GET)) {
		rc = move_piece(op, 0, op->rma.len, true, moved);
		if (rc != 0)
			plx_chan_moved(cs, op, rc);
		return;
	}
	op->rma.n_ends = 2;
	op->rma.err = 0;
	for (unsigned i = 0; i < 2; i++) {
		rc = move_piece(op, i == 0 ? 0 : op->rma.len - READ_END, READ_END, true, end_moved);
		if (rc != 0)
			end_over(op, rc);
	}
}

int
worker_chans_open(struct plx_worker *w, const struct plx_worker_params *params)
{
	int rc = plx_chans_open(&w->chans, params->chan_deliver != NULL, &w->eps, &w->timers,
		params->chan_max_send, params->chan_rx_max, w->dedicated);

	w->chans.user = params->user;
	w->chans.deliver = params->chan_deliver;
	if (!w->dedicated && !params->wakeup)
		w->chans.ready = params->chan_ready;
	w->chans.move = move;
	w->chans.fetch_min = plx_conf_u64(params->conf, PLX_CONF_CCI_NO_COPY_MIN);
	if (w->chans.on)
		w->rma.fetch_min = FETCH_MIN;
	if (w->chans.on && w->dedicated)
		worker_app_add(w, WORKER_APP_CHANS);
	/* The owner's own requests: they complete at once, in its turn. */
	return rc != 0 ? rc : plx_req_pool_open(&w->chan_reqs, 0, false, NULL, NULL);
}

void
worker_chans_close(struct plx_worker *w)
{
	plx_req_pool_close(&w->chan_reqs);
	plx_chans_close(&w->chans);
}

void
worker_on_group(struct plx_queue *q, uint64_t group, const uint8_t *data, uint32_t len)
{
	struct plx_worker *w = q->owner;

	plx_chan_on_group(&w->chans, group, data, len);
}

void
worker_on_joined(struct plx_queue *q, uint64_t group, bool rx, int rc)
{
	struct plx_worker *w = q->owner;

	plx_chans_on_joined(&w->chans, group, rx, rc);
}

/* Only messages of channels are accepted from datagrams. */
void
worker_on_lossy(struct plx_queue *q, const struct plx_rx *rx)
{
	struct plx_worker *w = q->owner;
	struct plx_wire_chan h;

	if (!w->chans.on || rx->op != PLX_WIRE_CHAN_LOSSY || rx->len < sizeof(h)) {
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		return;
	}
	memcpy(&h, rx->data, sizeof(h));
	plx_chan_on_lossy(&w->chans, rx->src, &h, rx->data + sizeof(h), rx->len - sizeof(h));
}

/* A call of the owner about a channel. */
struct chan_arg {
	struct plx_worker *w;
	struct plx_chan *c;
	const struct plx_chan_asked *asked;
	struct plx_chan_request *request;
	const struct plx_wire_addr *addr;
	uint64_t group;
	uint32_t id;
	uint8_t attr;
	enum plx_chan_opt opt;
	uint64_t value;
	int rc;
};

static int
chan_call(struct plx_worker *w, void (*run)(void *arg), struct chan_arg *a)
{
	a->w = w;
	plx_worker_call(w, run, a);
	return a->rc;
}

static void
ask_run(void *arg)
{
	struct chan_arg *a = arg;
	const struct plx_chan_asked *r = a->asked;
	struct plx_chans *cs = &a->w->chans;
	struct plx_ep *ep;

	a->rc = worker_ep_of_addr(a->w, r->addr, &ep);
	if (a->rc == 0)
		a->rc = plx_chan_ask(cs, a->c, ep, r->attr, r->data, r->len, plx_chan_ticks(cs, r->timeout_us));
}

int
plx_worker_chan_ask(struct plx_worker *w, const struct plx_chan_asked *asked, struct plx_chan *c)
{
	return chan_call(w, ask_run, &(struct chan_arg){.c = c, .asked = asked});
}

static void
answer_run(void *arg)
{
	struct chan_arg *a = arg;

	if (a->c != NULL)
		a->rc = plx_chan_accept(&a->w->chans, a->request, a->c);
	else
		plx_chan_reject(&a->w->chans, a->request);
}

int
plx_worker_chan_answer(struct plx_worker *w, struct plx_chan_request *r, struct plx_chan *c)
{
	return chan_call(w, answer_run, &(struct chan_arg){.c = c, .request = r});
}

static void
join_run(void *arg)
{
	struct chan_arg *a = arg;

	a->rc = plx_chan_join(&a->w->chans, a->c, a->attr, a->group);
}

int
plx_worker_chan_join(struct plx_worker *w, struct plx_chan *c, uint8_t attr, uint64_t group)
{
	return chan_call(w, join_run, &(struct chan_arg){.c = c, .attr = attr, .group = group});
}

static void
meet_run(void *arg)
{
	struct chan_arg *a = arg;
	struct plx_ep *ep;

	a->rc = worker_ep_of_addr(a->w, a->addr, &ep);
	if (a->rc == 0)
		a->rc = plx_chan_meet(&a->w->chans, a->c, ep, a->id);
}

int
plx_worker_chan_meet(struct plx_worker *w, struct plx_chan *c, const struct plx_wire_addr *addr,
	uint32_t id)
{
	return chan_call(w, meet_run, &(struct chan_arg){.c = c, .addr = addr, .id = id});
}

static void
joined_run(void *arg)
{
	plx_chan_joined(arg);
}

void
plx_worker_chan_joined(struct plx_worker *w, struct plx_chan *c)
{
	plx_worker_call(w, joined_run, c);
}

static void
fail_run(void *arg)
{
	plx_chans_fail(arg);
}

void
plx_worker_chans_fail(struct plx_worker *w)
{
	plx_worker_call(w, fail_run, &w->chans);
}

static void
end_run(void *arg)
{
	struct plx_chan *c = arg;

	plx_chan_end(c->chans, c);
}

void
plx_worker_chan_end(struct plx_worker *w, struct plx_chan *c)
{
	plx_worker_call(w, end_run, c);
}

static void
post_run(void *arg)
{
	struct plx_chan_op *op = arg;

	plx_chan_post(op->item.chans, op);
}

void
plx_worker_chan_post_far(struct plx_worker *w, struct plx_chan_op *op)
{
	worker_post(w, post_run, op);
}

static void
put_run(void *arg)
{
	struct plx_chan_item *item = arg;

	plx_chan_item_put(item->chans, item);
}

void
plx_worker_chan_put_far(struct plx_worker *w, struct plx_chan_item *item)
{
	worker_post(w, put_run, item);
}

static void
keep_all(struct plx_worker *w, uint64_t ticks)
{
	struct plx_chans *cs = &w->chans;

	cs->keep_ticks = ticks;
	for (uint32_t i = 1; i < cs->n_slots; i++) {
		if (cs->slots[i].chan != NULL)
			plx_chan_set_keepalive(cs->slots[i].chan, ticks);
	}
}

static void
set_run(void *arg)
{
	struct chan_arg *s = arg;
	struct plx_chans *cs = &s->w->chans;
	uint64_t ticks = plx_chan_ticks(cs, s->value);

	switch (s->opt) {
	case PLX_CHAN_OPT_RX_MAX:
		s->rc = plx_chans_set_rx(cs, s->value);
		break;
	case PLX_CHAN_OPT_TIMEOUT:
		if (s->c == NULL)
			cs->send_ticks = ticks;
		else
			plx_chan_set_timeout(s->c, ticks);
		break;
	case PLX_CHAN_OPT_KEEPALIVE:
		if (s->c == NULL)
			keep_all(s->w, ticks);
		else
			plx_chan_set_keepalive(s->c, ticks);
		break;
	}
}

int
plx_worker_chan_set(struct plx_worker *w, struct plx_chan *c, enum plx_chan_opt opt, uint64_t value)
{
	return chan_call(w, set_run, &(struct chan_arg){.c = c, .opt = opt, .value = value});
}

void
worker_rx_chan(struct plx_worker *w, const struct plx_rx *rx)
{
	struct plx_chans *cs = &w->chans;
	struct plx_wire_chan_answer answer;
	struct plx_wire_chan_ask ask;
	struct plx_wire_chan_join join;
	struct plx_wire_chan_fetch fetch;
	struct plx_wire_chan h;

	if (!cs->on) {
		PLX_STAT_INC(w->stat.rx_drop_bad_op);
		return;
	}
	switch (rx->op) {
	case PLX_WIRE_CHAN_ASK:
		memcpy(&ask, rx->data, sizeof(ask));
		plx_chan_on_ask(cs, rx->src, &ask, rx->data + sizeof(ask), rx->len - sizeof(ask));
		break;
	case PLX_WIRE_CHAN_ANSWER:
		memcpy(&answer, rx->data, sizeof(answer));
		plx_chan_on_answer(cs, rx->src, &answer);
		break;
	case PLX_WIRE_CHAN_JOIN:
		memcpy(&join, rx->data, sizeof(join));
		plx_chan_on_join(cs, rx->src, &join);
		break;
	case PLX_WIRE_CHAN_FETCH:
		memcpy(&fetch, rx->data, sizeof(fetch));
		plx_chan_on_fetch(cs, rx->src, &fetch);
		break;
	case PLX_WIRE_CHAN_LOSSY:
		memcpy(&h, rx->data, sizeof(h));
		plx_chan_on_lossy(cs, rx->src, &h, rx->data + sizeof(h), rx->len - sizeof(h));
		break;
	case PLX_WIRE_CHAN_ACK:
		memcpy(&h, rx->data, sizeof(h));
		plx_chan_on_ack(cs, rx->src, &h);
		break;
	default: /* it counts what it does not know */
		memcpy(&h, rx->data, sizeof(h));
		plx_chan_on_ctl(cs, rx->src, rx->op, &h);
		break;
	}
}
