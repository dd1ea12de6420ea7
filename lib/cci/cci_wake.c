/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_wake.c - the OS handle
 *
 * Design notes
 * - Programs wait on the handle before each event, most without ever arming it. So it is readable
 *   (awake) from the creation on, while events are queued and after each call that starts an
 *   operation, until cci_get_event() finds nothing: then the worker is armed. A program that
 *   polls although it has a handle finds the worker armed and looks without disarming it, which
 *   costs no system call. If a timer or a reactor has woken a program without an event, the
 *   worker is armed again at once. Spurious wake-ups are permitted.
 */
#include "cci_int.h"

#define TRIES	   3   /* attempts to arm a busy worker */
#define LOOKS_MAX 256 /* looks at an armed worker before a full poll */

/* Nothing is queued: the program may sleep. @return an item that was found nevertheless */
static struct plx_chan_item *
wake_arm(struct cci_ep *ep)
{
	struct plx_chan_item *item;

	ep->n_looks = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		ep->awake = true; /* deliveries now need no wake-up */
		plx_worker_progress(ep->core);
		item = cci_next_item(ep);
		if (item != NULL) {
			cci_wake(ep);
			return item;
		}
		if (plx_worker_arm(ep->core) == 0) {
			ep->awake = false;
			return NULL;
		}
	}
	cci_wake(ep);
	return NULL;
}

struct plx_chan_item *
cci_next_item_or_arm(struct cci_ep *ep)
{
	struct plx_chan_item *item;

	if (!ep->awake && ep->n_looks++ < LOOKS_MAX && !plx_worker_has_rung(ep->core)) {
		if (plx_worker_look(ep->core) == 0)
			return NULL;
		item = cci_next_item(ep);
		if (item != NULL) {
			if (!ep->awake)
				cci_wake(ep);
			return item;
		}
	}
	return wake_arm(ep);
}

int
cci_arm_os_handle(cci_endpoint_t *endpoint, int flags)
{
	struct cci_ep *ep = cci_ep_of(endpoint);

	/* The handle is armed whenever there is nothing to report: see above. */
	return endpoint == NULL || flags != 0 || !ep->has_fd ? CCI_EINVAL : CCI_SUCCESS;
}
