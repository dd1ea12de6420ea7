/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_offload.h - the inside of lib/offload, and a device that answers late
 */
#ifndef PLX_UNIT_OFFLOAD_H
#define PLX_UNIT_OFFLOAD_H

#include "../../lib/offload/offload_int.h"
#include "../tag_model.h"

#endif
