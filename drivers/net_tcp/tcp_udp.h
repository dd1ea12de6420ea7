/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_udp.h - datagrams of UDP: sockets, and slots to receive into and to send from
 */
#ifndef TCP_UDP_H
#define TCP_UDP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "tcp_addr.h"
#include "tcp_mac.h"
#include "tcp_sip.h"

#define TCP_UDP_LEN	16384u /* bytes of the longest datagram */
#define TCP_GROUP_LEN	1024u /* of a message to a group */
#define TCP_UDP_RX	16u /* datagrams that one system call receives */
#define TCP_UDP_TX	32u /* datagrams that wait, and that one system call sends */
#define TCP_UDP_CALLS	4u /* system calls that send before the turn's end */

struct tcp_queue;

enum tcp_stamp_kind {
	TCP_STAMP_LOSSY = 1, /* to a peer */
	TCP_STAMP_GROUP,
};

/** The head of each datagram. */
struct tcp_stamp {
	uint32_t magic;
	uint8_t kind; /* enum tcp_stamp_kind */
	uint8_t op;
	uint16_t pad; /* 0 */
	uint64_t from; /* uid of the sender; or the number of the group */
	uint8_t tag[TCP_TAG_LEN]; /* of all before and behind it */
};

_Static_assert(offsetof(struct tcp_stamp, tag) == TCP_HEAD_LEN && sizeof(struct tcp_stamp) == 32, "wire");
_Static_assert(TCP_TAG_LEN == TCP_MAC_LEN, "they are compared the same way");

/** A socket that datagrams come to. */
struct tcp_udp_in {
	TAILQ_ENTRY(tcp_udp_in) link; /* among those that are read in each turn */
	/* Called with each, which is well formed so far; data is valid during the call. NULL: nobody takes them yet */
	void (*take)(struct tcp_queue *tq, struct tcp_udp_in *in, const struct tcp_stamp *stamp, const uint8_t *data,
		uint32_t len);
	void *of; /* of take: the group, or NULL */
	int fd;	  /* or -1 */
	bool hot;
	uint32_t n_empty; /* looks in a row that found nothing */
};

/** Of a queue. Owner: the queue's. */
struct tcp_udp {
	struct tcp_udp_in in; /* of datagrams from peers; all that the queue sends goes by it, too */
	bool blocked;	/* the socket has not taken all */
	bool out_armed; /* epoll reports room */
	uint8_t casts;	/* the family by which it sends to groups, 4 or 6; 0: not known yet */
	uint16_t port;
	uint32_t n_tx, tx_at; /* datagrams in tx; the first of those that were not sent */
	uint32_t n_calls;     /* of this turn */
	uint64_t sent_turn;   /* the worker's turn, plus 1, behind which something went at once */
	TAILQ_HEAD(, tcp_udp_in) hot;
	uint32_t n_hot;
	LIST_HEAD(, tcp_group) groups;
	uint8_t *mem; /* slots: TCP_UDP_RX, then TCP_UDP_TX */
	struct mmsghdr rx[TCP_UDP_RX], tx[TCP_UDP_TX];
	struct iovec rx_iov[TCP_UDP_RX], tx_iov[TCP_UDP_TX];
	struct sockaddr_storage to[TCP_UDP_TX];
};

/** Where datagrams go, and their key. */
struct tcp_udp_way {
	struct tcp_sip_key key;
	struct sockaddr_storage to;
	socklen_t to_len;
};

/** Open the queue's socket, once. Errors: those of the system. Blocks: may (system calls). */
int tcp_udp_open(struct tcp_queue *tq);
void tcp_udp_close(struct tcp_queue *tq);
/** In a forked child. */
void tcp_udp_lose(struct tcp_queue *tq);

/** Have epoll watch a socket, which is the caller's until this returns 0. */
int tcp_udp_in_open(struct tcp_queue *tq, struct tcp_udp_in *in);
void tcp_udp_in_close(struct tcp_queue *tq, struct tcp_udp_in *in);

/** @return where the bytes behind the stamp of the next datagram are written, or NULL: there is no room now */
uint8_t *tcp_udp_room(struct tcp_queue *tq);
/** Stamp the bytes written there and send them, at once or at the end of the turn. */
void tcp_udp_send(struct tcp_queue *tq, struct tcp_stamp stamp, uint32_t len, const struct tcp_udp_way *way);
/** Send the datagrams that wait, as far as the socket takes them. */
void tcp_udp_push(struct tcp_queue *tq);

/** @return whether the stamp was made with this key. */
bool tcp_udp_is_by(const struct tcp_stamp *stamp, const uint8_t *data, uint32_t len, const struct tcp_sip_key *key);

/** Something has come to a socket. */
void tcp_udp_event(struct tcp_queue *tq, struct tcp_udp_in *in, uint32_t events);
/** In each turn: send on, and read the sockets that are hot. */
void tcp_udp_turn(struct tcp_queue *tq);
/** Before the owner sleeps. @return whether something waits that no event will report */
bool tcp_udp_arm(struct tcp_queue *tq);

#endif
