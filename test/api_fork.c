/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * api_fork.c - forks a child of a test, which begins when its parent lets it
 */
#include <stdlib.h>
#include <unistd.h>

#include "api_fork.h"
#include "api_run.h"

pid_t
api_fork(void (*child)(void *arg), void (*meanwhile)(void *arg), void *arg)
{
	int go[2];
	pid_t pid;
	char c;

	CU_ASSERT_EQUAL_FATAL(pipe(go), 0);
	api_take_free_huge_pages();
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(API_CHILD_S);
		close(go[1]);
		SO(read(go[0], &c, 1) == 0);
		close(go[0]);
		child(arg);
		_exit(0);
	}
	CU_ASSERT_FATAL(pid > 0);
	close(go[0]);
	meanwhile(arg);
	close(go[1]);
	return pid;
}

/* Memory that it inherited and may not free would be a leak to a sanitizer. */
_Noreturn void
api_child_leave(void)
{
#if defined(__SANITIZE_ADDRESS__)
	fflush(NULL);
	_exit(0);
#else
	exit(0);
#endif
}
