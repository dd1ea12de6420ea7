/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_queue.c - queues: opened and closed, and what they look after now and then
 *
 * Design notes
 * A queue that nobody has asked for anything is a struct and a few random bytes. It begins to listen
 * when its address is asked for, and has a buffer and chunks from its first connection on. Until then it rests
 * (plx_queue.rests): its worker's turns pass it by.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plx_proc.h"
#include "plx_soft_tag.h"

#include "tcp_int.h"

/* "20000-20999". @return 0 or -EINVAL */
static int
read_ports(struct tcp_queue *tq, const char *text)
{
	unsigned first = 0, last = 0;
	char more;

	if (text[0] == '\0')
		return 0;
	if (sscanf(text, "%u-%u%c", &first, &last, &more) != 2 || first == 0 || first > last || last > UINT16_MAX) {
		PLX_LOG(ERR, tcp, "net_tcp.ports: %.64s is no range of ports", text);
		return -EINVAL;
	}
	tq->port_first = (uint16_t)first;
	tq->port_last = (uint16_t)last;
	return 0;
}

static int
read_conf(struct tcp_queue *tq, const struct plx_conf *conf)
{
	memcpy(tq->if_text, plx_conf_str(conf, TCP_CONF(INTERFACES)), sizeof(tq->if_text));
	tq->ifs.text = tq->if_text;
	tq->ifs.family = (uint8_t)plx_conf_u64(conf, TCP_CONF(FAMILY));
	tq->connect_ms = (uint32_t)plx_conf_u64(conf, TCP_CONF(CONNECT_MS));
	tq->answer_ms = RTE_MAX((uint32_t)plx_conf_u64(conf, TCP_CONF(ANSWER_MS)), tq->connect_ms);
	tq->probe_ms = (uint32_t)plx_conf_u64(conf, TCP_CONF(PROBE_MS));
	tq->dead_ms = (uint32_t)plx_conf_u64(conf, TCP_CONF(DEAD_MS));
	tq->connected = (uint32_t)plx_conf_u64(conf, TCP_CONF(CONNECTED));
	tq->flows = (uint32_t)plx_conf_u64(conf, TCP_CONF(FLOWS));
	tq->msg_len = (uint32_t)plx_conf_u64(conf, TCP_CONF(MSG_LEN)) + TCP_HDR_ROOM;
	tq->n_chunks = (uint32_t)plx_conf_u64(conf, TCP_CONF(CHUNKS));
	tq->group_port = (uint16_t)plx_conf_u64(conf, TCP_CONF(GROUP_PORT));
	tq->group_ttl = (uint8_t)plx_conf_u64(conf, TCP_CONF(GROUP_TTL));
	return read_ports(tq, plx_conf_str(conf, TCP_CONF(PORTS)));
}

static int
addr_begin(struct tcp_addr *a)
{
	struct plx_proc self;
	int rc = plx_proc_self(&self);

	if (rc != 0)
		return rc;
	if (getrandom(&a->uid, sizeof(a->uid), 0) != sizeof(a->uid) ||
		getrandom(a->secret, sizeof(a->secret), 0) != sizeof(a->secret))
		return -EIO;
	a->version = TCP_ADDR_VERSION;
	a->proc = plx_proc_id(&self);
	a->host = tcp_host(&self);
	return 0;
}

int
tcp_queue_open(struct plx_queue *q)
{
	struct tcp_queue *tq = calloc(1, sizeof(*tq));
	int rc;

	if (tq == NULL)
		return -ENOMEM;
	tq->q = q;
	tq->epfd = tq->listener = -1;
	tq->listens = true;
	tq->pid = getpid();
	TAILQ_INIT(&tq->hot);
	TAILQ_INIT(&tq->blocked);
	TAILQ_INIT(&tq->dirty);
	TAILQ_INIT(&tq->watched);
	STAILQ_INIT(&tq->free);
	STAILQ_INIT(&tq->lent_free);
	STAILQ_INIT(&tq->lent_over);
	STAILQ_INIT(&tq->ops_free);
	STAILQ_INIT(&tq->ops_over);
	rc = read_conf(tq, q->conf);
	if (rc == 0)
		rc = addr_begin(&tq->addr);
	if (rc == 0)
		rc = plx_soft_tag_open(q);
	if (rc != 0) {
		free(tq);
		return rc;
	}
	pthread_mutex_init(&tq->listen_lock, NULL);
	q->priv = tq;
	q->rests = true;
	q->eager_max = TCP_EAGER_MAX;
	q->zcopy_min = TCP_LENT_MIN;
	q->zcopy_iov = TCP_LENT_IOV;
	q->group_mtu = TCP_GROUP_LEN;
	return 0;
}

/* Asking for it makes it true: from now on somebody listens there. */
void
tcp_queue_addr(const struct plx_queue *q, struct plx_addr *addr)
{
	struct tcp_queue *tq = tcp_queue(q);

	tcp_listen(tq);
	addr->len = tcp_addr_len(&tq->addr);
	memcpy(addr->bytes, &tq->addr, addr->len);
}

/* -- now and then -- */

static void
peer_control(struct plx_peer *peer, void *arg)
{
	struct tcp_peer *p = tcp_peer(peer);
	const uint64_t *now_ms = arg;

	tcp_join_control(p, *now_ms);
	/* Given up above us: what it sends is for nobody. */
	if (peer->state == PLX_PEER_DEAD && p->state != TCP_OVER && tcp_queue(peer->q)->rx.lent == 0) {
		tcp_join_end(p);
		tcp_peer_end(p, peer->err);
	}
}

void
tcp_queue_control(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	uint64_t now_ms;

	if (tq->epfd < 0)
		return;
	tcp_poll(tq);
	now_ms = plx_clock_ms();
	tq->now_ms = (uint32_t)now_ms;
	tcp_park_control(tq);
	tcp_guests_control(tq, now_ms);
	tcp_watch_control(tq, now_ms);
	if (tq->n_joins != 0 || q->stat.peers_dead != tq->n_dead_seen)
		plx_peer_each(q, peer_control, &now_ms);
	tq->n_dead_seen = q->stat.peers_dead;
}

static void
join_due(struct plx_peer *peer, void *arg)
{
	uint64_t *due_ms = arg;

	*due_ms = RTE_MIN(*due_ms, tcp_join_deadline_ms(tcp_peer(peer)));
}

uint64_t
tcp_queue_deadline(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	uint64_t due_ms;

	if (tq->epfd < 0)
		return UINT64_MAX;
	if (q->stat.peers_dead != tq->n_dead_seen)
		return 0;
	due_ms = RTE_MIN(tcp_guests_deadline_ms(tq), tcp_watch_deadline_ms(tq));
	if (tq->n_joins != 0)
		plx_peer_each(q, join_due, &due_ms);
	return due_ms != UINT64_MAX ? due_ms * 1000000 : UINT64_MAX;
}

/* -- the end -- */

static void
further_leave(struct tcp_further *x, void *arg)
{
	unsigned *waits = arg;

	if (tcp_is_up(x->p))
		tcp_flow_push(&x->flow);
	if (tcp_is_up(x->p))
		*waits += tcp_sock_waits(x->flow.fd, !STAILQ_EMPTY(&x->flow.out));
}

static void
peer_leave(struct plx_peer *peer, void *arg)
{
	struct tcp_peer *p = tcp_peer(peer);
	unsigned *waits = arg;

	if (!tcp_is_up(p) || p->flow.self)
		return;
	tcp_push(p);
	if (tcp_is_up(p))
		*waits += tcp_sock_waits(p->flow.fd, !STAILQ_EMPTY(&p->flow.out));
	tcp_more_each(p, further_leave, waits);
}

/* What was sent has to arrive: a socket that is closed before may throw it away. */
void
tcp_queue_leave(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	uint64_t until_ms = plx_clock_ms() + TCP_LEAVE_MS;

	if ((tq->n_conns == 0 && tq->udp == NULL) || getpid() != tq->pid)
		return;
	for (;;) {
		unsigned waits = 0;

		if (tq->udp != NULL) {
			tcp_udp_push(tq);
			waits = tq->udp->blocked;
		}
		plx_peer_each(q, peer_leave, &waits);
		if (waits == 0 || plx_clock_ms() >= until_ms)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
}

static void
further_lose(struct tcp_further *x, void *arg)
{
	(void)arg;
	tcp_sock_lose(&x->flow.fd);
}

static void
peer_lose(struct plx_peer *peer, void *arg)
{
	struct tcp_peer *p = tcp_peer(peer);

	(void)arg;
	tcp_join_lose(p);
	tcp_sock_lose(&p->flow.fd);
	tcp_more_each(p, further_lose, NULL);
}

/* They stay open in the parent; as long as the child has copies, peers do not see their end. */
void
tcp_queue_lose(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);
	int epfd = atomic_exchange(&tq->epfd, -1);

	plx_peer_each(q, peer_lose, NULL);
	tcp_listen_lose(tq);
	tcp_groups_lose(tq);
	tcp_udp_lose(tq);
	tcp_sock_lose(&epfd);
}

void
tcp_queue_close(struct plx_queue *q)
{
	struct tcp_queue *tq = tcp_queue(q);

	tcp_listen_close(tq);
	tcp_groups_close(tq);
	tcp_udp_close(tq);
	if (tq->epfd >= 0)
		close(tq->epfd);
	plx_soft_tag_close(q);
	tcp_mem_close(tq);
	tcp_keys_close(tq->keys);
	pthread_mutex_destroy(&tq->listen_lock);
	free(tq);
}
