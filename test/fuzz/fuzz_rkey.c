/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_rkey.c - packed regions that somebody handed us: keys, and exported memory
 *
 * Design notes
 * As fuzz_addr.c: laid over a real one or taken as it is, and the checksum is made
 * right on request. A process of its own has a segment, so that there is something
 * to map; any other process that an input names is none.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdalign.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "plx_proc.h"
#include "plx_region.h"
#include "ucp_int.h"

#define OWNER_LEN (64u << 10)
#define NOBODY	  0x7fffffffu

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_mem_h mem;

/* What is overlaid: a key of ours, an export of ours, one of the owner's. */
union blob {
	uint8_t key[PLX_WIRE_RKEY_MAX];
	struct plx_wire_export export;
};

static union blob real[3];
static size_t real_len[3];
static uint64_t base;
static uint64_t page[512];

static void
offer(struct plx_seg_name *name)
{
	static struct plx_seg seg;

	FUZZ_CHECK(plx_seg_create(&seg, NULL, OWNER_LEN, false) == 0 && plx_seg_name(&seg, name) == 0);
}

/* The process whose memory is named; before there is an EAL. */
static void
owner_start(struct plx_seg_name *name)
{
	int fd[2];
	pid_t pid;

	FUZZ_CHECK(pipe(fd) == 0);
	pid = fork();
	FUZZ_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		offer(name);
		FUZZ_CHECK(write(fd[1], name, sizeof(*name)) == (ssize_t)sizeof(*name));
		for (;;)
			pause();
	}
	FUZZ_CHECK(read(fd[0], name, sizeof(*name)) == (ssize_t)sizeof(*name));
	close(fd[0]);
	close(fd[1]);
}

static void
real_fill(void)
{
	size_t len;
	void *buf;

	FUZZ_CHECK(ucp_rkey_pack(context, mem, &buf, &len) == UCS_OK && len <= sizeof(real[0].key));
	memcpy(&real[0], buf, real_len[0] = len);
	ucp_rkey_buffer_release(buf);
	base = (uintptr_t)page;
}

static void
export_fill(union blob *b, const struct plx_seg_name *name)
{
	b->export = (struct plx_wire_export){.rights = 3, .host = name->proc.host,
		.proc = name->proc.id, .id = name->id, .len = name->len};
	plx_wire_export_seal(&b->export);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	ucp_worker_params_t wp = {.field_mask = 0};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			UCP_MEM_MAP_PARAM_FIELD_LENGTH, .address = page, .length = sizeof(page)};
	struct plx_seg_name name;
	ucp_address_t *addr;
	size_t len;

	(void)argc;
	(void)argv;
	owner_start(&name);
	fuzz_start();
	context = fuzz_context("shm", NULL, 0);
	FUZZ_CHECK(ucp_worker_create(context, &wp, &worker) == UCS_OK);
	FUZZ_CHECK(ucp_worker_get_address(worker, &addr, &len) == UCS_OK);
	ep_params.address = addr;
	FUZZ_CHECK(ucp_ep_create(worker, &ep_params, &ep) == UCS_OK);
	ucp_worker_release_address(worker, addr);
	FUZZ_CHECK(ucp_mem_map(context, &mp, &mem) == UCS_OK);
	real_fill();
	export_fill(&real[2], &name);
	offer(&name);
	export_fill(&real[1], &name);
	real_len[1] = real_len[2] = sizeof(struct plx_wire_export);
	return 0;
}

/* Magic, version and checksum of a key as they should be. */
static void
key_fix(uint8_t *p)
{
	alignas(8) uint8_t copy[PLX_WIRE_RKEY_MAX + 8] = {0};
	size_t bytes;
	uint32_t crc;

	memcpy(p, real[0].key, 2);
	p[2] = (real[0].key[2] & 0xf0) | (p[2] & 15) % (PLX_WIRE_RKEY_KEYS + 1);
	bytes = plx_wire_rkey_len(p);
	memcpy(copy, p, bytes);
	memset(copy + 4, 0, 4);
	crc = rte_hash_crc(copy, bytes, ~0u);
	memcpy(p + 4, &crc, 4);
}

static void
export_fix(uint8_t *p)
{
	struct plx_wire_export e;

	memcpy(&e, p, sizeof(e));
	plx_wire_export_seal(&e);
	memcpy(p, &e, sizeof(e));
}

/* Nobody but those we know is named. */
static void
only_ours(uint8_t *p)
{
	struct plx_wire_export e;

	memcpy(&e, p, sizeof(e));
	if (e.proc != real[1].export.proc && e.proc != real[2].export.proc)
		e.proc = NOBODY;
	memcpy(p, &e, sizeof(e));
}

static void
use_key(const uint8_t *p)
{
	ucp_rkey_compare_params_t none = {.field_mask = 0};
	ucp_rkey_h key, second;
	int order = 0;
	void *at;

	if (ucp_ep_rkey_unpack(ep, p, &key) != UCS_OK)
		return;
	(void)ucp_rkey_ptr(key, base, &at);
	FUZZ_CHECK(ucp_ep_rkey_unpack(ep, p, &second) == UCS_OK);
	FUZZ_CHECK(ucp_rkey_compare(worker, key, second, &none, &order) == UCS_OK && order == 0);
	ucp_rkey_destroy(second);
	ucp_rkey_destroy(key);
}

static void
use_export(const uint8_t *p)
{
	ucp_mem_map_params_t mp = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER,
		.exported_memh_buffer = p};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH};
	ucp_mem_h m;

	if (ucp_mem_map(context, &mp, &m) != UCS_OK)
		return;
	FUZZ_CHECK(ucp_mem_query(m, &attr) == UCS_OK);
	if (attr.length != 0) { /* what is mapped is there, from end to end */
		volatile uint8_t *p0 = attr.address;

		(void)p0[0];
		(void)p0[attr.length - 1];
	}
	FUZZ_CHECK(ucp_mem_unmap(context, m) == UCS_OK);
}

/* In a block of the length that it claims: who reads on is found. */
static uint8_t *
exactly(const uint8_t *p, size_t len)
{
	uint8_t *exact = malloc(len);

	FUZZ_CHECK(exact != NULL);
	return memcpy(exact, p, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	uint8_t how = fuzz_u8(&in), p[sizeof(union blob)], *exact;
	unsigned which = (how >> 2 & 3) % 3;
	struct plx_wire_rkey k;

	fuzz_bytes(&in, p, sizeof(p));
	if (how & 1) {
		for (size_t i = 0; i < real_len[which]; i++)
			p[i] ^= ((const uint8_t *)&real[which])[i];
	}
	if (which == 0) {
		if (how & 2)
			key_fix(p);
		exact = exactly(p, RTE_MAX(plx_wire_rkey_len(p), (size_t)PLX_WIRE_RKEY_HEAD));
		(void)plx_wire_rkey_unpack(exact, &k);
		use_key(exact);
	} else {
		struct plx_wire_export e;

		only_ours(p);
		if (how & 2)
			export_fix(p);
		memcpy(&e, p, sizeof(e));
		exact = exactly(p, e.bytes == sizeof(e) ? sizeof(e) : PLX_WIRE_EXPORT_HEAD);
		use_export(exact);
	}
	free(exact);
	return 0;
}
