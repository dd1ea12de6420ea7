/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_dev_cm.h - listeners and connections by a device's manager of connections
 *
 * They carry a few short messages between two processes without each other's worker addresses. A
 * driver whose devices have such a manager (plx_dev_ops.cm) fills in the table; lib/cm uses it
 * besides TCP.
 */
#ifndef PLX_DEV_CM_H
#define PLX_DEV_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PLX_DEV_CM_MSG_MAX 1032 /* bytes of a message */
#define PLX_DEV_CM_SENDS   4	/* messages of one side that the other's device may not have yet */

enum plx_dev_cm_what {
	PLX_DEV_CM_NONE,     /* nothing for the caller */
	PLX_DEV_CM_ASKED,    /* listener: a client; the caller owns id, and may send */
	PLX_DEV_CM_REFUSED,  /* listener: a client was refused because of err */
	PLX_DEV_CM_OPEN,     /* client: it is connected, and may send */
	PLX_DEV_CM_MSG,	     /* a message of len bytes is in buf */
	PLX_DEV_CM_FAILED,   /* because of err, for good: close it */
};

/** A listener or a connection. Owner: one thread at a time. */
struct plx_dev_cm_id {
	int fd; /* readable: event() has something to do */
};

struct plx_dev_cm_event {
	uint8_t what; /* enum plx_dev_cm_what */
	/* -EPROTO not ours, -ECONNREFUSED nobody listens, -EHOSTUNREACH, -ECONNRESET,
	 * -ENODEV removed, -EBADMSG over PLX_DEV_CM_MSG_MAX, others */
	int err;
	uint32_t len;
	struct plx_dev_cm_id *id;
};

/** Thread: owner of the id. Blocks: never, but all make system calls. Allocates: heap. */
struct plx_dev_cm_ops {
	/* Errors: -ENODEV no device has the address, or no manager; -EADDRINUSE and others. */
	int (*listen)(const struct sockaddr *addr, struct plx_dev_cm_id **out);
	/* Begin; event() reports the result. local may be NULL. Errors: as of listen. */
	int (*connect)(const struct sockaddr *to, const struct sockaddr *local,
		struct plx_dev_cm_id **out);
	/* Handle one event; buf has PLX_DEV_CM_MSG_MAX bytes. */
	void (*event)(struct plx_dev_cm_id *id, void *buf, struct plx_dev_cm_event *ev);
	/* Errors: -EAGAIN PLX_DEV_CM_SENDS are in flight; the error that it has failed with. */
	int (*send)(struct plx_dev_cm_id *id, const void *msg, uint32_t len);
	/* Whether closing could still lose a message; fd becomes readable when not. */
	bool (*busy)(struct plx_dev_cm_id *id);
	/* Family AF_UNSPEC if unknown. */
	void (*addrs)(const struct plx_dev_cm_id *id, struct sockaddr_storage *local,
		struct sockaddr_storage *remote);
	void (*close)(struct plx_dev_cm_id *id);
};

#endif
