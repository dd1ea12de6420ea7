/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_unsupported.c - public functions that return UCS_ERR_UNSUPPORTED
 *
 * Design notes
 * - Every function of the headers is exported, so that any program links; those without an
 *   implementation are here: functions by which a GPU would communicate.
 * - A function without a status returns 0 or does nothing.
 */
#include <ucp/api/device/ucp_host.h>
#include <ucp/api/ucp.h>

#define UNUSED UCS_V_UNUSED

/* --- GPU --- */

ucs_status_t
ucp_device_local_mem_list_create(const ucp_device_mem_list_params_t *params UNUSED,
	ucp_device_local_mem_list_h *mem_list_h UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_device_remote_mem_list_create(const ucp_device_mem_list_params_t *params UNUSED,
	ucp_device_remote_mem_list_h *mem_list_h UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

uint32_t
ucp_device_get_mem_list_length(const void *mem_list_h UNUSED)
{
	return 0;
}

void
ucp_device_mem_list_release(void *mem_list_h UNUSED)
{
}

ucs_status_t
ucp_device_counter_init(ucp_worker_h worker UNUSED,
	const ucp_device_counter_params_t *params UNUSED, void *counter_ptr UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

uint64_t
ucp_device_counter_read(ucp_worker_h worker UNUSED,
	const ucp_device_counter_params_t *params UNUSED, void *counter_ptr UNUSED)
{
	return 0;
}
