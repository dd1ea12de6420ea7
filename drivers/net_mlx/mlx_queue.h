/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_queue.h - a queue: the driver's part of a worker
 */
#ifndef MLX_QUEUE_H
#define MLX_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "plx_dev_ops.h"
#include "plx_link.h"
#include "plx_route.h"

#include "mlx_bufs.h"
#include "mlx_hw.h"
#include "mlx_port.h"
#include "mlx_ud.h"

#define MLX_TX_ALL	 4096  /* of a queue; as many completions may be unpolled */
#define MLX_SEND_BUFS	 1024  /* buffers for sending, at the most */
#define MLX_KEEP_MIN	 2048  /* bytes of a message that need not be copied to be kept */
#define MLX_UD_EVERY	 32    /* bursts between two looks at the datagrams */
#define MLX_TX_EVERY	 4     /* bursts that find something, between two polls for send completions */
#define MLX_RX_BATCH	 8     /* free slots are posted together, in a burst that finds nothing */
#define MLX_RX_FREE	 16    /* or when this many are free */
#define MLX_RX_SPARE	 (MLX_RX_FREE - 1) /* slots besides the granted ones, as many as may wait
                    	                    * for that */
#define MLX_QPN_HASH	 1024

struct mlx_groups;
struct mlx_io;
struct mlx_mem;
struct mlx_peer;
struct mlx_tm;
struct mlx_way;

/** This driver's own counters. */
struct mlx_stat {
	struct mlx_hw_stat hw;
	struct plx_link_stat link;
	uint64_t conn_no_room;
	uint64_t dgram_rx, dgram_drop_bad, dgram_drop_not_ours;
	uint64_t tx_inline, tx_copied, tx_zcopy, tx_rings, tx_signalled;
	uint64_t tx_no_credit, tx_no_buf, tx_no_room;
	uint64_t windows_grown;
	uint64_t rx_credits_only, tx_credits_only, rx_drop_bad_credit, rx_drop_no_peer, rx_drop_bad_len;
	uint64_t qp_retry, qp_rnr, qp_access, qp_other;
	uint64_t probes;
	struct plx_reg_stat regs;
	uint64_t mem_reused, mem_refused;
	uint64_t ud_failed;	/* datagrams that the device did not send */
	uint64_t ud_restarted;	/* queue pairs for datagrams that failed and were reset */
	uint64_t ways_made, ways_evicted; /* address handles */
	uint64_t lossy_tx, lossy_no_room, lossy_no_way, lossy_rx, lossy_drop_bad, lossy_drop_not_ours;
	uint64_t group_by_cm; /* groups that were joined by the connection manager */
	uint64_t group_tx, group_no_room, group_rx, group_drop_bad, group_drop_not_ours;
	uint64_t tm_adds, tm_dels, tm_syncs; /* commands to the list of receives */
	uint64_t tm_refused;	/* receives that the list does not take */
	uint64_t tm_met;	/* receives that a message matched there */
	uint64_t tm_placed;	/* of these, written by the device */
	uint64_t tm_failed;	/* of these, completed with an error */
	uint64_t tm_unexpected; /* tagged messages that matched none, including tokens */
	uint64_t tm_dropped;	/* of these, dropped */
	uint64_t tm_late;	/* receives that a message matched before they were removed */
	uint64_t tm_drop_bad;	/* violations of the protocol by senders, or the device */
};

struct mlx_queue {
	/* used by each burst */
	struct plx_queue *q;
	struct mlx_hw *hw;
	uint32_t tx_out;	/* requests of all peers that are not completed */
	uint32_t tx_due;	/* those of them that are signalled */
	uint32_t n_free_slots;
	uint16_t n_kept, n_kept_tx;
	SLIST_HEAD(, mlx_peer) owes;
	struct mlx_groups *groups; /* NULL: none was joined yet */
	struct mlx_ud lossy;	/* without a queue pair: not open yet */
	struct plx_link link;	/* looks: bursts */
	/* used by each message */
	uint32_t found_qpn;	/* of found */
	struct mlx_peer *found;	/* the peer of the last completion, or NULL */
	SLIST_HEAD(, mlx_peer) held;
	uint64_t tx_seen;	/* completions taken; MLX_TX_ALL more if there were no more */
	uint32_t free_slots[MLX_RX_FREE]; /* to be posted */
	struct mlx_bufs rx_bufs, tx_bufs;
	struct mlx_stat stat;
	struct mlx_port *port;
	LIST_HEAD(, mlx_mem) mems; /* registered */
	SLIST_HEAD(, mlx_io) ios;  /* free */
	uint32_t n_by_cpu;	   /* long ones in progress, of a software device */
	/* cold */
	struct mlx_addr addr;
	uint32_t granted;	/* slots, to all peers */
	uint32_t n_slots;	/* that there are */
	uint32_t rx_spare;	/* posted besides the granted ones */
	uint32_t rx_room;	/* most slots */
	uint32_t rx_budget;
	uint16_t want;		/* slots for one peer */
	uint8_t timeout, retries; /* in the units of queue pairs */
	bool routed;		/* peers of other networks are tried */
	bool by_manager;	/* the connection manager joins groups */
	struct plx_route_shun shunned;
	SLIST_HEAD(, mlx_peer) by_qpn[MLX_QPN_HASH];
	/* datagrams */
	struct mlx_ud ud;
	TAILQ_HEAD(, mlx_way) ways; /* least recently used first */
	uint32_t n_ways;
	struct mlx_tm *tm;	/* NULL: the device does not match tags */
	/* sleeping */
	struct ibv_comp_channel *channel;
	int epfd;
	struct mlx_hw_comp kept[MLX_HW_POLL_MAX]; /* arrivals found when arming */
	struct mlx_hw_comp kept_tx[MLX_HW_POLL_MAX];
	uint64_t tx_then;	/* tx_seen at the last look at all peers */
	bool cached;		/* counted among the users of the cache */
	pid_t pid;		/* of the owner: a forked child has a copy that it does not own */
};

static_assert(offsetof(struct mlx_queue, link.waiting) <= 3 * PLX_LINE, "a burst that brings nothing");
static_assert(offsetof(struct mlx_queue, stat) - offsetof(struct mlx_queue, found_qpn) <= 4 * PLX_LINE,
	"one that brings messages");

static inline struct mlx_queue *
mlx_queue(const struct plx_queue *q)
{
	return q->priv;
}

/* mlx_queue.c */
int mlx_queue_open(struct plx_queue *q);
void mlx_queue_close(struct plx_queue *q);
void mlx_queue_addr(const struct plx_queue *q, struct plx_addr *addr);
const char *mlx_queue_port(const struct plx_queue *q);
bool mlx_queue_is_up(const struct plx_queue *q);

/* mlx_control.c */
void mlx_queue_control(struct plx_queue *q);
uint64_t mlx_queue_deadline(struct plx_queue *q);
void mlx_queue_leave(struct plx_queue *q);

/* mlx_sleep.c */
int mlx_sleep_open(struct mlx_queue *mq);
void mlx_sleep_close(struct mlx_queue *mq);
int mlx_queue_efd(struct plx_queue *q);
int mlx_queue_arm(struct plx_queue *q);
void mlx_queue_disarm(struct plx_queue *q);

#endif
