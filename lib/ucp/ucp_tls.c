/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_tls.c - the devices of a context, from UCX's lists of transports and devices
 *
 * Design notes: UCX_TLS, UCX_SHM_DEVICES and UCX_NET_DEVICES say what a context may use. Each
 * transport of UCX is one of ours, or none; a list of none leaves nothing, as on a machine
 * where UCX has not got it. Settings of ours count above the lists.
 */
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ucp_int.h"

#define LIST_MAX 1024

enum { NONE, SHM, NET };

/* UCX's transports and its names for several; whether they read the memory of another process. */
static const struct {
	const char *name;
	int device;
	bool reads;
} transports[] = {
	{"self", SHM, false}, {"posix", SHM, false}, {"sysv", SHM, false}, {"mm", SHM, false},
	{"sm", SHM, true}, {"shm", SHM, true}, {"cma", SHM, true}, {"knem", SHM, true},
	{"xpmem", SHM, true},
	{"ib", NET, false}, {"rc", NET, false}, {"rc_v", NET, false}, {"rc_x", NET, false},
	{"rc_verbs", NET, false}, {"rc_mlx5", NET, false}, {"ud", NET, false}, {"ud_v", NET, false},
	{"ud_x", NET, false}, {"ud_verbs", NET, false}, {"ud_mlx5", NET, false}, {"dc", NET, false},
	{"dc_x", NET, false}, {"dc_mlx5", NET, false}, {"srd", NET, false},
	{"tcp", NONE, false}, {"gga", NONE, false}, {"gga_mlx5", NONE, false}, {"rc_gda", NONE, false},
	{"cuda", NONE, false}, {"cuda_copy", NONE, false}, {"cuda_ipc", NONE, false},
	{"gdr_copy", NONE, false}, {"rocm", NONE, false}, {"rocm_copy", NONE, false},
	{"rocm_ipc", NONE, false}, {"rocm_gdr", NONE, false}, {"ze", NONE, false},
	{"ze_copy", NONE, false}, {"ze_ipc", NONE, false}, {"ze_gdr", NONE, false},
	{"gaudi", NONE, false}, {"gaudi_gdr", NONE, false}, {"ugni", NONE, false},
	{"ugni_smsg", NONE, false}, {"ugni_rdma", NONE, false},
};

/* A list of UCX: all, some, or all but some. */
struct list {
	char text[LIST_MAX];
	char *names; /* in text, behind ^ */
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

struct choice {
	bool shm, net, reads;
};

/* What the names stand for; a leading backslash only says that it is no alias. */
static void
names_mean(const struct list *tls, bool warn, struct choice *out)
{
	size_t i, len, n = sizeof(transports) / sizeof(transports[0]);

	*out = (struct choice){false, false, false};
	for (const char *p = tls->names; *p != '\0'; p += len + (p[len] == ',')) {
		p += *p == '\\';
		len = strcspn(p, ",");
		for (i = 0; i < n; i++)
			if (strlen(transports[i].name) == len && strncmp(transports[i].name, p, len) == 0)
				break;
		if (i == n) { /* "ud:aux", for what UCX needs besides, is none either */
			if (warn && memchr(p, ':', len) == NULL)
				PLX_LOG(WARNING, ucp, "UCX_TLS: there is no transport %.*s", (int)len, p);
			continue;
		}
		out->shm |= transports[i].device == SHM;
		out->net |= transports[i].device == NET;
		out->reads |= transports[i].reads;
		if (transports[i].device == NONE)
			PLX_LOG(INFO, ucp, "UCX_TLS: %s means nothing here", transports[i].name);
	}
}

/* What is left when these are not to be used: a device goes when all ways that UCX has for it do. */
static void
names_leave(const struct list *tls, struct choice *out)
{
	bool no_sm = list_has(tls, "sm") || list_has(tls, "shm"), no_ib = list_has(tls, "ib");

	out->shm = !no_sm && !list_has(tls, "mm") && !(list_has(tls, "posix") && list_has(tls, "sysv"));
	out->net = !no_ib && !list_has(tls, "rc") &&
		   !((list_has(tls, "rc_v") || list_has(tls, "rc_verbs")) &&
			   (list_has(tls, "rc_x") || list_has(tls, "rc_mlx5")));
	out->reads = !list_has(tls, "cma");
}

static bool
has_port(const struct list *devices)
{
	return devices->all || devices->not || strchr(devices->names, ':') != NULL;
}

ucs_status_t
ucp_tls_choose(struct plx_conf *conf)
{
	struct choice choice = {true, true, true};
	struct list tls, shm, net;
	const char *names;

	if (conf->v[PLX_CONF_DEVICES].source != PLX_CONF_FROM_DEFAULT)
		return UCS_OK;
	list_get(&tls, conf, "TLS");
	list_get(&shm, conf, "SHM_DEVICES");
	list_get(&net, conf, "NET_DEVICES");
	if (tls.names[0] == '\0') {
		PLX_LOG(ERR, ucp, "UCX_TLS is an empty list");
		return UCS_ERR_NO_ELEM;
	}
	if (tls.not)
		names_leave(&tls, &choice);
	else if (!tls.all)
		names_mean(&tls, wants_warnings(conf), &choice);
	choice.shm = choice.shm && list_allows(&shm, "memory");
	choice.net = choice.net && has_port(&net);
	if (!choice.shm && !choice.net) {
		PLX_LOG(ERR, ucp, "no device for UCX_TLS=%.200s UCX_SHM_DEVICES=%.64s "
			"UCX_NET_DEVICES=%.64s: there are shared memory (posix, cma, self) and RDMA (rc)",
			tls.text, shm.text, net.text);
		return UCS_ERR_NO_DEVICE;
	}
	names = choice.shm && choice.net ? NULL : choice.shm ? "shm" : "net_mlx";
	if (names != NULL)
		plx_conf_set(conf, "worker.devices", names, PLX_CONF_FROM_API, NULL);
	if (!choice.reads && conf->v[PLX_CONF_SHM_CMA].source == PLX_CONF_FROM_DEFAULT)
		plx_conf_set(conf, "shm.cma", "no", PLX_CONF_FROM_API, NULL);
	if (!choice.shm)
		plx_conf_follow_inter(conf);
	return UCS_OK;
}

/* "mlx5_0:1" of "mlx5_0:1:3": what a port is called whose gid is named as well. */
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
	struct plx_dev_port port;
	char text[IF_NAMESIZE];

	if (memchr(name, ':', len) == NULL) {
		if (len >= sizeof(text))
			return false;
		memcpy(text, name, len);
		text[len] = '\0';
		return if_nametoindex(text) != 0;
	}
	for (unsigned i = 0; plx_dev_look("net_mlx", conf, i, &port) == 0; i++)
		if (is_port(name, len, port.name))
			return true;
	return false;
}

/* Names of what is not on this machine: told, as UCX does it, since they are often slips. */
static void
tell_missing(const struct plx_conf *conf, const struct list *net)
{
	size_t len;

	for (const char *p = net->names; *p != '\0'; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (!is_there(conf, p, len))
			PLX_LOG(WARNING, ucp, "UCX_NET_DEVICES: there is no device %.*s here", (int)len, p);
		else if (memchr(p, ':', len) == NULL)
			PLX_LOG(INFO, ucp, "UCX_NET_DEVICES: %.*s is for TCP, which is not used here",
				(int)len, p);
	}
}

/* All ports but those that are not to be used. @return whether there are any */
static bool
leave_out(struct plx_conf *conf, const struct list *net)
{
	struct plx_dev_port port;
	char names[PLX_CONF_STR_MAX] = "";
	size_t n = 0;
	bool all = true;

	for (unsigned i = 0; plx_dev_look("net_mlx", conf, i, &port) == 0; i++) {
		if (list_has(net, port.name)) {
			all = false;
			continue;
		}
		if (n + strlen(port.name) + 2 <= sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n != 0 ? "," : "",
				port.name);
	}
	if (!all && n != 0)
		plx_conf_set(conf, "net_mlx.device", names, PLX_CONF_FROM_API, NULL);
	return all || n != 0;
}

ucs_status_t
ucp_tls_check(struct plx_conf *conf)
{
	struct plx_dev_port port;
	struct list net;
	const char *devices;

	list_get(&net, conf, "NET_DEVICES");
	if (net.not && conf->v[PLX_CONF_NET_MLX_DEVICE].source == PLX_CONF_FROM_DEFAULT &&
		!leave_out(conf, &net)) {
		if (strstr(plx_conf_str(conf, PLX_CONF_DEVICES), "shm") == NULL)
			return UCS_ERR_NO_DEVICE;
		plx_conf_set(conf, "worker.devices", "shm", PLX_CONF_FROM_API, NULL);
	}
	if (!net.all && wants_warnings(conf))
		tell_missing(conf, &net);
	devices = plx_conf_str(conf, PLX_CONF_DEVICES);
	if (strcmp(devices, "net_mlx") == 0 && plx_conf_ucx_is_set(conf, "TLS") &&
		plx_dev_look(devices, conf, 0, &port) != 0) {
		PLX_LOG(ERR, ucp, "UCX_TLS leaves RDMA only, and no device for it is here");
		return UCS_ERR_NO_DEVICE;
	}
	return UCS_OK;
}
