/* SPDX-License-Identifier: MIT. alone_fold.c: the fold and the journal by themselves: this program is
 * linked with those two rooms and proto's base and session alone, and with no event loop and no
 * database. What the fold made of the entries as they came, it makes again of the journal. And
 * callers who break a contract of the two rooms are stopped. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fold_shop.h"
#include "member.h"
#include "process.h"
#include "session.h"
#include "state.h"

#include "fold_job.h" /* last: its globals */

static char dir[] = "/dev/shm/protond-alone-XXXXXX";
static int dirfd_of;
static struct journal *journal;

static void setup_journal(void)
{
	struct err e = {0};

	setup();
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dirfd_of = open(dir, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dirfd_of, 0);
	ck_assert_msg(journal_open(dirfd_of, &journal, &e) == 0, "%s", e.text);
}

static void teardown_journal(void)
{
	journal_close(journal);
	(void)unlinkat(dirfd_of, "journal.1", 0);
	(void)close(dirfd_of);
	(void)rmdir(dir);
	teardown();
}

/* --- once live, once from the file --- */

/* Journals what is on the tape, applies it as it was journaled, and forgets it. */
static void live(struct fold *to)
{
	const struct journal_entry *e;
	uint32_t bytes, i;
	void *payload;

	for (i = 0; i < t.n; i++) {
		bytes = t.entry[i]->bytes - (uint32_t)sizeof(*e);
		ck_assert_int_eq(
			journal_stage(journal, t.entry[i]->type, t.entry[i]->ring, bytes, &payload),
			0);
		memcpy(payload, t.entry[i] + 1, bytes);
		e = journal_commit(journal, bytes);
		ck_assert_ptr_nonnull(e);
		ck_assert_int_eq(fold_apply(to, e), 0);
	}
	ck_assert_int_eq(journal_flush(journal), 0);
	tape_free(&t);
}

struct again {
	struct fold *fold;
	uint32_t n[J_MAX]; /* entries of each type */
};

static int apply_again(void *arg, const struct journal_entry *e)
{
	struct again *a = arg;

	a->n[e->type]++;
	return fold_apply(a->fold, e);
}

/* A job of two sessions, with a timeline, that is killed with a scope open and launches in flight. */
static void record(struct fold *to)
{
	const struct ring_config config = {.grid = {8, 1, 1}, .block = {128, 1, 1}};
	const struct ring_device device = {.name = "GPU", .pci_bus = 27};
	const struct j_now now = {.lane = 0, .tid = 77, .depth = 0, .path = P_A, .begin = 5000};
	struct kit_lane sums = {.lane = 2};
	struct rec_sum sum = {.opened = 600, .time = 90, .min = 30, .max = 60, .count[30] = 2};
	struct ring_counts *counts;
	uint64_t at = 20;

	tape_process(&t, &job);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	tape_table(&t, job.ring, TABLE_CONFIGS, 0, 1, &config, sizeof(config));
	tape_table(&t, job.ring, TABLE_DEVICES, 0, 1, &device, sizeof(device));
	((struct j_state *)tape_add(&t, J_STATE, job.ring, 0, sizeof(struct j_state)))->gpu =
		GPU_ON;
	tape_verb(&t, VERB_START, 1, 10)->data = SESSION_BOTH;
	(void)tape_verb(&t, VERB_START, 2, 500);
	tape_anchor(&t, RING_CLOCK_MONOTONIC, 15, 15, 15 + REAL_AHEAD);
	live(to);
	for (uint32_t i = 1; i <= 100; i++, at += 40) {
		put_launch(&lane, P_AB, at, i, i % 7 == 0 ? LAUNCH_GRAPH : 0);
		put_scope(&lane, P_AB, at, at + 30);
		put_metric(&lane, P_A, at + 5, N_INC, METRIC_I64, i);
		if (i % 10 != 0)
			put_kernel(&gpu, i % 3 == 0 ? N_NCCL : N_KERN, at + 3, 11, i, 0);
		if (i % 25 != 0)
			continue;
		put_delivered(&gpu, at, 0);
		tape_lane(&t, job.ring, at, &lane);
		tape_lane(&t, job.ring, at, &gpu);
		(void)tape_verb(&t, VERB_PHASE, 1, at + 35);
		live(to);
	}
	counts = tape_add(&t, J_COUNTS, job.ring, at, sizeof(*counts) + sizeof(struct j_drop));
	counts->gpu_dropped = 3;
	((struct j_drop *)(counts + 1))->full = 4;
	((struct j_cost *)tape_add(&t, J_COST, NULL, at, sizeof(struct j_cost)))->cpu_ns = 1000;
	((struct j_resident *)tape_add(&t, J_RESIDENT, job.ring, at, sizeof(struct j_resident)))
		->bytes = 1;
	for (uint32_t i = 0; i < 3; i++) { /* of its GPU, of another one, and of the host */
		*(struct device_reading *)tape_add(
			&t, J_DEVICE, NULL, at, sizeof(struct device_reading)) =
			(struct device_reading){.head = {DEVICE_MAGIC, DEVICE_READING},
				.gpu = i < 2 ? i : DEVICE_HOST,
				.pci_bus = 27 + i,
				.begin_ns = 10,
				.end_ns = 20,
				.known = 1ull << (i < 2 ? DEVICE_power : DEVICE_net_rx)};
	}
	tape_now(&t, job.ring, at, 1, &now);
	lane_put(&sums, REC_SUM, 0, P_A, &sum, sizeof(sum));
	tape_sums(&t, job.ring, at, &sums);
	live(to);
}

static void end(struct fold *to)
{
	(void)tape_add(&t, J_LEAVE, job.ring, 9000, 0);
	tape_end(&t, job.ring, 9000, END_KILLED, 9);
	(void)tape_verb(&t, VERB_FINALIZED, 1, 9001);
	live(to);
}

static uint32_t n_readings(const struct shop *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->v[i].kind == ROW_reading;
	return n;
}

/* In addition to what the shop has: a cell that it has comes without its node. */
static void sell(struct fold *from, struct shop *to)
{
	struct batch b = {0};

	ck_assert_int_eq(fold_collect(from, &b), 0);
	shop_put(to, &b);
}

/* In flight, then ended: the second time the journal is replayed from where the first was
 * collected, as behind what a store has. */
START_TEST(a_journal_replayed_is_the_fold_it_was)
{
	struct fold *one = fold_of(NULL);
	struct again a = {.fold = fold_of(NULL)};
	struct shop was = {0}, is = {0};
	uint64_t position;
	int gap = 1;

	record(one);
	position = journal_position(journal);
	ck_assert_int_eq(journal_replay(journal, 0, apply_again, &a, &gap), 0);
	ck_assert_int_eq(gap, 0);
	sell(one, &was);
	sell(a.fold, &is);
	ck_assert_uint_gt(was.n, 20);
	ck_assert_uint_eq(n_readings(&was), 4); /* two sessions: the host's, and their GPU's */
	shop_same(&was, &is, "in flight");
	end(one);
	ck_assert_int_eq(journal_replay(journal, position, apply_again, &a, &gap), 0);
	sell(one, &was);
	sell(a.fold, &is);
	ck_assert_uint_gt(was.n, 25);
	shop_same(&was, &is, "ended");
	for (uint32_t i = 1; i < J_MAX; i++)
		ck_assert_msg(a.n[i] > 0, "no entry of type %u was replayed", i);
	shop_free(&was);
	shop_free(&is);
	fold_free(one);
	fold_free(a.fold);
}
END_TEST

/* --- callers who break a contract --- */

static void stage(uint32_t bytes)
{
	void *payload;

	ck_assert_int_eq(journal_stage(journal, J_LEAVE, job.ring, bytes, &payload), 0);
	memset(payload, 0, bytes);
}

static void commit_of_nothing(void)
{
	(void)journal_commit(journal, 0);
}

static void commit_of_more_than_was_staged(void)
{
	stage(8);
	(void)journal_commit(journal, 16);
}

static int stage_more(void *arg, const struct journal_entry *e)
{
	(void)arg;
	(void)e;
	stage(0);
	return 0;
}

static void stage_in_a_replay(void)
{
	int gap;

	stage(0);
	(void)journal_commit(journal, 0);
	ck_assert_int_eq(journal_flush(journal), 0);
	(void)journal_replay(journal, 0, stage_more, NULL, &gap);
}

static void forget_beyond_the_end(void)
{
	journal_forget(journal, journal_position(journal) + (1ull << 32), 0, NULL, NULL);
}

static void no_journal(void)
{
	static uint64_t other[32];

	(void)journal_position((void *)other);
}

static void apply_before_the_commit(void)
{
	void *payload;

	ck_assert_int_eq(journal_stage(journal, J_LEAVE, job.ring, 0, &payload), 0);
	(void)fold_apply(f, (struct journal_entry *)payload - 1);
}

static void apply_half_an_entry(void)
{
	static const struct journal_entry e = {
		.magic = JOURNAL_MAGIC, .bytes = sizeof(e) - 8, .type = J_LEAVE};

	(void)fold_apply(f, &e);
}

static void apply_to_no_fold(void)
{
	static uint64_t other[512];

	(void)fold_is_dirty((void *)other);
}

static void restore_a_fold_in_use(void)
{
	const struct batch b = {0};

	(void)fold_restore(f, &b);
}

static void stored_more_than_there_was(void)
{
	fold_waiting(f, 10);
	fold_waiting(f, -11);
}

/* The part that a session has in the job. */
static struct part *a_part(void)
{
	start(1, 10);
	return f->session[0]->part[0];
}

static void attach_twice(void)
{
	part_attach_at(a_part(), 1);
}

static void attach_where_another_is(void)
{
	struct part *other = a_part();

	(void)other;
	part_attach_at(part_new(f->session[0], f->process[0]), 0);
}

static void free_what_takes_events(void)
{
	part_free(a_part());
}

static void lanes_that_the_ring_lacks(void)
{
	(void)process_lanes(f->process[0], f->process[0]->row.n_lanes + 1);
}

static void close_what_is_not_open(void)
{
	start(1, 10);
	verb(VERB_DEACTIVATE, 1, 20);
	session_close(f->session[0], 30);
}

static void (*const wrong[])(void) = {commit_of_nothing, commit_of_more_than_was_staged,
	stage_in_a_replay, forget_beyond_the_end, no_journal, apply_before_the_commit,
	apply_half_an_entry, apply_to_no_fold, restore_a_fold_in_use, stored_more_than_there_was,
	attach_twice, attach_where_another_is, free_what_takes_events, lanes_that_the_ring_lacks,
	close_what_is_not_open};

START_TEST(a_broken_contract_ends_the_program)
{
	const struct rlimit none = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)unlinkat(dirfd_of, "journal.1", 0); /* whoever aborts cleans up nothing */
	(void)rmdir(dir);
	wrong[_i]();
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("alone_fold");
	TCase *c = tcase_create("replay");

	tcase_add_checked_fixture(c, setup_journal, teardown_journal);
	tcase_add_test(c, a_journal_replayed_is_the_fold_it_was);
	tcase_add_loop_test_raise_signal(
		c, a_broken_contract_ends_the_program, SIGABRT, 0, N(wrong));
	suite_add_tcase(s, c);
	return s;
}
