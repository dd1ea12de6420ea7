/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_contract_test.c - what plx_dev.h promises of devices that match tags
 *
 * Runs on the fake device and on shm, with a ring for each sender and with the mail
 * ring. A driver that matches in hardware is done when it passes; net_mlx does on the model
 * of a device (mlx_tm_driver.c).
 *
 * usage: tag_contract_test [net_mlx]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"
#include "plx_unit_shm.h"
#include "plx_wire.h"

#define ALL   UINT64_MAX
#define LIST  4
#define LONG  900 /* bytes of data that is copied to its place */

/* A receive and what was said of it. */
struct recv {
	uct_tag_context_t ctx;
	struct plx_dev_recv r;
	uint8_t buf[1024];
	unsigned consumed, completed, rndv;
	uct_tag_t stag;
	size_t len;
	bool inlined;
	ucs_status_t status;
	uint8_t op; /* of the message that was reported to rndv */
	struct plx_peer *src;
	struct recv *then; /* post this one when completed */
};

static struct plx_conf conf;
static struct plx_dev *dev;
static const char *dev_name, *fast_peers;
static struct plx_queue *a, *b; /* a sends to b */
static struct plx_peer *to_b;
static uint16_t seen; /* by the owner of b */

static void post(struct recv *v);

static void
on_consumed(uct_tag_context_t *ctx)
{
	struct recv *v = container_of(ctx, struct recv, ctx);

	UNIT_EQ(v->completed + v->rndv, 0); /* it comes first */
	v->consumed++;
}

static void
on_completed(uct_tag_context_t *ctx, uct_tag_t stag, uint64_t imm, size_t length, void *inline_data,
	ucs_status_t status)
{
	struct recv *v = container_of(ctx, struct recv, ctx);

	UNIT_EQ(imm, 0);
	v->completed++;
	v->stag = stag;
	v->len = length;
	v->status = status;
	v->inlined = inline_data != NULL;
	if (v->inlined)
		memcpy(v->buf, inline_data, length);
	if (v->then != NULL)
		post(v->then);
}

static void
on_rndv(uct_tag_context_t *ctx, uct_tag_t stag, const void *header, unsigned header_length,
	ucs_status_t status, unsigned flags)
{
	struct recv *v = container_of(ctx, struct recv, ctx);
	const struct plx_rx *rx = header;

	UNIT_EQ_FATAL(header_length, sizeof(*rx));
	UNIT_EQ(flags, UCT_TAG_RECV_CB_INLINE_DATA);
	v->rndv++;
	v->stag = stag;
	v->status = status;
	v->op = rx->op;
	v->src = rx->src;
	v->len = rx->len;
	memcpy(v->buf, rx->data, rx->len);
}

static struct recv
recv_of(uint64_t tag, uint64_t mask, size_t len)
{
	return (struct recv){.ctx = {on_consumed, on_completed, on_rndv, ""},
		.r = {.tag = tag & mask, .mask = mask, .len = len}};
}

static int
try_post(struct recv *v)
{
	v->r.buf = v->buf;
	v->r.ctx = &v->ctx;
	return plx_queue_tag_post(b, &v->r, seen);
}

static void
post(struct recv *v)
{
	UNIT_EQ(try_post(v), 0);
}

/* @return whether there was room */
static bool
try_send(uint8_t op, const void *hdr, uint8_t hdr_len, uint32_t len)
{
	uint8_t data[1024];
	struct plx_tx tx = {.peer = to_b, .hdr = hdr, .hdr_len = hdr_len, .data = data, .len = len,
		.op = op};
	int rc;

	unit_fill(data, len, len);
	rc = plx_peer_tx(&tx);
	if (rc != -EAGAIN)
		UNIT_EQ_FATAL(rc, 0);
	return rc == 0;
}

static void
send_op(uint8_t op, const void *hdr, uint8_t hdr_len, uint32_t len)
{
	UNIT_TRUE_FATAL(try_send(op, hdr, hdr_len, len));
}

/* The sender takes what is for it: credits, and that it is connected. */
static void
sender_turn(void)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];

	UNIT_EQ_FATAL(a->rx_burst(a, rx, PLX_DEV_RX_BURST), 0);
}

static void
send_eager(uint64_t tag, uint32_t len)
{
	send_op(PLX_WIRE_EAGER, &tag, sizeof(tag), len);
}

/* Take what is there. @return messages that came by the burst; their tags are left in tags */
static unsigned
take(uint64_t *tags)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	unsigned total = 0;

	for (unsigned i = 0; i < 200; i++) {
		uint16_t n = b->rx_burst(b, rx, PLX_DEV_RX_BURST);

		sender_turn();
		for (uint16_t k = 0; k < n; k++)
			memcpy(&tags[total++], rx[k].data, RTE_MIN(sizeof(tags[0]), rx[k].len));
		if (n != 0)
			b->rx_release(b, rx, n);
	}
	return total;
}

static void
is_done(const struct recv *v, uint64_t tag, size_t len)
{
	UNIT_EQ(v->consumed, 1);
	UNIT_EQ(v->completed, 1);
	UNIT_EQ(v->rndv, 0);
	UNIT_EQ(v->status, UCS_OK);
	UNIT_EQ(v->stag, tag);
	UNIT_EQ(v->len, len);
	UNIT_TRUE(unit_is_filled(v->buf, len, len));
}

static void
nothing_was_said(const struct recv *v)
{
	UNIT_EQ(v->consumed + v->completed + v->rndv, 0);
}

/* -- tests -- */

static void
a_message_is_put_into_the_receive_it_matches(void)
{
	struct recv lent = recv_of(7, ALL, 1024), placed = recv_of(8, ALL, 1024);
	uint64_t tags[4];

	post(&lent);
	post(&placed);
	send_eager(8, LONG);
	send_eager(7, 20);
	UNIT_EQ(take(tags), 0);
	is_done(&lent, 7, 20);
	is_done(&placed, 8, LONG);
	UNIT_TRUE(!placed.inlined);
	UNIT_EQ(b->stat.rx_msgs, 2); /* released, though the owner never saw them */
}

static void
a_message_without_a_receive_comes_by_the_burst(void)
{
	struct recv v = recv_of(7, ALL, 1024);
	uint64_t tags[4] = {0};

	post(&v);
	send_eager(9, 20);
	UNIT_EQ(take(tags), 1);
	UNIT_EQ(tags[0], 9);
	nothing_was_said(&v);
}

static void
a_receive_matches_nothing_until_the_counts_agree(void)
{
	struct recv v = recv_of(7, ALL, 1024);
	uint64_t tags[4] = {0};

	send_eager(7, 1);
	UNIT_EQ(take(tags), 1); /* on its way to the owner, that has not dealt with it */
	post(&v);
	send_eager(7, 2);
	UNIT_EQ(take(tags), 1); /* else it would overtake */
	nothing_was_said(&v);
	seen = 1;
	UNIT_EQ(plx_queue_tag_post(b, NULL, seen), 0);
	send_eager(7, 3);
	UNIT_EQ(take(tags), 1);
	nothing_was_said(&v);
	seen = 3;
	UNIT_EQ(plx_queue_tag_post(b, NULL, seen), 0);
	send_eager(7, 4);
	UNIT_EQ(take(tags), 0);
	is_done(&v, 7, 4);
}

static void
a_count_told_with_a_post_or_a_cancel_counts_as_well(void)
{
	struct recv v = recv_of(7, ALL, 1024), w = recv_of(8, ALL, 1024), x = recv_of(9, ALL, 1024);
	uint64_t tags[4];

	send_eager(1, 1);
	UNIT_EQ(take(tags), 1);
	post(&v);
	seen = 1;
	post(&w);
	send_eager(7, 2);
	UNIT_EQ(take(tags), 0);
	is_done(&v, 7, 2);
	send_eager(1, 1);
	UNIT_EQ(take(tags), 1);
	post(&x);
	seen = 2;
	UNIT_EQ(plx_queue_tag_cancel(b, &w.ctx, false, seen), 0);
	send_eager(9, 2);
	UNIT_EQ(take(tags), 0);
	is_done(&x, 9, 2);
}

static void
what_is_no_tagged_message_is_neither_matched_nor_counted(void)
{
	struct recv v = recv_of(0, 0, 1024);
	const uint8_t hdr[40] = {0};
	uint64_t tags[PLX_DEV_RX_BURST];

	send_op(PLX_WIRE_AM, hdr, 8, 4);
	send_op(PLX_WIRE_RTS, hdr, 31, 0); /* a byte is missing */
	send_op(PLX_WIRE_EAGER, hdr, 7, 0);
	send_op(PLX_WIRE_NONE, hdr, 40, 0);
	send_op(255, hdr, 40, 0);
	UNIT_EQ(take(tags), 5);
	post(&v);
	send_op(PLX_WIRE_ACK, hdr, 16, 0);
	UNIT_EQ(take(tags), 1);
	nothing_was_said(&v);
	send_eager(5, 3);
	UNIT_EQ(take(tags), 0);
	is_done(&v, 5, 3);
}

static void
the_earliest_receive_that_matches_takes_it(void)
{
	struct recv first = recv_of(0x10, 0xf0, 64), second = recv_of(0x17, ALL, 64);
	struct recv other = recv_of(0x27, ALL, 64);
	uint64_t tags[4];

	post(&other);
	post(&first);
	post(&second);
	send_eager(0x17, 5);
	UNIT_EQ(take(tags), 0);
	is_done(&first, 0x17, 5);
	nothing_was_said(&second);
	send_eager(0x17, 6);
	UNIT_EQ(take(tags), 0);
	is_done(&second, 0x17, 6);
	nothing_was_said(&other);
}

static void
a_full_list_refuses_and_has_room_again(void)
{
	struct recv v[LIST + 1];
	uint64_t tags[4];

	UNIT_EQ(b->tag_caps.list_n, LIST);
	for (unsigned i = 0; i <= LIST; i++)
		v[i] = recv_of(i, ALL, 64);
	for (unsigned i = 0; i < LIST; i++)
		post(&v[i]);
	UNIT_EQ(try_post(&v[LIST]), -ENOSPC);
	send_eager(LIST, 1);
	UNIT_EQ(take(tags), 1); /* a refused one is not there */
	nothing_was_said(&v[LIST]);
	send_eager(1, 1);
	UNIT_EQ(take(tags), 0);
	is_done(&v[1], 1, 1);
	seen = 1;
	post(&v[LIST]);
	send_eager(LIST, 2);
	UNIT_EQ(take(tags), 0);
	is_done(&v[LIST], LIST, 2);
}

static void
a_cancelled_receive_is_told_once_and_matches_no_more(void)
{
	struct recv v = recv_of(7, ALL, 64), later = recv_of(7, ALL, 64);
	uint64_t tags[4];

	post(&v);
	post(&later);
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, false, seen), 0);
	UNIT_EQ(take(tags), 0); /* it may be told as late as this */
	UNIT_EQ(v.completed, 1);
	UNIT_EQ(v.status, UCS_ERR_CANCELED);
	UNIT_EQ(v.consumed, 0);
	send_eager(7, 5);
	UNIT_EQ(take(tags), 0);
	is_done(&later, 7, 5);
	UNIT_EQ(v.completed, 1);
}

static void
a_receive_cancelled_by_force_is_gone_without_a_word(void)
{
	struct recv v = recv_of(7, ALL, 64);
	uint64_t tags[4];

	send_eager(7, 5);
	UNIT_EQ(take(tags), 1);
	post(&v);
	seen = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, true, seen), 0);
	send_eager(7, 5);
	UNIT_EQ(take(tags), 1);
	nothing_was_said(&v);
}

static void
a_message_too_long_is_told_and_not_copied(void)
{
	const uint32_t lens[] = {65, LONG};
	uint8_t before[1024];
	uint64_t tags[4];

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		struct recv v = recv_of(7, ALL, 64);

		memcpy(before, v.buf, sizeof(before));
		post(&v);
		send_eager(7, lens[i]);
		UNIT_EQ(take(tags), 0);
		UNIT_EQ(v.consumed, 1);
		UNIT_EQ(v.completed, 1);
		UNIT_EQ(v.status, UCS_ERR_MESSAGE_TRUNCATED);
		UNIT_EQ(v.len, lens[i]);
		UNIT_TRUE(!v.inlined);
		UNIT_SAME(v.buf, before, sizeof(before));
	}
}

static void
what_software_must_finish_is_handed_over_whole(void)
{
	const struct plx_wire_rts rts = {.tag = 7, .len = 1 << 20, .addr = 4096, .sreq = {1, 2}};
	const struct plx_wire_sync sync = {.tag = 8, .sreq = {3, 4}};
	const struct plx_wire_first first = {.tag = 9, .len = 500, .msg_id = 1};
	const struct {
		uint8_t op, len;
		const void *hdr;
	} msgs[] = {{PLX_WIRE_RTS, sizeof(rts), &rts}, {PLX_WIRE_SYNC, sizeof(sync), &sync},
		{PLX_WIRE_FIRST, sizeof(first), &first}};
	uint64_t tags[4];

	for (unsigned i = 0; i < RTE_DIM(msgs); i++) {
		struct recv v = recv_of(7 + i, ALL, 64);

		post(&v);
		send_op(msgs[i].op, msgs[i].hdr, msgs[i].len, 10);
		UNIT_EQ(take(tags), 0);
		UNIT_EQ(v.consumed, 1);
		UNIT_EQ(v.rndv, 1);
		UNIT_EQ(v.completed, 0);
		UNIT_EQ(v.status, UCS_OK);
		UNIT_EQ(v.stag, 7 + i);
		UNIT_EQ(v.op, msgs[i].op);
		UNIT_EQ(v.len, msgs[i].len + 10u);
		UNIT_TRUE(v.src != NULL && v.src->q == b);
		UNIT_SAME(v.buf, msgs[i].hdr, msgs[i].len);
		UNIT_TRUE(unit_is_filled(v.buf + msgs[i].len, 10, 10));
	}
}

static void
a_callback_may_post_and_the_count_holds_it_back(void)
{
	struct recv first = recv_of(7, ALL, 64), next = recv_of(8, ALL, 64);
	uint64_t tags[4] = {0};

	first.then = &next;
	post(&first);
	send_eager(8, 1); /* before `next` is posted, but in the same burst */
	send_eager(7, 2);
	send_eager(8, 3);
	UNIT_EQ(take(tags), 2);
	is_done(&first, 7, 2);
	nothing_was_said(&next); /* the first of the two is its */
	seen = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &next.ctx, true, seen), 0);
}

/* Every second message is matched by the device; the others stay as they are till released. */
static void
a_burst_stays_until_released_around_what_was_matched(void)
{
	static struct recv v[LIST];
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint64_t next = 1, sent = 0;

	while (next < 4000) {
		uint16_t n;

		for (unsigned i = 0; i < LIST; i++) {
			if (sent == 0 || v[i].completed) {
				v[i] = recv_of(0, 1, 1024); /* the even ones */
				post(&v[i]);
			}
		}
		while (sent < 4000 + 64 && sent < next + 40) {
			uint64_t tag = sent;

			if (!try_send(PLX_WIRE_EAGER, &tag, sizeof(tag), 1 + tag % LONG))
				break;
			sent++;
		}
		n = b->rx_burst(b, rx, PLX_DEV_RX_BURST);
		for (uint16_t k = 0; k < n; k++) {
			uint64_t tag;

			memcpy(&tag, rx[k].data, sizeof(tag));
			UNIT_EQ_FATAL(rx[k].len, 8 + 1 + tag % LONG);
			UNIT_TRUE_FATAL(unit_is_filled(rx[k].data + 8, 1 + tag % LONG, 1 + tag % LONG));
			if (tag % 2 == 1) {
				UNIT_EQ_FATAL(tag, next);
				next += 2;
			}
			seen++;
		}
		if (n != 0)
			b->rx_release(b, rx, n);
		sender_turn();
		UNIT_EQ(plx_queue_tag_post(b, NULL, seen), 0);
	}
	UNIT_TRUE(b->stat.rx_msgs > seen); /* some were matched */
}

static void
begin(void)
{
	struct plx_addr addr;
	uint64_t none;

	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "shm.fast_peers", fast_peers, PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "shm.huge", "no", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "tag.offload", "yes", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "net_mlx.tag_matching", "yes", PLX_CONF_FROM_API, NULL);
	UNIT_EQ(plx_conf_set(&conf, "tag.offload_list", RTE_STR(LIST), PLX_CONF_FROM_API, NULL), 0);
	fake_reset(1);
	fake.depth = 64;
	UNIT_EQ_FATAL(plx_dev_open(dev_name, &conf, &dev), 0);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &a), 0);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &b), 0);
	plx_queue_addr(b, &addr);
	UNIT_EQ_FATAL(plx_peer_get(a, &addr, &to_b), 0);
	UNIT_EQ_FATAL(plx_peer_connect(to_b), 0);
	seen = 0;
	(void)take(&none);
}

static void
end(void)
{
	plx_queue_close(a);
	plx_queue_close(b);
	plx_dev_close(dev);
}

static void
without_the_setting_no_device_matches(void)
{
	struct plx_queue *q;

	plx_conf_set(&conf, "tag.offload", "no", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q), 0);
	UNIT_EQ(q->tag_caps.list_n, 0);
	plx_queue_close(q);
}

static CU_TestInfo contract[] = {
	UNIT_TEST(a_message_is_put_into_the_receive_it_matches),
	UNIT_TEST(a_message_without_a_receive_comes_by_the_burst),
	UNIT_TEST(a_receive_matches_nothing_until_the_counts_agree),
	UNIT_TEST(a_count_told_with_a_post_or_a_cancel_counts_as_well),
	UNIT_TEST(what_is_no_tagged_message_is_neither_matched_nor_counted),
	UNIT_TEST(the_earliest_receive_that_matches_takes_it),
	UNIT_TEST(a_full_list_refuses_and_has_room_again),
	UNIT_TEST(a_cancelled_receive_is_told_once_and_matches_no_more),
	UNIT_TEST(a_receive_cancelled_by_force_is_gone_without_a_word),
	UNIT_TEST(a_message_too_long_is_told_and_not_copied),
	UNIT_TEST(what_software_must_finish_is_handed_over_whole),
	UNIT_TEST(a_callback_may_post_and_the_count_holds_it_back),
	UNIT_TEST(a_burst_stays_until_released_around_what_was_matched),
	UNIT_TEST(without_the_setting_no_device_matches),
	CU_TEST_INFO_NULL,
};

static void
on_fake(void)
{
	dev_name = "fake";
	fast_peers = "0";
	begin();
}

static void
on_shm(void)
{
	dev_name = "shm";
	fast_peers = "32";
	begin();
}

static void
on_shm_mail(void)
{
	dev_name = "shm";
	fast_peers = "0";
	begin();
}

static void
on_mlx(void)
{
	dev_name = "net_mlx";
	fast_peers = "0";
	begin();
}

static CU_SuiteInfo suites[] = {
	{"tag contract, fake", NULL, NULL, on_fake, end, contract},
	{"tag contract, shm with slots", NULL, NULL, on_shm, end, contract},
	{"tag contract, shm with mail", NULL, NULL, on_shm_mail, end, contract},
	CU_SUITE_INFO_NULL,
};

static CU_SuiteInfo mlx_suites[] = {
	{"tag contract, net_mlx", NULL, NULL, on_mlx, end, contract},
	CU_SUITE_INFO_NULL,
};

int
main(int argc, char **argv)
{
	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_dev_register(&fake_dev_ops) != 0 || plx_dev_register(&plx_shm_ops) != 0)
		return EXIT_FAILURE;
	if (argc > 1 && strcmp(argv[1], "net_mlx") == 0)
		return plx_dev_register(&plx_net_mlx_ops) == 0 ? unit_run(mlx_suites) : EXIT_FAILURE;
	return unit_run(suites);
}
