/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * offload_int.h - between the files of lib/offload
 */
#ifndef OFFLOAD_INT_H
#define OFFLOAD_INT_H

#include "plx_offload.h"

/** plx_req.offload: which device has a posted receive. */
enum offload_where {
	OFFLOAD_NONE,
	OFFLOAD_SOFT,	    /* none, and its mask is counted in offload_soft.masks */
	OFFLOAD_SOFT_OTHER, /* the same, in n_other */
	OFFLOAD_RECVS,	    /* and above: a device has it, by plx_offload.recvs[] */
};

/* The queue of a sender's messages. */
struct offload_sender {
	uint64_t key; /* its tags within sender_mask */
	uint8_t dev;  /* number + 1, 0: unknown */
};

/* offload_rule.c */
enum offload_where offload_soft_add(struct offload_soft *s, const struct plx_tag_recv *r);
void offload_soft_remove(struct offload_soft *s, const struct plx_tag_recv *r,
	enum offload_where where);
/** @return whether one message may match both r and one that only software has */
bool offload_soft_conflicts(const struct offload_soft *s, const struct plx_tag_recv *r);
/** @return whether one message may match both */
bool offload_recvs_conflict(const struct plx_tag_recv *a, const struct plx_tag_recv *b);
/** A message of this tag came by queue i. */
void offload_sender_learn(struct plx_offload *o, uint64_t tag, uint32_t i);
/** The one queue of all messages that r may match, or NULL. */
struct plx_offload_dev *offload_dev_of(struct plx_offload *o, const struct plx_tag_recv *r);

#endif
