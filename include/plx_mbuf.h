/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_mbuf.h - mbufs of DPDK as payload of UCP and CCI: for programs with an EAL of their own
 *
 * - Send a chain: plx_mbuf_iov(), then the datatype UCP_DATATYPE_IOV.
 * - Receive into a chain: plx_mbuf_room_iov(), then plx_mbuf_set_len() with the received length.
 * - Keep a received message as an mbuf without a copy: plx_mbuf_keep_am(), plx_mbuf_keep_event().
 *   The last rte_pktmbuf_free() returns the message to the library.
 * - Read a long message where it lies in its sender's memory: plx_mbuf_loan_am(). The last
 *   rte_pktmbuf_free() lets the send complete.
 * - All of that for active messages, with a copy where it can't be: plx_mbuf_recv_am().
 *
 * Everything is inline: the program needs no other library than those that it uses anyway.
 */
#ifndef PLX_MBUF_H
#define PLX_MBUF_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cci.h>
#include <plx_loan.h>
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
	ucp_worker_h worker; /* NULL: it is an event of CCI, or a loan */
	cci_event_t *event;
	plx_loan_h loan;
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
	else if (k->loan != NULL)
		plx_loan_return(k->loan);
	else
		(void)cci_return_event(k->event);
	rte_mempool_put(rte_mempool_from_obj(k), k);
}

/* A descriptor of the pool refers to a message. */
static inline struct plx_mbuf_kept *
plx_mbuf_kept_fill(void *obj, const struct plx_mbuf_kept *what)
{
	struct plx_mbuf_kept *k = (struct plx_mbuf_kept *)obj;

	k->data = what->data;
	k->worker = what->worker;
	k->event = what->event;
	k->loan = what->loan;
	k->info.free_cb = plx_mbuf_kept_free;
	k->info.fcb_opaque = k;
	return k;
}

/* An mbuf refers to len bytes of a message. */
static inline void
plx_mbuf_attach_one(struct rte_mbuf *m, struct plx_mbuf_kept *k, void *at, size_t len)
{
	rte_pktmbuf_attach_extbuf(m, at, RTE_BAD_IOVA, (uint16_t)len, &k->info);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
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
	k = plx_mbuf_kept_fill(obj, what);
	rte_mbuf_ext_refcnt_set(&k->info, 1);
	plx_mbuf_attach_one(m, k, k->data, len);
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
	what.loan = NULL;
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
	what.loan = NULL;
	return plx_mbuf_keep(m, kept, &what, event->recv.len);
}

#define PLX_MBUF_LOAN_LEN 65472u /* bytes of a loan in an mbuf: whole cache lines */

/* Free the mbufs from m on that are not used; those before it are. */
static inline void
plx_mbuf_free_rest(struct rte_mbuf *m)
{
	while (m != NULL) {
		struct rte_mbuf *next = m->next;

		m->next = NULL;
		rte_pktmbuf_free_seg(m);
		m = next;
	}
}

/* @return n mbufs of a pool, linked by next; or NULL */
static inline struct rte_mbuf *
plx_mbuf_alloc_some(struct rte_mempool *pool, size_t n)
{
	struct rte_mbuf *list = NULL;

	for (; n > 0; n--) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		if (m == NULL) {
			plx_mbuf_free_rest(list);
			return NULL;
		}
		m->next = list;
		list = m;
	}
	return list;
}

/* Attach the pieces of a loan to mbufs, of which there are enough. */
static inline void
plx_mbuf_attach(struct rte_mbuf *m, struct plx_mbuf_kept *k, const ucp_dt_iov_t *iov, size_t n_iov)
{
	struct rte_mbuf *head = m, *last = m;
	uint16_t n = 0;

	for (size_t i = 0; i < n_iov; i++) {
		for (size_t done = 0, len; done < iov[i].length; done += len) {
			len = RTE_MIN(iov[i].length - done, (size_t)PLX_MBUF_LOAN_LEN);
			plx_mbuf_attach_one(m, k, (char *)iov[i].buffer + done, len);
			head->pkt_len += (uint32_t)len;
			n++;
			last = m;
			m = m->next;
		}
	}
	last->next = NULL;
	head->nb_segs = n;
	rte_mbuf_ext_refcnt_set(&k->info, n);
	plx_mbuf_free_rest(m);
}

/**
 * Refer to the data of an announced active message where it lies in its sender's memory
 * (plx_loan.h), with an mbuf for every 65,472 bytes. It may be read, not written. The send completes with the
 * last rte_pktmbuf_free(), by which the chain's descriptors are freed as well.
 * @param m out: the chain
 * @param pool of mbufs, whose own buffers are not used
 * @param kept of plx_mbuf_kept_pool()
 * @param data_desc of the handler, with UCP_AM_RECV_ATTR_FLAG_RNDV @param len of the message
 * @return 0; or nothing has changed, and ucp_am_recv_data_nbx() fetches it: -EOPNOTSUPP it is not
 *   mapped here, see plx_loan_take(); -ENOBUFS no mbufs, no descriptor, or too many loans; -EMSGSIZE
 *   more than an mbuf can count (4 GiB)
 * Thread: the worker's; the last rte_pktmbuf_free() as well. Blocks: as plx_loan_take().
 * Allocates: from pool and kept, and heap.
 */
static inline int
plx_mbuf_loan_am(struct rte_mbuf **m, struct rte_mempool *pool, struct rte_mempool *kept, ucp_worker_h worker,
	void *data_desc, size_t len)
{
	size_t n = len / PLX_MBUF_LOAN_LEN + PLX_LOAN_MAX_IOV;
	ucp_dt_iov_t iov[PLX_LOAN_MAX_IOV];
	struct plx_mbuf_kept what, *k;
	struct rte_mbuf *list;
	ucs_status_t status;
	plx_loan_h loan;
	void *obj;

	if (len > UINT32_MAX || n > UINT16_MAX)
		return -EMSGSIZE;
	if (rte_mempool_get(kept, &obj) != 0)
		return -ENOBUFS;
	list = plx_mbuf_alloc_some(pool, n);
	status = list != NULL ? plx_loan_take(worker, data_desc, &loan) : UCS_ERR_NO_RESOURCE;
	if (status != UCS_OK) {
		plx_mbuf_free_rest(list);
		rte_mempool_put(kept, obj);
		return status == UCS_ERR_UNSUPPORTED ? -EOPNOTSUPP : -ENOBUFS;
	}
	what.data = NULL;
	what.worker = NULL;
	what.event = NULL;
	what.loan = loan;
	k = plx_mbuf_kept_fill(obj, &what);
	plx_mbuf_attach(list, k, iov, plx_loan_iov(loan, iov, PLX_LOAN_MAX_IOV));
	*m = list;
	return 0;
}

/**
 * Whether what was read of a chain of plx_mbuf_loan_am() is what was sent. @return as
 * plx_loan_check(); UCS_OK for any other mbuf. Thread: the worker's.
 */
static inline ucs_status_t
plx_mbuf_check(const struct rte_mbuf *m)
{
	const struct plx_mbuf_kept *k;

	if (!RTE_MBUF_HAS_EXTBUF(m) || m->shinfo->free_cb != plx_mbuf_kept_free)
		return UCS_OK;
	k = (const struct plx_mbuf_kept *)m->shinfo->fcb_opaque;
	return k->loan != NULL ? plx_loan_check(k->loan) : UCS_OK;
}

/** How the data of a message has come into its mbuf. */
enum plx_mbuf_how {
	PLX_MBUF_COPIED, /* into the pool's buffers */
	PLX_MBUF_KEPT,	 /* it is the library's buffer: plx_mbuf_keep_am() */
	PLX_MBUF_LOANED, /* it is the sender's: plx_mbuf_loan_am() */
};

/** A receiver of active messages as mbufs; belongs to the program, which fills it in. */
struct plx_mbuf_receiver {
	ucp_worker_h worker;
	struct rte_mempool *pool; /* of mbufs with room for data */
	struct rte_mempool *kept; /* of plx_mbuf_kept_pool(); NULL: all is copied */
	/* A message is there: m belongs to the program. Or it is lost: status is not UCS_OK, and m NULL. */
	void (*done)(struct plx_mbuf_receiver *r, struct rte_mbuf *m, ucs_status_t status, enum plx_mbuf_how how);
	void *arg;
};

/* A message that is being copied; then its iov. */
struct plx_mbuf_fetch {
	struct plx_mbuf_receiver *r;
	struct rte_mbuf *m;
};

/* @return a chain of the pool with room for len bytes, or NULL; n: its mbufs */
static inline struct rte_mbuf *
plx_mbuf_room(struct rte_mempool *pool, size_t len, size_t *n)
{
	uint16_t room = (uint16_t)(rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM);
	struct rte_mbuf *m;

	*n = len == 0 ? 1 : (len + room - 1) / room;
	if (*n > UINT16_MAX)
		return NULL;
	m = plx_mbuf_alloc_some(pool, *n);
	if (m != NULL)
		m->nb_segs = (uint16_t)*n;
	return m;
}

static inline void
plx_mbuf_fetched(void *request, ucs_status_t status, size_t len, void *arg)
{
	struct plx_mbuf_fetch *f = (struct plx_mbuf_fetch *)arg;
	struct plx_mbuf_receiver *r = f->r;
	struct rte_mbuf *m = f->m;

	free(f);
	if (status == UCS_OK && plx_mbuf_set_len(m, (uint32_t)len) != 0)
		status = UCS_ERR_MESSAGE_TRUNCATED;
	if (status != UCS_OK) {
		rte_pktmbuf_free(m);
		m = NULL;
	}
	r->done(r, m, status, PLX_MBUF_COPIED);
	if (request != NULL)
		ucp_request_free(request);
}

/* Fetch an announced message into mbufs of the pool. @return the handler's result */
static inline ucs_status_t
plx_mbuf_fetch_am(struct plx_mbuf_receiver *r, void *data_desc, size_t len)
{
	ucp_request_param_t param;
	struct plx_mbuf_fetch *f;
	ucs_status_ptr_t req;
	struct rte_mbuf *m;
	ucp_dt_iov_t *iov;
	size_t n, got = 0;

	m = plx_mbuf_room(r->pool, len, &n);
	f = m != NULL ? (struct plx_mbuf_fetch *)malloc(sizeof(*f) + n * sizeof(*iov)) : NULL;
	if (f == NULL) {
		rte_pktmbuf_free(m);
		return UCS_ERR_NO_MEMORY; /* the sender's status, too */
	}
	f->r = r;
	f->m = m;
	iov = (ucp_dt_iov_t *)(void *)(f + 1);
	(void)plx_mbuf_room_iov(m, iov, (unsigned)n);
	memset(&param, 0, sizeof(param));
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
		UCP_OP_ATTR_FIELD_RECV_INFO;
	param.datatype = UCP_DATATYPE_IOV;
	param.cb.recv_am = plx_mbuf_fetched;
	param.user_data = f;
	param.recv_info.length = &got;
	req = ucp_am_recv_data_nbx(r->worker, data_desc, iov, n, &param);
	if (!UCS_PTR_IS_PTR(req)) /* it is over already */
		plx_mbuf_fetched(NULL, UCS_PTR_STATUS(req), got, f);
	return UCS_INPROGRESS;
}

/* Data that is here only during the handler, or can't be kept. */
static inline ucs_status_t
plx_mbuf_copy_am(struct plx_mbuf_receiver *r, const void *data, size_t len)
{
	const char *from = (const char *)data;
	struct rte_mbuf *m, *s;
	size_t n;

	m = plx_mbuf_room(r->pool, len, &n);
	if (m == NULL || plx_mbuf_set_len(m, (uint32_t)len) != 0) {
		rte_pktmbuf_free(m);
		r->done(r, NULL, UCS_ERR_NO_MEMORY, PLX_MBUF_COPIED);
		return UCS_OK;
	}
	for (s = m; s != NULL; s = s->next) {
		memcpy(rte_pktmbuf_mtod(s, void *), from, s->data_len);
		from += s->data_len;
	}
	r->done(r, m, UCS_OK, PLX_MBUF_COPIED);
	return UCS_OK;
}

/* @return whether it is */
static inline int
plx_mbuf_kept_am(struct plx_mbuf_receiver *r, void *data, size_t len)
{
	struct rte_mbuf *m = r->kept != NULL ? rte_pktmbuf_alloc(r->pool) : NULL;

	if (m == NULL || plx_mbuf_keep_am(m, r->kept, r->worker, data, len) != 0) {
		rte_pktmbuf_free(m);
		return 0;
	}
	r->done(r, m, UCS_OK, PLX_MBUF_KEPT);
	return 1;
}

/**
 * Receive an active message as an mbuf, or a chain, without a copy where that can be: the handler
 * calls it with its own arguments, and returns its result. done() is called once, at once or
 * when the data has been fetched, and says how it came.
 * Thread: the worker's; the last rte_pktmbuf_free() as well. Blocks: as plx_loan_take().
 * Allocates: from pool and kept, and heap.
 */
static inline ucs_status_t
plx_mbuf_recv_am(struct plx_mbuf_receiver *r, void *data, size_t len, const ucp_am_recv_param_t *param)
{
	struct rte_mbuf *m;

	if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		if (r->kept == NULL || plx_mbuf_loan_am(&m, r->pool, r->kept, r->worker, data, len) != 0)
			return plx_mbuf_fetch_am(r, data, len);
		r->done(r, m, UCS_OK, PLX_MBUF_LOANED);
		return UCS_INPROGRESS;
	}
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) && plx_mbuf_kept_am(r, data, len))
		return UCS_INPROGRESS;
	return plx_mbuf_copy_am(r, data, len);
}

#ifdef __cplusplus
}
#endif

#endif
