/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_if_test.c - which addresses of a host the settings allow
 */
#include <arpa/inet.h>
#include <string.h>

#include <rte_common.h>

#include "plx_unit.h"

#include "tcp_conf.h"
#include "tcp_if.h"

static bool
allows(const char *interfaces, uint8_t family, const char *name, const char *address)
{
	struct tcp_if_conf conf = {.text = interfaces, .family = family};
	struct tcp_ip ip = {.family = strchr(address, ':') != NULL ? 6 : 4};

	UNIT_EQ_FATAL(inet_pton(ip.family == 4 ? AF_INET : AF_INET6, address, ip.bytes), 1);
	return tcp_if_is_allowed(&conf, name, &ip);
}

static void
without_a_setting_all_are_allowed_but_bridges_and_link_local(void)
{
	UNIT_TRUE(allows("", TCP_FAMILY_ANY, "eth0", "10.1.2.3"));
	UNIT_TRUE(allows("", TCP_FAMILY_ANY, "ib0", "fd77::1"));
	UNIT_TRUE(!allows("", TCP_FAMILY_ANY, "docker0", "172.17.0.1"));
	UNIT_TRUE(!allows("", TCP_FAMILY_ANY, "virbr1", "192.168.122.1"));
	UNIT_TRUE(!allows("", TCP_FAMILY_ANY, "eth0", "169.254.1.1"));
	UNIT_TRUE(!allows("", TCP_FAMILY_ANY, "eth0", "fe80::1"));
	UNIT_TRUE(!allows("", TCP_FAMILY_ANY, "eth0", "febf::1"));
	UNIT_TRUE(allows("", TCP_FAMILY_ANY, "eth0", "fec0::1"));
}

static void
a_list_names_interfaces_and_networks(void)
{
	const char *list = "eth1, 10.1.0.0/15,fd77:0:8000::/33,192.168.7.9,docker0";

	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "eth1", "11.0.0.1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth10", "11.0.0.1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth", "11.0.0.1"));
	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "eth0", "10.0.255.255"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth0", "10.2.0.0"));
	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "eth0", "fd77:0:ffff::1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth0", "fd77:0:7fff::1"));
	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "eth0", "192.168.7.9"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth0", "192.168.7.8"));
	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "docker0", "172.17.0.1")); /* as it is named */
}

static void
a_list_behind_a_caret_leaves_them_out(void)
{
	const char *list = "^eth1,10.1.0.0/16";

	UNIT_TRUE(allows(list, TCP_FAMILY_ANY, "eth0", "10.2.0.1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth0", "10.1.0.1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "eth1", "10.2.0.1"));
	UNIT_TRUE(!allows(list, TCP_FAMILY_ANY, "docker0", "172.17.0.1"));
}

static void
a_family_leaves_the_other_out(void)
{
	UNIT_TRUE(allows("", TCP_FAMILY_4, "eth0", "10.1.2.3"));
	UNIT_TRUE(!allows("", TCP_FAMILY_4, "eth0", "fd77::1"));
	UNIT_TRUE(!allows("eth0", TCP_FAMILY_6, "eth0", "10.1.2.3"));
	UNIT_TRUE(allows("eth0", TCP_FAMILY_6, "eth0", "fd77::1"));
}

/* Nor is it all of them. */
static void
what_is_no_network_is_none(void)
{
	static const char *const bad[] = {"10.1.2.3/", "10.1.2.3/x", "10.1.2.3/8x", "10.1.2.3/33", "10.1.2.3/-1", "10.1.2.3/ ",
		"10.1/16", "::/129", "/0", "0/0", "fd77::1/", "10.1.2.3/1000"};

	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		UNIT_TRUE(!allows(bad[i], TCP_FAMILY_ANY, "eth0", "10.1.2.4"));
		UNIT_TRUE(!allows(bad[i], TCP_FAMILY_ANY, "eth0", "fd77::2"));
	}
	UNIT_TRUE(allows("0.0.0.0/0", TCP_FAMILY_ANY, "eth0", "10.1.2.4"));
}

/* The names and addresses of this host, whatever they are. */
static void
what_the_host_has_is_listed_and_told_of(void)
{
	struct tcp_if_conf all = {.text = "lo"}, none = {.text = "no-such-interface"};
	struct tcp_if ifs[TCP_IF_MAX];
	struct tcp_ip ips[TCP_ENDS_MAX];
	unsigned n = tcp_if_list(&all, ifs), used = 0;
	struct tcp_addr own = {.version = TCP_ADDR_VERSION};

	for (unsigned i = 0; i < n; i++) {
		UNIT_TRUE(ifs[i].used == (strcmp(ifs[i].name, "lo") == 0));
		used += ifs[i].used;
	}
	UNIT_TRUE_FATAL(used > 0);
	tcp_if_advertise(&all, &own);
	UNIT_EQ(tcp_addr_ends(&own, ips), used < 2 ? used : 2); /* there is nothing else: one of each family */
	UNIT_TRUE(tcp_ip_is_loopback(&ips[0]));
	tcp_if_advertise(&none, &own);
	UNIT_EQ(tcp_addr_ends(&own, ips), 0);
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(without_a_setting_all_are_allowed_but_bridges_and_link_local),
		UNIT_TEST(a_list_names_interfaces_and_networks),
		UNIT_TEST(a_list_behind_a_caret_leaves_them_out),
		UNIT_TEST(a_family_leaves_the_other_out),
		UNIT_TEST(what_is_no_network_is_none),
		UNIT_TEST(what_the_host_has_is_listed_and_told_of),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"tcp_if", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
