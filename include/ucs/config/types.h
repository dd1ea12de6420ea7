/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * types.h - types of settings
 *
 * Those that no ucp_ function takes describe UCX's own settings; they are here for programs that
 * name them.
 */
#ifndef UCS_CONFIG_TYPES_H
#define UCS_CONFIG_TYPES_H

#include <sys/socket.h>

#include <ucs/sys/compiler_def.h>

/** The parts that ucp_config_print() writes; bits to be or-ed. */
typedef enum {
	UCS_CONFIG_PRINT_CONFIG = UCS_BIT(0),         /* name and value */
	UCS_CONFIG_PRINT_HEADER = UCS_BIT(1),         /* the title, first */
	UCS_CONFIG_PRINT_DOC = UCS_BIT(2),            /* the help text of each setting */
	UCS_CONFIG_PRINT_HIDDEN = UCS_BIT(3),         /* also settings seldom needed */
	UCS_CONFIG_PRINT_COMMENT_DEFAULT = UCS_BIT(4) /* settings at their default as comments */
} ucs_config_print_flags_t;

/** How much is logged, from least to most. */
typedef enum {
	UCS_LOG_LEVEL_FATAL,
	UCS_LOG_LEVEL_ERROR,
	UCS_LOG_LEVEL_WARN,
	UCS_LOG_LEVEL_DIAG,
	UCS_LOG_LEVEL_INFO,
	UCS_LOG_LEVEL_DEBUG,
	UCS_LOG_LEVEL_TRACE,
	UCS_LOG_LEVEL_TRACE_REQ,
	UCS_LOG_LEVEL_TRACE_DATA,
	UCS_LOG_LEVEL_TRACE_ASYNC,
	UCS_LOG_LEVEL_TRACE_FUNC,
	UCS_LOG_LEVEL_TRACE_POLL,
	UCS_LOG_LEVEL_LAST, /* their number */
	UCS_LOG_LEVEL_PRINT /* always shown */
} ucs_log_level_t;

/** A part of a library that logs: how much, its name, and of which source files. */
typedef struct ucs_log_component_config {
	ucs_log_level_t log_level;
	char name[16];
	const char *file_filter; /* a pattern */
} ucs_log_component_config_t;

/** The context that makes progress when the program does not call it. */
typedef enum {
	UCS_ASYNC_MODE_SIGNAL,
	UCS_ASYNC_MODE_THREAD,
	UCS_ASYNC_MODE_THREAD_SPINLOCK = UCS_ASYNC_MODE_THREAD,
	UCS_ASYNC_MODE_THREAD_MUTEX,
	UCS_ASYNC_MODE_POLL,
	UCS_ASYNC_MODE_LAST /* their number */
} ucs_async_mode_t;

extern const char *ucs_async_mode_names[]; /* in libucs */

/** The reaction to a fatal error. */
typedef enum {
	UCS_HANDLE_ERROR_BACKTRACE,
	UCS_HANDLE_ERROR_FREEZE, /* wait for a debugger */
	UCS_HANDLE_ERROR_DEBUG,	 /* start one */
	UCS_HANDLE_ERROR_NONE,
	UCS_HANDLE_ERROR_LAST /* their number */
} ucs_handle_error_t;

/** Values of settings that are not only yes or no. */
typedef enum ucs_ternary_auto_value {
	UCS_NO = 0,
	UCS_YES = 1,
	UCS_TRY = 2, /* as far as possible */
	UCS_AUTO = 3,
	UCS_TERNARY_LAST
} ucs_ternary_auto_value_t;

typedef enum ucs_on_off_auto_value {
	UCS_CONFIG_OFF = 0,
	UCS_CONFIG_ON = 1,
	UCS_CONFIG_AUTO = 2,
	UCS_CONFIG_ON_OFF_LAST
} ucs_on_off_auto_value_t;

static inline int
ucs_ternary_auto_value_is_yes_or_try(ucs_ternary_auto_value_t value)
{
	return value == UCS_YES || value == UCS_TRY;
}

static inline int
ucs_ternary_auto_value_is_yes_or_no(ucs_ternary_auto_value_t value)
{
	return value == UCS_YES || value == UCS_NO;
}

/* A list that is a setting: its values, how many, and how many were left out. */
#define UCS_CONFIG_ARRAY_FIELD(type, field)                                                        \
	struct {                                                                                   \
		type *field;                                                                       \
		unsigned count;                                                                    \
		unsigned truncated;                                                                \
	}
#define UCS_CONFIG_STRING_ARRAY_FIELD(field) UCS_CONFIG_ARRAY_FIELD(char *, field)

typedef UCS_CONFIG_STRING_ARRAY_FIELD(names) ucs_config_names_array_t;

typedef enum {
	UCS_CONFIG_ALLOW_LIST_ALLOW_ALL,
	UCS_CONFIG_ALLOW_LIST_ALLOW, /* those of the list */
	UCS_CONFIG_ALLOW_LIST_NEGATE /* all others */
} ucs_config_allow_list_mode_t;

typedef struct {
	ucs_config_names_array_t array;
	ucs_config_allow_list_mode_t mode;
} ucs_config_allow_list_t;

/** A socket address; the memory is the caller's and is read during the call only. */
typedef struct ucs_sock_addr {
	const struct sockaddr *addr; /* IPv4 or IPv6 */
	socklen_t addrlen;           /* bytes at addr */
} ucs_sock_addr_t;

#endif
