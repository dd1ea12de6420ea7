/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_int.h - between the files of lib/rma
 */
#ifndef RMA_INT_H
#define RMA_INT_H

#include "plx_rma.h"

/* rma.c */

/** The operation is over: out of all lists, completed. */
void rma_end(struct plx_rma *r, struct plx_req *req, int err);

/** All of a message operation is to be sent again. */
void rma_send_again(struct plx_rma *r, struct plx_req *req);

/* rma_soft.c */
void rma_soft_open(struct plx_rma *r, uint32_t n_replies);

/** Send as much as goes. @return 0 all is sent; -EAGAIN not yet; or an error. */
int rma_msg_step(struct plx_rma *r, struct plx_req *req);

#endif
