/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cast.c - sends to a group of CCI, or receives from it, for hosts_test.py
 *
 * usage: cast rx URI N          says "joined", then which numbers came, until N - 1 has
 *        cast tx URI N          sends the numbers up to N - 1, a millisecond apart
 */
#include <stdlib.h>

#include "cci_util.h"

#define MAX	   100000
#define DEADLINE_S 20

static struct end end;

static cci_connection_t *
join(const char *uri, cci_conn_attribute_t attribute)
{
	uint64_t until = util_now_ns() + DEADLINE_S * 1000000000ull;
	cci_connection_t *conn;
	cci_event_t *ev;

	UTIL_OK(cci_connect(end.ep, uri, NULL, 0, attribute, NULL, 0, NULL));
	while ((ev = util_end_take(&end, CCI_EVENT_CONNECT)) == NULL && util_now_ns() < until)
		util_end_poll(&end);
	if (ev == NULL || ev->connect.status != CCI_SUCCESS)
		UTIL_DIE("not joined");
	conn = ev->connect.connection;
	util_return(ev);
	return conn;
}

static void
for_a_ms(void)
{
	uint64_t until = util_now_ns() + 1000000;

	while (util_now_ns() < until)
		util_end_poll(&end);
}

static void
cast(const char *uri, uint32_t n)
{
	cci_connection_t *conn = join(uri, CCI_CONN_ATTR_UU_MC_TX);

	for (uint32_t i = 0; i < n; i++) {
		UTIL_OK(cci_send(conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT));
		for_a_ms();
	}
}

static void
hear(const char *uri, uint32_t n)
{
	static uint8_t times[MAX];
	uint64_t until = util_now_ns() + DEADLINE_S * 1000000000ull;
	unsigned came = 0, twice = 0;
	uint32_t i = 0;
	cci_event_t *ev;

	(void)join(uri, CCI_CONN_ATTR_UU_MC_RX);
	puts("joined");
	fflush(stdout);
	while (i != n - 1 && util_now_ns() < until) {
		util_end_poll(&end);
		while ((ev = util_end_take(&end, CCI_EVENT_RECV)) != NULL) {
			if (ev->recv.len != sizeof(i))
				UTIL_DIE("%u bytes", ev->recv.len);
			memcpy(&i, ev->recv.ptr, sizeof(i));
			util_return(ev);
			if (i >= n)
				UTIL_DIE("number %u", i);
			came++;
			twice += times[i]++ != 0;
		}
	}
	printf("came %u twice %u\n", came, twice);
	if (getenv("PLX_RPC_SOCKET") != NULL)
		printf("bad %llu not_ours %llu\n", (unsigned long long)util_counter("udp_drop_bad"),
			(unsigned long long)util_counter("group_drop_not_ours"));
}

int
main(int argc, char **argv)
{
	uint32_t n = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;

	if (n == 0 || n > MAX)
		UTIL_DIE("usage: cast rx|tx URI N");
	util_end_open(&end, NULL, false);
	if (strcmp(argv[1], "rx") == 0)
		hear(argv[2], n);
	else
		cast(argv[2], n);
	util_end_close(&end);
	return 0;
}
