/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_client.c - connects to cci_server, sends it messages, prints what comes back
 *
 * usage: cci_client URI [MESSAGES [ro|ru|uu]]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

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

/* The next event, whatever it is. */
static cci_event_t *
next_event(void)
{
	cci_event_t *event;
	int rc;

	while ((rc = cci_get_event(endpoint, &event)) == CCI_EAGAIN)
		;
	check(rc, "cci_get_event");
	return event;
}

static cci_connection_t *
connect_to(const char *uri, cci_conn_attribute_t attribute)
{
	const struct timeval timeout = {.tv_sec = 10};
	static const char hello[] = "let me in";
	cci_connection_t *connection;
	cci_event_t *event;

	check(cci_connect(endpoint, uri, hello, sizeof(hello) - 1, attribute, NULL, 0, &timeout),
		"cci_connect");
	event = next_event(); /* there is nothing else that could come */
	check(event->connect.status, "connecting");
	connection = event->connect.connection;
	check(cci_return_event(event), "cci_return_event");
	return connection;
}

/* Send a text and wait for two events, in either order: it is sent, and its echo is here. */
static void
talk(cci_connection_t *connection, int number)
{
	char text[64];
	int missing = 2;
	int len = snprintf(text, sizeof(text), "hello number %d", number);

	check(cci_send(connection, text, (uint32_t)len, (void *)(intptr_t)number, 0), "cci_send");
	while (missing > 0) {
		cci_event_t *event = next_event();

		if (event->type == CCI_EVENT_SEND) {
			check(event->send.status, "a send");
			printf("message %d is sent\n", (int)(intptr_t)event->send.context);
			missing--;
		} else if (event->type == CCI_EVENT_RECV) {
			printf("received: %.*s\n", (int)event->recv.len,
				(const char *)event->recv.ptr);
			missing--;
		}
		check(cci_return_event(event), "cci_return_event");
	}
}

int
main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 10;
	cci_conn_attribute_t attribute = CCI_CONN_ATTR_RO;
	uint32_t caps, timeout_us = 30 * 1000000;
	cci_connection_t *connection;

	if (argc < 2) {
		fprintf(stderr, "usage: %s URI [MESSAGES [ro|ru|uu]]\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (argc > 3 && strcmp(argv[3], "ro") != 0)
		attribute = strcmp(argv[3], "ru") == 0 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_UU;
	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &endpoint, NULL), "cci_create_endpoint");
	check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us), "cci_set_opt");
	connection = connect_to(argv[1], attribute);
	printf("connected, messages up to %u bytes\n", connection->max_send_size);
	for (int i = 0; i < n; i++)
		talk(connection, i);
	check(cci_disconnect(connection), "cci_disconnect");
	check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
	endpoint = NULL;
	check(cci_finalize(), "cci_finalize");
	return EXIT_SUCCESS;
}
