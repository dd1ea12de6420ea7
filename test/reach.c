/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * reach.c - one of two processes of reach_test.py: may it have an ep to the other, and does it work?
 *
 * It prints its worker address, reads that of the other and prints what ucp_ep_create said; with an
 * ep, then, whether a message went there and one came back. Argument: dark, nobody may look into it; drops, it
 * was root's and is a user's since it began.
 */
#include <sys/prctl.h>

#include "ucp_util.h"

enum { DEADLINE_S = 20 };

/* Both sides at once. @return what went wrong, or OK */
static ucs_status_t
exchange(ucp_worker_h w, ucp_ep_h ep)
{
	uint64_t end = util_now_ns() + DEADLINE_S * 1000000000ull, out = 17, in = 0;
	struct op send, recv;

	util_recv(&recv, w, &in, sizeof(in), 1, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&send, ep, &out, sizeof(out), 1, UTIL_NBX);
	while (!(util_done(&send) && util_done(&recv)) && util_now_ns() < end) {
		ucp_worker_progress(w);
		if (util_done(&send) && send.status != UCS_OK)
			return send.status;
	}
	return util_done(&recv) ? recv.status : UCS_ERR_TIMED_OUT;
}

int
main(int argc, char **argv)
{
	static uint8_t addr[UTIL_ADDR_MAX];
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = (void *)addr};
	ucp_context_h ctx;
	ucs_status_t status;
	ucp_worker_h w;
	ucp_ep_h ep;

	if (argc > 1 && strcmp(argv[1], "dark") == 0)
		prctl(PR_SET_DUMPABLE, 0);
	ctx = util_context(UCP_FEATURE_TAG);
	w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	if (argc > 1 && strcmp(argv[1], "drops") == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		UTIL_DIE("setuid");
	util_say_address(w);
	util_read_address(addr);
	status = ucp_ep_create(w, &params, &ep);
	printf("ep: %s\n", ucs_status_string(status));
	if (status == UCS_OK)
		printf("exchange: %s\n", ucs_status_string(exchange(w, ep)));
	fflush(stdout);
	(void)getchar(); /* the other goes on until both have said it */
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
	return 0;
}
