/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_cm_test.c - sockets by the RDMA connection manager: lib/cm on net_mlx on a model
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "mlx_cm_model.h"
#include "plx_cm.h"
#include "plx_unit.h"
#include "plx_unit_mlx.h"
#include "plx_unit_mlx_cm.h"
#include "test_util.h"

#define HOST   "10.9.0.1"
#define NOT_US "192.0.2.1"
#define POLLS  64

struct end {
	struct plx_cm_sock *sock;
	char got[64];
	int err;
};

/* A listener's side and a client's. */
static struct {
	struct plx_cm server, client;
	struct plx_cm_listener l;
	struct sockaddr_in addr; /* of the listener */
	struct end s, c; /* the last accepted, detached or not; the client */
	unsigned n_first;
	bool detach;
} t;

static struct end *
end_of(const struct plx_cm_sock *s)
{
	return s == t.c.sock ? &t.c : &t.s;
}

static void
on_msg(struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	struct end *e = end_of(s);

	memset(e->got, 0, sizeof(e->got));
	memcpy(e->got, msg, RTE_MIN(len, sizeof(e->got) - 1));
}

static void
on_fail(struct plx_cm_sock *s, int err)
{
	struct end *e = end_of(s);

	e->err = err;
	plx_cm_sock_close(s);
	e->sock = NULL;
}

static void
on_first(struct plx_cm_listener *l, struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	(void)l;
	t.n_first++;
	t.s.sock = s;
	s->on_msg = on_msg;
	s->on_fail = on_fail;
	if (t.detach)
		plx_cm_detach(s);
	on_msg(s, msg, len);
}

static void
turns(void)
{
	for (int i = 0; i < POLLS; i++) {
		plx_cm_poll(&t.client);
		plx_cm_poll(&t.server);
	}
}

static struct sockaddr_in
at(const char *text, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = port};

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static void
begin(enum plx_cm_transport server, enum plx_cm_transport client)
{
	memset(&t, 0, sizeof(t));
	mlx_cm_model_begin();
	t.l.on_first = on_first;
	UNIT_EQ_FATAL(plx_cm_open(&t.server, server, &mlx_cm_ops), 0);
	UNIT_EQ_FATAL(plx_cm_open(&t.client, client, &mlx_cm_ops), 0);
}

static int
listen_on(const char *text, uint16_t port)
{
	struct sockaddr_in a = at(text, port);
	struct sockaddr_storage bound;
	int rc = plx_cm_listen(&t.server, (struct sockaddr *)&a, sizeof(a), &t.l);

	if (rc == 0) {
		UNIT_EQ(plx_cm_listener_addr(&t.l, &bound), 0);
		memcpy(&t.addr, &bound, sizeof(t.addr));
		UNIT_TRUE(t.addr.sin_port != 0);
	}
	return rc;
}

static int
connect_to(const struct sockaddr_in *a)
{
	int rc = plx_cm_connect(&t.client, (const struct sockaddr *)a, sizeof(*a), NULL, 0, &t.c.sock);

	if (rc == 0) {
		t.c.sock->on_msg = on_msg;
		t.c.sock->on_fail = on_fail;
	}
	return rc;
}

/* Both by the manager, and the client has said hello. */
static void
meet(void)
{
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_TRUE_FATAL(t.s.sock != NULL);
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
}

static void
end(void)
{
	if (t.s.sock != NULL)
		plx_cm_sock_close(t.s.sock);
	if (t.c.sock != NULL)
		plx_cm_sock_close(t.c.sock);
	if (t.l.cm != NULL)
		plx_cm_unlisten(&t.l);
	turns();
	UNIT_EQ(t.client.n + t.server.n, 0);
	plx_cm_close(&t.client);
	plx_cm_close(&t.server);
	UNIT_EQ(mlx_cm_model.live, 0);
	UNIT_TRUE(mlx_cm_model.wrong == NULL);
	if (mlx_cm_model.wrong != NULL)
		printf("%s\n", mlx_cm_model.wrong);
}

static void
messages_go_both_ways(void)
{
	char big[PLX_CM_MSG_MAX];
	struct sockaddr_storage local, remote;

	meet();
	UNIT_EQ(t.server.stat.dev_accepts, 1);
	UNIT_EQ(t.client.stat.dev_connects, 1);
	UNIT_EQ(plx_cm_send(t.s.sock, "yes", 4), 0);
	turns();
	UNIT_EQ(strcmp(t.c.got, "yes"), 0);
	memset(big, 'b', sizeof(big));
	for (int i = 0; i < 3 * PLX_DEV_CM_SENDS; i++) {
		big[0] = 'a' + i;
		UNIT_EQ(plx_cm_send(t.c.sock, big, sizeof(big)), 0);
		turns();
		UNIT_EQ(t.s.got[0], 'a' + i);
	}
	plx_cm_sock_addrs(t.s.sock, &local, &remote);
	UNIT_EQ(((struct sockaddr_in *)&local)->sin_port, t.addr.sin_port);
	UNIT_EQ(remote.ss_family, AF_INET);
	end();
}

static void
who_has_nothing_to_do_may_sleep(void)
{
	meet();
	UNIT_TRUE(!plx_cm_waits(&t.client) && !plx_cm_waits(&t.server));
	UNIT_EQ(plx_cm_send(t.s.sock, "yes", 4), 0);
	UNIT_TRUE(plx_cm_waits(&t.client));
	turns();
	UNIT_TRUE(!plx_cm_waits(&t.client) && !plx_cm_waits(&t.server));
	end();
}

static void
messages_that_come_together_are_taken_one_by_one(void)
{
	meet();
	UNIT_EQ(plx_cm_send(t.c.sock, "one", 4), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "two", 4), 0);
	for (int i = 0; i < POLLS && t.s.got[0] != 'o'; i++)
		plx_cm_poll(&t.server); /* may take both */
	turns();
	UNIT_EQ(strcmp(t.s.got, "two"), 0);
	UNIT_EQ(t.server.stat.msgs_in, 3);
	end();
}

static void
nobody_listening_is_a_refusal(void)
{
	struct sockaddr_in a = at(HOST, htons(7));

	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(connect_to(&a), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_EQ(t.c.err, -ECONNREFUSED);
	end();
}

static void
what_no_device_reaches_is_told(void)
{
	struct sockaddr_in a = at(NOT_US, htons(7)), loop = at("127.0.0.1", htons(7));

	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ(listen_on(NOT_US, 0), -ENODEV);
	UNIT_EQ(listen_on("127.0.0.1", 0), -ENODEV);
	t.l.cm = NULL;
	UNIT_EQ_FATAL(connect_to(&a), 0);
	turns();
	UNIT_EQ(t.c.err, -EHOSTUNREACH);
	UNIT_EQ(connect_to(&loop), -ENODEV);
	end();
}

static void
without_a_manager_there_is_tcp(void)
{
	struct sockaddr_in a;

	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	t.server.dev = t.client.dev = NULL;
	UNIT_EQ_FATAL(listen_on("0.0.0.0", 0), 0);
	a = at("0.0.0.0", t.addr.sin_port);
	UNIT_EQ_FATAL(connect_to(&a), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_EQ(t.n_first, 1);
	UNIT_EQ(t.client.stat.dev_falls, 0);
	UNIT_EQ(mlx_cm_model.live, 0);
	end();
}

static void
loopback_goes_by_tcp_at_once(void)
{
	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	UNIT_EQ_FATAL(listen_on("127.0.0.1", 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	UNIT_EQ(mlx_cm_model.live, 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_EQ(t.n_first, 1);
	UNIT_EQ(t.client.stat.dev_falls, 0);
	end();
}

/* A listener on all addresses and a client of this machine, which TCP reaches too. */
static void
meet_anyhow(void)
{
	struct sockaddr_in a;

	UNIT_EQ_FATAL(listen_on("0.0.0.0", 0), 0);
	a = at("0.0.0.0", t.addr.sin_port);
	UNIT_EQ_FATAL(connect_to(&a), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
}

static void
a_listener_has_both_and_a_client_takes_the_device(void)
{
	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	meet_anyhow();
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
	UNIT_EQ(t.server.stat.dev_accepts, 1);
	UNIT_EQ(t.client.stat.dev_falls, 0);
	end();
	begin(PLX_CM_AUTO, PLX_CM_TCP);
	meet_anyhow();
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
	UNIT_EQ(t.server.stat.dev_accepts, 0);
	end();
}

static void
a_client_goes_on_by_tcp_when_nobody_listens_by_the_device(void)
{
	begin(PLX_CM_TCP, PLX_CM_AUTO);
	meet_anyhow();
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
	UNIT_EQ(t.client.stat.dev_falls, 1);
	UNIT_EQ(t.server.stat.accepts, 1);
	UNIT_EQ(t.server.stat.dev_accepts, 0);
	end();
}

static void
a_client_goes_on_by_tcp_when_the_device_is_not_answered(void)
{
	struct pollfd p;
	uint64_t begin_ns = util_now_ns();

	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	mlx_cm_model.silent = true;
	meet_anyhow();
	UNIT_EQ(t.n_first, 0);
	p = (struct pollfd){.fd = t.client.epfd, .events = POLLIN};
	UNIT_EQ(poll(&p, 1, 3 * PLX_CM_DEV_TIMEOUT_MS), 1);
	UNIT_TRUE(util_now_ns() - begin_ns >= PLX_CM_DEV_TIMEOUT_MS * 900000ull);
	turns();
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
	UNIT_EQ(t.client.stat.dev_falls, 1);
	end();
}

static void
a_port_is_taken_if_either_kind_is(void)
{
	struct plx_cm_listener first;
	struct sockaddr_in a;

	begin(PLX_CM_RDMA, PLX_CM_AUTO);
	UNIT_EQ_FATAL(listen_on("0.0.0.0", 0), 0);
	first = t.l; /* its descriptors are not used again before the end */
	a = t.addr;
	UNIT_EQ(plx_cm_listen(&t.client, (struct sockaddr *)&a, sizeof(a), &first), -EADDRINUSE);
	a.sin_port = 0;
	UNIT_EQ_FATAL(plx_cm_listen(&t.client, (struct sockaddr *)&a, sizeof(a), &first), 0);
	UNIT_TRUE(first.id != NULL && first.fd.fd >= 0);
	plx_cm_unlisten(&first);
	end();
}

static void
a_device_that_has_failed_has_no_manager(void)
{
	struct plx_dev dev = {.ops = &plx_net_mlx_ops};

	UNIT_TRUE(plx_dev_cm(&dev) == &mlx_cm_ops);
	atomic_store(&dev.failed, true);
	UNIT_TRUE(plx_dev_cm(&dev) == NULL);
}

/* --- who does not keep to it --- */

/* A stranger's client, by the library alone. */
static struct rdma_cm_id *
stranger(struct rdma_event_channel **ch, const void *data, uint8_t len)
{
	struct rdma_conn_param p = {.private_data = data, .private_data_len = len};
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	*ch = mlx_cm_glue.create_event_channel();
	mlx_cm_glue.create_id(*ch, &id, NULL, RDMA_PS_TCP);
	mlx_cm_glue.resolve_addr(id, NULL, (struct sockaddr *)&t.addr, 1);
	mlx_cm_glue.get_cm_event(*ch, &e);
	mlx_cm_glue.ack_cm_event(e);
	mlx_cm_glue.connect(id, &p);
	return id;
}

static void
a_strangers_request_is_refused_and_counted(void)
{
	struct mlx_cm_hello bad[] = {{0, MLX_CM_VERSION, PLX_DEV_CM_MSG_MAX},
		{MLX_CM_MAGIC, MLX_CM_VERSION + 1, PLX_DEV_CM_MSG_MAX},
		{MLX_CM_MAGIC, MLX_CM_VERSION, PLX_DEV_CM_MSG_MAX - 1}};
	struct rdma_event_channel *ch;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	for (unsigned i = 0; i < 4; i++) {
		id = stranger(&ch, &bad[i % 3], i < 3 ? sizeof(bad[0]) : 0);
		turns();
		UNIT_EQ_FATAL(mlx_cm_glue.get_cm_event(ch, &e), 0);
		UNIT_EQ(e->event, RDMA_CM_EVENT_REJECTED);
		mlx_cm_glue.ack_cm_event(e);
		mlx_cm_glue.destroy_id(id);
		mlx_cm_glue.destroy_event_channel(ch);
		UNIT_EQ(t.server.stat.drop_bad_msg, i + 1);
	}
	UNIT_EQ(t.server.stat.accepts, 0);
	end();
}

static void
a_strangers_answer_is_an_error_or_leads_to_tcp(void)
{
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	mlx_cm_model.strange = true;
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_EQ(t.c.err, -EPROTO);
	UNIT_EQ(t.client.stat.drop_bad_msg, 1);
	UNIT_EQ(t.n_first, 0);
	end();
	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	mlx_cm_model.strange = true;
	meet_anyhow();
	UNIT_EQ(t.n_first, 1);
	UNIT_EQ(t.client.stat.dev_falls, 1);
	end();
}

static void
what_makes_no_sense_ends_its_connection(void)
{
	static const struct {
		uint8_t bytes[12];
		uint32_t len;
	} bad[] = {
		{{'P', 'L', 'X'}, 3},
		{{'P', 'L', 'X', 'M', 1, 0, 4, 0, 'a', 'b', 'c'}, 11}, /* shorter than it says */
		{{'P', 'L', 'X', 'M', 1, 0, 2, 0, 'a', 'b', 'c'}, 11}, /* longer */
		{{'P', 'L', 'X', 'M', 2, 0, 3, 0, 'a', 'b', 'c'}, 11},
		{{'P', 'L', 'X', 'Y', 1, 0, 3, 0, 'a', 'b', 'c'}, 11},
		{{'P', 'L', 'X', 'M', 1, 0, 0, 0}, 8},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(PLX_CM_RDMA, PLX_CM_RDMA);
		UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
		UNIT_EQ_FATAL(connect_to(&t.addr), 0);
		turns();
		UNIT_EQ_FATAL(t.client.stat.dev_connects, 1);
		UNIT_EQ(mlx_cm_ops.send(t.c.sock->id, bad[i].bytes, bad[i].len), 0);
		turns();
		UNIT_EQ(t.n_first, 0);
		UNIT_EQ(t.server.stat.drop_bad_msg, 1);
		UNIT_EQ(t.c.err, -ECONNRESET);
		end();
	}
}

static void
what_is_too_long_ends_its_connection(void)
{
	struct ibv_sge sge = {.length = PLX_DEV_CM_MSG_MAX + 1};
	struct ibv_send_wr wr = {.wr_id = 0, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	uint8_t data[PLX_DEV_CM_MSG_MAX + 1] = {0};

	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	turns();
	sge.addr = (uintptr_t)data;
	UNIT_EQ(ibv_post_send(((struct mlx_cm_id *)t.c.sock->id)->id->qp, &wr, &bad), 0);
	turns();
	UNIT_EQ(t.n_first, 0);
	UNIT_EQ(t.server.stat.drop_bad_msg, 1);
	end();
}

static void
who_says_nothing_gives_way(void)
{
	struct plx_cm_sock *silent[PLX_CM_MAX_HALF_OPEN];

	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	for (unsigned i = 0; i < PLX_CM_MAX_HALF_OPEN; i++) {
		UNIT_EQ_FATAL(connect_to(&t.addr), 0);
		turns();
		silent[i] = t.c.sock;
	}
	UNIT_EQ(t.server.n_half, PLX_CM_MAX_HALF_OPEN);
	UNIT_EQ(t.server.stat.drop_half_open, 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_EQ(t.server.stat.drop_half_open, 1);
	UNIT_EQ(t.n_first, 1);
	for (unsigned i = 1; i < PLX_CM_MAX_HALF_OPEN; i++)
		plx_cm_sock_close(silent[i]);
	end();
}

/* --- ends --- */

static void
what_was_sent_before_the_end_comes_before_it(void)
{
	meet();
	UNIT_EQ(plx_cm_send(t.s.sock, "no", 3), 0);
	plx_cm_sock_close(t.s.sock);
	t.s.sock = NULL;
	UNIT_EQ(t.server.n, 1); /* the listener */
	plx_cm_poll(&t.client);
	UNIT_EQ(strcmp(t.c.got, "no"), 0);
	UNIT_EQ(t.c.err, -ECONNRESET);
	end();
}

static void
a_closed_one_stays_until_all_has_arrived(void)
{
	meet();
	mlx_cm_model.hold_acks = true;
	UNIT_EQ(plx_cm_send(t.s.sock, "no", 3), 0);
	plx_cm_sock_close(t.s.sock);
	t.s.sock = NULL;
	turns();
	UNIT_EQ(t.server.n, 2);
	UNIT_EQ(t.c.err, 0);
	mlx_cm_model_ack();
	turns();
	UNIT_EQ(t.server.n, 1);
	UNIT_EQ(t.c.err, -ECONNRESET);
	end();
	/* Or until that has failed. */
	meet();
	mlx_cm_model.hold_acks = mlx_cm_model.fail_sends = true;
	UNIT_EQ(plx_cm_send(t.s.sock, "no", 3), 0);
	plx_cm_sock_close(t.s.sock);
	t.s.sock = NULL;
	mlx_cm_model_ack();
	turns();
	UNIT_EQ(t.server.n, 1);
	UNIT_EQ(t.c.got[0], 0);
	end();
}

static void
an_end_waits_for_what_was_sent_and_no_longer(void)
{
	uint64_t begin_ns;

	meet();
	mlx_cm_model.hold_acks = true;
	UNIT_EQ(plx_cm_send(t.c.sock, "done", 5), 0);
	plx_cm_sock_close(t.c.sock);
	t.c.sock = NULL;
	begin_ns = util_now_ns();
	plx_cm_close(&t.client);
	UNIT_TRUE(util_now_ns() - begin_ns >= PLX_CM_LINGER_MS * 900000ull);
	UNIT_EQ_FATAL(plx_cm_open(&t.client, PLX_CM_RDMA, &mlx_cm_ops), 0);
	end();
}

static void
a_client_that_dies_is_noticed(void)
{
	meet();
	plx_cm_sock_close(t.c.sock);
	t.c.sock = NULL;
	turns();
	UNIT_EQ(t.s.err, -ECONNRESET);
	UNIT_TRUE(t.s.sock == NULL);
	end();
	/* Before it has said anything. */
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	turns();
	UNIT_EQ(t.server.n_half, 1);
	plx_cm_sock_close(t.c.sock);
	t.c.sock = NULL;
	turns();
	UNIT_EQ(t.server.n_half, 0);
	UNIT_EQ(t.n_first, 0);
	end();
	/* Before it is accepted. */
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	for (int i = 0; i < 3; i++)
		plx_cm_poll(&t.client);
	plx_cm_sock_close(t.c.sock);
	t.c.sock = NULL;
	turns();
	UNIT_EQ(t.server.stat.accepts, 0);
	UNIT_EQ(t.server.stat.accept_errors, 1);
	end();
}

static void
a_send_that_fails_is_told(void)
{
	meet();
	mlx_cm_model.fail_sends = true;
	UNIT_EQ(plx_cm_send(t.s.sock, "yes", 4), 0);
	turns();
	UNIT_EQ(t.s.err, -ECONNRESET);
	end();
}

static void
a_connection_moves_to_another_owner(void)
{
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	t.detach = true;
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	UNIT_EQ(plx_cm_send(t.c.sock, "hello", 6), 0);
	turns();
	UNIT_TRUE_FATAL(t.s.sock != NULL);
	UNIT_EQ(plx_cm_send(t.c.sock, "more", 5), 0);
	turns();
	UNIT_EQ(strcmp(t.s.got, "hello"), 0);
	plx_cm_unlisten(&t.l);
	t.l.cm = NULL;
	UNIT_EQ(plx_cm_attach(&t.client, t.s.sock), 0);
	turns();
	UNIT_EQ(strcmp(t.s.got, "more"), 0);
	end();
}

static void
a_listener_that_goes_refuses_who_waits(void)
{
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	for (int i = 0; i < 3; i++)
		plx_cm_poll(&t.client); /* it asks */
	plx_cm_unlisten(&t.l);
	t.l.cm = NULL;
	turns();
	UNIT_EQ(t.c.err, -ECONNREFUSED);
	end();
	begin(PLX_CM_RDMA, PLX_CM_RDMA);
	UNIT_EQ_FATAL(listen_on(HOST, 0), 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	turns();
	UNIT_EQ(t.server.n_half, 1);
	plx_cm_unlisten(&t.l);
	t.l.cm = NULL;
	turns();
	UNIT_EQ(t.c.err, -ECONNRESET);
	UNIT_EQ(t.server.n, 0);
	end();
}

static void
a_device_that_is_removed_leaves_tcp(void)
{
	begin(PLX_CM_AUTO, PLX_CM_AUTO);
	meet_anyhow();
	UNIT_EQ(t.server.stat.dev_accepts, 1);
	mlx_cm_model_remove();
	turns();
	UNIT_EQ(t.s.err, -ENODEV);
	UNIT_EQ(t.c.err, -ENODEV);
	UNIT_EQ(mlx_cm_model.live, 0);
	UNIT_EQ_FATAL(connect_to(&t.addr), 0);
	turns();
	UNIT_EQ(t.client.stat.dev_falls, 1);
	UNIT_EQ(t.server.stat.accepts, 2);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(messages_go_both_ways),
	UNIT_TEST(who_has_nothing_to_do_may_sleep),
	UNIT_TEST(messages_that_come_together_are_taken_one_by_one),
	UNIT_TEST(nobody_listening_is_a_refusal),
	UNIT_TEST(what_no_device_reaches_is_told),
	UNIT_TEST(without_a_manager_there_is_tcp),
	UNIT_TEST(loopback_goes_by_tcp_at_once),
	UNIT_TEST(a_listener_has_both_and_a_client_takes_the_device),
	UNIT_TEST(a_client_goes_on_by_tcp_when_nobody_listens_by_the_device),
	UNIT_TEST(a_client_goes_on_by_tcp_when_the_device_is_not_answered),
	UNIT_TEST(a_port_is_taken_if_either_kind_is),
	UNIT_TEST(a_device_that_has_failed_has_no_manager),
	UNIT_TEST(a_strangers_request_is_refused_and_counted),
	UNIT_TEST(a_strangers_answer_is_an_error_or_leads_to_tcp),
	UNIT_TEST(what_makes_no_sense_ends_its_connection),
	UNIT_TEST(what_is_too_long_ends_its_connection),
	UNIT_TEST(who_says_nothing_gives_way),
	UNIT_TEST(what_was_sent_before_the_end_comes_before_it),
	UNIT_TEST(a_closed_one_stays_until_all_has_arrived),
	UNIT_TEST(an_end_waits_for_what_was_sent_and_no_longer),
	UNIT_TEST(a_client_that_dies_is_noticed),
	UNIT_TEST(a_send_that_fails_is_told),
	UNIT_TEST(a_connection_moves_to_another_owner),
	UNIT_TEST(a_listener_that_goes_refuses_who_waits),
	UNIT_TEST(a_device_that_is_removed_leaves_tcp),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"mlx_cm", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	return unit_run(suites);
}
