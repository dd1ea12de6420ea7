/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * test_util.h - what test programs share, whichever API they test: time, the end of
 * a program, filled and guarded buffers
 */
#ifndef TEST_UTIL_H
#define TEST_UTIL_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UTIL_DEADLINE_S 40

static inline uint64_t
util_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define UTIL_DIE(...) \
	do { \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(1); \
	} while (0)

/** @return descriptors of this process, and a few: to be compared */
static inline unsigned
util_open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (d == NULL)
		UTIL_DIE("no /proc/self/fd");
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/*
 * Become this program again, with these arguments, the last of which may be NULL; by the command in a variable of the
 * environment, which runs the rest of its line, if it is set.
 */
static inline _Noreturn void
util_exec_self_by(const char *variable, const char *first, const char *second, const char *third)
{
	char self[4096] = "", command[128];

	snprintf(command, sizeof(command), "exec $%s \"$0\" \"$@\"", variable);
	if (getenv(variable) != NULL && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		execl("/bin/sh", "sh", "-c", command, self, first, second, third, NULL);
	else
		execl("/proc/self/exe", "self", first, second, third, NULL);
	_exit(127);
}

/* The same where an emulator may run it: the kernel can't, and Meson names the emulator. */
static inline _Noreturn void
util_exec_self(const char *first, const char *second, const char *third)
{
	util_exec_self_by("MESON_EXE_WRAPPER", first, second, third);
}

/* splitmix64: the next of the sequence that state holds. */
static inline uint64_t
util_splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Message contents: word i of a message is a mix of its seed and i. */

static inline uint64_t
util_mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15u;
	return x ^ (x >> 29);
}

static inline void
util_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *p = buf;
	uint64_t word;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		word = util_mix(seed + i);
		n = len - i < 8 ? len - i : 8;
		memcpy(p + i, &word, n);
	}
}

static inline bool
util_check(const void *buf, size_t len, uint64_t seed)
{
	const uint8_t *p = buf;
	uint64_t word;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		word = util_mix(seed + i);
		n = len - i < 8 ? len - i : 8;
		if (memcmp(p + i, &word, n) != 0) {
			fprintf(stderr, "byte %zu of %zu differs\n", i, len);
			return false;
		}
	}
	return true;
}

/* Buffers with guards on both sides. */

#define UTIL_GUARD 256

static inline void *
util_guarded(size_t len)
{
	uint8_t *p = malloc(len + 2 * UTIL_GUARD);

	if (p == NULL)
		UTIL_DIE("no memory for %zu bytes", len);
	memset(p, 0xee, len + 2 * UTIL_GUARD);
	return p + UTIL_GUARD;
}

static inline bool
util_guards_ok(const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < UTIL_GUARD; i++)
		if (p[len + i] != 0xee || p[-(ptrdiff_t)i - 1] != 0xee)
			return false;
	return true;
}

static inline void
util_guarded_free(void *buf)
{
	free((uint8_t *)buf - UTIL_GUARD);
}

/* A pair is what the tests of an API make of two ends, and util_pair_turn() gives both a turn. */

/* Run turns until cond holds; false when the deadline passes. */
#define UTIL_UNTIL(p, cond) \
	__extension__({ \
		uint64_t end_ = util_now_ns() + UTIL_DEADLINE_S * 1000000000ull; \
		bool held_; \
		while (!(held_ = (cond)) && util_now_ns() < end_) \
			util_pair_turn(p); \
		held_; \
	})

/* Run turns for a while, to see that something does not happen. */
#define UTIL_FOR_MS(p, ms) \
	do { \
		uint64_t end_ = util_now_ns() + (ms) * 1000000ull; \
		while (util_now_ns() < end_) \
			util_pair_turn(p); \
	} while (0)

#endif
