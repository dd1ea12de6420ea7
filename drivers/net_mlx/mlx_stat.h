/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_stat.h - counters of the driver's own
 */
#ifndef MLX_STAT_H
#define MLX_STAT_H

#include <stdint.h>

#include "plx_link.h"
#include "plx_reg_cache.h"

#include "mlx_hw.h"

/** Counters of this driver's own. */
struct mlx_stat {
	struct mlx_hw_stat hw;
	struct plx_link_stat link;
	uint64_t conn_no_room;
	uint64_t dgram_rx, dgram_drop_bad, dgram_drop_not_ours;
	uint64_t tx_inline, tx_copied, tx_rings, tx_signalled;
	uint64_t tx_no_credit, tx_no_buf, tx_no_room;
	uint64_t windows_grown;
	uint64_t rx_credits_only, tx_credits_only, rx_drop_bad_credit, rx_drop_no_peer, rx_drop_bad_len;
	uint64_t qp_retry, qp_rnr, qp_access, qp_other;
	uint64_t probes;
	struct plx_reg_stat regs;
	uint64_t mem_reused, mem_refused;
	uint64_t ud_failed;	/* datagrams that the device did not send */
	uint64_t ud_restarted;	/* queue pairs for datagrams that had failed and were brought back */
	uint64_t ways_made, ways_evicted; /* address handles */
	uint64_t lossy_tx, lossy_no_room, lossy_no_way, lossy_rx, lossy_drop_bad, lossy_drop_not_ours;
	uint64_t group_by_cm; /* groups that were joined by the connection manager */
	uint64_t group_tx, group_no_room, group_rx, group_drop_bad, group_drop_not_ours;
	uint64_t tm_adds, tm_dels, tm_syncs; /* commands to the list of receives */
	uint64_t tm_refused;	/* receives that the list does not take */
	uint64_t tm_met;	/* receives that a message met there */
	uint64_t tm_placed;	/* of these, written by the device */
	uint64_t tm_failed;	/* of these, ended by an error */
	uint64_t tm_unexpected; /* tagged messages that met none, tokens among them */
	uint64_t tm_dropped;	/* of these, nobody got */
	uint64_t tm_late;	/* receives that a message met before they were taken out */
	uint64_t tm_drop_bad;	/* not as senders, or the device, are to do it */
};

#endif
