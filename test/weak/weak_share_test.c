/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_share_test.c - puts and gets that both sides copy, on a weakly ordered machine: see weak.h
 *
 * Design notes
 * rma_share.c, rma_help.c and rma_cell.c run as they are. The device copies the first word of a chunk, which stands
 * for all of it. The target's message may come at any time, also before or long after the put that it is of. As soon as
 * a put is over the initiator reads what has arrived, and uses its buffer again: a copy that comes later is a race.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plx_meet.h"
#include "plx_rma_cell.h"
#include "rma_int.h"

#define CHUNK	 PLX_RMA_SHARE_CHUNK
#define CHUNKS	 2
#define LEN	 (CHUNKS * CHUNK)
#define AREA_LEN (PLX_SHARED_RNDV + sizeof(struct plx_rma_cell))

/* One end: its engine, and how it sees the other. */
static struct side {
	struct plx_rma r;
	struct plx_eps eps;
	struct plx_queue q;
	struct plx_peer peer;
	struct plx_ep ep;
} initiator, target;

static alignas(4096) uint8_t area[AREA_LEN];
static uint8_t memory[2][2][LEN]; /* of the first put and of others: from, to */
static uint8_t *from, *to;
static struct plx_req put;
static uint8_t kind;
static bool over, refuses; /* the target's copies fail */
static int err;

static struct plx_rma_cell *
cell(void)
{
	return plx_rma_cell_at(area, AREA_LEN, 0);
}

/* -- in place of other parts -- */

int plx_ep_connect_slow(struct plx_ep *ep) { (void)ep; abort(); }
struct plx_ep *plx_ep_of_slow(struct plx_eps *eps, struct plx_peer *peer) { (void)eps; (void)peer; abort(); }
bool plx_peer_has_left(const struct plx_peer *peer) { (void)peer; return false; }
void plx_queue_control(struct plx_queue *q) { (void)q; abort(); }
bool plx_meet_gone(uint64_t proc) { (void)proc; return false; }
void plx_copy_long(void *a, const void *b, uint64_t len) { (void)a; (void)b; (void)len; abort(); }
int plx_region_hold(const struct plx_region_key *key, uint64_t addr, uint64_t len, uint8_t rights)
{
	(void)rights;
	return key->token == 1 && addr - (uintptr_t)memory < sizeof(memory) && len <= LEN ? 0 : -EACCES;
}
void plx_region_drop(const struct plx_region_key *key) { (void)key; }
struct plx_rma_cell *rma_cell_to_ask(const struct plx_ep *ep) { plx_rma_ep(ep)->cell = 1; return cell(); }
void rma_answered(struct plx_ep *ep, bool did) { (void)ep; (void)did; }

void
plx_rma_over(struct plx_rma *r, struct plx_req *req, int rc)
{
	(void)r;
	(void)req;
	over = true;
	err = rc;
}

unsigned
plx_peer_rma_burst(struct plx_peer *peer, bool to, const struct plx_rma_piece *pieces, unsigned n)
{
	(void)peer; (void)to; (void)pieces; (void)n;
	abort(); /* no put here is one of many */
}

void rma_end(struct plx_rma *r, struct plx_req *req, int rc) { plx_rma_over(r, req, rc); }
void rma_end_later(struct plx_rma *r, struct plx_rma_req *o, struct rma_ended *e) { (void)r; (void)o; (void)e; }
unsigned rma_end_all(struct plx_rma *r, struct rma_ended *ended) { (void)ended; plx_rma_over(r, &put, -ECANCELED); return 1; }

static void *shared_of(struct plx_peer *peer) { (void)peer; return area; }

static int
tx_short(struct plx_peer *peer, uint8_t op, uint64_t hdr, const void *data, uint32_t len)
{
	(void)peer, (void)op, (void)hdr, (void)data, (void)len;
	return 0;
}

static int
device(const struct plx_rma_op *op)
{
	void *there = (void *)(uintptr_t)op->remote;

	weak_copy(op->put ? there : op->local, op->put ? op->local : there, 8);
	return op->peer == &target.peer && refuses ? -EIO : 0; /* a part of it has come */
}

/* -- two sides -- */

static void
side_new(struct side *s)
{
	memset((void *)s, 0, sizeof(*s));
	s->q.shared = area;
	s->q.shared_len = AREA_LEN;
	s->q.peer_shared = shared_of;
	s->q.tx_short = tx_short;
	s->q.rma = device;
	s->peer.q = &s->q;
	s->peer.user = &s->ep;
	s->ep.peer = &s->peer;
	s->ep.eps = &s->eps;
	s->ep.connected = true;
	s->r.share_min = 1;
	s->r.chunk = UINT64_MAX;
	plx_rma_ep(&s->ep)->proven = true;
}

static void
use(unsigned i)
{
	from = memory[i][0];
	to = memory[i][1];
}

static void
setup(void)
{
	side_new(&initiator);
	side_new(&target);
	memset(area, 0, sizeof(area));
	memset(memory, 0, sizeof(memory));
	refuses = false;
	kind = PLX_RMA_PUT;
	weak_share(area, sizeof(area));
	weak_share(memory, sizeof(memory));
	use(0);
	weak_name(&cell()->state, "state");
	weak_name(&cell()->share.next, "next");
	weak_name(&cell()->share.done, "done");
	weak_name(&cell()->share.bad, "bad");
}

static void setup_refused(void) { setup(); refuses = true; }
static void setup_get(void) { setup(); kind = PLX_RMA_GET; }
static void setup_get_refused(void) { setup_refused(); kind = PLX_RMA_GET; }

static uint64_t
word(const uint8_t *at, unsigned chunk)
{
	uint64_t v;

	weak_copy(&v, at + chunk * CHUNK, 8);
	return v;
}

static void
fill(uint8_t *at, unsigned n_chunks, uint64_t v)
{
	for (unsigned i = 0; i < n_chunks; i++)
		weak_copy(at + i * CHUNK, &v, 8);
}

/* The buffer is the program's again. */
static void
reuse(unsigned n_chunks)
{
	fill(put.buf, n_chunks, 0);
}

static struct plx_rma_req *
begin(unsigned n_chunks)
{
	struct plx_rma_req *o = plx_rma_req(&put);

	memset(&put, 0, sizeof(put));
	put.buf = kind == PLX_RMA_GET ? to : from;
	put.len = n_chunks * CHUNK;
	o->ep = &initiator.ep;
	o->kind = kind;
	o->how = PLX_RMA_DEV;
	o->late = true;
	o->remote = (uintptr_t)(kind == PLX_RMA_GET ? from : to);
	o->token = 1;
	over = false;
	return o;
}

static void
put_all(unsigned n_chunks, uint64_t v)
{
	struct plx_rma_req *o = begin(n_chunks);

	fill(from, n_chunks, v);
	while (!over) {
		int rc = rma_share_step(&initiator.r, o);

		weak_check(rc != 0);
		if (rc == -EAGAIN)
			weak_pause();
	}
	weak_check(err == 0);
	for (unsigned i = 0; i < n_chunks; i++)
		weak_check(word(to, i) == v);
	reuse(n_chunks);
}

static void
message(void)
{
	const struct plx_wire_share h = {.cell = 0};

	plx_rma_on_share(&target.r, &target.ep, &h);
}

static void put_one(void) { put_all(2, 7); }
static void put_two(void) { put_all(1, 7); put_all(2, 8); }
static void two_messages(void) { message(); message(); }

/* The target may have a chunk then. It counts in no other put of the cell. */
static void
put_and_leave(void)
{
	struct plx_rma_req *o = begin(1);

	fill(from, 1, 7);
	weak_check(rma_share_step(&initiator.r, o) != 0);
	plx_rma_ep_leave(&initiator.ep);
	use(1);
}

/* Its ep is closed: it stays until the target has no chunk. */
static void
get_and_close(void)
{
	struct plx_rma_req *o = begin(2);

	initiator.r.chunk = 1;
	fill(from, 2, 7);
	weak_check(rma_share_step(&initiator.r, o) != 0);
	if (!over && rma_share_outlives(o, -ECANCELED)) {
		while (!over && rma_share_step(&initiator.r, o) == -EAGAIN)
			weak_pause();
		weak_check(err == -ECANCELED);
	}
	plx_rma_ep_leave(&initiator.ep);
	reuse(2);
}

static void leave_and_put(void) { put_and_leave(); put_all(2, 8); }

static const struct weak_scene one = {.name = "a put", setup, {put_one, message}, NULL};
static const struct weak_scene two = {.name = "two puts", setup, {put_two, message}, NULL};
static const struct weak_scene hints = {.name = "two messages", setup, {put_one, two_messages}, NULL};
static const struct weak_scene refused = {.name = "a target that cannot read", setup_refused,
	{put_one, two_messages}, NULL};
static const struct weak_scene left = {.name = "an initiator that leaves", setup, {leave_and_put, message}, NULL};

static const struct weak_scene get = {.name = "a get", setup_get, {put_one, message}, NULL};
static const struct weak_scene gets = {.name = "two gets", setup_get, {put_two, message}, NULL};
static const struct weak_scene get_refused = {.name = "a target that cannot write", setup_get_refused,
	{put_one, message}, NULL};
static const struct weak_scene closed = {.name = "a get that is closed", setup_get, {get_and_close, message}, NULL};
static const struct weak_scene closed_refused = {.name = "a get that is closed, a target that cannot write",
	setup_get_refused, {get_and_close, message}, NULL};

static const struct weak_row rows[] = {
	{&one, WEAK_NOTHING, {0}},
	{&two, WEAK_NOTHING, {0}},
	{&hints, WEAK_NOTHING, {0}},
	{&refused, WEAK_NOTHING, {0}},
	{&left, WEAK_NOTHING, {0}},
	{&one, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "next")},
	{&one, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "next")},
	{&one, WEAK_RACE, WEAK_WITHOUT(WEAK_RMW, "done")},
	{&one, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "done")},
	{&refused, WEAK_RACE, WEAK_WITHOUT(WEAK_RMW, "bad")},
	{&get, WEAK_NOTHING, {0}},
	{&gets, WEAK_NOTHING, {0}},
	{&get_refused, WEAK_NOTHING, {0}},
	{&closed, WEAK_NOTHING, {0}},
	{&closed_refused, WEAK_NOTHING, {0}},
	{&get, WEAK_RACE, WEAK_WITHOUT(WEAK_RMW, "done")},
	{&get, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "done")},
	{&get_refused, WEAK_RACE, WEAK_WITHOUT(WEAK_RMW, "bad")},
	{&closed, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "done")},
	{&closed_refused, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "bad")},
	/* A description that is read behind the chunk is taken: the model has no load that waits so long. */
	{&two, WEAK_NOTHING, WEAK_WITHOUT(WEAK_RMW, "next")},
	/* These are for offers, of which a scene has none. */
	{&left, WEAK_NOTHING, WEAK_WITHOUT(WEAK_LOAD, "state")},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}
