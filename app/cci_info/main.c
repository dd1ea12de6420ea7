/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * main.c - cci_info: the CCI devices of this machine, the most preferred first, and what an
 * endpoint on each offers
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cci.h>

static const char info_help[] =
	"cci_info - the devices that CCI programs find\n"
	"\n"
	"usage: cci_info [OPTIONS] [DEVICE...]\n"
	"\n"
	"  -e, --endpoint   make an endpoint on each device, and show its options\n"
	"  -q, --quiet      names only\n"
	"  -h, --help       this text\n"
	"\n"
	"The devices are those of the file that CCI_CONFIG names, or those that are found.\n"
	"The status is 1 when there is none, or none of these names.\n";

static const struct option info_options[] = {
	{"endpoint", no_argument, NULL, 'e'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int
info_fail(const char *what, int status)
{
	fprintf(stderr, "cci_info: %s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
	return 1;
}

/* A text of several lines, indented like the first. */
static void
info_lines(const char *text)
{
	for (; *text != '\0'; text++) {
		putchar(*text);
		if (*text == '\n' && text[1] != '\0')
			printf("%19s", "");
	}
	putchar('\n');
}

static void
info_device(const struct cci_device *d)
{
	printf("%s\n  transport        %s\n  state            %s\n  longest message  %u bytes\n", d->name,
		d->transport, d->up ? "up" : "down", d->max_send_size);
	if (d->rate != 0)
		printf("  rate             %.1f Gb/s\n", (double)d->rate * 1e-9);
	else
		printf("  rate             unknown\n");
	if (d->pci.domain != UINT32_MAX)
		printf("  PCI              %04x:%02x:%02x.%x\n", d->pci.domain, d->pci.bus, d->pci.dev,
			d->pci.func);
	printf("  info             ");
	info_lines(d->info);
	for (const char *const *arg = d->conf_argv; *arg != NULL; arg++)
		printf("  configured       %s\n", *arg);
}

static void
info_count(cci_endpoint_t *ep, cci_opt_name_t opt, const char *name)
{
	uint32_t v;
	int rc = cci_get_opt(ep, opt, &v);

	if (rc == CCI_SUCCESS)
		printf("  %-16s %u\n", name, v);
	else
		printf("  %-16s %s\n", name, cci_strerror(ep, (enum cci_status)rc));
}

static int
info_endpoint(cci_device_t *d)
{
	cci_alignment_t align;
	cci_endpoint_t *ep;
	char *uri;
	int rc = cci_create_endpoint(d, 0, &ep, NULL);

	if (rc != CCI_SUCCESS)
		return info_fail("cci_create_endpoint", rc);
	rc = cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri);
	if (rc == CCI_SUCCESS) {
		printf("  URI              %s\n", uri);
		free(uri);
	}
	info_count(ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, "receive buffers");
	info_count(ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, "send buffers");
	info_count(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, "send timeout us");
	info_count(ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, "keepalive us");
	if (cci_get_opt(ep, CCI_OPT_ENDPT_RMA_ALIGN, &align) == CCI_SUCCESS)
		printf("  RMA alignment    write %u %u %u, read %u %u %u (local, remote, length)\n",
			align.rma_write_local_addr, align.rma_write_remote_addr, align.rma_write_length,
			align.rma_read_local_addr, align.rma_read_remote_addr, align.rma_read_length);
	rc = cci_destroy_endpoint(ep);
	return rc == CCI_SUCCESS ? 0 : info_fail("cci_destroy_endpoint", rc);
}

static int
info_wanted(const struct cci_device *d, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strcmp(d->name, argv[i]) == 0)
			return 1;
	}
	return argc == 0;
}

int
main(int argc, char **argv)
{
	int endpoint = 0, quiet = 0, shown = 0, bad = 0, c, rc;
	cci_device_t *const *d;
	uint32_t caps;

	while ((c = getopt_long(argc, argv, "eqh", info_options, NULL)) != -1) {
		if (c == 'h') {
			fputs(info_help, stdout);
			return 0;
		}
		if (c == '?') {
			fputs("cci_info: try --help\n", stderr);
			return 2;
		}
		endpoint |= c == 'e';
		quiet |= c == 'q';
	}
	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	if (rc != CCI_SUCCESS)
		return info_fail("cci_init", rc);
	rc = cci_get_devices(&d);
	if (rc != CCI_SUCCESS)
		return info_fail("cci_get_devices", rc);
	for (; *d != NULL; d++) {
		if (!info_wanted(*d, argc - optind, argv + optind))
			continue;
		shown++;
		if (quiet)
			puts((*d)->name);
		else
			info_device(*d);
		if (endpoint)
			bad |= info_endpoint(*d);
	}
	if (shown == 0)
		fputs("cci_info: no such device\n", stderr);
	return cci_finalize() != CCI_SUCCESS || shown == 0 || bad;
}
