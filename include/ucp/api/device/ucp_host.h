/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_host.h - the host's part of communication started by a GPU
 *
 * The functions exist so that programs link; each answers UCS_ERR_UNSUPPORTED, and
 * ucp_init() refuses UCP_FEATURE_DEVICE. The part that runs in a GPU kernel is not
 * there: it is compiled into the kernel and depends on UCX's inner structures.
 * Thread: control, for all of them.
 */
#ifndef UCP_HOST_H_
#define UCP_HOST_H_

#include <sys/types.h>

#include <ucp/api/ucp_def.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/* Fields of ucp_device_mem_list_elem_t. */
enum ucp_device_mem_list_elem_field {
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_MEMH = UCS_BIT(0),
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_RKEY = UCS_BIT(1),
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_LOCAL_ADDR = UCS_BIT(2),
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_REMOTE_ADDR = UCS_BIT(3),
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_LENGTH = UCS_BIT(4),
	UCP_DEVICE_MEM_LIST_ELEM_FIELD_EP = UCS_BIT(5)
};

/** One piece of memory, local or remote, that a GPU will name by its index. */
typedef struct ucp_device_mem_list_elem {
	uint64_t field_mask;  /* enum ucp_device_mem_list_elem_field */
	ucp_mem_h memh;       /* the local memory */
	void *local_addr;     /* first local byte */
	size_t length;        /* bytes */
	uint64_t remote_addr; /* first remote byte */
	ucp_rkey_h rkey;      /* the right to it */
	ucp_ep_h ep;          /* the way to it */
} ucp_device_mem_list_elem_t;

/* Fields of ucp_device_mem_list_params_t. */
enum ucp_device_mem_list_params_field {
	UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENTS = UCS_BIT(0),
	UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENT_SIZE = UCS_BIT(1),
	UCP_DEVICE_MEM_LIST_PARAMS_FIELD_NUM_ELEMENTS = UCS_BIT(2),
	UCP_DEVICE_MEM_LIST_PARAMS_FIELD_WORKER = UCS_BIT(3)
};

/** A list of pieces; read during the call only. */
typedef struct ucp_device_mem_list_params {
	uint64_t field_mask; /* enum ucp_device_mem_list_params_field */
	size_t element_size; /* bytes of one element as the caller knows it */
	size_t num_elements;
	ucp_worker_h worker;
	const ucp_device_mem_list_elem_t *elements;
} ucp_device_mem_list_params_t;

/* Fields of ucp_device_counter_params_t. */
enum ucp_device_counter_params_field {
	UCP_DEVICE_COUNTER_PARAMS_FIELD_MEM_TYPE = UCS_BIT(0),
	UCP_DEVICE_COUNTER_PARAMS_FIELD_MEMH = UCS_BIT(1)
};

/** Where a counter lies. */
typedef struct ucp_device_counter_params {
	uint64_t field_mask; /* enum ucp_device_counter_params_field */
	ucs_memory_type_t mem_type;
	ucp_mem_h memh;
} ucp_device_counter_params_t;

/** Make a list of local memory. @return UCS_ERR_UNSUPPORTED; *mem_list_h is not set */
ucs_status_t ucp_device_local_mem_list_create(
	const ucp_device_mem_list_params_t *params, ucp_device_local_mem_list_h *mem_list_h);

/** Make a list of remote memory. @return UCS_ERR_UNSUPPORTED; *mem_list_h is not set */
ucs_status_t ucp_device_remote_mem_list_create(
	const ucp_device_mem_list_params_t *params, ucp_device_remote_mem_list_h *mem_list_h);

/** @return how many pieces a list has; 0, as there are no lists */
uint32_t ucp_device_get_mem_list_length(const void *mem_list_h);

/** Give a list back; does nothing, as there are no lists. */
void ucp_device_mem_list_release(void *mem_list_h);

/** Set a counter to zero. @return UCS_ERR_UNSUPPORTED; the counter is not touched */
ucs_status_t ucp_device_counter_init(
	ucp_worker_h worker, const ucp_device_counter_params_t *params, void *counter_ptr);

/** Read a counter. @return 0; the counter is not touched */
uint64_t ucp_device_counter_read(
	ucp_worker_h worker, const ucp_device_counter_params_t *params, void *counter_ptr);

END_C_DECLS

#endif
