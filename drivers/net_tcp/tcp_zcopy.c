/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tcp_zcopy.c - messages that are sent from where their data lies
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "tcp_int.h"

static void
head_add(struct tcp_peer *p, const struct plx_tx_zcopy *tx, uint32_t len)
{
	const struct tcp_frame f = {.len = len, .kind = TCP_MSG, .op = tx->op};
	uint8_t *head = tcp_lent_head(&p->flow, sizeof(f) + tx->hdr_len);

	memcpy(head, &f, sizeof(f));
	memcpy(head + sizeof(f), tx->hdr, tx->hdr_len);
}

int
tcp_tx_zcopy(const struct plx_tx_zcopy *tx)
{
	struct tcp_peer *p = tcp_peer(tx->peer);
	uint64_t len = tx->hdr_len + plx_tx_zcopy_len(tx);
	struct tcp_lent *last = NULL;

	if (len > tx->peer->mtu)
		return -EMSGSIZE;
	if (sizeof(struct tcp_frame) + tx->hdr_len > TCP_LENT_HEAD)
		return -EOPNOTSUPP;
	if (p->state != TCP_OPEN || tcp_tx_is_late(p) || !tcp_lent_has(&p->flow, tx->n_iov + 2))
		return tcp_tx_full(p);
	head_add(p, tx, (uint32_t)len);
	for (unsigned i = 0; i < tx->n_iov; i++)
		last = tcp_lent_part(&p->flow, tx->iov[i].iov_base, (uint32_t)tx->iov[i].iov_len);
	last->done = tx->done;
	last->arg = tx->arg;
	tcp_lent_pad(&p->flow, (uint32_t)len);
	PLX_STAT_INC(tx->peer->q->stat.tx_msgs);
	PLX_STAT_ADD(tx->peer->q->stat.tx_bytes, len);
	tcp_tx_go(p);
	return -EINPROGRESS;
}
