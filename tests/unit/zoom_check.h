/* SPDX-License-Identifier: MIT. zoom_check.h: whether what a timeline answers by window is what its events
 * say, which come by another way: proto/export's walk over all of them. Of whoever includes it:
 * CHECK(true or not, words…), and draw(), a random number. */
#ifndef ZOOM_CHECK_H
#define ZOOM_CHECK_H

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../proto/export/timeline.h" /* daemon/fold has one, too */
#include "table.h"
#include "zoom.h"

struct seen { /* an event */
	uint64_t start, end, launch;
	const char *name;
	uint32_t process, number, device, depth,
		thread; /* number: tid or stream; thread: launched; depth: op: scopes above */
	bool op, task, sync;
	uint32_t lane;
};

struct burst_seen {
	uint64_t start, end, n;
	uint32_t process, tid;
};

struct told { /* a number */
	uint64_t ns;
	double v;
	const char *name;
	uint32_t process;
};

struct all_seen {
	struct seen *v;
	uint32_t n, cap, process;
	struct told *told;
	uint32_t n_told, cap_told;
	struct burst_seen *burst;
	uint32_t n_bursts, cap_bursts;
};

static struct seen *see(struct timeline *w, const struct seen *s)
{
	struct all_seen *a = w->mine;

	if (!ROOM_FOR(a->v, a->cap, a->n))
		abort();
	a->v[a->n] = *s;
	a->v[a->n].process = a->process - 1;
	a->v[a->n].name = strdup(s->name);
	return &a->v[a->n++];
}

static void see_process(struct timeline *w)
{
	((struct all_seen *)w->mine)->process++;
}

static void see_told(struct timeline *w, const struct held *h)
{
	struct all_seen *a = w->mine;
	double v;

	memcpy(&v, &h->bits, sizeof(v));
	v = h->type == VALUE_I64   ? (double)(int64_t)h->bits
	    : h->type == VALUE_U64 ? (double)h->bits
				   : v;
	if (h->type == VALUE_STR)
		return;
	if (!ROOM_FOR(a->told, a->cap_told, a->n_told))
		abort();
	a->told[a->n_told++] = (struct told){
		trace_time_ring(&w->time, &w->at, h->clock), v, strdup(h->name), a->process - 1};
}

static void see_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	(void)ns;
	see_told(w, h);
}

static void see_scope(struct timeline *w, const struct timeline_scope *s)
{
	uint32_t i;

	for (i = 0; i < s->n_metrics; i++)
		see_told(w, &w->held[w->taken[i]]);
	see(w, &(struct seen){.start = s->begin_ns,
		       .end = s->end_ns,
		       .name = w->known[s->node].name,
		       .number = s->tid,
		       .device = ZOOM_NONE,
		       .task = (s->flags & TRACE_SPAN) != 0,
		       .sync = timeline_is_sync(s)});
}

static void see_op(struct timeline *w, const struct timeline_op *o)
{
	see(w, &(struct seen){.start = o->start_ns,
		       .end = o->end_ns,
		       .name = w->known[o->node].name,
		       .number = o->stream->stream,
		       .device = o->gpu->ordinal,
		       .op = true,
		       .depth = trace_names_depth(&w->names, o->node),
		       .launch = (o->op->flags & TRACE_UNLAUNCHED) == 0 ? o->launch_ns : UINT64_MAX,
		       .thread = o->tid});
}

static void see_burst(struct timeline *w, const struct timeline_burst *b)
{
	struct all_seen *a = w->mine;

	if (!ROOM_FOR(a->burst, a->cap_bursts, a->n_bursts))
		abort();
	a->burst[a->n_bursts++] =
		(struct burst_seen){b->begin_ns, b->end_ns, b->n, a->process - 1, b->tid};
}

static void see_all(sqlite3 *db, int64_t session, struct all_seen *a)
{
	static const struct timeline_form form = {.process = see_process,
		.scope = see_scope,
		.op = see_op,
		.metric = see_metric,
		.burst = see_burst};
	FILE *none = fopen("/dev/null", "w");
	struct err e = {0};
	int r = timeline_write(&form, a, db, session, NULL, none, NULL, &e);

	(void)fclose(none);
	CHECK(r == 0, "%s", e.text);
}

static void unsee(struct all_seen *a)
{
	while (a->n > 0)
		free((void *)(uintptr_t)a->v[--a->n].name);
	while (a->n_told > 0)
		free((void *)(uintptr_t)a->told[--a->n_told].name);
	free(a->v);
	free(a->told);
	free(a->burst);
}

static uint32_t lane_seen(const struct zoom *w, const struct seen *s)
{
	const uint8_t kind = s->op     ? ZOOM_STREAM
			     : s->task ? ZOOM_TASKS
			     : s->sync ? ZOOM_SYNCS
				       : ZOOM_THREAD;
	const struct zoom_lane *lane;
	uint32_t i, n;

	lane = zoom_lanes(w, &n);
	for (i = 0; i < n; i++)
		if (lane[i].kind == kind && lane[i].process == s->process &&
			lane[i].number == s->number && lane[i].device == s->device)
			return i;
	CHECK(false, "no lane of %s %u", s->op ? "stream" : "thread", s->number);
	return 0;
}

static bool touches_seen(const struct seen *s, uint64_t t0, uint64_t t1)
{
	return s->start < t1 && (s->end > t0 || s->start == t0);
}

static uint32_t burst_lane(const struct zoom *w, const struct burst_seen *b)
{
	const struct zoom_lane *lane;
	uint32_t i, n;

	lane = zoom_lanes(w, &n);
	for (i = 0; i < n; i++)
		if (lane[i].kind == ZOOM_SUMMED && lane[i].process == b->process &&
			lane[i].number == b->tid)
			break;
	CHECK(i < n && lane[lane[i].parent].kind == ZOOM_THREAD &&
			lane[lane[i].parent].number == b->tid && lane[i].rows == 1,
		"no lane of what was summed of thread %u", b->tid);
	return i;
}

/* What a lane's slices have together. */
struct lane_sum {
	uint64_t events, inside, busy;
};

/* Slices of a row do not overlap, but for projected ones at the seams of what was read. */
static void check_slices(const struct zoom_tile *t, const struct zoom_lane *lane, uint32_t n_lanes,
	const struct zoom_ask *a, struct lane_sum *sum)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		const struct zoom_slice *s = &t->slice[i], *before = i > 0 ? s - 1 : NULL;

		CHECK(s->lane < n_lanes && s->depth < lane[s->lane].rows && s->count > 0,
			"slice %u has no place", i);
		CHECK(s->start_ns <= s->end_ns && s->start_ns < a->t1 && s->end_ns >= a->t0,
			"slice %u lies outside of the window", i);
		CHECK(before == NULL || before->lane < s->lane ||
				(before->lane == s->lane &&
					(before->depth < s->depth ||
						(before->depth == s->depth &&
							before->start_ns <= s->start_ns))),
			"slice %u is out of order", i);
		CHECK((lane[s->lane].kind != ZOOM_TASKS && lane[s->lane].kind != ZOOM_STREAM) ||
				before == NULL || before->lane != s->lane ||
				before->depth != s->depth || before->end_ns <= s->start_ns ||
				(before->count + s->count > 2 &&
					before->end_ns - s->start_ns <= 2 * t->merge_ns),
			"slices lie over each other in row %u of lane %u: %llu to %llu, and from "
			"%llu",
			s->depth, s->lane, (unsigned long long)before->start_ns,
			(unsigned long long)before->end_ns, (unsigned long long)s->start_ns);
		sum[s->lane].events += s->count;
		sum[s->lane].busy += s->busy_ns;
		if (s->start_ns >= a->t0 && s->end_ns <= a->t1)
			sum[s->lane].inside += s->count;
	}
}

/* An event that is at least as long as what is merged stands there by itself. */
static void check_long(const struct zoom *w, const struct zoom_tile *t, const struct seen *s)
{
	uint32_t low = 0, high = t->n, i;

	while (low < high) { /* the first of its lane */
		i = (low + high) / 2;
		if (t->slice[i].lane < s->lane)
			low = i + 1;
		else
			high = i;
	}
	for (i = low; i < t->n && t->slice[i].lane == s->lane; i++)
		if (t->slice[i].start_ns == s->start && t->slice[i].end_ns == s->end &&
			t->slice[i].count == 1 && t->slice[i].event != 0 &&
			strcmp(zoom_name(w, t->slice[i].name), s->name) == 0)
			return;
	CHECK(false, "'%s' at %llu, %llu ns long, is not shown where %llu ns are merged", s->name,
		(unsigned long long)s->start, (unsigned long long)(s->end - s->start),
		(unsigned long long)t->merge_ns);
}

static void check_window(struct zoom *w, const struct all_seen *all, const struct zoom_ask *a)
{
	const uint32_t most = a->most == 0 ? ZOOM_SLICES_MAX : a->most;
	uint32_t n_lanes, i;
	const struct zoom_lane *lane = zoom_lanes(w, &n_lanes);
	struct lane_sum *is = calloc(n_lanes + 1, sizeof(*is)),
			*due = calloc(n_lanes + 1, sizeof(*due));
	struct zoom_tile t;
	struct err e = {0};
	int r = zoom_slices(w, a, &t, &e);

	CHECK(r == 0 && is != NULL && due != NULL, "%s", e.text);
	CHECK(t.n <= most, "%u slices", t.n);
	check_slices(&t, lane, n_lanes, a, is);
	for (i = 0; i < all->n; i++) {
		if (!touches_seen(&all->v[i], a->t0, a->t1))
			continue;
		due[all->v[i].lane].events++;
		due[all->v[i].lane].busy += all->v[i].end - all->v[i].start;
		if (all->v[i].end - all->v[i].start >= t.merge_ns && t.n < most)
			check_long(w, &t, &all->v[i]);
	}
	for (i = 0; i < all->n_bursts; i++) {
		const struct burst_seen *b = &all->burst[i];
		const uint32_t at = burst_lane(w, b);

		if (b->start >= a->t1 || (b->end <= a->t0 && b->start != a->t0))
			continue;
		due[at].events += b->n;
		due[at].busy += b->end - b->start;
	}
	/* What is merged across the window's edge may have more in it. */
	for (i = 0; i < n_lanes; i++) {
		if (lane[i].kind == ZOOM_PROJECTED || t.n == most)
			continue; /* full: there are more rows than slices were asked for */
		CHECK(is[i].events >= due[i].events && is[i].inside <= due[i].events,
			"[%llu, %llu), %u px: lane %u (%s): %llu events shown, %llu of them "
			"inside; %llu are there",
			(unsigned long long)a->t0, (unsigned long long)a->t1, a->px, i,
			lane[i].name, (unsigned long long)is[i].events,
			(unsigned long long)is[i].inside, (unsigned long long)due[i].events);
		CHECK(is[i].events != due[i].events ||
				llabs((long long)(is[i].busy - due[i].busy)) <=
					(long long)(is[i].events + due[i].busy / 1000000),
			"lane %u (%s): busy for %llu ns, not %llu", i, lane[i].name,
			(unsigned long long)is[i].busy, (unsigned long long)due[i].busy);
	}
	zoom_tile_fini(&t);
	free(is);
	free(due);
}

static bool is_boxed(const struct seen *s, const struct zoom_ask *a)
{
	return touches_seen(s, a->t0, a->t1) && (a->lane == NULL || *a->lane == s->lane);
}

/* Of all lanes, or of one. */
static void check_sums(struct zoom *w, const struct all_seen *all, const struct zoom_ask *window)
{
	struct zoom_ask box = *window, *a = &box;
	struct zoom_sums s;
	struct err e = {0};
	uint64_t total = 0, events = 0;
	uint32_t i, k, n_lanes, lane;

	(void)zoom_lanes(w, &n_lanes);
	lane = (uint32_t)(draw() % (2 * n_lanes));
	if (lane < n_lanes) {
		box.lane = &lane;
		box.n_lanes = 1;
	}
	CHECK(zoom_sums(w, a, &s, &e) == 0, "%s", e.text);
	for (i = 0; i < s.n; i++) {
		struct zoom_sum due = {.min_ns = UINT64_MAX};

		for (k = 0; k < all->n; k++) {
			const uint64_t length = all->v[k].end - all->v[k].start;

			if (!is_boxed(&all->v[k], a) ||
				strcmp(all->v[k].name, zoom_name(w, s.sum[i].name)) != 0)
				continue;
			due.count++;
			due.total_ns += length;
			due.min_ns = length < due.min_ns ? length : due.min_ns;
			due.max_ns = length > due.max_ns ? length : due.max_ns;
		}
		CHECK(due.count == s.sum[i].count && due.total_ns == s.sum[i].total_ns &&
				due.min_ns == s.sum[i].min_ns && due.max_ns == s.sum[i].max_ns,
			"'%s': %u in %llu ns, not %u in %llu", zoom_name(w, s.sum[i].name),
			s.sum[i].count, (unsigned long long)s.sum[i].total_ns, due.count,
			(unsigned long long)due.total_ns);
		events += s.sum[i].count;
		CHECK(i == 0 || s.sum[i - 1].total_ns >= s.sum[i].total_ns, "out of order");
	}
	for (k = 0; k < all->n; k++)
		total += is_boxed(&all->v[k], a);
	CHECK(events + s.rest.count == total, "%llu events in the sums, %llu in the box",
		(unsigned long long)(events + s.rest.count), (unsigned long long)total);
	zoom_sums_fini(&s);
}

static bool is_told(const struct told *x, const struct zoom_counter *c)
{
	return x->process == c->process && strcmp(x->name, c->name) == 0;
}

/* One pixel of one counter; returns how many numbers are in it. */
static uint64_t check_pixel(const struct all_seen *all, const struct zoom_counter *c,
	const struct zoom_ask *a, const struct zoom_counts *is, const struct zoom_count *v)
{
	struct zoom_point due = {.min = HUGE_VAL, .max = -HUGE_VAL};
	bool last = false;
	uint32_t i;

	for (i = 0; i < all->n_told; i++) {
		const struct told *x = &all->told[i];

		if (!is_told(x, c) || x->ns < a->t0 || x->ns >= a->t1 ||
			(i128)(x->ns - a->t0) * is->px / (a->t1 - a->t0) != v->px)
			continue;
		due.count++;
		due.min = x->v < due.min ? x->v : due.min;
		due.max = x->v > due.max ? x->v : due.max;
		last = x->ns > due.ns ? x->v == v->all.last : last || x->v == v->all.last;
		due.ns = x->ns > due.ns ? x->ns : due.ns;
	}
	CHECK(due.count == v->all.count && due.min == v->all.min && due.max == v->all.max && last,
		"'%s', pixel %u of %u: %u numbers from %g to %g, not %u from %g to %g", c->name,
		v->px, is->px, v->all.count, v->all.min, v->all.max, due.count, due.min, due.max);
	return due.count;
}

/* Of what is not thinned. */
static void check_counters(
	struct zoom *w, const struct all_seen *all, const struct zoom_ask *window)
{
	struct zoom_ask a = *window;
	uint32_t i, k, n, one;
	uint64_t left_out, told, due;
	const struct zoom_counter *c = zoom_counters(w, &n, &left_out);
	struct zoom_counts is;
	struct err e = {0};

	if (n == 0)
		return;
	one = (uint32_t)(draw() % n);
	a.lane = draw() % 2 == 0 ? &one : NULL;
	a.n_lanes = 1;
	CHECK(zoom_count(w, &a, &is, &e) == 0, "%s", e.text);
	CHECK(is.n <= ZOOM_COUNTS_MAX && is.px <= a.px && left_out == 0, "%u pixels", is.n);
	for (i = 0; i < n; i++) {
		uint64_t before = 0;

		told = due = 0;
		for (k = 0; k < is.n; k++)
			if (is.v[k].counter == i)
				told += check_pixel(all, &c[i], &a, &is, &is.v[k]);
		for (k = 0; k < all->n_told; k++) {
			const uint64_t ns = all->told[k].ns;

			if (!is_told(&all->told[k], &c[i]))
				continue;
			due += ns >= a.t0 && ns < a.t1 && (a.lane == NULL || one == i);
			before = ns < a.t0 && ns > before ? ns : before;
		}
		CHECK(told == due, "'%s': %llu numbers, not %llu", c[i].name,
			(unsigned long long)told, (unsigned long long)due);
		for (k = 0; k < all->n_told; k++)
			if (is_told(&all->told[k], &c[i]) && all->told[k].ns == before &&
				all->told[k].v == is.before[i])
				break;
		CHECK(before == 0 || k < all->n_told, "'%s' was not %g before", c[i].name,
			is.before[i]);
	}
	zoom_counts_fini(&is);
}

static void check_find(struct zoom *w, const struct all_seen *all, uint64_t from, bool back)
{
	const struct seen *one = &all->v[draw() % all->n], *best = NULL;
	const struct zoom_find f = {.part = one->name, .from_ns = from, .back = back};
	struct zoom_slice s;
	struct err e = {0};
	uint32_t i;
	int r = zoom_find(w, &f, &s, &e);

	for (i = 0; i < all->n; i++) {
		const struct seen *v = &all->v[i];

		if (strcasestr(v->name, one->name) == NULL ||
			(back ? v->start >= from : v->start <= from))
			continue;
		if (best == NULL || (back ? v->start > best->start : v->start < best->start))
			best = v;
	}
	CHECK(r == (best == NULL ? -ENOENT : 0), "%s", e.text);
	CHECK(best == NULL || s.start_ns == best->start, "'%s' at %llu, not at %llu", one->name,
		best == NULL ? 0 : (unsigned long long)s.start_ns,
		best == NULL ? 0 : (unsigned long long)best->start);
}

static void check_event(struct zoom *w, const struct all_seen *all, const struct zoom_ask *a)
{
	struct zoom_event d;
	struct zoom_tile t;
	struct err e = {0};
	uint32_t i, k;

	CHECK(zoom_slices(w, a, &t, &e) == 0, "%s", e.text);
	for (i = 0; i < t.n; i += 1 + t.n / 8) {
		if (t.slice[i].event == 0)
			continue;
		CHECK(zoom_event(w, t.slice[i].event, &d, &e) == 0, "%s", e.text);
		CHECK(d.start_ns == t.slice[i].start_ns && d.end_ns == t.slice[i].end_ns &&
				d.name == t.slice[i].name && d.lane == t.slice[i].lane &&
				d.depth == t.slice[i].depth,
			"event %u is another one than its slice", t.slice[i].event);
		CHECK(d.n_path > 0 && d.path[d.n_path - 1] == d.name, "its path ends elsewhere");
		for (k = 0; k < all->n; k++)
			if (all->v[k].lane == d.lane && all->v[k].start == d.start_ns &&
				all->v[k].end == d.end_ns && all->v[k].op == d.is_op &&
				(!d.launched || all->v[k].launch == d.launch_ns ||
					all->v[k].launch == 0))
				break;
		CHECK(k < all->n, "event %u does not exist", t.slice[i].event);
	}
	zoom_tile_fini(&t);
}

/* --- scopes on streams: as the file for HTA has them */

struct cast_seen {
	uint64_t id, start, end, length; /* length: of the scope itself */
	int64_t gpu;
	uint32_t stream;
	const char *name;
};

static void see_length(json_t *x, struct cast_seen *v, uint32_t n)
{
	const uint64_t id = (uint64_t)json_integer_value(
		json_object_get(json_object_get(x, "args"), "External id"));

	for (uint32_t i = 0; i < n; i++)
		if (v[i].id == id)
			v[i].length = (uint64_t)llround(
				json_number_value(json_object_get(x, "dur")) * 1000);
}

static void see_cast(json_t *x, struct cast_seen *v, uint32_t *n, uint32_t most)
{
	const struct cast_seen s = {.id = (uint64_t)json_integer_value(json_object_get(
					    json_object_get(x, "args"), "External id")),
		.start = (uint64_t)llround(json_number_value(json_object_get(x, "ts")) * 1000),
		.end = (uint64_t)llround((json_number_value(json_object_get(x, "ts")) +
						 json_number_value(json_object_get(x, "dur"))) *
					 1000),
		.gpu = json_integer_value(json_object_get(x, "pid")),
		.length = UINT64_MAX,
		.stream = (uint32_t)(json_integer_value(json_object_get(x, "tid")) % 1000000),
		.name = json_string_value(json_object_get(x, "name"))};
	uint32_t i = *n;

	while (i > 0 &&
		(v[i - 1].id != s.id || v[i - 1].gpu != s.gpu || v[i - 1].stream != s.stream))
		i--;
	if (s.id == 0 || *n == most) /* of a run it is not said which it is */
		return;
	if (i == 0) {
		v[(*n)++] = s;
		return;
	}
	v[i - 1].start = s.start < v[i - 1].start ? s.start : v[i - 1].start;
	v[i - 1].end = s.end > v[i - 1].end ? s.end : v[i - 1].end;
}

static bool same_scope(const char *there, const char *here)
{
	return strcmp(there, here) == 0 ||
	       (strncmp(there, "ProfilerStep#", 13) == 0 && timeline_is_step(here));
}

/* It stands in a window of its own length, where the scope itself is no shorter than a pixel. */
static void check_cast(struct zoom *w, const struct cast_seen *s)
{
	const struct zoom_ask a = {.t0 = s->start, .t1 = s->end + 1, .px = ZOOM_PX_MAX};
	uint32_t i, n;
	const struct zoom_lane *lane = zoom_lanes(w, &n);
	struct zoom_tile t;
	struct err e = {0};

	CHECK(zoom_slices(w, &a, &t, &e) == 0, "%s", e.text);
	for (i = 0; i < t.n; i++) {
		const struct zoom_slice *x = &t.slice[i];
		const uint64_t off = x->start_ns > s->start ? x->start_ns - s->start
							    : s->start - x->start_ns,
			       late = x->end_ns > s->end ? x->end_ns - s->end : s->end - x->end_ns;

		if (lane[x->lane].kind == ZOOM_PROJECTED && lane[x->lane].number == s->stream &&
			(x->count > 1 || same_scope(s->name, zoom_name(w, x->name))) &&
			off < t.merge_ns && late < t.merge_ns)
			break;
	}
	CHECK(i < t.n || s->length <= t.merge_ns,
		"'%s' on stream %u from %llu to %llu is not shown", s->name, s->stream,
		(unsigned long long)s->start, (unsigned long long)s->end);
	zoom_tile_fini(&t);
}

static void check_casts(struct zoom *w, sqlite3 *db, int64_t session, uint32_t some)
{
	enum { MOST = 20000 };
	struct cast_seen *v = calloc(MOST, sizeof(*v));
	struct err e = {0};
	char *bytes;
	size_t n_bytes, i;
	uint32_t n = 0;
	FILE *f = open_memstream(&bytes, &n_bytes);
	json_t *j, *x;

	CHECK(v != NULL && kineto_write(db, session, NULL, f, NULL, &e) == 0, "%s", e.text);
	(void)fclose(f);
	j = json_loadb(bytes, n_bytes, 0, NULL);
	json_array_foreach(json_object_get(j, "traceEvents"), i, x)
	{
		const char *cat = json_string_value(json_object_get(x, "cat"));

		if (cat != NULL && strcmp(cat, "gpu_user_annotation") == 0)
			see_cast(x, v, &n, MOST);
	}
	json_array_foreach(json_object_get(j, "traceEvents"), i, x)
	{
		const char *cat = json_string_value(json_object_get(x, "cat"));

		if (cat != NULL && strcmp(cat, "user_annotation") == 0)
			see_length(x, v, n);
	}
	/* Of work that overlaps in many ways the file leaves some out. */
	if (json_integer_value(json_object_get(j, "projectionsLeftOut")) > 0 || n == MOST)
		n = 0;
	for (; n > 0 && some > 0; some--)
		check_cast(w, &v[draw() % n]);
	json_decref(j);
	free(bytes);
	free(v);
}

/* A stream's scopes have the rows that they need. */
static void check_rows(const struct zoom *w, const struct all_seen *all)
{
	uint32_t n, i, k, due;
	const struct zoom_lane *lane = zoom_lanes(w, &n);

	for (i = 0; i < n; i++) {
		if (lane[i].kind != ZOOM_PROJECTED)
			continue;
		for (k = due = 0; k < all->n; k++)
			if (all->v[k].lane == lane[i].parent && all->v[k].depth > due)
				due = all->v[k].depth;
		CHECK(lane[i].rows == due, "%s: %u rows, not %u", lane[i].name, lane[i].rows, due);
	}
}

/* All of it: so many windows of all lengths, around events. */
static void zoom_check(sqlite3 *db, int64_t session, uint32_t windows)
{
	struct all_seen all = {.n = 0};
	struct zoom_ask a = {.px = 1};
	struct zoom *w;
	struct err e = {0};
	uint64_t t0, t1;
	uint32_t i;

	CHECK(zoom_open(db, session, NULL, &w, &e) == 0, "%s", e.text);
	see_all(db, session, &all);
	for (i = 0; i < all.n; i++)
		all.v[i].lane = lane_seen(w, &all.v[i]);
	check_rows(w, &all);
	zoom_range(w, &t0, &t1);
	for (i = 0; i < windows && all.n > 0; i++) {
		const uint64_t at = all.v[draw() % all.n].start, length = (t1 - t0) >> draw() % 40;

		a.t0 = i == 0 || length / 2 > at ? 0 : at - length / 2;
		a.t1 = i == 0 ? t1 + 1 : a.t0 + length + 1;
		a.px = 1 + (uint32_t)(draw() % 2000);
		a.most = draw() % 4 == 0 ? 1 + (uint32_t)(draw() % 100) : 0;
		check_window(w, &all, &a);
		a.most = 0;
		check_event(w, &all, &a);
		if (i % 8 == 0)
			check_sums(w, &all, &a);
		if (i % 4 == 0)
			check_counters(w, &all, &a);
		check_find(w, &all, at, draw() % 2 == 0);
	}
	check_casts(w, db, session, 4 * windows);
	zoom_free(w);
	unsee(&all);
}

#endif
