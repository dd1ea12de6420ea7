/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * sleep_test.c - a worker that sleeps wakes when a device has something to do
 *
 * The device is the fake one, with a descriptor that is never readable: only its deadline can end a sleep.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plx_clock.h"
#include "plx_unit.h"
#include "plx_unit_worker.h"
#include "worker_int.h"

#define SOON_NS UINT64_C(30000000)

static struct plx_dev_ops drowsy;
static int fd = -1;
static uint64_t due_ns, called_ns;
static unsigned n_called;
static struct plx_worker *w;

static int
on_efd(struct plx_queue *q)
{
	(void)q;
	return fd;
}

static int
on_arm(struct plx_queue *q)
{
	(void)q;
	return 0;
}

static void
on_disarm(struct plx_queue *q)
{
	(void)q;
}

static uint64_t
on_deadline(struct plx_queue *q)
{
	(void)q;
	return due_ns;
}

static void
on_control(struct plx_queue *q)
{
	(void)q;
	n_called++;
	called_ns = plx_clock_ns();
	due_ns = UINT64_MAX;
}

static void
begin(bool has_deadline)
{
	struct plx_worker_params params = {.wakeup = true, .event_fd = -1};
	struct unit_workers u;

	fake_reset(1);
	unit_workers_conf(&u);
	unit_workers_set(&u, "worker.devices", "drowsy");
	params.conf = &u.conf;
	drowsy.deadline = has_deadline ? on_deadline : NULL;
	due_ns = UINT64_MAX;
	n_called = 0;
	UNIT_EQ_FATAL(plx_worker_create(&params, &w), 0);
}

static void
end(void)
{
	plx_worker_destroy(w);
}

static bool
is_readable(int ms)
{
	struct pollfd p = {.fd = plx_worker_efd(w), .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void
arm(void)
{
	while (plx_worker_arm(w) == -EBUSY)
		plx_worker_progress(w);
}

static void
an_application_that_sleeps_wakes_in_time_for_a_device(void)
{
	uint64_t due;

	begin(true);
	for (unsigned i = 1; i <= 3; i++) {
		due = due_ns = plx_clock_ns() + SOON_NS;
		arm();
		UNIT_EQ(n_called, i - 1);
		UNIT_TRUE(is_readable(-1));
		plx_worker_progress(w);
		UNIT_EQ_FATAL(n_called, i);
		UNIT_TRUE(called_ns >= due);
		UNIT_TRUE(!is_readable(0));
	}
	/* What is due already does not let it sleep. */
	due_ns = plx_clock_ns();
	arm();
	UNIT_TRUE(is_readable(-1));
	plx_worker_progress(w);
	UNIT_EQ(n_called, 4);
	end();
}

static void
a_device_is_not_called_before_its_time(void)
{
	begin(true);
	due_ns = plx_clock_ns() + 1000 * SOON_NS;
	arm();
	UNIT_TRUE(!is_readable(2 * SOON_NS / 1000000));
	UNIT_EQ(plx_worker_signal(w), 0);
	UNIT_TRUE(is_readable(-1));
	plx_worker_progress(w);
	UNIT_EQ(n_called, 0);
	/* The time that was set before does not count any more. */
	due_ns = UINT64_MAX;
	arm();
	UNIT_TRUE(!is_readable(2 * SOON_NS / 1000000));
	UNIT_EQ(n_called, 0);
	end();
}

static void
without_a_deadline_nothing_wakes_it(void)
{
	for (unsigned i = 0; i < 2; i++) {
		begin(i == 0); /* never, or no hook */
		if (i != 0)
			due_ns = plx_clock_ns();
		arm();
		UNIT_TRUE(!is_readable(2 * SOON_NS / 1000000));
		plx_worker_progress(w);
		UNIT_EQ(n_called, 0);
		end();
	}
}

/* As behind a reactor: the glance at a queue that rests is due soon, and later again, as is the look at peers. */
static void
a_queue_that_rests_does_not_end_a_sleep_of_the_reactor(void)
{
	begin(true);
	UNIT_EQ_FATAL(plx_inbox_open(&w->inbox, false), 0);
	UNIT_EQ_FATAL(plx_cq_create(&w->reqs.cq), 0);
	UNIT_EQ_FATAL(worker_rest_open(w), 0);
	for (unsigned i = 0; i < 2; i++) {
		plx_timer_arm(&w->timers, &w->glance, rte_rdtsc() + 1);
		UNIT_EQ(w->poller.arm(w), 0);
		UNIT_EQ(w->poller.due_ticks, w->check.due_ticks);
		UNIT_TRUE(w->glance.armed);
		w->poller.disarm(w);
	}
	due_ns = plx_clock_ns() + SOON_NS;
	UNIT_EQ(w->poller.arm(w), 0);
	UNIT_TRUE(w->poller.due_ticks <= w->check.due_ticks);
	w->poller.disarm(w);
	plx_cq_destroy(w->reqs.cq);
	w->reqs.cq = NULL;
	plx_inbox_close(&w->inbox);
	end();
}

static CU_TestInfo tests[] = {
	UNIT_TEST(a_queue_that_rests_does_not_end_a_sleep_of_the_reactor),
	UNIT_TEST(an_application_that_sleeps_wakes_in_time_for_a_device),
	UNIT_TEST(a_device_is_not_called_before_its_time),
	UNIT_TEST(without_a_deadline_nothing_wakes_it),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"sleep", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	int rc = unit_start();

	if (rc != 0)
		return rc;
	drowsy = fake_dev_ops;
	drowsy.name = "drowsy";
	drowsy.sleep = (struct plx_dev_sleep_ops){.efd = on_efd, .arm = on_arm, .disarm = on_disarm};
	drowsy.queue_control = on_control;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = fd >= 0 ? plx_dev_register(&drowsy) : -errno;
	return rc != 0 ? 1 : unit_run(suites);
}
