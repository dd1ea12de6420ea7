/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hostile_talk.c - two honest processes exchange messages of all kinds, and check each
 *
 * Design notes
 * - The two tell each other by shared memory, which is not the library's, how much they have received. So a
 * sender never is more than a few messages ahead, and each of its messages finds a receive.
 * - Both know a secret that the hostile one does not: what comes without it is not of the honest one.
 * - While somebody writes anything anywhere, content may be destroyed: then nothing is checked but that all
 * goes on.
 */
#include "hostile.h"

#include <time.h>

#include "cci_int.h"
#include "ucp_int.h"

#define TAG_MASK UINT64_MAX
#define END_S    30 /* for the last messages */

static uint64_t call_began;

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
talk_call(void)
{
	call_began = cpu_ns();
}

void
talk_called(const char *what)
{
	uint64_t ns = cpu_ns() - call_began;

	if (ns > HOSTILE_CPU_S * 1000000000ull)
		UTIL_DIE("%s took %.1f s of the processor", what, (double)ns * 1e-9);
}

/* Something is not as it was sent. */
#define WRONG(t, ...)                                                                                          \
	do {                                                                                                   \
		if ((t)->r->n_vandals == 0)                                                                    \
			UTIL_DIE(__VA_ARGS__);                                                                 \
		(t)->n_failed++;                                                                               \
	} while (0)

static uint64_t
key_of(const struct talk *t, const struct side *from, int kind, uint64_t n)
{
	return util_mix(t->r->secret + (uint64_t)(from - t->r->side)) + (uint64_t)kind * 0x1000000 +
	       n * 0x9e3779b9;
}

static size_t
length(uint64_t key)
{
	static const uint32_t lens[] = {
		8, 100, 0, 2000, 8, 7000, 9000, 30000, 8, 70000, 16, HOSTILE_BIG, 1, 120};

	return lens[util_mix(key) % (sizeof(lens) / sizeof(lens[0]))];
}

/* As util_check(), which reports each that differs: where all is destroyed, of nearly all. */
static bool
is_filled(const uint8_t *p, size_t len, uint64_t key)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = util_mix(key + i);

		if (memcmp(p + i, &word, len - i < 8 ? len - i : 8) != 0)
			return false;
	}
	return true;
}

static ucp_tag_t
tag_of(const struct talk *t, uint64_t n)
{
	return t->r->secret << 32 | (n & UINT32_MAX);
}

static uint64_t
load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_acquire);
}

static void
count(_Atomic uint64_t *v, uint64_t n)
{
	atomic_fetch_add_explicit(v, n, memory_order_release);
}

/* --- tagged messages --- */

static void
tag_out(struct talk *t)
{
	uint64_t n = load(&t->mine->sent[TALK_TAG]);
	struct talk_msg *m = &t->tag_out[n % TALK_WINDOW];
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (m->used && !op_over(&m->op))
		return;
	if (m->used && m->op.status != UCS_OK)
		WRONG(t, "tag send: %s", ucs_status_string(m->op.status));
	if (n - load(&t->other->got[TALK_TAG]) >= TALK_WINDOW)
		return;
	m->used = true;
	m->len = length(key_of(t, t->mine, TALK_TAG, n));
	util_fill(m->buf, m->len, key_of(t, t->mine, TALK_TAG, n));
	op_begin(&m->op, n % 5 == 0 ? TIMED(ucp_tag_send_sync_nbx(t->ep, m->buf, m->len, tag_of(t, n), &param))
				    : TIMED(ucp_tag_send_nbx(t->ep, m->buf, m->len, tag_of(t, n), &param)));
	count(&t->mine->sent[TALK_TAG], 1);
}

static void
tag_post(struct talk *t, uint64_t n)
{
	struct talk_msg *m = &t->tag_in[n % TALK_WINDOW];
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

	m->n = n;
	op_begin(&m->op, TIMED(ucp_tag_recv_nbx(t->w, m->buf, HOSTILE_BIG, tag_of(t, n), TAG_MASK, &param)));
}

static void
tag_in(struct talk *t)
{
	struct talk_msg *m = &t->tag_in[t->tag_next % TALK_WINDOW];
	uint64_t key = key_of(t, t->other, TALK_TAG, t->tag_next);
	ucp_tag_recv_info_t info = {.length = 0};
	ucs_status_t st;

	if (m->op.req == NULL)
		return;
	st = ucp_tag_recv_request_test(m->op.req, &info);
	if (st == UCS_INPROGRESS)
		return;
	if (st != UCS_OK || info.length != length(key) || !is_filled(m->buf, info.length, key))
		WRONG(t, "tagged message %llu: %s, %zu bytes", (unsigned long long)t->tag_next,
			ucs_status_string(st), info.length);
	(void)op_over(&m->op);
	tag_post(t, t->tag_next + TALK_WINDOW);
	t->tag_next++;
	count(&t->mine->got[TALK_TAG], 1);
}

/* --- active messages --- */

struct am_head {
	uint64_t secret, n;
};

static void
am_out(struct talk *t)
{
	uint64_t n = load(&t->mine->sent[TALK_AM]);
	struct talk_msg *m = &t->am_out[n % TALK_WINDOW];
	/* the header lives until the send is over */
	struct am_head *head = (struct am_head *)(void *)(m->buf + HOSTILE_BIG);
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (m->used && !op_over(&m->op))
		return;
	if (m->used && m->op.status != UCS_OK)
		WRONG(t, "am send: %s", ucs_status_string(m->op.status));
	if (n - load(&t->other->got[TALK_AM]) >= TALK_WINDOW)
		return;
	m->used = true;
	m->len = length(key_of(t, t->mine, TALK_AM, n));
	util_fill(m->buf, m->len, key_of(t, t->mine, TALK_AM, n));
	*head = (struct am_head){t->r->secret, n};
	op_begin(&m->op,
		TIMED(ucp_am_send_nbx(t->ep, HOSTILE_AM_OURS, head, sizeof(*head), m->buf, m->len, &param)));
	count(&t->mine->sent[TALK_AM], 1);
}

static void
am_check(struct talk *t, uint64_t n, const void *data, size_t len)
{
	uint64_t key = key_of(t, t->other, TALK_AM, n);

	if (len != length(key) || !is_filled(data, len, key))
		WRONG(t, "active message %llu: %zu bytes", (unsigned long long)n, len);
	count(&t->mine->got[TALK_AM], 1);
}

static void
am_in(struct talk *t)
{
	for (unsigned i = 0; i < TALK_WINDOW; i++) {
		struct talk_msg *m = &t->am_in[i];

		if (!m->used || !op_over(&m->op))
			continue;
		m->used = false;
		if (m->op.status != UCS_OK)
			WRONG(t, "data of active message %llu: %s", (unsigned long long)m->n,
				ucs_status_string(m->op.status));
		else
			am_check(t, m->n, m->buf, m->len);
	}
}

static ucs_status_t
am_cb(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	ucp_request_param_t rp = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	struct talk *t = arg;
	struct am_head head;
	struct talk_msg *m;

	if (header_len != sizeof(head) || memcmp(header, &t->r->secret, sizeof(head.secret)) != 0) {
		if (t->on_am != NULL)
			return t->on_am(t, header, header_len, data, len, param);
		WRONG(t, "an active message of nobody's");
		return UCS_OK;
	}
	memcpy(&head, header, sizeof(head));
	if (head.n != t->am_next)
		WRONG(t, "active message %llu instead of %llu", (unsigned long long)head.n,
			(unsigned long long)t->am_next);
	t->am_next++;
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
		am_check(t, head.n, data, len);
		return UCS_OK;
	}
	for (m = t->am_in; m < t->am_in + TALK_WINDOW && m->used;)
		m++;
	if (m == t->am_in + TALK_WINDOW || len > HOSTILE_BIG) {
		WRONG(t, "active message %llu: no room for %zu bytes", (unsigned long long)head.n, len);
		return UCS_ERR_REJECTED;
	}
	m->used = true;
	m->n = head.n;
	m->len = len;
	op_begin(&m->op, ucp_am_recv_data_nbx(t->w, data, m->buf, len, &rp));
	return UCS_INPROGRESS;
}

/* --- a stream --- */

static uint8_t
stream_byte(uint64_t key, uint64_t at)
{
	return (uint8_t)(key + at * 131 + (at >> 8) * 7);
}

static void
stream_out(struct talk *t)
{
	uint64_t at = load(&t->mine->sent[TALK_STREAM]), key = key_of(t, t->mine, TALK_STREAM, 0);
	struct talk_msg *m = &t->stream_out;
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (m->used && !op_over(&m->op))
		return;
	if (m->used && m->op.status != UCS_OK)
		WRONG(t, "stream send: %s", ucs_status_string(m->op.status));
	if (at - load(&t->other->got[TALK_STREAM]) > HOSTILE_BIG)
		return;
	m->used = true;
	m->len = 1 + length(key + at) / 4;
	for (size_t i = 0; i < m->len; i++)
		m->buf[i] = stream_byte(key, at + i);
	op_begin(&m->op, TIMED(ucp_stream_send_nbx(t->ep, m->buf, m->len, &param)));
	count(&t->mine->sent[TALK_STREAM], m->len);
}

static void
stream_in(struct talk *t)
{
	uint64_t at = load(&t->mine->got[TALK_STREAM]), key = key_of(t, t->other, TALK_STREAM, 0);
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	struct talk_msg *m = &t->stream_in;
	ucs_status_t st;
	size_t len = 0;

	if (m->op.req == NULL) {
		if (!m->used || m->op.status == UCS_OK)
			op_begin(&m->op,
				TIMED(ucp_stream_recv_nbx(t->ep, m->buf, HOSTILE_BIG / 8, &len, &param)));
		m->used = true;
		return;
	}
	st = ucp_stream_recv_request_test(m->op.req, &len);
	if (st == UCS_INPROGRESS)
		return;
	(void)op_over(&m->op);
	m->op.status = st;
	if (st != UCS_OK) {
		if (atomic_load(&t->other->over) == 0) /* else as in failed() */
			WRONG(t, "stream: %s", ucs_status_string(st));
		return;
	}
	for (size_t i = 0; i < len && len <= HOSTILE_BIG; i++) {
		if (m->buf[i] != stream_byte(key, at + i)) {
			WRONG(t, "byte %llu of the stream differs", (unsigned long long)(at + i));
			break;
		}
	}
	count(&t->mine->got[TALK_STREAM], len);
}

/* --- put, get, atomics; in the other's memory, where only this side writes --- */

static void
rma_turn(struct talk *t)
{
	ucp_request_param_t param = {.op_attr_mask = 0},
			    fetch = {
				    .op_attr_mask = UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_DATATYPE,
				    .reply_buffer = &t->rma_back,
				    .datatype = ucp_dt_make_contig(8)};
	static const uint64_t one = 1;
	uint64_t n = load(&t->mine->sent[TALK_RMA]), key = key_of(t, t->mine, TALK_RMA, n);
	uint64_t remote = t->other->ours.addr;

	if (t->rkey == NULL || !op_over(&t->rma))
		return;
	if (t->rma_step != 0 && t->rma.status != UCS_OK)
		WRONG(t, "step %u of put and get: %s", t->rma_step, ucs_status_string(t->rma.status));
	switch (t->rma_step) {
	case 0:
		if (atomic_load(&t->r->stop) != 0)
			return;
		t->rma_len = length(key) % 100000 + 1;
		t->rma_at = 64 + util_mix(key) % (HOSTILE_MEM - 64 - t->rma_len);
		util_fill(t->rma_buf, t->rma_len, key);
		op_begin(&t->rma,
			TIMED(ucp_put_nbx(t->ep, t->rma_buf, t->rma_len, remote + t->rma_at, t->rkey, &param)));
		break;
	case 1:
		op_begin(&t->rma, TIMED(ucp_ep_flush_nbx(t->ep, &param)));
		break;
	case 2:
		memset(t->rma_buf, 0, t->rma_len);
		op_begin(&t->rma,
			TIMED(ucp_get_nbx(t->ep, t->rma_buf, t->rma_len, remote + t->rma_at, t->rkey, &param)));
		break;
	case 3:
		if (!is_filled(t->rma_buf, t->rma_len, key))
			WRONG(t, "get %llu differs from put", (unsigned long long)n);
		op_begin(&t->rma,
			TIMED(ucp_atomic_op_nbx(t->ep, UCP_ATOMIC_OP_ADD, &one, 1, remote, t->rkey, &fetch)));
		break;
	default:
		if (t->rma_back != n)
			WRONG(t, "the counter is %llu instead of %llu", (unsigned long long)t->rma_back,
				(unsigned long long)n);
		count(&t->mine->sent[TALK_RMA], 1);
		t->rma_step = 0;
		return;
	}
	t->rma_step++;
}

/* --- CCI --- */

static void
cci_out(struct talk *t)
{
	uint64_t n = load(&t->mine->sent[TALK_CCI]), key = key_of(t, t->mine, TALK_CCI, n);
	static uint8_t buf[8192];
	size_t len;
	int rc;

	if (t->conn == NULL || n - load(&t->other->got[TALK_CCI]) >= 4 * TALK_WINDOW || t->n_cci_sends >= 64)
		return;
	len = 8 + length(key) % (t->conn->max_send_size - 8);
	len = len < sizeof(buf) ? len : sizeof(buf);
	memcpy(buf, &n, 8);
	util_fill(buf + 8, len - 8, key);
	rc = TIMED(cci_send(t->conn, buf, (uint32_t)len, NULL, 0));
	if (rc == CCI_SUCCESS) {
		t->n_cci_sends++;
		count(&t->mine->sent[TALK_CCI], 1);
	} else if (rc != CCI_EAGAIN && rc != CCI_ENOBUFS) {
		WRONG(t, "cci_send: %s", cci_strerror(t->end, rc));
	}
}

static void
cci_in(struct talk *t, const struct cci_event_recv *ev)
{
	uint64_t key = key_of(t, t->other, TALK_CCI, t->cci_next), n = UINT64_MAX;

	if (ev->len >= 8)
		memcpy(&n, ev->ptr, 8);
	if (n != t->cci_next || !is_filled((const uint8_t *)ev->ptr + 8, ev->len - 8, key))
		WRONG(t, "CCI message %llu instead of %llu", (unsigned long long)n,
			(unsigned long long)t->cci_next);
	t->cci_next++;
	count(&t->mine->got[TALK_CCI], 1);
}

static bool
is_ours(const struct talk *t, const cci_event_t *ev)
{
	switch (ev->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		return ev->request.data_len == 8 && memcmp(ev->request.data_ptr, &t->r->secret, 8) == 0;
	case CCI_EVENT_CONNECT:
		return ev->connect.context == t;
	case CCI_EVENT_ACCEPT:
		return ev->accept.context == t;
	case CCI_EVENT_SEND:
		return ev->send.connection == t->conn;
	case CCI_EVENT_RECV:
		return ev->recv.connection == t->conn;
	default:
		return false;
	}
}

static void
event(struct talk *t, cci_event_t *ev)
{
	switch (ev->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		if (cci_accept(ev, t) != CCI_SUCCESS)
			WRONG(t, "the honest connection is not accepted");
		break;
	case CCI_EVENT_CONNECT:
		t->conn = ev->connect.connection;
		break;
	case CCI_EVENT_ACCEPT:
		t->conn = ev->accept.connection;
		break;
	case CCI_EVENT_SEND:
		t->n_cci_sends--;
		if (ev->send.status != CCI_SUCCESS)
			WRONG(t, "the end of a CCI send: %s", cci_strerror(t->end, ev->send.status));
		break;
	default:
		cci_in(t, &ev->recv);
		break;
	}
}

static void
cci_turn(struct talk *t)
{
	for (unsigned i = 0; i < 16; i++) {
		cci_event_t *ev = NULL;

		if (TIMED(cci_get_event(t->end, &ev)) != CCI_SUCCESS)
			break;
		if (is_ours(t, ev))
			event(t, ev);
		else if (t->on_event != NULL)
			t->on_event(t, ev);
		else
			WRONG(t, "event %d of nobody's", (int)ev->type);
		cci_return_event(ev);
	}
}

/* --- all of it --- */

void
talk_turn(struct talk *t)
{
	atomic_fetch_add_explicit(&t->mine->turns, 1, memory_order_relaxed);
	TIMED(ucp_worker_progress(t->w));
	cci_turn(t);
	tag_in(t);
	am_in(t);
	stream_in(t);
	rma_turn(t);
	if (atomic_load(&t->r->stop) != 0)
		return;
	tag_out(t);
	am_out(t);
	stream_out(t);
	cci_out(t);
}

static void
lend(struct talk *t, unsigned i, bool user_memory, struct lent *l)
{
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						 UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = HOSTILE_MEM};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	void *key;
	size_t len;

	if (user_memory)
		mp.address = calloc(1, HOSTILE_MEM);
	else
		mp.flags = UCP_MEM_MAP_ALLOCATE;
	HOSTILE_OK(ucp_mem_map(t->ctx, &mp, &t->mem[i]));
	HOSTILE_OK(ucp_mem_query(t->mem[i], &attr));
	HOSTILE_OK(ucp_rkey_pack(t->ctx, t->mem[i], &key, &len));
	memset(attr.address, 0, HOSTILE_MEM);
	memcpy(l->key, key, len);
	l->key_len = (uint32_t)len;
	l->addr = (uintptr_t)attr.address;
	ucp_rkey_buffer_release(key);
	*(i == 0 ? &t->ours : &t->theirs) = attr.address;
}

static void
buffers(struct talk_msg *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		m[i].buf = calloc(1, HOSTILE_BIG + sizeof(struct am_head));
}

void
talk_open(struct talk *t, struct round *r, int me)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
			    UCP_FEATURE_AMO64 | UCP_FEATURE_AMO32 | (r->sleeps ? UCP_FEATURE_WAKEUP : 0)};
	ucp_worker_params_t wp = {.field_mask = 0};
	ucp_am_handler_param_t am = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
						   UCP_AM_HANDLER_PARAM_FIELD_CB |
						   UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = HOSTILE_AM_OURS,
		.cb = am_cb,
		.arg = t};
	ucp_address_t *addr;
	uint32_t caps;
	size_t len;
	char *uri;

	memset(t, 0, sizeof(*t));
	t->r = r;
	t->me = me;
	t->mine = &r->side[me];
	t->other = &r->side[me == VICTIM ? HONEST : VICTIM];
	HOSTILE_OK(ucp_init(&params, NULL, &t->ctx));
	HOSTILE_OK(ucp_worker_create(t->ctx, &wp, &t->w));
	HOSTILE_OK(ucp_worker_set_am_recv_handler(t->w, &am));
	HOSTILE_OK(ucp_worker_get_address(t->w, &addr, &len));
	memcpy(t->mine->addr, addr, len);
	t->mine->addr_len = (uint32_t)len;
	ucp_worker_release_address(t->w, addr);
	lend(t, 0, r->seed % 3 == 0, &t->mine->ours);
	lend(t, 1, r->seed % 2 == 0, &t->mine->theirs);
	if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
		cci_create_endpoint(NULL, 0, &t->end, NULL) != CCI_SUCCESS ||
		cci_get_opt(t->end, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS)
		UTIL_DIE("no CCI endpoint");
	snprintf(t->mine->uri, sizeof(t->mine->uri), "%s", uri);
	free(uri);
	if (plx_worker_addr(cci_ep_of(t->end)->core, t->mine->cci_addr, sizeof(t->mine->cci_addr)) <= 0 ||
		plx_worker_addr(t->w->core, t->mine->core_addr, sizeof(t->mine->core_addr)) <= 0)
		UTIL_DIE("no address");
	buffers(t->tag_out, TALK_WINDOW);
	buffers(t->tag_in, TALK_WINDOW);
	buffers(t->am_out, TALK_WINDOW);
	buffers(t->am_in, TALK_WINDOW);
	buffers(&t->stream_out, 1);
	buffers(&t->stream_in, 1);
	t->rma_buf = calloc(1, HOSTILE_MEM);
	atomic_store(&t->mine->ready, 1);
}

static void
failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct talk *t = arg;

	(void)ep;
	if (atomic_load(&t->other->over) == 0) /* else it has all, and closes */
		WRONG(t, "the ep to the honest one failed: %s", ucs_status_string(status));
}

void
talk_meet(struct talk *t)
{
	ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
					    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
					    UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = (const ucp_address_t *)t->other->addr,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {failed, t}};

	while (atomic_load(&t->other->ready) == 0)
		usleep(1000);
	HOSTILE_OK(ucp_ep_create(t->w, &ep, &t->ep));
	HOSTILE_OK(ucp_ep_rkey_unpack(t->ep, t->other->ours.key, &t->rkey));
	for (uint64_t n = 0; n < TALK_WINDOW; n++)
		tag_post(t, n);
	if (t->me == HONEST && cci_connect(t->end, t->other->uri, &t->r->secret, 8, CCI_CONN_ATTR_RO, t, 0,
				       NULL) != CCI_SUCCESS)
		UTIL_DIE("the honest one can't connect");
}

static bool
all_is_here(const struct talk *t)
{
	for (unsigned k = 0; k < N_TALKS; k++) {
		if (k == TALK_RMA)
			continue;
		if (load(&t->mine->got[k]) != load(&t->other->sent[k]) ||
			load(&t->other->got[k]) != load(&t->mine->sent[k]))
			return false;
	}
	return t->rma_step == 0;
}

static void
say_what_lacks(const struct talk *t)
{
	static const char *const names[] = {"tag", "am", "stream", "rma", "cci"};

	for (unsigned k = 0; k < N_TALKS; k++)
		fprintf(stderr, "%s: received %llu of %llu, the other %llu of %llu\n", names[k],
			(unsigned long long)load(&t->mine->got[k]),
			(unsigned long long)load(&t->other->sent[k]),
			(unsigned long long)load(&t->other->got[k]),
			(unsigned long long)load(&t->mine->sent[k]));
	fprintf(stderr, "step %u of put and get\n", t->rma_step);
}

void
talk_end(struct talk *t)
{
	uint64_t end = cpu_ns() + (t->r->n_vandals == 0 ? END_S * 1000000000ull : 100000000ull);

	atomic_store(&t->mine->quiet, 1);
	while (atomic_load(&t->other->quiet) == 0 || !all_is_here(t)) {
		talk_turn(t);
		if (cpu_ns() < end)
			continue;
		if (t->r->n_vandals == 0)
			say_what_lacks(t);
		WRONG(t, "not all has come");
		break;
	}
	atomic_store(&t->mine->over, 1);
	end = cpu_ns() + END_S * 1000000000ull;
	while (atomic_load(&t->other->over) == 0 && cpu_ns() < end)
		talk_turn(t);
}

static void
op_give_up(struct talk *t, struct op *op)
{
	if (op->req == NULL)
		return;
	ucp_request_cancel(t->w, op->req);
	ucp_request_free(op->req);
	op->req = NULL;
}

static void
free_all(struct talk *t, struct talk_msg *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		op_give_up(t, &m[i].op);
		m[i].used = false;
	}
}

/* Its buffers are freed by the end of the process: requests that are given up may still name them. */
void
talk_close(struct talk *t)
{
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	uint64_t end = cpu_ns() + 2000000000ull;
	struct op op;

	free_all(t, t->tag_out, TALK_WINDOW);
	free_all(t, t->tag_in, TALK_WINDOW);
	free_all(t, t->am_out, TALK_WINDOW);
	free_all(t, t->am_in, TALK_WINDOW);
	free_all(t, &t->stream_out, 1);
	free_all(t, &t->stream_in, 1);
	op_give_up(t, &t->rma);
	ucp_rkey_destroy(t->rkey);
	op_begin(&op, TIMED(ucp_ep_close_nbx(t->ep, &force)));
	while (!op_over(&op) && cpu_ns() < end)
		TIMED(ucp_worker_progress(t->w));
	if (op.req != NULL)
		UTIL_DIE("a forced close does not end");
	talk_call();
	cci_destroy_endpoint(t->end);
	ucp_worker_destroy(t->w);
	talk_called("destroying the worker");
	ucp_mem_unmap(t->ctx, t->mem[0]);
	ucp_mem_unmap(t->ctx, t->mem[1]);
	ucp_cleanup(t->ctx);
	cci_finalize();
}
