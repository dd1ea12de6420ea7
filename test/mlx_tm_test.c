/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_tm_test.c - net_mlx on a device that matches tags: what the contracts do not say
 *
 * What is promised of every device that matches is in tag_contract_test.c, the orders of events
 * are in tag_explore_test.c; here is what only this driver, or this device, can get wrong.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mlx_tm_model.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"
#include "plx_wire.h"

#define LIST  4
#define TURNS 200
#define ALL   UINT64_MAX

/* A receive and what was said of it. */
struct recv {
	uct_tag_context_t ctx;
	uint8_t buf[64];
	unsigned consumed, ended;
	ucs_status_t status;
	size_t len;
};

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *a, *b; /* a sends to b, which matches */
static struct plx_peer *to_b, *to_a;
static unsigned n_dead, n_rx;
static uint64_t last_tag;
static uint16_t seen;

static void
on_consumed(uct_tag_context_t *ctx)
{
	container_of(ctx, struct recv, ctx)->consumed++;
}

static void
on_completed(uct_tag_context_t *ctx, uct_tag_t stag, uint64_t imm, size_t length, void *inline_data,
	ucs_status_t status)
{
	struct recv *v = container_of(ctx, struct recv, ctx);

	(void)stag;
	(void)imm;
	(void)inline_data;
	v->ended++;
	v->status = status;
	v->len = length;
}

static void
on_rndv(uct_tag_context_t *ctx, uct_tag_t stag, const void *header, unsigned header_length,
	ucs_status_t status, unsigned flags)
{
	(void)header;
	(void)header_length;
	(void)flags;
	on_completed(ctx, stag, 0, 0, NULL, status);
}

static void
on_dead(struct plx_peer *peer)
{
	(void)peer;
	n_dead++;
}

static int
post(struct recv *v, uint64_t tag)
{
	struct plx_dev_recv r = {.tag = tag, .mask = ALL, .buf = v->buf, .len = sizeof(v->buf),
		.ctx = &v->ctx};

	*v = (struct recv){.ctx = {on_consumed, on_completed, on_rndv, ""}};
	return plx_queue_tag_post(b, &r, seen);
}

static void
turn(struct plx_queue *q)
{
	struct plx_rx rx[PLX_DEV_RX_BURST];
	uint16_t n = q->rx_burst(q, rx, PLX_DEV_RX_BURST);

	for (uint16_t i = 0; i < n; i++)
		if (rx[i].len >= sizeof(last_tag))
			memcpy(&last_tag, rx[i].data, sizeof(last_tag));
	n_rx += n;
	if (n != 0)
		q->rx_release(q, rx, n);
}

static void
turns(void)
{
	for (unsigned i = 0; i < TURNS; i++) {
		if (a != NULL)
			turn(a);
		turn(b);
	}
}

static struct plx_queue *
queue_open(bool tags)
{
	struct plx_queue *q;

	plx_conf_set(&conf, "net_mlx.tag_matching", tags ? "yes" : "no", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q), 0);
	q->on_dead = on_dead;
	return q;
}

static struct plx_peer *
connect_to(struct plx_queue *from, struct plx_queue *to)
{
	struct plx_addr addr;
	struct plx_peer *peer;

	plx_queue_addr(to, &addr);
	UNIT_EQ_FATAL(plx_peer_get(from, &addr, &peer), 0);
	UNIT_EQ_FATAL(plx_peer_connect(peer), 0);
	return peer;
}

static void
begin_with(bool a_matches)
{
	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "tag.offload", "yes", PLX_CONF_FROM_API, NULL);
	plx_conf_set(&conf, "tag.offload_list", RTE_STR(LIST), PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	n_dead = 0;
	seen = 0;
	a = queue_open(a_matches);
	b = queue_open(true);
	to_b = connect_to(a, b);
	to_a = connect_to(b, a);
	turns();
	n_rx = 0;
}

static void
begin(void)
{
	mlx_tm_model_reset(64);
	begin_with(false);
}

static void
a_closes(void)
{
	plx_queue_close(a);
	a = NULL;
}

static void
end(void)
{
	plx_queue_close(a);
	plx_queue_close(b);
	plx_dev_close(dev);
}

static const struct mlx_stat *
stat_of(const struct plx_queue *q)
{
	return &mlx_queue(q)->stat;
}

/* What the driver would never send: any header for the device. */
static void
send_raw(uint8_t op, uint8_t tm_op, uint32_t app, uint64_t tag, const void *data, uint32_t len)
{
	struct ibv_tmh tmh = {.opcode = tm_op, .app_ctx = htobe32(app), .tag = htobe64(tag)};
	struct plx_tx tx = {.peer = to_b, .hdr = &tmh, .hdr_len = sizeof(tmh), .data = data,
		.len = len, .op = op};

	UNIT_EQ_FATAL(mlx_tx_framed(&tx, len), 0);
}

static void
send_token(uint64_t tag)
{
	send_raw(PLX_WIRE_SYNC, IBV_TMH_EAGER, MLX_TM_TOKEN, tag, NULL, 0);
}

static void
send_eager(struct plx_peer *peer, uint64_t tag)
{
	UNIT_EQ_FATAL(plx_peer_tx_short(peer, PLX_WIRE_EAGER, tag, "0123", 4), 0);
}

/* The device matches: what is sent to the receive is put into it. */
static void
it_matches(uint64_t tag)
{
	struct recv v;

	UNIT_EQ(post(&v, tag), 0);
	send_eager(to_b, tag);
	turns();
	UNIT_EQ(v.consumed, 1);
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_OK);
	UNIT_EQ(v.len, 4);
	UNIT_SAME(v.buf, "0123", 4);
}

/* -- tests -- */

static void
without_the_capability_no_device_matches_and_all_else_works(void)
{
	const struct {
		uint32_t tags, flags, ops;
		int srq_err;
	} lacks[] = {{0, IBV_TM_CAP_RC, 1024, 0}, {64, 0, 1024, 0}, {64, IBV_TM_CAP_RC, 8, 0},
		{64, IBV_TM_CAP_RC, 1024, EINVAL}};

	end();
	for (unsigned i = 0; i < RTE_DIM(lacks); i++) {
		mlx_tm.caps.max_num_tags = lacks[i].tags;
		mlx_tm.caps.flags = lacks[i].flags;
		mlx_tm.caps.max_ops = lacks[i].ops;
		mlx_tm.srq_err = lacks[i].srq_err;
		begin_with(true);
		UNIT_EQ(b->tag_caps.list_n, 0);
		UNIT_TRUE(!mlx_peer_has_tags(mlx_peer(to_b)));
		send_eager(to_b, 7);
		turns();
		UNIT_EQ(n_rx, 1);
		UNIT_EQ(last_tag, 7);
		if (i + 1 < RTE_DIM(lacks))
			end();
	}
}

static void
the_list_is_as_long_as_the_device_can(void)
{
	struct recv v[3];

	UNIT_EQ(b->tag_caps.list_n, LIST);
	UNIT_TRUE(b->tag_caps.len_min + sizeof(uint64_t) >= to_b->mtu);
	end();
	mlx_tm_model_reset(2);
	begin_with(true);
	UNIT_EQ(b->tag_caps.list_n, 2);
	UNIT_EQ(post(&v[0], 1), 0);
	UNIT_EQ(post(&v[1], 2), 0);
	UNIT_EQ(post(&v[2], 3), -ENOSPC);
	UNIT_EQ(plx_queue_tag_cancel(b, &v[0].ctx, false, seen), 0);
	turns();
	UNIT_EQ(v[0].status, UCS_ERR_CANCELED);
	it_matches(3);
	UNIT_EQ(v[2].consumed, 0); /* it was refused */
}

static void
queues_that_match_and_others_speak_with_each_other(void)
{
	UNIT_TRUE(mlx_peer_has_tags(mlx_peer(to_b)) && !mlx_peer_has_tags(mlx_peer(to_a)));
	UNIT_EQ(to_b->mtu + sizeof(struct ibv_tmh), to_a->mtu);
	it_matches(7);
	send_eager(to_a, 8);
	turns();
	UNIT_EQ(n_rx, 1);
	UNIT_EQ(last_tag, 8);
	UNIT_EQ(stat_of(b)->tm_placed, 1);
	UNIT_EQ(stat_of(b)->tm_unexpected, 0);
}

static void
a_receive_whose_message_never_follows_its_token_fails(void)
{
	struct recv v;

	UNIT_EQ(post(&v, 7), 0);
	send_token(7);
	turns();
	UNIT_EQ(v.consumed, 1);
	UNIT_EQ(v.ended, 0);
	a_closes();
	turns();
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_ERR_CONNECTION_RESET);
	UNIT_EQ(n_dead, 1);
	UNIT_EQ(stat_of(b)->tm_failed, 1);
}

static void
a_token_whose_message_never_comes_does_not_stop_the_matching(void)
{
	struct recv v;

	send_token(7);
	turns();
	UNIT_EQ(n_rx, 0);
	UNIT_EQ(post(&v, 9), 0); /* held back, as the token has not been dealt with */
	a_closes();
	turns();
	UNIT_EQ(stat_of(b)->tm_dropped, 1);
	a = queue_open(false);
	to_b = connect_to(a, b);
	turns();
	send_eager(to_b, 9);
	turns();
	UNIT_EQ(v.ended, 1);
	it_matches(8);
}

static void
while_a_token_waits_for_its_message_nothing_new_matches(void)
{
	const struct plx_wire_sync sync = {.tag = 7, .sreq = {1, 2}};
	struct recv v;

	send_token(7);
	turns();
	UNIT_EQ(post(&v, 7), 0); /* the message of the token is the earlier one */
	send_raw(PLX_WIRE_SYNC, IBV_TMH_NO_TAG, 0, 0, &sync, sizeof(sync));
	turns();
	UNIT_EQ(n_rx, 1);
	UNIT_EQ(v.consumed, 0);
	seen = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, true, seen), 0);
	it_matches(7);
}

/* Both of them or none is sent, whatever is left of the credits. */
static void
a_token_is_not_sent_without_its_message(void)
{
	struct plx_wire_sync sync = {.tag = 0};
	struct plx_tx tx = {.peer = to_b, .hdr = &sync, .hdr_len = sizeof(sync), .op = PLX_WIRE_SYNC};
	unsigned sent = 0, full = 0;

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < round; i++)
			sent += plx_peer_tx_short(to_b, PLX_WIRE_AM, 1, NULL, 0) == 0;
		while (plx_peer_tx(&tx) == 0)
			sent++;
		full++;
		turns();
		UNIT_EQ_FATAL(n_rx, sent);
	}
	UNIT_EQ(stat_of(b)->tm_drop_bad + stat_of(b)->tm_dropped, 0);
	UNIT_EQ(a->stat.tx_msgs, sent);
	UNIT_TRUE(a->stat.tx_full >= full);
}

/* What the device calls a receive is another's once it has said all of the first. */
static void
a_receive_that_is_over_for_the_device_is_not_taken_out(void)
{
	const struct plx_wire_sync sync = {.tag = 7, .sreq = {1, 2}};
	struct recv v, w, x[LIST - 1];
	struct plx_rx rx;

	for (unsigned i = 0; i < 2; i++) {
		bool token = i == 0; /* else it was polled, and not looked at */

		UNIT_EQ(post(&v, 7), 0);
		UNIT_EQ(post(&w, 8), 0);
		send_eager(to_b, 8);
		if (token) {
			send_token(7);
			turns();
		} else {
			send_eager(to_b, 7);
			UNIT_TRUE(mlx_rx_waits(mlx_queue(b)));
			UNIT_EQ(b->rx_burst(b, &rx, 1), 0);
		}
		UNIT_EQ(v.consumed, token);
		UNIT_EQ(w.ended, 1);
		for (unsigned k = 0; k < LIST - 1; k++)
			UNIT_EQ(post(&x[k], 100 + k), 0);
		UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, false, seen), 0);
		turns();
		UNIT_EQ(mlx_tm_model_listed(), LIST - 1);
		if (token)
			send_raw(PLX_WIRE_SYNC, IBV_TMH_NO_TAG, 0, 0, &sync, sizeof(sync));
		turns();
		UNIT_EQ(v.ended, 1);
		UNIT_EQ(v.status, UCS_OK);
		for (unsigned k = 0; k < LIST - 1; k++)
			UNIT_EQ(plx_queue_tag_cancel(b, &x[k].ctx, false, seen), 0);
		turns();
		UNIT_EQ(x[LIST - 2].status, UCS_ERR_CANCELED);
	}
	UNIT_EQ(stat_of(b)->tm_late, 0);
}

static void
a_receive_may_be_longer_than_the_device_can_count(void)
{
	const size_t len = 1ull << 32;
	struct recv v = {.ctx = {on_consumed, on_completed, on_rndv, ""}};
	struct plx_dev_recv r = {.tag = 7, .mask = ALL, .len = len, .ctx = &v.ctx};

	r.buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	UNIT_TRUE_FATAL(r.buf != MAP_FAILED);
	UNIT_EQ(plx_queue_tag_post(b, &r, seen), 0);
	send_eager(to_b, 7);
	turns();
	UNIT_EQ(v.status, UCS_OK);
	UNIT_EQ(v.len, 4);
	UNIT_SAME(r.buf, "0123", 4);
	munmap(r.buf, len);
}

static void
a_message_in_two_parts_is_told_in_two(void)
{
	struct recv v;

	UNIT_EQ(post(&v, 7), 0);
	mlx_tm.halves = true;
	send_eager(to_b, 7);
	turns();
	UNIT_EQ(v.consumed, 1);
	UNIT_EQ(v.ended, 0);
	mlx_tm_model_rest();
	turns();
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_OK);
	UNIT_SAME(v.buf, "0123", 4);
}

static void
a_message_that_breaks_off_fails_its_receive(void)
{
	struct recv v;

	UNIT_EQ(post(&v, 7), 0);
	mlx_tm.halves = true;
	mlx_tm.broken = 1;
	send_eager(to_b, 7);
	turns();
	mlx_tm_model_rest();
	turns();
	UNIT_EQ(v.consumed, 1);
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_ERR_IO_ERROR);
	mlx_tm.halves = false;
	it_matches(8);
}

/* The device may still write to it, so its place stays taken until it has said its last. */
static void
a_receive_whose_peer_is_lost_halfway_fails_and_its_place_waits(void)
{
	struct recv v, more[LIST];

	UNIT_EQ(post(&v, 7), 0);
	mlx_tm.halves = true;
	send_eager(to_b, 7);
	turns();
	plx_link_lose(&mlx_peer(to_a)->link, -ETIME);
	turns();
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_ERR_CONNECTION_RESET);
	for (unsigned i = 0; i + 1 < LIST; i++)
		UNIT_EQ(post(&more[i], 100 + i), 0);
	UNIT_EQ(post(&more[LIST - 1], 200), -ENOSPC);
	UNIT_EQ(v.ended, 1);
}

static void
a_command_without_room_is_given_later(void)
{
	struct recv v, w, x;

	mlx_tm.full = 1;
	UNIT_EQ(post(&v, 7), -ENOSPC);
	UNIT_EQ(plx_queue_tag_post(b, NULL, seen), -EAGAIN);
	mlx_tm.full = 0;
	send_eager(to_b, 9);
	turns();
	UNIT_EQ(post(&v, 9), 0);
	seen = 1;
	mlx_tm.full = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, true, seen), 0); /* it is still in the list */
	UNIT_EQ(post(&w, 8), -EAGAIN);
	UNIT_EQ(mlx_tm_model_listed(), 1);
	send_eager(to_b, 9); /* nothing was reported, so it cannot match */
	turns();
	UNIT_EQ(v.consumed, 0);
	seen = 2;
	mlx_tm.full = 0;
	UNIT_EQ(post(&w, 8), 0);
	UNIT_EQ(mlx_tm_model_listed(), 1);
	it_matches(9);
	UNIT_EQ(v.consumed, 0);
	/* One that is asked for is answered, if late. */
	mlx_tm.full = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &w.ctx, false, seen), 0);
	turns();
	UNIT_EQ(w.ended, 0);
	mlx_tm.full = 0;
	UNIT_EQ(post(&x, 3), 0);
	turns();
	UNIT_EQ(w.ended, 1);
	UNIT_EQ(w.status, UCS_ERR_CANCELED);
}

static void
a_cancel_that_finds_no_room_is_given_without_another_command(void)
{
	struct recv v;

	UNIT_EQ(post(&v, 7), 0);
	mlx_tm.full = 1;
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, false, seen), 0);
	mlx_tm.full = 0;
	turns();
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_ERR_CANCELED);
}

/* No buffer is given back before the queue pairs are closed: they might be written to. */
static void
a_device_that_executes_no_command_is_gone(void)
{
	struct plx_addr addr;
	struct recv v, w;

	UNIT_EQ(post(&v, 7), 0);
	UNIT_EQ(post(&w, 8), 0);
	mlx_tm.dead = true;
	UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, false, seen), 0);
	turns();
	UNIT_EQ(v.ended, 0);
	UNIT_EQ(post(&(struct recv){0}, 9), -EAGAIN);
	plx_queue_control(a);
	plx_queue_control(b);
	turns();
	UNIT_EQ(n_dead, 2);
	UNIT_EQ(to_a->err, -ENODEV);
	UNIT_EQ(v.ended, 1);
	UNIT_EQ(v.status, UCS_ERR_CANCELED);
	UNIT_EQ(w.ended, 0);
	UNIT_EQ(plx_queue_tag_cancel(b, &w.ctx, false, seen), 0);
	turns();
	UNIT_EQ(w.status, UCS_ERR_CANCELED);
	/* Nobody is connected any more, who might send to what was given back. */
	plx_queue_close(a);
	a = queue_open(false);
	plx_queue_addr(a, &addr);
	UNIT_EQ(plx_peer_get(b, &addr, &to_a), 0);
	UNIT_EQ(plx_peer_connect(to_a), -ENODEV);
}

static void
a_message_with_credits_that_are_none_is_counted(void)
{
	struct recv v;

	mlx_peer(to_b)->link.credit.owed = PLX_CREDIT_MAX;
	send_eager(to_b, 7);
	turns();
	UNIT_EQ(n_rx, 0);
	UNIT_EQ(stat_of(b)->rx_drop_bad_credit, 1);
	UNIT_EQ(stat_of(b)->tm_dropped, 1);
	UNIT_EQ(post(&v, 7), 0);
	UNIT_EQ(mlx_tm.held_back, 0);
}

/* Each costs its sender the connection, and the count stays right. */
static void
what_senders_must_not_do_is_refused(void)
{
	const struct plx_wire_sync sync = {.tag = 8, .sreq = {1, 2}};
	struct recv v;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t bad = stat_of(b)->tm_drop_bad;

		UNIT_EQ(post(&v, 7), 0);
		switch (i) {
		case 0: /* a second token */
			send_token(1);
			send_token(2);
			break;
		case 1: /* a whole message after a token */
			send_token(1);
			send_eager(to_b, 2);
			break;
		case 2: /* a token for a message without a tag */
			send_token(1);
			send_raw(PLX_WIRE_AM, IBV_TMH_NO_TAG, 0, 0, &sync, sizeof(sync));
			break;
		case 3: /* a tagged message without a token */
			send_raw(PLX_WIRE_SYNC, IBV_TMH_NO_TAG, 0, 0, &sync, sizeof(sync));
			break;
		case 4: /* another tag than the token's, which met a receive */
			send_token(7);
			send_raw(PLX_WIRE_SYNC, IBV_TMH_NO_TAG, 0, 0, &sync, sizeof(sync));
			break;
		case 5: /* neither a whole message nor a token */
			send_raw(PLX_WIRE_EAGER, IBV_TMH_EAGER, 5, 1, &sync, sizeof(sync));
			break;
		case 6: /* the same, and it met a receive */
			send_raw(PLX_WIRE_EAGER, IBV_TMH_EAGER, 5, 7, &sync, sizeof(sync));
			break;
		case 7: /* the device's own way of announcing */
			send_raw(PLX_WIRE_EAGER, IBV_TMH_RNDV, 0, 1, &sync, sizeof(sync));
			break;
		}
		turns();
		UNIT_EQ(stat_of(b)->tm_drop_bad, bad + 1);
		UNIT_EQ(n_dead, i + 1);
		UNIT_EQ(n_rx, 0);
		UNIT_EQ(v.ended, i == 4 || i == 6);
		if (v.ended == 0) {
			UNIT_EQ(plx_queue_tag_cancel(b, &v.ctx, false, seen), 0);
			turns();
			UNIT_EQ(v.status, UCS_ERR_CANCELED);
		} else {
			UNIT_EQ(v.status, UCS_ERR_IO_ERROR);
		}
		plx_queue_close(a);
		n_dead = i + 1;
		a = queue_open(false);
		to_b = connect_to(a, b);
		turns();
		it_matches(3);
	}
}

static void
a_queue_that_closes_tells_nothing_of_its_receives(void)
{
	struct recv v, w;

	UNIT_EQ(post(&v, 7), 0);
	UNIT_EQ(post(&w, 8), 0);
	send_eager(to_b, 7); /* it has met the receive, and b has not looked */
	plx_queue_close(b);
	b = queue_open(true);
	UNIT_EQ(v.consumed + v.ended + w.consumed + w.ended, 0);
}

static CU_TestInfo tests[] = {
	UNIT_TEST(without_the_capability_no_device_matches_and_all_else_works),
	UNIT_TEST(the_list_is_as_long_as_the_device_can),
	UNIT_TEST(queues_that_match_and_others_speak_with_each_other),
	UNIT_TEST(a_receive_whose_message_never_follows_its_token_fails),
	UNIT_TEST(a_token_whose_message_never_comes_does_not_stop_the_matching),
	UNIT_TEST(while_a_token_waits_for_its_message_nothing_new_matches),
	UNIT_TEST(a_token_is_not_sent_without_its_message),
	UNIT_TEST(a_receive_that_is_over_for_the_device_is_not_taken_out),
	UNIT_TEST(a_receive_may_be_longer_than_the_device_can_count),
	UNIT_TEST(a_message_in_two_parts_is_told_in_two),
	UNIT_TEST(a_message_that_breaks_off_fails_its_receive),
	UNIT_TEST(a_receive_whose_peer_is_lost_halfway_fails_and_its_place_waits),
	UNIT_TEST(a_command_without_room_is_given_later),
	UNIT_TEST(a_cancel_that_finds_no_room_is_given_without_another_command),
	UNIT_TEST(a_device_that_executes_no_command_is_gone),
	UNIT_TEST(a_message_with_credits_that_are_none_is_counted),
	UNIT_TEST(what_senders_must_not_do_is_refused),
	UNIT_TEST(a_queue_that_closes_tells_nothing_of_its_receives),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"net_mlx with tags", NULL, NULL, begin, end, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	plx_log_set_level(RTE_LOG_EMERG);
	return plx_init_drivers() == 0 ? unit_run(suites) : EXIT_FAILURE;
}
