/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_wakeup.c - sleeping until a worker has something to do
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "ucp_api_test.h"

#define FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP)

/* Two workers of two contexts, with an ep to each other. */
static void
pair_open(struct pair *p, uint64_t features)
{
	int i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < 2; i++) {
		p->n[i].ctx = util_context(features);
		p->n[i].w = util_worker(p->n[i].ctx, UCS_THREAD_MODE_SINGLE);
		UTIL_OK(ucp_worker_get_address(p->n[i].w, &p->n[i].addr, &p->n[i].addr_len));
	}
	for (i = 0; i < 2; i++)
		p->n[i].ep = util_ep(p->n[i].w, p->n[!i].addr);
}

static int
efd_of(ucp_worker_h w)
{
	int fd = -1;

	CU_ASSERT_EQUAL_FATAL(ucp_worker_get_efd(w, &fd), UCS_OK);
	return fd;
}

static bool
readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* Progress until the worker lets us sleep. */
static bool
arm(ucp_worker_h w)
{
	uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;

	while (util_now_ns() < end) {
		while (ucp_worker_progress(w) != 0)
			;
		if (ucp_worker_arm(w) == UCS_OK)
			return true;
	}
	return false;
}

static void
without_the_feature_waiting_is_refused(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	int fd;

	CU_ASSERT_NOT_EQUAL(ucp_worker_get_efd(w, &fd), UCS_OK);
	CU_ASSERT_NOT_EQUAL(ucp_worker_arm(w), UCS_OK);
	CU_ASSERT_NOT_EQUAL(ucp_worker_arm(w), UCS_ERR_BUSY);
	CU_ASSERT_NOT_EQUAL(ucp_worker_wait(w), UCS_OK);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static void
armed_efd_is_quiet_until_a_message_comes(void)
{
	struct pair p;
	struct op send, recv;
	uint64_t out = 42, in = 0;
	int fd;

	pair_open(&p, FEATURES);
	exchange(&p, 0, 8, 1, true, UTIL_NBX);
	exchange(&p, 1, 8, 1, true, UTIL_NBX);
	fd = efd_of(p.n[1].w);
	util_recv(&recv, p.n[1].w, &in, 8, 7, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_FATAL(arm(p.n[1].w));
	CU_ASSERT(!readable(fd, 100));
	util_send(&send, p.n[0].ep, &out, 8, 7, UTIL_NBX);
	CU_ASSERT(readable(fd, 5000));
	CU_ASSERT(readable(fd, 0)); /* until progress */
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv) && util_done(&send)));
	CU_ASSERT_EQUAL(in, 42);
	CU_ASSERT_FATAL(arm(p.n[1].w));
	CU_ASSERT(!readable(fd, 50));
	util_free(&send);
	util_free(&recv);
	util_pair_close(&p);
}

static void
arm_is_busy_while_a_message_waits(void)
{
	struct pair p;
	struct op send;
	uint64_t out = 42, in = 0;
	ucs_status_t status;
	uint64_t end;

	pair_open(&p, FEATURES);
	exchange(&p, 0, 8, 1, true, UTIL_NBX);
	CU_ASSERT_FATAL(arm(p.n[1].w));
	while (ucp_worker_progress(p.n[1].w) != 0)
		;
	util_send(&send, p.n[0].ep, &out, 8, 7, UTIL_NBX);
	end = util_now_ns() + 5000000000ull;
	do /* dedicated, it takes a moment to be sent */
		status = ucp_worker_arm(p.n[1].w);
	while (status != UCS_ERR_BUSY && util_now_ns() < end);
	CU_ASSERT_EQUAL(status, UCS_ERR_BUSY);
	CU_ASSERT_EQUAL(ucp_worker_wait(p.n[1].w), UCS_OK);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	util_recv(&send, p.n[1].w, &in, 8, 7, UTIL_ALL_BITS, UTIL_NBX);
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	util_free(&send);
	CU_ASSERT_EQUAL(in, 42);
	util_pair_close(&p);
}

static void
two_signals_wake_once(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	int fd = efd_of(w);

	CU_ASSERT_FATAL(arm(w));
	CU_ASSERT_EQUAL(ucp_worker_signal(w), UCS_OK);
	CU_ASSERT_EQUAL(ucp_worker_signal(w), UCS_OK);
	CU_ASSERT(readable(fd, 1000));
	CU_ASSERT_EQUAL(ucp_worker_arm(w), UCS_ERR_BUSY);
	CU_ASSERT_EQUAL(ucp_worker_arm(w), UCS_OK);
	CU_ASSERT(!readable(fd, 20));
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static void *
signal_later(void *arg)
{
	struct timespec ts = {0, 50000000};

	nanosleep(&ts, NULL);
	UTIL_OK(ucp_worker_signal(arg));
	return NULL;
}

static void
signal_of_another_thread_ends_a_wait(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	pthread_t thread;
	int fd = efd_of(w);

	CU_ASSERT_FATAL(arm(w));
	pthread_create(&thread, NULL, signal_later, w);
	CU_ASSERT(readable(fd, 5000));
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(ucp_worker_wait(w), UCS_OK); /* the signal is still there: at once */
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

/* Ping-pong between two threads that sleep whenever they can. */
struct pong {
	struct pair *p;
	int me;
	size_t len;
	int n;
	bool by_wait, ok;
};

static bool
sleep_until(struct pong *g, int fd, struct op *op)
{
	ucp_worker_h w = g->p->n[g->me].w;

	while (!util_done(op)) {
		if (ucp_worker_progress(w) != 0 || util_done(op))
			continue;
		if (g->by_wait) {
			if (ucp_worker_wait(w) != UCS_OK)
				return false;
		} else if (ucp_worker_arm(w) == UCS_OK && !readable(fd, 10000)) {
			fprintf(stderr, "a wake-up was lost\n");
			return false;
		}
	}
	return true;
}

static void *
pong_run(void *arg)
{
	struct pong *g = arg;
	uint8_t *out = malloc(g->len), *in = malloc(g->len);
	int i, fd = -1;

	UTIL_OK(ucp_worker_get_efd(g->p->n[g->me].w, &fd));
	g->ok = true;
	for (i = 0; i < g->n && g->ok; i++) {
		struct op send, recv;
		int step;

		util_fill(out, g->len, i);
		for (step = 0; step < 2 && g->ok; step++) {
			if (step == g->me) {
				util_send(&send, g->p->n[g->me].ep, out, g->len, i, UTIL_NBX);
				g->ok = sleep_until(g, fd, &send);
				util_free(&send);
			} else {
				util_recv(&recv, g->p->n[g->me].w, in, g->len, i, UTIL_ALL_BITS,
					UTIL_NBX);
				g->ok = sleep_until(g, fd, &recv) && util_check(in, g->len, i);
				util_free(&recv);
			}
		}
	}
	free(out);
	free(in);
	return NULL;
}

static void
pong(size_t len, int n, bool by_wait)
{
	struct pair p;
	struct pong g[2];
	pthread_t thread;
	int i;

	pair_open(&p, FEATURES);
	for (i = 0; i < 2; i++)
		g[i] = (struct pong){&p, i, len, n, by_wait, false};
	pthread_create(&thread, NULL, pong_run, &g[1]);
	pong_run(&g[0]);
	pthread_join(thread, NULL);
	CU_ASSERT(g[0].ok);
	CU_ASSERT(g[1].ok);
	util_pair_close(&p);
}

static void
no_wakeup_is_lost_between_two_who_sleep(void)
{
	pong(8, util_by_network() ? 1000 : 20000, false);
}

static void
no_wakeup_is_lost_in_wait(void)
{
	pong(8, util_by_network() ? 1000 : 2000, true);
}

static void
messages_of_every_way_wake(void)
{
	size_t i;

	for (i = 0; i < N_FEW; i++)
		if (few_sizes[i] != 0)
			pong(few_sizes[i], 100, false);
}

static void
epoll_descriptor_of_the_application_is_told(void)
{
	ucp_worker_params_t params;
	ucp_context_h ctx = util_context(FEATURES);
	struct epoll_event ev = {.events = 0};
	int own = epoll_create1(0), fd;
	ucp_worker_h w;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_WORKER_PARAM_FIELD_EVENT_FD | UCP_WORKER_PARAM_FIELD_USER_DATA;
	params.event_fd = own;
	params.user_data = &params;
	CU_ASSERT_EQUAL_FATAL(ucp_worker_create(ctx, &params, &w), UCS_OK);
	CU_ASSERT_EQUAL(ucp_worker_get_efd(w, &fd), UCS_ERR_UNSUPPORTED);
	CU_ASSERT_FATAL(arm(w));
	CU_ASSERT_EQUAL(epoll_wait(own, &ev, 1, 0), 0);
	CU_ASSERT_EQUAL(ucp_worker_signal(w), UCS_OK);
	CU_ASSERT_EQUAL(epoll_wait(own, &ev, 1, 1000), 1);
	CU_ASSERT_PTR_EQUAL(ev.data.ptr, &params);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
	close(own);
}

static void
edge_triggered_efd_tells_of_new_events_only(void)
{
	ucp_worker_params_t params;
	ucp_context_h ctx = util_context(FEATURES);
	struct epoll_event ev = {.events = 0};
	ucp_worker_h w;
	int fd;

	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_WORKER_PARAM_FIELD_EVENTS;
	params.events = UCP_WAKEUP_RX | UCP_WAKEUP_EDGE;
	CU_ASSERT_EQUAL_FATAL(ucp_worker_create(ctx, &params, &w), UCS_OK);
	fd = efd_of(w);
	CU_ASSERT_FATAL(arm(w));
	CU_ASSERT_EQUAL(ucp_worker_signal(w), UCS_OK);
	CU_ASSERT_EQUAL(epoll_wait(fd, &ev, 1, 1000), 1);
	CU_ASSERT_EQUAL(epoll_wait(fd, &ev, 1, 0), 0);
	CU_ASSERT_EQUAL(ucp_worker_signal(w), UCS_OK);
	CU_ASSERT_EQUAL(epoll_wait(fd, &ev, 1, 1000), 1);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static void
wait_for_memory_ends_by_itself(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	uint64_t word = 0, begin = util_now_ns();
	int i;

	for (i = 0; i < 100; i++)
		ucp_worker_wait_mem(w, &word);
	CU_ASSERT(util_now_ns() - begin < 1000000000u);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

static void
on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep;
	(void)status;
	++*(int *)arg;
}

/* Sleep until the handler was called. @return ms, or -1 */
static int
sleep_until_error(ucp_worker_h w, const int *n)
{
	uint64_t begin = util_now_ns();
	int fd = efd_of(w);

	while (*n == 0 && util_now_ns() - begin < 10000000000u)
		if (ucp_worker_progress(w) == 0 && ucp_worker_arm(w) == UCS_OK)
			readable(fd, 2000);
	return *n != 0 ? (int)((util_now_ns() - begin) / 1000000) : -1;
}

static void
death_of_a_peer_wakes(void)
{
	ucp_context_h ctx = util_context(FEATURES);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	struct child c;
	int n = 0, ms;
	ucp_ep_h ep;

	child_open(&c, w, "address");
	ep = util_ep_with_handler(w, c.addr, on_error, &n);
	child_hello(&c, w, ep);
	CU_ASSERT_FATAL(arm(w));
	kill(c.pid, SIGKILL);
	ms = sleep_until_error(w, &n);
	/* a network has to be silent for a while first, and then not to answer */
	CU_ASSERT(ms >= 0 && ms < (util_by_network() ? 5000 : 1000));
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
	child_close(&c);
}

static void
closing_of_a_peer_wakes_whoever_it_knows(void)
{
	struct pair p;
	int n = 0, ms;
	ucp_ep_h ep;

	pair_open(&p, FEATURES);
	ep = util_ep_with_handler(p.n[0].w, p.n[1].addr, on_error, &n);
	(void)ep;
	exchange(&p, 0, 8, 1, true, UTIL_NBX); /* only this way: the other never connects */
	CU_ASSERT_FATAL(arm(p.n[0].w));
	ucp_worker_release_address(p.n[1].w, p.n[1].addr);
	ucp_worker_destroy(p.n[1].w);
	ms = sleep_until_error(p.n[0].w, &n);
	CU_ASSERT(ms >= 0 && ms < 1000);
	ucp_worker_release_address(p.n[0].w, p.n[0].addr);
	ucp_worker_destroy(p.n[0].w);
	ucp_cleanup(p.n[0].ctx);
	ucp_cleanup(p.n[1].ctx);
}

const struct api_test api_wakeup_tests[] = {
	T(without_the_feature_waiting_is_refused),
	T(armed_efd_is_quiet_until_a_message_comes),
	T(arm_is_busy_while_a_message_waits),
	T(two_signals_wake_once),
	T(signal_of_another_thread_ends_a_wait),
	T(no_wakeup_is_lost_between_two_who_sleep),
	T(no_wakeup_is_lost_in_wait),
	T(messages_of_every_way_wake),
	T(epoll_descriptor_of_the_application_is_told),
	T(edge_triggered_efd_tells_of_new_events_only),
	T(wait_for_memory_ends_by_itself),
	T_NOT_UCX(death_of_a_peer_wakes, "notices deaths by keepalive, after 20 s"),
	T_NOT_UCX(closing_of_a_peer_wakes_whoever_it_knows, "the same"),
	{NULL, NULL, NULL, NULL},
};
