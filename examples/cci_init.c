/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_init.c - starts and ends the library, and says what each status means
 */
#include <stdint.h>
#include <stdio.h>

#include <cci.h>

static const enum cci_status statuses[] = {CCI_SUCCESS, CCI_ERROR, CCI_ERR_DISCONNECTED, CCI_ERR_RNR,
	CCI_ERR_DEVICE_DEAD, CCI_ERR_RMA_HANDLE, CCI_ERR_RMA_OP, CCI_ERR_NOT_IMPLEMENTED,
	CCI_ERR_NOT_FOUND, CCI_EINVAL, CCI_ETIMEDOUT, CCI_ENOMEM, CCI_ENODEV, CCI_ENETDOWN, CCI_EBUSY,
	CCI_ERANGE, CCI_EAGAIN, CCI_ENOBUFS, CCI_EMSGSIZE, CCI_ENOMSG, CCI_EADDRNOTAVAIL,
	CCI_ECONNREFUSED};

int
main(void)
{
	uint32_t caps;
	int rc;

	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	if (rc != CCI_SUCCESS) {
		/* The texts need no library that runs, and no endpoint. */
		fprintf(stderr, "cci_init: %s\n", cci_strerror(NULL, rc));
		return 1;
	}
	printf("CCI is ready, capabilities 0x%x\n", caps);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		printf("%4d  %s\n", statuses[i], cci_strerror(NULL, statuses[i]));
	return cci_finalize() == CCI_SUCCESS ? 0 : 1;
}
