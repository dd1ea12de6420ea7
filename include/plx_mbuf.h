/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_mbuf.h - mbufs of DPDK as payload of UCP and CCI: for programs with an EAL of their own
 *
 * - Send a chain: plx_mbuf_iov(), then the datatype UCP_DATATYPE_IOV.
 * - Receive into a chain: plx_mbuf_room_iov(), then plx_mbuf_set_len() with the received length.
 * - Keep a received message as an mbuf without a copy: plx_mbuf_keep_am(), plx_mbuf_keep_event().
 *   The last rte_pktmbuf_free() returns the message to the library.
 *
 * Everything is inline: the program needs no other library than those that it uses anyway.
 */
#ifndef PLX_MBUF_H
#define PLX_MBUF_H

#include <errno.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cci.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Describe the data of a chain.
 * @param iov filled in; belongs to the caller, and stays until the send completes
 * @param max entries of iov
 * @return the number of entries: m->nb_segs; or -EMSGSIZE
 * Thread: the mbuf's owner. Blocks: never. Allocates: no.
 */
static inline int
plx_mbuf_iov(const struct rte_mbuf *m, ucp_dt_iov_t *iov, unsigned max)
{
	unsigned n = 0;

	for (; m != NULL; m = m->next, n++) {
		if (n == max)
			return -EMSGSIZE;
		iov[n].buffer = rte_pktmbuf_mtod(m, void *);
		iov[n].length = m->data_len;
	}
	return (int)n;
}

/**
 * Describe the room of a chain, from each segment's data on, for a receive.
 * @param iov as in plx_mbuf_iov()
 * @return the number of entries, or -EMSGSIZE
 * Thread: the mbuf's owner. Blocks: never. Allocates: no.
 */
static inline int
plx_mbuf_room_iov(const struct rte_mbuf *m, ucp_dt_iov_t *iov, unsigned max)
{
	unsigned n = 0;

	for (; m != NULL; m = m->next, n++) {
		if (n == max)
			return -EMSGSIZE;
		iov[n].buffer = rte_pktmbuf_mtod(m, void *);
		iov[n].length = (size_t)(m->buf_len - m->data_off);
	}
	return (int)n;
}

/**
 * Set the lengths of a chain that was received into: the first segments are full.
 * @param len bytes
 * @return 0, or -EMSGSIZE: len is more than the room, and nothing has changed
 * Thread: the mbuf's owner. Blocks: never. Allocates: no.
 */
static inline int
plx_mbuf_set_len(struct rte_mbuf *m, uint32_t len)
{
	const struct rte_mbuf *s;
	uint64_t room = 0;

	for (s = m; s != NULL; s = s->next)
		room += (uint64_t)(s->buf_len - s->data_off);
	if (len > room)
		return -EMSGSIZE;
	m->pkt_len = len;
	for (; m != NULL; m = m->next) {
		m->data_len = (uint16_t)RTE_MIN(len, (uint32_t)(m->buf_len - m->data_off));
		len -= m->data_len;
	}
	return 0;
}

/** A message that an mbuf refers to; from a pool of plx_mbuf_kept_pool(). */
struct plx_mbuf_kept {
	struct rte_mbuf_ext_shared_info info;
	void *data;
	ucp_worker_h worker; /* NULL: it is an event of CCI */
	cci_event_t *event;
};

/**
 * Make a pool of descriptors; rte_mempool_free() frees it when all mbufs are freed.
 * @param n messages that may be kept at once
 * @return NULL: rte_errno says why. Thread: control. Blocks: may. Allocates: the EAL's heap.
 */
static inline struct rte_mempool *
plx_mbuf_kept_pool(const char *name, unsigned n)
{
	return rte_mempool_create(name, n, sizeof(struct plx_mbuf_kept), 0, 0, NULL, NULL, NULL, NULL,
		(int)rte_socket_id(), 0);
}

/* The last mbuf that refers to the message is freed. */
static inline void
plx_mbuf_kept_free(void *addr, void *arg)
{
	struct plx_mbuf_kept *k = (struct plx_mbuf_kept *)arg;

	(void)addr;
	if (k->worker != NULL)
		ucp_am_data_release(k->worker, k->data);
	else
		(void)cci_return_event(k->event);
	rte_mempool_put(rte_mempool_from_obj(k), k);
}

/* The rest of plx_mbuf_keep_x(). */
static inline int
plx_mbuf_keep(struct rte_mbuf *m, struct rte_mempool *kept, const struct plx_mbuf_kept *what, size_t len)
{
	struct plx_mbuf_kept *k;
	void *obj;

	if (len == 0 || len > UINT16_MAX || what->data == NULL)
		return -EMSGSIZE;
	if (rte_mempool_get(kept, &obj) != 0)
		return -ENOBUFS;
	k = (struct plx_mbuf_kept *)obj;
	k->data = what->data;
	k->worker = what->worker;
	k->event = what->event;
	k->info.free_cb = plx_mbuf_kept_free;
	k->info.fcb_opaque = k;
	rte_mbuf_ext_refcnt_set(&k->info, 1);
	rte_pktmbuf_attach_extbuf(m, k->data, RTE_BAD_IOVA, (uint16_t)len, &k->info);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	return 0;
}

/**
 * Keep the data of an active message in an mbuf, without a copy. To be called in the handler, for
 * data with UCP_AM_RECV_ATTR_FLAG_DATA; the handler then returns UCS_INPROGRESS.
 * @param m an mbuf without data, as rte_pktmbuf_alloc() returns it; its own buffer is not used
 * @param kept of plx_mbuf_kept_pool()
 * @return 0; -EMSGSIZE it is empty, or longer than an mbuf can be (65,535 bytes); -ENOBUFS no
 *   descriptor. After an error copy the data, or take no message.
 * Thread: the worker's; the last rte_pktmbuf_free() as well. Blocks: never. Allocates: from kept.
 */
static inline int
plx_mbuf_keep_am(struct rte_mbuf *m, struct rte_mempool *kept, ucp_worker_h worker, void *data, size_t len)
{
	struct plx_mbuf_kept what;

	what.data = data;
	what.worker = worker;
	what.event = NULL;
	return plx_mbuf_keep(m, kept, &what, len);
}

/**
 * Keep the message of a CCI_EVENT_RECV in an mbuf, without a copy. The event then belongs to the
 * mbuf: do not return it. It takes one of the endpoint's receive buffers until then.
 * Other parameters and errors: as plx_mbuf_keep_am().
 * Thread: any; the last rte_pktmbuf_free() as well. Blocks: never. Allocates: from kept.
 */
static inline int
plx_mbuf_keep_event(struct rte_mbuf *m, struct rte_mempool *kept, cci_event_t *event)
{
	struct plx_mbuf_kept what;

	what.worker = NULL;
	what.data = (void *)(uintptr_t)event->recv.ptr;
	what.event = event;
	return plx_mbuf_keep(m, kept, &what, event->recv.len);
}

#ifdef __cplusplus
}
#endif

#endif
