/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_dev.h - devices, queues, peers: what ep and worker call
 *
 * Drivers fill in plx_dev_ops.h. A queue is owned by one worker and called by the thread that
 * runs that worker's turns; only opening and closing a device may happen elsewhere.
 */
#ifndef PLX_DEV_H
#define PLX_DEV_H

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rte_branch_prediction.h>

#include <ucs/memory/memory_type.h>
#include <uct/api/uct_tag.h>

#include "plx_assert.h"
#include "plx_conf.h"
#include "plx_line.h"
#include "plx_region.h"
#include "plx_stat.h"
#include "plx_wire.h"

#define PLX_DEV_MAX	    8	/* devices in a process */
#define PLX_DEV_PORTS	    4	/* of a device, for one worker */
#define PLX_DEV_PORT_NAME   80
#define PLX_DEV_TEXT_MAX    128 /* of text about an address */
#define PLX_ADDR_MAX	    96	/* bytes of one queue's address */
#define PLX_DEV_RX_BURST    16	/* messages taken in one go */
#define PLX_DEV_PEER_HASH   256 /* lists over which a queue's peers are spread */

struct plx_dev;
struct plx_queue;
struct plx_peer;
struct plx_soft_tag;
struct plx_dev_cm_ops;

/** Capabilities of a device; ep and rndv emulate what it lacks, except reliability and order. */
enum plx_dev_cap {
	PLX_DEV_RELIABLE = 1 << 0, /* a message that was taken arrives, or the peer is dead */
	PLX_DEV_ORDERED = 1 << 1,  /* in the order they were taken */
	PLX_DEV_GET = 1 << 2,	   /* reads a peer's private memory without its help */
	PLX_DEV_PUT = 1 << 3,	   /* writes it */
	PLX_DEV_SHARED = 1 << 4,   /* queues have a shared area that peers can map */
	PLX_DEV_KEYS = 1 << 5,	   /* reads and writes a peer's registered memory, by its key */
};

/** A name of UCX's for a driver, or for a part of its functions. */
struct plx_dev_alias {
	const char *name; /* "posix" */
	bool reads;	  /* using it includes reading the memory of other processes */
	uint8_t takes;	  /* a bit for each transport that is lost without it */
};

#define PLX_DEV_ALIAS_READS 0x80 /* of takes: only reading others' memory is lost */

/** Names of a driver in other interfaces, and where its peers are. */
struct plx_dev_names {
	/* Transports that UCX_TLS may list, up to a NULL; the driver is not used once all bits are taken. */
	const struct plx_dev_alias *aliases;
	const char *cci;    /* CCI's name for the transport, besides the driver's; or NULL */
	bool between_hosts; /* UCX_NET_DEVICES selects its ports; else UCX_SHM_DEVICES the driver */
	bool by_interface;  /* between hosts, and its ports have the names of network interfaces */
};

/** A queue's address as it travels in a worker address; the first 8 bytes are its uid. */
struct plx_addr {
	uint8_t len;
	uint8_t bytes[PLX_ADDR_MAX];
};

enum plx_peer_state {
	PLX_PEER_NEW,  /* known by address, not connected */
	PLX_PEER_OPEN,
	PLX_PEER_DEAD, /* err is the reason; nothing more is sent or received */
};

/** Bytes of a shared area that are lib/rndv's; lib/rma has the others. */
#define PLX_SHARED_RNDV 4096u

/**
 * The other end of a queue, as the driver knows it; a driver's own peer struct begins with
 * this one. There is one for each remote queue, however it became known: by an address or
 * by a message.
 */
struct plx_peer {
	struct plx_queue *q;
	void *user;	/* lib/ep's object for this peer, NULL before the first use */
	uint64_t uid;	/* of the remote queue */
	uint64_t proc;	/* plx_proc_id() of its process, 0 not known; set by peer_open */
	uint32_t mtu;	/* longest header + data of one message, bytes; may shrink when connecting */
	uint32_t short_max; /* longest data of tx_short, bytes */
	uint8_t state;	/* enum plx_peer_state */
	bool left;	/* dead, and replaced by a new one for its address: see plx_peer_leave() */
	uint8_t caps;	/* enum plx_dev_cap, for this peer: may lose bits */
	bool met;	/* messages were sent to it, or have come from it */
	int16_t err;	/* -errno once dead */
	uint32_t refs;
	uint32_t domain; /* of its process: keys of this domain give access to its memory; 0: none
	                  * do */
	uint32_t lossy_mtu; /* longest header + data of plx_peer_lossy_tx(), bytes; 0: not yet, or none */
	uint32_t tx_sure; /* how many more calls of tx_short are certain to succeed; 0: unknown.
	                   * Writer: the driver */
	/* line 1: where the next message to it is written, if it polls that line; or NULL */
	const void *tx_line;
	const void *tx_asked; /* the last of these that plx_peer_tx_soon() has prefetched */
	LIST_ENTRY(plx_peer) link;
};

/**
 * The plx_peer.domain of a port of a process: keys of this domain give access to its
 * memory.
 * @param proc as in plx_peer, at least the bits of PLX_WIRE_PROC_MASK
 * @param port of those that the process has opened, from 1 on; no two have the same domain
 * @return never 0. Thread: any.
 */
static inline uint32_t
plx_dev_domain(uint64_t proc, uint16_t port)
{
	uint64_t h = ((proc & PLX_WIRE_PROC_MASK) ^ (uint64_t)port << 48) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) != 0 ? (uint32_t)(h >> 32) : 1;
}

/** One message to send; header and data are copied before the hook tx returns. */
struct plx_tx {
	struct plx_peer *peer;
	const void *hdr;
	const void *data;
	uint32_t len;	  /* of data */
	uint8_t hdr_len;
	uint8_t op;	  /* wire opcode, carried for the caller */
	bool much;	  /* a hint: more data is in flight than caches hold */
	uint8_t skew;	  /* a hint: bytes of data, modulo 256, before those that should begin a cache line */
	/* instead of data, if not NULL: write len bytes from offset on; called once, when taken */
	void (*pack)(void *arg, uint64_t offset, void *to, uint64_t len);
	void *pack_arg;
	uint64_t pack_offset;
};

/**
 * One message to send from where its data lies: the driver reads the data until it calls done, and never again.
 * Header and iov are copied before the hook returns.
 */
struct plx_tx_zcopy {
	struct plx_peer *peer;
	const void *hdr;
	const struct iovec *iov;
	uint8_t hdr_len;
	uint8_t op;
	uint8_t n_iov; /* 1 to plx_queue.zcopy_iov */
	uint8_t mem_type; /* ucs_memory_type_t of the data; 0: the host's */
	void *mem;     /* plx_dev_mem.drv of memory that all of it lies in; NULL: it is not registered */
	/* Called by the owner, in a turn, when what was -EINPROGRESS is over, but not while the queue closes. */
	void (*done)(void *arg, int err);
	void *arg;
};

/** @return the bytes of data. */
static inline uint64_t
plx_tx_zcopy_len(const struct plx_tx_zcopy *tx)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < tx->n_iov; i++)
		len += tx->iov[i].iov_len;
	return len;
}

/** One message that arrived, borrowed until rx_release(). */
struct plx_rx {
	struct plx_peer *src;
	const uint8_t *data; /* header and data; the peer may still write to it: copy, then check */
	uint32_t len;
	uint8_t op;
	uint8_t drv[3];	     /* private to the driver */
};

/** The effect of a device's atomic on an aligned word of 8 bytes. */
enum plx_dev_atomic {
	PLX_DEV_NO_ATOMIC,
	PLX_DEV_FADD,  /* operand[0] is added */
	PLX_DEV_CSWAP, /* operand[1] replaces operand[0] */
};

/** Bytes of a peer's memory, and those here that they come from or go to. */
struct plx_rma_piece {
	void *local;
	uint64_t remote; /* address in the peer's process */
	size_t len;
	uint8_t mem_type; /* of local, as plx_rma_op.mem_type */
};

/** One read or write of a peer's private memory, or an atomic. */
struct plx_rma_op {
	struct plx_peer *peer;
	void *local;
	uint64_t remote; /* address in the peer's process */
	size_t len;
	bool put;	 /* by key: up to mtu bytes are copied before rma returns; none: completes
	         	  * as others do */
	uint8_t atomic;	 /* enum plx_dev_atomic, by key: the previous value goes to local */
	uint8_t mem_type; /* ucs_memory_type_t of local; 0: the host's */
	uint64_t key;	 /* PLX_DEV_KEYS: of the peer's memory */
	uint64_t operand[2];
	/* Called by the owner when an operation that was -EINPROGRESS completes, but not
	 * while the queue closes. */
	void (*done)(void *arg, int err);
	void *arg;
};

/** Rights of peers on registered memory. */
enum plx_dev_mem_right {
	PLX_DEV_MEM_READ = 1 << 0,
	PLX_DEV_MEM_WRITE = 1 << 1,
	PLX_DEV_MEM_ATOMIC = 1 << 2, /* as far as the device can */
};

#define PLX_DEV_KEY_SET (1ull << 32) /* so that no key is 0 */

/** Memory that a device may access, for peers that have its key. */
struct plx_dev_mem {
	uint64_t key; /* PLX_DEV_KEY_SET and the 32 bits of the device's */
	void *drv;    /* private to the driver; NULL: not registered */
};

/** Atomicity of a device's atomics. */
enum plx_dev_atomics {
	PLX_DEV_ATOMICS_NONE,
	PLX_DEV_ATOMICS_OWN, /* to each other, but not to those of processors */
	PLX_DEV_ATOMICS_ALL,
};

/** Memory that peers access by one port. */
struct plx_dev_key {
	struct plx_dev_mem mem;
	uint16_t port;	 /* of those the process has opened, from 1 on: see plx_dev_domain() */
	uint8_t atomics; /* enum plx_dev_atomics */
};

/** The same for all queues of the process that use the device: a region. */
struct plx_dev_region {
	struct plx_dev *dev; /* NULL: not registered */
	struct plx_dev_key keys[PLX_DEV_PORTS]; /* one for each port that took it */
	uint8_t n_keys;
	uint8_t atomics;     /* enum plx_dev_atomics, whichever port they come by */
	bool alone;	     /* peers use this device only */
};

/** Capabilities for tags; set by queue_open. */
struct plx_dev_tag_caps {
	uint32_t list_n;  /* most receives in its list; 0: it does not match */
	uint32_t len_min; /* bytes; posting a shorter one costs more than it saves */
};

/** A receive for a device to match; its memory is the caller's until its last callback. */
struct plx_dev_recv {
	uct_tag_t tag; /* has no bits outside mask */
	uct_tag_t mask;
	void *buf;
	size_t len;
	uint8_t mem_type; /* ucs_memory_type_t of buf; 0: the host's */
	uct_tag_context_t *ctx;
};

/** Counters of a queue. */
struct plx_queue_stat {
	uint64_t tx_msgs, tx_bytes, tx_full;
	uint64_t rx_msgs, rx_bytes;
	uint64_t rx_drop_bad_cell, rx_drop_bad_peer, rx_skip_dead;
	uint64_t rma_ops, rma_bytes, rma_refused;
	uint64_t rma_mapped; /* operations among them on memory that is mapped here */
	uint64_t peers, peers_dead;
};

/** The result of a poll. */
enum plx_rx_found {
	PLX_RX_NONE,  /* nothing, but for what the driver looks at rarely in any case */
	PLX_RX_MORE,  /* a message, and something behind it */
	PLX_RX_ONE,   /* a message, borrowed until the next look or burst, as MORE: it is not released */
	PLX_RX_HELD,  /* a message, to be released as a burst of one */
	PLX_RX_BURST, /* something: take a burst */
};

/*
 * A receiver stops a sender by a message, so the sender has to poll for it: between two
 * turns a driver accepts at most this many rings full of messages for one peer.
 */
#define PLX_DEV_BLIND_MAX 16u

/** A driver's tx and rx pair, owned by one worker. Hooks are copied here from the ops. */
struct plx_queue {
	/* line 0: set at open, read in every turn */
	int (*tx_short)(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data,
		uint32_t len);
	int (*tx)(const struct plx_tx *tx);
	uint16_t (*rx_burst)(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
	void (*rx_release)(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
	int (*rma)(const struct plx_rma_op *op);
	void *(*peer_shared)(struct plx_peer *peer);
	void *priv;
	void *owner; /* the worker */

	/* line 1: owner thread */
	alignas(PLX_LINE) struct plx_queue_stat stat;

	/*
	 * Check whether a burst would find something, including the completion of an
	 * operation, and take one message if that is simple. A driver without this hook
	 * always returns PLX_RX_BURST.
	 */
	enum plx_rx_found (*rx_look)(struct plx_queue *q, struct plx_rx *rx);
	int (*put_short)(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote,
		uint64_t key);
	int (*bulk)(const struct plx_rma_op *op, uint32_t n);

	/* cold; owner thread or control */
	struct plx_dev *dev;
	const struct plx_conf *conf; /* during queue_open */
	uint32_t caps;		     /* enum plx_dev_cap, the most a peer can have */
	uint32_t eager_max;	     /* longest message for which two copies cost less than a question and
				      * its answer, bytes; 0: unknown. Writer: queue_open */
	void *shared;	     /* PLX_DEV_SHARED: zeroed memory that peers access by peer_shared() */
	size_t shared_len;
	struct plx_dev_tag_caps tag_caps;
	struct plx_soft_tag *soft_tag; /* NULL: hardware matches, or nothing does */
	LIST_HEAD(, plx_peer) peers[PLX_DEV_PEER_HASH]; /* by uid */
	uint32_t n_dead;     /* dead peers not yet freed */
	/*
	 * Counts the worker's turns, each of which polls for arrivals; NULL: it has no
	 * worker. A driver that learns of its peers' room otherwise takes only a few
	 * messages without such a poll: see PLX_DEV_BLIND_MAX.
	 */
	const uint64_t *turns;
	uint8_t port;	     /* of the ports that the settings allow, from 0 on */
	/* called when a driver finds a peer dead; may be NULL */
	void (*on_dead)(struct plx_peer *peer);
	bool closing; /* plx_queue_close() runs */
	/*
	 * Bits of ucs_memory_type_t: memory that the driver reads and writes where it lies; the host's, unless
	 * queue_open adds some. What processors can't access is none: messages that are copied, they copy.
	 */
	uint32_t mem_types;
	uint32_t zcopy_min; /* bytes; to copy a shorter message costs less than plx_peer_tx_zcopy(); 0: there is none */
	uint8_t zcopy_iov;  /* pieces of data that it takes */
	uint32_t keep_min;  /* bytes; to copy a shorter message costs less than plx_queue_rx_keep(); 0: there is none. No rx_look takes a message then */
	uint32_t group_mtu; /* longest message to a group, bytes; 0: the device has no groups */
	/* a message to a group that this queue receives from, valid during the call; may be NULL */
	void (*on_group)(struct plx_queue *q, uint64_t group, const uint8_t *data, uint32_t len);
	/* joining a group has completed: all who joined it are members, or not: rc; may be NULL */
	void (*on_joined)(struct plx_queue *q, uint64_t group, bool rx, int rc);
	/* a message of plx_peer_lossy_tx(), valid during the call; its bytes do not change;
	 * may be NULL */
	void (*on_lossy)(struct plx_queue *q, const struct plx_rx *rx);
	/*
	 * The owner sends more before it calls plx_queue_flush(): a driver with that hook
	 * may delay the doorbell.
	 */
	bool hold;
	bool held; /* set by the driver: there is something to flush */
	void (*flush)(struct plx_queue *q); /* NULL: the driver delays nothing */
	int (*mem_reg)(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out);
	void (*mem_dereg)(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
	/*
	 * Set before plx_queue_efd(): the owner first sleeps briefly, and before a longer
	 * sleep it executes plx_fence_world() between two calls of plx_queue_arm(). So
	 * senders need no fence.
	 */
	bool fences_world;
	_Atomic bool woke; /* set by the driver: it has woken a receiver that slept on this CPU;
	                    * relaxed, any thread may clear it */
	/*
	 * Set by the driver: the queue has no connection, so plx_queue_control() is all that it needs.
	 * plx_queue_rouse() ends that for good and calls on_rouse, which may be NULL.
	 */
	bool rests;
	void (*on_rouse)(struct plx_queue *q);
	bool by_cpu; /* set by the driver: processors of this machine are moving a long transfer */
};

_Static_assert(offsetof(struct plx_queue, stat) == PLX_LINE, "line 0 is full");

extern const struct plx_stat_row plx_queue_stat_rows[];

/**
 * The driver's own counters of a queue.
 * @param rows out
 * @return the struct of the rows, or NULL: it has none. Thread: any.
 */
const void *plx_queue_drv_stats(const struct plx_queue *q, const struct plx_stat_row **rows);

/**
 * The registered drivers, in this order.
 * @param names out, or NULL; *names may be NULL
 * @return the name of driver i, or NULL after the last. Thread: any.
 */
const char *plx_dev_driver(unsigned i, const struct plx_dev_names **names);

/**
 * Open a device by name, or take one more reference to it.
 * @param name the driver's
 * @param conf of the first opener
 * Thread: any, serialised inside. Blocks: may. Errors: -ENODEV no such driver; -ENXIO it
 * has failed; those of its open.
 */
int plx_dev_open(const char *name, const struct plx_conf *conf, struct plx_dev **out);

/** Drop one reference. Accepts NULL. Thread: any. */
void plx_dev_close(struct plx_dev *dev);

/**
 * Make an open device fail for good, until all have closed it. Its workers poll for that.
 * Thread: any. Errors: -ENODEV none of this name is open.
 */
int plx_dev_fail(const char *name);

/** @return whether a device has failed. Thread: any. */
bool plx_dev_has_failed(const struct plx_dev *dev);

/** @return the device's name, which belongs to it. Thread: any. */
const char *plx_dev_name(const struct plx_dev *dev);

/**
 * @return the table of a device's manager of connections; NULL: it has none, or has failed.
 *   Thread: any.
 */
const struct plx_dev_cm_ops *plx_dev_cm(const struct plx_dev *dev);

/**
 * Open a queue at one of the device's ports.
 * @param conf settings, copied as needed
 * @param port of those that the settings allow, from 0 on: the best come first
 * @param owner stored in the queue
 * Thread: any (before the owner runs turns). Errors: -ENODEV there are fewer ports; those
 * of the driver.
 */
int plx_queue_open_port(struct plx_dev *dev, const struct plx_conf *conf, unsigned port,
	void *owner, struct plx_queue **out);

/** A port that workers would use. */
struct plx_dev_port {
	char name[PLX_DEV_PORT_NAME]; /* "mlx5_0:1"; "" if the device has but one */
	bool up;
};

/**
 * The ports that workers of these settings would find.
 * @param name of the device
 * @param port as for plx_queue_open_port()
 * @return 0 and *out; -ENODEV there is no such device, or none here, or it has fewer ports
 * Thread: any. Blocks: may.
 */
int plx_dev_look(const char *name, const struct plx_conf *conf, unsigned port,
	struct plx_dev_port *out);

/** The same at the first port. */
static inline int
plx_queue_open(struct plx_dev *dev, const struct plx_conf *conf, void *owner,
	struct plx_queue **out)
{
	return plx_queue_open_port(dev, conf, 0, owner, out);
}

/** @return whether the queue is reliable and ordered, which an endpoint needs. Thread: any. */
static inline bool
plx_queue_is_sure(const struct plx_queue *q)
{
	return (q->caps & PLX_DEV_RELIABLE) != 0 && (q->caps & PLX_DEV_ORDERED) != 0;
}

/** @return whether the driver reads and writes such memory where it lies. Thread: any. */
static inline bool
plx_queue_takes(const struct plx_queue *q, uint8_t mem_type)
{
	return mem_type < 32 && (q->mem_types >> mem_type & 1) != 0;
}

/** Close a queue and all its peers. Accepts NULL. Thread: owner. */
void plx_queue_close(struct plx_queue *q);

/**
 * In a forked child: cut the queue off, as it belongs to the parent. From now on nothing
 * reaches the device or shared memory, nothing is received, and sends fail with
 * -ECONNRESET. Thread: the only one, inside of fork(). Blocks: never. Allocates: no.
 */
void plx_queue_lose(struct plx_queue *q);

/** The address by which others reach this queue. Thread: any. */
void plx_queue_addr(const struct plx_queue *q, struct plx_addr *addr);

/** The owner of an address of this device, as text: "process 17". Thread: owner. */
void plx_queue_addr_whose(const struct plx_queue *q, const struct plx_addr *addr, char *text,
	size_t len);

/**
 * Why plx_queue_rank() or plx_peer_get() refused an address, as text.
 * @param err their result
 * Thread: owner. Blocks: may (system calls).
 */
void plx_queue_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text,
	size_t len);

/**
 * @return the name of its port, which belongs to the queue; NULL: the device has no names.
 *   Thread: any.
 */
const char *plx_queue_port(const struct plx_queue *q);

/** @return whether its port works now. Thread: any. Blocks: never, except for a system call. */
bool plx_queue_is_up(const struct plx_queue *q);

/**
 * Rank the path from this queue to an address, compared with other queues of its device
 * and other addresses of the same worker. The rank is symmetric: both sides compute the
 * same value, except for what only one of them has seen (a port that is down, a failed
 * attempt).
 * @return higher is better, never two that are equal; -EHOSTUNREACH there is no path,
 *   -EINVAL not an address. Thread: owner. Blocks: never, but makes system calls.
 */
int64_t plx_queue_rank(struct plx_queue *q, const struct plx_addr *addr);

/**
 * Let the owner sleep: from now on the queue has a descriptor that polls readable if a
 * message came while the queue was armed, or a peer died. Once, before the queue's address
 * is used.
 * @return the descriptor, which belongs to the queue, or -EOPNOTSUPP, or another error
 * Thread: owner.
 */
int plx_queue_efd(struct plx_queue *q);

/**
 * The owner is about to sleep on plx_queue_efd().
 * @return 0: later arrivals make the descriptor readable; -EBUSY: something has arrived
 *   already and the queue is not armed
 * Thread: owner. Blocks: never, but may make system calls.
 */
int plx_queue_arm(struct plx_queue *q);

/** The owner is awake: senders no longer wake it, the descriptor is quiet. Thread: owner. */
void plx_queue_disarm(struct plx_queue *q);

/** @return whether the driver can tell without a burst that nothing has come. Thread: any. */
bool plx_queue_looks(const struct plx_queue *q);

/** @return whether the driver can delay messages. Thread: any. */
static inline bool
plx_queue_holds(const struct plx_queue *q)
{
	return q->flush != NULL;
}

/**
 * Keep a message that was borrowed, instead of copying it: its bytes at rx->data stay, and are the caller's to write
 * to as well, until plx_queue_rx_return() or the queue closes. It is released as any other all the same. Only where
 * plx_queue.keep_min is not 0.
 * @param rx of the last burst, not released yet
 * @return what to give back; NULL: as much is kept as the driver can do without. Thread: owner. Blocks: never.
 */
void *plx_queue_rx_keep(struct plx_queue *q, struct plx_rx *rx);

/** Return a buffer that was kept to the driver. Thread: owner. Blocks: never. */
void plx_queue_rx_return(struct plx_queue *q, void *kept);

/** Let the device see what was sent while plx_queue.hold was set. Thread: owner. */
static inline void
plx_queue_flush(struct plx_queue *q)
{
	q->held = false;
	q->flush(q);
}

/**
 * Join a group, as a sender or receiver: the device copies its messages for each receiver.
 * Leave it as often as it was joined. Messages may be lost or duplicated.
 * @param group its number; all users of the device's network share them
 * @param rx to receive
 * @return 0; -EINPROGRESS: on_joined reports the result, in a turn, unless the group is
 *   left before
 * Errors: -EOPNOTSUPP the device has no groups; -ENOMEM and others of the system. Thread:
 * owner. Blocks: may (system calls).
 */
int plx_queue_group_join(struct plx_queue *q, uint64_t group, bool rx);

/** Leave it. Accepts a group that was not joined. Thread: owner. */
void plx_queue_group_leave(struct plx_queue *q, uint64_t group, bool rx);

/**
 * Send a message of up to group_mtu bytes to a group that was joined to send.
 * @return 0 taken; -EAGAIN full; -ENOENT it was not joined. Thread: owner. Blocks: never.
 */
int plx_queue_group_tx(struct plx_queue *q, uint64_t group, const void *data, uint32_t len);

/**
 * Receive unreliable messages: as datagrams, without a connection. Once is enough.
 * @param where out: what senders of such messages have to know; not 0
 * Errors: -EOPNOTSUPP the device has none; -ENOMEM and others of the system. Thread: owner.
 * Blocks: may (system calls).
 */
int plx_queue_lossy_open(struct plx_queue *q, uint32_t *where);

/**
 * Slow work that may make system calls: dead peers, refused connections.
 * Called every worker.peer_check_ms while the owner runs turns; of an owner that sleeps, at
 * plx_queue_deadline(). Thread: owner.
 */
void plx_queue_control(struct plx_queue *q);

/**
 * When an owner that sleeps has to call plx_queue_control(), although nothing comes: to ask again, to
 * give up, to see whether a peer is alive. Valid from plx_queue_arm() on, until the owner is awake.
 * @return ns of plx_clock_ns(), which a few calls from then on move to later; UINT64_MAX: never
 * Thread: owner. Blocks: never.
 */
uint64_t plx_queue_deadline(struct plx_queue *q);

/**
 * Find or make the peer with this address; takes a reference. Errors: -EHOSTUNREACH the
 * driver can't reach it; -EPERM one of the two may not connect to the other; -EINVAL not an
 * address; -ENOMEM. Thread: owner.
 */
int plx_peer_get(struct plx_queue *q, const struct plx_addr *addr, struct plx_peer **out);

/**
 * Connect a peer that is PLX_PEER_NEW; required before sending. When this returns 0 the
 * peer's short_max and caps are final; its mtu may grow until it is settled. Errors:
 * -ENOMEM, -EMFILE, -ENFILE: try later; -ECONNRESET it has closed, -EHOSTUNREACH and
 * others: the peer is dead now. Thread: owner. Blocks: may (system calls).
 */
int plx_peer_connect(struct plx_peer *peer);

/**
 * Wait until the mtu of a connected peer is final: for a moment, as the peer's process has
 * to answer. A stopped process keeps the present mtu. Thread: owner. Blocks: at most half a
 * second.
 */
void plx_peer_settle(struct plx_peer *peer);

/**
 * Exchange unreliable messages with a peer, connected or not. Sets the peer's lossy_mtu.
 * @param where from the peer's plx_queue_lossy_open(); input
 * Errors: -EINVAL there is no such place, or this queue takes none itself. Thread: owner.
 */
int plx_peer_lossy_to(struct plx_peer *peer, uint32_t where);

/**
 * Drop a reference to a dead peer, and let plx_peer_get() make a new one in its place.
 * Thread: owner.
 */
void plx_peer_leave(struct plx_peer *peer);

/** Drop a reference; a dead peer without any is freed by plx_queue_control(). Thread: owner. */
void plx_peer_put(struct plx_peer *peer);

/** Call fn for each peer of the queue; fn must not close it. Thread: owner. */
void plx_peer_each(struct plx_queue *q, void (*fn)(struct plx_peer *peer, void *arg), void *arg);

/** Drivers: the peer is dead; notifies the owner once. @param err -errno. Thread: owner. */
void plx_peer_dead(struct plx_peer *peer, int err);

/**
 * Send a message of an 8-byte header and up to short_max bytes of data.
 * @return 0 taken; -EAGAIN full, try after a turn; -ECONNRESET and others: the peer is dead.
 * Thread: owner. Blocks: never.
 */
static inline int
plx_peer_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return peer->q->tx_short(peer, op, hdr, data, len);
}

/** @return whether plx_peer_tx_sure() may send len bytes now. Thread: owner. */
static inline bool
plx_peer_is_sure(const struct plx_peer *peer, uint64_t len)
{
	return peer->tx_sure != 0 && len <= peer->short_max;
}

/** plx_peer_tx_short() that cannot fail: the caller need not keep its arguments for a retry. Thread: owner. */
static inline void
plx_peer_tx_sure(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	int rc = peer->q->tx_short(peer, op, hdr, data, len);

	PLX_ASSERT(rc == 0);
	(void)rc;
}

/**
 * Prefetch the peer's next ring cell for writing, if we answered its last message
 * (ping-pong pattern). The peer polls that line, and taking it from the peer takes about as
 * long as an answer, so begin now. Begun earlier, the peer would have it back before the
 * answer is written. Thread: owner.
 */
static inline void
plx_peer_tx_soon(struct plx_peer *peer)
{
	/* without an answer after the last prefetch, there will be none now: a prefetch
	 * would only disturb the peer */
	if (peer->tx_line == peer->tx_asked)
		return;
	peer->tx_asked = peer->tx_line;
	plx_line_own(peer->tx_line);
}

/** A message to the peer follows at once. Thread: owner. */
static inline void
plx_peer_tx_now(const struct plx_peer *peer)
{
	if (peer->tx_line != NULL)
		plx_line_own(peer->tx_line);
}

/** Send a message of hdr_len + len <= mtu bytes. Returns as plx_peer_tx_short(). */
static inline int
plx_peer_tx(const struct plx_tx *tx)
{
	return tx->peer->q->tx(tx);
}

/**
 * Send a message of hdr_len + data <= mtu bytes without a copy of its data, in order with those that are copied. Only
 * where plx_queue.zcopy_min is not 0.
 * @return 0 taken, and the data is the caller's again; -EINPROGRESS taken, tx->done tells when it is; -EAGAIN full,
 * try after a turn; -EOPNOTSUPP not from this memory, or not to this peer: send it as a copy; -EMSGSIZE; -ECONNRESET
 * and others: the peer is dead. Thread: owner. Blocks: never.
 */
int plx_peer_tx_zcopy(const struct plx_tx_zcopy *tx);

/**
 * Send a message of hdr_len + len <= lossy_mtu bytes that may get lost; nothing else is promised of
 * it than that it comes from this queue. With pack NULL.
 * @return 0 taken, which is all that one ever learns; -EAGAIN full, try after a turn; -ECONNRESET and
 * others: the peer is dead. Thread: owner. Blocks: may, with the first to a peer in a while.
 */
int plx_peer_lossy_tx(const struct plx_tx *tx);

/**
 * Register memory with a queue's device.
 * @param addr in memory of a type that the queue takes
 * @param rights enum plx_dev_mem_right
 * Errors: -EOPNOTSUPP the device has no keys; -ENOMEM, -EFAULT and others of the system.
 * Thread: owner. Blocks: may (a system call).
 */
static inline int
plx_queue_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	return q->mem_reg(q, addr, len, rights, out);
}

/**
 * Deregister memory. Accepts memory that is not registered.
 * @param revoke peers may still use its key: they can't from now on. Otherwise they are
 *   known to be finished, and the driver may keep the memory registered for the next time.
 *   Thread: owner.
 */
static inline void
plx_queue_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	if (mem->drv != NULL)
		q->mem_dereg(q, mem, revoke);
	mem->drv = NULL;
}

/**
 * Register memory with the device by which peers would reach workers of these settings, at
 * each of its ports that accepts it.
 * @param rights enum plx_dev_mem_right
 * Errors: -EOPNOTSUPP no device here has keys; -ENOMEM, -EFAULT and others of the system.
 * Thread: any. Blocks: may.
 */
int plx_dev_region_open(const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out);

/** End all access. Accepts one that is not registered. Thread: any. */
void plx_dev_region_close(struct plx_dev_region *region);

/**
 * Read or write a peer's memory.
 * @return 0 done, or taken; -EINPROGRESS op->done will be called; -EAGAIN try after a turn; -EOPNOTSUPP not
 * possible with this peer (its caps have lost the bit), or from this memory; -EFAULT not its
 * memory; -ECONNRESET it is dead.
 * Thread: owner.
 */
static inline int
plx_peer_rma(const struct plx_rma_op *op)
{
	if (unlikely(op->mem_type != UCS_MEMORY_TYPE_HOST) && !plx_queue_takes(op->peer->q, op->mem_type))
		return -EOPNOTSUPP;
	return op->peer->q->rma(op);
}

/**
 * Write to a peer's memory by key, from a buffer that is copied before the call returns.
 * There is no completion of its own: the completion of any later operation with this peer
 * covers it.
 * @param len 1 to short_max
 * @return 0 taken; else as plx_peer_rma(). Thread: owner.
 */
static inline int
plx_peer_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote,
	uint64_t key)
{
	return peer->q->put_short(peer, data, len, remote, key);
}

#define PLX_DEV_RMA_MAX (1u << 20) /* bytes of one read or write, or atomic, by key: no driver takes less */

/** The most of plx_peer_rma_burst(): more by one call of the kernel cost each as much. */
#define PLX_RMA_BURST 256

/**
 * Several pieces at once, in their order, for a driver whose calls have a high fixed cost.
 * @param put to the peer's memory; else from it
 * @param n 1 to PLX_RMA_BURST
 * @return how many are done, the first ones; plx_peer_rma() does the next, or returns the
 *   error. Thread: owner.
 */
unsigned plx_peer_rma_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces,
	unsigned n);

/**
 * Post a receive to the device, after all in its list. It is not matched until the device
 * and `seen` agree; messages that arrive meanwhile come by rx_burst(). The callbacks of its
 * context are called inside rx_burst() and plx_queue_tag_cancel(), never inside this, and
 * may call both functions again. The header of rndv_cb is a struct plx_rx.
 * @param recv copied, or NULL: only send the count
 * @param seen tagged messages of this queue that software has processed since it was
 *   opened, modulo 2^16; the device counts those that it passed to software
 * @return 0; -ENOSPC the list is full; -EAGAIN no room for a command now; -EOPNOTSUPP not
 *   this receive. Any other: the device matches no longer. Thread: owner. Blocks: never.
 */
int plx_queue_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);

/**
 * Withdraw a receive.
 * @param force the caller knows that it cannot have been matched, as `seen` never agreed:
 *   it is removed at once, without a callback. Otherwise one comes in bounded time, perhaps
 *   before this returns: cancelled, or matched before.
 * @return 0; any other: the device matches no longer, and has dropped its list. Thread:
 *   owner. Blocks: never.
 */
int plx_queue_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);

/**
 * The name of the table of segments (plx_window.h) of the process at the other end of a queue.
 * Errors: -EOPNOTSUPP the device maps no memory, or it is this process; others: as plx_seg_open().
 * Thread: any that keeps the peer from being closed. Blocks: may.
 */
int plx_peer_windows(const struct plx_peer *peer, struct plx_seg_name *out);

/**
 * Where a peer's memory is mapped here, to be read until plx_map_put(map): it stays, whatever becomes of the peer.
 * @param len bytes; set to those that follow each other here @param map a reference, or NULL: none is needed
 * @return NULL: it is not mapped. Thread: owner. Blocks: may.
 */
const void *plx_peer_view(struct plx_peer *peer, uint64_t addr, uint64_t *len, struct plx_map **map);

/**
 * Whether the queue at the other end is closed, as far as is visible. Its messages may
 * still arrive, and the peer is declared dead after them; but changes of its memory from
 * now on have no reader. Thread: owner. Blocks: never.
 */
bool plx_peer_has_left(const struct plx_peer *peer);

/** Whether plx_peer_has_left() can tell, once the peer is connected. Thread: any. */
bool plx_peer_may_leave(const struct plx_peer *peer);

/**
 * How two sides that both poll best move an op that plx_peer_rma() could do. op->local may be NULL.
 * @param n of messages of mtu bytes; 0: they are the other side's to send
 * @return 0: by plx_peer_rma(); 1: as messages, and these n find room now; -EAGAIN: so, but there is no
 *   room. Thread: owner. Blocks: never.
 */
static inline int
plx_peer_bulk(const struct plx_rma_op *op, uint32_t n)
{
	return op->peer->q->bulk(op, n);
}

/** @return the peer queue's shared area as mapped here, or NULL. Thread: owner. */
static inline void *
plx_peer_shared(struct plx_peer *peer)
{
	return peer->q->peer_shared(peer);
}

#endif
