/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_host.c - a program for rpc_test.py to look at: two workers that talk, a peer
 * that dies, and what waits forever
 *
 * It ends when its input is closed. A byte on it is an order, until the next one comes: 'p'
 * runs no turns, 'm' makes and ends more workers all the time, '0' and '1' post 100
 * receives at that worker, one a millisecond; after 'g' it goes on.
 *
 * Large messages are sent from memory that UCP allocated. Worker 0 has three posted
 * receives; worker 1 keeps one message of 1000 bytes that nobody receives. Worker 0 has
 * two handles on its ep with worker 1, one on an ep with itself that is never used, and
 * one on an ep with a process that was killed.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "ucp_util.h"

enum {
	N_POSTED = 3,
	N_MORE = 100,
	KEPT_LEN = 1000,
	LARGE_LEN = 1 << 20,
	TURNS = 100,
	ADDR_MAX = 4096,
	TAG_TALK = 1,
	TAG_KEPT,
	TAG_POSTED,
	TAG_MORE = TAG_POSTED + N_POSTED,
};

struct host {
	struct pair p;
	struct op posted[N_POSTED];
	char posted_buf[N_POSTED][64];
	char kept_buf[KEPT_LEN];
	ucp_ep_h more[3];
	ucp_mem_h mem; /* what large messages are sent from */
	char *from, *to;
};

/* A process with one worker, which says its address and lives until it is killed. */
static pid_t
start_peer(int *fd)
{
	ucp_address_t *addr;
	ucp_worker_h w;
	int io[2];
	size_t len;
	pid_t pid;

	if (pipe(io) != 0)
		UTIL_DIE("pipe");
	pid = fork();
	if (pid < 0)
		UTIL_DIE("fork");
	*fd = io[0];
	if (pid > 0) {
		close(io[1]);
		return pid;
	}
	unsetenv("PLX_RPC_SOCKET");
	unsetenv("PLX_REACTOR");
	w = util_worker(util_context(UCP_FEATURE_TAG), UCS_THREAD_MODE_SINGLE);
	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	if (write(io[1], addr, len) != (ssize_t)len)
		UTIL_DIE("write");
	for (alarm(UTIL_DEADLINE_S);;)
		ucp_worker_progress(w);
}

static void
send_one(struct host *h, ucp_ep_h ep, void *buf, size_t len, ucp_tag_t tag)
{
	struct op op;

	util_send(&op, ep, buf, len, tag, UTIL_NBX);
	if (!UTIL_UNTIL(&h->p, util_done(&op)))
		UTIL_DIE("a message of %zu bytes was not sent", len);
	util_free(&op);
}

/* An ep with the peer, which is then killed. */
static ucp_ep_h
lose_peer(struct host *h, pid_t pid, const void *addr)
{
	ucp_ep_h ep = util_ep(h->p.n[0].w, addr);
	int status;

	send_one(h, ep, h->from, 8, TAG_KEPT);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return ep;
}

static void
host_open(struct host *h)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = LARGE_LEN,
		.flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	char addr[ADDR_MAX];
	pid_t pid;
	int fd;

	h->to = calloc(1, LARGE_LEN);
	if (h->to == NULL)
		UTIL_DIE("no memory");
	pid = start_peer(&fd);
	util_pair_open(&h->p, true, UCS_THREAD_MODE_SINGLE);
	UTIL_OK(ucp_mem_map(h->p.n[0].ctx, &params, &h->mem));
	UTIL_OK(ucp_mem_query(h->mem, &attr));
	h->from = attr.address;
	for (int i = 0; i < N_POSTED; i++)
		util_recv(&h->posted[i], h->p.n[0].w, h->posted_buf[i], sizeof(h->posted_buf[i]),
			TAG_POSTED + i, UTIL_ALL_BITS, UTIL_NBX);
	send_one(h, h->p.n[0].ep, h->kept_buf, KEPT_LEN, TAG_KEPT);
	h->more[0] = util_ep(h->p.n[0].w, h->p.n[1].addr);
	h->more[1] = util_ep(h->p.n[0].w, h->p.n[0].addr);
	if (read(fd, addr, sizeof(addr)) <= 0)
		UTIL_DIE("the peer has no address");
	close(fd);
	h->more[2] = lose_peer(h, pid, addr);
}

static void
host_close(struct host *h)
{
	struct op op;

	util_recv(&op, h->p.n[1].w, h->kept_buf, KEPT_LEN, TAG_KEPT, UTIL_ALL_BITS, UTIL_NBX);
	if (!UTIL_UNTIL(&h->p, util_done(&op)))
		UTIL_DIE("the kept message is gone");
	util_free(&op);
	for (int i = 0; i < N_POSTED; i++) {
		ucp_request_cancel(h->p.n[0].w, h->posted[i].req);
		if (!UTIL_UNTIL(&h->p, util_done(&h->posted[i])))
			UTIL_DIE("a cancelled receive does not end");
		util_free(&h->posted[i]);
	}
	for (int i = 0; i < 3; i++)
		util_ep_close(&h->p, h->more[i], 0);
	UTIL_OK(ucp_mem_unmap(h->p.n[0].ctx, h->mem));
	util_pair_close(&h->p);
	free(h->to);
}

/* One message from each to the other. */
static void
talk(struct host *h, size_t len)
{
	struct op s, r;

	for (int i = 0; i < 2; i++) {
		util_recv(&r, h->p.n[!i].w, h->to, len, TAG_TALK, UTIL_ALL_BITS, UTIL_NBX);
		util_send(&s, h->p.n[i].ep, h->from, len, TAG_TALK, UTIL_NBX);
		if (!UTIL_UNTIL(&h->p, util_done(&s) && util_done(&r)))
			UTIL_DIE("a message of %zu bytes did not come", len);
		util_free(&s);
		util_free(&r);
	}
}

/* Close an ep of a worker that is not of the pair. */
static void
close_ep(ucp_worker_h w, ucp_ep_h ep)
{
	void *req = ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);

	if (!UCS_PTR_IS_PTR(req))
		return;
	while (ucp_request_check_status(req) == UCS_INPROGRESS)
		ucp_worker_progress(w);
	ucp_request_free(req);
}

/* Workers and eps that come and go while they are looked at. */
static void
come_and_go(struct host *h, struct pollfd *in)
{
	while (poll(in, 1, 0) == 0) {
		ucp_worker_h w = util_worker(h->p.n[0].ctx, UCS_THREAD_MODE_SINGLE);

		close_ep(w, util_ep(w, h->p.n[1].addr));
		ucp_worker_destroy(w);
		util_pair_turn(&h->p);
	}
}

static void
post_more(struct host *h, struct pollfd *in, int node)
{
	static struct op more[N_MORE];
	int n = 0;

	while (n < N_MORE && poll(in, 1, 1) == 0)
		util_recv(&more[n++], h->p.n[node].w, h->to, 8, TAG_MORE, UTIL_ALL_BITS, UTIL_NBX);
	poll(in, 1, -1); /* it is looked at: to cancel them wakes a reactor as well */
	while (n-- > 0) {
		ucp_request_cancel(h->p.n[node].w, more[n].req);
		if (!UTIL_UNTIL(&h->p, util_done(&more[n])))
			UTIL_DIE("a cancelled receive does not end");
		util_free(&more[n]);
	}
}

/* @return whether to go on */
static bool
obey(struct host *h, struct pollfd *in)
{
	char c = 0;

	if (poll(in, 1, 1) == 0)
		return true;
	while (read(in->fd, &c, 1) == 1 && c != 'g') {
		if (c == 'm')
			come_and_go(h, in);
		else if (c == '0' || c == '1')
			post_more(h, in, c - '0');
	}
	return c == 'g';
}

int
main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	static struct host h;

	host_open(&h);
	do {
		talk(&h, 8);
		talk(&h, LARGE_LEN);
		for (int i = 0; i < TURNS; i++)
			util_pair_turn(&h.p);
	} while (obey(&h, &in));
	host_close(&h);
	return 0;
}
