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

static const struct plx_stat_row stat_rows[] = {
	PLX_STAT_NAMED("conn_asked", struct mlx_stat, link.asked),
	PLX_STAT_NAMED("conn_asked_again", struct mlx_stat, link.asked_again),
	PLX_STAT_NAMED("conn_answered", struct mlx_stat, link.answered),
	PLX_STAT_NAMED("conn_refused", struct mlx_stat, link.refused),
	PLX_STAT_ROW(struct mlx_stat, conn_no_room),
	PLX_STAT_NAMED("conn_parked", struct mlx_stat, link.parked),
	PLX_STAT_NAMED("conn_parked_by_peer", struct mlx_stat, link.parked_by_peer),
	PLX_STAT_NAMED("conn_waits", struct mlx_stat, link.waits),
	PLX_STAT_NAMED("conn_drop_old", struct mlx_stat, link.drop_old),
	PLX_STAT_ROW(struct mlx_stat, dgram_rx),
	PLX_STAT_ROW(struct mlx_stat, dgram_drop_bad),
	PLX_STAT_ROW(struct mlx_stat, dgram_drop_not_ours),
	PLX_STAT_ROW(struct mlx_stat, tx_inline),
	PLX_STAT_ROW(struct mlx_stat, tx_copied),
	PLX_STAT_ROW(struct mlx_stat, tx_zcopy),
	PLX_STAT_ROW(struct mlx_stat, tx_rings),
	PLX_STAT_ROW(struct mlx_stat, tx_signalled),
	PLX_STAT_ROW(struct mlx_stat, tx_no_credit),
	PLX_STAT_ROW(struct mlx_stat, tx_no_buf),
	PLX_STAT_ROW(struct mlx_stat, tx_no_room),
	PLX_STAT_ROW(struct mlx_stat, windows_grown),
	PLX_STAT_ROW(struct mlx_stat, rx_credits_only),
	PLX_STAT_ROW(struct mlx_stat, tx_credits_only),
	PLX_STAT_ROW(struct mlx_stat, rx_drop_bad_credit),
	PLX_STAT_ROW(struct mlx_stat, rx_drop_no_peer),
	PLX_STAT_ROW(struct mlx_stat, rx_drop_bad_len),
	PLX_STAT_ROW(struct mlx_stat, qp_retry),
	PLX_STAT_ROW(struct mlx_stat, qp_rnr),
	PLX_STAT_ROW(struct mlx_stat, qp_access),
	PLX_STAT_ROW(struct mlx_stat, qp_other),
	PLX_STAT_ROW(struct mlx_stat, probes),
	PLX_STAT_NAMED("silent_asked", struct mlx_stat, link.silent_asked),
	PLX_STAT_NAMED("silent_answered", struct mlx_stat, link.silent_answered),
	PLX_STAT_NAMED("silent_gone", struct mlx_stat, link.silent_gone),
	PLX_STAT_NAMED("comp_stale", struct mlx_stat, hw.comp_stale),
	PLX_STAT_NAMED("comp_bad", struct mlx_stat, hw.comp_bad),
	PLX_STAT_NAMED("rung_again", struct mlx_stat, hw.rung_again),
	PLX_STAT_NAMED("mem_regs", struct mlx_stat, regs.made),
	PLX_STAT_ROW(struct mlx_stat, mem_reused),
	PLX_STAT_ROW(struct mlx_stat, mem_refused),
	PLX_STAT_NAMED("cache_hits", struct mlx_stat, regs.hits),
	PLX_STAT_NAMED("cache_misses", struct mlx_stat, regs.misses),
	PLX_STAT_NAMED("cache_unfit", struct mlx_stat, regs.unfit),
	PLX_STAT_NAMED("cache_evicted", struct mlx_stat, regs.evicted),
	PLX_STAT_NAMED("cache_gone", struct mlx_stat, regs.gone),
	PLX_STAT_ROW(struct mlx_stat, ud_failed),
	PLX_STAT_ROW(struct mlx_stat, ud_restarted),
	PLX_STAT_ROW(struct mlx_stat, ways_made),
	PLX_STAT_ROW(struct mlx_stat, ways_evicted),
	PLX_STAT_ROW(struct mlx_stat, lossy_tx),
	PLX_STAT_ROW(struct mlx_stat, lossy_no_room),
	PLX_STAT_ROW(struct mlx_stat, lossy_no_way),
	PLX_STAT_ROW(struct mlx_stat, lossy_rx),
	PLX_STAT_ROW(struct mlx_stat, lossy_drop_bad),
	PLX_STAT_ROW(struct mlx_stat, lossy_drop_not_ours),
	PLX_STAT_ROW(struct mlx_stat, group_by_cm),
	PLX_STAT_ROW(struct mlx_stat, group_tx),
	PLX_STAT_ROW(struct mlx_stat, group_no_room),
	PLX_STAT_ROW(struct mlx_stat, group_rx),
	PLX_STAT_ROW(struct mlx_stat, group_drop_bad),
	PLX_STAT_ROW(struct mlx_stat, group_drop_not_ours),
	PLX_STAT_ROW(struct mlx_stat, tm_adds),
	PLX_STAT_ROW(struct mlx_stat, tm_dels),
	PLX_STAT_ROW(struct mlx_stat, tm_syncs),
	PLX_STAT_ROW(struct mlx_stat, tm_refused),
	PLX_STAT_ROW(struct mlx_stat, tm_met),
	PLX_STAT_ROW(struct mlx_stat, tm_placed),
	PLX_STAT_ROW(struct mlx_stat, tm_failed),
	PLX_STAT_ROW(struct mlx_stat, tm_unexpected),
	PLX_STAT_ROW(struct mlx_stat, tm_dropped),
	PLX_STAT_ROW(struct mlx_stat, tm_late),
	PLX_STAT_ROW(struct mlx_stat, tm_drop_bad),
	PLX_STAT_END,
};

static const void *
mlx_stats(const struct plx_queue *q)
{
	return &mlx_queue(q)->stat;
}

static int
mlx_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS;
	return 0;
}

static void
mlx_close(struct plx_dev *dev)
{
	(void)dev;
}

const struct plx_dev_ops plx_net_mlx_ops = {
	.name = "net_mlx",
	.settings = &mlx_settings,
	.names = &mlx_names,
	.peer_len = sizeof(struct mlx_peer),
	.open = mlx_open,
	.close = mlx_close,
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
