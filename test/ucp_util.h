/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_util.h - what test programs of the UCP API share: pairs of workers,
 * operations with their callbacks
 *
 * Only the public API is used, so every program runs on UCX as well.
 */
#ifndef UCP_UTIL_H
#define UCP_UTIL_H

#include <ucp/api/ucp.h>

#include "test_util.h"

#define UTIL_ALL_BITS UINT64_MAX

#define UTIL_OK(call) \
	do { \
		ucs_status_t st_ = (call); \
		if (st_ != UCS_OK) \
			UTIL_DIE("%s: %s", #call, ucs_status_string(st_)); \
	} while (0)

/* The area behind a request that belongs to the application. */

#define UTIL_MAGIC 0x706f6c6c75782121u

struct op;

struct area {
	uint64_t magic;
	uint64_t stamp; /* left by one use for the next */
	struct op *op;	/* set after the call returned, as MPICH does */
	int calls;
	ucs_status_t status;
	ucp_tag_recv_info_t info;
	uint64_t pad;
};

/* UCX 1.13 does not fill recv_info, so there every receive gives a request. */
extern bool util_on_ucx;
/** @return whether messages go by a network, also within a process: slower, by far */
bool util_by_network(void);
/** @return the same, by an RDMA device. */
bool util_by_rdma(void);
extern unsigned util_n_init, util_n_cleanup;
void util_request_init(void *request);
void util_request_cleanup(void *request);

/* One operation. */
struct op {
	void *req;	 /* what the call returned, when that was a request */
	bool in_call;	 /* true while the call that starts it runs */
	int n_inside;	 /* callbacks that came meanwhile */
	int n_calls;	 /* callbacks in all */
	bool immediate;	 /* completed by the call itself */
	bool by_area;	 /* an _nb call: the callback knows the request only */
	ucs_status_t status;
	ucp_tag_recv_info_t info;
};

/* How a message is sent or received. */
enum util_how {
	UTIL_NBX,
	UTIL_NO_IMM,
	UTIL_FAST,
	UTIL_SYNC,
	UTIL_NB,
	UTIL_SYNC_NB,
	UTIL_N_HOW
};

void util_send(struct op *op, ucp_ep_h ep, const void *buf, size_t len, ucp_tag_t tag,
	enum util_how how);
void util_recv(struct op *op, ucp_worker_h w, void *buf, size_t len, ucp_tag_t tag,
	ucp_tag_t mask, enum util_how how);
void util_msg_recv(struct op *op, ucp_worker_h w, void *buf, size_t len, ucp_tag_message_h msg,
	enum util_how how);
bool util_done(const struct op *op);
void util_free(struct op *op);

/* Sends that must end at once or not begin. */
struct util_forced {
	unsigned n_sent, n_refused, n_bad;
};

/** Count what a send with UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL returned. */
void util_forced_count(struct util_forced *f, void *ret);

/* Two workers with an ep to each other; node 1 may be the same context. */
struct node {
	ucp_context_h ctx;
	ucp_worker_h w;
	ucp_address_t *addr;
	size_t addr_len;
	ucp_ep_h ep;
};

struct pair {
	struct node n[2];
	bool one_context;
};

ucp_context_h util_context(uint64_t features);
/** @param name, value of a setting, NULL: none */
ucp_context_h util_context_with(uint64_t features, const char *name, const char *value);
ucp_worker_h util_worker(ucp_context_h ctx, ucs_thread_mode_t mode);
ucp_ep_h util_ep(ucp_worker_h w, const ucp_address_t *addr);
#define UTIL_ADDR_MAX 4096
/** Print the worker's address, a line in hexadecimal. */
void util_say_address(ucp_worker_h w);
/** Read such a line from standard input into UTIL_ADDR_MAX bytes. */
void util_read_address(uint8_t *addr);
/** The same in error mode PEER, with this handler. */
ucp_ep_h util_ep_with_handler(ucp_worker_h w, const ucp_address_t *addr, ucp_err_handler_cb_t cb,
	void *arg);
/** A send callback of nbx whose user data is a struct op. */
void util_sent(void *request, ucs_status_t status, void *user_data);
void util_pair_open(struct pair *p, bool one_context, ucs_thread_mode_t mode);
/** In one context that has this setting, in single-thread mode. */
void util_pair_open_with(struct pair *p, const char *name, const char *value);
void util_pair_close(struct pair *p);
unsigned util_pair_turn(struct pair *p);
bool util_ep_close(struct pair *p, ucp_ep_h ep, unsigned flags);

#endif
