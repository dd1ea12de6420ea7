/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_tcp.c - a worker with net_tcp, and what anybody says to its sockets
 *
 * Design notes
 * The input is how far the handshake is kept, what is changed in it, and then a program that says bytes and
 * frames. Messages of the handshake are changed before they are sealed too, so that what lies behind the check is
 * reached. In half of the inputs the worker is who connects. Sockets are closed by RST: nothing of an
 * input stays in the kernel. Behind the handshake further connections are made, and data comes by them for memory whose
 * key we have.
 */
#include "fuzz.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tcp_frame.h"
#include "tcp_hello.h"
#include "tcp_mac.h"
#include "ucp_int.h"

#define N_COMMANDS 64
#define N_TURNS	   200 /* until an answer is there */
#define FRAME_MAX  2048
#define N_FURTHER  4u

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
static struct tcp_addr its; /* the worker's */
static uint8_t first[TCP_MAC_LEN]; /* of the CONFIRM of the first connection */
static int further[N_FURTHER];
static uint8_t memory[4096]; /* that we may write to and read */
static uint64_t key;

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

	FUZZ_CHECK(tcp_hello_make(&h, &own, to, 0) == 0);
	if (how & HOW_CHANGED)
		change(in, (how & HOW_SEALED) != 0 ? h.addr : (uint8_t *)&h, how & HOW_SEALED ? sizeof(h.addr) : sizeof(h));
	if (how & HOW_SEALED)
		tcp_mac(to->secret, (struct tcp_mac_part){&h, offsetof(struct tcp_hello, mac)},
			(struct tcp_mac_part){NULL, 0}, h.mac);
	say(w, fd, &h, sizeof(h));
	if (!hear(w, fd, &a, sizeof(a)) || tcp_answer_open(&a, &h, to) != 0)
		return false;
	tcp_confirm_make(&c, &a, to, NULL);
	if (how & HOW_LAST)
		change(in, &c, sizeof(c));
	memcpy(first, c.mac, sizeof(first));
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
	if (!hear(w, fd, &c, sizeof(c)) || tcp_confirm_open(&c, &a, &own, NULL) != 0)
		return false;
	memcpy(first, c.mac, sizeof(first));
	return true;
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

/* What moves data, by this connection or another. */
static void
say_far(ucp_worker_h w, int fd, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), len = fuzz_u8(in), flow = fuzz_u8(in) % (2 * N_FURTHER);
	struct {
		struct tcp_frame f;
		struct tcp_where at;
		uint64_t len;
		uint8_t data[256];
	} far = {.f = {.kind = how % TCP_FRAME_N, .op = how >> 3 & 3, .flow = flow},
		.at = {key, (uintptr_t)memory + fuzz_u8(in)}, .len = len};
	uint32_t head = far.f.kind == TCP_PUT ? sizeof(far.at) : far.f.kind == TCP_GET ? sizeof(struct tcp_get) : 0;

	far.f.len = head + (far.f.kind == TCP_GET ? 0 : len);
	if (how & 0x20)
		change(in, &far, 32);
	say(w, fd, &far, tcp_frame_len(far.f.flow != 0 && head != 0 ? head : RTE_MIN(far.f.len, 256u)));
}

static struct sockaddr_in
place(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

/* The fuzzer's alarm interrupts a connect(), which goes on. @return 0 or the errno */
static int
connect_through(int fd, const struct sockaddr_in *sa)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0)
		return 0;
	if (errno != EINTR)
		return errno;
	while (poll(&pfd, 1, -1) != 1)
		;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 ? err : errno;
}

static int
connect_to(const struct tcp_addr *to)
{
	struct sockaddr_in sa = place(to->port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), err = fd < 0 ? errno : connect_through(fd, &sa);

	if (err != 0) {
		fprintf(stderr, "port %u: %s\n", to->port, strerror(err));
		FUZZ_CHECK(!"no connection to the worker");
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

/* Make a further connection, or end it, or say something by it. */
static void
say_further(ucp_worker_h w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), i = how % N_FURTHER;
	struct tcp_confirm c;
	struct tcp_answer a;
	struct tcp_hello h;

	if (further[i] >= 0) {
		if (how & 0x80) {
			reset(further[i]);
			further[i] = -1;
		} else {
			say_bytes(w, further[i], in);
		}
		return;
	}
	further[i] = connect_to(&its);
	FUZZ_CHECK(tcp_hello_make(&h, &own, &its, i) == 0);
	say(w, further[i], &h, sizeof(h));
	if (!hear(w, further[i], &a, sizeof(a)))
		return;
	tcp_confirm_make(&c, &a, &its, first);
	if (how & 0x40)
		change(in, &c, sizeof(c));
	say(w, further[i], &c, sizeof(c));
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
		else if ((how & 7) == 3)
			say_further(w, in);
		else if ((how & 7) == 4)
			say_far(w, fd, in);
		else
			say_frame(w, fd, in, how);
	}
}

/* -- sockets -- */

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

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const settings[][2] = {{"net_tcp.interfaces", "lo"}, {"net_tcp.family", "inet"},
		{"worker.wait", "spin"}, {"worker.peer_check_ms", "1"}, {"net_tcp.chunks", "64"}, {"net_tcp.flows", "4"}};
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
	struct plx_dev_mem mem;
	int fd;

	plx_queue_addr(w->core->queues[0], &addr);
	FUZZ_CHECK(tcp_addr_read(addr.bytes, addr.len, &its) == 0);
	own.host = its.host;
	FUZZ_CHECK(plx_queue_mem_reg(w->core->queues[0], memory, sizeof(memory),
		PLX_DEV_MEM_READ | PLX_DEV_MEM_WRITE, &mem) == 0);
	key = mem.key;
	for (unsigned i = 0; i < N_FURTHER; i++)
		further[i] = -1;
	fd = how & HOW_JOINS ? have_it_come(w, ep) : connect_to(&its);
	if (fd >= 0 && how & HOW_RUBBISH)
		say_rubbish(w, fd, in);
	else if (fd >= 0 && (how & HOW_JOINS ? welcome(w, fd, in, how) : come(w, fd, in, how, &its)))
		talk(w, fd, in);
	reset(fd);
	for (unsigned i = 0; i < N_FURTHER; i++)
		reset(further[i]);
	turns(w, 3);
	plx_queue_mem_dereg(w->core->queues[0], &mem, true);
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
