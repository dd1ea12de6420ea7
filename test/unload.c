/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * unload.c - a library that was loaded, used and unloaded, and the process goes on as it was
 *
 * Its limits are what they were. Where it may not make files as long as the EAL's memory, an argument says so.
 *
 * Threads of the EAL, which ucp_cleanup() leaves, wait in system calls. A process that is stopped
 * and goes on ends those with EINTR, and the threads return to the library's code. If that were
 * gone they would crash.
 * usage: unload LIBRARY [ROUNDS]
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#define FN(lib, name) ((__typeof__(&(name)))(uintptr_t)fn(lib, #name))

static void *
fn(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (p == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return p;
}

/* As far as it has UCP: the library of CCI is only loaded. */
static void
use_ucp(const char *path, void *lib)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_worker_params_t wp = {.field_mask = 0};
	ucp_context_h ctx;
	ucp_worker_h w;

	if (dlsym(lib, "ucp_init_version") == NULL)
		return;
	if (FN(lib, ucp_init_version)(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &ctx) != UCS_OK ||
		FN(lib, ucp_worker_create)(ctx, &wp, &w) != UCS_OK) {
		fprintf(stderr, "%s does not start\n", path);
		exit(2);
	}
	FN(lib, ucp_worker_progress)(w);
	FN(lib, ucp_worker_destroy)(w);
	FN(lib, ucp_cleanup)(ctx);
}

static void
use(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (lib == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	use_ucp(path, lib);
	if (dlclose(lib) != 0)
		exit(2);
}

static void
nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* Below the hard limit, to which the EAL raises it. */
static void
use_with_limit(const char *path, int rounds)
{
	struct rlimit lim, after;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0)
		exit(2);
	lim.rlim_cur = 256;
	if (setrlimit(RLIMIT_NOFILE, &lim) != 0)
		exit(2);
	for (int i = 0; i < rounds; i++)
		use(path);
	if (getrlimit(RLIMIT_NOFILE, &after) != 0 || after.rlim_cur != lim.rlim_cur || after.rlim_max != lim.rlim_max) {
		fprintf(stderr, "%s has changed the limit of open files to %llu\n", path,
			(unsigned long long)after.rlim_cur);
		exit(1);
	}
}

/* It does not start, and the process lives. */
static void
use_without_files(const char *path)
{
	const struct rlimit lim = {1 << 20, 1 << 20};
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ucp_context_h ctx;
	ucs_status_t status;

	if (lib == NULL || setrlimit(RLIMIT_FSIZE, &lim) != 0)
		_exit(2);
	if (dlsym(lib, "ucp_init_version") == NULL)
		_exit(0);
	status = FN(lib, ucp_init_version)(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &ctx);
	if (status == UCS_OK) {
		fprintf(stderr, "%s has started with files of at most 1 MiB\n", path);
		_exit(1);
	}
	_exit(0);
}

/* In a process of its own, which the first stops and lets go on. */
static void
child(const char *path, int rounds)
{
	use_with_limit(path, rounds);
	raise(SIGSTOP);
	nap(); /* whoever returns does so now */
	if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL) {
		fprintf(stderr, "%s is gone\n", path);
		_exit(1);
	}
	_exit(0);
}

int
main(int argc, char **argv)
{
	int status, rounds = argc > 2 ? atoi(argv[2]) : 1;
	pid_t pid;

	if (argc < 2)
		return 2;
	pid = fork();
	if (pid == 0)
		use_without_files(argv[1]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "with files of at most 1 MiB: %s\n", strsignal(WTERMSIG(status)));
		return 1;
	}
	if (WEXITSTATUS(status) != 0)
		return WEXITSTATUS(status);
	pid = fork();
	if (pid == 0)
		child(argv[1], rounds);
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid)
		return 2;
	if (WIFSTOPPED(status)) {
		nap();
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, 0) != pid)
			return 2;
	}
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "after the library was unloaded: %s\n", strsignal(WTERMSIG(status)));
		return 1;
	}
	return WEXITSTATUS(status);
}
