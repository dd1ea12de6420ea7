/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * init.c - the ordered start: EAL, heap, drivers, reactors, RPC
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "plx_assert.h"
#include "plx_check.h"
#include "plx_config.h"
#include "plx_dev.h"
#include "plx_fork.h"
#include "plx_meet.h"
#include "plx_mem.h"
#include "plx_pages.h"
#include "plx_reactor.h"
#include "plx_rpc.h"
#include "plx_worker.h"

#include "init_int.h"

static struct {
	pthread_mutex_t lock;
	unsigned users;
	struct plx_rpc_server *rpc;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

int
plx_init_parse_lcores(const char *text, unsigned *lcores)
{
	int n = 0;

	if (strncmp(text, "lcore:", 6) == 0)
		text += 6;
	while (*text != '\0') {
		char *end;
		unsigned long lo, hi;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		lo = hi = strtoul(text, &end, 10);
		if (*end == '-') {
			text = end + 1;
			if (*text < '0' || *text > '9')
				return -EINVAL;
			hi = strtoul(text, &end, 10);
		}
		if (lo > hi || hi >= RTE_MAX_LCORE)
			return -EINVAL;
		for (; lo <= hi; lo++) {
			if (n == PLX_INIT_LCORES_MAX)
				return -EINVAL;
			lcores[n++] = lo;
		}
		if (*end == ',' && end[1] != '\0')
			end++;
		else if (*end != '\0')
			return -EINVAL;
		text = end;
	}
	return n;
}

/* The EAL refuses a core that this process may not run on: leave those out. */
static int
usable_lcores(unsigned *lcores, int n)
{
	cpu_set_t before, one;
	int kept = 0;

	if (n == 0 || sched_getaffinity(0, sizeof(before), &before) != 0)
		return n;
	for (int i = 0; i < n; i++) {
		bool of_program = !plx_fork_eal && rte_lcore_count() != 0 && rte_lcore_is_enabled(lcores[i]);

		CPU_ZERO(&one);
		CPU_SET(lcores[i], &one);
		if (of_program || sched_setaffinity(0, sizeof(one), &one) == 0)
			lcores[kept++] = lcores[i];
		else
			PLX_LOG(WARNING, init, "no reactor on core %u: this process may not run there",
				lcores[i]);
	}
	sched_setaffinity(0, sizeof(before), &before);
	return kept;
}

/* Local-rank environment variables of common launchers. */
static unsigned
local_rank(void)
{
	static const char *const names[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"SLURM_LOCALID", "PALS_LOCAL_RANKID", NULL};

	for (unsigned i = 0; names[i] != NULL; i++) {
		const char *text = getenv(names[i]);

		if (text != NULL)
			return strtoul(text, NULL, 10);
	}
	return getpid();
}

/*
 * If a reactor can't start its workers use the others, or run inline. The lcores of a program's
 * EAL are the program's: unless it has named them itself reactors run beside them.
 */
static void
start_reactors(const struct plx_conf *conf, const unsigned *lcores, int n)
{
	bool beside = init_eal_is_programs() && conf->v[PLX_CONF_REACTOR].source < PLX_CONF_FROM_API;

	plx_reactor_set_seat(local_rank());
	for (int i = 0; i < n; i++) {
		int rc = plx_reactor_start(lcores[i], beside, plx_conf_u64(conf, PLX_CONF_REACTOR_IDLE),
			plx_conf_u64(conf, PLX_CONF_REACTOR_IDLE_TURNS));

		if (rc != 0)
			PLX_LOG(WARNING, init, "no reactor on lcore %u: %s", lcores[i],
				rc == -EBUSY ? "the program uses it" : strerror(-rc));
	}
}

static void
start_rpc(const struct plx_conf *conf)
{
	const char *path = plx_conf_str(conf, PLX_CONF_RPC_SOCKET);

	if (path[0] != '\0')
		plx_rpc_start(path, &state.rpc); /* says why not; the program goes on without */
}

/* "a, b at mlx5_0:1, b at mlx5_1:1 down": the available devices of the setting. */
static void
devices_text(const struct plx_conf *conf, char *text, size_t len)
{
	const char *list = plx_conf_str(conf, PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX];
	struct plx_dev_port p;

	text[0] = '\0';
	while (plx_conf_next(&list, name, sizeof(name))) {
		for (unsigned i = 0; plx_dev_look(name, conf, i, &p) == 0; i++) {
			size_t n = strlen(text);

			snprintf(text + n, len - n, "%s%s%s%s%s", n != 0 ? ", " : "", name,
				p.name[0] != '\0' ? " at " : "", p.name, p.up ? "" : " down");
		}
	}
}

/* The first facts for a user: that this library runs, and what it found. */
static void
tell_start(const struct plx_conf *conf)
{
	char devices[512];

	if (!rte_log_can_log(plx_logtype_init, RTE_LOG_INFO))
		return; /* looking for devices takes time */
	devices_text(conf, devices, sizeof(devices));
	PLX_LOG(INFO, init, "version %s started in process %d: devices %s; %s", PLX_VERSION, getpid(),
		devices[0] != '\0' ? devices : "none",
		plx_mem_has_huge() ? "huge pages" : "4 KiB pages");
}

static int
start_all(const struct plx_conf *conf)
{
	unsigned lcores[PLX_INIT_LCORES_MAX];
	int n, rc;

	plx_log_set_level(plx_conf_u64(conf, PLX_CONF_LOG_LEVEL) + 1);
	plx_log_set_file(plx_conf_str(conf, PLX_CONF_LOG_FILE));
	n = plx_init_parse_lcores(plx_conf_str(conf, PLX_CONF_REACTOR), lcores);
	if (n < 0) {
		PLX_LOG(ERR, init, "reactor.lcores is not a list of cores: %s",
			plx_conf_str(conf, PLX_CONF_REACTOR));
		return n;
	}
	n = usable_lcores(lcores, n);
	rc = init_eal(conf, lcores, n);
	if (rc != 0)
		return rc;
	plx_log_set_level(plx_conf_u64(conf, PLX_CONF_LOG_LEVEL) + 1); /* the EAL has set its own */
	rc = plx_mem_init(plx_conf_u64(conf, PLX_CONF_EAL_HUGE) == PLX_CONF_AUTO);
	if (rc != 0)
		return rc;
	init_heap(conf);
	rc = plx_meet_settle(plx_conf_role_str(conf, PLX_CONF_ROLE_MEET_DIR, ""),
		plx_conf_role_str(conf, PLX_CONF_ROLE_MEET_PEERS, "same"));
	if (rc != 0)
		return rc;
	rc = plx_init_drivers();
	if (rc != 0)
		return rc;
	if (init_eal_is_programs() && plx_conf_u64(conf, PLX_CONF_EAL_WINDOWS) != 0)
		plx_pages_open();
	start_reactors(conf, lcores, n);
	start_rpc(conf);
	plx_rpc_register_telemetry();
	tell_start(conf);
	return 0;
}

int
plx_init_get(const struct plx_conf *conf)
{
	int rc = 0;

	pthread_mutex_lock(&state.lock);
	if (state.users == 0) {
		rc = start_all(conf);
		if (rc == 0)
			plx_check_started();
	}
	if (rc == 0)
		state.users++;
	pthread_mutex_unlock(&state.lock);
	return rc;
}

void
plx_init_put(void)
{
	pthread_mutex_lock(&state.lock);
	PLX_ASSERT(state.users > 0);
	if (--state.users == 0) {
		plx_rpc_stop(state.rpc);
		state.rpc = NULL;
		plx_reactor_stop_all();
		plx_pages_close();
		plx_check_stopped();
	}
	pthread_mutex_unlock(&state.lock);
}

/* Wait until a concurrent start completes before the process is copied. */
static void
before_fork(void)
{
	pthread_mutex_lock(&state.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&state.lock);
}

/* The child has started nothing: reactors and the RPC server are threads of its parent. */
static void
after_fork_in_child(void)
{
	plx_rpc_stop(state.rpc);
	state.rpc = NULL;
	state.users = 0;
	pthread_mutex_unlock(&state.lock);
}

RTE_INIT(init_watch_forks)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
