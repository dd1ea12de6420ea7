/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_contract_test.c - the TCP driver in the contract of drivers, and what only it has
 */
#include <rte_common.h>

#include "plx_net_tcp.h"
#include "plx_unit_dev.h"

#include "tcp_int.h"

static void
set_up(unsigned i)
{
	plx_conf_set(&conf, "net_tcp.connect_ms", "2000", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_tcp.interfaces", "lo", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_tcp.family", i == 0 ? "any" : "inet6", PLX_CONF_FROM_API, NULL);
}

static bool
is_settled(struct plx_peer *peer)
{
	return tcp_peer(peer)->state == TCP_OPEN;
}

static const char *const setups[] = {"over any family", "over IPv6", NULL};

static struct dev_contract contract = {
	.ops = &plx_net_tcp_ops,
	.setups = setups,
	.set_up = set_up,
	.is_settled = is_settled,
	.at_least = 16,
};

RTE_INIT(tcp_contract)
{
	dev_contract_add(&contract);
}
