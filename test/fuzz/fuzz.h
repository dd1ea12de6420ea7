/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz.h - what the fuzz targets share: an input read piece by piece, a start, a device
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

/** What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define FUZZ_CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

/** An input; what is beyond its end reads as zeroes. */
struct fuzz_in {
	const uint8_t *p, *end;
};

static inline bool
fuzz_more(const struct fuzz_in *in)
{
	return in->p < in->end;
}

static inline void
fuzz_bytes(struct fuzz_in *in, void *to, size_t len)
{
	size_t n = (size_t)(in->end - in->p);

	n = n < len ? n : len;
	if (len != 0)
		memset(to, 0, len);
	if (n != 0)
		memcpy(to, in->p, n);
	in->p += n;
}

static inline uint8_t
fuzz_u8(struct fuzz_in *in)
{
	uint8_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

static inline uint16_t
fuzz_u16(struct fuzz_in *in)
{
	uint16_t v;

	fuzz_bytes(in, &v, sizeof(v));
	return v;
}

/** Start the library, quiet, on small pages, and the device "fuzz". Once. */
void fuzz_start(void);

/** Start, and CCI on this device; other settings of the environment come first. Once. */
void fuzz_start_cci(const char *device);

/** A context whose workers have this device. Never NULL. */
ucp_context_h fuzz_context(const char *device, const char *const (*settings)[2], size_t n);

/** Memory that the device "fuzz" may read and write as a peer's; all other is -EFAULT. */
void fuzz_allow(const void *base, size_t len);
void fuzz_forbid(const void *base);
void fuzz_forbid_all(void);

/** The process of a queue of "fuzz" ends; what its worker does while it is cleared away is not sent. */
struct plx_queue;
void fuzz_kill(struct plx_queue *q);

#endif
