/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_init.c - start and stop
 */
#include <pthread.h>

#include "cci_int.h"

#define ABI_OLD 1 /* had no cci_create_endpoint_at(); else the same */

static struct {
	pthread_mutex_t lock;
	unsigned users;
	unsigned inherited; /* users of the parent, whose copies the child may end as well */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
init_start(void)
{
	int rc = plx_init_get(plx_conf_process());
	int status = cci_status(rc);

	if (rc != 0)
		return status;
	status = cci_devices_open();
	if (status != CCI_SUCCESS)
		plx_init_put();
	return status;
}

int
cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps)
{
	int status = CCI_SUCCESS;

	if ((abi_ver != CCI_ABI_VERSION && abi_ver != ABI_OLD) || flags != 0 || caps == NULL)
		return CCI_EINVAL;
	pthread_mutex_lock(&state.lock);
	if (state.users == 0)
		status = init_start();
	if (status == CCI_SUCCESS) {
		state.users++;
		*caps = 1;
	}
	pthread_mutex_unlock(&state.lock);
	return status;
}

int
cci_finalize(void)
{
	int status = CCI_SUCCESS;

	pthread_mutex_lock(&state.lock);
	if (state.users == 0 && state.inherited > 0) {
		state.inherited--;
	} else if (state.users == 0) {
		status = CCI_ERROR;
	} else if (--state.users == 0) {
		cci_endpoints_close();
		cci_devices_close();
		plx_init_put();
	}
	pthread_mutex_unlock(&state.lock);
	return status;
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.inherited += state.users;
	state.users = 0;
	cci_endpoints_forget();
	cci_devices_forget();
}

RTE_INIT(cci_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
