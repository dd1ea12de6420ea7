/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_ring.h - the layout of a queue's segment in shared memory
 *
 * A queue owns one segment, which contains all messages for it, in this order: header (identity,
 * flags, the mail ring's positions); shared area (rendezvous cursors, lib/rndv); mail ring
 * (MAIL_CELLS x MAIL_CELL bytes, many producers); slots 0 .. n_slots - 1 (a ring for one sender
 * each); their data areas, those of slots n_wide .. n_slots - 1 first, and behind these, from the
 * next multiple of a huge page on, the wide ones of slots 0 .. n_wide - 1.
 *
 * Design notes
 * - A slot is a single-producer ring of cells with the sequence number in the cell, so a short
 *   message moves one cache line from core to core. Longer messages put header and data in the
 *   slot's data area, a ring of bytes that the sender allocates in order; bytes are free again
 *   when their cell is. A core that overwrites lines that another has just read waits for each:
 *   with 256 KiB a lap, copies ran at 7 to 9 GB/s, with 320 KiB at 11 to 15. The sender may leave
 *   bytes unused. All message memory belongs to the receiver, which needs nothing of a sender that
 *   dies.
 * - A wide area takes its memory when a sender takes its slot: of a process that has no peers huge
 *   pages are reserved for it, but none is taken.
 * - A sender takes a free slot by compare-and-swap. Without a free one it uses the mail ring: it
 *   claims a cell by compare-and-swap on the cell's state word, which then contains the number of
 *   the claimer's process, so that a claimer that died before it committed is distinguished from
 *   a slow one.
 * - There are offsets and no pointers. Words of the other side are copied once and bounded before
 *   use.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_LINE	64
#define SHM_MAGIC	0x64764d4853584c50ull /* "PLXSHMvd" */
#define SHM_CELL	128u /* bytes */
#ifndef SHM_CELLS /* a model of memory takes a shorter lap */
#define SHM_CELLS	128u /* in a slot; a power of two */
#endif
#define SHM_CELL_BODY	(SHM_CELL - 8)
#define SHM_CELL_DATA_MAX (SHM_CELL_BODY - 8) /* data of tx_short in a cell */
#define SHM_SHORT_MAX	1472u /* the same in the data area; mail has as much room */
#define SHM_MSG_ROOM	16896u /* of the longest message in a slot's data area, bytes: 16 KiB of data and a head */
#define SHM_MSG_MAX	(SHM_MSG_ROOM - SHM_LINE) /* its header + data, wherever in a line they begin */
#define SHM_MAIL_CELL	1536u
#define SHM_MAIL_CELLS	64u
#define SHM_SHARED_LEN	20480u

/** A queue's address; the contents of plx_addr, and what senders write to slots and mail. */
struct shm_addr {
	uint64_t uid;
	uint64_t host;	/* struct plx_proc: this and the next two */
	uint64_t proc;
	uint32_t pid;
	uint32_t pad;	/* 0 */
};
_Static_assert(sizeof(struct shm_addr) == 32, "shared layout");

/**
 * The low byte of a slot's state; above it are the low bits of the number of the sender's
 * process.
 */
enum shm_slot_state {
	SHM_SLOT_FREE,
	SHM_SLOT_TAKEN, /* a sender writes its address */
	SHM_SLOT_READY,
	SHM_SLOT_LEFT,	/* the sender has closed; drain, then free */
};

enum shm_cell_kind {
	SHM_CELL_INLINE = 1, /* the body is header and data */
	SHM_CELL_DATA,	     /* the body is a shm_ref */
};

/** The first 8 bytes of a cell, by one store each time; the last one makes it a message. */
union shm_cell_head {
	struct {
		uint32_t seq; /* shm_seq() of its position */
		uint16_t len; /* of the body, SHM_CELL_INLINE; SHM_SEQ_COMING: bytes that are written */
		uint8_t op;
		uint8_t kind;
	};
	uint64_t word;
};
_Static_assert(sizeof(union shm_cell_head) == 8, "shared layout");

struct shm_cell {
	alignas(SHM_LINE) _Atomic uint64_t head; /* union shm_cell_head */
	uint8_t body[SHM_CELL_BODY];
};
_Static_assert(sizeof(struct shm_cell) == SHM_CELL, "shared layout");

/**
 * In the seq of a cell whose message is being written: no message yet, but the body is its shm_ref, and the message's
 * first len bytes are there. Such a cell is a hint for the receiver's caches only.
 */
#define SHM_SEQ_COMING 0x80000000u

/** The place of the message of a SHM_CELL_DATA. */
union shm_ref {
	struct {
		uint32_t off; /* in the data area */
		uint32_t len;
	};
	uint64_t word;
};
_Static_assert(sizeof(union shm_ref) == 8, "shared layout");

#define SHM_SLOT_STATE(proc, st) ((uint32_t)(proc) << 8 | (uint32_t)(st))
#define SHM_SLOT_KIND(state)	 ((state) & 0xff)
#define SHM_SLOT_PROC(state)	 ((state) >> 8)
#define SHM_SLOT_PROC_MASK	 0xffffffu

struct shm_slot {
	/* line 0: sender, when it connects and closes */
	alignas(SHM_LINE) _Atomic uint32_t state; /* SHM_SLOT_STATE() */
	uint32_t pad;
	struct shm_addr sender;			  /* valid from READY on */
	/* line 1: receiver; cells before this position are free */
	alignas(SHM_LINE) _Atomic uint64_t rx_pos;
	/* line 2: set by the receiver when it polls only after the doorbell rings */
	alignas(SHM_LINE) _Atomic uint32_t cold;
	alignas(SHM_LINE) struct shm_cell cells[SHM_CELLS];
};
_Static_assert(offsetof(struct shm_slot, rx_pos) == 64, "shared layout");
_Static_assert(offsetof(struct shm_slot, cold) == 128, "shared layout");
_Static_assert(offsetof(struct shm_slot, cells) == 192, "shared layout");

enum shm_mail_kind {
	SHM_MAIL_FREE,
	SHM_MAIL_CLAIMED,
	SHM_MAIL_READY,
};

/* state word: low bits of the number of the sender's process << 32 | lap << 2 | kind */
#define SHM_MAIL_STATE(proc, lap, kind)                                                            \
	((uint64_t)(uint32_t)(proc) << 32 | ((uint32_t)(lap) << 2 | (uint32_t)(kind)))

struct shm_mail {
	alignas(SHM_LINE) _Atomic uint64_t state;
	uint32_t len; /* of the body */
	uint8_t op;
	uint8_t pad[3];
	struct shm_addr sender;
	uint8_t body[SHM_MAIL_CELL - 48];
};
_Static_assert(sizeof(struct shm_mail) == SHM_MAIL_CELL, "shared layout");
_Static_assert(8 + SHM_SHORT_MAX < sizeof(((struct shm_mail *)0)->body), "a short message goes by mail as well");

/* One sleep: a number of its own, never 0, and the CPU of the sleeping owner. */
#define SHM_SLEEP(n, cpu)    ((uint64_t)(n) << 16 | (uint16_t)(cpu))
#define SHM_SLEEP_CPU(sleep) ((uint16_t)(sleep))

struct shm_seg {
	/* line 0: written once */
	uint64_t magic;
	uint64_t len;
	uint32_t n_slots;
	uint32_t n_wide;
	_Atomic uint32_t closed; /* the owner has closed the queue */
	uint32_t bells;		 /* the owner has a wake-up socket: it may sleep */
	uint32_t fences; /* with it: the owner executes fences for registered senders, so they need
	                  * none */
	/* line 1: senders set a bit for a cold slot */
	alignas(SHM_LINE) _Atomic uint64_t doorbell;
	/* line 2: producers' hint of the next mail cell */
	alignas(SHM_LINE) _Atomic uint64_t mail_head;
	/* line 3, with a wake-up socket: read by senders after each message */
	alignas(SHM_LINE) _Atomic uint64_t sleeping; /* writer: owner; SHM_SLEEP(), or 0: awake */
	_Atomic uint32_t news; /* a peer has closed: check the peers */
	/* line 4: written once; a peer with another address for us means another queue */
	alignas(SHM_LINE) struct shm_addr addr;
	alignas(4096) uint8_t shared[SHM_SHARED_LEN];
	struct shm_mail mail[SHM_MAIL_CELLS];
	/* then the slots, at SHM_SLOTS_OFF, and their data areas */
};

#define SHM_SLOTS_OFF  ((sizeof(struct shm_seg) + 4095) / 4096 * 4096)
#define SHM_SLOTS_MAX  64u
#define SHM_HUGE_PAGE  (2048u << 10)
#define SHM_DATA_WIDE  SHM_HUGE_PAGE
#define SHM_DATA_LEN   (120u << 10)
_Static_assert(SHM_MSG_ROOM <= SHM_DATA_LEN && SHM_MSG_ROOM <= SHM_DATA_WIDE, "slot_data() relies on it");

static inline struct shm_slot *
shm_slot_at(const struct shm_seg *seg, uint32_t i)
{
	return (struct shm_slot *)((char *)seg + SHM_SLOTS_OFF) + i;
}

/** @return bytes of a slot's data area, a multiple of the line */
static inline uint32_t
shm_data_len(uint32_t n_wide, uint32_t i)
{
	return i < n_wide ? SHM_DATA_WIDE : SHM_DATA_LEN;
}

/** @return bytes before the wide areas, which a segment has from the beginning */
static inline uint64_t
shm_front_len(uint32_t n_slots, uint32_t n_wide)
{
	return SHM_SLOTS_OFF + (uint64_t)n_slots * sizeof(struct shm_slot) +
	       (uint64_t)(n_slots - n_wide) * SHM_DATA_LEN;
}

/** @return bytes of a segment, with n_wide at most n_slots */
static inline uint64_t
shm_seg_len(uint32_t n_slots, uint32_t n_wide)
{
	uint64_t front = shm_front_len(n_slots, n_wide);

	if (n_wide == 0)
		return front;
	return (front + SHM_HUGE_PAGE - 1) / SHM_HUGE_PAGE * SHM_HUGE_PAGE + (uint64_t)n_wide * SHM_DATA_WIDE;
}

/** @return where the data area of slot i, less than n_slots, begins in the segment */
static inline uint64_t
shm_data_off(uint32_t n_slots, uint32_t n_wide, uint32_t i)
{
	if (i < n_wide)
		return shm_seg_len(n_slots, n_wide) - (uint64_t)(n_wide - i) * SHM_DATA_WIDE;
	return shm_front_len(n_slots, n_wide) - (uint64_t)(n_slots - i) * SHM_DATA_LEN;
}

#define SHM_CELL_STEP (SHM_CELLS / 2 + 1)
_Static_assert(SHM_CELL_STEP % 2 == 1, "a lap visits all cells");

/**
 * @return the cell of a position: within half a lap by turns in one and in the other half of the slot, and two cells
 *   on from that of the position before the last. A processor that reads cells one behind the other prefetches those
 *   that follow, and a sender that is about to write there would have to take the line from the receiver's core.
 */
static inline struct shm_cell *
shm_cell_at(const struct shm_cell *cells, uint64_t pos)
{
	return (struct shm_cell *)(uintptr_t)cells + pos * SHM_CELL_STEP % SHM_CELLS;
}

/** The sequence number of a cell: that of its lap, in 31 bits. */
static inline uint32_t
shm_seq(uint64_t pos)
{
	return (uint32_t)(pos / SHM_CELLS + 1) & ~SHM_SEQ_COMING;
}

#endif
