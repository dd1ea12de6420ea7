/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * inbox.c - messages {fn, arg} from any thread to an owner
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "plx_inbox.h"
#include "plx_mem.h"

#define INBOX_BURST 32

struct inbox_msg {
	plx_inbox_fn fn;
	void *arg;
};

int
plx_inbox_open(struct plx_inbox *in)
{
	static _Atomic uint32_t serial;
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "plx_inbox_%u",
		atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
	/* On our heap, which a forked child does not share with its parent. */
	if (plx_mem_reserve(2 * PLX_INBOX_LEN * sizeof(struct inbox_msg)) != 0)
		return -ENOMEM;
	in->ring = rte_ring_create_elem(name, sizeof(struct inbox_msg), PLX_INBOX_LEN,
		plx_mem_socket(), RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	return in->ring != NULL ? 0 : -ENOMEM;
}

void
plx_inbox_close(struct plx_inbox *in)
{
	rte_ring_free(in->ring);
	in->ring = NULL;
}

int
plx_inbox_post(struct plx_inbox *in, plx_inbox_fn fn, void *arg)
{
	struct inbox_msg msg = {fn, arg};

	return rte_ring_enqueue_elem(in->ring, &msg, sizeof(msg)) == 0 ? 0 : -EAGAIN;
}

bool
plx_inbox_empty(const struct plx_inbox *in)
{
	return rte_ring_empty(in->ring) != 0;
}

unsigned
plx_inbox_run(struct plx_inbox *in)
{
	struct inbox_msg msg[INBOX_BURST];
	unsigned n;

	n = rte_ring_sc_dequeue_burst_elem(in->ring, msg, sizeof(msg[0]), INBOX_BURST, NULL);
	for (unsigned i = 0; i < n; i++)
		msg[i].fn(msg[i].arg);
	return n;
}
