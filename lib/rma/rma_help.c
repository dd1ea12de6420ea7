/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_help.c - the target's part of what both sides copy
 *
 * Design notes
 * - The target keeps no state of an operation, and checks all of a cell: it is input.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "plx_cursor.h"
#include "rma_int.h"

/* A description, read once: the initiator may still write. */
struct share_of {
	uint64_t addr, buf; /* addresses here and in the initiator's process */
	uint64_t number;    /* of the list at buf */
	uint32_t len, chunk;
	uint8_t kind;
	bool blocks;
	struct plx_region_key key;
};

static struct share_of
share_of(const struct plx_rma *r, struct plx_rma_share *s)
{
	uint32_t kind = atomic_load_explicit(&s->kind, memory_order_relaxed);

	return (struct share_of){
		.kind = (uint8_t)kind,
		.blocks = kind >> 8 != 0,
		.addr = atomic_load_explicit(&s->addr, memory_order_relaxed),
		.buf = atomic_load_explicit(&s->buf, memory_order_relaxed),
		.number = atomic_load_explicit(&s->token, memory_order_relaxed),
		.len = atomic_load_explicit(&s->len, memory_order_relaxed),
		.chunk = atomic_load_explicit(&s->chunk, memory_order_relaxed),
		.key = rma_region_key(r, atomic_load_explicit(&s->index, memory_order_relaxed),
			atomic_load_explicit(&s->token, memory_order_relaxed)),
	};
}

/* Add to a word of the operation, unless the initiator has given up meanwhile. */
static void
share_tell(_Atomic uint64_t *word, uint32_t gen, uint32_t n)
{
	uint64_t v = atomic_load_explicit(word, memory_order_relaxed);

	/* pairs with the acquire in rma_share_step(), share_bad() */
	while (v >> 32 == gen && !atomic_compare_exchange_weak_explicit(word, &v, v + n, memory_order_release,
		memory_order_relaxed))
		;
}

/* A chunk of the initiator's memory and ours. @return as plx_peer_rma() */
static int
bytes_copy(struct plx_ep *ep, const struct share_of *h, uint32_t at, uint32_t n)
{
	return rma_dev_move(ep, h->kind == PLX_RMA_GET ? PLX_RMA_PUT : PLX_RMA_GET, (void *)(uintptr_t)(h->addr + at),
		h->buf + at, n);
}

/*
 * Read n blocks, once: the initiator may still write.
 * @return 0; -ESTALE the list is another one now; or as plx_peer_rma()
 */
static int
list_read(struct plx_ep *ep, const struct share_of *h, uint32_t at, uint32_t n, struct plx_rma_block *b)
{
	uint64_t number = 0;
	struct plx_rma_piece v[] = {
		{b, h->buf + offsetof(struct plx_rma_list, block[0]) + at * sizeof(b[0]), n * sizeof(b[0]),
			UCS_MEMORY_TYPE_HOST},
		{&number, h->buf + offsetof(struct plx_rma_list, number), sizeof(number), UCS_MEMORY_TYPE_HOST},
	};
	unsigned k = RTE_DIM(v);
	int rc = rma_pieces_move(ep, false, v, &k);

	return rc != 0 ? rc : number == h->number ? 0 : -ESTALE;
}

/*
 * A chunk of n blocks.
 * @param left bytes that this message may still move here; less what is moved
 * @return 0 or -errno
 */
static int
blocks_copy(struct plx_rma *r, struct plx_ep *ep, const struct share_of *h, uint32_t at, uint32_t n, uint64_t *left)
{
	struct plx_rma_block b[PLX_RMA_BLOCKS_CHUNK];
	struct plx_rma_piece v[PLX_RMA_BLOCKS_CHUNK];
	struct plx_region_key key;
	unsigned held, k = n;
	int rc = list_read(ep, h, at, n, b);

	if (rc != 0)
		return rc;
	for (held = 0; held < n; held++) {
		key = rma_region_key(r, b[held].index, b[held].token);
		if (b[held].len > *left || plx_region_hold(&key, b[held].addr, b[held].len, rma_rights_of(h->kind)) != 0)
			break;
		*left -= b[held].len;
		v[held] = (struct plx_rma_piece){(void *)(uintptr_t)b[held].addr, b[held].local, b[held].len,
			UCS_MEMORY_TYPE_HOST};
	}
	rc = held == n ? rma_pieces_move(ep, h->kind == PLX_RMA_GET, v, &k) : -EINVAL;
	while (held-- > 0) {
		key = rma_region_key(r, b[held].index, b[held].token);
		plx_region_drop(&key);
	}
	return rc;
}

static void
share_copy(struct plx_rma *r, struct plx_ep *ep, struct plx_rma_share *s, uint32_t gen, const struct share_of *h)
{
	uint32_t i, n = (h->len + h->chunk - 1) / h->chunk, left = n; /* whatever is stored there meanwhile */
	uint64_t bytes = PLX_RMA_SHARE_MAX;

	while (left-- != 0 && (i = plx_cursor_take(&s->next, gen, n, true)) != PLX_CURSOR_NONE) {
		uint32_t at = i * h->chunk, len = RTE_MIN(h->chunk, h->len - at);

		if ((h->blocks ? blocks_copy(r, ep, h, at, len, &bytes) : bytes_copy(ep, h, at, len)) != 0) {
			share_tell(&s->bad, gen, 1u << i); /* the initiator finds out why */
			return;
		}
		share_tell(&s->done, gen, 1);
	}
}

/* @return whether a description is one that may be followed; blocks are proven when they are read */
static bool
share_hold(const struct share_of *h)
{
	if (h->kind > PLX_RMA_GET || h->len == 0 || h->chunk == 0 || (h->len - 1) / h->chunk >= PLX_RMA_SHARE_N)
		return false;
	if (h->blocks)
		return h->len <= PLX_RMA_BLOCKS_N && h->chunk <= PLX_RMA_BLOCKS_CHUNK;
	return h->len <= PLX_RMA_SHARE_MAX && h->chunk >= PLX_RMA_SHARE_CHUNK &&
	       plx_region_hold(&h->key, h->addr, h->len, rma_rights_of(h->kind)) == 0;
}

static void
share_help(struct plx_rma *r, struct plx_ep *ep, struct plx_rma_cell *c)
{
	struct plx_rma_share *s = &c->share;
	/* pairs with the release in part_begin() */
	uint32_t gen = (uint32_t)(atomic_load_explicit(&s->next, memory_order_acquire) >> 32);
	struct share_of h = share_of(r, s);
	bool get = h.kind == PLX_RMA_GET;

	if (!rma_cell_is_of(c, ep->peer) || !share_hold(&h)) {
		PLX_STAT_INC(r->stat.refused);
		return; /* the initiator copies alone */
	}
	share_copy(r, ep, s, gen, &h);
	if (!h.blocks)
		plx_region_drop(&h.key);
	PLX_STAT_ADD(r->stat.gets, get);
	PLX_STAT_ADD(r->stat.puts, !get);
}

void
plx_rma_on_share(struct plx_rma *r, struct plx_ep *ep, const struct plx_wire_share *h)
{
	const struct plx_queue *q = ep->peer->q;
	struct plx_rma_cell *c = plx_rma_cell_at(q->shared, q->shared_len, h->cell);

	if (c == NULL)
		PLX_STAT_INC(r->stat.drop_bad_range);
	/* To be reached, the initiator has to be connected as well. */
	else if (atomic_load_explicit(&c->state, memory_order_relaxed) == PLX_RMA_CELL_SHARED && plx_ep_connect(ep) == 0)
		share_help(r, ep, c);
}
