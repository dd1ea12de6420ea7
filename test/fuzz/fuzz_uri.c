/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_uri.c - URIs of CCI endpoints, groups and services, read and asked for a connection
 *
 * The first byte says how: the text as it is, behind the head of a URI, or laid over a
 * good one.
 */
#include "fuzz.h"

#include "cci_int.h"

#define TURNS 8

static cci_endpoint_t *ep;
static char own[CCI_URI_MAX];

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *uri;

	(void)argc;
	(void)argv;
	fuzz_start_cci("fuzz");
	FUZZ_CHECK(cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS);
	FUZZ_CHECK(cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
	snprintf(own, sizeof(own), "%s", uri);
	free(uri);
	return 0;
}

/* Every connection that comes about is closed, and every request refused. */
static void
clear_away(void)
{
	cci_event_t *ev;

	for (unsigned i = 0; i < TURNS; i++) {
		if (cci_get_event(ep, &ev) != CCI_SUCCESS)
			continue;
		if (ev->type == CCI_EVENT_CONNECT_REQUEST)
			FUZZ_CHECK(cci_reject(ev) == CCI_SUCCESS);
		if (ev->type == CCI_EVENT_CONNECT && ev->connect.connection != NULL)
			cci_disconnect(ev->connect.connection);
		FUZZ_CHECK(cci_return_event(ev) == CCI_SUCCESS);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const heads[] = {"", "cci+fuzz://", "cci+fuzz://@", "fuzz://mc/"};
	const struct timeval soon = {.tv_usec = 1};
	struct fuzz_in in = {data, data + len};
	uint8_t how = fuzz_u8(&in);
	size_t n, at = strlen(heads[how & 3]);
	struct plx_wire_addr addr;
	char *text;

	n = (size_t)(in.end - in.p);
	text = calloc(1, at + RTE_MAX(n, strlen(own)) + 1);
	memcpy(text, heads[how & 3], at);
	if (how & 4) { /* a byte of a good one, and another */
		strcpy(text, own);
		for (size_t i = 0; i < n && i < strlen(own); i++)
			if (in.p[i] != 0)
				text[i] = (char)in.p[i];
	} else if (n != 0) {
		memcpy(text + at, in.p, n);
	}
	(void)cci_uri_parse(text, "fuzz", &addr);
	(void)cci_connect(ep, text, NULL, 0, (cci_conn_attribute_t)(how >> 4), NULL, 0, &soon);
	clear_away();
	free(text);
	return 0;
}
