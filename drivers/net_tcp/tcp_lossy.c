/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_lossy.c - unreliable messages: one datagram of UDP each
 *
 * Design notes
 * - They go to the host to which the connection goes, or would go, and to a port that the peer names. They have at
 *   most the length of one packet on both hosts.
 * - The key of one direction is made of the secrets of both, known only to those two and to processes that were given
 *   both addresses. So it does not matter where a datagram comes from: it is a peer's if it has the peer's uid and was
 *   made with its key. A copy that anybody sends again makes a message come twice, as an unreliable one may.
 * - Sending does not report the end of a peer whose connection was closed as idle. If nothing has come from it for
 *   net_tcp.dead_ms, the queue connects to it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tcp_int.h"

struct tcp_lossy {
	struct tcp_udp_way way;	/* to the peer */
	struct tcp_sip_key key; /* of datagrams from it */
	uint16_t port;		/* the peer's */
};

/* The key of one direction. */
static void
key_of(struct tcp_sip_key *k, const struct tcp_addr *from, const struct tcp_addr *to)
{
	const uint64_t ends[2] = {from->uid, to->uid};
	uint8_t both[sizeof(ends) + sizeof(from->secret)];

	memcpy(both, ends, sizeof(ends));
	memcpy(both + sizeof(ends), from->secret, sizeof(from->secret));
	tcp_mac(to->secret, (struct tcp_mac_part){"datagrams", 9}, (struct tcp_mac_part){both, sizeof(both)},
		(uint8_t *)k->k);
}

/* Where the connection leads, or would. @return 0 or -errno */
static int
place_of(const struct tcp_peer *p, struct tcp_ip *out)
{
	const struct tcp_queue *tq = tcp_queue(p->peer.q);
	struct tcp_place places[TCP_ENDS_MAX];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	unsigned n_good;

	if (p->flow.fd >= 0 && getpeername(p->flow.fd, (struct sockaddr *)&sa, &len) == 0)
		return tcp_ip_of_sockaddr((struct sockaddr *)&sa, out);
	(void)tcp_if_places(&tq->ifs, &tq->addr, p->addr, places, &n_good);
	if (n_good == 0)
		return -EHOSTUNREACH;
	*out = places[0].ip;
	return 0;
}

static void
aim(struct tcp_peer *p, const struct tcp_ip *ip)
{
	struct tcp_udp_way *way = &p->lossy->way;

	way->to_len = tcp_ip_sockaddr(ip, p->lossy->port, &way->to);
}

/* Ask how long datagrams to there may be. @return 0 or -errno */
static int
measure(struct tcp_peer *p, const struct tcp_ip *ip)
{
	int room = tcp_sock_udp_room(ip, p->lossy->port, p->flow.fd);

	if (room <= (int)sizeof(struct tcp_stamp))
		return room < 0 ? room : -EMSGSIZE;
	if (p->peer.lossy_mtu == 0) /* else channels have announced it: where there is less room now, IP fragments */
		p->peer.lossy_mtu = RTE_MIN((uint32_t)room, TCP_UDP_LEN) - (uint32_t)sizeof(struct tcp_stamp);
	return 0;
}

void
tcp_lossy_moved(struct tcp_peer *p)
{
	struct tcp_ip ip;

	if (p->lossy != NULL && place_of(p, &ip) == 0)
		aim(p, &ip);
}

void
tcp_lossy_drop(struct tcp_peer *p)
{
	free(p->lossy);
	p->lossy = NULL;
}

int
tcp_lossy_to(struct plx_peer *peer, uint32_t where)
{
	struct tcp_queue *tq = tcp_queue(peer->q);
	struct tcp_peer *p = tcp_peer(peer);
	bool known = p->lossy != NULL;
	struct tcp_ip ip;
	int rc;

	if (tq->udp == NULL || tq->udp->in.take == NULL || where == 0 || where > UINT16_MAX)
		return -EINVAL;
	if (!known) {
		p->lossy = calloc(1, sizeof(*p->lossy));
		if (p->lossy == NULL)
			return -ENOMEM;
		key_of(&p->lossy->way.key, &tq->addr, p->addr);
		key_of(&p->lossy->key, p->addr, &tq->addr);
	}
	p->lossy->port = (uint16_t)where;
	rc = place_of(p, &ip);
	if (rc == 0)
		rc = measure(p, &ip);
	if (rc == 0)
		aim(p, &ip);
	else if (!known)
		tcp_lossy_drop(p);
	return rc;
}

/* Nothing else reports the end of a peer without a connection. */
static void
ask_whether_it_is_there(struct tcp_peer *p)
{
	struct tcp_queue *tq = tcp_queue(p->peer.q);

	if (tq->now_ms - p->used_ms < tq->dead_ms || p->wants)
		return;
	p->used_ms = tq->now_ms;
	p->wants = true;
	tq->n_wants++;
}

int
tcp_lossy_tx(const struct plx_tx *tx)
{
	const struct tcp_stamp stamp = {.kind = TCP_STAMP_LOSSY, .op = tx->op,
		.from = tcp_queue(tx->peer->q)->addr.uid};
	struct tcp_queue *tq = tcp_queue(tx->peer->q);
	struct tcp_peer *p = tcp_peer(tx->peer);
	uint8_t *at = tcp_udp_room(tq);

	if (at == NULL) {
		PLX_STAT_INC(tq->stat.lossy_no_room);
		return -EAGAIN;
	}
	memcpy(at, tx->hdr, tx->hdr_len);
	if (tx->len != 0)
		memcpy(at + tx->hdr_len, tx->data, tx->len);
	tcp_udp_send(tq, stamp, tx->hdr_len + tx->len, &p->lossy->way);
	PLX_STAT_INC(tq->stat.lossy_tx);
	if (unlikely(p->state == TCP_NONE && tx->peer->state == PLX_PEER_OPEN))
		ask_whether_it_is_there(p);
	return 0;
}

/* The peer that a datagram says it is from, if that is true. */
static struct plx_peer *
sender(const struct tcp_queue *tq, const struct tcp_stamp *stamp, const uint8_t *data, uint32_t len)
{
	struct plx_peer *peer;

	LIST_FOREACH(peer, &tq->q->peers[stamp->from % PLX_DEV_PEER_HASH], link) {
		const struct tcp_lossy *l = tcp_peer(peer)->lossy;

		if (peer->uid == stamp->from && l != NULL && peer->state != PLX_PEER_DEAD &&
			tcp_udp_is_by(stamp, data, len, &l->key))
			break;
	}
	return peer;
}

static void
lossy_take(struct tcp_queue *tq, struct tcp_udp_in *in, const struct tcp_stamp *stamp, const uint8_t *data, uint32_t len)
{
	struct plx_rx rx = {.data = data, .len = len, .op = stamp->op};

	(void)in;
	if (stamp->kind == TCP_STAMP_LOSSY)
		rx.src = sender(tq, stamp, data, len);
	if (rx.src == NULL) {
		PLX_STAT_INC(tq->stat.lossy_drop_not_ours);
		return;
	}
	tcp_peer(rx.src)->used_ms = tq->now_ms;
	PLX_STAT_INC(tq->stat.lossy_rx);
	if (tq->q->on_lossy != NULL)
		tq->q->on_lossy(tq->q, &rx);
}

int
tcp_lossy_open(struct plx_queue *q, uint32_t *where)
{
	struct tcp_queue *tq = tcp_queue(q);
	int rc = tcp_udp_open(tq);

	if (rc != 0)
		return rc;
	tq->udp->in.take = lossy_take;
	*where = tq->udp->port;
	return 0;
}
