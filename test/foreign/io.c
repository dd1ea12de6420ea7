/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * io.c - a server of reads and writes and its clients, any of which may be killed
 *
 * usage: io server WAY PORT SEED
 *        io client WAY SECONDS SEED PORT...
 *
 * WAY is tag, am or stream: how requests and data travel. All bytes are checked. A client
 * connects to the servers at these ports of this machine, again and again when one is gone; a
 * connection that fails is closed by force in its callback or later. SIGTERM ends a server
 * when its connections have gone, and a client when its requests are answered. It runs on UCX as
 * well, whose callbacks must not close: IO_CAREFUL=1.
 *
 * A line at the end: "server CONNECTIONS REQUESTS BYTES FAILED", or "client CONNECTIONS REQUESTS BYTES
 * FAILED REQUESTS_AT_PORT...".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "../ucp_util.h"

#define WINDOW	     8u	       /* requests of a connection that are not answered */
#define N_PORTS	     8
#define LEN_MAX	     (1u << 20)
#define SILENCE_NS   40000000000ull /* a connection that does nothing for so long hangs */
#define RETRY_NS     20000000ull
#define IDLE_TURNS   20000
#define MSG_MAGIC    0x696f6d73u
#define AM_ID	     9

enum way { TAG, AM, STREAM };
enum { READ = 1, WRITE, DONE, DATA };
enum then { SENT, GOT_HELLO, GOT_MSG, GOT_DATA };
enum { TAG_MSG = 1, TAG_DATA };

/* What travels before, or instead of, data. */
struct msg {
	uint32_t magic, op;
	uint64_t seq, seed, len;
};

struct conn;

/* One operation of UCP. */
struct io {
	struct conn *c;
	enum then then;
	bool matched; /* a receive by tag: no ep ends it */
	bool cancelled;
	void *req;
	struct msg m;
	uint8_t *buf;
	LIST_ENTRY(io) link;
};

struct conn {
	ucp_ep_h ep;
	uint64_t id, remote; /* who messages by tag are for */
	bool ready, failed;
	void *close_req;
	int port;	     /* of the client's: which */
	unsigned n_ios, n_out;
	struct msg out[WINDOW];
	uint64_t last_ns;
	LIST_HEAD(, io) ios;
	LIST_ENTRY(conn) link;
};

static enum way way;
static bool is_server, careful;
static ucp_worker_h worker;
static LIST_HEAD(, conn) conns = LIST_HEAD_INITIALIZER(conns);
static uint64_t seed, n_conns, n_requests, n_bytes, n_failed, next_id, next_seq;
static uint64_t at_port[N_PORTS];
static volatile sig_atomic_t stop; /* a signal handler's */

static void
on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static struct io *
io_new(struct conn *c, enum then then, const struct msg *m)
{
	struct io *io = calloc(1, sizeof(*io));

	if (io == NULL)
		UTIL_DIE("no memory");
	io->c = c;
	io->then = then;
	if (m != NULL)
		io->m = *m;
	LIST_INSERT_HEAD(&c->ios, io, link);
	c->n_ios++;
	return io;
}

static uint8_t *
io_buf(struct io *io, size_t len)
{
	io->buf = malloc(len);
	if (io->buf == NULL)
		UTIL_DIE("no memory for %zu bytes", len);
	return io->buf;
}

static void
io_end(struct io *io)
{
	LIST_REMOVE(io, link);
	io->c->n_ios--;
	free(io->buf);
	free(io);
}

static void
conn_close(struct conn *c, unsigned flags)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
	ucp_ep_h ep = c->ep;
	void *ret;

	c->ep = NULL;
	ret = ucp_ep_close_nbx(ep, &param);
	c->close_req = UCS_PTR_IS_PTR(ret) ? ret : NULL;
}

/* It is of no use any more: what is left of it ends. */
static void
conn_end(struct conn *c)
{
	struct io *io;

	c->failed = true;
	/* A cancelled receive may end, and be freed, within the call. */
	do {
		LIST_FOREACH(io, &c->ios, link) {
			if (io->matched && io->req != NULL && !io->cancelled)
				break;
		}
		if (io != NULL) {
			io->cancelled = true;
			ucp_request_cancel(worker, io->req);
		}
	} while (io != NULL);
	if (!careful && util_splitmix64(&seed) % 2 == 0 && c->ep != NULL)
		conn_close(c, UCP_EP_CLOSE_FLAG_FORCE);
}

static void
conn_fail(struct conn *c)
{
	if (c->failed)
		return;
	n_failed++;
	conn_end(c);
}

static void finish(struct io *io, ucs_status_t status);

static void
ended(struct io *io, void *req, ucs_status_t status)
{
	ucp_request_free(req);
	io->req = NULL;
	finish(io, status);
}

static void
on_sent(void *req, ucs_status_t status, void *io)
{
	ended(io, req, status);
}

static void
on_tag(void *req, ucs_status_t status, const ucp_tag_recv_info_t *info, void *io)
{
	(void)info;
	ended(io, req, status);
}

static void
on_bytes(void *req, ucs_status_t status, size_t len, void *io)
{
	(void)len;
	ended(io, req, status);
}

static void
posted(struct io *io, ucs_status_ptr_t ret)
{
	if (UCS_PTR_IS_PTR(ret))
		io->req = ret;
	else
		finish(io, UCS_PTR_STATUS(ret));
}

static ucp_request_param_t
param_of(struct io *io)
{
	return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.send = on_sent, .user_data = io};
}

static ucp_tag_t
tag_of(uint64_t id, uint64_t seq, unsigned kind)
{
	return id << 32 | (seq & 0x3fffffff) << 2 | kind;
}

/* --- sending --- */

static void
send_by_tag(struct conn *c, const struct msg *m, bool data)
{
	struct io *io = io_new(c, SENT, m);
	ucp_request_param_t param = param_of(io);

	if (data) {
		util_fill(io_buf(io, m->len), m->len, m->seed);
		posted(io, ucp_tag_send_nbx(c->ep, io->buf, m->len, tag_of(c->remote, m->seq, TAG_DATA), &param));
	} else {
		posted(io, ucp_tag_send_nbx(c->ep, &io->m, sizeof(io->m), tag_of(c->remote, 0, TAG_MSG),
			&param));
	}
}

static void
send_by_am(struct conn *c, const struct msg *m, bool data)
{
	struct io *io = io_new(c, SENT, m);
	ucp_request_param_t param = param_of(io);

	param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	param.flags = UCP_AM_SEND_FLAG_REPLY;
	if (data)
		util_fill(io_buf(io, m->len), m->len, m->seed);
	posted(io, ucp_am_send_nbx(c->ep, AM_ID, &io->m, sizeof(io->m), io->buf, data ? m->len : 0, &param));
}

static void
send_bytes(struct conn *c, const void *bytes, const struct msg *m)
{
	struct io *io = io_new(c, SENT, m);
	ucp_request_param_t param = param_of(io);

	if (bytes == NULL)
		util_fill(io_buf(io, m->len), m->len, m->seed);
	else
		memcpy(io_buf(io, sizeof(*m)), bytes, sizeof(*m));
	posted(io, ucp_stream_send_nbx(c->ep, io->buf, bytes == NULL ? m->len : sizeof(*m), &param));
}

/* m, with its data behind it if it has any. */
static void
send_msg(struct conn *c, const struct msg *m)
{
	bool data = m->op == WRITE || m->op == DATA;

	if (way == AM) {
		send_by_am(c, m, data);
	} else if (way == TAG) {
		if (m->op != DATA) /* whose receive waits for it */
			send_by_tag(c, m, false);
		if (data && !c->failed)
			send_by_tag(c, m, true);
	} else {
		send_bytes(c, m, m);
		if (data && !c->failed)
			send_bytes(c, NULL, m);
	}
}

/* --- receiving --- */

static void
recv_by_tag(struct conn *c, enum then then, const struct msg *m)
{
	struct io *io = io_new(c, then, m);
	ucp_request_param_t param = param_of(io);
	void *ret;

	param.cb.recv = on_tag;
	io->matched = true;
	if (then == GOT_DATA)
		ret = ucp_tag_recv_nbx(worker, io_buf(io, m->len), m->len, tag_of(c->id, m->seq, TAG_DATA),
			UINT64_MAX, &param);
	else
		ret = ucp_tag_recv_nbx(worker, &io->m, sizeof(io->m), tag_of(c->id, 0, TAG_MSG),
			UINT64_MAX, &param);
	posted(io, ret);
}

static void
recv_bytes(struct conn *c, enum then then, const struct msg *m)
{
	struct io *io = io_new(c, then, m);
	ucp_request_param_t param = param_of(io);
	size_t len = 0;

	param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	param.flags = UCP_STREAM_RECV_FLAG_WAITALL;
	param.cb.recv_stream = on_bytes;
	if (then == GOT_DATA)
		posted(io, ucp_stream_recv_nbx(c->ep, io_buf(io, m->len), m->len, &len, &param));
	else
		posted(io, ucp_stream_recv_nbx(c->ep, &io->m, then == GOT_HELLO ? sizeof(uint64_t)
			: sizeof(io->m), &len, &param));
}

static void
recv_msg(struct conn *c)
{
	if (c->failed)
		return;
	if (way == TAG)
		recv_by_tag(c, GOT_MSG, NULL);
	else if (way == STREAM)
		recv_bytes(c, GOT_MSG, NULL);
}

static void
send_hello(struct conn *c)
{
	struct io *io = io_new(c, SENT, NULL);
	ucp_request_param_t param = param_of(io);

	memcpy(io_buf(io, sizeof(c->id)), &c->id, sizeof(c->id));
	posted(io, ucp_stream_send_nbx(c->ep, io->buf, sizeof(c->id), &param));
	if (!c->failed)
		recv_bytes(c, GOT_HELLO, NULL);
}

/* --- requests --- */

static void
answered(struct conn *c, const struct msg *m)
{
	unsigned i;

	for (i = 0; i < c->n_out && c->out[i].seq != m->seq; i++)
		;
	if (i == c->n_out)
		UTIL_DIE("an answer to request %llu, which is not open", (unsigned long long)m->seq);
	if (c->out[i].len != m->len || c->out[i].seed != m->seed)
		UTIL_DIE("the answer is another request's");
	c->out[i] = c->out[--c->n_out];
	n_requests++;
	n_bytes += m->len;
	at_port[c->port]++;
	c->last_ns = util_now_ns();
}

static void
got_data(struct conn *c, const struct msg *m, const void *data)
{
	struct msg done = *m;

	if (!util_check(data, m->len, m->seed))
		UTIL_DIE("wrong data");
	if (!is_server) {
		answered(c, m);
		return;
	}
	n_requests++;
	n_bytes += m->len;
	done.op = DONE;
	send_msg(c, &done);
}

static void
check_msg(const struct msg *m)
{
	if (m->magic != MSG_MAGIC || m->len == 0 || m->len > LEN_MAX ||
		(is_server ? m->op != READ && m->op != WRITE : m->op != DONE && m->op != DATA))
		UTIL_DIE("a message that makes no sense: %x %u %llu", m->magic, m->op,
			(unsigned long long)m->len);
}

static void
got_msg(struct conn *c, struct msg m)
{
	bool data = m.op == WRITE || m.op == DATA;

	check_msg(&m);
	if (m.op == READ) {
		n_requests++;
		n_bytes += m.len;
		m.op = DATA;
		send_msg(c, &m);
	} else if (m.op == DONE) {
		answered(c, &m);
	} else if (way == TAG) {
		recv_by_tag(c, GOT_DATA, &m);
	} else {
		recv_bytes(c, GOT_DATA, &m);
	}
	if (way == TAG || !data) /* in a stream the data comes first */
		recv_msg(c);
}

static void
finish(struct io *io, ucs_status_t status)
{
	struct conn *c = io->c;
	struct msg m = io->m;

	if (status != UCS_OK)
		conn_fail(c);
	if (c->failed) {
		io_end(io);
		return;
	}
	switch (io->then) {
	case GOT_HELLO:
		memcpy(&c->remote, &io->m, sizeof(c->remote));
		c->ready = true;
		io_end(io);
		for (int i = 0; i < 4; i++)
			recv_msg(c);
		break;
	case GOT_MSG:
		io_end(io);
		got_msg(c, m);
		break;
	case GOT_DATA:
		got_data(c, &m, io->buf);
		io_end(io);
		if (way == STREAM)
			recv_msg(c);
		break;
	default:
		io_end(io);
	}
}

static ucs_status_t
on_am(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct conn *c;
	struct msg m;
	struct io *io;

	(void)arg;
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0)
		UTIL_DIE("an active message without its reply ep");
	LIST_FOREACH(c, &conns, link) {
		if (c->ep == param->reply_ep)
			break;
	}
	if (c == NULL || header_length != sizeof(m))
		UTIL_DIE("an active message of an ep that is not open, or of %zu bytes", header_length);
	memcpy(&m, header, sizeof(m));
	check_msg(&m);
	if (length != (m.op == WRITE || m.op == DATA ? m.len : 0))
		UTIL_DIE("%zu bytes, not %llu", length, (unsigned long long)m.len);
	if (c->failed)
		return UCS_OK;
	if (length == 0) {
		got_msg(c, m);
	} else if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
		ucp_request_param_t p;

		io = io_new(c, GOT_DATA, &m);
		p = param_of(io);
		p.cb.recv_am = on_bytes;
		posted(io, ucp_am_recv_data_nbx(worker, data, io_buf(io, length), length, &p));
		return UCS_INPROGRESS;
	} else {
		got_data(c, &m, data);
	}
	return UCS_OK;
}

/* --- connections --- */

static void
on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct conn *c = arg;

	(void)status;
	if (c->ep != ep)
		UTIL_DIE("an error of an ep that is closed");
	conn_fail(c);
}

static void
conn_open(ucp_ep_params_t *params, int port)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		UTIL_DIE("no memory");
	c->id = ++next_id;
	c->port = port;
	c->last_ns = util_now_ns();
	LIST_INIT(&c->ios);
	params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
	params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	params->err_handler.cb = on_error;
	params->err_handler.arg = c;
	if (ucp_ep_create(worker, params, &c->ep) != UCS_OK) { /* the client is gone, or all ports are in use */
		n_failed++;
		free(c);
		return;
	}
	n_conns++;
	LIST_INSERT_HEAD(&conns, c, link);
	c->ready = way != TAG;
	if (way == TAG)
		send_hello(c);
	else
		recv_msg(c);
}

static void
on_request(ucp_conn_request_h r, void *arg)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = r};

	(void)arg;
	conn_open(&params, 0);
}

static struct sockaddr_in
address(const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void
conn_to(const char *port, int i)
{
	struct sockaddr_in a = address(port);
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
		.sockaddr = {(struct sockaddr *)&a, sizeof(a)}};

	conn_open(&params, i);
}

/* Close what has failed or is no longer wanted, forget what is closed. */
static void
conns_reap(bool leave)
{
	struct conn *c, *next;

	for (c = LIST_FIRST(&conns); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (!c->failed && leave && c->n_out == 0 && !is_server)
			conn_end(c); /* with receives posted that nobody answers */
		if (c->failed && c->ep != NULL)
			conn_close(c, UCP_EP_CLOSE_FLAG_FORCE);
		if (c->close_req != NULL && ucp_request_check_status(c->close_req) != UCS_INPROGRESS) {
			ucp_request_free(c->close_req);
			c->close_req = NULL;
		}
		if (c->ep != NULL || c->close_req != NULL || c->n_ios != 0)
			continue;
		LIST_REMOVE(c, link);
		free(c);
	}
}

/* Give a turn, and sleep when there was nothing to do for long. */
static void
turn(void)
{
	static unsigned idle;
	struct pollfd p = {.events = POLLIN};

	if (ucp_worker_progress(worker) != 0) {
		idle = 0;
	} else if (++idle > IDLE_TURNS) {
		idle = 0;
		UTIL_OK(ucp_worker_get_efd(worker, &p.fd));
		if (ucp_worker_arm(worker) == UCS_OK)
			poll(&p, 1, 5);
	}
}

static void
silent(const struct conn *c, uint64_t ns)
{
	static const char *const names[] = {"send", "receive of a hello", "receive of a message", "receive of data"};
	struct io *io;

	if (getenv("IO_STOP") != NULL) /* for a debugger */
		raise(SIGSTOP);
	LIST_FOREACH(io, &c->ios, link)
		fprintf(stderr, "%s of request %llu, %llu bytes%s\n", names[io->then], (unsigned long long)io->m.seq,
			(unsigned long long)io->m.len, io->cancelled ? ", cancelled" : "");
	UTIL_DIE("nothing for %llu ms: %u requests open, %u operations, %s, %s, %s", (unsigned long long)ns / 1000000,
		c->n_out, c->n_ios, c->failed ? "failed" : "not failed", c->ready ? "ready" : "not ready",
		c->close_req != NULL ? "closing" : c->ep == NULL ? "closed" : "open");
}

static void
silence(uint64_t now)
{
	struct conn *c;

	LIST_FOREACH(c, &conns, link) {
		if (now > c->last_ns && now - c->last_ns > SILENCE_NS)
			silent(c, now - c->last_ns);
	}
}

static void
request(struct conn *c)
{
	static const uint32_t longest[] = {8, 200, 6000, 30000, 120000, LEN_MAX};
	struct msg m = {.magic = MSG_MAGIC, .seq = ++next_seq, .seed = util_splitmix64(&seed)};

	m.op = util_splitmix64(&seed) % 2 == 0 ? READ : WRITE;
	m.len = 1 + util_splitmix64(&seed) % longest[util_splitmix64(&seed) % 6];
	c->out[c->n_out++] = m;
	if (way == TAG && m.op == READ)
		recv_by_tag(c, GOT_DATA, &m);
	if (!c->failed)
		send_msg(c, &m);
}

static void
client(double seconds, char **ports, int n)
{
	uint64_t now = util_now_ns(), end = now + (uint64_t)(seconds * 1e9), retry[N_PORTS] = {0};
	struct conn *c;
	int i;

	while (!stop && now < end) {
		for (i = 0; i < n; i++) {
			LIST_FOREACH(c, &conns, link) {
				if (c->port == i)
					break;
			}
			if (c == NULL && now > retry[i]) {
				conn_to(ports[i], i);
				retry[i] = now + RETRY_NS;
			}
		}
		LIST_FOREACH(c, &conns, link) {
			while (c->ready && !c->failed && c->n_out < WINDOW)
				request(c);
		}
		turn();
		conns_reap(false);
		now = util_now_ns();
		silence(now);
	}
	while (!LIST_EMPTY(&conns)) {
		turn();
		conns_reap(true);
		silence(util_now_ns());
	}
}

static void
server(const char *port)
{
	struct sockaddr_in a = address(port);
	ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER, .sockaddr = {(struct sockaddr *)&a, sizeof(a)},
		.conn_handler.cb = on_request};
	uint64_t end = util_now_ns() + SILENCE_NS;
	ucp_listener_h l;
	ucs_status_t status;

	while ((status = ucp_listener_create(worker, &params, &l)) == UCS_ERR_BUSY && util_now_ns() < end)
		usleep(10000);
	UTIL_OK(status);
	while (!stop) {
		turn();
		conns_reap(false);
	}
	end = util_now_ns() + SILENCE_NS;
	while (!LIST_EMPTY(&conns)) {
		turn();
		conns_reap(false);
		if (util_now_ns() > end)
			UTIL_DIE("connections are left, although all clients are gone");
	}
	ucp_listener_destroy(l);
}

static ucp_context_h
context(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG |
		UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP};
	ucp_context_h ctx;

	UTIL_OK(ucp_init(&params, NULL, &ctx));
	return ctx;
}

int
main(int argc, char **argv)
{
	ucp_am_handler_param_t am = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = on_am};
	struct sigaction term = {.sa_handler = on_term};
	ucp_worker_params_t params = {.field_mask = 0};
	ucp_context_h ctx;
	int i;

	is_server = argc == 5 && strcmp(argv[1], "server") == 0;
	if (!is_server && (argc < 6 || argc > 5 + N_PORTS || strcmp(argv[1], "client") != 0))
		UTIL_DIE("usage: io server WAY PORT SEED | io client WAY SECONDS SEED PORT...");
	way = strcmp(argv[2], "tag") == 0 ? TAG : strcmp(argv[2], "am") == 0 ? AM : STREAM;
	seed = strtoull(argv[4], NULL, 0);
	careful = getenv("IO_CAREFUL") != NULL;
	sigaction(SIGTERM, &term, NULL);
	ctx = context();
	UTIL_OK(ucp_worker_create(ctx, &params, &worker));
	UTIL_OK(ucp_worker_set_am_recv_handler(worker, &am));
	if (is_server)
		server(argv[3]);
	else
		client(atof(argv[3]), argv + 5, argc - 5);
	ucp_worker_destroy(worker);
	ucp_cleanup(ctx);
	printf("%s %llu %llu %llu %llu", argv[1], (unsigned long long)n_conns,
		(unsigned long long)n_requests, (unsigned long long)n_bytes, (unsigned long long)n_failed);
	for (i = 0; !is_server && i < argc - 5; i++)
		printf(" %llu", (unsigned long long)at_port[i]);
	printf("\n");
	return 0;
}
