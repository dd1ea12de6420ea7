/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_test.h - what the parts of ucp_api_test share
 */
#ifndef UCP_API_TEST_H
#define UCP_API_TEST_H

#include "api_run.h"
#include "child_pipe.h"
#include "ucp_util.h"

#define T_NOT_UCX(f, why) {#f, f, why, NULL}

extern const struct api_test api_base_tests[], api_req_tests[], api_tag_tests[], api_order_tests[],
	api_dt_tests[], api_rma_tests[], api_wakeup_tests[], api_cm_tests[], api_am_tests[],
	api_stream_tests[], api_callback_tests[], api_many_tests[], api_scarce_tests[],
	api_config_tests[], api_fork_tests[];

static const size_t sizes[] __attribute__((unused)) = {0, 1, 8, 47, 48, 49, 64, 100, 112, 113, 1 * KIB,
	4 * KIB, 8191, 8192, 8193, 16 * KIB, 32767, 32768, 32769, 64 * KIB, 100000, 1 * MIB, 4 * MIB + 3};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* One of each way to travel, for tests that do not need every length. */
static const size_t few_sizes[] __attribute__((unused)) = {0, 8, 1000, 20000, 100000, 1 * MIB};
#define N_FEW (sizeof(few_sizes) / sizeof(few_sizes[0]))

/** Send one message from a node to the other and receive it; both finished on return. */
void exchange(struct pair *p, int from, size_t len, ucp_tag_t tag, bool expected,
	enum util_how how);

/* Another process, which says hello with tag 1 and waits for one; ucp_api_child.c. */

/** Start one that makes an ep to w by address; its address is in addr. */
void child_open(struct child *c, ucp_worker_h w, const char *role);
/** Start one that connects to a port of this machine. */
void child_open_client(struct child *c, uint16_t port);
/** Exchange hellos over an ep to it. */
void child_hello(struct child *c, ucp_worker_h w, ucp_ep_h ep);
int child_main(char **argv);

/** @return whether no unexpected message waits at a node. */
bool nothing_waits(struct pair *p, int node);

#endif
