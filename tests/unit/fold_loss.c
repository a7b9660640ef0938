/* SPDX-License-Identifier: MIT. fold_loss.c: each loss is one session's, whenever it comes to light:
 * counters read ahead of records, records that come late, lanes that tell late, an older agent. */
#include "fold_help.h"
#include "words.h"

#define LANES    2u
#define SESSIONS 5u
#define STEPS    60u
#define LONGEST  4u /* instants that the daemon may be late */

static uint32_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

/* What a job did, an instant after the other, and what the daemon saw of it. */
struct job {
	struct fold *f;
	struct tape t;
	struct kit_process process;
	struct kit_lane lane[LANES];
	uint64_t now, full[LANES], untold[LANES], first[LANES], no_lane;
	uint64_t truth[SESSIONS], truth_no_lane[SESSIONS];
	uint32_t n, live; /* sessions begun; live: n, or 0: none */
};

static void begin(struct job *j, bool cuts)
{
	static const char *const names[] = {"s"};

	*j = (struct job){.f = fold_of(NULL), .process = kit_process(1), .now = SECOND};
	j->process.flags = cuts ? PROCESS_CUTS : 0;
	j->lane[1].lane = 1;
	tape_process(&j->t, &j->process);
	tape_names(&j->t, j->process.ring, 2, 1, names);
	fold_take(j->f, &j->t);
}

static void drop(struct job *j, uint32_t lane, uint64_t n)
{
	j->now++;
	if (j->untold[lane] == 0)
		j->first[lane] = j->now;
	j->full[lane] += n;
	j->untold[lane] += n;
	if (j->live != 0)
		j->truth[j->live - 1] += n;
}

static void drop_no_lane(struct job *j)
{
	j->no_lane++;
	if (j->live != 0)
		j->truth_no_lane[j->live - 1]++;
}

static void tell(struct job *j, uint32_t lane)
{
	struct rec_lost r = {.count = j->untold[lane], .first = j->first[lane], .last = j->now};

	if (r.count != 0)
		lane_put(&j->lane[lane], REC_LOST, 0, LOST_LANE_FULL, &r, sizeof(r));
	j->untold[lane] = 0;
	j->now++;
}

/* As the agent does: LOST of its own lane, then the record. */
static void say(struct job *j, uint8_t verb, bool cuts)
{
	struct rec_session_cut r = {.session = {.name = 2}};

	tell(j, 0);
	if (verb == SESSION_START)
		j->live = ++j->n;
	r.session.clock = ++j->now;
	r.lost[LOST_LANE_FULL - 1] = j->full[0] + j->full[1];
	r.lost[LOST_NO_LANE - 1] = j->no_lane;
	lane_put(
		&j->lane[0], REC_SESSION, verb, j->n - 1, &r, cuts ? sizeof(r) : sizeof(r.session));
	if (verb == SESSION_FINALIZE)
		j->live = 0;
}

/* The counters as they are now, ahead of what is not drained. */
static void read_counts(struct job *j)
{
	struct ring_counts *c =
		tape_add(&j->t, J_COUNTS, j->process.ring, j->now, sizeof(*c) + LANES * 24);
	struct j_drop *d = (struct j_drop *)(c + 1);

	c->drop_no_lane = j->no_lane;
	d[0] = (struct j_drop){0, 0, j->full[0], 0};
	d[1] = (struct j_drop){1, 0, j->full[1], 0};
}

static void drain(struct job *j)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		tape_lane(&j->t, j->process.ring, j->now, &j->lane[i]);
}

static void check(struct job *j, const char *what)
{
	struct batch b = {0};
	uint32_t i;

	fold_take(j->f, &j->t);
	ck_assert_int_eq(fold_collect(j->f, &b), 0);
	for (i = 0; i < j->n; i++) {
		ck_assert_msg(loss_of(&b, i + 1, LOST_LANE_FULL) == j->truth[i],
			"%s: session %u lost %llu, not %llu", what, i,
			(unsigned long long)j->truth[i],
			(unsigned long long)loss_of(&b, i + 1, LOST_LANE_FULL));
		ck_assert_uint_eq(loss_of(&b, i + 1, LOST_NO_LANE), j->truth_no_lane[i]);
	}
	batch_free(&b);
	fold_free(j->f);
}

/* Killed: what lanes still hold is drained, then come the counters and the end. */
static void killed(struct job *j)
{
	drain(j);
	read_counts(j);
	tape_end(&j->t, j->process.ring, j->now + SECOND, END_KILLED, 9);
}

/* One session after the other, losses of two lanes in and between them, and a daemon that drains and
 * counts when it likes. */
START_TEST(each_loss_is_one_sessions)
{
	struct job j;
	uint32_t i;

	seed = (uint32_t)_i;
	begin(&j, true);
	for (i = 0; i < STEPS; i++) {
		const uint32_t what = below(8);

		if (what < 3)
			drop(&j, below(LANES), 1 + below(100));
		else if (what == 3)
			tell(&j, below(LANES));
		else if (what == 4 && j.live != 0)
			say(&j, SESSION_FINALIZE, true);
		else if (what == 4 && j.n < SESSIONS)
			say(&j, SESSION_START, true);
		else if (what == 5)
			read_counts(&j);
		else if (what == 6)
			drop_no_lane(&j);
		else if (below(LONGEST) == 0)
			drain(&j);
	}
	killed(&j);
	check(&j, "by chance");
}
END_TEST

/* The counters of a lane are read while the records of it are not drained: they are charged to no
 * session that ended before, and none is without its own. */
START_TEST(an_older_agents_counters_wait)
{
	struct job j;

	begin(&j, false);
	drop(&j, 0, 3);
	say(&j, SESSION_START, false);
	drain(&j);
	drop(&j, 0, 100);
	say(&j, SESSION_FINALIZE, false);
	drop(&j, 0, 7);
	say(&j, SESSION_START, false);
	drop(&j, 0, 5000);
	read_counts(&j);
	killed(&j);
	check(&j, "older");
}
END_TEST

static void control(struct job *j, uint32_t verb)
{
	read_counts(j); /* as daemon_apply() does */
	(void)tape_verb(&j->t, verb, 9, ++j->now);
}

/* The daemon's verbs cut, too: counters are read before each. */
START_TEST(a_verb_of_the_daemon_cuts)
{
	struct job j;

	begin(&j, true);
	drop(&j, 1, 11);
	control(&j, VERB_START);
	j.live = j.n = 1;
	drop(&j, 1, 20);
	control(&j, VERB_DEACTIVATE);
	j.live = 0;
	drop(&j, 0, 40);
	control(&j, VERB_ACTIVATE);
	j.live = 1;
	drop(&j, 0, 80);
	control(&j, VERB_FINALIZE);
	j.live = 0;
	drop(&j, 1, 160);
	tell(&j, 0);
	tell(&j, 1);
	drain(&j);
	read_counts(&j);
	(void)tape_verb(&j.t, VERB_FINALIZED, 9, ++j.now);
	check(&j, "verbs");
}
END_TEST

/* A job that says what cannot be spoils its own numbers, and no others. */
START_TEST(counts_that_lie)
{
	struct job j;
	struct rec_session_cut r = {.session = {.clock = SECOND + 5, .name = 2}};
	struct batch b = {0};
	uint32_t i;

	begin(&j, true);
	for (i = 0; i < CUT_CAUSES; i++)
		r.lost[i] = i % 2 == 0 ? UINT64_MAX : INT64_MAX;
	lane_put(&j.lane[0], REC_SESSION, SESSION_START, 0, &r, sizeof(r));
	memset(r.lost, 0, sizeof(r.lost));
	r.session.clock++;
	lane_put(&j.lane[0], REC_SESSION, SESSION_FINALIZE, 0, &r, sizeof(r) - 8);
	drain(&j);
	fold_take(j.f, &j.t);
	ck_assert_int_eq(fold_collect(j.f, &b), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LANE_FULL), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NESTED), 0);
	batch_free(&b);
	fold_free(j.f);
}
END_TEST

static void forge_lane(struct job *j, uint64_t n)
{
	j->full[0] = n;
	read_counts(j);
}

static void forge_no_lane(struct job *j, uint64_t n)
{
	j->no_lane = n;
	read_counts(j);
}

static void forge_lost(struct job *j, uint64_t n)
{
	j->untold[0] = n;
	j->first[0] = j->now;
	tell(j, 0);
	drain(j);
}

static void forge_cut(struct job *j, uint64_t n)
{
	j->no_lane = n;
	say(j, SESSION_FINALIZE, true);
	drain(j);
}

static void forge_sum(struct job *j, uint64_t n)
{
	struct rec_total r = {.name = 2, .opened = j->now, .count = n, .sum = 1, .latest = 1};

	lane_put(&j->lane[0], REC_TOTAL, METRIC_I64, 0, &r, sizeof(r));
	drain(j);
}

static void look(void *arg, const struct fold_process *p)
{
	*(struct fold_process *)arg = *p;
}

/* What may be, though much, is believed; what cannot be is not, nor is anything after it. */
START_TEST(counts_that_cannot_be)
{
	static void (*const forge[])(struct job *, uint64_t) = {
		forge_lane, forge_no_lane, forge_lost, forge_cut, forge_sum};
	const uint64_t most = 128 * SECOND; /* in the second that a process is given */
	struct fold_process p = {0};
	struct batch b = {0};
	struct job j;

	begin(&j, true);
	say(&j, SESSION_START, true);
	drain(&j);
	forge[_i](&j, most / 2);
	fold_take(j.f, &j.t);
	fold_each_process(j.f, look, &p);
	ck_assert(!p.forged);
	ck_assert_uint_ge(p.drops + p.events, most / 2);
	fold_free(j.f);
	begin(&j, true);
	say(&j, SESSION_START, true);
	drain(&j);
	forge[_i](&j, UINT64_MAX / 2);
	j.full[0] = j.full[1] = j.no_lane = 5;
	read_counts(&j);
	fold_take(j.f, &j.t);
	fold_each_process(j.f, look, &p);
	ck_assert(p.forged);
	ck_assert_uint_eq(p.drops, _i < 4 ? 1 : 2);
	ck_assert_uint_le(p.events, 2);
	ck_assert_int_eq(fold_collect(j.f, &b), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LANE_FULL) + loss_of(&b, 1, LOST_NO_LANE), 0);
	ck_assert_uint_ne(b.process.row[0].flags & PROCESS_FORGED, 0);
	batch_free(&b);
	fold_free(j.f);
}
END_TEST

/* One of its entries is missing: so many bytes are lost, once, to who recorded then. */
START_TEST(a_gap_in_a_lane)
{
	struct job j;
	struct batch b = {0};
	struct row_note *n;
	uint32_t i, k, notes = 0, counts = 0;

	begin(&j, true);
	say(&j, SESSION_START, true);
	drain(&j);
	fold_take(j.f, &j.t);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 10; i++)
			put_scope(&j.lane[0], 2, j.now, j.now + 1);
		j.lane[0].from += j.lane[0].n; /* this one is nowhere */
		j.lane[0].n = 0;
		j.now += SECOND;
		drain(&j); /* without a byte, as the drain tells a gap */
		drain(&j);
	}
	say(&j, SESSION_FINALIZE, true);
	drain(&j);
	say(&j, SESSION_START, true);
	drain(&j);
	fold_take(j.f, &j.t);
	ck_assert_int_eq(fold_collect(j.f, &b), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_JOURNAL), 20);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_JOURNAL), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	for (i = 0; i < b.note.n; i++) {
		n = &b.note.row[i];
		notes += strstr(n->text, "the journal was damaged: of what process 101") != NULL;
		counts += strcmp(n->text,
				  "480 bytes of records were lost with a damaged journal") == 0;
	}
	ck_assert_uint_eq(notes, 1);
	ck_assert_uint_eq(counts, 1);
	batch_free(&b);
	fold_free(j.f);
}
END_TEST

START_TEST(instants_in_words)
{
	static const struct {
		uint64_t s;
		const char *text;
	} day[] = {{0, "1970-01-01T00:00:00.007Z"}, {951782399, "2000-02-28T23:59:59.007Z"},
		{951782400, "2000-02-29T00:00:00.007Z"}, {951868800, "2000-03-01T00:00:00.007Z"},
		{1767225599, "2025-12-31T23:59:59.007Z"}, {1767225600, "2026-01-01T00:00:00.007Z"},
		{4107542400, "2100-03-01T00:00:00.007Z"}};
	char text[WORDS_INSTANT];

	words_instant(text, day[_i].s * SECOND + 7999999);
	ck_assert_str_eq(text, day[_i].text);
	words_instant(text, UINT64_MAX);
	ck_assert_uint_eq(strlen(text), 24);
}
END_TEST

/* A poisoned entry is counted as that, and its lane goes on behind it. */
START_TEST(what_was_left_out_is_no_gap)
{
	struct job j;
	struct batch b = {0};
	struct rec_lost r = {.count = 1, .last = INT64_MAX};

	begin(&j, true);
	say(&j, SESSION_START, true);
	drain(&j);
	lane_put(&j.lane[0], REC_LOST, 0, LOST_SKIPPED, &r, sizeof(r));
	drain(&j);
	j.lane[0].from += 240;
	drain(&j);
	fold_take(j.f, &j.t);
	ck_assert_int_eq(fold_collect(j.f, &b), 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_SKIPPED), 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_JOURNAL), 0);
	batch_free(&b);
	fold_free(j.f);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("fold_loss");
	TCase *c = tcase_create("losses");

	tcase_add_loop_test(c, each_loss_is_one_sessions, 0, 200);
	tcase_add_test(c, an_older_agents_counters_wait);
	tcase_add_test(c, a_verb_of_the_daemon_cuts);
	tcase_add_test(c, counts_that_lie);
	tcase_add_loop_test(c, counts_that_cannot_be, 0, 5);
	tcase_add_test(c, a_gap_in_a_lane);
	tcase_add_loop_test(c, instants_in_words, 0, 7);
	tcase_add_test(c, what_was_left_out_is_no_gap);
	suite_add_tcase(s, c);
	return s;
}
