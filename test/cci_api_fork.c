/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_fork.c - children that are forked in the middle of it
 */
#include <signal.h>
#include <sys/wait.h>

#include "api_fork.h"
#include "cci_api_test.h"

static struct pair p;

/* What the parent has in use by now is not the child's. */
static void
send_both_ways(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++) {
		cci_event_t *ev;

		CU_ASSERT_EQUAL(cci_send(p.e[i].conn, "to and fro", 11, NULL, 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(util_pair_sent(&p, i, NULL), CCI_SUCCESS);
		ev = util_pair_wait(&p, !i, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->recv.len, 11);
		util_return(ev);
	}
}

static void
run_child(void *arg)
{
	void (*const *child)(void) = arg;

	(*child)();
	api_child_leave();
}

static pid_t
begin(void (*child)(void))
{
	return api_fork(run_child, send_both_ways, &child);
}

/* It ends while the parent goes on. */
static void
end(pid_t pid)
{
	int status = -1;
	pid_t rc;

	while ((rc = waitpid(pid, &status, WNOHANG)) == 0)
		util_pair_turn(&p);
	CU_ASSERT_EQUAL(rc, pid);
	CU_ASSERT_EQUAL(status, 0);
	send_both_ways(NULL);
}

static void
clean_up(void)
{
	cci_event_t *ev;

	for (int i = 0; i < 2; i++) {
		SO(cci_get_event(p.e[i].ep, &ev) != CCI_SUCCESS);
		SO(cci_disconnect(p.e[i].conn) == CCI_SUCCESS);
		SO(cci_destroy_endpoint(p.e[i].ep) == CCI_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		SO(cci_finalize() == CCI_SUCCESS);
}

static void
use_own(void)
{
	struct pair own;

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&own, unicast[a]);
		for (int i = 0; i < 2; i++) {
			cci_event_t *ev;

			SO(cci_send(own.e[i].conn, "of its own", 11, NULL, 0) == CCI_SUCCESS);
			SO(util_pair_sent(&own, i, NULL) == CCI_SUCCESS);
			ev = util_pair_wait(&own, !i, CCI_EVENT_RECV);
			SO(ev != NULL && ev->recv.len == 11);
			util_return(ev);
		}
		util_pair_close(&own);
	}
}

static void
child_cleans_up(void)
{
	clean_up();
}

static void
child_starts_afresh(void)
{
	use_own();
	use_own();
}

static void
child_does_both(void)
{
	clean_up();
	SO(cci_finalize() == CCI_ERROR); /* nothing is left of the parent's */
	use_own();
}

static void
child_does_both_the_other_way(void)
{
	use_own();
	clean_up();
	use_own();
}

static void
a_child_cleans_up_and_starts_afresh(void)
{
	void (*const children[])(void) = {child_cleans_up, child_starts_afresh, child_does_both,
		child_does_both_the_other_way};

	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		for (int i = 0; i < 4; i++)
			end(begin(children[i]));
		util_pair_close(&p);
	}
}

/* Its messages are echoed by the endpoint that the parent has had all the time. */
static void
child_talks(void)
{
	cci_event_t *ev;
	struct end e;

	util_end_open(&e, NULL, false);
	SO(cci_connect(e.ep, p.e[0].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
	ev = end_wait(&e, CCI_EVENT_CONNECT);
	SO(ev != NULL && ev->connect.status == CCI_SUCCESS);
	e.conn = ev->connect.connection;
	util_return(ev);
	for (int i = 0; i < 100; i++) {
		SO(cci_send(e.conn, &i, sizeof(i), NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
		ev = end_wait(&e, CCI_EVENT_RECV);
		SO(ev != NULL && ev->recv.len == sizeof(i) && memcmp(ev->recv.ptr, &i, sizeof(i)) == 0);
		util_return(ev);
	}
	SO(cci_disconnect(e.conn) == CCI_SUCCESS);
	util_end_close(&e);
}

static void
a_child_connects_to_its_parent(void)
{
	cci_event_t *ev;
	pid_t pid;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	pid = begin(child_talks);
	ev = util_pair_wait(&p, 0, CCI_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	UTIL_OK(cci_accept(ev, NULL));
	util_return(ev);
	ev = util_pair_wait(&p, 0, CCI_EVENT_ACCEPT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	util_return(ev);
	for (int i = 0; i < 100; i++) {
		ev = util_pair_wait(&p, 0, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(cci_send(ev->recv.connection, ev->recv.ptr, ev->recv.len, NULL,
			CCI_FLAG_SILENT), CCI_SUCCESS);
		util_return(ev);
	}
	end(pid);
	util_pair_close(&p);
}

static void
child_sends(void)
{
	static const int flags[] = {0, CCI_FLAG_SILENT, CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY};
	cci_rma_handle_t nothing = {{0}};

	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 1000; k++)
			SO(cci_send(p.e[k & 1].conn, "not for you", 12, NULL, flags[i]) != CCI_SUCCESS);
	for (int i = 0; i < 2; i++) {
		struct iovec iov = {"not for you", 12};
		uint32_t us = 5;

		SO(cci_sendv(p.e[i].conn, &iov, 1, NULL, 0) != CCI_SUCCESS);
		SO(cci_rma(p.e[i].conn, NULL, 0, &nothing, 0, &nothing, 0, 8, NULL, CCI_FLAG_READ) != CCI_SUCCESS);
		SO(cci_set_opt(p.e[i].conn, CCI_OPT_CONN_SEND_TIMEOUT, &us) != CCI_SUCCESS);
	}
	SO(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS);
	clean_up();
}

static void
what_a_child_sends_to_its_parents_peers_fails(void)
{
	for (size_t a = 0; a < 3; a++) {
		util_pair_open_with(&p, unicast[a]);
		end(begin(child_sends));
		for (int i = 0; i < 2; i++)
			CU_ASSERT_EQUAL(util_end_count(&p.e[i], CCI_EVENT_RECV), 0);
		util_pair_close(&p);
	}
}

static int up[2]; /* a pipe to the parent */

static void
child_sleeps(void)
{
	SO(write(up[1], "", 1) == 1); /* it is there */
	pause();
}

static void
a_child_that_lives_on_keeps_no_service(void)
{
	struct end e;
	pid_t pid;
	char c;

	CU_ASSERT_EQUAL_FATAL(pipe(up), 0);
	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	util_end_open(&e, "served-by-a-parent", false);
	pid = begin(child_sleeps);
	CU_ASSERT_EQUAL(read(up[0], &c, 1), 1);
	util_end_close(&e);
	util_end_open(&e, "served-by-a-parent", false);
	util_end_close(&e);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(up[0]);
	close(up[1]);
	util_pair_close(&p);
}

const struct api_test cci_fork_tests[] = {
	T(a_child_cleans_up_and_starts_afresh),
	T(a_child_connects_to_its_parent),
	T(what_a_child_sends_to_its_parents_peers_fails),
	T_NEEDS(a_child_that_lives_on_keeps_no_service, lacks_names),
	{NULL, NULL, NULL, NULL},
};
