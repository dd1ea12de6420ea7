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

/* --- memory of others --- */

ucs_status_t
ucp_rkey_pack(ucp_context_h context UNUSED, ucp_mem_h memh UNUSED, void **rkey_buffer_p UNUSED,
	size_t *size_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

void
ucp_rkey_buffer_release(void *rkey_buffer UNUSED)
{
}

/* --- memory of other contexts and keys --- */

ucs_status_t
ucp_memh_pack(ucp_mem_h memh UNUSED, const ucp_memh_pack_params_t *params UNUSED,
	void **buffer_p UNUSED, size_t *buffer_size_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

void
ucp_memh_buffer_release(void *buffer UNUSED, const ucp_memh_buffer_release_params_t *params UNUSED)
{
}

ucs_status_t
ucp_ep_rkey_unpack(ucp_ep_h ep UNUSED, const void *rkey_buffer UNUSED, ucp_rkey_h *rkey_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_rkey_ptr(ucp_rkey_h rkey UNUSED, uint64_t raddr UNUSED, void **addr_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_rkey_compare(ucp_worker_h worker UNUSED, ucp_rkey_h rkey1 UNUSED, ucp_rkey_h rkey2 UNUSED,
	const ucp_rkey_compare_params_t *params UNUSED, int *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

void
ucp_rkey_destroy(ucp_rkey_h rkey UNUSED)
{
}

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

/* --- put, get, atomics --- */

ucs_status_ptr_t
ucp_put_nbx(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t count UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED,
	const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_get_nbx(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t count UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED,
	const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_atomic_op_nbx(ucp_ep_h ep UNUSED, ucp_atomic_op_t opcode UNUSED, const void *buffer UNUSED,
	size_t count UNUSED, uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED,
	const ucp_request_param_t *param UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_t
ucp_put(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t length UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_get(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t length UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_put_nbi(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t length UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_get_nbi(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t length UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_ptr_t
ucp_put_nb(ucp_ep_h ep UNUSED, const void *buffer UNUSED, size_t length UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED, ucp_send_callback_t cb UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_ptr_t
ucp_get_nb(ucp_ep_h ep UNUSED, void *buffer UNUSED, size_t length UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED, ucp_send_callback_t cb UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_t
ucp_atomic_post(ucp_ep_h ep UNUSED, ucp_atomic_post_op_t opcode UNUSED, uint64_t value UNUSED,
	size_t op_size UNUSED, uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_ptr_t
ucp_atomic_fetch_nb(ucp_ep_h ep UNUSED, ucp_atomic_fetch_op_t opcode UNUSED, uint64_t value UNUSED,
	void *result UNUSED, size_t op_size UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED, ucp_send_callback_t cb UNUSED)
{
	return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

ucs_status_t
ucp_atomic_add32(ucp_ep_h ep UNUSED, uint32_t add UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_add64(ucp_ep_h ep UNUSED, uint64_t add UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_fadd32(ucp_ep_h ep UNUSED, uint32_t add UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED, uint32_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_fadd64(ucp_ep_h ep UNUSED, uint64_t add UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED, uint64_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_swap32(ucp_ep_h ep UNUSED, uint32_t swap UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED, uint32_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_swap64(ucp_ep_h ep UNUSED, uint64_t swap UNUSED, uint64_t remote_addr UNUSED,
	ucp_rkey_h rkey UNUSED, uint64_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_cswap32(ucp_ep_h ep UNUSED, uint32_t compare UNUSED, uint32_t swap UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED, uint32_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_atomic_cswap64(ucp_ep_h ep UNUSED, uint64_t compare UNUSED, uint64_t swap UNUSED,
	uint64_t remote_addr UNUSED, ucp_rkey_h rkey UNUSED, uint64_t *result UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
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
