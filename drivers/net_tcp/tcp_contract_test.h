/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_contract_test.h - between the files of the TCP driver's tests
 */
#ifndef TCP_CONTRACT_TEST_H
#define TCP_CONTRACT_TEST_H

#include "plx_unit_dev.h"

/* What only this driver has, up to a NULL name. */
extern CU_TestInfo tcp_far_tests[];  /* memory by keys */
extern CU_TestInfo tcp_flow_tests[]; /* further connections for long data */
extern CU_TestInfo tcp_park_tests[]; /* connections that are closed while they are idle */
extern CU_TestInfo tcp_udp_tests[];  /* datagrams */
extern CU_TestInfo tcp_idle_tests[]; /* many idle connections */

/** All queues take turns until a peer is dead. */
void tcp_wait_dead(const struct plx_peer *peer);

#endif
