/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * taken_back.c - rank 0 announces long messages, closes its ep by force at a random moment and writes
 * other bytes to the buffers at once; what rank 1 receives is right, or ends with an error
 *
 * arguments after N: tag or am, messages of a round, rounds, seed
 */
#define MP_FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_AM)
#include "mp.h"

enum { LEN = 65536, TAG_DATA = 1, TAG_END = 2, TAG_NEXT = 3, AM_ID = 5 };

static unsigned n_right, n_ended;

/* Until it is complete. */
static ucs_status_t
finish(struct mp *m, struct op *op)
{
	MP_UNTIL(m, util_done(op));
	util_free(op);
	return op->status;
}

static void
say(struct mp *m, int to, ucp_tag_t tag)
{
	struct op op;

	util_send(&op, m->ep[to], NULL, 0, tag, UTIL_NBX);
	if (finish(m, &op) != UCS_OK)
		UTIL_DIE("rank %d: tag %d: %s", m->rank, (int)tag, ucs_status_string(op.status));
}

static void
hear(struct mp *m, ucp_tag_t tag)
{
	struct op op;

	util_recv(&op, m->w, NULL, 0, tag, UTIL_ALL_BITS, UTIL_NO_IMM);
	if (finish(m, &op) != UCS_OK)
		UTIL_DIE("rank %d: tag %d: %s", m->rank, (int)tag, ucs_status_string(op.status));
}

/* --- rank 0 --- */

static void
send_one(struct mp *m, bool am, struct op *op, const void *buf)
{
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS, .cb.send = util_sent,
		.user_data = op, .flags = UCP_AM_SEND_FLAG_RNDV};
	ucs_status_ptr_t ptr;

	if (!am) {
		util_send(op, m->ep[1], buf, LEN, TAG_DATA, UTIL_NBX);
		return;
	}
	memset(op, 0, sizeof(*op));
	ptr = ucp_am_send_nbx(m->ep[1], AM_ID, NULL, 0, buf, LEN, &p);
	if (UCS_PTR_IS_ERR(ptr))
		UTIL_DIE("am: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
	op->req = ptr;
	op->immediate = ptr == NULL;
}

static void
round_of_sender(struct mp *m, bool am, int n, uint64_t *seed, struct op *ops, uint8_t *bufs)
{
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE};
	ucs_status_ptr_t close_req;
	uint64_t turns = mp_random(seed) % 400;
	int i;

	for (i = 0; i < n; i++) {
		util_fill(bufs + (size_t)i * LEN, LEN, 7);
		send_one(m, am, &ops[i], bufs + (size_t)i * LEN);
	}
	while (turns-- > 0)
		ucp_worker_progress(m->w);
	close_req = ucp_ep_close_nbx(m->ep[1], &force);
	for (i = 0; i < n; i++) {
		(void)finish(m, &ops[i]);
		memset(bufs + (size_t)i * LEN, 'X', LEN); /* it is ours again */
	}
	if (UCS_PTR_IS_PTR(close_req)) {
		MP_UNTIL(m, ucp_request_check_status(close_req) != UCS_INPROGRESS);
		ucp_request_free(close_req);
	}
	mp_connect(m, 1);
	say(m, 1, TAG_END);
	hear(m, TAG_NEXT);
}

/* --- rank 1 --- */

static void
judge(ucs_status_t status, const uint8_t *got, size_t len)
{
	static uint8_t want[LEN];

	n_ended++;
	if (status != UCS_OK)
		return;
	n_right++;
	util_fill(want, LEN, 7);
	if (len != LEN || memcmp(got, want, LEN) != 0)
		UTIL_DIE("UCS_OK with bytes that were never sent: %02x instead of %02x", got[100],
			want[100]);
}

struct fetch {
	uint8_t buf[LEN];
};

static unsigned n_fetches;

static void
fetched(void *request, ucs_status_t status, size_t len, void *arg)
{
	struct fetch *f = arg;

	judge(status, f->buf, len);
	free(f);
	ucp_request_free(request);
	n_fetches--;
}

static ucs_status_t
on_am(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	struct fetch *f = malloc(sizeof(*f));
	ucp_request_param_t p = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
		UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL, .cb.recv_am = fetched,
		.user_data = f};
	struct mp *m = arg;
	ucs_status_ptr_t ptr;

	(void)header;
	(void)header_len;
	if (f == NULL || !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
		UTIL_DIE("an active message that was not announced, or no memory");
	n_fetches++;
	ptr = ucp_am_recv_data_nbx(m->w, data, f->buf, len, &p);
	if (UCS_PTR_IS_ERR(ptr))
		UTIL_DIE("am data: %s", ucs_status_string(UCS_PTR_STATUS(ptr)));
	return UCS_INPROGRESS;
}

static void
round_of_receiver(struct mp *m, bool am)
{
	static uint8_t buf[LEN];
	ucp_tag_recv_info_t info;
	struct op end, data;

	util_recv(&end, m->w, NULL, 0, TAG_END, UTIL_ALL_BITS, UTIL_NO_IMM);
	while (!util_done(&end) || n_fetches != 0 ||
		ucp_tag_probe_nb(m->w, TAG_DATA, UTIL_ALL_BITS, 0, &info) != NULL) {
		ucp_worker_progress(m->w);
		if (am || ucp_tag_probe_nb(m->w, TAG_DATA, UTIL_ALL_BITS, 0, &info) == NULL)
			continue;
		util_recv(&data, m->w, buf, LEN, TAG_DATA, UTIL_ALL_BITS, UTIL_NO_IMM);
		(void)finish(m, &data);
		judge(data.status, buf, data.info.length);
	}
	util_free(&end);
	say(m, 0, TAG_NEXT);
}

int
main(int argc, char **argv)
{
	ucp_am_handler_param_t h = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
		UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG, .id = AM_ID, .cb = on_am};
	int n, rounds;
	uint64_t seed;
	uint8_t *bufs;
	struct op *ops;
	struct mp m;
	bool am;

	mp_open(&m, argc, argv);
	am = strcmp(argv[4], "am") == 0;
	n = atoi(argv[5]);
	rounds = atoi(argv[6]);
	seed = strtoull(argv[7], NULL, 10);
	m.err_mode = UCP_ERR_HANDLING_MODE_PEER;
	h.arg = &m;
	UTIL_OK(ucp_worker_set_am_recv_handler(m.w, &h));
	mp_connect(&m, !m.rank);
	ops = calloc((size_t)n, sizeof(*ops));
	bufs = malloc((size_t)n * LEN);
	if (ops == NULL || bufs == NULL)
		UTIL_DIE("no memory");
	for (int i = 0; i < rounds; i++) {
		if (m.rank == 0)
			round_of_sender(&m, am, n, &seed, ops, bufs);
		else
			round_of_receiver(&m, am);
	}
	if (m.rank == 1 && n_ended < (unsigned)rounds)
		UTIL_DIE("too little happened: %u of %d rounds", n_ended, rounds);
	mp_close_eps(&m);
	mp_close(&m);
	free(ops);
	free(bufs);
	return 0;
}
