/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hostile.c - a hostile peer talks to a working process and writes anything into its segments
 *
 * usage: hostile [--seconds N] [--seed S] [--rounds N] [--verbose]
 *
 * Rounds of a few seconds, each with processes of its own: a victim, an honest peer and a hostile one. In
 * rounds with an even seed the hostile one keeps to its own rings and says anything there: then all messages
 * between the other two have to come as they were sent. In the odd ones it also writes anything anywhere, at
 * any time, from one or two threads: then the other two have to live. A round follows from its seed, which is
 * printed: --rounds 1 --seed S repeats it, as far as time allows.
 *
 * Design notes
 * What is waited for is counted in sleeps and not in time: a machine that stands still is no process that does.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "hostile.h"

#define NAP_US     50000
#define ROUND_NAPS 60  /* of work */
#define STUCK_NAPS 400 /* without a turn */
#define END_NAPS   1600

/* What the sanitizers of a build with them do. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *
__asan_default_options(void)
{
	return "quarantine_size_mb=16:handle_abort=1:detect_leaks=0";
}

const char *
__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}

static const char *const names[N_ROLES] = {"victim", "honest", "hostile"};
static void (*const roles[N_ROLES])(struct round *r) = {hostile_victim, hostile_honest, hostile_peer};
static bool verbose;

static const struct {
	const char *name;
	const char *values[4];
} settings[] = {
	{"PLX_SHM_FAST_PEERS", {"4", "0", "2", "32"}},
	{"PLX_SHM_WIDE_PEERS", {"1", "8", "0", "2"}},
	{"PLX_RNDV_SCHEME", {"auto", "get", "split", "frag"}},
	{"PLX_RNDV_SPLIT_MIN", {"64k", "64k", "16k", "8k"}},
	{"PLX_RMA_SCHEME", {"auto", "device", "message", "auto"}},
	{"PLX_SHM_CMA", {"auto", "auto", "auto", "no"}},
	{"PLX_SHM_WINDOWS", {"yes", "no", "yes", "yes"}},
	{"PLX_PROTO_EAGER_MAX", {"8k", "64k", "1k", "8k"}},
	{"PLX_TAG_UNEXPECTED_MAX", {"16m", "64k", "1m", "0"}},
	{"PLX_STREAM_UNREAD_MAX", {"16m", "64k", "1m", "0"}},
	{"PLX_WORKER_PEER_CHECK_MS", {"20", "1", "5", "200"}},
};

static void
settings_choose(uint64_t seed)
{
	char reactor[32];

	setenv("PLX_EAL_HUGE", "no", 1);
	setenv("PLX_SHM_HUGE", "no", 1);
	setenv("PLX_WORKER_DEVICES", "shm", 1);
	setenv("PLX_WORKER_WAIT", "yield", 1);
	setenv("PLX_LOG_LEVEL", verbose ? "info" : "alert", 1);
	/* the last core's, whose turns are another thread's than the program's */
	snprintf(reactor, sizeof(reactor), "lcore:%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	setenv("PLX_REACTOR", hostile_rnd(&seed, 4) == 0 ? reactor : "", 1);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		setenv(settings[i].name, settings[i].values[hostile_rnd(&seed, 4)], 1);
}

static pid_t
role_start(struct round *r, int role)
{
	pid_t pid = fork();

	if (pid < 0)
		UTIL_DIE("fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (role == EVIL) /* it moves its queue itself */
		setenv("PLX_REACTOR", "", 1);
	/* What it writes is written by the victim as well, into its own memory: its end is no fault of
	 * anybody's. */
	if (role == EVIL && !verbose &&
		(freopen("/dev/null", "w", stderr) == NULL || freopen("/dev/null", "w", stdout) == NULL))
		_exit(1);
	roles[role](r);
	_exit(0);
}

static void
nap(void)
{
	usleep(NAP_US);
}

/* @return whether this process has ended, and how */
static bool
ended(pid_t pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

static bool
is_bad(int role, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	if (WIFSIGNALED(status))
		fprintf(stderr, "the %s one died of %s\n", names[role], strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "the %s one ended with %d\n", names[role], WEXITSTATUS(status));
	return role != EVIL;
}

/* Its sanitizer reports where it hangs. */
static bool
stuck(int role, pid_t pid, const char *what)
{
	int status;

	fprintf(stderr, "the %s one finds no %s\n", names[role], what);
	kill(pid, SIGABRT);
	waitpid(pid, &status, 0);
	return true;
}

/* @return whether something was found */
static bool
round_watch(struct round *r, pid_t pid[N_ROLES])
{
	uint64_t turns[N_ROLES] = {0}, seed = r->seed;
	unsigned still[N_ROLES] = {0}, n = 0, until_kill = ROUND_NAPS + (unsigned)hostile_rnd(&seed, 40);
	bool found = false;

	for (; (pid[VICTIM] != 0 || pid[HONEST] != 0) && !found; n++) {
		nap();
		if (n == ROUND_NAPS)
			atomic_store(&r->stop, 1);
		if (n == until_kill && pid[EVIL] != 0)
			kill(pid[EVIL], SIGKILL);
		for (int i = 0; i < N_ROLES && !found; i++) {
			uint64_t now = atomic_load(&r->side[i].turns);
			int status;

			if (pid[i] == 0)
				continue;
			if (ended(pid[i], &status)) {
				pid[i] = 0;
				if (n < until_kill || i != EVIL)
					found = is_bad(i, status);
				continue;
			}
			still[i] = now == turns[i] ? still[i] + 1 : 0;
			turns[i] = now;
			if (i != EVIL && still[i] > STUCK_NAPS) {
				found = stuck(i, pid[i], "turn any more");
				pid[i] = 0;
			}
		}
		for (int i = VICTIM; n > END_NAPS && i <= HONEST && !found; i++) {
			if (pid[i] == 0)
				continue;
			found = stuck(i, pid[i], "end");
			pid[i] = 0;
		}
	}
	return found;
}

static bool
round_run(uint64_t seed)
{
	struct round *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t state = seed;
	pid_t pid[N_ROLES];
	bool found;

	if (r == MAP_FAILED)
		UTIL_DIE("no memory");
	r->seed = seed;
	r->secret = util_splitmix64(&state) >> 32 | UINT64_C(0x80000000);
	r->n_vandals = seed % 2 == 0 ? 0 : 1 + (unsigned)hostile_rnd(&state, 2);
	r->sleeps = hostile_rnd(&state, 3) == 0;
	settings_choose(util_splitmix64(&state));
	fflush(NULL);
	for (int k = 0; k < N_ROLES; k++)
		pid[k] = role_start(r, k);
	found = round_watch(r, pid);
	for (int k = 0; k < N_ROLES; k++) {
		if (pid[k] == 0)
			continue;
		kill(pid[k], SIGKILL);
		waitpid(pid[k], NULL, 0);
	}
	printf("%s seed %llu vandals %u: said %llu heard %llu wrote %llu; victim took %llu, with the honest "
	       "one tag %llu "
	       "am %llu stream %llu rma %llu cci %llu\n",
		found ? "FOUND" : "ok", (unsigned long long)seed, r->n_vandals, (unsigned long long)r->n_said,
		(unsigned long long)r->n_heard, (unsigned long long)r->n_spoilt, (unsigned long long)r->n_took,
		(unsigned long long)r->side[VICTIM].got[TALK_TAG],
		(unsigned long long)r->side[VICTIM].got[TALK_AM],
		(unsigned long long)r->side[VICTIM].got[TALK_STREAM],
		(unsigned long long)r->side[VICTIM].sent[TALK_RMA],
		(unsigned long long)r->side[VICTIM].got[TALK_CCI]);
	fflush(stdout);
	if (found) {
		for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++)
			printf("%s=%s ", settings[k].name, getenv(settings[k].name));
		printf("PLX_REACTOR=%s ", getenv("PLX_REACTOR"));
		putchar('\n');
	}
	munmap(r, sizeof(*r));
	return found;
}

int
main(int argc, char **argv)
{
	uint64_t seconds = 20, seed = 0, rounds = UINT64_MAX, end;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = util_now_ns();
	seed &= UINT32_MAX;
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (more && strcmp(argv[i], "--seconds") == 0)
			seconds = strtoull(argv[++i], NULL, 0);
		else if (more && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 0);
		else if (more && strcmp(argv[i], "--rounds") == 0)
			rounds = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--verbose") == 0)
			verbose = true;
		else
			UTIL_DIE("usage: hostile [--seconds N] [--seed S] [--rounds N] [--verbose]");
	}
	end = util_now_ns() + seconds * 1000000000u;
	for (uint64_t i = 0; i < rounds && util_now_ns() < end; i++)
		if (round_run(seed + i))
			return 1;
	return 0;
}
