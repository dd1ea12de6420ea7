/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_dev.c - sockets by the devices' manager of connections, and the fallback to TCP
 *
 * Design notes
 * - The messages are those of TCP, one at a time. The ports of the manager are not those of TCP,
 *   and a client cannot know where a server listens. So with PLX_CM_AUTO a listener has the same
 *   port of both, or none, and a client tries the manager for a short while. Until then the
 *   connection is private, so it can fall back to TCP unnoticed, with its unsent messages.
 * - A closed TCP socket delivers what was sent; a queue pair does not. So a closed connection
 *   stays with its cm until the other side's device has acknowledged everything.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>

#include <rte_common.h>

#include "cm_int.h"

_Static_assert(PLX_CM_HEAD + PLX_CM_MSG_MAX <= PLX_DEV_CM_MSG_MAX, "a message holds it");
_Static_assert(sizeof(((struct plx_cm_sock *)0)->in) >= PLX_DEV_CM_MSG_MAX, "it is read at once");

static bool
is_loopback(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

	if (addr->sa_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(in6) ||
		(IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET);
}

bool
cm_dev_wanted(const struct plx_cm *cm, const struct sockaddr *addr)
{
	return cm->dev != NULL && cm->transport != PLX_CM_TCP && !is_loopback(addr);
}

/* --- clients --- */

/* It could not connect. @return whether it falls back to TCP */
static bool
dev_falls(struct plx_cm_sock *s)
{
	struct plx_cm *cm = s->cm;

	plx_cm_detach(s);
	s->dev->close(s->id);
	s->id = NULL;
	s->falls = NULL;
	s->fd.fd = -1;
	PLX_STAT_INC(cm->stat.dev_falls);
	return cm_sock_tcp(s) == 0 && cm_sock_connects(cm, s) == 0;
}

int
cm_dev_connect(struct plx_cm *cm, struct plx_cm_sock *s)
{
	int rc = cm->dev->connect((const struct sockaddr *)&s->to,
		s->local.ss_family != AF_UNSPEC ? (const struct sockaddr *)&s->local : NULL, &s->id);

	if (rc != 0)
		return rc;
	s->dev = cm->dev;
	s->fd.fd = s->id->fd;
	s->fd.on_event = cm_dev_event;
	s->connecting = true;
	s->falls = cm->transport == PLX_CM_AUTO ? dev_falls : NULL;
	return 0;
}

/* --- connections --- */

static void
sock_open(struct plx_cm_sock *s)
{
	int rc;

	PLX_STAT_INC(s->cm->stat.dev_connects);
	s->connecting = false;
	cm_deadline(s, 0);
	rc = cm_sock_flush(s);
	if (rc != 0)
		cm_sock_fail(s, rc);
}

static void
sock_failed(struct plx_cm_sock *s, int err)
{
	if (err == -EBADMSG || err == -EPROTO)
		PLX_STAT_INC(s->cm->stat.drop_bad_msg);
	cm_sock_fail(s, err);
}

void
cm_dev_event(struct plx_cm_fd *f, uint32_t events)
{
	struct plx_cm_sock *s = (struct plx_cm_sock *)f;
	struct plx_dev_cm_event ev;

	(void)events;
	s->dev->event(s->id, s->in, &ev);
	if (s->closing) {
		if (ev.what == PLX_DEV_CM_FAILED || !s->dev->busy(s->id))
			cm_sock_free(s);
		return;
	}
	if (ev.what == PLX_DEV_CM_OPEN) {
		sock_open(s);
	} else if (ev.what == PLX_DEV_CM_MSG) {
		s->in_len = ev.len;
		cm_sock_take(s, true);
	} else if (ev.what == PLX_DEV_CM_FAILED) {
		sock_failed(s, ev.err);
	}
}

/* @return whether it stays for a while, unknown to others, until its messages have arrived */
static bool
dev_lingers(struct plx_cm_sock *s)
{
	if (s->id == NULL || s->cm == NULL || s->connecting || !s->dev->busy(s->id))
		return false;
	s->cm->n_half -= s->listener != NULL;
	s->cm->n_awaited -= s->awaited_ns != 0;
	s->listener = NULL;
	s->awaited_ns = 0;
	s->closing = true;
	cm_deadline(s, PLX_CM_LINGER_MS);
	return true;
}

void
plx_cm_sock_close(struct plx_cm_sock *s)
{
	if (s != NULL && !dev_lingers(s))
		cm_sock_free(s);
}

static void
dev_settle(struct plx_cm_sock *s, uint64_t end_ns)
{
	struct plx_dev_cm_event ev = {.what = PLX_DEV_CM_NONE};
	struct pollfd p = {.fd = s->fd.fd, .events = POLLIN};

	while (ev.what != PLX_DEV_CM_FAILED && s->dev->busy(s->id) && plx_clock_ns() < end_ns) {
		if (poll(&p, 1, 1) > 0)
			s->dev->event(s->id, s->in, &ev);
	}
}

void
cm_dev_settle(struct plx_cm *cm)
{
	uint64_t end_ns = plx_clock_ns() + PLX_CM_LINGER_MS * 1000000ull;
	struct plx_cm_sock *s;

	TAILQ_FOREACH(s, &cm->socks, link) {
		if (s->closing)
			dev_settle(s, end_ns);
	}
}
