/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_init.h - start and stop, in order
 */
#ifndef PLX_INIT_H
#define PLX_INIT_H

#include "plx_conf.h"

/**
 * Start the process's part of Pollux, or count one more user of it: EAL, heap, drivers,
 * reactors, RPC server. The first caller's settings apply. Thread: any. Blocks: up to half
 * a second the first time (the EAL's start). Errors: -ENOMEM, -EINVAL a bad reactor list,
 * those of the EAL.
 */
int plx_init_get(const struct plx_conf *conf);

/**
 * Count one user less; the last one stops reactors and the RPC server. The EAL stays: it
 * can't be started twice in a process. Thread: any, not a reactor.
 */
void plx_init_put(void);

/**
 * Register every driver of the build, with its settings: the generated table of drivers. It
 * is called before main(); repeated calls have no effect. Errors: as plx_dev_register().
 * Thread: control.
 */
int plx_init_drivers(void);

/** The most cores that reactor.lcores may name. */
#define PLX_INIT_LCORES_MAX 64

/**
 * Read "lcore:1,3-5" or "1,3-5".
 * @param lcores set to the numbers; room for PLX_INIT_LCORES_MAX
 * @return how many, or -EINVAL. Thread: any.
 */
int plx_init_parse_lcores(const char *text, unsigned *lcores);

#endif
