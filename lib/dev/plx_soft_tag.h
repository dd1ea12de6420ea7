/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_soft_tag.h - matching of tags for a device that has none in hardware
 *
 * A driver puts the two hooks into its ops and opens it at the end of its queue_open. With
 * tag.offload off that has no effect; otherwise it wraps the queue's rx_burst and rx_release and
 * keeps the messages until the burst is released.
 */
#ifndef PLX_SOFT_TAG_H
#define PLX_SOFT_TAG_H

#include "plx_dev.h"

/**
 * Match tags for a queue whose rx_burst is set, as q->conf says.
 * @return 0 or -ENOMEM. Thread: any, before the owner runs turns. Allocates: heap.
 */
int plx_soft_tag_open(struct plx_queue *q);

/** Drop the posted receives, without callbacks. Thread: owner. */
void plx_soft_tag_close(struct plx_queue *q);

/* The hooks: as plx_queue_tag_post() and plx_queue_tag_cancel(). */
int plx_soft_tag_post(struct plx_queue *q, const struct plx_dev_recv *recv, uint16_t seen);
int plx_soft_tag_cancel(struct plx_queue *q, uct_tag_context_t *ctx, bool force, uint16_t seen);

#endif
