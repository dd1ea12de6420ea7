/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_service.h - a worker of UCP as a service of DPDK: service cores run its turns
 *
 * Everything is inline: the program needs no other library than those that it uses anyway.
 */
#ifndef PLX_SERVICE_H
#define PLX_SERVICE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_pause.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One turn. @return 0; -EAGAIN nothing was there, which DPDK counts as idle in later releases */
static inline int32_t
plx_service_turn(void *arg)
{
	return ucp_worker_progress((ucp_worker_h)arg) != 0 ? 0 : -EAGAIN;
}

/**
 * Make a worker a service. It runs as soon as a service core is mapped to it
 * (rte_service_map_lcore_set()) and has started. Callbacks of the worker run on that core.
 * @param name of the service: up to RTE_SERVICE_NAME_MAX - 1 bytes
 * @param worker of UCS_THREAD_MODE_MULTI if other threads call functions of it, as they usually do;
 *   destroy it after plx_service_stop()
 * @param id set to the number of the service
 * @return 0 or -errno: -ENAMETOOLONG, -ENOSPC. Thread: control. Blocks: never. Allocates: no.
 */
static inline int
plx_service_start(const char *name, ucp_worker_h worker, uint32_t *id)
{
	struct rte_service_spec spec;
	int rc;

	if (strlen(name) >= sizeof(spec.name))
		return -ENAMETOOLONG;
	memset(&spec, 0, sizeof(spec));
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	spec.callback = plx_service_turn;
	spec.callback_userdata = worker;
	rc = rte_service_component_register(&spec, id);
	if (rc != 0)
		return rc;
	rc = rte_service_component_runstate_set(*id, 1);
	if (rc == 0)
		rc = rte_service_runstate_set(*id, 1);
	if (rc != 0)
		(void)rte_service_component_unregister(*id);
	return rc;
}

/**
 * Stop the service, and wait until its turn on a service core has ended. The core itself goes on.
 * @return 0 or -errno. Thread: control, not a service core. Blocks: for one turn.
 */
static inline int
plx_service_stop(uint32_t id)
{
	int rc = rte_service_runstate_set(id, 0);

	while (rc == 0 && rte_service_may_be_active(id) == 1)
		rte_pause();
	return rc != 0 ? rc : rte_service_component_unregister(id);
}

#ifdef __cplusplus
}
#endif

#endif
