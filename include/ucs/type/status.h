/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * status.h - status codes, and pointers that carry one
 *
 * Design notes
 * - ucs_status_t is one byte: callers read one byte of a return value and of a
 *   callback argument, and ucp_request_attr_t.status is one byte. The attribute
 *   is part of the ABI.
 * - A request pointer is neither 0, nor 1 (UCS_INPROGRESS), nor among the last
 *   100 addresses; those are status codes.
 */
#ifndef UCS_TYPES_STATUS_H_
#define UCS_TYPES_STATUS_H_

#include <stdint.h>

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** Outcome of a call or of an operation: 0, or 1 for not yet, or negative. */
typedef enum {
	UCS_OK = 0,         /* done, without error */
	UCS_INPROGRESS = 1, /* started; the end is reported later */

	UCS_ERR_NO_MESSAGE = -1,            /* nothing has arrived */
	UCS_ERR_NO_RESOURCE = -2,           /* cannot start now; nothing was changed */
	UCS_ERR_IO_ERROR = -3,              /* a device, file or peer failed */
	UCS_ERR_NO_MEMORY = -4,             /* no memory */
	UCS_ERR_INVALID_PARAM = -5,         /* an argument is out of its range */
	UCS_ERR_UNREACHABLE = -6,           /* no device leads to the peer */
	UCS_ERR_INVALID_ADDR = -7,          /* not an address, or outside the region */
	UCS_ERR_NOT_IMPLEMENTED = -8,       /* no code for this */
	UCS_ERR_MESSAGE_TRUNCATED = -9,     /* the message was longer than the buffer */
	UCS_ERR_NO_PROGRESS = -10,          /* nothing moved */
	UCS_ERR_BUFFER_TOO_SMALL = -11,     /* the caller's buffer is too short */
	UCS_ERR_NO_ELEM = -12,              /* no object of that name */
	UCS_ERR_SOME_CONNECTS_FAILED = -13, /* some of several connections failed */
	UCS_ERR_NO_DEVICE = -14,            /* no such device */
	UCS_ERR_BUSY = -15,                 /* in use, or events are still waiting */
	UCS_ERR_CANCELED = -16,             /* canceled by the user, or by closing the ep */
	UCS_ERR_SHMEM_SEGMENT = -17,        /* a shared-memory segment could not be used */
	UCS_ERR_ALREADY_EXISTS = -18,       /* the name is taken */
	UCS_ERR_OUT_OF_RANGE = -19,         /* index or number out of range */
	UCS_ERR_TIMED_OUT = -20,            /* no answer within the time allowed */
	UCS_ERR_EXCEEDS_LIMIT = -21,        /* over a limit that was set */
	UCS_ERR_UNSUPPORTED = -22,          /* not offered by this library or device */
	UCS_ERR_REJECTED = -23,             /* the peer said no */
	UCS_ERR_NOT_CONNECTED = -24,        /* the ep is closed or was never connected */
	UCS_ERR_CONNECTION_RESET = -25,     /* the peer closed or went away */

	UCS_ERR_FIRST_LINK_FAILURE = -40,     /* first of the link errors */
	UCS_ERR_LAST_LINK_FAILURE = -59,      /* last of them */
	UCS_ERR_FIRST_ENDPOINT_FAILURE = -60, /* first of the ep errors */
	UCS_ERR_ENDPOINT_TIMEOUT = -80,       /* the peer no longer answers */
	UCS_ERR_LAST_ENDPOINT_FAILURE = -89,  /* last of the ep errors */

	UCS_ERR_LAST = -100 /* no code is lower */
} UCS_S_PACKED ucs_status_t;

/** A request, or NULL for UCS_OK, or a negative status in the pointer's place. */
typedef void *ucs_status_ptr_t;

/* Whether an error code means a broken link, or an ep that can no longer be used. */
#define UCS_IS_LINK_ERROR(code)                                                                    \
	((code) <= UCS_ERR_FIRST_LINK_FAILURE && (code) >= UCS_ERR_LAST_LINK_FAILURE)
#define UCS_IS_ENDPOINT_ERROR(code)                                                                \
	((code) <= UCS_ERR_FIRST_ENDPOINT_FAILURE && (code) >= UCS_ERR_LAST_ENDPOINT_FAILURE)

/* Whether a ucs_status_ptr_t holds an error, or a real pointer. NULL is neither. */
#define UCS_PTR_IS_ERR(ptr) ((uintptr_t)(ptr) >= (uintptr_t)UCS_ERR_LAST)
#define UCS_PTR_IS_PTR(ptr) ((uintptr_t)(ptr)-1 < (uintptr_t)UCS_ERR_LAST - 1)

/* The status in a ucs_status_ptr_t; of a real pointer the second gives UCS_INPROGRESS. */
#define UCS_PTR_RAW_STATUS(ptr) ((ucs_status_t)(intptr_t)(ptr))
#define UCS_PTR_STATUS(ptr)     (UCS_PTR_IS_PTR(ptr) ? UCS_INPROGRESS : UCS_PTR_RAW_STATUS(ptr))

/* A ucs_status_ptr_t made of a status, and whether a status is an error. */
#define UCS_STATUS_PTR(status)    ((void *)(intptr_t)(status))
#define UCS_STATUS_IS_ERR(status) ((status) < 0)

/**
 * Put a status into words.
 * @param status any value, also one that no enumerator has
 * @return text in static storage, or, for an unknown code, text in a buffer of
 * the calling thread that the thread's next such call overwrites. Never NULL.
 * Thread: any. Blocks: never. Allocates: no.
 */
const char *ucs_status_string(ucs_status_t status);

END_C_DECLS

#endif
