/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * name.c - publishing bytes under a name, on this machine
 *
 * Design notes
 * - A publisher binds an abstract unix socket whose name is a hash of the name, and the bytes as
 *   text; nobody ever connects to it. A reader gets the kernel's list of sockets. So there is no
 *   registry, and the published bytes disappear with the process, however it ends.
 * - Names belong to a user: the hash includes the uid. As anybody may bind any such name, a
 *   socket counts only if the kernel says that this user made it.
 * - A socket's name has room for 98 characters besides the hash, and the bytes are written in 85
 *   characters, 4 bytes as 5. The bytes beyond NAME_PART are in the name of a second socket, whose hash
 *   includes the first NAME_PART. It is bound before the first socket and lives in its receive queue: it
 *   ends with it, and the caller has one descriptor.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "plx_cm.h"
#include "plx_wire.h"

#define HASH_LEN      8 /* characters of 6 bytes */
#define BASE	      85u
#define NAME_PART     77 /* bytes of one socket's name; data of this length or more has a second socket */
#define TEXT_LEN(len) ((len) / 4 * 5 + ((len) % 4 != 0 ? (len) % 4 + 1 : 0))

_Static_assert(1 + HASH_LEN + TEXT_LEN(NAME_PART) < sizeof(((struct sockaddr_un *)0)->sun_path),
	"a socket's name holds it");
_Static_assert(PLX_NAME_DATA_MAX == 2 * NAME_PART, "two parts");

/* None that ends a line, or that the system prints for a zero byte. */
static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}_%$#";

_Static_assert(sizeof(digits) == BASE + 1, "as many as the base");

/* Four bytes are five digits; at the end n are n + 1, padded with zeroes. */
static void
write_text(const uint8_t *p, size_t len, char *to)
{
	for (size_t i = 0; i < len; i += 4) {
		size_t n = len - i < 4 ? len - i : 4;
		uint32_t word = 0;
		char group[5];

		for (size_t k = 0; k < 4; k++)
			word = word << 8 | (k < n ? p[i + k] : 0);
		for (int k = 4; k >= 0; k--, word /= BASE)
			group[k] = digits[word % BASE];
		memcpy(to, group, n + 1);
		to += n + 1;
	}
	*to = '\0';
}

/* @return bytes, or -EINVAL: anybody may bind a socket. An incomplete group is padded with
 *   the last digit. */
static int
read_text(const char *s, size_t n, uint8_t to[NAME_PART])
{
	size_t len = 0;

	if (n > TEXT_LEN(NAME_PART) || n % 5 == 1)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 5) {
		size_t n_digits = n - i < 5 ? n - i : 5;
		uint64_t word = 0;

		for (size_t k = 0; k < 5; k++) {
			const char *d = k < n_digits ? strchr(digits, s[i + k]) : &digits[BASE - 1];

			if (d == NULL || *d == '\0')
				return -EINVAL;
			word = word * BASE + (d - digits);
		}
		if (word > UINT32_MAX)
			return -EINVAL;
		for (size_t k = 0; k + 1 < n_digits; k++)
			to[len++] = word >> (24 - 8 * k);
	}
	return len;
}

/* FNV-1a, continues from h. */
static uint64_t
hash_on(uint64_t h, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
	return h;
}

uint64_t
plx_name_hash(const char *name)
{
	return hash_on(0xcbf29ce484222325u, name, strlen(name));
}

/* The hash of a name of this user; of the second part, continued by the first. */
static uint64_t
hash_of(const char *name, const void *first, size_t len)
{
	uint32_t uid = geteuid();
	uint64_t h = hash_on(plx_name_hash(name), &uid, sizeof(uid));

	return hash_on(h, first, len);
}

/* A socket with this name. @return it, or -errno */
static int
bind_part(uint64_t hash, const void *data, size_t len)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t a_len;
	int fd, rc;

	plx_wire_text(&hash, HASH_LEN * 3 / 4, a.sun_path + 1);
	write_text(data, len, a.sun_path + 1 + HASH_LEN);
	a_len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, a_len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* One socket keeps another in its receive queue. */
static int
keep_in(int fd, int other)
{
	alignas(struct cmsghdr) char buf[CMSG_SPACE(sizeof(other))] = {0};
	struct sockaddr_un a;
	struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof(a), .msg_control = buf, .msg_controllen = sizeof(buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (getsockname(fd, (struct sockaddr *)&a, &m.msg_namelen) != 0)
		return -errno;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(other));
	memcpy(CMSG_DATA(c), &other, sizeof(other));
	return sendmsg(fd, &m, MSG_DONTWAIT) == 0 ? 0 : -errno;
}

int
plx_name_publish(const char *name, const void *data, size_t len, int *out)
{
	size_t first = len < NAME_PART ? len : NAME_PART;
	int fd, rest = -1, rc = 0;

	if (len > PLX_NAME_DATA_MAX)
		return -EMSGSIZE;
	if (first == NAME_PART) {
		rest = bind_part(hash_of(name, data, first), (const uint8_t *)data + first, len - first);
		if (rest < 0)
			return rest;
	}
	fd = bind_part(hash_of(name, NULL, 0), data, first);
	if (fd < 0)
		rc = fd;
	else if (rest >= 0)
		rc = keep_in(fd, rest);
	if (rest >= 0)
		close(rest);
	if (rc == 0)
		*out = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* A search, and the caller's function for its results. */
struct search {
	char head[HASH_LEN + 1];
	uint32_t uid;
	const char *name;
	void (*fn)(const void *data, size_t len, void *arg);
	void *arg;
	int n;	   /* found, or -errno */
};

/* Bytes in two parts. */
struct whole {
	uint8_t data[PLX_NAME_DATA_MAX];
	size_t len;
};

static int search_all(struct search *s, uint64_t hash);

static void
take_rest(const void *data, size_t len, void *arg)
{
	struct whole *w = arg;

	memcpy(w->data + NAME_PART, data, len);
	w->len = NAME_PART + len;
}

/* Find the second part: the caller gets both, unless the sockets have gone meanwhile. */
static void
look_for_rest(struct search *s, const uint8_t *data)
{
	struct whole w = {.len = 0};
	struct search rest = {.uid = s->uid, .fn = take_rest, .arg = &w};

	memcpy(w.data, data, NAME_PART);
	if (search_all(&rest, hash_of(s->name, data, NAME_PART)) <= 0)
		return;
	s->n++;
	s->fn(w.data, w.len, s->arg);
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
	int left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m)), len;
	const struct rtattr *uid = NULL, *name = NULL;
	uint8_t data[NAME_PART];

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == UNIX_DIAG_NAME)
			name = a;
		else if (a->rta_type == UNIX_DIAG_UID)
			uid = a;
	}
	if (name == NULL || RTA_PAYLOAD(name) < 1 + HASH_LEN || *(const char *)RTA_DATA(name) != '\0' ||
		memcmp((const char *)RTA_DATA(name) + 1, s->head, HASH_LEN) != 0)
		return;
	if (uid == NULL || RTA_PAYLOAD(uid) != sizeof(s->uid)) {
		s->n = -EOPNOTSUPP;
		return;
	}
	if (memcmp(RTA_DATA(uid), &s->uid, sizeof(s->uid)) != 0)
		return;
	len = read_text((const char *)RTA_DATA(name) + 1 + HASH_LEN, RTA_PAYLOAD(name) - 1 - HASH_LEN, data);
	if (len == NAME_PART && s->name != NULL) {
		look_for_rest(s, data);
	} else if (len >= 0) {
		s->n++;
		s->fn(data, len, s->arg);
	}
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

/* @return how many were found, or -errno */
static int
search_all(struct search *s, uint64_t hash)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), rc;

	if (fd < 0)
		return -errno;
	plx_wire_text(&hash, HASH_LEN * 3 / 4, s->head);
	rc = ask_for_all(fd);
	if (rc == 0)
		do {
			rc = look_at_some(s, fd);
		} while (rc > 0);
	close(fd);
	return rc != 0 ? rc : s->n;
}

int
plx_name_each(const char *name, void (*fn)(const void *data, size_t len, void *arg), void *arg)
{
	struct search s = {.uid = geteuid(), .name = name, .fn = fn, .arg = arg};

	return search_all(&s, hash_of(name, NULL, 0));
}
