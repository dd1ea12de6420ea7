/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * page.h - a report: the folder with index.html and data.json that a user attaches to an issue
 */
#ifndef PAGE_H
#define PAGE_H

#include "plot.h"

/* A string of JSON; bytes that are not UTF-8 become "?". */
json_t *page_string(const char *text);

/* machine.c: one object of names and values */
json_t *machine_facts(const struct perf_opts *o);

/*
 * report_dir.c: before the run, make the folder and collect the facts that the run might change.
 * @return 0, or -errno after an error was printed
 */
int report_dir_open(const struct perf_opts *o);
/* After the run, write the files. Takes over data, the JSON of the results. @return 0 or -errno */
int report_dir_write(const struct perf_opts *o, const struct perf_rows *rows, const struct plot *p,
	json_t *data);

/* page.c: write the page. @return 0 or -errno */
int page_write(const char *path, const json_t *data, const struct perf_rows *rows, const struct plot *p);

#endif /* PAGE_H */
