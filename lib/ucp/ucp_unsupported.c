/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_unsupported.c - public functions that answer UCS_ERR_UNSUPPORTED
 *
 * Design notes
 * - Every function of the headers is exported, so that any program links; those
 *   with nothing behind them stand here. Each moves to the file of its noun when it
 *   comes to work. In the end only the GPU-side device API is left.
 * - A function that cannot answer a status answers 0 or does nothing.
 */
#include <ucp/api/device/ucp_host.h>
#include <ucp/api/ucp.h>

#define UNUSED UCS_V_UNUSED

/* --- stream --- */

ssize_t
ucp_stream_worker_poll(ucp_worker_h worker UNUSED, ucp_stream_poll_ep_t *poll_eps UNUSED,
	size_t max_eps UNUSED, unsigned flags UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_ptr_t
ucp_stream_send_nbx(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t count UNUSED,
	const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_stream_recv_nbx(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t count UNUSED,
	size_t *length UNUSED, const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_stream_recv_data_nb(ucp_ep_h ep UNUSED, size_t *length UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

void
ucp_stream_data_release(ucp_ep_h ep UNUSED, void *data UNUSED)
{
}

ucs_status_t
ucp_stream_recv_request_test(void *request UNUSED, size_t *length_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_ptr_t
ucp_stream_send_nb(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t count UNUSED,
	ucp_datatype_t datatype UNUSED, ucp_send_callback_t cb UNUSED, unsigned flags UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_stream_recv_nb(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t count UNUSED,
	ucp_datatype_t datatype UNUSED, ucp_stream_recv_callback_t cb UNUSED, size_t *length UNUSED,
	unsigned flags UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

/* --- active messages --- */

ucs_status_ptr_t
ucp_am_send_nbx(ucp_ep_h ep UNUSED, unsigned id UNUSED, const void *header UNUSED,
	size_t header_length UNUSED, const void *buffer UNUSED, size_t count UNUSED,
	const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_am_recv_data_nbx(ucp_worker_h worker UNUSED, void *data_desc UNUSED, void *buffer UNUSED,
	size_t count UNUSED, const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

void
ucp_am_data_release(ucp_worker_h worker UNUSED, void *data UNUSED)
{
}

ucs_status_ptr_t
ucp_am_send_nb(ucp_ep_h ep UNUSED, uint16_t id UNUSED, const void *buffer UNUSED,
	size_t count UNUSED, ucp_datatype_t datatype UNUSED, ucp_send_callback_t cb UNUSED,
	unsigned flags UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

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
