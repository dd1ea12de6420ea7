/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * uct_tag.h - a receive that a device matches by its tag
 *
 * The names and meanings are those of UCX. A device that matches tags by itself is
 * given receives, each with a context; it reports the end of one by calling the
 * functions in its context. For each receive, in this order:
 *
 *	nothing more			it was cancelled by force
 *	completed_cb(CANCELED)		it was cancelled before a message met it
 *	tag_consumed_cb, completed_cb	a message met it, and is done
 *	tag_consumed_cb, rndv_cb	a message met it; the rest is software's
 */
#ifndef UCT_TAG_H
#define UCT_TAG_H

#include <stddef.h>
#include <stdint.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/** Bytes of a context that are the device's. */
#define UCT_TAG_PRIV_LEN 32

/** A tag, all bits of which count. */
typedef uint64_t uct_tag_t;

typedef struct uct_tag_context uct_tag_context_t;

/** Flags of rndv_cb. */
enum {
	UCT_TAG_RECV_CB_INLINE_DATA = UCS_BIT(0) /* header is not in the receive's buffer */
};

/**
 * A receive in a device. The poster fills in the three functions; the context stays where
 * it is until the last of them was called.
 */
struct uct_tag_context {
	/**
	 * A message has met the receive: software must match it to no other.
	 * @param self the context that was posted
	 */
	void (*tag_consumed_cb)(uct_tag_context_t *self);

	/**
	 * The receive is over.
	 * @param self the context that was posted
	 * @param stag the message's tag
	 * @param imm immediate data of the sender; 0 for a rendezvous
	 * @param length bytes of the message
	 * @param inline_data not NULL: the message's data lies here, until this returns, and
	 * not in the receive's buffer: copy it
	 * @param status UCS_OK; UCS_ERR_MESSAGE_TRUNCATED the message is longer than the
	 * buffer, and nothing was copied; UCS_ERR_CANCELED
	 */
	void (*completed_cb)(uct_tag_context_t *self, uct_tag_t stag, uint64_t imm, size_t length,
		void *inline_data, ucs_status_t status);

	/**
	 * A message has met the receive that the device cannot finish: an announcement, or one
	 * in parts.
	 * @param self the context that was posted
	 * @param stag the message's tag
	 * @param header as agreed between the device and its user; valid until this returns
	 * @param header_length bytes of header
	 * @param status UCS_OK, or why the receive fails
	 * @param flags UCT_TAG_RECV_CB_x
	 */
	void (*rndv_cb)(uct_tag_context_t *self, uct_tag_t stag, const void *header,
		unsigned header_length, ucs_status_t status, unsigned flags);

	/** The device's, from posting to the last call. */
	char priv[UCT_TAG_PRIV_LEN];
};

END_C_DECLS

#endif
