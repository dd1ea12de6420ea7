/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * perf.h - what the files of commperf share: options, a side, a back end, a result
 *
 * Design notes
 * - A run has two sides, each its own process: rank 0 measures and reports, rank 1 answers.
 *   Neither the library nor the EAL exists before the fork, so neither is ever forked.
 * - A test is one function that both sides call; it uses the library only through struct
 *   perf_backend, so that a second API is one more file.
 * - Every wait ends: by its completion, by the deadline, or because the other side has exited.
 */
#ifndef PERF_H
#define PERF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#include <jansson.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#define PERF_MAX_SIZES  64
#define PERF_MAX_TESTS  64
#define PERF_MAX_DEPTHS 16
#define PERF_MAX_FIELDS 12
#define PERF_MAX_PIECES 1024 /* of an iov */
#define PERF_MAX_LOADS  8
#define PERF_MAX_RUNS   16 /* files to plot */
#define PERF_MAX_ROUNDS 100
#define PERF_MAX_RANKS  64
#define PERF_MAX_BUSY   64 /* a core */
#define PERF_MAX_WINDOW 4096
#define PERF_MAX_BATCH	100000
#define PERF_MAX_THREADS 64
#define PERF_MAX_ITERS  (1u << 26)
#define PERF_MAX_MSG    (1u << 20) /* one message between the two sides, control only */
#define PERF_MAX_CPUS   1024
#define PERF_LINE       64
#define PERF_TAG        UINT64_C(0x1c0de5)
#define PERF_TAG_ACK    UINT64_C(0x1acc00)
#define PERF_MASK_MPICH UINT64_C(0xffffffff9fffffff)

enum perf_role { PERF_FORK, PERF_SERVER, PERF_CONNECT };
enum perf_mem { PERF_MEM_BY_TEST, PERF_MEM_PRIVATE, PERF_MEM_MAPPED, PERF_MEM_EAL };
enum perf_vs { PERF_VS_NONE, PERF_VS_UCX, PERF_VS_PERFTEST };
enum perf_dest { PERF_PEER, PERF_SELF };

#define PERF_SYNC 1u /* send: complete when matched */

struct perf_opts {
	/* the tests; sent to the server as JSON */
	const struct perf_test *tests[PERF_MAX_TESTS];
	unsigned n_tests;
	uint64_t sizes[PERF_MAX_SIZES];
	unsigned n_sizes; /* 0: each test's own default */
	uint64_t iters;   /* 0: chosen by size */
	int64_t warmup;   /* -1: a tenth of iters */
	unsigned window;
	unsigned batch; /* latency: round trips between two readings of the clock */
	uint64_t mask;
	unsigned repeat;
	bool pick_best;
	bool verify;
	enum perf_mem mem;
	bool buffers_window;
	bool typed;      /* messages are not contiguous buffers, but */
	bool generic;    /*   of a generic type, or */
	unsigned pieces; /*   iovs of this number of pieces; 0: none */
	uint64_t depths[PERF_MAX_DEPTHS];
	unsigned n_depths;
	uint64_t seed;
	double duration;   /* s, of each line; 0: iterations decide */
	double time_limit; /* s, one cell of match and load; 0: the test's own */
	unsigned eps;
	unsigned attr;  /* of CCI connections: enum cci_conn_attribute */
	bool silent;    /* CCI sends without an event */
	bool no_copy;   /* from the message's own buffer */
	uint64_t ranks[PERF_MAX_LOADS]; /* load: ranks on two cores, */
	unsigned n_ranks;
	uint64_t busy[PERF_MAX_LOADS]; /*   and programs on each core that do nothing else */
	unsigned n_busy;
	unsigned rounds;
	int gate[2]; /* load_pair: where to report ready, and where the start comes from; -1: none */
	unsigned threads; /* of side A in one worker; above 1 it is UCS_THREAD_MODE_MULTI */
	double timeout; /* s, one wait */

	/* where and how; each side has its own */
	enum perf_role role;
	bool pairs; /* a launcher starts the ranks; their hub listens on host and port */
	char host[256];
	char port[16];
	int cpus[PERF_MAX_CPUS];
	unsigned n_cpus;
	bool cpus_given;
	bool bind;
	bool reactor_own; /* a reactor on each side's own core */
	bool eal;
	int eal_argc; /* EAL options of the user, without the core list */
	char **eal_argv;

	/* output */
	const char *csv;
	const char *json;
	const char *plot;
	const char *report; /* folder of the report */
	int argc;           /* the whole command line */
	char **argv;
	const char *runs[PERF_MAX_RUNS]; /* earlier results to plot, instead of a run */
	unsigned n_runs;
	bool quiet;
	bool progress;

	enum perf_vs vs;
	bool vs_sweep; /* one child runs the whole sweep, not one size */
	const char *ucx_lib;
	const char *ucx_prefix;
	const char *perftest;
	const char *pollux_run;
	const char *self; /* path of this program */
};

/* One outstanding operation. Lives from its post until it completes; the poster owns it. */
struct perf_io {
	int done;
	int status; /* 0, or the back end's negative code */
	size_t len;
	uint64_t tag;
};

/* One line of the result: a value, its unit, and further observations. */
struct perf_row {
	char test[16];
	char label[24];
	uint64_t size;
	uint64_t depth;
	uint64_t n;
	double value;
	char unit[12];
	bool higher_better;
	double raw_ns;     /* the one-line ping-pong, before; 0: not measured */
	double raw_end_ns; /* the same, after */
	uint64_t errors;
	unsigned n_fields;
	struct {
		char name[16];
		double value;
	} fields[PERF_MAX_FIELDS];
};

struct perf_rows {
	struct perf_row *row;
	size_t n;
	size_t room;
	char library[128]; /* name and version from the library */
};

/* The figure of a running line over its last second. */
struct perf_live {
	char test[16];
	char unit[12];
	uint64_t size;
	double at, of; /* seconds passed and in all */
	double value;
	bool rate; /* the hub shows the sum of all pairs, not the mean */
};

/* The page that the launcher and its forked sides share. */
struct perf_shared {
	_Alignas(PERF_LINE) _Atomic uint64_t ball;
	_Alignas(PERF_LINE) _Atomic uint64_t alive[2]; /* writer: that side; reader: the launcher */
};

struct perf_side;

/* Both set io->done at once if the operation is complete on return. */
typedef int perf_send_fn(struct perf_side *s, struct perf_io *io, enum perf_dest dest,
	const void *buf, size_t len, uint64_t tag, unsigned flags);
typedef int perf_recv_fn(struct perf_side *s, struct perf_io *io, void *buf, size_t len, uint64_t tag,
	uint64_t mask);

struct perf_side {
	const struct perf_opts *o;
	const struct perf_backend *be;
	void *be_priv;          /* the back end's own */
	struct perf_shared *sh; /* with the launcher, and with the other side if raw; or NULL */
	struct perf_rows *rows; /* rank 0 */
	const struct perf_loops *loops; /* of the present test, or NULL */
	perf_send_fn *send;             /* how the present test sends and receives */
	perf_recv_fn *recv;
	unsigned needs;                 /* PERF_AM ... PERF_WAKE: features that the library was
	                                 * opened with */
	bool mapped;                    /* the buffers of the present test */
	size_t size;                    /* of its messages */
	int rank;
	int cpu;    /* -1: not pinned */
	int ctl_fd; /* stream socket to the other side */
	double tsc_hz;
	uint64_t wait_start; /* ticks; when the present wait became long */
	uint64_t ball;       /* count of raw ping-pongs, the same on both sides */
	double raw_ns;
	uint64_t verify_errors; /* of the present test, this side */
	char verify_first[192];
	uint64_t all_errors; /* of the whole session, both sides (rank 0) */
	void *peer_addr;
	size_t peer_addr_len;
	uint8_t *sbuf;
	uint8_t *rbuf;
	size_t buf_len;         /* of each, all slots together */
	bool failed;            /* an error was printed */
	uint64_t context_ticks; /* time of open(): the context, */
	uint64_t worker_ticks;  /* and the worker */
	uint64_t start_ticks;   /* bw_stream: time of its first send */
	uint64_t end_ticks;     /* and of the last acknowledgement */
	uint64_t peer_errors;   /* as of the last barrier */
	char peer_first[192];
	uint32_t barrier_n;
	bool patient; /* the next barrier has no deadline: the other side has its own */
	bool raw;     /* the other side takes part in the raw ping-pong */
	int out_fd;   /* rows and progress go here; -1: nowhere */
};

struct lat_clock;

/*
 * One API. All functions but version return 0 or a negative value after perf_fail() has said why.
 */
struct perf_backend {
	const char *name;
	const char *(*version)(void);
	int (*open)(struct perf_side *s);
	void (*close)(struct perf_side *s);
	int (*address)(struct perf_side *s, void **addr, size_t *len); /* addr is malloc'ed */
	int (*connect)(struct perf_side *s, enum perf_dest dest, const void *addr, size_t len);
	int (*disconnect)(struct perf_side *s);
	int (*typed_open)(struct perf_side *s); /* after the buffers are made; NULL: no datatypes */
	void (*typed_close)(struct perf_side *s);
	int (*mem_alloc)(struct perf_side *s, size_t len); /* fills sbuf, rbuf; mapped memory */
	void (*mem_free)(struct perf_side *s);
	perf_send_fn *send;
	perf_recv_fn *recv;
	unsigned (*progress)(struct perf_side *s);
	int (*eps_create)(struct perf_side *s, unsigned n);
	int (*eps_use)(struct perf_side *s, unsigned i, struct perf_io *io, uint64_t tag);
	int (*eps_close)(struct perf_side *s);
	/* Between open and close the other side can access rbuf; NULL: not measured here. */
	int (*rma_open)(struct perf_side *s);
	int (*rma)(struct perf_side *s, struct perf_io *io, bool write, size_t at, size_t len);
	int (*rma_flush)(struct perf_side *s); /* the data has arrived; NULL: io->done means that */
	int (*rma_close)(struct perf_side *s);
};

/*
 * The loops of a test that does not measure send and recv of the back end; each may be
 * NULL. bw.c and lat.c build their loops on send and recv, unless the test has its own:
 * stream: n messages from those with tx to those with rx. ping and pong: n round trips.
 */
struct perf_loops {
	perf_send_fn *send;
	perf_recv_fn *recv;
	int (*stream)(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, bool tx, bool rx);
	int (*ping)(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, struct lat_clock *clock);
	int (*pong)(struct perf_side *s, size_t size, uint64_t n); /* NULL with ping: B runs turns */
};

#define PERF_SIZED    1u /* runs once a size */
#define PERF_LAUNCHER 2u /* runs in processes of its own, not in a session */
#define PERF_LOCAL    4u /* rank 1 only runs turns meanwhile */
#define PERF_CCI      8u /* by CCI, not by UCP */
#define PERF_PROVED   16u /* a few messages are verified before each line */
#define PERF_MAPPED   32u /* in mapped memory by default */
#define PERF_AM	      64u /* features of the library besides tagged messages */
#define PERF_STREAM   128u
#define PERF_RMA      256u
#define PERF_AMO      512u
#define PERF_WAKE     1024u
#define PERF_ALONE    2048u /* not with other tests */
#define PERF_HIDDEN   4096u /* started by another test */
#define PERF_COST     8192u /* listed by --help=costs */
#define PERF_TIMED    16384u /* takes --duration */
#define PERF_TYPED    32768u /* takes --datatype */
#define PERF_NEEDS    (PERF_AM | PERF_STREAM | PERF_RMA | PERF_AMO | PERF_WAKE)

struct perf_test {
	const char *name;
	const char *help;
	const char *sizes; /* default of -s */
	unsigned flags;
	int (*run)(struct perf_side *s, const struct perf_test *t, size_t size);
	const struct perf_loops *loops;
};

/* opts.c */
int opts_parse(struct perf_opts *o, int argc, char **argv);
int opts_check(struct perf_opts *o);
int opts_mask(struct perf_opts *o, const char *text);
int opts_attr(struct perf_opts *o, const char *text);
int opts_datatype(struct perf_opts *o, const char *text);
int opts_parse_list(const char *text, unsigned unit, uint64_t *out, unsigned max, unsigned *n);
void opts_default_cpus(struct perf_opts *o);

/* opts_json.c */
json_t *opts_to_json(const struct perf_opts *o);
int opts_from_json(struct perf_opts *o, const json_t *j);

/* help.c */
bool help_print(const char *topic);

/* run.c: one side of a session, and what the tests need */
extern const struct perf_test perf_tests[];
const struct perf_test *perf_test_find(const char *name);
bool perf_has_size(const struct perf_test *t, uint64_t size);
const struct perf_backend *perf_backend_of(const struct perf_opts *o);
const char *perf_mem_name(enum perf_mem mem);
const char *perf_attr_name(unsigned attr);
void perf_datatype_name(const struct perf_opts *o, char *out, size_t len);
bool perf_mapped(const struct perf_opts *o, const struct perf_test *t);
int run_side(struct perf_side *s);
int perf_fail(struct perf_side *s, const char *fmt, ...) __rte_format_printf(2, 3);
void perf_say(struct perf_side *s, const char *fmt, ...) __rte_format_printf(2, 3);
void perf_wrong(struct perf_side *s, const char *fmt, ...) __rte_format_printf(2, 3);
int perf_wait_slow(struct perf_side *s, uint64_t spins);
int perf_barrier(struct perf_side *s);
struct perf_row *perf_row_new(struct perf_side *s, const struct perf_test *t, size_t size);
void perf_row_field(struct perf_row *row, const char *name, double value);
uint64_t perf_iters(const struct perf_opts *o, bool latency, size_t size);
uint64_t perf_warmup(const struct perf_opts *o, uint64_t iters);
double perf_ns(const struct perf_side *s, uint64_t ticks);
void perf_progress(struct perf_side *s, const char *fmt, ...) __rte_format_printf(2, 3);
void perf_live(struct perf_side *s, const struct perf_live *live);
size_t perf_slot_len(size_t size);
void perf_fill(uint8_t *buf, size_t len, uint64_t seq);
void perf_check(struct perf_side *s, const struct perf_io *io, const uint8_t *buf, size_t len,
	uint64_t seq);

/* timed.c: a line of --duration */
struct perf_timed {
	struct perf_side *s;
	const char *test;
	size_t size;
	const char *unit;
	bool rate;     /* the value counts messages a second, not seconds a message */
	bool alone;    /* side B takes no part */
	double factor; /* the value of one message a second, or of one second a message */
	uint64_t n;    /* messages and ticks of all chunks */
	uint64_t ticks;
	uint64_t chunk;
	double begin, since; /* s: the start of the line, and of the chunk */
	double shown;        /* s: when a second was last shown */
	uint64_t shown_n, shown_ticks;
};
int perf_timed_next(struct perf_timed *t, uint64_t *n);
void perf_timed_add(struct perf_timed *t, uint64_t n, uint64_t ticks);
typedef int perf_alone_fn(struct perf_side *s, const void *arg, uint64_t n);
/*
 * Side A alone: warm up, then run a number of operations, or as many as the duration allows.
 * The caller sets s to factor of total, and gets n and ticks.
 */
int perf_count_alone(struct perf_timed *total, perf_alone_fn *run, const void *arg);

/* launch.c */
int launch_run(const struct perf_opts *o, struct perf_rows *rows);
int launch_server(const struct perf_opts *o);
int launch_client(const struct perf_opts *o, struct perf_rows *rows);
int launch_dial(const struct perf_opts *o);
int launch_take_options(struct perf_opts *o, int fd);

/* main.c: a signal requests the end, of the process that started the others */
void perf_stop_on_signals(void);
int perf_stopped(void);        /* the signal, or 0 */
void perf_stop_is_for_parent(void); /* in a side: its launcher stops it */

/* place.c: core, EAL, clock, memory of this process */
int place_pin(int cpu);
int place_eal_init(const struct perf_opts *o, int cpu);
double place_tsc_hz(void);
uint64_t place_clock_ns(void); /* monotonic */
double place_now(void);         /* the same clock, in s */
uint64_t place_memory(const char *key);

/* chan.c: the stream between the two sides */
int chan_listen(const char *host, const char *port, double timeout);
int chan_listener(const char *host, const char *port, int backlog);
int chan_accept(int lfd, double timeout);
int chan_connect(const char *host, const char *port, double timeout, double refused_s);
int chan_send(int fd, const void *data, size_t len, double timeout);
int chan_recv(struct perf_side *s, int fd, void **data, size_t *len, double timeout);

/* rows.c: a list of results, to and from JSON */
struct perf_row *rows_add(struct perf_rows *rows, const struct perf_row *row);
void rows_reduce(struct perf_rows *rows, size_t first, bool best);
/* Sorts v. @return the median, 0 of none */
double rows_median(double *v, unsigned n);
void rows_free(struct perf_rows *rows);
bool rows_same_key(const struct perf_row *a, const struct perf_row *b);
json_t *rows_to_json(const struct perf_opts *o, const struct perf_rows *rows);
int rows_load(struct perf_rows *rows, const char *path);
int rows_load_all(struct perf_rows rows[2], unsigned *n, const char *path);

/* report.c: the table, CSV, JSON */
void report_row(const struct perf_opts *o, const struct perf_row *row);
void report_live(const struct perf_opts *o, const struct perf_live *live);
void report_head(const struct perf_opts *o, const char *library);
int report_json_file(const json_t *j, const char *path);
int report_check(const struct perf_opts *o);
void report_number(char *out, size_t len, double v);
int report_files(const struct perf_opts *o, const struct perf_rows *rows);
void report_progress(const struct perf_opts *o, const char *fmt, ...) __rte_format_printf(2, 3);
void report_say(const char *fmt, ...) __rte_format_printf(1, 2);
void report_size(char *out, size_t len, uint64_t size);
/* The depth of a line, or its size. */
void report_at(char *out, size_t len, const struct perf_row *row);

/* vs.c */
int vs_run(const struct perf_opts *o);

/* load.c */
int load_run(const struct perf_opts *o, struct perf_rows *rows);

/* the families and the back ends */
int lat_run(struct perf_side *s, const struct perf_test *t, size_t size);
int bw_run(struct perf_side *s, const struct perf_test *t, size_t size);
int bidir_run(struct perf_side *s, const struct perf_test *t, size_t size);
int rate_run(struct perf_side *s, const struct perf_test *t, size_t size);
int submit_run(struct perf_side *s, const struct perf_test *t, size_t size);
int overlap_run(struct perf_side *s, const struct perf_test *t, size_t size);
int threads_run(struct perf_side *s, const struct perf_test *t, size_t size);
int match_run(struct perf_side *s, const struct perf_test *t, size_t size);
int startup_run(const struct perf_opts *o, double tsc_hz, struct perf_rows *rows);
int ep_mem_run(struct perf_side *s, const struct perf_test *t, size_t size);
int rma_run(struct perf_side *s, const struct perf_test *t, size_t size);
int put_lat_run(struct perf_side *s, const struct perf_test *t, size_t size);
int get_lat_run(struct perf_side *s, const struct perf_test *t, size_t size);
int atomic_run(struct perf_side *s, const struct perf_test *t, size_t size);
int load_pair_run(struct perf_side *s, const struct perf_test *t, size_t size);
int sleep_run(struct perf_side *s, const struct perf_test *t, size_t size);
int late_bw_run(struct perf_side *s, const struct perf_test *t, size_t size);
extern const struct perf_backend perf_backend_ucp, perf_backend_cci;
extern const struct perf_loops perf_loops_cci, perf_loops_put, perf_loops_get, perf_loops_am,
	perf_loops_stream, perf_loops_late, perf_loops_atomic;

/* cci.c: what the loops of cci_msg.c use */
struct cci_endpoint;
struct cci_connection;
union cci_event;
struct perf_cci {
	const struct cci_endpoint *ep;
	const struct cci_connection *conn; /* of messages */
	int send_flags;
};
void perf_cci_handles(struct perf_side *s, struct perf_cci *out);
/* @return the kept event of an early message, or NULL */
const union cci_event *perf_cci_held(struct perf_side *s);
/* Handle an event that is not for these loops. */
void perf_cci_event(struct perf_side *s, const union cci_event *event);

/* rma.c: write a pattern and read it back. */
int rma_verify(struct perf_side *s, size_t size);

/* One stream of messages in one direction, as bw.c sends it and rate.c too. */
int bw_stream(struct perf_side *s, size_t size, uint64_t n, uint64_t seq, bool tx, bool rx);
/* Warm up, then n messages of such a stream, or as many as the duration allows. The caller sets
 * s to factor of total. */
int bw_count(struct perf_timed *total, uint64_t n, bool both);
/* rate.c: a row for n messages that took these ticks. @return NULL after perf_fail() */
struct perf_row *rate_row(struct perf_side *s, const struct perf_test *t, size_t size, uint64_t n, uint64_t ticks);
unsigned perf_slots(const struct perf_opts *o);

/* @return the slot after slot at in a window: a division would take as long as a message */
static inline unsigned
perf_slot_next(unsigned at, unsigned window)
{
	return at + 1 < window ? at + 1 : 0;
}

/* @return bytes from slot to slot of the buffers; 0: all share one */
static inline size_t
perf_stride(const struct perf_side *s)
{
	return s->o->buffers_window ? s->buf_len / s->o->window : 0;
}

#define LAT_SENDS 2 /* sends in flight: the previous and the present one */

/* Times of batches of round trips. */
struct lat_clock {
	uint64_t *ticks; /* NULL: not recorded */
	uint64_t n;
	uint64_t every; /* one in every batches is recorded */
	uint64_t batches;
	uint64_t last;
	unsigned left; /* round trips of the present batch */
};

/* After a round trip: read the clock when its batch is full. */
static inline void
lat_look(const struct perf_side *s, struct lat_clock *c)
{
	uint64_t now;

	if (--c->left != 0)
		return;
	c->left = s->o->batch;
	now = rte_rdtsc();
	if (c->ticks != NULL && c->batches++ == c->n * c->every)
		c->ticks[c->n++] = now - c->last;
	c->last = now;
}

/* Tell the launcher that this side makes progress. */
static inline void
perf_alive(struct perf_side *s)
{
	if (s->sh != NULL)
		atomic_fetch_add_explicit(&s->sh->alive[s->rank], 1, memory_order_relaxed);
}

/* Run turns until io is complete. Returns 0, or a negative value that has been reported. */
static inline int
perf_wait(struct perf_side *s, struct perf_io *io)
{
	uint64_t spins = 0;

	while (!io->done) {
		s->be->progress(s);
		if (unlikely((++spins & 0xfff) == 0) && perf_wait_slow(s, spins) != 0)
			return -1;
	}
	if (unlikely(io->status != 0))
		return perf_fail(s, "an operation completed with status %d", io->status);
	return 0;
}

#endif /* PERF_H */
