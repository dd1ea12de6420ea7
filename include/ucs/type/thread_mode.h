/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * thread_mode.h - which threads may use an object
 */
#ifndef UCS_TYPE_THREAD_MODE_H
#define UCS_TYPE_THREAD_MODE_H

/** Asked for when a worker is made, answered by ucp_worker_query(). */
typedef enum {
	UCS_THREAD_MODE_SINGLE,     /* only the thread that made it */
	UCS_THREAD_MODE_SERIALIZED, /* any thread, but the caller lets in one at a time */
	UCS_THREAD_MODE_MULTI,      /* any number of threads at once */
	UCS_THREAD_MODE_LAST        /* their number */
} ucs_thread_mode_t;

/* The name of each mode, up to UCS_THREAD_MODE_LAST; in libucs. */
extern const char *ucs_thread_mode_names[];

#endif
