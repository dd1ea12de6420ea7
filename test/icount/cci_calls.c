/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_calls.c - each call of CCI that is on a hot path, for icount
 *
 * usage: icount OUT - cci_calls
 *
 * As ucp_calls.c: two connected endpoints in one process and one thread.
 */
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

/* Nothing is left when it returns. */
static void
settle(void)
{
	static unsigned n;

	for (unsigned i = LOOKS + n++ % MORE; i > 0; i--) {
		for (unsigned k = 0; k < 2; k++) {
			while (cci_get_event(pair.e[k].ep, &event) == CCI_SUCCESS)
				UTIL_OK(cci_return_event(event));
		}
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

int
main(void)
{
	if (getenv("ICOUNT") == NULL)
		UTIL_DIE("usage: icount OUT - cci_calls");
	util_pair_open_with(&pair, CCI_CONN_ATTR_RO);
	from = pair.e[0].ep;
	to = pair.e[1].ep;
	UTIL_OK(cci_rma_register(from, data, sizeof(data), CCI_FLAG_READ | CCI_FLAG_WRITE, &local));
	UTIL_OK(cci_rma_register(to, target, sizeof(target), CCI_FLAG_READ | CCI_FLAG_WRITE, &remote));
	for (unsigned i = 0; i < WARM; i++) {
		UTIL_OK(cci_send(pair.e[i % 2].conn, data, 8, NULL, 0));
		settle();
	}
	icount_mark(ICOUNT_CLOCK, NULL);
	settle();
	icount_rows(rows);
	UTIL_OK(cci_rma_deregister(from, local));
	UTIL_OK(cci_rma_deregister(to, remote));
	util_pair_close(&pair);
	return 0;
}
