/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * log_file.c - the file that log lines go to instead of standard error
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "plx_log.h"

PLX_LOG_DEFINE(diag, "plx.diag");

static struct {
	pthread_mutex_t lock;
	char name[PATH_MAX]; /* of the open file; "": none */
} log_file = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The values of %p, %h, %u, %e, %c and %t, as in UCX. @return NULL for another letter */
static const char *
stands_for(char letter, char *buf, size_t len)
{
	buf[0] = '\0';
	switch (letter) {
	case 'p':
		snprintf(buf, len, "%d", getpid());
		break;
	case 'h':
		if (gethostname(buf, len) != 0)
			buf[0] = '\0';
		buf[len - 1] = '\0';
		buf[strcspn(buf, ".")] = '\0';
		break;
	case 'u':
		snprintf(buf, len, "%u", getuid());
		break;
	case 'e':
		snprintf(buf, len, "%s", program_invocation_short_name);
		break;
	case 'c':
		snprintf(buf, len, "%d", sched_getcpu());
		break;
	case 't':
		snprintf(buf, len, "%lld", (long long)time(NULL));
		break;
	case '%':
		snprintf(buf, len, "%%");
		break;
	default:
		return NULL;
	}
	return buf;
}

int
plx_log_file_name(const char *template, char *name, size_t len)
{
	char buf[256];
	const char *text;
	size_t n = 0;

	for (const char *p = template; *p != '\0'; p++) {
		text = *p == '%' ? stands_for(p[1], buf, sizeof(buf)) : NULL;
		if (text != NULL)
			p++;
		else
			snprintf(buf, sizeof(buf), "%c", *p);
		n += (size_t)snprintf(n < len ? name + n : NULL, n < len ? len - n : 0, "%s", buf);
	}
	return n < len ? 0 : -ENAMETOOLONG;
}

/* NULL, and errno, if it can't be opened. */
static FILE *
open_file(const char *name)
{
	FILE *f;

	if (strcmp(name, "stdout") == 0)
		return stdout;
	if (strcmp(name, "stderr") == 0)
		return stderr;
	if (getauxval(AT_SECURE)) { /* the name comes from the caller, the rights do not */
		errno = EACCES;
		return NULL;
	}
	f = fopen(name, "ae");
	if (f != NULL)
		setvbuf(f, NULL, _IOLBF, 0);
	return f;
}

int
plx_log_set_file(const char *template)
{
	char name[PATH_MAX];
	FILE *f;
	int rc;

	if (template[0] == '\0')
		return 0;
	if (strncmp(template, "file:", 5) == 0)
		template += 5;
	rc = plx_log_file_name(template, name, sizeof(name));
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&log_file.lock);
	if (strcmp(log_file.name, name) != 0) {
		f = open_file(name);
		if (f == NULL) {
			rc = -errno;
			PLX_LOG(WARNING, diag, "no log file %s: %s", name, strerror(-rc));
		} else {
			/* A file that was open before stays open: another thread may be
			 * writing to it. */
			rte_openlog_stream(f);
			snprintf(log_file.name, sizeof(log_file.name), "%s", name);
		}
	}
	pthread_mutex_unlock(&log_file.lock);
	return rc;
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&log_file.lock, NULL);
}
RTE_INIT(log_file_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
