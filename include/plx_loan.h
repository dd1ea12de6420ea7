/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_loan.h - the data of an active message, read where it lies in its sender's memory
 *
 * A long active message is announced: the handler is called with UCP_AM_RECV_ATTR_FLAG_RNDV, and
 * its data is still in the sender's buffer. If the sender is another process of this machine and
 * the buffer is memory that this process has mapped (of ucp_mem_map() with
 * UCP_MEM_MAP_ALLOCATE, or an EAL's heap), it can be read there: nothing is moved, in the same
 * time for any length. The send completes when the loan is returned.
 */
#ifndef PLX_LOAN_H
#define PLX_LOAN_H

#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Pieces of a loan at most: a buffer may lie in several pages that do not follow each other here. */
#define PLX_LOAN_MAX_IOV 8

typedef struct plx_loan *plx_loan_h;

/**
 * Borrow the data of an announced active message, instead of ucp_am_recv_data_nbx().
 * @param data_desc of the handler: in it, or later if it returned UCS_INPROGRESS
 * @param loan set on success; the data may be read, not written, until plx_loan_return(). The
 *   message is then taken, and data_desc gone
 * @return UCS_OK; or nothing has changed, and ucp_am_recv_data_nbx() fetches it:
 *   UCS_ERR_UNSUPPORTED the data is not mapped here: private memory, an iov, a peer of this
 *   process or on another host, or one that may have withdrawn it; UCS_ERR_NO_RESOURCE 1,024 loans
 *   are not returned; UCS_ERR_NO_MEMORY
 * Thread: the worker's. Blocks: for the first message from a segment, while it is mapped; with a
 * reactor, until its turn. Allocates: heap.
 */
ucs_status_t plx_loan_take(ucp_worker_h worker, void *data_desc, plx_loan_h *loan);

/**
 * Where the data is.
 * @param iov filled in, in the order of the message
 * @param max entries of iov; PLX_LOAN_MAX_IOV are enough
 * @return the pieces of the loan. Thread: any. Blocks: never. Allocates: no.
 */
size_t plx_loan_iov(plx_loan_h loan, ucp_dt_iov_t *iov, size_t max);

/**
 * Whether what was read is what was sent: call it after reading. The pages themselves stay
 * readable until plx_loan_return(), whatever becomes of the sender.
 * @return UCS_OK; UCS_ERR_CONNECTION_RESET: the sender has ended, has closed the connection, or may
 *   have withdrawn the message by closing an endpoint by force. It may write to the buffer again.
 * Thread: the worker's. Blocks: with a reactor, until its turn. Allocates: no.
 */
ucs_status_t plx_loan_check(plx_loan_h loan);

/**
 * Return it: the sender completes. Also after ucp_worker_destroy(), then on any thread; but not in
 * a child that inherited it.
 * Thread: the worker's. Blocks: with a reactor, until its turn. Allocates: no.
 */
void plx_loan_return(plx_loan_h loan);

#ifdef __cplusplus
}
#endif

#endif
