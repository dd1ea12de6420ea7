/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mbuf_util.h - a program with an EAL of its own that tests plx_mbuf.h
 */
#ifndef MBUF_UTIL_H
#define MBUF_UTIL_H

#include <plx_mbuf.h>

#include <CUnit/Basic.h>

extern struct rte_mempool *pool, *kept; /* of mbufs; of plx_mbuf_kept_pool() */

/** Start the EAL, make both pools, run the tests and stop. @param room bytes of an mbuf @return the exit status */
int mbuf_run(const char *suite, CU_TestInfo *tests, unsigned n_mbufs, uint16_t room);

#endif
