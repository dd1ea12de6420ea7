/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_shm.h - a queue in shared memory and two senders, for the scenes of weak_shm_test.c and weak_meet_test.c
 */
#ifndef WEAK_SHM_H
#define WEAK_SHM_H

#include "shm_int.h"

/** Numbers of events. */
enum weak_shm_event {
	BELL,	 /* the wake-up socket of the queue */
	ADDRESS, /* a program tells another one where the queue is */
	OFFER,	 /* a process hands out its segment */
};

#define SLOTS	2
#define SENDERS 2
#define OP	3

extern struct plx_queue rx_q, tx_q[SENDERS];
extern struct shm_queue tx_queue[SENDERS];
extern struct shm_peer peer[SENDERS], from[SENDERS]; /* how the senders see the queue; and it them */
extern uint64_t got_sum;
extern unsigned n_got;

/** In setup: make the memory of a queue with n_slots slots, and senders that do not know the queue yet. */
void weak_shm_new(unsigned n_slots);
/** Open the queue. */
void weak_shm_open(void);
/** @return the queue's memory */
struct shm_seg *weak_shm_seg(void);

int send_one(unsigned k, uint64_t value);
void send_surely(unsigned k, uint64_t value);
/** A turn that looks. @return messages */
unsigned look(void);
/** Until there were n. */
void receive(unsigned n);

#endif
