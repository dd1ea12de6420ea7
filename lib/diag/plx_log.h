/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_log.h - log lines of the process: rte_log with one type a library
 *
 * A library has PLX_LOG_DECLARE(rndv); in one internal header and PLX_LOG_DEFINE(rndv, "plx.rndv"); in
 * one .c file. Its files then log by PLX_LOG(ERR, rndv, ...).
 *
 * Nothing on the hot path logs: it counts instead.
 */
#ifndef PLX_LOG_H
#define PLX_LOG_H

#include <stdint.h>

#include <rte_cycles.h>
#include <rte_log.h>

#define PLX_LOG_DECLARE(type) extern int plx_logtype_##type

/* The level of a type is plx_log_level() at the time it is registered. */
#define PLX_LOG_DEFINE(type, name)                                                                 \
	int plx_logtype_##type;                                                                    \
	RTE_INIT(plx_log_init_##type)                                                              \
	{                                                                                          \
		plx_logtype_##type = rte_log_register_type_and_pick_level(name, RTE_LOG_WARNING);  \
	}                                                                                          \
	extern int plx_logtype_##type

/**
 * Write one line to the log; ends the line itself.
 * ERR: lost something. WARNING: degraded. NOTICE: start, stop.
 * INFO: objects made and gone. DEBUG: steps of slow paths.
 */
#define PLX_LOG(level, type, fmt, ...)                                                             \
	rte_log(RTE_LOG_##level, plx_logtype_##type, "pollux: " fmt "\n", ##__VA_ARGS__)

/** As PLX_LOG, at most once a second for each place in the code. */
#define PLX_LOG_RATELIMIT(level, type, fmt, ...)                                                   \
	do {                                                                                       \
		static uint64_t plx_log_next;                                                      \
		uint64_t plx_log_now = rte_rdtsc();                                                \
		if (plx_log_now >= __atomic_load_n(&plx_log_next, __ATOMIC_RELAXED)) {             \
			__atomic_store_n(&plx_log_next, plx_log_now + rte_get_tsc_hz(),            \
				__ATOMIC_RELAXED);                                                 \
			PLX_LOG(level, type, fmt, ##__VA_ARGS__);                                  \
		}                                                                                  \
	} while (0)

/** Set the level of every Pollux log type. @param level RTE_LOG_x. Thread: any. */
void plx_log_set_level(uint32_t level);

/**
 * Append log lines to a file, from now on, instead of standard error.
 * @param template its name, in which %p is the process, %h the host, %u the user's number,
 *   %e the program, %c the core, %t the time in seconds; "stdout" and "stderr" are those;
 *   "" changes nothing. UCX's UCX_LOG_FILE.
 * @return 0; -ENAMETOOLONG; the error of fopen(), and the destination stays. Thread:
 *   control. Blocks: may.
 */
int plx_log_set_file(const char *template);

/** The name that a template makes, in name of len bytes. @return 0 or -ENAMETOOLONG. Thread: any. */
int plx_log_file_name(const char *template, char *name, size_t len);

/** @return the level last set with plx_log_set_level(), or RTE_LOG_WARNING. Thread: any. */
uint32_t plx_log_get_level(void);

#endif
