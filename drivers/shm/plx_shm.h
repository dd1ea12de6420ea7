/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_shm.h - the shm driver's ops table, for lib/init's list of drivers
 */
#ifndef PLX_SHM_H
#define PLX_SHM_H

#include "plx_dev_ops.h"

extern const struct plx_dev_ops plx_shm_ops;

#endif
