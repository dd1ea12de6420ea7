/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_explore.h - a device as tag_explore_test.c leads it through its orders of events
 */
#ifndef TAG_EXPLORE_H
#define TAG_EXPLORE_H

#include "plx_unit_worker.h"
#include "tag_model.h"

#define EXPLORE_OWN 2	  /* kinds of steps of a device's own, at the most */
#define EXPLORE_LEN 1024u /* bytes of the longest receive */

typedef uint64_t explore_mix(uint64_t h, uint64_t v);
typedef uint64_t explore_number(const void *buf);

struct explore_dev {
	const char *suite;
	const char *own_names[EXPLORE_OWN]; /* of its own steps, NULL: there are no more */
	unsigned depth;	    /* steps of paths by state */
	unsigned depth_all; /* steps of all paths */
	uint32_t len;	    /* bytes of a receive that it takes */
	bool cancels_late;  /* a message may meet a receive after its cancel was called */

	/** A list of so many, before the worker is there; and settings of it. */
	void (*reset)(struct unit_workers *u, uint32_t list_n);
	void (*open)(struct plx_worker *w);
	/** Between two paths, when nothing waits: forget what the last one has left; may be NULL. */
	void (*settle)(uint16_t seen);
	/** From now on it takes part in a mistake. */
	void (*plant)(enum model_bug bug);
	/** A turn takes so many events at the most. */
	void (*burst)(uint16_t n);
	/** A message comes. @return false: there is no room for it */
	bool (*arrive)(uint64_t tag, uint32_t id, bool halves);
	bool (*own_can)(unsigned i);
	void (*own)(unsigned i);
	/** Whether there are events that a turn takes. */
	bool (*waits)(void);
	/** The first rule that was broken, or NULL. */
	const char *(*wrong)(void);
	uint32_t (*n_list)(void);
	uint16_t (*given)(void); /* messages without a receive, ever */
	/** Its list and its events; number() stands for a receive's buffer. */
	uint64_t (*hash)(uint64_t h, explore_mix *mix, explore_number *number);
};

extern const struct explore_dev explore_devs[];
extern const unsigned explore_n;

#endif
