/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * probe_points.c - the probes, and the trace points that the EAL knows by name: --trace=plx.*
 */
#include <rte_trace_point_register.h>

#include <sys/sdt.h>

#include "plx_probe.h"

RTE_TRACE_POINT(trace_send, RTE_TRACE_POINT_ARGS(const char *op, const void *req, uint64_t len, uint64_t tag),
	rte_trace_point_emit_string(op); rte_trace_point_emit_ptr(req); rte_trace_point_emit_u64(len);
	rte_trace_point_emit_u64(tag);)
RTE_TRACE_POINT(trace_match, RTE_TRACE_POINT_ARGS(const void *req, uint64_t tag), rte_trace_point_emit_ptr(req);
	rte_trace_point_emit_u64(tag);)
RTE_TRACE_POINT(trace_complete, RTE_TRACE_POINT_ARGS(const void *req, int status), rte_trace_point_emit_ptr(req);
	rte_trace_point_emit_int(status);)
RTE_TRACE_POINT(trace_stall, RTE_TRACE_POINT_ARGS(uint64_t peer, const char *reason),
	rte_trace_point_emit_u64(peer); rte_trace_point_emit_string(reason);)

RTE_TRACE_POINT_REGISTER(trace_send, plx.send)
RTE_TRACE_POINT_REGISTER(trace_match, plx.match)
RTE_TRACE_POINT_REGISTER(trace_complete, plx.complete)
RTE_TRACE_POINT_REGISTER(trace_stall, plx.stall)

void
plx_probe_send(const char *op, const void *req, uint64_t len, uint64_t tag)
{
	STAP_PROBE4(pollux, send, op, req, len, tag);
	trace_send(op, req, len, tag);
}

void
plx_probe_match(const void *req, uint64_t tag)
{
	STAP_PROBE2(pollux, match, req, tag);
	trace_match(req, tag);
}

void
plx_probe_complete(const void *req, int status)
{
	STAP_PROBE2(pollux, complete, req, status);
	trace_complete(req, status);
}

void
plx_probe_stall(uint64_t peer, const char *reason)
{
	STAP_PROBE2(pollux, stall, peer, reason);
	trace_stall(peer, reason);
}
