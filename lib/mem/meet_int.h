/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * meet_int.h - between the asking and the answering side
 */
#ifndef MEET_INT_H
#define MEET_INT_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "plx_meet.h"

#define MEET_MAGIC 0x315445454d584c50ull /* "PLXMEET1" */

/** The question, a packet. */
struct meet_question {
	uint64_t magic;
	uint64_t id;	/* requested */
	uint64_t proc;	/* of the asker */
};

/** The reply, a packet; the descriptors come with it, in the order of their bits. */
struct meet_reply {
	uint64_t magic;
	uint32_t err;	/* 0, EPERM, ESRCH; EAGAIN: ask again */
	uint32_t mask;	/* 1 << enum plx_meet_fd */
};

enum meet_place {
	MEET_ABSTRACT, /* of the network namespace */
	MEET_FOLDER,   /* of plx_meet_settle() */
	MEET_PLACES,
};

/** As plx_meet_settle(); there are no offers. Thread: one at a time. */
int meet_who_set(const char *dir, const char *peers);

/** @return 0, or -EINVAL: not a folder that meet_who_set() takes. Thread: any. */
int meet_who_check(const char *dir);

/** Remove the sockets of killed processes from the folder. Thread: any. */
void meet_folder_sweep(void);

/**
 * Connect to a process, in any place of its socket. Errors: -ECONNREFUSED nobody; of
 * connect(). Thread: any.
 */
int meet_connect(int fd, uint64_t proc);

/** @return the length of the name of a process's socket, 0: no such place. Thread: any. */
socklen_t meet_name(enum meet_place place, uint64_t proc, struct sockaddr_un *out);

/** @return whether the user at the other end of the socket is admitted. Thread: any. */
bool meet_allows(uint32_t uid, int fd);

/**
 * @return whether it is this process's user; false if the kernel can't name it in our
 *   namespace. Thread: any.
 */
bool meet_is_own_user(uint32_t uid);

/**
 * An offer of another thread of this process: copies of the descriptors. Errors: -ESRCH,
 * -EMFILE.
 */
int meet_offer_copy(uint64_t id, int fd[PLX_MEET_FDS]);

#endif
