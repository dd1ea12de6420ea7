/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * load.c - latency and rate while other programs use the cores, for our modes and UCX
 *
 * Design notes
 * - A cell is a load (ranks, busy programs), a size and a figure, inline or with a reactor on
 *   each rank's own core. Each cell compares the defaults with the best settings for a known
 *   load (a library that only spins, and one that yields after every poll) and with UCX.
 * - Each pair of ranks is this program started again with load_pair, unchanged, on our library
 *   or on UCX's. Variants alternate within a round, in another order each round, so that changes
 *   of the machine affect all. Busy programs run only while a figure is measured.
 * - A pair that does not finish in time is killed with all the others: its figures are missing,
 *   and the round continues.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

#define LOAD_START_S 60.0 /* most time until all pairs are ready */
#define LOAD_END_S   10.0 /* in addition to the time of a figure */
#define LOAD_S	     0.4
#define LOAD_MANY_S  0.8 /* if many share a core */

enum load_mode { LOAD_INLINE, LOAD_REACTOR, LOAD_MODES };
enum load_kind { LOAD_OURS, LOAD_SPIN, LOAD_YIELD, LOAD_KINDS };

#define LOAD_UCX  (LOAD_MODES * LOAD_KINDS)
#define LOAD_WAYS (LOAD_UCX + 1)

static const char *const load_env[LOAD_MODES][LOAD_KINDS] = {
	{"", "PLX_WORKER_WAIT=spin", "PLX_WORKER_WAIT=yield"},
	{"", "PLX_REACTOR_IDLE=spin", "PLX_REACTOR_IDLE=yield"},
};

struct load_scene {
	unsigned ranks;
	unsigned busy; /* per core */
};

/* All rounds of one size and figure under one load. */
struct load_cell {
	uint64_t size;
	bool rate;
	struct load_scene scene;
	double v[LOAD_WAYS][PERF_MAX_ROUNDS]; /* 0: missing */
};

struct load {
	const struct perf_opts *o;
	uint64_t sizes[PERF_MAX_SIZES];
	unsigned n_sizes;
	struct load_scene scene[2 * PERF_MAX_LOADS];
	unsigned n_scenes;
	struct load_cell *cell;
	unsigned n_cells;
	bool has_ucx;
	struct child_ucx ucx;
	char tmp[64];
	uint64_t errors;
	char name[2][64]; /* the libraries' names of themselves */
	pid_t pid[PERF_MAX_RANKS / 2];
	pid_t busy[2 * PERF_MAX_BUSY];
	unsigned n_busy;
};

/* ---- busy programs ---- */

static void
load_busy_end(struct load *l)
{
	for (unsigned i = 0; i < l->n_busy; i++)
		kill(l->busy[i], SIGKILL);
	for (unsigned i = 0; i < l->n_busy; i++)
		TEMP_FAILURE_RETRY(waitpid(l->busy[i], NULL, 0));
	l->n_busy = 0;
}

static void
load_busy_start(struct load *l, unsigned a_core)
{
	for (unsigned i = 0; i < 2 * a_core; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			volatile uint64_t n = 0;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			perf_stop_is_for_parent();
			place_pin(l->o->cpus[l->o->n_cpus > 1 ? i % 2 : 0]);
			for (;;)
				n++;
		}
		if (pid > 0)
			l->busy[l->n_busy++] = pid;
	}
}

/* ---- one variant under one load: all pairs, all figures ---- */

static double
load_seconds(const struct load *l, const struct load_scene *scene)
{
	if (l->o->time_limit > 0)
		return l->o->time_limit;
	return scene->ranks / 2 + scene->busy > 2 ? LOAD_MANY_S : LOAD_S;
}

static void
load_path(const struct load *l, unsigned pair, char *out, size_t len)
{
	snprintf(out, len, "%s/%u", l->tmp, pair);
}

static void
load_args(const struct load *l, struct child_args *a, const struct load_scene *scene, unsigned pair,
	bool reactor, const int gate[2])
{
	const struct perf_opts *o = l->o;
	int cpu[2] = {o->cpus[0], o->cpus[o->n_cpus > 1]};
	char text[PERF_MAX_SIZES * 21], path[96];
	int at = 0;

	for (unsigned i = 0; i < l->n_sizes; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%llu", i ? "," : "",
			(unsigned long long)l->sizes[i]);
	load_path(l, pair, path, sizeof(path));
	child_arg(a, "/proc/self/exe");
	child_arg(a, "-l%d,%d", cpu[pair & 1], cpu[!(pair & 1)]);
	child_arg(a, "--test=load_pair");
	child_arg(a, "--size=%s", text);
	child_arg(a, "--gate=%d,%d", gate[0], gate[1]);
	child_arg(a, "--time-limit=%g", load_seconds(l, scene));
	child_arg(a, "--window=%u", o->window);
	child_arg(a, "--timeout=%g", o->timeout);
	if (reactor)
		child_arg(a, "--reactor=own");
	else
		child_arg(a, "--no-eal");
	child_arg(a, "--quiet");
	child_arg(a, "--progress=off");
	child_arg(a, "--json=%s", path);
}

/* Wait until n pairs are ready for the next figure. */
static int
load_ready(int fd, unsigned n, double deadline)
{
	char bytes[PERF_MAX_RANKS];

	while (n > 0) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (perf_stopped() != 0)
			return -EINTR;
		if (place_now() > deadline)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, 100) <= 0)
			continue;
		got = read(fd, bytes, RTE_MIN(n, sizeof(bytes)));
		if (got <= 0)
			return -EPIPE;
		n -= (unsigned)got;
	}
	return 0;
}

/* All figures of pairs that have started. */
static int
load_figures(struct load *l, const struct load_scene *scene, int ready, int go)
{
	static const char bytes[PERF_MAX_RANKS];
	unsigned pairs = scene->ranks / 2;
	double deadline = place_now() + LOAD_START_S;
	int rc = 0;

	for (unsigned i = 0; i < 2 * l->n_sizes && rc == 0; i++) {
		rc = load_ready(ready, pairs, deadline);
		load_busy_end(l);
		if (rc != 0)
			break;
		load_busy_start(l, scene->busy);
		if (write(go, bytes, pairs) != (ssize_t)pairs)
			rc = -EPIPE;
		deadline = place_now() + load_seconds(l, scene) + LOAD_END_S;
	}
	for (unsigned i = 0; i < pairs; i++) {
		if (child_finish(l->pid[i], rc == 0 ? deadline : 0) != 0 && rc == 0)
			rc = -EIO;
	}
	load_busy_end(l);
	return rc;
}

static struct load_cell *
load_cell_of(struct load *l, const struct load_scene *scene, uint64_t size, bool rate)
{
	for (unsigned i = 0; i < l->n_cells; i++) {
		struct load_cell *c = &l->cell[i];

		if (c->size == size && c->rate == rate && c->scene.ranks == scene->ranks &&
			c->scene.busy == scene->busy)
			return c;
	}
	return NULL;
}

/* Of all pairs: the sum of the rates, the mean of the latencies. */
static void
load_collect(struct load *l, const struct load_scene *scene, unsigned way, unsigned round)
{
	unsigned pairs = scene->ranks / 2;

	for (unsigned p = 0; p < pairs; p++) {
		struct perf_rows rows = {.n = 0};
		char path[96];

		load_path(l, p, path, sizeof(path));
		rows_load(&rows, path);
		for (size_t i = 0; i < rows.n; i++) {
			const struct perf_row *row = &rows.row[i];
			bool rate = strcmp(row->label, "rate") == 0;
			struct load_cell *c = load_cell_of(l, scene, row->size, rate);

			if (c != NULL)
				c->v[way][round] += rate ? row->value : row->value / pairs;
			l->errors += row->errors;
		}
		snprintf(l->name[way == LOAD_UCX], sizeof(l->name[0]), "%.60s", rows.library);
		rows_free(&rows);
	}
}

static void
load_forget(struct load *l, const struct load_scene *scene)
{
	char path[96];

	for (unsigned p = 0; p < scene->ranks / 2; p++) {
		load_path(l, p, path, sizeof(path));
		unlink(path);
	}
}

static int
load_one(struct load *l, const struct load_scene *scene, unsigned way, unsigned round)
{
	bool ucx = way == LOAD_UCX, reactor = !ucx && way / LOAD_KINDS == LOAD_REACTOR;
	struct child_how how = {.ucx = ucx ? &l->ucx : NULL, .cpu = -1};
	int ready[2], go[2], rc;

	if (pipe(ready) != 0 || pipe(go) != 0)
		return -errno;
	fcntl(ready[0], F_SETFD, FD_CLOEXEC);
	fcntl(go[1], F_SETFD, FD_CLOEXEC);
	if (!ucx)
		snprintf(how.env[0], sizeof(how.env[0]), "%s",
			load_env[way / LOAD_KINDS][way % LOAD_KINDS]);
	for (unsigned p = 0; p < scene->ranks / 2; p++) {
		struct child_args a = {.n = 0};
		const int gate[2] = {go[0], ready[1]};

		load_args(l, &a, scene, p, reactor, gate);
		l->pid[p] = child_start(&a, &how);
		child_args_free(&a);
	}
	close(go[0]);
	close(ready[1]);
	rc = load_figures(l, scene, ready[0], go[1]);
	close(go[1]);
	close(ready[0]);
	if (rc == 0)
		load_collect(l, scene, way, round);
	else if (rc != -EINTR)
		report_say("load: %u ranks, %u busy programs a core, way %u: %s", scene->ranks,
			scene->busy, way, strerror(-rc));
	load_forget(l, scene);
	return rc == -EINTR ? rc : 0;
}

/* ---- the table ---- */

/* Of the present ones; 0: there are none. */
static double
load_median(const double *v, unsigned n)
{
	double sorted[PERF_MAX_ROUNDS];
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		if (v[i] > 0)
			sorted[k++] = v[i];
	}
	return rows_median(sorted, k);
}

/* The ratio of ours to the other; 0: one is missing. */
static double
load_ratio(const struct load_cell *c, double ours, double other)
{
	if (ours <= 0 || other <= 0)
		return 0;
	return c->rate ? other / ours : ours / other;
}

static double
load_better(const struct load_cell *c, double a, double b)
{
	if (a <= 0 || b <= 0)
		return a > b ? a : b;
	return c->rate == (a > b) ? a : b;
}

static int
load_row(struct load *l, const struct load_cell *c, enum load_mode mode, struct perf_rows *rows)
{
	unsigned n = l->o->rounds, first = mode * LOAD_KINDS;
	double own[PERF_MAX_ROUNDS], ucx[PERF_MAX_ROUNDS], med[LOAD_KINDS];
	struct perf_row row = {.size = c->size, .higher_better = c->rate};

	for (unsigned i = 0; i < n; i++) {
		const double ours = c->v[first][i];

		own[i] = load_ratio(c, ours,
			load_better(c, c->v[first + LOAD_SPIN][i], c->v[first + LOAD_YIELD][i]));
		ucx[i] = load_ratio(c, ours, c->v[LOAD_UCX][i]);
		row.n += ours > 0;
	}
	for (unsigned k = 0; k < LOAD_KINDS; k++)
		med[k] = load_median(c->v[first + k], n);
	snprintf(row.test, sizeof(row.test), "load_%s", c->rate ? "rate" : "lat");
	snprintf(row.label, sizeof(row.label), "%ur %ub %s", c->scene.ranks, c->scene.busy,
		mode == LOAD_REACTOR ? "reactor" : "inline");
	snprintf(row.unit, sizeof(row.unit), "%s", c->rate ? "kmsg/s" : "us");
	row.value = med[LOAD_OURS];
	perf_row_field(&row, "ours", med[LOAD_OURS]);
	perf_row_field(&row, "spin", med[LOAD_SPIN]);
	perf_row_field(&row, "yield", med[LOAD_YIELD]);
	perf_row_field(&row, "ucx", load_median(c->v[LOAD_UCX], n));
	perf_row_field(&row, "/own", load_median(own, n));
	perf_row_field(&row, "/ucx", load_median(ucx, n));
	if (rows_add(rows, &row) == NULL)
		return -ENOMEM;
	report_row(l->o, &row);
	return 0;
}

static int
load_table(struct load *l, struct perf_rows *rows)
{
	int rc = 0;

	snprintf(rows->library, sizeof(rows->library), "%.50s%s%.50s", l->name[0],
		l->name[1][0] != '\0' ? " and " : "", l->name[1]);
	report_head(l->o, rows->library);
	if (!l->o->quiet)
		printf("# r ranks, b busy programs a core; /own: how many times as long as the better of\n"
		       "# spin and yield, /ucx: as UCX; 0: missing\n");
	for (unsigned i = 0; i < l->n_cells && rc == 0; i++) {
		for (unsigned mode = 0; mode < LOAD_MODES && rc == 0; mode++) {
			if (load_median(l->cell[i].v[mode * LOAD_KINDS], l->o->rounds) > 0)
				rc = load_row(l, &l->cell[i], mode, rows);
		}
	}
	return rc;
}

/* ---- the test ---- */

/* Busy programs with two ranks, then more ranks alone. */
static void
load_scenes(struct load *l)
{
	const struct perf_opts *o = l->o;

	for (unsigned i = 0; i < o->n_ranks; i++) {
		if (o->ranks[i] != 2) {
			l->scene[l->n_scenes++] = (struct load_scene){(unsigned)o->ranks[i], 0};
			continue;
		}
		for (unsigned k = 0; k < o->n_busy; k++)
			l->scene[l->n_scenes++] = (struct load_scene){2, (unsigned)o->busy[k]};
	}
}

static int
load_prepare(struct load *l)
{
	const struct perf_opts *o = l->o;

	l->n_sizes = o->n_sizes;
	memcpy(l->sizes, o->sizes, sizeof(l->sizes));
	if (l->n_sizes == 0)
		opts_parse_list(o->tests[0]->sizes, 1024, l->sizes, PERF_MAX_SIZES, &l->n_sizes);
	load_scenes(l);
	l->cell = calloc((size_t)2 * l->n_sizes * l->n_scenes, sizeof(*l->cell));
	if (l->cell == NULL)
		return -ENOMEM;
	for (unsigned rate = 0; rate < 2; rate++) {
		for (unsigned i = 0; i < l->n_sizes; i++) {
			for (unsigned k = 0; k < l->n_scenes; k++)
				l->cell[l->n_cells++] = (struct load_cell){
					.size = l->sizes[i], .rate = rate, .scene = l->scene[k]};
		}
	}
	l->has_ucx = child_find_ucx(o, &l->ucx) == 0;
	if (!l->has_ucx && (o->ucx_prefix != NULL || o->ucx_lib != NULL))
		return -ENOENT;
	if (o->n_cpus < 2)
		fprintf(stderr, "commperf: load: one core for all ranks\n");
	snprintf(l->tmp, sizeof(l->tmp), "/tmp/commperf.XXXXXX");
	if (mkdtemp(l->tmp) != NULL)
		return 0;
	perror("commperf: /tmp");
	return -errno;
}

static int
load_round(struct load *l, unsigned round)
{
	unsigned ways = l->has_ucx ? LOAD_WAYS : LOAD_UCX;
	int rc = 0;

	for (unsigned i = 0; i < l->n_scenes && rc == 0; i++) {
		for (unsigned k = 0; k < ways && rc == 0; k++) {
			report_progress(l->o, "load: round %u of %u, %u ranks, %u busy programs a core, "
				"%u of %u", round + 1, l->o->rounds, l->scene[i].ranks,
				l->scene[i].busy, k + 1, ways);
			rc = load_one(l, &l->scene[i], (k + round) % ways, round);
		}
	}
	return rc;
}

/* Returns an exit status; rows has the results of all completed rounds. */
int
load_run(const struct perf_opts *o, struct perf_rows *rows)
{
	static struct load l;
	int rc;

	l.o = o;
	rc = load_prepare(&l);
	if (rc != 0)
		return 1;
	for (unsigned round = 0; round < o->rounds && rc == 0; round++)
		rc = load_round(&l, round);
	report_progress(o, "%s", "");
	if (load_table(&l, rows) != 0 || rows->n == 0)
		rc = -EIO;
	rmdir(l.tmp);
	free(l.cell);
	if (l.errors != 0)
		fprintf(stderr, "commperf: %llu messages were wrong\n", (unsigned long long)l.errors);
	return rc != 0 || l.errors != 0;
}
