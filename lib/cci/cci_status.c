/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_status.c - errno inside, cci_status_t outside: the one table; status texts
 */
#include <errno.h>

#include "cci_int.h"

PLX_LOG_DEFINE(cci, "plx.cci");

static const struct {
	int err; /* -1: none of the core's */
	enum cci_status status;
	const char *text;
} table[] = {
	{0, CCI_SUCCESS, "success"},
	{-1, CCI_ERROR, "error"},
	{ECONNRESET, CCI_ERR_DISCONNECTED, "the connection is closed"},
	{ENOSR, CCI_ERR_RNR, "the receiver was not ready"},
	{ENXIO, CCI_ERR_DEVICE_DEAD, "the device has failed or was removed"},
	{EKEYREJECTED, CCI_ERR_RMA_HANDLE, "the remote memory does not permit this access"},
	{EOPNOTSUPP, CCI_ERR_RMA_OP, "the peer does not support this operation"},
	{ENOSYS, CCI_ERR_NOT_IMPLEMENTED, "not implemented"},
	{ENOENT, CCI_ERR_NOT_FOUND, "not found"},
	{EINVAL, CCI_EINVAL, "invalid argument"},
	{ETIMEDOUT, CCI_ETIMEDOUT, "timed out"},
	{ENOMEM, CCI_ENOMEM, "out of memory"},
	{ENODEV, CCI_ENODEV, "no such device"},
	{ENETDOWN, CCI_ENETDOWN, "the device is down"},
	{EBUSY, CCI_EBUSY, "in use"},
	{ERANGE, CCI_ERANGE, "out of range"},
	{EAGAIN, CCI_EAGAIN, "try again"},
	{ENOBUFS, CCI_ENOBUFS, "no buffers"},
	{EMSGSIZE, CCI_EMSGSIZE, "message too long"},
	{ENOMSG, CCI_ENOMSG, "no such event"},
	{EHOSTUNREACH, CCI_EADDRNOTAVAIL, "address not available"},
	{EPERM, CCI_EADDRNOTAVAIL, "address not available"},
	{ECONNREFUSED, CCI_ECONNREFUSED, "connection refused"},
};

int
cci_status(int err)
{
	for (size_t i = 0; i < RTE_DIM(table); i++) {
		if (table[i].err == -err)
			return table[i].status;
	}
	return CCI_ERROR;
}

const char *
cci_strerror(cci_endpoint_t *endpoint, enum cci_status status)
{
	(void)endpoint;
	for (size_t i = 0; i < RTE_DIM(table); i++) {
		if (table[i].status == status)
			return table[i].text;
	}
	return "unknown status";
}
