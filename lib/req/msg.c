/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * msg.c - unexpected messages: small ones contain their data, larger ones allocate it by size
 * class
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "plx_req.h"

#define CLASS_MALLOC 0xfe /* larger than every class: from the heap */

static const uint32_t class_len[PLX_MSG_CLASSES] = {1024, 4096, 8192, 16384, 32768, 65536};

static void
msg_init(void *obj, void *arg)
{
	struct plx_msg *m = obj;

	(void)arg;
	m->size_class = PLX_MSG_CLASS_INLINE;
	m->data = m->inl;
}

static void
msg_cleanup(void *obj, void *arg)
{
	struct plx_msg *m = obj;

	(void)arg;
	if (m->size_class == CLASS_MALLOC)
		plx_mem_free(m->data);
}

void
plx_msg_pools_open(struct plx_msg_pools *p)
{
	plx_pool_open(&p->msg, "msg", sizeof(struct plx_msg), 64, 0, msg_init, NULL);
	for (unsigned i = 0; i < PLX_MSG_CLASSES; i++)
		plx_pool_open(&p->data[i], "data", class_len[i], i < 3 ? 32 : 8, 0, NULL, NULL);
	p->bytes = 0;
	p->spare = NULL;
	p->spare_len = 0;
}

void
plx_msg_pools_close(struct plx_msg_pools *p)
{
	plx_mem_free(p->spare);
	plx_pool_each(&p->msg, msg_cleanup, NULL);
	plx_pool_close(&p->msg);
	for (unsigned i = 0; i < PLX_MSG_CLASSES; i++)
		plx_pool_close(&p->data[i]);
}

/* @param len bytes that are needed; it becomes what there is */
static uint8_t *
data_get(struct plx_msg_pools *p, uint64_t *len, uint8_t *size_class)
{
	uint8_t *spare = p->spare;

	for (unsigned i = 0; i < PLX_MSG_CLASSES; i++) {
		if (*len <= class_len[i]) {
			*size_class = i;
			return plx_pool_get(&p->data[i]);
		}
	}
	*size_class = CLASS_MALLOC;
	if (*len > p->spare_len)
		return plx_mem_alloc(*len);
	*len = p->spare_len;
	p->spare = NULL;
	p->spare_len = 0;
	return spare;
}

/* The larger one is kept. */
static void
large_put(struct plx_msg_pools *p, uint8_t *data, uint64_t len)
{
	if (len <= p->spare_len || len > PLX_MSG_SPARE_MAX) {
		plx_mem_free(data);
		return;
	}
	plx_mem_free(p->spare);
	p->spare = data;
	p->spare_len = len;
}

struct plx_msg *
plx_msg_get_slow(struct plx_msg_pools *p, uint64_t len)
{
	struct plx_msg *m = plx_pool_get(&p->msg);
	uint64_t room = len;
	uint8_t *data;

	if (m == NULL || len <= PLX_MSG_INLINE) {
		if (m != NULL)
			plx_msg_begin(p, m, len, 0);
		return m;
	}
	data = data_get(p, &room, &m->size_class);
	if (data == NULL) {
		m->size_class = PLX_MSG_CLASS_INLINE;
		plx_pool_put(&p->msg, m);
		return NULL;
	}
	m->data = data;
	plx_msg_begin(p, m, len, room);
	return m;
}

static void
data_put(struct plx_msg_pools *p, struct plx_msg *m)
{
	if (m->size_class == CLASS_MALLOC)
		large_put(p, m->data, plx_msg_room(m));
	else if (m->size_class == PLX_MSG_CLASS_BUF)
		m->lies.give_back(m);
	else if (m->size_class != PLX_MSG_CLASS_INLINE)
		plx_pool_put(&p->data[m->size_class], m->data);
}

int
plx_msg_grow(struct plx_msg_pools *p, struct plx_msg *m, uint64_t need, uint64_t all,
	void (*move)(const struct plx_msg *m, uint8_t *to))
{
	uint64_t room = RTE_MIN(all, PLX_MSG_GROW * plx_msg_room(m));
	uint8_t size_class;
	uint8_t *data;

	room = RTE_MAX(room, need);
	data = data_get(p, &room, &size_class);
	if (data == NULL)
		return -ENOMEM;
	move(m, data);
	data_put(p, m);
	p->bytes -= m->cost;
	m->data = data;
	m->size_class = size_class;
	m->cost = sizeof(*m) + room;
	p->bytes += m->cost;
	return 0;
}

void
plx_msg_put_slow(struct plx_msg_pools *p, struct plx_msg *m)
{
	data_put(p, m);
	m->size_class = PLX_MSG_CLASS_INLINE;
	m->data = m->inl;
	plx_msg_put(p, m);
}
