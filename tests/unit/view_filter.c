/* SPDX-License-Identifier: MIT. view_filter.c: filters, frame formats, differences, screens. */
#include "diff.h"
#include "export_format.h"
#include "filter.h"
#include "frame.h"
#include "loss_terms.h"
#include "order.h"
#include "pick.h"
#include "print.h"
#include "protonview_options.h"
#include "view_help.h"

/* ROOT ─ a (10) ─ a1 (4), a2 (6);  ROOT ─ b (20) ─ a1 (20);  ROOT ─ c (1) */
static struct profile *sample(void)
{
	static const struct {
		uint32_t parent;
		const char *name;
		double own;
	} nodes[] = {
		{0, "a", 0}, {1, "a1", 4}, {1, "a2", 6}, {0, "b", 0}, {4, "a1", 20}, {0, "c", 1}};
	struct profile *p = profile_new();
	uint32_t m = profile_add_metric(p, "time (ns)", KIND_INCLUSIVE), at;
	size_t i;

	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		at = profile_add_node(p, nodes[i].parent, nodes[i].name, NODE_SCOPE);
		if (nodes[i].own > 0)
			ck_assert_int_eq(
				profile_set(p, at, m,
					(struct value){.type = VALUE_F64, .f = nodes[i].own}),
				0);
	}
	return p;
}

static struct view *derived(const struct profile *p)
{
	struct view *v;
	struct err e;

	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_int_eq(view_derive(v, "time/ns", &e), 0);
	return v;
}

/* The kept nodes as "0123456". */
static const char *kept(const struct view *v)
{
	static char s[16];
	uint32_t i, n = 0;

	for (i = 0; i < v->p->n_nodes; i++)
		if (v->keep[i])
			s[n++] = (char)('0' + i);
	s[n] = '\0';
	return s;
}

typedef int filter_fn(struct view *v, const char *text, struct err *e);

static int rows(struct view *v, const char *text, struct err *e)
{
	uint32_t hidden, n = (uint32_t)strlen(kept(v));
	int r = filter_rows(v, (uint32_t)strtoul(text, NULL, 10), &hidden);

	(void)e;
	ck_assert_uint_eq(hidden, n - strlen(kept(v)));
	return r;
}

START_TEST(filters_keep)
{
	static const struct {
		filter_fn *filter;
		const char *text;
		int want;
		const char *kept;
	} cases[] = {
		{filter_include, "a1", 0, "01245"},
		{filter_include, "1", 0, ""}, /* re.match: from the start of the name */
		{filter_include, ".*1", 0, "01245"},
		{filter_include, "a$", 0, "0123"}, /* with what is below it */
		{filter_include, "(?i)B", 0, "045"},
		{filter_include, "(?!ROOT|a)", 0, "0456"},
		{filter_include, "a(", -EINVAL, NULL},
		{filter_include, "[", -EINVAL, NULL},
		{filter_include, "\xff", -EINVAL, NULL},
		{filter_exclude, "a", 0, "046"},
		{filter_exclude, "a1|c", 0, "0134"},
		{filter_exclude, "ROOT", 0, ""},
		{filter_threshold, "0", 0, "0123456"},
		{filter_threshold, "5", 0, "01345"},
		{filter_threshold, "10%", 0, "012345"},
		{filter_threshold, "50%", 0, "045"},
		{filter_threshold, "1e9", 0, ""},
		{filter_threshold, "x", -EINVAL, NULL},
		{filter_threshold, "5x", -EINVAL, NULL},
		{rows, "1", 0, "04"},
		{rows, "3", 0, "0145"},
		{rows, "9", 0, "0123456"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profile *p = sample();
		struct view *v = derived(p);
		struct err e = {0};
		int r = cases[i].filter(v, cases[i].text, &e);

		ck_assert_msg(r == cases[i].want, "'%s': %d %s", cases[i].text, r, e.text);
		if (r == 0)
			ck_assert_msg(strcmp(kept(v), cases[i].kept) == 0, "'%s': %s",
				cases[i].text, kept(v));
		ck_assert_double_eq(v->col[0].v[0], 31); /* no value changes */
		ck_assert(filter_is_empty(v) == (kept(v)[0] == '\0'));
		view_free(v);
		profile_free(p);
	}
}
END_TEST

START_TEST(a_hard_pattern_ends)
{
	struct profile *p = sample();
	struct err e = {0};
	struct view *v;
	int r;

	p->node[1].name =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	v = derived(p);
	r = filter_include(v, "(a|aa|a*)*b", &e);
	ck_assert(r == 0 || r == -EINVAL);
	view_free(v);
	profile_free(p);
}
END_TEST

#define E10 "éééééééééé"
#define E30 E10 E10 E10
#define E31 E30 "é"
#define E32 E31 "é"

START_TEST(frames)
{
	static const struct {
		enum frame_format f;
		const char *in, *out;
	} cases[] = {
		{FRAME_FULL, "/home/user/projects/example.py/test.py:1@foo",
			"/home/user/projects/example.py/test.py:1@foo"},
		{FRAME_FILE_FUNCTION_LINE, "/home/user/projects/example.py/test.py:1@foo",
			"test.py:1@foo"},
		{FRAME_FUNCTION_LINE, "/home/user/projects/example.py/test.py:1@foo", "1@foo"},
		{FRAME_FILE_FUNCTION, "/home/user/projects/example.py/test.py:1@foo",
			"test.py@foo"},
		{FRAME_FILE_FUNCTION, "kernel_1_1_1", "kernel_1_1_1"},
		{FRAME_FUNCTION_LINE, "kernel_1_1_1", "kernel_1_1_1"},
		{FRAME_FILE_FUNCTION, "p/" E32 ".py:1@f", E31},
		{FRAME_FILE_FUNCTION, "p/x" E32 ".py:1@f", "x" E30},
	};
	enum frame_format f = FRAME_FULL;
	char buf[64];
	struct err e;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(
			frame_format(cases[i].f, cases[i].in, buf, sizeof(buf)), cases[i].out);
	ck_assert_int_eq(frame_format_parse("file_function", &f, &e), 0);
	ck_assert_int_eq(f, FRAME_FILE_FUNCTION);
	ck_assert_int_eq(frame_format_parse("file", &f, &e), -EINVAL);
}
END_TEST

START_TEST(differences)
{
	struct profile *p = sample(), *q = sample();
	struct view *v, *w;
	struct diff *d;
	uint32_t m = 0;
	struct diff_verdict x;

	/* q: a/a2 6 → 9, c gone, a new d 2 */
	ck_assert_int_eq(profile_set(q, 3, m, (struct value){.type = VALUE_F64, .f = 9}), 0);
	ck_assert_int_eq(profile_set(q, 6, m, (struct value){.type = VALUE_NONE}), 0);
	ck_assert_uint_eq(profile_add_node(q, 0, "d", NODE_SCOPE), 7);
	ck_assert_int_eq(profile_set(q, 7, m, (struct value){.type = VALUE_F64, .f = 2}), 0);
	v = derived(p);
	w = derived(q);
	ck_assert_int_eq(diff_new(v, w, &d), 0);
	ck_assert_uint_eq(d->p->n_nodes, 8);
	ck_assert_double_eq(d->view->col[0].v[0], 4);
	ck_assert_double_eq(d->view->col[0].v[help_node(d->p, "a2")], 3);
	ck_assert_double_eq(d->view->col[0].v[help_node(d->p, "c")], -1); /* missing: 0 */
	ck_assert_double_eq(d->view->col[0].v[help_node(d->p, "d")], 2);
	ck_assert(isnan(d->after[0][help_node(d->p, "c")]));
	ck_assert_int_eq(diff_gate(d, 0, 5, &x), DIFF_WORSE);
	ck_assert_uint_eq(x.node, help_node(d->p, "a2"));
	ck_assert_double_eq_tol(x.percent, 50, 1e-9);
	ck_assert_int_eq(diff_gate(d, 0, 50, &x), DIFF_FINE);
	diff_free(d);
	ck_assert_int_eq(diff_new(w, v, &d), 0); /* it became faster: no gate fails but a1's none */
	ck_assert_int_eq(diff_gate(d, 0, 10, &x), DIFF_FINE);
	ck_assert_int_eq(diff_gate(d, 0, 2, &x), DIFF_NEW); /* c, 1 of what were 35 */
	ck_assert_uint_eq(x.node, help_node(d->p, "c"));
	ck_assert_double_eq_tol(x.percent, 100.0 / 35, 1e-9);
	diff_free(d);
	view_free(v);
	view_free(w);
	profile_free(p);
	profile_free(q);
}
END_TEST

START_TEST(small_nodes_pass_the_gate)
{
	struct profile *p = sample(), *q = sample();
	struct view *v, *w;
	struct diff *d;
	struct diff_verdict x;

	ck_assert_int_eq(profile_set(p, 6, 0, (struct value){.type = VALUE_F64, .f = 0.1}), 0);
	ck_assert_int_eq(profile_set(q, 6, 0, (struct value){.type = VALUE_F64, .f = 0.2}), 0);
	v = derived(p);
	w = derived(q);
	ck_assert_int_eq(diff_new(v, w, &d), 0);
	ck_assert_int_eq(
		diff_gate(d, 0, 5, &x), DIFF_FINE); /* doubled, but below 1 % of the whole */
	diff_free(d);
	view_free(v);
	view_free(w);
	profile_free(p);
	profile_free(q);
}
END_TEST

START_TEST(twins_are_matched_in_order)
{
	static const char text[] =
		"[{\"frame\":{\"name\":\"ROOT\"},\"metrics\":{\"time (ns)\":0},\"children\":["
		"{\"frame\":{\"name\":\"k\"},\"metrics\":{\"time (ns)\":1}},"
		"{\"frame\":{\"name\":\"k\"},\"metrics\":{\"time (ns)\":5}}]}]";
	struct profile *p;
	struct view *v;
	struct diff *d;
	struct err e;

	ck_assert_int_eq(export_read(text, sizeof(text) - 1, &p, &e), 0);
	v = derived(p);
	ck_assert_int_eq(diff_new(v, v, &d), 0);
	ck_assert_uint_eq(d->p->n_nodes, 3);
	ck_assert_double_eq(d->view->col[0].v[1], 0);
	ck_assert_double_eq(d->view->col[0].v[2], 0);
	diff_free(d);
	view_free(v);
	profile_free(p);
}
END_TEST

static char *shown(const char *name, uint32_t width, bool utf8)
{
	const struct term term = {.utf8 = utf8};
	struct text t = {0};
	char *s;
	size_t n;

	term_name(&term, &t, name, width);
	ck_assert_int_eq(text_take(&t, &s, &n), 0);
	return s;
}

START_TEST(names_are_harmless)
{
	static const struct {
		const char *in;
		uint32_t width;
		bool utf8;
		const char *out;
	} cases[] = {
		{"plain", 0, true, "plain"},
		{"\x1b[2J\x07\r\n\x7f", 0, true, "\\x1b[2J\\x07\\x0d\\x0a\\x7f"},
		{"\xc2\x9b"
		 "31m",
			0, true, "\\u009b31m"},
		{"\xe2\x80\xaegnp", 0, true, "\\u202egnp"}, /* would run backwards */
		{"so\xc2\xadj", 0, true, "so\\u00adj"},
		{"\xf3\xa0\x81\x81", 0, true, "\\U000e0041"}, /* a tag: nothing would be seen */
		{"gr\xc3\xb6\xc3\x9f", 0, true, "gr\xc3\xb6\xc3\x9f"},
		{"gr\xc3\xb6\xc3\x9f", 0, false, "gr\\u00f6\\u00df"},
		{"abcdefghijklmnopqrstuvwxyz", 10, false, "abcdef~xyz"},
		{"abcdefghij", 10, false, "abcdefghij"},
		{"/env/lib/nn/module.py:1783@_call_impl", 27, false, "~/module.py:1783@_call_impl"},
		{"/bin/python3 a.py me@host", 12, false, "/bin/py~host"},
	};
	size_t i;
	char *s;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		s = shown(cases[i].in, cases[i].width, cases[i].utf8);
		ck_assert_str_eq(s, cases[i].out);
		free(s);
	}
}
END_TEST

/* The ring's list of causes, which the viewer's room cannot include. */
START_TEST(losses_have_the_same_words)
{
#define X(name, number, words) ck_assert_str_eq(loss_words(number), words);
	LOST_CAUSES(X)
#undef X
	ck_assert_ptr_nonnull(strstr(loss_words(LOST_CAUSE_MAX), "unknown"));
	ck_assert_ptr_nonnull(strstr(loss_words(UINT32_MAX), "unknown"));
}
END_TEST

/* getopt moves the words about: they are copied, and freed by the next call. */
static int parse(const char *const *words, struct options *o, struct err *e)
{
	static char *owned[16];
	static char *argv[16];
	int n;

	for (n = 0; n < 16; n++) {
		free(owned[n]);
		owned[n] = argv[n] = NULL;
	}
	for (n = 0; words != NULL && words[n] != NULL && n < 15; n++)
		owned[n] = argv[n] = strdup(words[n]);
	e->text[0] = '\0';
	return words == NULL ? 0 : options_parse(n, argv, o, e);
}

START_TEST(options)
{
	static const struct {
		const char *words[8];
		int want;
		enum verb_id verb;
		enum option_id id;
		const char *value;
	} cases[] = {
		{{"pv", "f", "-m", "time/ms"}, 0, VERB_tree, OPT_METRICS, "time/ms"},
		{{"pv", "-m", "time/ms", "f"}, 0, VERB_tree, OPT_METRICS, "time/ms"},
		{{"pv", "tree", "f", "--metrics=util"}, 0, VERB_tree, OPT_METRICS, "util"},
		{{"pv", "f", "-diff", "g"}, 0, VERB_tree, OPT_DIFF_PROFILE, "g"},
		{{"pv", "f", "--diff-profile", "g"}, 0, VERB_tree, OPT_DIFF_PROFILE, "g"},
		{{"pv", "f", "--print-sorted"}, 0, VERB_tree, OPT_SORTED, ""},
		{{"pv", "diff", "a", "b", "--gate", "5"}, 0, VERB_diff, OPT_GATE, "5"},
		{{"pv", "flat", "f", "-w"}, 0, VERB_flat, OPT_WIDE, ""},
		{{"pv", "tree", "--", "-l"}, 0, VERB_tree, OPT_LIST, NULL},
		{{"pv", "--json", "flat", "f"}, 0, VERB_flat, OPT_JSON, ""},
		{{"pv", "-m", "count", "tree", "f"}, 0, VERB_tree, OPT_METRICS, "count"},
		{{"pv", "--gate", "5", "diff", "a", "b"}, 0, VERB_diff, OPT_GATE, "5"},
		{{"pv", "-m", "flat", "f"}, 0, VERB_tree, OPT_METRICS, "flat"},
		{{"pv", "--json", "--", "flat"}, 0, VERB_tree, OPT_JSON, ""},
		{{"pv", "-h"}, 0, VERB_tree, OPT_HELP, ""},
		{{"pv"}, 0, VERB_help, OPT_HELP, NULL},
		{{"pv", "f", "g"}, -EINVAL, 0, 0, NULL},
		{{"pv", "diff", "a"}, -EINVAL, 0, 0, NULL},
		{{"pv", "f", "--nothing"}, -EINVAL, 0, 0, NULL},
		{{"pv", "f", "-m"}, -EINVAL, 0, 0, NULL},
		{{"pv", "f", "--gate", "5"}, -EINVAL, 0, 0, NULL},
		{{"pv", "sessions", "-l"}, -EINVAL, 0, 0, NULL},
		{{"pv", "-l", "sessions"}, -EINVAL, 0, 0, NULL},
		{{"pv", "--json", "flat"}, -EINVAL, 0, 0, NULL},
	};
	struct options o;
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r = parse(cases[i].words, &o, &e);
		ck_assert_msg(r == cases[i].want, "case %zu: %d %s", i, r, e.text);
		if (r < 0) {
			ck_assert(e.text[0] != '\0');
			continue;
		}
		ck_assert_int_eq(o.verb, cases[i].verb);
		if (cases[i].value == NULL)
			ck_assert_ptr_null(o.value[cases[i].id]);
		else
			ck_assert_str_eq(o.value[cases[i].id], cases[i].value);
	}
	(void)parse(NULL, &o, &e);
}
END_TEST

START_TEST(references)
{
	static const struct {
		const char *ref;
		int want;
		int64_t id;
	} cases[] = {
		{"@last", 0, 8},
		{"@-1", 0, 7},
		{"@-2", -ENOENT, 0},
		{"@-x", -EINVAL, 0},
		{"@first", -EINVAL, 0},
		{"train", 0, 7},
		{"7", 0, 7},
		{"9", 0, 9},
		{"77", -ENOENT, 0},
		{"abc00007", 0, 7},
		{"ABC00008", 0, 8},
		{"abc00007-0000", 0, 7},
		{"abc0", -EINVAL, 0},
		{"abc", -ENOENT, 0},
		{"dead", 0, 8},
		{"auto", 0, 9},
		{"no such", -ENOENT, 0},
		{"%", -ENOENT, 0},
		{"", -ENOENT, 0},
	};
	sqlite3 *db = help_db(":memory:");
	struct err e;
	int64_t id;
	size_t i;
	int r;

	help_train(db);
	help_session(db, 8, "dead", "run", "on");    /* a name that is hex, too */
	help_session(db, 9, "auto", "auto", "none"); /* newest, but automatic */
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		id = 0;
		r = pick_session(db, cases[i].ref, &id, &e);
		ck_assert_msg(r == cases[i].want && id == cases[i].id, "'%s': %d, id %lld",
			cases[i].ref, r, (long long)id);
	}
	ck_assert_int_eq(pick_only(db, &id, &e), -EINVAL);
	help_exec(db, "DELETE FROM session WHERE id <> 9");
	ck_assert_int_eq(pick_only(db, &id, &e), 0);
	ck_assert_int_eq(pick_session(db, "@last", &id, &e), 0);
	ck_assert_int_eq(id, 9);
	help_exec(db, "DELETE FROM session");
	ck_assert_int_eq(pick_only(db, &id, &e), -ENOENT);
	ck_assert_int_eq(pick_session(db, "@last", &id, &e), -ENOENT);
	sqlite3_close(db);
}
END_TEST

START_TEST(only_our_databases)
{
	static const struct {
		const char *sql, *words;
	} cases[] = {{"PRAGMA application_id = 5", "not a protond database"},
		{"PRAGMA user_version = 99", "newer protond"},
		{"ALTER TABLE cell ADD COLUMN x INTEGER AS (length(hex(zeroblob(400000000))))",
			"computed"}};
	char path[64];
	struct err e;
	sqlite3 *db;
	bool partial;
	size_t i;

	for (i = 0; i < 3; i++) {
		help_temporary(path);
		db = help_db(path);
		help_exec(db, cases[i].sql);
		sqlite3_close(db);
		ck_assert_int_eq(pick_open(path, &db, &partial, &e), -EBADMSG);
		ck_assert_msg(strstr(e.text, cases[i].words) != NULL, "%s", e.text);
		(void)unlink(path);
		ck_assert_int_eq(pick_open(path, &db, &partial, &e), -ENOENT);
	}
	help_temporary(path); /* as protond leaves one that it has no room to fill */
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	help_exec(db, "PRAGMA journal_mode = WAL");
	sqlite3_close(db);
	ck_assert_int_eq(pick_open(path, &db, &partial, &e), -ENOENT);
	ck_assert_msg(strstr(e.text, "nothing has been recorded in it yet") != NULL, "%s", e.text);
	(void)unlink(path);
	ck_assert_int_eq(pick_open_image("SQLite format 3", 16, &db, &e), -EBADMSG);
	ck_assert_int_eq(pick_open_image("", 0, &db, &e), -EBADMSG);
}
END_TEST

/* It would have rows for ever. */
START_TEST(a_view_is_not_run)
{
	char path[64];
	struct err e;
	sqlite3 *db;
	bool partial;

	help_temporary(path);
	db = help_db(path);
	help_exec(db, "DROP TABLE session");
	help_exec(db, "CREATE VIEW session AS WITH RECURSIVE n(id, name) AS "
		      "(SELECT 1, 'a' UNION ALL SELECT id + 1, 'a' FROM n) SELECT id, name FROM n");
	sqlite3_close(db);
	ck_assert_int_eq(pick_open(path, &db, &partial, &e), 0);
	ck_assert_int_eq(pick_session(db, "b", &(int64_t){0}, &e), -EBADMSG);
	sqlite3_close(db);
	(void)unlink(path);
}
END_TEST

/* One of another program is no regression of this one's, and no improvement. */
START_TEST(unrelated_trees_fail_the_gate)
{
	struct profile *p = sample(), *q = profile_new();
	const uint32_t m = profile_add_metric(q, "time (ns)", KIND_INCLUSIVE),
		       at = profile_add_node(q, 0, "else", NODE_SCOPE);
	struct view *v = derived(p), *w;
	struct diff_verdict x;
	struct diff *d;

	ck_assert_int_eq(profile_set(q, at, m, (struct value){.type = VALUE_F64, .f = 1}), 0);
	w = derived(q);
	ck_assert_int_eq(diff_new(v, w, &d), 0);
	ck_assert_int_eq(diff_gate(d, 0, 1e6, &x), DIFF_UNRELATED);
	diff_free(d);
	view_free(v);
	view_free(w);
	profile_free(p);
	profile_free(q);
}
END_TEST

#define TESTS(X)                         \
	X(unrelated_trees_fail_the_gate) \
	X(a_view_is_not_run)             \
	X(filters_keep)                  \
	X(a_hard_pattern_ends)           \
	X(frames)                        \
	X(differences)                   \
	X(small_nodes_pass_the_gate)     \
	X(twins_are_matched_in_order)    \
	X(names_are_harmless)            \
	X(losses_have_the_same_words) X(options) X(references) X(only_our_databases)
HELP_SUITE("view_filter", TESTS)
