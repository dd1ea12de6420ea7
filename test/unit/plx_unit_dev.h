/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * plx_unit_dev.h - what the contract of drivers shares with the tests that a driver brings
 *
 * test/dev_contract_test.c tries every driver that adds a struct dev_contract, which stands in the driver's
 * own X_contract_test.c with tests of what only this driver has. The contract knows no driver otherwise: its
 * ops and its capabilities say what is tried.
 */
#ifndef PLX_UNIT_DEV_H
#define PLX_UNIT_DEV_H

#include "plx_dev_ops.h"
#include "plx_unit.h"

/** Tests of the driver itself, behind the contract. */
struct dev_contract_suite {
	const char *name;
	unsigned setup;
	CU_TestInfo *tests;
	unsigned needs; /* enum dev_contract_need */
};

/** What a driver brings. Hooks may be NULL. */
struct dev_contract {
	const struct plx_dev_ops *ops;
	const char *const *setups; /* in each of these the contract is tried, up to a NULL; NULL: there is one */
	const struct dev_contract_suite *suites; /* up to a NULL name */
	unsigned (*lacks)(void); /* enum dev_contract_need: what cannot be tried on this system, which it says */
	void (*set_up)(unsigned i); /* before each test, the device is closed: into conf */
	bool (*is_settled)(struct plx_peer *peer); /* connecting is over */
	bool (*is_sure)(const struct plx_peer *peer); /* the driver says how many messages it is sure to take */
	bool atomics_by_message; /* it can do them by key, and its regions say not to: their order would be lost */
	unsigned at_least; /* messages that are taken while the receiver has no turns; 0: any number */
	/* Of a model: to be full and late without reason; to take n messages; to end without a farewell. */
	void (*misbehave)(void);
	void (*limit)(unsigned n);
	void (*die)(struct plx_queue *q);
	struct dev_contract *next;
};

/** Called before main(). */
void dev_contract_add(struct dev_contract *c);

/** What a test of the contract asks of a driver. */
enum dev_contract_need {
	NEED_WITHIN_HOST = 1 << 0, /* its peers are on this host: messages come at once, and a look finds who has gone */
	NEED_SHARED = 1 << 1,
	NEED_RMA = 1 << 2,
	NEED_KEYS = 1 << 3,
	NEED_GROUP = 1 << 4,
	NEED_DATAGRAM = 1 << 5,
	NEED_SLEEP = 1 << 6,
	NEED_ZCOPY = 1 << 7,
	NEED_KEEP = 1 << 8,
};

struct dev_contract_test {
	CU_TestInfo test;
	unsigned needs; /* enum dev_contract_need */
};

#define DEV_TEST(fn, needs) {UNIT_TEST(fn), needs}

/** Of what a driver may have: test/dev_contract_tables.c; up to a NULL name. */
extern const struct dev_contract_test dev_contract_tables[];
/** Of memory that is not copied: test/dev_contract_lent.c; the same. */
extern const struct dev_contract_test dev_contract_lent[];

#define MSG_MAX	   65536 /* bytes of msg_send() and so on */
#define PATIENCE_S 20

/* Of the test that runs. */
extern const struct dev_contract *tried;
extern struct plx_conf conf;
extern struct plx_dev *dev;
extern bool with_tags; /* the device is to match tags */
extern uint64_t rng_state;
extern uint64_t quiet_ns; /* a network that was quiet for so long has nothing more to say */

/** Close the device; the next open finds what conf is by then. */
void dev_end(void);

uint64_t now_ns(void);

/** For loops that wait for another process: false when it has taken too long. */
bool patient(uint64_t since_ns);

struct plx_queue *queue_new(void);
void queue_close(struct plx_queue *q);

/** A network moves only while both sides have turns, and not at once. */
bool takes_time(void);

/** What the others' owners would do meanwhile: nobody has sent to them. */
void others_turn(const struct plx_queue *q);

struct plx_peer *peer_known(struct plx_queue *from, const struct plx_addr *addr);
struct plx_peer *connected(struct plx_queue *from, const struct plx_addr *addr);

/** @return whether the peer can be sent to, once it is known whether it answers. */
bool connects(struct plx_queue *from, struct plx_peer *peer);

struct plx_peer *connected_to(struct plx_queue *from, const struct plx_queue *to);

/** Message number i of a sender: header i, len bytes that follow from both. */
int msg_send(struct plx_peer *peer, uint64_t i, uint32_t len);

bool msg_is(const struct plx_rx *rx, uint64_t i, uint32_t len);
uint16_t burst(struct plx_queue *q, struct plx_rx *rx, uint16_t n);

/** One burst, looking again while there is none; a cold slot's turn comes within 64 looks. */
uint16_t burst_some(struct plx_queue *q, struct plx_rx *rx, uint16_t n);

/** Length of message i, spread over what the peer takes. */
uint32_t len_of(uint64_t i, uint32_t mtu);

/** Take and check all that is there of one sender; *next is the number of the next. */
unsigned drain(struct plx_queue *q, uint32_t mtu, uint64_t *next);

/**
 * The owner of a queue that gets no messages sleeps until an event or the queue's deadline; while it may not sleep it
 * looks after its peers. @return false: it would sleep on
 */
bool sleep_once(struct plx_queue *q);

/** For plx_queue.on_dead: how often it was called, and for which peer last. */
extern unsigned n_told;
extern struct plx_peer *told;
void on_dead(struct plx_peer *peer);

/** Of a sender that has gone, `sent` messages were taken by its device. */
void expect_farewell(struct plx_queue *b, struct plx_peer *to_a, uint32_t mtu, uint64_t at_most,
	uint64_t at_least);

/* -- dev_contract_tables.c -- */

extern uint8_t buf_here[200000], buf_there[200000];

void rma_reads_and_writes(struct plx_peer *peer, uint64_t remote, size_t len);

/** Several pieces by one call; at a bad one it stops, and the next are not touched. */
void rma_bursts(struct plx_peer *peer, uint64_t remote);
/** Try one. @return whether the kernel refuses them; it says so then */
bool rma_is_refused(struct plx_peer *peer, uint64_t remote);

void rma_over(void *arg, int err);

/** Until the device has done it. @return 0 or -errno */
int rma_wait(struct plx_rma_op *op);

/** As soon as there is room. */
int rma_soon(struct plx_rma_op *op, bool told);

int group_send(struct plx_queue *q, uint64_t group, uint64_t i, uint32_t len);

/** Until so many have come, and then some time. */
void hear(unsigned n);

/** @return a queue of those that hear */
struct plx_queue *group_queue(void);

int lossy_send(struct plx_peer *peer, uint64_t i, uint32_t len);

/** Two queues, and each as the other knows it; they have told each other, and are not connected. */
void lossy_pair(struct plx_queue *q[2], struct plx_peer *to[2]);

/** Until so many have come, and then some time. */
void find(unsigned n);

#define GROUP UINT64_C(0x1234567890abcdef)

/** What came to groups. */
struct heard {
	unsigned n;
	uint64_t group; /* of the last, and its number, of the queue that has it */
	uint64_t number;
	struct plx_queue *q;
};
extern struct heard heard;

/** What came that might have been lost. */
struct found {
	unsigned n;
	struct plx_queue *q;
	struct plx_peer *src; /* of the last, and its number */
	uint64_t number;
};
extern struct found found;

#endif
