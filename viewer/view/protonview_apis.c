/* SPDX-License-Identifier: MIT. protonview_apis.c: the verb apis: calls of the vendor's library: how often, how
 * long, how many failed; by call, by scope, by thread. */
#include <errno.h>
#include <math.h>

#include "apis.h"
#include "grid.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "session_terms.h"

#define ROWS 20u /* shown, without --rows */
#define NONE_BY_THREAD                                                                       \
	"--by thread: it has no timeline with calls; `protonctl run -d both -s api -- CMD` " \
	"records one"

static int read_threads(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	const int r = apis_of_timeline(db, id, s, ret_left, (struct apis **)arg, e);

	return r == -ENODATA ? err_set(e, r, NONE_BY_THREAD) : r;
}

/* NAN: that is not known. */
static double share_of(const struct profile *p, const struct apis_row *r)
{
	return p->head.duration_ns > 0 ? (double)r->total_ns / (double)p->head.duration_ns
				       : (double)NAN;
}

static void json(struct run *run, const struct profile *p, const struct apis *a, enum apis_by by)
{
	static const struct envelope_column columns[] = {{"call", NULL, "string"},
		{"in", NULL, "string"}, {"calls", NULL, "integer"}, {"errors", NULL, "integer"},
		{"total", "ns", "integer"}, {"mean", "ns", "number"}, {"p50", "ns", "number"},
		{"p99", "ns", "number"}, {"max", "ns", "number"}, {"share", NULL, "number"}};
	const uint32_t most =
		run_given(run, OPT_ROWS) && run->print.rows > 0 ? run->print.rows : a->n;
	struct text *t = &run->out;
	uint32_t i;

	envelope_open(t, "apis", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < a->n && i < most; i++) {
		const struct apis_row *r = &a->row[i];

		envelope_row(t);
		envelope_string(t, r->call);
		envelope_string(t, by == APIS_BY_call ? NULL : r->in);
		envelope_integer(t, (int64_t)r->calls);
		envelope_integer(t, (int64_t)r->errors);
		envelope_integer(t, (int64_t)r->total_ns);
		envelope_number(t, (double)r->total_ns / (double)r->calls);
		envelope_number(t, r->p50_ns);
		envelope_number(t, r->p99_ns);
		envelope_number(t, r->max_ns);
		envelope_number(t, share_of(p, r));
	}
	envelope_close(t, &run->warnings);
}

static void put_us(struct grid *g, double ns)
{
	if (isnan(ns))
		grid_cell_fmt(g, "-");
	else
		grid_cell_fmt(g, "%.1f", ns / 1e3);
}

/* failed: some call did. */
static void put_row(struct grid *g, struct run *run, const struct profile *p,
	const struct apis_row *r, bool failed)
{
	const double share = share_of(p, r);

	grid_cell_fmt(g, "%llu", (unsigned long long)r->calls);
	if (failed)
		grid_cell_fmt(g, "%llu", (unsigned long long)r->errors);
	grid_cell_fmt(g, "%.3f", (double)r->total_ns / 1e6);
	if (isnan(share))
		grid_cell_fmt(g, "-");
	else
		grid_cell_fmt(g, "%.1f%%", share * 100);
	put_us(g, (double)r->total_ns / (double)r->calls);
	put_us(g, r->p50_ns);
	put_us(g, r->p99_ns);
	put_us(g, r->max_ns);
	grid_cell(g, &run->term, r->call);
}

static bool some_failed(const struct apis *a)
{
	uint32_t i;

	for (i = 0; i < a->n && a->row[i].errors == 0; i++)
		;
	return i < a->n;
}

static void print(struct run *run, const struct profile *p, const struct apis *a, enum apis_by by)
{
	const bool failed = some_failed(a);
	const struct grid_column columns[] = {{"calls", true, 0, 0}, {"failed", true, 0, 0},
		{"total/ms", true, 0, 0}, {"share", true, 0, 2}, {"mean/us", true, 0, 0},
		{"p50/us", true, 0, 4}, {"p99/us", true, 0, 0}, {"max/us", true, 0, 3},
		{"call", false, 21, 0}, {by == APIS_BY_thread ? "thread" : "in", false, 12, 0}};
	struct grid_column shown[sizeof(columns) / sizeof(*columns)];
	uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS, n = 0, i;
	struct grid g;

	for (i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		if ((i != 1 || failed) && (i != 9 || by != APIS_BY_call))
			shown[n++] = columns[i];
	most = most == 0 ? a->n : most;
	print_head(&run->out, p, &run->term);
	grid_init(&g, shown, n);
	for (i = 0; i < a->n && i < most; i++) {
		put_row(&g, run, p, &a->row[i], failed);
		if (by != APIS_BY_call)
			grid_cell(&g, &run->term, a->row[i].in[0] != '\0' ? a->row[i].in : "-");
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (a->n > most)
		text_fmt(&run->out, "%u more; -n N shows N\n", a->n - most);
	text_str(&run->out,
		"share: of the time recorded; threads side by side may take more than all of it\n");
}

static int by_thread(struct run *run, struct apis **ret)
{
	struct source_options o = {.timeline = read_threads, .arg = ret};
	struct source s;
	int r = run_source_by(run, run->o.args[0], &o, &s);

	if (r == 0 && (*ret)->left_out > 0)
		warning_add(&run->warnings,
			"apis: %llu calls of threads and names beyond %u rows are not shown",
			(unsigned long long)(*ret)->left_out, APIS_ROWS_MAX);
	return r;
}

int view_apis(struct run *run)
{
	const char *word = run->o.value[OPT_BY];
	const int by = run_given(run, OPT_BY) ? apis_by(word) : APIS_BY_call;
	struct profile *p = NULL;
	struct apis *a = NULL;
	int r;

	if (by < 0)
		return err_set(&run->e, by, "--by '%s': of apis one of " APIS_BY_WORDS, word);
	r = run_source(run, run->o.args[0], false, &p);
	if (r == 0 && by == APIS_BY_thread)
		r = by_thread(run, &a);
	else if (r == 0 && apis_of_tree(p, (enum apis_by)by, &a) < 0)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	if (r == 0 && a->n == 0)
		r = err_set(&run->e, -ENOENT,
			by == APIS_BY_thread ? NONE_BY_THREAD
			: (p->head.row.switches & SWITCH_API) != 0
				? "no calls were recorded: the switch api was on, and CUDA was not "
				  "called"
				: "no calls were recorded; `protonctl run -s api -- CMD` and "
				  "`protonctl set SESSION +api` record them");
	if (r == 0 && run_given(run, OPT_JSON))
		json(run, p, a, (enum apis_by)by);
	else if (r == 0)
		print(run, p, a, (enum apis_by)by);
	apis_free(a);
	profile_free(p);
	return r;
}
