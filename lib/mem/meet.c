/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * meet.c - the offers of this process to its peers, and the thread that sends them
 *
 * Design notes
 * - One connection is one question. A silent client is dropped after a while, and a user that is
 *   not admitted gets its reply at once and takes no place, so strangers cost an accept() each.
 * - A forked child has none of this: the socket is closed in it, or a name would outlive its
 *   process. It opens one of its own with its first offer. Until the child has closed the
 *   inherited socket, our own close() does not end it, and a connection that was being accepted
 *   during the fork is lost. So sockets are shut down before they are closed, and bind() waits
 *   for a name that is still in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_clock.h"

#include "meet_int.h"
#include "mem_int.h"

#define BACKLOG	     4096 /* the kernel's own bound is usually this */
#define CLIENTS_MAX  64	  /* connected and not asked yet */
#define SILENT_MS    5000 /* longest silence of a client */
#define SCARCE_MS    100  /* pause without a descriptor for a client */
#define OFFER_LISTS  64
#define GUESTS_PRUNE 64	  /* check which guests have exited when there are this many more */

struct offer {
	LIST_ENTRY(offer) link;
	uint64_t id;
	int fd[PLX_MEET_FDS];
	bool own_user;
};

struct client {
	int fd;
	uint64_t since; /* ms */
};

static struct {
	pthread_mutex_t life; /* taken first: the thread starts and ends under it */
	pthread_mutex_t lock; /* offers and guests */
	LIST_HEAD(, offer) offers[OFFER_LISTS];
	unsigned n_offers;
	uint64_t *guests; /* numbers of processes that received something */
	unsigned n_guests, room_guests, n_after_prune;
	/* writer: under life */
	bool up;
	int listen[MEET_PLACES];
	int alive; /* nothing reads it: its existence shows that we are alive */
	int stop, pidfd;
	uint64_t proc;
	_Atomic uint32_t uid; /* the user that we listen as; writers: any under life, and the thread */
	pthread_t thread;
	/* of the thread */
	struct client clients[CLIENTS_MAX];
	unsigned n_clients;
	uint64_t scarce_until; /* ms */
} meet = {.life = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static void
shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Also ends the connection for the other side if a child has a copy. */
static void
hang_up(int fd)
{
	(void)shutdown(fd, SHUT_RDWR);
	close(fd);
}

int
plx_meet_settle(const char *dir, const char *peers)
{
	int rc;

	pthread_mutex_lock(&meet.life);
	rc = meet.up ? meet_who_check(dir) : meet_who_set(dir, peers);
	pthread_mutex_unlock(&meet.life);
	return rc;
}

/* Call with the lock. */
static struct offer *
offer_find(uint64_t id)
{
	struct offer *o;

	LIST_FOREACH(o, &meet.offers[id % OFFER_LISTS], link) {
		if (o->id == id)
			break;
	}
	return o;
}

int
meet_offer_copy(uint64_t id, int fd[PLX_MEET_FDS])
{
	struct offer *o;
	int rc = 0;

	pthread_mutex_lock(&meet.lock);
	o = offer_find(id);
	for (unsigned i = 0; i < PLX_MEET_FDS; i++) {
		fd[i] = o != NULL && o->fd[i] >= 0 && rc == 0 ? fcntl(o->fd[i], F_DUPFD_CLOEXEC, 0) : -1;
		if (o != NULL && o->fd[i] >= 0 && fd[i] < 0)
			rc = -EMFILE;
	}
	pthread_mutex_unlock(&meet.lock);
	for (unsigned i = 0; i < PLX_MEET_FDS && rc != 0; i++)
		shut(&fd[i]);
	return o == NULL ? -ESRCH : rc;
}

bool
plx_meet_guest_gone(uint64_t bits, uint64_t mask)
{
	bool gone = true;

	pthread_mutex_lock(&meet.lock);
	if (meet.up && (meet.proc & mask) == bits)
		gone = false; /* another queue of this process */
	for (unsigned i = 0; i < meet.n_guests && gone; i++)
		gone = (meet.guests[i] & mask) != bits || plx_meet_gone(meet.guests[i]);
	pthread_mutex_unlock(&meet.lock);
	return gone;
}

/* Call with the lock. @return whether it is recorded: otherwise it gets nothing */
static bool
guest_add(uint64_t proc)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < meet.n_guests; i++)
		if (meet.guests[i] == proc)
			return true;
	if (meet.n_guests >= meet.n_after_prune + GUESTS_PRUNE) {
		for (unsigned i = 0; i < meet.n_guests; i++)
			if (!plx_meet_gone(meet.guests[i]))
				meet.guests[kept++] = meet.guests[i];
		meet.n_guests = meet.n_after_prune = kept;
	}
	if (meet.n_guests == meet.room_guests) {
		uint64_t *more = realloc(meet.guests, (meet.room_guests + GUESTS_PRUNE) * sizeof(*more));

		if (more == NULL)
			return false;
		meet.guests = more;
		meet.room_guests += GUESTS_PRUNE;
	}
	meet.guests[meet.n_guests++] = proc;
	return true;
}

union rights {
	struct cmsghdr head;
	char room[CMSG_SPACE(PLX_MEET_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static void
part_add(struct msghdr *msg, union rights *room, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(room->room + msg->msg_controllen);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

/* @return whether the other side has it */
static bool
reply_send(int client, uint32_t err, const int fd[PLX_MEET_FDS])
{
	struct ucred cred = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
	struct meet_reply r = {.magic = MEET_MAGIC, .err = err};
	struct iovec iov = {&r, sizeof(r)};
	union rights room;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room};
	int fds[PLX_MEET_FDS];
	unsigned n = 0;

	memset(&room, 0, sizeof(room));
	for (unsigned i = 0; i < PLX_MEET_FDS && fd != NULL; i++) {
		if (fd[i] < 0)
			continue;
		fds[n++] = fd[i];
		r.mask |= 1u << i;
	}
	/* Without it the kernel reports the real user. It checks these credentials. */
	if (cred.uid != getuid() || cred.gid != getgid())
		part_add(&msg, &room, SCM_CREDENTIALS, &cred, sizeof(cred));
	if (n != 0)
		part_add(&msg, &room, SCM_RIGHTS, fds, n * sizeof(int));
	if (sendmsg(client, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	PLX_LOG(DEBUG, mem, "a process that asked got no answer: %s", strerror(errno));
	return false;
}

static void
answer(int client, const struct meet_question *q, uint32_t uid)
{
	struct offer *o;

	pthread_mutex_lock(&meet.lock);
	o = offer_find(q->id);
	if (o == NULL || (o->own_user && !meet_is_own_user(uid))) {
		reply_send(client, ESRCH, NULL);
	} else if (!guest_add(q->proc)) {
		reply_send(client, EAGAIN, NULL);
	} else {
		int fd[PLX_MEET_FDS];

		memcpy(fd, o->fd, sizeof(fd));
		fd[PLX_MEET_PID] = meet.pidfd;
		/* The kernel limits a user's descriptors in flight, and many processes ask
		 * when a job starts. */
		if (!reply_send(client, 0, fd))
			reply_send(client, EAGAIN, NULL);
	}
	pthread_mutex_unlock(&meet.lock);
}

static uint32_t
user_at(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.uid : UINT32_MAX;
}

/* @return whether this client is finished */
static bool
client_serve(int fd)
{
	struct meet_question q;
	ssize_t n = recv(fd, &q, sizeof(q), MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	if (n == sizeof(q) && q.magic == MEET_MAGIC && q.proc != 0)
		answer(fd, &q, user_at(fd));
	return true;
}

static void
client_new(int fd)
{
	uint32_t uid = user_at(fd);

	if (!meet_allows(uid, fd)) {
		PLX_LOG_RATELIMIT(NOTICE, mem, "no shared memory with a process of user %u: it is not among "
			"the users that a setting allows", uid);
		reply_send(fd, EPERM, NULL);
	} else if (!client_serve(fd)) {
		meet.clients[meet.n_clients++] = (struct client){fd, plx_clock_ms()};
		return;
	}
	hang_up(fd);
}

/* @return false: there is no client, or no descriptor for it now */
static bool
client_accept(int at)
{
	int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		client_new(fd);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		meet.scarce_until = plx_clock_ms() + SCARCE_MS;
	return errno == ECONNABORTED || errno == EINTR;
}

static void
clients_look(const struct pollfd *p, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < meet.n_clients; i++) {
		struct client c = meet.clients[i];

		if ((p[i].revents != 0 && client_serve(c.fd)) || now - c.since >= SILENT_MS) {
			meet.clients[i].fd = -1; /* a child that forks later closes no number that
			                          * is reused */
			hang_up(c.fd);
		} else {
			meet.clients[kept++] = c;
		}
	}
	meet.n_clients = kept;
}

/* The descriptors of the next poll. @return how many */
static unsigned
poll_fill(struct pollfd *p, uint64_t now, int *ms)
{
	bool may_accept = meet.n_clients < CLIENTS_MAX && now >= meet.scarce_until;
	unsigned n = 0;

	*ms = now < meet.scarce_until ? (int)(meet.scarce_until - now) : -1;
	if (meet.n_clients != 0)
		*ms = *ms < 0 ? SILENT_MS : *ms;
	p[n++] = (struct pollfd){.fd = meet.stop, .events = POLLIN};
	for (unsigned i = 0; i < MEET_PLACES; i++)
		p[n++] = (struct pollfd){.fd = may_accept ? meet.listen[i] : -1, .events = POLLIN};
	for (unsigned i = 0; i < meet.n_clients; i++)
		p[n++] = (struct pollfd){.fd = meet.clients[i].fd, .events = POLLIN};
	return n;
}

/* The kernel reports our user at the time of listen(). */
static void
listen_again(void)
{
	for (unsigned i = 0; i < MEET_PLACES; i++)
		if (meet.listen[i] >= 0)
			(void)listen(meet.listen[i], BACKLOG);
	meet.uid = geteuid();
}

/*
 * When a job starts all peers ask at once, on cores that others poll on: a short slice lets
 * the scheduler run us at once. Kernels without slices ignore it.
 */
static void
ask_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = 48, .policy = SCHED_OTHER, .runtime = 100000};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *
meet_run(void *arg)
{
	struct pollfd p[1 + MEET_PLACES + CLIENTS_MAX];
	int ms;

	(void)arg;
	pthread_setname_np(pthread_self(), "plx-meet");
	ask_short_slice();
	for (;;) {
		unsigned n = poll_fill(p, plx_clock_ms(), &ms);

		if (poll(p, n, ms) < 0) {
			if (errno != EINTR) /* fewer descriptors are allowed than we poll */
				usleep(SCARCE_MS * 1000);
			(void)poll(p, 1, 0);
			n = 1;
		}
		if (p[0].revents != 0)
			break;
		if (n == 1)
			continue;
		if (meet.uid != geteuid())
			listen_again();
		clients_look(p + 1 + MEET_PLACES, plx_clock_ms());
		for (unsigned i = 0; i < MEET_PLACES; i++)
			while (p[1 + i].revents != 0 && meet.n_clients < CLIENTS_MAX && client_accept(meet.listen[i]))
				;
	}
	while (meet.n_clients > 0)
		hang_up(meet.clients[--meet.n_clients].fd);
	return NULL;
}

#define NAME_TRIES 500 /* of a millisecond each */

/* The number is ours alone, so only a child that has not closed it yet can have its name. */
static int
bind_name(int fd, const struct sockaddr_un *a, socklen_t len)
{
	int rc = bind(fd, (const struct sockaddr *)a, len);

	for (unsigned i = 0; i < NAME_TRIES && rc != 0 && errno == EADDRINUSE; i++) {
		usleep(1000);
		rc = bind(fd, (const struct sockaddr *)a, len);
	}
	return rc;
}

static int
listen_at(enum meet_place place)
{
	struct sockaddr_un a;
	socklen_t len = meet_name(place, meet.proc, &a);
	int fd, rc;

	if (len == 0)
		return 0;
	if (place == MEET_FOLDER)
		meet_folder_sweep();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The kernel's credentials admit a client, not the mode of a file. */
	if (bind_name(fd, &a, len) != 0 || (place == MEET_FOLDER && chmod(a.sun_path, 0666) != 0) ||
		listen(fd, BACKLOG) != 0) {
		rc = -errno;
		PLX_LOG(ERR, mem, "no socket for peers at %s%s: %s", place == MEET_ABSTRACT ? "@" : "",
			a.sun_path + (place == MEET_ABSTRACT), strerror(-rc));
		close(fd);
		return rc;
	}
	meet.listen[place] = fd;
	return 0;
}

/* In the abstract namespace each kind of socket has names of its own. */
static int
alive_open(void)
{
	struct sockaddr_un a;
	socklen_t len = meet_name(MEET_ABSTRACT, meet.proc, &a);

	if (len == 0)
		return 0; /* in a folder all kinds share names */
	meet.alive = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (meet.alive < 0 || bind_name(meet.alive, &a, len) != 0)
		return -errno;
	(void)shutdown(meet.alive, SHUT_RD);
	return 0;
}

static void
sockets_close(void)
{
	shut(&meet.alive);
	for (unsigned i = 0; i < MEET_PLACES; i++)
		shut(&meet.listen[i]);
	shut(&meet.stop);
	shut(&meet.pidfd);
}

static void
before_fork(void)
{
	pthread_mutex_lock(&meet.life);
	pthread_mutex_lock(&meet.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&meet.lock);
	pthread_mutex_unlock(&meet.life);
}

static void
after_fork_in_child(void)
{
	if (meet.up) {
		sockets_close();
		for (unsigned i = 0; i < meet.n_clients; i++)
			shut(&meet.clients[i].fd);
	}
	for (unsigned i = 0; i < OFFER_LISTS; i++) {
		struct offer *o;

		while ((o = LIST_FIRST(&meet.offers[i])) != NULL) {
			LIST_REMOVE(o, link);
			free(o);
		}
	}
	meet.n_offers = meet.n_clients = meet.n_guests = meet.n_after_prune = 0;
	meet.up = false;
	after_fork();
}
RTE_INIT(meet_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Call with life. */
static int
thread_start(void)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all); /* signals are for the program's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&meet.thread, NULL, meet_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* Call with life. */
static int
meet_start(void)
{
	struct plx_proc self;
	int rc = plx_proc_self(&self);

	if (rc != 0)
		return rc;
	meet.proc = self.id;
	meet.uid = geteuid();
	meet.scarce_until = 0;
	for (unsigned i = 0; i < MEET_PLACES; i++)
		meet.listen[i] = -1;
	meet.alive = -1;
	meet.pidfd = syscall(SYS_pidfd_open, getpid(), 0); /* without one peers use the socket */
	meet.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = meet.stop < 0 ? -errno : alive_open();
	for (unsigned i = 0; i < MEET_PLACES && rc == 0; i++)
		rc = listen_at(i);
	if (rc == 0)
		rc = thread_start();
	if (rc != 0) {
		sockets_close();
		return rc;
	}
	pthread_mutex_lock(&meet.lock);
	meet.up = true;
	pthread_mutex_unlock(&meet.lock);
	return 0;
}

/* Call with life. */
static void
meet_end(void)
{
	struct sockaddr_un a;

	eventfd_write(meet.stop, 1);
	pthread_join(meet.thread, NULL);
	if (meet.listen[MEET_FOLDER] >= 0 && meet_name(MEET_FOLDER, meet.proc, &a) != 0)
		unlink(a.sun_path);
	for (unsigned i = 0; i < MEET_PLACES; i++)
		if (meet.listen[i] >= 0)
			(void)shutdown(meet.listen[i], SHUT_RDWR);
	sockets_close();
	pthread_mutex_lock(&meet.lock);
	meet.up = false;
	free(meet.guests);
	meet.guests = NULL;
	meet.n_guests = meet.room_guests = meet.n_after_prune = 0;
	pthread_mutex_unlock(&meet.lock);
}

int
plx_meet_offer(uint64_t id, const int fd[PLX_MEET_FDS], bool own_user)
{
	struct offer *o, *fresh = calloc(1, sizeof(*fresh));
	int rc = 0;

	if (fresh == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&meet.life);
	if (!meet.up)
		rc = meet_start();
	else if (meet.uid != geteuid())
		listen_again();
	if (rc == 0) {
		pthread_mutex_lock(&meet.lock);
		o = offer_find(id);
		if (o == NULL) {
			o = fresh;
			fresh = NULL;
			o->id = id;
			LIST_INSERT_HEAD(&meet.offers[id % OFFER_LISTS], o, link);
			meet.n_offers++;
		}
		memcpy(o->fd, fd, sizeof(o->fd));
		o->own_user = own_user;
		pthread_mutex_unlock(&meet.lock);
	}
	pthread_mutex_unlock(&meet.life);
	free(fresh);
	return rc;
}

void
plx_meet_refresh(void)
{
	pthread_mutex_lock(&meet.life);
	if (meet.up && meet.uid != geteuid())
		listen_again();
	pthread_mutex_unlock(&meet.life);
}

void
plx_meet_withdraw(uint64_t id)
{
	struct offer *o;

	pthread_mutex_lock(&meet.life);
	pthread_mutex_lock(&meet.lock);
	o = offer_find(id);
	if (o != NULL) {
		LIST_REMOVE(o, link);
		meet.n_offers--;
	}
	pthread_mutex_unlock(&meet.lock);
	if (o != NULL && meet.n_offers == 0)
		meet_end();
	pthread_mutex_unlock(&meet.life);
	free(o);
}
