/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * chan_group_test.c - channels to groups of a device, which may take a while to join
 */
#include "chan_test.h"

#define GROUP 77u

static struct plx_dev_ops ops;
static const struct plx_dev_ops *before;
static unsigned n_left;
static int answer; /* of the device */

static int
group_join(struct plx_queue *q, uint64_t group, bool rx)
{
	(void)q;
	(void)rx;
	UNIT_EQ(group, GROUP);
	return answer;
}

static void
group_leave(struct plx_queue *q, uint64_t group, bool rx)
{
	(void)q;
	(void)group;
	(void)rx;
	n_left++;
}

static struct plx_queue *
queue(void)
{
	return s[0].w->queues[0];
}

/* The first side's device has groups; with a channel to one. */
static void
begin_to_join(uint8_t attr)
{
	begin();
	before = queue()->dev->ops;
	ops = *before;
	ops.group.join = group_join;
	ops.group.leave = group_leave;
	queue()->dev->ops = &ops;
	queue()->group_mtu = 300;
	s[0].w->chans.group_q = queue();
	n_left = 0;
	UNIT_EQ(plx_worker_chan_join(s[0].w, &s[0].c, attr, GROUP), 0);
}

static void
end_once_left(void)
{
	if (s[0].c.state != PLX_CHAN_NONE)
		plx_worker_chan_end(s[0].w, &s[0].c);
	UNIT_EQ(n_left, 1);
	queue()->dev->ops = before;
	close_both();
}

static void
who_joins_at_once_is_told_at_once(void)
{
	answer = 0;
	begin_to_join(PLX_CHAN_MC_TX);
	UNIT_EQ(s[0].n, 1);
	taken(0, PLX_CHAN_CONNECTED, 0);
	UNIT_EQ(s[0].c.max_send, 300);
	end_once_left();
}

static void
who_has_to_wait_is_told_when_the_device_knows(void)
{
	answer = -EINPROGRESS;
	for (unsigned rx = 0; rx < 2; rx++) {
		begin_to_join(rx != 0 ? PLX_CHAN_MC_RX : PLX_CHAN_MC_TX);
		turns(10);
		queue()->on_joined(queue(), GROUP + 1, rx != 0, 0);
		queue()->on_joined(queue(), GROUP, rx == 0, 0);
		UNIT_EQ(s[0].n, 0);
		UNIT_EQ(s[0].c.state, PLX_CHAN_CONNECTING);
		queue()->on_joined(queue(), GROUP, rx != 0, 0);
		taken(0, PLX_CHAN_CONNECTED, 0);
		UNIT_EQ(s[0].c.state, PLX_CHAN_OPEN);
		UNIT_EQ(s[0].w->chans.stat.opened, 1);
		queue()->on_joined(queue(), GROUP, rx != 0, -EIO); /* of others */
		UNIT_EQ(s[0].c.state, PLX_CHAN_OPEN);
		end_once_left();
	}
}

static void
who_is_refused_later_is_told_so(void)
{
	answer = -EINPROGRESS;
	begin_to_join(PLX_CHAN_MC_RX);
	queue()->on_joined(queue(), GROUP, true, -ECONNREFUSED);
	taken(0, PLX_CHAN_CONNECTED, -ECONNREFUSED);
	UNIT_EQ(s[0].c.state, PLX_CHAN_NONE);
	end_once_left();
}

static void
who_goes_before_leaves(void)
{
	answer = -EINPROGRESS;
	begin_to_join(PLX_CHAN_MC_TX);
	end_once_left();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(who_joins_at_once_is_told_at_once),
		UNIT_TEST(who_has_to_wait_is_told_when_the_device_knows),
		UNIT_TEST(who_is_refused_later_is_told_so),
		UNIT_TEST(who_goes_before_leaves),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"chan_group", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
