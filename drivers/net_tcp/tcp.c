/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp.c - TCP of the kernel between any two hosts: the ops table
 */
#include "plx_net_tcp.h"
#include "plx_soft_tag.h"
#include "tcp_int.h"

static const struct plx_stat_row stat_rows[] = {
	PLX_STAT_ROW(struct tcp_stat, joins),
	PLX_STAT_ROW(struct tcp_stat, joined),
	PLX_STAT_ROW(struct tcp_stat, accepted),
	PLX_STAT_ROW(struct tcp_stat, crossed),
	PLX_STAT_ROW(struct tcp_stat, refused),
	PLX_STAT_ROW(struct tcp_stat, drop_stranger),
	PLX_STAT_ROW(struct tcp_stat, drop_silent),
	PLX_STAT_ROW(struct tcp_stat, no_fd),
	PLX_STAT_ROW(struct tcp_stat, tx_calls),
	PLX_STAT_ROW(struct tcp_stat, tx_partial),
	PLX_STAT_ROW(struct tcp_stat, rx_calls),
	PLX_STAT_ROW(struct tcp_stat, rx_empty),
	PLX_STAT_ROW(struct tcp_stat, polls),
	PLX_STAT_ROW(struct tcp_stat, poll_changes),
	PLX_STAT_ROW(struct tcp_stat, randoms),
	PLX_STAT_ROW(struct tcp_stat, tx_no_chunk),
	PLX_STAT_ROW(struct tcp_stat, rx_no_chunk),
	PLX_STAT_ROW(struct tcp_stat, parts),
	PLX_STAT_ROW(struct tcp_stat, puts),
	PLX_STAT_ROW(struct tcp_stat, gets),
	PLX_STAT_ROW(struct tcp_stat, atomics),
	PLX_STAT_ROW(struct tcp_stat, rx_straight),
	PLX_STAT_ROW(struct tcp_stat, drop_ended),
	PLX_STAT_ROW(struct tcp_stat, drop_bad_key),
	PLX_STAT_ROW(struct tcp_stat, drop_bad_frame),
	PLX_STAT_ROW(struct tcp_stat, parked),
	PLX_STAT_ROW(struct tcp_stat, reopened),
	PLX_STAT_ROW(struct tcp_stat, udp_tx_calls),
	PLX_STAT_ROW(struct tcp_stat, udp_rx_calls),
	PLX_STAT_ROW(struct tcp_stat, udp_refused),
	PLX_STAT_ROW(struct tcp_stat, udp_drop_bad),
	PLX_STAT_ROW(struct tcp_stat, lossy_tx),
	PLX_STAT_ROW(struct tcp_stat, lossy_no_room),
	PLX_STAT_ROW(struct tcp_stat, lossy_rx),
	PLX_STAT_ROW(struct tcp_stat, lossy_drop_not_ours),
	PLX_STAT_ROW(struct tcp_stat, group_tx),
	PLX_STAT_ROW(struct tcp_stat, group_no_room),
	PLX_STAT_ROW(struct tcp_stat, group_rx),
	PLX_STAT_ROW(struct tcp_stat, group_drop_not_ours),
	PLX_STAT_END,
};

static const void *
tcp_stats(const struct plx_queue *q)
{
	return &tcp_queue(q)->stat;
}

static int
tcp_open(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS;
	return 0;
}

static void
tcp_close(struct plx_dev *dev)
{
	(void)dev;
}

const struct plx_dev_ops plx_net_tcp_ops = {
	.name = "net_tcp",
	.settings = &tcp_settings,
	.names = &tcp_names,
	.peer_len = sizeof(struct tcp_peer),
	.open = tcp_open,
	.close = tcp_close,
	.queue_open = tcp_queue_open,
	.queue_leave = tcp_queue_leave,
	.queue_lose = tcp_queue_lose,
	.queue_close = tcp_queue_close,
	.queue_addr = tcp_queue_addr,
	.queue_control = tcp_queue_control,
	.deadline = tcp_queue_deadline,
	.peer_open = tcp_peer_open,
	.addr_whose = tcp_addr_whose,
	.addr_why = tcp_addr_why,
	.peer_connect = tcp_peer_connect,
	.peer_close = tcp_peer_close,
	.sleep.efd = tcp_queue_efd,
	.sleep.arm = tcp_queue_arm,
	.sleep.disarm = tcp_queue_disarm,
	.tx_short = tcp_tx_short,
	.tx = tcp_tx,
	.zcopy.tx = tcp_tx_zcopy,
	.rma.rma = tcp_rma,
	.rma.burst = plx_dev_no_burst,
	.keys.reg = tcp_mem_reg,
	.keys.dereg = tcp_mem_dereg,
	.keys.region_reg = tcp_region_reg,
	.keys.region_dereg = tcp_region_dereg,
	.keys.put_short = tcp_put_short,
	.group.join = tcp_group_join,
	.group.leave = tcp_group_leave,
	.group.tx = tcp_group_tx,
	.datagram.open = tcp_lossy_open,
	.datagram.to = tcp_lossy_to,
	.datagram.tx = tcp_lossy_tx,
	.flush = tcp_flush,
	.rx_burst = tcp_rx_burst,
	.rx_release = tcp_rx_release,
	.tag.post = plx_soft_tag_post,
	.tag.cancel = plx_soft_tag_cancel,
	.stat_rows = stat_rows,
	.stats = tcp_stats,
};
