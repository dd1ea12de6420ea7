/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_udp.c - datagrams of UDP: sockets, and slots to receive into and to send from
 *
 * Design notes
 * - A queue sends all datagrams, to peers and to groups, by one socket, and receives there those from peers. Each
 *   group that it receives from has another socket.
 * - A turn's datagrams go by one system call at its end; outside of a turn the first goes at once, and the next are
 *   refused until there has been a turn (see tcp_tx.c). A turn reads each hot socket by one system call, which takes
 *   up to TCP_UDP_RX datagrams.
 * - A datagram that the kernel refuses is lost, as any may be: it is counted, and no error.
 * - Anybody may send anything to these sockets. Datagrams without a stamp are dropped here; tcp_lossy.c and tcp_group.c
 *   drop those whose stamp was not made with the key of the sender, or of the group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tcp_int.h"

#define MAGIC	   0x31756c70u /* "plu1" */
#define MEM_LEN	   ((size_t)(TCP_UDP_RX + TCP_UDP_TX) * TCP_UDP_LEN)
#define KERNEL_BUF (4 << 20) /* bytes; the system's limit is lower, mostly */

static void
slot_open(struct mmsghdr *m, struct iovec *iov, uint8_t *at, struct sockaddr_storage *to)
{
	*iov = (struct iovec){at, TCP_UDP_LEN};
	m->msg_hdr = (struct msghdr){.msg_iov = iov, .msg_iovlen = 1, .msg_name = to};
}

static int
slots_open(struct tcp_udp *u)
{
	uint8_t *at = mmap(NULL, MEM_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	u->mem = at;
	for (unsigned i = 0; i < TCP_UDP_RX; i++, at += TCP_UDP_LEN)
		slot_open(&u->rx[i], &u->rx_iov[i], at, NULL);
	for (unsigned i = 0; i < TCP_UDP_TX; i++, at += TCP_UDP_LEN)
		slot_open(&u->tx[i], &u->tx_iov[i], at, &u->to[i]);
	return 0;
}

int
tcp_udp_in_open(struct tcp_queue *tq, struct tcp_udp_in *in)
{
	(void)tcp_sock_set(in->fd, SOL_SOCKET, SO_RCVBUF, KERNEL_BUF);
	return tcp_sock_watch(tq, in->fd, EPOLLIN, in, TCP_WATCH_UDP);
}

static void
cool(struct tcp_queue *tq, struct tcp_udp_in *in)
{
	if (!in->hot)
		return;
	in->hot = false;
	TAILQ_REMOVE(&tq->udp->hot, in, link);
	tq->udp->n_hot--;
}

void
tcp_udp_in_close(struct tcp_queue *tq, struct tcp_udp_in *in)
{
	if (in->fd < 0)
		return;
	cool(tq, in);
	tcp_sock_close(tq, &in->fd);
}

static int
udp_open(struct tcp_queue *tq, struct tcp_udp *u)
{
	int rc = tcp_sock_epoll(tq);

	if (rc >= 0)
		rc = slots_open(u);
	if (rc != 0)
		return rc;
	u->in.fd = tcp_sock_udp(tq, &u->port);
	return u->in.fd < 0 ? u->in.fd : tcp_udp_in_open(tq, &u->in);
}

int
tcp_udp_open(struct tcp_queue *tq)
{
	struct tcp_udp *u;
	int rc;

	if (tq->udp != NULL)
		return 0;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->in.fd = -1;
	TAILQ_INIT(&u->hot);
	LIST_INIT(&u->groups);
	tq->udp = u;
	rc = udp_open(tq, u);
	if (rc == 0)
		plx_queue_rouse(tq->q);
	else
		tcp_udp_close(tq);
	return rc;
}

void
tcp_udp_lose(struct tcp_queue *tq)
{
	if (tq->udp != NULL)
		tcp_sock_lose(&tq->udp->in.fd);
}

void
tcp_udp_close(struct tcp_queue *tq)
{
	if (tq->udp == NULL)
		return;
	tcp_udp_lose(tq);
	if (tq->udp->mem != NULL)
		munmap(tq->udp->mem, MEM_LEN);
	free(tq->udp);
	tq->udp = NULL;
}

/* -- sending -- */

void
tcp_udp_push(struct tcp_queue *tq)
{
	struct tcp_udp *u = tq->udp;

	u->blocked = false;
	while (u->tx_at < u->n_tx && !u->blocked) {
		int n = sendmmsg(u->in.fd, u->tx + u->tx_at, u->n_tx - u->tx_at, MSG_DONTWAIT | MSG_NOSIGNAL);

		PLX_STAT_INC(tq->stat.udp_tx_calls);
		if (n > 0) {
			u->tx_at += (uint32_t)n;
		} else if (errno == EAGAIN) {
			u->blocked = true;
		} else if (errno != EINTR) { /* this one is lost */
			PLX_STAT_INC(tq->stat.udp_refused);
			u->tx_at++;
		}
	}
	if (u->tx_at == u->n_tx)
		u->tx_at = u->n_tx = 0;
}

uint8_t *
tcp_udp_room(struct tcp_queue *tq)
{
	struct tcp_udp *u = tq->udp;

	if (tcp_turn_is_due(tq->q, u->sent_turn))
		return NULL;
	if (u->n_tx == TCP_UDP_TX && !u->blocked && u->n_calls < TCP_UDP_CALLS) {
		u->n_calls++;
		tcp_udp_push(tq);
	}
	if (u->n_tx == TCP_UDP_TX)
		return NULL;
	return (uint8_t *)u->tx_iov[u->n_tx].iov_base + sizeof(struct tcp_stamp);
}

void
tcp_udp_send(struct tcp_queue *tq, struct tcp_stamp stamp, uint32_t len, const struct tcp_udp_way *way)
{
	struct tcp_udp *u = tq->udp;
	uint8_t *at = u->tx_iov[u->n_tx].iov_base;

	stamp.magic = MAGIC;
	tcp_sip(&way->key, &stamp, at + sizeof(stamp), len, stamp.tag);
	memcpy(at, &stamp, sizeof(stamp));
	u->tx_iov[u->n_tx].iov_len = sizeof(stamp) + len;
	u->to[u->n_tx] = way->to;
	u->tx[u->n_tx].msg_hdr.msg_namelen = way->to_len;
	u->n_tx++;
	if (tq->q->hold) {
		tq->q->held = true;
		return;
	}
	tcp_turn_sent(tq->q, &u->sent_turn);
	if (!u->blocked)
		tcp_udp_push(tq);
}

/* -- receiving -- */

bool
tcp_udp_is_by(const struct tcp_stamp *stamp, const uint8_t *data, uint32_t len, const struct tcp_sip_key *key)
{
	uint8_t tag[TCP_TAG_LEN];

	tcp_sip(key, stamp, data, len, tag);
	return tcp_mac_same(tag, stamp->tag);
}

static void
take(struct tcp_queue *tq, struct tcp_udp_in *in, const struct mmsghdr *m)
{
	const uint8_t *at = m->msg_hdr.msg_iov->iov_base;
	struct tcp_stamp stamp;

	if (m->msg_len < sizeof(stamp) || (m->msg_hdr.msg_flags & MSG_TRUNC) != 0) {
		PLX_STAT_INC(tq->stat.udp_drop_bad);
		return;
	}
	memcpy(&stamp, at, sizeof(stamp));
	if (stamp.magic != MAGIC || stamp.pad != 0)
		PLX_STAT_INC(tq->stat.udp_drop_bad);
	else if (in->take == NULL)
		PLX_STAT_INC(tq->stat.lossy_drop_not_ours);
	else
		in->take(tq, in, &stamp, at + sizeof(stamp), m->msg_len - (uint32_t)sizeof(stamp));
}

/* One system call. @return whether something came */
static bool
udp_rx(struct tcp_queue *tq, struct tcp_udp_in *in)
{
	struct tcp_udp *u = tq->udp;
	int n = recvmmsg(in->fd, u->rx, TCP_UDP_RX, MSG_DONTWAIT, NULL);

	PLX_STAT_INC(tq->stat.udp_rx_calls);
	for (int i = 0; i < n; i++)
		take(tq, in, &u->rx[i]);
	in->n_empty = n > 0 ? 0 : in->n_empty + 1;
	return n > 0;
}

void
tcp_udp_event(struct tcp_queue *tq, struct tcp_udp_in *in, uint32_t events)
{
	struct tcp_udp *u = tq->udp;

	if ((events & EPOLLOUT) != 0) {
		u->out_armed = false;
		(void)tcp_sock_rewatch(tq, in->fd, EPOLLIN, in, TCP_WATCH_UDP);
		tcp_udp_push(tq);
	}
	if (in->hot || !udp_rx(tq, in) || u->n_hot >= TCP_HOT)
		return;
	in->hot = true;
	TAILQ_INSERT_TAIL(&u->hot, in, link);
	u->n_hot++;
}

void
tcp_udp_turn(struct tcp_queue *tq)
{
	struct tcp_udp *u = tq->udp;
	struct tcp_udp_in *in, *next;

	u->n_calls = 0;
	if (u->blocked)
		tcp_udp_push(tq);
	for (in = TAILQ_FIRST(&u->hot); in != NULL; in = next) {
		next = TAILQ_NEXT(in, link);
		if (!udp_rx(tq, in) && in->n_empty >= TCP_COLD)
			cool(tq, in);
	}
}

bool
tcp_udp_arm(struct tcp_queue *tq)
{
	struct tcp_udp *u = tq->udp;

	if (u->n_tx != 0 && !u->blocked)
		return true;
	if (u->blocked && !u->out_armed)
		u->out_armed = tcp_sock_rewatch(tq, u->in.fd, EPOLLIN | EPOLLOUT, &u->in, TCP_WATCH_UDP) == 0;
	return u->blocked && !u->out_armed;
}
