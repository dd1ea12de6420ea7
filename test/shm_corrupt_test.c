/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_corrupt_test.c - a peer that writes nonsense into a worker's segment
 *
 * Design notes
 * The bad peer is a process of its own, so nothing it says is taken for ours; it
 * only reads what it is sent. What it "writes" is written by this test into the
 * victim's segment, so that every byte and every turn is determined.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plx_conf.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_refuse.h"
#include "plx_unit_shm.h"
#include "plx_unit_worker.h"
#include "plx_worker.h"

#define FUZZ_CELLS 120000
#define GOOD_LEN   700
#define BIG	   (200u << 10)
#define EXACT	   UINT64_MAX
#define GOOD_TAG   UINT64_C(0x600d600d00000000)

static struct plx_conf conf;
static struct plx_worker *victim, *good;
static struct plx_ep_user to_good, to_victim;

/* -- the bad peer -- */

static struct {
	pid_t pid;
	struct plx_addr addr;
	struct shm_addr shm;
	struct shm_slot *slot; /* in the victim's segment */
	uint32_t slot_i;
	uint64_t pos;
	struct plx_ep_user user; /* the victim's way to it */
} bad;

/* Takes what it is sent and never answers. */
static void
bad_process(int out)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	struct plx_queue *q = NULL;
	struct plx_dev *dev;
	struct plx_addr addr;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	plx_conf_defaults(&conf);
	if (plx_dev_register(&plx_shm_ops) != 0 || plx_dev_open("shm", &conf, &dev) != 0 ||
		plx_queue_open(dev, &conf, NULL, &q) != 0)
		_exit(1);
	plx_queue_addr(q, &addr);
	if (write(out, &addr, sizeof(addr)) != sizeof(addr))
		_exit(1);
	for (;;) {
		uint16_t n = q->rx_burst(q, rx, PLX_DEV_RX_BURST);

		q->rx_release(q, rx, n);
		if (n == 0)
			usleep(200);
	}
}

/* Before the EAL: its memory is shared with children. */
static int
bad_start(void)
{
	int fd[2];

	if (pipe(fd) != 0)
		return -1;
	fflush(stdout);
	bad.pid = fork();
	if (bad.pid == 0)
		bad_process(fd[1]);
	if (bad.pid < 0 || read(fd[0], &bad.addr, sizeof(bad.addr)) != sizeof(bad.addr))
		return -1;
	memcpy(&bad.shm, bad.addr.bytes, sizeof(bad.shm));
	close(fd[0]);
	close(fd[1]);
	return 0;
}

static struct plx_queue *
queue_of(struct plx_worker *w)
{
	return w->queues[0];
}

static struct shm_seg *
seg(void)
{
	return shm_queue(queue_of(victim))->seg;
}

static void
turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		plx_worker_progress(victim);
		plx_worker_progress(good);
	}
}

/* Stand in a free slot of the victim as if addr had taken it. */
static uint32_t
slot_stand(const struct shm_addr *addr)
{
	for (uint32_t i = 0; i < seg()->n_slots; i++) {
		struct shm_slot *slot = shm_slot_at(seg(), i);

		if (slot->state != SHM_SLOT_FREE)
			continue;
		slot->sender = *addr;
		slot->state = SHM_SLOT_STATE(addr->proc, SHM_SLOT_READY);
		seg()->doorbell |= 1ull << i;
		return i;
	}
	CU_FAIL_FATAL("no free slot");
	return 0;
}

/* Write a cell; nothing of it is made right but its place in the ring. */
static void
cell_put(union shm_cell_head head, const void *body, uint32_t len)
{
	struct shm_cell *cell = shm_cell_at(bad.slot->cells, bad.pos);

	for (unsigned i = 0; bad.pos - bad.slot->rx_pos >= SHM_CELLS && i < 20000; i++)
		plx_worker_progress(victim);
	CU_ASSERT_FATAL(bad.pos - bad.slot->rx_pos < SHM_CELLS);
	memcpy(cell->body, body, len);
	if (cell->head == head.word) /* the same again would not be seen as new */
		return;
	cell->head = head.word;
	if (head.seq == shm_seq(bad.pos))
		bad.pos++;
	seg()->doorbell |= 1ull << bad.slot_i;
}

/* A well-formed message with whatever in it. */
static void
say(uint8_t op, const void *hdr, uint32_t hdr_len, const void *data, uint32_t len)
{
	union shm_cell_head head = {.seq = shm_seq(bad.pos), .len = (uint16_t)(hdr_len + len),
		.op = op, .kind = SHM_CELL_INLINE};
	uint8_t body[SHM_CELL_BODY];

	CU_ASSERT_FATAL(hdr_len + len <= sizeof(body));
	if (hdr_len != 0)
		memcpy(body, hdr, hdr_len);
	if (len != 0)
		memcpy(body + hdr_len, data, len);
	cell_put(head, body, hdr_len + len);
	turns(3);
}

#define SAY(op, h) say(op, &(h), sizeof(h), NULL, 0)

/* -- what is counted, and what must not change meanwhile -- */

static uint64_t
counted(void)
{
	const struct plx_queue_stat *q = &queue_of(victim)->stat;

	return q->rx_drop_bad_cell + q->rx_drop_bad_peer + victim->stat.rx_drop_bad_op +
	       victim->stat.rx_drop_bad_frag + victim->stat.rx_drop_no_memory +
	       victim->rndv.stat.drop_bad_id + victim->rndv.stat.drop_bad_range;
}

/* One drop of this kind since `before`, and none of another. */
#define DROPPED(counter, before, all)                                                              \
	do {                                                                                       \
		UNIT_EQ((counter), (before) + 1);                                                  \
		UNIT_EQ(counted(), (all) + 1);                                                     \
		good_goes_on();                                                                    \
	} while (0)

static uint64_t good_n;

/* A message each way between the good ones, in their order and unharmed. */
static void
good_goes_on(void)
{
	static uint8_t out[2][GOOD_LEN], in[2][GOOD_LEN];
	struct plx_worker *w[2] = {victim, good};
	const struct plx_ep_user *user[2] = {&to_good, &to_victim};
	struct plx_req *req[4];

	for (unsigned i = 0; i < 2; i++) {
		uint64_t tag = GOOD_TAG + good_n;

		req[i] = plx_req_get(&w[i]->reqs);
		req[2 + i] = plx_req_get(&w[i]->reqs);
		unit_fill(out[i], GOOD_LEN, good_n + i);
		memset(in[i], 0, GOOD_LEN);
		plx_worker_tag_recv(w[i], in[i], GOOD_LEN, tag, EXACT, req[i]);
		plx_worker_tag_send(w[i], user[i], out[i], GOOD_LEN, tag, PLX_SEND_ANY, req[2 + i]);
	}
	for (unsigned i = 0; i < 10000; i++) {
		turns(1);
		if (plx_req_is_done(req[0]) && plx_req_is_done(req[1]))
			break;
	}
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_FATAL(plx_req_is_done(req[i]));
		UNIT_EQ(req[i]->status, 0);
		plx_req_put(req[i]);
	}
	CU_ASSERT_FATAL(unit_is_filled(in[0], GOOD_LEN, good_n + 1));
	CU_ASSERT_FATAL(unit_is_filled(in[1], GOOD_LEN, good_n));
	good_n++;
}

/* -- one class of nonsense each -- */

static void
cells_that_make_no_sense_are_counted_and_passed_over(void)
{
	const uint32_t data_len = shm_data_len(seg()->n_wide, bad.slot_i);
	const struct {
		uint16_t len;
		uint8_t kind;
		union shm_ref ref;
	} cells[] = {
		{SHM_CELL_BODY + 1, SHM_CELL_INLINE, {{0, 0}}},
		{UINT16_MAX, SHM_CELL_INLINE, {{0, 0}}},
		{8, 0, {{0, 8}}},
		{8, 3, {{0, 8}}},
		{8, 255, {{0, 8}}},
		{8, SHM_CELL_DATA, {{0, SHM_MSG_MAX + 1}}},
		{8, SHM_CELL_DATA, {{0, UINT32_MAX}}},
		{8, SHM_CELL_DATA, {{data_len + 1, 0}}},
		{8, SHM_CELL_DATA, {{UINT32_MAX, 8}}},
		{8, SHM_CELL_DATA, {{UINT32_MAX, SHM_MSG_MAX}}},
		{8, SHM_CELL_DATA, {{data_len - 7, 8}}},
		{8, SHM_CELL_DATA, {{data_len, 1}}},
	};
	uint64_t *counter = &queue_of(victim)->stat.rx_drop_bad_cell;

	for (unsigned i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		union shm_cell_head head = {.seq = shm_seq(bad.pos), .len = cells[i].len,
			.op = PLX_WIRE_EAGER, .kind = cells[i].kind};
		uint64_t before = *counter, all = counted();

		cell_put(head, &cells[i].ref, sizeof(cells[i].ref));
		turns(5);
		DROPPED(*counter, before, all);
	}
}

static void
a_ring_full_of_bad_cells_does_not_stop_it(void)
{
	const uint8_t body[8] = {0};
	uint64_t before = queue_of(victim)->stat.rx_drop_bad_cell;

	for (unsigned i = 0; i < 3 * SHM_CELLS; i++) {
		union shm_cell_head head = {.seq = shm_seq(bad.pos), .kind = 77};

		cell_put(head, body, sizeof(body));
	}
	turns(4 * SHM_CELLS); /* one a turn is enough */
	UNIT_EQ(queue_of(victim)->stat.rx_drop_bad_cell, before + 3 * SHM_CELLS);
	good_goes_on();
}

static void
unknown_opcodes_are_counted(void)
{
	uint8_t body[64] = {0};

	for (unsigned op = 0; op < 256; op++) {
		uint64_t before = victim->stat.rx_drop_bad_op, all = counted();

		if (plx_wire_hdr_len[op] != 0)
			continue;
		say((uint8_t)op, body, sizeof(body), NULL, 0);
		DROPPED(victim->stat.rx_drop_bad_op, before, all);
	}
}

static void
headers_that_are_too_short_are_counted(void)
{
	const uint8_t body[PLX_WIRE_HDR_MAX] = {0};

	for (unsigned op = 0; op < PLX_WIRE_N; op++) {
		for (unsigned len = 0; len < plx_wire_hdr_len[op]; len++) {
			uint64_t before = victim->stat.rx_drop_bad_op, all = counted();

			say((uint8_t)op, body, len, NULL, 0);
			DROPPED(victim->stat.rx_drop_bad_op, before, all);
		}
	}
}

static void
say_answers(struct plx_wire_id id)
{
	const struct plx_wire_ack ack = {.sreq = id};
	const struct plx_wire_help help = {.sreq = id, .len = 8192, .chunk = 4096};
	const struct plx_wire_pull pull = {.sreq = id, .len = 8};
	const struct plx_wire_data data = {.rreq = id};
	uint64_t *counter = &victim->rndv.stat.drop_bad_id;
	uint64_t before = *counter, all = counted();

	SAY(PLX_WIRE_ACK, ack);
	DROPPED(*counter, before, all);
	SAY(PLX_WIRE_HELP, help);
	DROPPED(*counter, before + 1, all + 1);
	SAY(PLX_WIRE_PULL, pull);
	DROPPED(*counter, before + 2, all + 2);
	SAY(PLX_WIRE_DATA, data);
	DROPPED(*counter, before + 3, all + 3);
}

static void
answers_to_nothing_we_asked_are_counted(void)
{
	const struct plx_wire_id ids[] = {{0, 0}, {0, 1}, {1, 0}, {1, 77}, {63, 1}, {64, 1},
		{1u << 24, 1}, {UINT32_MAX, 1}, {UINT32_MAX, UINT32_MAX}, {0x80000000, 1}};

	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		say_answers(ids[i]);
}

static struct plx_req *
big_send(const struct plx_ep_user *user, const void *buf, uint64_t len, uint64_t tag)
{
	struct plx_req *req = plx_req_get(&victim->reqs);

	plx_worker_tag_send(victim, user, buf, len, tag, PLX_SEND_ANY, req);
	return req;
}

static uint8_t big[BIG], big_in[BIG];

/* Let a request of the victim end, and give it back. */
static void
end_with(struct plx_req *req, int status)
{
	for (unsigned i = 0; i < 100000 && !plx_req_is_done(req); i++)
		turns(1);
	CU_ASSERT_FATAL(plx_req_is_done(req));
	UNIT_EQ(req->status, status);
	plx_req_put(req);
}

static void
answers_to_what_another_was_asked_are_counted(void)
{
	struct plx_req *send, *recv;

	/* A send that the good one has not matched yet: only the good one may speak of it. */
	send = big_send(&to_good, big, BIG, 5);
	turns(10);
	UNIT_TRUE(!plx_req_is_done(send) && plx_rndv_tx(send)->id.index != 0);
	say_answers(plx_rndv_tx(send)->id);
	UNIT_TRUE(!plx_req_is_done(send));
	UNIT_EQ(plx_rndv_tx(send)->role, 0);
	recv = plx_req_get(&good->reqs);
	plx_worker_tag_recv(good, big_in, BIG, 5, EXACT, recv);
	end_with(send, 0);
	turns(10);
	UNIT_TRUE(plx_req_is_done(recv));
	plx_req_put(recv);
}

static void
answers_of_the_wrong_kind_are_counted(void)
{
	struct plx_wire_rts rts = {.tag = 6, .len = 1000, .addr = 0, .sreq = {9, 9}};
	struct plx_req *send = big_send(&bad.user, big, BIG, 5);
	struct plx_req *recv = plx_req_get(&victim->reqs);
	uint64_t before, all;

	turns(3);
	plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
	SAY(PLX_WIRE_RTS, rts); /* address 0: by messages */
	UNIT_TRUE(!plx_req_is_done(recv) && plx_rndv_rx(recv)->id.index != 0);
	before = victim->rndv.stat.drop_bad_id;
	all = counted();
	SAY(PLX_WIRE_ACK, ((struct plx_wire_ack){.sreq = plx_rndv_rx(recv)->id}));
	SAY(PLX_WIRE_PULL, ((struct plx_wire_pull){.sreq = plx_rndv_rx(recv)->id, .len = 1}));
	SAY(PLX_WIRE_HELP, ((struct plx_wire_help){.sreq = plx_rndv_rx(recv)->id, .len = 1}));
	SAY(PLX_WIRE_DATA, ((struct plx_wire_data){.rreq = plx_rndv_tx(send)->id}));
	UNIT_EQ(victim->rndv.stat.drop_bad_id, before + 4);
	UNIT_EQ(counted(), all + 4);
	UNIT_TRUE(!plx_req_is_done(send) && !plx_req_is_done(recv));
	/* Right in the end: both complete. */
	SAY(PLX_WIRE_ACK, ((struct plx_wire_ack){.sreq = plx_rndv_tx(send)->id}));
	end_with(send, 0);
	for (uint64_t at = 0; at < 1000; at += 100)
		say(PLX_WIRE_DATA, &(struct plx_wire_data){.rreq = plx_rndv_rx(recv)->id, .offset = at},
			sizeof(struct plx_wire_data), big + at, 100);
	end_with(recv, 0);
	UNIT_SAME(big_in, big, 1000);
	good_goes_on();
}

static struct plx_dt no_memory;

/* Pieces of memory that a message can't have. */
static const struct {
	unsigned n;
	struct plx_wire_piece p[2];
} bad_pieces[] = {
	{1, {{4096, 0}}},
	{1, {{4096, BIG + 1}}},
	{1, {{UINT64_MAX - 10, 11}}},
	{1, {{4096, UINT64_MAX}}},
	{2, {{4096, BIG}, {4096, 1}}},
	{2, {{1, UINT64_MAX - 1}, {1, UINT64_MAX - 1}}},
	{2, {{4096, 1}, {4096, 0}}},
};

static void
help_with_bad_pieces_is_counted(void)
{
	struct plx_req *send = big_send(&bad.user, big, BIG, 5);
	const struct plx_wire_help h = {.sreq = plx_rndv_tx(send)->id, .rreq = {1, 1}, .len = BIG, .gen = 1,
		.chunk = 65536};
	uint64_t *counter = &victim->rndv.stat.drop_bad_range, before, all;

	for (unsigned i = 0; i < sizeof(bad_pieces) / sizeof(bad_pieces[0]); i++) {
		before = *counter;
		all = counted();
		say(PLX_WIRE_HELP, &h, sizeof(h), (const uint8_t *)bad_pieces[i].p,
			bad_pieces[i].n * sizeof(struct plx_wire_piece));
		DROPPED(*counter, before, all);
		UNIT_EQ(plx_rndv_tx(send)->on_run, false);
	}
	before = *counter;
	say(PLX_WIRE_HELP, &h, sizeof(h), bad_pieces, 15); /* not even one */
	UNIT_EQ(*counter, before + 1);
	UNIT_EQ(plx_rndv_tx(send)->on_run, false);
	SAY(PLX_WIRE_ACK, ((struct plx_wire_ack){.sreq = plx_rndv_tx(send)->id}));
	end_with(send, 0);
}

static void
lists_that_were_not_asked_for_are_counted(void)
{
	const struct plx_wire_rts rts = {.tag = 6, .len = BIG, .addr = 0, .sreq = {9, 9}};
	const struct plx_wire_piece one = {(uintptr_t)big, 4096};
	struct plx_req *recv = plx_req_get(&victim->reqs);
	uint64_t *counter = &victim->rndv.stat.drop_bad_range, before, all;
	struct plx_wire_list h = {.offset = 0};

	recv->dt = &no_memory; /* nobody may read into it */
	plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
	SAY(PLX_WIRE_RTS, rts);
	h.rreq = plx_rndv_rx(recv)->id;
	before = *counter;
	all = counted();
	say(PLX_WIRE_LIST, &h, sizeof(h), (const uint8_t *)&one, sizeof(one));
	DROPPED(*counter, before, all);
	UNIT_EQ(plx_rndv_rx(recv)->on_run, false);
	recv->dt = NULL;
	SAY(PLX_WIRE_CANCEL, ((struct plx_wire_cancel){.rreq = h.rreq}));
	end_with(recv, -ECONNRESET);
}

/* It is not believed, and the data is asked for as messages. */
static void
a_bad_list_is_not_read(void)
{
	const struct plx_wire_rts rts = {.tag = 6, .len = BIG, .addr = 0, .sreq = {9, 9}};

	for (unsigned i = 0; i < sizeof(bad_pieces) / sizeof(bad_pieces[0]); i++) {
		struct plx_req *recv = plx_req_get(&victim->reqs);
		struct plx_wire_list h = {.offset = 0};

		plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
		SAY(PLX_WIRE_RTS, rts);
		h.rreq = plx_rndv_rx(recv)->id;
		say(PLX_WIRE_LIST, &h, sizeof(h), (const uint8_t *)bad_pieces[i].p,
			bad_pieces[i].n * sizeof(struct plx_wire_piece));
		UNIT_EQ(plx_rndv_rx(recv)->on_run, false);
		SAY(PLX_WIRE_CANCEL, ((struct plx_wire_cancel){.rreq = h.rreq}));
		end_with(recv, -ECONNRESET);
	}
}

/* Behind an announcement. It is as if none had come: the sender is asked. */
static void
a_bad_list_is_not_announced(void)
{
	const struct plx_wire_rts rts = {.tag = 6, .len = BIG, .addr = 0, .sreq = {9, 9}};

	for (unsigned i = 0; i < sizeof(bad_pieces) / sizeof(bad_pieces[0]); i++) {
		struct plx_req *recv = plx_req_get(&victim->reqs);
		struct plx_wire_id rreq;

		plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
		say(PLX_WIRE_RTS, &rts, sizeof(rts), (const uint8_t *)bad_pieces[i].p,
			bad_pieces[i].n * sizeof(struct plx_wire_piece));
		UNIT_TRUE(plx_rndv_rx(recv)->list == NULL);
		UNIT_EQ(plx_rndv_rx(recv)->on_run, false);
		rreq = plx_rndv_rx(recv)->id;
		UNIT_TRUE(rreq.index != 0); /* WHERE has named it */
		SAY(PLX_WIRE_CANCEL, ((struct plx_wire_cancel){.rreq = rreq}));
		end_with(recv, -ECONNRESET);
	}
}

static void
help_outside_its_bounds_is_counted(void)
{
	struct plx_req *send = big_send(&bad.user, big, BIG, 5);
	const struct plx_wire_help good_help = {.sreq = plx_rndv_tx(send)->id, .rreq = {1, 1}, .len = BIG,
		.slot = 0, .gen = 1, .chunk = 65536};
	struct plx_wire_help h[] = {good_help, good_help, good_help, good_help, good_help, good_help,
		good_help};
	uint64_t *counter = &victim->rndv.stat.drop_bad_range;
	uint64_t helped = victim->rndv.stat.bytes_help, dropped = *counter;

	h[0].len = BIG + 1;
	h[1].len = UINT64_MAX;
	h[2].chunk = 4095;
	h[3].chunk = 0;
	h[4].slot = plx_rndv_n_cursors(SHM_SHARED_LEN);
	h[5].slot = UINT32_MAX;
	h[6].slot = UINT32_MAX / sizeof(struct plx_rndv_cursor) + 1;
	for (unsigned i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		uint64_t before = *counter, all = counted();

		SAY(PLX_WIRE_HELP, h[i]);
		DROPPED(*counter, before, all);
		UNIT_EQ(plx_rndv_tx(send)->on_run, false);
	}
	/* What is no memory: behind its first byte lies something else. */
	send->dt = &no_memory;
	SAY(PLX_WIRE_HELP, good_help);
	UNIT_EQ(plx_rndv_tx(send)->on_run, false);
	send->dt = NULL;
	UNIT_EQ(victim->rndv.stat.drop_bad_range, dropped + 8);
	/* Within bounds, but of a cursor that says nothing of the sort: it leaves at once. */
	SAY(PLX_WIRE_HELP, good_help);
	turns(3);
	UNIT_EQ(plx_rndv_tx(send)->on_run, false);
	UNIT_EQ(victim->rndv.stat.bytes_help, helped);
	SAY(PLX_WIRE_ACK, ((struct plx_wire_ack){.sreq = plx_rndv_tx(send)->id}));
	end_with(send, 0);
}

static void
pulls_outside_the_message_are_counted(void)
{
	struct plx_req *send = big_send(&bad.user, big, BIG, 5);
	const struct plx_wire_pull h[] = {
		{plx_rndv_tx(send)->id, {1, 1}, BIG + 1, 0},
		{plx_rndv_tx(send)->id, {1, 1}, 0, BIG + 1},
		{plx_rndv_tx(send)->id, {1, 1}, BIG, 1},
		{plx_rndv_tx(send)->id, {1, 1}, BIG - 1, 2},
		{plx_rndv_tx(send)->id, {1, 1}, 1, UINT64_MAX},
		{plx_rndv_tx(send)->id, {1, 1}, UINT64_MAX, 1},
		{plx_rndv_tx(send)->id, {1, 1}, UINT64_MAX, UINT64_MAX},
	};
	uint64_t *counter = &victim->rndv.stat.drop_bad_range;

	for (unsigned i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		uint64_t before = *counter, all = counted();

		SAY(PLX_WIRE_PULL, h[i]);
		DROPPED(*counter, before, all);
	}
	SAY(PLX_WIRE_ACK, ((struct plx_wire_ack){.sreq = plx_rndv_tx(send)->id, .err = 5}));
	end_with(send, -EIO); /* an error that is none */
}

static void
data_that_was_not_asked_for_is_counted(void)
{
	const uint64_t len = 1000, offsets[] = {1, len, len + 1, UINT64_MAX, UINT64_MAX - 7};
	struct plx_wire_rts rts = {.tag = 6, .len = len, .addr = 0, .sreq = {9, 9}};
	struct plx_req *recv = plx_req_get(&victim->reqs);
	uint64_t *counter = &victim->rndv.stat.drop_bad_range;
	struct plx_wire_data h;
	uint64_t before, all;

	memset(big_in, 0x11, sizeof(big_in));
	plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
	SAY(PLX_WIRE_RTS, rts);
	h.rreq = plx_rndv_rx(recv)->id;
	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		before = *counter;
		all = counted();
		h.offset = offsets[i];
		say(PLX_WIRE_DATA, &h, sizeof(h), big, 100);
		DROPPED(*counter, before, all);
	}
	for (h.offset = 0; h.offset < 900; h.offset += 90)
		say(PLX_WIRE_DATA, &h, sizeof(h), big + h.offset, 90);
	before = *counter;
	all = counted();
	say(PLX_WIRE_DATA, &h, sizeof(h), big, 101); /* one byte too many */
	DROPPED(*counter, before, all);
	UNIT_TRUE(!plx_req_is_done(recv));
	for (uint64_t i = 900; i < len + 200; i++)
		CU_ASSERT_FATAL(big_in[i] == 0x11);
	say(PLX_WIRE_DATA, &h, sizeof(h), big + h.offset, 100);
	end_with(recv, 0);
	UNIT_SAME(big_in, big, len);
}

static void
reads_of_memory_that_is_not_there_fail_the_receive(void)
{
	struct plx_wire_rts rts = {.tag = 6, .len = BIG, .addr = 4096, .sreq = {9, 9}};
	const uint64_t addrs[] = {64, 4096, UINT64_MAX - BIG, UINT64_MAX, 1ull << 47,
		0x8000000000000000};

	for (unsigned i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		struct plx_req *recv = plx_req_get(&victim->reqs);

		rts.addr = addrs[i];
		plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
		SAY(PLX_WIRE_RTS, rts);
		if (!(bad.user.ep->peer->caps & PLX_DEV_GET)) { /* not allowed here: it waits */
			SAY(PLX_WIRE_CANCEL, ((struct plx_wire_cancel){.rreq = plx_rndv_rx(recv)->id}));
			end_with(recv, -ECONNRESET);
			continue;
		}
		end_with(recv, -EFAULT);
		good_goes_on();
	}
	UNIT_EQ(victim->rndv.cursors, 0);
}

/* 64 MiB are announced, and 50 bytes come: as many are kept, give or take. */
static void
memory_is_taken_as_a_message_arrives(void)
{
	enum { N = 40 };
	const uint64_t before = victim->msgs.bytes;
	struct plx_wire_first first = {.tag = 7, .len = 64u << 20};
	struct plx_wire_am_first am = {.am = {.id = 1}, .len = 64u << 20};
	struct plx_wire_cancel cancel = {.rreq = {0}};

	for (uint32_t i = 0; i < N; i++) {
		first.msg_id = 1000 + 2 * i;
		say(PLX_WIRE_FIRST, &first, sizeof(first), big, 50);
		am.msg_id = 1001 + 2 * i;
		say(PLX_WIRE_AM_FIRST, &am, sizeof(am), big, 50);
	}
	UNIT_TRUE(victim->msgs.bytes - before < 2 * N * (128u << 10));
	for (uint32_t i = 0; i < 2 * N; i++) {
		cancel.msg_id = 1000 + i;
		say(PLX_WIRE_CANCEL, &cancel, sizeof(cancel), NULL, 0);
	}
	UNIT_EQ(victim->msgs.bytes, before);
}

/* Who begins messages and never ends them had as much memory of ours as it liked: 64 KiB for each. */
static void
messages_in_pieces_that_are_begun_and_never_end_are_counted(void)
{
	enum { N = 300 };
	const uint64_t before = victim->msgs.bytes, dropped = victim->stat.rx_drop_bad_frag;
	struct plx_wire_first first = {.tag = 7, .len = 1u << 20};
	struct plx_wire_am_first am = {.am = {.id = 1}, .len = 1u << 20};
	struct plx_wire_am_rts rts = {.am = {.id = 1, .hdr_len = 4096}, .len = 1u << 20};
	struct plx_wire_cancel cancel = {.rreq = {0}};

	for (uint32_t i = 0; i < N; i++) {
		first.msg_id = 5000 + 3 * i;
		say(PLX_WIRE_FIRST, &first, sizeof(first), big, 50);
		am.msg_id = first.msg_id + 1;
		say(PLX_WIRE_AM_FIRST, &am, sizeof(am), big, 50);
		rts.msg_id = first.msg_id + 2;
		say(PLX_WIRE_AM_RTS, &rts, sizeof(rts), big, 50);
	}
	UNIT_EQ(victim->stat.rx_drop_bad_frag, dropped + 3 * N - PLX_EP_MAX_PARTIAL);
	UNIT_TRUE(victim->msgs.bytes - before < 2 * PLX_EP_MAX_PARTIAL * (64u << 10));
	for (uint32_t i = 0; i < 3 * N; i++) {
		cancel.msg_id = 5000 + i;
		say(PLX_WIRE_CANCEL, &cancel, sizeof(cancel), NULL, 0);
	}
	UNIT_EQ(victim->msgs.bytes, before);
	good_goes_on();
}

/* Or it would not hear that it is to stop: a bound of what is kept needs one of what goes without a look. */
static void
a_sender_that_does_not_look_at_what_comes_sends_so_much_and_no_more(void)
{
	const unsigned most = (PLX_DEV_BLIND_MAX + 1) * SHM_CELLS;
	const uint64_t out = 5;
	unsigned n = 0, more = 0;
	uint64_t in;

	turns(10);
	while (n <= most && plx_worker_tag_send_now(good, to_victim.ep, &out, 8, 99) == 0) {
		n++;
		plx_worker_progress(victim);
	}
	UNIT_TRUE(n <= most && n >= PLX_DEV_BLIND_MAX);
	turns(1);
	while (more < 10 && plx_worker_tag_send_now(good, to_victim.ep, &out, 8, 99) == 0)
		more++;
	UNIT_EQ(more, 10);
	turns(10);
	for (unsigned i = 0; i < n + more; i++) {
		struct plx_req *recv = plx_req_get(&victim->reqs);

		plx_worker_tag_recv(victim, &in, 8, 99, EXACT, recv);
		end_with(recv, 0);
	}
	good_goes_on();
}

/* One that does come is whole, though its memory has moved. */
static void
long_message_in_pieces_is_kept_whole(void)
{
	struct plx_req *recv = plx_req_get(&victim->reqs);
	struct plx_wire_first first = {.tag = 7, .len = BIG, .msg_id = 9};
	struct plx_wire_frag frag = {.msg_id = 9};
	uint32_t piece = 80;

	say(PLX_WIRE_FIRST, &first, sizeof(first), big, piece);
	for (frag.offset = piece; frag.offset < BIG; frag.offset += piece)
		say(PLX_WIRE_FRAG, &frag, sizeof(frag), big + frag.offset,
			RTE_MIN(piece, (uint32_t)(BIG - frag.offset)));
	memset(big_in, 0, BIG);
	plx_worker_tag_recv(victim, big_in, BIG, 7, EXACT, recv);
	end_with(recv, 0);
	UNIT_EQ(recv->recv.info_len, BIG);
	UNIT_SAME(big_in, big, BIG);
}

static void
fragments_that_do_not_fit_are_counted(void)
{
	uint64_t *counter = &victim->stat.rx_drop_bad_frag;
	struct plx_wire_first first = {.tag = 7, .len = 150, .msg_id = 3};
	struct plx_wire_frag frag = {.offset = 50, .msg_id = 3};
	struct plx_req *recv = plx_req_get(&victim->reqs);
	const uint64_t absurd[] = {0, 49, (1ull << 30) + 1, UINT64_MAX, 1ull << 63};
	uint64_t before = *counter, all = counted();

	say(PLX_WIRE_FRAG, &frag, sizeof(frag), big, 50); /* without a first */
	DROPPED(*counter, before, all);
	for (unsigned i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		before = *counter;
		all = counted();
		first.len = absurd[i];
		say(PLX_WIRE_FIRST, &first, sizeof(first), big, 50);
		DROPPED(*counter, before, all);
	}
	first.len = 150;
	before = *counter;
	all = counted();
	say(PLX_WIRE_FIRST, &first, sizeof(first), NULL, 0); /* with nothing in it */
	DROPPED(*counter, before, all);
	say(PLX_WIRE_FIRST, &first, sizeof(first), big, 50); /* a good one at last */
	UNIT_EQ(*counter, before + 1);
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t offsets[] = {49, 51, 0, UINT64_MAX};

		before = *counter;
		all = counted();
		frag.offset = offsets[i];
		say(PLX_WIRE_FRAG, &frag, sizeof(frag), big, 50);
		DROPPED(*counter, before, all);
	}
	frag.offset = 50;
	say(PLX_WIRE_FRAG, &frag, sizeof(frag), big + 50, 50);
	frag.offset = 100;
	before = *counter;
	all = counted();
	say(PLX_WIRE_FRAG, &frag, sizeof(frag), big, 51); /* beyond the length */
	DROPPED(*counter, before, all);
	say(PLX_WIRE_FRAG, &frag, sizeof(frag), big + 100, 50);
	plx_worker_tag_recv(victim, big_in, BIG, 7, EXACT, recv);
	end_with(recv, 0);
	UNIT_EQ(recv->recv.info_len, 150);
	UNIT_SAME(big_in, big, 150);
	before = *counter;
	say(PLX_WIRE_FRAG, &frag, sizeof(frag), big, 1); /* and none after the last */
	UNIT_EQ(*counter, before + 1);
}

static void
senders_that_cannot_be_are_counted(void)
{
	uint64_t *counter = &queue_of(victim)->stat.rx_drop_bad_peer;
	struct shm_addr a[5];

	for (unsigned i = 0; i < 5; i++) {
		a[i] = bad.shm;
		a[i].uid = 0x1234567 + i;
	}
	a[0].host ^= 1ull << 63; /* of another machine */
	a[1].proc = 0;
	a[2].pad = 0x80000000;
	a[3].host += 1; /* of another network namespace, */
	a[3].proc += 1; /* where no socket is seen from here */
	a[4].pad = 64;
	for (unsigned i = 0; i < 5; i++) {
		uint64_t before = *counter, all = counted();
		uint32_t at = slot_stand(&a[i]);

		turns(5);
		DROPPED(*counter, before, all);
		shm_slot_at(seg(), at)->state = SHM_SLOT_FREE; /* it goes, in its way */
	}
}

static void
mail_that_makes_no_sense_is_counted(void)
{
	uint64_t *counter = &queue_of(victim)->stat.rx_drop_bad_cell;

	for (unsigned i = 0; i < 200; i++) {
		uint64_t pos = shm_queue(queue_of(victim))->mail_pos;
		struct shm_mail *m = &seg()->mail[pos % SHM_MAIL_CELLS];
		uint64_t before = *counter, all = counted();

		m->sender = bad.shm;
		m->sender.uid += i + 1; /* nobody it knows */
		m->op = PLX_WIRE_EAGER;
		m->len = 8;
		if (i % 3 == 0)
			m->len = i % 2 ? sizeof(m->body) + 1 : UINT32_MAX;
		else
			m->sender.host ^= 1ull << (32 + i % 32);
		seg()->mail_head = pos + 1;
		m->state = SHM_MAIL_STATE(bad.shm.proc, pos / SHM_MAIL_CELLS, SHM_MAIL_READY);
		turns(2);
		DROPPED(*counter, before, all);
	}
}

/* Cells that seem to be many laps ahead: each send went through all of them, for minutes. */
static unsigned
n_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 20000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each took a descriptor and memory, for as long as the process lives that it names. */
static void
mail_of_ever_new_senders_takes_so_much_and_no_more(void)
{
	const struct plx_queue_stat *stat = &queue_of(victim)->stat;
	struct shm_queue *sq = shm_queue(queue_of(victim));
	uint64_t dropped = stat->rx_drop_bad_cell;
	unsigned before = n_open();

	for (uint32_t i = 0; i < SHM_STRANGERS + 1000; i++) {
		uint64_t pos = sq->mail_pos;
		struct shm_mail *m = &seg()->mail[pos % SHM_MAIL_CELLS];

		m->sender = bad.shm;
		m->sender.uid ^= (uint64_t)(i + 1) << 8;
		m->op = PLX_WIRE_FLOW;
		m->len = 8;
		memset(m->body, 0, 8);
		m->state = SHM_MAIL_STATE(bad.shm.proc, (uint32_t)(pos / SHM_MAIL_CELLS), SHM_MAIL_READY);
		seg()->mail_head = pos + 1;
		plx_worker_turn(victim);
	}
	/* Those that were asked for and are not there make room again. */
	UNIT_TRUE(sq->n_strangers <= SHM_STRANGERS && sq->n_strangers > SHM_STRANGERS / 2);
	UNIT_TRUE(stat->rx_drop_bad_cell > dropped);
	UNIT_TRUE(n_open() - before <= SHM_ASKED);
	good_goes_on();
}

static void
a_mail_ring_that_lies_about_its_laps_holds_up_no_sender(void)
{
	struct plx_queue *a = NULL, *b = NULL;
	struct plx_conf no_slots = conf;
	struct plx_peer *to_b;
	struct plx_addr addr;
	uint64_t hdr = 1;
	struct plx_tx tx = {.hdr = &hdr, .hdr_len = 8, .op = 1};
	struct shm_seg *s;
	time_t start;

	UNIT_EQ_FATAL(plx_conf_set(&no_slots, "shm.fast_peers", "0", PLX_CONF_FROM_API, NULL), 0);
	UNIT_EQ_FATAL(plx_queue_open(victim->devs[0], &conf, NULL, &a), 0);
	UNIT_EQ_FATAL(plx_queue_open(victim->devs[0], &no_slots, NULL, &b), 0);
	plx_queue_addr(b, &addr);
	UNIT_EQ_FATAL(plx_peer_get(a, &addr, &to_b), 0);
	UNIT_EQ_FATAL(plx_peer_connect(to_b), 0);
	tx.peer = to_b;
	UNIT_EQ(plx_peer_tx(&tx), 0);
	s = shm_queue(b)->seg;
	for (unsigned i = 0; i < SHM_MAIL_CELLS; i++)
		s->mail[i].state = SHM_MAIL_STATE(0, 1u << 28, SHM_MAIL_FREE);
	start = time(NULL);
	for (unsigned i = 0; i < 100; i++)
		UNIT_EQ(plx_peer_tx(&tx), -EAGAIN);
	UNIT_TRUE(time(NULL) - start < 2);
	plx_peer_put(to_b);
	plx_queue_close(a);
	plx_queue_close(b);
}

static void
a_peer_that_lies_about_its_position_changes_nothing(void)
{
	struct plx_queue *a = NULL, *b = NULL;
	struct plx_peer *to_b;
	struct plx_addr addr;
	struct plx_rx rx[PLX_DEV_RX_BURST];
	struct shm_peer *p;
	uint64_t sent = 0, next = 0;
	uint8_t data[3000];

	UNIT_EQ_FATAL(plx_queue_open(victim->devs[0], &conf, NULL, &a), 0);
	UNIT_EQ_FATAL(plx_queue_open(victim->devs[0], &conf, NULL, &b), 0);
	plx_queue_addr(b, &addr);
	UNIT_EQ_FATAL(plx_peer_get(a, &addr, &to_b), 0);
	UNIT_EQ_FATAL(plx_peer_connect(to_b), 0);
	p = shm_peer(to_b);
	for (unsigned round = 0; round < 200; round++) {
		struct plx_tx tx = {.peer = to_b, .hdr = &sent, .hdr_len = 8, .data = data, .op = 1};
		uint64_t right = p->slot->rx_pos, data_tail, rx_seen;
		uint64_t lies[7];
		uint16_t n;

		do {
			unit_fill(data, sizeof(data), sent);
			tx.len = (uint32_t)(sent * 7919 % sizeof(data));
		} while (plx_peer_tx(&tx) == 0 && ++sent);
		data_tail = p->data_tail;
		rx_seen = p->rx_seen;
		lies[0] = p->tx_pos + 1;
		lies[1] = UINT64_MAX;
		lies[2] = 1ull << 63;
		lies[3] = rx_seen - 1;
		lies[4] = p->tx_pos + SHM_CELLS;
		lies[5] = p->tx_pos + (1ull << 32);
		lies[6] = rx_seen - SHM_CELLS;
		for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
			p->slot->rx_pos = lies[i];
			UNIT_EQ(plx_peer_tx(&tx), -EAGAIN);
			UNIT_EQ(p->data_tail, data_tail);
			UNIT_EQ(p->rx_seen, rx_seen);
		}
		p->slot->rx_pos = right;
		n = b->rx_burst(b, rx, PLX_DEV_RX_BURST);
		for (uint16_t k = 0; k < n; k++, next++) {
			UNIT_EQ_FATAL(rx[k].len, 8 + next * 7919 % sizeof(data));
			CU_ASSERT_FATAL(unit_is_filled(rx[k].data + 8, rx[k].len - 8, next));
		}
		b->rx_release(b, rx, n);
	}
	UNIT_TRUE(next > 1000);
	plx_queue_close(a);
	plx_queue_close(b);
}

static void
a_worker_address_altered_in_any_bit_is_refused(void)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX], altered[PLX_WIRE_ADDR_MAX] = {0};
	struct plx_ep_user user = {.ep = NULL};
	int len = plx_worker_addr(good, addr, sizeof(addr));

	CU_ASSERT_FATAL(len > 0);
	memset(addr + len, 0, sizeof(addr) - (size_t)len);
	for (int bit = 0; bit < len * 8; bit++) {
		memcpy(altered, addr, sizeof(addr));
		altered[bit / 8] ^= 1 << bit % 8;
		if (!UNIT_EQ(plx_worker_ep_get(victim, altered, &user), -EINVAL))
			printf("bit %d\n", bit);
	}
	for (int cut = 0; cut < len; cut++) {
		memcpy(altered, addr, sizeof(addr));
		memset(altered + cut, 0, (size_t)(len - cut));
		if (memcmp(altered, addr, (size_t)len) != 0)
			UNIT_EQ(plx_worker_ep_get(victim, altered, &user), -EINVAL);
	}
	UNIT_EQ(plx_worker_ep_get(victim, NULL, &user), -EFAULT);
	UNIT_EQ(plx_worker_ep_get(victim, (void *)16, &user), -EFAULT);
	UNIT_EQ_FATAL(plx_worker_ep_get(victim, addr, &user), 0);
	CU_ASSERT_PTR_EQUAL(user.ep, to_good.ep);
	plx_worker_ep_put(victim, &user);
}

static void
a_sender_with_anothers_uid_is_not_taken_for_it(void)
{
	struct plx_queue *a = NULL;
	struct plx_addr addr;
	struct shm_addr forged;
	struct plx_peer *peer = NULL;

	/* A queue the victim has not met; somebody sends in its name from elsewhere. */
	UNIT_EQ_FATAL(plx_queue_open(victim->devs[0], &conf, NULL, &a), 0);
	plx_queue_addr(a, &addr);
	memcpy(&forged, addr.bytes, sizeof(forged));
	forged.pid = bad.shm.pid;
	forged.proc = bad.shm.proc;
	slot_stand(&forged);
	turns(5);
	/* The real one is reached all the same. */
	UNIT_EQ_FATAL(plx_peer_get(queue_of(victim), &addr, &peer), 0);
	UNIT_EQ(plx_peer_connect(peer), 0);
	plx_peer_put(peer);
	plx_queue_close(a);
}

/* -- in a process of its own -- */

/* A sender says that it is we ourselves. */
static void
a_bad_address_of_our_own_fails_the_receive(void)
{
	struct shm_addr own;
	struct plx_addr addr;
	struct plx_wire_rts rts = {.tag = 6, .len = BIG, .addr = 64, .sreq = {9, 9}};
	struct plx_req *recv = plx_req_get(&victim->reqs);

	plx_queue_addr(queue_of(victim), &addr);
	memcpy(&own, addr.bytes, sizeof(own));
	bad.slot_i = slot_stand(&own);
	bad.slot = shm_slot_at(seg(), bad.slot_i);
	plx_worker_tag_recv(victim, big_in, BIG, 6, EXACT, recv);
	SAY(PLX_WIRE_RTS, rts);
	turns(1000);
	UNIT_TRUE(plx_req_is_done(recv));
	UNIT_TRUE(recv->status < 0);
	good_goes_on();
}

/* From now on the kernel copies nothing between processes for us, as in a sandbox. */
static int
refuse_copies(void)
{
	static const int calls[] = {SYS_process_vm_readv, SYS_process_vm_writev};

	return unit_refuse(calls, RTE_DIM(calls), EPERM);
}

/* A sender asks for more answers than its window has, and takes none of them. */
static void
who_asks_beyond_its_window_is_given_up(void)
{
	struct plx_wire_get get = {.len = 8};
	unsigned n = 0;

	kill(bad.pid, SIGSTOP);
	while (n < 100 * PLX_RMA_WINDOW && bad.user.ep->err == 0) {
		get.id.index = n++;
		SAY(PLX_WIRE_GET, get);
	}
	UNIT_TRUE(n > PLX_RMA_WINDOW);
	UNIT_EQ(bad.user.ep->err, -EPROTO);
	UNIT_EQ(victim->rma.stat.drop_replies, 1);
	good_goes_on();
}

/* Run a scene in a new process of this program, as it would spoil this one for the others. */
static void
alone(const char *scene, const char *how)
{
	pid_t pid;
	int st = -1;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "shm_corrupt_test", scene, how, NULL);
		_exit(98);
	}
	CU_ASSERT_FATAL(pid > 0 && waitpid(pid, &st, 0) == pid);
	if (WIFSIGNALED(st))
		printf("died of %s\n", strsignal(WTERMSIG(st)));
	UNIT_TRUE(WIFEXITED(st));
	if (WEXITSTATUS(st) == 98)
		printf("\n# skipped: this program can not be started by itself: an emulator runs it\n");
	else
		UNIT_EQ(WEXITSTATUS(st), 0);
}

static void
a_sender_that_claims_to_be_us_does_not_crash_us(void)
{
	alone("claims_to_be_us", NULL);
	alone("claims_to_be_us", "refused"); /* nor where the kernel copies nothing for us */
}

static void
a_sender_that_takes_no_answers_costs_so_much_and_no_more(void)
{
	alone("takes_no_answers", NULL);
}

/* -- at random -- */

static uint64_t rng_state;

static uint64_t
rnd(uint64_t n)
{
	return unit_rng(&rng_state) % n;
}

/* Values that are nearly right, or extreme. */
static uint64_t
rnd_value(void)
{
	switch (rnd(6)) {
	case 0:
		return unit_rng(&rng_state);
	case 1:
		return rnd(4);
	case 2:
		return UINT64_MAX - rnd(3);
	case 3:
		return 1ull << rnd(64);
	case 4:
		return rnd(70);
	default:
		return rnd(BIG + 2);
	}
}

static void
fuzz_body(uint8_t *body, uint8_t *op)
{
	if (rnd(4) == 0) {
		for (unsigned i = 0; i < SHM_CELL_BODY; i += 8) {
			uint64_t v = unit_rng(&rng_state);

			memcpy(body + i, &v, 8);
		}
		*op = (uint8_t)rnd(256);
		return;
	}
	*op = (uint8_t)rnd(PLX_WIRE_N + 1);
	for (unsigned i = 0; i < SHM_CELL_BODY; i += 8) {
		uint64_t v = rnd_value();

		if (rnd(3) == 0) { /* an id in use, or that was */
			struct plx_wire_id id = {(uint32_t)rnd(12), (uint32_t)rnd(40)};

			if (rnd(4) != 0)
				id.gen = victim->rndv.ids.v[id.index].gen;
			memcpy(&v, &id, 8);
		}
		memcpy(body + i, &v, 8);
	}
	if (*op == PLX_WIRE_RTS || *op == PLX_WIRE_FIRST) {
		uint64_t len = rnd(BIG), said; /* so that some go on */

		/* What it says is believed up to 1 GiB; of so much one test is enough. */
		memcpy(&said, body + 8, 8);
		if (rnd(2) == 0 || (said > BIG && said <= UINT64_C(1) << 30))
			memcpy(body + 8, &len, 8);
		if (rnd(2) == 0)
			memset(body + 16, 0, 8); /* message 0; or data by messages */
	}
}

static void
fuzz_cell(void)
{
	union shm_cell_head head = {.seq = shm_seq(bad.pos), .kind = SHM_CELL_INLINE};
	uint8_t body[SHM_CELL_BODY];

	fuzz_body(body, &head.op);
	head.len = (uint16_t)rnd(SHM_CELL_BODY + 1);
	switch (rnd(16)) {
	case 0:
		head.word = unit_rng(&rng_state);
		head.seq = shm_seq(bad.pos);
		break;
	case 1:
		head.word = unit_rng(&rng_state); /* wherever that is */
		break;
	case 2:
		head.kind = (uint8_t)rnd(5);
		break;
	case 3:
	case 4: {
		const struct shm_rx_slot *r = &shm_queue(queue_of(victim))->rx[bad.slot_i];
		const union shm_ref ref = {{(uint32_t)rnd(r->data_len + 2000),
			(uint32_t)rnd(SHM_MSG_MAX + 100)}};

		head.kind = SHM_CELL_DATA;
		memcpy((uint8_t *)(uintptr_t)r->data + rnd(r->data_len - sizeof(body)), body,
			sizeof(body));
		memcpy(body, &ref, sizeof(ref));
		break;
	}
	default:
		break;
	}
	cell_put(head, body, sizeof(body));
}

#define OPEN_MAX  4096 /* receives that wait */
#define OPEN_MANY 64   /* for so many their sender takes back what it began */

static struct {
	struct plx_req *req[OPEN_MAX];
	uint8_t *buf[OPEN_MAX];
	unsigned n;
} open_recvs;

/* Give back what is done; the bytes around each buffer are ASan's. */
static void
reap(void)
{
	for (unsigned i = 0; i < open_recvs.n;) {
		if (!plx_req_is_done(open_recvs.req[i])) {
			i++;
			continue;
		}
		plx_req_put(open_recvs.req[i]);
		free(open_recvs.buf[i]);
		open_recvs.n--;
		open_recvs.req[i] = open_recvs.req[open_recvs.n];
		open_recvs.buf[i] = open_recvs.buf[open_recvs.n];
	}
}

static void
recv_open(struct plx_msg *msg)
{
	uint64_t len = rnd(4) == 0 ? rnd(BIG) : rnd(300);
	unsigned i = open_recvs.n++;

	open_recvs.buf[i] = malloc(len + 1);
	open_recvs.req[i] = plx_req_get(&victim->reqs);
	CU_ASSERT_FATAL(open_recvs.buf[i] != NULL && open_recvs.req[i] != NULL);
	if (msg != NULL)
		plx_worker_msg_recv(victim, msg, open_recvs.buf[i], len, open_recvs.req[i]);
	else
		plx_worker_tag_recv(victim, open_recvs.buf[i], len, 0, rnd(2) ? 0 : 1ull << 63,
			open_recvs.req[i]);
}

/* What was begun and cannot end: the rest of a message, data that was asked for. */
static void
take_back(void)
{
	static struct plx_wire_cancel h[2 * OPEN_MAX];
	const struct plx_msg *m;
	unsigned n = 0;

	LIST_FOREACH(m, &plx_worker_ep(bad.user.ep)->partial, partial)
		if (n < OPEN_MAX)
			h[n++] = (struct plx_wire_cancel){.msg_id = m->msg_id};
	for (unsigned i = 0; i < open_recvs.n; i++)
		if (!open_recvs.req[i]->posted && !plx_req_is_done(open_recvs.req[i]))
			h[n++] = (struct plx_wire_cancel){.rreq = plx_rndv_rx(open_recvs.req[i])->id};
	for (unsigned i = 0; i < n; i++)
		SAY(PLX_WIRE_CANCEL, h[i]);
	reap();
}

/* Wait until the bad process has taken its answers: if it gets no core for long, it is given up. */
static void
answers_go(void)
{
	for (unsigned i = 0; i < 100000 && plx_ep_has_any(bad.user.ep); i++) {
		usleep(100);
		turns(1);
	}
	UNIT_TRUE(!plx_ep_has_any(bad.user.ep));
}

/* Take messages out, so that what is kept stays bounded; post a few receives for any tag. */
static void
consume(void)
{
	struct plx_probe probe;

	reap();
	while (open_recvs.n < OPEN_MAX - 8) {
		plx_worker_tag_probe(victim, 0, 0, true, &probe);
		if (probe.msg == NULL)
			break;
		recv_open(probe.msg);
		reap();
	}
	if (open_recvs.n < 8)
		recv_open(NULL);
	if (open_recvs.n >= OPEN_MANY && open_recvs.n % OPEN_MANY < 8)
		take_back();
}

static void
random_cells_harm_nobody(void)
{
	struct plx_req *sends[8] = {NULL};
	uint64_t all = counted();

	rng_state = unit_seed(20260);
	for (unsigned i = 0; i < FUZZ_CELLS; i++) {
		fuzz_cell();
		if (i % 8 == 7) {
			turns(1);
			consume();
		}
		if (i % 500 == 0) { /* cancelled first: an any-tag receive would take it */
			for (unsigned k = 0; k < open_recvs.n; k++)
				plx_worker_cancel(victim, open_recvs.req[k]);
			good_goes_on();
		}
		if (i % 64 == 0) { /* sends that its answers may name */
			struct plx_req **s = &sends[i / 64 % 8];

			answers_go();
			if (*s != NULL && plx_req_is_done(*s)) {
				plx_req_put(*s);
				*s = NULL;
			}
			if (*s == NULL)
				*s = big_send(&bad.user, big, rnd(2) ? BIG : 40000, 99);
		}
	}
	UNIT_TRUE(counted() > all + FUZZ_CELLS / 20);
	printf("bad cell %llu op %llu frag %llu id %llu range %llu memory %llu ",
		(unsigned long long)queue_of(victim)->stat.rx_drop_bad_cell,
		(unsigned long long)victim->stat.rx_drop_bad_op,
		(unsigned long long)victim->stat.rx_drop_bad_frag,
		(unsigned long long)victim->rndv.stat.drop_bad_id,
		(unsigned long long)victim->rndv.stat.drop_bad_range,
		(unsigned long long)victim->stat.rx_drop_no_memory);
	take_back();
	plx_worker_ep_cancel(victim, &bad.user);
	for (unsigned i = 0; i < 8; i++)
		if (sends[i] != NULL)
			end_with(sends[i], sends[i]->status);
	for (unsigned i = 0; i < open_recvs.n; i++)
		plx_worker_cancel(victim, open_recvs.req[i]);
	turns(10);
	reap();
	good_goes_on();
}

static void
when_it_is_killed_all_that_waits_for_it_ends(void)
{
	struct plx_req *send = big_send(&bad.user, big, BIG, 5);
	struct plx_wire_first first = {.tag = 8, .len = 1000, .msg_id = 0x7777};
	struct plx_req *recv = plx_req_get(&victim->reqs);
	struct plx_probe probe;

	do { /* of what the random cells have left */
		turns(20);
		consume();
		plx_worker_tag_probe(victim, 0, 0, false, &probe);
	} while (probe.msg != NULL);
	for (unsigned i = 0; i < open_recvs.n; i++)
		plx_worker_cancel(victim, open_recvs.req[i]);
	plx_worker_tag_recv(victim, big_in, BIG, 8, EXACT, recv);
	say(PLX_WIRE_FIRST, &first, sizeof(first), big, 50);
	UNIT_TRUE(!recv->posted && !plx_req_is_done(recv));
	kill(bad.pid, SIGKILL);
	waitpid(bad.pid, NULL, 0);
	/* Some looks: each reports a few, and under other names it has been here often. */
	for (unsigned i = 0; i < 100 && !(plx_req_is_done(recv) && plx_req_is_done(send)); i++) {
		turns(20);
		unit_check_peers(victim);
	}
	turns(20);
	end_with(recv, -ECONNRESET);
	end_with(send, -ECONNRESET);
	turns(10);
	reap();
	UNIT_EQ(open_recvs.n, 0);
	UNIT_EQ(bad.user.ep->err, -ECONNRESET);
	UNIT_EQ(victim->rndv.cursors, 0);
	plx_worker_ep_put(victim, &bad.user);
	good_goes_on();
	UNIT_EQ(victim->reqs.pool.n_free, victim->reqs.pool.n_objs);
	UNIT_EQ(victim->eps.ctl.n_free, victim->eps.ctl.n_objs);
	UNIT_EQ(victim->msgs.msg.n_free, victim->msgs.msg.n_objs);
	UNIT_EQ(victim->msgs.bytes, 0);
}

/* -- start -- */

static int
ep_to(struct plx_worker *from, const struct plx_worker *to, struct plx_ep_user *user)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];

	return plx_worker_addr(to, addr, sizeof(addr)) > 0 ? plx_worker_ep_get(from, addr, user) : -1;
}

static int
ep_to_bad(void)
{
	struct plx_wire_addr a = {.uid = 1, .n_devs = 1};
	uint8_t packed[PLX_WIRE_ADDR_MAX];

	memcpy(a.devs[0].name, "shm", 4);
	a.devs[0].len = bad.addr.len;
	memcpy(a.devs[0].bytes, bad.addr.bytes, bad.addr.len);
	if (plx_wire_addr_pack(&a, packed, sizeof(packed)) < 0)
		return -1;
	return plx_worker_ep_get(victim, packed, &bad.user);
}

static int
start(void)
{
	struct plx_worker_params params = {.conf = &conf, .name = "victim"};
	int rc = unit_start();

	conf = *plx_conf_process();
	/* The peers are looked after when a test says so. */
	plx_conf_set(&conf, "worker.peer_check_ms", "60000", PLX_CONF_FROM_RPC, NULL);
	if (rc != 0)
		return rc;
	if (plx_worker_create(&params, &victim) != 0)
		return 1;
	params.name = "good";
	if (plx_worker_create(&params, &good) != 0)
		return 1;
	if (ep_to(victim, good, &to_good) != 0 || ep_to(good, victim, &to_victim) != 0)
		return 1;
	unit_fill(big, sizeof(big), 3);
	return 0;
}

static CU_TestInfo tests[] = {
	UNIT_TEST(cells_that_make_no_sense_are_counted_and_passed_over),
	UNIT_TEST(a_ring_full_of_bad_cells_does_not_stop_it),
	UNIT_TEST(unknown_opcodes_are_counted),
	UNIT_TEST(headers_that_are_too_short_are_counted),
	UNIT_TEST(answers_to_nothing_we_asked_are_counted),
	UNIT_TEST(answers_to_what_another_was_asked_are_counted),
	UNIT_TEST(answers_of_the_wrong_kind_are_counted),
	UNIT_TEST(help_outside_its_bounds_is_counted),
	UNIT_TEST(help_with_bad_pieces_is_counted),
	UNIT_TEST(lists_that_were_not_asked_for_are_counted),
	UNIT_TEST(a_bad_list_is_not_read),
	UNIT_TEST(a_bad_list_is_not_announced),
	UNIT_TEST(pulls_outside_the_message_are_counted),
	UNIT_TEST(data_that_was_not_asked_for_is_counted),
	UNIT_TEST(reads_of_memory_that_is_not_there_fail_the_receive),
	UNIT_TEST(fragments_that_do_not_fit_are_counted),
	UNIT_TEST(memory_is_taken_as_a_message_arrives),
	UNIT_TEST(a_sender_that_does_not_look_at_what_comes_sends_so_much_and_no_more),
	UNIT_TEST(messages_in_pieces_that_are_begun_and_never_end_are_counted),
	UNIT_TEST(long_message_in_pieces_is_kept_whole),
	UNIT_TEST(senders_that_cannot_be_are_counted),
	UNIT_TEST(mail_that_makes_no_sense_is_counted),
	UNIT_TEST(a_mail_ring_that_lies_about_its_laps_holds_up_no_sender),
	UNIT_TEST(a_peer_that_lies_about_its_position_changes_nothing),
	UNIT_TEST(a_worker_address_altered_in_any_bit_is_refused),
	UNIT_TEST(a_sender_with_anothers_uid_is_not_taken_for_it),
	UNIT_TEST(a_sender_that_claims_to_be_us_does_not_crash_us),
	UNIT_TEST(a_sender_that_takes_no_answers_costs_so_much_and_no_more),
	UNIT_TEST(random_cells_harm_nobody),
	UNIT_TEST(mail_of_ever_new_senders_takes_so_much_and_no_more),
	UNIT_TEST(when_it_is_killed_all_that_waits_for_it_ends),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo self_tests[] = {
	UNIT_TEST(a_bad_address_of_our_own_fails_the_receive),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo self_suites[] = {
	{"shm, bad input in our own name", NULL, NULL, NULL, NULL, self_tests},
	CU_SUITE_INFO_NULL,
};

static CU_TestInfo window_tests[] = {
	UNIT_TEST(who_asks_beyond_its_window_is_given_up),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo window_suites[] = {
	{"shm, answers that are not taken", NULL, NULL, NULL, NULL, window_tests},
	CU_SUITE_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"shm, bad input", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(int argc, char **argv)
{
	int rc;

	if (argc > 1 && strcmp(argv[1], "claims_to_be_us") == 0) {
		rc = argc > 2 ? refuse_copies() : 0;
		rc = rc != 0 ? rc : start();
		return rc != 0 ? rc : unit_run(self_suites);
	}
	if (bad_start() != 0)
		return EXIT_FAILURE;
	rc = start();
	if (rc == 0 && ep_to_bad() != 0)
		rc = EXIT_FAILURE;
	if (rc == 0) {
		bad.slot_i = slot_stand(&bad.shm);
		bad.slot = shm_slot_at(seg(), bad.slot_i);
		(void)plx_ep_connect(bad.user.ep);
		plx_peer_settle(bad.user.ep->peer); /* what is sent to it goes at once */
		turns(3);
		rc = unit_run(argc > 1 ? window_suites : suites);
		plx_worker_ep_put(victim, &to_good);
		plx_worker_ep_put(good, &to_victim);
		plx_worker_destroy(victim);
		plx_worker_destroy(good);
	}
	kill(bad.pid, SIGKILL);
	return rc;
}
