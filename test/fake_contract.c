/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_contract.c - the fake device in the contract of drivers
 */
#include "plx_unit_dev.h"

static void
set_up(unsigned i)
{
	(void)i;
	fake_reset(1);
	fake.zcopy_min = 200;
	fake.keep_min = 100;
}

static void
misbehave(void)
{
	fake.full_percent = 10;
	fake.delay_max = 3;
	fake.short_percent = 20;
	fake.depth = 32;
}

static void
limit(unsigned n)
{
	fake.depth = n;
}

static struct dev_contract contract = {
	.ops = &fake_dev_ops,
	.set_up = set_up,
	.misbehave = misbehave,
	.limit = limit,
	.die = fake_kill,
};

RTE_INIT(fake_contract)
{
	dev_contract_add(&contract);
}
