/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_key_test.c - put, get and atomics by a device with keys, and when they go by message
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_proc.h"
#include "rma_test.h"

#define LEN    (3u << 20)
#define OWN64  (PLX_REGION_READ | PLX_REGION_WRITE | PLX_REGION_DEV64)

static struct plx_dev_region dev;
static struct plx_region_key region;
static struct plx_rkey *rkey;
static uint8_t there[LEN], here[LEN + 1];

/* The packed key of what the target has registered. */
static struct plx_wire_rkey
wire_of(uint8_t rights)
{
	struct plx_proc self;

	UNIT_EQ_FATAL(plx_proc_self(&self), 0);
	return (struct plx_wire_rkey){.rights = rights, .index = region.index, .token = region.token,
		.base = (uintptr_t)there, .len = LEN, .proc = plx_proc_id(&self) & PLX_WIRE_PROC_MASK,
		.n_devs = 1, .devs = {{(uint32_t)dev.keys[0].mem.key, dev.keys[0].port}}};
}

static void
begin_with(uint8_t rights, const char *scheme)
{
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_wire_rkey wire;
	struct plx_peer peer;

	fake_reset(7);
	fake.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS;
	unit_workers_conf(&u);
	unit_workers_set(&u, "rma.scheme", scheme);
	unit_workers_open(&u, UNIT_WORKERS);
	memset(there, 0, LEN);
	UNIT_EQ_FATAL(plx_dev_region_open(&u.conf, there, LEN,
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE | PLX_DEV_MEM_ATOMIC, &dev), 0);
	UNIT_TRUE(dev.alone);
	UNIT_EQ_FATAL(plx_region_add((uintptr_t)there, LEN, rights, &region), 0);
	wire = wire_of(rights);
	plx_wire_rkey_pack(&wire, blob);
	peer = (struct plx_peer){.proc = wire.proc, .domain = plx_dev_domain(wire.proc, fake.port)};
	UNIT_EQ_FATAL(plx_rkey_unpack(&peer, blob, UINT8_MAX, false, &rkey), 0);
}

static void
begin(void)
{
	begin_with(OWN64, "auto");
}

static void
end(void)
{
	plx_rkey_destroy(rkey);
	plx_dev_region_close(&dev);
	plx_region_remove(&region);
	UNIT_EQ(fake_regs(), 0);
	UNIT_EQ(fake_keys_out(), 0);
	unit_workers_close(&u);
}

static struct plx_req *
start(unsigned from, struct plx_rma_do d)
{
	struct plx_req *req = plx_req_get(&u.w[from]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	req->dt = NULL;
	d.ep = u.to[from][TARGET].ep;
	d.conn_id = u.to[from][TARGET].conn_id;
	d.rkey = rkey;
	plx_worker_rma(u.w[from], &d, req);
	return req;
}

static struct plx_req *
move(uint8_t kind, void *buf, uint64_t len, uint64_t offset)
{
	return start(0, (struct plx_rma_do){.kind = kind, .buf = buf, .len = len,
		.remote = (uintptr_t)there + offset});
}

static struct plx_req *
atomic(unsigned from, uint8_t op, uint64_t a, uint64_t b, uint64_t *old)
{
	return start(from, (struct plx_rma_do){.kind = PLX_RMA_ATOMIC, .op = op, .buf = old,
		.len = 8, .remote = (uintptr_t)there, .operand = {a, b}, .fetch = old != NULL});
}

static void
every_length_is_put_and_got_without_the_target(void)
{
	const uint64_t lens[] = {1, 8, 129, fake.mtu, fake.mtu + 1, 1 << 20, (1 << 20) + 1, LEN};
	unsigned n = sizeof(lens) / sizeof(lens[0]);

	begin();
	fake.delay_max = 3;
	fake.again_percent = 30;
	for (unsigned i = 0; i < n; i++) {
		unit_fill(here, lens[i], i);
		UNIT_END(&u, move(PLX_RMA_PUT, here, lens[i], LEN - lens[i]), 0);
		UNIT_TRUE(unit_is_filled(there + LEN - lens[i], lens[i], i));
		memset(here, 0xcc, sizeof(here));
		UNIT_END(&u, move(PLX_RMA_GET, here, lens[i], LEN - lens[i]), 0);
		UNIT_TRUE(unit_is_filled(here, lens[i], i));
		UNIT_EQ(here[lens[i]], 0xcc);
	}
	UNIT_EQ(stat_of(0)->key, 2 * n);
	UNIT_EQ(stat_of(0)->msg + stat_of(0)->dev, 0);
	UNIT_EQ(stat_of(TARGET)->puts + stat_of(TARGET)->gets, 0);
	end();
}

static void
a_short_put_is_taken_and_a_flush_waits_for_it(void)
{
	struct plx_req *put, *all;

	for (unsigned k = 0; k < 2; k++) {
		begin();
		fake.delay_max = 30;
		memset(here, 1, LEN);
		put = move(PLX_RMA_PUT, here, fake.mtu, 0);
		UNIT_TRUE(plx_worker_rma_is_taken(u.w[0], put));
		memset(here, 2, LEN); /* the caller's again */
		all = flush(k == 0 ? PLX_FLUSH_EP : PLX_FLUSH_WORKER);
		for (unsigned i = 0; i < 100 && !plx_req_is_done(put); i++) {
			UNIT_EQ(plx_req_is_done(all), false);
			unit_turns(&u, 1);
		}
		UNIT_EQ(there[0], 1);
		UNIT_EQ(there[fake.mtu - 1], 1);
		UNIT_END(&u, put, 0);
		UNIT_END(&u, all, 0);
		put = move(PLX_RMA_PUT, here, fake.mtu + 1, 0);
		UNIT_EQ(plx_worker_rma_is_taken(u.w[0], put), false);
		UNIT_END(&u, put, 0);
		end();
	}
}

/* Of a caller who wants no request. */
static int
put_now(const void *buf, uint64_t len, uint64_t offset)
{
	return plx_worker_rma_now(u.w[0], &(struct plx_rma_do){.kind = PLX_RMA_PUT,
		.ep = u.to[0][TARGET].ep, .conn_id = u.to[0][TARGET].conn_id, .rkey = rkey,
		.buf = (void *)(uintptr_t)buf, .len = len, .remote = (uintptr_t)there + offset}, false);
}

/* The first operation connects, with a request. */
static void
begin_connected(void)
{
	begin();
	UNIT_EQ(put_now(here, 8, 0), -EAGAIN);
	UNIT_END(&u, move(PLX_RMA_PUT, here, 8, 0), 0);
}

/* The application shares the worker with a reactor, which has the turns, or has granted them. */
static void
give_turns(struct plx_worker *w, enum plx_gate_owner owner)
{
	w->poller.gate.bias.to = owner;
}

static void
short_puts_go_at_once_while_turns_are_granted(void)
{
	struct plx_worker *w;

	begin_connected();
	w = u.w[0];
	UNIT_EQ_FATAL(plx_inbox_open(&w->inbox, false), 0);
	UNIT_EQ_FATAL(plx_cq_create(&w->reqs.cq), 0);
	w->poller.gate = (struct plx_gate){.one = true, .grantee = PLX_GATE_ONE};
	w->turn_due = PLX_WORKER_TURN_EVERY;
	w->dedicated = true;
	give_turns(w, PLX_GATE_REACTOR);
	UNIT_EQ(put_now(here, 8, 0), -EAGAIN);
	UNIT_EQ(w->stat.direct, 0);
	give_turns(w, PLX_GATE_ONE);
	here[0] = 7;
	UNIT_EQ(put_now(here, 8, 0), 0);
	UNIT_EQ(put_now(here, PLX_WORKER_LONG_LEN, 0), -EAGAIN); /* the reactor's */
	UNIT_EQ(stat_of(0)->quick, 1);
	UNIT_EQ(w->stat.direct, 1);
	UNIT_TRUE(!w->poller.gate.bias.inside);
	for (unsigned i = 0; i < 2; i++) { /* the second time there is nothing to mark, and nobody is asked */
		UNIT_EQ(plx_worker_fence(w), 0);
		UNIT_EQ(stat_of(0)->marks, 1);
		UNIT_TRUE(w->rma.fenced);
		give_turns(w, PLX_GATE_REACTOR);
	}
	w->dedicated = false;
	plx_cq_destroy(w->reqs.cq);
	w->reqs.cq = NULL;
	plx_inbox_close(&w->inbox);
	UNIT_END(&u, flush(PLX_FLUSH_WORKER), 0);
	UNIT_EQ(there[0], 7);
	end();
}

static void
short_puts_take_no_request(void)
{
	struct plx_req *waits;
	uint32_t most;

	begin_connected();
	most = u.to[0][TARGET].ep->peer->short_max;
	fake.delay_max = 30;
	unit_fill(here, most, 1);
	UNIT_EQ(put_now(here, 1, 0), 0);
	UNIT_EQ(put_now(here, most, 100), 0);
	UNIT_EQ(put_now(here, most + 1, 200), -EAGAIN);
	memset(here, 0, most); /* the caller's again */
	UNIT_EQ(atomic_load(&u.w[0]->rma.n_ops), 0);
	UNIT_EQ(stat_of(0)->quick, 2);
	unit_turns(&u, 50);
	UNIT_TRUE(unit_is_filled(there, 1, 1) && unit_is_filled(there + 100, most, 1));
	UNIT_EQ(fake_keys_out(), 0);
	/* Nothing overtakes what waits. */
	fake.again_percent = 100;
	waits = move(PLX_RMA_PUT, here, 8, 0);
	fake.again_percent = 0;
	UNIT_EQ(put_now(here, 8, 0), -EAGAIN);
	UNIT_END(&u, waits, 0);
	UNIT_EQ(put_now(here, 8, 0), 0);
	fake.again_percent = 100;
	UNIT_EQ(put_now(here, 8, 0), -EAGAIN);
	fake.again_percent = 0;
	UNIT_EQ(put_now(here, 8, 0), 0);
	unit_turns(&u, 50);
	UNIT_EQ(stat_of(0)->marks, 0);
	end();
}

static void
a_flush_waits_for_puts_without_requests(void)
{
	struct plx_req *all;

	for (unsigned kind = PLX_FLUSH_EP; kind <= PLX_FLUSH_WORKER; kind++) {
		begin_connected();
		fake.delay_max = 30;
		memset(here, 7, 8);
		UNIT_EQ(put_now(here, 8, 0), 0);
		UNIT_EQ(put_now(here, 8, 8), 0);
		all = flush(kind);
		UNIT_EQ(plx_req_is_done(all), false);
		UNIT_EQ(fake_keys_out(), 3);
		UNIT_END(&u, all, 0);
		UNIT_TRUE(there[0] == 7 && there[15] == 7);
		UNIT_EQ(stat_of(0)->marks, 1);
		all = flush(kind); /* nothing was put since */
		UNIT_END(&u, all, 0);
		UNIT_EQ(stat_of(0)->marks, 1);
		unit_turns(&u, 50);
		end();
	}
}

static void
a_fence_waits_for_puts_without_requests(void)
{
	struct plx_req *get;
	uint64_t got = 0;

	begin_connected();
	fake.delay_max = 30;
	memset(here, 5, 8);
	UNIT_EQ(put_now(here, 8, 0), 0);
	UNIT_EQ(plx_worker_fence(u.w[0]), 0);
	UNIT_EQ(put_now(here, 8, 8), -EAGAIN);
	get = move(PLX_RMA_GET, &got, 8, 0);
	for (unsigned i = 0; i < 100 && atomic_load(&u.w[0]->rma.n_ops) == 2; i++) {
		UNIT_TRUE(fake_keys_out() <= 2); /* the put and the mark */
		unit_turns(&u, 1);
	}
	UNIT_EQ(plx_req_is_done(get), false);
	UNIT_END(&u, get, 0);
	UNIT_EQ(got, 0x0505050505050505);
	end();
}

static void
a_mark_waits_for_room_as_others_do(void)
{
	struct plx_req *all;

	begin_connected();
	UNIT_EQ(put_now(here, 8, 0), 0);
	fake.again_percent = 100;
	all = flush(PLX_FLUSH_EP);
	unit_turns(&u, 50);
	UNIT_EQ(plx_req_is_done(all), false);
	fake.again_percent = 0;
	UNIT_END(&u, all, 0);
	end();
}

static void
who_flushes_after_every_put_marks_seldom(void)
{
	begin_connected();
	for (unsigned i = 0; i < 66; i++) {
		int rc = put_now(here, 8, 0);

		if (rc == -EAGAIN)
			UNIT_END(&u, move(PLX_RMA_PUT, here, 8, 0), 0);
		UNIT_EQ(rc, i % 33 == 0 ? 0 : -EAGAIN);
		UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	}
	UNIT_EQ(stat_of(0)->marks, 2);
	end();
}

static void
that_a_peer_died_is_told_by_each_flush_of_an_open_handle(void)
{
	for (unsigned k = 0; k < 2; k++) {
		begin_connected();
		if (k == 1) /* none is out */
			UNIT_END(&u, flush(PLX_FLUSH_WORKER), 0);
		else
			UNIT_EQ(put_now(here, 8, 0), 0);
		unit_kill(&u, TARGET);
		unit_check_peers(u.w[0]);
		unit_turns(&u, 1);
		UNIT_TRUE(u.to[0][TARGET].ep->err != 0);
		UNIT_EQ(put_now(here, 8, 0), -ECONNRESET);
		for (unsigned i = 0; i < 2; i++) { /* puts without requests were out, or none */
			UNIT_END(&u, flush(PLX_FLUSH_EP), -ECONNRESET);
			UNIT_END(&u, flush(PLX_FLUSH_WORKER), -ECONNRESET);
		}
		end();
	}
}

static void
an_error_of_a_taken_put_is_told_by_one_flush(void)
{
	struct plx_req *put;

	begin();
	fake.delay_max = 30;
	put = move(PLX_RMA_PUT, here, 8, 0);
	UNIT_TRUE(plx_worker_rma_is_taken(u.w[0], put));
	plx_worker_ep_cancel(u.w[0], &u.to[0][TARGET]);
	UNIT_EQ(plx_req_is_done(put), false); /* the device has it yet */
	UNIT_END(&u, put, -ECANCELED);
	UNIT_END(&u, flush(PLX_FLUSH_EP), -ECANCELED);
	UNIT_END(&u, flush(PLX_FLUSH_EP), 0);
	UNIT_END(&u, flush(PLX_FLUSH_WORKER), -ECANCELED);
	end();
}

static void
what_is_behind_a_fence_waits_for_the_device(void)
{
	struct plx_req *first, *second;
	uint64_t got = 0;

	begin();
	fake.delay_max = 30;
	memset(here, 3, 8);
	first = move(PLX_RMA_PUT, here, 8, 0);
	plx_rma_fence(&u.w[0]->rma);
	second = move(PLX_RMA_GET, &got, 8, 0);
	for (unsigned i = 0; i < 100 && !plx_req_is_done(first); i++) {
		UNIT_EQ(fake_keys_out(), 1);
		unit_turns(&u, 1);
	}
	UNIT_END(&u, first, 0);
	UNIT_END(&u, second, 0);
	UNIT_EQ(got, 0x0303030303030303);
	end();
}

/* Peers that put into each other's memory find nothing in their turns, and yet must not yield. */
static void
who_puts_is_not_idle(void)
{
	struct plx_req *put;

	begin();
	unit_turns(&u, 40);
	UNIT_TRUE(u.w[0]->empty_turns >= 5);
	put = move(PLX_RMA_PUT, here, 8, 0);
	UNIT_EQ(u.w[0]->empty_turns, 0);
	UNIT_END(&u, put, 0);
	end();
}

static void
atomics_do_what_they_say_and_return_what_was(void)
{
	static const struct {
		uint8_t op;
		uint64_t a, b, was, is;
	} rows[] = {
		{PLX_RMA_ADD, 5, 0, 10, 15}, {PLX_RMA_AND, 6, 0, 15, 6}, {PLX_RMA_OR, 9, 0, 6, 15},
		{PLX_RMA_XOR, 3, 0, 15, 12}, {PLX_RMA_SWAP, 99, 0, 12, 99},
		{PLX_RMA_CSWAP, 98, 1, 99, 99}, {PLX_RMA_CSWAP, 99, 1, 99, 1},
	};
	uint64_t old, ten = 10;

	begin();
	memcpy(there, &ten, 8);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		UNIT_END(&u, atomic(0, rows[i].op, rows[i].a, rows[i].b, &old), 0);
		UNIT_EQ(old, rows[i].was);
		UNIT_SAME(there, &rows[i].is, 8);
	}
	UNIT_END(&u, atomic(0, PLX_RMA_OR, 6, 0, NULL), 0); /* nothing comes back */
	UNIT_EQ(there[0], 7);
	UNIT_EQ(stat_of(TARGET)->atomics, 0);
	end();
}

/* Each turns one bit, at the same time: whoever is overtaken has to look again. */
static void
no_atomic_is_lost_among_many(void)
{
	enum { N = 64 };
	struct plx_req *reqs[N];
	uint64_t old[N], seen = 0;
	unsigned n_swaps;

	begin();
	fake.delay_max = 3;
	fake.again_percent = 20;
	for (unsigned i = 0; i < N; i++)
		reqs[i] = atomic(i % 2 * 2, i % 3 ? PLX_RMA_XOR : PLX_RMA_ADD, 1ull << i, 0, &old[i]);
	for (unsigned i = 0; i < N; i++) {
		UNIT_TRUE_FATAL(unit_finish(&u, reqs[i]));
		UNIT_EQ((old[i] >> i) & 1, 0);
		UNIT_EQ(reqs[i]->status, 0);
		plx_req_put(reqs[i]);
	}
	memcpy(&seen, there, 8);
	UNIT_EQ(seen, UINT64_MAX);
	n_swaps = unit_queue(&u, 0)->stat.rma_ops + unit_queue(&u, 2)->stat.rma_ops;
	UNIT_TRUE(n_swaps > N + 2 * (N - N / 3)); /* some were overtaken, or this test proves little */
	end();
}

static void
who_does_atomics_is_for_the_key_to_say(void)
{
	const uint8_t cpu64 = PLX_REGION_READ | PLX_REGION_WRITE | PLX_REGION_CPU64;
	uint64_t old = 9;

	/* By the device, whatever this side would rather do. */
	begin_with(OWN64, "message");
	UNIT_END(&u, atomic(0, PLX_RMA_ADD, 1, 0, &old), 0);
	UNIT_EQ(stat_of(0)->key, 1);
	/* What cannot be the device's is refused, here and there. */
	rkey->domain++;
	UNIT_END(&u, atomic(0, PLX_RMA_ADD, 1, 0, &old), -EOPNOTSUPP);
	rkey->cpu64 = true;
	UNIT_END(&u, atomic(0, PLX_RMA_ADD, 1, 0, &old), -EACCES);
	UNIT_EQ(stat_of(TARGET)->refused, 1);
	UNIT_EQ(there[0], 1);
	end();
	/* By processors; words of 4 bytes are always theirs. */
	begin_with(cpu64, "auto");
	UNIT_END(&u, atomic(0, PLX_RMA_ADD, 1, 0, &old), 0);
	UNIT_EQ(stat_of(TARGET)->atomics, 1);
	end();
	begin();
	UNIT_END(&u, start(0, (struct plx_rma_do){.kind = PLX_RMA_ATOMIC, .op = PLX_RMA_ADD,
		.buf = &old, .len = 4, .remote = (uintptr_t)there, .operand = {1}, .fetch = true}), 0);
	UNIT_EQ(stat_of(TARGET)->atomics, 1);
	UNIT_EQ(stat_of(0)->key, 0);
	end();
}

static void
who_has_another_device_or_none_asks_by_message(void)
{
	for (unsigned k = 0; k < 3; k++) {
		begin_with(OWN64, k == 0 ? "message" : "auto");
		if (k == 1)
			rkey->domain++;
		if (k == 2)
			rkey->dev_key = 0;
		unit_fill(here, LEN, 3);
		UNIT_END(&u, move(PLX_RMA_PUT, here, LEN, 0), 0);
		UNIT_TRUE(unit_is_filled(there, LEN, 3));
		UNIT_EQ(stat_of(0)->msg, 1);
		UNIT_EQ(stat_of(0)->key, 0);
		end();
	}
}

/* Our side can't be registered: seen before anything has moved, or after a part. */
/* The target's device takes no answers, and memory for more of them is not to be had. */
static void
answers_by_message_wait_and_none_is_lost(void)
{
	enum { N = 3 * PLX_RMA_WINDOW };
	struct plx_req *puts[N];
	struct plx_rma *r;

	begin_with(OWN64, "message");
	r = &u.w[TARGET]->rma;
	UNIT_END(&u, move(PLX_RMA_PUT, here, 8, 0), 0);
	r->replies.max_objs = r->replies.n_objs;
	fake_block(unit_queue(&u, TARGET), true);
	for (unsigned i = 0; i < N; i++)
		puts[i] = start(i % 2 * 2, (struct plx_rma_do){.kind = PLX_RMA_PUT, .buf = here, .len = 8,
			.remote = (uintptr_t)there + 8 * i});
	unit_turns(&u, N);
	UNIT_TRUE(u.w[TARGET]->eps.stat.rx_held > 0);
	UNIT_EQ(r->stat.drop_replies, 0);
	fake_block(unit_queue(&u, TARGET), false);
	for (unsigned i = 0; i < N; i++)
		UNIT_END(&u, puts[i], 0);
	end();
}

static void
what_the_device_refuses_goes_on_by_message(void)
{
	for (unsigned kind = PLX_RMA_PUT; kind <= PLX_RMA_GET; kind++) {
		for (unsigned percent = 30; percent <= 100; percent += 70) {
			begin();
			fake.delay_max = 10;
			fake.refuse_percent = percent;
			unit_fill(here, LEN, 4);
			if (kind == PLX_RMA_GET) {
				memcpy(there, here, LEN);
				memset(here, 0, LEN);
			}
			for (unsigned i = 0; i < 10; i++)
				UNIT_END(&u, move(kind, here, LEN, 0), 0);
			UNIT_TRUE(unit_is_filled(kind == PLX_RMA_GET ? here : there, LEN, 4));
			UNIT_TRUE(stat_of(0)->msg >= 4);
			end();
		}
	}
}

/* A device that fails while something is under way: the rest ends it. */
static void
an_error_of_the_device_ends_the_operation_once(void)
{
	struct plx_req *req;

	begin();
	fake.delay_max = 10;
	fake.again_percent = 60;
	req = move(PLX_RMA_PUT, here, LEN, 0);
	for (unsigned i = 0; i < 100 && fake_keys_out() == 0; i++)
		unit_turns(&u, 1);
	fake.put_err = -EIO;
	UNIT_END(&u, req, -EIO);
	UNIT_EQ(fake_keys_out(), 0);
	fake.put_err = 0;
	UNIT_END(&u, move(PLX_RMA_PUT, here, LEN, 0), 0);
	end();
}

static void
a_dead_target_ends_what_is_under_way(void)
{
	struct plx_req *req;

	begin();
	fake.delay_max = 30;
	req = move(PLX_RMA_PUT, here, LEN, 0);
	unit_turns(&u, 1);
	unit_kill(&u, TARGET);
	u.w[TARGET] = NULL;
	unit_check_peers(u.w[0]);
	UNIT_TRUE_FATAL(unit_finish(&u, req));
	UNIT_EQ(req->status, -ECONNRESET);
	plx_req_put(req);
	end();
}

static struct plx_wire_rkey
wire_full(unsigned n_devs)
{
	return (struct plx_wire_rkey){.rights = PLX_REGION_READ, .index = PLX_WIRE_INDEX_MAX,
		.window = PLX_WIRE_WINDOW_MAX, .token = UINT64_MAX, .base = UINT64_MAX >> 1,
		.len = UINT64_MAX >> 8, .proc = PLX_WIRE_PROC_MASK, .n_devs = n_devs,
		.devs = {{100, 1}, {101, 2}, {UINT32_MAX, 3}, {0, UINT16_MAX}}};
}

/* Structures have padding. */
static void
same_key(const struct plx_wire_rkey *a, const struct plx_wire_rkey *b)
{
	UNIT_SAME(a, b, offsetof(struct plx_wire_rkey, devs));
	for (unsigned i = 0; i < PLX_WIRE_RKEY_KEYS; i++) {
		UNIT_EQ(a->devs[i].key, b->devs[i].key);
		UNIT_EQ(a->devs[i].port, b->devs[i].port);
	}
}

static void
a_packed_key_says_all_of_it_in_64_bytes(void)
{
	static const unsigned bytes[] = {40, 46, 52, 58, 64};
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_wire_rkey out;

	for (unsigned n = 0; n <= PLX_WIRE_RKEY_KEYS; n++) {
		struct plx_wire_rkey wire = wire_full(n);

		for (unsigned i = n; i < PLX_WIRE_RKEY_KEYS; i++)
			wire.devs[i] = (struct plx_wire_rkey_dev){0, 0};
		UNIT_EQ(plx_wire_rkey_pack(&wire, blob), bytes[n]);
		UNIT_EQ(plx_wire_rkey_len(blob), bytes[n]);
		UNIT_EQ_FATAL(plx_wire_rkey_unpack(blob, &out), 0);
		same_key(&out, &wire);
	}
}

static void
a_key_of_several_ports_is_that_of_the_peers(void)
{
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_rkey *k;

	for (unsigned n = 1; n <= PLX_WIRE_RKEY_KEYS; n++) {
		struct plx_wire_rkey wire = wire_full(n);

		wire.devs[2].key = 102;
		wire.devs[3] = (struct plx_wire_rkey_dev){103, 4};
		plx_wire_rkey_pack(&wire, blob);
		for (uint16_t port = 1; port <= 5; port++) {
			struct plx_peer peer = {.proc = wire.proc,
				.domain = plx_dev_domain(wire.proc, port)};
			bool has = port <= n;

			UNIT_EQ_FATAL(plx_rkey_unpack(&peer, blob, UINT8_MAX, false, &k), 0);
			UNIT_EQ(k->dev_key, PLX_DEV_KEY_SET | (has ? 99u + port : 100u));
			/* not the peer's: by message */
			UNIT_EQ(k->domain, plx_dev_domain(wire.proc, has ? port : 1));
			plx_rkey_destroy(k);
		}
		UNIT_EQ_FATAL(plx_rkey_unpack(NULL, blob, UINT8_MAX, false, &k), 0);
		UNIT_EQ(k->dev_key, PLX_DEV_KEY_SET | 100);
		plx_rkey_destroy(k);
	}
}

static void
no_two_ports_of_a_process_have_one_domain(void)
{
	struct plx_proc self;
	uint64_t id;
	uint32_t *seen;

	UNIT_EQ_FATAL(plx_proc_self(&self), 0);
	id = plx_proc_id(&self);
	seen = calloc(UINT16_MAX + 1, sizeof(*seen));
	UNIT_TRUE_FATAL(seen != NULL);
	for (unsigned port = 1; port <= UINT16_MAX; port++) {
		uint32_t d = plx_dev_domain(id, port);

		UNIT_EQ(d, plx_dev_domain(id & PLX_WIRE_PROC_MASK, port));
		UNIT_EQ(seen[d >> 16], 0);
		seen[d >> 16] = 1;
	}
	free(seen);
}

static void
a_key_of_another_process_is_of_no_use(void)
{
	struct plx_wire_rkey wire = wire_full(1);
	struct plx_peer peer = {.proc = wire.proc | 5ull << 40}; /* more of its id than the key has */
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_rkey *k;

	plx_wire_rkey_pack(&wire, blob);
	UNIT_EQ_FATAL(plx_rkey_unpack(&peer, blob, UINT8_MAX, false, &k), 0);
	plx_rkey_destroy(k);
	for (unsigned bit = 0; bit < 40; bit++) {
		peer.proc ^= 1ull << bit;
		UNIT_EQ(plx_rkey_unpack(&peer, blob, UINT8_MAX, false, &k), -EHOSTUNREACH);
		peer.proc ^= 1ull << bit;
	}
}

static bool
is_taken_for_ours(const struct plx_wire_rkey *wire)
{
	struct plx_proc self;
	struct plx_peer peer = {.proc = 0};
	uint8_t blob[PLX_WIRE_RKEY_MAX];
	struct plx_rkey *k;
	bool mapped;

	UNIT_EQ_FATAL(plx_proc_self(&self), 0);
	peer.proc = plx_proc_id(&self); /* its address says so */
	plx_wire_rkey_pack(wire, blob);
	UNIT_EQ_FATAL(plx_rkey_unpack(&peer, blob, UINT8_MAX, true, &k), 0);
	mapped = k->mapped;
	plx_rkey_destroy(k);
	return mapped;
}

/* A peer that said it was us, with a key of all memory, had us read and write our own anywhere. */
static void
a_key_of_our_own_memory_is_one_that_we_have_made(void)
{
	struct plx_wire_rkey good, bad[6];

	begin_with(PLX_REGION_READ | PLX_REGION_CPU64, "auto");
	good = wire_of(PLX_REGION_READ | PLX_REGION_CPU64);
	UNIT_TRUE(is_taken_for_ours(&good));
	for (unsigned i = 0; i < RTE_DIM(bad); i++)
		bad[i] = good;
	bad[0].token ^= 1;
	bad[1].index++;
	bad[2].len++;
	bad[3].base--;
	bad[4].base = 0;
	bad[4].len = UINT64_MAX >> 8;
	bad[5].rights |= PLX_REGION_WRITE;
	for (unsigned i = 0; i < RTE_DIM(bad); i++)
		UNIT_TRUE(!is_taken_for_ours(&bad[i]));
	end();
}

static void
a_packed_key_that_is_cut_or_says_more_than_it_has_is_refused(void)
{
	uint8_t blob[PLX_WIRE_RKEY_MAX + 8];
	struct plx_wire_rkey wire = wire_full(2), out;

	plx_wire_rkey_pack(&wire, blob);
	for (unsigned said = 0; said < 16; said++) {
		uint8_t copy[sizeof(blob)];

		memcpy(copy, blob, sizeof(copy));
		copy[2] = (copy[2] & 0xf0) | said;
		UNIT_EQ(plx_wire_rkey_len(copy), said <= 4 ? 40 + 6 * said : 0);
		UNIT_EQ(plx_wire_rkey_unpack(copy, &out), said == 2 ? 0 : -EINVAL);
	}
	wire.devs[1].port = 0; /* a key of no port */
	plx_wire_rkey_pack(&wire, blob);
	UNIT_EQ(plx_wire_rkey_unpack(blob, &out), -EINVAL);
	wire = wire_full(0);
	wire.base = UINT64_MAX - 10; /* past the end of all addresses */
	plx_wire_rkey_pack(&wire, blob);
	UNIT_EQ(plx_wire_rkey_unpack(blob, &out), -EINVAL);
	wire.base = 8;
	wire.len = UINT64_MAX - 8; /* more than a process has, which all of it covers */
	plx_wire_rkey_pack(&wire, blob);
	UNIT_EQ_FATAL(plx_wire_rkey_unpack(blob, &out), 0);
	UNIT_EQ(out.len, UINT64_MAX >> 8);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_key_of_our_own_memory_is_one_that_we_have_made),
	UNIT_TEST(every_length_is_put_and_got_without_the_target),
	UNIT_TEST(a_short_put_is_taken_and_a_flush_waits_for_it),
	UNIT_TEST(short_puts_take_no_request),
	UNIT_TEST(short_puts_go_at_once_while_turns_are_granted),
	UNIT_TEST(a_flush_waits_for_puts_without_requests),
	UNIT_TEST(a_fence_waits_for_puts_without_requests),
	UNIT_TEST(a_mark_waits_for_room_as_others_do),
	UNIT_TEST(who_flushes_after_every_put_marks_seldom),
	UNIT_TEST(that_a_peer_died_is_told_by_each_flush_of_an_open_handle),
	UNIT_TEST(an_error_of_a_taken_put_is_told_by_one_flush),
	UNIT_TEST(what_is_behind_a_fence_waits_for_the_device),
	UNIT_TEST(who_puts_is_not_idle),
	UNIT_TEST(atomics_do_what_they_say_and_return_what_was),
	UNIT_TEST(no_atomic_is_lost_among_many),
	UNIT_TEST(who_does_atomics_is_for_the_key_to_say),
	UNIT_TEST(who_has_another_device_or_none_asks_by_message),
	UNIT_TEST(answers_by_message_wait_and_none_is_lost),
	UNIT_TEST(what_the_device_refuses_goes_on_by_message),
	UNIT_TEST(an_error_of_the_device_ends_the_operation_once),
	UNIT_TEST(a_dead_target_ends_what_is_under_way),
	UNIT_TEST(a_packed_key_says_all_of_it_in_64_bytes),
	UNIT_TEST(no_two_ports_of_a_process_have_one_domain),
	UNIT_TEST(a_key_of_another_process_is_of_no_use),
	UNIT_TEST(a_key_of_several_ports_is_that_of_the_peers),
	UNIT_TEST(a_packed_key_that_is_cut_or_says_more_than_it_has_is_refused),
	CU_TEST_INFO_NULL,
};

int
main(void)
{
	CU_SuiteInfo suites[] = {{"rma_key", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	if (unit_start() != 0)
		return 77;
	return unit_run(suites);
}
