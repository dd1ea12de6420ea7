/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cpu_set.h - a set of processors, 1024 bits, bit i is processor i
 *
 * The layout is that of the C library's cpu_set_t.
 */
#ifndef UCS_TYPE_CPU_SET_H
#define UCS_TYPE_CPU_SET_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long int ucs_cpu_mask_t;

#define UCS_CPU_SETSIZE 1024
#define UCS_NCPUBITS    (8 * sizeof(ucs_cpu_mask_t))

/* The word of a set that holds a processor's bit, and the bit in that word. */
#define UCS_CPUELT(cpu)  ((cpu) / UCS_NCPUBITS)
#define UCS_CPUMASK(cpu) ((ucs_cpu_mask_t)1 << ((cpu) % UCS_NCPUBITS))

typedef struct {
	ucs_cpu_mask_t ucs_bits[UCS_CPU_SETSIZE / (8 * sizeof(ucs_cpu_mask_t))];
} ucs_cpu_set_t;

/* Empty a set; add or remove a processor. A number over the size changes nothing. */
#define UCS_CPU_ZERO(set)                                                                          \
	do {                                                                                       \
		for (size_t ucs_i_ = 0; ucs_i_ < UCS_CPU_SETSIZE / UCS_NCPUBITS; ucs_i_++)         \
			(set)->ucs_bits[ucs_i_] = 0;                                               \
	} while (0)
#define UCS_CPU_SET(cpu, set)                                                                      \
	do {                                                                                       \
		size_t ucs_cpu_ = (size_t)(cpu);                                                   \
		if (ucs_cpu_ < UCS_CPU_SETSIZE)                                                    \
			(set)->ucs_bits[UCS_CPUELT(ucs_cpu_)] |= UCS_CPUMASK(ucs_cpu_);            \
	} while (0)
#define UCS_CPU_CLR(cpu, set)                                                                      \
	do {                                                                                       \
		size_t ucs_cpu_ = (size_t)(cpu);                                                   \
		if (ucs_cpu_ < UCS_CPU_SETSIZE)                                                    \
			(set)->ucs_bits[UCS_CPUELT(ucs_cpu_)] &= ~UCS_CPUMASK(ucs_cpu_);           \
	} while (0)

/** @return 1 when processor cpu is in the set, else 0; a cpu outside 0..1023 is not. */
static inline int
ucs_cpu_is_set(int cpu, const ucs_cpu_set_t *set)
{
	if (cpu < 0 || cpu >= UCS_CPU_SETSIZE)
		return 0;
	return (set->ucs_bits[UCS_CPUELT((size_t)cpu)] & UCS_CPUMASK((size_t)cpu)) != 0;
}

/** @return 1 when no processor is in the set, else 0. */
static inline int
ucs_cpu_set_is_empty(const ucs_cpu_set_t *set)
{
	for (size_t i = 0; i < UCS_CPU_SETSIZE / UCS_NCPUBITS; i++) {
		if (set->ucs_bits[i] != 0)
			return 0;
	}
	return 1;
}

/** @return the lowest processor of the set, or 0 when the set is empty. */
static inline int
ucs_cpu_set_find_lcs(const ucs_cpu_set_t *set)
{
	for (int cpu = 0; cpu < UCS_CPU_SETSIZE; cpu++) {
		if (ucs_cpu_is_set(cpu, set))
			return cpu;
	}
	return 0;
}

#endif
