/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_worker.c - workers: create, query, sleep, flush
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_pause.h>

#include "ucp_int.h"

#define MAX_INFO_STRING 128

static ucs_status_t
worker_fill(ucp_worker_h w, const ucp_worker_params_t *p)
{
	w->thread_mode = UCS_THREAD_MODE_SINGLE;
	if (p->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) {
		if ((unsigned)p->thread_mode >= UCS_THREAD_MODE_LAST)
			return UCS_ERR_INVALID_PARAM;
		w->thread_mode = p->thread_mode;
	}
	w->multi = w->thread_mode == UCS_THREAD_MODE_MULTI;
	if ((p->field_mask & UCP_WORKER_PARAM_FIELD_NAME) && p->name != NULL)
		snprintf(w->name, sizeof(w->name), "%s", p->name);
	else
		snprintf(w->name, sizeof(w->name), "%s", w->context->name);
	if (p->field_mask & UCP_WORKER_PARAM_FIELD_CLIENT_ID)
		w->client_id = p->client_id;
	return UCS_OK;
}

/* The selection of wake-up events is ignored: all wake, and spurious wake-ups are permitted. */
static void
wakeup_fill(ucp_worker_h w, const ucp_worker_params_t *p, struct plx_worker_params *to)
{
	to->event_fd = -1;
	to->wakeup = (w->context->features & UCP_FEATURE_WAKEUP) != 0;
	if (!to->wakeup)
		return;
	to->wakeup_edge = (p->field_mask & UCP_WORKER_PARAM_FIELD_EVENTS) != 0 &&
		(p->events & UCP_WAKEUP_EDGE) != 0;
	if (p->field_mask & UCP_WORKER_PARAM_FIELD_USER_DATA)
		to->event_data = p->user_data;
	if (p->field_mask & UCP_WORKER_PARAM_FIELD_EVENT_FD) {
		to->event_fd = p->event_fd;
		w->own_event_fd = true;
	}
}

/* A thread that does not exist in the child may have had the lock. */
static void
on_lost(struct plx_worker *core)
{
	plx_lock_open(&((ucp_worker_h)plx_worker_user(core))->lock);
}

static bool
is_mine(const struct plx_worker *core)
{
	return ucp_worker_is_mine(plx_worker_user(core));
}

ucs_status_t
ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker_p)
{
	struct plx_worker_params core = {.conf = &context->conf, .user_len = context->request_size,
		.user_init = context->request_init, .user_cleanup = context->request_cleanup,
		.sender_mask = context->tag_sender_mask};
	size_t am_align = params->field_mask & UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT
		? params->am_alignment : 1;
	ucp_worker_h w;
	ucs_status_t status;

	status = ucp_context_own(context);
	if (status != UCS_OK)
		return status;
	if (!rte_is_power_of_2(am_align) || am_align > PLX_AM_ALIGN_MAX)
		return UCS_ERR_INVALID_PARAM;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return UCS_ERR_NO_MEMORY;
	w->context = context;
	LIST_INIT(&w->eps);
	status = worker_fill(w, params);
	if (status != UCS_OK)
		goto free_w;
	plx_lock_open(&w->lock);
	core.name = w->name;
	core.multi = w->multi;
	core.lost = on_lost;
	core.mine = is_mine;
	core.user = w;
	core.am_deliver = ucp_am_deliver;
	core.am_plain = ucp_am_plain;
	core.am_align = am_align;
	wakeup_fill(w, params, &core);
	status = ucp_status(plx_worker_create(&core, &w->core));
	if (status != UCS_OK)
		goto free_w;
	w->mode = plx_worker_has_reactor(w->core) ? PLX_GATE_SHARED : w->multi ? PLX_GATE_LOCKED : PLX_GATE_SINGLE;
	atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
	*worker_p = w;
	return UCS_OK;
free_w:
	free(w);
	return status;
}

void
ucp_worker_destroy(ucp_worker_h w)
{
	if (w == NULL || plx_worker_is_inherited(w->core))
		return;
	if (ucp_worker_in_callback(w)) {
		w->doomed = true;
		w->failed_seen--; /* so that progress checks */
		plx_worker_mute(w->core);
		return;
	}
	ucp_worker_bury(w);
}

ucs_status_t
ucp_worker_get_address(ucp_worker_h w, ucp_address_t **address_p, size_t *address_length_p)
{
	void *buf = malloc(PLX_WIRE_ADDR_MAX);
	int len;

	if (buf == NULL)
		return UCS_ERR_NO_MEMORY;
	len = plx_worker_addr(w->core, buf, PLX_WIRE_ADDR_MAX);
	if (len < 0) {
		free(buf);
		return ucp_status(len);
	}
	*address_p = buf;
	*address_length_p = len;
	return UCS_OK;
}

void
ucp_worker_release_address(ucp_worker_h w, ucp_address_t *address)
{
	(void)w;
	free(address);
}

ucs_status_t
ucp_worker_query(ucp_worker_h w, ucp_worker_attr_t *attr)
{
	if (attr->field_mask & UCP_WORKER_ATTR_FIELD_THREAD_MODE)
		attr->thread_mode = w->thread_mode;
	if (attr->field_mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER)
		attr->max_am_header = PLX_WIRE_AM_HDR_MAX;
	if (attr->field_mask & UCP_WORKER_ATTR_FIELD_NAME)
		snprintf(attr->name, sizeof(attr->name), "%s", w->name);
	if (attr->field_mask & UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING)
		attr->max_debug_string = MAX_INFO_STRING;
	if (attr->field_mask & UCP_WORKER_ATTR_FIELD_ADDRESS)
		return ucp_worker_get_address(w, &attr->address, &attr->address_length);
	return UCS_OK;
}

ucs_status_t
ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
	struct plx_wire_addr a;

	if (plx_wire_addr_unpack(address, &a) != 0)
		return UCS_ERR_INVALID_ADDR;
	if (attr->field_mask & UCP_WORKER_ADDRESS_ATTR_FIELD_UID)
		attr->worker_uid = a.uid;
	return UCS_OK;
}

void
ucp_worker_print_info(ucp_worker_h w, FILE *stream)
{
	fprintf(stream, "#\n# UCP worker '%s'\n#\n", w->name);
	plx_worker_dump(stream, w->core);
	fprintf(stream, "#\n");
}

ucs_status_t
ucp_worker_get_efd(ucp_worker_h w, int *fd)
{
	int rc = w->own_event_fd ? -EOPNOTSUPP : plx_worker_efd(w->core);

	if (rc < 0)
		return ucp_status(rc);
	*fd = rc;
	return UCS_OK;
}

ucs_status_t
ucp_worker_arm(ucp_worker_h w)
{
	int rc;

	ucp_lock(w);
	rc = plx_worker_arm(w->core);
	if (rc == 0 && plx_worker_n_failed(w->core) != w->failed_seen) /* a handler is still to be called */
		rc = -EBUSY;
	ucp_unlock(w);
	return ucp_status(rc);
}

ucs_status_t
ucp_worker_wait(ucp_worker_h w)
{
	ucs_status_t status = ucp_worker_arm(w);

	if (status == UCS_ERR_BUSY)
		return UCS_OK; /* there is work for progress */
	if (status == UCS_OK)
		plx_worker_sleep(w->core);
	return status;
}

ucs_status_t
ucp_worker_signal(ucp_worker_h w)
{
	return ucp_status(plx_worker_signal(w->core));
}

#define WAIT_MEM_PAUSES 64 /* a few us at the most: a byte may change and stay the same */

void
ucp_worker_wait_mem(ucp_worker_h w, void *address)
{
	const uint8_t was = __atomic_load_n((uint8_t *)address, __ATOMIC_RELAXED);

	(void)w;
	/* acquire: earlier writes of the peer are visible as well */
	for (unsigned i = 0; i < WAIT_MEM_PAUSES; i++) {
		if (__atomic_load_n((uint8_t *)address, __ATOMIC_ACQUIRE) != was)
			break;
		rte_pause();
	}
}

ucs_status_ptr_t
ucp_worker_flush_nbx(ucp_worker_h w, const ucp_request_param_t *param)
{
	if (ucp_post_may_end(param) && ucp_is_flushed(w, NULL))
		return NULL;
	return ucp_flush_param(w, NULL, param);
}

ucs_status_ptr_t
ucp_worker_flush_nb(ucp_worker_h w, unsigned flags, ucp_send_callback_t cb)
{
	struct ucp_post p = ucp_post_nb(ucp_done_send_nb, (void (*)(void))cb, 0);

	(void)flags;
	return ucp_flush(w, NULL, &p);
}

ucs_status_t
ucp_worker_flush(ucp_worker_h w)
{
	return ucp_req_wait(w, ucp_worker_flush_nb(w, 0, NULL));
}
