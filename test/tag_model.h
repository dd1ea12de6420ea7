/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_model.h - a device that matches tags and reports it late, as hardware does
 *
 * Design notes
 * What software asks for is done at once; what the device has to say waits in one
 * queue of events, which rx_burst takes from. So every delay between the two can be
 * made by when a test polls. It checks that it is used as plx_dev.h says, and can
 * play software that does not keep to it. There is one queue at a time.
 */
#ifndef TAG_MODEL_H
#define TAG_MODEL_H

#include "plx_dev_ops.h"

#define MODEL_LIST_MAX	64
#define MODEL_EVENTS	1024
#define MODEL_MSG_LEN	4 /* data of each message: its id */

/** Mistakes that software could make, made for it. */
enum model_bug {
	MODEL_NO_BUG,
	MODEL_BUG_COUNT,     /* the count is always told as what the device has */
	MODEL_BUG_CANCEL,    /* each cancel is taken for one that succeeded */
};

struct model_recv {
	struct plx_dev_recv r;
	bool active;
};

enum model_event_kind {
	MODEL_UNEXPECTED,
	MODEL_MET,       /* a receive is consumed and completed */
	MODEL_CONSUMED,  /* the first half of that */
	MODEL_COMPLETED, /* the second */
	MODEL_CANCELLED,
};

struct model_event {
	enum model_event_kind kind;
	struct plx_dev_recv r; /* all but of MODEL_UNEXPECTED */
	struct {
		uint64_t tag;
		uint32_t id;
	} msg; /* all but of MODEL_CANCELLED */
};

struct tag_model {
	/* set by the test */
	uint32_t list_n;
	uint16_t burst; /* events taken in one rx_burst at the most */
	enum model_bug bug;
	int post_err, cancel_err; /* what the hooks answer, 0: they work */
	/* to be looked at */
	struct model_recv list[MODEL_LIST_MAX]; /* in the order posted */
	uint32_t n_list;
	uint16_t given; /* unexpected messages, ever */
	struct model_event events[MODEL_EVENTS];
	uint32_t head, n_events; /* first, and how many */
	const char *wrong; /* the first rule that was broken, or NULL */
	struct plx_queue *q;
};

extern struct tag_model model;
extern const struct plx_dev_ops tag_model_ops;

/** Empty, with a list of so many. Before a worker opens "model". */
void model_reset(uint32_t list_n);

/** A message comes to the device. @param halves it has two events when it meets a receive */
void model_arrive(uint64_t tag, uint32_t id, bool halves);

/** The i-th event that waits. */
const struct model_event *model_event(uint32_t i);

#endif
