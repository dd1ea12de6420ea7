/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * follow.c - one tagged message from its calls to its callbacks, for icount
 *
 * usage: icount OUT - follow BYTES
 *
 * Design notes
 * The message is one of a pair of workers (pair.h). A row is one call: "3 40 sender" is call 40, of
 * the sender of the third message, from the posting of its receive until both sides have completed.
 * devtools/hot_path.py reads which functions they go through.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "device.h"
#include "marks.h"
#include "pair.h"

#define TAG	 7
#define WARM	 100 /* messages each way */
#define WAIT_MAX 1000
#define REPEATS	 5
#define LONG	 (1u << 20) /* its copies by the model are many steps: two */

/* The message's. */
static bool sent, received;
static void *send_req, *recv_req;
static unsigned n_message;

/* The next call is one of a side, for message n_message. */
static void
begin(const struct side *s)
{
	static unsigned n_call;
	char row[48];

	snprintf(row, sizeof(row), "%u %u %s", n_message, n_call++, s == from ? "sender" : "receiver");
	icount_mark(ICOUNT_BEGIN, row);
}

static void
on_recv(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
	(void)request, (void)info, (void)arg;
	must(status, "the receive");
	received = true;
}

static void
on_sent(void *request, ucs_status_t status, void *arg)
{
	(void)request, (void)arg;
	must(status, "the send");
	sent = true;
}

static void
post_recv(size_t len)
{
	const ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = on_recv};

	received = false;
	begin(to);
	recv_req = ucp_tag_recv_nbx(to->worker, to->buf, len, TAG, UINT64_MAX, &p);
	icount_mark(ICOUNT_END, NULL);
	must(UCS_PTR_IS_ERR(recv_req) ? UCS_PTR_STATUS(recv_req) : UCS_OK, "post");
}

static void
post_send(size_t len)
{
	const ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};

	sent = false;
	begin(from);
	send_req = ucp_tag_send_nbx(from->ep, from->buf, len, TAG, &p);
	icount_mark(ICOUNT_END, NULL);
	must(UCS_PTR_IS_ERR(send_req) ? UCS_PTR_STATUS(send_req) : UCS_OK, "send");
	if (send_req == NULL)
		sent = true;
}

static void
progress(struct side *s)
{
	device_run();
	begin(s);
	ucp_worker_progress(s->worker);
	icount_mark(ICOUNT_END, NULL);
}

/* A side that has completed makes no calls; the other polls while it waits. */
static void
follow(size_t len)
{
	static uint8_t seed;

	memset(from->buf, ++seed, len);
	memset(to->buf, 0, len);
	settle();
	n_message++;
	post_recv(len);
	post_send(len);
	for (unsigned i = 0; !sent || !received; i++) {
		if (i == WAIT_MAX) {
			fprintf(stderr, "follow: nothing moves\n");
			exit(EXIT_FAILURE);
		}
		if (!received)
			progress(to);
		if (!sent)
			progress(from);
	}
	if (send_req != NULL)
		ucp_request_free(send_req);
	if (recv_req != NULL)
		ucp_request_free(recv_req);
	if (memcmp(from->buf, to->buf, len) != 0) {
		fprintf(stderr, "follow: other bytes have arrived\n");
		exit(EXIT_FAILURE);
	}
}

static void
side_open(struct side *s)
{
	const ucp_params_t p = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	const ucp_worker_params_t w = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	size_t len;

	must(ucp_init(&p, NULL, &s->ctx), "ucp_init");
	must(ucp_worker_create(s->ctx, &w, &s->worker), "ucp_worker_create");
	must(ucp_worker_get_address(s->worker, &s->addr, &len), "ucp_worker_get_address");
}

/* Both ways, so that both are connected and know each other's buffers. */
static void
meet(size_t len)
{
	static const ucp_request_param_t plain;

	side_connect(from, to);
	side_connect(to, from);
	for (unsigned i = 0; i < SIDES * WARM; i++) {
		struct side *s = &side[i % SIDES], *other = &side[1 - i % SIDES];
		size_t n = i < WARM ? 8 : len;
		void *req = ucp_tag_send_nbx(s->ep, s->buf, n, TAG, &plain);

		finish(ucp_tag_recv_nbx(other->worker, other->buf, n, TAG, UINT64_MAX, &plain));
		finish(req);
	}
}

int
main(int argc, char **argv)
{
	size_t len = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;

	if (len == 0 || len > BUF_LEN || getenv("ICOUNT") == NULL) {
		fprintf(stderr, "usage: icount OUT - follow BYTES\n");
		return 2;
	}
	side_open(from);
	side_open(to);
	meet(len);
	device_plain();
	icount_mark(ICOUNT_CLOCK, NULL);
	for (unsigned i = 0; i < (len < LONG ? REPEATS : 2); i++)
		follow(len);
	side_close(from);
	side_close(to);
	return 0;
}
