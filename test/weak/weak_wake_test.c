/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak_wake_test.c - completions, and an application that sleeps until they come, on a weakly ordered machine
 *
 * Design notes
 * wake.c, sleep.c and the ring of completions run as they are, of a worker with a reactor. progress() is what
 * plx_worker_progress() does with them.
 */
#include <string.h>

#include "worker_int.h"

enum { APP, SIGNAL }; /* events */

static struct plx_worker w;
static struct rte_ring empty;
static uint64_t done, found; /* of messages that need no completion */

/* -- in place of other parts -- */

void *plx_mem_alloc(size_t len) { return weak_alloc(len); }
void plx_mem_free(void *p) { (void)p; }
bool plx_inbox_empty(const struct plx_inbox *in) { (void)in; return true; }
void plx_poller_return(struct plx_poller *p) { (void)p; }
bool plx_poller_take_slow(struct plx_poller *p, bool polls) { (void)p; (void)polls; return false; }
void plx_poller_give_taken(struct plx_poller *p) { (void)p; }
bool plx_poller_is_near(const struct plx_poller *p) { (void)p; return false; }
void plx_poller_asks_long(struct plx_poller *p) { (void)p; }
uint64_t plx_chans_next_ticks(const struct plx_chans *x) { (void)x; return UINT64_MAX; }
bool plx_cm_waits(const struct plx_cm *cm) { (void)cm; return false; }
int plx_queue_efd(struct plx_queue *q) { (void)q; return -EOPNOTSUPP; }
int plx_queue_arm(struct plx_queue *q) { (void)q; return 0; }
void plx_queue_disarm(struct plx_queue *q) { (void)q; }
void plx_queue_control(struct plx_queue *q) { (void)q; }
uint64_t plx_queue_deadline(struct plx_queue *q) { (void)q; return UINT64_MAX; }
uint64_t plx_timer_wait_ns(uint64_t due_ticks, uint64_t now_ticks) { return due_ticks - now_ticks; }

uint64_t
plx_timers_next_but(const struct plx_timers *t, const struct plx_timer *but)
{
	(void)t;
	(void)but;
	return UINT64_MAX;
}

unsigned plx_timers_run(struct plx_timers *t, uint64_t now_ticks) { (void)t; (void)now_ticks; return 0; }
bool worker_flush_waits(const struct plx_worker *v) { (void)v; return false; }
void worker_waits_tell(struct plx_worker *v, uint64_t now_ticks) { (void)v; (void)now_ticks; }

/* -- a worker -- */

static void
setup(void)
{
	memset((void *)&w, 0, sizeof(w));
	w.dedicated = w.wake.on = true;
	w.wake.app_fd = w.wake.efd = APP;
	w.wake.signal_fd = SIGNAL;
	w.am.ring = &empty;
	if (plx_cq_create(&w.reqs.cq) != 0)
		abort();
	done = found = 0;
	weak_share(w.reqs.cq->cells, PLX_CQ_LEN * sizeof(w.reqs.cq->cells[0]));
	weak_share(&found, sizeof(found));
	weak_name(&w.wake.armed, "armed");
	weak_name(&w.wake.n_events, "events");
	weak_name(&w.reqs.cq->done, "done");
	for (unsigned i = 0; i < 2; i++)
		weak_name(&w.reqs.cq->cells[i].seq, "seq");
}

static bool
complete(uint64_t tag)
{
	struct plx_cq_cell *c = plx_cq_take(w.reqs.cq);

	if (c == NULL)
		return false;
	c->tag = tag;
	plx_cq_give(w.reqs.cq, c);
	return true;
}

/* @return what has come */
static unsigned
progress(void)
{
	struct plx_cq *cq = w.reqs.cq;
	uint32_t seen = atomic_load_explicit(&w.wake.n_events, memory_order_acquire);
	unsigned n = seen != w.wake.events_seen;
	const struct plx_cq_cell *c;

	if (n != 0)
		weak_check(found == 1);
	w.wake.events_seen = seen;
	if (w.app_work & WORKER_APP_ARMED)
		worker_disarm(&w);
	for (c = plx_cq_next(cq); c != NULL && n < 2; c = plx_cq_next(cq), n++) {
		done += c->tag;
		cq->tail++;
	}
	plx_cq_done(cq);
	return n;
}

static void
complete_one(void)
{
	weak_check(complete(1));
	worker_wake_app(&w, 0);
}

static void end(void) { weak_check(done == 1); }

static void
find(void)
{
	found = 1;
	worker_wake_app(&w, 1);
}

static void
sleep_until_some(void)
{
	while (progress() == 0)
		if (plx_worker_arm(&w) == 0)
			weak_event_wait(APP);
}

/* Full: a cell is written again once the application has taken what lay there. */
static void
setup_full(void)
{
	setup();
	while (complete(0))
		;
}

static void
complete_again(void)
{
	while (!complete(1))
		weak_pause();
}

static void take_two(void) { weak_check(progress() == 2); }

static const struct weak_scene completed = {.name = "an application sleeps until a request completes", setup,
	{complete_one, sleep_until_some}, end};
static const struct weak_scene counted = {.name = "an application sleeps until a message is found", setup,
	{find, sleep_until_some}, NULL};
static const struct weak_scene again = {.name = "a completion's cell is used again", setup_full,
	{complete_again, take_two}, NULL};

static const struct weak_row rows[] = {
	{&completed, WEAK_NOTHING, {0}},
	{&completed, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&completed, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&completed, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "seq")},
	{&completed, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "seq")},
	{&counted, WEAK_NOTHING, {0}},
	{&counted, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 0}},
	{&counted, WEAK_STUCK, {WEAK_FENCE, NULL, WEAK_ANY, 1}},
	{&counted, WEAK_RACE, WEAK_WITHOUT(WEAK_RMW, "events")},
	{&counted, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "events")},
	{&again, WEAK_NOTHING, {0}},
	{&again, WEAK_RACE, WEAK_WITHOUT(WEAK_STORE, "done")},
	{&again, WEAK_RACE, WEAK_WITHOUT(WEAK_LOAD, "done")},
};

int
main(void)
{
	return weak_main(rows, sizeof(rows) / sizeof(rows[0]));
}
