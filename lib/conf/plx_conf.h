/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_conf.h - every setting: name, unit, default, range, help
 *
 * The libraries' settings are one table (conf_table.c), each driver adds a table of its own. A
 * value comes from, in rising order: the table's default, files (ucx.conf, JSON), the environment
 * (PLX_RNDV_CHUNK for "rndv.chunk"; UCX_... names are stored, some are followed), the application
 * (ucp_config_modify), JSON-RPC. Objects copy their settings when they are opened; nothing reads
 * a setting in a turn.
 */
#ifndef PLX_CONF_H
#define PLX_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_log.h>

struct json_t; /* of jansson.h */

/** Index of a setting: the rows of conf_table.c are in this order, those of drivers follow. */
enum plx_conf_id {
	PLX_CONF_LOG_LEVEL,
	PLX_CONF_LOG_FILE,
	PLX_CONF_EAL_HUGE,
	PLX_CONF_EAL_MEM,
	PLX_CONF_EAL_WINDOWS,
	PLX_CONF_EAL_TELEMETRY,
	PLX_CONF_HEAP_KEEP,
	PLX_CONF_REACTOR,
	PLX_CONF_REACTOR_IDLE,
	PLX_CONF_REACTOR_IDLE_TURNS,
	PLX_CONF_WORKER_WAIT,
	PLX_CONF_WORKER_SLEEP_US,
	PLX_CONF_DEVICES,
	PLX_CONF_PEER_CHECK_MS,
	PLX_CONF_CM_TRANSPORT,
	PLX_CONF_CM_DONE_MS,
	PLX_CONF_EAGER_MAX,
	PLX_CONF_EAGER_EMPTY,
	PLX_CONF_RNDV_SCHEME,
	PLX_CONF_RNDV_CHUNK,
	PLX_CONF_RNDV_SPLIT_MIN,
	PLX_CONF_RNDV_FRAG_MAX,
	PLX_CONF_RNDV_PUT_MIN,
	PLX_CONF_TAG_UNEXPECTED_MAX,
	PLX_CONF_STREAM_UNREAD_MAX,
	PLX_CONF_TAG_OFFLOAD,
	PLX_CONF_TAG_OFFLOAD_LIST,
	PLX_CONF_TAG_OFFLOAD_MIN,
	PLX_CONF_TAG_OFFLOAD_WITHDRAWN,
	PLX_CONF_RMA_SCHEME,
	PLX_CONF_RMA_ATOMICS,
	PLX_CONF_CCI_MAX_SEND,
	PLX_CONF_CCI_NO_COPY_MIN,
	PLX_CONF_CCI_SEND_BUFS,
	PLX_CONF_CCI_RECV_BUFS,
	PLX_CONF_RPC_SOCKET,
	PLX_CONF_N,
	PLX_CONF_MAX = PLX_CONF_N + 64, /* room for drivers' settings */
};

enum plx_conf_type {
	PLX_CONF_BOOL, /* y, n, yes, no, on, off, true, false, 1, 0 */
	PLX_CONF_UINT, /* a count, or an amount in the row's unit; k, m, g suffixes are powers of 2 */
	PLX_CONF_ENUM, /* one of the row's choices; the value is its index */
	PLX_CONF_STR,  /* any text up to PLX_CONF_STR_MAX - 1 bytes */
};

/** Source of the present value; a lower source never overwrites a higher one. */
enum plx_conf_source {
	PLX_CONF_FROM_DEFAULT,
	PLX_CONF_FROM_FILE,
	PLX_CONF_FROM_ENV,
	PLX_CONF_FROM_API,
	PLX_CONF_FROM_RPC,
};

#define PLX_CONF_STR_MAX 256
#define PLX_CONF_NAME_MAX 64 /* of a name, with its terminating byte */
#define PLX_CONF_UCX_LEN (8u << 10) /* names of UCX that are set, with their values */
#define PLX_CONF_ERR_MAX 128 /* an error message */

/** The meaning of a driver's setting to libraries that do not know the driver. */
enum plx_conf_role {
	PLX_CONF_ROLE_NONE,
	PLX_CONF_ROLE_PORTS,	  /* UINT: most ports of a worker */
	PLX_CONF_ROLE_PORT_NAMES, /* STR: which ports; follows those of UCX_NET_DEVICES that have a ':' */
	PLX_CONF_ROLE_INTERFACES, /* STR: which interfaces; follows those of UCX_NET_DEVICES that have no ':' */
	PLX_CONF_ROLE_PROBE_MS,	  /* UINT: silence before a peer is probed; follows UCX_KEEPALIVE_INTERVAL */
	PLX_CONF_ROLE_READS,	  /* ENUM of auto, no: whether memory of other processes is read */
	PLX_CONF_ROLE_HUGE,	  /* ENUM of auto, no: whether memory for peers is on huge pages */
	PLX_CONF_ROLE_MEET_DIR,	  /* STR: as plx_meet_settle() takes it */
	PLX_CONF_ROLE_MEET_PEERS, /* the same */
};

/** One row of a table. All text is static. */
struct plx_conf_row {
	const char *name;	 /* "rndv.chunk": section, dot, name */
	enum plx_conf_type type;
	const char *unit;	 /* "bytes", "ms", "turns", "" */
	const char *def;	 /* default, as text */
	uint64_t min, max;	 /* PLX_CONF_UINT only */
	const char *const *choices; /* PLX_CONF_ENUM only, NULL-terminated */
	bool runtime;		 /* may change after start by RPC; read when the next object opens */
	const char *help;	 /* one sentence */
	enum plx_conf_role role; /* of a driver's */
};

/* A row at its index; the last argument, the role, may be left out. */
#define PLX_ROW_BOOL(id, n, d, rt, ...)                                                            \
	[id] = {.name = n, .type = PLX_CONF_BOOL, .unit = "", .def = d, .max = 1, .runtime = rt, .help = __VA_ARGS__}
#define PLX_ROW_UINT(id, n, un, d, lo, hi, rt, ...)                                                \
	[id] = {.name = n, .type = PLX_CONF_UINT, .unit = un, .def = d, .min = lo, .max = hi, .runtime = rt, \
		.help = __VA_ARGS__}
#define PLX_ROW_ENUM(id, n, d, ch, rt, ...)                                                        \
	[id] = {.name = n, .type = PLX_CONF_ENUM, .unit = "", .def = d, .choices = ch, .runtime = rt, .help = __VA_ARGS__}
#define PLX_ROW_STR(id, n, d, rt, ...)                                                             \
	[id] = {.name = n, .type = PLX_CONF_STR, .unit = "", .def = d, .runtime = rt, .help = __VA_ARGS__}

/** The settings of a driver: setting i of them has the index first + i. */
struct plx_conf_rows {
	const struct plx_conf_row *rows;
	unsigned int n;
	unsigned int first; /* writer: plx_conf_add() */
};

/** A full set of values: one is the process's, ucp_config_t holds copies. */
struct plx_conf {
	struct {
		uint64_t u; /* BOOL, UINT, ENUM */
		char s[PLX_CONF_STR_MAX]; /* STR */
		enum plx_conf_source source;
	} v[PLX_CONF_MAX];
	struct {
		uint32_t len; /* of text in use */
		char text[PLX_CONF_UCX_LEN];
	} ucx; /* what was set by names of UCX; see conf_ucx.c */
};

/**
 * Add the settings of a driver; repeated calls have no effect. Errors: -ENOSPC more than
 * PLX_CONF_MAX; -EBUSY there are sets of settings without them. Thread: any, before others
 * use lib/conf.
 */
int plx_conf_add(struct plx_conf_rows *rows);

/** Set the default of worker.devices. Errors: as plx_conf_add(). Thread: as plx_conf_add(). */
int plx_conf_set_devices(const char *names);

/** @return the number of settings, including drivers'. Thread: any. */
unsigned int plx_conf_n(void);

/** @return the row of a setting. Thread: any. */
const struct plx_conf_row *plx_conf_row(unsigned int id);

/** @return the first setting of this role, from id on, or -ENOENT. Thread: any. */
int plx_conf_find_role(enum plx_conf_role role, unsigned int id);

/**
 * Find a setting by its name ("rndv.chunk") or by its environment form
 * ("RNDV_CHUNK", case ignored).
 * @return its id, or -ENOENT. Thread: any.
 */
int plx_conf_find(const char *name);

/** Fill a set with the table's defaults. Thread: any. */
void plx_conf_defaults(struct plx_conf *c);

/**
 * Set one value from text.
 * @param err buffer of PLX_CONF_ERR_MAX bytes for a sentence that says what is wrong, or NULL
 * Errors: -ENOENT no such setting; -EINVAL not of the row's type, or no such choice;
 * -ERANGE outside min..max; -ENAMETOOLONG text over PLX_CONF_STR_MAX.
 * A value from a lower source than the one in force is checked and then ignored: 0.
 * Thread: the set's owner.
 */
int plx_conf_set(struct plx_conf *c, const char *name, const char *text,
	enum plx_conf_source source, char *err);

/**
 * Set one value from JSON: a string as plx_conf_set() takes it, or a whole number for
 * UINT, true or false for BOOL.
 * Errors: as plx_conf_set(); -EINVAL a JSON type that the row does not take.
 * Thread: the set's owner.
 */
int plx_conf_set_json(struct plx_conf *c, const char *name, const struct json_t *value,
	enum plx_conf_source source, char *err);

/**
 * Set one value by its name in UCX. It is stored as UCX prints it, and followed if it has a
 * meaning here (KEEPALIVE_INTERVAL, LOG_FILE, LOG_LEVEL, NET_DEVICES, RNDV_SCHEME,
 * RNDV_THRESH; ucp_init() reads more). Values of transports are stored unread, as in UCX.
 * @param name without "UCX_"; or a pattern of fnmatch(3): all that match
 * Errors: -ENOENT UCX has no such setting; -EINVAL no such value; -ENAMETOOLONG; -ENOMEM
 * more than PLX_CONF_UCX_LEN in total. Thread: the set's owner. Source: ucp_config_modify()
 * of UCX.
 */
int plx_conf_set_ucx(struct plx_conf *c, const char *name, const char *text,
	enum plx_conf_source source, char *err);

/**
 * Write the value of a setting of UCX, the default if it was not set, as UCX prints it.
 * @return len as snprintf, or -ENOENT. Thread: the set's owner.
 */
int plx_conf_format_ucx(const struct plx_conf *c, const char *name, char *buf, size_t len);

/**
 * Report, once in a process, variables that begin with UCX_ (with a prefix P, of P_UCX_,
 * too) and are no settings of UCX, unless WARN_UNUSED_ENV_VARS is n. Thread: the set's
 * owner.
 */
void plx_conf_tell_unknown(const struct plx_conf *c, const char *prefix);

/** Follow the threshold of UCX_RNDV_THRESH for other nodes, if there is only that device. */
void plx_conf_follow_inter(struct plx_conf *c);

/** @return whether a setting of UCX was set, by any source. Thread: the set's owner. */
bool plx_conf_ucx_is_set(const struct plx_conf *c, const char *name);

/**
 * Apply a JSON object of sections, all or nothing.
 * @param runtime_only refuse to change settings that are fixed at start (naming them
 *        with the value they have is no change)
 * Errors: as plx_conf_set_json(); -EPERM would change a setting that is fixed at start.
 * Thread: the set's owner. Allocates: heap.
 */
int plx_conf_load_json(struct plx_conf *c, const struct json_t *root, enum plx_conf_source source,
	bool runtime_only, char *err);

/**
 * Read a JSON file: {"rndv": {"chunk": "1m"}, ...}. Unknown names, wrong types and
 * syntax errors refuse the whole file (nothing is changed) with a message that
 * names the line or the setting.
 * @param err buffer of err_len bytes for that message, or NULL
 * Errors: -ENOENT, -EACCES ... from open; -EINVAL content, over 1 MiB, no regular file.
 * Thread: the set's owner. Blocks: may (file).
 */
int plx_conf_load_file(struct plx_conf *c, const char *path, char *err, size_t err_len);

/**
 * Read PLX_... and UCX_... variables from the environment; with a prefix P also
 * P_UCX_... (ucp_config_read's rule). Before them the files ucx.conf where UCX looks for
 * them, then the JSON file that PLX_CONFIG names. A bad value is logged and skipped;
 * unknown PLX_ names are logged once. Names of PLX_ win over those of P_UCX_, and these over
 * UCX_.
 * @return 0, or the error of the file that PLX_CONFIG names (logged; none of it is
 * used, the environment is).
 * Thread: the set's owner.
 */
int plx_conf_load_env(struct plx_conf *c, const char *prefix);

/** Write the present value as text. @return len as snprintf. Thread: the set's owner. */
int plx_conf_format(const struct plx_conf *c, unsigned int id, char *buf, size_t len);

/** Write the range or the choices of a setting as text. @return len as snprintf. Thread: any. */
int plx_conf_format_range(unsigned int id, char *buf, size_t len);

/* The parts that plx_conf_print() writes; the bits are those of ucs_config_print_flags_t. */
#define PLX_CONF_PRINT_VALUES 1u
#define PLX_CONF_PRINT_HEADER 2u
#define PLX_CONF_PRINT_DOC 4u
#define PLX_CONF_PRINT_HIDDEN 8u
#define PLX_CONF_PRINT_COMMENT_DEFAULT 16u

/**
 * Write the settings of UCP in UCX as lines UCX_TLS=all in UCX's order, then other settings
 * that were set, those of transports without UCX_, as UCX does.
 * @param flags PLX_CONF_PRINT_x; HEADER has no effect
 * Thread: the set's owner. Blocks: may (file).
 */
void plx_conf_print_ucx(const struct plx_conf *c, FILE *f, unsigned int flags);

/**
 * Write every setting as a line PLX_RNDV_CHUNK=1m.
 * @param prefix before each name; NULL is "PLX_"
 * @param flags PLX_CONF_PRINT_x
 * Thread: the set's owner. Blocks: may (file).
 */
void plx_conf_print(const struct plx_conf *c, FILE *f, const char *prefix, unsigned int flags);

/**
 * @return the process's own set, loaded once from file and environment; its log level takes
 *   effect. Thread: any.
 */
struct plx_conf *plx_conf_process(void);

/**
 * Fill a set with what files and the environment, which the program may have changed since the first
 * reading, give now, and with what was set by RPC, which goes before. The source of the rule:
 * ucp_config_read() reads anew each time.
 * @param prefix as of plx_conf_load_env()
 * Thread: any that may read the environment.
 */
void plx_conf_now(struct plx_conf *c, const char *prefix);

/**
 * @return the text of the first setting of a role, or def if no driver has it. Thread: the
 *   set's owner.
 */
const char *plx_conf_role_str(const struct plx_conf *c, enum plx_conf_role role, const char *def);

/** Set every setting of a role. @return 0 or as plx_conf_set(). Thread: the set's owner. */
int plx_conf_set_role(struct plx_conf *c, enum plx_conf_role role, const char *text,
	enum plx_conf_source source);

/**
 * The next name of a list that commas or spaces separate.
 * @param list where to go on; moves behind the name
 * @param name of len bytes, PLX_CONF_STR_MAX for any of a setting
 * @return whether there was one. Thread: any.
 */
bool plx_conf_next(const char **list, char *name, size_t len);

/** Cut white space off both ends of a text, in place. @return where it begins now. Thread: any. */
char *plx_conf_trim(char *text);

/** Value of a BOOL, UINT or ENUM setting. Thread: any. */
static inline uint64_t
plx_conf_u64(const struct plx_conf *c, unsigned int id)
{
	return __atomic_load_n(&c->v[id].u, __ATOMIC_RELAXED);
}

/** Text of a STR setting; belongs to the set. Thread: the set's owner. */
static inline const char *
plx_conf_str(const struct plx_conf *c, unsigned int id)
{
	return c->v[id].s;
}

/** @return log.level as a level of rte_log. Thread: any. */
static inline uint32_t
plx_conf_log_level(const struct plx_conf *c)
{
	return (uint32_t)plx_conf_u64(c, PLX_CONF_LOG_LEVEL) + RTE_LOG_EMERG;
}

/* Choices, in the order of the rows' lists. */
enum { PLX_CONF_AUTO, PLX_CONF_NO }; /* for settings with no other choices */
enum { PLX_WAIT_SPIN, PLX_WAIT_YIELD, PLX_WAIT_AUTO };
enum { PLX_IDLE_SPIN, PLX_IDLE_PAUSE, PLX_IDLE_YIELD, PLX_IDLE_SLEEP, PLX_IDLE_AUTO, PLX_IDLE_GRANT };
enum { PLX_RMA_AUTO, PLX_RMA_DEVICE, PLX_RMA_MESSAGE };
enum { PLX_ATOMICS_AUTO, PLX_ATOMICS_CPU, PLX_ATOMICS_DEVICE };
enum { PLX_RNDV_AUTO, PLX_RNDV_GET, PLX_RNDV_SPLIT, PLX_RNDV_FRAG };

#endif
