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

/* What a driver adds. */
enum { DRV_CMA, DRV_HUGE, DRV_FAST_PEERS, DRV_DEVICE, DRV_PROBE_MS, DRV_N };

static const char *const auto_no[] = {"auto", "no", NULL};

static const struct plx_conf_row drv_rows[DRV_N] = {
	PLX_ROW_ENUM(DRV_CMA, "drv.cma", "auto", auto_no, false, "Way.", PLX_CONF_ROLE_READS),
	PLX_ROW_ENUM(DRV_HUGE, "drv.huge", "auto", auto_no, false, "Pages."),
	PLX_ROW_UINT(DRV_FAST_PEERS, "drv.fast_peers", "peers", "32", 0, 64, false, "Peers."),
	PLX_ROW_STR(DRV_DEVICE, "drv.device", "", false, "Ports.", PLX_CONF_ROLE_PORT_NAMES),
	PLX_ROW_UINT(DRV_PROBE_MS, "drv.probe_ms", "ms", "1000", 10, 600000, false, "Silence.", PLX_CONF_ROLE_PROBE_MS),
};

static struct plx_conf_rows drv_settings = {.rows = drv_rows, .n = DRV_N};

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
	for (unsigned int i = 0; i < plx_conf_n(); i++) {
		const char *name = plx_conf_row(i)->name;

		CU_ASSERT_FATAL(name != NULL);
		CU_ASSERT(strlen(name) < PLX_CONF_NAME_MAX);
		CU_ASSERT_PTR_NOT_NULL(strchr(name, '.'));
		CU_ASSERT_EQUAL(plx_conf_find(name), (int)i);
	}
	CU_ASSERT_EQUAL(plx_conf_find("DRV_CMA"), plx_conf_find("drv.cma"));
	CU_ASSERT_EQUAL(plx_conf_find("drv_cma"), plx_conf_find("drv.cma"));
	CU_ASSERT_EQUAL(plx_conf_find("REACTOR"), PLX_CONF_REACTOR);
	CU_ASSERT_EQUAL(plx_conf_find("worker.nap_us"), PLX_CONF_WORKER_SLEEP_US);
	CU_ASSERT_EQUAL(plx_conf_find("WORKER_NAP_US"), PLX_CONF_WORKER_SLEEP_US);
	CU_ASSERT_EQUAL(plx_conf_find("drv"), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_find(""), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_find("drv.cma.x"), -ENOENT);
}

static void
a_driver_adds_its_settings_before_there_are_sets(void)
{
	static struct plx_conf_rows late = {.rows = drv_rows, .n = DRV_N};

	CU_ASSERT_EQUAL(drv_settings.first, PLX_CONF_N);
	CU_ASSERT_EQUAL(plx_conf_find("drv.cma"), (int)drv_settings.first + DRV_CMA);
	CU_ASSERT_EQUAL(u64("drv.fast_peers"), 32);
	CU_ASSERT_EQUAL(plx_conf_add(&drv_settings), 0);
	CU_ASSERT_EQUAL(plx_conf_add(&late), -EBUSY);
	CU_ASSERT_EQUAL(plx_conf_set_devices("a,b"), 0);
	CU_ASSERT_EQUAL(plx_conf_set_devices("a"), -EBUSY);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_DEVICES), "a,b");
}

static void
a_setting_is_known_by_its_role(void)
{
	CU_ASSERT_EQUAL(plx_conf_find_role(PLX_CONF_ROLE_READS, 0), plx_conf_find("drv.cma"));
	CU_ASSERT_EQUAL(plx_conf_find_role(PLX_CONF_ROLE_READS, plx_conf_find("drv.cma") + 1), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_find_role(PLX_CONF_ROLE_PORTS, 0), -ENOENT);
	CU_ASSERT_EQUAL(plx_conf_set_role(&conf, PLX_CONF_ROLE_PORT_NAMES, "x:1", PLX_CONF_FROM_API), 0);
	CU_ASSERT_STRING_EQUAL(plx_conf_role_str(&conf, PLX_CONF_ROLE_PORT_NAMES, "none"), "x:1");
	CU_ASSERT_STRING_EQUAL(plx_conf_role_str(&conf, PLX_CONF_ROLE_MEET_DIR, "none"), "none");
}

static void
every_default_is_in_its_own_range(void)
{
	struct plx_conf other;
	char text[PLX_CONF_STR_MAX];

	for (unsigned int i = 0; i < plx_conf_n(); i++) {
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
	for (unsigned int i = 0; i < plx_conf_n(); i++)
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
	CU_ASSERT_EQUAL(set("drv.cma", "NO"), 0);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_NO);
	CU_ASSERT_EQUAL(set("drv.cma", "n"), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "auto no"));
	CU_ASSERT_EQUAL(set("drv.cma", ""), -EINVAL);
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
	CU_ASSERT_EQUAL(set("drv.cma", "no"), 0);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "drv.cma", "auto", PLX_CONF_FROM_ENV, NULL), 0);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "drv.cma", "x", PLX_CONF_FROM_ENV, NULL), -EINVAL);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_NO);
	CU_ASSERT_EQUAL(plx_conf_set(&conf, "drv.cma", "auto", PLX_CONF_FROM_RPC, NULL), 0);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_AUTO);
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
	CU_ASSERT_EQUAL(load("{\"drv\": {\"cma\": \"no\", \"fast_peers\": 8},\n"
			     " \"proto\": {\"eager_max\": \"4k\"}, \"rndv\": {}}\n"),
		0);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_NO);
	CU_ASSERT_EQUAL(u64("drv.fast_peers"), 8);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 4096);
	CU_ASSERT_EQUAL(conf.v[plx_conf_find("DRV_CMA")].source, PLX_CONF_FROM_FILE);
	CU_ASSERT_EQUAL(conf.v[plx_conf_find("DRV_HUGE")].source, PLX_CONF_FROM_DEFAULT);
	CU_ASSERT_EQUAL(load("{}"), 0);
}

static void
a_wrong_file_changes_nothing_and_says_why(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "line 1"},
		{"{\n\"drv\": {\"fast_peers\": 1,\n}}", "line 3"},
		{"[]", "not an object"},
		{"7", "line 1"},
		{"{\"drv\": 3}", "\"drv\""},
		{"{\"drv\": {\"fast_peers\": 1, \"nope\": 1}}", "drv.nope"},
		{"{\"DRV\": {\"CMA\": \"no\"}}", "DRV.CMA"},
		{"{\"drv\": {\"fast_peers\": 1, \"fast_peers\": 1}}", "duplicate"},
		{"{\"drv\": {\"fast_peers\": 1, \"cma\": false}}", "drv.cma"},
		{"{\"drv\": {\"fast_peers\": 1, \"cma\": 1}}", "drv.cma"},
		{"{\"drv\": {\"fast_peers\": 1, \"huge\": null}}", "drv.huge"},
		{"{\"drv\": {\"fast_peers\": -1}}", "drv.fast_peers"},
		{"{\"drv\": {\"fast_peers\": 1.0}}", "drv.fast_peers"},
		{"{\"drv\": {\"fast_peers\": true}}", "drv.fast_peers"},
		{"{\"drv\": {\"fast_peers\": [1]}}", "drv.fast_peers"},
		{"{\"drv\": {\"fast_peers\": 1}} x", "line 1"},
		{"{\"drv\": {\"fast_peers\": NaN}}", "line 1"},
		{"{\"drv\": {\"fast_peers\": 99999999999999999999}}", "line 1"},
		{"{\"rpc\": {\"socket\": \"a\\u0000b\"}}", "line 1"},
		{"{\"rpc\": {\"socket\": \"\xff\"}}", "line 1"},
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(load(bad[i].text), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].why));
		CU_ASSERT_EQUAL(u64("drv.fast_peers"), def("drv.fast_peers"));
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
a_former_word_of_a_choice_means_the_present_one(void)
{
	CU_ASSERT_EQUAL(load("{\"reactor\": {\"idle\": \"lend\"}, \"worker\": {\"nap_us\": 7}}"), 0);
	CU_ASSERT_EQUAL(u64("reactor.idle"), PLX_IDLE_GRANT);
	CU_ASSERT_EQUAL(u64("worker.sleep_us"), 7);
	plx_conf_defaults(&conf);
	CU_ASSERT_EQUAL(load("{\"rndv\": {\"scheme\": \"lend\"}}"), -EINVAL);
}

static void
json_at_runtime_changes_only_runtime_settings(void)
{
	json_t *root = json_pack("{s{s:s}s{s:i}}", "rndv", "scheme", "get", "drv", "fast_peers", 8);

	CU_ASSERT_EQUAL(plx_conf_load_json(&conf, root, PLX_CONF_FROM_RPC, true, err), -EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "drv.fast_peers"));
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_AUTO);
	json_object_set_new(json_object_get(root, "drv"), "fast_peers",
		json_integer((json_int_t)def("drv.fast_peers")));
	CU_ASSERT_EQUAL(plx_conf_load_json(&conf, root, PLX_CONF_FROM_RPC, true, err), 0);
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_GET);
	CU_ASSERT_EQUAL(conf.v[PLX_CONF_RNDV_SCHEME].source, PLX_CONF_FROM_RPC);
	CU_ASSERT_EQUAL(conf.v[plx_conf_find("DRV_FAST_PEERS")].source, PLX_CONF_FROM_DEFAULT);
	json_decref(root);
}

static void
the_environment_wins_over_the_file_it_names(void)
{
	CU_ASSERT_EQUAL(load("{\"drv\": {\"cma\": \"no\", \"fast_peers\": 8}}"), 0);
	plx_conf_defaults(&conf);
	setenv("PLX_CONFIG", path, 1);
	setenv("PLX_DRV_FAST_PEERS", "9", 1);
	setenv("PLX_REACTOR", "lcore:1", 1);
	setenv("PLX_PROTO_EAGER_MAX", "-1", 1);
	setenv("PLX_NO_SUCH", "1", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), 0);
	CU_ASSERT_EQUAL(u64("drv.fast_peers"), 9);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_NO);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_REACTOR), "lcore:1");
	setenv("PLX_CONFIG", "/no/such/file", 1);
	plx_conf_defaults(&conf);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), -ENOENT);
	CU_ASSERT_EQUAL(u64("drv.fast_peers"), 9);
	CU_ASSERT_EQUAL(u64("drv.cma"), PLX_CONF_AUTO);
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
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, plx_conf_find("DRV_DEVICE")), "mlx5_0:1");
	CU_ASSERT_EQUAL(u64("rndv.scheme"), PLX_RNDV_GET);
	CU_ASSERT_EQUAL(plx_conf_log_level(&conf), RTE_LOG_WARNING);
	setenv("MPI_UCX_RNDV_THRESH", "inf", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, "MPI"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 64u << 20);
	setenv("PLX_PROTO_EAGER_MAX", "5", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, "MPI"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 5);
}

static int
ucx(const char *name, const char *text)
{
	return plx_conf_set_ucx(&conf, name, text, PLX_CONF_FROM_API, err);
}

/* What is kept of a name of UCX. */
static const char *
ucx_value(const char *name)
{
	static char value[1024];

	if (plx_conf_format_ucx(&conf, name, value, sizeof(value)) < 0)
		return "?";
	return value;
}

static void
ucx_values_without_a_counterpart_leave_ours(void)
{
	static const struct {
		const char *name, *text;
		int rc;
	} rows[] = {
		{"RNDV_THRESH", "auto", 0},
		{"RNDV_THRESH", "inter:16k", -EINVAL},
		{"RNDV_THRESH", "8x", -EINVAL},
		{"RNDV_SCHEME", "teleport", -EINVAL},
		{"LOG_LEVEL", "", -EINVAL},
		{"LOG_LEVEL", "warning", -EINVAL},
		{"NET_DEVICES", "all", 0},
		{"NET_DEVICES", "eth0,ib0", 0},
		{"NET_DEVICES", "^mlx5_0:1,mlx5_1:1", 0},
		{"NET_DEVICES", "", 0},
		{"TLS", "", 0},
		{"TLS", "^sm,,shm", 0},
		{"TLS", ",,,", 0},
		{"TLS", "all,sm", -EINVAL},
		{"KEEPALIVE_INTERVAL", "inf", 0},
		{"NO_SUCH", "1", -ENOENT},
		{"tls", "all", -ENOENT},
		{"IB_SEG_SIZE", "what it likes", 0},
		{"RC_NO_SUCH", "1", -ENOENT},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT_EQUAL(ucx(rows[i].name, rows[i].text), rows[i].rc);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_EQUAL(u64("drv.probe_ms"), def("drv.probe_ms"));
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, plx_conf_find("DRV_DEVICE")), "");
}

static void
ucx_values_are_followed(void)
{
	CU_ASSERT_EQUAL(ucx("NET_DEVICES", "eth0,mlx5_0:1,,mlx5_[3-4]:2"), 0);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, plx_conf_find("DRV_DEVICE")),
		"mlx5_0:1,mlx5_3:2,mlx5_4:2");
	CU_ASSERT_STRING_EQUAL(ucx_value("NET_DEVICES"), "eth0,mlx5_0:1,mlx5_3:2,mlx5_4:2");
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "0"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 0);
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "16k"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 16383);
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "intra:8k,inter:64k"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 8191);
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "intra:auto,inter:64k"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 65535);
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "-1"), 0); /* as UCX reads it */
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 64u << 20);
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "99999999999999999999"), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 64u << 20);
	CU_ASSERT_EQUAL(ucx("KEEPALIVE_INTERVAL", "250ms"), 0);
	CU_ASSERT_EQUAL(u64("drv.probe_ms"), 250);
	CU_ASSERT_EQUAL(ucx("LOG_LEVEL", "data"), 0);
	CU_ASSERT_EQUAL(plx_conf_log_level(&conf), RTE_LOG_DEBUG);
}

static void
ucx_values_are_kept_as_ucx_prints_them(void)
{
	static const struct {
		const char *name, *text, *kept; /* NULL: refused */
	} rows[] = {
		{"ADAPTIVE_PROGRESS", "Yes", "y"},
		{"ADAPTIVE_PROGRESS", "0", "n"},
		{"ADAPTIVE_PROGRESS", "true", NULL},
		{"TM_SW_RNDV", "maybe", "try"},
		{"GVA_ENABLE", "y", "on"},
		{"GVA_ENABLE", "2", NULL},
		{"MAX_EAGER_LANES", "3", "3"},
		{"MAX_RNDV_RAILS", "INF", "inf"},
		{"MAX_RNDV_RAILS", "-1", "inf"},
		{"MAX_RNDV_RAILS", "4x", "4"},
		{"MAX_RNDV_RAILS", "x", NULL},
		{"RKEY_MPOOL_MAX_MD", "-3", "-3"},
		{"NUM_EPS", "auto", "auto"},
		{"NUM_EPS", "many", NULL},
		{"RNDV_PERF_DIFF", "1.5", "1.500"},
		{"RNDV_PERF_DIFF", "", NULL},
		{"MULTI_PATH_RATIO", "0", NULL},
		{"MULTI_PATH_RATIO", "auto", "auto"},
		{"ZCOPY_THRESH", "16384", "16K"},
		{"ZCOPY_THRESH", "1MB", "1M"},
		{"ZCOPY_THRESH", "3g", "3G"},
		{"ZCOPY_THRESH", "inf", "inf"},
		{"ZCOPY_THRESH", "-2", "auto"},
		{"ZCOPY_THRESH", "1kx", NULL},
		{"ZCOPY_THRESH", "", NULL},
		{"KEEPALIVE_INTERVAL", "20s", "20000000.00us"},
		{"KEEPALIVE_INTERVAL", "1.5m", "90000000.00us"},
		{"KEEPALIVE_INTERVAL", "7ns", "0.01us"},
		{"KEEPALIVE_INTERVAL", "inf", "inf"},
		{"KEEPALIVE_INTERVAL", "5h", NULL},
		{"BCOPY_BW", "1GBps", "1024.00MBps"},
		{"BCOPY_BW", "80b/s", "10.00Bps"},
		{"BCOPY_BW", "auto", "auto"},
		{"BCOPY_BW", "1", NULL},
		{"BCOPY_BW", "1gBps", NULL},
		{"BCOPY_BW", "1e8GBps", "95.37PBps"},
		{"BCOPY_BW", "95.37PBps", "95.37PBps"},
		{"BCOPY_BW", "70000PBps", "68.36EBps"},
		{"BCOPY_BW", "1e40GBps", "9313225746154785439172786126848.00EBps"},
		{"ZCOPY_THRESH", "1024t", "1P"},
		{"ZCOPY_THRESH", "1P", "1P"},
		{"ZCOPY_THRESH", "16777216T", NULL},
		{"RNDV_SCHEME", "GET_ZCOPY", "get_zcopy"},
		{"MEMTYPE_REG_WHOLE_ALLOC_TYPES", "ROCM,cuda", "cuda,rocm"},
		{"MEMTYPE_REG_WHOLE_ALLOC_TYPES", "", ""},
		{"MEMTYPE_REG_WHOLE_ALLOC_TYPES", "tape", NULL},
		{"DEBUG_SIGNO", "SIGUSR1", "USR1"},
		{"DEBUG_SIGNO", "10", "USR1"},
		{"DEBUG_SIGNO", "SIGWHAT", NULL},
		{"ERROR_SIGNALS", "SIGBUS,FPE", "BUS,FPE"},
		{"ALLOC_PRIO", "mmap,,heap", "mmap,heap"},
		{"RX_MPOOL_SIZES", "64,1024", "64,1K"},
		{"RX_MPOOL_SIZES", "64,x", NULL},
		{"PLUGIN_PATH", "/a::/b", "/a:/b"},
		{"TLS", "^sm,tcp", "^sm,tcp"},
		{"TLS", "^all", "all"},
		{"PROTO_OVERHEAD", "1us", "single:1.00us,multi:1.00us,rndv_offload:1.00us,rndv_rtr:1.00us,"
			"rndv_rts:1.00us,sw:1.00us,rkey_ptr:1.00us"},
		{"PROTO_OVERHEAD", "1us,disk:2us", NULL},
		{"DISTANCE_BW", "phb:1KBps,auto", "phb:1024.00Bps,node:auto,sys:auto"},
		{"PROTO_INFO", "*tag*", "*tag*"},
		{"NET_DEVICES", "mlx5_[7-5]:1", "mlx5_[7-5]:1"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char before[1024];

		snprintf(before, sizeof(before), "%s", ucx_value(rows[i].name));
		CU_ASSERT_EQUAL(ucx(rows[i].name, rows[i].text), rows[i].kept != NULL ? 0 : -EINVAL);
		if (strcmp(ucx_value(rows[i].name), rows[i].kept != NULL ? rows[i].kept : before) != 0) {
			CU_FAIL("a value is not as it should be");
			printf("%s=%s is %s\n", rows[i].name, rows[i].text, ucx_value(rows[i].name));
		}
	}
}

static void
ucx_names_may_be_patterns(void)
{
	CU_ASSERT_EQUAL(ucx("MAX_*_RAILS", "3"), 0);
	CU_ASSERT_STRING_EQUAL(ucx_value("MAX_EAGER_RAILS"), "3");
	CU_ASSERT_STRING_EQUAL(ucx_value("MAX_RMA_LANES"), "3");
	CU_ASSERT_EQUAL(ucx("RC_*_FC_WND_SIZE", "3"), 0);
	CU_ASSERT_STRING_EQUAL(ucx_value("RC_*_FC_WND_SIZE"), "3");
	CU_ASSERT_EQUAL(ucx("Q*", "3"), -ENOENT);
}

static void
ucx_names_take_bounded_memory(void)
{
	char value[1100], name[80];
	int rc = 0;

	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	CU_ASSERT_EQUAL(ucx("PROTO_INFO", value), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(ucx("IB_SEG_SIZE", value), -ENAMETOOLONG);
	memset(name, 'N', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CU_ASSERT_EQUAL(ucx(name, "1"), -ENOENT);
	value[1000] = '\0';
	for (unsigned int i = 0; i < 3; i++) /* again and again in the same place */
		for (unsigned int j = 0; j < 100; j++)
			CU_ASSERT_EQUAL(ucx("PROTO_INFO", value + j), 0);
	CU_ASSERT_EQUAL(ucx("IB_SEG_SIZE", value), 0);
	CU_ASSERT_EQUAL(ucx("IB_PKEY", value), 0);
	CU_ASSERT_EQUAL(ucx("IB_SL", value), 0);
	CU_ASSERT_EQUAL(ucx("UD_SL", value), 0);
	CU_ASSERT_EQUAL(ucx("RC_SL", value), 0);
	CU_ASSERT_EQUAL(ucx("DC_SL", value), 0);
	CU_ASSERT_EQUAL(ucx("SRD_SL", value), 0);
	rc = ucx("RC_VERBS_SL", value);
	CU_ASSERT_EQUAL(rc, -ENOMEM);
	CU_ASSERT_EQUAL(ucx("TLS", "sm"), 0);
	CU_ASSERT_STRING_EQUAL(ucx_value("DC_SL"), value);
	CU_ASSERT_STRING_EQUAL(ucx_value("PROTO_INFO"), value + 99);
}

static void
a_stronger_source_keeps_its_value_of_a_ucx_name(void)
{
	CU_ASSERT_EQUAL(ucx("RNDV_THRESH", "1k"), 0);
	CU_ASSERT_EQUAL(plx_conf_set_ucx(&conf, "RNDV_THRESH", "2k", PLX_CONF_FROM_ENV, err), 0);
	CU_ASSERT_STRING_EQUAL(ucx_value("RNDV_THRESH"), "intra:1K,inter:1K");
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 1023);
}

static void
ucx_conf_is_read_where_ucx_looks_for_it(void)
{
	char dir[] = "/tmp/plx_conf_XXXXXX", path_of[64];
	FILE *f;

	CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
	snprintf(path_of, sizeof(path_of), "%s/ucx.conf", dir);
	f = fopen(path_of, "w");
	CU_ASSERT_FATAL(f != NULL);
	fputs("# a comment\r\n"
	      "UCX_TLS = posix,cma  ; another\r\n"
	      "UCX_RNDV_THRESH=4k\n"
	      "UCX_ZCOPY_THRESH=junk\n"
	      "UCX_NO_SUCH=1\nPATH=/\nno setting\n"
	      "[of a machine]\nCPU model = Model T\nUCX_TLS=tcp\n"
	      "[of all]\nUCX_MAX_RMA_RAILS=7\nMPI_UCX_MAX_RNDV_RAILS=9\n",
		f);
	fclose(f);
	setenv("UCX_CONFIG_DIR", dir, 1);
	setenv("UCX_RNDV_THRESH", "2k", 1);
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, "MPI"), 0);
	CU_ASSERT_STRING_EQUAL(ucx_value("TLS"), "posix,cma");
	CU_ASSERT_STRING_EQUAL(ucx_value("MAX_RMA_RAILS"), "7");
	CU_ASSERT_STRING_EQUAL(ucx_value("MAX_RNDV_RAILS"), "9");
	CU_ASSERT_STRING_EQUAL(ucx_value("ZCOPY_THRESH"), "auto");
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 2047);
	plx_conf_defaults(&conf);
	unsetenv("UCX_CONFIG_DIR");
	setenv("HOME", dir, 1);
	unsetenv("UCX_RNDV_THRESH");
	CU_ASSERT_EQUAL(plx_conf_load_env(&conf, NULL), 0);
	CU_ASSERT_EQUAL(u64("proto.eager_max"), 4095);
	CU_ASSERT_STRING_EQUAL(ucx_value("MAX_RNDV_RAILS"), "2");
	unlink(path_of);
	rmdir(dir);
}

static void
ucx_settings_are_printed_as_ucx_prints_them(void)
{
	char *text = NULL;
	size_t len;
	FILE *f;

	CU_ASSERT_EQUAL(ucx("TLS", "tcp"), 0);
	CU_ASSERT_EQUAL(ucx("IB_SEG_SIZE", "8k"), 0);
	f = open_memstream(&text, &len);
	CU_ASSERT_FATAL(f != NULL);
	plx_conf_print_ucx(&conf, f, PLX_CONF_PRINT_VALUES);
	fclose(f);
	CU_ASSERT_EQUAL(strncmp(text, "UCX_NET_DEVICES=all\nUCX_SHM_DEVICES=all\n", 40), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nUCX_TLS=tcp\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nUCX_RNDV_THRESH=intra:auto,inter:auto\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nIB_SEG_SIZE=8k\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "RNDV_LANES"));
	CU_ASSERT_PTR_NULL(strstr(text, "LOG_LEVEL"));
	free(text);
	f = open_memstream(&text, &len);
	plx_conf_print_ucx(&conf, f,
		PLX_CONF_PRINT_VALUES | PLX_CONF_PRINT_HIDDEN | PLX_CONF_PRINT_COMMENT_DEFAULT |
			PLX_CONF_PRINT_DOC);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n# UCX_MAX_RNDV_LANES=2\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nUCX_TLS=tcp\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "# sets: proto.eager_max\n"));
	free(text);
}

static void
print_writes_every_setting_as_a_variable(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CU_ASSERT_FATAL(f != NULL);
	set("drv.cma", "no");
	plx_conf_print(
		&conf, f, NULL, PLX_CONF_PRINT_VALUES | PLX_CONF_PRINT_HEADER | PLX_CONF_PRINT_DOC);
	fclose(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nPLX_DRV_CMA=no\n"));
	for (unsigned int i = 0; i < plx_conf_n(); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text, plx_conf_row(i)->help));
	free(text);
}

static void
a_log_file_is_named_by_a_template(void)
{
	char name[64], want[64];

	CU_ASSERT_EQUAL(plx_log_file_name("/tmp/a.%p.%%.%q", name, sizeof(name)), 0);
	snprintf(want, sizeof(want), "/tmp/a.%d.%%.%%q", getpid());
	CU_ASSERT_STRING_EQUAL(name, want);
	CU_ASSERT_EQUAL(plx_log_file_name("%e%h%u%c%t%", name, sizeof(name)), 0);
	CU_ASSERT_EQUAL(strncmp(name, "conf_test", 9), 0);
	CU_ASSERT_EQUAL(plx_log_file_name("12345678", name, 8), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(plx_log_file_name("%%%%%%%%%%%%%%%%", name, 8), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(plx_log_set_file("/no/such/folder/log"), -ENOENT);
	CU_ASSERT_EQUAL(plx_log_set_file(""), 0);
	CU_ASSERT_EQUAL(ucx("LOG_FILE", "file:/tmp/x"), 0);
	CU_ASSERT_STRING_EQUAL(plx_conf_str(&conf, PLX_CONF_LOG_FILE), "file:/tmp/x");
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

/* @return a setting, read anew */
static uint64_t
now(const char *prefix, const char *name)
{
	plx_conf_now(&conf, prefix);
	return u64(name);
}

static void
what_the_environment_and_rpc_say_now_is_read_anew(void)
{
	struct plx_conf *process = plx_conf_process();
	struct plx_conf before = *process;

	setenv("UCX_RNDV_THRESH", "8k", 1);
	setenv("MPI_UCX_RNDV_THRESH", "16k", 1);
	CU_ASSERT_EQUAL(now(NULL, "proto.eager_max"), 8191);
	CU_ASSERT_EQUAL(now("MPI", "proto.eager_max"), 16383);
	unsetenv("UCX_RNDV_THRESH");
	CU_ASSERT_EQUAL(now(NULL, "proto.eager_max"), def("proto.eager_max"));
	CU_ASSERT_EQUAL(plx_conf_u64(process, PLX_CONF_EAGER_MAX), before.v[PLX_CONF_EAGER_MAX].u);

	CU_ASSERT_EQUAL(plx_conf_set(process, "rndv.chunk", "8k", PLX_CONF_FROM_RPC, NULL), 0);
	CU_ASSERT_EQUAL(now(NULL, "rndv.chunk"), 8192);
	setenv("PLX_RNDV_CHUNK", "64k", 1);
	CU_ASSERT_EQUAL(now(NULL, "rndv.chunk"), 8192);
	CU_ASSERT_EQUAL(now("MPI", "rndv.chunk"), 8192);
	unsetenv("PLX_RNDV_CHUNK");
	*process = before;
}

/* Whatever the caller's environment says must not reach the tests. */
static void
a_list_is_read_name_by_name(void)
{
	static const char *const names[] = {"a", "mlx5_0:1", "cc"};
	const char *list = " ,a,, mlx5_0:1 cc, ";
	char name[16];

	for (unsigned int i = 0; i < RTE_DIM(names); i++) {
		CU_ASSERT_TRUE_FATAL(plx_conf_next(&list, name, sizeof(name)));
		CU_ASSERT_STRING_EQUAL(name, names[i]);
	}
	CU_ASSERT_FALSE(plx_conf_next(&list, name, sizeof(name)));
	CU_ASSERT_FALSE(plx_conf_next(&list, name, sizeof(name)));
	CU_ASSERT_STRING_EQUAL(list, "");
}

static void
setup(void)
{
	static const char *const names[] = {"PLX_CONFIG", "PLX_LOG_LEVEL", "PLX_NO_SUCH",
		"UCX_RNDV_THRESH", "UCX_RNDV_SCHEME", "UCX_LOG_LEVEL", "UCX_TLS", "UCX_NET_DEVICES",
		"MPI_UCX_RNDV_THRESH", "UCX_CONFIG_DIR", "PLX_REACTOR", "PLX_DRV_FAST_PEERS", "PLX_PROTO_EAGER_MAX",
		"PLX_DRV_CMA", "PLX_RNDV_CHUNK"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	plx_conf_defaults(&conf);
}

static CU_TestInfo tests[] = {
	{"names_are_unique_in_both_forms", names_are_unique_in_both_forms},
	{"a_driver_adds_its_settings_before_there_are_sets", a_driver_adds_its_settings_before_there_are_sets},
	{"a_setting_is_known_by_its_role", a_setting_is_known_by_its_role},
	{"every_default_is_in_its_own_range", every_default_is_in_its_own_range},
	{"no_text_setting_may_change_at_runtime", no_text_setting_may_change_at_runtime},
	{"numbers_take_suffixes", numbers_take_suffixes},
	{"bad_numbers_are_refused_and_change_nothing", bad_numbers_are_refused_and_change_nothing},
	{"a_choice_is_one_of_its_list", a_choice_is_one_of_its_list},
	{"text_is_bounded_printable_utf8", text_is_bounded_printable_utf8},
	{"a_list_is_read_name_by_name", a_list_is_read_name_by_name},
	{"a_lower_source_is_checked_and_then_ignored", a_lower_source_is_checked_and_then_ignored},
	{"bytes_are_written_with_the_suffix_that_loses_nothing",
		bytes_are_written_with_the_suffix_that_loses_nothing},
	{"a_file_sets_what_it_names", a_file_sets_what_it_names},
	{"a_wrong_file_changes_nothing_and_says_why", a_wrong_file_changes_nothing_and_says_why},
	{"deep_and_huge_files_are_refused", deep_and_huge_files_are_refused},
	{"what_is_no_regular_file_is_refused", what_is_no_regular_file_is_refused},
	{"a_former_word_of_a_choice_means_the_present_one",
		a_former_word_of_a_choice_means_the_present_one},
	{"json_at_runtime_changes_only_runtime_settings",
		json_at_runtime_changes_only_runtime_settings},
	{"the_environment_wins_over_the_file_it_names",
		the_environment_wins_over_the_file_it_names},
	{"ucx_names_are_mapped_and_ours_win", ucx_names_are_mapped_and_ours_win},
	{"ucx_values_without_a_counterpart_leave_ours",
		ucx_values_without_a_counterpart_leave_ours},
	{"ucx_values_are_followed", ucx_values_are_followed},
	{"ucx_values_are_kept_as_ucx_prints_them", ucx_values_are_kept_as_ucx_prints_them},
	{"ucx_names_may_be_patterns", ucx_names_may_be_patterns},
	{"ucx_names_take_bounded_memory", ucx_names_take_bounded_memory},
	{"a_stronger_source_keeps_its_value_of_a_ucx_name",
		a_stronger_source_keeps_its_value_of_a_ucx_name},
	{"ucx_conf_is_read_where_ucx_looks_for_it", ucx_conf_is_read_where_ucx_looks_for_it},
	{"ucx_settings_are_printed_as_ucx_prints_them",
		ucx_settings_are_printed_as_ucx_prints_them},
	{"print_writes_every_setting_as_a_variable", print_writes_every_setting_as_a_variable},
	{"a_log_file_is_named_by_a_template", a_log_file_is_named_by_a_template},
	{"the_process_set_is_loaded_once_and_sets_the_log_level",
		the_process_set_is_loaded_once_and_sets_the_log_level},
	{"what_the_environment_and_rpc_say_now_is_read_anew", what_the_environment_and_rpc_say_now_is_read_anew},
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
	if (plx_conf_add(&drv_settings) != 0 || plx_conf_set_devices("a,b") != 0)
		return 1;
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
