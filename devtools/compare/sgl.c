/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * sgl.c - put and get of 100,000 blocks of 4 KiB of private memory, in another order on either
 * side: as one list, as a window of single ones, and one after another; and the kernel's call for
 * each alone. In MB/s.
 *
 * usage: sgl CORE CORE
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#include "measure.h"

enum { N = 100000, LEN = 4096, ROUNDS = 3 };

struct side {
	ucp_context_h context;
	ucp_worker_h worker;
	uint8_t *memory;
};

static void *buffers[N];
static size_t lengths[N];
static uint64_t addrs[N];
static ucp_rkey_h rkeys[N];
static ucp_ep_h ep;
static pid_t target;
static const ucp_request_param_t plain;

static void
check(ucs_status_t status)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "sgl: status %d\n", (int)status);
	exit(1);
}

static void
pin(const char *core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(core), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		exit(1);
}

static void
side_open(struct side *s, int value)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
	ucp_worker_params_t worker_params = {0};

	s->memory = malloc((size_t)N * LEN);
	if (s->memory == NULL)
		exit(1);
	memset(s->memory, value, (size_t)N * LEN);
	check(ucp_init(&params, NULL, &s->context));
	check(ucp_worker_create(s->context, &worker_params, &s->worker));
}

static void
tell(int fd, const void *bytes, size_t len)
{
	if (write(fd, &len, sizeof(len)) != sizeof(len) || write(fd, bytes, len) != (ssize_t)len)
		exit(1);
}

static void *
told(int fd)
{
	size_t len;
	void *bytes;

	if (read(fd, &len, sizeof(len)) != sizeof(len))
		exit(1);
	bytes = malloc(len);
	if (bytes == NULL || read(fd, bytes, len) != (ssize_t)len)
		exit(1);
	return bytes;
}

/* It makes progress until it is killed. */
static void
target_run(int fd, const char *core)
{
	ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			UCP_MEM_MAP_PARAM_FIELD_LENGTH, .length = (size_t)N * LEN};
	size_t address_len, key_len;
	ucp_address_t *address;
	struct side s;
	ucp_mem_h mem;
	void *key;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(core);
	side_open(&s, 2);
	map.address = s.memory;
	check(ucp_mem_map(s.context, &map, &mem));
	check(ucp_rkey_pack(s.context, mem, &key, &key_len));
	check(ucp_worker_get_address(s.worker, &address, &address_len));
	tell(fd, address, address_len);
	tell(fd, key, key_len);
	tell(fd, &s.memory, sizeof(s.memory));
	for (;;)
		ucp_worker_progress(s.worker);
}

static void
finish(struct side *s, ucs_status_ptr_t ptr)
{
	if (!UCS_PTR_IS_PTR(ptr)) {
		check(UCS_PTR_RAW_STATUS(ptr));
		return;
	}
	while (ucp_request_check_status(ptr) == UCS_INPROGRESS)
		ucp_worker_progress(s->worker);
	check(ucp_request_check_status(ptr));
	ucp_request_free(ptr);
}

static void
as_list(struct side *s, int put)
{
	ucp_dt_local_sgl_t local = {.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS |
			UCP_DT_LOCAL_SGL_FIELD_LENGTHS, .buffers = buffers, .lengths = lengths};
	ucp_dt_remote_sgl_t remote = {.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
			UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS,
		.remote_addrs = addrs, .lengths = lengths, .rkeys = rkeys};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
			UCP_OP_ATTR_FIELD_REMOTE_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE |
			UCP_OP_ATTR_FIELD_REMOTE_COUNT, .datatype = ucp_dt_make_sgl(),
		.remote_datatype = ucp_dt_make_sgl(), .remote = &remote, .remote_count = N};

	finish(s, put ? ucp_put_nbx(ep, &local, N, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &param)
		      : ucp_get_nbx(ep, &local, N, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &param));
}

static void
as_window(struct side *s, int put)
{
	(void)s;
	for (int i = 0; i < N; i++)
		if (UCS_STATUS_IS_ERR(put ? ucp_put_nbi(ep, buffers[i], LEN, addrs[i], rkeys[i])
					  : ucp_get_nbi(ep, buffers[i], LEN, addrs[i], rkeys[i])))
			exit(1);
}

static void
one_by_one(struct side *s, int put)
{
	for (int i = 0; i < N; i++)
		finish(s, put ? ucp_put_nbx(ep, buffers[i], LEN, addrs[i], rkeys[i], &plain)
			      : ucp_get_nbx(ep, buffers[i], LEN, addrs[i], rkeys[i], &plain));
}

static void
by_the_kernel(struct side *s, int put)
{
	(void)s;
	for (int i = 0; i < N; i++) {
		struct iovec local = {buffers[i], LEN}, remote = {(void *)(uintptr_t)addrs[i], LEN};

		if ((put ? process_vm_writev(target, &local, 1, &remote, 1, 0)
			 : process_vm_readv(target, &local, 1, &remote, 1, 0)) != LEN)
			exit(1);
	}
}

static double
best_mb_s(struct side *s, void (*move)(struct side *, int), int put)
{
	double best = 0;

	for (int k = 0; k < ROUNDS; k++) {
		double start = now_ns(), rate;

		move(s, put);
		finish(s, ucp_ep_flush_nbx(ep, &plain));
		rate = (double)N * LEN * 1e3 / (now_ns() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

/* Every block is elsewhere on either side: the multipliers and N have no common factor. */
static void
lists_make(struct side *s, uint64_t base, ucp_rkey_h rkey)
{
	for (uint64_t i = 0; i < N; i++) {
		buffers[i] = s->memory + i * 7919 % N * LEN;
		addrs[i] = base + i * 6007 % N * LEN;
		lengths[i] = LEN;
		rkeys[i] = rkey;
	}
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*move)(struct side *s, int put);
	} ways[] = {{"list", as_list}, {"window", as_window}, {"single", one_by_one},
		{"kernel", by_the_kernel}};
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_rkey_h rkey;
	struct side s;
	void *key;
	int fds[2];

	if (argc != 3 || pipe(fds) != 0 || (target = fork()) < 0)
		return 1;
	if (target == 0)
		target_run(fds[1], argv[2]);
	pin(argv[1]);
	side_open(&s, 1);
	params.address = told(fds[0]);
	key = told(fds[0]);
	check(ucp_ep_create(s.worker, &params, &ep));
	check(ucp_ep_rkey_unpack(ep, key, &rkey));
	lists_make(&s, *(uint64_t *)told(fds[0]), rkey);
	for (int put = 0; put < 2; put++)
		for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++)
			printf("%s_%s %.0f\n", ways[k].name, put ? "put" : "get",
				best_mb_s(&s, ways[k].move, put));
	kill(target, SIGKILL);
	return 0;
}
