/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hostile_peer.c - a peer that says anything, and writes anything where it may write
 *
 * Design notes
 * - It meets the victim as every peer does, through the driver, and so has the victim's segments mapped.
 * Nothing here depends on how that comes about.
 * - What it says is well framed: the driver sends it. Half of it is an answer to what the victim has said, or
 * begins something that goes on later, with some words changed; the rest is any opcode with any words. Words
 * come from what the victim has sent, so ids, addresses and numbers are often those that are in use.
 * - What its threads write goes to the victim's segments, to its own, which the victim has mapped as well, and
 * to its table of windows.
 * - Words that name a process are never made up: the victim would look at processes that are not part of this.
 */
#include "hostile.h"

#include <pthread.h>
#include <sys/mman.h>

#include "cci_int.h"
#include "plx_proc.h"
#include "plx_rma_cell.h"
#include "plx_unit_shm.h"
#include "ucp_int.h"

#define WORDS   256
#define SCRATCH (512u << 10)
#define OPENED  8
#define SAY_MAX 12000 /* bytes of a message's data */
#define OWN_CELLS 4   /* of the victim's cells, the first are its own */

/* A place of the victim's: its ucp worker, or its endpoint. */
struct target {
	struct plx_peer *peer;
	uint64_t words[WORDS]; /* that it has sent */
	unsigned n_words;
	struct { /* messages in pieces that were begun */
		uint32_t id;
		uint64_t got, len;
	} opened[OPENED];
	uint32_t next_id, chan, number;
	struct plx_wire_id asked[32]; /* its receives that wait for us */
	unsigned n_asked;
};

struct area {
	uint8_t *base;
	uint64_t len;
	struct shm_seg *seg; /* NULL: no segment */
	uint32_t n_slots;
};

static struct round *r;
static struct side *mine, *victim;
static struct plx_queue *q;
static struct target targets[2];
static struct area areas[4];
static unsigned n_areas;
static uint8_t *scratch;
static struct plx_wire_rkey victims_key;
static uint64_t rng;

static uint64_t
rnd(uint64_t n)
{
	return hostile_rnd(&rng, n);
}

/* --- words --- */

static void
learn(struct target *t, const uint8_t *data, uint32_t len)
{
	for (uint32_t at = 0; at + 8 <= len && at < 64; at += 4)
		memcpy(&t->words[t->n_words++ % WORDS], data + at, 8);
}

static uint64_t
word(struct target *t, uint64_t *state)
{
	uint64_t v;

	switch (hostile_rnd(state, 9)) {
	case 0:
	case 1:
		return t->words[hostile_rnd(state, WORDS)];
	case 2:
		return hostile_rnd(state, 8);
	case 3:
		return hostile_rnd(state, 70000);
	case 4:
		return (UINT64_C(1) << hostile_rnd(state, 64)) - hostile_rnd(state, 3);
	case 5:
		return (uintptr_t)scratch + hostile_rnd(state, SCRATCH);
	case 6:
		return victim->theirs.addr + hostile_rnd(state, HOSTILE_MEM + 64);
	case 7: /* two small ones */
		v = hostile_rnd(state, 80);
		return v << 32 | hostile_rnd(state, 80);
	default:
		return util_splitmix64(state);
	}
}

/* --- what it says --- */

static void
say(struct target *t, uint8_t op, const void *hdr, uint32_t hdr_len, const void *data, uint32_t len)
{
	struct plx_tx tx = {
		.peer = t->peer, .hdr = hdr, .hdr_len = (uint8_t)hdr_len, .data = data, .len = len, .op = op};

	if (tx.hdr_len + tx.len > t->peer->mtu)
		tx.len = t->peer->mtu - tx.hdr_len;
	if (plx_peer_tx(&tx) == 0)
		atomic_fetch_add_explicit(&r->n_said, 1, memory_order_relaxed);
}

/* Some words of it become others, now and then. */
static void
spoil(struct target *t, void *hdr, uint32_t len)
{
	uint64_t w;

	if (len < 8 || rnd(5) != 0)
		return;
	w = word(t, &rng);
	if (rnd(2) == 0)
		memcpy((uint8_t *)hdr + rnd(len / 4) * 4, &w, 4);
	else if (rnd(2) == 0)
		memcpy((uint8_t *)hdr + rnd(len / 8) * 8, &w, 8);
	else
		((uint8_t *)hdr)[rnd(len)] ^= (uint8_t)(1u << rnd(8));
}

#define SAY(t, op, h, data, len)                                                                               \
	do {                                                                                                   \
		spoil(t, &(h), sizeof(h));                                                                     \
		say(t, op, &(h), sizeof(h), data, len);                                                        \
	} while (0)

static uint32_t
some_len(void)
{
	return (uint32_t)(rnd(3) == 0 ? rnd(SAY_MAX) : rnd(90));
}

/* Bytes beyond those that belong into a message. */
static uint32_t
more_than_right(void)
{
	return rnd(12) == 0 ? (uint32_t)rnd(200) : 0;
}

static struct plx_wire_id
some_id(void)
{
	return (struct plx_wire_id){(uint32_t)rnd(64) + 1, (uint32_t)rnd(4)};
}

static void
begin_pieces(struct target *t)
{
	unsigned i = (unsigned)rnd(OPENED);
	uint32_t len = some_len() + 1;
	struct plx_wire_first first = {.tag = rnd(16), .len = len + rnd(100000), .msg_id = ++t->next_id};
	struct plx_wire_am_first am = {
		.am = {.id = (uint16_t)rnd(8)}, .len = first.len, .msg_id = first.msg_id};

	if (t->opened[i].len != 0) {
		struct plx_wire_cancel c = {.msg_id = t->opened[i].id};

		SAY(t, PLX_WIRE_CANCEL, c, NULL, 0);
	}
	t->opened[i].id = first.msg_id;
	t->opened[i].len = first.len;
	t->opened[i].got = RTE_MIN(len, t->peer->mtu - sizeof(first));
	if (rnd(2) == 0)
		SAY(t, PLX_WIRE_FIRST, first, scratch, len);
	else
		SAY(t, PLX_WIRE_AM_FIRST, am, scratch, len);
}

static void
more_pieces(struct target *t)
{
	unsigned i = (unsigned)rnd(OPENED);
	uint64_t len =
		RTE_MIN(t->opened[i].len - t->opened[i].got, t->peer->mtu - sizeof(struct plx_wire_frag));
	struct plx_wire_frag h = {.offset = t->opened[i].got, .msg_id = t->opened[i].id};

	if (t->opened[i].len == 0)
		return;
	SAY(t, PLX_WIRE_FRAG, h, scratch, (uint32_t)len + more_than_right());
	t->opened[i].got += len;
	if (t->opened[i].got == t->opened[i].len)
		t->opened[i].len = 0;
}

static uint32_t
own_epoch(void)
{
	return atomic_load_explicit(&((struct plx_rndv_shared *)q->shared)->epoch, memory_order_relaxed);
}

static void
announce(struct target *t)
{
	const uint64_t addrs[] = {0, word(t, &rng), (uintptr_t)scratch, (uintptr_t)scratch + 3,
		mine->theirs.addr, mine->theirs.addr};
	uint64_t addr = addrs[rnd(RTE_DIM(addrs))];
	struct plx_wire_rts rts = {.tag = rnd(16),
		.len = rnd(3) == 0 ? rnd(HOSTILE_MEM) : rnd(9000),
		.addr = addr,
		.sreq = some_id(),
		.epoch = own_epoch()};
	struct plx_wire_am_rts am = {.am = {.id = (uint16_t)rnd(8)},
		.len = rts.len,
		.addr = addr,
		.sreq = rts.sreq,
		.epoch = rts.epoch};
	struct plx_wire_stream_rts stream = {.conn_id = (uint32_t)rnd(3),
		.epoch = rts.epoch,
		.len = rts.len,
		.addr = addr,
		.sreq = rts.sreq};

	switch (rnd(3)) {
	case 0:
		SAY(t, PLX_WIRE_RTS, rts, scratch, rnd(4) * sizeof(struct plx_wire_piece) + rnd(2));
		break;
	case 1:
		am.am.hdr_len = (uint16_t)rnd(64);
		SAY(t, PLX_WIRE_AM_RTS, am, scratch, (am.am.hdr_len + 7) & ~7u);
		break;
	default:
		SAY(t, PLX_WIRE_STREAM_RTS, stream, NULL, 0);
		break;
	}
}

static void
whole(struct target *t)
{
	uint64_t tag = rnd(16);
	struct plx_wire_sync sync = {.tag = tag, .sreq = some_id()};
	struct plx_wire_stream stream = {.conn_id = (uint32_t)rnd(3)};
	struct plx_wire_am am = {.id = (uint16_t)rnd(8), .conn_id = (uint32_t)rnd(6)};

	switch (rnd(4)) {
	case 0:
		SAY(t, PLX_WIRE_EAGER, tag, scratch, some_len());
		break;
	case 1:
		SAY(t, PLX_WIRE_SYNC, sync, scratch, some_len());
		break;
	case 2:
		SAY(t, PLX_WIRE_STREAM, stream, scratch, some_len());
		break;
	default:
		am.hdr_len = (uint16_t)rnd(64) | (rnd(2) == 0 ? PLX_WIRE_AM_REPLY : 0);
		SAY(t, PLX_WIRE_AM, am, scratch, (((am.hdr_len & 0xffu) + 7) & ~7u) + some_len());
		break;
	}
}

static struct plx_wire_where
some_where(struct target *t)
{
	struct plx_wire_where w = {.index = victims_key.index,
		.token = victims_key.token,
		.addr = victims_key.base + rnd(HOSTILE_MEM)};

	if (rnd(8) == 0)
		w.addr = word(t, &rng);
	return w;
}

/* A cell holds the data that its initiator moves: only a vandal writes to the cell of another. */
static bool
may_write(struct plx_rma_cell *c, uint64_t i)
{
	uint64_t owner = 0;
	struct plx_proc self;

	if (plx_proc_self(&self) != 0)
		return r->n_vandals != 0;
	if (r->n_vandals != 0) {
		if (rnd(2) == 0)
			atomic_store(&c->owner, plx_proc_id(&self));
		return true;
	}
	return (i < OWN_CELLS && atomic_compare_exchange_strong(&c->owner, &owner, plx_proc_id(&self))) ||
		owner == plx_proc_id(&self);
}

/* Blocks to and from the victim's memory, some of which it must not touch. */
static struct plx_rma_list *
some_list(struct target *t)
{
	static struct plx_rma_list list;

	for (unsigned i = 0; i < PLX_RMA_BLOCKS_N; i++) {
		struct plx_wire_where at = some_where(t);

		list.block[i] = (struct plx_rma_block){.local = (uintptr_t)scratch, .addr = at.addr, .token = at.token,
			.index = at.index, .len = rnd(16) == 0 ? (uint32_t)word(t, &rng) : rnd(300)};
	}
	atomic_store(&list.number, rnd(4));
	return &list;
}

/* Describe a copy by both sides. */
static void
share(struct target *t, struct plx_rma_share *s, struct plx_wire_where at)
{
	bool blocks = rnd(2) == 0;
	uint64_t gen = (uint64_t)rnd(4) << 32;

	s->kind = rnd(3) | (blocks ? PLX_RMA_BLOCKS : 0) | (rnd(16) == 0 ? 1u << rnd(32) : 0);
	s->buf = blocks ? (uintptr_t)some_list(t) : (uintptr_t)scratch;
	s->addr = at.addr;
	s->token = blocks ? rnd(4) : at.token;
	s->index = at.index;
	s->len = blocks ? rnd(300) : rnd(HOSTILE_MEM + 9);
	s->chunk = blocks ? rnd(70) : rnd(4) * PLX_RMA_SHARE_CHUNK;
	s->done = gen;
	s->bad = gen;
	s->next = gen | (rnd(4) == 0 ? rnd(40) | rnd(40) << 16 : 0);
}

/* Describe a copy in a cell, whatever state that is in, and name it. */
static void
share_cell(struct target *t)
{
	struct plx_wire_share h = {.cell = rnd(18)};
	struct plx_wire_where at = some_where(t);
	struct plx_rma_cell *c = plx_rma_cell_at(plx_peer_shared(t->peer), SHM_SHARED_LEN, h.cell);

	if (c != NULL && may_write(c, h.cell)) {
		share(t, &c->share, at);
		atomic_store(&c->state, rnd(2) == 0 ? PLX_RMA_CELL_SHARED : (uint32_t)rnd(6));
	}
	SAY(t, PLX_WIRE_SHARE, h, NULL, 0);
}

/* Puts or gets, of what the claims of a cell say or of something else. */
static void
batch(struct target *t)
{
	struct plx_wire_rma_batch h = {.id = rnd(9), .cell = (uint16_t)rnd(18), .n = (uint8_t)(rnd(16) == 0 ? rnd(256) : rnd(5)),
		.kind = (uint8_t)(rnd(3) | (rnd(4) == 0 ? PLX_WIRE_RMA_MUCH : 0))};
	struct plx_rma_cell *c = plx_rma_cell_at(plx_peer_shared(t->peer), SHM_SHARED_LEN, h.cell);
	uint32_t n = RTE_MIN(h.n, (uint32_t)PLX_RMA_BATCH_N), bytes = 0;
	struct plx_wire_rma_block b;

	if (c != NULL && may_write(c, h.cell) && rnd(4) == 0)
		atomic_store(&c->claims, word(t, &rng));
	if (c != NULL && rnd(8) != 0) {
		h.gen = (uint32_t)(atomic_load(&c->claims) >> 32);
		h.number = (uint32_t)atomic_load(&c->claims);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct plx_wire_where at = some_where(t);

		b = (struct plx_wire_rma_block){.addr = at.addr, .token = at.token, .index = at.index,
			.len = rnd(16) == 0 ? (uint32_t)word(t, &rng) : rnd(300)};
		bytes += b.len;
		memcpy(scratch + i * sizeof(b), &b, sizeof(b));
	}
	bytes = rnd(8) == 0 ? rnd(600) : (h.kind & ~PLX_WIRE_RMA_MUCH) == PLX_RMA_PUT ? bytes : 0;
	SAY(t, PLX_WIRE_RMA_BATCH, h, scratch, RTE_MIN(n * (uint32_t)sizeof(b) + bytes, (uint32_t)SAY_MAX));
}

/* Claim it or not, and answer with the right bytes or not. */
static void
answer_batch(struct target *t, const struct plx_wire_rma_batch *h, const uint8_t *data, uint32_t len)
{
	struct plx_rma_cell *c = plx_rma_cell_at(q->shared, q->shared_len, h->cell);
	struct plx_wire_rma_batch_done done = {.id = rnd(8) == 0 ? rnd(9) : h->id};
	struct plx_wire_rma_block b;
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < h->n && (i + 1) * sizeof(b) <= len; i++) {
		memcpy(&b, data + i * sizeof(b), sizeof(b));
		bytes += b.len;
	}
	if (c != NULL && rnd(4) != 0)
		(void)plx_rma_cell_claim(c, h->gen, h->number);
	else if (c != NULL && rnd(2) == 0)
		atomic_store(&c->claims, word(t, &rng));
	bytes = rnd(8) == 0 ? rnd(600) : h->kind == PLX_RMA_GET ? bytes : 0;
	SAY(t, PLX_WIRE_RMA_BATCH_DONE, done, scratch, RTE_MIN(bytes, (uint32_t)SAY_MAX));
}

static void
reach_in(struct target *t)
{
	uint64_t operands[2] = {rnd(9), rnd(9)};
	struct plx_wire_put put = {.id = some_id(), .to = some_where(t)};
	struct plx_wire_put_at at = {
		.id = some_id(), .to = some_where(t), .from = (uintptr_t)scratch, .len = rnd(HOSTILE_MEM)};
	struct plx_wire_get get = {
		.id = some_id(), .from = some_where(t), .offset = rnd(9000), .len = rnd(70000)};
	struct plx_wire_atomic a = {.id = some_id(),
		.at = some_where(t),
		.op = (uint8_t)rnd(10),
		.size = rnd(3) == 0 ? 4 : 8,
		.fetch = (uint8_t)rnd(2)};

	switch (rnd(5)) {
	case 0:
		SAY(t, PLX_WIRE_PUT, put, scratch, some_len());
		break;
	case 1:
		SAY(t, PLX_WIRE_PUT_AT, at, NULL, 0);
		break;
	case 2:
		SAY(t, PLX_WIRE_GET, get, NULL, 0);
		break;
	case 3:
		for (unsigned i = 0; i < 16; i++) {
			share_cell(t);
			batch(t);
		}
		break;
	default:
		SAY(t, PLX_WIRE_ATOMIC, a, operands, sizeof(operands));
		break;
	}
}

static void
channel(struct target *t)
{
	struct plx_wire_chan_ask ask = {
		.from = (uint32_t)rnd(1u << 20) + 1, .max = 8192, .attr = (uint8_t)rnd(4)};
	struct plx_wire_chan_msg m = {.to = t->chan, .number = t->number, .urgent = (uint32_t)rnd(2)};
	struct plx_wire_chan_fetch f = {.msg = m,
		.addr = (uintptr_t)scratch + 64,
		.lent_addr = (uintptr_t)scratch,
		.len = (uint32_t)rnd(9000)};
	struct plx_wire_chan c = {.to = t->chan, .value = (uint32_t)rnd(20)};
	struct plx_wire_chan_join join = {.group = rnd(3), .from = ask.from};
	uint64_t lent = plx_wire_chan_lent(&m);

	if (t->chan == 0 || rnd(40) == 0) {
		SAY(t, PLX_WIRE_CHAN_ASK, ask, scratch, (uint32_t)rnd(32));
		return;
	}
	switch (rnd(8)) {
	case 0:
		memcpy(scratch, &lent, 8);
		SAY(t, PLX_WIRE_CHAN_FETCH, f, NULL, 0);
		t->number++;
		break;
	case 1:
		SAY(t, PLX_WIRE_CHAN_LOSSY, m, scratch, some_len());
		break;
	case 2:
		SAY(t, PLX_WIRE_CHAN_JOIN, join, NULL, 0);
		break;
	case 3:
	case 4:
		say(t, (uint8_t)(PLX_WIRE_CHAN_ACK + rnd(PLX_WIRE_CHAN_PONG - PLX_WIRE_CHAN_ACK + 1)), &c,
			sizeof(c), NULL, 0);
		break;
	default:
		SAY(t, PLX_WIRE_CHAN_MSG, m, scratch, some_len());
		t->number++;
		break;
	}
}

/* Any opcode, any words. */
static void
anything(struct target *t)
{
	uint8_t op = (uint8_t)(rnd(40) == 0 ? rnd(256) : rnd(PLX_WIRE_N + 1)), hdr[PLX_WIRE_HDR_MAX + 8] = {0};
	uint32_t len = rnd(30) == 0 ? (uint32_t)rnd(PLX_WIRE_HDR_MAX) : plx_wire_hdr_len[op];

	for (uint32_t at = 0; at < len; at += 4) {
		uint64_t w = word(t, &rng);

		memcpy(hdr + at, &w, 8);
	}
	if (op == PLX_WIRE_FIRST || op == PLX_WIRE_AM_FIRST) /* its rest would never come */
		t->next_id++;
	say(t, op, hdr, len, scratch, some_len());
}

/* --- what it answers --- */

static void
answer_asked(struct target *t, struct plx_wire_id rreq)
{
	if (t->n_asked < RTE_DIM(t->asked)) {
		t->asked[t->n_asked++] = rreq;
		return;
	}
	for (unsigned i = 0; i < t->n_asked; i++) {
		struct plx_wire_cancel c = {.rreq = t->asked[i]};

		SAY(t, PLX_WIRE_CANCEL, c, NULL, 0);
	}
	t->n_asked = 0;
}

/* It may give back a chunk that it does not have. */
static void
answer_help(struct target *t, const struct plx_wire_help *h)
{
	struct plx_rndv_shared *s = plx_peer_shared(t->peer);

	if (s == NULL || h->slot >= plx_rndv_n_cursors(SHM_SHARED_LEN) || rnd(3) != 0)
		answer_asked(t, h->rreq);
	else if (atomic_load(&s->cursors[h->slot].next) >> 32 == h->gen)
		atomic_store(&s->cursors[h->slot].bad, (uint64_t)h->gen << 32 | rnd(6));
}

static void
answer_pull(struct target *t, const struct plx_wire_pull *h)
{
	struct plx_wire_data d = {.rreq = h->rreq, .offset = h->offset};
	uint64_t len = RTE_MIN(h->len, (uint64_t)HOSTILE_BIG), n;

	if (rnd(6) == 0) {
		answer_asked(t, h->rreq);
		return;
	}
	do {
		n = RTE_MIN(len, t->peer->mtu - sizeof(d));
		n = RTE_MIN(n, (uint64_t)SAY_MAX);
		SAY(t, PLX_WIRE_DATA, d, scratch, (uint32_t)n + more_than_right());
		d.offset += n;
		len -= n;
	} while (len > 0);
}

/* The victim has announced something: take it in one of the ways that there are. */
static void
answer_rts(struct target *t, struct plx_wire_id sreq, uint64_t len)
{
	struct plx_wire_ack ack = {.sreq = sreq, .err = rnd(8) == 0 ? -(int32_t)rnd(200) : 0};
	struct plx_wire_pull pull = {.sreq = sreq, .rreq = some_id(), .offset = 0, .len = len};
	struct plx_wire_help help = {.sreq = sreq,
		.rreq = some_id(),
		.addr = (uintptr_t)scratch,
		.len = RTE_MIN(len, (uint64_t)SCRATCH),
		.slot = (uint32_t)rnd(62),
		.gen = 7,
		.chunk = (uint32_t)(4096 << rnd(5))};
	struct plx_wire_into into = {.sreq = sreq,
		.rreq = some_id(),
		.len = len,
		.addr = (uintptr_t)scratch,
		.last = (uint32_t)rnd(2)};
	struct plx_rndv_shared *s = q->shared;

	switch (rnd(8)) {
	case 0:
	case 1:
		atomic_store(&s->cursors[help.slot].done, (uint64_t)help.gen << 32);
		atomic_store(&s->cursors[help.slot].next, (uint64_t)help.gen << 32 | rnd(3));
		SAY(t, PLX_WIRE_HELP, help, NULL, 0);
		break;
	case 2:
	case 3:
		SAY(t, PLX_WIRE_PULL, pull, NULL, 0);
		break;
	case 4:
		SAY(t, PLX_WIRE_INTO, into, NULL, 0);
		break;
	default:
		break;
	}
	if (rnd(4) != 0)
		SAY(t, PLX_WIRE_ACK, ack, NULL, 0);
}

static void
answer_chan(struct target *t, const struct plx_wire_chan_answer *h)
{
	struct plx_wire_chan done = {.to = h->from};

	if (h->err != 0)
		return;
	t->chan = h->from;
	t->number = 0;
	SAY(t, PLX_WIRE_CHAN_DONE, done, NULL, 0);
}

static void
answer(struct target *t, uint8_t op, const uint8_t *data, uint32_t len)
{
	union {
		struct plx_wire_rma_batch batch;
		struct plx_wire_rts rts;
		struct plx_wire_am_rts am_rts;
		struct plx_wire_stream_rts stream_rts;
		struct plx_wire_sync sync;
		struct plx_wire_pull pull;
		struct plx_wire_help help;
		struct plx_wire_put put;
		struct plx_wire_put_at put_at;
		struct plx_wire_get get;
		struct plx_wire_atomic atomic;
		struct plx_wire_chan_answer chan;
	} h;
	struct plx_wire_rma_ack rma_ack;
	struct plx_wire_rma_data rma_data;
	struct plx_wire_ack ack;

	memcpy(&h, data, RTE_MIN(plx_wire_hdr_len[op], sizeof(h)));
	rma_ack = (struct plx_wire_rma_ack){.id = h.put.id, .value = rnd(9), .err = rnd(8) == 0 ? -14 : 0};
	switch (op) {
	case PLX_WIRE_RTS:
		answer_rts(t, h.rts.sreq, h.rts.len);
		break;
	case PLX_WIRE_AM_RTS:
		answer_rts(t, h.am_rts.sreq, h.am_rts.len);
		break;
	case PLX_WIRE_STREAM_RTS:
		answer_rts(t, h.stream_rts.sreq, h.stream_rts.len);
		break;
	case PLX_WIRE_SYNC:
		ack = (struct plx_wire_ack){.sreq = h.sync.sreq};
		SAY(t, PLX_WIRE_ACK, ack, NULL, 0);
		break;
	case PLX_WIRE_PULL:
		answer_pull(t, &h.pull);
		break;
	case PLX_WIRE_HELP:
		answer_help(t, &h.help);
		break;
	case PLX_WIRE_PUT:
	case PLX_WIRE_PUT_AT:
	case PLX_WIRE_ATOMIC:
		SAY(t, PLX_WIRE_RMA_ACK, rma_ack, NULL, 0);
		break;
	case PLX_WIRE_GET:
		rma_data = (struct plx_wire_rma_data){.id = h.get.id, .offset = h.get.offset, .last = 1};
		SAY(t, PLX_WIRE_RMA_DATA, rma_data, scratch, (uint32_t)RTE_MIN(h.get.len, (uint64_t)SAY_MAX));
		break;
	case PLX_WIRE_RMA_BATCH:
		answer_batch(t, &h.batch, data + sizeof(h.batch), len - (uint32_t)sizeof(h.batch));
		break;
	case PLX_WIRE_CHAN_ANSWER:
		answer_chan(t, &h.chan);
		break;
	default:
		break;
	}
}

static void
hear(void)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint16_t n = q->rx_burst(q, rx, PLX_DEV_RX_BURST);

	for (uint16_t i = 0; i < n; i++) {
		struct target *t = rx[i].src == targets[1].peer ? &targets[1] : &targets[0];

		atomic_fetch_add_explicit(&r->n_heard, 1, memory_order_relaxed);
		learn(t, rx[i].data, rx[i].len);
		if (plx_wire_check(rx[i].op, rx[i].len) == 0 && rnd(10) != 0)
			answer(t, rx[i].op, rx[i].data, rx[i].len);
	}
	if (n != 0)
		q->rx_release(q, rx, n);
}

static void (*const ways[])(struct target *t) = {
	whole,
	whole,
	begin_pieces,
	more_pieces,
	more_pieces,
	more_pieces,
	announce,
	reach_in,
	channel,
	anything,
	anything,
};

/* --- what its threads write --- */

static const struct {
	size_t at, len; /* from the beginning of a segment, each as often as the others */
} parts[] = {
	{0, SHM_LINE},
	{offsetof(struct shm_seg, doorbell), 8},
	{offsetof(struct shm_seg, mail_head), 8},
	{offsetof(struct shm_seg, sleeping), 16},
	{offsetof(struct shm_seg, shared), SHM_SHARED_LEN},
	{offsetof(struct shm_seg, shared), SHM_SHARED_LEN},
	{offsetof(struct shm_seg, mail), sizeof(((struct shm_seg *)0)->mail)},
	{SHM_SLOTS_OFF, 3 * sizeof(struct shm_slot)},
	{SHM_SLOTS_OFF, 3 * sizeof(struct shm_slot)},
	{SHM_SLOTS_OFF, 3 * sizeof(struct shm_slot)},
	{0, SIZE_MAX},
};

/* Bytes of the segment that name a process: a sender's, which are left alone or moved as they are. */
static bool
names_a_process(const struct area *a, uint64_t at)
{
	const uint64_t slots = SHM_SLOTS_OFF, mail = offsetof(struct shm_seg, mail);

	if (a->seg == NULL)
		return false;
	if (at >= slots && at < slots + SHM_SLOTS_MAX * sizeof(struct shm_slot))
		return (at - slots) % sizeof(struct shm_slot) >= 8 &&
		       (at - slots) % sizeof(struct shm_slot) < SHM_LINE;
	return at >= mail && at < slots && (at - mail) % SHM_MAIL_CELL >= 8 &&
	       (at - mail) % SHM_MAIL_CELL < 56 &&
	       (at - mail) % SHM_MAIL_CELL >= offsetof(struct shm_mail, sender);
}

/* A cell in its place, or near it, with a head that may be right. */
static void
vandal_cell(const struct area *a, struct target *t, uint64_t *state)
{
	struct shm_slot *slot = shm_slot_at(a->seg, (uint32_t)hostile_rnd(state, RTE_MIN(a->n_slots, 3u)));
	uint64_t pos = atomic_load(&slot->rx_pos) + hostile_rnd(state, 48);
	struct shm_cell *cell = shm_cell_at(slot->cells, pos);
	union shm_cell_head head = {.seq = shm_seq(pos),
		.kind = (uint8_t)hostile_rnd(state, 4),
		.op = (uint8_t)hostile_rnd(state, PLX_WIRE_N + 1),
		.len = (uint16_t)hostile_rnd(state, SHM_CELL_BODY + 20)};
	union shm_ref ref = {{(uint32_t)hostile_rnd(state, SHM_DATA_WIDE + 100),
		(uint32_t)hostile_rnd(state, SHM_MSG_MAX + 100)}};

	for (unsigned i = 0; i < SHM_CELL_BODY; i += 8) {
		uint64_t w = i == 0 && head.kind == SHM_CELL_DATA ? ref.word : word(t, state);

		memcpy(cell->body + i, &w, 8);
	}
	atomic_store(&cell->head, head.word);
	atomic_fetch_or(&a->seg->doorbell, 7);
}

static void
vandal_mail(const struct area *a, struct target *t, uint64_t *state)
{
	uint64_t pos = atomic_load(&a->seg->mail_head) + hostile_rnd(state, 3) - 1;
	struct shm_mail *m = &a->seg->mail[pos % SHM_MAIL_CELLS];

	m->len = (uint32_t)hostile_rnd(state, sizeof(m->body) + 9);
	m->op = (uint8_t)hostile_rnd(state, PLX_WIRE_N + 1);
	m->sender = shm_queue(q)->addr;
	if (hostile_rnd(state, 4) == 0)
		m->sender.uid ^= hostile_rnd(state, 4);
	for (unsigned i = 0; i < 64; i += 8) {
		uint64_t w = word(t, state);

		memcpy(m->body + i, &w, 8);
	}
	atomic_store(&m->state, SHM_MAIL_STATE(shm_queue(q)->proc, pos / SHM_MAIL_CELLS, hostile_rnd(state, 3)));
}

static void
vandal_write(uint64_t *state)
{
	const struct area *a = &areas[hostile_rnd(state, n_areas)];
	struct target *t = &targets[hostile_rnd(state, 2)];
	unsigned i = (unsigned)hostile_rnd(state, RTE_DIM(parts));
	uint64_t at = 0, len = a->len, w = word(t, state), size = UINT64_C(1) << hostile_rnd(state, 4);

	atomic_fetch_add_explicit(&r->n_spoilt, 1, memory_order_relaxed);
	if (a->seg != NULL && hostile_rnd(state, 3) == 0) {
		(a->n_slots == 0 || hostile_rnd(state, 4) == 0 ? vandal_mail : vandal_cell)(a, t, state);
		return;
	}
	if (a->seg != NULL && parts[i].len != SIZE_MAX && parts[i].at < a->len) {
		at = parts[i].at;
		len = RTE_MIN(parts[i].len, a->len - at);
	}
	at += hostile_rnd(state, len / 8) * 8;
	if (names_a_process(a, at))
		return;
	/* the victim is let live for a while in most rounds: its peers leave who is closed */
	if (at < SHM_LINE && a->seg != NULL && hostile_rnd(state, 20000) != 0)
		return;
	if (hostile_rnd(state, 2) == 0)
		a->base[at + hostile_rnd(state, 8)] ^= (uint8_t)(1u << hostile_rnd(state, 8));
	else
		memcpy(a->base + at, &w, size);
}

static void *
vandal(void *arg)
{
	static const uint64_t paces[] = {3, 40, 400, 4000};
	uint64_t state = (uint64_t)(uintptr_t)arg, pace = paces[hostile_rnd(&state, RTE_DIM(paces))];

	while (true) {
		uint64_t n = hostile_rnd(&state, pace);

		while (n-- > 0)
			vandal_write(&state);
		usleep((useconds_t)hostile_rnd(&state, 3) * (useconds_t)hostile_rnd(&state, 3000));
	}
	return NULL;
}

/* --- its life --- */

static void
area_add(struct shm_seg *seg, void *base, uint64_t len)
{
	/* mapped once more: the driver unmaps a peer's that has gone, or seems to */
	void *again = mremap(base, 0, len, MREMAP_MAYMOVE);

	if (again == MAP_FAILED)
		UTIL_DIE("a segment can't be mapped");
	areas[n_areas++] =
		(struct area){again, len, seg != NULL ? again : NULL, seg != NULL ? seg->n_slots : 0};
}

static void
meet(struct target *t, const uint8_t *core_addr)
{
	struct plx_wire_addr a;
	struct plx_addr dev = {.len = 0};

	if (plx_wire_addr_unpack(core_addr, &a) != 0)
		UTIL_DIE("the victim has no address");
	for (unsigned i = 0; i < a.n_devs; i++) {
		if (strcmp(a.devs[i].name, "shm") == 0) {
			dev.len = a.devs[i].len;
			memcpy(dev.bytes, a.devs[i].bytes, dev.len);
		}
	}
	if (plx_peer_get(q, &dev, &t->peer) != 0 || plx_peer_connect(t->peer) != 0)
		UTIL_DIE("the hostile one can't reach the victim");
	plx_peer_settle(t->peer);
	if (shm_peer(t->peer)->seg == NULL)
		UTIL_DIE("the victim hands over nothing");
	area_add(shm_peer(t->peer)->seg, shm_peer(t->peer)->seg, shm_peer(t->peer)->seg->len);
}

/* Its own table of windows, which the victim reads: where the library has mapped it to write. */
static void
windows_find(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	struct plx_seg_name name;
	char line[512], right[8];

	if (maps == NULL || plx_window_table_get(&name) != 0)
		UTIL_DIE("no table of windows");
	while (fgets(line, sizeof(line), maps) != NULL)
		if (sscanf(line, "%lx-%lx %7s", &from, &to, right) == 3 && strcmp(right, "rw-s") == 0 &&
			to - from == name.len && memcmp((void *)from, "PLXXNDW", 7) == 0)
			area_add(NULL, (void *)from, RTE_MIN(name.len, (uint64_t)4096));
	fclose(maps);
}

void
hostile_peer(struct round *round)
{
	static struct talk t; /* for its start: it has a worker, memory and keys as the others */

	r = round;
	rng = r->seed ^ 0x0b5e55ed;
	mine = &r->side[EVIL];
	victim = &r->side[VICTIM];
	talk_open(&t, r, EVIL);
	q = t.w->core->queues[0];
	scratch = calloc(1, SCRATCH);
	while (atomic_load(&victim->ready) == 0)
		usleep(1000);
	if (plx_wire_rkey_unpack(victim->theirs.key, &victims_key) != 0)
		UTIL_DIE("the victim's key");
	meet(&targets[0], victim->core_addr);
	meet(&targets[1], victim->cci_addr);
	area_add(shm_queue(q)->seg, shm_queue(q)->seg, shm_queue(q)->seg->len);
	windows_find();
	for (unsigned i = 0; i < r->n_vandals; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, vandal, (void *)(uintptr_t)(r->seed + 77 * (i + 1))) != 0)
			UTIL_DIE("no thread");
	}
	for (uint64_t n = 0;; n++) {
		atomic_fetch_add_explicit(&mine->turns, 1, memory_order_relaxed);
		hear();
		ways[rnd(RTE_DIM(ways))](&targets[rnd(3) == 0]);
		if (rnd(64) == 0)
			usleep((useconds_t)rnd(2000));
		if (n % 4096 == 0)
			plx_queue_control(q);
	}
}
