/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_table.c - the one table of settings; a new setting is one row here and
 * one name in plx_conf.h
 */
#include "plx_conf.h"

static const char *const log_levels[] = {"emergency", "alert", "critical", "error", "warning",
	"notice", "info", "debug", NULL};
static const char *const huge_choices[] = {"auto", "no", NULL};
static const char *const auto_no_choices[] = {"auto", "no", NULL};
static const char *const wait_choices[] = {"spin", "yield", "auto", NULL};
static const char *const idle_choices[] = {"spin", "pause", "yield", "sleep", "auto", "lend", NULL};
static const char *const rma_choices[] = {"auto", "device", "message", NULL};
static const char *const atomics_choices[] = {"auto", "cpu", "device", NULL};
static const char *const transport_choices[] = {"tcp", "rdma", "auto", NULL};
static const char *const rndv_choices[] = {"auto", "get", "split", "frag", NULL};

#define ROW_BOOL(id, n, d, rt, h) [id] = {n, PLX_CONF_BOOL, "", d, 0, 1, NULL, rt, h}
#define ROW_UINT(id, n, un, d, lo, hi, rt, h) [id] = {n, PLX_CONF_UINT, un, d, lo, hi, NULL, rt, h}
#define ROW_ENUM(id, n, d, ch, rt, h) [id] = {n, PLX_CONF_ENUM, "", d, 0, 0, ch, rt, h}
#define ROW_STR(id, n, d, rt, h) [id] = {n, PLX_CONF_STR, "", d, 0, 0, NULL, rt, h}

static const struct plx_conf_row rows[PLX_CONF_N] = {
	ROW_ENUM(PLX_CONF_LOG_LEVEL, "log.level", "warning", log_levels, true,
		"What is written to standard error: this level and those before it."),
	ROW_STR(PLX_CONF_LOG_FILE, "log.file", "", false,
		"Where that is written instead; in its name %p is the process id, %h the host; empty means standard error."),
	ROW_ENUM(PLX_CONF_EAL_HUGE, "eal.huge", "auto", huge_choices, false,
		"Whether pools are taken from huge pages when there are free ones."),
	ROW_UINT(PLX_CONF_EAL_MEM, "eal.mem", "bytes", "64m", 16u << 20, 16ull << 30, false,
		"Address space of the EAL heap; pages are used as they are touched."),
	ROW_STR(PLX_CONF_REACTOR, "reactor.lcores", "", false,
		"Cores of dedicated reactors as \"lcore:1,2\" or \"lcore:1-3\"; empty means inline."),
	ROW_ENUM(PLX_CONF_REACTOR_IDLE, "reactor.idle", "lend", idle_choices, true,
		"What a reactor does when its turns find nothing; auto and lend see whether its core is shared."),
	ROW_UINT(PLX_CONF_REACTOR_IDLE_TURNS, "reactor.idle_turns", "turns", "1000", 1, 1u << 30,
		true, "Empty turns before a reactor applies reactor.idle; at most 32 on a shared core (auto, lend)."),
	ROW_ENUM(PLX_CONF_WORKER_WAIT, "worker.wait", "auto", wait_choices, true,
		"How an inline worker waits: spin, yield its core, or auto: as costs less time."),
	ROW_UINT(PLX_CONF_WORKER_NAP_US, "worker.nap_us", "us", "50", 0, 10000, true,
		"Sleep of an inline worker that finds nothing while soft-RoCE moves 64 KiB or more for it; 0: none."),
	ROW_STR(PLX_CONF_DEVICES, "worker.devices", "shm,net_mlx", false,
		"Devices a worker opens where they are there; a peer is reached by the first that can."),
	ROW_ENUM(PLX_CONF_SHM_HUGE, "shm.huge", "auto", huge_choices, false,
		"Whether shared segments are backed by huge pages when there are free ones."),
	ROW_UINT(PLX_CONF_SHM_FAST_PEERS, "shm.fast_peers", "peers", "32", 0, 64, false,
		"Peers that get a ring of their own to this worker; the rest share one."),
	ROW_UINT(PLX_CONF_SHM_WIDE_PEERS, "shm.wide_peers", "peers", "8", 0, 64, false,
		"Of the fast peers, those with 352 KiB for data under way; the others have 108."),
	ROW_ENUM(PLX_CONF_SHM_CMA, "shm.cma", "auto", auto_no_choices, false,
		"Whether large private buffers are read and written by cross-memory attach."),
	ROW_BOOL(PLX_CONF_SHM_WINDOWS, "shm.windows", "yes", false,
		"Whether large buffers in memory that a peer allocated by UCP are mapped here and copied."),
	ROW_STR(PLX_CONF_SHM_DIR, "shm.dir", "", false,
		"A folder in which processes find each other, as those of containers that share it; empty: those "
		"of a network namespace do."),
	ROW_STR(PLX_CONF_SHM_PEERS, "shm.peers", "same", false,
		"Whose processes are met: same (user), all, or a list of users and @groups, by name or number."),
	ROW_STR(PLX_CONF_NET_MLX_DEVICE, "net_mlx.device", "", false,
		"RDMA devices as \"mlx5_0,mlx5_1\", each with a port as \"mlx5_0:2\" and the index of the "
		"port's gid as \"mlx5_0:2:3\" if need be; a port that is named stands by while it is "
		"down; empty: all that work, the fastest first."),
	ROW_UINT(PLX_CONF_NET_MLX_PORTS, "net_mlx.ports", "ports", "4", 1, 4, false,
		"Ports that a worker uses at the most: the first of net_mlx.device."),
	ROW_BOOL(PLX_CONF_NET_MLX_ROUTED, "net_mlx.routed", "yes", false,
		"Whether peers on other Ethernet networks are tried, when no two ports share one."),
	ROW_BOOL(PLX_CONF_NET_MLX_GROUPS_BY_CM, "net_mlx.groups_by_cm", "no", false,
		"Whether CCI's groups are joined by the RDMA connection manager on Ethernet too."),
	ROW_UINT(PLX_CONF_NET_MLX_MSG_LEN, "net_mlx.msg_len", "bytes", "8k", 512, 512u << 10, false,
		"Data of one message; longer ones go in pieces."),
	ROW_UINT(PLX_CONF_NET_MLX_WINDOW, "net_mlx.window", "messages", "64", 4, 1024, false,
		"Most messages that a peer may have on the way to this worker, once it has needed so many."),
	ROW_UINT(PLX_CONF_NET_MLX_SLOTS, "net_mlx.slots", "messages", "1024", 4, 1u << 15, false,
		"Receive slots of a worker after which new peers get a window of 4."),
	ROW_UINT(PLX_CONF_NET_MLX_SLOTS_MAX, "net_mlx.slots_max", "messages", "4096", 64, 1u << 15,
		false, "Receive slots of a worker after which new peers are not connected."),
	ROW_UINT(PLX_CONF_NET_MLX_CONNECTED, "net_mlx.connected", "peers", "32k", 2, 1u << 15, false,
		"Peers that a worker is connected to at once; those not used for longest give way."),
	ROW_UINT(PLX_CONF_NET_MLX_CONNECT_MS, "net_mlx.connect_ms", "ms", "10000", 100, 600000, false,
		"How long a peer may take to answer before it counts as unreachable."),
	ROW_UINT(PLX_CONF_NET_MLX_ACK_MS, "net_mlx.ack_ms", "ms", "500", 1, 60000, false,
		"How long the device waits for an acknowledgement before it sends again."),
	ROW_UINT(PLX_CONF_NET_MLX_RETRIES, "net_mlx.retries", "times", "7", 0, 7, false,
		"How often the device sends again before it gives up; 7 may mean for ever."),
	ROW_UINT(PLX_CONF_NET_MLX_PROBE_MS, "net_mlx.probe_ms", "ms", "1000", 10, 600000, false,
		"Silence of a peer after which it is probed."),
	ROW_UINT(PLX_CONF_NET_MLX_DEAD_MS, "net_mlx.dead_ms", "ms", "3500", 10, 600000, false,
		"How long a peer that is probed may be silent before it counts as gone."),
	ROW_ENUM(PLX_CONF_NET_MLX_DIRECT, "net_mlx.direct", "auto", auto_no_choices, false,
		"Whether the queues of an mlx5 device are written and read directly."),
	ROW_BOOL(PLX_CONF_NET_MLX_TAG_MATCHING, "net_mlx.tag_matching", "no", false,
		"Whether, with tag.offload, a device that can match tags does so; experimental."),
	ROW_UINT(PLX_CONF_NET_MLX_CACHE, "net_mlx.cache", "registrations", "1024", 0, 1u << 16, false,
		"Registrations of private memory that a process keeps for later transfers; 0: none."),
	ROW_UINT(PLX_CONF_NET_MLX_CACHE_LEN, "net_mlx.cache_len", "bytes", "1g", 0, 1ull << 40, false,
		"Private memory that stays registered for later transfers, at the most."),
	ROW_UINT(PLX_CONF_PEER_CHECK_MS, "worker.peer_check_ms", "ms", "20", 1, 60000, true,
		"How often a worker looks whether its peers are alive."),
	ROW_ENUM(PLX_CONF_CM_TRANSPORT, "cm.transport", "auto", transport_choices, true,
		"How listeners and their clients meet: TCP, the RDMA connection manager, or both; a client tries RDMA first."),
	ROW_UINT(PLX_CONF_CM_DONE_MS, "cm.done_ms", "ms", "60000", 10, 3600000, true,
		"How long an accepted client may take to say that it is connected; then its handle fails."),
	ROW_UINT(PLX_CONF_EAGER_MAX, "proto.eager_max", "bytes", "8k", 0, 64u << 20, true,
		"Largest message sent without asking; longer ones use rendezvous."),
	ROW_BOOL(PLX_CONF_EAGER_EMPTY, "proto.eager_empty", "yes", true,
		"Whether empty messages are sent without asking although proto.eager_max is 0."),
	ROW_ENUM(PLX_CONF_RNDV_SCHEME, "rndv.scheme", "auto", rndv_choices, true,
		"How rendezvous data moves: receiver reads, both sides copy, or fragments."),
	ROW_UINT(PLX_CONF_RNDV_CHUNK, "rndv.chunk", "bytes", "256k", 4096, 1u << 26, true,
		"Bytes of one transfer that are moved in one turn."),
	ROW_UINT(PLX_CONF_RNDV_SPLIT_MIN, "rndv.split_min", "bytes", "64k", 4096, 1ull << 30, true,
		"Shortest transfer in which the sender helps to copy."),
	ROW_UINT(PLX_CONF_RNDV_FRAG_MAX, "rndv.frag_max", "bytes", "0", 0, 1ull << 40, true,
		"Longest transfer by fragments although the device can read peer memory."),
	ROW_UINT(PLX_CONF_RNDV_PUT_MIN, "rndv.put_min", "bytes", "16k", 1, 1ull << 40, true,
		"Shortest transfer for which the receiver's memory is registered, where devices need that."),
	ROW_UINT(PLX_CONF_TAG_UNEXPECTED_MAX, "tag.unexpected_max", "bytes", "256m", 0, 1ull << 40,
		true, "Kept unexpected data of a worker above which senders keep theirs."),
	ROW_UINT(PLX_CONF_STREAM_UNREAD_MAX, "stream.unread_max", "bytes", "256m", 0, 1ull << 40,
		true, "Unread data of a worker's streams above which senders wait."),
	ROW_BOOL(PLX_CONF_TAG_OFFLOAD, "tag.offload", "no", true,
		"Whether devices that can match tags are given posted receives."),
	ROW_UINT(PLX_CONF_TAG_OFFLOAD_LIST, "tag.offload_list", "receives", "64", 1, 4096, true,
		"Receives that a device is given at the most."),
	ROW_UINT(PLX_CONF_TAG_OFFLOAD_MIN, "tag.offload_min", "bytes", "1k", 0, 1ull << 40, true,
		"Shortest receive that a device is given."),
	ROW_UINT(PLX_CONF_TAG_OFFLOAD_WITHDRAWN, "tag.offload_withdrawn", "percent", "90", 0, 100, true,
		"Of 1024 receives given to a device, those taken back at which it is given up; 0 never."),
	ROW_ENUM(PLX_CONF_RMA_SCHEME, "rma.scheme", "auto", rma_choices, true,
		"How put, get and atomics go: as directly as can be, by the device, by messages."),
	ROW_ENUM(PLX_CONF_RMA_ATOMICS, "rma.atomics", "auto", atomics_choices, true,
		"Who does atomics of 8 bytes: processors, the RDMA device, or the latter if no other is named."),
	ROW_UINT(PLX_CONF_CCI_MAX_SEND, "cci.max_send", "bytes", "8k", 256, 16376, false,
		"Longest message of a CCI device."),
	ROW_UINT(PLX_CONF_CCI_NO_COPY_MIN, "cci.no_copy_min", "bytes", "12k", 256, 16376, false,
		"Shortest NO_COPY message that a receiver on this node reads from the sender's buffer."),
	ROW_UINT(PLX_CONF_CCI_SEND_BUFS, "cci.send_bufs", "messages", "1024", 1, 1u << 20, false,
		"Send buffers of a new CCI endpoint."),
	ROW_UINT(PLX_CONF_CCI_RECV_BUFS, "cci.recv_bufs", "messages", "1024", 1, 1u << 20, false,
		"Receive buffers of a new CCI endpoint."),
	ROW_STR(PLX_CONF_RPC_SOCKET, "rpc.socket", "", false,
		"Path of the JSON-RPC unix socket (%p is the process id); empty means none."),
};

const struct plx_conf_row *
plx_conf_row(enum plx_conf_id id)
{
	return &rows[id];
}
