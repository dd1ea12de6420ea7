/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm.c - shared memory between processes of one machine: the ops table
 */

#include "plx_shm.h"
#include "plx_soft_tag.h"
#include "shm_int.h"

const struct plx_dev_ops plx_shm_ops = {
	.name = "shm",
	.settings = &shm_settings,
	.names = &shm_names,
	.peer_len = sizeof(struct shm_peer),
	.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_SHARED | PLX_DEV_GET | PLX_DEV_PUT,
	.queue_open = shm_queue_open,
	.queue_close = shm_queue_close,
	.queue_addr = shm_queue_addr,
	.queue_control = shm_queue_control,
	.peer_open = shm_peer_open,
	.addr_whose = shm_addr_whose,
	.addr_why = shm_addr_why,
	.peer_is = shm_peer_is,
	.shared.windows = shm_peer_windows,
	.shared.view = shm_peer_view,
	.peer_has_left = shm_peer_has_left,
	.bulk = shm_bulk,
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
