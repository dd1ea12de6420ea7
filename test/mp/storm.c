/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * storm.c - all ranks talk to all, in all ways, while the runner kills some and starts them again, stops others
 * for a while, and has them fork
 *
 * STORM FOLDER RANK N LIFE: each start of a rank is a life with a number of its own, greater than all before.
 * It writes how it is reached to FOLDER/who.RANK. Before the runner kills it makes killed.LIFE: an error of any
 * other peer ends the program. SIGUSR1 asks for a child, which ends at once, or a little later, or becomes
 * another program.
 *
 * Design notes
 * - What one life sends to another has numbers from 0 on, of each kind. So nothing can be missing, come twice
 * or be of somebody else without being noticed.
 * - At the end ("stop") each life writes how much it has sent to each, and waits until it has received as much
 * as the others tell.
 */
#define MP_FEATURES (UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA)
#include "mp.h"

#include <signal.h>
#include <sys/wait.h>

enum { WINDOW = 4, AM_IN = 4 * WINDOW, RANKS = 16, MAX = 150000, PIECE = 40000, SLOT = 32768, ID = 9 };
enum { TAGGED, ACTIVE, STREAMED, N_KINDS };

/* What a life reports. */
struct who {
	uint64_t life, mem;
	uint32_t addr_len, key_len;
	uint8_t addr[2048], key[256];
};

/* How much was sent to each. */
struct sums {
	struct {
		uint64_t life, n[N_KINDS];
	} to[RANKS];
};

/* An operation, asked about now and then. */
struct act {
	void *req;
	ucs_status_t status;
	uint64_t n;
	size_t len;
	bool used;
	uint8_t *buf;
};

struct am_head {
	uint64_t life, n;
	uint32_t rank, pad;
};

struct peer {
	struct who who;
	ucp_ep_h ep; /* NULL: not met */
	ucp_rkey_h key;
	bool failed;
	struct act tag_out[WINDOW], tag_in[WINDOW], am_out[WINDOW], am_in[AM_IN];
	struct am_head head[WINDOW];
	struct act stream_out, stream_in, put;
	unsigned put_step;
	uint64_t sent[N_KINDS], got[N_KINDS], am_next, tag_next, n_puts;
};

static struct mp m;
static struct peer peers[RANKS];
static struct sums last[RANKS]; /* at the end: what each rank says */
static uint64_t life, turns, n_children;
static uint8_t *mem;
static volatile sig_atomic_t fork_wanted;

static size_t
length(uint64_t key)
{
	static const size_t lens[] = {8, 8, 100, 2000, 8, 9000, 30000, 8, MAX, 1, 0, 16};

	return lens[util_mix(key) % 12];
}

static uint64_t
key_of(uint64_t from, uint64_t to, int kind, uint64_t n)
{
	return util_mix(from * 7919 + to) + (uint64_t)kind * 77777 + n * 31;
}

static void
begin(struct act *a, void *ret)
{
	a->used = true;
	a->req = UCS_PTR_IS_PTR(ret) ? ret : NULL;
	a->status = UCS_PTR_IS_PTR(ret) ? UCS_INPROGRESS : UCS_PTR_STATUS(ret);
}

static bool
over(struct act *a)
{
	if (a->req == NULL)
		return true;
	a->status = ucp_request_check_status(a->req);
	if (a->status == UCS_INPROGRESS)
		return false;
	ucp_request_free(a->req);
	a->req = NULL;
	return true;
}

/* All have received everything: from now on they leave. */
static bool
all_done(void)
{
	char name[64];

	for (int i = 0; i < m.n; i++) {
		snprintf(name, sizeof(name), "count.%d", i);
		if (!mp_exists(&m, name))
			return false;
	}
	return true;
}

static bool
was_killed(const struct peer *p)
{
	char name[64];

	snprintf(name, sizeof(name), "killed.%llu", (unsigned long long)p->who.life);
	return mp_exists(&m, name);
}

/* Whether it went well; if not its peer has to be one that was killed. */
static bool
well(struct peer *p, const struct act *a, const char *what)
{
	if (a->status == UCS_OK)
		return true;
	if (!was_killed(p) && !all_done())
		UTIL_DIE("life %llu of rank %d: %s to rank %d, who lives: %s", (unsigned long long)life, m.rank,
			what, (int)(p - peers), ucs_status_string(a->status));
	p->failed = true;
	return false;
}

static void
failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct act a = {.status = status};

	(void)ep;
	(void)well(arg, &a, "endpoint");
	((struct peer *)arg)->failed = true;
}

/* --- of each kind, what goes out and what comes in --- */

static ucp_tag_t
tag_of(uint64_t from, uint64_t n)
{
	return from << 32 | n;
}

static void
tag_out(struct peer *p)
{
	struct act *a = &p->tag_out[p->sent[TAGGED] % WINDOW];
	ucp_request_param_t param = {.op_attr_mask = 0};
	uint64_t n = p->sent[TAGGED], key = key_of(life, p->who.life, TAGGED, n);

	if (a->used && (!over(a) || !well(p, a, "tag send")))
		return;
	a->len = length(key);
	util_fill(a->buf, a->len, key);
	/* every third waits for its receiver, so that nobody is far ahead */
	begin(a, n % 3 == 0 ? ucp_tag_send_sync_nbx(p->ep, a->buf, a->len, tag_of(life, n), &param)
			    : ucp_tag_send_nbx(p->ep, a->buf, a->len, tag_of(life, n), &param));
	p->sent[TAGGED]++;
}

static void
tag_post(struct peer *p)
{
	struct act *a = &p->tag_in[p->tag_next % WINDOW];
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};

	begin(a, ucp_tag_recv_nbx(m.w, a->buf, MAX, tag_of(p->who.life, p->tag_next), UTIL_ALL_BITS, &param));
	p->tag_next++;
}

static void
tag_in(struct peer *p)
{
	struct act *a = &p->tag_in[p->got[TAGGED] % WINDOW];
	uint64_t n = p->got[TAGGED], key = key_of(p->who.life, life, TAGGED, n);
	ucp_tag_recv_info_t info = {.length = 0};

	if (a->req == NULL || ucp_tag_recv_request_test(a->req, &info) == UCS_INPROGRESS)
		return;
	(void)over(a);
	if (!well(p, a, "tag receive"))
		return;
	if (info.length != length(key) || !util_check(a->buf, info.length, key))
		UTIL_DIE("rank %d: tagged message %llu of rank %d: %zu bytes instead of %zu", m.rank,
			(unsigned long long)n, (int)(p - peers), info.length, length(key));
	p->got[TAGGED]++;
	tag_post(p);
}

static void
am_out(struct peer *p)
{
	uint64_t n = p->sent[ACTIVE], key = key_of(life, p->who.life, ACTIVE, n);
	struct act *a = &p->am_out[n % WINDOW];
	struct am_head *h = &p->head[n % WINDOW];
	ucp_request_param_t param = {.op_attr_mask = 0};

	if (a->used && (!over(a) || !well(p, a, "am send")))
		return;
	if (p->got[TAGGED] == 0) /* it may not know of this life yet */
		return;
	a->len = length(key);
	util_fill(a->buf, a->len, key);
	*h = (struct am_head){life, n, (uint32_t)m.rank, 0};
	begin(a, ucp_am_send_nbx(p->ep, ID, h, sizeof(*h), a->buf, a->len, &param));
	p->sent[ACTIVE]++;
}

static void
am_check(struct peer *p, uint64_t n, const void *data, size_t len)
{
	uint64_t key = key_of(p->who.life, life, ACTIVE, n);

	if (len != length(key) || !util_check(data, len, key))
		UTIL_DIE("rank %d: active message %llu of rank %d is damaged", m.rank, (unsigned long long)n,
			(int)(p - peers));
	p->got[ACTIVE]++;
}

static void
am_in(struct peer *p)
{
	for (unsigned i = 0; i < AM_IN; i++) {
		struct act *a = &p->am_in[i];

		if (!a->used || !over(a))
			continue;
		a->used = false;
		if (well(p, a, "am data"))
			am_check(p, a->n, a->buf, a->len);
	}
}

static ucs_status_t
am_cb(void *arg, const void *header, size_t header_len, void *data, size_t len,
	const ucp_am_recv_param_t *param)
{
	ucp_request_param_t rp = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	struct am_head h;
	struct peer *p;
	struct act *a;

	(void)arg;
	if (header_len != sizeof(h))
		UTIL_DIE("rank %d: a header of %zu bytes", m.rank, header_len);
	memcpy(&h, header, sizeof(h));
	if (h.rank >= (uint32_t)m.n)
		UTIL_DIE("rank %d: an active message of rank %u", m.rank, h.rank);
	p = &peers[h.rank];
	/* the last words of one that was killed */
	if (h.life < p->who.life || (h.life == p->who.life && p->ep == NULL))
		return UCS_OK;
	if (h.life > p->who.life)
		UTIL_DIE("rank %d: an active message of rank %u's life %llu, which was told nothing yet",
			m.rank, h.rank, (unsigned long long)h.life);
	/* of one that was killed, what it had announced may be missing */
	if (h.n != p->am_next && !(h.n > p->am_next && was_killed(p)))
		UTIL_DIE("rank %d: active message %llu of rank %u instead of %llu", m.rank,
			(unsigned long long)h.n, h.rank, (unsigned long long)p->am_next);
	p->am_next = h.n + 1;
	if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
		am_check(p, h.n, data, len);
		return UCS_OK;
	}
	am_in(p);
	for (a = p->am_in; a < p->am_in + AM_IN && a->used;)
		a++;
	if (a == p->am_in + AM_IN || len > MAX)
		UTIL_DIE("rank %d: active message %llu of rank %u came too early", m.rank,
			(unsigned long long)h.n, h.rank);
	a->n = h.n;
	a->len = len;
	begin(a, ucp_am_recv_data_nbx(m.w, data, a->buf, len, &rp));
	return UCS_INPROGRESS;
}

static uint8_t
stream_byte(uint64_t key, uint64_t at)
{
	return (uint8_t)(key + at * 131 + (at >> 8) * 7);
}

static void
stream_out(struct peer *p)
{
	uint64_t at = p->sent[STREAMED], key = key_of(life, p->who.life, STREAMED, 0);
	ucp_request_param_t param = {.op_attr_mask = 0};
	struct act *a = &p->stream_out;

	if (a->used && (!over(a) || !well(p, a, "stream send")))
		return;
	a->len = 1 + length(key + at) % PIECE;
	for (size_t i = 0; i < a->len; i++)
		a->buf[i] = stream_byte(key, at + i);
	begin(a, ucp_stream_send_nbx(p->ep, a->buf, a->len, &param));
	p->sent[STREAMED] += a->len;
}

static void
stream_in(struct peer *p)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
	uint64_t at = p->got[STREAMED], key = key_of(p->who.life, life, STREAMED, 0);
	struct act *a = &p->stream_in;
	size_t len = 0;

	if (a->req != NULL) {
		if (ucp_stream_recv_request_test(a->req, &len) == UCS_INPROGRESS)
			return;
		(void)over(a);
		if (!well(p, a, "stream receive"))
			return;
		for (size_t i = 0; i < len; i++)
			if (a->buf[i] != stream_byte(key, at + i))
				UTIL_DIE("rank %d: byte %llu of rank %d's stream differs", m.rank,
					(unsigned long long)(at + i), (int)(p - peers));
		p->got[STREAMED] += len;
	}
	begin(a, ucp_stream_recv_nbx(p->ep, a->buf, PIECE, &len, &param));
	if (a->req == NULL)
		(void)well(p, a, "stream receive");
}

/* Into this rank's slot of the peer's memory, and back. */
static void
put(struct peer *p, bool stop)
{
	uint64_t key = key_of(life, p->who.life, N_KINDS, p->n_puts);
	uint64_t remote = p->who.mem + (uint64_t)m.rank * SLOT;
	ucp_request_param_t param = {.op_attr_mask = 0};
	struct act *a = &p->put;

	if (a->used && (!over(a) || !well(p, a, "put and get")))
		return;
	switch (p->put_step) {
	case 0:
		if (stop)
			return;
		a->len = 1 + util_mix(key) % (SLOT - 1);
		util_fill(a->buf, a->len, key);
		begin(a, ucp_put_nbx(p->ep, a->buf, a->len, remote, p->key, &param));
		break;
	case 1:
		begin(a, ucp_ep_flush_nbx(p->ep, &param));
		break;
	case 2:
		memset(a->buf, 0, a->len);
		begin(a, ucp_get_nbx(p->ep, a->buf, a->len, remote, p->key, &param));
		break;
	default:
		if (!util_check(a->buf, a->len, key))
			UTIL_DIE("rank %d: what was put into rank %d's memory is not there", m.rank,
				(int)(p - peers));
		p->n_puts++;
		p->put_step = 0;
		return;
	}
	p->put_step++;
}

/* --- peers that come and go --- */

static struct act *
act_at(struct peer *p, unsigned i)
{
	struct act *const lists[] = {p->tag_out, p->tag_in, p->am_out};
	struct act *const ones[] = {&p->stream_out, &p->stream_in, &p->put};

	if (i < 3 * WINDOW)
		return &lists[i / WINDOW][i % WINDOW];
	i -= 3 * WINDOW;
	if (i < AM_IN)
		return &p->am_in[i];
	return i < AM_IN + 3 ? ones[i - AM_IN] : NULL;
}

/* All that waits for it ends; then it is as if it had never been. */
static void
part(struct peer *p)
{
	ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
	struct act close = {.used = false}, *a;

	for (unsigned i = 0; i < WINDOW; i++)
		if (p->tag_in[i].req != NULL)
			ucp_request_cancel(m.w, p->tag_in[i].req);
	if (p->stream_in.req != NULL)
		ucp_request_cancel(m.w, p->stream_in.req);
	ucp_rkey_destroy(p->key);
	begin(&close, ucp_ep_close_nbx(p->ep, &force));
	MP_UNTIL(&m, over(&close));
	for (unsigned i = 0; (a = act_at(p, i)) != NULL; i++) {
		MP_UNTIL(&m, over(a));
		a->used = false;
	}
	p->ep = NULL;
}

static bool
who_read(int rank, struct who *who)
{
	char path[512];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "%s/who.%d", m.dir, rank);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	ok = fread(who, sizeof(*who), 1, f) == 1;
	fclose(f);
	return ok;
}

/* Know the life that this rank has now, when it is a new one. */
static void
meet(int rank)
{
	struct peer *p = &peers[rank];
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
						UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
						UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {failed, p}};
	struct act a = {.status = UCS_OK};
	struct who who;

	if (!who_read(rank, &who) || who.life <= p->who.life)
		return;
	if (p->ep != NULL) { /* the next turn parts from the one before */
		p->failed = true;
		return;
	}
	memset(p->sent, 0, sizeof(p->sent));
	memset(p->got, 0, sizeof(p->got));
	p->am_next = p->tag_next = p->put_step = 0;
	p->failed = false;
	p->who = who;
	params.address = (const ucp_address_t *)p->who.addr;
	a.status = ucp_ep_create(m.w, &params, &p->ep);
	if (!well(p, &a, "endpoint")) { /* it is dead by now: there will be another */
		p->ep = NULL;
		return;
	}
	a.status = ucp_ep_rkey_unpack(p->ep, p->who.key, &p->key);
	if (a.status != UCS_OK)
		UTIL_DIE("rank %d: the key of rank %d: %s", m.rank, rank, ucs_status_string(a.status));
	for (unsigned i = 0; i < WINDOW; i++)
		tag_post(p);
}

static void
child(void)
{
	pid_t pid;

	if (!fork_wanted)
		return;
	fork_wanted = 0;
	n_children++;
	pid = fork();
	if (pid == 0) {
		if (n_children % 3 == 0)
			execlp("true", "true", (char *)NULL);
		if (n_children % 3 == 1)
			usleep(50000);
		_exit(0);
	}
	if (pid < 0)
		UTIL_DIE("fork: %s", strerror(errno));
}

static void
turn(bool stop)
{
	ucp_worker_progress(m.w);
	child();
	for (int i = 0; i < m.n; i++) {
		struct peer *p = &peers[i];

		if (i == m.rank)
			continue;
		if (p->ep != NULL && p->failed)
			part(p);
		if (p->ep == NULL) {
			if (turns % 256 == 0)
				meet(i);
			continue;
		}
		if (turns % 4096 == 0)
			meet(i);
		tag_in(p);
		am_in(p);
		stream_in(p);
		put(p, stop);
		if (stop)
			continue;
		tag_out(p);
		am_out(p);
		stream_out(p);
	}
	if (turns++ % 1024 == 0)
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
}

/* --- the end --- */

static void
file_write(const char *name, int rank, const void *data, size_t len)
{
	char path[512], tmp[520];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%d", m.dir, name, rank);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	f = fopen(tmp, "w");
	if (f == NULL || fwrite(data, 1, len, f) != len || fclose(f) != 0 || rename(tmp, path) != 0)
		UTIL_DIE("%s: %s", path, strerror(errno));
}

static bool
sums_read(int rank)
{
	char path[512];
	FILE *f;
	bool ok;

	if (last[rank].to[rank].life != 0)
		return true;
	snprintf(path, sizeof(path), "%s/sums.%d", m.dir, rank);
	f = fopen(path, "r");
	if (f == NULL)
		return false;
	ok = fread(&last[rank], sizeof(last[rank]), 1, f) == 1;
	fclose(f);
	return ok;
}

static bool
all_came(void)
{
	for (int i = 0; i < m.n; i++) {
		struct peer *p = &peers[i];

		if (i == m.rank)
			continue;
		if (!sums_read(i) || p->ep == NULL || p->who.life != last[i].to[i].life || p->put_step != 0)
			return false;
		for (int k = 0; k < N_KINDS; k++) {
			if (last[i].to[m.rank].life == life && p->got[k] > last[i].to[m.rank].n[k])
				UTIL_DIE("rank %d: more of kind %d from rank %d than was sent", m.rank, k, i);
			if (last[i].to[m.rank].life == life && p->got[k] < last[i].to[m.rank].n[k])
				return false;
		}
	}
	return true;
}

static void
say_what_lacks(void)
{
	for (int i = 0; i < m.n; i++)
		for (int k = 0; i != m.rank && k < N_KINDS; k++)
			fprintf(stderr, "rank %d from %d, kind %d: %llu of %llu, life %llu of %llu%s\n", m.rank,
				i, k, (unsigned long long)peers[i].got[k],
				(unsigned long long)last[i].to[m.rank].n[k],
				(unsigned long long)peers[i].who.life, (unsigned long long)last[i].to[i].life,
				peers[i].ep == NULL ? ", not met" : "");
}

static void
end(void)
{
	uint64_t limit = util_now_ns() + MP_DEADLINE_S / 2 * 1000000000ull, total[N_KINDS + 1] = {0};
	struct sums mine = {.to = {{.life = 0}}};
	char text[256];
	int i;

	for (i = 0; i < m.n; i++) {
		mine.to[i].life = i == m.rank ? life : peers[i].who.life;
		memcpy(mine.to[i].n, peers[i].sent, sizeof(mine.to[i].n));
	}
	file_write("sums", m.rank, &mine, sizeof(mine));
	while (!all_came()) {
		turn(true);
		if (util_now_ns() > limit) {
			say_what_lacks();
			UTIL_DIE("rank %d: not all has come", m.rank);
		}
	}
	for (i = 0; i < m.n; i++) {
		for (int k = 0; k < N_KINDS; k++)
			total[k] += peers[i].got[k];
		total[N_KINDS] += peers[i].n_puts;
	}
	snprintf(text, sizeof(text), "%llu %llu %llu %llu %llu\n", (unsigned long long)total[0],
		(unsigned long long)total[1], (unsigned long long)total[2], (unsigned long long)total[3],
		(unsigned long long)n_children);
	file_write("count", m.rank, text, strlen(text));
	while (!all_done()) { /* the others' last messages need our turns */
		turn(true);
		if (util_now_ns() > limit)
			UTIL_DIE("rank %d: not all end", m.rank);
	}
}

static void
on_usr1(int sig)
{
	(void)sig;
	fork_wanted = 1;
}

static void
ready(void)
{
	ucp_mem_map_params_t mp = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.length = RANKS * SLOT};
	ucp_am_handler_param_t am = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = ID,
		.cb = am_cb};
	struct who who = {.life = life};
	ucp_address_t *addr;
	ucp_mem_h memh;
	size_t len;
	void *key;

	mp.address = mem = calloc(1, mp.length);
	UTIL_OK(ucp_mem_map(m.ctx, &mp, &memh));
	UTIL_OK(ucp_rkey_pack(m.ctx, memh, &key, &len));
	memcpy(who.key, key, len);
	who.key_len = (uint32_t)len;
	ucp_rkey_buffer_release(key);
	UTIL_OK(ucp_worker_get_address(m.w, &addr, &len));
	memcpy(who.addr, addr, len);
	who.addr_len = (uint32_t)len;
	ucp_worker_release_address(m.w, addr);
	who.mem = (uintptr_t)mem;
	UTIL_OK(ucp_worker_set_am_recv_handler(m.w, &am));
	for (int i = 0; i < m.n; i++) {
		struct act *a;

		for (unsigned k = 0; (a = act_at(&peers[i], k)) != NULL; k++)
			a->buf = malloc(MAX);
	}
	file_write("who", m.rank, &who, sizeof(who));
}

int
main(int argc, char **argv)
{
	signal(SIGUSR1, on_usr1);
	mp_open(&m, argc, argv);
	if (argc != 5 || m.n > RANKS)
		UTIL_DIE("usage: %s FOLDER RANK N LIFE", argv[0]);
	life = strtoull(argv[4], NULL, 10);
	ready();
	while (turns % 1024 != 0 || !mp_exists(&m, "stop"))
		turn(false);
	end();
	for (int i = 0; i < m.n; i++)
		if (peers[i].ep != NULL)
			part(&peers[i]);
	ucp_worker_destroy(m.w);
	ucp_cleanup(m.ctx);
	return 0;
}
