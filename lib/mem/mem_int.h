/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mem_int.h - between the files of lib/mem
 */
#ifndef MEM_INT_H
#define MEM_INT_H

#include <stddef.h>

#include "plx_log.h"

PLX_LOG_DECLARE(mem);

/** Add at least len bytes to the heap. @return 0 or -errno. Thread: any. */
int mem_heap_reserve(size_t len);

#endif
