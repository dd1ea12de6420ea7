/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_test.c - contexts, workers, eps, tags and requests behave as UCP says
 *
 * Design notes
 * - Only the public API is used, so the same program runs on UCX; what is known
 *   to differ there is marked in the tables and left out with --on-ucx.
 * - Nothing is assumed to complete at once unless the API promises it, so the
 *   program also runs with dedicated reactors (PLX_REACTOR=lcore:1).
 * - Every wait has a deadline and every test an alarm: a hang is a failure.
 *
 * usage: ucp_api_test [--on-ucx] [--alone] [--list] [PART-OF-A-NAME]
 */
#include "ucp_api_test.h"

#define ALONE_MAX 512

/* Forks first: the heap that some of them copy grows with the tests. */
static const struct api_test *const tables[] = {api_fork_tests, api_base_tests, api_tag_tests, api_req_tests,
	api_order_tests, api_dt_tests, api_rma_tests, api_wakeup_tests, api_cm_tests, api_am_tests,
	api_stream_tests, api_callback_tests, api_many_tests,
	api_scarce_tests, api_config_tests};

/* Send one message and receive it; both finished on return. */
void
exchange(struct pair *p, int from, size_t len, ucp_tag_t tag, bool expected, enum util_how how)
{
	struct op send, recv;
	uint8_t *out = util_guarded(len), *in = util_guarded(len);
	ucp_tag_recv_info_t info;

	util_fill(out, len, tag + len);
	if (expected)
		util_recv(&recv, p->n[!from].w, in, len, tag, UTIL_ALL_BITS, how == UTIL_NB ? UTIL_NB :
			UTIL_NBX);
	util_send(&send, p->n[from].ep, out, len, tag, how);
	CU_ASSERT_EQUAL(send.n_inside > 0 && how != UTIL_NO_IMM, 0);
	if (!expected) {
		CU_ASSERT_FATAL(UTIL_UNTIL(p, ucp_tag_probe_nb(p->n[!from].w, tag, UTIL_ALL_BITS, 0,
			&info) != NULL));
		CU_ASSERT_EQUAL(info.length, len);
		CU_ASSERT_EQUAL(info.sender_tag, tag);
		util_recv(&recv, p->n[!from].w, in, len, tag, UTIL_ALL_BITS, how == UTIL_NB ? UTIL_NB :
			UTIL_NBX);
	}
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send) && util_done(&recv)));
	util_free(&send);
	util_free(&recv);
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.info.length, len);
	CU_ASSERT_EQUAL(recv.info.sender_tag, tag);
	CU_ASSERT(util_check(in, len, tag + len));
	CU_ASSERT(util_guards_ok(in, len));
	util_guarded_free(out);
	util_guarded_free(in);
}

bool
nothing_waits(struct pair *p, int node)
{
	ucp_tag_recv_info_t info;

	return ucp_tag_probe_nb(p->n[node].w, 0, 0, 0, &info) == NULL;
}

/* Left out by --alone: they need other processes, or threads that run turns. */
static const char *const with_others[] = {"threads_share_a_multi_worker",
	"threads_take_turns_on_a_serialized_worker", "threads_have_contexts_and_workers_of_their_own",
	"threads_of_a_multi_worker_add_at_once", "no_wakeup_is_lost_between_two_who_sleep",
	"no_wakeup_is_lost_in_wait", "messages_of_every_way_wake", "death_of_a_peer_wakes",
	"client_that_dies_is_told_once_within_a_second",
	"peer_by_address_that_dies_is_told_once_within_a_second",
	"handler_of_a_closed_ep_is_not_called"};

static bool
needs_others(const struct api_test *t)
{
	for (size_t i = 0; i < sizeof(with_others) / sizeof(with_others[0]); i++)
		if (strcmp(t->name, with_others[i]) == 0)
			return true;
	return false;
}

/* The tests of all tables that need nobody else, as one table. */
static const struct api_test *
alone_tests(void)
{
	static struct api_test kept[ALONE_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct api_test *t = tables[i]; t->name != NULL; t++)
			if (n < ALONE_MAX && !needs_others(t))
				kept[n++] = *t;
	return kept;
}

int
main(int argc, char **argv)
{
	const size_t n = sizeof(tables) / sizeof(tables[0]);
	const struct api_test *alone = NULL;
	const char *part = "";
	int a;

	if (argc > 3 && strcmp(argv[1], "--child") == 0)
		return child_main(argv + 2);
	for (a = 1; a < argc; a++) {
		if (strcmp(argv[a], "--on-ucx") == 0) {
			util_on_ucx = true;
		} else if (strcmp(argv[a], "--alone") == 0) {
			alone = alone_tests();
		} else if (strcmp(argv[a], "--list") == 0) {
			api_list(tables, n);
			return 0;
		} else {
			part = argv[a];
		}
	}
	if (alone != NULL)
		return api_run("ucp", &alone, 1, part, util_on_ucx);
	return api_run("ucp", tables, n, part, util_on_ucx);
}
