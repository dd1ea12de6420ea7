/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_version.h - the version of the UCP interface these headers describe
 *
 * ucp_init() passes it to the library, which reads structures accordingly.
 * ucp_get_version() gives the version that the running library answers to.
 */
#ifndef UCP_VERSION_H_
#define UCP_VERSION_H_

#define UCP_VERSION_MAJOR_SHIFT 24
#define UCP_VERSION_MINOR_SHIFT 16

/* Major and minor as one number, to be compared with < and >=. */
#define UCP_VERSION(major, minor)                                                                  \
	(((major) << UCP_VERSION_MAJOR_SHIFT) | ((minor) << UCP_VERSION_MINOR_SHIFT))

#define UCP_API_MAJOR   1
#define UCP_API_MINOR   23
#define UCP_API_VERSION UCP_VERSION(1, 23)

#endif
