/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ask.c - asking another process for its offers, and verifying what it sent
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "meet_int.h"
#include "mem_int.h"

/* The kernel's credentials of the listener. */
static int
look_who(struct plx_ask *a)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int on = 1;

	if (getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
		setsockopt(a->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		return -errno;
	a->pid = cred.pid;
	a->uid = cred.uid;
	return 0;
}

static int
question_send(const struct plx_ask *a, uint64_t self)
{
	struct meet_question q = {MEET_MAGIC, a->id, self};

	/* A refused client gets its reply without being read: the reply arrives although
	 * nobody reads any more. */
	return send(a->fd, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(q) || errno == EPIPE ||
			errno == ECONNRESET ? 0 : -errno;
}

/* A process that listens as another user than its present one: read the credentials of its
 * answer, then ask again. */
static int
user_changed(const struct plx_proc *whom, uint64_t self, uint64_t id)
{
	struct plx_ask a = {.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .id = id,
		.proc = whom->id};
	struct plx_answer got;
	int rc = a.fd < 0 ? -errno : meet_connect(a.fd, whom->id);

	if (rc == 0)
		rc = look_who(&a);
	if (rc == 0)
		rc = question_send(&a, self);
	if (rc == 0)
		rc = plx_ask_wait(&a, &got, PLX_ASK_MS);
	if (rc == 0)
		plx_answer_close(&got);
	plx_ask_close(&a);
	return rc == -ECONNREFUSED ? -ECONNRESET : rc == -ESRCH ? 0 : rc;
}

static int
ask_far(struct plx_ask *a, const struct plx_proc *whom, const struct plx_proc *self)
{
	int rc;

	a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return -errno;
	rc = meet_connect(a->fd, whom->id);
	if (rc == -ECONNREFUSED) /* it was reachable, or is out of sight of this namespace */
		return plx_proc_same_names(whom, self) ? -ECONNRESET : -EHOSTUNREACH;
	if (rc == 0)
		rc = look_who(a);
	if (rc == 0 && !meet_allows(a->uid, a->fd))
		rc = user_changed(whom, self->id, a->id);
	if (rc == 0)
		rc = question_send(a, self->id);
	return rc == -EACCES ? -EPERM : rc;
}

int
plx_ask_open(struct plx_ask *a, const struct plx_proc *whom, uint64_t id)
{
	struct plx_proc self;
	int rc = plx_proc_self(&self);

	*a = (struct plx_ask){.fd = -1, .id = id, .proc = whom->id};
	if (rc != 0)
		return rc;
	if (!plx_proc_host_same_boot(whom->host, self.host))
		return -EHOSTUNREACH;
	if (whom->id == self.id) {
		a->local = true;
		a->pid = self.pid;
		a->uid = geteuid();
		return 0;
	}
	rc = ask_far(a, whom, &self);
	if (rc != 0)
		plx_ask_close(a);
	return rc;
}

/* A peer may send any kind of file; those that are no pidfd are ignored. */
static bool
is_pidfd(int fd)
{
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 || errno != EBADF;
}

/* A pidfd is readable once the last thread of its process has ended. */
static bool
has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return pidfd >= 0 && poll(&p, 1, 0) > 0;
}

static bool
is_socket(int fd)
{
	int domain, type;
	socklen_t len = sizeof(domain), type_len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_DGRAM;
}

uint64_t
plx_meet_memory_len(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS); /* files of other kinds have none */
	struct stat st;

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
		return 0; /* memory that can shrink would fault when touched */
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 && st.st_size > 0 ? (uint64_t)st.st_size
												 : 0;
}

uint64_t
plx_meet_pages_len(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) != 0)
		return 0;
	return st.st_size > 0 && (fs.f_type == HUGETLBFS_MAGIC || (fs.f_type == TMPFS_MAGIC && st.st_nlink == 0))
		? (uint64_t)st.st_size : 0;
}

bool
plx_meet_is_memory(int fd, uint64_t len, bool trusted)
{
	struct statfs fs;

	return len != 0 && plx_meet_memory_len(fd) == len && fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || (trusted && fs.f_type == HUGETLBFS_MAGIC));
}

bool
plx_meet_is_huge(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
}

void
plx_answer_close(struct plx_answer *out)
{
	for (unsigned i = 0; i < PLX_MEET_FDS; i++) {
		if (out->fd[i] >= 0)
			close(out->fd[i]);
		out->fd[i] = -1;
	}
}

union rights {
	struct cmsghdr head;
	/* a few more than expected: the kernel closes those that do not fit */
	char room[CMSG_SPACE(2 * PLX_MEET_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* Put each descriptor in its place. @return whether there are as many as the reply says */
static bool
rights_take(const struct cmsghdr *c, uint32_t mask, struct plx_answer *out)
{
	unsigned n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int), k = 0;
	const unsigned char *from = CMSG_DATA(c);

	for (unsigned i = 0; i < n; i++, from += sizeof(int)) {
		int fd;

		memcpy(&fd, from, sizeof(fd));
		while (k < PLX_MEET_FDS && ((mask >> k & 1) == 0 || out->fd[k] >= 0))
			k++;
		if (k < PLX_MEET_FDS)
			out->fd[k++] = fd;
		else
			close(fd);
	}
	for (k = 0; k < PLX_MEET_FDS; k++)
		if ((mask >> k & 1) != (out->fd[k] >= 0))
			return false;
	return true;
}

static bool
is_some_memory(int fd, bool own_user)
{
	return plx_meet_memory_len(fd) != 0 || (own_user && plx_meet_pages_len(fd) != 0);
}

static bool
is_what_it_says(const struct plx_answer *a)
{
	return (a->fd[PLX_MEET_MEM] < 0 || is_some_memory(a->fd[PLX_MEET_MEM], a->own_user)) &&
	       (a->fd[PLX_MEET_BELL] < 0 || is_socket(a->fd[PLX_MEET_BELL])) &&
	       (a->fd[PLX_MEET_PID] < 0 || is_pidfd(a->fd[PLX_MEET_PID]));
}

/* @return 0, or the error in the reply */
static int
reply_take(struct plx_ask *a, struct msghdr *msg, const struct meet_reply *r, ssize_t n, struct plx_answer *out)
{
	bool whole = n == sizeof(*r) && r->magic == MEET_MAGIC && r->mask < 1u << PLX_MEET_FDS;
	uint32_t mask = whole ? r->mask : 0, uid = UINT32_MAX;
	struct ucred cred;
	bool all = mask == 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			all = rights_take(c, mask, out);
		if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len >= CMSG_LEN(sizeof(cred))) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			uid = cred.uid;
		}
	}
	if (!whole)
		return -EPROTO;
	if (r->err != 0)
		return r->err == EPERM ? -EPERM : r->err == EAGAIN ? -EBUSY : -ESRCH;
	if (!meet_allows(uid, a->fd))
		return -EPERM;
	out->own_user = meet_is_own_user(uid);
	if ((msg->msg_flags & MSG_CTRUNC) != 0 && !all)
		return -EMFILE; /* the kernel had no descriptor for us */
	if (!all || !is_what_it_says(out))
		return -EPROTO;
	return has_ended(out->fd[PLX_MEET_PID]) ? -ECONNRESET : 0;
}

int
plx_ask_poll(struct plx_ask *a, struct plx_answer *out)
{
	struct meet_reply r;
	struct iovec iov = {&r, sizeof(r)};
	union rights room;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};
	ssize_t n;
	int rc;

	*out = (struct plx_answer){.fd = {-1, -1, -1}, .own_user = a->local};
	if (a->local)
		return meet_offer_copy(a->id, out->fd);
	n = recvmsg(a->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == ECONNRESET) /* it closed before it read our question: the error comes
	                                   * before the reply */
		n = recvmsg(a->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n < 0 && errno == ENOMEM)
		return -ENOMEM;
	if (n < 0 || (n == 0 && msg.msg_controllen == 0)) /* without a reply; it may have dropped us
	                                                   * as silent */
		return plx_meet_gone(a->proc) ? -ECONNRESET : -EBUSY;
	rc = reply_take(a, &msg, &r, n, out);
	if (rc != 0)
		plx_answer_close(out);
	return rc;
}

int
plx_ask_wait(struct plx_ask *a, struct plx_answer *out, int ms)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	int rc = plx_ask_poll(a, out);

	while (rc == -EAGAIN) {
		int n = poll(&p, 1, ms);

		if (n == 0)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
		rc = plx_ask_poll(a, out);
	}
	return rc;
}

void
plx_ask_close(struct plx_ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}
