/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_int.h - between the model and the functions that compiled code calls
 */
#ifndef WEAK_INT_H
#define WEAK_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Of a read-modify-write. @return the new value */
typedef uint64_t weak_fn(uint64_t was, uint64_t arg);

/** Otherwise memory is accessed as it is: before the threads begin. */
bool weak_is_on(void);

void weak_plain(uintptr_t addr, size_t len, bool write);
uint64_t weak_load(uintptr_t addr, unsigned size, int order);
void weak_store(uintptr_t addr, unsigned size, uint64_t v, int order);
/** @return the value before */
uint64_t weak_change(uintptr_t addr, unsigned size, weak_fn *fn, uint64_t arg, int order);
bool weak_cas(uintptr_t addr, unsigned size, uint64_t *expected, uint64_t v, int order, int fail_order);
void weak_fence(int order);
void weak_signal_fence(int order);

#endif
