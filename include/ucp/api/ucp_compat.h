/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_compat.h - the older calls of UCP: blocking ones, and _nb, _nbi, _nbr
 *
 * They stay and cost nothing more than the _nbx calls of ucp.h, which express the
 * same through ucp_request_param_t. ucp.h includes this header.
 *
 * Unless a function says otherwise:
 * - Thread: the worker's thread rule (ucp_worker_params_t.thread_mode).
 *   Blocks: never. Allocates: from the worker's request pool.
 * - count is in elements of datatype, length in bytes.
 * - A buffer belongs to the library from the call until the operation is over.
 * - A function that answers a ucs_status_ptr_t answers NULL when the operation is
 *   over already (cb is not called then), a request when it is not, or an error
 *   (see UCS_PTR_IS_ERR()). A request is given back with ucp_request_free().
 * - A send never calls cb before it returns. A tag receive may.
 * - Errors: UCS_ERR_INVALID_PARAM an argument is out of range or a feature was not
 *   asked for in ucp_init(); UCS_ERR_NO_MEMORY the pool cannot grow; on an ep whose
 *   peer failed, the error it failed with; UCS_ERR_NOT_CONNECTED a closed ep.
 */
#ifndef UCP_COMPAT_H_
#define UCP_COMPAT_H_

#include <ucp/api/ucp_def.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/* How ucp_ep_close_nb() closes. Note that 0 is the rude one. */
enum ucp_ep_close_mode {
	UCP_EP_CLOSE_MODE_FORCE = 0, /* at once; open operations end with UCS_ERR_CANCELED */
	UCP_EP_CLOSE_MODE_FLUSH = 1  /* deliver what was sent, then close */
};

/* Flags of ucp_am_callback_t. */
enum ucp_cb_param_flags {
	UCP_CB_PARAM_FLAG_DATA = UCS_BIT(0) /* data may be kept by answering UCS_INPROGRESS */
};

/** Operations of ucp_atomic_post(): no value comes back. */
typedef enum {
	UCP_ATOMIC_POST_OP_ADD,
	UCP_ATOMIC_POST_OP_AND,
	UCP_ATOMIC_POST_OP_OR,
	UCP_ATOMIC_POST_OP_XOR,
	UCP_ATOMIC_POST_OP_LAST
} ucp_atomic_post_op_t;

/** Operations of ucp_atomic_fetch_nb(): the value before comes back. */
typedef enum {
	UCP_ATOMIC_FETCH_OP_FADD,
	UCP_ATOMIC_FETCH_OP_SWAP,
	UCP_ATOMIC_FETCH_OP_CSWAP,
	UCP_ATOMIC_FETCH_OP_FAND,
	UCP_ATOMIC_FETCH_OP_FOR,
	UCP_ATOMIC_FETCH_OP_FXOR,
	UCP_ATOMIC_FETCH_OP_LAST
} ucp_atomic_fetch_op_t;

/** Called with the ep of a client that connected; ucp_listener_params_t. */
typedef struct ucp_listener_accept_handler {
	ucp_listener_accept_callback_t cb;
	void *arg; /* the user's */
} ucp_listener_accept_handler_t;

/* --- worker --- */

/**
 * Get the address of a worker, to be sent to peers by other means.
 * @param address_p out: the library's, until ucp_worker_release_address()
 * @param address_length_p out: bytes; the address may be copied to any alignment
 * Thread: worker. Allocates: heap. Errors: UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_worker_get_address(
	ucp_worker_h worker, ucp_address_t **address_p, size_t *address_length_p);

/**
 * Wait until every put, get and atomic of a worker is done here and at the peer.
 * @return UCS_OK, or the error of an ep that failed
 * Blocks: yes, makes progress meanwhile.
 */
ucs_status_t ucp_worker_flush(ucp_worker_h worker);

/** As ucp_worker_flush(), without waiting. @param flags must be 0 */
ucs_status_ptr_t ucp_worker_flush_nb(ucp_worker_h worker, unsigned flags, ucp_send_callback_t cb);

/**
 * Name the function that takes active messages of an id, in the older form.
 * @param id 0 to 65535; shared with ucp_worker_set_am_recv_handler()
 * @param cb NULL takes the handler away; messages without one are dropped
 * @param arg the user's, passed to cb
 * @param flags enum ucp_am_cb_flags
 * Allocates: heap. Errors: UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_worker_set_am_handler(
	ucp_worker_h worker, uint16_t id, ucp_am_callback_t cb, void *arg, uint32_t flags);

/* --- ep --- */

/**
 * Close an ep. The handle is gone when the call returns.
 * @param mode enum ucp_ep_close_mode
 * @return NULL when closed; a request that ends when closed; UCS_ERR_INVALID_PARAM for
 * FORCE on an ep without error handling, which then stays open
 */
ucs_status_ptr_t ucp_ep_close_nb(ucp_ep_h ep, unsigned mode);

/** Close an ep as with UCP_EP_CLOSE_MODE_FLUSH and wait. Blocks: yes, makes progress. */
void ucp_ep_destroy(ucp_ep_h ep);

/** Close an ep as with UCP_EP_CLOSE_MODE_FLUSH; the request is given back with release. */
ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep);

/** Wait until every put, get and atomic of an ep is done. Blocks: yes, makes progress. */
ucs_status_t ucp_ep_flush(ucp_ep_h ep);

/** As ucp_ep_flush(), without waiting. @param flags must be 0 */
ucs_status_ptr_t ucp_ep_flush_nb(ucp_ep_h ep, unsigned flags, ucp_send_callback_t cb);

/**
 * Change the error handler or the user data of an ep.
 * @param params only ERR_HANDLER and USER_DATA may be set
 * Errors: UCS_ERR_INVALID_PARAM address, socket address or error mode given.
 */
ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params);

/* --- memory --- */

/**
 * Write the key of registered memory, to be sent to peers.
 * @param rkey_buffer_p out: the library's, until ucp_rkey_buffer_release()
 * @param size_p out: bytes; the key may be copied to any alignment
 * Thread: any. Allocates: heap. Errors: UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_rkey_pack(
	ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p, size_t *size_p);

/** Free the buffer of ucp_rkey_pack(). Thread: any. */
void ucp_rkey_buffer_release(void *rkey_buffer);

/* --- tag --- */

/**
 * Send a message to be matched by its tag. See ucp_tag_send_nbx().
 * @param cb called when the send is over, if that is not at once; not NULL
 */
ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_t tag, ucp_send_callback_t cb);

/**
 * Send with the caller's request memory; prefers to be over at once.
 * @param req as ucp_request_param_t.request
 * @return UCS_OK over, req is not used; UCS_INPROGRESS req tells when; or an error
 */
ucs_status_t ucp_tag_send_nbr(ucp_ep_h ep, const void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_t tag, void *req);

/** Send; over only when the receiver has matched it. See ucp_tag_send_sync_nbx(). */
ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_t tag, ucp_send_callback_t cb);

/**
 * Post a receive. See ucp_tag_recv_nbx().
 * @param cb always called, perhaps before the call returns; not NULL
 * @return a request or an error; never NULL
 */
ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask, ucp_tag_recv_callback_t cb);

/**
 * Post a receive with the caller's request memory.
 * @param req as ucp_request_param_t.request; answers ucp_request_test() whatever the
 * call returned
 * @return UCS_OK over; UCS_INPROGRESS req tells when; or an error
 */
ucs_status_t ucp_tag_recv_nbr(ucp_worker_h worker, void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask, void *req);

/** Receive a message that ucp_tag_probe_nb() took. See ucp_tag_msg_recv_nbx(). */
ucs_status_ptr_t ucp_tag_msg_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_tag_message_h message, ucp_tag_recv_callback_t cb);

/* --- stream --- */

/** Append bytes to the stream of an ep. @param flags must be 0. See ucp_stream_send_nbx(). */
ucs_status_ptr_t ucp_stream_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_send_callback_t cb, unsigned flags);

/**
 * Take bytes from the stream of an ep. See ucp_stream_recv_nbx().
 * @param length out: bytes written, valid when NULL is returned
 * @param flags ucp_stream_recv_flags_t
 */
ucs_status_ptr_t ucp_stream_recv_nb(ucp_ep_h ep, void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_stream_recv_callback_t cb, size_t *length, unsigned flags);

/* --- active messages --- */

/**
 * Send an active message without a header. See ucp_am_send_nbx().
 * @param flags UCP_AM_SEND_FLAG_REPLY or 0
 */
ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buffer, size_t count,
	ucp_datatype_t datatype, ucp_send_callback_t cb, unsigned flags);

/* --- put, get, atomics --- */

/** Write to a peer's memory and wait. See ucp_put_nbx(). Blocks: yes, makes progress. */
ucs_status_t ucp_put(
	ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey);

/** Read a peer's memory and wait. See ucp_get_nbx(). Blocks: yes, makes progress. */
ucs_status_t ucp_get(
	ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey);

/**
 * Write to a peer's memory; only a flush tells when.
 * @return UCS_OK buffer is free again; UCS_INPROGRESS it is after a flush; or an error
 */
ucs_status_t ucp_put_nbi(
	ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey);

/** Read a peer's memory; only a flush tells when. @return as ucp_put_nbi() */
ucs_status_t ucp_get_nbi(
	ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr, ucp_rkey_h rkey);

/** Write to a peer's memory. See ucp_put_nbx(). */
ucs_status_ptr_t ucp_put_nb(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr,
	ucp_rkey_h rkey, ucp_send_callback_t cb);

/** Read a peer's memory. See ucp_get_nbx(). */
ucs_status_ptr_t ucp_get_nb(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
	ucp_rkey_h rkey, ucp_send_callback_t cb);

/**
 * Change a peer's 4 or 8 bytes; only a flush tells when.
 * @param value operand, copied
 * @param op_size 4 or 8; remote_addr must be a multiple of it
 * @return UCS_OK or UCS_INPROGRESS started; UCS_ERR_INVALID_PARAM size or alignment
 */
ucs_status_t ucp_atomic_post(ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value,
	size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey);

/**
 * Change a peer's 4 or 8 bytes and get what they were.
 * @param value operand, copied; for CSWAP what to compare with
 * @param result out: the bytes before, when over; for CSWAP also in: what to store
 */
ucs_status_ptr_t ucp_atomic_fetch_nb(ucp_ep_h ep, ucp_atomic_fetch_op_t opcode, uint64_t value,
	void *result, size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey,
	ucp_send_callback_t cb);

/*
 * One atomic each on 4 or 8 bytes of a peer's memory at remote_addr, a multiple of the
 * size. add answers when the operand is taken, the others when *result holds the
 * value before. Blocks: yes, makes progress.
 */
ucs_status_t ucp_atomic_add32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey);
ucs_status_t ucp_atomic_add64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey);
ucs_status_t ucp_atomic_fadd32(
	ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey, uint32_t *result);
ucs_status_t ucp_atomic_fadd64(
	ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey, uint64_t *result);
ucs_status_t ucp_atomic_swap32(
	ucp_ep_h ep, uint32_t swap, uint64_t remote_addr, ucp_rkey_h rkey, uint32_t *result);
ucs_status_t ucp_atomic_swap64(
	ucp_ep_h ep, uint64_t swap, uint64_t remote_addr, ucp_rkey_h rkey, uint64_t *result);
ucs_status_t ucp_atomic_cswap32(ucp_ep_h ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
	ucp_rkey_h rkey, uint32_t *result);
ucs_status_t ucp_atomic_cswap64(ucp_ep_h ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
	ucp_rkey_h rkey, uint64_t *result);

/* --- requests --- */

/** @return 1 when the operation of a request is over, else 0. Thread: worker; no progress. */
int ucp_request_is_completed(void *request);

/**
 * Give a request back; its callback is still called if the operation is not over.
 * ucp_request_free() is the same without the callback. Neither cancels.
 */
void ucp_request_release(void *request);

/**
 * Ask a request for its status.
 * @param info out: tag and length, filled when a tag receive is over; may be NULL
 * @return UCS_INPROGRESS, or the status the operation ended with. Makes no progress.
 */
ucs_status_t ucp_request_test(void *request, ucp_tag_recv_info_t *info);

/** Kept for old programs. @return NULL, always; take memory as ucp_request_param_t says */
void *ucp_request_alloc(ucp_worker_h worker);

END_C_DECLS

#endif
