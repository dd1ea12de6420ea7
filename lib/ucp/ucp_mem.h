/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_mem.h - regions and keys: between ucp_mem.c, ucp_rkey.c and ucp_rma.c
 */
#ifndef UCP_MEM_H
#define UCP_MEM_H

#include <ucp/api/ucp.h>

#include "plx_worker.h"

struct ucp_mem {
	void *address;
	size_t length;
	uint8_t rights;		   /* enum plx_region_right */
	struct plx_region_key key; /* index 0: of length 0, in no table */
	struct plx_seg seg;	   /* base NULL: memory of the application */
	bool read_only;		   /* imported so */
	uint32_t forks;		   /* plx_forks when it was made */
	struct plx_dev_region dev; /* dev.dev NULL: registered with none */
};

/* A ucp_rkey_h is the core's key. */
static inline const struct plx_rkey *
ucp_rkey_core(ucp_rkey_h rkey)
{
	return (const struct plx_rkey *)(const void *)rkey;
}

/** Read exported memory, which comes without its length. @return 0, or -EINVAL it is invalid */
int ucp_mem_export_fetch(const void *blob, struct plx_wire_export *out);

#endif
