/* SPDX-License-Identifier: MIT. zoom_chunk.c: a chunk in the index, and its items at a level: read, in
 * nanoseconds, and kept for a while. */
#include "trace_rows.h"
#include "zoom_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

int zoom_no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory for the timeline");
}

void zoom_chunk_fini(struct zoomed_chunk *c)
{
	uint32_t i;

	for (i = 0; c->level != NULL && (i == 0 || i < c->n_levels); i++)
		free(c->level[i].item);
	free(c->level);
	free(c->track);
	free(c->row);
	free(c->node);
	free(c->thread);
	free(c->blob);
}

/* --- from the chunk's places to the session's */

/* What a lane's events are under: a thread's depth, a stream's row. */
static struct zoomed_lane lane_key(
	uint32_t process, const struct trace_chunk *c, const struct trace_track *t)
{
	struct zoomed_lane key = {.process = process, .device = ZOOM_NONE};

	if (t->kind == TRACK_STREAM) {
		key.kind = ZOOM_STREAM;
		key.device = c->stream[t->place].device;
		key.number = c->stream[t->place].stream;
	} else {
		key.kind = t->kind == TRACK_TASKS   ? ZOOM_TASKS
			   : t->kind == TRACK_SYNCS ? ZOOM_SYNCS
						    : ZOOM_THREAD;
		key.number = c->thread[t->place].tid;
	}
	return key;
}

/* Twice as many as there are: zoom_settle() (zoom_int.h). */
static int map_tracks(struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c,
	const struct trace_tracks *t, struct zoomed_track **ret, struct err *e)
{
	struct zoomed_lane *lane;
	uint32_t i, at;

	*ret = calloc(2 * (size_t)t->n_tracks + 1, sizeof(**ret));
	if (*ret == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < t->n_tracks; i++) {
		at = zoom_lane_of(w, lane_key(k->process, c, &t->track[i]));
		if (at == ZOOM_NONE)
			return zoom_no_memory(e);
		(*ret)[i] = (struct zoomed_track){at, t->track[i].row};
		lane = &w->lane[at];
		if (lane->kind == ZOOM_SYNCS)
			lane->of = k->thread[t->track[i].place];
		if (w->show != NULL)
			continue;
		lane->low = t->track[i].row < lane->low ? t->track[i].row : lane->low;
		lane->high = t->track[i].row > lane->high ? t->track[i].row : lane->high;
	}
	return 0;
}

/* Of scopes: by the ring's clock. */
static void map_scope(struct zoom *w, struct trace_process *p, struct trace_item *v)
{
	const uint64_t raw = v->end - v->start;
	uint64_t length;

	v->start = trace_time_ring(&w->time, p, v->start);
	v->end = trace_time_ring(&w->time, p, v->end);
	v->end = v->end > v->start ? v->end : v->start;
	length = v->end - v->start;
	v->busy = raw == v->busy || raw == 0
			  ? length
			  : (uint64_t)((double)v->busy / (double)raw * (double)length);
}

/* Items become the session's, where they stand. */
static void map_items(struct zoom *w, const struct zoomed_chunk *k, struct zoomed_part *p)
{
	struct trace_process *process = &w->process[k->process].p;
	struct trace_item *v = p->item;
	uint64_t length;
	uint32_t i;

	for (i = 0; i < p->n; i++, v++) {
		v->node = k->node[v->node];
		v->longest = k->node[v->longest];
		if (w->lane[p->track[v->track].lane].kind == ZOOM_STREAM) {
			length = v->end - v->start;
			v->start = trace_time_real(&w->time, v->start);
			v->end = v->start + length;
		} else {
			map_scope(w, process, v);
		}
		v->launched = v->thread == TRACE_NONE
				      ? ZOOM_NEVER
				      : trace_time_ring(&w->time, process, v->launched);
		v->thread = v->thread == TRACE_NONE ? ZOOM_NONE : k->thread[v->thread];
	}
}

static int map_nodes(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	struct zoomed_process *p = &w->process[k->process];
	uint16_t depth;
	uint32_t i;
	int r = 0;

	k->node = calloc((size_t)c->n[TRACE_N_NODES] + 1, sizeof(*k->node));
	if (k->node == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < c->n[TRACE_N_NODES] && r == 0; i++) {
		r = trace_names_find(&w->names, c->node[i], &k->node[i], e);
		if (r < 0 || trace_names_timed(&w->names, k->node[i]))
			continue;
		depth = trace_names_depth(&w->names, k->node[i]);
		p->deepest = depth > p->deepest ? depth : p->deepest;
	}
	return r;
}

static int map_threads(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	const char *name;
	uint32_t i, at;

	k->thread = calloc((size_t)c->n[TRACE_N_THREADS] + 1, sizeof(*k->thread));
	if (k->thread == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < c->n[TRACE_N_THREADS]; i++) {
		at = zoom_lane_of(w, (struct zoomed_lane){.process = k->process,
					     .device = ZOOM_NONE,
					     .number = c->thread[i].tid,
					     .kind = ZOOM_THREAD});
		if (at == ZOOM_NONE)
			return zoom_no_memory(e);
		k->thread[i] = at;
		if (c->thread[i].name == TRACE_NONE || w->lane[at].own != NULL)
			continue;
		name = c->text[c->thread[i].name];
		w->lane[at].own = profile_text(w->l.p, name, strlen(name));
		if (w->lane[at].own == NULL)
			return zoom_no_memory(e);
	}
	return 0;
}

/* --- events */

static int bad_chunk(struct err *e)
{
	return err_set(e, -EBADMSG, "a chunk of the timeline is damaged");
}

static uint16_t *depths_of(struct zoom *w, const struct zoomed_chunk *k)
{
	uint16_t *depth = calloc((size_t)k->n[TRACE_N_NODES] + 1, sizeof(*depth));
	uint32_t i;

	for (i = 0; i < k->n[TRACE_N_NODES] && depth != NULL; i++)
		depth[i] = trace_names_depth(&w->names, k->node[i]);
	return depth;
}

/* All its events as a part. */
static int events_part(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c,
	struct zoomed_cached *ret, struct err *e)
{
	uint16_t *depth = depths_of(w, k);
	struct trace_tracks t = {.n_items = 0};
	int r = depth == NULL ? -ENOMEM : trace_tracks_make(c, depth, &t);

	free(depth);
	if (r < 0)
		return r == -ENOMEM ? zoom_no_memory(e) : bad_chunk(e);
	r = map_tracks(w, k, c, &t, &ret->track, e);
	if (r == 0) {
		ret->part = (struct zoomed_part){t.item, ret->track, t.n_items};
		ret->n_tracks = t.n_tracks;
		t.item = NULL;
		map_items(w, k, &ret->part);
		zoom_settle(k, &ret->part, ret->track, ret->n_tracks);
	}
	trace_tracks_fini(&t);
	return r;
}

/* --- the index */

static void widen(struct zoom *w, struct zoomed_chunk *k, const struct zoomed_part *p)
{
	const struct trace_item *v = p->item;
	uint32_t i;

	for (i = 0; i < p->n; i++, v++) {
		k->t0 = v->start < k->t0 ? v->start : k->t0;
		k->t1 = v->end > k->t1 ? v->end : k->t1;
		w->lane[p->track[v->track].lane].events += v->count;
		if (v->launched == ZOOM_NEVER)
			continue;
		k->launch0 = v->launched < k->launch0 ? v->launched : k->launch0;
		k->launch1 = v->launched > k->launch1 ? v->launched : k->launch1;
	}
}

/* The levels that stay. */
static int take_levels(struct zoom *w, struct zoomed_chunk *k, struct summary *s, struct err *e)
{
	struct zoomed_part *level = calloc(s->n_levels, sizeof(*level));
	uint32_t i;
	int r;

	if (level == NULL)
		return zoom_no_memory(e);
	free(k->level);
	k->level = level;
	k->ns = s->ns;
	k->n_levels = s->n_levels;
	k->n_tracks = s->n_tracks;
	for (i = 0; i < s->n_levels; i++) {
		k->level[i] = (struct zoomed_part){s->level[i].item, k->track, s->level[i].n};
		s->level[i].item = NULL;
		if (k->level[i].item == NULL)
			continue;
		map_items(w, k, &k->level[i]);
		w->coarse_bytes += k->level[i].n * sizeof(*k->level[i].item);
	}
	widen(w, k, &k->level[s->n_levels - 1]);
	r = zoom_place_rows(w, k, &k->level[s->n_levels > 1], e);
	for (i = 0; i < s->n_levels && r == 0; i++)
		if (k->level[i].item != NULL)
			zoom_settle(k, &k->level[i], k->track, k->n_tracks);
	return r;
}

static uint64_t coarse_bytes(const struct summary *s)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = s->n_levels > 1; i < s->n_levels; i++)
		n += s->level[i].n;
	return n * sizeof(struct trace_item);
}

/* The rows that scopes take on the chunk's streams. NULL: not known, so it may be any. */
static int map_deepest(struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c,
	const uint16_t *deepest, struct err *e)
{
	uint32_t i, at;

	for (i = 0; i < c->n[TRACE_N_STREAMS]; i++) {
		at = zoom_lane_of(
			w, lane_key(k->process, c,
				   &(struct trace_track){.kind = TRACK_STREAM, .place = i}));
		if (at == ZOOM_NONE)
			return zoom_no_memory(e);
		if (deepest == NULL || deepest[i] > w->lane[at].deepest)
			w->lane[at].deepest = deepest == NULL ? UINT16_MAX : deepest[i];
	}
	return 0;
}

/* *ret_good: they are of this chunk, and there is room. */
static int read_levels(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *lists,
	const void *bytes, size_t n, bool *ret_good, struct err *e)
{
	struct summary s;
	struct trace_tracks t;
	int r = summary_read(bytes, n, lists, 1, &s);

	if (r == 0 && s.n_levels == 1) { /* the lowest is the only one */
		summary_fini(&s);
		r = summary_read(bytes, n, lists, 0, &s);
	}
	if (r < 0)
		return r == -ENOMEM ? zoom_no_memory(e) : 0;
	*ret_good = s.n_levels > 0 && w->coarse_bytes + coarse_bytes(&s) <= ZOOM_COARSE_BYTES;
	t = (struct trace_tracks){.track = s.track, .n_tracks = s.n_tracks};
	if (*ret_good)
		r = map_tracks(w, k, lists, &t, &k->track, e);
	if (*ret_good && r == 0)
		r = map_deepest(w, k, lists, s.deepest, e);
	if (*ret_good && r == 0)
		r = take_levels(w, k, &s, e);
	summary_fini(&s);
	return r;
}

/* One without a summary: it is made, and stays in memory. */
static int summarise(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c,
	bool *ret_good, struct err *e)
{
	uint16_t *depth = depths_of(w, k);
	int r = depth == NULL ? -ENOMEM
			      : summary_of(c, depth, w->process[k->process].p.ticks, SIZE_MAX,
					&k->blob, &k->n_blob);

	free(depth);
	if (r < 0)
		return zoom_no_memory(e);
	if (k->blob == NULL)
		return 0;
	w->kept_bytes += k->n_blob;
	w->summarised++;
	return read_levels(w, k, c, k->blob, k->n_blob, ret_good, e);
}

/* A small one stays as it is. */
static int read_exact(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	struct zoomed_cached all = {.level = ZOOM_EVENTS};
	int r = events_part(w, k, c, &all, e);

	k->level[0] = all.part;
	k->track = all.track;
	k->n_tracks = all.n_tracks;
	if (r == 0)
		r = zoom_place_rows(w, k, &k->level[0], e);
	if (r < 0)
		return r;
	zoom_settle(k, &k->level[0], k->track, k->n_tracks);
	widen(w, k, &all.part);
	k->exact = true;
	k->n_levels = 1;
	w->coarse_bytes += all.part.n * sizeof(*all.part.item);
	w->exact_bytes += all.part.n * sizeof(*all.part.item);
	return 0;
}

/* The widest level alone, an item a track or little more: what a window of thousands of chunks is made of. */
static int widest_level(const struct zoom *w, const struct zoomed_chunk *k,
	const struct trace_chunk *c, const uint16_t *depth, struct summary *ret)
{
	const double ticks = w->process[k->process].p.ticks;
	struct trace_tracks t;
	uint32_t finest = 0;
	int r = trace_tracks_make(c, depth, &t);

	while (r == 0) {
		r = summary_make(c, &t, ticks, finest, ret);
		if (r < 0 || ret->n_levels <= 1)
			break;
		finest = ret->ns + SUMMARY_FACTOR * (ret->n_levels - 1);
		summary_fini(ret);
	}
	trace_tracks_fini(&t);
	return r;
}

/* There is no room: it is read whatever is asked for. */
static void forget_levels(struct zoom *w, struct zoomed_chunk *k)
{
	w->coarse_bytes -= k->level[0].n * sizeof(*k->level[0].item);
	free(k->level[0].item);
	free(k->track);
	k->level[0] = (struct zoomed_part){.n = 0};
	k->track = NULL;
	k->n_levels = 0;
}

/* Of one that is read when more than its widest level is asked for. */
static int read_widest(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c,
	const uint16_t *depth, struct err *e)
{
	struct summary s;
	struct trace_tracks t;
	int r = widest_level(w, k, c, depth, &s);

	if (r < 0)
		return r == -ENOMEM ? zoom_no_memory(e) : bad_chunk(e);
	t = (struct trace_tracks){.track = s.track, .n_tracks = s.n_tracks};
	r = map_tracks(w, k, c, &t, &k->track, e);
	if (r == 0 && s.n_levels > 0)
		r = take_levels(w, k, &s, e);
	if (w->coarse_bytes > ZOOM_COARSE_BYTES)
		forget_levels(w, k);
	summary_fini(&s);
	return r;
}

static int read_events(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	const uint32_t n = c->n[TRACE_N_SCOPES] + c->n[TRACE_N_OPS];
	uint16_t *depth = depths_of(w, k),
		 *deepest = depth == NULL ? NULL : summary_deepest(c, depth);
	int r = deepest == NULL ? zoom_no_memory(e) : map_deepest(w, k, c, deepest, e);

	if (r == 0 && n < SUMMARY_SMALL &&
		w->exact_bytes + n * sizeof(struct trace_item) <= ZOOM_EXACT_BYTES)
		r = read_exact(w, k, c, e);
	else if (r == 0)
		r = read_widest(w, k, c, depth, e);
	free(depth);
	free(deepest);
	return r;
}

static int index_chunk(
	struct zoom *w, struct zoomed_chunk *k, struct sqlite3_stmt *st, struct err *e)
{
	const void *bytes = sqlite3_column_blob(st, 2), *summary = sqlite3_column_blob(st, 3);
	const size_t n = (size_t)sqlite3_column_bytes(st, 2);
	struct trace_chunk c;
	bool good = false;
	int r = trace_chunk_read_metrics(bytes, n, &c, e);

	if (r < 0)
		return r;
	memcpy(k->n, c.n, sizeof(k->n));
	k->bursts = c.n_bursts > 0;
	r = map_nodes(w, k, &c, e);
	if (r == 0)
		r = map_threads(w, k, &c, e);
	if (r == 0)
		r = zoom_add_bursts(w, k, &c, e);
	if (r == 0 && summary != NULL)
		r = read_levels(w, k, &c, summary, (size_t)sqlite3_column_bytes(st, 3), &good, e);
	if (r == 0)
		r = zoom_add_counters(w, k, &c, e);
	trace_chunk_fini(&c);
	if (r < 0 || good)
		return r;
	r = trace_chunk_read(bytes, n, &c, e);
	if (r < 0)
		return r;
	if (w->kept_bytes < ZOOM_KEPT_BYTES &&
		c.n[TRACE_N_SCOPES] + c.n[TRACE_N_OPS] >= SUMMARY_SMALL)
		r = summarise(w, k, &c, &good, e);
	if (r == 0 && !good)
		r = read_events(w, k, &c, e);
	trace_chunk_fini(&c);
	return r;
}

/* Behind those that are there. */
static void count_chunk(struct zoom *w, struct zoomed_chunk *k)
{
	k->first_event = (uint32_t)w->events + 1;
	w->events += k->events;
	if (k->t0 <= k->t1) {
		w->t0 = k->t0 < w->t0 ? k->t0 : w->t0;
		w->t1 = k->t1 > w->t1 ? k->t1 : w->t1;
	}
}

int zoom_add_chunk(struct zoom *w, uint32_t process, struct sqlite3_stmt *st,
	const struct zoomed_chunk *before, struct err *e)
{
	struct zoomed_chunk *k;
	int r;

	if (!ROOM_FOR(w->chunk, w->cap_chunks, w->n_chunks))
		return zoom_no_memory(e);
	k = &w->chunk[w->n_chunks++];
	*k = (struct zoomed_chunk){.process = process,
		.number = (uint32_t)load_u64(st, 4),
		.bytes = (uint32_t)sqlite3_column_bytes(st, 2),
		.t0 = UINT64_MAX,
		.launch0 = UINT64_MAX,
		.told0 = UINT64_MAX,
		.level = calloc(1, sizeof(*k->level))};
	if (k->level == NULL) {
		w->n_chunks--;
		return zoom_no_memory(e);
	}
	if (before != NULL) {
		k->counted = before->n[TRACE_N_METRICS];
		k->told0 = before->told0;
		k->told1 = before->told1;
	}
	r = index_chunk(w, k, st, e);
	k->events = k->n[TRACE_N_SCOPES] + k->n[TRACE_N_OPS] + k->n[TRACE_N_METRICS];
	count_chunk(w, k);
	return r;
}

int zoom_keep_chunk(struct zoom *w, struct zoomed_chunk *take, struct err *e)
{
	struct zoomed_chunk *k;
	uint32_t i;
	int r;

	if (!ROOM_FOR(w->chunk, w->cap_chunks, w->n_chunks))
		return zoom_no_memory(e);
	k = &w->chunk[w->n_chunks++];
	*k = *take;
	*take = (struct zoomed_chunk){.level = NULL};
	free(k->row);
	k->row = NULL;
	k->n_rows = 0;
	if (k->n_levels > 0) {
		widen(w, k, &k->level[k->n_levels - 1]);
		r = zoom_place_rows(w, k, &k->level[k->n_levels > 1], e);
		if (r < 0)
			return r;
	}
	for (i = 0; i < k->n_levels; i++)
		if (k->level[i].item != NULL)
			zoom_settle(k, &k->level[i], k->track, k->n_tracks);
	count_chunk(w, k);
	return 0;
}

void zoom_drop_chunk(struct zoom *w, struct zoomed_chunk *c)
{
	uint32_t i;
	size_t n;

	for (i = 0; i < c->n_levels; i++) {
		n = c->level[i].item != NULL ? c->level[i].n * sizeof(*c->level[i].item) : 0;
		w->coarse_bytes -= n;
		w->exact_bytes -= c->exact ? n : 0;
	}
	if (c->blob != NULL) {
		w->kept_bytes -= c->n_blob;
		w->summarised--;
	}
	zoom_chunk_fini(c);
	*c = (struct zoomed_chunk){.level = NULL};
}

/* --- what is kept for a while */

static int stale(struct err *e)
{
	return err_set(e, -ESTALE, "the timeline has moved on: it is to be opened again");
}

/* The row of a chunk. */
static bool find_row(struct zoom *w, const struct zoomed_chunk *k, sqlite3_stmt *st)
{
	(void)sqlite3_bind_int64(st, 1, w->l.session);
	(void)sqlite3_bind_int64(st, 2, w->process[k->process].p.id);
	(void)sqlite3_bind_int64(st, 3, k->number);
	return sqlite3_step(st) == SQLITE_ROW && sqlite3_column_blob(st, 0) != NULL;
}

int zoom_read_chunk(
	struct zoom *w, uint32_t chunk, zoom_read_fn *read, struct trace_chunk *ret, struct err *e)
{
	const struct zoomed_chunk *k = &w->chunk[chunk];
	int r = -ESTALE;

	if (find_row(w, k, w->read))
		r = read(sqlite3_column_blob(w->read, 0), (size_t)sqlite3_column_bytes(w->read, 0),
			ret, e);
	(void)sqlite3_reset(w->read);
	if (r == 0 && memcmp(ret->n, k->n, sizeof(k->n)) != 0) {
		trace_chunk_fini(ret); /* it has grown */
		r = -ESTALE;
	}
	return r == -ESTALE ? stale(e) : r;
}

static int load_events(struct zoom *w, uint32_t chunk, struct zoomed_cached *ret, struct err *e)
{
	struct trace_chunk c;
	int r = zoom_read_chunk(w, chunk, trace_chunk_read, &c, e);

	if (r < 0)
		return r;
	r = events_part(w, &w->chunk[chunk], &c, ret, e);
	trace_chunk_fini(&c);
	return r;
}

static int load_lowest(struct zoom *w, uint32_t chunk, struct zoomed_cached *ret, struct err *e)
{
	struct zoomed_chunk *k = &w->chunk[chunk];
	struct trace_chunk lists = {.memory = NULL};
	struct summary s;
	int r = -ESTALE;

	memcpy(lists.n, k->n, sizeof(k->n));
	if (k->blob != NULL)
		r = summary_read(k->blob, k->n_blob, &lists, 0, &s);
	else if (find_row(w, k, w->read_summary))
		r = summary_read(sqlite3_column_blob(w->read_summary, 0),
			(size_t)sqlite3_column_bytes(w->read_summary, 0), &lists, 0, &s);
	(void)sqlite3_reset(w->read_summary);
	if (r < 0)
		return r == -ESTALE ? stale(e) : r == -ENOMEM ? zoom_no_memory(e) : bad_chunk(e);
	if (s.n_levels == k->n_levels && s.level[0].n == k->level[0].n) {
		ret->part = (struct zoomed_part){s.level[0].item, k->track, s.level[0].n};
		s.level[0].item = NULL;
		map_items(w, k, &ret->part);
		zoom_settle(k, &ret->part, k->track, k->n_tracks);
	} else {
		r = stale(e);
	}
	summary_fini(&s);
	return r;
}

/* Where a chunk has the place of what is cached of it. */
static uint32_t *cache_place(const struct zoom *w, uint32_t chunk, uint8_t level)
{
	return &w->chunk[chunk].cached[level == ZOOM_EVENTS];
}

static struct zoomed_cached *cache_find(const struct zoom *w, uint32_t chunk, uint8_t level)
{
	const uint32_t at = level == 0 || level == ZOOM_EVENTS ? *cache_place(w, chunk, level) : 0;

	return at == 0 ? NULL : &w->cached[at - 1];
}

bool zoom_is_at_hand(const struct zoom *w, uint32_t chunk, uint8_t level)
{
	const struct zoomed_chunk *k = &w->chunk[chunk];

	return k->exact || (level != ZOOM_EVENTS && k->level[level].item != NULL) ||
	       cache_find(w, chunk, level) != NULL;
}

/* The one that was used longest ago, unless this question uses it. */
static bool cache_drop(struct zoom *w)
{
	uint32_t i, oldest = ZOOM_NONE;

	for (i = 0; i < w->n_cached; i++)
		if (w->cached[i].asked < w->asked &&
			(oldest == ZOOM_NONE || w->cached[i].asked < w->cached[oldest].asked))
			oldest = i;
	if (oldest == ZOOM_NONE)
		return false;
	w->cached_bytes -= w->cached[oldest].bytes;
	free(w->cached[oldest].part.item);
	free(w->cached[oldest].track);
	*cache_place(w, w->cached[oldest].chunk, w->cached[oldest].level) = 0;
	if (oldest != --w->n_cached) {
		w->cached[oldest] = w->cached[w->n_cached];
		*cache_place(w, w->cached[oldest].chunk, w->cached[oldest].level) = oldest + 1;
	}
	return true;
}

int zoom_part(struct zoom *w, uint32_t chunk, uint8_t level, struct zoomed_part *ret, struct err *e)
{
	struct zoomed_chunk *k = &w->chunk[chunk];
	struct zoomed_cached *at = cache_find(w, chunk, level),
			     new = {.chunk = chunk, .level = level};
	int r;

	if (k->exact || (level != ZOOM_EVENTS && k->level[level].item != NULL)) {
		*ret = k->level[k->exact ? 0 : level];
		return 0;
	}
	if (at == NULL) {
		while ((w->cached_bytes > ZOOM_CACHE_BYTES) && cache_drop(w))
			;
		if (!ROOM_FOR(w->cached, w->cap_cached, w->n_cached))
			return zoom_no_memory(e);
		r = level == ZOOM_EVENTS ? load_events(w, chunk, &new, e)
					 : load_lowest(w, chunk, &new, e);
		if (r == -EBADMSG && level != ZOOM_EVENTS) /* the chunk itself is believed */
			r = load_events(w, chunk, &new, e);
		if (r < 0) {
			free(new.track);
			return r;
		}
		new.bytes = new.part.n * sizeof(*new.part.item);
		w->cached_bytes += new.bytes;
		at = &w->cached[w->n_cached++];
		*at = new;
		*cache_place(w, chunk, level) = w->n_cached;
	}
	at->asked = w->asked;
	*ret = at->part;
	return 0;
}

int zoom_place_of(
	struct zoom *w, uint32_t chunk, uint32_t at, struct zoom_place *ret, struct err *e)
{
	const uint32_t id = w->chunk[chunk].first_event + at;
	const struct zoomed_lane *l;
	struct zoomed_part p;
	uint32_t i;
	int r;

	w->asked++;
	r = zoom_part(w, chunk, ZOOM_EVENTS, &p, e);
	for (i = 0; r == 0 && i < p.n && p.item[i].event != at; i++)
		;
	if (r < 0 || i == p.n)
		return r < 0 ? r : err_set(e, -ENOENT, "no event %u in this timeline", id);
	l = &w->lane[p.track[p.item[i].track].lane];
	*ret = (struct zoom_place){.event = id,
		.lane = l->shown,
		.depth = zoom_depth(l, p.track[p.item[i].track].depth),
		.name = p.item[i].node,
		.start_ns = p.item[i].start,
		.end_ns = p.item[i].end};
	return 0;
}

void zoom_cache_clear(struct zoom *w)
{
	w->asked++;
	while (cache_drop(w))
		;
}
