/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_calls.c - each call of CCI that is on a hot path, for icount
 *
 * usage: icount OUT HOLD cci_calls all|reactor
 *
 * As ucp_calls.c: two connected endpoints in one process and one thread.
 */
#include <stdbool.h>
#include <string.h>

#include "cci_util.h"
#include "marks.h"

#define MEM_LEN 65536
#define WARM	300 /* messages each way, before the first row */
#define LOOKS	20  /* for an event, between two rows; and a few more, */
#define MORE	5   /* so that what is due each so many looks is not always due in the same row */

static struct pair pair;
static cci_endpoint_t *from, *to;
static cci_rma_handle_t *local, *remote;
static cci_event_t *event;
static uint64_t data[MEM_LEN / 8], target[MEM_LEN / 8];

static unsigned
looks_between(void)
{
	static unsigned n;

	return LOOKS + n++ % MORE;
}

static void
drain(cci_endpoint_t *ep)
{
	while (cci_get_event(ep, &event) == CCI_SUCCESS)
		UTIL_OK(cci_return_event(event));
}

/* Nothing is left when it returns. */
static void
settle(void)
{
	for (unsigned i = looks_between(); i > 0; i--) {
		drain(from);
		drain(to);
	}
}

static void
take(cci_endpoint_t *ep)
{
	while (cci_get_event(ep, &event) != CCI_SUCCESS)
		continue;
}

static void
send_8(void)
{
	UTIL_OK(cci_send(pair.e[0].conn, data, 8, NULL, 0));
}

static void
send_8_silent(void)
{
	UTIL_OK(cci_send(pair.e[0].conn, data, 8, NULL, CCI_FLAG_SILENT));
}

static void
send_8_taken(void)
{
	send_8_silent();
	take(to);
}

/* Sent, received and acknowledged: the sender has only to look. */
static void
send_8_acked(void)
{
	cci_event_t *none;

	send_8();
	take(to);
	UTIL_OK(cci_return_event(event));
	for (unsigned i = 0; i < LOOKS; i++)
		if (cci_get_event(to, &none) == CCI_SUCCESS)
			UTIL_DIE("a message that was not sent");
}

static void
send_8_over(void)
{
	send_8_acked();
	take(from);
}

static void
put_8(void)
{
	UTIL_OK(cci_rma(pair.e[0].conn, NULL, 0, local, 0, remote, 0, 8, NULL, CCI_FLAG_WRITE));
}

static void
get_8(void)
{
	UTIL_OK(cci_rma(pair.e[0].conn, NULL, 0, local, 0, remote, 0, 8, NULL, CCI_FLAG_READ));
}

static void
call_get_event(void)
{
	cci_get_event(to, &event);
}

static void
call_get_event_from(void)
{
	cci_get_event(from, &event);
}

static void
call_return_event(void)
{
	cci_return_event(event);
}

static void
end_event(void)
{
	UTIL_OK(cci_return_event(event));
	settle();
}

static const struct icount_row rows[] = {
	{"cci_get_event, nothing", NULL, call_get_event, NULL},
	{"cci_send 8 B", NULL, send_8, settle},
	{"cci_send 8 B, silent", NULL, send_8_silent, settle},
	{"cci_get_event, a send is over", send_8_acked, call_get_event_from, end_event},
	{"cci_return_event, of a send", send_8_over, call_return_event, settle},
	{"cci_get_event, 8 B came", send_8_silent, call_get_event, end_event},
	{"cci_return_event, of a message", send_8_taken, call_return_event, settle},
	{"cci_rma 8 B, writes", NULL, put_8, settle},
	{"cci_rma 8 B, reads", NULL, get_8, settle},
	{NULL, NULL, NULL, NULL},
};

static void
open_first(void)
{
	util_end_open(&pair.e[0], NULL, false);
	from = pair.e[0].ep;
}

static void
open_second(void)
{
	util_end_open(&pair.e[1], NULL, false);
	to = pair.e[1].ep;
	util_pair_connect(&pair, CCI_CONN_ATTR_RO, &pair.e[0].conn, &pair.e[1].conn);
	for (unsigned i = 0; i < WARM; i++) {
		UTIL_OK(cci_send(pair.e[i % 2].conn, data, 8, NULL, 0));
		settle();
	}
	icount_mark(ICOUNT_CLOCK, NULL);
}

static void
run_rows(void)
{
	open_first();
	open_second();
	UTIL_OK(cci_rma_register(from, data, sizeof(data), CCI_FLAG_READ | CCI_FLAG_WRITE, &local));
	UTIL_OK(cci_rma_register(to, target, sizeof(target), CCI_FLAG_READ | CCI_FLAG_WRITE, &remote));
	settle();
	icount_rows(rows);
	UTIL_OK(cci_rma_deregister(from, local));
	UTIL_OK(cci_rma_deregister(to, remote));
}

/* -- with a reactor: it is held before a turn of to's worker, behind which from's has one -- */

static void
turn(const char *name)
{
	icount_mark(ICOUNT_TURN, name);
	icount_mark(ICOUNT_TURN, NULL);
}

static void
reactor_settle(void)
{
	for (unsigned i = looks_between(); i > 0; i--) {
		turn(NULL);
		drain(from);
		drain(to);
	}
}

/* @param name of the row */
static void
reactor_takes(const char *name)
{
	int rc;

	icount_mark(ICOUNT_BEGIN, name);
	rc = cci_get_event(to, &event);
	icount_mark(ICOUNT_END, NULL);
	UTIL_OK(rc);
}

static void
reactor_returns(const char *name)
{
	icount_mark(ICOUNT_BEGIN, name);
	cci_return_event(event);
	icount_mark(ICOUNT_END, NULL);
	reactor_settle();
}

static void
reactor_sends(void)
{
	icount_mark(ICOUNT_BEGIN, "cci_send 8 B");
	cci_send(pair.e[1].conn, data, 8, NULL, 0);
	icount_mark(ICOUNT_END, NULL);
	turn("turn, cci_send 8 B was posted");
	for (unsigned i = 0; i < LOOKS; i++) { /* received and acknowledged */
		turn(NULL);
		drain(from);
	}
	reactor_takes("cci_get_event, a send is over");
	reactor_returns("cci_return_event, of a send");
}

static void
reactor_receives(void)
{
	send_8_silent();
	turn(NULL); /* from's worker sends */
	turn("turn, 8 B came");
	reactor_takes("cci_get_event, 8 B came");
	reactor_returns("cci_return_event, of a message");
}

static void
reactor_rests(void)
{
	turn("turn, nothing");
	icount_mark(ICOUNT_BEGIN, "cci_get_event, nothing");
	cci_get_event(to, &event);
	icount_mark(ICOUNT_END, NULL);
}

static void
run_reactor(void)
{
	open_first();
	icount_mark(ICOUNT_HOLD, "0"); /* there is no other worker yet: it is known from now on */
	icount_mark(ICOUNT_LET, NULL);
	open_second();
	icount_mark(ICOUNT_HOLD, "1");
	reactor_settle();
	for (unsigned i = 0; i < ICOUNT_REPEATS; i++) {
		reactor_sends();
		reactor_receives();
		reactor_rests();
	}
	icount_mark(ICOUNT_LET, NULL);
}

int
main(int argc, char **argv)
{
	bool reactor = argc == 2 && strcmp(argv[1], "reactor") == 0;

	if (getenv("ICOUNT") == NULL || (!reactor && (argc != 2 || strcmp(argv[1], "all") != 0)))
		UTIL_DIE("usage: icount OUT HOLD cci_calls all|reactor");
	if (reactor)
		run_reactor();
	else
		run_rows();
	util_pair_close(&pair);
	return 0;
}
