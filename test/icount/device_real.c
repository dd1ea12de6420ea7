/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * device_real.c - the device is none of ours: it needs nothing
 */
#include "device.h"

void
device_plain(void)
{
}

void
device_run(void)
{
}
