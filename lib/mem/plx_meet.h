/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_meet.h - how processes of one host meet and hand over what the other may open
 *
 * Design notes
 * A process that has something for its peers listens on a unix socket whose name is made of its
 * number, 64 random bits that stand in its addresses and keys. Who wants something connects, asks for it
 * by its own number, and is sent descriptors; then both close. Nothing is opened that was not handed over,
 * and no path of another process is: so it works between pid, user and mount namespaces, whatever the
 * processes may do to each other otherwise.
 *
 * The socket is in the abstract namespace, which belongs to the network namespace, or, when
 * plx_meet_settle() names one, in a folder, which containers share.
 *
 * The kernel says who the other is. Both sides look whether that user is met. What a number
 * says is never proof; but the number of a segment is random too, so only those know it who were told.
 *
 * Descriptors that a peer sent are input: plx_meet_is_memory() and the like prove what one is by calls that
 * no file system of the peer's can hold up, before anything else is done with it.
 *
 * The socket exists as long as the process has something to offer, so plx_meet_gone() needs no answer. Nothing
 * else says that a process has gone: a connection that ends without a reply does not.
 * test/meet_explore_test.c leads a model of all this through every order of events.
 * A thread of the library answers; a process that is stopped answers later, and no asker
 * has to wait for it.
 */
#ifndef PLX_MEET_H
#define PLX_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plx_proc.h"

/** What is handed over; a place that is not used is -1. */
enum plx_meet_fd {
	PLX_MEET_MEM,  /* a segment */
	PLX_MEET_BELL, /* a socket: whoever sends to it wakes the owner */
	PLX_MEET_PID,  /* a pidfd of the process, which the library adds */
	PLX_MEET_FDS,
};

/**
 * Settle where sockets stand and who is met, before the first offer.
 * @param dir a folder for sockets, or "": none
 * @param peers "same" (user), "all", or a list of users and @groups, by name or number
 * Errors: -EINVAL a name that nobody knows, or dir is too long. Thread: any. Blocks: may (names of users).
 */
int plx_meet_settle(const char *dir, const char *peers);

/** @return whether only processes of our user are met: others take no huge pages of ours. Thread: any. */
bool plx_meet_own_user_only(void);

/**
 * Offer descriptors to those who ask for a number, or replace what is offered. The first offer opens the
 * process's socket. They stay the caller's, who withdraws the offer before it closes them.
 * @param own_user only processes of this process's user get them
 * Errors: -ENOMEM, -EMFILE and others of the system. Thread: any. Blocks: may.
 */
int plx_meet_offer(uint64_t id, const int fd[PLX_MEET_FDS], bool own_user);

/** See that peers are told our user if it is another by now, before an address goes out. Thread: any. */
void plx_meet_refresh(void);

/** Withdraw it; the last closes the socket. Accepts a number without an offer. Thread: any. Blocks: may. */
void plx_meet_withdraw(uint64_t id);

/**
 * @return whether the process has ended, runs another program, or offers nothing any more; not when that can't
 * be seen from here. Thread: any. Blocks: never.
 */
bool plx_meet_gone(uint64_t proc);

/**
 * @param bits the low bits of the number of a process that was given something of ours
 * @param mask which bits
 * @return whether all such have gone, or there was none. Thread: any. Blocks: never.
 */
bool plx_meet_guest_gone(uint64_t bits, uint64_t mask);

/** One question to a process. Owner: the caller. */
struct plx_ask {
	int fd;		/* to wait for: readable when there is an answer; -1: it is there */
	uint64_t id;	/* asked for */
	uint64_t proc;	/* of the other */
	pid_t pid;	/* of the other as the kernel knows it; 0: it can't be named in this namespace */
	uint32_t uid;	/* the same of its user, when it began to listen */
	bool local;	/* it is this process */
};

/** What came; the caller closes the descriptors. */
struct plx_answer {
	int fd[PLX_MEET_FDS];
	bool own_user; /* of the other: it is ours */
};

/**
 * Ask a process. Its answer is fetched by plx_ask_poll(); plx_ask_close() ends it.
 * Errors: -EHOSTUNREACH it is on another host, or its socket can't be seen from here; -ECONNRESET it has
 * gone; -EPERM its user is not met; -EMFILE, -ENFILE, -ENOMEM, -EAGAIN: try later.
 * Thread: any. Blocks: never, but for a process that has changed its user: up to PLX_ASK_MS.
 */
int plx_ask_open(struct plx_ask *a, const struct plx_proc *whom, uint64_t id);

/**
 * @return 0, and out is set; -EAGAIN not yet; -EPERM refused; -ESRCH it has no such; -ECONNRESET it has
 * gone; -EBUSY it lives and could not answer, -EMFILE, -ENFILE, -ENOMEM we could not take the answer: ask again
 * later; -EPROTO nonsense. Thread: one at a time. Blocks: never.
 */
int plx_ask_poll(struct plx_ask *a, struct plx_answer *out);

/** The same, and wait for it. Errors: also -ETIMEDOUT. Thread: one at a time. Blocks: up to ms. */
int plx_ask_wait(struct plx_ask *a, struct plx_answer *out, int ms);

#define PLX_ASK_MS 500 /* a process that runs has answered by then */

/** Accepts one that was not opened but is zeroed or has fd -1. Thread: one at a time. */
void plx_ask_close(struct plx_ask *a);

/** Close all descriptors of an answer that are still in it. Thread: any. */
void plx_answer_close(struct plx_answer *out);

/**
 * @param trusted its owner may also do without: huge pages are taken from such only, as a hole can
 * be punched in them at any time
 * @return whether the descriptor is memory of exactly len bytes that can't become shorter. Thread: any.
 */
bool plx_meet_is_memory(int fd, uint64_t len, bool trusted);

/** @return the length of what plx_meet_is_memory() may be, bytes; 0: it is none. Thread: any. */
uint64_t plx_meet_memory_len(int fd);

#endif
