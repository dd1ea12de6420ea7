/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_hash.h - a hash of bytes, the same in all processes: FNV-1a of 64 bits
 */
#ifndef PLX_HASH_H
#define PLX_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PLX_HASH_BEGIN 0xcbf29ce484222325ull

/** @param h PLX_HASH_BEGIN, or the hash of the bytes before. @return the hash with these. Thread: any. */
static inline uint64_t
plx_hash_on(uint64_t h, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3ull;
	return h;
}

#endif
