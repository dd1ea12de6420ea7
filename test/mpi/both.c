/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * both.c - a program that uses UCP itself beside its MPI: two contexts in one process
 */
#include <ucp/api/ucp.h>

#include "mpi_util.h"

enum { ROUNDS = 40, MAX = 300000 };

static ucp_worker_h worker;
static int rank, size, right, left;

static void
finish(void *req)
{
	ucs_status_t status;

	if (req == NULL)
		return;
	CHECK(!UCS_PTR_IS_ERR(req), "%s", ucs_status_string(UCS_PTR_STATUS(req)));
	do {
		int flag;

		ucp_worker_progress(worker);
		/* A peer may be inside MPI. */
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		status = ucp_request_check_status(req);
	} while (status == UCS_INPROGRESS);
	CHECK(status == UCS_OK, "%s", ucs_status_string(status));
	ucp_request_free(req);
}

/* Neither library moves while the program waits inside the other. */
static void
wait_all(int n, MPI_Request *req)
{
	int flag = 0;

	while (!flag) {
		ucp_worker_progress(worker);
		MPI_Testall(n, req, &flag, MPI_STATUSES_IGNORE);
	}
}

static void
barrier(void)
{
	MPI_Request req;

	MPI_Ibarrier(MPI_COMM_WORLD, &req);
	wait_all(1, &req);
}

static ucp_ep_h
connect_to(int peer)
{
	MPI_Status status;
	uint64_t mine = 0, theirs = 0;
	ucp_address_t *address;
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	size_t len;
	void *other;
	ucp_ep_h ep;
	int from = (2 * rank - peer + size) % size; /* who connects to me at the same time */

	CHECK(ucp_worker_get_address(worker, &address, &len) == UCS_OK, "address");
	mine = len;
	MPI_Sendrecv(&mine, 1, MPI_UINT64_T, from, 0, &theirs, 1, MPI_UINT64_T, peer, 0,
		MPI_COMM_WORLD, &status);
	other = util_alloc(theirs);
	MPI_Sendrecv(address, len, MPI_BYTE, from, 0, other, theirs, MPI_BYTE, peer, 0,
		MPI_COMM_WORLD, &status);
	params.address = other;
	CHECK(ucp_ep_create(worker, &params, &ep) == UCS_OK, "endpoint");
	ucp_worker_release_address(worker, address);
	free(other);
	return ep;
}

/* The same bytes go both ways at once, with the same tag. */
static void
messages(ucp_ep_h ep)
{
	static const int lens[] = {0, 8, 500, 9000, 70000, MAX};
	uint8_t *out = util_alloc(MAX), *in = util_alloc(MAX), *mpi_in = util_alloc(MAX);
	ucp_request_param_t param = {.op_attr_mask = 0};
	MPI_Request req[2];
	void *send, *recv;
	int i, len;

	for (i = 0; i < ROUNDS; i++) {
		len = lens[i % 6];
		util_fill(out, len, rank + i);
		memset(in, 0, len);
		memset(mpi_in, 0, len);
		MPI_Irecv(mpi_in, MAX, MPI_BYTE, left, 1, MPI_COMM_WORLD, &req[0]);
		recv = ucp_tag_recv_nbx(worker, in, MAX, 1, ~0ull, &param);
		send = ucp_tag_send_nbx(ep, out, len, 1, &param);
		MPI_Isend(out, len, MPI_BYTE, right, 1, MPI_COMM_WORLD, &req[1]);
		if (i & 1)
			wait_all(2, req);
		finish(recv);
		finish(send);
		if (!(i & 1))
			wait_all(2, req);
		util_check(in, len, left + i);
		util_check(mpi_in, len, left + i);
	}
	free(out);
	free(in);
	free(mpi_in);
}

/* One memory: the UCP's region and the MPI's window at once. */
static void
memory(ucp_context_h context, ucp_ep_h ep)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			UCP_MEM_MAP_PARAM_FIELD_LENGTH, .length = MAX};
	uint8_t *mem = util_alloc(MAX), *out = util_alloc(MAX), *in = util_alloc(MAX);
	ucp_request_param_t param = {.op_attr_mask = 0};
	uint64_t mine[2], theirs[2];
	void *key, *other;
	ucp_rkey_h rkey;
	ucp_mem_h memh;
	MPI_Win win;

	params.address = mem;
	CHECK(ucp_mem_map(context, &params, &memh) == UCS_OK, "map");
	CHECK(ucp_rkey_pack(context, memh, &key, &mine[1]) == UCS_OK, "key");
	mine[0] = (uintptr_t)mem;
	MPI_Sendrecv(mine, 2, MPI_UINT64_T, left, 2, theirs, 2, MPI_UINT64_T, right, 2,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	other = util_alloc(theirs[1]);
	MPI_Sendrecv(key, mine[1], MPI_BYTE, left, 2, other, theirs[1], MPI_BYTE, right, 2,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(ucp_ep_rkey_unpack(ep, other, &rkey) == UCS_OK, "unpack");
	ucp_rkey_buffer_release(key);
	MPI_Win_create(mem, MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	util_fill(out, MAX, rank);
	MPI_Win_fence(0, win);
	finish(ucp_put_nbx(ep, out, MAX / 2, theirs[0], rkey, &param));
	finish(ucp_ep_flush_nbx(ep, &param));
	barrier();
	MPI_Put(out + MAX / 2, MAX / 2, MPI_BYTE, right, MAX / 2, MAX / 2, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	util_check(mem, MAX, left);
	finish(ucp_get_nbx(ep, in, MAX, theirs[0], rkey, &param));
	util_check(in, MAX, rank);
	barrier();
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	ucp_rkey_destroy(rkey);
	CHECK(ucp_mem_unmap(context, memh) == UCS_OK, "unmap");
	free(other);
	free(mem);
	free(out);
	free(in);
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
	ucp_worker_params_t worker_params = {.field_mask = 0};
	ucp_request_param_t param = {.op_attr_mask = 0};
	ucp_context_h context;
	ucp_config_t *config;
	ucp_ep_h ep;

	/* The context is older than the MPI and outlives it. */
	CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK, "config");
	CHECK(ucp_init(&params, config, &context) == UCS_OK, "init");
	ucp_config_release(config);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "worker");
	ep = connect_to(right);
	messages(ep);
	memory(context, ep);
	finish(ucp_ep_close_nbx(ep, &param));
	barrier();
	ucp_worker_destroy(worker);
	if (rank == 0)
		printf("both ok\n");
	MPI_Finalize();
	ucp_cleanup(context);
	return 0;
}
