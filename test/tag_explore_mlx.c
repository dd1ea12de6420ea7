/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_explore_mlx.c - net_mlx on a device that matches tags, for tag_explore_test.c
 *
 * Design notes
 * The worker sends to itself by the driver, so all of that takes part: headers, credits, queue
 * pairs. What the device does at once in the first suite is a step of its own in the second:
 * it executes a command, or the rest of a message comes.
 */
#include <errno.h>

#include "mlx_tm_model.h"
#include "plx_unit_mlx.h"
#include "plx_wire.h"
#include "tag_explore.h"

#define CONNECT_TURNS 1000
#define FULL	      8 /* on random paths, of so many commands one finds no room */

static struct plx_peer *self;
static uint64_t refused; /* commands, as of the last look */

static void
reset_at_once(struct unit_workers *u, uint32_t list_n)
{
	unit_workers_set(u, "worker.devices", "net_mlx");
	unit_workers_set(u, "tag.offload", "yes");
	unit_workers_set(u, "net_mlx.tag_matching", "yes");
	unit_workers_set(u, "net_mlx.msg_len", "512");
	unit_workers_set(u, "net_mlx.cache", "0");
	mlx_tm_model_reset(list_n);
	mlx_tm.front = true;
	mlx_tm.burst = 1;
	refused = 0;
}

static void
reset_held(struct unit_workers *u, uint32_t list_n)
{
	reset_at_once(u, list_n);
	mlx_tm.held = true;
}

static void
opened(struct plx_worker *w)
{
	struct plx_addr addr;

	plx_queue_addr(w->queues[0], &addr);
	UNIT_EQ_FATAL(plx_peer_get(w->queues[0], &addr, &self), 0);
	plx_peer_put(self); /* the worker's ep to itself holds it */
	UNIT_EQ_FATAL(plx_peer_connect(self), 0);
	for (unsigned i = 0; i < CONNECT_TURNS && mlx_peer(self)->link.state != PLX_LINK_OPEN; i++)
		plx_worker_turn(w);
	while (mlx_tm_model_waits())
		plx_worker_turn(w);
	UNIT_EQ_FATAL(mlx_peer(self)->link.state, PLX_LINK_OPEN);
}

/*
 * The same path must lead the same way again, so the numbers of what is sent and commanded now
 * and then start anew.
 */
static void
settle(uint16_t seen)
{
	struct mlx_queue *mq = mlx_queue(self->q);
	struct plx_credit *c = &mlx_peer(self)->link.credit;
	const struct mlx_tm_hw *h = (struct mlx_tm_hw *)mq->hw;
	struct plx_rx rx[PLX_DEV_RX_BURST];

	mlx_tm.full = 0;
	do {
		UNIT_EQ_FATAL(plx_queue_tag_post(self->q, NULL, seen), 0);
	} while (h->next_op % MLX_TM_SIGNAL_EVERY != 1); /* the last is signalled */
	while (mlx_tm_model_command() || mlx_tm_model_waits())
		UNIT_EQ_FATAL(self->q->rx_burst(self->q, rx, PLX_DEV_RX_BURST), 0);
	UNIT_EQ_FATAL(h->done_op, h->next_op);
	mlx_tx_poll(mq);
	mq->link.looks = 0;
	c->owed = 0;
	c->left = c->most;
}

static void
plant(enum model_bug bug)
{
	mlx_tm.bug = bug;
}

static void
burst(uint16_t n)
{
	mlx_tm.burst = n;
	mlx_tm.full = mlx_tm.held ? FULL : 0; /* else a cancel is done at once */
}

static bool
arrive(uint64_t tag, uint32_t id, bool halves)
{
	struct plx_tx tx = {.peer = self, .hdr = &tag, .hdr_len = sizeof(tag), .data = &id,
		.len = sizeof(id), .op = PLX_WIRE_EAGER};
	int rc;

	_Static_assert(sizeof(id) == MODEL_MSG_LEN, "the id is the message");
	mlx_tm.halves = halves;
	rc = plx_peer_tx(&tx);
	mlx_tm.halves = false;
	if (rc != -EAGAIN)
		UNIT_EQ_FATAL(rc, 0);
	return rc == 0;
}

static bool
own_can(unsigned i)
{
	return i == 0 ? mlx_tm_model_begun() : mlx_tm_model_held();
}

static void
own(unsigned i)
{
	if (i == 0)
		mlx_tm_model_rest();
	else
		mlx_tm_model_command();
}

/* What was refused is tried again by a turn. */
static bool
waits(void)
{
	bool again = mlx_tm.full_told != refused;

	refused = mlx_tm.full_told;
	return again || mlx_tm_model_waits();
}

static const char *
wrong(void)
{
	return mlx_tm.wrong;
}

const struct explore_dev explore_devs[] = {
	{.suite = "tag offload by net_mlx, explored", .depth = 8, .depth_all = 4,
		.len = 600, .own_names = {"the rest comes"}, .reset = reset_at_once, .open = opened,
		.settle = settle, .plant = plant, .burst = burst, .arrive = arrive, .own_can = own_can, .own = own,
		.waits = waits, .wrong = wrong, .n_list = mlx_tm_model_listed,
		.given = mlx_tm_model_given, .hash = mlx_tm_model_hash},
	{.suite = "tag offload by net_mlx, commands take time, explored",
		.depth = 7, .depth_all = 4, .len = 600, .cancels_late = true,
		.own_names = {"the rest comes", "command"}, .reset = reset_held, .open = opened,
		.settle = settle, .plant = plant, .burst = burst, .arrive = arrive, .own_can = own_can, .own = own,
		.waits = waits, .wrong = wrong, .n_list = mlx_tm_model_listed,
		.given = mlx_tm_model_given, .hash = mlx_tm_model_hash},
};
const unsigned explore_n = 2;
