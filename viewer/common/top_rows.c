/* SPDX-License-Identifier: MIT. top_rows.c: the rows of a full-screen `top`. */
#include "top_rows.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"

const char *const top_sort_words[TOP_SORTS] = {"gpu", "cpu", "calls", "p99", "name"};

#define NONE UINT32_MAX

/* Of the tree: a name below a name. */
struct node {
	struct top_row row;
	const struct look_cell *cell; /* whose durations are shown; NULL: it has none of its own */
	uint32_t parent, first, next; /* NONE */
	bool shown, matches;
};

struct build {
	const struct look *before, *now;
	const struct top_view *view;
	struct node *node;
	uint32_t n, cap, *index, n_index; /* index: by key and parent, node + 1 */
	struct hist_counts hist;
};

/* --- numbers */

static void add_durations(struct build *b, const struct look_cell *c, struct top_row *row)
{
	row->p50_ns = row->p99_ns = (double)NAN;
	if (c == NULL || !look_durations(b->before, c, &b->hist))
		return;
	row->p50_ns = hist_quantile(&b->hist, 0.5);
	row->p99_ns = hist_quantile(&b->hist, 0.99);
}

static void add_change(struct top_row *row, const struct look_cell *c, struct look_change change)
{
	if (!gpu_class_is_work(gpu_class_known(c->class)))
		row->cpu_ns += (double)change.ns;
	else
		row->gpu_ns += (double)change.ns;
	row->calls += change.count;
	row->class = c->class;
}

/* --- order */

static int by_number(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (int)isnan(a) - (int)isnan(b);
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_name(const struct top_row *x, const struct top_row *y)
{
	const uint32_t n = x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes;
	const int d = memcmp(x->name, y->name, n);

	return d != 0 ? d : (int)x->name_bytes - (int)y->name_bytes;
}

static int compare(const struct top_row *x, const struct top_row *y, enum top_sort sort)
{
	int d = 0;

	if (sort == TOP_BY_GPU)
		d = by_number(x->gpu_ns, y->gpu_ns);
	else if (sort == TOP_BY_CPU)
		d = by_number(x->cpu_ns, y->cpu_ns);
	else if (sort == TOP_BY_CALLS)
		d = by_number((double)x->calls, (double)y->calls);
	else if (sort == TOP_BY_P99)
		d = by_number(x->p99_ns, y->p99_ns);
	if (d == 0 && sort != TOP_BY_NAME)
		d = by_number(x->gpu_ns, y->gpu_ns);
	if (d == 0 && sort != TOP_BY_NAME)
		d = by_number(x->cpu_ns, y->cpu_ns);
	return d != 0 ? d : by_name(x, y);
}

static int rows_by(const void *a, const void *b, void *sort)
{
	return compare(a, b, *(const enum top_sort *)sort);
}

/* --- the list */

static uint64_t mix(uint64_t h, const char *s, uint32_t bytes)
{
	while (bytes-- > 0)
		h = (h ^ (unsigned char)*s++) * 1099511628211u;
	return (h ^ 0xff) * 1099511628211u;
}

static bool holds(const char *text, uint32_t bytes, const char *part)
{
	const size_t n = strlen(part);
	size_t i, k;

	for (i = 0; n == 0 || i + n <= bytes; i++) {
		for (k = 0; k < n; k++)
			if (tolower((unsigned char)text[i + k]) != tolower((unsigned char)part[k]))
				break;
		if (k == n)
			return true;
	}
	return false;
}

static int list_rows(struct build *b, struct top_rows *ret)
{
	enum top_sort sort = b->view->sort;
	uint32_t i;

	ret->row = calloc(b->now->n > 0 ? b->now->n : 1, sizeof(*ret->row));
	if (ret->row == NULL)
		return -ENOMEM;
	for (i = 0; i < b->now->n; i++) {
		const struct look_cell *c = &b->now->cell[i];
		const struct look_change change = look_since(b->before, c);
		const uint32_t bytes = (uint32_t)strlen(c->path);
		struct top_row *row = &ret->row[ret->n];

		if ((change.count == 0 && change.ns == 0) ||
			!holds(c->path, bytes, b->view->filter))
			continue;
		*row = (struct top_row){.name = c->path, .name_bytes = bytes};
		row->key = mix(14695981039346656037u + c->class, c->path, bytes);
		add_change(row, c, change);
		add_durations(b, c, row);
		ret->n++;
	}
	qsort_r(ret->row, ret->n, sizeof(*ret->row), rows_by, &sort);
	return 0;
}

/* --- the tree */

static uint32_t child_of(struct build *b, uint32_t parent, const char *name, uint32_t bytes)
{
	const uint64_t from = parent == NONE ? 14695981039346656037u : b->node[parent].row.key;
	const uint64_t key = mix(from, name, bytes);
	uint32_t at;
	struct node *n;

	for (at = (uint32_t)(key % b->n_index); b->index[at] != 0; at = (at + 1) % b->n_index) {
		n = &b->node[b->index[at] - 1];
		if (n->parent == parent && n->row.name_bytes == bytes &&
			memcmp(n->row.name, name, bytes) == 0)
			return b->index[at] - 1;
	}
	n = &b->node[b->n];
	*n = (struct node){.row = {.name = name,
				   .name_bytes = bytes,
				   .key = key,
				   .depth = parent == NONE ? 0 : b->node[parent].row.depth + 1,
				   .p50_ns = (double)NAN,
				   .p99_ns = (double)NAN},
		.parent = parent,
		.first = NONE,
		.next = NONE};
	b->index[at] = ++b->n;
	return b->n - 1;
}

static void tree_add(struct build *b, const struct look_cell *c)
{
	const struct look_change change = look_since(b->before, c);
	const char *name = c->path;
	uint32_t at = NONE, i;

	if (c->n_parts == 0)
		at = child_of(b, at, name, (uint32_t)strlen(name));
	for (i = 0; i < c->n_parts; i++) {
		at = child_of(b, at, name, c->part[i]);
		name += c->part[i] + 1;
	}
	add_change(&b->node[at].row, c, change);
	if (b->node[at].cell == NULL || c->class != CLASS_CPU)
		b->node[at].cell = c;
}

/* Sums, and what the filter leaves: what matches, what it stands in, what stands in it. */
static void tree_settle(struct build *b)
{
	struct node *n, *up;
	uint32_t i;

	for (i = 0; i < b->n; i++) {
		n = &b->node[i];
		n->matches = holds(n->row.name, n->row.name_bytes, b->view->filter) ||
			     (n->parent != NONE && b->node[n->parent].matches);
		n->shown = n->matches;
		if (n->cell != NULL)
			n->row.class = n->cell->class;
		add_durations(b, n->cell, &n->row);
	}
	for (i = b->n; i-- > 0;) { /* a parent comes before its children */
		n = &b->node[i];
		n->shown = n->shown && (n->row.calls > 0 || n->row.cpu_ns > 0 ||
					       n->row.gpu_ns > 0 || n->row.has_children);
		up = n->parent == NONE ? NULL : &b->node[n->parent];
		if (up == NULL)
			continue;
		up->row.gpu_ns += n->row.gpu_ns;
		up->shown |= n->shown;
		up->row.has_children |= n->shown;
	}
}

static bool is_toggled(const struct top_view *v, uint64_t key)
{
	uint32_t i;

	for (i = 0; i < v->n_toggled; i++)
		if (v->toggled[i] == key)
			return true;
	return false;
}

static int nodes_by(const void *a, const void *b, void *build)
{
	const struct build *of = build;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return compare(&of->node[x].row, &of->node[y].row, of->view->sort);
}

/* order[]: all nodes, sorted; children are linked so that the first has the most. */
static void tree_link(struct build *b, const uint32_t *order, uint32_t *ret_first)
{
	uint32_t i, *list;

	*ret_first = NONE;
	for (i = b->n; i-- > 0;) {
		struct node *n = &b->node[order[i]];

		list = n->parent == NONE ? ret_first : &b->node[n->parent].first;
		n->next = *list;
		*list = order[i];
	}
}

static void tree_walk(struct build *b, uint32_t first, struct top_rows *ret)
{
	uint32_t at = first;

	while (at != NONE) {
		struct node *n = &b->node[at];

		if (n->shown) {
			n->row.is_open = (b->view->all_open || n->row.depth < 1 ||
						 b->view->filter[0] != '\0') !=
					 is_toggled(b->view, n->row.key);
			ret->row[ret->n++] = n->row;
		}
		if (n->shown && n->row.is_open && n->first != NONE) {
			at = n->first;
			continue;
		}
		while (at != NONE && b->node[at].next == NONE)
			at = b->node[at].parent;
		at = at == NONE ? NONE : b->node[at].next;
	}
}

static int tree_rows(struct build *b, struct top_rows *ret)
{
	uint32_t i, first, *order;

	for (i = 0; i < b->now->n; i++)
		b->cap += b->now->cell[i].n_parts > 0 ? b->now->cell[i].n_parts : 1;
	b->n_index = b->cap * 2 + 1;
	b->node = calloc(b->cap + 1, sizeof(*b->node));
	b->index = calloc(b->n_index, sizeof(*b->index));
	ret->row = calloc(b->cap + 1, sizeof(*ret->row));
	order = calloc(b->cap + 1, sizeof(*order));
	if (b->node != NULL && b->index != NULL && ret->row != NULL && order != NULL) {
		for (i = 0; i < b->now->n; i++)
			tree_add(b, &b->now->cell[i]);
		tree_settle(b);
		for (i = 0; i < b->n; i++)
			order[i] = i;
		qsort_r(order, b->n, sizeof(*order), nodes_by, b);
		tree_link(b, order, &first);
		tree_walk(b, first, ret);
		free(order);
		return 0;
	}
	free(order);
	return -ENOMEM;
}

int top_rows_new(const struct look *before, const struct look *now, const struct top_view *v,
	struct top_rows *ret)
{
	struct build *b = calloc(1, sizeof(*b));
	int r = -ENOMEM;

	*ret = (struct top_rows){.has_gpu = look_has_gpu(now)};
	if (b != NULL) {
		b->before = before;
		b->now = now;
		b->view = v;
		r = v->tree ? tree_rows(b, ret) : list_rows(b, ret);
		free(b->node);
		free(b->index);
	}
	free(b);
	if (r < 0)
		top_rows_free(ret);
	return r;
}

void top_rows_free(struct top_rows *r)
{
	free(r->row);
	*r = (struct top_rows){.n = 0};
}

bool top_toggle(struct top_view *v, uint64_t key)
{
	uint32_t i;

	for (i = 0; i < v->n_toggled; i++)
		if (v->toggled[i] == key) {
			v->toggled[i] = v->toggled[--v->n_toggled];
			return true;
		}
	if (v->toggled == NULL)
		v->toggled = calloc(TOP_TOGGLED, sizeof(*v->toggled));
	if (v->toggled == NULL || v->n_toggled == TOP_TOGGLED)
		return false;
	v->toggled[v->n_toggled++] = key;
	return true;
}
