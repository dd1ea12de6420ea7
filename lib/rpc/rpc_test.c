/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * rpc_test.c - a server in this process and clients that behave well, badly or not at all
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CUnit/Basic.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "plx_conf.h"
#include "plx_log.h"
#include "plx_rpc.h"

static char path[64];
static struct plx_rpc_server *server;

/* -- clients -- */

static int
dial_path(const char *to)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", to);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int
dial(void)
{
	return dial_path(path);
}

static void
say_bytes(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* the test finds out by the answer */
		text += n;
		len -= (size_t)n;
	}
}

static void
say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

/* The next line, or NULL when the server has closed. */
static json_t *
hear(int fd)
{
	static const size_t chunk = 65536;
	size_t len = 0;
	char *line = NULL, *end = NULL;
	json_t *json = NULL;
	ssize_t n;

	while (end == NULL) {
		line = realloc(line, len + chunk);
		n = recv(fd, line + len, chunk, MSG_PEEK);
		if (n <= 0)
			break;
		end = memchr(line + len, '\n', (size_t)n);
		n = recv(fd, line + len, end != NULL ? (size_t)(end + 1 - line) - len : (size_t)n,
			0);
		len += (size_t)n;
	}
	if (end != NULL)
		json = json_loadb(line, len, 0, NULL);
	free(line);
	return json;
}

static bool
is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0 && errno != EAGAIN;
}

static bool
is_silent(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 0;
}

static json_t *
ask(const char *text)
{
	int fd = dial();
	json_t *answer;

	say(fd, text);
	answer = hear(fd);
	CU_ASSERT_PTR_NOT_NULL(answer);
	close(fd);
	return answer;
}

static json_t *
call(const char *method, json_t *params)
{
	json_t *req = json_pack("{s:s, s:i, s:s, s:o*}", "jsonrpc", "2.0", "id", 7, "method",
		method, "params", params);
	char *text = json_dumps(req, 0);
	json_t *answer = ask(text);

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(answer, "id")), 7);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(answer, "jsonrpc")), "2.0");
	free(text);
	json_decref(req);
	return answer;
}

static int
code_of(const json_t *answer)
{
	return (int)json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));
}

static const char *
message_of(const json_t *answer)
{
	const char *text;

	text = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
	return text != NULL ? text : "";
}

static int
call_code(const char *method, json_t *params)
{
	json_t *answer = call(method, params);
	int code = code_of(answer);

	json_decref(answer);
	return code;
}

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"get_version\"}"

static void
expect_ping(int fd)
{
	json_t *answer;

	say(fd, PING);
	answer = hear(fd);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(answer, "result"));
	json_decref(answer);
}

/* -- methods of ours -- */

static int calls;

static int
test_echo(const json_t *params, json_t **result, char *err, void *arg)
{
	(void)err;
	(void)arg;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	*result = json_deep_copy(params);
	return 0;
}

static int
test_fail(const json_t *params, json_t **result, char *err, void *arg)
{
	(void)params;
	*result = json_string("not to be seen");
	snprintf(err, PLX_RPC_ERR_MAX, "%s", (const char *)arg);
	return -EBUSY;
}

/* About n bytes of answer. */
static int
test_big(const json_t *params, json_t **result, char *err, void *arg)
{
	int n;
	char *text;

	(void)arg;
	if (plx_rpc_unpack(params, err, "{s:i}", "n", &n) < 0)
		return -EINVAL;
	text = malloc((size_t)n + 1);
	memset(text, 'x', (size_t)n);
	text[n] = '\0';
	*result = json_string(text);
	free(text);
	return 0;
}

static const struct plx_rpc_method methods[] = {
	{"test_echo", "any", "Gives back its parameters.", test_echo, NULL},
	{"test_fail", "", "Fails.", test_fail, "the lathe is busy"},
	{"test_fail_utf8", "", "Fails with half a character.", test_fail, "caf\xc3"},
	{"test_big", "n: bytes", "Answers much.", test_big, NULL},
};

/* -- tests -- */

static void
the_socket_is_for_its_owner_only(void)
{
	struct stat st;

	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT(S_ISSOCK(st.st_mode));
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	CU_ASSERT_STRING_EQUAL(plx_rpc_path(server), path);
}

static void
a_live_server_is_not_replaced(void)
{
	struct plx_rpc_server *other = NULL;

	CU_ASSERT_EQUAL(plx_rpc_start(path, &other), -EADDRINUSE);
	CU_ASSERT_PTR_NULL(other);
	CU_ASSERT_EQUAL(call_code("get_version", NULL), 0);
}

static void
a_stale_socket_is_replaced_and_other_files_are_not(void)
{
	struct plx_rpc_server *other = NULL;
	char name[80], text[200];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	snprintf(name, sizeof(name), "%s.other", path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", name);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(plx_rpc_start(name, &other), 0);
	fd = dial_path(name);
	expect_ping(fd);
	plx_rpc_stop(other);
	CU_ASSERT(is_closed(fd));
	close(fd);
	CU_ASSERT_EQUAL(access(name, F_OK), -1);

	fd = open(name, O_CREAT | O_WRONLY, 0600);
	close(fd);
	CU_ASSERT_EQUAL(plx_rpc_start(name, &other), -EEXIST);
	CU_ASSERT_EQUAL(access(name, F_OK), 0);
	unlink(name);
	memset(text, 'x', sizeof(text));
	text[108] = '\0';
	CU_ASSERT_EQUAL(plx_rpc_start(text, &other), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(plx_rpc_start("", &other), -EINVAL);
	CU_ASSERT_EQUAL(plx_rpc_start("/no/such/folder/s", &other), -ENOENT);
	plx_rpc_stop(NULL);
}

/* A socket file of that name, an hour old; @return a descriptor that listens, or -1 if nobody does */
static int
leave_socket(const char *name, bool listens)
{
	const struct timespec hour_ago[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", name);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, name, hour_ago, 0), 0);
	if (listens && listen(fd, 1) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
sockets_of_killed_processes_are_removed_and_no_others(void)
{
	/* Nobody listens, it is old and ours: the first alone. */
	enum { STALE, LISTENS, YOUNG, NO_SOCKET, FOREIGN, OTHER_NAME, N };
	struct plx_rpc_server *other = NULL;
	char name[N][100], own[100];
	int fd;

	snprintf(own, sizeof(own), "%s.%%p.sock", path);
	for (int i = 0; i < N; i++)
		snprintf(name[i], sizeof(name[i]), "%s.%d.sock%s", path, i + 1, i == OTHER_NAME ? ".old" : "");
	for (int i = 0; i < N; i++)
		if (i != LISTENS && i != NO_SOCKET)
			leave_socket(name[i], false);
	fd = leave_socket(name[LISTENS], true);
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, name[YOUNG], NULL, 0), 0);
	close(open(name[NO_SOCKET], O_CREAT | O_WRONLY, 0600));
	if (geteuid() != 0 || chown(name[FOREIGN], 65534, 65534) != 0)
		unlink(name[FOREIGN]);
	CU_ASSERT_EQUAL_FATAL(plx_rpc_start(path, &other), -EADDRINUSE); /* no process id in its name */
	CU_ASSERT_EQUAL(access(name[STALE], F_OK), 0);
	CU_ASSERT_EQUAL_FATAL(plx_rpc_start(own, &other), 0);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(access(name[i], F_OK), i == STALE || (i == FOREIGN && geteuid() != 0) ? -1 : 0);
	plx_rpc_stop(other);
	for (int i = 0; i < N; i++)
		unlink(name[i]);
	close(fd);
}

static void
on_alarm(int sig)
{
	(void)sig;
}

static void
who_holds_the_folder_is_waited_for_through_signals(void)
{
	const struct sigaction act = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct plx_rpc_server *other = NULL;
	struct timespec begin, end;
	struct sigaction before;
	char name[80];
	int fd;

	snprintf(name, sizeof(name), "%s.folder", path);
	CU_ASSERT_EQUAL_FATAL(mkdir(name, 0700), 0);
	fd = open(name, O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX), 0);
	strcat(name, "/socket");
	sigaction(SIGALRM, &act, &before);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	setitimer(ITIMER_REAL, &often, NULL);
	CU_ASSERT_EQUAL(plx_rpc_start(name, &other), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	sigaction(SIGALRM, &before, NULL);
	CU_ASSERT((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 99);
	plx_rpc_stop(other);
	close(fd);
	*strrchr(name, '/') = '\0';
	CU_ASSERT_EQUAL(rmdir(name), 0);
}

static void
percent_p_is_the_process(void)
{
	struct plx_rpc_server *other = NULL;
	char name[64];

	CU_ASSERT_EQUAL_FATAL(plx_rpc_start("/tmp/plx_rpc_test_%p.s", &other), 0);
	snprintf(name, sizeof(name), "/tmp/plx_rpc_test_%d.s", getpid());
	CU_ASSERT_STRING_EQUAL(plx_rpc_path(other), name);
	CU_ASSERT_EQUAL(access(name, F_OK), 0);
	plx_rpc_stop(other);
}

static void
methods_are_listed_with_those_registered(void)
{
	static const char *const want[] = {"rpc_get_methods", "get_version", "log_get_level",
		"log_set_level", "conf_get", "conf_set", "save_config", "load_config", "test_echo"};
	json_t *answer = call("rpc_get_methods", NULL);
	const json_t *row;
	size_t i, found = 0;

	json_array_foreach(json_object_get(answer, "result"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		CU_ASSERT_PTR_NOT_NULL(json_object_get(row, "params"));
		CU_ASSERT_PTR_NOT_NULL(json_object_get(row, "help"));
		for (size_t k = 0; k < RTE_DIM(want); k++)
			found += strcmp(name, want[k]) == 0;
	}
	CU_ASSERT_EQUAL(found, RTE_DIM(want));
	json_decref(answer);
}

static void
registering_takes_all_rows_or_none(void)
{
	struct plx_rpc_method rows[PLX_RPC_MAX_METHODS + 1];
	char names[PLX_RPC_MAX_METHODS + 1][16];

	CU_ASSERT_EQUAL(plx_rpc_register(methods, RTE_DIM(methods)), 0); /* again: no change */
	rows[0] = (struct plx_rpc_method){"test_new", "", "", test_echo, NULL};
	rows[1] = (struct plx_rpc_method){"conf_get", "", "", test_echo, NULL};
	CU_ASSERT_EQUAL(plx_rpc_register(rows, 2), -EEXIST);
	CU_ASSERT_EQUAL(call_code("test_new", NULL), -32601);
	for (unsigned int i = 0; i <= PLX_RPC_MAX_METHODS; i++) {
		snprintf(names[i], sizeof(names[i]), "test_%u", i);
		rows[i] = (struct plx_rpc_method){names[i], "", "", test_echo, NULL};
	}
	CU_ASSERT_EQUAL(plx_rpc_register(rows, RTE_DIM(rows)), -ENOSPC);
	CU_ASSERT_EQUAL(call_code("test_0", NULL), -32601);
}

static void
wrong_requests_get_the_code_of_the_specification(void)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{"{}", -32600},
		{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"get_version\"}", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"get_version\"}", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"get_version\"}", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"get_version\",\"params\":3}", -32600},
		{"[]", -32600},
		{"42 ", -32600},
		{"\"text\"", -32600},
		{"null\n", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nope\"}", -32601},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", -32601},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"get_version\",\"params\":[1]}",
			-32602},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"get_version\",\"params\":{\"x\":1}}",
			-32602},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"conf_set\"}", -32602},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"load_config\"}", -32602},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test_fail\"}", -32000},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		int fd = dial();
		json_t *answer;

		say(fd, rows[i].text);
		answer = hear(fd);
		CU_ASSERT_EQUAL(code_of(answer), rows[i].code);
		json_decref(answer);
		expect_ping(fd); /* the connection survives */
		close(fd);
	}
}

static void
what_is_no_json_is_answered_and_ends_the_connection(void)
{
	static const char *const rows[] = {"{]", "}", "{\"a\" 1}", "hello world",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "{\"a\": tru}", "{\"a\":\"\xff\"}", ",",
		"NaN ", "{\"a\":\"\\u0000\"}", "{\"a\":123456789012345678901234567890}",
		"\x01\x02 \n"};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		int fd = dial();
		json_t *answer;

		say(fd, rows[i]);
		answer = hear(fd);
		CU_ASSERT_EQUAL(code_of(answer), -32700);
		CU_ASSERT(json_is_null(json_object_get(answer, "id")));
		CU_ASSERT(is_closed(fd));
		json_decref(answer);
		close(fd);
	}
}

static void
half_a_request_at_the_end_of_input_is_answered(void)
{
	int fd = dial();
	json_t *answer;

	say(fd, PING "{\"jsonrpc\":");
	shutdown(fd, SHUT_WR);
	answer = hear(fd);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(answer, "result"));
	json_decref(answer);
	answer = hear(fd);
	CU_ASSERT_EQUAL(code_of(answer), -32700);
	json_decref(answer);
	CU_ASSERT(is_closed(fd));
	close(fd);
}

static void
an_id_comes_back_as_it_was(void)
{
	static const char *const ids[] = {
		"\"a\\u00e9\\\"b\"", "-5", "1.5", "null", "9223372036854775807", "\"\""};

	for (size_t i = 0; i < RTE_DIM(ids); i++) {
		char text[128];
		json_t *id = json_loads(ids[i], JSON_DECODE_ANY, NULL), *answer;

		snprintf(text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"get_version\"}", ids[i]);
		answer = ask(text);
		CU_ASSERT(json_equal(id, json_object_get(answer, "id")));
		json_decref(answer);
		json_decref(id);
	}
}

static void
a_notification_runs_and_is_not_answered(void)
{
	int fd = dial(), before = __atomic_load_n(&calls, __ATOMIC_RELAXED);

	say(fd, "{\"jsonrpc\":\"2.0\",\"method\":\"test_echo\"}"
		"{\"jsonrpc\":\"2.0\",\"method\":\"nope\"}"
		"{\"jsonrpc\":\"2.0\",\"method\":\"test_fail\"}"
		"[{\"jsonrpc\":\"2.0\",\"method\":\"test_echo\"}]");
	expect_ping(fd);
	CU_ASSERT_EQUAL(__atomic_load_n(&calls, __ATOMIC_RELAXED), before + 2);
	close(fd);
}

static void
a_batch_is_answered_in_one_array(void)
{
	json_t *answer =
		ask("[" PING ", 1, {\"jsonrpc\":\"2.0\",\"method\":\"test_echo\"}, " PING "]");
	char *text;
	json_t *batch;

	CU_ASSERT_EQUAL_FATAL(json_array_size(answer), 3);
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json_array_get(answer, 0), "result"));
	CU_ASSERT_EQUAL(code_of(json_array_get(answer, 1)), -32600);
	json_decref(answer);

	batch = json_array();
	for (unsigned int i = 0; i <= PLX_RPC_MAX_BATCH; i++)
		json_array_append_new(batch, json_integer(i));
	text = json_dumps(batch, 0);
	answer = ask(text);
	CU_ASSERT_EQUAL(code_of(answer), -32600);
	json_decref(answer);
	json_decref(batch);
	free(text);
}

static void
requests_may_come_in_any_pieces(void)
{
	const char *text = " " PING "\n\r\n" PING PING "\t[" PING "]\n";
	int fd = dial();
	json_t *answer;

	for (size_t i = 0; i < strlen(text); i++)
		say_bytes(fd, text + i, 1);
	for (unsigned int i = 0; i < 4; i++) {
		answer = hear(fd);
		CU_ASSERT_PTR_NOT_NULL(answer);
		CU_ASSERT_EQUAL(json_is_array(answer), i == 3);
		json_decref(answer);
	}
	CU_ASSERT(is_silent(fd, 1));
	close(fd);
}

static void
brackets_in_text_do_not_end_a_request(void)
{
	json_t *answer = call("test_echo", json_pack("{s:s}", "t", "}]\"\\}{["));

	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_object_get(json_object_get(answer, "result"), "t")),
		"}]\"\\}{[");
	json_decref(answer);
}

/* Sends len bytes of a request that is just padding inside its parameters. */
static json_t *
ask_padded(size_t len)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test_echo\","
				   "\"params\":{\"p\":\"";
	char *text = malloc(len + 1);
	json_t *answer;

	memset(text, 'x', len);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + len - 3, "\"}}", 4);
	answer = ask(text);
	free(text);
	return answer;
}

static void
a_request_has_a_largest_size(void)
{
	json_t *answer = ask_padded(PLX_RPC_MAX_REQUEST);

	CU_ASSERT_EQUAL(code_of(answer), 0);
	json_decref(answer);
	answer = ask_padded(PLX_RPC_MAX_REQUEST + 1);
	CU_ASSERT_EQUAL(code_of(answer), -32600);
	json_decref(answer);
}

static void
deep_nesting_is_refused(void)
{
	char text[PLX_RPC_MAX_DEPTH + 2];
	json_t *answer;

	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	answer = ask(text);
	CU_ASSERT_EQUAL(code_of(answer), -32700);
	json_decref(answer);
}

static void
the_error_of_a_method_is_told_with_its_errno(void)
{
	json_t *answer = call("test_fail", NULL);
	const json_t *data = json_object_get(json_object_get(answer, "error"), "data");

	CU_ASSERT_STRING_EQUAL(message_of(answer), "the lathe is busy");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(data, "errno")), EBUSY);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(data, "name")), "EBUSY");
	CU_ASSERT_PTR_NULL(json_object_get(answer, "result"));
	json_decref(answer);
	answer = call("test_fail_utf8", NULL);
	CU_ASSERT_STRING_EQUAL(message_of(answer), "caf?");
	json_decref(answer);
}

static void
an_answer_has_a_largest_size(void)
{
	json_t *answer = call("test_big", json_pack("{s:i}", "n", PLX_RPC_MAX_RESPONSE - 100));

	CU_ASSERT_EQUAL(code_of(answer), 0);
	json_decref(answer);
	answer = call("test_big", json_pack("{s:i}", "n", PLX_RPC_MAX_RESPONSE));
	CU_ASSERT_EQUAL(code_of(answer), -32603);
	json_decref(answer);
}

static void
who_does_not_read_holds_up_nobody_and_is_dropped(void)
{
	int lazy = dial(), fd;
	unsigned int n = 1;
	json_t *answer;

	for (unsigned int i = 0; i < 20; i++)
		say(lazy, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test_big\","
			  "\"params\":{\"n\":4000000}}");
	fd = dial();
	for (unsigned int i = 0; i < 50; i++)
		expect_ping(fd);
	answer = hear(lazy); /* reads again: is served again */
	CU_ASSERT_PTR_NOT_NULL(json_object_get(answer, "result"));
	json_decref(answer);
	plx_rpc_set_idle(server, 30);
	usleep(100000);
	expect_ping(fd);
	for (; (answer = hear(lazy)) != NULL; n++)
		json_decref(answer);
	CU_ASSERT(n < 20);
	plx_rpc_set_idle(server, PLX_RPC_IDLE_MS);
	close(lazy);
	close(fd);
}

static void
half_a_request_times_out_without_harm(void)
{
	int half = dial(), quiet = dial();
	json_t *answer;

	expect_ping(quiet);
	say(half, "{\"jsonrpc\":\"2.0\", \"id\"");
	plx_rpc_set_idle(server, 30);
	answer = hear(half);
	CU_ASSERT_EQUAL(code_of(answer), -32600);
	CU_ASSERT(is_closed(half));
	expect_ping(quiet); /* quiet between requests is no fault */
	plx_rpc_set_idle(server, PLX_RPC_IDLE_MS);
	json_decref(answer);
	close(half);
	close(quiet);
}

static void
clients_beyond_the_limit_wait_for_a_place(void)
{
	int fds[PLX_RPC_MAX_CLIENTS + 4];

	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = dial();
		say(fds[i], PING);
	}
	for (size_t i = 0; i < PLX_RPC_MAX_CLIENTS; i++)
		json_decref(hear(fds[i]));
	CU_ASSERT(is_silent(fds[PLX_RPC_MAX_CLIENTS], 10));
	for (size_t i = 0; i < 4; i++)
		close(fds[i]);
	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		json_t *answer = i < PLX_RPC_MAX_CLIENTS ? NULL : hear(fds[i]);

		CU_ASSERT(i < PLX_RPC_MAX_CLIENTS || json_object_get(answer, "result") != NULL);
		json_decref(answer);
	}
	for (size_t i = 4; i < RTE_DIM(fds); i++)
		close(fds[i]);
}

static void
a_quiet_client_gives_way_when_all_places_are_taken(void)
{
	int fds[PLX_RPC_MAX_CLIENTS + 1];
	unsigned int n_closed = 0;

	for (size_t i = 0; i < PLX_RPC_MAX_CLIENTS; i++) {
		fds[i] = dial();
		expect_ping(fds[i]);
	}
	fds[PLX_RPC_MAX_CLIENTS] = dial();
	usleep(30000);
	plx_rpc_set_idle(server, 30);
	expect_ping(fds[PLX_RPC_MAX_CLIENTS]);
	plx_rpc_set_idle(server, PLX_RPC_IDLE_MS);
	for (size_t i = 0; i <= PLX_RPC_MAX_CLIENTS; i++) {
		n_closed += !is_silent(fds[i], 0) && is_closed(fds[i]);
		close(fds[i]);
	}
	CU_ASSERT_EQUAL(n_closed, 1);
}

static void *
hammer(void *arg)
{
	for (unsigned int i = 0; i < 100; i++) {
		int fd = dial();

		expect_ping(fd);
		if (i % 3 == 0)
			say(fd, PING PING "{\"half");
		close(fd); /* with answers unread */
	}
	return arg;
}

static void
many_clients_come_and_go(void)
{
	pthread_t threads[20];

	for (size_t i = 0; i < RTE_DIM(threads); i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, hammer, NULL), 0);
	for (size_t i = 0; i < RTE_DIM(threads); i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(call_code("get_version", NULL), 0);
}

/* The server must not spin either: it takes up again when there are descriptors. */
static void
running_out_of_descriptors_is_survived(void)
{
	struct rlimit before, low;
	int fd = dup(0); /* the lowest that is free */

	close(fd);
	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = (rlim_t)fd + 1; /* enough for the client, not for the server's end */
	setrlimit(RLIMIT_NOFILE, &low);
	fd = dial();
	say(fd, PING);
	usleep(20000);
	setrlimit(RLIMIT_NOFILE, &before);
	json_decref(hear(fd));
	close(fd);
	CU_ASSERT_EQUAL(call_code("get_version", NULL), 0);
}

static void
numbers_of_junk_are_survived(void)
{
	static const char alphabet[] = "{}[]\",:\\ \n0a\xff\x00tn-";
	unsigned int seed = (unsigned int)getpid();
	char text[300];

	printf("seed %u ", seed);
	for (unsigned int i = 0; i < 2000; i++) {
		int fd = dial();
		size_t len = (size_t)rand_r(&seed) % sizeof(text);

		for (size_t k = 0; k < len; k++)
			text[k] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		say_bytes(fd, text, len);
		close(fd);
	}
	CU_ASSERT_EQUAL(call_code("get_version", NULL), 0);
}

static void
conf_get_tells_all_of_a_setting(void)
{
	static const char *const keys[] = {
		"name", "value", "source", "default", "type", "unit", "range", "runtime", "help"};
	json_t *answer = call("conf_get", NULL);
	const json_t *rows = json_object_get(answer, "result");

	CU_ASSERT_EQUAL(json_array_size(rows), plx_conf_n());
	for (size_t k = 0; k < RTE_DIM(keys); k++)
		CU_ASSERT_PTR_NOT_NULL(json_object_get(json_array_get(rows, 3), keys[k]));
	json_decref(answer);
	answer = call("conf_get", json_pack("{s:s}", "name", "eal.huge"));
	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_object_get(json_object_get(answer, "result"), "value")),
		"auto");
	json_decref(answer);
	CU_ASSERT_EQUAL(call_code("conf_get", json_pack("{s:s}", "name", "no.such")), -32000);
	CU_ASSERT_EQUAL(call_code("conf_get", json_pack("{s:i}", "name", 1)), -32602);
}

static void
conf_set_changes_runtime_settings_only(void)
{
	const struct plx_conf *c = plx_conf_process();
	json_t *answer;

	CU_ASSERT_EQUAL(
		call_code("conf_set", json_pack("{s:s,s:s}", "name", "rndv.chunk", "value", "8k")),
		0);
	CU_ASSERT_EQUAL(plx_conf_u64(c, PLX_CONF_RNDV_CHUNK), 8192);
	CU_ASSERT_EQUAL(
		call_code("conf_set", json_pack("{s:s,s:i}", "name", "rndv.chunk", "value", 4096)),
		0);
	CU_ASSERT_EQUAL(plx_conf_u64(c, PLX_CONF_RNDV_CHUNK), 4096);
	CU_ASSERT_EQUAL(
		call_code("conf_set", json_pack("{s:s,s:i}", "name", "rndv.chunk", "value", 1)),
		-32602);
	CU_ASSERT_EQUAL(
		call_code("conf_set", json_pack("{s:s,s:n}", "name", "rndv.chunk", "value")),
		-32602);
	answer = call("conf_set", json_pack("{s:s,s:s}", "name", "eal.huge", "value", "no"));
	CU_ASSERT_EQUAL(code_of(answer), -32000);
	CU_ASSERT_PTR_NOT_NULL(strstr(message_of(answer), "before start"));
	json_decref(answer);
	CU_ASSERT_EQUAL(plx_conf_u64(c, PLX_CONF_RNDV_CHUNK), 4096);
}

static void
what_save_config_gives_load_config_takes(void)
{
	json_t *saved = call("save_config", NULL), *answer;
	json_t *sections = json_object_get(saved, "result");
	struct plx_conf conf;

	plx_conf_defaults(&conf);
	CU_ASSERT_EQUAL(plx_conf_load_json(&conf, sections, PLX_CONF_FROM_FILE, false, NULL), 0);
	CU_ASSERT_EQUAL(plx_conf_u64(&conf, PLX_CONF_RNDV_CHUNK),
		plx_conf_u64(plx_conf_process(), PLX_CONF_RNDV_CHUNK));
	json_object_set_new(json_object_get(sections, "rndv"), "scheme", json_string("frag"));
	CU_ASSERT_EQUAL(call_code("load_config", json_incref(sections)), 0);
	CU_ASSERT_EQUAL(plx_conf_u64(plx_conf_process(), PLX_CONF_RNDV_SCHEME), PLX_RNDV_FRAG);

	json_object_set_new(json_object_get(sections, "rndv"), "scheme", json_string("get"));
	json_object_set_new(json_object_get(sections, "eal"), "huge", json_string("no"));
	answer = call("load_config", json_incref(sections));
	CU_ASSERT_EQUAL(code_of(answer), -32000);
	CU_ASSERT_PTR_NOT_NULL(strstr(message_of(answer), "eal.huge"));
	CU_ASSERT_EQUAL(plx_conf_u64(plx_conf_process(), PLX_CONF_RNDV_SCHEME), PLX_RNDV_FRAG);
	json_decref(answer);
	json_decref(saved);

	answer = call("save_config", json_pack("{s:b}", "changed", 1));
	sections = json_object_get(answer, "result");
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json_object_get(sections, "rndv"), "scheme"));
	CU_ASSERT_PTR_NULL(json_object_get(json_object_get(sections, "eal"), "huge"));
	json_decref(answer);
}

static void
the_log_level_acts_at_once(void)
{
	uint32_t before = plx_log_get_level();
	json_t *answer;

	CU_ASSERT_EQUAL(call_code("log_set_level", json_pack("{s:s}", "level", "alert")), 0);
	CU_ASSERT_EQUAL(plx_log_get_level(), RTE_LOG_ALERT);
	CU_ASSERT_EQUAL(call_code("conf_set",
				json_pack("{s:s,s:s}", "name", "log.level", "value", "critical")),
		0);
	answer = call("log_get_level", NULL);
	CU_ASSERT_STRING_EQUAL(
		json_string_value(json_object_get(json_object_get(answer, "result"), "level")),
		"critical");
	json_decref(answer);
	CU_ASSERT_EQUAL(call_code("log_set_level", json_pack("{s:s}", "level", "loud")), -32602);
	CU_ASSERT_EQUAL(call_code("log_set_level", json_pack("{s:i}", "level", 3)), -32602);
	plx_log_set_level(before);
}

/* What a child of the application does at exit must not end the parent's server. */
static void
a_forked_child_cannot_stop_the_server(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		plx_rpc_stop(server);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	CU_ASSERT_EQUAL(call_code("get_version", NULL), 0);
}

#define TEST(fn)                                                                                   \
	{                                                                                          \
#fn, fn                                                                            \
	}

static CU_TestInfo tests[] = {
	TEST(the_socket_is_for_its_owner_only),
	TEST(a_live_server_is_not_replaced),
	TEST(a_stale_socket_is_replaced_and_other_files_are_not),
	TEST(sockets_of_killed_processes_are_removed_and_no_others),
	TEST(who_holds_the_folder_is_waited_for_through_signals),
	TEST(percent_p_is_the_process),
	TEST(methods_are_listed_with_those_registered),
	TEST(registering_takes_all_rows_or_none),
	TEST(wrong_requests_get_the_code_of_the_specification),
	TEST(what_is_no_json_is_answered_and_ends_the_connection),
	TEST(half_a_request_at_the_end_of_input_is_answered),
	TEST(an_id_comes_back_as_it_was),
	TEST(a_notification_runs_and_is_not_answered),
	TEST(a_batch_is_answered_in_one_array),
	TEST(requests_may_come_in_any_pieces),
	TEST(brackets_in_text_do_not_end_a_request),
	TEST(a_request_has_a_largest_size),
	TEST(deep_nesting_is_refused),
	TEST(the_error_of_a_method_is_told_with_its_errno),
	TEST(an_answer_has_a_largest_size),
	TEST(who_does_not_read_holds_up_nobody_and_is_dropped),
	TEST(half_a_request_times_out_without_harm),
	TEST(clients_beyond_the_limit_wait_for_a_place),
	TEST(a_quiet_client_gives_way_when_all_places_are_taken),
	TEST(many_clients_come_and_go),
	TEST(running_out_of_descriptors_is_survived),
	TEST(numbers_of_junk_are_survived),
	TEST(conf_get_tells_all_of_a_setting),
	TEST(conf_set_changes_runtime_settings_only),
	TEST(what_save_config_gives_load_config_takes),
	TEST(the_log_level_acts_at_once),
	TEST(a_forked_child_cannot_stop_the_server),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"rpc", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

static int
start(void)
{
	char *argv[] = {"rpc_test", "--no-huge", "-m", "16", "--no-shconf", "--no-pci",
		"--no-telemetry", "--log-level=*:3", "--iova-mode=va", NULL};

	plx_log_set_level(RTE_LOG_EMERG);
	snprintf(path, sizeof(path), "/tmp/plx_rpc_test.%d", getpid());
	if (rte_eal_init(RTE_DIM(argv) - 1, argv) < 0) {
		fprintf(stderr, "skipped: no EAL here: %s\n", rte_strerror(rte_errno));
		return 77;
	}
	if (plx_rpc_register(methods, 1) < 0 || plx_rpc_start(path, &server) < 0)
		return 1;
	return plx_rpc_register(methods + 1, RTE_DIM(methods) - 1) < 0; /* also after start */
}

int
main(void)
{
	unsigned int failures;
	int rc = start();

	if (rc != 0)
		return rc;
	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 1;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	plx_rpc_stop(server);
	return failures > 0 || access(path, F_OK) == 0;
}
