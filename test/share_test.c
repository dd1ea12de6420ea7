/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * share_test.c - long puts to, gets from and messages of another process, which may copy a part of them, compute, leave
 *	or be killed
 *
 * Design notes
 * - With SHARE_BLOCK=N in the environment each put and get is a list of blocks of N bytes, the last one first.
 * - The child has memory that others can map, and memory that they can't, and does what a byte in its pipe says. This
 *   process looks at the child's memory without the library.
 * - Whether the child has a chunk when it is stopped or killed is chance. So that is done often, at times that differ.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "api_run.h"
#include "child_pipe.h"
#include "plx_worker.h"

#define LEN	  (5 * MIB)
#define FEATURES  (UCP_FEATURE_TAG | UCP_FEATURE_RMA)
#define N_KILLED  12
#define N_CROSSED 40

/* It answers each with the same byte. */
enum order {
	POLL = 'p',
	COMPUTE = 'c', /* no turns until the next order */
	PUT = 'u',     /* to our memory, and flush, once; then poll */
	PUTS = 's',    /* the same, until the next order */
	GETS = 'g',    /* get our memory, until the next order */
	SENDS = 't',   /* send messages of LEN bytes, the tag is its pid, until the next order, or until one fails */
	CLOSE = 'q',   /* destroy all and exit */
};

/* Memory of the child's, or of ours. */
struct memory {
	uint64_t addr;
	uint64_t blob_len;
	uint8_t blob[256];
};

struct mapped {
	ucp_context_h ctx;
	ucp_mem_h mem;
	uint8_t *base;
	void *own;
};

/* -- both -- */

/* What ucp_mem_map() allocates, or memory of the program's. */
static struct mapped
map(ucp_context_h ctx, bool allocate)
{
	struct mapped m = {.ctx = ctx, .own = allocate ? NULL : util_guarded(LEN)};
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH, .length = LEN};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

	params.address = m.own;
	params.flags = UCP_MEM_MAP_ALLOCATE;
	params.field_mask |= allocate ? UCP_MEM_MAP_PARAM_FIELD_FLAGS : UCP_MEM_MAP_PARAM_FIELD_ADDRESS;
	UTIL_OK(ucp_mem_map(ctx, &params, &m.mem));
	UTIL_OK(ucp_mem_query(m.mem, &attr));
	m.base = attr.address;
	memset(m.base, 0, LEN);
	return m;
}

static void
unmap(struct mapped *m)
{
	UTIL_OK(ucp_mem_unmap(m->ctx, m->mem));
	if (m->own != NULL)
		util_guarded_free(m->own);
}

static void
tell_memory(int fd, const struct mapped *m)
{
	struct memory to = {.addr = (uintptr_t)m->base};
	void *blob;
	size_t len;

	UTIL_OK(ucp_rkey_pack(m->ctx, m->mem, &blob, &len));
	if (len > sizeof(to.blob))
		UTIL_DIE("a key of %zu bytes", len);
	memcpy(to.blob, blob, len);
	ucp_rkey_buffer_release(blob);
	child_put(fd, &to, sizeof(to));
}

static ucp_rkey_h
key(ucp_ep_h ep, const struct memory *m)
{
	ucp_rkey_h k;

	UTIL_OK(ucp_ep_rkey_unpack(ep, m->blob, &k));
	return k;
}

static size_t block_len; /* bytes; 0: puts and gets are no lists */

static void *
list_nbx(bool put, ucp_ep_h ep, void *buf, size_t len, uint64_t remote, ucp_rkey_h k)
{
	size_t n = (len + block_len - 1) / block_len;
	void **locals = calloc(n, sizeof(*locals));
	size_t *lens = calloc(n, sizeof(*lens));
	uint64_t *remotes = calloc(n, sizeof(*remotes));
	ucp_rkey_h *keys = calloc(n, sizeof(*keys));
	ucp_dt_local_sgl_t here = {.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS,
		.buffers = locals, .lengths = lens};
	ucp_dt_remote_sgl_t there = {.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
			UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS,
		.remote_addrs = remotes, .lengths = lens, .rkeys = keys};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
			UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_COUNT,
		.datatype = ucp_dt_make_sgl(), .remote_datatype = ucp_dt_make_sgl(), .remote = &there, .remote_count = n};
	void *req;

	for (size_t i = 0; i < n; i++) {
		size_t at = (n - 1 - i) * block_len;

		locals[i] = (char *)buf + at;
		lens[i] = len - at < block_len ? len - at : block_len;
		remotes[i] = remote + at;
		keys[i] = k;
	}
	req = put ? ucp_put_nbx(ep, &here, n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &param)
		  : ucp_get_nbx(ep, &here, n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &param);
	free(locals);
	free(lens);
	free(remotes);
	free(keys);
	return req;
}

static void *
put_nbx(ucp_ep_h ep, const void *buf, size_t len, uint64_t to, ucp_rkey_h k)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (block_len != 0)
		return list_nbx(true, ep, (void *)(uintptr_t)buf, len, to, k);
	return ucp_put_nbx(ep, buf, len, to, k, &param);
}

static void *
get_nbx(ucp_ep_h ep, void *buf, size_t len, uint64_t from, ucp_rkey_h k)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (block_len != 0)
		return list_nbx(false, ep, buf, len, from, k);
	return ucp_get_nbx(ep, buf, len, from, k, &param);
}

/* @return the status of an operation, once it has ended */
static ucs_status_t
wait_for(ucp_worker_h w, void *req)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	ucs_status_t st;

	if (!UCS_PTR_IS_PTR(req))
		return UCS_PTR_STATUS(req);
	while ((st = ucp_request_check_status(req)) == UCS_INPROGRESS && util_now_ns() < end)
		ucp_worker_progress(w);
	ucp_request_free(req);
	return st;
}

static ucs_status_t
flush(ucp_worker_h w, ucp_ep_h ep)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	return wait_for(w, ucp_ep_flush_nbx(ep, &param));
}

/* -- the child -- */

/* As who may not read the memory of a process that has more rights. */
static void
drop_rights(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (syscall(SYS_capset, &h, none) != 0)
		UTIL_DIE("capset");
}

static void
answer(enum order o)
{
	const char byte = (char)o;

	child_put(CHILD_OUT, &byte, 1);
}

static void
child_puts(ucp_worker_h w, ucp_ep_h ep, const struct memory *ours)
{
	static uint8_t buf[LEN];
	static uint64_t seed;
	ucp_rkey_h k = key(ep, ours);

	util_fill(buf, LEN, ++seed);
	if (wait_for(w, put_nbx(ep, buf, LEN, ours->addr, k)) != UCS_OK || flush(w, ep) != UCS_OK)
		_exit(1);
	ucp_rkey_destroy(k);
}

static void
child_gets(ucp_worker_h w, ucp_ep_h ep, const struct memory *ours)
{
	static uint8_t buf[LEN];
	ucp_rkey_h k = key(ep, ours);

	if (wait_for(w, get_nbx(ep, buf, LEN, ours->addr, k)) != UCS_OK || !util_check(buf, LEN, 77))
		_exit(1);
	ucp_rkey_destroy(k);
}

static bool
child_sends(ucp_worker_h w, ucp_ep_h ep)
{
	ucp_request_param_t param = {.op_attr_mask = 0};
	static uint8_t buf[LEN];

	return wait_for(w, ucp_tag_send_nbx(ep, buf, LEN, (ucp_tag_t)getpid(), &param)) == UCS_OK;
}

static void
child_runs(ucp_worker_h w, ucp_ep_h ep, const struct memory *ours)
{
	struct pollfd in = {.fd = CHILD_IN, .events = POLLIN};
	char order = POLL;

	while (order != CLOSE) {
		if (order == PUT || order == PUTS)
			child_puts(w, ep, ours);
		if (order == GETS)
			child_gets(w, ep, ours);
		if (order == PUT || (order == SENDS && !child_sends(w, ep)))
			order = POLL;
		if (order == POLL)
			ucp_worker_progress(w);
		if (order != COMPUTE && poll(&in, 1, 0) == 0)
			continue;
		child_get(CHILD_IN, &order, 1);
		answer(order);
	}
}

static void
peer_failed(void *arg, ucp_ep_h ep, ucs_status_t st)
{
	(void)arg, (void)ep, (void)st;
}

static void
child_works(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	struct mapped m[2] = {map(ctx, false), map(ctx, true)};
	struct memory ours;
	ucp_ep_h ep;

	child_put_address(CHILD_OUT, w);
	ep = util_ep_with_handler(w, child_get_address(CHILD_IN), peer_failed, NULL);
	for (unsigned i = 0; i < 2; i++)
		tell_memory(CHILD_OUT, &m[i]);
	child_get(CHILD_IN, &ours, sizeof(ours));
	child_runs(w, ep, &ours);
	for (unsigned i = 0; i < 2; i++)
		unmap(&m[i]);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static int
child_main(const char *arg)
{
	alarm(200);
	if (strcmp(arg, "weak") == 0)
		drop_rights(); /* before there are reactors: rights belong to threads */
	child_works();
	return 0;
}

/* -- this process, and its child -- */

static struct {
	ucp_context_h ctx;
	ucp_worker_h w;
	ucp_ep_h ep;
	struct child c;
	struct memory there[2]; /* not mapped, mapped */
	ucp_rkey_h key[2];
	struct mapped mine;
	uint8_t *buf; /* LEN bytes with guards */
	unsigned n_failed;
} s;

static void
failed(void *arg, ucp_ep_h ep, ucs_status_t st)
{
	(void)arg, (void)ep, (void)st;
	s.n_failed++;
}

static void
child_begin(const char *arg)
{
	child_spawn(&s.c, "share", arg);
	child_put_address(s.c.to, s.w);
	s.c.addr = child_get_address(s.c.from);
	s.ep = util_ep_with_handler(s.w, s.c.addr, failed, NULL);
	for (unsigned i = 0; i < 2; i++) {
		child_get(s.c.from, &s.there[i], sizeof(s.there[i]));
		s.key[i] = key(s.ep, &s.there[i]);
	}
	tell_memory(s.c.to, &s.mine);
}

static ucs_status_t
close_ep(ucp_ep_h ep, unsigned flags)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};

	return wait_for(s.w, ucp_ep_close_nbx(ep, &param));
}

static void
child_end(void)
{
	for (unsigned i = 0; i < 2; i++)
		ucp_rkey_destroy(s.key[i]);
	child_close(&s.c);
	CU_ASSERT(close_ep(s.ep, UCP_EP_CLOSE_FLAG_FORCE) != UCS_INPROGRESS);
}

static void
begin_with(const char *arg, ucs_thread_mode_t mode)
{
	memset(&s, 0, sizeof(s));
	s.ctx = util_context(FEATURES);
	s.w = util_worker(s.ctx, mode);
	s.mine = map(s.ctx, false);
	s.buf = util_guarded(LEN);
	child_begin(arg);
}

static void
begin(void)
{
	begin_with("", UCS_THREAD_MODE_SINGLE);
}

static void
end_here(void)
{
	CU_ASSERT(util_guards_ok(s.mine.own, LEN));
	unmap(&s.mine);
	ucp_worker_destroy(s.w);
	ucp_cleanup(s.ctx);
	util_guarded_free(s.buf);
}

static void
end(void)
{
	child_end();
	end_here();
}

/* Our turns go on meanwhile. */
static void
answered(void)
{
	struct pollfd in = {.fd = s.c.from, .events = POLLIN};
	char byte;

	while (poll(&in, 1, 0) == 0)
		ucp_worker_progress(s.w);
	child_get(s.c.from, &byte, 1);
}

static void
tell(enum order o)
{
	const char byte = (char)o;

	child_put(s.c.to, &byte, 1);
}

static void
order(enum order o)
{
	tell(o);
	answered();
}

static void
turns(unsigned n)
{
	while (n-- > 0)
		ucp_worker_progress(s.w);
}

/* The child's memory, as the kernel sees it. */
static void
peek(uint64_t addr, void *buf, size_t len)
{
	struct iovec here = {buf, len}, there = {(void *)(uintptr_t)addr, len};

	CU_ASSERT_EQUAL_FATAL(process_vm_readv(s.c.pid, &here, 1, &there, 1, 0), (ssize_t)len);
}

static void
poke(uint64_t addr, void *buf, size_t len)
{
	struct iovec here = {buf, len}, there = {(void *)(uintptr_t)addr, len};

	CU_ASSERT_EQUAL_FATAL(process_vm_writev(s.c.pid, &here, 1, &there, 1, 0), (ssize_t)len);
}

/* Bytes of buf from at are there, and those beside them are as before, which is 0. */
static bool
arrived(unsigned mem, size_t at, const uint8_t *buf, size_t len)
{
	static uint8_t got[LEN];
	size_t before = at < 8 ? at : 8, after = LEN - at - len < 8 ? LEN - at - len : 8;
	static const uint8_t none[8];

	peek(s.there[mem].addr + at - before, got, before + len + after);
	return memcmp(got, none, before) == 0 && memcmp(got + before, buf, len) == 0 &&
	       memcmp(got + before + len, none, after) == 0;
}

static void
add_helped(struct plx_worker *w, void *arg)
{
	*(uint64_t *)arg += w->rma.stat.shares_helped;
}

/* Our puts and gets of which the child copied a part. */
static uint64_t
n_helped(void)
{
	uint64_t n = 0;

	plx_worker_each(add_helped, &n);
	return n;
}

/* Whether nobody has to run turns but who puts or gets. */
static bool
is_by_device(void)
{
	const char *cma = getenv("PLX_SHM_CMA"), *scheme = getenv("PLX_RMA_SCHEME");

	return (cma == NULL || strcmp(cma, "no") != 0) && (scheme == NULL || strcmp(scheme, "message") != 0);
}

/* Whether a child that polls copies parts of our puts and gets for certain: not where it may do all of one. */
static bool
is_helped(void)
{
	const char *scheme = getenv("PLX_RMA_SCHEME");

	return is_by_device() && scheme != NULL && strcmp(scheme, "device") == 0;
}

static bool
is_as_helped_as_it_is_to_be(void)
{
	return is_helped() ? n_helped() != 0 : is_by_device() || n_helped() == 0;
}

/* -- tests -- */

static const size_t lens[] = {128 * KIB - 1, 128 * KIB, 128 * KIB + 1, 200001, 256 * KIB + 7, MIB, MIB + 1,
	3 * MIB + 5};
#define N_LENS (sizeof(lens) / sizeof(lens[0]))

/* To the memory of a child that does this; from and to any address. */
static void
every_length_arrives(unsigned mem, enum order does)
{
	for (unsigned i = 0; i < 3 * N_LENS; i++) {
		size_t len = lens[i / 3], at = 8 + i * 131, from = i % 3 * 3;

		tell(does);
		answered();
		util_fill(s.buf, LEN, i + 1);
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf + from, len, s.there[mem].addr + at, s.key[mem])), UCS_OK);
		CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
		CU_ASSERT(arrived(mem, at, s.buf + from, len));
		memset(s.buf, 0, LEN); /* the child has none of it for later */
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf, LEN, s.there[mem].addr, s.key[mem])), UCS_OK);
		CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
	}
}

static void
every_length_arrives_at_a_target_that_polls(void)
{
	uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	begin();
	every_length_arrives(0, POLL);
	while (is_helped() && n_helped() == 0 && util_now_ns() < end_ns) /* it may have had no processor */
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
	CU_ASSERT(is_as_helped_as_it_is_to_be());
	end();
}

static void
every_length_arrives_at_a_target_that_computes(void)
{
	const char *reactor = getenv("PLX_REACTOR");

	begin();
	every_length_arrives(0, is_by_device() ? COMPUTE : POLL); /* messages need its turns */
	if (reactor == NULL && is_helped())
		CU_ASSERT_EQUAL(n_helped(), 0);
	end();
}

static void
allocated_memory_has_all_of_it(void)
{
	begin();
	every_length_arrives(1, POLL);
	if (!is_helped()) /* it is mapped here, unless the device is to do all */
		CU_ASSERT_EQUAL(n_helped(), 0);
	end();
}

static void
memory_that_is_only_readable_is_put(void)
{
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(p != MAP_FAILED);
	util_fill(p, LEN, 3);
	CU_ASSERT_EQUAL(mprotect(p, LEN, PROT_READ), 0);
	begin();
	for (unsigned i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, p, LEN, s.there[0].addr, s.key[0])), UCS_OK);
	CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
	CU_ASSERT(arrived(0, 0, p, LEN));
	end();
	munmap(p, LEN);
}

/* Long and short ones that overlap: the later one stays. */
static void
a_fence_orders_long_and_short_puts(void)
{
	static uint8_t word[8];

	begin();
	for (unsigned i = 1; i <= 60; i++) {
		size_t len = 128 * KIB + i * 50000, at = i * 777 % (len - 8);
		bool short_last = i % 2;
		void *req[2];

		util_fill(s.buf, len, i);
		memset(word, (int)i, 8);
		req[!short_last] = short_last ? put_nbx(s.ep, s.buf, len, s.there[0].addr, s.key[0])
					      : put_nbx(s.ep, word, 8, s.there[0].addr + at, s.key[0]);
		CU_ASSERT_EQUAL(ucp_worker_fence(s.w), UCS_OK);
		req[short_last] = short_last ? put_nbx(s.ep, word, 8, s.there[0].addr + at, s.key[0])
					     : put_nbx(s.ep, s.buf, len, s.there[0].addr, s.key[0]);
		CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
		CU_ASSERT_EQUAL(wait_for(s.w, req[0]), UCS_OK);
		CU_ASSERT_EQUAL(wait_for(s.w, req[1]), UCS_OK);
		if (short_last)
			memcpy(s.buf + at, word, 8);
		peek(s.there[0].addr, s.mine.base, len);
		CU_ASSERT_EQUAL(memcmp(s.mine.base, s.buf, len), 0);
	}
	end();
}

/* Ours are many at a time, and the child's come to our memory meanwhile. */
static void
many_puts_that_cross_all_arrive(void)
{
	enum { N = 24 };
	void *req[N];

	begin();
	for (unsigned k = 1; k <= N_CROSSED; k++) {
		const size_t piece = LEN / N & ~7ul;

		tell(PUT);
		util_fill(s.buf, LEN, 100 + k);
		for (unsigned i = 0; i < N; i++)
			req[i] = put_nbx(s.ep, s.buf + i * piece, piece, s.there[0].addr + i * piece, s.key[0]);
		for (unsigned i = 0; i < N; i++)
			CU_ASSERT_EQUAL(wait_for(s.w, req[i]), UCS_OK);
		CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
		CU_ASSERT(arrived(0, 0, s.buf, N * piece));
		answered();
		order(POLL); /* it has put, and flushed */
		CU_ASSERT(util_check(s.mine.base, LEN, k));
	}
	end();
}

static void
kill_somewhen(unsigned i)
{
	turns(i % 5);
	if (i % 2 == 0) {
		kill(s.c.pid, SIGKILL);
		return;
	}
	kill(s.c.pid, SIGSTOP);
	waitpid(s.c.pid, NULL, WUNTRACED);
	turns(1000);
	kill(s.c.pid, SIGKILL);
}

/* Each put ends, well or by an error, and later ones end by one. */
static void
a_target_that_is_killed_is_an_error(void)
{
	enum { N = 6 };
	void *req[N];

	begin();
	util_fill(s.buf, LEN, 5);
	for (unsigned i = 0; i < N_KILLED; i++) {
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
		ucs_status_t st;

		s.n_failed = 0;
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
		for (unsigned k = 0; k < N; k++)
			req[k] = put_nbx(s.ep, s.buf, LEN - k, s.there[0].addr + k, s.key[0]);
		kill_somewhen(i);
		for (unsigned k = 0; k < N; k++) {
			st = wait_for(s.w, req[k]);
			CU_ASSERT(st == UCS_OK || st == UCS_ERR_CONNECTION_RESET || st == UCS_ERR_ENDPOINT_TIMEOUT);
		}
		while (s.n_failed == 0 && util_now_ns() < end_ns)
			turns(1);
		CU_ASSERT_EQUAL(s.n_failed, 1);
		CU_ASSERT(UCS_PTR_IS_ERR(put_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])));
		CU_ASSERT(util_check(s.buf, LEN, 5));
		child_end();
		child_begin("");
	}
	CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
	CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
	CU_ASSERT(arrived(0, 0, s.buf, LEN));
	end();
}

/* Nothing comes any more, nothing came beside it, and others can put. */
static void
an_initiator_that_is_killed_leaves_its_target_sane(void)
{
	begin();
	for (unsigned i = 0; i < N_KILLED; i++) {
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

		s.n_failed = 0;
		order(PUTS);
		turns(200 + i * 37);
		kill_somewhen(i);
		while (s.n_failed == 0 && util_now_ns() < end_ns)
			turns(1);
		CU_ASSERT_EQUAL(s.n_failed, 1);
		memcpy(s.buf, s.mine.base, LEN);
		turns(10000);
		CU_ASSERT_EQUAL(memcmp(s.buf, s.mine.base, LEN), 0);
		CU_ASSERT(util_guards_ok(s.mine.own, LEN));
		child_end();
		child_begin("");
		tell(PUT);
		answered();
		order(POLL);
		CU_ASSERT(util_check(s.mine.base, LEN, 1));
	}
	end();
}

/* All puts end at once; an ep that is made anew puts to other memory. */
static void
an_ep_is_closed_by_force_while_both_copy(void)
{
	enum { N = 4 };
	void *req[N];

	begin();
	for (unsigned i = 0; i < 16; i++) {
		bool stops = i % 2;

		util_fill(s.buf, LEN, i);
		for (unsigned k = 0; k < N; k++)
			req[k] = put_nbx(s.ep, s.buf, LEN / 2, s.there[0].addr, s.key[0]);
		if (stops) {
			kill(s.c.pid, SIGSTOP);
			waitpid(s.c.pid, NULL, WUNTRACED);
		}
		turns(i % 5);
		for (unsigned k = 0; k < 2; k++)
			ucp_rkey_destroy(s.key[k]);
		CU_ASSERT_EQUAL(close_ep(s.ep, UCP_EP_CLOSE_FLAG_FORCE), UCS_OK);
		for (unsigned k = 0; k < N; k++) {
			ucs_status_t st = wait_for(s.w, req[k]);

			CU_ASSERT(st == UCS_OK || st == UCS_ERR_CANCELED);
		}
		if (stops)
			kill(s.c.pid, SIGCONT);
		s.ep = util_ep_with_handler(s.w, s.c.addr, failed, NULL);
		for (unsigned k = 0; k < 2; k++)
			s.key[k] = key(s.ep, &s.there[k]);
		CU_ASSERT_EQUAL(wait_for(s.w, put_nbx(s.ep, s.buf, LEN / 2, s.there[0].addr + LEN / 2, s.key[0])), UCS_OK);
		CU_ASSERT_EQUAL(flush(s.w, s.ep), UCS_OK);
		peek(s.there[0].addr + LEN / 2, s.mine.base, LEN / 2);
		CU_ASSERT_EQUAL(memcmp(s.mine.base, s.buf, LEN / 2), 0);
	}
	end();
}

/* It destroys its worker, which has what we put. */
static void
a_target_that_leaves_is_no_hang(void)
{
	void *req[4];

	begin();
	util_fill(s.buf, LEN, 9);
	for (unsigned k = 0; k < 4; k++)
		req[k] = put_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0]);
	tell(CLOSE);
	for (unsigned k = 0; k < 4; k++)
		CU_ASSERT(wait_for(s.w, req[k]) != UCS_INPROGRESS);
	CU_ASSERT(flush(s.w, s.ep) != UCS_INPROGRESS);
	end();
}

/* The kernel lets it read no memory of ours, or write none. */
static void
who_may_not_copy_lets_the_other(void)
{
	begin_with("weak", UCS_THREAD_MODE_SINGLE);
	every_length_arrives(0, POLL);
	CU_ASSERT_EQUAL(n_helped(), 0);
	for (unsigned i = 1; i <= 5; i++) {
		tell(PUT);
		answered();
		order(POLL);
		CU_ASSERT(util_check(s.mine.base, LEN, i));
	}
	end();
}

#define THREADS 3
#define PART	(LEN / THREADS & ~7ul)

static void *
thread_puts(void *arg)
{
	uintptr_t i = (uintptr_t)arg, ok = 1;

	for (unsigned k = 0; k < 30; k++) {
		util_fill(s.buf + i * PART, PART, 1000 * i + k);
		ok &= wait_for(s.w, put_nbx(s.ep, s.buf + i * PART, PART, s.there[0].addr + i * PART, s.key[0])) == UCS_OK;
		ok &= flush(s.w, s.ep) == UCS_OK;
	}
	return (void *)ok;
}

static void
threads_of_a_multi_worker_put(void)
{
	pthread_t t[THREADS];

	begin_with("", UCS_THREAD_MODE_MULTI);
	for (uintptr_t i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, thread_puts, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *ok;

		pthread_join(t[i], &ok);
		CU_ASSERT(ok != NULL);
	}
	CU_ASSERT(arrived(0, 0, s.buf, THREADS * PART));
	end();
}

/* -- gets -- */

/* Of the memory of a child that does this; from and to any address. */
static void
every_length_comes(enum order does)
{
	const uint8_t none[8] = {0};

	for (unsigned i = 0; i < 3 * N_LENS; i++) {
		size_t len = lens[i / 3], at = 8 + i * 131, to = 8 + i % 3 * 3;

		order(does);
		util_fill(s.mine.base, LEN, i + 1);
		poke(s.there[0].addr, s.mine.base, LEN);
		memset(s.buf, 0, LEN);
		CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, s.buf + to, len, s.there[0].addr + at, s.key[0])), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(s.buf + to, s.mine.base + at, len), 0);
		CU_ASSERT_EQUAL(memcmp(s.buf + to - 8, none, 8), 0);
		CU_ASSERT_EQUAL(memcmp(s.buf + to + len, none, 8), 0);
	}
}

static void
every_length_comes_from_a_target_that_polls(void)
{
	uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	begin();
	every_length_comes(POLL);
	while (is_helped() && n_helped() == 0 && util_now_ns() < end_ns) /* it may have had no processor */
		CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
	CU_ASSERT(is_as_helped_as_it_is_to_be());
	end();
}

static void
every_length_comes_from_a_target_that_computes(void)
{
	begin();
	every_length_comes(is_by_device() ? COMPUTE : POLL);
	if (getenv("PLX_REACTOR") == NULL && is_helped())
		CU_ASSERT_EQUAL(n_helped(), 0);
	end();
}

static void
who_may_not_write_lets_the_initiator_get(void)
{
	begin_with("weak", UCS_THREAD_MODE_SINGLE);
	every_length_comes(POLL);
	CU_ASSERT_EQUAL(n_helped(), 0);
	end();
}

/* To memory that neither side may write: an error, and the next one comes. By messages the initiator would crash. */
static void
memory_that_is_only_readable_gets_nothing(void)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(p != MAP_FAILED);
	if (!is_helped())
		return;
	begin();
	for (unsigned i = 0; i < 20; i++) {
		size_t hole = i % 5 * MIB; /* of 1 MiB */

		CU_ASSERT_EQUAL(mprotect(p + hole, MIB, PROT_READ), 0);
		CU_ASSERT(UCS_STATUS_IS_ERR(wait_for(s.w, get_nbx(s.ep, p, LEN, s.there[0].addr, s.key[0]))));
		CU_ASSERT_EQUAL(mprotect(p + hole, MIB, PROT_READ | PROT_WRITE), 0);
		util_fill(s.mine.base, LEN, i);
		poke(s.there[0].addr, s.mine.base, LEN);
		CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, p, LEN, s.there[0].addr, s.key[0])), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(p, s.mine.base, LEN), 0);
	}
	end();
	munmap(p, LEN);
}

/* The buffer of a get or a receive that has ended belongs to the program: nobody writes to it. */
static void
stays_as_it_is(void)
{
	uint64_t end_ns = util_now_ns() + 2000000;

	memset(s.buf, 0x5a, LEN);
	do {
		turns(100);
	} while (util_now_ns() < end_ns);
	for (size_t i = 0; i < LEN; i++)
		if (s.buf[i] != 0x5a) {
			CU_FAIL("the peer has written to the buffer of an operation that has ended");
			break;
		}
}

/* Each get ends, well or by an error, and none writes later. */
static void
a_target_that_is_killed_writes_nothing_later(void)
{
	enum { N = 6 };
	void *req[N];

	begin();
	for (unsigned i = 0; i < N_KILLED; i++) {
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

		s.n_failed = 0;
		CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
		for (unsigned k = 0; k < N; k++)
			req[k] = get_nbx(s.ep, s.buf + k, LEN - k, s.there[0].addr + k, s.key[0]);
		kill_somewhen(i);
		for (unsigned k = 0; k < N; k++) {
			ucs_status_t st = wait_for(s.w, req[k]);

			CU_ASSERT(st == UCS_OK || st == UCS_ERR_CONNECTION_RESET || st == UCS_ERR_ENDPOINT_TIMEOUT);
		}
		stays_as_it_is();
		while (s.n_failed == 0 && util_now_ns() < end_ns)
			turns(1);
		CU_ASSERT_EQUAL(s.n_failed, 1);
		child_end();
		child_begin("");
	}
	CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
	end();
}

/* A target that helps writes to no other memory, and other gets go on. */
static void
an_initiator_of_gets_that_is_killed_leaves_its_target_sane(void)
{
	begin();
	util_fill(s.mine.base, LEN, 77);
	for (unsigned i = 0; i < N_KILLED; i++) {
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

		s.n_failed = 0;
		order(GETS);
		turns(200 + i * 37);
		kill_somewhen(i);
		while (s.n_failed == 0 && util_now_ns() < end_ns)
			turns(1);
		CU_ASSERT_EQUAL(s.n_failed, 1);
		CU_ASSERT(util_check(s.mine.base, LEN, 77));
		child_end();
		child_begin("");
		order(GETS);
		turns(1000);
		order(POLL); /* it has got at least one, and checked it */
	}
	end();
}

/* The gets end, at the latest when the target, which may have been stopped with a part of one, goes on. */
static void
an_ep_is_closed_by_force_while_both_get(void)
{
	enum { N = 4 };
	void *req[N], *close;

	begin();
	for (unsigned i = 0; i < 24; i++) {
		ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
		bool stops = i % 2;

		for (unsigned k = 0; k < N; k++)
			req[k] = get_nbx(s.ep, s.buf, LEN / 2, s.there[0].addr, s.key[0]);
		turns(i % 7);
		if (stops) {
			kill(s.c.pid, SIGSTOP);
			waitpid(s.c.pid, NULL, WUNTRACED);
		}
		for (unsigned k = 0; k < 2; k++)
			ucp_rkey_destroy(s.key[k]);
		close = ucp_ep_close_nbx(s.ep, &param);
		turns(100);
		if (stops)
			kill(s.c.pid, SIGCONT);
		for (unsigned k = 0; k < N; k++) {
			ucs_status_t st = wait_for(s.w, req[k]);

			CU_ASSERT(st == UCS_OK || st == UCS_ERR_CANCELED);
		}
		stays_as_it_is();
		CU_ASSERT_EQUAL(wait_for(s.w, close), UCS_OK);
		s.ep = util_ep_with_handler(s.w, s.c.addr, failed, NULL);
		for (unsigned k = 0; k < 2; k++)
			s.key[k] = key(s.ep, &s.there[k]);
		util_fill(s.mine.base, LEN, i);
		poke(s.there[0].addr, s.mine.base, LEN);
		CU_ASSERT_EQUAL(wait_for(s.w, get_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0])), UCS_OK);
		CU_ASSERT_EQUAL(memcmp(s.mine.base, s.buf, LEN), 0);
	}
	end();
}

/* The worker goes while gets are on their way: as soon as it has, nobody writes. */
static void
a_worker_is_destroyed_while_both_get(void)
{
	begin();
	for (unsigned i = 0; i < 12; i++) {
		for (unsigned k = 0; k < 4; k++)
			(void)get_nbx(s.ep, s.buf, LEN, s.there[0].addr, s.key[0]);
		turns(i % 4);
		for (unsigned k = 0; k < 2; k++)
			ucp_rkey_destroy(s.key[k]);
		ucp_worker_destroy(s.w);
		memset(s.buf, 0x5a, LEN);
		usleep(2000);
		for (size_t at = 0; at < LEN; at += 8)
			CU_ASSERT_EQUAL_FATAL(s.buf[at], 0x5a);
		child_close(&s.c);
		s.w = util_worker(s.ctx, UCS_THREAD_MODE_SINGLE);
		child_begin("");
	}
	end();
}

static void *
recv_nbx(void)
{
	ucp_request_param_t param = {.op_attr_mask = 0};

	return ucp_tag_recv_nbx(s.w, s.buf, LEN, (ucp_tag_t)s.c.pid, UINT64_MAX, &param);
}

static void
add_recvs(struct plx_worker *w, void *arg)
{
	*(uint64_t *)arg += w->rndv.stat.recvs;
}

/* @return a second message's, of which both copy parts when this returns, unless they run on one core */
static void *
recv_begun(void)
{
	uint64_t before = 0, now, end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	void *req;

	order(SENDS);
	CU_ASSERT_EQUAL(wait_for(s.w, recv_nbx()), UCS_OK);
	plx_worker_each(add_recvs, &before);
	req = recv_nbx();
	do {
		turns(1);
		now = 0;
		plx_worker_each(add_recvs, &now);
	} while (now == before && util_now_ns() < end_ns);
	CU_ASSERT(now > before);
	return req;
}

/* The same of a receive, whose sender helps. It writes to the end of the buffer first. */
static void
a_worker_is_destroyed_while_both_receive(void)
{
	begin();
	for (unsigned i = 0; i < 24; i++) {
		(void)recv_begun();
		turns(i % 6);
		for (unsigned k = 0; k < 2; k++)
			ucp_rkey_destroy(s.key[k]);
		ucp_worker_destroy(s.w);
		for (size_t at = LEN; at > 0; at -= 1024)
			s.buf[at - 1] = 0x5a;
		usleep(2000);
		for (size_t at = LEN; at > 0; at -= 1024)
			CU_ASSERT_EQUAL_FATAL(s.buf[at - 1], 0x5a);
		child_close(&s.c);
		s.w = util_worker(s.ctx, UCS_THREAD_MODE_SINGLE);
		child_begin("");
	}
	end();
}

/* Each receive ends, well or by an error, and its sender writes nothing later. */
static void
a_sender_that_is_killed_writes_nothing_later(void)
{
	begin();
	for (unsigned i = 0; i < N_KILLED; i++) {
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
		ucs_status_t st;
		void *req;

		s.n_failed = 0;
		req = recv_begun();
		kill_somewhen(i);
		st = UCS_PTR_IS_PTR(req) ? ucp_request_check_status(req) : UCS_PTR_STATUS(req);
		if (st == UCS_INPROGRESS)
			while (s.n_failed == 0 && util_now_ns() < end_ns)
				turns(1);
		if (st == UCS_INPROGRESS && ucp_request_check_status(req) == UCS_INPROGRESS)
			ucp_request_cancel(s.w, req); /* nothing had come of its message */
		st = wait_for(s.w, req);
		CU_ASSERT(st == UCS_OK || st == UCS_ERR_CONNECTION_RESET || st == UCS_ERR_CANCELED);
		stays_as_it_is();
		child_end();
		child_begin("");
	}
	end();
}

static void *
thread_gets(void *arg)
{
	uintptr_t i = (uintptr_t)arg, ok = 1;

	for (unsigned k = 0; k < 30; k++) {
		memset(s.buf + i * PART, 0, PART);
		ok &= wait_for(s.w, get_nbx(s.ep, s.buf + i * PART, PART, s.there[0].addr + i * PART, s.key[0])) == UCS_OK;
		ok &= memcmp(s.buf + i * PART, s.mine.base + i * PART, PART) == 0;
	}
	return (void *)ok;
}

static void
threads_of_a_multi_worker_get(void)
{
	pthread_t t[THREADS];

	begin_with("", UCS_THREAD_MODE_MULTI);
	util_fill(s.mine.base, LEN, 3);
	poke(s.there[0].addr, s.mine.base, LEN);
	for (uintptr_t i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, thread_gets, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *ok;

		pthread_join(t[i], &ok);
		CU_ASSERT(ok != NULL);
	}
	end();
}

static const struct api_test tests[] = {
	T(every_length_arrives_at_a_target_that_polls),
	T(every_length_arrives_at_a_target_that_computes),
	T(allocated_memory_has_all_of_it),
	T(memory_that_is_only_readable_is_put),
	T(a_fence_orders_long_and_short_puts),
	T(many_puts_that_cross_all_arrive),
	T(a_target_that_is_killed_is_an_error),
	T(an_initiator_that_is_killed_leaves_its_target_sane),
	T(an_ep_is_closed_by_force_while_both_copy),
	T(a_target_that_leaves_is_no_hang),
	T(who_may_not_copy_lets_the_other),
	T(threads_of_a_multi_worker_put),
	T(every_length_comes_from_a_target_that_polls),
	T(every_length_comes_from_a_target_that_computes),
	T(who_may_not_write_lets_the_initiator_get),
	T(memory_that_is_only_readable_gets_nothing),
	T(a_target_that_is_killed_writes_nothing_later),
	T(an_initiator_of_gets_that_is_killed_leaves_its_target_sane),
	T(an_ep_is_closed_by_force_while_both_get),
	T(a_worker_is_destroyed_while_both_get),
	T(a_worker_is_destroyed_while_both_receive),
	T(a_sender_that_is_killed_writes_nothing_later),
	T(threads_of_a_multi_worker_get),
	{NULL, NULL, NULL, NULL},
};

int
main(int argc, char **argv)
{
	const char *block = getenv("SHARE_BLOCK");
	const struct api_test *table = tests;

	block_len = block != NULL ? strtoul(block, NULL, 10) : 0;
	if (argc > 3 && strcmp(argv[1], "--child") == 0)
		return child_main(argv[3]);
	return api_run("share", &table, 1, argc > 1 ? argv[1] : "", false);
}
