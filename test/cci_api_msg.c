/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_msg.c - messages: whole, in order, by every flag
 */
#include <pthread.h>

#include "cci_api_test.h"

/* Send; while all buffers are in use, run turns. */
static int
send_when_possible(struct pair *p, const void *buf, uint32_t len, void *context, int flags)
{
	int rc;

	while ((rc = cci_send(p->e[0].conn, buf, len, context, flags)) == CCI_ENOBUFS)
		util_pair_turn(p);
	return rc;
}

static cci_event_t *
recv_one(struct pair *p, int i)
{
	cci_event_t *ev = util_pair_wait(p, i, CCI_EVENT_RECV);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_PTR_EQUAL(ev->recv.connection, p->e[i].conn);
	CU_ASSERT(ev->recv.len == 0 || (uintptr_t)ev->recv.ptr % 8 == 0);
	return ev;
}

/* Lengths from nothing to the most that the connection takes. */
static unsigned
lengths(cci_connection_t *conn, uint32_t *out)
{
	static const uint32_t some[] = {0, 1, 7, 8, 9, 40, 48, 63, 64, 88, 100, 112, 113, 200, 255, 256, 257,
		1000, 2000, 4000, 4096, 8000, 8192, 16000, 32768};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		if (some[i] < conn->max_send_size - 1)
			out[n++] = some[i];
	out[n++] = conn->max_send_size - 1;
	out[n++] = conn->max_send_size;
	return n;
}
#define MAX_LENGTHS 32

static void
messages_of_every_length_arrive_whole(void)
{
	static const int flags[] = {0, CCI_FLAG_NO_COPY};
	uint32_t lens[MAX_LENGTHS];
	struct pair p;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		for (unsigned i = 0, n = lengths(p.e[0].conn, lens); i < 2 * n; i++) {
			uint32_t len = lens[i / 2];
			uint8_t *buf = util_guarded(len);
			void *context;
			cci_event_t *ev;

			util_fill(buf, len, i);
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, len, COOKIE(i), flags[i % 2]),
				CCI_SUCCESS);
			if (flags[i % 2] == 0)
				memset(buf, 0, len); /* it is ours again */
			ev = recv_one(&p, 1);
			CU_ASSERT_EQUAL(ev->recv.len, len);
			CU_ASSERT(util_check(ev->recv.ptr, len, i));
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, &context), CCI_SUCCESS);
			CU_ASSERT_PTR_EQUAL(context, COOKIE(i));
			CU_ASSERT(util_guards_ok(buf, len));
			util_guarded_free(buf);
			util_return(ev);
		}
		util_pair_close(&p);
	}
}

static void
messages_go_both_ways(void)
{
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (uint32_t i = 0; i < 200; i++) {
		cci_event_t *ev[2];

		for (int k = 0; k < 2; k++)
			CU_ASSERT_EQUAL(cci_send(p.e[k].conn, &i, sizeof(i), NULL, 0), CCI_SUCCESS);
		for (int k = 0; k < 2; k++) {
			ev[k] = recv_one(&p, k);
			CU_ASSERT_EQUAL(memcmp(ev[k]->recv.ptr, &i, sizeof(i)), 0);
			CU_ASSERT_EQUAL(util_pair_sent(&p, k, NULL), CCI_SUCCESS);
			util_return(ev[k]);
		}
	}
	util_pair_close(&p);
}

static void
a_message_over_the_size_is_refused(void)
{
	struct iovec two[2];
	struct pair p;
	uint8_t *buf;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		buf = calloc(1, p.e[0].conn->max_send_size + 1);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, p.e[0].conn->max_send_size + 1, NULL, 0),
			CCI_EMSGSIZE);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, UINT32_MAX, NULL, 0), CCI_EMSGSIZE);
		two[0] = (struct iovec){buf, p.e[0].conn->max_send_size};
		two[1] = (struct iovec){buf, 1};
		CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, two, 2, NULL, 0), CCI_EMSGSIZE);
		two[0].iov_len = SIZE_MAX; /* with the other: nothing */
		CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, two, 2, NULL, 0), CCI_EMSGSIZE);
		UTIL_FOR_MS(&p, 10);
		CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
		free(buf);
		util_pair_close(&p);
	}
}

static void
send_refuses_what_makes_no_sense(void)
{
	struct iovec v = {NULL, 5};
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_send(NULL, "x", 1, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_sendv(NULL, &v, 1, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_send(p.e[0].conn, NULL, 5, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, NULL, 1, NULL, 0), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, &v, 1, NULL, 0), CCI_EINVAL);
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
	util_pair_close(&p);
}

static void
a_message_may_be_empty(void)
{
	const struct iovec empty[2] = {{NULL, 0}, {NULL, 0}};
	cci_event_t *ev;
	struct pair p;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, NULL, 0, NULL, 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, NULL, 0, NULL, 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, empty, 2, NULL, 0), CCI_SUCCESS);
		for (int i = 0; i < 3; i++) {
			ev = recv_one(&p, 1);
			CU_ASSERT_EQUAL(ev->recv.len, 0);
			util_return(ev);
			CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		}
		util_pair_close(&p);
	}
}

static void
pieces_are_joined_in_their_order(void)
{
	enum { N = 64 };
	static const int flags[] = {0, CCI_FLAG_NO_COPY};
	struct iovec v[N];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (unsigned n = 1; n <= N; n += 3) {
		uint32_t len = 0, want = p.e[0].conn->max_send_size * n / (N + 1);
		uint8_t *buf = malloc(want + N);
		cci_event_t *ev;

		for (unsigned i = 0; i < n; i++) {
			v[i].iov_base = buf + len;
			v[i].iov_len = i % 5 == 3 ? 0 : want / n;
			len += (uint32_t)v[i].iov_len;
		}
		util_fill(buf, len, n);
		CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, v, n, COOKIE(n), flags[n % 2]), CCI_SUCCESS);
		memset(v, 0xee, sizeof(v)); /* the array was copied */
		ev = recv_one(&p, 1);
		CU_ASSERT_EQUAL(ev->recv.len, len);
		CU_ASSERT(util_check(ev->recv.ptr, len, n));
		util_return(ev);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		free(buf);
	}
	util_pair_close(&p);
}

/* Of mixed lengths, silent or not; completions come in the order of the calls as well. */
static void
an_ordered_connection_keeps_the_order_of_both(void)
{
	enum { N = 3000 };
	unsigned sent = 0, done = 0, got = 0, last = 0;
	static uint8_t buf[65536];
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	while (got < N || done < N - N / 3) {
		uint32_t len = (uint32_t)(8 + rnd() % (rnd() % 4 == 0 ? p.e[0].conn->max_send_size - 8 :
			200));
		cci_event_t *ev;

		if (sent < N) {
			memcpy(buf, &sent, sizeof(sent));
			if (cci_send(p.e[0].conn, buf, len, COOKIE(sent),
				sent % 3 == 1 ? CCI_FLAG_SILENT : 0) == CCI_SUCCESS)
				sent++;
		}
		if (sent == N || rnd() % 8 == 0)
			util_pair_turn(&p);
		while ((ev = util_end_take(&p.e[1], CCI_EVENT_RECV)) != NULL) {
			CU_ASSERT_EQUAL_FATAL(memcmp(ev->recv.ptr, &got, sizeof(got)), 0);
			got++;
			util_return(ev);
		}
		while ((ev = util_end_take(&p.e[0], CCI_EVENT_SEND)) != NULL) {
			if (done > 0)
				last += (last + 1) % 3 == 1 ? 2 : 1;
			CU_ASSERT_PTR_EQUAL_FATAL(ev->send.context, COOKIE(last));
			CU_ASSERT_EQUAL(ev->send.status, CCI_SUCCESS);
			CU_ASSERT_PTR_EQUAL(ev->send.connection, p.e[0].conn);
			done++;
			util_return(ev);
		}
	}
	UTIL_FOR_MS(&p, 10);
	CU_ASSERT_EQUAL(p.e[0].n_kept + p.e[1].n_kept, 0);
	util_pair_close(&p);
}

static void
a_reliable_connection_delivers_exactly_once(void)
{
	enum { N = 20000 };
	static uint8_t seen[N];
	cci_event_t *ev;
	struct pair p;
	unsigned got;

	for (size_t a = 0; a < 2; a++) {
		memset(seen, 0, sizeof(seen));
		got = 0;
		util_pair_open_with(&p, reliable[a]);
		for (unsigned i = 0; got < N; i++) {
			if (i < N)
				CU_ASSERT_EQUAL_FATAL(send_when_possible(&p, &i, sizeof(i), NULL,
					CCI_FLAG_SILENT), CCI_SUCCESS);
			util_end_poll(&p.e[1]);
			util_end_poll(&p.e[0]);
			while ((ev = util_end_take(&p.e[1], CCI_EVENT_RECV)) != NULL) {
				unsigned n;

				memcpy(&n, ev->recv.ptr, sizeof(n));
				CU_ASSERT_FATAL(n < N && !seen[n]);
				seen[n] = 1;
				got++;
				util_return(ev);
			}
		}
		UTIL_FOR_MS(&p, 10);
		CU_ASSERT_EQUAL(p.e[1].n_kept, 0);
		util_pair_close(&p);
	}
}

static void
a_silent_send_has_no_event(void)
{
	cci_event_t *ev;
	struct pair p;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		for (int i = 0; i < 50; i++) {
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "quiet", 5, NULL, CCI_FLAG_SILENT),
				CCI_SUCCESS);
			ev = recv_one(&p, 1);
			util_return(ev);
		}
		UTIL_FOR_MS(&p, 20);
		CU_ASSERT_EQUAL(p.e[0].n_kept, 0);
		util_pair_close(&p);
	}
}

/* Else nobody could know when the buffer is free. */
static void
silent_and_no_copy_together_are_for_ordered_connections(void)
{
	const int both = CCI_FLAG_SILENT | CCI_FLAG_NO_COPY;
	static uint8_t buf[4000];
	struct iovec v = {buf, sizeof(buf)};
	uint32_t len = sizeof(buf);
	void *context = NULL;
	cci_event_t *ev;
	struct pair p;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		len = p.e[0].conn->max_send_size < len ? p.e[0].conn->max_send_size : len;
		v.iov_len = len;
		if (unicast[a] != CCI_CONN_ATTR_RO) {
			CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, len, NULL, both), CCI_EINVAL);
			CU_ASSERT_EQUAL(cci_sendv(p.e[0].conn, &v, 1, NULL, both), CCI_EINVAL);
			util_pair_close(&p);
			continue;
		}
		util_fill(buf, len, 1);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, len, NULL, both), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "over", 4, COOKIE(1), 0), CCI_SUCCESS);
		/* this one's end says that the other is over, and its buffer ours */
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, &context), CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(context, COOKIE(1));
		memset(buf, 0, len);
		ev = recv_one(&p, 1);
		CU_ASSERT(util_check(ev->recv.ptr, len, 1));
		util_return(ev);
		util_pair_close(&p);
	}
}

/* What came is changed where it lies, and sent on before its event is returned. */
static void
a_received_message_may_be_changed_and_sent_on(void)
{
	cci_event_t *ev, *echo;
	struct pair p;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, "hello world", 12, NULL, 0), CCI_SUCCESS);
		ev = recv_one(&p, 1);
		memcpy((void *)(uintptr_t)ev->recv.ptr, "HELLO", 5);
		CU_ASSERT_EQUAL(cci_send(p.e[1].conn, ev->recv.ptr, ev->recv.len, NULL, CCI_FLAG_SILENT),
			CCI_SUCCESS);
		util_return(ev);
		echo = recv_one(&p, 0);
		CU_ASSERT_STRING_EQUAL((const char *)echo->recv.ptr, "HELLO world");
		util_return(echo);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	}
	util_pair_close(&p);
}

/* The event of a send is kept while the next is posted, as ping-pong programs do. */
static void
a_held_send_event_takes_no_buffer(void)
{
	uint32_t one = 1;
	cci_event_t *ev = NULL;
	struct pair p;

	util_pair_open(&p);
	CU_ASSERT_EQUAL(cci_set_opt(p.e[0].ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &one), CCI_SUCCESS);
	util_pair_connect(&p, CCI_CONN_ATTR_RU, &p.e[0].conn, &p.e[1].conn);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL_FATAL(cci_send(p.e[0].conn, "next", 4, NULL, 0), CCI_SUCCESS);
		if (ev != NULL)
			util_return(ev);
		ev = util_pair_wait(&p, 0, CCI_EVENT_SEND);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		util_return(recv_one(&p, 1));
	}
	util_return(ev);
	util_pair_close(&p);
}

/* Blocking calls on e[0], while nobody calls for e[1]. */
static void
block_alone(struct pair *p, size_t a)
{
	static uint8_t local_mem[100000], remote_mem[sizeof(local_mem)];
	cci_rma_handle_t *local, *remote;
	struct iovec v[2];
	cci_event_t *ev;
	char text[] = "blocked";

	v[0] = (struct iovec){text, 3};
	v[1] = (struct iovec){text + 3, 5};
	for (int i = 0; i < 50; i++) {
		CU_ASSERT_EQUAL(cci_send(p->e[0].conn, text, sizeof(text), NULL, CCI_FLAG_BLOCKING), CCI_SUCCESS);
		CU_ASSERT_EQUAL(cci_sendv(p->e[0].conn, v, 2, NULL, CCI_FLAG_BLOCKING), CCI_SUCCESS);
	}
	for (int i = 0; i < 100; i++) {
		ev = recv_one(p, 1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->recv.len, sizeof(text));
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, text, sizeof(text)), 0);
		util_return(ev);
	}
	if (unicast[a] == CCI_CONN_ATTR_UU)
		return;
	UTIL_OK(cci_rma_register(p->e[0].ep, local_mem, sizeof(local_mem), 0, &local));
	UTIL_OK(cci_rma_register(p->e[1].ep, remote_mem, sizeof(remote_mem),
		CCI_FLAG_READ | CCI_FLAG_WRITE, &remote));
	memset(local_mem, (int)a + 1, sizeof(local_mem));
	CU_ASSERT_EQUAL(cci_rma(p->e[0].conn, NULL, 0, local, 0, remote, 0, sizeof(local_mem), NULL,
		CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), CCI_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(local_mem, remote_mem, sizeof(local_mem)), 0);
	memset(remote_mem, 0x77, sizeof(remote_mem));
	CU_ASSERT_EQUAL(cci_rma(p->e[0].conn, NULL, 0, local, 0, remote, 0, sizeof(local_mem), NULL,
		CCI_FLAG_READ | CCI_FLAG_BLOCKING), CCI_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(local_mem, remote_mem, sizeof(local_mem)), 0);
	UTIL_OK(cci_rma_deregister(p->e[0].ep, local));
	UTIL_OK(cci_rma_deregister(p->e[1].ep, remote));
}

static void
blocking_calls_end_when_the_peer_is_of_the_same_thread(void)
{
	struct pair p;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		block_alone(&p, a);
		util_pair_close(&p);
	}
}

struct opened {
	struct pair p;
	size_t a;
};

static void *
open_in_thread(void *arg)
{
	struct opened *o = arg;

	util_pair_open_with(&o->p, unicast[o->a]);
	return NULL;
}

static void
blocking_calls_end_when_the_peers_thread_is_busy(void)
{
	struct opened o;
	pthread_t thread;

	for (o.a = 0; o.a < 3; o.a++) {
		UTIL_OK(pthread_create(&thread, NULL, open_in_thread, &o));
		UTIL_OK(pthread_join(thread, NULL));
		block_alone(&o.p, o.a);
		util_pair_close(&o.p);
	}
}

const struct api_test cci_msg_tests[] = {
	T(blocking_calls_end_when_the_peer_is_of_the_same_thread),
	T(blocking_calls_end_when_the_peers_thread_is_busy),
	T(messages_of_every_length_arrive_whole),
	T(messages_go_both_ways),
	T(a_message_over_the_size_is_refused),
	T(send_refuses_what_makes_no_sense),
	T(a_message_may_be_empty),
	T(pieces_are_joined_in_their_order),
	T(an_ordered_connection_keeps_the_order_of_both),
	T(a_reliable_connection_delivers_exactly_once),
	T(a_silent_send_has_no_event),
	T(silent_and_no_copy_together_are_for_ordered_connections),
	T(a_received_message_may_be_changed_and_sent_on),
	T(a_held_send_event_takes_no_buffer),
	{NULL, NULL, NULL, NULL},
};
