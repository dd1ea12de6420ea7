/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * main.c - testcomm: a shell on real workers, for any situation that a person sets up by hand
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "testcomm.h"

#define MAIN_SHORT "f:c:ekivnh"

static const struct option main_options[] = {
	{"file", required_argument, NULL, 'f'},
	{"command", required_argument, NULL, 'c'},
	{"exit-on-error", no_argument, NULL, 'e'},
	{"keep-going", no_argument, NULL, 'k'},
	{"interactive", no_argument, NULL, 'i'},
	{"verbose", no_argument, NULL, 'v'},
	{"no-history", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char main_help[] =
	"testcomm - a shell on the workers and endpoints of a communication library\n"
	"\n"
	"usage: testcomm [EAL OPTIONS] -- [OPTIONS]      or      testcomm [OPTIONS]\n"
	"\n"
	"  -f, --file FILE       run the commands of a file; \"-\" is the standard input\n"
	"  -c, --command TEXT    run commands, \";\" between them\n"
	"  -i, --interactive     continue at the prompt after -f and -c\n"
	"  -e, --exit-on-error   end with status 1 at the first command that fails\n"
	"                        (default, except at the prompt)\n"
	"  -k, --keep-going      continue after a command that fails\n"
	"  -v, --verbose         show each command before it runs\n"
	"  -n, --no-history      do not save the lines of the prompt\n"
	"  -h, --help            this text; \"help\" at the prompt lists the commands\n"
	"\n"
	"Without -f and -c: the prompt, or the standard input when that is not a terminal.\n"
	"With EAL options testcomm starts the EAL; otherwise the library starts what it needs.\n";

/* Everything up to "--" is for the EAL. Returns how many words to skip, or negative. */
static int
main_eal(int argc, char **argv)
{
	int dash = 1, rc;

	while (dash < argc && strcmp(argv[dash], "--") != 0)
		dash++;
	if (dash == argc)
		return 0;
	if (dash == 1)
		return 1;
	argv[dash] = NULL;
	rc = rte_eal_init(dash, argv);
	argv[dash] = argv[0];
	if (rc >= 0)
		return dash;
	fprintf(stderr, "testcomm: the EAL does not start: %s\n", strerror(rte_errno));
	return -1;
}

static int
main_file(struct tc *tc, const char *path)
{
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0) {
		tc->status = 1;
		return tc_error(tc, "%s cannot be read: %s", path, strerror(errno));
	}
	rc = tc_run_fd(tc, fd, fd == STDIN_FILENO ? "stdin" : path);
	if (fd != STDIN_FILENO)
		close(fd);
	return rc;
}

static void
main_end(struct tc *tc)
{
	tc_cci_end();
	tc_eps_close(tc);
	if (tc->n_eps != 0) {
		/* an endpoint that cannot be closed: its worker cannot be ended either */
		fflush(NULL);
		_exit(tc->status != 0 ? tc->status : 1);
	}
	tc_workers_destroy(tc);
	tc_reqs_free(tc);
}

int
main(int argc, char **argv)
{
	static struct tc tc;
	bool given = false, interactive = false, keep = false, stop = false;
	int skip, c, rc = 0;

	tc.out = stdout;
	tc.timeout_ms = 5000;
	tc.history = true;
	skip = main_eal(argc, argv);
	if (skip < 0)
		return 2;
	argv[skip] = argv[0];
	argv += skip;
	argc -= skip;
	tc_interrupt_setup();
	tc.stop_error = true;
	optind = 1;
	while ((c = getopt_long(argc, argv, MAIN_SHORT, main_options, NULL)) != -1) {
		switch (c) {
		case 'f':
		case 'c':
			given = true;
			break;
		case 'e':
			stop = true;
			break;
		case 'k':
			keep = true;
			break;
		case 'i':
			interactive = true;
			break;
		case 'v':
			tc.verbose = true;
			break;
		case 'n':
			tc.history = false;
			break;
		case 'h':
			fputs(main_help, stdout);
			return 0;
		default:
			fputs("testcomm: try --help\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "testcomm: unexpected argument \"%s\"; try --help\n", argv[optind]);
		return 2;
	}
	tc.stop_error = !keep;
	optind = 1;
	while (!tc.quit && (c = getopt_long(argc, argv, MAIN_SHORT, main_options, NULL)) != -1) {
		if (c == 'f')
			rc |= main_file(&tc, optarg);
		else if (c == 'c')
			rc |= tc_run_text(&tc, optarg);
	}
	if (!tc.quit && (interactive || !given)) {
		bool terminal = isatty(STDIN_FILENO), prompt = terminal || interactive;

		tc.idle = prompt;
		tc.stop_error = prompt ? stop : !keep;
		c = terminal && isatty(STDOUT_FILENO)
			? tc_edit_run(&tc) : tc_run_fd(&tc, STDIN_FILENO, prompt ? NULL : "stdin");
		rc |= prompt ? 0 : c;
	}
	main_end(&tc);
	return tc.status != 0 || rc != 0;
}
