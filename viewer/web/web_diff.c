/* SPDX-License-Identifier: MIT. web_diff.c: two sessions on one tree, as `protonview diff` joins them. */
#include "diff.h"
#include "web_tree.h"

static void put_side(struct web_tree *w, const struct diff *d, const char *key, double *const *of)
{
	struct text *t = &w->a->to->body;

	json_in(t, key, '{');
	web_tree_columns(w, d->view, of);
	json_close(t, '}');
}

static void put_diff(struct web_tree *w, const struct diff *d, const char *main)
{
	struct text *t = &w->a->to->body;
	double *change[VIEW_COLUMNS_MAX];
	uint32_t i;

	text_char(t, '{');
	web_tree_nodes(w);
	json_in(t, "side", '[');
	for (i = 0; i < w->n; i++)
		json_f64(t, d->side[w->order[i]]);
	json_close(t, ']');
	json_close(t, '}');
	web_tree_words(w);
	json_key_str(t, "main", main);
	json_in(t, "metrics", '[');
	web_tree_metrics(w, d->view);
	json_close(t, ']');
	put_side(w, d, "before", d->before);
	put_side(w, d, "after", d->after);
	for (i = 0; i < d->view->n_columns; i++)
		change[i] = d->view->col[i].v;
	put_side(w, d, "change", change);
	web_warnings(w->a);
	text_char(t, '}');
}

static int answer(struct web_ask *a, const struct profile *const p[2])
{
	struct view *v[2] = {NULL, NULL};
	struct web_tree w = {0};
	struct diff *d = NULL;
	const char *main[2];
	int i, r = 0;

	for (i = 0; i < 2 && r == 0; i++) {
		r = view_new(p[i], &v[i]);
		if (r == 0)
			r = web_costs(v[i], &main[i]);
		if (r == 0)
			r = names_read(a->run->print.names, p[i]);
	}
	if (r == 0)
		r = diff_new(v[0], v[1], &d);
	if (r == 0)
		r = web_tree_new(a, d->view, &w);
	if (r == 0)
		put_diff(&w, d, main[1]);
	web_tree_free(&w);
	diff_free(d);
	view_free(v[0]);
	view_free(v[1]);
	return r < 0 ? err_set(&a->run->e, r, "out of memory") : 0;
}

int web_diff(struct web_ask *a)
{
	const char *const sides[2] = {web_query_get(&a->q, "a"), web_query_get(&a->q, "b")};
	struct profile *p[2] = {NULL, NULL};
	int i, r = 0;

	for (i = 0; i < 2 && r == 0; i++)
		r = sides[i] == NULL ? err_set(&a->run->e, -EINVAL, "diff takes a=ID&b=ID")
				     : web_load(a, sides[i], &p[i]);
	if (r == 0)
		r = answer(a, (const struct profile *const[2]){p[0], p[1]});
	profile_free(p[0]);
	profile_free(p[1]);
	return r;
}
