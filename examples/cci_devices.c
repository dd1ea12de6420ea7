/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_devices.c - lists the devices, the most preferred first, with what the
 * configuration says of each
 *
 * usage: cci_devices                   the devices that are found without being named
 *        CCI_CONFIG=FILE cci_devices   those of the file
 */
#include <stdint.h>
#include <stdio.h>

#include <cci.h>

int
main(void)
{
	cci_device_t *const *devices;
	uint32_t caps;
	int rc;

	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	if (rc != CCI_SUCCESS) {
		fprintf(stderr, "cci_init: %s\n", cci_strerror(NULL, rc));
		return 1;
	}
	rc = cci_get_devices(&devices);
	if (rc != CCI_SUCCESS) {
		fprintf(stderr, "cci_get_devices: %s\n", cci_strerror(NULL, rc));
		return 1;
	}
	/* The array and the devices belong to the library. */
	for (; *devices != NULL; devices++) {
		const struct cci_device *d = *devices;

		printf("%s: transport %s, %s, messages up to %u bytes\n", d->name, d->transport,
			d->up ? "up" : "down", d->max_send_size);
		for (const char *const *arg = d->conf_argv; *arg != NULL; arg++)
			printf("\t%s\n", *arg);
	}
	return cci_finalize() == CCI_SUCCESS ? 0 : 1;
}
