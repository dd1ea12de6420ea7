/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * atomic.c - atomic operations on a word of the other side: one at a time, or a window of them
 *
 * Design notes
 * - add has no reply and completes with a flush; fadd, swap and cswap return the old value.
 * - Nobody else writes the word, so every old value is known. One at a time each is compared,
 *   which adds no time to the operation; after a window, the final value of the word.
 */
#include <inttypes.h>
#include <string.h>

#include "perf_ucp.h"

#define ATOMIC_START UINT64_C(0x1c0de5) /* initial value of the word */
#define ATOMIC_PROOF 8

enum atomic_op { ATOMIC_ADD, ATOMIC_FADD, ATOMIC_SWAP, ATOMIC_CSWAP, ATOMIC_OPS };

static const struct {
	const char *name;
	ucp_atomic_op_t code;
	bool fetches;
} atomic_ops[ATOMIC_OPS] = {
	{"add", UCP_ATOMIC_OP_ADD, false},
	{"fadd", UCP_ATOMIC_OP_ADD, true},
	{"swap", UCP_ATOMIC_OP_SWAP, true},
	{"cswap", UCP_ATOMIC_OP_CSWAP, true},
};

struct atomic_slot {
	struct perf_io io;
	uint64_t operand, reply;
};

static struct atomic_slot atomic_slot[PERF_MAX_WINDOW];
static enum atomic_op atomic_now;
static uint64_t atomic_word; /* value of the word after all operations so far */

/* The next operation, whose effect on the word is known. */
static int
atomic_post(struct perf_side *s, struct atomic_slot *a)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
						 UCP_OP_ATTR_FIELD_USER_DATA |
						 UCP_OP_ATTR_FIELD_DATATYPE,
		.cb.send = perf_ucp_done,
		.user_data = &a->io,
		.datatype = ucp_dt_make_contig(s->size)};
	ucp_worker_h worker;
	ucp_rkey_h rkey;
	uint64_t addr;
	ucp_ep_h ep;

	perf_ucp_handles(s, &worker, &ep);
	rkey = perf_ucp_remote(&addr);
	a->io = (struct perf_io){.done = 0};
	a->operand = atomic_now == ATOMIC_CSWAP ? atomic_word : 1;
	a->reply = 0;
	if (atomic_ops[atomic_now].fetches) {
		p.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
		p.reply_buffer = &a->reply;
	}
	if (atomic_now == ATOMIC_SWAP)
		a->operand = atomic_word + 1;
	else if (atomic_now == ATOMIC_CSWAP)
		a->reply = atomic_word + 1; /* the value to store; the old value replaces it */
	atomic_word++;
	return perf_ucp_posted(s, "ucp_atomic_op_nbx", &a->io,
		ucp_atomic_op_nbx(ep, atomic_ops[atomic_now].code, &a->operand, 1, addr, rkey, &p));
}

static void
atomic_compare(struct perf_side *s, uint64_t got, uint64_t due)
{
	if (s->size == 4)
		due = (uint32_t)due;
	if (unlikely(got != due))
		perf_wrong(s, "%s of %zu bytes: %#" PRIx64 " instead of %#" PRIx64,
			atomic_ops[atomic_now].name, s->size, got, due);
}

/* One operation until its completion. */
static inline int
atomic_one(struct perf_side *s, struct atomic_slot *a)
{
	uint64_t before = atomic_word;

	if (atomic_post(s, a) != 0 || perf_wait(s, &a->io) != 0)
		return -1;
	if (!atomic_ops[atomic_now].fetches)
		return s->be->rma_flush(s);
	atomic_compare(s, a->reply, before);
	return 0;
}

/* Read the word. */
static int
atomic_look(struct perf_side *s)
{
	struct perf_io io;
	uint64_t got = 0;

	if (s->be->rma(s, &io, false, 0, s->size) != 0 || perf_wait(s, &io) != 0)
		return -1;
	memcpy(&got, s->sbuf, s->size);
	atomic_compare(s, got, atomic_word);
	return 0;
}

static int
atomic_ping(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock)
{
	(void)size;
	(void)seq;
	for (uint64_t i = 0; i < n; i++) {
		if (unlikely(atomic_one(s, &atomic_slot[0]) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
		lat_look(s, clock);
	}
	return 0;
}

const struct perf_loops perf_loops_atomic = {.ping = atomic_ping};

static int
atomic_window(struct perf_side *s, uint64_t n)
{
	unsigned at = 0;

	for (unsigned i = 0; i < s->o->window; i++)
		atomic_slot[i].io = (struct perf_io){.done = 1};
	for (uint64_t i = 0; i < n; i++, at = perf_slot_next(at, s->o->window)) {
		if (unlikely(perf_wait(s, &atomic_slot[at].io) != 0))
			return -1;
		if (unlikely(atomic_post(s, &atomic_slot[at]) != 0))
			return -1;
		if (unlikely((i & 0xfff) == 0))
			perf_alive(s);
	}
	for (unsigned i = 0; i < s->o->window; i++) {
		if (perf_wait(s, &atomic_slot[i].io) != 0)
			return -1;
	}
	return s->be->rma_flush(s);
}

static int
atomic_chunk(struct perf_side *s, const void *arg, uint64_t n)
{
	(void)arg;
	return atomic_window(s, n);
}

static int
atomic_rate(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct perf_timed total = {.s = s, .test = t->name, .size = size, .unit = "Mop/s", .rate = true,
		.factor = 1e-6};
	struct perf_row *row;

	if (perf_count_alone(&total, atomic_chunk, NULL) != 0)
		return -1;
	row = rate_row(s, t, size, total.n, total.ticks);
	if (row == NULL)
		return -1;
	snprintf(row->unit, sizeof(row->unit), "Mop/s");
	snprintf(row->fields[0].name, sizeof(row->fields[0].name), "Mop/s");
	snprintf(row->fields[1].name, sizeof(row->fields[1].name), "ns/op");
	return 0;
}

/* Rank 0: a line for each operation. */
static int
atomic_measure(struct perf_side *s, const struct perf_test *t, size_t size)
{
	bool lat = strcmp(t->name, "atomic_lat") == 0;

	atomic_word = ATOMIC_START;
	for (atomic_now = 0; atomic_now < ATOMIC_OPS; atomic_now++) {
		size_t first = s->rows->n;

		for (int i = 0; i < ATOMIC_PROOF; i++) {
			if (atomic_one(s, &atomic_slot[0]) != 0)
				return -1;
		}
		if (atomic_look(s) != 0)
			return -1;
		if ((lat ? lat_run : atomic_rate)(s, t, size) != 0 || atomic_look(s) != 0)
			return -1;
		if (s->rows->n > first)
			snprintf(s->rows->row[first].label, sizeof(s->rows->row[first].label), "%s",
				atomic_ops[atomic_now].name);
	}
	return 0;
}

int
atomic_run(struct perf_side *s, const struct perf_test *t, size_t size)
{
	const uint64_t start = ATOMIC_START;
	int rc;

	memset(s->rbuf, 0, 8);
	memcpy(s->rbuf, &start, sizeof(start));
	rc = s->be->rma_open(s);
	if (rc == 0)
		rc = perf_barrier(s);
	if (rc == 0 && s->rank == 0)
		rc = atomic_measure(s, t, size);
	s->patient = s->rank == 1;
	if (rc == 0)
		rc = perf_barrier(s);
	s->patient = false;
	return rc != 0 ? rc : s->be->rma_close(s);
}
