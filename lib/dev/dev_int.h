/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_int.h - between the files of lib/dev
 */
#ifndef DEV_INT_H
#define DEV_INT_H

#include "plx_dev.h"
#include "plx_dev_ops.h"
#include "plx_log.h"

PLX_LOG_DECLARE(dev);

/** hooks.c: copy the driver's hot hooks to the queue, with others where it has none. */
void dev_fill_hooks(struct plx_queue *q, const struct plx_dev_ops *ops);

/* peer.c */
/** The uid of an address. @return 0; -EINVAL: it can't be one */
int dev_addr_uid(const struct plx_addr *addr, uint64_t *uid);
/** @return the peer with this address, unless it was abandoned; or NULL */
struct plx_peer *dev_peer_find(const struct plx_queue *q, uint64_t uid, const struct plx_addr *addr);
void dev_peer_free(struct plx_peer *peer);

#endif
