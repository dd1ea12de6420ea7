/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mbuf_test.c - plx_mbuf.h: chains as iov, and messages kept as mbufs
 *
 * The EAL is the program's. The functions that return a message are replaced, and count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mbuf_util.h"

#define ROOM 1000u

static unsigned n_released, n_returned;
static const void *released;

void __wrap_ucp_am_data_release(ucp_worker_h worker, void *data);
int __wrap_cci_return_event(cci_event_t *event);

void
__wrap_ucp_am_data_release(ucp_worker_h worker, void *data)
{
	(void)worker;
	released = data;
	n_released++;
}

int
__wrap_cci_return_event(cci_event_t *event)
{
	released = event;
	n_returned++;
	return CCI_SUCCESS;
}

static struct rte_mbuf *
chain(unsigned n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	CU_ASSERT_FATAL(m != NULL);
	for (unsigned i = 1; i < n; i++)
		CU_ASSERT_FATAL(rte_pktmbuf_chain(m, rte_pktmbuf_alloc(pool)) == 0);
	return m;
}

static void
a_chain_is_an_iov_of_its_segments(void)
{
	struct rte_mbuf *m = chain(3);
	ucp_dt_iov_t iov[3];
	unsigned i = 0;

	CU_ASSERT_EQUAL(plx_mbuf_room_iov(m, iov, 2), -EMSGSIZE);
	CU_ASSERT_EQUAL_FATAL(plx_mbuf_room_iov(m, iov, 3), 3);
	for (struct rte_mbuf *s = m; s != NULL; s = s->next, i++) {
		CU_ASSERT_PTR_EQUAL(iov[i].buffer, rte_pktmbuf_mtod(s, void *));
		CU_ASSERT_EQUAL(iov[i].length, ROOM);
	}
	CU_ASSERT_EQUAL(plx_mbuf_set_len(m, 3 * ROOM + 1), -EMSGSIZE);
	CU_ASSERT_EQUAL(m->pkt_len, 0);
	CU_ASSERT_EQUAL(plx_mbuf_set_len(m, ROOM + 1), 0);
	CU_ASSERT_EQUAL(plx_mbuf_iov(m, iov, 2), -EMSGSIZE);
	CU_ASSERT_EQUAL_FATAL(plx_mbuf_iov(m, iov, 3), 3);
	CU_ASSERT(iov[0].length == ROOM && iov[1].length == 1 && iov[2].length == 0);
	CU_ASSERT_EQUAL(m->pkt_len, ROOM + 1);
	CU_ASSERT_EQUAL(plx_mbuf_set_len(m, 3 * ROOM), 0); /* all of it */
	CU_ASSERT_EQUAL(rte_mbuf_check(m, 1, &(const char *){NULL}), 0);
	rte_pktmbuf_free(m);
}

static void
the_last_mbuf_returns_the_message(void)
{
	struct rte_mbuf *m = chain(1), *clone;
	char data[100] = "of a message";

	n_released = 0;
	CU_ASSERT_EQUAL_FATAL(plx_mbuf_keep_am(m, kept, (ucp_worker_h)data, data, sizeof(data)), 0);
	CU_ASSERT_PTR_EQUAL(rte_pktmbuf_mtod(m, void *), data);
	CU_ASSERT(m->data_len == sizeof(data) && m->pkt_len == sizeof(data) && RTE_MBUF_HAS_EXTBUF(m));
	clone = rte_pktmbuf_clone(m, pool);
	CU_ASSERT_PTR_NOT_NULL_FATAL(clone);
	rte_pktmbuf_free(m);
	CU_ASSERT_EQUAL(n_released, 0); /* the clone refers to it yet */
	CU_ASSERT_STRING_EQUAL(rte_pktmbuf_mtod(clone, char *), "of a message");
	rte_pktmbuf_free(clone);
	CU_ASSERT_EQUAL(n_released, 1);
	CU_ASSERT_PTR_EQUAL(released, data);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(kept), 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 0);
}

static void
an_event_is_returned_once(void)
{
	union cci_event event;
	struct rte_mbuf *m = chain(1);
	char data[8] = "event";

	n_returned = 0;
	memset(&event, 0, sizeof(event));
	memcpy((void *)(uintptr_t)&event.recv.ptr, &(void *){data}, sizeof(void *));
	memcpy((void *)(uintptr_t)&event.recv.len, &(uint32_t){sizeof(data)}, sizeof(uint32_t));
	CU_ASSERT_EQUAL_FATAL(plx_mbuf_keep_event(m, kept, &event), 0);
	CU_ASSERT_STRING_EQUAL(rte_pktmbuf_mtod(m, char *), "event");
	rte_pktmbuf_free(m);
	CU_ASSERT_EQUAL(n_returned, 1);
	CU_ASSERT_PTR_EQUAL(released, &event);
}

static void
what_cannot_be_kept_changes_nothing(void)
{
	struct rte_mbuf *m = chain(1);
	char data[8];
	void *all[64];
	unsigned n = 0;

	n_released = 0;
	CU_ASSERT_EQUAL(plx_mbuf_keep_am(m, kept, (ucp_worker_h)data, data, 0), -EMSGSIZE);
	CU_ASSERT_EQUAL(plx_mbuf_keep_am(m, kept, (ucp_worker_h)data, data, UINT16_MAX + 1u), -EMSGSIZE);
	CU_ASSERT_EQUAL(plx_mbuf_keep_am(m, kept, (ucp_worker_h)data, NULL, 8), -EMSGSIZE);
	while (n < 64 && rte_mempool_get(kept, &all[n]) == 0)
		n++;
	CU_ASSERT_EQUAL(plx_mbuf_keep_am(m, kept, (ucp_worker_h)data, data, 8), -ENOBUFS);
	while (n > 0)
		rte_mempool_put(kept, all[--n]);
	CU_ASSERT(!RTE_MBUF_HAS_EXTBUF(m) && m->data_len == 0);
	rte_pktmbuf_free(m);
	CU_ASSERT_EQUAL(n_released, 0);
}

int
main(void)
{
	CU_TestInfo tests[] = {
		{(char *)"a_chain_is_an_iov_of_its_segments", a_chain_is_an_iov_of_its_segments},
		{(char *)"the_last_mbuf_returns_the_message", the_last_mbuf_returns_the_message},
		{(char *)"an_event_is_returned_once", an_event_is_returned_once},
		{(char *)"what_cannot_be_kept_changes_nothing", what_cannot_be_kept_changes_nothing},
		CU_TEST_INFO_NULL,
	};

	return mbuf_run("mbuf", tests, 15, ROOM);
}
