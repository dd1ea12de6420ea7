/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * conf_ucx_value.c - values as UCX reads and prints them
 *
 * Design notes
 * - Everything that UCX accepts is accepted, with all that its scanf() lets pass ("8kbytes", a
 *   number below 0 that wraps), so that no program is refused that runs on UCX. Each parser reads
 *   one value and appends it in UCX's own form.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf_ucx.h"

#define LIST_MAX 128 /* elements, as in UCX */

/* The output; full is sticky until the end. */
struct text {
	char *buf;
	size_t n, len;
};

__attribute__((format(printf, 2, 3))) static void
add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->n < t->len ? t->buf + t->n : NULL, t->n < t->len ? t->len - t->n : 0, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

static bool
is_word(const char *text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcasecmp(*words, text) == 0)
			return true;
	return false;
}

static int
put_bool(const char *text, const char *yes, const char *no, struct text *out)
{
	static const char *const yes_words[] = {"y", "yes", "on", "1", NULL};
	static const char *const no_words[] = {"n", "no", "off", "0", NULL};

	if (is_word(text, yes_words))
		add(out, "%s", yes);
	else if (is_word(text, no_words))
		add(out, "%s", no);
	else
		return -EINVAL;
	return 0;
}

static int
put_ternary(const char *text, struct text *out)
{
	static const char *const words[] = {"try", "maybe", NULL};

	if (!is_word(text, words))
		return put_bool(text, "y", "n", out);
	add(out, "try");
	return 0;
}

static int
put_onoff(const char *text, struct text *out)
{
	static const char *const words[] = {"auto", "try", "maybe", NULL};

	if (!is_word(text, words))
		return put_bool(text, "on", "off", out);
	add(out, "auto");
	return 0;
}

/* All kinds of numbers: what strtol() reads at the beginning is the value. */
static int
put_number(enum conf_ucx_type type, const char *text, struct text *out)
{
	bool is_inf = strcasecmp(text, "inf") == 0, is_auto = strcasecmp(text, "auto") == 0;
	unsigned long u;
	char *end;

	if ((is_inf && (type == UCX_UINT || type == UCX_ULUNITS)) || (is_auto && type == UCX_ULUNITS)) {
		add(out, "%s", is_inf ? "inf" : "auto");
		return 0;
	}
	u = type == UCX_INT ? (unsigned long)strtol(text, &end, 0) : strtoul(text, &end, 10);
	if (end == text)
		return -EINVAL;
	if (type == UCX_INT)
		add(out, "%i", (int)u);
	else if (type == UCX_UINT && (unsigned int)u == UINT_MAX)
		add(out, "inf");
	else if (type == UCX_UINT)
		add(out, "%u", (unsigned int)u);
	else if (type == UCX_ULUNITS && u >= ULONG_MAX - 1)
		add(out, "%s", u == ULONG_MAX ? "inf" : "auto");
	else
		add(out, "%lu", u);
	return 0;
}

static int
put_double(enum conf_ucx_type type, const char *text, struct text *out)
{
	double d;
	char *end;

	if (type == UCX_POS && strcasecmp(text, "auto") == 0) {
		add(out, "auto");
		return 0;
	}
	d = strtod(text, &end);
	if (end == text || (type == UCX_POS && !(d > 0)))
		return -EINVAL;
	add(out, "%.3f", d);
	return 0;
}

/* Powers of 2^10: b k m g t, and p e, which UCX prints and does not read; 0: none of them. */
static uint64_t
unit_of(char c)
{
	static const char units[] = "BKMGTPE";
	const char *p = c != '\0' ? strchr(units, toupper((unsigned char)c)) : NULL;

	return p != NULL ? 1ull << 10 * (p - units) : 0;
}

int
conf_ucx_mem(const char *text, uint64_t *bytes)
{
	uint64_t unit = 1;
	char *end;

	if (strcasecmp(text, "inf") == 0) {
		*bytes = CONF_UCX_INF;
		return 0;
	}
	if (strcasecmp(text, "auto") == 0) {
		*bytes = CONF_UCX_AUTO;
		return 0;
	}
	*bytes = (uint64_t)strtol(text, &end, 10);
	if (end == text)
		return -EINVAL;
	if (*end != '\0') {
		unit = unit_of(*end);
		if (unit == 0 || (end[1] != '\0' && tolower((unsigned char)end[1]) != 'b'))
			return -EINVAL;
	}
	return __builtin_mul_overflow(*bytes, unit, bytes) ? -EINVAL : 0;
}

static int
put_mem(const char *text, struct text *out)
{
	static const char *const suffixes[] = {"", "K", "M", "G", "T", "P", "E"};
	unsigned int i = 0;
	uint64_t bytes;
	int rc;

	rc = conf_ucx_mem(text, &bytes);
	if (rc != 0)
		return rc;
	if (bytes >= CONF_UCX_AUTO) {
		add(out, "%s", bytes == CONF_UCX_INF ? "inf" : "auto");
		return 0;
	}
	for (; bytes >= 1024 && bytes % 1024 == 0 && i < 6; i++)
		bytes /= 1024;
	add(out, "%" PRIu64 "%s", bytes, suffixes[i]);
	return 0;
}

static int
put_time(enum conf_ucx_type type, const char *text, struct text *out)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = {{"", 1e6}, {"m", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}, {"ns", 1e-3}};
	double d;
	char *end;

	if (type == UCX_TIMEU && (strcmp(text, "inf") == 0 || strcmp(text, "auto") == 0)) {
		add(out, "%s", text);
		return 0;
	}
	d = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].unit);

		/* UCX reads two letters; a single one has to be the whole suffix */
		if (len == 2 ? strncmp(end, units[i].unit, 2) == 0 : strcmp(end, units[i].unit) == 0) {
			add(out, "%.2fus", d * units[i].us);
			return 0;
		}
	}
	return -EINVAL;
}

/* 10GBps, 100Mb/s, 5.5Gbs: bytes or bits a second. */
static int
put_bw(const char *text, struct text *out)
{
	static const char *const suffixes[] = {"", "K", "M", "G", "T", "P", "E"};
	unsigned int i = 0;
	uint64_t unit;
	double d;
	char *end;

	if (strcasecmp(text, "auto") == 0) {
		add(out, "auto");
		return 0;
	}
	d = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	end += strspn(end, " \t");
	unit = *end == 'b' ? 1 : isupper((unsigned char)*end) ? unit_of(*end) : 0;
	if (unit == 0)
		return -EINVAL;
	if (unit > 1)
		end++;
	if (*end != 'b' && *end != 'B')
		return -EINVAL;
	d = d * (double)unit / (*end == 'b' ? 8 : 1);
	end++;
	if (strcmp(end, "ps") != 0 && strcmp(end, "/s") != 0 && strcmp(end, "s") != 0)
		return -EINVAL;
	for (; d > 50000 && i < 6; i++)
		d /= 1024;
	add(out, "%.2f%sBps", d, suffixes[i]);
	return 0;
}

static int
put_enum(const struct conf_ucx_row *row, const char *text, struct text *out)
{
	for (unsigned int i = 0; row->words[i] != NULL; i++)
		if (strcasecmp(row->words[i], text) == 0) {
			add(out, "%s", row->words[i]);
			return 0;
		}
	return -EINVAL;
}

static int
put_signo(const char *text, struct text *out)
{
	const char *name;
	char *end;
	long n;

	n = strtol(text, &end, 10);
	if (end != text && *end == '\0') {
		name = n > 0 && n < NSIG ? sigabbrev_np((int)n) : NULL;
		if (name != NULL)
			add(out, "%s", name);
		else
			add(out, "%ld", n);
		return 0;
	}
	if (strncmp(text, "SIG", 3) == 0)
		text += 3;
	for (int i = 1; i < NSIG; i++) {
		name = sigabbrev_np(i);
		if (name != NULL && strcasecmp(name, text) == 0) {
			add(out, "%s", name);
			return 0;
		}
	}
	return -EINVAL;
}

/* The words in the list, in the order of words. */
static int
put_bits(const struct conf_ucx_row *row, char *text, struct text *out)
{
	uint64_t bits = 0;
	char *save = NULL;
	unsigned int i;
	bool first = true;

	for (char *p = strtok_r(text, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save)) {
		for (i = 0; row->words[i] != NULL && strcasecmp(row->words[i], p) != 0; i++)
			;
		if (row->words[i] == NULL)
			return -EINVAL;
		bits |= 1ull << i;
	}
	for (i = 0; row->words[i] != NULL; i++)
		if (bits & 1ull << i) {
			add(out, "%s%s", first ? "" : ",", row->words[i]);
			first = false;
		}
	return 0;
}

/* "mlx5_[0-3]:1" as its names; anything else unchanged. @return how many */
static unsigned int
put_range(const char *p, unsigned int room, struct text *out)
{
	const char *open = strchr(p, '['), *shut = strchr(p, ']');
	unsigned long lo, hi;
	char *end;

	if (open == NULL || shut == NULL || shut < open || !isdigit((unsigned char)open[1]) ||
		strpbrk(open + 1, "[") != NULL || strchr(shut + 1, ']') != NULL)
		goto plain;
	lo = strtoul(open + 1, &end, 10);
	if (*end != '-' || !isdigit((unsigned char)end[1]))
		goto plain;
	hi = strtoul(end + 1, &end, 10);
	if (end != shut || lo > hi)
		goto plain;
	if (hi - lo >= room)
		hi = lo + room - 1;
	for (unsigned long i = lo; i <= hi; i++)
		add(out, "%s%.*s%lu%s", i == lo ? "" : ",", (int)(open - p), p, i, shut + 1);
	return (unsigned int)(hi - lo + 1);
plain:
	add(out, "%s", p);
	return 1;
}

static int
put_element(const struct conf_ucx_row *row, const char *p, struct text *out)
{
	if (row->type == UCX_MEMS)
		return put_mem(p, out);
	if (row->type == UCX_SIGNOS)
		return put_signo(p, out);
	add(out, "%s", p);
	return 0;
}

/* Empty elements are skipped, and those after the last that UCX accepts. */
static int
put_list(const struct conf_ucx_row *row, char *text, struct text *out)
{
	bool allow = row->type == UCX_LIST || row->type == UCX_RANGES, is_all = false;
	const char *delim = row->type == UCX_PATHS ? ":" : ",";
	char *save = NULL, *p;
	unsigned int n = 0;
	int rc;

	if (allow && *text == '^') {
		/* "^all" means all, too */
		if (strncmp(text + 1, "all", 3) != 0 || (text[4] != '\0' && text[4] != ','))
			add(out, "^");
		text++;
	}
	for (p = strtok_r(text, delim, &save); p != NULL && n < LIST_MAX;
		p = strtok_r(NULL, delim, &save)) {
		if (is_all)
			return -EINVAL;
		is_all = allow && n == 0 && strcmp(p, "all") == 0;
		if (n > 0)
			add(out, "%s", delim);
		if (row->type == UCX_RANGES) {
			n += put_range(p, LIST_MAX - n, out);
			continue;
		}
		rc = put_element(row, p, out);
		if (rc != 0)
			return rc;
		n++;
	}
	return 0;
}

/* The value of a key of a row with keys, checked. */
static int
put_key(const struct conf_ucx_row *row, const char *value, struct text *out)
{
	if (row->type == UCX_KMEM)
		return put_mem(value, out);
	if (row->type == UCX_KTIME)
		return put_time(UCX_TIME, value, out);
	return put_bw(value, out);
}

/* key:value pairs; a value without a key applies to the keys that are not named. */
static int
put_keys(const struct conf_ucx_row *row, char *text, struct text *out)
{
	const char *values[8] = {NULL}, *def = NULL;
	char *p, *colon;
	unsigned int i;
	int rc;

	while ((p = strsep(&text, ",")) != NULL) {
		colon = strchr(p, ':');
		if (colon == NULL) {
			def = p;
			continue;
		}
		*colon = '\0';
		for (i = 0; row->words[i] != NULL && strcmp(row->words[i], p) != 0; i++)
			;
		if (row->words[i] == NULL)
			return -EINVAL;
		values[i] = colon + 1;
	}
	for (i = 0; row->words[i] != NULL; i++) {
		if (values[i] == NULL)
			values[i] = def;
		if (values[i] == NULL)
			return -EINVAL;
		add(out, "%s%s:", i > 0 ? "," : "", row->words[i]);
		rc = put_key(row, values[i], out);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
put_value(const struct conf_ucx_row *row, char *text, struct text *out)
{
	switch (row->type) {
	case UCX_BOOL:
		return put_bool(text, "y", "n", out);
	case UCX_TERNARY:
		return put_ternary(text, out);
	case UCX_ONOFF:
		return put_onoff(text, out);
	case UCX_INT:
	case UCX_UINT:
	case UCX_ULONG:
	case UCX_ULUNITS:
		return put_number(row->type, text, out);
	case UCX_DOUBLE:
	case UCX_POS:
		return put_double(row->type, text, out);
	case UCX_MEM:
		return put_mem(text, out);
	case UCX_TIME:
	case UCX_TIMEU:
		return put_time(row->type, text, out);
	case UCX_BW:
		return put_bw(text, out);
	case UCX_ENUM:
		return put_enum(row, text, out);
	case UCX_BITS:
		return put_bits(row, text, out);
	case UCX_SIGNO:
		return put_signo(text, out);
	case UCX_STRS:
	case UCX_PATHS:
	case UCX_MEMS:
	case UCX_SIGNOS:
	case UCX_LIST:
	case UCX_RANGES:
		return put_list(row, text, out);
	case UCX_KMEM:
	case UCX_KTIME:
	case UCX_KBW:
		return put_keys(row, text, out);
	case UCX_STR:
	case UCX_ALIAS:
		break;
	}
	add(out, "%s", text);
	return 0;
}

int
conf_ucx_value(const struct conf_ucx_row *row, const char *text, char *out)
{
	struct text t = {out, 0, CONF_UCX_VALUE_MAX};
	char copy[CONF_UCX_VALUE_MAX]; /* parsers modify it */
	int rc;

	if (strlen(text) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, text);
	*out = '\0';
	rc = put_value(row, copy, &t);
	if (rc == 0 && t.n >= t.len)
		rc = -ENAMETOOLONG;
	return rc;
}

int
conf_ucx_key(const char *text, const char *key, char *out, size_t len)
{
	size_t n, key_len = strlen(key);

	for (const char *p = text; *p != '\0'; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (n > key_len && strncmp(p, key, key_len) == 0 && p[key_len] == ':') {
			snprintf(out, len, "%.*s", (int)(n - key_len - 1), p + key_len + 1);
			return 0;
		}
	}
	return -ENOENT;
}
