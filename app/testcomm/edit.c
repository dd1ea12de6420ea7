/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * edit.c - the prompt on a terminal: editing, history and completion, by libedit
 *
 * Design notes
 * - libedit asks for each key; turns run while there is none.
 * - Signals stay those of the shell. A change of size and the return from a stop draw the line
 *   again; libedit's own handlers would pass each signal on to the whole process group.
 */
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "tc_complete.h"
#include "tc_history.h"

#define EDIT_MAX_HISTORY 1000
#define EDIT_MAX_PATH	 4096

struct edit {
	struct tc *tc;
	EditLine *el;
	History *history;
	int fd;          /* of the history file, or negative */
	struct termios terminal; /* while a line is edited */
	mbstate_t state;         /* of the characters that come in bytes */
	struct tc_choices choices;
};

static volatile sig_atomic_t edit_resized, edit_continued; /* set by the handler only */

static void
edit_on_signal(int sig)
{
	if (sig == SIGWINCH)
		edit_resized = 1;
	else
		edit_continued = 1;
}

static void
edit_signals(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = edit_on_signal;
	sigaction(SIGWINCH, &sa, NULL);
	sigaction(SIGCONT, &sa, NULL);
}

/* ---- keys ---- */

/* Draw the line again after the terminal changed its size, or another program used it. */
static void
edit_redraw(struct edit *e)
{
	if (edit_continued) {
		edit_continued = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &e->terminal);
		fputc('\r', stdout);
		el_set(e->el, EL_REFRESH);
	}
	if (edit_resized) {
		edit_resized = 0;
		el_resize(e->el);
	}
}

/* Read one character. @return as libedit wants it: 1; 0 at the end; -1 on an interrupt or error */
static int
edit_key(EditLine *el, wchar_t *out)
{
	struct edit *e;
	size_t used;
	ssize_t n;
	char byte;
	int ready;

	el_get(el, EL_CLIENTDATA, &e);
	for (;;) {
		edit_redraw(e);
		ready = tc_input_wait(e->tc, STDIN_FILENO);
		if (ready < 0)
			return -1;
		if (ready == 0)
			continue;
		n = read(STDIN_FILENO, &byte, 1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return (int)n;
		used = mbrtowc(out, &byte, 1, &e->state);
		if (used == (size_t)-1) /* no character of this locale */
			memset(&e->state, 0, sizeof(e->state));
		else if (used != (size_t)-2) /* more bytes of it have to come */
			return 1;
	}
}

/* ---- completion ---- */

/* The length of the beginning that all choices share. */
static size_t
choices_common(const struct tc_choices *c)
{
	size_t len = strlen(c->word[0]);

	for (unsigned i = 1; i < c->n; i++) {
		size_t k = 0;

		while (k < len && c->word[i][k] == c->word[0][k])
			k++;
		len = k;
	}
	return len;
}

/* Show all choices below the line, or the usage of the command. */
static void
choices_show(const struct tc_choices *c, int columns)
{
	const char *words[TC_MAX_CHOICES];

	fputc('\n', stdout);
	for (unsigned i = 0; i < c->n; i++)
		words[i] = c->word[i];
	if (c->n == 0)
		tc_usage(stdout, "usage: ", c->cmd);
	else
		tc_columns(stdout, words, c->n, columns > 0 ? (unsigned)columns : 80);
	if (c->more)
		fputs("and more\n", stdout);
	fflush(stdout);
}

static unsigned char
edit_complete(EditLine *el, int key)
{
	const LineInfo *line = el_line(el);
	struct tc_choices *c;
	struct edit *e;
	char *text, rest[TC_MAX_CHOICE + 1];
	size_t common;
	int columns = 80;

	(void)key;
	el_get(el, EL_CLIENTDATA, &e);
	c = &e->choices;
	text = strndup(line->buffer, (size_t)(line->cursor - line->buffer));
	if (text == NULL)
		return CC_ERROR;
	tc_complete(e->tc, text, c);
	free(text);
	common = c->n > 0 ? choices_common(c) : 0;
	if (c->n == 1 || common > c->typed) {
		snprintf(rest, sizeof(rest), "%.*s%s", (int)(common - c->typed), c->word[0] + c->typed,
			c->n == 1 && c->word[0][common - 1] != '/' ? " " : "");
		return el_insertstr(el, rest) == 0 ? CC_REFRESH : CC_ERROR;
	}
	if (c->n == 0 && (c->cmd == NULL || c->typed > 0))
		return CC_ERROR;
	el_get(el, EL_GETTC, "co", &columns);
	choices_show(c, columns);
	return CC_REDISPLAY;
}

/* ---- history ---- */

static void
edit_history_load(struct edit *e)
{
	char path[EDIT_MAX_PATH], *text, *line, *save = NULL;
	HistEvent event;
	int rc;

	if (!e->tc->history)
		return;
	rc = tc_history_path(path, sizeof(path));
	e->fd = rc == 0 ? tc_history_open(path) : rc;
	if (e->fd < 0) {
		fprintf(stderr, "testcomm: the history cannot be saved: %s%s%s\n", rc == 0 ? path : "",
			rc == 0 ? ": " : "", strerror(-e->fd));
		return;
	}
	text = tc_history_read(e->fd);
	for (line = text != NULL ? strtok_r(text, "\n", &save) : NULL; line != NULL;
		line = strtok_r(NULL, "\n", &save)) {
		if (strlen(line) <= TC_MAX_LINE)
			history(e->history, &event, H_ENTER, line);
	}
	free(text);
}

/* Called before the line runs, so that the one that ends the shell is kept too. */
static void
edit_history_add(struct edit *e, const char *line)
{
	HistEvent event;
	int last;

	if (line[strspn(line, " \t")] == '\0')
		return;
	last = history(e->history, &event, H_FIRST) >= 0 && strcmp(event.str, line) == 0;
	history(e->history, &event, H_ENTER, line);
	if (e->tc->history && e->fd >= 0 && !last)
		tc_history_add(e->fd, line);
}

/* ---- lines ---- */

static char *
edit_prompt(EditLine *el)
{
	static char text[] = "testcomm> ";

	(void)el;
	return text;
}

/* Keys that terminals send and libedit's own list lacks. */
static void
edit_bind(EditLine *el)
{
	static const char *const keys[][2] = {{"^I", "tc-complete"}, {"^R", "em-inc-search-prev"},
		{"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"}, {"\\e[F", "ed-move-to-end"},
		{"\\eOH", "ed-move-to-beg"}, {"\\eOF", "ed-move-to-end"}, {"\\e[1~", "ed-move-to-beg"},
		{"\\e[4~", "ed-move-to-end"}, {"\\e[1;5C", "em-next-word"}, {"\\e[1;5D", "ed-prev-word"}};

	el_set(el, EL_ADDFN, "tc-complete", "complete commands, arguments and names", edit_complete);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static int
edit_begin(struct edit *e)
{
	HistEvent event;

	setlocale(LC_CTYPE, "");
	e->el = el_init("testcomm", stdin, stdout, stderr);
	e->history = history_init();
	if (e->el == NULL || e->history == NULL)
		return -1;
	history(e->history, &event, H_SETSIZE, EDIT_MAX_HISTORY);
	history(e->history, &event, H_SETUNIQUE, 1);
	el_set(e->el, EL_CLIENTDATA, e);
	el_set(e->el, EL_PROMPT, edit_prompt);
	el_set(e->el, EL_EDITOR, "emacs");
	el_set(e->el, EL_HIST, history, e->history);
	el_set(e->el, EL_GETCFN, edit_key);
	edit_bind(e->el);
	el_source(e->el, NULL); /* the user's own keys */
	edit_signals();
	edit_history_load(e);
	return 0;
}

static void
edit_end(struct edit *e)
{
	if (e->history != NULL)
		history_end(e->history);
	if (e->el != NULL)
		el_end(e->el);
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

/* @return a line, of malloc(); NULL: the end, or an interrupt */
static char *
edit_line(struct edit *e)
{
	const char *line;
	int n = 0;

	el_set(e->el, EL_PREP_TERM, 1); /* before the prompt: no key after it is echoed twice */
	tcgetattr(STDIN_FILENO, &e->terminal);
	line = el_gets(e->el, &n);
	return line != NULL && n > 0 ? strndup(line, strcspn(line, "\r\n")) : NULL;
}

/* Run the lines that are typed, to the end or to quit. */
int
tc_edit_run(struct tc *tc)
{
	struct edit *e = calloc(1, sizeof(*e));
	char *line;
	int rc = 0;

	if (e == NULL)
		return tc_error(tc, "no memory");
	e->tc = tc;
	e->fd = -1;
	if (edit_begin(e) != 0) {
		edit_end(e);
		return tc_run_fd(tc, STDIN_FILENO, NULL);
	}
	while (!tc->quit) {
		line = edit_line(e);
		if (line != NULL) {
			edit_history_add(e, line);
			rc |= tc_run_text(tc, line);
			free(line);
			if (!tc_interrupted())
				continue;
		} else if (tc_interrupted()) {
			fputs("^C", stdout);
			el_reset(e->el);
		} else {
			break;
		}
		if (!tc_interrupt_clear())
			break;
		fputc('\n', stdout);
	}
	if (!tc->quit)
		fputc('\n', stdout);
	edit_end(e);
	return rc;
}
