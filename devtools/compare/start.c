/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * start.c - time of the process's first ucp_init and worker, in ms, and its memory behind them, in KiB
 */
#include <stdio.h>

#include <ucp/api/ucp.h>

#include "measure.h"

int
main(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM};
	ucp_worker_params_t worker_params = {0};
	double start = now_ms(), init, worker_ms;
	ucp_worker_h worker;
	ucp_context_h context;

	if (ucp_init(&params, NULL, &context) != UCS_OK)
		return 1;
	init = now_ms();
	if (ucp_worker_create(context, &worker_params, &worker) != UCS_OK)
		return 1;
	worker_ms = now_ms() - init;
	init -= start;
	printf("init_ms %.3f\nworker_ms %.3f\nstart_ms %.3f\nmemory_kib %ld\n", init, worker_ms, init + worker_ms,
		resident_kib());
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	return 0;
}
