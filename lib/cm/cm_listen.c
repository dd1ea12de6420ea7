/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_listen.c - listeners, and connections of which nothing was heard yet
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "plx_assert.h"
#include "plx_cm.h"

#define LISTEN_BACKLOG 1024
#define ACCEPT_BURST   16 /* connections taken for one event */

static struct plx_cm_sock *
oldest_half_open(struct plx_cm *cm)
{
	struct plx_cm_sock *s;

	TAILQ_FOREACH(s, &cm->socks, link) {
		if (s->listener != NULL)
			break;
	}
	return s;
}

static void
listener_event(struct plx_cm_fd *f, uint32_t events)
{
	struct plx_cm_listener *l = (struct plx_cm_listener *)f;
	struct plx_cm *cm = l->cm;

	(void)events;
	for (unsigned i = 0; i < ACCEPT_BURST; i++) {
		struct plx_cm_sock *s;
		int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno != EAGAIN)
				PLX_STAT_INC(cm->stat.accept_errors);
			return;
		}
		/* Whoever connects and says nothing must not keep others out. */
		if (cm->n_half >= PLX_CM_MAX_HALF_OPEN) {
			PLX_STAT_INC(cm->stat.drop_half_open);
			plx_cm_sock_close(oldest_half_open(cm));
		}
		if (cm_sock_new(cm, fd, &s) != 0) {
			PLX_STAT_INC(cm->stat.accept_errors);
			return;
		}
		PLX_STAT_INC(cm->stat.accepts);
		s->listener = l;
		cm->n_half++;
		cm_deadline(s, PLX_CM_HEAR_TIMEOUT_MS);
	}
}

int
plx_cm_listen(struct plx_cm *cm, const struct sockaddr *addr, socklen_t len,
	struct plx_cm_listener *l)
{
	int fd, rc = cm_addr_check(addr, len);
	const int on = 1;

	if (rc != 0)
		return rc;
	fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	l->cm = cm;
	l->fd.fd = fd;
	l->fd.on_event = listener_event;
	if (bind(fd, addr, len) != 0 || listen(fd, LISTEN_BACKLOG) != 0)
		rc = -errno;
	else
		rc = cm_add(cm, &l->fd, EPOLLIN);
	if (rc != 0) {
		close(fd);
		return rc;
	}
	cm->n++;
	return 0;
}

void
plx_cm_unlisten(struct plx_cm_listener *l)
{
	struct plx_cm *cm = l->cm;
	struct plx_cm_sock *s, *next;

	for (s = TAILQ_FIRST(&cm->socks); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->listener == l)
			plx_cm_sock_close(s);
	}
	epoll_ctl(cm->epfd, EPOLL_CTL_DEL, l->fd.fd, NULL);
	close(l->fd.fd);
	cm->n--;
}
