/* SPDX-License-Identifier: MIT. protonview_series.c: the verb series: numbers over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "output.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "series.h"
#include "spark.h"
#include "tree_rows.h"

#define BARS_MAX 64u

/* --- which */

static bool is_asked_for(const struct run *run, const struct series_one *one)
{
	return run->o.n_args < 2 || strcasestr(one->name, run->o.args[1]) != NULL;
}

static void who(const struct series_one *one, char ret[32])
{
	if (one->rank >= 0)
		snprintf(ret, 32, "rank %lld", (long long)one->rank);
	else if (one->pid != 0)
		snprintf(ret, 32, "pid %lld", (long long)one->pid);
	else
		*ret = '\0';
}

/* "allocated (bytes)": the unit is what stands in the brackets. */
struct words {
	char name[256], unit[64];
};

static void words_of(const struct series_one *one, struct words *ret)
{
	metric_bare(one->name, ret->name, sizeof(ret->name));
	metric_unit(one->name, ret->unit, sizeof(ret->unit));
}

struct sums {
	double least, mean, most, last;
};

static void sums_of(const struct series_one *one, struct sums *ret)
{
	uint32_t i;

	*ret = (struct sums){.least = HUGE_VAL, .most = -HUGE_VAL};
	for (i = 0; i < one->n; i++) {
		const double v = one->point[i].v;

		ret->least = v < ret->least ? v : ret->least;
		ret->most = v > ret->most ? v : ret->most;
		ret->mean += v / one->n;
		ret->last = v;
	}
}

/* The mean of each stretch of time; where nothing was told, what was told last. */
static void stretches(const struct series_one *one, double *v, uint32_t n)
{
	const uint64_t begin = one->n > 0 ? one->point[0].ns : 0;
	const uint64_t whole = one->n > 0 ? one->point[one->n - 1].ns - begin + 1 : 1;
	uint32_t count[BARS_MAX] = {0}, i, at;

	for (i = 0; i < n; i++)
		v[i] = 0;
	for (i = 0; i < one->n; i++) {
		at = (uint32_t)((double)(one->point[i].ns - begin) / (double)whole * n);
		at = at < n ? at : n - 1;
		v[at] += one->point[i].v;
		count[at]++;
	}
	for (i = 0; i < n; i++)
		v[i] = count[i] > 0 ? v[i] / count[i] : i > 0 ? v[i - 1] : 0;
}

/* --- a row for each */

static void bars_cell(struct grid *g, const struct term *term, const struct series_one *one)
{
	const uint32_t n = term->width == 0 || term->width > 120 ? 32 : 16;
	struct text t = {0};
	double v[BARS_MAX];
	struct sums s;

	sums_of(one, &s);
	stretches(one, v, n);
	spark(&t, v, n, s.least, spark_top(v, n, s.least, s.most), term->utf8);
	grid_cell_fmt(g, "%.*s", (int)t.n, t.n > 0 ? t.s : "");
	text_fini(&t);
}

static void list_row(struct run *run, struct grid *g, const struct series_one *one)
{
	struct words w;
	struct sums s;
	char of[32];

	words_of(one, &w);
	sums_of(one, &s);
	who(one, of);
	grid_cell(g, &run->term, w.name);
	grid_cell(g, &run->term, w.unit);
	grid_cell_fmt(g, "%s", of);
	grid_cell_fmt(g, "%llu", (unsigned long long)one->told);
	grid_cell_fmt(g, "%.6g", s.least);
	grid_cell_fmt(g, "%.6g", s.mean);
	grid_cell_fmt(g, "%.6g", s.most);
	grid_cell_fmt(g, "%.6g", s.last);
	bars_cell(g, &run->term, one);
}

static void print_list(struct run *run, const struct series *s)
{
	static const struct grid_column columns[] = {{"SERIES", false, 12, 0},
		{"UNIT", false, 0, 4}, {"OF", false, 0, 5}, {"N", true, 0, 3},
		{"LEAST", true, 0, 0}, {"MEAN", true, 0, 0}, {"MOST", true, 0, 0},
		{"LAST", true, 0, 2}, {"OVER TIME", false, 0, 1}};
	/* with NAME, -n is of its points */
	const uint32_t most = run->o.n_args < 2 && run_given(run, OPT_ROWS) ? run->print.rows : 0;
	const size_t from = run->out.n;
	struct grid g;
	uint32_t i, rows = 0;

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < s->n; i++)
		if (is_asked_for(run, &s->one[i]) && (rows++ < most || most == 0))
			list_row(run, &g, &s->one[i]);
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (run->term.utf8 && !run->out.failed &&
		memmem(run->out.s + from, run->out.n - from, "↑", strlen("↑")) != NULL)
		text_str(&run->out, "↑: far above the rest\n");
	if (most != 0 && rows > most)
		text_fmt(&run->out, "%u more; -n N shows N, -n 0 all\n", rows - most);
}

/* --- point by point */

static void print_points(struct run *run, const struct series *s)
{
	static const struct grid_column columns[] = {{"TIME s", true, 0, 0}, {"VALUE", true, 0, 0},
		{"SERIES", false, 12, 1}, {"OF", false, 0, 2}};
	uint32_t i, k, rows = 0, left = 0;
	struct grid g;
	char of[32];

	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < s->n; i++) {
		const struct series_one *one = &s->one[i];

		who(one, of);
		for (k = 0; k < one->n && is_asked_for(run, one); k++) {
			if (run->print.rows != 0 && rows >= run->print.rows) {
				left += one->n - k;
				break;
			}
			grid_cell_fmt(&g, "%.6f", (double)one->point[k].ns * 1e-9);
			grid_cell_fmt(&g, "%.9g", one->point[k].v);
			grid_cell(&g, &run->term, one->name);
			grid_cell_fmt(&g, "%s", of);
			rows++;
		}
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (left > 0) {
		term_count(&run->out, left, "more point", "more points");
		text_str(&run->out, ": -n 0 shows all, -o FILE.csv writes them\n");
	}
}

static void json(struct run *run, const struct series *s)
{
	static const struct envelope_column columns[] = {{"series", NULL, "string"},
		{"unit", NULL, "string"}, {"pid", NULL, "integer"}, {"rank", NULL, "integer"},
		{"time", "ns", "integer"}, {"value", NULL, "number"}};
	struct text *t = &run->out;
	struct words w;
	uint32_t i, k;

	envelope_open(t, "series", NULL);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < s->n; i++) {
		const struct series_one *one = &s->one[i];

		words_of(one, &w);
		for (k = 0; k < one->n && is_asked_for(run, one); k++) {
			envelope_row(t);
			envelope_string(t, w.name);
			envelope_string(t, w.unit);
			if (one->pid != 0)
				envelope_integer(t, one->pid);
			else
				envelope_string(t, NULL);
			if (one->rank >= 0)
				envelope_integer(t, one->rank);
			else
				envelope_string(t, NULL);
			envelope_integer(t, (int64_t)one->point[k].ns);
			envelope_number(t, one->point[k].v);
		}
	}
	envelope_close(t, &run->warnings);
}

static void csv_point(struct rows *r, const struct series_one *one, const struct words *w,
	const struct series_point *p)
{
	const struct rows_form *f = r->form;

	f->begin(r);
	f->text(r, w->name);
	f->text(r, w->unit);
	f->number(
		r, &(struct value){.type = one->pid != 0 ? VALUE_I64 : VALUE_NONE, .i = one->pid});
	f->number(r,
		&(struct value){.type = one->rank >= 0 ? VALUE_I64 : VALUE_NONE, .i = one->rank});
	f->number(r, &(struct value){.type = VALUE_U64, .u = p->ns});
	f->number(r, &(struct value){.type = VALUE_F64, .f = p->v});
}

static int csv(struct run *run, const struct series *s, const char *path)
{
	static const char *const columns[] = {"series", "unit", "pid", "rank", "time_ns", "value"};
	struct rows rows = {.form = &rows_csv};
	struct output o;
	struct words w;
	uint32_t i, k;
	int r = output_open(path, &o, &run->e);

	if (r < 0)
		return r;
	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		rows.form->column(&rows, columns[i], "", "");
	for (i = 0; i < s->n; i++) {
		words_of(&s->one[i], &w);
		for (k = 0; k < s->one[i].n && is_asked_for(run, &s->one[i]); k++)
			csv_point(&rows, &s->one[i], &w, &s->one[i].point[k]);
	}
	rows.form->rows_end(&rows);
	r = rows.out.failed ? -ENOMEM
	    : fwrite(rows.out.s, 1, rows.out.n, o.file) == rows.out.n
		    ? 0
		    : err_set(&run->e, neg_errno(), "%s cannot be written: %s", path,
			      strerror(errno));
	text_fini(&rows.out);
	return output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
}

/* --- the verb */

static int read_series(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	return series_read(db, id, s, ret_left, arg, e);
}

static void note_thinned(struct run *run, const struct series *s)
{
	uint64_t told = 0, kept = 0;
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++) {
		const struct series_one *one = &s->one[i];

		if (one->told <= one->n || !is_asked_for(run, one))
			continue;
		n++;
		told += one->told;
		kept += one->n;
	}
	if (n > 0)
		warning_add(&run->warnings,
			"%u series are thinned: %llu points of %llu numbers told; of a stretch its "
			"least and greatest, of many stored steps their mean",
			n, (unsigned long long)kept, (unsigned long long)told);
}

static int found_none(struct run *run, const struct series *s)
{
	uint32_t i;

	for (i = 0; i < s->n && !is_asked_for(run, &s->one[i]); i++)
		;
	if (i < s->n)
		return 0;
	if (run->o.n_args < 2)
		return err_set(&run->e, -ENOENT,
			"no numbers over time: no scope of the timeline had metrics, and no GPU "
			"was "
			"read (`protonctl doctor` says what reads GPUs)");
	return err_set(&run->e, -ENOENT,
		"no series has '%.60s' in its name; `protonview series %.60s` lists them",
		run->o.args[1], run->o.args[0]);
}

int view_series(struct run *run)
{
	const char *file = run->o.value[OPT_OUTPUT];
	struct series *s = NULL;
	struct source_options o = {.timeline = read_series, .arg = &s};
	struct source from;
	uint64_t lost;
	uint32_t i;
	int r = run_source_by(run, run->o.args[0], &o, &from);

	if (r < 0)
		return r;
	for (i = 0, lost = s->left_out; i < s->n; i++)
		lost += s->one[i].left_out;
	if (lost > 0)
		warning_add(&run->warnings,
			"%llu numbers are left out: more than %u of one metric, or of more than %u "
			"metrics",
			(unsigned long long)lost, SERIES_READ, SERIES_MAX);
	note_thinned(run, s);
	r = found_none(run, s);
	if (r == 0 && file != NULL)
		r = csv(run, s, file);
	else if (r == 0 && run_given(run, OPT_JSON))
		json(run, s);
	else if (r == 0) {
		print_list(run, s);
		if (run->o.n_args > 1)
			print_points(run, s);
	}
	series_free(s);
	return r;
}
