/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * unit.c - comparisons that say why, seeds, a start, a main
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "plx_conf.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"

#include "../quiet_fork.h"
#include "../test_util.h"

bool
unit_eq(long long got, long long want, const char *what, const char *file, int line, bool fatal)
{
	char text[512];

	if (got == want) {
		CU_assertImplementation(CU_TRUE, line, what, file, "", CU_FALSE);
		return true;
	}
	snprintf(text, sizeof(text), "%s: %lld (%#llx), not %lld", what, got, got, want);
	CU_assertImplementation(CU_FALSE, line, text, file, "", fatal ? CU_TRUE : CU_FALSE);
	return false;
}

bool
unit_same(const void *a, const void *b, uint64_t len, const char *what, const char *file, int line)
{
	const uint8_t *x = a, *y = b;
	char text[512];
	uint64_t i = 0;

	if (len == 0 || memcmp(a, b, len) == 0) {
		CU_assertImplementation(CU_TRUE, line, what, file, "", CU_FALSE);
		return true;
	}
	while (x[i] == y[i])
		i++;
	snprintf(text, sizeof(text), "%s: byte %" PRIu64 " of %" PRIu64 " is %#x, not %#x", what, i,
		len, x[i], y[i]);
	CU_assertImplementation(CU_FALSE, line, text, file, "", CU_FALSE);
	return false;
}

uint64_t
unit_rng(uint64_t *state)
{
	return util_splitmix64(state);
}

static const char *seed_text;

uint64_t
unit_seed(uint64_t def)
{
	uint64_t seed;

	if (seed_text == NULL)
		seed_text = getenv("PLX_TEST_SEED");
	seed = seed_text != NULL ? strtoull(seed_text, NULL, 0) : def;
	printf("seed %" PRIu64 " ", seed);
	fflush(stdout);
	return seed;
}

void
unit_fill(void *buf, uint64_t len, uint64_t key)
{
	uint64_t state = key, v = 0;
	uint8_t *p = buf;

	for (uint64_t i = 0; i < len; i++, v >>= 8) {
		if (i % 8 == 0)
			v = unit_rng(&state);
		p[i] = v;
	}
}

bool
unit_is_filled(const void *buf, uint64_t len, uint64_t key)
{
	uint64_t state = key, v = 0;
	const uint8_t *p = buf;

	for (uint64_t i = 0; i < len; i++, v >>= 8) {
		if (i % 8 == 0)
			v = unit_rng(&state);
		if (p[i] == (uint8_t)v)
			continue;
		printf("byte %" PRIu64 " of %" PRIu64 " is %#x, not %#x\n", i, len, p[i],
			(unsigned)(v & 0xff));
		return false;
	}
	return true;
}

int
unit_start(void)
{
	const char *env = getenv("PLX_TEST_SEED");
	int rc;

	seed_text = env != NULL ? strdup(env) : NULL;
	unsetenv("PLX_TEST_SEED"); /* it is no setting, and the log would say so */
	rc = plx_init_get(plx_conf_process());
	if (rc != 0) {
		fprintf(stderr, "skipped: Pollux does not start here: %s\n", strerror(-rc));
		return 77;
	}
	plx_log_set_level(RTE_LOG_EMERG); /* bad input is logged, and tests are full of it */
	fake_reset(1);
	return plx_dev_register(&fake_dev_ops) == 0 ? 0 : 1;
}

unsigned
unit_open_files(void)
{
	return util_open_files();
}

int
unit_run(CU_SuiteInfo *suites)
{
	unsigned failures;

	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
