/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * route_test.c - what the host knows of its ports, and who was not reached
 */
#include <sched.h>

#include "plx_route.h"
#include "plx_unit.h"

#define MINUTE 60000000000u

static const uint8_t here[16] = {0x20, 1, [15] = 1}, there[16] = {0x20, 1, 0, 0x10, [15] = 1};

static void
a_route_is_on_one_network_only_if_both_masks_say_so(void)
{
	struct plx_route_end a = {.addr = here, .bits = 24}, b = {.addr = there, .bits = 24};

	UNIT_TRUE(plx_route_one_net(&a, &b));
	b.bits = 28;
	UNIT_TRUE(!plx_route_one_net(&a, &b));
	UNIT_TRUE(!plx_route_one_net(&b, &a));
	a.bits = b.bits = 27;
	UNIT_TRUE(plx_route_one_net(&a, &b));
}

static void
who_was_not_reached_is_the_last_choice_for_a_minute(void)
{
	struct plx_route_shun s = {.n = 0};

	plx_route_shun(&s, 7, 1000);
	UNIT_TRUE(plx_route_is_shunned(&s, 7, 1000 + MINUTE - 1));
	UNIT_TRUE(!plx_route_is_shunned(&s, 7, 1000 + MINUTE));
	UNIT_TRUE(!plx_route_is_shunned(&s, 8, 1000));
	for (unsigned i = 0; i < PLX_ROUTE_SHUNNED; i++)
		plx_route_shun(&s, 100 + i, 1000);
	UNIT_TRUE(!plx_route_is_shunned(&s, 7, 1000)); /* only the last are known */
	UNIT_TRUE(plx_route_is_shunned(&s, 100, 1000));
}

static void
speeds_are_half_octaves_above_ten_gigabits(void)
{
	UNIT_EQ(plx_route_speed(0), 0);
	UNIT_EQ(plx_route_speed(1000), 0);
	UNIT_EQ(plx_route_speed(10000), 0);
	UNIT_TRUE(plx_route_speed(25000) > 0);
	UNIT_EQ(plx_route_speed(200000), plx_route_speed(100000) + 2);
	UNIT_EQ(plx_route_speed(UINT64_MAX / 1000), PLX_ROUTE_SPEED_MAX);
}

static void
a_list_of_cpus_is_read_as_the_kernel_writes_it(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(5, &set);
	UNIT_TRUE(plx_route_cpus_meet("5\n", &set));
	UNIT_TRUE(plx_route_cpus_meet("0-3,5\n", &set));
	UNIT_TRUE(plx_route_cpus_meet("4-6", &set));
	UNIT_TRUE(!plx_route_cpus_meet("0-4,6-9\n", &set));
	UNIT_TRUE(plx_route_cpus_meet("\n", &set)); /* nobody knows */
	UNIT_TRUE(plx_route_cpus_meet("all", &set));
	UNIT_TRUE(plx_route_is_near("/nowhere"));
}

static void
the_mask_of_an_address_is_its_interfaces(void)
{
	const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	const uint8_t nobodys[16] = {[10] = 0xff, 0xff, 203, 0, 113, 77};

	UNIT_EQ(plx_route_bits(loopback, true), 96 + 8);
	UNIT_EQ(plx_route_bits(nobodys, true), PLX_ROUTE_BITS_MAX);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_route_is_on_one_network_only_if_both_masks_say_so),
	UNIT_TEST(who_was_not_reached_is_the_last_choice_for_a_minute),
	UNIT_TEST(speeds_are_half_octaves_above_ten_gigabits),
	UNIT_TEST(a_list_of_cpus_is_read_as_the_kernel_writes_it),
	UNIT_TEST(the_mask_of_an_address_is_its_interfaces),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"route", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}
