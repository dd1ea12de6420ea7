/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_test.c - endpoints, connections, events, messages and RMA behave as CCI says
 *
 * Design notes
 * - Only the public API is used, and nothing is assumed to be over before its event, so
 *   the program also runs with dedicated reactors (PLX_REACTOR=lcore:1).
 * - Most tests have both endpoints in this thread; where one has to stop, to block or to
 *   die it is another process (cci_api_child.c).
 * - Every wait has a deadline and every test an alarm: a hang is a failure.
 *
 * usage: cci_api_test [--list] [PART-OF-A-NAME]
 */
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cci_api_test.h"

static const struct api_test *const tables[] = {cci_init_tests, cci_dev_tests, cci_ep_tests,
	cci_opt_tests, cci_conn_tests, cci_msg_tests, cci_flow_tests, cci_event_tests, cci_rma_tests,
	cci_guard_tests, cci_mc_tests, cci_uu_tests, cci_proc_tests, cci_many_tests,
	cci_fork_tests};

const char *
lacks_names(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);

	if (fd < 0 && errno == EPROTONOSUPPORT)
		return "the kernel lists no sockets, so none is found by its name";
	close(fd);
	return NULL;
}

/* @return whether datagrams go by sockets, and those have no such option */
static bool
lacks_option(int name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), value;
	socklen_t len = sizeof(value);
	bool unknown = getsockopt(fd, IPPROTO_IP, name, &value, &len) != 0 && errno == ENOPROTOOPT;

	close(fd);
	return unknown && strcmp(util_transport(), "net_tcp") == 0;
}

const char *
lacks_groups(void)
{
	if (strcmp(util_transport(), "net_tcp") != 0)
		return lacks_names();
	return lacks_option(IP_MULTICAST_ALL) ? "no socket can be told which groups it hears" : NULL;
}

const char *
lacks_datagrams(void)
{
	return lacks_option(IP_MTU) ? "no socket knows its MTU" : NULL;
}

const char *
lacks_limits(void)
{
	struct rlimit was, set, is = {0, 0};

	if (getrlimit(RLIMIT_AS, &was) != 0)
		return "memory has no limit";
	set = (struct rlimit){(rlim_t)1 << 46, was.rlim_max};
	if (setrlimit(RLIMIT_AS, &set) != 0 || getrlimit(RLIMIT_AS, &is) != 0 || setrlimit(RLIMIT_AS, &was) != 0)
		return "memory has no limit";
	return is.rlim_cur == set.rlim_cur ? NULL : "no limit of memory is heeded";
}

int
main(int argc, char **argv)
{
	const size_t n = sizeof(tables) / sizeof(tables[0]);

	if (argc > 2 && strcmp(argv[1], "--child") == 0)
		return child_main(argv + 2);
	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		api_list(tables, n);
		return 0;
	}
	/* The signal has its default action here: a peer's death must not raise it. */
	signal(SIGPIPE, SIG_DFL);
	return api_run("cci", tables, n, argc > 1 ? argv[1] : "", false);
}
