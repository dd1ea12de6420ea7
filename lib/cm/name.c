/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * name.c - publishing bytes under a name, on this machine
 *
 * Design notes
 * - A publisher binds an abstract unix socket, whose name is a hash of the name, and the process and
 *   the number by which the bytes can be asked for (plx_meet.h). A reader gets the kernel's list of
 *   sockets, and asks. So there is no registry, and what is published disappears with its process,
 *   however it ends.
 * - All users can read that list, and the bytes may hold a secret: only processes of this user get them.
 * - Names belong to a user: the hash includes the uid. As anybody may bind any such name, a
 *   socket counts only if the kernel says that this user made it.
 * - The bytes are a datagram in the socket's own receive queue, at which readers look. Its other end is
 *   closed: the kernel lets nobody else send to it.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "plx_clock.h"
#include "plx_cm.h"
#include "plx_hash.h"
#include "plx_meet.h"
#include "plx_wire.h"

#define HASH_BYTES  6
#define HASH_LEN    PLX_WIRE_TEXT_LEN(HASH_BYTES)
#define WHERE_LEN   PLX_WIRE_TEXT_LEN(sizeof(struct where))
#define PATIENCE_MS 2000 /* with a process that is asked, which may be stopped */

/** Where bytes can be asked for. */
struct where {
	uint64_t host, proc; /* as in struct plx_proc */
	uint64_t id;	     /* of the offer */
};

uint64_t
plx_name_hash(const char *name)
{
	return plx_hash_on(PLX_HASH_BEGIN, name, strlen(name));
}

/* The hash of a name of this user. */
static uint64_t
hash_of(const char *name)
{
	uint32_t uid = geteuid();

	return plx_hash_on(plx_name_hash(name), &uid, sizeof(uid));
}

static int
bind_at(int fd, uint64_t hash, const struct where *w)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *text = a.sun_path + 1;

	plx_wire_text(&hash, HASH_BYTES, text);
	plx_wire_text(w, sizeof(*w), text + HASH_LEN);
	return bind(fd, (struct sockaddr *)&a, offsetof(struct sockaddr_un, sun_path) + 1 + HASH_LEN + WHERE_LEN) == 0
		? 0 : -errno;
}

/* @return a socket with these bytes in its queue, or -errno */
static int
socket_with(const void *data, size_t len)
{
	int fd[2], rc;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fd) != 0)
		return -errno;
	rc = send(fd[1], data, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? fd[0] : -errno;
	close(fd[1]);
	if (rc < 0)
		close(fd[0]);
	return rc;
}

static int
where_new(struct where *w)
{
	struct plx_proc self;
	int rc = plx_proc_self(&self);

	if (rc != 0)
		return rc;
	*w = (struct where){.host = self.host, .proc = self.id};
	return getrandom(&w->id, sizeof(w->id), 0) == sizeof(w->id) ? 0 : -EIO;
}

int
plx_name_publish(const char *name, const void *data, size_t len, struct plx_name *out)
{
	int offer[PLX_MEET_FDS] = {-1, -1, -1}, fd, rc;
	struct where w;

	if (len > PLX_NAME_DATA_MAX)
		return -EMSGSIZE;
	rc = where_new(&w);
	if (rc != 0)
		return rc;
	fd = socket_with(data, len);
	if (fd < 0)
		return fd;
	offer[PLX_MEET_BELL] = fd;
	rc = plx_meet_offer(w.id, offer, true);
	if (rc == 0)
		rc = bind_at(fd, hash_of(name), &w);
	*out = (struct plx_name){.fd = fd, .id = w.id};
	if (rc != 0)
		plx_name_end(out);
	return rc;
}

void
plx_name_lose(struct plx_name *n)
{
	int fd = n->fd;

	n->fd = -1; /* first: a child that is forked now closes its own */
	if (fd >= 0)
		close(fd);
}

void
plx_name_end(struct plx_name *n)
{
	if (n->fd >= 0)
		plx_meet_withdraw(n->id);
	plx_name_lose(n);
}

/* A search, and the caller's function for its results. */
struct search {
	char head[HASH_LEN + 1];
	uint32_t uid;
	void (*fn)(const void *data, size_t len, void *arg);
	void *arg;
	int n;	   /* found, or -errno */
};

static int
answer_of(const struct where *w, struct plx_answer *out)
{
	struct plx_proc whom = {.host = w->host, .id = w->proc};
	uint64_t until = plx_clock_ms() + PATIENCE_MS;
	struct plx_ask a;
	int rc;

	for (;;) {
		rc = plx_ask_open(&a, &whom, w->id);
		if (rc == 0)
			rc = plx_ask_wait(&a, out, PATIENCE_MS);
		plx_ask_close(&a);
		if (rc != -EBUSY || plx_clock_ms() >= until)
			return rc;
		usleep(1000);
	}
}

/* @return their length, or -errno */
static ssize_t
bytes_at(const struct where *w, uint8_t data[PLX_NAME_DATA_MAX])
{
	struct plx_answer got;
	ssize_t rc = answer_of(w, &got);

	if (rc != 0)
		return rc;
	rc = recv(got.fd[PLX_MEET_BELL], data, PLX_NAME_DATA_MAX, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	if (rc < 0 || rc > PLX_NAME_DATA_MAX || !got.own_user)
		rc = -EPROTO;
	plx_answer_close(&got);
	return rc;
}

/* Somebody has published under this name. */
static void
take_from(struct search *s, const struct where *w)
{
	uint8_t data[PLX_NAME_DATA_MAX];
	ssize_t len = bytes_at(w, data);

	if (len == -ECONNRESET || len == -EHOSTUNREACH || len == -ESRCH || len == -EPROTO || len == -EPERM)
		return; /* it has gone meanwhile, or is no publisher */
	s->n++;
	s->fn(len < 0 ? NULL : data, len < 0 ? 0 : (size_t)len, s->arg);
}

static int
ask_for_all(int fd)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.req = {.sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX,
			.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID},
	};

	return send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask) ? 0 : -errno;
}

/* One socket. A kernel that does not report the owner ends the search. */
static void
look_at(struct search *s, const struct nlmsghdr *h)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	const struct rtattr *a = (const struct rtattr *)(m + 1);
	int left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	const struct rtattr *uid = NULL, *name = NULL;
	struct where w;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME)
			name = a;
		else if (a->rta_type == UNIX_DIAG_UID)
			uid = a;
	}
	if (name == NULL || RTA_PAYLOAD(name) != 1 + HASH_LEN + WHERE_LEN || *(const char *)RTA_DATA(name) != '\0' ||
		memcmp((const char *)RTA_DATA(name) + 1, s->head, HASH_LEN) != 0)
		return;
	if (uid == NULL || RTA_PAYLOAD(uid) != sizeof(s->uid)) {
		s->n = -EOPNOTSUPP;
		return;
	}
	if (memcmp(RTA_DATA(uid), &s->uid, sizeof(s->uid)) != 0)
		return;
	if (plx_wire_untext((const char *)RTA_DATA(name) + 1 + HASH_LEN, WHERE_LEN, &w, sizeof(w)) == sizeof(w))
		take_from(s, &w);
}

/* @return 1 when there may be more, 0 at the end, or -errno */
static int
look_at_some(struct search *s, int fd)
{
	alignas(struct nlmsghdr) char buf[16384];
	const struct nlmsghdr *h = (const struct nlmsghdr *)buf;
	ssize_t got;

	do {
		got = recv(fd, buf, sizeof(buf), MSG_TRUNC);
	} while (got < 0 && errno == EINTR);
	if (got <= 0 || got > (ssize_t)sizeof(buf))
		return got < 0 ? -errno : -EIO;
	for (size_t left = (size_t)got; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
		if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			look_at(s, h);
		if (s->n < 0)
			return s->n;
	}
	return 1;
}

int
plx_name_each(const char *name, void (*fn)(const void *data, size_t len, void *arg), void *arg)
{
	struct search s = {.uid = geteuid(), .fn = fn, .arg = arg};
	uint64_t hash = hash_of(name);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), rc;

	if (fd < 0)
		return -errno;
	plx_wire_text(&hash, HASH_BYTES, s.head);
	rc = ask_for_all(fd);
	if (rc == 0)
		do {
			rc = look_at_some(&s, fd);
		} while (rc > 0);
	close(fd);
	return rc != 0 ? rc : s.n;
}
