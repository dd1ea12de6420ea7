/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_server.c - the thread, its clients, and their buffers
 *
 * Design notes
 * - A request ends where its brackets close, so an incomplete request and a wrong one are
 *   distinguished without parsing twice. While an answer is not fully written nothing more is
 *   read from that client, which bounds both its buffers and delays only that client. Accepting
 *   follows the other events of a wake-up, so that an event never belongs to a reused slot.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_lcore.h>

#include "plx_clock.h"

#include "rpc_int.h"

#define RPC_BUF_MIN        4096u /* kept between requests; larger buffers are freed */
#define RPC_ACCEPT_WAIT_MS 100   /* after accept ran out of descriptors or memory */

/* The data of an epoll event; smaller values are indices of clients. */
#define RPC_ON_LISTEN PLX_RPC_MAX_CLIENTS
#define RPC_ON_WAKE   (PLX_RPC_MAX_CLIENTS + 1)

struct rpc_buf {
	char *data;
	size_t len, cap;
};

/* The state of the search for the end of the request at the front of the input. */
struct rpc_frame {
	size_t at;
	unsigned int depth;
	bool string, escape;
};

/* Owner: the server's thread. */
struct rpc_client {
	int fd; /* -1: the slot is free */
	struct rpc_buf in, out;
	size_t sent; /* of out */
	struct rpc_frame frame;
	bool eof;          /* will send no more */
	bool closing;      /* gets the contents of out, then is dropped */
	uint32_t events;   /* that epoll watches */
	uint64_t moved_ms; /* when the last byte was received or sent */
};

/* Owner: its own thread, unless noted. */
struct plx_rpc_server {
	struct rpc_socket socket;
	int epoll_fd;
	int wake_fd;              /* written by any thread */
	_Atomic uint32_t idle_ms; /* writer: any; relaxed, wake_fd makes it visible */
	atomic_bool stop;         /* set by plx_rpc_stop */
	bool listening;           /* whether epoll watches listen_fd */
	uint64_t listen_ms;       /* when to watch it again */
	pthread_t thread;
	pid_t pid;
	struct rpc_client clients[PLX_RPC_MAX_CLIENTS];
};

/* -- buffers -- */

static int
rpc_buf_reserve(struct rpc_buf *b, size_t len, size_t max)
{
	size_t cap = b->cap > 0 ? b->cap : RPC_BUF_MIN;
	char *data;

	if (len > max)
		return -EMSGSIZE;
	while (cap < len)
		cap *= 2;
	if (cap == b->cap)
		return 0;
	data = realloc(b->data, cap);
	if (data == NULL)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

static void
rpc_buf_drop(struct rpc_buf *b, size_t n)
{
	b->len -= n;
	if (b->len > 0) {
		memmove(b->data, b->data + n, b->len);
	} else if (b->cap > RPC_BUF_MIN) {
		free(b->data);
		*b = (struct rpc_buf){0};
	}
}

/* -- framing -- */

static bool
rpc_is_space(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

/*
 * @return length of the JSON value (or of an invalid word) at the front of in, 0 if its end
 *   has not come yet, -E2BIG if it is nested too deep.
 */
static ssize_t
rpc_frame_find(struct rpc_frame *f, const char *in, size_t len)
{
	for (; f->at < len; f->at++) {
		char ch = in[f->at];

		if (f->at == 0 && (ch == '\0' || strchr("{[\"-0123456789tfn", ch) == NULL))
			return (ssize_t)len; /* no JSON begins with it */
		if (f->string) {
			f->string = f->escape || ch != '"';
			f->escape = !f->escape && ch == '\\';
			if (!f->string && f->depth == 0)
				return (ssize_t)f->at + 1;
		} else if (f->depth == 0 && f->at > 0 &&
			   (rpc_is_space(ch) || strchr("{}[]\"", ch) != NULL)) {
			return (ssize_t)f->at; /* a word ends where another token begins */
		} else if (ch == '"') {
			f->string = true;
		} else if (ch == '{' || ch == '[') {
			if (++f->depth > PLX_RPC_MAX_DEPTH)
				return -E2BIG;
		} else if (ch == '}' || ch == ']') {
			if (f->depth == 0 || --f->depth == 0)
				return (ssize_t)f->at + 1;
		}
	}
	return 0;
}

/* -- one client -- */

static int
rpc_client_append(const char *data, size_t n, void *arg)
{
	struct rpc_client *c = arg;

	if (rpc_buf_reserve(&c->out, c->out.len + n, PLX_RPC_MAX_RESPONSE) < 0)
		return -1;
	memcpy(c->out.data + c->out.len, data, n);
	c->out.len += n;
	return 0;
}

/* Consumes answer. If it is too long an error with the same id replaces it. */
static void
rpc_client_answer(struct rpc_client *c, json_t *answer)
{
	size_t before = c->out.len;
	json_t *error = NULL;

	if (answer == NULL)
		answer = rpc_error(NULL, RPC_INTERNAL, "out of memory");
	if (answer != NULL && json_dump_callback(answer, rpc_client_append, c, JSON_COMPACT) < 0) {
		c->out.len = before;
		error = rpc_error(
			json_object_get(answer, "id"), RPC_INTERNAL, "the answer is too long");
		if (json_dump_callback(error, rpc_client_append, c, JSON_COMPACT) < 0)
			c->closing = true;
	}
	rpc_client_append("\n", 1, c);
	json_decref(error);
	json_decref(answer);
}

static void
rpc_client_fail(struct rpc_client *c, enum rpc_code code, const char *message)
{
	rpc_client_answer(c, rpc_error(NULL, code, message));
	c->closing = true;
}

/* @return whether there was a request to run, or a reason to stop. */
static bool
rpc_client_run_one(struct rpc_client *c)
{
	json_t *answer = NULL;
	size_t skip = 0;
	ssize_t n;

	if (c->frame.at == 0) {
		while (skip < c->in.len && rpc_is_space(c->in.data[skip]))
			skip++;
		rpc_buf_drop(&c->in, skip);
	}
	n = rpc_frame_find(&c->frame, c->in.data, c->in.len);
	if (n == 0 && c->eof)
		n = (ssize_t)c->in.len; /* so that the parser reports what is missing */
	if (n < 0)
		rpc_client_fail(
			c, RPC_PARSE_ERROR, "nested deeper than " RTE_STR(PLX_RPC_MAX_DEPTH));
	else if (n == 0 && c->in.len >= PLX_RPC_MAX_REQUEST)
		rpc_client_fail(c, RPC_INVALID_REQUEST, "the request is longer than 256 KiB");
	if (n <= 0)
		return c->closing;
	c->closing = rpc_call_text(c->in.data, (size_t)n, &answer) < 0;
	if (answer != NULL)
		rpc_client_answer(c, answer);
	rpc_buf_drop(&c->in, (size_t)n);
	c->frame = (struct rpc_frame){0};
	return true;
}

static void
rpc_client_drop(struct plx_rpc_server *s, struct rpc_client *c)
{
	close(c->fd);
	free(c->in.data);
	free(c->out.data);
	*c = (struct rpc_client){.fd = -1};
	s->listen_ms = 0; /* there is room again */
	PLX_LOG(DEBUG, rpc, "client %td gone", c - s->clients);
}

/* @return 0, -EAGAIN the client reads no more now, or -errno it has closed. */
static int
rpc_client_write(struct rpc_client *c, uint64_t now)
{
	ssize_t n;

	while (c->sent < c->out.len) {
		n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent,
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		c->sent += (size_t)n;
		c->moved_ms = now;
	}
	c->sent = 0;
	rpc_buf_drop(&c->out, c->out.len);
	return 0;
}

static int
rpc_client_read(struct rpc_client *c, uint64_t now)
{
	ssize_t n;
	int rc;

	/* The buffer has an incomplete request, or nothing: there is room for a byte or more. */
	rc = rpc_buf_reserve(
		&c->in, RTE_MIN(c->in.len + RPC_BUF_MIN, PLX_RPC_MAX_REQUEST), PLX_RPC_MAX_REQUEST);
	if (rc < 0)
		return rc;
	n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR || errno == EWOULDBLOCK ? 0 : -errno;
	c->eof = n == 0;
	c->in.len += (size_t)n;
	c->moved_ms = now;
	return 0;
}

static void
rpc_client_watch(struct plx_rpc_server *s, struct rpc_client *c)
{
	struct epoll_event ev = {.data.u32 = (uint32_t)(c - s->clients)};

	ev.events = c->out.len > 0 ? EPOLLOUT : EPOLLIN;
	if (ev.events == c->events)
		return;
	c->events = ev.events;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
}

/* Write and run until there is nothing to run, or the client does not read. */
static void
rpc_client_work(struct plx_rpc_server *s, struct rpc_client *c, uint64_t now)
{
	int rc;

	do {
		rc = rpc_client_write(c, now);
	} while (rc == 0 && !c->closing && rpc_client_run_one(c));
	if (rc == 0 && !c->closing && !c->eof)
		rpc_client_watch(s, c);
	else if (rc == -EAGAIN)
		rpc_client_watch(s, c);
	else
		rpc_client_drop(s, c);
}

static void
rpc_client_event(struct plx_rpc_server *s, struct rpc_client *c, uint32_t events, uint64_t now)
{
	int rc = 0;

	if (c->fd < 0)
		return;
	if (events & EPOLLIN)
		rc = rpc_client_read(c, now);
	else if (events & (EPOLLHUP | EPOLLERR))
		rc = -EPIPE;
	if (rc < 0)
		rpc_client_drop(s, c);
	else
		rpc_client_work(s, c, now);
}

/* -- time -- */

/* An incomplete request has come, or an incomplete answer was sent. */
static bool
rpc_client_is_halfway(const struct rpc_client *c)
{
	return c->in.len > 0 || c->out.len > 0;
}

static uint64_t
rpc_client_deadline(const struct plx_rpc_server *s, const struct rpc_client *c)
{
	return c->moved_ms + atomic_load_explicit(&s->idle_ms, memory_order_relaxed);
}

static void
rpc_client_expire(struct plx_rpc_server *s, struct rpc_client *c, uint64_t now)
{
	PLX_LOG(INFO, rpc, "client %td left %s unfinished", c - s->clients,
		c->out.len > 0 ? "an answer" : "a request");
	if (c->out.len == 0) {
		rpc_client_fail(c, RPC_INVALID_REQUEST, "the rest of the request did not come");
		rpc_client_write(c, now);
	}
	rpc_client_drop(s, c);
}

static void
rpc_server_listen(struct plx_rpc_server *s, bool on)
{
	struct epoll_event ev = {.events = on ? EPOLLIN : 0, .data.u32 = RPC_ON_LISTEN};

	if (s->listening != on)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->socket.fd, &ev);
	s->listening = on;
}

/* @return milliseconds until something is due, -1 if nothing is. */
static int
rpc_server_timers(struct plx_rpc_server *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct rpc_client *c;

	for (unsigned int i = 0; i < PLX_RPC_MAX_CLIENTS; i++) {
		c = &s->clients[i];
		if (c->fd >= 0 && rpc_client_is_halfway(c) && now >= rpc_client_deadline(s, c))
			rpc_client_expire(s, c, now);
		if (c->fd >= 0 && rpc_client_is_halfway(c))
			next = RTE_MIN(next, rpc_client_deadline(s, c));
	}
	if (!s->listening && now >= s->listen_ms)
		rpc_server_listen(s, true);
	if (!s->listening)
		next = RTE_MIN(next, s->listen_ms);
	return next == UINT64_MAX ? -1 : (int)RTE_MIN(next - now, 60000u);
}

/* -- new clients -- */

/* Only the same user or root may ask; others should not even reach the file. */
static int
rpc_check_peer(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid == geteuid() || cred.uid == 0)
		return 0;
	PLX_LOG_RATELIMIT(WARNING, rpc, "refused process %d of user %u", (int)cred.pid, cred.uid);
	return -EPERM;
}

static struct rpc_client *
rpc_server_quietest(struct plx_rpc_server *s)
{
	struct rpc_client *quietest = &s->clients[0];

	for (unsigned int i = 1; i < PLX_RPC_MAX_CLIENTS; i++)
		if (s->clients[i].moved_ms < quietest->moved_ms)
			quietest = &s->clients[i];
	return quietest;
}

/* A free slot, or that of the client that has been silent longest, if long enough. */
static struct rpc_client *
rpc_server_slot(struct plx_rpc_server *s, uint64_t now)
{
	struct rpc_client *c;

	for (unsigned int i = 0; i < PLX_RPC_MAX_CLIENTS; i++)
		if (s->clients[i].fd < 0)
			return &s->clients[i];
	c = rpc_server_quietest(s);
	if (now < rpc_client_deadline(s, c)) {
		s->listen_ms = rpc_client_deadline(s, c);
		return NULL;
	}
	PLX_LOG(INFO, rpc, "client %td was idle and is disconnected for a new one", c - s->clients);
	rpc_client_drop(s, c);
	return c;
}

static void
rpc_server_accept(struct plx_rpc_server *s, uint64_t now)
{
	struct rpc_client *c = rpc_server_slot(s, now);
	struct epoll_event ev = {.events = EPOLLIN};
	int fd;

	if (c == NULL) {
		rpc_server_listen(s, false);
		return;
	}
	fd = accept4(s->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED)
			return;
		PLX_LOG_RATELIMIT(WARNING, rpc, "accept failed %d", -errno);
		s->listen_ms = now + RPC_ACCEPT_WAIT_MS;
		rpc_server_listen(s, false);
		return;
	}
	ev.data.u32 = (uint32_t)(c - s->clients);
	if (rpc_check_peer(fd) < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		close(fd);
		return;
	}
	*c = (struct rpc_client){.fd = fd, .events = EPOLLIN, .moved_ms = now};
	PLX_LOG(DEBUG, rpc, "client %td connected", c - s->clients);
}

static void
rpc_server_events(struct plx_rpc_server *s, const struct epoll_event *ev, int n, uint64_t now)
{
	bool accept_one = false;
	uint64_t drain;

	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 < PLX_RPC_MAX_CLIENTS)
			rpc_client_event(s, &s->clients[ev[i].data.u32], ev[i].events, now);
		else if (ev[i].data.u32 == RPC_ON_LISTEN)
			accept_one = true;
		else if (read(s->wake_fd, &drain, sizeof(drain)) > 0)
			s->listen_ms = 0; /* computed with another idle time */
	}
	if (accept_one)
		rpc_server_accept(s, now);
}

static void *
rpc_server_main(void *arg)
{
	struct plx_rpc_server *s = arg;
	struct epoll_event ev[PLX_RPC_MAX_CLIENTS + 2];
	int n;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		n = epoll_wait(s->epoll_fd, ev, RTE_DIM(ev), rpc_server_timers(s, plx_clock_ms()));
		rpc_server_events(s, ev, n, plx_clock_ms());
	}
	return NULL;
}

/* -- start and stop -- */

static int
rpc_open_fds(struct plx_rpc_server *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = RPC_ON_WAKE};

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll_fd < 0 || s->wake_fd < 0 ||
		epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake_fd, &ev) < 0)
		return -errno;
	ev.data.u32 = RPC_ON_LISTEN;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->socket.fd, &ev) < 0)
		return -errno;
	s->listening = true;
	return 0;
}

static void
rpc_free(struct plx_rpc_server *s)
{
	const int fds[] = {s->socket.fd, s->wake_fd, s->epoll_fd};

	for (unsigned int i = 0; i < RTE_DIM(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(s);
}

/* The application's signals are not for this thread. */
static int
rpc_start_thread(struct plx_rpc_server *s)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = rte_ctrl_thread_create(&s->thread, "plx-rpc", NULL, rpc_server_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* By its expanded path, once there is one. */
static void
rpc_tell_failure(const struct plx_rpc_server *s, const char *path, int rc)
{
	const char *expanded = s->socket.addr.sun_path;

	PLX_LOG(ERR, rpc, "no control socket at %.128s: %s", expanded[0] != '\0' ? expanded : path,
		rc == -ENOENT ? "its folder does not exist" : strerror(-rc));
}

int
plx_rpc_start(const char *path, struct plx_rpc_server **out)
{
	struct plx_rpc_server *s;
	int rc;

	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->socket.fd = s->wake_fd = s->epoll_fd = -1;
	s->pid = getpid();
	atomic_init(&s->idle_ms, PLX_RPC_IDLE_MS);
	for (unsigned int i = 0; i < PLX_RPC_MAX_CLIENTS; i++)
		s->clients[i].fd = -1;
	rc = rpc_socket_open(&s->socket, path);
	if (rc < 0)
		goto free_server;
	rc = rpc_open_fds(s);
	if (rc < 0)
		goto free_server;
	rc = rpc_socket_listen(&s->socket);
	if (rc < 0)
		goto free_server;
	rc = rpc_start_thread(s);
	if (rc < 0)
		goto remove_socket;
	PLX_LOG(NOTICE, rpc, "listening on %s", s->socket.addr.sun_path);
	*out = s;
	return 0;

remove_socket:
	rpc_socket_unlink(&s->socket);
free_server:
	rpc_tell_failure(s, path, rc);
	rpc_free(s);
	return rc;
}

const char *
plx_rpc_path(const struct plx_rpc_server *s)
{
	return s->socket.addr.sun_path;
}

static void
rpc_wake(struct plx_rpc_server *s)
{
	const uint64_t one = 1;

	while (write(s->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void
plx_rpc_set_idle(struct plx_rpc_server *s, uint32_t idle_ms)
{
	atomic_store_explicit(&s->idle_ms, idle_ms, memory_order_relaxed);
	rpc_wake(s);
}

void
plx_rpc_stop(struct plx_rpc_server *s)
{
	if (s == NULL)
		return;
	if (s->pid != getpid()) { /* the copy of clients may be of any moment: leave it alone */
		rpc_free(s);
		return;
	}
	atomic_store_explicit(&s->stop, true, memory_order_relaxed);
	rpc_wake(s);
	pthread_join(s->thread, NULL);
	rpc_socket_unlink(&s->socket);
	for (unsigned int i = 0; i < PLX_RPC_MAX_CLIENTS; i++)
		if (s->clients[i].fd >= 0)
			rpc_client_drop(s, &s->clients[i]);
	rpc_free(s);
}
