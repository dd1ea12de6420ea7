/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_multicast.c - one sender, and a group of receivers that it does not know
 *
 * The parent forks the receivers, which join a group by its URI. When all have said so
 * the parent sends each message once, and every receiver gets it. Multicast may lose
 * messages: a receiver counts what it has missed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cci.h>

#define N_RECEIVERS 3
#define N_MESSAGES  10

static cci_endpoint_t *endpoint;

static void
check(int rc, const char *what)
{
	if (rc == CCI_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, cci_strerror(endpoint, rc));
	exit(EXIT_FAILURE);
}

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

/* Nobody has to accept: the connection stands when its event comes. */
static cci_connection_t *
join(const char *group, cci_conn_attribute_t attribute)
{
	cci_connection_t *connection;
	cci_event_t *event;
	uint32_t caps;

	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &endpoint, NULL), "cci_create_endpoint");
	check(cci_connect(endpoint, group, NULL, 0, attribute, NULL, 0, NULL), "cci_connect");
	event = next_event();
	check(event->connect.status, "joining");
	connection = event->connect.connection;
	check(cci_return_event(event), "cci_return_event");
	return connection;
}

static void
leave(cci_connection_t *connection)
{
	check(cci_disconnect(connection), "cci_disconnect");
	check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
	endpoint = NULL;
	check(cci_finalize(), "cci_finalize");
}

static int
receiver(const char *group, int number, int ready_fd)
{
	cci_connection_t *connection = join(group, CCI_CONN_ATTR_UU_MC_RX);
	int got = 0, last = -1;

	if (write(ready_fd, "r", 1) != 1)
		return 1;
	while (last < N_MESSAGES - 1) {
		cci_event_t *event = next_event();

		if (event->type == CCI_EVENT_RECV) {
			memcpy(&last, event->recv.ptr, sizeof(last));
			got++;
		}
		check(cci_return_event(event), "cci_return_event");
	}
	printf("receiver %d: %d of %d messages\n", number, got, N_MESSAGES);
	leave(connection);
	return 0;
}

static void
sender(const char *group)
{
	cci_connection_t *connection = join(group, CCI_CONN_ATTR_UU_MC_TX);

	for (int i = 0; i < N_MESSAGES; i++) {
		cci_event_t *event;

		check(cci_send(connection, &i, sizeof(i), NULL, 0), "cci_send");
		event = next_event(); /* it has left; who got it is not known */
		check(event->send.status, "a send");
		check(cci_return_event(event), "cci_return_event");
	}
	leave(connection);
}

int
main(void)
{
	int ready[2], status, failed = 0;
	char group[64], c;

	snprintf(group, sizeof(group), "shm://mc/example-%d", (int)getpid());
	if (pipe(ready) != 0)
		return EXIT_FAILURE;
	for (int i = 0; i < N_RECEIVERS; i++) {
		if (fork() == 0) /* before cci_init(): each process has its own */
			exit(receiver(group, i, ready[1]));
	}
	close(ready[1]);
	for (int i = 0; i < N_RECEIVERS; i++) {
		if (read(ready[0], &c, 1) != 1)
			return EXIT_FAILURE;
	}
	sender(group);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
