/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * all_to_all.c - every rank sends to every rank; wildcard receives see each
 * sender's messages in order and whole
 *
 * arguments after N: messages to each rank, seed, longest message
 */
#include "mp.h"

enum { WINDOW = 8, OUT = 4 };

/* The length of a message is known to both sides. */
static size_t
length(uint64_t seed, int from, int to, int i, size_t longest)
{
	uint64_t state = seed + (uint64_t)from * 1000003 + (uint64_t)to * 10007 + (uint64_t)i;
	uint64_t r = mp_random(&state);

	switch (r % 8) {
	case 0: return (r >> 8) % (longest + 1);
	case 1: case 2: return (r >> 8) % 9000 % (longest + 1);
	case 3: return 0;
	default: return (r >> 8) % 128;
	}
}

static uint64_t
contents(int from, int to, int i)
{
	return (uint64_t)from << 40 | (uint64_t)to << 20 | (uint64_t)i;
}

int
main(int argc, char **argv)
{
	struct op send[OUT], recv[WINDOW];
	uint8_t *out[OUT], *in[WINDOW];
	unsigned long n_sent = 0, n_received = 0, n_posted = 0, total;
	size_t longest;
	uint64_t seed;
	int count, i, *next;
	struct mp m;

	mp_open(&m, argc, argv);
	if (argc < 7)
		UTIL_DIE("messages, seed and longest length are missing");
	count = atoi(argv[4]);
	seed = strtoull(argv[5], NULL, 0);
	longest = strtoull(argv[6], NULL, 0);
	next = calloc((size_t)m.n, sizeof(*next));
	total = (unsigned long)m.n * (unsigned long)count;
	for (i = 0; i < OUT; i++) {
		out[i] = malloc(longest + 1);
		send[i].req = NULL;
		send[i].immediate = true;
	}
	for (i = 0; i < WINDOW; i++)
		in[i] = malloc(longest + 1);
	for (i = 0; i < m.n; i++)
		mp_connect(&m, i);
	uint64_t end = util_now_ns() + MP_DEADLINE_S * 1000000000ull;
	while (n_received < total || n_sent < total) {
		while (n_posted < total && n_posted < n_received + WINDOW) {
			util_recv(&recv[n_posted % WINDOW], m.w, in[n_posted % WINDOW], longest, 0, 0,
				UTIL_NO_IMM);
			n_posted++;
		}
		if (n_sent < total && util_done(&send[n_sent % OUT])) {
			struct op *op = &send[n_sent % OUT];
			/* Each rank begins with another peer. */
			int to = (int)((n_sent + (unsigned long)m.rank) % (unsigned long)m.n);
			int k = (int)(n_sent / (unsigned long)m.n);
			size_t len = length(seed, m.rank, to, k, longest);

			util_free(op);
			util_fill(out[n_sent % OUT], len, contents(m.rank, to, k));
			util_send(op, m.ep[to], out[n_sent % OUT], len, (uint64_t)m.rank << 32 | (unsigned)k,
				k % 11 == 10 ? UTIL_SYNC : UTIL_NBX);
			n_sent++;
		}
		while (n_received < n_posted && util_done(&recv[n_received % WINDOW])) {
			struct op *op = &recv[n_received % WINDOW];
			int from, k;

			util_free(op);
			if (op->status != UCS_OK)
				UTIL_DIE("rank %d: receive: %s", m.rank, ucs_status_string(op->status));
			from = (int)(op->info.sender_tag >> 32);
			k = (int)(op->info.sender_tag & 0xffffffff);
			if (from >= m.n || k != next[from]++)
				UTIL_DIE("rank %d: message %d of rank %d is out of order", m.rank, k, from);
			if (op->info.length != length(seed, from, m.rank, k, longest))
				UTIL_DIE("rank %d: message %d of rank %d has %zu bytes", m.rank, k, from,
					op->info.length);
			if (!util_check(in[n_received % WINDOW], op->info.length,
				contents(from, m.rank, k)))
				UTIL_DIE("rank %d: message %d of rank %d is damaged", m.rank, k, from);
			n_received++;
		}
		ucp_worker_progress(m.w);
		if (util_now_ns() > end)
			UTIL_DIE("rank %d: %lu of %lu sent, %lu received in %d s", m.rank, n_sent, total,
				n_received, MP_DEADLINE_S);
	}
	for (i = 0; i < OUT; i++) {
		MP_UNTIL(&m, util_done(&send[i]));
		util_free(&send[i]);
		free(out[i]);
	}
	for (i = 0; i < WINDOW; i++)
		free(in[i]);
	free(next);
	/* Eps close while other ranks may still be busy with each other. */
	mp_close_eps(&m);
	mp_close(&m);
	return 0;
}
