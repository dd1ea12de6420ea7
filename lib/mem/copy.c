/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * copy.c - long copies
 *
 * Design notes
 * - Up to COPY_WIDE_MAX, on processors whose 64-byte registers have no side effects, a loop over
 *   these: as fast as the C library's for lengths like 1 KiB, with less than half of its
 *   instructions. (One "rep movsb" is a single instruction and takes 10 ns longer to start.)
 * - Others up to PLX_COPY_FAR: the C library's copy, which uses the features of the processor (on
 *   one with fast string instructions it was 2 to 3 times as fast as rte_memcpy() built for the
 *   baseline from 512 bytes on).
 * - What a core waits for, up to COPY_SOON_MAX: the loop. Of 8 KiB from another core's cache it takes
 *   50 ns less if the destination's lines are in ours, and of 16 KiB 30, but a tenth more if they are
 *   not, as when many messages follow each other.
 * - But where the destination is a few bytes behind the source, modulo the page, as when a header of
 *   8 bytes stands before one of two buffers, string instructions move single bytes: 16 to 25 times as
 *   long on Zen 4. There the loop over registers copies all.
 * - Longer ones are stored past the caches: they would not stay there, and the lines need not be
 *   read first (1.1 to 1.3 times as fast at 4 MiB and more).
 * - What another core reads next may be stored past the caches, too: its lines are not taken back.
 */
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include <rte_common.h>

#if defined(RTE_ARCH_X86_64)
#include <immintrin.h>
#endif

#include "plx_copy.h"

#if defined(RTE_ARCH_X86_64)
#define COPY_WIDE_MAX 4096u
#define COPY_SOON_MAX 16384u /* of plx_copy_soon() */
#define COPY_STEP     256 /* bytes, not more than the shortest copy here */
#define PAGE	      4096u
#define NEAR_BEHIND   64u /* bytes */

/* Set when the library is loaded. Before Ice Lake such registers slow the whole core down. */
static bool has_wide;

RTE_INIT(copy_find_wide)
{
	__builtin_cpu_init();
	has_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi2");
}

__attribute__((target("avx512f"))) static inline void
copy_step(uint8_t *to, const uint8_t *from)
{
	__m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
	__m512i c = _mm512_loadu_si512(from + 128), d = _mm512_loadu_si512(from + 192);

	_mm512_storeu_si512(to, a);
	_mm512_storeu_si512(to + 64, b);
	_mm512_storeu_si512(to + 128, c);
	_mm512_storeu_si512(to + 192, d);
}

/* The first line and the last step overlap others, so that the middle is stored by whole lines. */
__attribute__((target("avx512f"))) static __rte_noinline void
copy_wide(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint8_t *const last = to + len - COPY_STEP;
	const intptr_t delta = from - to;

	_mm512_storeu_si512(to, _mm512_loadu_si512(from));
	for (to = RTE_PTR_ALIGN_FLOOR(to + 64, 64); to < last; to += COPY_STEP)
		copy_step(to, to + delta);
	copy_step(last, last + delta);
}

static inline void
past_line(uint8_t *to, const uint8_t *from)
{
	const __m128i *s = (const void *)from;
	__m128i *d = (void *)to;
	__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
	__m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

	_mm_stream_si128(d, a);
	_mm_stream_si128(d + 1, b);
	_mm_stream_si128(d + 2, c);
	_mm_stream_si128(d + 3, e);
}

static void
copy_far(uint8_t *to, const uint8_t *from, uint64_t len)
{
	uint64_t head = -(uintptr_t)to & 63, i;

	memcpy(to, from, head);
	to += head;
	from += head;
	len -= head;
	for (i = 0; i + 64 <= len; i += 64)
		past_line(to + i, from + i);
	_mm_sfence(); /* before any store that announces the data */
	memcpy(to + i, from + i, len - i);
}

/* Not inlined: each message of some hundred bytes passes plx_copy_long(). */
static __rte_noinline void
copy_longer(void *to, const void *from, uint64_t len)
{
	if (len >= PLX_COPY_FAR)
		copy_far(to, from, len);
	else if (((uintptr_t)to - (uintptr_t)from - 1) % PAGE >= NEAR_BEHIND - 1)
		memcpy(to, from, len);
	else if (has_wide)
		copy_wide(to, from, len);
	else
		rte_memcpy(to, from, len);
}

static __rte_always_inline void
copy_by_length(void *to, const void *from, uint64_t len, uint64_t wide_max)
{
	if (len <= wide_max && likely(has_wide))
		copy_wide(to, from, len);
	else
		copy_longer(to, from, len);
}

void
plx_copy_long(void *to, const void *from, uint64_t len)
{
	copy_by_length(to, from, len, COPY_WIDE_MAX);
}

void
plx_copy_soon(void *to, const void *from, uint64_t len)
{
	copy_by_length(to, from, len, COPY_SOON_MAX);
}

void
plx_copy_past(void *to, const void *from, uint64_t len)
{
	if (len > PLX_COPY_NEAR)
		copy_far(to, from, len);
	else
		plx_copy(to, from, len);
}

/* A line of which we write a part has to come from the other core, so that the last one is whole. */
void
plx_copy_lines(void *to, const void *head, uint32_t head_len, const void *from, uint64_t len)
{
	alignas(64) uint8_t line[64] = {0};
	const uint32_t first = RTE_MIN(64 - head_len, len);
	const uint8_t *data = (const uint8_t *)from + first;
	uint8_t *next = to;

	memcpy(line, head, head_len);
	memcpy(line + head_len, from, first);
	past_line(next, line);
	for (len -= first, next += 64; len >= 64; len -= 64, next += 64, data += 64)
		past_line(next, data);
	if (len != 0) {
		memset(line, 0, sizeof(line));
		memcpy(line, data, len);
		past_line(next, line);
	}
	_mm_sfence(); /* before any store that announces the data */
}
#else
void
plx_copy_lines(void *to, const void *head, uint32_t head_len, const void *from, uint64_t len)
{
	memcpy(to, head, head_len);
	memcpy((uint8_t *)to + head_len, from, len);
}

void
plx_copy_past(void *to, const void *from, uint64_t len)
{
	plx_copy(to, from, len);
}

void
plx_copy_long(void *to, const void *from, uint64_t len)
{
	memcpy(to, from, len);
}

void
plx_copy_soon(void *to, const void *from, uint64_t len)
{
	memcpy(to, from, len);
}
#endif
