/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_status.c - errno inside, ucs_status_t outside: the one table
 */
#include <errno.h>

#include "ucp_int.h"

PLX_LOG_DEFINE(ucp, "plx.ucp");

static const struct {
	int err;
	ucs_status_t status;
} table[] = {
	{0, UCS_OK},
	{EINPROGRESS, UCS_INPROGRESS},
	{ENOMSG, UCS_ERR_NO_MESSAGE},
	{EAGAIN, UCS_ERR_NO_RESOURCE},
	{EIO, UCS_ERR_IO_ERROR},
	{ENOMEM, UCS_ERR_NO_MEMORY},
	{EINVAL, UCS_ERR_INVALID_PARAM},
	{EHOSTUNREACH, UCS_ERR_UNREACHABLE},
	{EPERM, UCS_ERR_UNREACHABLE},
	{EFAULT, UCS_ERR_INVALID_ADDR},
	{ENOSYS, UCS_ERR_NOT_IMPLEMENTED},
	{EMSGSIZE, UCS_ERR_MESSAGE_TRUNCATED},
	{EALREADY, UCS_ERR_NO_PROGRESS},
	{ENOBUFS, UCS_ERR_BUFFER_TOO_SMALL},
	{ENOENT, UCS_ERR_NO_ELEM},
	{ENETUNREACH, UCS_ERR_SOME_CONNECTS_FAILED},
	{ENODEV, UCS_ERR_NO_DEVICE},
	{EBUSY, UCS_ERR_BUSY},
	{ECANCELED, UCS_ERR_CANCELED},
	{EIDRM, UCS_ERR_SHMEM_SEGMENT},
	{EEXIST, UCS_ERR_ALREADY_EXISTS},
	{ERANGE, UCS_ERR_OUT_OF_RANGE},
	{ETIMEDOUT, UCS_ERR_TIMED_OUT},
	{ENOSPC, UCS_ERR_EXCEEDS_LIMIT},
	{EOPNOTSUPP, UCS_ERR_UNSUPPORTED},
	{ECONNREFUSED, UCS_ERR_REJECTED},
	{ENOTCONN, UCS_ERR_NOT_CONNECTED},
	{ECONNRESET, UCS_ERR_CONNECTION_RESET},
	{ETIME, UCS_ERR_ENDPOINT_TIMEOUT},
	{EACCES, UCS_ERR_INVALID_PARAM},
	{EMFILE, UCS_ERR_EXCEEDS_LIMIT}, /* of open files: the process's, the system's */
	{ENFILE, UCS_ERR_EXCEEDS_LIMIT},
};

ucs_status_t
ucp_status_of(int err)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == -err)
			return table[i].status;
	return UCS_ERR_IO_ERROR;
}

int
ucp_status_errno(ucs_status_t status)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].status == status)
			return -table[i].err;
	return -EIO;
}
