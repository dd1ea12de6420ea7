/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_fork.c - children that are forked in the middle of it
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "api_fork.h"
#include "ucp_api_test.h"

/* What a child may find when it begins, and what it tells its parent. */
struct scene {
	struct pair p;
	int up[2]; /* a pipe from the child to the parent */
	ucp_mem_h memh;
	void *mem;
	void *key;
	ucp_rkey_h rkey;
	void *pending[2]; /* receives, one for each worker, that are posted as the child is forked; or NULL */
	void (*child)(struct scene *s);
	bool busy; /* another thread goes on with the pair */
};

static const size_t lens[] = {0, 8, 1000, 20000, 100000, 1 * MIB};
#define N_LENS (sizeof(lens) / sizeof(lens[0]))
#define MEM_LEN 65536u

/* Both ends say the same; each sends one message of every length and receives one. */
struct talk {
	ucp_worker_h w;
	ucp_ep_h ep;
	struct op send, recv;
	uint8_t *out, *in;
	size_t i;
	bool good;
};

static void
talk_post(struct talk *t)
{
	size_t len = lens[t->i];

	t->out = malloc(len + 1);
	t->in = malloc(len + 1);
	util_fill(t->out, len, t->i);
	util_recv(&t->recv, t->w, t->in, len, 0x1000 + t->i, UTIL_ALL_BITS, UTIL_NBX);
	util_send(&t->send, t->ep, t->out, len, 0x1000 + t->i, UTIL_NBX);
}

static void
talk_begin(struct talk *t, ucp_worker_h w, ucp_ep_h ep)
{
	*t = (struct talk){.w = w, .ep = ep, .good = true};
	talk_post(t);
}

/* @return whether all is said */
static bool
talk_on(struct talk *t)
{
	ucp_worker_progress(t->w);
	if (t->i == N_LENS)
		return true;
	if (!util_done(&t->send) || !util_done(&t->recv))
		return false;
	t->good &= t->send.status == UCS_OK && t->recv.status == UCS_OK && util_check(t->in, lens[t->i], t->i);
	util_free(&t->send);
	util_free(&t->recv);
	free(t->out);
	free(t->in);
	if (++t->i < N_LENS)
		talk_post(t);
	return t->i == N_LENS;
}

/* Both get a turn each time. */
static bool
both_on(struct talk t[2])
{
	bool first = talk_on(&t[0]);

	return talk_on(&t[1]) && first;
}

static uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
	UCP_FEATURE_AMO64;

/* As util_pair_open(), with a context each and every feature. */
static void
open_pair(struct pair *p, ucs_thread_mode_t mode)
{
	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 2; i++) {
		p->n[i].ctx = util_context(features);
		p->n[i].w = util_worker(p->n[i].ctx, mode);
		UTIL_OK(ucp_worker_get_address(p->n[i].w, &p->n[i].addr, &p->n[i].addr_len));
	}
	for (int i = 0; i < 2; i++)
		p->n[i].ep = util_ep(p->n[i].w, p->n[!i].addr);
}

static void
open_scene(struct scene *s, ucs_thread_mode_t mode, void (*child)(struct scene *s))
{
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = MEM_LEN, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	size_t len;

	memset(s, 0, sizeof(*s));
	s->child = child;
	open_pair(&s->p, mode);
	UTIL_OK(ucp_mem_map(s->p.n[0].ctx, &mp, &s->memh));
	UTIL_OK(ucp_mem_query(s->memh, &attr));
	s->mem = attr.address;
	memset(s->mem, 0, MEM_LEN);
	UTIL_OK(ucp_rkey_pack(s->p.n[0].ctx, s->memh, &s->key, &len));
	UTIL_OK(ucp_ep_rkey_unpack(s->p.n[1].ep, s->key, &s->rkey));
	for (int i = 0; i < 2; i++)
		exchange(&s->p, i, 8, 1, true, UTIL_NBX);
}

/* With the tests of all that there was before. */
static void
close_scene(struct scene *s)
{
	for (size_t i = 0; i < N_LENS; i++) {
		exchange(&s->p, 0, lens[i], 2, true, UTIL_NBX);
		exchange(&s->p, 1, lens[i], 3, false, UTIL_NBX);
	}
	ucp_rkey_destroy(s->rkey);
	ucp_rkey_buffer_release(s->key);
	UTIL_OK(ucp_mem_unmap(s->p.n[0].ctx, s->memh));
	util_pair_close(&s->p);
}

static void
scene_child(void *arg)
{
	struct scene *s = arg;

	s->child(s);
}

/* What the parent has in use by now is not the child's. */
static void
scene_goes_on(void *arg)
{
	struct scene *s = arg;

	close(s->up[1]);
	for (int i = 0; i < 2 && !s->busy; i++)
		for (size_t k = 0; k < N_LENS; k++)
			exchange(&s->p, i, lens[k], 99, true, UTIL_NBX);
}

static pid_t
begin(struct scene *s)
{
	CU_ASSERT_EQUAL_FATAL(pipe(s->up), 0);
	return api_fork(scene_child, scene_goes_on, s);
}

/* It ends while the parent goes on with its turns. */
static void
end(struct scene *s, pid_t pid)
{
	int status = -1;
	pid_t rc;

	while ((rc = waitpid(pid, &status, WNOHANG)) == 0)
		util_pair_turn(&s->p);
	CU_ASSERT_EQUAL(rc, pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	close(s->up[0]);
}

static void
clean_up(struct scene *s)
{
	void *req;

	for (int i = 0; i < 100; i++)
		SO(ucp_worker_progress(s->p.n[i & 1].w) == 0);
	for (int i = 0; i < 2; i++) {
		SO(ucp_worker_flush_nb(s->p.n[i].w, 0, NULL) == NULL);
		SO(ucp_ep_flush_nb(s->p.n[i].ep, 0, NULL) == NULL);
		req = ucp_ep_close_nb(s->p.n[i].ep, i == 0 ? UCP_EP_CLOSE_MODE_FLUSH : UCP_EP_CLOSE_MODE_FORCE);
		SO(req == NULL || UCS_PTR_IS_ERR(req)); /* the mode of this ep knows no force */
	}
	ucp_rkey_destroy(s->rkey);
	ucp_rkey_buffer_release(s->key);
	SO(ucp_mem_unmap(s->p.n[0].ctx, s->memh) == UCS_OK);
	for (int i = 0; i < 2; i++) {
		ucp_worker_release_address(s->p.n[i].w, s->p.n[i].addr);
		ucp_worker_destroy(s->p.n[i].w);
	}
	for (int i = 0; i < 2; i++)
		ucp_cleanup(s->p.n[i].ctx);
}

/* The other worker, of the same process, may be the one that it waits for. */
static void
wait_for(ucp_worker_h w, ucp_worker_h other, void *req)
{
	if (req == NULL)
		return;
	SO(!UCS_PTR_IS_ERR(req));
	while (ucp_request_check_status(req) == UCS_INPROGRESS) {
		ucp_worker_progress(w);
		if (other != NULL)
			ucp_worker_progress(other);
	}
	SO(ucp_request_check_status(req) == UCS_OK);
	ucp_request_free(req);
}

/* Put, get and an atomic, to memory of that ep's worker. */
static void
use_memory(ucp_worker_h w, ucp_worker_h other, ucp_ep_h ep, const void *key, uint64_t at)
{
	const ucp_request_param_t none = {.op_attr_mask = 0};
	uint64_t word = 4711, got = 0, one = 1;
	ucp_request_param_t add = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
		.datatype = ucp_dt_make_contig(8), .reply_buffer = &got};
	ucp_rkey_h rkey;

	SO(ucp_ep_rkey_unpack(ep, key, &rkey) == UCS_OK);
	wait_for(w, other, ucp_put_nbx(ep, &word, 8, at, rkey, &none));
	wait_for(w, other, ucp_worker_flush_nbx(w, &none));
	wait_for(w, other, ucp_get_nbx(ep, &got, 8, at, rkey, &none));
	SO(got == 4711);
	got = 0;
	wait_for(w, other, ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, at, rkey, &add));
	SO(got == 4711);
	ucp_rkey_destroy(rkey);
}

static unsigned n_am;

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	(void)arg;
	(void)header;
	(void)header_len;
	(void)param;
	n_am += len == 100 && util_check(data, len, 5);
	return UCS_OK;
}

/* Messages of each kind between two workers of the child's own. */
static void
use_own(void)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 3, .cb = on_am};
	const ucp_request_param_t none = {.op_attr_mask = 0};
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = MEM_LEN, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	uint8_t buf[100], in[100];
	struct talk t[2];
	size_t len, n = 0;
	ucp_mem_h memh;
	struct pair p;
	void *key, *req, *am;

	open_pair(&p, UCS_THREAD_MODE_SINGLE);
	for (int i = 0; i < 2; i++)
		talk_begin(&t[i], p.n[i].w, p.n[i].ep);
	while (!both_on(t))
		;
	SO(t[0].good && t[1].good);
	util_fill(buf, sizeof(buf), 5);
	n_am = 0;
	SO(ucp_worker_set_am_recv_handler(p.n[1].w, &h) == UCS_OK);
	am = ucp_am_send_nbx(p.n[0].ep, 3, NULL, 0, buf, sizeof(buf), &none);
	SO(!UCS_PTR_IS_ERR(am));
	req = ucp_stream_send_nbx(p.n[0].ep, buf, sizeof(buf), &none);
	SO(!UCS_PTR_IS_ERR(req));
	while (n_am == 0 || n < sizeof(buf)) {
		void *data;

		util_pair_turn(&p);
		data = ucp_stream_recv_data_nb(p.n[1].ep, &len);
		if (data == NULL)
			continue;
		SO(!UCS_PTR_IS_ERR(data) && n + len <= sizeof(in));
		memcpy(in + n, data, len);
		n += len;
		ucp_stream_data_release(p.n[1].ep, data);
	}
	SO(util_check(in, sizeof(in), 5));
	for (int i = 0; i < 2; i++) {
		void *r = i == 0 ? am : req;

		while (r != NULL && ucp_request_check_status(r) == UCS_INPROGRESS)
			util_pair_turn(&p);
		if (r != NULL)
			ucp_request_free(r);
	}
	SO(ucp_mem_map(p.n[1].ctx, &mp, &memh) == UCS_OK);
	SO(ucp_mem_query(memh, &attr) == UCS_OK);
	SO(ucp_rkey_pack(p.n[1].ctx, memh, &key, &len) == UCS_OK);
	use_memory(p.n[0].w, p.n[1].w, p.n[0].ep, key, (uintptr_t)attr.address);
	SO(*(uint64_t *)attr.address == 4712);
	ucp_rkey_buffer_release(key);
	SO(ucp_mem_unmap(p.n[1].ctx, memh) == UCS_OK);
	util_pair_close(&p);
}

static void
put_all(int fd, const void *buf, size_t len)
{
	SO(write(fd, buf, len) == (ssize_t)len);
}

static void
close_ep(ucp_worker_h w, ucp_ep_h ep)
{
	void *req = ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);

	SO(!UCS_PTR_IS_ERR(req));
	while (req != NULL && ucp_request_check_status(req) == UCS_INPROGRESS)
		ucp_worker_progress(w);
	if (req != NULL)
		ucp_request_free(req);
}

/* With a worker of the child's own, to the first of the parent's. */
static void
talk_up(struct scene *s, ucp_context_h ctx)
{
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	ucp_ep_h ep = util_ep(w, s->p.n[0].addr);
	ucp_address_t *addr;
	struct talk t;
	size_t len;

	SO(ucp_worker_get_address(w, &addr, &len) == UCS_OK);
	put_all(s->up[1], &len, sizeof(len));
	put_all(s->up[1], addr, len);
	talk_begin(&t, w, ep);
	while (!talk_on(&t))
		;
	SO(t.good);
	use_memory(w, NULL, ep, s->key, (uintptr_t)s->mem + 8);
	ucp_worker_release_address(w, addr);
	close_ep(w, ep);
	ucp_worker_destroy(w);
}

/* The other end of it. */
static void
hear(struct scene *s)
{
	char addr[4096];
	struct talk t;
	ucp_ep_h ep;
	size_t len;

	CU_ASSERT_EQUAL_FATAL(read(s->up[0], &len, sizeof(len)), sizeof(len));
	CU_ASSERT_EQUAL_FATAL(read(s->up[0], addr, len), (ssize_t)len);
	ep = util_ep(s->p.n[0].w, (ucp_address_t *)addr);
	talk_begin(&t, s->p.n[0].w, ep);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s->p, talk_on(&t)));
	CU_ASSERT(t.good);
	CU_ASSERT(UTIL_UNTIL(&s->p, *(_Atomic uint64_t *)((char *)s->mem + 8) == 4712));
	*(uint64_t *)((char *)s->mem + 8) = 0;
	CU_ASSERT(util_ep_close(&s->p, ep, 0));
}

static void
child_cleans_up(struct scene *s)
{
	clean_up(s);
	api_child_leave(); /* with what runs at the exit */
}

static void
a_child_that_cleans_up_is_not_noticed(void)
{
	static const ucs_thread_mode_t modes[] = {UCS_THREAD_MODE_SINGLE, UCS_THREAD_MODE_MULTI};
	struct scene s;

	for (int i = 0; i < 2; i++) {
		open_scene(&s, modes[i], child_cleans_up);
		end(&s, begin(&s));
		end(&s, begin(&s));
		close_scene(&s);
	}
}

static void
fresh(struct scene *s, bool before, bool after)
{
	ucp_context_h ctx;

	if (before)
		clean_up(s);
	use_own();
	if (after)
		clean_up(s);
	use_own();
	ctx = util_context(features);
	ucp_cleanup(ctx);
	api_child_leave();
}

static void
child_starts_afresh(struct scene *s)
{
	fresh(s, false, false);
}

static void
child_cleans_up_and_starts_afresh(struct scene *s)
{
	fresh(s, true, false);
}

static void
child_starts_afresh_and_cleans_up(struct scene *s)
{
	fresh(s, false, true);
}

static void
a_child_starts_afresh(void)
{
	void (*const children[])(struct scene *) = {child_starts_afresh, child_cleans_up_and_starts_afresh,
		child_starts_afresh_and_cleans_up};
	struct scene s;

	for (int i = 0; i < 3; i++) {
		open_scene(&s, UCS_THREAD_MODE_SINGLE, children[i]);
		end(&s, begin(&s));
		close_scene(&s);
	}
}

/* The model of a device is within one process, and has locks that a child may find taken. */
static bool
is_model(void)
{
	return util_by_rdma();
}

static void
child_talks(struct scene *s)
{
	ucp_context_h ctx = util_context(features);

	talk_up(s, ctx);
	ucp_cleanup(ctx);
	api_child_leave();
}

static void
a_child_talks_to_its_parent(void)
{
	struct scene s;
	pid_t pid;

	if (is_model())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_talks);
	for (int i = 0; i < 3; i++) {
		pid = begin(&s);
		hear(&s);
		end(&s, pid);
	}
	close_scene(&s);
}

static void
child_uses_the_context(struct scene *s)
{
	talk_up(s, s->p.n[0].ctx);
	ucp_cleanup(s->p.n[0].ctx);
	api_child_leave();
}

static void *
make_worker_run(void *arg)
{
	ucp_worker_h w = util_worker(arg, UCS_THREAD_MODE_SINGLE);

	ucp_worker_destroy(w);
	return NULL;
}

/* The first to come makes it the child's; the count of workers is then that of all. */
static void
child_uses_the_context_in_threads(struct scene *s)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		SO(pthread_create(&t[i], NULL, make_worker_run, s->p.n[0].ctx) == 0);
	for (int i = 0; i < 4; i++)
		SO(pthread_join(t[i], NULL) == 0);
	make_worker_run(s->p.n[0].ctx);
	ucp_cleanup(s->p.n[0].ctx);
	api_child_leave();
}

static void
threads_of_a_child_make_workers_on_the_context_it_has(void)
{
	struct scene s;

	if (is_model()) /* which is for one thread */
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_uses_the_context_in_threads);
	for (int i = 0; i < 5; i++)
		end(&s, begin(&s));
	close_scene(&s);
}

static void
a_child_makes_workers_on_the_context_it_has(void)
{
	struct scene s;
	pid_t pid;

	if (is_model())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_uses_the_context);
	pid = begin(&s);
	hear(&s);
	end(&s, pid);
	close_scene(&s);
}

/* A child of its own, while it has workers itself. */
static void
child_forks(struct scene *s)
{
	struct scene own;
	int status = -1;
	pid_t pid;

	open_pair(&own.p, UCS_THREAD_MODE_SINGLE);
	pid = fork();
	if (pid == 0) {
		alarm(API_CHILD_S);
		use_own();
		talk_up(s, util_context(features));
		util_pair_close(&own.p); /* of this one's parent: nothing happens */
		clean_up(s);
		api_child_leave();
	}
	SO(waitpid(pid, &status, 0) == pid);
	SO(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	util_pair_close(&own.p);
	use_own();
	api_child_leave();
}

static void
a_grandchild_starts_afresh(void)
{
	struct scene s;
	pid_t pid;

	if (is_model())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_forks);
	pid = begin(&s);
	hear(&s);
	end(&s, pid);
	close_scene(&s);
}

/* All that is no send: refused, or nothing happens. */
static void
post_other(struct scene *s, int i)
{
	const ucp_request_param_t none = {.op_attr_mask = 0};
	const ucp_request_param_t word = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
		.datatype = ucp_dt_make_contig(8)};
	const ucp_request_param_t no_imm = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	ucp_worker_h w = s->p.n[i].w;
	ucp_ep_h ep = s->p.n[i].ep;
	static uint8_t buf[MIB];
	ucp_tag_recv_info_t info;
	ucp_stream_poll_ep_t polled;
	uint64_t zero = 0;
	size_t len;
	void *req;

	for (int k = 0; k < 200; k++) {
		req = ucp_tag_recv_nbx(w, buf, sizeof(buf), 1, UTIL_ALL_BITS, &none);
		SO(UCS_PTR_IS_ERR(req) || req != NULL);
		if (UCS_PTR_IS_ERR(req))
			continue;
		SO(ucp_request_check_status(req) != UCS_OK);
		ucp_request_cancel(w, req);
		ucp_request_free(req);
	}
	req = ucp_stream_recv_nbx(ep, buf, 8, &len, &none);
	SO(UCS_PTR_IS_ERR(req) || req != NULL);
	SO(ucp_stream_recv_data_nb(ep, &len) == NULL || UCS_PTR_IS_ERR(ucp_stream_recv_data_nb(ep, &len)));
	SO(ucp_stream_worker_poll(w, &polled, 1, 0) <= 0);
	SO(UCS_PTR_IS_ERR(ucp_tag_send_nbx(ep, buf, sizeof(buf), 1, &no_imm)));
	SO(UCS_PTR_IS_ERR(ucp_tag_send_sync_nbx(ep, buf, 8, 1, &none)));
	SO(UCS_PTR_IS_ERR(ucp_am_send_nbx(ep, 3, buf, 8, buf, sizeof(buf), &none)));
	SO(UCS_PTR_IS_ERR(ucp_stream_send_nbx(ep, buf, sizeof(buf), &none)));
	SO(ucp_tag_probe_nb(w, 1, UTIL_ALL_BITS, 1, &info) == NULL);
	/* Data of active messages may lie where the child has no memory: nobody looks at it. */
	SO(UCS_PTR_IS_ERR(ucp_am_recv_data_nbx(w, buf + 8, buf, 8, &none)));
	ucp_am_data_release(w, buf + 8);
	if (i == 1) { /* what a mapped key reaches is the child's as well; else it is refused */
		SO(!UCS_PTR_IS_PTR(ucp_put_nbx(ep, s->mem, 8, (uintptr_t)s->mem, s->rkey, &none)));
		SO(!UCS_PTR_IS_PTR(ucp_get_nbx(ep, buf, sizeof(buf) / 32, (uintptr_t)s->mem, s->rkey, &none)));
		SO(!UCS_PTR_IS_PTR(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_OR, &zero, 1, (uintptr_t)s->mem, s->rkey,
			&word)));
	}
	SO(ucp_worker_fence(w) == UCS_OK);
	SO(ucp_worker_progress(w) == 0);
	/* of the parent's: it has failed here, and is not given back to a pool */
	for (int k = 0; k < 2; k++) {
		SO(ucp_request_check_status(s->pending[i]) == UCS_ERR_CONNECTION_RESET);
		SO(ucp_request_test(s->pending[i], &info) == UCS_ERR_CONNECTION_RESET);
		SO(ucp_request_is_completed(s->pending[i]) == 1);
		ucp_request_cancel(w, s->pending[i]);
		ucp_request_free(s->pending[i]);
	}
}

/* What it should not do, and does. */
static void
child_posts(struct scene *s)
{
	const ucp_request_param_t none = {.op_attr_mask = 0};
	static uint8_t buf[MIB];
	ucp_ep_h ep;

	for (int i = 0; i < 2; i++) {
		ep = s->p.n[i].ep;
		for (int k = 0; k < 3000; k++) {
			size_t len = k % 100 == 0 ? sizeof(buf) : 8;

			SO(UCS_PTR_IS_ERR(ucp_tag_send_nbx(ep, buf, len, 77, &none)));
		}
		SO(UCS_PTR_IS_ERR(ucp_stream_send_nbx(ep, buf, 8, &none)));
		SO(UCS_PTR_IS_ERR(ucp_am_send_nbx(ep, 3, NULL, 0, buf, 8, &none)));
		post_other(s, i);
	}
	clean_up(s);
	api_child_leave();
}

static void
what_a_child_posts_to_its_parents_peers_fails(void)
{
	const ucp_request_param_t none = {.op_attr_mask = 0};
	ucp_tag_recv_info_t info;
	static uint8_t buf[8];
	struct scene s;

	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_posts);
	for (int i = 0; i < 2; i++) {
		s.pending[i] = ucp_tag_recv_nbx(s.p.n[i].w, buf, sizeof(buf), 78, UTIL_ALL_BITS, &none);
		CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(s.pending[i]) && s.pending[i] != NULL);
	}
	end(&s, begin(&s));
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(ucp_tag_probe_nb(s.p.n[i].w, 77, UTIL_ALL_BITS, 0, &info) == NULL);
		CU_ASSERT_EQUAL(ucp_request_check_status(s.pending[i]), UCS_INPROGRESS);
		ucp_request_cancel(s.p.n[i].w, s.pending[i]);
		CU_ASSERT(UTIL_UNTIL(&s.p, ucp_request_check_status(s.pending[i]) == UCS_ERR_CANCELED));
		ucp_request_free(s.pending[i]);
	}
	close_scene(&s);
}

/* The callback that forks. */
enum forker { BY_AM, BY_SENT, BY_RECEIVED, BY_PACK, BY_UNPACK, BY_INIT, BY_CLEANUP };

static struct {
	enum forker by;
	size_t len; /* of the generic type */
	pid_t pid;  /* -1: not yet */
	int go[2];  /* the child goes on when its parent closes it */
} forked;

static void
fork_once(enum forker by)
{
	char c;

	if (forked.pid != -1 || forked.by != by)
		return;
	api_take_free_huge_pages();
	fflush(NULL);
	forked.pid = fork();
	CU_ASSERT_FATAL(forked.pid != -1);
	if (forked.pid != 0)
		return;
	alarm(API_CHILD_S);
	close(forked.go[1]);
	SO(read(forked.go[0], &c, 1) == 0);
	close(forked.go[0]);
}

static void
begin_fork_by(enum forker by, size_t len)
{
	forked.by = by;
	forked.len = len;
	forked.pid = -1;
	CU_ASSERT_EQUAL_FATAL(pipe(forked.go), 0);
}

static ucs_status_t
on_am_fork(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	(void)arg;
	(void)header;
	(void)header_len;
	(void)data;
	(void)len;
	(void)param;
	fork_once(BY_AM);
	return UCS_OK;
}

static void
on_sent_fork(void *req, ucs_status_t status, void *user_data)
{
	(void)req;
	(void)status;
	(void)user_data;
	fork_once(BY_SENT);
}

static void
on_received_fork(void *req, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	(void)req;
	(void)status;
	(void)info;
	(void)user_data;
	fork_once(BY_RECEIVED);
}

static void *
fork_start_pack(void *context, const void *buffer, size_t count)
{
	(void)context;
	(void)count;
	return (void *)(uintptr_t)buffer;
}

static void *
fork_start_unpack(void *context, void *buffer, size_t count)
{
	(void)context;
	(void)count;
	return buffer;
}

static size_t
fork_size(void *state)
{
	(void)state;
	return forked.len;
}

static size_t
fork_pack(void *state, size_t offset, void *to, size_t max)
{
	size_t n = forked.len - offset < max ? forked.len - offset : max;

	fork_once(BY_PACK);
	memcpy(to, (const char *)state + offset, n);
	return n;
}

static ucs_status_t
fork_unpack(void *state, size_t offset, const void *from, size_t len)
{
	fork_once(BY_UNPACK);
	memcpy((char *)state + offset, from, len);
	return UCS_OK;
}

static void
fork_finish(void *state)
{
	(void)state;
}

/* A callback of an operation that forks. */
struct fork_way {
	enum forker by;
	size_t len;
	bool late; /* the receive is posted when the message is there */
};

static ucp_datatype_t fork_type;

static ucp_request_param_t
param_of(enum forker by, enum forker typed)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

	if (by == typed) {
		p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		p.datatype = fork_type;
	}
	return p;
}

static void *
post_way_send(struct scene *s, const struct fork_way *way, const void *out)
{
	ucp_request_param_t p = param_of(way->by, BY_PACK);
	ucp_ep_h ep = s->p.n[0].ep;

	p.cb.send = on_sent_fork;
	return way->by == BY_AM ? ucp_am_send_nbx(ep, 4, NULL, 0, out, way->len, &p)
				: ucp_tag_send_nbx(ep, out, way->by == BY_PACK ? 1 : way->len, 5, &p);
}

static void *
post_way_recv(struct scene *s, const struct fork_way *way, void *in)
{
	ucp_request_param_t p = param_of(way->by, BY_UNPACK);

	p.cb.recv = on_received_fork;
	if (way->by == BY_AM)
		return NULL;
	return ucp_tag_recv_nbx(s->p.n[1].w, in, way->by == BY_UNPACK ? 1 : way->len, 5, UTIL_ALL_BITS, &p);
}

/* The child comes out of the library's function that its parent was in. */
static void
end_way_child(struct scene *s)
{
	for (int k = 0; k < 1000; k++)
		util_pair_turn(&s->p);
	use_own();
	clean_up(s);
	use_own();
	api_child_leave();
}

static void
end_way(struct scene *s, void *const req[2])
{
	for (int i = 0; i < 2; i++) {
		if (req[i] == NULL)
			continue;
		CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(req[i]));
		CU_ASSERT(UTIL_UNTIL(&s->p, ucp_request_check_status(req[i]) == UCS_OK));
		ucp_request_free(req[i]);
	}
}

static void
fork_by(const struct fork_way *way, ucs_thread_mode_t mode)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB, .id = 4, .cb = on_am_fork};
	uint8_t *out = malloc(way->len), *in = malloc(way->len);
	void *req[2] = {NULL, NULL};
	struct scene s;

	open_scene(&s, mode, NULL);
	begin_fork_by(way->by, way->len);
	UTIL_OK(ucp_worker_set_am_recv_handler(s.p.n[1].w, &h));
	CU_ASSERT_EQUAL_FATAL(pipe(s.up), 0);
	util_fill(out, way->len, 5);
	memset(in, 0, way->len);
	if (!way->late)
		req[1] = post_way_recv(&s, way, in);
	req[0] = post_way_send(&s, way, out);
	for (int k = 0; way->late && k < 1000; k++)
		util_pair_turn(&s.p);
	if (way->late)
		req[1] = post_way_recv(&s, way, in);
	CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, forked.pid != -1));
	if (forked.pid == 0)
		end_way_child(&s);
	close(forked.go[0]);
	scene_goes_on(&s);
	end_way(&s, req);
	CU_ASSERT(way->by == BY_AM || util_check(in, way->len, 5));
	close(forked.go[1]);
	end(&s, forked.pid);
	close_scene(&s);
	free(out);
	free(in);
}

static void
a_child_that_is_forked_in_a_callback_starts_afresh(void)
{
	static const ucp_generic_dt_ops_t ops = {fork_start_pack, fork_start_unpack, fork_size, fork_pack, fork_unpack,
		fork_finish};
	static const struct fork_way ways[] = {
		{BY_AM, 1, false}, {BY_AM, 20000, false}, {BY_AM, MIB, false}, {BY_SENT, MIB, false},
		{BY_RECEIVED, 8, false}, {BY_RECEIVED, 20000, false}, {BY_RECEIVED, MIB, false},
		{BY_RECEIVED, 20000, true}, {BY_PACK, 100, false}, {BY_PACK, 20000, false},
		{BY_UNPACK, 100, false}, {BY_UNPACK, 100, true}, {BY_UNPACK, 20000, false}, {BY_UNPACK, 20000, true},
	};

	UTIL_OK(ucp_dt_create_generic(&ops, NULL, &fork_type));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		fork_by(&ways[i], UCS_THREAD_MODE_SINGLE);
		fork_by(&ways[i], UCS_THREAD_MODE_MULTI);
	}
	ucp_dt_destroy(fork_type);
}

static void
child_forks_in_callbacks(struct scene *s)
{
	static const struct fork_way ways[] = {{BY_AM, 20000, false}, {BY_RECEIVED, 20000, false}};
	unsigned failures = CU_get_number_of_failures();

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		fork_by(&ways[i], UCS_THREAD_MODE_SINGLE);
	SO(CU_get_number_of_failures() == failures);
	clean_up(s);
	api_child_leave();
}

/* It inherits huge pages, of which the kernel may have taken some, beside a heap of its own. */
static void
a_child_forks_in_callbacks_of_its_own(void)
{
	struct scene s;

	if (is_model())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_forks_in_callbacks);
	end(&s, begin(&s));
	close_scene(&s);
}

static void
on_init_fork(void *req)
{
	memset(req, 1, 8);
	fork_once(BY_INIT);
}

static void
on_cleanup_fork(void *req)
{
	SO(forked.by != BY_CLEANUP || forked.pid != 0); /* those of the child are its parent's */
	memset(req, 2, 8);
	fork_once(BY_CLEANUP);
}

/* The child uses a context of its own and ends. The parent waits for that. */
static void
end_fork_by(void)
{
	int status = -1;

	CU_ASSERT_NOT_EQUAL_FATAL(forked.pid, -1);
	if (forked.pid == 0) {
		use_own();
		api_child_leave();
	}
	close(forked.go[0]);
	close(forked.go[1]);
	CU_ASSERT_EQUAL(waitpid(forked.pid, &status, 0), forked.pid);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The area of the program's behind a request: its functions are called as the pool grows, and as it goes. */
static void
fork_as_requests_are_made_or_go(ucs_thread_mode_t mode, bool context_first)
{
	const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
		UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP, .features = UCP_FEATURE_TAG,
		.request_size = 64, .request_init = on_init_fork, .request_cleanup = on_cleanup_fork};
	const ucp_request_param_t none = {.op_attr_mask = 0};
	void *reqs[1000];
	ucp_context_h ctx;
	ucp_worker_h w;

	UTIL_OK(ucp_init(&params, NULL, &ctx));
	w = util_worker(ctx, mode);
	begin_fork_by(BY_INIT, 0);
	for (int i = 0; i < 1000; i++) {
		reqs[i] = ucp_tag_recv_nbx(w, NULL, 0, 1, UTIL_ALL_BITS, &none);
		CU_ASSERT_FATAL(reqs[i] != NULL && !UCS_PTR_IS_ERR(reqs[i]));
	}
	end_fork_by();
	for (int i = 0; i < 1000; i++) {
		ucp_request_cancel(w, reqs[i]);
		while (ucp_request_check_status(reqs[i]) == UCS_INPROGRESS)
			ucp_worker_progress(w);
		ucp_request_free(reqs[i]);
	}
	begin_fork_by(BY_CLEANUP, 0);
	if (context_first)
		ucp_cleanup(ctx);
	ucp_worker_destroy(w);
	if (!context_first)
		ucp_cleanup(ctx);
	end_fork_by();
}

static void
a_child_that_is_forked_as_requests_are_made_or_go_starts_afresh(void)
{
	fork_as_requests_are_made_or_go(UCS_THREAD_MODE_SINGLE, false);
	fork_as_requests_are_made_or_go(UCS_THREAD_MODE_SINGLE, true);
	fork_as_requests_are_made_or_go(UCS_THREAD_MODE_MULTI, true);
}

static ucs_status_t
on_am_destroy(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	(void)header;
	(void)header_len;
	(void)data;
	(void)len;
	(void)param;
	ucp_worker_destroy(arg);
	fork_once(BY_AM);
	return UCS_OK;
}

/* The worker is destroyed when the callback returns: in the parent. */
static void
a_child_of_a_callback_that_destroys_its_worker_starts_afresh(void)
{
	static const ucs_thread_mode_t modes[] = {UCS_THREAD_MODE_SINGLE, UCS_THREAD_MODE_MULTI};
	const ucp_request_param_t none = {.op_attr_mask = 0};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		ucp_context_h ctx = util_context(UCP_FEATURE_AM);
		ucp_worker_h w = util_worker(ctx, modes[i]);
		ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG, .id = 4,
			.cb = on_am_destroy, .arg = w};
		uint64_t end_ns = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
		ucp_address_t *addr;
		size_t len;
		ucp_ep_h ep;
		void *req;

		begin_fork_by(BY_AM, 0);
		UTIL_OK(ucp_worker_set_am_recv_handler(w, &h));
		UTIL_OK(ucp_worker_get_address(w, &addr, &len));
		ep = util_ep(w, addr);
		ucp_worker_release_address(w, addr);
		req = ucp_am_send_nbx(ep, 4, NULL, 0, "12345678", 8, &none);
		CU_ASSERT_FATAL(!UCS_PTR_IS_ERR(req));
		if (req != NULL)
			ucp_request_free(req);
		ucp_cleanup(ctx);
		while (forked.pid == -1 && util_now_ns() < end_ns)
			ucp_worker_progress(w);
		end_fork_by();
	}
}

static void
child_disturbs(struct scene *s)
{
	for (int i = 0; i < 2; i++) {
		SO(ucp_worker_arm(s->p.n[i].w) != UCS_OK);
		SO(ucp_worker_wait(s->p.n[i].w) != UCS_OK);
		SO(ucp_worker_signal(s->p.n[i].w) != UCS_OK);
		SO(ucp_worker_progress(s->p.n[i].w) == 0);
	}
	put_all(s->up[1], "", 1);
	for (;;)
		(void)ucp_worker_arm(s->p.n[0].w);
}

/* As programs do that sleep on the worker's descriptor. */
static void
sleep_until_done(ucp_worker_h w, const struct op *op)
{
	uint64_t until = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	struct pollfd fd = {.events = POLLIN};

	UTIL_OK(ucp_worker_get_efd(w, &fd.fd));
	while (!util_done(op) && util_now_ns() < until) {
		ucs_status_t status = ucp_worker_arm(w);

		CU_ASSERT(status == UCS_OK || status == UCS_ERR_BUSY);
		if (status == UCS_OK) {
			CU_ASSERT_EQUAL(poll(&fd, 1, 10000), 1);
		}
		while (ucp_worker_progress(w) != 0)
			;
	}
	CU_ASSERT(util_done(op));
}

struct waker {
	ucp_ep_h ep;
	ucp_worker_h w;
};

static void *
waker_run(void *arg)
{
	const ucp_request_param_t none = {.op_attr_mask = 0};
	struct waker *k = arg;
	void *req;

	usleep(20000);
	req = ucp_tag_send_nbx(k->ep, "wake up", 8, 6, &none);
	while (req != NULL && !UCS_PTR_IS_ERR(req) && ucp_request_check_status(req) == UCS_INPROGRESS)
		ucp_worker_progress(k->w);
	if (req != NULL && !UCS_PTR_IS_ERR(req))
		ucp_request_free(req);
	return NULL;
}

/* Its descriptors for sleeping are the same files in the child. */
static void
a_sleeper_is_woken_whatever_a_child_does(void)
{
	struct scene s;
	struct op recv;
	pthread_t t;
	char buf[8];
	pid_t pid;

	if (is_model()) /* which is for one thread */
		return;
	features |= UCP_FEATURE_WAKEUP;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_disturbs);
	features &= ~UCP_FEATURE_WAKEUP;
	pid = begin(&s);
	CU_ASSERT_EQUAL(read(s.up[0], buf, 1), 1);
	for (int i = 0; i < 20; i++) {
		struct waker k = {.ep = s.p.n[0].ep, .w = s.p.n[0].w};

		util_recv(&recv, s.p.n[1].w, buf, sizeof(buf), 6, UTIL_ALL_BITS, UTIL_NBX);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, waker_run, &k), 0);
		sleep_until_done(s.p.n[1].w, &recv);
		pthread_join(t, NULL);
		util_free(&recv);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(s.up[0]);
	close_scene(&s);
}

/* A thread that is in the middle of something at the time. */
struct busy {
	struct pair *p;
	_Atomic bool stop;
};

static void *
busy_run(void *arg)
{
	struct busy *b = arg;

	while (!b->stop)
		exchange(b->p, 0, 1000, 9, true, UTIL_NBX);
	return NULL;
}

static void
child_does_all(struct scene *s)
{
	void *req;
	uint8_t in;

	/* calls that take the lock which the thread may have had */
	for (int i = 0; i < 2; i++) {
		req = ucp_tag_recv_nb(s->p.n[i].w, &in, 1, ucp_dt_make_contig(1), 1, UTIL_ALL_BITS, NULL);
		if (!UCS_PTR_IS_ERR(req) && req != NULL)
			ucp_request_free(req);
	}
	clean_up(s);
	use_own();
	api_child_leave();
}

/*
 * @return whether a child may be forked beside threads that allocate: the address sanitizer's allocator keeps its locks
 * as the fork finds them, and the child would wait for ever in its first malloc() or free().
 */
static bool
allocator_survives_fork(void)
{
#if defined(__SANITIZE_ADDRESS__)
	puts("(not beside busy threads: the sanitizer's allocator) ");
	return false;
#else
	return true;
#endif
}

/* Each call takes locks of the process that a fork finds taken. */
static void *
come_and_go_run(void *arg)
{
	struct busy *b = arg;
	struct pair p;

	while (!b->stop) {
		open_pair(&p, UCS_THREAD_MODE_SINGLE);
		util_pair_close(&p);
	}
	return NULL;
}

static void
children_start_afresh_while_workers_come_and_go(void)
{
	struct busy b = {.stop = false};
	struct scene s;
	pthread_t t[2];
	int status;
	pid_t pid;

	if (is_model() || !allocator_survives_fork())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_does_all);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, come_and_go_run, &b), 0);
	for (int i = 0; i < 30; i++) {
		pid = begin(&s);
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_EQUAL(status, 0);
		close(s.up[0]);
	}
	b.stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	close_scene(&s);
}

static void
children_of_a_process_with_threads_start_afresh(void)
{
	struct busy b = {.stop = false};
	struct scene s;
	pthread_t t;
	int status;
	pid_t pid;

	if (is_model() || !allocator_survives_fork())
		return;
	open_scene(&s, UCS_THREAD_MODE_MULTI, child_does_all);
	b.p = &s.p;
	s.busy = true;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, busy_run, &b), 0);
	for (int i = 0; i < 20; i++) {
		pid = begin(&s);
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_EQUAL(status, 0);
		close(s.up[0]);
	}
	b.stop = true;
	pthread_join(t, NULL);
	close_scene(&s);
}

static void
child_sleeps(struct scene *s)
{
	put_all(s->up[1], "", 1); /* it is there */
	pause();
}

static void
on_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep;
	*(ucs_status_t *)arg = status;
}

/* A child holds copies of all descriptors; pids and sockets are the parent's to watch. */
static void
a_peers_death_is_noticed_while_a_child_lives(void)
{
	ucs_status_t failed = UCS_OK;
	struct child other;
	struct scene s;
	ucp_ep_h ep;
	pid_t pid;

	if (is_model())
		return;
	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_sleeps);
	child_open(&other, s.p.n[0].w, "peer");
	ep = util_ep_with_handler(s.p.n[0].w, other.addr, on_failed, &failed);
	child_hello(&other, s.p.n[0].w, ep);
	pid = begin(&s);
	child_close(&other);
	CU_ASSERT(UTIL_UNTIL(&s.p, failed != UCS_OK));
	CU_ASSERT(util_ep_close(&s.p, ep, UCP_EP_CLOSE_FLAG_FORCE));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(s.up[0]);
	close_scene(&s);
}

static void
refuse(ucp_conn_request_h req, void *arg)
{
	ucp_listener_reject(*(ucp_listener_h *)arg, req);
}

static ucs_status_t
listen_on(struct scene *s, struct sockaddr_in *at, ucp_listener_h *l)
{
	ucp_listener_params_t lp = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER, .sockaddr = {(struct sockaddr *)at, sizeof(*at)},
		.conn_handler = {refuse, l}};

	return ucp_listener_create(s->p.n[0].w, &lp, l);
}

/* A server that is started again, say, while a child of the former one lives. */
static void
a_child_that_lives_on_keeps_no_address_in_use(void)
{
	ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_listener_h l;
	struct scene s;
	pid_t pid;
	char c;

	open_scene(&s, UCS_THREAD_MODE_SINGLE, child_sleeps);
	CU_ASSERT_EQUAL_FATAL(listen_on(&s, &at, &l), UCS_OK);
	UTIL_OK(ucp_listener_query(l, &attr));
	at.sin_port = ((struct sockaddr_in *)&attr.sockaddr)->sin_port;
	pid = begin(&s);
	CU_ASSERT_EQUAL(read(s.up[0], &c, 1), 1);
	ucp_listener_destroy(l);
	CU_ASSERT_EQUAL_FATAL(listen_on(&s, &at, &l), UCS_OK);
	ucp_listener_destroy(l);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(s.up[0]);
	close_scene(&s);
}

static int
run_by(int how)
{
	static char *const argv[] = {(char *)"true", NULL};
	extern char **environ;
	int status = -1;
	pid_t pid = -1;
	FILE *f;

	switch (how) {
	case 0:
		return system("true");
	case 1:
		f = popen("true", "r");
		return f != NULL ? pclose(f) : -1;
	case 2:
		if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) != 0)
			return -1;
		break;
	case 3:
		pid = vfork();
		if (pid == 0) {
			execvp("true", argv);
			_exit(127);
		}
		break;
	default:
		pid = fork();
		if (pid == 0) {
			execvp("true", argv);
			_exit(127);
		}
	}
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void
programs_that_are_run_are_not_noticed(void)
{
	struct scene s;
	struct talk t[2];

	open_scene(&s, UCS_THREAD_MODE_SINGLE, NULL);
	for (int how = 0; how < 5; how++) {
		for (int i = 0; i < 2; i++) /* in the middle of something */
			talk_begin(&t[i], s.p.n[i].w, s.p.n[i].ep);
		CU_ASSERT_EQUAL(run_by(how), 0);
		CU_ASSERT_FATAL(UTIL_UNTIL(&s.p, both_on(t)));
		CU_ASSERT(t[0].good && t[1].good);
	}
	close_scene(&s);
}

#define NOT_UCX "UCX makes no promises to a forked child"

const struct api_test api_fork_tests[] = {
	T_NOT_UCX(a_child_that_cleans_up_is_not_noticed, NOT_UCX),
	T_NOT_UCX(a_child_starts_afresh, NOT_UCX),
	T_NOT_UCX(a_child_talks_to_its_parent, NOT_UCX),
	T_NOT_UCX(a_child_makes_workers_on_the_context_it_has, NOT_UCX),
	T_NOT_UCX(threads_of_a_child_make_workers_on_the_context_it_has, NOT_UCX),
	T_NOT_UCX(a_grandchild_starts_afresh, NOT_UCX),
	T_NOT_UCX(what_a_child_posts_to_its_parents_peers_fails, NOT_UCX),
	T_NOT_UCX(children_start_afresh_while_workers_come_and_go, NOT_UCX),
	T_NOT_UCX(children_of_a_process_with_threads_start_afresh, NOT_UCX),
	T_NOT_UCX(a_child_that_is_forked_in_a_callback_starts_afresh, NOT_UCX),
	T_NOT_UCX(a_child_forks_in_callbacks_of_its_own, NOT_UCX),
	T_NOT_UCX(a_child_that_is_forked_as_requests_are_made_or_go_starts_afresh, NOT_UCX),
	T_NOT_UCX(a_child_of_a_callback_that_destroys_its_worker_starts_afresh, NOT_UCX),
	T_NOT_UCX(a_sleeper_is_woken_whatever_a_child_does, NOT_UCX),
	T(a_peers_death_is_noticed_while_a_child_lives),
	T_NOT_UCX(a_child_that_lives_on_keeps_no_address_in_use, NOT_UCX),
	T(programs_that_are_run_are_not_noticed),
	{NULL, NULL, NULL, NULL},
};
