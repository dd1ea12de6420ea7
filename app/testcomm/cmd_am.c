/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_am.c - active messages and streams
 *
 * Design notes
 * - Each active message that arrives becomes a request. Its handler makes that request, and
 *   fetches into it if the message was only announced. "am recv" shows those of one id in order.
 * - The pattern of a stream depends on the offset since its endpoint was made.
 */
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

#define AM_MAX_ID    65535
#define STREAM_MAX_POLL 64

/* The handler of an id. */
struct tc_am {
	struct tc_am *next;
	struct tc *tc;
	struct tc_worker *worker;
	unsigned id;
};

/* ---- active messages ---- */

static void
am_fetched(void *request, ucs_status_t status, size_t len, void *user_data)
{
	struct tc_req *r = user_data;

	r->length = len;
	tc_req_done(r, status);
	ucp_request_free(request);
}

/* Keep the header of a message, valid in the handler only, and the way back. */
static void
am_keep(struct tc_req *r, const void *header, size_t header_len, const ucp_am_recv_param_t *param)
{
	r->header = malloc(header_len + 1);
	if (r->header != NULL) {
		if (header_len > 0) /* NULL is allowed without one */
			memcpy(r->header, header, header_len);
		r->header[header_len] = '\0';
		r->header_len = header_len;
	}
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0)
		r->reply = param->reply_ep;
}

static ucs_status_t
am_arrived(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	struct tc_am *am = arg;
	struct tc_req *r = tc_req_new(am->tc, TC_AM, am->worker, am->id, len);
	ucp_request_param_t fetch = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv_am = am_fetched, .user_data = r};

	if (r == NULL) { /* tc_req_new() has printed why */
		am->worker->failed++;
		return UCS_OK;
	}
	r->length = len;
	am_keep(r, header, header_len, param);
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
		tc_req_posted(am->tc, r,
			ucp_am_recv_data_nbx(am->worker->worker, data, r->buf, len, &fetch));
		return UCS_INPROGRESS;
	}
	if (len > 0)
		memcpy(r->buf, data, len);
	tc_req_done(r, UCS_OK);
	return UCS_OK;
}

static struct tc_am **
am_place(struct tc_worker *w, uint64_t id)
{
	struct tc_am **place = &w->am;

	while (*place != NULL && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

static ucs_status_t
am_set(struct tc_worker *w, struct tc_am *am, bool on)
{
	ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = am->id, .cb = on ? am_arrived : NULL, .arg = am};

	return ucp_worker_set_am_recv_handler(w->worker, &param);
}

static int
am_id(struct tc *tc, const char *text, uint64_t *id)
{
	if (tc_number(tc, text, id) != 0)
		return -1;
	return *id <= AM_MAX_ID ? 0 : tc_error(tc, "an id is 0 to %d", AM_MAX_ID);
}

static int
am_off(struct tc *tc, struct tc_am **place, uint64_t id)
{
	struct tc_am *am = *place;

	if (am == NULL)
		return tc_error(tc, "id %llu has no handler", (unsigned long long)id);
	tc->last.status = am_set(am->worker, am, false);
	*place = am->next;
	free(am);
	return 0;
}

static int
am_handle(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	struct tc_am **place, *am;
	uint64_t id;

	if (w == NULL || am_id(tc, argv[1], &id) != 0)
		return -1;
	if (argc > 2 && strcmp(argv[2], "off") != 0)
		return tc_error(tc, "\"%s\" is not \"off\"", argv[2]);
	place = am_place(w, id);
	if (argc > 2)
		return am_off(tc, place, id);
	if (*place != NULL)
		return tc_error(tc, "id %llu has a handler", (unsigned long long)id);
	am = calloc(1, sizeof(*am));
	if (am == NULL)
		return tc_error(tc, "no memory");
	*am = (struct tc_am){.tc = tc, .worker = w, .id = (unsigned)id};
	tc->last.status = am_set(w, am, true);
	if (tc->last.status != UCS_OK) {
		free(am);
		return tc_error(tc, "no handler is set: %s", ucs_status_string(tc->last.status));
	}
	*place = am;
	return 0;
}

/* The worker is gone, and its handlers with it. */
void
tc_am_drop(struct tc_worker *w)
{
	struct tc_am *am;

	while ((am = w->am) != NULL) {
		w->am = am->next;
		free(am);
	}
}

static int
am_send_option(struct tc *tc, int argc, char **argv, int *i, unsigned *flags, const char **header)
{
	if (strcmp(argv[*i], "reply") == 0) {
		*flags |= UCP_AM_SEND_FLAG_REPLY;
	} else if (strcmp(argv[*i], "eager") == 0) {
		*flags |= UCP_AM_SEND_FLAG_EAGER;
	} else if (strcmp(argv[*i], "rndv") == 0) {
		*flags |= UCP_AM_SEND_FLAG_RNDV;
	} else if (strcmp(argv[*i], "header") != 0) {
		return tc_error(tc, "\"%s\" is not header, reply, eager or rndv", argv[*i]);
	} else if (++*i == argc) {
		return tc_error(tc, "header needs a text");
	} else {
		*header = argv[*i][0] == '"' ? argv[*i] + 1 : argv[*i];
	}
	return 0;
}

static int
am_send(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	ucp_request_param_t param = {0};
	unsigned flags = 0;
	const char *header = "";
	struct tc_req *r;
	uint64_t id;

	if (ep == NULL || am_id(tc, argv[1], &id) != 0)
		return -1;
	for (int i = 3; i < argc; i++) {
		if (am_send_option(tc, argc, argv, &i, &flags, &header) != 0)
			return -1;
	}
	r = tc_req_data(tc, TC_AM_SEND, ep->worker, id, 0, argv[2]);
	if (r == NULL)
		return -1;
	r->header = (uint8_t *)strdup(header);
	if (r->header == NULL) {
		tc_req_free(tc, r);
		return tc_error(tc, "no memory");
	}
	r->header_len = strlen(header);
	tc_req_param(&param, r);
	param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
	param.flags = flags;
	tc_req_posted(tc, r,
		ucp_am_send_nbx(ep->ep, (unsigned)id, r->header, r->header_len, r->buf, r->size, &param));
	return tc_req_report(tc, r);
}

/* The oldest message of this id that was not shown, or NULL. */
static struct tc_req *
am_oldest(struct tc *tc, const struct tc_worker *w, uint64_t id)
{
	for (unsigned i = 0; i < tc->n_reqs; i++) {
		struct tc_req *r = tc->req[i];

		if (r->op == TC_AM && r->worker == w && r->tag == id && !r->taken)
			return r;
	}
	return NULL;
}

/* Give the way back of a message a name. */
static int
am_reply(struct tc *tc, const struct tc_req *r, const char *name)
{
	struct tc_ep *ep;

	if (r->reply == NULL)
		return tc_error(tc, "%s was sent without reply", r->name);
	ep = tc_ep_new(tc, name, r->worker);
	if (ep == NULL)
		return -1;
	ep->ep = r->reply;
	ep->reply = true;
	tc_ep_add(tc, ep);
	return 0;
}

static int
am_recv(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	uint64_t id, end, ms = tc->timeout_ms;
	const char *name = NULL;
	struct tc_req *r;

	if (w == NULL || am_id(tc, argv[1], &id) != 0)
		return -1;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "reply") == 0 && i + 1 < argc)
			name = argv[++i];
		else if (tc_number(tc, argv[i], &ms) != 0)
			return -1;
	}
	if (*am_place(w, id) == NULL && am_oldest(tc, w, id) == NULL)
		return tc_error(tc, "id %llu has no handler: am handle", (unsigned long long)id);
	end = tc_now_us() + ms * 1000;
	while ((r = am_oldest(tc, w, id)) == NULL && tc_now_us() < end && !tc_interrupted())
		tc_progress(tc);
	if (r == NULL || tc_req_wait(tc, r, ms) != 0) {
		tc->last = (struct tc_last){.status = UCS_ERR_NO_MESSAGE};
		return tc_error(tc, "no message of id %llu came in %llu ms", (unsigned long long)id,
			(unsigned long long)ms);
	}
	r->taken = true;
	tc_req_report(tc, r);
	return name != NULL ? am_reply(tc, r, name) : 0;
}

/* ---- streams ---- */

static int
stream_send(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	ucp_request_param_t param = {0};
	struct tc_req *r;

	(void)argc;
	if (ep == NULL)
		return -1;
	r = tc_req_data(tc, TC_STREAM_SEND, ep->worker, 0, ep->tx_at, argv[1]);
	if (r == NULL)
		return -1;
	ep->tx_at += r->size;
	tc_req_param(&param, r);
	tc_req_posted(tc, r, ucp_stream_send_nbx(ep->ep, r->buf, r->size, &param));
	return tc_req_report(tc, r);
}

/* len bytes have come to r, the next ones of its endpoint. */
static void
stream_got(struct tc_req *r, size_t len)
{
	r->length = len;
	if (r->ep == NULL)
		return;
	r->at = r->ep->rx_at;
	r->ep->rx_at += len;
}

static void
stream_done(void *request, ucs_status_t status, size_t len, void *user_data)
{
	stream_got(user_data, status == UCS_OK ? len : 0);
	tc_req_done(user_data, status);
	ucp_request_free(request);
}

static int
stream_recv(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS, .cb.recv_stream = stream_done};
	ucs_status_ptr_t p;
	struct tc_req *r;
	uint64_t size;

	if (argc > 2 && strcmp(argv[2], "all") != 0)
		return tc_error(tc, "\"%s\" is not \"all\"", argv[2]);
	if (ep == NULL || tc_number(tc, argv[1], &size) != 0)
		return -1;
	r = tc_req_new(tc, TC_STREAM_RECV, ep->worker, 0, size);
	if (r == NULL)
		return -1;
	r->ep = ep;
	param.user_data = r;
	param.flags = argc > 2 ? UCP_STREAM_RECV_FLAG_WAITALL : 0;
	p = ucp_stream_recv_nbx(ep->ep, r->buf, r->size, &r->got, &param);
	if (p == NULL)
		stream_got(r, r->got);
	tc_req_posted(tc, r, p);
	return tc_req_report(tc, r);
}

/* Take the bytes that the library has in one piece. */
static int
stream_data(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	ucs_status_ptr_t data;
	struct tc_req *r;
	size_t len = 0;

	(void)argc;
	if (ep == NULL)
		return -1;
	data = ucp_stream_recv_data_nb(ep->ep, &len);
	tc->last = (struct tc_last){.status = UCS_PTR_STATUS(data)};
	if (data == NULL)
		tc->last.status = UCS_ERR_NO_MESSAGE;
	if (UCS_PTR_IS_ERR(data))
		return tc_error(tc, "%s: %s", ep->name, ucs_status_string(UCS_PTR_STATUS(data)));
	if (data == NULL) {
		fprintf(tc->out, "nothing is there\n");
		return 0;
	}
	r = tc_req_new(tc, TC_STREAM_RECV, ep->worker, 0, len);
	if (r != NULL) {
		r->ep = ep;
		memcpy(r->buf, data, len);
		stream_got(r, len);
		tc_req_done(r, UCS_OK);
	}
	ucp_stream_data_release(ep->ep, data);
	return r != NULL ? tc_req_report(tc, r) : -1;
}

static int
stream_poll(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	ucp_stream_poll_ep_t ready[STREAM_MAX_POLL];
	ssize_t n;

	(void)argc;
	if (w == NULL)
		return -1;
	n = ucp_stream_worker_poll(w->worker, ready, STREAM_MAX_POLL, 0);
	tc->last = (struct tc_last){
		.status = n < 0 ? (ucs_status_t)n : UCS_OK, .count = n < 0 ? 0 : (uint64_t)n};
	if (n < 0)
		return tc_error(tc, "%s: %s", w->name, ucs_status_string((ucs_status_t)n));
	for (ssize_t i = 0; i < n; i++) {
		const char *name = "without a name";

		for (unsigned k = 0; k < tc->n_eps; k++) {
			if (tc->ep[k]->ep == ready[i].ep)
				name = tc->ep[k]->name;
		}
		fprintf(tc->out, "endpoint %s has data\n", name);
	}
	return 0;
}

const struct tc_cmd tc_cmd_am[] = {
	{"am handle", "WORKER ID [off]", "take active messages of this id; off: do not any more", 2, 3,
		am_handle},
	{"am send", "EP ID SIZE|\"TEXT\" [header \"TEXT\"] [reply] [eager] [rndv]",
		"send SIZE bytes of the pattern, or the text; reply: with a way back", 3, 8, am_send},
	{"am recv", "WORKER ID [reply NAME] [MS]",
		"wait for the next message of this id; reply: its way back is this endpoint", 2, 5, am_recv},
	{"stream send", "EP SIZE|\"TEXT\"", "send SIZE bytes of the pattern, or the text", 2, 2,
		stream_send},
	{"stream recv", "EP SIZE [all]", "receive what comes, up to SIZE; all: as much as that", 2, 3,
		stream_recv},
	{"stream data", "EP", "take what is there", 1, 1, stream_data},
	{"stream poll", "WORKER", "the endpoints that have data", 1, 1, stream_poll},
	{0},
};
