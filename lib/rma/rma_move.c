/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rma_move.c - reads and writes of many pieces by the device
 */
#include "rma_int.h"

int
rma_pieces_move(struct plx_ep *ep, bool put, const struct plx_rma_piece *pieces, unsigned *n)
{
	unsigned all = *n;
	int rc = 0;

	*n = 0;
	while (rc == 0 && *n < all) {
		*n += plx_peer_rma_burst(ep->peer, put, pieces + *n, all - *n);
		if (*n == all)
			break;
		rc = rma_dev_move(ep, put ? PLX_RMA_PUT : PLX_RMA_GET, pieces[*n].local, pieces[*n].remote,
			pieces[*n].len);
		*n += rc == 0;
	}
	return rc;
}
