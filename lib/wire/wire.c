/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * wire.c - header lengths, and the packed worker address
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <rte_hash_crc.h>

#include "plx_wire.h"

const uint8_t plx_wire_hdr_len[256] = {
	[PLX_WIRE_EAGER] = sizeof(struct plx_wire_eager),
	[PLX_WIRE_SYNC] = sizeof(struct plx_wire_sync),
	[PLX_WIRE_FIRST] = sizeof(struct plx_wire_first),
	[PLX_WIRE_FRAG] = sizeof(struct plx_wire_frag),
	[PLX_WIRE_RTS] = sizeof(struct plx_wire_rts),
	[PLX_WIRE_ACK] = sizeof(struct plx_wire_ack),
	[PLX_WIRE_HELP] = sizeof(struct plx_wire_help),
	[PLX_WIRE_PULL] = sizeof(struct plx_wire_pull),
	[PLX_WIRE_DATA] = sizeof(struct plx_wire_data),
	[PLX_WIRE_FLOW] = sizeof(struct plx_wire_flow),
	[PLX_WIRE_CANCEL] = sizeof(struct plx_wire_cancel),
	[PLX_WIRE_PUT] = sizeof(struct plx_wire_put),
	[PLX_WIRE_GET] = sizeof(struct plx_wire_get),
	[PLX_WIRE_ATOMIC] = sizeof(struct plx_wire_atomic),
	[PLX_WIRE_RMA_ACK] = sizeof(struct plx_wire_rma_ack),
	[PLX_WIRE_RMA_DATA] = sizeof(struct plx_wire_rma_data),
	[PLX_WIRE_EP_CLOSE] = sizeof(struct plx_wire_ep_close),
	[PLX_WIRE_AM] = sizeof(struct plx_wire_am),
	[PLX_WIRE_AM_FIRST] = sizeof(struct plx_wire_am_first),
	[PLX_WIRE_AM_RTS] = sizeof(struct plx_wire_am_rts),
	[PLX_WIRE_STREAM] = sizeof(struct plx_wire_stream),
	[PLX_WIRE_STREAM_RTS] = sizeof(struct plx_wire_stream_rts),
	[PLX_WIRE_GRANT] = sizeof(struct plx_wire_grant),
	[PLX_WIRE_CHAN_ASK] = sizeof(struct plx_wire_chan_ask),
	[PLX_WIRE_CHAN_ANSWER] = sizeof(struct plx_wire_chan_answer),
	[PLX_WIRE_CHAN_DONE] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_CLOSE] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_MSG] = sizeof(struct plx_wire_chan_msg),
	[PLX_WIRE_CHAN_LOSSY] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_ACK] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_RNR] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_READY] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_PING] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_CHAN_PONG] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_PUT_AT] = sizeof(struct plx_wire_put_at),
	[PLX_WIRE_CHAN_JOIN] = sizeof(struct plx_wire_chan_join),
	[PLX_WIRE_INTO] = sizeof(struct plx_wire_into),
	[PLX_WIRE_DONE] = sizeof(struct plx_wire_done),
	[PLX_WIRE_CHAN_FETCH] = sizeof(struct plx_wire_chan_fetch),
	[PLX_WIRE_CHAN_COPY] = sizeof(struct plx_wire_chan),
	[PLX_WIRE_SHARE] = sizeof(struct plx_wire_share),
	[PLX_WIRE_WHERE] = sizeof(struct plx_wire_pull),
	[PLX_WIRE_LIST] = sizeof(struct plx_wire_list),
	[PLX_WIRE_RMA_BATCH] = sizeof(struct plx_wire_rma_batch),
	[PLX_WIRE_RMA_BATCH_DONE] = sizeof(struct plx_wire_rma_batch_done),
};

/*
 * Packed address: magic (4), length of all (2), version (1), devices (1), crc32c of the
 * following bytes and of the length (4), uid (8), then for each device its name (8), length
 * (1) and bytes. If its name and length are those of the previous device, only: 0 (1), how
 * many of the bytes after the first 8 are the same, too (1), and the others.
 */
#define ADDR_MAGIC   0x41584c50u /* "PLXA" */
#define ADDR_VERSION 2
#define ADDR_FIXED   20
#define ADDR_CRC_OFF 8
#define ADDR_UID_OFF 12
#define ADDR_OWN     8 /* bytes of a device that are always written */

static uint32_t
addr_crc(const uint8_t *p, uint16_t len)
{
	alignas(8) uint8_t body[PLX_WIRE_ADDR_MAX]; /* rte_hash_crc() reads whole words */
	uint32_t head;

	memcpy(&head, p + 4, sizeof(head)); /* length, version, devices */
	memcpy(body, p + ADDR_UID_OFF, len - ADDR_UID_OFF);
	return rte_hash_crc(body, len - ADDR_UID_OFF, rte_hash_crc_4byte(head, ~0u));
}

/* @return the number of bytes that a device shares with the previous one; -1: another kind */
static int
dev_same(const struct plx_wire_addr *a, unsigned i)
{
	const struct plx_wire_addr_dev *d = &a->devs[i], *before = d - 1;
	int n = 0;

	if (i == 0 || d->len != before->len || d->len < ADDR_OWN ||
		memcmp(d->name, before->name, sizeof(d->name)) != 0)
		return -1;
	while (ADDR_OWN + n < d->len && d->bytes[ADDR_OWN + n] == before->bytes[ADDR_OWN + n])
		n++;
	return n;
}

/* Write a device. @return its bytes; @param p NULL: only count them */
static size_t
dev_pack(const struct plx_wire_addr *a, unsigned i, uint8_t *p)
{
	const struct plx_wire_addr_dev *d = &a->devs[i];
	int same = dev_same(a, i);

	if (p == NULL)
		return same < 0 ? PLX_WIRE_ADDR_NAME + 1 + d->len : 2 + d->len - same;
	if (same < 0) {
		memcpy(p, d->name, PLX_WIRE_ADDR_NAME);
		p[PLX_WIRE_ADDR_NAME] = d->len;
		memcpy(p + PLX_WIRE_ADDR_NAME + 1, d->bytes, d->len);
		return PLX_WIRE_ADDR_NAME + 1 + d->len;
	}
	p[0] = 0;
	p[1] = same;
	memcpy(p + 2, d->bytes, ADDR_OWN);
	memcpy(p + 2 + ADDR_OWN, d->bytes + ADDR_OWN + same, d->len - ADDR_OWN - same);
	return 2 + d->len - same;
}

int
plx_wire_addr_pack(const struct plx_wire_addr *a, void *buf, size_t len)
{
	uint8_t *p = buf;
	uint32_t crc;
	const uint32_t magic = ADDR_MAGIC;
	size_t n = ADDR_FIXED;
	uint16_t all;

	for (unsigned i = 0; i < a->n_devs; i++)
		n += dev_pack(a, i, NULL);
	if (n > len || n > PLX_WIRE_ADDR_MAX)
		return -EMSGSIZE;
	all = n;
	memcpy(p, &magic, 4);
	memcpy(p + 4, &all, 2);
	p[6] = ADDR_VERSION;
	p[7] = a->n_devs;
	memcpy(p + ADDR_UID_OFF, &a->uid, 8);
	p += ADDR_FIXED;
	for (unsigned i = 0; i < a->n_devs; i++)
		p += dev_pack(a, i, p);
	crc = addr_crc(buf, all);
	memcpy((uint8_t *)buf + ADDR_CRC_OFF, &crc, 4);
	return n;
}

size_t
plx_wire_addr_len(const void *buf)
{
	uint16_t all;

	memcpy(&all, (const uint8_t *)buf + 4, 2);
	return all;
}

/* Read a device with the name and the length of the previous one. @return its bytes, or 0 */
static size_t
dev_unpack_same(struct plx_wire_addr_dev *d, const uint8_t *p, size_t left)
{
	size_t same = left >= 2 ? p[1] : UINT8_MAX;

	*d = d[-1];
	if (d->len < ADDR_OWN || same > d->len - (size_t)ADDR_OWN || left < 2 + d->len - same)
		return 0;
	memcpy(d->bytes, p + 2, ADDR_OWN);
	memcpy(d->bytes + ADDR_OWN + same, p + 2 + ADDR_OWN, d->len - ADDR_OWN - same);
	return 2 + d->len - same;
}

/* Read a device. @return its bytes, or 0: invalid, or not as dev_pack() writes it */
static size_t
dev_unpack(struct plx_wire_addr *a, unsigned i, const uint8_t *p, size_t left)
{
	struct plx_wire_addr_dev *d = &a->devs[i];
	size_t n;

	if (left == 0 || (p[0] == 0 && i == 0))
		return 0;
	if (p[0] == 0) {
		n = dev_unpack_same(d, p, left);
	} else {
		if (left < PLX_WIRE_ADDR_NAME + 1)
			return 0;
		memcpy(d->name, p, PLX_WIRE_ADDR_NAME);
		d->len = p[PLX_WIRE_ADDR_NAME];
		n = PLX_WIRE_ADDR_NAME + 1 + d->len;
		if (d->len > sizeof(d->bytes) || left < n)
			return 0;
		memcpy(d->bytes, p + PLX_WIRE_ADDR_NAME + 1, d->len);
	}
	return n != 0 && n == dev_pack(a, i, NULL) ? n : 0;
}

int
plx_wire_addr_unpack(const void *buf, struct plx_wire_addr *a)
{
	const uint8_t *p = buf, *end;
	uint32_t magic, crc;
	size_t all;

	memcpy(&magic, p, 4);
	if (magic != ADDR_MAGIC)
		return -EINVAL;
	all = plx_wire_addr_len(p);
	if (all < ADDR_FIXED || all > PLX_WIRE_ADDR_MAX || p[6] != ADDR_VERSION)
		return -EINVAL;
	memcpy(&crc, p + ADDR_CRC_OFF, 4);
	if (crc != addr_crc(p, all))
		return -EINVAL;
	end = p + all;
	a->n_devs = p[7];
	if (a->n_devs > PLX_WIRE_ADDR_DEVS)
		return -EINVAL;
	memcpy(&a->uid, p + ADDR_UID_OFF, 8);
	p += ADDR_FIXED;
	for (unsigned i = 0; i < a->n_devs; i++) {
		size_t n = dev_unpack(a, i, p, end - p);

		if (n == 0)
			return -EINVAL;
		p += n;
	}
	return p == end ? 0 : -EINVAL;
}

/*
 * Packed key: magic (2), version and how many devices (1), rights (1), crc32c of all with this 0 (4),
 * index and window (4: 20 and 12 bits), token (8), base (8), length (7), process (5), then for each
 * device its key (4) and port (2).
 */
#define RKEY_MAGIC   0x4b50u /* "PK" */
#define RKEY_VERSION 1
#define RKEY_DEV     6
#define RKEY_LEN_MAX ((1ull << 56) - 1)

static uint32_t
rkey_crc(const uint8_t *p, size_t bytes)
{
	alignas(8) uint8_t copy[PLX_WIRE_RKEY_MAX + 8]; /* rte_hash_crc() reads whole words */

	memcpy(copy, p, bytes);
	memset(copy + 4, 0, 4);
	return rte_hash_crc(copy, bytes, ~0u);
}

size_t
plx_wire_rkey_pack(const struct plx_wire_rkey *k, void *buf)
{
	const uint16_t magic = RKEY_MAGIC;
	uint32_t name = k->index | (uint32_t)k->window << 20, crc;
	uint64_t len = k->len < RKEY_LEN_MAX ? k->len : RKEY_LEN_MAX;
	size_t bytes = PLX_WIRE_RKEY_MIN + (size_t)k->n_devs * RKEY_DEV;
	uint8_t *p = buf;

	memset(p, 0, bytes);
	memcpy(p, &magic, 2);
	p[2] = RKEY_VERSION << 4 | k->n_devs;
	p[3] = k->rights;
	memcpy(p + 8, &name, 4);
	memcpy(p + 12, &k->token, 8);
	memcpy(p + 20, &k->base, 8);
	memcpy(p + 28, &len, 7);
	memcpy(p + 35, &k->proc, 5);
	for (unsigned i = 0; i < k->n_devs; i++) {
		memcpy(p + PLX_WIRE_RKEY_MIN + i * RKEY_DEV, &k->devs[i].key, 4);
		memcpy(p + PLX_WIRE_RKEY_MIN + i * RKEY_DEV + 4, &k->devs[i].port, 2);
	}
	crc = rkey_crc(p, bytes);
	memcpy(p + 4, &crc, 4);
	return bytes;
}

size_t
plx_wire_rkey_len(const void *buf)
{
	const uint8_t *p = buf;
	uint16_t magic;

	memcpy(&magic, p, 2);
	if (magic != RKEY_MAGIC || p[2] >> 4 != RKEY_VERSION || (p[2] & 15) > PLX_WIRE_RKEY_KEYS)
		return 0;
	return PLX_WIRE_RKEY_MIN + (p[2] & 15u) * RKEY_DEV;
}

int
plx_wire_rkey_unpack(const void *buf, struct plx_wire_rkey *k)
{
	size_t bytes = plx_wire_rkey_len(buf);
	const uint8_t *p = buf;
	uint32_t crc, name;

	if (bytes == 0)
		return -EINVAL;
	memcpy(&crc, p + 4, 4);
	if (crc != rkey_crc(p, bytes))
		return -EINVAL;
	memset(k, 0, sizeof(*k));
	k->rights = p[3];
	k->n_devs = p[2] & 15;
	memcpy(&name, p + 8, 4);
	k->index = name & PLX_WIRE_INDEX_MAX;
	k->window = name >> 20;
	memcpy(&k->token, p + 12, 8);
	memcpy(&k->base, p + 20, 8);
	memcpy(&k->len, p + 28, 7);
	memcpy(&k->proc, p + 35, 5);
	for (unsigned i = 0; i < k->n_devs; i++) {
		memcpy(&k->devs[i].key, p + PLX_WIRE_RKEY_MIN + i * RKEY_DEV, 4);
		memcpy(&k->devs[i].port, p + PLX_WIRE_RKEY_MIN + i * RKEY_DEV + 4, 2);
		if (k->devs[i].port == 0)
			return -EINVAL;
	}
	return k->len > UINT64_MAX - k->base ? -EINVAL : 0;
}

#define EXPORT_MAGIC   0x4d584c50u /* "PLXM" */
#define EXPORT_VERSION 5

static uint32_t
export_crc(const struct plx_wire_export *e)
{
	alignas(8) uint8_t copy[sizeof(*e)]; /* bytes, as rte_hash_crc() reads words of its own type */

	memcpy(copy, e, sizeof(copy));
	memset(copy + offsetof(struct plx_wire_export, crc), 0, sizeof(e->crc));
	return rte_hash_crc(copy, sizeof(copy), ~0u);
}

void
plx_wire_export_seal(struct plx_wire_export *e)
{
	e->magic = EXPORT_MAGIC;
	e->bytes = sizeof(*e);
	e->version = EXPORT_VERSION;
	e->pad = 0;
	e->crc = export_crc(e);
}

int
plx_wire_export_check(const struct plx_wire_export *e)
{
	return e->magic == EXPORT_MAGIC && e->bytes == sizeof(*e) && e->version == EXPORT_VERSION &&
		e->pad == 0 && e->crc == export_crc(e) ? 0 : -EINVAL;
}

static uint32_t
conn_crc(const uint8_t *p, size_t len)
{
	const size_t at = offsetof(struct plx_wire_conn, crc);
	alignas(8) uint8_t copy[PLX_WIRE_CONN_MAX]; /* rte_hash_crc() reads whole words */
	uint32_t crc;

	memcpy(copy, p, len);
	crc = rte_hash_crc(copy, at, ~0u);
	return rte_hash_crc(copy + at + 4, len - at - 4, crc);
}

size_t
plx_wire_conn_pack(const struct plx_wire_conn *h, const void *addr, size_t addr_len, void *buf)
{
	struct plx_wire_conn c = *h;

	c.version = PLX_WIRE_CONN_VERSION;
	c.addr_len = addr_len;
	memcpy(buf, &c, sizeof(c));
	if (addr != NULL)
		memcpy((uint8_t *)buf + sizeof(c), addr, addr_len);
	c.crc = conn_crc(buf, sizeof(c) + addr_len);
	memcpy(buf, &c, sizeof(c));
	return sizeof(c) + addr_len;
}

int
plx_wire_conn_unpack(const void *buf, size_t len, struct plx_wire_conn *h,
	struct plx_wire_addr *addr)
{
	const uint8_t *p = buf;
	uint8_t packed[PLX_WIRE_ADDR_MAX] = {0};

	if (len < sizeof(*h) || len > PLX_WIRE_CONN_MAX)
		return -EBADMSG;
	memcpy(h, p, sizeof(*h));
	if (h->version != PLX_WIRE_CONN_VERSION || h->addr_len != len - sizeof(*h) ||
		h->addr_len > PLX_WIRE_ADDR_MAX || h->crc != conn_crc(p, len) ||
		h->conn_id < PLX_WIRE_CONN_ID_MIN || h->err > 0 || h->err < -4095)
		return -EBADMSG;
	if (h->kind != PLX_WIRE_CONN_HELLO && h->kind != PLX_WIRE_CONN_ACCEPT)
		return h->kind == PLX_WIRE_CONN_REJECT || h->kind == PLX_WIRE_CONN_DONE ? 0
											: -EBADMSG;
	memcpy(packed, p + sizeof(*h), h->addr_len);
	if (h->addr_len < PLX_WIRE_ADDR_HEAD || plx_wire_addr_len(packed) != h->addr_len ||
		plx_wire_addr_unpack(packed, addr) != 0)
		return -EBADMSG;
	return 0;
}
