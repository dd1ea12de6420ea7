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

/* --- waiting --- */

ucs_status_t
ucp_worker_get_efd(ucp_worker_h worker UNUSED, int *fd UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_worker_wait(ucp_worker_h worker UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_worker_arm(ucp_worker_h worker UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

/* --- listener --- */

ucs_status_t
ucp_listener_create(ucp_worker_h worker UNUSED, const ucp_listener_params_t *params UNUSED,
	ucp_listener_h *listener_p UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

void
ucp_listener_destroy(ucp_listener_h listener UNUSED)
{
}

ucs_status_t
ucp_listener_query(ucp_listener_h listener UNUSED, ucp_listener_attr_t *attr UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_listener_reject(ucp_listener_h listener UNUSED, ucp_conn_request_h conn_request UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

ucs_status_t
ucp_conn_request_query(ucp_conn_request_h conn_request UNUSED, ucp_conn_request_attr_t *attr UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
}

/* --- ep --- */

ucs_status_t
ucp_ep_evaluate_perf(ucp_ep_h ep UNUSED, const ucp_ep_evaluate_perf_param_t *param UNUSED,
	ucp_ep_evaluate_perf_attr_t *attr UNUSED)
{
	return UCS_ERR_UNSUPPORTED;
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
