/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_conf.h - settings of the TCP driver
 */
#ifndef TCP_CONF_H
#define TCP_CONF_H

#include "plx_dev.h"
#include "plx_log.h"

#define TCP_FLOWS_MAX 16 /* connections to a peer in a direction */

/** In the order of the driver's rows. */
enum tcp_conf {
	TCP_CONF_INTERFACES,
	TCP_CONF_FAMILY,
	TCP_CONF_PORTS,
	TCP_CONF_CONNECT_MS,
	TCP_CONF_ANSWER_MS,
	TCP_CONF_PROBE_MS,
	TCP_CONF_DEAD_MS,
	TCP_CONF_CONNECTED,
	TCP_CONF_FLOWS,
	TCP_CONF_MSG_LEN,
	TCP_CONF_CHUNKS,
	TCP_CONF_GROUP_PORT,
	TCP_CONF_GROUP_TTL,
	TCP_CONF_N
};

enum tcp_family { TCP_FAMILY_ANY, TCP_FAMILY_4, TCP_FAMILY_6 };

extern struct plx_conf_rows tcp_settings;
extern const struct plx_dev_names tcp_names;

/** Index of a setting in a struct plx_conf. */
#define TCP_CONF(x) (tcp_settings.first + TCP_CONF_##x)

PLX_LOG_DECLARE(tcp);

#endif
