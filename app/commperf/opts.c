/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * opts.c - the command line: EAL options up to "--", our own after it; to and from JSON for the
 * other side
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf.h"

#define OPTS_DEFAULT_PORT "17770"

enum {
	OPT_VERIFY = 256,
	OPT_MEM,
	OPT_BUFFERS,
	OPT_DATATYPE,
	OPT_DEPTH,
	OPT_SEED,
	OPT_TIME_LIMIT,
	OPT_DURATION,
	OPT_EPS,
	OPT_THREADS,
	OPT_REACTOR,
	OPT_PICK,
	OPT_FORK,
	OPT_SERVER,
	OPT_CONNECT,
	OPT_PAIRS,
	OPT_BIND,
	OPT_NO_EAL,
	OPT_TIMEOUT,
	OPT_CSV,
	OPT_JSON,
	OPT_PLOT,
	OPT_REPORT,
	OPT_QUIET,
	OPT_PROGRESS,
	OPT_VS,
	OPT_INTERLEAVE,
	OPT_UCX_LIB,
	OPT_PERFTEST,
	OPT_POLLUX_RUN,
	OPT_ATTR,
	OPT_SILENT,
	OPT_NO_COPY,
	OPT_BATCH,
	OPT_RANKS,
	OPT_BUSY,
	OPT_ROUNDS,
	OPT_UCX,
	OPT_GATE,
	OPT_VERSION,
};

static const struct option opts_long[] = {
	{"test", required_argument, NULL, 't'},
	{"size", required_argument, NULL, 's'},
	{"iters", required_argument, NULL, 'n'},
	{"warmup", required_argument, NULL, 'w'},
	{"window", required_argument, NULL, 'W'},
	{"mask", required_argument, NULL, 'm'},
	{"repeat", required_argument, NULL, 'r'},
	{"lcores", required_argument, NULL, 'l'},
	{"help", optional_argument, NULL, 'h'},
	{"pick", required_argument, NULL, OPT_PICK},
	{"verify", no_argument, NULL, OPT_VERIFY},
	{"mem", required_argument, NULL, OPT_MEM},
	{"buffers", required_argument, NULL, OPT_BUFFERS},
	{"datatype", required_argument, NULL, OPT_DATATYPE},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"seed", required_argument, NULL, OPT_SEED},
	{"time-limit", required_argument, NULL, OPT_TIME_LIMIT},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"eps", required_argument, NULL, OPT_EPS},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"reactor", required_argument, NULL, OPT_REACTOR},
	{"fork", no_argument, NULL, OPT_FORK},
	{"server", optional_argument, NULL, OPT_SERVER},
	{"connect", required_argument, NULL, OPT_CONNECT},
	{"pairs", optional_argument, NULL, OPT_PAIRS},
	{"bind", required_argument, NULL, OPT_BIND},
	{"no-eal", no_argument, NULL, OPT_NO_EAL},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"csv", required_argument, NULL, OPT_CSV},
	{"json", required_argument, NULL, OPT_JSON},
	{"plot", required_argument, NULL, OPT_PLOT},
	{"report", required_argument, NULL, OPT_REPORT},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"progress", optional_argument, NULL, OPT_PROGRESS},
	{"vs", required_argument, NULL, OPT_VS},
	{"interleave", required_argument, NULL, OPT_INTERLEAVE},
	{"ucx-lib", required_argument, NULL, OPT_UCX_LIB},
	{"perftest", required_argument, NULL, OPT_PERFTEST},
	{"pollux-run", required_argument, NULL, OPT_POLLUX_RUN},
	{"attr", required_argument, NULL, OPT_ATTR},
	{"silent", no_argument, NULL, OPT_SILENT},
	{"no-copy", no_argument, NULL, OPT_NO_COPY},
	{"batch", required_argument, NULL, OPT_BATCH},
	{"ranks", required_argument, NULL, OPT_RANKS},
	{"busy", required_argument, NULL, OPT_BUSY},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"ucx", required_argument, NULL, OPT_UCX},
	{"gate", required_argument, NULL, OPT_GATE},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int
opts_error(const char *what, const char *text)
{
	fprintf(stderr, "commperf: %s: \"%s\"; try --help\n", what, text);
	return -EINVAL;
}

/* A number with k, m, g for powers of unit, 1024 or 1000. */
static int
opts_number(const char *text, const char **end, unsigned unit, uint64_t *out)
{
	char *e;
	unsigned times = 0;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &e, 0);
	if (errno != 0)
		return -EINVAL;
	switch (*e) {
	case 'k':
	case 'K':
		times = 1;
		break;
	case 'm':
	case 'M':
		times = 2;
		break;
	case 'g':
	case 'G':
		times = 3;
		break;
	default:
		break;
	}
	e += times != 0;
	for (; times > 0; times--) {
		if (*out > UINT64_MAX / unit)
			return -EINVAL;
		*out *= unit;
	}
	*end = e;
	return 0;
}

static int
opts_whole(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end;

	if (opts_number(text, &end, 1000, out) != 0 || *end != '\0')
		return -EINVAL;
	return *out < min || *out > max ? -ERANGE : 0;
}

/* "8,64,1k" and "8:4m", in any combination; k is unit. Returns 0, -EINVAL, or -E2BIG over max. */
int
opts_parse_list(const char *text, unsigned unit, uint64_t *out, unsigned max, unsigned *n)
{
	uint64_t from, to;

	*n = 0;
	for (;;) {
		if (opts_number(text, &text, unit, &from) != 0)
			return -EINVAL;
		to = from;
		if (*text == ':' && (opts_number(text + 1, &text, unit, &to) != 0 || to < from))
			return -EINVAL;
		for (;;) {
			if (*n == max)
				return -E2BIG;
			out[(*n)++] = from;
			if (from >= to)
				break;
			from = from == 0 ? 1 : 2 * from;
			if (from > to)
				break;
		}
		if (*text == '\0')
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

/* "0,2-3", and of "--lcores 0@5" the core after the @. */
static int
opts_cpus(struct perf_opts *o, const char *text)
{
	o->n_cpus = 0;
	while (*text != '\0') {
		char *e;
		long a = strtol(text, &e, 10), b;

		if (*e == '@')
			a = strtol(e + 1, &e, 10);
		b = a;
		if (*e == '-')
			b = strtol(e + 1, &e, 10);
		if (e == text || a < 0 || b < a || b >= PERF_MAX_CPUS || (*e != '\0' && *e != ','))
			return -EINVAL;
		for (; a <= b && o->n_cpus < PERF_MAX_CPUS; a++)
			o->cpus[o->n_cpus++] = (int)a;
		text = *e == ',' ? e + 1 : e;
	}
	o->cpus_given = true;
	return o->n_cpus > 0 ? 0 : -EINVAL;
}

static int
opts_coremask(struct perf_opts *o, const char *text)
{
	char *e;
	uint64_t mask = strtoull(text, &e, 16);

	if (mask == 0 || *e != '\0')
		return -EINVAL;
	o->n_cpus = 0;
	for (int i = 0; i < 64; i++) {
		if (mask >> i & 1)
			o->cpus[o->n_cpus++] = i;
	}
	o->cpus_given = true;
	return 0;
}

/* Take the core list out of the EAL options and keep the rest. */
static int
opts_eal(struct perf_opts *o, int argc, char **argv)
{
	o->eal_argv = calloc((size_t)argc + 1, sizeof(*o->eal_argv));
	if (o->eal_argv == NULL)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		const char *a = argv[i], *value;
		size_t skip = 0;

		if (strncmp(a, "--lcores", 8) == 0 && (a[8] == '=' || a[8] == '\0'))
			skip = a[8] == '=' ? 9 : 8;
		else if (strncmp(a, "-l", 2) == 0 || strncmp(a, "-c", 2) == 0)
			skip = 2;
		if (skip == 0) {
			o->eal_argv[o->eal_argc++] = argv[i];
			continue;
		}
		value = a + skip;
		if (*value == '\0') {
			if (i + 1 == argc)
				return opts_error("an EAL option without its value", a);
			value = argv[++i];
		}
		if ((a[1] == 'c' ? opts_coremask(o, value) : opts_cpus(o, value)) != 0)
			return opts_error("not a core list", value);
	}
	return 0;
}

/* Without a core list: the cores this process may use. */
void
opts_default_cpus(struct perf_opts *o)
{
	cpu_set_t set;

	if (o->n_cpus > 0)
		return;
	if (sched_getaffinity(0, sizeof(set), &set) == 0) {
		for (int i = 0; i < CPU_SETSIZE && o->n_cpus < PERF_MAX_CPUS; i++) {
			if (CPU_ISSET(i, &set))
				o->cpus[o->n_cpus++] = i;
		}
	}
	if (o->n_cpus == 0)
		o->cpus[o->n_cpus++] = 0;
}

/* A test by its name, by the part before the first _, or all of an API. */
static bool
opts_names(const char *name, const struct perf_test *t)
{
	bool cci = (t->flags & PERF_CCI) != 0;
	size_t n = strlen(name);

	if (strcmp(name, "all") == 0 || strcmp(name, "cci") == 0)
		return cci == (name[0] == 'c') && !(t->flags & PERF_ALONE);
	if (strcmp(name, t->name) == 0)
		return true;
	return !(t->flags & PERF_ALONE) &&
	       strncmp(name, t->name, n) == 0 && t->name[n] == '_' && strchr(name, '_') == NULL &&
	       perf_test_find(name) == NULL;
}

static int
opts_tests(struct perf_opts *o, const char *text)
{
	char *copy = strdup(text), *save = NULL, *name;
	const struct perf_test *t;
	int rc = 0;

	if (copy == NULL)
		return -ENOMEM;
	o->n_tests = 0;
	for (name = strtok_r(copy, ",", &save); name != NULL && rc == 0;
		name = strtok_r(NULL, ",", &save)) {
		unsigned before = o->n_tests;

		for (t = perf_tests; t->name != NULL; t++) {
			if (opts_names(name, t) && o->n_tests < PERF_MAX_TESTS)
				o->tests[o->n_tests++] = t;
		}
		if (o->n_tests == before)
			rc = opts_error("no such test", name);
	}
	free(copy);
	return rc != 0 ? rc : o->n_tests > 0 ? 0 : opts_error("no test named", text);
}

int
opts_mask(struct perf_opts *o, const char *text)
{
	char *e;

	if (strcmp(text, "full") == 0) {
		o->mask = UINT64_MAX;
		return 0;
	}
	if (strcmp(text, "mpich") == 0) {
		o->mask = PERF_MASK_MPICH;
		return 0;
	}
	errno = 0;
	o->mask = strtoull(text, &e, 16);
	return errno == 0 && e != text && *e == '\0' ? 0 : opts_error("not a mask", text);
}

const char *
perf_attr_name(unsigned attr)
{
	static const char *const names[] = {"ro", "ru", "uu"};

	return names[attr < 3 ? attr : 0];
}

int
opts_attr(struct perf_opts *o, const char *text)
{
	for (o->attr = 0; o->attr < 3; o->attr++) {
		if (strcmp(text, perf_attr_name(o->attr)) == 0)
			return 0;
	}
	return opts_error("not ro, ru or uu", text);
}

/* The argument of --datatype that selects the payload; "" for a contiguous buffer. */
void
perf_datatype_name(const struct perf_opts *o, char *out, size_t len)
{
	out[0] = '\0';
	if (o->generic)
		snprintf(out, len, "generic");
	else if (o->pieces > 0)
		snprintf(out, len, "iov:%u", o->pieces);
}

int
opts_datatype(struct perf_opts *o, const char *text)
{
	uint64_t n = 0;

	if (strncmp(text, "iov:", 4) == 0 && opts_whole(text + 4, 1, PERF_MAX_PIECES, &n) != 0)
		return opts_error("not iov:1 to iov:" RTE_STR(PERF_MAX_PIECES), text);
	o->pieces = (unsigned)n;
	o->generic = strcmp(text, "generic") == 0;
	o->typed = o->generic || n > 0;
	return o->typed || strcmp(text, "contig") == 0 ? 0 : opts_error("not contig, iov:N or generic", text);
}

static int
opts_address(struct perf_opts *o, const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);

	if (n >= sizeof(o->host) || (colon != NULL && strlen(colon + 1) >= sizeof(o->port)))
		return opts_error("not HOST:PORT", text);
	memcpy(o->host, text, n);
	o->host[n] = '\0';
	snprintf(o->port, sizeof(o->port), "%s",
		colon != NULL && colon[1] != '\0' ? colon + 1 : OPTS_DEFAULT_PORT);
	return 0;
}

/* One of two words: 0 the first, 1 the second, negative neither. */
static int
opts_either(const char *text, const char *first, const char *second)
{
	if (strcmp(text, first) == 0)
		return 0;
	return strcmp(text, second) == 0 ? 1 : opts_error("unknown value", text);
}

static int
opts_seconds(const char *text, double *out)
{
	char *e;

	*out = strtod(text, &e);
	return e != text && *e == '\0' && *out > 0 && *out <= 86400
		       ? 0
		       : opts_error("not seconds", text);
}

static int
opts_flag(const char *text, const char *first, const char *second, bool *out)
{
	int rc = opts_either(text, first, second);

	if (rc < 0)
		return rc;
	*out = rc == 1;
	return 0;
}

const char *
perf_mem_name(enum perf_mem mem)
{
	return mem == PERF_MEM_MAPPED ? "mapped" : mem == PERF_MEM_EAL ? "eal" : "private";
}

static int
opts_mem(struct perf_opts *o, const char *text)
{
	for (enum perf_mem m = PERF_MEM_PRIVATE; m <= PERF_MEM_EAL; m++) {
		if (strcmp(text, perf_mem_name(m)) == 0) {
			o->mem = m;
			return 0;
		}
	}
	return opts_error("unknown value", text);
}

static int
opts_count(const char *text, uint64_t min, uint64_t max, unsigned *out)
{
	uint64_t v;

	if (opts_whole(text, min, max, &v) != 0)
		return opts_error("not a number in range", text);
	*out = (unsigned)v;
	return 0;
}

static int
opts_wide(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	return opts_whole(text, min, max, out) == 0 ? 0 : opts_error("not a number in range", text);
}

/* The library reads it from the environment, which child processes inherit. */
static int
opts_reactor(struct perf_opts *o, const char *text)
{
	char value[256];
	int n;

	if (strcmp(text, "own") == 0) {
		o->reactor_own = true;
		o->eal = false;
		return 0;
	}
	n = snprintf(value, sizeof(value), "%s%s", strncmp(text, "lcore:", 6) == 0 ? "" : "lcore:",
		text);

	if (n < 0 || (size_t)n >= sizeof(value) || value[6 + strspn(value + 6, "0123456789,-")] != '\0' ||
		value[6] == '\0')
		return opts_error("not a list of cores", text);
	o->eal = false;
	return setenv("PLX_REACTOR", value, 1) == 0 ? 0 : -ENOMEM;
}

static bool
opts_is_json(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* The file of an earlier run. */
static int
opts_run(struct perf_opts *o, const char *name)
{
	if (!opts_is_json(name))
		return opts_error("unexpected argument", name);
	if (o->n_runs == PERF_MAX_RUNS)
		return opts_error("more files to plot than " RTE_STR(PERF_MAX_RUNS), name);
	o->runs[o->n_runs++] = name;
	return 0;
}

static int
opts_one(struct perf_opts *o, int c, const char *arg)
{
	uint64_t v = 0;
	int rc;

	switch (c) {
	case 't':
		return opts_tests(o, arg);
	case 's':
		rc = opts_parse_list(arg, 1024, o->sizes, PERF_MAX_SIZES, &o->n_sizes);
		return rc == 0 ? 0 : opts_error("not a list of sizes", arg);
	case 'n':
		return opts_wide(arg, 1, PERF_MAX_ITERS, &o->iters);
	case 'w':
		rc = opts_wide(arg, 0, PERF_MAX_ITERS, &v);
		o->warmup = (int64_t)v;
		return rc;
	case 'W':
		return opts_count(arg, 1, PERF_MAX_WINDOW, &o->window);
	case OPT_BATCH:
		return opts_count(arg, 1, PERF_MAX_BATCH, &o->batch);
	case 'm':
		return opts_mask(o, arg);
	case 'r':
		return opts_count(arg, 1, 1000, &o->repeat);
	case 'l':
		return opts_cpus(o, arg) == 0 ? 0 : opts_error("not a core list", arg);
	case OPT_PICK:
		return opts_flag(arg, "median", "best", &o->pick_best);
	case OPT_VERIFY:
		o->verify = true;
		return 0;
	case OPT_MEM:
		return opts_mem(o, arg);
	case OPT_BUFFERS:
		return opts_flag(arg, "one", "window", &o->buffers_window);
	case OPT_DATATYPE:
		return opts_datatype(o, arg);
	case OPT_DEPTH:
		rc = opts_parse_list(arg, 1000, o->depths, PERF_MAX_DEPTHS, &o->n_depths);
		return rc == 0 ? 0 : opts_error("not a list of depths", arg);
	case OPT_SEED:
		return opts_wide(arg, 0, UINT64_MAX, &o->seed);
	case OPT_TIME_LIMIT:
		return opts_seconds(arg, &o->time_limit);
	case OPT_DURATION:
		return opts_seconds(arg, &o->duration);
	case OPT_EPS:
		return opts_count(arg, 1, 1000000, &o->eps);
	case OPT_THREADS:
		return opts_count(arg, 1, PERF_MAX_THREADS, &o->threads);
	case OPT_REACTOR:
		return opts_reactor(o, arg);
	case OPT_FORK:
		o->role = PERF_FORK;
		return 0;
	case OPT_SERVER:
		o->role = PERF_SERVER;
		return opts_address(o, arg != NULL ? arg : "127.0.0.1:" OPTS_DEFAULT_PORT);
	case OPT_CONNECT:
		o->role = PERF_CONNECT;
		return opts_address(o, arg);
	case OPT_PAIRS:
		o->pairs = true;
		return opts_address(o, arg != NULL ? arg : "127.0.0.1:" OPTS_DEFAULT_PORT);
	case OPT_BIND:
		rc = opts_flag(arg, "off", "on", &o->bind);
		return rc;
	case OPT_NO_EAL:
		o->eal = false;
		return 0;
	case OPT_TIMEOUT:
		return opts_seconds(arg, &o->timeout);
	case OPT_CSV:
		o->csv = arg;
		return 0;
	case OPT_JSON:
		o->json = arg;
		return 0;
	case OPT_PLOT:
		if (opts_is_json(arg))
			return opts_run(o, arg);
		o->plot = arg;
		return 0;
	case OPT_REPORT:
		o->report = arg;
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_PROGRESS:
		return opts_flag(arg != NULL ? arg : "on", "off", "on", &o->progress);
	case OPT_VS:
		rc = opts_either(arg, "ucx", "ucx_perftest");
		o->vs = rc == 0 ? PERF_VS_UCX : PERF_VS_PERFTEST;
		return rc < 0 ? rc : 0;
	case OPT_INTERLEAVE:
		return opts_flag(arg, "size", "sweep", &o->vs_sweep);
	case OPT_UCX_LIB:
		o->ucx_lib = arg;
		return 0;
	case OPT_PERFTEST:
		o->perftest = arg;
		return 0;
	case OPT_ATTR:
		return opts_attr(o, arg);
	case OPT_SILENT:
		o->silent = true;
		return 0;
	case OPT_NO_COPY:
		o->no_copy = true;
		return 0;
	case OPT_RANKS:
		rc = opts_parse_list(arg, 1000, o->ranks, PERF_MAX_LOADS, &o->n_ranks);
		return rc == 0 ? 0 : opts_error("not a list of ranks", arg);
	case OPT_BUSY:
		rc = opts_parse_list(arg, 1000, o->busy, PERF_MAX_LOADS, &o->n_busy);
		return rc == 0 ? 0 : opts_error("not a list of busy programs", arg);
	case OPT_ROUNDS:
		return opts_count(arg, 1, PERF_MAX_ROUNDS, &o->rounds);
	case OPT_UCX:
		o->ucx_prefix = arg;
		return 0;
	case OPT_GATE:
		return sscanf(arg, "%d,%d", &o->gate[0], &o->gate[1]) == 2 ? 0 : -EINVAL;
	case OPT_POLLUX_RUN:
		o->pollux_run = arg;
		return 0;
	default:
		return -EINVAL;
	}
}

static void
opts_defaults(struct perf_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->tests[0] = &perf_tests[0];
	o->n_tests = 1;
	o->warmup = -1;
	o->window = 32;
	o->batch = 1;
	o->mask = UINT64_MAX;
	opts_parse_list("100,1k,10k,50k", 1000, o->depths, PERF_MAX_DEPTHS, &o->n_depths);
	o->seed = 1;
	opts_parse_list("2,8,32", 1000, o->ranks, PERF_MAX_LOADS, &o->n_ranks);
	opts_parse_list("0,1,10", 1000, o->busy, PERF_MAX_LOADS, &o->n_busy);
	o->rounds = 3;
	o->gate[0] = o->gate[1] = -1;
	o->eps = 1000;
	o->threads = 1;
	o->timeout = 60;
	o->bind = true;
	o->eal = true;
	o->progress = isatty(STDERR_FILENO);
	o->perftest = "ucx_perftest";
}

int
opts_check(struct perf_opts *o)
{
	if (o->repeat == 0)
		o->repeat = o->vs != PERF_VS_NONE ? 3 : 1;
	if (o->n_runs > 0 && (o->role != PERF_FORK || o->vs != PERF_VS_NONE || o->csv != NULL || o->json != NULL ||
				       o->report != NULL))
		return opts_error("no test runs when results of earlier runs are plotted; remove the options of tests", o->runs[0]);
	if (o->vs != PERF_VS_NONE && o->role != PERF_FORK)
		return opts_error("--vs starts both sides itself; do not combine it with", "--server or --connect");
	if (o->plot != NULL && strstr(o->plot, ".svg") == NULL && strstr(o->plot, ".html") == NULL)
		return opts_error("--plot needs a name in .svg or .html", o->plot);
	if (o->duration > 0 && o->iters != 0)
		return opts_error("give the iterations or the time of a line, not both", "--iters and --duration");
	if (o->pairs && (o->role != PERF_FORK || o->vs != PERF_VS_NONE || o->n_runs > 0))
		return opts_error("the ranks of --pairs are both sides; do not combine it with", "--server, --connect, --vs or results");
	for (unsigned i = 0; i < o->n_tests; i++) {
		if (o->pairs && (o->tests[i]->flags & (PERF_LAUNCHER | PERF_ALONE)))
			return opts_error("this test does not take --pairs", o->tests[i]->name);
		if (o->typed && !(o->tests[i]->flags & PERF_TYPED))
			return opts_error("this test does not take --datatype", o->tests[i]->name);
		if (o->duration > 0 && !(o->tests[i]->flags & PERF_TIMED))
			return opts_error("this test does not take --duration", o->tests[i]->name);
		if ((o->tests[i]->flags & PERF_ALONE) && o->n_tests > 1)
			return opts_error("this test runs alone, without others", o->tests[i]->name);
		if ((o->tests[i]->flags ^ o->tests[0]->flags) & PERF_CCI)
			return opts_error("tests of UCP and of CCI cannot run together", o->tests[i]->name);
		if (strcmp(perf_attr_name(o->attr), "uu") == 0 && strcmp(o->tests[i]->name, "msg_lat") != 0)
			return opts_error("uu loses messages and has no RMA", o->tests[i]->name);
	}
	if (o->vs != PERF_VS_NONE && (o->tests[0]->flags & PERF_CCI))
		return opts_error("--vs compares tests of UCP only", o->tests[0]->name);
	for (unsigned i = 0; i < o->n_sizes; i++) {
		if (o->sizes[i] > UINT64_C(1) << 32)
			return opts_error("a size is larger than", "4g");
	}
	for (unsigned i = 0; i < o->n_ranks; i++) {
		if (o->ranks[i] < 2 || o->ranks[i] > PERF_MAX_RANKS || o->ranks[i] % 2 != 0)
			return opts_error("ranks form pairs: give even numbers up to", RTE_STR(PERF_MAX_RANKS));
	}
	for (unsigned i = 0; i < o->n_busy; i++) {
		if (o->busy[i] > PERF_MAX_BUSY)
			return opts_error("too many busy programs on a core; the maximum is", RTE_STR(PERF_MAX_BUSY));
	}
	if (strcmp(o->tests[0]->name, "load") == 0 && (o->role != PERF_FORK || o->vs != PERF_VS_NONE))
		return opts_error("load starts all sides itself; do not combine it with", "--server, --connect or --vs");
	for (unsigned i = 0; i < o->n_depths; i++) {
		if (o->depths[i] == 0 || o->depths[i] > 10000000)
			return opts_error("a depth is outside of", "1 to 10000000");
	}
	if (o->verify)
		o->buffers_window = true;
	return 0;
}

/* Returns 0; 1 when help or version was printed; negative after an error was printed. */
int
opts_parse(struct perf_opts *o, int argc, char **argv)
{
	int c, rc, dash;

	opts_defaults(o);
	o->self = argv[0];
	o->argc = argc;
	o->argv = argv;
	for (dash = 1; dash < argc && strcmp(argv[dash], "--") != 0; dash++)
		;
	if (dash < argc) {
		rc = opts_eal(o, dash - 1, argv + 1);
		if (rc != 0)
			return rc;
		argv += dash;
		argc -= dash;
		argv[0] = (char *)(uintptr_t)o->self;
	}
	optind = 1;
	while ((c = getopt_long(argc, argv, "t:s:n:w:W:m:r:l:h", opts_long, NULL)) != -1) {
		const char *arg = optarg;

		if (c == '?') {
			fputs("commperf: try --help\n", stderr);
			return -EINVAL;
		}
		if (c == OPT_VERSION) {
			printf("commperf on %s %s\n", perf_backend_ucp.name,
				perf_backend_ucp.version());
			return 1;
		}
		if ((c == OPT_SERVER || c == OPT_PAIRS || c == 'h') && arg == NULL && optind < argc && argv[optind][0] != '-')
			arg = argv[optind++];
		if (c == 'h')
			return help_print(arg) ? 1 : opts_error("no such topic", arg);
		rc = opts_one(o, c, arg);
		if (rc != 0)
			return rc;
	}
	while (optind < argc) {
		rc = opts_run(o, argv[optind++]);
		if (rc != 0)
			return rc;
	}
	return opts_check(o);
}
