/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * marks.c - what a program tells icount while icount steps it
 */
#include "marks.h"

/*
 * Alone in its file, so that it is in the program once: icount knows the end of a row by the
 * address of this breakpoint.
 */
void
icount_mark(enum icount_mark mark, const char *name)
{
	__asm__ volatile("int3" ::"D"(mark), "S"(name) : "memory");
}
