/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_short_test.c - short requests between others, on a device that is driven by libibverbs
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlx_tm_model.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define QUEUES	   2
#define OP	   37
#define LONG	   500 /* bytes of a message that goes through a buffer */
#define PATIENCE_S 15

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *q[QUEUES];
static struct plx_peer *to; /* from the first to the second */
static struct plx_dev_mem mem;
static uint64_t there[4];
static uint64_t n_sent, n_got;
static unsigned n_done, n_dead;

static struct mlx_queue *
mq(void)
{
	return mlx_queue(q[0]);
}

static void
on_dead(struct plx_peer *peer)
{
	(void)peer;
	n_dead++;
}

/* Each message begins with its number: all come in order. */
static void
turn(struct plx_queue *queue)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint16_t n = queue->rx_burst(queue, rx, PLX_DEV_RX_BURST);
	uint64_t number;

	for (uint16_t i = 0; i < n; i++) {
		memcpy(&number, rx[i].data, sizeof(number));
		UNIT_EQ(number, n_got);
		n_got++;
	}
	queue->rx_release(queue, rx, n);
}

static void
turns(void)
{
	for (unsigned k = 0; k < 2 * MLX_UD_EVERY; k++)
		for (unsigned i = 0; i < QUEUES; i++)
			turn(q[i]);
}

static void
begin(void)
{
	time_t since = time(NULL);
	struct plx_addr addr;

	plx_conf_defaults(&conf);
	n_sent = n_got = n_done = n_dead = 0;
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[i]), 0);
		q[i]->on_dead = on_dead;
	}
	UNIT_EQ_FATAL(plx_queue_mem_reg(q[1], there, sizeof(there), PLX_DEV_MEM_WRITE, &mem), 0);
	plx_queue_addr(q[1], &addr);
	UNIT_EQ_FATAL(plx_peer_get(q[0], &addr, &to), 0);
	UNIT_EQ_FATAL(plx_peer_connect(to), 0);
	while (mlx_peer(to)->link.state != PLX_LINK_OPEN && time(NULL) - since < PATIENCE_S) {
		turns();
		for (unsigned i = 0; i < QUEUES; i++)
			plx_queue_control(q[i]);
		sched_yield();
	}
	UNIT_EQ_FATAL(mlx_peer(to)->link.state, PLX_LINK_OPEN);
	UNIT_TRUE(mlx_peer(to)->qp->at_once);
}

static void
end(void)
{
	plx_queue_mem_dereg(q[1], &mem, true);
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_close(q[i]);
	plx_dev_close(dev);
}

static void
put_done(void *arg, int err)
{
	(void)arg;
	UNIT_EQ(err, 0);
	n_done++;
}

static int
send_short(void)
{
	int rc = plx_peer_tx_short(to, OP, n_sent, "12345678", n_sent % 9);

	n_sent += rc == 0;
	return rc;
}

static int
send_long(void)
{
	static const uint8_t data[LONG];
	const struct plx_tx tx = {.peer = to, .hdr = &n_sent, .hdr_len = sizeof(n_sent), .data = data,
		.len = sizeof(data), .op = OP};
	int rc = plx_peer_tx(&tx);

	n_sent += rc == 0;
	return rc;
}

static int
put_short(uint64_t value)
{
	return plx_peer_put_short(to, &value, sizeof(value), (uintptr_t)&there[1], mem.key);
}

static int
put_told(uint64_t value)
{
	const struct plx_rma_op op = {.peer = to, .local = &value, .remote = (uintptr_t)&there[2],
		.len = sizeof(value), .put = true, .key = mem.key, .done = put_done};

	return plx_peer_rma(&op);
}

/* Of all that was sent nothing stays taken, and each completion is reported once. */
static void
all_is_over(unsigned n_told)
{
	time_t since = time(NULL);

	mlx_tx_probe(mlx_peer(to)); /* ends what is not signalled */
	while (mlx_peer(to)->tx_room != MLX_TX_DEPTH && time(NULL) - since < PATIENCE_S)
		turns();
	UNIT_EQ(mlx_peer(to)->tx_room, MLX_TX_DEPTH);
	UNIT_EQ(mq()->tx_out, 0);
	UNIT_EQ(mq()->tx_due, 0);
	UNIT_EQ(mq()->tx_bufs.n_free, mq()->tx_bufs.n);
	UNIT_EQ(n_done, n_told);
	UNIT_EQ(n_got, n_sent);
}

/* Their records are those of other requests before, all around the ring. */
static void
short_requests_between_others_hold_nothing(void)
{
	uint64_t usual;
	unsigned told = 0;

	begin();
	usual = mq()->stat.tx_inline;
	for (unsigned i = 1; i <= 5 * MLX_TX_RECS; i++) {
		switch (i * 7 % 5) {
		case 0:
			UNIT_EQ(send_long(), 0);
			break;
		case 1:
			UNIT_EQ(put_told(i), -EINPROGRESS);
			told++;
			break;
		case 2:
			UNIT_EQ(put_short(i), 0);
			break;
		default:
			UNIT_EQ(send_short(), 0);
			break;
		}
		if (i % 3 == 0)
			turn(q[1]);
		if (i % 7 == 0)
			turn(q[0]);
	}
	UNIT_TRUE(mq()->stat.tx_inline > usual);
	UNIT_TRUE(mq()->tx_bufs.n != 0);
	all_is_over(told);
	UNIT_TRUE(there[1] != 0 && there[2] != 0);
	end();
}

/* What was held back goes first, though the queue holds nothing back any more. */
static void
a_short_message_does_not_overtake_what_is_held(void)
{
	begin();
	for (unsigned i = 0; i < 10; i++) {
		q[0]->hold = true;
		UNIT_EQ(send_short(), 0);
		UNIT_EQ(send_long(), 0);
		turns();
		UNIT_EQ(n_got, n_sent - 2);
		q[0]->hold = false;
		UNIT_EQ(i % 2 == 0 ? send_short() : put_short(i), 0);
		plx_queue_flush(q[0]);
		UNIT_TRUE(mlx_peer(to)->qp->at_once);
		turns();
		UNIT_EQ(n_got, n_sent);
	}
	all_is_over(0);
	end();
}

/* Whoever sends only short messages knows of all but the last few that they are over. */
static void
some_short_requests_are_signalled(void)
{
	begin();
	for (unsigned i = 0; i < 4 * MLX_TX_RECS; i++) {
		UNIT_EQ(i % 2 == 0 ? send_short() : put_short(i), 0);
		turn(q[1]);
		turn(q[0]);
		UNIT_TRUE(mq()->tx_out <= MLX_SIGNAL_EVERY);
	}
	UNIT_TRUE(mq()->stat.tx_signalled >= 4 * MLX_TX_RECS / MLX_SIGNAL_EVERY);
	all_is_over(0);
	end();
}

static int
no_room(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENOMEM;
}

/* The device says that it has no room, where it must have some. */
static void
what_the_device_does_not_take_costs_the_connection(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_context *ctx, broken;

		begin();
		ctx = mlx_peer(to)->qp->qp->context;
		broken = *ctx;
		broken.ops.post_send = no_room;
		mlx_peer(to)->qp->qp->context = &broken;
		switch (i) {
		case 0:
			UNIT_EQ(send_short(), 0);
			break;
		case 1:
			UNIT_EQ(put_short(i), 0);
			break;
		case 2:
			UNIT_EQ(send_long(), 0);
			break;
		default:
			q[0]->hold = true;
			UNIT_EQ(send_short(), 0);
			q[0]->hold = false;
			UNIT_EQ(send_short(), 0);
			break;
		}
		mlx_peer(to)->qp->qp->context = ctx;
		UNIT_TRUE(!mlx_peer(to)->qp->at_once);
		UNIT_TRUE(mlx_peer(to)->link.state != PLX_LINK_OPEN);
		turns();
		UNIT_TRUE(n_dead != 0);
		UNIT_EQ(send_short(), -ENOMEM);
		UNIT_EQ(put_short(i), -ENOMEM);
		UNIT_EQ(mq()->tx_out, 0);
		UNIT_EQ(n_got, 0);
		end();
	}
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(short_requests_between_others_hold_nothing),
		UNIT_TEST(a_short_message_does_not_overtake_what_is_held),
		UNIT_TEST(some_short_requests_are_signalled),
		UNIT_TEST(what_the_device_does_not_take_costs_the_connection),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"mlx_short", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	return unit_run(suites);
}
