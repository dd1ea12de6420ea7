/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_start.c - a start, and the in-memory device with addresses that are checked
 *
 * Design notes
 * Addresses in messages are a peer's to choose. A real device asks the kernel, which
 * knows what is mapped; the in-memory one would just copy. So the device here is that
 * one but for reads and writes of peers' memory, which must lie in what was allowed.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../fake_dev.h"
#include "cci_int.h"
#include "plx_conf.h"
#include "plx_init.h"
#include "plx_log.h"
#include "ucp_int.h"

#define ALLOWED_MAX 512

static struct {
	uintptr_t base;
	size_t len;
} allowed[ALLOWED_MAX];
static unsigned n_allowed;

static struct plx_dev_ops ops;

void
fuzz_allow(const void *base, size_t len)
{
	FUZZ_CHECK(n_allowed < ALLOWED_MAX);
	allowed[n_allowed].base = (uintptr_t)base;
	allowed[n_allowed++].len = len;
}

void
fuzz_forbid(const void *base)
{
	for (unsigned i = 0; i < n_allowed; i++) {
		if (allowed[i].base != (uintptr_t)base)
			continue;
		allowed[i] = allowed[--n_allowed];
		return;
	}
}

void
fuzz_forbid_all(void)
{
	n_allowed = 0;
}

static int
checked_rma(const struct plx_rma_op *op)
{
	for (unsigned i = 0; i < n_allowed; i++) {
		if (op->remote >= allowed[i].base && op->len <= allowed[i].len &&
			op->remote - allowed[i].base <= allowed[i].len - op->len)
			return fake_dev_ops.rma.rma(op);
	}
	return -EFAULT;
}

/* Reads only, as of all that a process has: the kernel knows. */
static unsigned
checked_burst(struct plx_peer *peer, bool put, const struct plx_rma_piece *pieces, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct iovec local = {pieces[i].local, pieces[i].len};
		const struct iovec remote = {(void *)(uintptr_t)pieces[i].remote, pieces[i].len};

		if (put || (peer->caps & PLX_DEV_GET) == 0 ||
			process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)pieces[i].len)
			break;
	}
	return i;
}

static const struct plx_queue *silent;

void
fuzz_kill(struct plx_queue *q)
{
	silent = q;
	fake_kill(q);
}

static int
tx(const struct plx_tx *t)
{
	return t->peer->q == silent ? -EAGAIN : fake_dev_ops.tx(t);
}

static int
tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	return peer->q == silent ? -EAGAIN : fake_dev_ops.tx_short(peer, op, hdr, data, len);
}

static int
queue_open(struct plx_queue *q)
{
	if (q == silent)
		silent = NULL; /* the same memory again */
	return fake_dev_ops.queue_open(q);
}

void
fuzz_start(void)
{
	setenv("PLX_EAL_HUGE", "no", 1);
	setenv("PLX_SHM_HUGE", "no", 1);
	FUZZ_CHECK(plx_init_get(plx_conf_process()) == 0);
	plx_log_set_level(RTE_LOG_EMERG);
	fake_reset(1);
	ops = fake_dev_ops;
	ops.name = "fuzz";
	ops.rma.rma = checked_rma;
	ops.rma.burst = checked_burst;
	ops.tx = tx;
	ops.tx_short = tx_short;
	ops.queue_open = queue_open;
	FUZZ_CHECK(plx_dev_register(&ops) == 0);
}

void
fuzz_start_cci(const char *device)
{
	uint32_t caps;

	setenv("PLX_WORKER_DEVICES", device, 1);
	fuzz_start();
	FUZZ_CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
}

ucp_context_h
fuzz_context(const char *device, const char *const (*settings)[2], size_t n)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
			UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 | UCP_FEATURE_EXPORTED_MEMH};
	char err[PLX_CONF_ERR_MAX];
	ucp_config_t *config;
	ucp_context_h ctx;

	FUZZ_CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK);
	FUZZ_CHECK(plx_conf_set(&config->conf, "worker.devices", device, PLX_CONF_FROM_RPC, err) == 0);
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(plx_conf_set(&config->conf, settings[i][0], settings[i][1],
				   PLX_CONF_FROM_RPC, err) == 0);
	FUZZ_CHECK(ucp_init(&params, config, &ctx) == UCS_OK);
	ucp_config_release(config);
	return ctx;
}
