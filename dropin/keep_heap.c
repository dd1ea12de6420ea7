/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * keep_heap.c - programs that a drop-in serves were not written for Pollux: libc's heap is set for them
 */
#include "init_int.h"

__attribute__((constructor)) static void
keep_heap(void)
{
	init_keeps_heap = true;
}
