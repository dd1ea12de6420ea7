/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_wire.c - two live workers that talk, and messages that nobody meant to send
 *
 * Design notes
 * The input is a program: a byte says what is done, those behind it how. Half of the
 * commands are what an application does with either worker, the others put a message
 * of any opcode and bytes into a worker's queue as if its peer had sent it, or write
 * into the area that peers share. Numbers that nobody could guess - names of
 * operations, tokens, addresses - are put in on request, so that what lies behind
 * their checks is reached too.
 *
 * Every buffer is a block of its own and is freed as soon as its operation is over:
 * whoever touches it later is found.
 */
#include "fuzz.h"

#include "../fake_dev.h"
#include "ucp_int.h"
#include "ucp_mem.h"

#define N_OPS	    48
#define N_KEPT	    16
#define N_COMMANDS  400 /* of one input */
#define REGION_LEN  4096
#define MSG_LEN_MAX 40000
#define AM_ID	    3

struct op {
	bool live;
	uint8_t node;
	void *req;
	void *buf, *hdr;
};

struct kept {
	int node; /* -1: none */
	void *data;
	bool rndv;
};

struct node {
	ucp_worker_h w;
	ucp_ep_h ep[2]; /* to the other one, and to itself */
	ucp_rkey_h rkey[2];
	void *lent;
	unsigned am_what;
	ucp_tag_message_h msg; /* taken by a probe */
	size_t msg_len;
};

static ucp_context_h contexts[3];
static struct node node[2];
static struct op ops[N_OPS];
static struct kept kept[N_KEPT];
static uint8_t *region;
static ucp_mem_h region_mem;
static uint64_t sum; /* of all that was read, so that it is */

/* -- operations -- */

static struct op *
op_new(unsigned n, size_t buf_len, size_t hdr_len)
{
	for (unsigned i = 0; i < N_OPS; i++) {
		struct op *op = &ops[i];

		if (op->live)
			continue;
		*op = (struct op){.live = true, .node = (uint8_t)n, .buf = calloc(1, buf_len),
			.hdr = calloc(1, hdr_len)};
		FUZZ_CHECK(op->buf != NULL && op->hdr != NULL);
		fuzz_allow(op->buf, buf_len);
		return op;
	}
	return NULL;
}

static void
op_end(struct op *op)
{
	fuzz_forbid(op->buf);
	free(op->buf);
	free(op->hdr);
	op->live = false;
	op->req = NULL;
}

/* Nothing was posted. */
static void
op_drop(struct op *op)
{
	if (op != NULL)
		op_end(op);
}

static void
op_done(void *request, struct op *op)
{
	FUZZ_CHECK(op->live);
	op_end(op);
	ucp_request_free(request);
}

static void
done_send(void *request, ucs_status_t status, void *arg)
{
	(void)status;
	op_done(request, arg);
}

static void
done_tag(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)status;
	sum += info->length;
	op_done(request, arg);
}

static void
done_len(void *request, ucs_status_t status, size_t length, void *arg)
{
	(void)status;
	sum += length;
	op_done(request, arg);
}

static ucp_request_param_t
param_of(struct op *op, uint8_t how)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
			UCP_OP_ATTR_FIELD_USER_DATA, .user_data = op};

	if (how & 0x80)
		p.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	return p;
}

/* What a call returned: over already, or the callback will say so. */
static void
op_posted(struct op *op, void *ret)
{
	if (UCS_PTR_IS_PTR(ret)) {
		if (op->live)
			op->req = ret;
	} else {
		op_end(op);
	}
}

static void
ops_forget(unsigned n)
{
	for (unsigned i = 0; i < N_OPS; i++)
		if (ops[i].live && ops[i].node == n)
			op_end(&ops[i]);
}

/* -- what applications do -- */

static size_t
len_of(struct fuzz_in *in)
{
	static const uint16_t usual[] = {0, 1, 8, 100, 112, 113, 900, 1016, 1017, 4096, 8192, 8193,
		12288, 20000, 32769, MSG_LEN_MAX};
	uint8_t k = fuzz_u8(in);

	return k < 0xf0 ? usual[k & 15] : fuzz_u16(in) % MSG_LEN_MAX;
}

static void
do_tag_send(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = len_of(in);
	struct op *op = op_new(n - node, len, 0);
	ucp_request_param_t p = param_of(op, how);
	uint64_t tag = fuzz_u8(in) & 7;
	ucp_ep_h ep = n->ep[how >> 1 & 1];

	p.cb.send = done_send;
	if (op == NULL || ep == NULL) {
		op_drop(op);
		return;
	}
	op_posted(op, how & 4 ? ucp_tag_send_sync_nbx(ep, op->buf, len, tag, &p)
			      : ucp_tag_send_nbx(ep, op->buf, len, tag, &p));
}

static void
do_tag_recv(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = len_of(in);
	struct op *op = op_new(n - node, len, 0);
	ucp_request_param_t p = param_of(op, how);

	if (op == NULL)
		return;
	p.cb.recv = done_tag;
	op_posted(op, ucp_tag_recv_nbx(n->w, op->buf, len, fuzz_u8(in) & 7, how & 2 ? 0 : ~0ull, &p));
}

static void
do_probe(struct node *n, struct fuzz_in *in, uint8_t how)
{
	ucp_tag_recv_info_t info;
	bool take = (how & 4) != 0 && n->msg == NULL;
	ucp_tag_message_h msg;

	msg = ucp_tag_probe_nb(n->w, fuzz_u8(in) & 7, how & 2 ? 0 : ~0ull, take, &info);
	if (msg == NULL)
		return;
	sum += info.length;
	if (take) {
		n->msg = msg;
		n->msg_len = info.length;
	}
}

static void
do_msg_recv(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = how & 2 ? len_of(in) : RTE_MIN(n->msg_len, (size_t)MSG_LEN_MAX);
	ucp_request_param_t p;
	struct op *op;

	if (n->msg == NULL)
		return;
	op = op_new(n - node, len, 0);
	if (op == NULL)
		return;
	p = param_of(op, how);
	p.cb.recv = done_tag;
	op_posted(op, ucp_tag_msg_recv_nbx(n->w, op->buf, len, n->msg, &p));
	n->msg = NULL;
}

static void
do_cancel(struct node *n, struct fuzz_in *in, uint8_t how)
{
	struct op *op = &ops[fuzz_u8(in) % N_OPS];

	(void)how;
	if (op->live && op->req != NULL && op->node == n - node)
		ucp_request_cancel(n->w, op->req);
}

static void
do_am_send(struct node *n, struct fuzz_in *in, uint8_t how)
{
	static const uint32_t flags[] = {0, UCP_AM_SEND_FLAG_REPLY, UCP_AM_SEND_FLAG_EAGER,
		UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY};
	size_t len = len_of(in), hdr_len = len_of(in) % (PLX_WIRE_AM_HDR_MAX + 1);
	struct op *op = op_new(n - node, len, hdr_len);
	ucp_request_param_t p = param_of(op, how);
	ucp_ep_h ep = n->ep[how >> 1 & 1];

	p.cb.send = done_send;
	if (op == NULL || ep == NULL) {
		op_drop(op);
		return;
	}
	p.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	p.flags = flags[(how >> 2) % 5];
	op_posted(op, ucp_am_send_nbx(ep, AM_ID, op->hdr, hdr_len, op->buf, len, &p));
}

static void
am_fetch(struct node *n, void *data, size_t len, uint8_t how)
{
	struct op *op = op_new(n - node, len, 0);
	ucp_request_param_t p = param_of(op, how);

	if (op == NULL) {
		ucp_am_data_release(n->w, data);
		return;
	}
	p.cb.recv_am = done_len;
	op_posted(op, ucp_am_recv_data_nbx(n->w, data, op->buf, len, &p));
}

static struct kept *
kept_free(void)
{
	for (unsigned i = 0; i < N_KEPT; i++)
		if (kept[i].node < 0)
			return &kept[i];
	return NULL;
}

static void
am_reply(struct node *n, ucp_ep_h ep)
{
	struct op *op = op_new(n - node, 8, 8);
	ucp_request_param_t p = param_of(op, 0);

	if (op == NULL)
		return;
	p.cb.send = done_send;
	op_posted(op, ucp_am_send_nbx(ep, AM_ID, op->hdr, 8, op->buf, 8, &p));
}

static ucs_status_t
am_handler(void *arg, const void *hdr, size_t hdr_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	struct node *n = arg;
	bool rndv = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
	bool keep = rndv || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
	struct kept *k = kept_free();

	for (size_t i = 0; i < hdr_len; i++)
		sum += ((const uint8_t *)hdr)[i];
	for (size_t i = 0; i < len && !rndv; i++)
		sum += ((const uint8_t *)data)[i];
	switch (n->am_what) {
	case 1:
		if (!keep || k == NULL)
			return UCS_OK;
		*k = (struct kept){.node = (int)(n - node), .data = data, .rndv = rndv};
		return UCS_INPROGRESS;
	case 2:
		if (!rndv || len > MSG_LEN_MAX)
			return UCS_OK;
		am_fetch(n, data, len, 0x80);
		return UCS_INPROGRESS;
	case 3:
		return UCS_ERR_REJECTED;
	case 4:
		if (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)
			am_reply(n, param->reply_ep);
		return UCS_OK;
	default:
		return UCS_OK;
	}
}

static void
do_am_what(struct node *n, struct fuzz_in *in, uint8_t how)
{
	(void)in;
	n->am_what = (how >> 1) % 6;
}

static void
do_kept(struct node *n, struct fuzz_in *in, uint8_t how)
{
	struct kept *k = &kept[fuzz_u8(in) % N_KEPT];

	if (k->node != n - node)
		return;
	k->node = -1;
	if (k->rndv && (how & 2) != 0)
		am_fetch(n, k->data, len_of(in), how);
	else
		ucp_am_data_release(n->w, k->data);
}

static void
do_stream_send(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = len_of(in);
	struct op *op = op_new(n - node, len, 0);
	ucp_request_param_t p = param_of(op, how);
	ucp_ep_h ep = n->ep[how >> 1 & 1];

	p.cb.send = done_send;
	if (op == NULL || ep == NULL) {
		op_drop(op);
		return;
	}
	op_posted(op, ucp_stream_send_nbx(ep, op->buf, len, &p));
}

static void
do_stream_recv(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = len_of(in), got;
	struct op *op = op_new(n - node, len, 0);
	ucp_request_param_t p = param_of(op, how);
	ucp_ep_h ep = n->ep[how >> 1 & 1];

	p.cb.recv_stream = done_len;
	if (op == NULL || ep == NULL) {
		op_drop(op);
		return;
	}
	p.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	p.flags = how & 4 ? UCP_STREAM_RECV_FLAG_WAITALL : 0;
	op_posted(op, ucp_stream_recv_nbx(ep, op->buf, len, &got, &p));
}

static void
lent_return(struct node *n)
{
	if (n->lent != NULL)
		ucp_stream_data_release(n->ep[0], n->lent);
	n->lent = NULL;
}

static void
do_stream_lend(struct node *n, struct fuzz_in *in, uint8_t how)
{
	ucp_stream_poll_ep_t polled[2];
	size_t len = 0;
	void *data;

	(void)in;
	if (how & 2)
		(void)ucp_stream_worker_poll(n->w, polled, 2, 0);
	if (n->lent != NULL || n->ep[0] == NULL) {
		lent_return(n);
		return;
	}
	data = ucp_stream_recv_data_nb(n->ep[0], &len);
	if (!UCS_PTR_IS_PTR(data))
		return;
	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)data)[i];
	n->lent = data;
}

static void
do_rma(struct node *n, struct fuzz_in *in, uint8_t how)
{
	size_t len = len_of(in) % (REGION_LEN + 2), at = fuzz_u16(in) % (REGION_LEN + 8);
	unsigned to = how >> 1 & 1;
	struct op *op = op_new(n - node, RTE_MAX(len, (size_t)16), 16);
	ucp_request_param_t p = param_of(op, how);
	uint64_t remote = (uintptr_t)region + at;

	p.cb.send = done_send;
	if (op == NULL || n->ep[to] == NULL || n->rkey[to] == NULL) {
		op_drop(op);
		return;
	}
	switch (how >> 2 & 3) {
	case 0:
		op_posted(op, ucp_put_nbx(n->ep[to], op->buf, len, remote, n->rkey[to], &p));
		break;
	case 1:
		op_posted(op, ucp_get_nbx(n->ep[to], op->buf, len, remote, n->rkey[to], &p));
		break;
	default:
		p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
		p.datatype = ucp_dt_make_contig(how & 4 ? 8 : 4);
		p.reply_buffer = op->hdr;
		op_posted(op, ucp_atomic_op_nbx(n->ep[to], (how >> 4 & 7) % UCP_ATOMIC_OP_LAST,
				      op->buf, 1, remote & ~7ull, n->rkey[to], &p));
	}
}

static void
do_flush(struct node *n, struct fuzz_in *in, uint8_t how)
{
	struct op *op = op_new(n - node, 0, 0);
	ucp_request_param_t p = param_of(op, how);

	(void)in;
	p.cb.send = done_send;
	if (op == NULL || n->ep[how >> 1 & 1] == NULL) {
		op_drop(op);
		return;
	}
	op_posted(op, how & 4 ? ucp_worker_flush_nbx(n->w, &p)
			      : ucp_ep_flush_nbx(n->ep[how >> 1 & 1], &p));
}

static void
do_ep_close(struct node *n, struct fuzz_in *in, uint8_t how)
{
	unsigned to = how >> 1 & 1;
	struct op *op;
	ucp_request_param_t p;

	(void)in;
	if (n->ep[to] == NULL)
		return;
	op = op_new(n - node, 0, 0);
	if (op == NULL)
		return;
	if (to == 0)
		lent_return(n);
	p = param_of(op, how);
	p.cb.send = done_send;
	p.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	p.flags = how & 4 ? UCP_EP_CLOSE_FLAG_FORCE : 0;
	if (n->rkey[to] != NULL) { /* its operations may be in flight; see do_rkey */
		op_end(op);
		return;
	}
	op_posted(op, ucp_ep_close_nbx(n->ep[to], &p));
	n->ep[to] = NULL;
}

static void
on_ep_err(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
}

static void
do_ep_open(struct node *n, struct fuzz_in *in, uint8_t how)
{
	unsigned to = how >> 1 & 1;
	struct node *peer = to == 0 ? &node[n == node] : n;
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER |
			UCP_EP_PARAM_FIELD_FLAGS,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER, .err_handler.cb = on_ep_err,
		.flags = how & 4 ? UCP_EP_PARAMS_FLAGS_NO_LOOPBACK : 0};
	ucp_address_t *addr;
	size_t len;

	(void)in;
	if (n->ep[to] != NULL || peer->w == NULL ||
		ucp_worker_get_address(peer->w, &addr, &len) != UCS_OK)
		return;
	p.address = addr;
	if (ucp_ep_create(n->w, &p, &n->ep[to]) != UCS_OK)
		n->ep[to] = NULL;
	ucp_worker_release_address(peer->w, addr);
}

/* A key for the region; it goes only when nothing is in flight, as the API wants. */
static void
do_rkey(struct node *n, struct fuzz_in *in, uint8_t how)
{
	unsigned to = how >> 1 & 1;
	size_t len;
	void *buf;

	(void)in;
	if (n->rkey[to] != NULL) {
		for (unsigned i = 0; i < N_OPS; i++)
			if (ops[i].live)
				return;
		ucp_rkey_destroy(n->rkey[to]);
		n->rkey[to] = NULL;
		return;
	}
	if (n->ep[to] == NULL || ucp_rkey_pack(n->w->context, region_mem, &buf, &len) != UCS_OK)
		return;
	if (ucp_ep_rkey_unpack(n->ep[to], buf, &n->rkey[to]) != UCS_OK)
		n->rkey[to] = NULL;
	ucp_rkey_buffer_release(buf);
}

/* -- what peers do -- */

struct fix {
	uint8_t id[2], addr, len, conn, where, tag, msg; /* where they stand, and one */
};

#define AT(s, f) (offsetof(struct plx_wire_##s, f) + 1)

static const struct fix fixes[PLX_WIRE_N] = {
	[PLX_WIRE_EAGER] = {.tag = AT(eager, tag)},
	[PLX_WIRE_SYNC] = {.tag = AT(sync, tag), .id = {AT(sync, sreq)}},
	[PLX_WIRE_FIRST] = {.tag = AT(first, tag), .len = AT(first, len), .msg = AT(first, msg_id)},
	[PLX_WIRE_FRAG] = {.len = AT(frag, offset), .msg = AT(frag, msg_id)},
	[PLX_WIRE_RTS] = {.tag = AT(rts, tag), .len = AT(rts, len), .addr = AT(rts, addr),
		.id = {AT(rts, sreq)}},
	[PLX_WIRE_ACK] = {.id = {AT(ack, sreq)}},
	[PLX_WIRE_HELP] = {.id = {AT(help, sreq), AT(help, rreq)}, .addr = AT(help, addr),
		.len = AT(help, len)},
	[PLX_WIRE_PULL] = {.id = {AT(pull, sreq), AT(pull, rreq)}, .len = AT(pull, len)},
	[PLX_WIRE_DATA] = {.id = {AT(data, rreq)}, .len = AT(data, offset)},
	[PLX_WIRE_CANCEL] = {.id = {AT(cancel, rreq)}, .msg = AT(cancel, msg_id)},
	[PLX_WIRE_PUT] = {.id = {AT(put, id)}, .where = AT(put, to)},
	[PLX_WIRE_GET] = {.id = {AT(get, id)}, .where = AT(get, from), .len = AT(get, len)},
	[PLX_WIRE_ATOMIC] = {.id = {AT(atomic, id)}, .where = AT(atomic, at)},
	[PLX_WIRE_RMA_ACK] = {.id = {AT(rma_ack, id)}},
	[PLX_WIRE_RMA_DATA] = {.id = {AT(rma_data, id)}, .len = AT(rma_data, offset)},
	[PLX_WIRE_SHARE] = {.tag = AT(share, cell)},
	[PLX_WIRE_RMA_BATCH] = {.tag = AT(rma_batch, gen), .where = sizeof(struct plx_wire_rma_batch) + 1},
	[PLX_WIRE_RMA_BATCH_DONE] = {.msg = AT(rma_batch_done, id)},
	[PLX_WIRE_EP_CLOSE] = {.conn = AT(ep_close, conn_id)},
	[PLX_WIRE_AM] = {.conn = AT(am, conn_id)},
	[PLX_WIRE_AM_FIRST] = {.conn = AT(am_first, am.conn_id), .len = AT(am_first, len),
		.msg = AT(am_first, msg_id)},
	[PLX_WIRE_AM_RTS] = {.conn = AT(am_rts, am.conn_id), .len = AT(am_rts, len),
		.addr = AT(am_rts, addr), .id = {AT(am_rts, sreq)}, .msg = AT(am_rts, msg_id)},
	[PLX_WIRE_STREAM] = {.conn = AT(stream, conn_id)},
	[PLX_WIRE_STREAM_RTS] = {.conn = AT(stream_rts, conn_id), .len = AT(stream_rts, len),
		.addr = AT(stream_rts, addr), .id = {AT(stream_rts, sreq)}},
	[PLX_WIRE_GRANT] = {.conn = AT(grant, conn_id)},
	[PLX_WIRE_INTO] = {.id = {AT(into, sreq), AT(into, rreq)}, .addr = AT(into, addr),
		.len = AT(into, len)},
	[PLX_WIRE_DONE] = {.id = {AT(done, rreq)}},
	[PLX_WIRE_WHERE] = {.id = {AT(pull, sreq), AT(pull, rreq)}, .len = AT(pull, len)},
	[PLX_WIRE_LIST] = {.id = {AT(list, rreq)}, .len = AT(list, offset)},
};

/* The name of one of the operations that wait, by the number that stands there. */
static void
fix_id(uint8_t *p, const struct plx_req_ids *ids)
{
	uint32_t k, n = 0;
	struct plx_wire_id id;

	memcpy(&id, p, sizeof(id));
	for (uint32_t i = 1; i < ids->n; i++)
		n += ids->v[i].req != NULL;
	if (n == 0)
		return;
	k = id.index % n;
	for (uint32_t i = 1; i < ids->n; i++) {
		if (ids->v[i].req == NULL || k-- != 0)
			continue;
		id = (struct plx_wire_id){i, ids->v[i].gen};
		memcpy(p, &id, sizeof(id));
		return;
	}
}

static void
fix_u32(uint8_t *p, uint32_t mask)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	v &= mask;
	memcpy(p, &v, sizeof(v));
}

static void
fix_u64(uint8_t *p, uint64_t mask, uint64_t base)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v = base + (v & mask);
	memcpy(p, &v, sizeof(v));
}

static void
fix_where(uint8_t *p)
{
	struct plx_wire_where w;

	memcpy(&w, p, sizeof(w));
	w.index = region_mem->key.index;
	w.token = region_mem->key.token;
	w.addr = (uintptr_t)region + w.addr % (REGION_LEN + 16);
	memcpy(p, &w, sizeof(w));
}

static void
fix(uint8_t *h, uint8_t op, uint8_t which, struct plx_worker *to, struct plx_worker *from)
{
	const struct fix *f = &fixes[op];

	for (unsigned i = 0; i < 2; i++)
		if (f->id[i] != 0 && (which & 1 << i) != 0)
			fix_id(h + f->id[i] - 1, op >= PLX_WIRE_PUT && op <= PLX_WIRE_RMA_DATA
					? &to->rma.ids : i == 0 || (which & 0x80) ? &to->rndv.ids
										  : &from->rndv.ids);
	if (f->where != 0 && (which & 4) != 0)
		fix_where(h + f->where - 1);
	if (f->len != 0 && (which & 8) != 0)
		fix_u64(h + f->len - 1, 0xffff, 0);
	if (f->addr != 0 && (which & 16) != 0)
		fix_u64(h + f->addr - 1, 0x3ff, (uintptr_t)region);
	if (f->conn != 0 && (which & 32) != 0)
		fix_u32(h + f->conn - 1, PLX_EP_CROSSED | 1);
	if (f->tag != 0 && (which & 64) != 0)
		fix_u64(h + f->tag - 1, 7, 0);
	if (f->msg != 0 && (which & 64) != 0)
		fix_u32(h + f->msg - 1, 3);
}

static struct plx_queue *
queue_of(const struct node *n)
{
	return n->w->core->queues[0];
}

static void
do_inject(struct node *n, struct fuzz_in *in, uint8_t how)
{
	struct node *from = how & 2 ? n : &node[n == node];
	uint8_t op = fuzz_u8(in), which = fuzz_u8(in), hdr_len;
	uint8_t msg[PLX_WIRE_HDR_MAX + 256] = {0};
	size_t data_len = fuzz_u8(in);

	if (from->w == NULL)
		return;
	if ((how & 4) == 0)
		op = op % PLX_WIRE_N;
	hdr_len = plx_wire_hdr_len[op];
	fuzz_bytes(in, msg, hdr_len);
	fuzz_bytes(in, msg + hdr_len, how & 8 ? data_len : data_len & 15);
	if (op < PLX_WIRE_N)
		fix(msg, op, which, n->w->core, from->w->core);
	if (op >= PLX_WIRE_AM && op <= PLX_WIRE_AM_RTS && (how & 16) == 0) {
		const uint16_t id = AM_ID;

		memcpy(msg, &id, sizeof(id));
		msg[3] &= 0x80; /* of hdr_len: a short header */
	}
	fake_inject(queue_of(from), queue_of(n), op, msg,
		how & 0x20 ? (uint32_t)data_len % (hdr_len + 1u)
			   : (uint32_t)(hdr_len + (how & 8 ? data_len : data_len & 15)));
}

static void
do_scribble(struct node *n, struct fuzz_in *in, uint8_t how)
{
	struct plx_queue *q = queue_of(n);
	uint16_t at = fuzz_u16(in) & 0x1f8;
	uint64_t v;

	fuzz_bytes(in, &v, sizeof(v));
	if (how & 2)
		v &= UINT64_C(0x0000000f0000000f);
	if (how & 4)
		at += PLX_SHARED_RNDV;
	if (q->shared != NULL && at + sizeof(v) <= q->shared_len)
		memcpy((char *)q->shared + at, &v, sizeof(v));
}

static void
do_turns(struct node *n, struct fuzz_in *in, uint8_t how)
{
	unsigned turns = 1 + (how >> 2 & 15);

	(void)in;
	for (unsigned i = 0; i < turns; i++) {
		ucp_worker_progress(n->w);
		if ((how & 2) != 0 && node[n == node].w != NULL)
			ucp_worker_progress(node[n == node].w);
	}
}

static void
do_check(struct node *n, struct fuzz_in *in, uint8_t how)
{
	(void)in;
	(void)how;
	n->w->core->check.fn(&n->w->core->check, rte_rdtsc());
}

static void
do_block(struct node *n, struct fuzz_in *in, uint8_t how)
{
	(void)in;
	fake_block(queue_of(n), (how & 2) != 0);
}

static void
node_close(struct node *n)
{
	if (n->w == NULL)
		return;
	lent_return(n);
	for (unsigned i = 0; i < N_KEPT; i++) {
		if (kept[i].node != n - node)
			continue;
		ucp_am_data_release(n->w, kept[i].data);
		kept[i].node = -1;
	}
	for (unsigned i = 0; i < 2; i++)
		if (n->rkey[i] != NULL)
			ucp_rkey_destroy(n->rkey[i]);
	fake.all_left = true; /* cursors may hold any value: chunks that they claim are not waited for */
	ucp_worker_destroy(n->w);
	fake.all_left = false;
	memset(n, 0, sizeof(*n));
	ops_forget(n - node);
}

/* The second one dies, at most once. */
static void
do_kill(struct node *n, struct fuzz_in *in, uint8_t how)
{
	(void)in;
	if (n != &node[1] || (how & 0x1c) != 0x1c)
		return;
	fuzz_kill(queue_of(n));
	node_close(n);
}

static void (*const commands[])(struct node *n, struct fuzz_in *in, uint8_t how) = {
	do_turns, do_inject, do_inject, do_inject, do_inject, do_inject, do_tag_send, do_tag_recv,
	do_probe, do_msg_recv, do_cancel, do_am_send, do_am_what, do_kept, do_stream_send,
	do_stream_recv, do_stream_lend, do_rma, do_flush, do_ep_close, do_ep_open, do_rkey,
	do_scribble, do_check, do_block, do_kill, do_turns, do_turns, do_turns, do_inject,
	do_inject, do_inject,
};

/* -- an input -- */

static void
node_open(struct node *n, ucp_context_h ctx)
{
	ucp_worker_params_t wp = {.field_mask = 0};
	ucp_am_handler_param_t am = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
			UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
		.id = AM_ID, .cb = am_handler, .arg = n,
		.flags = n == node ? UCP_AM_FLAG_PERSISTENT_DATA : 0};

	FUZZ_CHECK(ucp_worker_create(ctx, &wp, &n->w) == UCS_OK);
	FUZZ_CHECK(ucp_worker_set_am_recv_handler(n->w, &am) == UCS_OK);
}

static void
device_set(uint8_t a, uint8_t b)
{
	static const uint32_t mtus[] = {1024, 256, 4096, 1024};

	fake_reset(a | b << 8);
	fake.mtu = mtus[a & 3];
	fake.depth = a & 4 ? 6 : 0;
	fake.full_percent = a & 8 ? 30 : 0;
	fake.again_percent = a & 16 ? 30 : 0;
	fake.refuse_percent = a & 32 ? 20 : 0;
	fake.short_percent = a & 64 ? 50 : 0;
	if (b & 1)
		fake.caps &= ~PLX_DEV_GET;
	if (b & 2)
		fake.caps &= ~PLX_DEV_PUT;
	if (b & 4)
		fake.caps &= ~PLX_DEV_SHARED;
	fake.delay_max = b & 8 ? 3 : 0;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const plain[][2] = {{"rndv.chunk", "4k"}, {"rndv.split_min", "4k"},
		{"worker.wait", "spin"}, {"worker.peer_check_ms", "60000"}};
	static const char *const small[][2] = {{"rndv.chunk", "4k"}, {"rndv.split_min", "4k"},
		{"worker.wait", "spin"}, {"worker.peer_check_ms", "60000"},
		{"rma.scheme", "message"}, {"rndv.scheme", "frag"}, {"proto.eager_max", "512"},
		{"tag.unexpected_max", "4k"}};
	static const char *const device[][2] = {{"rndv.chunk", "4k"}, {"rndv.split_min", "4k"},
		{"worker.wait", "spin"}, {"worker.peer_check_ms", "60000"},
		{"rma.scheme", "device"}, {"rndv.scheme", "get"}};

	(void)argc;
	(void)argv;
	fuzz_start();
	contexts[0] = fuzz_context("fuzz", plain, RTE_DIM(plain));
	contexts[1] = fuzz_context("fuzz", small, RTE_DIM(small));
	contexts[2] = fuzz_context("fuzz", device, RTE_DIM(device));
	return 0;
}

static void
region_open(ucp_context_h ctx)
{
	ucp_mem_map_params_t p = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			UCP_MEM_MAP_PARAM_FIELD_LENGTH, .length = REGION_LEN};

	region = aligned_alloc(64, REGION_LEN);
	FUZZ_CHECK(region != NULL);
	memset(region, 0, REGION_LEN);
	p.address = region;
	FUZZ_CHECK(ucp_mem_map(ctx, &p, &region_mem) == UCS_OK);
	fuzz_allow(region, REGION_LEN);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	uint8_t a = fuzz_u8(&in), b = fuzz_u8(&in);
	ucp_context_h ctx = contexts[(b >> 4) % 3];

	device_set(a, b);
	for (unsigned i = 0; i < N_KEPT; i++)
		kept[i].node = -1;
	region_open(ctx);
	for (unsigned i = 0; i < 2; i++)
		node_open(&node[i], ctx);
	for (unsigned i = 0; i < 4; i++)
		do_ep_open(&node[i & 1], &in, (uint8_t)(i & 2));
	for (unsigned i = 0; i < N_COMMANDS && fuzz_more(&in); i++) {
		uint8_t cmd = fuzz_u8(&in), how = fuzz_u8(&in);
		struct node *n = &node[how & 1];

		if (n->w != NULL)
			commands[cmd % RTE_DIM(commands)](n, &in, how);
	}
	for (unsigned i = 0; i < 2; i++)
		if (node[i].w != NULL)
			do_turns(&node[i], &in, 0x22);
	for (unsigned i = 0; i < 2; i++)
		node_close(&node[i]);
	FUZZ_CHECK(ucp_mem_unmap(ctx, region_mem) == UCS_OK);
	fuzz_forbid_all();
	free(region);
	return 0;
}
