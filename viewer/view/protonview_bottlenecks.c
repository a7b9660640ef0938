/* SPDX-License-Identifier: MIT. protonview_bottlenecks.c: the verb bottlenecks: the rules' verdicts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judged.h"
#include "print_json.h"
#include "rule_limits.h"

#define INDENT 8u

/* --- reading */

static int read_store(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct judged *to = arg;

	return facts_load(&to->f, &to->p, db, id, s, ret_left, e);
}

static int read_all(struct run *run, struct judged *to)
{
	struct source_options o = {.timeline = read_store, .arg = to};
	struct source s;
	int r = run_source_by(run, run->o.args[0], &o, &s);

	if (r != -ENODATA || run_part(run))
		return r;
	r = run_source(run, run->o.args[0], false, &to->p); /* a file of a tree */
	if (r == 0 && facts_new(to->p, NULL, &to->f) < 0)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	return r;
}

/* --- words */

static void put_gain(struct text *t, const struct facts *f, const struct verdict *v)
{
	const double step = gain_of_step(f, v), whole = whole_ns_of(f, v->of);

	text_str(t, "at most ");
	term_duration(t, isnan(step) ? v->gain_ns : step);
	text_str(t, isnan(step) ? "" : " a step");
	if (whole > 0)
		text_fmt(t, ", %.1f%% %s", 100 * v->gain_ns / whole, whole_words(v->of));
	text_char(t, '\0');
}

/* "a timeline, steps", or what records them. */
static void put_needs(struct text *t, uint32_t lacks, bool how)
{
	uint32_t k;

	for (k = 0; k < NEED_N; k++)
		if ((lacks >> k & 1) != 0)
			text_fmt(t, "%s%s", t->n > 0 ? "; " : "",
				how ? need_rows[k].how : need_rows[k].words);
	text_char(t, '\0');
}

/* --- the screen */

static void print_line(struct run *run, const char *head, struct text *words)
{
	char before[32];

	snprintf(before, sizeof(before), "%*s%s", (int)INDENT, "", head);
	if (words->s != NULL && !words->failed)
		print_words(&run->out, &run->term, before, words->s);
	text_fini(words);
}

void judged_print(struct run *run, const struct judged *j, const struct verdict *v)
{
	static const enum term_style style[] = {STYLE_PLAIN, STYLE_COOL, STYLE_WARM, STYLE_BAD};
	struct text t = {0};
	const size_t from = run->out.n;

	term_style(&run->term, &run->out, style[v->severity]);
	text_fmt(&run->out, "%-*s", (int)INDENT - 1, severity_words[v->severity]);
	term_style(&run->term, &run->out, STYLE_PLAIN);
	text_fmt(&run->out, " %s: %s", rule_rows[v->rule].id, v->words);
	term_wrap(&run->term, &run->out, from, INDENT);
	text_char(&run->out, '\n');
	run_path(run, &t, j->p, v->node, " / ");
	if (t.n > 1)
		print_line(run, "where: ", &t);
	else
		text_fini(&t);
	text_fmt(&t, "%s%c", v->advice, '\0');
	print_line(run, "do:    ", &t);
	if (!isnan(v->gain_ns)) {
		put_gain(&t, j->f, v);
		print_line(run, "gives: ", &t);
	}
}

/* "data_loader, jitter" of those in a state that lack one of these; clean ones with a note have a line of their own. */
static uint32_t put_rules(
	struct text *t, const struct bottlenecks *b, enum rule_state s, uint32_t lacks)
{
	uint32_t i, n = 0;

	for (i = 0; i < RULE_N; i++)
		if (b->rule[i].state == s && (s != RULE_CLEAN || *b->rule[i].note == '\0') &&
			(lacks == 0 || (b->rule[i].lacks & lacks) != 0))
			text_fmt(t, "%s%s", n++ > 0 ? ", " : "", rule_rows[i].id);
	text_char(t, '\0');
	return n;
}

static void print_clean(struct run *run, const struct bottlenecks *b)
{
	struct text t = {0};
	uint32_t i;

	if (!run_given(run, OPT_ALL)) {
		if (put_rules(&t, b, RULE_CLEAN, 0) > 0)
			print_words(&run->out, &run->term, "clean   ", t.s);
		text_fini(&t);
		return;
	}
	for (i = 0; i < RULE_N; i++) {
		if (b->rule[i].state != RULE_CLEAN)
			continue;
		text_fmt(&t, "%s: %s: less than %g %s%s%s%c", rule_rows[i].id, rule_rows[i].what,
			b->threshold[i], rule_rows[i].unit, *b->rule[i].note != '\0' ? "; " : "",
			b->rule[i].note, '\0');
		if (t.s != NULL)
			print_words(&run->out, &run->term, "clean   ", t.s);
		text_fini(&t);
	}
}

/* What is missing, what records it, and for which rules. */
static void print_lacks(struct run *run, const struct bottlenecks *b)
{
	uint32_t k;

	for (k = 0; k < NEED_N; k++) {
		struct text t = {0};

		text_fmt(&t, "%s (%s): ", need_rows[k].words, need_rows[k].how);
		if (put_rules(&t, b, RULE_LACKS, 1u << k) > 0 && !t.failed)
			print_words(&run->out, &run->term, "lacks   ", t.s);
		text_fini(&t);
	}
}

static void print_notes(struct run *run, const struct bottlenecks *b)
{
	uint32_t i;

	for (i = 0; i < RULE_N; i++) {
		struct text t = {0};

		if (*b->rule[i].note == '\0' ||
			(run_given(run, OPT_ALL) && b->rule[i].state == RULE_CLEAN))
			continue;
		text_fmt(&t, "%s: %s%c", rule_rows[i].id, b->rule[i].note, '\0');
		if (t.s != NULL)
			print_words(&run->out, &run->term,
				b->rule[i].state == RULE_UNSURE  ? "unsure  "
				: b->rule[i].state == RULE_FOUND ? "also    "
								 : "clean   ",
				t.s);
		text_fini(&t);
	}
}

void judged_print_rest(struct run *run, const struct judged *j)
{
	print_notes(run, &j->b);
	print_clean(run, &j->b);
	print_lacks(run, &j->b);
}

static void print_all(struct run *run, const struct judged *j)
{
	uint32_t i;

	print_head(&run->out, j->p, &run->term);
	for (i = 0; i < j->b.n; i++)
		judged_print(run, j, &j->b.verdict[i]);
	if (j->b.n == 0)
		text_str(&run->out, "(no rule found anything to mend)\n");
	if (j->b.left_out > 0)
		text_fmt(&run->out, "(%u further verdicts are left out)\n", j->b.left_out);
	judged_print_rest(run, j);
	print_why(&run->out, j->p, &run->term);
}

/* --- JSON */

static const char *maybe(const struct text *t)
{
	return t->failed || t->n <= 1 ? NULL : t->s;
}

static void json_row(struct run *run, const struct judged *j, uint32_t rule, const char *state,
	const struct verdict *v)
{
	struct text *t = &run->out, path = {0}, lacks = {0}, how = {0};

	if (v != NULL)
		run_path(run, &path, j->p, v->node, " / ");
	put_needs(&lacks, j->b.rule[rule].lacks, false);
	put_needs(&how, j->b.rule[rule].lacks, true);
	envelope_row(t);
	envelope_string(t, rule_rows[rule].id);
	envelope_string(t, state);
	envelope_string(t, v != NULL ? severity_words[v->severity] : NULL);
	envelope_string(t, v != NULL ? v->words : rule_rows[rule].what);
	envelope_number(t, v != NULL ? v->share : (double)NAN);
	envelope_number(t, v != NULL ? v->gain_ns : (double)NAN);
	envelope_number(t, v != NULL ? gain_of_step(j->f, v) : (double)NAN);
	envelope_string(t, maybe(&path));
	envelope_string(t, v != NULL ? v->advice : NULL);
	envelope_string(t, v != NULL ? verdict_views[v->view] : NULL);
	envelope_number(t, j->b.threshold[rule]);
	envelope_string(t, rule_rows[rule].unit);
	envelope_string(t, maybe(&lacks));
	envelope_string(t, maybe(&how));
	envelope_string(t, *j->b.rule[rule].note != '\0' ? j->b.rule[rule].note : NULL);
	text_fini(&path);
	text_fini(&lacks);
	text_fini(&how);
}

static void json(struct run *run, const struct judged *j)
{
	static const struct envelope_column columns[] = {{"rule", NULL, "string"},
		{"state", NULL, "string"}, {"severity", NULL, "string"}, {"words", NULL, "string"},
		{"share", NULL, "number"}, {"gain", "ns", "number"}, {"gain_step", "ns", "number"},
		{"where", NULL, "string"}, {"advice", NULL, "string"}, {"view", NULL, "string"},
		{"threshold", NULL, "number"}, {"unit", NULL, "string"}, {"lacks", NULL, "string"},
		{"record", NULL, "string"}, {"note", NULL, "string"}};
	uint32_t i;

	envelope_open(&run->out, "bottlenecks", j->p);
	envelope_columns(&run->out, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < j->b.n; i++)
		json_row(run, j, j->b.verdict[i].rule, rule_states[RULE_FOUND], &j->b.verdict[i]);
	for (i = 0; i < RULE_N; i++)
		if (j->b.rule[i].state != RULE_FOUND)
			json_row(run, j, i, rule_states[j->b.rule[i].state], NULL);
	envelope_close(&run->out, &run->warnings);
}

/* --- the verb */

static void judge_gate(struct run *run, const struct bottlenecks *b, int gate)
{
	uint32_t i, n = 0;

	for (i = 0; i < b->n; i++)
		n += (int)b->verdict[i].severity >= gate;
	if (gate < 0 || n == 0)
		return;
	run->failed_gate = true;
	warning_add(&run->warnings, "gate failed: %u verdict%s %s or worse", n,
		n == 1 ? " is" : "s are", severity_words[gate]);
}

int judged_new(struct run *run, struct judged **ret)
{
	struct judged *j = *ret = calloc(1, sizeof(*j));
	struct rule_settings set;
	int r = j == NULL ? err_set(&run->e, -ENOMEM, "out of memory") : 0;

	if (r == 0)
		r = rule_limits_usual(&set, &run->e);
	if (r == 0 && run_given(run, OPT_SET))
		r = rule_limits_set(&set, run->o.value[OPT_SET], &run->e);
	if (r == 0)
		r = read_all(run, j);
	if (r == 0)
		r = run_names(run, j->p);
	if (r == 0)
		bottlenecks_find(j->f, &set, &j->b);
	return r;
}

void judged_free(struct judged *j)
{
	if (j == NULL)
		return;
	facts_free(j->f);
	profile_free(j->p);
	free(j);
}

int view_bottlenecks(struct run *run)
{
	const char *word = run->o.value[OPT_GATE];
	const int gate = word != NULL ? severity_of(word) : -1;
	struct judged *j = NULL;
	int r = 0;

	if (word != NULL && gate < 0)
		r = err_set(
			&run->e, -EINVAL, "--gate '%s': of bottlenecks HIGH, MEDIUM or LOW", word);
	if (r == 0)
		r = judged_new(run, &j);
	if (r == 0 && gate >= 0 && j->p->n_nodes <= 1)
		r = err_set(&run->e, -ENODATA,
			"nothing was recorded, of which --gate could judge; `protonctl doctor` "
			"says what is in the way");
	if (r == 0) {
		judge_gate(run, &j->b, gate);
		if (run_given(run, OPT_JSON))
			json(run, j);
		else
			print_all(run, j);
	}
	judged_free(j);
	return r;
}
