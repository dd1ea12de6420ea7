/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_addr_test.c - addresses and datagrams: what is believed, and what is not
 */
#include <errno.h>
#include <string.h>

#include "plx_unit.h"
#include "plx_unit_mlx.h"

static struct mlx_addr
good_addr(void)
{
	return (struct mlx_addr){.uid = 0x123456789abcdef0, .proc = 5, .gid = {0xfe, 0x80, [15] = 9},
		.ud_qpn = 17, .rx_len = 8256, .lid = 3, .version = MLX_ADDR_VERSION,
		.link = MLX_LINK_IB, .path_mtu = IBV_MTU_4096, .port = 1};
}

static struct mlx_dgram
good_dgram(void)
{
	struct mlx_dgram d = {.to_uid = 7, .from = good_addr(), .qpn = 18, .psn = 0xabcdef,
		.attempt = 1, .credits = 64, .kind = MLX_DGRAM_ASK, .reads = 16};

	mlx_dgram_seal(&d);
	return d;
}

static void
an_address_fits_what_carries_it(void)
{
	UNIT_TRUE(sizeof(struct mlx_addr) <= PLX_ADDR_MAX);
}

static void
a_good_address_is_taken_and_each_bad_field_is_not(void)
{
	const struct mlx_addr good = good_addr();
	struct mlx_addr bad[12];
	unsigned n = 0;

	UNIT_EQ(mlx_addr_check(&good), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[n++].uid = 0;
	bad[n++].version++;
	bad[n++].link = MLX_LINK_ROCE6 + 1;
	bad[n++].ud_qpn = 0;
	bad[n++].ud_qpn = 1 << 24;
	bad[n++].path_mtu = 0;
	bad[n++].path_mtu = IBV_MTU_4096 + 1;
	bad[n++].rx_len = MLX_RX_LEN_MIN - 1;
	bad[n++].rx_len = MLX_RX_LEN_MAX + 1;
	bad[n].link = MLX_LINK_ROCE6;
	bad[n++].net_bits = PLX_ROUTE_BITS_MAX + 1;
	bad[n].link = MLX_LINK_ROCE4;
	bad[n++].net_bits = 95; /* the first 96 are not its own */
	bad[n++].port = 0;
	UNIT_EQ_FATAL(n, sizeof(bad) / sizeof(bad[0]));
	for (unsigned i = 0; i < n; i++)
		UNIT_EQ(mlx_addr_check(&bad[i]), -EINVAL);
}

static void
a_domain_is_of_one_port_of_one_process(void)
{
	struct mlx_addr a = good_addr(), b = good_addr();

	b.uid++; /* another queue of it */
	b.ud_qpn++;
	UNIT_EQ(mlx_addr_domain(&a), mlx_addr_domain(&b));
	UNIT_TRUE(mlx_addr_domain(&a) != 0);
	b.port++;
	UNIT_TRUE(mlx_addr_domain(&a) != mlx_addr_domain(&b));
	b = a;
	b.proc++;
	UNIT_TRUE(mlx_addr_domain(&a) != mlx_addr_domain(&b));
}

static void
only_one_network_is_reached(void)
{
	struct mlx_addr a = good_addr(), b = good_addr();

	b.gid[15] = 10;
	UNIT_EQ(mlx_addr_reach(&a, &b), 0);
	b.gid[0] = 0; /* another subnet */
	UNIT_EQ(mlx_addr_reach(&a, &b), -EHOSTUNREACH);
	b = a;
	b.lid = 0;
	UNIT_EQ(mlx_addr_reach(&a, &b), -EHOSTUNREACH);
	b = a;
	b.link = MLX_LINK_ROCE4;
	UNIT_EQ(mlx_addr_reach(&a, &b), -EHOSTUNREACH);
	a.link = MLX_LINK_ROCE4;
	b.gid[0] = 1; /* behind a router */
	UNIT_EQ(mlx_addr_reach(&a, &b), 0);
	b.link = MLX_LINK_ROCE6;
	UNIT_EQ(mlx_addr_reach(&a, &b), -EHOSTUNREACH);
	a.link = MLX_LINK_ROCE6; /* its gid is of the link */
	UNIT_EQ(mlx_addr_reach(&a, &b), -EHOSTUNREACH);
	b.gid[0] = 0xfe;
	UNIT_EQ(mlx_addr_reach(&a, &b), 0);
}

static struct mlx_addr
v4_addr(uint8_t last, uint8_t third, unsigned bits)
{
	struct mlx_addr a = good_addr();

	a.uid = last;
	a.link = MLX_LINK_ROCE4;
	a.net_bits = 96 + bits;
	memcpy(a.gid, (const uint8_t[16]){[10] = 0xff, 0xff, 10, 0, third, last}, sizeof(a.gid));
	return a;
}

static void
two_are_on_one_network_if_both_their_masks_say_so(void)
{
	static const struct {
		unsigned a_bits, b_bits, third;
		bool is;
	} rows[] = {{24, 24, 1, true}, {24, 24, 2, false}, {22, 22, 2, true}, {22, 22, 4, false},
		{23, 23, 0, true}, {16, 24, 2, false}, {16, 24, 1, true}, {32, 32, 1, false},
		{0, 0, 200, true}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mlx_addr a = v4_addr(1, 1, rows[i].a_bits);
		struct mlx_addr b = v4_addr(2, rows[i].third, rows[i].b_bits);

		UNIT_EQ(mlx_addr_one_net(&a, &b), rows[i].is);
		UNIT_EQ(mlx_addr_one_net(&b, &a), rows[i].is);
		UNIT_TRUE(mlx_addr_one_net(&a, &a));
	}
}

static int64_t
rank(const struct mlx_addr *own, const struct mlx_addr *to)
{
	struct plx_dev_path path = {.self = own->uid == to->uid};

	mlx_addr_path(own, to, &path);
	return plx_dev_path_rank(&path);
}

/* From the best to the worst. */
static void
a_rank_is_the_same_both_ways_and_says_what_counts(void)
{
	struct mlx_addr own = v4_addr(1, 1, 24), to[8];
	unsigned n = 0;

	own.flags = 9 << MLX_ADDR_SPEED_AT | 1 << MLX_ADDR_PLACE_AT | MLX_ADDR_NEAR;
	to[n++] = own; /* itself */
	to[n] = v4_addr(2, 1, 24);
	to[n++].flags = 12 << MLX_ADDR_SPEED_AT | 1 << MLX_ADDR_PLACE_AT | MLX_ADDR_NEAR;
	to[n] = v4_addr(2, 1, 24); /* far */
	to[n++].flags = 9 << MLX_ADDR_SPEED_AT | 1 << MLX_ADDR_PLACE_AT;
	to[n] = v4_addr(2, 1, 24); /* in another place */
	to[n++].flags = 9 << MLX_ADDR_SPEED_AT | MLX_ADDR_NEAR;
	to[n] = v4_addr(2, 1, 24); /* slower */
	to[n++].flags = 8 << MLX_ADDR_SPEED_AT | 1 << MLX_ADDR_PLACE_AT | MLX_ADDR_NEAR;
	to[n] = v4_addr(2, 2, 24); /* on another network */
	to[n++].flags = 9 << MLX_ADDR_SPEED_AT | 1 << MLX_ADDR_PLACE_AT | MLX_ADDR_NEAR;
	to[n] = v4_addr(2, 2, 24);
	to[n++].flags = MLX_ADDR_TM;
	for (unsigned i = 0; i < n; i++) {
		UNIT_EQ(rank(&own, &to[i]), rank(&to[i], &own));
		if (i != 0)
			UNIT_TRUE(rank(&own, &to[i]) < rank(&own, &to[i - 1]));
	}
	UNIT_EQ(n, 7);
}

static bool
is_one_net(const struct mlx_addr *own, const struct mlx_addr *to)
{
	struct plx_dev_path path = {.self = false};

	mlx_addr_path(own, to, &path);
	return path.one_net;
}

static void
two_addresses_of_links_may_be_of_two_links(void)
{
	struct mlx_addr a = good_addr(), b;

	a.link = MLX_LINK_ROCE6;
	a.net_bits = 64;
	b = a;
	b.uid++;
	UNIT_EQ(mlx_addr_reach(&a, &b), 0);
	b.gid[0] = a.gid[0] = 0x20; /* no longer of links */
	UNIT_TRUE(is_one_net(&a, &b));
	b.gid[0] = a.gid[0] = 0xfe;
	UNIT_TRUE(!is_one_net(&a, &b));
}

static void
the_key_of_datagrams_is_nobody_elses(void)
{
	struct mlx_addr a = good_addr(), b = good_addr();

	b.uid++;
	UNIT_TRUE(mlx_addr_qkey(&a) != mlx_addr_qkey(&b));
	a.uid = UINT64_MAX;
	UNIT_EQ(mlx_addr_qkey(&a) >> 31, 0); /* those are privileged */
}

static void
a_datagram_comes_as_it_was_sent(void)
{
	const struct mlx_dgram d = good_dgram();
	struct mlx_dgram out;

	UNIT_EQ_FATAL(mlx_dgram_open(&d, sizeof(d), &out), 0);
	UNIT_EQ(out.qpn, d.qpn);
	UNIT_EQ(out.psn, d.psn);
	UNIT_EQ(out.credits, d.credits);
	UNIT_SAME(&out.from, &d.from, sizeof(d.from));
}

static void
a_datagram_with_any_bit_changed_is_refused(void)
{
	const struct mlx_dgram good = good_dgram();

	for (unsigned bit = 0; bit < 8 * sizeof(good); bit++) {
		struct mlx_dgram bad = good, out;

		((uint8_t *)&bad)[bit / 8] ^= 1 << bit % 8;
		UNIT_EQ(mlx_dgram_open(&bad, sizeof(bad), &out), -EBADMSG);
	}
}

static void
a_datagram_of_another_length_is_refused(void)
{
	uint8_t buf[2 * sizeof(struct mlx_dgram)] = {0};
	const struct mlx_dgram good = good_dgram();
	struct mlx_dgram out;

	memcpy(buf, &good, sizeof(good));
	for (size_t len = 0; len <= sizeof(buf); len++)
		UNIT_EQ(mlx_dgram_open(buf, len, &out), len == sizeof(good) ? 0 : -EBADMSG);
}

static void
a_sealed_datagram_that_makes_no_sense_is_refused(void)
{
	struct mlx_dgram bad[8], out;
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good_dgram();
	bad[n++].kind = 0;
	bad[n++].kind = MLX_DGRAM_N;
	bad[n++].qpn = 0;
	bad[n++].qpn = 1 << 24;
	bad[n++].psn = 1 << 24;
	bad[n++].credits = PLX_CREDIT_MIN - 1;
	bad[n++].from.uid = 0;
	bad[n++].from.ud_qpn = 0;
	UNIT_EQ_FATAL(n, sizeof(bad) / sizeof(bad[0]));
	for (unsigned i = 0; i < n; i++) {
		mlx_dgram_seal(&bad[i]);
		UNIT_EQ(mlx_dgram_open(&bad[i], sizeof(bad[i]), &out), -EBADMSG);
	}
}

static void
groups_are_multicast_addresses_of_the_ports_network(void)
{
	static const uint8_t v4[13] = {[10] = 0xff, [11] = 0xff, [12] = 239};
	struct mlx_addr a = good_addr();
	uint8_t one[16], other[16];

	for (uint64_t n = 1; n != 0; n <<= 1) {
		a.link = MLX_LINK_ROCE4;
		mlx_addr_group(&a, n, one);
		UNIT_SAME(one, v4, sizeof(v4));
		UNIT_EQ(one[13] & 0xfc, 192);
		mlx_addr_group(&a, 0, other);
		/* 18 bits tell groups apart, the rest is in each message */
		UNIT_EQ(memcmp(one, other, sizeof(one)) != 0, n < 1 << 18);
		a.link = MLX_LINK_ROCE6;
		a.gid[0] = 0xfd;
		mlx_addr_group(&a, n, one);
		UNIT_EQ(one[0] << 8 | one[1], 0xff18);
		mlx_addr_group(&a, 0, other);
		UNIT_TRUE(memcmp(one, other, sizeof(one)) != 0);
		a.gid[0] = 0xfe;
		mlx_addr_group(&a, n, one);
		UNIT_EQ(one[0] << 8 | one[1], 0xff12);
	}
}

/* A datagram's 40 bytes in front, as each kind of network writes them. */
static void
a_datagram_comes_from_the_port_that_its_header_names(void)
{
	static const uint8_t v4[4] = {10, 7, 0, 1};
	struct mlx_addr a = good_addr();
	uint8_t grh[40] = {0x60};

	memcpy(grh + 8, a.gid, sizeof(a.gid));
	for (a.link = MLX_LINK_IB; a.link <= MLX_LINK_ROCE6; a.link += MLX_LINK_ROCE6) {
		UNIT_TRUE(mlx_addr_sent(&a, grh, 0));
		for (unsigned i = 8; i < 24; i++) {
			grh[i] ^= 1;
			UNIT_TRUE(!mlx_addr_sent(&a, grh, a.lid));
			grh[i] ^= 1;
		}
		grh[0] = 0x45;
		UNIT_TRUE(!mlx_addr_sent(&a, grh, a.lid));
		grh[0] = 0x60;
	}
	a.link = MLX_LINK_ROCE4;
	memset(a.gid, 0, 10);
	memset(a.gid + 10, 0xff, 2);
	memcpy(a.gid + 12, v4, sizeof(v4));
	UNIT_TRUE(!mlx_addr_sent(&a, grh, 0));
	grh[20] = 0x45;
	memcpy(grh + 32, v4, sizeof(v4));
	UNIT_TRUE(mlx_addr_sent(&a, grh, 0));
	grh[20] = 0x60;
	UNIT_TRUE(!mlx_addr_sent(&a, grh, 0));
	grh[20] = 0x45;
	grh[35] ^= 1;
	UNIT_TRUE(!mlx_addr_sent(&a, grh, 0));
	/* without: on InfiniBand only */
	UNIT_TRUE(!mlx_addr_sent(&a, NULL, a.lid));
	a.link = MLX_LINK_IB;
	UNIT_TRUE(mlx_addr_sent(&a, NULL, a.lid));
	UNIT_TRUE(!mlx_addr_sent(&a, NULL, a.lid + 1));
}

static CU_TestInfo tests[] = {
	UNIT_TEST(an_address_fits_what_carries_it),
	UNIT_TEST(a_good_address_is_taken_and_each_bad_field_is_not),
	UNIT_TEST(a_domain_is_of_one_port_of_one_process),
	UNIT_TEST(only_one_network_is_reached),
	UNIT_TEST(two_are_on_one_network_if_both_their_masks_say_so),
	UNIT_TEST(a_rank_is_the_same_both_ways_and_says_what_counts),
	UNIT_TEST(two_addresses_of_links_may_be_of_two_links),
	UNIT_TEST(the_key_of_datagrams_is_nobody_elses),
	UNIT_TEST(groups_are_multicast_addresses_of_the_ports_network),
	UNIT_TEST(a_datagram_comes_from_the_port_that_its_header_names),
	UNIT_TEST(a_datagram_comes_as_it_was_sent),
	UNIT_TEST(a_datagram_with_any_bit_changed_is_refused),
	UNIT_TEST(a_datagram_of_another_length_is_refused),
	UNIT_TEST(a_sealed_datagram_that_makes_no_sense_is_refused),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx_addr", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}
