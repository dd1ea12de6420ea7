/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_api_scarce.c - a process that is out of descriptors for a while loses nothing
 *
 * Design notes
 * The two workers of a pair know each other's address, and node 1 has not sent anything yet: to answer
 * node 0 it has to map that one's segment, for which it finds no descriptor.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ucp_api_test.h"

#define AM_ID 3
#define LIMIT 400

static struct {
	int fds[LIMIT];
	int n;
	struct rlimit before;
} taken;

/* All the descriptors there are, when what was posted has left: a reactor takes its time to connect. */
static void
take_descriptors(void)
{
	struct rlimit few;
	int fd;

	if (getenv("PLX_REACTOR") != NULL)
		usleep(50000);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &taken.before), 0);
	few = taken.before;
	few.rlim_cur = LIMIT;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (taken.n = 0; taken.n < LIMIT && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
		taken.fds[taken.n++] = fd;
	CU_ASSERT_FATAL(taken.n > 0 && taken.n < LIMIT);
}

static void
give_descriptors_back(void)
{
	while (taken.n > 0)
		close(taken.fds[--taken.n]);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &taken.before), 0);
}

static void
turns(struct pair *p)
{
	for (int i = 0; i < 2000; i++)
		util_pair_turn(p);
}

static void
answered_later(size_t len, enum util_how how, bool recv_first)
{
	uint8_t *out = util_guarded(len), *in = util_guarded(len);
	struct op send, recv;
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	util_fill(out, len, 5);
	if (recv_first)
		util_recv(&recv, p.n[1].w, in, len, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	util_send(&send, p.n[0].ep, out, len, 1, how);
	take_descriptors();
	turns(&p);
	if (!recv_first)
		util_recv(&recv, p.n[1].w, in, len, 1, UTIL_ALL_BITS, UTIL_NO_IMM);
	turns(&p);
	give_descriptors_back();
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&recv) && util_done(&send)));
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	CU_ASSERT_EQUAL(recv.status, UCS_OK);
	CU_ASSERT(util_check(in, len, 5));
	util_free(&send);
	util_free(&recv);
	util_guarded_free(out);
	util_guarded_free(in);
	util_pair_close(&p);
}

static void
sync_sends_are_acknowledged_when_there_are_descriptors_again(void)
{
	answered_later(8, UTIL_SYNC, true);
	answered_later(8, UTIL_SYNC, false);
}

static void
announced_messages_are_fetched_when_there_are_descriptors_again(void)
{
	answered_later(1 * MIB, UTIL_NBX, true);
	answered_later(1 * MIB, UTIL_NBX, false);
}

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	(void)arg;
	(void)header;
	(void)header_len;
	(void)data;
	(void)len;
	CU_ASSERT(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
	return UCS_OK; /* dropped: its sender learns that it may go on */
}

static void
dropped_active_messages_are_acknowledged_when_there_are_descriptors_again(void)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB, .id = AM_ID, .cb = on_am};
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA, .cb.send = util_sent};
	static uint8_t out[1 * MIB];
	struct op send = {.req = NULL};
	struct pair p;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	UTIL_OK(ucp_worker_set_am_recv_handler(p.n[1].w, &h));
	param.user_data = &send;
	send.req = ucp_am_send_nbx(p.n[0].ep, AM_ID, NULL, 0, out, sizeof(out), &param);
	CU_ASSERT_FATAL(UCS_PTR_IS_PTR(send.req));
	take_descriptors();
	turns(&p);
	give_descriptors_back();
	CU_ASSERT_FATAL(UTIL_UNTIL(&p, util_done(&send)));
	CU_ASSERT_EQUAL(send.status, UCS_OK);
	util_free(&send);
	util_pair_close(&p);
}

/*
 * More than a sender may send before the reader grants more. A connection of TCP that is made meanwhile needs a
 * descriptor, too: nothing comes before there is one.
 */
static void
streams_go_on_when_there_are_descriptors_again(void)
{
	enum { LEN = 4000, N = 200 };
	const bool by_tcp = util_by_network() && !util_by_rdma();
	static uint8_t out[LEN], in[LEN];
	ucp_request_param_t none = {.op_attr_mask = 0}, all = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_STREAM_RECV_FLAG_WAITALL};
	ucs_status_ptr_t sends[N], recv;
	struct pair p;
	size_t len;

	util_pair_open(&p, false, UCS_THREAD_MODE_SINGLE);
	for (int i = 0; i < N; i++)
		sends[i] = ucp_stream_send_nbx(p.n[0].ep, out, LEN, &none);
	take_descriptors();
	for (int i = 0; i < N; i++) {
		if (i == (by_tcp ? 0 : N / 4)) { /* what had come without it is read by now */
			turns(&p);
			give_descriptors_back();
		}
		recv = ucp_stream_recv_nbx(p.n[1].ep, in, LEN, &len, &all);
		turns(&p);
		if (!UCS_PTR_IS_PTR(recv))
			continue;
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_request_check_status(recv) != UCS_INPROGRESS));
		CU_ASSERT_EQUAL(ucp_request_check_status(recv), UCS_OK);
		ucp_request_free(recv);
	}
	for (int i = 0; i < N; i++) {
		if (!UCS_PTR_IS_PTR(sends[i]))
			continue;
		CU_ASSERT_FATAL(UTIL_UNTIL(&p, ucp_request_check_status(sends[i]) != UCS_INPROGRESS));
		ucp_request_free(sends[i]);
	}
	util_pair_close(&p);
}

/* In a child, which has not read yet who it is. @return its exit status: 0 as it should be */
static int
pack_in_child(ucp_context_h ctx, ucp_mem_h memh)
{
	struct rlimit before, none;
	void *key = NULL;
	size_t len;

	if (getrlimit(RLIMIT_NOFILE, &before) != 0)
		return 1;
	none = before;
	none.rlim_cur = 0;
	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 2;
	if (ucp_rkey_pack(ctx, memh, &key, &len) == UCS_OK)
		return 3;
	if (setrlimit(RLIMIT_NOFILE, &before) != 0)
		return 4;
	return ucp_rkey_pack(ctx, memh, &key, &len) == UCS_OK ? 0 : 5;
}

/* A key names its process: who can't find out which it is gives no key. */
static void
key_is_packed_for_this_process_or_not_at_all(void)
{
	ucp_context_h ctx = util_context(UCP_FEATURE_RMA);
	static uint8_t buf[4096];
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
		UCP_MEM_MAP_PARAM_FIELD_LENGTH, .address = buf, .length = sizeof(buf)};
	ucp_mem_h memh;
	int status;
	pid_t pid;

	UTIL_OK(ucp_mem_map(ctx, &params, &memh));
	pid = fork();
	if (pid == 0)
		_exit(pack_in_child(ctx, memh));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	UTIL_OK(ucp_mem_unmap(ctx, memh));
	ucp_cleanup(ctx);
}

static void
count_request(ucp_conn_request_h r, void *arg)
{
	(void)r;
	++*(int *)arg;
}

/* A client whose descriptor the listener's process has not got yet waits, and its server sleeps. */
static void
listener_rests_until_there_are_descriptors_again(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ucp_listener_params_t params = {.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
		UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = {(struct sockaddr *)&at, sizeof(at)}, .conn_handler.cb = count_request};
	ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
	ucp_context_h ctx = util_context(UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP);
	ucp_worker_h w = util_worker(ctx, UCS_THREAD_MODE_SINGLE);
	int n_reqs = 0, n_busy = 0, n_slept = 0, efd;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ucp_listener_h l;
	uint64_t end;
	char byte;

	params.conn_handler.arg = &n_reqs;
	UTIL_OK(ucp_listener_create(w, &params, &l));
	UTIL_OK(ucp_listener_query(l, &attr));
	UTIL_OK(ucp_worker_get_efd(w, &efd));
	take_descriptors();
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&attr.sockaddr, sizeof(at)), 0);
	for (end = util_now_ns() + 1000000000; util_now_ns() < end;) {
		struct pollfd p = {.fd = efd, .events = POLLIN};

		if (ucp_worker_progress(w) != 0)
			continue;
		if (ucp_worker_arm(w) == UCS_OK)
			n_slept += poll(&p, 1, 50) == 0;
		else
			n_busy++;
	}
	CU_ASSERT(n_slept >= 5);
	CU_ASSERT(n_busy <= 100);
	give_descriptors_back();
	CU_ASSERT_EQUAL(send(fd, "what is no hello", 16, MSG_NOSIGNAL), 16);
	for (end = util_now_ns() + 5000000000; util_now_ns() < end;) {
		ucp_worker_progress(w);
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) /* accepted, heard and closed */
			break;
	}
	CU_ASSERT(util_now_ns() < end);
	close(fd);
	ucp_listener_destroy(l);
	ucp_worker_destroy(w);
	ucp_cleanup(ctx);
}

#define NOT_UCX "its eps are connected before, or never"

const struct api_test api_scarce_tests[] = {
	T_NOT_UCX(sync_sends_are_acknowledged_when_there_are_descriptors_again, NOT_UCX),
	T_NOT_UCX(announced_messages_are_fetched_when_there_are_descriptors_again, NOT_UCX),
	T_NOT_UCX(dropped_active_messages_are_acknowledged_when_there_are_descriptors_again, NOT_UCX),
	T_NOT_UCX(key_is_packed_for_this_process_or_not_at_all, "its keys name no process"),
	T_NOT_UCX(listener_rests_until_there_are_descriptors_again, NOT_UCX),
	T_NOT_UCX(streams_go_on_when_there_are_descriptors_again, NOT_UCX),
	{NULL, NULL, NULL, NULL},
};
