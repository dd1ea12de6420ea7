/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tc_complete.h - the words that may complete a line
 */
#ifndef TC_COMPLETE_H
#define TC_COMPLETE_H

#include "testcomm.h"

#define TC_MAX_CHOICES 512
#define TC_MAX_CHOICE  128

struct tc_choices {
	unsigned n;
	bool more;                /* others have found no room */
	size_t typed;             /* characters of the word that stand there already */
	const struct tc_cmd *cmd; /* whose argument is typed, or NULL */
	char word[TC_MAX_CHOICES][TC_MAX_CHOICE]; /* in their order, none twice */
};

/** The words that the last word of a line may become. */
void tc_complete(struct tc *tc, const char *line, struct tc_choices *c);

#endif /* TC_COMPLETE_H */
