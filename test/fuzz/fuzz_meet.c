/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_meet.c - what strangers ask this process, and what liars answer it
 *
 * Design notes
 * The first byte says which. A question goes to the thread that answers, from a socket of this process, any
 * packets with any descriptors. A reply comes from a socket that has the name of a process: its head is laid over a
 * right one (exclusive or), or taken as it is, and comes with descriptors of any kind, sealed or not, more or fewer
 * than it says. What is believed has to be what it says, and no descriptor may stay open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

#include "plx_unit_meet.h"

#define LEN	 8192
#define OFFERED	 7
#define FDS_MAX	 12
#define SAID_MAX 96

enum kind {
	KIND_MEMORY, /* as it should be */
	KIND_OTHER_LEN,
	KIND_NOT_SEALED,
	KIND_BELL,
	KIND_STREAM,
	KIND_LISTENS,
	KIND_PIDFD,
	KIND_PIPE,
	KIND_EVENT,
	KIND_NULL,
	KIND_FOLDER,
	KINDS,
};

static int kinds[KINDS];
static struct plx_proc self, liar;
static int liar_at, liar_alive;

static int
memory(uint64_t len, bool sealed)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	FUZZ_CHECK(fd >= 0 && ftruncate(fd, (off_t)len) == 0);
	FUZZ_CHECK(!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return fd;
}

static int
name_take(int type)
{
	struct sockaddr_un a;
	socklen_t len = meet_name(MEET_ABSTRACT, liar.id, &a);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0);
	return fd;
}

static unsigned
n_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 128; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int pair[2];

	(void)argc;
	(void)argv;
	fuzz_start();
	FUZZ_CHECK(plx_proc_self(&self) == 0);
	liar = self;
	liar.id ^= 1;
	liar_at = name_take(SOCK_SEQPACKET);
	liar_alive = name_take(SOCK_DGRAM);
	FUZZ_CHECK(listen(liar_at, 8) == 0);
	kinds[KIND_MEMORY] = memory(LEN, true);
	kinds[KIND_OTHER_LEN] = memory(1, true);
	kinds[KIND_NOT_SEALED] = memory(LEN, false);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0);
	kinds[KIND_BELL] = pair[0];
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	kinds[KIND_STREAM] = pair[0];
	kinds[KIND_LISTENS] = liar_at;
	kinds[KIND_PIDFD] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	FUZZ_CHECK(pipe2(pair, O_CLOEXEC) == 0);
	kinds[KIND_PIPE] = pair[1];
	kinds[KIND_EVENT] = eventfd(0, EFD_CLOEXEC);
	kinds[KIND_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	kinds[KIND_FOLDER] = open("/", O_PATH | O_CLOEXEC);
	for (unsigned i = 0; i < KINDS; i++)
		FUZZ_CHECK(kinds[i] >= 0);
	FUZZ_CHECK(plx_meet_offer(OFFERED, (int[PLX_MEET_FDS]){kinds[KIND_MEMORY], kinds[KIND_BELL], -1}, false) == 0);
	return 0;
}


/* One packet, with as many descriptors as the input says, of the kinds it says. */
static void
say(int fd, struct fuzz_in *in, void *text, size_t len)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} room;
	struct iovec iov = {text, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	unsigned n = fuzz_u8(in) % (FDS_MAX + 1);

	memset(&room, 0, sizeof(room));
	if (n != 0) {
		msg.msg_control = &room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		for (unsigned i = 0; i < n; i++)
			memcpy(CMSG_DATA(&room.head) + i * sizeof(int), &kinds[fuzz_u8(in) % KINDS], sizeof(int));
	}
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* @return its length: right bytes with the input's laid over them, or the input's, and as many as that says */
static size_t
text_make(struct fuzz_in *in, const void *right, size_t right_len, uint8_t *to)
{
	uint8_t how = fuzz_u8(in);
	size_t len = how & 1 ? fuzz_u8(in) % SAID_MAX : right_len;

	fuzz_bytes(in, to, len);
	for (size_t i = 0; i < len && i < right_len && (how & 2) == 0; i++)
		to[i] ^= ((const uint8_t *)right)[i];
	return len;
}

/* The offer is for who asks for it in the right words, and for nobody else. */
static void
answer_check(int fd, bool right)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} room;
	struct meet_reply r;
	struct iovec iov = {&r, sizeof(r)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;
	bool got = false;

	FUZZ_CHECK(poll(&p, 1, 10000) == 1);
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		got = true;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			close(one);
		}
	}
	FUZZ_CHECK(n <= 0 || (n == sizeof(r) && r.magic == MEET_MAGIC && got == (r.err == 0)));
	FUZZ_CHECK(got == right);
}

static void
question(struct fuzz_in *in)
{
	const struct meet_question right = {MEET_MAGIC, OFFERED, liar.id};
	struct meet_question q = {.magic = 0};
	uint8_t text[SAID_MAX];
	struct sockaddr_un a;
	socklen_t a_len = meet_name(MEET_ABSTRACT, self.id, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	size_t len;

	FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, a_len) == 0);
	len = text_make(in, &right, sizeof(right), text);
	memcpy(&q, text, len < sizeof(q) ? len : sizeof(q));
	say(fd, in, text, len);
	if (len == 0) { /* the kernel sends no packet, maybe: it says no more */
		close(fd);
		return;
	}
	/* What is longer is cut off, and then it is right. */
	answer_check(fd, len >= sizeof(q) && q.magic == MEET_MAGIC && q.id == OFFERED && q.proc != 0);
	close(fd);
}

static bool
is_kind(int fd, enum kind kind)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstat(kinds[kind], &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void
reply(struct fuzz_in *in)
{
	const struct meet_reply right = {MEET_MAGIC, 0, fuzz_u8(in) % (1u << PLX_MEET_FDS)};
	uint8_t text[SAID_MAX];
	struct plx_answer got;
	struct plx_ask ask;
	unsigned before = n_open();
	int fd, rc;

	FUZZ_CHECK(plx_ask_open(&ask, &liar, OFFERED) == 0);
	fd = accept4(liar_at, NULL, NULL, SOCK_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	while (fuzz_u8(in) % 4 != 3) { /* no packet, one, or several */
		size_t len = text_make(in, &right, sizeof(right), text);

		say(fd, in, text, len);
		if (!fuzz_more(in))
			break;
	}
	close(fd);
	rc = plx_ask_wait(&ask, &got, 10000);
	FUZZ_CHECK(rc != -ETIMEDOUT && rc != -EAGAIN);
	for (unsigned i = 0; i < PLX_MEET_FDS; i++)
		FUZZ_CHECK(rc == 0 || got.fd[i] < 0);
	if (rc == 0 && got.fd[PLX_MEET_MEM] >= 0)
		FUZZ_CHECK(is_kind(got.fd[PLX_MEET_MEM], KIND_MEMORY) || is_kind(got.fd[PLX_MEET_MEM], KIND_OTHER_LEN) ||
			is_kind(got.fd[PLX_MEET_MEM], KIND_NOT_SEALED)); /* of this user: pages of an EAL */
	if (rc == 0 && got.fd[PLX_MEET_BELL] >= 0)
		FUZZ_CHECK(is_kind(got.fd[PLX_MEET_BELL], KIND_BELL));
	if (rc == 0 && got.fd[PLX_MEET_PID] >= 0)
		FUZZ_CHECK(is_kind(got.fd[PLX_MEET_PID], KIND_PIDFD));
	FUZZ_CHECK(!plx_meet_is_memory(got.fd[PLX_MEET_MEM], LEN, false) || is_kind(got.fd[PLX_MEET_MEM], KIND_MEMORY));
	plx_answer_close(&got);
	plx_ask_close(&ask);
	/* The thread may open one for a question that was asked before. */
	for (unsigned ms = 0; n_open() > before; ms++) {
		FUZZ_CHECK(ms < 10000);
		usleep(1000);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};

	if (fuzz_u8(&in) & 1)
		question(&in);
	else
		reply(&in);
	return 0;
}
