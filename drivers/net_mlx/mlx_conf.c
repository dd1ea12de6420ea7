/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_conf.c - settings of the driver, and its names in other interfaces
 */
#include "mlx_conf.h"

static const char *const auto_no[] = {"auto", "no", NULL};

static const struct plx_conf_row rows[MLX_CONF_N] = {
	PLX_ROW_STR(MLX_CONF_DEVICE, "net_mlx.device", "", false,
		"RDMA devices as \"mlx5_0,mlx5_1\", each with a port as \"mlx5_0:2\" and the index of the "
		"port's gid as \"mlx5_0:2:3\" if need be; a named port is used again when it is no longer "
		"down; empty: all that work, the fastest first.", PLX_CONF_ROLE_PORT_NAMES),
	PLX_ROW_UINT(MLX_CONF_PORTS, "net_mlx.ports", "ports", "4", 1, 4, false,
		"Ports that a worker uses at the most: the first of net_mlx.device.", PLX_CONF_ROLE_PORTS),
	PLX_ROW_BOOL(MLX_CONF_ROUTED, "net_mlx.routed", "yes", false,
		"Whether peers on other Ethernet networks are tried, when no two ports share one."),
	PLX_ROW_BOOL(MLX_CONF_GROUPS_BY_CM, "net_mlx.groups_by_cm", "no", false,
		"Whether CCI's groups are joined by the RDMA connection manager on Ethernet too."),
	PLX_ROW_UINT(MLX_CONF_MSG_LEN, "net_mlx.msg_len", "bytes", "8k", 512, 512u << 10, false,
		"Bytes of one message; longer ones are sent in pieces."),
	PLX_ROW_UINT(MLX_CONF_WINDOW, "net_mlx.window", "messages", "64", 4, 1024, false,
		"Largest number of messages that a peer may have in flight to this worker; it starts smaller."),
	PLX_ROW_UINT(MLX_CONF_SLOTS, "net_mlx.slots", "messages", "1024", 4, 1u << 15, false,
		"Receive slots of a worker after which new peers get a window of 4."),
	PLX_ROW_UINT(MLX_CONF_SLOTS_MAX, "net_mlx.slots_max", "messages", "4096", 64, 1u << 15,
		false, "Receive slots of a worker after which new peers are not connected."),
	PLX_ROW_UINT(MLX_CONF_CONNECTED, "net_mlx.connected", "peers", "32k", 2, 1u << 15, false,
		"Peers that a worker is connected to at once; the least recently used is disconnected for a new one."),
	PLX_ROW_UINT(MLX_CONF_CONNECT_MS, "net_mlx.connect_ms", "ms", "10000", 100, 600000, false,
		"How long a peer may take to answer before it counts as unreachable."),
	PLX_ROW_UINT(MLX_CONF_ACK_MS, "net_mlx.ack_ms", "ms", "500", 1, 60000, false,
		"How long the device waits for an acknowledgement before it sends again."),
	PLX_ROW_UINT(MLX_CONF_RETRIES, "net_mlx.retries", "times", "7", 0, 7, false,
		"How often the device sends again before it gives up; 7 may mean no limit."),
	PLX_ROW_UINT(MLX_CONF_PROBE_MS, "net_mlx.probe_ms", "ms", "1000", 10, 600000, false,
		"Silence of a peer after which it is probed.", PLX_CONF_ROLE_PROBE_MS),
	PLX_ROW_UINT(MLX_CONF_DEAD_MS, "net_mlx.dead_ms", "ms", "3500", 10, 600000, false,
		"How long a probed peer may be silent before it counts as dead."),
	PLX_ROW_ENUM(MLX_CONF_DIRECT, "net_mlx.direct", "auto", auto_no, false,
		"Whether the queues of an mlx5 device are written and read directly."),
	PLX_ROW_BOOL(MLX_CONF_TAG_MATCHING, "net_mlx.tag_matching", "no", false,
		"Whether, with tag.offload, a device that can match tags does so; experimental."),
	PLX_ROW_UINT(MLX_CONF_CACHE, "net_mlx.cache", "registrations", "1024", 0, 1u << 16, false,
		"Registrations of private memory that a process keeps for later transfers; 0: none."),
	PLX_ROW_UINT(MLX_CONF_CACHE_LEN, "net_mlx.cache_len", "bytes", "1g", 0, 1ull << 40, false,
		"Private memory that stays registered for later transfers, at the most."),
};

struct plx_conf_rows mlx_settings = {.rows = rows, .n = MLX_CONF_N};

/* The driver uses reliable connections: without them it is disabled. */
enum { VERBS = 1, MLX5 = 2 };

static const struct plx_dev_alias aliases[] = {
	{"rc", false, VERBS | MLX5}, {"ib", false, VERBS | MLX5}, {"rc_v", false, VERBS},
	{"rc_verbs", false, VERBS}, {"rc_x", false, MLX5}, {"rc_mlx5", false, MLX5}, {"ud", false, 0},
	{"ud_v", false, 0}, {"ud_x", false, 0}, {"ud_verbs", false, 0}, {"ud_mlx5", false, 0},
	{"dc", false, 0}, {"dc_x", false, 0}, {"dc_mlx5", false, 0}, {"srd", false, 0}, {NULL, false, 0},
};

const struct plx_dev_names mlx_names = {.aliases = aliases, .cci = "verbs", .between_hosts = true};
