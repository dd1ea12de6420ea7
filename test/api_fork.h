/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * api_fork.h - children of a test that are forked in the middle of it
 *
 * A child ends with 0, or with the line of what is not so. A CU_ASSERT_FATAL that fails in it ends it as well
 * (api_run.c); other assertions that fail there are not noticed.
 */
#ifndef API_FORK_H
#define API_FORK_H

#include <stdio.h>
#include <unistd.h>

#define API_CHILD_S 30 /* seconds a child may take */

#define SO(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1 + __LINE__ % 250); \
		} \
	} while (0)

/**
 * Fork a child that runs child(arg) and ends.
 * @param meanwhile the parent runs it before the child begins
 */
pid_t api_fork(void (*child)(void *arg), void (*meanwhile)(void *arg), void *arg);

/** A child ends, with what runs at the exit. */
_Noreturn void api_child_leave(void);

#endif
