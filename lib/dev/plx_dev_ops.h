/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_dev_ops.h - what a driver fills in
 *
 * test/dev_contract_test.c states the contract by running it: messages that were taken arrive in
 * order and unchanged, a full queue returns -EAGAIN and changes nothing, data stays until it is
 * released, a dead peer is reported once, messages have any length from 0 to mtu, and a longer
 * one is refused. A new driver is done when it passes.
 */
#ifndef PLX_DEV_OPS_H
#define PLX_DEV_OPS_H

#include "plx_dev.h"

struct plx_dev {
	const struct plx_dev_ops *ops;
	void *priv;
	uint32_t caps;
	uint32_t refs;
	_Atomic bool failed; /* writers: driver, control; readers: any, relaxed */
};

/**
 * The facts that tell paths between two queues apart. Both sides find the same, but for works, known and dead, which one
 * of them may have seen alone. plx_dev_path_rank() weighs them.
 */
struct plx_dev_path {
	/* by the driver */
	bool works;	/* this side's port is up, and no attempt has failed lately */
	bool one_net;	/* it is known to need no router */
	bool one_place; /* the two ports have the same number at their workers: they are likely to be on one network */
	uint8_t speed;	/* the slower one's, 0 to 15 */
	uint8_t n_near; /* of the two, those whose owner's cores are near the device */
	/* by lib/dev */
	bool known, dead; /* the two are connected, so that both sides use the same pair; or were */
	bool self;	  /* it leads from a queue to itself */
	uint32_t spread;  /* makes equal paths differ, and spreads peers over them */
};

/** The one place that ranks paths. @return higher is better. Thread: any. */
int64_t plx_dev_path_rank(const struct plx_dev_path *path);

/*
 * Optional tables: a driver has all hooks of a table, or none. plx_dev_register() refuses
 * anything else. The contract is that of the plx_dev.h functions of these names. Thread:
 * owner of the queue, unless noted.
 */

/** Sleeping until a message arrives: plx_queue_efd() and so on. */
struct plx_dev_sleep_ops {
	int (*efd)(struct plx_queue *q);
	int (*arm)(struct plx_queue *q);
	void (*disarm)(struct plx_queue *q);
};

/** Reading and writing a peer's memory; with PLX_DEV_GET, PLX_DEV_PUT or PLX_DEV_KEYS. */
struct plx_dev_rma_ops {
	int (*rma)(const struct plx_rma_op *op); /* hot */
	/* hot; plx_dev_no_burst: one by one */
	unsigned (*burst)(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n);
};

/** Sending from where the data lies; queue_open sets zcopy_min and zcopy_iov. */
struct plx_dev_zcopy_ops {
	int (*tx)(const struct plx_tx_zcopy *tx); /* hot: plx_peer_tx_zcopy() */
};

/**
 * Messages that are kept instead of copied; queue_open sets keep_min. The driver goes on with another buffer in place of
 * the one that is kept, and bounds how many are; the message is released as if it had not been kept.
 */
struct plx_dev_keep_ops {
	void *(*keep)(struct plx_queue *q, struct plx_rx *rx); /* hot; may change rx->drv */
	void (*give_back)(struct plx_queue *q, void *kept);    /* hot */
};

/** Memory that both sides map; with PLX_DEV_SHARED. */
struct plx_dev_shared_ops {
	void *(*peer)(struct plx_peer *peer); /* hot: plx_peer_shared() */
	int (*windows)(const struct plx_peer *peer, struct plx_seg_name *out); /* any thread */
	const void *(*view)(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map);
};

/** Memory that peers access by a key, without this side's help; with PLX_DEV_KEYS. */
struct plx_dev_keys_ops {
	int (*reg)(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out);
	void (*dereg)(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
	/* Any thread; -ENODEV after the last port. */
	int (*region_reg)(const struct plx_conf *conf, unsigned port, void *addr, size_t len,
		uint8_t rights, struct plx_dev_key *out);
	void (*region_dereg)(struct plx_dev_key *key); /* any thread */
	int (*put_short)(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote,
		uint64_t key); /* hot */
};

/** Matching of tags; queue_open sets tag_caps. A driver may use those of plx_soft_tag.h. */
struct plx_dev_tag_ops {
	int (*post)(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
	int (*cancel)(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);
};

/** Messages to many; queue_open sets group_mtu. */
struct plx_dev_group_ops {
	int (*join)(struct plx_queue *q, uint64_t group, bool rx);
	void (*leave)(struct plx_queue *q, uint64_t group, bool rx);
	int (*tx)(struct plx_queue *q, uint64_t group, const void *data, uint32_t len);
};

/** Unreliable messages: plx_queue_lossy_open() and so on. */
struct plx_dev_datagram_ops {
	int (*open)(struct plx_queue *q, uint32_t *where);
	int (*to)(struct plx_peer *peer, uint32_t where);
	int (*tx)(const struct plx_tx *tx); /* hot */
};

/**
 * Several ports; queue_open returns -ENODEV after the last. Without these there is one,
 * without a name.
 */
struct plx_dev_ports_ops {
	int (*look)(const struct plx_conf *conf, unsigned port, struct plx_dev_port *out); /* any thread */
	const char *(*name)(const struct plx_queue *q);
	bool (*is_up)(const struct plx_queue *q);
	/* out is zeroed; 0, or -errno: there is none */
	int (*path)(struct plx_queue *q, const struct plx_addr *addr, struct plx_dev_path *out);
};

struct plx_dev_ops {
	const char *name;
	struct plx_conf_rows *settings;	   /* the driver's own; or NULL */
	const struct plx_dev_names *names; /* NULL: it is used only if worker.devices names it */
	size_t peer_len; /* bytes of the driver's peer struct, which begins with a plx_peer */
	uint32_t caps;	 /* PLX_DEV_x of each device, before open */

	/* -- mandatory -- */

	/* Owner thread, slow; 0 or -errno. queue_open sets shared, peer_open mtu, short_max, caps. */
	int (*queue_open)(struct plx_queue *q);
	void (*queue_close)(struct plx_queue *q); /* last step of closing: all peers are closed */
	void (*queue_addr)(const struct plx_queue *q, struct plx_addr *addr);
	int (*peer_open)(struct plx_peer *peer, const struct plx_addr *addr);
	int (*peer_connect)(struct plx_peer *peer); /* before the first send; may set mtu, caps */
	void (*peer_close)(struct plx_peer *peer);

	/* Owner thread, hot: never block, allocate, log or spin. As plx_dev.h says. */
	/* may fail only if plx_peer.tx_sure is 0 */
	int (*tx_short)(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data,
		uint32_t len);
	int (*tx)(const struct plx_tx *tx);
	uint16_t (*rx_burst)(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
	void (*rx_release)(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);

	/* -- optional tables -- */

	struct plx_dev_sleep_ops sleep;
	struct plx_dev_rma_ops rma;
	struct plx_dev_zcopy_ops zcopy;
	struct plx_dev_keep_ops keep;
	struct plx_dev_shared_ops shared;
	struct plx_dev_keys_ops keys;
	struct plx_dev_tag_ops tag;
	struct plx_dev_group_ops group;
	struct plx_dev_datagram_ops datagram;
	struct plx_dev_ports_ops ports;
	/* Connections by socket address; NULL: the driver's devices have no manager for them. */
	const struct plx_dev_cm_ops *cm;

	/* -- single hooks, NULL if there is nothing to do -- */

	/*
	 * The process starts and stops using the device. Any thread, serialised by dev.c; may sleep; 0 or -errno. open
	 * may change dev->caps; conf is that of the first opener.
	 */
	int (*open)(struct plx_dev *dev, const struct plx_conf *conf);
	void (*close)(struct plx_dev *dev);
	enum plx_rx_found (*rx_look)(struct plx_queue *q, struct plx_rx *rx); /* hot */
	void (*flush)(struct plx_queue *q); /* hot: submit delayed messages, see plx_queue.hold */
	void (*queue_leave)(struct plx_queue *q); /* first step of closing: notify peers, let sends
	                                           * arrive */
	/* In a forked child, inside of fork(): close the child's copies of descriptors, so that peers
	 * see the end of the parent's connections. Nothing else of the queue is used there. */
	void (*queue_lose)(struct plx_queue *q);
	void (*queue_control)(struct plx_queue *q);
	uint64_t (*deadline)(struct plx_queue *q); /* plx_queue_deadline(): with queue_control */
	bool (*peer_is)(const struct plx_peer *peer, const struct plx_addr *addr); /* or only its uid */
	void (*peer_settle)(struct plx_peer *peer);
	bool (*peer_has_left)(const struct plx_peer *peer); /* with PLX_DEV_SHARED: then it writes to ours no more */
	int (*bulk)(const struct plx_rma_op *op, uint32_t n); /* plx_peer_bulk(); NULL: by rma */
	/* For the log, of an address that was checked: its owner; why it was refused with err. */
	void (*addr_whose)(const struct plx_addr *addr, char *text, size_t len);
	void (*addr_why)(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text,
		size_t len);
	/* Any thread: the driver's own counters of a queue, or both NULL. */
	const struct plx_stat_row *stat_rows;
	const void *(*stats)(const struct plx_queue *q);
};

/** plx_dev_rma_ops.burst of a driver whose calls have no fixed cost. Thread: owner. */
unsigned plx_dev_no_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces,
	unsigned n);

/** Drivers: the queue needs turns from now on, see plx_queue.rests. Thread: owner. */
static inline void
plx_queue_rouse(struct plx_queue *q)
{
	if (!q->rests)
		return;
	q->rests = false;
	if (q->on_rouse != NULL)
		q->on_rouse(q);
}

/** Drivers: a peer has connected to us. Thread: owner. */
void plx_peer_met(struct plx_peer *peer);

/**
 * Add a driver to the list that plx_dev_open() searches, and its settings; lib/init's table
 * calls it before main(). Errors: -ENOSPC more than PLX_DEV_MAX; -EINVAL a hook is missing;
 * as plx_conf_add(). Thread: control.
 */
int plx_dev_register(const struct plx_dev_ops *ops);

#endif
