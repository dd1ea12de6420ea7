/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_server.c - takes connections and sends every message back
 *
 * usage: cci_server [MESSAGES]
 * Prints its URI, which cci_client wants. Ends after so many answers, when said.
 * It sleeps on the OS handle of its endpoint while there is nothing to do.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cci.h>

static cci_endpoint_t *endpoint;

static void
check(int rc, const char *what)
{
	if (rc == CCI_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, cci_strerror(endpoint, rc));
	exit(EXIT_FAILURE);
}

/* Sleep until the endpoint has something; a wake-up without an event is allowed. */
static void
wait_for_event(cci_os_handle_t fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc = cci_arm_os_handle(endpoint, 0);

	check(rc, "cci_arm_os_handle");
	poll(&p, 1, -1);
}

/* One event; 1 when an answer has left. The event is the library's again on return. */
static int
handle(cci_event_t *event)
{
	int answered = 0;

	switch (event->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		printf("asked for a connection: %.*s\n", (int)event->request.data_len,
			(const char *)event->request.data_ptr);
		check(cci_accept(event, NULL), "cci_accept");
		break;
	case CCI_EVENT_ACCEPT:
		/* The connection, if it came about, is in this event and in all of its messages. */
		if (event->accept.status != CCI_SUCCESS)
			fprintf(stderr, "a client left: %s\n",
				cci_strerror(endpoint, event->accept.status));
		break;
	case CCI_EVENT_RECV:
		printf("received %u bytes: %.*s\n", event->recv.len, (int)event->recv.len,
			(const char *)event->recv.ptr);
		check(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, 0),
			"cci_send");
		break;
	case CCI_EVENT_SEND:
		answered = 1;
		if (event->send.status != CCI_SUCCESS)
			fprintf(stderr, "an answer was lost: %s\n",
				cci_strerror(endpoint, event->send.status));
		break;
	default:
		printf("%s\n", cci_event_type_str(event->type));
		break;
	}
	check(cci_return_event(event), "cci_return_event");
	return answered;
}

int
main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : -1;
	cci_os_handle_t fd;
	cci_event_t *event;
	uint32_t caps;
	char *uri;
	int rc;

	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &endpoint, &fd), "cci_create_endpoint");
	check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
	printf("Opened %s\n", uri);
	fflush(stdout);
	free(uri);
	while (left != 0) {
		rc = cci_get_event(endpoint, &event);
		if (rc == CCI_EAGAIN) {
			wait_for_event(fd);
			continue;
		}
		check(rc, "cci_get_event");
		if (handle(event) && left > 0)
			left--;
		fflush(stdout);
	}
	check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
	endpoint = NULL;
	check(cci_finalize(), "cci_finalize");
	return EXIT_SUCCESS;
}
