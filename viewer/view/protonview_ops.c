/* SPDX-License-Identifier: MIT. protonview_ops.c: the verb ops: operators of PyTorch. */
#include <math.h>

#include "grid.h"
#include "operators.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "session_terms.h"

#define ROWS 20u /* shown, without --rows */

static void json(struct run *run, const struct profile *p, const struct operators *o)
{
	static const struct envelope_column columns[] = {{"name", NULL, "string"},
		{"dims", NULL, "string"}, {"stack", NULL, "string"}, {"calls", NULL, "integer"},
		{"gpu_self", "ns", "integer"}, {"gpu", "ns", "integer"},
		{"cpu_self", "ns", "integer"}, {"cpu", "ns", "integer"},
		{"kernels", NULL, "integer"}, {"flops", NULL, "integer"},
		{"bytes", NULL, "integer"}, {"tflop/s", NULL, "number"}, {"gb/s", NULL, "number"},
		{"paths", NULL, "integer"}};
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : 0;
	struct text *t = &run->out;
	const struct operator_row *r;

	envelope_open(t, "ops", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (r = o->row; r < o->row + o->n && (most == 0 || r < o->row + most); r++) {
		envelope_row(t);
		envelope_string(t, r->name);
		envelope_string(t, r->dims);
		envelope_string(t, r->stack);
		envelope_integer(t, (int64_t)r->calls);
		envelope_integer(t, (int64_t)r->gpu_self_ns);
		envelope_integer(t, (int64_t)r->gpu_ns);
		envelope_integer(t, (int64_t)r->cpu_self_ns);
		envelope_integer(t, (int64_t)r->cpu_ns);
		envelope_integer(t, (int64_t)r->kernels);
		envelope_integer(t, (int64_t)r->flops);
		envelope_integer(t, (int64_t)r->bytes);
		envelope_number(t, operator_rate(o, r, r->flops) / 1e12);
		envelope_number(t, operator_rate(o, r, r->bytes) / 1e9);
		envelope_integer(t, r->paths);
	}
	envelope_close(t, &run->warnings);
}

/* "2x3x8 5x3" of [[2, 3, 8], [5, 3], []]: what has no dimensions tells nothing. A list of tensors in
 * parentheses. */
static void put_dims(struct text *t, const char *dims)
{
	const char *s;
	unsigned depth = 0;

	for (s = dims; *s != '\0'; s++) {
		if (*s == '[') {
			depth++;
			if (depth == 2 && s[1] != ']')
				text_str(t, t->n > 0 ? " " : "");
			if (depth == 2 && s[1] == '[')
				text_char(t, '(');
		} else if (*s == ']') {
			depth--;
			if (depth == 1 && s[-1] == ']')
				text_char(t, ')');
		} else if (*s == ',') {
			text_str(t, s[-1] != ']' ? "x" : depth == 2 ? ", " : "");
		} else if (*s != ' ') {
			text_char(t, *s);
		}
	}
}

static void dims_cell(struct grid *g, const struct term *term, const char *dims)
{
	struct text t = {0};

	if (dims != NULL)
		put_dims(&t, dims);
	text_char(&t, '\0');
	grid_cell(g, term, t.failed || t.n == 1 ? "-" : t.s);
	text_fini(&t);
}

static void rate_cell(struct grid *g, double v)
{
	if (isnan(v))
		grid_cell_fmt(g, "-");
	else
		grid_cell_fmt(g, v < 100 ? "%.3g" : "%.0f", v);
}

static void cells(struct grid *g, const struct operators *o, const struct operator_row *r,
	const struct term *term, enum operators_by by)
{
	const double all = o->has_gpu ? o->gpu_ns : o->cpu_ns,
		     self = o->has_gpu ? r->gpu_self_ns : r->cpu_self_ns;

	if (all > 0)
		grid_cell_fmt(g, "%.1f%%", self * 100 / all);
	else
		grid_cell_fmt(g, "-");
	if (o->has_gpu) {
		grid_cell_fmt(g, "%.3f", r->gpu_self_ns / 1e6);
		grid_cell_fmt(g, "%.3f", r->gpu_ns / 1e6);
	}
	grid_cell_fmt(g, "%.3f", r->cpu_self_ns / 1e6);
	grid_cell_fmt(g, "%.3f", r->cpu_ns / 1e6);
	grid_cell_fmt(g, "%.0f", r->calls);
	rate_cell(g, operator_rate(o, r, r->flops) / 1e12);
	rate_cell(g, operator_rate(o, r, r->bytes) / 1e9);
	grid_cell(g, term, r->name);
	if (o->has_dims)
		dims_cell(g, term, r->dims);
	if (by == OPERATORS_BY_stack)
		grid_cell(g, term, r->stack != NULL && *r->stack != '\0' ? r->stack : "-");
}

static uint32_t choose_columns(
	const struct operators *o, enum operators_by by, struct grid_column ret[12])
{
	uint32_t n = 0;

	ret[n++] = (struct grid_column){"share", true, 0, 0};
	if (o->has_gpu) {
		ret[n++] = (struct grid_column){"self/ms", true, 0, 0};
		ret[n++] = (struct grid_column){"GPU/ms", true, 0, 4};
		ret[n++] = (struct grid_column){"CPU self/ms", true, 0, 6};
	} else {
		ret[n++] = (struct grid_column){"self/ms", true, 0, 0};
	}
	ret[n++] = (struct grid_column){"CPU/ms", true, 0, 5};
	ret[n++] = (struct grid_column){"calls", true, 0, 0};
	ret[n++] = (struct grid_column){"TFLOP/s", true, 0, 2};
	ret[n++] = (struct grid_column){"GB/s", true, 0, 3};
	ret[n++] = (struct grid_column){"operator", false, 16, 0};
	if (o->has_dims)
		ret[n++] = (struct grid_column){"dimensions", false, 16, 0};
	if (by == OPERATORS_BY_stack)
		ret[n++] = (struct grid_column){"in", false, 12, 1};
	return n;
}

static void print(
	struct run *run, const struct profile *p, const struct operators *o, enum operators_by by)
{
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	struct grid_column columns[12];
	struct grid g;
	uint32_t i;

	print_head(&run->out, p, &run->term);
	grid_init(&g, columns, choose_columns(o, by, columns));
	for (i = 0; i < o->n && (most == 0 || i < most); i++)
		cells(&g, o, &o->row[i], &run->term, by);
	print_grid(&run->out, &run->term, &g);
	if (most > 0 && o->n > most)
		text_fmt(&run->out, "(%u more row%s; -n 0 shows all)\n", (unsigned)(o->n - most),
			o->n - most == 1 ? "" : "s");
	print_words(&run->out, &run->term, "share, self: ",
		o->has_gpu ? "time of the GPU, without the operators inside"
			   : "time of the CPU, without the operators inside");
	grid_fini(&g);
	print_why(&run->out, p, &run->term);
}

static int show(struct run *run, const struct view *v)
{
	const int by =
		run_given(run, OPT_BY) ? operators_by(run->o.value[OPT_BY]) : OPERATORS_BY_shape;
	struct operators *o = NULL;
	int r;

	if (by < 0)
		return err_set(&run->e, by, "--by '%s': of ops one of " OPERATORS_BY_WORDS,
			run->o.value[OPT_BY]);
	r = operators_new(v, (enum operators_by)by, &o);
	if (r == -ENODATA)
		return err_set(&run->e, -ENOENT, "%s",
			(v->p->head.row.switches & SWITCH_OPS) != 0
				? "no operator of PyTorch is in it: the switch ops was on, and "
				  "none ran, or `protonview tree` notes what was in the way"
				: "no operator of PyTorch is in it; `protonctl run -s ops -- CMD`, "
				  "or `protonctl set SESSION +ops` while it runs, records them");
	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	if (run_given(run, OPT_JSON))
		json(run, v->p, o);
	else
		print(run, v->p, o, (enum operators_by)by);
	operators_free(o);
	return 0;
}

int view_ops(struct run *run)
{
	struct profile *p = NULL;
	struct view *v = NULL;
	int r = run_source(run, run->o.args[0], true, &p);

	if (r == 0)
		r = run_view(run, p, NULL, &v);
	if (r == 0)
		r = run_filter(run, v);
	if (r == 0)
		r = show(run, v);
	view_free(v);
	profile_free(p);
	return r;
}
