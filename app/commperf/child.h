/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * child.h - other programs, and this one again: started, on another library, and stopped
 */
#ifndef PERF_CHILD_H
#define PERF_CHILD_H

#include <sys/types.h>

#include "perf.h"

#define CHILD_MAX_ARGS 96
#define CHILD_MAX_ENV  4

struct child_args {
	char *v[CHILD_MAX_ARGS];
	int n;
};

/* The UCX to use. */
struct child_ucx {
	char lib[4096];	 /* its libucp.so.0 */
	char path[4096]; /* folder of its other libraries; "": the loader's path */
};

struct child_how {
	const struct child_ucx *ucx; /* this program on UCX; NULL: as it is */
	bool tls;		     /* UCX's best for shared memory; implied by ucx */
	const char *out;	     /* its standard output, or NULL */
	int cpu;		     /* its core, or -1 */
	char env[CHILD_MAX_ENV][64]; /* NAME=value; "": none */
};

void child_arg(struct child_args *a, const char *fmt, ...) __rte_format_printf(2, 3);
void child_args_free(struct child_args *a);
pid_t child_start(const struct child_args *a, const struct child_how *how);
int child_finish(pid_t pid, double deadline);
/* Find a program of ours next to this one or in the build, or give its name for the search path. */
void child_find_program(const char *name, char *out, size_t len);
int child_find_ucx(const struct perf_opts *o, struct child_ucx *ucx);

#endif /* PERF_CHILD_H */
