/* SPDX-License-Identifier: MIT. protonview_sync.c: the verb sync: calls that wait for the GPU, by where they are
 * made, and what the GPU did not do behind them. */
#include <stdlib.h>

#include "grid.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "session_terms.h"
#include "waits.h"

#define ROWS 20u /* shown, without --rows */
#define NONE                                                                              \
	"it has no timeline with calls that wait for the GPU; `protonctl run -d both -s " \
	"sync -- CMD` records one"

static int read_waits(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	const int r = waits_read(db, id, s, NULL, ret_left, (struct waits **)arg, e);

	return r == -ENODATA ? err_set(e, r, NONE) : r;
}

/* What looks like a bubble may have been work that was lost, and what looks harmless may have had one behind it. */
#define NO_BUBBLES "bubbles are not known: much of what the GPU did meanwhile has no record"

/* The dearest first: by bubble, then by what it blocked. */
static int by_cost(const void *a, const void *b)
{
	const struct wait_site *x = *(const struct wait_site *const *)a;
	const struct wait_site *y = *(const struct wait_site *const *)b;

	if (x->bubble_ns != y->bubble_ns)
		return x->bubble_ns < y->bubble_ns ? 1 : -1;
	if (x->blocked_ns != y->blocked_ns)
		return x->blocked_ns < y->blocked_ns ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Those with calls, which the caller frees. NULL: no memory. */
static const struct wait_site **sites(const struct waits *w, uint32_t *ret_n)
{
	const struct wait_site **ret = malloc((w->n + 1) * sizeof(*ret));
	uint32_t i, n = 0;

	for (i = 0; ret != NULL && i < w->n; i++)
		if (w->site[i].calls > 0)
			ret[n++] = &w->site[i];
	if (ret != NULL)
		qsort(ret, n, sizeof(*ret), by_cost);
	*ret_n = n;
	return ret;
}

static void put_scopes(struct text *t, const struct waits *w, uint32_t site)
{
	if (site == PROFILE_NONE)
		return;
	put_scopes(t, w, w->site[site].parent);
	if (t->n > 0)
		text_char(t, '/');
	text_str(t, w->site[site].name);
}

/* The scopes around it, the outermost first; "" at the top. The caller frees; NULL: no memory. */
static char *scopes_of(const struct waits *w, const struct wait_site *site)
{
	struct text t = {0};
	char *ret;
	size_t n;

	put_scopes(&t, w, site->parent);
	return text_take(&t, &ret, &n) == 0 ? ret : NULL;
}

static void json(struct run *run, const struct profile *p, const struct waits *w,
	const struct wait_site *const *site, uint32_t n)
{
	static const struct envelope_column columns[] = {{"scope", NULL, "string"},
		{"call", NULL, "string"}, {"calls", NULL, "integer"}, {"blocked", "ns", "integer"},
		{"bubble", "ns", "integer"}};
	struct text *t = &run->out;
	uint32_t i;

	envelope_open(t, "sync", p);
	envelope_columns(t, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < n; i++) {
		char *scope = scopes_of(w, site[i]);

		envelope_row(t);
		envelope_string(t, scope != NULL ? scope : "");
		envelope_string(t, site[i]->name);
		envelope_integer(t, (int64_t)site[i]->calls);
		envelope_integer(t, (int64_t)site[i]->blocked_ns);
		if (p->head.lost_work)
			envelope_string(t, NULL);
		else
			envelope_integer(t, (int64_t)site[i]->bubble_ns);
		free(scope);
	}
	envelope_close(t, &run->warnings);
}

static void print(struct run *run, const struct profile *p, const struct waits *w,
	const struct wait_site *const *site, uint32_t n)
{
	static const struct grid_column columns[] = {{"calls", true, 0, 0},
		{"blocked/ms", true, 0, 0}, {"bubble/ms", true, 0, 0}, {"call", false, 12, 0},
		{"in", false, 12, 0}};
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	struct grid g;
	uint32_t i;

	print_head(&run->out, p, &run->term);
	grid_init(&g, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < n && i < most; i++) {
		char *scope = scopes_of(w, site[i]);

		grid_cell_fmt(&g, "%llu", (unsigned long long)site[i]->calls);
		grid_cell_fmt(&g, "%.3f", (double)site[i]->blocked_ns / 1e6);
		if (p->head.lost_work)
			grid_cell_fmt(&g, "-");
		else if (site[i]->bubble_ns > 0)
			grid_cell_fmt(&g, "%.3f", (double)site[i]->bubble_ns / 1e6);
		else
			grid_cell_fmt(&g, "harmless");
		grid_cell(&g, &run->term, site[i]->name);
		grid_cell(&g, &run->term, scope != NULL && *scope != '\0' ? scope : "-");
		free(scope);
	}
	print_grid(&run->out, &run->term, &g);
	grid_fini(&g);
	if (n > most)
		text_fmt(&run->out, "%u more; -n N shows N\n", n - most);
	if (p->head.lost_work)
		print_words(&run->out, &run->term, "", NO_BUBBLES);
	else
		text_str(&run->out, "bubble: nothing of its process was on the GPU from then on\n");
}

int view_sync(struct run *run)
{
	struct waits *w = NULL;
	struct source_options o = {.timeline = read_waits, .arg = &w};
	const struct wait_site **site = NULL;
	struct profile *p = NULL;
	struct source s;
	uint32_t n = 0;
	int r = run_source(run, run->o.args[0], true, &p);

	if (r == 0)
		r = run_source_by(run, run->o.args[0], &o, &s);
	if (r == 0)
		site = sites(w, &n);
	if (r == 0 && site == NULL)
		r = err_set(&run->e, -ENOMEM, "out of memory");
	if (r == 0 && n == 0)
		r = err_set(&run->e, -ENOENT, "%s",
			run_part(run) ? "no call that waits for the GPU begins there"
			: (p->head.row.switches & SWITCH_SYNC) != 0
				? "nothing waited for the GPU in a call"
				: NONE);
	if (r == 0 && w->left_out > 0)
		warning_add(&run->warnings,
			"sync: %llu calls or operations of processes with over %u are not counted",
			(unsigned long long)w->left_out, WAITS_MAX);
	if (r == 0 && p->head.lost_work && run_given(run, OPT_JSON))
		warning_add(&run->warnings, "sync: %s", NO_BUBBLES);
	if (r == 0 && run_given(run, OPT_JSON))
		json(run, p, w, site, n);
	else if (r == 0)
		print(run, p, w, site, n);
	free(site);
	waits_free(w);
	profile_free(p);
	return r;
}
