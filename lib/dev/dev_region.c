/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dev_region.c - memory that peers reach by the device, whatever queue they speak to
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plx_dev.h"
#include "plx_dev_ops.h"

/* With each port. @return 0 if one accepted it; out->alone: and all did */
static int
keys_reg(const struct plx_dev_ops *ops, const struct plx_conf *conf, void *addr, size_t len,
	uint8_t rights, struct plx_dev_region *out)
{
	unsigned ports = ops->ports.name != NULL ? PLX_DEV_PORTS : 1;
	int rc, err = 0;

	if (ops->keys.region_reg == NULL)
		return -EOPNOTSUPP;
	for (unsigned port = 0; port < ports; port++) {
		rc = ops->keys.region_reg(conf, port, addr, len, rights, &out->keys[out->n_keys]);
		if (rc == -ENODEV && port != 0)
			break;
		if (rc == 0)
			out->n_keys++;
		else
			err = rc;
	}
	out->alone = err == 0;
	return out->n_keys != 0 ? 0 : err;
}

/* An atomic of one port is not atomic to those of another. */
static uint8_t
atomics_of(const struct plx_dev_region *r)
{
	uint8_t least = PLX_DEV_ATOMICS_ALL;

	for (unsigned i = 0; i < r->n_keys; i++)
		least = r->keys[i].atomics < least ? r->keys[i].atomics : least;
	return r->n_keys > 1 && least == PLX_DEV_ATOMICS_OWN ? PLX_DEV_ATOMICS_NONE : least;
}

static int
region_reg(const char *name, const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out)
{
	struct plx_dev *dev;
	int rc = plx_dev_open(name, conf, &dev);

	if (rc != 0)
		return rc;
	rc = keys_reg(dev->ops, conf, addr, len, rights, out);
	if (rc != 0) {
		plx_dev_close(dev);
		return rc;
	}
	out->dev = dev;
	out->atomics = atomics_of(out);
	return 0;
}

int
plx_dev_region_open(const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out)
{
	struct plx_dev_region region = {.dev = NULL};
	const char *list = plx_conf_str(conf, PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX];
	int rc = -EOPNOTSUPP;
	unsigned n = 0;

	while (plx_conf_next(&list, name, sizeof(name))) {
		n++;
		if (region.dev == NULL)
			rc = region_reg(name, conf, addr, len, rights, &region);
	}
	if (region.dev == NULL)
		return rc;
	region.alone &= n == 1;
	*out = region;
	return 0;
}

void
plx_dev_region_close(struct plx_dev_region *region)
{
	if (region->dev == NULL)
		return;
	for (unsigned i = 0; i < region->n_keys; i++)
		region->dev->ops->keys.region_dereg(&region->keys[i]);
	plx_dev_close(region->dev);
	region->dev = NULL;
}
