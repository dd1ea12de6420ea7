/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * shm_seg.c - peers, their segments, and the slots of ours that they use
 *
 * Design notes
 * - A peer's process sends its segment (plx_meet.h), so nothing has a name in a file system and
 *   nothing is left behind after a crash. It is requested as soon as the peer is known; messages
 *   before the answer are pending, as for a full ring. So a stopped process delays only its
 *   senders.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "shm_int.h"

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, shm_queue) list;
} queues = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether a queue of this process has the uid. Only then its addresses are ours. */
static bool
uid_is_ours(uint64_t uid)
{
	struct shm_queue *sq;

	pthread_mutex_lock(&queues.lock);
	LIST_FOREACH(sq, &queues.list, link) {
		if (sq->addr.uid == uid)
			break;
	}
	pthread_mutex_unlock(&queues.lock);
	return sq != NULL;
}

void
shm_queue_enlist(struct shm_queue *sq)
{
	pthread_mutex_lock(&queues.lock);
	LIST_INSERT_HEAD(&queues.list, sq, link);
	pthread_mutex_unlock(&queues.lock);
}

void
shm_queue_delist(struct shm_queue *sq)
{
	pthread_mutex_lock(&queues.lock);
	LIST_REMOVE(sq, link);
	pthread_mutex_unlock(&queues.lock);
}

/* The queues there belong to the parent. */
static void
after_fork_in_child(void)
{
	pthread_mutex_init(&queues.lock, NULL);
	LIST_INIT(&queues.list);
}
RTE_INIT(shm_seg_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* Watch a descriptor for its event. Without it (too many files) the control tick checks. */
static bool
watch(const struct shm_queue *sq, struct shm_peer *p, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};

	return fd >= 0 && epoll_ctl(sq->epfd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void
unwatch(struct shm_queue *sq, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(sq->epfd, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

bool
shm_peer_is(const struct plx_peer *peer, const struct plx_addr *addr)
{
	const struct shm_peer *p = (const struct shm_peer *)peer;

	/* Another process may use the same uid, but is not the same process. */
	return addr->len == sizeof(p->addr) && memcmp(addr->bytes, &p->addr, sizeof(p->addr)) == 0;
}

static bool
may_pass(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -EAGAIN;
}

/* Send nothing more to it; its messages are received first. */
static void
set_gone(struct shm_queue *sq, struct shm_peer *p, const char *how)
{
	if (p->gone)
		return;
	PLX_LOG(INFO, shm, "process %u has ended or is unreachable: %s", p->addr.pid, how);
	p->gone = true;
	sq->n_gone++;
}

/* @return 0: it was asked, or has ended; or an error */
static int
ask(struct shm_queue *sq, struct shm_peer *p)
{
	const struct plx_proc whose = {p->addr.host, p->addr.proc, p->addr.pid};
	int rc = plx_ask_open(&p->ask, &whose, p->addr.uid);

	if (rc == -ECONNRESET) {
		set_gone(sq, p, "no process listens on its socket");
		return 0;
	}
	if (rc != 0)
		return rc;
	p->pid = p->ask.pid;
	p->asking = true;
	p->n_looks = 0;
	(void)watch(sq, p, p->ask.fd);
	return 0;
}

static void
ask_end(struct shm_queue *sq, struct shm_peer *p)
{
	if (p->ask.fd >= 0)
		epoll_ctl(sq->epfd, EPOLL_CTL_DEL, p->ask.fd, NULL);
	plx_ask_close(&p->ask);
	p->asking = false;
}

int
shm_peer_open(struct plx_peer *peer, const struct plx_addr *addr)
{
	struct shm_queue *sq = shm_queue(peer->q);
	struct shm_peer *p = shm_peer(peer);
	int rc;

	if (addr->len != sizeof(p->addr))
		return -EINVAL;
	memcpy(&p->addr, addr->bytes, sizeof(p->addr));
	if (p->addr.proc == 0 || p->addr.pad != 0)
		return -EINVAL;
	if (sq->by_message && sq->n_strangers >= SHM_STRANGERS)
		return -EDQUOT;
	p->stranger = sq->by_message;
	p->self = p->addr.proc == sq->proc && uid_is_ours(p->addr.uid);
	p->pidfd = -1;
	p->bell = -1;
	p->ask.fd = -1;
	p->rx_slot = SHM_NO_SLOT;
	peer->proc = p->addr.proc;
	peer->mtu = sizeof(((struct shm_mail *)0)->body); /* more if there is a slot for us */
	peer->short_max = SHM_SHORT_MAX;
	peer->caps = peer->q->caps;
	if (p->self)
		peer->caps |= PLX_DEV_GET | PLX_DEV_PUT; /* a plain copy */
	/* If it can't be asked now it is asked again by the next send. */
	rc = p->addr.uid == sq->addr.uid || (p->stranger && sq->n_strangers >= SHM_ASKED) ? 0 : ask(sq, p);
	if (rc != 0 && !may_pass(rc))
		return rc;
	sq->n_strangers += p->stranger;
	return 0;
}

void
shm_addr_whose(const struct plx_addr *addr, char *text, size_t len)
{
	struct shm_addr a;

	memcpy(&a, addr->bytes, sizeof(a));
	snprintf(text, len, "process %u", a.pid);
}

void
shm_addr_why(const struct plx_queue *q, const struct plx_addr *addr, int err, char *text, size_t len)
{
	const struct shm_addr *own = &shm_queue(q)->addr;
	struct shm_addr a;

	memcpy(&a, addr->bytes, sizeof(a));
	if (err == -EHOSTUNREACH && !plx_proc_host_same_boot(a.host, own->host))
		snprintf(text, len, "it is on another machine");
	else if (err == -EHOSTUNREACH)
		snprintf(text, len, "it is in another network namespace, as a container has, or names another "
			"shm.dir: set it of both to a folder that they share");
	else if (err == -EPERM)
		snprintf(text, len, "its user is not in our shm.peers, or ours is not in its");
}

/* Check a peer's header of its segment before anything in it is used. */
static int
seg_check(const struct shm_seg *seg, const struct shm_addr *addr, uint64_t len)
{
	if (seg->magic != SHM_MAGIC || memcmp(&seg->addr, addr, sizeof(*addr)) != 0 || seg->len != len ||
		seg->n_slots > SHM_SLOTS_MAX || seg->n_wide > seg->n_slots ||
		shm_seg_len(seg->n_slots, seg->n_wide) > len)
		return -ECONNRESET; /* it belongs to another queue by now */
	if (atomic_load_explicit(&seg->closed, memory_order_acquire))
		return -ECONNRESET;
	return 0;
}

static int
seg_map(struct shm_peer *p, int fd, bool trusted)
{
	uint64_t len = fd >= 0 ? plx_meet_memory_len(fd) : 0;
	void *base;
	int rc;

	if (len < SHM_SLOTS_OFF || !plx_meet_is_memory(fd, len, trusted))
		return -ECONNRESET;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	rc = seg_check(base, &p->addr, len);
	if (rc != 0) {
		munmap(base, len);
		return rc;
	}
	p->seg = base;
	p->len = len;
	p->huge = plx_meet_is_huge(fd);
	return 0;
}

static void
seg_unmap(struct shm_peer *p)
{
	if (p->seg != NULL && p->seg != shm_queue(p->peer.q)->seg)
		munmap(p->seg, p->len);
	p->seg = NULL;
}

/* A wide area is used by its sender first: take its memory, or use another slot where it is denied. */
static bool
has_memory(const struct shm_peer *p, uint32_t n, uint32_t n_wide, uint32_t i)
{
	return i >= n_wide || !p->huge ||
	       plx_mem_populate((uint8_t *)p->seg + shm_data_off(n, n_wide, i), SHM_DATA_WIDE);
}

static bool
slot_take(const struct shm_queue *sq, struct shm_peer *p)
{
	/* once, and within the mapping: it may be written after seg_check() */
	uint32_t n = __atomic_load_n(&p->seg->n_slots, __ATOMIC_RELAXED);
	uint32_t n_wide = __atomic_load_n(&p->seg->n_wide, __ATOMIC_RELAXED);

	if (n > SHM_SLOTS_MAX || n_wide > n || shm_seg_len(n, n_wide) > p->len)
		return false;
	p->data_end = calloc(SHM_CELLS, sizeof(p->data_end[0]));
	if (p->data_end == NULL)
		return false; /* then by mail */
	for (uint32_t i = 0; i < n; i++) {
		struct shm_slot *slot = shm_slot_at(p->seg, i);
		uint32_t st = SHM_SLOT_FREE;

		if (atomic_load_explicit(&slot->state, memory_order_relaxed) != st || !has_memory(p, n, n_wide, i))
			continue;
		/* pairs with the release in shm_slot_reset(): the ring is as new */
		if (!atomic_compare_exchange_strong_explicit(&slot->state, &st,
			    SHM_SLOT_STATE(sq->proc, SHM_SLOT_TAKEN), memory_order_acquire,
			    memory_order_relaxed))
			continue;
		slot->sender = sq->addr;
		/* pairs with the acquire in shm_slot_greet() */
		atomic_store_explicit(&slot->state, SHM_SLOT_STATE(sq->proc, SHM_SLOT_READY),
			memory_order_release);
		atomic_fetch_or_explicit(&p->seg->doorbell, 1ull << i, memory_order_release);
		p->slot = slot;
		p->slot_index = i;
		p->data = (uint8_t *)p->seg + shm_data_off(n, n_wide, i);
		p->data_len = shm_data_len(n_wide, i);
		shm_far_peer_open(p);
		return true;
	}
	free(p->data_end);
	p->data_end = NULL;
	return false;
}

#define ASKS_MAX 8 /* of one that announces a wake-up socket and sends none */

/* Take the received descriptors. @return 0, or -errno and nothing is kept */
static int
answer_take(struct shm_queue *sq, struct shm_peer *p, struct plx_answer *got)
{
	int rc = seg_map(p, got->fd[PLX_MEET_MEM], got->own_user);

	if (rc == 0 && p->seg->bells != 0 && got->fd[PLX_MEET_BELL] < 0) {
		seg_unmap(p);
		rc = ++p->n_asks < ASKS_MAX ? -EAGAIN : -ECONNRESET;
	}
	if (rc == 0) {
		p->own_user = got->own_user;
		p->bell = got->fd[PLX_MEET_BELL];
		got->fd[PLX_MEET_BELL] = -1;
		if (!p->self && p->pidfd < 0 && watch(sq, p, got->fd[PLX_MEET_PID])) {
			p->pidfd = got->fd[PLX_MEET_PID];
			got->fd[PLX_MEET_PID] = -1;
		}
	}
	plx_answer_close(got);
	return rc;
}

/* Its segment is mapped: determine how to send to it. */
static void
tx_ready(struct shm_queue *sq, struct shm_peer *p)
{
	shm_bell_of(p);
	if (slot_take(sq, p)) {
		shm_tx_by(p, SHM_TX_SLOT);
		p->peer.mtu = SHM_MSG_MAX;
	} else {
		shm_tx_by(p, SHM_TX_MAIL);
	}
}

#define LOOKS_ALL   1000 /* polls for an answer, each a system call, */
#define LOOKS_EVERY 64	 /* after which only one in LOOKS_EVERY is one */

/* @return 0: its segment is mapped; -EAGAIN or another temporary error; or why it never will be */
static int
meet(struct shm_queue *sq, struct shm_peer *p, int wait_ms)
{
	struct plx_answer got;
	int rc;

	if (p->seg != NULL && (p->bell >= 0 || p->seg->bells == 0 || p->seg == sq->seg))
		return 0;
	seg_unmap(p); /* it has got a wake-up socket since it answered */
	if (!p->asking) {
		if (p->busy && wait_ms == 0 && ++p->n_looks % LOOKS_EVERY != 0)
			return -EAGAIN;
		rc = ask(sq, p);
		if (rc != 0)
			return rc == -EBUSY ? -EAGAIN : rc;
	}
	if (p->gone)
		return -ECONNRESET;
	if (wait_ms == 0 && ++p->n_looks > LOOKS_ALL && p->n_looks % LOOKS_EVERY != 0)
		return -EAGAIN;
	rc = wait_ms != 0 ? plx_ask_wait(&p->ask, &got, wait_ms) : plx_ask_poll(&p->ask, &got);
	if (rc == -EAGAIN || rc == -ETIMEDOUT)
		return rc;
	ask_end(sq, p);
	p->busy = rc == -EBUSY;
	if (p->busy)
		return -EAGAIN;
	if (rc == 0)
		rc = answer_take(sq, p, &got);
	if (rc == 0 || may_pass(rc))
		return rc;
	p->peer.err = rc == -EPERM ? -EPERM : -ECONNRESET;
	set_gone(sq, p, rc == -EPERM ? "its user is not in our shm.peers, or ours is not in its" : strerror(-rc));
	return p->peer.err;
}

int
shm_peer_meet(struct shm_peer *p)
{
	struct shm_queue *sq = shm_queue(p->peer.q);
	int rc = p->gone ? -ECONNRESET : p->tx_mode != SHM_TX_NONE ? 0 : meet(sq, p, 0);

	if (rc == 0 && p->tx_mode == SHM_TX_NONE && p->peer.state == PLX_PEER_OPEN)
		tx_ready(sq, p);
	return may_pass(rc) ? -EAGAIN : rc;
}

int
shm_peer_connect(struct plx_peer *peer)
{
	struct shm_queue *sq = shm_queue(peer->q);
	struct shm_peer *p = shm_peer(peer);
	int rc;

	if (p->gone)
		return p->peer.err != 0 ? p->peer.err : -ECONNRESET;
	if (p->addr.uid == sq->addr.uid) {
		p->seg = sq->seg;
		p->len = sq->mem.len;
		p->huge = sq->mem.huge;
		p->bell = sq->bell[1] >= 0 && p->bell < 0 ? fcntl(sq->bell[1], F_DUPFD_CLOEXEC, 0) : p->bell;
	}
	rc = meet(sq, p, 0);
	if (rc == 0 && p->tx_mode == SHM_TX_NONE)
		tx_ready(sq, p);
	return rc == -EAGAIN ? 0 : rc; /* messages are pending */
}

void
shm_peer_settle(struct plx_peer *peer)
{
	struct shm_peer *p = shm_peer(peer);

	for (unsigned i = 0; i < ASKS_MAX && !p->gone && p->seg == NULL; i++)
		if (meet(shm_queue(peer->q), p, PLX_ASK_MS) != -EAGAIN) /* it has got a wake-up socket
		                                                         * since it answered */
			break;
	if (p->seg != NULL)
		(void)shm_peer_meet(p);
}

void
shm_tx_leave(struct shm_peer *p)
{
	if (p->tx_mode == SHM_TX_SLOT && shm_is_owner(shm_queue(p->peer.q)))
		/* pairs with the acquire in shm_queue_control(): all cells are there */
		atomic_store_explicit(&p->slot->state,
			SHM_SLOT_STATE(shm_queue(p->peer.q)->proc, SHM_SLOT_LEFT),
			memory_order_release);
	shm_tx_by(p, SHM_TX_NONE);
	shm_windows_close(p);
	shm_bell_forget(p);
	seg_unmap(p);
}

/* We are closing: wake all our senders, so that they notice. */
static void
bell_last(struct shm_peer *p)
{
	struct shm_queue *sq = shm_queue(p->peer.q);

	atomic_store_explicit(&sq->seg->closed, 1, memory_order_release);
	if (p->gone || p->peer.state == PLX_PEER_DEAD || p->addr.uid == sq->addr.uid)
		return;
	shm_peer_settle(&p->peer); /* one that has just begun to send to us may sleep already */
	if (p->seg != NULL && p->bell >= 0)
		shm_bell_news(p->seg, p->bell);
}

void
shm_peer_close(struct plx_peer *peer)
{
	struct shm_queue *sq = shm_queue(peer->q);
	struct shm_peer *p = shm_peer(peer);

	if (peer->q->closing)
		bell_last(p);
	if (p->rx_slot != SHM_NO_SLOT && shm_is_owner(sq))
		shm_slot_reset(sq, p->rx_slot);
	shm_tx_leave(p);
	free(p->data_end);
	ask_end(sq, p);
	unwatch(sq, &p->pidfd);
	sq->n_strangers -= p->stranger;
}

int
shm_peer_of(struct shm_queue *sq, const struct shm_addr *addr, struct plx_peer **out)
{
	struct plx_addr a = {.len = sizeof(*addr)};
	int rc;

	memcpy(a.bytes, addr, sizeof(*addr));
	sq->by_message = true;
	rc = plx_peer_get(sq->q, &a, out);
	sq->by_message = false;
	if (rc == 0)
		plx_peer_put(*out); /* it stays in the table; slots and eps have references */
	return rc;
}

void
shm_slot_reset(struct shm_queue *sq, uint32_t i)
{
	struct shm_slot *slot = shm_slot_at(sq->seg, i);
	struct shm_rx_slot *r = &sq->rx[i];

	if (r->peer != NULL) {
		shm_peer(r->peer)->rx_slot = SHM_NO_SLOT;
		plx_peer_put(r->peer);
	}
	*r = (struct shm_rx_slot){.data = r->data, .data_len = r->data_len, .slot = slot};
	shm_slot_at_pos(r, 0);
	sq->ready &= ~(1ull << i);
	shm_hot_set(sq, sq->hot & ~(1ull << i));
	for (uint32_t k = 0; k < SHM_CELLS; k++)
		atomic_store_explicit(&slot->cells[k].head, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->rx_pos, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->cold, 0, memory_order_relaxed);
	/* pairs with the acquire in slot_take() */
	atomic_store_explicit(&slot->state, SHM_SLOT_FREE, memory_order_release);
}

bool
shm_slot_empty(const struct shm_queue *sq, uint32_t i)
{
	const struct shm_rx_slot *r = &sq->rx[i];
	const struct shm_cell *cell = shm_cell_at(shm_slot_at(sq->seg, i)->cells, r->pos);

	return (uint32_t)atomic_load_explicit(&cell->head, memory_order_acquire) != shm_seq(r->pos);
}

void
shm_peer_gone(struct shm_queue *sq, struct shm_peer *p, const char *how)
{
	unwatch(sq, &p->pidfd);
	set_gone(sq, p, how);
	shm_tx_by(p, SHM_TX_NONE);
}

bool
shm_peer_has_left(const struct plx_peer *peer)
{
	const struct shm_peer *p = (const struct shm_peer *)peer;

	return p->gone || (p->seg != NULL && p->seg != shm_queue(peer->q)->seg &&
		atomic_load_explicit(&p->seg->closed, memory_order_acquire) != 0);
}
