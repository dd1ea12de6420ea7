/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stat.c - the log level of all Pollux log types, and tables of counters
 */
#include "plx_log.h"
#include "plx_stat.h"

static uint32_t stat_log_level = RTE_LOG_WARNING;

void
plx_log_set_level(uint32_t level)
{
	__atomic_store_n(&stat_log_level, level, __ATOMIC_RELAXED);
	rte_log_set_level_pattern("plx.*", level);
}

uint32_t
plx_log_get_level(void)
{
	return __atomic_load_n(&stat_log_level, __ATOMIC_RELAXED);
}
