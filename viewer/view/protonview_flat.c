/* SPDX-License-Identifier: MIT. protonview_flat.c: the verb flat: a row for each name. */
#include <string.h>

#include "metrics_raw.h"
#include "print_json.h"
#include "protonview_verb.h"

static int show_flat(struct run *run, const struct view *v)
{
	const struct profile *p = v->p;
	struct flat *f = NULL;
	const int by = run_given(run, OPT_BY) ? flat_by(run->o.value[OPT_BY]) : FLAT_BY_name;
	int r = run_names(run, p);

	if (by < 0)
		return err_set(
			&run->e, by, "--by '%s': one of " FLAT_BY_WORDS, run->o.value[OPT_BY]);
	if (r == 0)
		r = flat_new(v, (enum flat_by)by, &f);
	if (r == -ENODATA && by == FLAT_BY_call)
		return err_set(&run->e, r,
			"--by call: no calls were recorded; `protonctl run -s api -- CMD` records "
			"all of them, -s sync those that wait, -s queue launches, -s overhead "
			"what the driver does");
	if (r == -ENODATA && by != FLAT_BY_name)
		return err_set(&run->e, r,
			"--by %s: no GPU work was recorded, and scopes have no %s",
			run->o.value[OPT_BY], run->o.value[OPT_BY]);
	if (r < 0 && r != -ENODATA)
		return err_set(&run->e, r, "out of memory");
	if (f != NULL && run_given(run, OPT_SORT) && flat_sort(f, run->o.value[OPT_SORT]) < 0) {
		flat_free(f);
		return err_set(&run->e, -EINVAL, "--sort '%s': of flat one of " FLAT_SORTS,
			run->o.value[OPT_SORT]);
	}
	if (run_given(run, OPT_JSON)) {
		if (f != NULL && f->coarse)
			warning_add(&run->warnings, "%s", flat_accuracy(f));
		envelope_open(&run->out, "flat", p);
		if (f != NULL)
			envelope_flat(&run->out, f, &run->print);
		else
			envelope_columns(&run->out, NULL, 0);
		envelope_close(&run->out, &run->warnings);
	} else {
		print_head(&run->out, p, &run->term);
		if (f != NULL)
			print_flat(&run->out, f, &run->print);
		else
			text_str(&run->out, "(no times were recorded)\n");
		print_why(&run->out, p, &run->term);
	}
	flat_free(f);
	return 0;
}

/* The names of a list that only a tree can tell. */
static int check_metrics(struct run *run, const struct profile *p, const char *list)
{
	const char *at;

	for (at = list; at != NULL; at = strchr(at, ','), at += at != NULL) {
		const size_t n = strcspn(at, ",");
		const bool share = n > 2 && strncmp(at + n - 2, "/%", 2) == 0;

		if (strncmp(at, "self_", 5) == 0 || (share && raw_time_is_cpu(p)))
			return err_set(&run->e, -EINVAL,
				"flat has no %.*s; `protonview flat` without -m shows self and "
				"share, `protonview tree` takes it",
				(int)(n < 64 ? n : 64), at);
	}
	return 0;
}

/* Other metrics of the rows: a tree of one generation. */
static int show_metrics(struct run *run, const struct view *v)
{
	const char *list = run->o.value[OPT_METRICS], *sort = run->o.value[OPT_SORT];
	struct profile *p = NULL;
	struct view *rows = NULL;
	int r = check_metrics(run, v->p, list);

	if (r == 0 && run_given(run, OPT_BY))
		r = err_set(
			&run->e, -EINVAL, "--by does not go with -m: it is of flat's own columns");
	if (r == 0 && sort != NULL && strcmp(sort, "value") != 0 && strcmp(sort, "name") != 0)
		r = err_set(&run->e, -EINVAL, "--sort '%s': of flat -m value or name", sort);
	run->print.sort = sort != NULL && *sort == 'n' ? SORT_NAME : SORT_VALUE;
	if (r == 0)
		r = run_names(run, v->p);
	if (r == 0) {
		r = flat_profile(v, &p);
		if (r < 0)
			err_set(&run->e, r,
				r == -ENODATA ? "no times were recorded" : "out of memory");
	}
	if (r == 0)
		r = run_view(run, p, list, &rows);
	if (r == 0)
		r = run_rows(run, rows);
	if (r == 0)
		r = run_show_tree(run, rows, v->p);
	view_free(rows);
	profile_free(p);
	return r;
}

int view_flat(struct run *run)
{
	const bool other = run_given(run, OPT_METRICS);
	struct profile *p = NULL;
	struct view *v = NULL;
	int r = run_source(run, run->o.args[0], other, &p);

	if (r == 0)
		r = run_view(run, p, other ? NULL : flat_metrics(p), &v);
	if (r == 0)
		r = run_filter(run, v);
	if (r == 0)
		r = other ? show_metrics(run, v) : show_flat(run, v);
	view_free(v);
	profile_free(p);
	return r;
}
