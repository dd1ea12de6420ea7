/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_tls_test.c - UCX's lists choose our devices
 */
#include <string.h>

#include <CUnit/Basic.h>

#include "plx_unit.h"

#include "ucp_int.h"

#define ALL "shm,net_mlx,net_tcp"
#define NETS "net_mlx,net_tcp"

static struct plx_conf conf;

static void
set(const char *name, const char *text)
{
	UNIT_EQ_FATAL(plx_conf_set_ucx(&conf, name, text, PLX_CONF_FROM_API, NULL), 0);
}

static void
lists_of_transports_choose_devices(void)
{
	static const struct {
		const char *tls, *devices; /* NULL: none is left */
		int cma;
	} rows[] = {
		{"all", ALL, PLX_CONF_AUTO},
		{"posix,cma,self", "shm", PLX_CONF_AUTO},
		{"posix,self", "shm", PLX_CONF_NO},
		{"sysv", "shm", PLX_CONF_NO},
		{"mm", "shm", PLX_CONF_NO},
		{"sm", "shm", PLX_CONF_AUTO},
		{"shm,self", "shm", PLX_CONF_AUTO},
		{"posix,xpmem", "shm", PLX_CONF_AUTO},
		{"knem", "shm", PLX_CONF_AUTO},
		{"self", "shm", PLX_CONF_NO},
		{"rc", "net_mlx", PLX_CONF_NO},
		{"rc_x,self,sm", "shm,net_mlx", PLX_CONF_AUTO},
		{"\\dc_mlx5,ud:aux", "net_mlx", PLX_CONF_NO},
		{"ud_verbs", "net_mlx", PLX_CONF_NO},
		{"ib,cuda_copy,nonsense", "net_mlx", PLX_CONF_NO},
		{"tcp", "net_tcp", PLX_CONF_NO},
		{"tcp,cuda", "net_tcp", PLX_CONF_NO},
		{"tcp,sm", "shm,net_tcp", PLX_CONF_AUTO},
		{"cuda", NULL, 0},
		{"ud:aux", NULL, 0},
		{"nonsense", NULL, 0},
		{"\\", NULL, 0},
		{"RC", NULL, 0},
		{"^tcp", "shm,net_mlx", PLX_CONF_AUTO},
		{"^cma", ALL, PLX_CONF_NO},
		{"^sm", NETS, PLX_CONF_AUTO},
		{"^posix,sysv", NETS, PLX_CONF_AUTO},
		{"^posix", ALL, PLX_CONF_AUTO},
		{"^ib", "shm,net_tcp", PLX_CONF_AUTO},
		{"^rc_v,rc_x", "shm,net_tcp", PLX_CONF_AUTO},
		{"^rc_v", ALL, PLX_CONF_AUTO},
		{"^ib,shm", "net_tcp", PLX_CONF_AUTO},
		{"^ib,shm,tcp", NULL, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		plx_conf_defaults(&conf);
		set("TLS", rows[i].tls);
		if (rows[i].devices == NULL) {
			UNIT_EQ(ucp_tls_choose(&conf), UCS_ERR_NO_DEVICE);
			continue;
		}
		UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
		if (strcmp(plx_conf_str(&conf, PLX_CONF_DEVICES), rows[i].devices) != 0 ||
			plx_conf_u64(&conf, plx_conf_find("shm.cma")) != (uint64_t)rows[i].cma) {
			CU_FAIL("another choice");
			printf("%s is %s\n", rows[i].tls, plx_conf_str(&conf, PLX_CONF_DEVICES));
		}
	}
	plx_conf_defaults(&conf);
	set("TLS", "");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_ERR_NO_ELEM);
}

static void
lists_of_devices_choose_devices(void)
{
	static const struct {
		const char *shm, *net, *devices;
	} rows[] = {
		{"all", "all", ALL},
		{"memory", "all", ALL},
		{"^memory", "all", NETS},
		{"disk", "all", NETS},
		{"all", "mlx5_0:1", "shm,net_mlx"},
		{"all", "^mlx5_0:1", ALL},
		{"all", "eth0", "shm,net_tcp"},
		{"all", "eth0,mlx5_[0-1]:1", ALL},
		{"all", "", "shm"},
		{"^memory", "eth0", "net_tcp"},
		{"^memory", "", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		plx_conf_defaults(&conf);
		set("SHM_DEVICES", rows[i].shm);
		set("NET_DEVICES", rows[i].net);
		UNIT_EQ(ucp_tls_choose(&conf), rows[i].devices != NULL ? UCS_OK : UCS_ERR_NO_DEVICE);
		if (rows[i].devices != NULL)
			CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_DEVICES), rows[i].devices);
	}
}

static void
settings_of_ours_count_above_the_lists(void)
{
	plx_conf_defaults(&conf);
	UNIT_EQ(plx_conf_set(&conf, "worker.devices", "shm", PLX_CONF_FROM_ENV, NULL), 0);
	set("TLS", "tcp");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_DEVICES), "shm");
	plx_conf_defaults(&conf);
	UNIT_EQ(plx_conf_set(&conf, "shm.cma", "auto", PLX_CONF_FROM_ENV, NULL), 0);
	set("TLS", "posix");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
	UNIT_EQ(plx_conf_u64(&conf, plx_conf_find("shm.cma")), PLX_CONF_AUTO);
}

static void
without_shared_memory_the_threshold_is_that_of_other_nodes(void)
{
	plx_conf_defaults(&conf);
	set("RNDV_THRESH", "intra:1k,inter:64k");
	set("TLS", "rc,sm");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
	UNIT_EQ(plx_conf_u64(&conf, PLX_CONF_EAGER_MAX), 1023);
	plx_conf_defaults(&conf);
	set("RNDV_THRESH", "intra:1k,inter:64k");
	set("TLS", "rc");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
	UNIT_EQ(plx_conf_u64(&conf, PLX_CONF_EAGER_MAX), 65535);
	plx_conf_defaults(&conf);
	set("RNDV_THRESH", "intra:1k,inter:64k");
	UNIT_EQ(plx_conf_set(&conf, "proto.eager_max", "77", PLX_CONF_FROM_API, NULL), 0);
	set("TLS", "rc");
	UNIT_EQ(ucp_tls_choose(&conf), UCS_OK);
	UNIT_EQ(plx_conf_u64(&conf, PLX_CONF_EAGER_MAX), 77);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(lists_of_transports_choose_devices),
	UNIT_TEST(lists_of_devices_choose_devices),
	UNIT_TEST(settings_of_ours_count_above_the_lists),
	UNIT_TEST(without_shared_memory_the_threshold_is_that_of_other_nodes),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"ucp_tls", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	plx_log_set_level(RTE_LOG_EMERG); /* refusals are what is asked for */
	return unit_run(suites);
}
