/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_init.c - start, end, texts
 */
#include "cci_api_test.h"

static const struct {
	enum cci_status status;
	const char *name;
} statuses[] = {
	{CCI_SUCCESS, "CCI_SUCCESS"},
	{CCI_ERROR, "CCI_ERROR"},
	{CCI_ERR_DISCONNECTED, "CCI_ERR_DISCONNECTED"},
	{CCI_ERR_RNR, "CCI_ERR_RNR"},
	{CCI_ERR_DEVICE_DEAD, "CCI_ERR_DEVICE_DEAD"},
	{CCI_ERR_RMA_HANDLE, "CCI_ERR_RMA_HANDLE"},
	{CCI_ERR_RMA_OP, "CCI_ERR_RMA_OP"},
	{CCI_ERR_NOT_IMPLEMENTED, "CCI_ERR_NOT_IMPLEMENTED"},
	{CCI_ERR_NOT_FOUND, "CCI_ERR_NOT_FOUND"},
	{CCI_EINVAL, "CCI_EINVAL"},
	{CCI_ETIMEDOUT, "CCI_ETIMEDOUT"},
	{CCI_ENOMEM, "CCI_ENOMEM"},
	{CCI_ENODEV, "CCI_ENODEV"},
	{CCI_ENETDOWN, "CCI_ENETDOWN"},
	{CCI_EBUSY, "CCI_EBUSY"},
	{CCI_ERANGE, "CCI_ERANGE"},
	{CCI_EAGAIN, "CCI_EAGAIN"},
	{CCI_ENOBUFS, "CCI_ENOBUFS"},
	{CCI_EMSGSIZE, "CCI_EMSGSIZE"},
	{CCI_ENOMSG, "CCI_ENOMSG"},
	{CCI_EADDRNOTAVAIL, "CCI_EADDRNOTAVAIL"},
	{CCI_ECONNREFUSED, "CCI_ECONNREFUSED"},
};
#define N_STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static void
init_counts_and_the_last_finalize_ends(void)
{
	cci_device_t *const *devices;
	uint32_t caps = 0;

	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_devices(&devices), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	CU_ASSERT_NOT_EQUAL(cci_get_devices(&devices), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
}

static void
init_refuses_what_it_does_not_know(void)
{
	uint32_t caps;

	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 0, NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_init(0, 0, &caps), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION + 1, 0, &caps), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 1, &caps), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
}

/* Programs that were written by the manual pass 1. */
static void
init_takes_the_abi_of_the_manual(void)
{
	uint32_t caps = 0;

	CU_ASSERT_EQUAL(cci_init(1, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
init_tells_that_it_is_thread_safe(void)
{
	uint32_t caps = 0xeeeeeeee;

	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(caps, 1);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
a_refused_init_leaves_the_one_before_in_force(void)
{
	cci_device_t *const *devices;
	uint32_t caps;

	CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_init(CCI_ABI_VERSION, 4, &caps), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_get_devices(&devices), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
}

static void
finalize_ends_endpoints_that_are_left(void)
{
	uint32_t caps;

	for (int i = 0; i < 3; i++) {
		cci_endpoint_t *ep;
		cci_os_handle_t fd;

		CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_create_endpoint_at(NULL, "left", 0, &ep, &fd), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	}
}

static void
nothing_works_before_init(void)
{
	cci_device_t *const *devices;
	cci_endpoint_t *ep;

	CU_ASSERT_NOT_EQUAL(cci_get_devices(&devices), CCI_SUCCESS);
	CU_ASSERT_NOT_EQUAL(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
	CU_ASSERT_NOT_EQUAL(cci_create_endpoint_at(NULL, "s", 0, &ep, NULL), CCI_SUCCESS);
}

static void
every_status_has_its_own_text(void)
{
	for (size_t i = 0; i < N_STATUSES; i++) {
		const char *text = cci_strerror(NULL, statuses[i].status);

		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
		CU_ASSERT(strlen(text) > 3);
		CU_ASSERT_STRING_NOT_EQUAL(text, cci_strerror(NULL, (enum cci_status)4711));
		for (size_t k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(text, cci_strerror(NULL, statuses[k].status));
	}
}

/* Programs print it with %s. */
static void
a_status_that_is_none_has_a_text_too(void)
{
	CU_ASSERT_PTR_NOT_NULL(cci_strerror(NULL, (enum cci_status)4711));
	CU_ASSERT_PTR_NOT_NULL(cci_strerror(NULL, (enum cci_status)-1));
	CU_ASSERT_PTR_NOT_NULL(cci_strerror(NULL, (enum cci_status)9));
}

static void
texts_are_the_same_with_an_endpoint(void)
{
	struct end e;

	util_end_open(&e, NULL, false);
	for (size_t i = 0; i < N_STATUSES; i++)
		CU_ASSERT_STRING_EQUAL(cci_strerror(e.ep, statuses[i].status),
			cci_strerror(NULL, statuses[i].status));
	util_end_close(&e);
}

static void
event_types_have_their_names(void)
{
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_NONE), "CCI_EVENT_NONE");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_SEND), "CCI_EVENT_SEND");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_RECV), "CCI_EVENT_RECV");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_CONNECT), "CCI_EVENT_CONNECT");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_CONNECT_REQUEST),
		"CCI_EVENT_CONNECT_REQUEST");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_ACCEPT), "CCI_EVENT_ACCEPT");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_KEEPALIVE_TIMEDOUT),
		"CCI_EVENT_KEEPALIVE_TIMEDOUT");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str(CCI_EVENT_ENDPOINT_DEVICE_FAILED),
		"CCI_EVENT_ENDPOINT_DEVICE_FAILED");
	CU_ASSERT_STRING_EQUAL(cci_event_type_str((cci_event_type_t)99), "Unknown event");
}

/* As the library that programs were compiled for has them. */
static void
constants_and_layouts_are_those_of_abi_2(void)
{
	CU_ASSERT_EQUAL(CCI_ABI_VERSION, 2);
	CU_ASSERT_EQUAL(CCI_CONN_REQ_LEN, 1024);
	CU_ASSERT_EQUAL(CCI_FLAG_BLOCKING, 1);
	CU_ASSERT_EQUAL(CCI_FLAG_NO_COPY, 2);
	CU_ASSERT_EQUAL(CCI_FLAG_SILENT, 8);
	CU_ASSERT_EQUAL(CCI_FLAG_READ, 16);
	CU_ASSERT_EQUAL(CCI_FLAG_WRITE, 32);
	CU_ASSERT_EQUAL(CCI_FLAG_FENCE, 64);
	CU_ASSERT_EQUAL(CCI_ERR_NOT_FOUND, 8);
	CU_ASSERT_EQUAL(CCI_CONN_ATTR_UU_MC_RX, 4);
	CU_ASSERT_EQUAL(CCI_EVENT_ENDPOINT_DEVICE_FAILED, 7);
	CU_ASSERT_EQUAL(CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 7);
	CU_ASSERT_EQUAL(sizeof(struct cci_device), 72);
	CU_ASSERT_EQUAL(offsetof(struct cci_device, conf_argv), 32);
	CU_ASSERT_EQUAL(offsetof(struct cci_device, rate), 48);
	CU_ASSERT_EQUAL(sizeof(struct cci_endpoint), 8);
	CU_ASSERT_EQUAL(sizeof(struct cci_connection), 32);
	CU_ASSERT_EQUAL(offsetof(struct cci_connection, context), 24);
	CU_ASSERT_EQUAL(sizeof(union cci_event), 24);
	CU_ASSERT_EQUAL(offsetof(struct cci_event_send, connection), 8);
	CU_ASSERT_EQUAL(offsetof(struct cci_event_connect, context), 8);
	CU_ASSERT_EQUAL(offsetof(struct cci_event_recv, ptr), 8);
	CU_ASSERT_EQUAL(offsetof(struct cci_event_connect_request, attribute), 16);
	CU_ASSERT_EQUAL(sizeof(struct cci_rma_handle), 32);
	CU_ASSERT_EQUAL(sizeof(struct cci_alignment), 24);
}

const struct api_test cci_init_tests[] = {
	T(nothing_works_before_init),
	T(init_counts_and_the_last_finalize_ends),
	T(init_refuses_what_it_does_not_know),
	T(init_takes_the_abi_of_the_manual),
	T(init_tells_that_it_is_thread_safe),
	T(a_refused_init_leaves_the_one_before_in_force),
	T_NEEDS(finalize_ends_endpoints_that_are_left, lacks_names),
	T(every_status_has_its_own_text),
	T(a_status_that_is_none_has_a_text_too),
	T(texts_are_the_same_with_an_endpoint),
	T(event_types_have_their_names),
	T(constants_and_layouts_are_those_of_abi_2),
	{NULL, NULL, NULL, NULL},
};
