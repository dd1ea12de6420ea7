/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hostile.h - what the three processes of a round share: the victim, an honest peer of it and a hostile one
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cci.h>
#include <ucp/api/ucp.h>

#include "test_util.h"

enum { VICTIM, HONEST, EVIL, N_ROLES };
enum { TALK_TAG, TALK_AM, TALK_STREAM, TALK_RMA, TALK_CCI, N_TALKS };

#define HOSTILE_MEM	 (256u << 10) /* that a side exposes to others */
#define HOSTILE_CPU_S	 4	      /* of one call, at the most */
#define HOSTILE_GROWTH	 (256ull << 20) /* of the victim's own memory; what is set as bounds, and more */
#define HOSTILE_AM_OURS	 1	      /* id of the honest active messages */
#define HOSTILE_BIG	 300000u      /* longest message between the honest */

/** Memory that others may reach, and its key. */
struct lent {
	uint64_t addr;
	uint32_t key_len;
	uint8_t key[256];
};

/** What one process tells the others. Writer: that process. */
struct side {
	_Atomic uint32_t ready; /* what follows stands here */
	_Atomic uint32_t quiet; /* sent[] is final */
	_Atomic uint32_t over;	/* nothing more is waited for */
	_Atomic uint64_t turns;
	_Atomic uint64_t sent[N_TALKS], got[N_TALKS];
	uint32_t addr_len;
	uint8_t addr[1024];	/* of the ucp worker */
	uint8_t core_addr[512]; /* of its core */
	uint8_t cci_addr[512];	/* of the core of the endpoint */
	char uri[256];
	struct lent ours;	/* for the honest ones */
	struct lent theirs;	/* for the hostile one */
};

/** One round: three processes, from their start to their end. Shared between them. */
struct round {
	uint64_t seed, secret;
	uint32_t n_vandals; /* threads that write anything anywhere; 0: the hostile one keeps to the rings */
	bool sleeps;	    /* the victim waits for events */
	_Atomic uint32_t stop;
	_Atomic uint64_t n_said, n_heard, n_spoilt, n_took; /* hostile: messages, writes; victim: messages of it */
	_Atomic uint8_t sum; /* victim: of the bytes it was given, so that each is read */
	struct side side[N_ROLES];
};

static inline uint64_t
hostile_rnd(uint64_t *state, uint64_t n)
{
	return util_splitmix64(state) % n;
}

/** An operation that was begun. */
struct op {
	void *req;
	ucs_status_t status;
};

static inline void
op_begin(struct op *op, void *ret)
{
	op->req = UCS_PTR_IS_PTR(ret) ? ret : NULL;
	op->status = UCS_PTR_IS_PTR(ret) ? UCS_INPROGRESS : UCS_PTR_STATUS(ret);
}

static inline bool
op_over(struct op *op)
{
	if (op->req == NULL)
		return true;
	op->status = ucp_request_check_status(op->req);
	if (op->status == UCS_INPROGRESS)
		return false;
	ucp_request_free(op->req);
	op->req = NULL;
	return true;
}

/* --- hostile_talk.c: the messages between the two honest ones --- */

#define TALK_WINDOW 6

struct talk_msg {
	struct op op;
	uint64_t n;
	size_t len;
	uint8_t *buf;
	bool used;
};

/** One of the two. */
struct talk {
	struct round *r;
	struct side *mine, *other;
	int me;
	ucp_context_h ctx;
	ucp_worker_h w;
	ucp_ep_h ep;
	ucp_mem_h mem[2];
	uint8_t *ours, *theirs; /* mem[] */
	ucp_rkey_h rkey;
	cci_endpoint_t *end;
	cci_connection_t *conn;
	struct talk_msg tag_out[TALK_WINDOW], tag_in[TALK_WINDOW];
	struct talk_msg am_out[TALK_WINDOW], am_in[TALK_WINDOW];
	struct talk_msg stream_out, stream_in;
	uint64_t tag_next, am_next, cci_next; /* to be received */
	struct op rma;
	unsigned rma_step;
	uint64_t rma_at, rma_len, rma_back;
	uint8_t *rma_buf;
	uint64_t n_cci_sends;
	/* what is not of the honest peer; NULL: there should be none */
	ucs_status_t (*on_am)(struct talk *t, const void *header, size_t header_len, void *data, size_t len,
		const ucp_am_recv_param_t *param);
	void (*on_event)(struct talk *t, cci_event_t *ev);
	uint64_t n_failed; /* what went wrong although it is no fault here: content may be destroyed */
};

void talk_open(struct talk *t, struct round *r, int me);
/** Wait for the other, and be ready for its messages. */
void talk_meet(struct talk *t);
void talk_turn(struct talk *t);
/** All that was sent has come, on both sides; or enough was waited. */
void talk_end(struct talk *t);
void talk_close(struct talk *t);
/** A call begins; and ends: it may not have taken long. */
void talk_call(void);
void talk_called(const char *what);

/* --- the roles; each ends the process --- */
void hostile_victim(struct round *r);
void hostile_honest(struct round *r);
void hostile_peer(struct round *r);

#define TIMED(call) \
	__extension__({ \
		talk_call(); \
		__auto_type ret_ = (call); \
		talk_called(#call); \
		ret_; \
	})

#define HOSTILE_OK(call) \
	do { \
		ucs_status_t st_ = (call); \
		if (st_ != UCS_OK) \
			UTIL_DIE("%s: %s", #call, ucs_status_string(st_)); \
	} while (0)

#endif
