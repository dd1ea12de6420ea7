/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * history.c - the lines of the prompt in a file of the user, for the next time
 *
 * Design notes
 * - One write appends each line as soon as it is entered: two shells keep the lines of both, and
 *   a killed shell loses none.
 * - The file is input: only its end is read, and it is cut to that when it has grown.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tc_history.h"

#define HISTORY_READ (256 * 1024) /* bytes at the end of the file */

static int
history_folder(char *path, size_t len)
{
	for (char *p = path + 1; p < path + len; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

/* A relative $XDG_STATE_HOME is ignored. */
int
tc_history_path(char *path, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int len;

	if (state != NULL && state[0] == '/')
		len = snprintf(path, size, "%s/pollux/testcomm_history", state);
	else if (home != NULL && home[0] == '/')
		len = snprintf(path, size, "%s/.local/state/pollux/testcomm_history", home);
	else
		return -ENOENT;
	return (size_t)len < size ? 0 : -ENAMETOOLONG;
}

/* A regular file that only its user reads. @return a descriptor or -errno */
int
tc_history_open(char *path)
{
	struct stat st;
	int fd, rc;

	rc = history_folder(path, strlen(path));
	if (rc != 0)
		return rc;
	fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) != 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : 0;
	if (rc == 0 && (st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* The whole lines at its end; a file that is much longer is cut to them. */
char *
tc_history_read(int fd)
{
	char *text = malloc(HISTORY_READ + 1), *begin = text;
	struct stat st;
	off_t at;
	ssize_t n;

	if (text == NULL || fstat(fd, &st) != 0) {
		free(text);
		return NULL;
	}
	at = st.st_size > HISTORY_READ ? st.st_size - HISTORY_READ : 0;
	n = pread(fd, text, HISTORY_READ, at);
	text[n > 0 ? n : 0] = '\0';
	if (at > 0) {
		begin = strchr(text, '\n');
		begin = begin != NULL ? begin + 1 : text + strlen(text);
		memmove(text, begin, strlen(begin) + 1);
	}
	if (at > HISTORY_READ && ftruncate(fd, 0) == 0 && write(fd, text, strlen(text)) < 0)
		text[0] = '\0';
	return text;
}

void
tc_history_add(int fd, const char *line)
{
	size_t len = strlen(line);
	char *text = malloc(len + 2);

	if (text == NULL)
		return;
	memcpy(text, line, len);
	memcpy(text + len, "\n", 2);
	if (write(fd, text, len + 1) < 0)
		perror("testcomm: the history cannot be saved");
	free(text);
}
