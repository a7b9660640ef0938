/* SPDX-License-Identifier: MIT. protonview_pair.c: two sources and their difference. */
#include "protonview_pair.h"

#include <string.h>

void pair_free(struct pair *pair)
{
	int i;

	diff_free(pair->d);
	for (i = 0; i < 2; i++) {
		view_free(pair->v[i]);
		profile_free(pair->p[i]);
	}
}

/* The default metrics that both have: "a,b" of "a,b" and "a,b,c". */
static const char *default_of_both(const struct pair *pair)
{
	const char *before = view_default(pair->p[0]), *after = view_default(pair->p[1]);
	size_t n = before == NULL ? 0 : strlen(before);

	return n > 0 && after != NULL && strncmp(after, before, n) == 0 && after[n] == ',' ? before
											   : after;
}

/* "lat" may be "lat (ms)" on one side and "lat (us)" on the other. */
static int same_units(struct run *run, const struct pair *pair)
{
	const struct column *a = pair->v[0]->col, *b = pair->v[1]->col;
	uint32_t i;

	for (i = 0; i < pair->v[0]->n_columns; i++) {
		if (a[i].is_cpu != b[i].is_cpu)
			return err_set(&run->e, -EINVAL,
				"'%.40s' is of scopes on one side, which has no GPU work, and of "
				"kernels on the other; ask both for -m cpu_time/ms",
				a[i].name);
		if (strcmp(a[i].unit, b[i].unit) != 0)
			return err_set(&run->e, -EINVAL,
				"'%.40s' before and '%.40s' after have different units, so there "
				"is no difference to show",
				a[i].name, b[i].name);
	}
	return 0;
}

int pair_open(struct run *run, const char *before, const char *after, struct pair *ret)
{
	const char *refs[2] = {before, after}, *metrics = run->o.value[OPT_METRICS];
	struct err e;
	int i, r = 0;

	for (i = 0; i < 2 && r == 0; i++)
		r = run_source(run, refs[i], true, &ret->p[i]);
	if (r == 0 && metrics == NULL)
		metrics = default_of_both(ret);
	if (r == 0 && metrics == NULL)
		return err_set(&run->e, -ENOENT, "%s has no metric", after);
	for (i = 0; i < 2 && r == 0; i++) {
		r = run_view(run, ret->p[i], metrics, &ret->v[i]);
		if (r == -ENOENT) {
			e = run->e;
			err_set(&run->e, r, "%.80s: %s", refs[i], e.text);
		}
	}
	if (r == 0)
		r = same_units(run, ret);
	if (r < 0)
		return r;
	r = diff_new(ret->v[0], ret->v[1], &ret->d);
	return r < 0 ? err_set(&run->e, r, "out of memory") : 0;
}
