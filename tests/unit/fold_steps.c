/* SPDX-License-Identifier: MIT. fold_steps.c: steps of a session and what they were told, one by one where the
 * tree has their sums: by kind, by thread, bounded, and on after a restart. */
#include <math.h>

#include "fold_shop.h"
#include "step_series.h"

#undef N
static const char *const names[] = {
	"step", "forward", "loss (pty)", "tokens (inc)", "job", "step 7", "flops16", "text (pty)"};
enum { N_STEP = 2, N_FORWARD, N_LOSS, N_TOKENS, N_JOB, N_STEP7, N_FLOPS, N_TEXT };
enum { P_STEP = 2, P_FORWARD, P_OUTSIDE, P_INNER };
static const struct ring_path paths[] = {
	{PATH_ROOT, N_STEP, PATH_KIND_SCOPE, 1, 0},
	{P_STEP, N_FORWARD, PATH_KIND_SCOPE, 2, 0},
	{PATH_ROOT, N_FORWARD, PATH_KIND_SCOPE, 1, 0},
	{P_FORWARD, N_STEP7, PATH_KIND_SCOPE, 3, 0},
};

static struct fold *f;
static struct tape t;
static struct kit_process job;
static struct kit_lane lane, other;

static void begin(void)
{
	f = fold_of(NULL);
	job = kit_process(1);
	lane = (struct kit_lane){.lane = 0};
	other = (struct kit_lane){.lane = 1};
	tape_process(&t, &job);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	(void)tape_verb(&t, VERB_START, 1, 10);
	fold_take(f, &t);
}

static void end(void)
{
	tape_free(&t);
	fold_free(f);
}

static void told(struct kit_lane *l, uint32_t path, uint64_t clock, uint32_t name, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_metric(l, path, clock, name, METRIC_F64, bits);
}

static void drain(struct kit_lane *l)
{
	tape_lane(&t, job.ring, 20 * SECOND, l);
	fold_take(f, &t);
}

static uint64_t at(uint32_t step)
{
	return SECOND + step * 1000ull;
}

/* One of 400 ns. */
static void step(struct kit_lane *l, uint32_t i, double loss, double tokens)
{
	if (l->n > KIT_LAP - 1024)
		drain(l);
	told(l, P_STEP, at(i) + 10, N_LOSS, loss + 5); /* the last one holds */
	told(l, P_FORWARD, at(i) + 20, N_TOKENS, tokens - 1);
	told(l, P_STEP, at(i) + 30, N_LOSS, loss);
	told(l, P_STEP, at(i) + 40, N_TOKENS, 1);
	told(l, P_OUTSIDE, at(i) + 50, N_TOKENS, 1000); /* in no step */
	put_scope(l, P_STEP, at(i), at(i) + 400);
}

struct row { /* of the store */
	struct step_names names;
	struct step_point point[STEP_ROW_POINTS];
	uint32_t n;
};

static void open_row(const struct row_step *r, struct row *ret)
{
	struct err e = {0};

	ck_assert_msg(step_row_unpack(r->bytes, r->n, &ret->names, ret->point, &ret->n, &e) == 0,
		"%s", e.text);
}

static const struct step_value *value(const struct row *r, uint32_t i, const char *name)
{
	uint32_t k;

	for (k = 0; k < r->names.n; k++)
		if (strcmp(r->names.name[k], name) == 0)
			return &r->point[i].v[k];
	ck_abort_msg("no %s", name);
	return NULL;
}

static struct batch collect(void)
{
	struct batch b = {0};

	ck_assert_int_eq(fold_collect(f, &b), 0);
	fold_seen(f, fold_round(f));
	return b;
}

static void see_told(void *arg, const struct fold_told *x)
{
	double *tokens = arg;

	ck_assert_str_eq(x->name, "tokens"); /* a property is not added up */
	*tokens += x->sum;
}

START_TEST(a_step_has_what_it_was_told)
{
	uint8_t uuid[16];
	double tokens = 0;
	struct batch b;
	struct row r;

	begin();
	step(&lane, 0, 2.5, 100);
	step(&lane, 1, 1.5, 200);
	put_metric(&lane, P_STEP, at(2) + 1, N_TEXT, METRIC_STR, N_JOB);
	put_scope(&lane, P_INNER, at(2) + 5, at(2) + 9); /* in a step: it is none */
	told(&lane, P_INNER, at(2) + 6, N_TOKENS, 7);
	told(&lane, P_STEP, at(2) + 7, N_LOSS, (double)NAN);
	put_scope(&lane, P_STEP, at(2), at(2) + 500);
	drain(&lane);
	b = collect();
	ck_assert_uint_eq(b.step.n, 1);
	ck_assert_uint_eq(b.step.row[0].steps, 3);
	open_row(&b.step.row[0], &r);
	ck_assert_uint_eq(r.n, 3);
	ck_assert(r.point[0].first == 1 && r.point[0].n == 1 && r.point[0].took_ns == 400);
	ck_assert(r.point[2].begin_ns == at(2) && r.point[2].took_ns == 500);
	ck_assert(value(&r, 0, "loss")->mean == 2.5 && value(&r, 1, "loss")->mean == 1.5);
	ck_assert(value(&r, 0, "tokens")->mean == 100 && value(&r, 1, "tokens")->mean == 200);
	ck_assert(value(&r, 2, "tokens")->mean == 7 && value(&r, 2, "loss")->n == 0);
	ck_assert_uint_eq(r.names.n, 2);
	memcpy(uuid, b.session.row[0].uuid, sizeof(uuid));
	batch_free(&b);
	fold_each_told(f, uuid, see_told, &tokens);
	ck_assert(tokens == 307);
	b = collect(); /* nothing is new */
	ck_assert_uint_eq(b.step.n, 0);
	batch_free(&b);
	end();
}
END_TEST

/* Of two threads, the one that began first ends last; numbers whose difference is none. */
START_TEST(steps_within_others_of_another_thread)
{
	struct batch b;
	struct row r;

	begin();
	told(&other, P_STEP, at(5) + 10, N_LOSS, -1.7e308);
	put_scope(&other, P_STEP, at(5), at(5) + 400);
	drain(&other);
	told(&lane, P_STEP, at(0) + 10, N_LOSS, 1.7e308);
	put_scope(&lane, P_STEP, at(0), at(9));
	drain(&lane);
	b = collect();
	ck_assert_uint_eq(b.step.n, 1);
	open_row(&b.step.row[0], &r);
	ck_assert(r.n == 2 && r.point[0].begin_ns == at(5) && r.point[1].begin_ns == at(0));
	ck_assert(r.point[1].end_ns == at(9) && value(&r, 1, "loss")->mean == 1.7e308);
	batch_free(&b);
	end();
}
END_TEST

/* autograd's threads have no steps: what they are told is the next one's to end. Two loops have their own. */
START_TEST(threads_have_their_own_steps_or_none)
{
	struct batch b;
	struct row r;

	begin();
	told(&other, P_FORWARD, at(0) + 5, N_FLOPS, 3e12);
	drain(&other);
	told(&lane, P_STEP, at(0) + 10, N_FLOPS, 1e12);
	put_scope(&lane, P_STEP, at(0), at(0) + 400);
	drain(&lane);
	put_scope(&other, P_STEP, at(1), at(1) + 100); /* from now on it has steps */
	told(&other, P_STEP, at(2) + 5, N_FLOPS, 5e12);
	drain(&other);
	put_scope(&lane, P_STEP, at(2), at(2) + 400);
	drain(&lane);
	put_scope(&other, P_STEP, at(2), at(2) + 600);
	drain(&other);
	told(&lane, P_STEP, at(3) + 5, N_FLOPS, 9e12); /* of a step whose end is lost */
	put_scope(&lane, P_STEP, at(4), at(4) + 400);
	drain(&lane);
	b = collect();
	open_row(&b.step.row[0], &r);
	ck_assert_uint_eq(r.n, 5);
	ck_assert(value(&r, 0, "flops16")->mean == 4e12);
	ck_assert(value(&r, 2, "flops16")->n == 0);
	ck_assert(value(&r, 3, "flops16")->mean == 5e12 && r.point[3].took_ns == 600);
	ck_assert(value(&r, 4, "flops16")->n == 0);
	batch_free(&b);
	end();
}
END_TEST

/* However many there are: points of two steps, with what lies between, and no step is missing. */
START_TEST(many_steps_have_few_points)
{
	enum { WIDE = STEP_ROW_POINTS * STEP_ROWS, ALL = WIDE + 64 * 2 };
	uint32_t i, k, rows = 0, steps = 0, points = 0;
	double tokens = 0;
	struct batch b;
	struct row r;

	begin();
	for (i = 0; i < ALL; i++) {
		step(&lane, i, i % 2 == 0 ? 1 : 3, 10);
		if (i % 500 != 499 && i + 1 != ALL)
			continue;
		drain(&lane);
		b = collect();
		for (k = 0; k < b.step.n; k++) {
			uint32_t p;

			open_row(&b.step.row[k], &r);
			if (r.n < STEP_ROW_POINTS && i + 1 != ALL)
				continue; /* it grows, and comes again */
			for (p = 0; p < r.n; p++) {
				ck_assert_uint_eq(r.point[p].first, steps + 1);
				ck_assert_uint_eq(r.point[p].n, steps < WIDE ? 1 : 2);
				steps += r.point[p].n;
				points++;
				tokens += value(&r, p, "tokens")->mean * r.point[p].n;
				if (steps <= WIDE)
					continue;
				ck_assert(value(&r, p, "loss")->mean == 2);
				ck_assert(value(&r, p, "loss")->least == 1);
				ck_assert(value(&r, p, "loss")->most == 3);
			}
			rows++;
		}
		batch_free(&b);
	}
	ck_assert_uint_eq(steps, ALL);
	ck_assert(tokens == 10.0 * ALL);
	ck_assert_uint_eq(points, WIDE + 64);
	ck_assert_uint_eq(rows, STEP_ROWS + 2);
	end();
}
END_TEST

/* A store that does not collect, and more names and threads than there is room for. */
START_TEST(nothing_grows_without_end)
{
	const uint32_t far = STEP_ROW_POINTS * (STEP_SEALED + 2);
	uint32_t i, steps = 0;
	struct batch b;
	struct row r;
	bool noted = false;

	begin();
	for (i = 0; i < far; i++)
		step(&lane, i, 1, 1);
	drain(&lane);
	b = collect();
	ck_assert_uint_eq(b.step.n, STEP_SEALED + 1);
	for (i = 0; i < b.step.n; i++) {
		uint32_t p;

		open_row(&b.step.row[i], &r);
		for (p = 0; p < r.n; p++)
			steps += r.point[p].n;
	}
	ck_assert_uint_eq(steps, far - 32); /* `next` has the rest, and stays */
	batch_free(&b);
	for (i = 0; i < STEP_NAMES + 1; i++) {
		char name[16];
		const char *const one[] = {name};

		(void)snprintf(name, sizeof(name), "m%u", i);
		tape_names(&t, job.ring, 2 + sizeof(names) / sizeof(names[0]) + i, 1, one);
		fold_take(f, &t);
		told(&lane, P_STEP, at(far) + i,
			(uint32_t)(2 + sizeof(names) / sizeof(names[0]) + i), 1);
	}
	put_scope(&lane, P_STEP, at(far), at(far) + 400);
	drain(&lane);
	b = collect();
	for (i = 0; i < b.note.n; i++)
		noted |= strncmp(b.note.row[i].text, "3 numbers of steps", 18) == 0;
	ck_assert(noted);
	batch_free(&b);
	end();
}
END_TEST

START_TEST(steps_go_on_after_a_restart)
{
	struct shop s = {0};
	struct batch b;
	struct row r;

	begin();
	step(&lane, 0, 2.5, 100);
	drain(&lane);
	b = collect();
	shop_put(&s, &b);
	b = shop_load(&s, true);
	fold_free(f);
	f = fold_of(NULL);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	fold_take(f, &t);
	step(&lane, 1, 1.5, 200);
	drain(&lane);
	b = collect();
	ck_assert_uint_eq(b.step.n, 1);
	ck_assert(b.step.row[0].number == 1 && b.step.row[0].steps == 2);
	open_row(&b.step.row[0], &r);
	ck_assert(r.n == 1 && r.point[0].first == 2 && value(&r, 0, "tokens")->mean == 200);
	batch_free(&b);
	shop_free(&s);
	end();
}
END_TEST

START_TEST(other_bytes_are_no_rows)
{
	static const struct step_names nothing;
	struct step_point p[2] = {{.first = 1, .begin_ns = 5, .end_ns = 9, .took_ns = 4, .n = 1},
		{.first = 2, .begin_ns = 6, .end_ns = 19, .took_ns = 9, .n = 2}};
	struct step_names names_ = {.n = 2, .name = {"a", "b (s)"}};
	struct err e;
	struct row r;
	void *bytes;
	uint32_t n, i;

	p[0].v[1] = (struct step_value){.mean = 1, .least = 1, .most = 1, .n = 1};
	p[1].v[0] = (struct step_value){.mean = 2, .least = 1, .most = 3, .n = 2};
	ck_assert_int_eq(step_row_pack(&names_, p, 2, &bytes, &n), 0);
	ck_assert_int_eq(step_row_unpack(bytes, n, &r.names, r.point, &r.n, &e), 0);
	ck_assert(r.n == 2 && r.names.n == 2 && strcmp(r.names.name[1], "b (s)") == 0);
	ck_assert(memcmp(r.point, p, sizeof(p)) == 0);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(step_row_unpack(bytes, i, &r.names, r.point, &r.n, &e), -EBADMSG);
	for (i = 0; i < n; i++) {
		((uint8_t *)bytes)[i] ^= 0x55;
		(void)step_row_unpack(bytes, n, &r.names, r.point, &r.n, &e);
		((uint8_t *)bytes)[i] ^= 0x55;
	}
	free(bytes);
	p[0].v[1].mean = (double)INFINITY; /* as no fold writes it */
	ck_assert_int_eq(step_row_pack(&names_, p, 1, &bytes, &n), 0);
	ck_assert_int_eq(step_row_unpack(bytes, n, &r.names, r.point, &r.n, &e), -EBADMSG);
	free(bytes);
	p[0].v[1].mean = 1;
	ck_assert_int_eq(step_row_pack(&nothing, p, 1, &bytes, &n), 0); /* values of no name */
	ck_assert_int_eq(step_row_unpack(bytes, n, &r.names, r.point, &r.n, &e), -EBADMSG);
	free(bytes);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("steps");
	TCase *c = tcase_create("steps");

	tcase_add_test(c, a_step_has_what_it_was_told);
	tcase_add_test(c, steps_within_others_of_another_thread);
	tcase_add_test(c, threads_have_their_own_steps_or_none);
	tcase_add_test(c, many_steps_have_few_points);
	tcase_add_test(c, nothing_grows_without_end);
	tcase_add_test(c, steps_go_on_after_a_restart);
	tcase_add_test(c, other_bytes_are_no_rows);
	suite_add_tcase(s, c);
	return s;
}
