/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * meet_test.c - processes that meet: which descriptors pass to which process, and what strangers and liars get
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meet_int.h"
#include "plx_mem.h"
#include "plx_region.h"
#include "plx_unit.h"

#define LEN 8192

static struct plx_proc
me(void)
{
	struct plx_proc p;

	UNIT_EQ_FATAL(plx_proc_self(&p), 0);
	return p;
}

static int
memory(uint64_t len)
{
	int fd = memfd_create("meet", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return fd;
}

static void
must(bool right)
{
	if (!right)
		_exit(99);
}

/* A process that obeys: it writes what it is known by, and lives until its parent goes. */
struct other {
	pid_t pid;
	struct plx_proc proc;
	int tell; /* a byte for each step */
	int says;
};

static struct other
other_start(void (*fn)(struct plx_proc *self, int in, int out))
{
	struct other o = {.pid = 0};
	int to[2], from[2];

	CU_ASSERT_FATAL(pipe(to) == 0 && pipe(from) == 0);
	fflush(stdout);
	o.pid = fork();
	if (o.pid == 0) {
		struct plx_proc self;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(plx_proc_self(&self) == 0);
		close(to[1]);
		close(from[0]);
		fn(&self, to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	o.tell = to[1];
	o.says = from[0];
	CU_ASSERT_FATAL(o.pid > 0 && read(o.says, &o.proc, sizeof(o.proc)) == sizeof(o.proc));
	return o;
}

static void
other_end(struct other *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	close(o->tell);
	close(o->says);
}

static void
step(const struct other *o)
{
	char c;

	UNIT_EQ_FATAL(write(o->tell, "", 1), 1);
	UNIT_EQ_FATAL(read(o->says, &c, 1), 1);
}

static void
say_who(const struct plx_proc *self, int out)
{
	must(write(out, self, sizeof(*self)) == sizeof(*self));
}

static int
ask(const struct plx_proc *whom, uint64_t id, struct plx_answer *got)
{
	struct plx_ask a;
	int rc = plx_ask_open(&a, whom, id);

	if (rc == 0)
		rc = plx_ask_wait(&a, got, 2000);
	plx_ask_close(&a);
	return rc;
}

static void
offers(struct plx_proc *self, int in, int out)
{
	int pair[2], fd[PLX_MEET_FDS] = {-1, -1, -1};
	struct plx_seg seg;
	char c;

	must(plx_seg_create(&seg, NULL, LEN, false) == 0);
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) == 0);
	strcpy(seg.base, "here");
	fd[PLX_MEET_MEM] = seg.fd;
	fd[PLX_MEET_BELL] = pair[1];
	must(plx_meet_offer(7, fd, false) == 0);
	say_who(self, out);
	while (read(in, &c, 1) == 1) { /* a step: it withdraws, then offers again */
		static unsigned n;

		if (n++ % 2 == 0)
			plx_meet_withdraw(7);
		else
			must(plx_meet_offer(7, fd, false) == 0);
		must(write(out, "", 1) == 1);
	}
}

static void
what_is_offered_is_handed_over_and_nothing_else(void)
{
	struct other o = other_start(offers);
	struct pollfd p = {.events = POLLIN};
	struct plx_answer got;
	struct plx_ask a;
	char *here;

	UNIT_EQ_FATAL(plx_ask_open(&a, &o.proc, 7), 0);
	UNIT_EQ(a.pid, o.pid); /* as the kernel says */
	UNIT_EQ(a.uid, geteuid());
	UNIT_EQ_FATAL(plx_ask_wait(&a, &got, 2000), 0);
	plx_ask_close(&a);
	UNIT_TRUE(got.own_user);
	UNIT_TRUE(plx_meet_is_memory(got.fd[PLX_MEET_MEM], LEN, false));
	here = mmap(NULL, LEN, PROT_READ, MAP_SHARED, got.fd[PLX_MEET_MEM], 0);
	CU_ASSERT_FATAL(here != MAP_FAILED);
	CU_ASSERT_STRING_EQUAL(here, "here");
	munmap(here, LEN);
	UNIT_EQ(send(got.fd[PLX_MEET_BELL], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL), 1);
	UNIT_EQ(ask(&o.proc, 8, &(struct plx_answer){.own_user = false}), -ESRCH);
	p.fd = got.fd[PLX_MEET_PID];
	UNIT_TRUE(p.fd >= 0 && poll(&p, 1, 0) == 0);
	UNIT_TRUE(!plx_meet_gone(o.proc.id));
	other_end(&o);
	UNIT_EQ(poll(&p, 1, 2000), 1); /* it tells the end */
	UNIT_TRUE(plx_meet_gone(o.proc.id));
	UNIT_EQ(ask(&o.proc, 7, &(struct plx_answer){.own_user = false}), -ECONNRESET);
	plx_answer_close(&got);
}

static void
what_is_withdrawn_is_gone_and_may_come_again(void)
{
	struct other o = other_start(offers);
	struct plx_answer got;

	for (unsigned i = 0; i < 20; i++) {
		UNIT_EQ_FATAL(ask(&o.proc, 7, &got), 0);
		plx_answer_close(&got);
		step(&o);
		UNIT_TRUE(plx_meet_gone(o.proc.id)); /* it had nothing else */
		UNIT_EQ(ask(&o.proc, 7, &got), -ECONNRESET);
		step(&o);
	}
	other_end(&o);
}

/* A stopped process answers when it goes on; the asker goes on meanwhile. */
static void
nobody_waits_for_a_stopped_process(void)
{
	struct other o = other_start(offers);
	struct plx_answer got;
	struct plx_ask a;

	kill(o.pid, SIGSTOP);
	UNIT_EQ(waitpid(o.pid, NULL, WUNTRACED), o.pid);
	UNIT_EQ_FATAL(plx_ask_open(&a, &o.proc, 7), 0);
	UNIT_EQ(plx_ask_poll(&a, &got), -EAGAIN);
	UNIT_EQ(plx_ask_wait(&a, &got, 20), -ETIMEDOUT);
	UNIT_TRUE(!plx_meet_gone(o.proc.id));
	kill(o.pid, SIGCONT);
	UNIT_EQ(plx_ask_wait(&a, &got, 5000), 0);
	plx_answer_close(&got);
	plx_ask_close(&a);
	other_end(&o);
}

static void
another_network_is_told_from_one_that_has_gone(void)
{
	struct plx_proc p = me();
	struct plx_answer got;

	p.id ^= 1;
	UNIT_EQ(ask(&p, 7, &got), -ECONNRESET);
	p.host ^= 1;
	UNIT_EQ(ask(&p, 7, &got), -EHOSTUNREACH);
	p.host ^= 1ull << 40; /* another boot */
	UNIT_EQ(ask(&p, 7, &got), -EHOSTUNREACH);
}

/* -- liars: a socket with another's kind of name, and a reply that is no good -- */

struct lie {
	size_t len;
	struct meet_reply r;
	int fd[6];
	unsigned n_fds;
};

/* Answers each question with the next lie. */
static void
lie_once(int at, const struct lie *lie)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(lie->fd))];
	} room;
	struct iovec iov = {(void *)&lie->r, lie->len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct meet_question q;
	int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC);

	UNIT_TRUE_FATAL(fd >= 0);
	UNIT_EQ(recv(fd, &q, sizeof(q), 0), sizeof(q));
	if (lie->n_fds != 0) {
		memset(&room, 0, sizeof(room));
		msg.msg_control = &room;
		msg.msg_controllen = CMSG_SPACE(lie->n_fds * sizeof(int));
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(lie->n_fds * sizeof(int));
		memcpy(CMSG_DATA(&room.head), lie->fd, lie->n_fds * sizeof(int));
	}
	if (lie->len != 0 || lie->n_fds != 0)
		UNIT_EQ(sendmsg(fd, &msg, 0), (ssize_t)lie->len);
	close(fd);
}

/* Who is taken for silent, or can't be answered, finds the connection ended: only the name says who has gone. */
static void
an_end_without_a_reply_is_not_taken_for_gone(void)
{
	struct plx_proc other = me();
	int at = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int alive = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct lie nothing = {0};
	struct plx_answer got;
	struct sockaddr_un a;
	struct plx_ask first, second;
	socklen_t len;

	other.id = other.id << 1 | 1;
	len = meet_name(MEET_ABSTRACT, other.id, &a);
	UNIT_EQ_FATAL(bind(at, (struct sockaddr *)&a, len), 0);
	UNIT_EQ_FATAL(bind(alive, (struct sockaddr *)&a, len), 0);
	UNIT_EQ_FATAL(listen(at, 10), 0);
	UNIT_EQ_FATAL(plx_ask_open(&first, &other, 7), 0);
	lie_once(at, &nothing);
	UNIT_EQ(plx_ask_wait(&first, &got, 2000), -EBUSY);
	UNIT_EQ_FATAL(plx_ask_open(&second, &other, 7), 0);
	lie_once(at, &nothing);
	close(alive);
	close(at);
	UNIT_EQ(plx_ask_wait(&second, &got, 2000), -ECONNRESET);
	plx_ask_close(&first);
	plx_ask_close(&second);
}

static unsigned
n_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 200; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
lies_are_refused_and_nothing_stays_open(void)
{
	struct plx_proc liar = me();
	struct sockaddr_un a;
	int at = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), plain = memfd_create("plain", MFD_CLOEXEC);
	int mem = memory(LEN), event = eventfd(0, EFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC), p[2];
	const struct meet_reply good = {MEET_MAGIC, 0, 1u << PLX_MEET_MEM};
	struct plx_answer got;
	socklen_t len;
	unsigned before;

	CU_ASSERT_FATAL(pipe(p) == 0);
	liar.id = liar.id << 1 | 1;
	len = meet_name(MEET_ABSTRACT, liar.id, &a);
	UNIT_EQ_FATAL(bind(at, (struct sockaddr *)&a, len), 0);
	UNIT_EQ_FATAL(listen(at, 10), 0);
	{
		const struct {
			struct lie lie;
			int want;
		} lies[] = {
			{{sizeof(good), good, {mem}, 1}, 0}, /* the truth */
			{{sizeof(good), {MEET_MAGIC, ESRCH, 0}, {0}, 0}, -ESRCH},
			{{sizeof(good), {MEET_MAGIC, EPERM, 0}, {0}, 0}, -EPERM},
			{{sizeof(good), {MEET_MAGIC, EAGAIN, 0}, {0}, 0}, -EBUSY},
			{{sizeof(good), {MEET_MAGIC, ESRCH, 1}, {mem}, 1}, -ESRCH},
			{{0, good, {0}, 0}, -ECONNRESET},
			{{0, good, {mem, p[0]}, 2}, -EPROTO}, /* nothing, with something */
			{{sizeof(good) - 1, good, {mem}, 1}, -EPROTO},
			{{sizeof(good), {MEET_MAGIC + 1, 0, 1}, {mem}, 1}, -EPROTO},
			{{sizeof(good), {MEET_MAGIC, 0, 0x80000001}, {mem}, 1}, -EPROTO},
			{{sizeof(good), good, {0}, 0}, -EPROTO},	      /* one less than it says */
			{{sizeof(good), {MEET_MAGIC, 0, 7}, {mem, p[0]}, 2}, -EPROTO},
			{{sizeof(good), {MEET_MAGIC, 0, 2}, {mem}, 1}, -EPROTO}, /* memory for a bell */
			{{sizeof(good), {MEET_MAGIC, 0, 2}, {event}, 1}, -EPROTO},
			{{sizeof(good), {MEET_MAGIC, 0, 2}, {p[1]}, 1}, -EPROTO},
			{{sizeof(good), {MEET_MAGIC, 0, 2}, {at}, 1}, -EPROTO}, /* a socket of another kind */
			{{sizeof(good), {MEET_MAGIC, 0, 4}, {p[0]}, 1}, -EPROTO}, /* a pipe for a pidfd */
			{{sizeof(good), good, {plain}, 1}, -EPROTO},	/* not sealed */
			{{sizeof(good), good, {null}, 1}, -EPROTO},
			{{sizeof(good), good, {p[0]}, 1}, -EPROTO},
			{{sizeof(good), good, {mem, p[0], p[1], event, plain, null}, 6}, 0}, /* more than it says */
		};

		before = n_open();
		for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			struct plx_ask ask_it;

			UNIT_EQ_FATAL(plx_ask_open(&ask_it, &liar, 7), 0);
			lie_once(at, &lies[i].lie);
			if (!UNIT_EQ(plx_ask_wait(&ask_it, &got, 2000), lies[i].want))
				printf("lie %u\n", i);
			plx_ask_close(&ask_it);
			plx_answer_close(&got);
			UNIT_EQ(n_open(), before);
		}
	}
	close(at);
	close(mem);
	close(plain);
	close(event);
	close(null);
	close(p[0]);
	close(p[1]);
}

/* -- strangers: what anybody may say to our socket -- */

static int
stranger(const struct plx_proc *whom)
{
	struct sockaddr_un a;
	socklen_t len = meet_name(MEET_ABSTRACT, whom->id, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	UNIT_EQ_FATAL(connect(fd, (struct sockaddr *)&a, len), 0);
	return fd;
}

/* @return what is read until the other side closes: bytes, or -ECONNRESET */
static ssize_t
hears(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[256];
	ssize_t n;

	UNIT_EQ_FATAL(poll(&p, 1, 2000), 1);
	n = recv(fd, text, sizeof(text), 0);
	close(fd);
	return n < 0 ? -errno : n;
}

static void
nonsense_is_not_answered_and_the_next_is(void)
{
	struct other o = other_start(offers);
	const struct meet_question good = {MEET_MAGIC, 7, 99}, bad_magic = {1, 7, 99}, nobody = {MEET_MAGIC, 7, 0};
	char big[4096] = {0};
	struct plx_answer got;
	int fd;

	fd = stranger(&o.proc);
	UNIT_EQ(send(fd, &bad_magic, sizeof(bad_magic), 0), sizeof(bad_magic));
	UNIT_TRUE(hears(fd) <= 0);
	fd = stranger(&o.proc);
	UNIT_EQ(send(fd, &nobody, sizeof(nobody), 0), sizeof(nobody));
	UNIT_TRUE(hears(fd) <= 0);
	fd = stranger(&o.proc);
	UNIT_EQ(send(fd, &good, sizeof(good) - 1, 0), sizeof(good) - 1);
	UNIT_TRUE(hears(fd) <= 0);
	memcpy(big, &good, sizeof(good)); /* what follows is cut off by the kernel */
	fd = stranger(&o.proc);
	UNIT_EQ(send(fd, big, sizeof(big), 0), sizeof(big));
	UNIT_TRUE(hears(fd) != 0);
	fd = stranger(&o.proc);
	close(fd); /* and says nothing */
	UNIT_EQ(ask(&o.proc, 7, &got), 0);
	plx_answer_close(&got);
	other_end(&o);
}

static void
the_silent_keep_others_waiting_for_a_bounded_time(void)
{
	struct other o = other_start(offers);
	struct plx_answer got;
	int fd[64 + 8];

	for (unsigned i = 0; i < 60; i++)
		fd[i] = stranger(&o.proc);
	UNIT_EQ(ask(&o.proc, 7, &got), 0); /* there are some places left */
	plx_answer_close(&got);
	for (unsigned i = 60; i < 72; i++)
		fd[i] = stranger(&o.proc);
	UNIT_TRUE(ask(&o.proc, 7, &got) == -ETIMEDOUT);
	{
		struct plx_ask a;

		UNIT_EQ_FATAL(plx_ask_open(&a, &o.proc, 7), 0);
		UNIT_EQ(plx_ask_wait(&a, &got, 8000), 0); /* when the silent have had their time */
		plx_answer_close(&got);
		plx_ask_close(&a);
	}
	for (unsigned i = 0; i < 72; i++)
		close(fd[i]);
	other_end(&o);
}

/* Out of descriptors, a process answers when it has some again. */
static void
scarce(struct plx_proc *self, int in, int out)
{
	struct rlimit before, none;
	struct plx_seg seg;
	char c;

	must(plx_seg_create(&seg, NULL, LEN, false) == 0);
	must(plx_meet_offer(7, (int[PLX_MEET_FDS]){seg.fd, -1, -1}, false) == 0);
	must(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = before;
	none.rlim_cur = 0;
	say_who(self, out);
	must(read(in, &c, 1) == 1 && setrlimit(RLIMIT_NOFILE, &none) == 0 && write(out, "", 1) == 1);
	must(read(in, &c, 1) == 1 && setrlimit(RLIMIT_NOFILE, &before) == 0 && write(out, "", 1) == 1);
	(void)!read(in, &c, 1);
}

/* A user who has as many descriptors on the way as he may hands over no more until they have arrived. */
static void
crowded(struct plx_proc *self, int in, int out)
{
	const struct rlimit few = {64, 64};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} room = {.head = {CMSG_LEN(4 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"", 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};
	struct plx_seg seg;
	int pair[2];
	char c;

	must(setresuid(65533, 65533, 65533) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(plx_meet_settle("", "all") == 0 && plx_seg_create(&seg, NULL, LEN, false) == 0);
	must(plx_meet_offer(7, (int[PLX_MEET_FDS]){seg.fd, -1, -1}, false) == 0);
	must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	for (unsigned i = 0; i < 4; i++)
		memcpy(CMSG_DATA(&room.head) + i * sizeof(int), &seg.fd, sizeof(int));
	for (unsigned i = 0; i < 100 && sendmsg(pair[0], &msg, 0) >= 0; i++)
		;
	must(errno == ETOOMANYREFS || errno == EAGAIN);
	say_who(self, out);
	must(read(in, &c, 1) == 1);
	while (recv(pair[1], &c, 1, MSG_DONTWAIT) >= 0)
		; /* what comes with it is closed */
	must(write(out, "", 1) == 1);
	(void)!read(in, &c, 1);
}

static void
a_reply_that_cant_be_sent_now_is_asked_for_again(void)
{
	struct plx_answer got;
	struct other o;

	if (geteuid() != 0) {
		printf("needs another user: skipped ");
		return;
	}
	UNIT_EQ_FATAL(plx_meet_settle("", "all"), 0);
	o = other_start(crowded);
	UNIT_EQ(ask(&o.proc, 7, &got), -EBUSY);
	step(&o);
	UNIT_EQ(ask(&o.proc, 7, &got), 0);
	plx_answer_close(&got);
	other_end(&o);
	UNIT_EQ(plx_meet_settle("", "same"), 0);
}

/* A hole can be punched into them at any time, which is a fatal signal for who touches it there. */
static int
huge_memory(void)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd >= 0 && (ftruncate(fd, 2 << 20) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void
offers_huge_pages(struct plx_proc *self, int in, int out)
{
	int fd = huge_memory();
	char c;

	must(setresuid(65533, 65533, 65533) == 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(plx_meet_settle("", "all") == 0 && plx_meet_offer(7, (int[PLX_MEET_FDS]){fd, -1, -1}, false) == 0);
	say_who(self, out);
	(void)!read(in, &c, 1);
}

static void
huge_pages_are_taken_from_the_same_user_only(void)
{
	struct plx_seg_name name = {.id = 7, .len = 2 << 20};
	int fd = huge_memory(), plain = memory(LEN);
	struct plx_seg seg;
	struct other o;

	if (fd < 0) {
		printf("no huge pages: skipped ");
		close(plain);
		return;
	}
	UNIT_TRUE(plx_meet_is_memory(fd, 2 << 20, true));
	UNIT_TRUE(!plx_meet_is_memory(fd, 2 << 20, false));
	UNIT_TRUE(plx_meet_is_memory(plain, LEN, false));
	close(fd);
	close(plain);
	if (geteuid() != 0)
		return;
	UNIT_EQ_FATAL(plx_meet_settle("", "all"), 0);
	o = other_start(offers_huge_pages);
	name.proc = o.proc;
	UNIT_EQ(plx_seg_open(&name, true, &seg), -EACCES); /* the way of keys, windows and exported memory */
	other_end(&o);
	UNIT_EQ(plx_meet_settle("", "same"), 0);
}

/* A child has copies of the sockets for a moment, or, made without the hooks of fork(), for longer. */
static void
a_child_that_holds_the_sockets_holds_up_nobody(void)
{
	struct plx_proc self = me();
	int mem = memory(LEN), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = meet_name(MEET_ABSTRACT, self.id, &name);
	struct plx_answer got;
	pid_t child;

	UNIT_EQ_FATAL(plx_meet_offer(9, (int[PLX_MEET_FDS]){mem, -1, -1}, false), 0);
	fflush(stdout);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		(void)poll(NULL, 0, 50); /* less than a name is waited for */
		_exit(0);
	}
	CU_ASSERT_FATAL(child > 0);
	plx_meet_withdraw(9);
	UNIT_EQ(connect(fd, (struct sockaddr *)&name, len), -1); /* nobody would answer there */
	UNIT_EQ(plx_meet_offer(9, (int[PLX_MEET_FDS]){mem, -1, -1}, false), 0);
	UNIT_EQ(ask(&self, 9, &got), 0);
	plx_answer_close(&got);
	plx_meet_withdraw(9);
	waitpid(child, NULL, 0);
	close(fd);
	close(mem);
}

static uint64_t
cpu_of(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
without_descriptors_it_answers_later_and_does_not_spin(void)
{
	struct other o = other_start(scarce);
	struct plx_answer got;
	struct plx_ask a;
	uint64_t cpu;

	step(&o);
	cpu = cpu_of(o.pid);
	UNIT_EQ_FATAL(plx_ask_open(&a, &o.proc, 7), 0);
	UNIT_EQ(plx_ask_wait(&a, &got, 1000), -ETIMEDOUT);
	UNIT_TRUE(cpu_of(o.pid) - cpu < 300000000); /* it looks ten times a second */
	step(&o);
	UNIT_EQ(plx_ask_wait(&a, &got, 2000), 0);
	plx_answer_close(&got);
	plx_ask_close(&a);
	other_end(&o);
}

/* The asker's own: it learns that, and nothing of what came stays. */
static void
an_asker_without_descriptors_is_told(void)
{
	struct other o = other_start(offers);
	struct rlimit before, none;
	struct plx_answer got;
	struct pollfd p = {.events = POLLIN};
	struct plx_ask a;

	UNIT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	UNIT_EQ_FATAL(plx_ask_open(&a, &o.proc, 7), 0);
	p.fd = a.fd;
	UNIT_EQ(poll(&p, 1, 2000), 1);
	UNIT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	UNIT_EQ(plx_ask_poll(&a, &got), -EMFILE);
	UNIT_EQ(plx_ask_open(&(struct plx_ask){.fd = -1}, &o.proc, 7), -EMFILE);
	UNIT_TRUE(!plx_meet_gone(o.proc.id)); /* nobody knows */
	UNIT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	plx_ask_close(&a);
	UNIT_EQ(ask(&o.proc, 7, &got), 0);
	plx_answer_close(&got);
	other_end(&o);
}

static void
asks_us(struct plx_proc *self, int in, int out)
{
	struct plx_proc parent;
	struct plx_answer got;
	char c;

	say_who(self, out);
	must(read(in, &parent, sizeof(parent)) == sizeof(parent));
	must(ask(&parent, 9, &got) == 0);
	plx_answer_close(&got);
	must(write(out, "", 1) == 1);
	(void)!read(in, &c, 1);
}

/* Who was given a segment may die while it writes there: the owner knows by its number. */
static void
a_guest_is_known_until_it_has_gone(void)
{
	struct plx_proc self = me();
	struct other o = other_start(asks_us);
	int mem = memory(LEN);
	char c;

	UNIT_EQ_FATAL(plx_meet_offer(9, (int[PLX_MEET_FDS]){mem, -1, -1}, false), 0);
	UNIT_TRUE(plx_meet_guest_gone(o.proc.id & 0xffffff, 0xffffff)); /* it has not come yet */
	UNIT_EQ_FATAL(write(o.tell, &self, sizeof(self)), sizeof(self));
	UNIT_EQ_FATAL(read(o.says, &c, 1), 1);
	/* It offers nothing, so nobody can tell that it lives; one that takes a slot always does. */
	UNIT_TRUE(plx_meet_guest_gone(o.proc.id & 0xffffff, 0xffffff));
	UNIT_TRUE(!plx_meet_guest_gone(self.id & 0xffffff, 0xffffff)); /* we ourselves */
	other_end(&o);
	plx_meet_withdraw(9);
	close(mem);
}

static void
settings_that_name_nobody_are_refused(void)
{
	char dir[200];

	UNIT_EQ(plx_meet_settle("", "no-such-user-here"), -EINVAL);
	UNIT_EQ(plx_meet_settle("", "@no-such-group-here"), -EINVAL);
	UNIT_EQ(plx_meet_settle("relative", "same"), -EINVAL);
	memset(dir, 'x', sizeof(dir));
	dir[0] = '/';
	dir[sizeof(dir) - 1] = '\0';
	UNIT_EQ(plx_meet_settle(dir, "same"), -EINVAL);
	UNIT_EQ(plx_meet_settle("", "root, 12,@0 @root"), 0);
	UNIT_TRUE(!plx_meet_own_user_only());
	UNIT_EQ(plx_meet_settle("", "all"), 0);
	UNIT_TRUE(!plx_meet_own_user_only());
	UNIT_EQ(plx_meet_settle("", "same"), 0);
	UNIT_TRUE(plx_meet_own_user_only());
}

/* What a killed process has left in the folder goes with the next that starts. */
static void
a_folder_is_swept_of_the_dead(void)
{
	char dir[] = "/tmp/pollux-meet-XXXXXX", stale[80], other_file[80];
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int mem = memory(LEN), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
	snprintf(stale, sizeof(stale), "%s/pollux-0123456789abcdef", dir);
	snprintf(other_file, sizeof(other_file), "%s/pollux-0123456789abcdee", dir);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", stale);
	UNIT_EQ_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	close(open(other_file, O_CREAT | O_WRONLY, 0600)); /* no socket: not ours to remove */
	UNIT_EQ(plx_meet_settle(dir, "same"), 0);
	UNIT_EQ(plx_meet_offer(9, (int[PLX_MEET_FDS]){mem, -1, -1}, false), 0);
	UNIT_TRUE(access(stale, F_OK) != 0);
	UNIT_EQ(access(other_file, F_OK), 0);
	plx_meet_withdraw(9);
	UNIT_EQ(unlink(other_file), 0);
	UNIT_EQ(rmdir(dir), 0); /* our own has gone, too */
	UNIT_EQ(plx_meet_settle("", "same"), 0);
	close(mem);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(what_is_offered_is_handed_over_and_nothing_else),
	UNIT_TEST(what_is_withdrawn_is_gone_and_may_come_again),
	UNIT_TEST(nobody_waits_for_a_stopped_process),
	UNIT_TEST(another_network_is_told_from_one_that_has_gone),
	UNIT_TEST(lies_are_refused_and_nothing_stays_open),
	UNIT_TEST(an_end_without_a_reply_is_not_taken_for_gone),
	UNIT_TEST(a_reply_that_cant_be_sent_now_is_asked_for_again),
	UNIT_TEST(a_child_that_holds_the_sockets_holds_up_nobody),
	UNIT_TEST(huge_pages_are_taken_from_the_same_user_only),
	UNIT_TEST(nonsense_is_not_answered_and_the_next_is),
	UNIT_TEST(the_silent_keep_others_waiting_for_a_bounded_time),
	UNIT_TEST(without_descriptors_it_answers_later_and_does_not_spin),
	UNIT_TEST(an_asker_without_descriptors_is_told),
	UNIT_TEST(a_guest_is_known_until_it_has_gone),
	UNIT_TEST(settings_that_name_nobody_are_refused),
	UNIT_TEST(a_folder_is_swept_of_the_dead),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"meet", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
