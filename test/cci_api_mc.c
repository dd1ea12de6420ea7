/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_mc.c - multicast: groups by URI, senders and receivers that come and go
 */
#include "cci_api_test.h"

#define GROUP "cci-api-test"

static void
uri_of(const char *group, char *uri)
{
	snprintf(uri, UTIL_URI_MAX, "%s://mc/%s", util_transport(), group);
}

/* Join a group in one of the two ways; there is no server to ask. */
static cci_connection_t *
join(struct end *e, const char *group, cci_conn_attribute_t attribute)
{
	char uri[UTIL_URI_MAX];
	cci_connection_t *conn;
	cci_event_t *ev;

	uri_of(group, uri);
	CU_ASSERT_EQUAL_FATAL(cci_connect(e->ep, uri, NULL, 0, attribute, COOKIE(5), 0, NULL),
		CCI_SUCCESS);
	ev = end_wait(e, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
	CU_ASSERT_PTR_EQUAL(ev->connect.context, COOKIE(5));
	conn = ev->connect.connection;
	CU_ASSERT_EQUAL(conn->attribute, attribute);
	CU_ASSERT_PTR_EQUAL(conn->context, COOKIE(5));
	CU_ASSERT_PTR_EQUAL(conn->endpoint, e->ep);
	util_return(ev);
	return conn;
}

/* Take a message at an end, on that connection. */
static void
got(struct end *e, cci_connection_t *conn, uint32_t want)
{
	cci_event_t *ev = end_wait(e, CCI_EVENT_RECV);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_PTR_EQUAL(ev->recv.connection, conn);
	CU_ASSERT_EQUAL(ev->recv.len, sizeof(want));
	CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &want, sizeof(want)), 0);
	util_return(ev);
}

static void
every_member_of_a_group_gets_what_is_sent(void)
{
	enum { N = 5 };
	cci_connection_t *rx[N], *tx;
	struct end from, to[N];

	util_end_open(&from, NULL, false);
	for (int i = 0; i < N; i++) {
		util_end_open(&to[i], NULL, false);
		rx[i] = join(&to[i], GROUP, CCI_CONN_ATTR_UU_MC_RX);
	}
	tx = join(&from, GROUP, CCI_CONN_ATTR_UU_MC_TX);
	for (uint32_t k = 0; k < 100; k++) {
		CU_ASSERT_EQUAL(cci_send(tx, &k, sizeof(k), NULL, 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(end_sent(&from), CCI_SUCCESS);
		for (int i = 0; i < N; i++)
			got(&to[i], rx[i], k);
	}
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(to[i].n_kept, 0);
		util_end_close(&to[i]);
	}
	util_end_close(&from);
}

/* Several senders, and members that come after them. */
static void
members_come_and_go(void)
{
	cci_connection_t *tx[2], *rx[2];
	struct end from[2], to[2];
	uint32_t k = 0;

	for (int i = 0; i < 2; i++) {
		util_end_open(&from[i], NULL, false);
		util_end_open(&to[i], NULL, false);
		tx[i] = join(&from[i], GROUP, CCI_CONN_ATTR_UU_MC_TX);
	}
	/* to nobody */
	CU_ASSERT_EQUAL(cci_send(tx[0], &k, sizeof(k), NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(end_sent(&from[0]), CCI_SUCCESS);
	for (k = 1; k < 20; k++) {
		rx[0] = join(&to[0], GROUP, CCI_CONN_ATTR_UU_MC_RX);
		CU_ASSERT_EQUAL(cci_send(tx[k % 2], &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		end_for_ms(&from[k % 2], 1);
		got(&to[0], rx[0], k);
		rx[1] = join(&to[1], GROUP, CCI_CONN_ATTR_UU_MC_RX);
		CU_ASSERT_EQUAL(cci_disconnect(rx[0]), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_send(tx[k % 2], &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		end_for_ms(&from[k % 2], 1);
		got(&to[1], rx[1], k);
		end_for_ms(&to[0], 2);
		CU_ASSERT_EQUAL(to[0].n_kept, 0);
		CU_ASSERT_EQUAL(cci_disconnect(rx[1]), CCI_SUCCESS);
	}
	for (int i = 0; i < 2; i++) {
		util_end_close(&from[i]);
		util_end_close(&to[i]);
	}
}

static void
groups_are_kept_apart(void)
{
	cci_connection_t *tx[2], *rx[2];
	struct end from, to;
	uint32_t k = 7;

	util_end_open(&from, NULL, false);
	util_end_open(&to, NULL, false);
	tx[0] = join(&from, GROUP "-a", CCI_CONN_ATTR_UU_MC_TX);
	tx[1] = join(&from, GROUP "-b", CCI_CONN_ATTR_UU_MC_TX);
	rx[1] = join(&to, GROUP "-b", CCI_CONN_ATTR_UU_MC_RX);
	CU_ASSERT_EQUAL(cci_send(tx[0], &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	end_for_ms(&from, 2);
	end_for_ms(&to, 5);
	CU_ASSERT_EQUAL(to.n_kept, 0);
	rx[0] = join(&to, GROUP "-a", CCI_CONN_ATTR_UU_MC_RX);
	for (int i = 0; i < 2; i++) {
		k++;
		CU_ASSERT_EQUAL(cci_send(tx[i], &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		end_for_ms(&from, 1);
		got(&to, rx[i], k);
	}
	util_end_close(&from);
	util_end_close(&to);
}

/* To both send and receive, an endpoint joins twice; it then hears itself. */
static void
an_endpoint_may_join_in_both_ways(void)
{
	cci_connection_t *tx, *rx;
	uint32_t k = 3;
	struct end e;

	util_end_open(&e, NULL, false);
	rx = join(&e, GROUP, CCI_CONN_ATTR_UU_MC_RX);
	tx = join(&e, GROUP, CCI_CONN_ATTR_UU_MC_TX);
	CU_ASSERT_EQUAL(cci_send(tx, &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	got(&e, rx, k);
	util_end_close(&e);
}

static void
each_way_allows_what_it_is_for(void)
{
	static uint8_t mem[64];
	cci_connection_t *tx, *rx;
	cci_rma_handle_t *h;
	struct end e;

	util_end_open(&e, NULL, false);
	rx = join(&e, GROUP, CCI_CONN_ATTR_UU_MC_RX);
	tx = join(&e, GROUP, CCI_CONN_ATTR_UU_MC_TX);
	UTIL_OK(cci_rma_register(e.ep, mem, sizeof(mem), CCI_FLAG_WRITE, &h));
	CU_ASSERT_EQUAL(cci_send(rx, "no", 2, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(tx, NULL, 0, h, 0, h, 0, 8, NULL, CCI_FLAG_WRITE), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_rma(rx, NULL, 0, h, 0, h, 0, 8, NULL, CCI_FLAG_READ), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_send(tx, mem, tx->max_send_size + 1, NULL, 0), CCI_EMSGSIZE);
	CU_ASSERT_EQUAL(cci_send(tx, "both", 4, NULL, CCI_FLAG_SILENT | CCI_FLAG_NO_COPY), CCI_EINVAL);
	util_end_close(&e);
}

static void
a_group_is_no_endpoint_and_the_other_way_round(void)
{
	static const struct timeval soon = {.tv_usec = 200000};
	static const cci_conn_attribute_t mc[] = {CCI_CONN_ATTR_UU_MC_TX, CCI_CONN_ATTR_UU_MC_RX};
	char uri[UTIL_URI_MAX];
	struct end a, b;
	cci_event_t *ev;
	int rc;

	uri_of(GROUP, uri);
	util_end_open(&a, NULL, false);
	util_end_open(&b, NULL, false);
	for (int i = 0; i < 5; i++) {
		if (i < 3)
			rc = cci_connect(a.ep, uri, NULL, 0, unicast[i], NULL, 0, &soon);
		else
			rc = cci_connect(a.ep, b.uri, NULL, 0, mc[i - 3], NULL, 0, &soon);
		if (rc == CCI_SUCCESS) {
			ev = end_wait(&a, CCI_EVENT_CONNECT);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			rc = ev->connect.status;
			util_return(ev);
		}
		CU_ASSERT_NOT_EQUAL(rc, CCI_SUCCESS);
	}
	util_end_close(&a);
	util_end_close(&b);
}

/* A member that does not take its messages loses them, and holds up nobody. */
static void
a_slow_member_holds_up_nobody(void)
{
	cci_connection_t *tx, *rx;
	struct end from, slow, quick;
	uint32_t few = 4;

	util_end_open(&from, NULL, false);
	util_end_open(&slow, NULL, false);
	util_end_open(&quick, NULL, false);
	CU_ASSERT_EQUAL(cci_set_opt(slow.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
	join(&slow, GROUP, CCI_CONN_ATTR_UU_MC_RX);
	rx = join(&quick, GROUP, CCI_CONN_ATTR_UU_MC_RX);
	tx = join(&from, GROUP, CCI_CONN_ATTR_UU_MC_TX);
	for (uint32_t k = 0; k < 20000; k++) {
		CU_ASSERT_EQUAL_FATAL(cci_send(tx, &k, sizeof(k), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		got(&quick, rx, k);
		if (k % 64 == 0)
			util_end_poll(&from);
	}
	util_end_poll(&slow);
	CU_ASSERT(slow.n_kept <= few);
	util_end_close(&from);
	util_end_close(&slow);
	util_end_close(&quick);
}

const struct api_test cci_mc_tests[] = {
	T_NEEDS(every_member_of_a_group_gets_what_is_sent, lacks_groups),
	T_NEEDS(members_come_and_go, lacks_groups),
	T_NEEDS(groups_are_kept_apart, lacks_groups),
	T_NEEDS(an_endpoint_may_join_in_both_ways, lacks_groups),
	T_NEEDS(each_way_allows_what_it_is_for, lacks_groups),
	T(a_group_is_no_endpoint_and_the_other_way_round),
	T_NEEDS(a_slow_member_holds_up_nobody, lacks_groups),
	{NULL, NULL, NULL, NULL},
};
