/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_tls.c - the devices of a context, from UCX's lists of transports and devices
 *
 * Design notes
 * - UCX_TLS, UCX_SHM_DEVICES and UCX_NET_DEVICES select the devices of a context. Each transport
 *   of UCX is an alias of a driver (plx_dev_names), or has none; a list of the latter leaves
 *   nothing, as on a machine where UCX lacks it. Our settings override the lists.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "ucp_int.h"

#define LIST_MAX 1024

/* UCX's transports without a driver of ours; the driver lists its own. */
static const char *const nothing[] = {"gga", "gga_mlx5", "rc_gda", "cuda", "cuda_copy", "cuda_ipc",
	"gdr_copy", "rocm", "rocm_copy", "rocm_ipc", "rocm_gdr", "ze", "ze_copy", "ze_ipc", "ze_gdr",
	"gaudi", "gaudi_gdr", "ugni", "ugni_smsg", "ugni_rdma"};

/* A list of UCX: all, some, or all but some. */
struct list {
	char text[LIST_MAX];
	char *names; /* in text, after ^ */
	bool all, not;
};

static void
list_get(struct list *l, const struct plx_conf *conf, const char *name)
{
	plx_conf_format_ucx(conf, name, l->text, sizeof(l->text));
	l->all = strcmp(l->text, "all") == 0;
	l->not = l->text[0] == '^';
	l->names = l->text + l->not;
}

static bool
list_has(const struct list *l, const char *name)
{
	size_t len, name_len = strlen(name);

	for (const char *p = l->names; *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (len == name_len && strncmp(p, name, len) == 0)
			return true;
	}
	return false;
}

static bool
list_allows(const struct list *l, const char *name)
{
	return l->all || list_has(l, name) != l->not;
}

static bool
wants_warnings(const struct plx_conf *conf)
{
	char text[8];

	plx_conf_format_ucx(conf, "WARN_INVALID_CONFIG", text, sizeof(text));
	return strcmp(text, "n") != 0;
}

/* By the number of the driver. */
struct choice {
	bool use[PLX_DEV_MAX];
	bool reads;
};

static bool
is_word(const char *name, const char *p, size_t len)
{
	return strlen(name) == len && strncmp(name, p, len) == 0;
}

/* The meaning of one name. @return whether it is a transport of UCX */
static bool
name_means(const char *p, size_t len, struct choice *out)
{
	const struct plx_dev_names *names;
	bool found = false;

	for (unsigned i = 0; plx_dev_driver(i, &names) != NULL; i++) {
		for (const struct plx_dev_alias *a = names != NULL ? names->aliases : NULL; a != NULL && a->name != NULL; a++) {
			if (!is_word(a->name, p, len))
				continue;
			out->use[i] = found = true;
			out->reads |= a->reads;
		}
	}
	for (size_t i = 0; i < RTE_DIM(nothing) && !found; i++) {
		if (!is_word(nothing[i], p, len))
			continue;
		found = true;
		PLX_LOG(INFO, ucp, "UCX_TLS: %s has no effect here", nothing[i]);
	}
	return found;
}

/* The meaning of the names; a leading backslash only says that it is no alias. */
static void
names_mean(const struct list *tls, bool warn, struct choice *out)
{
	size_t len;

	*out = (struct choice){.reads = false};
	for (const char *p = tls->names; *p != '\0'; p += len + (p[len] == ',')) {
		p += *p == '\\';
		len = strcspn(p, ",");
		/* "ud:aux", an auxiliary transport of UCX, is none either */
		if (!name_means(p, len, out) && warn && memchr(p, ':', len) == NULL)
			PLX_LOG(WARNING, ucp, "UCX_TLS: no transport is named %.*s", (int)len, p);
	}
}

/* The devices without these names: a device is excluded when all its transports of UCX are. */
static void
names_leave(const struct list *tls, struct choice *out)
{
	const struct plx_dev_names *names;

	for (unsigned i = 0; plx_dev_driver(i, &names) != NULL; i++) {
		uint8_t all = 0, taken = 0;

		for (const struct plx_dev_alias *a = names != NULL ? names->aliases : NULL; a != NULL && a->name != NULL; a++) {
			all |= a->takes & ~PLX_DEV_ALIAS_READS;
			if (list_has(tls, a->name))
				taken |= a->takes;
		}
		if ((taken & PLX_DEV_ALIAS_READS) != 0)
			out->reads = false;
		out->use[i] = all == 0 || (taken & all) != all;
	}
}

/* Whether the list leaves anything whose name is that of a port, "mlx5_0:1", or of an interface. */
static bool
has_any(const struct list *devices, bool interface)
{
	bool found = devices->all || devices->not;
	size_t len;

	for (const char *p = devices->names; *p != '\0' && !found; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		found = len != 0 && (memchr(p, ':', len) == NULL) == interface;
	}
	return found;
}

/* "posix, rc": an example for each driver. */
static void
examples_text(char *text, size_t len)
{
	const struct plx_dev_names *names;
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; plx_dev_driver(i, &names) != NULL; i++)
		if (names != NULL && names->aliases != NULL && n < len)
			n += (size_t)snprintf(text + n, len - n, "%s%s", n != 0 ? ", " : "", names->aliases->name);
}

/* Whether the lists of devices permit the driver. */
static bool
devices_allow(const struct plx_dev_names *names, const struct list *within, const struct list *net)
{
	return names->between_hosts ? has_any(net, names->by_interface) : list_allows(within, "memory");
}

/* Put the selected drivers into worker.devices, unless all are. */
static void
choice_set(struct plx_conf *conf, const struct choice *choice)
{
	char text[PLX_CONF_STR_MAX] = "";
	const struct plx_dev_names *names;
	const char *name;
	size_t n = 0;
	bool all = true;

	for (unsigned i = 0; (name = plx_dev_driver(i, &names)) != NULL; i++) {
		if (names == NULL)
			continue;
		all = all && choice->use[i];
		if (choice->use[i] && n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n != 0 ? "," : "", name);
	}
	if (!all)
		plx_conf_set(conf, "worker.devices", text, PLX_CONF_FROM_API, NULL);
}

static void
no_reads(struct plx_conf *conf)
{
	int id;

	for (id = plx_conf_find_role(PLX_CONF_ROLE_READS, 0); id >= 0; id = plx_conf_find_role(PLX_CONF_ROLE_READS, id + 1))
		if (conf->v[id].source == PLX_CONF_FROM_DEFAULT)
			plx_conf_set(conf, plx_conf_row(id)->name, "no", PLX_CONF_FROM_API, NULL);
}

ucs_status_t
ucp_tls_choose(struct plx_conf *conf)
{
	const struct plx_dev_names *names;
	struct choice choice = {.reads = true};
	bool any = false, any_within = false;
	struct list tls, within, net;
	char examples[128];

	if (conf->v[PLX_CONF_DEVICES].source != PLX_CONF_FROM_DEFAULT)
		return UCS_OK;
	list_get(&tls, conf, "TLS");
	list_get(&within, conf, "SHM_DEVICES");
	list_get(&net, conf, "NET_DEVICES");
	if (tls.names[0] == '\0') {
		PLX_LOG(ERR, ucp, "UCX_TLS is an empty list");
		return UCS_ERR_NO_ELEM;
	}
	memset(choice.use, true, sizeof(choice.use));
	if (tls.not)
		names_leave(&tls, &choice);
	else if (!tls.all)
		names_mean(&tls, wants_warnings(conf), &choice);
	for (unsigned i = 0; plx_dev_driver(i, &names) != NULL; i++) {
		choice.use[i] = choice.use[i] && names != NULL && devices_allow(names, &within, &net);
		any |= choice.use[i];
		any_within |= choice.use[i] && !names->between_hosts;
	}
	if (!any) {
		examples_text(examples, sizeof(examples));
		PLX_LOG(ERR, ucp, "no device for UCX_TLS=%.200s UCX_SHM_DEVICES=%.64s UCX_NET_DEVICES=%.64s: "
			"there is one for each of %s", tls.text, within.text, net.text, examples);
		return UCS_ERR_NO_DEVICE;
	}
	choice_set(conf, &choice);
	if (!choice.reads)
		no_reads(conf);
	if (!any_within)
		plx_conf_follow_inter(conf);
	return UCS_OK;
}

/* "mlx5_0:1" of "mlx5_0:1:3": the name of a port, which may have a gid. */
static bool
is_port(const char *name, size_t len, const char *port)
{
	size_t port_len = strlen(port);

	return len >= port_len && strncmp(name, port, port_len) == 0 &&
	       (len == port_len || name[port_len] == ':');
}

static bool
is_there(const struct plx_conf *conf, const char *name, size_t len)
{
	const struct plx_dev_names *names;
	struct plx_dev_port port;
	const char *driver;
	char text[IF_NAMESIZE];

	if (memchr(name, ':', len) == NULL) {
		if (len >= sizeof(text))
			return false;
		memcpy(text, name, len);
		text[len] = '\0';
		return if_nametoindex(text) != 0;
	}
	for (unsigned d = 0; (driver = plx_dev_driver(d, &names)) != NULL; d++)
		for (unsigned i = 0; names != NULL && names->between_hosts && plx_dev_look(driver, conf, i, &port) == 0; i++)
			if (is_port(name, len, port.name))
				return true;
	return false;
}

/* Names of missing devices: reported, as UCX does, since they are often typos. */
static void
tell_missing(const struct plx_conf *conf, const struct list *net)
{
	size_t len;

	for (const char *p = net->names; *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (!is_there(conf, p, len))
			PLX_LOG(WARNING, ucp, "UCX_NET_DEVICES: this machine has no device %.*s", (int)len, p);
	}
}

/* All ports of a driver without the excluded ones. @return whether there are any */
static bool
leave_out(struct plx_conf *conf, const char *driver, const struct list *net)
{
	struct plx_dev_port port;
	char names[PLX_CONF_STR_MAX] = "";
	size_t n = 0;
	bool all = true;

	for (unsigned i = 0; plx_dev_look(driver, conf, i, &port) == 0; i++) {
		if (list_has(net, port.name)) {
			all = false;
			continue;
		}
		if (n + strlen(port.name) + 2 <= sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n != 0 ? "," : "",
				port.name);
	}
	if (!all && n != 0)
		plx_conf_set_role(conf, PLX_CONF_ROLE_PORT_NAMES, names, PLX_CONF_FROM_API);
	return all || n != 0;
}

/* The drivers of worker.devices except one. @return whether there are any */
static bool
drop_driver(struct plx_conf *conf, const char *driver)
{
	const char *list = plx_conf_str(conf, PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX], left[PLX_CONF_STR_MAX] = "";
	size_t n = 0;

	while (plx_conf_next(&list, name, sizeof(name)))
		if (strcmp(name, driver) != 0)
			n += (size_t)snprintf(left + n, sizeof(left) - n, "%s%s", n != 0 ? "," : "", name);
	if (n != 0)
		plx_conf_set(conf, "worker.devices", left, PLX_CONF_FROM_API, NULL);
	return n != 0;
}

/* Without the ports of UCX_NET_DEVICES=^... @return whether a device is left */
static bool
drop_ports(struct plx_conf *conf, const struct list *net)
{
	int id = plx_conf_find_role(PLX_CONF_ROLE_PORT_NAMES, 0);
	const struct plx_dev_names *names;
	const char *driver;
	bool left = true;

	if (id < 0 || conf->v[id].source != PLX_CONF_FROM_DEFAULT)
		return true;
	for (unsigned i = 0; left && (driver = plx_dev_driver(i, &names)) != NULL; i++)
		if (names != NULL && names->between_hosts && !names->by_interface && !leave_out(conf, driver, net))
			left = drop_driver(conf, driver);
	return left;
}

static bool
is_between_hosts(const char *devices)
{
	const struct plx_dev_names *names;
	const char *driver;

	for (unsigned i = 0; (driver = plx_dev_driver(i, &names)) != NULL; i++)
		if (strcmp(driver, devices) == 0)
			return names != NULL && names->between_hosts;
	return false;
}

ucs_status_t
ucp_tls_check(struct plx_conf *conf)
{
	struct plx_dev_port port;
	struct list net;
	const char *devices;

	list_get(&net, conf, "NET_DEVICES");
	if (net.not && !drop_ports(conf, &net))
		return UCS_ERR_NO_DEVICE;
	if (!net.all && wants_warnings(conf))
		tell_missing(conf, &net);
	devices = plx_conf_str(conf, PLX_CONF_DEVICES);
	if (is_between_hosts(devices) && plx_conf_ucx_is_set(conf, "TLS") &&
		plx_dev_look(devices, conf, 0, &port) != 0) {
		PLX_LOG(ERR, ucp, "UCX_TLS allows %s only, and this machine has no device for it", devices);
		return UCS_ERR_NO_DEVICE;
	}
	return UCS_OK;
}
