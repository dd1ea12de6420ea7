/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tele_host.c - a DPDK program with its own EAL, for tele_test.py to ask
 *
 * usage: tele_host EAL-ARGUMENT...
 *
 * Its worker waits for a message that nobody sends. It prints "ready PID", and ends when standard input does.
 */
#include <poll.h>
#include <unistd.h>

#include <rte_eal.h>

#include "ucp_util.h"

#define TAG 7

int
main(int argc, char **argv)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	static char buf[8];
	struct op op;
	ucp_context_h ctx;
	ucp_worker_h w;

	if (rte_eal_init(argc, argv) < 0)
		UTIL_DIE("no EAL");
	ctx = util_context(UCP_FEATURE_TAG);
	w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	util_recv(&op, w, buf, sizeof(buf), TAG, UTIL_ALL_BITS, UTIL_NBX);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (poll(&in, 1, 0) == 0)
		ucp_worker_progress(w);
	ucp_request_cancel(w, op.req);
	while (!util_done(&op))
		ucp_worker_progress(w);
	util_free(&op);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
	return rte_eal_cleanup() == 0 ? 0 : 1;
}
