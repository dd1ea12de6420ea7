/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_all.c - the endpoints of the process, and turns for those that no thread is using
 */
#include <pthread.h>

#include "cci_int.h"

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, cci_ep) list;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
cci_all_add(struct cci_ep *ep)
{
	pthread_mutex_lock(&all.lock);
	LIST_INSERT_HEAD(&all.list, ep, link);
	pthread_mutex_unlock(&all.lock);
}

void
cci_all_remove(struct cci_ep *ep)
{
	pthread_mutex_lock(&all.lock);
	LIST_REMOVE(ep, link);
	pthread_mutex_unlock(&all.lock);
}

struct cci_ep *
cci_all_take(void)
{
	struct cci_ep *ep;

	pthread_mutex_lock(&all.lock);
	ep = LIST_FIRST(&all.list);
	if (ep != NULL)
		LIST_REMOVE(ep, link);
	pthread_mutex_unlock(&all.lock);
	return ep;
}

unsigned
cci_others_turn(const struct cci_ep *self, bool all_of_them)
{
	struct cci_ep *ep;
	unsigned n = 0;

	if (pthread_mutex_trylock(&all.lock) != 0)
		return 0;
	LIST_FOREACH(ep, &all.list, link) {
		if (ep == self || plx_worker_has_reactor(ep->core) || plx_lock_is_mine(&ep->lock) ||
			!(all_of_them || plx_lock_is_open_to_me(&ep->lock)) || !plx_lock_try_enter(&ep->lock))
			continue;
		n += plx_worker_progress(ep->core);
		plx_lock_leave(&ep->lock);
	}
	pthread_mutex_unlock(&all.lock);
	return n;
}

void
cci_endpoints_forget(void)
{
	pthread_mutex_init(&all.lock, NULL);
	LIST_INIT(&all.list);
}
