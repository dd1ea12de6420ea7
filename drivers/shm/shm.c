/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm.c - shared memory between processes of one machine: settings and the ops table
 */
#include <errno.h>

#include "plx_shm.h"
#include "plx_soft_tag.h"
#include "shm_int.h"

PLX_LOG_DEFINE(shm, "plx.drv.shm");

static const char *const auto_no[] = {"auto", "no", NULL};

static const struct plx_conf_row rows[SHM_CONF_N] = {
	PLX_ROW_ENUM(SHM_CONF_HUGE, "shm.huge", "auto", auto_no, false,
		"Whether shared segments are backed by huge pages when there are free ones.", PLX_CONF_ROLE_HUGE),
	PLX_ROW_UINT(SHM_CONF_FAST_PEERS, "shm.fast_peers", "peers", "32", 0, 64, false,
		"Peers that get a ring of their own to this worker; the rest share one."),
	PLX_ROW_UINT(SHM_CONF_WIDE_PEERS, "shm.wide_peers", "peers", "8", 0, 64, false,
		"Of the fast peers, those with 352 KiB for data under way; the others have 108."),
	PLX_ROW_ENUM(SHM_CONF_CMA, "shm.cma", "auto", auto_no, false,
		"Whether large private buffers are read and written by cross-memory attach.", PLX_CONF_ROLE_READS),
	PLX_ROW_BOOL(SHM_CONF_WINDOWS, "shm.windows", "yes", false,
		"Whether large buffers in memory that a peer allocated by UCP are mapped here and copied."),
	PLX_ROW_STR(SHM_CONF_DIR, "shm.dir", "", false,
		"A folder in which processes find each other, as those of containers that share it; empty: those "
		"of a network namespace do.", PLX_CONF_ROLE_MEET_DIR),
	PLX_ROW_STR(SHM_CONF_PEERS, "shm.peers", "same", false,
		"Whose processes are met: same (user), all, or a list of users and @groups, by name or number.", PLX_CONF_ROLE_MEET_PEERS),
};

struct plx_conf_rows shm_settings = {.rows = rows, .n = SHM_CONF_N};

/* Shared memory is gone when both ways that UCX has for it are; cma is one of several ways to read. */
enum { POSIX = 1, SYSV = 2 };

static const struct plx_dev_alias aliases[] = {
	{"posix", false, POSIX}, {"sysv", false, SYSV}, {"mm", false, POSIX | SYSV}, {"self", false, 0},
	{"sm", true, POSIX | SYSV}, {"shm", true, POSIX | SYSV}, {"cma", true, PLX_DEV_ALIAS_READS},
	{"knem", true, 0}, {"xpmem", true, 0}, {NULL, false, 0},
};

static const struct plx_dev_names names = {.aliases = aliases, .cci = "sm"};

static int
shm_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_SHARED | PLX_DEV_GET | PLX_DEV_PUT;
	return 0;
}

static void
shm_close(struct plx_dev *dev)
{
	(void)dev;
}

const struct plx_dev_ops plx_shm_ops = {
	.name = "shm",
	.settings = &shm_settings,
	.names = &names,
	.peer_len = sizeof(struct shm_peer),
	.open = shm_open,
	.close = shm_close,
	.queue_open = shm_queue_open,
	.queue_close = shm_queue_close,
	.queue_addr = shm_queue_addr,
	.queue_control = shm_queue_control,
	.peer_open = shm_peer_open,
	.addr_whose = shm_addr_whose,
	.addr_why = shm_addr_why,
	.peer_is = shm_peer_is,
	.shared.windows = shm_peer_windows,
	.peer_has_left = shm_peer_has_left,
	.peer_connect = shm_peer_connect,
	.peer_settle = shm_peer_settle,
	.peer_close = shm_peer_close,
	.sleep.efd = shm_queue_efd,
	.sleep.arm = shm_queue_arm,
	.sleep.disarm = shm_queue_disarm,
	.tx_short = shm_tx_short,
	.tx = shm_tx,
	.rx_burst = shm_rx_burst,
	.rx_look = shm_rx_look,
	.rx_release = shm_rx_release,
	.rma.rma = shm_rma,
	.rma.burst = shm_rma_burst,
	.shared.peer = shm_peer_shared,
	.tag.post = plx_soft_tag_post,
	.tag.cancel = plx_soft_tag_cancel,
};
