/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_shm.h - the inside of the shm driver, for tests that play a bad peer
 */
#ifndef PLX_UNIT_SHM_H
#define PLX_UNIT_SHM_H

#include "../../drivers/shm/shm_int.h"
#include "../../drivers/shm/plx_shm.h"

#endif
