/* SPDX-License-Identifier: MIT. fold_domains.c: sessions that leave domains of NVTX out, and operators. */
#include "fold_help.h"
#include "fold_shop.h"
#include "op_terms.h"
#include "range_name.h"

#include "fold_job.h" /* last: its globals */

/* Behind the paths of fold_job.h: a/NCCL's b, a/NCCL's b/a of none, a/default's b. */
enum { P_NCCL = 9, P_BELOW, P_DEFAULT };
enum { N_DOMAIN_NCCL = 2 + (int)(sizeof(names) / sizeof(names[0])), N_DOMAIN_NONE };

static void put_tables(void)
{
	static const char *const more[] = {"NCCL", "default"};
	static const struct ring_path below[] = {
		{P_A, N_B, PATH_KIND_SCOPE, 2, N_DOMAIN_NCCL},
		{P_NCCL, N_CAP, PATH_KIND_SCOPE, 3, NAME_NONE},
		{P_A, N_B, PATH_KIND_SCOPE, 2, N_DOMAIN_NONE},
		{P_A, N_CAP, PATH_KIND_SCOPE, 2, 4000000}, /* of a name that there is none of */
	};

	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	tape_names(&t, job.ring, N_DOMAIN_NCCL, 2, more);
	tape_paths(&t, job.ring, P_NCCL, 4, below);
	fold_take(f, &t);
}

static void setup_domains(void)
{
	setup();
	put_tables();
}

static void start_with(uint8_t session, const char *domains)
{
	struct j_verb *v = tape_verb(&t, VERB_START, session, 10 * SECOND);

	(void)snprintf(v->domains, sizeof(v->domains), "%s", domains);
	fold_take(f, &t);
}

static uint64_t count_at(const struct batch *b, uint8_t session, const char *path)
{
	const struct row_cell *c = cell_at(b, session, 0, CLASS_CPU, path);

	return c != NULL ? c->count : 0;
}

static void check(const struct batch *b)
{
	/* of the session: those of b, of what stands below NCCL's, and where that stands */
	static const struct {
		const char *domains;
		uint64_t b;
		const char *below;
	} cases[] = {{"", 3, "ROOT/a/b/cap"}, {"NCCL", 2, "ROOT/a/b/cap"},
		{"-NCCL", 2, "ROOT/a/cap"}, {"default,other", 2, "ROOT/a/cap"},
		{"other", 1, "ROOT/a/cap"}};

	for (uint8_t i = 0; i < 5; i++) {
		ck_assert_msg(count_at(b, (uint8_t)(i + 1), "ROOT/a/b") == cases[i].b, "%s",
			cases[i].domains);
		ck_assert_msg(
			count_at(b, (uint8_t)(i + 1), cases[i].below) == 1, "%s", cases[i].domains);
	}
	ck_assert_uint_eq(count_at(b, 2, "ROOT/a/cap"), 0);
	ck_assert_uint_eq(count_at(b, 3, "ROOT/a/b/cap"), 0);
}

START_TEST(a_session_leaves_domains_out)
{
	struct shop s = {0};
	struct batch b;

	start_with(1, "");
	start_with(2, "NCCL");
	start_with(3, "-NCCL");
	start_with(4, "default,other");
	start_with(5, "other");
	put_scope(&lane, P_AB, 11 * SECOND, 12 * SECOND); /* the program's own: in all */
	put_metric(&lane, P_NCCL, 12 * SECOND, N_INC, METRIC_U64, 7);
	put_scope(&lane, P_BELOW, 12 * SECOND, 13 * SECOND);
	put_scope(&lane, P_NCCL, 12 * SECOND, 14 * SECOND);
	put_scope(&lane, P_DEFAULT, 14 * SECOND, 15 * SECOND);
	drain(&lane, 16 * SECOND);
	b = collect();
	check(&b);
	ck_assert_uint_eq(b.metric.n, 2); /* of 1 and 2 */
	shop_put(&s, &b);
	b = shop_load(&s, true); /* a session's list outlives the daemon */
	fold_free(f);
	f = fold_of(NULL);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	put_tables();
	put_scope(&lane, P_NCCL, 17 * SECOND, 18 * SECOND);
	drain(&lane, 19 * SECOND);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 2); /* of 1 and 2 */
	batch_free(&b);
	shop_free(&s);
}
END_TEST

/* The entry of a daemon that knew of no domains ends before them. */
START_TEST(an_older_entry)
{
	struct batch b;
	const struct j_verb v = {.verb = VERB_START,
		.uid = UID,
		.session = {1},
		.mono_ns = 10 * SECOND,
		.source = SOURCE_CONTROL,
		.match = MATCH_USER,
		.name = "old",
		.domains = "-NCCL"};

	memcpy(tape_add(&t, J_VERB, NULL, 10 * SECOND, J_VERB_LEAST), &v, J_VERB_LEAST);
	fold_take(f, &t);
	put_scope(&lane, P_NCCL, 12 * SECOND, 14 * SECOND);
	drain(&lane, 16 * SECOND);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	batch_free(&b);
}
END_TEST

static uint64_t metrics_of(const struct batch *b, uint8_t session)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->metric.n; i++)
		n += b->metric.row[i].session == session;
	return n;
}

/* An operator, and a scope of the program's in it, in sessions with the switch, without it, with it from
 * then on, and with a list of domains, which says nothing of operators. */
START_TEST(a_session_has_the_operators_that_it_asked_for)
{
	enum { N_OPERATORS = N_DOMAIN_NONE + 1, N_FLOPS, N_LOSS, N_STACK };
	enum { P_OPERATOR = P_DEFAULT + 2, P_IN_IT };
	static const char *const more[] = {OP_DOMAIN, "flops16", "loss", "Call stack (pty)"};
	static const struct ring_path below[] = {{P_A, N_B, PATH_KIND_SCOPE, 2, N_OPERATORS},
		{P_OPERATOR, N_CAP, PATH_KIND_SCOPE, 3, NAME_NONE}};
	struct batch b;

	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_OPS;
	tape_verb(&t, VERB_START, 2, 10 * SECOND)->switches = SWITCH_SYNC;
	tape_verb(&t, VERB_START, 3, 10 * SECOND);
	tape_verb(&t, VERB_START, 4, 10 * SECOND)->switches = SWITCH_OPS;
	(void)snprintf(tape_verb(&t, VERB_START, 5, 10 * SECOND)->domains, 128, "-other");
	fold_take(f, &t);
	tape_names(&t, job.ring, N_OPERATORS, 4, more);
	tape_paths(&t, job.ring, P_OPERATOR, 2, below);
	tape_verb(&t, VERB_SWITCH, 3, 12 * SECOND)->switches = SWITCH_OPS;
	tape_verb(&t, VERB_SWITCH, 4, 12 * SECOND)->switches = 0;
	fold_take(f, &t);
	put_metric(&lane, P_OPERATOR, 12 * SECOND, N_FLOPS, METRIC_U64, 7);
	put_metric(&lane, P_OPERATOR, 12 * SECOND, N_LOSS, METRIC_U64, 9);
	put_metric(&lane, P_OPERATOR, 12 * SECOND, N_STACK, METRIC_STR, N_B);
	put_scope(&lane, P_IN_IT, 13 * SECOND, 14 * SECOND);
	put_scope(&lane, P_OPERATOR, 13 * SECOND, 15 * SECOND);
	drain(&lane, 16 * SECOND);
	b = collect();
	for (uint8_t i = 1; i <= 5; i++) {
		const bool has = i == 1 || i == 3;

		ck_assert_msg(count_at(&b, i, "ROOT/a/b") == has, "%u", i);
		ck_assert_msg(count_at(&b, i, "ROOT/a/b/cap") == has, "%u", i);
		ck_assert_msg(count_at(&b, i, "ROOT/a/cap") == !has, "%u", i);
		ck_assert_msg(metrics_of(&b, i) == (has ? 3 : 1), "%u", i);
	}
	batch_free(&b);
}
END_TEST

START_TEST(lists_of_domains)
{
	static const struct {
		const char *list, *name;
		bool in;
	} cases[] = {{"", "x", true}, {"x", "x", true}, {"x", "y", false}, {"-x", "x", false},
		{"-x", "y", true}, {"x,-x", "x", false}, {"a,-b", "c", false}, {"a,-b,", "a", true},
		{",,", "x", true}, {"-", "x", true}, {"xy", "x", false}, {"x", "xy", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ck_assert_msg(range_domain_is_in(cases[i].list, cases[i].name,
				      (uint32_t)strlen(cases[i].name)) == cases[i].in,
			"%s %s", cases[i].list, cases[i].name);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_domains");
	TCase *c = tcase_create("domains");

	tcase_add_checked_fixture(c, setup_domains, teardown);
	tcase_add_test(c, a_session_leaves_domains_out);
	tcase_add_test(c, an_older_entry);
	tcase_add_test(c, a_session_has_the_operators_that_it_asked_for);
	tcase_add_test(c, lists_of_domains);
	suite_add_tcase(s, c);
	return s;
}
