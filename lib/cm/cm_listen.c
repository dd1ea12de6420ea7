/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_listen.c - listeners, and silent connections
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_common.h>

#include "cm_int.h"

#define LISTEN_BACKLOG 1024
#define ACCEPT_BURST   16 /* connections accepted for one event */

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

/* A socket of a TCP descriptor, or of a connection of the manager; owns either, also when
 * it fails. */
static int
sock_new(struct plx_cm *cm, int fd, struct plx_dev_cm_id *id, struct plx_cm_sock **out)
{
	struct plx_cm_sock *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (s == NULL)
		goto fail;
	s->fd.fd = id != NULL ? id->fd : fd;
	s->fd.on_event = id != NULL ? cm_dev_event : cm_sock_event;
	s->id = id;
	s->dev = cm->dev;
	rc = plx_cm_attach(cm, s);
	if (rc != 0)
		goto fail;
	*out = s;
	return 0;
fail:
	if (id != NULL)
		cm->dev->close(id);
	else
		close(fd);
	free(s);
	return rc;
}

/* A client has connected; takes ownership of fd or id, as sock_new(). */
static void
listen_accepted(struct plx_cm_listener *l, int fd, struct plx_dev_cm_id *id)
{
	struct plx_cm *cm = l->cm;
	struct plx_cm_sock *s;

	/* Silent connections must not keep others out. */
	if (cm->n_half >= PLX_CM_MAX_HALF_OPEN) {
		PLX_STAT_INC(cm->stat.drop_half_open);
		plx_cm_sock_close(oldest_half_open(cm));
	}
	if (sock_new(cm, fd, id, &s) != 0) {
		PLX_STAT_INC(cm->stat.accept_errors);
		return;
	}
	PLX_STAT_INC(cm->stat.accepts);
	PLX_STAT_ADD(cm->stat.dev_accepts, id != NULL);
	s->listener = l;
	cm->n_half++;
	cm_deadline(s, PLX_CM_HEAR_TIMEOUT_MS);
}

static void
listener_watch(struct plx_cm_listener *l, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = &l->fd};

	epoll_ctl(l->cm->epfd, EPOLL_CTL_MOD, l->fd.fd, &ev);
}

/*
 * The process can't accept connections now. Clients wait in the kernel's queue, so epoll
 * would report the listener as ready again and again: it is out of the epoll set until
 * cm_listeners_wake().
 */
static void
listener_rest(struct plx_cm_listener *l)
{
	struct plx_cm *cm = l->cm;

	l->rests = true;
	LIST_INSERT_HEAD(&cm->resting, l, rest_link);
	listener_watch(l, 0);
	PLX_STAT_INC(cm->stat.listener_rests);
	if (cm->rest_ns == 0)
		cm->rest_ns = plx_clock_ns() + PLX_CM_REST_MS * 1000000ull;
	cm_timer_set(cm);
}

static void
listener_unrest(struct plx_cm_listener *l)
{
	if (!l->rests)
		return;
	l->rests = false;
	LIST_REMOVE(l, rest_link);
}

void
cm_listeners_wake(struct plx_cm *cm)
{
	struct plx_cm_listener *l;

	cm->rest_ns = 0;
	while ((l = LIST_FIRST(&cm->resting)) != NULL) {
		listener_unrest(l);
		listener_watch(l, EPOLLIN);
	}
}

/* @return whether the process lacks a resource, and the connection still waits */
static bool
is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

/* Fail the socket that has been awaited longest, if that is long. */
static bool
fail_silent(struct plx_cm *cm)
{
	struct plx_cm_sock *s;

	TAILQ_FOREACH(s, &cm->socks, link)
		if (s->awaited_ns != 0)
			break;
	if (s == NULL || plx_clock_ns() - s->awaited_ns < PLX_CM_HEAR_TIMEOUT_MS * 1000000ull)
		return false;
	PLX_STAT_INC(cm->stat.timeouts);
	cm_sock_fail(s, -ETIMEDOUT);
	return true;
}

static void
listener_event(struct plx_cm_fd *f, uint32_t events)
{
	struct plx_cm_listener *l = (struct plx_cm_listener *)f;

	(void)events;
	for (unsigned i = 0; i < ACCEPT_BURST; i++) {
		int fd;

		if (l->cm->n_awaited >= PLX_CM_MAX_AWAITED) {
			if (!fail_silent(l->cm))
				listener_rest(l);
			return;
		}
		fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno != EAGAIN)
				PLX_STAT_INC(l->cm->stat.accept_errors);
			if (is_short(errno))
				listener_rest(l);
			return;
		}
		listen_accepted(l, fd, NULL);
	}
}

static int
tcp_listen(struct plx_cm_listener *l, const struct sockaddr *addr, socklen_t len)
{
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;
	const int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	l->fd.fd = fd;
	l->fd.on_event = listener_event;
	if (bind(fd, addr, len) != 0 || listen(fd, LISTEN_BACKLOG) != 0)
		rc = -errno;
	else
		rc = cm_add(l->cm, &l->fd, EPOLLIN);
	if (rc != 0) {
		close(fd);
		l->fd.fd = -1;
	}
	return rc;
}

static void
tcp_unlisten(struct plx_cm_listener *l)
{
	int fd = l->fd.fd;

	if (fd < 0)
		return;
	listener_unrest(l);
	epoll_ctl(l->cm->epfd, EPOLL_CTL_DEL, fd, NULL);
	l->fd.fd = -1; /* first: a child that is forked now closes its own */
	close(fd);
}

static void
dev_unlisten(struct plx_cm_listener *l)
{
	if (l->id == NULL)
		return;
	epoll_ctl(l->cm->epfd, EPOLL_CTL_DEL, l->dev_fd.fd, NULL);
	l->cm->dev->close(l->id);
	l->id = NULL;
}

static void
dev_listener_event(struct plx_cm_fd *f, uint32_t events)
{
	struct plx_cm_listener *l = container_of(f, struct plx_cm_listener, dev_fd);
	uint8_t buf[PLX_DEV_CM_MSG_MAX];
	struct plx_dev_cm_event ev;

	(void)events;
	l->cm->dev->event(l->id, buf, &ev);
	if (ev.what == PLX_DEV_CM_ASKED)
		listen_accepted(l, -1, ev.id);
	else if (ev.what == PLX_DEV_CM_REFUSED && ev.err == -EPROTO)
		PLX_STAT_INC(l->cm->stat.drop_bad_msg);
	else if (ev.what == PLX_DEV_CM_REFUSED)
		PLX_STAT_INC(l->cm->stat.accept_errors);
	else if (ev.what == PLX_DEV_CM_FAILED)
		dev_unlisten(l);
}

static int
dev_listen(struct plx_cm_listener *l, const struct sockaddr *addr)
{
	const struct plx_dev_cm_ops *dev = l->cm->dev;
	int rc = dev->listen(addr, &l->id);

	if (rc != 0)
		return rc;
	l->dev_fd = (struct plx_cm_fd){.fd = l->id->fd, .on_event = dev_listener_event};
	rc = cm_add(l->cm, &l->dev_fd, EPOLLIN);
	if (rc != 0) {
		dev->close(l->id);
		l->id = NULL;
	}
	return rc;
}

void
plx_cm_listener_lose(struct plx_cm_listener *l)
{
	if (l->fd.fd >= 0)
		close(l->fd.fd);
	l->fd.fd = -1;
}

/* The devices' manager besides TCP, on TCP's port. */
static int
listen_beside(struct plx_cm_listener *l)
{
	struct sockaddr_storage at;
	int rc = plx_cm_listener_addr(l, &at);

	if (rc == 0)
		rc = dev_listen(l, (const struct sockaddr *)&at);
	return rc == -EADDRINUSE ? rc : 0; /* otherwise TCP alone */
}

static int
listen_once(struct plx_cm_listener *l, const struct sockaddr *addr, socklen_t len)
{
	bool by_dev = cm_dev_wanted(l->cm, addr);
	int rc;

	if (l->cm->transport == PLX_CM_RDMA)
		return by_dev ? dev_listen(l, addr) : -ENODEV;
	rc = tcp_listen(l, addr, len);
	if (rc == 0 && by_dev)
		rc = listen_beside(l);
	if (rc != 0)
		tcp_unlisten(l);
	return rc;
}

/* Both families have it in the same place. */
static bool
has_port(const struct sockaddr *addr)
{
	_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
		offsetof(struct sockaddr_in6, sin6_port), "one place");
	return ((const struct sockaddr_in *)addr)->sin_port != 0;
}

int
plx_cm_listen(struct plx_cm *cm, const struct sockaddr *addr, socklen_t len,
	struct plx_cm_listener *l)
{
	int rc = cm_addr_check(addr, len);

	if (rc != 0)
		return rc;
	l->cm = cm;
	l->fd.fd = -1;
	l->id = NULL;
	l->rests = false;
	rc = -EADDRINUSE;
	for (unsigned i = 0; i < PLX_CM_MAX_PORTS && rc == -EADDRINUSE; i++) {
		rc = listen_once(l, addr, len);
		if (has_port(addr))
			break;
	}
	if (rc == 0)
		cm->n++;
	return rc;
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
	dev_unlisten(l);
	tcp_unlisten(l);
	cm->n--;
}

int
plx_cm_listener_addr(const struct plx_cm_listener *l, struct sockaddr_storage *addr)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	if (l->fd.fd >= 0)
		return getsockname(l->fd.fd, (struct sockaddr *)addr, &len) == 0 ? 0 : -errno;
	if (l->id == NULL)
		return -ENODEV;
	l->cm->dev->addrs(l->id, addr, &remote);
	return 0;
}
