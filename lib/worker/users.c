/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * users.c - the list of a worker's API handles
 */
#include "worker_int.h"

void
worker_users_add(struct plx_worker *w, struct plx_ep_user *user)
{
	pthread_mutex_lock(&w->users_lock);
	LIST_INSERT_HEAD(&w->users, user, all);
	pthread_mutex_unlock(&w->users_lock);
}

void
worker_users_remove(struct plx_worker *w, struct plx_ep_user *user)
{
	pthread_mutex_lock(&w->users_lock);
	LIST_REMOVE(user, all);
	pthread_mutex_unlock(&w->users_lock);
}

void
worker_user_end_run(void *arg)
{
	struct plx_ep_user *user = arg;
	struct plx_ep *ep = user->ep;

	plx_ep_user_remove(user);
	plx_stream_detach(ep, user);
}

void
plx_worker_users_each(struct plx_worker *w, void (*fn)(struct plx_ep_user *user, void *arg),
	void *arg)
{
	struct plx_ep_user *user;

	pthread_mutex_lock(&w->users_lock);
	LIST_FOREACH(user, &w->users, all)
		fn(user, arg);
	pthread_mutex_unlock(&w->users_lock);
}
