/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_peer.c - peers: known by their address, connected, closed
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tcp_int.h"

/* Whether any of its places may lead to a peer; which one does is seen when it is connected. */
static bool
may_reach(const struct tcp_addr *own, const struct tcp_addr *to)
{
	struct tcp_ip ips[TCP_ENDS_MAX];
	unsigned n = tcp_addr_ends(to, ips);

	for (unsigned i = 0; i < n && to->port != 0; i++)
		if (to->host == own->host || !tcp_ip_is_loopback(&ips[i]))
			return true;
	return to->uid == own->uid;
}

int
tcp_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	struct tcp_queue *tq = tcp_queue(peer->q);
	struct tcp_peer *p = tcp_peer(peer);
	struct tcp_addr to;

	if (tcp_addr_read(addr->bytes, addr->len, &to) != 0)
		return -EINVAL;
	if (!may_reach(&tq->addr, &to))
		return -EHOSTUNREACH;
	p->addr = malloc(addr->len);
	if (p->addr == NULL)
		return -ENOMEM;
	memcpy(p->addr, addr->bytes, addr->len);
	STAILQ_INIT(&p->flow.out);
	STAILQ_INIT(&p->puts);
	STAILQ_INIT(&p->gets);
	p->flow.fd = -1;
	p->flow.self = to.uid == tq->addr.uid;
	peer->proc = to.proc;
	peer->domain = plx_dev_domain(peer->proc, TCP_DOMAIN_PORT);
	peer->mtu = tq->msg_len;
	peer->short_max = TCP_SHORT_MAX;
	peer->caps = peer->q->caps;
	return 0;
}

static int
connect_self(struct tcp_peer *p)
{
	int rc = tcp_mem_open(tcp_queue(p->peer.q));

	if (rc != 0)
		return rc;
	plx_queue_rouse(p->peer.q);
	p->state = TCP_OPEN;
	tcp_heat(&p->flow);
	return 0;
}

int
tcp_peer_connect(struct plx_peer *peer)
{
	struct tcp_peer *p = tcp_peer(peer);

	switch (p->state) {
	case TCP_NONE:
		if (p->flow.self)
			return connect_self(p);
		tcp_listen(tcp_queue(peer->q)); /* what is said to the peer names a port */
		return tcp_join(p);
	case TCP_JOINING:
	case TCP_OPEN:
	case TCP_LEAVING:
		return 0;
	default:
		return p->lost_err != 0 ? p->lost_err : -ECONNRESET;
	}
}

void
tcp_peer_close(struct plx_peer *peer)
{
	struct tcp_peer *p = tcp_peer(peer);

	tcp_join_end(p);
	tcp_guests_drop(p);
	tcp_lossy_drop(p);
	tcp_peer_disconnect(p);
	tcp_more_close(p);
	tcp_queue(peer->q)->n_wants -= p->wants;
	free(p->addr);
}

void
tcp_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len)
{
	(void)q;
	if (err == -EHOSTUNREACH && addr->len != 0)
		snprintf(text, len, "its host has no address but its own loopback");
}
