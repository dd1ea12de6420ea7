/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_meet.h - what processes say to each other before anything else, for tests that say it wrong
 */
#ifndef PLX_UNIT_MEET_H
#define PLX_UNIT_MEET_H

#include "../../lib/mem/meet_int.h"

#endif
