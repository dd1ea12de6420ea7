/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mode_echo.c - serve: receive the messages of a worker and send them back
 */
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

#define ECHO_MAX_OPEN 256 /* messages being received or sent back */

struct echo {
	struct tc *tc;
	struct tc_ep *ep;
	struct tc_req *open[ECHO_MAX_OPEN];
	bool back[ECHO_MAX_OPEN]; /* on its way back */
	unsigned n;
	uint64_t served;
	uint64_t failed;
};

/* Take one arrived message, of any tag. */
static bool
echo_take(struct echo *e)
{
	struct tc_worker *w = e->ep->worker;
	ucp_tag_recv_info_t info;
	ucp_tag_message_h message;
	struct tc_req *r;

	if (e->n == ECHO_MAX_OPEN)
		return false;
	message = ucp_tag_probe_nb(w->worker, 0, 0, 1, &info);
	if (message == NULL)
		return false;
	r = tc_req_new(e->tc, TC_RECV, w, info.sender_tag, info.length);
	if (r == NULL) {
		e->failed++;
		return false;
	}
	tc_mrecv_post(e->tc, r, message);
	e->back[e->n] = false;
	e->open[e->n++] = r;
	return true;
}

static void
echo_end(struct echo *e, unsigned i)
{
	tc_req_free(e->tc, e->open[i]);
	e->n--;
	memmove(&e->open[i], &e->open[i + 1], (e->n - i) * sizeof(e->open[0]));
	memmove(&e->back[i], &e->back[i + 1], (e->n - i) * sizeof(e->back[0]));
}

/* One received message starts back, or one that is back completes. In order of arrival. */
static void
echo_step(struct echo *e, unsigned i)
{
	struct tc_req *r = e->open[i];

	if (!r->done)
		return;
	if (r->status != UCS_OK || e->back[i]) {
		e->served += e->back[i] && r->status == UCS_OK;
		e->failed += r->status != UCS_OK;
		echo_end(e, i);
		return;
	}
	r->op = TC_SEND;
	r->done = false;
	r->status = UCS_INPROGRESS;
	e->back[i] = true;
	tc_send_post(e->tc, e->ep, r, false);
}

static int
echo_run(struct tc *tc, int argc, char **argv)
{
	struct echo *e;
	uint64_t count = UINT64_MAX, ms = UINT64_MAX / 2000, end, idle = 0;

	if (argc > 1 && tc_number(tc, argv[1], &count) != 0)
		return -1;
	if (argc > 2 && tc_number(tc, argv[2], &ms) != 0)
		return -1;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return tc_error(tc, "no memory");
	e->tc = tc;
	e->ep = tc_ep_find(tc, argv[0]);
	if (e->ep == NULL) {
		free(e);
		return -1;
	}
	end = ms >= UINT64_MAX / 2000 ? UINT64_MAX : tc_now_us() + ms * 1000;
	while (e->served + e->failed < count && !tc_interrupted()) {
		bool moved = tc_progress(tc) != 0;

		moved = echo_take(e) || moved;
		for (unsigned i = 0; i < e->n; i++)
			echo_step(e, i);
		idle = moved ? 0 : idle + 1;
		if ((idle & 0xff) == 0xff && tc_now_us() > end)
			break;
	}
	tc->last = (struct tc_last){
		.count = e->served, .status = e->failed == 0 ? UCS_OK : UCS_ERR_IO_ERROR};
	fprintf(tc->out, "echoed %llu messages, %llu failed, %u left open\n",
		(unsigned long long)e->served, (unsigned long long)e->failed, e->n);
	free(e);
	return 0;
}

const struct tc_cmd tc_mode_echo[] = {
	{"echo", "EP [COUNT] [MS]",
		"send back on EP what comes to its worker, until COUNT, MS or an interrupt", 1, 3,
		echo_run},
	{0},
};
