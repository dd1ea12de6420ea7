/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_rma.c - a process writes into another's memory, says so, and reads it back
 *
 * The parent registers memory and sends its handle to the child by a message. The child
 * writes there; the message that goes with the write arrives when the data is there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cci.h>

#define LEN	(1u << 20)
#define TEXT_AT 4096 /* bytes from the beginning */
#define URI_MAX 200

static const char text[] = "written by the child";
static cci_endpoint_t *endpoint;

static void
check(int rc, const char *what)
{
	if (rc == CCI_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, cci_strerror(endpoint, rc));
	exit(EXIT_FAILURE);
}

static void
open_side(void)
{
	uint32_t caps;

	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &endpoint, NULL), "cci_create_endpoint");
}

static void
close_side(void)
{
	check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
	endpoint = NULL;
	check(cci_finalize(), "cci_finalize");
}

/* The next event of this type; others are of no interest here. */
static cci_event_t *
wait_for(cci_event_type_t type)
{
	cci_event_t *event;

	for (;;) {
		int rc = cci_get_event(endpoint, &event);

		if (rc == CCI_EAGAIN)
			continue;
		check(rc, "cci_get_event");
		if (event->type == type)
			return event;
		check(cci_return_event(event), "cci_return_event");
	}
}

static int
child(const char *uri)
{
	struct cci_rma_handle remote;
	cci_connection_t *connection;
	cci_rma_handle_t *local;
	cci_event_t *event;
	char *buf;

	open_side();
	buf = calloc(1, LEN);
	if (buf == NULL)
		return 1;
	check(cci_rma_register(endpoint, buf, LEN, 0, &local), "cci_rma_register");
	check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), "cci_connect");
	event = wait_for(CCI_EVENT_CONNECT);
	check(event->connect.status, "connecting");
	connection = event->connect.connection;
	check(cci_return_event(event), "cci_return_event");

	event = wait_for(CCI_EVENT_RECV); /* the parent's handle: 32 bytes */
	memcpy(&remote, event->recv.ptr, sizeof(remote));
	check(cci_return_event(event), "cci_return_event");

	/* Blocking, so there is no event; the parent gets the two bytes after the data. */
	memcpy(buf, text, sizeof(text));
	check(cci_rma(connection, "ok", 2, local, 0, &remote, TEXT_AT, LEN - TEXT_AT, NULL,
		CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), "write");
	memset(buf, 0, sizeof(text));
	check(cci_rma(connection, "bye", 3, local, 0, &remote, TEXT_AT, sizeof(text), NULL,
		CCI_FLAG_READ | CCI_FLAG_BLOCKING), "read");
	if (strcmp(buf, text) != 0)
		return 1;
	check(cci_rma_deregister(endpoint, local), "cci_rma_deregister");
	check(cci_disconnect(connection), "cci_disconnect");
	close_side();
	free(buf);
	return 0;
}

/* Take the child's connection, give it the handle, wait until it has written and read. */
static void
serve(char *buf, cci_rma_handle_t *handle)
{
	cci_event_t *event = wait_for(CCI_EVENT_CONNECT_REQUEST);

	check(cci_accept(event, NULL), "cci_accept");
	check(cci_return_event(event), "cci_return_event");
	event = wait_for(CCI_EVENT_ACCEPT);
	check(event->accept.status, "accepting");
	check(cci_send(event->accept.connection, handle, sizeof(*handle), NULL, CCI_FLAG_SILENT),
		"cci_send");
	check(cci_return_event(event), "cci_return_event");
	for (int i = 0; i < 2; i++) {
		event = wait_for(CCI_EVENT_RECV);
		printf("%.*s: at %d stands \"%s\"\n", (int)event->recv.len,
			(const char *)event->recv.ptr, TEXT_AT, buf + TEXT_AT);
		check(cci_return_event(event), "cci_return_event");
	}
}

static int
parent(int fd, pid_t pid)
{
	cci_rma_handle_t *handle;
	char *buf, *uri;
	int status;

	open_side();
	buf = calloc(1, LEN);
	if (buf == NULL)
		return 1;
	check(cci_rma_register(endpoint, buf, LEN, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle),
		"cci_rma_register");
	check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
	if (write(fd, uri, strlen(uri) + 1) < 0)
		return 1;
	free(uri);
	serve(buf, handle);
	waitpid(pid, &status, 0);
	check(cci_rma_deregister(endpoint, handle), "cci_rma_deregister");
	close_side();
	free(buf);
	return status == 0 ? 0 : 1;
}

int
main(void)
{
	char uri[URI_MAX];
	int fd[2];
	pid_t pid;

	if (pipe(fd) != 0)
		return 1;
	pid = fork(); /* before cci_init(): each process has its own */
	if (pid < 0)
		return 1;
	if (pid != 0)
		return parent(fd[1], pid);
	return read(fd[0], uri, sizeof(uri)) > 0 ? child(uri) : 1;
}
