/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_if_test.c - which addresses of a host the settings allow
 */
#include <arpa/inet.h>
#include <stdio.h>
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
	UNIT_EQ(tcp_addr_ends(&own, ips), RTE_MIN(used, (unsigned)TCP_ENDS_MAX)); /* there is nothing else */
	UNIT_TRUE(tcp_ip_is_loopback(&ips[0]));
	tcp_if_advertise(&none, &own);
	UNIT_EQ(tcp_addr_ends(&own, ips), 0);
}

static struct tcp_if
an_if(const char *address, uint8_t rank)
{
	struct tcp_if at = {.ip.family = strchr(address, ':') != NULL ? 6 : 4, .used = true, .rank = rank};

	UNIT_EQ_FATAL(inet_pton(at.ip.family == 4 ? AF_INET : AF_INET6, address, at.ip.bytes), 1);
	at.loopback = tcp_ip_is_loopback(&at.ip);
	return at;
}

static void
chosen_are(struct tcp_if *ifs, unsigned n, const char *const *want, unsigned n_want)
{
	struct tcp_addr own = {.version = TCP_ADDR_VERSION};
	struct tcp_ip ips[TCP_ENDS_MAX];

	tcp_if_choose(ifs, n, &own);
	UNIT_EQ_FATAL(tcp_addr_ends(&own, ips), n_want);
	for (unsigned i = 0; i < n_want; i++) {
		struct tcp_if at = an_if(want[i], 0);

		UNIT_TRUE(ips[i].family == at.ip.family && memcmp(ips[i].bytes, at.ip.bytes, tcp_ip_len(&ips[i])) == 0);
	}
}

/* However many bridges are listed before it. */
static void
the_address_of_the_highest_rank_comes_first(void)
{
	struct tcp_if ifs[13];
	static const char *const want[] = {"10.77.0.1", "fd77::1", "192.168.0.1", "192.168.1.1", "192.168.2.1",
		"192.168.3.1", "192.168.4.1", "192.168.5.1"};

	for (unsigned i = 0; i < 11; i++) {
		char text[INET_ADDRSTRLEN];

		snprintf(text, sizeof(text), "192.168.%u.1", i);
		ifs[i] = an_if(text, 0);
	}
	ifs[11] = an_if("10.77.0.1", 1);
	ifs[12] = an_if("fd77::1", 1);
	chosen_are(ifs, RTE_DIM(ifs), want, RTE_DIM(want));
}

/* One of IPv6 has no room any more, and one of IPv4 has. */
static void
the_rest_of_the_room_is_used(void)
{
	struct tcp_if ifs[] = {an_if("fd77::1", 2), an_if("fd77::2", 1), an_if("fd77::3", 1), an_if("fd77::4", 1),
		an_if("127.0.0.1", 2), an_if("10.77.0.1", 1), an_if("10.77.0.2", 1), an_if("10.77.0.3", 1),
		an_if("10.77.0.4", 1)};
	static const char *const want[] = {"10.77.0.1", "fd77::1", "10.77.0.2", "fd77::2", "10.77.0.3", "10.77.0.4"};

	chosen_are(ifs, RTE_DIM(ifs), want, RTE_DIM(want));
}

static void
loopback_is_chosen_if_there_is_nothing_else(void)
{
	struct tcp_if ifs[] = {an_if("127.0.0.1", 0), an_if("::1", 0)};
	static const char *const want[] = {"127.0.0.1", "::1"};

	chosen_are(ifs, RTE_DIM(ifs), want, RTE_DIM(want));
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
		UNIT_TEST(the_address_of_the_highest_rank_comes_first),
		UNIT_TEST(the_rest_of_the_room_is_used),
		UNIT_TEST(loopback_is_chosen_if_there_is_nothing_else),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"tcp_if", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
