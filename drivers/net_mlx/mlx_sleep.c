/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_sleep.c - an owner that sleeps until a message arrives
 *
 * Design notes
 * - All completion queues of a queue have one channel, which is in one epoll descriptor with the
 *   device's own events. An armed completion queue makes the channel readable with the next
 *   completion; earlier ones do not, so all are polled once more after arming, and the
 *   completions found are stored for the next burst.
 * - The death of a peer causes no event while nothing is sent to it, nor does a hello that was
 *   lost. So the owner wakes at the queue's deadline to check for such peers.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "mlx_conn.h"
#include "mlx_glue.h"
#include "mlx_group.h"
#include "mlx_lossy.h"
#include "mlx_rx.h"
#include "mlx_tx.h"

int
mlx_sleep_open(struct mlx_queue *mq)
{
	mq->channel = mlx_glue.create_comp_channel(mq->port->ctx);
	if (mq->channel == NULL)
		return errno != 0 ? -errno : -EIO;
	if (fcntl(mq->channel->fd, F_SETFL, fcntl(mq->channel->fd, F_GETFL) | O_NONBLOCK) != 0)
		return -errno;
	return 0;
}

void
mlx_sleep_close(struct mlx_queue *mq)
{
	if (mq->epfd >= 0)
		close(mq->epfd);
	if (mq->channel != NULL)
		mlx_glue.destroy_comp_channel(mq->channel);
}

int
mlx_queue_efd(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);
	int fds[] = {mq->channel->fd, mq->port->ctx->async_fd};
	struct epoll_event ev = {.events = EPOLLIN};

	if (mq->epfd >= 0)
		return mq->epfd;
	mq->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (mq->epfd < 0)
		return -errno;
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (epoll_ctl(mq->epfd, EPOLL_CTL_ADD, fds[i], &ev) != 0)
			return -errno;
	return mq->epfd;
}

/* Read the events, so that the channel is quiet. */
static void
events_take(struct mlx_queue *mq)
{
	struct ibv_cq *cq;
	void *arg;

	while (mlx_glue.get_cq_event(mq->channel, &cq, &arg) == 0) {
		mq->hw->ops->event(mq->hw, cq);
		mlx_glue.ack_cq_events(cq, 1);
	}
}

int
mlx_queue_arm(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);

	/* Work of turns. */
	if (!TAILQ_EMPTY(&mq->link.waiting) || !SLIST_EMPTY(&mq->link.lost) ||
		!SLIST_EMPTY(&mq->owes) || mq->link.overdue || mq->ud.failed)
		return -EBUSY;
	if (mq->hw->ops->arm(mq->hw) != 0 || ibv_req_notify_cq(mq->ud.cq, 0) != 0 ||
		mlx_groups_arm(mq) != 0 || mlx_lossy_arm(mq) != 0)
		return -EBUSY;
	if (mlx_dgrams_poll(mq) != 0 || mlx_groups_poll(mq) != 0 || mlx_lossy_poll(mq) != 0 ||
		mlx_tx_waits(mq) || mlx_rx_waits(mq))
		return -EBUSY;
	return 0;
}

void
mlx_queue_disarm(struct plx_queue *q)
{
	struct mlx_queue *mq = mlx_queue(q);

	events_take(mq);
	mlx_port_events(mq->port);
	mlx_dgrams_poll(mq);
	mlx_groups_poll(mq);
	mlx_lossy_poll(mq);
}
