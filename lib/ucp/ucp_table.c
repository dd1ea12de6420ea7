/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_table.c - protocols by length, for UCX_PROTO_INFO and UCX_PRINT_TRANSPORT_TABLES
 *
 * Design notes
 * - The tables go where the log goes, at any level, since they were requested. A table of an ep
 *   shows what its worker would do with contiguous host memory; a peer that is not connected yet
 *   may still turn out to refuse reads of its memory, and then fragments are used.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ucp_int.h"

#define NO_END UINT64_MAX

/* UCX's words for a switch of the output: y, n, auto, or a pattern of operations. */
static const char *
wanted(const struct plx_conf *conf, const char *name, char *buf, size_t len)
{
	static const char *const yes[] = {"y", "yes", "on", "1", "used", NULL};
	static const char *const no[] = {"n", "no", "off", "0", "", NULL};

	plx_conf_format_ucx(conf, name, buf, len);
	if (strcmp(buf, "auto") == 0)
		return plx_log_get_level() >= RTE_LOG_DEBUG ? "*" : NULL;
	for (unsigned i = 0; yes[i] != NULL; i++)
		if (strcmp(buf, yes[i]) == 0)
			return "*";
	for (unsigned i = 0; no[i] != NULL; i++)
		if (strcmp(buf, no[i]) == 0)
			return NULL;
	return buf;
}

struct table {
	FILE *f;
	const char *pattern; /* of "tag DEVICE/memory" */
	char device[64];
};

static void
len_text(uint64_t len, char *buf, size_t buf_len)
{
	if (len == NO_END)
		snprintf(buf, buf_len, "inf");
	else
		snprintf(buf, buf_len, "%" PRIu64, len);
}

/* Lengths from..to, none if from is above to. */
static void
row(const struct table *t, const char *op, uint64_t from, uint64_t to, const char *how)
{
	char what[96], last[24], lens[48];

	snprintf(what, sizeof(what), "%s %s", op, t->device);
	if (from > to || fnmatch(t->pattern, what, 0) != 0)
		return;
	len_text(to, last, sizeof(last));
	snprintf(lens, sizeof(lens), "%" PRIu64 "..%s", from, last);
	fprintf(t->f, "pollux: | %-7s | %-20s | %-48s | %s\n", op, lens, how, t->device);
}

/* Rendezvous of at least from bytes: as recv_start() of lib/rndv chooses. */
static void
rndv_rows(const struct table *t, const char *op, const struct plx_conf *conf, const struct plx_ep_info *to,
	uint64_t from)
{
	uint64_t scheme = plx_conf_u64(conf, PLX_CONF_RNDV_SCHEME);
	uint64_t frag_max = plx_conf_u64(conf, PLX_CONF_RNDV_FRAG_MAX);
	uint64_t put_min = plx_conf_u64(conf, PLX_CONF_RNDV_PUT_MIN);
	uint64_t split_min = plx_conf_u64(conf, PLX_CONF_RNDV_SPLIT_MIN);
	bool get = (to->caps & PLX_DEV_GET) && (to->caps & PLX_DEV_SHARED);

	if (scheme == PLX_RNDV_FRAG || (!get && (to->caps & PLX_DEV_KEYS) == 0)) {
		row(t, op, from, NO_END, "rendezvous: fragments");
		return;
	}
	if (to->caps & PLX_DEV_KEYS) {
		if (from < put_min) {
			row(t, op, from, put_min - 1, "rendezvous: fragments");
			from = put_min;
		}
		row(t, op, from, NO_END, "rendezvous: the sender writes by the device");
		return;
	}
	if (scheme == PLX_RNDV_AUTO && frag_max > 0 && from <= frag_max) {
		row(t, op, from, frag_max, "rendezvous: fragments");
		from = frag_max + 1;
	}
	if (scheme == PLX_RNDV_GET || (to->caps & PLX_DEV_PUT) == 0) {
		row(t, op, from, NO_END, "rendezvous: the receiver reads");
		return;
	}
	if (from < split_min) {
		row(t, op, from, split_min - 1, "rendezvous: the receiver reads");
		from = split_min;
	}
	row(t, op, from, NO_END, "rendezvous: the receiver reads, the sender helps");
}

static void
eager_rows(const struct table *t, const char *op, uint64_t whole, uint64_t end)
{
	if (end == 0)
		return;
	if (whole >= end)
		whole = end - 1;
	row(t, op, 0, whole, "eager: one message");
	row(t, op, whole + 1, end - 1, "eager: fragments");
}

static void
rma_rows(const struct table *t, const struct plx_conf *conf, const struct plx_ep_info *to,
	uint64_t features)
{
	uint64_t scheme = plx_conf_u64(conf, PLX_CONF_RMA_SCHEME);
	bool dev = scheme != PLX_RMA_MESSAGE && (to->caps & (PLX_DEV_GET | PLX_DEV_PUT)) != 0;
	bool key = scheme != PLX_RMA_MESSAGE && (to->caps & PLX_DEV_KEYS) != 0;
	bool map = scheme == PLX_RMA_AUTO && (to->caps & PLX_DEV_SHARED) != 0;
	const char *rest = key ? "the device, by the memory's key" : dev ? "the device" : "messages";
	char how[64];

	snprintf(how, sizeof(how), "%s%s", map ? "mapped memory is copied, else " : "", rest);
	if (features & UCP_FEATURE_RMA)
		row(t, "put/get", 0, NO_END, how);
	snprintf(how, sizeof(how), "%s%s", map ? "mapped memory by the processor, else " : "",
		key ? "the device" : "messages");
	if (features & (UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64))
		row(t, "atomic", 4, 8, how);
}

/* The features of the context. */
static void
ep_rows(const struct table *t, const struct ucp_ep *ep, const struct plx_ep_info *to)
{
	const struct plx_conf *conf = &ep->worker->context->conf;
	uint64_t features = ep->worker->context->features;
	uint64_t end = to->eager_end;

	if (features & UCP_FEATURE_TAG) {
		eager_rows(t, "tag", to->mtu - sizeof(struct plx_wire_eager), end);
		rndv_rows(t, "tag", conf, to, end);
	}
	if (features & UCP_FEATURE_AM) {
		eager_rows(t, "am", to->mtu - sizeof(struct plx_wire_am), end);
		rndv_rows(t, "am", conf, to, end);
	}
	if (features & UCP_FEATURE_STREAM) {
		eager_rows(t, "stream", to->mtu - sizeof(struct plx_wire_stream), end);
		rndv_rows(t, "stream", conf, to, end);
	}
	rma_rows(t, conf, to, features);
}

void
ucp_table_ep(ucp_ep_h ep)
{
	const struct plx_conf *conf = &ep->worker->context->conf;
	char info[256], tables[16];
	const char *lanes = wanted(conf, "PRINT_TRANSPORT_TABLES", tables, sizeof(tables));
	struct table t = {.pattern = wanted(conf, "PROTO_INFO", info, sizeof(info))};
	struct plx_ep_info peer;

	if (ep->shown || (lanes == NULL && t.pattern == NULL))
		return;
	plx_worker_ep_info(&ep->user, &peer);
	if (!peer.is_known)
		return;
	ep->shown = true;
	t.f = rte_log_get_stream();
	snprintf(t.device, sizeof(t.device), "%s/%s", peer.device, peer.port != NULL ? peer.port : "memory");
	fprintf(t.f, "pollux: endpoint %s to peer %016" PRIx64 " by %s\n",
		ep->name[0] != '\0' ? ep->name : "(no name)", peer.uid, t.device);
	if (t.pattern != NULL)
		ep_rows(&t, ep, &peer);
	fflush(t.f);
}

void
ucp_table_context(ucp_context_h c)
{
	const char *list = plx_conf_str(&c->conf, PLX_CONF_DEVICES);
	char buf[16], name[PLX_CONF_STR_MAX];
	struct plx_dev_port port;
	FILE *f;

	if (wanted(&c->conf, "PRINT_TRANSPORT_TABLES", buf, sizeof(buf)) == NULL)
		return;
	f = rte_log_get_stream();
	fprintf(f, "pollux: devices of context %s\n", c->name);
	while (plx_conf_next(&list, name, sizeof(name)))
		for (unsigned i = 0; plx_dev_look(name, &c->conf, i, &port) == 0; i++)
			fprintf(f, "pollux: | %s/%s%s\n", name, port.name[0] != '\0' ? port.name : "memory",
				port.up ? "" : " (down)");
	fflush(f);
}
