/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cmd_rma.c - memory and keys to it; put, get and atomics
 *
 * Design notes
 * - The pattern of a byte depends on its offset in the memory: mem check expects there what a
 *   put writes, and check expects of a get what mem fill wrote.
 * - A key as text is "ADDRESS:SIZE:BYTES", all hexadecimal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "testcomm.h"

#define RMA_MAX_KEY 4096 /* bytes of a packed key */

static struct tc_mem *
mem_find(struct tc *tc, const char *name)
{
	return tc_need(tc, (void **)tc->mem, "memory", name);
}

static struct tc_key *
key_find(struct tc *tc, const char *name)
{
	return tc_need(tc, (void **)tc->key, "key", name);
}

/* ---- memory ---- */

static int
mem_map(struct tc *tc, struct tc_mem *m)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
		UCP_MEM_MAP_PARAM_FIELD_FLAGS, .length = m->size, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucs_status_t status = ucp_mem_map(tc->context, &params, &m->mem);

	tc->last.status = status;
	if (status != UCS_OK)
		return tc_error(tc, "the memory cannot be mapped: %s", ucs_status_string(status));
	status = ucp_mem_query(m->mem, &attr);
	if (status != UCS_OK) {
		ucp_mem_unmap(tc->context, m->mem);
		return tc_error(tc, "the memory has no address: %s", ucs_status_string(status));
	}
	m->addr = attr.address;
	tc_fill(m->addr, m->size, tc->pattern, 0, 0);
	return 0;
}

static int
mem_create(struct tc *tc, int argc, char **argv)
{
	struct tc_mem *m;
	uint64_t size;

	(void)argc;
	if (tc_number(tc, argv[1], &size) != 0)
		return -1;
	if (size == 0 || size > TC_MAX_SIZE)
		return tc_error(tc, "memory has 1 to %llu bytes here", (unsigned long long)TC_MAX_SIZE);
	if (tc_library(tc) != 0)
		return -1;
	m = tc_new(tc, (void **)tc->mem, sizeof(*m), argv[0]);
	if (m == NULL)
		return -1;
	m->size = size;
	if (mem_map(tc, m) != 0) {
		tc_remove((void **)tc->mem, m);
		return -1;
	}
	fprintf(tc->out, "memory %s of %llu bytes\n", m->name, (unsigned long long)size);
	return 0;
}

static void
mem_free(struct tc *tc, struct tc_mem *m)
{
	ucp_mem_unmap(tc->context, m->mem);
	tc_remove((void **)tc->mem, m);
}

void
tc_mems_free(struct tc *tc)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->mem[i] != NULL)
			mem_free(tc, tc->mem[i]);
	}
}

static int
mem_list(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	tc->last.count = 0;
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->mem[i] == NULL)
			continue;
		fprintf(tc->out, "memory %s of %llu bytes\n", tc->mem[i]->name,
			(unsigned long long)tc->mem[i]->size);
		tc->last.count++;
	}
	return 0;
}

static int
mem_destroy(struct tc *tc, int argc, char **argv)
{
	struct tc_mem *m = mem_find(tc, argv[0]);

	(void)argc;
	if (m == NULL)
		return -1;
	mem_free(tc, m);
	return 0;
}

static int
mem_key(struct tc *tc, int argc, char **argv)
{
	struct tc_mem *m = mem_find(tc, argv[0]);
	ucs_status_t status;
	uint8_t *bytes;
	void *packed;
	size_t len;

	(void)argc;
	if (m == NULL)
		return -1;
	status = ucp_rkey_pack(tc->context, m->mem, &packed, &len);
	tc->last.status = status;
	if (status != UCS_OK)
		return tc_error(tc, "%s has no key: %s", m->name, ucs_status_string(status));
	fprintf(tc->out, "%" PRIxPTR ":%" PRIx64 ":", (uintptr_t)m->addr, m->size);
	bytes = packed;
	for (size_t i = 0; i < len; i++)
		fprintf(tc->out, "%02x", bytes[i]);
	fputc('\n', tc->out);
	tc->last.length = len;
	ucp_rkey_buffer_release(packed);
	return 0;
}

static int
mem_fill(struct tc *tc, int argc, char **argv)
{
	struct tc_mem *m = mem_find(tc, argv[0]);
	uint64_t pattern = tc->pattern;

	if (m == NULL || (argc > 1 && tc_number(tc, argv[1], &pattern) != 0))
		return -1;
	tc_fill(m->addr, m->size, pattern, 0, 0);
	return 0;
}

/* AT and LEN of a command; without them the range is all of the memory. */
static int
mem_range(struct tc *tc, const struct tc_mem *m, int argc, char **argv, uint64_t *at, uint64_t *len)
{
	*at = 0;
	if ((argc > 0 && tc_number(tc, argv[0], at) != 0) ||
		(argc > 1 && tc_number(tc, argv[1], len) != 0))
		return -1;
	if (argc < 2)
		*len = *at <= m->size ? m->size - *at : 0;
	if (*at <= m->size && *len <= m->size - *at)
		return 0;
	return tc_error(tc, "%s has only %llu bytes", m->name, (unsigned long long)m->size);
}

static int
mem_check(struct tc *tc, int argc, char **argv)
{
	struct tc_mem *m = mem_find(tc, argv[0]);
	uint64_t at, len, bad;

	if (m == NULL || mem_range(tc, m, argc - 1, argv + 1, &at, &len) != 0)
		return -1;
	bad = tc_mismatch(m->addr + at, len, tc->pattern, 0, at);
	if (bad != UINT64_MAX)
		return tc_error(tc, "%s differs from the pattern at offset %llu: 0x%02x", m->name,
			(unsigned long long)(at + bad), m->addr[at + bad]);
	fprintf(tc->out, "%s: %llu bytes are correct\n", m->name, (unsigned long long)len);
	return 0;
}

/* ---- keys ---- */

static int
key_read(struct tc *tc, struct tc_key *k, const char *text)
{
	uint8_t bytes[RMA_MAX_KEY];
	ucs_status_t status;
	size_t len;
	int at = 0;

	if (sscanf(text, "%" SCNx64 ":%" SCNx64 ":%n", &k->addr, &k->size, &at) != 2 || at == 0 ||
		tc_hex(text + at, bytes, &len, sizeof(bytes)) != 0)
		return tc_error(tc, "\"%.40s\" is no key: mem key writes one", text);
	status = ucp_ep_rkey_unpack(k->ep->ep, bytes, &k->rkey);
	tc->last.status = status;
	if (status == UCS_OK)
		return 0;
	return tc_error(tc, "the key cannot be used: %s", ucs_status_string(status));
}

static int
key_create(struct tc *tc, int argc, char **argv)
{
	struct tc_ep *ep = tc_ep_find(tc, argv[1]);
	struct tc_key *k;
	char *text = NULL;
	int rc;

	if (argc > 3 && strcmp(argv[3], "wait") != 0)
		return tc_error(tc, "\"%s\" is not \"wait\"", argv[3]);
	if (ep == NULL)
		return -1;
	if (argv[2][0] == '@' && (text = tc_file(tc, argv[2] + 1, argc > 3)) == NULL)
		return -1;
	k = tc_new(tc, (void **)tc->key, sizeof(*k), argv[0]);
	if (k == NULL) {
		free(text);
		return -1;
	}
	k->ep = ep;
	rc = key_read(tc, k, text != NULL ? text : argv[2]);
	free(text);
	if (rc != 0)
		tc_remove((void **)tc->key, k);
	else
		fprintf(tc->out, "key %s on endpoint %s, to %llu bytes\n", argv[0], ep->name,
			(unsigned long long)k->size);
	return rc;
}

static void
key_free(struct tc *tc, struct tc_key *k)
{
	ucp_rkey_destroy(k->rkey);
	tc_remove((void **)tc->key, k);
}

/* An endpoint is closed: its keys go. */
void
tc_keys_drop(struct tc *tc, struct tc_ep *ep)
{
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->key[i] != NULL && tc->key[i]->ep == ep)
			key_free(tc, tc->key[i]);
	}
}

static int
key_list(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	tc->last.count = 0;
	for (unsigned i = 0; i < TC_MAX_LIST; i++) {
		if (tc->key[i] == NULL)
			continue;
		fprintf(tc->out, "key %s on endpoint %s, to %llu bytes\n", tc->key[i]->name,
			tc->key[i]->ep->name, (unsigned long long)tc->key[i]->size);
		tc->last.count++;
	}
	return 0;
}

static int
key_destroy(struct tc *tc, int argc, char **argv)
{
	struct tc_key *k = key_find(tc, argv[0]);

	(void)argc;
	if (k == NULL)
		return -1;
	key_free(tc, k);
	return 0;
}

/* ---- operations ---- */

static int
rma_put(struct tc *tc, int argc, char **argv)
{
	struct tc_key *k = key_find(tc, argv[0]);
	ucp_request_param_t param = {0};
	struct tc_req *r;
	uint64_t at;

	(void)argc;
	if (k == NULL || tc_number(tc, argv[1], &at) != 0)
		return -1;
	r = tc_req_data(tc, TC_PUT, k->ep->worker, 0, at, argv[2]);
	if (r == NULL)
		return -1;
	tc_req_param(&param, r);
	tc_req_posted(tc, r, ucp_put_nbx(k->ep->ep, r->buf, r->size, k->addr + at, k->rkey, &param));
	return tc_req_report(tc, r);
}

static int
rma_get(struct tc *tc, int argc, char **argv)
{
	struct tc_key *k = key_find(tc, argv[0]);
	ucp_request_param_t param = {0};
	uint64_t at, size;
	struct tc_req *r;

	(void)argc;
	if (k == NULL || tc_number(tc, argv[1], &at) != 0 || tc_number(tc, argv[2], &size) != 0)
		return -1;
	r = tc_req_new(tc, TC_GET, k->ep->worker, 0, size);
	if (r == NULL)
		return -1;
	r->at = at;
	r->length = size;
	tc_req_param(&param, r);
	tc_req_posted(tc, r, ucp_get_nbx(k->ep->ep, r->buf, r->size, k->addr + at, k->rkey, &param));
	return tc_req_report(tc, r);
}

struct atomic {
	ucp_atomic_op_t op;
	uint64_t value, compare, bits;
	bool compares, fetch;
};

static int
atomic_option(struct tc *tc, struct atomic *a, int argc, char **argv, int *i)
{
	bool compare = strcmp(argv[*i], "compare") == 0;

	if (strcmp(argv[*i], "fetch") == 0) {
		a->fetch = true;
		return 0;
	}
	if (!compare && strcmp(argv[*i], "bits") != 0)
		return tc_error(tc, "\"%s\" is not compare, bits or fetch", argv[*i]);
	if (*i + 1 == argc)
		return tc_error(tc, "%s needs a number", argv[*i]);
	a->compares = a->compares || compare;
	return tc_number(tc, argv[++*i], compare ? &a->compare : &a->bits);
}

static int
atomic_words(struct tc *tc, struct atomic *a, int argc, char **argv)
{
	static const char *const names[] = {
		[UCP_ATOMIC_OP_ADD] = "add", [UCP_ATOMIC_OP_SWAP] = "swap", [UCP_ATOMIC_OP_CSWAP] = "cswap",
		[UCP_ATOMIC_OP_AND] = "and", [UCP_ATOMIC_OP_OR] = "or", [UCP_ATOMIC_OP_XOR] = "xor"};
	size_t op = 0, n = sizeof(names) / sizeof(names[0]);

	while (op < n && strcmp(names[op], argv[0]) != 0)
		op++;
	if (op == n)
		return tc_error(tc, "\"%s\" is not add, and, or, xor, swap or cswap", argv[0]);
	a->op = (ucp_atomic_op_t)op;
	if (tc_number(tc, argv[1], &a->value) != 0)
		return -1;
	for (int i = 2; i < argc; i++) {
		if (atomic_option(tc, a, argc, argv, &i) != 0)
			return -1;
	}
	if (a->bits != 32 && a->bits != 64)
		return tc_error(tc, "an atomic has 32 or 64 bits");
	if (a->compares != (a->op == UCP_ATOMIC_OP_CSWAP))
		return tc_error(tc, "cswap, and no other, compares: cswap VALUE compare N");
	a->fetch = a->fetch || a->op == UCP_ATOMIC_OP_SWAP || a->op == UCP_ATOMIC_OP_CSWAP;
	return 0;
}

/* The old value, if it is fetched, comes to the buffer of the request. */
static void
atomic_post(struct tc *tc, struct tc_key *k, struct tc_req *r, const struct atomic *a)
{
	ucp_request_param_t param = {0};

	tc_req_param(&param, r);
	param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
	param.datatype = ucp_dt_make_contig(r->size);
	r->operand = a->op == UCP_ATOMIC_OP_CSWAP ? a->compare : a->value;
	if (a->fetch) {
		param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
		param.reply_buffer = r->buf;
		r->length = r->size;
		if (a->op == UCP_ATOMIC_OP_CSWAP)
			memcpy(r->buf, &a->value, r->size);
	}
	tc_req_posted(tc, r,
		ucp_atomic_op_nbx(k->ep->ep, a->op, &r->operand, 1, k->addr + r->at, k->rkey, &param));
}

static int
rma_atomic(struct tc *tc, int argc, char **argv)
{
	struct tc_key *k = key_find(tc, argv[0]);
	struct atomic a = {.bits = 64};
	struct tc_req *r;
	uint64_t at;

	if (k == NULL || tc_number(tc, argv[1], &at) != 0 || atomic_words(tc, &a, argc - 2, argv + 2) != 0)
		return -1;
	r = tc_req_new(tc, TC_ATOMIC, k->ep->worker, 0, a.bits / 8);
	if (r == NULL)
		return -1;
	r->at = at;
	atomic_post(tc, k, r, &a);
	return tc_req_report(tc, r);
}

const struct tc_cmd tc_cmd_rma[] = {
	{"mem create", "NAME SIZE", "allocate memory for peers and fill it with the pattern", 2, 2,
		mem_create},
	{"mem list", "", "the memory", 0, 0, mem_list},
	{"mem destroy", "MEM", "unmap and free it", 1, 1, mem_destroy},
	{"mem key", "MEM", "its key; \"> FILE\" writes it for others", 1, 1, mem_key},
	{"mem fill", "MEM [PATTERN]", "fill it with the pattern", 1, 2, mem_fill},
	{"mem check", "MEM [AT] [LEN]", "compare it with the pattern", 1, 3, mem_check},
	{"key create", "NAME EP TEXT|@FILE [wait]",
		"a key to the memory of an endpoint's peer; wait: until FILE is there", 3, 4, key_create},
	{"key list", "", "the keys", 0, 0, key_list},
	{"key destroy", "KEY", "destroy it", 1, 1, key_destroy},
	{"put", "KEY AT SIZE|\"TEXT\"", "write SIZE bytes of the pattern at AT, or the text", 3, 3,
		rma_put},
	{"get", "KEY AT SIZE", "read SIZE bytes at AT", 3, 3, rma_get},
	{"atomic", "KEY AT add|and|or|xor|swap|cswap VALUE [compare N] [fetch] [bits 32|64]",
		"fetch, swap and cswap: the old value is there for expect value", 4, 9, rma_atomic},
	{0},
};
