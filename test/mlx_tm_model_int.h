/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_model_int.h - between the files of the model
 */
#ifndef MLX_TM_MODEL_INT_H
#define MLX_TM_MODEL_INT_H

#include <sys/queue.h>

#include "mlx_tm_model.h"

#define TM_LIST_MAX 4096
#define TM_SENDS    256 /* of a queue pair that are not over; a power of 2 */

/** A receive in a list. */
struct tm_entry {
	uint32_t handle;
	uint64_t tag, mask, id;
	struct ibv_sge sge; /* length 0: no buffer */
	bool active;
};

struct tm_cmd {
	struct ibv_ops_wr wr;
	struct ibv_sge sge;
};

struct tm_cqe {
	uint64_t id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned flags;
	uint32_t len, imm, qpn; /* imm as it came */
	struct ibv_wc_tm_info info;
	const void *buf;	/* of the receive */
	uint32_t frees;		/* handle + 1, whose place is free once this is polled; 0: none */
	uint32_t over;		/* commands before this number are over */
};

struct tm_cq {
	struct ibv_cq_ex ex;
	LIST_ENTRY(tm_cq) link;
	struct tm_srq *srq;
	struct tm_cqe *cqes, now; /* now: that is being read */
	uint32_t head, n, size, told; /* told: since start_poll */
	bool armed;
};

struct tm_srq {
	struct ibv_srq ibv;
	LIST_ENTRY(tm_srq) link;
	struct tm_cq *cq; /* NULL: it has no list */
	struct ibv_recv_wr *slots;
	struct ibv_sge *sges;
	uint32_t slot_head, slot_n, slot_max;
	/* of the list */
	struct tm_entry list[TM_LIST_MAX];
	uint32_t n, max;	/* in the list; places */
	bool used[TM_LIST_MAX]; /* by handle: not free for the next */
	const void *bufs[TM_LIST_MAX]; /* by handle: of the receive */
	uint32_t next_handle;
	struct tm_cmd *cmds;
	uint32_t cmd_head, cmd_n, cmd_max;
	uint32_t posted, over;	/* commands */
	uint16_t given;
};

struct tm_send {
	struct ibv_send_wr wr;
	uint8_t *data; /* copied, or NULL: at the sge's */
	struct ibv_sge sge; /* of more than one: what they are together */
	struct ibv_sge pieces[2];
	int n_pieces;
};

struct tm_qp {
	struct ibv_qp ibv;
	LIST_ENTRY(tm_qp) link;
	struct tm_srq *srq;
	const struct mlx5_verbs_port *port;
	struct ibv_ah_attr way;
	uint32_t peer; /* 0: not connected */
	bool failed;
	struct tm_send *sends;
	uint32_t head, n, max;
	/* the first send has met a receive, and is not over */
	bool begun;
	struct tm_entry met;
};

/** What became of a message that was to be received. */
enum tm_took {
	TM_TOOK,
	TM_BEGAN, /* it is to be ended by tm_recv_rest() */
	TM_NO_SLOT,
};

static inline struct tm_cq *
tm_cq(struct ibv_cq_ex *ex)
{
	return (struct tm_cq *)ex;
}

/** One more completion, the last or with so many before it. */
void tm_cqe_add(struct tm_cq *cq, const struct tm_cqe *cqe);
void tm_cqe_put(struct tm_cq *cq, const struct tm_cqe *cqe, uint32_t at);

void tm_wrong(const char *what);
/** @return memory that a key stands for, or NULL */
void *tm_mem(uint32_t key, uint64_t addr, uint64_t len, bool remote);
bool tm_chance(uint32_t one_in);
/** Anybody who would be woken? Then all is done at once. */
bool tm_armed(void);

/** A message reaches to's receive queue. */
enum tm_took tm_recv(struct tm_qp *to, const uint8_t *data, uint32_t len, uint32_t imm,
	struct tm_entry *met);
void tm_recv_rest(struct tm_qp *to, const struct tm_entry *met, const uint8_t *data, uint32_t len,
	uint32_t imm);
/** One step of queue pairs, a random one. @return whether any could be done */
bool tm_qps_step(void);
bool tm_qps_rest(void);
bool tm_qps_begun(void);
void tm_qps_run(void);

#endif
