/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_conn.c - what a stranger says to a listener
 *
 * Design notes
 * The first byte says how: bytes for the reader of the message alone, in a block of
 * exactly their length, or for a socket to a listener. The checksum is made right on
 * request.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "ucp_int.h"

#define MSG_MAX	 (PLX_WIRE_CONN_MAX + 64)
#define HEAD_LEN 8 /* of a message in the stream: magic, version, length */
#define N_MSGS	 4
#define TURNS	 64

static ucp_worker_h worker;
static ucp_listener_h listener;
static struct sockaddr_storage at;
static bool refuse;
static ucp_ep_h answered[N_MSGS];
static uint8_t own[PLX_WIRE_ADDR_MAX];
static size_t own_len;

static void
on_ep_err(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
}

static void
on_request(ucp_conn_request_h request, void *arg)
{
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST |
			UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.conn_request = request, .err_handler.cb = on_ep_err};
	unsigned i = 0;

	(void)arg;
	while (i < N_MSGS && answered[i] != NULL)
		i++;
	if (refuse || i == N_MSGS)
		ucp_listener_reject(listener, request);
	else if (ucp_ep_create(worker, &p, &answered[i]) != UCS_OK)
		answered[i] = NULL;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_listener_params_t p = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
			UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(struct sockaddr *)&to, sizeof(to)}, .conn_handler.cb = on_request};
	ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
	ucp_worker_params_t wp = {.field_mask = 0};
	int len;

	(void)argc;
	(void)argv;
	fuzz_start();
	FUZZ_CHECK(ucp_worker_create(fuzz_context("fuzz", NULL, 0), &wp, &worker) == UCS_OK);
	FUZZ_CHECK(ucp_listener_create(worker, &p, &listener) == UCS_OK);
	FUZZ_CHECK(ucp_listener_query(listener, &attr) == UCS_OK);
	at = attr.sockaddr;
	len = plx_worker_addr(worker->core, own, sizeof(own));
	FUZZ_CHECK(len > 0);
	own_len = (size_t)len;
	return 0;
}

/* Lengths, version and checksum as they should be. */
static void
msg_fix(uint8_t *msg, size_t len)
{
	const size_t crc_at = offsetof(struct plx_wire_conn, crc);
	struct plx_wire_conn h;
	uint32_t crc;

	if (len < sizeof(h))
		return;
	memcpy(&h, msg, sizeof(h));
	h.version = PLX_WIRE_CONN_VERSION;
	h.addr_len = (uint32_t)(len - sizeof(h));
	h.conn_id |= PLX_WIRE_CONN_ID_MIN;
	memcpy(msg, &h, sizeof(h));
	crc = rte_hash_crc(msg, (uint32_t)crc_at, ~0u);
	crc = rte_hash_crc(msg + crc_at + 4, (uint32_t)(len - crc_at - 4), crc);
	memcpy(msg + crc_at, &crc, sizeof(crc));
}

static void
read_alone(const uint8_t *msg, size_t len)
{
	struct plx_wire_addr addr = {.n_devs = 0};
	uint8_t *exact = malloc(len), again[PLX_WIRE_CONN_MAX], packed[PLX_WIRE_ADDR_MAX];
	struct plx_wire_conn h;
	int n = 0;

	FUZZ_CHECK(exact != NULL);
	memcpy(exact, msg, len);
	if (plx_wire_conn_unpack(exact, len, &h, &addr) == 0 &&
		(h.kind == PLX_WIRE_CONN_HELLO || h.kind == PLX_WIRE_CONN_ACCEPT)) {
		n = plx_wire_addr_pack(&addr, packed, sizeof(packed));
		FUZZ_CHECK(n > 0);
		FUZZ_CHECK(plx_wire_conn_pack(&h, packed, (size_t)n, again) == len);
		FUZZ_CHECK(memcmp(again, exact, len) == 0);
	}
	free(exact);
}

/* The next message of the input, in the stream's frame. */
static size_t
msg_next(struct fuzz_in *in, uint8_t *msg)
{
	uint8_t how = fuzz_u8(in);
	size_t len = fuzz_u16(in) % MSG_MAX;
	const uint32_t magic = UINT32_C(0x4d584c50); /* as lib/cm */
	const uint16_t version = 1;
	uint16_t framed;

	fuzz_bytes(in, msg + HEAD_LEN, len);
	if (how & 1) { /* with an address that leads somewhere */
		len = sizeof(struct plx_wire_conn) + own_len;
		memcpy(msg + HEAD_LEN + sizeof(struct plx_wire_conn), own, own_len);
	}
	if (how & 2)
		msg_fix(msg + HEAD_LEN, len);
	framed = (uint16_t)len;
	memcpy(msg, &magic, 4);
	memcpy(msg + 4, &version, 2);
	memcpy(msg + 6, &framed, 2);
	if (how & 4)
		fuzz_bytes(in, msg, HEAD_LEN);
	return HEAD_LEN + len;
}

static void
talk(struct fuzz_in *in)
{
	alignas(8) uint8_t msg[HEAD_LEN + MSG_MAX + PLX_WIRE_ADDR_MAX];
	uint8_t answer[1024];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct linger linger = {1, 0};

	FUZZ_CHECK(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)); /* ports are few */
	while (connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)) != 0)
		FUZZ_CHECK(errno == EINTR); /* libFuzzer's alarm */
	for (unsigned i = 0; i < N_MSGS && fuzz_more(in); i++) {
		size_t len = msg_next(in, msg);

		(void)!send(fd, msg, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		for (unsigned k = 0; k < TURNS; k++)
			ucp_worker_progress(worker);
		(void)!recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	}
	close(fd);
	for (unsigned k = 0; k < TURNS; k++)
		ucp_worker_progress(worker);
}

static void
answered_close(void)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE};

	for (unsigned i = 0; i < N_MSGS; i++) {
		void *req;

		if (answered[i] == NULL)
			continue;
		req = ucp_ep_close_nbx(answered[i], &p);
		if (req != NULL && UCS_PTR_STATUS(req) == UCS_ERR_INVALID_PARAM) {
			p.flags = 0; /* without error handling there is no force */
			req = ucp_ep_close_nbx(answered[i], &p);
		}
		answered[i] = NULL;
		for (unsigned k = 0; UCS_PTR_IS_PTR(req) && k < TURNS; k++)
			ucp_worker_progress(worker);
		if (UCS_PTR_IS_PTR(req))
			ucp_request_free(req);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	alignas(8) uint8_t msg[MSG_MAX];
	uint8_t how = fuzz_u8(&in);
	size_t n;

	refuse = (how & 4) != 0;
	if (how & 1) {
		talk(&in);
		answered_close();
		return 0;
	}
	n = (size_t)(in.end - in.p);
	n = n < sizeof(msg) ? n : sizeof(msg);
	fuzz_bytes(&in, msg, n);
	if (how & 2)
		msg_fix(msg, n);
	read_alone(msg, n);
	return 0;
}
