/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hub.c - the process where the ranks of many pairs meet: it starts each line at all of them at
 * once, and prints the sum or the median of their figures
 *
 * Design notes
 * - Every pair sends the same lines in the same order, so that line k of all belongs together.
 * - A rank that leaves early ends the job: the hub closes every socket.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pairs.h"

#define HUB_HELLO_S 5.0

struct hub {
	const struct perf_opts *o;
	struct perf_rows *rows;
	unsigned n, half;
	struct pollfd fd[2 * PAIRS_MAX]; /* by rank; -1 before it comes and after it ends */
	struct pairs_start at[2 * PAIRS_MAX];
	bool waits[PAIRS_MAX];   /* by side A: it waits for the others */
	bool ended[PAIRS_MAX];   /* by side A: it has announced its end */
	size_t lines[PAIRS_MAX]; /* received, by pair; rows->n of them are printed */
	struct perf_row *line;   /* the next line, by pair */
	double live[PAIRS_MAX];
};

/* ---- meeting ---- */

static void
hub_refuse(int fd, const char *why)
{
	fprintf(stderr, "commperf: refused a connection that is not from a rank of this job: %s\n", why);
	close(fd);
}

/* Take the connection of a rank, or close that of a stranger. */
static bool
hub_greet(struct hub *h, int fd)
{
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	struct pairs_hello hello;
	struct pairs_start *at;
	void *data;
	size_t len;

	if (chan_recv(NULL, fd, &data, &len, HUB_HELLO_S) != 0) {
		hub_refuse(fd, "it sent no greeting");
		return false;
	}
	if (len == sizeof(hello))
		memcpy(&hello, data, sizeof(hello));
	free(data);
	if (len != sizeof(hello) || memcmp(hello.magic, "commprf", sizeof(hello.magic)) != 0 || hello.n != h->n ||
		hello.rank >= h->n || h->fd[hello.rank].fd >= 0 || memchr(hello.port, 0, sizeof(hello.port)) == NULL) {
		hub_refuse(fd, "its greeting is wrong");
		return false;
	}
	at = &h->at[hello.rank];
	snprintf(at->port, sizeof(at->port), "%s", hello.port);
	if (getpeername(fd, (struct sockaddr *)&from, &from_len) != 0 ||
		getnameinfo((struct sockaddr *)&from, from_len, at->host, sizeof(at->host), NULL, 0, NI_NUMERICHOST) != 0) {
		hub_refuse(fd, "its address is unknown");
		return false;
	}
	h->fd[hello.rank] = (struct pollfd){.fd = fd, .events = POLLIN};
	return true;
}

static int
hub_meet(struct hub *h, int lfd)
{
	double end = place_now() + h->o->timeout;
	unsigned came = 0;

	while (came < h->n) {
		double left = end - place_now();
		int fd = left > 0 && perf_stopped() == 0 ? chan_accept(lfd, left < 1 ? left : 1) : -ENOTCONN;

		if (fd >= 0)
			came += hub_greet(h, fd);
		else if (fd != -ETIMEDOUT) {
			fprintf(stderr, "commperf: only %u of %u ranks connected within %g s\n", came, h->n, h->o->timeout);
			return -1;
		}
	}
	return 0;
}

static int
hub_start(struct hub *h)
{
	static const struct pairs_start none;
	int rc = 0;

	for (unsigned i = 0; i < h->n && rc == 0; i++)
		rc = chan_send(h->fd[i].fd, i < h->half ? &h->at[i + h->half] : &none, sizeof(none), h->o->timeout);
	return rc;
}

/* ---- messages of the ranks ---- */

/* A line of all pairs: the total, and the least, median and greatest of the pairs. */
static void
hub_line(struct hub *h)
{
	struct perf_row row = h->line[0];
	double v[PAIRS_MAX], sum = 0, median;

	row.n = row.errors = 0;
	snprintf(row.label, sizeof(row.label), "%u pair%s%s%.10s", h->half, h->half > 1 ? "s" : "",
		h->line[0].label[0] != '\0' ? " " : "", h->line[0].label);
	row.n_fields = 0;
	row.raw_ns = row.raw_end_ns = 0;
	for (unsigned i = 0; i < h->half; i++) {
		v[i] = h->line[i].value;
		sum += v[i];
		row.n += h->line[i].n;
		row.errors += h->line[i].errors;
	}
	median = rows_median(v, h->half);
	row.value = row.higher_better ? sum : median;
	if (row.higher_better)
		perf_row_field(&row, "total", sum);
	perf_row_field(&row, "min", v[0]);
	perf_row_field(&row, "median", median);
	perf_row_field(&row, "max", v[h->half - 1]);
	report_row(h->o, &row);
	rows_add(h->rows, &row);
}

static int
hub_row(struct hub *h, unsigned rank, const void *data)
{
	struct perf_row row;

	memcpy(&row, data, sizeof(row));
	row.test[sizeof(row.test) - 1] = row.label[sizeof(row.label) - 1] = row.unit[sizeof(row.unit) - 1] = '\0';
	row.n_fields = 0;
	if (h->lines[rank]++ != h->rows->n)
		return -EPROTO;
	h->line[rank] = row;
	for (unsigned i = 0; i < h->half; i++) {
		if (h->lines[i] == h->rows->n)
			return 0;
		if (!rows_same_key(&h->line[i], &h->line[0]))
			return -EPROTO;
	}
	hub_line(h);
	return 0;
}

/* A side A has reached the start or the end of a line. Once all have, they go on. */
static int
hub_wait(struct hub *h, unsigned rank)
{
	int rc = h->waits[rank] ? -EPROTO : 0;

	h->waits[rank] = true;
	for (unsigned i = 0; i < h->half; i++) {
		if (!h->waits[i])
			return rc;
	}
	for (unsigned i = 0; i < h->half && rc == 0; i++) {
		h->waits[i] = false;
		rc = chan_send(h->fd[i].fd, "M", 1, h->o->timeout);
	}
	return rc;
}

/* Show the last second of all pairs whenever the first pair reports its own. */
static void
hub_live(struct hub *h, unsigned rank, const void *data)
{
	struct perf_live live;
	double sum = 0;

	memcpy(&live, data, sizeof(live));
	live.test[sizeof(live.test) - 1] = live.unit[sizeof(live.unit) - 1] = '\0';
	h->live[rank] = live.value;
	if (rank != 0)
		return;
	for (unsigned i = 0; i < h->half; i++)
		sum += h->live[i];
	live.value = live.rate ? sum : sum / h->half;
	report_live(h->o, &live);
}

static void
hub_head(struct hub *h, const char *library)
{
	snprintf(h->rows->library, sizeof(h->rows->library), "%s", library);
	if (!h->o->quiet)
		printf("# library %.50s, %u pair%s\n", library, h->half, h->half > 1 ? "s" : "");
}

static int
hub_take(struct hub *h, unsigned rank)
{
	void *data;
	char *text;
	size_t len;
	int rc = chan_recv(NULL, h->fd[rank].fd, &data, &len, HUB_HELLO_S);

	if (rc != 0 || rank >= h->half) { /* side B sends nothing */
		if (rc == 0)
			free(data);
		close(h->fd[rank].fd);
		h->fd[rank].fd = -1;
		return rank >= h->half || h->ended[rank] ? 0 : -ECONNRESET;
	}
	text = data;
	if (text[0] == 'M')
		rc = hub_wait(h, rank);
	else if (text[0] == 'R' && len == 1 + sizeof(struct perf_row))
		rc = hub_row(h, rank, text + 1);
	else if (text[0] == 'L' && len == 1 + sizeof(struct perf_live))
		hub_live(h, rank, text + 1);
	else if (text[0] == 'E')
		h->ended[rank] = true;
	else if (text[0] == 'V' && rank == 0)
		hub_head(h, text + 1);
	free(data);
	return rc;
}

static int
hub_watch(struct hub *h)
{
	unsigned open = h->n;

	while (open > 0 && perf_stopped() == 0) {
		if (poll(h->fd, h->n, 200) <= 0)
			continue;
		for (unsigned i = 0; i < h->n; i++) {
			int rc = h->fd[i].fd >= 0 && h->fd[i].revents != 0 ? hub_take(h, i) : 0;

			h->fd[i].revents = 0;
			if (rc == 0)
				continue;
			fprintf(stderr, "commperf: rank %u: %s\n", i,
				rc == -ECONNRESET ? "it has exited" : strerror(-rc));
			return rc;
		}
		open = 0;
		for (unsigned i = 0; i < h->n; i++)
			open += h->fd[i].fd >= 0;
	}
	return perf_stopped() == 0 ? 0 : -EINTR;
}

int
hub_run(const struct perf_opts *o, const struct pairs_job *job, int lfd, struct perf_rows *rows)
{
	static struct hub h;
	int rc;

	h = (struct hub){.o = o, .rows = rows, .n = job->n, .half = job->n / 2,
		.line = calloc(job->n / 2, sizeof(*h.line))};
	for (unsigned i = 0; i < h.n; i++)
		h.fd[i].fd = -1;
	rc = h.line != NULL ? hub_meet(&h, lfd) : -ENOMEM;
	close(lfd);
	if (rc == 0)
		rc = hub_start(&h);
	if (rc == 0)
		rc = hub_watch(&h);
	for (unsigned i = 0; i < h.n; i++) {
		if (h.fd[i].fd >= 0)
			close(h.fd[i].fd);
	}
	free(h.line);
	for (size_t i = 0; i < rows->n && rc == 0; i++)
		rc = rows->row[i].errors != 0 ? -EIO : 0;
	return rc != 0;
}
