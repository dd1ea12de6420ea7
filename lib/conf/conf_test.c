/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_test.c - every setting can be read, set, refused and written
 */
#include "plx_conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CUnit/Basic.h>
#include <jansson.h>

#include "plx_log.h"

static struct plx_conf conf;
static char err[PLX_CONF_ERR_MAX];
static char path[64];

static int
set(const char *name, const char *text)
{
	*err = '\0';
	return plx_conf_set(&conf, name, text, PLX_CONF_FROM_API, err);
}

static uint64_t
u64(const char *name)
{
	return plx_conf_u64(&conf, plx_conf_find(name));
}

static uint64_t
def(const char *name)
{
	struct plx_conf c;

	plx_conf_defaults(&c);
	return plx_conf_u64(&c, plx_conf_find(name));
}

static int
load_bytes(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_FATAL(f != NULL);
	CU_ASSERT_EQUAL(fwrite(text, 1, len, f), len);
	fclose(f);
	return plx_conf_load_file(&conf, path, err, sizeof(err));
}

static int
load(const char *text)
{
	*err = '\0';
	return load_bytes(text, strlen(text));
}

static void
names_are_unique_in_both_forms(void)
{
	for (unsigned int i = 0; i < PLX_CONF_N; i++) {
		const char *name = plx_conf_row(i)->name;

		CU_ASSERT_FATAL(name != NULL);
		CU_ASSERT(strlen(name) < PLX_CONF_NAME_MAX);
		CU_ASSERT_PTR_NOT_NULL(strchr(name, '.'));
		CU_ASSERT_EQUAL(plx_conf_find(name), (int)i);
	}
	CU_ASSERT_EQUAL(plx_conf_find("SHM_CMA"), PLX_CONF_SHM_CMA);
	CU_ASSERT_EQUAL(plx_conf_find("shm_cma"), PLX_CONF_SHM_CMA);
	CU_ASSERT_EQUAL(plx_conf_find("REACTOR"), PLX_CONF_REACTOR);
	CU_ASSERT_EQUAL(plx_conf_find("shm"), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_find(""), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_find("shm.cma.x"), -ENOENT);
}

static void
every_default_is_in_its_own_range(void)
{
	struct plx_conf other;
	char text[PLX_CONF_STR_MAX];

	for (unsigned int i = 0; i < PLX_CONF_N; i++) {
		const struct plx_conf_row *row = plx_conf_row(i);

		CU_ASSERT_EQUAL(set(row->name, row->def), 0);
		plx_conf_format(&conf, i, text, sizeof(text));
		plx_conf_defaults(&other);
		CU_ASSERT_EQUAL(plx_conf_set(&other, row->name, text, PLX_CONF_FROM_API, NULL), 0);
		CU_ASSERT_EQUAL(other.v[i].u, conf.v[i].u);
		CU_ASSERT_STRING_EQUAL(other.v[i].s, conf.v[i].s);
	}
}

/* The control thread changes numbers only: those are read atomically. */
static void
no_text_setting_may_change_at_runtime(void)
{
	for (unsigned int i = 0; i < PLX_CONF_N; i++)
		CU_ASSERT(plx_conf_row(i)->type != PLX_CONF_STR || !plx_conf_row(i)->runtime);
}

static void
numbers_take_suffixes(void)
{
	CU_ASSERT_EQUAL(set("proto.eager_max", "64K"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 65536);
	CU_ASSERT_EQUAL(set("rndv.frag_max", "1g"), 0);
	CU_ASSERT_EQUAL(u64("rndv.frag_max"), 1u << 30);
	CU_ASSERT_EQUAL(set("proto.eager_max", "007"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 7);
}

static void
bad_numbers_are_refused_and_change_nothing(void)
{
	static const char *const bad[] = {"", " 1", "1 ", "-1", "+1", "0x10", "1e3", "1.5", "nan",
		"NaN", "inf", "k", "1kk", "1kb", "12 k", "64k\n"};
	static const char *const big[] = {"18446744073709551616", "99999999999999999999999",
		"17179869184g", "18446744073709551615k", "1073741825", "2g"};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(set("proto.eager_max", bad[i]), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, "proto.eager_max"));
	}
	for (unsigned int i = 0; i < sizeof(big) / sizeof(big[0]); i++)
		CU_ASSERT_EQUAL(set("proto.eager_max", big[i]), -ERANGE);
	CU_ASSERT_EQUAL(set("worker.peer_check_ms", "0"), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "1..60000 ms"));
	CU_ASSERT_EQUAL(u64("proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_EAGER_MAX].source, PLX_CONF_FROM_DEFAULT);
}

static void
a_choice_is_one_of_its_list(void)
{
	CU_ASSERT_EQUAL(set("shm.cma", "NO"), 0);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_NO);
	CU_ASSERT_EQUAL(set("shm.cma", "n"), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "auto no"));
	CU_ASSERT_EQUAL(set("shm.cma", ""), -EINVAL);
	CU_ASSERT_EQUAL(set("no.such", "1"), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "no.such"));
}

static void
text_is_bounded_printable_utf8(void)
{
	char text[PLX_CONF_STR_MAX + 1];

	memset(text, 'x', sizeof(text));
	text[PLX_CONF_STR_MAX] = '\0';
	CU_ASSERT_EQUAL(set("rpc.socket", text), -ENAMETOOLONG);
	text[PLX_CONF_STR_MAX - 1] = '\0';
	CU_ASSERT_EQUAL(set("rpc.socket", text), 0);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_RPC_SOCKET), text);
	CU_ASSERT_EQUAL(set("rpc.socket", "a\nb"), -EINVAL);
	CU_ASSERT_EQUAL(set("rpc.socket", "\xff"), -EINVAL);
	CU_ASSERT_EQUAL(set("rpc.socket", "/tmp/\xc3\xa9"), 0);
	CU_ASSERT_EQUAL(set("rpc.socket", ""), 0);
}

static void
a_lower_source_is_checked_and_then_ignored(void)
{
	CU_ASSERT_EQUAL(set("shm.cma", "no"), 0);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "shm.cma", "auto", PLX_CONF_FROM_ENV, NULL), 0);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "shm.cma", "x", PLX_CONF_FROM_ENV, NULL), -EINVAL);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_NO);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "shm.cma", "auto", PLX_CONF_FROM_RPC, NULL), 0);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_AUTO);
}

static void
bytes_are_written_with_the_suffix_that_loses_nothing(void)
{
	char text[8];

	set("proto.eager_max", "32768");
	CU_ASSERT_EQUAL(plx_conf_format(&conf, PLX_CONF_EAGER_MAX, text, sizeof(text)), 3);
	CU_ASSERT_STRING_EQUAL(text, "32k");
	set("proto.eager_max", "1025");
	plx_conf_format(&conf, PLX_CONF_EAGER_MAX, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "1025");
	set("proto.eager_max", "0");
	plx_conf_format(&conf, PLX_CONF_EAGER_MAX, text, 1);
	CU_ASSERT_STRING_EQUAL(text, "");
	CU_ASSERT_EQUAL(plx_conf_format(&conf, PLX_CONF_EAGER_MAX, NULL, 0), 1);
}

static void
a_file_sets_what_it_names(void)
{
	CU_ASSERT_EQUAL(load("{\"shm\": {\"cma\": \"no\", \"fast_peers\": 8},\n"
			     " \"proto\": {\"eager_max\": \"4k\"}, \"rndv\": {}}\n"),
		0);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_NO);
	CU_ASSERT_EQUAL(u64("shm.fast_peers"), 8);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 4096);
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_SHM_CMA].source, PLX_CONF_FROM_FILE);
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_SHM_HUGE].source, PLX_CONF_FROM_DEFAULT);
	CU_ASSERT_EQUAL(load("{}"), 0);
}

static void
a_wrong_file_changes_nothing_and_says_why(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "line 1"},
		{"{\n\"shm\": {\"fast_peers\": 1,\n}}", "line 3"},
		{"[]", "not an object"},
		{"7", "line 1"},
		{"{\"shm\": 3}", "\"shm\""},
		{"{\"shm\": {\"fast_peers\": 1, \"nope\": 1}}", "shm.nope"},
		{"{\"SHM\": {\"CMA\": \"no\"}}", "SHM.CMA"},
		{"{\"shm\": {\"fast_peers\": 1, \"fast_peers\": 1}}", "duplicate"},
		{"{\"shm\": {\"fast_peers\": 1, \"cma\": false}}", "shm.cma"},
		{"{\"shm\": {\"fast_peers\": 1, \"cma\": 1}}", "shm.cma"},
		{"{\"shm\": {\"fast_peers\": 1, \"huge\": null}}", "shm.huge"},
		{"{\"shm\": {\"fast_peers\": -1}}", "shm.fast_peers"},
		{"{\"shm\": {\"fast_peers\": 1.0}}", "shm.fast_peers"},
		{"{\"shm\": {\"fast_peers\": true}}", "shm.fast_peers"},
		{"{\"shm\": {\"fast_peers\": [1]}}", "shm.fast_peers"},
		{"{\"shm\": {\"fast_peers\": 1}} x", "line 1"},
		{"{\"shm\": {\"fast_peers\": NaN}}", "line 1"},
		{"{\"shm\": {\"fast_peers\": 99999999999999999999}}", "line 1"},
		{"{\"rpc\": {\"socket\": \"a\\u0000b\"}}", "line 1"},
		{"{\"rpc\": {\"socket\": \"\xff\"}}", "line 1"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(load(bad[i].text), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].why));
		CU_ASSERT_EQUAL(u64("shm.fast_peers"), def("shm.fast_peers"));
	}
}

static void
deep_and_huge_files_are_refused(void)
{
	size_t len = 10u << 20;
	char *text = malloc(len);

	CU_ASSERT_FATAL(text != NULL);
	memset(text, '[', len);
	CU_ASSERT_EQUAL(load_bytes(text, len), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "1 MiB"));
	CU_ASSERT_EQUAL(load_bytes(text, 1u << 20), -EINVAL);
	for (size_t i = 0; i + 5 <= len; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	CU_ASSERT_EQUAL(load_bytes(text, 1000000), -EINVAL);
	memset(text, '\0', 4096);
	CU_ASSERT_EQUAL(load_bytes(text, 4096), -EINVAL);
	free(text);
}

static void
what_is_no_regular_file_is_refused(void)
{
	CU_ASSERT_EQUAL(plx_conf_load_file(&conf, "/no/such/file", err, sizeof(err)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "/no/such/file: No such file"));
	CU_ASSERT_EQUAL(plx_conf_load_file(&conf, "/tmp", err, sizeof(err)), -EINVAL);
	CU_ASSERT_EQUAL(plx_conf_load_file(&conf, "/dev/zero", NULL, 0), -EINVAL);
	unlink(path);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(plx_conf_load_file(&conf, path, err, sizeof(err)), -EINVAL);
	unlink(path);
}

static void
json_at_runtime_changes_only_runtime_settings(void)
{
	json_t *root = json_pack("{s{s:s}s{s:i}}", "rndv", "scheme", "get", "shm", "fast_peers", 8);

	CU_ASSERT_EQUAL(plx_conf_load_json(&conf, root, PLX_CONF_FROM_RPC, true, err), -EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "shm.fast_peers"));
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_AUTO);
	json_object_set_new(json_object_get(root, "shm"), "fast_peers",
		json_integer((json_int_t)def("shm.fast_peers")));
	CU_ASSERT_EQUAL(plx_conf_load_json(&conf, root, PLX_CONF_FROM_RPC, true, err), 0);
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_GET);
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_RNDV_SCHEME].source, PLX_CONF_FROM_RPC);
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_SHM_FAST_PEERS].source, PLX_CONF_FROM_DEFAULT);
	json_decref(root);
}

static void
the_environment_wins_over_the_file_it_names(void)
{
	CU_ASSERT_EQUAL(load("{\"shm\": {\"cma\": \"no\", \"fast_peers\": 8}}"), 0);
	plx_conf_defaults(&conf);
	setenv("PLX_CONFIG", path, 1);
	setenv("PLX_SHM_FAST_PEERS", "9", 1);
	setenv("PLX_REACTOR", "lcore:1", 1);
	setenv("PLX_PROTO_EAGER_MAX", "-1", 1);
	setenv("PLX_NO_SUCH", "1", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), 0);
	CU_ASSERT_EQUAL(u64("shm.fast_peers"), 9);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_NO);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_REACTOR), "lcore:1");
	setenv("PLX_CONFIG", "/no/such/file", 1);
	plx_conf_defaults(&conf);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), -ENOENT);
	CU_ASSERT_EQUAL(u64("shm.fast_peers"), 9);
	CU_ASSERT_EQUAL(u64("shm.cma"), PLX_CMA_AUTO);
}

static void
ucx_names_are_mapped_and_ours_win(void)
{
	setenv("UCX_RNDV_THRESH", "8k", 1);
	setenv("UCX_RNDV_SCHEME", "get_zcopy", 1);
	setenv("UCX_LOG_LEVEL", "WARN", 1);
	setenv("UCX_TLS", "tcp", 1);
	setenv("UCX_NET_DEVICES", "mlx5_0:1", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 8191);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_NET_MLX_DEVICE), "mlx5_0:1");
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_GET);
	CU_ASSERT_EQUAL(plx_conf_log_level(&conf), RTE_LOG_WARNING);
	setenv("MPI_UCX_RNDV_THRESH", "inf", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, "MPI"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 64u << 20);
	setenv("PLX_PROTO_EAGER_MAX", "5", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, "MPI"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 5);
}

static void
ucx_values_without_a_counterpart_leave_ours(void)
{
	static const struct {
		const char *name, *text;
		int rc;
	} rows[] = {
		{"RNDV_THRESH", "auto", 0},
		{"RNDV_THRESH", "intra:8k,inter:16k", -EINVAL},
		{"RNDV_THRESH", "-1", -EINVAL},
		{"RNDV_SCHEME", "teleport", -EINVAL},
		{"LOG_LEVEL", "", -EINVAL},
		{"NET_DEVICES", "all", 0},
		{"NET_DEVICES", "eth0,ib0", -EINVAL},
		{"NET_DEVICES", "^mlx5_0:1,mlx5_1:1", -EINVAL},
		{"NET_DEVICES", "", -EINVAL},
		{"TLS", "", 0},
		{"TLS", "^sm,,shm", 0},
		{"TLS", ",,,", 0},
		{"NO_SUCH", "1", -ENOENT},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT_EQUAL(
			plx_conf_set_ucx(&conf, rows[i].name, rows[i].text, PLX_CONF_FROM_API, err),
			rows[i].rc);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_NET_MLX_DEVICE), "");
	CU_ASSERT_EQUAL(plx_conf_set_ucx(&conf, "NET_DEVICES", "eth0,mlx5_0:1,,mlx5_3:2",
				PLX_CONF_FROM_API, err),
		0);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_NET_MLX_DEVICE), "mlx5_0:1,mlx5_3:2");
	CU_ASSERT_EQUAL(plx_conf_set_ucx(&conf, "rndv_thresh", "0", PLX_CONF_FROM_API, err), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 0);
	CU_ASSERT_EQUAL(plx_conf_set_ucx(&conf, "RNDV_THRESH", "99999999999999999999",
				PLX_CONF_FROM_API, err),
		0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 64u << 20);
}

static void
print_writes_every_setting_as_a_variable(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	set("shm.cma", "no");
	plx_conf_print(
		&conf, f, NULL, PLX_CONF_PRINT_VALUES | PLX_CONF_PRINT_HEADER | PLX_CONF_PRINT_DOC);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nPLX_SHM_CMA=no\n"));
	for (unsigned int i = 0; i < PLX_CONF_N; i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text, plx_conf_row(i)->help));
	free(text);
}

static void
the_process_set_is_loaded_once_and_sets_the_log_level(void)
{
	setenv("PLX_LOG_LEVEL", "critical", 1);
	CU_ASSERT_EQUAL(plx_conf_u64(plx_conf_process(), PLX_CONF_LOG_LEVEL), 2);
	CU_ASSERT_EQUAL(plx_log_get_level(), RTE_LOG_CRIT);
	setenv("PLX_LOG_LEVEL", "error", 1);
	CU_ASSERT_EQUAL(plx_conf_u64(plx_conf_process(), PLX_CONF_LOG_LEVEL), 2);
	plx_log_set_level(RTE_LOG_EMERG);
}

/* Whatever the caller's environment says must not reach the tests. */
static void
setup(void)
{
	static const char *const names[] = {"PLX_CONFIG", "PLX_LOG_LEVEL", "PLX_NO_SUCH",
		"UCX_RNDV_THRESH", "UCX_RNDV_SCHEME", "UCX_LOG_LEVEL", "UCX_TLS", "UCX_NET_DEVICES",
		"MPI_UCX_RNDV_THRESH", "PLX_REACTOR", "PLX_SHM_FAST_PEERS", "PLX_PROTO_EAGER_MAX",
		"PLX_SHM_CMA"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	plx_conf_defaults(&conf);
}

static CU_TestInfo tests[] = {
	{"names_are_unique_in_both_forms", names_are_unique_in_both_forms},
	{"every_default_is_in_its_own_range", every_default_is_in_its_own_range},
	{"no_text_setting_may_change_at_runtime", no_text_setting_may_change_at_runtime},
	{"numbers_take_suffixes", numbers_take_suffixes},
	{"bad_numbers_are_refused_and_change_nothing", bad_numbers_are_refused_and_change_nothing},
	{"a_choice_is_one_of_its_list", a_choice_is_one_of_its_list},
	{"text_is_bounded_printable_utf8", text_is_bounded_printable_utf8},
	{"a_lower_source_is_checked_and_then_ignored", a_lower_source_is_checked_and_then_ignored},
	{"bytes_are_written_with_the_suffix_that_loses_nothing",
		bytes_are_written_with_the_suffix_that_loses_nothing},
	{"a_file_sets_what_it_names", a_file_sets_what_it_names},
	{"a_wrong_file_changes_nothing_and_says_why", a_wrong_file_changes_nothing_and_says_why},
	{"deep_and_huge_files_are_refused", deep_and_huge_files_are_refused},
	{"what_is_no_regular_file_is_refused", what_is_no_regular_file_is_refused},
	{"json_at_runtime_changes_only_runtime_settings",
		json_at_runtime_changes_only_runtime_settings},
	{"the_environment_wins_over_the_file_it_names",
		the_environment_wins_over_the_file_it_names},
	{"ucx_names_are_mapped_and_ours_win", ucx_names_are_mapped_and_ours_win},
	{"ucx_values_without_a_counterpart_leave_ours",
		ucx_values_without_a_counterpart_leave_ours},
	{"print_writes_every_setting_as_a_variable", print_writes_every_setting_as_a_variable},
	{"the_process_set_is_loaded_once_and_sets_the_log_level",
		the_process_set_is_loaded_once_and_sets_the_log_level},
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"conf", NULL, NULL, setup, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	unsigned int failures;

	plx_log_set_level(RTE_LOG_EMERG);
	snprintf(path, sizeof(path), "/tmp/plx_conf_test.%d", getpid());
	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 1;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	unlink(path);
	return failures > 0;
}
