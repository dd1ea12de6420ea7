/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * main.c - pollux_info: what a program of this user would find here
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "plx_config.h"
#include "plx_init.h"

#include "info.h"

static const char info_help[] =
	"pollux_info - what a program on Pollux finds here\n"
	"\n"
	"usage: pollux_info [OPTIONS]\n"
	"\n"
	"  -a, --all      every setting, and all variables of the environment\n"
	"  -j, --json     all of it as JSON\n"
	"  -h, --help     this text\n"
	"      --version  the version\n"
	"\n"
	"Run it where the program runs: in its container, as its user, with its environment.\n";

static const struct option info_options[] = {
	{"all", no_argument, NULL, 'a'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'v'},
	{NULL, 0, NULL, 0},
};

static json_t *
info_collect(void)
{
	const struct plx_conf *conf = plx_conf_process();

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "build", info_build(), "devices", info_devices(conf),
		"pages", info_pages(conf), "copies", info_copies(conf), "namespaces", info_namespaces(),
		"environment", info_environment(), "settings", info_settings(conf));
}

static int
info_show(int json, int all)
{
	int rc = plx_init_drivers(); /* before settings are read: drivers have some, too */
	json_t *info = rc == 0 ? info_collect() : NULL;

	if (rc != 0) {
		fprintf(stderr, "pollux_info: drivers: %s\n", strerror(-rc));
		return 1;
	}
	if (info == NULL) {
		fputs("pollux_info: out of memory\n", stderr);
		return 1;
	}
	if (json) {
		json_dumpf(info, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		info_print(info, all);
	}
	json_decref(info);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int
info_usage(void)
{
	fputs("pollux_info: try --help\n", stderr);
	return 2;
}

int
main(int argc, char **argv)
{
	int all = 0, json = 0, c;

	while ((c = getopt_long(argc, argv, "ajh", info_options, NULL)) != -1) {
		switch (c) {
		case 'a':
			all = 1;
			break;
		case 'j':
			json = 1;
			break;
		case 'h':
			fputs(info_help, stdout);
			return 0;
		case 'v':
			puts("pollux_info " PLX_VERSION);
			return 0;
		default:
			return info_usage();
		}
	}
	return optind == argc ? info_show(json, all) : info_usage();
}
