/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_test.h - what the parts of cci_api_test share
 */
#ifndef CCI_API_TEST_H
#define CCI_API_TEST_H

#include "api_run.h"
#include "cci_util.h"

extern const struct api_test cci_init_tests[], cci_dev_tests[], cci_ep_tests[], cci_opt_tests[],
	cci_conn_tests[], cci_msg_tests[], cci_flow_tests[], cci_event_tests[], cci_rma_tests[],
	cci_guard_tests[], cci_mc_tests[], cci_uu_tests[], cci_proc_tests[], cci_many_tests[],
	cci_fork_tests[];

static const cci_conn_attribute_t reliable[] __attribute__((unused)) = {
	CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
static const cci_conn_attribute_t unicast[] __attribute__((unused)) = {
	CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};

/** What this system lacks, or NULL: names of services and of groups. */
const char *lacks_names(void);
/** Groups on this transport. */
const char *lacks_groups(void);
/** Datagrams on this transport. */
const char *lacks_datagrams(void);
/** A limit of memory. */
const char *lacks_limits(void);

/* A cookie to find again in an event. */
#define COOKIE(n) ((void *)(uintptr_t)(0x1000 + (n)))

/** Another process with an endpoint; it serves what is asked of it, cci_api_child.c. */
struct child {
	pid_t pid;
	int from; /* its URI comes here */
	char uri[UTIL_URI_MAX];
};

/** The command to a child in the first byte of a message. */
enum child_does {
	CHILD_ECHOES = 'e',   /* sends it back */
	CHILD_HOLDS = 'h',    /* keeps the event for ever */
	CHILD_HANGS_UP = 'd', /* disconnects */
	CHILD_EXITS = 'x',    /* without closing anything */
	CHILD_SHOWS = 'm',    /* sends the handle of its memory, filled by seed CHILD_SEED */
	CHILD_CHECKS = 'c',   /* says whether its memory is filled by the seed that follows */
};

#define CHILD_MEM  (8u * MIB)
#define CHILD_SEED 77u

/* A message that makes a child do something with a number. */
struct child_msg {
	uint64_t does;
	uint64_t arg;
};

/** Start one; service NULL: its URI is of its own choice. */
void child_open(struct child *c, const char *service);
/** Kill it, if it lives. */
void child_close(struct child *c);
int child_main(char **argv);

/** A child that plays a scene of its own, by name. @return exit status */
int proc_scene(const char *name);

/** Connect an end to a child. @return NULL after a failed assertion */
cci_connection_t *child_connect(struct end *e, const struct child *c,
	cci_conn_attribute_t attribute);
/** The next event of a type at one end alone; NULL when the deadline passes. */
cci_event_t *end_wait(struct end *e, cci_event_type_t type);
/** The same, with turns for another end, which what is waited for comes from. */
cci_event_t *end_wait_from(struct end *e, struct end *from, cci_event_type_t type);
/** Wait for the end of a send and return its status. */
int end_sent(struct end *e);
/** Run one end's turns for a while. */
void end_for_ms(struct end *e, unsigned ms);

#endif
