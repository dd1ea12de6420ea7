/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_threads_test.c - several threads in one worker, and in workers of one context
 *
 * Design notes
 * Only the public API is used. There is nothing here to measure: the test is for the
 * thread sanitizer, and otherwise that every message arrives whole and every thread
 * ends.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "ucp_util.h"

#define N_THREADS 4
#define N_MSGS	  200 /* of each thread */
#define LAST_TURNS 1000000
#define N_PEERS	  20  /* eps made and closed by each thread */
#define AM_ID	  5
#define BOUNCE	  (UINT64_C(0xb0) << 56) /* in tags: no thread's number */

static const size_t lengths[] = {8, 200, 4000, 20000, 100000};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

struct thread {
	pthread_t id;
	unsigned i;
	ucp_worker_h w; /* shared, or its own */
	ucp_ep_h ep;
	const ucp_address_t *addr;
	_Atomic unsigned *n_running;
	bool failed;
};

/* One operation of one thread; its callback may run in any. */
struct wait {
	_Atomic bool over;
	ucs_status_t status;
};

static _Atomic unsigned n_am;

static void
over(struct wait *w, ucs_status_t status)
{
	w->status = status;
	/* pairs with the acquire in finish() */
	atomic_store_explicit(&w->over, true, memory_order_release);
}

static void
sent(void *request, ucs_status_t status, void *arg)
{
	(void)request;
	over(arg, status);
}

static void
received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)request;
	(void)info;
	over(arg, status);
}

static ucs_status_t
am_handler(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	(void)arg;
	(void)header;
	(void)header_length;
	(void)data;
	(void)length;
	(void)param;
	atomic_fetch_add_explicit(&n_am, 1, memory_order_relaxed);
	return UCS_OK;
}

static void
start(struct wait *w, ucp_request_param_t *p)
{
	memset(p, 0, sizeof(*p));
	atomic_store_explicit(&w->over, false, memory_order_relaxed);
	p->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	p->user_data = w;
}

/* @return whether it ended well */
static bool
finish(const struct thread *t, struct wait *w, void *ret)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	if (!UCS_PTR_IS_PTR(ret))
		return UCS_PTR_STATUS(ret) == UCS_OK;
	while (!atomic_load_explicit(&w->over, memory_order_acquire)) {
		ucp_worker_progress(t->w);
		if (util_now_ns() > end)
			UTIL_DIE("an operation of thread %u did not end", t->i);
	}
	ucp_request_free(ret);
	return w->status == UCS_OK;
}

static void *
post_recv(struct thread *t, struct wait *w, void *buf, size_t len, ucp_tag_t tag)
{
	ucp_request_param_t p;

	start(w, &p);
	p.cb.recv = received;
	return ucp_tag_recv_nbx(t->w, buf, len, tag, UTIL_ALL_BITS, &p);
}

static void *
post_send(struct wait *w, ucp_ep_h ep, const void *buf, size_t len, ucp_tag_t tag, bool sync)
{
	ucp_request_param_t p;

	start(w, &p);
	p.cb.send = sent;
	return sync ? ucp_tag_send_sync_nbx(ep, buf, len, tag, &p)
		    : ucp_tag_send_nbx(ep, buf, len, tag, &p);
}

/* A message to ourselves, posted or found by a probe, whole. */
static bool
message(struct thread *t, unsigned n)
{
	size_t len = lengths[n % N_LENGTHS];
	ucp_tag_t tag = (ucp_tag_t)t->i << 32 | n;
	uint8_t *out = malloc(len), *in = calloc(1, len);
	struct wait w[2];
	void *req[2] = {NULL, NULL};
	bool ok;

	if (out == NULL || in == NULL)
		UTIL_DIE("no memory");
	util_fill(out, len, tag);
	if (n % 2 == 0)
		req[0] = post_recv(t, &w[0], in, len, tag);
	req[1] = post_send(&w[1], t->ep, out, len, tag, n % 7 == 0);
	if (n % 2 != 0) {
		ucp_tag_recv_info_t info;
		ucp_request_param_t p;
		ucp_tag_message_h m;

		while ((m = ucp_tag_probe_nb(t->w, tag, UTIL_ALL_BITS, 1, &info)) == NULL)
			ucp_worker_progress(t->w);
		start(&w[0], &p);
		p.cb.recv = received;
		req[0] = ucp_tag_msg_recv_nbx(t->w, in, len, m, &p);
	}
	ok = finish(t, &w[0], req[0]);
	ok = finish(t, &w[1], req[1]) && ok;
	ok = util_check(in, len, tag) && ok;
	free(out);
	free(in);
	return ok;
}

/* A receive that nothing comes for. */
static bool
cancelled(struct thread *t)
{
	uint8_t buf[8];
	struct wait w;
	void *req = post_recv(t, &w, buf, sizeof(buf), UINT64_C(0xdead00000000) | t->i);

	if (!UCS_PTR_IS_PTR(req))
		return false;
	ucp_request_cancel(t->w, req);
	(void)finish(t, &w, req);
	return w.status == UCS_ERR_CANCELED;
}

static bool
ep_comes_and_goes(struct thread *t, unsigned n)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = t->addr};
	ucp_tag_t tag = BOUNCE | (ucp_tag_t)t->i << 32 | n;
	uint64_t out = tag, in = 0;
	ucp_request_param_t p;
	struct wait w[2], c;
	void *req[2];
	ucp_ep_h ep;
	bool ok;

	if (ucp_ep_create(t->w, &params, &ep) != UCS_OK)
		return false;
	req[0] = post_recv(t, &w[0], &in, sizeof(in), tag);
	req[1] = post_send(&w[1], ep, &out, sizeof(out), tag, false);
	ok = finish(t, &w[0], req[0]);
	ok = finish(t, &w[1], req[1]) && ok && in == out;
	start(&c, &p);
	p.cb.send = sent;
	return finish(t, &c, ucp_ep_close_nbx(ep, &p)) && ok;
}

static bool
active_message(struct thread *t, unsigned n)
{
	static const uint8_t data[100000];
	uint64_t hdr = n;
	ucp_request_param_t p;
	struct wait w;

	start(&w, &p);
	p.cb.send = sent;
	p.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	p.flags = n % 3 == 0 ? UCP_AM_SEND_FLAG_REPLY : 0;
	return finish(t, &w, ucp_am_send_nbx(t->ep, AM_ID, &hdr, sizeof(hdr), data,
				     lengths[n % 3], &p));
}

static bool
flushed(struct thread *t, bool worker)
{
	ucp_request_param_t p;
	struct wait w;

	start(&w, &p);
	p.cb.send = sent;
	return finish(t, &w, worker ? ucp_worker_flush_nbx(t->w, &p) : ucp_ep_flush_nbx(t->ep, &p));
}

static void *
run(void *arg)
{
	struct thread *t = arg;
	bool ok = true;

	for (unsigned n = 0; n < N_MSGS && ok; n++) {
		ok = message(t, n);
		if (n % 8 == 0)
			ok = cancelled(t) && ok;
		if (n % (N_MSGS / N_PEERS) == 0)
			ok = ep_comes_and_goes(t, n) && ok;
		ok = active_message(t, n) && ok;
		if (n % 16 == 0)
			ok = flushed(t, n % 32 == 0) && ok;
	}
	t->failed = !ok;
	/* Others may wait for what only a turn brings. */
	atomic_fetch_sub_explicit(t->n_running, 1, memory_order_acq_rel);
	while (atomic_load_explicit(t->n_running, memory_order_acquire) != 0)
		ucp_worker_progress(t->w);
	return NULL;
}

static void
handler_set(ucp_worker_h w)
{
	ucp_am_handler_param_t p = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = am_handler};

	UTIL_OK(ucp_worker_set_am_recv_handler(w, &p));
}

static void
threads_run(struct thread *t)
{
	_Atomic unsigned n_running = N_THREADS;

	atomic_store(&n_am, 0);
	for (unsigned i = 0; i < N_THREADS; i++) {
		t[i].i = i;
		t[i].n_running = &n_running;
		if (pthread_create(&t[i].id, NULL, run, &t[i]) != 0)
			UTIL_DIE("no thread");
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(t[i].id, NULL);
		CU_ASSERT_FALSE(t[i].failed);
	}
}

static void
ep_end(ucp_worker_h w, ucp_ep_h ep)
{
	struct thread t = {.w = w};
	ucp_request_param_t p;
	struct wait c;

	start(&c, &p);
	p.cb.send = sent;
	CU_ASSERT_TRUE(finish(&t, &c, ucp_ep_close_nbx(ep, &p)));
}

static void
threads_share_a_worker(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG | UCP_FEATURE_AM);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_MULTI);
	struct thread t[N_THREADS] = {{.i = 0}};
	ucp_address_t *addr;
	size_t len;

	handler_set(w);
	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	for (unsigned i = 0; i < N_THREADS; i++) {
		t[i].w = w;
		t[i].addr = addr;
		t[i].ep = util_ep(w, addr);
	}
	threads_run(t);
	for (unsigned i = 0; i < LAST_TURNS && atomic_load(&n_am) != N_THREADS * N_MSGS; i++)
		ucp_worker_progress(w); /* the last were sent, and need not have come */
	CU_ASSERT_EQUAL(atomic_load(&n_am), N_THREADS * N_MSGS);
	for (unsigned i = 0; i < N_THREADS; i++)
		ep_end(w, t[i].ep);
	ucp_worker_release_address(w, addr);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

/* Each to itself and, by the eps that come and go, to the next. */
static void
threads_have_workers_of_one_context(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG | UCP_FEATURE_AM);
	struct thread t[N_THREADS] = {{.i = 0}};
	ucp_address_t *addr[N_THREADS];
	size_t len;

	for (unsigned i = 0; i < N_THREADS; i++) {
		t[i].w = util_worker(ctx, i % 2 ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE);
		handler_set(t[i].w);
		UTIL_OK(ucp_worker_get_address(t[i].w, &addr[i], &len));
		t[i].addr = addr[i];
		t[i].ep = util_ep(t[i].w, addr[i]);
	}
	threads_run(t);
	for (unsigned i = 0; i < N_THREADS; i++) {
		ep_end(t[i].w, t[i].ep);
		ucp_worker_release_address(t[i].w, addr[i]);
		ucp_worker_destroy(t[i].w);
	}
	ucp_cleanup(ctx);
}

/* Messages to ourselves, of which each is sent by the callback of the one before. */
struct chain {
	pthread_t id;
	ucp_worker_h w;
	ucp_ep_h ep;
	ucp_tag_t tag;
	uint64_t out, in;
	_Atomic unsigned n;
	_Atomic unsigned n_bad;
};

static void chain_next(struct chain *c);

static void
chain_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	struct chain *c = arg;

	c->n_bad += status != UCS_OK || info->length != sizeof(c->in) || c->in != c->n;
	ucp_request_free(request);
	c->n_bad += ucp_worker_progress(c->w) != 0; /* it is in progress */
	if (++c->n < N_MSGS)
		chain_next(c);
}

static void
chain_sent(void *request, ucs_status_t status, void *arg)
{
	struct chain *c = arg;

	c->n_bad += status != UCS_OK;
	ucp_request_free(request);
}

static void
chain_next(struct chain *c)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
			UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .user_data = c};

	c->out = c->n;
	p.cb.recv = chain_received;
	c->n_bad += UCS_PTR_IS_ERR(ucp_tag_recv_nbx(c->w, &c->in, sizeof(c->in), c->tag, UTIL_ALL_BITS, &p));
	p.op_attr_mask &= ~UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	p.cb.send = chain_sent;
	c->n_bad += UCS_PTR_IS_ERR(ucp_tag_send_nbx(c->ep, &c->out, sizeof(c->out), c->tag, &p));
}

static void *
chain_run(void *arg)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	struct chain *c = arg;

	chain_next(c);
	while (c->n < N_MSGS && util_now_ns() < end)
		ucp_worker_progress(c->w);
	return NULL;
}

static void
callbacks_of_several_threads_post_free_and_progress(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_MULTI);
	struct chain c[N_THREADS];
	ucp_address_t *addr;
	size_t len;

	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	for (unsigned i = 0; i < N_THREADS; i++) {
		c[i] = (struct chain){.w = w, .ep = util_ep(w, addr), .tag = i};
		if (pthread_create(&c[i].id, NULL, chain_run, &c[i]) != 0)
			UTIL_DIE("no thread");
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(c[i].id, NULL);
		CU_ASSERT_EQUAL(c[i].n, N_MSGS);
		CU_ASSERT_EQUAL(c[i].n_bad, 0);
	}
	for (unsigned i = 0; i < N_THREADS; i++)
		ep_end(w, c[i].ep);
	ucp_worker_release_address(w, addr);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static _Atomic bool in_handler, seen, waited_in_vain;

/* Until another thread has asked for progress, and gone on. */
static ucs_status_t
am_waits(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	(void)arg, (void)header, (void)header_length, (void)data, (void)length, (void)param;
	in_handler = true;
	while (!seen && util_now_ns() < end)
		sched_yield();
	waited_in_vain = !seen;
	return UCS_OK;
}

static void *
progress_meanwhile(void *arg)
{
	while (!in_handler)
		sched_yield();
	ucp_worker_progress(arg);
	seen = true;
	return NULL;
}

static void
who_asks_for_progress_does_not_wait_for_who_is_in_progress(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG | UCP_FEATURE_AM);
	struct thread t = {.w = util_worker(ctx, UCS_THREAD_MODE_MULTI)};
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = am_waits};
	ucp_request_param_t p;
	ucp_address_t *addr;
	pthread_t other;
	struct wait w;
	size_t len;

	UTIL_OK(ucp_worker_set_am_recv_handler(t.w, &h));
	UTIL_OK(ucp_worker_get_address(t.w, &addr, &len));
	t.ep = util_ep(t.w, addr);
	in_handler = seen = false;
	if (pthread_create(&other, NULL, progress_meanwhile, t.w) != 0)
		UTIL_DIE("no thread");
	start(&w, &p);
	p.cb.send = sent;
	CU_ASSERT_TRUE(finish(&t, &w, ucp_am_send_nbx(t.ep, AM_ID, NULL, 0, &len, sizeof(len), &p)));
	while (!in_handler)
		ucp_worker_progress(t.w);
	pthread_join(other, NULL);
	CU_ASSERT_FALSE(waited_in_vain);
	ep_end(t.w, t.ep);
	ucp_worker_release_address(t.w, addr);
	ucp_worker_destroy(t.w);
	ucp_cleanup(ctx);
}

struct ring {
	pthread_t id;
	ucp_context_h ctx;
	unsigned i, n_bad;
	ucp_worker_h w;
	pthread_barrier_t *barrier;
	ucp_address_t **addrs;
};

/* A worker made, used and destroyed in a thread of its own, while others do the same. */
static void *
ring_run(void *arg)
{
	struct ring *r = arg;
	struct thread t = {.i = r->i};
	uint64_t out[512], in[512];
	struct wait w[2];
	void *req[2];
	size_t len;

	r->w = t.w = util_worker(r->ctx, UCS_THREAD_MODE_SERIALIZED);
	UTIL_OK(ucp_worker_get_address(r->w, &r->addrs[r->i], &len));
	pthread_barrier_wait(r->barrier);
	t.ep = util_ep(r->w, r->addrs[(r->i + 1) % N_THREADS]);
	for (unsigned n = 0; n < N_MSGS; n++) {
		util_fill(out, sizeof(out), n);
		req[0] = post_recv(&t, &w[0], in, sizeof(in), n);
		req[1] = post_send(&w[1], t.ep, out, sizeof(out), n, n % 5 == 0);
		r->n_bad += !finish(&t, &w[0], req[0]);
		r->n_bad += !util_check(in, sizeof(in), n);
		/* a sync send ends when the next one has received: it does, before its own */
		r->n_bad += !finish(&t, &w[1], req[1]);
	}
	(void)flushed(&t, true);
	pthread_barrier_wait(r->barrier);
	ucp_worker_release_address(r->w, r->addrs[r->i]);
	ucp_worker_destroy(r->w);
	return NULL;
}

static void
threads_make_workers_and_talk_in_a_ring(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_address_t *addrs[N_THREADS];
	pthread_barrier_t barrier;
	struct ring r[N_THREADS];

	pthread_barrier_init(&barrier, NULL, N_THREADS);
	for (unsigned i = 0; i < N_THREADS; i++) {
		r[i] = (struct ring){.ctx = ctx, .i = i, .barrier = &barrier, .addrs = addrs};
		if (pthread_create(&r[i].id, NULL, ring_run, &r[i]) != 0)
			UTIL_DIE("no thread");
	}
	for (unsigned i = 0; i < N_THREADS; i++) {
		pthread_join(r[i].id, NULL);
		CU_ASSERT_EQUAL(r[i].n_bad, 0);
	}
	pthread_barrier_destroy(&barrier);
	ucp_cleanup(ctx);
}

int
main(void)
{
	CU_pSuite suite;
	unsigned n_failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("threads", NULL, NULL);
	CU_add_test(suite, "threads_share_a_worker", threads_share_a_worker);
	CU_add_test(suite, "callbacks_of_several_threads_post_free_and_progress",
		callbacks_of_several_threads_post_free_and_progress);
	CU_add_test(suite, "who_asks_for_progress_does_not_wait_for_who_is_in_progress",
		who_asks_for_progress_does_not_wait_for_who_is_in_progress);
	CU_add_test(suite, "threads_have_workers_of_one_context",
		threads_have_workers_of_one_context);
	CU_add_test(suite, "threads_make_workers_and_talk_in_a_ring",
		threads_make_workers_and_talk_in_a_ring);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	n_failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return n_failed != 0;
}
