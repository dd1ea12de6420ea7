/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp.c - TCP of the kernel between any two hosts: the ops table
 */
#include "plx_net_tcp.h"
#include "plx_soft_tag.h"
#include "tcp_int.h"

#define ROW(field) PLX_STAT_ROW(struct tcp_stat, field)

static const struct plx_stat_row stat_rows[] = {
	ROW(joins), ROW(joined), ROW(accepted), ROW(crossed), ROW(refused), ROW(drop_stranger),
	ROW(drop_silent), ROW(no_fd), ROW(flows), ROW(flows_taken), ROW(flows_failed), ROW(flows_ended), ROW(rx_away),
	ROW(tx_calls), ROW(tx_partial), ROW(rx_calls), ROW(rx_empty),
	ROW(polls), ROW(poll_changes), ROW(randoms), ROW(tx_no_chunk), ROW(rx_no_chunk),
	ROW(parts), ROW(puts), ROW(gets), ROW(atomics), ROW(rx_straight), ROW(drop_ended),
	ROW(drop_bad_key), ROW(drop_bad_frame), ROW(parked), ROW(reopened), ROW(udp_tx_calls),
	ROW(udp_rx_calls), ROW(udp_refused), ROW(udp_drop_bad), ROW(lossy_tx), ROW(lossy_no_room),
	ROW(lossy_rx), ROW(lossy_drop_not_ours), ROW(group_tx), ROW(group_no_room), ROW(group_rx),
	ROW(group_drop_not_ours),
	PLX_STAT_END,
};

static const void *
tcp_stats(const struct plx_queue *q)
{
	return &tcp_queue(q)->stat;
}

const struct plx_dev_ops plx_net_tcp_ops = {
	.name = "net_tcp",
	.settings = &tcp_settings,
	.names = &tcp_names,
	.peer_len = sizeof(struct tcp_peer),
	.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS,
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
