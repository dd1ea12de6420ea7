/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * follow.c - one tagged message from its calls to its callbacks, for icount
 *
 * usage: icount OUT - follow BYTES
 *
 * Design notes
 * Two workers in two contexts of one process and one thread, as in ucp_calls.c. A row
 * is one call: "3 40 sender" is call 40, of the sender of the third message, from the posting of its
 * receive until both sides have completed. devtools/hot_path.py reads which functions they go
 * through.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "device.h"
#include "marks.h"

#define SIDES	 2
#define TAG	 7
#define LEN_MAX	 (4u << 20)
#define WARM	 100 /* messages each way */
#define TURNS	 20  /* of each worker between two messages, after which all is done; and a few more, */
#define MORE	 5   /* so that what is due each so many turns is not always due in the same place */
#define WAIT_MAX 1000
#define REPEATS	 5
#define LONG	 (1u << 20) /* its copies by the model are many steps: two */

static struct side {
	ucp_context_h ctx;
	ucp_worker_h worker;
	ucp_ep_h ep; /* to the other one */
	ucp_address_t *addr;
	uint8_t buf[LEN_MAX];
	bool done;
	void *req;
} side[SIDES];

static struct side *const from = &side[0], *const to = &side[1];
static unsigned n_message;

static void
must(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "follow: %s: error %d\n", what, (int)status);
	exit(EXIT_FAILURE);
}

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
	to->done = true;
}

static void
on_sent(void *request, ucs_status_t status, void *arg)
{
	(void)request, (void)arg;
	must(status, "the send");
	from->done = true;
}

static void
post_recv(size_t len)
{
	const ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv = on_recv};

	to->done = false;
	begin(to);
	to->req = ucp_tag_recv_nbx(to->worker, to->buf, len, TAG, UINT64_MAX, &p);
	icount_mark(ICOUNT_END, NULL);
	must(UCS_PTR_IS_ERR(to->req) ? UCS_PTR_STATUS(to->req) : UCS_OK, "post");
}

static void
post_send(size_t len)
{
	const ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};

	from->done = false;
	begin(from);
	from->req = ucp_tag_send_nbx(from->ep, from->buf, len, TAG, &p);
	icount_mark(ICOUNT_END, NULL);
	must(UCS_PTR_IS_ERR(from->req) ? UCS_PTR_STATUS(from->req) : UCS_OK, "send");
	if (from->req == NULL)
		from->done = true;
}

static void
progress(struct side *s)
{
	device_run();
	begin(s);
	ucp_worker_progress(s->worker);
	icount_mark(ICOUNT_END, NULL);
}

static void
settle(void)
{
	static unsigned n;

	for (unsigned i = TURNS + n++ % MORE; i > 0; i--) {
		device_run();
		ucp_worker_progress(from->worker);
		device_run();
		ucp_worker_progress(to->worker);
	}
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
	for (unsigned i = 0; !from->done || !to->done; i++) {
		if (i == WAIT_MAX) {
			fprintf(stderr, "follow: nothing moves\n");
			exit(EXIT_FAILURE);
		}
		if (!to->done)
			progress(to);
		if (!from->done)
			progress(from);
	}
	for (unsigned i = 0; i < SIDES; i++)
		if (side[i].req != NULL)
			ucp_request_free(side[i].req);
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

static void
side_connect(struct side *s, const struct side *other)
{
	const ucp_ep_params_t e = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = other->addr};

	must(ucp_ep_create(s->worker, &e, &s->ep), "ucp_ep_create");
}

static void
finish(void *req)
{
	if (UCS_PTR_IS_ERR(req))
		must(UCS_PTR_STATUS(req), "a call");
	if (req == NULL)
		return;
	while (ucp_request_check_status(req) == UCS_INPROGRESS)
		settle();
	must(ucp_request_check_status(req), "a request");
	ucp_request_free(req);
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

static void
side_close(struct side *s)
{
	ucp_worker_release_address(s->worker, s->addr);
	ucp_worker_destroy(s->worker);
	ucp_cleanup(s->ctx);
}

int
main(int argc, char **argv)
{
	size_t len = argc == 2 ? strtoul(argv[1], NULL, 0) : 0;

	if (len == 0 || len > LEN_MAX || getenv("ICOUNT") == NULL) {
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
