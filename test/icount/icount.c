/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * icount.c - run a program, and write down each instruction between two of its marks
 *
 * usage: icount OUT HOLD COMMAND [ARG...]
 *
 * HOLD is THREAD:FILE:OFFSET, in hexadecimal: the function that the reactor's thread calls for each
 * turn, and a part of that thread's name; or "-". OUT gets the program's executable mappings, as
 * /proc/PID/maps says, and for each repetition of a row "row NAME" and a line of addresses.
 *
 * Design notes
 * A count is a fact about the code when it depends on nothing else. So:
 * - The program is stepped by ptrace(2). All threads of it are traced, those that are not counted
 *   run at full speed.
 * - It reads the time from us: with PR_SET_TSC each rdtsc is a fault that we answer, also that in
 *   the vDSO. Until the mark ICOUNT_CLOCK it is the time; then it stands still, so that no timer
 *   runs because stepping is slow or the machine is busy.
 * - Addresses are not random, and the C library's copies are those for AVX2 (GLIBC_TUNABLES): the
 *   ones it would choose depend on the processor.
 * - A thread that polls, as a reactor does, is held between two turns, and stepped from one to the
 *   next.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "marks.h"

#define STEPS_MAX   1000000
#define LOOK_TICKS  50 /* that pass at each look at the clock that stands still */
#define POLLERS_MAX 8
#define NAME_LEN    128

#define TUNABLES "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-RTM,-ERMS,-FSRM,-Prefer_No_VZEROUPPER"

static struct {
	pid_t pid; /* of the program, and of its first thread */
	FILE *out;
	bool mapped; /* its mappings are written */
	bool still;  /* time stands */
	uint64_t ticks;
	pid_t held; /* thread, or 0 */
	char thread[32], file[256];
	unsigned long offset;	     /* in file, of what is called for each turn */
	unsigned long at;	     /* the same, in memory */
	unsigned long pollers[POLLERS_MAX]; /* its first argument, when seen */
} t;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "icount: ");
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(EXIT_FAILURE);
}

static unsigned long
peek(pid_t tid, unsigned long at)
{
	errno = 0;
	return (unsigned long)ptrace(PTRACE_PEEKTEXT, tid, (void *)at, NULL);
}

static struct user_regs_struct
regs_of(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) != 0)
		die("registers of %d: %s", tid, strerror(errno));
	return regs;
}

static unsigned long
ip_of(pid_t tid)
{
	void *rip = (void *)offsetof(struct user, regs.rip);

	return (unsigned long)ptrace(PTRACE_PEEKUSER, tid, rip, NULL);
}

static void
go_on(pid_t tid, int sig)
{
	/* it may be gone: the next wait tells */
	(void)ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)sig);
}

/* Was it a look at the clock that stopped the thread? Then answer it. */
static bool
tell_time(pid_t tid)
{
	struct user_regs_struct regs = regs_of(tid);
	unsigned long code = peek(tid, regs.rip);
	unsigned len;

	if ((code & 0xffff) == 0x310f) /* rdtsc */
		len = 2;
	else if ((code & 0xffffff) == 0xf9010f) /* rdtscp */
		len = 3;
	else
		return false;
	if (t.still)
		t.ticks += LOOK_TICKS;
	else
		t.ticks = __rdtsc();
	regs.rax = (uint32_t)t.ticks;
	regs.rdx = t.ticks >> 32;
	if (len == 3)
		regs.rcx = 0;
	regs.rip += len;
	if (ptrace(PTRACE_SETREGS, tid, NULL, &regs) != 0)
		die("registers of %d: %s", tid, strerror(errno));
	return true;
}

static void
ended(int status)
{
	if (WIFSIGNALED(status))
		die("the program ended by signal %d", WTERMSIG(status));
	exit(WEXITSTATUS(status));
}

/* A thread has stopped that nobody waits for: it goes on. */
static void
pass(pid_t tid, int status)
{
	int sig = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

	if (!WIFSTOPPED(status)) {
		if (tid == t.pid)
			ended(status);
		return;
	}
	if (status >> 16 != 0 || sig == SIGSTOP || sig == SIGTRAP) /* ptrace's own */
		sig = 0;
	else if (sig == SIGSEGV && tell_time(tid))
		sig = 0;
	go_on(tid, sig);
}

/* Wait until a thread stops, and let the others go on meanwhile. @return its status */
static int
wait_for(pid_t tid)
{
	int status;
	pid_t who;

	while ((who = waitpid(-1, &status, __WALL)) != tid) {
		if (who < 0)
			die("wait: %s", strerror(errno));
		pass(who, status);
	}
	if (!WIFSTOPPED(status)) {
		if (tid == t.pid)
			ended(status);
		die("thread %d ended while it was counted", tid);
	}
	return status;
}

/* One instruction. */
static void
step(pid_t tid)
{
	int status, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)sig) != 0)
			die("step: %s", strerror(errno));
		status = wait_for(tid);
		sig = WSTOPSIG(status);
		if (status >> 16 != 0 || sig == SIGSTOP)
			sig = 0; /* a thread was made: not yet the end of the step */
		else if (sig == SIGTRAP || (sig == SIGSEGV && tell_time(tid)))
			return;
	}
}

/* Maps addresses to code. */
static void
write_maps(void)
{
	char path[64], line[512];
	FILE *f;

	if (t.mapped)
		return;
	t.mapped = true;
	snprintf(path, sizeof(path), "/proc/%d/maps", t.pid);
	f = fopen(path, "r");
	if (f == NULL)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strchr(line, '/') != NULL || strstr(line, "[vdso]") != NULL)
			fprintf(t.out, "map %s", line);
	fclose(f);
}

/* Step a thread until it is about to execute the instruction at end. */
static void
record(pid_t tid, unsigned long end, const char *row)
{
	unsigned long ip = ip_of(tid), last = 0;

	write_maps();
	fprintf(t.out, "row %s\n", row);
	for (unsigned n = 0; n == 0 || ip != end; n++) {
		if (n == STEPS_MAX)
			die("%s does not end", row);
		if (ip != last) /* a string instruction stops at each of its steps */
			fprintf(t.out, "%lx ", ip);
		last = ip;
		step(tid);
		ip = ip_of(tid);
	}
	fputc('\n', t.out);
}

static void
poke(pid_t tid, unsigned long at, unsigned long word)
{
	if (ptrace(PTRACE_POKETEXT, tid, (void *)at, (void *)word) != 0)
		die("breakpoint: %s", strerror(errno));
}

/* The same without counting, at full speed. Only this thread may come there. */
static void
run_to(pid_t tid, unsigned long end)
{
	unsigned long word = peek(tid, end);
	struct user_regs_struct regs;
	int status;

	step(tid); /* it may be there now */
	poke(tid, end, (word & ~0xfful) | 0xcc);
	go_on(tid, 0);
	while (status = wait_for(tid), WSTOPSIG(status) != SIGTRAP || status >> 16 != 0)
		pass(tid, status);
	poke(tid, end, word);
	regs = regs_of(tid);
	regs.rip = end;
	if (ptrace(PTRACE_SETREGS, tid, NULL, &regs) != 0)
		die("registers of %d: %s", tid, strerror(errno));
}

static void
read_name(pid_t tid, unsigned long at, char name[NAME_LEN])
{
	for (unsigned i = 0; i < NAME_LEN; i += sizeof(long)) {
		unsigned long word = peek(tid, at + i);

		memcpy(name + i, &word, sizeof(word));
		if (memchr(&word, 0, sizeof(word)) != NULL)
			return;
	}
	die("a name that is too long");
}

/* Where the program has the file of HOLD. */
static unsigned long
file_base(void)
{
	unsigned long base = 0;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", t.pid);
	f = fopen(path, "r");
	if (f == NULL)
		die("%s: %s", path, strerror(errno));
	while (base == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, t.file) != NULL)
			base = strtoul(line, NULL, 16);
	fclose(f);
	if (base == 0)
		die("the program has not loaded %s", t.file);
	return base;
}

/* The thread whose name has this part. */
static pid_t
find_thread(void)
{
	char path[64], comm[64];
	struct dirent *d;
	pid_t found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", t.pid);
	dir = opendir(path);
	if (dir == NULL)
		die("%s: %s", path, strerror(errno));
	while (found == 0 && (d = readdir(dir)) != NULL) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", t.pid, atoi(d->d_name));
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fgets(comm, sizeof(comm), f) != NULL && strstr(comm, t.thread) != NULL)
			found = atoi(d->d_name);
		fclose(f);
	}
	closedir(dir);
	if (found == 0)
		die("the program has no thread %s", t.thread);
	return found;
}

/* @return whether arg is that of the poller; one not seen before is */
static bool
is_poller(unsigned i, unsigned long arg)
{
	if (t.pollers[i] != 0)
		return t.pollers[i] == arg;
	for (unsigned k = 0; k < POLLERS_MAX; k++)
		if (t.pollers[k] == arg)
			return false;
	return true;
}

static void
hold(unsigned poller)
{
	int status;

	if (poller >= POLLERS_MAX || t.thread[0] == '\0' || t.held != 0)
		die("nothing to hold");
	t.at = file_base() + t.offset;
	t.held = find_thread();
	if (syscall(SYS_tgkill, t.pid, t.held, SIGSTOP) != 0)
		die("stop: %s", strerror(errno));
	while (status = wait_for(t.held), status >> 16 != 0 || WSTOPSIG(status) != SIGSTOP)
		pass(t.held, status);
	do
		run_to(t.held, t.at);
	while (!is_poller(poller, regs_of(t.held).rdi));
	t.pollers[poller] = regs_of(t.held).rdi;
}

static void
mark(pid_t tid)
{
	struct user_regs_struct regs = regs_of(tid);
	char name[NAME_LEN] = "";

	if (regs.rsi != 0)
		read_name(tid, regs.rsi, name);
	switch ((enum icount_mark)regs.rdi) {
	case ICOUNT_CLOCK:
		t.ticks = __rdtsc();
		t.still = true;
		break;
	case ICOUNT_BEGIN:
		record(tid, regs.rip - 1, name);
		break;
	case ICOUNT_END:
		break;
	case ICOUNT_HOLD:
		hold((unsigned)atoi(name));
		break;
	case ICOUNT_TURN:
		if (t.held == 0)
			die("no thread is held");
		if (name[0] != '\0')
			record(t.held, t.at, name);
		else
			run_to(t.held, t.at);
		break;
	case ICOUNT_LET:
		go_on(t.held, 0);
		t.held = 0;
		break;
	default:
		die("an unknown mark");
	}
	go_on(tid, 0);
}

static void __attribute__((noreturn))
run(char **argv)
{
	setenv("GLIBC_TUNABLES", TUNABLES, 1);
	setenv("LD_BIND_NOW", "1", 1);
	setenv("ICOUNT", "1", 1);
	if (personality(ADDR_NO_RANDOMIZE) < 0 || prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0 ||
		ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
		fprintf(stderr, "icount: cannot be traced here: %s\n", strerror(errno));
		_exit(77);
	}
	raise(SIGSTOP);
	execvp(argv[0], argv);
	fprintf(stderr, "icount: %s: %s\n", argv[0], strerror(errno));
	_exit(EXIT_FAILURE);
}

static void
trace(void)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	int status;
	pid_t who;

	if (waitpid(t.pid, &status, 0) != t.pid)
		die("wait: %s", strerror(errno));
	if (!WIFSTOPPED(status))
		ended(status);
	if (ptrace(PTRACE_SETOPTIONS, t.pid, NULL, (void *)options) != 0)
		die("options: %s", strerror(errno));
	go_on(t.pid, 0);
	while ((who = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0 &&
			(peek(who, ip_of(who) - 1) & 0xff) == 0xcc)
			mark(who);
		else
			pass(who, status);
	}
	die("wait: %s", strerror(errno));
}

int
main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: icount OUT HOLD COMMAND [ARG...]\n");
		return 2;
	}
	t.out = fopen(argv[1], "w");
	if (t.out == NULL)
		die("%s: %s", argv[1], strerror(errno));
	if (strcmp(argv[2], "-") != 0 &&
		sscanf(argv[2], "%31[^:]:%255[^:]:%lx", t.thread, t.file, &t.offset) != 3)
		die("%s: not THREAD:FILE:OFFSET", argv[2]);
	t.pid = fork();
	if (t.pid < 0)
		die("fork: %s", strerror(errno));
	if (t.pid == 0)
		run(argv + 3);
	trace();
}
