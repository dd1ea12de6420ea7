/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * orphan.c - the peer is killed in the middle; this side's requests end, its ep
 * closes, its worker goes, and a new one works
 *
 * Rank 0 survives, rank 1 is killed by the runner once FOLDER/busy exists; the
 * runner then makes FOLDER/killed.
 * arguments after N: what rank 0 does (send or receive), bytes, peer or none
 * (error handling of the ep)
 */
#include "mp.h"

enum { DEPTH = 8, GRACE_S = 20 };

static struct mp m;
static struct op op[DEPTH];
static uint8_t *buf[DEPTH];
static size_t len;

static void
post(int i, bool sends)
{
	if (sends)
		util_send(&op[i], m.ep[!m.rank], buf[i], len, 1, UTIL_NBX);
	else
		util_recv(&op[i], m.w, buf[i], len, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
}

/* Works until it is killed, or until the other was. */
static unsigned long
work(bool sends)
{
	uint64_t end = util_now_ns() + MP_DEADLINE_S * 1000000000ull, next_look = 0;
	unsigned long n = 0;
	int i;

	for (i = 0; i < DEPTH; i++)
		post(i, sends);
	while (util_now_ns() < end) {
		for (i = 0; i < DEPTH; i++) {
			if (!util_done(&op[i]))
				continue;
			util_free(&op[i]);
			if (op[i].status != UCS_OK)
				return n; /* the news came by itself */
			n++;
			post(i, sends);
		}
		ucp_worker_progress(m.w);
		if (util_now_ns() < next_look)
			continue;
		next_look = util_now_ns() + 1000000;
		if (n > 2 * DEPTH && m.rank == 0 && !mp_exists(&m, "busy"))
			mp_mark(&m, "busy");
		if (m.rank == 0 && mp_exists(&m, "killed"))
			return n;
	}
	UTIL_DIE("rank %d: nobody was killed", m.rank);
}

#define IN_GRACE(cond) \
	({ \
		uint64_t end_ = util_now_ns() + GRACE_S * 1000000000ull; \
		bool held_; \
		while (!(held_ = (cond)) && util_now_ns() < end_) \
			ucp_worker_progress(m.w); \
		held_; \
	})

int
main(int argc, char **argv)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS};
	bool sends, peer_mode;
	struct pair p;
	uint64_t out = 5, in = 0;
	struct op send, recv;
	void *req;
	int i;

	mp_open(&m, argc, argv);
	sends = (strcmp(argv[4], "send") == 0) == (m.rank == 0);
	len = strtoull(argv[5], NULL, 0);
	peer_mode = strcmp(argv[6], "peer") == 0;
	m.err_mode = peer_mode ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
	for (i = 0; i < DEPTH; i++) {
		buf[i] = malloc(len + 1);
		memset(buf[i], i, len);
	}
	mp_connect(&m, !m.rank);
	work(sends);
	if (m.rank == 1)
		return 0;
	if (!IN_GRACE(mp_exists(&m, "killed")))
		UTIL_DIE("an error although the peer lives");
	/* Receives nobody will answer are the application's to cancel. */
	for (i = 0; i < DEPTH; i++)
		if (op[i].req != NULL && !util_done(&op[i]) && !sends)
			ucp_request_cancel(m.w, op[i].req);
	for (i = 0; i < DEPTH; i++) {
		if (op[i].req != NULL && !IN_GRACE(util_done(&op[i])))
			UTIL_DIE("operation %d never ended", i);
		util_free(&op[i]);
		/* Not touched by anyone any more. */
		memset(buf[i], 0x5a, len);
	}
	param.flags = peer_mode ? UCP_EP_CLOSE_FLAG_FORCE : 0;
	req = ucp_ep_close_nbx(m.ep[1], &param);
	if (UCS_PTR_IS_PTR(req)) {
		if (!IN_GRACE(ucp_request_check_status(req) != UCS_INPROGRESS))
			UTIL_DIE("the ep did not close");
		ucp_request_free(req);
	}
	if (m.n_err > 1)
		UTIL_DIE("the error handler was called %u times", m.n_err);
	for (i = 0; i < DEPTH; i++)
		free(buf[i]);
	mp_close(&m);
	/* And begin anew. */
	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	util_recv(&recv, p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&send, p.n[0].ep, &out, 8, 1, UTIL_NBX);
	if (!UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)) || in != 5)
		UTIL_DIE("a new worker does not work");
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
	return 0;
}
