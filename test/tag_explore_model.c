/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * tag_explore_model.c - the model device, for tag_explore_test.c
 */
#include "tag_explore.h"

static void
reset(struct unit_workers *u, uint32_t list_n)
{
	unit_workers_set(u, "worker.devices", "model");
	model_reset(list_n);
}

static void
opened(struct plx_worker *w)
{
	(void)w;
}

static void
plant(enum model_bug bug)
{
	model.bug = bug;
}

static void
burst(uint16_t n)
{
	model.burst = n;
}

static bool
arrive(uint64_t tag, uint32_t id, bool halves)
{
	model_arrive(tag, id, halves);
	return true;
}

static bool
waits(void)
{
	return model.n_events != 0;
}

static const char *
wrong(void)
{
	return model.wrong;
}

static uint32_t
n_list(void)
{
	return model.n_list;
}

static uint16_t
given(void)
{
	return model.given;
}

static uint64_t
hash(uint64_t h, explore_mix *mix, explore_number *number)
{
	h = mix(h, 1000 + model.n_list);
	for (uint32_t i = 0; i < model.n_list; i++)
		h = mix(h, number(model.list[i].r.buf) << 1 ^ model.list[i].active);
	h = mix(h, 2000 + model.n_events);
	for (uint32_t i = 0; i < model.n_events; i++) {
		const struct model_event *e = model_event(i);

		h = mix(h, number(e->r.buf) << 16 ^ e->msg.tag << 8 ^ e->kind);
	}
	return h;
}

const struct explore_dev explore_devs[] = {
	{.suite = "tag offload, explored", .depth = 8, .depth_all = 6, .len = 8,
		.reset = reset, .open = opened, .plant = plant, .burst = burst, .arrive = arrive,
		.waits = waits, .wrong = wrong, .n_list = n_list, .given = given, .hash = hash},
};
const unsigned explore_n = 1;
