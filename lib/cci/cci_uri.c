/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_uri.c - an endpoint's address as text: DRIVER://, and the worker's address
 *
 * The address is written in the 64 characters of base64url, which are safe in shells, URI parsers
 * and line breaks. It contains a checksum: a wrong copy is refused. An endpoint with a service is
 * @ and the service; its address is found by that name. mc/ and a name is a group.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cci_int.h"

#define SEPARATOR "://"
#define SERVICE	  "@"
#define GROUP	  "mc/"

static const char service_chars[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:";

int
cci_uri_format(const char *driver, const struct plx_worker *w, char *uri)
{
	uint8_t addr[PLX_WIRE_ADDR_MAX];
	int len = plx_worker_addr(w, addr, sizeof(addr));
	int head;

	if (len < 0)
		return len;
	head = snprintf(uri, CCI_URI_MAX, "%s" SEPARATOR, driver);
	if (head + PLX_WIRE_TEXT_LEN(len) >= CCI_URI_MAX)
		return -EMSGSIZE;
	plx_wire_text(addr, len, uri + head);
	return 0;
}

bool
cci_service_is_good(const char *service)
{
	size_t len = strlen(service);

	return len > 0 && len <= CCI_SERVICE_MAX && strspn(service, service_chars) == len;
}

/* The name that a service is published under. */
static void
service_name(const char *driver, const char *service, char *name, size_t len)
{
	snprintf(name, len, "cci/%s/%s", driver, service);
}

struct found {
	uint8_t addr[PLX_WIRE_ADDR_MAX];
	size_t len;
	unsigned n_others;
};

static void
found_one(const void *data, size_t len, void *arg)
{
	struct found *f = arg;

	if (data == NULL || len > sizeof(f->addr)) {
		f->n_others++;
		return;
	}
	memcpy(f->addr, data, len);
	f->len = len;
}

/* The same bytes are the same one, which is found twice if the kernel's list changes meanwhile. One that does not
 * answer is another. */
static void
found_another(const void *data, size_t len, void *arg)
{
	struct found *f = arg;

	f->n_others += data == NULL || len != f->len || memcmp(data, f->addr, len) != 0;
}

int
cci_service_publish(const char *driver, const char *service, const struct plx_worker *w, char *uri,
	struct plx_name *out)
{
	struct found f = {.n_others = 0};
	int len = plx_worker_addr(w, f.addr, sizeof(f.addr));
	char name[CCI_URI_MAX];
	int rc;

	if (len < 0)
		return len;
	f.len = len;
	service_name(driver, service, name, sizeof(name));
	rc = plx_name_publish(name, f.addr, len, out);
	if (rc != 0)
		return rc;
	/* Two that start at once see each other, and perhaps neither gets it. */
	rc = plx_name_each(name, found_another, &f);
	if (rc < 0 || f.n_others != 0) {
		plx_name_end(out);
		return rc < 0 ? rc : -EBUSY;
	}
	snprintf(uri, CCI_URI_MAX, "%s" SEPARATOR SERVICE "%s", driver, service);
	return 0;
}

static int
service_find(const char *driver, const char *service, struct plx_wire_addr *addr)
{
	struct found f = {.len = 0};
	char name[CCI_URI_MAX];

	if (!cci_service_is_good(service))
		return -EINVAL;
	service_name(driver, service, name, sizeof(name));
	if (plx_name_each(name, found_one, &f) <= 0)
		return -ECONNREFUSED;
	if (f.len == 0 && f.n_others != 0)
		return -ETIMEDOUT; /* it is stopped */
	return f.len < PLX_WIRE_ADDR_HEAD || plx_wire_addr_len(f.addr) != f.len
		? -ECONNREFUSED : plx_wire_addr_unpack(f.addr, addr);
}

int
cci_uri_parse(const char *uri, const char *driver, struct plx_wire_addr *addr)
{
	uint8_t packed[PLX_WIRE_ADDR_MAX] = {0};
	char head[32];
	int len, n = snprintf(head, sizeof(head), "%s" SEPARATOR, driver);

	if (strncmp(uri, head, n) != 0)
		return -EINVAL;
	if (uri[n] == SERVICE[0])
		return service_find(driver, uri + n + 1, addr);
	len = plx_wire_untext(uri + n, strlen(uri + n), packed, sizeof(packed));
	if (len < PLX_WIRE_ADDR_HEAD || plx_wire_addr_len(packed) != (size_t)len)
		return -EINVAL;
	return plx_wire_addr_unpack(packed, addr);
}

const char *
cci_uri_group(const char *uri, const char *driver)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "%s" SEPARATOR GROUP, driver);

	return strncmp(uri, head, n) == 0 && cci_service_is_good(uri + n) ? uri + n : NULL;
}
