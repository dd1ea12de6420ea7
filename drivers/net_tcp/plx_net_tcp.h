/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_net_tcp.h - the ops table of the TCP driver, for lib/init's list of drivers
 */
#ifndef PLX_NET_TCP_H
#define PLX_NET_TCP_H

#include "plx_dev_ops.h"

extern const struct plx_dev_ops plx_net_tcp_ops;

#endif
