/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mlx_ports.c - the ports that a process has opened, and those of a setting
 *
 * Design notes
 * - A process opens a port once, with one protection domain, so a key of registered memory is
 *   valid for all its workers. The ports of a setting are determined once, for workers and for
 *   memory, until no port is in use; then all are closed.
 * - So a port that comes up later has to be opened before. That costs a queue of each worker and
 *   a registration of all memory, and with two ports processors execute all atomics: too much for
 *   each port without a cable. Only a port that is named with its number is prepared.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mlx_base.h"
#include "mlx_glue.h"
#include "mlx_conf.h"
#include "mlx_port.h"

#define CANDIDATES 32 /* ports that are examined for one setting */

/* The ports of a setting. */
struct choice {
	LIST_ENTRY(choice) link;
	uint32_t max, n;
	struct mlx_port *ports[PLX_DEV_PORTS];
	char text[PLX_CONF_STR_MAX];
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, mlx_port) list;
	LIST_HEAD(, choice) choices;
	uint32_t n_users; /* queues and regions */
	uint16_t n_opened; /* ever */
	char told[PLX_CONF_STR_MAX]; /* the last setting whose missing ports are in the log */
} ports = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Found for a setting, the best first; newly opened ones are not started. */
struct found {
	struct mlx_port *ports[CANDIDATES];
	unsigned n;
	bool sorted; /* by speed; else in the order of the setting */
	bool told; /* missing ports of the setting are in the log */
};

/* -- called with the lock held -- */

/* Whether the log has the missing ports of a setting: each is opened many times. */
static bool
is_told(const char *setting)
{
	if (strcmp(ports.told, setting) == 0)
		return true;
	snprintf(ports.told, sizeof(ports.told), "%s", setting);
	return false;
}

static bool
is_open(const struct mlx_port *port)
{
	return port->pd != NULL;
}

static bool
same_port(const struct mlx_port *a, const struct mlx_port *b)
{
	return strcmp(a->label, b->label) == 0 && a->gid_index == b->gid_index;
}

static void
found_add(struct found *f, struct mlx_port *port)
{
	struct mlx_port *p;
	unsigned at = f->n;

	for (unsigned i = 0; i < f->n; i++)
		if (same_port(f->ports[i], port))
			goto drop; /* it is named twice */
	if (f->n == CANDIDATES)
		goto drop;
	LIST_FOREACH(p, &ports.list, link) {
		if (same_port(p, port)) {
			mlx_port_free(port);
			port = p;
			break;
		}
	}
	for (; f->sorted && at > 0 && f->ports[at - 1]->speed < port->speed; at--)
		f->ports[at] = f->ports[at - 1];
	f->ports[at] = port;
	f->n++;
	return;
drop:
	mlx_port_free(port);
}

/* All ports of a device, or the named one. */
static void
find_ports(struct found *f, struct ibv_device *ibdev, unsigned num, long gid)
{
	unsigned first = num != 0 ? num : 1, last = num != 0 ? num : UINT8_MAX;
	int rc = 0;

	for (unsigned i = first; i <= last && rc != -ERANGE; i++) {
		struct mlx_port *port;

		rc = mlx_port_open(ibdev, i, gid, num != 0, &port);
		if (rc == 0)
			found_add(f, port);
	}
}

/* "rxe0", "mlx5_0:2", "mlx5_0:2:3", or "" for all usable ones. */
static void
find_named(struct found *f, struct ibv_device **list, int n, const char *text)
{
	size_t len = strcspn(text, ":");
	char *rest = (char *)(uintptr_t)text + len;
	unsigned num = *rest == ':' ? strtoul(rest + 1, &rest, 10) : 0;
	long gid = *rest == ':' ? strtol(rest + 1, NULL, 10) : MLX_ANY_GID;
	unsigned before = f->n;

	for (int i = 0; i < n; i++) {
		const char *name = mlx_glue.get_device_name(list[i]);

		if (len == 0 || (strlen(name) == len && strncmp(name, text, len) == 0))
			find_ports(f, list[i], num, gid);
	}
	if (f->n == before && len != 0 && !f->told)
		PLX_LOG(WARNING, mlx, "net_mlx.device: this machine has no working port %s", text);
}

static void
find_all(struct found *f, const char *setting)
{
	char name[PLX_CONF_STR_MAX];
	struct ibv_device **list;
	int n = 0;

	list = mlx_glue.get_device_list(&n);
	if (list == NULL)
		return;
	f->sorted = setting[strspn(setting, ", ")] == '\0';
	f->told = f->sorted || is_told(setting);
	if (f->sorted)
		find_named(f, list, n, "");
	while (plx_conf_next(&setting, name, sizeof(name)))
		find_named(f, list, n, name);
	mlx_glue.free_device_list(list);
}

/* A port that is down never replaces a usable one. */
static void
down_last(struct found *f)
{
	struct mlx_port *down[CANDIDATES];
	unsigned n = 0, n_down = 0;

	for (unsigned i = 0; i < f->n; i++) {
		if (mlx_port_is_down(f->ports[i]))
			down[n_down++] = f->ports[i];
		else
			f->ports[n++] = f->ports[i];
	}
	memcpy(&f->ports[n], down, n_down * sizeof(down[0]));
}

static int
port_start(struct mlx_port *port)
{
	int rc;

	if (is_open(port))
		return 0;
	rc = mlx_port_start(port);
	if (rc != 0)
		return rc;
	port->addr.port = ++ports.n_opened != 0 ? ports.n_opened : ++ports.n_opened;
	LIST_INSERT_HEAD(&ports.list, port, link);
	PLX_LOG(DEBUG, mlx, "port %s%s", port->label, mlx_port_is_down(port) ? " stands by" : "");
	return 0;
}

static int
choice_make(const char *text, uint32_t max, struct choice **out)
{
	struct found f = {.n = 0};
	struct choice *c;
	int rc = mlx_glue_open();

	if (rc != 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->max = max;
	snprintf(c->text, sizeof(c->text), "%s", text);
	find_all(&f, text);
	if (f.n > max)
		down_last(&f);
	rc = -ENODEV;
	for (unsigned i = 0; i < f.n; i++) {
		if (c->n < max && c->n < PLX_DEV_PORTS && (rc = port_start(f.ports[i])) == 0)
			c->ports[c->n++] = f.ports[i];
		else if (!is_open(f.ports[i]))
			mlx_port_free(f.ports[i]);
	}
	if (c->n == 0) {
		free(c);
		return rc;
	}
	LIST_INSERT_HEAD(&ports.choices, c, link);
	*out = c;
	return 0;
}

static int
choice_get(const char *text, uint32_t max, struct choice **out)
{
	struct choice *c;

	LIST_FOREACH(c, &ports.choices, link) {
		if (c->max == max && strcmp(c->text, text) == 0) {
			*out = c;
			return 0;
		}
	}
	return choice_make(text, max, out);
}

static void
close_unused(void)
{
	struct choice *c;
	struct mlx_port *port;

	if (ports.n_users != 0)
		return;
	while ((c = LIST_FIRST(&ports.choices)) != NULL) {
		LIST_REMOVE(c, link);
		free(c);
	}
	while ((port = LIST_FIRST(&ports.list)) != NULL) {
		LIST_REMOVE(port, link);
		plx_reg_cache_forget(&port->domain);
		mlx_port_free(port);
	}
}

static int
no_choice(const char *setting)
{
	if (setting[0] != '\0' && !is_told(setting))
		PLX_LOG(WARNING, mlx, "net_mlx.device is %s, and this machine has no RDMA device", setting);
	return -ENODEV;
}

/* -- without it -- */

int
mlx_port_get(const struct plx_conf *conf, unsigned i, struct mlx_port **out)
{
	const char *setting = plx_conf_str(conf, MLX_CONF(DEVICE));
	struct choice *c;
	int rc;

	pthread_mutex_lock(&ports.lock);
	/* Most machines have none: then nothing is loaded. */
	if (access("/sys/class/infiniband_verbs", F_OK) != 0)
		rc = no_choice(setting);
	else
		rc = choice_get(setting, plx_conf_u64(conf, MLX_CONF(PORTS)), &c);
	if (rc == 0 && i >= c->n)
		rc = -ENODEV;
	if (rc == 0) {
		ports.n_users++;
		*out = c->ports[i];
	}
	close_unused();
	pthread_mutex_unlock(&ports.lock);
	return rc;
}

void
mlx_port_put(struct mlx_port *port)
{
	(void)port;
	pthread_mutex_lock(&ports.lock);
	ports.n_users--;
	close_unused();
	pthread_mutex_unlock(&ports.lock);
}

int
mlx_look(const struct plx_conf *conf, unsigned i, struct plx_dev_port *out)
{
	struct mlx_port *port;
	int rc = mlx_port_get(conf, i, &port);

	if (rc != 0)
		return rc;
	snprintf(out->name, sizeof(out->name), "%s", port->label);
	out->up = mlx_port_is_up(port);
	mlx_port_put(port);
	return 0;
}

/* Open ports belong to the parent: a child opens devices again. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&ports.lock, NULL);
	LIST_INIT(&ports.list);
	LIST_INIT(&ports.choices);
	ports.n_users = 0;
}

RTE_INIT(mlx_ports_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
