/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * leave.c - rank 0 sends, closes its ep with a flush and is gone; rank 1 wakes
 * later and finds every message
 *
 * arguments after N: how rank 0 leaves: destroy or exit
 */
#include "mp.h"

enum { N = 500, MAX = 40000 };

static size_t
length(int i)
{
	static const size_t lens[] = {8, 0, 100, 2000, 9000, 64, 30000, 1};

	return lens[i % 8];
}

int
main(int argc, char **argv)
{
	static struct op send[N];
	static uint8_t buf[MAX], want[MAX];
	struct op recv;
	struct mp m;
	int i;

	mp_open(&m, argc, argv);
	mp_connect(&m, !m.rank);
	if (m.rank == 0) {
		util_fill(buf, MAX, 5);
		for (i = 0; i < N; i++)
			util_send(&send[i], m.ep[1], buf, length(i), (unsigned)i, UTIL_NBX);
		for (i = 0; i < N; i++) {
			MP_UNTIL(&m, util_done(&send[i]));
			util_free(&send[i]);
			if (send[i].status != UCS_OK)
				UTIL_DIE("send %d: %s", i, ucs_status_string(send[i].status));
		}
		mp_close_eps(&m);
		if (strcmp(argv[4], "destroy") == 0)
			mp_close(&m);
		_exit(0);
	}
	/* Asleep, while the other does all it can. */
	usleep(700000);
	for (i = 0; i < N; i++) {
		util_recv(&recv, m.w, buf, MAX, (unsigned)i, UTIL_ALL_BITS, UTIL_NO_IMM);
		MP_UNTIL(&m, util_done(&recv));
		util_free(&recv);
		util_fill(want, length(i), 5);
		if (recv.status != UCS_OK || recv.info.length != length(i) ||
			memcmp(buf, want, length(i)) != 0)
			UTIL_DIE("message %d: %s, %zu bytes", i, ucs_status_string(recv.status),
				recv.info.length);
	}
	mp_close_eps(&m);
	mp_close(&m);
	return 0;
}
