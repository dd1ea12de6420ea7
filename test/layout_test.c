/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * layout_test.c - sizes and offsets of what is hot, on the wire, or shared
 *
 * A change here is a change of speed or of what older processes read: measure it, or
 * raise SHM_MAGIC, PLX_WIRE's version, before this file follows.
 */
#include <stdlib.h>
#include <string.h>

#include "plx_init.h"
#include "plx_unit.h"
#include "plx_unit_shm.h"
#include "plx_worker.h"

#define LINE_OF(type, field) (offsetof(type, field) / PLX_LINE)
#define AT(type, field, off) _Static_assert(offsetof(type, field) == (off), #type "." #field)
#define SIZE(type, n)	     _Static_assert(sizeof(type) == (n), #type)

/* A queue: what every turn reads stands in line 0, counters in line 1 and on. */
AT(struct plx_queue, tx_short, 0);
AT(struct plx_queue, tx, 8);
AT(struct plx_queue, rx_burst, 16);
AT(struct plx_queue, rx_release, 24);
AT(struct plx_queue, rma, 32);
AT(struct plx_queue, peer_shared, 40);
AT(struct plx_queue, priv, 48);
AT(struct plx_queue, owner, 56);
AT(struct plx_queue, stat, PLX_LINE);
_Static_assert(_Alignof(struct plx_queue) == PLX_LINE, "plx_queue begins a line");

/* A worker: the same; the application's side has lines of its own. */
AT(struct plx_worker, tag, 0);
AT(struct plx_worker, n_queues, 8);
AT(struct plx_worker, dedicated, 12);
AT(struct plx_worker, queues, 16);
_Static_assert(LINE_OF(struct plx_worker, queues[5]) == 0, "six queues stand in line 0");
_Static_assert(offsetof(struct plx_worker, empty_turns) % PLX_LINE == 0, "owner begins a line");
_Static_assert(LINE_OF(struct plx_worker, eps.due) > 0, "line 0 is read by both sides");
_Static_assert(offsetof(struct plx_worker, chans.overflow) < 3 * 2048, "each turn reads a page and a half");
_Static_assert(offsetof(struct plx_worker, reqs) % PLX_LINE == 0, "application's side, too");
_Static_assert(offsetof(struct plx_worker, wake) % PLX_LINE == 0, "both look there in each turn");

/* What crosses the driver waist. */
AT(struct plx_peer, q, 0);
AT(struct plx_peer, user, 8);
AT(struct plx_peer, uid, 16);
AT(struct plx_peer, mtu, 32);
AT(struct plx_peer, short_max, 36);
AT(struct plx_peer, tx_line, 64);
_Static_assert(LINE_OF(struct plx_peer, refs) == 0, "what is read of a peer stands in line 0");
SIZE(struct plx_rx, 24);
_Static_assert(sizeof(struct plx_tx) <= PLX_LINE, "a plx_tx is one line");

/* What a device is given: as in UCX. */
AT(uct_tag_context_t, tag_consumed_cb, 0);
AT(uct_tag_context_t, completed_cb, 8);
AT(uct_tag_context_t, rndv_cb, 16);
AT(uct_tag_context_t, priv, 24);
SIZE(uct_tag_context_t, 56);
SIZE(uct_tag_t, 8);
_Static_assert(UCT_TAG_PRIV_LEN == 32 && UCT_TAG_RECV_CB_INLINE_DATA == 1, "uct_tag.h");

/* A request: its size is in the ABI, its fate in line 0. */
_Static_assert(sizeof(struct plx_req) <= PLX_REQ_SIZE, "plx_req");
_Static_assert(PLX_REQ_SIZE == 272, "UCP requests of users lie behind it");
_Static_assert(offsetof(struct plx_req, len) + 8 <= PLX_LINE, "line 0 holds all but the kind");
AT(struct plx_req, posted, PLX_LINE); /* what the owner writes of a receive begins line 1 */
SIZE(struct plx_rndv_cursor, PLX_LINE);
SIZE(struct plx_rndv_shared, PLX_LINE);
SIZE(struct plx_wire_id, 8);

/* A ep: what a send reads stands in line 0. */
_Static_assert(LINE_OF(struct plx_ep, connected) == 0 && LINE_OF(struct plx_ep, err) == 0 &&
		       offsetof(struct plx_ep, pending) < PLX_LINE,
	"plx_ep");

/* The wire. */
SIZE(struct plx_wire_eager, 8);
SIZE(struct plx_wire_sync, 16);
SIZE(struct plx_wire_first, 24);
SIZE(struct plx_wire_frag, 16);
SIZE(struct plx_wire_rts, 40);
SIZE(struct plx_wire_ack, 16);
SIZE(struct plx_wire_help, 48);
SIZE(struct plx_wire_pull, 32);
SIZE(struct plx_wire_data, 16);
AT(struct plx_wire_sync, sreq, 8);
AT(struct plx_wire_first, len, 8);
AT(struct plx_wire_first, msg_id, 16);
AT(struct plx_wire_frag, msg_id, 8);
AT(struct plx_wire_rts, len, 8);
AT(struct plx_wire_rts, addr, 16);
AT(struct plx_wire_rts, sreq, 24);
AT(struct plx_wire_ack, err, 8);
AT(struct plx_wire_help, rreq, 8);
AT(struct plx_wire_help, addr, 16);
AT(struct plx_wire_help, len, 24);
AT(struct plx_wire_help, slot, 32);
AT(struct plx_wire_help, gen, 36);
AT(struct plx_wire_help, chunk, 40);
AT(struct plx_wire_pull, rreq, 8);
AT(struct plx_wire_pull, offset, 16);
AT(struct plx_wire_pull, len, 24);
AT(struct plx_wire_data, offset, 8);

/* The shared segment of shm. */
SIZE(struct shm_addr, 32);
AT(struct shm_addr, uid, 0);
AT(struct shm_addr, host, 8);
AT(struct shm_addr, proc, 16);
AT(struct shm_addr, pid, 24);
SIZE(union shm_cell_head, 8);
AT(union shm_cell_head, len, 4);
AT(union shm_cell_head, op, 6);
AT(union shm_cell_head, kind, 7);
SIZE(struct shm_cell, 128);
AT(struct shm_cell, body, 8);
SIZE(union shm_ref, 8);
AT(struct shm_slot, sender, 8);
AT(struct shm_slot, rx_pos, 64);
AT(struct shm_slot, cold, 128);
AT(struct shm_slot, cells, 192);
SIZE(struct shm_slot, 192 + 128 * 128);
SIZE(struct shm_mail, 1536);
AT(struct shm_mail, len, 8);
AT(struct shm_mail, op, 12);
AT(struct shm_mail, sender, 16);
AT(struct shm_mail, body, 48);
AT(struct shm_seg, len, 8);
AT(struct shm_seg, n_slots, 16);
AT(struct shm_seg, n_wide, 20);
AT(struct shm_seg, closed, 24);
AT(struct shm_seg, bells, 28);
AT(struct shm_seg, fences, 32);
AT(struct shm_seg, doorbell, 64);
AT(struct shm_seg, mail_head, 128);
AT(struct shm_seg, addr, 256);
AT(struct shm_seg, shared, 4096);
AT(struct shm_seg, mail, 24576);
_Static_assert(SHM_CELL_DATA_MAX == 112 && SHM_CELL_DATA_MAX + 8 == SHM_CELL_BODY, "messages in a cell");
_Static_assert(SHM_CELLS * 2 <= UINT32_MAX && (SHM_CELLS & (SHM_CELLS - 1)) == 0, "cells");
_Static_assert((SHM_MAIL_CELLS & (SHM_MAIL_CELLS - 1)) == 0, "mail cells");
_Static_assert(SHM_DATA_WIDE % SHM_LINE == 0 && SHM_DATA_LEN % SHM_LINE == 0, "data areas");
_Static_assert(SHM_DATA_LEN >= 2 * (SHM_GAP + SHM_MSG_ROOM), "a slot holds more than one long message");
/* The room of a quarter's short messages is published at its end: a long one and what it skips fit in beside them. */
_Static_assert((SHM_CELLS / 4 + 1) * (SHM_SHORT_ROOM + SHM_LINE) + 2 * (SHM_GAP + SHM_MSG_ROOM) <= SHM_DATA_LEN,
	"no message waits for room that has been read");
_Static_assert(sizeof(struct plx_wire_eager) + (16u << 10) <= SHM_MSG_MAX, "16 KiB are one message");
_Static_assert((PLX_RMA_BATCHES_SURE + 1) * (SHM_GAP + SHM_MSG_ROOM) <= SHM_DATA_LEN, "a slot has room for the answers");
_Static_assert(PLX_RMA_BATCH_HEAD + PLX_RMA_BATCH_LEN <= SHM_MSG_MAX, "a full batch is one message");
_Static_assert(SHM_SLOTS_OFF % 4096 == 0, "slots begin a page");
_Static_assert(SHM_SLOTS_MAX <= 64, "a bit each in the doorbell");
_Static_assert(PLX_SHARED_RNDV / PLX_LINE == 64, "a bit for each cursor");

/* The sender's side of a slot: the line it writes for every message. */
_Static_assert(offsetof(struct shm_peer, tx_behind) % PLX_LINE == 0 &&
		       LINE_OF(struct shm_peer, tx_behind) == LINE_OF(struct shm_peer, self),
	"all that a short send touches is one line");

static void
objects_begin_a_line(void)
{
	struct plx_worker_params params = {.conf = plx_conf_process()};
	struct plx_worker *w = NULL;
	struct plx_peer *peer = NULL;
	struct plx_req *req;
	struct plx_addr addr;

	UNIT_EQ_FATAL(plx_worker_create(&params, &w), 0);
	UNIT_EQ((uintptr_t)w % PLX_LINE, 0);
	UNIT_EQ((uintptr_t)w->queues[0] % PLX_LINE, 0);
	UNIT_EQ((uintptr_t)shm_queue(w->queues[0])->seg % 4096, 0);
	plx_queue_addr(w->queues[0], &addr);
	UNIT_EQ_FATAL(plx_peer_get(w->queues[0], &addr, &peer), 0);
	UNIT_EQ((uintptr_t)peer % PLX_LINE, 0);
	plx_peer_put(peer);
	req = plx_req_get(&w->reqs);
	CU_ASSERT_FATAL(req != NULL);
	UNIT_EQ((uintptr_t)req % PLX_LINE, 0);
	plx_req_put(req);
	plx_worker_destroy(w);
}

/* As another process may read it: by numbers, without these headers. */
static void
a_segment_reads_as_written_down(void)
{
	struct plx_worker_params params = {.conf = plx_conf_process()};
	struct plx_worker *w = NULL;
	const uint8_t *seg;
	struct plx_addr addr;
	uint64_t v;

	UNIT_EQ_FATAL(plx_worker_create(&params, &w), 0);
	seg = (const uint8_t *)shm_queue(w->queues[0])->seg;
	CU_ASSERT(memcmp(seg, "PLXSHMv", 7) == 0 && seg[7] >= '3'); /* and the version */
	plx_queue_addr(w->queues[0], &addr);
	UNIT_EQ(addr.len, 32);
	CU_ASSERT(memcmp(seg + 256, addr.bytes, 32) == 0);
	memcpy(&v, seg + 8, 8);
	UNIT_EQ(v, shm_queue(w->queues[0])->mem.len);
	memcpy(&v, seg + 16, 8);
	UNIT_EQ(v & UINT32_MAX, plx_conf_u64(plx_conf_process(), plx_conf_find("SHM_FAST_PEERS")));
	UNIT_EQ(v >> 32, plx_conf_u64(plx_conf_process(), plx_conf_find("SHM_WIDE_PEERS")));
	plx_worker_destroy(w);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(objects_begin_a_line),
	UNIT_TEST(a_segment_reads_as_written_down),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"layout", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
