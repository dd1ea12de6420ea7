/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_offload.h - the receives that devices match, as software shadows them
 *
 * Design notes
 * lib/tag holds every posted receive and decides alone about every message that comes
 * to software. Devices hold some of these receives as well; this library decides which,
 * and keeps both in step. It is written for devices that answer late, as hardware does:
 * nothing here takes a device's list to be as software last left it.
 *
 * doc/guides/tag_offload.md says why each rule is needed.
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
#define PLX_OFFLOAD_MAX_SENDERS 1024 /* whose device is remembered, when there are several */
#define PLX_OFFLOAD_LOOK	16 /* receives passed over in search of one that may go to a device */
#define PLX_OFFLOAD_TELL	8192u /* messages, of which a device is told the count in any case */
#define PLX_OFFLOAD_TRIAL	1024u /* receives, then a device has to have paid */

/** Counters of one worker. Writer: owner; readers: any, relaxed. */
struct plx_offload_stat {
	uint64_t posts;		/* receives given to devices */
	uint64_t moves;		/* of these, later than they were posted */
	uint64_t posted;	/* of these, there now */
	uint64_t posted_max;	/* most ever */
	uint64_t consumed;	/* messages that met a receive in a device */
	uint64_t placed;	/* of these, written to the buffer by the device */
	uint64_t inlined;	/* of these, short and copied by software */
	uint64_t finished;	/* of these, announced or in parts, and finished by software */
	uint64_t truncated;	/* of these, longer than the buffer */
	uint64_t withdrawn;	/* receives that software matched before the device might */
	uint64_t cancels;	/* receives that a device was asked to give back */
	uint64_t cancel_late;	/* of these, met by a message before */
	uint64_t syncs;		/* counts told by a command of their own */
	uint64_t soft;		/* receives held by software alone now */
	uint64_t soft_short;	/* stayed there: shorter than worth it */
	uint64_t soft_dt;	/* stayed there: not one piece of memory */
	uint64_t soft_order;	/* stayed there: may match what an earlier one there may */
	uint64_t soft_source;	/* stayed there: may match what comes by another device */
	uint64_t soft_full;	/* stayed there: the list is full */
	uint64_t soft_refused;	/* stayed there: the device does not take it */
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
	bool on;       /* is given receives */
	uint16_t seen; /* tagged messages that software has dealt with, modulo 2^16 */
	uint16_t told; /* of that, what the device knows */
	uint64_t n_held;
	uint32_t n_given, n_withdrawn; /* receives, of the trial that runs */
	struct offload_list held; /* in the order posted */
	struct offload_list free;
};

#define OFFLOAD_SOFT_KEYS  256
#define OFFLOAD_SOFT_MASKS 8

/* The receives that software alone holds, by hash: what may they match? */
struct offload_soft {
	uint32_t n;
	uint32_t n_other; /* with a mask that found no room in masks */
	struct {
		uint64_t mask;
		uint32_t n; /* 0: free */
	} masks[OFFLOAD_SOFT_MASKS];
	uint32_t keys[OFFLOAD_SOFT_KEYS]; /* receives by hash of mask and tag */
};

/** What the owner does when a device is done with a receive, which is then in no list. */
struct plx_offload_ops {
	/* rx met it and is to be finished; borrowed for the call */
	void (*finish)(void *arg, struct plx_req *req, const struct plx_rx *rx);
	/* it is still posted in the matching engine, and its cancel has succeeded */
	void (*cancelled)(struct plx_req *req);
};

/* Owner: the worker's. */
struct plx_offload {
	bool on;	  /* a device is given receives */
	bool look;	  /* a place came free, or what kept others back is gone */
	bool unordered;	  /* soft_list is, and nothing moves any more */
	uint32_t n_recvs; /* of all devices; 0: none ever had any */
	uint32_t n_done;  /* receives that ended since plx_offload_tend() */
	uint32_t n_devs;
	struct plx_tag *tag;
	struct offload_recv *recvs; /* of all devices */
	uint64_t len_min;
	uint32_t withdrawn_max; /* percent */
	uint64_t sender_mask; /* bits of a tag that tell the sender, 0: not known */
	const struct plx_offload_ops *ops;
	void *arg;
	struct plx_offload_dev devs[PLX_DEV_MAX];
	struct offload_soft soft;
	TAILQ_HEAD(, plx_req) soft_list; /* the same receives, in the order posted */
	struct offload_sender *senders; /* with several queues; PLX_OFFLOAD_MAX_SENDERS */
	struct plx_offload_stat stat;
};

struct plx_offload_params {
	struct plx_queue *const *queues; /* all of the worker's */
	uint32_t n_queues;
	struct plx_tag *tag;
	uint64_t len_min;     /* bytes, of receives that devices are given */
	uint32_t withdrawn_max; /* percent of a trial at which a device is given up; 0: never */
	uint64_t sender_mask;
	const struct plx_offload_ops *ops;
	void *arg; /* of ops->finish */
};

/**
 * Begin to use the queues that match tags; with none of them nothing happens ever.
 * @return 0 or -ENOMEM. Thread: any, before the owner gives turns. Allocates: heap.
 */
int plx_offload_open(struct plx_offload *o, const struct plx_offload_params *params);

/** After the queues are closed. Thread: owner. */
void plx_offload_close(struct plx_offload *o);

/**
 * A receive was posted in the matching engine: give it to a device as well, if that is right.
 * Called for each, unless o->n_recvs is 0. Thread: owner. Blocks: never. Allocates: no.
 */
void plx_offload_post(struct plx_offload *o, struct plx_req *req);

/**
 * Software has matched a receive whose req->offload is not 0, and removed it from the matching
 * engine: take it back from where it was. Thread: owner.
 */
void plx_offload_matched(struct plx_offload *o, struct plx_req *req);

/**
 * The application wants a receive back whose req->offload is not 0.
 * @return false: no device has it, the caller goes on; true: ops->cancelled is called, perhaps it
 * was already, or the receive is completed by a message. Thread: owner.
 */
bool plx_offload_cancel(struct plx_offload *o, struct plx_req *req);

/**
 * Software has dealt with a burst of queue i: count it, and tell the device if that lets it
 * match more. Called for each burst that is not empty, unless o->n_recvs is 0. Thread: owner.
 */
void plx_offload_seen(struct plx_offload *o, uint32_t i, const struct plx_rx *rx, uint16_t n);

/** Slow path of plx_offload_tend(). */
void plx_offload_tend_slow(struct plx_offload *o);

/**
 * Once a turn, after its bursts: give receives that software holds to devices that have room now.
 * @return how many receives devices have ended since the last call. Thread: owner.
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
 * Give a device up: it gets no more receives, and those it has are asked back, last first.
 * There is no way back. By itself when it does not pay; see withdrawn_max. Thread: owner.
 */
void plx_offload_demote(struct plx_offload *o, uint32_t i);

/** Write what devices hold, and the counters, as text. Thread: owner. */
void plx_offload_dump(FILE *f, const struct plx_offload *o);

#endif
