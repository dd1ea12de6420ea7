/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * keep_test.c - messages that stay in the device's buffers until the application has finished with them
 */
#include <errno.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_worker.h"
#include "worker_int.h"

#define LEN 900 /* in one message */
#define HDR 13

static struct unit_workers u;
static uint8_t from[LEN], to[LEN], hdr[HDR];
static const void *seen; /* data that the handler keeps, the last */
static unsigned n_seen;

static void
never_called(void)
{
}

static int
deliver(struct plx_am *am, const struct plx_am_handler *h, const struct plx_am_rx *rx)
{
	(void)am;
	UNIT_EQ(rx->len, LEN);
	UNIT_SAME(rx->data, from, LEN);
	UNIT_SAME(rx->hdr, hdr, rx->hdr_len);
	n_seen++;
	if (!h->persistent) {
		UNIT_TRUE(rx->msg == NULL);
		return 0;
	}
	UNIT_TRUE_FATAL(rx->msg != NULL);
	UNIT_TRUE(plx_am_msg_of(rx->data) == rx->msg);
	seen = rx->data;
	return -EINPROGRESS;
}

/* The device can do without so many buffers. */
static void
begin(uint32_t keep_max, bool persistent)
{
	const struct plx_am_handler h = {.cb = never_called, .persistent = persistent};

	fake_reset(5);
	fake.keep_min = 500;
	fake.keep_max = keep_max;
	fake.lies_well = true;
	unit_workers_conf(&u);
	unit_workers_open(&u, 2);
	unit_fill(from, LEN, 6);
	unit_fill(hdr, HDR, 7);
	u.w[1]->am.deliver = deliver;
	UNIT_EQ_FATAL(plx_am_set(&u.w[1]->am, 0, &h), 0);
	seen = NULL;
	n_seen = 0;
}

static void
am_send(uint16_t hdr_len)
{
	struct plx_ep_user *user = &u.to[0][1];
	const struct plx_wire_am w = {.hdr_len = hdr_len, .conn_id = plx_ep_wire_id(user)};
	struct plx_req *req = plx_req_get(&u.w[0]->reqs);

	UNIT_TRUE_FATAL(req != NULL);
	plx_worker_am_send(u.w[0], user, w, hdr, from, LEN, PLX_AM_EAGER, req);
	UNIT_END(&u, req, 0);
	unit_turns(&u, 5);
}

static const struct plx_am_stat *
stat(void)
{
	return &u.w[1]->am.stat;
}

static void
an_active_message_that_is_kept_is_not_copied(void)
{
	const uint16_t hdr_lens[] = {0, 5, 8, HDR};

	begin(1, true);
	for (unsigned i = 0; i < 4; i++) {
		am_send(hdr_lens[i]);
		UNIT_EQ_FATAL(n_seen, i + 1);
		UNIT_EQ(stat()->rx_in_place, i + 1);
		unit_turns(&u, 20);
		UNIT_SAME(seen, from, LEN);
		plx_am_take(plx_am_msg_of(seen), 0); /* there is one buffer: the next is kept only if it went back */
	}
	UNIT_EQ(fake.n_kept, 4);
	unit_workers_close(&u);
}

static void
where_the_device_has_no_buffer_left_it_is_copied(void)
{
	const void *first;

	begin(1, true);
	am_send(5);
	first = seen;
	am_send(5);
	UNIT_EQ(n_seen, 2);
	UNIT_EQ(stat()->rx_in_place, 1);
	UNIT_EQ(stat()->rx_kept, 2);
	UNIT_TRUE(seen != first);
	UNIT_SAME(first, from, LEN);
	UNIT_SAME(seen, from, LEN);
	plx_am_take(plx_am_msg_of(seen), 0);
	plx_am_take(plx_am_msg_of(first), 0);
	unit_workers_close(&u);
}

static void
a_handler_that_keeps_nothing_is_shown_it_as_ever(void)
{
	begin(4, false);
	am_send(HDR);
	UNIT_EQ(n_seen, 1);
	UNIT_EQ(stat()->rx_borrowed, 1);
	UNIT_EQ(fake.n_kept, 0);
	unit_workers_close(&u);
}

/* Data has to be aligned by more than it is. */
static void
what_lies_badly_is_copied(void)
{
	begin(4, true);
	u.w[1]->am.align = 4096;
	am_send(0);
	UNIT_EQ(n_seen, 1);
	UNIT_EQ((uintptr_t)seen % 4096, 0);
	UNIT_EQ(fake.n_kept, 0);
	plx_am_take(plx_am_msg_of(seen), 0);
	unit_workers_close(&u);
}

static void
what_is_kept_outlives_its_sender(void)
{
	begin(2, true);
	am_send(8);
	unit_kill(&u, 0);
	unit_turns(&u, 10);
	unit_check_peers(u.w[1]);
	unit_turns(&u, 10);
	UNIT_SAME(seen, from, LEN);
	plx_am_take(plx_am_msg_of(seen), 0);
	unit_workers_close(&u);
}

static void
an_unexpected_message_is_not_copied_until_it_is_received(void)
{
	struct plx_req *req;

	begin(1, false);
	for (unsigned i = 0; i < 3; i++) {
		UNIT_END(&u, unit_send(&u, 0, 1, from, LEN, 9, false), 0);
		unit_turns(&u, 5);
		UNIT_EQ(u.w[1]->stat.eager_in_place, i + 1);
		memset(to, 0, LEN);
		req = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
		UNIT_END(&u, req, 0);
		UNIT_SAME(to, from, LEN);
	}
	/* Short ones are copied, and one that nobody receives goes with the worker. */
	UNIT_END(&u, unit_send(&u, 0, 1, from, 100, 9, false), 0);
	unit_turns(&u, 5);
	UNIT_EQ(u.w[1]->stat.eager_in_place, 3);
	req = unit_recv(&u, 1, to, LEN, 9, UNIT_EXACT);
	UNIT_END(&u, req, 0);
	unit_workers_close(&u);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(an_active_message_that_is_kept_is_not_copied),
	UNIT_TEST(where_the_device_has_no_buffer_left_it_is_copied),
	UNIT_TEST(a_handler_that_keeps_nothing_is_shown_it_as_ever),
	UNIT_TEST(what_lies_badly_is_copied),
	UNIT_TEST(what_is_kept_outlives_its_sender),
	UNIT_TEST(an_unexpected_message_is_not_copied_until_it_is_received),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"keep", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
