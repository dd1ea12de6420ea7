/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_lossy_test.c - messages of net_mlx that may get lost: who is believed, how they find their way
 *
 * The device is the model of an mlx5 device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlx5_verbs.h"
#include "plx_init.h"
#include "plx_log.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"

#define QUEUES 3
#define OP     37
#define MANY   (MLX_WAYS_MAX + 50u)
#define PATIENCE_S 15
#define PROBE_NS   20000000u
#define CONNECT_NS 60000000u

static struct plx_conf conf;
static struct plx_dev *dev;
static struct plx_queue *q[QUEUES];
static struct plx_peer *to[QUEUES][QUEUES];
static uint32_t where[QUEUES];

/* What came last. */
static struct {
	unsigned n;
	struct plx_queue *q;
	struct plx_peer *src;
	uint32_t len;
	uint8_t op;
	uint8_t bytes[4096];
} got;

static void
on_lossy(struct plx_queue *queue, const struct plx_rx *rx)
{
	got.n++;
	got.q = queue;
	got.src = rx->src;
	got.len = rx->len;
	got.op = rx->op;
	memcpy(got.bytes, rx->data, rx->len);
}

static struct mlx_stat *
stat_of(unsigned i)
{
	return &mlx_queue(q[i])->stat;
}

static void
turns(void)
{
	struct plx_rx rx;

	for (unsigned k = 0; k < 64; k++)
		for (unsigned i = 0; i < QUEUES; i++)
			if (q[i]->rx_burst(q[i], &rx, 1) != 0)
				q[i]->rx_release(q[i], &rx, 1);
}

/* All queues know each other; the first two have told each other where. */
static void
begin(void)
{
	struct plx_addr addr;

	plx_conf_defaults(&conf);
	plx_conf_set(&conf, "net_mlx.connected", "2", PLX_CONF_FROM_API, NULL);
	UNIT_EQ_FATAL(plx_dev_open("net_mlx", &conf, &dev), 0);
	memset(&got, 0, sizeof(got));
	for (unsigned i = 0; i < QUEUES; i++) {
		UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[i]), 0);
		q[i]->on_lossy = on_lossy;
		UNIT_EQ_FATAL(plx_queue_lossy_open(q[i], &where[i]), 0);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		for (unsigned k = 0; k < QUEUES; k++) {
			plx_queue_addr(q[k], &addr);
			UNIT_EQ_FATAL(plx_peer_get(q[i], &addr, &to[i][k]), 0);
		}
	}
	UNIT_EQ_FATAL(plx_peer_lossy_to(to[0][1], where[1]), 0);
	UNIT_EQ_FATAL(plx_peer_lossy_to(to[1][0], where[0]), 0);
}

static void
end(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_close(q[i]);
	plx_dev_close(dev);
	UNIT_EQ(mlx5_verbs.n_ahs, 0);
}

/* Address handles but for those of the queues' own ports. */
static uint32_t
ahs(void)
{
	return mlx5_verbs.n_ahs - QUEUES;
}

static int
send(struct plx_peer *peer, const void *data, uint32_t len)
{
	const uint64_t hdr = UINT64_C(0x1122334455667788);
	const struct plx_tx tx = {.peer = peer, .hdr = &hdr, .hdr_len = sizeof(hdr), .data = data,
		.len = len, .op = OP};

	return plx_peer_lossy_tx(&tx);
}

/* Bytes as they are go from one queue's queue pair to another's. */
static void
forge(unsigned from, unsigned dest, const void *bytes, uint32_t len)
{
	struct mlx_queue *mq = mlx_queue(q[from]);
	struct mlx_peer *p = mlx_peer(to[from][dest]);
	void *at = mlx_ud_room(&mq->lossy);
	struct ibv_ah *ah;

	UNIT_EQ_FATAL(mlx_way_get(mq, p, &mq->lossy, &ah), 0);
	memcpy(at, bytes, len);
	mlx_ud_send(mq, &mq->lossy, len, ah, where[dest], mlx_addr_qkey(&p->addr));
	turns();
}

static void
a_message_needs_no_connection(void)
{
	uint8_t data[4096];
	uint32_t most;

	begin();
	unit_fill(data, sizeof(data), 1);
	most = to[0][1]->lossy_mtu - sizeof(uint64_t);
	UNIT_EQ(to[0][1]->lossy_mtu, 4096 - sizeof(struct mlx_stamp));
	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t len = 0; len <= most; len = len == most ? most + 1 : RTE_MIN(2 * len + 1, most)) {
			got.n = 0;
			UNIT_EQ(send(to[i][!i], data, len), 0);
			turns();
			UNIT_EQ_FATAL(got.n, 1);
			UNIT_TRUE(got.q == q[!i] && got.src == to[!i][i]);
			UNIT_EQ(got.op, OP);
			UNIT_EQ_FATAL(got.len, sizeof(uint64_t) + len);
			UNIT_SAME(got.bytes + sizeof(uint64_t), data, len);
		}
		UNIT_EQ(mlx_queue(q[i])->link.n_made, 0);
		UNIT_EQ(stat_of(i)->lossy_tx, stat_of(!i)->lossy_rx);
		UNIT_EQ(to[i][!i]->state, PLX_PEER_NEW);
	}
	end();
}

/* @return whether a message went by the connection */
static bool
connected_send(struct plx_peer *peer)
{
	int rc = plx_peer_connect(peer);

	if (rc == 0)
		rc = plx_peer_tx_short(peer, OP, 0, NULL, 0);
	turns();
	for (unsigned i = 0; i < QUEUES; i++)
		plx_queue_control(q[i]);
	return rc == 0;
}

/* Two may be connected at once, and three are: the first is disconnected. */
static void
give_way(void)
{
	time_t since = time(NULL);

	for (unsigned i = 1; i <= QUEUES; i++)
		while (!connected_send(to[0][i % QUEUES]) && time(NULL) - since < PATIENCE_S)
			;
	UNIT_EQ(mlx_peer(to[0][1])->link.state, PLX_LINK_NONE);
	UNIT_TRUE(stat_of(0)->link.parked > 0);
}

/* It is not made again. */
static void
a_connection_that_gave_way_is_not_missed(void)
{
	uint64_t asked;

	begin();
	give_way();
	asked = stat_of(0)->link.asked + stat_of(1)->link.asked;
	for (unsigned i = 0; i < 2; i++) {
		got.n = 0;
		UNIT_EQ(send(to[i][!i], NULL, 0), 0);
		turns();
		UNIT_EQ(got.n, 1);
	}
	UNIT_EQ(mlx_peer(to[0][1])->link.state, PLX_LINK_NONE);
	UNIT_EQ(stat_of(0)->link.asked + stat_of(1)->link.asked, asked);
	end();
}

/* The first asks its peers sooner than it usually does. */
static void
be_quick(void)
{
	mlx_queue(q[0])->link.probe_ns = PROBE_NS;
	mlx_queue(q[0])->link.connect_ns = CONNECT_NS;
}

/* So long the first sends, and the first n queues look. */
static void
go_on(unsigned n, uint64_t ns)
{
	uint64_t until = plx_clock_ns() + ns;

	while (plx_clock_ns() < until && to[0][1]->state != PLX_PEER_DEAD) {
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
		turns();
		for (unsigned i = 0; i < n; i++)
			plx_queue_control(q[i]);
	}
	turns(); /* the last answer */
}

static void
who_is_gone_is_noticed_though_its_connection_gave_way(void)
{
	begin();
	give_way();
	be_quick();
	plx_queue_close(q[1]);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[1]), 0); /* somebody else */
	go_on(QUEUES, PATIENCE_S * UINT64_C(1000000000));
	UNIT_EQ(to[0][1]->state, PLX_PEER_DEAD);
	UNIT_EQ(to[0][1]->err, -ETIME);
	UNIT_EQ(send(to[0][1], NULL, 0), -ETIME);
	UNIT_EQ(stat_of(0)->link.silent_gone, 1);
	UNIT_EQ(stat_of(0)->link.silent_answered, 0);
	UNIT_TRUE(stat_of(0)->link.silent_asked > 1);
	end();
}

static void
who_answers_is_there_without_a_connection(void)
{
	begin();
	be_quick();
	go_on(2, 5 * CONNECT_NS);
	UNIT_TRUE(to[0][1]->state != PLX_PEER_DEAD);
	UNIT_TRUE(stat_of(0)->link.silent_asked > 1);
	UNIT_TRUE(stat_of(0)->link.silent_asked <= 5 * CONNECT_NS / PROBE_NS + 1);
	UNIT_EQ(stat_of(0)->link.silent_answered, stat_of(0)->link.silent_asked);
	UNIT_EQ(mlx_queue(q[0])->link.n_made, 0);
	end();
}

/* The first looks at its peers. */
static void
look(void)
{
	mlx_queue(q[0])->link.peers_ns = 0;
	plx_queue_control(q[0]);
	turns();
}

static void
who_is_heard_or_sent_nothing_is_not_called(void)
{
	begin();
	mlx_queue(q[0])->link.probe_ns = 100 * UINT64_C(1000000000);
	look();
	look();
	for (unsigned i = 0; i < 3; i++) {
		UNIT_EQ(send(to[1][0], NULL, 0), 0);
		turns();
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
		look();
	}
	UNIT_EQ(stat_of(0)->link.silent_asked, 0);
	mlx_peer(to[0][1])->link.heard_ns = 0;
	look();
	UNIT_EQ(stat_of(0)->link.silent_asked, 1);
	end();
}

/* The answer has come meanwhile, and is behind others. */
static void
who_does_not_look_itself_takes_nobody_for_gone(void)
{
	uint64_t until;

	begin();
	be_quick();
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	mlx_queue(q[0])->link.peers_ns = 0;
	plx_queue_control(q[0]);
	UNIT_EQ(stat_of(0)->link.silent_asked, 1);
	mlx5_verbs.no_datagrams = true;
	until = plx_clock_ns() + 3 * CONNECT_NS;
	while (plx_clock_ns() < until)
		turns();
	plx_queue_control(q[0]);
	plx_queue_control(q[0]);
	turns();
	UNIT_TRUE(to[0][1]->state != PLX_PEER_DEAD);
	mlx5_verbs.no_datagrams = false;
	go_on(2, 2 * CONNECT_NS);
	UNIT_TRUE(to[0][1]->state != PLX_PEER_DEAD);
	UNIT_TRUE(stat_of(0)->link.silent_answered > 0);
	end();
}

/* It has given us up meanwhile, or never agreed to take anything. */
static void
who_has_agreed_on_nothing_does_not_answer(void)
{
	struct mlx_dgram call = {.kind = MLX_DGRAM_CALL};
	uint64_t before;

	begin();
	call.from = mlx_queue(q[0])->addr;
	call.to_uid = mlx_queue(q[1])->addr.uid;
	call.qpn = where[0] + 1;
	before = mlx_queue(q[1])->ud.sent;
	mlx_dgram_take(mlx_queue(q[1]), &call);
	UNIT_EQ(mlx_queue(q[1])->ud.sent, before);
	call.qpn = where[0];
	mlx_dgram_take(mlx_queue(q[1]), &call);
	UNIT_EQ(mlx_queue(q[1])->ud.sent, before + 1);
	plx_link_lose(&mlx_peer(to[1][0])->link, -ETIME);
	mlx_dgram_take(mlx_queue(q[1]), &call);
	UNIT_EQ(mlx_queue(q[1])->ud.sent, before + 1);
	end();
}

/* It names a peer, and comes from elsewhere; or no peer has announced it. */
static void
what_is_not_from_the_peer_that_it_names_is_dropped(void)
{
	struct mlx_stamp stamp = {.magic = 0x6c786c70u, .op = OP};
	struct mlx_peer *p;

	begin();
	p = mlx_peer(to[1][0]);
	stamp.from = p->addr.uid;
	forge(0, 1, &stamp, sizeof(stamp));
	UNIT_EQ(got.n, 1); /* that would be one */
	forge(2, 1, &stamp, sizeof(stamp)); /* another queue pair */
	stamp.from = mlx_queue(q[2])->addr.uid;
	forge(2, 1, &stamp, sizeof(stamp)); /* another peer, which is unknown here */
	stamp.from ^= 1;
	forge(0, 1, &stamp, sizeof(stamp)); /* of nobody */
	stamp.from = p->addr.uid;
	p->addr.lid++;
	forge(0, 1, &stamp, sizeof(stamp)); /* another port */
	p->addr.lid--;
	UNIT_EQ(stat_of(1)->lossy_drop_not_ours, 4);
	UNIT_EQ(got.n, 1);
	plx_peer_dead(to[1][0], -ECONNRESET);
	forge(0, 1, &stamp, sizeof(stamp));
	UNIT_EQ(stat_of(1)->lossy_drop_not_ours, 5);
	UNIT_EQ(send(to[1][0], NULL, 0), -ECONNRESET);
	UNIT_EQ(got.n, 1);
	end();
}

static void
stamps_that_make_no_sense_are_dropped(void)
{
	struct {
		struct mlx_stamp stamp;
		uint8_t data[8];
	} m = {.stamp = {.magic = 0x6c786c70u, .len = 8, .op = OP}}, bad;

	begin();
	m.stamp.from = mlx_queue(q[0])->addr.uid;
	for (uint32_t len = 0; len < sizeof(m); len++) {
		forge(0, 1, &m, len);
		UNIT_EQ(stat_of(1)->lossy_drop_bad, len + 1);
	}
	for (unsigned i = 0; i < offsetof(struct mlx_stamp, from); i++) {
		bad = m;
		((uint8_t *)&bad)[i] ^= 0x10;
		if (i != offsetof(struct mlx_stamp, op))
			forge(0, 1, &bad, sizeof(bad));
	}
	UNIT_EQ(stat_of(1)->lossy_drop_bad, sizeof(m) + 7);
	UNIT_EQ(got.n, 0);
	forge(0, 1, &m, sizeof(m));
	UNIT_EQ(got.n, 1);
	end();
}

static void
places_that_cannot_be_are_refused(void)
{
	struct plx_addr addr;
	uint32_t again;

	begin();
	UNIT_EQ(plx_queue_lossy_open(q[0], &again), 0);
	UNIT_EQ(again, where[0]);
	UNIT_EQ(plx_peer_lossy_to(to[0][2], 0), -EINVAL);
	UNIT_EQ(plx_peer_lossy_to(to[0][2], 1u << 24), -EINVAL);
	UNIT_EQ(to[0][2]->lossy_mtu, 0);
	plx_queue_close(q[2]);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[2]), 0);
	plx_queue_addr(q[0], &addr);
	UNIT_EQ_FATAL(plx_peer_get(q[2], &addr, &to[2][0]), 0);
	UNIT_EQ(plx_peer_lossy_to(to[2][0], where[0]), -EINVAL); /* it takes none itself */
	end();
}

static void
more_than_there_is_room_for_is_refused_and_then_taken(void)
{
	unsigned n = 0;

	begin();
	while (n < 10000 && send(to[0][1], NULL, 0) == 0)
		n++;
	UNIT_EQ(n, MLX_UD_TX);
	UNIT_EQ(stat_of(0)->lossy_no_room, 1);
	turns();
	UNIT_EQ(got.n, MLX_UD_TX);
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	turns();
	UNIT_EQ(got.n, MLX_UD_TX + 1);
	end();
}

static struct ibv_ah *
no_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EAGAIN;
	return NULL;
}

/* A queue of the same port that nobody is. */
static struct plx_peer *
stranger(unsigned i)
{
	struct plx_addr addr;
	struct mlx_addr a;
	struct plx_peer *peer;

	plx_queue_addr(q[1], &addr);
	memcpy(&a, addr.bytes, sizeof(a));
	a.uid = 1000 + i;
	memcpy(addr.bytes, &a, sizeof(a));
	UNIT_EQ_FATAL(plx_peer_get(q[0], &addr, &peer), 0);
	UNIT_EQ_FATAL(plx_peer_lossy_to(peer, 0x123456), 0);
	return peer;
}

static void
one_completion_stands_for_several(void)
{
	uint64_t before;

	begin();
	before = mlx5_verbs.n_sent;
	for (unsigned i = 0; i < 10 * MLX_UD_TX; i++) {
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
		turns();
	}
	UNIT_EQ(mlx5_verbs.n_sent - before, 10 * MLX_UD_TX / MLX_UD_SIGNAL);
	UNIT_EQ(got.n, 10 * MLX_UD_TX);
	end();
}

/* Their places are taken until others follow, which never find none. */
static void
the_last_without_a_completion_are_done_when_others_follow(void)
{
	unsigned n;

	begin();
	for (unsigned last = 0; last < MLX_UD_SIGNAL; last++) {
		for (n = 0; n < last; n++)
			UNIT_EQ(send(to[0][1], NULL, 0), 0);
		turns();
		n = (mlx_queue(q[0])->lossy.sent) % MLX_UD_SIGNAL;
		while (send(to[0][1], NULL, 0) == 0)
			n++;
		UNIT_EQ(n, MLX_UD_TX);
		turns();
		while ((mlx_queue(q[0])->lossy.sent) % MLX_UD_SIGNAL != 0)
			UNIT_EQ(send(to[0][1], NULL, 0), 0);
		turns();
		UNIT_EQ(mlx_queue(q[0])->lossy.done, mlx_queue(q[0])->lossy.sent);
	}
	end();
}

static void
short_messages_are_inside_of_the_request(void)
{
	const uint32_t most = MLX_INLINE_MAX - sizeof(struct mlx_stamp) - sizeof(uint64_t);
	uint8_t data[2 * MLX_INLINE_MAX];
	uint64_t before;

	begin();
	unit_fill(data, sizeof(data), 3);
	for (uint32_t len = 0; len <= sizeof(data); len++) {
		before = mlx5_verbs.n_inline;
		UNIT_EQ(send(to[0][1], data, len), 0);
		turns();
		UNIT_EQ(mlx5_verbs.n_inline - before, len <= most);
		UNIT_EQ(got.len, sizeof(uint64_t) + len);
		UNIT_SAME(got.bytes + sizeof(uint64_t), data, len);
	}
	end();
}

/* An error has a completion even where none was asked for, and leaves nothing taken. */
static void
what_the_device_does_not_send_is_counted_and_done(void)
{
	begin();
	mlx5_verbs.datagrams_fail = true;
	for (unsigned i = 0; i < MLX_UD_SIGNAL - 1; i++)
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
	turns();
	mlx5_verbs.datagrams_fail = false;
	UNIT_EQ(stat_of(0)->ud_failed, MLX_UD_SIGNAL - 1);
	UNIT_EQ(mlx_queue(q[0])->lossy.done, MLX_UD_SIGNAL - 1);
	for (unsigned i = 0; i < QUEUES; i++) /* no other queue pair */
		UNIT_TRUE(mlx_queue(q[i])->lossy.failed == (i == 0) && !mlx_queue(q[i])->ud.failed);
	plx_queue_control(q[0]);
	for (unsigned i = 0; i < MLX_UD_TX; i++)
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
	UNIT_EQ(send(to[0][1], NULL, 0), -EAGAIN);
	turns();
	UNIT_EQ(got.n, MLX_UD_TX);
	end();
}

/* One that fails says that those before it are done. */
static void
an_error_stands_for_those_before_it(void)
{
	begin();
	for (unsigned i = 0; i < MLX_UD_SIGNAL / 2; i++)
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
	mlx5_verbs.datagrams_fail = true;
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	mlx5_verbs.datagrams_fail = false;
	turns();
	UNIT_EQ(stat_of(0)->ud_failed, 1);
	UNIT_EQ(mlx_queue(q[0])->lossy.done, MLX_UD_SIGNAL / 2 + 1);
	end();
}

static void
what_is_waited_for_ends_though_nothing_follows(void)
{
	struct mlx_queue *mq;

	begin();
	mq = mlx_queue(q[0]);
	UNIT_TRUE(!mlx_lossy_drain(mq));
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	turns();
	UNIT_EQ(mq->lossy.done, 0);
	UNIT_TRUE(mlx_lossy_drain(mq));
	UNIT_TRUE(!mlx_lossy_drain(mq));
	UNIT_EQ(mq->lossy.sent, 2);
	turns();
	mlx_ud_end(mq, &mq->lossy);
	UNIT_EQ(mq->lossy.sent, 2);
	UNIT_EQ(stat_of(0)->lossy_tx, 1);
	UNIT_EQ(stat_of(0)->lossy_drop_bad + stat_of(0)->lossy_drop_not_ours, 0);
	UNIT_EQ(got.n, 1);
	end();
}

/* Without a way to the own port each has its completion. */
static void
where_nobody_can_wait_for_the_last_all_have_completions(void)
{
	struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *) = mlx_glue.create_ah;

	mlx_glue.create_ah = no_ah;
	begin();
	mlx_glue.create_ah = create;
	for (unsigned i = 0; i < 5; i++) {
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
		turns();
		UNIT_EQ(mlx_queue(q[0])->lossy.done, i + 1);
	}
	end();
}

/* The one used last by a message is the oldest when only other datagrams go. */
static void
a_handle_of_the_last_message_gives_way_in_the_end(void)
{
	struct mlx_dgram d = {.kind = MLX_DGRAM_CALL, .qpn = 1};

	begin();
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	for (unsigned i = 0; i < MLX_WAYS_MAX + 1; i++) {
		UNIT_EQ(mlx_dgrams_send(mlx_queue(q[0]), mlx_peer(stranger(i)), &d), 0);
		turns();
	}
	UNIT_EQ(stat_of(0)->ways_evicted, 1);
	UNIT_TRUE(mlx_peer(to[0][1])->way == NULL);
	end();
}

/* The model ends the test when one goes that is in use. */
static void
address_handles_are_kept_for_those_used_last(void)
{
	struct plx_peer *peers[MANY];

	begin();
	for (unsigned i = 0; i < MANY; i++) {
		peers[i] = stranger(i);
		UNIT_EQ(send(peers[i], NULL, 0), 0);
		UNIT_EQ(send(to[0][1], NULL, 0), 0);
		if (i % 8 == 7)
			turns();
	}
	UNIT_EQ(ahs(), MLX_WAYS_MAX);
	UNIT_EQ(stat_of(0)->ways_made, MANY + 1);
	UNIT_EQ(stat_of(0)->ways_evicted, MANY + 1 - MLX_WAYS_MAX);
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	UNIT_EQ(send(peers[MANY - 1], NULL, 0), 0);
	UNIT_EQ(stat_of(0)->ways_made, MANY + 1);
	UNIT_EQ(send(peers[0], NULL, 0), 0);
	UNIT_EQ(stat_of(0)->ways_made, MANY + 2);
	UNIT_EQ(ahs(), MLX_WAYS_MAX);
	turns();
	end();
}

/* Of one that is dead, and freed, while the device may still look at its address handle. */
static void
the_handle_of_a_peer_that_goes_outlives_what_is_sent_by_it(void)
{
	struct plx_peer *peer;

	begin();
	peer = stranger(0);
	UNIT_EQ(send(peer, NULL, 0), 0);
	UNIT_EQ(ahs(), 1);
	plx_peer_dead(peer, -ECONNRESET);
	plx_peer_put(peer);
	plx_queue_control(q[0]);
	UNIT_EQ(ahs(), 1);
	turns();
	peer = stranger(1);
	UNIT_EQ(send(peer, NULL, 0), 0);
	mlx_ud_end(mlx_queue(q[0]), &mlx_queue(q[0])->lossy);
	turns();
	plx_peer_dead(peer, -ECONNRESET);
	plx_peer_put(peer);
	plx_queue_control(q[0]);
	UNIT_EQ(ahs(), 1); /* that of the first */
	end();
}

static void
a_message_that_finds_no_way_is_lost(void)
{
	struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *) = mlx_glue.create_ah;

	begin();
	mlx_glue.create_ah = no_ah;
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	turns();
	mlx_glue.create_ah = create;
	UNIT_EQ(stat_of(0)->lossy_no_way, 1);
	UNIT_EQ(got.n, 0);
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	turns();
	UNIT_EQ(got.n, 1);
	end();
}

/* All that was sent before is with the device when the queue is closed. */
static void
what_was_sent_before_closing_is_sent(void)
{
	begin();
	UNIT_EQ(send(to[0][1], NULL, 0), 0);
	plx_queue_close(q[0]);
	for (unsigned k = 0; k < 4; k++)
		UNIT_EQ_FATAL(q[1]->rx_burst(q[1], &(struct plx_rx){.len = 0}, 1), 0);
	UNIT_EQ(got.n, 1);
	UNIT_EQ_FATAL(plx_queue_open(dev, &conf, NULL, &q[0]), 0);
	end();
}

int
main(void)
{
	static CU_TestInfo tests[] = {
		UNIT_TEST(a_message_needs_no_connection),
		UNIT_TEST(a_connection_that_gave_way_is_not_missed),
		UNIT_TEST(who_is_gone_is_noticed_though_its_connection_gave_way),
		UNIT_TEST(who_answers_is_there_without_a_connection),
		UNIT_TEST(who_is_heard_or_sent_nothing_is_not_called),
		UNIT_TEST(who_does_not_look_itself_takes_nobody_for_gone),
		UNIT_TEST(who_has_agreed_on_nothing_does_not_answer),
		UNIT_TEST(what_is_not_from_the_peer_that_it_names_is_dropped),
		UNIT_TEST(stamps_that_make_no_sense_are_dropped),
		UNIT_TEST(places_that_cannot_be_are_refused),
		UNIT_TEST(more_than_there_is_room_for_is_refused_and_then_taken),
		UNIT_TEST(one_completion_stands_for_several),
		UNIT_TEST(the_last_without_a_completion_are_done_when_others_follow),
		UNIT_TEST(short_messages_are_inside_of_the_request),
		UNIT_TEST(what_the_device_does_not_send_is_counted_and_done),
		UNIT_TEST(an_error_stands_for_those_before_it),
		UNIT_TEST(what_is_waited_for_ends_though_nothing_follows),
		UNIT_TEST(where_nobody_can_wait_for_the_last_all_have_completions),
		UNIT_TEST(a_handle_of_the_last_message_gives_way_in_the_end),
		UNIT_TEST(address_handles_are_kept_for_those_used_last),
		UNIT_TEST(the_handle_of_a_peer_that_goes_outlives_what_is_sent_by_it),
		UNIT_TEST(a_message_that_finds_no_way_is_lost),
		UNIT_TEST(what_was_sent_before_closing_is_sent),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"mlx_lossy", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};

	plx_log_set_level(RTE_LOG_EMERG);
	if (plx_init_drivers() != 0)
		return EXIT_FAILURE;
	return unit_run(suites);
}
