/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skeleton_contract_test.c - the skeleton driver in the contract of drivers
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "plx_skeleton.h"
#include "plx_unit_dev.h"

static void
set_up(unsigned i)
{
	plx_conf_set(&conf, "skeleton.cells", i == 0 ? "64" : "16", PLX_CONF_FROM_API, NULL);
}

static void
count_told(void *arg, int err)
{
	UNIT_EQ(err, 0);
	++*(unsigned *)arg;
}

/* What the sender writes before the message is taken is what comes. */
static void
data_that_is_lent_is_read_as_the_message_is_taken(void)
{
	struct plx_queue *a = queue_new(), *b = queue_new();
	uint8_t data[] = "before";
	const struct iovec iov = {data, sizeof(data)};
	unsigned n = 0;
	const struct plx_tx_zcopy tx = {.peer = connected_to(a, b), .hdr = "", .iov = &iov, .n_iov = 1,
		.done = count_told, .arg = &n};
	struct plx_rx rx;

	UNIT_EQ_FATAL(plx_peer_tx_zcopy(&tx), -EINPROGRESS);
	UNIT_EQ(burst(a, &rx, 1), 0);
	UNIT_EQ(n, 0);
	memcpy(data, "behind", sizeof(data));
	UNIT_EQ_FATAL(burst(b, &rx, 1), 1);
	UNIT_EQ(memcmp(rx.data, "behind", sizeof(data)), 0);
	UNIT_EQ(burst(a, &rx, 0), 0);
	UNIT_EQ(n, 1);
	memset(data, 0, sizeof(data));
	UNIT_EQ(memcmp(rx.data, "behind", sizeof(data)), 0);
	b->rx_release(b, &rx, 1);
	queue_close(a);
	queue_close(b);
}

/* Without the other end of a lane there is nobody to look after. */
static void
its_deadline_is_that_of_the_next_look(void)
{
	struct plx_queue *a, *b;
	uint64_t before, due;

	dev_end();
	plx_conf_set(&conf, "skeleton.look_ms", "5000", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open(plx_skeleton_ops.name, &conf, &dev), 0);
	a = queue_new();
	b = queue_new();
	UNIT_EQ(plx_queue_deadline(a), UINT64_MAX);
	connected_to(a, b);
	before = now_ns();
	plx_queue_control(a);
	due = plx_queue_deadline(a);
	UNIT_TRUE(due >= before + UINT64_C(5000000000) && due <= now_ns() + UINT64_C(5000000000));
	UNIT_EQ(plx_queue_deadline(b), UINT64_MAX); /* it has not looked at its door */
	plx_queue_control(b);
	UNIT_TRUE(plx_queue_deadline(b) != UINT64_MAX);
	queue_close(a);
	plx_queue_control(b);
	plx_queue_control(b);
	UNIT_EQ(plx_queue_deadline(b), UINT64_MAX); /* it knew of it only by that */
	queue_close(b);
}

static CU_TestInfo own_tests[] = {
	UNIT_TEST(data_that_is_lent_is_read_as_the_message_is_taken),
	UNIT_TEST(its_deadline_is_that_of_the_next_look),
	CU_TEST_INFO_NULL,
};

static const struct dev_contract_suite suites[] = {{"itself", 0, own_tests, 0}, {NULL, 0, NULL, 0}};

static const char *const setups[] = {"with 64 cells", "with 16 cells", NULL};

static struct dev_contract contract = {
	.ops = &plx_skeleton_ops,
	.setups = setups,
	.set_up = set_up,
	.suites = suites,
	.at_least = 16,
};

RTE_INIT(skeleton_contract)
{
	dev_contract_add(&contract);
}
