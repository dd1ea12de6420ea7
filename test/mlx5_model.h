/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx5_model.h - the queues of an mlx5 device, in software and in one thread
 *
 * Design notes
 * The model reads send queues, receive lists and doorbells as the device would, moves the
 * bytes, and writes completions. It does one small thing a step, of a queue pair taken at
 * random: begin an entry, end one that was begun, report an arrival. So what belongs to one
 * queue stays in order and all else comes in any.
 *
 * It knows the rules of the device and holds the driver to them: an entry is whole before
 * it is shown, stays as it is until it has completed, and is what the doorbell says; keys
 * name memory that is registered; nothing is posted twice; completion queues do not overflow.
 * What breaks a rule is a violation: counted, the first one kept in words.
 *
 * A doorbell is an event, and registers are plain memory here: whoever may have written
 * to one calls mlx5_model_mmio() after it.
 *
 * What it does follows the headers and sources of rdma-core. It has not been compared with a
 * device.
 */
#ifndef MLX5_MODEL_H
#define MLX5_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/mlx5dv.h>

/** What the model does wrong, or as a network would. */
enum mlx5_fault {
	MLX5_FAULT_DOORBELL, /* is lost */
	MLX5_FAULT_LATE,     /* an arrival or an end waits while others overtake it */
	MLX5_FAULT_RNR,	     /* the peer has no slot too often: the queue pair fails */
	MLX5_FAULT_RETRY,    /* the peer does not answer: the same */
	MLX5_FAULT_FLUSH,    /* someone else makes the queue pair fail */
	MLX5_FAULT_N,
};

struct mlx5_model;

/** What happened so far. */
struct mlx5_model_stat {
	uint64_t planted[MLX5_FAULT_N]; /* FLUSH: entries flushed, whatever failed before */
	uint64_t lost_healed;	/* lost doorbells whose work was seen by another way */
	uint64_t lost_again;	/* by the same doorbell once more */
	uint64_t overtaken;	/* ends and arrivals told after some that happened later */
	uint64_t rnr_waits;	/* turns that a send waited for a slot */
	uint64_t blueflames, doorbells, inline_rx, inline_tx;
	uint64_t entries;	/* ended well */
	uint64_t events;	/* of completion queues that were armed */
	uint64_t violations;
	char first[160];	/* violation */
};

int mlx5_model_create(uint64_t seed, struct mlx5_model **out);
void mlx5_model_destroy(struct mlx5_model *m);
struct mlx5_model_stat *mlx5_model_stat(struct mlx5_model *m);

/** From now on fault happens once in one_in chances, at random; 0: never. */
void mlx5_model_fault(struct mlx5_model *m, enum mlx5_fault fault, uint32_t one_in);
/** The next chance of fault is taken. */
void mlx5_model_plant(struct mlx5_model *m, enum mlx5_fault fault);

/** From now on all that may come inside of a completion does, and not most of it, at random. */
void mlx5_model_inlines(struct mlx5_model *m);

/** Register memory. @return its key, for both sides. */
uint32_t mlx5_model_mr(struct mlx5_model *m, void *addr, uint64_t len, bool remote);
void mlx5_model_mr_free(struct mlx5_model *m, uint32_t key);

/** Make objects. @return their number, or -errno; *out is what mlx5dv_init_obj() would say */
int mlx5_model_cq(struct mlx5_model *m, uint32_t n, uint32_t cqe_size, struct mlx5dv_cq *out);
int mlx5_model_srq(struct mlx5_model *m, uint32_t n, uint32_t stride, struct mlx5dv_srq *out);
int mlx5_model_uar(struct mlx5_model *m, uint32_t bf_size);
void mlx5_model_cq_free(struct mlx5_model *m, int cq);
void mlx5_model_srq_free(struct mlx5_model *m, int srq);
void mlx5_model_uar_free(struct mlx5_model *m, int uar);
/** @param uar -1: one of its own. @return its number on the wire; it is not connected */
uint32_t mlx5_model_qp(struct mlx5_model *m, uint32_t blocks, int tx_cq, int rx_cq, int srq,
	int uar, struct mlx5dv_qp *out);
void mlx5_model_connect(struct mlx5_model *m, uint32_t qpn, uint32_t peer);
/** Its completions that are due are written; then there is nothing left of it. */
void mlx5_model_qp_destroy(struct mlx5_model *m, uint32_t qpn);
/** As if it were moved to the error state. */
void mlx5_model_qp_fail(struct mlx5_model *m, uint32_t qpn);
/** The next queue pair made has this number. */
void mlx5_model_next_qpn(struct mlx5_model *m, uint32_t qpn);

/** Look at the registers; called after whatever may have rung or armed. */
void mlx5_model_mmio(struct mlx5_model *m);
/** Has the completion queue, once armed, had an event since the last call? */
bool mlx5_model_event(struct mlx5_model *m, int cq);
bool mlx5_model_armed(const struct mlx5_model *m, int cq);
/** Do something. @return false: a queue pair taken at random had nothing to do */
bool mlx5_model_step(struct mlx5_model *m);
/** Step until nothing is left to do that the device knows of. */
void mlx5_model_run(struct mlx5_model *m);

#endif
