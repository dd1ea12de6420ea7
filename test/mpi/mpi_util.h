/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mpi_util.h - what the MPI test programs share: contents and checks
 */
#ifndef MPI_UTIL_H
#define MPI_UTIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static inline uint8_t
util_byte(uint64_t seed, size_t i)
{
	uint64_t x = (seed + i) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56 ^ x >> 29);
}

static inline void
util_fill(uint8_t *buf, size_t len, uint64_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = util_byte(seed, i);
}

#define CHECK(cond, ...) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static inline void
util_check(const uint8_t *buf, size_t len, uint64_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		CHECK(buf[i] == util_byte(seed, i), "byte %zu of %zu", i, len);
}

static inline void *
util_alloc(size_t len)
{
	void *p = malloc(len + 1);

	CHECK(p != NULL, "%zu bytes", len);
	return p;
}

#endif
