/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * peers.c - what a process grows by for each peer that it knows, and for each that it
 * has sent to
 *
 * Rank 1 has many workers. Rank 0 connects to one, which brings what is there once; then it
 * makes an ep to each other, sends a message to each, and writes to FOLDER/grown how many
 * resident bytes, and how many of the heap, that was for one.
 *
 * argument after N: how many workers
 */
#include <malloc.h>

#include "mp.h"

enum { MOST = 256, LEN = 8 };

static ucp_worker_h workers[MOST];
static struct op ops[MOST];
static uint8_t bufs[MOST][LEN];

/* Resident bytes of this process. */
static long
resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[128];
	long kib = -1;

	while (f != NULL && kib < 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Rss: %ld", &kib) == 1)
			break;
	if (kib < 0)
		UTIL_DIE("no Rss");
	fclose(f);
	return kib * 1024;
}

static long
heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static FILE *
file(const struct mp *m, const char *name, const char *mode)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	f = fopen(path, mode);
	if (f == NULL)
		UTIL_DIE("%s: %s", path, strerror(errno));
	return f;
}

/* @return whether each has its message */
static bool
progress_all(int n)
{
	int n_done = 0;

	for (int i = 0; i < n; i++) {
		ucp_worker_progress(workers[i]);
		n_done += util_done(&ops[i]);
	}
	return n_done == n;
}

/* Many workers, and a message to each. */
static void
host(struct mp *m, int n)
{
	FILE *f = file(m, "many", "w");
	int i;

	for (i = 0; i < n; i++) {
		ucp_address_t *addr;
		size_t len;

		workers[i] = util_worker(m->ctx, UCS_THREAD_MODE_SINGLE);
		UTIL_OK(ucp_worker_get_address(workers[i], &addr, &len));
		if (fwrite(&len, sizeof(len), 1, f) != 1 || fwrite(addr, len, 1, f) != 1)
			UTIL_DIE("an address can't be written");
		ucp_worker_release_address(workers[i], addr);
		util_recv(&ops[i], workers[i], bufs[i], LEN, (unsigned)i, UTIL_ALL_BITS, UTIL_NO_IMM);
	}
	fclose(f);
	mp_mark(m, "hosted");
	MP_UNTIL(m, progress_all(n) && mp_exists(m, "told"));
	for (i = 0; i < n; i++) {
		if (memcmp(bufs[i], &i, sizeof(i)) != 0)
			UTIL_DIE("worker %d did not get its message", i);
	}
}

static void
know(struct mp *m, FILE *f, ucp_ep_h *eps, int from, int n)
{
	ucp_ep_params_t params;
	char addr[4096];
	size_t len;

	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
	params.address = (const ucp_address_t *)addr;
	for (int i = from; i < n; i++) {
		if (fread(&len, sizeof(len), 1, f) != 1 || len > sizeof(addr) ||
			fread(addr, len, 1, f) != 1)
			UTIL_DIE("an address can't be read");
		UTIL_OK(ucp_ep_create(m->w, &params, &eps[i]));
	}
}

/* To each the number of its worker. */
static void
reach(struct mp *m, ucp_ep_h *eps, int from, int n)
{
	static uint8_t out[MOST][LEN];

	for (int i = from; i < n; i++) {
		memcpy(out[i], &i, sizeof(i));
		util_send(&ops[i], eps[i], out[i], LEN, (unsigned)i, UTIL_NBX);
	}
	for (int i = from; i < n; i++) {
		MP_UNTIL(m, util_done(&ops[i]));
		util_free(&ops[i]);
	}
	UTIL_OK(ucp_worker_flush(m->w));
}

int
main(int argc, char **argv)
{
	static ucp_ep_h eps[MOST];
	long at[3], in_heap[3];
	struct mp m;
	FILE *f, *many;
	int n;

	mp_open(&m, argc, argv);
	n = atoi(argv[4]);
	if (n < 2 || n > MOST)
		UTIL_DIE("%d workers", n);
	if (m.rank == 1) {
		host(&m, n);
		_exit(0);
	}
	MP_UNTIL(&m, mp_exists(&m, "hosted"));
	many = file(&m, "many", "r");
	know(&m, many, eps, 0, 1);
	reach(&m, eps, 0, 1);
	at[0] = resident();
	in_heap[0] = heap();
	know(&m, many, eps, 1, n);
	at[1] = resident();
	in_heap[1] = heap();
	reach(&m, eps, 1, n);
	at[2] = resident();
	in_heap[2] = heap();
	f = file(&m, "grown", "w");
	fprintf(f, "addressed %ld, heap %ld, connected %ld, heap %ld\n", (at[1] - at[0]) / (n - 1),
		(in_heap[1] - in_heap[0]) / (n - 1), (at[2] - at[0]) / (n - 1),
		(in_heap[2] - in_heap[0]) / (n - 1));
	fclose(f);
	fclose(many);
	mp_mark(&m, "told");
	_exit(0); /* what becomes of the eps is no matter here */
}
