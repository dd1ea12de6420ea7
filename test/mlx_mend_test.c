/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_mend_test.c - queue pairs for datagrams that fail, and are brought back
 *
 * Design notes
 * It is linked to the model of an mlx5 device, whose library forgets the completions of a queue pair
 * that is reset, to that of another, whose library leaves them, and to none: for the guest.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define QUEUES	   2
#define OP	   37
#define PATIENCE_S 15

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *q[QUEUES];
static struct plx_peer *to[QUEUES];
static unsigned n_got[QUEUES];

static void
on_lossy(struct plx_queue *queue, const struct plx_rx *rx)
{
	UNIT_EQ(rx->op, OP);
	n_got[queue == q[1]]++;
}

static struct mlx_queue *
mq(unsigned i)
{
	return mlx_queue(q[i]);
}

static void
turns(void)
{
	struct plx_rx rx;

	for (unsigned k = 0; k < 2 * MLX_UD_EVERY; k++)
		for (unsigned i = 0; i < QUEUES; i++)
			if (q[i]->rx_burst(q[i], &rx, 1) != 0)
				q[i]->rx_release(q[i], &rx, 1);
}

static bool
in_time(time_t since)
{
	sched_yield();
	return time(NULL) - since < PATIENCE_S;
}

static int
to_error(struct mlx_ud *ud)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	return mlx_glue.modify_qp(ud->qp, &a, IBV_QP_STATE);
}

static void
all_fail(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ(to_error(&mq(i)->ud), 0);
		UNIT_EQ(to_error(&mq(i)->lossy), 0);
	}
}

static void
control(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_control(q[i]);
}

static void
begin(void)
{
	struct plx_addr addr;
	uint32_t where;

	plx_conf_defaults(&conf);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	memset(n_got, 0, sizeof(n_got));
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[i]), 0);
		q[i]->on_lossy = on_lossy;
		UNIT_EQ_FATAL(plx_queue_lossy_open(q[i], &where), 0);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		plx_queue_addr(q[!i], &addr);
		UNIT_EQ_FATAL(plx_peer_get(q[i], &addr, &to[i]), 0);
		UNIT_EQ_FATAL(plx_peer_lossy_to(to[i], mq(!i)->lossy.qp->qp_num), 0);
	}
}

static void
end(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_close(q[i]);
	plx_dev_close(dev);
}

static int
send(unsigned from)
{
	const uint64_t hdr = 1;
	const struct plx_tx tx = {.peer = to[from], .hdr = &hdr, .hdr_len = sizeof(hdr), .op = OP};

	return plx_peer_lossy_tx(&tx);
}

/* More than there is room for, in both directions: all come. */
static void
all_goes(void)
{
	time_t since = time(NULL);

	for (unsigned i = 0; i < QUEUES; i++) {
		unsigned n = 0;

		n_got[!i] = 0;
		while (n_got[!i] < 2 * MLX_UD_TX && in_time(since)) {
			if (n < 2 * MLX_UD_TX && send(i) == 0)
				n++;
			turns();
		}
		UNIT_EQ(n_got[!i], 2 * MLX_UD_TX);
	}
}

/* With so many out, some of them without a completion, and one that has come and was not looked at. */
static void
fail_in_the_middle(unsigned out)
{
	time_t since = time(NULL);

	for (unsigned k = 0; k < out; k++)
		UNIT_EQ(send(0), 0);
	all_fail();
	UNIT_EQ(send(1), 0); /* nobody has seen it yet */
	while (!(mq(0)->ud.failed && mq(0)->lossy.failed && mq(1)->ud.failed && mq(1)->lossy.failed) &&
		in_time(since))
		turns();
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_TRUE(mq(i)->ud.failed && mq(i)->lossy.failed);
		UNIT_EQ(send(i), -EAGAIN);
	}
}

static void
what_failed_is_brought_back(void)
{
	begin();
	for (unsigned out = 0; out < MLX_UD_TX; out = 3 * out + 1) {
		uint64_t before = mq(0)->stat.ud_restarted;
		uint32_t was = mq(0)->lossy.qp->qp_num;

		fail_in_the_middle(out);
		control();
		UNIT_EQ(mq(0)->stat.ud_restarted, before + 2);
		UNIT_EQ(mq(0)->lossy.qp->qp_num, was);
		UNIT_EQ(mq(0)->lossy.done, mq(0)->lossy.sent);
		all_goes();
	}
	end();
}

/* Both sides' queue pairs fail once the question, and once the answer is under way. */
static void
who_asks_is_connected_though_datagrams_failed(void)
{
	for (unsigned late = 0; late < 2; late++) {
		time_t since = time(NULL);

		begin();
		UNIT_EQ(plx_peer_connect(to[0]), 0);
		while (late && mlx_dgrams_poll(mq(1)) == 0 && in_time(since))
			;
		all_fail();
		while (mlx_peer(to[0])->link.state != PLX_LINK_OPEN && in_time(since)) {
			turns();
			control();
		}
		UNIT_EQ(mlx_peer(to[0])->link.state, PLX_LINK_OPEN);
		UNIT_TRUE(mq(0)->stat.ud_restarted != 0);
		end();
	}
}

/* Nobody would wake him when it is time to mend. */
static void
who_has_to_mend_does_not_sleep(void)
{
	int (*arm)(struct plx_queue *queue);

	begin();
	arm = q[0]->dev->ops->sleep.arm;
	UNIT_EQ(arm(q[0]), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct mlx_ud *ud = i == 0 ? &mq(0)->ud : &mq(0)->lossy;
		time_t since = time(NULL);

		UNIT_EQ(to_error(ud), 0);
		while (!ud->failed && in_time(since))
			turns();
		UNIT_EQ(arm(q[0]), -EBUSY);
		control();
		UNIT_EQ(arm(q[0]), 0);
	}
	end();
}

static int
no_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return EIO;
}

/* As often as may be. */
static void
fail_and_mend_in_vain(void)
{
	fail_in_the_middle(1);
	mlx_glue.modify_qp = no_modify;
	for (unsigned i = 1; i < MLX_UD_TRIES; i++)
		plx_queue_control(q[0]);
	UNIT_TRUE(!mlx_port_is_gone(mq(0)->port));
}

static void
what_cannot_be_brought_back_is_a_device_that_failed(void)
{
	int (*modify)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) = mlx_glue.modify_qp;

	begin();
	fail_and_mend_in_vain();
	mlx_glue.modify_qp = modify;
	control();
	UNIT_EQ(mq(0)->stat.ud_restarted, 2);
	all_goes();
	/* the tries are counted anew */
	fail_and_mend_in_vain();
	control();
	UNIT_TRUE(mlx_port_is_gone(mq(0)->port));
	control();
	turns();
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ(to[i]->state, PLX_PEER_DEAD);
		UNIT_EQ(to[i]->err, -ENODEV);
		UNIT_EQ(send(i), -ENODEV);
	}
	mlx_glue.modify_qp = modify;
	end();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(what_failed_is_brought_back),
		UNIT_TEST(who_asks_is_connected_though_datagrams_failed),
		UNIT_TEST(who_has_to_mend_does_not_sleep),
		UNIT_TEST(what_cannot_be_brought_back_is_a_device_that_failed),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"mlx_mend", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	return unit_run(suites);
}
