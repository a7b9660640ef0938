/* SPDX-License-Identifier: MIT. report_text.c: a report as a text or as JSON. */
#include "report_text.h"

#include <math.h>
#include <string.h>

#include "judged.h"
#include "print_json.h"

#define TOP 10u /* without --rows */

struct reported {
	struct judged *j;
	struct view *v;
	struct flat *flat; /* NULL: no times */
	uint32_t top;
};

/* --- what it was */

struct summary {
	const char *key, *words, *unit;
	double v;
};
#define SUMMARY_MAX 8u

static double busy_of(const struct profile *p)
{
	double busy = 0;
	uint32_t i, n = 0;

	for (i = 0; i < p->n_devices; i++)
		if (p->device[i].busy_ns > 0) {
			busy += (double)p->device[i].busy_ns;
			n++;
		}
	return n > 0 && p->head.duration_ns > 0 ? busy / n / (double)p->head.duration_ns
						: (double)NAN;
}

/* NAN: not known. */
static uint32_t summary_of(const struct judged *j, struct summary ret[SUMMARY_MAX])
{
	const struct facts *f = j->f;
	const struct profile *p = j->p;
	const bool steps = facts_has_steps(f), stored = p->head.uuid != NULL;
	uint32_t n = 0;

	ret[n++] = (struct summary){
		"duration", "recorded", "ns", stored ? (double)p->head.duration_ns : (double)NAN};
	ret[n++] = (struct summary){
		"processes", "processes", NULL, stored ? p->head.n_processes : (double)NAN};
	ret[n++] = (struct summary){"steps", "steps", NULL, steps ? f->steps : (double)NAN};
	ret[n++] = (struct summary){"step_mean", "a step, on average", "ns",
		steps && f->steps > 0 ? f->step_ns / f->steps : (double)NAN};
	ret[n++] = (struct summary){"gpu_time", "work of GPUs", "ns", f->node[0].gpu_ns};
	ret[n++] = (struct summary){"gpu_count", "pieces of it", NULL, f->node[0].gpu_count};
	ret[n++] = (struct summary){"gpu_busy", "GPUs busy", "share", busy_of(p)};
	ret[n++] =
		(struct summary){"gpu_idle", "GPU idle, as rules judge it", "share", f->idle.share};
	return n;
}

static void print_summary(struct run *run, const struct judged *j)
{
	struct summary s[SUMMARY_MAX];
	const uint32_t n = summary_of(j, s);
	struct text *t = &run->out;
	uint32_t i;

	text_str(t, "Summary\n");
	print_head(t, j->p, &run->term);
	for (i = 0; i < n; i++) {
		if (isnan(s[i].v))
			continue;
		text_fmt(t, "%-28s ", s[i].words);
		if (s[i].unit == NULL)
			text_fmt(t, "%.0f", s[i].v);
		else if (strcmp(s[i].unit, "ns") == 0)
			term_duration(t, s[i].v);
		else
			text_fmt(t, "%.1f%%", 100 * s[i].v);
		text_char(t, '\n');
	}
	print_why(t, j->p, &run->term);
}

/* --- what took the most */

static void print_top(struct run *run, const struct reported *r)
{
	struct print_options o = run->print;

	text_str(&run->out, "\nTop operations\n");
	o.rows = r->top;
	if (r->flat != NULL)
		print_flat(&run->out, r->flat, &o);
	else
		text_str(&run->out, "(no times were recorded)\n");
}

/* --- what is slow, and where */

/* What it stands in directly below a step; NULL: it has no place in one. */
static const char *part_of(struct run *run, const struct judged *j, uint32_t node)
{
	const struct profile *p = j->p;
	const uint32_t step = node == PROFILE_NONE ? PROFILE_NONE : j->f->node[node].step;

	if (step == PROFILE_NONE || node == step)
		return NULL;
	while (p->node[node].parent != step)
		node = p->node[node].parent;
	return names_show(run->names, p->node[node].name);
}

static bool same_part(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void print_advice(struct run *run, const struct judged *j, const char *part)
{
	struct text *t = &run->out;
	uint32_t i;

	if (part == NULL)
		text_str(t, "the whole");
	else
		term_name(&run->term, t, part, 0);
	text_char(t, '\n');
	for (i = 0; i < j->b.n; i++) {
		const struct verdict *v = &j->b.verdict[i];
		struct text words = {0};

		if (!same_part(part_of(run, j, v->node), part))
			continue;
		text_fmt(&words, "%s: %s%c", rule_rows[v->rule].id, v->advice, '\0');
		if (!words.failed)
			print_words(t, &run->term, "  - ", words.s);
		text_fini(&words);
	}
}

/* Parts in the order of their worst verdict. */
static void print_parts(struct run *run, const struct judged *j)
{
	uint32_t i, k;

	if (j->b.n == 0)
		return;
	text_str(&run->out, "\nAdvice, by part of a step\n");
	for (i = 0; i < j->b.n; i++) {
		const char *part = part_of(run, j, j->b.verdict[i].node);

		for (k = 0; k < i && !same_part(part_of(run, j, j->b.verdict[k].node), part); k++)
			;
		if (k == i)
			print_advice(run, j, part);
	}
}

static void print_all(struct run *run, const struct reported *r)
{
	const struct judged *j = r->j;
	uint32_t i;

	print_summary(run, j);
	print_top(run, r);
	text_str(&run->out, "\nBottlenecks\n");
	for (i = 0; i < j->b.n; i++)
		judged_print(run, j, &j->b.verdict[i]);
	if (j->b.n == 0)
		text_str(&run->out, "(no rule found anything to mend)\n");
	judged_print_rest(run, j);
	print_parts(run, j);
}

/* --- JSON: a row for each fact, in sections */

struct fact { /* NULL, NAN: none */
	const char *section, *name, *unit, *severity, *words, *advice, *where, *part;
	double v, share, count;
};

static void put_fact(struct text *t, const struct fact *f)
{
	envelope_row(t);
	envelope_string(t, f->section);
	envelope_string(t, f->name);
	envelope_number(t, f->v);
	envelope_string(t, f->unit);
	envelope_number(t, f->share);
	envelope_number(t, f->count);
	envelope_string(t, f->severity);
	envelope_string(t, f->words);
	envelope_string(t, f->where);
	envelope_string(t, f->part);
	envelope_string(t, f->advice);
}

static void json_verdict(struct run *run, const struct judged *j, const struct verdict *v)
{
	struct text path = {0};

	run_path(run, &path, j->p, v->node, " / ");
	put_fact(&run->out, &(struct fact){.section = "bottlenecks",
				    .name = rule_rows[v->rule].id,
				    .unit = "ns",
				    .severity = severity_words[v->severity],
				    .words = v->words,
				    .advice = v->advice,
				    .where = path.failed || path.n <= 1 ? NULL : path.s,
				    .part = part_of(run, j, v->node),
				    .v = v->gain_ns,
				    .share = v->share,
				    .count = (double)NAN});
	text_fini(&path);
}

static void json_all(struct run *run, const struct reported *r)
{
	static const struct envelope_column columns[] = {{"section", NULL, "string"},
		{"name", NULL, "string"}, {"value", NULL, "number"}, {"unit", NULL, "string"},
		{"share", NULL, "number"}, {"count", NULL, "number"}, {"severity", NULL, "string"},
		{"words", NULL, "string"}, {"where", NULL, "string"}, {"part", NULL, "string"},
		{"advice", NULL, "string"}};
	const double none = (double)NAN;
	struct summary s[SUMMARY_MAX];
	const uint32_t n = summary_of(r->j, s);
	uint32_t i;

	envelope_open(&run->out, "report", r->j->p);
	envelope_columns(&run->out, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < n; i++)
		put_fact(&run->out, &(struct fact){.section = "summary",
					    .name = s[i].key,
					    .unit = s[i].unit,
					    .words = s[i].words,
					    .v = s[i].v,
					    .share = none,
					    .count = none});
	for (i = 0; r->flat != NULL && i < r->flat->n && (r->top == 0 || i < r->top); i++)
		put_fact(&run->out, &(struct fact){.section = "top",
					    .name = names_show(run->names, r->flat->row[i].name),
					    .unit = "ns",
					    .v = r->flat->row[i].sum_ns,
					    .share = r->flat->row[i].share,
					    .count = r->flat->row[i].count});
	for (i = 0; i < r->j->b.n; i++)
		json_verdict(run, r->j, &r->j->b.verdict[i]);
	envelope_close(&run->out, &run->warnings);
}

/* --- both */

static int read_flat(struct run *run, struct reported *r)
{
	int status = run_view(run, r->j->p, flat_metrics(r->j->p), &r->v);

	if (status == 0)
		status = flat_new(r->v, FLAT_BY_name, &r->flat);
	if (status == -ENODATA)
		return 0;
	return status < 0 && run->e.text[0] == '\0' ? err_set(&run->e, status, "out of memory")
						    : status;
}

int report_text(struct run *run, bool json)
{
	struct reported r = {.top = run_given(run, OPT_ROWS) ? run->print.rows : TOP};
	int status = judged_new(run, &r.j);

	if (status == 0)
		status = read_flat(run, &r);
	if (status == 0 && json)
		json_all(run, &r);
	else if (status == 0)
		print_all(run, &r);
	flat_free(r.flat);
	view_free(r.v);
	judged_free(r.j);
	return status;
}
