/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * text.c - bytes as text: the 64 characters of base64url, without padding
 */
#include <errno.h>
#include <string.h>

#include "plx_wire.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Three bytes are four digits; at the end one or two are two or three. */
void
plx_wire_text(const void *data, size_t len, char *to)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t word = 0;

		for (size_t k = 0; k < 3; k++)
			word = word << 8 | (k < n ? p[i + k] : 0);
		for (size_t k = 0; k <= n; k++)
			*to++ = digits[word >> (18 - 6 * k) & 63];
	}
	*to = '\0';
}

int
plx_wire_untext(const char *s, size_t n, void *to, size_t max)
{
	uint32_t word = 0, bits = 0;
	uint8_t *p = to;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		const char *d = s[i] != '\0' ? strchr(digits, s[i]) : NULL;

		if (d == NULL)
			return -EINVAL;
		word = word << 6 | (uint32_t)(d - digits);
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (len == max)
			return -EINVAL;
		p[len++] = word >> bits;
	}
	return (word & ((1u << bits) - 1)) == 0 ? (int)len : -EINVAL;
}
