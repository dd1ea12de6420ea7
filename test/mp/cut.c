/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cut.c - the way between two processes is cut while they exchange messages
 *
 * The runner cuts when FOLDER/busy exists and makes FOLDER/mended when it has mended.
 * arguments after N: short (no side reports an error) or long (each side reports,
 * marks FOLDER/told.RANK, and connects again once all is mended)
 */
#include "mp.h"

enum { ROUNDS = 20 };

static struct mp m;

/* A message each way. @return whether both arrived */
static bool
exchange(uint64_t tag, uint64_t out, uint64_t *in)
{
	struct op send, recv;
	bool held;

	util_recv(&recv, m.w, in, sizeof(*in), tag, UTIL_ALL_BITS, UTIL_NO_IMM);
	util_send(&send, m.ep[!m.rank], &out, sizeof(out), tag, UTIL_NBX);
	MP_UNTIL(&m, m.n_err > 0 || (util_done(&send) && util_done(&recv)));
	if (!util_done(&recv))
		ucp_request_cancel(m.w, recv.req);
	MP_UNTIL(&m, util_done(&send) && util_done(&recv));
	util_free(&send);
	util_free(&recv);
	held = send.status == UCS_OK && recv.status == UCS_OK;
	if (!held && m.n_err == 0)
		UTIL_DIE("rank %d: an error and no call of the handler", m.rank);
	return held;
}

/* Until rank 0 says so, some rounds after the way was mended. @return whether all arrived */
static bool
talk(void)
{
	uint64_t in = 0, last = 0;
	int i, after = 0;

	for (i = 0; in == 0 && last == 0; i++) {
		if (m.rank == 0 && i == ROUNDS)
			mp_mark(&m, "busy");
		if (m.rank == 0 && mp_exists(&m, "mended") && after++ == ROUNDS)
			last = 1;
		if (!exchange(1, last, &in))
			return false;
	}
	return true;
}

static void
close_forced(void)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	void *req = ucp_ep_close_nbx(m.ep[!m.rank], &param);

	if (!UCS_PTR_IS_PTR(req))
		return;
	MP_UNTIL(&m, ucp_request_check_status(req) != UCS_INPROGRESS);
	ucp_request_free(req);
}

int
main(int argc, char **argv)
{
	char told[16];
	uint64_t in;
	bool expect;
	int i;

	mp_open(&m, argc, argv);
	expect = strcmp(argv[4], "short") == 0;
	m.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	mp_connect(&m, !m.rank);
	if (talk() != expect)
		UTIL_DIE("rank %d: an error is %s", m.rank, expect ? "there" : "missing");
	if (!expect) {
		if (m.n_err != 1)
			UTIL_DIE("rank %d: the handler was called %u times", m.rank, m.n_err);
		close_forced();
		snprintf(told, sizeof(told), "told.%d", m.rank);
		mp_mark(&m, told);
		MP_UNTIL(&m, mp_exists(&m, "mended"));
		m.n_err = 0;
		mp_connect(&m, !m.rank);
		for (i = 0; i < ROUNDS; i++)
			if (!exchange(2, (uint64_t)i, &in) || in != (uint64_t)i)
				UTIL_DIE("rank %d: no message %d of the new connection", m.rank, i);
	}
	mp_close_eps(&m);
	mp_close(&m);
	return 0;
}
