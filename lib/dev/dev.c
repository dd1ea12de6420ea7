/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev.c - the list of drivers, and devices that are open
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "dev_int.h"
#include "plx_dev_cm.h"

PLX_LOG_DEFINE(dev, "plx.dev");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct plx_dev_ops *drivers[PLX_DEV_MAX];
static unsigned n_drivers;
static struct plx_dev *devs[PLX_DEV_MAX];

/* The number of pointers that are set in a table: it contains hooks and nothing else. */
static size_t
n_set(const void *table, size_t len)
{
	static const uintptr_t none;
	size_t n = 0;

	for (size_t i = 0; i < len; i += sizeof(none))
		n += memcmp((const char *)table + i, &none, sizeof(none)) != 0;
	return n;
}

#define WHOLE(table)  (n_set(&(table), sizeof(table)) * sizeof(uintptr_t) == sizeof(table))
#define FITS(table)   (n_set(&(table), sizeof(table)) == 0 || WHOLE(table))

static bool
is_complete(const struct plx_dev_ops *ops)
{
	size_t from = offsetof(struct plx_dev_ops, queue_open), len = offsetof(struct plx_dev_ops, sleep) - from;

	return ops->name != NULL && ops->peer_len >= sizeof(struct plx_peer) &&
		n_set((const char *)ops + from, len) * sizeof(uintptr_t) == len &&
		FITS(ops->sleep) && FITS(ops->rma) && FITS(ops->keep) && FITS(ops->shared) && FITS(ops->keys) &&
		FITS(ops->tag) && FITS(ops->group) && FITS(ops->datagram) && FITS(ops->ports) &&
		(ops->deadline == NULL || (ops->queue_control != NULL && WHOLE(ops->sleep))) &&
		(ops->cm == NULL || WHOLE(*ops->cm)) && (ops->stats == NULL) == (ops->stat_rows == NULL);
}

/* Whether an open device has only capabilities that its driver has hooks for. */
static bool
caps_fit(const struct plx_dev *dev)
{
	const struct plx_dev_ops *ops = dev->ops;

	return ((dev->caps & (PLX_DEV_GET | PLX_DEV_PUT | PLX_DEV_KEYS)) == 0 || ops->rma.rma != NULL) &&
		((dev->caps & PLX_DEV_SHARED) == 0 || (ops->shared.peer != NULL && ops->peer_has_left != NULL)) &&
		((dev->caps & PLX_DEV_KEYS) == 0 || ops->keys.reg != NULL);
}

int
plx_dev_register(const struct plx_dev_ops *ops)
{
	int rc = 0;

	if (!is_complete(ops)) {
		PLX_LOG(ERR, dev, "driver %s lacks a required hook", ops->name != NULL ? ops->name : "without a name");
		return -EINVAL;
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_drivers; i++)
		if (drivers[i] == ops)
			goto out;
	if (n_drivers == PLX_DEV_MAX)
		rc = -ENOSPC;
	else if (ops->settings != NULL)
		rc = plx_conf_add(ops->settings);
	if (rc == 0)
		drivers[n_drivers++] = ops;
out:
	pthread_mutex_unlock(&lock);
	return rc;
}

const char *
plx_dev_driver(unsigned i, const struct plx_dev_names **names)
{
	const char *name = NULL;

	pthread_mutex_lock(&lock);
	if (i < n_drivers) {
		name = drivers[i]->name;
		if (names != NULL)
			*names = drivers[i]->names;
	}
	pthread_mutex_unlock(&lock);
	return name;
}

/* Call with the lock. */
static int
dev_find_slot(const char *name, struct plx_dev **out)
{
	for (unsigned i = 0; i < PLX_DEV_MAX; i++) {
		if (devs[i] != NULL && strcmp(devs[i]->ops->name, name) == 0) {
			*out = devs[i];
			return i;
		}
	}
	*out = NULL;
	for (unsigned i = 0; i < PLX_DEV_MAX; i++)
		if (devs[i] == NULL)
			return i;
	return -ENOSPC;
}

static void
dev_end(struct plx_dev *dev)
{
	if (dev->ops->close != NULL)
		dev->ops->close(dev);
	free(dev);
}

static int
dev_create(const char *name, const struct plx_conf *conf, struct plx_dev **out)
{
	struct plx_dev *dev;
	int rc = -ENODEV;

	for (unsigned i = 0; i < n_drivers; i++) {
		if (strcmp(drivers[i]->name, name) != 0)
			continue;
		dev = calloc(1, sizeof(*dev));
		if (dev == NULL)
			return -ENOMEM;
		dev->ops = drivers[i];
		dev->caps = dev->ops->caps;
		rc = dev->ops->open != NULL ? dev->ops->open(dev, conf) : 0;
		if (rc == 0 && !caps_fit(dev)) {
			PLX_LOG(ERR, dev, "driver %s lacks a hook for a capability that it claims", name);
			dev_end(dev);
			return -EINVAL;
		}
		if (rc != 0) {
			free(dev);
			return rc;
		}
		*out = dev;
		return 0;
	}
	return rc;
}

int
plx_dev_open(const char *name, const struct plx_conf *conf, struct plx_dev **out)
{
	struct plx_dev *dev;
	int slot, rc = 0;

	pthread_mutex_lock(&lock);
	slot = dev_find_slot(name, &dev);
	if (slot < 0)
		rc = slot;
	else if (dev == NULL)
		rc = dev_create(name, conf, &dev);
	else if (plx_dev_has_failed(dev))
		rc = -ENXIO;
	if (rc == 0) {
		devs[slot] = dev;
		dev->refs++;
		*out = dev;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void
plx_dev_close(struct plx_dev *dev)
{
	if (dev == NULL)
		return;
	pthread_mutex_lock(&lock);
	if (--dev->refs == 0) {
		for (unsigned i = 0; i < PLX_DEV_MAX; i++)
			if (devs[i] == dev)
				devs[i] = NULL;
		dev_end(dev);
	}
	pthread_mutex_unlock(&lock);
}

int
plx_dev_fail(const char *name)
{
	struct plx_dev *dev;

	pthread_mutex_lock(&lock);
	(void)dev_find_slot(name, &dev);
	if (dev != NULL)
		/* alone: a thread that sees it reads nothing else */
		atomic_store_explicit(&dev->failed, true, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return dev != NULL ? 0 : -ENODEV;
}

bool
plx_dev_has_failed(const struct plx_dev *dev)
{
	return atomic_load_explicit(&dev->failed, memory_order_relaxed);
}

const char *
plx_dev_name(const struct plx_dev *dev)
{
	return dev->ops->name;
}

const struct plx_dev_cm_ops *
plx_dev_cm(const struct plx_dev *dev)
{
	return plx_dev_has_failed(dev) ? NULL : dev->ops->cm;
}

int
plx_dev_look(const char *name, const struct plx_conf *conf, unsigned port, struct plx_dev_port *out)
{
	struct plx_dev_port found = {.up = true};
	struct plx_dev *dev;
	int rc = plx_dev_open(name, conf, &dev);

	if (rc != 0)
		return rc == -ENXIO ? -ENODEV : rc;
	if (dev->ops->ports.look != NULL)
		rc = dev->ops->ports.look(conf, port, &found);
	else if (port != 0)
		rc = -ENODEV;
	plx_dev_close(dev);
	if (rc == 0)
		*out = found;
	return rc;
}

/* Devices are opened again: the parent's objects belong to the parent. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(devs, 0, sizeof(devs));
}

RTE_INIT(dev_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}
