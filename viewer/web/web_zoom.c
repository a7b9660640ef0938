/* SPDX-License-Identifier: MIT. web_zoom.c: a timeline by window, as the page asks for it. */
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "metrics.h"
#include "print_json.h"
#include "table.h"
#include "trace.h"
#include "trace_names.h"
#include "web_ask.h"
#include "zoom.h"

#define TILE_MAGIC 0x314c5450u /* "PTL1" */
#define TILE_HEAD  40u
#define TILE_SLICE 28u
#define TILE_BYTES ((size_t)256 << 10)
#define NAME_BYTES 4096u

/* --- what is asked */

static const char *name_of(struct web_ask *a, const struct zoom *z, uint32_t name)
{
	if (name == ZOOM_NONE)
		return "events summed";
	return names_show(a->run->print.names, zoom_name(z, name));
}

/* "0-7,9": numbers of lanes, or of what else `key` names. The caller frees *ret; NULL: all. */
static int read_numbers(struct web_ask *a, const char *key, uint32_t **ret, uint32_t *ret_n)
{
	const char *s = web_query_get(&a->q, key);
	unsigned long from, to;
	uint32_t n = 0, cap = 0;
	char *end;

	*ret = NULL;
	*ret_n = 0;
	for (; s != NULL && *s != '\0'; s = *end == ',' ? end + 1 : end) {
		from = to = strtoul(s, &end, 10);
		if (end != s && *end == '-')
			to = strtoul(s = end + 1, &end, 10);
		if (end == s || (*end != '\0' && *end != ',') || from > to || to >= ZOOM_LANES_MAX)
			return err_set(&a->run->e, -EINVAL, "%s=%.32s: give numbers, as 0-7,9", key,
				web_query_get(&a->q, key));
		for (; from <= to && n < ZOOM_LANES_MAX; from++) {
			if (!ROOM_FOR(*ret, cap, n))
				return err_set(&a->run->e, -ENOMEM, "out of memory");
			(*ret)[n++] = (uint32_t)from;
		}
	}
	*ret_n = n;
	return 0;
}

/* lanes: to be freed, whatever this returns. */
static int read_ask_of(struct web_ask *a, struct zoom *z, const char *key, struct zoom_ask *ret,
	uint32_t **ret_lanes)
{
	uint64_t px = 1024;
	int r = read_numbers(a, key, ret_lanes, &ret->n_lanes);

	zoom_range(z, &ret->t0, &ret->t1);
	if (r < 0)
		return r;
	if (!web_query_u64(&a->q, "t0", UINT64_MAX / 4, &ret->t0) ||
		!web_query_u64(&a->q, "t1", UINT64_MAX / 4, &ret->t1) ||
		!web_query_u64(&a->q, "px", ZOOM_PX_MAX, &px) || px == 0 || ret->t1 <= ret->t0)
		return err_set(&a->run->e, -EINVAL,
			"t0=A&t1=B&px=N: whole nanoseconds, B behind A, and 1 to %u pixels",
			ZOOM_PX_MAX);
	ret->px = (uint32_t)px;
	ret->lane = *ret_lanes;
	return 0;
}

static int read_ask(struct web_ask *a, struct zoom *z, struct zoom_ask *ret, uint32_t **ret_lanes)
{
	return read_ask_of(a, z, "lanes", ret, ret_lanes);
}

/* --- lanes */

static void put_maybe(struct text *t, const char *key, bool known, int64_t v)
{
	json_key(t, key);
	if (known)
		text_fmt(t, "%lld", (long long)v);
	else
		text_str(t, "null");
}

static const char *const kind_words[] = {[ZOOM_THREAD] = "thread",
	[ZOOM_TASKS] = "tasks",
	[ZOOM_STREAM] = "stream",
	[ZOOM_PROJECTED] = "projected",
	[ZOOM_SUMMED] = "summed",
	[ZOOM_SYNCS] = "syncs"};

static void put_lane(struct text *t, const struct zoom_lane *l, const struct zoom_process *p)
{
	json_open(t, '{');
	json_key_u64(t, "id", l->id);
	json_key_str(t, "kind", kind_words[l->kind]);
	json_key_i64(t, "process", p->pid);
	put_maybe(t, "rank", p->rank >= 0, p->rank);
	json_key_str(t, "name", l->name);
	put_maybe(t, "parent", l->parent != ZOOM_NONE, l->parent);
	json_key_u64(t, "rows", l->rows);
	put_maybe(t, "device", l->device != ZOOM_NONE, l->device);
	json_key_u64(t, "number", l->number);
	json_key_u64(t, "events", l->events);
	json_close(t, '}');
}

/* By names as the page has them. */
static void put_colors(struct web_ask *a, const struct zoom *z)
{
	struct text *t = &a->to->body;
	const struct named_color *c;
	char words[8];
	uint32_t n;

	json_in(t, "colors", '{');
	for (c = zoom_colors(z, &n); n > 0; n--, c++) {
		(void)snprintf(words, sizeof(words), "#%06x", c->color & (NAMED_COLOR - 1));
		json_key_str(t, names_show(a->run->print.names, c->name), words);
	}
	json_close(t, '}');
}

int web_lanes(struct web_ask *a)
{
	struct text *t = &a->to->body;
	const struct zoom_process *p;
	const struct zoom_lane *lane;
	struct zoom_state state;
	uint32_t i, n, n_processes;
	uint64_t t0, t1;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r < 0)
		return r;
	lane = zoom_lanes(z, &n);
	p = zoom_processes(z, &n_processes);
	text_char(t, '{');
	json_in(t, "lane", '[');
	for (i = 0; i < n; i++)
		put_lane(t, &lane[i], &p[lane[i].process]);
	json_close(t, ']');
	put_colors(a, z);
	zoom_range(z, &t0, &t1);
	zoom_state(z, &state);
	json_key_u64(t, "t0", t0);
	json_key_u64(t, "t1", t1);
	json_key_u64(t, "events", state.events);
	json_key_u64(t, "gone", state.gone);
	json_key_u64(t, "summed", state.summed);
	run_note_left(a->run, &(struct export_left){state.gone, state.summed});
	web_warnings(a);
	text_char(t, '}');
	return 0;
}

/* --- a tile */

struct local {        /* the names of one tile, each once */
	uint32_t *of; /* [n]: the timeline's number */
	uint32_t n, cap;
	struct table index;
};

static bool is_it(const void *of, uint32_t at)
{
	const struct {
		const struct local *l;
		uint32_t name;
	} *k = of;

	return k->l->of[at] == k->name;
}

static uint32_t local_of(struct local *l, uint32_t name)
{
	const struct {
		const struct local *l;
		uint32_t name;
	} k = {l, name};
	const uint32_t hash = table_mix(name, 1);
	uint32_t at = table_find(&l->index, hash, is_it, &k);

	if (at != TABLE_NONE)
		return at;
	if (!ROOM_FOR(l->of, l->cap, l->n) || table_add(&l->index, hash, l->n) < 0)
		return TABLE_NONE;
	l->of[l->n] = name;
	return l->n++;
}

static void put_bytes(struct text *t, const void *bytes, size_t n)
{
	text_add(t, bytes, n);
}

#define PUT(t, type, value)                        \
	do {                                       \
		const type put_ = (type)(value);   \
		put_bytes(t, &put_, sizeof(put_)); \
	} while (0)
#define COLUMN(t, type, value)                                \
	for (s = tile->slice; s < tile->slice + tile->n; s++) \
	PUT(t, type, value)

static void put_columns(struct text *t, const struct zoom_tile *tile, struct local *l)
{
	const struct zoom_slice *s;

	COLUMN(t, double, s->start_ns);
	COLUMN(t, float, s->end_ns - s->start_ns);
	COLUMN(t, uint32_t, local_of(l, s->name));
	COLUMN(t, uint32_t, s->event);
	COLUMN(t, uint32_t, s->count);
	COLUMN(t, uint16_t, s->lane);
	COLUMN(t, uint16_t, s->depth);
}

static void put_names(
	struct web_ask *a, const struct zoom *z, const struct local *l, struct text *t)
{
	const char *name;
	uint32_t i, n;

	for (i = 0; i < l->n; i++) {
		name = name_of(a, z, l->of[i]);
		n = (uint32_t)text_cut(name, NAME_BYTES);
		PUT(t, uint32_t, n);
		put_bytes(t, name, n);
	}
}

/* Little-endian, as every machine that this is built for. */
static int put_tile(struct web_ask *a, const struct zoom *z, const struct zoom_ask *ask,
	const struct zoom_tile *tile)
{
	struct text columns = {0}, names = {0}, *t = &a->to->body;
	struct local l = {0};
	uint32_t n_lanes;

	(void)zoom_lanes(z, &n_lanes);
	put_columns(&columns, tile, &l);
	put_names(a, z, &l, &names);
	text_fini(t);
	PUT(t, uint32_t, TILE_MAGIC);
	PUT(t, uint32_t, n_lanes);
	PUT(t, uint32_t, tile->n);
	PUT(t, uint32_t, l.n);
	PUT(t, double, ask->t0);
	PUT(t, double, (double)(ask->t1 - ask->t0) / ask->px);
	PUT(t, uint32_t, tile->coarse);
	PUT(t, uint32_t, names.n);
	text_add(t, columns.s, columns.n);
	text_add(t, names.s, names.n);
	t->failed |= columns.failed || names.failed || l.n > tile->n;
	text_fini(&columns);
	text_fini(&names);
	free(l.of);
	table_fini(&l.index);
	return t->failed ? err_set(&a->run->e, -ENOMEM, "out of memory") : 0;
}

/* Fewer slices, until it fits. */
static int fit_tile(struct web_ask *a, struct zoom *z, struct zoom_ask *ask)
{
	struct zoom_tile tile;
	int r;

	ask->most = (uint32_t)((TILE_BYTES - TILE_HEAD) / TILE_SLICE * 7 / 8);
	if (ask->most > ZOOM_SLICES_MAX)
		ask->most = ZOOM_SLICES_MAX;
	do {
		r = zoom_slices(z, ask, &tile, &a->run->e);
		if (r < 0)
			return r;
		r = put_tile(a, z, ask, &tile);
		zoom_tile_fini(&tile);
		ask->most /= 2;
	} while (r == 0 && a->to->body.n > TILE_BYTES && ask->most > 16);
	return r;
}

int web_window(struct web_ask *a)
{
	struct zoom_ask ask = {.px = 1};
	uint32_t *lanes = NULL;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0)
		r = read_ask(a, z, &ask, &lanes);
	if (r == 0)
		r = fit_tile(a, z, &ask);
	free(lanes);
	a->to->type = "application/octet-stream";
	return r;
}

/* --- arrows */

int web_arrows(struct web_ask *a)
{
	struct text *t = &a->to->body;
	struct zoom_ask ask = {.px = 1};
	struct zoom_arrows arrows;
	uint32_t *lanes = NULL, i;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0)
		r = read_ask(a, z, &ask, &lanes);
	if (r == 0)
		r = zoom_arrows(z, &ask, &arrows, &a->run->e);
	free(lanes);
	if (r < 0)
		return r;
	text_char(t, '{');
#define ARROW(column, member)                                \
	json_in(t, column, '[');                             \
	for (i = 0; i < arrows.n; i++)                       \
		json_f64(t, (double)arrows.arrow[i].member); \
	json_close(t, ']');
	ARROW("from_lane", from_lane)
	ARROW("from_depth", from_depth)
	ARROW("from", from_ns)
	ARROW("to_lane", to_lane)
	ARROW("to_depth", to_depth)
	ARROW("to", to_ns)
	ARROW("event", event)
#undef ARROW
	json_key_u64(t, "left_out", arrows.left_out);
	web_warnings(a);
	text_char(t, '}');
	zoom_arrows_fini(&arrows);
	return 0;
}

/* --- one event */

static void put_three(struct text *t, const char *key, const uint32_t v[3])
{
	json_key(t, key);
	text_fmt(t, "\"%u × %u × %u\"", v[0], v[1], v[2]);
}

static void put_op(struct text *t, const struct zoom_event *e, const struct zoom_lane *lane)
{
	json_key_str(t, "class", class_word(e->class));
	json_key_u64(t, "device", e->device);
	json_key_u64(t, "context", e->context);
	if (e->object_name[0] != '\0')
		json_key_str(t, "context_name", e->object_name);
	json_key_u64(t, "stream", e->stream);
	put_maybe(t, "correlation", (e->flags & TRACE_UNLAUNCHED) == 0, e->correlation);
	json_key_bool(t, "graph", (e->flags & TRACE_GRAPH) != 0);
	if (e->bytes > 0)
		json_key_u64(t, "bytes", e->bytes);
	if (e->launched) {
		json_key_str(t, "launched_by", lane[e->thread_lane].name);
		json_key_u64(t, "launch_delay_ns",
			e->start_ns > e->launch_ns ? e->start_ns - e->launch_ns : 0);
	}
	if (!e->configured)
		return;
	put_three(t, "grid", e->grid);
	put_three(t, "block", e->block);
	json_key_u64(t, "registers", e->registers);
	json_key_u64(t, "static_shared_bytes", e->static_shared);
	json_key_u64(t, "dynamic_shared_bytes", e->dynamic_shared);
}

static void put_place(
	struct web_ask *a, const struct zoom *z, const char *key, const struct zoom_place *p)
{
	struct text *t = &a->to->body;

	if (p->event == 0)
		return;
	json_in(t, key, '{');
	json_key_str(t, "name", name_of(a, z, p->name));
	json_key_u64(t, "event", p->event);
	json_key_u64(t, "lane", p->lane);
	json_key_u64(t, "depth", p->depth);
	json_key_u64(t, "start_ns", p->start_ns);
	json_key_u64(t, "dur_ns", p->end_ns - p->start_ns);
	json_close(t, '}');
}

/* A call that waits: for what, and what let it come back. */
static void put_sync(struct web_ask *a, const struct zoom *z, const struct zoom_event *e)
{
	struct text *t = &a->to->body;

	json_key_str(t, "class", class_word(e->class));
	if (e->stream != ZOOM_NONE)
		json_key_u64(t, "stream", e->stream);
	if (e->cuda_event != 0) {
		json_key(t, "cuda_event");
		text_fmt(t, "\"0x%llx\"", (unsigned long long)e->cuda_event);
	}
	if (e->object_name[0] != '\0')
		json_key_str(t, "cuda_event_name", e->object_name);
	if (e->record.event != 0 && e->record.stream != ZOOM_NONE)
		json_key_u64(t, "recorded_on_stream", e->record.stream);
	if (e->correlation != 0)
		json_key_u64(t, "correlation", e->correlation);
	put_place(a, z, "recorded_by", &e->record);
	put_place(a, z, "ended_by", &e->ended_by);
}

static void put_scope(struct text *t, const struct zoom_event *e)
{
	json_key_bool(t, "open", (e->flags & TRACE_OPEN) != 0);
	json_key_bool(t, "began_before", (e->flags & TRACE_BEGAN_BEFORE) != 0);
	json_key_bool(t, "unwound", (e->flags & TRACE_UNWOUND) != 0);
}

static void put_event(struct web_ask *a, const struct zoom *z, const struct zoom_event *e)
{
	struct text *t = &a->to->body;
	uint32_t i, n;
	const struct zoom_lane *lane = zoom_lanes(z, &n);
	const struct zoom_process *p = zoom_processes(z, &n);

	text_char(t, '{');
	json_key_str(t, "name", name_of(a, z, e->name));
	json_key_str(t, "recorded", zoom_name(z, e->name));
	json_in(t, "path", '[');
	for (i = 0; i < e->n_path; i++)
		json_str(t, name_of(a, z, e->path[i]));
	json_close(t, ']');
	json_key_u64(t, "lane", e->lane);
	json_key_u64(t, "depth", e->depth);
	json_key_u64(t, "start_ns", e->start_ns);
	json_key_u64(t, "dur_ns", e->end_ns - e->start_ns);
	json_key_i64(t, "process", p[lane[e->lane].process].pid);
	if (p[lane[e->lane].process].rank >= 0)
		json_key_i64(t, "rank", p[lane[e->lane].process].rank);
	if (e->is_op)
		put_op(t, e, lane);
	else if (e->is_sync)
		put_sync(a, z, e);
	else
		put_scope(t, e);
	web_warnings(a);
	text_char(t, '}');
}

int web_event(struct web_ask *a)
{
	uint64_t id = 0;
	struct zoom_event e;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0 && !web_query_u64(&a->q, "id", UINT32_MAX, &id))
		r = err_set(&a->run->e, -EINVAL, "event takes id=N, as a window has them");
	if (r == 0)
		r = zoom_event(z, (uint32_t)id, &e, &a->run->e);
	if (r == 0)
		put_event(a, z, &e);
	return r;
}

/* --- sums */

static void put_sums(struct web_ask *a, const struct zoom *z, const struct zoom_sums *sums)
{
	struct text *t = &a->to->body;
	uint32_t i;

	text_char(t, '{');
	json_in(t, "name", '[');
	for (i = 0; i < sums->n; i++)
		json_str(t, name_of(a, z, sums->sum[i].name));
	json_close(t, ']');
#define SUM(column, member)                               \
	json_in(t, column, '[');                          \
	for (i = 0; i < sums->n; i++)                     \
		json_f64(t, (double)sums->sum[i].member); \
	json_close(t, ']');
	SUM("count", count)
	SUM("total", total_ns)
	SUM("min", min_ns)
	SUM("max", max_ns)
#undef SUM
	json_in(t, "rest", '{');
	json_key_u64(t, "names", sums->rest_names);
	json_key_u64(t, "count", sums->rest.count);
	json_key_u64(t, "total", sums->rest.total_ns);
	json_close(t, '}');
	web_warnings(a);
	text_char(t, '}');
}

int web_sums(struct web_ask *a)
{
	struct zoom_ask ask = {.px = 1};
	struct zoom_sums sums;
	uint32_t *lanes = NULL;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0)
		r = read_ask(a, z, &ask, &lanes);
	if (r == 0)
		r = zoom_sums(z, &ask, &sums, &a->run->e);
	free(lanes);
	if (r < 0)
		return r;
	put_sums(a, z, &sums);
	zoom_sums_fini(&sums);
	return 0;
}

/* --- counters */

static void put_pixels(struct text *t, const struct zoom_count *v, uint32_t n)
{
	uint32_t i;

#define PIXELS(column, member)                    \
	json_in(t, column, '[');                  \
	for (i = 0; i < n; i++)                   \
		json_f64(t, (double)v[i].member); \
	json_close(t, ']');
	PIXELS("px", px)
	PIXELS("count", all.count)
	PIXELS("min", all.min)
	PIXELS("max", all.max)
	PIXELS("last", all.last)
#undef PIXELS
}

/* Those with nothing in the window, too: they are named, and have the number of before. */
static void put_counter(struct text *t, const struct zoom_counter *c, uint32_t id,
	const struct zoom_process *p, double before)
{
	char name[256], unit[64];

	metric_bare(c->name, name, sizeof(name));
	metric_unit(c->name, unit, sizeof(unit));
	json_key_u64(t, "id", id);
	json_key_str(t, "name", name);
	json_key_str(t, "unit", unit);
	json_key_i64(t, "process", p->pid);
	put_maybe(t, "rank", p->rank >= 0, p->rank);
	json_key_u64(t, "told", c->told);
	json_key(t, "least");
	json_number(t, c->min);
	json_key(t, "most");
	json_number(t, c->max);
	json_key(t, "before");
	json_number(t, before);
}

static void put_counts(struct web_ask *a, const struct zoom *z, const struct zoom_ask *ask,
	const struct zoom_counts *v)
{
	struct text *t = &a->to->body;
	uint32_t i, n, n_counters, n_processes, at = 0;
	uint64_t left_out;
	const struct zoom_counter *c = zoom_counters(z, &n_counters, &left_out);
	const struct zoom_process *p = zoom_processes(z, &n_processes);

	text_char(t, '{');
	json_key_u64(t, "px", v->px);
	json_key_bool(t, "coarse", v->coarse);
	json_key_u64(t, "left_out", left_out);
	json_in(t, "counter", '[');
	for (i = 0; i < n_counters; i++, at += n) {
		for (n = 0; at + n < v->n && v->v[at + n].counter == i; n++)
			;
		if (n == 0 && ask->lane != NULL)
			continue;
		json_open(t, '{');
		put_counter(t, &c[i], i, &p[c[i].process], v->before[i]);
		put_pixels(t, v->v + at, n);
		json_close(t, '}');
	}
	json_close(t, ']');
	web_warnings(a);
	text_char(t, '}');
}

int web_counters(struct web_ask *a)
{
	struct zoom_ask ask = {.px = 1};
	struct zoom_counts counts;
	uint32_t *wanted = NULL;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0)
		r = read_ask_of(a, z, "counters", &ask, &wanted);
	if (r == 0)
		r = zoom_count(z, &ask, &counts, &a->run->e);
	if (r == 0) {
		put_counts(a, z, &ask, &counts);
		zoom_counts_fini(&counts);
	}
	free(wanted);
	return r;
}

/* --- search */

/* A name as people read it is found as it was recorded. */
static const char *recorded(struct web_ask *a, const struct zoom *z, const char *shown)
{
	const char *name;
	uint32_t i;

	for (i = 0; *(name = zoom_name(z, i)) != '\0'; i++)
		if (strncmp(name, "_Z", 2) == 0 &&
			strcmp(names_show(a->run->print.names, name), shown) == 0)
			return name;
	return shown;
}

int web_find(struct web_ask *a)
{
	const char *dir = web_query_get(&a->q, "dir"), *event = web_query_get(&a->q, "event");
	struct zoom_find f = {.part = web_query_get(&a->q, "name"),
		.back = dir != NULL && strcmp(dir, "prev") == 0,
		.whole = event != NULL};
	uint64_t id = 0;
	struct text *t = &a->to->body;
	struct zoom_slice s = {0};
	uint32_t *lanes = NULL;
	struct zoom *z;
	int r = web_zoom(a, &z);

	if (r == 0)
		r = read_numbers(a, "lanes", &lanes, &f.n_lanes);
	f.lane = lanes;
	if (r == 0 && (f.part == NULL || *f.part == '\0' ||
			      !web_query_u64(&a->q, "from", UINT64_MAX / 4, &f.from_ns) ||
			      (event != NULL && !web_query_u64(&a->q, "event", UINT32_MAX, &id))))
		r = err_set(&a->run->e, -EINVAL,
			"find takes name=TEXT&from=NS&dir=next or prev, and event=ID: from that "
			"event to others of this very name");
	if (r == 0) {
		f.event = (uint32_t)id;
		f.part = recorded(a, z, f.part);
		r = zoom_find(z, &f, &s, &a->run->e);
	}
	free(lanes);
	if (r < 0 && r != -ENOENT)
		return r;
	text_char(t, '{');
	json_key_bool(t, "found", r == 0);
	if (r == 0) {
		json_key_str(t, "name", name_of(a, z, s.name));
		json_key_u64(t, "id", s.event);
		json_key_u64(t, "lane", s.lane);
		json_key_u64(t, "depth", s.depth);
		json_key_u64(t, "start", s.start_ns);
		json_key_u64(t, "dur", s.end_ns - s.start_ns);
	}
	web_warnings(a);
	text_char(t, '}');
	return 0;
}
