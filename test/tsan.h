/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tsan.h - included before everything else where the thread sanitizer looks on
 *
 * An RTS ring publishes eight bytes, and its consumer reads four of them: the
 * sanitizer sees no order between the two. The plain ring has it.
 */
#ifndef TSAN_H
#define TSAN_H

#if defined(__has_include) && __has_include(<rte_ring.h>)
#include <rte_ring.h>
#undef RING_F_MP_RTS_ENQ
#define RING_F_MP_RTS_ENQ 0
#endif

#endif
