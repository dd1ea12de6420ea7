/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * facts.c - what this build is and what this place gives it: devices, pages, namespaces, copies
 *
 * Design notes: nothing is started, and all is tried rather than read from settings of the system where that can be done:
 * a page is taken, a copy is made.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_version.h>

#include "plx_config.h"
#include "plx_dev.h"
#include "plx_mem.h"

#include "info.h"

#define INFO_TEXT 128
#define INFO_HUGE_LEN (2u << 20)

/* The first word of a file of the system. @return whether there is one. */
static int
file_word(const char *path, char *word)
{
	FILE *f = fopen(path, "re");
	int n;

	if (f == NULL)
		return 0;
	n = fscanf(f, "%127s", word);
	fclose(f);
	return n == 1;
}

static json_t *
file_number(const char *dir, const char *name)
{
	char path[256], word[INFO_TEXT];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_word(path, word) ? json_integer(strtoll(word, NULL, 10)) : json_null();
}

json_t *
info_build(void)
{
	json_t *drivers = json_array();
	const char *name;

	for (unsigned i = 0; (name = plx_dev_driver(i, NULL)) != NULL; i++)
		json_array_append_new(drivers, json_string(name));
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "version", PLX_VERSION, "compiler", PLX_COMPILER, "type",
		PLX_BUILDTYPE, "dpdk", rte_version(), "drivers", drivers);
}

/* What is wrong where a driver finds nothing; its own word for a machine without its hardware is -ENODEV. */
static json_t *
device_none(const char *name, int rc)
{
	return json_pack("{s:s, s:s, s:s}", "name", name, "state", "none", "reason",
		rc == -ENODEV ? "no such device here" : strerror(-rc));
}

static void
device_ports(json_t *list, const char *name, const struct plx_conf *conf)
{
	struct plx_dev_port port;
	int rc;

	for (unsigned i = 0; (rc = plx_dev_look(name, conf, i, &port)) == 0; i++) {
		json_t *d = json_pack("{s:s, s:s}", "name", name, "state", port.up ? "up" : "down");

		if (port.name[0] != '\0')
			json_object_set_new(d, "port", json_string(port.name));
		json_array_append_new(list, d);
	}
	if (json_array_size(list) == 0 ||
		strcmp(json_string_value(json_object_get(json_array_get(list, json_array_size(list) - 1), "name")),
			name) != 0)
		json_array_append_new(list, device_none(name, rc));
}

static int
is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; (p = strstr(p, name)) != NULL; p += len)
		if ((p == list || strchr(", ", p[-1]) != NULL) && (p[len] == '\0' || strchr(", ", p[len]) != NULL))
			return 1;
	return 0;
}

json_t *
info_devices(const struct plx_conf *conf)
{
	json_t *list = json_array(), *d;
	const char *name;
	size_t i;

	for (unsigned n = 0; (name = plx_dev_driver(n, NULL)) != NULL; n++)
		device_ports(list, name, conf);
	json_array_foreach(list, i, d)
		json_object_set_new(d, "used", json_boolean(is_listed(plx_conf_str(conf, PLX_CONF_DEVICES),
			json_string_value(json_object_get(d, "name")))));
	return list;
}

/* Pages of 2 MiB: those of the system, and whether this process is given one. */
json_t *
info_pages(const struct plx_conf *conf)
{
	static const char dir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB";
	int id = plx_conf_find_role(PLX_CONF_ROLE_HUGE, 0);
	struct plx_seg seg;
	int got = 0;

	if (plx_seg_create(&seg, NULL, INFO_HUGE_LEN, true) == 0) {
		got = seg.huge;
		plx_seg_destroy(&seg);
	}
	return json_pack("{s:o, s:o, s:b, s:b}", "reserved", file_number(dir, "nr_hugepages"), "free",
		file_number(dir, "free_hugepages"), "given", got, "wanted",
		id < 0 || plx_conf_u64(conf, (unsigned)id) == PLX_CONF_AUTO);
}

/* Numbers that the kernel gives to the first namespaces; others of a host have any. */
static const struct {
	const char *name;
	unsigned long first; /* 0: any */
} spaces[] = {{"pid", 4026531836}, {"user", 4026531837}, {"net", 0}, {"mnt", 0}, {"ipc", 4026531839},
	{"time", 4026531834}};

static json_t *
namespace_of(size_t i)
{
	char path[64], link[INFO_TEXT] = "";
	unsigned long number;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i].name);
	if (readlink(path, link, sizeof(link) - 1) < 0 || strchr(link, '[') == NULL)
		return json_null();
	number = strtoul(strchr(link, '[') + 1, NULL, 10);
	return json_pack("{s:I, s:o}", "id", (json_int_t)number, "host",
		spaces[i].first == 0 ? json_null() : json_boolean(number == spaces[i].first));
}

json_t *
info_namespaces(void)
{
	json_t *out = json_object();

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		json_object_set_new(out, spaces[i].name, namespace_of(i));
	return out;
}

/* What a child gets when it reads its parent, as two ranks of a launcher read each other. @return an errno */
static int
copy_tried(void)
{
	static volatile uint64_t there = 0x1234;
	pid_t parent = getpid(), child = fork();
	int status;

	if (child == 0) {
		uint64_t here = 0;
		struct iovec local = {&here, sizeof(here)}, remote = {(void *)(uintptr_t)&there, sizeof(there)};
		ssize_t n = process_vm_readv(parent, &local, 1, &remote, 1, 0);

		_exit(n == (ssize_t)sizeof(here) && here == 0x1234 ? 0 : n < 0 ? errno : EIO);
	}
	if (child < 0)
		return errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

json_t *
info_copies(const struct plx_conf *conf)
{
	int id = plx_conf_find_role(PLX_CONF_ROLE_READS, 0), rc = copy_tried();
	char word[INFO_TEXT];
	json_t *out = json_pack("{s:b, s:b}", "wanted", id < 0 || plx_conf_u64(conf, (unsigned)id) != PLX_CONF_NO,
		"allowed", rc == 0);

	if (rc != 0)
		json_object_set_new(out, "reason", json_string(strerror(rc)));
	json_object_set_new(out, "ptrace_scope", file_word("/proc/sys/kernel/yama/ptrace_scope", word)
			? json_integer(strtol(word, NULL, 10)) : json_null());
	return out;
}
