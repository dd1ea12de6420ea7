/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp.h - the UCP interface of Pollux, source and binary compatible with UCX
 *
 * A context is one use of the library; a worker owns all that one core needs; an
 * ep is the other end. Operations are started by a call, move on in
 * ucp_worker_progress(), or by themselves in a dedicated reactor, and their
 * callbacks run in the thread that calls ucp_worker_progress().
 *
 * Unless a function says otherwise:
 * - Thread: "worker" means the worker's thread rule, thread_mode of
 *   ucp_worker_params_t; "control" means any thread, with the caller keeping calls
 *   on one object apart; "any" means any thread at any time. A function that does
 *   not say is "worker".
 * - Blocks: never. Allocates: communication from the worker's request pool, which
 *   grows by itself; control from the heap.
 * - count is in elements of the datatype (bytes when none is given), length and
 *   size are bytes.
 * - Structures are the caller's and are read during the call only. A buffer, and an
 *   iov array, belong to the library from the call until the operation is over.
 * - A function that answers a ucs_status_ptr_t answers NULL when the operation is
 *   over already (the callback is not called then), a request when it is not, or an
 *   error (see UCS_PTR_IS_ERR()). Requests are given back with ucp_request_free(),
 *   except those in the caller's own memory.
 * - Errors: UCS_ERR_INVALID_PARAM an argument is out of range, a needed field_mask
 *   bit is missing, or the feature was not asked for in ucp_init();
 *   UCS_ERR_NO_MEMORY memory ran out; UCS_ERR_UNSUPPORTED not offered, see the
 *   guide; on an ep whose peer failed, the error it failed with;
 *   UCS_ERR_NOT_CONNECTED the ep is closed.
 */
#ifndef UCP_H_
#define UCP_H_

#include <stdio.h>
#include <sys/types.h>

#include <ucp/api/ucp_compat.h>
#include <ucp/api/ucp_def.h>
#include <ucp/api/ucp_version.h>
#include <ucs/config/types.h>
#include <ucs/memory/memory_type.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/thread_mode.h>

BEGIN_C_DECLS

/* --- library, settings, context: types --- */

/* Fields of ucp_lib_attr_t. */
enum ucp_lib_attr_field { UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL = UCS_BIT(0) };

/** Answer of ucp_lib_query(). */
typedef struct ucp_lib_attr {
	uint64_t field_mask;                /* in: enum ucp_lib_attr_field */
	ucs_thread_mode_t max_thread_level; /* the most a worker can be given */
} ucp_lib_attr_t;

/* Fields of ucp_params_t. */
enum ucp_params_field {
	UCP_PARAM_FIELD_FEATURES = UCS_BIT(0),
	UCP_PARAM_FIELD_REQUEST_SIZE = UCS_BIT(1),
	UCP_PARAM_FIELD_REQUEST_INIT = UCS_BIT(2),
	UCP_PARAM_FIELD_REQUEST_CLEANUP = UCS_BIT(3),
	UCP_PARAM_FIELD_TAG_SENDER_MASK = UCS_BIT(4),
	UCP_PARAM_FIELD_MT_WORKERS_SHARED = UCS_BIT(5),
	UCP_PARAM_FIELD_ESTIMATED_NUM_EPS = UCS_BIT(6),
	UCP_PARAM_FIELD_ESTIMATED_NUM_PPN = UCS_BIT(7),
	UCP_PARAM_FIELD_NAME = UCS_BIT(8),
	UCP_PARAM_FIELD_NODE_LOCAL_ID = UCS_BIT(9)
};

/* The uses of a context; ucp_params_t.features. */
enum ucp_feature {
	UCP_FEATURE_TAG = UCS_BIT(0),           /* tag matching */
	UCP_FEATURE_RMA = UCS_BIT(1),           /* put and get */
	UCP_FEATURE_AMO32 = UCS_BIT(2),         /* atomics on 4 bytes */
	UCP_FEATURE_AMO64 = UCS_BIT(3),         /* atomics on 8 bytes */
	UCP_FEATURE_WAKEUP = UCS_BIT(4),        /* waiting without polling */
	UCP_FEATURE_STREAM = UCS_BIT(5),        /* byte streams */
	UCP_FEATURE_AM = UCS_BIT(6),            /* active messages */
	UCP_FEATURE_EXPORTED_MEMH = UCS_BIT(7), /* memory of another context */
	UCP_FEATURE_DEVICE = UCS_BIT(8)         /* communication started by a GPU */
};

/** How to start; ucp_init(). features is needed, the rest has defaults. */
typedef struct ucp_params {
	uint64_t field_mask; /* enum ucp_params_field */
	uint64_t features;   /* enum ucp_feature */
	size_t request_size; /* bytes of the user's in each request; default 0 */
	ucp_request_init_callback_t request_init;       /* default none */
	ucp_request_cleanup_callback_t request_cleanup; /* default none */
	uint64_t tag_sender_mask; /* bits of a tag that tell the sender; a hint, default 0 */
	int mt_workers_shared;    /* not 0: workers of several threads; default 0 */
	size_t estimated_num_eps; /* a hint; default 1 */
	size_t estimated_num_ppn; /* processes on this machine; a hint, default 1 */
	const char *name;         /* for logs and the control socket; default made up */
	size_t node_local_id;     /* which of the processes here; a hint, default 0 */
} ucp_params_t;

/* Fields of ucp_context_attr_t. */
enum ucp_context_attr_field {
	UCP_ATTR_FIELD_REQUEST_SIZE = UCS_BIT(0),
	UCP_ATTR_FIELD_THREAD_MODE = UCS_BIT(1),
	UCP_ATTR_FIELD_MEMORY_TYPES = UCS_BIT(2),
	UCP_ATTR_FIELD_NAME = UCS_BIT(3),
	UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE = UCS_BIT(4)
};

/** Answer of ucp_context_query(). */
typedef struct ucp_context_attr {
	uint64_t field_mask;           /* in: enum ucp_context_attr_field */
	size_t request_size;           /* bytes before ucp_request_param_t.request */
	ucs_thread_mode_t thread_mode; /* MULTI when mt_workers_shared, else SINGLE */
	uint64_t memory_types;         /* UCS_BIT(ucs_memory_type_t) of what is handled */
	char name[UCP_ENTITY_NAME_MAX];
	size_t device_counter_size; /* bytes; 0 without UCP_FEATURE_DEVICE */
} ucp_context_attr_t;

/* --- worker: types --- */

/* Fields of ucp_worker_params_t. */
enum ucp_worker_params_field {
	UCP_WORKER_PARAM_FIELD_THREAD_MODE = UCS_BIT(0),
	UCP_WORKER_PARAM_FIELD_CPU_MASK = UCS_BIT(1),
	UCP_WORKER_PARAM_FIELD_EVENTS = UCS_BIT(2),
	UCP_WORKER_PARAM_FIELD_USER_DATA = UCS_BIT(3),
	UCP_WORKER_PARAM_FIELD_EVENT_FD = UCS_BIT(4),
	UCP_WORKER_PARAM_FIELD_FLAGS = UCS_BIT(5),
	UCP_WORKER_PARAM_FIELD_NAME = UCS_BIT(6),
	UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT = UCS_BIT(7),
	UCP_WORKER_PARAM_FIELD_CLIENT_ID = UCS_BIT(8)
};

/** ucp_worker_params_t.flags. */
typedef enum {
	UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK = UCS_BIT(0) /* no warning at destroy */
} ucp_worker_flags_t;

/** How to make a worker; every field has a default. */
typedef struct ucp_worker_params {
	uint64_t field_mask;           /* enum ucp_worker_params_field */
	ucs_thread_mode_t thread_mode; /* default SINGLE */
	ucs_cpu_set_t cpu_mask;        /* where its memory should lie; default the caller's */
	unsigned events;               /* ucp_wakeup_event_t bits; default all */
	void *user_data;               /* given back by epoll with event_fd; default NULL */
	int event_fd;                  /* an epoll descriptor of the caller's to be used */
	uint64_t flags;                /* ucp_worker_flags_t; default 0 */
	const char *name;              /* for logs and the control socket; default made up */
	size_t am_alignment;           /* bytes, of active message data; a power of 2, default 1 */
	uint64_t client_id;            /* told to the server when an ep asks for it; default 0 */
} ucp_worker_params_t;

/** ucp_worker_attr_t.address_flags. */
typedef enum {
	UCP_WORKER_ADDRESS_FLAG_NET_ONLY = UCS_BIT(0) /* leave out what only works locally */
} ucp_worker_address_flags_t;

/* Fields of ucp_worker_attr_t. */
enum ucp_worker_attr_field {
	UCP_WORKER_ATTR_FIELD_THREAD_MODE = UCS_BIT(0),
	UCP_WORKER_ATTR_FIELD_ADDRESS = UCS_BIT(1),
	UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS = UCS_BIT(2),
	UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER = UCS_BIT(3),
	UCP_WORKER_ATTR_FIELD_NAME = UCS_BIT(4),
	UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING = UCS_BIT(5)
};

/** Answer of ucp_worker_query(). */
typedef struct ucp_worker_attr {
	uint64_t field_mask;           /* in: enum ucp_worker_attr_field */
	ucs_thread_mode_t thread_mode; /* what was granted; may be more than asked for */
	uint32_t address_flags;        /* in: ucp_worker_address_flags_t */
	ucp_address_t *address;        /* given back with ucp_worker_release_address() */
	size_t address_length;         /* bytes; filled with address */
	size_t max_am_header;          /* bytes of header an active message may have */
	char name[UCP_ENTITY_NAME_MAX];
	size_t max_debug_string; /* bytes that hold any ucp_request_attr_t.debug_string */
} ucp_worker_attr_t;

/* Fields of ucp_worker_address_attr_t. */
enum ucp_worker_address_attr_field { UCP_WORKER_ADDRESS_ATTR_FIELD_UID = UCS_BIT(0) };

/** Answer of ucp_worker_address_query(). */
typedef struct ucp_worker_address_attr {
	uint64_t field_mask; /* in: enum ucp_worker_address_attr_field */
	uint64_t worker_uid; /* the same for two addresses of one worker */
} ucp_worker_address_attr_t;

/* --- ep and listener: types --- */

/* Fields of ucp_ep_params_t (ucp_def.h). */
enum ucp_ep_params_field {
	UCP_EP_PARAM_FIELD_REMOTE_ADDRESS = UCS_BIT(0),
	UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE = UCS_BIT(1),
	UCP_EP_PARAM_FIELD_ERR_HANDLER = UCS_BIT(2),
	UCP_EP_PARAM_FIELD_USER_DATA = UCS_BIT(3),
	UCP_EP_PARAM_FIELD_SOCK_ADDR = UCS_BIT(4),
	UCP_EP_PARAM_FIELD_FLAGS = UCS_BIT(5),
	UCP_EP_PARAM_FIELD_CONN_REQUEST = UCS_BIT(6),
	UCP_EP_PARAM_FIELD_NAME = UCS_BIT(7),
	UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR = UCS_BIT(8)
};

/* ucp_ep_params_t.flags. */
enum ucp_ep_params_flags_field {
	UCP_EP_PARAMS_FLAGS_CLIENT_SERVER = UCS_BIT(0), /* connect to sockaddr */
	UCP_EP_PARAMS_FLAGS_NO_LOOPBACK = UCS_BIT(1),   /* to the own worker: pair two eps */
	UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID = UCS_BIT(2) /* tell the server client_id */
};

/** ucp_request_param_t.flags of ucp_ep_close_nbx(). */
typedef enum {
	UCP_EP_CLOSE_FLAG_FORCE = UCS_BIT(0) /* at once; open operations are canceled */
} ucp_ep_close_flags_t;

/* Fields of ucp_ep_attr_t. */
enum ucp_ep_attr_field {
	UCP_EP_ATTR_FIELD_NAME = UCS_BIT(0),
	UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR = UCS_BIT(1),
	UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR = UCS_BIT(2),
	UCP_EP_ATTR_FIELD_TRANSPORTS = UCS_BIT(3),
	UCP_EP_ATTR_FIELD_USER_DATA = UCS_BIT(4)
};

/** One device an ep uses. The texts are the library's, for the life of the ep. */
typedef struct {
	const char *transport_name; /* the driver: "shm", "net_mlx" */
	const char *device_name;    /* "memory", "mlx5_0:1" */
} ucp_transport_entry_t;

/** The devices an ep uses, in an array of the caller's. */
typedef struct {
	ucp_transport_entry_t *entries; /* in: where to write */
	unsigned num_entries;           /* in: how many fit; out: how many were written */
	size_t entry_size;              /* in: bytes of an entry as the caller knows it */
} ucp_transports_t;

/** Answer of ucp_ep_query(). */
typedef struct ucp_ep_attr {
	uint64_t field_mask; /* in: enum ucp_ep_attr_field */
	char name[UCP_ENTITY_NAME_MAX];
	struct sockaddr_storage local_sockaddr;  /* of an ep made through a listener */
	struct sockaddr_storage remote_sockaddr; /* the same */
	ucp_transports_t transports;
	void *user_data;
} ucp_ep_attr_t;

/** Fields of ucp_ep_evaluate_perf_param_t. */
typedef enum ucp_ep_perf_param_field {
	UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE = UCS_BIT(0)
} ucp_ep_perf_param_field_t;

/** Fields of ucp_ep_evaluate_perf_attr_t. */
typedef enum ucp_ep_perf_attr_field {
	UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME = UCS_BIT(0)
} ucp_ep_perf_attr_field_t;

/** Question of ucp_ep_evaluate_perf(). */
typedef struct {
	uint64_t field_mask; /* ucp_ep_perf_param_field_t */
	size_t message_size; /* bytes */
} ucp_ep_evaluate_perf_param_t;

/** Answer of ucp_ep_evaluate_perf(). */
typedef struct {
	uint64_t field_mask;   /* in: ucp_ep_perf_attr_field_t */
	double estimated_time; /* seconds for one message */
} ucp_ep_evaluate_perf_attr_t;

/* Fields of ucp_listener_params_t. */
enum ucp_listener_params_field {
	UCP_LISTENER_PARAM_FIELD_SOCK_ADDR = UCS_BIT(0),
	UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER = UCS_BIT(1),
	UCP_LISTENER_PARAM_FIELD_CONN_HANDLER = UCS_BIT(2)
};

/** How to listen; sockaddr and one of the two handlers are needed. */
typedef struct ucp_listener_params {
	uint64_t field_mask;      /* enum ucp_listener_params_field */
	ucs_sock_addr_t sockaddr; /* port 0: any free one, see ucp_listener_query() */
	ucp_listener_accept_handler_t accept_handler;
	ucp_listener_conn_handler_t conn_handler;
} ucp_listener_params_t;

/* Fields of ucp_listener_attr_t. */
enum ucp_listener_attr_field { UCP_LISTENER_ATTR_FIELD_SOCKADDR = UCS_BIT(0) };

/** Answer of ucp_listener_query(). */
typedef struct ucp_listener_attr {
	uint64_t field_mask;              /* in: enum ucp_listener_attr_field */
	struct sockaddr_storage sockaddr; /* where it listens, with the real port */
} ucp_listener_attr_t;

/* Fields of ucp_conn_request_attr_t. */
enum ucp_conn_request_attr_field {
	UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR = UCS_BIT(0),
	UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID = UCS_BIT(1)
};

/** Answer of ucp_conn_request_query(). */
typedef struct ucp_conn_request_attr {
	uint64_t field_mask;                    /* in: enum ucp_conn_request_attr_field */
	struct sockaddr_storage client_address; /* where the client is */
	uint64_t client_id;                     /* what it called itself */
} ucp_conn_request_attr_t;

/* --- memory: types --- */

/* Fields of ucp_mem_map_params_t. */
enum ucp_mem_map_params_field {
	UCP_MEM_MAP_PARAM_FIELD_ADDRESS = UCS_BIT(0),
	UCP_MEM_MAP_PARAM_FIELD_LENGTH = UCS_BIT(1),
	UCP_MEM_MAP_PARAM_FIELD_FLAGS = UCS_BIT(2),
	UCP_MEM_MAP_PARAM_FIELD_PROT = UCS_BIT(3),
	UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE = UCS_BIT(4),
	UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER = UCS_BIT(5)
};

/* ucp_mem_map_params_t.flags. */
enum {
	UCP_MEM_MAP_NONBLOCK = UCS_BIT(0),       /* pages may be brought in later */
	UCP_MEM_MAP_ALLOCATE = UCS_BIT(1),       /* the library allocates */
	UCP_MEM_MAP_FIXED = UCS_BIT(2),          /* at exactly the address given */
	UCP_MEM_MAP_SYMMETRIC_RKEY = UCS_BIT(3), /* every peer maps alike; a hint */
	UCP_MEM_MAP_LOCK = UCS_BIT(4)            /* bring pages in and keep them */
};

/* ucp_mem_map_params_t.prot. */
enum {
	UCP_MEM_MAP_PROT_LOCAL_READ = UCS_BIT(0),
	UCP_MEM_MAP_PROT_LOCAL_WRITE = UCS_BIT(1),
	UCP_MEM_MAP_PROT_REMOTE_READ = UCS_BIT(8),
	UCP_MEM_MAP_PROT_REMOTE_WRITE = UCS_BIT(9)
};

/** The memory to register; length is needed, unless a packed handle is given. */
typedef struct ucp_mem_map_params {
	uint64_t field_mask;           /* enum ucp_mem_map_params_field */
	void *address;                 /* first byte; with ALLOCATE a hint, with FIXED the place */
	size_t length;                 /* bytes; 0 is allowed */
	unsigned flags;                /* UCP_MEM_MAP_x; default 0 */
	unsigned prot;                 /* UCP_MEM_MAP_PROT_x; default all four */
	ucs_memory_type_t memory_type; /* HOST or UNKNOWN, others are UNSUPPORTED */
	const void *exported_memh_buffer; /* of ucp_memh_pack(), from another context */
} ucp_mem_map_params_t;

/** How memory will be used. */
typedef enum ucp_mem_advice {
	UCP_MADV_NORMAL = 0, /* nothing special */
	UCP_MADV_WILLNEED    /* soon: bring its pages in */
} ucp_mem_advice_t;

/* Fields of ucp_mem_advise_params_t; all three are needed. */
enum ucp_mem_advise_params_field {
	UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS = UCS_BIT(0),
	UCP_MEM_ADVISE_PARAM_FIELD_LENGTH = UCS_BIT(1),
	UCP_MEM_ADVISE_PARAM_FIELD_ADVICE = UCS_BIT(2)
};

/** A part of a region and how it will be used. */
typedef struct ucp_mem_advise_params {
	uint64_t field_mask; /* enum ucp_mem_advise_params_field */
	void *address;       /* within the region */
	size_t length;       /* bytes */
	ucp_mem_advice_t advice;
} ucp_mem_advise_params_t;

/* Fields of ucp_memh_pack_params_t. */
enum ucp_memh_pack_params_field { UCP_MEMH_PACK_PARAM_FIELD_FLAGS = UCS_BIT(0) };

/* ucp_memh_pack_params_t.flags. */
enum ucp_memh_pack_flags {
	UCP_MEMH_PACK_FLAG_EXPORT = UCS_BIT(0) /* for ucp_mem_map() of another context */
};

/** The form of a packed memory handle. */
typedef struct ucp_memh_pack_params {
	uint64_t field_mask; /* enum ucp_memh_pack_params_field */
	uint64_t flags;      /* enum ucp_memh_pack_flags; default 0, a remote key */
} ucp_memh_pack_params_t;

/** Nothing yet. */
typedef struct ucp_memh_buffer_release_params {
	uint64_t field_mask; /* must be 0 */
} ucp_memh_buffer_release_params_t;

/** Nothing yet. */
typedef struct ucp_rkey_compare_params {
	uint64_t field_mask; /* must be 0 */
} ucp_rkey_compare_params_t;

/* Never an address, and never a key: marks an entry that is not there. */
#define UCP_REMOTE_ADDR_INVALID UINT64_MAX
#define UCP_RKEY_INVALID        NULL

/* --- datatypes --- */

/* Class of a datatype: its low bits. */
enum ucp_dt_type {
	UCP_DATATYPE_CONTIG = 0,  /* elements of a fixed size, one after another */
	UCP_DATATYPE_STRIDED = 1, /* never offered, by UCX neither */
	UCP_DATATYPE_IOV = 2,     /* buffer is an array of ucp_dt_iov_t, count its length */
	UCP_DATATYPE_SGL = 4,     /* buffer is a ucp_dt_local_sgl_t */
	UCP_DATATYPE_GENERIC = 7, /* the user packs; ucp_dt_create_generic() */
	UCP_DATATYPE_SHIFT = 3,   /* bits of the class */
	UCP_DATATYPE_CLASS_MASK = UCS_MASK(UCP_DATATYPE_SHIFT)
};

/* Datatype of elements of size bytes; of an iov array; of a scatter-gather list. */
#define ucp_dt_make_contig(size)                                                                   \
	(((ucp_datatype_t)(size) << UCP_DATATYPE_SHIFT) | UCP_DATATYPE_CONTIG)
#define ucp_dt_make_iov() ((ucp_datatype_t)UCP_DATATYPE_IOV)
#define ucp_dt_make_sgl() ((ucp_datatype_t)UCP_DATATYPE_SGL)

/** One piece of an iov; the array is the library's until the operation is over. */
typedef struct ucp_dt_iov {
	void *buffer;
	size_t length; /* bytes */
} ucp_dt_iov_t;

/* Fields of ucp_dt_local_sgl_t. */
enum ucp_dt_local_sgl_field {
	UCP_DT_LOCAL_SGL_FIELD_BUFFERS = UCS_BIT(0),
	UCP_DT_LOCAL_SGL_FIELD_LENGTHS = UCS_BIT(1),
	UCP_DT_LOCAL_SGL_FIELD_MEMHS = UCS_BIT(2),
	UCP_DT_LOCAL_SGL_FIELD_COUNTS = UCS_BIT(3),
	UCP_DT_LOCAL_SGL_FIELD_STRIDES = UCS_BIT(4)
};

/**
 * The local side of a put or get of many pieces: arrays with an entry for each. Piece i is counts[i]
 * blocks of lengths[i] bytes, strides[i] bytes from the start of one to that of the next; one block
 * without counts and strides, which are given both or not at all. The struct is copied; the arrays
 * must stay until the operation is over.
 */
typedef struct ucp_dt_local_sgl {
	uint64_t field_mask; /* enum ucp_dt_local_sgl_field */
	void *const *buffers;
	const size_t *lengths;  /* bytes of each piece */
	const ucp_mem_h *memhs; /* the region of each; may be left out */
	const size_t *counts;   /* repeats of each piece; may be left out */
	const size_t *strides;  /* bytes from one repeat to the next */
} ucp_dt_local_sgl_t;

/* Fields of ucp_dt_remote_sgl_t. */
enum ucp_dt_remote_sgl_field {
	UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS = UCS_BIT(0),
	UCP_DT_REMOTE_SGL_FIELD_LENGTHS = UCS_BIT(1),
	UCP_DT_REMOTE_SGL_FIELD_RKEYS = UCS_BIT(2)
};

/** The remote side: lengths[i] bytes in one piece, as many as the blocks of local piece i have. */
typedef struct ucp_dt_remote_sgl {
	uint64_t field_mask; /* enum ucp_dt_remote_sgl_field */
	const uint64_t *remote_addrs;
	const size_t *lengths;
	const ucp_rkey_h *rkeys;
} ucp_dt_remote_sgl_t;

/**
 * How the user's own datatype is packed and unpacked.
 * start_x is called once for an operation and gives the state that the others get;
 * finish is called exactly once for each state, however the operation ends.
 */
typedef struct ucp_generic_dt_ops {
	/* Begin to read count elements at buffer. @return the state */
	void *(*start_pack)(void *context, const void *buffer, size_t count);
	/* Begin to write count elements at buffer. @return the state */
	void *(*start_unpack)(void *context, void *buffer, size_t count);
	/* @return bytes of all elements when packed; constant for a state */
	size_t (*packed_size)(void *state);
	/* Write packed bytes from offset on; offsets rise. @return bytes written: max_length,
	 * except at the end */
	size_t (*pack)(void *state, size_t offset, void *dest, size_t max_length);
	/* Take length packed bytes that belong at offset; pieces may come in any order */
	ucs_status_t (*unpack)(void *state, size_t offset, const void *src, size_t length);
	/* The state is no longer needed. */
	void (*finish)(void *state);
} ucp_generic_dt_ops_t;

/* Fields of ucp_datatype_attr_t. */
enum ucp_datatype_attr_field {
	UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE = UCS_BIT(0),
	UCP_DATATYPE_ATTR_FIELD_BUFFER = UCS_BIT(1),
	UCP_DATATYPE_ATTR_FIELD_COUNT = UCS_BIT(2)
};

/** Question and answer of ucp_dt_query(). */
typedef struct ucp_datatype_attr {
	uint64_t field_mask; /* in: enum ucp_datatype_attr_field */
	size_t packed_size;  /* out: bytes of count elements when packed */
	const void *buffer;  /* in: needed for iov and generic */
	size_t count;        /* in: elements; default 1 */
} ucp_datatype_attr_t;

/* --- operations: types --- */

/** Tag and length of a message. */
struct ucp_tag_recv_info {
	ucp_tag_t sender_tag; /* all of it */
	size_t length;        /* bytes sent, even if the buffer was shorter */
};

/** Fields of ucp_request_param_t, and flags of any operation, in one word. */
typedef enum {
	UCP_OP_ATTR_FIELD_REQUEST = UCS_BIT(0),
	UCP_OP_ATTR_FIELD_CALLBACK = UCS_BIT(1),
	UCP_OP_ATTR_FIELD_USER_DATA = UCS_BIT(2),
	UCP_OP_ATTR_FIELD_DATATYPE = UCS_BIT(3),
	UCP_OP_ATTR_FIELD_FLAGS = UCS_BIT(4),
	UCP_OP_ATTR_FIELD_REPLY_BUFFER = UCS_BIT(5),
	UCP_OP_ATTR_FIELD_MEMORY_TYPE = UCS_BIT(6),
	UCP_OP_ATTR_FIELD_RECV_INFO = UCS_BIT(7),
	UCP_OP_ATTR_FIELD_MEMH = UCS_BIT(8),
	UCP_OP_ATTR_FIELD_REMOTE_DATATYPE = UCS_BIT(9),
	UCP_OP_ATTR_FIELD_REMOTE = UCS_BIT(10),
	UCP_OP_ATTR_FIELD_REMOTE_COUNT = UCS_BIT(11),

	/* Always a request and a callback, even when the operation is over at once. */
	UCP_OP_ATTR_FLAG_NO_IMM_CMPL = UCS_BIT(16),
	/* Prefer to be done with the buffer soon. */
	UCP_OP_ATTR_FLAG_FAST_CMPL = UCS_BIT(17),
	/* Be over at once, or do nothing and answer UCS_ERR_NO_RESOURCE. */
	UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL = UCS_BIT(18),
	/* One of many: prefer rate to latency. */
	UCP_OP_ATTR_FLAG_MULTI_SEND = UCS_BIT(19)
} ucp_op_attr_t;

/** How to do an operation; of the _nbx calls. */
typedef struct {
	uint32_t op_attr_mask; /* ucp_op_attr_t */
	uint32_t flags;        /* of the operation; default 0 */

	/*
	 * Where the request lies: the library uses ucp_context_attr_t.request_size bytes
	 * BEFORE this pointer, aligned as a pointer, and nothing at or after it. Such a request
	 * is the caller's and is not freed, released or queried.
	 */
	void *request;

	/* Called when the operation is over; default none. */
	union {
		ucp_send_nbx_callback_t send;
		ucp_tag_recv_nbx_callback_t recv;
		ucp_stream_recv_nbx_callback_t recv_stream;
		ucp_am_recv_data_nbx_callback_t recv_am;
	} cb;

	ucp_datatype_t datatype;       /* default contig of 1 byte */
	void *user_data;               /* passed to the callback; default NULL */
	void *reply_buffer;            /* where an atomic puts the value before */
	ucs_memory_type_t memory_type; /* of buffer; what processors can't access, and of atomics
					  all but HOST and UNKNOWN, is UNSUPPORTED */

	/* Where a receive that is over at once says what came; default nowhere. */
	union {
		size_t *length;                /* bytes; streams and active messages */
		ucp_tag_recv_info_t *tag_info; /* tag receives */
	} recv_info;

	ucp_mem_h memh;                 /* a region that covers buffer; a hint */
	ucp_datatype_t remote_datatype; /* of remote: ucp_dt_make_sgl(); put and get only */
	const void *remote;             /* a ucp_dt_remote_sgl_t; put and get only */
	size_t remote_count;            /* its entries, as many as local ones; put and get only */
} ucp_request_param_t;

/** Fields of ucp_request_attr_t. */
typedef enum {
	UCP_REQUEST_ATTR_FIELD_INFO_STRING = UCS_BIT(0),
	UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE = UCS_BIT(1),
	UCP_REQUEST_ATTR_FIELD_STATUS = UCS_BIT(2),
	UCP_REQUEST_ATTR_FIELD_MEM_TYPE = UCS_BIT(3)
} ucp_req_attr_field;

/** Answer of ucp_request_query(). */
typedef struct {
	uint64_t field_mask;        /* in: ucp_req_attr_field */
	char *debug_string;         /* in: where to write a line about the operation */
	size_t debug_string_size;   /* in: bytes there, the final NUL included */
	ucs_status_t status;        /* UCS_INPROGRESS, or how it ended */
	ucs_memory_type_t mem_type; /* of the buffer */
} ucp_request_attr_t;

/** Operations of ucp_atomic_op_nbx(). */
typedef enum {
	UCP_ATOMIC_OP_ADD,
	UCP_ATOMIC_OP_SWAP,
	UCP_ATOMIC_OP_CSWAP,
	UCP_ATOMIC_OP_AND,
	UCP_ATOMIC_OP_OR,
	UCP_ATOMIC_OP_XOR,
	UCP_ATOMIC_OP_LAST
} ucp_atomic_op_t;

/** Flags of stream receives. */
typedef enum {
	UCP_STREAM_RECV_FLAG_WAITALL = UCS_BIT(0) /* over only when count elements are there */
} ucp_stream_recv_flags_t;

/** An ep with new stream data; ucp_stream_worker_poll(). */
typedef struct ucp_stream_poll_ep {
	ucp_ep_h ep;
	void *user_data; /* of ucp_ep_params_t */
	unsigned flags;  /* 0 */
	uint8_t reserved[16];
} ucp_stream_poll_ep_t;

/* Flags of an active message handler. */
enum ucp_am_cb_flags {
	UCP_AM_FLAG_WHOLE_MSG = UCS_BIT(0),      /* only whole messages; always so */
	UCP_AM_FLAG_PERSISTENT_DATA = UCS_BIT(1) /* data may always be kept */
};

/* Flags of ucp_am_send_nbx() and ucp_am_send_nb(). */
enum ucp_send_am_flags {
	UCP_AM_SEND_FLAG_REPLY = UCS_BIT(0),       /* give the receiver an ep back */
	UCP_AM_SEND_FLAG_EAGER = UCS_BIT(1),       /* send without asking */
	UCP_AM_SEND_FLAG_RNDV = UCS_BIT(2),        /* ask first, send when fetched */
	UCP_AM_SEND_FLAG_COPY_HEADER = UCS_BIT(3), /* header is free when the call returns */
	UCP_AM_SEND_REPLY = UCP_AM_SEND_FLAG_REPLY /* its older name */
};

/** ucp_am_recv_param_t.recv_attr: fields, and what is special. */
typedef enum {
	UCP_AM_RECV_ATTR_FIELD_REPLY_EP = UCS_BIT(0),
	UCP_AM_RECV_ATTR_FLAG_DATA = UCS_BIT(16), /* data may be kept */
	UCP_AM_RECV_ATTR_FLAG_RNDV = UCS_BIT(17)  /* data must be fetched */
} ucp_am_recv_attr_t;

/** Properties of an active message; given to ucp_am_recv_callback_t. */
struct ucp_am_recv_param {
	uint64_t recv_attr; /* ucp_am_recv_attr_t */
	ucp_ep_h reply_ep;  /* the library's; an ep back to the sender */
};

/* Fields of ucp_am_handler_param_t. */
enum ucp_am_handler_param_field {
	UCP_AM_HANDLER_PARAM_FIELD_ID = UCS_BIT(0),
	UCP_AM_HANDLER_PARAM_FIELD_FLAGS = UCS_BIT(1),
	UCP_AM_HANDLER_PARAM_FIELD_CB = UCS_BIT(2),
	UCP_AM_HANDLER_PARAM_FIELD_ARG = UCS_BIT(3)
};

/** The handler of the active messages of one id; id and cb are needed. */
typedef struct ucp_am_handler_param {
	uint64_t field_mask;       /* enum ucp_am_handler_param_field */
	unsigned id;               /* 0 to 65535 */
	uint32_t flags;            /* enum ucp_am_cb_flags; default 0 */
	ucp_am_recv_callback_t cb; /* NULL: nobody any more */
	void *arg;                 /* the user's; default NULL */
} ucp_am_handler_param_t;

/* --- library and settings --- */

/** Ask what the library can do, before ucp_init(). Thread: any. */
ucs_status_t ucp_lib_query(ucp_lib_attr_t *attr);

/**
 * Read the settings: defaults, files, environment.
 * @param env_prefix NULL, or P: then P_UCX_... variables count above UCX_... ones
 * @param filename NULL, or a JSON file; the one that PLX_CONFIG names counts above it
 * @param config_p out: the caller's, until ucp_config_release()
 * Thread: any. Blocks: may (files). Errors: UCS_ERR_NO_MEMORY; UCS_ERR_NO_ELEM there is no
 * such file; UCS_ERR_INVALID_PARAM what it holds.
 */
ucs_status_t ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p);

/** Give settings back; contexts made with them are not affected. Thread: any. */
void ucp_config_release(ucp_config_t *config);

/**
 * Change one setting of a set.
 * @param name without UCX_ or PLX_ in front
 * Thread: control. Errors: UCS_ERR_INVALID_PARAM no such setting, or a bad value.
 */
ucs_status_t ucp_config_modify(ucp_config_t *config, const char *name, const char *value);

/**
 * Write settings as text.
 * @param title first line, with UCS_CONFIG_PRINT_HEADER; may be NULL
 * @param print_flags ucs_config_print_flags_t bits
 * Thread: control. Blocks: may (stream).
 */
void ucp_config_print(const ucp_config_t *config, FILE *stream, const char *title,
	ucs_config_print_flags_t print_flags);

/** Ask the version of the running library: 1.23.0 has 1, 23, 0. Thread: any. */
void ucp_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number);

/** @return the same as text, in static storage. Thread: any. */
const char *ucp_get_version_string(void);

/* --- context --- */

/**
 * Start using the library; called through ucp_init().
 * @param api_major_version, api_minor_version of the headers the caller was built with
 * @param params features is needed
 * @param config NULL: settings are read from files and environment; else copied
 * @param context_p out: the caller's, until ucp_cleanup(); set on success only
 * Thread: any. Blocks: may; the first starts the EAL unless the process has. Errors:
 * UCS_ERR_UNSUPPORTED a feature is not offered; UCS_ERR_NO_DEVICE no device opens.
 */
ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
	const ucp_params_t *params, const ucp_config_t *config, ucp_context_h *context_p);

/** As ucp_init_version(), with the version of these headers. */
static inline ucs_status_t
ucp_init(const ucp_params_t *params, const ucp_config_t *config, ucp_context_h *context_p)
{
	return ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, params, config, context_p);
}

/** End the use; workers and memory of the context must be gone. Thread: any. Blocks: may. */
void ucp_cleanup(ucp_context_h context_p);

/** Ask a context for the fields of attr->field_mask. Thread: any. */
ucs_status_t ucp_context_query(ucp_context_h context_p, ucp_context_attr_t *attr);

/** Write devices and limits of a context as text, in UCX's line format. Thread: any. */
void ucp_context_print_info(const ucp_context_h context, FILE *stream);

/* --- worker --- */

/**
 * Make a worker.
 * @param worker_p out: the caller's, until ucp_worker_destroy(); set on success only
 * Thread: any. Blocks: may. Allocates: heap, pools, device queues. Errors:
 * UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE a device has no queue left.
 */
ucs_status_t ucp_worker_create(
	ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker_p);

/** Destroy a worker and its eps; open operations are dropped. Thread: worker. Blocks: may. */
void ucp_worker_destroy(ucp_worker_h worker);

/** Ask a worker for the fields of attr->field_mask. */
ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr);

/** Write a worker's devices, eps and queues as text. Blocks: may (stream). */
void ucp_worker_print_info(ucp_worker_h worker, FILE *stream);

/** Give back an address of ucp_worker_get_address() or ucp_worker_query(). Thread: any. */
void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address);

/** Ask an address. Errors: UCS_ERR_INVALID_ADDR not one of this library. Thread: any. */
ucs_status_t ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr);

/**
 * Give a worker a turn: take what arrived, send what waits, call callbacks.
 * Not to be called from a callback.
 * @return how much was done; 0 nothing
 */
unsigned ucp_worker_progress(ucp_worker_h worker);

/**
 * Find eps that got stream data since the last such call.
 * @param poll_eps out: at most max_eps entries
 * @param flags must be 0
 * @return entries written, or a negative ucs_status_t
 */
ssize_t ucp_stream_worker_poll(
	ucp_worker_h worker, ucp_stream_poll_ep_t *poll_eps, size_t max_eps, unsigned flags);

/**
 * Get the descriptor that becomes readable when a worker has something to do.
 * Needs UCP_FEATURE_WAKEUP. Before each wait on it the worker must be progressed
 * until idle and ucp_worker_arm() must answer UCS_OK.
 * @param fd out: the library's; not to be closed
 */
ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd);

/** Sleep until a worker has something to do. Needs UCP_FEATURE_WAKEUP. Blocks: yes. */
ucs_status_t ucp_worker_wait(ucp_worker_h worker);

/** Wait until memory at address may have changed; may return early. Blocks: may. */
void ucp_worker_wait_mem(ucp_worker_h worker, void *address);

/** Prepare for a wait. @return UCS_ERR_BUSY progress first: there is something to do */
ucs_status_t ucp_worker_arm(ucp_worker_h worker);

/** Wake a waiting worker. Thread: any, whatever the worker's mode. */
ucs_status_t ucp_worker_signal(ucp_worker_h worker);

/** Order puts, gets and atomics: those after do not end before those before, ep by ep. */
ucs_status_t ucp_worker_fence(ucp_worker_h worker);

/** Tell when every put, get and atomic of a worker is done here and at the peer. */
ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param);

/**
 * Name the function that takes active messages of an id.
 * @param param id and cb are needed
 * Allocates: heap.
 */
ucs_status_t ucp_worker_set_am_recv_handler(
	ucp_worker_h worker, const ucp_am_handler_param_t *param);

/* --- listener --- */

/**
 * Listen for clients; handlers run in the worker's progress.
 * @param listener_p out: the caller's, until ucp_listener_destroy(); set on success only
 * Errors: UCS_ERR_INVALID_PARAM not exactly one handler; UCS_ERR_BUSY address in use.
 */
ucs_status_t ucp_listener_create(
	ucp_worker_h worker, const ucp_listener_params_t *params, ucp_listener_h *listener_p);

/** Stop listening; eps made through it stay, clients that wait are rejected. */
void ucp_listener_destroy(ucp_listener_h listener);

/** Ask where a listener listens. */
ucs_status_t ucp_listener_query(ucp_listener_h listener, ucp_listener_attr_t *attr);

/** Refuse a client; conn_request is used up and the client's ep fails with REJECTED. */
ucs_status_t ucp_listener_reject(ucp_listener_h listener, ucp_conn_request_h conn_request);

/** Ask who wants to connect. Thread: of the listener's worker. */
ucs_status_t ucp_conn_request_query(ucp_conn_request_h conn_request, ucp_conn_request_attr_t *attr);

/* --- ep --- */

/**
 * Make an ep. Does not wait for the peer: operations may be started at once.
 * @param params an address, or a socket address with FLAGS_CLIENT_SERVER, or a client's
 * request
 * @param ep_p out: the caller's, until it is closed; set on success only
 * Errors: UCS_ERR_INVALID_ADDR not an address; UCS_ERR_UNREACHABLE no device leads there.
 */
ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p);

/**
 * Close an ep. The handle is gone when the call returns.
 * @param param flags: UCP_EP_CLOSE_FLAG_FORCE, or 0 to deliver first
 * Errors: UCS_ERR_INVALID_PARAM FORCE on an ep without error handling; it stays open.
 */
ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param);

/** Tell when every put, get and atomic of an ep is done here and at the peer. */
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param);

/** Write state and devices of an ep as text. Blocks: may (stream). */
void ucp_ep_print_info(ucp_ep_h ep, FILE *stream);

/** Ask an ep. Errors: UCS_ERR_NOT_CONNECTED a socket address of an ep that has none. */
ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr);

/** Estimate how long a message takes. */
ucs_status_t ucp_ep_evaluate_perf(
	ucp_ep_h ep, const ucp_ep_evaluate_perf_param_t *param, ucp_ep_evaluate_perf_attr_t *attr);

/* --- memory --- */

/**
 * Register memory, or allocate registered memory.
 * @param memh_p out: the caller's, until ucp_mem_unmap(); set on success only
 * Thread: any. Blocks: may. Errors: UCS_ERR_INVALID_PARAM no length; no address without
 * ALLOCATE; FIXED without ALLOCATE or at a place not on a page; NONBLOCK with LOCK.
 */
ucs_status_t ucp_mem_map(
	ucp_context_h context, const ucp_mem_map_params_t *params, ucp_mem_h *memh_p);

/** Give memory back; no operation may use it any more. Thread: any. Blocks: may. */
ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh);

/** Ask a region. Thread: any. */
ucs_status_t ucp_mem_query(const ucp_mem_h memh, ucp_mem_attr_t *attr);

/** Say how a part of a region will be used. Thread: any. Blocks: may. */
ucs_status_t ucp_mem_advise(ucp_context_h context, ucp_mem_h memh, ucp_mem_advise_params_t *params);

/**
 * Allocate and register memory and write about it as text.
 * @param mem_size bytes, with k, m or g
 * Thread: any. Blocks: may.
 */
void ucp_mem_print_info(const char *mem_size, ucp_context_h context, FILE *stream);

/**
 * Write a region as bytes for another process.
 * @param buffer_p out: the library's, until ucp_memh_buffer_release()
 * Thread: any. Errors: UCS_ERR_UNSUPPORTED export of memory that was not allocated here.
 */
ucs_status_t ucp_memh_pack(ucp_mem_h memh, const ucp_memh_pack_params_t *params, void **buffer_p,
	size_t *buffer_size_p);

/** Give back what ucp_memh_pack() made. @param params may be NULL. Thread: any. */
void ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *params);

/**
 * Make a key usable on an ep.
 * @param rkey_buffer as packed by the peer; any alignment, ends by itself
 * @param rkey_p out: the caller's, until ucp_rkey_destroy(); set on success only
 * Errors: UCS_ERR_INVALID_PARAM not a key; UCS_ERR_UNREACHABLE of another machine.
 */
ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p);

/**
 * Get a pointer through which a peer's memory can be loaded from and stored to.
 * @param addr_p out: valid while rkey is
 * Errors: UCS_ERR_UNREACHABLE not shared memory; UCS_ERR_INVALID_ADDR outside the region.
 */
ucs_status_t ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t raddr, void **addr_p);

/** Order two keys. @param result out: below 0, 0 or above. @param params field_mask 0 */
ucs_status_t ucp_rkey_compare(ucp_worker_h worker, ucp_rkey_h rkey1, ucp_rkey_h rkey2,
	const ucp_rkey_compare_params_t *params, int *result);

/** Give a key back; no operation may use it any more. */
void ucp_rkey_destroy(ucp_rkey_h rkey);

/* --- tag --- */

/**
 * Send a message to be matched by its tag; over when buffer may be used again.
 * The callback never runs before the call returns.
 */
ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param);

/** As ucp_tag_send_nbx(), but over only when a receive has matched the message. */
ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
	const ucp_request_param_t *param);

/**
 * Post a receive: it takes the first message with (its tag & tag_mask) equal to
 * (tag & tag_mask), of any peer. Messages of one peer match in the order sent, and
 * receives in the order posted.
 * @return NULL when the message was there already (recv_info is filled, no callback);
 * UCS_ERR_MESSAGE_TRUNCATED when it was and did not fit; else a request. With NO_IMM_CMPL
 * always a request; the callback may then run before the call returns.
 */
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
	ucp_tag_t tag_mask, const ucp_request_param_t *param);

/**
 * Look for a message that no receive has matched. Makes no progress.
 * @param remove not 0: take it; it can then only be received with
 * ucp_tag_msg_recv_nbx(), and must be
 * @param info out: tag and full length, when there is one
 * @return a message; with remove 0 only a sign that there is one; NULL none
 */
ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t tag_mask,
	int remove, ucp_tag_recv_info_t *info);

/** Receive a message that ucp_tag_probe_nb() took. @return as ucp_tag_recv_nbx() */
ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
	ucp_tag_message_h message, const ucp_request_param_t *param);

/**
 * Ask a tag receive.
 * @param info out: filled when it is over; may be NULL
 * @return UCS_INPROGRESS, or how it ended. Makes no progress.
 */
ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info);

/* --- stream --- */

/** Append bytes to the stream of an ep; over when buffer may be used again. */
ucs_status_ptr_t ucp_stream_send_nbx(
	ucp_ep_h ep, const void *buffer, size_t count, const ucp_request_param_t *param);

/**
 * Take bytes from the stream of an ep: what is there, in whole elements, at least one;
 * with UCP_STREAM_RECV_FLAG_WAITALL all.
 * @param length out: bytes written, when NULL is returned
 */
ucs_status_ptr_t ucp_stream_recv_nbx(
	ucp_ep_h ep, void *buffer, size_t count, size_t *length, const ucp_request_param_t *param);

/**
 * Borrow the next bytes of the stream of an ep.
 * @param length out: how many
 * @return NULL none; the bytes, until ucp_stream_data_release(); or an error
 */
ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length);

/** Release what ucp_stream_recv_data_nb() returned, in any order. */
void ucp_stream_data_release(ucp_ep_h ep, void *data);

/** Ask a stream receive. @param length_p out: bytes, filled when it is over */
ucs_status_t ucp_stream_recv_request_test(void *request, size_t *length_p);

/* --- active messages --- */

/**
 * Send an active message: a header and data, delivered to the handler of an id.
 * @param header at most ucp_worker_attr_t.max_am_header bytes; the library's until the
 * send is over, unless UCP_AM_SEND_FLAG_COPY_HEADER
 * @param param flags: enum ucp_send_am_flags
 */
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
	const void *buffer, size_t count, const ucp_request_param_t *param);

/**
 * Fetch the data of an active message; uses data_desc up.
 * @param data_desc as given to the handler, with FLAG_RNDV or kept with FLAG_DATA
 * @return NULL over (recv_info.length is filled); else a request
 */
ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
	size_t count, const ucp_request_param_t *param);

/** Give kept data back, or drop that of a rendezvous message; its sender sees success. */
void ucp_am_data_release(ucp_worker_h worker, void *data);

/* --- put, get, atomics --- */

/**
 * Write to a peer's memory; over when buffer may be used again. A flush tells when the
 * bytes are there.
 * @param remote_addr as the peer knows it, within the region of rkey
 * @param rkey unpacked on ep
 */
ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote_addr,
	ucp_rkey_h rkey, const ucp_request_param_t *param);

/** Read a peer's memory; over when the bytes are in buffer. */
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr,
	ucp_rkey_h rkey, const ucp_request_param_t *param);

/**
 * Change a peer's 4 or 8 bytes in one step.
 * @param buffer the operand, copied; for CSWAP what to compare with
 * @param count 1
 * @param remote_addr a multiple of the size
 * @param param datatype: contig of 4 or 8, needed; reply_buffer: where the bytes before
 * go, needed for SWAP and CSWAP; for CSWAP it holds what to store
 */
ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
	size_t count, uint64_t remote_addr, ucp_rkey_h rkey, const ucp_request_param_t *param);

/* --- requests and datatypes --- */

/** @return UCS_INPROGRESS, or how the operation ended. Makes no progress. */
ucs_status_t ucp_request_check_status(void *request);

/** Ask a request for the fields of attr->field_mask; not one in the caller's memory. */
ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr);

/**
 * Cancel a receive that no message has matched; it ends with UCS_ERR_CANCELED, perhaps
 * before the call returns, and is still to be freed. Anything else goes on.
 */
void ucp_request_cancel(ucp_worker_h worker, void *request);

/** Give a request back; an operation that is not over goes on without its callback. */
void ucp_request_free(void *request);

/**
 * Make a datatype from the user's functions.
 * @param ops copied; all six are needed
 * @param context the user's, passed to start_pack and start_unpack
 * @param datatype_p out: the caller's, until ucp_dt_destroy()
 * Thread: any. Allocates: heap.
 */
ucs_status_t ucp_dt_create_generic(
	const ucp_generic_dt_ops_t *ops, void *context, ucp_datatype_t *datatype_p);

/** Give a datatype back; nothing happens to contig and iov ones. Thread: any. */
void ucp_dt_destroy(ucp_datatype_t datatype);

/** Ask a datatype for its packed size. Thread: any. */
ucs_status_t ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr);

END_C_DECLS

#endif
