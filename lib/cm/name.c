/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * name.c - bytes that are found by name, on this machine
 *
 * Design notes
 * Who publishes binds an abstract unix socket whose name is a hash of the name, and
 * the bytes as text; nobody ever connects to it. Who looks for the name reads the
 * list of sockets in /proc/net/unix. So there is no registry to keep, and what a
 * process published is gone when it is, however it ended.
 *
 * A socket's name has room for 98 characters besides the hash. As base 64 that is too little for
 * the address of an RDMA device, so the bytes are written in 85 characters, 4 bytes as 5.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "plx_cm.h"
#include "plx_wire.h"

#define HASH_LEN      8 /* characters of 6 bytes */
#define BASE	      85u
#define TEXT_LEN(len) ((len) / 4 * 5 + ((len) % 4 != 0 ? (len) % 4 + 1 : 0))

_Static_assert(1 + HASH_LEN + TEXT_LEN(PLX_NAME_DATA_MAX) < sizeof(((struct sockaddr_un *)0)->sun_path),
	"a socket's name holds it");

/* None that ends a line, or that the system writes for a zero byte. */
static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}_%$#";

_Static_assert(sizeof(digits) == BASE + 1, "as many as the base");

/* Four bytes are five digits; at the end n are n + 1, and what is missing is zeroes. */
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

/* @return bytes, or -EINVAL: anybody may bind a socket. What is missing of a group is the last digit. */
static int
read_text(const char *s, size_t n, uint8_t to[PLX_NAME_DATA_MAX])
{
	size_t len = 0;

	if (n > TEXT_LEN(PLX_NAME_DATA_MAX) || n % 5 == 1)
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

uint64_t
plx_name_hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3u;
	return h;
}

/* What names of sockets begin with, HASH_LEN characters and a terminating byte. */
static void
hash_text(const char *name, char *text)
{
	uint64_t h = plx_name_hash(name);

	plx_wire_text(&h, HASH_LEN * 3 / 4, text);
}

int
plx_name_publish(const char *name, const void *data, size_t len, int *out)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t a_len;
	int fd;

	if (len > PLX_NAME_DATA_MAX)
		return -EMSGSIZE;
	hash_text(name, a.sun_path + 1);
	write_text(data, len, a.sun_path + 1 + HASH_LEN);
	a_len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, a_len) != 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

int
plx_name_each(const char *name, void (*fn)(const void *data, size_t len, void *arg), void *arg)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char head[HASH_LEN + 3] = " @";
	size_t cap = 0;
	char *line = NULL;
	int rc = 0;

	if (f == NULL)
		return -errno;
	hash_text(name, head + 2);
	while (getline(&line, &cap, f) > 0) {
		uint8_t data[PLX_NAME_DATA_MAX];
		char *at = strstr(line, head);
		int len;

		if (at == NULL)
			continue;
		at += strlen(head);
		len = read_text(at, strcspn(at, "\n"), data);
		if (len < 0)
			continue;
		fn(data, len, arg);
		rc++;
	}
	free(line);
	fclose(f);
	return rc;
}
