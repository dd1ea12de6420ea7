/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * loan_test.c - messages of another process as mbufs that refer to its memory, and what becomes of them
 *
 * This process has an EAL and receives. Its child sends what a byte and a length in a pipe ask for, and
 * writes the status of each completed send into another.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "mbuf_util.h"

#define AM_ID	 7
#define ROOM	 8000u /* of an mbuf, bytes */
#define LEN_MAX	 (4u << 20)
#define WAIT_S	 20
#define N_TIMES	 20

struct order {
	uint64_t len;
	char what; /* M: from mapped memory; P: from private; F: close by force and write to the buffer */
};

static ucp_context_h context;
static ucp_worker_h worker;
static struct plx_mbuf_receiver receiver;
static struct {
	struct rte_mbuf *m;
	ucs_status_t status;
	enum plx_mbuf_how how;
	uint64_t ticks; /* in the receive call */
	unsigned n;
} got;
static int orders, answers;
static pid_t child;

static void
must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "process %d: %s\n", (int)getpid(), what);
	_exit(EXIT_FAILURE);
}

static void
begin_worker(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	ucp_worker_params_t worker_params = {.field_mask = 0};

	must(ucp_init(&params, NULL, &context) == UCS_OK, "ucp_init");
	must(ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "ucp_worker_create");
}

/* -- the child -- */

static void
on_sent(void *request, ucs_status_t status, void *arg)
{
	signed char s = (signed char)status;

	(void)arg;
	must(write(answers, &s, 1) == 1, "write");
	if (request != NULL)
		ucp_request_free(request);
}

static char *
mapped_memory(void)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = LEN_MAX, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucp_mem_h memh;

	must(ucp_mem_map(context, &params, &memh) == UCS_OK, "ucp_mem_map");
	must(ucp_mem_query(memh, &attr) == UCS_OK, "ucp_mem_query");
	return attr.address;
}

static void
send_one(ucp_ep_h ep, const char *buf, uint64_t len)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
		.cb.send = on_sent, .flags = UCP_AM_SEND_FLAG_RNDV};
	ucs_status_ptr_t req = ucp_am_send_nbx(ep, AM_ID, NULL, 0, buf, len, &param);

	if (!UCS_PTR_IS_PTR(req))
		on_sent(NULL, UCS_PTR_STATUS(req), NULL);
}

static void
child_main(int in)
{
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER};
	char *mapped, *private = malloc(LEN_MAX);
	struct order o;
	size_t addr_len;
	ucp_ep_h ep;
	void *addr;

	begin_worker();
	mapped = mapped_memory();
	must(read(in, &addr_len, sizeof(addr_len)) == sizeof(addr_len), "read");
	addr = malloc(addr_len);
	must(read(in, addr, addr_len) == (ssize_t)addr_len, "read");
	params.address = addr;
	must(ucp_ep_create(worker, &params, &ep) == UCS_OK, "ucp_ep_create");
	must(fcntl(in, F_SETFL, O_NONBLOCK) == 0, "fcntl");
	for (;;) {
		ssize_t n = read(in, &o, sizeof(o));

		if (n == 0)
			_exit(EXIT_SUCCESS);
		if (n == (ssize_t)sizeof(o) && o.what == 'F') {
			(void)ucp_ep_close_nbx(ep, &force);
			memset(mapped, 'F', LEN_MAX);
			must(write(answers, "f", 1) == 1, "write");
		} else if (n == (ssize_t)sizeof(o)) {
			for (uint64_t i = 0; i < o.len; i++)
				(o.what == 'M' ? mapped : private)[i] = (char)(i % 251);
			send_one(ep, o.what == 'M' ? mapped : private, o.len);
		}
		ucp_worker_progress(worker);
	}
}

/* -- this process -- */

static void
on_mbuf(struct plx_mbuf_receiver *r, struct rte_mbuf *m, ucs_status_t status, enum plx_mbuf_how how)
{
	(void)r;
	got.m = m;
	got.status = status;
	got.how = how;
	got.n++;
}

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len, const ucp_am_recv_param_t *param)
{
	uint64_t start = rte_rdtsc_precise();
	ucs_status_t status = plx_mbuf_recv_am(arg, data, len, param);

	(void)header;
	(void)header_len;
	got.ticks = rte_rdtsc_precise() - start;
	return status;
}

static void
start_child(void)
{
	int to[2], from[2];

	must(pipe(to) == 0 && pipe2(from, O_NONBLOCK) == 0, "pipe");
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		close(to[1]);
		close(from[0]);
		answers = from[1];
		child_main(to[0]);
	}
	close(to[0]);
	close(from[1]);
	orders = to[1];
	answers = from[0];
}

static void
listen_for(void)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			UCP_AM_HANDLER_PARAM_FIELD_ARG, .id = AM_ID, .cb = on_am, .arg = &receiver};
	ucp_address_t *addr;
	size_t len;

	begin_worker();
	receiver = (struct plx_mbuf_receiver){.worker = worker, .pool = pool, .kept = kept, .done = on_mbuf};
	must(ucp_worker_set_am_recv_handler(worker, &h) == UCS_OK, "handler");
	must(ucp_worker_get_address(worker, &addr, &len) == UCS_OK, "address");
	must(write(orders, &len, sizeof(len)) == sizeof(len) && write(orders, addr, len) == (ssize_t)len, "write");
	ucp_worker_release_address(worker, addr);
}

/* @return the byte that the child answers, or 'T' when it takes too long */
static int
answer(unsigned seconds)
{
	uint64_t end = rte_rdtsc() + seconds * rte_get_tsc_hz();
	signed char c;

	while (read(answers, &c, 1) != 1) {
		if (rte_rdtsc() > end)
			return 'T';
		if (worker != NULL)
			ucp_worker_progress(worker);
	}
	return c;
}

static void
ask(char what, uint64_t len)
{
	struct order o = {.len = len, .what = what};
	uint64_t end = rte_rdtsc() + WAIT_S * rte_get_tsc_hz();
	unsigned before = got.n;

	must(write(orders, &o, sizeof(o)) == (ssize_t)sizeof(o), "write");
	while (what != 'F' && got.n == before && rte_rdtsc() < end)
		ucp_worker_progress(worker);
	CU_ASSERT_FATAL(what == 'F' || got.n == before + 1);
}

static void
right(const struct rte_mbuf *m, uint64_t len)
{
	uint64_t at = 0, wrong = 0;

	CU_ASSERT_EQUAL(m->pkt_len, len);
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
		for (unsigned i = 0; i < s->data_len; i++, at++)
			wrong += (uint8_t)*rte_pktmbuf_mtod_offset(s, const char *, i) != at % 251;
	CU_ASSERT(at == len && wrong == 0);
	CU_ASSERT_EQUAL(rte_mbuf_check(m, 1, &(const char *){NULL}), 0);
}

/* The first messages may come before the two processes have met: they are copied. */
static void
begin(void)
{
	start_child();
	listen_for();
	for (unsigned i = 0; i < 100; i++) {
		ask('M', 100);
		CU_ASSERT_PTR_NOT_NULL_FATAL(got.m);
		rte_pktmbuf_free(got.m);
		CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK);
		if (got.how == PLX_MBUF_LOANED)
			return;
	}
	CU_FAIL_FATAL("nothing is loaned");
}

static void
end(void)
{
	int status;

	close(orders);
	close(answers);
	if (worker != NULL) {
		ucp_worker_destroy(worker);
		ucp_cleanup(context);
	}
	worker = NULL;
	kill(child, SIGKILL);
	(void)waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(kept), 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 0);
}

static void
a_send_completes_when_its_loan_is_freed(void)
{
	const uint64_t lens[] = {1, 40000, 65472, 65473, 1u << 20, LEN_MAX};
	struct rte_mbuf *clone;

	begin();
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		ask('M', lens[i]);
		CU_ASSERT_FATAL(got.m != NULL && got.how == PLX_MBUF_LOANED && got.status == UCS_OK);
		right(got.m, lens[i]);
		CU_ASSERT_EQUAL(plx_mbuf_check(got.m), UCS_OK);
		clone = rte_pktmbuf_clone(got.m, pool);
		CU_ASSERT_PTR_NOT_NULL_FATAL(clone);
		rte_pktmbuf_free(got.m);
		if (i == 0)
			CU_ASSERT_EQUAL(answer(1), 'T'); /* the clone refers to it yet */
		right(clone, lens[i]);
		rte_pktmbuf_free(clone);
		CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK);
	}
	end();
}

static void
private_memory_is_copied(void)
{
	begin();
	ask('P', LEN_MAX / 4);
	CU_ASSERT_FATAL(got.m != NULL && got.how == PLX_MBUF_COPIED && got.status == UCS_OK);
	CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK); /* at once */
	right(got.m, LEN_MAX / 4);
	rte_pktmbuf_free(got.m);
	receiver.kept = NULL; /* the program wants no loans */
	ask('M', 100000);
	CU_ASSERT_FATAL(got.m != NULL && got.how == PLX_MBUF_COPIED);
	right(got.m, 100000);
	rte_pktmbuf_free(got.m);
	CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK);
	end();
}

static void
a_loan_outlives_its_sender(void)
{
	uint64_t until = rte_rdtsc() + WAIT_S * rte_get_tsc_hz();
	int status;

	begin();
	ask('M', LEN_MAX);
	CU_ASSERT_EQUAL_FATAL(got.how, PLX_MBUF_LOANED);
	kill(child, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	right(got.m, LEN_MAX);
	while (plx_mbuf_check(got.m) == UCS_OK && rte_rdtsc() < until)
		ucp_worker_progress(worker);
	CU_ASSERT_EQUAL(plx_mbuf_check(got.m), UCS_ERR_CONNECTION_RESET);
	right(got.m, LEN_MAX);
	rte_pktmbuf_free(got.m);
	end();
}

static void
a_message_that_is_withdrawn_is_told(void)
{
	begin();
	ask('M', LEN_MAX);
	CU_ASSERT_EQUAL_FATAL(got.how, PLX_MBUF_LOANED);
	ask('F', 0);
	CU_ASSERT_EQUAL(answer(WAIT_S), 'f');
	CU_ASSERT_EQUAL(answer(WAIT_S), UCS_ERR_CANCELED);
	CU_ASSERT_EQUAL(plx_mbuf_check(got.m), UCS_ERR_CONNECTION_RESET);
	CU_ASSERT_EQUAL(*rte_pktmbuf_mtod(got.m, char *), 'F'); /* it is the sender's memory */
	rte_pktmbuf_free(got.m);
	end();
}

static void
a_loan_outlives_its_worker(void)
{
	begin();
	ask('M', LEN_MAX);
	CU_ASSERT_EQUAL_FATAL(got.how, PLX_MBUF_LOANED);
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
	worker = NULL;
	right(got.m, LEN_MAX);
	CU_ASSERT_EQUAL(plx_mbuf_check(got.m), UCS_ERR_CONNECTION_RESET);
	rte_pktmbuf_free(got.m);
	end();
}

static void
what_finds_no_descriptor_is_copied(void)
{
	void *all[64];
	unsigned n = 0;

	begin();
	while (n < 64 && rte_mempool_get(kept, &all[n]) == 0)
		n++;
	ask('M', 100000);
	CU_ASSERT_FATAL(got.m != NULL && got.how == PLX_MBUF_COPIED);
	right(got.m, 100000);
	rte_pktmbuf_free(got.m);
	while (n > 0)
		rte_mempool_put(kept, all[--n]);
	CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK);
	end();
}

/* @return the fastest of some receive calls, ns */
static double
loan_ns(uint64_t len)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < N_TIMES; i++) {
		ask('M', len);
		CU_ASSERT_EQUAL_FATAL(got.how, PLX_MBUF_LOANED);
		best = RTE_MIN(best, got.ticks);
		rte_pktmbuf_free(got.m);
		CU_ASSERT_EQUAL(answer(WAIT_S), UCS_OK);
	}
	return (double)best * 1e9 / (double)rte_get_tsc_hz();
}

/* No byte is moved: what grows is an mbuf for each 64 KiB. */
static void
a_loan_takes_no_time_for_its_bytes(void)
{
	const uint64_t lens[] = {64u << 10, 1u << 20, LEN_MAX};
	double ns[3];

	begin();
	for (unsigned i = 0; i < 3; i++) {
		ns[i] = loan_ns(lens[i]);
		printf("\n    %4u KiB: %.0f ns, %.1f an mbuf", (unsigned)(lens[i] >> 10), ns[i],
			ns[i] / (double)(lens[i] / PLX_MBUF_LOAN_LEN + 1));
	}
	printf("\n  ");
	/* 4 MiB at 100 GB/s, faster than any copy, are 42 us */
	CU_ASSERT(ns[2] < 42000);
	end();
}

int
main(void)
{
	CU_TestInfo tests[] = {
		{(char *)"a_send_completes_when_its_loan_is_freed", a_send_completes_when_its_loan_is_freed},
		{(char *)"private_memory_is_copied", private_memory_is_copied},
		{(char *)"a_loan_outlives_its_sender", a_loan_outlives_its_sender},
		{(char *)"a_message_that_is_withdrawn_is_told", a_message_that_is_withdrawn_is_told},
		{(char *)"a_loan_outlives_its_worker", a_loan_outlives_its_worker},
		{(char *)"what_finds_no_descriptor_is_copied", what_finds_no_descriptor_is_copied},
		{(char *)"a_loan_takes_no_time_for_its_bytes", a_loan_takes_no_time_for_its_bytes},
		CU_TEST_INFO_NULL,
	};

	signal(SIGPIPE, SIG_IGN);
	return mbuf_run("loan", tests, 1023, ROOM);
}
