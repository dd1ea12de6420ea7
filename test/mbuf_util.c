/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mbuf_util.c - see mbuf_util.h
 */
#include <stdlib.h>

#include <rte_eal.h>

#include "mbuf_util.h"

struct rte_mempool *pool, *kept;

int
mbuf_run(const char *suite, CU_TestInfo *tests, unsigned n_mbufs, uint16_t room)
{
	char *args[] = {(char *)(uintptr_t)suite, (char *)"--no-huge", (char *)"--no-shconf", (char *)"--no-pci",
		(char *)"--no-telemetry", (char *)"-m", (char *)"64", (char *)"--log-level=*:3", (char *)"--lcores",
		(char *)"0@0", NULL};
	CU_SuiteInfo suites[] = {{suite, NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

	if (rte_eal_init((int)(sizeof(args) / sizeof(args[0])) - 1, args) < 0)
		return EXIT_FAILURE;
	pool = rte_pktmbuf_pool_create("mbufs", n_mbufs, 0, 0, (uint16_t)(room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
	kept = plx_mbuf_kept_pool("kept", 15);
	if (pool == NULL || kept == NULL || CU_initialize_registry() != CUE_SUCCESS ||
		CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	return CU_get_number_of_failures() == 0 && rte_eal_cleanup() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
