/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_futex.h - sleeping on a word of this process
 */
#ifndef PLX_FUTEX_H
#define PLX_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/**
 * Sleep while *word is value, until a wake-up or a signal.
 * @param most longest time, NULL: no limit
 * Read the word for the reason. Thread: any. Blocks.
 */
static inline void
plx_futex_wait(_Atomic uint32_t *word, uint32_t value, const struct timespec *most)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, most, NULL, 0);
}

/** Wake one thread that sleeps on word, if there is any. Thread: any. */
static inline void
plx_futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
