/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_sock.c - sockets: send, receive, time-outs; by TCP, or by the devices' manager
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "plx_assert.h"

#include "cm_int.h"

#define CM_MAGIC   0x4d584c50u /* "PLXM" */
#define CM_VERSION 1

struct cm_head {
	uint32_t magic;
	uint16_t version;
	uint16_t len; /* of the following bytes */
};
_Static_assert(sizeof(struct cm_head) == PLX_CM_HEAD, "wire");

int
cm_add(struct plx_cm *cm, struct plx_cm_fd *f, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = f};

	return epoll_ctl(cm->epfd, EPOLL_CTL_ADD, f->fd, &ev) == 0 ? 0 : -errno;
}

void
cm_timer_set(struct plx_cm *cm)
{
	struct itimerspec it = {.it_value = {0, 0}};
	uint64_t first = cm->rest_ns;
	struct plx_cm_sock *s;

	TAILQ_FOREACH(s, &cm->socks, link) {
		if (s->deadline_ns != 0 && (first == 0 || s->deadline_ns < first))
			first = s->deadline_ns;
	}
	it.it_value.tv_sec = first / 1000000000u;
	it.it_value.tv_nsec = first % 1000000000u;
	timerfd_settime(cm->timerfd, TFD_TIMER_ABSTIME, &it, NULL);
}

void
cm_deadline(struct plx_cm_sock *s, uint32_t ms)
{
	s->deadline_ns = ms != 0 ? plx_clock_ns() + ms * 1000000ull : 0;
	cm_timer_set(s->cm);
}

static void
sock_watch(struct plx_cm_sock *s)
{
	struct epoll_event ev = {.data.ptr = &s->fd, .events = EPOLLIN};

	if (s->connecting || s->out_pos < s->out_len)
		ev.events |= EPOLLOUT;
	if (s->cm != NULL && s->id == NULL)
		epoll_ctl(s->cm->epfd, EPOLL_CTL_MOD, s->fd.fd, &ev);
}

int
plx_cm_attach(struct plx_cm *cm, struct plx_cm_sock *s)
{
	int rc = cm_add(cm, &s->fd, EPOLLIN);

	if (rc != 0)
		return rc;
	s->cm = cm;
	cm->n++;
	TAILQ_INSERT_TAIL(&cm->socks, s, link);
	sock_watch(s);
	return 0;
}

void
plx_cm_detach(struct plx_cm_sock *s)
{
	struct plx_cm *cm = s->cm;

	if (cm == NULL)
		return;
	epoll_ctl(cm->epfd, EPOLL_CTL_DEL, s->fd.fd, NULL);
	TAILQ_REMOVE(&cm->socks, s, link);
	cm->n--;
	cm->n_half -= s->listener != NULL;
	cm->n_awaited -= s->awaited_ns != 0;
	s->listener = NULL;
	s->awaited_ns = 0;
	s->deadline_ns = 0;
	s->cm = NULL;
}

void
cm_sock_free(struct plx_cm_sock *s)
{
	plx_cm_detach(s);
	if (s->id != NULL)
		s->dev->close(s->id);
	else if (s->fd.fd >= 0)
		close(s->fd.fd);
	free(s);
}

void
cm_sock_fail(struct plx_cm_sock *s, int err)
{
	if (s->closing || s->listener != NULL)
		cm_sock_free(s); /* nobody knows it */
	else if (!s->connecting || s->falls == NULL || !s->falls(s))
		s->on_fail(s, err);
}

/* The devices take a message as a whole. */
static int
sock_hand_over(struct plx_cm_sock *s)
{
	s->out_pos = s->out_len;
	return s->dev->send(s->id, s->out, s->out_len);
}

int
cm_sock_flush(struct plx_cm_sock *s)
{
	if (s->id != NULL && s->out_pos < s->out_len)
		return sock_hand_over(s);
	while (s->out_pos < s->out_len) {
		ssize_t n = send(s->fd.fd, s->out + s->out_pos, s->out_len - s->out_pos,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		s->out_pos += n;
	}
	return 0;
}

int
plx_cm_send(struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	struct cm_head head = {CM_MAGIC, CM_VERSION, len};
	int rc = 0;

	PLX_ASSERT(len <= PLX_CM_MSG_MAX);
	if (s->out_pos < s->out_len)
		return -EBUSY;
	memcpy(s->out, &head, sizeof(head));
	memcpy(s->out + sizeof(head), msg, len);
	s->out_pos = 0;
	s->out_len = sizeof(head) + len;
	if (s->cm != NULL)
		PLX_STAT_INC(s->cm->stat.msgs_out);
	if (!s->connecting)
		rc = cm_sock_flush(s);
	sock_watch(s);
	return rc;
}

/* A whole message has arrived. */
static void
sock_msg(struct plx_cm_sock *s, uint32_t len)
{
	struct plx_cm_listener *l = s->listener;

	PLX_STAT_INC(s->cm->stat.msgs_in);
	s->in_len = 0;
	if (l == NULL) {
		s->on_msg(s, s->in + PLX_CM_HEAD, len);
		return;
	}
	s->listener = NULL;
	s->cm->n_half--;
	cm_deadline(s, 0);
	l->on_first(l, s, s->in + PLX_CM_HEAD, len);
}

static void
sock_bad(struct plx_cm_sock *s)
{
	PLX_STAT_INC(s->cm->stat.drop_bad_msg);
	cm_sock_fail(s, -EBADMSG);
}

void
cm_sock_take(struct plx_cm_sock *s, bool all)
{
	struct cm_head head;
	bool whole;

	if (s->in_len < PLX_CM_HEAD) {
		if (all)
			sock_bad(s);
		return;
	}
	memcpy(&head, s->in, sizeof(head));
	whole = s->in_len == PLX_CM_HEAD + (uint32_t)head.len;
	if (head.magic != CM_MAGIC || head.version != CM_VERSION || head.len == 0 ||
		head.len > PLX_CM_MSG_MAX || (all && !whole))
		sock_bad(s);
	else if (whole)
		sock_msg(s, head.len);
}

/* Never read more than one message, so the next one stays in the kernel. */
static void
sock_in(struct plx_cm_sock *s)
{
	struct cm_head head;
	uint32_t want = PLX_CM_HEAD;
	ssize_t n;

	if (s->in_len >= PLX_CM_HEAD) {
		memcpy(&head, s->in, sizeof(head));
		want += head.len;
	}
	n = recv(s->fd.fd, s->in + s->in_len, want - s->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		cm_sock_fail(s, n == 0 ? -ECONNRESET : -errno);
		return;
	}
	s->in_len += n;
	cm_sock_take(s, false);
}

static int
sock_connected(struct plx_cm_sock *s)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(s->fd.fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
		return -errno;
	if (err != 0)
		return -err;
	s->connecting = false;
	cm_deadline(s, 0);
	return 0;
}

void
cm_sock_event(struct plx_cm_fd *f, uint32_t events)
{
	struct plx_cm_sock *s = (struct plx_cm_sock *)f;
	int rc = 0;

	if (s->pending_err != 0) {
		cm_sock_fail(s, s->pending_err);
		return;
	}
	if (s->connecting)
		rc = sock_connected(s);
	if (rc == 0 && (events & EPOLLOUT)) {
		rc = cm_sock_flush(s);
		sock_watch(s);
	}
	if (rc != 0)
		cm_sock_fail(s, rc);
	else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		sock_in(s);
}

void
plx_cm_await(struct plx_cm_sock *s, uint32_t ms)
{
	PLX_ASSERT(s->cm != NULL && s->awaited_ns == 0);
	s->awaited_ns = plx_clock_ns();
	s->cm->n_awaited++;
	cm_deadline(s, ms);
}

void
plx_cm_sock_addrs(const struct plx_cm_sock *s, struct sockaddr_storage *local,
	struct sockaddr_storage *remote)
{
	socklen_t len = sizeof(*local);

	if (s->id != NULL) {
		s->dev->addrs(s->id, local, remote);
		return;
	}
	if (getsockname(s->fd.fd, (struct sockaddr *)local, &len) != 0)
		local->ss_family = AF_UNSPEC;
	len = sizeof(*remote);
	if (getpeername(s->fd.fd, (struct sockaddr *)remote, &len) != 0)
		remote->ss_family = AF_UNSPEC;
}

int
cm_addr_check(const struct sockaddr *addr, socklen_t len)
{
	if (addr == NULL || len < sizeof(sa_family_t))
		return -EINVAL;
	if (addr->sa_family == AF_INET)
		return len >= sizeof(struct sockaddr_in) ? 0 : -EINVAL;
	if (addr->sa_family == AF_INET6)
		return len >= sizeof(struct sockaddr_in6) ? 0 : -EINVAL;
	return -EINVAL;
}

socklen_t
cm_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

int
cm_sock_tcp(struct plx_cm_sock *s)
{
	const struct sockaddr *to = (const struct sockaddr *)&s->to;
	const struct sockaddr *local = (const struct sockaddr *)&s->local;
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;
	const int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* a server's host may vanish */
	if (local->sa_family != AF_UNSPEC && bind(fd, local, cm_addr_len(local)) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	if (connect(fd, to, cm_addr_len(to)) != 0 && errno != EINPROGRESS)
		s->pending_err = -errno;
	s->fd.fd = fd;
	s->fd.on_event = cm_sock_event;
	s->connecting = true;
	return 0;
}

int
cm_sock_connects(struct plx_cm *cm, struct plx_cm_sock *s)
{
	uint32_t ms = s->id != NULL && cm->transport == PLX_CM_AUTO ? PLX_CM_DEV_TIMEOUT_MS
								   : PLX_CM_CONNECT_TIMEOUT_MS;
	int rc = plx_cm_attach(cm, s);

	if (rc == 0)
		cm_deadline(s, s->pending_err != 0 ? 1 : ms);
	return rc;
}
