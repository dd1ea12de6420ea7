/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_skeleton.h - the skeleton driver's ops table, for lib/init's list of drivers
 */
#ifndef PLX_SKELETON_H
#define PLX_SKELETON_H

#include "plx_dev_ops.h"

extern const struct plx_dev_ops plx_skeleton_ops;

#endif
