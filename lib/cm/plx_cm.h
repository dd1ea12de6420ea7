/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_cm.h - short messages over non-blocking TCP, before there is an ep
 *
 * Sockets only: what the messages mean is the worker's business. A message is a
 * head of 8 bytes (magic, version, length) and up to PLX_CM_MSG_MAX bytes. Whatever
 * does not begin like that ends its connection. Nothing waits: all is done in
 * plx_cm_poll(), by one thread at a time, the owner.
 */
#ifndef PLX_CM_H
#define PLX_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "plx_stat.h"

#define PLX_CM_MSG_MAX		  1024 /* bytes of a message */
#define PLX_CM_HEAD		  8
#define PLX_CM_MAX_HALF_OPEN	  256  /* accepted, nothing heard; then the oldest goes */
#define PLX_CM_HEAR_TIMEOUT_MS	  5000 /* of an accepted connection's first message */
#define PLX_CM_CONNECT_TIMEOUT_MS 10000
#define PLX_CM_MAX_EVENTS	  16 /* handled in one poll */

struct plx_cm_stat {
	uint64_t accepts, connects;
	uint64_t msgs_in, msgs_out;
	uint64_t drop_bad_msg;	 /* connections ended for what they sent */
	uint64_t drop_half_open; /* ended because there were too many */
	uint64_t timeouts, accept_errors;
};

/** Sockets of one owner. */
struct plx_cm {
	int epfd;	/* -1: closed */
	int timerfd;
	uint32_t n;	 /* sockets and listeners */
	uint32_t n_half; /* half open */
	TAILQ_HEAD(plx_cm_socks, plx_cm_sock) socks; /* the oldest first */
	struct plx_cm_stat stat;
};

/** What epoll points to. */
struct plx_cm_fd {
	int fd;
	void (*on_event)(struct plx_cm_fd *f, uint32_t events);
};

struct plx_cm_listener {
	struct plx_cm_fd fd;
	struct plx_cm *cm;
	/* a whole first message has come on an accepted socket, which is the callee's now */
	void (*on_first)(struct plx_cm_listener *l, struct plx_cm_sock *s, const void *msg,
		uint32_t len);
};

struct plx_cm_sock {
	struct plx_cm_fd fd;
	struct plx_cm *cm;		/* NULL: detached */
	struct plx_cm_listener *listener; /* while half open */
	bool connecting;
	int pending_err;      /* told at the deadline */
	uint64_t deadline_ns; /* 0: none */
	/* Both may close any socket, this one too. on_fail is the last call. */
	void (*on_msg)(struct plx_cm_sock *s, const void *msg, uint32_t len);
	void (*on_fail)(struct plx_cm_sock *s, int err); /* -ECONNRESET closed; -EBADMSG; others */
	void *arg;
	TAILQ_ENTRY(plx_cm_sock) link;
	uint32_t in_len, out_len, out_pos;
	uint8_t in[PLX_CM_HEAD + PLX_CM_MSG_MAX], out[PLX_CM_HEAD + PLX_CM_MSG_MAX];
};

/** Thread of all functions: owner. Blocks: never, but they make system calls. */

/** Errors: -errno of the system's. */
int plx_cm_open(struct plx_cm *cm);

/** Close all sockets without a word to their owners; listeners must be gone. */
void plx_cm_close(struct plx_cm *cm);

/** Do what is due. @return how many events were handled */
unsigned plx_cm_poll(struct plx_cm *cm);

/** @return whether plx_cm_poll() would find something. */
bool plx_cm_waits(const struct plx_cm *cm);

/**
 * Connect; messages sent before it stands go out then.
 * @param local to bind to, or NULL
 * @return 0; a failure to connect comes through on_fail, from plx_cm_poll()
 * Errors: -EINVAL not an address; -EADDRNOTAVAIL and others for local; -ENOMEM.
 */
int plx_cm_connect(struct plx_cm *cm, const struct sockaddr *to, socklen_t to_len,
	const struct sockaddr *local, socklen_t local_len, struct plx_cm_sock **out);

/** Send one message. @return 0, or -EBUSY one is on its way already, or -errno: it is broken. */
int plx_cm_send(struct plx_cm_sock *s, const void *msg, uint32_t len);

/** Close; what was written is delivered if the other side reads it. Accepts NULL. */
void plx_cm_sock_close(struct plx_cm_sock *s);

/** Take the socket out of its cm: it is not looked at until it is in another. */
void plx_cm_detach(struct plx_cm_sock *s);
int plx_cm_attach(struct plx_cm *cm, struct plx_cm_sock *s);

/** Errors: -EINVAL not an address; -EADDRINUSE and others. */
int plx_cm_listen(struct plx_cm *cm, const struct sockaddr *addr, socklen_t len,
	struct plx_cm_listener *l);
/** Stop; accepted sockets that have said nothing are closed. */
void plx_cm_unlisten(struct plx_cm_listener *l);

/* Inside lib/cm. */
int cm_add(struct plx_cm *cm, struct plx_cm_fd *f, uint32_t events);
int cm_sock_new(struct plx_cm *cm, int fd, struct plx_cm_sock **out);
void cm_deadline(struct plx_cm_sock *s, uint32_t ms);
int cm_addr_check(const struct sockaddr *addr, socklen_t len);

/* name.c */

#define PLX_NAME_DATA_MAX 78 /* an address of one device is up to 77 */

/** @return a hash of a name. Thread: any. */
uint64_t plx_name_hash(const char *name);

/**
 * Let others of this machine find len bytes by name, until *fd is closed.
 * Errors: -EADDRINUSE the same bytes are published by this name already; -EMSGSIZE over
 * PLX_NAME_DATA_MAX; those of socket. Thread: any.
 */
int plx_name_publish(const char *name, const void *data, size_t len, int *fd);

/**
 * Call fn with all bytes that are published by this name; anybody may have done so.
 * @return how many, or -errno. Thread: any. Blocks: may (file). Allocates: heap.
 */
int plx_name_each(const char *name, void (*fn)(const void *data, size_t len, void *arg), void *arg);

#endif
