/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * sim_test.c - random operations of a few workers under random faults, against a model
 *
 * Design notes
 * The model is the list of all sends and of all receives in the order they were
 * made. When a round has come to rest every message must have met exactly one
 * receive that it matches, whole and unchanged, and no two may be crossed: of two
 * messages from one sender to one receiver that both match a receive, the later
 * never has it while the earlier went to a receive made after it, or to none. The
 * low bits of a tag number the message; receives leave them open, or ask for just
 * that one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_worker.h"

#define ROUND	 400 /* messages sent and received before all is compared */
#define ROUNDS	 24
#define RECVS	 (4 * ROUND)
#define LEN_MAX	 150000

#define FROM_BITS  UINT64_C(0xff00000000000000)
#define CLASS_BITS UINT64_C(0x00ff000000000000)
#define ID_BITS	   UINT64_C(0x0000ffffffffffff)

struct sim_msg {
	uint64_t tag;
	uint64_t len;
	unsigned from, to;
	bool sync;
	uint8_t *buf;
	struct plx_req *req; /* NULL: done */
	int recv;	     /* index of the receive that had it, -1 none */
};

struct sim_recv {
	uint64_t tag, mask, len;
	unsigned at;
	uint8_t *buf;
	struct plx_req *req; /* NULL: done */
	int msg;	     /* index, -1: cancelled */
};

static struct unit_workers u;
static struct sim_msg msgs[ROUND];
static struct sim_recv recvs[RECVS];
static unsigned n_msgs, n_recvs;
static struct plx_req *flushes[64];
static unsigned flush_at[64];
static unsigned n_flushes;
static uint64_t first_id; /* of the round's messages */
static uint64_t rng_state, sim_seed;
static uint64_t all_msgs;
static uint64_t all_consumed; /* receives in devices that match tags */

static uint64_t
rnd(uint64_t n)
{
	return unit_rng(&rng_state) % n;
}

/* Say where, and end the test: after the first mistake the rest means nothing. */
static void __attribute__((format(printf, 1, 2)))
wrong(const char *fmt, ...)
{
	char text[400];
	va_list ap;
	int n = snprintf(text, sizeof(text), "seed %" PRIu64 ", message %" PRIu64 ": ", sim_seed,
		all_msgs);

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	CU_assertImplementation(CU_FALSE, __LINE__, text, __FILE__, "", CU_TRUE);
}

static uint64_t
random_len(void)
{
	switch (rnd(10)) {
	case 0:
		return 0;
	case 1:
		return 8;
	case 2:
		return rnd(fake.mtu + 20);
	case 3:
		return rnd(20000);
	case 4:
		return rnd(8) == 0 ? rnd(LEN_MAX) : rnd(40000);
	default:
		return rnd(200);
	}
}

static bool
matches(const struct sim_recv *r, const struct sim_msg *m)
{
	return r->at == m->to && (r->tag & r->mask) == (m->tag & r->mask);
}

/* -- operations -- */

static void
op_send(void)
{
	struct sim_msg *m = &msgs[n_msgs];
	struct plx_ep *ep;

	if (n_msgs == ROUND)
		return;
	m->from = (unsigned)rnd(u.n);
	m->to = (unsigned)rnd(u.n);
	m->tag = (uint64_t)m->from << 56 | rnd(3) << 48 | (first_id + n_msgs);
	m->len = random_len();
	m->sync = rnd(8) == 0;
	m->recv = -1;
	m->buf = malloc(m->len + 1);
	m->req = NULL;
	if (m->buf == NULL)
		abort();
	unit_fill(m->buf, m->len, m->tag);
	n_msgs++;
	all_msgs++;
	ep = u.to[m->from][m->to].ep;
	if (!m->sync && rnd(3) == 0) {
		int rc = plx_worker_tag_send_now(u.w[m->from], ep, m->buf, m->len, m->tag);

		if (rc == 0) {
			memset(m->buf, 0xee, m->len); /* ours again */
			return;
		}
		if (rc != -EAGAIN)
			wrong("send now says %d", rc);
	}
	m->req = unit_send(&u, m->from, m->to, m->buf, m->len, m->tag, m->sync);
}

static struct sim_recv *
recv_new(unsigned at)
{
	struct sim_recv *r = &recvs[n_recvs];

	if (n_recvs == RECVS)
		wrong("more receives than the model holds");
	n_recvs++;
	r->at = at;
	r->len = rnd(5) == 0 ? rnd(500) : LEN_MAX;
	r->buf = malloc(r->len + 1);
	r->msg = -1;
	r->req = plx_req_get(&u.w[at]->reqs);
	if (r->buf == NULL || r->req == NULL)
		abort();
	return r;
}

static void
recv_tag(struct sim_recv *r)
{
	r->tag = rnd(u.n) << 56 | rnd(3) << 48;
	switch (rnd(6)) {
	case 0:
		r->mask = 0;
		break;
	case 1:
		r->mask = FROM_BITS;
		break;
	case 2:
		r->mask = CLASS_BITS;
		break;
	case 3: /* just one, sent lately or soon */
		r->mask = UINT64_MAX;
		if (n_msgs > 0)
			r->tag = msgs[rnd(n_msgs)].tag;
		break;
	default:
		r->mask = FROM_BITS | CLASS_BITS;
		break;
	}
}

static void
op_recv(unsigned at)
{
	struct sim_recv *r = recv_new(at);

	recv_tag(r);
	plx_worker_tag_recv(u.w[at], r->buf, r->len, r->tag, r->mask, r->req);
}

static void
op_recv_all(unsigned at)
{
	struct sim_recv *r = recv_new(at);

	r->tag = r->mask = 0;
	plx_worker_tag_recv(u.w[at], r->buf, r->len, 0, 0, r->req);
}

static void recv_done(struct sim_recv *r, int status);

static void
op_recv_now(unsigned at)
{
	struct sim_recv *r = recv_new(at);
	int rc;

	recv_tag(r);
	rc = plx_worker_tag_recv_now(u.w[at], r->buf, r->len, r->tag, r->mask, r->req);
	if (rc == -EAGAIN) {
		plx_req_put(r->req);
		free(r->buf);
		n_recvs--;
		return;
	}
	recv_done(r, rc);
}

static void
op_probe(unsigned at)
{
	struct sim_recv *r = recv_new(at);
	bool take = rnd(2) == 0;
	struct plx_probe probe;

	recv_tag(r);
	plx_worker_tag_probe(u.w[at], r->tag, r->mask, take, &probe);
	if (probe.msg == NULL || !take) {
		if (probe.msg != NULL && (probe.tag & r->mask) != (r->tag & r->mask))
			wrong("probe found another tag");
		plx_req_put(r->req);
		free(r->buf);
		n_recvs--;
		return;
	}
	plx_worker_msg_recv(u.w[at], probe.msg, r->buf, r->len, r->req);
}

static void
op_cancel(void)
{
	struct sim_recv *r = &recvs[rnd(n_recvs + 1)];

	if (r < recvs + n_recvs && r->req != NULL && !plx_req_is_done(r->req))
		plx_worker_cancel(u.w[r->at], r->req);
}

static void
op_flush(void)
{
	unsigned i = (unsigned)rnd(u.n);
	struct plx_req *req;

	if (n_flushes == 64)
		return;
	flush_at[n_flushes] = i;
	req = flushes[n_flushes++] = plx_req_get(&u.w[i]->reqs);
	plx_worker_flush(u.w[i], rnd(2) ? PLX_FLUSH_EP : PLX_FLUSH_WORKER, &u.to[i][rnd(u.n)],
		req);
}

static void
op_any(void)
{
	unsigned at = (unsigned)rnd(u.n);

	switch ("pqcfrrrrrrsssssssttttttt"[rnd(24)]) {
	case 'p':
		op_probe(at);
		break;
	case 'q':
		op_recv_now(at);
		break;
	case 'c':
		op_cancel();
		break;
	case 'f':
		if (rnd(8) == 0)
			op_flush();
		break;
	case 'r':
		if (n_recvs < n_msgs + 50 && n_recvs < 2 * ROUND)
			op_recv(at);
		break;
	case 's':
		op_send();
		break;
	default:
		plx_worker_progress(u.w[at]);
		break;
	}
}

/* -- what has become of them -- */

static void
recv_done(struct sim_recv *r, int status)
{
	uint64_t id = (r->req->recv.info_tag & ID_BITS) - first_id;

	if (status == -ECANCELED) {
		r->msg = -1;
	} else {
		struct sim_msg *m = &msgs[id % ROUND];

		if (id >= n_msgs || m->tag != r->req->recv.info_tag)
			wrong("a receive has tag %#" PRIx64 " that nobody sent",
				r->req->recv.info_tag);
		if (m->recv != -1)
			wrong("message %#" PRIx64 " is received twice", m->tag);
		if (!matches(r, m))
			wrong("message %#" PRIx64 " to %u went to receive %#" PRIx64 " mask %#" PRIx64
			      " at %u", m->tag, m->to, r->tag, r->mask, r->at);
		if (r->req->recv.info_len != m->len)
			wrong("message %#" PRIx64 " has length %" PRIu64 ", not %" PRIu64, m->tag,
				r->req->recv.info_len, m->len);
		if (status != (m->len > r->len ? -EMSGSIZE : 0))
			wrong("receive of %" PRIu64 " bytes into %" PRIu64 " ends with %d", m->len,
				r->len, status);
		if (status == 0 && !unit_is_filled(r->buf, m->len, m->tag))
			wrong("message %#" PRIx64 " of %" PRIu64 " bytes came altered", m->tag,
				m->len);
		m->recv = (int)(r - recvs);
		r->msg = (int)id;
	}
	plx_req_put(r->req);
	free(r->buf);
	r->req = NULL;
	r->buf = NULL;
}

static unsigned
collect_sends(void)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n_msgs; i++) {
		struct sim_msg *m = &msgs[i];

		if (m->req == NULL)
			continue;
		if (!plx_req_is_done(m->req)) {
			left++;
			continue;
		}
		if (m->req->status != 0)
			wrong("send of %" PRIu64 " bytes ends with %d", m->len, m->req->status);
		plx_req_put(m->req);
		m->req = NULL;
	}
	return left;
}

static unsigned
collect_recvs(void)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n_recvs; i++) {
		if (recvs[i].req == NULL)
			continue;
		if (plx_req_is_done(recvs[i].req))
			recv_done(&recvs[i], recvs[i].req->status);
		else
			left++;
	}
	return left;
}

static unsigned
collect_flushes(void)
{
	unsigned left = 0;

	for (unsigned i = 0; i < n_flushes; i++) {
		if (flushes[i] == NULL)
			continue;
		if (plx_req_is_done(flushes[i])) {
			plx_req_put(flushes[i]);
			flushes[i] = NULL;
		} else {
			left++;
		}
	}
	return left;
}

static void
no_two_are_crossed(void)
{
	for (unsigned i = 0; i < n_msgs; i++) {
		const struct sim_msg *m = &msgs[i];

		for (unsigned k = 0; k < i; k++) {
			const struct sim_msg *before = &msgs[k];

			if (before->from != m->from || before->to != m->to)
				continue;
			if (matches(&recvs[m->recv], before) && before->recv > m->recv)
				wrong("message %#" PRIx64 " overtook %#" PRIx64, m->tag, before->tag);
		}
	}
}

/* Turns until some in a row have found nothing to do. */
static void
turns_until_quiet(void)
{
	unsigned quiet = 0, turns = 0;

	while (quiet < 30 + fake.delay_max) {
		quiet = unit_turns(&u, 1) != 0 ? 0 : quiet + 1;
		if (++turns > 2000000)
			wrong("it does not come to rest");
	}
}

/* Until nothing is on the way: what waits for a receive gets one, and the rest is cancelled. */
static void
come_to_rest(void)
{
	/* Receives for all that have none; those too many are cancelled below. */
	for (;;) {
		turns_until_quiet();
		collect_recvs();
		for (unsigned i = 0; i < n_recvs; i++)
			if (recvs[i].req != NULL)
				plx_worker_cancel(u.w[recvs[i].at], recvs[i].req);
		collect_recvs();
		{
			unsigned missing[UNIT_WORKERS] = {0}, any = 0;

			for (unsigned i = 0; i < n_msgs; i++)
				if (msgs[i].recv == -1)
					any += ++missing[msgs[i].to] != 0;
			/* Those a receive is busy with are no loss: the others find their own. */
			if (any == 0)
				break;
			if (n_recvs + any > RECVS)
				wrong("%u messages are never received", any);
			for (unsigned at = 0; at < u.n; at++)
				while (missing[at]-- != 0)
					op_recv_all(at);
		}
	}
	for (unsigned i = 0; i < 100000 && collect_sends() + collect_flushes() != 0; i++)
		unit_turns(&u, 1);
	if (collect_sends() != 0)
		wrong("%u sends never end", collect_sends());
	if (collect_flushes() != 0)
		wrong("%u flushes never end", collect_flushes());
	if (collect_recvs() != 0)
		wrong("%u receives never end", collect_recvs());
}

static void
round_end(void)
{
	for (unsigned i = 0; i < n_msgs; i++)
		free(msgs[i].buf);
	first_id += n_msgs;
	n_msgs = n_recvs = n_flushes = 0;
}

static void
random_settings(void)
{
	const char *const schemes[] = {"auto", "get", "split", "frag"};
	const char *const eager[] = {"0", "100", "4k", "32k", "1m"};
	const char *const chunk[] = {"4k", "16k", "128k"};
	const char *const lists[] = {"1", "4", "64"};

	unit_workers_conf(&u);
	unit_workers_set(&u, "rndv.scheme", schemes[rnd(4)]);
	unit_workers_set(&u, "proto.eager_max", eager[rnd(5)]);
	unit_workers_set(&u, "rndv.chunk", chunk[rnd(3)]);
	unit_workers_set(&u, "rndv.split_min", chunk[rnd(3)]);
	unit_workers_set(&u, "rndv.frag_max", rnd(3) == 0 ? "8k" : "0");
	unit_workers_set(&u, "tag.offload", rnd(3) == 0 ? "no" : "yes");
	unit_workers_set(&u, "tag.offload_list", lists[rnd(3)]);
	unit_workers_set(&u, "tag.offload_min", rnd(2) == 0 ? "0" : "1k");
	fake.mtu = (uint32_t)(128 + rnd(4000));
	fake.short_max = (uint32_t)(8 + rnd(112));
	fake.connect_mtu = rnd(3) == 0 ? 120 : 0;
	if (rnd(4) == 0)
		fake.caps &= ~(uint32_t)PLX_DEV_SHARED;
	if (rnd(4) == 0)
		fake.caps &= ~(uint32_t)(PLX_DEV_GET | PLX_DEV_PUT);
}

/* Another kind of weather, every round. */
static void
random_faults(void)
{
	fake.depth = rnd(3) == 0 ? 0 : (uint32_t)(1 + rnd(30));
	fake.full_percent = rnd(2) ? 0 : (uint32_t)rnd(60);
	fake.delay_max = rnd(2) ? 0 : (uint32_t)rnd(8);
	fake.short_percent = rnd(2) ? 0 : (uint32_t)rnd(80);
	fake.again_percent = rnd(2) ? 0 : (uint32_t)rnd(60);
	fake.refuse_percent = rnd(8) ? 0 : 3;
	fake.put_err = rnd(6) ? 0 : -EIO;
}

static void
run(uint64_t seed, unsigned n)
{
	unsigned failures = CU_get_number_of_failures();

	n_msgs = n_recvs = n_flushes = 0; /* of a run that ended in the middle */
	sim_seed = rng_state = seed;
	fake_reset(seed);
	random_settings();
	unit_workers_open(&u, n);
	first_id = 1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		random_faults();
		while (n_msgs < ROUND)
			op_any();
		come_to_rest();
		no_two_are_crossed();
		unit_nothing_left(&u);
		if (CU_get_number_of_failures() != failures)
			wrong("something is left over");
		round_end();
	}
	for (unsigned i = 0; i < n; i++) {
		UNIT_EQ(u.w[i]->stat.rx_drop_bad_op + u.w[i]->stat.rx_drop_bad_frag +
			u.w[i]->stat.rx_drop_no_memory, 0);
		UNIT_EQ(u.w[i]->rndv.stat.drop_bad_id + u.w[i]->rndv.stat.drop_bad_range, 0);
		all_consumed += u.w[i]->offload.stat.consumed;
	}
	unit_workers_close(&u);
}

/* One of them dies in the middle: what the others do ends, one way or another. */
static void
run_to_a_death(uint64_t seed, unsigned n)
{
	unsigned dead = (unsigned)(seed % n);

	n_msgs = n_recvs = n_flushes = 0; /* of a run that ended in the middle */
	sim_seed = rng_state = seed;
	fake_reset(seed);
	random_settings();
	unit_workers_open(&u, n);
	first_id = 1;
	random_faults();
	while (n_msgs < ROUND / 2)
		op_any();
	unit_kill(&u, dead);
	for (unsigned i = 0; i < 5; i++) { /* the first may only let go of the last messages */
		turns_until_quiet();
		for (unsigned k = 0; k < n; k++)
			if (u.w[k] != NULL)
				unit_check_peers(u.w[k]);
	}
	/* Whatever was kept is received, and what is posted in vain withdrawn. */
	for (unsigned at = 0; at < n; at++) {
		struct plx_probe probe = {NULL, 0, 0};

		while (u.w[at] != NULL) {
			plx_worker_tag_probe(u.w[at], 0, 0, false, &probe);
			if (probe.msg == NULL)
				break;
			op_recv_all(at);
		}
	}
	for (unsigned i = 0; i < n_recvs; i++)
		if (recvs[i].at != dead && recvs[i].req != NULL)
			plx_worker_cancel(u.w[recvs[i].at], recvs[i].req);
	turns_until_quiet();
	for (unsigned i = 0; i < n_msgs; i++) {
		struct sim_msg *m = &msgs[i];

		if (m->from == dead || m->req == NULL)
			continue;
		if (!plx_req_is_done(m->req) && m->to != dead) /* a sync that nobody receives */
			plx_worker_ep_cancel(u.w[m->from], &u.to[m->from][m->to]);
		if (!plx_req_is_done(m->req))
			wrong("a send of %" PRIu64 " bytes to %u never ends", m->len, m->to);
		plx_req_put(m->req);
	}
	for (unsigned i = 0; i < n_recvs; i++) {
		struct sim_recv *r = &recvs[i];

		if (r->at != dead && r->req != NULL) {
			if (!plx_req_is_done(r->req))
				wrong("a receive never ends");
			plx_req_put(r->req);
		}
		free(r->buf);
	}
	for (unsigned i = 0; i < n_flushes; i++) {
		if (flush_at[i] == dead)
			continue;
		if (!plx_req_is_done(flushes[i]))
			wrong("a flush never ends");
		plx_req_put(flushes[i]);
	}
	round_end();
	unit_workers_close(&u);
}

static void
two_workers_agree_with_the_model(void)
{
	uint64_t seed = unit_seed(1);

	for (unsigned i = 0; i < 6; i++)
		run(seed + i, 2);
}

static void
three_workers_agree_with_the_model(void)
{
	uint64_t seed = unit_seed(1001);

	for (unsigned i = 0; i < 6; i++)
		run(seed + i, 3);
	printf("%" PRIu64 " messages ", all_msgs);
	UNIT_TRUE(all_msgs >= 100000);
	UNIT_TRUE(all_consumed > 100);
}

static void
a_death_in_the_middle_ends_all_that_waits_for_it(void)
{
	uint64_t seed = unit_seed(5001);

	for (unsigned i = 0; i < 60; i++)
		run_to_a_death(seed + i, 2 + i % 2);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(two_workers_agree_with_the_model),
	UNIT_TEST(three_workers_agree_with_the_model),
	UNIT_TEST(a_death_in_the_middle_ends_all_that_waits_for_it),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"simulation", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
