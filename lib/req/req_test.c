/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * req_test.c - names that go stale, requests that complete once, messages that are kept
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_req.h"
#include "plx_req_id.h"
#include "plx_unit.h"

/* -- names -- */

static void
a_name_is_found_until_it_is_put(void)
{
	struct plx_req_ids ids = {0};
	struct plx_req a, b;
	struct plx_wire_id ida = {0}, idb = {0}, old;

	CU_ASSERT_PTR_NULL(plx_req_id_find(&ids, ((struct plx_wire_id){0, 0})));
	CU_ASSERT_PTR_NULL(plx_req_id_find(&ids, ((struct plx_wire_id){1, 1})));
	UNIT_EQ_FATAL(plx_req_id_get(&ids, &a, &ida), 0);
	UNIT_EQ_FATAL(plx_req_id_get(&ids, &b, &idb), 0);
	UNIT_TRUE(ida.index != 0 && idb.index != 0 && ida.index != idb.index);
	CU_ASSERT_PTR_EQUAL(plx_req_id_find(&ids, ida), &a);
	CU_ASSERT_PTR_EQUAL(plx_req_id_find(&ids, idb), &b);
	old = ida;
	plx_req_id_put(&ids, ida);
	CU_ASSERT_PTR_NULL(plx_req_id_find(&ids, old));
	for (unsigned i = 0; i < 1000; i++) {
		UNIT_EQ_FATAL(plx_req_id_get(&ids, &b, &ida), 0);
		CU_ASSERT_PTR_NULL(plx_req_id_find(&ids, old)); /* same place, another time */
		CU_ASSERT_PTR_EQUAL(plx_req_id_find(&ids, ida), &b);
		plx_req_id_put(&ids, ida);
	}
	plx_req_ids_close(&ids);
}

static void
names_grow_and_none_is_given_twice(void)
{
	enum { N = 5000 };
	static struct plx_wire_id id[N];
	static struct plx_req req[N];
	struct plx_req_ids ids = {0};

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N; i++) {
			UNIT_EQ_FATAL(plx_req_id_get(&ids, &req[i], &id[i]), 0);
			CU_ASSERT_FATAL(id[i].index != 0);
		}
		for (unsigned i = 0; i < N; i++)
			CU_ASSERT_FATAL(plx_req_id_find(&ids, id[i]) == &req[i]);
		for (unsigned i = round % 2; i < N; i += 2)
			plx_req_id_put(&ids, id[i]);
		for (unsigned i = 0; i < N; i++)
			CU_ASSERT_FATAL(plx_req_id_find(&ids, id[i]) ==
					(i % 2 == round % 2 ? NULL : &req[i]));
		for (unsigned i = 1 - round % 2; i < N; i += 2)
			plx_req_id_put(&ids, id[i]);
	}
	UNIT_TRUE(ids.n <= 2 * N);
	plx_req_ids_close(&ids);
}

static void
names_nobody_gave_are_not_found(void)
{
	struct plx_req_ids ids = {0};
	struct plx_wire_id id = {0};
	struct plx_req req;
	uint64_t state = unit_seed(3);

	UNIT_EQ_FATAL(plx_req_id_get(&ids, &req, &id), 0);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t v = unit_rng(&state);
		struct plx_wire_id any = {(uint32_t)(v % 200), (uint32_t)(v >> 32) % 4};

		if (i % 2 == 0)
			memcpy(&any, &v, sizeof(any));
		if (any.index != id.index || any.gen != id.gen)
			CU_ASSERT_FATAL(plx_req_id_find(&ids, any) == NULL);
	}
	plx_req_ids_close(&ids);
}

static void
the_number_of_names_is_bounded(void)
{
	struct plx_req_ids ids = {.n = PLX_REQ_IDS_MAX};
	struct plx_wire_id id = {0};
	struct plx_req req;

	UNIT_EQ(plx_req_id_get(&ids, &req, &id), -ENOMEM);
	UNIT_EQ(ids.n, PLX_REQ_IDS_MAX);
}

/* -- requests -- */

static struct plx_req_pool pool;
static unsigned n_init, n_cleanup, n_done;
static struct plx_req *last_done;

static void
user_init(void *user)
{
	memset(user, 0x5a, 40);
	n_init++;
}

static void
user_cleanup(void *user)
{
	CU_ASSERT(((uint8_t *)user)[39] == 0x5a);
	n_cleanup++;
}

static void
on_done(struct plx_req *req)
{
	CU_ASSERT(plx_req_is_done(req));
	last_done = req;
	n_done++;
}

static void
on_done_free(struct plx_req *req)
{
	on_done(req);
	plx_req_put(req);
}

static void
pool_begin(bool dedicated)
{
	UNIT_EQ_FATAL(plx_req_pool_open(&pool, 40, dedicated, user_init, user_cleanup), 0);
	n_init = n_cleanup = n_done = 0;
	last_done = NULL;
}

static struct plx_req *
req_new(void)
{
	struct plx_req *req = plx_req_get(&pool);

	if (req == NULL) /* no assertion: the compiler must see it too */
		abort();
	return req;
}

static void
pool_end(void)
{
	uint64_t n = pool.pool.n_objs;

	UNIT_EQ(pool.pool.n_free, n);
	plx_req_pool_close(&pool);
	UNIT_EQ(n_init, n);
	UNIT_EQ(n_cleanup, n);
}

static void
a_users_area_is_made_once_and_stands_behind_the_request(void)
{
	struct plx_req *req;

	pool_begin(false);
	req = req_new();
	CU_ASSERT_PTR_EQUAL(plx_req_of(plx_req_user(req)), req);
	UNIT_EQ((uintptr_t)plx_req_user(req) % 16, 0);
	UNIT_TRUE((char *)plx_req_user(req) >= (char *)req + sizeof(*req));
	CU_ASSERT(((uint8_t *)plx_req_user(req))[0] == 0x5a);
	plx_req_put(req);
	pool_end();
}

static void
a_request_completes_once_and_stays_until_it_is_given_back(void)
{
	struct plx_req *req;

	pool_begin(false);
	req = req_new();
	UNIT_TRUE(!plx_req_is_done(req));
	req->done = on_done;
	plx_req_complete(req, -EMSGSIZE);
	UNIT_EQ(n_done, 1);
	CU_ASSERT_PTR_EQUAL(last_done, req);
	UNIT_TRUE(plx_req_is_done(req));
	UNIT_EQ(req->status, -EMSGSIZE);
	UNIT_EQ(pool.pool.n_free, pool.pool.n_objs - 1);
	plx_req_put(req);
	pool_end();
}

static void
a_released_request_goes_back_when_it_is_done(void)
{
	struct plx_req *req;

	pool_begin(false);
	req = req_new();
	req->done = on_done;
	req->flags |= PLX_REQ_RELEASED;
	plx_req_complete(req, 0);
	UNIT_EQ(n_done, 1);
	UNIT_EQ(pool.pool.n_free, pool.pool.n_objs);
	req = req_new();
	UNIT_EQ(req->flags, 0); /* and comes as new */
	req->done = on_done_free; /* or its callback gives it back */
	plx_req_complete(req, 0);
	UNIT_EQ(n_done, 2);
	UNIT_EQ(pool.pool.n_free, pool.pool.n_objs);
	req = req_new();
	req->done = on_done; /* freed before it was done: no callback */
	req->flags |= PLX_REQ_RELEASED | PLX_REQ_NO_CB;
	plx_req_complete(req, 0);
	UNIT_EQ(n_done, 2);
	pool_end();
}

static void
a_users_own_request_never_enters_the_pool(void)
{
	static struct plx_req own;

	pool_begin(false);
	plx_req_init(&own, &pool, PLX_REQ_USER);
	own.done = on_done;
	own.flags |= PLX_REQ_RELEASED;
	plx_req_complete(&own, 0);
	UNIT_EQ(n_done, 1);
	UNIT_TRUE(plx_req_is_done(&own));
	UNIT_EQ(pool.pool.n_free, 0);
	pool_end();
}

struct test_dt {
	struct plx_dt dt;
	uint8_t bytes[64];
	unsigned finished;
};

static void
dt_unpack(struct plx_dt *dt, uint64_t offset, const void *from, uint64_t len)
{
	struct test_dt *t = (struct test_dt *)dt;

	CU_ASSERT_FATAL(offset + len <= sizeof(t->bytes));
	memcpy(t->bytes + offset, from, len);
}

static int
dt_finish(struct plx_dt *dt, int status)
{
	((struct test_dt *)dt)->finished++;
	return status == 0 ? -EFAULT : status;
}

static void
a_datatype_has_the_last_word_on_the_status(void)
{
	struct test_dt t = {.dt = {.unpack = dt_unpack, .finish = dt_finish}};
	struct plx_req *req;

	pool_begin(false);
	req = req_new();
	CU_ASSERT_PTR_NULL(req->dt);
	req->dt = &t.dt;
	req->len = sizeof(t.bytes);
	plx_req_copy_in(req, 60, "abcdefgh", 8);
	UNIT_SAME(t.bytes + 60, "abcd", 4);
	plx_req_complete(req, 0);
	UNIT_EQ(t.finished, 1);
	UNIT_EQ(req->status, -EFAULT);
	plx_req_put(req);
	pool_end();
}

static void
what_does_not_fit_is_not_written(void)
{
	uint8_t buf[32], from[64];
	struct plx_req req = {.buf = buf, .len = 20};

	unit_fill(from, sizeof(from), 1);
	for (uint64_t offset = 0; offset < 40; offset++) {
		for (uint64_t len = 0; len <= sizeof(from); len++) {
			uint64_t fits = offset >= 20 ? 0 : 20 - offset < len ? 20 - offset : len;

			memset(buf, 0xcc, sizeof(buf));
			plx_req_copy_in(&req, offset, from, len);
			for (uint64_t i = 0; i < sizeof(buf); i++)
				CU_ASSERT_FATAL(buf[i] == (i >= offset && i < offset + fits ?
							from[i - offset] : 0xcc));
		}
	}
	plx_req_copy_in(&req, UINT64_MAX, from, 64);
	UNIT_EQ(buf[0], 0xcc);
}

static unsigned next_of_order;
static bool order_is_kept;

static void
on_done_in_order(struct plx_req *req)
{
	order_is_kept = order_is_kept && req->len == next_of_order;
	next_of_order++;
	plx_req_put(req);
}

static void
completions_beyond_the_ring_wait_and_keep_their_order(void)
{
	enum { N = 20000 }; /* the ring holds 1,024 */
	unsigned sent = 0, polled = 0;

	pool_begin(true);
	next_of_order = 0;
	order_is_kept = true;
	while (polled < N) {
		unsigned share = sent == 0 ? 12000 : 500;

		for (unsigned i = 0; i < share && sent < N; i++, sent++) {
			struct plx_req *req = req_new();

			req->len = sent;
			req->done = on_done_in_order;
			plx_req_complete(req, 0); /* the owner, a reactor */
			UNIT_EQ_FATAL(plx_req_is_done(req), false); /* not before the poll */
		}
		UNIT_TRUE_FATAL(sent < N || next_of_order <= N);
		for (unsigned i = 0; i < 10; i++)
			polled += plx_req_pool_poll(&pool);
		plx_req_pool_flush(&pool);
	}
	UNIT_EQ(polled, N);
	UNIT_EQ(next_of_order, N);
	UNIT_TRUE(order_is_kept);
	UNIT_EQ(plx_req_pool_poll(&pool), 0);
	UNIT_TRUE(STAILQ_EMPTY(&pool.cq->overflow));
	pool_end();
}

static void
the_first_completion_after_a_pause_is_polled_alone(void)
{
	pool_begin(true);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 4; i++) {
			struct plx_req *req = req_new();

			req->done = plx_req_put;
			plx_req_complete(req, 0);
		}
		UNIT_EQ(plx_req_pool_poll(&pool), 1);
		UNIT_EQ(plx_req_pool_poll(&pool), 3);
		for (unsigned i = 0; i < PLX_CQ_PAUSE; i++) {
			UNIT_TRUE(!plx_cq_rested(pool.cq));
			UNIT_EQ(plx_req_pool_poll(&pool), 0);
		}
	}
	pool_end();
}

static void
a_short_message_travels_with_its_completion(void)
{
	uint8_t from[PLX_CQ_DATA + 1], buf[PLX_CQ_DATA + 1], none[PLX_CQ_DATA + 1];
	uint8_t line1[PLX_LINE];
	uint64_t tag, info_len;
	struct plx_req *req;

	pool_begin(true);
	memset(none, 0xcc, sizeof(none));
	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (uint64_t len = 0; len <= sizeof(from); len++) {
		bool fits = len < 30, carried = len <= PLX_CQ_DATA;
		uint64_t in = fits ? len : 30;

		memset(buf, 0xcc, sizeof(buf));
		req = req_new();
		req->buf = buf;
		req->len = 30;
		memcpy(line1, (char *)req + PLX_LINE, PLX_LINE);
		plx_req_complete_recv(&pool, req, 7 + len, from, len);
		UNIT_EQ(memcmp(buf, none, sizeof(buf)) == 0, carried || in == 0); /* not touched yet */
		UNIT_EQ(plx_req_is_done(req), false);
		UNIT_EQ_FATAL(plx_req_pool_poll(&pool), 1);
		UNIT_TRUE(plx_req_is_done(req));
		UNIT_EQ(req->status, fits || len == 30 ? 0 : -EMSGSIZE);
		/* neither side writes the line that is the other's */
		UNIT_EQ(memcmp(line1, (char *)req + PLX_LINE, PLX_LINE) == 0, carried);
		plx_req_info(req, &tag, &info_len);
		UNIT_EQ(tag, 7 + len);
		UNIT_EQ(info_len, len);
		UNIT_EQ(memcmp(buf, from, in), 0);
		UNIT_EQ(memcmp(buf + in, none, sizeof(buf) - in), 0);
		plx_req_put(req);
	}
	pool_end();
}

/* In a turn whose callback forks; a step of it that walks over lists holds what completes. */
static void
the_remainder_of_a_turn_in_a_child_finds_an_empty_ring(void)
{
	struct plx_cq *parents;
	struct plx_req *req;

	pool_begin(true);
	parents = pool.cq;
	req = req_new();
	plx_req_pool_lose(&pool);
	plx_req_pool_hold(&pool);
	req->done = on_done;
	plx_req_complete(req, -ECONNRESET);
	plx_req_pool_flush(&pool);
	UNIT_EQ(plx_req_pool_poll(&pool), 0);
	UNIT_EQ(n_done, 0);
	plx_req_put(req);
	pool.cq = parents;
	pool_end();
}

/* -- kept messages -- */

static void
kept_messages_hold_what_they_are_asked_to(void)
{
	const uint64_t lens[] = {0, 1, PLX_MSG_INLINE, PLX_MSG_INLINE + 1, 1024, 1025, 4096, 5000,
		8192, 8193, 16384, 16385, 32768, 40000, 65536};
	enum { N = sizeof(lens) / sizeof(lens[0]) };
	struct plx_msg_pools pools;
	struct plx_msg *m[N];
	uint64_t bytes = 0;

	plx_msg_pools_open(&pools);
	for (unsigned round = 0; round < 3; round++) {
		bytes = 0;
		for (unsigned i = 0; i < N; i++) {
			m[i] = plx_msg_get(&pools, lens[i]);
			CU_ASSERT_FATAL(m[i] != NULL);
			CU_ASSERT(!m[i]->is_partial && !m[i]->direct && !m[i]->taken);
			CU_ASSERT(m[i]->req == NULL && m[i]->ep == NULL && m[i]->got == 0);
			unit_fill(m[i]->data, lens[i], i);
			UNIT_TRUE(pools.bytes >= bytes + lens[i]); /* what it costs, at least that */
			bytes = pools.bytes;
		}
		for (unsigned i = 0; i < N; i++) {
			CU_ASSERT(unit_is_filled(m[i]->data, lens[i], i));
			plx_msg_put(&pools, m[i]);
		}
		UNIT_EQ(pools.bytes, 0);
	}
	UNIT_EQ(pools.msg.n_free, pools.msg.n_objs);
	for (unsigned i = 0; i < PLX_MSG_CLASSES; i++)
		UNIT_EQ(pools.data[i].n_free, pools.data[i].n_objs);
	plx_msg_pools_close(&pools);
}

static void
a_message_larger_than_every_class_is_kept_too(void)
{
	const uint64_t lens[] = {65537, 300000, 1 << 20, 8 << 20, 64 << 20};
	struct plx_msg_pools pools;

	plx_msg_pools_open(&pools);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct plx_msg *m = plx_msg_get(&pools, lens[i]);

		UNIT_EQ(m != NULL ? lens[i] : 0, lens[i]);
		if (m == NULL)
			continue;
		memset(m->data, 1, lens[i]);
		plx_msg_put(&pools, m);
	}
	/* One that was never put is given back with the pools. */
	CU_ASSERT_PTR_NOT_NULL(plx_msg_get(&pools, 100000));
	plx_msg_pools_close(&pools);
}

static CU_TestInfo id_tests[] = {
	UNIT_TEST(a_name_is_found_until_it_is_put),
	UNIT_TEST(names_grow_and_none_is_given_twice),
	UNIT_TEST(names_nobody_gave_are_not_found),
	UNIT_TEST(the_number_of_names_is_bounded),
	CU_TEST_INFO_NULL,
};

static CU_TestInfo req_tests[] = {
	UNIT_TEST(a_users_area_is_made_once_and_stands_behind_the_request),
	UNIT_TEST(a_request_completes_once_and_stays_until_it_is_given_back),
	UNIT_TEST(a_released_request_goes_back_when_it_is_done),
	UNIT_TEST(a_users_own_request_never_enters_the_pool),
	UNIT_TEST(a_datatype_has_the_last_word_on_the_status),
	UNIT_TEST(what_does_not_fit_is_not_written),
	UNIT_TEST(the_first_completion_after_a_pause_is_polled_alone),
	UNIT_TEST(completions_beyond_the_ring_wait_and_keep_their_order),
	UNIT_TEST(a_short_message_travels_with_its_completion),
	UNIT_TEST(the_remainder_of_a_turn_in_a_child_finds_an_empty_ring),
	CU_TEST_INFO_NULL,
};

static unsigned n_moves;

static void
moved(const struct plx_msg *m, uint8_t *to)
{
	memcpy(to, m->data, m->got);
	n_moves++;
}

/* Its bytes are copied seldom, and the next one takes no memory that has to be cleared. */
static void
a_message_in_pieces_moves_twice_to_4_mib(void)
{
	const uint64_t all = 4u << 20;
	struct plx_msg_pools pools;
	uint8_t *was = NULL;

	plx_msg_pools_open(&pools);
	for (unsigned k = 0; k < 3; k++) {
		struct plx_msg *m = plx_msg_get(&pools, PLX_MSG_ROOM);
		uint64_t room = 0;

		n_moves = 0;
		for (m->got = 0; m->got < all; m->got += 4096) {
			if (m->got + 4096 > plx_msg_room(m))
				UNIT_EQ_FATAL(plx_msg_grow(&pools, m, m->got + 4096, all, moved), 0);
			if (plx_msg_room(m) != room && room != 0 && was == NULL)
				UNIT_TRUE(plx_msg_room(m) <= PLX_MSG_GROW * room);
			room = plx_msg_room(m);
			unit_fill(m->data + m->got, 4096, m->got);
		}
		UNIT_TRUE(n_moves <= 2);
		for (uint64_t at = 0; at < all; at += 4096)
			UNIT_TRUE_FATAL(unit_is_filled(m->data + at, 4096, at));
		UNIT_TRUE(was == NULL || was == m->data);
		was = m->data;
		plx_msg_put(&pools, m);
		UNIT_EQ(pools.bytes, 0);
	}
	plx_msg_pools_close(&pools);
}

static void
no_more_is_kept_than_the_bound(void)
{
	struct plx_msg_pools pools;

	plx_msg_pools_open(&pools);
	plx_msg_put(&pools, plx_msg_get(&pools, PLX_MSG_SPARE_MAX + 1));
	UNIT_EQ(pools.spare_len, 0);
	plx_msg_put(&pools, plx_msg_get(&pools, PLX_MSG_SPARE_MAX));
	UNIT_EQ(pools.spare_len, PLX_MSG_SPARE_MAX);
	plx_msg_put(&pools, plx_msg_get(&pools, 100000)); /* takes that, and returns it */
	UNIT_EQ(pools.spare_len, PLX_MSG_SPARE_MAX);
	UNIT_EQ(pools.bytes, 0);
	plx_msg_pools_close(&pools);
}

static CU_TestInfo msg_tests[] = {
	UNIT_TEST(kept_messages_hold_what_they_are_asked_to),
	UNIT_TEST(a_message_larger_than_every_class_is_kept_too),
	UNIT_TEST(a_message_in_pieces_moves_twice_to_4_mib),
	UNIT_TEST(no_more_is_kept_than_the_bound),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"names", NULL, NULL, NULL, NULL, id_tests},
	{"requests", NULL, NULL, NULL, NULL, req_tests},
	{"kept messages", NULL, NULL, NULL, NULL, msg_tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
