/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_addr.c - worker addresses that somebody handed us, and eps made from them
 *
 * Design notes
 * The input is laid over a real address (exclusive or), or taken as it is; length and
 * checksum are made right on request. Processes that an address names are this one or
 * none: what other processes have open is not ours to touch.
 */
#include "fuzz.h"

#include <unistd.h>

#include <rte_hash_crc.h>

#include "plx_unit_shm.h"
#include "ucp_int.h"

#define TURNS	70 /* the clock is looked at every 64 */
#define NOBODY	0x7fffffffu
#define CRC_OFF 8
#define UID_OFF 12

static ucp_context_h context;
static ucp_worker_h worker, other;
static unsigned n_runs;
static uint8_t real[PLX_WIRE_ADDR_MAX];
static size_t real_len;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const settings[][2] = {{"worker.wait", "spin"},
		{"worker.peer_check_ms", "1"}};

	(void)argc;
	(void)argv;
	fuzz_start();
	context = fuzz_context("shm", settings, RTE_DIM(settings));
	return 0;
}

static void
workers_open(void)
{
	ucp_worker_params_t wp = {.field_mask = 0};
	int len;

	ucp_worker_destroy(worker);
	ucp_worker_destroy(other);
	FUZZ_CHECK(ucp_worker_create(context, &wp, &worker) == UCS_OK);
	FUZZ_CHECK(ucp_worker_create(context, &wp, &other) == UCS_OK);
	len = plx_worker_addr(other->core, real, sizeof(real));
	FUZZ_CHECK(len > 0);
	real_len = (size_t)len;
}

/* Magic, version, length and checksum as they should be. */
static void
addr_fix(uint8_t *p, size_t len)
{
	const uint16_t all = (uint16_t)RTE_MAX(len, (size_t)20);
	uint8_t body[PLX_WIRE_ADDR_MAX] = {0};
	uint32_t head, crc;

	memcpy(p, real, 4);
	memcpy(p + 4, &all, 2);
	p[6] = real[6];
	memcpy(&head, p + 4, 4);
	memcpy(body, p + UID_OFF, all - UID_OFF);
	crc = rte_hash_crc(body, all - UID_OFF, rte_hash_crc_4byte(head, ~0u));
	memcpy(p + CRC_OFF, &crc, 4);
}

/* What was accepted says the same when it is written again. */
static void
same_again(const uint8_t *p, const struct plx_wire_addr *a)
{
	uint8_t again[PLX_WIRE_ADDR_MAX];
	int len = plx_wire_addr_pack(a, again, sizeof(again));

	FUZZ_CHECK(len > 0 && (size_t)len == plx_wire_addr_len(p));
	FUZZ_CHECK(memcmp(p, again, (size_t)len) == 0);
}

static void
only_ours(struct plx_wire_addr *a)
{
	for (unsigned i = 0; i < a->n_devs; i++) {
		struct plx_wire_addr_dev *d = &a->devs[i];
		struct shm_addr shm;

		if (d->len != sizeof(shm))
			continue;
		memcpy(&shm, d->bytes, sizeof(shm));
		if (shm.pid != (uint32_t)getpid())
			shm.proc = shm.pid < 1 << 30 ? NOBODY : 0;
		memcpy(d->bytes, &shm, sizeof(shm));
	}
}

static void
turns(void)
{
	for (unsigned i = 0; i < TURNS; i++) {
		ucp_worker_progress(worker);
		ucp_worker_progress(other);
	}
}

static void
on_ep_err(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)arg;
	(void)ep;
	(void)status;
}

static void
use(const void *addr)
{
	ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER, .err_handler.cb = on_ep_err, .address = addr};
	ucp_request_param_t none = {.op_attr_mask = 0};
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE};
	void *req[2];
	ucp_ep_h ep;

	if (ucp_ep_create(worker, &p, &ep) != UCS_OK)
		return;
	req[0] = ucp_tag_send_nbx(ep, "12345678", 8, 1, &none);
	turns();
	req[1] = ucp_ep_close_nbx(ep, &force);
	turns();
	for (unsigned i = 0; i < 2; i++)
		if (UCS_PTR_IS_PTR(req[i]))
			ucp_request_free(req[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	ucp_worker_address_attr_t attr = {.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID};
	uint8_t how = fuzz_u8(&in), p[PLX_WIRE_ADDR_MAX + 64];
	size_t n = (size_t)(in.end - in.p);
	struct plx_wire_addr a;
	int packed;

	if (n_runs++ % 256 == 0)
		workers_open();
	n = RTE_MIN(n, (size_t)PLX_WIRE_ADDR_MAX);
	fuzz_bytes(&in, p, sizeof(p));
	if (how & 1) {
		n = how & 4 ? n : real_len;
		for (size_t i = 0; i < real_len; i++)
			p[i] ^= real[i];
	}
	if (how & 2)
		addr_fix(p, n);
	if (plx_wire_addr_unpack(p, &a) != 0) {
		FUZZ_CHECK(ucp_worker_address_query((ucp_address_t *)p, &attr) ==
			UCS_ERR_INVALID_ADDR);
		return 0;
	}
	same_again(p, &a);
	only_ours(&a);
	packed = plx_wire_addr_pack(&a, p, sizeof(p));
	FUZZ_CHECK(packed > 0);
	FUZZ_CHECK(ucp_worker_address_query((ucp_address_t *)p, &attr) == UCS_OK);
	use(p);
	return 0;
}
