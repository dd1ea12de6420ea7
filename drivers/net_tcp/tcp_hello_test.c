/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_hello_test.c - addresses, the handshake and frames, as anybody may send them
 */
#include <errno.h>
#include <string.h>

#include "plx_unit.h"

#include "tcp_frame.h"
#include "tcp_hello.h"
#include "tcp_mac.h"

static struct tcp_addr
addr_of(uint64_t uid)
{
	struct tcp_addr a = {.uid = uid, .proc = uid + 1, .host = 3, .port = 4000, .version = TCP_ADDR_VERSION};
	const struct tcp_ip v6 = {6, {0xfd, 1}}, v4 = {4, {10, 0, 0, 1}};

	memset(a.secret, (int)uid, sizeof(a.secret));
	UNIT_TRUE(tcp_addr_add(&a, &v4) && tcp_addr_add(&a, &v6));
	return a;
}

static void
a_mac_is_that_of_the_standard(void)
{
	/* HMAC-SHA256 of "Hi There" by this key, of another implementation */
	static const uint8_t want[16] = {0x3a, 0xfd, 0x7f, 0xe7, 0x43, 0x7c, 0x3e, 0xca, 0xdb, 0x2d, 0x08, 0x9e, 0x7a,
		0x65, 0xc8, 0xf9};
	uint8_t key[16], mac[16];

	for (unsigned i = 0; i < 16; i++)
		key[i] = (uint8_t)i;
	tcp_mac(key, (struct tcp_mac_part){"Hi ", 3}, (struct tcp_mac_part){"There", 5}, mac);
	UNIT_SAME(mac, want, 16);
}

static void
an_address_is_read_as_it_was_made(void)
{
	struct tcp_addr a = addr_of(7), b;
	struct tcp_ip ips[TCP_ENDS_MAX];
	const struct tcp_ip more = {4, {1, 2, 3, 4}};

	UNIT_EQ_FATAL(tcp_addr_read(&a, tcp_addr_len(&a), &b), 0);
	UNIT_SAME(&a, &b, sizeof(a));
	UNIT_EQ_FATAL(tcp_addr_ends(&b, ips), 2);
	UNIT_TRUE(ips[0].family == 4 && ips[1].family == 6 && ips[1].bytes[0] == 0xfd);
	for (unsigned n = 2; n < TCP_ENDS_MAX; n++)
		UNIT_TRUE(tcp_addr_add(&a, &more));
	UNIT_TRUE(!tcp_addr_add(&a, &more));
	UNIT_EQ(tcp_addr_ends(&a, ips), TCP_ENDS_MAX);
}

static void
an_address_has_room_for_places_of_both_families(void)
{
	struct tcp_addr a = addr_of(7), b;
	const struct tcp_ip v6 = {6, {0xfd, 2}}, v4 = {4, {1, 2, 3, 4}};
	struct tcp_ip ips[TCP_ENDS_MAX];

	UNIT_TRUE(tcp_addr_add(&a, &v6) && tcp_addr_add(&a, &v4));
	UNIT_TRUE(!tcp_addr_add(&a, &v6));
	UNIT_TRUE(tcp_addr_add(&a, &v4) && tcp_addr_add(&a, &v4) && !tcp_addr_add(&a, &v4));
	UNIT_EQ_FATAL(tcp_addr_read(&a, tcp_addr_len(&a), &b), 0);
	UNIT_EQ(tcp_addr_ends(&b, ips), 6);
}

static void
an_address_that_makes_no_sense_is_refused(void)
{
	const struct tcp_addr good = addr_of(7);
	struct tcp_addr out, bad;

	for (size_t len = 0; len <= sizeof(good); len++)
		UNIT_EQ(tcp_addr_read(&good, len, &out), len == tcp_addr_len(&good) ? 0 : -EINVAL);
	for (unsigned i = 0; i < 5; i++) {
		bad = good;
		bad.uid = i == 0 ? 0 : bad.uid;
		bad.proc = i == 1 ? 0 : bad.proc;
		bad.version += i == 2;
		bad.ends[0] += i == 3;
		bad.ends[5] -= i == 4 ? 2 : 0; /* IPv4, and 12 bytes that are nothing */
		UNIT_EQ(tcp_addr_read(&bad, tcp_addr_len(&bad), &out), -EINVAL);
	}
}

static void
two_that_have_their_addresses_meet(void)
{
	const struct tcp_addr a = addr_of(7), b = addr_of(9);
	struct tcp_addr from;
	struct tcp_hello h;
	struct tcp_answer n;
	struct tcp_confirm c;

	UNIT_EQ_FATAL(tcp_hello_make(&h, &a, &b, 0), 0);
	UNIT_EQ_FATAL(tcp_hello_open(&h, &b, &from), 0);
	UNIT_SAME(&from, &a, sizeof(a));
	/* The secret is not to be seen by who listens there instead. */
	UNIT_TRUE(memcmp(h.addr + offsetof(struct tcp_addr, secret), a.secret, TCP_SECRET_LEN) != 0);
	UNIT_EQ_FATAL(tcp_answer_make(&n, TCP_ANSWER, &h, &b), 0);
	UNIT_EQ(tcp_answer_open(&n, &h, &b), 0);
	tcp_confirm_make(&c, &n, &b, NULL);
	UNIT_EQ(tcp_confirm_open(&c, &n, &b, NULL), 0);
	UNIT_EQ_FATAL(tcp_answer_make(&n, TCP_REFUSE, &h, &b), 0);
	UNIT_EQ(tcp_answer_open(&n, &h, &b), -ECONNREFUSED);
}

static void
who_has_another_secret_or_uid_is_nobody(void)
{
	const struct tcp_addr a = addr_of(7), b = addr_of(9);
	struct tcp_addr guess = b, other = b, from;
	struct tcp_hello h;
	struct tcp_answer n;

	guess.secret[15] ^= 1;
	other.uid = 8;
	UNIT_EQ(tcp_hello_make(&h, &a, &guess, 0), 0);
	UNIT_EQ(tcp_hello_open(&h, &b, &from), -EBADMSG);
	UNIT_EQ(tcp_hello_make(&h, &a, &other, 0), 0);
	UNIT_EQ(tcp_hello_open(&h, &b, &from), -EBADMSG);
	UNIT_EQ(tcp_answer_make(&n, TCP_ANSWER, &h, &guess), 0);
	UNIT_EQ(tcp_answer_open(&n, &h, &b), -EBADMSG);
}

/* Every bit of each message counts, and so does the message before it. */
static void
a_handshake_with_any_bit_changed_is_refused(void)
{
	const struct tcp_addr a = addr_of(7), b = addr_of(9);
	struct tcp_hello h, bad_h, again;
	struct tcp_answer n, bad_n, fresh;
	struct tcp_confirm c, bad_c;
	struct tcp_addr from;

	UNIT_EQ(tcp_hello_make(&h, &a, &b, 0), 0);
	UNIT_EQ(tcp_answer_make(&n, TCP_ANSWER, &h, &b), 0);
	tcp_confirm_make(&c, &n, &b, NULL);
	for (size_t bit = 0; bit < 8 * sizeof(h); bit++) {
		bad_h = h;
		((uint8_t *)&bad_h)[bit / 8] ^= 1 << bit % 8;
		UNIT_EQ(tcp_hello_open(&bad_h, &b, &from), -EBADMSG);
	}
	for (size_t bit = 0; bit < 8 * sizeof(n); bit++) {
		bad_n = n;
		((uint8_t *)&bad_n)[bit / 8] ^= 1 << bit % 8;
		UNIT_EQ(tcp_answer_open(&bad_n, &h, &b), -EBADMSG);
	}
	for (size_t bit = 0; bit < 8 * sizeof(c); bit++) {
		bad_c = c;
		((uint8_t *)&bad_c)[bit / 8] ^= 1 << bit % 8;
		UNIT_EQ(tcp_confirm_open(&bad_c, &n, &b, NULL), -EBADMSG);
	}
	UNIT_EQ(tcp_hello_make(&again, &a, &b, 0), 0);
	UNIT_EQ(tcp_answer_open(&n, &again, &b), -EBADMSG); /* of an earlier one */
	UNIT_EQ(tcp_answer_make(&fresh, TCP_ANSWER, &h, &b), 0);
	UNIT_EQ(tcp_confirm_open(&c, &fresh, &b, NULL), -EBADMSG); /* so a copied HELLO leads nowhere */
}

static void
a_further_connection_is_bound_to_the_first(void)
{
	const struct tcp_addr a = addr_of(7), b = addr_of(9);
	uint8_t first[TCP_MAC_LEN] = {3}, other[TCP_MAC_LEN] = {4};
	struct tcp_confirm c;
	struct tcp_answer n;
	struct tcp_hello h;

	UNIT_EQ(tcp_hello_make(&h, &a, &b, 5), 0);
	UNIT_EQ(h.head.flow, 5);
	UNIT_EQ(tcp_answer_make(&n, TCP_ANSWER, &h, &b), 0);
	tcp_confirm_make(&c, &n, &b, first);
	UNIT_EQ(tcp_confirm_open(&c, &n, &b, first), 0);
	UNIT_EQ(tcp_confirm_open(&c, &n, &b, other), -EBADMSG);
	UNIT_EQ(tcp_confirm_open(&c, &n, &b, NULL), -EBADMSG);
	tcp_confirm_make(&c, &n, &b, NULL);
	UNIT_EQ(tcp_confirm_open(&c, &n, &b, first), -EBADMSG);
}

static void
a_frame_is_whole_or_waits_or_is_none(void)
{
	struct tcp_frame f = {.len = 13, .kind = TCP_MSG, .op = 5}, out;

	UNIT_EQ(tcp_frame_len(13), 24);
	UNIT_EQ(tcp_frame_look(&f, 7, 100, &out), TCP_FRAME_PART);
	UNIT_EQ(tcp_frame_look(&f, 23, 100, &out), TCP_FRAME_PART);
	UNIT_EQ(tcp_frame_look(&f, 24, 100, &out), TCP_FRAME_GOOD);
	UNIT_EQ(tcp_frame_look(&f, 24, 12, &out), TCP_FRAME_BAD);
	f.kind = 0;
	UNIT_EQ(tcp_frame_look(&f, 24, 100, &out), TCP_FRAME_BAD);
	f.kind = TCP_FRAME_N;
	UNIT_EQ(tcp_frame_look(&f, 24, 100, &out), TCP_FRAME_BAD);
	f = (struct tcp_frame){.len = UINT32_MAX, .kind = TCP_MSG};
	UNIT_EQ(tcp_frame_look(&f, 24, 100, &out), TCP_FRAME_BAD);
	f = (struct tcp_frame){.kind = TCP_MSG, .flow = 1};
	UNIT_EQ(tcp_frame_look(&f, 24, 100, &out), TCP_FRAME_BAD);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_mac_is_that_of_the_standard),
	UNIT_TEST(an_address_is_read_as_it_was_made),
	UNIT_TEST(an_address_has_room_for_places_of_both_families),
	UNIT_TEST(an_address_that_makes_no_sense_is_refused),
	UNIT_TEST(two_that_have_their_addresses_meet),
	UNIT_TEST(who_has_another_secret_or_uid_is_nobody),
	UNIT_TEST(a_handshake_with_any_bit_changed_is_refused),
	UNIT_TEST(a_further_connection_is_bound_to_the_first),
	UNIT_TEST(a_frame_is_whole_or_waits_or_is_none),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"tcp_hello", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}
