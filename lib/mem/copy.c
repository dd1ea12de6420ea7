/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * copy.c - long copies
 *
 * Design notes
 * Up to PLX_COPY_FAR the C library's copy, which uses what the processor has (on
 * one with fast string instructions it was 2 to 3 times rte_memcpy() built for the
 * baseline from 512 bytes on). Longer ones are stored past the caches: they would not
 * stay there, and the lines need not be read first (1.1 to 1.3 times at 4 MiB and more).
 */
#include <string.h>

#if defined(RTE_ARCH_X86_64)
#include <emmintrin.h>
#endif

#include "plx_copy.h"

#if defined(RTE_ARCH_X86_64)
static void
copy_far(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint64_t head = -(uintptr_t)to & 63, i;

	memcpy(to, from, head);
	to += head;
	from += head;
	len -= head;
	for (i = 0; i + 64 <= len; i += 64) {
		const __m128i *s = (const void *)(from + i);
		__m128i *d = (void *)(to + i);
		__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
		__m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

		_mm_stream_si128(d, a);
		_mm_stream_si128(d + 1, b);
		_mm_stream_si128(d + 2, c);
		_mm_stream_si128(d + 3, e);
	}
	_mm_sfence(); /* before anything that says it is there */
	memcpy(to + i, from + i, len - i);
}
#else
static void
copy_far(uint8_t *to, const uint8_t *from, uint64_t len)
{
	memcpy(to, from, len);
}
#endif

void
plx_copy_long(void *to, const void *from, uint64_t len)
{
	if (len < PLX_COPY_FAR)
		memcpy(to, from, len);
	else
		copy_far(to, from, len);
}
