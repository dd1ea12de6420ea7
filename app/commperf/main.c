/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * main.c - commperf: measure a communication library from outside, through its public API
 */
#include <signal.h>
#include <stdio.h>

#include "perf.h"

int
main(int argc, char **argv)
{
	static struct perf_opts o;
	static struct perf_rows rows;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	rc = opts_parse(&o, argc, argv);
	if (rc != 0)
		return rc > 0 ? 0 : 2;
	opts_default_cpus(&o);
	if (o.vs != PERF_VS_NONE)
		return vs_run(&o);
	if (o.role == PERF_SERVER)
		return launch_server(&o);
	rc = o.role == PERF_CONNECT ? launch_client(&o, &rows) : launch_run(&o, &rows);
	if (rows.n > 0 && report_files(&o, &rows) != 0)
		rc = 1;
	rows_free(&rows);
	return rc;
}
