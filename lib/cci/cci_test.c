/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_test.c - files, URIs, names and statuses of the CCI face, without a worker
 *
 * As root it also tests what another user can do about a name.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cci_int.h"
#include "plx_meet.h"
#include "plx_unit.h"

static struct cci_ini ini;
static char err[CCI_ERR_TEXT];

static int
parse(const char *text)
{
	return cci_ini_parse(text, strlen(text), &ini, err);
}

/* -- the file -- */

static void
sections_and_keys_come_out_as_they_stand(void)
{
	UNIT_EQ_FATAL(parse("# first\n[ a ]\n k = v w # x\nl=\n\n[b]#y\r\nm =1=2\n"), 0);
	UNIT_EQ_FATAL(ini.n_devs, 2);
	UNIT_TRUE(strcmp(ini.devs[0].name, "a") == 0 && ini.devs[0].line == 2);
	UNIT_EQ_FATAL(ini.devs[0].n_keys, 2);
	UNIT_TRUE(strcmp(ini.devs[0].keys[0].text, "k=v w") == 0);
	UNIT_TRUE(strcmp(ini.devs[0].keys[1].text, "l=") == 0);
	UNIT_EQ(ini.devs[0].keys[1].line, 4);
	UNIT_TRUE(strcmp(ini.devs[1].name, "b") == 0);
	UNIT_EQ_FATAL(ini.devs[1].n_keys, 1);
	UNIT_TRUE(strcmp(ini.devs[1].keys[0].text, "m=1=2") == 0);
	cci_ini_free(&ini);
	UNIT_EQ(parse("[last]"), 0); /* without an end of line */
	UNIT_EQ(ini.n_devs, 1);
	cci_ini_free(&ini);
	UNIT_EQ(parse(""), 0);
	UNIT_EQ(ini.n_devs, 0);
}

static void
what_is_wrong_is_told_with_its_line(void)
{
	static const struct {
		const char *text;
		const char *says;
	} bad[] = {
		{"k = v\n", "line 1: "}, {"[a]\n\nk\n", "line 3: "}, {"[a\n", "line 1: "},
		{"[a] b\n", "line 1: "}, {"[ ]\n", "line 1: "}, {"[a]\n = v\n", "line 2: "},
		{"[a]\n[b]\n[a]\n", "line 3: "}, {"[a]\nk=1\nl=2\nk=3\n", "line 4: "},
	};

	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		UNIT_EQ(parse(bad[i].text), -EINVAL);
		UNIT_TRUE(strncmp(err, bad[i].says, strlen(bad[i].says)) == 0);
	}
	UNIT_EQ(cci_ini_parse("[a]\nk=\0\n", 8, &ini, err), -EINVAL);
}

static void
lines_keys_and_sections_are_bounded(void)
{
	static char text[CCI_INI_LINE * 40];
	size_t n = 0;

	memset(text, 'x', CCI_INI_LINE + 8);
	memcpy(text, "[a]\nk=", 6);
	text[4 + CCI_INI_LINE - 1] = '\0';
	UNIT_EQ(parse(text), 0); /* the longest */
	cci_ini_free(&ini);
	text[4 + CCI_INI_LINE - 1] = 'x';
	text[4 + CCI_INI_LINE] = '\0';
	UNIT_EQ(parse(text), -EINVAL);
	n = sprintf(text, "[a]\n");
	for (unsigned i = 0; i <= CCI_INI_KEYS; i++)
		n += sprintf(text + n, "k%u=1\n", i);
	UNIT_EQ(parse(text), -EINVAL);
	for (unsigned i = n = 0; i <= CCI_INI_DEVS; i++)
		n += sprintf(text + n, "[a%u]\n", i);
	UNIT_EQ(parse(text), -EINVAL);
}

/* -- URIs and names -- */

static void
text_of_bytes_comes_back_and_nothing_else_does(void)
{
	uint8_t in[64], out[64];
	char text[PLX_WIRE_TEXT_LEN(64) + 1];

	unit_fill(in, sizeof(in), 9);
	for (size_t len = 0; len <= sizeof(in); len++) {
		plx_wire_text(in, len, text);
		UNIT_EQ(strlen(text), PLX_WIRE_TEXT_LEN(len));
		UNIT_EQ(plx_wire_untext(text, strlen(text), out, sizeof(out)), len);
		UNIT_SAME(in, out, len);
		if (len > 0)
			UNIT_EQ(plx_wire_untext(text, strlen(text), out, len - 1), -EINVAL);
	}
	UNIT_EQ(plx_wire_untext("AB=", 3, out, sizeof(out)), -EINVAL);
	UNIT_EQ(plx_wire_untext("AB", 2, out, sizeof(out)), -EINVAL); /* bits that are none of a byte */
	UNIT_EQ(plx_wire_untext("A\0", 2, out, sizeof(out)), -EINVAL);
}

static void
what_is_no_uri_of_the_driver_is_refused(void)
{
	const char *bad[] = {"", "shm", "shm://", "shm:/", "verbs://AAAA", "shm://@", "shm://@a b",
		"shm://@../x", "shm://AAAA", "shm://mc/group"};
	struct plx_wire_addr addr;

	for (size_t i = 0; i < RTE_DIM(bad); i++)
		UNIT_EQ(cci_uri_parse(bad[i], "shm", &addr), -EINVAL);
	UNIT_EQ(cci_uri_parse("shm://@nobody-is-there", "shm", &addr), -ECONNREFUSED);
	UNIT_TRUE(cci_uri_group("shm://mc/g", "shm") != NULL);
	UNIT_TRUE(cci_uri_group("shm://mc/", "shm") == NULL);
	UNIT_TRUE(cci_uri_group("net_mlx://mc/g", "shm") == NULL);
}

struct heard {
	uint8_t data[PLX_NAME_DATA_MAX];
	size_t len;
	unsigned n;
};

static void
hear(const void *data, size_t len, void *arg)
{
	struct heard *h = arg;

	memcpy(h->data, data, len);
	h->len = len;
	h->n++;
}

/* @return whether the kernel lists sockets; it says so where it does not */
static bool
names_are_listed(void)
{
	struct heard h = {.n = 0};

	if (plx_name_each("cci-unit-test", hear, &h) != -EPROTONOSUPPORT)
		return true;
	printf("\n# skipped: the kernel lists no sockets here\n");
	return false;
}

static void
what_is_published_is_found_until_it_ends(void)
{
	uint8_t data[PLX_NAME_DATA_MAX + 1];
	struct heard h = {.n = 0};
	struct plx_name p, q;
	char name[64];

	if (!names_are_listed())
		return;
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	unit_fill(data, sizeof(data), 4);
	UNIT_EQ(plx_name_publish(name, data, sizeof(data), &p), -EMSGSIZE);
	UNIT_EQ(plx_name_each(name, hear, &h), 0);
	UNIT_EQ_FATAL(plx_name_publish(name, data, PLX_NAME_DATA_MAX, &p), 0);
	UNIT_EQ(plx_name_each(name, hear, &h), 1);
	UNIT_EQ(h.len, PLX_NAME_DATA_MAX);
	UNIT_SAME(h.data, data, PLX_NAME_DATA_MAX);
	UNIT_EQ_FATAL(plx_name_publish(name, data, 5, &q), 0);
	h.n = 0;
	UNIT_EQ(plx_name_each(name, hear, &h), 2);
	plx_name_end(&p);
	plx_name_end(&q);
	plx_name_end(&q); /* once more is nothing */
	UNIT_EQ(plx_name_each(name, hear, &h), 0);
}

/* Run fn as another user, who stays until *out is closed. @return its pid */
static pid_t
stranger(void (*fn)(const struct sockaddr_un *a, socklen_t len, const char *name),
	const struct sockaddr_un *a, socklen_t len, const char *name, int *out)
{
	int ready[2], stay[2];
	char byte = 0;
	pid_t pid;

	UNIT_EQ_FATAL(pipe(ready), 0);
	UNIT_EQ_FATAL(pipe(stay), 0);
	pid = fork();
	if (pid == 0) {
		close(stay[1]);
		if (setresuid(65534, 65534, 65534) != 0)
			_exit(1);
		fn(a, len, name);
		if (write(ready[1], &byte, 1) == 1 && read(stay[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	UNIT_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	close(stay[0]);
	*out = stay[1];
	return pid;
}

static void
stranger_leaves(pid_t pid, int fd)
{
	int status;

	close(fd);
	UNIT_EQ(waitpid(pid, &status, 0), pid);
	UNIT_EQ(status, 0);
}

/* The same socket name, but for the bytes published. */
static void
squat(const struct sockaddr_un *a, socklen_t len, const char *name)
{
	struct sockaddr_un b = *a;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)name;
	((char *)&b)[len - 1] = '1';
	if (bind(fd, (struct sockaddr *)&b, len) != 0)
		_exit(1);
}

static void
publish_too(const struct sockaddr_un *a, socklen_t len, const char *name)
{
	struct plx_name p;

	(void)a;
	(void)len;
	if (plx_name_publish(name, "theirs", 6, &p) != 0)
		_exit(1);
}

/* Another user who knows the hash binds the same socket name: we do not find it, and can publish ours. */
static void
name_of_another_user_is_not_found(void)
{
	struct sockaddr_un a = {0};
	socklen_t len = sizeof(a);
	struct heard h = {.n = 0};
	struct plx_name p;
	char name[64];
	pid_t pid;
	int other;

	if (!names_are_listed())
		return;
	if (geteuid() != 0)
		return; /* nobody else to be */
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	UNIT_EQ_FATAL(plx_name_publish(name, "ours", 4, &p), 0);
	UNIT_EQ(getsockname(p.fd, (struct sockaddr *)&a, &len), 0);
	plx_name_end(&p); /* or the other would have it */
	pid = stranger(squat, &a, len, name, &other);
	UNIT_EQ_FATAL(plx_name_publish(name, "ours", 4, &p), 0);
	UNIT_EQ(plx_name_each(name, hear, &h), 1);
	UNIT_EQ(h.len, 4);
	UNIT_SAME(h.data, "ours", 4);
	plx_name_end(&p);
	UNIT_EQ(plx_name_each(name, hear, &h), 0);
	stranger_leaves(pid, other);
}

/* Users who run the same service do not meet. */
static void
names_of_two_users_differ(void)
{
	struct heard h = {.n = 0};
	struct plx_name p;
	char name[64];
	pid_t pid;
	int other;

	if (!names_are_listed())
		return;
	if (geteuid() != 0)
		return;
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	pid = stranger(publish_too, &(struct sockaddr_un){0}, 0, name, &other);
	UNIT_EQ(plx_name_each(name, hear, &h), 0);
	UNIT_EQ_FATAL(plx_name_publish(name, "theirs", 6, &p), 0);
	UNIT_EQ(plx_name_each(name, hear, &h), 1);
	plx_name_end(&p);
	stranger_leaves(pid, other);
}

/* All that the system shows of a socket is its name. */
static void
ask_anyway(const struct sockaddr_un *a, socklen_t len, const char *name)
{
	struct {
		uint64_t host, proc, id;
	} where;
	const char *text = a->sun_path + 1 + 8; /* behind the hash */
	struct plx_answer got;
	struct plx_proc whom;
	struct plx_ask ask;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)name;
	if (plx_wire_untext(text, a->sun_path + len - offsetof(struct sockaddr_un, sun_path) - text, &where, sizeof(where)) !=
		sizeof(where))
		_exit(1);
	whom = (struct plx_proc){.host = where.host, .id = where.proc};
	if (plx_meet_settle("", "all") != 0 || plx_ask_open(&ask, &whom, where.id) != 0 ||
		plx_ask_wait(&ask, &got, PLX_ASK_MS) != -ESRCH)
		_exit(1);
	if (connect(fd, (const struct sockaddr *)a, len) != -1 || errno != EPERM ||
		sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)a, len) != -1)
		_exit(1);
}

/* Although processes of all users are admitted to shared memory. */
static void
other_users_get_the_name_and_not_the_bytes(void)
{
	struct sockaddr_un a[2] = {{0}};
	socklen_t len[2] = {sizeof(a[0]), sizeof(a[0])};
	struct heard h = {.n = 0};
	struct plx_name p[2];
	char name[64];
	pid_t pid;
	int other;

	if (!names_are_listed())
		return;
	UNIT_EQ_FATAL(plx_meet_settle("", "all"), 0);
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	for (unsigned i = 0; i < 2; i++) {
		UNIT_EQ_FATAL(plx_name_publish(name, "ours", 4, &p[i]), 0);
		UNIT_EQ(getsockname(p[i].fd, (struct sockaddr *)&a[i], &len[i]), 0);
	}
	/* The same bytes: what shows differs by the number of the offer, which is random. */
	UNIT_EQ(len[0], len[1]);
	UNIT_EQ(len[0], offsetof(struct sockaddr_un, sun_path) + 1 + 8 + 32);
	UNIT_TRUE(memcmp(a[0].sun_path + 1 + 8 + 22, a[1].sun_path + 1 + 8 + 22, 10) != 0);
	if (geteuid() == 0) {
		pid = stranger(ask_anyway, &a[0], len[0], name, &other);
		stranger_leaves(pid, other);
	}
	UNIT_EQ(plx_name_each(name, hear, &h), 2);
	UNIT_SAME(h.data, "ours", 4);
	for (unsigned i = 0; i < 2; i++)
		plx_name_end(&p[i]);
	UNIT_EQ(plx_meet_settle("", "same"), 0);
}

static void
bytes_of_every_length_and_value_are_published(void)
{
	uint8_t data[PLX_NAME_DATA_MAX];
	struct plx_name p;
	struct heard h;
	char name[64];

	if (!names_are_listed())
		return;
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	for (size_t len = 0; len <= sizeof(data); len += len < 8 ? 1 : 127) {
		for (unsigned value = 0; value < 3; value++) {
			h = (struct heard){.n = 0};
			memset(data, value == 0 ? 0 : 255, len);
			if (value == 2)
				unit_fill(data, len, len);
			UNIT_EQ_FATAL(plx_name_publish(name, data, len, &p), 0);
			UNIT_EQ(plx_name_each(name, hear, &h), 1);
			UNIT_EQ(h.len, len);
			UNIT_SAME(h.data, data, len);
			plx_name_end(&p);
		}
	}
}

/* Names that lead nowhere: too short, too long, no text, of nobody, of nothing that we offer. */
static void
what_leads_nowhere_is_not_found(void)
{
	static const struct {
		int at; /* of the name's characters, from the end */
		const char *text;
	} bad[] = {{0, "A"}, {-1, ""}, {-32, ""}, {-1, "~"}, {-8, "AA AAAAA"}, {-32, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{-20, "AAAAAAAAA"}, {-9, "AAAAAAAAA"}};
	struct sockaddr_un a;
	struct heard h = {.n = 0};
	struct plx_name p;
	char name[64];

	if (!names_are_listed())
		return;
	snprintf(name, sizeof(name), "cci-unit-test-%d", getpid());
	UNIT_EQ_FATAL(plx_name_publish(name, "", 0, &p), 0);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		socklen_t len = sizeof(a);
		int other = socket(AF_UNIX, SOCK_DGRAM, 0);
		size_t n = strlen(bad[i].text);
		char *end;

		UNIT_EQ(getsockname(p.fd, (struct sockaddr *)&a, &len), 0);
		end = (char *)&a + len + bad[i].at;
		memcpy(end, bad[i].text, n);
		len = n < 8 ? end + n - (char *)&a : len;
		UNIT_EQ(bind(other, (struct sockaddr *)&a, len), 0);
		h.n = 0;
		UNIT_EQ(plx_name_each(name, hear, &h), 1);
		UNIT_EQ(h.len, 0);
		close(other);
	}
	plx_name_end(&p);
}

/* -- statuses -- */

static void
errors_of_the_core_have_a_status(void)
{
	UNIT_EQ(cci_status(0), CCI_SUCCESS);
	UNIT_EQ(cci_status(-ECONNRESET), CCI_ERR_DISCONNECTED);
	UNIT_EQ(cci_status(-ENOSR), CCI_ERR_RNR);
	UNIT_EQ(cci_status(-EKEYREJECTED), CCI_ERR_RMA_HANDLE);
	UNIT_EQ(cci_status(-EOPNOTSUPP), CCI_ERR_RMA_OP);
	UNIT_EQ(cci_status(-ENOBUFS), CCI_ENOBUFS);
	UNIT_EQ(cci_status(-EXDEV), CCI_ERROR); /* what CCI has no name for */
}

int
main(void)
{
	CU_TestInfo tests[] = {
		UNIT_TEST(sections_and_keys_come_out_as_they_stand),
		UNIT_TEST(what_is_wrong_is_told_with_its_line),
		UNIT_TEST(lines_keys_and_sections_are_bounded),
		UNIT_TEST(text_of_bytes_comes_back_and_nothing_else_does),
		UNIT_TEST(what_is_no_uri_of_the_driver_is_refused),
		UNIT_TEST(what_is_published_is_found_until_it_ends),
		UNIT_TEST(name_of_another_user_is_not_found),
		UNIT_TEST(names_of_two_users_differ),
		UNIT_TEST(other_users_get_the_name_and_not_the_bytes),
		UNIT_TEST(bytes_of_every_length_and_value_are_published),
		UNIT_TEST(what_leads_nowhere_is_not_found),
		UNIT_TEST(errors_of_the_core_have_a_status),
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{"cci", NULL, NULL, NULL, NULL, tests},
		CU_SUITE_INFO_NULL,
	};
	int rc = unit_start();

	return rc != 0 ? rc : unit_run(suites);
}
