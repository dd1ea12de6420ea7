/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_test.c - a driver is complete, or it is refused; which path comes first
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_common.h>

#include "plx_dev_cm.h"
#include "plx_unit.h"

#define HOOK sizeof(void (*)(void))

static struct plx_dev_ops ops;

/* One hook less, or one where there was none. @return what comes of it */
static int
register_other(size_t at)
{
	char hook[HOOK];

	ops = fake_dev_ops;
	memcpy(hook, (char *)&ops + at, HOOK);
	if (memcmp(hook, (char[HOOK]){0}, HOOK) != 0)
		memset((char *)&ops + at, 0, HOOK);
	else
		memcpy((char *)&ops + at, &ops.queue_open, HOOK);
	return plx_dev_register(&ops);
}

static void
a_driver_has_every_hook_that_is_asked_of_all(void)
{
	size_t at;

	for (at = offsetof(struct plx_dev_ops, queue_open); at < offsetof(struct plx_dev_ops, sleep); at += HOOK)
		UNIT_EQ(register_other(at), -EINVAL);
	UNIT_EQ(at - offsetof(struct plx_dev_ops, queue_open), 10 * HOOK);
	UNIT_EQ(register_other(offsetof(struct plx_dev_ops, name)), -EINVAL);
}

static void
a_table_of_hooks_is_whole_or_empty(void)
{
	static const struct plx_dev_cm_ops cm;

	for (size_t at = offsetof(struct plx_dev_ops, sleep); at < offsetof(struct plx_dev_ops, cm); at += HOOK)
		if (at != offsetof(struct plx_dev_ops, zcopy)) /* a single hook is never a half */
			UNIT_EQ(register_other(at), -EINVAL);
	ops = fake_dev_ops;
	ops.cm = &cm;
	UNIT_EQ(plx_dev_register(&ops), -EINVAL);
}

/* Each counts more than all before it. */
static void
what_works_counts_most_of_a_path_and_nearness_least(void)
{
	const struct plx_dev_path paths[] = {{.dead = true, .works = true, .known = true, .spread = 9}, {.spread = UINT32_MAX},
		{.n_near = 1}, {.n_near = 2}, {.one_place = true}, {.speed = 1}, {.speed = 15}, {.one_net = true}, {.self = true},
		{.known = true}, {.works = true}};
	struct plx_dev_path all = {.spread = 0};

	for (unsigned i = 1; i < RTE_DIM(paths); i++) {
		struct plx_dev_path before = {.spread = UINT32_MAX};

		before.n_near = i > 3 ? 2 : i > 2;
		before.one_place = i > 4;
		before.speed = i > 6 ? 15 : i > 5;
		before.one_net = i > 7;
		before.self = i > 8;
		before.known = i > 9;
		if (i > 1)
			UNIT_TRUE(plx_dev_path_rank(&paths[i]) > plx_dev_path_rank(&before));
		UNIT_TRUE(plx_dev_path_rank(&paths[i]) > plx_dev_path_rank(&paths[i - 1]));
	}
	UNIT_TRUE(plx_dev_path_rank(&all) == 0);
	all.spread = 1;
	UNIT_EQ(plx_dev_path_rank(&all), 1);
}

static int
queue_fd(struct plx_queue *q)
{
	(void)q;
	return 0;
}

static void
fake_disarm(struct plx_queue *q)
{
	(void)q;
}

static uint64_t
never(struct plx_queue *q)
{
	(void)q;
	return UINT64_MAX;
}

/* It is asked of who sleeps, and control is called then. */
static void
a_deadline_goes_with_sleep_and_control(void)
{
	static const struct plx_dev_sleep_ops sleep = {.efd = queue_fd, .arm = queue_fd, .disarm = fake_disarm};

	ops = fake_dev_ops;
	ops.deadline = never;
	UNIT_EQ(plx_dev_register(&ops), -EINVAL);
	ops.sleep = sleep;
	ops.queue_control = NULL;
	UNIT_EQ(plx_dev_register(&ops), -EINVAL);
}

static int
open_boasts(struct plx_dev *dev, const struct plx_conf *conf)
{
	(void)conf;
	dev->caps = PLX_DEV_RELIABLE | PLX_DEV_ORDERED | PLX_DEV_KEYS;
	return 0;
}

static void
a_device_says_no_more_than_its_driver_has_hooks_for(void)
{
	static struct plx_dev_ops boasts;
	struct plx_dev *dev;

	boasts = fake_dev_ops;
	boasts.name = "boasts";
	boasts.open = open_boasts;
	memset(&boasts.keys, 0, sizeof(boasts.keys));
	UNIT_EQ_FATAL(plx_dev_register(&boasts), 0);
	UNIT_EQ(plx_dev_open("boasts", NULL, &dev), -EINVAL);
	UNIT_EQ(plx_dev_open("nobody", NULL, &dev), -ENODEV);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_driver_has_every_hook_that_is_asked_of_all),
	UNIT_TEST(a_table_of_hooks_is_whole_or_empty),
	UNIT_TEST(what_works_counts_most_of_a_path_and_nearness_least),
	UNIT_TEST(a_deadline_goes_with_sleep_and_control),
	UNIT_TEST(a_device_says_no_more_than_its_driver_has_hooks_for),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"dev", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
