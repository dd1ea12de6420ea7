/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * child_pipe.h - another process, which is this program again, and a pipe to it and from it
 */
#ifndef CHILD_PIPE_H
#define CHILD_PIPE_H

#include <sys/types.h>

#include "ucp_util.h"

/* In the child: its ends. */
#define CHILD_IN  20
#define CHILD_OUT 21

struct child {
	pid_t pid;
	int to, from;
	void *addr; /* of its worker, if it was read; freed with the child */
};

/** Start this program with --child, role and arg. */
void child_spawn(struct child *c, const char *role, const char *arg);
/** Kill it, if it lives. */
void child_close(struct child *c);

/** All bytes, or this program ends. */
void child_put(int fd, const void *buf, size_t len);
void child_get(int fd, void *buf, size_t len);

void child_put_address(int fd, ucp_worker_h w);
/** @return the address; free() it */
void *child_get_address(int fd);

#endif
