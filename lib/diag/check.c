/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * check.c - the report of this process to pollux-run --check
 *
 * Design notes
 * - Each program that loads the library has a file of one line in the folder that pollux-run
 *   made. It rewrites the line whenever something changes, in one call and with constant length:
 *   a killed process leaves the last valid state. No descriptor stays open, since a program may
 *   close it and use its number.
 * - The folder's name comes from the environment. Nothing is written unless this user owns it and
 *   nobody else may write there.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "plx_check.h"

#define DEVICES_MAX 8
#define DEVICE_NAME 32

static struct {
	pthread_mutex_t lock;
	bool wanted;
	char dir[PATH_MAX];
	pid_t pid; /* owner of the line */
	uint64_t nonce;
	const char *state;
	unsigned n_devices;
	struct {
		char name[DEVICE_NAME];
		unsigned peers;
	} devices[DEVICES_MAX];
} check = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
plx_check_wanted(void)
{
	return check.wanted;
}

/* The program's name, as one word. */
static void
program(char *name, size_t len)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *base;

	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	snprintf(name, len, "%s", base != NULL && base[1] != '\0' ? base + 1 : "?");
	for (char *c = name; *c != '\0'; c++)
		if (*c <= ' ' || *c >= 0x7f)
			*c = '?';
}

static int
open_line(void)
{
	int dir = open(check.dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char name[64];
	struct stat st;

	if (dir < 0)
		return -1;
	snprintf(name, sizeof(name), "%d.%016llx", check.pid, (unsigned long long)check.nonce);
	if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	close(dir);
	return fd;
}

/* Call with the lock. */
static void
write_line(void)
{
	char line[PLX_CHECK_LINE + 1], exe[64];
	int fd = open_line();
	size_t n;

	if (fd < 0)
		return;
	program(exe, sizeof(exe));
	n = snprintf(line, sizeof(line), "%d %s %s", check.pid, exe, check.state);
	for (unsigned i = 0; i < check.n_devices; i++)
		n += snprintf(line + n, sizeof(line) - n, " %s=%u", check.devices[i].name,
			check.devices[i].peers);
	memset(line + n, ' ', PLX_CHECK_LINE - n);
	line[PLX_CHECK_LINE - 1] = '\n';
	if (pwrite(fd, line, PLX_CHECK_LINE, 0) < 0) {
		/* no room: the line keeps its old text */
	}
	close(fd);
}

/* A forked child is a process of its own. Call with the lock. */
static void
whose_line(void)
{
	if (check.pid == getpid())
		return;
	check.pid = getpid();
	check.n_devices = 0;
	if (getrandom(&check.nonce, sizeof(check.nonce), GRND_NONBLOCK) != sizeof(check.nonce))
		check.nonce = (uintptr_t)&check;
}

static void
set_state(const char *state)
{
	if (!check.wanted)
		return;
	pthread_mutex_lock(&check.lock);
	whose_line();
	check.state = state;
	write_line();
	pthread_mutex_unlock(&check.lock);
}

void
plx_check_started(void)
{
	set_state("started");
}

void
plx_check_stopped(void)
{
	set_state("stopped");
}

void
plx_check_peer(const char *device)
{
	unsigned i = 0;

	if (!check.wanted)
		return;
	pthread_mutex_lock(&check.lock);
	whose_line();
	while (i < check.n_devices && strcmp(check.devices[i].name, device) != 0)
		i++;
	if (i < DEVICES_MAX) {
		if (i == check.n_devices) {
			snprintf(check.devices[i].name, DEVICE_NAME, "%s", device);
			check.devices[i].peers = 0;
			check.n_devices++;
		}
		check.devices[i].peers++;
		write_line();
	}
	pthread_mutex_unlock(&check.lock);
}

/* Runs when the program loads the library; not in a setuid program, whose environment
 * belongs to another user. */
RTE_INIT(check_loaded)
{
	const char *dir = secure_getenv(PLX_CHECK_ENV);

	if (dir == NULL || dir[0] != '/' || strlen(dir) >= sizeof(check.dir))
		return;
	snprintf(check.dir, sizeof(check.dir), "%s", dir);
	check.wanted = true;
	set_state("loaded");
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&check.lock, NULL);
}
RTE_INIT(check_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
