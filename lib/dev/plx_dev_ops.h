/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_dev_ops.h - what a driver fills in
 *
 * test/dev_contract_test.c states the contract by running it: what was taken
 * arrives in order and unchanged, a full queue answers -EAGAIN and changes
 * nothing, data stays until it is released, a dead peer is told once, lengths 0,
 * mtu and mtu + 1. A new driver is done when it passes.
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

/** What peer_score adds to what it says, below this, while nothing speaks against the way. */
#define PLX_SCORE_GOOD (1 << 30)

/** Hooks a driver leaves NULL are filled in by dev.c and answer -EOPNOTSUPP or nothing. */
struct plx_dev_ops {
	const char *name;
	struct plx_conf_rows *settings;	   /* the driver's own; or NULL */
	const struct plx_dev_names *names; /* NULL: it is used only where worker.devices names it */
	size_t peer_len; /* bytes of the driver's peer struct, which begins with a plx_peer */

	/* Any thread, serialised by dev.c; may sleep; 0 or -errno. */
	int (*open)(struct plx_dev *dev);
	void (*close)(struct plx_dev *dev);

	/* Any thread, may be NULL: there is one port, without a name. As plx_dev.h says of plx_dev_look(). */
	int (*look)(const struct plx_conf *conf, unsigned port, struct plx_dev_port *out);

	/* Owner thread, slow; 0 or -errno. queue_open sets shared, peer_open mtu, short_max, caps. */
	int (*queue_open)(struct plx_queue *q);
	void (*queue_leave)(struct plx_queue *q); /* first of closing: tell peers, let sends arrive */
	void (*queue_close)(struct plx_queue *q); /* last of it: all peers are closed */
	void (*queue_addr)(const struct plx_queue *q, struct plx_addr *addr);
	/* Of a device with several ports, all three; queue_open then says -ENODEV behind the last. */
	const char *(*queue_port)(const struct plx_queue *q);
	bool (*queue_is_up)(const struct plx_queue *q);
	int (*peer_score)(struct plx_queue *q, const struct plx_addr *addr); /* below 2^16, or -errno */
	void (*queue_control)(struct plx_queue *q);
	int (*peer_open)(struct plx_peer *peer, const struct plx_addr *addr);
	/* For the log, of an address that was checked: whose it is; why it was refused with err. May be NULL. */
	void (*addr_whose)(const struct plx_addr *addr, char *text, size_t len);
	void (*addr_why)(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text,
		size_t len);
	bool (*peer_is)(const struct plx_peer *peer, const struct plx_addr *addr); /* or only its uid */
	int (*mem_reg)(struct plx_queue *q, void *addr, size_t len, uint8_t rights,
		struct plx_dev_mem *out);
	void (*mem_dereg)(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
	/* Any thread: both or none; -ENODEV behind the last port. */
	int (*region_reg)(const struct plx_conf *conf, unsigned port, void *addr, size_t len,
		uint8_t rights, struct plx_dev_key *out);
	void (*region_dereg)(struct plx_dev_key *key);
	/* Any thread, may be NULL. As plx_dev.h says of plx_peer_windows(). */
	int (*peer_windows)(const struct plx_peer *peer, struct plx_seg_name *out);
	bool (*peer_has_left)(const struct plx_peer *peer); /* may be NULL */
	int (*peer_connect)(struct plx_peer *peer); /* before the first send; may set mtu, caps */
	void (*peer_settle)(struct plx_peer *peer); /* may be NULL; as plx_dev.h says of plx_peer_settle() */
	void (*peer_close)(struct plx_peer *peer);

	/* Owner thread; all three or none: as plx_dev.h says of plx_queue_efd() and so on. */
	int (*queue_efd)(struct plx_queue *q);
	int (*queue_arm)(struct plx_queue *q);
	void (*queue_disarm)(struct plx_queue *q);

	/* Owner thread, hot: never block, allocate, log or spin. As plx_dev.h says. */
	/* may fail only where plx_peer.tx_sure is 0 */
	int (*tx_short)(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data,
		uint32_t len);
	int (*tx)(const struct plx_tx *tx);
	void (*flush)(struct plx_queue *q); /* what was held back, see plx_queue.hold */
	uint16_t (*rx_burst)(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
	enum plx_rx_found (*rx_look)(struct plx_queue *q, struct plx_rx *rx); /* may be NULL */
	void (*rx_release)(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
	int (*rma)(const struct plx_rma_op *op);
	int (*put_short)(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote,
		uint64_t key); /* with PLX_DEV_KEYS */
	unsigned (*rma_burst)(const struct plx_rma_op *ops, unsigned n); /* may be NULL */
	void *(*peer_shared)(struct plx_peer *peer);

	/* Owner thread, hot; both or none, with tag_caps set by queue_open. As plx_dev.h says. */
	int (*tag_post)(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
	int (*tag_cancel)(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);

	/* Owner thread; all three or none, with group_mtu set by queue_open. As plx_dev.h says. */
	int (*group_join)(struct plx_queue *q, uint64_t group, bool rx);
	void (*group_leave)(struct plx_queue *q, uint64_t group, bool rx);
	int (*group_tx)(struct plx_queue *q, uint64_t group, const void *data, uint32_t len);

	/* Owner thread; all three or none. As plx_dev.h says. */
	int (*lossy_open)(struct plx_queue *q, uint32_t *where);
	int (*lossy_to)(struct plx_peer *peer, uint32_t where);
	int (*lossy_tx)(const struct plx_tx *tx);

	/* Connections by socket address; NULL: the driver's devices have no manager for them. */
	const struct plx_dev_cm_ops *cm;

	/* Any thread: the driver's own counters of a queue, or both NULL. */
	const struct plx_stat_row *stat_rows;
	const void *(*stats)(const struct plx_queue *q);
};

/** Drivers: a peer has connected by itself. Thread: owner. */
void plx_peer_met(struct plx_peer *peer);

/**
 * Add a driver to the list that plx_dev_open() searches, and its settings; called from lib/init's
 * table before the process begins. Errors: -ENOSPC more than PLX_DEV_MAX; as plx_conf_add(). Thread: control.
 */
int plx_dev_register(const struct plx_dev_ops *ops);

#endif
