/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_offload.h - the receives that devices match, as software shadows them
 *
 * Design notes
 * - lib/tag has every posted receive and decides about every message that comes to software.
 *   Devices have some of these receives as well; this library decides which, and keeps both in
 *   step. It is written for devices that answer late, as hardware does: nothing here assumes that
 *   a device's list is as software last left it.
 * - doc/guides/tag_offload.md explains each rule.
 */
#ifndef PLX_OFFLOAD_H
#define PLX_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>

#include "plx_dev.h"
#include "plx_req.h"
#include "plx_stat.h"
#include "plx_tag.h"

#define PLX_OFFLOAD_MAX_RECVS	4096u /* in one device */
#define PLX_OFFLOAD_MAX_SENDERS 1024 /* whose device is remembered, if there are several */
#define PLX_OFFLOAD_LOOK	16 /* receives skipped in search of one that may go to a device */
#define PLX_OFFLOAD_TELL	8192u /* messages after which a device gets the count in any case */
#define PLX_OFFLOAD_TRIAL	1024u /* receives of a trial period */

/** Counters of one worker. Writer: owner; readers: any, relaxed. */
struct plx_offload_stat {
	uint64_t posts;		/* receives posted to devices */
	uint64_t moves;		/* of these, after they were posted in software */
	uint64_t posted;	/* of these, there now */
	uint64_t posted_max;	/* most ever */
	uint64_t consumed;	/* messages that matched a receive in a device */
	uint64_t placed;	/* of these, written to the buffer by the device */
	uint64_t inlined;	/* of these, short and copied by software */
	uint64_t finished;	/* of these, announced or in parts, and finished by software */
	uint64_t truncated;	/* of these, longer than the buffer */
	uint64_t withdrawn;	/* receives that software matched before the device might */
	uint64_t cancels;	/* receives that a device was asked to return */
	uint64_t cancel_late;	/* of these, matched before */
	uint64_t syncs;		/* counts sent by a command of their own */
	uint64_t soft;		/* receives that only software has now */
	uint64_t soft_short;	/* stayed there: too short */
	uint64_t soft_dt;	/* stayed there: not contiguous */
	uint64_t soft_order;	/* stayed there: may match the messages of an earlier one there */
	uint64_t soft_source;	/* stayed there: may match messages of another device */
	uint64_t soft_full;	/* stayed there: the list is full */
	uint64_t soft_refused;	/* stayed there: the device refuses it */
	uint64_t demotions;	/* devices that were given up */
};

/** Rows that describe struct plx_offload_stat, ended by PLX_STAT_END. */
extern const struct plx_stat_row plx_offload_stat_rows[];

struct plx_offload;
struct offload_recv;
TAILQ_HEAD(offload_list, offload_recv);

/* One queue of the worker. */
struct plx_offload_dev {
	struct plx_offload *o;
	struct plx_queue *q;
	bool on;       /* gets receives */
	uint16_t seen; /* tagged messages that software has processed, modulo 2^16 */
	uint16_t told; /* of that, the count that the device knows */
	uint64_t n_held;
	uint32_t n_given, n_withdrawn; /* receives of the present trial */
	struct offload_list held; /* in the order posted */
	struct offload_list free;
};

#define OFFLOAD_SOFT_KEYS  256
#define OFFLOAD_SOFT_MASKS 8

/* The receives that only software has, by hash: which messages may they match? */
struct offload_soft {
	uint32_t n;
	uint32_t n_other; /* with a mask that found no room in masks */
	struct {
		uint64_t mask;
		uint32_t n; /* 0: free */
	} masks[OFFLOAD_SOFT_MASKS];
	uint32_t keys[OFFLOAD_SOFT_KEYS]; /* receives by hash of mask and tag */
};

/** Actions of the owner when a device has finished a receive, which is then in no list. */
struct plx_offload_ops {
	/* rx matched and completes it; valid during the call */
	void (*finish)(void *arg, struct plx_req *req, const struct plx_rx *rx);
	/* it is still posted in the matching engine, and its cancel has succeeded */
	void (*cancelled)(struct plx_req *req);
};

/* Owner: the worker's. */
struct plx_offload {
	bool on;	  /* a device gets receives */
	bool look;	  /* a place became free, or an obstacle is gone */
	bool unordered;	  /* soft_list is out of order, and nothing moves any more */
	uint32_t n_recvs; /* of all devices; 0: none ever had any */
	uint32_t n_done;  /* receives that completed since plx_offload_tend() */
	uint32_t n_devs;
	struct plx_tag *tag;
	struct offload_recv *recvs; /* of all devices */
	uint64_t len_min;
	uint32_t withdrawn_max; /* percent */
	uint64_t sender_mask; /* bits of a tag that identify the sender, 0: unknown */
	const struct plx_offload_ops *ops;
	void *arg;
	struct plx_offload_dev devs[PLX_DEV_MAX];
	struct offload_soft soft;
	TAILQ_HEAD(, offload_req) soft_list; /* the same receives, in the order posted */
	struct offload_sender *senders; /* with several queues; PLX_OFFLOAD_MAX_SENDERS */
	struct plx_offload_stat stat;
};

struct plx_offload_params {
	struct plx_queue *const *queues; /* all of the worker's */
	uint32_t n_queues;
	struct plx_tag *tag;
	uint64_t len_min;     /* bytes, least length of receives for devices */
	uint32_t withdrawn_max; /* percent of a trial at which a device is given up; 0: never */
	uint64_t sender_mask;
	const struct plx_offload_ops *ops;
	void *arg; /* of ops->finish */
};

/**
 * Begin to use the queues that match tags; without any this has no effect.
 * @return 0 or -ENOMEM. Thread: any, before the owner runs turns. Allocates: heap.
 */
int plx_offload_open(struct plx_offload *o, const struct plx_offload_params *params);

/** After the queues are closed. Thread: owner. */
void plx_offload_close(struct plx_offload *o);

/**
 * A receive was posted in the matching engine: post it to a device as well, if that is
 * permitted. Called for each, unless o->n_recvs is 0. Thread: owner. Blocks: never.
 * Allocates: no.
 */
void plx_offload_post(struct plx_offload *o, struct plx_req *req);

/**
 * Software has matched a receive whose req->offload is not 0, and removed it from the
 * matching engine: withdraw it. Thread: owner.
 */
void plx_offload_matched(struct plx_offload *o, struct plx_req *req);

/**
 * The application cancels a receive whose req->offload is not 0.
 * @return false: no device has it, the caller continues; true: ops->cancelled is called,
 *   perhaps it was already, or a message completes the receive. Thread: owner.
 */
bool plx_offload_cancel(struct plx_offload *o, struct plx_req *req);

/**
 * Software has processed a burst of queue i: count it, and send the count to the device if
 * that lets it match more. Called for each burst that is not empty, unless o->n_recvs is 0.
 * Thread: owner.
 */
void plx_offload_seen(struct plx_offload *o, uint32_t i, const struct plx_rx *rx, uint16_t n);

/** Slow path of plx_offload_tend(). */
void plx_offload_tend_slow(struct plx_offload *o);

/**
 * Once a turn, after its bursts: move receives of software to devices that have room now.
 * @return the number of receives that devices have completed since the last call. Thread:
 *   owner.
 */
static inline uint32_t
plx_offload_tend(struct plx_offload *o)
{
	uint32_t n = o->n_done;

	o->n_done = 0;
	if (o->look)
		plx_offload_tend_slow(o);
	return n;
}

/**
 * Give a device up: it gets no more receives, and those in it are withdrawn, last first.
 * This is permanent. It happens automatically if the device is not worth it; see
 * withdrawn_max. Thread: owner.
 */
void plx_offload_demote(struct plx_offload *o, uint32_t i);

/** Write the receives in devices, and the counters, as text. Thread: owner. */
void plx_offload_dump(FILE *f, const struct plx_offload *o);

#endif
