/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_api_dev.c - devices, found or named in the file of CCI_CONFIG
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "cci_api_test.h"

static char conf_path[64];

/* Start the library with a file of this text. */
static int
init_with(const char *text)
{
	uint32_t caps;
	FILE *f;
	int rc;

	snprintf(conf_path, sizeof(conf_path), "/tmp/cci_api_test.%d.ini", (int)getpid());
	f = fopen(conf_path, "w");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		UTIL_DIE("cannot write %s", conf_path);
	setenv("CCI_CONFIG", conf_path, 1);
	rc = cci_init(CCI_ABI_VERSION, 0, &caps);
	unsetenv("CCI_CONFIG");
	unlink(conf_path);
	return rc;
}

/* The same, and what it writes to stderr meanwhile. */
static int
init_with_said(const char *text, char *said, size_t len)
{
	int kept = dup(STDERR_FILENO), fd[2], rc;
	ssize_t n;

	if (kept < 0 || pipe2(fd, O_NONBLOCK) != 0)
		UTIL_DIE("pipe");
	fflush(stderr);
	dup2(fd[1], STDERR_FILENO);
	rc = init_with(text);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	n = read(fd[0], said, len - 1);
	said[n > 0 ? n : 0] = '\0';
	close(kept);
	close(fd[0]);
	close(fd[1]);
	return rc;
}

static unsigned
n_devices(void)
{
	cci_device_t *const *devices;
	unsigned n = 0;

	UTIL_OK(cci_get_devices(&devices));
	while (devices[n] != NULL)
		n++;
	return n;
}

static cci_device_t *
device(unsigned i)
{
	cci_device_t *const *devices;

	UTIL_OK(cci_get_devices(&devices));
	return devices[i];
}

/* The place of "key=value" in what the device was given, or -1. */
static int
given(cci_device_t *d, const char *text)
{
	for (int i = 0; d->conf_argv[i] != NULL; i++) {
		if (strcmp(d->conf_argv[i], text) == 0)
			return i;
	}
	return -1;
}

static void
devices_are_found_without_a_file(void)
{
	uint32_t caps;
	cci_device_t *d;

	CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	CU_ASSERT_FATAL(n_devices() >= 1);
	d = device(0);
	CU_ASSERT(strlen(d->name) > 0);
	CU_ASSERT_STRING_EQUAL(d->transport, util_transport());
	CU_ASSERT_EQUAL(d->up, 1);
	CU_ASSERT_PTR_NOT_NULL(d->info);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d->conf_argv);
	CU_ASSERT_PTR_NULL(d->conf_argv[0]);
	/* programs send their URI in a message */
	CU_ASSERT(d->max_send_size >= 256);
	CU_ASSERT_EQUAL(d->pci.domain, UINT32_MAX);
	CU_ASSERT_EQUAL(d->pci.bus, UINT32_MAX);
	CU_ASSERT_EQUAL(d->pci.dev, UINT32_MAX);
	CU_ASSERT_EQUAL(d->pci.func, UINT32_MAX);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static bool
machine_has_rdma(void)
{
	return access("/sys/class/infiniband_verbs", F_OK) == 0;
}

static void
a_device_is_listed_only_where_it_is_there(void)
{
	uint32_t caps;
	bool listed = false;

	CU_ASSERT_EQUAL_FATAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	for (unsigned i = 0; i < n_devices(); i++)
		listed |= strcmp(device(i)->name, "net_mlx") == 0;
	CU_ASSERT(!listed || machine_has_rdma());
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
a_device_of_the_file_that_is_not_there_is_down(void)
{
	CU_ASSERT_EQUAL_FATAL(init_with("[near]\ntransport = shm\n"
					"[far]\ntransport = net_mlx\npriority = 90\n"
					"[none]\ntransport = net_mlx\nnet_mlx.device = no_such_device\n"),
		CCI_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(n_devices(), 3);
	for (unsigned i = 0; i < 3; i++) {
		const cci_device_t *d = device(i);

		if (strcmp(d->name, "near") == 0) {
			CU_ASSERT_EQUAL(d->up, 1);
		} else {
			CU_ASSERT(d->up == 0 || (strcmp(d->name, "far") == 0 && machine_has_rdma()));
		}
	}
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
asking_again_gives_the_same_devices(void)
{
	cci_device_t *const *a, *const *b;

	CU_ASSERT_EQUAL_FATAL(init_with("[one]\ntransport = shm\n[two]\ntransport = shm\n"),
		CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_devices(&a), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_get_devices(&b), CCI_SUCCESS);
	CU_ASSERT_EQUAL(n_devices(), 2);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(a[i], b[i]);
	CU_ASSERT_EQUAL(cci_get_devices(NULL), CCI_EINVAL);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
devices_come_by_falling_priority(void)
{
	CU_ASSERT_EQUAL_FATAL(init_with("[low]\ntransport = shm\npriority = 10\n"
		"[unsaid]\ntransport = shm\n"
		"[zero]\npriority = 0\ntransport = shm\n"
		"[high]\ntransport = shm\npriority = 100\n"
		"[above]\ntransport = shm\npriority = 51\n"), CCI_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(n_devices(), 5);
	CU_ASSERT_STRING_EQUAL(device(0)->name, "high");
	CU_ASSERT_STRING_EQUAL(device(1)->name, "above");
	CU_ASSERT_STRING_EQUAL(device(2)->name, "unsaid"); /* 50 */
	CU_ASSERT_STRING_EQUAL(device(3)->name, "low");
	CU_ASSERT_STRING_EQUAL(device(4)->name, "zero");
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
endpoint_is_on(const char *name)
{
	cci_endpoint_t *ep;

	CU_ASSERT_EQUAL_FATAL(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
	CU_ASSERT_STRING_EQUAL(ep->device->name, name);
	CU_ASSERT_EQUAL(cci_destroy_endpoint(ep), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
no_device_means_the_default_one(void)
{
	CU_ASSERT_EQUAL_FATAL(init_with("[a]\ntransport = shm\npriority = 90\n"
		"[b]\ntransport = shm\ndefault = 1\n"), CCI_SUCCESS);
	endpoint_is_on("b");
	CU_ASSERT_EQUAL_FATAL(init_with("[a]\ntransport = shm\npriority = 90\ndefault = 0\n"
		"[b]\ntransport = shm\ndefault = 0\n"), CCI_SUCCESS);
	endpoint_is_on("a");
	CU_ASSERT_EQUAL_FATAL(init_with("[a]\ntransport = shm\npriority = 1\n"
		"[b]\ntransport = shm\n"), CCI_SUCCESS);
	endpoint_is_on("b");
}

static void
other_keys_are_passed_on_in_their_order(void)
{
	cci_device_t *d;

	CU_ASSERT_EQUAL_FATAL(init_with("# a comment\n\n[bob0] # another\ntransport = shm\n"
		"device = ipath0,ipath1\n"
		"capabilities=bonded,failover,age_of_captain:52\n"
		"  qos_stuff =fast\n"
		"sl= 3 # IB service level (if applicable)\n"
		"\tlast\t=\tone\t\n"), CCI_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(n_devices(), 1);
	d = device(0);
	CU_ASSERT_STRING_EQUAL(d->name, "bob0");
	CU_ASSERT(given(d, "device=ipath0,ipath1") >= 0);
	CU_ASSERT(given(d, "capabilities=bonded,failover,age_of_captain:52") >
		given(d, "device=ipath0,ipath1"));
	CU_ASSERT(given(d, "qos_stuff=fast") >
		given(d, "capabilities=bonded,failover,age_of_captain:52"));
	CU_ASSERT(given(d, "sl=3") > given(d, "qos_stuff=fast"));
	CU_ASSERT(given(d, "last=one") > given(d, "sl=3"));
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

/* Its transports are of other machines: there is no device, and that is no error. */
static void
devices_of_unknown_transports_are_left_out(void)
{
	cci_endpoint_t *ep = NULL;

	CU_ASSERT_EQUAL_FATAL(init_with("[bob0]\ntransport = psm\npriority = 10\ndefault = 1\n"
		"device = ipath0,ipath1\n[storage]\ntransport = udp\npriority = 5\n"
		"ip = 172.31.194.1\nmac = 01:12:23:34:45\n"), CCI_SUCCESS);
	CU_ASSERT_EQUAL(n_devices(), 0);
	CU_ASSERT_EQUAL(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_ENODEV);
	CU_ASSERT_PTR_NULL(ep);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(init_with("[bob0]\ntransport = psm\n[x]\ntransport = shm\n"), CCI_SUCCESS);
	CU_ASSERT_EQUAL(n_devices(), 1);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
an_empty_file_has_no_devices(void)
{
	cci_endpoint_t *ep;

	CU_ASSERT_EQUAL_FATAL(init_with(""), CCI_SUCCESS);
	CU_ASSERT_EQUAL(n_devices(), 0);
	CU_ASSERT_EQUAL(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_ENODEV);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
a_file_that_cannot_be_read_is_an_error(void)
{
	uint32_t caps;

	setenv("CCI_CONFIG", "/nonexistent/cci.ini", 1);
	CU_ASSERT_NOT_EQUAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	setenv("CCI_CONFIG", "/tmp", 1); /* a folder */
	CU_ASSERT_NOT_EQUAL(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
	unsetenv("CCI_CONFIG");
	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
}

static void
an_error_in_the_file_names_its_line(void)
{
	static const struct {
		const char *text;
		const char *line;
	} bad[] = {
		{"[a]\ntransport = shm\nthis is no key\n", "line 3:"},
		{"[a\ntransport = shm\n", "line 1:"},
		{"[a]\ntransport = shm\n[]\n", "line 3:"},
		{"[a]\n\n\n= 5\n", "line 4:"},
		{"[a]\ntransport = shm\npriority = high\n", "line 3:"},
		{"[a]\ntransport = shm\n\npriority = 101\n", "line 4:"},
		{"key = before any section\n", "line 1:"},
	};
	char said[4096];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(init_with_said(bad[i].text, said, sizeof(said)), CCI_ERROR);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, bad[i].line));
		if (strstr(said, bad[i].line) == NULL)
			printf("\n    %s said: %s\n", bad[i].text, said);
	}
	CU_ASSERT_EQUAL(cci_finalize(), CCI_ERROR);
}

static void
editors_marks_and_long_comments_are_no_errors(void)
{
	char *text = malloc(8192);
	int n;

	n = sprintf(text, "\xef\xbb\xbf# %04000d\r\n[a] # %02000d\r\ntransport = shm\r\nk = v", 0, 0);
	CU_ASSERT(n > 6000);
	CU_ASSERT_EQUAL_FATAL(init_with(text), CCI_SUCCESS);
	CU_ASSERT_EQUAL(n_devices(), 1);
	CU_ASSERT_STRING_EQUAL(device(0)->name, "a");
	CU_ASSERT(given(device(0), "k=v") == 0);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	free(text);
}

static void
a_device_has_a_longest_message_of_its_own(void)
{
	struct pair p;

	CU_ASSERT_EQUAL_FATAL(init_with("[short]\ntransport = shm\ncci.max_send = 1k\npriority = 60\n"
		"[usual]\ntransport = shm\nworker.devices = none_of_ours\n"), CCI_SUCCESS);
	CU_ASSERT_EQUAL(device(0)->max_send_size, 1024);
	CU_ASSERT(device(1)->max_send_size > 1024);
	for (int i = 0; i < 2; i++)
		util_end_open_on(&p.e[i], 0, NULL, false);
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	CU_ASSERT_EQUAL(p.e[0].conn->max_send_size, 1024);
	util_pair_close(&p);
	/* which driver it is the transport says, and no setting */
	util_end_open_on(&p.e[0], 1, NULL, false);
	util_end_close(&p.e[0]);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

/* Neither is cut in silence. */
static void
long_lines_and_many_keys_are_whole_or_refused(void)
{
	size_t len = 70000;
	char *text = malloc(2 * len);
	int n, rc;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	n = sprintf(text, "[a]\ntransport = shm\nlong = ");
	memset(text + n, 'x', len);
	strcpy(text + n + len, "\n");
	rc = init_with(text);
	if (rc == CCI_SUCCESS) {
		char *want = malloc(len + 8);

		sprintf(want, "long=%.*s", (int)len, text + n);
		CU_ASSERT(given(device(0), want) >= 0);
		free(want);
		CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	} else {
		CU_ASSERT_EQUAL(rc, CCI_ERROR);
	}
	n = sprintf(text, "[a]\ntransport = shm\n");
	for (int i = 0; i < 500; i++)
		n += sprintf(text + n, "key%d = %d\n", i, i);
	rc = init_with(text);
	if (rc == CCI_SUCCESS) {
		CU_ASSERT(given(device(0), "key0=0") >= 0);
		CU_ASSERT(given(device(0), "key499=499") >= 0);
		CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	} else {
		CU_ASSERT_EQUAL(rc, CCI_ERROR);
	}
	free(text);
}

static void
an_endpoint_can_be_made_on_each_device(void)
{
	cci_endpoint_t *ep[2];

	CU_ASSERT_EQUAL_FATAL(init_with("[one]\ntransport = shm\n[two]\ntransport = shm\n"),
		CCI_SUCCESS);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(cci_create_endpoint(device(i), 0, &ep[i], NULL), CCI_SUCCESS);
		CU_ASSERT_PTR_EQUAL(ep[i]->device, device(i));
	}
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(cci_destroy_endpoint(ep[i]), CCI_SUCCESS);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

/* What was written after the send arrives: nobody had copied it. A reactor reads when it likes. */
static void
a_long_message_is_read_from_the_buffer_that_is_left_alone(void)
{
	static const struct {
		const char *min;
		int flags;
		bool read;
	} cases[] = {{"1k", CCI_FLAG_NO_COPY, true}, {"1k", 0, false}, {"8k", CCI_FLAG_NO_COPY, false}};
	const bool can = strcmp(util_transport(), "shm") == 0 && getenv("PLX_REACTOR") == NULL;
	uint8_t buf[4096];
	char text[100];
	cci_event_t *ev;
	struct pair p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "[a]\ntransport = %s\ncci.no_copy_min = %s\n",
			util_transport(), cases[i].min);
		CU_ASSERT_EQUAL_FATAL(init_with(text), CCI_SUCCESS);
		util_pair_open_with(&p, CCI_CONN_ATTR_RU);
		memset(buf, 'a', sizeof(buf));
		CU_ASSERT_EQUAL(cci_send(p.e[0].conn, buf, sizeof(buf), NULL, cases[i].flags), CCI_SUCCESS);
		if (can)
			memset(buf, 'b', sizeof(buf));
		ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
		CU_ASSERT_EQUAL_FATAL(ev->recv.len, sizeof(buf));
		memset(buf, can && cases[i].read ? 'b' : 'a', sizeof(buf));
		CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, buf, sizeof(buf)), 0);
		CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
		util_return(ev);
		util_pair_close(&p);
		CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
	}
}

/* A file with two devices of the transport: the RDMA devices that CCI_TEST_DEVICES names, or alike. */
static void
init_with_two(void)
{
	const char *names = getenv("CCI_TEST_DEVICES");
	char text[300], name[2][32] = {"", ""};

	if (names != NULL && sscanf(names, "%31[^,],%31s", name[0], name[1]) != 2)
		UTIL_DIE("CCI_TEST_DEVICES is not two devices");
	snprintf(text, sizeof(text), "[one]\ntransport = %s\n%s%s\n[two]\ntransport = %s\n%s%s\n",
		util_transport(), names != NULL ? "net_mlx.device = " : "", name[0],
		util_transport(), names != NULL ? "net_mlx.device = " : "", name[1]);
	CU_ASSERT_EQUAL_FATAL(init_with(text), CCI_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(n_devices(), 2);
}

static void
endpoints_of_two_devices_meet(void)
{
	static uint8_t here[100000], there[sizeof(here)];
	cci_rma_handle_t *local, *remote;
	cci_event_t *ev;
	struct pair p;

	init_with_two();
	for (int i = 0; i < 2; i++)
		util_end_open_on(&p.e[i], i, NULL, false);
	CU_ASSERT_STRING_EQUAL(p.e[1].ep->device->name, "two");
	util_pair_connect(&p, CCI_CONN_ATTR_RO, &p.e[0].conn, &p.e[1].conn);
	UTIL_OK(cci_rma_register(p.e[0].ep, here, sizeof(here), CCI_FLAG_READ | CCI_FLAG_WRITE, &local));
	UTIL_OK(cci_rma_register(p.e[1].ep, there, sizeof(there), CCI_FLAG_READ | CCI_FLAG_WRITE,
		&remote));
	util_fill(here, sizeof(here), 5);
	UTIL_OK(cci_rma(p.e[0].conn, "there", 5, local, 0, remote, 0, sizeof(here), NULL,
		CCI_FLAG_WRITE));
	CU_ASSERT_EQUAL(util_pair_sent(&p, 0, NULL), CCI_SUCCESS);
	ev = util_pair_wait(&p, 1, CCI_EVENT_RECV);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
	CU_ASSERT_EQUAL(ev->recv.len, 5);
	CU_ASSERT(util_check(there, sizeof(there), 5));
	util_return(ev);
	util_pair_close(&p);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
a_group_has_members_on_two_devices(void)
{
	cci_connection_t *conn[2][2];
	char uri[UTIL_URI_MAX];
	cci_event_t *ev;
	struct pair p;

	init_with_two();
	snprintf(uri, sizeof(uri), "%s://mc/two", util_transport());
	for (int i = 0; i < 2; i++)
		util_end_open_on(&p.e[i], i, NULL, false);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) {
			UTIL_OK(cci_connect(p.e[i].ep, uri, NULL, 0,
				k == 0 ? CCI_CONN_ATTR_UU_MC_RX : CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL));
			ev = util_pair_wait(&p, i, CCI_EVENT_CONNECT);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_EQUAL_FATAL(ev->connect.status, CCI_SUCCESS);
			conn[i][k] = ev->connect.connection;
			util_return(ev);
		}
	}
	if (getenv("PLX_RPC_SOCKET") != NULL && util_is_rdma())
		CU_ASSERT_EQUAL(util_counter("group_by_cm"), getenv("CCI_TEST_BY_MANAGER") != NULL);
	for (int k = 0; k < 20; k++) {
		UTIL_OK(cci_send(conn[k % 2][1], &k, sizeof(k), NULL, CCI_FLAG_SILENT));
		for (int i = 0; i < 2; i++) {
			ev = util_pair_wait(&p, i, CCI_EVENT_RECV);
			CU_ASSERT_PTR_NOT_NULL_FATAL(ev);
			CU_ASSERT_PTR_EQUAL(ev->recv.connection, conn[i][0]);
			CU_ASSERT_EQUAL(memcmp(ev->recv.ptr, &k, sizeof(k)), 0);
			util_return(ev);
		}
	}
	util_pair_close(&p);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

static void
what_is_no_device_is_refused(void)
{
	struct cci_device fake = {.name = "fake", .transport = "shm", .up = 1};
	cci_endpoint_t *ep = NULL;

	CU_ASSERT_EQUAL_FATAL(init_with("[one]\ntransport = shm\n"), CCI_SUCCESS);
	CU_ASSERT_NOT_EQUAL(cci_create_endpoint(&fake, 0, &ep, NULL), CCI_SUCCESS);
	CU_ASSERT_PTR_NULL(ep);
	CU_ASSERT_EQUAL(cci_finalize(), CCI_SUCCESS);
}

const struct api_test cci_dev_tests[] = {
	T(devices_are_found_without_a_file),
	T(a_device_is_listed_only_where_it_is_there),
	T(a_device_of_the_file_that_is_not_there_is_down),
	T(asking_again_gives_the_same_devices),
	T(devices_come_by_falling_priority),
	T(no_device_means_the_default_one),
	T(other_keys_are_passed_on_in_their_order),
	T(devices_of_unknown_transports_are_left_out),
	T(an_empty_file_has_no_devices),
	T(a_file_that_cannot_be_read_is_an_error),
	T(an_error_in_the_file_names_its_line),
	T(editors_marks_and_long_comments_are_no_errors),
	T(a_device_has_a_longest_message_of_its_own),
	T(long_lines_and_many_keys_are_whole_or_refused),
	T(an_endpoint_can_be_made_on_each_device),
	T(a_long_message_is_read_from_the_buffer_that_is_left_alone),
	T(endpoints_of_two_devices_meet),
	T_NEEDS(a_group_has_members_on_two_devices, lacks_groups),
	T(what_is_no_device_is_refused),
	{NULL, NULL, NULL, NULL},
};
