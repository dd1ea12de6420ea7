/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * post_quick.c - short messages that travel to the owner by value, and so are complete at once
 */
#include <string.h>

#include <rte_memcpy.h>

#include "worker_post.h"

/* Travels to the owner instead of a request, in the message itself. */
struct quick {
	struct plx_ep *ep; /* not the handle, whose ep may change */
	uint64_t word;	   /* the message's header: a tag, or struct plx_wire_am */
	uint8_t data[PLX_WORKER_QUICK_MAX];
	uint32_t len;
	uint32_t conn_id;
};
_Static_assert(sizeof(struct quick) == PLX_INBOX_BODY, "a short message fills a cell");

/* Device full: queue a copy, and disable the inline path for this ep. */
static __rte_noinline void
quick_late(struct plx_ep *ep, const struct quick *k, uint8_t op)
{
	uint8_t msg[sizeof(k->word) + PLX_WORKER_QUICK_MAX];

	atomic_store_explicit(&ep->quick, false, memory_order_relaxed);
	memcpy(msg, &k->word, sizeof(k->word));
	memcpy(msg + sizeof(k->word), k->data, k->len);
	/* Any other error is the ep's: its handler reports it, as of any message in flight. */
	(void)plx_ep_tx_copy(ep, k->conn_id, op, msg, sizeof(k->word) + k->len);
}

static inline void
quick_go(const struct quick *k, uint8_t op)
{
	if (unlikely(!plx_ep_open(k->ep) || plx_ep_tx_short(k->ep, op, k->word, k->data, k->len) != 0))
		quick_late(k->ep, k, op);
}

static void
tag_quick_run(void *arg)
{
	const struct quick *k = arg;
	struct plx_worker *w = k->ep->peer->q->owner;

	PLX_STAT_INC(w->stat.tag_sends);
	PLX_STAT_INC(w->stat.tag_quick);
	PLX_PROBE_SEND("tag", NULL, k->len, k->word);
	quick_go(k, PLX_WIRE_EAGER);
}

static void
am_quick_run(void *arg)
{
	const struct quick *k = arg;
	struct plx_worker *w = k->ep->peer->q->owner;

	PLX_STAT_INC(w->am.stat.sends);
	PLX_PROBE_SEND("am", NULL, k->len, k->word);
	quick_go(k, PLX_WIRE_AM);
}

static __rte_always_inline bool
quick_post(struct plx_worker *w, const struct plx_ep_user *user, const void *buf, uint64_t len,
	uint64_t word, plx_inbox_fn run)
{
	struct plx_inbox_cell *c;
	struct quick *k;
	uint64_t pos;

	c = plx_inbox_take(&w->inbox, &pos);
	if (unlikely(c == NULL))
		return false;
	c->fn = run;
	c->has_body = true;
	k = (struct quick *)c->body;
	k->ep = user->ep;
	k->word = word;
	k->len = len;
	k->conn_id = user->conn_id;
	if (likely(len == 8))
		memcpy(k->data, buf, 8);
	else if (len != 0)
		rte_memcpy(k->data, buf, len); /* without a call */
	worker_cell_post(w, c, pos);
	return true;
}

bool
plx_worker_tag_send_posted(struct plx_worker *w, const struct plx_ep_user *user, const void *buf,
	uint64_t len, uint64_t tag)
{
	return len <= PLX_WORKER_QUICK_MAX &&
	       atomic_load_explicit(&user->ep->quick, memory_order_relaxed) &&
	       quick_post(w, user, buf, len, tag, tag_quick_run);
}

bool
plx_worker_am_send_posted(struct plx_worker *w, const struct plx_ep_user *user, struct plx_wire_am h,
	const void *buf, uint64_t len)
{
	uint64_t word;

	memcpy(&word, &h, sizeof(word));
	return len <= PLX_WORKER_QUICK_MAX &&
	       atomic_load_explicit(&user->ep->quick, memory_order_relaxed) &&
	       quick_post(w, user, buf, len, word, am_quick_run);
}
