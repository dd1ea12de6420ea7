/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_msg.c - tagged messages: sent, received, probed for; requests waited for, cancelled,
 * checked
 */
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

static const char *const msg_op_name[] = {"send", "recv", "flush", "close", "put", "get", "atomic", "am send",
	"am", "stream send", "stream recv"};

/* ---- the pattern ---- */

static uint64_t
fill_start(uint64_t pattern, uint64_t tag)
{
	return (pattern + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ tag * UINT64_C(0xd1342543de82ef95);
}

static uint64_t
fill_next(uint64_t x)
{
	return x * UINT64_C(0xd1342543de82ef95) + UINT64_C(0x2545f4914f6cdd1d);
}

/* The word of the pattern at this offset. */
static uint64_t
fill_at(uint64_t pattern, uint64_t tag, uint64_t at)
{
	uint64_t x = fill_start(pattern, tag);

	for (uint64_t i = 0; i < at / 8; i++)
		x = fill_next(x);
	return x;
}

/* The bytes of the pattern from an offset on. */
void
tc_fill(uint8_t *buf, uint64_t len, uint64_t pattern, uint64_t tag, uint64_t at)
{
	uint64_t x = fill_at(pattern, tag, at), skip = at % 8, n;

	for (uint64_t i = 0; i < len; i += n, skip = 0, x = fill_next(x)) {
		n = len - i < 8 - skip ? len - i : 8 - skip;
		memcpy(buf + i, (const uint8_t *)&x + skip, n);
	}
}

/* The first offset in buf that differs; UINT64_MAX if none does. */
uint64_t
tc_mismatch(const uint8_t *buf, uint64_t len, uint64_t pattern, uint64_t tag, uint64_t at)
{
	uint64_t x = fill_at(pattern, tag, at), skip = at % 8;

	for (uint64_t i = 0; i < len; skip = 0, x = fill_next(x)) {
		for (uint64_t k = skip; k < 8 && i < len; k++, i++) {
			if (buf[i] != ((const uint8_t *)&x)[k])
				return i;
		}
	}
	return UINT64_MAX;
}

/* ---- requests ---- */

/* "last" is the newest. */
struct tc_req *
tc_req_find(struct tc *tc, const char *name)
{
	if (strcmp(name, "last") == 0 && tc->n_reqs > 0)
		return tc->req[tc->n_reqs - 1];
	for (unsigned i = tc->n_reqs; i > 0; i--) {
		if (strcmp(tc->req[i - 1]->name, name) == 0)
			return tc->req[i - 1];
	}
	tc_error(tc, "there is no request \"%s\"", name);
	return NULL;
}

/* A request with a buffer of size bytes; NULL after an error was printed. */
struct tc_req *
tc_req_new(struct tc *tc, enum tc_op op, struct tc_worker *w, uint64_t tag, uint64_t size)
{
	struct tc_req *r;

	if (tc->n_reqs == TC_MAX_REQS) {
		tc_error(tc, "there are already %d requests; \"reqs clear\" removes completed ones",
			TC_MAX_REQS);
		return NULL;
	}
	if (size > TC_MAX_SIZE) {
		tc_error(tc, "a message has at most %llu bytes here",
			(unsigned long long)TC_MAX_SIZE);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (r != NULL)
		r->buf = calloc(1, size > 0 ? size : 1);
	if (r == NULL || r->buf == NULL) {
		free(r);
		tc_error(tc, "no memory for %llu bytes", (unsigned long long)size);
		return NULL;
	}
	snprintf(r->name, sizeof(r->name), "r%u", tc->next_req++);
	r->op = op;
	r->worker = w;
	r->tag = tag;
	r->size = size;
	r->status = UCS_INPROGRESS;
	tc->req[tc->n_reqs++] = r;
	return r;
}

void
tc_req_free(struct tc *tc, struct tc_req *r)
{
	unsigned i = tc->n_reqs;

	while (i > 0 && tc->req[i - 1] != r)
		i--;
	if (i == 0)
		return;
	for (; i < tc->n_reqs; i++)
		tc->req[i - 1] = tc->req[i];
	tc->n_reqs--;
	if (tc->last.req == r)
		tc->last.req = NULL;
	free(r->header);
	free(r->buf);
	free(r);
}

/* A worker is destroyed: its operations in progress will never complete. */
void
tc_reqs_drop(struct tc *tc, struct tc_worker *w)
{
	uint64_t end = tc_now_us() + 100000;
	unsigned pending;

	for (unsigned i = 0; i < tc->n_reqs; i++) {
		struct tc_req *r = tc->req[i];

		if (r->worker == w && r->op == TC_RECV && !r->done && r->request != NULL)
			ucp_request_cancel(w->worker, r->request);
	}
	do {
		tc_progress_one(w);
		pending = 0;
		for (unsigned i = 0; i < tc->n_reqs; i++)
			pending += tc->req[i]->worker == w && !tc->req[i]->done;
	} while (pending > 0 && tc_now_us() < end);
	for (unsigned i = 0; i < tc->n_reqs; i++) {
		struct tc_req *r = tc->req[i];

		if (r->worker != w)
			continue;
		if (!r->done && r->request != NULL)
			ucp_request_free(r->request); /* no callback any more */
		if (!r->done)
			r->status = UCS_ERR_CANCELED;
		r->done = true;
		r->request = NULL;
		r->worker = NULL;
	}
}

void
tc_reqs_free(struct tc *tc)
{
	while (tc->n_reqs > 0)
		tc_req_free(tc, tc->req[tc->n_reqs - 1]);
}

void
tc_req_done(struct tc_req *r, ucs_status_t status)
{
	r->status = status;
	r->done = true;
	r->request = NULL;
	if (r->worker == NULL)
		return;
	if (status != UCS_OK) {
		r->worker->failed++;
	} else if (r->op == TC_SEND || r->op == TC_AM_SEND || r->op == TC_STREAM_SEND) {
		r->worker->sent++;
		r->worker->sent_bytes += r->length;
	} else if (r->op == TC_RECV || r->op == TC_AM || r->op == TC_STREAM_RECV) {
		r->worker->received++;
		r->worker->received_bytes += r->length;
	}
}

void
tc_send_done(void *request, ucs_status_t status, void *user_data)
{
	tc_req_done(user_data, status);
	ucp_request_free(request);
}

static void
recv_done(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *user_data)
{
	struct tc_req *r = user_data;

	if (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED) {
		r->length = info->length;
		r->tag = info->sender_tag;
	}
	tc_req_done(r, status);
	ucp_request_free(request);
}

/* Handle the result of the posting call: complete, an error, or a request. */
void
tc_req_posted(struct tc *tc, struct tc_req *r, ucs_status_ptr_t p)
{
	(void)tc;
	if (p == NULL) {
		if (r->op == TC_RECV) {
			/* UCX 1.13 leaves info unchanged when a receive completes at once */
			r->length = r->info.length != SIZE_MAX ? r->info.length : r->size;
			r->tag = r->info.length != SIZE_MAX ? r->info.sender_tag : r->tag;
		}
		tc_req_done(r, UCS_OK);
	} else if (UCS_PTR_IS_ERR(p)) {
		tc_req_done(r, UCS_PTR_STATUS(p));
	} else if (!r->done) {
		r->request = p;
	}
}

/* Run turns until r is complete; -1 after ms, or on an interrupt. */
int
tc_req_wait(struct tc *tc, struct tc_req *r, uint64_t ms)
{
	uint64_t end = tc_now_us() + ms * 1000;

	while (!r->done) {
		for (int i = 0; i < 64 && !r->done; i++)
			tc_progress(tc);
		if (!r->done && (tc_now_us() > end || tc_interrupted()))
			return -1;
	}
	return 0;
}

/* Make r the object of "expect". */
void
tc_req_last(struct tc *tc, const struct tc_req *r)
{
	tc->last.status = r->status;
	tc->last.length = r->length;
	tc->last.tag = r->tag;
	tc->last.req = r;
}

void
tc_req_print(struct tc *tc, const struct tc_req *r)
{
	bool receives = r->op == TC_RECV || r->op == TC_STREAM_RECV || r->op == TC_AM;

	fprintf(tc->out, "%s: %s", r->name, msg_op_name[r->op]);
	if (r->op != TC_FLUSH && r->op != TC_CLOSE)
		fprintf(tc->out, " %s %llu bytes", receives && !r->done ? "into" : "of",
			(unsigned long long)(r->op == TC_ATOMIC || (receives && !r->done) ? r->size : r->length));
	if (r->op == TC_SEND || r->op == TC_RECV)
		fprintf(tc->out, ", tag 0x%llx", (unsigned long long)r->tag);
	if (r->op == TC_AM_SEND || r->op == TC_AM)
		fprintf(tc->out, ", id %llu", (unsigned long long)r->tag);
	if (r->header_len > 0)
		fprintf(tc->out, ", header of %zu", r->header_len);
	if (r->op == TC_PUT || r->op == TC_GET || r->op == TC_ATOMIC)
		fprintf(tc->out, " at 0x%llx", (unsigned long long)r->at);
	fprintf(tc->out, ": %s\n", tc_status_name(r->status));
}

/* As callback of operations that only complete. */
void
tc_req_param(ucp_request_param_t *param, struct tc_req *r)
{
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param->cb.send = tc_send_done;
	param->user_data = r;
}

int
tc_send_post(struct tc *tc, struct tc_ep *ep, struct tc_req *r, bool sync)
{
	ucp_request_param_t param = {0};

	tc_req_param(&param, r);
	r->length = r->size;
	if (sync)
		tc_req_posted(
			tc, r, ucp_tag_send_sync_nbx(ep->ep, r->buf, r->size, r->tag, &param));
	else
		tc_req_posted(tc, r, ucp_tag_send_nbx(ep->ep, r->buf, r->size, r->tag, &param));
	return r->done && r->status != UCS_OK ? -1 : 0;
}

static void
recv_param(ucp_request_param_t *param, struct tc_req *r, bool imm)
{
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
			      UCP_OP_ATTR_FIELD_RECV_INFO;
	if (!imm) /* always by the callback, whose info every library fills */
		param->op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
	param->cb.recv = recv_done;
	param->user_data = r;
	param->recv_info.tag_info = &r->info;
	r->info.length = SIZE_MAX;
}

int
tc_recv_post(struct tc *tc, struct tc_req *r, uint64_t mask, bool imm)
{
	ucp_request_param_t param = {0};

	recv_param(&param, r, imm);
	tc_req_posted(
		tc, r, ucp_tag_recv_nbx(r->worker->worker, r->buf, r->size, r->tag, mask, &param));
	return r->done && r->status != UCS_OK ? -1 : 0;
}

int
tc_mrecv_post(struct tc *tc, struct tc_req *r, ucp_tag_message_h message)
{
	ucp_request_param_t param = {0};

	recv_param(&param, r, false);
	tc_req_posted(
		tc, r, ucp_tag_msg_recv_nbx(r->worker->worker, r->buf, r->size, message, &param));
	return r->done && r->status != UCS_OK ? -1 : 0;
}

/* ---- commands ---- */

/* An operation that failed at once is a failed command only if its handle is unusable. */
int
tc_req_report(struct tc *tc, struct tc_req *r)
{
	tc_req_last(tc, r);
	tc_req_print(tc, r);
	return 0;
}

/* A request with SIZE bytes of the pattern, or with the text; NULL after an error was printed. */
struct tc_req *
tc_req_data(
	struct tc *tc, enum tc_op op, struct tc_worker *w, uint64_t tag, uint64_t at, const char *text)
{
	bool quoted = text[0] == '"'; /* a quoted word keeps its first quote */
	uint64_t size = strlen(text) - 1;
	struct tc_req *r;

	if (!quoted && tc_number(tc, text, &size) != 0)
		return NULL;
	r = tc_req_new(tc, op, w, tag, size);
	if (r == NULL)
		return NULL;
	r->at = at;
	r->length = size;
	if (quoted)
		memcpy(r->buf, text + 1, size);
	else
		tc_fill(r->buf, size, tc->pattern, tag, at);
	return r;
}

static int
msg_send(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[0]);
	struct tc_req *r;
	uint64_t tag;

	if (ep == NULL || tc_number(tc, argv[1], &tag) != 0)
		return -1;
	if (argc > 3 && strcmp(argv[3], "sync") != 0)
		return tc_error(tc, "\"%s\" is not \"sync\"", argv[3]);
	r = tc_req_data(tc, TC_SEND, ep->worker, tag, 0, argv[2]);
	if (r == NULL)
		return -1;
	tc_send_post(tc, ep, r, argc > 3);
	return tc_req_report(tc, r);
}

static int
msg_recv(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	uint64_t tag, mask, size;
	struct tc_req *r;

	if (argc > 4 && strcmp(argv[4], "imm") != 0)
		return tc_error(tc, "\"%s\" is not \"imm\"", argv[4]);
	if (w == NULL || tc_number(tc, argv[1], &tag) != 0 || tc_mask(tc, argv[2], &mask) != 0 ||
		tc_number(tc, argv[3], &size) != 0)
		return -1;
	r = tc_req_new(tc, TC_RECV, w, tag, size);
	if (r == NULL)
		return -1;
	tc_recv_post(tc, r, mask, argc > 4);
	return tc_req_report(tc, r);
}

static int
msg_keep(struct tc *tc, struct tc_worker *w, ucp_tag_message_h message,
	const ucp_tag_recv_info_t *info)
{
	struct tc_msg *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return tc_error(tc, "no memory");
	snprintf(m->name, sizeof(m->name), "m%u", tc->next_msg++);
	m->message = message;
	m->worker = w;
	m->info = *info;
	tc->msg[tc->n_msgs++] = m;
	fprintf(tc->out, "%s: ", m->name);
	return 0;
}

static int
msg_probe(struct tc *tc, int argc, char **argv)
{
	struct tc_worker *w = tc_worker_find(tc, argv[0]);
	ucp_tag_recv_info_t info = {0};
	ucp_tag_message_h message;
	uint64_t tag, mask;
	bool take = argc > 3;

	if (w == NULL || tc_number(tc, argv[1], &tag) != 0 || tc_mask(tc, argv[2], &mask) != 0)
		return -1;
	if (take && strcmp(argv[3], "remove") != 0)
		return tc_error(tc, "\"%s\" is not \"remove\"", argv[3]);
	if (take && tc->n_msgs == TC_MAX_MSGS)
		return tc_error(tc, "there are already %d probed messages, the maximum; receive some", TC_MAX_MSGS);
	message = ucp_tag_probe_nb(w->worker, tag, mask, take, &info);
	tc->last = (struct tc_last){.status = message != NULL ? UCS_OK : UCS_ERR_NO_MESSAGE,
		.length = info.length,
		.tag = info.sender_tag,
		.count = message != NULL};
	if (message == NULL) {
		fprintf(tc->out, "no message\n");
		return 0;
	}
	if (take && msg_keep(tc, w, message, &info) != 0)
		return -1;
	fprintf(tc->out, "message of %zu bytes, tag 0x%llx\n", info.length,
		(unsigned long long)info.sender_tag);
	return 0;
}

static int
msg_mrecv(struct tc *tc, int argc, char **argv)
{
	uint64_t size = UINT64_MAX;
	struct tc_msg *m = NULL;
	struct tc_req *r;
	unsigned i;

	if (argc > 1 && tc_number(tc, argv[1], &size) != 0)
		return -1;
	for (i = 0; i < tc->n_msgs && m == NULL; i++) {
		if (strcmp(tc->msg[i]->name, argv[0]) == 0)
			m = tc->msg[i];
	}
	if (m == NULL)
		return tc_error(
			tc, "there is no message \"%s\"; probe with remove makes one", argv[0]);
	r = tc_req_new(tc, TC_RECV, m->worker, m->info.sender_tag,
		size != UINT64_MAX ? size : m->info.length);
	if (r == NULL)
		return -1;
	tc_mrecv_post(tc, r, m->message);
	for (; i < tc->n_msgs; i++)
		tc->msg[i - 1] = tc->msg[i];
	tc->n_msgs--;
	free(m);
	return tc_req_report(tc, r);
}

static int
msg_cancel(struct tc *tc, int argc, char **argv)
{
	struct tc_req *r = tc_req_find(tc, argv[0]);

	(void)argc;
	if (r == NULL)
		return -1;
	if (r->done || r->request == NULL || r->worker == NULL)
		return tc_error(tc, "%s is complete; there is nothing to cancel", r->name);
	ucp_request_cancel(r->worker->worker, r->request);
	for (int i = 0; i < 100 && !r->done; i++)
		tc_progress_one(r->worker);
	return tc_req_report(tc, r);
}

static int
msg_wait_one(struct tc *tc, struct tc_req *r, uint64_t ms)
{
	int rc = tc_req_wait(tc, r, ms);

	tc_req_last(tc, r);
	if (rc != 0)
		return tc_error(
			tc, "%s is not complete after %llu ms", r->name, (unsigned long long)ms);
	return 0;
}

static int
msg_wait(struct tc *tc, int argc, char **argv)
{
	uint64_t ms = tc->timeout_ms;
	struct tc_req *r;

	if (argc > 1 && tc_number(tc, argv[1], &ms) != 0)
		return -1;
	if (strcmp(argv[0], "all") == 0) {
		for (unsigned i = 0; i < tc->n_reqs; i++) {
			if (!tc->req[i]->done && msg_wait_one(tc, tc->req[i], ms) != 0)
				return -1;
		}
		return 0;
	}
	r = tc_req_find(tc, argv[0]);
	if (r == NULL || msg_wait_one(tc, r, ms) != 0)
		return -1;
	return tc_req_report(tc, r);
}

static int
msg_reqs(struct tc *tc, int argc, char **argv)
{
	if (argc > 0 && strcmp(argv[0], "clear") != 0)
		return tc_error(tc, "\"%s\" is not \"clear\"", argv[0]);
	for (unsigned i = 0; i < tc->n_reqs && argc == 0; i++)
		tc_req_print(tc, tc->req[i]);
	for (unsigned i = tc->n_reqs; i > 0 && argc > 0; i--) {
		if (tc->req[i - 1]->done)
			tc_req_free(tc, tc->req[i - 1]);
	}
	tc->last.count = tc->n_reqs;
	return 0;
}

static int
msg_check(struct tc *tc, int argc, char **argv)
{
	struct tc_req *r = tc_req_find(tc, argv[0]);
	uint64_t pattern = tc->pattern, at, len;

	if (r == NULL || (argc > 1 && tc_number(tc, argv[1], &pattern) != 0))
		return -1;
	if ((r->op != TC_RECV && r->op != TC_GET && r->op != TC_AM && r->op != TC_STREAM_RECV) || !r->done)
		return tc_error(tc, "%s is not a completed receive or get", r->name);
	tc_req_last(tc, r);
	if (r->status != UCS_OK)
		return tc_error(tc, "%s failed: %s", r->name, ucs_status_string(r->status));
	len = r->length < r->size ? r->length : r->size;
	at = tc_mismatch(r->buf, len, pattern, r->tag, r->at);
	if (at != UINT64_MAX)
		return tc_error(tc, "%s differs from the pattern at offset %llu of %llu: 0x%02x",
			r->name, (unsigned long long)at, (unsigned long long)len, r->buf[at]);
	fprintf(tc->out, "%s: %llu bytes are correct\n", r->name, (unsigned long long)len);
	return 0;
}

const struct tc_cmd tc_cmd_msg[] = {
	{"send", "EP TAG SIZE|\"TEXT\" [sync]",
		"send SIZE bytes of the pattern, or the text; sync: done when matched", 3, 4,
		msg_send},
	{"recv", "WORKER TAG MASK SIZE [imm]",
		"post a receive; MASK: a number, full, or any; imm: it may complete at once", 4, 5,
		msg_recv},
	{"probe", "WORKER TAG MASK [remove]",
		"look for an arrived message (runs no turn); remove: take it, for mrecv", 3, 4,
		msg_probe},
	{"mrecv", "MSG [SIZE]", "receive a message that probe took", 1, 2, msg_mrecv},
	{"cancel", "REQ|last", "cancel a receive", 1, 1, msg_cancel},
	{"wait", "REQ|last|all [MS]", "run turns until it is complete (default: set timeout)", 1, 2,
		msg_wait},
	{"reqs", "[clear]", "the requests; clear: remove completed ones", 0, 1, msg_reqs},
	{"check", "REQ|last [PATTERN]", "compare what was received with the pattern of its tag", 1, 2,
		msg_check},
	{0},
};
