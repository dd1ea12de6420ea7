/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_opt.c - options, set and got; what they do is shown where it can be seen
 */
#include <signal.h>
#include <sys/wait.h>

#include "cci_api_test.h"

#define TIMER_TURNS 128 /* among so many is one that looks at the timers */

static const cci_opt_name_t ep_numbers[] = {CCI_OPT_ENDPT_SEND_TIMEOUT, CCI_OPT_ENDPT_RECV_BUF_COUNT,
	CCI_OPT_ENDPT_SEND_BUF_COUNT, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT};
static const cci_opt_name_t conn_numbers[] = {CCI_OPT_CONN_SEND_TIMEOUT,
	CCI_OPT_CONN_KEEPALIVE_TIMEOUT};

static void
set_and_got(cci_opt_handle_t *handle, cci_opt_name_t name, uint32_t value)
{
	uint32_t back = ~value;

	CU_ASSERT_EQUAL(cci_set_opt(handle, name, &value), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_opt(handle, name, &back), CCI_SUCCESS);
	CU_ASSERT_EQUAL(back, value);
}

static void
every_option_keeps_what_was_set(void)
{
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (size_t i = 0; i < sizeof(ep_numbers) / sizeof(ep_numbers[0]); i++) {
		set_and_got(p.e[0].ep, ep_numbers[i], 64);
		set_and_got(p.e[0].ep, ep_numbers[i], 1000);
	}
	for (size_t i = 0; i < sizeof(conn_numbers) / sizeof(conn_numbers[0]); i++) {
		set_and_got(p.e[0].conn, conn_numbers[i], 1000000);
		set_and_got(p.e[0].conn, conn_numbers[i], 0);
	}
	util_pair_close(&p);
}

static void
options_begin_as_the_manual_says(void)
{
	uint32_t v = 1;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, 0);
	v = 1;
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, 0);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &v), CCI_SUCCESS);
	CU_ASSERT(v >= 64);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &v), CCI_SUCCESS);
	CU_ASSERT(v >= 64);
	util_pair_close(&p);
}

static void
wrong_names_and_pointers_are_refused(void)
{
	uint32_t v = 5;
	struct pair p;
	char *uri;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_get_opt(NULL, CCI_OPT_ENDPT_URI, &uri), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_URI, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(NULL, CCI_OPT_ENDPT_SEND_TIMEOUT, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_TIMEOUT, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_URI, "x"), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_RMA_ALIGN, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, (cci_opt_name_t)100, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, (cci_opt_name_t)100, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, (cci_opt_name_t)-1, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(v, 5);
	util_pair_close(&p);
}

/* The type of a handle is not to be seen from outside; the library knows it. */
static void
an_option_of_the_other_kind_of_handle_is_refused(void)
{
	uint32_t v = 5;
	struct pair p;
	char *uri;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_CONN_SEND_TIMEOUT, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].conn, CCI_OPT_ENDPT_SEND_TIMEOUT, &v), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].conn, CCI_OPT_ENDPT_URI, &uri), CCI_EINVAL);
	util_pair_close(&p);
}

/* There is nothing to wait for: the peer answers nothing. */
static void
an_unreliable_connection_has_no_timeouts(void)
{
	cci_connection_t *conn[2];
	uint32_t v = 5;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	util_pair_connect(&p, CCI_CONN_ATTR_UU, &conn[0], &conn[1]);
	for (size_t i = 0; i < sizeof(conn_numbers) / sizeof(conn_numbers[0]); i++) {
		CU_ASSERT_EQUAL(cci_set_opt(conn[0], conn_numbers[i], &v), CCI_ERR_NOT_IMPLEMENTED);
		CU_ASSERT_EQUAL(cci_get_opt(conn[0], conn_numbers[i], &v), CCI_ERR_NOT_IMPLEMENTED);
		CU_ASSERT_EQUAL(v, 5);
		CU_ASSERT_EQUAL(cci_set_opt(p.e[0].conn, conn_numbers[i], &v), CCI_SUCCESS);
	}
	util_pair_close(&p);
}

static void
counts_that_cannot_be_had_are_out_of_range(void)
{
	const uint32_t none = 0, all = UINT32_MAX;
	uint32_t before, after;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &before), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &none), CCI_ERANGE);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &all), CCI_ERANGE);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &after), CCI_SUCCESS);
	CU_ASSERT_EQUAL(before, after);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &none), CCI_ERANGE);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &all), CCI_ERANGE);
	util_pair_close(&p);
}

static void
rma_alignments_are_powers_of_two(void)
{
	cci_alignment_t a;
	struct end e;

	memset(&a, 0xee, sizeof(a));
	util_end_open(&e, NULL, false);
	CU_ASSERT_EQUAL(cci_get_opt(e.ep, CCI_OPT_ENDPT_RMA_ALIGN, &a), CCI_SUCCESS);
	for (size_t i = 0; i < sizeof(a) / sizeof(uint32_t); i++) {
		uint32_t v = ((const uint32_t *)&a)[i];

		CU_ASSERT((v & (v - 1)) == 0 && v <= 4096);
	}
	util_end_close(&e);
}

static void
an_endpoints_send_timeout_is_that_of_new_connections(void)
{
	uint32_t two = 2000000, three = 3000000, v;
	cci_connection_t *conn[2];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &two), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &conn[0], &conn[1]);
	CU_ASSERT_EQUAL(cci_get_opt(conn[0], CCI_OPT_CONN_SEND_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT(v == 0 || v == two);
	CU_ASSERT_EQUAL(cci_set_opt(conn[0], CCI_OPT_CONN_SEND_TIMEOUT, &three), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_opt(conn[0], CCI_OPT_CONN_SEND_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, three);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, two);
	util_pair_close(&p);
}

/* An option of the endpoint holds for every connection, present and to come. */
static void
an_endpoints_keepalive_is_that_of_all_connections(void)
{
	uint32_t minute = 60000000, half = 30000000, v;
	cci_connection_t *conn[2];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &minute), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, minute);
	util_pair_connect(&p, CCI_CONN_ATTR_RU, &conn[0], &conn[1]);
	CU_ASSERT_EQUAL(cci_get_opt(conn[0], CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, minute);
	CU_ASSERT_EQUAL(cci_set_opt(conn[0], CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &half), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_opt(p.e[0].conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, minute);
	util_pair_close(&p);
}

/* The event of one silence may still be queued when the next period begins. */
static void
a_keepalive_that_is_set_again_stays_set(void)
{
	const uint32_t period_us = 20000, minute = 60000000;
	cci_connection_t *told, *other;
	cci_event_t *ev = NULL;
	struct child c;
	struct end e;
	uint32_t v;

	child_open(&c, NULL);
	util_end_open(&e, NULL, false);
	told = child_connect(&e, &c, CCI_CONN_ATTR_RO);
	other = child_connect(&e, &c, CCI_CONN_ATTR_RO);
	kill(c.pid, SIGSTOP);
	waitpid(c.pid, NULL, WUNTRACED);
	UTIL_OK(cci_set_opt(e.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &period_us));
	while (ev == NULL) {
		usleep(2 * period_us); /* both are silent by then, and one of them is reported */
		for (unsigned i = 0; i < TIMER_TURNS && ev == NULL; i++)
			if (cci_get_event(e.ep, &ev) != CCI_SUCCESS)
				ev = NULL;
	}
	CU_ASSERT_EQUAL(ev->type, CCI_EVENT_KEEPALIVE_TIMEDOUT);
	if (ev->keepalive.connection != told)
		other = told;
	util_return(ev);
	UTIL_OK(cci_set_opt(other, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &minute));
	end_for_ms(&e, 50);
	CU_ASSERT_EQUAL(cci_get_opt(other, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
	CU_ASSERT_EQUAL(v, minute);
	child_close(&c);
	util_end_close(&e);
}

/* The most messages that an endpoint holds for its program. */
static void
as_many_messages_are_received_as_there_are_buffers(void)
{
	uint32_t count = 8;
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	for (uint32_t i = 0; i < 3 * count; i++)
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == count));
	UTIL_FOR_MS(&p, 30);
	CU_ASSERT_EQUAL(util_end_count(&p.e[1], CCI_EVENT_RECV), count);
	CU_ASSERT_EQUAL(p.e[1].last, CCI_ENOBUFS);
	/* one for one */
	ev = util_end_take(&p.e[1], CCI_EVENT_RECV);
	util_return(ev);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == count));
	for (uint32_t i = 1; i < 3 * count; i++) {
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &i, sizeof(i)), 0);
		util_return(ev);
	}
	util_pair_turn(&p);
	CU_ASSERT_EQUAL(p.e[1].last, CCI_EAGAIN);
	util_pair_close(&p);
}

static void
buffers_can_be_added_while_all_are_in_use(void)
{
	uint32_t count = 4;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	for (uint32_t i = 0; i < 300; i++)
		while (cci_send(p.e[0].conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)
			util_pair_turn(&p);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == count));
	count = 300;
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
	CU_ASSERT(UTIL_UNTIL(&p, util_end_count(&p.e[1], CCI_EVENT_RECV) == count));
	util_pair_close(&p);
}

/* The most sends that are not over; the peer takes none meanwhile. */
static void
as_many_sends_are_kept_as_there_are_buffers(void)
{
	uint32_t sends = 10, recvs = 1, n = 0;
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &sends), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &recvs), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &n, sizeof(n), NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	while (n < 1000 && cci_send(p.e[0].conn, &n, sizeof(n), COOKIE(n), 0) == CCI_SUCCESS)
		n++;
	CU_ASSERT_EQUAL(n, sends);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &n, sizeof(n), COOKIE(n), 0), CCI_ENOBUFS);
	for (uint32_t i = 0; i < sends + 1; i++) {
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		util_return(ev);
	}
	for (uint32_t i = 0; i < sends; i++)
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, &n, sizeof(n), COOKIE(n), 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	util_pair_close(&p);
}

const struct api_test cci_opt_tests[] = {
	T(every_option_keeps_what_was_set),
	T(options_begin_as_the_manual_says),
	T(wrong_names_and_pointers_are_refused),
	T(an_option_of_the_other_kind_of_handle_is_refused),
	T(an_unreliable_connection_has_no_timeouts),
	T(counts_that_cannot_be_had_are_out_of_range),
	T(rma_alignments_are_powers_of_two),
	T(an_endpoints_send_timeout_is_that_of_new_connections),
	T(an_endpoints_keepalive_is_that_of_all_connections),
	T(a_keepalive_that_is_set_again_stays_set),
	T(as_many_messages_are_received_as_there_are_buffers),
	T(buffers_can_be_added_while_all_are_in_use),
	T(as_many_sends_are_kept_as_there_are_buffers),
	{NULL, NULL, NULL, NULL},
};
