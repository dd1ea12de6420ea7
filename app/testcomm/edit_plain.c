/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * edit_plain.c - the prompt without libedit: the terminal edits the line, as far as it does
 */
#include <unistd.h>

#include "testcomm.h"

int
tc_edit_run(struct tc *tc)
{
	return tc_run_fd(tc, STDIN_FILENO, NULL);
}
