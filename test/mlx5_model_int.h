/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_model_int.h - between the files of the model
 */
#ifndef MLX5_MODEL_INT_H
#define MLX5_MODEL_INT_H

#include <endian.h>

#include "mlx5_model.h"

#define MODEL_OBJS    64	/* of each kind */
#define MODEL_QPS     256
#define MODEL_MRS     2048
#define MODEL_MSG_MAX (1u << 20)	/* bytes of one operation, as PLX_DEV_RMA_MAX */
#define MODEL_WQE_MAX 1024u	/* bytes of an entry */

struct model_mr {
	uint8_t *addr; /* NULL: there is none of this number */
	uint64_t len;
	bool remote;
};

struct model_cq {
	uint8_t *buf; /* NULL: there is none of this number */
	uint32_t *dbrec;
	uint64_t *reg; /* 8 words, the one of MLX5_CQ_DOORBELL among them */
	uint32_t n, size, pi, arm_n;
	bool armed, event;
};

struct model_srq {
	uint8_t *buf;	/* NULL: there is none of this number */
	uint32_t *dbrec;
	uint64_t *was;	/* what an entry said when it was posted; 0: it is not the device's */
	uint32_t n, stride;
	uint16_t seen;	/* doorbell record */
	uint16_t walk;	/* first entry that is not posted */
	uint16_t next;	/* first that is, and not used */
	uint16_t avail;
};

struct model_uar {
	uint8_t *reg;	/* NULL: there is none of this number */
	uint32_t size; /* of a half; 0: doorbells only */
	uint32_t last; /* half written */
};

/** An entry that was begun and has not ended. */
struct model_end {
	uint64_t hash;	/* of its bytes */
	uint64_t stamp;
	uint64_t to;	/* READ, atomics: where the data goes */
	uint8_t *data;	/* READ, longer than small */
	uint32_t len;
	uint16_t wqe;
	uint8_t blocks, opcode, syndrome;
	bool signal;
	uint64_t small[8]; /* the data, else */
};

/** An arrival that was not told. */
struct model_arrival {
	uint64_t stamp;
	uint32_t len, imm;
	uint16_t wqe;
	uint8_t opcode, syndrome, scatter; /* as in op_own */
	uint8_t data[64];
};

struct model_qp {
	uint32_t qpn, peer;
	uint8_t *sq;
	uint32_t *dbrec;
	struct model_end *ends;
	struct model_arrival *arrivals;
	struct model_cq *tx, *rx;
	struct model_srq *srq;
	struct model_uar *uar;
	uint32_t n;	 /* blocks */
	uint32_t end_head, end_n, arr_head, arr_n;
	uint32_t n_reads; /* of the ends: READs and atomics */
	uint16_t next;	 /* block to begin with */
	uint16_t shown;	 /* the device knows of all before it */
	uint16_t belled; /* shown by the last doorbell, were none lost */
	bool lost;	 /* a doorbell was */
	bool failed;
	bool own_uar;	 /* goes with it */
};

struct mlx5_model {
	uint64_t rng;
	bool inlines; /* whatever may come inside of a completion does */
	uint64_t stamp, told;	/* of the newest; of the newest that was reported */
	uint32_t one_in[MLX5_FAULT_N];
	bool plant[MLX5_FAULT_N];
	uint32_t next_qpn;
	uint32_t n_qp;
	struct mlx5_model_stat stat;
	struct model_mr mr[MODEL_MRS];
	struct model_cq cq[MODEL_OBJS];
	struct model_srq srq[MODEL_OBJS];
	struct model_uar uar[MODEL_OBJS];
	struct model_qp *qp[MODEL_QPS]; /* the first n_qp are there */
};

uint64_t model_rng(struct mlx5_model *m);
/** Does it happen now? */
bool model_chance(struct mlx5_model *m, enum mlx5_fault fault);
void model_violation(struct mlx5_model *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct model_qp *model_qp(struct mlx5_model *m, uint32_t qpn);

/** Read block number wqe and what follows it, as they lie in the queue, into to. */
void model_wqe_read(const struct model_qp *q, uint16_t wqe, uint32_t blocks, void *to);
uint64_t model_hash(const void *p, uint32_t len);

/** @return the memory that a key gives, or NULL: it does not */
void *model_mem(struct mlx5_model *m, uint32_t key, uint64_t addr, uint64_t len, bool remote);

/** Begin the next entry. @return false: there is none, or it must wait */
bool model_begin(struct mlx5_model *m, struct model_qp *q);
/** Report the oldest entry begun, or arrival. @return false: there is none */
bool model_end(struct mlx5_model *m, struct model_qp *q);
bool model_tell(struct mlx5_model *m, struct model_qp *q);
/** An armed completion queue has something. */
void model_cq_event(struct mlx5_model *m, struct model_cq *cq);
/** Look at the doorbell record of a receive queue. */
void model_srq_look(struct mlx5_model *m, struct model_srq *s);

#endif
