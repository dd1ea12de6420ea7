/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_host.c - a program with two workers that ends when its input is closed:
 * something for rpc_test.py to look at
 */
#include <poll.h>

#include "ucp_util.h"

int
main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	struct pair p;
	char c;
	int i;

	util_pair_open(&p, true, UCS_THREAD_MODE_SINGLE);
	do {
		for (i = 0; i < 100; i++)
			util_pair_turn(&p);
	} while (poll(&in, 1, 1) == 0 || ((in.revents & POLLIN) && read(STDIN_FILENO, &c, 1) == 1));
	util_pair_close(&p);
	return 0;
}
