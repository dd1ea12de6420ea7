/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_socket.c - the file of the socket: its owner, and when it may be replaced
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc_int.h"

#define SOCKET_BACKLOG    32
#define SOCKET_PATH_MAX	  sizeof(((struct sockaddr_un *)0)->sun_path)
#define SOCKET_LOCK_TRIES 50
#define SOCKET_LOCK_NS	  2000000 /* between two attempts */
#define SOCKET_STALE_MAX  64	  /* that one start removes */
#define SOCKET_STALE_S	  2	  /* younger ones may be about to listen, where the folder can't be locked */

static int
socket_expand_path(const char *path, struct rpc_socket *s)
{
	struct sockaddr_un *addr = &s->addr;
	size_t n = 0, room;

	addr->sun_family = AF_UNIX;
	for (; *path != '\0'; path++) {
		room = sizeof(addr->sun_path) - n;
		if (path[0] == '%' && path[1] == 'p') {
			s->pid_at = n;
			s->pid_len = (size_t)snprintf(addr->sun_path + n, room, "%d", (int)getpid());
			n += s->pid_len;
			path++;
		} else {
			addr->sun_path[n++] = *path;
		}
		if (n >= sizeof(addr->sun_path)) {
			addr->sun_path[0] = '\0';
			return -ENAMETOOLONG;
		}
	}
	addr->sun_path[n] = '\0';
	return n > 0 ? 0 : -EINVAL;
}

int
rpc_socket_open(struct rpc_socket *s, const char *path)
{
	int rc;

	s->pid_len = 0;
	rc = socket_expand_path(path, s);

	if (rc < 0)
		return rc;
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return s->fd < 0 ? -errno : 0;
}

/* @return 0 the path is free, or -errno. */
static int
socket_remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, rc;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
	close(fd);
	if (rc == 0 || rc == -EWOULDBLOCK) /* there is a listener, maybe with a full backlog */
		return -EADDRINUSE;
	if (rc != -ECONNREFUSED)
		return rc == -ENOENT ? 0 : rc;
	return unlink(addr->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* @return whether the name in the folder is ours but for its process id. */
static bool
socket_is_alike(const struct rpc_socket *s, const char *name)
{
	const char *own = strrchr(s->addr.sun_path, '/');
	size_t before;
	char *end;

	own = own != NULL ? own + 1 : s->addr.sun_path;
	if (s->pid_len == 0 || s->addr.sun_path + s->pid_at < own)
		return false;
	before = (size_t)(s->addr.sun_path + s->pid_at - own);
	if (strncmp(name, own, before) != 0 || !isdigit((unsigned char)name[before]))
		return false;
	(void)strtol(name + before, &end, 10);
	return strcmp(end, own + before + s->pid_len) == 0;
}

/*
 * Processes that were killed have left their sockets. Those of other users stay, and those that somebody listens on:
 * a server does so before it unlocks the folder.
 */
static void
socket_remove_others(const struct rpc_socket *s, const char *folder)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct dirent *e;
	unsigned int n = 0;
	struct stat st;
	DIR *d = opendir(folder);

	while (d != NULL && n < SOCKET_STALE_MAX && (e = readdir(d)) != NULL) {
		if (!socket_is_alike(s, e->d_name) ||
			snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", folder, e->d_name) >=
				(int)sizeof(addr.sun_path) ||
			lstat(addr.sun_path, &st) < 0 || st.st_uid != geteuid() || time(NULL) - st.st_mtime < SOCKET_STALE_S)
			continue;
		n += socket_remove_stale(&addr) == 0;
	}
	if (d != NULL)
		closedir(d);
}

/*
 * Two servers that start at once must not take each other's new socket for a stale one: the
 * folder is locked, which leaves no file behind. A lock that another process keeps must not
 * prevent the start. folder gets its name. @return descriptor, or -1: it is not locked.
 */
static int
socket_lock_folder(const char *path, char folder[SOCKET_PATH_MAX])
{
	struct timespec pause;
	unsigned int i;
	char *slash;
	int fd;

	snprintf(folder, SOCKET_PATH_MAX, "%s", path);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		snprintf(folder, SOCKET_PATH_MAX, ".");
	else
		slash[slash == folder] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0 && i < SOCKET_LOCK_TRIES; i++) {
		pause = (struct timespec){.tv_nsec = SOCKET_LOCK_NS};
		while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
			;
	}
	if (i < SOCKET_LOCK_TRIES)
		return fd;
	close(fd);
	return -1;
}

/* The mode of a unix socket's file is that of the descriptor when it is bound. */
static int
socket_bind(struct rpc_socket *s)
{
	struct stat st;
	int rc;

	rc = socket_remove_stale(&s->addr);
	if (rc < 0)
		return rc;
	if (fchmod(s->fd, 0600) < 0 ||
		bind(s->fd, (struct sockaddr *)&s->addr, sizeof(s->addr)) < 0)
		return -errno;
	if (lstat(s->addr.sun_path, &st) < 0 || listen(s->fd, SOCKET_BACKLOG) < 0) {
		rc = -errno;
		unlink(s->addr.sun_path);
		return rc;
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

int
rpc_socket_listen(struct rpc_socket *s)
{
	char folder[SOCKET_PATH_MAX];
	int lock_fd = socket_lock_folder(s->addr.sun_path, folder);
	int rc = socket_bind(s);

	if (lock_fd >= 0) {
		socket_remove_others(s, folder);
		close(lock_fd);
	}
	return rc;
}

void
rpc_socket_unlink(const struct rpc_socket *s)
{
	struct stat st;

	if (lstat(s->addr.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->addr.sun_path);
}
