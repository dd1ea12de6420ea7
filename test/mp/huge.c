/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * huge.c - one message longer than 32 bits can count
 *
 * arguments after N: bytes
 */
#include "mp.h"

enum { STEP = 4096 };

int
main(int argc, char **argv)
{
	struct mp m;
	struct op op;
	size_t len, i;
	uint8_t *buf;

	mp_open(&m, argc, argv);
	len = strtoull(argv[4], NULL, 0);
	buf = malloc(len);
	if (buf == NULL)
		UTIL_DIE("no memory for %zu bytes", len);
	mp_connect(&m, !m.rank);
	if (m.rank == 0) {
		for (i = 0; i + 8 <= len; i += STEP) {
			uint64_t word = util_mix(i);

			memcpy(buf + i, &word, 8);
		}
		buf[len - 1] = 0x77;
		util_send(&op, m.ep[1], buf, len, 5, UTIL_NO_IMM);
		MP_UNTIL(&m, util_done(&op));
	} else {
		util_recv(&op, m.w, buf, len, 5, UTIL_ALL_BITS, UTIL_NO_IMM);
		MP_UNTIL(&m, util_done(&op));
		if (op.info.length != len)
			UTIL_DIE("%zu of %zu bytes", op.info.length, len);
		for (i = 0; i + 8 <= len; i += STEP) {
			uint64_t word = util_mix(i);

			if (memcmp(buf + i, &word, 8) != 0)
				UTIL_DIE("byte %zu of %zu", i, len);
		}
		if (buf[len - 1] != 0x77)
			UTIL_DIE("the last byte");
	}
	util_free(&op);
	if (op.status != UCS_OK)
		UTIL_DIE("%s", ucs_status_string(op.status));
	mp_close_eps(&m);
	mp_close(&m);
	free(buf);
	return 0;
}
