/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_guard.c - RMA that must not be: out of bounds, without a right, by a handle
 * that nobody gave
 */
#include <sys/mman.h>

#include "cci_api_test.h"

#define LEN 65536u

static uint8_t local_mem[LEN], remote_mem[LEN];
static cci_rma_handle_t *local;

static void
guard_pair(struct pair *p)
{
	util_pair_open_with(p, CCI_CONN_ATTR_RO);
	util_fill(local_mem, LEN, 1);
	util_fill(remote_mem, LEN, 2);
	UTIL_OK(cci_rma_register(p->e[0].ep, local_mem, LEN, 0, &local));
}

/* The answer of the call or, when it went out, of its event. */
static int
outcome(struct pair *p, cci_rma_handle_t *remote, uint64_t at, uint64_t len, int flags)
{
	int rc = cci_rma(p->e[0].conn, NULL, 0, local, 0, remote, at, len, NULL, flags);

	return rc == CCI_SUCCESS ? util_pair_sent(p, 0, NULL) : rc;
}

static bool
untouched(void)
{
	return util_check(local_mem, LEN, 1) && util_check(remote_mem, LEN, 2);
}

static void
register_refuses_what_makes_no_sense(void)
{
	cci_rma_handle_t *h = NULL;
	struct end e;

	util_end_open(&e, NULL, false);
	CU_ASSERT_EQUAL(cci_rma_register(NULL, remote_mem, LEN, 0, &h), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma_register(e.ep, NULL, LEN, 0, &h), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma_register(e.ep, remote_mem, 0, 0, &h), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma_register(e.ep, remote_mem, LEN, 0, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma_register(e.ep, remote_mem, UINT64_MAX, 0, &h), CCI_EINVAL);
	CU_ASSERT_PTR_NULL(h);
	CU_ASSERT_EQUAL(cci_rma_deregister(e.ep, NULL), CCI_EINVAL);
	util_end_close(&e);
}

static void
rma_refuses_what_makes_no_sense(void)
{
	const int w = CCI_FLAG_WRITE;
	cci_rma_handle_t *r;
	struct pair p;
	cci_connection_t *c;

	guard_pair(&p);
	c = p.e[0].conn;
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_WRITE | CCI_FLAG_READ, &r));
	CU_ASSERT_EQUAL(cci_rma(NULL, NULL, 0, local, 0, r, 0, 8, NULL, w), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 0, NULL, 0, r, 0, 8, NULL, w), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 0, local, 0, NULL, 0, 8, NULL, w), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 0, local, 0, r, 0, 0, NULL, w), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 0, local, 0, r, 0, 8, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 0, local, 0, r, 0, 8, NULL, w | CCI_FLAG_READ), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, NULL, 5, local, 0, r, 0, 8, NULL, w), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(c, local_mem, c->max_send_size + 1, local, 0, r, 0, 8, NULL, w),
		CCI_EMSGSIZE);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
	CU_ASSERT(untouched());
	util_pair_close(&p);
}

static void
an_unreliable_connection_has_no_rma(void)
{
	cci_rma_handle_t *l, *r;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_UU);
	UTIL_OK(cci_rma_register(p.e[0].ep, local_mem, LEN, 0, &l));
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_WRITE, &r));
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, l, 0, r, 0, 8, NULL, CCI_FLAG_WRITE), CCI_EINVAL);
	util_pair_close(&p);
}

static void
local_bounds_are_checked_at_once(void)
{
	static const uint64_t bad[][2] = {{0, LEN + 1}, {1, LEN}, {LEN, 1}, {LEN + 1, 1},
		{UINT64_MAX, 1}, {UINT64_MAX - 7, 8}, {8, UINT64_MAX}, {8, UINT64_MAX - 7}};
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_WRITE, &r));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, local, bad[i][0], r, 0, bad[i][1], NULL,
			CCI_FLAG_WRITE), CCI_EINVAL);
	CU_ASSERT(untouched());
	util_pair_close(&p);
}

static void
remote_bounds_are_checked(void)
{
	static const uint64_t bad[][2] = {{1, LEN}, {LEN, 1}, {LEN - 7, 8}, {LEN + 1, 1},
		{UINT64_MAX, 1}, {UINT64_MAX - 7, 8}, {UINT64_MAX - 7, 16}};
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &r));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(outcome(&p, r, bad[i][0], bad[i][1], CCI_FLAG_WRITE),
			CCI_ERR_RMA_HANDLE);
		CU_ASSERT_EQUAL(outcome(&p, r, bad[i][0], bad[i][1], CCI_FLAG_READ), CCI_ERR_RMA_HANDLE);
	}
	CU_ASSERT(untouched());
	util_pair_close(&p);
}

/* The operation is not allowed, or nothing is. */
static void
rights_are_enforced_at_the_target(void)
{
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ, &r));
	CU_ASSERT_EQUAL(outcome(&p, r, 0, LEN, CCI_FLAG_WRITE), CCI_ERR_RMA_OP);
	UTIL_OK(cci_rma_deregister(p.e[1].ep, r));
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_WRITE, &r));
	CU_ASSERT_EQUAL(outcome(&p, r, 0, LEN, CCI_FLAG_READ), CCI_ERR_RMA_OP);
	UTIL_OK(cci_rma_deregister(p.e[1].ep, r));
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, 0, &r));
	CU_ASSERT_EQUAL(outcome(&p, r, 0, LEN, CCI_FLAG_READ), CCI_ERR_RMA_HANDLE);
	CU_ASSERT_EQUAL(outcome(&p, r, 0, LEN, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
	CU_ASSERT(untouched());
	util_pair_close(&p);
}

/* A refused operation brings no message. */
static void
a_failed_rma_sends_no_message(void)
{
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ, &r));
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, "no", 2, local, 0, r, 0, 64, NULL, CCI_FLAG_WRITE),
		CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_ERR_RMA_OP);
	UTIL_FOR_MS(&p, 20);
	CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
	CU_ASSERT(untouched());
	/* the connection is well */
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "yes", 3, NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	util_return(util_pair_wait(&p, 1, CCI_EVENT_RECV));
	util_pair_close(&p);
}

static void
a_handle_that_was_given_back_is_stale(void)
{
	struct cci_rma_handle copy;
	cci_rma_handle_t *r, *again;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &r));
	copy = *r;
	CU_ASSERT_EQUAL(outcome(&p, &copy, 0, 8, CCI_FLAG_READ), CCI_SUCCESS);
	util_fill(local_mem, LEN, 1);
	UTIL_OK(cci_rma_deregister(p.e[1].ep, r));
	CU_ASSERT_EQUAL(outcome(&p, &copy, 0, 8, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
	/* neither does the next registration bring it back */
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &again));
	CU_ASSERT_EQUAL(outcome(&p, &copy, 0, 8, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
	CU_ASSERT(untouched());
	CU_ASSERT_NOT_EQUAL(memcmp(again, &copy, sizeof(copy)), 0);
	util_pair_close(&p);
}

/* @return whether all is as it was but the first half of the remote memory */
static bool
second_half_untouched(void)
{
	uint8_t was[LEN];

	util_fill(was, LEN, 2);
	return util_check(local_mem, LEN, 1) &&
		memcmp(remote_mem + LEN / 2, was + LEN / 2, LEN / 2) == 0;
}

/*
 * A handle may say where its memory lies; saying something else leads nowhere but to
 * that memory. At least 128 of its bits have to be right.
 */
static void
a_handle_cannot_be_altered(void)
{
	unsigned n_whole = 0;
	struct cci_rma_handle copy;
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN / 2, CCI_FLAG_READ | CCI_FLAG_WRITE, &r));
	for (unsigned word = 0; word < 4; word++) {
		unsigned n_refused = 0;

		for (unsigned bit = 0; bit < 64; bit++) {
			copy = *r;
			copy.stuff[word] ^= UINT64_C(1) << bit;
			n_refused += outcome(&p, &copy, 0, 8, CCI_FLAG_WRITE) != CCI_SUCCESS;
			(void)outcome(&p, &copy, LEN / 2, 8, CCI_FLAG_WRITE);
			(void)outcome(&p, &copy, UINT64_MAX - 7, 8, CCI_FLAG_WRITE);
		}
		n_whole += n_refused == 64;
	}
	CU_ASSERT(n_whole >= 2);
	CU_ASSERT(second_half_untouched());
	/* nor does that hurt: the right one is still good */
	CU_ASSERT_EQUAL(outcome(&p, r, 0, 8, CCI_FLAG_READ), CCI_SUCCESS);
	util_pair_close(&p);
}

static void
a_handle_cannot_be_guessed(void)
{
	struct cci_rma_handle made;
	cci_rma_handle_t *r;
	struct pair p;

	guard_pair(&p);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN / 2, CCI_FLAG_READ | CCI_FLAG_WRITE, &r));
	for (int i = 0; i < 1000; i++) {
		for (unsigned k = 0; k < 4; k++)
			made.stuff[k] = i == 0 ? 0 : rnd() >> rnd() % 64;
		CU_ASSERT_EQUAL(outcome(&p, &made, 0, 8, i % 2 ? CCI_FLAG_WRITE : CCI_FLAG_READ),
			CCI_ERR_RMA_HANDLE);
	}
	CU_ASSERT(untouched());
	for (unsigned i = 0; i < 1000; i++) { /* all but a word is known */
		made = *r;
		made.stuff[i % 4] = rnd() >> rnd() % 64;
		(void)outcome(&p, &made, rnd() % LEN, 8, CCI_FLAG_WRITE);
	}
	CU_ASSERT(second_half_untouched());
	util_pair_close(&p);
}

/* An endpoint's memory is reached through that endpoint only. */
static void
an_endpoint_protects_its_memory_from_others(void)
{
	cci_rma_handle_t *foreign;
	struct end other;
	struct pair p;

	guard_pair(&p);
	util_end_open(&other, NULL, false);
	UTIL_OK(cci_rma_register(other.ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &foreign));
	CU_ASSERT_EQUAL(outcome(&p, foreign, 0, 8, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
	CU_ASSERT_EQUAL(outcome(&p, foreign, 0, 8, CCI_FLAG_READ), CCI_ERR_RMA_HANDLE);
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, foreign, 0, foreign, 0, 8, NULL, CCI_FLAG_WRITE),
		CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[1].ep, foreign), CCI_EINVAL);
	CU_ASSERT(untouched());
	CU_ASSERT_EQUAL(cci_rma_deregister(other.ep, foreign), CCI_SUCCESS);
	util_end_close(&other);
	util_pair_close(&p);
}

/* It may go through or fail; it does not harm. */
static void
memory_may_be_deregistered_under_an_rma(void)
{
	uint8_t *mem = malloc(4 * MIB), *to = malloc(4 * MIB);
	cci_rma_handle_t *l, *r;
	struct pair p;
	int status;

	util_pair_open_with(&p, CCI_CONN_ATTR_RU);
	for (int i = 0; i < 10; i++) {
		UTIL_OK(cci_rma_register(p.e[0].ep, mem, 4 * MIB, 0, &l));
		UTIL_OK(cci_rma_register(p.e[1].ep, to, 4 * MIB, CCI_FLAG_WRITE, &r));
		memset(mem, i, 4 * MIB);
		CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, l, 0, r, 0, 4 * MIB, NULL, CCI_FLAG_WRITE),
			CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_rma_deregister(p.e[1].ep, r), CCI_SUCCESS);
		status = util_pair_sent(&p, 0, NULL);
		CU_ASSERT(status == CCI_SUCCESS || status == CCI_ERR_RMA_HANDLE);
		if (status == CCI_SUCCESS)
			CU_ASSERT_EQUAL(memcmp(mem, to, 4 * MIB), 0);
		CU_ASSERT_EQUAL(cci_rma_deregister(p.e[0].ep, l), CCI_SUCCESS);
	}
	util_pair_close(&p);
	free(mem);
	free(to);
}

/* Nobody checks it again: it stays while bytes are moved, or nothing moves any more. */
static void
a_local_registration_stays_while_it_is_used(void)
{
	const int flags[] = {CCI_FLAG_WRITE, CCI_FLAG_READ};
	cci_rma_handle_t *l, *r;
	struct pair p;
	int rc;

	util_pair_open_with(&p, CCI_CONN_ATTR_RU);
	UTIL_OK(cci_rma_register(p.e[1].ep, remote_mem, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &r));
	for (size_t i = 0; i < 4; i++) {
		void *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		UTIL_OK(cci_rma_register(p.e[0].ep, mem, LEN, 0, &l));
		for (int n = 0; n < 3; n++) /* two wait for the one before */
			CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, l, 0, r, 0, i < 2 ? 100 : LEN, NULL,
				flags[i % 2] | CCI_FLAG_FENCE), CCI_SUCCESS);
		rc = cci_rma_deregister(p.e[0].ep, l);
		CU_ASSERT(rc == CCI_EBUSY || getenv("PLX_REACTOR") != NULL);
		if (rc == CCI_SUCCESS)
			munmap(mem, LEN);
		for (int n = 0; n < 3; n++)
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		if (rc == CCI_SUCCESS)
			continue;
		CU_ASSERT_EQUAL(rc, CCI_EBUSY);
		CU_ASSERT_EQUAL(cci_rma_deregister(p.e[0].ep, l), CCI_SUCCESS);
		munmap(mem, LEN);
	}
	/* not by what ends with its connection */
	UTIL_OK(cci_rma_register(p.e[0].ep, local_mem, LEN, 0, &l));
	CU_ASSERT_EQUAL(cci_rma(p.e[0].conn, NULL, 0, l, 0, r, 0, LEN, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
	UTIL_OK(cci_disconnect(p.e[0].conn));
	p.e[0].conn = NULL;
	CU_ASSERT_EQUAL(cci_rma_deregister(p.e[0].ep, l), CCI_SUCCESS);
	util_pair_close(&p);
}

const struct api_test cci_guard_tests[] = {
	T(register_refuses_what_makes_no_sense),
	T(rma_refuses_what_makes_no_sense),
	T(an_unreliable_connection_has_no_rma),
	T(local_bounds_are_checked_at_once),
	T(remote_bounds_are_checked),
	T(rights_are_enforced_at_the_target),
	T(a_failed_rma_sends_no_message),
	T(a_handle_that_was_given_back_is_stale),
	T(a_handle_cannot_be_altered),
	T(a_handle_cannot_be_guessed),
	T(an_endpoint_protects_its_memory_from_others),
	T(memory_may_be_deregistered_under_an_rma),
	T(a_local_registration_stays_while_it_is_used),
	{NULL, NULL, NULL, NULL},
};
