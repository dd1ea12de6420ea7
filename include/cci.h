/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci.h - the Common Communication Interface of Pollux, ABI 2
 *
 * An endpoint owns buffers and a queue of events; a connection is the way to one
 * peer. Calls only start communication; cci_get_event() moves it on and tells how it
 * ended, one event at a time.
 *
 * Unless a function says otherwise:
 * - Thread: any; calls on one endpoint may come from many threads at a time.
 * - Blocks: never. Allocates: communication from the endpoint's buffers; control from
 *   the heap.
 * - It answers a value of enum cci_status as an int: CCI_SUCCESS, or why nothing happened.
 * - CCI_EINVAL: a needed pointer is NULL, or an argument is out of its range.
 * - Times are in microseconds, sizes in bytes. 0 as a timeout means that there is none.
 * - Objects answered are the library's, to be read and not written.
 */
#ifndef CCI_H_
#define CCI_H_

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef BEGIN_C_DECLS
#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS   }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif
#endif

#ifndef CCI_DECLSPEC
#define CCI_DECLSPEC
#endif

BEGIN_C_DECLS

/* --- library --- */

/* The version that a program passes to cci_init(), which accepts 1 as well. */
#define CCI_ABI_VERSION 2

/** Answer of a function, or status of an event. The values above 8 are those of errno. */
typedef enum cci_status {
	CCI_SUCCESS = 0,
	CCI_ERROR,               /* for a reason that has no name here */
	CCI_ERR_DISCONNECTED,    /* one of the sides has closed the connection */
	CCI_ERR_RNR,             /* the peer had no receive buffer until the timeout */
	CCI_ERR_DEVICE_DEAD,     /* the device is gone and does not come back */
	CCI_ERR_RMA_HANDLE,      /* no such registration for peers, or out of its bounds */
	CCI_ERR_RMA_OP,          /* a right is missing, or the peer cannot do this operation */
	CCI_ERR_NOT_IMPLEMENTED, /* not offered by this device */
	CCI_ERR_NOT_FOUND,       /* no devices, or no such thing */

	CCI_EINVAL = EINVAL,
	CCI_ETIMEDOUT = ETIMEDOUT, /* the peer was not heard of until the timeout */
	CCI_ENOMEM = ENOMEM,
	CCI_ENODEV = ENODEV,
	CCI_ENETDOWN = ENETDOWN,
	CCI_EBUSY = EBUSY,       /* in use; such as a service */
	CCI_ERANGE = ERANGE,     /* a value that cannot be had */
	CCI_EAGAIN = EAGAIN,     /* no event now */
	CCI_ENOBUFS = ENOBUFS,   /* all buffers are in use; return events and try again */
	CCI_EMSGSIZE = EMSGSIZE, /* longer than max_send_size */
	CCI_ENOMSG = ENOMSG,
	CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
	CCI_ECONNREFUSED = ECONNREFUSED /* the peer has rejected the connection, or is not there */
} cci_status_t;

/**
 * Start using the library. Every call counts; the last cci_finalize() ends it.
 * @param abi_ver CCI_ABI_VERSION
 * @param flags 0
 * @param caps out: 1, the library is thread safe
 * Errors: CCI_EINVAL also for another ABI; CCI_ERROR the file named by CCI_CONFIG cannot be
 * read or has no meaning (a line on stderr says where); CCI_ERR_NOT_FOUND no driver works.
 */
CCI_DECLSPEC int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/**
 * End one use of the library; the last one destroys all endpoints.
 * Errors: CCI_ERROR it was not in use.
 */
CCI_DECLSPEC int cci_finalize(void);

/* --- devices --- */

/** A device: a section of the configuration file, or one found where there is no file. */
typedef const struct cci_device {
	const char *name;             /* of the section */
	const char *transport;        /* the driver */
	unsigned up;                  /* 1 when endpoints can be made on it */
	const char *info;             /* for people to read */
	const char *const *conf_argv; /* "key=value" of the file, all but the keys that
				       * describe the device itself; NULL ends it */
	uint32_t max_send_size;       /* bytes of the longest message */
	uint64_t rate;                /* bits a second; 0 unknown */
	struct {
		uint32_t domain;
		uint32_t bus;
		uint32_t dev;
		uint32_t func;
	} pci; /* all ones when it is not a PCI device */
} cci_device_t;

/**
 * Ask for the devices.
 * @param devices out: an array that NULL ends, by falling priority; valid until the last
 * cci_finalize()
 * Errors: CCI_ERROR before cci_init().
 */
CCI_DECLSPEC int cci_get_devices(cci_device_t *const **devices);

/* --- endpoints --- */

/** Flags of cci_create_endpoint(): none yet. */
typedef enum cci_endpoint_flags { bogus_must_have_something_here } cci_endpoint_flags_t;

/** Buffers and a queue of events, on one device. */
typedef const struct cci_endpoint {
	cci_device_t *device;
} cci_endpoint_t;

/** A file descriptor for poll() and its like. */
typedef int cci_os_handle_t;

/**
 * Make an endpoint.
 * @param device NULL: the default one, else the first
 * @param flags 0
 * @param endpoint out: the caller's, until cci_destroy_endpoint()
 * @param fd out: readable when cci_get_event() is worth a call; the endpoint's, not to be
 * read or closed. NULL: the caller polls, and the endpoint is spared the descriptor
 * Errors: CCI_ENODEV no device, or it is down.
 */
CCI_DECLSPEC int cci_create_endpoint(
	cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/**
 * Make an endpoint whose URI is known beforehand.
 * @param service a name that the URI is made of; the device says which are good
 * Errors: CCI_EBUSY the service has an endpoint already.
 */
CCI_DECLSPEC int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/** Destroy an endpoint with its connections, events, buffers and registrations. */
CCI_DECLSPEC int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/**
 * The name of a status.
 * @param endpoint where it came from; may be NULL
 * @return a text that needs no freeing; never NULL
 */
CCI_DECLSPEC const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* --- connections --- */

/** The guarantees of a connection. */
typedef enum cci_conn_attribute {
	CCI_CONN_ATTR_RO,       /* reliable; delivered and completed in the order of issue */
	CCI_CONN_ATTR_RU,       /* reliable; in any order */
	CCI_CONN_ATTR_UU,       /* may be lost; no RMA */
	CCI_CONN_ATTR_UU_MC_TX, /* to a multicast group */
	CCI_CONN_ATTR_UU_MC_RX  /* from a multicast group */
} cci_conn_attribute_t;

/** The way to a peer, or to or from a multicast group. */
typedef const struct cci_connection {
	uint32_t max_send_size; /* bytes of the longest message */
	cci_endpoint_t *endpoint;
	cci_conn_attribute_t attribute;
	void *context; /* of cci_connect() or cci_accept() */
} cci_connection_t;

/* The most bytes that go with a connection request. */
#define CCI_CONN_REQ_LEN (1024)

typedef const union cci_event cci_event_t;

/**
 * Accept a connection; a CCI_EVENT_ACCEPT follows. The request is still to be returned.
 * @param conn_req a CCI_EVENT_CONNECT_REQUEST
 * @param context the caller's, found in the connection
 * Errors: CCI_EINVAL not a request, or one that was answered already.
 */
CCI_DECLSPEC int cci_accept(cci_event_t *conn_req, const void *context);

/** Reject a connection; else as cci_accept(), without a following event. */
CCI_DECLSPEC int cci_reject(cci_event_t *conn_req);

/**
 * Ask for a connection; exactly one CCI_EVENT_CONNECT follows.
 * @param server_uri of the peer's endpoint; of a group for multicast
 * @param data_ptr goes with the request; copied
 * @param data_len bytes, at most CCI_CONN_REQ_LEN
 * @param context the caller's, found in the event and in the connection
 * @param flags 0
 * @param timeout when to give up; NULL: never
 */
CCI_DECLSPEC int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr,
	uint32_t data_len, cci_conn_attribute_t attribute, const void *context, int flags,
	const struct timeval *timeout);

/**
 * Close a connection on this side; it is gone when the call returns. Operations that were
 * not over have no events, and their buffers are the caller's again. The peer's next
 * operation ends with CCI_ERR_DISCONNECTED.
 */
CCI_DECLSPEC int cci_disconnect(cci_connection_t *connection);

/* --- events --- */

/** The kinds of events. */
typedef enum cci_event_type {
	CCI_EVENT_NONE, /* never delivered */
	CCI_EVENT_SEND,
	CCI_EVENT_RECV,
	CCI_EVENT_CONNECT,
	CCI_EVENT_CONNECT_REQUEST,
	CCI_EVENT_ACCEPT,
	CCI_EVENT_KEEPALIVE_TIMEDOUT,
	CCI_EVENT_ENDPOINT_DEVICE_FAILED
} cci_event_type_t;

/** The name of an event type. */
static inline const char *
cci_event_type_str(cci_event_type_t type)
{
	switch (type) {
	case CCI_EVENT_NONE:
		return "CCI_EVENT_NONE";
	case CCI_EVENT_SEND:
		return "CCI_EVENT_SEND";
	case CCI_EVENT_RECV:
		return "CCI_EVENT_RECV";
	case CCI_EVENT_CONNECT:
		return "CCI_EVENT_CONNECT";
	case CCI_EVENT_CONNECT_REQUEST:
		return "CCI_EVENT_CONNECT_REQUEST";
	case CCI_EVENT_ACCEPT:
		return "CCI_EVENT_ACCEPT";
	case CCI_EVENT_KEEPALIVE_TIMEDOUT:
		return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
	case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
		return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
	default:
		return "Unknown event";
	}
}

/** A send or an RMA is over: on a reliable connection the peer has it. */
typedef struct cci_event_send {
	cci_event_type_t type;
	cci_status_t status;
	cci_connection_t *connection;
	void *context; /* of the call */
} cci_event_send_t;

/** A message came. It may be written to, and lives until the event is returned. */
typedef struct cci_event_recv {
	cci_event_type_t type;
	uint32_t len;    /* bytes; may be 0 */
	const void *ptr; /* aligned to 8 bytes; undefined when len is 0 */
	cci_connection_t *connection;
} cci_event_recv_t;

/** A cci_connect() is over. */
typedef struct cci_event_connect {
	cci_event_type_t type;
	cci_status_t status;
	void *context;                /* of the call */
	cci_connection_t *connection; /* NULL unless status is CCI_SUCCESS */
} cci_event_connect_t;

/** A peer asks for a connection; to be answered before it is returned. */
typedef struct cci_event_connect_request {
	cci_event_type_t type;
	uint32_t data_len;    /* bytes; may be 0 */
	const void *data_ptr; /* aligned to 8 bytes; lives until the event is returned */
	cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

/** A cci_accept() is over. */
typedef struct cci_event_accept {
	cci_event_type_t type;
	cci_status_t status;
	void *context;                /* of the call */
	cci_connection_t *connection; /* NULL unless status is CCI_SUCCESS */
} cci_event_accept_t;

/** The peer did not answer; keepalive of the connection is now off. */
typedef struct cci_event_keepalive_timedout {
	cci_event_type_t type;
	cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

/** The device of the endpoint has failed. */
typedef struct cci_event_endpoint_device_failed {
	cci_event_type_t type;
	cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

/** Any event; type says which. */
union cci_event {
	cci_event_type_t type;
	cci_event_send_t send;
	cci_event_recv_t recv;
	cci_event_connect_t connect;
	cci_event_connect_request_t request;
	cci_event_accept_t accept;
	cci_event_keepalive_timedout_t keepalive;
	cci_event_endpoint_device_failed_t dev_failed;
};

/**
 * Make the OS handle readable for events that are there already or come from now on.
 * Waiting on a handle that has never been armed works too, and costs more.
 * @param flags 0
 * Errors: CCI_EINVAL also when the endpoint has no handle.
 */
CCI_DECLSPEC int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/**
 * Move communication on, and take the next event.
 * @param event out: the caller's until cci_return_event(), which it may be called for at
 * any time, in any order and by any thread; NULL when there is none
 * Errors: CCI_EAGAIN no event; CCI_ENOBUFS no event, and no receive buffer either.
 */
CCI_DECLSPEC int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/**
 * Give an event and its buffer back. The endpoint must still be there; the connection
 * need not.
 * Errors: CCI_EINVAL a connection request that was not answered; it stays the caller's.
 */
CCI_DECLSPEC int cci_return_event(cci_event_t *event);

/* --- options --- */

/** An endpoint or a connection, as the option's name says. */
typedef const void cci_opt_handle_t;

/** Options; the value is a uint32_t, of which the time is in microseconds, unless noted. */
typedef enum cci_opt_name {
	CCI_OPT_ENDPT_SEND_TIMEOUT,      /* of reliable sends on connections to come */
	CCI_OPT_ENDPT_RECV_BUF_COUNT,    /* messages held, unreturned ones included */
	CCI_OPT_ENDPT_SEND_BUF_COUNT,    /* sends that are not over */
	CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, /* of all reliable connections, present and to come */
	CCI_OPT_ENDPT_URI,               /* get only; char *, to be freed with free() */
	CCI_OPT_ENDPT_RMA_ALIGN,         /* get only; struct cci_alignment */
	CCI_OPT_CONN_SEND_TIMEOUT,       /* 0: the endpoint's */
	CCI_OPT_CONN_KEEPALIVE_TIMEOUT   /* of this connection; 0 after it has timed out */
} cci_opt_name_t;

/** The alignments that RMA needs, in bytes; 0: none. */
typedef struct cci_alignment {
	uint32_t rma_write_local_addr;
	uint32_t rma_write_remote_addr;
	uint32_t rma_write_length;
	uint32_t rma_read_local_addr;
	uint32_t rma_read_remote_addr;
	uint32_t rma_read_length;
} cci_alignment_t;

/**
 * Set an option.
 * Errors: CCI_EINVAL also for one that can only be got, or is none of the handle's;
 * CCI_ERANGE a count that cannot be had.
 */
CCI_DECLSPEC int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);

/** Get an option. */
CCI_DECLSPEC int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* --- messages --- */

#define CCI_FLAG_BLOCKING (1 << 0) /* return when it is over, with its status; no event */
#define CCI_FLAG_NO_COPY  (1 << 1) /* the buffer is left alone until it is over */
#define CCI_FLAG_SILENT   (1 << 3) /* no event */
#define CCI_FLAG_READ     (1 << 4) /* RMA: from the peer; registration: peers may read */
#define CCI_FLAG_WRITE    (1 << 5) /* RMA: to the peer; registration: peers may write */
#define CCI_FLAG_FENCE    (1 << 6) /* RMA: only when all earlier RMA is over at the peer */

/**
 * Send a message; a CCI_EVENT_SEND follows unless flags say otherwise.
 * @param msg_ptr the caller's again on return, but with CCI_FLAG_NO_COPY; may be NULL when
 * msg_len is 0
 * @param msg_len bytes, at most max_send_size of the connection
 * @param context the caller's, found in the event
 * @param flags CCI_FLAG_BLOCKING, CCI_FLAG_NO_COPY, CCI_FLAG_SILENT; the last two together
 * on CCI_CONN_ATTR_RO only
 * Blocks: with CCI_FLAG_BLOCKING until the send is over.
 * Errors: CCI_EMSGSIZE; CCI_ENOBUFS all send buffers are in use; CCI_ERR_DISCONNECTED.
 */
CCI_DECLSPEC int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	const void *context, int flags);

/** Send a message that lies in iovcnt pieces; else as cci_send(). The array is copied. */
CCI_DECLSPEC int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
	const void *context, int flags);

/* --- remote memory access --- */

/** Names registered memory; its bytes may be sent to peers. */
typedef const struct cci_rma_handle {
	uint64_t stuff[4];
} cci_rma_handle_t;

/**
 * Register memory with an endpoint; registrations may overlap.
 * @param start the caller's memory, valid until deregistered
 * @param length bytes, not 0
 * @param flags CCI_FLAG_READ, CCI_FLAG_WRITE: what peers may do; 0 when it is used on this
 * side only
 * @param rma_handle out: valid until cci_rma_deregister()
 */
CCI_DECLSPEC int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **rma_handle);

/** Give a registration back; RMA that uses it and is not over may fail. */
CCI_DECLSPEC int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/**
 * Move bytes between registered memory of both sides, on a reliable connection. One
 * CCI_EVENT_SEND follows unless flags say otherwise.
 * @param msg_ptr a message that the peer gets when the bytes have been moved, in the
 * order of issue on CCI_CONN_ATTR_RO; copied; NULL: none
 * @param msg_len bytes, at most max_send_size of the connection
 * @param local_handle of this endpoint
 * @param remote_handle of the peer; copied
 * @param data_len bytes, not 0
 * @param flags either of CCI_FLAG_READ and CCI_FLAG_WRITE, with CCI_FLAG_FENCE,
 * CCI_FLAG_BLOCKING, CCI_FLAG_SILENT
 * Blocks: with CCI_FLAG_BLOCKING until it is over.
 * Errors: as cci_send(); CCI_EINVAL also for a connection that is not reliable, and when the
 * local bytes are not in local_handle. What only the peer can tell comes with the event.
 */
CCI_DECLSPEC int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	cci_rma_handle_t *local_handle, uint64_t local_offset, cci_rma_handle_t *remote_handle,
	uint64_t remote_offset, uint64_t data_len, const void *context, int flags);

END_C_DECLS

#endif
