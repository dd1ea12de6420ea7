/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_waits.c - the method that lists what each worker waits for
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "plx_worker.h"
#include "rpc_int.h"
#include "rpc_stats.h"

#define WAITS_TIMEOUT_MS     300  /* for the workers to answer, if none is given */
#define WAITS_TIMEOUT_MAX_MS 5000 /* other clients wait meanwhile */

static double
wait_seconds(uint64_t ticks)
{
	return (double)ticks / (double)rte_get_tsc_hz();
}

static json_t *
wait_hex(uint64_t bits)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	return json_string(text);
}

/* The sender that a tag names; null: it names none. */
static json_t *
tag_sender(const struct plx_worker *w, const struct plx_wait_info *i)
{
	uint64_t bits = w->offload.sender_mask;

	if (bits == 0 || (i->mask & bits) != bits)
		return json_null();
	return json_integer((json_int_t)((i->tag & bits) >> __builtin_ctzll(bits)));
}

static json_t *
wait_json(const struct plx_worker *w, const struct plx_wait_info *i, uint64_t now)
{
	char uid[RPC_UID_LEN];
	json_t *out = json_pack("{s:s, s:s, s:s?, s:I, s:I}", "op", i->op, "state", i->state, "peer",
		i->peer != 0 ? rpc_uid(i->peer, uid) : NULL, "bytes", (json_int_t)i->len, "done", (json_int_t)i->done);

	if (i->mask != 0 || strcmp(i->op, "tag_recv") == 0) { /* any tag has an empty mask */
		json_object_set_new(out, "tag", wait_hex(i->tag));
		json_object_set_new(out, "mask", wait_hex(i->mask));
		json_object_set_new(out, "sender", tag_sender(w, i));
	}
	json_object_set_new(out, "age_s", i->since != 0 ? json_real(wait_seconds(now - i->since)) : json_null());
	return out;
}

static json_t *
waits_json(const struct plx_worker *w, const struct plx_wait_info *list, uint32_t n, uint64_t now)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(out, wait_json(w, &list[i], now));
	return out;
}

static json_t *
uids_json(const struct plx_worker *w)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < w->n_queues; i++) {
		char text[RPC_UID_LEN];

		json_array_append_new(out, json_string(rpc_uid(rpc_queue_uid(w->queues[i]), text)));
	}
	return out;
}

static void
waits_show(struct plx_worker *w, const struct plx_waits *waits, void *arg)
{
	uint64_t looked = __atomic_load_n(&w->waits_of.looked_ticks, __ATOMIC_RELAXED), now = rte_rdtsc();
	json_t *list = arg, *row;

	row = json_pack("{s:I, s:o, s:s, s:o, s:b, s:f}", "worker", (json_int_t)w->id, "name", rpc_worker_name(w), "mode",
		w->dedicated ? "dedicated" : "inline", "uids", uids_json(w), "answered", (int)(waits != NULL), "turn_age_s",
		looked < now ? wait_seconds(now - looked) : 0.0);
	if (waits != NULL) {
		json_object_set_new(row, "quiet_s", json_real(wait_seconds(waits->quiet_ticks)));
		json_object_set_new(row, "n_waits", json_integer((json_int_t)waits->n_waits));
		json_object_set_new(row, "waits", waits_json(w, waits->waits, waits->n, waits->ticks));
		json_object_set_new(row, "n_unexpected", json_integer((json_int_t)waits->n_kept));
		json_object_set_new(row, "unexpected", waits_json(w, waits->kept, waits->n_msgs, waits->ticks));
	}
	json_array_insert_new(list, 0, row); /* the youngest worker comes first */
}

int
rpc_worker_get_waits(const json_t *params, json_t **result, char *err, void *arg)
{
	json_int_t timeout_ms = WAITS_TIMEOUT_MS;
	const json_t *id = NULL;
	int rc = plx_rpc_unpack(params, err, "{s?o, s?I}", "worker", &id, "timeout_ms", &timeout_ms);

	(void)arg;
	if (rc < 0)
		return rc;
	if (id != NULL && (!json_is_integer(id) || json_integer_value(id) < 0))
		return rpc_not_worker(id, err);
	if (timeout_ms < 1 || timeout_ms > WAITS_TIMEOUT_MAX_MS) {
		snprintf(err, PLX_RPC_ERR_MAX, "\"timeout_ms\" must be 1 to %d", WAITS_TIMEOUT_MAX_MS);
		return -ERANGE;
	}
	*result = json_array();
	plx_waits_each(id == NULL ? UINT64_MAX : (uint64_t)json_integer_value(id), (uint32_t)timeout_ms, waits_show, *result);
	return id == NULL || json_array_size(*result) != 0 ? 0 : rpc_not_worker(id, err);
}
