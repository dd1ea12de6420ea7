/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_probe.h - points at which a tracer can look in: USDT probes, and trace points of the EAL
 *
 * Design notes: without -Dprobes=enabled they are nothing. With it each is a call of a function that holds the
 * probe: in place, they would stand in a hundred places, and a tracer takes a second or so to attach to two of them.
 * doc/guides/tracing.md says what they show.
 */
#ifndef PLX_PROBE_H
#define PLX_PROBE_H

#include <stdint.h>

#ifdef PLX_PROBES

/** A message is sent. @param op text @param req NULL: it needs none, and is complete at once. Thread: any. */
void plx_probe_send(const char *op, const void *req, uint64_t len, uint64_t tag);

/** A message and a receive have met. @param req of the receive, or NULL: it needs none. Thread: any. */
void plx_probe_match(const void *req, uint64_t tag);

/** A request is complete. @param status 0 or -errno. Thread: any. */
void plx_probe_complete(const void *req, int status);

/** A message has to wait. @param peer its uid, or 0 @param reason text. Thread: any. */
void plx_probe_stall(uint64_t peer, const char *reason);

#define PLX_PROBE_SEND(op, req, len, tag) plx_probe_send(op, req, len, tag)
#define PLX_PROBE_MATCH(req, tag)	  plx_probe_match(req, tag)
#define PLX_PROBE_COMPLETE(req, status)	  plx_probe_complete(req, status)
#define PLX_PROBE_STALL(peer, reason)	  plx_probe_stall(peer, reason)

#else

#define PLX_PROBE_SEND(op, req, len, tag) ((void)0)
#define PLX_PROBE_MATCH(req, tag)	  ((void)0)
#define PLX_PROBE_COMPLETE(req, status)	  ((void)0)
#define PLX_PROBE_STALL(peer, reason)	  ((void)0)

#endif

#endif
