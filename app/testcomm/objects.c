/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * objects.c - objects by name, in lists with gaps; the struct of each begins with its name
 */
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

void *
tc_find(void *const *list, const char *name)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (list[i] != NULL && strcmp(list[i], name) == 0)
			return list[i];
	}
	return NULL;
}

void *
tc_need(struct tc *tc, void *const *list, const char *what, const char *name)
{
	void *object = tc_find(list, name);

	if (object == NULL)
		tc_error(tc, "there is no %s \"%s\"", what, name);
	return object;
}

int
tc_add(struct tc *tc, void **list, void *object, const char *name)
{
	unsigned i = 0;

	if (object == NULL)
		return tc_error(tc, "no memory");
	if (tc_name_check(tc, name) != 0)
		return -1;
	if (tc_find(list, name) != NULL)
		return tc_error(tc, "the name \"%s\" is taken", name);
	while (i < TC_MAX_LIST && list[i] != NULL)
		i++;
	if (i == TC_MAX_LIST)
		return tc_error(tc, "there are already %d of these, the maximum", TC_MAX_LIST);
	strcpy(object, name);
	list[i] = object;
	return 0;
}

void
tc_remove(void **list, void *object)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (list[i] == object)
			list[i] = NULL;
	}
	free(object);
}
