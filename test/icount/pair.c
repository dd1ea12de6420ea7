/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pair.c - two workers in one thread
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "test_util.h"

#include "device.h"
#include "pair.h"

#define TURNS 20
#define MORE  5

struct side side[SIDES];

/* In place of the C library's: hash tables are seeded with it, and a count must not depend on luck. */
ssize_t
getrandom(void *buf, size_t len, unsigned flags)
{
	static uint64_t state;
	uint8_t *p = buf;

	(void)flags;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)util_splitmix64(&state);
	return (ssize_t)len;
}

void
must(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "icount: %s: error %d\n", what, (int)status);
	exit(EXIT_FAILURE);
}

void
turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		device_run();
		ucp_worker_progress(from->worker);
		device_run();
		ucp_worker_progress(to->worker);
	}
}

unsigned
turns_between(void)
{
	static unsigned n;

	return TURNS + n++ % MORE;
}

void
settle(void)
{
	turns(turns_between());
}

void
finish(void *request)
{
	if (UCS_PTR_IS_ERR(request))
		must(UCS_PTR_STATUS(request), "a call");
	if (request == NULL)
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		turns(1);
	must(ucp_request_check_status(request), "a request");
	ucp_request_free(request);
}

void
side_connect(struct side *s, const struct side *other)
{
	const ucp_ep_params_t e = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = other->addr};

	must(ucp_ep_create(s->worker, &e, &s->ep), "ucp_ep_create");
}

void
side_close(struct side *s)
{
	ucp_worker_release_address(s->worker, s->addr);
	ucp_worker_destroy(s->worker);
	ucp_cleanup(s->ctx);
}
