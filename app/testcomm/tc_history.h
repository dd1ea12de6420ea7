/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tc_history.h - the lines of the prompt in a file of the user
 */
#ifndef TC_HISTORY_H
#define TC_HISTORY_H

#include <stddef.h>

/** The path of the file. @return 0 or -errno: there is no home for it, or the path is too long */
int tc_history_path(char *path, size_t size);
/** Open the file, make it and its folders. @return a descriptor or -errno */
int tc_history_open(char *path);
/** Its last lines, with their newlines, from malloc(); NULL: no memory. */
char *tc_history_read(int fd);
/** Append one line. */
void tc_history_add(int fd, const char *line);

#endif /* TC_HISTORY_H */
