/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * scarce.c - to be preloaded: huge pages run out after SCARCE_PIECES pieces of memory
 *
 * A limit of a control group shows when the pages are first touched: the memory could be mapped, as the pages
 * were promised. So what fails is MADV_POPULATE_WRITE, by which the library touches them. The machine's pages
 * are free again at once, so that nobody else on it has fewer.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static long left; /* below 0: it was asked for more */

__attribute__((constructor)) static void
scarce_start(void)
{
	const char *text = getenv("SCARCE_PIECES");

	left = text != NULL ? atol(text) : 0;
}

int
madvise(void *addr, size_t len, int advice)
{
	if (advice == MADV_POPULATE_WRITE && __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) <= 0) {
		errno = EFAULT;
		return -1;
	}
	return (int)syscall(SYS_madvise, addr, len, advice);
}
