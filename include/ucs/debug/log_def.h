/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * log_def.h - handlers of libucs's log
 *
 * The functions are those of libucs. Pollux does not log through it: its own messages follow the
 * setting log.level. These functions are for programs that take over libucs's output.
 */
#ifndef UCS_LOG_DEF_H_
#define UCS_LOG_DEF_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** The answer of a log handler: whether the next handler gets the message as well. */
typedef enum {
	UCS_LOG_FUNC_RC_STOP,
	UCS_LOG_FUNC_RC_CONTINUE
} ucs_log_func_rc_t;

/** A handler: where the message was made, how much it matters, and its text as for vprintf(). */
typedef ucs_log_func_rc_t (*ucs_log_func_t)(const char *file, unsigned line, const char *function,
	ucs_log_level_t level, const ucs_log_component_config_t *comp_conf, const char *message,
	va_list ap);

extern const char *ucs_log_level_names[];

/** Have messages go to a handler before those that were there. Thread: control. */
void ucs_log_push_handler(ucs_log_func_t handler);

/** Take the last handler away. Thread: control. */
void ucs_log_pop_handler(void);

/** @return how many handlers there are. Thread: control. */
unsigned ucs_log_num_handlers(void);

/** Write to where libucs writes by itself. Thread: any. */
ucs_log_func_rc_t ucs_log_default_handler(const char *file, unsigned line, const char *function,
	ucs_log_level_t level, const ucs_log_component_config_t *comp_conf, const char *format,
	va_list ap);

END_C_DECLS

#endif
