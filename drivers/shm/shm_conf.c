/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_conf.c - settings of the driver, and its names in other interfaces
 */
#include "shm_int.h"

PLX_LOG_DEFINE(shm, "plx.drv.shm");

static const char *const auto_no[] = {"auto", "no", NULL};

static const struct plx_conf_row rows[SHM_CONF_N] = {
	PLX_ROW_ENUM(SHM_CONF_HUGE, "shm.huge", "auto", auto_no, false,
		"Whether shared segments are backed by huge pages when there are free ones.", PLX_CONF_ROLE_HUGE),
	PLX_ROW_UINT(SHM_CONF_FAST_PEERS, "shm.fast_peers", "peers", "32", 0, 64, false,
		"Peers that get their own ring to this worker; the others share one."),
	PLX_ROW_UINT(SHM_CONF_WIDE_PEERS, "shm.wide_peers", "peers", "4", 0, 64, false,
		"Of the fast peers, those with 2 MiB for data in flight; the others have 120 KiB."),
	PLX_ROW_ENUM(SHM_CONF_CMA, "shm.cma", "auto", auto_no, false,
		"Whether large private buffers are read and written by cross-memory attach.", PLX_CONF_ROLE_READS),
	PLX_ROW_BOOL(SHM_CONF_WINDOWS, "shm.windows", "yes", false,
		"Whether large buffers in memory that a peer allocated by UCP are mapped here and copied."),
	PLX_ROW_ENUM(SHM_CONF_FAR, "shm.far", "auto", auto_no, false,
		"Whether long messages bypass the caches where lines come slowly from the receiver's core."),
	PLX_ROW_STR(SHM_CONF_DIR, "shm.dir", "", false,
		"Folder in which processes find each other, also across containers that share it; empty: only "
		"processes of one network namespace do.", PLX_CONF_ROLE_MEET_DIR),
	PLX_ROW_STR(SHM_CONF_PEERS, "shm.peers", "same", false,
		"Whose processes may connect: same (user), all, or a list of users and @groups, by name or number.", PLX_CONF_ROLE_MEET_PEERS),
};

struct plx_conf_rows shm_settings = {.rows = rows, .n = SHM_CONF_N};

/* Shared memory is disabled when both of UCX's transports for it are; cma is one of several
 * for reading. */
enum { POSIX = 1, SYSV = 2 };

static const struct plx_dev_alias aliases[] = {
	{"posix", false, POSIX}, {"sysv", false, SYSV}, {"mm", false, POSIX | SYSV}, {"self", false, 0},
	{"sm", true, POSIX | SYSV}, {"shm", true, POSIX | SYSV}, {"cma", true, PLX_DEV_ALIAS_READS},
	{"knem", true, 0}, {"xpmem", true, 0}, {NULL, false, 0},
};

const struct plx_dev_names shm_names = {.aliases = aliases, .cci = "sm"};
