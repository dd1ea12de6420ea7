/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ucx_table.c - the settings of UCX: names, types, defaults
 *
 * Design notes
 * - UCX checks the value of a setting of UCP and of a global one when it is set, so these have
 *   types here; it checks those of transports when it opens the transport, so for these the names
 *   suffice. They are facts of UCX 1.13 to 1.23, in the order of UCX's print.
 */
#include <fnmatch.h>
#include <string.h>

#include "conf_ucx.h"

static const char *const log_levels[] = {"FATAL", "ERROR", "WARN", "DIAG", "INFO", "DEBUG",
	"TRACE", "REQ", "DATA", "ASYNC", "FUNC", "POLL", NULL};
static const char *const error_modes[] = {"bt", "freeze", "debug", "none", NULL};
static const char *const memory_types[] = {"host", "cuda", "cuda-managed", "rocm", "rocm-managed",
	"rdma", "ze-host", "ze-device", "ze-managed", "gaudi", "unknown", NULL};
static const char *const rndv_modes[] = {"auto", "get_zcopy", "put_zcopy", "get_ppln", "put_ppln",
	"am", "rkey_ptr", NULL};
static const char *const atomic_modes[] = {"cpu", "device", "guess", NULL};
static const char *const fence_modes[] = {"weak", "strong", "auto", "ep_based", NULL};
static const char *const versions[] = {"v1", "v2", NULL};
static const char *const op_flags[] = {"no_imm_cmpl", "fast_cmpl", "force_imm_cmpl", "multi_send",
	NULL};
static const char *const profile_modes[] = {"accum", "log", NULL};
static const char *const stats_formats[] = {"full", "agg", "summary", NULL};
static const char *const thresh_keys[] = {"intra", "inter", NULL};
static const char *const distance_keys[] = {"phb", "node", "sys", NULL};
static const char *const overhead_keys[] = {"single", "multi", "rndv_offload", "rndv_rtr",
	"rndv_rts", "sw", "rkey_ptr", NULL};

static const struct conf_ucx_row rows[] = {
	{"NET_DEVICES", UCX_UCP, UCX_RANGES, "all", NULL},
	{"SHM_DEVICES", UCX_UCP, UCX_RANGES, "all", NULL},
	{"ACC_DEVICES", UCX_UCP, UCX_RANGES, "all", NULL},
	{"SELF_DEVICES", UCX_UCP, UCX_RANGES, "all", NULL},
	{"TLS", UCX_UCP, UCX_LIST, "all", NULL},
	{"PROTOS", UCX_UCP, UCX_LIST, "all", NULL},
	{"ALLOC_PRIO", UCX_UCP, UCX_STRS, "md:sysv,md:posix,thp,md:*,mmap,heap", NULL},
	{"RNDV_FRAG_SIZE", UCX_UCP, UCX_STRS, "host:512K,cuda:4M", NULL},
	{"RNDV_FRAG_ALLOC_COUNT", UCX_UCP, UCX_STRS, "host:128,cuda:128", NULL},
	{"SOCKADDR_TLS_PRIORITY", UCX_UCP, UCX_STRS, "rdmacm,tcp,sockcm", NULL},
	{"WARN_INVALID_CONFIG", UCX_UCP, UCX_BOOL, "y", NULL},
	{"RX_MPOOL_SIZES", UCX_UCP, UCX_MEMS, "64,1kb", NULL},
	{"RCACHE_ENABLE", UCX_UCP, UCX_TERNARY, "try", NULL},
	{"RCACHE_MEM_PRIO", UCX_UCP, UCX_UINT, "500", NULL},
	{"RCACHE_OVERHEAD", UCX_UCP, UCX_TIMEU, "auto", NULL},
	{"RCACHE_MAX_REGIONS", UCX_UCP, UCX_ULUNITS, "inf", NULL},
	{"RCACHE_MAX_SIZE", UCX_UCP, UCX_MEM, "inf", NULL},
	{"RCACHE_MAX_UNRELEASED", UCX_UCP, UCX_MEM, "inf", NULL},
	{"RCACHE_PURGE_ON_FORK", UCX_UCP, UCX_BOOL, "y", NULL},
	{"SELECT_DISTANCE_MD", UCX_UCP, UCX_STR, "cuda_cpy", NULL},
	{"MEMTYPE_REG_WHOLE_ALLOC_TYPES", UCX_UCP, UCX_BITS, "cuda", memory_types},
	{"RNDV_MEMTYPE_DIRECT_SIZE", UCX_UCP, UCX_MEM, "inf", NULL},
	{"BCOPY_THRESH", UCX_UCP, UCX_MEM, "auto", NULL},
	{"RNDV_THRESH", UCX_UCP, UCX_KMEM, "auto", thresh_keys},
	{"RNDV_SEND_NBR_THRESH", UCX_UCP, UCX_MEM, "256k", NULL},
	{"RNDV_THRESH_FALLBACK", UCX_UCP, UCX_MEM, "inf", NULL},
	{"RNDV_PERF_DIFF", UCX_UCP, UCX_DOUBLE, "1", NULL},
	{"MULTI_LANE_MAX_RATIO", UCX_UCP, UCX_DOUBLE, "4", NULL},
	{"MULTI_PATH_RATIO", UCX_UCP, UCX_POS, "auto", NULL},
	{"MAX_EAGER_LANES", UCX_UCP, UCX_ALIAS, "MAX_EAGER_RAILS", NULL},
	{"MAX_EAGER_RAILS", UCX_UCP, UCX_UINT, "1", NULL},
	{"MAX_RNDV_LANES", UCX_UCP, UCX_ALIAS, "MAX_RNDV_RAILS", NULL},
	{"MAX_RNDV_RAILS", UCX_UCP, UCX_UINT, "2", NULL},
	{"MAX_RMA_LANES", UCX_UCP, UCX_ALIAS, "MAX_RMA_RAILS", NULL},
	{"MAX_RMA_RAILS", UCX_UCP, UCX_UINT, "1", NULL},
	{"MIN_RNDV_CHUNK_SIZE", UCX_UCP, UCX_MEM, "16k", NULL},
	{"MIN_RMA_CHUNK_SIZE", UCX_UCP, UCX_MEM, "8k", NULL},
	{"RMA_ZCOPY_MAX_SEG_SIZE", UCX_UCP, UCX_MEM, "auto", NULL},
	{"RNDV_SCHEME", UCX_UCP, UCX_ENUM, "auto", rndv_modes},
	{"RKEY_PTR_SEG_SIZE", UCX_UCP, UCX_MEM, "512k", NULL},
	{"ZCOPY_THRESH", UCX_UCP, UCX_MEM, "auto", NULL},
	{"BCOPY_BW", UCX_UCP, UCX_BW, "auto", NULL},
	{"ATOMIC_MODE", UCX_UCP, UCX_ENUM, "guess", atomic_modes},
	{"ADDRESS_DEBUG_INFO", UCX_UCP, UCX_BOOL, "n", NULL},
	{"MAX_WORKER_NAME", UCX_UCP, UCX_ALIAS, "MAX_WORKER_ADDRESS_NAME", NULL},
	{"MAX_WORKER_ADDRESS_NAME", UCX_UCP, UCX_UINT, "32", NULL},
	{"USE_MT_MUTEX", UCX_UCP, UCX_BOOL, "n", NULL},
	{"ADAPTIVE_PROGRESS", UCX_UCP, UCX_BOOL, "y", NULL},
	{"SEG_SIZE", UCX_UCP, UCX_MEM, "8192", NULL},
	{"TM_THRESH", UCX_UCP, UCX_MEM, "1024", NULL},
	{"TM_MAX_BB_SIZE", UCX_UCP, UCX_MEM, "1024", NULL},
	{"TM_FORCE_THRESH", UCX_UCP, UCX_MEM, "8192", NULL},
	{"TM_SW_RNDV", UCX_UCP, UCX_TERNARY, "n", NULL},
	{"NUM_EPS", UCX_UCP, UCX_ULUNITS, "auto", NULL},
	{"NUM_PPN", UCX_UCP, UCX_ULUNITS, "auto", NULL},
	{"RNDV_FRAG_MEM_TYPE", UCX_UCP, UCX_ALIAS, "RNDV_FRAG_MEM_TYPES", NULL},
	{"RNDV_FRAG_MEM_TYPES", UCX_UCP, UCX_BITS, "host,cuda", memory_types},
	{"MEMTYPE_COPY_ENABLE", UCX_UCP, UCX_BOOL, "y", NULL},
	{"RNDV_PIPELINE_SEND_THRESH", UCX_UCP, UCX_MEM, "inf", NULL},
	{"RNDV_PIPELINE_SHM_ENABLE", UCX_UCP, UCX_BOOL, "y", NULL},
	{"RNDV_PIPELINE_SHM_CUDA_STAGING_FORCE", UCX_UCP, UCX_BOOL, "n", NULL},
	{"RNDV_PIPELINE_ERROR_HANDLING", UCX_UCP, UCX_BOOL, "n", NULL},
	{"RMA_PPLN_ENABLE", UCX_UCP, UCX_BOOL, "n", NULL},
	{"FLUSH_WORKER_EPS", UCX_UCP, UCX_BOOL, "y", NULL},
	{"FENCE_MODE", UCX_UCP, UCX_ENUM, "auto", fence_modes},
	{"UNIFIED_MODE", UCX_UCP, UCX_BOOL, "n", NULL},
	{"CM_USE_ALL_DEVICES", UCX_UCP, UCX_BOOL, "y", NULL},
	{"LISTENER_BACKLOG", UCX_UCP, UCX_ULUNITS, "auto", NULL},
	{"PROTO_ENABLE", UCX_UCP, UCX_BOOL, "y", NULL},
	{"PROTO_REQUEST_RESET", UCX_UCP, UCX_BOOL, "n", NULL},
	{"KEEPALIVE_INTERVAL", UCX_UCP, UCX_TIMEU, "20s", NULL},
	{"KEEPALIVE_NUM_EPS", UCX_UCP, UCX_UINT, "128", NULL},
	{"RECOVERY_RETRIES", UCX_UCP, UCX_UINT, "inf", NULL},
	{"DYNAMIC_TL_SWITCH_INTERVAL", UCX_UCP, UCX_TIMEU, "inf", NULL},
	{"DYNAMIC_TL_PROGRESS_FACTOR", UCX_UCP, UCX_UINT, "10", NULL},
	{"RESOLVE_REMOTE_EP_ID", UCX_UCP, UCX_ONOFF, "auto", NULL},
	{"PROTO_INDIRECT_ID", UCX_UCP, UCX_ONOFF, "auto", NULL},
	{"RNDV_PUT_FORCE_FLUSH", UCX_UCP, UCX_BOOL, "n", NULL},
	{"PROTO_EMULATION_ENABLE", UCX_UCP, UCX_BOOL, "y", NULL},
	{"SA_DATA_VERSION", UCX_UCP, UCX_ENUM, "v2", versions},
	{"RKEY_MPOOL_MAX_MD", UCX_UCP, UCX_INT, "2", NULL},
	{"ADDRESS_VERSION", UCX_UCP, UCX_ENUM, "v1", versions},
	{"PROTO_INFO", UCX_UCP, UCX_STR, "auto", NULL},
	{"RNDV_ALIGN_THRESH", UCX_UCP, UCX_MEM, "64kB", NULL},
	{"PROTO_INFO_DIR", UCX_UCP, UCX_STR, "", NULL},
	{"REG_NONBLOCK_MEM_TYPES", UCX_UCP, UCX_BITS, "", memory_types},
	{"REG_NONBLOCK_FALLBACK", UCX_UCP, UCX_BOOL, "y", NULL},
	{"PREFER_OFFLOAD", UCX_UCP, UCX_BOOL, "y", NULL},
	{"PROTO_OVERHEAD", UCX_UCP, UCX_KTIME,
		"single:5ns,multi:10ns,rndv_offload:40ns,rndv_rtr:40ns,rndv_rts:275ns,sw:40ns,rkey_ptr:0",
		overhead_keys},
	{"GVA_ENABLE", UCX_UCP, UCX_ONOFF, "off", NULL},
	{"GVA_MLOCK", UCX_UCP, UCX_BOOL, "y", NULL},
	{"GVA_PREFETCH", UCX_UCP, UCX_BOOL, "y", NULL},
	{"EXTRA_OP_ATTR_FLAGS", UCX_UCP, UCX_BITS, "", op_flags},
	{"MAX_PRIORITY_EPS", UCX_UCP, UCX_UINT, "20", NULL},
	{"WIREUP_VIA_AM_LANE", UCX_UCP, UCX_BOOL, "n", NULL},
	{"CONNECT_ALL_TO_ALL", UCX_UCP, UCX_BOOL, "n", NULL},
	{"SINGLE_NET_DEVICE", UCX_UCP, UCX_BOOL, "n", NULL},
	{"MAX_HCA_PER_GPU", UCX_UCP, UCX_ULUNITS, "inf", NULL},
	{"NODE_LOCAL_ID", UCX_UCP, UCX_ULUNITS, "auto", NULL},
	{"PRINT_TRANSPORT_TABLES", UCX_UCP, UCX_ONOFF, "auto", NULL},
	{"MAX_COMPONENT_MDS", UCX_UCP, UCX_ULUNITS, "16", NULL},
	{"LOG_LEVEL", UCX_GLOBAL, UCX_ENUM, "warn", log_levels},
	{"LOG_FILE_FILTER", UCX_GLOBAL, UCX_STR, "*", NULL},
	{"LOG_BUFFER", UCX_GLOBAL, UCX_MEM, "1024", NULL},
	{"LOG_DATA_SIZE", UCX_GLOBAL, UCX_ULONG, "0", NULL},
	{"LOG_PRINT_ENABLE", UCX_GLOBAL, UCX_BOOL, "n", NULL},
	{"MPOOL_FIFO", UCX_GLOBAL, UCX_BOOL, "n", NULL},
	{"HANDLE_ERRORS", UCX_GLOBAL, UCX_BITS, "none", error_modes},
	{"ERROR_MAIL_TO", UCX_GLOBAL, UCX_STR, "", NULL},
	{"ERROR_MAIL_FOOTER", UCX_GLOBAL, UCX_STR, "", NULL},
	{"GDB_COMMAND", UCX_GLOBAL, UCX_STR, "gdb -quiet", NULL},
	{"DEBUG_SIGNO", UCX_GLOBAL, UCX_SIGNO, "SIGHUP", NULL},
	{"LOG_LEVEL_TRIGGER", UCX_GLOBAL, UCX_ENUM, "fatal", log_levels},
	{"WARN_UNUSED_ENV_VARS", UCX_GLOBAL, UCX_BOOL, "yes", NULL},
	{"MEMTYPE_CACHE", UCX_GLOBAL, UCX_TERNARY, "try", NULL},
	{"ASYNC_SIGNO", UCX_GLOBAL, UCX_SIGNO, "SIGALRM", NULL},
	{"MEMTRACK_LIMIT", UCX_GLOBAL, UCX_MEM, "inf", NULL},
	{"RCACHE_CHECK_PFN", UCX_GLOBAL, UCX_UINT, "0", NULL},
	{"MODULE_DIR", UCX_GLOBAL, UCX_STR, "", NULL},
	{"MODULE_LOG_LEVEL", UCX_GLOBAL, UCX_ENUM, "debug", log_levels},
	{"MODULES", UCX_GLOBAL, UCX_LIST, "all", NULL},
	{"PLUGIN_PATH", UCX_GLOBAL, UCX_PATHS, "", NULL},
	{"TOPO_PRIO", UCX_GLOBAL, UCX_STRS, "sysfs,default", NULL},
	{"DISTANCE_LAT", UCX_GLOBAL, UCX_KTIME, "phb:300ns,node:300ns,sys:500ns", distance_keys},
	{"DISTANCE_BW", UCX_GLOBAL, UCX_KBW, "auto", distance_keys},
	{"LOG_FILE", UCX_GLOBAL, UCX_STR, "", NULL},
	{"LOG_FILE_SIZE", UCX_GLOBAL, UCX_MEM, "inf", NULL},
	{"LOG_FILE_ROTATE", UCX_GLOBAL, UCX_UINT, "0", NULL},
	{"ERROR_SIGNALS", UCX_GLOBAL, UCX_SIGNOS, "SIGILL,SIGSEGV,SIGBUS,SIGFPE", NULL},
	{"VFS_ENABLE", UCX_GLOBAL, UCX_BOOL, "y", NULL},
	{"VFS_SOCK_PATH", UCX_GLOBAL, UCX_STR, "", NULL},
	{"VFS_THREAD_AFFINITY", UCX_GLOBAL, UCX_BOOL, "n", NULL},
	{"STATS_DEST", UCX_GLOBAL, UCX_STR, "", NULL},
	{"STATS_TRIGGER", UCX_GLOBAL, UCX_STR, "exit", NULL},
	{"STATS_FILTER", UCX_GLOBAL, UCX_STRS, "*", NULL},
	{"STATS_FORMAT", UCX_GLOBAL, UCX_ENUM, "full", stats_formats},
	{"MEMTRACK_DEST", UCX_GLOBAL, UCX_STR, "", NULL},
	{"PROFILE_MODE", UCX_GLOBAL, UCX_BITS, "", profile_modes},
	{"PROFILE_FILE", UCX_GLOBAL, UCX_STR, "ucx_%h_%p.prof", NULL},
	{"PROFILE_LOG_SIZE", UCX_GLOBAL, UCX_MEM, "4m", NULL},
	{"RCACHE_STAT_MIN", UCX_GLOBAL, UCX_MEM, "4k", NULL},
	{"RCACHE_STAT_MAX", UCX_GLOBAL, UCX_MEM, "1m", NULL},
	{"BUILTIN_MEMCPY_MIN", UCX_GLOBAL, UCX_MEM, "auto", NULL},
	{"BUILTIN_MEMCPY_MAX", UCX_GLOBAL, UCX_MEM, "auto", NULL},
	{"NT_BUFFER_TRANSFER_MIN", UCX_GLOBAL, UCX_MEM, "auto", NULL},
	{"NT_DEST_THRESHOLD", UCX_GLOBAL, UCX_MEM, "auto", NULL},
};

/* Every prefix with every name; "-" is no prefix. */
static const struct {
	const char *prefixes, *names;
} transports[] = {
	{"- CMA_ CUDA_COPY_ CUDA_IPC_ DC_ DC_MLX5_ GAUDI_GDR_ GDR_COPY_ GGA_ "
		 "GGA_MLX5_ IB_ KNEM_ MM_ POSIX_ RC_ RC_GDA_ RC_MLX5_ RC_VERBS_ RDMA_CM_ "
		 "ROCM_COPY_ ROCM_IPC_ SCOPY_ SELF_ SM_ SRD_ SYSV_ TCP_ TCP_CM_ UD_ "
		 "UD_MLX5_ UD_VERBS_ UGNI_RDMA_ UGNI_SMSG_ UGNI_UDT_ XPMEM_ ZE_COPY_",
		"FAILURE"},
	{"- CMA_ CUDA_COPY_ CUDA_IPC_ DC_ DC_MLX5_ GAUDI_GDR_ GDR_COPY_ GGA_ "
		 "GGA_MLX5_ IB_ KNEM_ MM_ POSIX_ RC_ RC_GDA_ RC_MLX5_ RC_VERBS_ "
		 "ROCM_COPY_ ROCM_IPC_ SCOPY_ SELF_ SM_ SRD_ SYSV_ TCP_ UD_ UD_MLX5_ "
		 "UD_VERBS_ UGNI_RDMA_ UGNI_SMSG_ UGNI_UDT_ XPMEM_ ZE_COPY_",
		"ALLOC MAX_BCOPY MAX_NUM_EPS MAX_SHORT"},
	{"CMA_ DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ KNEM_ MM_ POSIX_ RC_ RC_GDA_ "
		 "RC_MLX5_ RC_VERBS_ SCOPY_ SELF_ SRD_ SYSV_ UD_ UD_MLX5_ UD_VERBS_ "
		 "XPMEM_",
		"SEG_SIZE"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ MM_ POSIX_ RC_ RC_GDA_ RC_MLX5_ "
		 "RC_VERBS_ SRD_ SYSV_ TCP_ UD_ UD_MLX5_ UD_VERBS_ XPMEM_",
		"RX_BUFS_GROW RX_GROW_FACTOR RX_MAX_BUFS"},
	{"CMA_ DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ KNEM_ RC_ RC_GDA_ RC_MLX5_ "
		 "RC_VERBS_ SCOPY_ SRD_ TCP_ UD_ UD_MLX5_ UD_VERBS_",
		"TX_BUFS_GROW TX_GROW_FACTOR TX_MAX_BUFS"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ MM_ POSIX_ RC_ RC_GDA_ RC_MLX5_ "
		 "RC_VERBS_ SRD_ SYSV_ UD_ UD_MLX5_ UD_VERBS_ XPMEM_",
		"SEND_OVERHEAD"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ RC_ RC_GDA_ RC_MLX5_ RC_VERBS_ "
		 "RDMA_CM_ UD_ UD_MLX5_ UD_VERBS_",
		"TIMEOUT"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ RC_ RC_GDA_ RC_MLX5_ RC_VERBS_ SRD_ "
		 "UD_ UD_MLX5_ UD_VERBS_",
		"ADDR_TYPE COUNTER_SET_ID FLID_ROUTE HOP_LIMIT IS_GLOBAL LID_PATH_BITS "
		 "NUM_PATHS PATH_MTU PKEY REVERSE_SL ROCE_LOCAL_SUBNET ROCE_PATH_FACTOR "
		 "ROCE_REACHABILITY_MODE ROCE_SUBNETS ROCE_SUBNET_PREFIX_LEN RX_INLINE "
		 "RX_MAX_BATCH RX_MAX_POLL RX_QUEUE_LEN SL TRAFFIC_CLASS TX_INLINE_RESP "
		 "TX_MAX_BATCH TX_MAX_POLL TX_MIN_INLINE TX_MIN_SGE TX_QUEUE_LEN"},
	{"CMA_ CUDA_COPY_ CUDA_IPC_ GDR_COPY_ KNEM_ MM_ POSIX_ SCOPY_ SM_ SYSV_ "
		 "XPMEM_",
		"BW"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ RC_ RC_GDA_ RC_MLX5_ RC_VERBS_",
		"ECE FC_ENABLE FC_HARD_THRESH FC_WND_SIZE FENCE MAX_GET_ZCOPY "
		 "MAX_RD_ATOMIC RETRY_COUNT RNR_RETRY_COUNT RNR_TIMEOUT TX_NUM_GET_BYTES "
		 "TX_NUM_GET_OPS TX_POLL_ALWAYS"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ RC_ RC_GDA_ RC_MLX5_ UD_MLX5_",
		"AR_ENABLE DM_COUNT DM_SIZE MMIO_MODE RX_CQE_ZIP_ENABLE "
		 "TX_CQE_ZIP_ENABLE"},
	{"DC_ DC_MLX5_ GGA_ GGA_MLX5_ IB_ RC_ RC_GDA_ RC_MLX5_",
		"DDP_ENABLE EXP_BACKOFF LOG_ACK_REQ_FREQ SRQ_TOPO TM_ENABLE "
		 "TM_LIST_SIZE TM_MAX_BCOPY TM_MP_NUM_STRIDES TM_MP_SRQ_ENABLE "
		 "TM_SEG_SIZE TX_MAX_BB"},
	{"DC_ DC_MLX5_ SRD_ UD_ UD_MLX5_ UD_VERBS_",
		"RX_QUEUE_LEN_INIT"},
	{"GGA_ GGA_MLX5_ RC_ RC_MLX5_ RC_VERBS_",
		"FC_SOFT_THRESH TX_CQ_LEN TX_CQ_MODERATION"},
	{"CMA_ KNEM_ SCOPY_ TCP_",
		"MAX_IOV"},
	{"CUDA_IPC_ GDR_COPY_ ROCM_COPY_ ROCM_IPC_",
		"LAT"},
	{"MM_ POSIX_ SYSV_ XPMEM_",
		"ERROR_HANDLING FIFO_ELEM_SIZE FIFO_HUGETLB FIFO_MAX_POLL "
		 "FIFO_RELEASE_FACTOR FIFO_SIZE HUGETLB_MODE RECV_OVERHEAD"},
	{"CMA_ KNEM_ SCOPY_",
		"TX_QUOTA"},
	{"CUDA_COPY_ CUDA_IPC_ TCP_",
		"MAX_POLL"},
	{"DC_MLX5_ RC_MLX5_ UD_MLX5_",
		"CQE_ZIPPING_ENABLE"},
	{"DC_MLX5_ UD_ UD_MLX5_",
		"COMPACT_AV"},
	{"GDR_COPY_ GGA_ IB_",
		"MEM_REG_GROWTH MEM_REG_OVERHEAD"},
	{"GDR_COPY_ IB_ ROCM_COPY_",
		"RCACHE_MAX_REGIONS RCACHE_MAX_SIZE RCACHE_MAX_UNRELEASED "
		 "RCACHE_MEM_PRIO RCACHE_OVERHEAD RCACHE_PURGE_ON_FORK"},
	{"UD_ UD_MLX5_ UD_VERBS_",
		"ASYNC_TIMER_TICK ETH_DGID_CHECK LINGER_TIMEOUT MAX_WINDOW "
		 "MIN_POKE_TIME RX_ASYNC_MAX_POLL TIMER_BACKOFF TIMER_TICK"},
	{"CUDA_COPY_ CUDA_IPC_",
		"MAX_EVENTS"},
	{"CUDA_COPY_ ROCM_COPY_",
		"DMABUF"},
	{"DC_ DC_MLX5_",
		"DCIS_INITIAL_CAPACITY DCI_FULL_HANDSHAKE DCT_FULL_HANDSHAKE "
		 "DCT_PORT_AFFINITY FC_HARD_REQ_TIMEOUT FULL_HANDSHAKE_LATENCY "
		 "LAG_PORT_AFFINITY NUM_DCI NUM_DCI_CHANNELS QUOTA RAND_DCI_SEED "
		 "TX_POLICY"},
	{"GDR_COPY_ ROCM_COPY_",
		"RCACHE"},
	{"GGA_ IB_",
		"ASYNC_EVENTS DEVICE_SPECS DIRECT_NIC ETH_PAUSE_ON FORK_INIT "
		 "GDA_DMABUF_ENABLE GDA_MAX_HCA_PER_GPU GDA_RETAIN_INACTIVE_CTX "
		 "GID_INDEX GPU_DIRECT_RDMA INDIRECT_ATOMIC MAX_IDLE_RKEY_COUNT "
		 "ODP_MEM_TYPES ODP_PREFETCH PCI_BW PCI_RELAXED_ORDERING "
		 "PREFER_NEAREST_DEVICE REG_MT_BIND REG_MT_CHUNK REG_MT_THRESH "
		 "REG_RETRY_CNT SMKEY_BLOCK_SIZE SUBNET_PREFIX XGVMI_UMR_ENABLE"},
	{"RDMA_CM_ TCP_CM_",
		"REUSEADDR"},
	{"ROCM_COPY_ ROCM_IPC_",
		"SIGPOOL_MAX_ELEMS"},
	{"TCP_ TCP_CM_",
		"RCVBUF SNDBUF SYN_CNT"},
	{"-",
		"CM_FAILURE CM_REUSEADDR"},
	{"CMA_",
		"MEMORY_INVALIDATE"},
	{"CUDA_COPY_",
		"ASYNC_MEM_TYPE ENABLE_FABRIC MAX_REG_RATIO PREF_LOC REG_WHOLE_ALLOC "
		 "RETAIN_PRIMARY_CTX"},
	{"CUDA_IPC_",
		"CACHE CACHE_MAX_REGIONS CACHE_MAX_SIZE ENABLE_GET_ZCOPY ENABLE_MNNVL "
		 "MAX_STREAMS OVERHEAD"},
	{"DC_MLX5_",
		"DCI_KA_FULL_HANDSHAKE"},
	{"GAUDI_GDR_",
		"DEVICE_ID"},
	{"GDR_COPY_",
		"SHARED_MD USE_PCIE"},
	{"GGA_MLX5_",
		"DEVX DEVX_OBJECTS DV"},
	{"IB_",
		"MLX5_DEVX MLX5_DEVX_OBJECTS MLX5_DV ODP_MAX_SIZE ODP_NUMA_POLICY "
		 "RCACHE_ADDR_ALIGN REG_METHODS"},
	{"MEM_",
		"ALLOC_ALIGN BISTRO_FORCE_FAR_JUMP BISTRO_GRACE_DURATION CUDA_HOOK_MODE "
		 "CUDA_RELOC DLOPEN_PROCESS_RPATH DYNAMIC_MMAP_THRESH EVENTS LOG_LEVEL "
		 "MALLOC_HOOKS MALLOC_RELOC MMAP_HOOK_MODE MODULE_UNLOAD_PREVENT_MODE"},
	{"POSIX_",
		"DIR SHM_MIN_SIZE USE_PROC_LINK"},
	{"RC_GDA_",
		"EP_ALLOC_MODE NUM_CHANNELS NUM_PRE_ALLOC_EPS"},
	{"RC_VERBS_",
		"FLUSH_MODE MAX_AM_HDR TX_MAX_WR"},
	{"RDMA_CM_",
		"RESERVED_QPN SOURCE_ADDRESS"},
	{"ROCM_COPY_",
		"D2H_THRESH ENABLE_ASYNC_ZCOPY H2D_THRESH"},
	{"ROCM_IPC_",
		"CACHE_IPC_HANDLES MIN_ZCOPY"},
	{"SELF_",
		"NUM_DEVICES"},
	{"TCP_",
		"AF_PRIO BRIDGE_ENABLE CONN_NB EP_BIND_SRC_ADDR KEEPCNT KEEPIDLE "
		 "KEEPINTVL MAX_BW MAX_CONN_RETRIES NODELAY PORT_RANGE PREFER_DEFAULT "
		 "PUT_ENABLE RX_SEG_SIZE SENDV_THRESH TX_SEG_SIZE"},
	{"TCP_CM_",
		"PRIV_DATA_LEN"},
	{"UGNI_RDMA_",
		"RDMABUFS_GROW RDMAGROW_FACTOR RDMAMAX_BUFS"},
	{"UGNI_SMSG_",
		"SMSGBUFS_GROW SMSGGROW_FACTOR SMSGMAX_BUFS"},
	{"UGNI_UDT_",
		"UDTBUFS_GROW UDTGROW_FACTOR UDTMAX_BUFS"},
	{"ZE_COPY_",
		"DEVICE_ORDINAL"},
	{"-", "ASYNC_MAX_EVENTS SOCKADDR_AUX_TLS"}, /* of former releases */
	{"TCP_ TCP_CM_", "USER_TIMEOUT"},
	{"IB_ RC_ UD_ DC_ RC_VERBS_ RC_MLX5_ UD_VERBS_ UD_MLX5_ DC_MLX5_ SRD_ TCP_ MM_ POSIX_ SYSV_ XPMEM_",
		"RX_MAX_CHUNK_SIZE"},
	{"IB_ RC_ UD_ DC_ RC_VERBS_ RC_MLX5_ UD_VERBS_ UD_MLX5_ DC_MLX5_ SRD_ TCP_ CMA_ KNEM_ SCOPY_",
		"TX_MAX_CHUNK_SIZE"},
};

const struct conf_ucx_row *
conf_ucx_row(unsigned int i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct conf_ucx_row *
conf_ucx_find(const char *name)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* The next word of *words, which advances past it. @return its length, 0 at the end */
static size_t
next_word(const char **words, const char **word)
{
	size_t len;

	*words += strspn(*words, " ");
	len = strcspn(*words, " ");
	*word = *words;
	*words += len;
	return len;
}

/* Whether prefix and one of names make up the requested name. */
static bool
matches(const char *prefix, size_t prefix_len, const char *names, const char *pattern, bool glob)
{
	char name[PLX_CONF_NAME_MAX];
	const char *word;
	size_t len;

	if (prefix_len == 1 && *prefix == '-')
		prefix_len = 0;
	if (!glob && strncmp(pattern, prefix, prefix_len) != 0)
		return false;
	while ((len = next_word(&names, &word)) != 0) {
		if (prefix_len + len >= sizeof(name))
			continue;
		memcpy(name, prefix, prefix_len);
		memcpy(name + prefix_len, word, len);
		name[prefix_len + len] = '\0';
		if (glob ? fnmatch(pattern, name, 0) == 0 : strcmp(pattern, name) == 0)
			return true;
	}
	return false;
}

bool
conf_ucx_is_transport(const char *pattern)
{
	bool glob = conf_ucx_is_pattern(pattern);
	const char *prefixes, *prefix;
	size_t len;

	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		prefixes = transports[i].prefixes;
		while ((len = next_word(&prefixes, &prefix)) != 0)
			if (matches(prefix, len, transports[i].names, pattern, glob))
				return true;
	}
	return false;
}
