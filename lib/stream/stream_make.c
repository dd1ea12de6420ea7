/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * stream_make.c - streams are created, found and freed
 */
#include <string.h>

#include "stream_int.h"

struct plx_stream *
stream_new(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s = plx_pool_get(&all->pool);

	if (s == NULL)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->all = all;
	s->ep = ep;
	s->conn_id = conn_id;
	s->credit = PLX_STREAM_WINDOW;
	TAILQ_INIT(&s->sends);
	TAILQ_INIT(&s->recvs);
	TAILQ_INIT(&s->chunks);
	TAILQ_INIT(&s->lent);
	LIST_INSERT_HEAD(&plx_stream_ep(ep)->all, s, link);
	ep->n_msgs++;
	PLX_STAT_INC(all->stat.streams);
	return s;
}

void
stream_user_set(struct plx_stream *s, struct plx_ep_user *user)
{
	s->user = user;
	if (user != NULL && s->unmet) {
		s->unmet = false;
		plx_stream_ep(s->ep)->n_unmet--;
	}
}

struct plx_stream *
plx_stream_get(struct plx_streams *all, struct plx_ep *ep, uint32_t conn_id)
{
	struct plx_stream *s = stream_find(ep, conn_id);

	return s != NULL ? s : stream_new(all, ep, conn_id);
}

struct plx_stream *
plx_stream_of_slow(struct plx_streams *all, struct plx_ep_user *user)
{
	struct plx_stream *s = plx_stream_get(all, user->ep, user->conn_id);

	if (s != NULL) {
		stream_user_set(s, user);
		user->stream = s;
	}
	return s;
}

void
stream_free(struct plx_stream *s)
{
	stream_set_ready(s, false);
	stream_rts_set(s, NULL);
	if (s->stopped)
		TAILQ_REMOVE(&s->all->stopped, s, stopped_link);
	LIST_REMOVE(s, link);
	s->ep->n_msgs--;
	plx_stream_ep(s->ep)->n_unmet -= s->unmet;
	plx_pool_put(&s->all->pool, s);
}

void
stream_close_if(struct plx_stream *s)
{
	if (!s->ep_failed || s->xfer != NULL || s->closed || plx_ep_user_find(s->ep, s->conn_id) != NULL)
		return;
	stream_set_ready(s, false);
	stream_chunks_drop(s, &s->chunks);
	s->closed = true;
}

/* A number that can appear again as a new one must be remembered as closed. */
void
stream_free_if(struct plx_stream *s)
{
	struct plx_ep *ep = s->ep;

	if (!s->closed || s->busy != 0 || s->pended || s->xfer != NULL || !TAILQ_EMPTY(&s->sends))
		return;
	if (ep->err == 0 && !ep->stub && !plx_ep_user_was(ep, s->conn_id))
		return;
	stream_free(s);
}

void
stream_recvs_fail(struct plx_stream *s, int err)
{
	struct plx_req *req;

	s->busy++;
	while ((req = stream_first(&s->recvs)) != NULL)
		stream_recv_end(s, req, err);
	s->busy--;
}
