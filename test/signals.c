/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * signals.c - to be preloaded: the main thread of each process has a timer whose handler restarts nothing
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS 500000

static void
on_signal(int sig)
{
	(void)sig;
}

/* To this thread, by a signal that does nothing where no handler is set. */
static void
begin(void)
{
	const struct itimerspec often = {{0, EVERY_NS}, {0, EVERY_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
		timer_settime(timer, 0, &often, NULL) != 0)
		abort();
}

__attribute__((constructor)) static void
signals_start(void)
{
	const struct sigaction act = {.sa_handler = on_signal};

	if (sigaction(SIGURG, &act, NULL) != 0 || pthread_atfork(NULL, NULL, begin) != 0)
		abort();
	begin();
}
