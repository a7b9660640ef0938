/* SPDX-License-Identifier: MIT. lane_world.h: an engine that records into a small ring, and that nothing is lost uncounted:
 * for tests of lanes, and of the thread that delivers. */
#ifndef PROTOND_TESTS_LANE_WORLD_H
#define PROTOND_TESTS_LANE_WORLD_H

#include "job_engine.h"

static uint32_t A;

static const struct engine_open small = {.n_lanes = 8, .lane_bytes = RING_LANE_BYTES_MIN};

static inline void ready(const struct engine_open *o)
{
	A = t_new("a");
	t_open(o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static inline void pairs(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		t_enter(A);
		t_exit();
	}
}

static inline void balance(uint64_t attempted)
{
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_SCOPE] + view_dropped(&t_v), attempted);
	view_check_tables(&t_v);
}

#endif
