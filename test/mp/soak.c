/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * soak.c - ranks 0 and 1 talk all the time, and both with rank 2, which the runner kills and
 * starts again; nothing is lost between the two that live
 *
 * The runner makes the file "stop". Ranks 0 and 1 then tell each other how many messages they
 * have sent, wait for the last, and leave in count.RANK: messages received, meetings with rank 2,
 * messages from it.
 */
#include "mp.h"

enum {
	WINDOW = 8,
	MAX = 200000,
	TAG_SEQ = 1, /* in the high byte; below it the number of the message */
	TAG_STOP,
	TAG_TO_VICTIM,
	TAG_FROM_VICTIM,
};

#define TAG(kind, n) ((ucp_tag_t)(kind) << 56 | (n))

/* One way of the talk between the two. */
struct lane {
	struct op op[WINDOW];
	uint8_t *buf[WINDOW];
	uint64_t next, done; /* to post, and all before are over */
};

/* What a survivor has with rank 2. */
struct victim {
	char addr[4096];
	size_t addr_len;
	ucp_ep_h ep;
	struct op send, recv;
	bool sending, receiving, failed;
	uint64_t meetings, messages;
	uint8_t *out, *in;
};

static struct mp m;

static size_t
length(uint64_t n)
{
	static const size_t lens[] = {8, 8, 100, 2000, 8, 9000, 30000, 8, 150000, 1};

	return lens[util_mix(n) % 10];
}

static void
lane_open(struct lane *l)
{
	int i;

	memset(l, 0, sizeof(*l));
	for (i = 0; i < WINDOW; i++)
		l->buf[i] = malloc(MAX);
}

static void
send_more(struct lane *l, ucp_ep_h ep)
{
	while (l->done < l->next && util_done(&l->op[l->done % WINDOW])) {
		struct op *op = &l->op[l->done++ % WINDOW];

		if (op->status != UCS_OK)
			UTIL_DIE("rank %d: send: %s", m.rank, ucs_status_string(op->status));
		util_free(op);
	}
	while (l->next < l->done + WINDOW) {
		uint8_t *buf = l->buf[l->next % WINDOW];

		util_fill(buf, length(l->next), l->next);
		util_send(&l->op[l->next % WINDOW], ep, buf, length(l->next),
			TAG(TAG_SEQ, l->next), UTIL_NBX);
		l->next++;
	}
}

static void
check(const struct op *op, const uint8_t *buf, uint64_t n)
{
	if (op->status != UCS_OK || op->info.length != length(n) || !util_check(buf, length(n), n))
		UTIL_DIE("rank %d: message %llu: %s, %zu bytes instead of %zu", m.rank,
			(unsigned long long)n, ucs_status_string(op->status), op->info.length,
			length(n));
}

static void
take_more(struct lane *l)
{
	while (l->done < l->next && util_done(&l->op[l->done % WINDOW])) {
		check(&l->op[l->done % WINDOW], l->buf[l->done % WINDOW], l->done);
		util_free(&l->op[l->done++ % WINDOW]);
	}
	while (l->next < l->done + WINDOW) {
		util_recv(&l->op[l->next % WINDOW], m.w, l->buf[l->next % WINDOW], MAX,
			TAG(TAG_SEQ, l->next), UTIL_ALL_BITS, UTIL_NO_IMM);
		l->next++;
	}
}

static void
victim_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep;
	(void)status;
	((struct victim *)arg)->failed = true;
}

/* An ep with rank 2, when it has written an address that is new. */
static void
victim_meet(struct victim *v)
{
	char path[512], addr[sizeof(v->addr)];
	ucp_ep_params_t params;
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/addr.2", m.dir);
	f = fopen(path, "r");
	if (f == NULL)
		return;
	len = fread(addr, 1, sizeof(addr), f);
	fclose(f);
	if (len == 0 || (len == v->addr_len && memcmp(addr, v->addr, len) == 0))
		return;
	memcpy(v->addr, addr, len);
	v->addr_len = len;
	memset(&params, 0, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
		UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.address = (const ucp_address_t *)addr;
	params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = victim_failed;
	params.err_handler.arg = v;
	v->failed = false;
	/* It may be dead by now: then there will be another. */
	if (ucp_ep_create(m.w, &params, &v->ep) == UCS_OK)
		v->meetings++;
	else
		v->ep = NULL;
}

static void
victim_part(struct victim *v)
{
	void *req = ucp_ep_close_nb(v->ep, UCP_EP_CLOSE_MODE_FORCE);

	v->ep = NULL;
	if (UCS_PTR_IS_PTR(req)) {
		MP_UNTIL(&m, ucp_request_check_status(req) != UCS_INPROGRESS);
		ucp_request_free(req);
	}
	if (v->sending) {
		MP_UNTIL(&m, util_done(&v->send));
		util_free(&v->send);
		v->sending = false;
	}
}

static void
victim_talk(struct victim *v)
{
	if (v->ep != NULL && v->failed)
		victim_part(v);
	if (v->sending && util_done(&v->send)) {
		util_free(&v->send);
		v->sending = false;
	}
	if (v->ep != NULL && !v->sending) {
		util_send(&v->send, v->ep, v->out, length(v->messages + 7), TAG(TAG_TO_VICTIM, 0),
			UTIL_NBX);
		v->sending = true;
	}
	if (v->receiving && util_done(&v->recv)) { /* one that was cut off ends with an error */
		v->messages += v->recv.status == UCS_OK;
		util_free(&v->recv);
		v->receiving = false;
	}
	if (!v->receiving) {
		util_recv(&v->recv, m.w, v->in, MAX, TAG(TAG_FROM_VICTIM, 0), UTIL_ALL_BITS,
			UTIL_NO_IMM);
		v->receiving = true;
	}
}

static void
cancel(struct op *op)
{
	ucp_request_cancel(m.w, op->req);
	MP_UNTIL(&m, util_done(op));
	util_free(op);
}

/* Nothing more is sent: tell how many it were, and take as many as the other tells. */
static void
end(struct lane *out, struct lane *in, ucp_ep_h ep)
{
	struct op send, recv;
	uint64_t mine = out->next, theirs = 0;

	util_recv(&recv, m.w, &theirs, 8, TAG(TAG_STOP, 0), UTIL_ALL_BITS, UTIL_NO_IMM);
	util_send(&send, ep, &mine, 8, TAG(TAG_STOP, 0), UTIL_NBX);
	while (!util_done(&recv) || !util_done(&send)) {
		ucp_worker_progress(m.w);
		take_more(in);
	}
	util_free(&recv);
	util_free(&send);
	for (; in->done < theirs; take_more(in))
		ucp_worker_progress(m.w);
	for (; in->done < in->next; in->done++)
		cancel(&in->op[in->done % WINDOW]);
	for (; out->done < out->next; out->done++) {
		MP_UNTIL(&m, util_done(&out->op[out->done % WINDOW]));
		util_free(&out->op[out->done % WINDOW]);
	}
	in->done = theirs;
}

static void
report(const struct lane *in, const struct victim *v)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/count.%d", m.dir, m.rank);
	f = fopen(path, "w");
	if (f == NULL || fprintf(f, "%llu %llu %llu\n", (unsigned long long)in->done,
				 (unsigned long long)v->meetings,
				 (unsigned long long)v->messages) < 0 || fclose(f) != 0)
		UTIL_DIE("%s: %s", path, strerror(errno));
}

static void
survive(void)
{
	static struct victim v;
	static struct lane out, in;
	ucp_ep_h ep;
	uint64_t turns;

	mp_connect(&m, !m.rank);
	ep = m.ep[!m.rank];
	lane_open(&out);
	lane_open(&in);
	v.out = calloc(1, MAX);
	v.in = malloc(MAX);
	for (turns = 0; turns % 1024 != 0 || !mp_exists(&m, "stop"); turns++) {
		ucp_worker_progress(m.w);
		send_more(&out, ep);
		take_more(&in);
		if (v.ep == NULL && turns % 1024 == 0)
			victim_meet(&v);
		victim_talk(&v);
	}
	end(&out, &in, ep);
	if (v.ep != NULL)
		victim_part(&v);
	cancel(&v.recv);
	report(&in, &v);
	mp_close_eps(&m);
	mp_close(&m);
}

/* Rank 2: sends to both and takes what comes, until it is killed. */
static void
suffer(void)
{
	static uint8_t out[2][MAX], in[MAX];
	struct op send[2], recv;
	uint64_t n = 0;
	int i;

	mp_connect(&m, 0);
	mp_connect(&m, 1);
	util_recv(&recv, m.w, in, MAX, TAG(TAG_TO_VICTIM, 0), UTIL_ALL_BITS, UTIL_NO_IMM);
	for (i = 0; i < 2; i++)
		util_send(&send[i], m.ep[i], out[i], 8, TAG(TAG_FROM_VICTIM, 0), UTIL_NBX);
	for (;; n++) {
		ucp_worker_progress(m.w);
		for (i = 0; i < 2; i++) {
			if (!util_done(&send[i]))
				continue;
			util_free(&send[i]);
			util_send(&send[i], m.ep[i], out[i], length(n), TAG(TAG_FROM_VICTIM, 0),
				UTIL_NBX);
		}
		if (util_done(&recv)) {
			util_free(&recv);
			util_recv(&recv, m.w, in, MAX, TAG(TAG_TO_VICTIM, 0), UTIL_ALL_BITS,
				UTIL_NO_IMM);
		}
	}
}

int
main(int argc, char **argv)
{
	mp_open(&m, argc, argv);
	if (m.rank == 2)
		suffer();
	else
		survive();
	return 0;
}
