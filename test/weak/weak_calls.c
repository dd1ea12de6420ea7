/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_calls.c - what code calls that is compiled with -fsanitize=thread
 */
#include <string.h>

#include "weak.h"
#include "weak_int.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the compiler knows them */

void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

#define PLAIN(size)                                                                                                    \
	void __tsan_read##size(void *p) { weak_plain((uintptr_t)p, size, false); }                                     \
	void __tsan_write##size(void *p) { weak_plain((uintptr_t)p, size, true); }                                     \
	void __tsan_unaligned_read##size(void *p) { weak_plain((uintptr_t)p, size, false); }                           \
	void __tsan_unaligned_write##size(void *p) { weak_plain((uintptr_t)p, size, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void *
weak_copy(void *to, const void *from, size_t len)
{
	weak_plain((uintptr_t)from, len, false);
	weak_plain((uintptr_t)to, len, true);
	return memcpy(to, from, len);
}

void __tsan_read_range(void *p, size_t len) { weak_plain((uintptr_t)p, len, false); }
void __tsan_write_range(void *p, size_t len) { weak_plain((uintptr_t)p, len, true); }

static uint64_t fn_set(uint64_t was, uint64_t v) { (void)was; return v; }
static uint64_t fn_add(uint64_t was, uint64_t v) { return was + v; }
static uint64_t fn_sub(uint64_t was, uint64_t v) { return was - v; }
static uint64_t fn_and(uint64_t was, uint64_t v) { return was & v; }
static uint64_t fn_or(uint64_t was, uint64_t v) { return was | v; }
static uint64_t fn_xor(uint64_t was, uint64_t v) { return was ^ v; }

#define CHANGE(bits, name, fn)                                                                                         \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile void *p, uint##bits##_t v, int order)                     \
	{                                                                                                              \
		uint##bits##_t *at = (void *)(uintptr_t)p, was = *at;                                                  \
		if (weak_is_on())                                                                                      \
			return (uint##bits##_t)weak_change((uintptr_t)p, bits / 8, fn, v, order);                      \
		*at = (uint##bits##_t)fn(was, v);                                                                      \
		return was;                                                                                            \
	}

#define ATOMIC(bits)                                                                                                   \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile void *p, int order)                                   \
	{                                                                                                              \
		if (weak_is_on())                                                                                      \
			return (uint##bits##_t)weak_load((uintptr_t)p, bits / 8, order);                               \
		return *(const uint##bits##_t *)(uintptr_t)p;                                                          \
	}                                                                                                              \
	void __tsan_atomic##bits##_store(volatile void *p, uint##bits##_t v, int order)                                \
	{                                                                                                              \
		if (weak_is_on())                                                                                      \
			weak_store((uintptr_t)p, bits / 8, v, order);                                                  \
		else                                                                                                   \
			*(uint##bits##_t *)(uintptr_t)p = v;                                                           \
	}                                                                                                              \
	bool __tsan_atomic##bits##_compare_exchange_strong(volatile void *p, void *expected, uint##bits##_t v,         \
		int order, int fail_order)                                                                             \
	{                                                                                                              \
		uint##bits##_t *at = (void *)(uintptr_t)p, *want = expected;                                           \
		uint64_t was = *want;                                                                                  \
		bool is;                                                                                               \
		if (weak_is_on()) {                                                                                    \
			is = weak_cas((uintptr_t)p, bits / 8, &was, v, order, fail_order);                             \
		} else {                                                                                               \
			is = *at == *want;                                                                             \
			was = *at;                                                                                     \
			if (is)                                                                                        \
				*at = v;                                                                               \
		}                                                                                                      \
		if (!is)                                                                                               \
			*want = (uint##bits##_t)was;                                                                   \
		return is;                                                                                             \
	}                                                                                                              \
	bool __tsan_atomic##bits##_compare_exchange_weak(volatile void *p, void *expected, uint##bits##_t v,           \
		int order, int fail_order)                                                                             \
	{                                                                                                              \
		return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, order, fail_order);               \
	}                                                                                                              \
	CHANGE(bits, exchange, fn_set)                                                                                 \
	CHANGE(bits, fetch_add, fn_add)                                                                                \
	CHANGE(bits, fetch_sub, fn_sub)                                                                                \
	CHANGE(bits, fetch_and, fn_and)                                                                                \
	CHANGE(bits, fetch_or, fn_or)                                                                                  \
	CHANGE(bits, fetch_xor, fn_xor)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void
__tsan_atomic_thread_fence(int order)
{
	if (weak_is_on())
		weak_fence(order);
}

void
__tsan_atomic_signal_fence(int order)
{
	if (weak_is_on())
		weak_signal_fence(order);
}
