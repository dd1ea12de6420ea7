/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_wire.h - every byte on the wire
 *
 * A message is an opcode, a header of that opcode and data. Everything is little-endian and
 * naturally aligned; devices carry the opcode besides the header. Every message is input: copy
 * the header once, check it with plx_wire_check(), and use only checked values.
 */
#ifndef PLX_WIRE_H
#define PLX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** The kinds of messages; lib/worker/rx.c switches over them. */
enum plx_wire_op {
	PLX_WIRE_NONE,
	PLX_WIRE_EAGER,	    /* a whole tagged message */
	PLX_WIRE_SYNC,	    /* the same; answer with ACK when it is matched */
	PLX_WIRE_FIRST,	    /* first piece of a tagged message */
	PLX_WIRE_FRAG,	    /* a later piece */
	PLX_WIRE_RTS,	    /* announcement of a tagged message, whose data is at the sender
	             	     * (rendezvous) */
	PLX_WIRE_ACK,	    /* receiver to sender: matched (SYNC) or all data taken (RTS) */
	PLX_WIRE_HELP,	    /* receiver to sender: help to copy */
	PLX_WIRE_PULL,	    /* receiver to sender: send the data as DATA messages */
	PLX_WIRE_DATA,	    /* answer to PULL */
	PLX_WIRE_FLOW,	    /* receiver to sender: announce everything, or stop announcing */
	PLX_WIRE_CANCEL,    /* sender to receiver: withdrawn, or the remaining pieces do not come */
	PLX_WIRE_PUT,	    /* write the data to a region; answer with RMA_ACK */
	PLX_WIRE_GET,	    /* read a region; answer with RMA_DATA */
	PLX_WIRE_ATOMIC,    /* change a word of a region; answer with RMA_ACK */
	PLX_WIRE_RMA_ACK,
	PLX_WIRE_RMA_DATA,
	PLX_WIRE_EP_CLOSE,  /* the other side's handle is closed; all earlier messages have been
	                     * sent */
	PLX_WIRE_AM,	    /* a whole active message */
	PLX_WIRE_AM_FIRST,  /* first piece of one; the others are FRAG */
	PLX_WIRE_AM_RTS,    /* announcement of an active message; then as after RTS */
	PLX_WIRE_STREAM,    /* bytes of a stream */
	PLX_WIRE_STREAM_RTS, /* announcement of bytes of a stream; then as after RTS */
	PLX_WIRE_GRANT,	    /* stream receiver to sender: more credit */
	PLX_WIRE_CHAN_ASK,  /* client: request for a channel, with data */
	PLX_WIRE_CHAN_ANSWER, /* server: accepted, or refused because of err */
	PLX_WIRE_CHAN_DONE, /* client: it is open */
	PLX_WIRE_CHAN_CLOSE, /* the sender's end is closed, and all messages to it are dropped */
	PLX_WIRE_CHAN_MSG,  /* a message, with its number */
	PLX_WIRE_CHAN_LOSSY, /* an unreliable message */
	PLX_WIRE_CHAN_ACK,  /* all messages before this number have arrived */
	PLX_WIRE_CHAN_RNR,  /* the same, and this one found no buffer: stop */
	PLX_WIRE_CHAN_READY, /* after RNR: send it and its successors again */
	PLX_WIRE_CHAN_PING, /* keepalive question */
	PLX_WIRE_CHAN_PONG, /* keepalive answer */
	PLX_WIRE_PUT_AT,    /* fetch the data from my memory to a region; answer with RMA_ACK */
	PLX_WIRE_CHAN_JOIN, /* I receive this group: send me its messages */
	PLX_WIRE_INTO,	    /* receiver to sender: write the data to my memory */
	PLX_WIRE_DONE,	    /* answer to INTO: all data is written */
	PLX_WIRE_CHAN_FETCH, /* a message as CHAN_MSG, whose data the receiver reads from my memory */
	PLX_WIRE_CHAN_COPY, /* all messages before it have arrived, and this one can't be read: send
	                     * it */
	PLX_WIRE_SHARE,	    /* copy a part of what a cell of your shared area describes */
	PLX_WIRE_WHERE,	    /* receiver to sender, as PULL: in which pieces of memory is the data? */
	PLX_WIRE_LIST,	    /* answer to WHERE: these */
	PLX_WIRE_RMA_BATCH, /* puts or gets of your memory, to be answered soon or never */
	PLX_WIRE_RMA_BATCH_DONE, /* the answer, with the bytes of gets */
	PLX_WIRE_N
};

/** Names an operation at the waiting side, which checks it against a table. */
struct plx_wire_id {
	uint32_t index;
	uint32_t gen;
};

struct plx_wire_eager {
	uint64_t tag;
};

struct plx_wire_sync {
	uint64_t tag;
	struct plx_wire_id sreq;
};

struct plx_wire_first {
	uint64_t tag;
	uint64_t len;	 /* of the whole message */
	uint32_t msg_id; /* counts at the sender, for each peer */
	uint32_t pad;
};

struct plx_wire_frag {
	uint64_t offset;
	uint32_t msg_id;
	uint32_t pad;
};

struct plx_wire_rts {
	uint64_t tag;
	uint64_t len;
	uint64_t addr; /* in the sender's process; 0: not contiguous, to be pulled */
	struct plx_wire_id sreq;
	uint32_t epoch; /* the sender's plx_rndv_shared.epoch at the announcement */
	uint32_t pad;
};

struct plx_wire_ack {
	struct plx_wire_id sreq;
	int32_t err; /* 0 or -errno of the receiver */
	uint32_t pad;
};

struct plx_wire_help {
	struct plx_wire_id sreq;
	struct plx_wire_id rreq;
	uint64_t addr;	/* of the receiver's buffer in its process */
	uint64_t len;	/* bytes to copy */
	uint32_t slot;	/* cursor in the receiver's shared area */
	uint32_t gen;	/* of the cursor */
	uint32_t chunk; /* bytes */
	uint32_t pad;	/* then, of a buffer in pieces, a plx_wire_piece each; addr is 0 */
};

struct plx_wire_pull {
	struct plx_wire_id sreq;
	struct plx_wire_id rreq;
	uint64_t offset;
	uint64_t len; /* 0: only answer DATA, or CANCEL, whether the buffer is still valid */
};

struct plx_wire_data {
	struct plx_wire_id rreq;
	uint64_t offset;
};

/** Memory of the sender's process. */
struct plx_wire_piece {
	uint64_t addr;
	uint64_t len; /* bytes, not 0 */
};

/** Then a plx_wire_piece each, to the end of the message. */
struct plx_wire_list {
	struct plx_wire_id rreq;
	uint64_t offset; /* of the first, in the message */
};

struct plx_wire_into {
	struct plx_wire_id sreq;
	struct plx_wire_id rreq;
	uint64_t offset; /* in the message; the data from there goes to addr */
	uint64_t len;
	uint64_t addr; /* in the receiver's process, for the device */
	uint64_t key;
	uint32_t last; /* 1: the sender is finished after it; no ACK follows */
	uint32_t pad;
};

struct plx_wire_done {
	struct plx_wire_id rreq;
};

struct plx_wire_cancel {
	struct plx_wire_id rreq; /* of a receiver that asked for data or help; index 0: of pieces */
	uint32_t msg_id;
	uint32_t pad;
};

enum plx_wire_flow_stop {
	PLX_WIRE_FLOW_GO,	/* as usual */
	PLX_WIRE_FLOW_ANNOUNCE, /* announce only */
	/* the connection has failed and takes no more messages; an unlikely number, so that
	 * no accident sends it */
	PLX_WIRE_FLOW_REFUSED = 0x5f00d5f,
};

struct plx_wire_flow {
	uint32_t stop; /* enum plx_wire_flow_stop */
	uint32_t pad;
};

_Static_assert(sizeof(struct plx_wire_cancel) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_flow) == 8, "wire");
/** Destination of a PUT, GET or ATOMIC: the region by name and proof, and an address in it. */
struct plx_wire_where {
	uint32_t index;
	uint32_t pad;
	uint64_t token;
	uint64_t addr; /* in the target's process */
};

struct plx_wire_put {
	struct plx_wire_id id;
	struct plx_wire_where to;
};

/** For a target that can read the initiator's memory. */
struct plx_wire_put_at {
	struct plx_wire_id id;
	struct plx_wire_where to;
	uint64_t from; /* address in the initiator's process */
	uint64_t len;
};

struct plx_wire_get {
	struct plx_wire_id id;
	struct plx_wire_where from;
	uint64_t offset; /* in the initiator's buffer, returned with the data */
	uint64_t len;
};

/** Its data is two uint64_t: operand, and for a compare-and-swap the new value. */
struct plx_wire_atomic {
	struct plx_wire_id id;
	struct plx_wire_where at;
	uint8_t op;    /* enum plx_rma_atomic */
	uint8_t size;  /* 4 or 8 */
	uint8_t fetch; /* the previous value is requested */
	uint8_t pad[5];
};

struct plx_wire_rma_ack {
	struct plx_wire_id id;
	uint64_t value; /* before the atomic */
	int32_t err;	/* 0 or -errno of the target */
	uint32_t pad;
};

struct plx_wire_rma_data {
	struct plx_wire_id id;
	uint64_t offset;
	int32_t err;
	uint32_t last; /* 1: the GET is complete */
};

/** The cell: lib/rma/plx_rma_cell.h. */
struct plx_wire_share {
	uint64_t cell;
};

_Static_assert(sizeof(struct plx_wire_share) == 8, "wire");

/** Before n blocks; then the bytes of puts follow, in the order of their blocks. */
struct plx_wire_rma_batch {
	uint32_t id;	 /* in the answer */
	uint32_t gen;	 /* see plx_rma_cell_claim(); of puts */
	uint32_t number; /* of this batch in it */
	uint16_t cell;	 /* of the initiator, in the target's shared area */
	uint8_t n;
	uint8_t kind; /* enum plx_rma_kind: PUT or GET; and PLX_WIRE_RMA_MUCH */
};

#define PLX_WIRE_RMA_MUCH 0x80u /* with others of the initiator more than caches hold: plx_tx.much */

_Static_assert(sizeof(struct plx_wire_rma_batch) == 16, "wire");

/** As struct plx_wire_where, with a length. */
struct plx_wire_rma_block {
	uint32_t index;
	uint32_t len; /* bytes */
	uint64_t token;
	uint64_t addr;
};

_Static_assert(sizeof(struct plx_wire_rma_block) == 24, "wire");

/** The bytes of gets follow, in the order of their blocks. */
struct plx_wire_rma_batch_done {
	uint32_t id;
	uint32_t pad;
};

_Static_assert(sizeof(struct plx_wire_rma_batch_done) == 8, "wire");

#define PLX_WIRE_CLOSE_FORCE 1u /* the closer has dropped its pending operations */

struct plx_wire_ep_close {
	uint32_t conn_id;
	uint32_t flags; /* PLX_WIRE_CLOSE_x */
};

_Static_assert(sizeof(struct plx_wire_ep_close) == 8, "wire");
/* An active message consists of its header, padded to 8 bytes, and its data. */
#define PLX_WIRE_AM_HDR_MAX 4096
#define PLX_WIRE_AM_REPLY   0x8000u /* of hdr_len: the sender asks for a reply ep */

struct plx_wire_am {
	uint16_t id;
	uint16_t hdr_len; /* of the user's header, bytes, and PLX_WIRE_AM_REPLY */
	uint32_t conn_id; /* of the sender's handle */
};

struct plx_wire_am_first {
	struct plx_wire_am am;
	uint64_t len;	 /* of the data */
	uint32_t msg_id; /* as FIRST's */
	uint32_t pad;
};

struct plx_wire_am_rts {
	struct plx_wire_am am;
	uint64_t len;
	uint64_t addr;
	struct plx_wire_id sreq;
	uint32_t msg_id; /* of the pieces of a header that is not complete here */
	uint32_t epoch;	 /* as RTS's */
};

struct plx_wire_stream {
	uint32_t conn_id; /* of the handle */
	uint32_t pad;
};

struct plx_wire_stream_rts {
	uint32_t conn_id;
	uint32_t epoch; /* as RTS's */
	uint64_t len;
	uint64_t addr;
	struct plx_wire_id sreq;
};

struct plx_wire_grant {
	uint32_t conn_id;
	uint32_t pad;
	uint64_t cost; /* see lib/stream */
};

#define PLX_WIRE_CHAN_DATA_MAX 1024 /* bytes of data of an ASK */

/** All of CHAN but MSG, FETCH, ASK, ANSWER and JOIN. */
struct plx_wire_chan {
	uint32_t to;	/* channel of the receiver; CLOSE: 0 when its number is not known */
	uint32_t value; /* ACK, RNR, COPY: number of a message; CLOSE: channel of the sender */
};

struct plx_wire_chan_msg {
	uint32_t to;	 /* channel of the receiver */
	uint32_t number;
	uint32_t ack;	 /* as the value of an ACK in the other direction */
	uint32_t urgent; /* not 0: the sender waits for the ACK of this message */
};

/* Addresses are those of the sender's process. */
struct plx_wire_chan_fetch {
	struct plx_wire_chan_msg msg;
	uint64_t addr;
	uint64_t lent_addr; /* of a word that is plx_wire_chan_lent() while the data is valid */
	uint32_t len;
	uint32_t pad;
};

/** @return the value of the word at lent_addr. */
static inline uint64_t
plx_wire_chan_lent(const struct plx_wire_chan_msg *m)
{
	return (uint64_t)m->to << 32 | m->number;
}

struct plx_wire_chan_ask {
	uint32_t from; /* channel of the client */
	uint32_t max;  /* longest message that it accepts, bytes */
	uint32_t lossy; /* UU: the client's address for datagrams; 0: none */
	uint8_t attr;	/* enum plx_chan_attr */
	uint8_t pad[3];
};

struct plx_wire_chan_answer {
	uint32_t to;   /* channel of the client */
	uint32_t from; /* of the server */
	uint32_t max;
	int32_t err;	/* 0 or -errno */
	uint32_t lossy; /* as in the request, of the server; 0 if that was 0 */
	uint32_t pad;
};

struct plx_wire_chan_join {
	uint64_t group; /* a hash of its name */
	uint32_t from;	/* channel of the receiver */
	uint32_t pad;
};

_Static_assert(sizeof(struct plx_wire_chan_join) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_chan) == 8, "wire");
_Static_assert(sizeof(struct plx_wire_chan_msg) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_chan_fetch) == 40, "wire");
_Static_assert(sizeof(struct plx_wire_chan_ask) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_chan_answer) == 24, "wire");
_Static_assert(sizeof(struct plx_wire_eager) == 8, "wire");
_Static_assert(sizeof(struct plx_wire_sync) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_first) == 24, "wire");
_Static_assert(sizeof(struct plx_wire_frag) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_rts) == 40, "wire");
_Static_assert(sizeof(struct plx_wire_ack) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_help) == 48, "wire");
_Static_assert(sizeof(struct plx_wire_pull) == 32, "wire");
_Static_assert(sizeof(struct plx_wire_data) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_piece) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_list) == 16, "wire");
_Static_assert(sizeof(struct plx_wire_into) == 56, "wire");
_Static_assert(sizeof(struct plx_wire_done) == 8, "wire");
_Static_assert(sizeof(struct plx_wire_put) == 32, "wire");
_Static_assert(sizeof(struct plx_wire_get) == 48, "wire");
_Static_assert(sizeof(struct plx_wire_put_at) == 48, "wire");
_Static_assert(sizeof(struct plx_wire_atomic) == 40, "wire");
_Static_assert(sizeof(struct plx_wire_rma_ack) == 24, "wire");
_Static_assert(sizeof(struct plx_wire_rma_data) == 24, "wire");
_Static_assert(sizeof(struct plx_wire_am) == 8, "wire");
_Static_assert(sizeof(struct plx_wire_am_first) == 24, "wire");
_Static_assert(sizeof(struct plx_wire_am_rts) == 40, "wire");
_Static_assert(sizeof(struct plx_wire_stream) == 8, "wire");
_Static_assert(sizeof(struct plx_wire_stream_rts) == 32, "wire");
_Static_assert(sizeof(struct plx_wire_grant) == 16, "wire");

#define PLX_WIRE_HDR_MAX 56

/** Bytes of each opcode's header; 0 for none such. */
extern const uint8_t plx_wire_hdr_len[256];

/**
 * Check that an arrived message has a known opcode and its whole header.
 * @return 0, or -EBADMSG. Thread: any.
 */
static inline int
plx_wire_check(uint8_t op, uint32_t len)
{
	uint8_t hdr_len = plx_wire_hdr_len[op];

	return __builtin_expect(hdr_len != 0 && len >= hdr_len, 1) ? 0 : -74 /* EBADMSG */;
}

/**
 * @return whether an arrived message takes part in tag matching: its header is complete and
 *   begins with the tag. Thread: any.
 */
static inline bool
plx_wire_is_tagged(uint8_t op, uint32_t len)
{
	const uint64_t tagged = 1ull << PLX_WIRE_EAGER | 1ull << PLX_WIRE_SYNC |
				1ull << PLX_WIRE_FIRST | 1ull << PLX_WIRE_RTS;

	return op < PLX_WIRE_N && (tagged >> op & 1) != 0 && plx_wire_check(op, len) == 0;
}

_Static_assert(PLX_WIRE_N <= 64, "a bit each");
_Static_assert(offsetof(struct plx_wire_eager, tag) == 0, "tags come first");
_Static_assert(offsetof(struct plx_wire_sync, tag) == 0, "tags come first");
_Static_assert(offsetof(struct plx_wire_first, tag) == 0, "tags come first");
_Static_assert(offsetof(struct plx_wire_rts, tag) == 0, "tags come first");

/** A worker address: at most PLX_WIRE_ADDR_MAX bytes, with its length inside, any alignment. */
#define PLX_WIRE_ADDR_MAX     512
#define PLX_WIRE_ADDR_HEAD    8 /* bytes that contain the length */
#define PLX_WIRE_ADDR_DEVS    8
#define PLX_WIRE_ADDR_NAME    8
#define PLX_WIRE_ADDR_BYTES   96 /* PLX_ADDR_MAX */

struct plx_wire_addr_dev {
	char name[PLX_WIRE_ADDR_NAME]; /* of the device, padded with zeroes */
	uint8_t len;
	uint8_t bytes[PLX_WIRE_ADDR_BYTES];
};

struct plx_wire_addr {
	uint64_t uid; /* of the worker */
	uint8_t n_devs;
	struct plx_wire_addr_dev devs[PLX_WIRE_ADDR_DEVS];
};

/** Write an address. @return its bytes, or -EMSGSIZE over len. Thread: any. */
int plx_wire_addr_pack(const struct plx_wire_addr *a, void *buf, size_t len);

/**
 * Read an address from outside: nothing in it is used before its length is within bounds
 * and its checksum is right.
 * @return 0, or -EINVAL. Thread: any.
 */
int plx_wire_addr_unpack(const void *buf, struct plx_wire_addr *a);

/** @return the bytes of a packed address that plx_wire_addr_unpack() accepted. */
size_t plx_wire_addr_len(const void *buf);

#define PLX_WIRE_RKEY_KEYS 4 /* most ports of devices */
#define PLX_WIRE_RKEY_MIN  40
#define PLX_WIRE_RKEY_MAX  (PLX_WIRE_RKEY_MIN + 6 * PLX_WIRE_RKEY_KEYS)
#define PLX_WIRE_RKEY_HEAD 4 /* bytes that contain the length */

/** Bits of plx_wire_rkey.proc; the higher bits of the id are omitted. */
#define PLX_WIRE_PROC_MASK ((1ull << 40) - 1)
#define PLX_WIRE_INDEX_MAX ((1u << 20) - 1)
#define PLX_WIRE_WINDOW_MAX ((1u << 12) - 1)

/** A region is registered with a device's port. */
struct plx_wire_rkey_dev {
	uint32_t key;
	uint16_t port; /* of those that the owner has opened, from 1 on */
};

/**
 * A key: at most PLX_WIRE_RKEY_MAX bytes, the room that users of UCP have. It contains its
 * length and needs no alignment. What a peer knows of the process is omitted.
 */
struct plx_wire_rkey {
	uint32_t index;	 /* of the region, up to PLX_WIRE_INDEX_MAX */
	uint16_t window; /* in the process's table of segments, up to PLX_WIRE_WINDOW_MAX; 0: none */
	uint8_t rights;	 /* enum plx_region_right */
	uint8_t n_devs;
	uint64_t token;
	uint64_t base; /* in the owner's process */
	uint64_t len;  /* below 2^56: no process has more */
	uint64_t proc; /* plx_proc_id() of the owner, within PLX_WIRE_PROC_MASK */
	struct plx_wire_rkey_dev devs[PLX_WIRE_RKEY_KEYS];
};

/** Write a key. @param buf of PLX_WIRE_RKEY_MAX bytes. @return its bytes. Thread: any. */
size_t plx_wire_rkey_pack(const struct plx_wire_rkey *k, void *buf);

/** @return the length of a key, by its first PLX_WIRE_RKEY_HEAD bytes; 0: it is no key. */
size_t plx_wire_rkey_len(const void *buf);

/**
 * Read a key from outside.
 * @param buf plx_wire_rkey_len() bytes
 * @return 0, or -EINVAL. Thread: any.
 */
int plx_wire_rkey_unpack(const void *buf, struct plx_wire_rkey *k);

#define PLX_WIRE_EXPORT_HEAD 8 /* bytes that hold magic and length */

/** Memory that another context of this machine may map, in packed form; any alignment. */
struct plx_wire_export {
	uint32_t magic;
	uint16_t bytes; /* of all */
	uint8_t version;
	uint8_t rights; /* enum plx_region_right */
	uint32_t crc;	/* crc32c of all, with this field 0 */
	uint32_t pad;
	uint64_t host; /* struct plx_proc */
	uint64_t proc; /* its id, the same */
	uint64_t id;   /* of the segment, struct plx_seg_name */
	uint64_t len;  /* the same, bytes */
};
_Static_assert(sizeof(struct plx_wire_export) == 48, "wire");

/** Fill in magic, bytes, version, crc and pad. Thread: any. */
void plx_wire_export_seal(struct plx_wire_export *e);

/** Read bytes from outside. @return 0, or -EINVAL. Thread: any. */
int plx_wire_export_check(const struct plx_wire_export *e);

/** The messages by which a client and a server connect, over a socket (lib/cm). */
enum plx_wire_conn_kind {
	PLX_WIRE_CONN_HELLO = 1, /* client: my address, and a request */
	PLX_WIRE_CONN_ACCEPT,	 /* server: my address */
	PLX_WIRE_CONN_REJECT,	 /* server: refused, because of err */
	PLX_WIRE_CONN_DONE,	 /* client: I am connected, or not because of err */
};

#define PLX_WIRE_CONN_VERSION	1
#define PLX_WIRE_CONN_CLIENT_ID 1u   /* flags: client_id is given */
#define PLX_WIRE_CONN_ID_MIN	(1u << 31) /* conn_id of such handles, chosen by the client */
#define PLX_WIRE_CONN_MAX	(40 + PLX_WIRE_ADDR_MAX)

struct plx_wire_conn {
	uint8_t version; /* PLX_WIRE_CONN_VERSION */
	uint8_t kind;	 /* enum plx_wire_conn_kind */
	uint8_t err_mode; /* HELLO: the face's */
	uint8_t pad;
	uint32_t flags; /* PLX_WIRE_CONN_x */
	uint32_t conn_id;
	int32_t err; /* REJECT, DONE: 0 or -errno */
	uint64_t client_id;
	uint32_t addr_len; /* of the packed worker address that follows, or 0 */
	uint32_t crc;	   /* of all with this 0 */
};
_Static_assert(sizeof(struct plx_wire_conn) == 32, "wire");

/**
 * Write a connection message; version, addr_len and crc are filled in.
 * @param addr packed, or NULL
 * @param buf of PLX_WIRE_CONN_MAX bytes
 * @return its bytes. Thread: any.
 */
size_t plx_wire_conn_pack(const struct plx_wire_conn *h, const void *addr, size_t addr_len,
	void *buf);

/**
 * Read a message from outside.
 * @param addr filled for HELLO and ACCEPT, which must have one
 * @return 0, or -EBADMSG. Thread: any.
 */
int plx_wire_conn_unpack(const void *buf, size_t len, struct plx_wire_conn *h,
	struct plx_wire_addr *addr);

/* text.c */

/** @return the characters of len bytes as text, without the terminating one. */
#define PLX_WIRE_TEXT_LEN(len) (((len) * 4 + 2) / 3)

/** Write len bytes as text of PLX_WIRE_TEXT_LEN() characters of base64url, terminated. Thread: any. */
void plx_wire_text(const void *data, size_t len, char *to);

/** Read n characters of such text. @return bytes, or -EINVAL: not such text, over max. Thread: any. */
int plx_wire_untext(const char *s, size_t n, void *to, size_t max);

#endif
