/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * child.c - other programs, and this one again: started, on another library, and stopped
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

#define CHILD_TLS "posix,cma,self"

void
child_arg(struct child_args *a, const char *fmt, ...)
{
	va_list ap;

	if (a->n + 1 >= CHILD_MAX_ARGS)
		return;
	va_start(ap, fmt);
	if (vasprintf(&a->v[a->n], fmt, ap) >= 0)
		a->v[++a->n] = NULL;
	va_end(ap);
}

void
child_args_free(struct child_args *a)
{
	while (a->n > 0)
		free(a->v[--a->n]);
}

/* Put it before the present library path. */
static void
child_library_path(const char *path)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char all[8300];

	snprintf(all, sizeof(all), "%s%s%.4000s", path, before != NULL ? ":" : "",
		before != NULL ? before : "");
	setenv("LD_LIBRARY_PATH", all, 1);
}

static void
child_env(const struct child_how *how)
{
	if (how->ucx != NULL) {
		setenv("LD_PRELOAD", how->ucx->lib, 1);
		if (how->ucx->path[0] != '\0')
			child_library_path(how->ucx->path);
	}
	if (how->tls || how->ucx != NULL)
		setenv("UCX_TLS", CHILD_TLS, 0);
	for (int i = 0; i < CHILD_MAX_ENV; i++) {
		if (how->env[i][0] != '\0')
			putenv(strdup(how->env[i]));
	}
}

/* Start a program in a process group of its own. */
pid_t
child_start(const struct child_args *a, const struct child_how *how)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid > 0)
		setpgid(pid, pid); /* both processes do it: the child may have to be killed before
		                    * it runs */
	if (pid != 0)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_env(how);
	if (how->cpu >= 0)
		place_pin(how->cpu);
	if (how->out != NULL) {
		int fd = open(how->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		if (fd >= 0)
			dup2(fd, STDOUT_FILENO);
	}
	execvp(a->v[0], a->v);
	fprintf(stderr, "commperf: %s: %s\n", a->v[0], strerror(errno));
	_exit(127);
}

/*
 * Wait until deadline (s, of place_now()); after it, or when the user stops all, the whole
 * group is killed. Exit status, or -1.
 */
int
child_finish(pid_t pid, double deadline)
{
	int status;

	if (pid < 0)
		return -1;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			break;
		if (got < 0)
			return -1;
		if (place_now() > deadline || perf_stopped() != 0) {
			kill(-pid, SIGKILL);
			TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
			if (perf_stopped() == 0)
				report_say("a program did not end in time and was killed");
			return -1;
		}
		usleep(2000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void
child_find_program(const char *name, char *out, size_t len)
{
	static const char *const places[] = {"", "../", "../../", "../../usertools/", "../../../usertools/"};
	char exe[2048], *dir;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct stat st;

	exe[n > 0 ? n : 0] = '\0';
	dir = dirname(exe);
	for (size_t i = 0; i < RTE_DIM(places) && n > 0; i++) {
		snprintf(out, len, "%s/%s%s", dir, places[i], name);
		if (access(out, X_OK) == 0 && stat(out, &st) == 0 && S_ISREG(st.st_mode))
			return;
	}
	snprintf(out, len, "%s/../%s/%s", dir, name, name);
	if (n <= 0 || access(out, X_OK) != 0)
		snprintf(out, len, "%s", name);
}

/* A UCX that is installed under a prefix, or built there. */
static int
child_find_under(const char *prefix, struct child_ucx *ucx)
{
	static const char *const places[] = {"lib", "lib64", "src/ucp/.libs"};

	for (size_t i = 0; i < RTE_DIM(places); i++) {
		snprintf(ucx->path, sizeof(ucx->path), "%.4000s/%s", prefix, places[i]);
		snprintf(ucx->lib, sizeof(ucx->lib), "%.4000s/%s/libucp.so.0", prefix, places[i]);
		if (access(ucx->lib, R_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/* The path that ldconfig knows for this name. */
static int
child_find_installed(struct child_ucx *ucx)
{
	FILE *f = popen("PATH=\"$PATH:/sbin:/usr/sbin\" ldconfig -p 2>/dev/null", "r");
	char line[4096];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *arrow = strstr(line, "=> ");

		if (arrow == NULL || strstr(line, "libucp.so.0 ") == NULL)
			continue;
		arrow[strcspn(arrow, "\n")] = '\0';
		snprintf(ucx->lib, sizeof(ucx->lib), "%.4000s", arrow + 3);
		break;
	}
	if (f != NULL)
		pclose(f);
	return ucx->lib[0] != '\0' ? 0 : -ENOENT;
}

/* 0, or a negative value after an error was printed. */
int
child_find_ucx(const struct perf_opts *o, struct child_ucx *ucx)
{
	int rc;

	memset(ucx, 0, sizeof(*ucx));
	if (o->ucx_lib != NULL) {
		snprintf(ucx->lib, sizeof(ucx->lib), "%s", o->ucx_lib);
		rc = access(ucx->lib, R_OK) == 0 ? 0 : -ENOENT;
	} else {
		rc = o->ucx_prefix != NULL ? child_find_under(o->ucx_prefix, ucx)
					   : child_find_installed(ucx);
	}
	if (rc != 0)
		fprintf(stderr, "commperf: UCX's libucp.so.0 is not found%s%s; name it with --ucx or "
				"--ucx-lib\n",
			o->ucx_prefix != NULL ? " under " : "",
			o->ucx_prefix != NULL ? o->ucx_prefix : "");
	return rc;
}
