/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_cm.h - short messages before an ep exists, over non-blocking TCP or by the devices' manager
 * of connections
 *
 * Sockets only: the worker interprets the messages. A message is a head of 8 bytes (magic,
 * version, length) and up to PLX_CM_MSG_MAX bytes. Anything else closes its connection. Nothing
 * blocks: all is done in plx_cm_poll(), by one thread at a time, the owner.
 */
#ifndef PLX_CM_H
#define PLX_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "plx_dev_cm.h"
#include "plx_stat.h"

#define PLX_CM_MSG_MAX		  1024 /* bytes of a message */
#define PLX_CM_HEAD		  8
#define PLX_CM_MAX_HALF_OPEN	  256  /* accepted and silent; then the oldest is closed */
#define PLX_CM_HEAR_TIMEOUT_MS	  5000 /* for an accepted connection's first message */
#define PLX_CM_MAX_AWAITED	  256  /* plx_cm_await(); then others wait to be accepted */
#define PLX_CM_REST_MS		  100  /* pause of listeners, until they try to accept again */
#define PLX_CM_CONNECT_TIMEOUT_MS 10000
#define PLX_CM_DEV_TIMEOUT_MS	  1000 /* by the devices' manager, before TCP is tried */
#define PLX_CM_LINGER_MS	  1000 /* of a closed one, until its messages have arrived */
#define PLX_CM_MAX_EVENTS	  16   /* handled in one poll */
#define PLX_CM_MAX_PORTS	  16   /* tried until one is free for TCP and the devices */

/** Transports of listeners and clients; the setting's choices. */
enum plx_cm_transport {
	PLX_CM_TCP,
	PLX_CM_RDMA, /* the devices' manager */
	PLX_CM_AUTO, /* a listener: both; a client: the devices' manager, then TCP */
};

struct plx_cm_stat {
	uint64_t accepts, connects;	    /* of all */
	uint64_t dev_accepts, dev_connects; /* of them, by the devices' manager */
	uint64_t dev_falls;		    /* clients that fell back to TCP */
	uint64_t msgs_in, msgs_out;
	uint64_t drop_bad_msg;	 /* connections closed for an invalid message */
	uint64_t drop_half_open; /* closed because there were too many */
	uint64_t timeouts, accept_errors;
	uint64_t listener_rests; /* for want of descriptors, or with too many awaited */
};

extern const struct plx_stat_row plx_cm_stat_rows[];

/** Sockets of one owner. */
struct plx_cm {
	int epfd;	/* -1: closed */
	int timerfd;
	enum plx_cm_transport transport;
	const struct plx_dev_cm_ops *dev; /* NULL: no device has a manager */
	uint32_t n;	 /* sockets and listeners */
	uint32_t n_half; /* half open */
	uint32_t n_awaited;
	uint64_t rest_ns; /* end of the listeners' pause; 0: none */
	LIST_HEAD(, plx_cm_listener) resting;
	TAILQ_HEAD(plx_cm_socks, plx_cm_sock) socks; /* the oldest first */
	struct plx_cm_stat stat;
};

/** An epoll event's data points to this. */
struct plx_cm_fd {
	int fd;
	void (*on_event)(struct plx_cm_fd *f, uint32_t events);
};

struct plx_cm_listener {
	struct plx_cm_fd fd;	/* fd is -1: no TCP */
	struct plx_cm_fd dev_fd;
	struct plx_dev_cm_id *id; /* NULL: not by the devices' manager */
	struct plx_cm *cm;
	bool rests; /* its TCP socket is not polled */
	LIST_ENTRY(plx_cm_listener) rest_link;
	/* the whole first message has arrived on an accepted socket, which the callee owns now */
	void (*on_first)(struct plx_cm_listener *l, struct plx_cm_sock *s, const void *msg,
		uint32_t len);
};

struct plx_cm_sock {
	struct plx_cm_fd fd;
	struct plx_cm *cm;		/* NULL: detached */
	struct plx_cm_listener *listener; /* while half open */
	struct plx_dev_cm_id *id; /* NULL: a TCP socket */
	const struct plx_dev_cm_ops *dev;
	bool connecting;
	bool (*falls)(struct plx_cm_sock *s); /* it can't connect: @return whether it continues; or
	                                       * NULL */
	uint64_t awaited_ns;  /* start, 0: not awaited */
	bool closing;	      /* private; until its messages have arrived */
	int pending_err;      /* reported at the deadline */
	uint64_t deadline_ns; /* 0: none */
	/* Both may close any socket, including this one. on_fail is the last call. */
	void (*on_msg)(struct plx_cm_sock *s, const void *msg, uint32_t len);
	void (*on_fail)(struct plx_cm_sock *s, int err); /* -ECONNRESET closed; -EBADMSG; others */
	void *arg;
	TAILQ_ENTRY(plx_cm_sock) link;
	struct sockaddr_storage to, local; /* while connecting; local may be of AF_UNSPEC */
	uint32_t in_len, out_len, out_pos;
	uint8_t in[PLX_CM_HEAD + PLX_CM_MSG_MAX], out[PLX_CM_HEAD + PLX_CM_MSG_MAX];
};

/** Thread of all functions: owner. Blocks: never, but they make system calls. */

/**
 * @param dev the devices' manager, or NULL
 * Errors: -errno of the system's.
 */
int plx_cm_open(struct plx_cm *cm, enum plx_cm_transport transport,
	const struct plx_dev_cm_ops *dev);

/**
 * Close all sockets without notifying their owners; listeners must be closed. Blocks: up to
 * PLX_CM_LINGER_MS, for closed ones whose last message has not arrived.
 */
void plx_cm_close(struct plx_cm *cm);

/**
 * In a forked child, inside of fork(): close the child's copies of the descriptors and
 * forget the sockets, which belong to the parent. Those of the devices' manager stay as
 * they are.
 */
void plx_cm_lose(struct plx_cm *cm);

/** The same of a listener; before its cm. */
void plx_cm_listener_lose(struct plx_cm_listener *l);

/** Do what is due. @return how many events were handled */
unsigned plx_cm_poll(struct plx_cm *cm);

/** @return whether plx_cm_poll() would find an event. */
bool plx_cm_waits(const struct plx_cm *cm);

/**
 * Connect; messages sent before are sent when it is connected.
 * @param local to bind to, or NULL
 * @return 0; on_fail reports a failure to connect, from plx_cm_poll()
 * Errors: -EINVAL not an address; -EADDRNOTAVAIL and others for local; -ENODEV PLX_CM_RDMA
 * and no device; -ENOMEM.
 */
int plx_cm_connect(struct plx_cm *cm, const struct sockaddr *to, socklen_t to_len,
	const struct sockaddr *local, socklen_t local_len, struct plx_cm_sock **out);

/** Send one message. @return 0, or -EBUSY one is in flight already, or -errno: it is broken. */
int plx_cm_send(struct plx_cm_sock *s, const void *msg, uint32_t len);

/**
 * Close; sent messages are delivered if the other side reads them, but those of a detached
 * one perhaps not. Accepts NULL.
 */
void plx_cm_sock_close(struct plx_cm_sock *s);

/**
 * The other side of an attached socket has to send a message, or the socket fails with
 * -ETIMEDOUT. With PLX_CM_MAX_AWAITED of these, listeners of the same cm accept no others,
 * and one that has been silent for PLX_CM_HEAR_TIMEOUT_MS fails at once if others wait.
 * @param ms time limit, from now on
 */
void plx_cm_await(struct plx_cm_sock *s, uint32_t ms);

/** Its socket addresses; family AF_UNSPEC if unknown. */
void plx_cm_sock_addrs(const struct plx_cm_sock *s, struct sockaddr_storage *local,
	struct sockaddr_storage *remote);

/** Take the socket out of its cm: it is not polled until it is in another. */
void plx_cm_detach(struct plx_cm_sock *s);
int plx_cm_attach(struct plx_cm *cm, struct plx_cm_sock *s);

/**
 * Listen on a port, of TCP and of the devices' manager. An address of no device has TCP
 * only. Errors: -EINVAL not an address; -EADDRINUSE, of either; -ENODEV PLX_CM_RDMA and not
 * of a device; others.
 */
int plx_cm_listen(struct plx_cm *cm, const struct sockaddr *addr, socklen_t len,
	struct plx_cm_listener *l);
/** Stop; silent accepted sockets are closed. */
void plx_cm_unlisten(struct plx_cm_listener *l);
/** The address of a listener. @return 0 or -errno */
int plx_cm_listener_addr(const struct plx_cm_listener *l, struct sockaddr_storage *addr);

/* name.c */

#define PLX_NAME_DATA_MAX 516 /* a worker's address, and a number */

/** @return a hash of a name. Thread: any. */
uint64_t plx_name_hash(const char *name);

/** What is published, with fd >= 0. Owner: the caller. */
struct plx_name {
	int fd;
	uint64_t id;
};

/**
 * Let other processes of this user and machine, and no others, find len bytes by name, until
 * plx_name_end(). The first one starts the thread that answers (plx_meet.h). Errors: -EMSGSIZE over
 * PLX_NAME_DATA_MAX; those of socket and of plx_meet_offer(). Thread: any. Blocks: may.
 */
int plx_name_publish(const char *name, const void *data, size_t len, struct plx_name *out);

/** Accepts one with fd -1, which it is then. Thread: one at a time. Blocks: may. */
void plx_name_end(struct plx_name *n);

/** The same in a forked child, inside of fork(): the bytes are the parent's. */
void plx_name_lose(struct plx_name *n);

/**
 * Call fn with all bytes that this user's processes have published under this name; the
 * same bytes may come twice while other sockets are opened and closed. Data is NULL for those of a
 * process that does not answer: it is stopped, or has too many questions.
 * @return how many, or -errno. Thread: any. Blocks: may (netlink; 2 s for each process that is
 *   stopped). Allocates: no. Errors: -EOPNOTSUPP the kernel, before 5.3, does not report the owner of
 *   a socket; those of netlink.
 */
int plx_name_each(const char *name, void (*fn)(const void *data, size_t len, void *arg), void *arg);

#endif
