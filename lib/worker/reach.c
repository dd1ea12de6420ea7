/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reach.c - the device by which a worker reaches another, and its own address
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "worker_int.h"

PLX_LOG_DEFINE(worker, "plx.worker");

_Static_assert(PLX_WIRE_ADDR_BYTES >= PLX_ADDR_MAX, "each address of a queue has room in that of the worker");

/* Whether to omit it from addresses: its port is down, and another port of the device is not. */
static bool
leave_out(const struct plx_worker *w, uint32_t i)
{
	if (plx_queue_is_up(w->queues[i]))
		return false;
	for (uint32_t k = 0; k < w->n_queues; k++)
		if (k != i && w->devs[k] == w->devs[i] && plx_queue_is_up(w->queues[k]))
			return true;
	return false;
}

int
plx_worker_addr(const struct plx_worker *w, void *buf, size_t len)
{
	struct plx_wire_addr a = {.uid = w->uid};

	for (uint32_t i = 0; i < w->n_queues; i++) {
		struct plx_wire_addr_dev *d = &a.devs[a.n_devs];
		struct plx_addr addr;

		if (leave_out(w, i))
			continue;
		plx_queue_addr(w->queues[i], &addr);
		memcpy(d->name, plx_dev_name(w->devs[i]),
			strnlen(plx_dev_name(w->devs[i]), sizeof(d->name)));
		d->len = addr.len;
		memcpy(d->bytes, addr.bytes, addr.len);
		a.n_devs++;
	}
	return plx_wire_addr_pack(&a, buf, len);
}

static bool
same_device(const struct plx_wire_addr_dev *a, const char *name)
{
	return strncmp(name, a->name, sizeof(a->name)) == 0;
}

/*
 * Of the queues and of the addresses of one device, the best pair. If none is usable: the
 * first two, or *q stays NULL, as there is no queue of that device.
 */
static int
choose(struct plx_worker *w, const struct plx_wire_addr *wire, const char *name,
	struct plx_queue **q, struct plx_addr *to)
{
	int64_t best = -EHOSTUNREACH;

	for (uint32_t i = 0; i < wire->n_devs; i++) {
		const struct plx_wire_addr_dev *d = &wire->devs[i];
		struct plx_addr addr = {.len = d->len};

		if (!same_device(d, name))
			continue;
		memcpy(addr.bytes, d->bytes, d->len);
		for (uint32_t k = 0; k < w->n_queues; k++) {
			int64_t rank;

			if (!same_device(d, plx_dev_name(w->devs[k])))
				continue;
			rank = plx_queue_rank(w->queues[k], &addr);
			if (rank <= best && *q != NULL)
				continue;
			best = rank;
			*q = w->queues[k];
			*to = addr;
		}
	}
	return best < 0 ? (int)best : 0;
}

/* Do not reuse a dead, unreferenced peer; create a new one. */
static bool
is_left(const struct plx_peer *peer)
{
	const struct plx_ep *ep = peer->user;

	return peer->state == PLX_PEER_DEAD && (ep == NULL || ep->refs == 0);
}

static int
peer_of(struct plx_queue *q, const struct plx_addr *addr, struct plx_peer **peer)
{
	int rc = plx_peer_get(q, addr, peer);

	if (rc == 0 && is_left(*peer)) {
		plx_peer_leave(*peer);
		rc = plx_peer_get(q, addr, peer);
	}
	return rc;
}

/* The log message about an address once its device is known, or that there is none. */
struct verdict {
	char whose[PLX_DEV_TEXT_MAX];
	char why[512]; /* not by the devices that were tried before */
};

static void
verdict_add(struct verdict *v, const char *name, const char *why)
{
	size_t n = strlen(v->why), at = n + (n != 0 ? strlen("; ") : 0);

	snprintf(v->why + n, sizeof(v->why) - n, "%s%s: %s", n != 0 ? "; " : "", name, why);
	for (; *name != '\0' && at < sizeof(v->why) - 1; name++, at++)
		if (*name <= ' ' || *name > '~') /* the peer wrote it */
			v->why[at] = '?';
}

/* @param q of the device with this name, or NULL: there is none */
static void
verdict_refused(struct verdict *v, const char *name, const struct plx_queue *q,
	const struct plx_addr *addr, int rc)
{
	char why[PLX_DEV_TEXT_MAX] = "this worker has no such device";

	if (q != NULL)
		plx_queue_addr_why(q, addr, rc, why, sizeof(why));
	if (q != NULL && rc != -EINVAL && v->whose[0] == '\0')
		plx_queue_addr_whose(q, addr, v->whose, sizeof(v->whose));
	verdict_add(v, name, why);
}

/* Devices that only this side has. */
static void
verdict_absent(struct verdict *v, const struct plx_worker *w, const struct plx_wire_addr *wire)
{
	for (uint32_t k = 0; k < w->n_queues; k++) {
		const char *name = plx_dev_name(w->devs[k]);
		uint32_t i = 0;

		while (i < wire->n_devs && !same_device(&wire->devs[i], name))
			i++;
		if (i == wire->n_devs && (k == 0 || w->devs[k] != w->devs[k - 1]))
			verdict_add(v, name, "it has no such device");
	}
}

/* Whether it connects will be seen. */
static void
log_chosen(const struct plx_worker *w, const struct plx_queue *q, const struct plx_addr *addr,
	const char *why)
{
	const char *port = plx_queue_port(q);
	char whose[PLX_DEV_TEXT_MAX];

	plx_queue_addr_whose(q, addr, whose, sizeof(whose));
	PLX_LOG(INFO, worker, "worker %u chooses %s%s%s for %s%s%s", w->id, plx_dev_name(q->dev),
		port != NULL ? " at " : "", port != NULL ? port : "", whose, why[0] != '\0' ? ", not " : "", why);
}

static void
log_unreachable(const struct plx_worker *w, struct verdict *v, const struct plx_wire_addr *wire)
{
	verdict_absent(v, w, wire);
	PLX_LOG_RATELIMIT(WARNING, worker, "worker %u can't reach %s: %s", w->id,
		v->whose[0] != '\0' ? v->whose : "a peer", v->why);
}

static bool
named_before(const struct plx_wire_addr *wire, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (strncmp(wire->devs[k].name, wire->devs[i].name, PLX_WIRE_ADDR_NAME) == 0)
			return true;
	return false;
}

/* The first device that both sides have and that reaches the other. */
int
worker_ep_of_addr(struct plx_worker *w, const struct plx_wire_addr *wire, struct plx_ep **out)
{
	struct verdict v = {.whose = "", .why = ""};
	int rc = -EHOSTUNREACH;

	for (uint32_t i = 0; i < wire->n_devs; i++) {
		char name[PLX_WIRE_ADDR_NAME + 1] = {0};
		struct plx_queue *q = NULL;
		struct plx_addr addr;
		struct plx_peer *peer;

		if (named_before(wire, i)) /* another port of it */
			continue;
		memcpy(name, wire->devs[i].name, PLX_WIRE_ADDR_NAME);
		rc = choose(w, wire, name, &q, &addr);
		if (rc == 0)
			rc = peer_of(q, &addr, &peer);
		if (rc == -ENOMEM)
			return rc;
		if (rc != 0) {
			verdict_refused(&v, name, q, &addr, rc);
			continue;
		}
		if (peer->user == NULL)
			log_chosen(w, q, &addr, v.why);
		*out = plx_ep_of(&w->eps, peer);
		plx_peer_put(peer); /* the ep holds it */
		return *out != NULL ? 0 : -ENOMEM;
	}
	log_unreachable(w, &v, wire);
	return rc;
}

void
plx_worker_ep_info(const struct plx_ep_user *user, struct plx_ep_info *info)
{
	const struct plx_ep *ep = user->ep;
	const struct plx_queue *q;

	*info = (struct plx_ep_info){.err = ep->err, .connected = ep->connected, .is_known = !ep->stub};
	if (ep->stub)
		return;
	q = ep->peer->q;
	info->caps = ep->peer->caps;
	info->uid = ep->peer->uid;
	info->mtu = ep->peer->mtu;
	info->eager_end = ep->eager_own;
	info->device = plx_dev_name(q->dev);
	info->port = plx_queue_port(q);
}
