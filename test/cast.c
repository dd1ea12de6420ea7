/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cast.c - sends unreliable messages of CCI, to a group or to another process, or receives them; for
 * cci_hosts_test.py
 *
 * usage: cast rx GROUP N         says "joined", then which numbers came, until N - 1 has
 *        cast rx - N             the same of one connection; says its URI in place of "joined"
 *        cast tx GROUP|URI N     sends the numbers up to N - 1, a millisecond apart
 *
 * Each number has a message of a length and contents of its own.
 */
#include <stdlib.h>

#include "cci_util.h"

#define MAX	   100000
#define LEN_MAX	   1024 /* of messages to a group */
#define DEADLINE_S 20
#define FIRST_S	   80 /* until a sender has started, perhaps by emulation */
#define LINGER_MS  500 /* of datagrams on their way */

static struct end end;

static uint32_t
message_of(uint32_t i, uint8_t msg[LEN_MAX])
{
	uint32_t len = sizeof(i) + i * 37 % (LEN_MAX - sizeof(i) + 1);

	util_fill(msg, len, i);
	memcpy(msg, &i, sizeof(i));
	return len;
}

static cci_event_t *
wait_for(cci_event_type_t type)
{
	uint64_t until = util_now_ns() + FIRST_S * 1000000000ull;
	cci_event_t *ev;

	while ((ev = util_end_take(&end, type)) == NULL && util_now_ns() < until)
		util_end_poll(&end);
	if (ev == NULL)
		UTIL_DIE("no event %d", type);
	return ev;
}

static cci_connection_t *
join(const char *uri, cci_conn_attribute_t attribute)
{
	cci_connection_t *conn;
	cci_event_t *ev;

	UTIL_OK(cci_connect(end.ep, uri, NULL, 0, attribute, NULL, 0, NULL));
	ev = wait_for(CCI_EVENT_CONNECT);
	if (ev->connect.status != CCI_SUCCESS)
		UTIL_DIE("not joined");
	conn = ev->connect.connection;
	util_return(ev);
	return conn;
}

static void
accept_one(void)
{
	char *uri;
	cci_event_t *ev;

	UTIL_OK(cci_get_opt(end.ep, CCI_OPT_ENDPT_URI, &uri));
	puts(uri);
	fflush(stdout);
	free(uri);
	ev = wait_for(CCI_EVENT_CONNECT_REQUEST);
	UTIL_OK(cci_accept(ev, NULL));
	util_return(ev);
}

static void
turn_for_ms(unsigned ms)
{
	uint64_t until = util_now_ns() + ms * 1000000ull;

	while (util_now_ns() < until)
		util_end_poll(&end);
}

static void
cast(const char *uri, uint32_t n)
{
	bool group = strstr(uri, "://mc/") != NULL;
	cci_connection_t *conn = join(uri, group ? CCI_CONN_ATTR_UU_MC_TX : CCI_CONN_ATTR_UU);
	uint8_t msg[LEN_MAX];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = message_of(i, msg);

		UTIL_OK(cci_send(conn, msg, len, NULL, CCI_FLAG_SILENT));
		turn_for_ms(1);
	}
	turn_for_ms(LINGER_MS);
}

/* @return the number of a message that is whole */
static uint32_t
number_of(const cci_event_t *ev, uint32_t n)
{
	uint8_t msg[LEN_MAX];
	uint32_t i;

	if (ev->recv.len < sizeof(i))
		UTIL_DIE("%u bytes", ev->recv.len);
	memcpy(&i, ev->recv.ptr, sizeof(i));
	if (i >= n || ev->recv.len != message_of(i, msg) || memcmp(ev->recv.ptr, msg, ev->recv.len) != 0)
		UTIL_DIE("number %u of %u bytes", i, ev->recv.len);
	return i;
}

static void
hear(uint32_t n)
{
	static uint8_t times[MAX];
	uint64_t until = util_now_ns() + FIRST_S * 1000000000ull;
	unsigned came = 0, twice = 0;
	uint32_t i = 0;
	cci_event_t *ev;

	while (i != n - 1 && util_now_ns() < until) {
		util_end_poll(&end);
		while ((ev = util_end_take(&end, CCI_EVENT_RECV)) != NULL) {
			i = number_of(ev, n);
			util_return(ev);
			if (came++ == 0)
				until = util_now_ns() + DEADLINE_S * 1000000000ull;
			twice += times[i]++ != 0;
		}
	}
	printf("came %u twice %u\n", came, twice);
	if (getenv("PLX_RPC_SOCKET") != NULL)
		printf("bad %llu not_ours %llu\n", (unsigned long long)util_counter("udp_drop_bad"),
			(unsigned long long)util_counter("group_drop_not_ours"));
}

static void
receive(const char *uri, uint32_t n)
{
	if (strcmp(uri, "-") == 0) {
		accept_one();
	} else {
		(void)join(uri, CCI_CONN_ATTR_UU_MC_RX);
		puts("joined");
		fflush(stdout);
	}
	hear(n);
}

int
main(int argc, char **argv)
{
	uint32_t n = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;

	if (n == 0 || n > MAX)
		UTIL_DIE("usage: cast rx|tx URI N");
	util_end_open(&end, NULL, false);
	if (strcmp(argv[1], "rx") == 0)
		receive(argv[2], n);
	else
		cast(argv[2], n);
	util_end_close(&end);
	return 0;
}
