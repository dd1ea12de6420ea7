/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_tcp.c - a worker with net_tcp, and what anybody says to its sockets
 *
 * Design notes
 * The input is how far the handshake is kept, what is changed in it, and then a program that says bytes and
 * frames. Messages of the handshake are changed before they are sealed too, so that what lies behind the check is
 * reached. In half of the inputs the worker is who connects. Sockets are closed by RST: nothing of an
 * input stays in the kernel.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_frame.h"
#include "tcp_hello.h"
#include "tcp_mac.h"
#include "ucp_int.h"

#define N_COMMANDS 64
#define N_TURNS	   200 /* until an answer is there */
#define FRAME_MAX  2048

enum {
	HOW_JOINS = 1,	/* the worker connects to us */
	HOW_RUBBISH = 2, /* instead of the handshake */
	HOW_SEALED = 4, /* what is changed of the first message is sealed */
	HOW_CHANGED = 8, /* something is changed in the first message, */
	HOW_LAST = 16,	/* in the last, if we connect */
};

static ucp_context_h ctx;
static int listener;
static struct tcp_addr own; /* that we say is ours */

static void
turns(ucp_worker_h w, unsigned n)
{
	while (n-- > 0)
		(void)ucp_worker_progress(w);
}

static void
say(ucp_worker_h w, int fd, const void *bytes, size_t len)
{
	(void)!send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	turns(w, 3);
}

/* @return whether all of it came */
static bool
hear(ucp_worker_h w, int fd, void *to, size_t len)
{
	size_t got = 0;

	for (unsigned i = 0; i < N_TURNS && got < len; i++) {
		ssize_t n = recv(fd, (uint8_t *)to + got, len - got, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		got += n > 0 ? (size_t)n : 0;
		turns(w, 1);
	}
	return got == len;
}

/* Up to four bytes of the input lie over something. */
static void
change(struct fuzz_in *in, void *at, size_t len)
{
	for (unsigned n = 1 + fuzz_u8(in) % 4; n > 0; n--)
		((uint8_t *)at)[fuzz_u8(in) % len] ^= fuzz_u8(in);
}

static void
say_rubbish(ucp_worker_h w, int fd, struct fuzz_in *in)
{
	uint8_t bytes[sizeof(struct tcp_hello)];

	fuzz_bytes(in, bytes, sizeof(bytes));
	say(w, fd, bytes, 1 + fuzz_u8(in) % sizeof(bytes));
}

/* @return whether it takes us for a peer */
static bool
come(ucp_worker_h w, int fd, struct fuzz_in *in, uint8_t how, const struct tcp_addr *to)
{
	struct tcp_confirm c;
	struct tcp_answer a;
	struct tcp_hello h;

	FUZZ_CHECK(tcp_hello_make(&h, &own, to) == 0);
	if (how & HOW_CHANGED)
		change(in, (how & HOW_SEALED) != 0 ? h.addr : (uint8_t *)&h, how & HOW_SEALED ? sizeof(h.addr) : sizeof(h));
	if (how & HOW_SEALED)
		tcp_mac(to->secret, (struct tcp_mac_part){&h, offsetof(struct tcp_hello, mac)},
			(struct tcp_mac_part){NULL, 0}, h.mac);
	say(w, fd, &h, sizeof(h));
	if (!hear(w, fd, &a, sizeof(a)) || tcp_answer_open(&a, &h, to) != 0)
		return false;
	tcp_confirm_make(&c, &a, to);
	if (how & HOW_LAST)
		change(in, &c, sizeof(c));
	say(w, fd, &c, sizeof(c));
	return true;
}

/* It has come to us. @return whether it takes us for the peer */
static bool
welcome(ucp_worker_h w, int fd, struct fuzz_in *in, uint8_t how)
{
	struct tcp_confirm c;
	struct tcp_addr from;
	struct tcp_answer a;
	struct tcp_hello h;

	if (!hear(w, fd, &h, sizeof(h)))
		return false;
	FUZZ_CHECK(tcp_hello_open(&h, &own, &from) == 0);
	FUZZ_CHECK(tcp_answer_make(&a, how & HOW_LAST ? TCP_REFUSE : TCP_ANSWER, &h, &own) == 0);
	if (how & HOW_CHANGED)
		change(in, &a, sizeof(a));
	say(w, fd, &a, sizeof(a));
	return hear(w, fd, &c, sizeof(c)) && tcp_confirm_open(&c, &a, &own) == 0;
}

/* -- behind the handshake -- */

static void
say_frame(ucp_worker_h w, int fd, struct fuzz_in *in, uint8_t how)
{
	uint8_t bytes[FRAME_MAX] = {0}, op = fuzz_u8(in) % PLX_WIRE_N;
	uint32_t len = plx_wire_hdr_len[op] + (how & 0x10 ? fuzz_u16(in) % 1500u : fuzz_u8(in) & 31u);
	struct tcp_frame f = {.len = len, .kind = TCP_MSG, .op = op};

	if (how & 0x20)
		change(in, &f, sizeof(f));
	memcpy(bytes, &f, sizeof(f));
	fuzz_bytes(in, bytes + sizeof(f), plx_wire_hdr_len[op] + 8u);
	say(w, fd, bytes, tcp_frame_len(len));
}

static void
say_bytes(ucp_worker_h w, int fd, struct fuzz_in *in)
{
	uint8_t bytes[64];
	size_t n = 1 + fuzz_u8(in) % sizeof(bytes);

	fuzz_bytes(in, bytes, n);
	say(w, fd, bytes, n);
}

static void
talk(ucp_worker_h w, int fd, struct fuzz_in *in)
{
	for (unsigned i = 0; i < N_COMMANDS && fuzz_more(in); i++) {
		uint8_t how = fuzz_u8(in);

		if ((how & 7) == 0)
			say_bytes(w, fd, in);
		else if ((how & 7) == 1)
			turns(w, how >> 3);
		else
			say_frame(w, fd, in, how);
	}
}

/* -- sockets -- */

static struct sockaddr_in
place(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static int
connect_to(const struct tcp_addr *to)
{
	struct sockaddr_in sa = place(to->port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
		fprintf(stderr, "port %u: %s\n", to->port, strerror(errno));
		FUZZ_CHECK(!"no connection to the worker");
	}
	return fd;
}

/* @return its connection to us, or -1 */
static int
have_it_come(ucp_worker_h w, ucp_ep_h *ep)
{
	struct plx_wire_addr a = {.uid = own.uid, .n_devs = 1, .devs = {{.name = "net_tcp", .len = tcp_addr_len(&own)}}};
	const ucp_request_param_t none = {0};
	uint8_t packed[PLX_WIRE_ADDR_MAX];
	const ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.address = (void *)packed, .err_mode = UCP_ERR_HANDLING_MODE_PEER};
	void *req;
	int fd = -1;

	memcpy(a.devs[0].bytes, &own, tcp_addr_len(&own));
	FUZZ_CHECK(plx_wire_addr_pack(&a, packed, sizeof(packed)) > 0);
	FUZZ_CHECK(ucp_ep_create(w, &p, ep) == UCS_OK);
	req = ucp_tag_send_nbx(*ep, "greetings", 9, 1, &none);
	if (UCS_PTR_IS_PTR(req))
		ucp_request_free(req);
	for (unsigned i = 0; i < N_TURNS && fd < 0; i++) {
		turns(w, 1);
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	}
	return fd;
}

static void
reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const settings[][2] = {{"net_tcp.interfaces", "lo"}, {"net_tcp.family", "inet"},
		{"worker.wait", "spin"}, {"worker.peer_check_ms", "1"}, {"net_tcp.chunks", "64"}};
	const struct tcp_ip here = {4, {127, 0, 0, 1}};
	struct sockaddr_in sa = place(0);
	socklen_t len = sizeof(sa);

	(void)argc;
	(void)argv;
	fuzz_start();
	ctx = fuzz_context("net_tcp", settings, sizeof(settings) / sizeof(settings[0]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FUZZ_CHECK(bind(listener, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(listener, 64) == 0);
	FUZZ_CHECK(getsockname(listener, (struct sockaddr *)&sa, &len) == 0);
	own = (struct tcp_addr){.uid = 77, .proc = 78, .host = 3, .port = ntohs(sa.sin_port), .version = TCP_ADDR_VERSION};
	FUZZ_CHECK(tcp_addr_add(&own, &here));
	return 0;
}

static void
meet(ucp_worker_h w, struct fuzz_in *in, ucp_ep_h *ep)
{
	uint8_t how = fuzz_u8(in);
	struct plx_addr addr;
	struct tcp_addr to;
	int fd;

	plx_queue_addr(w->core->queues[0], &addr);
	FUZZ_CHECK(tcp_addr_read(addr.bytes, addr.len, &to) == 0);
	own.host = to.host;
	fd = how & HOW_JOINS ? have_it_come(w, ep) : connect_to(&to);
	if (fd >= 0 && how & HOW_RUBBISH)
		say_rubbish(w, fd, in);
	else if (fd >= 0 && (how & HOW_JOINS ? welcome(w, fd, in, how) : come(w, fd, in, how, &to)))
		talk(w, fd, in);
	reset(fd);
	turns(w, 3);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const ucp_worker_params_t wp = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
	const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	struct fuzz_in in = {data, data + len};
	ucp_ep_h ep = NULL;
	ucp_worker_h w;
	void *req;

	FUZZ_CHECK(ucp_worker_create(ctx, &wp, &w) == UCS_OK);
	meet(w, &in, &ep);
	if (ep != NULL) {
		req = ucp_ep_close_nbx(ep, &force);
		if (UCS_PTR_IS_PTR(req))
			ucp_request_free(req);
	}
	ucp_worker_destroy(w);
	for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) /* it may have come later */
		reset(fd);
	return 0;
}
