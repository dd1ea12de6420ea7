/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hang.c - two processes that wait for ever, for waits_test.py to find out why
 *
 * usage: hang HOW [FD]
 *
 * HOW is recv (the first receives what nobody sends), sleep (the same, and both sleep until there
 * is something), cycle (each sends a long message that the other does not receive), idle (the first
 * sends to the second, which calls no progress), tag (the second receives another tag than the
 * first has sent), each (both receive from each other, and nobody sends), none (they only call
 * progress), stream (the second reads a stream that nobody writes), am (as idle, by an active
 * message), close (as idle, and the first closes its endpoint), many (the first posts 1000
 * receives). With FD, a socket to the other process, it is one of the two. Each prints "ready PID".
 * They end when standard input does.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ucp_util.h"

enum { LONG_LEN = 1 << 20, ADDR_MAX = 4096, TAG_FIRST = 1, TAG_ASKED = 7, TAG_SENT = 9, TAG_MANY = 100, N_MANY = 1000 };

struct side {
	int first; /* 1: of the two processes this is the first */
	int fd;	   /* to the other one */
	bool sleeps;
	ucp_worker_h w;
	ucp_ep_h ep;
	char small[64];
	char *large;
};

static void
wait_op(const struct side *s, struct op *op)
{
	while (!util_done(op))
		ucp_worker_progress(s->w);
	util_free(op);
}

/* Connect both, so that they know each other; neither goes on before the other is ready. */
static void
greet(struct side *s)
{
	struct op in, out;

	util_recv(&in, s->w, s->small, 8, TAG_FIRST, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&out, s->ep, s->small, 8, TAG_FIRST, UTIL_NBX);
	wait_op(s, &out);
	wait_op(s, &in);
	if (write(s->fd, "", 1) != 1 || read(s->fd, s->small, 1) != 1)
		UTIL_DIE("the other one is gone");
}

/* The sender is in the upper half of a tag. */
static ucp_context_h
context(bool sleeps)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
			UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP | UCP_PARAM_FIELD_TAG_SENDER_MASK,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA,
		.request_size = sizeof(struct area), .request_init = util_request_init,
		.request_cleanup = util_request_cleanup, .tag_sender_mask = 0xffffffff00000000};
	ucp_context_h ctx;

	if (sleeps)
		params.features |= UCP_FEATURE_WAKEUP;
	UTIL_OK(ucp_init(&params, NULL, &ctx));
	return ctx;
}

static void
meet(struct side *s)
{
	ucp_address_t *addr;
	char other[ADDR_MAX];
	size_t len;

	s->w = util_worker(context(s->sleeps), UCS_THREAD_MODE_SINGLE);
	UTIL_OK(ucp_worker_get_address(s->w, &addr, &len));
	if (write(s->fd, addr, len) != (ssize_t)len || read(s->fd, other, sizeof(other)) <= 0)
		UTIL_DIE("no address");
	s->ep = util_ep(s->w, (const ucp_address_t *)other);
	s->large = calloc(1, LONG_LEN);
	if (s->large == NULL)
		UTIL_DIE("no memory");
	greet(s);
}

static void
stream_recv(struct side *s)
{
	static const ucp_request_param_t whole = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_STREAM_RECV_FLAG_WAITALL};
	size_t len;

	(void)ucp_stream_recv_nbx(s->ep, s->small, 8, &len, &whole);
}

static void
am_send(struct side *s)
{
	static const ucp_request_param_t announced = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_RNDV};

	(void)ucp_am_send_nbx(s->ep, 3, NULL, 0, s->large, LONG_LEN, &announced);
}

/* A receive from the other one. */
static void
recv_from_other(struct side *s)
{
	static struct op op;

	util_recv(&op, s->w, s->small, 8, (ucp_tag_t)s->first << 32 | TAG_ASKED, UTIL_ALL_BITS, UTIL_NBX);
}

static void
many_recvs(struct side *s)
{
	static struct op op[N_MANY];

	for (ucp_tag_t i = 0; i < N_MANY; i++)
		util_recv(&op[i], s->w, s->small, 8, TAG_MANY + i, UTIL_ALL_BITS, UTIL_NBX);
}

/* @return whether to call progress */
static bool
hang(struct side *s, const char *how)
{
	static const ucp_request_param_t plain;
	static struct op op;

	if ((strcmp(how, "recv") == 0 || s->sleeps) && s->first)
		util_recv(&op, s->w, s->small, 8, TAG_ASKED, UTIL_ALL_BITS, UTIL_NBX);
	if (strcmp(how, "cycle") == 0 || (strcmp(how, "idle") == 0 && s->first))
		util_send(&op, s->ep, s->large, LONG_LEN, TAG_SENT, UTIL_NBX);
	if (strcmp(how, "tag") == 0 && s->first)
		util_send(&op, s->ep, s->small, 8, TAG_SENT, UTIL_NBX);
	if (strcmp(how, "tag") == 0 && !s->first)
		util_recv(&op, s->w, s->small, 8, TAG_ASKED, UTIL_ALL_BITS, UTIL_NBX);
	if (strcmp(how, "each") == 0)
		recv_from_other(s);
	if (strcmp(how, "many") == 0 && s->first)
		many_recvs(s);
	if (strcmp(how, "stream") == 0 && !s->first)
		stream_recv(s);
	if (strcmp(how, "am") == 0 && s->first)
		am_send(s);
	if (strcmp(how, "close") == 0 && s->first) {
		util_send(&op, s->ep, s->large, LONG_LEN, TAG_SENT, UTIL_NBX);
		(void)ucp_ep_close_nbx(s->ep, &plain);
	}
	return (strcmp(how, "idle") != 0 && strcmp(how, "am") != 0 && strcmp(how, "close") != 0) || s->first;
}

/* /proc shows the environment that a program was started with: so each is started with its rank. */
static void
become(const char *how, const char *rank, int fd)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", fd);
	setenv("PMI_RANK", rank, 1);
	execl("/proc/self/exe", "hang", how, text, NULL);
	UTIL_DIE("exec");
}

static void
two_processes(const char *how)
{
	int fd[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) != 0)
		UTIL_DIE("socketpair");
	pid = fork();
	if (pid < 0)
		UTIL_DIE("fork");
	become(how, pid != 0 ? "0" : "1", fd[pid != 0]);
}

/* Until the end of standard input. @param turns whether to call progress */
static void
go_on(const struct side *s, bool turns)
{
	struct pollfd in[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	int ms = turns ? 0 : 100;

	if (s->sleeps)
		UTIL_OK(ucp_worker_get_efd(s->w, &in[1].fd));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	do {
		while (turns && ucp_worker_progress(s->w) != 0)
			continue;
		if (s->sleeps)
			ms = ucp_worker_arm(s->w) == UCS_OK ? -1 : 0;
	} while (poll(in, 2, ms) == 0 || in[0].revents == 0);
}

int
main(int argc, char **argv)
{
	static struct side s;

	if (argc < 2)
		return 2;
	if (argc == 2)
		two_processes(argv[1]);
	s.first = strcmp(getenv("PMI_RANK"), "0") == 0;
	s.fd = atoi(argv[2]);
	s.sleeps = strcmp(argv[1], "sleep") == 0;
	meet(&s);
	go_on(&s, hang(&s, argv[1]));
	_exit(0); /* what waits would wait for ever */
}
