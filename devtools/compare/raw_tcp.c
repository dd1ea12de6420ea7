/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * raw_tcp.c - what two plain sockets do: a ping-pong and a stream of messages, by programs that spin
 *
 * usage: raw_tcp serve PORT
 *        raw_tcp lat|stream ADDRESS PORT BYTES N
 *
 * lat prints half of a round trip in ns, stream MB (of 2^20 bytes) a second, as "figure X".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

struct ask {
	uint64_t stream, bytes, n;
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void
move_all(int fd, uint8_t *buf, size_t len, int out)
{
	for (size_t at = 0; at < len;) {
		ssize_t r = out ? send(fd, buf + at, len - at, MSG_DONTWAIT) : recv(fd, buf + at, len - at, MSG_DONTWAIT);

		if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR))
			die(out ? "send" : "recv");
		at += r > 0 ? (size_t)r : 0;
	}
}

static uint8_t *
buffer(size_t len)
{
	uint8_t *buf = aligned_alloc(4096, (len + 4095) / 4096 * 4096);

	if (buf == NULL)
		die("aligned_alloc");
	return memset(buf, 1, len);
}

static void
no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
		die("setsockopt");
}

static void
serve(const char *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
	struct ask ask;
	uint8_t *buf;

	(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(s, 1) != 0 || (fd = accept(s, NULL, NULL)) < 0)
		die("serve");
	no_delay(fd);
	move_all(fd, (uint8_t *)&ask, sizeof(ask), 0);
	buf = buffer(ask.bytes);
	for (uint64_t i = 0; i < ask.n; i++) {
		move_all(fd, buf, ask.bytes, 0);
		if (!ask.stream)
			move_all(fd, buf, ask.bytes, 1);
	}
	move_all(fd, buf, 1, 1);
}

static int
join(const char *addr, const char *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (inet_pton(AF_INET, addr, &sa.sin_addr) != 1 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		die("connect");
	no_delay(fd);
	return fd;
}

static void
ask_for(int fd, struct ask ask)
{
	uint8_t *buf = buffer(ask.bytes);
	double since;

	move_all(fd, (uint8_t *)&ask, sizeof(ask), 1);
	since = now_ns();
	for (uint64_t i = 0; i < ask.n; i++) {
		move_all(fd, buf, ask.bytes, 1);
		if (!ask.stream)
			move_all(fd, buf, ask.bytes, 0);
	}
	move_all(fd, buf, 1, 0); /* all has arrived */
	since = now_ns() - since;
	printf("figure %.1f\n", ask.stream ? ask.bytes * ask.n / since * 1e9 / (1 << 20) : since / ask.n / 2);
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0) {
		serve(argv[2]);
		return 0;
	}
	if (argc != 6)
		return 2;
	ask_for(join(argv[2], argv[3]), (struct ask){strcmp(argv[1], "stream") == 0, strtoull(argv[4], NULL, 0),
		strtoull(argv[5], NULL, 0)});
	return 0;
}
