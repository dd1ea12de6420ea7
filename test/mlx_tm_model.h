/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_model.h - an RDMA device of libibverbs that matches tags, in software and in one thread
 *
 * Design notes
 * What mlx5_verbs.c gives the driver when its device is "plain": reliable queue pairs that are
 * driven by libibverbs alone, and shared receive queues, some with a list of receives. It does by
 * the tag matching of rdma-core's documents and sources: a receive in the list is held back until
 * the count that software tells is that of the tagged messages which met nothing; an answer to a
 * removal says whether it came in time; what a queue pair brings stays in order.
 *
 * All is done at once, or late: commands wait for the test, messages end later than they began,
 * everything waits for its turn at random. It has not been compared with a device.
 *
 * It checks the driver: no more receives or commands than were asked for, keys of memory that is
 * registered, tags within their masks, a count that was reached, no removal by force of what may
 * have been met, a list that is empty of what was taken out. The first that breaks a rule is
 * kept in words.
 */
#ifndef MLX_TM_MODEL_H
#define MLX_TM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "tag_model.h"

struct mlx_tm_model {
	/* set by a test */
	struct ibv_tm_caps caps; /* max_num_tags 0: the device matches none */
	int srq_err;		/* what making a list of receives says, 0: it works */
	bool held;		/* commands wait for mlx_tm_model_command() */
	bool halves;		/* a message that meets a receive ends with mlx_tm_model_rest() */
	uint16_t burst;		/* completions reported at once; 0: all */
	bool front;		/* a late removal is reported before what came first */
	uint32_t late;		/* one in so many steps is done, each time somebody looks; 0: all at once */
	uint32_t full;		/* one in so many commands finds no room; 0: none */
	uint32_t broken;	/* so many messages end with an error */
	bool dead;		/* commands are not executed, and end with an error */
	enum model_bug bug;
	uint64_t rng;
	/* to be looked at */
	const char *wrong;
	uint64_t matched, unexpected, late_removals, held_back, full_told;
};

extern struct mlx_tm_model mlx_tm;

/** A device that matches up to so many, does all at once and is not wrong. Its objects stay. */
void mlx_tm_model_reset(uint32_t list_n);

/** Execute the first command that waits. @return whether there was one */
bool mlx_tm_model_command(void);
/** End the messages that have begun. @return whether there was one */
bool mlx_tm_model_rest(void);
/** Whether they would. */
bool mlx_tm_model_held(void);
bool mlx_tm_model_begun(void);
/** Some steps of what waits, when late; called whenever the driver looks. */
void mlx_tm_model_work(void);
/** All of it. */
void mlx_tm_model_run(void);

/** Whether a completion of what came waits to be polled; of commands that are not told as well. */
bool mlx_tm_model_waits(void);
/** Receives in all lists. */
uint32_t mlx_tm_model_listed(void);
/** What lies in lists and queues, with number() in the place of a receive's buffer. */
uint64_t mlx_tm_model_hash(uint64_t h, uint64_t (*mix)(uint64_t h, uint64_t v),
	uint64_t (*number)(const void *buf));
/** Of the first list: tagged messages that met nothing, modulo 2^16. */
uint16_t mlx_tm_model_given(void);

/* For mlx5_verbs.c: as libibverbs says. */
int mlx_tm_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
	struct ibv_device_attr_ex *attr, size_t len);
struct ibv_cq_ex *mlx_tm_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
bool mlx_tm_destroy_cq(struct ibv_cq *cq); /* false: not one of these */
bool mlx_tm_arm(struct ibv_cq *cq);	   /* the same */
struct ibv_srq *mlx_tm_create_srq(struct ibv_srq_init_attr *attr);
struct ibv_srq *mlx_tm_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int mlx_tm_destroy_srq(struct ibv_srq *srq);
int mlx_tm_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int mlx_tm_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad);
struct ibv_qp *mlx_tm_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int mlx_tm_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int mlx_tm_destroy_qp(struct ibv_qp *qp);
int mlx_tm_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

#endif
