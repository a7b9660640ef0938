/* SPDX-License-Identifier: MIT. profile_load.c: one session of a store as a tree: processes,
 * devices and segments merged unless one is selected. Reads in one transaction, so that a daemon
 * may write.
 *
 *   cells ──► slots (one a node, by row id) ──► the node rows and their ancestors ──► profile */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "hist.h"
#include "pages.h"
#include "profile_head.h"
#include "profile_put.h"
#include "profile_scan.h"
#include "session_terms.h"

/* clang-format off */
#define W(column) (1ull << (column))
#define BRIEF W(CELL_process) | W(CELL_node) | W(CELL_device) | W(CELL_class) | W(CELL_count) | W(CELL_sum_ns) | W(CELL_open)
#define LEAN  BRIEF | W(CELL_segment) | W(CELL_bytes) | W(CELL_untimed)
#define FULL  LEAN | W(CELL_min_ns) | W(CELL_max_ns) | W(CELL_hist) | W(CELL_buckets)
static const struct scan_columns brief_cells = {TABLE_cell, BRIEF}, lean_cells = {TABLE_cell, LEAN},
	full_cells = {TABLE_cell, FULL},
	metrics = {TABLE_metric, W(METRIC_segment) | W(METRIC_node) | W(METRIC_name) | W(METRIC_kind) | W(METRIC_value)},
	configs = {TABLE_config, (W(CONFIG_count) << 1) - W(CONFIG_node)}, /* all from node on */
	nodes = {TABLE_node, W(NODE_id) | W(NODE_parent) | W(NODE_kind) | W(NODE_name)};
/* clang-format on */

/* So many that their array is a mapping of its own: what is not used costs no page, and growing
 * copies nothing. The map is used all over, so it begins small. */
#define SLOTS_FIRST 131072u
#define SLOTS_LARGE 8192u /* then the rest is likely to be filled, too */
#define MAP_FIRST   16384u

/* Each row of the selected processes; all processes go in one pass. */
static int each_row(struct tree_load *t, const struct scan_columns *c, scan_fn *row)
{
	struct load *l = t->l;
	uint32_t i;
	int r = 0;

	if (!select_is_one(l->select))
		return scan_rows(t->scan, c, SCAN_SESSION, l->session, 0, row, t);
	for (i = 0; r == 0 && i < l->n_processes; i++)
		r = scan_rows(t->scan, c, SCAN_PROCESS, l->session, l->process[i].id, row, t);
	return r;
}

static uint64_t field_sum(struct tree_load *t, const struct field *f)
{
	return load_plausible(t->l, field_i64(f), DAMAGED_SUMS);
}

static const char *field_text(
	struct load *l, const struct field *f) /* in the profile; NULL: -ENOMEM */
{
	const bool text = f->type == FIELD_TEXT && f->p != NULL;

	return profile_text(l->p, text ? (const char *)f->p : "", text ? f->n : 0);
}

/* --- slots */

/* Row ids mostly follow each other: sixteen neighbours share a cache line of the map. A line that
 * is taken by others is left with a step that is odd, so that in the end every place is tried. */
static uint32_t *map_find(const struct tree_load *t, int64_t id)
{
	uint64_t line = ((uint64_t)id >> 4) * 0x9e3779b97f4a7c15u >> 32;
	uint32_t at = (uint32_t)(line << 4 | ((uint64_t)id & 15)) & (t->map_cap - 1);

	while (t->map[at] != 0 && t->slot[t->map[at] - 1].id != id)
		at = (at + 17) & (t->map_cap - 1);
	return &t->map[at];
}

static int grow_slots(struct tree_load *t)
{
	uint32_t cap = t->cap == 0 ? SLOTS_FIRST : t->cap * 2;
	struct slot *slot = realloc(t->slot, cap * sizeof(*slot));

	if (slot == NULL)
		return load_no_memory(t);
	t->slot = slot;
	t->cap = cap;
	return 0;
}

/* For one slot more than there are. */
static int make_map(struct tree_load *t)
{
	uint32_t cap = MAP_FIRST, i, *map;

	while (cap / 2 <= t->n)
		cap *= 4;
	if (cap <= t->map_cap)
		return 0;
	map = calloc(cap, sizeof(*map));
	if (map == NULL)
		return load_no_memory(t);
	free(t->map);
	t->map = map;
	t->map_cap = cap;
	for (i = 0; i < t->n; i++)
		*map_find(t, t->slot[i].id) = i + 1;
	return 0;
}

/* PROFILE_NONE: it has none. Where ids follow each other, which they mostly do, a slot is where the first one's distance says,
 * and there is no map. */
static int slot_find(struct tree_load *t, int64_t id, uint32_t *ret)
{
	const uint64_t at = t->n < 2 ? 0 : (uint64_t)id - (uint64_t)t->slot[1].id + 1;
	int r = 0;

	if (at < t->n && t->slot[at].id == id) {
		*ret = (uint32_t)at;
		return 0;
	}
	r = make_map(t);
	if (r == 0)
		*ret = *map_find(t, id) - 1;
	return r;
}

static int slot_of(struct tree_load *t, int64_t id, uint32_t *ret)
{
	int r = 0;

	*ret = PROFILE_NONE;
	if (t->n > 0 && (t->unsorted || id <= t->slot[t->n - 1].id))
		r = slot_find(t, id, ret);
	if (r < 0 || *ret != PROFILE_NONE)
		return r;
	if (t->n >= PROFILE_NODES_MAX)
		return err_set(
			t->l->e, -EBADMSG, "the session has more than %u nodes", PROFILE_NODES_MAX);
	if ((t->n == t->cap && grow_slots(t) < 0) || (t->map != NULL && make_map(t) < 0))
		return -ENOMEM;
	t->unsorted |= t->n > 0 && t->slot[t->n - 1].id > id;
	t->least = id < t->least ? id : t->least;
	t->most = id > t->most ? id : t->most;
	if (t->n == SLOTS_LARGE)
		pages_large(t->slot, t->cap * sizeof(*t->slot));
	t->slot[t->n] = (struct slot){.id = id, .local = PROFILE_NONE};
	*ret = t->n++;
	if (t->map != NULL)
		*map_find(t, id) = t->n;
	return 0;
}

/* --- cells */

static int add_share(struct tree_load *t, struct slot *s, const struct field *v, uint64_t ns)
{
	struct load *l = t->l;
	int64_t device = field_i64(&v[CELL_device]), process = field_i64(&v[CELL_process]);
	struct share **at, *h;
	struct load_device *d;
	uint32_t i;

	if (s->share != NULL && l->device[s->share->device].device == device &&
		l->device[s->share->device].process == process) {
		s->share->ns = load_sum(s->share->ns, ns);
		return 0;
	}
	d = load_device(l, process, device);
	if (d == NULL)
		return 0; /* a device without a row: its times count, its name is not known */
	d->used = true;
	if (load_is_brief(l->select))
		return 0;
	/* The last device first, which is the one that mostly comes. */
	i = (uint32_t)(d - l->device);
	for (at = &s->share; *at != NULL && (*at)->device > i; at = &(*at)->next)
		;
	h = *at;
	if (h == NULL || h->device != i) {
		h = arena_take(l->p->arena, sizeof(*h));
		if (h == NULL)
			return load_no_memory(t);
		*h = (struct share){.next = *at, .device = i};
		*at = h;
	}
	h->ns = load_sum(h->ns, ns);
	return 0;
}

/* Room for buckets [first, end), and as much again for what other processes bring. */
static int buckets_reach(struct tree_load *t, struct durations *d, uint32_t first, uint32_t end)
{
	const uint32_t low = d->cap == 0 || first < d->base ? first : d->base;
	const uint32_t high = d->cap == 0 || end > d->base + d->cap ? end : d->base + d->cap;
	const uint32_t more = d->cap == 0 ? 0 : (high - low) / 2;
	uint64_t *count;
	uint32_t base, cap;

	if (d->cap != 0 && low == d->base && high == d->base + d->cap)
		return 0;
	base = low > more ? low - more : 0;
	cap = (high + more < HIST_BUCKETS ? high + more : HIST_BUCKETS) - base;
	count = arena_take(t->l->p->arena, cap * sizeof(*count));
	if (count == NULL)
		return load_no_memory(t);
	if (d->cap != 0)
		memcpy(count + (d->base - base), d->count, d->cap * sizeof(*count));
	d->count = count;
	d->base = base;
	d->cap = cap;
	return 0;
}

static int add_hist(struct tree_load *t, struct durations *d, const struct hist_counts *h)
{
	const uint32_t end = h->first + h->n, last = d->sum.first + d->sum.n_buckets;
	uint32_t b, first;

	if (h->n == 0)
		return 0;
	if (buckets_reach(t, d, h->first, end) < 0)
		return -ENOMEM;
	for (b = h->first; b < end; b++)
		d->count[b - d->base] = load_sum(d->count[b - d->base], h->count[b]);
	first = d->sum.n_buckets == 0 || h->first < d->sum.first ? h->first : d->sum.first;
	d->sum.first = (uint16_t)first;
	d->sum.n_buckets = (uint16_t)((end > last ? end : last) - first);
	d->sum.count = d->count + (first - d->base);
	d->sum.coarse |= h->coarse;
	return 0;
}

static int add_durations(struct tree_load *t, struct slot *s, const struct field *v)
{
	const uint64_t count = field_sum(t, &v[CELL_count]),
		       untimed = field_sum(t, &v[CELL_untimed]);
	const bool timed = count != untimed; /* else these are of nothing */
	const uint64_t min = timed ? field_sum(t, &v[CELL_min_ns]) : 0,
		       max = timed ? field_sum(t, &v[CELL_max_ns]) : 0;
	const struct field *old = &v[CELL_hist], *now = &v[CELL_buckets];
	struct profile_durations *sum;
	struct hist_counts h;

	if (s->durations == NULL) {
		s->durations = arena_take(t->l->p->arena, sizeof(*s->durations));
		if (s->durations == NULL)
			return load_no_memory(t);
		s->durations->sum.min_ns = UINT64_MAX;
	}
	sum = &s->durations->sum;
	if (now->type != FIELD_NULL)
		(void)hist_unpack(now->p, now->n, &h);
	else
		hist_unpack_old(old->p, old->n, min, max, &h);
	if (add_hist(t, s->durations, &h) < 0)
		return -ENOMEM;
	if (!timed)
		return 0;
	sum->n = load_sum(sum->n, count < untimed ? count : count - untimed);
	sum->min_ns = min < sum->min_ns ? min : sum->min_ns;
	sum->max_ns = max > sum->max_ns ? max : sum->max_ns;
	return 0;
}

static int rare_of(struct tree_load *t, struct slot *s)
{
	if (s->rare == NULL)
		s->rare = arena_take(t->l->p->arena, sizeof(*s->rare));
	return s->rare == NULL ? load_no_memory(t) : 0;
}

static int add_kernels(
	struct tree_load *t, struct slot *s, uint64_t count, uint64_t ns, uint64_t untimed)
{
	s->has_gpu = t->has[COL_TIME] = true;
	s->count = load_sum(s->count, count);
	s->time = load_sum(s->time, ns);
	if (untimed == 0)
		return 0;
	if (rare_of(t, s) < 0)
		return -ENOMEM;
	t->has[COL_UNTIMED] = true;
	s->rare->untimed = load_sum(s->rare->untimed, untimed);
	return 0;
}

static int add_copies(
	struct tree_load *t, struct slot *s, uint64_t count, uint64_t ns, uint64_t bytes)
{
	if (rare_of(t, s) < 0)
		return -ENOMEM;
	s->rare->has_copy = t->has[COL_COPY_TIME] = true;
	s->rare->copies = load_sum(s->rare->copies, count);
	s->rare->copy_time = load_sum(s->rare->copy_time, ns);
	s->rare->bytes = load_sum(s->rare->bytes, bytes);
	return 0;
}

/* which: from COUNTS_SYNC on. */
static int add_calls(
	struct tree_load *t, struct slot *s, uint32_t which, uint64_t count, uint64_t ns)
{
	const uint32_t k = which - COUNTS_SYNC;

	if (rare_of(t, s) < 0)
		return -ENOMEM;
	s->rare->calls[k].has = t->has[COL_SYNC_TIME + 2 * k] = true;
	s->rare->calls[k].n = load_sum(s->rare->calls[k].n, count);
	s->rare->calls[k].ns = load_sum(s->rare->calls[k].ns, ns);
	return 0;
}

/* Its trees have kernels, and the scopes around them where it looks at scopes at all. */
static bool is_for_proton(const struct tree_load *t, uint64_t class)
{
	if (class == CLASS_CPU)
		return t->l->p->head.row.context == SESSION_SHADOW;
	return gpu_class_is_kernel(gpu_class_known(class));
}

static int cell_row(void *arg, const struct field *v)
{
	struct tree_load *t = arg;
	uint64_t class = field_u64(&v[CELL_class]), count = field_sum(t, &v[CELL_count]),
		 ns = field_sum(t, &v[CELL_sum_ns]);
	bool brief = load_is_brief(t->l->select);
	struct slot *s;
	uint32_t at;
	int r;

	if (t->l->select->one_phase && field_i64(&v[CELL_segment]) != (int64_t)t->l->select->phase)
		return 0;
	if (t->l->p->head.files != MODE_NONE && !is_for_proton(t, class))
		return 0;
	r = slot_of(t, field_i64(&v[CELL_node]), &at);
	if (r < 0)
		return r;
	s = &t->slot[at];
	if (class == CLASS_CPU && t->l->p->head.files != MODE_NONE)
		return 0;
	if (gpu_classes[gpu_class_known(class)].counts == COUNTS_CPU) {
		s->has_cpu = t->has[COL_CPU_TIME] = true;
		s->cpu = load_sum(s->cpu, ns);
		s->calls = load_sum(s->calls, count);
		t->l->open_scopes = load_sum(t->l->open_scopes, field_sum(t, &v[CELL_open]));
		t->l->only_open += count == 0 && ns == 0;
		if (s->class != 0 || t->l->select->lean)
			return 0; /* the durations shown are the GPU's, where it has any */
		return add_durations(t, s, v);
	}
	if (gpu_counts_samples(gpu_classes[gpu_class_known(class)].counts)) /* of any node */
		return add_calls(t, s, gpu_classes[class].counts, count, ns);
	if (class == CLASS_API_ERROR) /* among those of API */
		return add_calls(t, s, COUNTS_API_ERROR, count, ns);
	if (s->class == 0 && s->durations != NULL) /* CPU durations came first: they make way */
		*s->durations = (struct durations){.sum.min_ns = UINT64_MAX};
	s->class = gpu_class_known(class);
	if (gpu_classes[s->class].counts == COUNTS_KERNEL)
		r = add_kernels(t, s, count, ns, brief ? 0 : field_sum(t, &v[CELL_untimed]));
	else if (gpu_classes[s->class].counts >= COUNTS_SYNC)
		r = add_calls(t, s, gpu_classes[s->class].counts, count, ns);
	else
		r = add_copies(t, s, count, ns, brief ? 0 : field_sum(t, &v[CELL_bytes]));
	if (r == 0)
		r = add_share(t, s, v, ns);
	return r < 0 || t->l->select->lean ? r : add_durations(t, s, v);
}

/* --- user metrics */

/* SQLite has no NaN: rows.c writes it as this text, for a sum is no text otherwise, and of a property
 * as an empty BLOB. */
static bool is_nan(const struct field *v)
{
	if (field_u64(&v[METRIC_kind]) == KIND_PROPERTY)
		return v[METRIC_value].type == FIELD_BLOB && v[METRIC_value].n == 0;
	return v[METRIC_value].type == FIELD_TEXT && v[METRIC_value].n == 3 &&
	       memcmp(v[METRIC_value].p, "nan", 3) == 0;
}

static int user_value(struct tree_load *t, const struct field *v, struct value *ret)
{
	if (is_nan(v)) {
		*ret = (struct value){.type = VALUE_F64, .f = (double)NAN};
		return 1;
	}
	switch (v[METRIC_value].type) {
	case FIELD_I64:
		*ret = (struct value){.type = VALUE_I64, .i = v[METRIC_value].i};
		return 1;
	case FIELD_F64:
		*ret = (struct value){.type = VALUE_F64, .f = v[METRIC_value].f};
		return 1;
	case FIELD_TEXT:
		*ret = (struct value){.type = VALUE_STR, .s = field_text(t->l, &v[METRIC_value])};
		return ret->s == NULL ? load_no_memory(t) : 1;
	case FIELD_NULL:
	case FIELD_BLOB:
	default:
		t->l->skipped_values++;
		return 0;
	}
}

static bool is_ours(const struct tree_load *t, uint32_t metric)
{
	uint32_t i;

	for (i = 0; i < COL_MAX; i++)
		if (t->column[i] == metric)
			return true;
	return false;
}

/* What no sum of ours is. */
static bool is_plausible(const struct value *v)
{
	const double f = v->type == VALUE_F64 ? v->f : v->type == VALUE_I64 ? (double)v->i : 0;

	return f >= 0 && f <= (double)PLAUSIBLE_MAX;
}

static int metric_row(void *arg, const struct field *v)
{
	struct tree_load *t = arg;
	uint64_t kind = field_u64(&v[METRIC_kind]);
	struct user_value *u;
	const char *name;
	uint32_t cap;
	int r;

	if (t->l->select->one_phase &&
		field_i64(&v[METRIC_segment]) != (int64_t)t->l->select->phase)
		return 0;
	if (t->n_user == t->cap_user) {
		cap = t->cap_user == 0 ? 256 : t->cap_user * 2;
		u = cap > PROFILE_NODES_MAX * 4 ? NULL : realloc(t->user, cap * sizeof(*u));
		if (u == NULL)
			return load_no_memory(t);
		t->user = u;
		t->cap_user = cap;
	}
	u = &t->user[t->n_user];
	r = user_value(t, v, &u->v);
	if (r <= 0)
		return r;
	name = field_text(t->l, &v[METRIC_name]);
	if (name == NULL)
		return load_no_memory(t);
	u->metric = profile_find_metric(t->l->p, name);
	if (u->metric == PROFILE_NONE && t->l->p->n_metrics < USER_METRICS_MAX)
		u->metric = profile_add_metric(
			t->l->p, name, kind > KIND_PROPERTY ? KIND_EXCLUSIVE : (uint8_t)kind);
	if (u->metric == PROFILE_NONE) {
		t->l->surplus_values++;
		return 0;
	}
	if (is_ours(t, u->metric) && !is_plausible(&u->v)) {
		t->l->damaged |= 1u << DAMAGED_SUMS;
		return 0;
	}
	r = slot_of(t, field_i64(&v[METRIC_node]), &u->slot);
	if (r == 0)
		t->n_user++;
	return r;
}

/* --- nodes */

static int fill_row(void *arg, const struct field *v)
{
	struct tree_load *t = arg;
	int64_t kind = field_i64(&v[NODE_kind]);
	const int64_t id = field_i64(&v[NODE_id]);
	uint32_t at, up;
	struct slot *s;
	int r;

	r = slot_find(t, id, &at);
	if (r < 0 || at == 0 || at == PROFILE_NONE || t->slot[at].name != NULL)
		return r; /* another session's, in the range that was scanned */
	r = slot_of(t, field_i64(&v[NODE_parent]), &up); /* may move them all */
	if (r < 0)
		return r;
	s = &t->slot[at];
	s->up = up;
	s->kind = kind >= 0 && kind <= UINT8_MAX ? (uint8_t)kind : NODE_SCOPE;
	s->name = field_text(t->l, &v[NODE_name]);
	t->named++;
	return s->name == NULL ? load_no_memory(t) : 0;
}

/* Reads the rows of slots [first, last): in one scan where their ids lie close together. */
static int fetch(struct tree_load *t, uint32_t first, uint32_t last)
{
	const int64_t least = t->least, most = t->most;
	const bool close = ((uint64_t)most - (uint64_t)least) / 4 < last - first;
	uint32_t i;
	int r = 0;

	t->least = INT64_MAX;
	t->most = INT64_MIN;
	if (close)
		return scan_rows(t->scan, &nodes, SCAN_ID, least, most, fill_row, t);
	for (i = first; r == 0 && i < last; i++)
		r = scan_rows(t->scan, &nodes, SCAN_ID, t->slot[i].id, t->slot[i].id, fill_row, t);
	return r;
}

/* All slots but ROOT's, which is the first, get their row; parents get slots, until every chain
 * ends at ROOT. */
static int fetch_all(struct tree_load *t)
{
	uint32_t round, first = 1, last, i;
	int r = 0;

	for (round = 0; r == 0 && first < t->n; round++) {
		if (round > PROFILE_DEPTH_MAX)
			return err_set(t->l->e, -EBADMSG, "the tree is deeper than %u levels",
				PROFILE_DEPTH_MAX);
		last = t->n;
		r = fetch(t, first, last);
		for (i = first; r == 0 && t->named + 1 < last && i < last; i++)
			if (t->slot[i].name == NULL)
				return err_set(t->l->e, -EBADMSG,
					"the database is damaged: node %lld is missing",
					(long long)t->slot[i].id);
		first = last;
	}
	return r;
}

static bool is_root(const struct slot *s)
{
	return s->id == 0 || (s->up == 0 && s->kind == NODE_ROOT);
}

/* Adds slot `at` and what stands above it. */
static int add_chain(struct tree_load *t, uint32_t at)
{
	uint32_t chain[PROFILE_DEPTH_MAX + 1], n = 0, parent;
	struct slot *s;

	for (s = &t->slot[at]; s->local == PROFILE_NONE && !is_root(s);) {
		if (n == PROFILE_DEPTH_MAX)
			return err_set(t->l->e, -EBADMSG, "the tree is deeper than %u levels",
				PROFILE_DEPTH_MAX);
		chain[n++] = (uint32_t)(s - t->slot);
		s = &t->slot[s->up];
	}
	if (s->local == PROFILE_NONE)
		s->local = 0;
	for (parent = s->local; n > 0; parent = s->local) {
		s = &t->slot[chain[--n]];
		s->local = profile_adopt_node(t->l->p, parent, s->name, s->kind);
		if (s->local == PROFILE_NONE)
			return load_no_memory(t);
	}
	return 0;
}

static int by_id(const void *a, const void *b, void *slots)
{
	const struct slot *slot = slots;
	const int64_t x = slot[*(const uint32_t *)a].id, y = slot[*(const uint32_t *)b].id;

	return (x > y) - (x < y);
}

/* In the order of row ids, which is the order of first sight; slots mostly have it already. */
static int add_nodes(struct tree_load *t)
{
	uint32_t *order = t->unsorted ? malloc(t->n * sizeof(*order)) : NULL, i;
	int r;

	if ((t->unsorted && order == NULL) || profile_reserve(t->l->p, t->n + 1) < 0) {
		free(order);
		return load_no_memory(t);
	}
	for (i = 0; order != NULL && i < t->n; i++)
		order[i] = i;
	if (order != NULL)
		qsort_r(order, t->n, sizeof(*order), by_id, t->slot);
	for (i = 0, r = 0; r == 0 && i < t->n; i++)
		r = add_chain(t, order != NULL ? order[i] : i);
	free(order);
	return r;
}

/* --- launch configurations */

static int config_row(void *arg, const struct field *v)
{
	struct tree_load *t = arg;
	struct profile *p = t->l->p;
	struct profile_config *c;
	uint32_t at, i;
	int r = slot_find(t, field_i64(&v[CONFIG_node]), &at);

	if (r < 0 || at == PROFILE_NONE || p->n_configs >= PROFILE_NODES_MAX)
		return r;
	if ((p->n_configs & (p->n_configs - 1)) == 0) {
		c = realloc(p->config, (p->n_configs == 0 ? 1 : p->n_configs * 2u) * sizeof(*c));
		if (c == NULL)
			return load_no_memory(t);
		p->config = c;
	}
	c = &p->config[p->n_configs++];
	*c = (struct profile_config){
		.node = t->slot[at].local, .count = field_sum(t, &v[CONFIG_count])};
	for (i = 0; i < 3; i++) {
		c->grid[i] = (uint32_t)field_u64(&v[CONFIG_grid_x + i]);
		c->block[i] = (uint32_t)field_u64(&v[CONFIG_block_x + i]);
	}
	c->registers = (uint32_t)field_u64(&v[CONFIG_registers]);
	c->static_shared = (uint32_t)field_u64(&v[CONFIG_static_shared]);
	c->dynamic_shared = (uint32_t)field_u64(&v[CONFIG_dynamic_shared]);
	return 0;
}

/* --- the whole */

static const struct scan_columns *cells(const struct profile_select *s)
{
	return load_is_brief(s) ? &brief_cells : s->lean ? &lean_cells : &full_cells;
}

static int load_tree(struct load *l, struct scan *scan)
{
	struct tree_load t = {.l = l, .scan = scan};
	uint32_t root;
	int r = slot_of(&t, 0, &root); /* first, so that ids mostly come in order */

	t.least = INT64_MAX;
	t.most = INT64_MIN;
	if (r == 0)
		r = each_row(&t, cells(l->select), cell_row);
	if (r == 0)
		r = load_columns(&t);
	if (r == 0)
		r = each_row(&t, &metrics, metric_row);
	if (r == 0)
		r = fetch_all(&t);
	if (r == 0)
		r = add_nodes(&t);
	if (r == 0)
		r = load_head_end(l); /* devices get their numbers */
	if (r == 0)
		r = load_values(&t);
	if (r == 0 && (!l->select->lean || l->select->configs))
		r = each_row(&t, &configs, config_row);
	free(t.slot);
	free(t.map);
	free(t.user);
	return r;
}

/* pages: -EAGAIN where some cannot be read. */
static int load(struct sqlite3 *db, int64_t id, const struct profile_select *s, bool pages,
	struct profile **ret_profile, struct err *e)
{
	static const struct profile_select all;
	struct load l = {.db = db, .session = id, .select = s != NULL ? s : &all, .e = e};
	bool own_transaction = sqlite3_get_autocommit(db) != 0;
	struct scan *scan = NULL;
	int r;

	l.p = profile_new();
	if (l.p == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	if (own_transaction && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
		r = load_db_error(&l);
		profile_free(l.p);
		return r;
	}
	r = scan_open(&l, pages, &scan);
	if (r == 0)
		r = load_head(&l);
	if (r == 0)
		r = load_tree(&l, scan);
	scan_close(scan);
	if (own_transaction)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	free(l.process);
	free(l.device);
	if (r < 0)
		profile_free(l.p);
	else
		*ret_profile = l.p;
	return r;
}

int profile_load(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct profile **ret_profile, struct err *e)
{
	const int r = load(db, id, s, true, ret_profile, e);

	return r == -EAGAIN ? load(db, id, s, false, ret_profile, e) : r;
}
