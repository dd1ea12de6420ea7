/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * standin.c - a program that takes from libucs and libuct what such programs take; says whose they are
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>
#include <ucs/memory/memory_type.h>
#include <ucs/type/thread_mode.h>

ucs_status_t uct_query_components(void **components_p, unsigned *num_components_p);
void uct_release_component_list(void *components);

static int
check(int good, const char *what)
{
	if (!good)
		fprintf(stderr, "not as it should be: %s\n", what);
	return !good;
}

int
main(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_context_h ctx;
	void *components;
	Dl_info info;
	unsigned n;
	int wrong = 0;

	wrong += check(strcmp(ucs_status_string(UCS_ERR_NO_MEMORY), "Out of memory") == 0, "a status");
	wrong += check(strcmp(ucs_memory_type_names[UCS_MEMORY_TYPE_HOST], "host") == 0, "a memory type");
	wrong += check(strcmp(ucs_thread_mode_names[UCS_THREAD_MODE_MULTI], "multi") == 0, "a thread mode");
	wrong += check(uct_query_components(&components, &n) == UCS_OK, "components");
	uct_release_component_list(components);
	wrong += check(ucp_init(&params, NULL, &ctx) == UCS_OK, "a context");
	if (wrong == 0)
		ucp_cleanup(ctx);
	if (dladdr((void *)(uintptr_t)ucs_status_string, &info) != 0)
		printf("libucs %s\n", info.dli_fname);
	return wrong != 0;
}
