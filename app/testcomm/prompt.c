/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * prompt.c - lines become words, words find their command; help, quit
 *
 * Design notes
 * - A line is commands between ";"; "#" begins a comment; a word in quotes may contain spaces
 *   and the escapes \n \t \" \\ ; "> FILE" at the end of a command writes its output to FILE,
 *   atomically.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testcomm.h"

static volatile sig_atomic_t prompt_signal; /* set by the handler only */

static const struct tc_cmd *const prompt_tables[] = {
	tc_cmd_worker, tc_cmd_ep, tc_cmd_msg, tc_cmd_rma, tc_cmd_am, tc_cmd_listen,
	tc_cmd_stat, tc_cmd_cci, tc_cmd_cci_msg,
	tc_mode_echo, tc_mode_gen, tc_prompt};

#define PROMPT_TABLES (sizeof(prompt_tables) / sizeof(prompt_tables[0]))
#define PROMPT_NAME   (TC_MAX_NAME_WORDS * TC_MAX_NAME)
#define PROMPT_COLUMNS	80
#define PROMPT_MAX_HELP 1024 /* characters */

static void
prompt_on_signal(int sig)
{
	prompt_signal = sig;
}

void
tc_interrupt_setup(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = prompt_on_signal;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool
tc_interrupted(void)
{
	return prompt_signal != 0;
}

/* Forget an interrupt. @return whether the prompt goes on: after Ctrl-C, not after SIGTERM */
bool
tc_interrupt_clear(void)
{
	bool ends = prompt_signal == SIGTERM;

	prompt_signal = 0;
	return !ends;
}

uint64_t
tc_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Print an error, in one sentence; always -1. */
int
tc_error(struct tc *tc, const char *fmt, ...)
{
	va_list ap;

	(void)tc;
	fflush(stdout);
	fputs("error: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return -1;
}

/* Decimal, 0x hexadecimal, with k or m for 1024 or its square. */
int
tc_number(struct tc *tc, const char *text, uint64_t *out)
{
	uint64_t v, unit = 1;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (*end == 'k' || *end == 'K')
		unit = 1024;
	else if (*end == 'm' || *end == 'M')
		unit = 1024 * 1024;
	end += unit != 1;
	if (!isdigit((unsigned char)text[0]) || *end != '\0')
		return tc_error(tc, "\"%s\" is not a number", text);
	if (errno != 0 || v > UINT64_MAX / unit)
		return tc_error(tc, "\"%s\" is too large a number", text);
	*out = v * unit;
	return 0;
}

int
tc_mask(struct tc *tc, const char *text, uint64_t *out)
{
	if (strcmp(text, "full") == 0)
		*out = UINT64_MAX;
	else if (strcmp(text, "any") == 0)
		*out = 0;
	else
		return tc_number(tc, text, out);
	return 0;
}

/* ---- words ---- */

static char
word_escape(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/*
 * One word from *p into out (which has room for the whole line); *p moves past it. A quoted
 * word keeps its opening quote, so that a command can distinguish text from a number.
 * @return -1: a quote is not closed
 */
int
tc_word_next(const char **p, char **out)
{
	const char *s = *p;
	char *o = *out;

	if (*s != '"') {
		while (*s != '\0' && !isspace((unsigned char)*s) && *s != ';' && *s != '#')
			*o++ = *s++;
	} else {
		*o++ = *s++;
		while (*s != '"') {
			if (*s == '\\' && s[1] != '\0') {
				*o++ = word_escape(s[1]);
				s += 2;
				continue;
			}
			if (*s == '\0')
				return -1;
			*o++ = *s++;
		}
		s++;
	}
	*o++ = '\0';
	*out = o;
	*p = s;
	return 0;
}

/* The n-th of all commands in the order of help, or NULL. */
const struct tc_cmd *
tc_cmd_at(size_t n)
{
	for (size_t t = 0; t < PROMPT_TABLES; t++) {
		const struct tc_cmd *c = prompt_tables[t];

		for (; c->name != NULL && n > 0; n--)
			c++;
		if (c->name != NULL)
			return c;
	}
	return NULL;
}

static void
prompt_name(char *out, char **words, int n)
{
	size_t len = 0;

	out[0] = '\0';
	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(out + len, PROMPT_NAME - len, "%s%.30s", i > 0 ? " " : "", words[i]);
}

/* The command with the longest name that begins these words; used: the words in its name. */
const struct tc_cmd *
tc_cmd_find(int argc, char **argv, int *used)
{
	const struct tc_cmd *c;
	char name[PROMPT_NAME];

	for (*used = argc < TC_MAX_NAME_WORDS ? argc : TC_MAX_NAME_WORDS; *used > 0; (*used)--) {
		prompt_name(name, argv, *used);
		for (size_t i = 0; (c = tc_cmd_at(i)) != NULL; i++) {
			if (strcmp(c->name, name) == 0)
				return c;
		}
	}
	return NULL;
}

/* Write text to path through a file of another name, so that a reader sees all or nothing. */
static int
prompt_to_file(struct tc *tc, const char *path, const char *text, size_t len)
{
	char tmp[4200];
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%.4096s.%ld.tmp", path, (long)getpid());
	f = fopen(tmp, "w");
	if (f == NULL)
		return tc_error(tc, "%s cannot be written: %s", path, strerror(errno));
	if (fwrite(text, 1, len, f) == len && fclose(f) == 0 && rename(tmp, path) == 0)
		return 0;
	unlink(tmp);
	return tc_error(tc, "%s cannot be written: %s", path, strerror(errno));
}

static int
prompt_call(struct tc *tc, const struct tc_cmd *c, int argc, char **argv)
{
	const char *path = NULL;
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (argc >= 2 && strcmp(argv[argc - 2], ">") == 0) {
		path = argv[argc - 1];
		argc -= 2;
	}
	if (argc < c->min || argc > c->max)
		return tc_error(tc, "usage: %s %s", c->name, c->args);
	if (path == NULL) {
		tc->out = stdout;
		rc = c->run(tc, argc, argv);
		fflush(stdout);
		return rc;
	}
	tc->out = open_memstream(&text, &len);
	if (tc->out == NULL) {
		tc->out = stdout;
		return tc_error(tc, "no memory");
	}
	rc = c->run(tc, argc, argv);
	fclose(tc->out);
	tc->out = stdout;
	if (rc == 0)
		rc = prompt_to_file(tc, path, text, len);
	free(text);
	return rc;
}

/* Whether the name of a command has these words and more. */
static bool
prompt_begins(const char *want)
{
	const struct tc_cmd *c;
	size_t n = strlen(want);

	for (size_t i = 0; (c = tc_cmd_at(i)) != NULL; i++) {
		if (strncmp(c->name, want, n) == 0 && c->name[n] == ' ')
			return true;
	}
	return false;
}

static int
prompt_unknown(struct tc *tc, int argc, char **argv)
{
	char name[PROMPT_NAME], begin[PROMPT_NAME] = "";
	int n = 0;

	do {
		prompt_name(name, argv, n + 1);
		if (!prompt_begins(name))
			break;
		strcpy(begin, name);
	} while (++n < argc && n < TC_MAX_NAME_WORDS);
	if (n == argc)
		return tc_error(tc, "\"%s\" is not all of a command; try help %s", name, begin);
	return tc_error(tc, "\"%s\" is not a command; try help%s%s", name, n > 0 ? " " : "", begin);
}

static int
prompt_command(struct tc *tc, int argc, char **argv)
{
	const struct tc_cmd *c;
	int used;

	c = tc_cmd_find(argc, argv, &used);
	if (c == NULL)
		return prompt_unknown(tc, argc, argv);
	for (int i = used; i < argc; i++) {
		if (argv[i][0] == '"' && strstr(c->args, TC_DATA) == NULL)
			argv[i]++;
	}
	return prompt_call(tc, c, argc - used, argv + used);
}

static void
prompt_failed(struct tc *tc)
{
	if (!tc->stop_error)
		return;
	tc->status = 1;
	tc->quit = true;
}

/* Run the commands of one line; -1 if one failed. */
int
tc_run_text(struct tc *tc, const char *line)
{
	char *words = malloc(2 * strlen(line) + 2), *argv[TC_MAX_WORDS + 1];
	int rc = 0;

	if (words == NULL)
		return tc_error(tc, "no memory");
	while (!tc->quit) {
		char *out = words;
		int argc = 0, bad = 0;

		for (;;) {
			while (isspace((unsigned char)*line))
				line++;
			if (*line == '\0' || *line == ';' || *line == '#' || bad != 0)
				break;
			if (argc == TC_MAX_WORDS) {
				bad = tc_error(tc, "a command has at most %d words", TC_MAX_WORDS);
				break;
			}
			argv[argc++] = out;
			bad = tc_word_next(&line, &out);
			if (bad != 0)
				tc_error(tc, "a quote is not closed");
		}
		argv[argc] = NULL;
		if (bad == 0 && argc > 0)
			bad = prompt_command(tc, argc, argv);
		if (bad != 0) {
			rc = -1;
			prompt_failed(tc);
			break; /* the remaining commands rely on this one */
		}
		if (*line != ';')
			break;
		line++;
	}
	free(words);
	return rc;
}

/* ---- lines ---- */

struct lines {
	int fd;
	size_t len; /* bytes in buf */
	bool end;
	char buf[TC_MAX_LINE];
};

/*
 * Wait a little for input; turns run meanwhile, if requested.
 * @return 1: there is some, 0: look again, -1: interrupted
 */
int
tc_input_wait(struct tc *tc, int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int ready = poll(&pfd, 1, tc->idle && tc->n_workers > 0 ? 1 : 500);

	if (tc_interrupted())
		return -1;
	for (int i = 0; i < 100 && ready == 0 && tc->idle; i++)
		tc_progress(tc);
	return ready > 0;
}

/* Read more. Returns false at the end or interrupt. */
static bool
lines_fill(struct tc *tc, struct lines *l)
{
	ssize_t n;
	int ready;

	while ((ready = tc_input_wait(tc, l->fd)) == 0)
		;
	if (ready < 0)
		return false;
	n = read(l->fd, l->buf + l->len, sizeof(l->buf) - 1 - l->len);
	if (n <= 0)
		l->end = true;
	else
		l->len += (size_t)n;
	return n > 0;
}

/* The next line into out; false at the end, or on an interrupt (out is then empty). */
static bool
lines_next(struct tc *tc, struct lines *l, char *out)
{
	char *nl;
	size_t n;

	out[0] = '\0';
	while ((nl = memchr(l->buf, '\n', l->len)) == NULL && l->len < sizeof(l->buf) - 1) {
		if (l->end || !lines_fill(tc, l))
			break;
	}
	if (nl == NULL && tc_interrupted())
		return false;
	if (nl == NULL && l->len == 0)
		return false;
	n = nl != NULL ? (size_t)(nl - l->buf) + 1 : l->len;
	memcpy(out, l->buf, n);
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	l->len -= n;
	memmove(l->buf, l->buf + n, l->len);
	return true;
}

/* Run the lines of fd, to its end or to quit. name is for messages; NULL: show a prompt. */
int
tc_run_fd(struct tc *tc, int fd, const char *name)
{
	struct lines *l = calloc(1, sizeof(*l));
	char *line = malloc(TC_MAX_LINE + 1);
	unsigned number = 0;
	int rc = 0;

	if (l == NULL || line == NULL) {
		rc = tc_error(tc, "no memory");
		goto out;
	}
	l->fd = fd;
	while (!tc->quit) {
		if (name == NULL) {
			fputs("testcomm> ", stdout);
			fflush(stdout);
		}
		if (!lines_next(tc, l, line)) {
			if (!tc_interrupted() || name != NULL || !tc_interrupt_clear())
				break;
			fputs("\n", stdout);
			continue;
		}
		number++;
		if (tc->verbose && name != NULL && line[0] != '\0')
			printf("testcomm> %s\n", line);
		if (tc_run_text(tc, line) != 0) {
			rc = -1;
			if (name != NULL)
				fprintf(stderr, "%s:%u: %s\n", name, number, line);
		}
		if (name == NULL ? !tc_interrupt_clear() : tc_interrupted())
			break;
	}
	if (name == NULL && !tc->quit)
		fputs("\n", stdout);
out:
	free(l);
	free(line);
	return rc;
}

/* ---- help, quit ---- */

/* Words in columns, downwards, on lines of this width. */
void
tc_columns(FILE *out, const char *const *words, unsigned n, unsigned columns)
{
	unsigned width = 0, per, rows;

	for (unsigned i = 0; i < n; i++)
		width = strlen(words[i]) > width ? (unsigned)strlen(words[i]) : width;
	width += 2;
	per = columns > width ? (columns + 2) / width : 1;
	rows = (n + per - 1) / per;
	for (unsigned r = 0; r < rows; r++) {
		for (unsigned i = r; i < n; i += rows)
			fprintf(out, "%-*s", i + rows < n ? (int)width : 0, words[i]);
		fputc('\n', out);
	}
}

/* Print words from this column on, folded at blanks; further lines are indented. */
static void
prompt_fold(FILE *out, const char *text, size_t at, int indent)
{
	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (at + 1 + len > PROMPT_COLUMNS) {
			fprintf(out, "\n%*s", indent - 1, "");
			at = (size_t)indent - 1;
		}
		fprintf(out, " %.*s", (int)len, text);
		at += 1 + len;
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

void
tc_usage(FILE *out, const char *begin, const struct tc_cmd *c)
{
	fprintf(out, "%s%s", begin, c->name);
	prompt_fold(out, c->args, strlen(begin) + strlen(c->name), 4);
}

/* The length of the first word of a name that has several, or 0. */
static size_t
help_noun(const struct tc_cmd *c)
{
	const char *blank = strchr(c->name, ' ');

	return blank != NULL ? (size_t)(blank - c->name) : 0;
}

/* Whether the line of an earlier command lists this one too. */
static bool
help_seen(size_t n)
{
	const struct tc_cmd *c = tc_cmd_at(n);

	for (size_t i = 0; i < n; i++) {
		const struct tc_cmd *other = tc_cmd_at(i);

		if (help_noun(other) == help_noun(c) && strncmp(other->name, c->name, help_noun(c)) == 0)
			return true;
	}
	return false;
}

/* Each first word with the words that may follow; all fit on a screen. */
static void
help_names(FILE *out)
{
	const struct tc_cmd *c, *other;
	char text[PROMPT_MAX_HELP];

	for (size_t i = 0; (c = tc_cmd_at(i)) != NULL; i++) {
		size_t noun = help_noun(c), len = 0;

		if (help_seen(i))
			continue;
		for (size_t k = i; (other = tc_cmd_at(k)) != NULL && len < sizeof(text); k++) {
			if (help_noun(other) == noun && strncmp(other->name, c->name, noun) == 0)
				len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
					len > 0 ? ", " : "", other->name + noun + (noun > 0));
		}
		fprintf(out, "%-9.*s", noun > 0 ? (int)noun : 1, noun > 0 ? c->name : "-");
		prompt_fold(out, text, 9, 10);
	}
	fputs("\nhelp COMMAND tells more, also of all that begin so; help all tells all\n", out);
}

static int
prompt_help(struct tc *tc, int argc, char **argv)
{
	const struct tc_cmd *c;
	char want[PROMPT_NAME];
	bool any = false;
	size_t n;

	if (argc == 0) {
		help_names(tc->out);
		return 0;
	}
	prompt_name(want, argv, strcmp(argv[0], "all") == 0 ? 0 : argc);
	n = strlen(want);
	for (size_t i = 0; (c = tc_cmd_at(i)) != NULL; i++) {
		if (strncmp(c->name, want, n) != 0 || (n > 0 && isalnum((unsigned char)c->name[n])))
			continue;
		any = true;
		tc_usage(tc->out, "", c);
		fprintf(tc->out, "%*s", 7, "");
		prompt_fold(tc->out, c->help, 7, 8);
	}
	return any ? 0 : tc_error(tc, "\"%s\" is not a command", want);
}

static int
prompt_quit(struct tc *tc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	tc->quit = true;
	return 0;
}

const struct tc_cmd tc_prompt[] = {
	{"help", "[COMMAND|all]", "the names of all commands; or how to use one, or all", 0, TC_MAX_NAME_WORDS, prompt_help},
	{"quit", "", "close and destroy everything, and exit", 0, 0, prompt_quit},
	{0},
};
