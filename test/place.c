/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * place.c - run a command where the kernel refuses calls; for places_test.py
 *
 * PLACE WAY COMMAND [ARGUMENT...]. Ways: copies, no process may look into another, as with Yama's ptrace_scope;
 * container, the calls that container runtimes refuse to a process without capabilities on a new kernel; strict,
 * both, as they did on old kernels; alone, no membarrier and no pidfd either.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plx_unit_refuse.h"

#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

/* Newer than the headers of some systems; the same on all machines. */
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static const int copies[] = {SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_kcmp, SYS_pidfd_getfd,
	SYS_process_madvise};

/* What changes the machine or its namespaces, watches others, or has been a way into the kernel. */
static const int container[] = {
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_move_mount, SYS_open_tree, SYS_fsopen, SYS_fsconfig,
	SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_quotactl,
	SYS_unshare, SYS_setns, SYS_acct, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname, SYS_setdomainname,
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load,
#ifdef SYS_iopl /* not on each processor */
	SYS_iopl, SYS_ioperm,
#endif
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
	SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_syslog,
	SYS_fanotify_init, SYS_lookup_dcookie, SYS_vhangup, SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy,
	SYS_migrate_pages, SYS_move_pages, SYS_pidfd_getfd, SYS_kcmp, SYS_process_madvise,
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
};

/* The runtime can't look into its flags, and the C library goes on with the older call. */
static const int unknown[] = {SYS_clone3};

static const int helpers[] = {SYS_membarrier, SYS_pidfd_open, SYS_pidfd_send_signal};

static int
refuse(const char *way)
{
	int rc = -ENOENT;

	if (strcmp(way, "container") == 0 || strcmp(way, "strict") == 0) {
		rc = unit_refuse(container, N_OF(container), EPERM);
		if (rc == 0)
			rc = unit_refuse(unknown, N_OF(unknown), ENOSYS);
	}
	if (strcmp(way, "copies") == 0 || (strcmp(way, "strict") == 0 && rc == 0))
		rc = unit_refuse(copies, N_OF(copies), EPERM);
	if (strcmp(way, "alone") == 0)
		rc = unit_refuse(helpers, N_OF(helpers), ENOSYS);
	return rc;
}

int
main(int argc, char **argv)
{
	int rc;

	if (argc < 3) {
		fprintf(stderr, "usage: %s copies|container|strict|alone COMMAND [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	rc = refuse(argv[1]);
	if (rc != 0) {
		fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(-rc));
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
