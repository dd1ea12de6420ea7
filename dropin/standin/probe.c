/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * probe.c - a program that needs libucs.so.0 and libuct.so.0, for ldd to say whether they are there
 */
int
main(void)
{
	return 0;
}
