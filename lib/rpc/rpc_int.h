/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_int.h - what the files of lib/rpc share
 */
#ifndef RPC_INT_H
#define RPC_INT_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "plx_log.h"
#include "plx_rpc.h"

PLX_LOG_DECLARE(rpc);

/* Error codes of JSON-RPC 2.0; RPC_FAILED is ours: the method failed. */
enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_FAILED = -32000,
};

/* -- rpc_socket.c -- */

struct rpc_socket {
	int fd;
	dev_t dev; /* of the file: only our own is removed */
	ino_t ino;
	struct sockaddr_un addr;
	size_t pid_at, pid_len; /* of the process id in the path; length 0: it has none */
};

/** Expand path into addr and open fd, unbound. @return 0 or -errno. */
int rpc_socket_open(struct rpc_socket *s, const char *path);

/** Bind the path, replacing a dead server's socket if needed, and listen; sockets of killed processes
 * that differ by the process id alone are removed. @return 0 or -errno. */
int rpc_socket_listen(struct rpc_socket *s);

/** Remove the file, if it is still ours. */
void rpc_socket_unlink(const struct rpc_socket *s);

/* -- rpc_methods.c -- */

/** Find a method by name and copy its row. @return 0 or -ENOENT. Thread: any. */
int rpc_method_find(const char *name, struct plx_rpc_method *out);

/* -- rpc_call.c -- */

/**
 * Answer one JSON text: a request, a batch, or neither.
 * @param text exactly one JSON value, or invalid text
 * @param answer set to a new reference, or NULL without an answer
 * @return 0, or -EBADMSG: the text was no JSON, so the following bytes cannot be trusted
 * Thread: the server's.
 */
int rpc_call_text(const char *text, size_t len, json_t **answer);

/** @return a new error answer; id may be NULL. Thread: any. */
json_t *rpc_error(const json_t *id, enum rpc_code code, const char *message);

#endif
