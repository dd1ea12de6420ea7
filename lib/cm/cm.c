/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm.c - all sockets of a worker: open, poll, connect
 *
 * Design notes
 * - Events are taken from the kernel one by one, since a callback may close any other socket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cm_int.h"

#define ROW(field) PLX_STAT_ROW(struct plx_cm_stat, field)

const struct plx_stat_row plx_cm_stat_rows[] = {
	ROW(accepts), ROW(connects), ROW(dev_accepts), ROW(dev_connects), ROW(dev_falls),
	ROW(msgs_in), ROW(msgs_out), ROW(drop_bad_msg), ROW(drop_half_open), ROW(timeouts),
	ROW(accept_errors), ROW(listener_rests),
	PLX_STAT_END,
};

int
plx_cm_open(struct plx_cm *cm, enum plx_cm_transport transport, const struct plx_dev_cm_ops *dev)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	int rc;

	memset(cm, 0, sizeof(*cm));
	TAILQ_INIT(&cm->socks);
	LIST_INIT(&cm->resting);
	cm->transport = transport;
	cm->dev = dev;
	cm->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (cm->epfd < 0)
		return -errno;
	cm->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cm->timerfd < 0 || epoll_ctl(cm->epfd, EPOLL_CTL_ADD, cm->timerfd, &ev) != 0) {
		rc = -errno;
		if (cm->timerfd >= 0)
			close(cm->timerfd);
		close(cm->epfd);
		cm->epfd = -1;
		return rc;
	}
	return 0;
}

void
plx_cm_close(struct plx_cm *cm)
{
	if (cm->epfd < 0)
		return;
	cm_dev_settle(cm);
	while (!TAILQ_EMPTY(&cm->socks))
		cm_sock_free(TAILQ_FIRST(&cm->socks));
	close(cm->timerfd);
	close(cm->epfd);
	cm->epfd = -1;
}

/* If left open, a copy would keep an address in use, and a connection, after the parent has
 * closed it. */
void
plx_cm_lose(struct plx_cm *cm)
{
	struct plx_cm_sock *s;

	if (cm->epfd < 0)
		return;
	TAILQ_FOREACH(s, &cm->socks, link)
		if (s->id == NULL && s->fd.fd >= 0)
			close(s->fd.fd);
	TAILQ_INIT(&cm->socks);
	LIST_INIT(&cm->resting);
	close(cm->timerfd);
	close(cm->epfd);
	cm->epfd = -1;
}

static void
timer_run(struct plx_cm *cm)
{
	struct plx_cm_sock *s;
	uint64_t n, now = plx_clock_ns();

	if (read(cm->timerfd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
again:
	TAILQ_FOREACH(s, &cm->socks, link) {
		if (s->deadline_ns == 0 || s->deadline_ns > now)
			continue;
		s->deadline_ns = 0;
		if (s->pending_err == 0)
			PLX_STAT_INC(cm->stat.timeouts);
		cm_sock_fail(s, s->pending_err != 0 ? s->pending_err : -ETIMEDOUT);
		goto again;
	}
	if (cm->rest_ns != 0 && cm->rest_ns <= now)
		cm_listeners_wake(cm);
	cm_timer_set(cm);
}

unsigned
plx_cm_poll(struct plx_cm *cm)
{
	struct epoll_event ev;
	unsigned n = 0;

	while (n < PLX_CM_MAX_EVENTS && epoll_wait(cm->epfd, &ev, 1, 0) == 1) {
		struct plx_cm_fd *f = ev.data.ptr;

		if (f == NULL)
			timer_run(cm);
		else
			f->on_event(f, ev.events);
		n++;
	}
	return n;
}

bool
plx_cm_waits(const struct plx_cm *cm)
{
	struct epoll_event ev;

	return epoll_wait(cm->epfd, &ev, 1, 0) == 1;
}

/* Begin by the devices' manager, or by TCP. */
static int
sock_begin(struct plx_cm *cm, struct plx_cm_sock *s)
{
	int rc = -ENODEV;

	if (cm_dev_wanted(cm, (const struct sockaddr *)&s->to))
		rc = cm_dev_connect(cm, s);
	if (rc != 0 && cm->transport != PLX_CM_RDMA)
		rc = cm_sock_tcp(s);
	return rc != 0 ? rc : cm_sock_connects(cm, s);
}

int
plx_cm_connect(struct plx_cm *cm, const struct sockaddr *to, socklen_t to_len,
	const struct sockaddr *local, socklen_t local_len, struct plx_cm_sock **out)
{
	struct plx_cm_sock *s;
	int rc = cm_addr_check(to, to_len);

	if (rc == 0 && local != NULL)
		rc = cm_addr_check(local, local_len);
	if (rc != 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->fd.fd = -1;
	memcpy(&s->to, to, cm_addr_len(to));
	if (local != NULL)
		memcpy(&s->local, local, cm_addr_len(local));
	rc = sock_begin(cm, s);
	if (rc != 0) {
		cm_sock_free(s);
		return rc;
	}
	PLX_STAT_INC(cm->stat.connects);
	*out = s;
	return 0;
}
