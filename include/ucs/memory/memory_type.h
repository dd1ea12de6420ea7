/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * memory_type.h - kinds of memory a buffer may lie in
 *
 * Design notes
 * - UNKNOWN is the number of kinds, and that number grew with UCX releases: 5
 *   up to API 1.15, 6 in 1.16, 9 from 1.17, 10 from 1.21. A library reads a
 *   caller's UNKNOWN by the API version the caller gave to ucp_init_version().
 */
#ifndef UCS_MEMORY_TYPE_H_
#define UCS_MEMORY_TYPE_H_

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

typedef enum ucs_memory_type {
	UCS_MEMORY_TYPE_HOST,         /* main memory */
	UCS_MEMORY_TYPE_CUDA,         /* NVIDIA device memory */
	UCS_MEMORY_TYPE_CUDA_MANAGED, /* NVIDIA memory that moves between device and host */
	UCS_MEMORY_TYPE_ROCM,         /* AMD device memory */
	UCS_MEMORY_TYPE_ROCM_MANAGED, /* AMD memory that moves between device and host */
	UCS_MEMORY_TYPE_RDMA,         /* memory of an RDMA device */
	UCS_MEMORY_TYPE_ZE_HOST,      /* Intel Level Zero, on the host */
	UCS_MEMORY_TYPE_ZE_DEVICE,    /* Intel Level Zero, on the device */
	UCS_MEMORY_TYPE_ZE_MANAGED,   /* Intel Level Zero, moves between the two */
	UCS_MEMORY_TYPE_GAUDI,        /* Gaudi device memory */
	UCS_MEMORY_TYPE_LAST,         /* their number */
	UCS_MEMORY_TYPE_UNKNOWN = UCS_MEMORY_TYPE_LAST /* let the library find out */
} ucs_memory_type_t;

/* Kinds that a processor may load from and store to, as bits. */
#define UCS_MEMORY_TYPES_CPU_ACCESSIBLE                                                            \
	(UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_ROCM_MANAGED) |                   \
		UCS_BIT(UCS_MEMORY_TYPE_ZE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_ZE_MANAGED))

/** The ways in which memory may be accessed, as bits. */
typedef enum ucs_mem_flags {
	UCS_MEM_FLAG_REGISTRABLE = UCS_BIT(0) /* it may be registered with a device */
} ucs_mem_flags_t;

/* Short and long name of each kind, up to UCS_MEMORY_TYPE_LAST; in libucs. */
extern const char *ucs_memory_type_names[];
extern const char *ucs_memory_type_descs[];

/* A loop over every kind; type is an integer variable. */
#define ucs_memory_type_for_each(type)                                                             \
	for ((type) = UCS_MEMORY_TYPE_HOST; (type) < UCS_MEMORY_TYPE_LAST; (type)++)

END_C_DECLS

#endif
