/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_child.c - another process to talk to, to stop and to kill
 *
 * The child is this program again, so that it starts with nothing of the parent's. It
 * writes its URI to a pipe, accepts every connection but those that ask for "no", and
 * does what messages tell it (enum child_does).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "cci_api_test.h"

#define CHILD_OUT 21

void
child_open(struct child *c, const char *service)
{
	size_t n = 0;
	int fd[2];

	memset(c, 0, sizeof(*c));
	if (pipe(fd) != 0)
		UTIL_DIE("pipe");
	c->pid = fork();
	if (c->pid == 0) {
		int out = fcntl(fd[1], F_DUPFD, 100);

		dup2(out, CHILD_OUT);
		unsetenv("PLX_RPC_SOCKET"); /* this process has it */
		if (service == NULL)
			service = "";
		if (getenv("CCI_TEST_CHILD_RUN") != NULL) /* on another host */
			util_exec_self_by("CCI_TEST_CHILD_RUN", "--child", service, NULL);
		util_exec_self("--child", service, NULL);
	}
	close(fd[1]);
	c->from = fd[0];
	do {
		if (n == sizeof(c->uri) || read(c->from, c->uri + n, 1) != 1)
			UTIL_DIE("the child did not start");
	} while (c->uri[n++] != '\0');
}

void
child_close(struct child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	close(c->from);
}

cci_event_t *
end_wait_from(struct end *e, struct end *from, cci_event_type_t type)
{
	uint64_t until = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull;
	cci_event_t *ev;

	do {
		if (from != NULL)
			util_end_poll(from);
		util_end_poll(e);
	} while ((ev = util_end_take(e, type)) == NULL && util_now_ns() < until);
	return ev;
}

cci_event_t *
end_wait(struct end *e, cci_event_type_t type)
{
	return end_wait_from(e, NULL, type);
}

int
end_sent(struct end *e)
{
	cci_event_t *ev = end_wait(e, CCI_EVENT_SEND);
	int status;

	if (ev == NULL)
		UTIL_DIE("a send did not end");
	status = ev->send.status;
	util_return(ev);
	return status;
}

void
end_for_ms(struct end *e, unsigned ms)
{
	uint64_t until = util_now_ns() + ms * 1000000ull;

	while (util_now_ns() < until)
		util_end_poll(e);
}

cci_connection_t *
child_connect(struct end *e, const struct child *c, cci_conn_attribute_t attribute)
{
	cci_connection_t *conn;
	cci_event_t *ev;

	UTIL_OK(cci_connect(e->ep, c->uri, NULL, 0, attribute, NULL, 0, NULL));
	ev = end_wait(e, CCI_EVENT_CONNECT);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
	conn = ev->connect.connection;
	util_return(ev);
	return conn;
}

static uint8_t *mem;
static cci_rma_handle_t *mem_handle;

/* @return whether the event is to be returned */
static bool
obey(cci_endpoint_t *ep, cci_event_t *ev)
{
	cci_connection_t *conn = ev->recv.connection;
	struct child_msg msg = {.arg = 0}, answer = {.arg = 0};

	memcpy(&msg, ev->recv.ptr, ev->recv.len < sizeof(msg) ? ev->recv.len : sizeof(msg));
	switch ((uint8_t)msg.does) {
	case CHILD_ECHOES:
		cci_send(conn, ev->recv.ptr, ev->recv.len, NULL, CCI_FLAG_SILENT);
		break;
	case CHILD_HOLDS:
		return false;
	case CHILD_HANGS_UP:
		UTIL_OK(cci_disconnect(conn));
		break;
	case CHILD_EXITS:
		_exit(0);
	case CHILD_SHOWS:
		util_fill(mem, CHILD_MEM, CHILD_SEED);
		if (mem_handle == NULL)
			UTIL_OK(cci_rma_register(ep, mem, CHILD_MEM, CCI_FLAG_READ | CCI_FLAG_WRITE,
				&mem_handle));
		cci_send(conn, mem_handle, sizeof(*mem_handle), NULL, CCI_FLAG_SILENT);
		break;
	case CHILD_CHECKS:
		answer.arg = util_check(mem, CHILD_MEM, msg.arg);
		cci_send(conn, &answer, sizeof(answer), NULL, CCI_FLAG_SILENT);
		break;
	default: /* the message that goes with an RMA */
		cci_send(conn, ev->recv.ptr, ev->recv.len, NULL, CCI_FLAG_SILENT);
		break;
	}
	return true;
}

static void
answer_request(cci_event_t *ev)
{
	if (ev->request.data_len == 2 && memcmp(ev->request.data_ptr, "no", 2) == 0)
		UTIL_OK(cci_reject(ev));
	else
		UTIL_OK(cci_accept(ev, NULL));
}

int
child_main(char **argv)
{
	cci_event_t *ev;
	struct end e;

	alarm(120);
	if (argv[0][0] == '-')
		return proc_scene(argv[0]);
	mem = malloc(CHILD_MEM);
	util_end_open(&e, argv[0][0] != '\0' ? argv[0] : NULL, false);
	if (mem == NULL || write(CHILD_OUT, e.uri, strlen(e.uri) + 1) < 0)
		UTIL_DIE("pipe");
	for (;;) {
		bool give_back = true;

		if (cci_get_event(e.ep, &ev) != CCI_SUCCESS)
			continue;
		if (ev->type == CCI_EVENT_RECV)
			give_back = obey(e.ep, ev);
		else if (ev->type == CCI_EVENT_CONNECT_REQUEST)
			answer_request(ev);
		if (give_back)
			util_return(ev);
	}
}
