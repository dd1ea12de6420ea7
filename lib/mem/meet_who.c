/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * meet_who.c - which users are admitted, and where sockets are
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "meet_int.h"
#include "mem_int.h"

#define DIR_MAX 80

/* Admitted users, and the place of sockets. Written before the first offer, by meet_who_set(). */
static struct {
	char dir[DIR_MAX + 1];
	bool all;
	unsigned n_uids, n_gids;
	uid_t *uids;
	gid_t *gids;
} who;

socklen_t
meet_name(enum meet_place place, uint64_t proc, struct sockaddr_un *out)
{
	char *path = out->sun_path;
	int n;

	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (place == MEET_ABSTRACT && who.dir[0] == '\0')
		n = 1 + snprintf(path + 1, sizeof(out->sun_path) - 1, "pollux/%016llx", (unsigned long long)proc);
	else if (place == MEET_FOLDER && who.dir[0] != '\0')
		n = 1 + snprintf(path, sizeof(out->sun_path), "%s/pollux-%016llx", who.dir, (unsigned long long)proc);
	else
		return 0;
	return offsetof(struct sockaddr_un, sun_path) + n;
}

/* -- a list of users and groups -- */

static bool
number_of(const char *text, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*out = (uint32_t)n;
	return end != text && *end == '\0' && n < UINT32_MAX;
}

static bool
user_of(const char *name, uint32_t *out)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (number_of(name, out))
		return true;
	if (getpwnam_r(name, &pw, buf, sizeof(buf), &found) != 0 || found == NULL)
		return false;
	*out = pw.pw_uid;
	return true;
}

static bool
group_of(const char *name, uint32_t *out)
{
	struct group gr, *found = NULL;
	char buf[16384];

	if (number_of(name, out))
		return true;
	if (getgrnam_r(name, &gr, buf, sizeof(buf), &found) != 0 || found == NULL)
		return false;
	*out = gr.gr_gid;
	return true;
}

static int
add_one(uint32_t **list, unsigned *n, uint32_t value)
{
	uint32_t *more = realloc(*list, (*n + 1) * sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	more[(*n)++] = value;
	*list = more;
	return 0;
}

static int
peers_parse(char *list)
{
	char *save = NULL;
	uint32_t id;
	int rc = 0;

	for (char *name = strtok_r(list, ", ", &save); name != NULL && rc == 0; name = strtok_r(NULL, ", ", &save)) {
		if (name[0] == '@')
			rc = group_of(name + 1, &id) ? add_one(&who.gids, &who.n_gids, id) : -EINVAL;
		else
			rc = user_of(name, &id) ? add_one(&who.uids, &who.n_uids, id) : -EINVAL;
		if (rc == -EINVAL)
			PLX_LOG(ERR, mem, "the setting of whose processes may connect names no user or group of this machine: %s", name);
	}
	return rc;
}

int
meet_who_check(const char *dir)
{
	if (strlen(dir) > DIR_MAX || (dir[0] != '\0' && dir[0] != '/')) {
		PLX_LOG(ERR, mem, "the folder in which processes find each other must be an absolute path of at most %u bytes: %s", DIR_MAX, dir);
		return -EINVAL;
	}
	return 0;
}

int
meet_who_set(const char *dir, const char *peers)
{
	char *list;
	int rc = meet_who_check(dir);

	if (rc != 0)
		return rc;
	snprintf(who.dir, sizeof(who.dir), "%s", dir);
	plx_proc_set_folder(dir[0] != '\0' ? dir : NULL);
	free(who.uids);
	free(who.gids);
	who.uids = NULL;
	who.gids = NULL;
	who.n_uids = who.n_gids = 0;
	who.all = strcmp(peers, "all") == 0;
	if (who.all || strcmp(peers, "same") == 0)
		return 0;
	list = strdup(peers);
	rc = list != NULL ? peers_parse(list) : -ENOMEM;
	free(list);
	return rc;
}

bool
plx_meet_own_user_only(void)
{
	return !who.all && who.n_uids == 0 && who.n_gids == 0;
}

/* @return whether one of the other's groups, by the kernel, is admitted */
static bool
in_groups(int fd)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	unsigned n = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		n = len / sizeof(groups[0]);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0 && n < RTE_DIM(groups))
		groups[n++] = cred.gid;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < who.n_gids; k++)
			if (groups[i] == who.gids[k])
				return true;
	return false;
}

#define UID_UNKNOWN 65534 /* the kernel's number for all users without a name in a user namespace */

/* @return whether this process's namespace names all users */
static bool
names_all_users(void)
{
	char text[128];
	unsigned first, base, n;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (len < 0)
		return false;
	text[len] = '\0';
	return sscanf(text, "%u %u %u", &first, &base, &n) == 3 && first == 0 && n == UINT32_MAX;
}

bool
meet_is_own_user(uint32_t uid)
{
	return uid == geteuid() && (uid != UID_UNKNOWN || names_all_users());
}

bool
meet_allows(uint32_t uid, int fd)
{
	if (who.all || meet_is_own_user(uid))
		return true;
	for (unsigned i = 0; i < who.n_uids; i++)
		if (uid == who.uids[i])
			return true;
	return who.n_gids != 0 && in_groups(fd);
}

/* @return 0, or why there is nobody at this place */
static int
place_connect(int fd, enum meet_place place, uint64_t proc)
{
	struct sockaddr_un a;
	socklen_t len = meet_name(place, proc, &a);

	if (len == 0)
		return -ENOENT;
	return connect(fd, (struct sockaddr *)&a, len) == 0 ? 0 : -errno;
}

int
meet_connect(int fd, uint64_t proc)
{
	int rc = place_connect(fd, MEET_ABSTRACT, proc);

	if (rc == -ECONNREFUSED || rc == -ENOENT)
		rc = place_connect(fd, MEET_FOLDER, proc);
	return rc == -ENOENT ? -ECONNREFUSED : rc;
}

/*
 * A datagram socket connects without an answer: to the one that stands for the process, or,
 * in a folder, to one of another kind, whose error is just as informative.
 */
bool
plx_meet_gone(uint64_t proc)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return false; /* unknown */
	rc = meet_connect(fd, proc);
	close(fd);
	return rc == -ECONNREFUSED;
}

void
meet_folder_sweep(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct dirent *e;
	DIR *d = opendir(who.dir);
	int fd;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		struct stat st;

		if (strncmp(e->d_name, "pollux-", 7) != 0 || strlen(e->d_name) != 7 + 16)
			continue;
		snprintf(a.sun_path, sizeof(a.sun_path), "%s/%.23s", who.dir, e->d_name);
		if (lstat(a.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
			continue;
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			break;
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0 && errno == ECONNREFUSED)
			unlink(a.sun_path);
		close(fd);
	}
	closedir(d);
}
