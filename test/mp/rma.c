/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma.c - n processes put into, get from and count in the memory of each other
 *
 * Every rank has a region that it allocates and one of its own memory. All add to one
 * counter of rank 0 in each, and write their column into every rank's array.
 * arguments after N: rounds, "work"; or 0, "killed": rank 0 works on rank 1 until
 * the runner kills it
 */
#define MP_FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)
#include "mp.h"

enum { N_WORDS = 40000, N_KINDS = 2, HEAD = 8 /* words: counters, flags */ };

struct remote {
	uint64_t addr;
	ucp_rkey_h rkey;
};

static struct mp m;
static ucp_mem_h mem[N_KINDS];
static uint64_t *own[N_KINDS];
static struct remote (*there)[N_KINDS];
static const ucp_request_param_t no_param;

static void
finish(ucs_status_ptr_t ptr)
{
	ucs_status_t status;

	if (UCS_PTR_IS_PTR(ptr)) {
		MP_UNTIL(&m, ucp_request_check_status(ptr) != UCS_INPROGRESS);
		status = ucp_request_check_status(ptr);
		ucp_request_free(ptr);
	} else {
		status = UCS_PTR_RAW_STATUS(ptr);
	}
	if (status != UCS_OK)
		UTIL_DIE("rank %d: %s", m.rank, ucs_status_string(status));
}

static void
regions_open(void)
{
	const size_t len = (HEAD + N_WORDS) * 8;
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	int k;

	for (k = 0; k < N_KINDS; k++) {
		ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
				UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_ADDRESS,
			.length = len, .flags = k == 0 ? UCP_MEM_MAP_ALLOCATE : 0};
		char path[512], tmp[520];
		size_t blob_len;
		uint64_t addr;
		void *blob;
		FILE *f;

		if (k == 1)
			params.address = calloc(1, len);
		UTIL_OK(ucp_mem_map(m.ctx, &params, &mem[k]));
		UTIL_OK(ucp_mem_query(mem[k], &attr));
		own[k] = attr.address;
		addr = (uintptr_t)attr.address;
		UTIL_OK(ucp_rkey_pack(m.ctx, mem[k], &blob, &blob_len));
		snprintf(path, sizeof(path), "%s/key.%d.%d", m.dir, m.rank, k);
		snprintf(tmp, sizeof(tmp), "%s.new", path);
		f = fopen(tmp, "w");
		if (f == NULL || fwrite(&addr, 8, 1, f) != 1 ||
			fwrite(blob, 1, blob_len, f) != blob_len || fclose(f) != 0 ||
			rename(tmp, path) != 0)
			UTIL_DIE("%s: %s", path, strerror(errno));
		ucp_rkey_buffer_release(blob);
	}
}

static void
regions_find(int rank)
{
	char buf[4096], path[512];
	void *ptr;
	int k;

	mp_connect(&m, rank);
	for (k = 0; k < N_KINDS; k++) {
		uint64_t end = util_now_ns() + MP_DEADLINE_S * 1000000000ull;
		FILE *f;

		snprintf(path, sizeof(path), "%s/key.%d.%d", m.dir, rank, k);
		while ((f = fopen(path, "r")) == NULL) {
			if (util_now_ns() > end)
				UTIL_DIE("rank %d: no %s", m.rank, path);
			usleep(1000);
		}
		if (fread(buf, 1, sizeof(buf), f) < 16)
			UTIL_DIE("%s is short", path);
		fclose(f);
		memcpy(&there[rank][k].addr, buf, 8);
		UTIL_OK(ucp_ep_rkey_unpack(m.ep[rank], buf + 8, &there[rank][k].rkey));
		/* What the other has allocated is mapped through shared memory, by the name in the key. */
		if (k == 0 && getenv("PLX_RMA_SCHEME") == NULL && !util_by_network())
			UTIL_OK(ucp_rkey_ptr(there[rank][k].rkey, there[rank][k].addr, &ptr));
	}
}

/* All ranks have come here for the n-th time. */
static void
barrier(int n)
{
	uint64_t one = 1;
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(8)};
	int r;

	finish(ucp_worker_flush_nbx(m.w, &no_param));
	for (r = 0; r < m.n; r++)
		finish(ucp_atomic_op_nbx(m.ep[r], UCP_ATOMIC_OP_ADD, &one, 1, there[r][0].addr + 56,
			there[r][0].rkey, &param));
	finish(ucp_worker_flush_nbx(m.w, &no_param));
	MP_UNTIL(&m, __atomic_load_n(&own[0][7], __ATOMIC_ACQUIRE) >= (uint64_t)n * (uint64_t)m.n);
}

static void
count(int rounds)
{
	uint64_t old, last[N_KINDS] = {0};
	ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
			UCP_OP_ATTR_FIELD_REPLY_BUFFER, .datatype = ucp_dt_make_contig(8),
		.reply_buffer = &old};
	uint64_t one = 1;
	int i, k;

	for (i = 0; i < rounds; i++) {
		for (k = 0; k < N_KINDS; k++) {
			finish(ucp_atomic_op_nbx(m.ep[0], UCP_ATOMIC_OP_ADD, &one, 1, there[0][k].addr,
				there[0][k].rkey, &fetch));
			if (i > 0 && old <= last[k])
				UTIL_DIE("rank %d: the counter went from %llu to %llu", m.rank,
					(unsigned long long)last[k], (unsigned long long)old);
			last[k] = old;
			/* And the upper half of the next word, by compare and swap. */
			UTIL_OK(ucp_atomic_post(m.ep[0], UCP_ATOMIC_POST_OP_ADD, 1, 4,
				there[0][k].addr + 12, there[0][k].rkey));
		}
	}
}

/* Rank R writes the words whose index is R modulo n, in one piece for each run of them. */
static void
columns(int round)
{
	const size_t per = (size_t)(N_WORDS / m.n);
	uint64_t *out = malloc(per * 8), *in = malloc(per * 8);
	size_t i;
	int r, k;

	for (i = 0; i < per; i++)
		out[i] = util_mix((uint64_t)round << 40 | (uint64_t)m.rank << 32 | i);
	for (r = 0; r < m.n; r++) {
		for (k = 0; k < N_KINDS; k++) {
			uint64_t at = there[r][k].addr + (HEAD + (size_t)m.rank * per) * 8;
			ucs_status_t status = ucp_put_nbi(m.ep[r], out, per * 8, at, there[r][k].rkey);

			if (UCS_STATUS_IS_ERR(status))
				UTIL_DIE("put: %s", ucs_status_string(status));
		}
	}
	barrier(2 * round + 1);
	for (r = 0; r < m.n; r++) {
		for (k = 0; k < N_KINDS; k++) {
			int from = (m.rank + r) % m.n;

			/* What that rank wrote into rank r's memory, and into mine. */
			finish(ucp_get_nbx(m.ep[r], in, per * 8, there[r][k].addr +
				(HEAD + (size_t)from * per) * 8, there[r][k].rkey, &no_param));
			for (i = 0; i < per; i++) {
				uint64_t want = util_mix((uint64_t)round << 40 | (uint64_t)from << 32 | i);

				if (in[i] != want || own[k][HEAD + (size_t)from * per + i] != want)
					UTIL_DIE("rank %d: word %zu of rank %d", m.rank, i, from);
			}
		}
	}
	barrier(2 * round + 2);
	free(in);
	free(out);
}

/*
 * A barrier says that all have come, and not that all others have what they wait for: who left behind it
 * would leave their last flush without an answer.
 */
static void
leave_together(void)
{
	char name[32];
	int r;

	snprintf(name, sizeof(name), "done.%d", m.rank);
	mp_mark(&m, name);
	for (r = 0; r < m.n; r++) {
		snprintf(name, sizeof(name), "done.%d", r);
		MP_UNTIL(&m, mp_exists(&m, name));
	}
}

static void
work(int rounds)
{
	int i, k;

	for (i = 0; i < 10; i++)
		columns(i);
	count(rounds);
	barrier(21);
	for (k = 0; m.rank == 0 && k < N_KINDS; k++) {
		if (own[k][0] != (uint64_t)(rounds * m.n) ||
			own[k][1] != (uint64_t)(rounds * m.n) << 32)
			UTIL_DIE("kind %d: %llu and %llx, not %d", k, (unsigned long long)own[k][0],
				(unsigned long long)own[k][1], rounds * m.n);
	}
	barrier(22);
	leave_together();
}

/* Until the other is killed: an error has to come, and soon. */
static void
work_until_killed(void)
{
	uint64_t end = util_now_ns() + MP_DEADLINE_S * 1000000000ull, v = 1, old;
	unsigned long n = 0;
	ucs_status_t status;

	for (;;) {
		if (++n == 100)
			mp_mark(&m, "busy");
		status = ucp_put(m.ep[1], &v, 8, there[1][1].addr + 16, there[1][1].rkey);
		if (status == UCS_OK)
			status = ucp_atomic_fadd64(m.ep[1], 1, there[1][1].addr, there[1][1].rkey, &old);
		if (status == UCS_OK)
			status = ucp_put(m.ep[1], &v, 8, there[1][0].addr, there[1][0].rkey);
		if (status != UCS_OK)
			break;
		ucp_worker_progress(m.w);
		if (util_now_ns() > end)
			UTIL_DIE("no error, though the peer is gone");
	}
	MP_UNTIL(&m, mp_exists(&m, "killed"));
	MP_UNTIL(&m, m.n_err == 1);
	/* Memory of the dead that is mapped here is still there; its ep says no. */
	if (ucp_put(m.ep[1], &v, 8, there[1][0].addr, there[1][0].rkey) == UCS_OK)
		UTIL_DIE("a put to the dead");
}

int
main(int argc, char **argv)
{
	int r, k;

	m.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	mp_open(&m, argc, argv);
	m.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	there = calloc((size_t)m.n, sizeof(*there));
	regions_open();
	for (r = 0; r < m.n; r++)
		regions_find(r);
	if (strcmp(argv[5], "work") == 0) {
		work(atoi(argv[4]));
	} else if (m.rank == 0) {
		work_until_killed();
	} else {
		MP_UNTIL(&m, false);
	}
	for (r = 0; r < m.n; r++)
		for (k = 0; k < N_KINDS; k++)
			ucp_rkey_destroy(there[r][k].rkey);
	mp_close_eps(&m);
	for (k = 0; k < N_KINDS; k++)
		UTIL_OK(ucp_mem_unmap(m.ctx, mem[k]));
	free(own[1]);
	free(there);
	mp_close(&m);
	return 0;
}
