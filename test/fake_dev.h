/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_dev.h - a device in memory, between queues of one thread, with faults on request
 *
 * Design notes
 * It keeps what plx_dev_ops.h promises (nothing taken is lost, order from one
 * sender to one receiver, a borrowed message stays as it is) and is as unhelpful as
 * that allows: full at random, late, short reads of the burst, rma that wants to be
 * asked again or is refused, peers that die. What is released is overwritten and
 * freed, so whoever looks at it later is found out, at once under ASan.
 *
 * All randomness comes from one generator, so a run is repeated by its seed.
 */
#ifndef FAKE_DEV_H
#define FAKE_DEV_H

#include <stdbool.h>
#include <stdint.h>

#include "plx_dev_ops.h"

#define FAKE_FAULT_ADDR_MAX 4096 /* rma below this address answers -EFAULT */

/** What the device is, and how it misbehaves; read whenever it matters. */
struct fake_conf {
	uint32_t caps;		 /* enum plx_dev_cap, of peers made from now on */
	uint32_t mtu, short_max; /* bytes, of peers made from now on */
	uint32_t connect_mtu;	 /* what mtu falls to when connecting, 0: it stays */
	uint32_t depth;		 /* messages on the way from one queue to another; 0: no bound */
	uint32_t full_percent;	 /* sends that find it full without reason */
	uint32_t delay_max;	 /* polls before a message is seen, at random up to this */
	uint32_t short_percent;	 /* bursts that give less than there is */
	uint32_t again_percent;	 /* rma that answers -EAGAIN */
	uint32_t refuse_percent; /* rma that answers -EOPNOTSUPP, for good with this peer */
	int reg_err;		 /* what mem_reg answers, 0: it works */
	uint16_t port;		 /* of regions and of peers made from now on */
	uint8_t atomics;	 /* enum plx_dev_atomics */
	int get_err, put_err;	 /* what rma answers instead of doing anything, 0: nothing */
	uint64_t view_piece;	 /* bytes of a page of memory that peers map, 0: they map none */
	const void *bad_addr;	 /* rma of a range that holds it answers -EFAULT; NULL: none */
	uint32_t n_revoked;	 /* counts keys that were given back while they might be used */
	uint32_t bursts;	 /* counts rma_burst that did more than one */
	uint32_t lossy_mtu;	 /* bytes; 0: all messages are safe */
	uint32_t lossy_percent;	 /* of those that may get lost, how many do */
	bool lossy_full;	 /* there is no room for them */
	uint32_t n_lossy;	 /* counts those that were taken */
	uint32_t zcopy_min;	 /* of queues made from now on: plx_queue.zcopy_min */
	uint32_t lent_wait;	 /* polls until one that is not copied and was taken is reported, at least */
	uint32_t n_lent;	 /* counts messages that were taken and not copied */
	uint32_t keep_min;	 /* of queues made from now on: plx_queue.keep_min */
	uint32_t keep_max;	 /* messages of a queue that may be kept */
	uint32_t n_kept;	 /* counts messages that were */
	uint32_t mem_types;	 /* of queues made from now on, besides the host's: plx_queue.mem_types */
	bool lies_well;		 /* messages begin at a multiple of 8, as on real devices */
	uint32_t n_typed;	 /* counts descriptors of memory that is not the host's */
	bool all_left;		 /* peer_has_left says so of all */
	uint32_t n_much;	 /* counts messages with plx_tx.much */
	bool bulk;		 /* long transfers go as messages of the sender where both sides poll */
};

extern struct fake_conf fake;

struct fake_peer {
	struct plx_peer peer;
	uint64_t host;
	uint32_t lossy_where;
};

extern const struct plx_dev_ops fake_dev_ops;

/** Everything works and is at once; the generator starts at seed. */
void fake_reset(uint64_t seed);

/** The generator of all faults: splitmix64. */
uint64_t fake_rng(void);

/**
 * The queue's process has died. Of what it sent and nobody has taken a random
 * prefix arrives; others learn of it in their queue_control() when that is taken.
 * The queue may then be closed by the test, but given no more turns.
 */
void fake_kill(struct plx_queue *q);

/** A message that `from` never meant to send: any opcode, any bytes. */
void fake_inject(struct plx_queue *from, struct plx_queue *to, uint8_t op, const void *bytes,
	uint32_t len);

/** Messages on the way from one queue to another, not taken yet. */
uint32_t fake_on_the_way(const struct plx_queue *from, const struct plx_queue *to);

/** Pieces of memory that are registered; writes and reads by key that are not over. */
uint32_t fake_regs(void);
uint32_t fake_keys_out(void);

/* fake_keys.c, for fake_dev.c */
int fake_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights,
	struct plx_dev_mem *out);
void fake_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
int fake_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len,
	uint8_t rights, struct plx_dev_key *out);
void fake_region_dereg(struct plx_dev_key *key);
int fake_keys_rma(const struct plx_rma_op *op);
/** The queue looks for messages: what goes to it moves, what it has begun may be over. */
void fake_keys_run(struct plx_queue *q);
/** @return whether anything is still to be moved or told. */
bool fake_keys_wait(void);
/** What goes to this peer ends. @param tell whether it is reported to its initiator */
void fake_keys_drop(const struct plx_peer *peer, bool tell);
void fake_keys_close(const struct plx_queue *q);

/* fake_lent.c, for fake_dev.c */
void fake_lent_open(struct plx_queue *q);
int fake_lent_tx(const struct plx_tx_zcopy *tx);
/** The queue looks for messages: what goes to it moves, what it has sent may be over. */
void fake_lent_run(struct plx_queue *q, uint64_t uid);
bool fake_lent_waits(void);
/** What goes to this peer ends. @param lives what was sent is still taken @param tell whether it is reported to its sender */
void fake_lent_drop(const struct plx_peer *peer, bool lives, bool tell);

/* fake_lossy.c, for fake_dev.c */
int fake_lossy_open(struct plx_queue *q, uint32_t *where);
int fake_lossy_to(struct plx_peer *peer, uint32_t where);
int fake_lossy_tx(const struct plx_tx *tx);
/** The queue looks for messages: those that came. */
void fake_lossy_run(struct plx_queue *q);
bool fake_lossy_waits(const struct plx_queue *q);
void fake_lossy_close(const struct plx_queue *q);

/** As if the queue's device were full until told otherwise. */
void fake_block(struct plx_queue *q, bool blocked);

#endif
