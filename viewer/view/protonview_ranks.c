/* SPDX-License-Identifier: MIT. protonview_ranks.c: the verb ranks: the processes of a session side by side, which of them
 * the others wait for, and where they differ most. */
#include <math.h>
#include <stdio.h>

#include "grid.h"
#include "late_rank.h"
#include "print_json.h"
#include "protonview_verb.h"

#define ROWS 20u /* shown, without --rows */

struct side_by_side {
	struct ranks *r;
	struct steps *s; /* NULL: no timeline */
	struct late_rank late;
	bool is_late;
};

static int read_both(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct side_by_side *b = arg;
	int r = ranks_read(db, id, &b->r, e);

	if (r == 0)
		r = steps_read(db, id, s, ret_left, &b->s, e);
	if (r == -ENODATA && b->r != NULL) {
		*e = (struct err){0};
		r = 0;
	}
	b->is_late = r == 0 && late_rank_find(b->r, b->s, &b->late) && b->late.wait_ns > 0;
	return r;
}

/* Of a process its steps, and the median of them in ns; NAN: they are too few. */
static uint32_t steps_of(const struct steps *s, const struct ranks_process *p, double *ret_median)
{
	uint32_t i, k, n = 0;

	*ret_median = (double)NAN;
	for (k = 0; s != NULL && k < s->n_processes; k++) {
		if (s->process[k].pid != p->pid || s->process[k].rank != p->rank)
			continue;
		*ret_median = s->process[k].median_ns;
		for (i = 0; i < s->n; i++)
			n += s->step[i].process == k;
		break;
	}
	return n;
}

/* --- for people */

static void put_rank(struct text *t, const struct ranks_process *p)
{
	if (p->rank >= 0)
		text_fmt(t, "rank %lld", (long long)p->rank);
	else
		text_fmt(t, "pid %lld", (long long)p->pid);
}

static void put_late(struct run *run, const struct side_by_side *b)
{
	const struct late_rank *l = &b->late;
	struct text *t = &run->out, path = {0};
	size_t from = t->n;

	text_str(t, "Where they meet, in collectives, the others wait for ");
	put_rank(t, &b->r->process[l->at]);
	text_str(t, ": ");
	term_duration(t, l->by_steps ? l->step_wait_ns : l->wait_ns);
	text_str(t, l->by_steps ? " a step" : " in all, the start included");
	if (l->since > 0)
		text_fmt(t, ", from step %u on", l->since);
	text_char(t, '.');
	term_wrap(&run->term, t, from, 0);
	text_char(t, '\n');
	if (l->node == PROFILE_NONE)
		return;
	run_path(run, &path, b->r->p, l->node, "/");
	from = t->n;
	text_str(t, "It has ");
	term_duration(t, l->by_steps ? l->more_ns / l->steps : l->more_ns);
	text_fmt(t, "%s more than they %s:", l->by_steps ? " a step" : "",
		l->host ? "on the host" : "on its GPU");
	term_wrap(&run->term, t, from, 0);
	text_str(t, "\n  ");
	term_name(&run->term, t, path.s != NULL ? path.s : "",
		run->term.width > 2 ? run->term.width - 2 : 0);
	text_str(t, "\n");
	text_fini(&path);
}

static void print_processes(struct run *run, const struct side_by_side *b)
{
	static const struct grid_column columns[] = {{"rank", true, 0, 0}, {"pid", true, 0, 0},
		{"time/ms", true, 0, 0}, {"collectives/ms", true, 0, 0}, {"steps", true, 0, 0},
		{"median step/ms", true, 0, 0}};
	struct grid g;
	uint32_t k, n;
	double median;

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (k = 0; k < b->r->n; k++) {
		const struct ranks_process *p = &b->r->process[k];

		n = steps_of(b->s, p, &median);
		if (p->rank >= 0)
			grid_cell_fmt(&g, "%lld", (long long)p->rank);
		else
			grid_cell_fmt(&g, "-");
		grid_cell_fmt(&g, "%lld", (long long)p->pid);
		grid_cell_fmt(&g, "%.3f", (double)p->total_ns / 1e6);
		grid_cell_fmt(&g, "%.3f", ranks_meeting_ns(b->r, k) / 1e6);
		if (n > 0)
			grid_cell_fmt(&g, "%u", n);
		else
			grid_cell_fmt(&g, "-");
		if (isnan(median))
			grid_cell_fmt(&g, "-");
		else
			grid_cell_fmt(&g, "%.3f", median / 1e6);
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
}

static void print_rows(struct run *run, const struct side_by_side *b)
{
	static const struct grid_column columns[] = {{"apart/ms", true, 0, 0},
		{"most/ms", true, 0, 0}, {"median/ms", true, 0, 0}, {"least/ms", true, 0, 4},
		{"most in", false, 8, 0}, {"of", true, 0, 5}, {"where", false, 12, 0}};
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	const struct ranks *r = b->r;
	struct grid g;
	uint32_t i;

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < r->n_rows && i < most; i++) {
		const struct ranks_row *row = &r->row[i];
		struct text path = {0}, rank = {0};

		run_path(run, &path, r->p, row->node, "/");
		put_rank(&rank, &r->process[row->slowest]);
		text_char(&rank, '\0');
		grid_cell_fmt(&g, "%.3f", (double)(row->max_ns - row->median_ns) / 1e6);
		grid_cell_fmt(&g, "%.3f", (double)row->max_ns / 1e6);
		grid_cell_fmt(&g, "%.3f", (double)row->median_ns / 1e6);
		grid_cell_fmt(&g, "%.3f", (double)row->min_ns / 1e6);
		grid_cell(&g, &run->term, rank.s != NULL ? rank.s : "");
		grid_cell_fmt(&g, "%u", row->in);
		grid_cell(&g, &run->term, path.s != NULL ? path.s : "");
		text_fini(&path);
		text_fini(&rank);
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (r->n_rows > most)
		text_fmt(&run->out, "%u more; -n N shows N\n", r->n_rows - most);
	text_fmt(&run->out, "%s, with all below it; apart: the most less the median\n",
		r->cost == COST_gpu_time ? "GPU time" : "time on the host");
}

/* --- for programs */

static void json(struct run *run, const struct profile *p, const struct side_by_side *b)
{
	static const struct envelope_column columns[] = {{"where", NULL, "string"},
		{"most", "ns", "integer"}, {"median", "ns", "integer"}, {"least", "ns", "integer"},
		{"rank", NULL, "integer"}, {"pid", NULL, "integer"}, {"in", NULL, "integer"}};
	struct text *t = &run->out;
	uint32_t i;
	double median;

	envelope_open(t, "ranks", p);
	text_str(t, ",\"processes\":[");
	for (i = 0; i < b->r->n; i++) {
		const struct ranks_process *of = &b->r->process[i];
		const uint32_t steps = steps_of(b->s, of, &median);
		char word[24];

		snprintf(word, sizeof(word), "%lld", (long long)of->rank);
		text_fmt(t,
			"%s{\"rank\":%s,\"pid\":%lld,\"time_ns\":%llu,\"collectives_ns\":%.0f,"
			"\"steps\":%u,\"median_step_ns\":",
			i > 0 ? "," : "", of->rank < 0 ? "null" : word, (long long)of->pid,
			(unsigned long long)of->total_ns, ranks_meeting_ns(b->r, i), steps);
		if (isnan(median))
			text_str(t, "null");
		else
			text_fmt(t, "%.0f", median);
		text_fmt(t, ",\"others_wait_ns\":%.0f}",
			b->is_late && b->late.at == i ? b->late.wait_ns : 0);
	}
	text_char(t, ']');
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < b->r->n_rows; i++) {
		const struct ranks_row *row = &b->r->row[i];
		struct text path = {0};

		run_path(run, &path, b->r->p, row->node, "/");
		envelope_row(t);
		envelope_string(t, path.s != NULL ? path.s : "");
		envelope_integer(t, (int64_t)row->max_ns);
		envelope_integer(t, (int64_t)row->median_ns);
		envelope_integer(t, (int64_t)row->min_ns);
		if (b->r->process[row->slowest].rank < 0)
			envelope_string(t, NULL);
		else
			envelope_integer(t, b->r->process[row->slowest].rank);
		envelope_integer(t, b->r->process[row->slowest].pid);
		envelope_integer(t, row->in);
		text_fini(&path);
	}
	envelope_close(t, &run->warnings);
}

int view_ranks(struct run *run)
{
	struct side_by_side b = {0};
	struct source_options o = {.timeline = read_both, .arg = &b};
	struct profile *p = NULL;
	struct source s;
	int r = run_source(run, run->o.args[0], true, &p);

	if (r == 0)
		r = run_source_by(run, run->o.args[0], &o, &s);
	if (r == 0)
		r = names_read(run->names, b.r->p);
	if (r == 0 && ranks_worked(b.r) < 2)
		r = err_set(&run->e, -ENODATA,
			"fewer than two of its processes have anything to compare; `protonview "
			"tree` shows what there is");
	if (r == 0 && b.r->left_out > 0)
		warning_add(
			&run->warnings, "ranks: %u further processes are left out", b.r->left_out);
	if (r == 0 && run_given(run, OPT_JSON)) {
		json(run, p, &b);
	} else if (r == 0) {
		print_head(&run->out, p, &run->term);
		print_processes(run, &b);
		if (b.is_late)
			put_late(run, &b);
		print_rows(run, &b);
	}
	ranks_free(b.r);
	steps_free(b.s);
	profile_free(p);
	return r;
}
