/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mem_int.h - between the files of lib/mem
 */
#ifndef MEM_INT_H
#define MEM_INT_H

#include "plx_log.h"

PLX_LOG_DECLARE(mem);

#endif
