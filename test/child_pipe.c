/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * child_pipe.c - starts this program again, and what goes through the pipes
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "child_pipe.h"

void
child_put(int fd, const void *buf, size_t len)
{
	if (write(fd, buf, len) != (ssize_t)len)
		UTIL_DIE("pipe");
}

void
child_get(int fd, void *buf, size_t len)
{
	size_t n = 0;

	while (n < len) {
		ssize_t k = read(fd, (char *)buf + n, len - n);

		if (k <= 0)
			UTIL_DIE("pipe");
		n += k;
	}
}

void
child_put_address(int fd, ucp_worker_h w)
{
	ucp_address_t *addr;
	size_t len;

	UTIL_OK(ucp_worker_get_address(w, &addr, &len));
	child_put(fd, &len, sizeof(len));
	child_put(fd, addr, len);
	ucp_worker_release_address(w, addr);
}

void *
child_get_address(int fd)
{
	size_t len;
	void *addr;

	child_get(fd, &len, sizeof(len));
	addr = malloc(len);
	child_get(fd, addr, len);
	return addr;
}

void
child_spawn(struct child *c, const char *role, const char *arg)
{
	int to[2], from[2];

	memset(c, 0, sizeof(*c));
	if (pipe(to) != 0 || pipe(from) != 0)
		UTIL_DIE("pipe");
	c->pid = fork();
	if (c->pid == 0) {
		/* By way of others: these may be in the places where they are to go. */
		int in = fcntl(to[0], F_DUPFD, 100), out = fcntl(from[1], F_DUPFD, 100);

		dup2(in, CHILD_IN);
		dup2(out, CHILD_OUT);
		util_exec_self("--child", role, arg);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

void
child_close(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
	free(c->addr);
}
