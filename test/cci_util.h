/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_util.h - what test programs of CCI share: endpoints that keep their events,
 * pairs of them with a connection, other processes
 *
 * Design notes
 * - Only the public API is used. Events are taken in the order they come and kept
 *   until a test asks for one of a type, so tests name what they wait for and see
 *   what they did not expect.
 * - Nothing is waited for without a deadline.
 */
#ifndef CCI_UTIL_H
#define CCI_UTIL_H

#include <sys/types.h>

#include <cci.h>

#include "test_util.h"

#define UTIL_MAX_KEPT 32768
#define UTIL_URI_MAX  200

#define UTIL_OK(call) \
	do { \
		int rc_ = (call); \
		if (rc_ != CCI_SUCCESS) \
			UTIL_DIE("%s: %s", #call, cci_strerror(NULL, rc_)); \
	} while (0)

/* An endpoint and what came to it. */
struct end {
	cci_endpoint_t *ep;
	cci_os_handle_t fd;
	char uri[UTIL_URI_MAX];
	cci_connection_t *conn; /* to the other end of the pair */
	cci_event_t **kept;
	unsigned n_kept;
	int last; /* answer of the last cci_get_event() */
};

struct pair {
	struct end e[2];
};

/** The transport of the first device: of shared memory, unless PLX_WORKER_DEVICES names one. */
const char *util_transport(void);
bool util_is_rdma(void);
/** A counter of this process's only queue, as its control socket, PLX_RPC_SOCKET, tells. */
uint64_t util_counter(const char *name);
/** Start the library and make an endpoint. service may be NULL; with_fd: with an OS handle. */
void util_end_open(struct end *e, const char *service, bool with_fd);
/** The same on a device, by its place in the list; -1: the default one. */
void util_end_open_on(struct end *e, int at, const char *service, bool with_fd);
/** Destroy it, with what it has kept, and end the library. */
void util_end_close(struct end *e);
/** Take all events that are there. @return how many */
unsigned util_end_poll(struct end *e);
/** @return the oldest kept event of a type, which is the caller's, or NULL */
cci_event_t *util_end_take(struct end *e, cci_event_type_t type);
/** @return how many events of a type are kept */
unsigned util_end_count(const struct end *e, cci_event_type_t type);
/** Return an event; ends the program if that is refused. */
void util_return(cci_event_t *ev);

/** Two endpoints; connected, when that is asked for, from the first to the second. */
void util_pair_open(struct pair *p);
void util_pair_open_with(struct pair *p, cci_conn_attribute_t attribute);
void util_pair_close(struct pair *p);
void util_pair_turn(struct pair *p);
/** One more connection from e[0] to e[1]; each side's is set. */
void util_pair_connect(struct pair *p, cci_conn_attribute_t attribute, cci_connection_t **conn0,
	cci_connection_t **conn1);

/** The next event of a type at an end of a pair, or NULL when the deadline passes. */
cci_event_t *util_pair_wait(struct pair *p, int i, cci_event_type_t type);
/** Wait for the end of a send. @return its status; *context may be NULL */
int util_pair_sent(struct pair *p, int i, void **context);

#endif
