/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_group.c - multicast: DRIVER://mc/NAME
 *
 * Senders and receivers of a group publish the address of their worker and the number of their
 * channel under its name, and look for the others once; then the core takes over. If the device
 * has groups of its own there is nothing to look for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cci_int.h"

/* The published bytes: a packed address, followed by the number. */
#define ID_LEN sizeof(uint32_t)

/* A member of the other kind, or anything else that was published. */
static void
group_meet(const void *data, size_t len, void *arg)
{
	uint8_t packed[PLX_WIRE_ADDR_MAX] = {0};
	struct plx_wire_addr addr;
	struct cci_conn *c = arg;
	uint32_t id;

	if (len < PLX_WIRE_ADDR_HEAD + ID_LEN)
		return;
	memcpy(packed, data, len - ID_LEN);
	memcpy(&id, (const uint8_t *)data + len - ID_LEN, ID_LEN);
	if (plx_wire_addr_len(packed) != len - ID_LEN || plx_wire_addr_unpack(packed, &addr) != 0)
		return;
	/* a dead one, or one of another machine, is no member */
	(void)plx_worker_chan_meet(c->ep->core, &c->chan, &addr, id);
}

static int
group_publish(struct cci_conn *c, const char *name)
{
	uint8_t data[PLX_WIRE_ADDR_MAX + ID_LEN];
	int len = plx_worker_addr(c->ep->core, data, PLX_WIRE_ADDR_MAX);

	if (len < 0)
		return len;
	memcpy(data + len, &c->chan.id, ID_LEN);
	return plx_name_publish(name, data, len + ID_LEN, &c->member);
}

/* Publish first, then look: of two that join at once one sees the other. */
static int
group_join(struct cci_conn *c, const char *group)
{
	const char *driver = cci_ep_driver(c->ep);
	bool tx = c->pub.attribute == CCI_CONN_ATTR_UU_MC_TX;
	char name[2][CCI_URI_MAX];
	int rc;

	snprintf(name[0], sizeof(name[0]), "cci/%s/mc/%s/rx", driver, group);
	snprintf(name[1], sizeof(name[1]), "cci/%s/mc/%s/tx", driver, group);
	rc = group_publish(c, name[tx]);
	if (rc == 0)
		rc = plx_name_each(name[!tx], group_meet, c);
	return rc < 0 ? rc : 0;
}

int
cci_group_join(struct cci_conn *c, const char *uri)
{
	struct plx_worker *w = c->ep->core;
	const char *group = cci_uri_group(uri, cci_ep_driver(c->ep));
	int rc;

	if (group == NULL)
		return -EINVAL;
	rc = plx_worker_chan_join(w, &c->chan, c->pub.attribute, plx_name_hash(group));
	if (rc != 0)
		return rc;
	if (w->chans.group_q != NULL)
		return 0;
	rc = group_join(c, group);
	if (rc != 0) {
		plx_name_end(&c->member);
		plx_worker_chan_end(w, &c->chan);
		return rc;
	}
	LIST_INSERT_HEAD(&c->ep->joined, c, link);
	plx_worker_chan_joined(w, &c->chan);
	return 0;
}

void
cci_group_leave(struct cci_conn *c)
{
	if (c->member.fd < 0)
		return;
	LIST_REMOVE(c, link);
	plx_name_end(&c->member);
}
