/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_udp.c - two CCI endpoints on net_tcp, and the datagrams that anybody sends to them
 *
 * Design notes
 * The input is a program. Its commands send rubbish, good datagrams with bytes changed, and datagrams of any contents
 * that a peer or a member of the group seals, so that the code behind the check is reached. They go to the port of an
 * endpoint, and to the group that it receives from.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "cci_int.h"
#include "tcp_int.h"

#define N_COMMANDS 64
#define GROUP	   "net_tcp://mc/fuzz"
#define N_TURNS	   100000 /* until an answer is there */

static cci_endpoint_t *ep[2];
static cci_connection_t *conn; /* from the first to the second */
static uint64_t group;
static int anybody;
static uint64_t sum; /* of all that was read, so that it is */

/* Take an event of an endpoint and return it. @return its type, CCI_EVENT_NONE: there is none */
static cci_event_type_t
turn(cci_endpoint_t *e)
{
	cci_event_type_t type;
	cci_event_t *ev;

	if (cci_get_event(e, &ev) != CCI_SUCCESS)
		return CCI_EVENT_NONE;
	type = ev->type;
	if (type == CCI_EVENT_RECV)
		for (uint32_t i = 0; i < ev->recv.len; i++)
			sum += ((const uint8_t *)ev->recv.ptr)[i];
	else if (type == CCI_EVENT_CONNECT)
		conn = conn == NULL ? ev->connect.connection : conn;
	else if (type == CCI_EVENT_CONNECT_REQUEST)
		FUZZ_CHECK(cci_accept(ev, NULL) == CCI_SUCCESS);
	FUZZ_CHECK(cci_return_event(ev) == CCI_SUCCESS);
	return type;
}

static void
wait_for(cci_endpoint_t *e, cci_event_type_t type)
{
	unsigned n = 0;

	while (turn(e) != type && n++ < N_TURNS)
		(void)turn(e == ep[0] ? ep[1] : ep[0]);
	FUZZ_CHECK(n < N_TURNS);
}

static struct plx_queue *
queue(unsigned i)
{
	return cci_ep_of(ep[i])->core->queues[0];
}

/* -- commands -- */

static void
say(const void *bytes, size_t len, const struct sockaddr_storage *to)
{
	(void)!sendto(anybody, bytes, len, MSG_DONTWAIT, (const struct sockaddr *)to, sizeof(struct sockaddr_in));
}

static int
seal_lossy(uint8_t op, const struct plx_wire_chan *h, const void *data, uint32_t len)
{
	const struct plx_tx tx = {.peer = cci_conn_of(conn)->chan.ep->peer, .hdr = h, .hdr_len = sizeof(*h), .data = data,
		.len = len, .op = op};

	return plx_peer_lossy_tx(&tx);
}

static void
do_lossy(struct fuzz_in *in, uint8_t how)
{
	static uint8_t data[1024];
	struct plx_wire_chan h;
	uint32_t len = how & 0x10 ? fuzz_u16(in) % sizeof(data) : fuzz_u8(in) & 31u;

	fuzz_bytes(in, &h, sizeof(h));
	if (how & 0x20)
		h.to = cci_conn_of(conn)->chan.remote;
	fuzz_bytes(in, data, 8);
	(void)seal_lossy(how & 0x40 ? fuzz_u8(in) : PLX_WIRE_CHAN_LOSSY, &h, data, len);
}

static void
do_group(struct fuzz_in *in, uint8_t how)
{
	static uint8_t data[TCP_GROUP_LEN];
	uint32_t len = how & 0x10 ? fuzz_u16(in) % (TCP_GROUP_LEN + 1) : fuzz_u8(in) & 31u;

	fuzz_bytes(in, data, 8);
	(void)plx_queue_group_tx(queue(0), group, data, len);
}

/* A datagram that the first endpoint was about to send, with bytes changed. */
static void
do_changed(struct fuzz_in *in, uint8_t how)
{
	struct tcp_udp *u = tcp_queue(queue(0))->udp;
	const struct plx_wire_chan h = {.to = cci_conn_of(conn)->chan.remote};
	size_t len;
	uint8_t *at;
	int rc;

	queue(0)->hold = true;
	rc = how & 0x10 ? plx_queue_group_tx(queue(0), group, "group", 5) : seal_lossy(PLX_WIRE_CHAN_LOSSY, &h, "peer", 4);
	queue(0)->hold = queue(0)->held = false;
	if (rc != 0 || u->n_tx == 0)
		return;
	at = u->tx_iov[u->n_tx - 1].iov_base;
	len = u->tx_iov[u->n_tx - 1].iov_len;
	for (unsigned n = fuzz_u8(in) % 4; n > 0; n--)
		at[fuzz_u8(in) % len] ^= fuzz_u8(in);
	if (how & 0x20)
		len = fuzz_u8(in) & 0x80 ? len - 1 : fuzz_u16(in) % TCP_UDP_LEN;
	say(at, len, &u->to[u->n_tx - 1]);
	u->n_tx--;
}

static void
do_rubbish(struct fuzz_in *in, uint8_t how)
{
	uint8_t bytes[128] = {0};
	struct sockaddr_storage to;
	size_t len = fuzz_u8(in) % sizeof(bytes);

	(void)tcp_ip_sockaddr(&(struct tcp_ip){4, {127, 0, 0, 1}}, tcp_queue(queue(1))->udp->port, &to);
	fuzz_bytes(in, bytes, len);
	if (how & 0x10)
		memcpy(bytes, "plu1\1\0\0", 8);
	say(bytes, len, &to);
}

static void (*const commands[])(struct fuzz_in *in, uint8_t how) = {do_lossy, do_group, do_changed, do_rubbish};

/* -- start -- */

static void
join(unsigned i, cci_conn_attribute_t attribute)
{
	FUZZ_CHECK(cci_connect(ep[i], GROUP, NULL, 0, attribute, NULL, 0, NULL) == CCI_SUCCESS);
	wait_for(ep[i], CCI_EVENT_CONNECT);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *uri;

	(void)argc;
	(void)argv;
	setenv("PLX_NET_TCP_INTERFACES", "lo", 1);
	setenv("PLX_NET_TCP_FAMILY", "inet", 1);
	setenv("PLX_WORKER_WAIT", "spin", 1);
	fuzz_start_cci("net_tcp");
	for (unsigned i = 0; i < 2; i++)
		FUZZ_CHECK(cci_create_endpoint(NULL, 0, &ep[i], NULL) == CCI_SUCCESS);
	FUZZ_CHECK(cci_get_opt(ep[1], CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
	FUZZ_CHECK(cci_connect(ep[0], uri, NULL, 0, CCI_CONN_ATTR_UU, NULL, 0, NULL) == CCI_SUCCESS);
	free(uri);
	wait_for(ep[0], CCI_EVENT_CONNECT);
	join(1, CCI_CONN_ATTR_UU_MC_RX);
	join(0, CCI_CONN_ATTR_UU_MC_TX);
	group = plx_name_hash("fuzz");
	anybody = socket(AF_INET, SOCK_DGRAM, 0);
	FUZZ_CHECK(anybody >= 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};

	for (unsigned i = 0; i < N_COMMANDS && fuzz_more(&in); i++) {
		uint8_t how = fuzz_u8(&in);

		commands[how % RTE_DIM(commands)](&in, how);
		for (unsigned k = 0; k < 4; k++)
			(void)turn(ep[k % 2]);
	}
	FUZZ_CHECK(cci_conn_of(conn)->chan.state == PLX_CHAN_OPEN); /* whatever came */
	return 0;
}
