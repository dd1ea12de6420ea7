/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_dev_cm.h - listeners and connections by the manager of connections that devices have
 *
 * They carry a few short messages between two processes that know no worker address of each
 * other yet. A driver whose devices have such a manager (plx_dev_ops.cm) fills in the table;
 * lib/cm uses it beside TCP.
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
	PLX_DEV_CM_ASKED,    /* listener: a client; id is the caller's, and may be sent to */
	PLX_DEV_CM_REFUSED,  /* listener: somebody was refused because of err */
	PLX_DEV_CM_OPEN,     /* client: it stands, and may be sent to */
	PLX_DEV_CM_MSG,	     /* a message of len bytes is in buf */
	PLX_DEV_CM_FAILED,   /* because of err, for good: to be closed */
};

/** A listener or a connection. Owner: one thread at a time. */
struct plx_dev_cm_id {
	int fd; /* readable: event() has something to do */
};

struct plx_dev_cm_event {
	uint8_t what; /* enum plx_dev_cm_what */
	/* -EPROTO a stranger, -ECONNREFUSED nobody listens, -EHOSTUNREACH, -ECONNRESET, -ENODEV
	 * removed, -EBADMSG over PLX_DEV_CM_MSG_MAX, others */
	int err;
	uint32_t len;
	struct plx_dev_cm_id *id;
};

/** Thread: owner of the id. Blocks: never, but all make system calls. Allocates: heap. */
struct plx_dev_cm_ops {
	/* Errors: -ENODEV no device has the address, or no manager; -EADDRINUSE and others. */
	int (*listen)(const struct sockaddr *addr, struct plx_dev_cm_id **out);
	/* Begin; event() tells how it ends. local may be NULL. Errors: as of listen. */
	int (*connect)(const struct sockaddr *to, const struct sockaddr *local,
		struct plx_dev_cm_id **out);
	/* One thing that has happened; buf has PLX_DEV_CM_MSG_MAX bytes. */
	void (*event)(struct plx_dev_cm_id *id, void *buf, struct plx_dev_cm_event *ev);
	/* Errors: -EAGAIN PLX_DEV_CM_SENDS are under way; what it has failed with. */
	int (*send)(struct plx_dev_cm_id *id, const void *msg, uint32_t len);
	/* Whether something sent may still be lost by closing; fd tells of its end. */
	bool (*busy)(struct plx_dev_cm_id *id);
	/* Family AF_UNSPEC when not known. */
	void (*addrs)(const struct plx_dev_cm_id *id, struct sockaddr_storage *local,
		struct sockaddr_storage *remote);
	void (*close)(struct plx_dev_cm_id *id);
};

#endif
