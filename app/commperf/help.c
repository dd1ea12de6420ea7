/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * help.c - --help, by topics: each fits a terminal of 80 columns and 24 lines
 */
#include <string.h>

#include "perf.h"

static const char help_short[] =
	"commperf - measure latency, bandwidth, rates and costs of the library\n"
	"\n"
	"usage: commperf [EAL OPTIONS] -- [OPTIONS]      or      commperf [OPTIONS]\n"
	"\n"
	"  -t, --test LIST     tests by name or its beginning (put: put_lat and put_bw),\n"
	"                      \"all\" of UCP or \"cci\" (default tag_lat)\n"
	"  -s, --size LIST     8,64,1k or a doubling range 8:4m (default by test)\n"
	"  -l, --lcores LIST   cores: side A on the first, B on the second\n"
	"      --vs ucx        the same on UCX's libucp, interleaved, and the ratio\n"
	"  -h, --help[=TOPIC]  this text; more of a topic, or all of them\n"
	"      --version       the library in use\n"
	"\n"
	"topics\n"
	"  run         how long, how often, of how many messages\n"
	"  data        buffers and payload, verification\n"
	"  single      options of single tests\n"
	"  where       cores, hosts, pairs of ranks\n"
	"  output      files, charts, reports\n"
	"  comparison  other libraries and programs\n"
	"  tests       tests of messages, memory of the peer, atomics\n"
	"  costs       tests of costs and of load\n"
	"  cci         tests of CCI\n";

static const char help_run[] =
	"  -n, --iters N       iterations (default by size)\n"
	"      --duration S    each line takes S seconds, and says its rate each second\n"
	"  -w, --warmup N      iterations before the clock starts (default a tenth)\n"
	"  -W, --window N      messages in flight (default 32)\n"
	"      --batch N       latency: round trips between two readings of the clock (1)\n"
	"  -m, --mask M        receive tag mask: full, mpich or hexadecimal (full)\n"
	"  -r, --repeat N      run each line N times, report one (1; pairs with --vs: 3)\n"
	"      --pick WHICH    which one: median or best (median)\n"
	"      --timeout S     longest wait for anything (60)\n";

static const char help_data[] =
	"      --verify        check a pattern in every message; exit 1 on a mismatch\n"
	"      --mem KIND      buffers: private (heap), mapped (ucp_mem_map) or eal (the\n"
	"                      heap of DPDK, as mbufs) (default mapped for put, get and\n"
	"                      atomic, else private)\n"
	"      --datatype KIND payload: contig, iov:N (pieces) or generic (callbacks that\n"
	"                      pack and unpack); for tag, unexpected, am and stream tests\n"
	"      --buffers HOW   one buffer for all the window, or one each: one or window\n"
	"                      (default one; --verify implies window)\n";

static const char help_single[] =
	"      --depth LIST    match: queue depths (100,1k,10k,50k)\n"
	"      --seed N        match: seed of the random order (1)\n"
	"      --time-limit S  match: longest measurement of one line (2); load: of one\n"
	"                      measurement (0.4, of many programs 0.8)\n"
	"      --ranks LIST    load: ranks on the two cores (2,8,32)\n"
	"      --busy LIST     load: busy programs a core besides 2 ranks (0,1,10)\n"
	"      --rounds N      load: rounds, whose medians are shown (3)\n"
	"      --eps N         ep_mem, conn_mem: endpoints or connections (1000)\n"
	"      --threads N     thread_rate: threads of side A in its worker (1)\n"
	"      --attr ATTR     CCI: connections are ro, ru or uu (ro)\n"
	"      --silent        CCI: no event when a message is sent\n"
	"      --no-copy       CCI: messages are sent in place\n";

static const char help_where[] =
	"  -l, --lcores LIST   cores: side A on the first, B on the second (default the\n"
	"                      first two allowed); also as an EAL option, -c or --lcores\n"
	"      --fork          both sides here, in two processes (default)\n"
	"      --server [ADDR:PORT]  be side B and wait (127.0.0.1:17770)\n"
	"      --connect HOST:PORT   be side A of that server\n"
	"      --pairs [HOST:PORT]   under mpirun or srun: rank i and rank i + n/2 are a\n"
	"                      pair, rank 0 listens there (127.0.0.1:17770)\n"
	"      --bind on|off   pin each side to its core (on)\n"
	"      --reactor LIST  reactors on these cores run the turns; implies --no-eal;\n"
	"                      own: one on each side's core\n"
	"      --no-eal        do not start the EAL; the library starts what it needs\n";

static const char help_output[] =
	"      --csv FILE      all lines as comma-separated values; - is standard output\n"
	"      --json FILE     the same as JSON, with the options\n"
	"      --plot FILE     a chart; FILE ends in .svg or .html\n"
	"      [--plot FILE] RUN.json...  nothing runs: a chart of what --json or\n"
	"                      --report has written, in FILE or in the terminal\n"
	"      --report DIR    a page to attach to an issue: charts, tables, machine,\n"
	"                      settings: DIR/index.html, and DIR/data.json\n"
	"      --quiet         no table\n"
	"      --progress[=on|off]  a progress line on stderr (on a terminal)\n";

static const char help_comparison[] =
	"      --vs ucx        the same on UCX's libucp, interleaved, and the ratio\n"
	"      --vs ucx_perftest  ucx_perftest, plain and through pollux-run\n"
	"      --interleave HOW   alternate after every size or sweep: size or sweep\n"
	"      --ucx PREFIX    where UCX is installed (default what ldconfig knows)\n"
	"      --ucx-lib FILE  its libucp.so.0\n"
	"      --perftest FILE    (ucx_perftest)\n"
	"      --pollux-run FILE  (next to this program, then the path)\n";

/* A topic is a text, or the list of tests with just these flags of PERF_COST and PERF_CCI. */
static const struct help_topic {
	const char *name;
	const char *text;
	unsigned flags;
} help_topics[] = {
	{"run", help_run, 0},
	{"data", help_data, 0},
	{"single", help_single, 0},
	{"where", help_where, 0},
	{"output", help_output, 0},
	{"comparison", help_comparison, 0},
	{"tests", NULL, 0},
	{"costs", NULL, PERF_COST},
	{"cci", NULL, PERF_CCI},
};

static void
help_topic(const struct help_topic *topic)
{
	printf("%s\n%s", topic->name, topic->text != NULL ? topic->text : "");
	for (const struct perf_test *t = perf_tests; topic->text == NULL && t->name != NULL; t++) {
		if ((t->flags & (PERF_COST | PERF_CCI)) == topic->flags && !(t->flags & PERF_HIDDEN))
			printf("  %-15s %s\n", t->name, t->help);
	}
}

/* @param topic NULL for the short text. @return false if there is no such topic */
bool
help_print(const char *topic)
{
	bool all = topic != NULL && strcmp(topic, "all") == 0, found = topic == NULL || all;

	if (found)
		fputs(help_short, stdout);
	for (size_t i = 0; i < RTE_DIM(help_topics); i++) {
		if (!all && (topic == NULL || strcmp(topic, help_topics[i].name) != 0))
			continue;
		if (all)
			putchar('\n');
		help_topic(&help_topics[i]);
		found = true;
	}
	return found;
}
