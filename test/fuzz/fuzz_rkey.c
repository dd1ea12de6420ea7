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
static struct plx_wire_mem real[3]; /* of ours: key, export; of the owner's */
static size_t real_len[3];
static uint64_t page[512];

/* The process whose memory is named; before there is an EAL. */
static void
owner_start(struct plx_seg_name *name)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	pid_t pid;

	FUZZ_CHECK(fd >= 0 && ftruncate(fd, OWNER_LEN) == 0 && fstat(fd, &st) == 0);
	pid = fork();
	FUZZ_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	plx_proc_self(&name->proc);
	name->proc.pid = (uint32_t)pid;
	name->proc.start = plx_proc_start(name->proc.pid);
	name->fd = (uint32_t)fd;
	name->ino = st.st_ino;
	name->len = OWNER_LEN;
}

static void
real_fill(void)
{
	ucp_memh_pack_params_t p = {.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
		.flags = UCP_MEMH_PACK_FLAG_EXPORT};
	size_t len;
	void *buf;

	FUZZ_CHECK(ucp_rkey_pack(context, mem, &buf, &len) == UCS_OK && len <= sizeof(real[0]));
	memcpy(&real[0], buf, real_len[0] = len);
	ucp_rkey_buffer_release(buf);
	if (ucp_memh_pack(mem, &p, &buf, &len) == UCS_OK) {
		memcpy(&real[1], buf, real_len[1] = RTE_MIN(len, sizeof(real[1])));
		ucp_memh_buffer_release(buf, NULL);
	} else {
		real[1] = real[0];
		real[1].kind = PLX_WIRE_MEM_EXPORT;
		real_len[1] = real_len[0];
	}
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
	real[2] = real[1];
	real[2].bytes = offsetof(struct plx_wire_mem, more);
	real[2].proc = plx_proc_id(&name.proc);
	real[2].host = name.proc.host;
	real[2].start = name.proc.start;
	real[2].pid = name.proc.pid;
	real[2].fd = name.fd;
	real[2].ino = name.ino;
	real[2].seg_len = name.len;
	real_len[2] = real[2].bytes;
	return 0;
}

/* Magic, version and checksum as they should be; nobody but those we know is named. */
static void
mem_fix(uint8_t *p)
{
	const size_t key = sizeof(struct plx_wire_mem_key);
	struct plx_wire_mem m = {.pad = 0};

	memcpy(&m, p, PLX_WIRE_MEM_MAX);
	m.magic = real[0].magic;
	m.version = real[0].version;
	m.n_more %= PLX_WIRE_MEM_KEYS;
	m.bytes = (m.bytes < offsetof(struct plx_wire_mem, more) ? offsetof(struct plx_wire_mem, host)
								 : offsetof(struct plx_wire_mem, more)) +
		m.n_more * key;
	m.crc = 0;
	m.crc = rte_hash_crc(&m, m.bytes, ~0u);
	memcpy(p, &m, PLX_WIRE_MEM_MAX);
}

static void
only_ours(uint8_t *p)
{
	struct plx_wire_mem m;

	memcpy(&m, p, PLX_WIRE_MEM_MAX);
	if (m.pid != (uint32_t)getpid() && m.pid != real[2].pid)
		m.pid = NOBODY;
	memcpy(p, &m, PLX_WIRE_MEM_MAX);
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
	(void)ucp_rkey_ptr(key, real[0].base, &at);
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	uint8_t how = fuzz_u8(&in), p[PLX_WIRE_MEM_MAX], *exact;
	unsigned which = (how >> 2 & 3) % 3;
	struct plx_wire_mem m;
	bool mapped;
	size_t n;

	fuzz_bytes(&in, p, sizeof(p));
	if (how & 1) {
		for (size_t i = 0; i < real_len[which]; i++)
			p[i] ^= ((const uint8_t *)&real[which])[i];
	}
	only_ours(p);
	if (how & 2)
		mem_fix(p);
	/* In a block of the length that it claims: who reads on is found. */
	n = RTE_MIN(plx_wire_mem_len(p), sizeof(p));
	exact = malloc(RTE_MAX(n, (size_t)PLX_WIRE_MEM_HEAD));
	FUZZ_CHECK(exact != NULL);
	memcpy(exact, p, RTE_MAX(n, (size_t)PLX_WIRE_MEM_HEAD));
	if (plx_wire_mem_len(p) <= sizeof(p))
		(void)plx_wire_mem_unpack(exact, &m, &mapped);
	use_key(exact);
	use_export(exact);
	free(exact);
	return 0;
}
