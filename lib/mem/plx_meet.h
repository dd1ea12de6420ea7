/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_meet.h - how processes of one host meet and exchange descriptors
 *
 * Design notes
 * - A process with offers for its peers listens on a unix socket that is named by its number, 64
 *   random bits in its addresses and keys. A peer connects, asks for an offer by its own number,
 *   and receives descriptors; then both close. Only received descriptors are used, and no path of
 *   another process: so it works between pid, user and mount namespaces, whatever else the
 *   processes may do to each other.
 * - The socket is in the abstract namespace, which belongs to the network namespace, or, if
 *   plx_meet_settle() names one, in a folder, which containers share.
 * - The kernel identifies the other side, and both sides check whether its user is admitted. A
 *   number proves nothing; but the number of a segment is random, so only processes that received
 *   it know it.
 * - Descriptors from a peer are input: plx_meet_is_memory() and the like verify the kind by calls
 *   that no file system of the peer can block, before any other use.
 * - The socket exists as long as the process has an offer, so plx_meet_gone() needs no answer.
 *   Only a closed socket means that a process has ended: a connection that closes without a reply
 *   does not. test/meet_explore_test.c drives a model of all this through every order of events.
 *   A thread of the library answers; a stopped process answers later, and no asker has to wait
 *   for it.
 */
#ifndef PLX_MEET_H
#define PLX_MEET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "plx_proc.h"

/** Kinds of descriptors; an unused place is -1. */
enum plx_meet_fd {
	PLX_MEET_MEM,  /* a segment */
	PLX_MEET_BELL, /* a socket: a send to it wakes the owner, or it holds bytes (name.c of lib/cm) */
	PLX_MEET_PID,  /* a pidfd of the process, which the library adds */
	PLX_MEET_FDS,
};

/**
 * Set the place of sockets and the admitted users, before the first offer.
 * @param dir a folder for sockets, or "": none
 * @param peers "same" (user), "all", or a list of users and @groups, by name or number
 * Errors: -EINVAL an unknown name, or dir is too long. Thread: any. Blocks: may (names of
 * users).
 */
int plx_meet_settle(const char *dir, const char *peers);

/**
 * @return whether only processes of our user are admitted: others get no huge pages.
 *   Thread: any.
 */
bool plx_meet_own_user_only(void);

/**
 * Offer descriptors to processes that ask for a number, or replace an offer. The first
 * offer opens the process's socket. The caller keeps the descriptors, and withdraws the
 * offer before it closes them.
 * @param own_user only processes of this process's user get them
 * Errors: -ENOMEM, -EMFILE and others of the system. Thread: any. Blocks: may.
 */
int plx_meet_offer(uint64_t id, const int fd[PLX_MEET_FDS], bool own_user);

/**
 * Before an address is created: make the socket show our present user if it has changed.
 * Thread: any.
 */
void plx_meet_refresh(void);

/** Withdraw it; the last closes the socket. Accepts a number without an offer. Thread: any. Blocks: may. */
void plx_meet_withdraw(uint64_t id);

/**
 * @return whether the process has ended, runs another program, or has no offers any more;
 *   false if that is not visible from here. Thread: any. Blocks: never.
 */
bool plx_meet_gone(uint64_t proc);

/**
 * @param bits the low bits of the number of a process that received an offer
 * @param mask which bits
 * @return whether all such processes have ended, or there was none. Thread: any. Blocks:
 *   never.
 */
bool plx_meet_guest_gone(uint64_t bits, uint64_t mask);

/** One question to a process. Owner: the caller. */
struct plx_ask {
	int fd;		/* to poll: readable when there is an answer; -1: it has arrived */
	uint64_t id;	/* requested */
	uint64_t proc;	/* of the other */
	pid_t pid;	/* of the other process by the kernel; 0: this namespace has no name for it */
	uint32_t uid;	/* the same of its user, when it began to listen */
	bool local;	/* it is this process */
};

/** The answer; the caller closes the descriptors. */
struct plx_answer {
	int fd[PLX_MEET_FDS];
	bool own_user; /* the other's user is ours */
};

/**
 * Ask a process. plx_ask_poll() fetches its answer; plx_ask_close() ends it. Errors:
 * -EHOSTUNREACH it is on another host, or its socket is not visible from here; -ECONNRESET
 * it has ended; -EPERM its user is not admitted; -EMFILE, -ENFILE, -ENOMEM, -EAGAIN: try
 * later. Thread: any. Blocks: never, except for a process that has changed its user: up to
 * PLX_ASK_MS.
 */
int plx_ask_open(struct plx_ask *a, const struct plx_proc *whom, uint64_t id);

/**
 * @return 0, and out is set; -EAGAIN not yet; -EPERM refused; -ESRCH it has no such offer;
 *   -ECONNRESET it has ended; -EBUSY it is alive and could not answer, -EMFILE, -ENFILE,
 *   -ENOMEM we could not take the answer: ask again later; -EPROTO invalid. Thread: one at
 *   a time. Blocks: never.
 */
int plx_ask_poll(struct plx_ask *a, struct plx_answer *out);

/** The same, and wait for it. Errors: also -ETIMEDOUT. Thread: one at a time. Blocks: up to ms. */
int plx_ask_wait(struct plx_ask *a, struct plx_answer *out, int ms);

#define PLX_ASK_MS 500 /* a running process has answered by then */

/** Accepts one that is zeroed or has fd -1. Thread: one at a time. */
void plx_ask_close(struct plx_ask *a);

/** Close all descriptors of an answer that are still in it. Thread: any. */
void plx_answer_close(struct plx_answer *out);

/**
 * @param trusted accept huge pages: their owner can punch a hole in them at any time
 * @return whether the descriptor is memory of exactly len bytes that can't shrink. Thread:
 *   any.
 */
bool plx_meet_is_memory(int fd, uint64_t len, bool trusted);

/** @return whether memory is on huge pages. Thread: any. */
bool plx_meet_is_huge(int fd);

/**
 * @return the length of memory that plx_meet_is_memory() may accept, bytes; 0: it is none.
 *   Thread: any.
 */
uint64_t plx_meet_memory_len(int fd);

/**
 * @return the length of memory that another library has made, such as pages of an EAL, bytes; 0: it
 *   is none. It may shrink, so it is for processes of one user. Thread: any.
 */
uint64_t plx_meet_pages_len(int fd);

#endif
