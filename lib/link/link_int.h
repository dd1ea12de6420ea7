/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * link_int.h - between the files of lib/link
 */
#ifndef LINK_INT_H
#define LINK_INT_H

#include "plx_link.h"
#include "plx_stat.h"

/** Whether another end may be made. */
static inline bool
link_has_room(const struct plx_link *l)
{
	return l->n_made < l->n_max;
}

/* link.c */
/** It is connected, or given up. */
void link_want_end(struct plx_link_peer *p);
/** Close the connection after everything that was sent has arrived. */
void link_park(struct plx_link_peer *p);
/** The peer leaves PARKING. */
void link_park_end(struct plx_link_peer *p);

/* link_conn.c */
/** A waiting peer gets an end, and asks. It may keep waiting, or be lost. */
void link_start(struct plx_link_peer *p, uint64_t now_ns);
/** Ask a connected peer whether it is alive: by a datagram, which overtakes the messages. */
void link_call(struct plx_link_peer *p);

#endif
