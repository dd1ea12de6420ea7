/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx.c - RDMA between hosts, and between processes of one: the ops table
 */
#include "plx_net_mlx.h"
#include "mlx_cm.h"
#include "mlx_conf.h"
#include "mlx_conn.h"
#include "mlx_group.h"
#include "mlx_lossy.h"
#include "mlx_mem.h"
#include "mlx_pick.h"
#include "mlx_rx.h"
#include "mlx_tm.h"
#include "mlx_tx.h"
#include "plx_net_mlx.h"

#define ROW(field) PLX_STAT_ROW(struct mlx_stat, field)
#define NAMED(name, field) PLX_STAT_NAMED(name, struct mlx_stat, field)

static const struct plx_stat_row stat_rows[] = {
	NAMED("conn_asked", link.asked), NAMED("conn_asked_again", link.asked_again),
	NAMED("conn_answered", link.answered), NAMED("conn_refused", link.refused),
	ROW(conn_no_room), NAMED("conn_parked", link.parked),
	NAMED("conn_parked_by_peer", link.parked_by_peer), NAMED("conn_waits", link.waits),
	NAMED("conn_drop_old", link.drop_old), ROW(dgram_rx), ROW(dgram_drop_bad),
	ROW(dgram_drop_not_ours), ROW(tx_inline), ROW(tx_copied), ROW(tx_zcopy), ROW(tx_rings),
	ROW(tx_signalled), ROW(tx_no_credit), ROW(tx_no_buf), ROW(tx_no_room), ROW(windows_grown),
	ROW(rx_credits_only), ROW(tx_credits_only), ROW(rx_drop_bad_credit), ROW(rx_drop_no_peer),
	ROW(rx_drop_bad_len), ROW(qp_retry), ROW(qp_rnr), ROW(qp_access), ROW(qp_other),
	ROW(probes), NAMED("silent_asked", link.silent_asked),
	NAMED("silent_answered", link.silent_answered), NAMED("silent_gone", link.silent_gone),
	NAMED("comp_stale", hw.comp_stale), NAMED("comp_bad", hw.comp_bad),
	NAMED("rung_again", hw.rung_again), NAMED("mem_regs", regs.made), ROW(mem_reused),
	ROW(mem_refused), NAMED("cache_hits", regs.hits), NAMED("cache_misses", regs.misses),
	NAMED("cache_unfit", regs.unfit), NAMED("cache_evicted", regs.evicted),
	NAMED("cache_gone", regs.gone), ROW(ud_failed), ROW(ud_restarted), ROW(ways_made),
	ROW(ways_evicted), ROW(lossy_tx), ROW(lossy_no_room), ROW(lossy_no_way), ROW(lossy_rx),
	ROW(lossy_drop_bad), ROW(lossy_drop_not_ours), ROW(group_by_cm), ROW(group_tx),
	ROW(group_no_room), ROW(group_rx), ROW(group_drop_bad), ROW(group_drop_not_ours),
	ROW(tm_adds), ROW(tm_dels), ROW(tm_syncs), ROW(tm_refused), ROW(tm_met), ROW(tm_placed),
	ROW(tm_failed), ROW(tm_unexpected), ROW(tm_dropped), ROW(tm_late), ROW(tm_drop_bad),
	PLX_STAT_END,
};

static const void *
mlx_stats(const struct plx_queue *q)
{
	return &mlx_queue(q)->stat;
}

const struct plx_dev_ops plx_net_mlx_ops = {
	.name = "net_mlx",
	.settings = &mlx_settings,
	.names = &mlx_names,
	.peer_len = sizeof(struct mlx_peer),
	.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS,
	.ports.look = mlx_look,
	.queue_open = mlx_queue_open,
	.queue_leave = mlx_queue_leave,
	.queue_close = mlx_queue_close,
	.queue_addr = mlx_queue_addr,
	.ports.name = mlx_queue_port,
	.ports.is_up = mlx_queue_is_up,
	.ports.path = mlx_queue_path,
	.queue_control = mlx_queue_control,
	.deadline = mlx_queue_deadline,
	.peer_open = mlx_peer_open,
	.addr_whose = mlx_addr_whose,
	.addr_why = mlx_addr_why,
	.peer_is = mlx_peer_is,
	.peer_connect = mlx_peer_connect,
	.peer_close = mlx_peer_close,
	.sleep.efd = mlx_queue_efd,
	.sleep.arm = mlx_queue_arm,
	.sleep.disarm = mlx_queue_disarm,
	.keys.reg = mlx_mem_reg,
	.keys.dereg = mlx_mem_dereg,
	.keys.region_reg = mlx_region_reg,
	.keys.region_dereg = mlx_region_dereg,
	.tx_short = mlx_tx_short,
	.tx = mlx_tx,
	.zcopy.tx = mlx_tx_zcopy,
	.flush = mlx_flush,
	.rma.rma = mlx_rma,
	.rma.burst = plx_dev_no_burst,
	.keys.put_short = mlx_put_short,
	.tag.post = mlx_tm_post,
	.tag.cancel = mlx_tm_cancel,
	.group.join = mlx_group_join,
	.group.leave = mlx_group_leave,
	.group.tx = mlx_group_tx,
	.datagram.open = mlx_lossy_open,
	.datagram.to = mlx_lossy_to,
	.datagram.tx = mlx_lossy_tx,
	.rx_burst = mlx_rx_burst,
	.rx_release = mlx_rx_release,
	.keep.keep = mlx_rx_keep,
	.keep.give_back = mlx_rx_give_back,
	.cm = &mlx_cm_ops,
	.stat_rows = stat_rows,
	.stats = mlx_stats,
};
