/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mode_gen.c - a generator of messages at a given rate, and a sink that checks them
 */
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

#define GEN_MAX_WINDOW 1024

struct gen {
	uint64_t count;
	uint64_t rate; /* messages a second; 0: as fast as possible */
	uint64_t ms;
	uint64_t tag;
	uint64_t window;
	bool back; /* expect each message back, with its pattern */
	bool sync;
};

static int
gen_option(struct tc *tc, struct gen *g, int argc, char **argv, int *i)
{
	static const char *const names[] = {"count", "rate", "ms", "tag", "window"};
	uint64_t *const values[] = {&g->count, &g->rate, &g->ms, &g->tag, &g->window};

	if (strcmp(argv[*i], "back") == 0) {
		g->back = true;
		return 0;
	}
	if (strcmp(argv[*i], "sync") == 0) {
		g->sync = true;
		return 0;
	}
	for (int k = 0; k < 5; k++) {
		if (strcmp(argv[*i], names[k]) != 0)
			continue;
		if (++*i == argc)
			return tc_error(tc, "%s needs a number", names[k]);
		return tc_number(tc, argv[*i], values[k]);
	}
	return tc_error(tc, "\"%s\" is not count, rate, ms, tag, window, sync or back", argv[*i]);
}

static int
gen_options(struct tc *tc, struct gen *g, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (gen_option(tc, g, argc, argv, &i) != 0)
			return -1;
	}
	if (g->window == 0 || g->window > GEN_MAX_WINDOW)
		return tc_error(tc, "the window is 1 to %d", GEN_MAX_WINDOW);
	return 0;
}

struct gen_flow {
	struct tc_req *tx[GEN_MAX_WINDOW];
	struct tc_req *rx[GEN_MAX_WINDOW];
	uint64_t sent;  /* posted */
	uint64_t ended; /* completed sends */
	uint64_t taken; /* came back */
	uint64_t wrong;
	uint64_t failed;
};

/* Post the message of the next number, and the receive for its return. */
static int
gen_post(struct tc *tc, const struct gen *g, struct gen_flow *f, struct tc_ep *ep, uint64_t size)
{
	unsigned i = (unsigned)(f->sent % g->window);
	uint64_t tag = g->tag + f->sent;

	if (g->back) {
		f->rx[i] = tc_req_new(tc, TC_RECV, ep->worker, tag, size);
		if (f->rx[i] == NULL)
			return -1;
		tc_recv_post(tc, f->rx[i], UINT64_MAX, false);
	}
	f->tx[i] = tc_req_new(tc, TC_SEND, ep->worker, tag, size);
	if (f->tx[i] == NULL)
		return -1;
	tc_fill(f->tx[i]->buf, size, tc->pattern, tag, 0);
	f->sent++;
	tc_send_post(tc, ep, f->tx[i], g->sync);
	return 0;
}

/* Release what is complete, oldest first. */
static bool
gen_collect(struct tc *tc, const struct gen *g, struct gen_flow *f)
{
	bool moved = false;
	struct tc_req *r;

	while (f->ended < f->sent && (r = f->tx[f->ended % g->window])->done) {
		f->failed += r->status != UCS_OK;
		tc_req_free(tc, r);
		f->ended++;
		moved = true;
	}
	while (g->back && f->taken < f->sent && (r = f->rx[f->taken % g->window])->done) {
		if (r->status != UCS_OK)
			f->failed++;
		else if (r->length != r->size ||
			 tc_mismatch(r->buf, r->size, tc->pattern, r->tag, 0) != UINT64_MAX)
			f->wrong++;
		tc_req_free(tc, r);
		f->taken++;
		moved = true;
	}
	return moved;
}

static uint64_t
gen_oldest(const struct gen *g, const struct gen_flow *f)
{
	return g->back && f->taken < f->ended ? f->taken : f->ended;
}

static int
gen_loop(struct tc *tc, const struct gen *g, struct gen_flow *f, struct tc_ep *ep, uint64_t size)
{
	uint64_t start = tc_now_us(), stop = start + g->ms * 1000, last = start, now = start;

	for (;;) {
		bool more = f->sent < g->count && now < stop && !tc_interrupted();
		bool due = g->rate == 0 || (now - start) * g->rate >= f->sent * UINT64_C(1000000);

		if (more && due && f->sent - gen_oldest(g, f) < g->window) {
			if (gen_post(tc, g, f, ep, size) != 0)
				return -1;
			last = now;
		}
		if (!more && gen_oldest(g, f) == f->sent)
			return 0;
		tc_progress(tc);
		now = tc_now_us();
		if (gen_collect(tc, g, f))
			last = now;
		if (f->sent > gen_oldest(g, f) && now - last > tc->timeout_ms * 1000)
			return tc_error(tc,
				"no progress for %llu ms: %llu sent, %llu done, %llu back",
				(unsigned long long)tc->timeout_ms, (unsigned long long)f->sent,
				(unsigned long long)f->ended, (unsigned long long)f->taken);
	}
}

static int
gen_run(struct tc *tc, int argc, char **argv)
{
	struct gen g = {.count = UINT64_MAX, .ms = UINT64_MAX / 4000, .window = 32};
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	struct gen_flow *f;
	uint64_t size, start;
	double sec;
	int rc;

	if (ep == NULL || tc_number(tc, argv[1], &size) != 0 ||
		gen_options(tc, &g, argc - 2, argv + 2) != 0)
		return -1;
	if (g.count == UINT64_MAX && g.ms == UINT64_MAX / 4000)
		g.count = 1000;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return tc_error(tc, "no memory");
	start = tc_now_us();
	rc = gen_loop(tc, &g, f, ep, size);
	sec = (double)(tc_now_us() - start + 1) * 1e-6;
	tc->last = (struct tc_last){.count = g.back ? f->taken : f->ended,
		.length = size,
		.status = f->failed + f->wrong == 0 && rc == 0 ? UCS_OK : UCS_ERR_IO_ERROR};
	fprintf(tc->out, "sent %llu messages of %llu bytes in %.3f s: %.0f a second, %.1f MB/s\n",
		(unsigned long long)f->ended, (unsigned long long)size, sec, (double)f->ended / sec,
		(double)f->ended * (double)size / sec * 1e-6);
	if (g.back)
		fprintf(tc->out, "back %llu, wrong %llu\n", (unsigned long long)f->taken,
			(unsigned long long)f->wrong);
	if (f->failed != 0 && rc == 0)
		rc = tc_error(tc, "%llu messages failed", (unsigned long long)f->failed);
	else if (f->wrong != 0 && rc == 0)
		rc = tc_error(tc, "%llu messages came back wrong", (unsigned long long)f->wrong);
	free(f);
	return rc;
}

/* Receive COUNT messages with tags TAG, TAG + 1, ... and check the pattern: gen's other side. */
static int
sink_run(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	uint64_t count, size, tag = 0, wrong = 0, i;
	struct tc_req *r;

	if (w == NULL || tc_number(tc, argv[1], &size) != 0 ||
		tc_number(tc, argv[2], &count) != 0 ||
		(argc > 3 && tc_number(tc, argv[3], &tag) != 0))
		return -1;
	for (i = 0; i < count; i++) {
		r = tc_req_new(tc, TC_RECV, w, tag + i, size);
		if (r == NULL)
			return -1;
		tc_recv_post(tc, r, UINT64_MAX, false);
		if (tc_req_wait(tc, r, tc->timeout_ms) != 0) {
			tc_req_last(tc, r);
			return tc_error(tc, "message %llu did not arrive within %llu ms (%s)",
				(unsigned long long)i, (unsigned long long)tc->timeout_ms, r->name);
		}
		wrong += r->status != UCS_OK || r->length != size ||
			 tc_mismatch(r->buf, size, tc->pattern, r->tag, 0) != UINT64_MAX;
		tc_req_free(tc, r);
	}
	tc->last = (struct tc_last){
		.count = i, .length = size, .status = wrong == 0 ? UCS_OK : UCS_ERR_IO_ERROR};
	fprintf(tc->out, "received %llu messages, wrong %llu\n", (unsigned long long)i,
		(unsigned long long)wrong);
	return wrong == 0 ? 0 : tc_error(tc, "%llu messages were wrong", (unsigned long long)wrong);
}

const struct tc_cmd tc_mode_gen[] = {
	{"gen", "EP SIZE [count N] [rate R] [ms T] [tag T] [window W] [sync] [back]",
		"send messages with tags T, T+1, ...; back: each must return from an echo", 2, 15,
		gen_run},
	{"sink", "WORKER SIZE COUNT [TAG]", "receive and check what gen sends", 3, 4, sink_run},
	{0},
};
