/* SPDX-License-Identifier: MIT. fold_collect.c: ceilings, what a collect gives, what the live views
 * read, and the law: attempted = stored + dropped. */
#include "draw.h"
#include "fold_job.h"
#include "hist.h"
#include "state.h"

/* --- ceilings and collecting */

START_TEST(ceiling_goes_to_other)
{
	struct fold_limits small = {.nodes = 1};
	struct batch b;

	start_small(&small);
	put_scope(&lane, P_A, 20, 30);
	put_scope(&lane, P_AB, 20, 30);
	put_scope(&lane, P_CAP, 20, 30);
	drain(&lane, 40);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->count, 1);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a/(other)")->count, 1);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/(other)")->count, 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NODES), 2);
	batch_free(&b);
}
END_TEST

START_TEST(without_memory_all_goes_to_other)
{
	struct fold_limits small = {.bytes = 1};
	struct batch b;

	start_small(&small);
	put_scope(&lane, P_A, 20, 30);
	put_scope(&lane, P_AB, 20, 30);
	put_launch(&lane, P_AB, 20, 7, 0);
	drain(&lane, 40);
	put_kernel(&gpu, N_KERN, 50, 5, 7, 0);
	drain(&gpu, 60);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/(other)")->count, 2);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(other)")->count, 1);
	ck_assert_uint_eq(b.cell.n, 2);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NODES), 3);
	batch_free(&b);
}
END_TEST

/* However many cells have names already: none of the others' is lost. */
START_TEST(other_has_a_ceiling_of_its_own)
{
	enum { PATHS = 8000 };
	struct fold_limits small = {.bytes = 2 << 20};
	struct batch b;
	char text[16];
	const char *name = text;
	uint64_t sum = 0;
	uint32_t i;

	teardown();
	setup_limits(&small);
	for (i = 0; i < PATHS; i++) {
		(void)snprintf(text, sizeof(text), "%u", i);
		tape_names(&t, job.ring, N_NONE + 1 + i, 1, &name);
		tape_paths(&t, job.ring, P_AT_ROOT + 1 + i, 1,
			&(struct ring_path){PATH_ROOT, N_NONE + 1 + i, PATH_KIND_SCOPE, 1, 0});
	}
	fold_take(f, &t);
	start(1, 10);
	for (i = 0; i < PATHS; i++) {
		put_scope(&lane, P_AT_ROOT + 1 + i, 20, 30);
		if (i % 100 == 99)
			drain(&lane, 40);
	}
	b = collect();
	for (i = 0; i < b.cell.n; i++)
		sum += b.cell.row[i].count;
	ck_assert_uint_eq(sum, PATHS);
	ck_assert_uint_gt(b.cell.n, 4096);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NODES), PATHS - b.cell.n + 1);
	batch_free(&b);
}
END_TEST

/* The first takes all there is, with names; what the second needs is less than its share. */
START_TEST(each_process_has_its_share)
{
	static const char *none[] = {"x"};
	struct fold_limits small = {.bytes = 1 << 20};
	struct kit_process second = kit_process(2);
	struct kit_lane other = {.lane = 0};
	char text[1000];
	const char *name = text;
	struct batch b;
	uint32_t i;

	teardown();
	setup_limits(&small);
	for (i = 0; i < 3000; i++) {
		(void)snprintf(text, sizeof(text), "%0999u", i);
		tape_names(&t, job.ring, N_NONE + 1 + i, 1, &name);
	}
	tape_paths(&t, job.ring, P_AT_ROOT + 1, 1,
		&(struct ring_path){PATH_ROOT, N_NONE + 3000, PATH_KIND_SCOPE, 1, 0});
	tape_process(&t, &second);
	tape_names(&t, second.ring, 2, 1, none);
	tape_paths(&t, second.ring, 2, 1, paths);
	fold_take(f, &t);
	start(1, 10);
	put_scope(&lane, P_AT_ROOT + 1, 20, 30);
	drain(&lane, 40);
	put_scope(&other, 2, 20, 30);
	tape_lane(&t, second.ring, 40, &other);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/(other)")->count, 1);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/x")->count, 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NODES), 1);
	batch_free(&b);
}
END_TEST

START_TEST(open_launches_have_a_ceiling)
{
	struct fold_limits small = {.launches = 3};
	struct fold_launch open[8];
	struct batch b;
	uint32_t i;

	start_small(&small);
	for (i = 0; i < 5; i++)
		put_launch(&lane, P_AB, 20 + i, i, 0);
	drain(&lane, 40);
	ck_assert_uint_eq(fold_open_launches(f, job.ring, open, 8), 3);
	ck_assert_uint_eq(open[0].mono_ns, 20); /* the next to be answered */
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_FLIGHT), 2);
	batch_free(&b);
	put_launch(&lane, P_AB, 2 * SECOND, 6, 0);
	drain(&lane, 2 * SECOND); /* the first ones have waited for long */
	ck_assert_uint_eq(fold_open_launches(f, job.ring, open, 8), 3);
	ck_assert_uint_eq(open[0].mono_ns, 21);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_FLIGHT), 3);
	batch_free(&b);
}
END_TEST

/* What is in flight, and what a tree takes, have room of their own: as many launches as there is room for
 * get their kernels, those beyond are counted under their name, and no tree goes to (other). */
START_TEST(flight_starves_no_tree)
{
	enum { LAUNCHES = 60000 };
	struct fold_limits small = {.bytes = 4 << 20};
	const struct row_cell *c;
	struct batch b;
	uint32_t i;

	start_small(&small);
	for (i = 0; i < LAUNCHES; i++) {
		put_launch(&lane, P_AB, 20, i + 1, 0);
		if (i % 1000 == 999)
			drain(&lane, 30);
	}
	put_scope(&lane, P_A, 20, 30);
	drain(&lane, 40);
	for (i = 0; i < LAUNCHES; i++) {
		put_kernel(&gpu, N_KERN, 40, 5, i + 1, 0);
		if (i % 500 == 499)
			drain(&gpu, 50);
	}
	for (i = 0; i < 20;
		i++) { /* what waits has waited long enough, and leaves piece by piece */
		put_scope(&lane, P_AB, 20, 30);
		drain(&lane, 7 * SECOND);
	}
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern");
	ck_assert_uint_gt(c->count, 30000);
	ck_assert_uint_lt(c->count, LAUNCHES);
	ck_assert_uint_eq(c->count + loss_of(&b, 1, LOST_FLIGHT), LAUNCHES);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern")->count,
		LAUNCHES - c->count);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->count, 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NODES), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LAUNCHES), 0);
	ck_assert_uint_lt(
		f->held[WEIGHT_FLIGHT], 4 << 20); /* given back, as nothing is in flight */
	batch_free(&b);
}
END_TEST

/* Records whose launches were not waited for: each that took a launch's place would make another one of it. */
START_TEST(a_record_takes_no_launchs_place)
{
	struct fold_limits small = {.launches = 8};
	struct batch b;
	uint32_t i;

	start_small(&small);
	for (i = 0; i < 6; i++)
		put_kernel(&gpu, N_KERN, 40, 5, 100 + i, 0);
	drain(&gpu, 50);
	for (i = 0; i < 8; i++)
		put_launch(&lane, P_AB, 20, i + 1, 0);
	drain(&lane, 50);
	for (i = 0; i < 6; i++)
		put_kernel(&gpu, N_KERN, 40, 5, 200 + i, 0);
	for (i = 0; i < 8; i++)
		put_kernel(&gpu, N_KERN, 40, 5, i + 1, 0);
	drain(&gpu, 60);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern")->count, 8);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern")->count, 6 + 6);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_FLIGHT), 0);
	batch_free(&b);
}
END_TEST

/* Also those of a graph, whose records share one launch. */
START_TEST(what_runs_has_a_ceiling)
{
	struct fold_limits small = {.launches = 8};
	struct batch b;
	uint32_t i;

	start_small(&small);
	put_launch(&lane, P_AB, 20, 7, LAUNCH_GRAPH);
	drain(&lane, 30);
	for (i = 0; i < 20; i++)
		put_kernel(&gpu, N_KERN, 40 + i, 5, 7, GPU_FLAG_GRAPH | GPU_FLAG_RUNNING);
	drain(&gpu, 60);
	tape_end(&t, job.ring, 70, END_KILLED, -1);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern")->untimed, 8);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern")->untimed, 12);
	batch_free(&b);
}
END_TEST

/* One user's processes, as many as he may have, take all there is; the other comes late, and has each
 * of his names, as many as fit an even share. */
START_TEST(each_user_has_his_share)
{
	enum { PROCESSES = 60, PATHS = 1500 };
	struct fold_limits small = {.bytes = 2 << 20};
	struct kit_process p;
	struct kit_lane l = {.lane = 0};
	char text[20];
	const char *name = text;
	struct batch b;
	uint32_t i, k, named = 0;

	teardown();
	f = fold_of(&small);
	(void)tape_verb(&t, VERB_START, 1, 10);
	tape_verb(&t, VERB_START, 2, 10)->uid = UID + 1;
	for (k = 1; k <= PROCESSES + 1; k++) {
		p = kit_process((uint8_t)k);
		p.uid = k <= PROCESSES ? UID : UID + 1;
		tape_process(&t, &p);
		for (i = 0; i < PATHS; i++) {
			(void)snprintf(text, sizeof(text), "%u", i);
			tape_names(&t, p.ring, 2 + i, 1, &name);
			tape_paths(&t, p.ring, 2 + i, 1,
				&(struct ring_path){PATH_ROOT, 2 + i, PATH_KIND_SCOPE, 1, 0});
		}
		l = (struct kit_lane){.lane = 0};
		for (i = 0; i < PATHS; i++) {
			put_scope(&l, 2 + i, 20, 30);
			if (i % 100 == 99)
				tape_lane(&t, p.ring, 40, &l);
		}
		fold_take(f, &t);
	}
	b = collect();
	for (i = 0; i < b.cell.n; i++)
		named += b.cell.row[i].session == 2;
	ck_assert_uint_eq(named, PATHS);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_NODES), 0);
	ck_assert_uint_gt(loss_of(&b, 1, LOST_NODES), 0);
	batch_free(&b);
}
END_TEST

static bool has_node(const struct batch *b, const char *name)
{
	uint32_t i;

	for (i = 0; i < b->node.n; i++)
		if (strcmp(b->node.row[i].name, name) == 0)
			return true;
	return false;
}

/* The store deletes a node with the last session that has it. */
START_TEST(a_node_is_described_to_each_session)
{
	struct batch b;
	uint8_t id;

	start_small(NULL);
	for (id = 1; id <= 3; id++) {
		if (id > 1)
			start(id, id * 100u);
		put_scope(&lane, P_AB, id * 100u + 20, id * 100u + 30);
		drain(&lane, id * 100u + 40);
		b = collect();
		ck_assert(has_node(&b, "ROOT") && has_node(&b, "a") && has_node(&b, "b"));
		ck_assert_ptr_nonnull(cell_at(&b, id, 0, CLASS_CPU, "ROOT/a/b"));
		batch_free(&b);
		verb(VERB_FINALIZED, id, id * 100u + 50);
		b = collect();
		batch_free(&b);
	}
}
END_TEST

/* In flight: launches without a record, ones whose kernel runs, and kernels without a launch. */
static struct batch ended_in_flight(bool leave)
{
	const struct fold_limits at_once = {.sweep = 100000};
	uint32_t i;

	start_small(leave ? NULL : &at_once);
	for (i = 0; i < 3 * 5000; i++) {
		if (i % 3 < 2)
			put_launch(&lane, P_AB, 20, i, 0);
		if (i % 3 > 0)
			put_kernel(&gpu, N_KERN, 40, 5, i, i % 3 == 1 ? GPU_FLAG_RUNNING : 0);
		if (i % 100 == 99) {
			drain(&lane, 30);
			drain(&gpu, 50);
		}
	}
	ck_assert(fold_has_many(f, job.ring) == leave);
	for (i = 0; leave && fold_has_many(f, job.ring); i++) {
		(void)tape_add(&t, J_LEAVE, job.ring, 60, 0);
		fold_take(f, &t);
	}
	ck_assert(!leave || (i > 1 && i < 20));
	tape_end(&t, job.ring, 70, END_KILLED, -1);
	fold_take(f, &t);
	ck_assert(!fold_has_many(f, job.ring));
	return collect();
}

START_TEST(leaving_and_then_the_end_is_as_the_end)
{
	static const char *const words[] = {"ROOT/a/b/kern", "ROOT/(no launch)/kern"};
	struct batch a = ended_in_flight(false), b;
	uint32_t i;

	b = ended_in_flight(true);
	for (i = 0; i < 2; i++) {
		const struct row_cell *x = cell_at(&a, 1, 0, CLASS_COMPUTE, words[i]);
		const struct row_cell *y = cell_at(&b, 1, 0, CLASS_COMPUTE, words[i]);

		ck_assert_uint_eq(x->count, 5000);
		ck_assert_uint_eq(y->count, 5000);
		ck_assert_uint_eq(x->untimed, y->untimed);
		ck_assert_uint_eq(x->sum_ns, y->sum_ns);
	}
	ck_assert_uint_eq(loss_of(&a, 1, LOST_UNDELIVERED), 5000);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_UNDELIVERED), 5000);
	batch_free(&a);
	batch_free(&b);
}
END_TEST

/* A session's end counts a few records; what is beyond is said to be lost, by its number. */
START_TEST(a_session_ends_with_much_in_flight)
{
	const struct fold_limits small = {.sweep = 300};
	const uint32_t waiting = _i == 0 ? 200 : 1000;
	const struct row_cell *c;
	struct batch b;
	uint32_t i;

	start_small(&small);
	start(2, 10);
	tape_verb(&t, VERB_START, 3, 10)->gpu = 2; /* its scopes alone: loses nothing of a GPU */
	fold_take(f, &t);
	put_launch(&lane, P_AB, 20, 1, LAUNCH_GRAPH);
	for (i = 0; i < 1000; i++)
		put_launch(&lane, P_AB, 20, 10 + i, 0);
	drain(&lane, 30);
	for (i = 0; i < 400; i++)
		put_kernel(&gpu, N_KERN, 40 + i, 5, 1, GPU_FLAG_GRAPH | GPU_FLAG_RUNNING);
	drain(&gpu, 50);
	for (i = 0; i < waiting; i++)
		put_kernel(&gpu, N_KERN, 40, 5, 2000 + i, 0);
	drain(&gpu, 50);
	verb(VERB_FINALIZED, 1, 60);
	verb(VERB_FINALIZED, 3, 60);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 3, LOST_FLIGHT), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LAUNCHES), 1000);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_FLIGHT), 400 + (waiting > 300 ? waiting : 0));
	c = cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern");
	ck_assert_uint_eq(c == NULL ? 0 : c->count, waiting > 300 ? 0 : waiting);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_LAUNCHES), 0);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_FLIGHT), 0);
	batch_free(&b);
	for (i = 0; i < 1000; i++)
		put_kernel(&gpu, N_KERN, 50, 5, 10 + i, 0);
	drain(&gpu, 70);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1); /* of the other session, which goes on */
	ck_assert_uint_eq(b.cell.row[0].count, 1000);
	ck_assert_int_eq(b.cell.row[0].session, 2);
	batch_free(&b);
}
END_TEST

/* --- records that came before their launch, many */

static void tell_counts(void)
{
	struct ring_counts *c = tape_add(&t, J_COUNTS, job.ring, 60, sizeof(*c));

	*c = (struct ring_counts){0};
	fold_take(f, &t);
}

START_TEST(a_graph_is_joined_piece_by_piece)
{
	const struct row_cell *c;
	struct batch b;
	uint32_t i;

	start_small(NULL);
	for (i = 0; i < 20000; i++) {
		put_kernel(&gpu, N_KERN, 40, 5, 7,
			GPU_FLAG_GRAPH | (i == 9000 ? GPU_FLAG_RUNNING : 0));
		if (i % 100 == 99)
			drain(&gpu, 50);
	}
	put_launch(&lane, P_AB, 20, 7, LAUNCH_GRAPH);
	drain(&lane, 50);
	ck_assert(fold_is_joining(f, job.ring));
	put_kernel(&gpu, N_KERN, 40, 5, 7, GPU_FLAG_GRAPH); /* between the pieces */
	put_launch(&lane, P_AB, 20, 8, 0);
	drain(&gpu, 50);
	ck_assert(fold_is_joining(f, job.ring));
	for (i = 0; fold_is_joining(f, job.ring); i++)
		tell_counts();
	ck_assert_uint_eq(i, 7);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern");
	ck_assert_uint_eq(c->count, 20001);
	ck_assert_uint_eq(c->untimed, 1);
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern"));
	ck_assert_uint_eq(b.session.row[0].matched, 1);
	batch_free(&b);
}
END_TEST

/* --- what many threads are in, in many sessions */

START_TEST(open_scopes_are_seen_piece_by_piece)
{
	enum { N = 300, SESSIONS = 64 };
	struct j_now now[N];
	struct batch b;
	uint32_t i, before;

	for (i = 0; i < SESSIONS; i++)
		start((uint8_t)(1 + i), 10);
	for (i = 0; i < N; i++)
		now[i] = (struct j_now){.lane = i % KIT_LANES,
			.tid = i % KIT_LANES,
			.depth = i / KIT_LANES,
			.path = i < N - 2 ? P_A : P_AB,
			.begin = 15 + i};
	tape_now(&t, job.ring, 20, N, now);
	fold_take(f, &t);
	ck_assert(fold_is_joining(f, job.ring));
	put_scope(&lane, P_AB, 15 + N - 2, 400); /* one of the last two is left meanwhile */
	lane.lane = (N - 2) % KIT_LANES;
	drain(&lane, 50);
	for (before = 0; fold_is_joining(f, job.ring); before++)
		tell_counts();
	ck_assert_uint_eq(before, 3);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 2 * SESSIONS);
	for (i = 0; i < SESSIONS; i++) {
		ck_assert_uint_eq(cell_at(&b, 1 + i, 0, CLASS_CPU, "ROOT/a")->count, 0);
		ck_assert_uint_eq(cell_at(&b, 1 + i, 0, CLASS_CPU, "ROOT/a/b")->count, 1);
	}
	batch_free(&b);
}
END_TEST

/* What a thread is in is read ahead of its records. */
START_TEST(an_open_scope_waits_for_the_phase_it_began_in)
{
	const struct j_now now = {.tid = 1, .path = P_A, .begin = 25};
	struct batch b;

	start(1, 10);
	tape_now(&t, job.ring, 30, 1, &now);
	fold_take(f, &t);
	verb(VERB_PHASE, 1, 20);
	put_scope(&lane, P_AB, 12, 15);
	drain(&lane, 31);
	tell_counts();
	b = collect();
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a"));
	ck_assert_ptr_nonnull(cell_at(&b, 1, 1, CLASS_CPU, "ROOT/a"));
	ck_assert_ptr_nonnull(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a/b"));
	batch_free(&b);
}
END_TEST

/* Each from another place is another way down: what finds it again has a ceiling, too. */
START_TEST(captured_paths_have_a_ceiling)
{
	enum { PATHS = 400 };
	struct fold_limits small = {.bytes = 2 << 20};
	struct batch b;
	char text[16];
	const char *name = text;
	uint64_t sum = 0, most = 0;
	uint32_t i, k;

	teardown();
	setup_limits(&small);
	for (i = 0; i < PATHS; i++) {
		(void)snprintf(text, sizeof(text), "%u", i);
		tape_names(&t, job.ring, N_NONE + 1 + i, 1, &name);
		tape_paths(&t, job.ring, P_AT_ROOT + 1 + i, 1,
			&(struct ring_path){PATH_ROOT, N_NONE + 1 + i, PATH_KIND_SCOPE, 1, 0});
	}
	fold_take(f, &t);
	start(1, 10);
	for (i = 0; i < PATHS; i++)
		put_scope(&lane, P_AT_ROOT + 1 + i, 20, 30);
	drain(&lane, 30);
	for (i = 0; i < PATHS; i++) {
		put_launch(&lane, P_AT_ROOT + 1 + i, 20, 7, LAUNCH_GRAPH);
		drain(&lane, 30);
		for (k = 0; k < PATHS; k++) {
			struct rec_kernel r = {.start = 40 + REAL_AHEAD,
				.end = 45 + REAL_AHEAD,
				.correlation = 7,
				.epoch = 1,
				.captured = P_AT_ROOT + 1 + k,
				.config = UINT32_MAX};

			lane_put(&gpu, REC_KERNEL, GPU_FLAG_GRAPH, N_KERN, &r, sizeof(r));
			if (k % 100 == 99)
				drain(&gpu, 50);
		}
		most = f->held[WEIGHT_REST] > most ? f->held[WEIGHT_REST] : most;
	}
	ck_assert_uint_lt(most, small.bytes + small.bytes / 4);
	b = collect();
	for (i = 0; i < b.cell.n; i++)
		sum += b.cell.row[i].count;
	ck_assert_uint_eq(sum, PATHS + PATHS * PATHS);
	batch_free(&b);
}
END_TEST

/* An ordinary launch has one record, and a liar's has any number. */
START_TEST(a_launch_with_many_records_lies)
{
	struct batch b;
	uint32_t i;

	start_small(NULL);
	for (i = 0; i < 16; i++)
		put_kernel(&gpu, N_KERN, 40, 5, 6, 0);
	for (i = 0; i < 17; i++)
		put_kernel(&gpu, N_KERN, 40, 5, 7, 0);
	drain(&gpu, 50);
	put_launch(&lane, P_AB, 20, 6, 0);
	put_launch(&lane, P_AB, 20, 7, 0);
	drain(&lane, 50);
	tape_anchor(&t, RING_CLOCK_MONOTONIC, 7 * SECOND, 7 * SECOND, REAL_AHEAD + 7 * SECOND);
	fold_take(f, &t); /* what waits has waited long enough */
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern")->count, 1);
	ck_assert_uint_eq(
		cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/(no launch)/kern")->count, 15 + 17);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LAUNCHES), 1);
	batch_free(&b);
}
END_TEST

/* --- histograms, which are kept as narrow as they can be */

static void same_hist(const struct batch *b, const struct row_cell *c, const uint32_t *want)
{
	struct hist_counts h;
	uint32_t i;

	batch_durations(b, c, &h);
	ck_assert(!h.coarse);
	for (i = 0; i < HIST_BUCKETS; i++)
		ck_assert_uint_eq(i - h.first < h.n ? h.count[i] : 0, want[i]);
}

/* Durations of up to 2^_i ns, in any order. */
START_TEST(histograms_are_exact)
{
	uint32_t want[HIST_BUCKETS] = {0}, i;
	uint64_t random = 88172645463325252u + (uint64_t)_i, ns;
	struct batch b;

	start(1, 10);
	for (i = 1; i <= 500; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		ns = (random >> 8) % (1ull << (random % 256 * (uint32_t)_i / 256 + 1));
		put_scope(&lane, P_A, 20, 20 + ns);
		want[hist_bucket(ns)]++;
		if (i % 50 != 0 && i > 3)
			continue;
		drain(&lane, 1ull << 50);
		b = collect();
		ck_assert_uint_eq(b.cell.n, 1);
		same_hist(&b, &b.cell.row[0], want);
		batch_free(&b);
	}
}
END_TEST

START_TEST(without_memory_no_histogram)
{
	struct fold_limits small = {.bytes = 1};
	const struct row_cell *c;
	struct batch b;

	start_small(&small);
	put_scope(&lane, P_A, 20, 30);
	put_scope(&lane, P_A, 20, 4000);
	put_scope(&lane, P_A, 20, 30);
	drain(&lane, 5000);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/(other)");
	ck_assert_uint_eq(c->count, 3);
	ck_assert_uint_eq(c->buckets_n, 0);
	ck_assert_uint_eq(b.note.n, 1);
	ck_assert_str_eq(
		b.note.row[0].text, "1 paths have no quantiles: the daemon's memory_mb is used up");
	batch_free(&b);
}
END_TEST

START_TEST(only_what_changed_is_collected)
{
	struct batch b;

	start(1, 10);
	put_scope(&lane, P_A, 20, 30);
	put_scope(&lane, P_AB, 20, 30);
	drain(&lane, 40);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 2);
	ck_assert_uint_eq(b.node.n, 3);
	batch_free(&b);
	ck_assert(!fold_is_dirty(f));
	put_scope(&lane, P_AB, 50, 60);
	drain(&lane, 70);
	ck_assert(fold_is_dirty(f));
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	ck_assert_uint_eq(b.cell.row[0].count, 2); /* absolute */
	ck_assert_uint_eq(b.node.n, 0);
	ck_assert_uint_eq(b.member.n, 0);
	batch_free(&b);
}
END_TEST

START_TEST(finalized_sessions_are_forgotten)
{
	struct fold_session s;
	uint8_t uuid[16];
	struct batch b;

	memset(uuid, 1, 16);
	start(1, 10);
	verb(VERB_FINALIZED, 1, 20);
	b = collect();
	batch_free(&b);
	ck_assert(fold_get_session(f, uuid, &s));
	b = collect();
	batch_free(&b);
	ck_assert(!fold_get_session(f, uuid, &s));
}
END_TEST

/* Whoever asked the store before it was stored must find it here. */
START_TEST(a_final_session_stays_until_it_is_seen)
{
	struct batch b = {0};
	struct fold_session s;
	uint32_t round;
	uint8_t uuid[16];
	int i;

	memset(uuid, 1, 16);
	start(1, 10);
	verb(VERB_FINALIZED, 1, 20);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(fold_collect(f, &b), 0);
		batch_free(&b);
		if (i == 0)
			round = fold_round(f);
		ck_assert(fold_get_session(f, uuid, &s));
		ck_assert(!s.stored);
	}
	fold_seen(f, round);
	ck_assert(fold_get_session(f, uuid, &s));
	ck_assert(s.stored);
	verb(VERB_NOTE, 1, 30); /* is news: what was seen lacks it */
	ck_assert(fold_get_session(f, uuid, &s));
	ck_assert(!s.stored);
	ck_assert_int_eq(fold_collect(f, &b), 0);
	batch_free(&b);
	fold_seen(f, fold_round(f) - 1);
	ck_assert_int_eq(fold_collect(f, &b), 0);
	batch_free(&b);
	ck_assert(fold_get_session(f, uuid, &s));
	fold_seen(f, fold_round(f));
	ck_assert_int_eq(fold_collect(f, &b), 0);
	batch_free(&b);
	ck_assert(!fold_get_session(f, uuid, &s));
}
END_TEST

START_TEST(busy_is_a_union)
{
	struct batch b;

	start(1, 10 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 1, 0);
	put_launch(&lane, P_A, 11 * SECOND, 2, 0);
	put_launch(&lane, P_A, 11 * SECOND, 3, 0);
	put_kernel(&lane, N_KERN, 20 * SECOND, 4 * SECOND, 1, 0);
	put_kernel(&lane, N_KERN, 22 * SECOND, 4 * SECOND, 2, 0);
	put_kernel(&lane, N_KERN, 9 * SECOND, 2 * SECOND, 3, 0); /* half before the session */
	drain(&lane, 30 * SECOND);
	b = collect();
	ck_assert_uint_eq(b.busy.n, 1);
	ck_assert_uint_eq(b.busy.row[0].busy_ns, 7 * SECOND);
	ck_assert_uint_eq(b.busy.row[0].first_ns, 10 * SECOND);
	ck_assert_uint_eq(b.busy.row[0].last_ns, 26 * SECOND);
	batch_free(&b);
}
END_TEST

START_TEST(a_stepped_clock_is_told)
{
	struct batch b;

	start(1, 10);
	tape_anchor(&t, RING_CLOCK_MONOTONIC, SECOND, SECOND, SECOND + REAL_AHEAD);
	tape_anchor(
		&t, RING_CLOCK_MONOTONIC, 2 * SECOND, 2 * SECOND, 2 * SECOND + REAL_AHEAD + 500000);
	tape_anchor(&t, RING_CLOCK_MONOTONIC, 3 * SECOND, 3 * SECOND,
		3 * SECOND + REAL_AHEAD + 5500000);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.note.n, 1);
	ck_assert_str_eq(b.note.row[0].text, "clock stepped by +5.000 ms");
	ck_assert_uint_eq(b.anchor.n, 3);
	batch_free(&b);
}
END_TEST

START_TEST(where_and_top)
{
	struct fold_launch open[4];
	char words[32];

	start(1, 10 * SECOND);
	put_launch(&lane, P_AB, 11 * SECOND, 1, 0);
	put_launch(&lane, P_A, 12 * SECOND, 2, 0);
	put_kernel(&lane, N_KERN, 13 * SECOND, 0, 2, GPU_FLAG_RUNNING);
	drain(&lane, 14 * SECOND);
	ck_assert_uint_eq(fold_open_launches(f, job.ring, open, 4), 2);
	ck_assert(open[0].running);
	ck_assert_str_eq(open[0].name, "kern");
	ck_assert_uint_eq(open[0].mono_ns, 12 * SECOND);
	ck_assert(!open[1].running);
	ck_assert_uint_eq(open[1].path, P_AB);
	ck_assert_int_eq(fold_path_text(f, job.ring, P_AB, words, sizeof(words)), 3);
	ck_assert_str_eq(words, "a/b");
	ck_assert_int_eq(fold_path_text(f, job.ring, P_AB, words, 2), 3);
	ck_assert_str_eq(words, "a");
	ck_assert_int_eq(fold_path_text(f, job.ring, 999, words, sizeof(words)), 0);
}
END_TEST

struct seen {
	char text[256];
};

static void see(void *arg, const struct fold_cell *c)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	(void)snprintf(
		s->text + n, sizeof(s->text) - n, "%s=%lu/%lu ", c->path, c->sum_ns, c->count);
}

/* Also the bytes of the first name, and each bucket that has some. */
static void see_more(void *arg, const struct fold_cell *c)
{
	struct seen *s = arg;
	uint32_t i;

	see(arg, c);
	for (i = 0; i < c->n_parts; i++)
		(void)snprintf(s->text + strlen(s->text), 16, "%u:%u ", c->part[i], c->n_parts);
	for (i = c->hist->first; i < c->hist->first + c->hist->n; i++)
		if (c->hist->count[i] > 0)
			(void)snprintf(s->text + strlen(s->text), 32, "%.0f:%lu ", hist_answer(i),
				c->hist->count[i]);
}

START_TEST(top_merges_processes)
{
	struct kit_process second = kit_process(2);
	struct kit_lane its = {.lane = 0};
	struct seen seen = {{0}};
	uint8_t uuid[16];

	memset(uuid, 1, 16);
	tape_process(&t, &second);
	tape_names(&t, second.ring, 2, 2, names);
	tape_paths(&t, second.ring, 2, 2, paths);
	fold_take(f, &t);
	start(1, 10);
	put_scope(&lane, P_A, 20, 25);
	put_scope(&lane, P_AB, 20, 22);
	drain(&lane, 30);
	put_scope(&its, P_A, 20, 27);
	tape_lane(&t, second.ring, 30, &its);
	fold_take(f, &t);
	fold_top(f, uuid, &(struct fold_top_wish){.n = 10}, see, &seen);
	ck_assert_str_eq(seen.text, "a=12/2 a/b=2/1 ");
	seen.text[0] = '\0';
	fold_top(f, uuid, &(struct fold_top_wish){.n = 10, .ring = second.ring}, see, &seen);
	ck_assert_str_eq(seen.text, "a=7/1 ");
	seen.text[0] = '\0';
	fold_top(f, uuid, &(struct fold_top_wish){.n = 1, .hist = true}, see_more, &seen);
	ck_assert_str_eq(seen.text, "a=12/2 1:1 5:1 7:1 ");
	seen.text[0] = '\0';
	fold_top(f, uuid, &(struct fold_top_wish){.n = 10, .device = uuid}, see, &seen);
	ck_assert_str_eq(seen.text, "");
}
END_TEST

/* --- the law: attempted = stored + dropped */

START_TEST(every_launch_is_somewhere)
{
	uint64_t stored = 0, launched = 0;
	struct batch b;
	uint32_t i;

	seed += (uint64_t)_i;
	start(1, 10 * SECOND);
	for (i = 0; i < 2000; i++) {
		(void)draw();
		if (seed % 3 != 0) {
			put_launch(&lane, P_AB, 20 * SECOND + i, (uint32_t)(seed >> 8) % 500, 0);
			launched++;
		} else {
			put_kernel(&lane, N_KERN, 20 * SECOND + i, 7, (uint32_t)(seed >> 8) % 500,
				(seed >> 40) % 8 == 0 ? GPU_FLAG_RUNNING : 0);
		}
		if (lane.n > 30000)
			drain(&lane, 21 * SECOND);
	}
	drain(&lane, 22 * SECOND);
	tape_end(&t, job.ring, 30 * SECOND, END_EXITED, 0);
	fold_take(f, &t);
	b = collect();
	for (i = 0; i < b.cell.n; i++)
		stored += b.cell.row[i].class == CLASS_COMPUTE ? b.cell.row[i].count : 0;
	ck_assert_uint_eq(b.process.row[0].counters[1], launched);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern")->count +
				  loss_of(&b, 1, LOST_LAUNCHES) + loss_of(&b, 1, LOST_UNDELIVERED),
		launched);
	ck_assert_uint_le(stored, b.process.row[0].counters[2]);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_collect");
	TCase *c = tcase_create("cells");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, ceiling_goes_to_other);
	tcase_add_test(c, without_memory_all_goes_to_other);
	tcase_add_test(c, other_has_a_ceiling_of_its_own);
	tcase_add_test(c, each_process_has_its_share);
	tcase_add_test(c, each_user_has_his_share);
	tcase_add_test(c, a_node_is_described_to_each_session);
	tcase_add_test(c, open_launches_have_a_ceiling);
	tcase_add_test(c, flight_starves_no_tree);
	tcase_add_test(c, a_record_takes_no_launchs_place);
	tcase_add_test(c, what_runs_has_a_ceiling);
	tcase_add_loop_test(c, a_session_ends_with_much_in_flight, 0, 2);
	tcase_add_test(c, leaving_and_then_the_end_is_as_the_end);
	tcase_add_test(c, a_graph_is_joined_piece_by_piece);
	tcase_add_test(c, open_scopes_are_seen_piece_by_piece);
	tcase_add_test(c, an_open_scope_waits_for_the_phase_it_began_in);
	tcase_add_test(c, captured_paths_have_a_ceiling);
	tcase_add_test(c, a_launch_with_many_records_lies);
	tcase_add_loop_test(c, histograms_are_exact, 1, 42);
	tcase_add_test(c, without_memory_no_histogram);
	tcase_add_test(c, only_what_changed_is_collected);
	tcase_add_test(c, finalized_sessions_are_forgotten);
	tcase_add_test(c, a_final_session_stays_until_it_is_seen);
	tcase_add_test(c, busy_is_a_union);
	tcase_add_test(c, a_stepped_clock_is_told);
	tcase_add_test(c, where_and_top);
	tcase_add_test(c, top_merges_processes);
	tcase_add_loop_test(c, every_launch_is_somewhere, 0, 5);
	suite_add_tcase(s, c);
	return s;
}
