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

/* The free place of a new object with this name, or NULL. */
static void **
object_place(struct tc *tc, void **list, const char *name)
{
	if (tc_name_check(tc, name) != 0)
		return NULL;
	if (tc_find(list, name) != NULL) {
		tc_error(tc, "the name \"%s\" is taken", name);
		return NULL;
	}
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (list[i] == NULL)
			return &list[i];
	}
	tc_error(tc, "there are already %d of these, the maximum", TC_MAX_LIST);
	return NULL;
}

void *
tc_new(struct tc *tc, void **list, size_t size, const char *name)
{
	void **place = object_place(tc, list, name);

	if (place == NULL)
		return NULL;
	*place = calloc(1, size);
	if (*place == NULL)
		tc_error(tc, "no memory");
	else
		strcpy(*place, name);
	return *place;
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
