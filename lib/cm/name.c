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

#define HASH_LEN 8 /* characters of 6 bytes */

_Static_assert(1 + HASH_LEN + PLX_WIRE_TEXT_LEN(PLX_NAME_DATA_MAX) < sizeof(((struct sockaddr_un *)0)->sun_path),
	"a socket's name holds it");

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
	plx_wire_text(data, len, a.sun_path + 1 + HASH_LEN);
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
		len = plx_wire_untext(at, strcspn(at, "\n"), data, sizeof(data));
		if (len < 0)
			continue;
		fn(data, len, arg);
		rc++;
	}
	free(line);
	fclose(f);
	return rc;
}
