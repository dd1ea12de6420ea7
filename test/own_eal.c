/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * own_eal.c - a program with an EAL of its own: may it launch a function on its second lcore?
 *
 * usage: own_eal [EAL options] -- [LCORES]   LCORES for reactors, named by the program itself
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <ucp/api/ucp.h>

static int
answer(void *arg)
{
	(void)arg;
	return 42;
}

/* @return what the lcore answers, or the error of the launch */
static int
launch(unsigned lcore)
{
	int rc = rte_eal_remote_launch(answer, NULL, lcore);

	return rc != 0 ? rc : rte_eal_wait_lcore(lcore);
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	int used = rte_eal_init(argc, argv);
	ucp_config_t *config;
	ucp_context_h context;
	unsigned lcore;

	if (used < 0 || rte_lcore_count() < 2 || ucp_config_read(NULL, NULL, &config) != UCS_OK)
		return EXIT_FAILURE;
	lcore = rte_get_next_lcore(-1, 1, 0);
	if (argc - used > 1 && ucp_config_modify(config, "reactor.lcores", argv[used + 1]) != UCS_OK)
		return EXIT_FAILURE;
	if (ucp_init(&params, config, &context) != UCS_OK)
		return EXIT_FAILURE;
	ucp_config_release(config);
	printf("during %d\n", launch(lcore));
	ucp_cleanup(context);
	printf("after %d\n", launch(lcore));
	return rte_eal_cleanup() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
