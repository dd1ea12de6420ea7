/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * device.h - the device that the calls go through, where it is a model
 */
#ifndef ICOUNT_DEVICE_H
#define ICOUNT_DEVICE_H

/** From now on it does all at once, and nothing at random. */
void device_plain(void);

/** Let it do what is left to do, before the library looks. */
void device_run(void);

#endif
