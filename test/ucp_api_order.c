/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_order.c - matching order, wildcards, and many messages at once
 */
#include "ucp_api_test.h"

/* ---- order ---- */

struct letter {
	ucp_tag_t tag;
	size_t len;
	uint8_t *out;
	struct op op;
};

struct slot {
	ucp_tag_t tag, mask;
	size_t room;
	uint8_t *in;
	struct op op;
	int expect; /* index of the message it has to take */
};

#define LAST_TAG (1ull << 40 | 9)

enum when { POSTED_BEFORE, POSTED_AFTER, POSTED_BETWEEN };

static size_t
some_length(void)
{
	switch (rnd() % 8) {
	case 0: return rnd() % 3 ? 0 : 4 * MIB - rnd() % 100;
	case 1: case 2: return rnd() % 128;
	case 3: return rnd() % 9000;
	case 4: return 8192 + rnd() % 30000;
	case 5: return 32768 + rnd() % 100000;
	case 6: return rnd() % 500000;
	default: return 8;
	}
}

/*
 * Send n messages and post n receives, and work out by the simplest possible
 * matcher which receive takes which message. Unmatched receives are cancelled,
 * unmatched messages are drained.
 */
static void
order_round(enum when when, unsigned n)
{
	static const ucp_tag_t masks[] = {UTIL_ALL_BITS, 0, 3, 4, 0xff00000000000007,
		0xffffffff9fffffff};
	static const enum util_how hows[] = {UTIL_NBX, UTIL_NBX, UTIL_SYNC, UTIL_NB, UTIL_NO_IMM};
	struct letter *letter = calloc(n, sizeof(*letter));
	struct slot *slot = calloc(n, sizeof(*slot));
	unsigned i, k, n_bad = 0, n_rounds = when == POSTED_BETWEEN ? 2 : 1;
	ucp_tag_recv_info_t info;
	struct op drain, last;
	struct pair p;
	static uint8_t big[4 * MIB];

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < n; i++) {
		letter[i].tag = rnd() % 8 | (rnd() % 2) << 60;
		letter[i].len = some_length();
		letter[i].out = malloc(letter[i].len + 1);
		util_fill(letter[i].out, letter[i].len, i + 1);
		slot[i].mask = masks[rnd() % 6];
		/* Bits that the mask leaves out may be anything. */
		slot[i].tag = (letter[rnd() % (i + 1)].tag & slot[i].mask) | (rnd() & ~slot[i].mask);
		slot[i].expect = -1;
	}
	/* The model: before: in message order the first fitting slot; after: the reverse. */
	for (k = 0; k < n_rounds; k++) {
		unsigned lo = k * n / n_rounds, hi = (k + 1) * n / n_rounds;

		if (when == POSTED_AFTER) {
			bool *taken = calloc(n, 1);
			for (i = 0; i < n; i++)
				for (unsigned m = 0; m < n; m++)
					if (!taken[m] && ((letter[m].tag ^ slot[i].tag) & slot[i].mask) == 0) {
						taken[m] = true;
						slot[i].expect = (int)m;
						break;
					}
			free(taken);
		} else if (when == POSTED_BEFORE) {
			for (unsigned m = 0; m < n; m++)
				for (i = 0; i < n; i++)
					if (slot[i].expect < 0 && ((letter[m].tag ^ slot[i].tag) &
						slot[i].mask) == 0) {
						slot[i].expect = (int)m;
						break;
					}
		} else {
			/* The first half waits before, the second half comes after. */
			bool *taken = calloc(n, 1);
			if (k == 1) {
				for (i = 0; i < lo; i++)
					if (slot[i].expect >= 0)
						taken[slot[i].expect] = true;
				for (i = lo; i < hi; i++)
					for (unsigned m = 0; m < n; m++)
						if (!taken[m] && ((letter[m].tag ^ slot[i].tag) &
							slot[i].mask) == 0) {
							taken[m] = true;
							slot[i].expect = (int)m;
							break;
						}
			} else {
				for (unsigned m = 0; m < n; m++)
					for (i = lo; i < hi; i++)
						if (slot[i].expect < 0 && ((letter[m].tag ^ slot[i].tag) &
							slot[i].mask) == 0) {
							slot[i].expect = (int)m;
							break;
						}
			}
			free(taken);
		}
	}
	for (k = 0; k < 2; k++) {
		unsigned lo = 0, hi = 0;

		if (when == POSTED_BEFORE && k == 0)
			hi = n;
		if (when == POSTED_AFTER && k == 1)
			hi = n;
		if (when == POSTED_BETWEEN) {
			lo = k * n / 2;
			hi = (k + 1) * n / 2;
		}
		for (i = lo; i < hi; i++) {
			slot[i].room = slot[i].expect < 0 ? 0 : letter[slot[i].expect].len;
			slot[i].in = util_guarded(slot[i].room);
			util_recv(&slot[i].op, p.n[1].w, slot[i].in, slot[i].room, slot[i].tag,
				slot[i].mask, rnd() % 2 ? UTIL_NBX : UTIL_NB);
		}
		if (k == 1)
			break;
		for (i = 0; i < n; i++) {
			util_send(&letter[i].op, p.n[0].ep, letter[i].out, letter[i].len, letter[i].tag,
				hows[rnd() % 5]);
			if (rnd() % 4 == 0)
				util_pair_turn(&p);
		}
		/* A last one tells, found or taken, that all before it are there. */
		util_send(&last, p.n[0].ep, NULL, 0, LAST_TAG, UTIL_SYNC);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&last) || ucp_tag_probe_nb(p.n[1].w, LAST_TAG,
			UTIL_ALL_BITS, 0, &info) != NULL));
	}
	for (i = 0; i < n; i++) {
		struct slot *s = &slot[i];

		if (s->expect < 0) {
			if (s->op.req != NULL && !util_done(&s->op))
				ucp_request_cancel(p.n[1].w, s->op.req);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&s->op)));
			util_free(&s->op);
			/* It may have taken the last message, which fits a wildcard. */
			n_bad += s->op.status != UCS_ERR_CANCELED &&
				s->op.info.sender_tag != LAST_TAG;
			continue;
		}
		if (!UTIL_UNTIL(&p, util_done(&s->op))) {
			fprintf(stderr, "seed %lu: receive %u never got message %d\n",
				(unsigned long)rnd_seed, i, s->expect);
			CU_FAIL_FATAL("a receive never completed");
		}
		util_free(&s->op);
		if (s->op.status != UCS_OK || s->op.info.length != letter[s->expect].len ||
			s->op.info.sender_tag != letter[s->expect].tag ||
			!util_check(s->in, s->room, s->expect + 1) || !util_guards_ok(s->in, s->room)) {
			fprintf(stderr, "receive %u did not get message %d (length %zu, got %zu, %s)\n",
				i, s->expect, letter[s->expect].len, s->op.info.length,
				ucs_status_string(s->op.status));
			n_bad++;
		}
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	/* What nobody asked for. */
	for (;;) {
		UTIL_FOR_MS(&p, 2);
		if (ucp_tag_probe_nb(p.n[1].w, 0, 0, 0, &info) == NULL)
			break;
		util_recv(&drain, p.n[1].w, big, sizeof(big), 0, 0, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&drain)));
		util_free(&drain);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&last)));
	util_free(&last);
	for (i = 0; i < n; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&letter[i].op)));
		util_free(&letter[i].op);
		CU_ASSERT_EQUAL(letter[i].op.status, UCS_OK);
		free(letter[i].out);
		if (slot[i].in != NULL)
			util_guarded_free(slot[i].in);
	}
	free(letter);
	free(slot);
	util_pair_close(&p);
}

static void
order_holds_when_receives_wait(void)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		order_round(POSTED_BEFORE, 120);
}

static void
order_holds_when_messages_wait(void)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		order_round(POSTED_AFTER, 120);
}

static void
order_holds_when_both_wait(void)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		order_round(POSTED_BETWEEN, 120);
}

static void
one_tag_keeps_send_order_across_all_lengths(void)
{
	enum { N = 150 };
	static struct op send[N], recv[N];
	static uint8_t *out[N], *in[N];
	static size_t len[N];
	struct pair p;
	unsigned i, n_bad = 0;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N; i++) {
		len[i] = some_length();
		out[i] = malloc(len[i] + 1);
		in[i] = malloc(4 * MIB);
		util_fill(out[i], len[i], i);
	}
	for (i = 0; i < N; i++) {
		if (i % 3)
			util_recv(&recv[i], p.n[1].w, in[i], 4 * MIB, 6, i & 1 ? 0 : UTIL_ALL_BITS,
				UTIL_NBX);
		util_send(&send[i], p.n[0].ep, out[i], len[i], 6, i % 5 ? UTIL_NBX : UTIL_SYNC);
		if (i % 3 == 0) {
			util_pair_turn(&p);
			util_recv(&recv[i], p.n[1].w, in[i], 4 * MIB, 6, i & 1 ? 0 : UTIL_ALL_BITS,
				UTIL_NBX);
		}
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i]) && util_done(&recv[i])));
		util_free(&send[i]);
		util_free(&recv[i]);
		n_bad += recv[i].info.length != len[i] || !util_check(in[i], len[i], i);
		free(out[i]);
		free(in[i]);
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	util_pair_close(&p);
}

static void
mask_zero_takes_anything(void)
{
	struct op send, recv;
	uint64_t out = 3, in;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 50; i++) {
		ucp_tag_t tag = rnd();

		util_recv(&recv, p.n[1].w, &in, 8, rnd(), 0, UTIL_NBX);
		util_send(&send, p.n[0].ep, &out, 8, tag, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
		CU_ASSERT_EQUAL(recv.info.sender_tag, tag);
	}
	util_pair_close(&p);
}

static void
bits_outside_the_mask_do_not_count(void)
{
	struct op send, recv;
	uint64_t out = 3, in;
	ucp_tag_recv_info_t info;
	struct pair p;
	unsigned i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < 100; i++) {
		ucp_tag_t tag = rnd(), mask = rnd(), other = (tag & mask) | (rnd() & ~mask);

		if (mask == 0)
			continue;
		util_send(&send, p.n[0].ep, &out, 8, tag, UTIL_NBX);
		CU_ASSERT(UTIL_UNTIL(&p, ucp_tag_probe_nb(p.n[1].w, other, mask, 0, &info) != NULL));
		CU_ASSERT_EQUAL(info.sender_tag, tag);
		/* One bit inside the mask is enough to differ. */
		CU_ASSERT_PTR_NULL(ucp_tag_probe_nb(p.n[1].w, other ^ (mask & -mask), mask, 0, &info));
		util_recv(&recv, p.n[1].w, &in, 8, other, mask, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send) && util_done(&recv)));
		util_free(&send);
		util_free(&recv);
	}
	util_pair_close(&p);
}

/* ---- many at once ---- */

static void
both_directions_at_once(void)
{
	enum { N = 16 };
	static struct op send[2][N], recv[2][N];
	static uint8_t *out[2][N], *in[2][N];
	unsigned i, d, k;
	struct pair p;

	for (k = 0; k < N_SIZES; k++) {
		size_t len = sizes[k];

		util_pair_open(&p, k & 1, UCS_THREAD_MODE_SINGLE);
		for (i = 0; i < N; i++)
			for (d = 0; d < 2; d++) {
				out[d][i] = malloc(len + 1);
				in[d][i] = malloc(len + 1);
				util_fill(out[d][i], len, 2 * i + d);
				if (i & 1)
					util_recv(&recv[d][i], p.n[!d].w, in[d][i], len, i, UTIL_ALL_BITS,
						UTIL_NBX);
				util_send(&send[d][i], p.n[d].ep, out[d][i], len, i, UTIL_NBX);
			}
		for (i = 0; i < N; i += 2)
			for (d = 0; d < 2; d++)
				util_recv(&recv[d][i], p.n[!d].w, in[d][i], len, i, UTIL_ALL_BITS, UTIL_NBX);
		for (i = 0; i < N; i++)
			for (d = 0; d < 2; d++) {
				CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[d][i]) &&
					util_done(&recv[d][i])));
				util_free(&send[d][i]);
				util_free(&recv[d][i]);
				CU_ASSERT(util_check(in[d][i], len, 2 * i + d));
				free(out[d][i]);
				free(in[d][i]);
			}
		util_pair_close(&p);
	}
}

static void
twenty_thousand_unexpected_messages_keep_their_order(void)
{
	enum { N = 20000 };
	struct op *send = calloc(N, sizeof(*send));
	struct op recv;
	uint64_t out[8], in[8];
	unsigned i, n_bad = 0;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	memset(out, 0, sizeof(out));
	for (i = 0; i < N; i++) {
		out[0] = i;
		/* Sent by value or kept: the buffer may change after completion only. */
		util_send(&send[i], p.n[0].ep, out, sizeof(out), i % 7, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i])));
		util_free(&send[i]);
	}
	for (i = 0; i < N; i++) {
		util_recv(&recv, p.n[1].w, in, sizeof(in), i % 7, 7, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		n_bad += in[0] != i;
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	CU_ASSERT(nothing_waits(&p, 1));
	free(send);
	util_pair_close(&p);
}

static void
twenty_thousand_posted_receives_match_and_cancel(void)
{
	enum { N = 20000 };
	struct op *recv = calloc(N, sizeof(*recv));
	uint64_t *in = calloc(N, sizeof(*in));
	struct op send;
	unsigned i, n_bad = 0;
	uint64_t out;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < N; i++)
		util_recv(&recv[i], p.n[1].w, &in[i], 8, i, i & 1 ? UTIL_ALL_BITS : 0xffffffff,
			UTIL_NO_IMM);
	/* Every second is matched, from the last to the first; the others are cancelled. */
	for (i = N; i-- > 0;) {
		if (i % 4 < 2) {
			out = i;
			util_send(&send, p.n[0].ep, &out, 8, i, UTIL_NBX);
			CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
			util_free(&send);
		} else {
			ucp_request_cancel(p.n[1].w, recv[i].req);
		}
	}
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv[i])));
		n_bad += recv[i].status != (i % 4 < 2 ? UCS_OK : UCS_ERR_CANCELED);
		n_bad += i % 4 < 2 && in[i] != i;
		n_bad += recv[i].n_calls != 1;
		util_free(&recv[i]);
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	free(recv);
	free(in);
	util_pair_close(&p);
}

/* One message of eight bytes, of which each turn of the receiver's finds that one. */
static void
one_comes(struct pair *p)
{
	uint64_t out = 1, in = 0;
	struct op send, recv;

	util_send(&send, p->n[0].ep, &out, 8, 1, UTIL_NBX);
	util_recv(&recv, p->n[1].w, &in, 8, 1, UINT64_MAX, UTIL_NBX);
	while (!util_done(&send))
		ucp_worker_progress(p->n[0].w);
	while (!util_done(&recv))
		ucp_worker_progress(p->n[1].w);
	util_free(&send);
	util_free(&recv);
}

/* The other has no ring of its own, and only a look finds its message. */
static void
a_busy_sender_does_not_keep_another_from_being_heard(void)
{
	enum { ROUNDS = 16, SOON = 24 };
	struct op other, heard;
	uint64_t out = 2, in;
	ucp_worker_h w;
	struct pair p;
	ucp_ep_h ep;

	if (util_by_network()) /* it is about the rings of shared memory */
		return;
	util_pair_open_with(&p, "shm.fast_peers", "1");
	util_pair_turn(&p);
	one_comes(&p);
	w = util_worker(p.n[0].ctx, UCS_THREAD_MODE_SINGLE);
	ep = util_ep(w, p.n[1].addr);
	for (int round = 0; round < ROUNDS; round++) {
		int n = 0;

		util_recv(&heard, p.n[1].w, &in, 8, 2, UINT64_MAX, UTIL_NBX);
		util_send(&other, ep, &out, 8, 2, UTIL_NBX);
		while (!util_done(&other))
			ucp_worker_progress(w);
		while (!util_done(&heard) && n++ < 1000)
			one_comes(&p);
		CU_ASSERT_FATAL(util_done(&heard));
		/* with a reactor it is not this thread that looks */
		CU_ASSERT(n <= SOON || getenv("PLX_REACTOR") != NULL);
		util_free(&heard);
		util_free(&other);
	}
	ucp_ep_destroy(ep);
	ucp_worker_destroy(w);
	util_pair_close(&p);
}

static void
thousand_large_messages_wait_for_receives(void)
{
	enum { N = 1000, LEN = 70000 };
	struct op *send = calloc(N, sizeof(*send));
	static uint8_t out[LEN], in[LEN];
	struct op recv;
	unsigned i, n_bad = 0;
	struct pair p;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	util_fill(out, LEN, 4);
	for (i = 0; i < N; i++)
		util_send(&send[i], p.n[0].ep, out, LEN - i, i, UTIL_NBX);
	UTIL_FOR_MS(&p, 20);
	for (i = 0; i < N; i++) {
		memset(in, 0, 64);
		util_recv(&recv, p.n[1].w, in, LEN, 0, 0, UTIL_NBX);
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv)));
		util_free(&recv);
		n_bad += recv.info.length != LEN - i || recv.info.sender_tag != i ||
			!util_check(in, LEN - i, 4);
	}
	CU_ASSERT_EQUAL(n_bad, 0);
	for (i = 0; i < N; i++) {
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send[i])));
		util_free(&send[i]);
	}
	free(send);
	util_pair_close(&p);
}

const struct api_test api_order_tests[] = {
	T(order_holds_when_receives_wait),
	T(order_holds_when_messages_wait),
	T(order_holds_when_both_wait),
	T(one_tag_keeps_send_order_across_all_lengths),
	T(mask_zero_takes_anything),
	T(bits_outside_the_mask_do_not_count),
	T(both_directions_at_once),
	T(twenty_thousand_unexpected_messages_keep_their_order),
	T(twenty_thousand_posted_receives_match_and_cancel),
	T(a_busy_sender_does_not_keep_another_from_being_heard),
	T(thousand_large_messages_wait_for_receives),
	{NULL, NULL, NULL, NULL},
};
