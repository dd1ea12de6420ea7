/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_ini.c - the file of CCI devices
 *
 * The text lies in a block of exactly its length. What is accepted is written out by the
 * rules and read again, and has to be the same.
 */
#include "fuzz.h"

#include "cci_int.h"

static struct cci_ini ini, again;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_start();
	return 0;
}

static size_t
write_out(char *to, size_t max)
{
	size_t n = 0;

	for (unsigned i = 0; i < ini.n_devs; i++) {
		n += (size_t)snprintf(to + n, max - n, "[%s]\n", ini.devs[i].name);
		for (unsigned k = 0; k < ini.devs[i].n_keys; k++)
			n += (size_t)snprintf(to + n, max - n, "%s\n", ini.devs[i].keys[k].text);
	}
	FUZZ_CHECK(n < max);
	return n;
}

static void
check_same(void)
{
	FUZZ_CHECK(again.n_devs == ini.n_devs);
	for (unsigned i = 0; i < ini.n_devs; i++) {
		FUZZ_CHECK(strcmp(again.devs[i].name, ini.devs[i].name) == 0);
		FUZZ_CHECK(again.devs[i].n_keys == ini.devs[i].n_keys);
		for (unsigned k = 0; k < ini.devs[i].n_keys; k++)
			FUZZ_CHECK(strcmp(again.devs[i].keys[k].text, ini.devs[i].keys[k].text) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char text[CCI_INI_DEVS * (CCI_INI_KEYS + 1) * CCI_INI_LINE];
	char *exact = malloc(len), err[CCI_ERR_TEXT] = "";

	if (len != 0)
		memcpy(exact, data, len);
	if (cci_ini_parse(exact, len, &ini, err) == 0) {
		FUZZ_CHECK(ini.n_devs <= CCI_INI_DEVS);
		FUZZ_CHECK(cci_ini_parse(text, write_out(text, sizeof(text)), &again, err) == 0);
		check_same();
		cci_ini_free(&again);
		cci_ini_free(&ini);
	} else {
		FUZZ_CHECK(strncmp(err, "line ", 5) == 0 && strlen(err) < sizeof(err));
	}
	free(exact);
	return 0;
}
