/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_line.h - cache lines that go to and fro between two cores
 */
#ifndef PLX_LINE_H
#define PLX_LINE_H

#include <rte_config.h>

/**
 * Ask for the line at p to be this core's alone, since it will be written. The compiler's own
 * prefetch asks for one to be read, unless it is told what processor it compiles for: the line
 * then comes twice. Processors that do not know the instruction do nothing.
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
