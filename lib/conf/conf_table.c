/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_table.c - the table of settings, and those that drivers add; a new setting is one row here
 * and one name in plx_conf.h, or a row of its driver
 */
#include "plx_conf.h"

#include <errno.h>
#include <string.h>

#include "conf_int.h"

PLX_LOG_DEFINE(conf, "plx.conf");

static const char *const log_levels[] = {"emergency", "alert", "critical", "error", "warning",
	"notice", "info", "debug", NULL};
static const char *const huge_choices[] = {"auto", "no", NULL};
static const char *const wait_choices[] = {"spin", "yield", "auto", NULL};
static const char *const idle_choices[] = {"spin", "pause", "yield", "sleep", "auto", "grant", NULL};
static const char *const rma_choices[] = {"auto", "device", "message", NULL};
static const char *const atomics_choices[] = {"auto", "cpu", "device", NULL};
static const char *const transport_choices[] = {"tcp", "rdma", "auto", NULL};
static const char *const rndv_choices[] = {"auto", "get", "split", "frag", NULL};

static char devices[PLX_CONF_STR_MAX]; /* default of worker.devices: all drivers */

static const struct plx_conf_row rows[PLX_CONF_N] = {
	PLX_ROW_ENUM(PLX_CONF_LOG_LEVEL, "log.level", "warning", log_levels, true,
		"What is written to standard error: this level and more severe ones."),
	PLX_ROW_STR(PLX_CONF_LOG_FILE, "log.file", "", false,
		"File to log to; %p in its name is the process id, %h the host; empty means standard error."),
	PLX_ROW_ENUM(PLX_CONF_EAL_HUGE, "eal.huge", "auto", huge_choices, false,
		"Whether pools are taken from huge pages when there are free ones."),
	PLX_ROW_UINT(PLX_CONF_EAL_MEM, "eal.mem", "bytes", "16m", 16u << 20, 16ull << 30, false,
		"Address space of the EAL heap; pages are used as they are touched."),
	PLX_ROW_BOOL(PLX_CONF_EAL_WINDOWS, "eal.windows", "yes", false,
		"Whether peers of this user map the heap of the program's own EAL, with its mbufs, and copy there."),
	PLX_ROW_BOOL(PLX_CONF_EAL_TELEMETRY, "eal.telemetry", "no", false,
		"Whether an EAL that Pollux starts opens its telemetry socket, for dpdk-telemetry.py."),
	PLX_ROW_UINT(PLX_CONF_HEAP_KEEP, "heap.keep", "bytes", "16m", 0, 64u << 20, false,
		"Freed memory that libc keeps for a process with a drop-in library; 0: as libc does."),
	PLX_ROW_STR(PLX_CONF_REACTOR, "reactor.lcores", "", false,
		"Cores of dedicated reactors as \"lcore:1,2\" or \"lcore:1-3\"; empty means inline."),
	PLX_ROW_ENUM(PLX_CONF_REACTOR_IDLE, "reactor.idle", "grant", idle_choices, true,
		"What a reactor does when its turns find nothing; auto and grant detect a shared core."),
	PLX_ROW_UINT(PLX_CONF_REACTOR_IDLE_TURNS, "reactor.idle_turns", "turns", "1000", 1, 1u << 30,
		true, "Empty turns before a reactor applies reactor.idle; at most 32 on a shared core (auto, grant)."),
	PLX_ROW_ENUM(PLX_CONF_WORKER_WAIT, "worker.wait", "auto", wait_choices, true,
		"How an inline worker waits: spin, yield its core, or auto: whichever is faster."),
	PLX_ROW_UINT(PLX_CONF_WORKER_SLEEP_US, "worker.sleep_us", "us", "50", 0, 10000, true,
		"Sleep of an inline worker that finds nothing while soft-RoCE moves 64 KiB or more for it; 0: none."),
	PLX_ROW_STR(PLX_CONF_DEVICES, "worker.devices", devices, false,
		"Devices that a worker opens. A peer is reached by the first of this list that both workers have and that leads to it."),
	PLX_ROW_UINT(PLX_CONF_PEER_CHECK_MS, "worker.peer_check_ms", "ms", "20", 1, 60000, true,
		"How often a worker looks whether its peers are alive."),
	PLX_ROW_ENUM(PLX_CONF_CM_TRANSPORT, "cm.transport", "auto", transport_choices, true,
		"How clients reach listeners: TCP, the RDMA connection manager, or both; a client tries RDMA first."),
	PLX_ROW_UINT(PLX_CONF_CM_DONE_MS, "cm.done_ms", "ms", "60000", 10, 3600000, true,
		"How long an accepted client may take to confirm the connection before its handle fails."),
	PLX_ROW_UINT(PLX_CONF_EAGER_MAX, "proto.eager_max", "bytes", "8k", 0, 64u << 20, true,
		"Largest message sent without asking; longer ones use rendezvous. Unless set, a device may choose more."),
	PLX_ROW_BOOL(PLX_CONF_EAGER_EMPTY, "proto.eager_empty", "yes", true,
		"Whether empty messages are sent without asking although proto.eager_max is 0."),
	PLX_ROW_ENUM(PLX_CONF_RNDV_SCHEME, "rndv.scheme", "auto", rndv_choices, true,
		"How rendezvous data moves: receiver reads, both sides copy, or fragments."),
	PLX_ROW_UINT(PLX_CONF_RNDV_CHUNK, "rndv.chunk", "bytes", "256k", 4096, 1u << 26, true,
		"Bytes of one transfer that are moved in one turn."),
	PLX_ROW_UINT(PLX_CONF_RNDV_SPLIT_MIN, "rndv.split_min", "bytes", "64k", 4096, 1ull << 30, true,
		"Shortest transfer in which the sender helps to copy."),
	PLX_ROW_UINT(PLX_CONF_RNDV_FRAG_MAX, "rndv.frag_max", "bytes", "0", 0, 1ull << 40, true,
		"Longest transfer by fragments although the device can read peer memory."),
	PLX_ROW_UINT(PLX_CONF_RNDV_PUT_MIN, "rndv.put_min", "bytes", "16k", 1, 1ull << 40, true,
		"Shortest transfer for which the receiver's memory is registered, where devices need that."),
	PLX_ROW_UINT(PLX_CONF_TAG_UNEXPECTED_MAX, "tag.unexpected_max", "bytes", "256m", 0, 1ull << 40,
		true, "Kept unexpected data of a worker above which senders keep theirs."),
	PLX_ROW_UINT(PLX_CONF_STREAM_UNREAD_MAX, "stream.unread_max", "bytes", "256m", 0, 1ull << 40,
		true, "Unread data of a worker's streams above which senders wait."),
	PLX_ROW_BOOL(PLX_CONF_TAG_OFFLOAD, "tag.offload", "no", true,
		"Whether receives are posted to devices that can match tags."),
	PLX_ROW_UINT(PLX_CONF_TAG_OFFLOAD_LIST, "tag.offload_list", "receives", "64", 1, 4096, true,
		"Receives posted to a device at the most."),
	PLX_ROW_UINT(PLX_CONF_TAG_OFFLOAD_MIN, "tag.offload_min", "bytes", "1k", 0, 1ull << 40, true,
		"Shortest receive that is posted to a device."),
	PLX_ROW_UINT(PLX_CONF_TAG_OFFLOAD_WITHDRAWN, "tag.offload_withdrawn", "percent", "90", 0, 100, true,
		"Withdrawn receives, of 1024 posted to a device, at which it is demoted; 0: never."),
	PLX_ROW_ENUM(PLX_CONF_RMA_SCHEME, "rma.scheme", "auto", rma_choices, true,
		"How put, get and atomics are done: as directly as possible, by the device, or by messages."),
	PLX_ROW_ENUM(PLX_CONF_RMA_ATOMICS, "rma.atomics", "auto", atomics_choices, true,
		"Who does atomics of 8 bytes: processors, the RDMA device, or the latter if no other is named."),
	PLX_ROW_UINT(PLX_CONF_CCI_MAX_SEND, "cci.max_send", "bytes", "8k", 256, 16376, false,
		"Longest message of a CCI device."),
	PLX_ROW_UINT(PLX_CONF_CCI_NO_COPY_MIN, "cci.no_copy_min", "bytes", "12k", 256, 16376, false,
		"Shortest NO_COPY message that a receiver on this node reads from the sender's buffer."),
	PLX_ROW_UINT(PLX_CONF_CCI_SEND_BUFS, "cci.send_bufs", "messages", "1024", 1, 1u << 20, false,
		"Send buffers of a new CCI endpoint."),
	PLX_ROW_UINT(PLX_CONF_CCI_RECV_BUFS, "cci.recv_bufs", "messages", "1024", 1, 1u << 20, false,
		"Receive buffers of a new CCI endpoint."),
	PLX_ROW_STR(PLX_CONF_RPC_SOCKET, "rpc.socket", "", false,
		"Path of the JSON-RPC unix socket (%p is the process id); empty means none."),
};

static const struct plx_conf_row *added[PLX_CONF_MAX - PLX_CONF_N];
static unsigned int n_added;
static bool in_use; /* a set was made with a value for each present row */

void
conf_table_use(void)
{
	__atomic_store_n(&in_use, true, __ATOMIC_RELAXED);
}

int
plx_conf_add(struct plx_conf_rows *rows_added)
{
	if (rows_added->first != 0)
		return 0;
	if (__atomic_load_n(&in_use, __ATOMIC_RELAXED))
		return -EBUSY;
	if (rows_added->n > sizeof(added) / sizeof(added[0]) - n_added)
		return -ENOSPC;
	rows_added->first = PLX_CONF_N + n_added;
	for (unsigned int i = 0; i < rows_added->n; i++)
		added[n_added++] = &rows_added->rows[i];
	return 0;
}

int
plx_conf_set_devices(const char *names)
{
	if (strcmp(names, devices) == 0)
		return 0;
	if (__atomic_load_n(&in_use, __ATOMIC_RELAXED))
		return -EBUSY;
	if (strlen(names) >= sizeof(devices))
		return -ENOSPC;
	strcpy(devices, names);
	return 0;
}

unsigned int
plx_conf_n(void)
{
	return PLX_CONF_N + n_added;
}

const struct plx_conf_row *
plx_conf_row(unsigned int id)
{
	return id < PLX_CONF_N ? &rows[id] : added[id - PLX_CONF_N];
}

int
plx_conf_find_role(enum plx_conf_role role, unsigned int id)
{
	for (; id < plx_conf_n(); id++)
		if (plx_conf_row(id)->role == role)
			return (int)id;
	return -ENOENT;
}
