/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_device.c - devices: those of the configuration file, or the present ones
 *
 * Design notes
 * - A section whose transport is none of ours describes a device of another machine or another
 *   library: it is skipped, with a warning. Any other mistake is an error, so that no program
 *   runs on other devices than the configured ones.
 * - Keys that are names of settings (doc/guides/settings.md) apply to the endpoints of the
 *   device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cci_int.h"

#define FILE_MAX	 (1u << 20)
#define PRIORITY_DEFAULT 50
#define PRIORITY_MAX	 100

static struct {
	bool open;
	unsigned n;
	struct cci_dev *dev[CCI_INI_DEVS + 1];
	cci_device_t *list[CCI_INI_DEVS + 1]; /* returned to the application; NULL ends it */
} devices;

/* The driver of a transport, by its name or the name in other implementations. @return its
 * name, kept */
static const char *
transport_find(const char *text, const char **driver)
{
	const struct plx_dev_names *names;

	for (unsigned i = 0; (*driver = plx_dev_driver(i, &names)) != NULL; i++) {
		if (strcmp(*driver, text) == 0)
			return *driver;
		if (names != NULL && names->cci != NULL && strcmp(names->cci, text) == 0)
			return names->cci;
	}
	return NULL;
}

static void
dev_free(struct cci_dev *d)
{
	if (d == NULL)
		return;
	for (unsigned i = 0; d->argv != NULL && d->argv[i] != NULL; i++)
		free((void *)(uintptr_t)d->argv[i]);
	free(d->argv);
	free(d->name);
	free(d);
}

static struct cci_dev *
dev_new(const char *name, unsigned n_keys)
{
	struct cci_dev *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->priority = PRIORITY_DEFAULT;
	d->name = strdup(name);
	d->argv = calloc(n_keys + 1, sizeof(*d->argv));
	if (d->name != NULL && d->argv != NULL)
		return d;
	dev_free(d);
	return NULL;
}

void
cci_device_conf(const struct cci_dev *d, struct plx_conf *conf)
{
	*conf = *plx_conf_process();
	for (unsigned i = 0; d->argv[i] != NULL; i++) {
		const char *eq = strchr(d->argv[i], '=');
		char name[PLX_CONF_NAME_MAX];

		if ((size_t)(eq - d->argv[i]) >= sizeof(name))
			continue;
		memcpy(name, d->argv[i], eq - d->argv[i]);
		name[eq - d->argv[i]] = '\0';
		/* other keys are ignored */
		(void)plx_conf_set(conf, name, eq + 1, PLX_CONF_FROM_API, NULL);
	}
	(void)plx_conf_set(conf, "worker.devices", d->driver, PLX_CONF_FROM_API, NULL);
	/* A device is one port; and a URI, or a service, contains the address of one. */
	(void)plx_conf_set_role(conf, PLX_CONF_ROLE_PORTS, "1", PLX_CONF_FROM_API);
}

/* Whether an endpoint on the device could reach others now. */
static bool
is_up(const struct cci_dev *d)
{
	struct plx_dev_port port;
	struct plx_conf conf;

	cci_device_conf(d, &conf);
	return plx_dev_look(d->driver, &conf, 0, &port) == 0 && port.up;
}

/* The fields of a device with a known driver. */
static void
dev_fill(struct cci_dev *d, const char *transport)
{
	const uint32_t no_pci = UINT32_MAX;
	static struct plx_conf conf;

	d->pub.name = d->name;
	d->pub.transport = transport;
	d->pub.up = is_up(d);
	snprintf(d->info, sizeof(d->info), "driver %s of Pollux", d->driver);
	d->pub.info = d->info;
	d->pub.conf_argv = d->argv;
	cci_device_conf(d, &conf);
	d->pub.max_send_size = plx_conf_u64(&conf, PLX_CONF_CCI_MAX_SEND);
	d->pub.pci.domain = d->pub.pci.bus = d->pub.pci.dev = d->pub.pci.func = no_pci;
	d->order = devices.n;
	devices.dev[devices.n++] = d;
}

/* A whole number from 0 to max. */
static bool
device_number(const char *text, long max, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end != '\0' || v < 0 || v > max)
		return false;
	*out = v;
	return true;
}

/* A key that is a setting's name must have a good value. */
static int
check_setting(const char *text, char *err)
{
	static struct plx_conf scratch;
	const char *eq = strchr(text, '=');
	char name[PLX_CONF_NAME_MAX];
	int rc;

	if ((size_t)(eq - text) >= sizeof(name))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	plx_conf_defaults(&scratch);
	rc = plx_conf_set(&scratch, name, eq + 1, PLX_CONF_FROM_API, err);
	return rc == -ENOENT ? 0 : rc;
}

/* One line of a section. @return 0, or -EINVAL and err is the reason */
static int
dev_key(struct cci_dev *d, const struct cci_ini_key *k, const char **transport, unsigned *n_argv,
	char *err)
{
	char why[PLX_CONF_ERR_MAX] = "";
	int yes;

	if (strncmp(k->text, "transport=", 10) == 0) {
		*transport = k->text + 10;
		return 0;
	}
	if (strncmp(k->text, "priority=", 9) == 0) {
		if (device_number(k->text + 9, PRIORITY_MAX, &d->priority))
			return 0;
		snprintf(err, CCI_ERR_TEXT, "line %u: a priority is a number from 0 to 100", k->line);
		return -EINVAL;
	}
	if (strncmp(k->text, "default=", 8) == 0) {
		if (device_number(k->text + 8, 1, &yes)) {
			d->is_default = yes != 0;
			return 0;
		}
		snprintf(err, CCI_ERR_TEXT, "line %u: default is 0 or 1", k->line);
		return -EINVAL;
	}
	if (check_setting(k->text, why) != 0) {
		snprintf(err, CCI_ERR_TEXT, "line %u: %s", k->line, why);
		return -EINVAL;
	}
	d->argv[*n_argv] = strdup(k->text);
	if (d->argv[*n_argv] == NULL)
		return -ENOMEM;
	(*n_argv)++;
	return 0;
}

static int
dev_of_section(const struct cci_ini_dev *s, char *err)
{
	struct cci_dev *d = dev_new(s->name, s->n_keys);
	const char *transport = NULL, *name;
	unsigned n_argv = 0;
	int rc = d != NULL ? 0 : -ENOMEM;

	for (unsigned i = 0; rc == 0 && i < s->n_keys; i++)
		rc = dev_key(d, &s->keys[i], &transport, &n_argv, err);
	if (rc == 0 && transport == NULL) {
		snprintf(err, CCI_ERR_TEXT, "line %u: section %.32s has no transport", s->line, s->name);
		rc = -EINVAL;
	}
	for (unsigned i = 0; rc == 0 && d->is_default && i < devices.n; i++) {
		if (!devices.dev[i]->is_default)
			continue;
		snprintf(err, CCI_ERR_TEXT, "line %u: section %.32s is the default already", s->line,
			devices.dev[i]->name);
		rc = -EINVAL;
	}
	if (rc != 0) {
		dev_free(d);
		return rc;
	}
	name = transport_find(transport, &d->driver);
	if (name == NULL) {
		PLX_LOG(WARNING, cci, "line %u: device %s is left out, there is no transport %s",
			s->line, s->name, transport);
		dev_free(d);
		return 0;
	}
	dev_fill(d, name);
	return 0;
}

static int
read_file(const char *path, char *text, size_t max, size_t *len)
{
	FILE *f = fopen(path, "re");
	int rc = 0;

	if (f == NULL)
		return -errno;
	*len = fread(text, 1, max, f);
	if (ferror(f))
		rc = -EIO;
	else if (*len == max)
		rc = -EFBIG;
	fclose(f);
	return rc;
}

static int
open_file(const char *path)
{
	struct cci_ini *ini = malloc(sizeof(*ini));
	char *text = malloc(FILE_MAX);
	char err[CCI_ERR_TEXT] = "no memory";
	size_t len = 0;
	int rc = ini != NULL && text != NULL ? read_file(path, text, FILE_MAX, &len) : -ENOMEM;

	if (rc != 0)
		snprintf(err, sizeof(err), "%s", strerror(-rc));
	else
		rc = cci_ini_parse(text, len, ini, err);
	if (rc == 0) {
		for (unsigned i = 0; rc == 0 && i < ini->n_devs; i++)
			rc = dev_of_section(&ini->devs[i], err);
		cci_ini_free(ini);
	}
	free(text);
	free(ini);
	if (rc == 0)
		return CCI_SUCCESS;
	PLX_LOG(ERR, cci, "%s: %s", path, err);
	return rc == -ENOMEM ? CCI_ENOMEM : CCI_ERROR;
}

/* One for each device that workers of these settings find. */
static int
open_found(void)
{
	const char *list = plx_conf_str(plx_conf_process(), PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX];

	while (devices.n < CCI_INI_DEVS && plx_conf_next(&list, name, sizeof(name))) {
		struct plx_dev_port port;
		struct cci_dev *d;

		if (plx_dev_look(name, plx_conf_process(), 0, &port) != 0)
			continue;
		d = dev_new(name, 0);
		if (d == NULL)
			return CCI_ENOMEM;
		d->driver = d->name;
		dev_fill(d, d->name);
	}
	return devices.n > 0 ? CCI_SUCCESS : CCI_ERR_NOT_FOUND;
}

/* Those that are up first, then by priority, then as in the file. */
static int
device_compare(const void *pa, const void *pb)
{
	const struct cci_dev *a = *(struct cci_dev *const *)pa, *b = *(struct cci_dev *const *)pb;

	if (a->pub.up != b->pub.up)
		return a->pub.up ? -1 : 1;
	if (a->priority != b->priority)
		return b->priority - a->priority;
	return a->order < b->order ? -1 : 1;
}

int
cci_devices_open(void)
{
	const char *path = secure_getenv("CCI_CONFIG");
	int status = path != NULL && path[0] != '\0' ? open_file(path) : open_found();

	if (status != CCI_SUCCESS) {
		cci_devices_close();
		return status;
	}
	qsort(devices.dev, devices.n, sizeof(devices.dev[0]), device_compare);
	for (unsigned i = 0; i < devices.n; i++)
		devices.list[i] = &devices.dev[i]->pub;
	devices.list[devices.n] = NULL;
	devices.open = true;
	return CCI_SUCCESS;
}

void
cci_devices_close(void)
{
	for (unsigned i = 0; i < devices.n; i++)
		dev_free(devices.dev[i]);
	devices.n = 0;
	devices.open = false;
}

void
cci_devices_forget(void)
{
	devices.n = 0;
	devices.open = false;
}

const struct cci_dev *
cci_device_find(cci_device_t *device)
{
	for (unsigned i = 0; i < devices.n; i++) {
		if (device != NULL ? device == &devices.dev[i]->pub : devices.dev[i]->is_default)
			return devices.dev[i];
	}
	return device == NULL && devices.n > 0 ? devices.dev[0] : NULL;
}

int
cci_get_devices(cci_device_t *const **list)
{
	if (list == NULL)
		return CCI_EINVAL;
	if (!devices.open)
		return CCI_ERROR;
	for (unsigned i = 0; i < devices.n; i++)
		/* any thread may call, and read it through an older list */
		__atomic_store_n(&devices.dev[i]->pub.up, is_up(devices.dev[i]), __ATOMIC_RELAXED);
	*list = devices.list;
	return CCI_SUCCESS;
}
