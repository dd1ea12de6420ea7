/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_worker.h - a few workers on the fake device in one thread
 */
#ifndef PLX_UNIT_WORKER_H
#define PLX_UNIT_WORKER_H

#include "plx_conf.h"
#include "plx_unit.h"
#include "plx_worker.h"

#define UNIT_WORKERS 3
#define UNIT_EXACT   UINT64_MAX

struct unit_workers {
	struct plx_conf conf;
	unsigned n;
	struct plx_worker *w[UNIT_WORKERS];
	struct plx_ep_user to[UNIT_WORKERS][UNIT_WORKERS]; /* from, to */
};

/** The settings of workers to come: defaults, on the fake device. */
void unit_workers_conf(struct unit_workers *u);

/** Change one of them. */
void unit_workers_set(struct unit_workers *u, const char *name, const char *text);

/** Make n workers, each with an ep to every other and to itself. */
void unit_workers_open(struct unit_workers *u, unsigned n);

/** Check that nothing is left over, and end them. Killed ones are NULL. */
void unit_workers_close(struct unit_workers *u);

/** The queue of worker i. */
struct plx_queue *unit_queue(const struct unit_workers *u, unsigned i);

/** A turn for each worker, n times. @return how much was done */
unsigned unit_turns(struct unit_workers *u, unsigned n);

/** Look after the peers, as the worker's timer does now and then. */
void unit_check_peers(struct plx_worker *w);

/** Worker i dies: it sends and answers no more. */
void unit_kill(struct unit_workers *u, unsigned i);

/** Start a send, or a receive; the request is the caller's. */
struct plx_req *unit_send(struct unit_workers *u, unsigned from, unsigned to, const void *buf,
	uint64_t len, uint64_t tag, bool sync);
struct plx_req *unit_recv(struct unit_workers *u, unsigned at, void *buf, uint64_t len,
	uint64_t tag, uint64_t mask);

/** Announce an active message to handler 0: its header is what the data starts with. */
struct plx_req *unit_am_send(struct unit_workers *u, unsigned from, unsigned to, uint16_t hdr_len,
	const void *buf, uint64_t len);

/** Run turns until the request is done. @return whether it is */
bool unit_finish(struct unit_workers *u, struct plx_req *req);

/** unit_finish(), its status is so, and it is given back. */
#define UNIT_END(u, req, want)                                                                     \
	do {                                                                                       \
		struct plx_req *unit_req = (req);                                                  \
		UNIT_TRUE_FATAL(unit_finish(u, unit_req));                                         \
		UNIT_EQ(unit_req->status, want);                                                   \
		plx_req_put(unit_req);                                                             \
	} while (0)

/** All that pools gave out has come back; no name, cursor, wait or list entry is left. */
void unit_nothing_left(const struct unit_workers *u);

#endif
