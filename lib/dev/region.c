/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * region.c - memory that peers reach by the device, whatever queue they speak to
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plx_dev.h"
#include "plx_dev_ops.h"

static int
region_reg(const char *name, const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out)
{
	struct plx_dev *dev;
	int rc = plx_dev_open(name, &dev);

	if (rc != 0)
		return rc;
	rc = dev->ops->region_reg != NULL ? dev->ops->region_reg(conf, addr, len, rights, out)
					  : -EOPNOTSUPP;
	if (rc != 0)
		plx_dev_close(dev);
	else
		out->dev = dev;
	return rc;
}

int
plx_dev_region_open(const struct plx_conf *conf, void *addr, size_t len, uint8_t rights,
	struct plx_dev_region *out)
{
	struct plx_dev_region region = {.dev = NULL};
	char names[PLX_CONF_STR_MAX];
	char *save = NULL, *name;
	int rc = -EOPNOTSUPP;
	unsigned n = 0;

	snprintf(names, sizeof(names), "%s", plx_conf_str(conf, PLX_CONF_DEVICES));
	for (name = strtok_r(names, ", ", &save); name != NULL; name = strtok_r(NULL, ", ", &save)) {
		n++;
		if (region.dev == NULL)
			rc = region_reg(name, conf, addr, len, rights, &region);
	}
	if (region.dev == NULL)
		return rc;
	region.alone = n == 1;
	*out = region;
	return 0;
}

void
plx_dev_region_close(struct plx_dev_region *region)
{
	if (region->dev == NULL)
		return;
	region->dev->ops->region_dereg(region);
	plx_dev_close(region->dev);
	region->dev = NULL;
}
