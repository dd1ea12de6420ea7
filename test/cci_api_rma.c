/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_rma.c - remote memory access: what it moves, what it says when
 */
#include "cci_api_test.h"

#define LEN (2u * MIB)

static uint8_t *local_mem, *remote_mem;
static cci_rma_handle_t *local, *remote;

/* A connected pair, with LEN bytes registered on each side. */
static void
rma_pair(struct pair *p, cci_conn_attribute_t attribute)
{
	util_pair_open_with(p, attribute);
	local_mem = util_guarded(LEN);
	remote_mem = util_guarded(LEN);
	util_fill(local_mem, LEN, 1);
	util_fill(remote_mem, LEN, 2);
	UTIL_OK(cci_rma_register(p->e[0].ep, local_mem, LEN, 0, &local));
	UTIL_OK(cci_rma_register(p->e[1].ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote));
}

static void
rma_pair_close(struct pair *p)
{
	CU_ASSERT(util_guards_ok(local_mem, LEN));
	CU_ASSERT(util_guards_ok(remote_mem, LEN));
	CU_ASSERT_EQUAL(cci_rma_deregister(p->e[0].ep, local), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_rma_deregister(p->e[1].ep, remote), CCI_SUCCESS);
	util_pair_close(p);
	util_guarded_free(local_mem);
	util_guarded_free(remote_mem);
}

/* One operation, over on return. */
static int
rma_done(struct pair *p, uint64_t local_at, uint64_t remote_at, uint64_t len, int flags)
{
	void *context;
	int rc = cci_rma(p->e[0].conn, NULL, 0, local, local_at, remote, remote_at, len, COOKIE(len),
		flags);

	if (rc != CCI_SUCCESS)
		return rc;
	rc = util_pair_sent(p, 0, &context);
	CU_ASSERT_PTR_EQUAL(context, COOKIE(len));
	return rc;
}

/* Memory in which every byte tells by which side it was written. */
static bool
holds(const uint8_t *mem, uint64_t at, uint64_t len, const uint8_t *from, uint64_t from_at)
{
	return memcmp(mem + at, from + from_at, len) == 0;
}

static void
rma_moves_what_was_asked_for_and_no_more(void)
{
	static const uint64_t lens[] = {1, 7, 8, 9, 64, 100, 4095, 4096, 4097, 65536, 100001, MIB,
		LEN - 4096};
	static const uint64_t ats[] = {0, 1, 63, 4095};
	uint8_t *was = malloc(LEN);
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		rma_pair(&p, reliable[a]);
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			for (size_t k = 0; k < 4; k++) {
				uint64_t at = ats[k], from = ats[3 - k], len = lens[i];

				memcpy(was, remote_mem, LEN);
				CU_ASSERT_EQUAL(rma_done(&p, from, at, len, CCI_FLAG_WRITE), CCI_SUCCESS);
				CU_ASSERT(holds(remote_mem, at, len, local_mem, from));
				CU_ASSERT(holds(remote_mem, 0, at, was, 0));
				CU_ASSERT(holds(remote_mem, at + len, LEN - at - len, was, at + len));
				util_fill(remote_mem, LEN, i * 10 + k);
				memcpy(was, local_mem, LEN);
				CU_ASSERT_EQUAL(rma_done(&p, from, at, len, CCI_FLAG_READ), CCI_SUCCESS);
				CU_ASSERT(holds(local_mem, from, len, remote_mem, at));
				CU_ASSERT(holds(local_mem, 0, from, was, 0));
				CU_ASSERT(holds(local_mem, from + len, LEN - from - len, was, from + len));
			}
		}
		rma_pair_close(&p);
	}
	free(was);
}

static void
both_sides_may_start_rma(void)
{
	cci_rma_handle_t *back;
	struct pair p;

	rma_pair(&p, CCI_CONN_ATTR_RO);
	UTIL_OK(cci_rma_register(p.e[0].ep, local_mem, LEN, CCI_FLAG_WRITE, &back));
	CU_ASSERT_EQUAL(cci_rma(p.e[1].conn, NULL, 0, remote, 0, back, 100, 50000, NULL,
		CCI_FLAG_WRITE), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 1, NULL), CCI_SUCCESS);
	CU_ASSERT(holds(local_mem, 100, 50000, remote_mem, 0));
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[0].ep, back), CCI_SUCCESS);
	rma_pair_close(&p);
}

/* The message comes when the data is there, of whatever length the data is. */
static void
the_message_of_a_write_comes_after_the_data(void)
{
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		rma_pair(&p, reliable[a]);
		for (unsigned i = 1; i <= 60; i++) {
			uint64_t len = i % 3 == 0 ? 8 * i : i * 30000;
			uint64_t text[6] = {i, 1, 2, 3, 4, 5};
			cci_event_t *ev;

			util_fill(local_mem, LEN, i);
			CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, text, 8 + i % 5 * 8, local, 0, remote, 0, len,
				NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
			memset(text, 0xee, sizeof(text)); /* it was copied */
			ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT(util_check(remote_mem, len, i));
			CU_ASSERT_EQUAL(ev->recv.len, 8 + i % 5 * 8);
			CU_ASSERT_EQUAL((uintptr_t)ev->recv.ptr % 8, 0);
			CU_ASSERT_EQUAL(*(const uint64_t *)ev->recv.ptr, i);
			CU_ASSERT_PTR_EQUAL(ev->recv.connection, p.e[1].conn);
			util_return(ev);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		}
		UTIL_FOR_MS(&p, 10);
		CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0); /* one event each */
		rma_pair_close(&p);
	}
}

static void
the_message_of_a_read_comes_after_the_data_has_left(void)
{
	cci_event_t *ev;
	struct pair p;

	rma_pair(&p, CCI_CONN_ATTR_RO);
	for (unsigned i = 0; i < 20; i++) {
		util_fill(remote_mem, LEN, i);
		CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, &i, sizeof(i), local, 0, remote, 0, LEN, NULL,
			CCI_FLAG_READ), CCI_SUCCESS);
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		memset(remote_mem, 0, LEN); /* so it may be used for something else */
		util_return(ev);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		CU_ASSERT(util_check(local_mem, LEN, i));
	}
	rma_pair_close(&p);
}

/* send, RMA with a message, send: they come as 1, 2, 3, and are over in that order. */
static void
an_ordered_connection_puts_the_message_between_sends(void)
{
	unsigned next = 0, over = 0;
	struct pair p;

	rma_pair(&p, CCI_CONN_ATTR_RO);
	for (unsigned i = 0; i < 300; i += 3) {
		const unsigned n[3] = {i, i + 1, i + 2};
		cci_event_t *ev;

		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &n[0], 4, COOKIE(i), 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, &n[1], 4, local, 0, remote, 0, i % 2 ? LEN / 4 : 64,
			COOKIE(i + 1), i % 4 < 2 ? CCI_FLAG_WRITE : CCI_FLAG_READ), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &n[2], 4, COOKIE(i + 2), 0), CCI_SUCCESS);
		if (i % 9 != 0)
			continue;
		while (next < i + 3) {
			ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &next, 4), 0);
			next++;
			util_return(ev);
		}
	}
	while (over < 300) {
		void *context;

		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, &context), CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(context, COOKIE(over));
		over++;
	}
	while (next < 300) {
		cci_event_t *ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);

		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &next, 4), 0);
		next++;
		util_return(ev);
	}
	rma_pair_close(&p);
}

static void
silent_rma_has_no_event_and_still_its_message(void)
{
	cci_event_t *ev;
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		rma_pair(&p, reliable[a]);
		for (int i = 0; i < 10; i++) {
			CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, "done", 4, local, 0, remote, 0, LEN / 2, NULL,
				CCI_FLAG_WRITE | CCI_FLAG_SILENT), CCI_SUCCESS);
			ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			util_return(ev);
		}
		UTIL_FOR_MS(&p, 10);
		CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
		CU_ASSERT(holds(remote_mem, 0, LEN / 2, local_mem, 0));
		rma_pair_close(&p);
	}
}

/* What is behind the fence sees what is before it: each reads what the one before wrote. */
static void
a_fence_waits_for_all_rma_before_it(void)
{
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		rma_pair(&p, reliable[a]);
		for (unsigned i = 0; i < 20; i++) {
			util_fill(local_mem, LEN / 2, i);
			CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, local, 0, remote, 0, LEN / 2, COOKIE(1),
				CCI_FLAG_WRITE), CCI_SUCCESS);
			CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, local, LEN / 2, remote, 0, LEN / 2,
				COOKIE(2), CCI_FLAG_READ | CCI_FLAG_FENCE), CCI_SUCCESS);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
			CU_ASSERT(util_check(local_mem + LEN / 2, LEN / 2, i));
		}
		rma_pair_close(&p);
	}
}

static void
many_rma_may_be_under_way(void)
{
	enum { N = 500 };
	unsigned posted = 0, over = 0;
	struct pair p;

	for (size_t a = 0; a < 2; a++) {
		rma_pair(&p, reliable[a]);
		for (posted = over = 0; over < N;) {
			uint64_t at = (uint64_t)posted * 4000;
			cci_event_t *ev;

			if (posted < N) {
				int rc = cci_rma(p.e[0].conn, NULL, 0, local, at, remote, at, 4000,
					COOKIE(posted), CCI_FLAG_WRITE);

				CU_ASSERT_FATAL(rc == CCI_SUCCESS || rc == CCI_ENOBUFS);
				posted += rc == CCI_SUCCESS;
				if (rc == CCI_SUCCESS)
					continue;
			}
			util_pair_turn(&p);
			while ((ev = util_end_take(&p.e[0], CCI_EVENT_SEND)) != NULL) {
				CU_ASSERT_EQUAL(ev->send.status, CCI_SUCCESS);
				if (reliable[a] == CCI_CONN_ATTR_RO)
					CU_ASSERT_PTR_EQUAL(ev->send.context, COOKIE(over));
				over++;
				util_return(ev);
			}
		}
		CU_ASSERT(holds(remote_mem, 0, N * 4000, local_mem, 0));
		rma_pair_close(&p);
	}
}

static void
registrations_may_overlap(void)
{
	cci_rma_handle_t *half, *same;
	struct pair p;

	rma_pair(&p, CCI_CONN_ATTR_RO);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem + LEN / 2, LEN / 2, CCI_FLAG_WRITE, &half));
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_WRITE, &same));
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, local, 0, half, 0, 1000, NULL, CCI_FLAG_WRITE),
		CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	CU_ASSERT(holds(remote_mem, LEN / 2, 1000, local_mem, 0));
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[1].ep, half), CCI_SUCCESS);
	/* the others are as they were */
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, local, 0, same, LEN / 2, 2000, NULL,
		CCI_FLAG_WRITE), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	CU_ASSERT_EQUAL(rma_done(&p, 0, LEN / 2, 3000, CCI_FLAG_WRITE), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[1].ep, same), CCI_SUCCESS);
	rma_pair_close(&p);
}

/* On this side no right is needed, whatever the direction. */
static void
a_local_handle_needs_no_rights(void)
{
	cci_rma_handle_t *swapped = local;
	struct pair p;

	rma_pair(&p, CCI_CONN_ATTR_RU);
	UTIL_OK(cci_rma_register(p.e[0].ep, local_mem, LEN, CCI_FLAG_READ, &swapped));
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, swapped, 0, remote, 0, 64, NULL, CCI_FLAG_READ),
		CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[0].ep, swapped), CCI_SUCCESS);
	rma_pair_close(&p);
}

const struct api_test cci_rma_tests[] = {
	T(rma_moves_what_was_asked_for_and_no_more),
	T(both_sides_may_start_rma),
	T(the_message_of_a_write_comes_after_the_data),
	T(the_message_of_a_read_comes_after_the_data_has_left),
	T(an_ordered_connection_puts_the_message_between_sends),
	T(silent_rma_has_no_event_and_still_its_message),
	T(a_fence_waits_for_all_rma_before_it),
	T(many_rma_may_be_under_way),
	T(registrations_may_overlap),
	T(a_local_handle_needs_no_rights),
	{NULL, NULL, NULL, NULL},
};
