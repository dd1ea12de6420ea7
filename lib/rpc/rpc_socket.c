/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_socket.c - the file of the socket: its owner, and when it may be replaced
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc_int.h"

#define SOCKET_BACKLOG    32
#define SOCKET_LOCK_TRIES 50
#define SOCKET_LOCK_NS	  2000000 /* between two attempts */

static int
socket_expand_path(const char *path, struct sockaddr_un *addr)
{
	size_t n = 0, room;

	addr->sun_family = AF_UNIX;
	for (; *path != '\0'; path++) {
		room = sizeof(addr->sun_path) - n;
		if (path[0] == '%' && path[1] == 'p') {
			n += (size_t)snprintf(addr->sun_path + n, room, "%d", (int)getpid());
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
	int rc = socket_expand_path(path, &s->addr);

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

/*
 * Two servers that start at once must not take each other's new socket for a stale one: the
 * folder is locked, which leaves no file behind. A lock that another process keeps must not
 * prevent the start. @return descriptor or -1.
 */
static int
socket_lock_folder(const char *path)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct timespec pause;
	char *slash;
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		snprintf(folder, sizeof(folder), ".");
	else
		slash[slash == folder] = '\0';
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (unsigned int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0 && i < SOCKET_LOCK_TRIES; i++) {
		pause = (struct timespec){.tv_nsec = SOCKET_LOCK_NS};
		while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
			;
	}
	return fd;
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
	int lock_fd = socket_lock_folder(s->addr.sun_path);
	int rc = socket_bind(s);

	if (lock_fd >= 0)
		close(lock_fd);
	return rc;
}

void
rpc_socket_unlink(const struct rpc_socket *s)
{
	struct stat st;

	if (lstat(s->addr.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->addr.sun_path);
}
