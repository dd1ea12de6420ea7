/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * skeleton_contract_test.c - the skeleton driver in the contract of drivers
 */
#include <rte_common.h>

#include "plx_skeleton.h"
#include "plx_unit_dev.h"

static void
set_up(unsigned i)
{
	plx_conf_set(&conf, "skeleton.cells", i == 0 ? "64" : "16", PLX_CONF_FROM_API, NULL);
}

static const char *const setups[] = {"with 64 cells", "with 16 cells", NULL};

static struct dev_contract contract = {
	.ops = &plx_skeleton_ops,
	.setups = setups,
	.set_up = set_up,
	.at_least = 16,
};

RTE_INIT(skeleton_contract)
{
	dev_contract_add(&contract);
}
