/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * copy.c - long copies to and from memory that others see
 */
#include <string.h>

#include "plx_rma.h"

void
plx_rma_copy_long(void *to, const void *from, uint64_t len)
{
	memcpy(to, from, len);
}
