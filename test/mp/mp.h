/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * mp.h - one of several processes that find each other through a folder
 *
 * Every program is called as PROGRAM FOLDER RANK N [ARGUMENT...]; rank R writes
 * its worker address to FOLDER/addr.R.
 */
#ifndef MP_H
#define MP_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "../ucp_util.h"

#define MP_DEADLINE_S 100
#ifndef MP_FEATURES
#define MP_FEATURES UCP_FEATURE_TAG
#endif

struct mp {
	const char *dir;
	int rank, n;
	ucp_context_h ctx;
	ucp_worker_h w;
	ucp_ep_h *ep;
	ucp_err_handling_mode_t err_mode;
	unsigned n_err; /* calls of the error handler */
};

/* Run turns until cond holds; the deadline ends the process. */
#define MP_UNTIL(m, cond) \
	do { \
		uint64_t end_ = util_now_ns() + MP_DEADLINE_S * 1000000000ull; \
		unsigned turns_ = 0; \
		while (!(cond)) { \
			ucp_worker_progress((m)->w); \
			if (++turns_ % 1024 == 0 && util_now_ns() > end_) \
				UTIL_DIE("rank %d: not in %d s: %s", (m)->rank, MP_DEADLINE_S, #cond); \
		} \
	} while (0)

static inline bool
mp_exists(const struct mp *m, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	return stat(path, &st) == 0;
}

static inline void
mp_mark(const struct mp *m, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", m->dir, name);
	fd = open(path, O_CREAT | O_WRONLY, 0666);
	if (fd < 0)
		UTIL_DIE("%s: %s", path, strerror(errno));
	close(fd);
}

static inline void
mp_open(struct mp *m, int argc, char **argv)
{
	char path[512], tmp[520];
	ucp_address_t *addr;
	size_t len;
	FILE *f;

	if (argc < 4)
		UTIL_DIE("usage: %s FOLDER RANK N [ARGUMENT...]", argv[0]);
	memset(m, 0, sizeof(*m));
	m->dir = argv[1];
	m->rank = atoi(argv[2]);
	m->n = atoi(argv[3]);
	m->ctx = util_context(MP_FEATURES);
	m->w = util_worker(m->ctx, UCS_THREAD_MODE_SINGLE);
	m->ep = calloc((size_t)m->n, sizeof(*m->ep));
	UTIL_OK(ucp_worker_get_address(m->w, &addr, &len));
	snprintf(path, sizeof(path), "%s/addr.%d", m->dir, m->rank);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	f = fopen(tmp, "w");
	if (f == NULL || fwrite(addr, 1, len, f) != len || fclose(f) != 0 || rename(tmp, path) != 0)
		UTIL_DIE("%s: %s", path, strerror(errno));
	ucp_worker_release_address(m->w, addr);
}

static inline void
mp_err_cb(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct mp *m = arg;

	(void)ep;
	(void)status;
	m->n_err++;
}

/* Wait for the peer's address and make an ep to it. */
static inline void
mp_connect(struct mp *m, int peer)
{
	uint64_t end = util_now_ns() + MP_DEADLINE_S * 1000000000ull;
	ucp_ep_params_t params;
	char path[512], buf[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/addr.%d", m->dir, peer);
	while ((f = fopen(path, "r")) == NULL) {
		if (util_now_ns() > end)
			UTIL_DIE("rank %d: no %s in %d s", m->rank, path, MP_DEADLINE_S);
		usleep(1000);
	}
	if (fread(buf, 1, sizeof(buf), f) == 0)
		UTIL_DIE("%s is empty", path);
	fclose(f);
	memset(&params, 0xa5, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
		UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.address = (const ucp_address_t *)buf;
	params.err_mode = m->err_mode;
	params.err_handler.cb = mp_err_cb;
	params.err_handler.arg = m;
	UTIL_OK(ucp_ep_create(m->w, &params, &m->ep[peer]));
}

static inline void
mp_close_eps(struct mp *m)
{
	void **req = calloc((size_t)m->n, sizeof(*req));
	int i;

	for (i = 0; i < m->n; i++)
		if (m->ep[i] != NULL)
			req[i] = ucp_ep_close_nb(m->ep[i], UCP_EP_CLOSE_MODE_FLUSH);
	for (i = 0; i < m->n; i++) {
		if (UCS_PTR_IS_ERR(req[i]))
			UTIL_DIE("rank %d: close of ep %d: %s", m->rank, i,
				ucs_status_string(UCS_PTR_STATUS(req[i])));
		if (req[i] == NULL)
			continue;
		MP_UNTIL(m, ucp_request_check_status(req[i]) != UCS_INPROGRESS);
		ucp_request_free(req[i]);
		m->ep[i] = NULL;
	}
	free(req);
}

static inline void
mp_close(struct mp *m)
{
	ucp_worker_destroy(m->w);
	ucp_cleanup(m->ctx);
	free(m->ep);
}

static inline uint64_t
mp_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return util_mix(*state >> 11);
}

#endif
