/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan.c - framed messages over the stream socket between the two sides, each with a deadline
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"

#define CHAN_PROBE_S 3
#define CHAN_DEAD_S  15 /* a host that has not answered for so long is gone */

static int
chan_resolve(const char *host, const char *port, bool passive, struct addrinfo **out)
{
	struct addrinfo hints = {0};
	int rc;

	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = passive ? AI_PASSIVE : 0;
	rc = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, out);
	if (rc == 0)
		return 0;
	fprintf(stderr, "commperf: cannot resolve %s:%s: %s\n", host, port, gai_strerror(rc));
	return -EINVAL;
}

/* Wait for events, through signals; timeout in s, 0: no limit. 0 or -errno. */
static int
chan_poll(int fd, short events, double timeout)
{
	double end = place_now() + timeout;
	struct pollfd pfd = {.fd = fd, .events = events};
	int rc, ms = -1;

	do {
		if (timeout > 0)
			ms = place_now() < end ? (int)((end - place_now()) * 1e3) + 1 : 0;
		rc = poll(&pfd, 1, ms);
	} while (rc < 0 && errno == EINTR);
	return rc > 0 ? 0 : rc == 0 ? -ETIMEDOUT : -errno;
}

/* Connect once; an interrupted connect continues. 0 or -errno. */
static int
chan_dial(int fd, const struct addrinfo *ai, double timeout)
{
	socklen_t len = sizeof(int);
	int rc;

	if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return 0;
	if (errno != EINTR)
		return -errno;
	rc = chan_poll(fd, POLLOUT, timeout);
	if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) != 0)
		return -errno;
	return rc > 0 ? -rc : rc;
}

/* A socket that listens on host:port, or -errno. */
int
chan_listener(const char *host, const char *port, int backlog)
{
	struct addrinfo *ai;
	int one = 1, lfd, rc;

	if (chan_resolve(host, port, true, &ai) != 0)
		return -EINVAL;
	lfd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lfd < 0) {
		rc = -errno;
		goto free_ai;
	}
	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(lfd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(lfd, backlog) != 0) {
		rc = -errno;
		close(lfd);
		goto free_ai;
	}
	rc = lfd;
free_ai:
	freeaddrinfo(ai);
	return rc;
}

/*
 * A host that is gone says nothing. A side that only waits for data does not hear of it from its library, which
 * has nothing under way: this connection does.
 */
static void
chan_settle(int fd)
{
	static const struct {
		int level, name, value;
	} opts[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, CHAN_PROBE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, CHAN_PROBE_S},
		{IPPROTO_TCP, TCP_KEEPCNT, CHAN_DEAD_S / CHAN_PROBE_S},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, CHAN_DEAD_S * 1000},
	};

	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++)
		setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value, sizeof(int));
}

/* The socket of the next client, or -errno; timeout in s, 0: no limit. */
int
chan_accept(int lfd, double timeout)
{
	int fd, rc = chan_poll(lfd, POLLIN, timeout);

	if (rc != 0)
		return rc;
	fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return -errno;
	chan_settle(fd);
	return fd;
}

/* Wait for one client on host:port, and say when it may connect. Returns its socket or -errno. */
int
chan_listen(const char *host, const char *port, double timeout)
{
	int rc, lfd = chan_listener(host, port, 1);

	if (lfd < 0)
		return lfd;
	fprintf(stderr, "commperf: waiting on %s:%s\n", host, port);
	rc = chan_accept(lfd, timeout);
	close(lfd);
	return rc;
}

/* Connect to the first address that answers. Its socket or -errno. */
static int
chan_dial_any(const struct addrinfo *ai, double timeout)
{
	int fd, rc = -ECONNREFUSED;

	for (; ai != NULL; ai = ai->ai_next) {
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			rc = -errno;
			continue;
		}
		rc = chan_dial(fd, ai, timeout);
		if (rc == 0) {
			chan_settle(fd);
			return fd;
		}
		close(fd);
	}
	return rc;
}

/*
 * Connect to host:port, waiting up to timeout (s) for an answer. A server that was started
 * a moment ago may not listen yet, so a refused connection is retried for refused_s.
 */
int
chan_connect(const char *host, const char *port, double timeout, double refused_s)
{
	double end = place_now() + refused_s;
	struct addrinfo *ai;
	int rc;

	if (chan_resolve(host, port, false, &ai) != 0)
		return -EINVAL;
	while ((rc = chan_dial_any(ai, timeout)) == -ECONNREFUSED && place_now() < end)
		usleep(50000);
	freeaddrinfo(ai);
	return rc;
}

static int
chan_write(int fd, const void *data, size_t len, double end)
{
	const char *p = data;
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (place_now() > end)
			return -ETIMEDOUT;
		poll(&pfd, 1, 10);
	}
	return 0;
}

/* Send one message; 0 or -errno. */
int
chan_send(int fd, const void *data, size_t len, double timeout)
{
	double end = place_now() + timeout;
	uint32_t head = (uint32_t)len;
	int rc = chan_write(fd, &head, sizeof(head), end);

	return rc != 0 ? rc : chan_write(fd, data, len, end);
}

/* If this side's library is open, run turns while waiting: the other side may need them. */
static int
chan_read(struct perf_side *s, int fd, void *data, size_t len, double end)
{
	char *p = data;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	while (len > 0) {
		ssize_t n = recv(fd, p, len, MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n == 0)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (place_now() > end)
			return -ETIMEDOUT;
		if (s != NULL && s->be_priv != NULL) {
			for (int i = 0; i < 64; i++)
				s->be->progress(s);
		} else {
			poll(&pfd, 1, 10);
		}
	}
	return 0;
}

/* Receive one message into a malloc'ed block with a final NUL; 0 or -errno. s may be NULL. */
int
chan_recv(struct perf_side *s, int fd, void **data, size_t *len, double timeout)
{
	double end = place_now() + timeout;
	uint32_t head;
	char *buf;
	int rc;

	rc = chan_read(s, fd, &head, sizeof(head), end);
	if (rc != 0)
		return rc;
	if (head > PERF_MAX_MSG)
		return -EPROTO;
	buf = malloc((size_t)head + 1);
	if (buf == NULL)
		return -ENOMEM;
	rc = chan_read(s, fd, buf, head, end);
	if (rc != 0) {
		free(buf);
		return rc;
	}
	buf[head] = '\0';
	*data = buf;
	*len = head;
	return 0;
}
