/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_assert.h - what cannot happen if our own code is right
 *
 * Never for input (wire bytes, peer memory, files, RPC text, API arguments):
 * that is checked, counted and refused. Compiled in by -Dasserts=true.
 */
#ifndef PLX_ASSERT_H
#define PLX_ASSERT_H

#include <assert.h>

#include <rte_debug.h>

#define PLX_LINE 64

#ifdef PLX_ASSERTS
#define PLX_ASSERT(exp) RTE_VERIFY(exp)
#else
#define PLX_ASSERT(exp) ((void)sizeof(!(exp)))
#endif

#endif
