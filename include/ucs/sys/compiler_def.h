/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * compiler_def.h - the few macros that programs written for UCP expect
 *
 * The macros that the ucp headers, the usual examples and known applications use, with the names
 * and meanings of UCX.
 */
#ifndef UCS_COMPILER_DEF_H
#define UCS_COMPILER_DEF_H

#include <stddef.h>
#include <stdint.h>

/* Around every block of declarations, so that C++ finds C names. */
#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS   }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

/* Bit i, and all bits below bit i; i from 0 to 63, the type is unsigned long. Whether bit i is set. */
#define UCS_BIT(i)		(1ul << (i))
#define UCS_MASK(i)		((i) >= 64 ? ~0ul : UCS_BIT((i) & 63) - 1)
#define UCS_BIT_GET(value, i)	(((value) & UCS_BIT(i)) != 0)

/* Attributes of types, variables and functions. */
#define UCS_S_PACKED            __attribute__((packed))
#define UCS_S_MAY_ALIAS         __attribute__((may_alias))
#define UCS_F_PURE              __attribute__((pure))
#define UCS_F_NORETURN          __attribute__((noreturn))
#define UCS_F_NOINLINE          __attribute__((noinline))
#define UCS_F_ALWAYS_INLINE     inline __attribute__((always_inline))
#define UCS_F_CTOR              __attribute__((constructor))
#define UCS_F_DTOR              __attribute__((destructor))
#define UCS_F_MAYBE_UNUSED      __attribute__((unused))
#define UCS_F_NON_NULL          __attribute__((nonnull))
#define UCS_F_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UCS_V_UNUSED            __attribute__((unused))
#define UCS_V_ALIGNED(n)        __attribute__((aligned(n)))

#define ucs_likely(x)      __builtin_expect(x, 1)
#define ucs_unlikely(x)    __builtin_expect(x, 0)
#define ucs_prefetch(p)    __builtin_prefetch(p)
/* To be read, or written; nt: once only, so it need not stay in the caches. */
#define ucs_read_prefetch(p)	 __builtin_prefetch(p, 0, 3)
#define ucs_write_prefetch(p)	 __builtin_prefetch(p, 1, 3)
#define ucs_nt_read_prefetch(p)	 __builtin_prefetch(p, 0, 0)
#define ucs_nt_write_prefetch(p) __builtin_prefetch(p, 1, 0)
#define ucs_is_constant(x) __builtin_constant_p(x)

/* Keeps the compiler, not the processor, from moving accesses across it. */
#define ucs_compiler_fence() __asm__ __volatile__("" : : : "memory")

/* A pointer moved by bytes, one moved past a value of the type, and a distance in bytes. */
#define UCS_PTR_BYTE_OFFSET(ptr, n)    ((void *)((intptr_t)(ptr) + (intptr_t)(n)))
#define UCS_PTR_TYPE_OFFSET(ptr, type) ((void *)((ucs_typeof(type) *)(ptr) + 1))
#define UCS_PTR_BYTE_DIFF(from, to)    ((ptrdiff_t)((uintptr_t)(to) - (uintptr_t)(from)))

#define ucs_typeof(x)                 __typeof__(x)
#define ucs_static_array_size(a)      (sizeof(a) / sizeof((a)[0]))
#define ucs_offsetof(type, member)    ((unsigned long)offsetof(type, member))
#define ucs_field_sizeof(type, field) sizeof(((type *)0)->field)
#define ucs_field_type(type, field)   ucs_typeof(((type *)0)->field)
#define ucs_container_of(ptr, type, member)                                                        \
	((type *)((char *)(void *)(ptr)-ucs_offsetof(type, member)))
/* The object whose first field, super, ptr points to. */
#define ucs_derived_of(ptr, type)                                                                  \
	__extension__({                                                                            \
		UCS_STATIC_ASSERT(offsetof(type, super) == 0)                                      \
		ucs_container_of(ptr, type, super);                                                \
	})
#define ucs_same_type(a, b)	   __builtin_types_compatible_p(a, b)
#define ucs_is_unsigned_type(type) ((type)(-1) > (type)(0))
#define ucs_const_cast(type, ptr)  ((type)(uintptr_t)(const void *)(ptr))

/* A loop over the first n elements of an array; elem is a pointer. */
#define ucs_carray_for_each(elem, array, n)                                                        \
	for ((elem) = (array); (elem) < (array) + (n); ++(elem))

/* Exchange what two pointers of one type point to. */
#define ucs_swap(a, b)                                                                             \
	{                                                                                          \
		ucs_typeof(*(a)) *ucs_swap_to_ = (b), ucs_swap_kept_ = *(a);                       \
		*(a) = *ucs_swap_to_;                                                              \
		*(b) = ucs_swap_kept_;                                                             \
	}

/* The body of a function that runs when the program or library is loaded, or unloaded. */
#define UCS_COMPILER_NAME_2(name, line) name##line
#define UCS_COMPILER_NAME(name, line)	UCS_COMPILER_NAME_2(name, line)
#define UCS_STATIC_INIT	   static void UCS_F_CTOR UCS_COMPILER_NAME(ucs_initializer_ctor_, __LINE__)(void)
#define UCS_STATIC_CLEANUP static void UCS_F_DTOR UCS_COMPILER_NAME(ucs_initializer_dtor_, __LINE__)(void)

/* Where a variable seems to be read before it is written. */
#define UCS_V_INITIALIZED(v) ((void)((v) = (ucs_typeof(v))0))
#define UCS_EMPTY_STATEMENT  {}
#define UCS_ALLOCA_MAX_SIZE  1200
#ifdef __SANITIZE_ADDRESS__
#define UCS_F_NO_SANITIZE_ADDRESS __attribute__((no_sanitize_address))
#else
#define UCS_F_NO_SANITIZE_ADDRESS
#endif

/* A statement that does not compile when cond, a constant, is false. */
#define UCS_STATIC_ASSERT(cond) ((void)sizeof(char[(cond) ? 1 : -1]));

#endif
