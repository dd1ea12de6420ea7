/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_bulk_test.c - transfers whose chunks the sender sends as messages, while the receiver may read others
 */
#include <errno.h>
#include <string.h>

#include "plx_cursor.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"

#define LEN	1000003
#define FOREVER (UINT64_MAX / 2)

static struct unit_workers u;
static uint8_t from[LEN], to[LEN + 64];

static const struct plx_rndv_stat *
stat_of(unsigned i)
{
	return &u.w[i]->rndv.stat;
}

static void
patience(uint64_t ticks)
{
	u.w[0]->rndv.patience = u.w[1]->rndv.patience = ticks;
}

static void
begin(void)
{
	fake_reset(11);
	fake.bulk = true;
	fake.mtu = 8192;
	unit_workers_conf(&u);
	unit_workers_set(&u, "rndv.scheme", "split");
	unit_fill(from, LEN, 5);
	memset(to, 0xcc, sizeof(to));
}

static void
end(void)
{
	unit_nothing_left(&u);
	unit_workers_close(&u);
}

static struct plx_req *
both(uint64_t len, struct plx_req **send)
{
	memset(to, 0xcc, sizeof(to));
	*send = unit_send(&u, 0, 1, from, len, 9, false);
	return unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
}

static void
ends_well(struct plx_req *recv, struct plx_req *send, uint64_t len)
{
	UNIT_TRUE_FATAL(unit_finish(&u, recv) && unit_finish(&u, send));
	UNIT_SAME(to, from, len);
	UNIT_EQ(to[len], 0xcc);
	UNIT_END(&u, recv, 0);
	UNIT_END(&u, send, 0);
	unit_turns(&u, 3);
}

static void
transfer(uint64_t len)
{
	struct plx_req *send, *recv = both(len, &send);

	ends_well(recv, send, len);
}

/* The receiver has had messages once, and waits for more as long as it takes. */
static void
begin_hoping(void)
{
	begin();
	unit_workers_open(&u, 2);
	patience(FOREVER);
	transfer(LEN);
}

/* @return a receive that has asked the sender to help; send: what it is of */
static struct plx_req *
asked(struct plx_req **send)
{
	struct plx_req *recv;

	begin_hoping();
	recv = both(LEN, send);
	for (unsigned i = 0; i < 3; i++)
		plx_worker_progress(u.w[1]);
	return recv;
}

/* The receiver's ep has failed. */
static void
end_failed(struct plx_req *recv, struct plx_req *send)
{
	UNIT_END(&u, recv, -ECONNRESET);
	plx_ep_fail(u.to[0][1].ep, -ECONNRESET);
	UNIT_END(&u, send, -ECONNRESET);
	unit_workers_close(&u);
}

/* Until the first messages come the receiver reads. */
static void
the_sender_sends_all_chunks_of_a_receiver_that_waits(void)
{
	const uint64_t lens[] = {65536, 65537, 8176 * 16, 8176 * 16 + 1, 300000, LEN};

	begin();
	unit_workers_open(&u, 2);
	patience(FOREVER);
	transfer(LEN);
	UNIT_TRUE(stat_of(0)->chunks_sent > 0);
	UNIT_TRUE(stat_of(1)->bytes_own > stat_of(0)->bytes_help);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		uint64_t rma = unit_queue(&u, 1)->stat.rma_bytes, sent = stat_of(0)->bytes_help;

		transfer(lens[i]);
		UNIT_EQ(stat_of(0)->bytes_help - sent, lens[i]);
		UNIT_EQ(unit_queue(&u, 1)->stat.rma_bytes, rma);
	}
	UNIT_EQ(unit_queue(&u, 0)->stat.rma_bytes, 0);
	UNIT_EQ(stat_of(1)->drop_bad_range + stat_of(1)->drop_bad_id, 0);
	UNIT_EQ(stat_of(1)->frag, 0);
	end();
}

static void
a_message_may_be_longer_than_a_chunk(void)
{
	begin();
	fake.mtu = 100000;
	unit_workers_open(&u, 2);
	patience(FOREVER);
	transfer(LEN);
	transfer(200000);
	transfer(LEN);
	UNIT_TRUE(stat_of(0)->chunks_sent > 0);
	UNIT_EQ(stat_of(1)->drop_bad_range, 0);
	end();
}

static void
a_device_that_reads_as_fast_sends_no_chunks(void)
{
	begin();
	fake.bulk = false;
	unit_workers_open(&u, 2);
	patience(FOREVER);
	transfer(LEN);
	transfer(LEN);
	UNIT_EQ(stat_of(0)->chunks_sent, 0);
	UNIT_TRUE(unit_queue(&u, 0)->stat.rma_bytes > 0);
	end();
}

/* After some messages it is hoped for more. */
static void
a_receiver_reads_when_it_has_waited_in_vain(void)
{
	struct plx_req *send, *recv;

	begin_hoping();
	recv = both(LEN, &send);
	for (unsigned i = 0; i < 100; i++)
		plx_worker_progress(u.w[1]);
	UNIT_EQ(plx_rndv_rx(recv)->mine, 0);
	patience(0);
	plx_worker_progress(u.w[1]);
	UNIT_EQ(plx_rndv_rx(recv)->mine, 1);
	for (unsigned i = 0; i < 100 && !plx_req_is_done(recv); i++)
		plx_worker_progress(u.w[1]); /* the sender computes */
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	ends_well(recv, send, LEN);
	/* Nothing is hoped for any more. */
	patience(FOREVER);
	recv = both(LEN, &send);
	for (unsigned i = 0; i < 100 && !plx_req_is_done(recv); i++)
		plx_worker_progress(u.w[1]);
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	ends_well(recv, send, LEN);
	end();
}

/* The receiver computes. The messages in the ring wait for it, and the sender writes the rest. */
static void
a_sender_writes_when_it_has_waited_for_room_in_vain(void)
{
	struct plx_req *send, *recv;
	uint32_t way;

	begin();
	fake.depth = 20;
	unit_workers_open(&u, 2);
	patience(FOREVER);
	transfer(LEN);
	recv = both(LEN, &send);
	for (unsigned i = 0; i < 3; i++)
		plx_worker_progress(u.w[1]); /* asks */
	for (unsigned i = 0; i < 100; i++)
		plx_worker_progress(u.w[0]);
	way = fake_on_the_way(unit_queue(&u, 0), unit_queue(&u, 1));
	UNIT_TRUE(way > 0 && way <= 20);
	UNIT_EQ(unit_queue(&u, 0)->stat.rma_bytes, 0);
	patience(0);
	for (unsigned i = 0; i < 100; i++)
		plx_worker_progress(u.w[0]);
	UNIT_EQ(fake_on_the_way(unit_queue(&u, 0), unit_queue(&u, 1)), way);
	UNIT_TRUE(unit_queue(&u, 0)->stat.rma_bytes > LEN / 2);
	ends_well(recv, send, LEN);
	UNIT_EQ(unit_queue(&u, 1)->stat.rma_bytes > LEN, false); /* only of the first */
	end();
}

/* A device that promises room and has none: such a chunk is given back. */
static void
chunks_that_find_no_room_after_all_are_read(void)
{
	for (unsigned seed = 1; seed <= 30; seed++) {
		begin();
		fake_reset(seed);
		fake.bulk = true;
		fake.mtu = 8192;
		fake.full_percent = 20;
		fake.delay_max = seed % 4;
		unit_workers_open(&u, 2);
		patience(seed % 2 ? FOREVER : 0);
		for (unsigned i = 0; i < 6; i++)
			transfer(LEN);
		end();
	}
}

static void
all_at_once(void)
{
	struct plx_req *send[16], *recv[16];

	for (unsigned seed = 1; seed <= 10; seed++) {
		begin();
		fake_reset(seed);
		fake.bulk = true;
		fake.mtu = 8192;
		fake.depth = 30;
		unit_workers_open(&u, 2);
		patience(seed % 2 ? 1000 : 0);
		for (unsigned k = 0; k < 3; k++) {
			memset(to, 0xcc, sizeof(to));
			for (unsigned i = 0; i < 16; i++) {
				send[i] = unit_send(&u, 0, 1, from + i * 4000, 900000, i, false);
				recv[i] = unit_recv(&u, 1, to, 900000, i, UNIT_EXACT);
			}
			for (unsigned i = 0; i < 16; i++)
				UNIT_TRUE_FATAL(unit_finish(&u, recv[i]) && unit_finish(&u, send[i]));
			for (unsigned i = 0; i < 16; i++) {
				UNIT_END(&u, recv[i], 0);
				UNIT_END(&u, send[i], 0);
			}
		}
		UNIT_TRUE(stat_of(0)->chunks_sent > 0);
		UNIT_EQ(stat_of(1)->drop_bad_range, 0);
		end();
	}
}

static void
data_at(const struct plx_req *recv, uint64_t offset, uint32_t len)
{
	static uint8_t msg[70000];
	const struct plx_wire_data h = {.rreq = plx_rndv_rx(recv)->id, .offset = offset};

	memset(msg, 0xee, sizeof(msg));
	memcpy(msg, &h, sizeof(h));
	fake_inject(unit_queue(&u, 0), unit_queue(&u, 1), PLX_WIRE_DATA, msg, sizeof(h) + len);
}

/* A chunk comes from its beginning to its end. */
static void
messages_that_continue_no_chunk_are_dropped(void)
{
	struct plx_req *send, *recv;
	uint64_t chunk;

	recv = asked(&send);
	chunk = plx_rndv_rx(recv)->chunk;
	UNIT_TRUE_FATAL(chunk % 8176 == 0 && chunk > 8176);
	data_at(recv, 1, 100);
	data_at(recv, chunk - 1, 1);
	data_at(recv, chunk, 0);
	data_at(recv, LEN / chunk * chunk, LEN % chunk + 1);
	data_at(recv, (LEN / chunk + 1) * chunk, 1);
	data_at(recv, UINT64_MAX / chunk * chunk, 1);
	data_at(recv, UINT64_MAX, 1);
	plx_worker_progress(u.w[1]);
	UNIT_EQ(stat_of(1)->drop_bad_range, 7);
	for (unsigned i = 0; i < LEN; i++)
		CU_ASSERT_FATAL(to[i] == 0xcc);
	data_at(recv, chunk, 100); /* this begins one, */
	data_at(recv, chunk, 100);
	data_at(recv, 2 * chunk, 100); /* and no other may come between */
	data_at(recv, chunk + 101, 100);
	plx_worker_progress(u.w[1]);
	UNIT_EQ(stat_of(1)->drop_bad_range, 10);
	UNIT_EQ(to[chunk + 99], 0xee);
	UNIT_EQ(to[chunk + 100], 0xcc);
	UNIT_EQ(to[2 * chunk], 0xcc);
	UNIT_EQ(plx_rndv_rx(recv)->came, 0);
	plx_ep_fail(plx_rndv_rx(recv)->ep, -ECONNRESET);
	end_failed(recv, send);
}

/* The sender does not write to the buffer any more, and nothing that comes is copied. */
static void
a_receive_that_fails_waits_for_no_messages(void)
{
	struct plx_req *send, *recv;
	struct plx_rndv_cursor *c;

	recv = asked(&send);
	c = &((struct plx_rndv_shared *)unit_queue(&u, 1)->shared)->cursors[plx_rndv_rx(recv)->slot];
	UNIT_TRUE(plx_cursor_take(&c->next, plx_rndv_rx(recv)->gen, 100, true) != PLX_CURSOR_NONE);
	plx_ep_fail(plx_rndv_rx(recv)->ep, -ECONNRESET);
	UNIT_EQ(plx_req_is_done(recv), false); /* it may write */
	data_at(recv, 0, 100);
	plx_worker_progress(u.w[1]);
	UNIT_EQ(plx_req_is_done(recv), false);
	UNIT_EQ(to[0], 0xcc);
	c->sent++;
	plx_worker_progress(u.w[1]);
	UNIT_TRUE_FATAL(plx_req_is_done(recv));
	end_failed(recv, send);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(the_sender_sends_all_chunks_of_a_receiver_that_waits),
	UNIT_TEST(a_message_may_be_longer_than_a_chunk),
	UNIT_TEST(a_device_that_reads_as_fast_sends_no_chunks),
	UNIT_TEST(a_receiver_reads_when_it_has_waited_in_vain),
	UNIT_TEST(a_sender_writes_when_it_has_waited_for_room_in_vain),
	UNIT_TEST(chunks_that_find_no_room_after_all_are_read),
	UNIT_TEST(all_at_once),
	UNIT_TEST(messages_that_continue_no_chunk_are_dropped),
	UNIT_TEST(a_receive_that_fails_waits_for_no_messages),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"rendezvous, chunks as messages", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
