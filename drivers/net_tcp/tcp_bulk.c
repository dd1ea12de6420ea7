/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_bulk.c - data of a frame that goes straight to where it belongs
 *
 * Design notes
 * What of it is in the queue's buffer already is copied. The rest is read to its place, and the same system call
 * reads a little of what is behind it into the buffer: the next frame's head, mostly. As long as such data comes,
 * little is read into the buffer otherwise too, so that little has to be copied.
 *
 * The key is looked up again whenever more has come, and the memory is held only meanwhile: it may be taken back at any
 * time. A receive that has failed takes it back while its sender goes on, so the rest is dropped then.
 *
 * By a further connection (tcp_away.c) nothing else comes, so nothing goes to the buffer.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tcp_int.h"

#define BULKY_MIN 8192u /* bytes of data, so that more is expected */

/* @return 0: f->bulk is held and may be written to; -ESTALE: it is dropped; or it may not go there */
static int
bulk_hold(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);
	struct tcp_bulk *b = &f->bulk;
	int rc = b->dropped ? -ESTALE : 0;

	if (rc == 0 && !b->got)
		rc = tcp_key_hold(tq->keys, b->key, b->to, b->left, PLX_DEV_MEM_WRITE);
	if (rc == -ESTALE && !b->dropped) {
		PLX_STAT_INC(tq->stat.drop_ended);
		b->dropped = true;
	} else if (rc != 0 && rc != -ESTALE) {
		PLX_STAT_INC(tq->stat.drop_bad_key);
	}
	return rc;
}

static void
bulk_drop(const struct tcp_bulk *b)
{
	if (!b->got)
		tcp_key_drop(b->key);
}

static void
put_end(struct tcp_peer *p)
{
	PLX_STAT_INC(tcp_queue(p->peer.q)->stat.puts);
	if (!p->flow.bulk.acked)
		return;
	p->n_acks++;
	tcp_tx_later(p);
}

/* The first n bytes of what is left have come: data, and what pads it. */
static void
bulk_came(struct tcp_flow *f, size_t n)
{
	struct tcp_bulk *b = &f->bulk;
	uint32_t data = (uint32_t)RTE_MIN(n, (size_t)b->left);

	b->to += data;
	b->left -= data;
	b->pad -= (uint8_t)(n - data);
	if (tcp_is_bulk(f) || f->index != 0)
		return;
	if (b->got)
		tcp_op_got(tcp_flow_peer(f));
	else
		put_end(tcp_flow_peer(f));
}

/* @return bytes of it that are in the buffer */
static size_t
bulk_take_near(struct tcp_flow *f, bool keep)
{
	struct tcp_rx *rx = &tcp_queue(tcp_flow_peer(f)->peer.q)->rx;
	struct tcp_bulk *b = &f->bulk;
	uint32_t n = RTE_MIN(rx->end - rx->at, b->left + b->pad), data = RTE_MIN(n, b->left);

	if (keep && data != 0)
		memcpy((void *)(uintptr_t)b->to, rx->buf + rx->at, data);
	rx->at += n;
	return n;
}

enum tcp_frame_is
tcp_bulk_begin(struct tcp_peer *p, const struct tcp_bulk *bulk)
{
	struct tcp_flow *f = &p->flow;
	bool mark = bulk->left == 0;
	uint8_t bulky = f->bulk.bulky;
	size_t n;
	int rc;

	f->bulk = *bulk;
	f->bulk.pad = (uint8_t)tcp_frame_pad(bulk->left);
	f->bulk.bulky = bulk->left >= BULKY_MIN ? TCP_BULKY : bulky;
	rc = mark ? -ESTALE : bulk_hold(f);
	if (rc != 0 && rc != -ESTALE)
		return TCP_FRAME_BAD;
	n = bulk_take_near(f, rc == 0);
	if (rc == 0)
		bulk_drop(&f->bulk);
	bulk_came(f, n);
	return TCP_FRAME_GOOD;
}

bool
tcp_bulk_may(struct tcp_flow *f)
{
	int rc = bulk_hold(f);

	if (rc == 0)
		bulk_drop(&f->bulk);
	return rc == 0 || rc == -ESTALE;
}

/* To its place, and a little behind it. */
static int
bulk_iov(struct tcp_flow *f, bool keep, uint8_t pad[8], struct iovec iov[3])
{
	struct tcp_rx *rx = &tcp_queue(tcp_flow_peer(f)->peer.q)->rx;
	struct tcp_bulk *b = &f->bulk;
	int n = 0;

	if (b->left != 0 && !keep) { /* nothing that was read is behind rx->end */
		iov[0] = (struct iovec){rx->buf + rx->end, RTE_MIN(b->left, TCP_RX_LEN - rx->end)};
		return 1;
	}
	if (b->left != 0)
		iov[n++] = (struct iovec){(void *)(uintptr_t)b->to, RTE_MIN(b->left, TCP_RX_LEN)};
	if (b->left > TCP_RX_LEN || f->index != 0)
		return n;
	if (b->pad != 0)
		iov[n++] = (struct iovec){pad, b->pad};
	iov[n++] = (struct iovec){rx->buf + rx->end, RTE_MIN(TCP_NEAR_LEN, TCP_RX_LEN - rx->end)};
	return n;
}

ssize_t
tcp_bulk_take(struct tcp_flow *f)
{
	struct tcp_queue *tq = tcp_queue(tcp_flow_peer(f)->peer.q);
	uint32_t left = f->bulk.left + f->bulk.pad;
	uint8_t pad[8];
	struct iovec iov[3];
	struct msghdr m = {.msg_iov = iov};
	int rc = f->bulk.left != 0 ? bulk_hold(f) : -ESTALE;
	ssize_t n;

	if (rc != 0 && rc != -ESTALE) {
		tcp_peer_reject(tcp_flow_peer(f), -EPROTO);
		errno = EAGAIN;
		return -1;
	}
	m.msg_iovlen = (size_t)bulk_iov(f, rc == 0, pad, iov);
	PLX_STAT_INC(tq->stat.rx_calls);
	n = recvmsg(f->fd, &m, MSG_DONTWAIT);
	if (rc == 0)
		bulk_drop(&f->bulk);
	if (n <= 0)
		return n;
	if ((uint32_t)n > left)
		tq->rx.end += (uint32_t)n - left;
	PLX_STAT_ADD(tq->stat.rx_straight, RTE_MIN((uint32_t)n, left));
	bulk_came(f, RTE_MIN((size_t)n, (size_t)left));
	return n;
}
