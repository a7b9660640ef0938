/* SPDX-License-Identifier: MIT. flat.c: one row for each name, over all the paths it stands on. */
#include "flat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "metrics_raw.h"
#include "spread.h"

#define SELF_COLUMN SELF "cpu_time/ns"

struct row {
	const char *name;
	uint8_t class;
	uint32_t paths, configs, names;
	double count, sum_ns;
	double self_ns;
	double outer_ns;         /* of those nodes that stand in no other of the row */
	uint64_t min_ns, max_ns; /* max < min: not known */
	uint32_t nodes;          /* the last of its nodes + 1; work.next has the others */
	double p50_ns, p99_ns;
	const struct profile_config *config; /* the most frequent one; NULL: not known */
	uint32_t bars;                       /* work.bars[bars - 1]; 0: not known */
	const char *family;                  /* of a name of work.names; NULL: not looked up yet */
};

struct work {
	const struct profile *p;
	struct flat_bars *bars;
	uint32_t n_bars;
	struct row *row;
	uint32_t n;
	double total_ns; /* of scopes: of those that stand in no other */
	bool is_cpu, has_hist, coarse;
	uint32_t *next;  /* [n_nodes]: another node of the same row + 1 */
	uint32_t *of;    /* [n_nodes]: row, PROFILE_NONE */
	uint32_t *index; /* by name: row + 1 */
	uint32_t cap;
	enum flat_by by;
	struct work *names; /* its rows are the names, of which ours have several; NULL: ours are */
};

/* Which metrics make a row: GPU work has two pairs, kernels and copies; calls have one for each thing
 * that they count as. */
#define PAIRS 5u
struct pair {
	uint32_t time, count;
};
static const char *const call_pairs[PAIRS][2] = {{"sync_time (ns)", "syncs"},
	{"overhead_time (ns)", "overheads"}, {"launch_time (ns)", "launches"},
	{"launch_delay (ns)", "launch_delays"}, {"api_time (ns)", "api_calls"}};

static double number(const struct profile *p, uint32_t node, uint32_t metric)
{
	double v =
		metric == PROFILE_NONE ? (double)NAN : value_number(profile_value(p, node, metric));

	return isnan(v) ? 0 : v;
}

static bool has(const struct profile *p, uint32_t node, uint32_t metric)
{
	return metric != PROFILE_NONE && !isnan(value_number(profile_value(p, node, metric)));
}

static uint32_t row_of(struct work *f, const char *name)
{
	uint32_t h = 2166136261u, at;
	const char *s;

	for (s = name; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	for (at = h & (f->cap - 1); f->index[at] != 0; at = (at + 1) & (f->cap - 1))
		if (strcmp(f->row[f->index[at] - 1].name, name) == 0)
			return f->index[at] - 1;
	f->row[f->n] = (struct row){
		.name = name, .min_ns = UINT64_MAX, .p50_ns = (double)NAN, .p99_ns = (double)NAN};
	f->index[at] = ++f->n;
	return f->n - 1;
}

static bool is_in_row(const struct profile *p, uint32_t node, const struct pair pairs[PAIRS])
{
	uint32_t i;

	for (i = 0; i < PAIRS; i++)
		if (has(p, node, pairs[i].time) || has(p, node, pairs[i].count))
			return true;
	return false;
}

/* A recursive scope: its time is in the outer one's already. */
static bool is_in_itself(const struct work *f, uint32_t node)
{
	uint32_t at = f->p->node[node].parent;

	while (at != 0 && f->of[at] != f->of[node])
		at = f->p->node[at].parent;
	return at != 0;
}

/* A family is looked up once for each name: that takes microseconds, and a kernel stands on thousands of paths. */
static const char *word_of(
	const struct work *f, struct row *of_name, const char *name, uint8_t class)
{
	if (f->by != FLAT_BY_family || of_name == NULL)
		return f->by == FLAT_BY_family  ? family_of(name, class)
		       : f->by == FLAT_BY_class ? gpu_classes[gpu_class_known(class)].word
						: name;
	if (of_name->family == NULL || of_name->class != class) {
		of_name->class = class;
		of_name->family = family_of(name, class);
	}
	return of_name->family;
}

/* The row of a node, and whether its name is a new one. */
static struct row *row_at(struct work *f, uint32_t node)
{
	const char *name = f->p->node[node].name;
	uint8_t class = f->is_cpu ? CLASS_CPU : f->p->node[node].class;
	const uint32_t known = f->names != NULL ? f->names->n : 0;
	struct row *row,
		*of_name = f->names != NULL ? &f->names->row[row_of(f->names, name)] : NULL;

	if (!f->is_cpu && class == CLASS_CPU)
		class = gpu_class_of_leaf(name); /* a .hatchet file has no classes */
	f->of[node] = row_of(f, word_of(f, of_name, name, class));
	row = &f->row[f->of[node]];
	row->class = class;
	if (of_name == NULL)
		row->names = 1;
	else
		row->names += f->names->n > known;
	return row;
}

/* Of calls: where every one is counted, what waits is among them. */
static bool is_counted(
	const struct work *f, uint32_t node, const struct pair *pairs, uint32_t which)
{
	return f->by != FLAT_BY_call || which == PAIRS - 1 ||
	       !has(f->p, node, pairs[PAIRS - 1].count);
}

/* inside: in a scope that has a row; its time holds this one's. */
static void add_node(
	struct work *f, const struct view *v, uint32_t node, const struct pair *pairs, bool inside)
{
	const struct profile *p = v->p;
	struct row *row;
	uint32_t i;
	bool outer;

	if (!v->keep[node] || !is_in_row(p, node, pairs))
		return;
	row = row_at(f, node);
	row->paths++;
	outer = !f->is_cpu || !is_in_itself(f, node);
	for (i = 0; i < PAIRS; i++) {
		if (!is_counted(f, node, pairs, i))
			continue;
		row->sum_ns += number(p, node, pairs[i].time);
		row->count += number(p, node, pairs[i].count);
		row->outer_ns += outer ? number(p, node, pairs[i].time) : 0;
		f->total_ns += f->is_cpu && inside ? 0 : number(p, node, pairs[i].time);
	}
	/* A node with GPU work keeps durations of that alone. */
	if (f->is_cpu && p->node[node].class != CLASS_CPU)
		return;
	f->next[node] = row->nodes;
	row->nodes = node + 1;
}

/* A histogram's buckets, as many to a bar as there must be for FLAT_BARS. */
static void draw(const struct hist_counts *h, struct flat_bars *ret)
{
	uint32_t first = h->first, end = h->first + h->n, step, i;

	while (first < end && h->count[first] == 0)
		first++;
	while (end > first && h->count[end - 1] == 0)
		end--;
	step = (end - first + FLAT_BARS - 1) / FLAT_BARS;
	ret->n = 0;
	for (i = first; i < end; i++) {
		if ((i - first) % step == 0)
			ret->from_ns[ret->n++] = (double)hist_lowest(i);
		ret->count[ret->n - 1] += h->count[i];
	}
	ret->from_ns[ret->n] = (double)hist_lowest(first + ret->n * step);
}

/* Not of a row whose histograms miss durations. */
static void quantiles(struct work *f, struct row *r)
{
	struct spread s;
	uint32_t at;

	spread_init(&s);
	for (at = r->nodes; at != 0; at = f->next[at - 1])
		spread_add(&s, f->p, at - 1);
	r->min_ns = s.min_ns;
	r->max_ns = s.max_ns;
	r->p50_ns = spread_quantile(&s, 0.5);
	r->p99_ns = spread_quantile(&s, 0.99);
	f->coarse |= s.h.coarse && !isnan(r->p50_ns);
	if (isnan(r->p50_ns))
		return;
	draw(&s.h, &f->bars[f->n_bars]);
	r->bars = ++f->n_bars;
}

static void add_configs(struct work *f)
{
	const struct profile_config *c;
	struct row *row;
	uint32_t i;

	for (i = 0; i < f->p->n_configs; i++) {
		c = &f->p->config[i];
		if (f->of[c->node] == PROFILE_NONE || f->is_cpu || f->by != FLAT_BY_name)
			continue;
		row = &f->row[f->of[c->node]];
		row->configs++;
		if (row->config == NULL || c->count > row->config->count)
			row->config = c;
	}
}

static int by_sum(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* False: the profile has none of that. */
static bool choose(const struct profile *p, struct work *f, struct pair pairs[PAIRS])
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < PAIRS; i++)
		pairs[i] = (struct pair){PROFILE_NONE, PROFILE_NONE};
	for (i = 0; f->by == FLAT_BY_call && i < PAIRS; i++) {
		pairs[i] = (struct pair){profile_find_metric(p, call_pairs[i][0]),
			profile_find_metric(p, call_pairs[i][1])};
		any |= pairs[i].time != PROFILE_NONE;
	}
	if (f->by == FLAT_BY_call)
		return any;
	pairs[0] =
		(struct pair){profile_find_metric(p, "time (ns)"), profile_find_metric(p, "count")};
	pairs[1] = (struct pair){
		profile_find_metric(p, "copy_time (ns)"), profile_find_metric(p, "copies")};
	if (pairs[0].time != PROFILE_NONE || pairs[1].time != PROFILE_NONE)
		return true;
	f->is_cpu = true;
	pairs[0] = (struct pair){
		profile_find_metric(p, "cpu_time (ns)"), profile_find_metric(p, "calls")};
	return pairs[0].time != PROFILE_NONE;
}

const char *flat_metrics(const struct profile *p)
{
	return raw_time_is_cpu(p) ? SELF_COLUMN : NULL;
}

static void add_self(struct work *f, const struct view *v)
{
	uint32_t c, i;

	for (c = 0; c < v->n_columns && strcmp(v->col[c].name, SELF_COLUMN) != 0; c++)
		;
	for (i = 0; i < f->n; i++)
		f->row[i].self_ns = c < v->n_columns && f->is_cpu ? 0 : (double)NAN;
	for (i = 0; c < v->n_columns && i < v->p->n_nodes; i++)
		if (f->of[i] != PROFILE_NONE && !isnan(v->col[c].v[i]))
			f->row[f->of[i]].self_ns += v->col[c].v[i];
}

static int fill(struct work *f, const struct view *v, const struct pair *pairs)
{
	uint8_t *inside = calloc(v->p->n_nodes, 1);
	uint32_t i, parent;

	if (inside == NULL)
		return -ENOMEM;
	f->of[0] = PROFILE_NONE; /* a .hatchet's ROOT has zeros that are hints, not work */
	for (i = 1; i < v->p->n_nodes; i++) {
		parent = v->p->node[i].parent;
		inside[i] = inside[parent] || f->of[parent] != PROFILE_NONE;
		f->of[i] = PROFILE_NONE;
		add_node(f, v, i, pairs, inside[i]);
	}
	free(inside);
	if (v->p->durations != NULL) {
		f->bars = calloc(f->n + (size_t)1, sizeof(*f->bars));
		if (f->bars == NULL)
			return -ENOMEM;
		for (i = 0; i < f->n; i++)
			quantiles(f, &f->row[i]);
		f->has_hist = true;
	}
	add_configs(f);
	add_self(f, v);
	qsort(f->row, f->n, sizeof(*f->row), by_sum);
	return 0;
}

static struct flat_row result(const struct work *f, const struct row *r)
{
	const bool span = r->min_ns <= r->max_ns;

	return (struct flat_row){.name = r->name,
		.class = r->class,
		.paths = r->paths,
		.configs = r->configs,
		.names = r->names,
		.count = r->count,
		.sum_ns = r->sum_ns,
		.self_ns = r->self_ns,
		.share = f->total_ns != 0 ? r->outer_ns / f->total_ns : (double)NAN,
		.avg_ns = r->count > 0 ? r->sum_ns / r->count : (double)NAN,
		.min_ns = span ? (double)r->min_ns : (double)NAN,
		.p50_ns = r->p50_ns,
		.p99_ns = r->p99_ns,
		.max_ns = span ? (double)r->max_ns : (double)NAN,
		.config = r->config,
		.bars = r->bars > 0 ? &f->bars[r->bars - 1] : NULL};
}

/* The bars are handed over. */
static int results(struct work *f, struct flat **ret)
{
	struct flat *flat = malloc(sizeof(*flat));
	uint32_t i;

	if (flat == NULL)
		return -ENOMEM;
	*flat = (struct flat){.row = calloc(f->n + (size_t)1, sizeof(*flat->row)),
		.n = f->n,
		.total_ns = f->total_ns,
		.by = f->by,
		.is_cpu = f->is_cpu,
		.has_hist = f->has_hist,
		.coarse = f->coarse};
	if (flat->row == NULL) {
		free(flat);
		return -ENOMEM;
	}
	for (i = 0; i < f->n; i++)
		flat->row[i] = result(f, &f->row[i]);
	flat->bars = f->bars;
	f->bars = NULL;
	*ret = flat;
	return 0;
}

static int work_init(struct work *f, uint32_t n)
{
	f->cap = 64;
	while (f->cap / 2 < n)
		f->cap *= 2;
	f->row = calloc(n, sizeof(*f->row));
	f->of = malloc(n * sizeof(*f->of));
	f->next = malloc(n * sizeof(*f->next));
	f->index = calloc(f->cap, sizeof(*f->index));
	return f->row != NULL && f->of != NULL && f->next != NULL && f->index != NULL ? 0 : -ENOMEM;
}

static void work_fini(struct work *f)
{
	free(f->row);
	free(f->of);
	free(f->index);
	free(f->next);
	free(f->bars);
}

int flat_by(const char *word)
{
	static const char *const words[] = {
#define X(word) #word,
		FLAT_BY(X)
#undef X
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -EINVAL;
}

int flat_new(const struct view *v, enum flat_by by, struct flat **ret)
{
	struct work f = {.p = v->p, .by = by}, names = {.p = v->p};
	struct pair pairs[PAIRS];
	int r;

	if (!choose(v->p, &f, pairs) || (f.is_cpu && by != FLAT_BY_name))
		return -ENODATA;
	r = work_init(&f, v->p->n_nodes);
	if (r == 0 && by != FLAT_BY_name) {
		f.names = &names;
		r = work_init(&names, v->p->n_nodes);
	}
	if (r == 0)
		r = fill(&f, v, pairs);
	if (r == 0)
		r = results(&f, ret);
	work_fini(&names);
	work_fini(&f);
	return r;
}

/* --- the rows as a profile */

static struct value added(const struct value *to, const struct value *more)
{
	const double v = value_number(to);

	return (struct value){.type = VALUE_F64, .f = (isnan(v) ? 0 : v) + value_number(more)};
}

/* The values of a node of `p` go to the row's node. -ENOMEM. */
static int add_values(struct profile *to, uint32_t at, const struct profile *p, uint32_t node)
{
	const struct value *v;
	struct value now;
	uint32_t m;
	int r = 0;

	for (m = 0; m < p->n_metrics && r == 0; m++) {
		v = profile_value(p, node, m);
		now = *profile_value(to, at, m);
		if (p->metric[m].kind != KIND_PROPERTY && !isnan(value_number(v)))
			r = profile_set(to, at, m, added(&now, v));
		else if (v->type != VALUE_NONE && now.type == VALUE_NONE)
			r = profile_set(to, at, m, *v);
	}
	return r;
}

static int copy_heads(struct profile *to, const struct profile *p)
{
	uint32_t m;

	for (m = 0; m < p->n_metrics; m++)
		if (profile_add_metric(to, p->metric[m].name, p->metric[m].kind) != m)
			return -ENOMEM;
	if (p->n_devices == 0)
		return 0;
	to->device = calloc(p->n_devices, sizeof(*to->device));
	if (to->device == NULL)
		return -ENOMEM;
	memcpy(to->device, p->device, p->n_devices * sizeof(*to->device));
	to->n_devices = p->n_devices;
	return 0;
}

/* Rows are nodes in the order in which they were made: row i is node i + 1. */
static int fill_profile(struct work *f, const struct view *v, struct profile *to)
{
	struct pair pairs[PAIRS];
	uint32_t i, at;
	int r = copy_heads(to, v->p);

	if (!choose(v->p, f, pairs))
		return -ENODATA;
	for (i = 1; i < v->p->n_nodes && r == 0; i++) {
		if (!v->keep[i] || !is_in_row(v->p, i, pairs))
			continue;
		at = row_of(f, v->p->node[i].name) + 1;
		if (at == to->n_nodes && profile_add_node(to, 0, v->p->node[i].name,
						 v->p->node[i].kind) == PROFILE_NONE)
			return -ENOMEM;
		r = add_values(to, at, v->p, i);
	}
	return r;
}

int flat_profile(const struct view *v, struct profile **ret)
{
	struct work f = {.p = v->p};
	struct profile *to = profile_new();
	int r = -ENOMEM;

	if (to != NULL && work_init(&f, v->p->n_nodes) == 0)
		r = fill_profile(&f, v, to);
	work_fini(&f);
	if (r < 0)
		profile_free(to);
	else
		*ret = to;
	return r;
}

/* Which number of a row; name: the rows by name. */
static const struct flat_key {
	const char *name;
	size_t at;
} flat_keys[] = {{"sum", offsetof(struct flat_row, sum_ns)},
	{"self", offsetof(struct flat_row, self_ns)}, {"count", offsetof(struct flat_row, count)},
	{"avg", offsetof(struct flat_row, avg_ns)}, {"min", offsetof(struct flat_row, min_ns)},
	{"p50", offsetof(struct flat_row, p50_ns)}, {"p99", offsetof(struct flat_row, p99_ns)},
	{"max", offsetof(struct flat_row, max_ns)}, {"name", SIZE_MAX}};

static double key_of(const struct flat_row *r, size_t at)
{
	double v;

	memcpy(&v, (const char *)r + at, sizeof(v));
	return v;
}

static int by_key(const void *a, const void *b, void *at)
{
	const struct flat_row *x = a, *y = b;
	const size_t *key = at;
	const double v = *key == SIZE_MAX ? 0 : key_of(x, *key);
	const double w = *key == SIZE_MAX ? 0 : key_of(y, *key);

	if (isnan(v) != isnan(w))
		return isnan(v) ? 1 : -1;
	if (v > w || v < w)
		return v < w ? 1 : -1;
	return strcmp(x->name, y->name);
}

int flat_sort(struct flat *f, const char *key)
{
	size_t i, at;

	for (i = 0; i < sizeof(flat_keys) / sizeof(flat_keys[0]); i++) {
		if (strcmp(flat_keys[i].name, key) != 0)
			continue;
		at = flat_keys[i].at;
		qsort_r(f->row, f->n, sizeof(*f->row), by_key, &at);
		return 0;
	}
	return -EINVAL;
}

const char *flat_accuracy(const struct flat *f)
{
	return f->coarse ? "p50 and p99 are within 22% of the true value, from 48 ns to 137 s: an "
			   "older protond stored some of them"
			 : "p50 and p99 are within 3% of the true value";
}

void flat_free(struct flat *f)
{
	if (f == NULL)
		return;
	free(f->row);
	free(f->bars);
	free(f);
}
