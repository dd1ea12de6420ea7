/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_list.c - lists of pieces of memory, and copies between two buffers in pieces
 *
 * Design notes
 * - A sender that helps gets the receiver's pieces behind HELP. A receiver gets the sender's behind RTS, if there
 *   are no more than a list has; a message that waits for its receive does not keep them, and they are asked for.
 * - A list is a peer's: it is checked when it comes, and a bad address in it is an error of the
 *   device's copy, as that of an announcement is.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "rndv_int.h"

#define LIST_BURST 32 /* pieces that one call of the device moves */

/* @return the bytes of a list of n pieces, or 0: it is none */
static uint64_t
list_check(const struct plx_wire_piece *p, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		if (p[i].len == 0 || p[i].len > UINT64_MAX - p[i].addr || __builtin_add_overflow(sum, p[i].len, &sum))
			return 0;
	return sum;
}

/* @return a list of the pieces that a message contains, of at most max bytes, or NULL */
static struct plx_rndv_list *
list_get(struct plx_rndv *r, const uint8_t *data, uint32_t len, uint64_t max)
{
	unsigned n = len / sizeof(struct plx_wire_piece);
	struct plx_rndv_list *l;

	if (n == 0 || n > PLX_RNDV_LIST_MAX)
		return NULL;
	l = r->lists != NULL ? plx_pool_get(r->lists) : NULL;
	if (l == NULL)
		return NULL;
	memcpy(l->p, data, n * sizeof(l->p[0]));
	l->n = n;
	l->i = 0;
	l->start = l->at = 0;
	l->len = list_check(l->p, n);
	if (l->len != 0 && l->len <= max)
		return l;
	plx_pool_put(r->lists, l);
	return NULL;
}

int
rndv_list_take(struct plx_rndv *r, struct plx_req *req, const uint8_t *data, uint32_t len)
{
	struct plx_rndv_rx *v = plx_rndv_rx(req);

	v->list = list_get(r, data, len, v->copy - v->offset);
	if (v->list == NULL)
		return -EBADMSG;
	v->list->start = v->offset;
	return 0;
}

/* Make the piece with the byte at offset of the message the present one. @return bytes before it in that piece */
static uint64_t
list_seek(struct plx_rndv_list *l, uint64_t offset)
{
	offset -= l->start;
	if (offset < l->at) {
		l->i = 0;
		l->at = 0;
	}
	while (offset - l->at >= l->p[l->i].len)
		l->at += l->p[l->i++].len;
	return offset - l->at;
}

/* @return how many of our pieces have the len bytes from offset on, or the first of them */
static unsigned
own_pieces(const struct plx_req *req, uint64_t offset, uint64_t len, struct plx_wire_piece *p, unsigned max)
{
	if (req->dt != NULL && req->dt->pieces != NULL)
		return req->dt->pieces(req->dt, offset, len, p, max);
	*p = (struct plx_wire_piece){(uintptr_t)req->buf + offset, len};
	return 1;
}

/* Pair our n pieces, from *offset of the message on, with those of the peer. @return how many pairs; offset: of what follows */
static unsigned
list_pair(struct plx_rndv_list *l, uint64_t *offset, const struct plx_wire_piece *own, unsigned n, uint8_t mem_type,
	struct plx_rma_piece pairs[LIST_BURST])
{
	uint64_t skip = list_seek(l, *offset), done = 0;
	const struct plx_wire_piece *there = &l->p[l->i], *end = own + n;
	unsigned k;

	for (k = 0; k < LIST_BURST && own < end; k++) {
		uint64_t len = RTE_MIN(own->len - done, there->len - skip);

		pairs[k] = (struct plx_rma_piece){(void *)(uintptr_t)(own->addr + done), there->addr + skip, len, mem_type};
		*offset += len;
		done += len;
		skip += len;
		if (done == own->len) {
			own++;
			done = 0;
		}
		if (skip == there->len) {
			there++;
			skip = 0;
		}
	}
	return k;
}

/* Move all of them, or none is known to be. */
static int
list_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *p, unsigned n)
{
	unsigned done = n > 1 ? plx_peer_rma_burst(peer, put, p, n) : 0;

	for (; done < n; done++) {
		const struct plx_rma_op op = {.peer = peer, .local = p[done].local, .remote = p[done].remote,
			.len = p[done].len, .put = put, .mem_type = p[done].mem_type};
		int rc = plx_peer_rma(&op);

		if (rc != 0)
			return rc;
	}
	return 0;
}

int
rndv_list_copy(struct plx_peer *peer, struct plx_req *req, struct plx_rndv_list *list, bool put, uint64_t offset,
	uint64_t len)
{
	struct plx_wire_piece own[LIST_BURST];
	struct plx_rma_piece pairs[LIST_BURST];
	uint8_t mem_type = plx_req_mem_type(req);
	uint64_t end = offset + len;
	int rc = 0;

	while (offset < end && rc == 0) {
		unsigned n = own_pieces(req, offset, end - offset, own, LIST_BURST);

		n = list_pair(list, &offset, own, n, mem_type, pairs);
		rc = list_burst(peer, put, pairs, n);
	}
	return rc;
}

unsigned
rndv_list_fill(const struct plx_req *req, const struct plx_ep *ep, size_t hdr_len, uint64_t *offset, uint64_t end,
	struct plx_wire_piece *p)
{
	unsigned max = RTE_MIN((ep->peer->mtu - hdr_len) / sizeof(*p), PLX_RNDV_LIST_MAX);
	unsigned n = *offset < end && max > 0 ? own_pieces(req, *offset, end - *offset, p, max) : 0;

	for (unsigned i = 0; i < n; i++)
		*offset += p[i].len;
	return n;
}

int
rndv_list_announce(const struct plx_req *req, struct plx_tx *tx)
{
	const struct plx_ep *ep = plx_ep_send(req)->ep;
	struct plx_wire_piece p[PLX_RNDV_LIST_MAX];
	uint64_t offset = 0;

	if (req->dt != NULL && req->dt->pieces != NULL && (~tx->peer->caps & (PLX_DEV_GET | PLX_DEV_SHARED)) == 0) {
		tx->data = p;
		tx->len = rndv_list_fill(req, ep, tx->hdr_len, &offset, req->len, p) * sizeof(p[0]);
		if (offset < req->len)
			tx->len = 0;
	}
	return plx_peer_tx(tx);
}

int
rndv_list_help(struct plx_rndv_rx *v, const struct plx_req *req, const struct plx_wire_help *h)
{
	struct plx_wire_piece p[PLX_RNDV_LIST_MAX];
	struct plx_tx tx = {.peer = v->ep->peer, .hdr = h, .hdr_len = sizeof(*h), .op = PLX_WIRE_HELP, .data = p};
	uint64_t offset = 0;

	tx.len = rndv_list_fill(req, v->ep, sizeof(*h), &offset, v->copy, p) * sizeof(p[0]);
	if (offset < v->copy || !plx_ep_open(v->ep))
		return -EAGAIN;
	return plx_peer_tx(&tx);
}

struct plx_rndv_list *
rndv_list_of_help(struct plx_rndv *r, const struct plx_wire_help *h, const uint8_t *data, uint32_t len)
{
	const struct plx_wire_piece whole = {.addr = h->addr, .len = h->len};
	struct plx_rndv_list *l = len != 0 ? list_get(r, data, len, h->len)
					   : list_get(r, (const uint8_t *)&whole, sizeof(whole), h->len);

	if (l != NULL && l->len != h->len)
		rndv_list_put(r, &l);
	return l;
}
