/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_rma.c - memory, keys, put, get, atomics, fence and flush
 *
 * Both workers live in this process, where all memory is at hand; the same tests with
 * PLX_RMA_SCHEME=device and =message take the ways that private memory of another
 * process takes. What waits inside the call works with the worker itself.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>

#include "ucp_api_test.h"

#define FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)
#define LEN	 (5 * MIB)

/* A pair, a region of node 1, its key on the ep of node 0, and one on a loopback ep of node 1. */
struct rma {
	struct pair p;
	ucp_mem_h mem;
	uint8_t *base;
	size_t len;
	uint64_t addr;
	void *own; /* when the memory is the application's */
	void *blob;
	size_t blob_len;
	ucp_ep_h ep, self;
	ucp_rkey_h rkey, self_rkey;
};

static bool
by_message(void)
{
	const char *v = getenv("PLX_RMA_SCHEME");

	return v != NULL && strcmp(v, "message") == 0;
}

static bool
by_auto(void)
{
	const char *v = getenv("PLX_RMA_SCHEME");

	return v == NULL || strcmp(v, "auto") == 0;
}

static void
pair_open(struct pair *p, uint64_t features, ucs_thread_mode_t mode)
{
	int i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < 2; i++) {
		p->n[i].ctx = util_context(features);
		p->n[i].w = util_worker(p->n[i].ctx, mode);
		UTIL_OK(ucp_worker_get_address(p->n[i].w, &p->n[i].addr, &p->n[i].addr_len));
	}
	for (i = 0; i < 2; i++)
		p->n[i].ep = util_ep(p->n[i].w, p->n[!i].addr);
}

static ucp_mem_h
map(ucp_context_h ctx, void *address, size_t len, unsigned flags, int prot)
{
	ucp_mem_map_params_t params;
	ucp_mem_h mem;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
	params.length = len;
	params.flags = flags;
	if (address != NULL) {
		params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_ADDRESS;
		params.address = address;
	}
	if (prot >= 0) {
		params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_PROT;
		params.prot = (unsigned)prot;
	}
	UTIL_OK(ucp_mem_map(ctx, &params, &mem));
	return mem;
}

static void
query(ucp_mem_h mem, void **address, size_t *len)
{
	ucp_mem_attr_t attr;

	memset(&attr, 0xa5, sizeof(attr));
	attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
	UTIL_OK(ucp_mem_query(mem, &attr));
	*address = attr.address;
	*len = attr.length;
}

static void
rma_open_with(struct rma *r, uint64_t features, size_t len, bool allocate, int prot,
	ucs_thread_mode_t mode)
{
	void *address;

	memset(r, 0, sizeof(*r));
	pair_open(&r->p, features, mode);
	r->ep = r->p.n[0].ep;
	r->self = util_ep(r->p.n[1].w, r->p.n[1].addr);
	if (!allocate) {
		r->own = util_guarded(len);
		memset(r->own, 0, len);
	}
	r->mem = map(r->p.n[1].ctx, r->own, len, allocate ? UCP_MEM_MAP_ALLOCATE : 0, prot);
	query(r->mem, &address, &r->len);
	r->base = address;
	r->addr = (uintptr_t)address;
	UTIL_OK(ucp_rkey_pack(r->p.n[1].ctx, r->mem, &r->blob, &r->blob_len));
	UTIL_OK(ucp_ep_rkey_unpack(r->ep, r->blob, &r->rkey));
	UTIL_OK(ucp_ep_rkey_unpack(r->self, r->blob, &r->self_rkey));
}

static void
rma_open(struct rma *r, size_t len, bool allocate)
{
	rma_open_with(r, FEATURES, len, allocate, -1, UCS_THREAD_MODE_SINGLE);
}

static void
rma_close(struct rma *r)
{
	ucp_rkey_destroy(r->rkey);
	ucp_rkey_destroy(r->self_rkey);
	ucp_rkey_buffer_release(r->blob);
	CU_ASSERT(util_ep_close(&r->p, r->self, 0));
	util_pair_close(&r->p);
}

/* The region goes before its context; keys of it are not used any more. */
static void
rma_unmap(struct rma *r)
{
	CU_ASSERT_EQUAL(ucp_mem_unmap(r->p.n[1].ctx, r->mem), UCS_OK);
	if (r->own != NULL) {
		CU_ASSERT(util_guards_ok(r->own, r->len));
		util_guarded_free(r->own);
	}
}

static unsigned n_cb;

static void
count_cb(void *request, ucs_status_t status, void *user_data)
{
	(void)request;
	n_cb++;
	if (user_data != NULL)
		*(ucs_status_t *)user_data = status;
}

static void
count_nb_cb(void *request, ucs_status_t status)
{
	(void)request;
	(void)status;
	n_cb++;
}

/* Wait for what a call returned. */
static ucs_status_t
finish(struct pair *p, ucs_status_ptr_t ptr)
{
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(ptr))
		return UCS_PTR_RAW_STATUS(ptr);
	if (!UTIL_UNTIL(p, ucp_request_check_status(ptr) != UCS_INPROGRESS))
		UTIL_DIE("not over in %d s", UTIL_DEADLINE_S);
	status = ucp_request_check_status(ptr);
	ucp_request_free(ptr);
	return status;
}

static const ucp_request_param_t no_param;

static ucs_status_t
flush(struct pair *p, ucp_ep_h ep)
{
	return finish(p, ucp_ep_flush_nbx(ep, &no_param));
}

static ucs_status_t
put(struct rma *r, const void *buf, size_t len, uint64_t offset)
{
	return finish(&r->p, ucp_put_nbx(r->ep, buf, len, r->addr + offset, r->rkey, &no_param));
}

static ucs_status_t
get(struct rma *r, void *buf, size_t len, uint64_t offset)
{
	return finish(&r->p, ucp_get_nbx(r->ep, buf, len, r->addr + offset, r->rkey, &no_param));
}

/* --- memory --- */

static ucs_status_t
map_and_unmap(ucp_context_h ctx, const ucp_mem_map_params_t *params)
{
	ucp_mem_h mem;
	ucs_status_t status = ucp_mem_map(ctx, params, &mem);

	if (status == UCS_OK)
		ucp_mem_unmap(ctx, mem);
	return status;
}

static ucs_status_t
try_map(ucp_context_h ctx, uint64_t mask, void *address, size_t len, unsigned flags)
{
	ucp_mem_map_params_t params;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = mask;
	params.address = address;
	params.length = len;
	params.flags = flags;
	return map_and_unmap(ctx, &params);
}

static void
map_takes_and_refuses_what_the_header_says(void)
{
	const uint64_t a = UCP_MEM_MAP_PARAM_FIELD_ADDRESS, l = UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		f = UCP_MEM_MAP_PARAM_FIELD_FLAGS;
	ucp_context_h ctx = util_context(FEATURES);
	char buf[100];

	CU_ASSERT_EQUAL(try_map(ctx, a | l, buf, 100, 0), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_NONBLOCK), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_LOCK), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_SYMMETRIC_RKEY), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, l | f, NULL, 100, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, l, NULL, 0, 0), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, l | f, NULL, 0, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_EQUAL(try_map(ctx, a, buf, 100, 0), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, l, NULL, 100, 0), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, a | l, NULL, 100, 0), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_FIXED), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, l | f, NULL, 100, UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED),
		UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, (void *)(uintptr_t)0x10001234, 100,
		UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(try_map(ctx, a | l | f, buf, 100, UCP_MEM_MAP_NONBLOCK | UCP_MEM_MAP_LOCK),
		UCS_ERR_INVALID_PARAM);
	ucp_cleanup(ctx);
}

static ucs_status_t
try_type(ucp_context_h ctx, unsigned type, unsigned flags)
{
	char buf[100];
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS |
			UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
		.address = flags & UCP_MEM_MAP_ALLOCATE ? NULL : buf, .length = sizeof(buf),
		.flags = flags, .memory_type = (ucs_memory_type_t)type};

	return map_and_unmap(ctx, &params);
}

static void
memory_of_a_type_that_is_not_there_is_not_allocated(void)
{
	ucp_context_h ctx = util_context(FEATURES);

	CU_ASSERT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_HOST, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_UNKNOWN, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_HOST, 0), UCS_OK);
	CU_ASSERT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_UNKNOWN, 0), UCS_OK);
	CU_ASSERT_NOT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_CUDA, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_NOT_EQUAL(try_type(ctx, UCS_MEMORY_TYPE_ROCM, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	CU_ASSERT_NOT_EQUAL(try_type(ctx, 77, UCP_MEM_MAP_ALLOCATE), UCS_OK);
	ucp_cleanup(ctx);
}

/* What a handler of active messages has kept, for ucp_am_recv_data_nbx(). */
static ucs_status_t
keep_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	(void)header;
	(void)header_length;
	(void)length;
	(void)param;
	*(void **)arg = data;
	return UCS_INPROGRESS;
}

enum { N_BUFFER_OPS = 10 };

/* Each operation that has a buffer, on 8 bytes of it. */
static ucs_status_ptr_t
buffer_op(struct rma *r, unsigned i, uint64_t *buf, void *am, ucp_tag_message_h msg,
	const ucp_request_param_t *param)
{
	ucp_worker_h w = r->p.n[1].w;
	ucp_request_param_t word = *param;
	size_t len;

	switch (i) {
	case 0:
		return ucp_tag_send_nbx(r->ep, buf, 8, 1, param);
	case 1:
		return ucp_tag_send_sync_nbx(r->ep, buf, 8, 2, param);
	case 2:
		return ucp_tag_recv_nbx(w, buf, 8, 9, UTIL_ALL_BITS, param);
	case 3:
		return ucp_tag_msg_recv_nbx(w, buf, 8, msg, param);
	case 4:
		return ucp_am_send_nbx(r->ep, 5, NULL, 0, buf, 8, param);
	case 5:
		return ucp_am_recv_data_nbx(w, am, buf, 8, param);
	case 6:
		return ucp_stream_send_nbx(r->ep, buf, 8, param);
	case 7:
		return ucp_stream_recv_nbx(r->self, buf, 8, &len, param);
	case 8:
		return ucp_put_nbx(r->ep, buf, 8, r->addr, r->rkey, param);
	case 9:
		return ucp_get_nbx(r->ep, buf, 8, r->addr, r->rkey, param);
	default:
		word.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		word.datatype = ucp_dt_make_contig(8);
		return ucp_atomic_op_nbx(r->ep, UCP_ATOMIC_OP_ADD, buf, 1, r->addr, r->rkey, &word);
	}
}

static void
a_buffer_of_a_device_is_refused_by_every_operation(void)
{
	static const ucs_memory_type_t others[] = {UCS_MEMORY_TYPE_CUDA, UCS_MEMORY_TYPE_CUDA_MANAGED,
		UCS_MEMORY_TYPE_ROCM, UCS_MEMORY_TYPE_RDMA, UCS_MEMORY_TYPE_ZE_DEVICE,
		UCS_MEMORY_TYPE_GAUDI};
	static const ucs_memory_type_t goes[] = {UCS_MEMORY_TYPE_HOST, UCS_MEMORY_TYPE_UNKNOWN,
		UCS_MEMORY_TYPE_ROCM_MANAGED};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE};
	ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
			UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
		.id = 5, .cb = keep_am, .flags = UCP_AM_FLAG_PERSISTENT_DATA};
	uint64_t buf = 5, was = 5, in = 0;
	ucp_tag_message_h msg = NULL;
	ucp_tag_recv_info_t info;
	void *am = NULL;
	struct op recv;
	struct rma r;

	rma_open_with(&r, FEATURES | UCP_FEATURE_AM | UCP_FEATURE_STREAM, 4096, true, -1,
		UCS_THREAD_MODE_SINGLE);
	handler.arg = &am;
	UTIL_OK(ucp_worker_set_am_recv_handler(r.p.n[1].w, &handler));
	CU_ASSERT_EQUAL(finish(&r.p, ucp_tag_send_nbx(r.ep, &was, 8, 3, &no_param)), UCS_OK);
	CU_ASSERT_EQUAL(finish(&r.p, ucp_am_send_nbx(r.ep, 5, NULL, 0, &was, 8, &no_param)), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&r.p, am != NULL && (msg != NULL ||
		(msg = ucp_tag_probe_nb(r.p.n[1].w, 3, UTIL_ALL_BITS, 1, &info)) != NULL)));
	for (unsigned i = 0; i <= N_BUFFER_OPS; i++) {
		for (unsigned k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
			param.memory_type = others[k];
			CU_ASSERT_EQUAL((intptr_t)buffer_op(&r, i, &buf, am, msg, &param),
				UCS_ERR_UNSUPPORTED);
		}
		param.memory_type = (ucs_memory_type_t)77;
		CU_ASSERT_EQUAL((intptr_t)buffer_op(&r, i, &buf, am, msg, &param),
			UCS_ERR_INVALID_PARAM);
	}
	CU_ASSERT_EQUAL(buf, was);
	/* Nothing came of any of them. And of the host's, of what is to be found out, and of what processors copy,
	 * all goes; but no word of an atomic. */
	for (unsigned k = 0; k < 3; k++) {
		param.memory_type = goes[k];
		util_recv(&recv, r.p.n[1].w, &in, 8, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
		buf = 6;
		CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 0, &buf, am, msg, &param)), UCS_OK);
		CU_ASSERT(UTIL_UNTIL(&r.p, util_done(&recv)));
		CU_ASSERT_EQUAL(in, 6);
		util_free(&recv);
		if (k == 0) {
			CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 3, &buf, am, msg, &param)), UCS_OK);
			CU_ASSERT_EQUAL(buf, was);
			buf = 0;
			CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 5, &buf, am, msg, &param)), UCS_OK);
			CU_ASSERT_EQUAL(buf, was);
		}
		buf = 40;
		CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 8, &buf, am, msg, &param)), UCS_OK);
		buf = 2;
		CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 10, &buf, am, msg, &param)),
			k == 2 ? UCS_ERR_UNSUPPORTED : UCS_OK);
		CU_ASSERT_EQUAL(finish(&r.p, ucp_ep_flush_nbx(r.ep, &no_param)), UCS_OK);
		CU_ASSERT_EQUAL(finish(&r.p, buffer_op(&r, 9, &buf, am, msg, &param)), UCS_OK);
		CU_ASSERT_EQUAL(buf, k == 2 ? 40 : 42);
	}
	/* Nor is it registered: others would read and write it as the host's. */
	CU_ASSERT_EQUAL(try_type(r.p.n[0].ctx, UCS_MEMORY_TYPE_CUDA, 0), UCS_ERR_UNSUPPORTED);
	CU_ASSERT_EQUAL(try_type(r.p.n[0].ctx, UCS_MEMORY_TYPE_ROCM_MANAGED, 0), UCS_ERR_UNSUPPORTED);
	rma_unmap(&r);
	rma_close(&r);
}

/* A program of then: its UNKNOWN is the name of a type today. */
/* No device here takes it: long messages as well are copied by processors, and arrive. */
static void
memory_of_a_device_that_processors_access_is_copied(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.memory_type = UCS_MEMORY_TYPE_ZE_HOST};
	static uint8_t from[MIB], to[MIB];
	ucs_status_ptr_t recv;
	struct rma r;

	rma_open_with(&r, FEATURES, 4096, true, -1, UCS_THREAD_MODE_SINGLE);
	for (unsigned i = 0; i < MIB; i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned k = 0; k < 2; k++) { /* the sender's, the receiver's */
		memset(to, 0, MIB);
		recv = ucp_tag_recv_nbx(r.p.n[1].w, to, MIB, 4, UTIL_ALL_BITS, k == 0 ? &no_param : &param);
		CU_ASSERT_FATAL(UCS_PTR_IS_PTR(recv));
		CU_ASSERT_EQUAL(finish(&r.p, ucp_tag_send_nbx(r.ep, from, MIB, 4, k == 0 ? &param : &no_param)), UCS_OK);
		CU_ASSERT_EQUAL(finish(&r.p, recv), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(from, to, MIB), 0);
	}
	rma_unmap(&r);
	rma_close(&r);
}

static void
unknown_memory_type_is_that_of_the_version(void)
{
	const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = FEATURES};
	static const struct {
		unsigned minor, unknown;
	} v[] = {{13, 5}, {15, 5}, {16, 6}, {17, 9}, {20, 9}, {21, 10}, {22, 10}, {23, 10}};
	ucp_context_h ctx;

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		UTIL_OK(ucp_init_version(1, v[i].minor, &params, NULL, &ctx));
		CU_ASSERT_EQUAL(try_type(ctx, v[i].unknown, UCP_MEM_MAP_ALLOCATE), UCS_OK);
		CU_ASSERT_EQUAL(try_type(ctx, v[i].unknown - 1, UCP_MEM_MAP_ALLOCATE),
			UCS_ERR_UNSUPPORTED);
		CU_ASSERT_EQUAL(try_type(ctx, v[i].unknown + 1, UCP_MEM_MAP_ALLOCATE),
			UCS_ERR_INVALID_PARAM);
		ucp_cleanup(ctx);
	}
}

static void
allocated_memory_is_zeroed_and_of_at_least_the_length(void)
{
	static const size_t lens[] = {1, 100, 4096, 1 * MIB, 3 * MIB + 5};
	ucp_context_h ctx = util_context(FEATURES);
	uint8_t *address;
	size_t i, k, len;
	ucp_mem_h mem;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		bool zero = true;

		mem = map(ctx, NULL, lens[i], UCP_MEM_MAP_ALLOCATE, -1);
		query(mem, (void **)&address, &len);
		CU_ASSERT(len >= lens[i]);
		for (k = 0; k < len; k++)
			zero = zero && address[k] == 0;
		CU_ASSERT(zero);
		memset(address, 0x55, len);
		ucp_mem_unmap(ctx, mem);
	}
	ucp_cleanup(ctx);
}

static void
fixed_allocation_is_where_it_was_asked_for(void)
{
	void *place = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucp_context_h ctx = util_context(FEATURES);
	void *address;
	ucp_mem_h mem;
	size_t len;

	munmap(place, 4 * MIB);
	mem = map(ctx, place, 4 * MIB, UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED, -1);
	query(mem, &address, &len);
	CU_ASSERT_PTR_EQUAL(address, place);
	CU_ASSERT(len >= 4 * MIB);
	memset(address, 1, len);
	ucp_mem_unmap(ctx, mem);
	ucp_cleanup(ctx);
}

/* From allocated memory into such memory, by rendezvous. */
static void
send_mapped(struct pair *p, uint8_t *from, uint8_t *to, size_t len, uint64_t seed)
{
	struct op send, recv;

	util_fill(from, len, seed);
	memset(to, 0, len);
	util_recv(&recv, p->n[1].w, to, len, seed, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&send, p->n[0].ep, from, len, seed, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(p, util_done(&send) && util_done(&recv)));
	util_free(&send);
	util_free(&recv);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT(util_check(to, len, seed));
}

static void
messages_from_allocated_memory_are_of_what_is_there_now(void)
{
	void *places[2];
	ucp_mem_h mems[2];
	uint8_t *own = malloc(MIB);
	struct pair p;
	size_t len;

	pair_open(&p, FEATURES, UCS_THREAD_MODE_SINGLE);
	for (int i = 0; i < 2; i++) {
		mems[i] = map(p.n[i].ctx, NULL, MIB - 1, UCP_MEM_MAP_ALLOCATE, -1);
		query(mems[i], &places[i], &len);
	}
	for (unsigned round = 0; round < 4; round++) {
		send_mapped(&p, places[0], places[1], MIB - 1, 2 * round + 1);
		send_mapped(&p, own, places[1], MIB, 2 * round + 2);
		send_mapped(&p, (uint8_t *)places[0] + 77, own, 100000, 2 * round + 3);
		for (int i = 0; i < 2; i++) { /* the same addresses, other memory */
			ucp_mem_unmap(p.n[i].ctx, mems[i]);
			mems[i] = map(p.n[i].ctx, places[i], MIB, UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED,
				-1);
		}
	}
	for (int i = 0; i < 2; i++) {
		ucp_mem_unmap(p.n[i].ctx, mems[i]);
		/* And memory that is not UCP's. */
		CU_ASSERT_FATAL(mmap(places[i], MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == places[i]);
	}
	send_mapped(&p, places[0], places[1], MIB, 99);
	for (int i = 0; i < 2; i++)
		munmap(places[i], MIB);
	free(own);
	util_pair_close(&p);
}

static void
memory_of_no_length_has_a_key_that_unpacks_and_reaches_nothing(void)
{
	uint8_t byte = 0;
	void *address, *blob, *ptr;
	struct pair p;
	ucp_rkey_h rkey;
	ucp_mem_h mem;
	size_t len;

	pair_open(&p, FEATURES, UCS_THREAD_MODE_SINGLE);
	mem = map(p.n[1].ctx, NULL, 0, 0, -1);
	query(mem, &address, &len);
	CU_ASSERT_PTR_NULL(address);
	CU_ASSERT_EQUAL(len, 0);
	UTIL_OK(ucp_rkey_pack(p.n[1].ctx, mem, &blob, &len));
	CU_ASSERT(len > 0);
	UTIL_OK(ucp_ep_rkey_unpack(p.n[0].ep, blob, &rkey));
	CU_ASSERT_EQUAL(finish(&p, ucp_put_nbx(p.n[0].ep, &byte, 0, 0, rkey, &no_param)), UCS_OK);
	CU_ASSERT_EQUAL(finish(&p, ucp_put_nbx(p.n[0].ep, &byte, 1, 0, rkey, &no_param)),
		UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT(ucp_rkey_ptr(rkey, 0, &ptr) != UCS_OK);
	ucp_rkey_destroy(rkey);
	ucp_rkey_buffer_release(blob);
	ucp_mem_unmap(p.n[1].ctx, mem);
	util_pair_close(&p);
}

static void
advice_needs_all_its_fields_and_a_range_inside(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_mem_h mem = map(ctx, NULL, 64 * KIB, UCP_MEM_MAP_ALLOCATE, -1);
	ucp_mem_advise_params_t params = {.field_mask = 7, .length = 1000,
		.advice = UCP_MADV_WILLNEED};
	void *address;
	size_t len;

	query(mem, &address, &len);
	params.address = (char *)address + 5000;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_OK);
	params.advice = UCP_MADV_NORMAL;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_OK);
	params.field_mask = 3;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_ERR_INVALID_PARAM);
	params.field_mask = 7;
	params.length = len;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_ERR_INVALID_PARAM);
	params.length = SIZE_MAX;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_ERR_INVALID_PARAM);
	params.length = 1;
	params.address = (char *)address - 1;
	CU_ASSERT_EQUAL(ucp_mem_advise(ctx, mem, &params), UCS_ERR_INVALID_PARAM);
	ucp_mem_unmap(ctx, mem);
	ucp_cleanup(ctx);
}

static void
exported_memory_is_the_same_memory_in_another_context(void)
{
	const ucp_memh_pack_params_t export = {.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
		.flags = UCP_MEMH_PACK_FLAG_EXPORT};
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER};
	uint8_t *there, own[64], odd[512];
	void *address, *blob;
	ucp_mem_h mem;
	struct rma r;
	size_t len;

	rma_open(&r, 100000, true);
	UTIL_OK(ucp_memh_pack(r.mem, &export, &blob, &len));
	params.exported_memh_buffer = memcpy(odd + 1, blob, len);
	UTIL_OK(ucp_mem_map(r.p.n[0].ctx, &params, &mem));
	query(mem, &address, &len);
	CU_ASSERT_EQUAL(len, r.len);
	there = address;
	r.base[70] = 7;
	CU_ASSERT_EQUAL(there[70], 7);
	there[71] = 8;
	CU_ASSERT_EQUAL(r.base[71], 8);
	CU_ASSERT_EQUAL(ucp_mem_unmap(r.p.n[0].ctx, mem), UCS_OK);
	/* A key is no export, and an export no key. */
	params.exported_memh_buffer = r.blob;
	CU_ASSERT_EQUAL(ucp_mem_map(r.p.n[0].ctx, &params, &mem), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(ucp_ep_rkey_unpack(r.ep, blob, &r.rkey), UCS_ERR_INVALID_PARAM);
	ucp_memh_buffer_release(blob, NULL);
	/* The application's own memory lies in nothing that could be mapped. */
	mem = map(r.p.n[0].ctx, own, sizeof(own), 0, -1);
	CU_ASSERT_EQUAL(ucp_memh_pack(mem, &export, &blob, &len), UCS_ERR_UNSUPPORTED);
	ucp_mem_unmap(r.p.n[0].ctx, mem);
	rma_unmap(&r);
	rma_close(&r);
}

static void
print_info_tells_of_the_memory(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ucp_mem_print_info("64k", ctx, f);
	ucp_mem_print_info("1m,host", ctx, f);
	fclose(f);
	CU_ASSERT(strstr(text, "length 65536") != NULL);
	free(text);
	ucp_cleanup(ctx);
}

/* --- lists of pieces --- */

enum { SGL_MAX = 300 };

/* Lists over memory of ours and a region, piece behind piece with a gap. */
struct lists {
	void *buffers[SGL_MAX];
	size_t lengths[SGL_MAX], counts[SGL_MAX], strides[SGL_MAX], remote_lengths[SGL_MAX];
	ucp_mem_h memhs[SGL_MAX];
	uint64_t addrs[SGL_MAX];
	ucp_rkey_h rkeys[SGL_MAX];
	ucp_dt_local_sgl_t local;
	ucp_dt_remote_sgl_t remote;
	ucp_request_param_t param;
	size_t n;
};

static void
lists_make(struct lists *l, struct rma *r, uint8_t *here, const size_t *lens, size_t n)
{
	size_t at = 0;

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < n; i++) {
		l->buffers[i] = here + at;
		l->lengths[i] = l->remote_lengths[i] = lens[i];
		l->addrs[i] = r->addr + r->len - at - lens[i]; /* the other way round */
		l->rkeys[i] = r->rkey;
		at += lens[i] + 3;
	}
	l->n = n;
	l->local = (ucp_dt_local_sgl_t){.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS |
			UCP_DT_LOCAL_SGL_FIELD_LENGTHS,
		.buffers = l->buffers, .lengths = l->lengths};
	l->remote = (ucp_dt_remote_sgl_t){.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
			UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS,
		.remote_addrs = l->addrs, .lengths = l->remote_lengths, .rkeys = l->rkeys};
	l->param = (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
			UCP_OP_ATTR_FIELD_REMOTE_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE |
			UCP_OP_ATTR_FIELD_REMOTE_COUNT,
		.datatype = ucp_dt_make_sgl(), .remote_datatype = ucp_dt_make_sgl(),
		.remote = &l->remote, .remote_count = n};
}

static ucs_status_ptr_t
lists_do(struct lists *l, struct rma *r, bool put)
{
	return put ? ucp_put_nbx(r->ep, &l->local, l->n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID,
			     &l->param)
		   : ucp_get_nbx(r->ep, &l->local, l->n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID,
			     &l->param);
}

/* What the operation comes to, however it ends: the call, a request, or one callback. */
static ucs_status_t
lists_end(struct lists *l, struct rma *r, bool put, unsigned how)
{
	struct op op = {.n_calls = 0, .status = UCS_INPROGRESS};
	ucs_status_ptr_t ptr;

	if (how > 0) {
		l->param.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
		l->param.cb.send = util_sent;
		l->param.user_data = &op;
	}
	if (how > 1)
		l->param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	ptr = lists_do(l, r, put);
	CU_ASSERT(how < 2 || !put || UCS_PTR_IS_PTR(ptr) || UCS_PTR_IS_ERR(ptr));
	if (!UCS_PTR_IS_PTR(ptr) || how == 0)
		return finish(&r->p, ptr);
	CU_ASSERT_FATAL(UTIL_UNTIL(&r->p, ucp_request_check_status(ptr) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(op.n_calls, 1);
	CU_ASSERT_EQUAL(op.status, ucp_request_check_status(ptr));
	ucp_request_free(ptr);
	return op.status;
}

static void
a_list_of_pieces_is_put_and_got(void)
{
	static const size_t ns[] = {0, 1, 2, 17, SGL_MAX};
	static struct lists l;
	size_t lens[SGL_MAX], total = 0;
	uint8_t *here;
	struct rma r;

	for (size_t i = 0; i < SGL_MAX; i++)
		total += (lens[i] = i % 7 == 3 ? 0 : i % 50 == 1 ? 100000 : 1 + i * 37 % 5000) + 3;
	here = malloc(total);
	for (int allocate = 0; allocate < 2; allocate++) {
		rma_open(&r, total, allocate != 0);
		for (size_t k = 0; k < sizeof(ns) / sizeof(ns[0]); k++) {
			for (unsigned how = 0; how < 3; how++) {
				lists_make(&l, &r, here, lens, ns[k]);
				util_fill(here, total, k + how);
				memset(r.base, 0, r.len);
				CU_ASSERT_EQUAL(lists_end(&l, &r, true, how), UCS_OK);
				CU_ASSERT_EQUAL(finish(&r.p, ucp_ep_flush_nbx(r.ep, &no_param)), UCS_OK);
				for (size_t i = 0; i < ns[k]; i++)
					CU_ASSERT(memcmp(r.base + (l.addrs[i] - r.addr), l.buffers[i],
							  lens[i]) == 0);
				memset(here, 0xee, total);
				lists_make(&l, &r, here, lens, ns[k]);
				CU_ASSERT_EQUAL(lists_end(&l, &r, false, how), UCS_OK);
				for (size_t i = 0; i < ns[k]; i++) {
					uint8_t *end = (uint8_t *)l.buffers[i] + lens[i];

					CU_ASSERT(memcmp(r.base + (l.addrs[i] - r.addr), l.buffers[i],
							  lens[i]) == 0);
					CU_ASSERT(end[0] == 0xee && end[1] == 0xee && end[2] == 0xee);
				}
			}
		}
		rma_unmap(&r);
		rma_close(&r);
	}
	free(here);
}

/* Blocks of ours are one piece there. */
static void
a_piece_of_a_list_may_be_blocks_at_a_distance(void)
{
	static const size_t cases[][3] = {{100, 5, 160}, {8, 100, 8}, {64, 1, 0}, {10, 0, 20}, {1, 30, 7}};
	enum { N = sizeof(cases) / sizeof(cases[0]), PART = 4096 };
	static struct lists l;
	size_t lens[N] = {0};
	uint8_t *here = malloc(N * PART), *was = malloc(N * PART);
	struct rma r;

	rma_open(&r, N * PART, false);
	lists_make(&l, &r, here, lens, N);
	for (size_t i = 0; i < N; i++) {
		l.buffers[i] = here + i * PART;
		l.addrs[i] = r.addr + i * PART;
		l.lengths[i] = cases[i][0];
		l.counts[i] = cases[i][1];
		l.strides[i] = cases[i][2];
		l.remote_lengths[i] = cases[i][0] * cases[i][1];
	}
	l.local.counts = l.counts;
	l.local.strides = l.strides;
	l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_COUNTS | UCP_DT_LOCAL_SGL_FIELD_STRIDES;
	util_fill(here, N * PART, 3);
	memcpy(was, here, N * PART);
	memset(r.base, 0, r.len);
	CU_ASSERT_EQUAL(lists_end(&l, &r, true, 0), UCS_OK);
	CU_ASSERT_EQUAL(finish(&r.p, ucp_ep_flush_nbx(r.ep, &no_param)), UCS_OK);
	for (size_t i = 0; i < N; i++) {
		for (size_t k = 0; k < cases[i][1]; k++)
			CU_ASSERT(memcmp(r.base + i * PART + k * cases[i][0],
					  here + i * PART + k * cases[i][2], cases[i][0]) == 0);
		CU_ASSERT_EQUAL(r.base[i * PART + l.remote_lengths[i]], 0);
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < cases[i][1]; k++)
			memset(here + i * PART + k * cases[i][2], 0, cases[i][0]);
	CU_ASSERT(memcmp(here, was, N * PART) != 0);
	CU_ASSERT_EQUAL(lists_end(&l, &r, false, 0), UCS_OK);
	CU_ASSERT(memcmp(here, was, N * PART) == 0); /* and nothing between the blocks was touched */
	rma_unmap(&r);
	rma_close(&r);
	free(here);
	free(was);
}

/* One thing at a time is wrong with the lists; the next call finds them right again. */
static void
a_list_that_is_not_whole_is_refused_and_moves_nothing(void)
{
	static struct lists l, good;
	const size_t lens[3] = {64, 64, 64};
	uint8_t here[300];
	ucp_mem_h mem;
	struct rma r;

	rma_open(&r, 300, true);
	mem = map(r.p.n[0].ctx, here, sizeof(here), 0, -1);
	memset(here, 9, sizeof(here));
	memset(r.base, 0, r.len);
	lists_make(&good, &r, here, lens, 3);
	for (unsigned put = 0; put < 2; put++) {
		for (unsigned wrong = 0; wrong < 27; wrong++) {
			ucs_status_t expect = UCS_ERR_INVALID_PARAM;
			uint64_t remote = UCP_REMOTE_ADDR_INVALID;
			ucp_rkey_h rkey = UCP_RKEY_INVALID;
			const void *buffer = &l.local;
			ucs_status_ptr_t ptr;

			lists_make(&l, &r, here, lens, 3);
			switch (wrong) {
			case 0: remote = r.addr; break;
			case 1: rkey = r.rkey; break;
			case 2: buffer = NULL; break;
			case 3: l.param.remote = NULL; break;
			case 4: l.param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_REMOTE; break;
			case 5: l.param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_REMOTE_DATATYPE; break;
			case 6: l.param.remote_datatype = ucp_dt_make_contig(1); break;
			case 7: l.param.remote_count = 2; break;
			case 8: l.local.field_mask &= ~(uint64_t)UCP_DT_LOCAL_SGL_FIELD_BUFFERS; break;
			case 9: l.local.field_mask &= ~(uint64_t)UCP_DT_LOCAL_SGL_FIELD_LENGTHS; break;
			case 10: l.local.buffers = NULL; break;
			case 11: l.local.lengths = NULL; break;
			case 12: l.remote.field_mask &= ~(uint64_t)UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS; break;
			case 13: l.remote.field_mask &= ~(uint64_t)UCP_DT_REMOTE_SGL_FIELD_LENGTHS; break;
			case 14: l.remote.field_mask &= ~(uint64_t)UCP_DT_REMOTE_SGL_FIELD_RKEYS; break;
			case 15: l.remote.remote_addrs = NULL; break;
			case 16: l.remote.lengths = NULL; break;
			case 17: l.remote.rkeys = NULL; break;
			case 18: l.rkeys[2] = NULL; break;
			case 19: l.remote_lengths[2] = 63; break;
			case 20: l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_MEMHS; break;
			case 21: /* no region of the last one */
			case 22: /* or it is not in it */
				l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_MEMHS;
				l.local.memhs = l.memhs;
				l.memhs[0] = l.memhs[1] = l.memhs[2] = mem;
				if (wrong == 21)
					l.memhs[2] = NULL;
				else
					l.buffers[2] = here + sizeof(here) - 63;
				break;
			case 23: /* counts without strides */
				l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_COUNTS;
				l.local.counts = l.counts;
				break;
			case 24: /* more bytes than can be counted */
				l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_COUNTS |
					UCP_DT_LOCAL_SGL_FIELD_STRIDES;
				l.local.counts = l.counts;
				l.local.strides = l.strides;
				l.counts[0] = l.counts[1] = 1;
				l.counts[2] = SIZE_MAX / 64 + 2;
				break;
			case 25:
				l.addrs[2] = r.addr + r.len - 63;
				expect = UCS_ERR_OUT_OF_RANGE;
				break;
			case 26:
				l.param.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
				expect = UCS_ERR_NO_RESOURCE;
				break;
			}
			ptr = put ? ucp_put_nbx(r.ep, buffer, 3, remote, rkey, &l.param)
				  : ucp_get_nbx(r.ep, (void *)(uintptr_t)buffer, 3, remote, rkey, &l.param);
			CU_ASSERT_EQUAL((intptr_t)ptr, expect);
		}
	}
	for (size_t i = 0; i < 300; i++)
		CU_ASSERT(here[i] == 9 && r.base[i] == 0);
	/* With their regions, that cover them. */
	lists_make(&l, &r, here, lens, 3);
	l.local.field_mask |= UCP_DT_LOCAL_SGL_FIELD_MEMHS;
	l.local.memhs = l.memhs;
	l.memhs[0] = l.memhs[1] = l.memhs[2] = mem;
	CU_ASSERT_EQUAL(lists_end(&l, &r, true, 0), UCS_OK);
	CU_ASSERT_EQUAL(lists_end(&good, &r, true, 0), UCS_OK);
	/* Only put and get know lists. */
	CU_ASSERT_EQUAL((intptr_t)ucp_tag_send_nbx(r.ep, &good.local, 3, 1, &good.param),
		UCS_ERR_INVALID_PARAM);
	ucp_mem_unmap(r.p.n[0].ctx, mem);
	rma_unmap(&r);
	rma_close(&r);
}

/* By message the target is asked for each piece, and has said no to some: told once, after all. */
static void
an_error_of_one_piece_is_that_of_the_list(void)
{
	static struct lists l;
	const size_t lens[4] = {100, 50000, 7, 100};
	static uint8_t here[60000];
	ucp_rkey_h gone;
	struct rma r;
	size_t len;
	void *blob, *base;
	ucp_mem_h mem;

	rma_open(&r, 60000, false);
	mem = map(r.p.n[1].ctx, NULL, 60000, UCP_MEM_MAP_ALLOCATE, -1);
	query(mem, &base, &len);
	UTIL_OK(ucp_rkey_pack(r.p.n[1].ctx, mem, &blob, &len));
	UTIL_OK(ucp_ep_rkey_unpack(r.ep, blob, &gone));
	ucp_rkey_buffer_release(blob);
	if (by_message()) {
		ucp_mem_unmap(r.p.n[1].ctx, mem);
		for (unsigned how = 0; how < 3; how++) {
			for (unsigned put = 0; put < 2; put++) {
				lists_make(&l, &r, here, lens, 4);
				l.rkeys[1] = gone;
				l.addrs[1] = (uintptr_t)base;
				CU_ASSERT_EQUAL(lists_end(&l, &r, put != 0, how), UCS_ERR_INVALID_PARAM);
			}
		}
	} else {
		ucp_mem_unmap(r.p.n[1].ctx, mem); /* whoever has it mapped goes on with it */
	}
	lists_make(&l, &r, here, lens, 4);
	CU_ASSERT_EQUAL(lists_end(&l, &r, true, 0), UCS_OK);
	ucp_rkey_destroy(gone);
	rma_unmap(&r);
	rma_close(&r);
}

/* --- keys --- */

static void
a_key_unpacks_at_any_alignment_and_ends_by_itself(void)
{
	const ucp_memh_pack_params_t none = {.field_mask = 0};
	uint64_t v = 5, got = 0;
	uint8_t buf[600];
	ucp_rkey_h rkey;
	struct rma r;
	size_t i, len;
	void *blob;
	int own;

	for (own = 0; own < 2; own++) {
		rma_open(&r, 1000, own == 0);
		UTIL_OK(ucp_memh_pack(r.mem, &none, &blob, &len));
		CU_ASSERT(len < 256);
		CU_ASSERT_EQUAL(len, r.blob_len);
		for (i = 0; i < 16; i++) {
			memset(buf, 0xff, sizeof(buf));
			memcpy(buf + i, blob, len);
			UTIL_OK(ucp_ep_rkey_unpack(r.ep, buf + i, &rkey));
			memset(buf, 0, sizeof(buf));
			v = i + 1;
			CU_ASSERT_EQUAL(finish(&r.p, ucp_put_nbx(r.ep, &v, 8, r.addr, rkey, &no_param)),
				UCS_OK);
			CU_ASSERT_EQUAL(finish(&r.p, ucp_get_nbx(r.ep, &got, 8, r.addr, rkey, &no_param)),
				UCS_OK);
			CU_ASSERT_EQUAL(got, v);
			ucp_rkey_destroy(rkey);
		}
		ucp_memh_buffer_release(blob, NULL);
		rma_unmap(&r);
		rma_close(&r);
	}
}

/* What the providers and transports above us have room for. */
static void
a_key_has_64_bytes_at_most(void)
{
	static const int prots[] = {-1, 0, UCP_MEM_MAP_PROT_REMOTE_READ, UCP_MEM_MAP_PROT_REMOTE_WRITE};
	static const size_t lens[] = {0, 1, 100000};
	uint8_t own[100000];
	struct pair p;
	size_t i, k, len;
	ucp_mem_h mem;
	int allocate;
	void *blob;

	pair_open(&p, FEATURES, UCS_THREAD_MODE_SINGLE);
	for (i = 0; i < sizeof(prots) / sizeof(prots[0]); i++) {
		for (k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
			for (allocate = 0; allocate < 2; allocate++) {
				mem = map(p.n[1].ctx, allocate ? NULL : own, lens[k],
					allocate ? UCP_MEM_MAP_ALLOCATE : 0, prots[i]);
				UTIL_OK(ucp_rkey_pack(p.n[1].ctx, mem, &blob, &len));
				CU_ASSERT(len > 0 && len <= 64);
				ucp_rkey_buffer_release(blob);
				ucp_mem_unmap(p.n[1].ctx, mem);
			}
		}
	}
	util_pair_close(&p);
}

static void
a_damaged_key_is_refused(void)
{
	ucp_rkey_h rkey;
	uint8_t buf[512];
	struct rma r;
	size_t i, k;

	rma_open(&r, 1000, true);
	for (i = 0; i < r.blob_len * 8; i++) {
		memcpy(buf, r.blob, r.blob_len);
		buf[i / 8] ^= (uint8_t)(1u << (i % 8));
		CU_ASSERT_EQUAL(ucp_ep_rkey_unpack(r.ep, buf, &rkey), UCS_ERR_INVALID_PARAM);
	}
	for (i = 0; i < 1000; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)rnd();
		CU_ASSERT_EQUAL(ucp_ep_rkey_unpack(r.ep, buf, &rkey), UCS_ERR_INVALID_PARAM);
	}
	CU_ASSERT_EQUAL(ucp_ep_rkey_unpack(r.ep, NULL, &rkey), UCS_ERR_INVALID_PARAM);
	rma_unmap(&r);
	rma_close(&r);
}

static void
keys_have_a_total_order(void)
{
	ucp_rkey_compare_params_t params = {.field_mask = 0};
	int ab, ba, same;
	ucp_rkey_h other;
	ucp_mem_h mem;
	struct rma r;
	void *blob;
	size_t len;

	rma_open(&r, 1000, true);
	mem = map(r.p.n[1].ctx, NULL, 1000, UCP_MEM_MAP_ALLOCATE, -1);
	UTIL_OK(ucp_rkey_pack(r.p.n[1].ctx, mem, &blob, &len));
	UTIL_OK(ucp_ep_rkey_unpack(r.ep, blob, &other));
	CU_ASSERT_EQUAL(ucp_rkey_compare(r.p.n[0].w, r.rkey, other, &params, &ab), UCS_OK);
	CU_ASSERT_EQUAL(ucp_rkey_compare(r.p.n[0].w, other, r.rkey, &params, &ba), UCS_OK);
	CU_ASSERT_EQUAL(ucp_rkey_compare(r.p.n[0].w, r.self_rkey, r.rkey, &params, &same), UCS_OK);
	CU_ASSERT(ab != 0 && (ab < 0) == (ba > 0));
	CU_ASSERT_EQUAL(same, 0);
	params.field_mask = 1;
	CU_ASSERT_EQUAL(ucp_rkey_compare(r.p.n[0].w, r.rkey, other, &params, &ab),
		UCS_ERR_INVALID_PARAM);
	ucp_rkey_destroy(other);
	ucp_rkey_buffer_release(blob);
	ucp_mem_unmap(r.p.n[1].ctx, mem);
	rma_unmap(&r);
	rma_close(&r);
}

static void
a_pointer_of_a_key_reaches_the_memory_and_nothing_beyond(void)
{
	struct rma r;
	void *ptr;

	rma_open(&r, 5000, true);
	if (!by_auto()) {
		CU_ASSERT_EQUAL(ucp_rkey_ptr(r.rkey, r.addr, &ptr), UCS_ERR_UNREACHABLE);
	} else {
		UTIL_OK(ucp_rkey_ptr(r.rkey, r.addr + 100, &ptr));
		*(uint8_t *)ptr = 9;
		CU_ASSERT_EQUAL(r.base[100], 9);
		CU_ASSERT_EQUAL(ucp_rkey_ptr(r.rkey, r.addr + r.len, &ptr), UCS_ERR_INVALID_ADDR);
		CU_ASSERT_EQUAL(ucp_rkey_ptr(r.rkey, r.addr - 1, &ptr), UCS_ERR_INVALID_ADDR);
	}
	rma_unmap(&r);
	rma_close(&r);
}

static void
access_outside_or_without_the_right_is_refused(void)
{
	static const int prots[] = {UCP_MEM_MAP_PROT_REMOTE_READ, UCP_MEM_MAP_PROT_REMOTE_WRITE, 0};
	uint64_t v = 1, sum = 0;
	struct rma r;
	size_t i;

	rma_open(&r, 4096, false);
	CU_ASSERT_EQUAL(put(&r, &v, 8, r.len), UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(put(&r, &v, 8, r.len - 7), UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(put(&r, &v, 8, (uint64_t)-1), UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(get(&r, &v, 8, r.len - 7), UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(get(&r, &v, SIZE_MAX, 8), UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(ucp_atomic_add64(r.self, 1, r.addr + r.len + (-r.addr & 7), r.self_rkey),
		UCS_ERR_OUT_OF_RANGE);
	CU_ASSERT_EQUAL(put(&r, &v, 8, r.len - 8), UCS_OK);
	CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
	memset(r.base + r.len - 8, 0, 8);
	for (i = 0; i < r.len; i++)
		sum += r.base[i];
	CU_ASSERT_EQUAL(sum, 0);
	rma_unmap(&r);
	rma_close(&r);
	for (i = 0; i < 3; i++) {
		bool rd = (prots[i] & UCP_MEM_MAP_PROT_REMOTE_READ) != 0;
		bool wr = (prots[i] & UCP_MEM_MAP_PROT_REMOTE_WRITE) != 0;

		rma_open_with(&r, FEATURES, 4096, i % 2 == 0, prots[i], UCS_THREAD_MODE_SINGLE);
		CU_ASSERT_EQUAL(get(&r, &v, 8, 0), rd ? UCS_OK : UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(put(&r, &v, 8, 0), wr ? UCS_OK : UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(ucp_atomic_add64(r.self, 1, (r.addr + 7) & ~7ull, r.self_rkey),
			wr ? UCS_OK : UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(ucp_atomic_fadd64(r.self, 1, (r.addr + 7) & ~7ull, r.self_rkey, &v),
			UCS_ERR_INVALID_PARAM);
		rma_unmap(&r);
		rma_close(&r);
	}
}

static void
a_key_of_memory_that_is_gone_is_refused_by_the_target(void)
{
	uint64_t v = 1;
	struct rma r;

	rma_open(&r, 4096, false);
	if (by_message()) {
		ucp_mem_h mem = map(r.p.n[1].ctx, r.own, 4096, 0, -1);

		UTIL_OK(ucp_mem_unmap(r.p.n[1].ctx, r.mem));
		CU_ASSERT_EQUAL(put(&r, &v, 8, 0), UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(get(&r, &v, 8, 0), UCS_ERR_INVALID_PARAM);
		/* A new region in the same place has another name and token. */
		r.mem = map(r.p.n[1].ctx, r.own, 4096, 0, -1);
		CU_ASSERT_EQUAL(put(&r, &v, 8, 0), UCS_ERR_INVALID_PARAM);
		UTIL_OK(ucp_mem_unmap(r.p.n[1].ctx, mem));
		/* What nobody asks about the next flush tells, once. */
		CU_ASSERT_EQUAL(ucp_put_nbi(r.ep, &v, 8, r.addr, r.rkey), UCS_INPROGRESS);
		CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
		CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)),
			UCS_ERR_INVALID_PARAM);
		CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)), UCS_OK);
	}
	rma_unmap(&r);
	rma_close(&r);
}

/* --- put and get --- */

enum form { NBX, NB, NBI, BLOCKING, N_FORMS };

static ucs_status_t
put_form(struct rma *r, enum form form, const void *buf, size_t len, uint64_t addr)
{
	ucs_status_t status;

	switch (form) {
	case NBX:
		return finish(&r->p, ucp_put_nbx(r->ep, buf, len, addr, r->rkey, &no_param));
	case NB:
		return finish(&r->p, ucp_put_nb(r->ep, buf, len, addr, r->rkey, count_nb_cb));
	case NBI:
		status = ucp_put_nbi(r->ep, buf, len, addr, r->rkey);
		return UCS_STATUS_IS_ERR(status) ? status : flush(&r->p, r->ep);
	default: /* the buffer is the caller's again; that the bytes are there is another matter */
		status = ucp_put(r->self, buf, len, addr, r->self_rkey);
		return status != UCS_OK ? status : flush(&r->p, r->self);
	}
}

static ucs_status_t
get_form(struct rma *r, enum form form, void *buf, size_t len, uint64_t addr)
{
	ucs_status_t status;

	switch (form) {
	case NBX:
		return finish(&r->p, ucp_get_nbx(r->ep, buf, len, addr, r->rkey, &no_param));
	case NB:
		return finish(&r->p, ucp_get_nb(r->ep, buf, len, addr, r->rkey, count_nb_cb));
	case NBI:
		status = ucp_get_nbi(r->ep, buf, len, addr, r->rkey);
		return UCS_STATUS_IS_ERR(status) ? status : flush(&r->p, r->ep);
	default:
		return ucp_get(r->self, buf, len, addr, r->self_rkey);
	}
}

static void
put_and_get_move_every_length(void)
{
	enum form form;
	struct rma r;
	size_t i, off;
	int own;

	for (own = 0; own < 2; own++) {
		rma_open(&r, LEN, own == 0);
		for (i = 0; i < N_SIZES; i++) {
			uint8_t *out = util_guarded(sizes[i]), *in = util_guarded(sizes[i]);

			for (form = NBX; form < N_FORMS; form++) {
				off = rnd() % 1000;
				util_fill(out, sizes[i], i * 10 + form);
				memset(in, 0, sizes[i]);
				CU_ASSERT_EQUAL(put_form(&r, form, out, sizes[i], r.addr + off), UCS_OK);
				CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
				CU_ASSERT(util_check(r.base + off, sizes[i], i * 10 + form));
				CU_ASSERT_EQUAL(get_form(&r, form, in, sizes[i], r.addr + off), UCS_OK);
				CU_ASSERT(util_check(in, sizes[i], i * 10 + form));
				CU_ASSERT(util_guards_ok(in, sizes[i]) && util_guards_ok(out, sizes[i]));
			}
			util_guarded_free(out);
			util_guarded_free(in);
		}
		rma_unmap(&r);
		rma_close(&r);
	}
}

static void
nothing_to_move_is_over_at_once_without_a_key(void)
{
	struct rma r;

	rma_open(&r, 100, true);
	CU_ASSERT_PTR_NULL(ucp_put_nbx(r.ep, NULL, 0, 0, NULL, &no_param));
	CU_ASSERT_PTR_NULL(ucp_get_nbx(r.ep, NULL, 0, 0, NULL, &no_param));
	CU_ASSERT_EQUAL(ucp_put_nbi(r.ep, NULL, 0, 0, NULL), UCS_OK);
	CU_ASSERT_EQUAL(ucp_get_nbi(r.ep, NULL, 0, 0, NULL), UCS_OK);
	CU_ASSERT_EQUAL(ucp_put(r.ep, NULL, 0, 0, NULL), UCS_OK);
	CU_ASSERT_EQUAL(ucp_get(r.ep, NULL, 0, 0, NULL), UCS_OK);
	CU_ASSERT_PTR_NULL(ucp_put_nb(r.ep, NULL, 0, 0, NULL, count_nb_cb));
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_put_nbx(r.ep, &r, 1, 0, NULL, &no_param)),
		UCS_ERR_INVALID_PARAM);
	rma_unmap(&r);
	rma_close(&r);
}

static void
a_call_that_wants_a_request_gets_one_and_one_callback(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL |
		UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA, .cb.send = count_cb};
	static const size_t lens[] = {8, 1000, 3 * MIB};
	ucs_status_t status, want = UCS_OK;
	uint8_t *buf = calloc(1, LEN);
	ucs_status_ptr_t req;
	struct rma r;
	size_t i;
	int own;

	for (own = 0; own < 2; own++) {
		rma_open(&r, LEN, own == 0);
		for (i = 0; i < 6; i++) {
			n_cb = 0;
			status = UCS_INPROGRESS;
			param.user_data = &status;
			req = i % 2 ? ucp_put_nbx(r.ep, buf, lens[i / 2], r.addr, r.rkey, &param)
				    : ucp_get_nbx(r.ep, buf, lens[i / 2], r.addr, r.rkey, &param);
			CU_ASSERT_FATAL(UCS_PTR_IS_PTR(req));
			CU_ASSERT(UTIL_UNTIL(&r.p, n_cb != 0));
			CU_ASSERT_EQUAL(ucp_request_check_status(req), UCS_OK);
			CU_ASSERT_EQUAL(status, want);
			ucp_request_free(req);
			UTIL_FOR_MS(&r.p, 2);
			CU_ASSERT_EQUAL(n_cb, 1);
		}
		rma_unmap(&r);
		rma_close(&r);
	}
	free(buf);
}

static void
callback_never_runs_inside_the_call(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = count_cb};
	uint8_t *buf = calloc(1, LEN);
	ucs_status_ptr_t req;
	struct rma r;
	size_t i;

	rma_open(&r, LEN, false);
	for (i = 0; i < N_SIZES; i++) {
		n_cb = 0;
		req = ucp_put_nbx(r.ep, buf, sizes[i], r.addr, r.rkey, &param);
		CU_ASSERT_EQUAL(n_cb, 0);
		CU_ASSERT(!UCS_PTR_IS_ERR(req));
		if (req != NULL) {
			CU_ASSERT(UTIL_UNTIL(&r.p, n_cb != 0));
			ucp_request_free(req);
		}
	}
	rma_unmap(&r);
	rma_close(&r);
	free(buf);
}

static void
forced_to_be_over_at_once_it_is_or_nothing_happened(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	ucs_status_ptr_t ret;
	uint64_t v = 3;
	struct rma r;
	int own;

	for (own = 0; own < 2; own++) {
		rma_open(&r, 4096, own == 0);
		ret = ucp_put_nbx(r.ep, &v, 8, r.addr, r.rkey, &param);
		UTIL_FOR_MS(&r.p, 2);
		if (ret == NULL) {
			CU_ASSERT_EQUAL(memcmp(r.base, &v, 8), 0);
		} else {
			CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ret), UCS_ERR_NO_RESOURCE);
			CU_ASSERT_EQUAL(r.base[0], 0);
		}
		if (by_auto())
			CU_ASSERT_PTR_NULL(ret);
		param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
		CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_put_nbx(r.ep, &v, 8, r.addr, r.rkey, &param)),
			UCS_ERR_INVALID_PARAM);
		param.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
		rma_unmap(&r);
		rma_close(&r);
	}
}

static void
request_in_the_callers_memory_says_done_whatever_the_call_returned(void)
{
	ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST};
	uint64_t v = 3;
	struct rma r;
	char *mem;

	rma_open(&r, 4096, true);
	UTIL_OK(ucp_context_query(r.p.n[0].ctx, &attr));
	mem = calloc(1, attr.request_size + 64);
	memset(mem + attr.request_size, 0x77, 64);
	param.request = mem + attr.request_size;
	CU_ASSERT(!UCS_PTR_IS_ERR(ucp_put_nbx(r.ep, &v, 8, r.addr, r.rkey, &param)));
	CU_ASSERT(UTIL_UNTIL(&r.p, ucp_request_check_status(param.request) != UCS_INPROGRESS));
	CU_ASSERT_EQUAL(ucp_request_check_status(param.request), UCS_OK);
	CU_ASSERT_EQUAL(memcmp(r.base, &v, 8), 0);
	CU_ASSERT_EQUAL(mem[attr.request_size], 0x77);
	free(mem);
	rma_unmap(&r);
	rma_close(&r);
}

static void
without_the_feature_operations_are_refused(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
	uint64_t v = 3;
	struct rma r;

	rma_open_with(&r, UCP_FEATURE_TAG | UCP_FEATURE_AMO32, 4096, true, -1, UCS_THREAD_MODE_SINGLE);
	CU_ASSERT_EQUAL(put(&r, &v, 8, 0), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(get(&r, &v, 8, 0), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(ucp_put_nbi(r.ep, &v, 8, r.addr, r.rkey), UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_contig(8);
	CU_ASSERT_EQUAL(finish(&r.p, ucp_atomic_op_nbx(r.ep, UCP_ATOMIC_OP_ADD, &v, 1, r.addr, r.rkey,
		&param)), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_ADD, 1, 8, r.addr, r.rkey),
		UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_contig(4);
	CU_ASSERT_EQUAL(finish(&r.p, ucp_atomic_op_nbx(r.ep, UCP_ATOMIC_OP_ADD, &v, 1, r.addr, r.rkey,
		&param)), UCS_OK);
	CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
	CU_ASSERT_EQUAL(r.base[0], 3);
	rma_unmap(&r);
	rma_close(&r);
}

static void
pieces_of_an_iov_are_put_and_got_as_one(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_iov()};
	static const size_t cut[] = {3, 1000, 0, 70000, 250000};
	ucp_dt_iov_t out[5], in[5];
	size_t i, sum = 0;
	struct rma r;
	int own;

	for (i = 0; i < 5; i++) {
		out[i].length = in[i].length = cut[i];
		out[i].buffer = util_guarded(cut[i]);
		in[i].buffer = util_guarded(cut[i]);
		util_fill(out[i].buffer, cut[i], i);
	}
	for (own = 0; own < 2; own++) {
		rma_open(&r, LEN, own == 0);
		CU_ASSERT_EQUAL(finish(&r.p, ucp_put_nbx(r.ep, out, 5, r.addr + 5, r.rkey, &param)),
			UCS_OK);
		CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
		for (i = 0, sum = 5; i < 5; i++) {
			CU_ASSERT(util_check(r.base + sum, cut[i], i));
			sum += cut[i];
		}
		CU_ASSERT_EQUAL(finish(&r.p, ucp_get_nbx(r.ep, in, 5, r.addr + 5, r.rkey, &param)),
			UCS_OK);
		for (i = 0; i < 5; i++) {
			CU_ASSERT(util_check(in[i].buffer, cut[i], i));
			CU_ASSERT(util_guards_ok(in[i].buffer, cut[i]));
			memset(in[i].buffer, 0, cut[i]);
		}
		rma_unmap(&r);
		rma_close(&r);
	}
	for (i = 0; i < 5; i++) {
		util_guarded_free(out[i].buffer);
		util_guarded_free(in[i].buffer);
	}
}

static void
many_in_flight_all_arrive(void)
{
	enum { N = 3000 };
	uint64_t *v = calloc(N, sizeof(*v)), *in = calloc(N, sizeof(*in));
	struct rma r;
	int i, own;

	for (own = 0; own < 2; own++) {
		rma_open(&r, N * 8, own == 0);
		for (i = 0; i < N; i++) {
			v[i] = util_mix((uint64_t)i);
			CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_put_nbi(r.ep, &v[i], 8, r.addr + (size_t)i * 8,
				r.rkey)));
		}
		CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(r.base, v, N * 8), 0);
		for (i = 0; i < N; i++)
			CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_get_nbi(r.ep, &in[i], 8, r.addr + (size_t)i * 8,
				r.rkey)));
		CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(in, v, N * 8), 0);
		memset(in, 0, N * 8);
		rma_unmap(&r);
		rma_close(&r);
	}
	free(v);
	free(in);
}

/* --- atomics --- */

static uint64_t
model(ucp_atomic_op_t op, uint64_t old, uint64_t a, uint64_t b)
{
	switch (op) {
	case UCP_ATOMIC_OP_ADD:
		return old + a;
	case UCP_ATOMIC_OP_SWAP:
		return a;
	case UCP_ATOMIC_OP_CSWAP:
		return old == a ? b : old;
	case UCP_ATOMIC_OP_AND:
		return old & a;
	case UCP_ATOMIC_OP_OR:
		return old | a;
	default:
		return old ^ a;
	}
}

static void
set_word(uint8_t *p, size_t size, uint64_t v)
{
	memset(p, 0, 16);
	memcpy(p, &v, size);
}

static uint64_t
word(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

static void
every_atomic_does_what_it_says_and_returns_what_was(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
	ucp_atomic_op_t op;
	struct rma r;
	size_t size;
	int own, fetch, i;

	for (own = 0; own < 2; own++) {
		rma_open(&r, 4096, own == 0);
		for (size = 4; size <= 8; size += 4) {
			for (op = UCP_ATOMIC_OP_ADD; op < UCP_ATOMIC_OP_LAST; op++) {
				for (i = 0; i < 8; i++) {
					uint64_t mask = size == 8 ? UINT64_MAX : UINT32_MAX;
					uint64_t old = rnd() & mask, a = rnd() & mask, b = rnd() & mask;
					uint64_t at = (-r.addr & 7) + size * (size_t)i, reply = b;

					fetch = i % 2 == 0 || op == UCP_ATOMIC_OP_SWAP ||
						op == UCP_ATOMIC_OP_CSWAP;
					if (op == UCP_ATOMIC_OP_CSWAP && i % 4 < 2)
						a = old;
					set_word(r.base + at, size, old);
					param.datatype = ucp_dt_make_contig(size);
					param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
					if (fetch) {
						param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
						param.reply_buffer = &reply;
					}
					CU_ASSERT_EQUAL(finish(&r.p, ucp_atomic_op_nbx(r.ep, op, &a, 1,
						r.addr + at, r.rkey, &param)), UCS_OK);
					CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
					CU_ASSERT_EQUAL(word(r.base + at, size), model(op, old, a, b) & mask);
					CU_ASSERT_EQUAL(word(r.base + at + size, size), 0);
					if (fetch)
						CU_ASSERT_EQUAL(word((uint8_t *)&reply, size), old);
				}
			}
		}
		rma_unmap(&r);
		rma_close(&r);
	}
}

static void
atomic_without_a_reply_is_over_at_once_and_its_operand_free(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(8)};
	uint64_t v;
	struct rma r;
	int i;

	rma_open(&r, 4096, false);
	for (i = 1; i <= 500; i++) {
		v = (uint64_t)i;
		CU_ASSERT_PTR_NULL(ucp_atomic_op_nbx(r.ep, UCP_ATOMIC_OP_ADD, &v, 1,
			r.addr + (-r.addr & 7), r.rkey, &param));
		v = 0;
	}
	CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
	CU_ASSERT_EQUAL(word(r.base + (-r.addr & 7), 8), 500 * 501 / 2);
	rma_unmap(&r);
	rma_close(&r);
}

static void
atomics_that_make_no_sense_are_refused(void)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE};
	uint64_t v = 1, reply = 0, at;
	struct rma r;

	rma_open(&r, 4096, true);
	at = r.addr;
#define TRY(op, count, addr)                                                                       \
	UCS_PTR_RAW_STATUS(ucp_atomic_op_nbx(r.ep, op, &v, count, addr, r.rkey, &param))
	param.datatype = ucp_dt_make_contig(8);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_SWAP, 1, at), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_CSWAP, 1, at), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 2, at), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 0, at), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at + 4), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_LAST, 1, at), UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_contig(4);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at + 2), UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_contig(2);
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at), UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_iov();
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at), UCS_ERR_INVALID_PARAM);
	param.datatype = ucp_dt_make_contig(8);
	param.op_attr_mask = 0;
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at), UCS_ERR_INVALID_PARAM);
	param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMH;
	CU_ASSERT_EQUAL(TRY(UCP_ATOMIC_OP_ADD, 1, at), UCS_ERR_INVALID_PARAM);
#undef TRY
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_ADD, 1, 2, at, r.rkey),
		UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_LAST, 1, 8, at, r.rkey),
		UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(UCS_PTR_RAW_STATUS(ucp_atomic_fetch_nb(r.ep, UCP_ATOMIC_FETCH_OP_FADD, 1,
		&reply, 3, at, r.rkey, NULL)), UCS_ERR_INVALID_PARAM);
	CU_ASSERT_EQUAL(ucp_atomic_add64(r.ep, 1, at + 1, r.rkey), UCS_ERR_INVALID_PARAM);
	UTIL_FOR_MS(&r.p, 1);
	CU_ASSERT_EQUAL(word(r.base, 8), 0);
	rma_unmap(&r);
	rma_close(&r);
}

static void
fetching_atomics_of_the_old_form_return_what_was(void)
{
	uint64_t result, v64 = 0;
	uint32_t v32 = 0;
	struct rma r;
	uint64_t *w;

	rma_open(&r, 4096, true);
	w = (uint64_t *)(void *)r.base;
#define FETCH(op, value)                                                                           \
	CU_ASSERT_EQUAL(finish(&r.p, ucp_atomic_fetch_nb(r.ep, op, value, &result, 8, r.addr,      \
		r.rkey, count_nb_cb)), UCS_OK)
	*w = 10;
	FETCH(UCP_ATOMIC_FETCH_OP_FADD, 5);
	CU_ASSERT(result == 10 && *w == 15);
	FETCH(UCP_ATOMIC_FETCH_OP_SWAP, 7);
	CU_ASSERT(result == 15 && *w == 7);
	result = 100;
	FETCH(UCP_ATOMIC_FETCH_OP_CSWAP, 6);
	CU_ASSERT(result == 7 && *w == 7);
	result = 100;
	FETCH(UCP_ATOMIC_FETCH_OP_CSWAP, 7);
	CU_ASSERT(result == 7 && *w == 100);
	FETCH(UCP_ATOMIC_FETCH_OP_FAND, 0x24);
	CU_ASSERT(result == 100 && *w == 0x24);
	FETCH(UCP_ATOMIC_FETCH_OP_FOR, 0x41);
	CU_ASSERT(result == 0x24 && *w == 0x65);
	FETCH(UCP_ATOMIC_FETCH_OP_FXOR, 0xff);
	CU_ASSERT(result == 0x65 && *w == 0x9a);
#undef FETCH
	*w = 1;
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_ADD, 6, 4, r.addr, r.rkey), UCS_OK);
	CU_ASSERT_EQUAL(ucp_worker_fence(r.p.n[0].w), UCS_OK);
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_AND, 3, 8, r.addr, r.rkey), UCS_OK);
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_OR, 4, 8, r.addr, r.rkey), UCS_OK);
	CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_XOR, 1, 8, r.addr, r.rkey), UCS_OK);
	CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
	CU_ASSERT_EQUAL(*w, 6);
	/* Those that wait. */
	CU_ASSERT_EQUAL(ucp_atomic_add64(r.self, 4, r.addr, r.self_rkey), UCS_OK);
	CU_ASSERT_EQUAL(ucp_atomic_fadd64(r.self, 1, r.addr, r.self_rkey, &v64), UCS_OK);
	CU_ASSERT_EQUAL(v64, 10);
	CU_ASSERT_EQUAL(ucp_atomic_swap64(r.self, 3, r.addr, r.self_rkey, &v64), UCS_OK);
	CU_ASSERT_EQUAL(v64, 11);
	CU_ASSERT_EQUAL(ucp_atomic_cswap64(r.self, 3, 1ull << 40, r.addr, r.self_rkey, &v64), UCS_OK);
	CU_ASSERT(v64 == 3 && *w == 1ull << 40);
	CU_ASSERT_EQUAL(ucp_atomic_add32(r.self, 4, r.addr, r.self_rkey), UCS_OK);
	CU_ASSERT_EQUAL(ucp_atomic_fadd32(r.self, 1, r.addr, r.self_rkey, &v32), UCS_OK);
	CU_ASSERT_EQUAL(v32, 4);
	CU_ASSERT_EQUAL(ucp_atomic_swap32(r.self, 3, r.addr, r.self_rkey, &v32), UCS_OK);
	CU_ASSERT_EQUAL(v32, 5);
	CU_ASSERT_EQUAL(ucp_atomic_cswap32(r.self, 4, 9, r.addr, r.self_rkey, &v32), UCS_OK);
	CU_ASSERT(v32 == 3 && *w == (1ull << 40 | 3));
	rma_unmap(&r);
	rma_close(&r);
}

/* --- order --- */

static void
fence_keeps_what_is_after_it_behind_what_is_before(void)
{
	uint8_t *big = malloc(LEN);
	uint64_t flag;
	struct rma r, f;
	ucp_rkey_h rkey;
	int i;

	rma_open(&r, LEN, false);
	rma_open(&f, 4096, true);
	/* The flag's memory belongs to this process, so its key is good for this ep as well. */
	UTIL_OK(ucp_ep_rkey_unpack(r.ep, f.blob, &rkey));
	for (i = 1; i <= 20; i++) {
		memset(big, i, LEN);
		flag = (uint64_t)i;
		CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_put_nbi(r.ep, big, LEN, r.addr, r.rkey)));
		CU_ASSERT_EQUAL(ucp_worker_fence(r.p.n[0].w), UCS_OK);
		CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_put_nbi(r.ep, &flag, 8, f.addr, rkey)));
		CU_ASSERT(UTIL_UNTIL(&r.p, __atomic_load_n((uint64_t *)(void *)f.base,
			__ATOMIC_ACQUIRE) == (uint64_t)i));
		CU_ASSERT(r.base[0] == i && r.base[LEN / 2] == i && r.base[LEN - 1] == i);
		CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)), UCS_OK);
	}
	ucp_rkey_destroy(rkey);
	rma_unmap(&f);
	rma_close(&f);
	rma_unmap(&r);
	rma_close(&r);
	free(big);
}

/* What a put that must be over at once returns. */
static ucs_status_t
forced(const struct rma *r)
{
	const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL};
	const uint64_t value = 7;

	return UCS_PTR_RAW_STATUS(ucp_put_nbx(r->ep, &value, 8, r->addr, r->rkey, &param));
}

static void
on_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep;
	*(ucs_status_t *)arg = status;
}

/* An ep to a port where nobody listens. */
static ucp_ep_h
ep_to_nobody(ucp_worker_h w, ucs_status_t *failed)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_ep_params_t params;
	ucp_ep_h ep;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS |
		UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
	params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = on_failed;
	params.err_handler.arg = failed;
	params.sockaddr.addr = (struct sockaddr *)&to;
	params.sockaddr.addrlen = sizeof(to);
	UTIL_OK(ucp_ep_create(w, &params, &ep));
	return ep;
}

static void
a_fence_does_not_wait_for_puts_that_were_never_connected(void)
{
	const ucp_request_param_t no_imm = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	ucs_status_t failed = UCS_OK, before;
	const uint64_t value = 7;
	ucs_status_ptr_t asked, late;
	ucp_rkey_h rkey;
	struct rma r;
	ucp_ep_h ep;

	rma_open(&r, 4096, false);
	before = forced(&r);
	ep = ep_to_nobody(r.p.n[0].w, &failed);
	UTIL_OK(ucp_ep_rkey_unpack(ep, r.blob, &rkey));
	asked = ucp_put_nbx(ep, &value, 8, r.addr, rkey, &no_imm);
	(void)ucp_put_nbi(ep, &value, 8, r.addr, rkey);
	CU_ASSERT(UTIL_UNTIL(&r.p, failed != UCS_OK));
	CU_ASSERT_EQUAL(finish(&r.p, asked), UCS_ERR_UNREACHABLE);
	late = ucp_put_nbx(ep, &value, 8, r.addr, rkey, &no_imm);
	CU_ASSERT_EQUAL(finish(&r.p, late), UCS_ERR_UNREACHABLE);
	CU_ASSERT_EQUAL(ucp_worker_fence(r.p.n[0].w), UCS_OK);
	CU_ASSERT_EQUAL(forced(&r), before);
	CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)), UCS_ERR_UNREACHABLE);
	ucp_rkey_destroy(rkey);
	CU_ASSERT(util_ep_close(&r.p, ep, UCP_EP_CLOSE_FLAG_FORCE));
	CU_ASSERT_EQUAL(finish(&r.p, ucp_worker_flush_nbx(r.p.n[0].w, &no_param)), UCS_OK);
	rma_unmap(&r);
	rma_close(&r);
}

static void
two_workers_add_to_one_counter_and_nothing_is_lost(void)
{
	enum { N = 2000 };
	struct rma r;
	int i;

	rma_open(&r, 4096, true);
	for (i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(ucp_atomic_post(r.ep, UCP_ATOMIC_POST_OP_ADD, 1, 8, r.addr, r.rkey),
			UCS_OK);
		CU_ASSERT_EQUAL(ucp_atomic_post(r.self, UCP_ATOMIC_POST_OP_ADD, 1, 8, r.addr,
			r.self_rkey), UCS_OK);
	}
	CU_ASSERT_EQUAL(flush(&r.p, r.ep), UCS_OK);
	CU_ASSERT_EQUAL(flush(&r.p, r.self), UCS_OK);
	CU_ASSERT_EQUAL(word(r.base, 8), 2 * N);
	rma_unmap(&r);
	rma_close(&r);
}

static void
closing_an_ep_waits_for_its_puts(void)
{
	uint8_t *buf = malloc(LEN);
	struct rma r;

	util_fill(buf, LEN, 4);
	rma_open(&r, LEN, false);
	CU_ASSERT(!UCS_STATUS_IS_ERR(ucp_put_nbi(r.ep, buf, LEN, r.addr, r.rkey)));
	CU_ASSERT(util_ep_close(&r.p, r.ep, 0));
	r.p.n[0].ep = NULL;
	CU_ASSERT(util_check(r.base, LEN, 4));
	rma_unmap(&r);
	rma_close(&r);
	free(buf);
}

struct adder {
	struct rma *r;
	pthread_t thread;
	bool ok;
};

enum { N_ADDERS = 4, N_ADDS = 500 };

static void *
add_in_thread(void *arg)
{
	struct adder *a = arg;
	uint64_t old, v = 7;
	int i;

	a->ok = true;
	for (i = 0; i < N_ADDS; i++) {
		a->ok = a->ok && ucp_atomic_fadd64(a->r->self, 1, a->r->addr, a->r->self_rkey,
			&old) == UCS_OK;
		a->ok = a->ok && ucp_put(a->r->self, &v, 8, a->r->addr + 64, a->r->self_rkey) == UCS_OK;
		a->ok = a->ok && ucp_get(a->r->self, &old, 8, a->r->addr + 64, a->r->self_rkey) ==
			UCS_OK && old == 7;
	}
	return NULL;
}

static void
threads_of_a_multi_worker_add_at_once(void)
{
	struct adder adder[N_ADDERS];
	struct rma r;
	int i;

	rma_open_with(&r, FEATURES, 4096, true, -1, UCS_THREAD_MODE_MULTI);
	for (i = 0; i < N_ADDERS; i++) {
		adder[i].r = &r;
		pthread_create(&adder[i].thread, NULL, add_in_thread, &adder[i]);
	}
	for (i = 0; i < N_ADDERS; i++) {
		pthread_join(adder[i].thread, NULL);
		CU_ASSERT(adder[i].ok);
	}
	CU_ASSERT_EQUAL(word(r.base, 8), N_ADDERS * N_ADDS);
	rma_unmap(&r);
	rma_close(&r);
}

#define BOUNDS "takes any address"
#define CHECKS "checks arguments only when built with parameter checks"

const struct api_test api_rma_tests[] = {
	T_NOT_UCX(map_takes_and_refuses_what_the_header_says, "1.13 has no LOCK"),
	T(memory_of_a_type_that_is_not_there_is_not_allocated),
	T_NOT_UCX(a_buffer_of_a_device_is_refused_by_every_operation, "it believes what it is told"),
	T_NOT_UCX(memory_of_a_device_that_processors_access_is_copied, "it has no such device"),
	T_NOT_UCX(unknown_memory_type_is_that_of_the_version, "it knows that of its own"),
	T_NOT_UCX(allocated_memory_is_zeroed_and_of_at_least_the_length, "not zeroed"),
	T(fixed_allocation_is_where_it_was_asked_for),
	T(messages_from_allocated_memory_are_of_what_is_there_now),
	T_NOT_UCX(memory_of_no_length_has_a_key_that_unpacks_and_reaches_nothing, BOUNDS),
	T(advice_needs_all_its_fields_and_a_range_inside),
	T_NOT_UCX(exported_memory_is_the_same_memory_in_another_context, "not in 1.13"),
	T_NOT_UCX(print_info_tells_of_the_memory, "other text"),
	T_NOT_UCX(a_list_of_pieces_is_put_and_got, "1.13 has no lists"),
	T_NOT_UCX(a_piece_of_a_list_may_be_blocks_at_a_distance, "1.13 has no lists"),
	T_NOT_UCX(a_list_that_is_not_whole_is_refused_and_moves_nothing, "1.13 has no lists"),
	T_NOT_UCX(an_error_of_one_piece_is_that_of_the_list, "1.13 has no lists"),
	T_NOT_UCX(a_key_has_64_bytes_at_most, "as long as its transports say"),
	T_NOT_UCX(a_key_unpacks_at_any_alignment_and_ends_by_itself, "1.13 has no ucp_memh_pack"),
	T_NOT_UCX(a_damaged_key_is_refused, "believes it"),
	T_NOT_UCX(keys_have_a_total_order, "not in 1.13"),
	T_NOT_UCX(a_pointer_of_a_key_reaches_the_memory_and_nothing_beyond, BOUNDS),
	T_NOT_UCX(access_outside_or_without_the_right_is_refused, BOUNDS),
	T(a_key_of_memory_that_is_gone_is_refused_by_the_target),
	T(put_and_get_move_every_length),
	T_NOT_UCX(nothing_to_move_is_over_at_once_without_a_key, CHECKS),
	T(a_call_that_wants_a_request_gets_one_and_one_callback),
	T(callback_never_runs_inside_the_call),
	T_NOT_UCX(forced_to_be_over_at_once_it_is_or_nothing_happened, "ignores the flag"),
	T(request_in_the_callers_memory_says_done_whatever_the_call_returned),
	T_NOT_UCX(without_the_feature_operations_are_refused, CHECKS),
	T_NOT_UCX(pieces_of_an_iov_are_put_and_got_as_one, "1.13 takes contiguous buffers only"),
	T(many_in_flight_all_arrive),
	T(every_atomic_does_what_it_says_and_returns_what_was),
	T(atomic_without_a_reply_is_over_at_once_and_its_operand_free),
	T_NOT_UCX(atomics_that_make_no_sense_are_refused, CHECKS),
	T(fetching_atomics_of_the_old_form_return_what_was),
	T(fence_keeps_what_is_after_it_behind_what_is_before),
	T_NOT_UCX(a_fence_does_not_wait_for_puts_that_were_never_connected, "the key needs a connection"),
	T(two_workers_add_to_one_counter_and_nothing_is_lost),
	T(closing_an_ep_waits_for_its_puts),
	T(threads_of_a_multi_worker_add_at_once),
	{NULL, NULL, NULL, NULL},
};
