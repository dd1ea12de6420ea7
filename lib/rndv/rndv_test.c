/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_test.c - large messages by every scheme, and what happens when half of it fails
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plx_cursor.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"

#define LEN 1000003 /* not a multiple of anything */
#define KEYS_CAPS (PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS)

static struct unit_workers u;
static uint8_t from[LEN], to[LEN + 64];
static uint8_t lent[LEN]; /* as from, until the send of it is complete */

static void
begin(const char *scheme)
{
	fake_reset(11);
	unit_workers_conf(&u);
	unit_workers_set(&u, "rndv.scheme", scheme);
	unit_workers_set(&u, "rndv.chunk", "16k");
	unit_fill(from, LEN, 5);
	memset(to, 0xcc, sizeof(to));
}

static const struct plx_rndv_stat *
stat_of(unsigned i)
{
	return &u.w[i]->rndv.stat;
}

/* One message from 0 to 1, whole and nothing beyond. */
static void
transfer(uint64_t len, bool recv_first)
{
	struct plx_req *send, *recv = NULL;

	memset(to, 0xcc, sizeof(to));
	if (recv_first)
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, len, 9, false);
	if (!recv_first) {
		unit_turns(&u, 5);
		UNIT_TRUE(!plx_req_is_done(send));
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	}
	UNIT_TRUE_FATAL(unit_finish(&u, recv) && unit_finish(&u, send));
	UNIT_EQ(recv->recv.info_len, len);
	UNIT_EQ(recv->recv.info_tag, 9);
	UNIT_SAME(to, from, len);
	UNIT_EQ(to[len], 0xcc);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_turns(&u, 3);
}

static void
transfers(void)
{
	const uint64_t lens[] = {32769, 65535, 65536, 65537, 131072, LEN};

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		transfer(lens[i], true);
		transfer(lens[i], false);
	}
	unit_nothing_left(&u);
}

/* A device that needs keys, and nothing else. */
static void
begin_keys(void)
{
	begin("auto");
	fake.caps = KEYS_CAPS;
}

static void
put_moves_all(void)
{
	begin_keys();
	fake.delay_max = 3;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->put, 12);
	UNIT_EQ(stat_of(1)->get + stat_of(1)->split + stat_of(1)->frag, 0);
	UNIT_TRUE(unit_queue(&u, 0)->stat.rma_bytes >= 2 * LEN);
	UNIT_EQ(fake_regs(), 0);
	unit_workers_close(&u);
}

static void
short_transfers_register_nothing(void)
{
	begin_keys();
	unit_workers_set(&u, "rndv.put_min", "40000");
	unit_workers_open(&u, 2);
	transfer(39999, false);
	UNIT_EQ(stat_of(1)->frag, 1);
	transfer(40000, false);
	UNIT_EQ(stat_of(1)->frag, 1);
	UNIT_EQ(stat_of(1)->put, 1);
	unit_workers_close(&u);
}

static void
memory_that_can_not_be_registered_takes_frag(void)
{
	begin_keys();
	fake.reg_err = -ENOMEM;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->put, 0);
	UNIT_EQ(stat_of(1)->frag, 12);
	unit_workers_close(&u);
}

/* Each piece is the sender's to read until the device says that it is sent, and is the program's again behind that. */
static void
frag_sends_without_a_copy_where_a_device_does(void)
{
	begin("frag");
	fake.zcopy_min = 500;
	fake.delay_max = 5;
	fake.full_percent = 10;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->frag, 12);
	UNIT_TRUE(fake.n_lent >= 2 * LEN / fake.mtu);
	UNIT_EQ(fake_lent_waits(), false);
	unit_workers_close(&u);
}

/* -- memory that is not the host's -- */

struct typed {
	struct plx_dt dt;
	uint8_t *at;
	uint64_t n; /* bytes that processors have copied */
};

static void
typed_pack(void *dt, uint64_t offset, void *out, uint64_t len)
{
	struct typed *d = dt;

	memcpy(out, d->at + offset, len);
	d->n += len;
}

static void
typed_unpack(struct plx_dt *dt, uint64_t offset, const void *in, uint64_t len)
{
	struct typed *d = (struct typed *)dt;

	memcpy(d->at + offset, in, len);
	d->n += len;
}

static int
typed_finish(struct plx_dt *dt, int status)
{
	(void)dt;
	return status;
}

/* @param d out: how it was copied on either side */
static void
typed_transfer(const char *scheme, uint32_t takes, struct typed d[2])
{
	uint8_t *const at[] = {from, to};
	struct plx_req *req[2];

	begin(scheme);
	fake.mem_types = takes;
	fake.zcopy_min = 500;
	if (strcmp(scheme, "auto") == 0)
		fake.caps = KEYS_CAPS;
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 2; i++) {
		d[i] = (struct typed){.dt = {.pack = typed_pack, .unpack = typed_unpack, .finish = typed_finish,
			.mem_type = UCS_MEMORY_TYPE_ZE_HOST}, .at = at[i]};
		req[i] = plx_req_get(&u.w[i]->reqs);
		UNIT_TRUE_FATAL(req[i] != NULL);
		req[i]->dt = &d[i].dt;
	}
	plx_worker_tag_recv(u.w[1], to, LEN, 9, UNIT_EXACT, req[1]);
	plx_worker_tag_send(u.w[0], &u.to[0][1], from, LEN, 9, false, req[0]);
	UNIT_END(&u, req[1], 0);
	UNIT_END(&u, req[0], 0);
	UNIT_SAME(to, from, LEN);
	unit_workers_close(&u);
}

static void
memory_that_the_device_takes_is_used_where_it_lies(void)
{
	const char *schemes[] = {"get", "split", "auto", "frag"};
	struct typed d[2];

	for (unsigned i = 0; i < 4; i++) {
		typed_transfer(schemes[i], UCS_BIT(UCS_MEMORY_TYPE_ZE_HOST), d);
		UNIT_TRUE(d[0].n < fake.zcopy_min); /* a rest that is too short */
		UNIT_EQ(d[1].n, i == 3 ? LEN : 0); /* messages are copied at their end */
		UNIT_TRUE(fake.n_typed != 0);
	}
}

static void
memory_that_the_device_does_not_take_is_copied_by_processors(void)
{
	const char *schemes[] = {"get", "split", "auto", "frag"};
	struct typed d[2];

	for (unsigned i = 0; i < 4; i++) {
		typed_transfer(schemes[i], 0, d);
		UNIT_EQ(d[0].n, LEN);
		UNIT_EQ(d[1].n, LEN);
		UNIT_EQ(fake.n_typed, 0);
	}
}

/* The receiver has all and says so, and the device is late: the buffer is still its. */
static void
a_send_ends_when_the_device_has_let_go_of_its_buffer(void)
{
	struct plx_req *send, *recv;

	begin("frag");
	fake.zcopy_min = 500;
	unit_workers_open(&u, 2);
	memcpy(lent, from, LEN);
	fake.lent_wait = 5000;
	send = unit_send(&u, 0, 1, lent, 40000, 9, false);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_TRUE_FATAL(unit_finish(&u, recv));
	unit_turns(&u, 10);
	UNIT_TRUE_FATAL(plx_rndv_tx(send)->over && plx_rndv_tx(send)->n_out > 0 && !plx_req_is_done(send));
	for (unsigned i = 0; i < 200 && !plx_req_is_done(send); i++)
		unit_turns(&u, 1000);
	UNIT_TRUE(plx_req_is_done(send));
	UNIT_SAME(to, from, 40000);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

static void
what_is_sent_without_a_copy_ends_when_the_receiver_dies(void)
{
	struct plx_req *send;

	begin("frag");
	fake.zcopy_min = 500;
	unit_workers_open(&u, 2);
	fake.lent_wait = 5000;
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	unit_turns(&u, 10);
	UNIT_TRUE_FATAL(plx_rndv_tx(send)->n_out > 0);
	unit_kill(&u, 1);
	unit_check_peers(u.w[0]);
	UNIT_END(&u, send, -ECONNRESET);
	UNIT_EQ(fake_lent_waits(), false);
	unit_workers_close(&u);
}

/* -- buffers in pieces of memory -- */

#define SEG 2048
#define GAP 100 /* bytes between two pieces */

struct chain {
	struct plx_dt dt;
	uint8_t *mem;
	uint64_t n; /* bytes that were packed or unpacked */
};

static uint8_t chain_mem[2][LEN / SEG * (SEG + GAP) + SEG + GAP];

static unsigned
chain_pieces(struct plx_dt *dt, uint64_t offset, uint64_t len, struct plx_wire_piece *out, unsigned max)
{
	const struct chain *c = (const struct chain *)dt;
	unsigned n;

	for (n = 0; n < max && len > 0; n++) {
		uint64_t at = offset % SEG, here = len < SEG - at ? len : SEG - at;

		out[n] = (struct plx_wire_piece){(uintptr_t)(c->mem + offset / SEG * (SEG + GAP) + at), here};
		offset += here;
		len -= here;
	}
	return n;
}

static void
chain_copy(struct chain *c, uint64_t offset, uint8_t *other, uint64_t len, bool in)
{
	struct plx_wire_piece p;

	for (uint64_t i = 0; i < len; i += p.len) {
		uint8_t *at;

		(void)chain_pieces(&c->dt, offset + i, len - i, &p, 1);
		at = (uint8_t *)(uintptr_t)p.addr;
		memcpy(in ? at : other + i, in ? other + i : at, p.len);
	}
	c->n += len;
}

static void
chain_pack(void *dt, uint64_t offset, void *out, uint64_t len)
{
	chain_copy(dt, offset, out, len, false);
}

static void
chain_unpack(struct plx_dt *dt, uint64_t offset, const void *in, uint64_t len)
{
	chain_copy((struct chain *)dt, offset, (uint8_t *)(uintptr_t)in, len, true);
}

static struct chain *
chain_of(unsigned i)
{
	static struct chain c[2];

	c[i] = (struct chain){.dt = {chain_pack, chain_unpack, typed_finish, 0, chain_pieces}, .mem = chain_mem[i]};
	return &c[i];
}

/* A message from 0 to 1; one or both of the buffers are chains. @return bytes that were packed and unpacked */
static uint64_t
chain_transfer(uint64_t len, bool send_chain, bool recv_chain)
{
	struct chain *c[2] = {chain_of(0), chain_of(1)};
	struct plx_req *req[2];

	memset(to, 0xcc, sizeof(to));
	memset(chain_mem[1], 0xcc, sizeof(chain_mem[1]));
	chain_copy(c[0], 0, from, len, true);
	for (unsigned i = 0; i < 2; i++) {
		req[i] = plx_req_get(&u.w[i]->reqs);
		UNIT_TRUE_FATAL(req[i] != NULL);
		if (i == 0 ? send_chain : recv_chain)
			req[i]->dt = &c[i]->dt;
	}
	c[0]->n = 0;
	plx_worker_tag_recv(u.w[1], to, LEN, 9, UNIT_EXACT, req[1]);
	plx_worker_tag_send(u.w[0], &u.to[0][1], from, len, 9, false, req[0]);
	UNIT_TRUE_FATAL(unit_finish(&u, req[1]) && unit_finish(&u, req[0]));
	UNIT_END(&u, req[1], 0);
	UNIT_END(&u, req[0], 0);
	if (recv_chain) {
		uint64_t n = c[1]->n;

		chain_copy(c[1], 0, to, len, false);
		c[1]->n = n;
		for (uint64_t i = SEG; i < sizeof(chain_mem[1]); i += SEG + GAP)
			UNIT_EQ(chain_mem[1][i], 0xcc); /* no byte between */
	}
	UNIT_SAME(to, from, len);
	UNIT_EQ(to[len], 0xcc);
	return c[0]->n + c[1]->n;
}

/* @return bytes that were packed and unpacked */
static uint64_t
chains(const char *scheme)
{
	const uint64_t lens[] = {32769, 65536, 131072, 131073, LEN}; /* 16, 32, 64, 65, and 489 pieces */
	uint64_t n = 0;

	begin(scheme);
	fake.again_percent = 20;
	fake.delay_max = 3;
	if (strcmp(scheme, "split") == 0) {
		fake.mtu = 1200; /* HELP names 64 pieces */
		fake.again_percent = 0; /* a helper that has to try again gives its chunk back */
	}
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned how = 1; how < 4; how++)
			n += chain_transfer(lens[i], how & 1, how & 2);
	unit_turns(&u, 3);
	unit_nothing_left(&u);
	return n;
}

static void
chains_are_read_where_they_lie(void)
{
	const char *schemes[] = {"get", "split", "auto"};

	for (unsigned i = 0; i < 3; i++) {
		UNIT_EQ(chains(schemes[i]), 0);
		UNIT_EQ(stat_of(1)->list, 15);
		UNIT_EQ(stat_of(1)->frag, 0);
		if (i == 1) { /* the long chains have more pieces than HELP names */
			UNIT_EQ(stat_of(1)->split, 6);
			UNIT_TRUE(stat_of(0)->bytes_help > 0);
		}
		unit_workers_close(&u);
	}
}

/* @return how many messages the receiver sends: it acknowledges, and asks if it has to */
static uint64_t
asks_for_chain(uint64_t len)
{
	uint64_t before = u.w[1]->queues[0]->stat.tx_msgs;

	UNIT_EQ(chain_transfer(len, true, true), 0);
	unit_turns(&u, 3);
	return u.w[1]->queues[0]->stat.tx_msgs - before;
}

static void
few_pieces_come_with_the_announcement(void)
{
	begin("get");
	fake.mtu = 1200; /* an announcement names 64 pieces */
	unit_workers_open(&u, 2);
	(void)asks_for_chain(65536); /* the two meet */
	UNIT_EQ(asks_for_chain(65536), 1);
	UNIT_EQ(asks_for_chain(131072), 1); /* 64 pieces */
	UNIT_EQ(asks_for_chain(131073), 1 + 2);
	unit_nothing_left(&u);
	unit_workers_close(&u);
}

static void
chains_that_may_not_be_read_are_packed(void)
{
	const uint64_t lens = 3 * (32769 + 65536 + 131072 + 131073 + LEN);

	UNIT_TRUE(chains("frag") > lens);
	UNIT_EQ(stat_of(1)->list, 0);
	unit_workers_close(&u);
	begin("get");
	unit_workers_open(&u, 2);
	fake.refuse_percent = 100;
	UNIT_EQ(chain_transfer(65536, true, true), 2 * 65536);
	UNIT_EQ(stat_of(1)->frag, 1);
	unit_workers_close(&u);
}

static void
get_moves_all(void)
{
	begin("get");
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->get, 12);
	UNIT_EQ(stat_of(1)->split + stat_of(1)->frag, 0);
	unit_workers_close(&u);
}

static void
split_moves_all_and_both_copy(void)
{
	begin("split");
	unit_workers_open(&u, 2);
	transfers();
	UNIT_TRUE(stat_of(1)->split >= 6);
	UNIT_TRUE(stat_of(1)->bytes_own > 0);
	UNIT_TRUE(stat_of(0)->bytes_help > 0);
	unit_workers_close(&u);
}

static struct plx_rndv_shared *
shared_of(unsigned i)
{
	return unit_queue(&u, i)->shared;
}

/* @param cpu where the sender says that it runs, 0: it does not say */
static void
announced_from(uint32_t cpu, bool split)
{
	const struct plx_rndv_stat before = *stat_of(1);
	struct plx_req *send = unit_send(&u, 0, 1, from, LEN, 9, false), *recv;

	shared_of(0)->cpu = cpu;
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	UNIT_EQ(stat_of(1)->split - before.split, split);
	UNIT_EQ(stat_of(1)->get - before.get, !split);
}

static void
a_sender_on_the_receivers_core_is_not_asked_to_help(void)
{
	uint32_t here;
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	UNIT_EQ_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	here = sched_getcpu() + 1;
	begin("auto");
	unit_workers_open(&u, 2);
	UNIT_EQ(shared_of(0)->cpu, 0);
	transfer(LEN, true);
	UNIT_EQ(shared_of(0)->cpu, here);
	UNIT_EQ(stat_of(1)->get, 1);
	announced_from(here, false);
	announced_from(here + 1, true);
	announced_from(0, true);
	unit_workers_close(&u);
	begin("split"); /* whoever says so has it so */
	unit_workers_open(&u, 2);
	announced_from(here, true);
	unit_workers_close(&u);
	sched_setaffinity(0, sizeof(all), &all);
}

static void
frag_moves_all(void)
{
	begin("frag");
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->frag, 12);
	UNIT_EQ(unit_queue(&u, 1)->stat.rma_ops + unit_queue(&u, 0)->stat.rma_ops, 0);
	unit_workers_close(&u);
}

static void
a_device_without_rma_takes_frag(void)
{
	begin("auto");
	fake.caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->frag, 12);
	unit_workers_close(&u);
}

static void
a_device_without_shared_memory_takes_frag(void)
{
	begin("auto");
	fake.caps &= ~(uint32_t)PLX_DEV_SHARED;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->get, 0); /* the reader could not know whether the buffer is still valid */
	UNIT_EQ(stat_of(1)->frag, 12);
	unit_workers_close(&u);
}

static void
a_busy_device_only_takes_longer(void)
{
	const char *const schemes[] = {"get", "split", "frag", "auto"};

	for (unsigned i = 0; i < 4; i++) {
		begin(schemes[i]);
		fake.full_percent = 30;
		fake.delay_max = 5;
		fake.short_percent = 50;
		fake.depth = 5;
		fake.again_percent = 40;
		unit_workers_open(&u, 2);
		transfers();
		unit_workers_close(&u);
	}
}

static void
refused_at_first(const char *scheme)
{
	begin(scheme);
	fake.get_err = -EOPNOTSUPP;
	unit_workers_open(&u, 2);
	transfer(LEN, true);
	transfer(LEN, false);
	unit_workers_close(&u);
}

static void
a_refused_get_goes_on_with_frag(void)
{
	refused_at_first("get");
}

static void
a_refused_split_goes_on_all_the_same(void)
{
	refused_at_first("split");
	refused_at_first("auto");
}

static void
get_refused_in_the_middle_goes_on_with_frag(void)
{
	const char *const schemes[] = {"get", "auto"};

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned seed = 1; seed <= 20; seed++) {
			begin(schemes[i]);
			fake_reset(seed);
			fake.refuse_percent = 5; /* some way into the transfer */
			unit_workers_open(&u, 2);
			transfer(LEN, true);
			unit_workers_close(&u);
		}
	}
}

static void
a_helper_that_fails_leaves_its_chunk_to_the_receiver(void)
{
	const int errs[] = {-EOPNOTSUPP, -EAGAIN, -EFAULT, -EIO};

	for (unsigned i = 0; i < 4; i++) {
		begin("split");
		fake.put_err = errs[i];
		unit_workers_open(&u, 2);
		transfer(LEN, true);
		transfer(LEN, false);
		UNIT_EQ(stat_of(1)->split, 2);
		UNIT_EQ(stat_of(0)->bytes_help, 0);
		UNIT_EQ(stat_of(1)->bytes_own, 2 * LEN);
		UNIT_EQ(stat_of(1)->drop_bad_range, 0);
		unit_workers_close(&u);
	}
}

static struct plx_rndv_cursor *
cursor_of(const struct plx_req *recv)
{
	return &shared_of(1)->cursors[plx_rndv_rx(recv)->slot];
}

/* @return a receive of which the helper has a chunk; send: what it is of */
static struct plx_req *
recv_with_a_chunk_away(struct plx_req **send)
{
	struct plx_req *recv;

	begin("split");
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	*send = unit_send(&u, 0, 1, from, LEN, 9, false);
	plx_worker_progress(u.w[1]);
	UNIT_TRUE_FATAL(!plx_req_is_done(recv) && plx_rndv_rx(recv)->slot != UINT32_MAX);
	UNIT_TRUE(plx_cursor_take(&cursor_of(recv)->next, plx_rndv_rx(recv)->gen, plx_rndv_rx(recv)->n_chunks, true) !=
		PLX_CURSOR_NONE);
	return recv;
}

/* Its receive fails, when the other chunks are here: nobody would copy that one. */
static void
a_chunk_that_is_none_is_given_back(void)
{
	struct plx_req *send, *recv = recv_with_a_chunk_away(&send);
	const struct plx_rndv_rx *v = plx_rndv_rx(recv);

	cursor_of(recv)->bad = (v->gen + 1ull) << 32 | 1; /* of another operation: nothing */
	for (unsigned i = 0; i < 1000; i++)
		plx_worker_progress(u.w[1]);
	UNIT_TRUE_FATAL(!plx_req_is_done(recv));
	UNIT_EQ(stat_of(1)->drop_bad_range, 0);
	cursor_of(recv)->bad = (uint64_t)v->gen << 32 | (v->n_chunks + 1);
	UNIT_END(&u, recv, -EPROTO);
	UNIT_END(&u, send, -EPROTO);
	UNIT_EQ(stat_of(1)->drop_bad_range, 1);
	unit_workers_close(&u);
}

/* The sender's ep fails, too. */
static void
close_with(struct plx_req *send)
{
	plx_ep_fail(u.to[0][1].ep, -ECONNRESET);
	UNIT_END(&u, send, -ECONNRESET);
	unit_workers_close(&u);
}

/* Its buffer is not the program's before the helper has copied its chunk, or has given it back. */
static void
a_receive_outlives_its_ep_while_the_helper_has_a_chunk(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct plx_req *send, *recv = recv_with_a_chunk_away(&send);
		struct plx_ep *ep = plx_rndv_rx(recv)->ep;
		struct plx_rndv_cursor *c = cursor_of(recv);
		uint32_t gen = plx_rndv_rx(recv)->gen;
		uint64_t held = ep->n_msgs;

		plx_ep_fail(ep, -ECONNRESET);
		for (unsigned k = 0; k < 10; k++)
			plx_worker_progress(u.w[1]);
		UNIT_EQ(plx_req_is_done(recv), false);
		UNIT_TRUE(ep->n_msgs > held);
		UNIT_EQ(plx_cursor_take(&c->next, gen, UINT16_MAX, true), PLX_CURSOR_NONE);
		if (i == 0)
			c->done++;
		else
			c->bad = (uint64_t)gen << 32 | 1;
		plx_worker_progress(u.w[1]);
		UNIT_TRUE_FATAL(plx_req_is_done(recv));
		UNIT_EQ(recv->status, -ECONNRESET);
		plx_req_put(recv);
		plx_ep_fail(u.to[0][1].ep, -ECONNRESET);
		UNIT_END(&u, send, -ECONNRESET);
		UNIT_EQ(ep->n_msgs, held);
		UNIT_EQ(u.w[1]->rndv.cursors, 0);
		unit_workers_close(&u);
	}
}

/* A message that was on its way says that the sender, which has no chunk any more, has taken its message back. */
static void
a_receive_that_outlives_its_ep_may_be_cancelled(void)
{
	struct plx_req *send, *recv = recv_with_a_chunk_away(&send);
	struct plx_ep *ep = plx_rndv_rx(recv)->ep;
	const struct plx_wire_cancel h = {.rreq = plx_rndv_rx(recv)->id};
	uint64_t held = ep->n_msgs;

	plx_ep_fail(ep, -ECONNRESET);
	UNIT_TRUE(ep->n_msgs > held);
	plx_rndv_on_cancel(&u.w[1]->rndv, ep, &h);
	UNIT_EQ(ep->n_msgs, held);
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	plx_req_put(recv);
	close_with(send);
}

/* The process has ended with a chunk. */
static void
who_has_left_is_not_waited_for(void)
{
	struct plx_req *send, *recv = recv_with_a_chunk_away(&send);

	fake.all_left = true;
	plx_rndv_settle(&u.w[1]->rndv);
	fake.all_left = false;
	plx_ep_fail(plx_rndv_rx(recv)->ep, -ECONNRESET);
	UNIT_EQ(plx_req_is_done(recv), false);
	fake.all_left = true;
	plx_worker_progress(u.w[1]);
	fake.all_left = false;
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	plx_req_put(recv);
	close_with(send);
}

static void
a_receive_ends_with_its_ep_when_the_helper_has_nothing(void)
{
	struct plx_req *send, *recv = recv_with_a_chunk_away(&send);

	cursor_of(recv)->done++;
	plx_ep_fail(plx_rndv_rx(recv)->ep, -ECONNRESET);
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	UNIT_EQ(recv->status, -ECONNRESET);
	plx_req_put(recv);
	close_with(send);
}

/* A stream without a handle is freed when its ep fails, but only after its transfer has ended. */
static void
a_stream_goes_after_its_transfer(void)
{
	struct plx_wire_stream_rts h = {.conn_id = 77, .len = LEN, .addr = (uintptr_t)from};
	struct plx_stream *s = NULL;
	struct plx_ep *ep;

	begin("split");
	unit_workers_set(&u, "rndv.split_min", "16k");
	unit_workers_open(&u, 2);
	ep = u.to[1][0].ep;
	h.epoch = plx_rndv_epoch(u.to[0][1].ep);
	fake_inject(unit_queue(&u, 0), unit_queue(&u, 1), PLX_WIRE_STREAM_RTS, &h, sizeof(h));
	for (unsigned i = 0; i < 1000 && (s == NULL || s->xfer == NULL); i++) { /* read ahead, after 1 ms */
		usleep(100);
		plx_worker_progress(u.w[1]);
		s = LIST_FIRST(&plx_stream_ep(ep)->all);
	}
	UNIT_TRUE_FATAL(s != NULL && s->xfer != NULL && plx_rndv_rx(s->xfer)->slot != UINT32_MAX);
	UNIT_TRUE(plx_cursor_take(&cursor_of(s->xfer)->next, plx_rndv_rx(s->xfer)->gen, 2, true) != PLX_CURSOR_NONE);
	plx_ep_fail(ep, -ECONNRESET);
	plx_stream_ep_failed(ep, -ECONNRESET);
	UNIT_EQ_FATAL(LIST_FIRST(&plx_stream_ep(ep)->all) == s, true);
	cursor_of(s->xfer)->done++;
	plx_worker_progress(u.w[1]);
	UNIT_TRUE(LIST_EMPTY(&plx_stream_ep(ep)->all));
	UNIT_EQ(ep->n_msgs, 0);
	unit_workers_close(&u);
}

static _Atomic bool counted;

static void *
count_later(void *done)
{
	usleep(20000);
	counted = true;
	atomic_fetch_add((_Atomic uint64_t *)done, 1);
	return NULL;
}

/* As when its worker is destroyed. */
static void
who_leaves_waits_for_its_helpers(void)
{
	struct plx_req *send, *recv = recv_with_a_chunk_away(&send);
	pthread_t t;

	counted = false;
	UNIT_EQ_FATAL(pthread_create(&t, NULL, count_later, (void *)&cursor_of(recv)->done), 0);
	plx_rndv_settle(&u.w[1]->rndv);
	UNIT_EQ(counted, true);
	pthread_join(t, NULL);
	UNIT_END(&u, recv, -ECANCELED);
	UNIT_END(&u, send, -ECANCELED);
	unit_workers_close(&u);
}

static void
a_chunk_not_read_yet_and_one_not_written_are_both_done_later(void)
{
	struct plx_req *send, *recv;

	begin("split");
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	fake.get_err = -EAGAIN;
	fake.put_err = -EIO;
	unit_turns(&u, 10); /* each side has taken a chunk, and neither could do it */
	UNIT_TRUE(!plx_req_is_done(recv));
	fake.get_err = 0;
	UNIT_TRUE_FATAL(unit_finish(&u, recv) && unit_finish(&u, send));
	UNIT_SAME(to, from, LEN);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

static void
a_receiver_needs_no_help(void)
{
	struct plx_req *send, *recv;

	begin("split");
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	for (unsigned i = 0; i < 1000 && !plx_req_is_done(recv); i++)
		plx_worker_progress(u.w[1]); /* the sender computes */
	UNIT_TRUE(plx_req_is_done(recv));
	UNIT_SAME(to, from, LEN);
	UNIT_TRUE(!plx_req_is_done(send));
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	UNIT_EQ(stat_of(0)->bytes_help, 0);
	unit_workers_close(&u);
}

static void
a_late_helper_finds_another_generation(void)
{
	struct plx_req *send[3], *recv[3];

	begin("split");
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < 3; i++) {
		recv[i] = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		send[i] = unit_send(&u, 0, 1, from, LEN, 9, false);
		for (unsigned k = 0; k < 1000 && !plx_req_is_done(recv[i]); k++)
			plx_worker_progress(u.w[1]);
		UNIT_END(&u, recv[i], 0);
		/* The cursor is in use again by the time the first HELP is read. */
	}
	memset(to, 0xcc, sizeof(to));
	for (unsigned k = 0; k < 10; k++)
		plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->bytes_help, 0);
	for (unsigned i = 0; i < LEN; i++)
		CU_ASSERT_FATAL(to[i] == 0xcc); /* its buffer may be anybody's now */
	for (unsigned i = 0; i < 3; i++)
		UNIT_END(&u, send[i], 0);
	unit_workers_close(&u);
}

static void
no_generation_is_zero(void)
{
	begin("split");
	unit_workers_open(&u, 2);
	u.w[1]->rndv.gen = UINT32_MAX - 1;
	for (unsigned i = 0; i < 4; i++) {
		struct plx_req *recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		struct plx_req *send = unit_send(&u, 0, 1, from, LEN, 9, false);

		plx_worker_progress(u.w[1]);
		UNIT_TRUE(plx_rndv_rx(recv)->gen != 0); /* it is what a free cursor says */
		UNIT_END(&u, recv, 0);
		UNIT_END(&u, send, 0);
	}
	unit_workers_close(&u);
}

#define MANY 100

static void
more_transfers_than_cursors_all_arrive(void)
{
	static uint8_t in[MANY][70000];
	struct plx_req *send[MANY], *recv[MANY];

	begin("split");
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < MANY; i++) {
		recv[i] = unit_recv(&u, 1, in[i], sizeof(in[i]), i, UNIT_EXACT);
		send[i] = unit_send(&u, 0, 1, from + i, sizeof(in[i]), i, false);
	}
	plx_worker_progress(u.w[1]);
	for (unsigned i = 0; i < 10; i++)
		plx_worker_progress(u.w[1]);
	for (unsigned i = 0; i < MANY; i++) {
		UNIT_END(&u, recv[i], 0);
		UNIT_END(&u, send[i], 0);
		UNIT_SAME(in[i], from + i, sizeof(in[i]));
	}
	UNIT_EQ(stat_of(1)->recvs, MANY);
	unit_workers_close(&u);
}

/* Many at once, of which the one numbered `bad` can't be read, UINT_MAX none. */
static void
many_at_once(const char *scheme, unsigned bad)
{
	static uint8_t in[20][70000], out[20][70000];
	struct plx_req *send[20], *recv[20];

	unit_workers_set(&u, "rndv.scheme", scheme);
	unit_workers_set(&u, "rndv.chunk", "1m");
	unit_workers_open(&u, 2);
	fake.bad_addr = bad < 20 ? out[bad] + 100 : NULL;
	for (unsigned i = 0; i < 20; i++) {
		unit_fill(out[i], sizeof(out[i]), i);
		memset(in[i], 0, sizeof(in[i]));
		recv[i] = unit_recv(&u, 1, in[i], sizeof(in[i]), i, UNIT_EXACT);
		send[i] = unit_send(&u, 0, 1, out[i], sizeof(out[i]), i, false);
	}
	for (unsigned i = 0; i < 20; i++) {
		UNIT_END(&u, recv[i], i == bad ? -EFAULT : 0);
		UNIT_END(&u, send[i], i == bad ? -EFAULT : 0);
		if (i != bad)
			UNIT_SAME(in[i], out[i], sizeof(in[i]));
	}
	UNIT_EQ(stat_of(1)->errors, bad < 20);
	unit_turns(&u, 3);
	unit_nothing_left(&u);
	unit_workers_close(&u);
}

static void
pieces_of_several_transfers_go_in_one_call(void)
{
	const char *const schemes[] = {"get", "split"};

	for (unsigned i = 0; i < 2; i++) {
		begin(schemes[i]);
		many_at_once(schemes[i], UINT_MAX);
		UNIT_TRUE(fake.bursts >= 2);
	}
}

static void
a_bad_piece_of_a_call_fails_alone(void)
{
	for (unsigned bad = 0; bad < 20; bad++) {
		begin("get");
		many_at_once("get", bad);
		begin("split");
		many_at_once("split", bad);
	}
}

static void
a_busy_device_takes_some_pieces_of_a_call(void)
{
	unsigned bursts = 0;

	for (unsigned seed = 0; seed < 50; seed++) {
		begin("get");
		fake_reset(seed);
		fake.again_percent = 30;
		many_at_once(seed % 2 ? "get" : "split", UINT_MAX);
		bursts += fake.bursts;
	}
	UNIT_TRUE(bursts > 0);
}

/* Both sides copy, and buffers that are used again stay in the caches they are in. */
static void
the_receiver_reads_the_front_and_the_sender_writes_the_back(void)
{
	struct plx_req *recv, *send;

	begin("split");
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, 4);
	UNIT_TRUE(!plx_req_is_done(recv));
	UNIT_SAME(to, from, 32768);
	UNIT_SAME(to + LEN - 100, from + LEN - 100, 100);
	UNIT_EQ(to[LEN / 2], 0xcc);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

static void
a_short_buffer_gets_truncation_and_frees_the_sender(void)
{
	const char *const schemes[] = {"get", "split", "frag"};

	for (unsigned i = 0; i < 3; i++) {
		struct plx_req *recv, *send;

		begin(schemes[i]);
		unit_workers_open(&u, 2);
		recv = unit_recv(&u, 1, to, 1000, 9, UNIT_EXACT);
		send = unit_send(&u, 0, 1, from, LEN, 9, false);
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		UNIT_EQ(recv->recv.info_len, LEN);
		UNIT_EQ(to[1000], 0xcc);
		UNIT_END(&u, recv, -EMSGSIZE);
		UNIT_END(&u, send, 0);
		unit_workers_close(&u);
	}
}

/* One side dies after `turns` turns; the other's request ends, with an error or well. */
static void
death(const char *scheme, unsigned who, unsigned turns)
{
	struct plx_req *recv, *send, *left;

	bool keys = strcmp(scheme, "put") == 0;

	begin(keys ? "auto" : scheme);
	fake_reset(turns * 7 + who);
	fake.delay_max = keys ? 9 : 2;
	if (keys)
		fake.caps = KEYS_CAPS;
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, turns);
	left = who == 0 ? recv : send;
	unit_kill(&u, who);
	unit_turns(&u, 10);
	unit_check_peers(u.w[1 - who]);
	unit_turns(&u, 300);
	unit_check_peers(u.w[1 - who]);
	unit_turns(&u, 10);
	if (left == recv && recv->posted) { /* nothing of it had arrived */
		plx_worker_cancel(u.w[1], recv);
		UNIT_EQ(recv->status, -ECANCELED);
	}
	UNIT_TRUE(plx_req_is_done(left));
	if (left == recv && recv->status == 0)
		UNIT_SAME(to, from, LEN);
	plx_req_put(left);
	unit_workers_close(&u);
}

static void
the_death_of_either_side_ends_the_others_request(void)
{
	const char *const schemes[] = {"get", "split", "frag"};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned who = 0; who < 2; who++)
			for (unsigned turns = 0; turns < 60; turns += turns < 10 ? 1 : 7)
				death(schemes[i], who, turns);
}

static void
a_read_that_fails_ends_both_sides(void)
{
	const char *const schemes[] = {"get", "split"};

	for (unsigned i = 0; i < 2; i++) {
		struct plx_req *recv, *send;

		begin(schemes[i]);
		fake.get_err = -EFAULT;
		unit_workers_open(&u, 2);
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		send = unit_send(&u, 0, 1, from, LEN, 9, false);
		UNIT_END(&u, recv, -EFAULT);
		UNIT_END(&u, send, -EFAULT);
		UNIT_EQ(stat_of(0)->errors, 1);
		UNIT_EQ(stat_of(1)->errors, 1);
		unit_workers_close(&u);
	}
}

static void
what_is_refused_while_it_is_announced_is_announced_no_further(void)
{
	struct plx_wire_pull pull = {.len = 10};
	struct plx_wire_into into = {.len = 10};
	struct plx_wire_ack ack = {.err = -ENOMEM};
	struct plx_req *send;

	begin("get");
	unit_workers_open(&u, 2);
	transfer(LEN, true);
	fake.depth = 1;
	send = unit_am_send(&u, 0, 1, 3000, from, LEN); /* announced in several messages */
	UNIT_EQ(plx_req_is_done(send), false);
	UNIT_EQ(fake_on_the_way(unit_queue(&u, 0), unit_queue(&u, 1)), 1);
	UNIT_TRUE(!TAILQ_EMPTY(&u.to[0][1].ep->pending));
	pull.sreq = into.sreq = ack.sreq = plx_rndv_tx(send)->id;
	/* Its data cannot be asked for yet, but a receiver without room may say so at once. */
	fake.depth = 0;
	fake_block(unit_queue(&u, 0), true);
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_PULL, &pull, sizeof(pull));
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	plx_worker_progress(u.w[0]);
	UNIT_EQ(stat_of(0)->drop_bad_id, 2);
	UNIT_EQ(plx_req_is_done(send), false);
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_ACK, &ack, sizeof(ack));
	plx_worker_progress(u.w[0]);
	UNIT_TRUE(TAILQ_EMPTY(&u.to[0][1].ep->pending));
	UNIT_END(&u, send, -ENOMEM);
	fake_block(unit_queue(&u, 0), false);
	transfer(LEN, true);
	unit_kill(&u, 0); /* the receiver, who was forged, still waits for the rest */
	unit_check_peers(u.w[1]);
	unit_turns(&u, 3);
	unit_workers_close(&u);
}

static void
an_answer_before_the_question_is_not_believed(void)
{
	for (unsigned sync = 0; sync < 2; sync++) {
		struct plx_req *send;

		begin("get");
		unit_workers_open(&u, 2);
		transfer(LEN, true); /* connected both ways */
		fake_block(unit_queue(&u, 0), true);
		send = unit_send(&u, 0, 1, from, sync ? 100 : LEN, 9, sync);
		UNIT_TRUE(!TAILQ_EMPTY(&u.to[0][1].ep->pending));
		/* A peer that guesses the name of what it was never told. */
		fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_ACK,
			&(struct plx_wire_ack){.sreq = plx_rndv_tx(send)->id}, sizeof(struct plx_wire_ack));
		fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_PULL,
			&(struct plx_wire_pull){.sreq = plx_rndv_tx(send)->id, .len = 10},
			sizeof(struct plx_wire_pull));
		unit_turns(&u, 5);
		UNIT_EQ(plx_req_is_done(send), false);
		UNIT_EQ(stat_of(0)->drop_bad_id, 2);
		fake_block(unit_queue(&u, 0), false);
		if (plx_req_is_done(send)) { /* it waits to be sent and is free at once */
			plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
			plx_req_put(send);
		} else {
			struct plx_req *recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);

			UNIT_END(&u, recv, 0);
			UNIT_END(&u, send, 0);
		}
		unit_workers_close(&u);
	}
}

static struct plx_req *neighbour[4];
static unsigned n_done;

/* Of a receive: what the same worker sends is taken back, and so is the peer's half. */
static void
end_the_others(struct plx_req *req)
{
	n_done++;
	if (n_done == 1) {
		plx_ep_fail(u.to[1][0].ep, -ECONNRESET);
		for (unsigned i = 0; i < 4; i++)
			UNIT_TRUE(plx_req_is_done(neighbour[i]));
	}
	memset((char *)req + offsetof(struct plx_rndv_rx, ep), 0xee, sizeof(struct plx_rndv_rx) - offsetof(struct plx_rndv_rx, ep)); /* it is the caller's now */
}

static void
a_callback_may_end_its_neighbours(void)
{
	const char *const schemes[] = {"get", "split"};

	for (unsigned s = 0; s < 4; s++) {
		static uint8_t in[4][70000];
		struct plx_req *send[4];

		begin(schemes[s % 2]);
		if (s >= 2) /* their pieces in one call */
			unit_workers_set(&u, "rndv.chunk", "1m");
		unit_workers_open(&u, 2);
		n_done = 0;
		for (unsigned i = 0; i < 4; i++) {
			neighbour[i] = unit_recv(&u, 1, in[i], sizeof(in[i]), i, UNIT_EXACT);
			neighbour[i]->done = end_the_others;
			send[i] = unit_send(&u, 0, 1, from, sizeof(in[i]), i, false);
		}
		for (unsigned i = 0; i < 100; i++)
			plx_worker_progress(u.w[1]);
		UNIT_EQ(n_done, 4); /* once each */
		for (unsigned i = 0; i < 4; i++) {
			UNIT_EQ(neighbour[i]->status, i == 0 ? 0 : -ECONNRESET);
			plx_req_put(neighbour[i]);
		}
		plx_ep_fail(u.to[0][1].ep, -ECONNRESET);
		for (unsigned i = 0; i < 4; i++) {
			UNIT_TRUE_FATAL(plx_req_is_done(send[i]));
			plx_req_put(send[i]);
		}
		unit_workers_close(&u);
	}
}

static void
a_device_that_refuses_to_write_goes_on_with_messages(void)
{
	begin_keys();
	fake.put_err = -EOPNOTSUPP;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->put, 12);
	UNIT_EQ(unit_queue(&u, 0)->stat.rma_ops, 0);
	UNIT_EQ(fake_regs(), 0);
	unit_workers_close(&u);
}

static void
a_busy_device_writes_all_the_same(void)
{
	begin_keys();
	fake.again_percent = 60;
	fake.full_percent = 40;
	fake.delay_max = 4;
	unit_workers_open(&u, 2);
	transfers();
	UNIT_EQ(stat_of(1)->put, 12);
	unit_workers_close(&u);
}

/* Taken back while the device reads it: it is not over before the device has ended. */
static void
a_send_taken_back_waits_for_its_writes(void)
{
	struct plx_req *send, *recv;

	begin_keys();
	fake.delay_max = 20;
	unit_workers_open(&u, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	for (unsigned i = 0; i < 200 && fake_keys_out() == 0; i++)
		unit_turns(&u, 1);
	UNIT_TRUE_FATAL(fake_keys_out() > 0);
	plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
	UNIT_EQ(plx_req_is_done(send), false);
	UNIT_TRUE_FATAL(unit_finish(&u, send));
	UNIT_EQ(fake_keys_out(), 0);
	UNIT_END(&u, send, -ECANCELED);
	UNIT_TRUE_FATAL(unit_finish(&u, recv));
	UNIT_TRUE(recv->status == 0 || recv->status == -ECONNRESET);
	UNIT_EQ(fake.n_revoked, recv->status != 0);
	plx_req_put(recv);
	UNIT_EQ(fake_regs(), 0);
	fake.n_revoked = 0;
	transfer(40000, true);
	UNIT_EQ(fake.n_revoked, 0);
	unit_workers_close(&u);
}

static void
the_death_of_either_side_ends_writes_too(void)
{
	for (unsigned who = 0; who < 2; who++)
		for (unsigned turns = 0; turns < 30; turns++)
			death("put", who, turns);
	UNIT_EQ(fake_regs(), 0);
	UNIT_EQ(fake_keys_out(), 0);
}

static void
an_order_to_write_that_makes_no_sense_is_refused(void)
{
	struct plx_wire_into into = {.len = LEN + 1, .addr = 4096, .key = 5};
	struct plx_req *send, *recv;

	begin_keys();
	unit_workers_open(&u, 2);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, 5);
	into.sreq = plx_rndv_tx(send)->id;
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	into.len = 0;
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	into.len = 1;
	into.offset = LEN;
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	unit_turns(&u, 5);
	UNIT_EQ(stat_of(0)->drop_bad_range, 3);
	into.sreq.gen++;
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_DONE,
		&(struct plx_wire_done){.rreq = into.sreq}, sizeof(struct plx_wire_done));
	unit_turns(&u, 5);
	UNIT_EQ(stat_of(0)->drop_bad_id, 2);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

/* The receiver has a piece, and asks for the next; the device tells the sender late. */
static void
the_next_piece_may_be_asked_for_before_a_write_is_over(void)
{
	struct plx_wire_into into = {.len = 1000, .addr = (uintptr_t)to};
	struct plx_wire_pull pull = {.offset = 5000, .len = 1000};
	struct plx_queue *sender, *receiver;
	struct plx_req *send, *recv;
	struct plx_dev_mem mem;

	begin_keys();
	unit_workers_open(&u, 2);
	sender = unit_queue(&u, 0);
	receiver = unit_queue(&u, 1);
	UNIT_EQ_FATAL(plx_queue_mem_reg(receiver, to, LEN, PLX_DEV_MEM_WRITE, &mem), 0);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, 5);
	into.sreq = pull.sreq = plx_rndv_tx(send)->id;
	into.key = mem.key;
	fake_inject(receiver, sender, PLX_WIRE_INTO, &into, sizeof(into));
	fake.delay_max = 1000;
	unit_turns(&u, 3);
	fake.delay_max = 0;
	UNIT_SAME(to, from, 1000);
	UNIT_EQ_FATAL(plx_rndv_tx(send)->n_out, 1);
	into.offset = 2000;
	into.addr = (uintptr_t)(to + 2000);
	fake_inject(receiver, sender, PLX_WIRE_INTO, &into, sizeof(into));
	unit_turns(&u, 3);
	UNIT_SAME(to + 2000, from + 2000, 1000);
	UNIT_EQ_FATAL(plx_rndv_tx(send)->n_out, 1);
	fake_inject(receiver, sender, PLX_WIRE_PULL, &pull, sizeof(pull));
	unit_turns(&u, 2000);
	UNIT_EQ(stat_of(0)->drop_bad_range, 0);
	UNIT_EQ(stat_of(1)->drop_bad_id, 3); /* DONE, DONE, DATA: of receives it never had */
	UNIT_EQ(plx_rndv_tx(send)->n_out, 0);
	UNIT_TRUE(!plx_req_is_done(send));
	plx_queue_mem_dereg(receiver, &mem, true);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	UNIT_SAME(to, from, LEN);
	unit_workers_close(&u);
}

static void
an_order_to_write_by_a_device_without_keys_is_refused(void)
{
	struct plx_wire_into into = {.len = 100, .addr = (uintptr_t)to, .key = 5};
	struct plx_req *send, *recv;

	begin("get");
	unit_workers_open(&u, 2);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, 5);
	into.sreq = plx_rndv_tx(send)->id;
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_INTO, &into, sizeof(into));
	unit_turns(&u, 5);
	UNIT_EQ(stat_of(0)->drop_bad_range, 1);
	UNIT_EQ(to[0], 0xcc);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_workers_close(&u);
}

/* The buffer is the program's again, and the next thing it holds is not for anybody else. */
static void
reuse(void *buf)
{
	memset(buf, 'X', LEN);
}

/* How a receive ends whose send was taken back: right, or not. */
static void
right_or_reset(struct plx_req *recv, const uint8_t *got)
{
	UNIT_TRUE_FATAL(unit_finish(&u, recv));
	if (recv->status == 0)
		UNIT_SAME(got, from, LEN);
	else
		UNIT_EQ(recv->status, -ECONNRESET);
	plx_req_put(recv);
}

/* A send is taken back after `turns` turns: its receive ends too, right or with an error. */
static void
taken_back(const char *scheme, unsigned turns, bool posted, uint32_t again_percent)
{
	struct plx_req *recv = NULL, *send;

	begin(scheme);
	memcpy(lent, from, LEN);
	fake.delay_max = 2;
	fake.again_percent = again_percent;
	unit_workers_open(&u, 2);
	if (posted)
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	send = unit_send(&u, 0, 1, lent, LEN, 9, false);
	unit_turns(&u, turns);
	if (plx_req_is_done(send)) {
		plx_req_put(send);
	} else {
		plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
		while (!plx_req_is_done(send))
			plx_worker_progress(u.w[0]);
		plx_req_put(send);
	}
	reuse(lent);
	for (unsigned i = 0; i < turns % 5; i++) /* before it can have heard of anything */
		plx_worker_progress(u.w[1]);
	unit_turns(&u, 50);
	if (!posted)
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	unit_turns(&u, 3000);
	if (recv->posted) { /* it was taken back before it had left */
		plx_worker_cancel(u.w[1], recv);
		UNIT_END(&u, recv, -ECANCELED);
	} else {
		right_or_reset(recv, to);
	}
	transfer(40000, true); /* and the next one goes as before */
	unit_workers_close(&u);
}

static void
a_send_taken_back_ends_its_receive(void)
{
	const char *const schemes[] = {"get", "split", "frag", "auto"};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned turns = 0; turns < 60; turns += turns < 10 ? 1 : 7)
			for (unsigned posted = 0; posted < 2; posted++)
				for (uint32_t again = 0; again < 100; again += 33)
					taken_back(schemes[i], turns, posted, again);
}

/* The same of a chain, whose pieces the receiver learns and reads in several parts. */
static void
a_chain_that_is_withdrawn_is_not_believed(void)
{
	const char *const schemes[] = {"get", "split"};
	unsigned n_reset = 0;

	for (unsigned turns = 0; turns < 160; turns++) {
		struct plx_req *send, *recv;
		struct chain *c = chain_of(0);

		begin(schemes[turns % 2]);
		chain_copy(c, 0, from, LEN, true);
		fake.delay_max = 2;
		unit_workers_open(&u, 2);
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		send = plx_req_get(&u.w[0]->reqs);
		UNIT_TRUE_FATAL(send != NULL);
		send->dt = &c->dt;
		plx_worker_tag_send(u.w[0], &u.to[0][1], from, LEN, 9, false, send);
		unit_turns(&u, turns / 2 + 1);
		if (!plx_req_is_done(send))
			plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
		while (!plx_req_is_done(send))
			plx_worker_progress(u.w[0]);
		plx_req_put(send);
		memset(chain_mem[0], 'X', sizeof(chain_mem[0]));
		UNIT_TRUE_FATAL(unit_finish(&u, recv));
		n_reset += recv->status != 0;
		right_or_reset(recv, to);
		unit_workers_close(&u);
	}
	UNIT_TRUE(n_reset > 0 && n_reset < 160);
}

/* The same by a device that writes. */
static void
a_send_taken_back_is_never_written_wrong(void)
{
	for (unsigned turns = 0; turns < 40; turns++) {
		struct plx_req *send, *recv;

		begin_keys();
		memcpy(lent, from, LEN);
		fake.delay_max = 5;
		unit_workers_open(&u, 2);
		recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		send = unit_send(&u, 0, 1, lent, LEN, 9, false);
		unit_turns(&u, turns);
		plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
		UNIT_TRUE_FATAL(unit_finish(&u, send));
		plx_req_put(send);
		reuse(lent);
		right_or_reset(recv, to);
		unit_workers_close(&u);
	}
}

/* Many, behind a ring that is full and stays so: nothing that says so can arrive before the data is read. */
static void
sends_taken_back_behind_a_full_ring_are_never_received_wrong(void)
{
	enum { N = 200, SHORT = 40000 };
	struct plx_req *send[N], *recv;
	unsigned n_reset = 0;

	begin("get");
	fake.depth = 4;
	memcpy(lent, from, LEN);
	unit_workers_open(&u, 2);
	for (unsigned i = 0; i < N; i++)
		send[i] = unit_send(&u, 0, 1, lent, SHORT, i, false);
	for (unsigned i = 0; i < 20; i++)
		unit_turns(&u, 1);
	plx_worker_ep_cancel(u.w[0], &u.to[0][1]);
	plx_worker_progress(u.w[0]);
	for (unsigned i = 0; i < N; i++)
		UNIT_END(&u, send[i], -ECANCELED);
	reuse(lent);
	for (unsigned i = 0; i < N; i++) {
		recv = unit_recv(&u, 1, to, LEN, i, UNIT_EXACT);
		for (unsigned k = 0; k < 10; k++)
			plx_worker_progress(u.w[1]);
		unit_turns(&u, 20);
		if (recv->posted) { /* this one never left */
			plx_worker_cancel(u.w[1], recv);
			UNIT_END(&u, recv, -ECANCELED);
			continue;
		}
		n_reset++;
		UNIT_END(&u, recv, -ECONNRESET);
	}
	UNIT_TRUE(n_reset > 10);
	unit_workers_close(&u);
}

/* Another handle of the same ep takes back what it sent. @param turns after which, of the transfer */
static void
neighbour_taken_back(const char *scheme, unsigned turns, bool *asked)
{
	struct plx_ep_user other = {.ep = NULL};
	struct plx_req *send, *gone, *recv;
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	begin(scheme);
	unit_workers_open(&u, 2);
	UNIT_TRUE_FATAL(plx_worker_addr(u.w[1], addr, sizeof(addr)) > 0);
	UNIT_EQ_FATAL(plx_worker_ep_get(u.w[0], addr, &other), 0);
	gone = plx_req_get(&u.w[0]->reqs);
	memcpy(lent, from, LEN);
	plx_worker_tag_send(u.w[0], &other, lent, LEN, 8, PLX_SEND_ANY, gone);
	send = unit_send(&u, 0, 1, from, LEN, 9, false);
	unit_turns(&u, 3);
	recv = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	unit_turns(&u, turns);
	plx_worker_ep_cancel(u.w[0], &other);
	UNIT_END(&u, gone, -ECANCELED);
	reuse(lent);
	UNIT_TRUE_FATAL(unit_finish(&u, recv));
	UNIT_END(&u, recv, 0);
	UNIT_SAME(to, from, LEN);
	UNIT_END(&u, send, 0);
	*asked |= stat_of(1)->asked_again != 0;
	recv = unit_recv(&u, 1, to, LEN, 8, UNIT_EXACT);
	UNIT_END(&u, recv, -ECONNRESET);
	plx_worker_ep_put(u.w[0], &other);
	unit_workers_close(&u);
}

static void
what_a_neighbour_takes_back_harms_nobody(void)
{
	const char *const schemes[] = {"get", "split", "frag"};

	for (unsigned i = 0; i < 3; i++) {
		bool asked = false;

		for (unsigned turns = 0; turns < 80; turns++)
			neighbour_taken_back(schemes[i], turns, &asked);
		UNIT_EQ(asked, i != 2); /* who read could not tell, and asked */
	}
}

static CU_TestInfo scheme_tests[] = {
	UNIT_TEST(frag_sends_without_a_copy_where_a_device_does),
	UNIT_TEST(a_send_ends_when_the_device_has_let_go_of_its_buffer),
	UNIT_TEST(what_is_sent_without_a_copy_ends_when_the_receiver_dies),
	UNIT_TEST(chains_are_read_where_they_lie),
	UNIT_TEST(few_pieces_come_with_the_announcement),
	UNIT_TEST(chains_that_may_not_be_read_are_packed),
	UNIT_TEST(a_chain_that_is_withdrawn_is_not_believed),
	UNIT_TEST(get_moves_all),
	UNIT_TEST(split_moves_all_and_both_copy),
	UNIT_TEST(frag_moves_all),
	UNIT_TEST(put_moves_all),
	UNIT_TEST(memory_that_the_device_takes_is_used_where_it_lies),
	UNIT_TEST(memory_that_the_device_does_not_take_is_copied_by_processors),
	UNIT_TEST(short_transfers_register_nothing),
	UNIT_TEST(memory_that_can_not_be_registered_takes_frag),
	UNIT_TEST(a_device_without_rma_takes_frag),
	UNIT_TEST(a_device_without_shared_memory_takes_frag),
	UNIT_TEST(a_sender_on_the_receivers_core_is_not_asked_to_help),
	UNIT_TEST(a_receiver_needs_no_help),
	UNIT_TEST(more_transfers_than_cursors_all_arrive),
	UNIT_TEST(pieces_of_several_transfers_go_in_one_call),
	UNIT_TEST(the_receiver_reads_the_front_and_the_sender_writes_the_back),
	UNIT_TEST(a_short_buffer_gets_truncation_and_frees_the_sender),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo fault_tests[] = {
	UNIT_TEST(a_busy_device_only_takes_longer),
	UNIT_TEST(a_bad_piece_of_a_call_fails_alone),
	UNIT_TEST(a_busy_device_takes_some_pieces_of_a_call),
	UNIT_TEST(a_refused_get_goes_on_with_frag),
	UNIT_TEST(a_refused_split_goes_on_all_the_same),
	UNIT_TEST(get_refused_in_the_middle_goes_on_with_frag),
	UNIT_TEST(a_helper_that_fails_leaves_its_chunk_to_the_receiver),
	UNIT_TEST(a_chunk_that_is_none_is_given_back),
	UNIT_TEST(a_receive_outlives_its_ep_while_the_helper_has_a_chunk),
	UNIT_TEST(a_receive_that_outlives_its_ep_may_be_cancelled),
	UNIT_TEST(who_has_left_is_not_waited_for),
	UNIT_TEST(a_stream_goes_after_its_transfer),
	UNIT_TEST(a_receive_ends_with_its_ep_when_the_helper_has_nothing),
	UNIT_TEST(who_leaves_waits_for_its_helpers),
	UNIT_TEST(a_chunk_not_read_yet_and_one_not_written_are_both_done_later),
	UNIT_TEST(a_late_helper_finds_another_generation),
	UNIT_TEST(no_generation_is_zero),
	UNIT_TEST(the_death_of_either_side_ends_the_others_request),
	UNIT_TEST(a_read_that_fails_ends_both_sides),
	UNIT_TEST(an_answer_before_the_question_is_not_believed),
	UNIT_TEST(what_is_refused_while_it_is_announced_is_announced_no_further),
	UNIT_TEST(a_callback_may_end_its_neighbours),
	UNIT_TEST(a_send_taken_back_ends_its_receive),
	UNIT_TEST(a_send_taken_back_is_never_written_wrong),
	UNIT_TEST(sends_taken_back_behind_a_full_ring_are_never_received_wrong),
	UNIT_TEST(what_a_neighbour_takes_back_harms_nobody),
	UNIT_TEST(a_device_that_refuses_to_write_goes_on_with_messages),
	UNIT_TEST(a_busy_device_writes_all_the_same),
	UNIT_TEST(a_send_taken_back_waits_for_its_writes),
	UNIT_TEST(the_death_of_either_side_ends_writes_too),
	UNIT_TEST(an_order_to_write_that_makes_no_sense_is_refused),
	UNIT_TEST(the_next_piece_may_be_asked_for_before_a_write_is_over),
	UNIT_TEST(an_order_to_write_by_a_device_without_keys_is_refused),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"rendezvous", NULL, NULL, NULL, NULL, scheme_tests},
	{"rendezvous, faults", NULL, NULL, NULL, NULL, fault_tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
