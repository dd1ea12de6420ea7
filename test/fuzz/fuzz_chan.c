/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_chan.c - two CCI endpoints that talk, and what a stranger says to them of
 * connections and messages
 *
 * Design notes
 * The input is a program, as that of fuzz_wire. Half of the commands are what programs
 * do; the others put a message of any opcode of connections into an endpoint's queue as
 * if its peer had sent it. Numbers of connections are put right on request, so that what
 * lies behind their check is reached too.
 */
#include "fuzz.h"

#include "../fake_dev.h"
#include "cci_int.h"

#define N_CONNS	   8
#define N_HELD	   8
#define N_COMMANDS 300 /* of one input */
#define MSG_MAX	   1200

struct node {
	cci_endpoint_t *ep;
	char *uri;
	cci_connection_t *conn[N_CONNS];
	cci_event_t *held[N_HELD];
	cci_rma_handle_t *mem;
	uint8_t *bytes;
};

#define MEM_LEN 8192

static struct node node[2];
static uint64_t sum; /* of all that was read, so that it is */

static struct plx_worker *
core(const struct node *n)
{
	return cci_ep_of(n->ep)->core;
}

/* ---- what programs do ---- */

static void
keep_conn(struct node *n, cci_connection_t *conn)
{
	unsigned i = 0;

	if (conn == NULL)
		return;
	while (i < N_CONNS && n->conn[i] != NULL)
		i++;
	if (i < N_CONNS)
		n->conn[i] = conn;
	else
		cci_disconnect(conn);
}

static void
take(struct node *n, uint8_t how, cci_event_t *ev)
{
	unsigned i = how & (N_HELD - 1);

	switch (ev->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		for (uint32_t k = 0; k < ev->request.data_len; k++)
			sum += ((const uint8_t *)ev->request.data_ptr)[k];
		FUZZ_CHECK((how & 0x10 ? cci_reject(ev) : cci_accept(ev, NULL)) != CCI_EINVAL);
		break;
	case CCI_EVENT_RECV:
		for (uint32_t k = 0; k < ev->recv.len; k++)
			sum += ((const uint8_t *)ev->recv.ptr)[k];
		FUZZ_CHECK(ev->recv.len == 0 || (uintptr_t)ev->recv.ptr % 8 == 0);
		break;
	case CCI_EVENT_CONNECT:
	case CCI_EVENT_ACCEPT:
		keep_conn(n, ev->connect.connection);
		break;
	default:
		break;
	}
	if ((how & 0x20) != 0 && n->held[i] == NULL)
		n->held[i] = ev;
	else
		(void)cci_return_event(ev);
}

static void
do_turns(struct node *n, struct fuzz_in *in, uint8_t how)
{
	cci_event_t *ev;

	(void)in;
	for (unsigned i = 0; i < 4; i++)
		if (cci_get_event(n->ep, &ev) == CCI_SUCCESS)
			take(n, how, ev);
}

static void
do_return(struct node *n, struct fuzz_in *in, uint8_t how)
{
	unsigned i = how >> 1 & (N_HELD - 1);

	(void)in;
	if (n->held[i] != NULL && cci_return_event(n->held[i]) == CCI_SUCCESS)
		n->held[i] = NULL;
}

static void
do_connect(struct node *n, struct fuzz_in *in, uint8_t how)
{
	const struct timeval soon = {.tv_usec = 1};
	uint8_t data[64];

	fuzz_bytes(in, data, sizeof(data));
	(void)cci_connect(n->ep, node[how & 2 ? n - node : n == node].uri, data, fuzz_u8(in) & 63,
		(cci_conn_attribute_t)(how >> 2 & 3), NULL, 0, how & 0x10 ? &soon : NULL);
}

static void
do_send(struct node *n, struct fuzz_in *in, uint8_t how)
{
	static const uint16_t lens[] = {0, 1, 8, 100, 144, 145, 176, 177, 512, 4000};
	static uint8_t buf[4000];
	cci_connection_t *c = n->conn[how >> 1 & (N_CONNS - 1)];
	uint32_t len = lens[fuzz_u8(in) % RTE_DIM(lens)];

	if (c != NULL)
		(void)cci_send(c, buf, RTE_MIN(len, c->max_send_size), NULL,
			how & 0x10 ? CCI_FLAG_SILENT : how & 0x20 ? CCI_FLAG_NO_COPY : 0);
}

static void
do_rma(struct node *n, struct fuzz_in *in, uint8_t how)
{
	cci_connection_t *c = n->conn[how >> 1 & (N_CONNS - 1)];
	struct cci_rma_handle h = *node[n == node].mem;
	uint8_t which = fuzz_u8(in);

	if (which < 32)
		((uint8_t *)&h)[which] ^= fuzz_u8(in);
	if (c != NULL)
		(void)cci_rma(c, "done", which & 4, n->mem, 0, &h, fuzz_u8(in) * 40u,
			1 + fuzz_u8(in) * 30u, NULL, (how & 0x10 ? CCI_FLAG_READ : CCI_FLAG_WRITE) |
				(how & 0x20 ? CCI_FLAG_FENCE : 0));
}

static void
do_option(struct node *n, struct fuzz_in *in, uint8_t how)
{
	const uint32_t v = fuzz_u8(in);
	cci_connection_t *c = n->conn[how >> 4 & (N_CONNS - 1)];
	cci_opt_name_t name = (cci_opt_name_t)(how >> 1 & 7);

	if (name < CCI_OPT_CONN_SEND_TIMEOUT)
		(void)cci_set_opt(n->ep, name, &v);
	else if (c != NULL)
		(void)cci_set_opt(c, name, &v);
}

static void
do_disconnect(struct node *n, struct fuzz_in *in, uint8_t how)
{
	cci_connection_t **c = &n->conn[how >> 1 & (N_CONNS - 1)];

	(void)in;
	if (*c != NULL)
		FUZZ_CHECK(cci_disconnect(*c) == CCI_SUCCESS);
	*c = NULL;
}

/* ---- what nobody meant to send ---- */

/* The number of a channel there is, so that the message is not dropped at once. */
static uint32_t
real_number(struct node *n, uint8_t which)
{
	const struct plx_chans *cs = &core(n)->chans;
	uint32_t i = cs->n_slots > 1 ? 1 + which % (cs->n_slots - 1) : 0;

	return cs->n_slots > 1 && cs->slots[i].chan != NULL ? cs->slots[i].chan->id : which;
}

static void
do_inject(struct node *n, struct fuzz_in *in, uint8_t how)
{
	const unsigned n_ops = PLX_WIRE_N - PLX_WIRE_CHAN_ASK;
	struct node *from = how & 2 ? n : &node[n == node];
	uint8_t op = (uint8_t)(PLX_WIRE_CHAN_ASK + fuzz_u8(in) % n_ops), hdr_len;
	uint8_t msg[PLX_WIRE_HDR_MAX + MSG_MAX] = {0};
	size_t len = fuzz_u8(in);

	len = how & 4 ? len * 5 % MSG_MAX : len & 31;
	hdr_len = plx_wire_hdr_len[op];
	fuzz_bytes(in, msg, hdr_len);
	if (how & 8) {
		uint32_t to = real_number(n, fuzz_u8(in));

		if (op != PLX_WIRE_CHAN_ASK && op != PLX_WIRE_CHAN_JOIN)
			memcpy(msg, &to, sizeof(to));
		if (how & 0x10) /* numbers of messages are low */
			memset(msg + 5, 0, 3);
	}
	fuzz_bytes(in, msg + hdr_len, how & 0x20 ? len : RTE_MIN(len, (size_t)8));
	fake_inject(core(from)->queues[0], core(n)->queues[0], op, msg,
		how & 0x40 ? (uint32_t)len % (hdr_len + 1u) : (uint32_t)(hdr_len + len));
}

static void
do_block(struct node *n, struct fuzz_in *in, uint8_t how)
{
	(void)in;
	fake_block(core(n)->queues[0], (how & 2) != 0);
}

static void (*const commands[])(struct node *n, struct fuzz_in *in, uint8_t how) = {do_turns, do_inject,
	do_inject, do_inject, do_connect, do_send, do_rma, do_option, do_disconnect, do_return, do_block,
	do_turns, do_turns, do_inject, do_send, do_turns};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setenv("PLX_WORKER_WAIT", "spin", 1);
	setenv("PLX_WORKER_PEER_CHECK_MS", "60000", 1);
	setenv("PLX_CCI_RECV_BUFS", "16", 1);
	setenv("PLX_CCI_NO_COPY_MIN", "256", 1);
	fuzz_start_cci("fuzz");
	return 0;
}

static void
node_open(struct node *n)
{
	memset(n, 0, sizeof(*n));
	n->bytes = calloc(1, MEM_LEN);
	FUZZ_CHECK(cci_create_endpoint(NULL, 0, &n->ep, NULL) == CCI_SUCCESS);
	FUZZ_CHECK(cci_get_opt(n->ep, CCI_OPT_ENDPT_URI, &n->uri) == CCI_SUCCESS);
	FUZZ_CHECK(cci_rma_register(n->ep, n->bytes, MEM_LEN, CCI_FLAG_READ | CCI_FLAG_WRITE,
		&n->mem) == CCI_SUCCESS);
	fuzz_allow(n->bytes, MEM_LEN);
}

static void
node_close(struct node *n)
{
	FUZZ_CHECK(cci_destroy_endpoint(n->ep) == CCI_SUCCESS);
	free(n->uri);
	free(n->bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	uint8_t a = fuzz_u8(&in), b = fuzz_u8(&in);

	fake_reset(a | b << 8);
	fake.depth = a & 1 ? 6 : 0;
	fake.full_percent = a & 2 ? 30 : 0;
	fake.short_percent = a & 4 ? 50 : 0;
	fake.delay_max = a & 8 ? 3 : 0;
	for (unsigned i = 0; i < 2; i++)
		node_open(&node[i]);
	do_connect(&node[0], &in, b & 0x0c);
	for (unsigned i = 0; i < 4; i++)
		do_turns(&node[(i + 1) & 1], &in, 0);
	for (unsigned i = 0; i < N_COMMANDS && fuzz_more(&in); i++) {
		uint8_t cmd = fuzz_u8(&in), how = fuzz_u8(&in);

		commands[cmd % RTE_DIM(commands)](&node[how & 1], &in, how);
	}
	for (unsigned i = 0; i < 2; i++)
		node_close(&node[i]);
	fuzz_forbid_all();
	return 0;
}
