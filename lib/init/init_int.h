/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * init_int.h - between the files of lib/init
 */
#ifndef INIT_INT_H
#define INIT_INT_H

#include <stdbool.h>

#include "plx_init.h"
#include "plx_log.h"

PLX_LOG_DECLARE(init);

/**
 * Start the EAL unless the process has one.
 * @param lcores of reactors to come
 * @return 0 or -errno
 */
int init_eal(const struct plx_conf *conf, const unsigned *lcores, int n_lcores);

/** @return whether the program, not Pollux, has started this process's EAL. Thread: control. */
bool init_eal_is_programs(void);

/** The EAL that init_eal() starts needs its folder for files: of the telemetry socket. Writer: init_eal(). */
extern bool init_has_files;

/** The library is a drop-in: libc's heap is to keep freed memory. Writer: the drop-in, as it is loaded. */
extern bool init_keeps_heap;

/** Have libc's heap keep up to heap.keep bytes of freed memory, if init_keeps_heap. Thread: control. */
void init_heap(const struct plx_conf *conf);

/**
 * Try the system calls that the EAL needs at start, which a filter may refuse.
 * @return 0, or -errno and refused names the call
 */
int init_eal_may_start(const char **refused);

#endif
