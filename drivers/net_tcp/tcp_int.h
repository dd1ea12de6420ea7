/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_int.h - between the files of the TCP driver
 *
 * Design notes
 * A queue has one listener, one epoll descriptor and one buffer to receive into; a pair of queues has one
 * connection for both directions, made when the first message is to go. Nothing of this is there before
 * somebody asks for the queue's address or connects.
 *
 * tcp_queue.c: queues. tcp_peer.c: peers. tcp_listen.c: those who come. tcp_join.c: those we go to.
 * tcp_conn.c: what becomes of a connection. tcp_flow.c, tcp_more.c: further ones, for long data.
 * tcp_tx.c: what is sent waits in chunks (tcp_chunk.c), and goes by one system call a peer at the end of a turn.
 * tcp_rx.c: what has come is read into the queue's buffer, whole messages are delivered in place.
 * tcp_rma.c, tcp_op.c: memory of peers is read and written; tcp_far.c, tcp_answer.c: ours is, by them (tcp_key.c);
 * tcp_bulk.c: data goes straight to where it belongs; tcp_away.c, tcp_order.c: by which connection.
 * tcp_lossy.c, tcp_group.c: datagrams to peers and to groups, by tcp_udp.c.
 * tcp_poll.c, tcp_hot.c: which sockets are looked at. tcp_watch.c: whether peers that are sent to are there.
 *
 * lib/link is for devices that connect by datagrams and count messages by credits; a stream has its
 * handshake inside and the kernel's window. So only its list of routes is used here.
 */
#ifndef TCP_INT_H
#define TCP_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include <rte_common.h>

#include "plx_clock.h"
#include "plx_dev.h"
#include "plx_dev_ops.h"

#include "tcp_addr.h"
#include "tcp_conf.h"
#include "tcp_frame.h"
#include "tcp_hello.h"
#include "tcp_if.h"
#include "tcp_key.h"
#include "tcp_udp.h"

#define TCP_CHUNK_LEN	(64u << 10) /* bytes of a chunk, with what stands before its data */
#define TCP_PEER_CHUNKS 8u   /* of them, those with what waits for one peer */
#define TCP_SPARE	32u  /* chunks that only peers without any get */
#define TCP_RX_LEN	(256u << 10) /* bytes of the buffer to receive into */
#define TCP_IOV		64   /* pieces of one system call */
#define TCP_LENT_MAX	512u /* parts of messages that are sent from where they lie, of a worker */
#define TCP_PEER_LENT	64u  /* and of these, for one peer */
#define TCP_LENT_IOV	4u   /* pieces of data of one message */
#define TCP_LENT_MIN	(4u << 10) /* bytes that are worth it */
/*
 * Bytes that go without asking: an answer takes longer on the way than one message in two copies. With MPICH, 16 KiB
 * by asking first took three times as long. The bandwidth of 64 KiB is 0.6 of that by asking.
 */
#define TCP_EAGER_MAX	(48u << 10)
#define TCP_WATCH_END	(EPOLLRDHUP | EPOLLET) /* what epoll reports, once, of a further connection that is idle */
#define TCP_HOT		8u   /* sockets that are read without asking epoll, at the most */
#define TCP_COLD	256u /* looks that find nothing, before a socket is left to epoll */
#define TCP_POLL_EVERY	16u  /* turns between two questions to epoll, while others are read without */
#define TCP_AWAKE	256u /* turns without sleep after which epoll does not watch a hot socket */
#define TCP_EVENTS	16   /* taken from epoll in one turn */
#define TCP_GUESTS	64u  /* connections that have not proven who they are */
#define TCP_GUEST_MS	5000u /* that they may take to do so */
#define TCP_AWAY_MS	500u /* without a look at the time, in which nobody is too late */
#define TCP_TRIES	2u   /* places of a peer that are tried at once */
#define TCP_OPS		1024u /* reads and writes of peers' memory that are not over, of a worker, */
#define TCP_PEER_PUTS	256u  /* of a peer, writes */
#define TCP_PEER_GETS	32u   /* and reads, and atomics; a peer that asks for more is malformed */
#define TCP_AHEAD	(1u << 20) /* bytes that are not copied and wait for a peer, above which no more are taken */
#define TCP_KEYED	8u    /* pieces of our memory that one system call sends to who has read it by key */
#define TCP_BULKY	4u    /* reads for which more data that goes straight to its place is expected, */
#define TCP_READS	8u   /* of such a peer's socket in one turn, */
#define TCP_ACKS	8u   /* and writes of its that are acknowledged together while more come */
#define TCP_NEAR_LEN	2048u /* of so many bytes then */
#define TCP_MANY	7u    /* messages besides the first: behind a turn with as many the next ones wait for a turn, too */
#define TCP_SHORT_MAX	256u /* bytes of tx_short */
#define TCP_HDR_ROOM	64u  /* of a message besides its data */
#define TCP_MSG_MAX	(TCP_EAGER_MAX + TCP_HDR_ROOM) /* bytes of a message, whatever the sender's settings are */
#define TCP_LEAVE_MS	2000u /* for what was sent to arrive when a queue closes */

struct tcp_queue;
struct tcp_peer;

/** What a descriptor in epoll belongs to; in the low bits of a pointer. */
enum tcp_watch {
	TCP_WATCH_LISTENER, /* the queue's */
	TCP_WATCH_GUEST,
	TCP_WATCH_TRY, /* to reach a peer; of the peer's, as the try may be over when its event is looked at */
	TCP_WATCH_FLOW,
	TCP_WATCH_UDP, /* struct tcp_udp_in */
	TCP_WATCH_BITS = 7,
};

/** Bytes that wait to be sent: in a chunk, whose data follows, or not copied. */
struct tcp_chunk {
	STAILQ_ENTRY(tcp_chunk) link;
	const uint8_t *from; /* data, or the sender's memory that is not copied */
	uint32_t at, end; /* of these: sent up to here; written up to here */
	bool lent;	  /* it is a struct tcp_lent, */
	bool keyed;	  /* with memory that a peer reads by key */
};

_Static_assert(sizeof(struct tcp_chunk) == 32, "little is lost of a chunk");

#define TCP_LENT_HEAD 80 /* bytes of a frame's head and a message's header */

/** A part of a message that is sent from where it lies; see tcp_lent.c. */
struct tcp_lent {
	STAILQ_ENTRY(tcp_lent) link; /* among those that are free, or over */
	void (*done)(void *arg, int err); /* of the last part: its end is the message's; else NULL */
	void *arg;
	int err;
	uint64_t key;
	uint8_t head[TCP_LENT_HEAD];
	struct tcp_chunk part;
};

#define TCP_CHUNK_DATA (TCP_CHUNK_LEN - (uint32_t)sizeof(struct tcp_chunk))

STAILQ_HEAD(tcp_chunks, tcp_chunk);

/** A read or write of a peer's memory; see tcp_op.c. */
struct tcp_op {
	STAILQ_ENTRY(tcp_op) link; /* among those of the peer that wait for an answer, that are over, or free */
	void (*done)(void *arg, int err);
	void *arg;
	uint8_t *to; /* where what was read goes */
	uint32_t len;
	int err;
};

STAILQ_HEAD(tcp_ops, tcp_op);

/** Data of a frame that goes straight to where it belongs; see tcp_bulk.c. */
struct tcp_bulk {
	uint64_t to;	/* our memory: the next byte */
	uint64_t key;	/* that the peer has for it, unless it is got */
	uint32_t left;	/* bytes of data, */
	uint8_t pad;	/* and behind them */
	bool got : 1;	/* it is the answer to our first get */
	bool acked : 1;	/* it is a PUT that is acknowledged */
	bool dropped : 1; /* it is for nobody any more */
	uint8_t bulky;	/* reads for which more of its kind is expected */
};

/** What a peer has asked for and cannot be sent to it yet. */
struct tcp_due {
	uint64_t key, addr; /* of memory; key 0: addr is the value */
	uint64_t len;
};

/** @return the bytes that follow a chunk that is copied. */
static inline uint8_t *
tcp_chunk_data(struct tcp_chunk *c)
{
	return (uint8_t *)(c + 1);
}

enum tcp_state {
	TCP_NONE,
	TCP_JOINING, /* see tcp_join.c */
	TCP_OPEN,
	TCP_LEAVING, /* nothing new is sent: it is about to be closed as it is idle; see tcp_park.c */
	TCP_CUT,  /* nothing more can be sent; what has come is still to be read */
	TCP_OVER, /* no socket any more */
};

/** Why a socket is not just read. */
enum tcp_odd {
	TCP_PLAIN,
	TCP_DEAF,    /* what comes is malformed: no more is read */
	TCP_FURTHER, /* it is not a peer's first */
	/* It is the first, and data that belongs before what comes is still to come by others: tcp_away.c. */
	TCP_AWAITS,  /* more frames may begin such data */
	TCP_STALLED, /* the next frame waits */
	TCP_LOOK,    /* it may wait no longer */
};

/** One socket of a connection. Owner: the queue's worker. */
struct tcp_flow {
	/* sending */
	struct tcp_chunks out;
	struct tcp_chunk *tail; /* the last of out, or NULL */
	uint32_t n_out;		/* chunks in out, */
	uint32_t n_lent;	/* and parts of messages that are not copied, */
	uint32_t ahead;		/* of so many bytes */
	int fd;
	bool blocked;		/* in queue->blocked: the socket took not all */
	bool is_hot;
	bool polled;		/* epoll watches it, as all that are not hot */
	bool out_armed;		/* epoll reports room to send */
	bool self;		/* no socket, but our own queue: out is what comes */
	bool sent;		/* not all that was sent is known to have come */
	uint8_t odd;		/* enum tcp_odd */
	uint8_t index;		/* 0: a peer's first */
	/* receiving */
	uint16_t n_empty;	/* looks in a row that found nothing */
	uint16_t heated;	/* the turn in which it became hot */
	uint32_t mute_ms;	/* since when nothing is acknowledged; 0: it is */
	struct tcp_bulk bulk;
	TAILQ_ENTRY(tcp_flow) hot_link, blocked_link;
};

struct tcp_ask;

/** A further connection of a peer; see tcp_flow.c. */
struct tcp_further {
	struct tcp_flow flow;
	struct tcp_peer *p;
	struct tcp_ask *ask; /* it is being made; or NULL */
	bool ends; /* it may have ended behind the data that it still has */
	/* data comes by it: */
	TAILQ_ENTRY(tcp_further) busy_link;
	struct tcp_op *op; /* the read that it answers; or NULL: it is a write */
	uint32_t n_acks;   /* writes to acknowledge when it is there */
};

/** Of a peer that may have further connections. */
struct tcp_more {
	uint8_t first[TCP_MAC_LEN]; /* of the first's CONFIRM */
	TAILQ_HEAD(tcp_busy, tcp_further) busy; /* those by which data comes, in the order of its frames */
	uint8_t n_up;	/* those to it that take data */
	uint8_t n_came;	/* those that it made */
	uint8_t next;	/* where to begin to look for one */
	uint32_t n_rest; /* bytes in rest */
	uint8_t *rest;	/* TCP_RX_LEN bytes of the first connection that wait for such data; NULL: none can come */
	uint64_t again_ms; /* not before are some made */
	struct tcp_further to[TCP_FLOWS_MAX - 1], from[TCP_FLOWS_MAX - 1]; /* by who made them */
};

/** The other end. Owner: the queue's worker. */
struct tcp_peer {
	struct plx_peer peer;
	alignas(PLX_LINE) struct tcp_flow flow;
	uint8_t state;		/* enum tcp_state */
	/* sending */
	bool dirty;		/* in queue->dirty: the end of the turn sends */
	bool watched;		/* in queue->watched: not all that was sent is known to have come */
	bool bye_said, bye_came; /* TCP_LEAVING */
	bool wants;		/* closed as it was idle, and there is something to send */
	uint16_t n_turn;	/* messages of this turn, besides the first */
	uint16_t n_puts, n_gets;
	uint32_t n_acks;	/* PUTs to acknowledge */
	struct tcp_ops puts, gets; /* of the peer's memory, that it has not answered */
	uint64_t sent_turn;	/* the worker's turn, plus 1, behind which nothing goes at once any more */
	TAILQ_ENTRY(tcp_peer) dirty_link;
	/* receiving */
	struct tcp_chunk *part; /* the beginning of a message, kept while others are read; or NULL */
	struct tcp_chunk *due;	/* struct tcp_due of TCP_PEER_GETS at the most; or NULL: none */
	/* cold */
	uint8_t n_answered;	/* guests that are this peer and have an ANSWER, */
	uint8_t n_waiting;	/* or wait for it */
	int16_t lost_err;	/* why it is TCP_CUT */
	uint32_t used_ms;	/* when something went or came last, about */
	TAILQ_ENTRY(tcp_peer) watch_link;
	struct tcp_join *join;	/* TCP_JOINING */
	struct tcp_more *more;	/* NULL: there is one connection */
	struct tcp_lossy *lossy; /* tcp_lossy.c; NULL: there are no datagrams */
	struct tcp_addr *addr;	/* no longer than it says: many peers have few places */
};

_Static_assert(sizeof(struct tcp_peer) <= 384, "with its address, what a peer costs that is idle: 512 bytes");

struct tcp_stat {
	uint64_t joins, joined, accepted, crossed, refused; /* connections */
	uint64_t drop_stranger, drop_silent; /* of those who came, who did not prove who they are, or were too slow */
	uint64_t no_fd;
	uint64_t flows, flows_taken, flows_failed; /* further connections: made, made by peers, not made, */
	uint64_t flows_ended; /* ended before the first */
	uint64_t rx_away; /* long data that came by such */
	uint64_t tx_calls, tx_partial, rx_calls, rx_empty, polls, poll_changes, randoms; /* system calls */
	uint64_t tx_no_chunk, rx_no_chunk, parts;
	uint64_t puts, gets, atomics; /* by peers, of our memory */
	uint64_t rx_straight; /* bytes that went straight to where they belong */
	uint64_t drop_ended; /* writes to memory whose receive has failed */
	uint64_t drop_bad_key;
	uint64_t parked, reopened; /* connections closed as they were idle; made again */
	uint64_t drop_bad_frame;
	uint64_t udp_tx_calls, udp_rx_calls; /* system calls */
	uint64_t udp_refused; /* datagrams that the kernel did not send */
	uint64_t udp_drop_bad; /* datagrams that came too long, or without a stamp */
	uint64_t lossy_tx, lossy_no_room, lossy_rx, lossy_drop_not_ours;
	uint64_t group_tx, group_no_room, group_rx, group_drop_not_ours;
};

/** A connection that somebody made; tcp_listen.c. */
struct tcp_guest {
	bool open;     /* there is a connection */
	bool waits;    /* its HELLO is good, and is answered when our own attempt has failed */
	uint16_t n;    /* bytes of the message that is read now */
	int fd;
	uint64_t since_ms;
	struct tcp_peer *p; /* once its HELLO was read */
	struct tcp_hello hello;
	struct tcp_answer answer;
	struct tcp_confirm confirm;
};

struct tcp_rx {
	uint8_t *buf;
	uint32_t at, end;	/* of what is in it and was not given out yet */
	uint32_t lent;		/* messages given out and not released */
	struct tcp_peer *of;	/* whose bytes these are, NULL: there are none */
};

struct tcp_queue {
	/* each turn */
	struct plx_queue *q;
	struct tcp_rx rx;
	TAILQ_HEAD(tcp_flows, tcp_flow) hot, blocked;
	TAILQ_HEAD(, tcp_peer) dirty, watched;
	uint32_t n_hot, n_conns, n_joins;
	uint32_t n_further; /* connections besides n_conns */
	uint32_t n_leaving, n_byes, n_wants; /* peers that are TCP_LEAVING; of which a BYE has come; that want */
	uint32_t now_ms;	/* at the last control */
	uint32_t turns, slept;	/* looks for messages; at the last sleep */
	_Atomic int epfd;	/* -1: none yet; any thread makes it */
	pthread_mutex_t listen_lock;
	/* chunks */
	struct tcp_chunks free;
	uint32_t n_free;
	uint8_t *chunks;
	STAILQ_HEAD(tcp_lents, tcp_lent) lent_free, lent_over;
	struct tcp_lent *lent;
	struct tcp_ops ops_free, ops_over;
	struct tcp_op *ops;
	struct tcp_udp *udp; /* NULL: it has no datagrams */
	struct tcp_keys *keys; /* NULL: none has been given away yet */
	uint32_t n_chunks, n_made; /* there may be; were used at all */
	uint32_t msg_len;	/* bytes of the longest message that we send */
	struct tcp_stat stat;
	/* cold */
	bool listens;		/* epoll reports new clients, once there is a listener */
	_Atomic bool cannot_listen;
	_Atomic int listener;	/* -1: none yet; any thread makes it, see tcp_listen() */
	uint64_t guests_ms;	/* when the guests were looked at */
	uint64_t accept_ms;	/* when to go on accepting, after there was no descriptor */
	struct tcp_guest *guests; /* TCP_GUESTS places; NULL: none has come yet */
	uint32_t n_guests;	/* of them, those that are taken */
	struct tcp_addr addr;
	struct tcp_if_conf ifs;
	char if_text[PLX_CONF_STR_MAX];
	uint16_t port_first, port_last; /* 0: any */
	uint16_t group_port;
	uint8_t group_ttl;
	uint32_t connect_ms, answer_ms, probe_ms, dead_ms;
	uint32_t flows;		/* connections to a peer, at the most */
	bool told_flows;	/* that there are fewer */
	uint32_t connected;	/* connections above which those that are idle are closed */
	uint64_t watch_ms;	/* when the watched ones are looked at next */
	uint64_t n_dead_seen;	/* of the queue's peers, when all were looked at last */
	pid_t pid;
};

static inline struct tcp_queue *
tcp_queue(const struct plx_queue *q)
{
	return q->priv;
}

static inline struct tcp_peer *
tcp_peer(struct plx_peer *peer)
{
	return (struct tcp_peer *)peer;
}

static inline struct tcp_peer *
tcp_flow_peer(struct tcp_flow *f)
{
	return likely(f->index == 0) ? container_of(f, struct tcp_peer, flow)
				     : container_of(f, struct tcp_further, flow)->p;
}

/* tcp_queue.c */
int tcp_queue_open(struct plx_queue *q);
void tcp_queue_leave(struct plx_queue *q);
void tcp_queue_lose(struct plx_queue *q);
void tcp_queue_close(struct plx_queue *q);
void tcp_queue_addr(const struct plx_queue *q, struct plx_addr *addr);
void tcp_queue_control(struct plx_queue *q);
uint64_t tcp_queue_deadline(struct plx_queue *q);

/* tcp_peer.c */
int tcp_peer_open(struct plx_peer *peer, const struct plx_addr *addr);
int tcp_peer_connect(struct plx_peer *peer);
void tcp_peer_close(struct plx_peer *peer);
void tcp_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len);

/* tcp_listen.c */
/** Begin to listen, once; then tq->addr says where. Thread: any. */
void tcp_listen(struct tcp_queue *tq);
void tcp_listen_event(struct tcp_queue *tq);
void tcp_guest_event(struct tcp_queue *tq, struct tcp_guest *g);
void tcp_guests_control(struct tcp_queue *tq, uint64_t now_ms);
/** @return when that has something to do though nothing comes; UINT64_MAX: never */
uint64_t tcp_guests_deadline_ms(const struct tcp_queue *tq);
/** Those who came from a peer are of no use. */
void tcp_guests_drop(struct tcp_peer *p);
void tcp_listen_close(struct tcp_queue *tq);
/** In a forked child. */
void tcp_listen_lose(struct tcp_queue *tq);

/* tcp_join.c */
/** Begin to connect. Errors: -ENOMEM, -EMFILE, -ENFILE. */
int tcp_join(struct tcp_peer *p);
/** Connecting is over, however it ended. */
void tcp_join_end(struct tcp_peer *p);
/** Something happened at a try's socket. */
void tcp_try_event(struct tcp_peer *p);
/** In a forked child. */
void tcp_join_lose(struct tcp_peer *p);
void tcp_join_control(struct tcp_peer *p, uint64_t now_ms);
/** @return when that has something to do though nothing comes; UINT64_MAX: never */
uint64_t tcp_join_deadline_ms(const struct tcp_peer *p);

/* tcp_conn.c */
/**
 * A socket is this peer's connection now.
 * @param c what its handshake ended with
 * @return 0 or -errno, and the socket is the caller's
 */
int tcp_peer_adopt(struct tcp_peer *p, int fd, const struct tcp_confirm *c);
/** Nothing more can be sent, because of err; once all that has come is read, the peer is dead. */
void tcp_peer_cut(struct tcp_peer *p, int err);
/** The same, and nothing more is read. */
void tcp_peer_reject(struct tcp_peer *p, int err);
/** All is read: tell the owner. */
void tcp_peer_end(struct tcp_peer *p, int err);
/** No connection any more. */
void tcp_peer_disconnect(struct tcp_peer *p);

/* tcp_flow.c */
/** Begin to make those that are not there. */
void tcp_flows_make(struct tcp_peer *p);
/** Something happened at one that is being made. */
void tcp_ask_event(struct tcp_further *x);
/** @return the one that the next long data to a peer is to go by; NULL: the first. Of a peer that has more. */
struct tcp_flow *tcp_flow_for(struct tcp_peer *p);
/** @return whether a peer may make one of this number, 1 to TCP_FLOWS_MAX - 1. */
bool tcp_flow_may_come(const struct tcp_peer *p, unsigned flow);
/** It has, which is tcp_flow_may_come(). @return 0 or -errno, and the socket is the caller's */
int tcp_flow_came(struct tcp_peer *p, unsigned flow, int fd);
/** One on which nothing is expected has ended, perhaps: the peer goes on without, unless it had something. */
void tcp_further_look(struct tcp_further *x);

/* tcp_more.c */
/** A peer has its first connection, and may have further ones. @param first mac of the first's CONFIRM */
void tcp_more_open(struct tcp_peer *p, const uint8_t first[TCP_MAC_LEN]);
/** Close those to an idle peer. @return whether there was one */
bool tcp_more_park(struct tcp_peer *p);
/** Call fn for each that has a socket. */
void tcp_more_each(struct tcp_peer *p, void (*fn)(struct tcp_further *x, void *arg), void *arg);
/** They are no more. What waited to be sent was dropped before. */
void tcp_more_drop(struct tcp_peer *p);
/** The peer is destroyed. */
void tcp_more_close(struct tcp_peer *p);
/** @return whether nothing is to go or come by them. */
bool tcp_more_is_quiet(const struct tcp_peer *p);
/** One on which nothing is under way is no more. */
void tcp_further_end(struct tcp_further *x);

/** @return whether we have made it. */
static inline bool
tcp_further_is_ours(const struct tcp_further *x)
{
	return x < x->p->more->from;
}

/* tcp_away.c */
/** Write data to a peer's memory by a further connection, which is to be pushed then. @return whether there was room */
bool tcp_away_put(struct tcp_peer *p, struct tcp_flow *f, const void *data, uint32_t len, const struct tcp_where *to);
/** Answer a read by one. @return whether there was room */
bool tcp_away_answer(struct tcp_peer *p, struct tcp_flow *f, const struct tcp_due *d);
/**
 * Data comes by the further connection that frame f names.
 * @param op the read that it answers, or NULL
 * @return TCP_FRAME_AWAY; TCP_FRAME_BAD: it may not, and op is the caller's
 */
enum tcp_frame_is tcp_away_begin(struct tcp_peer *p, const struct tcp_frame *f, const struct tcp_bulk *bulk,
	struct tcp_op *op);
/** @return the further connection that a frame names, if it is there, or NULL. */
struct tcp_further *tcp_away_of(const struct tcp_peer *p, const struct tcp_frame *f);
/** Read data that comes by a further connection. */
void tcp_away_take(struct tcp_flow *f);

/* tcp_order.c */
/** What stands in the buffer is malformed. */
void tcp_rx_bad(struct tcp_queue *tq);
/** Such data has been begun by the first connection, whose bytes are in the queue's buffer: what follows may wait. */
void tcp_away_wait(struct tcp_queue *tq, struct tcp_peer *p);
/** Look at the first connection meanwhile, with the buffer free. @return whether the buffer is to be given out */
bool tcp_away_look(struct tcp_queue *tq, struct tcp_peer *p);

/* tcp_sock.c: system calls with sockets; -errno */
/** @return any number below n; the numbers of random() are the program's. */
uint32_t tcp_random(uint32_t n);
/** @return the queue's epoll descriptor, which it has from now on */
int tcp_sock_epoll(struct tcp_queue *tq);
/** @param type SOCK_STREAM or SOCK_DGRAM. @return a socket that does not block */
int tcp_sock_new(int family, int type);
/** Set an option that is an int. */
int tcp_sock_set(int fd, int level, int name, int value);
int tcp_sock_listen(const struct tcp_queue *tq, uint16_t *port);
int tcp_sock_connect(const struct tcp_queue *tq, const struct tcp_ip *ip, uint16_t port);
/** A socket of UDP for both families, at a port of net_tcp.ports. */
int tcp_sock_udp(const struct tcp_queue *tq, uint16_t *port);
/**
 * The longest datagram to a place that goes in one piece.
 * @param fd a connection to there, which knows the longest segment of the other side; or -1
 * @return bytes behind the head of UDP, or -errno
 */
int tcp_sock_udp_room(const struct tcp_ip *ip, uint16_t port, int fd);
void tcp_sock_settle(const struct tcp_queue *tq, int fd);
/** Have epoll watch a socket. @param what whose it is, of this kind */
int tcp_sock_watch(const struct tcp_queue *tq, int fd, uint32_t events, void *what, enum tcp_watch kind);
/** The same of one that is watched already. */
int tcp_sock_rewatch(const struct tcp_queue *tq, int fd, uint32_t events, void *what, enum tcp_watch kind);
/** Have epoll watch it no longer. */
void tcp_sock_unwatch(const struct tcp_queue *tq, int fd);
/** Close a socket, which *fd names no more when it is closed: another thread may fork meanwhile. */
void tcp_sock_close(const struct tcp_queue *tq, int *fd);
/** In a forked child: close a copy, if there is one; the connection is the parent's. */
void tcp_sock_lose(int *fd);
/** @return in words that the system has no port for us */
static inline const char *
tcp_no_port(const struct tcp_queue *tq)
{
	return tq->port_first != 0 ? "no port of net_tcp.ports is free" : "no port is free";
}

/** @return since when nothing has come on a connection. */
uint64_t tcp_sock_idle_ms(int fd);
/** @return whether a connection has something to send: more, or unacknowledged bytes. One that was reset has nothing. */
bool tcp_sock_waits(int fd, bool more);
/** Read the rest of a message of the handshake. @return 0: it is whole; -EAGAIN; or why not */
int tcp_sock_read(int fd, void *msg, size_t len, uint16_t *n);
/** Write a message of the handshake, for which a new socket has room. */
int tcp_sock_write(int fd, const void *msg, size_t len);

/* tcp_chunk.c */
/** Take the queue's memory, once. Errors: -ENOMEM. */
int tcp_mem_open(struct tcp_queue *tq);
void tcp_mem_close(struct tcp_queue *tq);
/** One that was not used before. @return NULL: there is none */
struct tcp_chunk *tcp_chunk_new(struct tcp_queue *tq);

/** Of what waits to be sent, the first n bytes are. */
void tcp_out_sent(struct tcp_queue *tq, struct tcp_flow *f, size_t n);
/** What waits for a peer is for nobody. */
void tcp_out_drop(struct tcp_peer *p);
/** A socket is full, or is no longer. */
void tcp_out_block(struct tcp_flow *f, bool blocked);
/** What has come of a peer and was not given out is for nobody. */
void tcp_rx_drop(struct tcp_peer *p);

/** @return how many are not in use. */
static inline uint32_t
tcp_chunks_left(const struct tcp_queue *tq)
{
	return tq->n_free + tq->n_chunks - tq->n_made;
}

/** @param spare whether the last ones may be taken. @return NULL: there is none */
static inline struct tcp_chunk *
tcp_chunk_get(struct tcp_queue *tq, bool spare)
{
	struct tcp_chunk *c = STAILQ_FIRST(&tq->free);

	if (unlikely(!spare && tcp_chunks_left(tq) <= TCP_SPARE))
		return NULL;
	if (unlikely(c == NULL))
		return tcp_chunk_new(tq);
	STAILQ_REMOVE_HEAD(&tq->free, link);
	tq->n_free--;
	c->at = c->end = 0;
	return c;
}

static inline void
tcp_chunk_put(struct tcp_queue *tq, struct tcp_chunk *c)
{
	STAILQ_INSERT_HEAD(&tq->free, c, link);
	tq->n_free++;
}

/** Another chunk behind all that waits for a peer. @return NULL: there is none */
struct tcp_chunk *tcp_out_chunk(struct tcp_peer *p);

/**
 * Room for len bytes behind all that waits for a peer; whoever has filled it adds them to p->flow.tail->end.
 * @return NULL: there is none
 */
static inline uint8_t *
tcp_out_room(struct tcp_peer *p, uint32_t len)
{
	struct tcp_chunk *c = p->flow.tail;

	if (unlikely(c == NULL || TCP_CHUNK_DATA - c->end < len))
		c = tcp_out_chunk(p);
	return c != NULL ? tcp_chunk_data(c) + c->end : NULL;
}

/** Something waits for the end of the turn to be sent to a peer. */
static inline void
tcp_tx_later(struct tcp_peer *p)
{
	struct plx_queue *q = p->peer.q;

	if (p->dirty) {
		p->n_turn++;
		return;
	}
	p->n_turn = 0;
	p->used_ms = tcp_queue(q)->now_ms;
	p->dirty = q->held = true;
	TAILQ_INSERT_TAIL(&tcp_queue(q)->dirty, p, dirty_link);
}

/* tcp_tx.c */
int tcp_tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len);
int tcp_tx(const struct plx_tx *tx);
void tcp_flush(struct plx_queue *q);
/** Send what waits for a peer's first socket, as far as it takes it. */
void tcp_push(struct tcp_peer *p);
/** The same for any socket. */
void tcp_flow_push(struct tcp_flow *f);

/** Behind what was put into a peer's out: it goes at once, or at the end of the turn. */
void tcp_tx_go(struct tcp_peer *p);
/** @return why nothing is taken: -EAGAIN, or what the peer has died of */
int tcp_tx_full(struct tcp_peer *p);

/** Outside of a turn, the next to go to the same place waits for one. @param sent_turn the place's */
static inline void
tcp_turn_sent(const struct plx_queue *q, uint64_t *sent_turn)
{
	if (q->turns != NULL)
		*sent_turn = *q->turns + 1;
}

/** @return whether this is outside of a turn, and tcp_turn_sent() was called since the last one. */
static inline bool
tcp_turn_is_due(const struct plx_queue *q, uint64_t sent_turn)
{
	return !q->hold && q->turns != NULL && sent_turn == *q->turns + 1;
}

static inline bool
tcp_tx_is_late(const struct tcp_peer *p)
{
	return tcp_turn_is_due(p->peer.q, p->sent_turn);
}

/* tcp_zcopy.c */
int tcp_tx_zcopy(const struct plx_tx_zcopy *tx);

/* tcp_lent.c */
/** Report those that are complete. */
void tcp_lent_tell(struct tcp_queue *tq);
/** @return whether so many parts are to be had. */
bool tcp_lent_has(struct tcp_flow *f, unsigned n);
/** A part that begins a frame: the first len bytes of its head are the caller's to fill. */
uint8_t *tcp_lent_head(struct tcp_flow *f, uint32_t len);
/** A part of data. @return to be completed with done and arg, or with key */
struct tcp_lent *tcp_lent_part(struct tcp_flow *f, const void *from, uint32_t len);
/** What pads a frame with a body of len bytes. */
void tcp_lent_pad(struct tcp_flow *f, uint32_t len);

/* tcp_rma.c */
int tcp_rma(const struct plx_rma_op *op);
int tcp_put_short(struct plx_peer *peer, const void *data, uint32_t len, uint64_t remote, uint64_t key);
int tcp_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out);
void tcp_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke);

/* tcp_op.c */
/** One of those that are free; there are some. */
struct tcp_op *tcp_op_new(struct tcp_peer *p, const struct plx_rma_op *op);
/** It is to be reported. */
void tcp_op_over(struct tcp_queue *tq, struct tcp_op *o, int err);
/**
 * Count n of our writes as done by the peer.
 * @param is_long set if one was longer than a message. @return whether there were so many
 */
bool tcp_op_acked(struct tcp_peer *p, uint64_t n, bool *is_long);
/** @return the first of our reads that the peer has not answered, or NULL */
struct tcp_op *tcp_op_asked(const struct tcp_peer *p);
/** It is answered, or is about to be: it waits no longer. @return it */
struct tcp_op *tcp_op_take(struct tcp_peer *p);
/** It is answered. */
void tcp_op_got(struct tcp_peer *p);
/** None will be answered any more. */
void tcp_op_drop(struct tcp_peer *p);
/** Report those that are over. */
void tcp_op_tell(struct tcp_queue *tq);

/* tcp_far.c */
/** What is no message: f, at the front of the buffer. @return TCP_FRAME_PART: not now */
enum tcp_frame_is tcp_far_frame(struct tcp_peer *p, const struct tcp_frame *f);

/* tcp_answer.c */
/** A peer is to be sent what it has asked for. @return as tcp_far_frame() */
enum tcp_frame_is tcp_due_add(struct tcp_peer *p, const struct tcp_due *d);
/**
 * @return whether all that is to be sent are a few acknowledgements, and more data for our memory is coming: with
 *   its end they are sent together.
 */
static inline bool
tcp_may_wait(const struct tcp_peer *p)
{
	return p->n_acks != 0 && p->n_acks < TCP_ACKS && p->flow.bulk.left != 0 && p->flow.bulk.acked &&
		STAILQ_EMPTY(&p->flow.out) && p->due == NULL;
}

/** Queue the answers that are due, as far as there is room. @return whether all are */
bool tcp_answer(struct tcp_peer *p);

/* tcp_bulk.c */
/** Data follows at the front of the buffer, and behind it in the stream. @return TCP_FRAME_BAD: it may not go there */
enum tcp_frame_is tcp_bulk_begin(struct tcp_peer *p, const struct tcp_bulk *bulk);
/** @return whether data that is expected may go where it is to go. */
bool tcp_bulk_may(struct tcp_flow *f);
/** Read what is left of it, and a little behind it into the buffer. @return as recv(); 0 with deaf set: as begin */
ssize_t tcp_bulk_take(struct tcp_flow *f);

/** @return whether the stream goes on with data that belongs elsewhere. */
static inline bool
tcp_is_bulk(const struct tcp_flow *f)
{
	return (f->bulk.left | f->bulk.pad) != 0;
}

/* tcp_rx.c */
uint16_t tcp_rx_burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n);
void tcp_rx_release(struct plx_queue *q, const struct plx_rx *rx, uint16_t n);

/* tcp_park.c */
/** A peer's BYE has come. @return whether it may come */
bool tcp_bye_came(struct tcp_peer *p);
/** A connection is over: as both have said BYE? Then it is made again when there is something to send. */
bool tcp_park_end(struct tcp_peer *p);
void tcp_park_control(struct tcp_queue *tq);

/** @return whether a peer's socket takes what waits for it. */
static inline bool
tcp_is_up(const struct tcp_peer *p)
{
	return p->state == TCP_OPEN || p->state == TCP_LEAVING;
}

/* tcp_hot.c */
/** Look at a socket in each turn. */
void tcp_heat(struct tcp_flow *f);
void tcp_cool(struct tcp_flow *f);
/** Have epoll report what comes. @return whether it does */
bool tcp_hot_poll(struct tcp_flow *f);
/** Have epoll report nothing of a socket. */
void tcp_flow_unwatch(struct tcp_flow *f);
/** Have epoll report room to send, or no longer. */
void tcp_out_arm(struct tcp_flow *f);
void tcp_out_disarm(struct tcp_flow *f);

/* tcp_poll.c */
/** Ask epoll: those with something to read are hot then; the rest is done. */
void tcp_poll(struct tcp_queue *tq);

/** @return whether epoll is to be asked in this turn. */
static inline bool
tcp_poll_is_due(struct tcp_queue *tq)
{
	return tq->turns++ % TCP_POLL_EVERY == 0 || tq->n_joins != 0 ||
		(tq->n_hot == 0 && (tq->udp == NULL || tq->udp->n_hot == 0));
}

/* tcp_lossy.c */
int tcp_lossy_open(struct plx_queue *q, uint32_t *where);
int tcp_lossy_to(struct plx_peer *peer, uint32_t where);
int tcp_lossy_tx(const struct plx_tx *tx);
/** The connection leads elsewhere, perhaps: so do datagrams. */
void tcp_lossy_moved(struct tcp_peer *p);
/** The peer is destroyed. */
void tcp_lossy_drop(struct tcp_peer *p);

/* tcp_group.c */
int tcp_group_join(struct plx_queue *q, uint64_t id, bool rx);
void tcp_group_leave(struct plx_queue *q, uint64_t id, bool rx);
int tcp_group_tx(struct plx_queue *q, uint64_t id, const void *data, uint32_t len);
void tcp_groups_close(struct tcp_queue *tq);
/** In a forked child. */
void tcp_groups_lose(struct tcp_queue *tq);

/* tcp_watch.c */
/** Something was sent to a peer, that is not watched. */
void tcp_watch(struct tcp_peer *p);
/** Look at those that are watched, when it is time: a dead host is found. */
void tcp_watch_control(struct tcp_queue *tq, uint64_t now_ms);
/** @return when that is due, or UINT64_MAX */
uint64_t tcp_watch_deadline_ms(const struct tcp_queue *tq);

static inline void
tcp_unwatch(struct tcp_peer *p)
{
	if (!p->watched)
		return;
	p->watched = false;
	TAILQ_REMOVE(&tcp_queue(p->peer.q)->watched, p, watch_link);
}

/* tcp_sleep.c */
int tcp_queue_efd(struct plx_queue *q);
int tcp_queue_arm(struct plx_queue *q);
void tcp_queue_disarm(struct plx_queue *q);

#endif
