/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * heap.c - what libc's heap keeps of freed memory
 *
 * Design notes
 * - MPICH allocates two buffers for each accumulate it receives, and frees them. By libc's first
 *   thresholds 192 KiB or more go back to the system each time and are faulted in again, page by
 *   page, which takes longer than the accumulate.
 * - libc raises its thresholds itself when a block is freed that was mapped: blocks of this length
 *   then come from the heap, whose free end of twice this length stays. So one such block is
 *   allocated and freed. A program or user that has set thresholds, or has another allocator, keeps
 *   what it has chosen: libc raises only its own.
 */
#include <stdlib.h>

#include "init_int.h"

bool init_keeps_heap;

void
init_heap(const struct plx_conf *conf)
{
	void *volatile block; /* or the compiler leaves both calls out */

	if (!init_keeps_heap)
		return;
	block = malloc(plx_conf_u64(conf, PLX_CONF_HEAP_KEEP) / 2);
	free(block);
}
