/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_loan.c - the data of an active message, read where it lies in its sender's memory (plx_loan.h)
 */
#include <errno.h>

#include <plx_loan.h>

#include "ucp_int.h"

_Static_assert(PLX_LOAN_PIECES == PLX_LOAN_MAX_IOV, "as promised");

/* A call of the owner about a loan. */
struct loan_call {
	struct plx_worker *core;
	struct plx_msg *m;
	struct plx_loan *loan;
	int rc;
};

static void
take_run(void *arg)
{
	struct loan_call *c = arg;

	c->rc = plx_worker_am_loan(c->core, c->m, &c->loan);
}

static void
check_run(void *arg)
{
	struct loan_call *c = arg;

	c->rc = plx_rndv_loan_is_valid(c->loan) ? 0 : -ECONNRESET;
}

static void
return_run(void *arg)
{
	plx_rndv_loan_return(((struct loan_call *)arg)->loan);
}

/* None of them completes an operation: without a reactor it is a plain call. */
static void
as_owner(ucp_worker_h w, void (*run)(void *arg), struct loan_call *c)
{
	if (plx_worker_has_reactor(w->core))
		plx_worker_call(w->core, run, c);
	else
		run(c);
}

ucs_status_t
plx_loan_take(ucp_worker_h w, void *data_desc, plx_loan_h *loan)
{
	struct loan_call c = {.core = w->core, .rc = -EOPNOTSUPP};

	if (plx_worker_is_inherited(w->core))
		return UCS_ERR_CONNECTION_RESET;
	c.m = plx_am_msg_of(data_desc);
	if (c.m->taken)
		return UCS_ERR_INVALID_PARAM;
	ucp_lock(w);
	if (c.m->kind == PLX_MSG_AM_RTS)
		as_owner(w, take_run, &c);
	if (c.rc == 0) {
		c.loan->user = w;
		plx_am_take(c.m, 1);
		*loan = c.loan;
	}
	ucp_unlock(w);
	return c.rc == -ENOBUFS ? UCS_ERR_NO_RESOURCE : ucp_status(c.rc);
}

size_t
plx_loan_iov(plx_loan_h l, ucp_dt_iov_t *iov, size_t max)
{
	for (size_t i = 0; i < l->n && i < max; i++)
		iov[i] = (ucp_dt_iov_t){(void *)(uintptr_t)l->p[i].at, l->p[i].len};
	return l->n;
}

ucs_status_t
plx_loan_check(plx_loan_h l)
{
	ucp_worker_h w = l->user;
	struct loan_call c = {.loan = l};

	if (l->rndv == NULL || plx_worker_is_inherited(w->core))
		return UCS_ERR_CONNECTION_RESET;
	ucp_lock(w);
	as_owner(w, check_run, &c);
	ucp_unlock(w);
	return ucp_status(c.rc);
}

void
plx_loan_return(plx_loan_h l)
{
	ucp_worker_h w = l->user;
	struct loan_call c = {.loan = l};

	if (l->rndv == NULL) { /* the worker is destroyed */
		plx_rndv_loan_return(l);
		return;
	}
	if (plx_worker_is_inherited(w->core)) /* the parent returns it */
		return;
	ucp_lock(w);
	as_owner(w, return_run, &c);
	ucp_unlock(w);
}
