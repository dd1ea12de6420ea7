/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tc_cci.h - the objects of the CCI commands
 *
 * Design notes
 * - Turns take events and keep them in their order; "cci event" shows one at a time, so that a
 *   script sees each. A kept event has a name until it is returned.
 * - A connection has its name from the beginning, and its handle after its event.
 */
#ifndef TC_CCI_H
#define TC_CCI_H

#include <cci.h>

#include "testcomm.h"

#define TC_CCI_MAX_TEXT 4096

struct tc_cci_ep {
	char name[TC_MAX_NAME];
	cci_endpoint_t *ep;
	cci_event_t *queue[TC_MAX_LIST]; /* taken, and not yet shown */
	unsigned n_queue;
};

struct tc_cci_conn {
	char name[TC_MAX_NAME];
	struct tc_cci_ep *owner;
	cci_connection_t *conn; /* NULL until its event was taken */
};

struct tc_cci_event {
	char name[TC_MAX_NAME];
	struct tc_cci_ep *owner;
	cci_event_t *event;
	bool answered; /* of a connection request */
};

struct tc_cci_mem {
	char name[TC_MAX_NAME];
	struct tc_cci_ep *owner;
	cci_rma_handle_t *handle;
	uint8_t *buf;
	uint64_t size;
};

/* What "cci expect" compares with. */
struct tc_cci_last {
	int status;
	int type; /* of an event, or -1 */
	uint64_t value;
	char text[TC_CCI_MAX_TEXT];
};

struct tc_cci {
	struct tc_cci_ep *ep[TC_MAX_LIST];
	struct tc_cci_conn *conn[TC_MAX_LIST];
	struct tc_cci_event *event[TC_MAX_LIST];
	struct tc_cci_mem *mem[TC_MAX_LIST];
	unsigned next_event;
	struct tc_cci_last last;
};

extern struct tc_cci tc_cci;

/** Keep a status for expect, and print a failure. @return 0 or -1 */
int tc_cci_done(struct tc *tc, const char *what, int status);
/** The name of a status as scripts write it: without CCI_ or CCI_ERR_. */
const char *tc_cci_status(int status);

#endif
