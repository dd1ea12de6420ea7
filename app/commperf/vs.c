/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * vs.c - two libraries under the same load, interleaved on the same cores, and the ratio
 *
 * Design notes
 * - "ucx": this program runs itself; for the second side UCX's libucp is preloaded, so that the
 *   same loops call it. "ucx_perftest": that program runs, plain and through pollux-run.
 * - The cores of a virtual machine move. A pair whose one-line ping-pongs differ by more than
 *   half is left out of the median, unless there is no other pair.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "page.h"

#define VS_MAX_PAIRS 1000
#define VS_FAR       1.5

struct vs_key {
	struct perf_row row; /* of the first pair; its key, unit, direction */
	unsigned pairs;
	unsigned used;
	double a[VS_MAX_PAIRS], b[VS_MAX_PAIRS];
	double raw_a[VS_MAX_PAIRS], raw_b[VS_MAX_PAIRS];
	double med_a, med_b, ratio, med_raw_a, med_raw_b;
};

struct vs {
	const struct perf_opts *o;
	struct vs_key *key;
	size_t n;
	char name[2][128]; /* the compared libraries, by their own names */
	struct child_ucx ucx;
	char run[4096]; /* pollux-run */
	char tmp[64];
	unsigned port;
	uint64_t errors;
	char last_test[16];
};

/* ---- this program on the other library ---- */

static void
vs_child_list(struct child_args *a, const char *option, const uint64_t *list, unsigned n)
{
	char text[PERF_MAX_SIZES * 21];
	int at = 0;

	for (unsigned i = 0; i < n; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%llu", i ? "," : "",
			(unsigned long long)list[i]);
	if (n > 0)
		child_arg(a, "%s=%s", option, text);
}

static void
vs_child_args(const struct vs *v, struct child_args *a, const struct perf_test *t,
	const uint64_t *sizes, unsigned n)
{
	const struct perf_opts *o = v->o;
	char type[24];

	child_arg(a, "/proc/self/exe");
	for (int i = 0; i < o->eal_argc; i++)
		child_arg(a, "%s", o->eal_argv[i]);
	child_arg(a, "--");
	child_arg(a, "-l%d,%d", o->cpus[0], o->cpus[o->n_cpus > 1]);
	child_arg(a, "--test=%s", t->name);
	vs_child_list(a, "--size", sizes, n);
	if (o->iters != 0)
		child_arg(a, "--iters=%llu", (unsigned long long)o->iters);
	perf_datatype_name(o, type, sizeof(type));
	if (o->typed)
		child_arg(a, "--datatype=%s", type);
	if (o->duration > 0)
		child_arg(a, "--duration=%g", o->duration);
	if (o->warmup >= 0)
		child_arg(a, "--warmup=%lld", (long long)o->warmup);
	child_arg(a, "--window=%u", o->window);
	child_arg(a, "--mask=%llx", (unsigned long long)o->mask);
	if (o->mem != PERF_MEM_BY_TEST)
		child_arg(a, "--mem=%s", perf_mem_name(o->mem));
	child_arg(a, "--buffers=%s", o->buffers_window ? "window" : "one");
	vs_child_list(a, "--depth", o->depths, o->n_depths);
	child_arg(a, "--seed=%llu", (unsigned long long)o->seed);
	if (o->time_limit > 0)
		child_arg(a, "--time-limit=%g", o->time_limit);
	child_arg(a, "--eps=%u", o->eps);
	child_arg(a, "--threads=%u", o->threads);
	child_arg(a, "--timeout=%g", o->timeout);
	child_arg(a, "--bind=%s", o->bind ? "on" : "off");
	if (o->verify)
		child_arg(a, "--verify");
	if (!o->eal || (t->flags & PERF_LAUNCHER)) /* start-up: each library as it starts alone */
		child_arg(a, "--no-eal");
	child_arg(a, "--repeat=1");
	child_arg(a, "--quiet");
	child_arg(a, "--progress=off");
	child_arg(a, "--json=%s/result", v->tmp);
}

static int
vs_child(struct vs *v, const struct perf_test *t, const uint64_t *sizes, unsigned n, bool ucx,
	struct perf_rows *rows)
{
	struct child_args a = {.n = 0};
	char path[96];
	int rc;

	snprintf(path, sizeof(path), "%s/result", v->tmp);
	unlink(path);
	vs_child_args(v, &a, t, sizes, n);
	rc = child_finish(child_start(&a, &(struct child_how){.ucx = ucx ? &v->ucx : NULL, .cpu = -1}),
		INFINITY);
	child_args_free(&a);
	if (perf_stopped() != 0)
		return -EINTR;
	if (rows_load(rows, path) != 0 || rows->n == 0) {
		report_say("%s on the %s side gave no result", t->name, ucx ? "UCX" : "first");
		return -EIO;
	}
	snprintf(v->name[ucx], sizeof(v->name[ucx]), "%s", rows->library);
	return rc;
}

static struct vs_key *
vs_key_of(struct vs *v, const struct perf_row *row)
{
	struct vs_key *p;

	for (size_t i = 0; i < v->n; i++) {
		if (rows_same_key(&v->key[i].row, row))
			return &v->key[i];
	}
	p = realloc(v->key, (v->n + 1) * sizeof(*p));
	if (p == NULL)
		return NULL;
	v->key = p;
	p = &v->key[v->n++];
	memset(p, 0, sizeof(*p));
	p->row = *row;
	return p;
}

static int
vs_pair_add(struct vs *v, const struct perf_row *a, const struct perf_row *b)
{
	struct vs_key *k = vs_key_of(v, a);

	if (k == NULL)
		return -ENOMEM;
	if (k->pairs == VS_MAX_PAIRS)
		return 0;
	k->a[k->pairs] = a->value;
	k->b[k->pairs] = b->value;
	k->raw_a[k->pairs] = a->raw_ns;
	k->raw_b[k->pairs] = b->raw_ns;
	k->pairs++;
	v->errors += a->errors + b->errors;
	return 0;
}

/* One pair of runs, in alternating order. */
static int
vs_pair(struct vs *v, const struct perf_test *t, const uint64_t *sizes, unsigned n, unsigned turn)
{
	struct perf_rows rows[2] = {{.n = 0}, {.n = 0}};
	int rc = 0;

	for (unsigned i = 0; i < 2 && perf_stopped() == 0; i++) {
		unsigned ucx = (i + turn) & 1;
		int one = vs_child(v, t, sizes, n, ucx, &rows[ucx]);

		if (one < 0 || (one != 0 && rows[ucx].n == 0))
			rc = -EIO;
	}
	for (size_t i = 0; i < rows[0].n && rc == 0; i++) {
		for (size_t k = 0; k < rows[1].n && rc == 0; k++) {
			if (rows_same_key(&rows[0].row[i], &rows[1].row[k]))
				rc = vs_pair_add(v, &rows[0].row[i], &rows[1].row[k]);
		}
	}
	rows_free(&rows[0]);
	rows_free(&rows[1]);
	return rc;
}

/* ---- the median of the pairs, and the table ---- */

static bool
vs_pair_fair(const struct vs_key *k, unsigned i)
{
	double a = k->raw_a[i], b = k->raw_b[i];

	return a <= 0 || b <= 0 || (a <= VS_FAR * b && b <= VS_FAR * a);
}

static void
vs_key_close(struct vs_key *k)
{
	static double a[VS_MAX_PAIRS], b[VS_MAX_PAIRS], r[VS_MAX_PAIRS];
	static double raw_a[VS_MAX_PAIRS], raw_b[VS_MAX_PAIRS];
	bool any = false;

	k->used = 0;
	for (unsigned i = 0; i < k->pairs; i++)
		any = any || vs_pair_fair(k, i);
	for (unsigned i = 0; i < k->pairs; i++) {
		if (any && !vs_pair_fair(k, i))
			continue;
		a[k->used] = k->a[i];
		b[k->used] = k->b[i];
		raw_a[k->used] = k->raw_a[i];
		raw_b[k->used] = k->raw_b[i];
		r[k->used++] = k->b[i] != 0 ? k->a[i] / k->b[i] : 0;
	}
	k->med_a = rows_median(a, k->used);
	k->med_b = rows_median(b, k->used);
	k->ratio = rows_median(r, k->used);
	k->med_raw_a = rows_median(raw_a, k->used);
	k->med_raw_b = rows_median(raw_b, k->used);
}

static void
vs_key_print(struct vs *v, const struct vs_key *k)
{
	const struct perf_row *row = &k->row;
	char size[32], what[96], num[5][24];

	if (v->o->quiet)
		return;
	if (strcmp(v->last_test, row->test) != 0) {
		bool plain = v->o->vs == PERF_VS_PERFTEST;

		if (v->last_test[0] == '\0')
			printf("# %.34s against %.34s\n", v->name[0], v->name[1]);
		snprintf(v->last_test, sizeof(v->last_test), "%s", row->test);
		printf("\n%s, %s\n%-25s%9s%9s%7s%7s%7s%6s\n", row->test, row->unit,
			row->depth != 0 ? "depth" : "size",
			plain ? "wrapped" : "this", plain ? "plain" : "ucx", "ratio", "raw ns", "raw ns",
			"pairs");
	}
	report_size(size, sizeof(size), row->size);
	if (row->depth != 0)
		snprintf(what, sizeof(what), "%s %llu", row->label,
			(unsigned long long)row->depth);
	else
		snprintf(what, sizeof(what), "%s%s%s", row->label, row->label[0] ? " " : "", size);
	report_number(num[0], sizeof(num[0]), k->med_a);
	report_number(num[1], sizeof(num[1]), k->med_b);
	report_number(num[2], sizeof(num[2]), k->ratio);
	report_number(num[3], sizeof(num[3]), k->med_raw_a);
	report_number(num[4], sizeof(num[4]), k->med_raw_b);
	printf("%-25.25s%9s%9s%7s%7s%7s%4u/%u %s\n", what, num[0], num[1], num[2], num[3], num[4],
		k->used, k->pairs,
		k->ratio > 0.97 && k->ratio < 1.03     ? "even"
		: (k->ratio > 1) == row->higher_better ? "better"
						       : "worse");
	fflush(stdout);
}

static int
vs_csv(const struct vs *v)
{
	bool out = strcmp(v->o->csv, "-") == 0;
	FILE *f = out ? stdout : fopen(v->o->csv, "w");

	if (f == NULL)
		return -errno;
	fprintf(f,
		"test,label,size,depth,unit,better,first,second,ratio,raw_first_ns,raw_second_ns,"
		"pairs_used,pairs\n");
	for (size_t i = 0; i < v->n; i++) {
		const struct vs_key *k = &v->key[i];

		fprintf(f, "%s,%s,%llu,%llu,%s,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%u,%u\n", k->row.test,
			k->row.label, (unsigned long long)k->row.size,
			(unsigned long long)k->row.depth, k->row.unit,
			k->row.higher_better ? "higher" : "lower", k->med_a, k->med_b, k->ratio,
			k->med_raw_a, k->med_raw_b, k->used, k->pairs);
	}
	return (out ? fflush(f) : fclose(f)) == 0 ? 0 : -errno;
}

static json_t *
vs_list(const double *v, unsigned n)
{
	json_t *j = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(j, json_real(v[i]));
	return j;
}

static json_t *
vs_to_json(const struct vs *v)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < v->n; i++) {
		const struct vs_key *k = &v->key[i];

		json_array_append_new(rows,
			json_pack(
				"{s:s s:s s:I s:I s:s s:s s:f s:f s:f s:f s:f s:i s:o s:o s:o s:o}",
				"test", k->row.test, "label", k->row.label, "size",
				(json_int_t)k->row.size, "depth", (json_int_t)k->row.depth, "unit",
				k->row.unit, "better", k->row.higher_better ? "higher" : "lower",
				"first", k->med_a, "second", k->med_b, "ratio", k->ratio,
				"raw_first_ns", k->med_raw_a, "raw_second_ns", k->med_raw_b,
				"pairs_used", (int)k->used, "first_all", vs_list(k->a, k->pairs),
				"second_all", vs_list(k->b, k->pairs), "raw_first_all",
				vs_list(k->raw_a, k->pairs), "raw_second_all",
				vs_list(k->raw_b, k->pairs)));
	}
	return json_pack("{s:s s:s s:o s:o}", "first", v->name[0], "second", v->name[1], "options",
		opts_to_json(v->o), "rows", rows);
}

static int
vs_json(const struct vs *v)
{
	json_t *j = vs_to_json(v);
	int rc = report_json_file(j, v->o->json);
	json_decref(j);
	return rc == 0 ? 0 : -EIO;
}

static void
vs_curves(const struct vs *v, struct plot *p)
{
	bool same = strcmp(v->name[0], v->name[1]) == 0;
	char name[2][64];

	for (int side = 0; side < 2; side++)
		snprintf(name[side], sizeof(name[side]), same ? "%.50s (%d)" : "%.60s", v->name[side], side + 1);
	for (size_t i = 0; i < v->n; i++) {
		plot_add_point(p, name[0], &v->key[i].row, v->key[i].med_a);
		plot_add_point(p, name[1], &v->key[i].row, v->key[i].med_b);
	}
}

static int
vs_plot(const struct vs *v, const struct plot *p)
{
	char title[300];

	snprintf(title, sizeof(title), "%s against %s", v->name[0], v->name[1]);
	return plot_write(v->o->plot, title, p);
}

/* Add a line of the comparison as a line of results, for the page of a report. */
static void
vs_add_row(const struct vs_key *k, struct perf_rows *rows)
{
	struct perf_row row = k->row;

	row.n = k->used;
	row.n_fields = 0;
	row.raw_ns = k->med_raw_a;
	perf_row_field(&row, "first", k->med_a);
	perf_row_field(&row, "second", k->med_b);
	perf_row_field(&row, "ratio", k->ratio);
	rows_add(rows, &row);
}

static int
vs_report(const struct vs *v, const struct plot *p)
{
	struct perf_rows rows = {.n = 0};
	int rc;

	for (size_t i = 0; i < v->n; i++)
		vs_add_row(&v->key[i], &rows);
	snprintf(rows.library, sizeof(rows.library), "%.50s against %.50s", v->name[0], v->name[1]);
	rc = report_dir_write(v->o, &rows, p, vs_to_json(v));
	rows_free(&rows);
	return rc;
}

/* --plot and --report show the same curves. */
static int
vs_charts(const struct vs *v)
{
	struct plot p;
	int rc = plot_open(&p);

	if (rc != 0)
		return rc;
	vs_curves(v, &p);
	if (v->o->plot != NULL)
		rc |= vs_plot(v, &p);
	if (v->o->report != NULL)
		rc |= vs_report(v, &p);
	plot_close(&p);
	return rc;
}

static int
vs_files(const struct vs *v)
{
	int rc = 0;

	if (v->o->csv != NULL)
		rc |= vs_csv(v);
	if (v->o->json != NULL)
		rc |= vs_json(v);
	if (v->o->plot != NULL || v->o->report != NULL)
		rc |= vs_charts(v);
	if (rc != 0)
		fprintf(stderr, "commperf: not all files could be written\n");
	return rc;
}

/* ---- ucx_perftest ---- */

static bool
vs_listens(unsigned port)
{
	FILE *f = fopen("/proc/net/tcp", "r");
	char line[256];
	unsigned p, state;
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, " %*u: %*8x:%x %*x:%*x %x", &p, &state) == 2 && p == port &&
			state == 0x0a;
	if (f != NULL)
		fclose(f);
	return found;
}

/* The last line of numbers: iterations, p50, avg, overall latency, avg bw, overall bw (MB/s), ...
 */
static int
vs_perftest_parse(const char *path, bool latency, double *out)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	double v[8];
	int rc = -EIO;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		int n = sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &v[0], &v[1], &v[2], &v[3],
			&v[4], &v[5], &v[6], &v[7]);

		if (n < 6)
			continue;
		*out = latency ? v[1] : v[5];
		rc = 0;
	}
	if (f != NULL)
		fclose(f);
	return rc;
}

static int
vs_perftest_once(struct vs *v, const struct perf_test *t, uint64_t size, bool plain, double *out)
{
	const struct perf_opts *o = v->o;
	bool latency = strcmp(t->name, "tag_bw") != 0;
	uint64_t n = perf_iters(o, latency, size);
	double start = place_now(), limit = start + o->timeout;
	struct child_how how = {.tls = plain};
	struct child_args server = {.n = 0}, client = {.n = 0};
	char path[96], sink[96];
	pid_t pid;
	int rc;

	snprintf(path, sizeof(path), "%s/perftest", v->tmp);
	snprintf(sink, sizeof(sink), "%s/server", v->tmp);
	v->port = 20000 + (v->port + 1) % 20000;
	if (!plain) {
		child_arg(&server, "%s", v->run);
		child_arg(&client, "%s", v->run);
	}
	child_arg(&server, "%s", o->perftest);
	child_arg(&server, "-p%u", v->port);
	child_arg(&client, "%s", o->perftest);
	child_arg(&client, "127.0.0.1");
	child_arg(&client, "-p%u", v->port);
	child_arg(&client, "-t%s", t->name);
	child_arg(&client, "-s%llu", (unsigned long long)size);
	child_arg(&client, "-n%llu", (unsigned long long)n);
	child_arg(&client, "-w%llu", (unsigned long long)perf_warmup(o, n));
	if (!latency)
		child_arg(&client, "-O%u", o->window);
	child_arg(&client, "-f");
	child_arg(&client, "-v");
	how.out = sink;
	how.cpu = o->cpus[0];
	pid = child_start(&server, &how);
	how.out = path;
	how.cpu = o->cpus[o->n_cpus > 1];
	while (!vs_listens(v->port) && place_now() < start + 5)
		usleep(5000);
	rc = child_finish(child_start(&client, &how), limit);
	if (child_finish(pid, rc == 0 ? place_now() + 5 : place_now()) != 0 && rc == 0)
		rc = -1;
	child_args_free(&server);
	child_args_free(&client);
	if (rc == 0)
		rc = vs_perftest_parse(path, latency, out);
	if (rc != 0 && perf_stopped() == 0)
		report_say("%s %s of %llu bytes failed %s", o->perftest, t->name, (unsigned long long)size,
			 plain ? "by itself" : "through pollux-run");
	return rc;
}

static int
vs_perftest_pair(struct vs *v, const struct perf_test *t, uint64_t size, unsigned turn)
{
	struct perf_row row[2];
	int rc = 0;

	memset(row, 0, sizeof(row));
	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		unsigned plain = (i + turn) & 1;
		struct perf_row *r = &row[plain];

		snprintf(r->test, sizeof(r->test), "%s", t->name);
		r->size = size;
		r->higher_better = strcmp(t->name, "tag_bw") == 0;
		snprintf(r->unit, sizeof(r->unit), "%s", r->higher_better ? "MiB/s" : "us");
		rc = vs_perftest_once(v, t, size, plain, &r->value);
	}
	return rc == 0 ? vs_pair_add(v, &row[0], &row[1]) : rc;
}

/* ---- the whole comparison ---- */

static int
vs_one(struct vs *v, const struct perf_test *t, const uint64_t *sizes, unsigned n)
{
	const struct perf_opts *o = v->o;
	size_t first = v->n;
	int rc = 0;

	for (unsigned p = 0; p < o->repeat && rc == 0 && perf_stopped() == 0; p++) {
		report_progress(o, "%s %s%llu, pair %u of %u", t->name, n > 1 ? "from " : "",
			(unsigned long long)(n > 0 ? sizes[0] : 0), p + 1, o->repeat);
		rc = o->vs == PERF_VS_UCX ? vs_pair(v, t, sizes, n, p)
					  : vs_perftest_pair(v, t, sizes[0], p);
	}
	report_progress(o, "%s", "");
	for (size_t i = first; i < v->n; i++) {
		vs_key_close(&v->key[i]);
		vs_key_print(v, &v->key[i]);
	}
	return rc;
}

static int
vs_test(struct vs *v, const struct perf_test *t)
{
	const struct perf_opts *o = v->o;
	bool perftest = o->vs == PERF_VS_PERFTEST;
	uint64_t sizes[PERF_MAX_SIZES];
	unsigned n = o->n_sizes;
	int rc = 0;

	memcpy(sizes, o->sizes, sizeof(sizes));
	if (n == 0)
		opts_parse_list(t->sizes, 1024, sizes, PERF_MAX_SIZES, &n);
	if (perftest && strcmp(t->name, "tag_lat") != 0 && strcmp(t->name, "tag_bw") != 0 &&
		strcmp(t->name, "tag_sync_lat") != 0) {
		fprintf(stderr, "commperf: ucx_perftest has no %s\n", t->name);
		return 0;
	}
	if (!(t->flags & PERF_SIZED))
		return vs_one(v, t, sizes, 1);
	if (o->vs_sweep && !perftest)
		return vs_one(v, t, sizes, n);
	for (unsigned i = 0; i < n && rc == 0; i++) {
		if (perf_has_size(t, sizes[i]))
			rc = vs_one(v, t, &sizes[i], 1);
	}
	return rc;
}

static int
vs_prepare(struct vs *v)
{
	const struct perf_opts *o = v->o;

	snprintf(v->tmp, sizeof(v->tmp), "/tmp/commperf.XXXXXX");
	if (mkdtemp(v->tmp) == NULL) {
		perror("commperf: /tmp");
		return -errno;
	}
	v->port = (unsigned)getpid();
	if (o->vs == PERF_VS_UCX) {
		return child_find_ucx(o, &v->ucx);
	}
	snprintf(v->run, sizeof(v->run), "%s", o->pollux_run != NULL ? o->pollux_run : "");
	if (v->run[0] == '\0')
		child_find_program("pollux-run", v->run, sizeof(v->run));
	snprintf(v->name[0], sizeof(v->name[0]), "ucx_perftest through pollux-run");
	snprintf(v->name[1], sizeof(v->name[1]), "ucx_perftest");
	return 0;
}

static void
vs_remove_tmp(const struct vs *v)
{
	static const char *const names[] = {"result", "perftest", "server"};
	char path[96];

	for (size_t i = 0; i < RTE_DIM(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", v->tmp, names[i]);
		unlink(path);
	}
	rmdir(v->tmp);
}

int
vs_run(const struct perf_opts *o)
{
	static struct vs v;
	int rc;

	v.o = o;
	rc = vs_prepare(&v);
	for (unsigned i = 0; i < o->n_tests && rc == 0; i++)
		rc = vs_test(&v, o->tests[i]);
	if (v.n > 0 && vs_files(&v) != 0)
		rc = -EIO;
	vs_remove_tmp(&v);
	free(v.key);
	if (v.errors != 0)
		fprintf(stderr, "commperf: %llu messages were wrong\n",
			(unsigned long long)v.errors);
	return rc != 0 || v.errors != 0;
}
