/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * opts_json.c - the options that both sides must agree on, as JSON, and back within bounds
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static json_t *
opts_list_to_json(const uint64_t *list, unsigned n)
{
	json_t *j = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(j, json_integer((json_int_t)list[i]));
	return j;
}

/* The options that both sides must agree on. */
json_t *
opts_to_json(const struct perf_opts *o)
{
	json_t *tests = json_array();
	char mask[24], seed[24], datatype[24];

	perf_datatype_name(o, datatype, sizeof(datatype));
	for (unsigned i = 0; i < o->n_tests; i++)
		json_array_append_new(tests, json_string(o->tests[i]->name));
	snprintf(mask, sizeof(mask), "%#llx", (unsigned long long)o->mask);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)o->seed);
	return json_pack("{s:o s:o s:I s:I s:i s:i s:s s:i s:b s:i s:b s:o s:s s:f s:i s:i s:f s:s s:b "
		"s:b s:f s:s}", "tests", tests, "sizes", opts_list_to_json(o->sizes, o->n_sizes), "iters",
		(json_int_t)o->iters, "warmup", (json_int_t)o->warmup, "window", (int)o->window,
		"batch", (int)o->batch, "mask", mask, "repeat", (int)o->repeat, "verify", o->verify,
		"mem", (int)o->mem,
		"buffers_window", o->buffers_window, "depths",
		opts_list_to_json(o->depths, o->n_depths), "seed", seed, "time_limit",
		o->time_limit, "eps", (int)o->eps, "threads", (int)o->threads, "timeout", o->timeout,
		"attr", perf_attr_name(o->attr), "silent", o->silent, "no_copy", o->no_copy, "duration",
		o->duration, "datatype", datatype[0] != '\0' ? datatype : "contig");
}

static int
opts_list_from_json(const json_t *j, uint64_t *list, unsigned max, unsigned *n)
{
	if (!json_is_array(j) || json_array_size(j) > max)
		return -EPROTO;
	*n = (unsigned)json_array_size(j);
	for (unsigned i = 0; i < *n; i++)
		list[i] = (uint64_t)json_integer_value(json_array_get(j, i));
	return 0;
}

/* The server applies the client's options, within the bounds of its own command line. */
int
opts_from_json(struct perf_opts *o, const json_t *j)
{
	json_t *tests = json_object_get(j, "tests");
	json_int_t iters, warmup;
	const char *mask, *seed, *attr, *datatype;
	int window, batch, repeat, verify, mem, slots, eps, silent, no_copy, threads;

	if (json_unpack((json_t *)(uintptr_t)j,
		    "{s:I s:I s:i s:i s:s s:i s:b s:i s:b s:s s:F s:i s:i s:F s:s s:b s:b s:F s:s}",
		    "iters", &iters, "warmup", &warmup, "window", &window, "batch", &batch,
		    "mask", &mask, "repeat", &repeat, "verify", &verify, "mem", &mem,
		    "buffers_window", &slots, "seed", &seed, "time_limit", &o->time_limit, "eps",
		    &eps, "threads", &threads, "timeout",
		    &o->timeout, "attr", &attr, "silent", &silent, "no_copy", &no_copy,
		    "duration", &o->duration, "datatype", &datatype) != 0)
		return -EPROTO;
	if (mem < PERF_MEM_BY_TEST || mem > PERF_MEM_EAL || iters < 0 ||
		iters > PERF_MAX_ITERS || warmup < -1 || warmup > PERF_MAX_ITERS ||
		window < 1 || window > PERF_MAX_WINDOW || batch < 1 ||
		batch > PERF_MAX_BATCH || repeat < 1 || repeat > 1000 || eps < 1 || eps > 1000000 ||
		!(o->duration >= 0) || o->duration > 86400 || !(o->time_limit >= 0) || o->time_limit > 86400 ||
		threads < 1 || threads > PERF_MAX_THREADS || !(o->timeout > 0) || o->timeout > 86400)
		return -EPROTO;
	o->n_tests = 0;
	for (size_t i = 0; i < json_array_size(tests) && i < PERF_MAX_TESTS; i++) {
		const char *name = json_string_value(json_array_get(tests, i));

		o->tests[o->n_tests] = name != NULL ? perf_test_find(name) : NULL;
		if (o->tests[o->n_tests++] == NULL)
			return -EPROTO;
	}
	if (opts_list_from_json(
		    json_object_get(j, "sizes"), o->sizes, PERF_MAX_SIZES, &o->n_sizes) != 0 ||
		opts_list_from_json(json_object_get(j, "depths"), o->depths, PERF_MAX_DEPTHS,
			&o->n_depths) != 0)
		return -EPROTO;
	o->iters = (uint64_t)iters;
	o->warmup = warmup;
	o->window = (unsigned)window;
	o->batch = (unsigned)batch;
	o->repeat = (unsigned)repeat;
	o->verify = verify;
	o->mem = (enum perf_mem)mem;
	o->buffers_window = slots;
	o->eps = (unsigned)eps;
	o->threads = (unsigned)threads;
	o->seed = strtoull(seed, NULL, 10);
	o->silent = silent;
	o->no_copy = no_copy;
	if (opts_mask(o, mask) != 0 || opts_attr(o, attr) != 0 ||
		opts_datatype(o, datatype) != 0)
		return -EPROTO;
	return opts_check(o) != 0 ? -EPROTO : 0;
}
