/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * marks.h - what a program tells icount while icount steps it
 */
#ifndef ICOUNT_MARKS_H
#define ICOUNT_MARKS_H

#define ICOUNT_REPEATS 15 /* of each row */

enum icount_mark {
	ICOUNT_CLOCK, /* from here on time stands still, but for a little at each look at the clock */
	ICOUNT_BEGIN, /* the instructions of this thread belong to the row that is named */
	ICOUNT_END,
	ICOUNT_HOLD, /* the reactor's thread stops before the next turn of the poller named "0", "1" ... */
	ICOUNT_TURN, /* it runs to its next turn; these instructions belong to the row, if one is named */
	ICOUNT_LET,  /* it runs freely again */
};

/** Tell icount. @param name of a row or a poller, or NULL */
void icount_mark(enum icount_mark mark, const char *name);

/** One row: what is counted, and what stands before and behind it, which may be NULL. */
struct icount_row {
	const char *name;
	void (*before)(void);
	void (*call)(void);
	void (*after)(void);
};

/** Count rows, up to one without a name. */
void icount_rows(const struct icount_row *rows);

#endif
