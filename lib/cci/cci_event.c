/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_event.c - the queue of events
 *
 * Design notes
 * - Items of the core are in ready and become events when they are taken. An item of a channel
 *   that has ended meanwhile is dropped. Turns only run while nothing is ready, so the buffers
 *   bound the ready items.
 */

#include "cci_int.h"

/* CONNECT and ACCEPT: the connection is open, or never will be. */
static void
fill_connected(union cci_event *e, const struct plx_chan_item *item)
{
	struct cci_conn *c = cci_conn_of_chan(item->chan);

	e->connect.type = item->kind == PLX_CHAN_CONNECTED ? CCI_EVENT_CONNECT : CCI_EVENT_ACCEPT;
	e->connect.status = (enum cci_status)cci_status(item->status);
	e->connect.context = c->pub.context;
	e->connect.connection = NULL;
	if (item->status == 0) {
		c->pub.max_send_size = c->chan.max_send;
		e->connect.connection = &c->pub;
	}
}

static __rte_noinline void
fill_other(union cci_event *e, struct plx_chan_item *item)
{
	struct plx_chan_request *r;

	switch (item->kind) {
	case PLX_CHAN_REQUEST:
		r = container_of(item, struct plx_chan_request, item);
		e->request.type = CCI_EVENT_CONNECT_REQUEST;
		e->request.data_len = r->len;
		e->request.data_ptr = r->data;
		e->request.attribute = (cci_conn_attribute_t)r->ask.attr;
		break;
	case PLX_CHAN_SILENCE:
		e->keepalive.type = CCI_EVENT_KEEPALIVE_TIMEDOUT;
		e->keepalive.connection = &cci_conn_of_chan(item->chan)->pub;
		break;
	case PLX_CHAN_FAILED:
		e->dev_failed.type = CCI_EVENT_ENDPOINT_DEVICE_FAILED;
		e->dev_failed.endpoint = &((struct cci_ep *)item->chans->user)->pub;
		break;
	default:
		fill_connected(e, item);
		break;
	}
}

static inline void
fill_recv(union cci_event *e, const struct plx_chan_item *item)
{
	struct plx_chan_rx *rx = container_of((struct plx_chan_item *)(uintptr_t)item,
		struct plx_chan_rx, item);

	e->recv.type = CCI_EVENT_RECV;
	e->recv.len = rx->len;
	e->recv.ptr = rx->data;
	e->recv.connection = &cci_conn_of_chan(item->chan)->pub;
}

static inline void
fill_send(union cci_event *e, const struct plx_chan_item *item, enum cci_status status)
{
	e->send.type = CCI_EVENT_SEND;
	e->send.status = status;
	e->send.connection = &cci_conn_of_chan(item->chan)->pub;
	e->send.context = container_of((struct plx_chan_item *)(uintptr_t)item,
		struct plx_chan_op, item)->context;
}

static void
fill(union cci_event *e, struct plx_chan_item *item)
{
	if (item->kind == PLX_CHAN_RECV)
		fill_recv(e, item);
	else if (item->kind == PLX_CHAN_SENT)
		fill_send(e, item, (enum cci_status)cci_status(item->status));
	else
		fill_other(e, item);
}

/* Nothing came; perhaps nothing ever will. @return an item that was found nevertheless */
static inline struct plx_chan_item *
item_of_failure(struct cci_ep *ep)
{
	if (likely(!plx_worker_dev_has_failed(ep->core) || ep->failed))
		return NULL;
	ep->failed = true;
	plx_worker_chans_fail(ep->core);
	plx_worker_progress(ep->core);
	return cci_next_item(ep);
}

/* With the lock, which is dropped. */
static __rte_noinline int
get_event(struct cci_ep *ep, cci_event_t **event)
{
	enum plx_offer offer = PLX_OFFER_NOT;
	struct plx_chan_item *item = cci_next_item(ep);
	int status = CCI_SUCCESS;

	if (item == NULL && unlikely(ep->has_fd)) {
		item = cci_next_item_or_arm(ep);
	} else if (item == NULL) {
		plx_worker_progress_slow(ep->core);
		item = cci_next_item(ep);
	}
	if (item == NULL)
		item = item_of_failure(ep);
	if (likely(item != NULL)) {
		union cci_event *e = cci_event_in(item);

		fill(e, item);
		item->held = true;
		*event = e;
	} else {
		*event = NULL;
		status = plx_chans_are_full(plx_worker_chans(ep->core)) ? CCI_ENOBUFS : CCI_EAGAIN;
		offer = plx_worker_offers(ep->core);
	}
	cci_unlock(ep);
	plx_worker_offer(ep->core, offer);
	return status;
}

/* Delivered before, of the two common kinds. @return whether the first was */
static inline bool
get_ready(struct cci_ep *ep, struct plx_chan_item *item, cci_event_t **event)
{
	union cci_event *e;

	if (unlikely(item == NULL || item->kind > PLX_CHAN_RECV || cci_is_stale(item)))
		return false;
	e = cci_event_in(item);
	if (item->kind == PLX_CHAN_RECV) {
		plx_chan_item_out(item);
		fill_recv(e, item);
	} else if (likely(item->status == 0))
		fill_send(e, item, CCI_SUCCESS);
	else
		return false;
	STAILQ_REMOVE_HEAD(&ep->ready, link);
	item->held = true;
	*event = e;
	return true;
}

/* With the quick half of the lock, which is dropped; nothing is ready. */
static inline int
look(struct cci_ep *ep, cci_event_t **event)
{
	enum plx_rx_found found = PLX_RX_BURST;

	if (likely(ep->plain)) {
		found = plx_worker_peek(ep->core);
		/* the sends that the message has acknowledged need no turn */
		if (found == PLX_RX_BURST)
			plx_worker_chans_reap(ep->core);
	}
	if (found == PLX_RX_NONE) {
		plx_lock_drop_quick(&ep->lock);
		*event = NULL;
		return CCI_EAGAIN;
	}
	if (found != PLX_RX_BURST)
		plx_worker_take(ep->core, found);
	if (!get_ready(ep, STAILQ_FIRST(&ep->ready), event))
		return get_event(ep, event);
	plx_lock_drop_quick(&ep->lock);
	return CCI_SUCCESS;
}

int
cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event)
{
	struct cci_ep *ep = cci_ep_of(endpoint);

	if (unlikely(endpoint == NULL || event == NULL))
		return CCI_EINVAL;
	if (plx_worker_is_inherited(ep->core))
		return CCI_EAGAIN;
	if (unlikely(!plx_lock_take_quick(&ep->lock))) {
		plx_lock_take_slow(&ep->lock);
		return get_event(ep, event);
	}
	if (STAILQ_EMPTY(&ep->ready))
		return look(ep, event);
	if (!get_ready(ep, STAILQ_FIRST(&ep->ready), event))
		return get_event(ep, event);
	plx_lock_drop_quick(&ep->lock);
	return CCI_SUCCESS;
}

/* Neither a message nor a send. @return a status */
static __rte_noinline int
return_other(struct cci_ep *ep, struct plx_chan_item *item)
{
	if (item->kind == PLX_CHAN_REQUEST && !item->answered)
		return CCI_EINVAL;
	/* This connection was never open. */
	if ((item->kind == PLX_CHAN_CONNECTED || item->kind == PLX_CHAN_ACCEPTED) &&
		item->status != 0)
		plx_pool_put(&ep->conns, cci_conn_of_chan(item->chan));
	item->held = false;
	cci_recycle(ep, item);
	return CCI_SUCCESS;
}

/* With the lock, which is dropped. */
static __rte_noinline int
return_event(struct cci_ep *ep, struct plx_chan_item *item)
{
	int status = CCI_SUCCESS;

	if (unlikely(!item->held)) {
		status = CCI_ENOMSG; /* it was returned before */
	} else if (likely(item->kind <= PLX_CHAN_RECV)) {
		item->held = false;
		cci_recycle(ep, item);
	} else {
		status = return_other(ep, item);
	}
	cci_started(ep);
	cci_unlock(ep);
	return status;
}

/* One of the two common kinds, if only its buffer is to be freed. */
static inline bool
return_taken(struct cci_ep *ep, struct plx_chan_item *item)
{
	struct plx_chans *cs = item->chans;

	if (unlikely(!item->held || !ep->plain))
		return false;
	if (item->kind == PLX_CHAN_SENT) {
		plx_chan_op_put(cs, container_of(item, struct plx_chan_op, item));
	} else if (likely(item->kind == PLX_CHAN_RECV && TAILQ_EMPTY(&cs->starved))) {
		plx_chan_item_back(item);
		plx_chan_item_put(cs, item);
	} else {
		return false;
	}
	item->held = false;
	return true;
}

int
cci_return_event(cci_event_t *event)
{
	struct plx_chan_item *item;
	struct cci_ep *ep;

	if (unlikely(event == NULL))
		return CCI_EINVAL;
	if (plx_mem_is_inherited(event))
		return CCI_SUCCESS;
	item = cci_item_of(event);
	ep = item->chans->user;
	if (unlikely(!plx_lock_take_quick(&ep->lock))) {
		plx_lock_take_slow(&ep->lock);
		return return_event(ep, item);
	}
	if (!return_taken(ep, item))
		return return_event(ep, item);
	plx_lock_drop_quick(&ep->lock);
	return CCI_SUCCESS;
}
