/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_way.c - address handles: one for each peer that gets datagrams, in bounded number
 *
 * Design notes
 * - A handle is kept until others need its place, and is destroyed when all its sends are
 *   complete: some devices read it only then, and fail the queue pair if it is destroyed. So the
 *   handle of a dead peer may stay for a while.
 */
#include <errno.h>
#include <stdlib.h>

#include "mlx_glue.h"
#include "mlx_peer.h"

struct mlx_way {
	TAILQ_ENTRY(mlx_way) link;
	struct mlx_peer *p; /* NULL: it was destroyed */
	struct ibv_ah *ah;
	uint64_t dgrams, lossy; /* number of the last send with this handle on either queue pair */
};

static void
way_free(struct mlx_queue *mq, struct mlx_way *way)
{
	TAILQ_REMOVE(&mq->ways, way, link);
	mq->n_ways--;
	if (way->p != NULL)
		way->p->way = NULL;
	mlx_glue.destroy_ah(way->ah);
	free(way);
}

static bool
way_is_idle(const struct mlx_queue *mq, const struct mlx_way *way)
{
	return mq->ud.done >= way->dgrams && mq->lossy.done >= way->lossy;
}

/* Evict the least recently used one. @return whether there is a place now */
static bool
way_evict(struct mlx_queue *mq)
{
	struct mlx_way *way = TAILQ_FIRST(&mq->ways);

	if (!way_is_idle(mq, way)) {
		mlx_ud_end(mq, &mq->lossy); /* sends of the other queue pair may occupy it */
		return false;
	}
	PLX_STAT_INC(mq->stat.ways_evicted);
	way_free(mq, way);
	return true;
}

static int
way_make(struct mlx_queue *mq, struct mlx_peer *p)
{
	struct mlx_way *way;
	int rc = -ENOMEM;

	if (mq->n_ways == MLX_WAYS_MAX && !way_evict(mq))
		return -EAGAIN;
	way = calloc(1, sizeof(*way));
	if (way == NULL)
		return -ENOMEM;
	errno = 0;
	way->ah = mlx_ud_way(mq, p->addr.gid, mlx_addr_lid(&p->addr));
	if (way->ah == NULL) {
		rc = errno != 0 && errno != EAGAIN ? -errno : -EHOSTUNREACH;
		free(way);
		return rc;
	}
	PLX_STAT_INC(mq->stat.ways_made);
	way->p = p;
	p->way = way;
	mq->n_ways++;
	TAILQ_INSERT_TAIL(&mq->ways, way, link);
	return 0;
}

int
mlx_way_get(struct mlx_queue *mq, struct mlx_peer *p, const struct mlx_ud *ud, struct ibv_ah **ah)
{
	struct mlx_way *way = p->way;
	int rc = way == NULL ? way_make(mq, p) : 0;

	if (rc != 0)
		return rc;
	way = p->way;
	*(ud == &mq->ud ? &way->dgrams : &way->lossy) = ud->sent + 1;
	*ah = way->ah;
	if (TAILQ_NEXT(way, link) != NULL) {
		TAILQ_REMOVE(&mq->ways, way, link);
		TAILQ_INSERT_TAIL(&mq->ways, way, link);
	}
	return 0;
}

void
mlx_way_drop(struct mlx_peer *p)
{
	struct mlx_queue *mq = mlx_queue(p->peer.q);
	struct mlx_way *way = p->way;

	if (way == NULL)
		return;
	if (way_is_idle(mq, way)) {
		way_free(mq, way);
		return;
	}
	way->p = NULL;
	p->way = NULL;
}

void
mlx_ways_close(struct mlx_queue *mq)
{
	while (!TAILQ_EMPTY(&mq->ways))
		way_free(mq, TAILQ_FIRST(&mq->ways));
}
