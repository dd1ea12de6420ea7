/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hostile_victim.c - a program that works while a hostile peer talks to it
 *
 * Design notes
 * It does with the hostile one all that a program may do: it receives what comes, into buffers of any length,
 * each in memory of its own so that the sanitizer sees its ends; it answers, sends, puts, gets, closes and
 * begins again. It keeps a bounded number of operations open, as a program would.
 */
#include "hostile.h"

#include <poll.h>

#include "ucp_int.h"

#define OPEN_MAX 48
#define OLD_NS   200000000ull

/* One operation with the hostile one. */
struct deal {
	struct op op;
	uint8_t *buf;
	uint64_t since;
	void *am; /* data that is kept, of an active message */
	bool recv;
};

static struct talk t;
static struct deal deals[OPEN_MAX];
static ucp_ep_h to_evil, closing;
static struct op close_op;
static ucp_rkey_h evil_key;
static cci_connection_t *evil_conn;
static bool evil_failed;
static uint64_t rng, memory_before;

static uint64_t
rnd(uint64_t n)
{
	return hostile_rnd(&rng, n);
}

static size_t
some_len(void)
{
	return rnd(4) == 0 ? rnd(200000) : rnd(3) == 0 ? rnd(20000) : rnd(200);
}

static struct deal *
deal_new(size_t len)
{
	for (unsigned i = 0; i < OPEN_MAX; i++) {
		struct deal *d = &deals[i];

		if (d->buf != NULL)
			continue;
		*d = (struct deal){.buf = malloc(len + 1), .since = util_now_ns()};
		memset(d->buf, 0x5a, len + 1);
		return d;
	}
	return NULL;
}

static void
deal_end(struct deal *d)
{
	if (d->am != NULL)
		ucp_am_data_release(t.w, d->am);
	free(d->buf);
	d->buf = NULL;
}

/* --- what comes from it --- */

static ucs_status_t
on_am(struct talk *talk, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	ucp_request_param_t rp = {.op_attr_mask = rnd(2) == 0 ? UCP_OP_ATTR_FLAG_NO_IMM_CMPL : 0};
	bool rndv = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
	uint8_t sum = 0;
	struct deal *d;

	atomic_fetch_add_explicit(&talk->r->n_took, 1, memory_order_relaxed);
	for (size_t i = 0; i < header_len; i++) /* all of it is there */
		sum ^= ((const uint8_t *)header)[i];
	for (size_t i = 0; i < len && !rndv; i++)
		sum ^= ((const uint8_t *)data)[i];
	atomic_fetch_xor_explicit(&talk->r->sum, sum, memory_order_relaxed);
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 && (d = deal_new(64)) != NULL)
		op_begin(&d->op, ucp_am_send_nbx(param->reply_ep, 3, d->buf, 1, d->buf, 64, &rp));
	if (rndv && len <= HOSTILE_MEM && rnd(3) != 0 && (d = deal_new(len)) != NULL) {
		d->recv = true;
		op_begin(&d->op, ucp_am_recv_data_nbx(t.w, data, d->buf, len, &rp));
		return UCS_INPROGRESS;
	}
	if (!rndv && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0 && rnd(2) == 0 &&
		(d = deal_new(0)) != NULL) {
		d->am = data;
		return UCS_INPROGRESS;
	}
	return rnd(4) == 0 ? UCS_ERR_REJECTED : UCS_OK;
}

static ucs_status_t
on_am_of_evil(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	return on_am(arg, header, header_len, data, len, param);
}

static void
tags_of_evil(void)
{
	ucp_request_param_t rp = {.op_attr_mask = 0};
	ucp_tag_recv_info_t info;
	ucp_tag_message_h msg;
	struct op drop;
	struct deal *d;
	size_t len;

	for (unsigned i = 0; i < 32; i++) {
		msg = TIMED(ucp_tag_probe_nb(t.w, 0, 0, 1, &info));
		if (msg == NULL)
			return;
		atomic_fetch_add_explicit(&t.r->n_took, 1, memory_order_relaxed);
		/* as long as it says, or too short */
		len = info.length < HOSTILE_MEM && rnd(4) != 0 ? info.length : some_len();
		d = deal_new(len);
		if (d == NULL) { /* no program receives without end: the rest is let go */
			op_begin(&drop, ucp_tag_msg_recv_nbx(t.w, &rp, 0, msg, &rp));
			if (drop.req != NULL)
				ucp_request_free(drop.req);
			continue;
		}
		d->recv = true;
		op_begin(&d->op, TIMED(ucp_tag_msg_recv_nbx(t.w, d->buf, len, msg, &rp)));
	}
}

static void
streams_of_evil(void)
{
	ucp_request_param_t rp = {.op_attr_mask = 0};
	ucp_stream_poll_ep_t eps[8];
	ssize_t n = ucp_stream_worker_poll(t.w, eps, 8, 0);
	size_t len;

	for (ssize_t i = 0; i < n; i++) {
		struct deal *d;

		if (eps[i].ep == t.ep)
			continue;
		if (rnd(2) == 0) {
			void *data = ucp_stream_recv_data_nb(eps[i].ep, &len);

			if (UCS_PTR_IS_PTR(data))
				ucp_stream_data_release(eps[i].ep, data);
		} else if ((d = deal_new(len = some_len())) != NULL) {
			d->recv = true;
			op_begin(&d->op, ucp_stream_recv_nbx(eps[i].ep, d->buf, len, &len, &rp));
		}
	}
}

static void
on_event(struct talk *talk, cci_event_t *ev)
{
	(void)talk;
	atomic_fetch_add_explicit(&t.r->n_took, 1, memory_order_relaxed);
	switch (ev->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		if (rnd(4) == 0)
			cci_reject(ev);
		else
			cci_accept(ev, NULL);
		break;
	case CCI_EVENT_ACCEPT:
		if (ev->accept.status == CCI_SUCCESS && evil_conn != NULL && rnd(2) == 0)
			cci_disconnect(ev->accept.connection);
		else if (ev->accept.status == CCI_SUCCESS)
			evil_conn = ev->accept.connection;
		break;
	default:
		break;
	}
}

/* --- what goes to it --- */

static void
on_fail(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
	evil_failed = true;
}

static void
evil_meet(void)
{
	const struct side *evil = &t.r->side[EVIL];
	ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
					    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
					    UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = (const ucp_address_t *)evil->addr,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {on_fail, NULL}};

	if (atomic_load(&evil->ready) == 0)
		return;
	evil_failed = false;
	if (ucp_ep_create(t.w, &ep, &to_evil) != UCS_OK)
		to_evil = NULL;
	else if (ucp_ep_rkey_unpack(to_evil, evil->theirs.key, &evil_key) != UCS_OK)
		evil_key = NULL;
}

static void
evil_part(void)
{
	ucp_request_param_t rp = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};

	if (evil_key != NULL)
		ucp_rkey_destroy(evil_key);
	evil_key = NULL;
	closing = to_evil;
	op_begin(&close_op, TIMED(ucp_ep_close_nbx(to_evil, &rp)));
	to_evil = NULL;
}

static void
begin(void)
{
	static const uint64_t one = 1;
	ucp_request_param_t rp = {.op_attr_mask = 0},
			    reply = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_AM_SEND_FLAG_REPLY},
			    back = {.op_attr_mask = UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE,
				    .datatype = ucp_dt_make_contig(8)};
	uint64_t remote = t.r->side[EVIL].theirs.addr;
	size_t len = some_len();
	struct deal *d = deal_new(len);

	if (d == NULL)
		return;
	switch (rnd(9)) {
	case 0:
		op_begin(&d->op, TIMED(ucp_tag_send_nbx(to_evil, d->buf, len, 5, &rp)));
		break;
	case 1:
		op_begin(&d->op, TIMED(ucp_tag_send_sync_nbx(to_evil, d->buf, len, 6, &rp)));
		break;
	case 2:
		op_begin(&d->op,
			TIMED(ucp_am_send_nbx(to_evil, 3, d->buf, len < 64 ? len : 64, d->buf, len, &reply)));
		break;
	case 3:
		op_begin(&d->op, TIMED(ucp_stream_send_nbx(to_evil, d->buf, len, &rp)));
		break;
	case 4:
		d->recv = true;
		op_begin(&d->op, TIMED(ucp_tag_recv_nbx(t.w, d->buf, len, rnd(16), UINT64_MAX, &rp)));
		break;
	case 5:
		if (evil_key != NULL)
			op_begin(&d->op, TIMED(ucp_put_nbx(to_evil, d->buf, len,
						 remote + rnd(HOSTILE_MEM - len), evil_key, &rp)));
		break;
	case 6:
		if (evil_key != NULL)
			op_begin(&d->op, TIMED(ucp_get_nbx(to_evil, d->buf, len,
						 remote + rnd(HOSTILE_MEM - len), evil_key, &rp)));
		break;
	case 7:
		if (evil_key != NULL && len >= 8) {
			back.reply_buffer = d->buf;
			op_begin(&d->op, TIMED(ucp_atomic_op_nbx(to_evil, UCP_ATOMIC_OP_ADD, &one, 1, remote,
						 evil_key, &back)));
		}
		break;
	default:
		op_begin(&d->op, TIMED(ucp_ep_flush_nbx(to_evil, &rp)));
		break;
	}
}

static void
deals_look(void)
{
	uint64_t now = util_now_ns();
	bool old = false;

	for (unsigned i = 0; i < OPEN_MAX; i++) {
		struct deal *d = &deals[i];

		if (d->buf == NULL)
			continue;
		if (op_over(&d->op)) {
			if (d->am == NULL || rnd(8) == 0)
				deal_end(d);
		} else if (now - d->since > OLD_NS && d->recv) {
			ucp_request_cancel(t.w, d->op.req);
		} else if (now - d->since > OLD_NS) {
			old = true;
		}
	}
	if (to_evil != NULL && (evil_failed || (old && rnd(20) == 0)))
		evil_part();
	if (closing != NULL && op_over(&close_op))
		closing = NULL;
	if (to_evil == NULL && closing == NULL)
		evil_meet();
}

static void
cci_to_evil(void)
{
	char text[600] = "to the hostile one";

	if (evil_conn == NULL)
		return;
	if (rnd(400) == 0) {
		cci_disconnect(evil_conn);
		evil_conn = NULL;
		return;
	}
	(void)TIMED(cci_send(
		evil_conn, text, (uint32_t)rnd(sizeof(text)), NULL, rnd(2) == 0 ? CCI_FLAG_SILENT : 0));
}

/* --- its life --- */

/* Pages of its own; what it shares with peers is as long as they make it. */
static uint64_t
memory_own(void)
{
	unsigned long all = 0, resident = 0, shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu %lu %lu", &all, &resident, &shared) != 3)
		UTIL_DIE("/proc/self/statm");
	fclose(f);
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
memory_look(void)
{
	uint64_t now = memory_own();

	if (memory_before == 0)
		memory_before = now;
	if (now <= memory_before + HOSTILE_GROWTH)
		return;
	plx_worker_dump(stderr, t.w->core);
	UTIL_DIE("%llu MiB of memory, %llu at the beginning", (unsigned long long)now >> 20,
		(unsigned long long)memory_before >> 20);
}

static void
doze(void)
{
	struct pollfd p = {.events = POLLIN};

	if (ucp_worker_get_efd(t.w, &p.fd) == UCS_OK && ucp_worker_arm(t.w) == UCS_OK)
		poll(&p, 1, 1);
}

static void
work(uint64_t turn)
{
	talk_turn(&t);
	tags_of_evil();
	streams_of_evil();
	if (turn % 4 == 0)
		deals_look();
	if (to_evil != NULL && rnd(4) == 0)
		begin();
	if (rnd(8) == 0)
		cci_to_evil();
	if (t.r->sleeps && rnd(64) == 0)
		doze();
	if (turn % 1024 == 0)
		memory_look();
}

void
hostile_victim(struct round *r)
{
	ucp_am_handler_param_t am = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
		.cb = on_am_of_evil,
		.arg = &t};

	rng = r->seed ^ 0x71c71;
	talk_open(&t, r, VICTIM);
	t.on_am = on_am;
	t.on_event = on_event;
	for (unsigned id = 2; id < 6; id++) {
		am.id = id;
		am.flags = id % 2 == 0 ? UCP_AM_FLAG_PERSISTENT_DATA : UCP_AM_FLAG_WHOLE_MSG;
		HOSTILE_OK(ucp_worker_set_am_recv_handler(t.w, &am));
	}
	talk_meet(&t);
	for (uint64_t turn = 0; atomic_load(&r->stop) == 0; turn++)
		work(turn);
	talk_end(&t);
	if (to_evil != NULL)
		evil_part();
	for (unsigned i = 0; i < 100 && !op_over(&close_op); i++)
		talk_turn(&t);
	talk_close(&t);
	_exit(0);
}

void
hostile_honest(struct round *r)
{
	talk_open(&t, r, HONEST);
	talk_meet(&t);
	while (atomic_load(&r->stop) == 0)
		talk_turn(&t);
	talk_end(&t);
	talk_close(&t);
	_exit(0);
}
