/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * types.h - the two types of ucs/config that the UCP functions take
 */
#ifndef UCS_CONFIG_TYPES_H
#define UCS_CONFIG_TYPES_H

#include <sys/socket.h>

#include <ucs/sys/compiler_def.h>

/** What ucp_config_print() writes; bits to be or-ed. */
typedef enum {
	UCS_CONFIG_PRINT_CONFIG = UCS_BIT(0),         /* name and value */
	UCS_CONFIG_PRINT_HEADER = UCS_BIT(1),         /* the title, first */
	UCS_CONFIG_PRINT_DOC = UCS_BIT(2),            /* the help text of each setting */
	UCS_CONFIG_PRINT_HIDDEN = UCS_BIT(3),         /* also settings seldom needed */
	UCS_CONFIG_PRINT_COMMENT_DEFAULT = UCS_BIT(4) /* settings at their default as comments */
} ucs_config_print_flags_t;

/** A socket address; the memory is the caller's and is read during the call only. */
typedef struct ucs_sock_addr {
	const struct sockaddr *addr; /* IPv4 or IPv6 */
	socklen_t addrlen;           /* bytes at addr */
} ucs_sock_addr_t;

#endif
