/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_uu.c - unreliable connections to another process, over a network with datagrams
 *
 * What an RDMA device did is asked from this process's control socket, PLX_RPC_SOCKET. CCI_TEST_LOSS
 * says that the network loses packets.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cci_api_test.h"

#define N	  60
#define ECHO_MS	  5000 /* of the slowest echo that is not lost */
#define LOST_MS	  100  /* after which one counts as lost, where some are */
#define GONE_MS	  15000

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

/* A counter of the endpoint's queue on an RDMA device. */
static uint64_t
counter(const char *name)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"device_get_list\"}\n";
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("PLX_RPC_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char answer[16384] = "", quoted[64];
	size_t len = 0;
	ssize_t n = 1;
	const char *at;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path != NULL ? path : "");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		write(fd, ask, sizeof(ask) - 1) != (ssize_t)(sizeof(ask) - 1))
		UTIL_DIE("PLX_RPC_SOCKET: %s", to.sun_path);
	while (n > 0 && strchr(answer, '\n') == NULL) {
		n = read(fd, answer + len, sizeof(answer) - 1 - len);
		len += n > 0 ? n : 0;
		answer[len] = '\0';
	}
	close(fd);
	snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	at = strstr(answer, quoted);
	if (at == NULL)
		UTIL_DIE("no %s in %s", name, answer);
	return strtoull(at + strlen(quoted), NULL, 10);
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
	const bool network = strcmp(util_transport(), "net_mlx") == 0;
	const bool loss = getenv("CCI_TEST_LOSS") != NULL;
	unsigned n = 0;

	open_both();
	for (uint64_t i = 0; i < N; i++)
		n += echoed(i, loss ? LOST_MS : ECHO_MS);
	CU_ASSERT(n > N / 3);
	CU_ASSERT_EQUAL(n < N, loss);
	if (network) {
		CU_ASSERT_EQUAL(counter("lossy_tx"), N);
		CU_ASSERT(counter("lossy_rx") >= n);
		CU_ASSERT_EQUAL(counter("lossy_rx") < N, loss);
		CU_ASSERT_EQUAL(counter("lossy_drop_bad") + counter("lossy_drop_not_ours"), 0);
	}
	longest_is_echoed();
	close_both();
}

/* Nobody says that it is gone; the device finds out, or not. */
static void
unreliable_sends_to_a_killed_peer_end_well_or_are_disconnected(void)
{
	bool back = false;
	uint64_t until;
	int rc;

	open_both();
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	other.pid = 0;
	until = util_now_ns() + GONE_MS * 1000000ull;
	do {
		rc = cci_send(self.conn, "hello?", 6, NULL, 0);
		if (rc == CCI_SUCCESS)
			rc = end_sent(&self);
		end_for_ms(&self, 1);
	} while (rc == CCI_SUCCESS && util_now_ns() < until);
	CU_ASSERT_EQUAL(rc, CCI_ERR_DISCONNECTED);
	CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
	close(other.from);
	child_open(&other, NULL);
	self.conn = child_connect(&self, &other, CCI_CONN_ATTR_UU);
	for (uint64_t i = 0; i < N && !back; i++)
		back = echoed(i, LOST_MS);
	CU_ASSERT(back);
	close_both();
}

const struct api_test cci_uu_tests[] = {
	T(unreliable_messages_are_datagrams_on_a_network),
	T(unreliable_sends_to_a_killed_peer_end_well_or_are_disconnected),
	{NULL, NULL, NULL},
};
