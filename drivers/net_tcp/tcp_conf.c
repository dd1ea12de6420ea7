/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_conf.c - settings of the driver, and what others call it
 */
#include "tcp_conf.h"

PLX_LOG_DEFINE(tcp, "plx.drv.net_tcp");

static const char *const families[] = {"any", "inet", "inet6", NULL};

static const struct plx_conf_row rows[TCP_CONF_N] = {
	PLX_ROW_STR(TCP_CONF_INTERFACES, "net_tcp.interfaces", "", false,
		"Interfaces and networks by which peers reach this process, as \"eth0,10.1.0.0/16\", or those that "
		"they do not, as \"^eth1\"; empty: all but bridges of containers and virtual machines.",
		PLX_CONF_ROLE_INTERFACES),
	PLX_ROW_ENUM(TCP_CONF_FAMILY, "net_tcp.family", "any", families, false,
		"Addresses that are used: of IPv4 (inet), of IPv6 (inet6), or any."),
	PLX_ROW_STR(TCP_CONF_PORTS, "net_tcp.ports", "", false,
		"Ports to listen at, and to connect from, as \"20000-20999\"; empty: any that the system gives."),
	PLX_ROW_UINT(TCP_CONF_CONNECT_MS, "net_tcp.connect_ms", "ms", "10000", 100, 600000, false,
		"How long it may take to find a host where a peer listens before it counts as unreachable."),
	PLX_ROW_UINT(TCP_CONF_ANSWER_MS, "net_tcp.answer_ms", "ms", "3600000", 100, 86400000, false,
		"How long one that listens may take to answer: it may compute."),
	PLX_ROW_UINT(TCP_CONF_PROBE_MS, "net_tcp.probe_ms", "ms", "1000", 1000, 600000, false,
		"Silence of a peer after which its host is probed.", PLX_CONF_ROLE_PROBE_MS),
	PLX_ROW_UINT(TCP_CONF_DEAD_MS, "net_tcp.dead_ms", "ms", "20000", 100, 900000, false,
		"How long a peer's host may be silent before the peer counts as gone."),
	PLX_ROW_UINT(TCP_CONF_CONNECTED, "net_tcp.connected", "peers", "32k", 2, 32u << 10, false,
		"Connections of a worker above which those that are idle are closed, until there is something to send."),
	PLX_ROW_UINT(TCP_CONF_FLOWS, "net_tcp.flows", "connections", "1", 1, TCP_FLOWS_MAX, false,
		"Connections to a peer: the first carries messages; further ones, made on demand, carry long data."),
	PLX_ROW_UINT(TCP_CONF_MSG_LEN, "net_tcp.msg_len", "bytes", "32k", 512, 48u << 10, false,
		"Data of one message; longer ones go in pieces."),
	PLX_ROW_UINT(TCP_CONF_CHUNKS, "net_tcp.chunks", "chunks", "256", 64, 1u << 16, false,
		"Chunks of 64 KiB of a worker for what its sockets do not take at once."),
	PLX_ROW_UINT(TCP_CONF_GROUP_PORT, "net_tcp.group_port", "port", "27180", 1024, UINT16_MAX, false,
		"Port of UDP of messages to groups, the same on all hosts."),
	PLX_ROW_UINT(TCP_CONF_GROUP_TTL, "net_tcp.group_ttl", "hops", "1", 0, UINT8_MAX, false,
		"Networks that a message to a group may pass: 1 the own one, 0 only this host."),
};

struct plx_conf_rows tcp_settings = {.rows = rows, .n = TCP_CONF_N};

static const struct plx_dev_alias aliases[] = {{"tcp", false, 1}, {NULL, false, 0}};

const struct plx_dev_names tcp_names = {.aliases = aliases, .cci = "tcp", .between_hosts = true,
	.by_interface = true};
