/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * check.c - a program that uses the library in the way that its argument names; for run_check.py
 *
 * load nothing but that; start a context; kill itself in the middle; fork three children that start one;
 * exec itself once it has; segv says whether somebody catches SIGSEGV
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

static ucp_context_h
start(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucp_context_h ctx;

	if (ucp_init(&params, NULL, &ctx) != UCS_OK)
		exit(1);
	return ctx;
}

int
main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "start";
	struct sigaction old;

	if (strcmp(way, "load") == 0)
		return 0;
	if (strcmp(way, "segv") == 0) {
		sigaction(SIGSEGV, NULL, &old);
		printf("%s\n", old.sa_handler == SIG_DFL ? "default" : "caught");
		return 0;
	}
	for (int i = 0; strcmp(way, "fork") == 0 && i < 3; i++) {
		if (fork() == 0) {
			ucp_cleanup(start());
			return 0;
		}
	}
	if (strcmp(way, "fork") == 0) {
		while (wait(NULL) > 0)
			;
		return 0;
	}
	if (strcmp(way, "kill") == 0) {
		start();
		raise(SIGKILL);
	}
	if (strcmp(way, "exec") == 0) {
		start();
		execl("/proc/self/exe", argv[0], "start", NULL);
		return 1;
	}
	ucp_cleanup(start());
	return 0;
}
