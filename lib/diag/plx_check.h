/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_check.h - this process's report to pollux-run --check: that it uses Pollux, and the number
 * of peers
 *
 * Without the variable, all of this is one branch where an object is made.
 */
#ifndef PLX_CHECK_H
#define PLX_CHECK_H

#include <stdbool.h>

/** Names the folder in which each process leaves a line. */
#define PLX_CHECK_ENV "POLLUX_CHECK"

#define PLX_CHECK_LINE 512 /* bytes of a process's file */

/** @return whether pollux-run --check wants a report. Thread: any. */
bool plx_check_wanted(void);

/** The library has started; has stopped. Thread: control. Blocks: may (a file). */
void plx_check_started(void);
void plx_check_stopped(void);

/**
 * Count one more peer, in another process, that messages were sent to or received from.
 * Thread: any. Blocks: may (a file).
 */
void plx_check_peer(const char *device);

#endif
