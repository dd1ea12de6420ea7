/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_refuse.h - from now on the kernel answers some calls with an error, as a sandbox has it do
 */
#ifndef PLX_UNIT_REFUSE_H
#define PLX_UNIT_REFUSE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>

#define UNIT_REFUSE_MAX 200 /* a jump is at most 255 instructions long */

/**
 * Refuse calls to this thread and to what it starts, for good. Filters add up: where several match a call, the
 * kernel takes the strictest, and of equal ones the last.
 * @param calls n numbers of calls
 * @param error what they end with
 * @return 0 or -errno
 */
static inline int
unit_refuse(const int *calls, unsigned n, int error)
{
	struct sock_filter code[UNIT_REFUSE_MAX + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog prog = {(unsigned short)(n + 3), code};

	if (n > UNIT_REFUSE_MAX)
		return -E2BIG;
	for (unsigned i = 0; i < n; i++) {
		struct sock_filter is_it = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
			(uint8_t)(n - i), 0);

		code[1 + i] = is_it;
	}
	code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return -errno;
	return 0;
}

#endif
