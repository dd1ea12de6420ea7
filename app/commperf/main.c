/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * main.c - commperf: measure a communication library through its public API
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "pairs.h"
#include "plot.h"

static _Atomic int main_signal;

static void
main_on_signal(int sig)
{
	/* relaxed: the same thread reads it, behind a system call */
	atomic_store_explicit(&main_signal, sig, memory_order_relaxed);
}

/* The first signal stops the test, and present results are written; the second exits. */
void
perf_stop_on_signals(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = main_on_signal, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < RTE_DIM(sigs); i++)
		sigaction(sigs[i], &action, NULL);
}

int
perf_stopped(void)
{
	return atomic_load_explicit(&main_signal, memory_order_relaxed);
}

void
perf_stop_is_for_parent(void)
{
	signal(SIGINT, SIG_IGN); /* a terminal sends it to the whole group */
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
}

static int
main_run(const struct perf_opts *o)
{
	static struct perf_rows rows;
	int rc;

	perf_stop_on_signals();
	if (o->vs != PERF_VS_NONE)
		return vs_run(o);
	rc = o->pairs ? pairs_run(o, &rows)
	     : strcmp(o->tests[0]->name, "load") == 0 ? load_run(o, &rows)
	     : o->role == PERF_CONNECT ? launch_client(o, &rows) : launch_run(o, &rows);
	if (rows.n > 0 && report_files(o, &rows) != 0)
		rc = 1;
	rows_free(&rows);
	return rc;
}

int
main(int argc, char **argv)
{
	static struct perf_opts o;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	rc = opts_parse(&o, argc, argv);
	if (rc != 0)
		return rc > 0 ? 0 : 2;
	opts_default_cpus(&o);
	if (o.role == PERF_SERVER)
		return launch_server(&o);
	if (!o.pairs && report_check(&o) != 0)
		return 2;
	if (o.n_runs > 0)
		return plot_runs(&o);
	rc = main_run(&o);
	if (perf_stopped() == 0)
		return rc;
	fputs("commperf: interrupted; the results so far are kept\n", stderr);
	return 128 + perf_stopped();
}
