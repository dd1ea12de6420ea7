/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * pairs.h - ranks that mpirun or srun started: rank i measures with rank i + n/2
 */
#ifndef PAIRS_H
#define PAIRS_H

#include "perf.h"

#define PAIRS_MAX 512 /* pairs */

/* The rank and the size that the launcher's environment gives. */
struct pairs_job {
	unsigned rank;
	unsigned n;     /* ranks; even */
	unsigned local; /* the rank among those of this host */
};

/* A rank's first message to the hub. */
struct pairs_hello {
	char magic[8];
	uint32_t rank;
	uint32_t n;
	char port[16]; /* of the listener of side B, on the address that it connects from; "" of side A */
};

/* The hub's answer once all ranks have come. Side A gets the address of its side B. */
struct pairs_start {
	char host[64];
	char port[16];
};

/* pairs.c: one rank. Returns an exit status. */
int pairs_run(const struct perf_opts *o, struct perf_rows *rows);

/* hub.c: meets all ranks at lfd, and prints what they measure. Returns an exit status. */
int hub_run(const struct perf_opts *o, const struct pairs_job *job, int lfd, struct perf_rows *rows);

#endif /* PAIRS_H */
