/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * keep.c - bounds of the memory for one peer's messages
 */
#include "worker_int.h"

bool
worker_may_keep(struct plx_worker *w, struct plx_ep *ep, uint64_t more)
{
	if (likely(ep->kept + more <= w->kept_max + PLX_EP_KEPT_MORE && !worker_ep_is_over(ep)))
		return true;
	PLX_STAT_INC(w->stat.rx_drop_refused);
	plx_ep_refuse(ep);
	return false;
}
