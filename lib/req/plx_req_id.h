/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_req_id.h - names of requests that a peer answers
 *
 * A name is an index and a generation, and is checked on each use: a peer that names a request which
 * has completed finds none. Thread of all functions: owner.
 */
#ifndef PLX_REQ_ID_H
#define PLX_REQ_ID_H

#include "plx_req.h"

struct plx_req_ids {
	struct {
		struct plx_req *req;
		uint32_t gen;
		uint32_t next_free;
	} *v;
	uint32_t n;
	uint32_t first_free; /* 0: none; index 0 is never used */
};

#define PLX_REQ_IDS_MAX (1u << 24)

/** Slow path of plx_req_id_get(): none is free. */
int plx_req_ids_grow(struct plx_req_ids *ids);

/** Name a request. @return 0, or -ENOMEM. Allocates: heap, when the table doubles. */
static inline int
plx_req_id_get(struct plx_req_ids *ids, struct plx_req *req, struct plx_wire_id *out)
{
	uint32_t i;

	if (unlikely(ids->first_free == 0) && plx_req_ids_grow(ids) != 0)
		return -ENOMEM;
	i = ids->first_free;
	ids->first_free = ids->v[i].next_free;
	ids->v[i].req = req;
	out->index = i;
	out->gen = ids->v[i].gen;
	return 0;
}

/** @return the request, or NULL for a name that is not in use. */
static inline struct plx_req *
plx_req_id_find(const struct plx_req_ids *ids, struct plx_wire_id id)
{
	if (id.index == 0 || id.index >= ids->n || ids->v[id.index].gen != id.gen)
		return NULL;
	return ids->v[id.index].req;
}

/** Forget a name. */
static inline void
plx_req_id_put(struct plx_req_ids *ids, struct plx_wire_id id)
{
	PLX_ASSERT(plx_req_id_find(ids, id) != NULL);
	ids->v[id.index].req = NULL;
	ids->v[id.index].gen++;
	ids->v[id.index].next_free = ids->first_free;
	ids->first_free = id.index;
}

void plx_req_ids_close(struct plx_req_ids *ids);

#endif
