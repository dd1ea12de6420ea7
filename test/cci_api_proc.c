/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_proc.c - another process: blocking calls, one that stops, one that dies
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cci_api_test.h"

static struct child other;
static struct end self;

static void
open_both(cci_conn_attribute_t attribute)
{
	child_open(&other, NULL);
	util_end_open(&self, NULL, false);
	self.conn = child_connect(&self, &other, attribute);
}

/* On return it has stopped, with all of its threads. */
static void
stop_other(void)
{
	kill(other.pid, SIGSTOP);
	waitpid(other.pid, NULL, WUNTRACED);
}

static void
close_both(void)
{
	util_end_close(&self);
	child_close(&other);
}

/* Send an order and wait for what comes back. */
static cci_event_t *
ask(enum child_does does, uint64_t arg)
{
	const struct child_msg msg = {does, arg};
	cci_event_t *ev;

	CU_ASSERT_EQUAL(cci_send(self.conn, &msg, sizeof(msg), NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
	ev = end_wait(&self, CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	return ev;
}

static void
remote_handle(struct cci_rma_handle *h)
{
	cci_event_t *ev = ask(CHILD_SHOWS, 0);

	CU_ASSERT_EQUAL_FATAL(ev->recv.len, sizeof(*h));
	memcpy(h, ev->recv.ptr, sizeof(*h));
	util_return(ev);
}

static void
processes_exchange_messages(void)
{
	static uint8_t buf[65536];

	for (size_t a = 0; a < 3; a++) {
		open_both(unicast[a]);
		for (uint32_t i = 0; i < 500; i++) {
			uint32_t len = 16 + (uint32_t)(rnd() % (self.conn->max_send_size - 15));
			cci_event_t *ev;

			util_fill(buf, len, i);
			buf[0] = CHILD_ECHOES;
			CU_ASSERT_EQUAL(cci_send(self.conn, buf, len, NULL, 0), CCI_SUCCESS);
			ev = end_wait(&self, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL(ev->recv.len, len);
			CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, buf, len), 0);
			util_return(ev);
			CU_ASSERT_EQUAL(end_sent(&self), CCI_SUCCESS);
		}
		close_both();
	}
}

static void
a_blocking_send_returns_when_it_is_over(void)
{
	static const int flags[] = {CCI_FLAG_BLOCKING, CCI_FLAG_BLOCKING | CCI_FLAG_SILENT,
		CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY};
	struct child_msg msg = {CHILD_ECHOES, 0};
	const struct iovec v = {&msg, sizeof(msg)};
	cci_event_t *ev;
	int rc;

	for (size_t a = 0; a < 3; a++) {
		open_both(unicast[a]);
		for (int i = 0; i < 100; i++) {
			msg.arg = (uint64_t)i;
			if (i % 2 == 0)
				rc = cci_send(self.conn, &msg, sizeof(msg), COOKIE(i), flags[i % 3]);
			else
				rc = cci_sendv(self.conn, &v, 1, COOKIE(i), flags[i % 3]);
			CU_ASSERT_EQUAL(rc, CCI_SUCCESS);
			ev = end_wait(&self, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			util_return(ev);
		}
		end_for_ms(&self, 5);
		CU_ASSERT_EQUAL(self.n_kept, 0);
		close_both();
	}
}

static void
blocking_rma_returns_when_it_is_over(void)
{
	struct cci_rma_handle remote;
	cci_rma_handle_t *local;
	uint8_t *mem = malloc(CHILD_MEM);
	cci_event_t *ev;

	for (size_t a = 0; a < 2; a++) {
		open_both(reliable[a]);
		remote_handle(&remote);
		UTIL_OK(cci_rma_register(self.ep, mem, CHILD_MEM, 0, &local));
		memset(mem, 0, CHILD_MEM);
		CU_ASSERT_EQUAL(cci_rma(self.conn, NULL, 0, local, 0, &remote, 0, CHILD_MEM, NULL,
			CCI_FLAG_READ | CCI_FLAG_BLOCKING), CCI_SUCCESS);
		CU_ASSERT(util_check(mem, CHILD_MEM, CHILD_SEED));
		util_fill(mem, CHILD_MEM, 5);
		CU_ASSERT_EQUAL(cci_rma(self.conn, "rma", 3, local, 0, &remote, 0, CHILD_MEM, NULL,
			CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), CCI_SUCCESS);
		ev = end_wait(&self, CCI_EVENT_RECV); /* the child sends the message back */
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, "rma", 3), 0);
		util_return(ev);
		ev = ask(CHILD_CHECKS, 5);
		CU_ASSERT_EQUAL(((const struct child_msg *)ev->recv.ptr)->arg, 1);
		util_return(ev);
		/* what the other side refuses is the answer, too */
		CU_ASSERT_EQUAL(cci_rma(self.conn, NULL, 0, local, 0, &remote, 1, CHILD_MEM, NULL,
			CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), CCI_ERR_RMA_HANDLE);
		end_for_ms(&self, 5);
		CU_ASSERT_EQUAL(self.n_kept, 0);
		close_both();
	}
	free(mem);
}

static void
other_process_refuses(void)
{
	cci_event_t *ev;

	child_open(&other, NULL);
	util_end_open(&self, NULL, false);
	CU_ASSERT_EQUAL(cci_connect(self.ep, other.uri, "no", 2, CCI_CONN_ATTR_RU, NULL, 0, NULL),
		CCI_SUCCESS);
	ev = end_wait(&self, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_ECONNREFUSED);
	util_return(ev);
	close_both();
}

static void
a_stopped_peer_is_not_heard_of(void)
{
	uint32_t timeout_us = 200000;
	struct cci_rma_handle remote;
	cci_rma_handle_t *local;
	uint64_t start;
	void *context;

	open_both(CCI_CONN_ATTR_RO);
	remote_handle(&remote);
	UTIL_OK(cci_rma_register(self.ep, &start, sizeof(start), 0, &local));
	UTIL_OK(cci_set_opt(self.conn, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us));
	stop_other();
	start = util_now_ns();
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(cci_send(self.conn, "anyone?", 7, COOKIE(i), 0), CCI_SUCCESS);
	for (int i = 3; i < 6; i++) /* under way at once, and over with the others, after them */
		CU_ASSERT_EQUAL(cci_rma(self.conn, NULL, 0, local, 0, &remote, 0, 8, COOKIE(i), CCI_FLAG_WRITE),
			CCI_SUCCESS);
	for (int i = 0; i < 6; i++) {
		cci_event_t *ev = end_wait(&self, CCI_EVENT_SEND);

		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL(ev->send.status, CCI_ETIMEDOUT);
		context = ev->send.context;
		CU_ASSERT_PTR_EQUAL(context, COOKIE(i));
		util_return(ev);
	}
	CU_ASSERT(util_now_ns() - start >= 200000000);
	CU_ASSERT(util_now_ns() - start < 5000000000);
	CU_ASSERT_EQUAL(cci_send(self.conn, "blocked", 7, NULL, CCI_FLAG_BLOCKING), CCI_ETIMEDOUT);
	close_both();
}

static void
a_connection_to_a_stopped_process_times_out(void)
{
	const struct timeval soon = {.tv_usec = 100000};
	cci_event_t *ev;

	child_open(&other, NULL);
	util_end_open(&self, NULL, false);
	stop_other();
	CU_ASSERT_EQUAL(cci_connect(self.ep, other.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon),
		CCI_SUCCESS);
	ev = end_wait(&self, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->connect.status, CCI_ETIMEDOUT);
	util_return(ev);
	close_both();
}

/* All that was under way ends, once, and nothing raises a signal or hangs. */
static void
sends_to_a_killed_peer_are_disconnected(void)
{
	cci_event_t *ev;
	int n = 0, rc;

	for (size_t a = 0; a < 2; a++) {
		open_both(reliable[a]);
		stop_other();
		for (n = 0; n < 20; n++)
			CU_ASSERT_EQUAL(cci_send(self.conn, "last words", 10, COOKIE(n), 0), CCI_SUCCESS);
		kill(other.pid, SIGKILL);
		waitpid(other.pid, NULL, 0);
		other.pid = 0;
		for (int i = 0; i < 20; i++) {
			ev = end_wait(&self, CCI_EVENT_SEND);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL(ev->send.status, CCI_ERR_DISCONNECTED);
			util_return(ev);
		}
		rc = cci_send(self.conn, "hello?", 6, NULL, 0);
		if (rc == CCI_SUCCESS)
			rc = end_sent(&self);
		CU_ASSERT_EQUAL(rc, CCI_ERR_DISCONNECTED);
		CU_ASSERT_EQUAL(cci_send(self.conn, "hello?", 6, NULL, CCI_FLAG_BLOCKING),
			CCI_ERR_DISCONNECTED);
		CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
		close_both();
	}
}

static void
rma_with_a_killed_peer_is_disconnected(void)
{
	struct cci_rma_handle remote;
	uint8_t *mem = calloc(1, CHILD_MEM);
	cci_rma_handle_t *local;
	int rc;

	open_both(CCI_CONN_ATTR_RO);
	remote_handle(&remote);
	UTIL_OK(cci_rma_register(self.ep, mem, CHILD_MEM, 0, &local));
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	other.pid = 0;
	rc = cci_rma(self.conn, "gone", 4, local, 0, &remote, 0, CHILD_MEM, NULL, CCI_FLAG_WRITE);
	if (rc == CCI_SUCCESS)
		rc = end_sent(&self);
	CU_ASSERT_EQUAL(rc, CCI_ERR_DISCONNECTED);
	close_both();
	free(mem);
}

static void
a_peer_that_hangs_up_is_disconnected(void)
{
	const uint64_t end = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	const struct child_msg msg = {CHILD_HANGS_UP, 0};
	int rc = CCI_SUCCESS;

	open_both(CCI_CONN_ATTR_RO);
	CU_ASSERT_EQUAL(cci_send(self.conn, &msg, sizeof(msg), NULL, 0), CCI_SUCCESS);
	CU_ASSERT_EQUAL(end_sent(&self), CCI_SUCCESS);
	while (rc == CCI_SUCCESS && util_now_ns() < end) { /* it may be slow to do so */
		rc = cci_send(self.conn, "still there?", 12, NULL, 0);
		if (rc == CCI_SUCCESS)
			rc = end_sent(&self);
	}
	CU_ASSERT_EQUAL(rc, CCI_ERR_DISCONNECTED);
	close_both();
}

/* The message is over although its receiver ends as soon as it has it. */
static void
the_last_message_to_a_peer_that_exits_is_over(void)
{
	const struct child_msg msg = {CHILD_EXITS, 0};
	cci_event_t *ev;

	open_both(CCI_CONN_ATTR_RU);
	CU_ASSERT_EQUAL(cci_send(self.conn, &msg, sizeof(msg), NULL, 0), CCI_SUCCESS);
	ev = end_wait(&self, CCI_EVENT_SEND);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT(ev->send.status == CCI_SUCCESS || ev->send.status == CCI_ERR_DISCONNECTED);
	util_return(ev);
	close_both();
}

/* With the same service, at once, whatever the dead one left. */
static void
a_killed_server_can_be_started_again(void)
{
	char uri[UTIL_URI_MAX];

	util_end_open(&self, NULL, false);
	for (int i = 0; i < 3; i++) {
		cci_event_t *ev;

		child_open(&other, "killed-server");
		if (i > 0)
			CU_ASSERT_STRING_EQUAL(uri, other.uri);
		strcpy(uri, other.uri);
		self.conn = child_connect(&self, &other, CCI_CONN_ATTR_RO);
		ev = ask(CHILD_ECHOES, 1);
		util_return(ev);
		child_close(&other);
		CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
	}
	util_end_close(&self);
}

/*
 * For several periods, and it is not reported. Where other work keeps the peer from running for all of a
 * period, that is reported as it should be: then by longer ones, up to some that no work takes up.
 */
static uint32_t
period_of_a_living_peer(void)
{
	uint32_t period_us = 25000;
	cci_event_t *ev;

	do {
		period_us *= 2;
		while ((ev = util_end_take(&self, CCI_EVENT_KEEPALIVE_TIMEDOUT)) != NULL)
			util_return(ev);
		UTIL_OK(cci_set_opt(self.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period_us));
		end_for_ms(&self, 6 * period_us / 1000);
	} while (self.n_kept > 0 && period_us < 2000000);
	return period_us;
}

static void
keepalive_tells_of_a_silent_peer_once(void)
{
	uint32_t period_us, v = 1;
	cci_event_t *ev;

	open_both(CCI_CONN_ATTR_RO);
	period_us = period_of_a_living_peer();
	CU_ASSERT_EQUAL(self.n_kept, 0); /* it lives, and answers without its program's help */
	stop_other();
	for (int i = 0; i < 2; i++) {
		ev = end_wait(&self, CCI_EVENT_KEEPALIVE_TIMEDOUT);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_PTR_EQUAL(ev->keepalive.connection, self.conn);
		util_return(ev);
		CU_ASSERT_EQUAL(cci_get_opt(self.conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &v), CCI_SUCCESS);
		CU_ASSERT_EQUAL(v, 0);
		end_for_ms(&self, 4 * period_us / 1000);
		CU_ASSERT_EQUAL(self.n_kept, 0);
		/* armed again, it tells again; once by either option */
		if (i == 0)
			UTIL_OK(cci_set_opt(self.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &period_us));
	}
	/* the connection is as it was */
	kill(other.pid, SIGCONT);
	ev = ask(CHILD_ECHOES, 9);
	util_return(ev);
	close_both();
}

static void
keepalive_tells_of_a_killed_peer(void)
{
	uint32_t period_us = 50000;
	cci_event_t *ev;

	open_both(CCI_CONN_ATTR_RU);
	UTIL_OK(cci_set_opt(self.ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &period_us));
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	other.pid = 0;
	ev = end_wait(&self, CCI_EVENT_KEEPALIVE_TIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_PTR_EQUAL(ev->keepalive.connection, self.conn);
	util_return(ev);
	CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
	close_both();
}

/* Its events are held, and it is killed with them. */
static void
a_peer_killed_while_it_holds_messages_leaves_no_trace(void)
{
	const struct child_msg hold = {CHILD_HOLDS, 0};

	open_both(CCI_CONN_ATTR_RO);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_EQUAL(cci_send(self.conn, &hold, sizeof(hold), NULL, 0), CCI_SUCCESS);
		CU_ASSERT_EQUAL(end_sent(&self), CCI_SUCCESS);
	}
	child_close(&other);
	child_open(&other, NULL);
	CU_ASSERT_EQUAL(cci_disconnect(self.conn), CCI_SUCCESS);
	self.conn = child_connect(&self, &other, CCI_CONN_ATTR_RO);
	util_return(ask(CHILD_ECHOES, 2));
	close_both();
}

/* Ask this process's control socket for it. */
static void
fail_device(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char ask[200], answer[200] = "";

	snprintf(ask, sizeof(ask), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"device_fail\","
		"\"params\":{\"name\":\"%s\"}}\n", util_transport());
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		write(fd, ask, strlen(ask)) != (ssize_t)strlen(ask) ||
		read(fd, answer, sizeof(answer) - 1) <= 0 || strstr(answer, "true") == NULL)
		UTIL_DIE("%s: %s", path, answer);
	close(fd);
}

#define SO(cond) \
	do { \
		if (!(cond)) \
			UTIL_DIE("not so: %s", #cond); \
	} while (0)

/* The event first, then the end of what was under way; nothing goes after it. */
static int
scene_device_fails(void)
{
	cci_device_t *const *devices;
	cci_endpoint_t *another;
	uint32_t one = 1;
	cci_event_t *ev;
	struct pair p;

	util_pair_open(&p);
	UTIL_OK(cci_set_opt(p.e[1].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &one));
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	for (int i = 0; i < 3; i++) /* the first is taken, the others wait */
		UTIL_OK(cci_send(p.e[0].conn, "x", 1, COOKIE(i), 0));
	SO(util_pair_sent(&p, 0, NULL) == CCI_SUCCESS);
	fail_device(getenv("PLX_RPC_SOCKET"));
	for (int i = 0; i < 2; i++) {
		ev = util_pair_wait(&p, i, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
		SO(ev != NULL && ev->dev_failed.endpoint == p.e[i].ep);
		util_return(ev);
	}
	SO(util_pair_sent(&p, 0, NULL) == CCI_ERR_DEVICE_DEAD);
	SO(util_pair_sent(&p, 0, NULL) == CCI_ERR_DEVICE_DEAD);
	SO(cci_send(p.e[0].conn, "x", 1, NULL, 0) == CCI_ERR_DEVICE_DEAD);
	SO(cci_connect(p.e[0].ep, p.e[1].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_ENETDOWN);
	SO(cci_get_devices(&devices) == CCI_SUCCESS && devices[0]->up == 0);
	SO(cci_create_endpoint(NULL, 0, &another, NULL) == CCI_ENODEV);
	UTIL_FOR_MS(&p, 20);
	SO(util_end_count(&p.e[0], CCI_EVENT_ENDPOINT_DEVICE_FAILED) == 0);
	util_return(util_end_take(&p.e[1], CCI_EVENT_RECV));
	util_pair_close(&p);
	return 0;
}

static int
scene_no_driver(void)
{
	uint32_t caps;

	SO(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_ERR_NOT_FOUND);
	SO(cci_finalize() == CCI_ERROR);
	return 0;
}

/* What there is goes on when no more can be had. */
static int
scene_no_memory(void)
{
	const struct rlimit none = {0, 0};
	cci_endpoint_t *ep = NULL;
	struct pair p;
	int rc = CCI_SUCCESS;

	util_pair_open_with(&p, CCI_CONN_ATTR_RO);
	SO(setrlimit(RLIMIT_AS, &none) == 0);
	for (int i = 0; i < 1000 && rc == CCI_SUCCESS; i++)
		rc = cci_create_endpoint(NULL, 0, &ep, NULL);
	SO(rc == CCI_ENOMEM);
	UTIL_OK(cci_send(p.e[0].conn, "x", 1, NULL, 0));
	SO(util_pair_sent(&p, 0, NULL) == CCI_SUCCESS);
	_exit(0);
}

int
proc_scene(const char *name)
{
	if (strcmp(name, "--device-fails") == 0)
		return scene_device_fails();
	return strcmp(name, "--no-driver") == 0 ? scene_no_driver() : scene_no_memory();
}

/* In a process of its own, with a variable set from its start. */
static void
play(const char *scene, const char *variable, const char *value)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		setenv(variable, value, 1);
		util_exec_self("--child", scene, NULL);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static void
a_failed_device_is_told_of_once(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/cci_api_test.%d.sock", (int)getpid());
	play("--device-fails", "PLX_RPC_SOCKET", path);
	unlink(path);
}

/* A network namespace is to shared memory what another machine is, without a folder that both know. */
static void
an_address_from_elsewhere_is_not_available(void)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	CU_ASSERT_FATAL(here >= 0);
	if (unshare(CLONE_NEWNET) != 0) {
		printf("skipped: no right to a network namespace ... ");
		close(here);
		return;
	}
	child_open(&other, NULL); /* in the new namespace */
	CU_ASSERT_EQUAL_FATAL(setns(here, CLONE_NEWNET), 0);
	close(here);
	util_end_open(&self, NULL, false);
	CU_ASSERT_EQUAL(cci_connect(self.ep, other.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL),
		CCI_EADDRNOTAVAIL);
	close_both();
}

static void
without_a_driver_nothing_is_found(void)
{
	play("--no-driver", "PLX_WORKER_DEVICES", "none");
}

static __attribute__((unused)) void
without_memory_no_endpoint_is_made(void)
{
	play("--no-memory", "PLX_SHM_HUGE", "no");
}

const struct api_test cci_proc_tests[] = {
	T(processes_exchange_messages),
	T(a_blocking_send_returns_when_it_is_over),
	T(blocking_rma_returns_when_it_is_over),
	T(other_process_refuses),
	T(a_stopped_peer_is_not_heard_of),
	T(a_connection_to_a_stopped_process_times_out),
	T(sends_to_a_killed_peer_are_disconnected),
	T(rma_with_a_killed_peer_is_disconnected),
	T(a_peer_that_hangs_up_is_disconnected),
	T(the_last_message_to_a_peer_that_exits_is_over),
	T_NEEDS(a_killed_server_can_be_started_again, lacks_names),
	T(a_failed_device_is_told_of_once),
	T(an_address_from_elsewhere_is_not_available),
	T(without_a_driver_nothing_is_found),
#if !defined(__SANITIZE_ADDRESS__) /* which needs memory of its own */
	T_NEEDS(without_memory_no_endpoint_is_made, lacks_limits),
#endif
	T(keepalive_tells_of_a_silent_peer_once),
	T(keepalive_tells_of_a_killed_peer),
	T(a_peer_killed_while_it_holds_messages_leaves_no_trace),
	{NULL, NULL, NULL, NULL},
};
