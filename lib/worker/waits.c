/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * waits.c - what a worker waits for: its owner lists it when another thread asks
 *
 * Design notes
 * - Posting a receive takes no time stamp, as that would cost each message. Its place in post order is known
 *   instead, and the owner notes at each look at its peers which place was the last: a receive is at least as old
 *   as the oldest note that knows it. Notes are kept in levels, each half as dense and twice as long as the one
 *   before, so an age is right to a quarter.
 * - Everything that an answer walks over has a bound: see plx_waits.h.
 */
#include "worker_int.h"

/* One answer in the making. */
struct waits_fill {
	struct plx_worker *w;
	struct plx_waits *out;
	const struct plx_ep *ep; /* whose operations are listed, or NULL */
	uint32_t most;		 /* that may be listed now */
};

void
worker_waits_note(struct plx_worker *w, uint64_t now_ticks)
{
	struct plx_waits_of *o = &w->waits_of;
	uint64_t n = ++o->n_notes;

	for (unsigned level = 0; level < PLX_WAITS_LEVELS; level++) {
		o->notes[level][(n >> level) % PLX_WAITS_NOTES] = (struct plx_waits_note){
			now_ticks, plx_tag_order(w->tag), w->rma.seq, w->stat.busy_turns};
		if ((n >> level & 1) != 0)
			break;
	}
}

/* @return the time of the oldest note that has order, seq and busy, or now */
static uint64_t
since(const struct plx_waits_of *o, uint64_t order, uint64_t seq, uint64_t busy, uint64_t now)
{
	uint64_t oldest = now;

	for (unsigned level = 0; level < PLX_WAITS_LEVELS; level++)
		for (unsigned i = 0; i < PLX_WAITS_NOTES; i++) {
			const struct plx_waits_note *n = &o->notes[level][i];

			if (n->ticks != 0 && n->order > order && n->rma >= seq && n->busy >= busy && n->ticks < oldest)
				oldest = n->ticks;
		}
	return oldest;
}

static void
list(const struct plx_wait_info *info, void *arg)
{
	struct waits_fill *f = arg;
	struct plx_waits *out = f->out;

	out->n_waits++;
	if (out->n >= f->most)
		return;
	out->waits[out->n] = *info;
	if (f->ep != NULL && f->ep->peer != NULL)
		out->waits[out->n].peer = f->ep->peer->uid;
	out->n++;
}

static void
list_wait(struct waits_fill *f, const struct plx_wait *w)
{
	struct plx_wait_info info;
	uint64_t seq;

	if (plx_rndv_wait_info(w, &info)) {
		if (info.op == NULL)
			info.op = worker_am_sends(&container_of(w, struct plx_rndv_tx, wait)->msg.pend) ? "am_send"
													: "stream_send";
	} else if ((seq = plx_rma_wait_info(w, &info)) != 0) {
		info.since = since(&f->w->waits_of, 0, seq, 0, f->out->ticks);
	} else if (!plx_stream_wait_info(w, &info)) {
		return;
	}
	list(&info, f);
}

static void
list_waits(struct waits_fill *f, const struct plx_wait_list *waits)
{
	const struct plx_wait *w;

	TAILQ_FOREACH(w, &waits->head, link)
		list_wait(f, w);
}

/* Whole messages that the device has not taken; others have a wait, or are nothing that the program knows. */
static void
list_pends(struct waits_fill *f, const struct plx_pends *pends, const char *state)
{
	const struct plx_pend *p;

	TAILQ_FOREACH(p, pends, link) {
		const struct plx_ep_send *s = container_of(p, struct plx_ep_send, pend);
		struct plx_wait_info info = {.op = "tag_send", .state = state};

		if (p->fail != worker_send_fail && p->fail != worker_frags_fail)
			continue;
		info.len = plx_req_of_own(s)->len;
		info.done = s->offset <= info.len ? s->offset : info.len;
		if (worker_am_sends(p)) {
			info.op = "am_send";
		} else {
			info.tag = s->tag;
			info.mask = UINT64_MAX;
		}
		list(&info, f);
	}
}

static void
list_ep(struct waits_fill *f, struct plx_ep *ep)
{
	const struct plx_wait_list *closing;

	f->ep = ep;
	list_waits(f, &ep->waits);
	LIST_FOREACH(closing, &ep->closing, link)
		list_waits(f, closing);
	list_pends(f, &ep->pending, ep->connected ? "the device is full" : "not connected yet");
	list_pends(f, &ep->held, "held: too many are announced");
	plx_stream_recvs_each(ep, list, f);
	plx_chans_waits_each(ep, list, f);
	worker_flushes_each(f->w, ep, list, f);
	f->ep = NULL;
}

static void
list_eps(struct waits_fill *f)
{
	const struct plx_ep_stub *stub;
	struct plx_ep *ep;
	unsigned n = 0;

	LIST_FOREACH(stub, &f->w->eps.connecting, link) {
		if (n++ < PLX_WAITS_EPS_MAX)
			list(&(struct plx_wait_info){.op = "connect", .state = "not answered"}, f);
	}
	LIST_FOREACH(ep, &f->w->eps.all, link) {
		if (n++ < PLX_WAITS_EPS_MAX && ep->err == 0)
			list_ep(f, ep);
	}
}

static void
list_recvs(struct waits_fill *f)
{
	const struct plx_tag_recv *r;
	uint64_t n = plx_tag_stats(f->w->tag)->posted;

	if (n > PLX_WAITS_SORT_MAX) {
		f->out->n_waits += n;
		return;
	}
	for (r = plx_tag_recv_first(f->w->tag); r != NULL; r = plx_tag_recv_next(r)) {
		const struct plx_req *req = container_of(r, struct plx_req, recv.tag);
		struct plx_wait_info info = {.op = "tag_recv", .state = "no message has come", .tag = r->tag,
			.mask = r->mask, .len = req->len};

		if (f->out->n < f->most) /* nobody sees the age of others */
			info.since = since(&f->w->waits_of, r->order, 0, 0, f->out->ticks);
		list(&info, f);
	}
}

static void
list_kept(const struct plx_worker *w, struct plx_waits *out)
{
	const struct plx_tag_msg *m = plx_tag_msg_first(w->tag);

	out->n_kept = plx_tag_stats(w->tag)->kept;
	for (; m != NULL && out->n_msgs < PLX_WAITS_KEPT_MAX; m = plx_tag_msg_next(m)) {
		const struct plx_msg *msg = container_of(m, struct plx_msg, tag);

		out->kept[out->n_msgs++] = (struct plx_wait_info){.op = "tag_send", .tag = m->tag, .mask = UINT64_MAX,
			.peer = msg->ep->peer != NULL ? msg->ep->peer->uid : 0, .len = msg->len,
			.state = msg->kind == PLX_MSG_EAGER ? "data is here" : "the sender waits"};
	}
}

void
worker_waits_tell(struct plx_worker *w, uint64_t now_ticks)
{
	struct plx_waits_of *o = &w->waits_of;
	struct waits_fill f = {.w = w, .out = o->out, .most = PLX_WAITS_MAX - PLX_WAITS_RECV_MIN};
	struct plx_waits *out = o->out;

	out->ticks = now_ticks;
	out->quiet_ticks = now_ticks - since(o, 0, 0, w->stat.busy_turns, now_ticks);
	out->n_waits = out->n_kept = out->n = out->n_msgs = 0;
	list_eps(&f);
	worker_flushes_each(w, NULL, list, &f);
	f.most = PLX_WAITS_MAX;
	list_recvs(&f);
	list_kept(w, out);
	/* pairs with the acquire in waits_told() */
	atomic_store_explicit(&o->told, atomic_load_explicit(&o->asked, memory_order_relaxed), memory_order_release);
}
