/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * run.c - a session: two sides start, connect, run the tests of the list in step, and stop
 *
 * Design notes
 * - Before and after each line both sides bounce one cache line of a shared page. It measures
 *   the machine at that moment; without it a latency has no meaning.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>

#include "perf.h"

#define RUN_RAW_ROUNDS 4000
#define RUN_RAW_S 0.2 /* for the rounds together: they take 1 ms on two cores of their own */
#define RUN_RAW_ENDED (UINT64_C(1) << 63) /* beside the count, in the cache line: no more rounds */
#define RUN_PROOF      8 /* messages that are verified before each line */
#define RUN_PATIENCE_S 1e9 /* no limit */
#define RUN_PROVED     (PERF_SIZED | PERF_PROVED)
#define RUN_TIMED      (RUN_PROVED | PERF_TIMED)
#define RUN_TYPED      (RUN_TIMED | PERF_TYPED)

const struct perf_test perf_tests[] = {
	{"tag_lat", "one-way latency of a tagged ping-pong", "8:4m", RUN_TYPED, lat_run, NULL},
	{"tag_sync_lat", "the same with synchronous sends", "8:64k", RUN_TYPED, lat_run, NULL},
	{"tag_bw", "bandwidth of a window of tagged messages", "8:4m", RUN_TYPED, bw_run, NULL},
	{"tag_bidir", "the same in both directions at once", "8:4m", RUN_TYPED, bidir_run, NULL},
	{"tag_rate", "small messages per second", "8", RUN_TYPED, rate_run, NULL},
	{"unexpected_lat", "a ping-pong, receives posted after the message arrived", "8:4m",
		RUN_TYPED, lat_run, &perf_loops_late},
	{"unexpected_bw", "receiving messages that arrived before their receives", "8:4m", RUN_PROVED | PERF_TYPED,
		late_bw_run, NULL},
	{"put_lat", "one-way latency of a ping-pong of puts, seen in memory", "8:4m",
		RUN_TIMED | PERF_RMA | PERF_MAPPED, put_lat_run, &perf_loops_put},
	{"put_bw", "bandwidth of a window of puts", "8:4m", RUN_TIMED | PERF_RMA | PERF_MAPPED,
		rma_run, NULL},
	{"get_lat", "time of a get, one at a time", "8:4m", RUN_TIMED | PERF_RMA | PERF_MAPPED,
		get_lat_run, &perf_loops_get},
	{"get_bw", "bandwidth of a window of gets", "8:4m", RUN_TIMED | PERF_RMA | PERF_MAPPED,
		rma_run, NULL},
	{"atomic_lat", "time of an atomic operation, one at a time", "8",
		PERF_SIZED | PERF_TIMED | PERF_RMA | PERF_AMO | PERF_MAPPED, atomic_run, &perf_loops_atomic},
	{"atomic_rate", "atomic operations per second", "8",
		PERF_SIZED | PERF_TIMED | PERF_RMA | PERF_AMO | PERF_MAPPED, atomic_run, &perf_loops_atomic},
	{"am_lat", "one-way latency of a ping-pong of active messages", "8:4m", RUN_TYPED | PERF_AM,
		lat_run, &perf_loops_am},
	{"am_bw", "bandwidth of a window of active messages", "8:4m", RUN_TYPED | PERF_AM, bw_run,
		&perf_loops_am},
	{"am_rate", "small active messages per second", "8", RUN_TYPED | PERF_AM, rate_run,
		&perf_loops_am},
	{"stream_lat", "one-way latency of a ping-pong over streams", "8:4m",
		RUN_TYPED | PERF_STREAM, lat_run, &perf_loops_stream},
	{"stream_bw", "bandwidth of a window of writes to a stream", "8:4m", RUN_TYPED | PERF_STREAM,
		bw_run, &perf_loops_stream},
	{"stream_rate", "small writes to a stream per second", "8", RUN_TYPED | PERF_STREAM,
		rate_run, &perf_loops_stream},
	{"sleep_lat", "time from a send to the answer of a sleeping side",
		"8,4k,64k", RUN_PROVED | PERF_WAKE, sleep_run, NULL},
	{"submit", "cost of a call that posts a message or a receive", "8", PERF_SIZED | PERF_COST, submit_run, NULL},
	{"overlap", "share of a receive that overlaps with computation", "64k:4m",
		RUN_PROVED | PERF_COST, overlap_run, NULL},
	{"thread_rate", "messages per second of several threads in one worker", "8",
		PERF_SIZED | PERF_COST, threads_run, NULL},
	{"match", "cost of a match by depth, mask and kind", "8", PERF_LOCAL | PERF_COST, match_run, NULL},
	{"startup", "time of EAL, context and first worker", "0", PERF_LAUNCHER | PERF_COST, NULL, NULL},
	{"ep_mem", "memory of an endpoint, idle and used", "8", PERF_COST, ep_mem_run, NULL},
	{"load", "latency and rate next to busy programs, and of many ranks", "8,64k",
		PERF_SIZED | PERF_ALONE | PERF_COST, NULL, NULL},
	{"load_pair", "two ranks of load", "8", PERF_SIZED | PERF_ALONE | PERF_HIDDEN, load_pair_run,
		NULL},
	{"msg_lat", "CCI: one-way latency of a ping-pong of messages", "8:4k", RUN_TIMED | PERF_CCI,
		lat_run, &perf_loops_cci},
	{"msg_bw", "CCI: bandwidth of a window of messages", "8:4k", RUN_TIMED | PERF_CCI,
		bw_run, &perf_loops_cci},
	{"msg_bidir", "CCI: the same in both directions at once", "8:4k", RUN_TIMED | PERF_CCI,
		bidir_run, &perf_loops_cci},
	{"msg_rate", "CCI: small messages per second", "8", RUN_TIMED | PERF_CCI,
		rate_run, &perf_loops_cci},
	{"rma_write_lat", "CCI: time of a write, one at a time", "8:4m",
		RUN_TIMED | PERF_CCI, rma_run, NULL},
	{"rma_read_lat", "CCI: time of a read, one at a time", "8:4m",
		RUN_TIMED | PERF_CCI, rma_run, NULL},
	{"rma_write_bw", "CCI: bandwidth of a window of writes", "8:4m",
		RUN_TIMED | PERF_CCI, rma_run, NULL},
	{"rma_read_bw", "CCI: bandwidth of a window of reads", "8:4m",
		RUN_TIMED | PERF_CCI, rma_run, NULL},
	{"conn_mem", "CCI: memory of a connection, idle and used", "8", PERF_CCI, ep_mem_run, NULL},
	{NULL, NULL, NULL, 0, NULL, NULL},
};

const struct perf_test *
perf_test_find(const char *name)
{
	for (const struct perf_test *t = perf_tests; t->name != NULL; t++) {
		if (strcmp(t->name, name) == 0)
			return t;
	}
	return NULL;
}

/* Whether the test has this size, which may be in the list for other tests. */
bool
perf_has_size(const struct perf_test *t, uint64_t size)
{
	return !(t->flags & PERF_AMO) || size == 4 || size == 8;
}

/* All tests of a session are of one API; opts.c sees to that. */
const struct perf_backend *
perf_backend_of(const struct perf_opts *o)
{
	return o->tests[0]->flags & PERF_CCI ? &perf_backend_cci : &perf_backend_ucp;
}

/* ---- what the tests need ---- */

/* The running test; the launcher prints it, as it prints the table. */
void
perf_progress(struct perf_side *s, const char *fmt, ...)
{
	char frame[128] = "P";
	va_list ap;

	if (!s->o->progress || s->out_fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(frame + 1, sizeof(frame) - 1, fmt, ap);
	va_end(ap);
	chan_send(s->out_fd, frame, strlen(frame), s->o->timeout);
}

void
perf_live(struct perf_side *s, const struct perf_live *live)
{
	char frame[1 + sizeof(*live)] = "L";

	if (s->out_fd < 0)
		return;
	memcpy(frame + 1, live, sizeof(*live));
	chan_send(s->out_fd, frame, sizeof(frame), s->o->timeout);
}

/* A line on stderr. */
void
perf_say(struct perf_side *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%scommperf: side %c: %s\n", s->o->progress ? "\r\033[K" : "",
		s->rank == 0 ? 'A' : 'B', text);
}

/* Print an error, once a side; always -1. */
int
perf_fail(struct perf_side *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (s->failed)
		return -1;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	perf_say(s, "%s", text);
	return -1;
}

double
perf_ns(const struct perf_side *s, uint64_t ticks)
{
	return (double)ticks * 1e9 / s->tsc_hz;
}

/* @return 0; or -1, once it has reported that the other side has exited or its host is gone */
static int
side_peer_gone(struct perf_side *s)
{
	struct pollfd pfd = {.fd = s->ctl_fd, .events = POLLRDHUP};
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&pfd, 1, 0) <= 0 || (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
		return 0;
	(void)getsockopt(s->ctl_fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH)
		return perf_fail(s, "the other side's host does not answer any more");
	return perf_fail(s, "the other side has exited");
}

/* Called now and then by a long wait: check the deadline and the other side. */
int
perf_wait_slow(struct perf_side *s, uint64_t spins)
{
	uint64_t now = rte_rdtsc();

	perf_alive(s);
	if (spins <= 0x1000) {
		s->wait_start = now;
		return 0;
	}
	if ((double)(now - s->wait_start) > s->o->timeout * s->tsc_hz)
		return perf_fail(s, "no progress for %.0f s (--timeout)", s->o->timeout);
	return (spins & 0xffff) == 0 && s->ctl_fd >= 0 ? side_peer_gone(s) : 0;
}

struct side_word {
	uint32_t n;
	uint32_t failed;
	uint64_t errors;
	char first[192];
};

/* Both sides meet and exchange their verification results. */
int
perf_barrier(struct perf_side *s)
{
	struct side_word word = {.n = ++s->barrier_n, .errors = s->verify_errors};
	void *data;
	size_t len;
	int rc;

	perf_alive(s);
	memcpy(word.first, s->verify_first, sizeof(word.first));
	rc = chan_send(s->ctl_fd, &word, sizeof(word), s->o->timeout);
	if (rc == 0)
		rc = chan_recv(s, s->ctl_fd, &data, &len, s->patient ? RUN_PATIENCE_S : s->o->timeout);
	if (rc == -ECONNRESET || rc == -EPIPE)
		return perf_fail(s, "the other side has exited");
	if (rc != 0)
		return perf_fail(s, "barrier %u: %s", s->barrier_n, strerror(-rc));
	if (len != sizeof(word) || ((struct side_word *)data)->n != s->barrier_n) {
		free(data);
		return perf_fail(s, "the two sides are out of step");
	}
	memcpy(&word, data, sizeof(word));
	free(data);
	word.first[sizeof(word.first) - 1] = '\0';
	s->peer_errors = word.errors;
	memcpy(s->peer_first, word.first, sizeof(s->peer_first));
	return 0;
}

static void
row_init(struct perf_row *row, const struct perf_test *t, size_t size)
{
	memset(row, 0, sizeof(*row));
	snprintf(row->test, sizeof(row->test), "%s", t->name);
	row->size = size;
}

/* A new row on rank 0; it stays valid until the next one. */
struct perf_row *
perf_row_new(struct perf_side *s, const struct perf_test *t, size_t size)
{
	struct perf_row row;

	row_init(&row, t, size);
	row.raw_ns = s->raw_ns;
	if (t->flags & PERF_CCI)
		snprintf(row.label, sizeof(row.label), "%s%s%s", perf_attr_name(s->o->attr),
			s->o->silent ? " silent" : "", s->o->no_copy ? " no copy" : "");
	if (t->flags & PERF_TYPED)
		perf_datatype_name(s->o, row.label, sizeof(row.label));
	return rows_add(s->rows, &row);
}

void
perf_row_field(struct perf_row *row, const char *name, double value)
{
	unsigned i = row->n_fields;

	if (i == PERF_MAX_FIELDS)
		return;
	snprintf(row->fields[i].name, sizeof(row->fields[i].name), "%s", name);
	row->fields[i].value = value;
	row->n_fields++;
}

uint64_t
perf_iters(const struct perf_opts *o, bool latency, size_t size)
{
	static const struct {
		size_t up_to;
		uint64_t latency, stream;
	} table[] = {
		{4096, 100000, 500000},
		{65536, 20000, 50000},
		{1 << 20, 2000, 4000},
		{SIZE_MAX, 400, 600},
	};
	unsigned i = 0;

	if (o->iters != 0)
		return o->iters;
	while (size > table[i].up_to)
		i++;
	return latency ? table[i].latency : table[i].stream;
}

uint64_t
perf_warmup(const struct perf_opts *o, uint64_t iters)
{
	if (o->warmup >= 0)
		return (uint64_t)o->warmup;
	return iters / 10 < 10 ? 10 : iters / 10;
}

unsigned
perf_slots(const struct perf_opts *o)
{
	return o->buffers_window ? o->window : 1;
}

static inline uint64_t
pattern_start(uint64_t seq)
{
	return (seq + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t
pattern_next(uint64_t x)
{
	return x * UINT64_C(0xd1342543de82ef95) + UINT64_C(0x2545f4914f6cdd1d);
}

/* The pattern of message seq: a different one for every message, so that old data is detected. */
void
perf_fill(uint8_t *buf, size_t len, uint64_t seq)
{
	uint64_t x = pattern_start(seq);
	size_t i;

	for (i = 0; i + 8 <= len; i += 8, x = pattern_next(x))
		memcpy(buf + i, &x, 8);
	memcpy(buf + i, &x, len - i);
}

/* Wrong data; all are counted, the first is described. */
void
perf_wrong(struct perf_side *s, const char *fmt, ...)
{
	va_list ap;

	if (s->verify_errors++ != 0)
		return;
	va_start(ap, fmt);
	vsnprintf(s->verify_first, sizeof(s->verify_first), fmt, ap);
	va_end(ap);
}

/* Compare a received message with its pattern; mismatches are counted, the first is described. */
void
perf_check(
	struct perf_side *s, const struct perf_io *io, const uint8_t *buf, size_t len, uint64_t seq)
{
	uint64_t x = pattern_start(seq), got = 0;
	size_t i;

	if (io->len != len) {
		perf_wrong(s, "message %llu has %zu bytes instead of %zu",
			(unsigned long long)seq, io->len, len);
		return;
	}
	for (i = 0; i < len; i += 8, x = pattern_next(x)) {
		size_t n = len - i < 8 ? len - i : 8;

		got = 0;
		memcpy(&got, buf + i, n);
		if (got == (n == 8 ? x : x & ((UINT64_C(1) << (8 * n)) - 1)))
			continue;
		perf_wrong(s,
			"message %llu of %zu bytes: at offset %zu 0x%016llx instead of 0x%016llx",
			(unsigned long long)seq, len, i, (unsigned long long)got,
			(unsigned long long)x);
		return;
	}
}

/* ---- one side's place and its ping-pong ---- */

static int
side_place(struct perf_side *s)
{
	const struct perf_opts *o = s->o;
	char reactor[32];
	int rc = 0;

	if (o->bind)
		rc = place_pin(s->cpu);
	if (o->reactor_own) {
		snprintf(reactor, sizeof(reactor), "lcore:%d", s->cpu);
		setenv("PLX_REACTOR", reactor, 1);
	}
	if (rc != 0)
		return perf_fail(s, "cannot run on core %d: %s (of %ld, from 0 on)", s->cpu, strerror(-rc),
			sysconf(_SC_NPROCESSORS_CONF));
	if (!o->eal)
		return 0;
	rc = place_eal_init(o, s->cpu);
	if (rc != 0)
		return perf_fail(
			s, "the EAL does not start: %s (try --no-eal)", strerror(-rc));
	return 0;
}

/* ---- one cache line, there and back ---- */

/* Where the two sides share a core, or others use both cores, a round takes time slices instead of
 * nanoseconds. So side A ends a measurement that goes on beyond `end`, in TSC cycles.
 *
 * @return how many rounds were made, fewer than asked for where it was ended, on both sides; or -1
 */
static int
raw_bounce(struct perf_side *s, int rounds, uint64_t end)
{
	_Atomic uint64_t *ball = &s->sh->ball;
	bool late = false;

	for (int i = 0; i < rounds; i++) {
		uint64_t go = ++s->ball, back = ++s->ball, expect = s->rank == 0 ? back : go, got, spins = 0;

		if (s->rank == 0)
			atomic_store_explicit(ball, late ? go | RUN_RAW_ENDED : go, memory_order_release);
		if (late)
			return i;
		/* pairs with the other side's store in this function */
		while ((got = atomic_load_explicit(ball, memory_order_acquire)) != expect) {
			if (got == (go | RUN_RAW_ENDED))
				return i;
			if (likely((++spins & 0xffff) != 0))
				continue;
			if (perf_wait_slow(s, spins >> 4) != 0)
				return -1;
			late = s->rank == 0 && rte_rdtsc() > end;
			sched_yield();
		}
		if (s->rank == 1)
			atomic_store_explicit(ball, back, memory_order_release);
	}
	return rounds;
}

/* One way of the ping-pong in ns: the fastest of several short series, as others share the
 * cores. The first series only warms up, unless it is ended.
 */
static int
raw_measure(struct perf_side *s, double *out)
{
	uint64_t end = rte_rdtsc() + (uint64_t)(RUN_RAW_S * s->tsc_hz);
	int rounds = RUN_RAW_ROUNDS / 8, made = rounds;

	*out = 0;
	if (!s->raw)
		return 0;
	if (perf_barrier(s) != 0)
		return -1;
	for (int i = 0; i < 6 && made == rounds; i++) {
		uint64_t start = rte_rdtsc();
		double ns;

		made = raw_bounce(s, rounds, end);
		if (made < 0)
			return -1;
		ns = perf_ns(s, rte_rdtsc() - start) / (2.0 * RTE_MAX(made, 1));
		if ((i > 0 || made < rounds) && (*out == 0 || ns < *out))
			*out = ns;
	}
	return 0;
}

/* ---- one test at one size ---- */

/* The bytes of a slot, which holds one message of a window. */
size_t
perf_slot_len(size_t size)
{
	return RTE_ALIGN_CEIL(size < 64 ? 64 : size, 4096);
}

static int
side_buffers(struct perf_side *s, size_t size)
{
	void *p[2] = {NULL, NULL};

	s->buf_len = perf_slot_len(size) * perf_slots(s->o);
	if (s->mapped)
		return s->be->mem_alloc(s, s->buf_len);
	if (s->o->mem == PERF_MEM_EAL) {
		s->sbuf = rte_malloc("commperf", 2 * s->buf_len, 4096);
		s->rbuf = s->sbuf + s->buf_len;
		return s->sbuf != NULL ? 0
				       : perf_fail(s, "the EAL has no memory for 2 buffers of %zu bytes", s->buf_len);
	}
	for (int i = 0; i < 2; i++) {
		if (posix_memalign(&p[i], s->buf_len >= (2u << 20) ? 2u << 20 : 4096, s->buf_len) ==
			0)
			continue;
		free(p[0]);
		return perf_fail(s, "no memory for 2 buffers of %zu bytes", s->buf_len);
	}
	s->sbuf = p[0];
	s->rbuf = p[1];
	return 0;
}

static void
side_buffers_free(struct perf_side *s)
{
	if (s->mapped) {
		s->be->mem_free(s);
	} else if (s->o->mem == PERF_MEM_EAL) {
		rte_free(s->sbuf);
	} else {
		free(s->sbuf);
		free(s->rbuf);
	}
	s->sbuf = NULL;
	s->rbuf = NULL;
}

static void
side_row_close(struct perf_side *s, size_t first, double raw_end)
{
	for (size_t i = first; i < s->rows->n; i++) {
		struct perf_row *row = &s->rows->row[i];

		row->raw_end_ns = raw_end;
		row->errors = s->verify_errors + s->peer_errors;
		if (row->raw_ns > 0 && strstr(row->test, "_lat") != NULL)
			perf_row_field(row, "ratio", row->value * 1e3 / row->raw_ns);
	}
	s->all_errors += s->verify_errors + s->peer_errors;
	if (s->verify_errors != 0)
		perf_say(s, "%llu wrong, first: %s", (unsigned long long)s->verify_errors,
			s->verify_first);
	if (s->peer_errors != 0)
		perf_say(s, "%llu wrong at side B, first: %s", (unsigned long long)s->peer_errors,
			s->peer_first);
}

/* Memory that the library allocates: by the option, or by the test's default. */
bool
perf_mapped(const struct perf_opts *o, const struct perf_test *t)
{
	return o->mem == PERF_MEM_BY_TEST ? (t->flags & PERF_MAPPED) != 0 : o->mem == PERF_MEM_MAPPED;
}

/* The measurement itself with a few messages, each verified; it adds no row. */
static int
side_prove(struct perf_side *s, const struct perf_test *t, size_t size)
{
	const struct perf_opts *o = s->o;
	struct perf_opts proof = *o;
	size_t first = s->rows->n;
	int rc;

	proof.verify = true;
	proof.buffers_window = true;
	proof.iters = RUN_PROOF;
	proof.warmup = 0;
	proof.duration = 0;
	proof.window = 1;
	proof.batch = 1;
	s->o = &proof;
	rc = t->run(s, t, size);
	s->o = o;
	s->rows->n = first;
	return rc != 0 ? rc : perf_barrier(s);
}

/* Side A waits for the other pairs as long as they take, and runs turns meanwhile. */
static int
side_hub(struct perf_side *s)
{
	void *data;
	size_t len;
	int rc = chan_send(s->out_fd, "M", 1, s->o->timeout);

	if (rc == 0)
		rc = chan_recv(s, s->out_fd, &data, &len, RUN_PATIENCE_S);
	if (rc != 0)
		return perf_fail(s, "the other pairs: %s", strerror(-rc));
	free(data);
	return 0;
}

/* All pairs begin and end a line together; side B waits as long as that takes. */
static int
side_pairs(struct perf_side *s)
{
	int rc;

	if (!s->o->pairs)
		return 0;
	if (s->rank == 0 && side_hub(s) != 0)
		return -1;
	s->patient = s->rank == 1;
	rc = perf_barrier(s);
	s->patient = false;
	return rc;
}

static int
side_run_once(struct perf_side *s, const struct perf_test *t, size_t size)
{
	size_t first = s->rows->n;
	double raw_end;
	int rc;

	s->verify_errors = 0;
	s->verify_first[0] = '\0';
	s->loops = t->loops;
	s->send = t->loops != NULL && t->loops->send != NULL ? t->loops->send : s->be->send;
	s->recv = t->loops != NULL && t->loops->recv != NULL ? t->loops->recv : s->be->recv;
	s->mapped = perf_mapped(s->o, t);
	s->size = size;
	if (side_buffers(s, size) != 0)
		return -1;
	memset(s->sbuf, 1, s->buf_len);
	memset(s->rbuf, 2, s->buf_len);
	if (s->o->typed && s->be->typed_open(s) != 0)
		return -1;
	s->raw = s->raw && !(t->flags & PERF_HIDDEN); /* it would take long with many processes */
	rc = raw_measure(s, &s->raw_ns);
	if (rc == 0)
		rc = perf_barrier(s);
	if (rc == 0 && (t->flags & PERF_PROVED) && !s->o->verify)
		rc = side_prove(s, t, size);
	if (rc == 0)
		rc = side_pairs(s);
	if (rc == 0 && (s->rank == 0 || !(t->flags & PERF_LOCAL)))
		rc = t->run(s, t, size);
	if (rc == 0)
		rc = side_pairs(s);
	s->patient = s->rank == 1 && (t->flags & PERF_LOCAL);
	if (rc == 0)
		rc = perf_barrier(s); /* rank 1 runs turns in here during a local test */
	s->patient = false;
	if (rc == 0)
		rc = raw_measure(s, &raw_end);
	if (rc == 0)
		side_row_close(s, first, raw_end);
	if (rc == 0 && s->o->typed)
		s->be->typed_close(s);
	if (rc == 0 || !s->mapped)
		side_buffers_free(s);
	return rc;
}

static int
side_emit(struct perf_side *s, size_t first)
{
	char frame[1 + sizeof(struct perf_row)];

	for (size_t i = first; i < s->rows->n; i++) {
		frame[0] = 'R';
		memcpy(frame + 1, &s->rows->row[i], sizeof(struct perf_row));
		if (chan_send(s->out_fd, frame, sizeof(frame), s->o->timeout) != 0)
			return perf_fail(s, "the launcher has exited");
	}
	return 0;
}

static int
side_run_test(struct perf_side *s, const struct perf_test *t)
{
	const struct perf_opts *o = s->o;
	uint64_t sizes[PERF_MAX_SIZES];
	unsigned n = o->n_sizes;
	int rc = 0;

	memcpy(sizes, o->sizes, sizeof(sizes));
	if (n == 0)
		opts_parse_list(t->sizes, 1024, sizes, PERF_MAX_SIZES, &n);
	if (!(t->flags & PERF_SIZED))
		n = 1;
	for (unsigned i = 0; i < n && rc == 0; i++) {
		size_t first = s->rows->n;

		if (!perf_has_size(t, sizes[i])) {
			if (s->rank == 0)
				perf_say(s, "%s: no words of %llu bytes, only of 4 and 8", t->name,
					(unsigned long long)sizes[i]);
			continue;
		}
		for (unsigned r = 0; r < o->repeat && rc == 0; r++) {
			if (s->rank == 0)
				perf_progress(s, "%s %llu bytes (%u of %u), run %u of %u",
					t->name, (unsigned long long)sizes[i], i + 1, n, r + 1,
					o->repeat);
			rc = side_run_once(s, t, sizes[i]);
		}
		if (rc == 0 && s->rank == 0) {
			rows_reduce(s->rows, first, o->pick_best);
			rc = side_emit(s, first);
		}
	}
	return rc;
}

/* ---- one side from start to end ---- */

static int
side_meet(struct perf_side *s)
{
	void *own = NULL;
	size_t own_len;
	int rc;

	if (s->be->address(s, &own, &own_len) != 0)
		return -1;
	rc = chan_send(s->ctl_fd, own, own_len, s->o->timeout);
	free(own);
	if (rc == 0)
		rc = chan_recv(s, s->ctl_fd, &s->peer_addr, &s->peer_addr_len, s->o->timeout);
	if (rc == -ECONNRESET || rc == -EPIPE)
		return perf_fail(s, "the other side has exited");
	if (rc != 0)
		return perf_fail(s, "exchange of addresses: %s", strerror(-rc));
	return s->be->connect(s, PERF_PEER, s->peer_addr, s->peer_addr_len);
}

static int
side_say_library(struct perf_side *s)
{
	char frame[130];

	snprintf(
		s->rows->library, sizeof(s->rows->library), "%s %s", s->be->name, s->be->version());
	if (s->rank != 0)
		return 0;
	snprintf(frame, sizeof(frame), "V%s", s->rows->library);
	return chan_send(s->out_fd, frame, strlen(frame), s->o->timeout);
}

/* The library features that this test needs. */
static unsigned
side_needs(const struct perf_side *s, const struct perf_test *t)
{
	/* so that mapped memory is shared memory */
	return (t->flags & PERF_NEEDS) | (perf_mapped(s->o, t) ? PERF_RMA : 0);
}

static int
side_shut(struct perf_side *s)
{
	int rc = perf_barrier(s);

	if (rc == 0)
		rc = s->be->disconnect(s);
	if (rc == 0)
		rc = perf_barrier(s);
	free(s->peer_addr);
	s->peer_addr = NULL;
	if (rc == 0)
		s->be->close(s);
	return rc;
}

/* A test with other features opens the library again: unneeded features may cost it time. */
static int
side_reopen(struct perf_side *s, const struct perf_test *t)
{
	if (side_needs(s, t) == s->needs)
		return 0;
	if (side_shut(s) != 0)
		return -1;
	s->needs = side_needs(s, t);
	return s->be->open(s) != 0 ? -1 : side_meet(s);
}

static const struct perf_test *
side_next_test(const struct perf_opts *o, unsigned *i)
{
	while (*i < o->n_tests && (o->tests[*i]->flags & PERF_LAUNCHER))
		++*i;
	return *i < o->n_tests ? o->tests[*i] : NULL;
}

/* The life of one side; s has its options, rank, core and socket. Returns an exit status. */
int
run_side(struct perf_side *s)
{
	const struct perf_test *t;
	unsigned i = 0;
	int rc;

	t = side_next_test(s->o, &i);
	s->be = perf_backend_of(s->o);
	s->needs = t != NULL ? side_needs(s, t) : 0;
	rc = side_place(s);
	if (rc == 0)
		rc = s->be->open(s);
	if (rc != 0)
		return 1;
	rc = side_say_library(s);
	if (rc == 0)
		rc = side_meet(s);
	for (; t != NULL && rc == 0; i++, t = side_next_test(s->o, &i)) {
		rc = side_reopen(s, t);
		if (rc == 0)
			rc = side_run_test(s, t);
	}
	/* on an error the other side may have exited: no orderly close, the process exits */
	if (rc != 0 || side_shut(s) != 0)
		return 1;
	if (s->o->eal)
		rte_eal_cleanup();
	return s->all_errors != 0;
}
