/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_pages.h - the heap of a program's own EAL, offered to peers as segments (plx_window.h)
 */
#ifndef PLX_PAGES_H
#define PLX_PAGES_H

#include <stdint.h>

/**
 * List the pages of the EAL's heap, and from now on those that it takes. Peers of our user then
 * copy to and from mbufs without the kernel. Pages without a file are not listed. Thread: control.
 * Blocks: may.
 */
void plx_pages_open(void);

/** Remove all of them. Accepts that they were not listed. Thread: control. Blocks: may. */
void plx_pages_close(void);

/** @return the listed bytes. Thread: any. */
uint64_t plx_pages_bytes(void);

#endif
