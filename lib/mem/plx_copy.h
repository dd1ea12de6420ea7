/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_copy.h - copies of users' bytes
 */
#ifndef PLX_COPY_H
#define PLX_COPY_H

#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_memcpy.h>

#define PLX_COPY_NEAR 256	  /* copies up to here are inline */
#define PLX_COPY_FAR  (4u << 20) /* longer ones bypass the caches */

/**
 * Copy a header and what follows it past the caches, to be read by another core; the rest of the last
 * line is written, too. Thread: any.
 * @param to line-aligned, of whole lines
 * @param head_len at most a line, bytes
 */
void plx_copy_lines(void *to, const void *head, uint32_t head_len, const void *from, uint64_t len);

/** As plx_copy(), but past the caches if it is long: a part of more than they hold. Thread: any. */
void plx_copy_past(void *to, const void *from, uint64_t len);

/** Copy more than PLX_COPY_NEAR bytes; very long copies bypass the caches. Thread: any. */
void plx_copy_long(void *to, const void *from, uint64_t len);

/** As plx_copy_long(), but what the caller waits for: the message of an idle worker. Thread: any. */
void plx_copy_soon(void *to, const void *from, uint64_t len);

/** Copy any length. Thread: any. */
static __rte_always_inline void
plx_copy_some(void *to, const void *from, uint64_t len)
{
	if (likely(len <= PLX_COPY_NEAR))
		rte_memcpy(to, from, len);
	else
		plx_copy_long(to, from, len);
}

/** The same; a word by one store. Thread: any. */
static inline void
plx_copy(void *to, const void *from, uint64_t len)
{
	if (likely(len == 8))
		memcpy(to, from, 8);
	else
		plx_copy_some(to, from, len);
}

#endif
