/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conn.c - handles by socket address: hello, accept, reject, close
 *
 * Design notes
 * By lib/cm the two sides exchange their worker addresses and nothing else:
 *
 *	client			server
 *	HELLO	-------------->	a request for the application, which keeps,
 *				rejects or accepts it at any time
 *		<--------------	ACCEPT, or REJECT err
 *	DONE err -------------->	0: connected; the socket is closed
 *
 * From then on they are peers of a device like any others. The client chooses a
 * random conn_id by which both name this pair of handles. A socket that ends before
 * DONE, a malformed message, and DONE that does not come in time (cm.done_ms) fail the handle.
 * A client that was merely slow receives EP_CLOSE.
 *
 * The application's side owns sockets and conns: plx_worker_progress(), where the application's
 * handlers run, polls them, every CONN_LOOK_US if it is called all the time. What touches eps is
 * posted to the owner and waited for, since connecting is rare.
 *
 * A request does not depend on its listener: its socket is in no cm, so that any worker of
 * the context may accept it, also in another thread.
 *
 * Callbacks. These functions change eps in plx_worker_call(), which defers completions: no
 * callback closes a handle, and frees its conn, while it is in use here.
 *
 * Closing. A handle that is closed with a flush sends EP_CLOSE after everything else; the
 * other side's handle fails with -ECONNRESET. A worker that receives EP_CLOSE before
 * the answer on the socket records it in the stub.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>

#include "worker_int.h"

#define CONN_LOOK_US 50 /* between two polls of the sockets; one costs less than 1 us */

struct plx_conn_req {
	struct plx_cm_sock *sock; /* in no cm */
	struct plx_wire_conn hello;
	struct plx_wire_addr addr; /* the client's worker */
	struct sockaddr_storage client;
};

struct plx_listener {
	struct plx_cm_listener cm;
	struct plx_worker *w; /* NULL: destroyed before the listener */
	void (*fn)(struct plx_conn_req *r, void *arg);
	void *arg;
	LIST_ENTRY(plx_listener) link;
};

/* The additional state of a handle made by socket address. Owner: application's side; stub:
 * owner. */
struct plx_conn {
	struct plx_ep_stub stub;
	struct plx_worker *w;
	struct plx_ep_user *user;  /* NULL: closed */
	struct plx_cm_sock *sock;  /* NULL: no longer needed */
	struct plx_req *close_req; /* closed while connecting: to be completed */
	struct plx_wire_addr addr; /* of the peer, while it is connected */
	struct sockaddr_storage local, remote;
	uint32_t conn_id;
	int rc; /* result of the owner's part */
	bool server;
	LIST_ENTRY(plx_conn) link;
};

/* The first device that has a manager of connections. */
static const struct plx_dev_cm_ops *
conns_dev(const struct plx_worker *w)
{
	const struct plx_dev_cm_ops *ops = NULL;

	for (unsigned i = 0; i < w->n_queues && ops == NULL; i++)
		ops = plx_dev_cm(w->devs[i]);
	return ops;
}

static int
conns_open(struct plx_worker *w)
{
	int rc = 0;

	if (w->conns.cm.epfd >= 0)
		return 0;
	rc = plx_cm_open(&w->conns.cm, w->conns.transport, conns_dev(w));
	if (rc != 0)
		return rc;
	rc = worker_wake_add(w, w->conns.cm.epfd);
	if (rc != 0)
		plx_cm_close(&w->conns.cm);
	return rc;
}

/* After sockets were added or removed. */
static void
conns_update(struct plx_worker *w)
{
	if (w->conns.cm.n != 0)
		worker_app_add(w, WORKER_APP_CONNS);
	else
		w->app_work &= ~WORKER_APP_CONNS;
}

unsigned
worker_conns_run(struct plx_worker *w)
{
	uint64_t now = rte_rdtsc();
	unsigned n;

	if (w->conns.in_run || now - w->conns.last_ticks < rte_get_tsc_hz() / 1000000 * CONN_LOOK_US)
		return 0;
	w->conns.last_ticks = now;
	w->conns.in_run = true; /* a handler calls progress: no further handlers */
	n = plx_cm_poll(&w->conns.cm);
	w->conns.in_run = false;
	conns_update(w);
	return n;
}

/* --- conns --- */

static struct plx_conn *
conn_new(struct plx_worker *w, struct plx_ep_user *user, uint32_t conn_id)
{
	struct plx_conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->w = w;
	c->user = user;
	c->conn_id = conn_id;
	LIST_INSERT_HEAD(&w->conns.list, c, link);
	return c;
}

static void
conn_sock_close(struct plx_conn *c)
{
	plx_cm_sock_close(c->sock);
	c->sock = NULL;
}

static void
stub_close_run(void *arg)
{
	struct plx_conn *c = arg;

	plx_ep_stub_close(&c->stub);
}

static void
conn_free(struct plx_conn *c)
{
	struct plx_worker *w = c->w;

	plx_worker_call(w, stub_close_run, c);
	conn_sock_close(c);
	LIST_REMOVE(c, link);
	free(c);
	conns_update(w);
}

/* Point a handle to another ep. Thread: owner. */
static void
user_move(struct plx_worker *w, struct plx_ep_user *user, struct plx_ep *ep, uint32_t conn_id)
{
	pthread_mutex_lock(&w->users_lock);
	if (user->ep != NULL)
		plx_ep_user_remove(user);
	plx_ep_user_link(ep, user, conn_id);
	pthread_mutex_unlock(&w->users_lock);
	plx_stream_move(user);
}

static void
user_fail(struct plx_worker *w, struct plx_ep_user *user, int err)
{
	/* pairs with the acquire in plx_ep_user_err() */
	atomic_store_explicit(&user->err, err, memory_order_release);
	plx_stream_user_failed(user, err);
	if (!w->dedicated)
		plx_eps_need_turn(&w->eps);
	/* pairs with the acquire in the face's progress */
	atomic_fetch_add_explicit(&w->n_failed, 1, memory_order_release);
}

static void
conn_fail_run(void *arg)
{
	struct plx_conn *c = arg;
	struct plx_req *req = c->close_req;

	plx_ep_stub_fail(&c->stub, c->rc);
	if (c->user != NULL) {
		if (c->user->ep != &c->stub.ep)
			user_move(c->w, c->user, &c->stub.ep, c->conn_id);
		if (c->user->err == 0)
			user_fail(c->w, c->user, c->rc);
	}
	c->close_req = NULL;
	if (req != NULL)
		plx_req_complete(req, 0);
}

static void
conn_fail(struct plx_conn *c, int err)
{
	conn_sock_close(c);
	c->rc = err;
	plx_worker_call(c->w, conn_fail_run, c);
	if (c->user == NULL)
		conn_free(c);
}

static int
conn_send(struct plx_cm_sock *s, const struct plx_wire_conn *h, const struct plx_worker *w)
{
	uint8_t msg[PLX_WIRE_CONN_MAX], addr[PLX_WIRE_ADDR_MAX];
	int len = w != NULL ? plx_worker_addr(w, addr, sizeof(addr)) : 0;

	if (len < 0)
		return len;
	_Static_assert(sizeof(msg) <= PLX_CM_MSG_MAX, "a message holds it");
	return plx_cm_send(s, msg, plx_wire_conn_pack(h, addr, len, msg));
}

void
plx_conn_addrs(const struct plx_conn *c, struct sockaddr_storage *local,
	struct sockaddr_storage *remote)
{
	struct sockaddr_storage to;

	*local = c->local;
	*remote = c->remote;
	if (local->ss_family == AF_UNSPEC && c->sock != NULL) /* it is connecting */
		plx_cm_sock_addrs(c->sock, local, &to);
}

/* Find the ep of the other side's worker and connect the stub to it. @return whether there is one; otherwise c->rc says
 * why. Thread: owner. */
static bool
conn_reach(struct plx_conn *c, struct plx_ep **ep)
{
	c->rc = worker_ep_of_addr(c->w, &c->addr, ep);
	if (c->rc == 0)
		c->rc = plx_ep_connect(*ep);
	if (c->rc == 0)
		plx_ep_stub_connect(&c->stub, *ep);
	return c->rc == 0;
}

/* --- client --- */

static void
client_connect_run(void *arg)
{
	struct plx_conn *c = arg;
	struct plx_worker *w = c->w;
	struct plx_req *req = c->close_req;
	struct plx_ep *ep;

	if (!conn_reach(c, &ep))
		return;
	worker_flushes_extend(w);
	if (c->user != NULL) {
		user_move(w, c->user, ep, c->conn_id);
		if (plx_ep_stub_was_closed(&c->stub))
			user_fail(w, c->user, -ECONNRESET);
	}
	c->close_req = NULL;
	if (req != NULL)
		worker_flush_close(req, ep, c->conn_id);
}

static void
client_on_accept(struct plx_conn *c)
{
	struct plx_wire_conn done = {.kind = PLX_WIRE_CONN_DONE, .conn_id = c->conn_id};

	plx_cm_sock_addrs(c->sock, &c->local, &c->remote);
	plx_worker_call(c->w, client_connect_run, c);
	done.err = c->rc;
	if (c->sock != NULL)
		conn_send(c->sock, &done, NULL);
	if (c->rc != 0) {
		conn_fail(c, c->rc);
		return;
	}
	conn_sock_close(c);
	if (c->user == NULL)
		conn_free(c);
}

static void
client_on_msg(struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	struct plx_conn *c = s->arg;
	struct plx_wire_conn h;
	int rc = plx_wire_conn_unpack(msg, len, &h, &c->addr);

	if (rc == 0 && h.conn_id != c->conn_id)
		rc = -EBADMSG;
	if (rc == 0 && h.kind == PLX_WIRE_CONN_ACCEPT)
		client_on_accept(c);
	else if (rc == 0 && h.kind == PLX_WIRE_CONN_REJECT)
		conn_fail(c, h.err != 0 ? h.err : -ECONNREFUSED);
	else
		conn_fail(c, -EIO);
}

static void
client_on_fail(struct plx_cm_sock *s, int err)
{
	struct plx_conn *c = s->arg;

	/* Nobody listens: that is not a refusal by an application. */
	conn_fail(c, err == -ECONNREFUSED || err == -ENETUNREACH ? -EHOSTUNREACH
		: err == -EBADMSG || err == -EPROTO ? -EIO : err);
}

static void
client_open_run(void *arg)
{
	struct plx_conn *c = arg;

	plx_ep_stub_open(&c->stub, &c->w->eps, c->conn_id);
	plx_ep_user_link(&c->stub.ep, c->user, c->conn_id);
}

int
plx_worker_conn_open(struct plx_worker *w, const struct plx_conn_params *p,
	struct plx_ep_user *user)
{
	struct plx_wire_conn hello = {.kind = PLX_WIRE_CONN_HELLO, .err_mode = p->err_mode,
		.flags = p->has_client_id ? PLX_WIRE_CONN_CLIENT_ID : 0, .client_id = p->client_id};
	struct plx_cm_sock *sock;
	struct plx_conn *c;
	int rc = conns_open(w);

	if (rc != 0)
		return rc;
	if (getrandom(&hello.conn_id, sizeof(hello.conn_id), 0) != sizeof(hello.conn_id))
		return -EIO;
	hello.conn_id |= PLX_WIRE_CONN_ID_MIN;
	rc = plx_cm_connect(&w->conns.cm, p->to, p->to_len, p->local, p->local_len, &sock);
	if (rc != 0)
		return rc;
	c = conn_new(w, user, hello.conn_id);
	rc = c == NULL ? -ENOMEM : conn_send(sock, &hello, w);
	if (rc != 0) {
		if (c != NULL) {
			LIST_REMOVE(c, link);
			free(c);
		}
		plx_cm_sock_close(sock);
		return rc;
	}
	sock->on_msg = client_on_msg;
	sock->on_fail = client_on_fail;
	sock->arg = c;
	c->sock = sock;
	memcpy(&c->remote, p->to, RTE_MIN(p->to_len, sizeof(c->remote)));
	user->conn = c;
	plx_worker_call(w, client_open_run, c);
	worker_users_add(w, user);
	conns_update(w);
	return 0;
}

/* --- server --- */

static void
request_new(struct plx_cm_listener *cml, struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	struct plx_listener *l = container_of(cml, struct plx_listener, cm);
	struct plx_conn_req *r = malloc(sizeof(*r));
	struct sockaddr_storage local;

	plx_cm_detach(s);
	if (r != NULL)
		plx_cm_sock_addrs(s, &local, &r->client);
	if (r == NULL || plx_wire_conn_unpack(msg, len, &r->hello, &r->addr) != 0 ||
		r->hello.kind != PLX_WIRE_CONN_HELLO || r->client.ss_family == AF_UNSPEC) {
		PLX_LOG_RATELIMIT(INFO, worker, "a connection sent malformed data: closed");
		PLX_STAT_INC(l->w->conns.cm.stat.drop_bad_msg);
		plx_cm_sock_close(s);
		free(r);
		return;
	}
	r->sock = s;
	l->fn(r, l->arg);
}

void
plx_conn_req_wish(const struct plx_conn_req *r, struct plx_conn_wish *wish)
{
	wish->err_mode = r->hello.err_mode;
	wish->has_client_id = (r->hello.flags & PLX_WIRE_CONN_CLIENT_ID) != 0;
	wish->client_id = r->hello.client_id;
	wish->client = r->client;
}

int
plx_worker_listen(struct plx_worker *w, const struct sockaddr *addr, socklen_t len,
	void (*fn)(struct plx_conn_req *r, void *arg), void *arg, struct plx_listener **out)
{
	struct plx_listener *l;
	int rc = conns_open(w);

	if (rc != 0)
		return rc;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->w = w;
	l->fn = fn;
	l->arg = arg;
	l->cm.on_first = request_new;
	rc = plx_cm_listen(&w->conns.cm, addr, len, &l->cm);
	if (rc != 0) {
		free(l);
		return rc;
	}
	LIST_INSERT_HEAD(&w->conns.listeners, l, link);
	conns_update(w);
	*out = l;
	return 0;
}

void
worker_conns_lose(struct plx_worker *w)
{
	struct plx_listener *l;

	LIST_FOREACH(l, &w->conns.listeners, link)
		plx_cm_listener_lose(&l->cm);
	plx_cm_lose(&w->conns.cm);
}

void
plx_worker_unlisten(struct plx_listener *l)
{
	struct plx_worker *w = l->w;

	if (w != NULL) {
		plx_cm_unlisten(&l->cm);
		LIST_REMOVE(l, link);
		conns_update(w);
	}
	free(l);
}

int
plx_listener_addr(const struct plx_listener *l, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	return l->w != NULL ? plx_cm_listener_addr(&l->cm, addr) : -ENOTCONN;
}

void
plx_worker_conn_reject(struct plx_worker *w, struct plx_conn_req *r, int err)
{
	struct plx_wire_conn h = {.kind = PLX_WIRE_CONN_REJECT, .conn_id = r->hello.conn_id,
		.err = err};

	/* It stays there until the client has it. */
	if (conns_open(w) == 0)
		(void)plx_cm_attach(&w->conns.cm, r->sock);
	conn_send(r->sock, &h, NULL);
	plx_cm_sock_close(r->sock);
	conns_update(w);
	free(r);
}

/* The last message of the socket: the client's result. */
static void
server_on_msg(struct plx_cm_sock *s, const void *msg, uint32_t len)
{
	struct plx_conn *c = s->arg;
	struct plx_wire_conn h;

	if (plx_wire_conn_unpack(msg, len, &h, &c->addr) != 0 || h.kind != PLX_WIRE_CONN_DONE ||
		h.conn_id != c->conn_id || h.err != 0)
		conn_fail(c, -ECONNRESET);
	else
		conn_sock_close(c);
}

static void
server_tell_run(void *arg)
{
	struct plx_conn *c = arg;
	struct plx_wire_ep_close h = {.conn_id = c->conn_id, .flags = PLX_WIRE_CLOSE_FORCE};

	if (c->stub.real != NULL && c->stub.real->err == 0)
		(void)plx_ep_tx_ctl(c->stub.real, PLX_WIRE_EP_CLOSE, &h, sizeof(h));
}

static void
server_on_fail(struct plx_cm_sock *s, int err)
{
	struct plx_conn *c = s->arg;

	if (err == -ETIMEDOUT)
		plx_worker_call(c->w, server_tell_run, c);
	conn_fail(c, -ECONNRESET);
}

static void
server_accept_run(void *arg)
{
	struct plx_conn *c = arg;
	struct plx_ep *ep;

	plx_ep_stub_open(&c->stub, &c->w->eps, c->conn_id);
	if (conn_reach(c, &ep))
		plx_ep_user_link(ep, c->user, c->conn_id);
}

int
plx_worker_conn_accept(struct plx_worker *w, struct plx_conn_req *r, struct plx_ep_user *user)
{
	struct plx_wire_conn h = {.kind = PLX_WIRE_CONN_ACCEPT, .conn_id = r->hello.conn_id};
	struct plx_conn *c;
	int rc = conns_open(w);

	if (rc != 0)
		goto reject;
	rc = -ENOMEM;
	c = conn_new(w, user, h.conn_id);
	if (c == NULL)
		goto reject;
	c->server = true;
	c->addr = r->addr;
	plx_worker_call(w, server_accept_run, c);
	rc = c->rc;
	if (rc != 0)
		goto free_c;
	user->conn = c;
	worker_users_add(w, user);
	c->sock = r->sock;
	c->sock->on_msg = server_on_msg;
	c->sock->on_fail = server_on_fail;
	c->sock->arg = c;
	plx_cm_sock_addrs(c->sock, &c->local, &c->remote);
	free(r);
	rc = plx_cm_attach(&w->conns.cm, c->sock);
	if (rc == 0) {
		plx_cm_await(c->sock, w->conns.done_ms);
		rc = conn_send(c->sock, &h, w);
	}
	conns_update(w);
	if (rc != 0)
		conn_fail(c, -ECONNRESET); /* the client has closed: the handle reports it */
	return 0;
free_c:
	conn_free(c);
reject:
	plx_worker_conn_reject(w, r, rc);
	return rc;
}

/* --- close --- */

void
worker_on_ep_close(struct plx_worker *w, const struct plx_peer *src, const struct plx_wire_ep_close *h)
{
	struct plx_ep *ep = src->user;
	struct plx_ep_stub *stub;
	struct plx_ep_user *user = NULL;

	if (h->conn_id < PLX_WIRE_CONN_ID_MIN)
		return;
	if (ep != NULL)
		user = plx_ep_user_find(ep, h->conn_id);
	if (user == NULL) { /* closed here too, or its answer is still in flight */
		stub = plx_ep_stub_find(&w->eps, h->conn_id);
		if (stub == NULL)
			return;
		stub->closed = true;
		stub->closed_by = src->proc;
		return;
	}
	if (user->err != 0)
		return;
	worker_hold_done(w);
	user_fail(w, user, -ECONNRESET);
	if (h->flags & PLX_WIRE_CLOSE_FORCE)
		plx_ep_cancel(ep, h->conn_id, -ECONNRESET);
	worker_release_done(w);
}

static void
settle_run(void *arg)
{
	struct plx_conn *c = arg;

	c->rc = plx_ep_user_err(c->user);
	plx_ep_stub_fail(&c->stub, c->rc);
	user_move(c->w, c->user, &c->stub.ep, c->conn_id);
}

void
plx_worker_conn_settle(struct plx_worker *w, struct plx_ep_user *user)
{
	if (user->conn != NULL && user->ep != &user->conn->stub.ep)
		plx_worker_call(w, settle_run, user->conn);
}

struct close_arg {
	struct plx_conn *c;
	struct plx_ep_user *user;
	struct plx_req *req;
	bool force;
	bool keep; /* out: c is still connecting */
};

static void
close_forced(struct plx_conn *c, struct plx_ep *ep, bool tell)
{
	struct plx_wire_ep_close h = {.conn_id = c->conn_id, .flags = PLX_WIRE_CLOSE_FORCE};

	plx_ep_cancel(ep, c->conn_id, -ECANCELED);
	if (tell && ep->err == 0)
		plx_ep_tx_ctl(ep, PLX_WIRE_EP_CLOSE, &h, sizeof(h));
}

static void
close_run(void *arg)
{
	struct close_arg *a = arg;
	struct plx_conn *c = a->c;
	int err = plx_ep_user_err(a->user);
	struct plx_ep *real = c->stub.real, *ep;

	pthread_mutex_lock(&c->w->users_lock);
	ep = a->user->ep;
	plx_ep_user_remove(a->user);
	pthread_mutex_unlock(&c->w->users_lock);
	plx_stream_detach(ep, a->user);
	c->user = NULL;
	if (real == NULL && err == 0 && !a->force) {
		c->close_req = a->req;
		a->keep = true;
		return;
	}
	if (real == NULL) {
		plx_ep_stub_fail(&c->stub, -ECANCELED);
	} else if (err != 0 || a->force) {
		/* A failed handle gets no more answers: waiting would never end. */
		close_forced(c, real, err == 0);
	} else {
		worker_flush_close(a->req, real, c->conn_id);
		return;
	}
	plx_req_complete(a->req, 0);
}

void
plx_worker_conn_close(struct plx_worker *w, struct plx_ep_user *user, bool force,
	struct plx_req *req)
{
	struct close_arg a = {user->conn, user, req, force, false};

	worker_users_remove(w, user);
	plx_worker_call(w, close_run, &a);
	if (!a.keep)
		conn_free(a.c);
}

void
worker_conn_drop(struct plx_worker *w, struct plx_ep_user *user)
{
	worker_users_remove(w, user);
	plx_worker_call(w, worker_user_end_run, user);
	conn_free(user->conn);
}

static void
refuse(struct plx_conn_req *r, void *arg)
{
	plx_worker_conn_reject(arg, r, -ECONNREFUSED);
}

void
worker_conns_mute(struct plx_worker *w)
{
	struct plx_listener *l;

	LIST_FOREACH(l, &w->conns.listeners, link) {
		l->fn = refuse;
		l->arg = w;
	}
}

void
worker_conns_close(struct plx_worker *w)
{
	struct plx_listener *l;

	while (!LIST_EMPTY(&w->conns.list)) {
		struct plx_conn *c = LIST_FIRST(&w->conns.list);

		/* the reactor was removed: this thread is the owner */
		plx_ep_stub_close(&c->stub);
		LIST_REMOVE(c, link);
		free(c); /* its socket is freed with the cm */
	}
	while ((l = LIST_FIRST(&w->conns.listeners)) != NULL) {
		plx_cm_unlisten(&l->cm);
		LIST_REMOVE(l, link);
		l->w = NULL;
	}
	plx_cm_close(&w->conns.cm);
}
