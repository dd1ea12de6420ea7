/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_shm.c - a peer that writes whatever it likes into a worker's segment
 *
 * Design notes
 * The input is a program of writes: slots, cells, mail, doorbells, any eight bytes.
 * The peer's address is that of a process which only sleeps; an input may change all
 * of it but the process and the file, which are not ours to choose.
 */
#include "fuzz.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "plx_unit_shm.h"
#include "ucp_int.h"

#define N_COMMANDS 300
#define BIG	   5000

static ucp_context_h context;
static ucp_worker_h worker;
static struct shm_addr peer;
static struct shm_seg *seg;
static uint64_t pos[SHM_SLOTS_MAX], mail_pos;

/* Before there is an EAL. */
static void
peer_start(void)
{
	struct plx_conf conf;
	struct plx_queue *q = NULL;
	struct plx_dev *dev;
	struct plx_addr addr;
	int fd[2];
	pid_t pid;

	FUZZ_CHECK(pipe(fd) == 0);
	pid = fork();
	FUZZ_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		plx_conf_defaults(&conf);
		/* as in fuzz_start(): tests that run beside it count huge pages */
		if (plx_dev_register(&plx_shm_ops) != 0 ||
			plx_conf_set(&conf, "shm.huge", "no", PLX_CONF_FROM_API, NULL) != 0 ||
			plx_dev_open("shm", &conf, &dev) != 0 || plx_queue_open(dev, &conf, NULL, &q) != 0)
			_exit(1);
		plx_queue_addr(q, &addr);
		if (write(fd[1], addr.bytes, sizeof(peer)) != (ssize_t)sizeof(peer))
			_exit(1);
		for (;;)
			pause();
	}
	FUZZ_CHECK(read(fd[0], &peer, sizeof(peer)) == (ssize_t)sizeof(peer));
	close(fd[0]);
	close(fd[1]);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const settings[][2] = {{"worker.wait", "spin"},
		{"worker.peer_check_ms", "60000"}, {"shm.fast_peers", "4"}};

	(void)argc;
	(void)argv;
	peer_start();
	fuzz_start();
	context = fuzz_context("shm", settings, RTE_DIM(settings));
	return 0;
}

static struct shm_addr
sender(struct fuzz_in *in, bool change)
{
	struct shm_addr a = peer, x = {.uid = 0};

	if (!change)
		return a;
	a.uid ^= fuzz_u8(in);
	fuzz_bytes(in, &x, 4);
	a.host ^= x.uid & 1;
	a.proc ^= x.uid >> 8 & 1;
	a.pad ^= x.uid >> 16 & 0xff;
	return a;
}

static void
slot_take(struct fuzz_in *in, uint8_t how)
{
	unsigned i = how & 3;
	struct shm_slot *slot = shm_slot_at(seg, i);

	slot->sender = sender(in, (how & 4) != 0);
	atomic_store(&slot->state, how & 8 ? fuzz_u16(in) : SHM_SLOT_STATE(peer.proc, SHM_SLOT_READY));
	atomic_fetch_or(&seg->doorbell, UINT64_C(1) << i);
	if ((how & 16) == 0)
		pos[i] = atomic_load(&slot->rx_pos);
}

/* A cell with any message, in its place or not. */
static void
cell_put(struct fuzz_in *in, uint8_t how)
{
	unsigned i = how & 3;
	struct shm_slot *slot = shm_slot_at(seg, i);
	struct shm_cell *cell = shm_cell_at(slot->cells, pos[i]);
	union shm_cell_head head = {.seq = shm_seq(pos[i]), .kind = SHM_CELL_INLINE};
	uint8_t len = fuzz_u8(in) % (SHM_CELL_BODY + 1);

	head.op = fuzz_u8(in) % (PLX_WIRE_N + 1);
	head.len = len;
	fuzz_bytes(in, cell->body, len);
	if (how & 4) { /* where it lies, or nonsense */
		head.kind = SHM_CELL_DATA;
		if (how & 8) {
			union shm_ref ref = {.word = 0};

			ref.off = fuzz_u16(in) * 8u;
			ref.len = fuzz_u16(in) % (SHM_MSG_MAX + 2);
			memcpy(cell->body, &ref, sizeof(ref));
		}
	}
	if (how & 16)
		fuzz_bytes(in, &head, sizeof(head));
	atomic_store(&cell->head, head.word);
	atomic_fetch_or(&seg->doorbell, UINT64_C(1) << i);
	pos[i]++;
}

static void
mail_put(struct fuzz_in *in, uint8_t how)
{
	struct shm_mail *m = &seg->mail[mail_pos % SHM_MAIL_CELLS];
	uint64_t state = SHM_MAIL_STATE(peer.proc, mail_pos / SHM_MAIL_CELLS, SHM_MAIL_READY);

	m->len = how & 4 ? fuzz_u16(in) : fuzz_u8(in);
	m->op = fuzz_u8(in) % (PLX_WIRE_N + 1);
	m->sender = sender(in, (how & 8) != 0);
	fuzz_bytes(in, m->body, how & 16 ? 200 : 24);
	if (how & 32)
		fuzz_bytes(in, &state, 4);
	atomic_store(&m->state, state);
	mail_pos++;
}

/* Eight bytes anywhere but where an address names a process. */
static void
poke(struct fuzz_in *in, uint8_t how)
{
	size_t at = (fuzz_u16(in) & ~7u) | (size_t)(how & 0x7c) << 14, slots = SHM_SLOTS_OFF,
	       data = shm_front_len(seg->n_slots, seg->n_slots);
	uint64_t v;

	fuzz_bytes(in, &v, sizeof(v));
	if (at + sizeof(v) > seg->len)
		return;
	if (at >= slots && at < data && (at - slots) % sizeof(struct shm_slot) < SHM_LINE)
		return;
	if (at < offsetof(struct shm_seg, doorbell))
		return;
	if (at >= offsetof(struct shm_seg, mail) && at < slots &&
		(at - offsetof(struct shm_seg, mail)) % SHM_MAIL_CELL < 64)
		return;
	memcpy((char *)seg + at, &v, sizeof(v));
}

static void
turns(struct fuzz_in *in, uint8_t how)
{
	struct plx_worker *w = worker->core;

	(void)in;
	for (unsigned i = 0; i < (how >> 4) + 1u; i++)
		ucp_worker_progress(worker);
	if (how & 4)
		w->check.fn(&w->check, rte_rdtsc());
}

static void
receive(struct fuzz_in *in, uint8_t how)
{
	static uint8_t buf[16][BIG]; /* outlive the worker's requests */
	ucp_request_param_t p = {.op_attr_mask = 0};
	void *req = ucp_tag_recv_nbx(worker, buf[how >> 4], how & 4 ? BIG : 8, fuzz_u8(in), 0, &p);

	if (UCS_PTR_IS_PTR(req))
		ucp_request_free(req);
}

static void (*const commands[])(struct fuzz_in *in, uint8_t how) = {
	slot_take, cell_put, cell_put, mail_put, poke, turns, receive, turns,
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, data + len};
	ucp_worker_params_t wp = {.field_mask = 0};

	FUZZ_CHECK(ucp_worker_create(context, &wp, &worker) == UCS_OK);
	seg = shm_queue(worker->core->queues[0])->seg;
	memset(pos, 0, sizeof(pos));
	mail_pos = 0;
	for (unsigned i = 0; i < N_COMMANDS && fuzz_more(&in); i++) {
		uint8_t cmd = fuzz_u8(&in), how = fuzz_u8(&in);

		commands[cmd % RTE_DIM(commands)](&in, how);
	}
	turns(&in, 0x44);
	ucp_worker_destroy(worker);
	return 0;
}
