/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fake_keys.c - the fake device's registered memory, and writes and reads of it
 *
 * Design notes
 * An operation moves its bytes when its target next looks for messages, before it sees
 * any: so it is in order with what was sent, and whoever gives the buffer back before the
 * end, or its key, is found out. It is over some polls of its sender later. Of a short
 * write the bytes are copied first, as is promised.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_dev.h"

struct fake_reg {
	LIST_ENTRY(fake_reg) link;
	uint64_t uid; /* of the queue; 0: a region, of all */
	uint64_t base, len, key;
	uint8_t rights;
};

struct fake_io {
	TAILQ_ENTRY(fake_io) link;
	struct plx_rma_op op;
	bool moved;
	int err;
	uint32_t wait; /* polls until it is over */
	uint8_t copy[];
};

static LIST_HEAD(, fake_reg) regs = LIST_HEAD_INITIALIZER(regs);
static TAILQ_HEAD(fake_ios, fake_io) ios = TAILQ_HEAD_INITIALIZER(ios);
static uint32_t n_regs, n_ios;
static uint64_t next_key = PLX_DEV_KEY_SET | 77;

static uint64_t
uid_of(const struct plx_queue *q)
{
	struct plx_addr addr;
	uint64_t uid;

	plx_queue_addr(q, &addr);
	memcpy(&uid, addr.bytes, sizeof(uid));
	return uid;
}

static void __attribute__((noreturn))
die(const char *what)
{
	fprintf(stderr, "fake device: %s\n", what);
	abort();
}

static int
reg_make(uint64_t uid, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	struct fake_reg *reg;

	if (fake.reg_err != 0)
		return fake.reg_err;
	reg = malloc(sizeof(*reg));
	if (reg == NULL)
		die("no memory");
	*reg = (struct fake_reg){.uid = uid, .base = (uintptr_t)addr, .len = len,
		.key = next_key++, .rights = rights};
	LIST_INSERT_HEAD(&regs, reg, link);
	n_regs++;
	out->key = reg->key;
	out->drv = reg;
	return 0;
}

static void
reg_free(struct fake_reg *reg)
{
	LIST_REMOVE(reg, link);
	n_regs--;
	free(reg);
}

int
fake_mem_reg(struct plx_queue *q, void *addr, size_t len, uint8_t rights, struct plx_dev_mem *out)
{
	return reg_make(uid_of(q), addr, len, rights, out);
}

int
fake_region_reg(const struct plx_conf *conf, unsigned port, void *addr, size_t len, uint8_t rights,
	struct plx_dev_key *out)
{
	(void)conf;
	(void)port;
	if (!(fake.caps & PLX_DEV_KEYS))
		return -EOPNOTSUPP;
	out->port = fake.port;
	out->atomics = fake.atomics;
	return reg_make(0, addr, len, rights, &out->mem);
}

void
fake_region_dereg(struct plx_dev_key *key)
{
	reg_free(key->mem.drv);
}

void
fake_mem_dereg(struct plx_queue *q, struct plx_dev_mem *mem, bool revoke)
{
	struct fake_reg *reg = mem->drv;

	if (reg->uid != uid_of(q))
		die("memory is given back to another queue");
	fake.n_revoked += revoke;
	reg_free(reg);
}

uint32_t
fake_regs(void)
{
	return n_regs;
}

uint32_t
fake_keys_out(void)
{
	return n_ios;
}

int
fake_keys_rma(const struct plx_rma_op *op)
{
	size_t copied = op->put && op->len <= op->peer->mtu ? op->len : 0;
	struct fake_io *io;

	if (op->key == 0 && op->len != 0)
		return -EOPNOTSUPP;
	io = malloc(sizeof(*io) + copied);
	if (io == NULL)
		die("no memory");
	*io = (struct fake_io){.op = *op,
		.wait = fake.delay_max != 0 ? fake_rng() % (fake.delay_max + 1) : 0};
	if (copied != 0)
		io->op.local = memcpy(io->copy, op->local, copied);
	TAILQ_INSERT_TAIL(&ios, io, link);
	n_ios++;
	PLX_STAT_INC(op->peer->q->stat.rma_ops);
	PLX_STAT_ADD(op->peer->q->stat.rma_bytes, op->len);
	return op->done != NULL ? -EINPROGRESS : 0;
}

static uint8_t
right_of(const struct plx_rma_op *op)
{
	if (op->atomic != PLX_DEV_NO_ATOMIC)
		return PLX_DEV_MEM_ATOMIC;
	return op->put ? PLX_DEV_MEM_WRITE : PLX_DEV_MEM_READ;
}

static void
word_change(const struct plx_rma_op *op, uint64_t *there)
{
	uint64_t old = *there;

	if (op->len != sizeof(old) || op->remote % sizeof(old) != 0)
		die("an atomic of a word that is none");
	if (op->atomic == PLX_DEV_FADD)
		*there += op->operand[0];
	else if (old == op->operand[0])
		*there = op->operand[1];
	memcpy(op->local, &old, sizeof(old));
}

static void
move(struct fake_io *io)
{
	const struct plx_rma_op *op = &io->op;
	void *there = (void *)(uintptr_t)op->remote;
	struct fake_reg *reg;

	io->moved = true;
	if (op->len == 0)
		return;
	LIST_FOREACH(reg, &regs, link) {
		if (reg->key == op->key && (reg->uid == 0 || reg->uid == op->peer->uid))
			break;
	}
	if (reg == NULL)
		die("a key that is not valid any more is used");
	if (op->remote < reg->base || op->len > reg->len ||
		op->remote - reg->base > reg->len - op->len ||
		!(reg->rights & right_of(op)))
		die("a key is used for other memory than its own");
	if (op->atomic != PLX_DEV_NO_ATOMIC)
		word_change(op, there);
	else
		memmove(op->put ? there : op->local, op->put ? op->local : there, op->len);
}

static void
end(struct fake_io *io, bool tell)
{
	struct plx_rma_op op = io->op;
	int err = io->err;

	TAILQ_REMOVE(&ios, io, link);
	n_ios--;
	free(io);
	if (tell && op.done != NULL)
		op.done(op.arg, err);
}

bool
fake_keys_wait(void)
{
	return !TAILQ_EMPTY(&ios);
}

void
fake_keys_run(struct plx_queue *q)
{
	struct fake_io *io;
	uint64_t uid;

	if (TAILQ_EMPTY(&ios))
		return;
	uid = uid_of(q);
	TAILQ_FOREACH(io, &ios, link) {
		if (!io->moved && io->op.peer->uid == uid)
			move(io);
	}
	/* What one tells may begin others: from the front again, until none is over. */
	do {
		TAILQ_FOREACH(io, &ios, link) {
			if (io->op.peer->q == q && io->moved && io->wait-- == 0)
				break;
		}
		if (io != NULL)
			end(io, true);
	} while (io != NULL);
}

void
fake_keys_drop(const struct plx_peer *peer, bool tell)
{
	struct fake_io *io;

	do {
		TAILQ_FOREACH(io, &ios, link) {
			if (io->op.peer == peer)
				break;
		}
		if (io != NULL) {
			io->err = -ECONNRESET;
			end(io, tell);
		}
	} while (io != NULL);
}

void
fake_keys_close(const struct plx_queue *q)
{
	struct fake_reg *reg, *next;

	for (reg = LIST_FIRST(&regs); reg != NULL; reg = next) {
		next = LIST_NEXT(reg, link);
		if (reg->uid == uid_of(q))
			reg_free(reg);
	}
}
