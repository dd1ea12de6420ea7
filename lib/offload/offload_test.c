/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * offload_test.c - which receives go to a device, and how they come back
 *
 * On the model device where events are to come late, on the fake device, which matches
 * as soft_tag.c does, where messages of every kind are to come. test/tag_explore_test.c
 * tries the orders of events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_offload.h"
#include "plx_unit_worker.h"

#define LEN 64

static struct unit_workers u;
static struct plx_offload *o;

/* For n workers; 0: the test makes one itself. */
static void
open_on(const char *devices, unsigned n)
{
	unit_workers_conf(&u);
	unit_workers_set(&u, "worker.devices", devices);
	unit_workers_set(&u, "tag.offload", "yes");
	unit_workers_set(&u, "tag.offload_list", "4");
	unit_workers_set(&u, "tag.offload_min", "16");
	unit_workers_open(&u, n);
	o = n != 0 ? &u.w[0]->offload : NULL;
}

static void
model_open(uint32_t list_n)
{
	model_reset(list_n);
	open_on("model", 1);
}

static struct plx_req *
get(void *buf, uint64_t len, uint64_t tag, uint64_t mask)
{
	return unit_recv(&u, 0, buf, len, tag, mask);
}

static bool
in_device(const struct plx_req *req)
{
	return req->offload >= OFFLOAD_RECVS;
}

/* It is cancelled, whoever has it. */
static void
take_back(struct plx_req *req)
{
	plx_worker_cancel(u.w[0], req);
	UNIT_END(&u, req, -ECANCELED);
}

/* The message with this id is in the buffer. */
static void
has(struct plx_req *req, const void *buf, uint32_t id)
{
	uint32_t got;

	UNIT_TRUE_FATAL(unit_finish(&u, req));
	UNIT_EQ(req->status, 0);
	UNIT_EQ(req->recv.info_len, MODEL_MSG_LEN);
	memcpy(&got, buf, sizeof(got));
	UNIT_EQ(got, id);
	plx_req_put(req);
}

/* -- what goes to a device -- */

static void
off_is_the_default_and_costs_no_list(void)
{
	struct plx_req *r;
	uint8_t buf[LEN];

	unit_workers_conf(&u);
	unit_workers_open(&u, 1);
	UNIT_TRUE(!u.w[0]->offload.on);
	CU_ASSERT_PTR_NULL(u.w[0]->offload.recvs);
	CU_ASSERT_PTR_NULL(unit_queue(&u, 0)->soft_tag);
	r = get(buf, LEN, 1, UNIT_EXACT);
	UNIT_EQ(r->offload, OFFLOAD_NONE);
	take_back(r);
	unit_workers_close(&u);
}

static void
short_receives_stay_in_software(void)
{
	uint8_t buf[LEN];
	struct plx_req *r;

	model_open(4);
	r = get(buf, 15, 1, UNIT_EXACT);
	UNIT_TRUE(!in_device(r));
	UNIT_EQ(o->stat.soft_short, 1);
	UNIT_EQ(o->stat.soft, 1);
	take_back(r);
	UNIT_EQ(o->stat.soft, 0);
	r = get(buf, 16, 1, UNIT_EXACT);
	UNIT_TRUE(in_device(r));
	UNIT_EQ(o->stat.posts, 1);
	take_back(r);
	UNIT_EQ(o->stat.posted, 0);
	UNIT_EQ(o->stat.posted_max, 1);
	u.w[0]->queues[0]->tag_caps.len_min = 32; /* the device's own bound */
	r = get(buf, 31, 1, UNIT_EXACT);
	UNIT_TRUE(!in_device(r));
	take_back(r);
	unit_workers_close(&u);
}

static int
dt_finish(struct plx_dt *dt, int status)
{
	(void)dt;
	return status;
}

static void
receives_in_pieces_stay_in_software(void)
{
	struct plx_dt dt = {.finish = dt_finish};
	struct plx_req *r;

	model_open(4);
	r = plx_req_get(&u.w[0]->reqs);
	UNIT_TRUE_FATAL(r != NULL);
	r->dt = &dt;
	plx_worker_tag_recv(u.w[0], NULL, LEN, 1, UNIT_EXACT, r);
	UNIT_TRUE(!in_device(r));
	UNIT_EQ(o->stat.soft_dt, 1);
	take_back(r);
	unit_workers_close(&u);
}

static void
none_goes_past_an_earlier_one_that_may_match_the_same(void)
{
	static const struct {
		uint64_t soft_tag, soft_mask, tag, mask;
		bool conflicts;
	} rows[] = {
		{7, UNIT_EXACT, 7, UNIT_EXACT, true},
		{7, UNIT_EXACT, 8, UNIT_EXACT, false},
		{7, UNIT_EXACT, 0, 0, true},
		{0, 0, 7, UNIT_EXACT, true},
		{0x70, 0xf0, 0x75, UNIT_EXACT, true},
		{0x70, 0xf0, 0x85, UNIT_EXACT, false},
		{0x70, 0xf0, 0x70, 0xf0, true},
		{0x70, 0xf0, 0x80, 0xf0, false},
		{0x70, 0xf0, 0x05, 0x0f, true}, /* 0x75 matches both */
		{0x70, 0xf0, 0x75, 0xff, true},
		{0x70, 0xf0, 0x85, 0xff, false},
	};
	uint8_t buf[2][LEN];

	model_open(4);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint64_t before = o->stat.soft_order;
		struct plx_req *soft = get(buf[0], 1, rows[i].soft_tag, rows[i].soft_mask);
		struct plx_req *r = get(buf[1], LEN, rows[i].tag, rows[i].mask);

		if (in_device(r) == rows[i].conflicts)
			printf("row %u\n", i);
		UNIT_EQ(in_device(r), !rows[i].conflicts);
		UNIT_EQ(o->stat.soft_order - before, rows[i].conflicts);
		take_back(soft);
		take_back(r);
		r = get(buf[1], LEN, rows[i].tag, rows[i].mask);
		UNIT_TRUE(in_device(r)); /* nothing is left of it */
		take_back(r);
	}
	unit_workers_close(&u);
}

static void
more_masks_than_are_counted_keep_all_in_software(void)
{
	enum { N = OFFLOAD_SOFT_MASKS + 2 };
	struct plx_req *soft[N], *r;
	uint8_t buf[LEN];

	model_open(4);
	for (unsigned i = 0; i < N; i++)
		soft[i] = get(buf, 1, 1, UINT64_C(1) << 32 | UINT64_C(3) << i);
	UNIT_EQ(o->soft.n_other, 2);
	r = get(buf, LEN, UINT64_MAX, UNIT_EXACT);
	UNIT_TRUE(!in_device(r));
	take_back(r);
	take_back(soft[0]); /* its place is free, but those that had none stay where they are */
	UNIT_EQ(o->soft.n_other, 2);
	take_back(soft[N - 1]);
	take_back(soft[N - 2]);
	UNIT_EQ(o->soft.n_other, 0);
	r = get(buf, LEN, UINT64_MAX, UNIT_EXACT);
	UNIT_TRUE(in_device(r));
	take_back(r);
	for (unsigned i = 1; i < N - 2; i++)
		take_back(soft[i]);
	UNIT_EQ(o->soft.n, 0);
	unit_workers_close(&u);
}

static void
a_full_list_leaves_the_rest_to_software(void)
{
	struct plx_req *r[3];
	uint32_t buf[3][16];

	model_open(2);
	for (unsigned i = 0; i < 3; i++)
		r[i] = get(buf[i], LEN, 1, UNIT_EXACT);
	UNIT_TRUE(in_device(r[0]) && in_device(r[1]) && !in_device(r[2]));
	UNIT_EQ(o->stat.soft_full, 1);
	for (unsigned i = 0; i < 3; i++)
		model_arrive(1, 100 + i, false);
	for (unsigned i = 0; i < 3; i++)
		has(r[i], buf[i], 100 + i);
	UNIT_EQ(o->stat.consumed, 2);
	UNIT_EQ(o->stat.inlined, 2);
	r[0] = get(buf[0], LEN, 1, UNIT_EXACT);
	UNIT_TRUE(in_device(r[0]));
	take_back(r[0]);
	unit_workers_close(&u);
}

static void
what_waited_for_room_moves_in_the_order_posted(void)
{
	struct plx_req *r[3];
	uint32_t buf[3][16];

	model_open(1);
	for (unsigned i = 0; i < 3; i++)
		r[i] = get(buf[i], LEN, i == 2 ? 2 : 1, UNIT_EXACT);
	UNIT_TRUE(in_device(r[0]) && !in_device(r[1]) && !in_device(r[2]));
	for (unsigned i = 0; i < 2; i++) {
		model_arrive(1, 100 + i, false);
		has(r[i], buf[i], 100 + i);
		UNIT_TRUE(in_device(r[i + 1]));
		UNIT_EQ(o->stat.moves, i + 1);
		UNIT_EQ(o->stat.soft, 1 - i);
	}
	UNIT_EQ(o->stat.consumed, 2);
	take_back(r[2]);
	unit_workers_close(&u);
}

static void
none_moves_past_an_earlier_one_that_may_match_the_same(void)
{
	struct plx_req *first, *brief, *same, *other;
	uint8_t buf[4][LEN];

	model_open(1);
	first = get(buf[0], LEN, 9, UNIT_EXACT);
	brief = get(buf[1], 1, 7, UNIT_EXACT);
	same = get(buf[2], LEN, 7, UNIT_EXACT);
	other = get(buf[3], LEN, 8, UNIT_EXACT);
	UNIT_TRUE(in_device(first) && !in_device(brief) && !in_device(same) && !in_device(other));
	take_back(first);
	UNIT_TRUE(!in_device(same) && in_device(other));
	take_back(other);
	unit_turns(&u, 1);
	UNIT_TRUE(!in_device(same));
	take_back(brief);
	unit_turns(&u, 1);
	UNIT_TRUE(in_device(same));
	take_back(same);
	unit_workers_close(&u);
}

static void
only_so_many_are_passed_over_in_search_of_one_that_moves(void)
{
	struct plx_req *first, *brief[PLX_OFFLOAD_LOOK], *last;
	uint8_t buf[LEN];

	model_open(1);
	first = get(buf, LEN, 99, UNIT_EXACT);
	for (unsigned i = 0; i < PLX_OFFLOAD_LOOK; i++)
		brief[i] = get(buf, 1, i, UNIT_EXACT);
	last = get(buf, LEN, 98, UNIT_EXACT);
	take_back(first);
	UNIT_TRUE(!in_device(last));
	take_back(brief[3]);
	unit_turns(&u, 1);
	UNIT_TRUE(in_device(last));
	take_back(last);
	for (unsigned i = 0; i < PLX_OFFLOAD_LOOK; i++)
		if (i != 3)
			take_back(brief[i]);
	unit_workers_close(&u);
}

static void
a_device_may_refuse_one_receive(void)
{
	static const int refusals[] = {-EAGAIN, -EOPNOTSUPP};
	struct plx_req *r;
	uint32_t buf[16];

	model_open(4);
	for (unsigned i = 0; i < RTE_DIM(refusals); i++) {
		model.post_err = refusals[i];
		r = get(buf, LEN, 1, UNIT_EXACT);
		UNIT_TRUE(!in_device(r));
		UNIT_EQ(o->stat.soft_refused, i + 1);
		model.post_err = 0;
		model_arrive(1, 5 + i, false);
		has(r, buf, 5 + i);
	}
	UNIT_TRUE(o->on);
	unit_workers_close(&u);
}

/* -- several devices -- */

#define FROM UINT64_C(0xff00) /* bits that tell the sender */

static void
with_several_devices_only_a_known_sender_is_posted(void)
{
	struct plx_worker_params params = {.conf = &u.conf, .sender_mask = FROM};
	uint32_t buf[16];
	struct plx_req *r;

	model_reset(4);
	open_on("fake,model", 0);
	UNIT_EQ_FATAL(plx_worker_create(&params, &u.w[0]), 0);
	u.n = 1;
	o = &u.w[0]->offload;
	r = get(buf, LEN, 0x101, UNIT_EXACT);
	UNIT_TRUE(!in_device(r)); /* who is 1? */
	UNIT_EQ(o->stat.soft_source, 1);
	model_arrive(0x101, 1, false);
	has(r, buf, 1);
	r = get(buf, LEN, 0x102, UNIT_EXACT);
	UNIT_TRUE(in_device(r)); /* it comes by the model */
	CU_ASSERT_PTR_EQUAL(model.list[0].r.ctx == NULL ? NULL : model.list[0].r.buf, buf);
	take_back(r);
	r = get(buf, LEN, 0x201, UNIT_EXACT);
	UNIT_TRUE(!in_device(r)); /* another sender */
	take_back(r);
	r = get(buf, LEN, 0x001, 0xff);
	UNIT_TRUE(!in_device(r)); /* any sender */
	take_back(r);
	plx_worker_destroy(u.w[0]);
}

static void
with_several_devices_and_no_sender_mask_none_is_posted(void)
{
	uint32_t buf[16];
	struct plx_req *r;

	model_reset(4);
	open_on("fake,model", 0);
	UNIT_EQ_FATAL(plx_worker_create(&(struct plx_worker_params){.conf = &u.conf}, &u.w[0]), 0);
	u.n = 1;
	o = &u.w[0]->offload;
	r = get(buf, LEN, 0x101, UNIT_EXACT);
	model_arrive(0x101, 1, false);
	has(r, buf, 1);
	r = get(buf, LEN, 0x101, UNIT_EXACT);
	UNIT_TRUE(!in_device(r));
	UNIT_EQ(o->stat.soft_source, 2);
	take_back(r);
	plx_worker_destroy(u.w[0]);
}

/* -- how they come back -- */

static void
the_count_is_told_now_and_then_in_any_case(void)
{
	struct plx_tag_msg *kept;
	uint32_t buf[16];

	model_open(4);
	for (uint32_t id = 0; id < PLX_OFFLOAD_TELL; id++) {
		UNIT_EQ_FATAL(o->stat.syncs, 0);
		model_arrive(id, id, false);
		unit_turns(&u, 1);
		kept = plx_tag_msg_first(u.w[0]->tag);
		has(get(buf, LEN, kept->tag, UNIT_EXACT), buf, id);
	}
	UNIT_EQ(o->stat.syncs, 1);
	UNIT_EQ(o->devs[0].told, PLX_OFFLOAD_TELL);
	unit_workers_close(&u);
}

static void
the_count_is_told_when_something_waits_for_it(void)
{
	struct plx_req *r, *other;
	uint32_t buf[16], kept[16];

	model_open(4);
	model_arrive(9, 1, false);
	r = get(buf, LEN, 1, UNIT_EXACT); /* software has not seen the 9 yet */
	UNIT_TRUE(!model.list[0].active);
	unit_turns(&u, 1);
	UNIT_TRUE(model.list[0].active);
	UNIT_EQ(o->stat.syncs, 1);
	take_back(r);
	model_arrive(9, 2, false);
	unit_turns(&u, 2); /* nothing waits: no command */
	UNIT_EQ(o->stat.syncs, 1);
	for (uint32_t id = 1; id <= 2; id++) {
		other = get(kept, LEN, 9, UNIT_EXACT);
		has(other, kept, id);
	}
	unit_workers_close(&u);
}

static void
what_software_matches_is_taken_from_the_device(void)
{
	struct plx_req *r;
	uint32_t buf[16];

	model_open(4);
	model_arrive(1, 1, false);
	r = get(buf, LEN, 1, UNIT_EXACT);
	UNIT_EQ(model.n_list, 1);
	has(r, buf, 1);
	UNIT_EQ(model.n_list, 0);
	UNIT_EQ(o->stat.withdrawn, 1);
	CU_ASSERT_PTR_NULL(model.wrong);
	unit_workers_close(&u);
}

static void
a_cancel_that_comes_too_late_changes_nothing(void)
{
	struct plx_req *r;
	uint32_t buf[16];

	model_open(4);
	r = get(buf, LEN, 1, UNIT_EXACT);
	model_arrive(1, 1, false);
	plx_worker_cancel(u.w[0], r);
	plx_worker_cancel(u.w[0], r); /* nor does another */
	UNIT_TRUE(!plx_req_is_done(r));
	has(r, buf, 1);
	UNIT_EQ(o->stat.cancels, 1);
	UNIT_EQ(o->stat.cancel_late, 1);
	unit_workers_close(&u);
}

static void
a_cancel_ends_when_the_device_says_so(void)
{
	struct plx_req *r;
	uint32_t buf[16];

	model_open(4);
	r = get(buf, LEN, 1, UNIT_EXACT);
	plx_worker_cancel(u.w[0], r);
	UNIT_TRUE(!plx_req_is_done(r));
	UNIT_EQ(unit_turns(&u, 1), 0);
	UNIT_TRUE(plx_req_is_done(r));
	UNIT_EQ(r->status, -ECANCELED);
	UNIT_EQ(o->stat.cancel_late, 0);
	plx_req_put(r);
	unit_workers_close(&u);
}

/* Given up: all comes back, last first, and is matched by software in the order posted. */
static void
a_device_given_up_gives_all_back(void)
{
	struct plx_req *r[4], *later;
	uint32_t buf[5][16];

	model_open(4);
	for (unsigned i = 0; i < 4; i++)
		r[i] = get(buf[i], LEN, i == 1 ? 0 : 1, i == 1 ? 0 : UNIT_EXACT);
	model_arrive(1, 100, false); /* meets the first */
	plx_worker_cancel(u.w[0], r[3]);
	plx_offload_demote(o, 0);
	plx_offload_demote(o, 0); /* it is */
	UNIT_TRUE(!o->on);
	UNIT_EQ(o->stat.demotions, 1);
	UNIT_EQ(model_event(0)->kind, MODEL_MET);
	UNIT_TRUE(model_event(1)->r.buf == buf[3] && model_event(2)->r.buf == buf[2] &&
		model_event(3)->r.buf == buf[1]);
	model_arrive(1, 101, false);
	model_arrive(1, 102, false);
	later = get(buf[4], LEN, 1, UNIT_EXACT);
	UNIT_EQ(later->offload, OFFLOAD_NONE);
	for (unsigned i = 0; i < 3; i++)
		has(r[i], buf[i], 100 + i);
	UNIT_END(&u, r[3], -ECANCELED);
	take_back(later);
	UNIT_EQ(o->stat.soft, 0);
	unit_workers_close(&u);
}

/* So many receives, whose messages are on the way already when they are posted, or are not. */
static void
post_many(unsigned n, bool late)
{
	uint32_t buf[16], kept[16];

	for (unsigned i = 0; i < n; i++) {
		struct plx_req *r;

		if (late)
			model_arrive(9, i, false); /* what the device waits for */
		r = get(buf, LEN, 1, UNIT_EXACT);
		model_arrive(1, 5000 + i, false);
		has(r, buf, 5000 + i);
		if (late)
			has(get(kept, LEN, 9, UNIT_EXACT), kept, i);
	}
}

static void
a_device_that_does_not_pay_is_given_up(void)
{
	model_open(4);
	post_many(PLX_OFFLOAD_TRIAL, false);
	UNIT_EQ(o->stat.withdrawn, 0);
	post_many(PLX_OFFLOAD_TRIAL / 2, false);
	post_many(PLX_OFFLOAD_TRIAL / 2, true);
	UNIT_EQ(o->stat.withdrawn, PLX_OFFLOAD_TRIAL / 2);
	UNIT_TRUE(o->on);
	post_many(PLX_OFFLOAD_TRIAL - 1, true);
	UNIT_TRUE(o->on);
	post_many(1, true);
	UNIT_TRUE(!o->on);
	UNIT_EQ(o->stat.demotions, 1);
	UNIT_EQ(o->stat.posts, 3 * PLX_OFFLOAD_TRIAL);
	post_many(8, false); /* by software */
	UNIT_EQ(o->stat.posts, 3 * PLX_OFFLOAD_TRIAL);
	unit_workers_close(&u);
}

static void
a_device_that_does_not_pay_is_kept_if_that_is_asked_for(void)
{
	model_reset(4);
	open_on("model", 0);
	unit_workers_set(&u, "tag.offload_withdrawn", "0");
	unit_workers_open(&u, 1);
	o = &u.w[0]->offload;
	post_many(2 * PLX_OFFLOAD_TRIAL, true);
	UNIT_EQ(o->stat.withdrawn, 2 * PLX_OFFLOAD_TRIAL);
	UNIT_TRUE(o->on);
	unit_workers_close(&u);
}

static void
a_device_that_fails_is_given_up_and_nothing_is_lost(void)
{
	struct plx_req *r[3], *gone;
	uint32_t buf[4][16];

	for (unsigned way = 0; way < 3; way++) {
		model_open(8);
		r[0] = get(buf[0], LEN, 1, UNIT_EXACT);
		gone = get(buf[3], LEN, 7, UNIT_EXACT);
		r[1] = get(buf[1], LEN, 1, UNIT_EXACT);
		model.post_err = -EIO;
		model.cancel_err = -EIO;
		if (way == 0) {
			r[2] = get(buf[2], LEN, 1, UNIT_EXACT);
			take_back(gone);
		} else if (way == 1) {
			take_back(gone); /* at once: the device has forgotten it */
			r[2] = get(buf[2], LEN, 1, UNIT_EXACT);
		} else {
			model_arrive(9, 9, false);
			unit_turns(&u, 1); /* the count cannot be told */
			UNIT_TRUE(!o->on);
			has(get(buf[2], LEN, 9, UNIT_EXACT), buf[2], 9);
			take_back(gone);
			r[2] = get(buf[2], LEN, 1, UNIT_EXACT);
		}
		UNIT_TRUE(!o->on);
		UNIT_EQ(o->stat.demotions, 1);
		UNIT_EQ(o->stat.posted, 0);
		model.n_list = 0;
		for (unsigned i = 0; i < 3; i++) {
			model_arrive(1, 100 + i, false);
			has(r[i], buf[i], 100 + i);
		}
		unit_workers_close(&u);
	}
}

/* -- messages of every kind, on the fake device -- */

static void
messages_of_every_kind_reach_a_receive_in_the_device(void)
{
	static const uint64_t lens[] = {16, 100, 500, 900, 5000, 200000};
	static uint8_t from[200000], to[200000];
	uint64_t consumed = 0;

	fake_reset(1);
	open_on("fake", 2);
	for (unsigned sync = 0; sync < 2; sync++) {
		for (unsigned i = 0; i < RTE_DIM(lens); i++) {
			struct plx_req *r = get(to, lens[i], i, UNIT_EXACT);

			UNIT_TRUE_FATAL(in_device(r));
			unit_fill(from, lens[i], i);
			memset(to, 0, sizeof(to));
			UNIT_END(&u, unit_send(&u, 1, 0, from, lens[i], i, sync), 0);
			UNIT_TRUE_FATAL(unit_finish(&u, r));
			UNIT_EQ(r->status, 0);
			UNIT_EQ(r->recv.info_tag, i);
			UNIT_EQ(r->recv.info_len, lens[i]);
			UNIT_TRUE(unit_is_filled(to, lens[i], i));
			plx_req_put(r);
			UNIT_EQ(o->stat.consumed, ++consumed);
		}
	}
	UNIT_TRUE(o->stat.placed != 0 && o->stat.inlined != 0 && o->stat.finished != 0);
	UNIT_EQ(o->stat.placed + o->stat.inlined + o->stat.finished, consumed);
	unit_workers_close(&u);
}

static void
a_message_longer_than_its_receive_is_told(void)
{
	static const uint64_t lens[] = {33, 900, 5000, 200000};
	static uint8_t from[200000];
	uint8_t to[32];

	fake_reset(1);
	open_on("fake", 2);
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		struct plx_req *r = get(to, sizeof(to), i, UNIT_EXACT);

		UNIT_END(&u, unit_send(&u, 1, 0, from, lens[i], i, false), 0);
		UNIT_TRUE_FATAL(unit_finish(&u, r));
		UNIT_EQ(r->status, -EMSGSIZE);
		UNIT_EQ(r->recv.info_tag, i);
		UNIT_EQ(r->recv.info_len, lens[i]);
		plx_req_put(r);
	}
	UNIT_EQ(o->stat.truncated, 2); /* the others are software's to tell */
	UNIT_EQ(o->stat.consumed, RTE_DIM(lens));
	unit_workers_close(&u);
}

static void
nonsense_that_meets_a_receive_ends_it(void)
{
	const struct plx_wire_first bad = {.tag = 3, .len = 0, .msg_id = 1};
	uint8_t to[LEN];
	struct plx_req *r;

	fake_reset(1);
	open_on("fake", 2);
	UNIT_END(&u, unit_send(&u, 1, 0, to, 16, 9, false), 0);
	UNIT_END(&u, get(to, LEN, 9, UNIT_EXACT), 0);
	r = get(to, LEN, 3, UNIT_EXACT);
	fake_inject(unit_queue(&u, 1), unit_queue(&u, 0), PLX_WIRE_FIRST, &bad, sizeof(bad));
	UNIT_END(&u, r, -EIO);
	UNIT_EQ(u.w[0]->stat.rx_drop_bad_frag, 1);
	unit_workers_close(&u);
}

static struct plx_req *posted_in_cb;
static uint8_t cb_buf[LEN];

static void
post_another(struct plx_req *req)
{
	(void)req;
	posted_in_cb = get(cb_buf, LEN, 2, UNIT_EXACT);
}

/* Both messages come in one burst; the receive for the second is posted between them. */
static void
a_callback_posts_while_its_message_is_in_the_burst(void)
{
	uint8_t one[LEN], two[LEN], buf[LEN];
	struct plx_req *r;

	fake_reset(1);
	open_on("fake", 2);
	unit_fill(one, LEN, 1);
	unit_fill(two, LEN, 2);
	UNIT_END(&u, unit_send(&u, 1, 0, one, LEN, 8, false), 0);
	UNIT_END(&u, get(buf, LEN, 8, UNIT_EXACT), 0);
	r = get(buf, LEN, 1, UNIT_EXACT);
	r->done = post_another;
	UNIT_TRUE(in_device(r));
	UNIT_END(&u, unit_send(&u, 1, 0, two, LEN, 2, false), 0);
	UNIT_END(&u, unit_send(&u, 1, 0, one, LEN, 1, false), 0);
	UNIT_END(&u, unit_send(&u, 1, 0, one, LEN, 2, false), 0);
	UNIT_TRUE_FATAL(unit_finish(&u, r));
	UNIT_TRUE(unit_is_filled(buf, LEN, 1));
	plx_req_put(r);
	UNIT_END(&u, posted_in_cb, 0);
	UNIT_TRUE(unit_is_filled(cb_buf, LEN, 2)); /* the earlier of the two */
	UNIT_END(&u, get(buf, LEN, 2, UNIT_EXACT), 0);
	UNIT_TRUE(unit_is_filled(buf, LEN, 1));
	UNIT_EQ(o->stat.withdrawn, 1);
	unit_workers_close(&u);
}

static void
a_worker_ends_with_receives_in_its_device(void)
{
	uint8_t buf[LEN];

	fake_reset(1);
	open_on("fake", 1);
	UNIT_TRUE(in_device(get(buf, LEN, 1, UNIT_EXACT)));
	plx_worker_ep_put(u.w[0], &u.to[0][0]);
	plx_worker_destroy(u.w[0]);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(off_is_the_default_and_costs_no_list),
	UNIT_TEST(short_receives_stay_in_software),
	UNIT_TEST(receives_in_pieces_stay_in_software),
	UNIT_TEST(none_goes_past_an_earlier_one_that_may_match_the_same),
	UNIT_TEST(more_masks_than_are_counted_keep_all_in_software),
	UNIT_TEST(a_full_list_leaves_the_rest_to_software),
	UNIT_TEST(what_waited_for_room_moves_in_the_order_posted),
	UNIT_TEST(none_moves_past_an_earlier_one_that_may_match_the_same),
	UNIT_TEST(only_so_many_are_passed_over_in_search_of_one_that_moves),
	UNIT_TEST(a_device_may_refuse_one_receive),
	UNIT_TEST(with_several_devices_only_a_known_sender_is_posted),
	UNIT_TEST(with_several_devices_and_no_sender_mask_none_is_posted),
	UNIT_TEST(the_count_is_told_now_and_then_in_any_case),
	UNIT_TEST(the_count_is_told_when_something_waits_for_it),
	UNIT_TEST(what_software_matches_is_taken_from_the_device),
	UNIT_TEST(a_cancel_that_comes_too_late_changes_nothing),
	UNIT_TEST(a_cancel_ends_when_the_device_says_so),
	UNIT_TEST(a_device_given_up_gives_all_back),
	UNIT_TEST(a_device_that_does_not_pay_is_given_up),
	UNIT_TEST(a_device_that_does_not_pay_is_kept_if_that_is_asked_for),
	UNIT_TEST(a_device_that_fails_is_given_up_and_nothing_is_lost),
	UNIT_TEST(messages_of_every_kind_reach_a_receive_in_the_device),
	UNIT_TEST(a_message_longer_than_its_receive_is_told),
	UNIT_TEST(nonsense_that_meets_a_receive_ends_it),
	UNIT_TEST(a_callback_posts_while_its_message_is_in_the_burst),
	UNIT_TEST(a_worker_ends_with_receives_in_its_device),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"tag offload", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	if (rc == 0 && plx_dev_register(&tag_model_ops) != 0)
		rc = EXIT_FAILURE;
	return rc != 0 ? rc : unit_run(suites);
}
