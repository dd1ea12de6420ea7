/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_line.h - cache lines that move between two cores
 */
#ifndef PLX_LINE_H
#define PLX_LINE_H

#include <rte_config.h>

/**
 * Fetch the line at p for this core alone, since it will be written. The compiler's own
 * prefetch is for reading, unless the target processor is specified: the line then moves
 * twice. Processors without the instruction ignore it.
 */
static inline void
plx_line_own(const void *p)
{
#if defined(RTE_ARCH_X86_64)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#endif
