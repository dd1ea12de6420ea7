/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_test.c - endpoints, connections, events, messages and RMA behave as CCI says
 *
 * Design notes
 * - Only the public API is used, and nothing is assumed to be over before its event, so
 *   the program also runs with dedicated reactors (PLX_REACTOR=lcore:1).
 * - Most tests have both endpoints in this thread; where one has to stop, to block or to
 *   die it is another process (cci_api_child.c).
 * - Every wait has a deadline and every test an alarm: a hang is a failure.
 *
 * usage: cci_api_test [--list] [PART-OF-A-NAME]
 */
#include <signal.h>

#include "cci_api_test.h"

static const struct api_test *const tables[] = {cci_init_tests, cci_dev_tests, cci_ep_tests,
	cci_opt_tests, cci_conn_tests, cci_msg_tests, cci_flow_tests, cci_event_tests, cci_rma_tests,
	cci_guard_tests, cci_mc_tests, cci_uu_tests, cci_proc_tests, cci_many_tests,
	cci_fork_tests};

int
main(int argc, char **argv)
{
	const size_t n = sizeof(tables) / sizeof(tables[0]);

	if (argc > 2 && strcmp(argv[1], "--child") == 0)
		return child_main(argv + 2);
	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		api_list(tables, n);
		return 0;
	}
	/* The signal has its default action here: a peer's death must not raise it. */
	signal(SIGPIPE, SIG_DFL);
	return api_run("cci", tables, n, argc > 1 ? argv[1] : "", false);
}
