/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_rpc.h - JSON-RPC 2.0 on a unix socket: queries and settings for operators
 *
 * One control thread serves all clients and runs every method, one at a time. A client sends JSON
 * objects one after the other, or arrays of them (batches); each answer is one line.
 * doc/guides/rpc.md describes the protocol.
 */
#ifndef PLX_RPC_H
#define PLX_RPC_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define PLX_RPC_MAX_CLIENTS  16		 /* served at once; others wait to be accepted */
#define PLX_RPC_MAX_METHODS  64		 /* registered besides the built-in ones */
#define PLX_RPC_MAX_REQUEST  (256u << 10) /* bytes of one request or batch */
#define PLX_RPC_MAX_RESPONSE (8u << 20)	 /* bytes of one answer */
#define PLX_RPC_MAX_BATCH    64		 /* requests of one batch */
#define PLX_RPC_MAX_DEPTH    64		 /* objects and arrays inside one another */
#define PLX_RPC_ERR_MAX	     256	 /* bytes of a method's error sentence */
#define PLX_RPC_IDLE_MS	     10000	 /* for an incomplete request, or an unread answer */

struct plx_rpc_server;

/**
 * A method.
 * @param params an object, or NULL if the request has none; valid during the call
 * @param result set on success to a new reference; left NULL it reads as true
 * @param err on failure a sentence for the operator, of at most PLX_RPC_ERR_MAX bytes
 * @return 0 or -errno; -EINVAL and -ERANGE are answered as wrong parameters (-32602),
 *   others as -32000 with the errno in its data
 * Thread: the server's. Blocks: briefly, as it delays all clients.
 */
typedef int (*plx_rpc_fn)(const json_t *params, json_t **result, char *err, void *arg);

/** A row of a method table. All text is static. */
struct plx_rpc_method {
	const char *name;
	const char *params; /* one line: the parameters */
	const char *help;   /* one sentence */
	plx_rpc_fn fn;
	void *arg;
};

/**
 * Add methods, before or after start; the rows are copied, their text is not.
 * All are added or none. A row that is there already, the same in fn and arg, is no error.
 * Errors: -EEXIST another method has the name; -ENOSPC PLX_RPC_MAX_METHODS.
 * Thread: any. Blocks: never for long. Allocates: no.
 */
int plx_rpc_register(const struct plx_rpc_method *methods, size_t n);

/**
 * Read parameters as json_unpack() does; a missing, superfluous or wrongly typed one is an
 * error. Strings and objects belong to params.
 * @param fmt such as "{s:s, s?b}"; absent params read as {}
 * @return 0, or -EINVAL with a sentence in err. Thread: any.
 */
int plx_rpc_unpack(const json_t *params, char *err, const char *fmt, ...);

/**
 * Listen on path with mode 0600 and start the thread "plx-rpc". Needs rte_eal_init().
 * @param path %p in it becomes the process id. A socket without a listener is replaced, any
 *   other file is not.
 * Errors: -EADDRINUSE a live server listens there; -EEXIST no socket; -ENAMETOOLONG; -errno
 * of socket calls. Thread: control. Blocks: may. Allocates: heap.
 */
int plx_rpc_start(const char *path, struct plx_rpc_server **out);

/** @return the path that the server listens on; belongs to the server. Thread: any. */
const char *plx_rpc_path(const struct plx_rpc_server *s);

/**
 * Add commands under /pollux to the telemetry of the EAL, which has a socket unless it was started with
 * --no-telemetry; once, for the whole life of the process. Thread: control. Allocates: no.
 */
void plx_rpc_register_telemetry(void);

/** Change PLX_RPC_IDLE_MS for one server. Thread: any. */
void plx_rpc_set_idle(struct plx_rpc_server *s, uint32_t idle_ms);

/**
 * End the thread and its clients, remove the socket. Not from a method. In a forked child
 * it leaves both, and the clients' memory, alone. Thread: control. Blocks: until the
 * running method returns.
 */
void plx_rpc_stop(struct plx_rpc_server *s);

#endif
