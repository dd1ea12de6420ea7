/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * crowd.c - many workers greet one on another host, and each is answered; for hosts_test.py
 *
 * usage: crowd serve WORKERS MESSAGES [BEFORE_MS [AMID_MS]]
 *        crowd greet WORKERS MESSAGES [AMID_MS]
 *
 * The server prints its worker address, which those who greet read. Each of their workers sends that
 * many messages, and is answered behind the last. The server computes, which is that it takes no turn,
 * for BEFORE_MS once its address is out, and for AMID_MS behind the first message; those who greet, for
 * AMID_MS behind their first turn.
 */
#include "ucp_util.h"

enum { LEN = 4096, DEADLINE_S = 150, TAG_GREET = 1, TAG_ANSWER = 2 };

struct greeting {
	uint32_t who, nth;
	uint32_t addr_len;
	uint8_t addr[UTIL_ADDR_MAX / 2];
	uint8_t rest[LEN - UTIL_ADDR_MAX / 2 - 12];
};

struct guest {
	ucp_worker_h w;
	ucp_ep_h ep;
	struct op recv, *sends;
	struct greeting *out;
	uint32_t answer;
};

static uint64_t end_ns;

static void
compute(unsigned ms)
{
	usleep(ms * 1000);
}

static void
check_time(const char *what, unsigned n)
{
	if (util_now_ns() > end_ns)
		UTIL_DIE("%s: %u when the time was over", what, n);
}

/* -- the one -- */

static void
take(ucp_worker_h w, struct greeting *g, unsigned n)
{
	struct op op;

	util_recv(&op, w, g, sizeof(*g), TAG_GREET, UTIL_ALL_BITS, UTIL_NBX);
	while (!util_done(&op)) {
		ucp_worker_progress(w);
		check_time("messages", n);
	}
	if (op.status != UCS_OK || op.info.length != sizeof(*g) || g->addr_len > sizeof(g->addr) ||
		!util_check(g->rest, sizeof(g->rest), g->who + g->nth))
		UTIL_DIE("message %u: %s", n, ucs_status_string(op.status));
	util_free(&op);
}

static void
answer(ucp_worker_h w, const struct greeting *g)
{
	uint32_t *who = malloc(sizeof(*who));
	struct op *op = calloc(1, sizeof(*op)); /* both are for as long as we live */

	*who = g->who;
	util_send(op, util_ep(w, (const ucp_address_t *)g->addr), who, sizeof(*who), TAG_ANSWER, UTIL_NBX);
}

static void
serve(ucp_worker_h w, unsigned n_workers, unsigned n_messages, unsigned before_ms, unsigned amid_ms)
{
	uint32_t *seen = calloc(n_workers, sizeof(*seen));
	uint64_t begun = util_now_ns();
	struct greeting g;

	util_say_address(w);
	compute(before_ms);
	for (unsigned i = 0; i < n_workers * n_messages; i++) {
		take(w, &g, i);
		if (i == 0)
			compute(amid_ms);
		if (g.who >= n_workers || g.nth != seen[g.who]++)
			UTIL_DIE("message %u of worker %u comes as its %uth", g.nth, g.who, seen[g.who]);
		if (g.nth + 1 == n_messages)
			answer(w, &g);
	}
	for (char c = 0; read(STDIN_FILENO, &c, 1) < 0;) /* until all have their answers */
		;
	printf("served %u in %.1f s\n", n_workers, (double)(util_now_ns() - begun) * 1e-9);
	free(seen);
}

/* -- the many -- */

static void
on_gone(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	UTIL_DIE("the one that was greeted is gone: %s", ucs_status_string(status));
}

static void
guest_begin(struct guest *g, ucp_context_h ctx, uint32_t who, unsigned n_messages, const uint8_t *to)
{
	ucp_address_t *own;
	size_t len;

	g->w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	g->ep = util_ep_with_handler(g->w, (const ucp_address_t *)to, on_gone, NULL);
	g->sends = calloc(n_messages, sizeof(*g->sends));
	g->out = calloc(n_messages, sizeof(*g->out));
	UTIL_OK(ucp_worker_get_address(g->w, &own, &len));
	if (len > sizeof(g->out->addr))
		UTIL_DIE("an address of %zu bytes", len);
	util_recv(&g->recv, g->w, &g->answer, sizeof(g->answer), TAG_ANSWER, UTIL_ALL_BITS, UTIL_NBX);
	for (unsigned i = 0; i < n_messages; i++) {
		struct greeting *m = &g->out[i];

		*m = (struct greeting){.who = who, .nth = i, .addr_len = (uint32_t)len};
		memcpy(m->addr, own, len);
		util_fill(m->rest, sizeof(m->rest), who + i);
		util_send(&g->sends[i], g->ep, m, sizeof(*m), TAG_GREET, UTIL_NBX);
	}
	ucp_worker_release_address(g->w, own);
}

/* @return whether it has been answered */
static bool
guest_turn(struct guest *g, uint32_t who, unsigned n_messages)
{
	ucp_worker_progress(g->w);
	for (unsigned i = 0; i < n_messages; i++)
		if (util_done(&g->sends[i]) && g->sends[i].status != UCS_OK)
			UTIL_DIE("worker %u, message %u: %s", who, i, ucs_status_string(g->sends[i].status));
	if (!util_done(&g->recv))
		return false;
	if (g->recv.status != UCS_OK || g->answer != who)
		UTIL_DIE("worker %u has an answer for %u: %s", who, g->answer, ucs_status_string(g->recv.status));
	return true;
}

static void
greet(ucp_context_h ctx, unsigned n_workers, unsigned n_messages, unsigned amid_ms)
{
	struct guest *guests = calloc(n_workers, sizeof(*guests));
	static uint8_t to[UTIL_ADDR_MAX];
	unsigned n_answered = 0;
	uint64_t begun;

	util_read_address(to);
	begun = util_now_ns();
	for (uint32_t i = 0; i < n_workers; i++)
		guest_begin(&guests[i], ctx, i, n_messages, to);
	for (uint32_t i = 0; i < n_workers; i++)
		guest_turn(&guests[i], i, n_messages);
	compute(amid_ms);
	while (n_answered < n_workers) {
		n_answered = 0;
		for (uint32_t i = 0; i < n_workers; i++)
			n_answered += guest_turn(&guests[i], i, n_messages);
		check_time("answers", n_answered);
	}
	printf("answered %u in %.1f s\n", n_workers, (double)(util_now_ns() - begun) * 1e-9);
	for (unsigned i = 0; i < n_workers; i++)
		ucp_worker_destroy(guests[i].w);
	free(guests);
}

static unsigned
number(int argc, char **argv, int i)
{
	return i < argc ? (unsigned)strtoul(argv[i], NULL, 10) : 0;
}

int
main(int argc, char **argv)
{
	unsigned n_workers = number(argc, argv, 2), n_messages = number(argc, argv, 3);
	bool serves = argc > 1 && strcmp(argv[1], "serve") == 0;
	ucp_context_h ctx;
	ucp_worker_h w;

	if (n_workers == 0 || n_messages == 0 || (!serves && strcmp(argv[1], "greet") != 0))
		UTIL_DIE("usage: crowd serve|greet WORKERS MESSAGES [MS [MS]]");
	ctx = util_context(UCP_FEATURE_TAG);
	end_ns = util_now_ns() + DEADLINE_S * UINT64_C(1000000000);
	if (serves) {
		w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
		serve(w, n_workers, n_messages, number(argc, argv, 4), number(argc, argv, 5));
		ucp_worker_destroy(w);
	} else {
		greet(ctx, n_workers, n_messages, number(argc, argv, 4));
	}
	ucp_cleanup(ctx);
	return 0;
}
