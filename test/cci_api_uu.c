/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_uu.c - unreliable connections to another process, over a network with datagrams
 *
 * The device's counters come from this process's control socket, PLX_RPC_SOCKET. CCI_TEST_LOSS
 * says that the network loses packets.
 */
#include <signal.h>
#include <sys/wait.h>

#include "cci_api_test.h"

#define N	  60
#define ECHO_MS	  5000 /* of the slowest echo that is not lost */
#define LOST_MS	  100  /* after which one counts as lost, where some are */
#define GONE_MS	  20000

static struct child other;
static struct end self;

static void
open_both(void)
{
	util_end_open(&self, NULL, false);
	child_open(&other, NULL);
	self.conn = child_connect(&self, &other, CCI_CONN_ATTR_UU);
}

static void
close_both(void)
{
	util_end_close(&self);
	child_close(&other);
}

/* Send a number to be echoed. @return whether it came back in time */
static bool
echoed(uint64_t number, unsigned ms)
{
	const struct child_msg msg = {CHILD_ECHOES, number};
	uint64_t until = util_now_ns() + ms * 1000000ull;
	struct child_msg got;
	cci_event_t *ev;

	CU_ASSERT_EQUAL_FATAL(cci_send(self.conn, &msg, sizeof(msg), COOKIE(1), 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(end_sent(&self), CCI_SUCCESS);
	while (util_now_ns() < until) {
		util_end_poll(&self);
		ev = util_end_take(&self, CCI_EVENT_RECV);
		if (ev == NULL)
			continue;
		CU_ASSERT_EQUAL_FATAL(ev->recv.len, sizeof(got));
		memcpy(&got, ev->recv.ptr, sizeof(got));
		util_return(ev);
		CU_ASSERT(got.does == CHILD_ECHOES && got.arg <= number);
		if (got.arg == number)
			return true;
	}
	return false;
}

/* The longest that there is comes back, one of many. */
static void
longest_is_echoed(void)
{
	static uint8_t msg[1 << 16];
	uint32_t max = self.conn->max_send_size;
	cci_event_t *ev = NULL;

	CU_ASSERT_FATAL(max >= 200 && max < sizeof(msg));
	msg[0] = CHILD_ECHOES;
	for (int i = 0; i < 100 && ev == NULL; i++) {
		CU_ASSERT_EQUAL(cci_send(self.conn, msg, max, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		end_for_ms(&self, 20);
		while ((ev = util_end_take(&self, CCI_EVENT_RECV)) != NULL && ev->recv.len != max)
			util_return(ev); /* one that was late */
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	util_return(ev);
	CU_ASSERT_EQUAL(cci_send(self.conn, msg, max + 1, NULL, 0), CCI_EMSGSIZE);
}

/* Each is one where the transport is a network; what is lost is no error. */
static void
unreliable_messages_are_datagrams_on_a_network(void)
{
	const bool network = strcmp(util_transport(), "shm") != 0;
	const bool loss = getenv("CCI_TEST_LOSS") != NULL;
	unsigned n = 0;

	open_both();
	for (uint64_t i = 0; i < N; i++)
		n += echoed(i, loss ? LOST_MS : ECHO_MS);
	CU_ASSERT(n > N / 3);
	CU_ASSERT_EQUAL(n < N, loss);
	if (network) {
		CU_ASSERT_EQUAL(util_counter("lossy_tx"), N);
		CU_ASSERT(util_counter("lossy_rx") >= n);
		CU_ASSERT_EQUAL(util_counter("lossy_rx") < N, loss);
		CU_ASSERT_EQUAL(util_counter(util_is_rdma() ? "lossy_drop_bad" : "udp_drop_bad"), 0);
		CU_ASSERT_EQUAL(util_counter("lossy_drop_not_ours"), 0);
	}
	longest_is_echoed();
	close_both();
}

static void
kill_other(void)
{
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	other.pid = 0;
}

/* What is sent ends well until the peer is known to be gone. */
static void
send_until_it_is_gone(void)
{
	uint64_t until = util_now_ns() + GONE_MS * 1000000ull;
	int rc;

	do {
		rc = cci_send(self.conn, "hello?", 6, NULL, 0);
		if (rc == CCI_SUCCESS)
			rc = end_sent(&self);
		end_for_ms(&self, 1);
	} while (rc == CCI_SUCCESS && util_now_ns() < until);
	CU_ASSERT_EQUAL(rc, CCI_ERR_DISCONNECTED);
	CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
}

/* Nobody says that it is gone; the device finds out, or not. */
static void
unreliable_sends_to_a_killed_peer_end_well_or_are_disconnected(void)
{
	bool back = false;

	open_both();
	kill_other();
	send_until_it_is_gone();
	close(other.from);
	child_open(&other, NULL);
	self.conn = child_connect(&self, &other, CCI_CONN_ATTR_UU);
	for (uint64_t i = 0; i < N && !back; i++)
		back = echoed(i, LOST_MS);
	CU_ASSERT(back);
	close_both();
}

/* Those to the others are in use until it is closed, as the one that was idle for longest. */
static void
wait_until_it_is_parked(cci_connection_t *const conns[2])
{
	const char *name = util_is_rdma() ? "conn_parked" : "parked";
	const struct child_msg msg = {CHILD_ECHOES, 0};
	uint64_t until = util_now_ns() + ECHO_MS * 1000000ull;

	while (util_counter(name) == 0 && util_now_ns() < until) {
		for (unsigned i = 0; i < 2; i++)
			CU_ASSERT_EQUAL(cci_send(conns[i], &msg, sizeof(msg), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
		end_for_ms(&self, 5);
	}
	CU_ASSERT(util_counter(name) > 0);
}

/* CCI_TEST_PARKED: the connections to the others end its own. */
static void
unreliable_sends_without_a_connection_are_disconnected_too(void)
{
	cci_connection_t *conns[2];
	struct child more[2];

	open_both();
	for (unsigned i = 0; i < 2; i++) {
		child_open(&more[i], NULL);
		conns[i] = child_connect(&self, &more[i], CCI_CONN_ATTR_RO);
	}
	CU_ASSERT(echoed(1, ECHO_MS) || getenv("CCI_TEST_LOSS") != NULL);
	if (getenv("CCI_TEST_PARKED") != NULL)
		wait_until_it_is_parked(conns);
	kill_other();
	send_until_it_is_gone();
	for (unsigned i = 0; i < 2; i++)
		child_close(&more[i]);
	close_both();
}

const struct api_test cci_uu_tests[] = {
	T_NEEDS(unreliable_messages_are_datagrams_on_a_network, lacks_datagrams),
	T(unreliable_sends_to_a_killed_peer_end_well_or_are_disconnected),
	T(unreliable_sends_without_a_connection_are_disconnected_too),
	{NULL, NULL, NULL, NULL},
};
