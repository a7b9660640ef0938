/* SPDX-License-Identifier: MIT. view_late_rank.c: which rank the others wait for, and what it does meanwhile. */
#include <math.h>
#include <stdlib.h>

#include "late_rank.h"
#include "quick.h"
#include "step_pace.h"

#define RANKED 4u /* and a launcher, which has no work */
#define N      20u
#define MS     1000000u

enum { STEP = 1, FORWARD, NCCL, LOADER, NODES };

struct made {
	struct ranks r;
	struct steps s;
	struct ranks_process process[RANKED + 1];
	struct steps_process of[RANKED];
	struct step step[RANKED * N];
	uint64_t ns[NODES * (RANKED + 1)], host_ns[NODES * (RANKED + 1)];
	struct late_rank late;
};

static struct step *step_of(struct made *m, uint32_t rank, uint32_t i)
{
	return &m->step[rank * N + i];
}

/* Ranks 0 to 3, each step of 10 ms with 1 ms in collectives; rank 2's collectives take `last_ms`. */
static struct made *made(uint32_t last_ms)
{
	struct made *m = calloc(1, sizeof(*m));
	uint32_t k, i;

	ck_assert_ptr_nonnull(m);
	m->r = (struct ranks){.p = profile_new(),
		.process = m->process,
		.n = RANKED + 1,
		.ns = m->ns,
		.host_ns = m->host_ns,
		.cost = COST_gpu_time};
	ck_assert_ptr_nonnull(m->r.p);
	ck_assert_uint_eq(profile_add_node(m->r.p, 0, "step", NODE_SCOPE), STEP);
	ck_assert_uint_eq(profile_add_node(m->r.p, STEP, "forward", NODE_SCOPE), FORWARD);
	ck_assert_uint_eq(profile_add_node(m->r.p, FORWARD, "_Z3abc", NODE_KERNEL), NCCL);
	ck_assert_uint_eq(profile_add_node(m->r.p, STEP, "dataloader", NODE_SCOPE), LOADER);
	m->r.p->node[NCCL].class = CLASS_COMM;
	m->s = (struct steps){
		.step = m->step, .process = m->of, .n_processes = RANKED, .n = RANKED * N};
	m->process[RANKED] = (struct ranks_process){9, 99, -1, 0};
	for (k = 0; k < RANKED; k++) {
		const uint32_t comm = k == 2 ? last_ms : 4;

		m->process[k] = (struct ranks_process){k, 100 + k, k, (uint64_t)N * 8 * MS};
		m->of[k] = (struct steps_process){100 + k, k, (double)NAN, (double)NAN};
		for (i = 0; i < N; i++)
			*step_of(m, k, i) = (struct step){.process = k,
				.number = i + 1,
				.begin_ns = (uint64_t)i * 10 * MS,
				.end_ns = (uint64_t)(i + 1) * 10 * MS,
				.part_ns = {[PART_COMM] = (uint64_t)comm * MS,
					[PART_COMPUTE] = 4 * MS}};
		for (i = 0; i <= NCCL; i++)
			m->ns[i * (RANKED + 1) + k] =
				(uint64_t)N * MS * (i == NCCL ? comm : 4 + comm);
		for (i = 0; i < NODES; i++)
			m->host_ns[i * (RANKED + 1) + k] = (uint64_t)N * MS * (i == LOADER ? 1 : 9);
	}
	return m;
}

static struct late_rank *found(struct made *m, bool steps)
{
	ck_assert_int_eq(pace_mark(&m->s), 0);
	ck_assert(late_rank_find(&m->r, steps ? &m->s : NULL, &m->late));
	return &m->late;
}

static void done(struct made *m)
{
	profile_free(m->r.p);
	free(m);
}

START_TEST(the_one_whose_collectives_take_least)
{
	struct made *m = made(1);
	const struct late_rank *l = found(m, true);

	ck_assert_uint_eq(l->at, 2);
	ck_assert(l->by_steps && l->since == 0 && l->steps == N);
	ck_assert(l->step_wait_ns == 3 * MS && l->wait_ns == 3.0 * N * MS);
	ck_assert(fabs(l->share - 0.3) < 1e-9);
	ck_assert_uint_eq(l->node, PROFILE_NONE); /* it has no more of anything */
	ck_assert(!found(m, false)->by_steps && m->late.at == 2);
	ck_assert(m->late.wait_ns == 3.0 * N * MS && isnan(m->late.step_wait_ns));
	done(m);
}
END_TEST

START_TEST(what_it_does_meanwhile)
{
	struct made *m = made(1);
	const struct late_rank *l;

	m->host_ns[LOADER * (RANKED + 1) + 2] += (uint64_t)N * 3 * MS;
	l = found(m, true);
	ck_assert(l->node == LOADER && l->host && l->more_ns == 3.0 * N * MS);
	m->ns[STEP * (RANKED + 1) + 2] += (uint64_t)N * 2 * MS;
	m->ns[FORWARD * (RANKED + 1) + 2] += (uint64_t)N * 2 * MS;
	l = found(m, true);
	ck_assert(l->node == FORWARD && !l->host && l->more_ns == 2.0 * N * MS);
	done(m);
}
END_TEST

/* Waits of the start are none of it, and it says since when. */
START_TEST(since_when)
{
	struct made *m = made(4);
	const struct late_rank *l;
	uint32_t k, i;

	for (i = 0; i < N; i++)
		step_of(m, 2, i)->part_ns[PART_COMM] = (i < 8 ? 4 : 1) * MS;
	for (k = 0; k < RANKED; k++) {
		step_of(m, k, 0)->end_ns += 500 * MS;
		step_of(m, k, 0)->part_ns[PART_COMM] += k == 1 ? 0 : 400 * MS;
	}
	l = found(m, true);
	ck_assert_uint_eq(l->at, 2);
	ck_assert(l->step_wait_ns == 3 * MS && l->since == 9);
	done(m);
}
END_TEST

/* One after the other is late: nobody waits for one of them. */
START_TEST(by_turns)
{
	struct made *m = made(4);
	uint32_t i;

	for (i = 0; i < N; i++)
		step_of(m, i % RANKED, i)->part_ns[PART_COMM] = MS;
	ck_assert(found(m, true)->step_wait_ns == 0 && m->late.wait_ns == 0);
	done(m);
}
END_TEST

START_TEST(nothing_to_compare)
{
	struct made *m = made(1);
	uint32_t k;

	m->s.n = 3; /* too few steps: of all */
	ck_assert(!found(m, true)->by_steps);
	for (k = 1; k < RANKED; k++)
		m->ns[NCCL * (RANKED + 1) + k] = 0;
	ck_assert(!late_rank_find(&m->r, NULL, &m->late));
	m->r.cost = COST_cpu_time;
	ck_assert(!late_rank_find(&m->r, &m->s, &m->late));
	done(m);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_late_rank");
	TCase *t = tcase_create("late rank");

	tcase_add_test(t, the_one_whose_collectives_take_least);
	tcase_add_test(t, what_it_does_meanwhile);
	tcase_add_test(t, since_when);
	tcase_add_test(t, by_turns);
	tcase_add_test(t, nothing_to_compare);
	suite_add_tcase(s, t);
	return s;
}
