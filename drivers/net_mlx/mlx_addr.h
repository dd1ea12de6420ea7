/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_addr.h - a queue's address, and the datagrams by which two queues connect
 */
#ifndef MLX_ADDR_H
#define MLX_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plx_dev_path;

#define MLX_ADDR_VERSION 4

enum mlx_link {
	MLX_LINK_IB,
	MLX_LINK_ROCE4, /* the gid is an IPv4 address */
	MLX_LINK_ROCE6,
};

enum mlx_addr_flag {
	MLX_ADDR_TM = 1 << 0, /* its device matches tags: see mlx_tm.h for its messages */
	MLX_ADDR_NEAR = 1 << 1, /* its owner's cores are near the device */
};

/* Also in the flags: the port's place among those of its worker, and its speed. */
#define MLX_ADDR_PLACE_AT  2
#define MLX_ADDR_PLACE_MAX 3
#define MLX_ADDR_SPEED_AT  4

/**
 * A queue's address on the wire; begins with the uid as every plx_addr does. Fields that
 * the ports of one worker probably share come first, so that they are written once.
 */
struct mlx_addr {
	uint64_t uid;
	uint64_t proc;	    /* plx_proc_id() of its process */
	uint32_t rx_len;    /* longest message that it accepts, bytes */
	uint8_t version;    /* MLX_ADDR_VERSION */
	uint8_t link;	    /* enum mlx_link */
	uint8_t path_mtu;   /* enum ibv_mtu */
	uint8_t gid[16];
	uint8_t flags;	    /* enum mlx_addr_flag, place and speed */
	uint32_t ud_qpn;    /* queue pair for its datagrams */
	union {
		uint16_t lid;	   /* InfiniBand */
		uint16_t net_bits; /* Ethernet: bits of the gid for its network */
	};
	uint16_t port;	    /* of those that its process has opened, from 1 on */
};

_Static_assert(offsetof(struct mlx_addr, rx_len) == 16, "wire");
_Static_assert(offsetof(struct mlx_addr, gid) == 23, "wire");
_Static_assert(offsetof(struct mlx_addr, ud_qpn) == 40, "wire");
_Static_assert(offsetof(struct mlx_addr, lid) == 44, "wire");
_Static_assert(offsetof(struct mlx_addr, port) == 46, "wire");
_Static_assert(sizeof(struct mlx_addr) == 48, "wire");

enum mlx_dgram_kind {
	MLX_DGRAM_ASK = 1, /* my queue pair for you; asks for yours */
	MLX_DGRAM_ANSWER,  /* mine, ready for the one that asked */
	MLX_DGRAM_CALL,	   /* are you alive? from a side that agreed on such messages */
	MLX_DGRAM_HERE,	   /* yes */
	MLX_DGRAM_N
};

struct mlx_dgram {
	uint32_t magic;
	uint32_t crc;	    /* crc32c of all, with this field 0 */
	uint64_t to_uid;    /* the receiving queue */
	struct mlx_addr from;
	uint32_t qpn;	    /* of the sender's queue pair; CALL, HERE: for unreliable datagrams */
	uint32_t psn;	    /* first packet that it will send */
	uint32_t your_qpn;  /* ANSWER: from the ASK */
	uint32_t attempt;   /* counts a queue's queue pairs */
	uint16_t credits;   /* slots for messages of the receiver */
	uint8_t kind;	    /* enum mlx_dgram_kind */
	uint8_t reads;	    /* READs and atomics that it serves at once */
	uint8_t pad[4];
};

_Static_assert(offsetof(struct mlx_dgram, from) == 16, "wire");
_Static_assert(offsetof(struct mlx_dgram, qpn) == 64, "wire");
_Static_assert(offsetof(struct mlx_dgram, credits) == 80, "wire");
_Static_assert(sizeof(struct mlx_dgram) == 88, "wire");

/** Header of a message to a group. */
struct mlx_cast {
	uint32_t magic;
	uint32_t len;	/* of the message, bytes */
	uint64_t group; /* its number */
};

_Static_assert(offsetof(struct mlx_cast, group) == 8, "wire");
_Static_assert(sizeof(struct mlx_cast) == 16, "wire");

/** Header of an unreliable datagram. */
struct mlx_stamp {
	uint32_t magic;
	uint16_t len;  /* of the message, bytes */
	uint8_t op;    /* its opcode */
	uint8_t pad;   /* 0 */
	uint64_t from; /* the sending queue's uid */
};

_Static_assert(offsetof(struct mlx_stamp, from) == 8, "wire");
_Static_assert(sizeof(struct mlx_stamp) == 16, "wire");

/** The longest message that any queue accepts, bytes; and the lower bound of the setting. */
#define MLX_RX_LEN_MAX (1u << 20)
#define MLX_RX_LEN_MIN 512u

/** @return bytes of the longest packet of its port. Thread: any. */
static inline uint32_t
mlx_addr_mtu(const struct mlx_addr *a)
{
	return 128u << a->path_mtu; /* enum ibv_mtu */
}

/** @return 0, or -EINVAL: no address. Thread: any. */
int mlx_addr_check(const struct mlx_addr *a);

/** @return 0, or -EHOSTUNREACH: there is no path between the two. Thread: any. */
int mlx_addr_reach(const struct mlx_addr *own, const struct mlx_addr *to);

/** @return whether two that reach each other do so without a router. Thread: any. */
bool mlx_addr_one_net(const struct mlx_addr *own, const struct mlx_addr *to);

/** Fill in the facts of the path between two addresses that reach each other. Thread: any. */
void mlx_addr_path(const struct mlx_addr *own, const struct mlx_addr *to, struct plx_dev_path *out);

static inline uint16_t
mlx_addr_lid(const struct mlx_addr *a)
{
	return a->link == MLX_LINK_IB ? a->lid : 0;
}

/** @return the domain of memory that is registered with the queue's port, never 0. Thread: any. */
uint32_t mlx_addr_domain(const struct mlx_addr *a);

/** The key that datagrams to this queue carry. Thread: any. */
uint32_t mlx_addr_qkey(const struct mlx_addr *a);

/**
 * The address of a group on the network of a queue; on InfiniBand its manager derives its
 * own from it. Thread: any.
 */
void mlx_addr_group(const struct mlx_addr *own, uint64_t group, uint8_t gid[16]);

/**
 * Whether a datagram comes from a queue's port.
 * @param grh the 40 bytes before it, or NULL: there are none, as on InfiniBand
 * @param lid of the sender, on InfiniBand. Thread: any.
 */
bool mlx_addr_sent(const struct mlx_addr *a, const uint8_t *grh, uint16_t lid);

/** Fill in magic and crc. Thread: any. */
void mlx_dgram_seal(struct mlx_dgram *d);

/**
 * Read a datagram from anybody.
 * @return 0, or -EBADMSG. Thread: any.
 */
int mlx_dgram_open(const void *buf, size_t len, struct mlx_dgram *out);

#endif
