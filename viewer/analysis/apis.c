/* SPDX-License-Identifier: MIT. apis.c: calls of the vendor's library, out of a tree or a timeline. */
#include "apis.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "metrics.h"
#include "spread.h"
#include "table.h"
#include "text.h"
#include "timeline_reading.h"

int apis_by(const char *word)
{
	static const char *const words[] = {
#define X(word) #word,
		APIS_BY(X)
#undef X
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -EINVAL;
}

void apis_free(struct apis *a)
{
	if (a == NULL)
		return;
	free(a->row);
	profile_free(a->texts);
	free(a);
}

static struct apis *apis_new(void)
{
	struct apis *a = calloc(1, sizeof(*a));

	if (a != NULL)
		a->texts = profile_new();
	if (a != NULL && a->texts == NULL) {
		free(a);
		a = NULL;
	}
	return a;
}

static int by_total(const void *x, const void *y)
{
	const struct apis_row *a = x, *b = y;
	int order;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	order = strcmp(a->call, b->call);
	return order != 0 ? order : strcmp(a->in, b->in);
}

static void row_spread(struct apis_row *r, const struct spread *s)
{
	r->p50_ns = spread_quantile(s, 0.5);
	r->p99_ns = spread_quantile(s, 0.99);
	r->max_ns = spread_known(s) ? (double)s->max_ns : (double)NAN;
}

/* --- of a tree */

struct leaf {
	const struct profile *p;
	uint32_t node;
};

static int by_call(const void *x, const void *y)
{
	const struct leaf *a = x, *b = y;
	const int order = strcmp(a->p->node[a->node].name, b->p->node[b->node].name);

	return order != 0 ? order : a->node < b->node ? -1 : a->node > b->node;
}

static uint64_t whole(const struct profile *p, uint32_t node, uint32_t metric)
{
	const double v =
		metric == PROFILE_NONE ? (double)NAN : value_number(profile_value(p, node, metric));

	return v > 0 && v < 0x1p63 ? (uint64_t)v : 0;
}

static void put_scopes(struct text *t, const struct profile *p, uint32_t node)
{
	if (node == PROFILE_NONE || node == 0)
		return;
	put_scopes(t, p, p->node[node].parent);
	if (t->n > 0)
		text_char(t, '/');
	text_str(t, p->node[node].name);
}

static const char *scopes_of(struct apis *a, const struct profile *p, uint32_t node)
{
	struct text t = {0};
	const char *ret;
	char *path;
	size_t n;

	put_scopes(&t, p, p->node[node].parent);
	if (text_take(&t, &path, &n) < 0)
		return NULL;
	ret = profile_text(a->texts, path, n);
	free(path);
	return ret;
}

/* Those of one row: leaves of one name, or one of them. */
static int add_row(struct apis *a, const struct leaf *leaf, uint32_t n, enum apis_by by)
{
	const struct profile *p = leaf->p;
	const uint32_t calls = profile_find_metric(p, "api_calls"),
		       time = profile_find_metric(p, "api_time (ns)"),
		       errors = profile_find_metric(p, "api_errors");
	const char *name = p->node[leaf->node].name;
	struct apis_row r = {0};
	struct spread s;
	uint32_t i;

	spread_init(&s);
	for (i = 0; i < n; i++) {
		r.calls += whole(p, leaf[i].node, calls);
		r.errors += whole(p, leaf[i].node, errors);
		r.total_ns += whole(p, leaf[i].node, time);
		if (p->durations != NULL)
			spread_add(&s, p, leaf[i].node);
	}
	row_spread(&r, &s);
	r.call = profile_text(a->texts, name, strlen(name));
	r.in = by == APIS_BY_scope ? scopes_of(a, p, leaf->node) : "";
	a->row[a->n++] = r;
	return r.call != NULL && r.in != NULL ? 0 : -ENOMEM;
}

static struct leaf *leaves(const struct profile *p, uint32_t *ret_n)
{
	const uint32_t calls = profile_find_metric(p, "api_calls");
	struct leaf *ret = malloc((p->n_nodes + (size_t)1) * sizeof(*ret));
	uint32_t i, n = 0;

	for (i = 0; ret != NULL && i < p->n_nodes; i++)
		if (p->node[i].kind == NODE_CALL && whole(p, i, calls) > 0)
			ret[n++] = (struct leaf){p, i};
	if (n > 0)
		qsort(ret, n, sizeof(*ret), by_call);
	*ret_n = n;
	return ret;
}

int apis_of_tree(const struct profile *p, enum apis_by by, struct apis **ret)
{
	struct apis *a = apis_new();
	struct leaf *leaf;
	uint32_t n, i, end;
	int r = 0;

	leaf = leaves(p, &n);
	if (a != NULL)
		a->row = calloc(n + (size_t)1, sizeof(*a->row));
	if (a == NULL || leaf == NULL || a->row == NULL)
		r = -ENOMEM;
	for (i = 0; r == 0 && i < n; i = end) {
		end = i + 1;
		while (by == APIS_BY_call && end < n &&
			strcmp(p->node[leaf[i].node].name, p->node[leaf[end].node].name) == 0)
			end++;
		r = add_row(a, &leaf[i], end - i, by);
	}
	free(leaf);
	if (r < 0) {
		apis_free(a);
		return r;
	}
	qsort(a->row, a->n, sizeof(*a->row), by_total);
	*ret = a;
	return 0;
}

/* --- of a timeline */

struct cell {
	uint32_t process, tid;
	int64_t pid;
	const char *call;
	struct apis_row row;
	struct spread *spread;
};

struct reading {
	struct apis *a;
	struct cell *cell;
	uint32_t n, cap, first, processes; /* first: of the process at hand */
	struct table index, by_name;
	const char **call; /* by known node; NULL: not looked for */
	uint32_t cap_call;
	const char **name;
	uint32_t n_names, cap_names;
	bool failed;
};

struct name_key {
	const struct reading *r;
	const char *name;
};

static bool is_name(const void *arg, uint32_t at)
{
	const struct name_key *k = arg;

	return strcmp(k->r->name[at], k->name) == 0;
}

/* One text for each name. NULL: no memory. */
static const char *call_name(struct reading *r, const char *name)
{
	const struct name_key k = {r, name};
	uint32_t hash = 2166136261u, at;
	const char *s;

	for (s = name; *s != '\0'; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619u;
	at = table_find(&r->by_name, hash, is_name, &k);
	if (at != TABLE_NONE)
		return r->name[at];
	if (!ROOM_FOR(r->name, r->cap_names, r->n_names))
		return NULL;
	r->name[r->n_names] = profile_text(r->a->texts, name, strlen(name));
	if (r->name[r->n_names] == NULL || table_add(&r->by_name, hash, r->n_names) == -ENOMEM)
		return NULL;
	return r->name[r->n_names++];
}

static const char *call_of(struct reading *r, struct timeline *w, uint32_t node)
{
	if (!ZEROED_FOR(r->call, r->cap_call, node + 1))
		return NULL;
	if (r->call[node] == NULL)
		r->call[node] = call_name(r, w->known[node].name);
	return r->call[node];
}

struct cell_key {
	const struct reading *r;
	uint32_t process, tid;
	const char *call;
};

static bool is_cell(const void *arg, uint32_t at)
{
	const struct cell_key *k = arg;
	const struct cell *c = &k->r->cell[at];

	return c->process == k->process && c->tid == k->tid && c->call == k->call;
}

/* NULL: no memory, or over the ceiling. */
static struct cell *cell_of(struct reading *r, struct timeline *w, uint32_t tid, const char *call)
{
	const struct cell_key k = {r, r->processes, tid, call};
	const uint32_t hash =
		table_mix((uint64_t)r->processes << 32 | tid, (uint32_t)(uintptr_t)call);
	const uint32_t at = table_find(&r->index, hash, is_cell, &k);
	struct cell *c;

	if (at != TABLE_NONE)
		return &r->cell[at];
	if (r->n == APIS_ROWS_MAX) {
		r->a->left_out++;
		return NULL;
	}
	if (!ROOM_FOR(r->cell, r->cap, r->n) || table_add(&r->index, hash, r->n) == -ENOMEM)
		goto no_memory;
	c = &r->cell[r->n];
	*c = (struct cell){
		r->processes, tid, w->at.pid, call, {.call = call}, malloc(sizeof(*c->spread))};
	if (c->spread == NULL)
		goto no_memory;
	spread_init(c->spread);
	r->n++;
	return c;
no_memory:
	r->failed = true;
	return NULL;
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	r->processes++;
	r->first = r->n;
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;
	const uint8_t class = gpu_class_known(s->call.class);
	const uint64_t ns = s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 0;
	const uint32_t bucket = hist_bucket(ns);
	const char *call;
	struct cell *c;

	if (r->failed || (s->flags & TRACE_CALL) == 0 ||
		(class != CLASS_API && class != CLASS_API_ERROR))
		return;
	call = call_of(r, w, s->node);
	c = call != NULL ? cell_of(r, w, s->tid, call) : NULL;
	r->failed |= call == NULL;
	if (c == NULL)
		return;
	c->row.calls++;
	c->row.errors += class == CLASS_API_ERROR;
	c->row.total_ns += ns;
	c->spread->n++;
	c->spread->min_ns = ns < c->spread->min_ns ? ns : c->spread->min_ns;
	c->spread->max_ns = ns > c->spread->max_ns ? ns : c->spread->max_ns;
	hist_reach(&c->spread->h, bucket, bucket + 1);
	c->spread->h.count[bucket]++;
}

static const char *name_of_thread(const struct timeline *w, uint32_t tid)
{
	uint32_t i;

	for (i = 0; i < w->n_threads; i++)
		if (w->thread[i].tid == tid)
			return w->thread[i].name;
	return NULL;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	uint32_t i;

	for (i = r->first; i < r->n && !r->failed; i++) {
		const char *name = name_of_thread(w, r->cell[i].tid);

		r->cell[i].row.in = profile_text(
			r->a->texts, name != NULL ? name : "", name != NULL ? strlen(name) : 0);
		r->failed |= r->cell[i].row.in == NULL;
	}
}

/* "1240 worker"; of several processes "1234/1240 worker". */
static const char *label_of(const struct reading *r, const struct cell *c)
{
	struct text t = {0};
	const char *ret;
	char *label;
	size_t n;

	if (r->processes > 1)
		text_fmt(&t, "%lld/", (long long)c->pid);
	text_fmt(&t, "%u%s%s", c->tid, c->row.in[0] != '\0' ? " " : "", c->row.in);
	if (text_take(&t, &label, &n) < 0)
		return NULL;
	ret = profile_text(r->a->texts, label, n);
	free(label);
	return ret;
}

static int rows_of(struct reading *r)
{
	uint32_t i;

	r->a->row = calloc(r->n + (size_t)1, sizeof(*r->a->row));
	if (r->a->row == NULL)
		return -ENOMEM;
	for (i = 0; i < r->n; i++) {
		row_spread(&r->cell[i].row, r->cell[i].spread);
		r->cell[i].row.in = label_of(r, &r->cell[i]);
		if (r->cell[i].row.in == NULL)
			return -ENOMEM;
		r->a->row[r->a->n++] = r->cell[i].row;
	}
	qsort(r->a->row, r->a->n, sizeof(*r->a->row), by_total);
	return 0;
}

int apis_of_timeline(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct apis **ret, struct err *e)
{
	static const struct timeline_form form = {
		.process = on_process, .scope = on_scope, .process_end = on_process_end};
	struct reading r = {.a = apis_new()};
	uint32_t i;
	int status;

	r.failed = r.a == NULL;
	status = reading_run(&form, &r, &r.failed, db, id, s, ret_left, e);
	if (status == 0 && rows_of(&r) < 0)
		status = err_set(e, -ENOMEM, "out of memory");
	for (i = 0; i < r.n; i++)
		free(r.cell[i].spread);
	free(r.cell);
	free(r.call);
	free(r.name);
	table_fini(&r.index);
	table_fini(&r.by_name);
	if (status < 0)
		apis_free(r.a);
	else
		*ret = r.a;
	return status;
}
