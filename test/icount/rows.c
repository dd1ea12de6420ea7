/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rows.c - rows that are counted one after the other
 */
#include <stddef.h>

#include "marks.h"

void
icount_rows(const struct icount_row *rows)
{
	for (; rows->name != NULL; rows++) {
		for (int i = 0; i < ICOUNT_REPEATS; i++) {
			if (rows->before != NULL)
				rows->before();
			icount_mark(ICOUNT_BEGIN, rows->name);
			rows->call();
			icount_mark(ICOUNT_END, NULL);
			if (rows->after != NULL)
				rows->after();
		}
	}
}
