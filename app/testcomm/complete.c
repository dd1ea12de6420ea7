/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * complete.c - the words that may stand at the end of a line, from the arguments in the tables
 *
 * Design notes
 * - The arguments of a command, as help shows them, are a grammar. Each word is a place, "|"
 *   separates alternatives, "[...]" is optional. Lower case stands for itself; upper case is the
 *   kind of an object or value, "@FILE" a file.
 * - A "[...]" that begins with a word in lower case is an option, and a further word in it is the
 *   value. Options come in any order, all other words in that of the grammar.
 */
#include <assert.h>
#include <ctype.h>
#include <glob.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tc_cci.h"
#include "tc_complete.h"

#define COMPLETE_MAX_SLOTS 16 /* words of a grammar */

/* One word of a grammar. */
struct slot {
	const char *text;
	size_t len;
	bool optional;
	bool option; /* the literal that an option begins with */
	bool value;  /* belongs to the option before it */
	bool used;
};

/* ---- choices ---- */

static int
choice_order(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static void
choice_add(struct tc_choices *c, const char *typed, const char *word, size_t len)
{
	if (len < c->typed || len == 0 || strncmp(word, typed, c->typed) != 0)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		if (strlen(c->word[i]) == len && memcmp(c->word[i], word, len) == 0)
			return;
	}
	if (c->n == TC_MAX_CHOICES || len >= TC_MAX_CHOICE) {
		c->more = true;
		return;
	}
	memcpy(c->word[c->n], word, len);
	c->word[c->n++][len] = '\0';
}

/* The next word of each command whose name begins with these n words. */
static void
choice_commands(struct tc_choices *c, const char *typed, char **words, int n)
{
	const struct tc_cmd *cmd;

	for (size_t i = 0; (cmd = tc_cmd_at(i)) != NULL; i++) {
		const char *at = cmd->name;
		int k = 0;

		for (; k < n && strncmp(at, words[k], strlen(words[k])) == 0; k++) {
			at += strlen(words[k]);
			if (*at++ != ' ')
				break;
		}
		if (k == n)
			choice_add(c, typed, at, strcspn(at, " "));
	}
}

/* ---- the kinds of objects ---- */

/* Each struct begins with its name, those of CCI too. */
static_assert(offsetof(struct tc_worker, name) == 0 && offsetof(struct tc_ep, name) == 0 &&
	offsetof(struct tc_req, name) == 0 && offsetof(struct tc_msg, name) == 0, "objects begin with it");

static void
kind_objects(struct tc *tc, struct tc_choices *c, const char *typed, const char *kind, size_t len)
{
	const struct {
		const char *kind;
		const void *list; /* of pointers, some of them NULL */
		size_t n;
	} lists[] = {
		{"WORKER", tc->worker, tc->n_workers},
		{"EP", tc->ep, tc->n_eps},
		{"REQ", tc->req, tc->n_reqs},
		{"MSG", tc->msg, tc->n_msgs},
		{"MEM", tc->mem, TC_MAX_LIST},
		{"KEY", tc->key, TC_MAX_LIST},
		{"LISTENER", tc->listener, TC_MAX_LIST},
		{"CONNREQ", tc->connreq, TC_MAX_LIST},
		{"CCI", tc_cci.ep, TC_MAX_LIST},
		{"CONN", tc_cci.conn, TC_MAX_LIST},
		{"EVENT", tc_cci.event, TC_MAX_LIST},
		{"CCIMEM", tc_cci.mem, TC_MAX_LIST},
	};

	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
		const char *const *name = lists[k].list;

		if (strncmp(lists[k].kind, kind, len) != 0 || lists[k].kind[len] != '\0')
			continue;
		for (size_t i = 0; i < lists[k].n; i++) {
			if (name[i] != NULL)
				choice_add(c, typed, name[i], strlen(name[i]));
		}
	}
}

/* Files whose path begins as typed; at 1 skips an "@". A folder ends with "/". */
static void
kind_files(struct tc_choices *c, const char *typed, size_t at)
{
	char pattern[TC_MAX_CHOICE], name[TC_MAX_CHOICE];
	glob_t found;

	if (strlen(typed) + 2 > sizeof(pattern) || strpbrk(typed, "*?[\\") != NULL)
		return;
	snprintf(pattern, sizeof(pattern), "%s*", typed + at);
	if (glob(pattern, GLOB_MARK, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int len = snprintf(name, sizeof(name), "%.*s%s", (int)at, typed, found.gl_pathv[i]);

		choice_add(c, typed, name, len < TC_MAX_CHOICE ? (size_t)len : TC_MAX_CHOICE - 1);
	}
	globfree(&found);
}

static void
kind_statuses(struct tc_choices *c, const char *typed)
{
	const char *name;

	for (size_t i = 0; (name = tc_status_at(i)) != NULL; i++)
		choice_add(c, typed, name, strlen(name));
}

/* ---- the grammar ---- */

/* Read the words of a grammar. @return their number */
static int
grammar_read(const char *args, struct slot *slots)
{
	bool optional = false, begins = false, option = false;
	int n = 0;

	while (n < COMPLETE_MAX_SLOTS && *args != '\0') {
		struct slot *s = &slots[n];

		if (*args == ' ' || *args == ']') {
			optional = optional && *args == ' ';
			args++;
			continue;
		}
		if (*args == '[') {
			optional = begins = true;
			args++;
		}
		memset(s, 0, sizeof(*s));
		s->text = args;
		s->len = strcspn(args, " ]");
		s->optional = optional;
		option = begins ? islower((unsigned char)*args) : optional && option;
		s->option = option && begins;
		s->value = option && !begins;
		begins = false;
		args += s->len;
		n++;
	}
	return n;
}

/* Whether a word is one of the literals of this place. */
static bool
slot_has(const struct slot *s, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = s->text; at < s->text + s->len;) {
		size_t n = strcspn(at, "| ]");

		if (n == len && strncmp(at, word, n) == 0)
			return true;
		at += n + 1;
	}
	return false;
}

/* Offer the words that this place accepts. */
static void
slot_offer(struct tc *tc, struct tc_choices *c, const struct slot *s, const char *typed)
{
	for (const char *at = s->text; at < s->text + s->len;) {
		size_t n = strcspn(at, "| ]");

		if (islower((unsigned char)*at) || isdigit((unsigned char)*at))
			choice_add(c, typed, at, n);
		else if (*at == '@' && typed[0] == '@')
			kind_files(c, typed, 1);
		else if (n == 6 && strncmp(at, "STATUS", n) == 0)
			kind_statuses(c, typed);
		else
			kind_objects(tc, c, typed, at, n);
		at += n + 1;
	}
}

/*
 * Take a word at this place.
 * @return the place of its value, if it is an option that has one, else n
 */
static int
grammar_step(struct slot *slots, int n, int at, const char *word)
{
	for (int i = 0; i < n; i++) {
		if (!slots[i].option || slots[i].used || !slot_has(&slots[i], word) ||
			(at < n && (!slots[at].optional || slots[at].value)))
			continue;
		slots[i].used = true;
		return i + 1 < n && slots[i + 1].value ? i + 1 : n;
	}
	if (at < n)
		slots[at].used = true;
	return n;
}

/* The first free place that is neither an option nor a value; n: there is none. */
static int
grammar_next(const struct slot *slots, int n)
{
	for (int i = 0; i < n; i++) {
		if (!slots[i].used && !slots[i].option && !slots[i].value)
			return i;
	}
	return n;
}

static void
complete_argument(struct tc *tc, struct tc_choices *c, const char *typed, char **words, int n_words)
{
	struct slot slots[COMPLETE_MAX_SLOTS];
	int n = grammar_read(c->cmd->args, slots), at = grammar_next(slots, n);

	for (int i = 0; i < n_words; i++) {
		at = grammar_step(slots, n, at, words[i]);
		if (at == n)
			at = grammar_next(slots, n);
	}
	if (at < n)
		slot_offer(tc, c, &slots[at], typed);
	/* no option can replace a value, or come before a word that it follows in the grammar */
	for (int i = 0; i < n && (i < at || at == n) && (at == n || !slots[at].value); i++) {
		if (slots[i].option && !slots[i].used)
			slot_offer(tc, c, &slots[i], typed);
	}
}

/* ---- the line ---- */

/*
 * Split the last command of a line into words, stored in buf. The last word is the one at the
 * cursor, and may be empty. @return their number; 0: nothing can be completed
 */
static int
complete_split(const char *line, char *buf, char **words)
{
	int n = 0;

	for (;;) {
		while (isspace((unsigned char)*line))
			line++;
		if (*line == ';') {
			n = 0;
			line++;
			continue;
		}
		if (*line == '#' || n == TC_MAX_WORDS)
			return 0;
		words[n++] = buf;
		if (tc_word_next(&line, &buf) != 0)
			return 0;
		if (*line == '\0')
			return n;
	}
}

static void
complete_help(struct tc_choices *c, const char *typed, char **words, int n)
{
	if (n == 0)
		choice_add(c, typed, "all", 3);
	choice_commands(c, typed, words, n);
}

void
tc_complete(struct tc *tc, const char *line, struct tc_choices *c)
{
	char *buf = malloc(2 * strlen(line) + 2), *words[TC_MAX_WORDS + 1], *typed;
	int n, used = 0;

	c->n = 0;
	c->more = false;
	c->typed = 0;
	c->cmd = NULL;
	n = buf != NULL ? complete_split(line, buf, words) : 0;
	if (n > 0) {
		typed = words[n - 1];
		c->typed = strlen(typed);
		c->cmd = tc_cmd_find(n - 1, words, &used);
		if (n > 1 && strcmp(words[n - 2], ">") == 0)
			kind_files(c, typed, 0);
		else if (strcmp(words[0], "help") == 0)
			complete_help(c, typed, words + 1, n - 2);
		else if (c->cmd != NULL)
			complete_argument(tc, c, typed, words + used, n - 1 - used);
		if (n <= TC_MAX_NAME_WORDS)
			choice_commands(c, typed, words, n - 1);
	}
	qsort(c->word, c->n, sizeof(c->word[0]), choice_order);
	free(buf);
}
