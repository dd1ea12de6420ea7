/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_int.h - between the files of the net_mlx driver
 */
#ifndef MLX_INT_H
#define MLX_INT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>

#include "plx_dev.h"
#include "plx_dev_ops.h"
#include "plx_log.h"
#include "plx_reg_cache.h"

#include "mlx_addr.h"
#include "mlx_credit.h"
#include "mlx_hw.h"

PLX_LOG_DECLARE(mlx);

#define MLX_NONE	 UINT32_MAX
#define MLX_PORT_NAME	 PLX_DEV_PORT_NAME
#define MLX_ANY_GID	 -1L
#define MLX_SHUNNED	 16 /* queues of peers that are not tried for a while */
#define MLX_TX_RECS	 128   /* of requests of a peer; a power of 2 */
#define MLX_TX_DEPTH	 (MLX_TX_RECS - 1) /* not completed: soft-RoCE's rings keep one free, and double */
#define MLX_TX_ALL	 4096  /* of a queue; as many completions may be unpolled */
#define MLX_SIGNAL_EVERY 32    /* requests of a peer between two that are signalled */
#define MLX_INLINE_MAX	 128   /* longest message that is written into the request, bytes */
#define MLX_BUFS_CHUNK	 32    /* buffers that are registered together */
#define MLX_SEND_BUFS	 1024  /* buffers for sending, at the most */
#define MLX_UD_RX	 64    /* datagrams that may arrive between two looks */
#define MLX_UD_TX	 32
#define MLX_UD_SIGNAL	 8     /* messages that may get lost, between two that are signalled */
#define MLX_UD_TRIES	 50    /* to bring a queue pair for datagrams back; one a control */
#define MLX_GROUP_RX	 256   /* messages to groups that may arrive between two looks */
#define MLX_GROUP_LEN	 1024u /* longest of them, bytes */
#define MLX_LOSSY_RX	 256   /* messages that may get lost, and arrive between two looks */
#define MLX_WAYS_MAX	 1024  /* address handles of a queue */
#define MLX_UD_EVERY	 32    /* bursts between two looks at the datagrams */
#define MLX_TX_EVERY	 4     /* bursts that find something, between two looks at what was sent */
#define MLX_RX_BATCH	 8     /* free slots are posted together, when there is time */
#define MLX_RX_FREE	 16    /* or when there are so many */
#define MLX_RX_SPARE	 (MLX_RX_FREE - 1) /* slots besides those granted, as so many may wait for that */
#define MLX_QPN_HASH	 1024
#define MLX_RMA_MAX	 (1u << 20) /* bytes of one read or write */
#define MLX_LONG	 (64u << 10) /* bytes that a device which is software takes a while for */
#define MLX_PATIENCE	 10    /* times dead_ms for a peer that answers, and whose device does not */
#define MLX_READS	 16    /* READs and atomics of one peer at once */
#define MLX_REGIONS_LOOK 64    /* regions that are looked at to find one */

/* What travels beside a message: opcode << 0, credits << 8, flags << 24. */
#define MLX_IMM(op, credits, flags) ((uint32_t)(op) | (uint32_t)(credits) << 8 | (uint32_t)(flags) << 24)
#define MLX_IMM_OP(imm)	     ((uint8_t)(imm))
#define MLX_IMM_CREDITS(imm) ((uint16_t)((imm) >> 8))
#define MLX_IMM_FLAGS(imm)   ((uint8_t)((imm) >> 24))
#define MLX_IMM_CTL	     1u /* no message: credits only, or that the queue pair works */
#define MLX_IMM_BYE	     2u /* CTL: the sender's queue closes */
#define MLX_IMM_NEW	     4u /* the credits are new ones: the window grows by so many */
#define MLX_IMM_SHORT	     8u /* the sender ran out of credits */
#define MLX_IMM_PARK	     16u /* CTL: the connection is to end, and no message comes by it any more */

enum mlx_port_down {
	MLX_PORT_NO_LINK = 1,
	MLX_PORT_MOVED = 2, /* it has another address, or none */
};

/** An opened port of a device; one for all queues of the process that use it. */
struct mlx_port {
	LIST_ENTRY(mlx_port) link;
	char label[MLX_PORT_NAME]; /* "mlx5_0:1" */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const struct mlx_hw_ops *hw;
	struct mlx_addr addr;	/* what all its queues' addresses have in common */
	struct ibv_device_attr attr;
	uint8_t num;
	uint8_t gid_index;
	uint8_t speed;		/* as in addresses */
	uint32_t ifindex;	/* of the interface with that gid, Ethernet only */
	bool soft;		/* the device is software: soft-RoCE */
	pthread_mutex_t lock;	/* of the events' descriptor */
	struct plx_reg_domain domain; /* where memory is registered with it */
	pthread_mutex_t regions_lock;
	LIST_HEAD(, mlx_region) regions; /* under it; those used last are first */
	_Atomic uint32_t gone;	/* the device was removed or has failed; writers: any, for good */
	_Atomic uint32_t down;	/* enum mlx_port_down, why nobody new reaches it; writer: under lock */
	_Atomic uint64_t up_ns;	/* when it last was no longer down; writer: under lock */
};

/** A queue pair for datagrams. Owner: the queue's. */
struct mlx_ud {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;	     /* n_rx slots for arrivals, then MLX_UD_TX */
	uint32_t slot;	     /* bytes of one */
	uint16_t n_rx;
	bool failed;	     /* nothing goes or comes until it is brought back */
	uint8_t n_tries;     /* to bring it back, in vain */
	uint16_t max_inline; /* longest that is written into the request, bytes */
	uint16_t every;	     /* of so many that are sent one is signalled */
	uint32_t qkey;
	uint64_t sent, done;
	uint64_t due;	     /* of sent, those up to the last that is signalled */
	struct ibv_ah *self; /* the way to its own port, where every is above 1 */
};

/** Where a datagram came from. */
struct mlx_ud_src {
	uint32_t qpn;
	uint16_t lid;
	const uint8_t *grh; /* or NULL */
};

/** Equal buffers in registered memory, by number. Owner: the queue's. */
struct mlx_bufs {
	const struct plx_reg_domain *domain;
	uint32_t len;	 /* bytes of one */
	uint32_t n, n_free, most;
	uint32_t *free;	 /* numbers */
	struct {
		uint8_t *base;
		struct ibv_mr *mr;
	} *chunks;
};

/** What is to be done when a request has completed. */
struct mlx_txrec {
	void (*done)(void *arg, int err);
	void *arg;
	uint32_t buf; /* of the queue's tx_bufs, or MLX_NONE */
	bool signalled;
	bool holds;   /* of what stands above anything; that of a request which is over never */
};

/** Memory that the device may reach for one transfer. */
struct mlx_loan {
	const struct ibv_mr *mr;
	struct mlx_region *region; /* that it lies in, or NULL */
	struct plx_reg *own;   	   /* else */
};

/** A read or write of a peer's memory that is under way. Owner: the queue's. */
struct mlx_io {
	SLIST_ENTRY(mlx_io) link; /* of the queue's free ones */
	struct mlx_queue *mq;
	void (*done)(void *arg, int err);
	void *arg;
	struct mlx_loan loan; /* of the local memory */
	void *to;	   /* a READ into buf: where it goes then */
	uint32_t len;
	uint32_t buf;	   /* or MLX_NONE */
	bool by_cpu;	   /* counts in the queue's n_by_cpu */
};

enum mlx_conn {
	MLX_CONN_NONE,	/* no queue pair */
	MLX_CONN_ASKED,	/* it has one, and we do not know the peer's */
	MLX_CONN_READY,	/* ours can send; the peer's may not be ready to receive yet */
	MLX_CONN_OPEN,
	MLX_CONN_PARKING, /* either side wants to close it; see mlx_park.c */
	MLX_CONN_LOST,	/* failed, or it has gone: what has come of it is delivered first */
	MLX_CONN_DEAD,
};

/* The other end. Owner: the queue's worker. */
struct mlx_peer {
	struct plx_peer peer;
	/* sending */
	alignas(PLX_LINE) struct mlx_hw_qp *qp;
	struct mlx_txrec *recs; /* by number of the request, modulo MLX_TX_RECS */
	struct mlx_credit credit;
	uint16_t tx_room;	/* requests that may be posted */
	uint16_t tx_done;	/* number of the first that is not completed */
	uint8_t unsignalled;
	uint8_t conn;		/* enum mlx_conn */
	bool held;		/* in the queue's list of those to ring */
	bool owes;		/* in the queue's list of those to be told credits */
	SLIST_ENTRY(mlx_peer) held_link;
	SLIST_ENTRY(mlx_peer) owes_link;
	SLIST_ENTRY(mlx_peer) qpn_link;
	uint16_t rx_held;	/* messages that came and are not released */
	uint32_t used;		/* mq->looks when a message last went or came */
	uint64_t rx_ns;	/* when something last came, or was completed */
	uint64_t silent_ns;	/* when it was found silent, with a completion due; void if not after rx_ns.
				 * not connected: when it was first called, void if n_calls is 0 */
	uint64_t heard_ns;	/* when it last answered a datagram, or sent what may get lost */
	/* cold */
	struct mlx_addr addr;
	struct mlx_way *way;	/* for datagrams; NULL: none is kept */
	uint32_t lossy_qpn;	/* by which it takes and sends what may get lost; 0: not told yet */
	bool unheard;		/* such a message went after all that was heard of it */
	uint8_t n_calls;	/* that it did not answer, or UINT8_MAX */
	uint8_t n_no_way;	/* times in turn that no way to it was found */
	TAILQ_ENTRY(mlx_peer) asking; /* of the queue's, while wanted and not open */
	bool wanted;		/* we have asked, or must: without a queue pair it is in waiting */
	bool called;		/* the peer has asked us meanwhile */
	/* while PARKING */
	bool said, theirs;	/* PARK is out; has come */
	bool cut;		/* and then the queue pair failed */
	uint64_t park_ns;	/* since when */
	TAILQ_ENTRY(mlx_peer) parking;
	TAILQ_ENTRY(mlx_peer) conns; /* of the queue's, while there is a queue pair */
	uint32_t opened;	/* mq->looks before it was */
	uint64_t made_ns;	/* when the queue pair was ready */
	SLIST_ENTRY(mlx_peer) lost_link;
	int err;		/* once lost */
	bool bye;		/* we have said that we go */
	bool probing;		/* an empty write is out, to see whether it is there */
	uint32_t tm_waits;	/* see mlx_tm.h */
	uint32_t attempt;	/* of our queue pair */
	uint32_t psn;
	uint32_t their_attempt;
	uint32_t their_qpn;
	uint64_t asked_ns;	/* when last */
	uint64_t give_up_ns;
	uint32_t n_asked;
};

/** Counters of this driver's own. */
struct mlx_stat {
	struct mlx_hw_stat hw;
	uint64_t conn_asked, conn_asked_again, conn_answered, conn_refused, conn_no_room;
	uint64_t conn_parked, conn_parked_by_peer; /* closed, to be made again when needed */
	uint64_t conn_waits; /* for a queue pair: there is no room, or it is made again */
	uint64_t conn_drop_old;
	uint64_t dgram_rx, dgram_drop_bad, dgram_drop_not_ours;
	uint64_t tx_inline, tx_copied, tx_rings, tx_signalled;
	uint64_t tx_no_credit, tx_no_buf, tx_no_room;
	uint64_t windows_grown;
	uint64_t rx_credits_only, tx_credits_only, rx_drop_bad_credit, rx_drop_no_peer, rx_drop_bad_len;
	uint64_t qp_retry, qp_rnr, qp_access, qp_other;
	uint64_t probes;
	uint64_t silent_asked, silent_answered; /* by datagram; peers of whom nothing came */
	uint64_t silent_gone;
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

/** A peer's queue that could not be reached, or was lost. */
struct mlx_shunned {
	uint64_t uid, until_ns;
};

struct mlx_queue {
	/* each burst */
	struct plx_queue *q;
	struct mlx_hw *hw;
	uint32_t looks;		/* bursts, to look at the datagrams now and then */
	uint32_t tx_out;	/* requests of all peers that are not completed */
	uint32_t tx_due;	/* those of them that are signalled */
	uint32_t n_free_slots;
	uint16_t n_kept, n_kept_tx;
	SLIST_HEAD(, mlx_peer) owes;
	SLIST_HEAD(, mlx_peer) lost;
	TAILQ_HEAD(, mlx_peer) asking;
	struct mlx_groups *groups; /* NULL: none was joined yet */
	struct mlx_ud lossy;	/* without a queue pair: not opened yet */
	/* each message */
	uint32_t found_qpn;	/* of found */
	struct mlx_peer *found;	/* to whom the last completion belonged, or NULL */
	SLIST_HEAD(, mlx_peer) held;
	uint64_t now;		/* ns, as of the last control */
	uint64_t tx_seen;	/* completions taken; MLX_TX_ALL more when there were no more to take */
	uint32_t free_slots[MLX_RX_FREE]; /* to be posted */
	struct mlx_bufs rx_bufs, tx_bufs;
	struct mlx_stat stat;
	struct mlx_port *port;
	LIST_HEAD(, mlx_mem) mems; /* registered */
	SLIST_HEAD(, mlx_io) ios;  /* free */
	uint32_t n_by_cpu;	   /* long ones under way, of a device that is software */
	/* cold */
	struct mlx_addr addr;
	uint32_t granted;	/* slots, to all peers */
	uint32_t n_slots;	/* that there are */
	uint32_t rx_spare;	/* posted besides those granted */
	uint32_t rx_room;	/* slots there can be */
	uint32_t rx_budget;
	uint16_t want;		/* slots for one peer */
	uint32_t attempts;
	uint64_t connect_ns, again_ns, probe_ns, dead_ns;
	uint8_t timeout, retries; /* as the queue pair takes them */
	bool routed;		/* peers of other networks are tried */
	bool by_manager;	/* groups are joined by the connection manager */
	uint32_t n_shunned;	/* ever */
	struct mlx_shunned shunned[MLX_SHUNNED];
	uint32_t qps_max, n_qps;
	uint32_t n_own;		/* of asking, those whose peer has not asked us */
	TAILQ_HEAD(, mlx_peer) waiting; /* for a queue pair */
	TAILQ_HEAD(, mlx_peer) parking;
	TAILQ_HEAD(, mlx_peer) conns;	/* that have a queue pair */
	SLIST_HEAD(, mlx_peer) by_qpn[MLX_QPN_HASH];
	/* datagrams */
	struct mlx_ud ud;
	TAILQ_HEAD(, mlx_way) ways; /* that used last is last */
	uint32_t n_ways;
	struct mlx_tm *tm;	/* NULL: the device does not match tags */
	/* sleeping */
	struct ibv_comp_channel *channel;
	int epfd, timerfd;
	struct mlx_hw_comp kept[MLX_HW_POLL_MAX]; /* arrivals found when arming */
	struct mlx_hw_comp kept_tx[MLX_HW_POLL_MAX];
	/* silent peers */
	uint64_t peers_ns;	/* when all peers were looked at last */
	uint64_t tx_then;	/* tx_seen as of then */
	bool overdue;		/* a peer was, then */
	bool caught_up;		/* what was completed then is taken */
	bool cached;		/* it counts among the users of the cache */
	pid_t pid;		/* of the owner: a forked child has a copy that is not its own */
};

static_assert(offsetof(struct mlx_queue, found_qpn) <= 3 * PLX_LINE, "a burst that brings nothing");
static_assert(offsetof(struct mlx_queue, stat) <= 7 * PLX_LINE, "and one that brings messages");

/** The clock of slow paths: it needs no EAL. */
static inline uint64_t
mlx_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline struct mlx_queue *
mlx_queue(const struct plx_queue *q)
{
	return q->priv;
}

static inline struct mlx_peer *
mlx_peer(struct plx_peer *peer)
{
	return (struct mlx_peer *)peer;
}

/* mlx_ports.c: the ports that the process has opened */
/**
 * One of those that the settings stand for.
 * @param i from 0 on; the first is the best, if the settings name none
 * Errors: -ENODEV there are not so many that work; those of verbs. Thread: any.
 */
int mlx_port_get(const struct plx_conf *conf, unsigned i, struct mlx_port **out);
void mlx_port_put(struct mlx_port *port);
/** plx_dev_ops.look */
int mlx_look(const struct plx_conf *conf, unsigned i, struct plx_dev_port *out);

/* mlx_port.c: one port of a device, and what becomes of it */
/**
 * Open a device and look at one of its ports, from 1 on.
 * @param gid index of the one that others reach it by, or MLX_ANY_GID
 * @param stand_by as well if it is down, where all that peers have to know of it is known
 * Errors: -ERANGE the device has no such port, nor any behind it; -ENODEV the port does not work.
 */
int mlx_port_open(struct ibv_device *ibdev, unsigned num, long gid, bool stand_by,
	struct mlx_port **out);
/** It is to be used. Errors: those of verbs; it is as it was. */
int mlx_port_start(struct mlx_port *port);
void mlx_port_free(struct mlx_port *port);
/** Take the device's events. Thread: any. */
void mlx_port_events(struct mlx_port *port);
/** All peers of its queues are lost soon. Thread: any. */
void mlx_port_failed(struct mlx_port *port);

/** @return whether a port that works is down, or has lost its address. */
static inline bool
mlx_port_is_down(const struct mlx_port *port)
{
	return atomic_load_explicit(&port->down, memory_order_relaxed) != 0; /* alone, as below */
}

static inline bool
mlx_port_is_gone(const struct mlx_port *port)
{
	return atomic_load_explicit(&port->gone, memory_order_relaxed) != 0; /* it only says no more */
}

/* mlx_net.c: what the host knows of a port */
struct sockaddr_storage;
/** The address of the port's interface. Errors: -ENODEV it has none. Thread: any. */
int mlx_net_addr(const struct mlx_port *port, struct sockaddr_storage *out);
/** @return bits of a gid, which is an address of this host, that name its network. Thread: any. */
uint8_t mlx_net_bits(const uint8_t gid[16], bool v4);
/** @return the port's speed by half octaves, up to MLX_ADDR_SPEED_MAX. Thread: any. */
uint8_t mlx_net_speed(const struct ibv_port_attr *attr);
/** @return whether the caller may run on a core near the device, or nobody knows. Thread: any. */
bool mlx_net_is_near(const char *device);
/** @param list as "0-3,8" @return whether one of them is in the set, or it is no such list */
bool mlx_net_cpus_meet(const char *list, const cpu_set_t *set);

/* mlx_pick.c: which port for which peer */
/** Errors: -EHOSTUNREACH. */
int mlx_queue_reach(const struct mlx_queue *mq, const struct mlx_addr *to);
int mlx_peer_score(struct plx_queue *q, const struct plx_addr *addr);
/** plx_dev_ops.addr_whose, addr_why */
void mlx_addr_whose(const struct plx_addr *addr, char *text, size_t len);
void mlx_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len);
/** A peer's queue that can't be reached, or is no more, is the last choice for a while. */
void mlx_queue_shun(struct mlx_queue *mq, uint64_t uid);

/* mlx_bufs.c */
int mlx_bufs_open(struct mlx_bufs *b, const struct plx_reg_domain *domain, uint32_t len, uint32_t most);
void mlx_bufs_close(struct mlx_bufs *b);
/** Slow path of mlx_bufs_get(). */
uint32_t mlx_bufs_grow(struct mlx_bufs *b);

/** @return a buffer's number, or MLX_NONE: there are no more. */
static inline uint32_t
mlx_bufs_get(struct mlx_bufs *b)
{
	return likely(b->n_free > 0) ? b->free[--b->n_free] : mlx_bufs_grow(b);
}

static inline void
mlx_bufs_put(struct mlx_bufs *b, uint32_t i)
{
	b->free[b->n_free++] = i;
}

static inline uint8_t *
mlx_bufs_at(const struct mlx_bufs *b, uint32_t i)
{
	return b->chunks[i / MLX_BUFS_CHUNK].base + (size_t)(i % MLX_BUFS_CHUNK) * b->len;
}

static inline uint32_t
mlx_bufs_lkey(const struct mlx_bufs *b, uint32_t i)
{
	return b->chunks[i / MLX_BUFS_CHUNK].mr->lkey;
}

/** The peer is to be told credits when the owner flushes. */
static inline void
mlx_owes(struct mlx_queue *mq, struct mlx_peer *p)
{
	SLIST_INSERT_HEAD(&mq->owes, p, owes_link);
	mq->q->held = true;
}

/* mlx_queue.c */
int mlx_queue_open(struct plx_queue *q);
void mlx_queue_leave(struct plx_queue *q);
void mlx_queue_close(struct plx_queue *q);
void mlx_queue_addr(const struct plx_queue *q, struct plx_addr *addr);
const char *mlx_queue_port(const struct plx_queue *q);
bool mlx_queue_is_up(const struct plx_queue *q);
void mlx_queue_control(struct plx_queue *q);

/* mlx_sleep.c */
int mlx_sleep_open(struct mlx_queue *mq);
void mlx_sleep_close(struct mlx_queue *mq);
int mlx_queue_efd(struct plx_queue *q);
int mlx_queue_arm(struct plx_queue *q);
void mlx_queue_disarm(struct plx_queue *q);

/* mlx_ud.c: a queue pair for datagrams */
/** Called with what came, without what stands before it. */
typedef void mlx_ud_take(struct mlx_queue *mq, const struct mlx_ud_src *src, const uint8_t *data,
	uint32_t len);
/** @param len of the longest datagram, bytes */
int mlx_ud_open(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, uint16_t n_rx, uint32_t qkey);
void mlx_ud_close(struct mlx_ud *ud);
/** The way to a port, or to a group. @return NULL: errno may say why */
struct ibv_ah *mlx_ud_way(struct mlx_queue *mq, const uint8_t *gid, uint16_t lid);
/** @return where the next one to send is written, or NULL: there is no room */
void *mlx_ud_room(struct mlx_ud *ud);
/** Have only some of what is sent signalled from now on, if that may be. */
void mlx_ud_spare(struct mlx_queue *mq, struct mlx_ud *ud);
/** All that was sent is done some time, though nothing follows it. */
void mlx_ud_end(struct mlx_queue *mq, struct mlx_ud *ud);
/** Send what was written there. */
void mlx_ud_send(struct mlx_queue *mq, struct mlx_ud *ud, uint32_t len, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/** Take what came, and what was sent. @return how many */
unsigned mlx_ud_poll(struct mlx_queue *mq, struct mlx_ud *ud, mlx_ud_take *take);
/** Bring it back if it has failed; the port has when that can't be done. Not in a turn: system calls. */
void mlx_ud_mend(struct mlx_queue *mq, struct mlx_ud *ud);

/* mlx_way.c: address handles */
/**
 * The way to a peer's port, for one datagram that is then sent by ud, the queue's own or lossy.
 * Errors: -EAGAIN too many are in use; those of the system: it can't be reached.
 */
int mlx_way_get(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_ud *ud,
	struct ibv_ah **ah);
/** The peer goes. */
void mlx_way_drop(struct mlx_peer *p);
/** All queue pairs for datagrams are closed. */
void mlx_ways_close(struct mlx_queue *mq);

/* mlx_dgram.c: datagrams between two queues */
int mlx_dgrams_open(struct mlx_queue *mq);
/** Send one; lost when there is no room, as any may be. @return 0, or why it can't be reached */
int mlx_dgrams_send(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_dgram *d);
/** Take what came. @return how many */
unsigned mlx_dgrams_poll(struct mlx_queue *mq);

/* mlx_group.c */
/** @return the longest message to a group, bytes; 0: there are no groups on such a network */
uint32_t mlx_group_mtu(const struct mlx_queue *mq);
int mlx_group_join(struct plx_queue *q, uint64_t id, bool rx);
void mlx_group_leave(struct plx_queue *q, uint64_t id, bool rx);
int mlx_group_tx(struct plx_queue *q, uint64_t id, const void *data, uint32_t len);
unsigned mlx_groups_poll(struct mlx_queue *mq);
int mlx_groups_arm(struct mlx_queue *mq);
/** As mlx_ud_mend(). */
void mlx_groups_mend(struct mlx_queue *mq);
void mlx_groups_close(struct mlx_queue *mq);

/* mlx_lossy.c */
int mlx_lossy_open(struct plx_queue *q, uint32_t *where);
int mlx_lossy_to(struct plx_peer *peer, uint32_t where);
int mlx_lossy_tx(const struct plx_tx *tx);
unsigned mlx_lossy_poll(struct mlx_queue *mq);
int mlx_lossy_arm(struct mlx_queue *mq);
/** All that was sent is done some time, though nothing follows it. */
void mlx_lossy_end(struct mlx_queue *mq);
/** Forget what comes. @return whether the device still has something to send */
bool mlx_lossy_drain(struct mlx_queue *mq);

/* mlx_conn.c: from an address to an open queue pair, and its end */
int mlx_peer_open(struct plx_peer *peer, const struct plx_addr *addr);
bool mlx_peer_is(const struct plx_peer *peer, const struct plx_addr *addr);
int mlx_peer_connect(struct plx_peer *peer);
void mlx_peer_close(struct plx_peer *peer);
void mlx_conn_on_dgram(struct mlx_queue *mq, const struct mlx_dgram *d);
/** Ask again, give up. */
void mlx_conn_control(struct mlx_queue *mq, uint64_t now);
/** Ask a connected peer whether it is there: by a datagram, which overtakes all that it is sent. */
void mlx_conn_call(struct mlx_peer *p);
/** A message came by the queue pair: the peer's works. */
void mlx_conn_works(struct mlx_peer *p);
/** Nothing more goes; what has come is still to be delivered. May be called in the middle of anything. */
void mlx_conn_lose(struct mlx_peer *p, int err);
/** The peer has said that it goes. */
void mlx_conn_bye(struct mlx_peer *p);
/** Everything that had come is delivered: the lost are dead now. */
void mlx_conn_settle(struct mlx_queue *mq);
/** Slow path of mlx_conn_find(). */
struct mlx_peer *mlx_conn_look(struct mlx_queue *mq, uint32_t qpn);
/** One of waiting gets a queue pair, and asks. It may stay there, or be lost. */
void mlx_conn_start(struct mlx_peer *p);
/** No connection any more, as if there had never been one. */
void mlx_conn_reset(struct mlx_peer *p);

/** @return whose queue pair that is, or NULL: it is closed. */
static inline struct mlx_peer *
mlx_conn_find(struct mlx_queue *mq, uint32_t qpn)
{
	return likely(mq->found_qpn == qpn && mq->found != NULL) ? mq->found
								 : mlx_conn_look(mq, qpn);
}

/* mlx_park.c */
/** Whether another queue pair may be made. */
bool mlx_park_room(const struct mlx_queue *mq);
/** The same, to ask by it. */
bool mlx_park_room_to_ask(const struct mlx_queue *mq);
/** Have the peer connected, as soon as may be. @param called as it has asked for it. Never blocks. */
void mlx_park_want(struct mlx_peer *p, bool called);
/** The peer has said PARK. */
void mlx_park_told(struct mlx_peer *p);
/** Whether both sides have said PARK: nothing more is sent. */
bool mlx_park_is_over(const struct mlx_peer *p);
/** The peer is on its way out of PARKING. */
void mlx_park_stop(struct mlx_peer *p);
/** Go on with those that park, and serve those that wait. */
void mlx_park_work(struct mlx_queue *mq);

/* mlx_alive.c */
/** Look at all peers, if it is time to. @return whether it was */
bool mlx_alive_look(struct mlx_queue *mq);
/** A peer asks whether we are there, or says that it is. */
void mlx_alive_on_dgram(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_dgram *d);

/** A message that may get lost has come of a peer. */
static inline void
mlx_alive_heard(const struct mlx_queue *mq, struct mlx_peer *p)
{
	p->heard_ns = mq->now;
	p->unheard = false;
	p->n_calls = 0;
}

/* mlx_tx.c */
/** @return whether a request may be posted, and one that only tells something after it. */
static inline bool
mlx_tx_has_room(const struct mlx_queue *mq, const struct mlx_peer *p)
{
	return likely(p->conn == MLX_CONN_OPEN && p->tx_room > 1 && mq->tx_out < MLX_TX_ALL);
}

int mlx_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int mlx_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key);
int mlx_tx(const struct plx_tx *tx);
/** The same of what is longer than the mtu by sizeof(struct ibv_tmh) at the most, and counts as len. */
int mlx_tx_framed(const struct plx_tx *tx, uint32_t len);
/** Tell the credits that are owed, or with MLX_IMM_BYE that we go. @return whether it went */
bool mlx_tx_ctl(struct mlx_peer *p, uint8_t flags);
/** Post one request, with a place for it. */
void mlx_tx_post(struct mlx_queue *mq, struct mlx_peer *p, struct mlx_hw_wr *wr,
	struct mlx_txrec rec);
/** See whether the peer is there: an empty write, which needs no slot and wakes nobody. */
void mlx_tx_probe(struct mlx_peer *p);
/** Show the device what is posted, tell credits. */
void mlx_flush(struct plx_queue *q);
/** What was sent and is over. @return how many */
unsigned mlx_tx_poll(struct mlx_queue *mq);
/** @return whether something that was sent is over; it is kept for the next poll */
bool mlx_tx_waits(struct mlx_queue *mq);
/** All requests of a peer end now. */
void mlx_tx_drop(struct mlx_peer *p, int err);

/* mlx_region.c */
int mlx_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len,
	uint8_t rights, struct plx_dev_key *out);
void mlx_region_dereg(struct plx_dev_key *key);

/**
 * The region that memory lies in, to be used while it is held.
 * @param rights enum plx_dev_mem_right, what has to be allowed
 * @return the region, or NULL: none was found, or somebody else was looking. Thread: any.
 */
struct mlx_region *mlx_region_hold(struct mlx_port *port, const void *addr, size_t len,
	uint8_t rights);
/** Accepts NULL. Thread: any. */
void mlx_region_drop(struct mlx_region *region);
const struct ibv_mr *mlx_region_mr(const struct mlx_region *region);

/** @return enum ibv_access_flags for enum plx_dev_mem_right */
int mlx_access(uint8_t rights);

/* mlx_mem.c */
/**
 * Let the device reach memory until mlx_loan_put().
 * @param rights enum plx_dev_mem_right that a region has to give @param access enum ibv_access_flags
 * Errors: -ENOMEM, -EFAULT and others of the system: *loan is empty.
 */
int mlx_loan_get(struct mlx_queue *mq, void *addr, size_t len, uint8_t rights, int access,
	struct mlx_loan *loan);
/** Accepts an empty one. */
void mlx_loan_put(struct mlx_loan *loan);
int mlx_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights,
	struct plx_dev_mem *out);
void mlx_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);
void mlx_mem_close(struct mlx_queue *mq);

/* mlx_rma.c */
void mlx_rma_close(struct mlx_queue *mq);
int mlx_rma(const struct plx_rma_op *op);

/* mlx_tm.c: receives that the device matches */
/** Errors: -EOPNOTSUPP the device cannot; those of verbs. Then the queue is as it was. */
int mlx_tm_open(struct mlx_queue *mq, const struct mlx_hw_conf *conf);
/** No callback is called any more. */
void mlx_tm_leave(struct mlx_queue *mq);
/** After the hardware is closed; accepts a queue that matches none. */
void mlx_tm_close(struct mlx_queue *mq);
int mlx_tm_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
int mlx_tm_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);
/** A completion of MLX_COMP_TM or above. @return whether *rx is a message for the owner */
bool mlx_tm_take(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx);
/** What it sent the first part of does not come. */
void mlx_tm_peer_lost(struct mlx_queue *mq, struct mlx_peer *p);

/* mlx_tm_tx.c: sending to a queue whose device matches tags */
/** Such a peer is opened: the queue's ways of sending, and the peer's mtu, change. */
void mlx_tm_speak(struct mlx_queue *mq, struct mlx_peer *p);
/** What goes before a message without a tag, sizeof(struct ibv_tmh). */
extern const struct ibv_tmh mlx_tm_no_tag;

static inline bool
mlx_tm_is(const struct mlx_peer *p)
{
	return (p->addr.flags & MLX_ADDR_TM) != 0;
}

/* mlx_rx.c */
uint16_t mlx_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
/** A message in a slot. @param p NULL: of nobody. @return whether *rx is one; else the slot is free */
bool mlx_rx_accept(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_hw_comp *comp,
	struct plx_rx *rx);
/** It is of no use: its slot is free. */
void mlx_rx_drop(struct mlx_queue *mq, const struct plx_rx *rx);
/** A message that took no slot has come. */
void mlx_rx_placed(struct mlx_queue *mq, struct mlx_peer *p, uint32_t imm);
void mlx_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);
/** Make and post slots until so many may be granted. @return 0 or -ENOMEM: some may have been made */
int mlx_rx_grow(struct mlx_queue *mq, uint32_t granted);
/** @return whether something came; it is kept for the next burst */
bool mlx_rx_waits(struct mlx_queue *mq);
/** Take what came and forget it, but for credits and who leaves. */
void mlx_rx_drain(struct mlx_queue *mq);

#endif
