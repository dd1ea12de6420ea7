/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * wire_test.c - header lengths, and addresses that come from anywhere
 */
#include <errno.h>
#include <string.h>

#include <rte_hash_crc.h>

#include "plx_unit.h"
#include "plx_wire.h"

static void
a_header_is_whole_or_it_is_none(void)
{
	for (unsigned op = 0; op < 256; op++) {
		uint32_t len = plx_wire_hdr_len[op];

		UNIT_EQ(len != 0, op > PLX_WIRE_NONE && op < PLX_WIRE_N);
		UNIT_TRUE(len <= PLX_WIRE_HDR_MAX);
		if (len == 0) {
			UNIT_EQ(plx_wire_check(op, 0), -EBADMSG);
			UNIT_EQ(plx_wire_check(op, 4096), -EBADMSG);
			continue;
		}
		UNIT_EQ(plx_wire_check(op, 0), -EBADMSG);
		UNIT_EQ(plx_wire_check(op, len - 1), -EBADMSG);
		UNIT_EQ(plx_wire_check(op, len), 0);
		UNIT_EQ(plx_wire_check(op, UINT32_MAX), 0);
	}
}

static struct plx_wire_addr
addr_of(unsigned n_devs, uint64_t key)
{
	struct plx_wire_addr a;

	memset(&a, 0, sizeof(a));
	unit_fill(&a.uid, sizeof(a.uid), key);
	a.n_devs = n_devs;
	for (unsigned i = 0; i < n_devs; i++) {
		a.devs[i].len = (uint8_t)((key + i * 13) % 45);
		unit_fill(a.devs[i].name, sizeof(a.devs[i].name), key + i);
		a.devs[i].name[0] |= 1;
		unit_fill(a.devs[i].bytes, a.devs[i].len, key + 100 + i);
	}
	return a;
}

static void
an_address_comes_out_as_it_went_in(void)
{
	for (unsigned n = 0; n <= PLX_WIRE_ADDR_DEVS; n++) {
		for (unsigned key = 0; key < 45; key++) {
			uint8_t buf[1 + PLX_WIRE_ADDR_MAX];
			struct plx_wire_addr in = addr_of(n, key), out;
			int len = plx_wire_addr_pack(&in, buf + 1, PLX_WIRE_ADDR_MAX);

			UNIT_TRUE_FATAL(len > 0);
			UNIT_EQ(plx_wire_addr_len(buf + 1), len);
			memset(&out, 0, sizeof(out));
			UNIT_EQ_FATAL(plx_wire_addr_unpack(buf + 1, &out), 0);
			UNIT_SAME(&out, &in, sizeof(in));
		}
	}
}

/* As addr_of(), but for one name and one length. */
static struct plx_wire_addr
ports_of(unsigned n, unsigned len, unsigned same)
{
	struct plx_wire_addr a = addr_of(n, 7);

	for (unsigned i = 0; i < n; i++) {
		memcpy(a.devs[i].name, "net_mlx", 8);
		a.devs[i].len = (uint8_t)len;
		unit_fill(a.devs[i].bytes, len, 100 + i);
		memset(a.devs[i].bytes + 8, 0, same);
		if (8 + same < len)
			a.devs[i].bytes[8 + same] = (uint8_t)(1 + i);
	}
	return a;
}

static void
what_the_ports_of_a_device_have_in_common_is_written_once(void)
{
	for (unsigned n = 1; n <= 4; n++) {
		for (unsigned same = 0; same <= 40; same++) {
			struct plx_wire_addr in = ports_of(n, 48, same), out = {.n_devs = 0};
			uint8_t buf[PLX_WIRE_ADDR_MAX];

			UNIT_EQ(plx_wire_addr_pack(&in, buf, sizeof(buf)), 20 + 57 + (n - 1) * (50 - same));
			UNIT_EQ_FATAL(plx_wire_addr_unpack(buf, &out), 0);
			UNIT_EQ_FATAL(out.n_devs, n);
			for (unsigned i = 0; i < n; i++) {
				UNIT_EQ(out.devs[i].len, 48);
				UNIT_SAME(out.devs[i].name, in.devs[i].name, 8);
				UNIT_SAME(out.devs[i].bytes, in.devs[i].bytes, 48);
			}
		}
	}
}

static void
an_address_needs_room_for_all_of_it(void)
{
	struct plx_wire_addr a = addr_of(3, 7);
	uint8_t buf[PLX_WIRE_ADDR_MAX];
	int len = plx_wire_addr_pack(&a, buf, sizeof(buf));

	UNIT_TRUE_FATAL(len > 0);
	for (int room = 0; room < len; room++) {
		memset(buf, 0xab, sizeof(buf));
		UNIT_EQ(plx_wire_addr_pack(&a, buf, (size_t)room), -EMSGSIZE);
		UNIT_EQ(buf[0], 0xab);
	}
	UNIT_EQ(plx_wire_addr_pack(&a, buf, (size_t)len), len);
	/* More than the form holds, whatever the room. */
	a.n_devs = PLX_WIRE_ADDR_DEVS;
	for (unsigned i = 0; i < PLX_WIRE_ADDR_DEVS; i++) {
		a.devs[i].len = sizeof(a.devs[i].bytes);
		a.devs[i].name[0] = (char)(1 + i);
	}
	UNIT_EQ(plx_wire_addr_pack(&a, buf, SIZE_MAX), -EMSGSIZE);
}

static void
a_cut_or_altered_address_is_refused(void)
{
	for (unsigned n = 0; n <= 4; n++) {
		struct plx_wire_addr a = addr_of(n, 31 + n), out;
		uint8_t good[PLX_WIRE_ADDR_MAX] = {0}, bad[PLX_WIRE_ADDR_MAX];
		int len = plx_wire_addr_pack(&a, good, sizeof(good));

		UNIT_TRUE_FATAL(len > 0);
		for (int cut = 0; cut < len; cut++) {
			/* What stands behind the end may be anything. */
			for (unsigned fill = 0; fill < 256; fill += 85) {
				memset(bad, (int)fill, sizeof(bad));
				memcpy(bad, good, (size_t)cut);
				if (memcmp(bad, good, (size_t)len) != 0)
					UNIT_EQ(plx_wire_addr_unpack(bad, &out), -EINVAL);
			}
		}
		for (int bit = 0; bit < len * 8; bit++) {
			memcpy(bad, good, sizeof(bad));
			bad[bit / 8] ^= 1 << bit % 8;
			UNIT_EQ(plx_wire_addr_unpack(bad, &out), -EINVAL);
		}
	}
}

/* Make the checksum right again, as somebody would who knows how. */
static void
sign(uint8_t *p, uint16_t len)
{
	uint64_t aligned[PLX_WIRE_ADDR_MAX / 8];
	uint32_t head, crc;

	memcpy(p + 4, &len, 2);
	memcpy(&head, p + 4, 4);
	memcpy(aligned, p + 12, len - 12u);
	crc = rte_hash_crc(aligned, len - 12u, rte_hash_crc_4byte(head, ~0u));
	memcpy(p + 8, &crc, 4);
}

static void
a_signed_address_is_still_held_within_bounds(void)
{
	struct plx_wire_addr a = addr_of(2, 20), out;
	uint8_t good[PLX_WIRE_ADDR_MAX] = {0}, p[PLX_WIRE_ADDR_MAX];
	int len = plx_wire_addr_pack(&a, good, sizeof(good));
	uint64_t state = unit_seed(5);

	UNIT_TRUE_FATAL(len > 0);
	memcpy(p, good, sizeof(p));
	sign(p, (uint16_t)len);
	UNIT_EQ(plx_wire_addr_unpack(p, &out), 0); /* this test knows how to sign */
	for (unsigned n = 0; n < 256; n++) { /* devices that are not there */
		memcpy(p, good, sizeof(p));
		p[7] = (uint8_t)n;
		sign(p, (uint16_t)len);
		UNIT_EQ(plx_wire_addr_unpack(p, &out), n == 2 ? 0 : -EINVAL);
	}
	for (unsigned dev_len = 0; dev_len < 256; dev_len++) { /* bytes that are not there */
		memcpy(p, good, sizeof(p));
		p[28] = (uint8_t)dev_len;
		sign(p, (uint16_t)len);
		if (dev_len > sizeof(a.devs[0].bytes))
			UNIT_EQ(plx_wire_addr_unpack(p, &out), -EINVAL);
		else
			plx_wire_addr_unpack(p, &out); /* ASan looks */
	}
	for (unsigned other = 0; other < 200; other++) { /* an end that is none */
		memcpy(p, good, sizeof(p));
		if (other == (unsigned)len || other < 20)
			continue;
		sign(p, (uint16_t)other);
		UNIT_EQ(plx_wire_addr_unpack(p, &out), -EINVAL);
	}
	for (unsigned i = 0; i < 20000; i++) {
		unsigned all = 20 + unit_rng(&state) % (PLX_WIRE_ADDR_MAX - 19);

		unit_fill(p, sizeof(p), unit_rng(&state));
		memcpy(p, good, 4);
		p[6] = good[6];
		p[7] = (uint8_t)(unit_rng(&state) % 10);
		sign(p, (uint16_t)all);
		if (plx_wire_addr_unpack(p, &out) == 0)
			UNIT_TRUE(out.n_devs <= PLX_WIRE_ADDR_DEVS);
	}
}

static void
an_address_has_one_form(void)
{
	struct plx_wire_addr a = ports_of(2, 48, 20), out;
	uint8_t good[PLX_WIRE_ADDR_MAX] = {0}, p[PLX_WIRE_ADDR_MAX];
	int len = plx_wire_addr_pack(&a, good, sizeof(good));

	UNIT_EQ_FATAL(len, 107);
	for (unsigned same = 0; same < 256; same++) { /* less than there is, or more than fits */
		memcpy(p, good, sizeof(p));
		p[78] = (uint8_t)same;
		sign(p, (uint16_t)len);
		UNIT_EQ(plx_wire_addr_unpack(p, &out), same == 20 ? 0 : -EINVAL);
		if (same > 20)
			continue;
		/* with what is the same written out */
		memset(p + 87, 0, 20 - same);
		memcpy(p + 87 + 20 - same, good + 87, 20);
		sign(p, (uint16_t)(len + 20 - same));
		UNIT_EQ(plx_wire_addr_unpack(p, &out), same == 20 ? 0 : -EINVAL);
	}
	memcpy(p, good, sizeof(p)); /* the first is the same as none */
	memmove(p + 20, p + 77, 30);
	p[7] = 1;
	sign(p, 50);
	UNIT_EQ(plx_wire_addr_unpack(p, &out), -EINVAL);
	memcpy(p, good, sizeof(p)); /* all of it is written although it could be less */
	memcpy(p + 77, a.devs[1].name, 8);
	p[85] = 48;
	memcpy(p + 86, a.devs[1].bytes, 48);
	sign(p, 134);
	UNIT_EQ(plx_wire_addr_unpack(p, &out), -EINVAL);
	p[77] ^= 1; /* another device's */
	sign(p, 134);
	UNIT_EQ(plx_wire_addr_unpack(p, &out), 0);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_header_is_whole_or_it_is_none),
	UNIT_TEST(an_address_comes_out_as_it_went_in),
	UNIT_TEST(what_the_ports_of_a_device_have_in_common_is_written_once),
	UNIT_TEST(an_address_needs_room_for_all_of_it),
	UNIT_TEST(a_cut_or_altered_address_is_refused),
	UNIT_TEST(a_signed_address_is_still_held_within_bounds),
	UNIT_TEST(an_address_has_one_form),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"wire", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}
