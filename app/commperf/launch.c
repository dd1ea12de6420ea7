/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * launch.c - start the sides: both by fork, or one of them here and the other by address
 *
 * Design notes
 * - With --fork the launcher forks both sides before anything is initialised, then only watches:
 *   it prints the rows of side A, and stops the other side when one dies or makes no progress.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"

#define LAUNCH_GRACE_MS 3000
#define LAUNCH_REFUSED_S 1.0

struct launch {
	struct perf_shared *sh;
	pid_t pid[2]; /* a side elsewhere counts as exited */
	int status[2];
	bool ended[2];
	int out_fd;
	double timeout;
};

static void
launch_child(const struct perf_opts *o, int rank, struct perf_shared *sh, int ctl_fd, int out_fd,
	double tsc_hz)
{
	static struct perf_side s;
	static struct perf_rows rows;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	perf_stop_is_for_parent();
	s.o = o;
	s.raw = o->role == PERF_FORK;
	s.rank = rank;
	s.sh = sh;
	s.ctl_fd = ctl_fd;
	s.out_fd = out_fd;
	s.tsc_hz = tsc_hz;
	s.rows = &rows;
	s.cpu = o->cpus[o->n_cpus > 1 ? rank : 0];
	rc = run_side(&s);
	fflush(NULL);
	_exit(rc);
}

/* Read messages of side A. Returns false at its end. */
static bool
launch_read(const struct perf_opts *o, struct launch *l, struct perf_rows *rows)
{
	struct perf_live live;
	struct perf_row row;
	void *data;
	size_t len;
	char *text;

	if (chan_recv(NULL, l->out_fd, &data, &len, 5) != 0)
		return false;
	text = data;
	if (text[0] == 'V') {
		snprintf(rows->library, sizeof(rows->library), "%s", text + 1);
		report_head(o, rows->library);
	} else if (text[0] == 'P') {
		report_progress(o, "%s", text + 1);
	} else if (text[0] == 'L' && len == 1 + sizeof(live)) {
		memcpy(&live, text + 1, sizeof(live));
		report_live(o, &live);
	} else if (text[0] == 'R' && len == 1 + sizeof(row)) {
		memcpy(&row, text + 1, sizeof(row));
		report_row(o, &row);
		rows_add(rows, &row);
	}
	free(data);
	return true;
}

static void
launch_reap(struct launch *l, int i)
{
	int status;

	if (l->ended[i] || waitpid(l->pid[i], &status, WNOHANG) != l->pid[i])
		return;
	l->ended[i] = true;
	l->status[i] = status;
	if (WIFSIGNALED(status))
		fprintf(stderr, "commperf: side %c died: %s\n", 'A' + i,
			strsignal(WTERMSIG(status)));
}

/* @param why NULL: no message */
static void
launch_kill(struct launch *l, const char *why)
{
	for (int i = 0; i < 2; i++) {
		if (l->ended[i])
			continue;
		if (why != NULL)
			fprintf(stderr, "commperf: side %c %s; killed\n", 'A' + i, why);
		kill(l->pid[i], SIGKILL);
		TEMP_FAILURE_RETRY(waitpid(l->pid[i], &l->status[i], 0));
		l->ended[i] = true;
	}
}

static bool
launch_bad(const struct launch *l, int i)
{
	return l->ended[i] && !(WIFEXITED(l->status[i]) && WEXITSTATUS(l->status[i]) == 0);
}

static void
launch_watch(const struct perf_opts *o, struct launch *l, struct perf_rows *rows)
{
	struct pollfd pfd = {.fd = l->out_fd, .events = POLLIN};
	uint64_t quiet_since = place_clock_ns(), bad_since = 0, seen = 0;
	uint64_t limit = (uint64_t)((l->timeout * 2 + o->time_limit + 10) * 1e9);

	while (!l->ended[0] || !l->ended[1]) {
		uint64_t alive = atomic_load_explicit(&l->sh->alive[0], memory_order_relaxed) +
				 atomic_load_explicit(&l->sh->alive[1], memory_order_relaxed);
		uint64_t now;

		if (poll(&pfd, 1, 50) > 0 && !launch_read(o, l, rows))
			pfd.fd = -1;
		launch_reap(l, 0);
		launch_reap(l, 1);
		now = place_clock_ns();
		if (alive != seen) {
			seen = alive;
			quiet_since = now;
		}
		if (bad_since == 0 && (launch_bad(l, 0) || launch_bad(l, 1)))
			bad_since = now;
		if (perf_stopped() != 0)
			launch_kill(l, NULL);
		else if (bad_since != 0 && now - bad_since > UINT64_C(1000000) * LAUNCH_GRACE_MS)
			launch_kill(l, "does not end after the other failed");
		else if (now - quiet_since > limit)
			launch_kill(l, "stands still");
	}
	while (pfd.fd >= 0 && poll(&pfd, 1, 0) > 0 && launch_read(o, l, rows))
		;
	report_progress(o, "%s", "");
}

/* What the launcher shares with its sides. */
static int
launch_open(struct launch *l, int out[2])
{
	l->sh = mmap(NULL, sizeof(*l->sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->sh == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) != 0) {
		perror("commperf");
		return -errno;
	}
	l->out_fd = out[0];
	return 0;
}

/* Watch until all sides here have exited. Returns an exit status. */
static int
launch_end(const struct perf_opts *o, struct launch *l, struct perf_rows *rows)
{
	launch_watch(o, l, rows);
	close(l->out_fd);
	munmap(l->sh, sizeof(*l->sh));
	return launch_bad(l, 0) || launch_bad(l, 1);
}

/* Fork both sides, watch them, print and collect the rows of side A. Returns an exit status. */
int
launch_run(const struct perf_opts *o, struct perf_rows *rows)
{
	struct launch l = {.timeout = o->timeout};
	double tsc_hz = place_tsc_hz();
	int ctl[2], out[2], rc = 0;

	for (unsigned i = 0; i < o->n_tests; i++) {
		if ((o->tests[i]->flags & PERF_LAUNCHER) && startup_run(o, tsc_hz, rows) != 0)
			return 1;
		rc += !(o->tests[i]->flags & PERF_LAUNCHER);
	}
	if (rc == 0 || perf_stopped() != 0)
		return 0;
	if (o->n_cpus < 2)
		fprintf(stderr, "commperf: both sides share one core, so the numbers mean little\n");
	if (launch_open(&l, out) != 0)
		return 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ctl) != 0) {
		perror("commperf");
		return 1;
	}
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		l.pid[i] = fork();
		if (l.pid[i] == 0) {
			close(ctl[!i]);
			close(out[0]);
			if (i == 1)
				close(out[1]);
			launch_child(o, i, l.sh, ctl[i], i == 0 ? out[1] : -1, tsc_hz);
		}
		if (l.pid[i] < 0) {
			perror("commperf: fork");
			l.ended[i] = true;
			l.status[i] = 1 << 8;
			if (i == 0)
				l.ended[1] = true;
			break;
		}
	}
	close(ctl[0]);
	close(ctl[1]);
	close(out[1]);
	return launch_end(o, &l, rows);
}

/* ---- separate sides ---- */

/* Side B takes the options that side A sends. 0, or -errno after an error was printed. */
int
launch_take_options(struct perf_opts *o, int fd)
{
	json_t *j;
	void *data;
	size_t len;
	int rc = chan_recv(NULL, fd, &data, &len, o->timeout);

	if (rc != 0) {
		fprintf(stderr, "commperf: no options from the client: %s\n", strerror(-rc));
		return rc;
	}
	j = json_loadb(data, len, 0, NULL);
	free(data);
	rc = j != NULL ? opts_from_json(o, j) : -EPROTO;
	json_decref(j);
	if (rc != 0)
		fprintf(stderr, "commperf: the client sent invalid options\n");
	return rc;
}

int
launch_server(const struct perf_opts *given)
{
	static struct perf_rows rows;
	struct perf_opts o = *given;
	struct perf_side s = {.o = &o, .rank = 1, .rows = &rows, .out_fd = -1};
	int rc;

	s.ctl_fd = chan_listen(o.host, o.port, 0);
	if (s.ctl_fd < 0) {
		fprintf(stderr, "commperf: %s:%s: %s\n", o.host, o.port, strerror(-s.ctl_fd));
		return 1;
	}
	if (launch_take_options(&o, s.ctl_fd) != 0)
		return 1;
	s.cpu = o.cpus[!o.cpus_given && o.n_cpus > 1];
	s.tsc_hz = place_tsc_hz();
	rc = run_side(&s);
	rows_free(&rows);
	return rc;
}

/* Connect and send the options to the server. Returns the socket, or -1 after an error was
 * printed. */
int
launch_dial(const struct perf_opts *o)
{
	json_t *j = opts_to_json(o);
	char *text = json_dumps(j, JSON_COMPACT);
	int fd, rc;

	json_decref(j);
	fd = text != NULL ? chan_connect(o->host, o->port, o->timeout, LAUNCH_REFUSED_S) : -ENOMEM;
	rc = fd < 0 ? fd : chan_send(fd, text, strlen(text), o->timeout);
	free(text);
	if (rc >= 0)
		return fd;
	fprintf(stderr, "commperf: %s:%s: %s%s\n", o->host, o->port, strerror(-rc),
		rc == -ECONNREFUSED ? ": no commperf --server listens there" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

int
launch_client(const struct perf_opts *o, struct perf_rows *rows)
{
	struct launch l = {.timeout = o->timeout, .ended = {false, true}};
	double tsc_hz = place_tsc_hz();
	int out[2], fd = launch_dial(o);

	if (fd < 0 || launch_open(&l, out) != 0)
		return 1;
	for (unsigned i = 0; i < o->n_tests; i++) {
		if (o->tests[i]->flags & PERF_LAUNCHER)
			fprintf(stderr, "commperf: %s runs only with --fork\n", o->tests[i]->name);
	}
	fprintf(stderr, "commperf: two separate processes: the ping-pong of one cache line is not measured\n");
	fflush(NULL);
	l.pid[0] = fork();
	if (l.pid[0] == 0) {
		close(out[0]);
		launch_child(o, 0, l.sh, fd, out[1], tsc_hz);
	}
	if (l.pid[0] < 0) {
		perror("commperf: fork");
		return 1;
	}
	close(fd);
	close(out[1]);
	return launch_end(o, &l, rows);
}
