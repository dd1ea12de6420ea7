/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_bufs.c - equal buffers in registered memory, by number
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plx_assert.h"

#include "mlx_bufs.h"
#include "mlx_glue.h"

int
mlx_bufs_open(struct mlx_bufs *b, const struct plx_reg_domain *domain, uint32_t len, uint32_t most)
{
	memset(b, 0, sizeof(*b));
	b->domain = domain;
	b->len = (len + PLX_LINE - 1) / PLX_LINE * PLX_LINE;
	b->most = most;
	b->free = calloc(most, sizeof(b->free[0]));
	b->chunks = calloc(most / MLX_BUFS_CHUNK, sizeof(b->chunks[0]));
	return b->free != NULL && b->chunks != NULL ? 0 : -ENOMEM;
}

static size_t
chunk_len(const struct mlx_bufs *b)
{
	return (size_t)MLX_BUFS_CHUNK * b->len;
}

void
mlx_bufs_close(struct mlx_bufs *b)
{
	for (uint32_t i = 0; i < b->n / MLX_BUFS_CHUNK; i++) {
		mlx_glue.dereg_mr(b->chunks[i].mr);
		munmap(b->chunks[i].base, chunk_len(b));
	}
	free(b->chunks);
	free(b->free);
	b->n = b->n_free = 0;
}

uint32_t
mlx_bufs_grow(struct mlx_bufs *b)
{
	uint32_t k = b->n / MLX_BUFS_CHUNK;
	void *base;

	if (b->n + MLX_BUFS_CHUNK > b->most)
		return MLX_NONE;
	base = mmap(NULL, chunk_len(b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return MLX_NONE;
	/* After a fork the device must keep the parent's pages. */
	(void)madvise(base, chunk_len(b), MADV_DONTFORK);
	b->chunks[k].mr = plx_reg_raw(b->domain, base, chunk_len(b), IBV_ACCESS_LOCAL_WRITE);
	if (b->chunks[k].mr == NULL) {
		PLX_LOG_RATELIMIT(WARNING, mlx,
			"memory for messages can't be registered (error %d); ulimit -l may be too low",
			errno);
		munmap(base, chunk_len(b));
		return MLX_NONE;
	}
	b->chunks[k].base = base;
	for (uint32_t i = MLX_BUFS_CHUNK; i > 0; i--)
		b->free[b->n_free++] = b->n + i - 1;
	b->n += MLX_BUFS_CHUNK;
	return b->free[--b->n_free];
}
