/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rndv_open.c - a worker's rendezvous: its settings, its counters, its schemes
 */
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "rndv_int.h"

static const struct rndv_schemes schemes = {
	.start = {
		[RNDV_PUT] = rndv_put_start,
		[RNDV_SPLIT] = rndv_split_start,
		[RNDV_GET] = rndv_get_start,
		[RNDV_PULL] = rndv_frag_start,
		[RNDV_LIST] = rndv_where_start,
	},
	.step = {
		[RNDV_BEGIN] = rndv_begin_step,
		[RNDV_GET] = rndv_get_step,
		[RNDV_SPLIT] = rndv_split_step,
		[RNDV_DRAIN] = rndv_drain_step,
		[RNDV_HELP] = rndv_help_step,
		[RNDV_PULL] = rndv_pull_step,
		[RNDV_LIST] = rndv_where_step,
		[RNDV_PUT] = rndv_put_step,
	},
	.outlives = rndv_split_outlives,
	.split_data = rndv_split_data,
	.loan_info = rndv_loan_info,
};

#define ROW(field) PLX_STAT_ROW(struct plx_rndv_stat, field)

const struct plx_stat_row plx_rndv_stat_rows[] = {
	ROW(sends), ROW(recvs), ROW(get), ROW(split), ROW(frag), ROW(put), ROW(list),
	ROW(chunks_sent),	ROW(bytes_own), ROW(bytes_help), ROW(drop_bad_id), ROW(drop_bad_range), ROW(loans),
	ROW(loans_returned), ROW(loans_refused), ROW(taken_back), ROW(asked_again), ROW(errors),
	PLX_STAT_END,
};

void
plx_rndv_open(struct plx_rndv *r, const struct plx_conf *conf)
{
	memset(r, 0, sizeof(*r));
	r->schemes = &schemes;
	TAILQ_INIT(&r->recvs);
	TAILQ_INIT(&r->sends);
	r->scheme = plx_conf_u64(conf, PLX_CONF_RNDV_SCHEME);
	r->chunk = plx_conf_u64(conf, PLX_CONF_RNDV_CHUNK);
	r->split_min = plx_conf_u64(conf, PLX_CONF_RNDV_SPLIT_MIN);
	r->frag_max = plx_conf_u64(conf, PLX_CONF_RNDV_FRAG_MAX);
	r->put_min = plx_conf_u64(conf, PLX_CONF_RNDV_PUT_MIN);
	r->patience = rte_get_tsc_hz() * PLX_RNDV_PATIENCE_US / 1000000;
	r->gen = 1;
	LIST_INIT(&r->loans);
	r->lists = calloc(1, sizeof(*r->lists));
	if (r->lists != NULL)
		plx_pool_open(r->lists, "lists", sizeof(struct plx_rndv_list), 16, PLX_RNDV_LISTS_MAX, NULL, NULL);
}

void
plx_rndv_close(struct plx_rndv *r)
{
	rndv_loans_detach(r);
	plx_req_ids_close(&r->ids);
	if (r->lists != NULL)
		plx_pool_close(r->lists);
	free(r->lists);
}
