/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * weak.c - the model: what a load may take, which thread goes on, and all choices one after the other
 */
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "weak.h"
#include "weak_int.h"

#define LOCS	48
#define STORES	64
#define NODES	4096
#define STEPS	4000
#define STACK	(256u << 10)
#define NAMES	32
#define SHARES	8
#define OLD_READS 2 /* of one old value by one thread: a store is visible in the end */
#define LOOKS	3 /* of a waiting loop, while nothing changes */
#define SHOWN	64 /* of the last steps */
#define GRANULES 4096 /* of 8 bytes; a power of two */
#define ARENA	(256u << 10)
#define USES	64

/** What a thread, or a stored value, knows. */
struct view {
	uint8_t at[LOCS];	      /* the oldest value that may be loaded */
	uint16_t clock[WEAK_THREADS]; /* steps of each thread that came before */
};

struct value {
	uint64_t v;
	struct view view; /* for those that acquire */
};

struct loc {
	uintptr_t addr;
	unsigned n;
	uint8_t last_sc; /* last value of a sequentially consistent store */
	struct value s[STORES];
};

/* The step that a thread takes next. */
struct step {
	enum weak_op op;
	uint8_t thread;
	uintptr_t addr; /* WEAK_BARRIER: of this thread */
	int order;
};

enum state { READY, PAUSED, ASLEEP, ENDED };

struct thread {
	ucontext_t context;
	enum state state;
	struct step next;
	struct view view, acquired, released; /* acquired: by relaxed loads, for a fence behind them */
	uint64_t paused_at, looks_at; /* after so many changes */
	unsigned looks;
	uint8_t old_reads[LOCS]; /* of the same old value */
	uintptr_t sleeps_on;
	bool loads;   /* the last step was a load */
	bool fresh;   /* it looks at the newest values, for once */
	bool delayed; /* a store that is taken later: */
	uintptr_t delayed_to;
	unsigned delayed_size;
	uint64_t delayed_value;
	int delayed_order;
};

/* 8 bytes of plain memory: who wrote each last, and who read it since. */
struct granule {
	uintptr_t addr;
	uint32_t run;
	struct {
		uint8_t writer;
		uint16_t wrote, read[WEAK_THREADS];
	} byte[8];
};

/* A choice. */
struct node {
	bool of_thread;
	uint8_t chosen, n; /* n: values to choose from */
	uint8_t may, done; /* threads, a bit each */
};

struct event_log {
	uint8_t thread;
	enum weak_op op;
	int order;
	uintptr_t addr;
	uint64_t value;
	unsigned at, of;
};

static struct {
	const struct weak_scene *scene;
	const struct weak_rule *rule;
	bool on; /* steps are explored */
	unsigned n_threads, self;
	struct thread t[WEAK_THREADS];
	ucontext_t main;
	struct loc locs[LOCS];
	unsigned n_locs;
	struct view fences;
	uint64_t n_changes;
	struct node node[NODES];
	unsigned n_nodes, at_node;
	uint8_t asleep; /* threads whose next step needs no other place: sleep sets */
	enum weak_found found;
	bool cut;
	uint64_t n_runs, n_matches;
	bool partly; /* more orders could be run */
	unsigned n_steps;
	uint32_t run;
	struct granule granule[GRANULES];
	struct { uintptr_t addr; const char *name; } name[NAMES];
	unsigned n_names;
	struct { uintptr_t addr; size_t len; } share[SHARES];
	unsigned n_shares;
	struct { unsigned n; struct view view; } event[WEAK_EVENTS];
	struct { enum weak_op op; const char *name; } use[USES];
	unsigned n_uses;
	struct event_log log[STEPS + 64];
	unsigned n_log;
	const char *why;
} m = {.self = WEAK_THREADS};

static char stacks[WEAK_THREADS][STACK] __attribute__((aligned(64)));
static char arena[ARENA] __attribute__((aligned(64)));
static size_t arena_used;

static void __attribute__((noreturn))
broken(const char *why)
{
	fprintf(stderr, "weak: %s\n", why);
	abort();
}

void *
weak_alloc(size_t len)
{
	void *p = arena + arena_used;

	arena_used += (len + 63) / 64 * 64;
	if (arena_used > ARENA)
		broken("too much memory in one run");
	return p;
}

/* -- the end of a run -- */

static void
back_to_main(void)
{
	m.on = false;
	swapcontext(&m.t[m.self].context, &m.main);
	broken("a run that has ended goes on");
}

static void
stop(enum weak_found found, const char *why)
{
	m.found = found;
	m.why = why;
	back_to_main();
}

/* -- names, and what is said -- */

void
weak_name(const void *p, const char *name)
{
	if (m.n_names == NAMES)
		broken("too many names");
	m.name[m.n_names].addr = (uintptr_t)p;
	m.name[m.n_names++].name = name;
}

void
weak_share(const void *p, size_t len)
{
	if (m.n_shares == SHARES)
		broken("too many shared areas");
	m.share[m.n_shares].addr = (uintptr_t)p;
	m.share[m.n_shares++].len = len;
}

static const char *
name_of(uintptr_t addr)
{
	for (unsigned i = 0; i < m.n_names; i++)
		if (m.name[i].addr == addr)
			return m.name[i].name;
	return NULL;
}

static void
note(enum weak_op op, uintptr_t addr, int order, uint64_t value, unsigned at, unsigned of)
{
	if (m.n_log < STEPS + 64)
		m.log[m.n_log++] = (struct event_log){m.self, op, order, addr, value, at, of};
}

static const char *const ops[] = {"-", "load", "store", "change", "compiler's fence", "fence", "membarrier", "kernel"};
static const char *const orders[] = {"relaxed", "consume", "acquire", "release", "both", "seq_cst"};
static const char *const founds[] = {"nothing", "a race", "a wrong state", "nobody can go on", "no end"};

static void
print_log(void)
{
	for (unsigned i = m.n_log > SHOWN ? m.n_log - SHOWN : 0; i < m.n_log; i++) {
		const struct event_log *e = &m.log[i];
		const char *name = name_of(e->addr);
		char text[32];

		snprintf(text, sizeof(text), "%#lx", (unsigned long)e->addr);
		printf("  %u: %-16s %-8s %-14s %#llx  value %u of %u\n", e->thread, ops[e->op],
			e->op == WEAK_KERNEL || e->op == WEAK_BARRIER ? "" : orders[e->order & 7],
			e->addr == 0 ? "" : name != NULL ? name : text, (unsigned long long)e->value, e->at, e->of);
	}
}

/* -- views -- */

static void
join(struct view *to, const struct view *from)
{
	for (unsigned i = 0; i < m.n_locs; i++)
		if (to->at[i] < from->at[i])
			to->at[i] = from->at[i];
	for (unsigned i = 0; i < WEAK_THREADS; i++)
		if (to->clock[i] < from->clock[i])
			to->clock[i] = from->clock[i];
}

/* Only which values are old, not what they make known. */
static void
join_values(struct view *to, const struct view *from)
{
	for (unsigned i = 0; i < m.n_locs; i++)
		if (to->at[i] < from->at[i])
			to->at[i] = from->at[i];
}

static struct thread *
me(void)
{
	return &m.t[m.self];
}

static uint64_t
memory(uintptr_t addr, unsigned size)
{
	uint64_t v = 0;

	memcpy(&v, (const void *)addr, size);
	return v;
}

static struct loc *
loc_of(uintptr_t addr, unsigned size)
{
	static unsigned last;
	struct loc *l;

	if (last < m.n_locs && m.locs[last].addr == addr)
		return &m.locs[last];
	for (last = 0; last < m.n_locs; last++)
		if (m.locs[last].addr == addr)
			return &m.locs[last];
	if (m.n_locs == LOCS)
		broken("too many places in memory");
	l = &m.locs[m.n_locs++];
	l->addr = addr;
	l->n = 1;
	l->last_sc = 0;
	memset(&l->s[0], 0, sizeof(l->s[0]));
	l->s[0].v = memory(addr, size);
	return l;
}

/* -- plain memory -- */

static bool
is_shared(uintptr_t addr)
{
	for (unsigned i = 0; i < m.n_shares; i++)
		if (addr - m.share[i].addr < m.share[i].len)
			return true;
	return false;
}

static struct granule *
granule_of(uintptr_t addr)
{
	uintptr_t at = addr & ~(uintptr_t)7;

	for (unsigned i = (unsigned)(at >> 3), n = 0; n < GRANULES; i++, n++) {
		struct granule *g = &m.granule[i % GRANULES];

		if (g->run == m.run && g->addr == at)
			return g;
		if (g->run != m.run) {
			memset(g, 0, sizeof(*g));
			g->addr = at;
			g->run = m.run;
			return g;
		}
	}
	broken("too much shared memory");
}

static void
check_byte(struct granule *g, unsigned k, bool write)
{
	const struct view *v = &me()->view;

	if (g->byte[k].wrote > v->clock[g->byte[k].writer] && g->byte[k].writer != m.self)
		stop(WEAK_RACE, write ? "written twice" : "read what was not handed over");
	if (!write) {
		g->byte[k].read[m.self] = v->clock[m.self];
		return;
	}
	for (unsigned i = 0; i < m.n_threads; i++)
		if (i != m.self && g->byte[k].read[i] > v->clock[i])
			stop(WEAK_RACE, "written while it is read");
	g->byte[k].writer = m.self;
	g->byte[k].wrote = v->clock[m.self];
}

void
weak_plain(uintptr_t addr, size_t len, bool write)
{
	struct granule *g = NULL;

	if (!m.on || !is_shared(addr))
		return;
	for (uintptr_t at = addr; at < addr + len; at++) {
		if (g == NULL || at % 8 == 0)
			g = granule_of(at);
		check_byte(g, at % 8, write);
	}
}

/* -- whose turn it is -- */

static bool
is_fence(const struct step *s)
{
	return s->op >= WEAK_FENCE;
}

/* @return whether the order of two steps of two threads can matter */
static bool
depend(const struct step *a, const struct step *b)
{
	if (a->op == WEAK_NO_OP || b->op == WEAK_NO_OP)
		return false;
	if (a->op == WEAK_LOAD || b->op == WEAK_LOAD) /* and the step behind it, see step() */
		return true;
	if (is_fence(a) && is_fence(b))
		return true;
	if (a->op == WEAK_BARRIER || b->op == WEAK_BARRIER)
		return a->op == WEAK_BARRIER ? a->addr == b->thread : b->addr == a->thread;
	return a->addr == b->addr;
}

static bool
can_go_on(const struct thread *t)
{
	return t->state == READY || (t->state == PAUSED && (t->paused_at != m.n_changes || t->fresh));
}

static uint8_t
all_that_can(void)
{
	uint8_t can = 0;

	for (unsigned i = 0; i < m.n_threads; i++)
		if (can_go_on(&m.t[i]))
			can |= 1u << i;
	return can;
}

static void
see_all(struct view *v)
{
	for (unsigned k = 0; k < m.n_locs; k++)
		v->at[k] = m.locs[k].n - 1;
}

/* Those that wait in a loop see, at last, what has been stored, and look again a few times. @return who */
static uint8_t
refresh(void)
{
	uint8_t who = 0;

	for (unsigned i = 0; i < m.n_threads; i++) {
		struct thread *t = &m.t[i];

		if (t->state != PAUSED)
			continue;
		if (t->looks_at != m.n_changes)
			t->looks = 0;
		t->looks_at = m.n_changes;
		if (t->looks++ == LOOKS)
			continue;
		see_all(&t->view);
		t->fresh = true;
		who |= 1u << i;
	}
	return who;
}

static struct node *
node_next(bool of_thread)
{
	if (m.at_node == NODES)
		broken("too many choices in one run");
	if (m.at_node == m.n_nodes)
		m.node[m.n_nodes++] = (struct node){.of_thread = of_thread, .chosen = UINT8_MAX};
	return &m.node[m.at_node++];
}

static unsigned
choose_thread(uint8_t may)
{
	struct node *n;

	if ((may & (may - 1)) == 0)
		return (unsigned)__builtin_ctz(may);
	n = node_next(true);
	if (n->chosen == UINT8_MAX) {
		n->may = may;
		n->chosen = (may >> m.self & 1) != 0 ? m.self : (unsigned)__builtin_ctz(may);
	}
	m.asleep |= n->done;
	return n->chosen;
}

/* @return one of n, 0 first */
static unsigned
choose(unsigned n)
{
	struct node *c;

	if (n <= 1)
		return 0;
	c = node_next(false);
	if (c->chosen == UINT8_MAX) {
		c->n = n;
		c->chosen = 0;
	}
	return c->chosen;
}

static void
nobody(uint8_t can)
{
	if (can != 0) {
		m.cut = true; /* another order has led here */
		back_to_main();
	}
	for (unsigned i = 0; i < m.n_threads; i++)
		if (m.t[i].state != ENDED)
			stop(WEAK_STUCK, "all that have not ended wait");
	back_to_main();
}

/* Another thread, or the same. */
static void
switch_threads(void)
{
	uint8_t can = all_that_can(), may, still = 0;
	unsigned was = m.self, to;

	if (can == 0)
		can = refresh();
	may = can & ~m.asleep;
	if (may == 0)
		nobody(can);
	to = choose_thread(may);
	for (unsigned i = 0; i < m.n_threads; i++)
		if (i != to && (m.asleep >> i & 1) != 0 && !depend(&m.t[i].next, &m.t[to].next))
			still |= 1u << i;
	m.asleep = still;
	m.self = to;
	m.t[to].state = READY;
	m.t[to].fresh = false;
	if (to != was)
		swapcontext(&m.t[was].context, &m.t[to].context);
}

/* @return whether another thread is about to make this one pass a fence */
static bool
is_fenced(void)
{
	for (unsigned i = 0; i < m.n_threads; i++)
		if (i != m.self && m.t[i].next.op == WEAK_BARRIER && m.t[i].next.addr == m.self)
			return true;
	return false;
}

/*
 * A load that comes late may still take an old value: no other order of it and of others' steps has to be run than
 * that it comes right before the next step of its thread that is no load. A fence by another thread is an exception.
 */
static void
step(enum weak_op op, uintptr_t addr, int order)
{
	struct thread *t = me();
	bool loads = op == WEAK_LOAD && order != __ATOMIC_SEQ_CST;

	if (++m.n_steps > STEPS)
		stop(WEAK_ENDLESS, "too many steps");
	t->next = (struct step){op, m.self, addr, order};
	if (!t->loads || op == WEAK_NO_OP || (op == WEAK_LOAD && !loads) || is_fenced())
		switch_threads();
	t->loads = loads;
}

/* -- orders, and the rule -- */

static bool
has_rule(enum weak_op op, uintptr_t addr, int order)
{
	const struct weak_rule *r = m.rule;
	const char *name;

	if (r == NULL || r->op != op || (r->thread >= 0 && (unsigned)r->thread != m.self) ||
		(r->order >= 0 && r->order != order))
		return false;
	name = r->name != NULL ? name_of(addr) : NULL;
	if (r->name != NULL && (name == NULL || strcmp(name, r->name) != 0))
		return false;
	m.n_matches++;
	return true;
}

/* The code relies on this order, or seems to. */
static void
use(enum weak_op op, const char *name)
{
	if (m.rule != NULL || name == NULL)
		return;
	for (unsigned i = 0; i < m.n_uses; i++)
		if (m.use[i].op == op && strcmp(m.use[i].name, name) == 0)
			return;
	if (m.n_uses == USES)
		broken("too many orders");
	m.use[m.n_uses].op = op;
	m.use[m.n_uses++].name = name;
}

static int
order_of(enum weak_op op, uintptr_t addr, int order)
{
	if (order != __ATOMIC_RELAXED)
		use(op, name_of(addr));
	return has_rule(op, addr, order) ? __ATOMIC_RELAXED : order;
}

static bool
acquires(int order)
{
	return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool
releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void
take_view(const struct value *v, int order)
{
	join(acquires(order) ? &me()->view : &me()->acquired, &v->view);
}

/* The newest value of a location. @param before of a read-modify-write, whose release sequence goes on; or NULL */
static void
append(struct loc *l, unsigned size, uint64_t v, int order, const struct value *before)
{
	struct thread *t = me();
	struct value *s;

	if (l->n == STORES)
		stop(WEAK_ENDLESS, "too many stores");
	s = &l->s[l->n];
	memset(s, 0, sizeof(*s));
	s->v = v;
	t->view.at[l - m.locs] = l->n;
	join(&s->view, releases(order) ? &t->view : &t->released);
	if (before != NULL)
		join(&s->view, &before->view);
	s->view.at[l - m.locs] = l->n;
	if (order == __ATOMIC_SEQ_CST)
		l->last_sc = l->n;
	if (l->s[l->n - 1].v != v)
		m.n_changes++; /* what a waiting loop waits for */
	l->n++;
	t->view.clock[m.self]++;
	memcpy((void *)l->addr, &v, size);
}

/* -- a store that a compiler may move behind a load -- */

static void
delayed_now(void)
{
	struct thread *t = me();

	if (!t->delayed)
		return;
	step(WEAK_STORE, t->delayed_to, t->delayed_order);
	t->delayed = false;
	append(loc_of(t->delayed_to, t->delayed_size), t->delayed_size, t->delayed_value, t->delayed_order, NULL);
	note(WEAK_STORE, t->delayed_to, t->delayed_order, t->delayed_value, 0, 0);
}

static bool
delays(uintptr_t addr, unsigned size, uint64_t v, int order)
{
	const char *name = m.scene->moves != NULL ? name_of(addr) : NULL;
	struct thread *t = me();

	if (name == NULL || strcmp(name, m.scene->moves) != 0 || order == __ATOMIC_SEQ_CST || choose(2) == 0)
		return false;
	t->delayed = true;
	t->delayed_to = addr;
	t->delayed_size = size;
	t->delayed_value = v;
	t->delayed_order = order;
	return true;
}

/* -- atomic accesses, while steps are explored -- */

/* @return the oldest value that this thread may take */
static unsigned
first_of(const struct thread *t, const struct loc *l)
{
	unsigned k = l - m.locs, at = t->view.at[k];

	return at + (t->old_reads[k] >= OLD_READS && at + 1 < l->n);
}

static void
take_value(struct thread *t, const struct loc *l, unsigned i, int order)
{
	unsigned k = l - m.locs;

	t->old_reads[k] = i + 1 == l->n ? 0 : t->view.at[k] == i ? t->old_reads[k] + 1 : 1;
	t->view.at[k] = i;
	take_view(&l->s[i], order);
}

bool
weak_is_on(void)
{
	return m.on;
}

uint64_t
weak_load(uintptr_t addr, unsigned size, int order)
{
	struct thread *t = me();
	unsigned first, i;
	bool looks_again;
	struct loc *l;

	order = order_of(WEAK_LOAD, addr, order);
	if (t->delayed && t->delayed_to == addr)
		delayed_now();
	looks_again = m.scene->impatient && t->fresh;
	t->fresh = false;
	if (!looks_again)
		step(WEAK_LOAD, addr, order);
	l = loc_of(addr, size);
	first = looks_again ? l->n - 1 : first_of(t, l);
	if (order == __ATOMIC_SEQ_CST && first < l->last_sc)
		first = l->last_sc;
	i = l->n - 1 - choose(l->n - first);
	take_value(t, l, i, order);
	note(WEAK_LOAD, addr, order, l->s[i].v, i, l->n - 1);
	return l->s[i].v;
}

void
weak_store(uintptr_t addr, unsigned size, uint64_t v, int order)
{
	order = order_of(WEAK_STORE, addr, order);
	delayed_now();
	if (delays(addr, size, v, order))
		return;
	step(WEAK_STORE, addr, order);
	append(loc_of(addr, size), size, v, order, NULL);
	note(WEAK_STORE, addr, order, v, 0, 0);
}

uint64_t
weak_change(uintptr_t addr, unsigned size, weak_fn *fn, uint64_t arg, int order)
{
	struct thread *t = me();
	struct loc *l;
	const struct value *was;

	order = order_of(WEAK_RMW, addr, order);
	delayed_now();
	step(WEAK_RMW, addr, order);
	l = loc_of(addr, size);
	was = &l->s[l->n - 1];
	t->view.at[l - m.locs] = l->n - 1;
	take_view(was, order);
	append(l, size, fn(was->v, arg), order, was);
	note(WEAK_RMW, addr, order, l->s[l->n - 1].v, 0, 0);
	return was->v;
}

/* Values from `first` on that a compare-and-swap may find, and fail. */
static unsigned
mismatches(const struct loc *l, unsigned first, uint64_t expected, unsigned at[STORES])
{
	unsigned n = 0;

	for (unsigned i = l->n - 1; i + 1 > first; i--)
		if (l->s[i].v != expected)
			at[n++] = i;
	return n;
}

bool
weak_cas(uintptr_t addr, unsigned size, uint64_t *expected, uint64_t v, int order, int fail_order)
{
	struct thread *t = me();
	unsigned at[STORES], n, k;
	struct loc *l;
	bool can;

	order = order_of(WEAK_RMW, addr, order);
	if (order == __ATOMIC_RELAXED)
		fail_order = order;
	delayed_now();
	step(WEAK_RMW, addr, order);
	l = loc_of(addr, size);
	can = l->s[l->n - 1].v == *expected;
	n = mismatches(l, first_of(t, l), *expected, at);
	k = choose(n + can);
	if (can && k == 0) {
		const struct value *was = &l->s[l->n - 1];

		take_view(was, order);
		append(l, size, v, order, was);
		note(WEAK_RMW, addr, order, v, 0, 0);
		return true;
	}
	k = at[k - can];
	take_value(t, l, k, fail_order);
	*expected = l->s[k].v;
	note(WEAK_LOAD, addr, fail_order, *expected, k, l->n - 1);
	return false;
}

static void
fence_of(struct thread *t, int order)
{
	if (acquires(order))
		join(&t->view, &t->acquired);
	if (order == __ATOMIC_SEQ_CST) {
		join_values(&t->view, &m.fences);
		memset(t->old_reads, 0, sizeof(t->old_reads));
		join_values(&m.fences, &t->view);
	}
	if (releases(order)) {
		t->released = t->view;
		t->view.clock[t - m.t]++;
	}
}

void
weak_fence(int order)
{
	use(WEAK_FENCE, "");
	if (has_rule(WEAK_FENCE, 0, order))
		return;
	delayed_now();
	step(WEAK_FENCE, 0, order);
	fence_of(me(), order);
	note(WEAK_FENCE, 0, order, 0, 0, 0);
}

void
weak_signal_fence(int order)
{
	use(WEAK_SIGNAL_FENCE, "");
	if (!has_rule(WEAK_SIGNAL_FENCE, 0, order))
		delayed_now();
}

void
weak_barrier(void)
{
	unsigned self = m.self;

	if (m.on)
		use(WEAK_BARRIER, "");
	if (!m.on || has_rule(WEAK_BARRIER, 0, __ATOMIC_SEQ_CST))
		return;
	delayed_now();
	step(WEAK_BARRIER, self, __ATOMIC_SEQ_CST);
	fence_of(me(), __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < m.n_threads; i++) {
		if (i == self)
			continue;
		step(WEAK_BARRIER, i, __ATOMIC_SEQ_CST); /* one that does not run has passed one */
		fence_of(&m.t[i], __ATOMIC_SEQ_CST);
		note(WEAK_BARRIER, 0, 0, i, 0, 0);
	}
	step(WEAK_BARRIER, self, __ATOMIC_SEQ_CST);
	fence_of(me(), __ATOMIC_SEQ_CST);
}

/* -- waiting -- */

unsigned
weak_thread(void)
{
	return m.on ? m.self : WEAK_THREADS;
}

void *
weak_self(void)
{
	return &m.t[m.self < WEAK_THREADS ? m.self : 0];
}

void *
weak_self_of(unsigned thread)
{
	return &m.t[thread];
}

int
weak_pause(void)
{
	struct thread *t = me();

	if (!m.on)
		return 0;
	delayed_now();
	if (m.scene->impatient) {
		t->fresh = true;
		return 0;
	}
	t->state = PAUSED;
	t->paused_at = m.n_changes;
	step(WEAK_NO_OP, 0, 0);
	return 0;
}

static bool
futex_wait(uintptr_t addr, uint32_t value)
{
	struct loc *l = loc_of(addr, 4);

	fence_of(me(), __ATOMIC_SEQ_CST);
	note(WEAK_KERNEL, addr, 0, l->s[l->n - 1].v, 0, 0);
	if (l->s[l->n - 1].v != value)
		return false;
	me()->state = ASLEEP;
	me()->sleeps_on = addr;
	return true;
}

static void
futex_wake(uintptr_t addr)
{
	fence_of(me(), __ATOMIC_SEQ_CST);
	note(WEAK_KERNEL, addr, 0, 0, 0, 0);
	for (unsigned i = 0; i < m.n_threads; i++) {
		if (m.t[i].state != ASLEEP || m.t[i].sleeps_on != addr)
			continue;
		m.t[i].state = READY;
		return;
	}
}

long
weak_syscall(long number, ...)
{
	uintptr_t addr;
	va_list args;
	uint32_t value;
	int op;

	va_start(args, number);
	addr = (uintptr_t)va_arg(args, void *);
	op = va_arg(args, int);
	value = va_arg(args, unsigned);
	va_end(args);
	if (!m.on || number != SYS_futex)
		return 0;
	delayed_now();
	step(WEAK_KERNEL, addr, 0);
	if (op != FUTEX_WAIT_PRIVATE)
		futex_wake(addr);
	else if (futex_wait(addr, value))
		step(WEAK_KERNEL, addr, 0); /* on from here when it is woken */
	return 0;
}

int
weak_event_write(unsigned e)
{
	if (!m.on)
		return 1;
	delayed_now();
	step(WEAK_KERNEL, e, 0);
	note(WEAK_KERNEL, e, 0, 1, 0, 0);
	m.event[e].n++;
	m.n_changes++;
	if (!has_rule(WEAK_KERNEL, e, 0))
		join(&m.event[e].view, &me()->view);
	me()->view.clock[m.self]++;
	for (unsigned i = 0; i < m.n_threads; i++)
		if (m.t[i].state == ASLEEP && m.t[i].sleeps_on == e)
			m.t[i].state = READY;
	return 1;
}

uint64_t
weak_event_read(unsigned e)
{
	uint64_t n;

	if (!m.on)
		return 0;
	delayed_now();
	step(WEAK_KERNEL, e, 0);
	n = m.event[e].n;
	note(WEAK_KERNEL, e, 0, n, 0, 0);
	if (n != 0)
		join(&me()->view, &m.event[e].view);
	m.event[e].n = 0;
	return n;
}

int
weak_event_wait(unsigned e)
{
	delayed_now();
	for (;;) {
		step(WEAK_KERNEL, e, 0);
		if (m.event[e].n != 0)
			return 1;
		me()->state = ASLEEP;
		me()->sleeps_on = e;
	}
}

void
weak_check(bool ok)
{
	if (ok)
		return;
	if (m.on)
		stop(WEAK_WRONG, "weak_check()");
	m.found = WEAK_WRONG;
	m.why = "weak_check() at the end";
}

/* -- all runs -- */

static void
thread_main(void)
{
	m.scene->thread[m.self]();
	delayed_now();
	me()->state = ENDED;
	me()->next = (struct step){.op = WEAK_NO_OP};
	switch_threads();
}

static void
threads_begin(void)
{
	m.n_threads = 0;
	while (m.n_threads < WEAK_THREADS && m.scene->thread[m.n_threads] != NULL) {
		struct thread *t = &m.t[m.n_threads];

		memset((char *)t + offsetof(struct thread, state), 0, sizeof(*t) - offsetof(struct thread, state));
		t->view.clock[m.n_threads] = 1;
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = stacks[m.n_threads++];
		t->context.uc_stack.ss_size = STACK;
		t->context.uc_link = NULL;
		makecontext(&t->context, thread_main, 0);
	}
}

static void
run_once(void)
{
	m.n_locs = m.n_names = m.n_shares = m.n_steps = m.n_log = m.at_node = 0;
	m.n_changes = 0;
	arena_used = 0;
	m.asleep = 0;
	m.cut = false;
	m.self = 0;
	m.run++;
	memset(&m.fences, 0, sizeof(m.fences));
	memset(m.event, 0, sizeof(m.event));
	m.scene->setup();
	threads_begin();
	m.on = true;
	swapcontext(&m.main, &m.t[0].context);
	m.on = false;
	if (m.found == WEAK_NOTHING && !m.cut && m.scene->end != NULL)
		m.scene->end();
	m.self = 0;
	m.n_runs++;
}

/* @return whether there is another choice; all behind it are new */
static bool
next_choice(void)
{
	for (; m.n_nodes != 0; m.n_nodes--) {
		struct node *n = &m.node[m.n_nodes - 1];

		if (!n->of_thread && ++n->chosen < n->n)
			return true;
		if (!n->of_thread)
			continue;
		n->done |= 1u << n->chosen;
		if ((n->may & ~n->done) == 0)
			continue;
		n->chosen = (uint8_t)__builtin_ctz(n->may & ~n->done);
		return true;
	}
	return false;
}

static enum weak_found
explore(const struct weak_row *row)
{
	m.scene = row->scene;
	m.rule = row->without.op != WEAK_NO_OP ? &row->without : NULL;
	m.found = WEAK_NOTHING;
	m.n_runs = m.n_nodes = 0;
	m.n_matches = 0;
	do
		run_once();
	while (m.found == WEAK_NOTHING && (m.partly = next_choice()) && m.n_runs != m.scene->most);
	return m.found;
}

/* @param n of the row, from 1 on */
static bool
finds(const struct weak_row *row, unsigned n)
{
	const struct weak_rule *r = &row->without;
	enum weak_found found = explore(row);
	bool used = m.rule == NULL || m.n_matches != 0;

	printf("%s %u - %s", found == row->expected && used ? "ok" : "not ok", n, row->scene->name);
	if (m.rule != NULL)
		printf(", without %s%s%s", ops[r->op], r->name != NULL ? " of " : "", r->name != NULL ? r->name : "");
	if (m.rule != NULL && r->order >= 0)
		printf(" (%s)", orders[r->order]);
	printf(": %s in %s%llu runs%s\n", founds[found], m.partly && found == WEAK_NOTHING ? "the first " : "",
		(unsigned long long)m.n_runs, used ? "" : ", but no step is of that kind");
	if (found == row->expected)
		return used;
	printf("  expected: %s; %s\n", founds[row->expected], found != WEAK_NOTHING ? m.why : "");
	if (found != WEAK_NOTHING)
		print_log();
	return false;
}

/* Of each order that the code uses in a scene a row has to say what it is for. @return for how many none does */
static unsigned
check_uses(const struct weak_row *rows, unsigned n)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < m.n_uses; i++) {
		enum weak_op op = m.use[i].op;
		const char *name = m.use[i].name;
		unsigned k = 0;

		while (k < n && (rows[k].without.op != op ||
			(rows[k].without.name != NULL && strcmp(rows[k].without.name, name) != 0)))
			k++;
		if (k < n)
			continue;
		printf("not ok - no row is without %s%s%s\n", ops[op], name[0] != 0 ? " of " : "", name);
		bad++;
	}
	return bad;
}

int
weak_main(const struct weak_row *rows, unsigned n)
{
	unsigned bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < n; i++)
		if (!finds(&rows[i], i + 1))
			bad++;
	printf("%u of %u as expected\n", n - bad, n);
	return (bad | check_uses(rows, n)) != 0 || n == 0;
}
