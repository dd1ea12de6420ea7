/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_def.h - handles, callbacks and the structures two headers share
 *
 * Design notes
 * - Handles are opaque pointers, made and destroyed by the library.
 * - A structure with a field_mask is only ever longer in a later version. The
 *   library reads and writes a field when its bit is set and never otherwise, so
 *   the caller may leave the rest unset, and may be older than the library.
 *   Unknown bits are ignored.
 * - Callbacks run in the thread that calls ucp_worker_progress() (or another call
 *   that makes progress), also when a dedicated reactor moved the data.
 */
#ifndef UCP_DEF_H_
#define UCP_DEF_H_

#include <stddef.h>
#include <stdint.h>

#include <ucs/config/types.h>
#include <ucs/memory/memory_type.h>
#include <ucs/type/status.h>

/* Bytes of a name in an attribute structure, the final NUL included. */
#define UCP_ENTITY_NAME_MAX 32

typedef struct ucp_context *ucp_context_h;           /* one use of the library */
typedef struct ucp_config ucp_config_t;              /* a set of settings */
typedef struct ucp_worker *ucp_worker_h;             /* all that one core owns */
typedef struct ucp_address ucp_address_t;            /* bytes that name a worker */
typedef struct ucp_ep *ucp_ep_h;                     /* the other end */
typedef struct ucp_listener *ucp_listener_h;         /* waits for connections */
typedef struct ucp_conn_request *ucp_conn_request_h; /* one that knocked */
typedef struct ucp_mem *ucp_mem_h;                   /* registered memory */
typedef struct ucp_rkey *ucp_rkey_h;                 /* the right to a peer's memory */
typedef struct ucp_recv_desc *ucp_tag_message_h;     /* a message taken by a probe */

typedef struct ucp_tag_recv_info ucp_tag_recv_info_t;
typedef struct ucp_am_recv_param ucp_am_recv_param_t;

typedef uint64_t ucp_tag_t;      /* names a message; all 64 bits are the user's */
typedef uint64_t ucp_datatype_t; /* how elements lie in memory; see enum ucp_dt_type */

/** The error handling of an ep whose peer fails. */
typedef enum {
	UCP_ERR_HANDLING_MODE_NONE,    /* nothing; operations may stay open */
	UCP_ERR_HANDLING_MODE_PEER,    /* every operation ends, the handler is called once */
	UCP_ERR_HANDLING_MODE_FAILOVER /* as PEER, and other paths are tried first */
} ucp_err_handling_mode_t;

/* Fields of ucp_mem_attr_t. */
enum ucp_mem_attr_field {
	UCP_MEM_ATTR_FIELD_ADDRESS = UCS_BIT(0),
	UCP_MEM_ATTR_FIELD_LENGTH = UCS_BIT(1),
	UCP_MEM_ATTR_FIELD_MEM_TYPE = UCS_BIT(2)
};

/** Answer of ucp_mem_query(). */
typedef struct ucp_mem_attr {
	uint64_t field_mask;        /* in: which fields to fill, enum ucp_mem_attr_field */
	void *address;              /* first byte */
	size_t length;              /* bytes; of allocated memory, may exceed what was asked */
	ucs_memory_type_t mem_type; /* where it lies */
} ucp_mem_attr_t;

/**
 * Prepare the user area of a request.
 * Called once for each piece of request memory, before its first use and not again
 * when it is used anew. @param request the user area; the library owns the memory
 */
typedef void (*ucp_request_init_callback_t)(void *request);

/** Undo ucp_request_init_callback_t; may be as late as ucp_worker_destroy(). */
typedef void (*ucp_request_cleanup_callback_t)(void *request);

/**
 * An operation started with a _nb call is over.
 * @param request valid until it is freed or released, which the callback may do
 * @param status UCS_OK, or why it failed; UCS_ERR_CANCELED when canceled
 */
typedef void (*ucp_send_callback_t)(void *request, ucs_status_t status);

/** As ucp_send_callback_t, for _nbx calls. @param user_data from ucp_request_param_t */
typedef void (*ucp_send_nbx_callback_t)(void *request, ucs_status_t status, void *user_data);

/**
 * The peer of an ep failed.
 * Called at most once for an ep and never after it is closed. The handle stays valid
 * until the user closes it; new operations on it answer an error.
 * @param arg ucp_ep_params_t.user_data if that was given, else ucp_err_handler_t.arg
 */
typedef void (*ucp_err_handler_cb_t)(void *arg, ucp_ep_h ep, ucs_status_t status);

/** Called when the peer fails. */
typedef struct ucp_err_handler {
	ucp_err_handler_cb_t cb; /* NULL: nobody */
	void *arg;               /* the user's, passed unless the ep has user_data */
} ucp_err_handler_t;

/** A client connected and its ep is made; the user must close ep in the end. */
typedef void (*ucp_listener_accept_callback_t)(ucp_ep_h ep, void *arg);

/**
 * A client asks to connect.
 * The request must be used exactly once, now or later: by ucp_ep_create(), on any
 * worker, or by ucp_listener_reject().
 */
typedef void (*ucp_listener_conn_callback_t)(ucp_conn_request_h conn_request, void *arg);

/** Called when a client asks to connect. */
typedef struct ucp_listener_conn_handler {
	ucp_listener_conn_callback_t cb;
	void *arg; /* the user's */
} ucp_listener_conn_handler_t;

/** A stream receive is over. @param length bytes written to the buffer */
typedef void (*ucp_stream_recv_callback_t)(void *request, ucs_status_t status, size_t length);

/** As ucp_stream_recv_callback_t, for _nbx calls. @param user_data from ucp_request_param_t */
typedef void (*ucp_stream_recv_nbx_callback_t)(
	void *request, ucs_status_t status, size_t length, void *user_data);

/**
 * A tag receive is over.
 * @param status UCS_ERR_MESSAGE_TRUNCATED when the message was longer than the buffer;
 * UCS_ERR_CANCELED after ucp_request_cancel()
 * @param info tag and full length of the message; valid during the callback; undefined
 * when canceled
 */
typedef void (*ucp_tag_recv_callback_t)(
	void *request, ucs_status_t status, ucp_tag_recv_info_t *info);

/** As ucp_tag_recv_callback_t, for _nbx calls. @param user_data from ucp_request_param_t */
typedef void (*ucp_tag_recv_nbx_callback_t)(
	void *request, ucs_status_t status, const ucp_tag_recv_info_t *tag_info, void *user_data);

/** The data of an active message has been fetched. @param length bytes written */
typedef void (*ucp_am_recv_data_nbx_callback_t)(
	void *request, ucs_status_t status, size_t length, void *user_data);

/** The events that wake a waiting worker; ucp_worker_params_t.events. */
typedef enum ucp_wakeup_event_types {
	UCP_WAKEUP_RMA = UCS_BIT(0),      /* remote memory access ended */
	UCP_WAKEUP_AMO = UCS_BIT(1),      /* an atomic ended */
	UCP_WAKEUP_TAG_SEND = UCS_BIT(2), /* a tag send ended */
	UCP_WAKEUP_TAG_RECV = UCS_BIT(3), /* a tag message arrived */
	UCP_WAKEUP_TX = UCS_BIT(10),      /* anything that goes out */
	UCP_WAKEUP_RX = UCS_BIT(11),      /* anything that comes in */
	UCP_WAKEUP_EDGE = UCS_BIT(16)     /* the descriptor is used edge-triggered */
} ucp_wakeup_event_t;

/**
 * An active message arrived; for ucp_worker_set_am_handler().
 * @param data the message; valid during the call, unless flags has
 * UCP_CB_PARAM_FLAG_DATA and UCS_INPROGRESS is returned: then until ucp_am_data_release()
 * @param length bytes of data
 * @param reply_ep an ep back to the sender if it asked for one, else NULL
 * @param flags enum ucp_cb_param_flags
 * @return UCS_OK, or UCS_INPROGRESS to keep data
 */
typedef ucs_status_t (*ucp_am_callback_t)(
	void *arg, void *data, size_t length, ucp_ep_h reply_ep, unsigned flags);

/**
 * An active message arrived; for ucp_worker_set_am_recv_handler().
 * @param header valid during the call only, header_length bytes
 * @param data the message, or, with UCP_AM_RECV_ATTR_FLAG_RNDV, a descriptor to be given
 * to ucp_am_recv_data_nbx()
 * @param length bytes of the message
 * @param param what is special about this one
 * @return UCS_OK: done with data (an unfetched rendezvous message is dropped).
 * UCS_INPROGRESS: data is kept, until ucp_am_recv_data_nbx() or ucp_am_data_release();
 * needs UCP_AM_RECV_ATTR_FLAG_DATA or _RNDV. An error: a rendezvous message is refused
 * and its send ends with that error.
 */
typedef ucs_status_t (*ucp_am_recv_callback_t)(void *arg, const void *header, size_t header_length,
	void *data, size_t length, const ucp_am_recv_param_t *param);

/** How to make an ep; ucp_ep_create(). Memory it points to is read during the call only. */
typedef struct ucp_ep_params {
	uint64_t field_mask;              /* enum ucp_ep_params_field */
	const ucp_address_t *address;     /* the peer worker; any alignment, ends by itself */
	ucp_err_handling_mode_t err_mode; /* default NONE */
	ucp_err_handler_t err_handler;    /* default nobody */
	void *user_data;                  /* the user's; passed to err_handler and stream polls */
	unsigned flags;                   /* enum ucp_ep_params_flags_field; default 0 */
	ucs_sock_addr_t sockaddr;         /* the listener, with FLAGS_CLIENT_SERVER */
	ucp_conn_request_h conn_request;  /* a client's request; used up by the call */
	const char *name;                 /* for logs and the control socket; default made up */
	ucs_sock_addr_t local_sockaddr;   /* source address of a client; default any */
} ucp_ep_params_t;

/* Lists in a GPU's memory: device/ucp_host.h. */
typedef struct ucp_device_local_mem_list *ucp_device_local_mem_list_h;
typedef struct ucp_device_remote_mem_list *ucp_device_remote_mem_list_h;

#endif
