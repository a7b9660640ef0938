/* SPDX-License-Identifier: MIT. zoom.c: a session's timeline opened for windows: the index of its chunks,
 * and its lanes in the order in which they are shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "profile_head.h"
#include "text.h"
#include "trace_rows.h"
#include "zoom_int.h"

#define GPUS_MAX     1024u
#define ROWS_MAX     256u   /* of a lane: what is deeper shares the last */
#define ROWS_ALL_MAX 65536u /* of all lanes: further ones have one each */

/* clang-format off */
#define CHUNKS       ZOOM_CHUNKS " ORDER BY number"
#define READ         "SELECT bytes FROM trace WHERE session=?1 AND process=?2 AND number=?3"
#define READ_SUMMARY "SELECT summary FROM trace WHERE session=?1 AND process=?2 AND number=?3"
#define DEVICES      \
	"SELECT device, ordinal, coalesce(label,''), coalesce(streams,'') FROM device "      \
	"WHERE process=?2 AND ?1=?1"
#define NEWEST       "SELECT count(*), coalesce(sum(events),0), coalesce(max(end_ns),0),"           \
	" (SELECT count(*) FROM member WHERE session=?1) FROM trace WHERE session=?1"
/* clang-format on */

/* --- lanes */

struct lane_key {
	const struct zoom *w;
	struct zoomed_lane want;
};

static bool lane_same(const void *arg, uint32_t at)
{
	const struct lane_key *k = arg;
	const struct zoomed_lane *l = &k->w->lane[at];

	return l->kind == k->want.kind && l->process == k->want.process &&
	       l->device == k->want.device && l->number == k->want.number;
}

uint32_t zoom_lane_of(struct zoom *w, struct zoomed_lane want)
{
	const struct lane_key key = {w, want};
	const uint32_t hash = table_mix(
		(uint64_t)want.device << 32 | want.number, (uint64_t)want.process << 8 | want.kind);
	const uint32_t at = table_find(&w->by_key, hash, lane_same, &key);
	int r;

	if (at != TABLE_NONE)
		return at;
	/* Once it is open there are no more: a summary that lacks what its chunk has is a lie. */
	if (w->n_lanes == ZOOM_LANES_MAX || (w->show != NULL && w->n_lanes > 0))
		return w->n_lanes - 1;
	if (!ROOM_FOR(w->lane, w->cap_lanes, w->n_lanes))
		return ZOOM_NONE;
	r = table_add(&w->by_key, hash, w->n_lanes);
	if (r == -ENOSPC && w->n_lanes > 0)
		return w->n_lanes - 1; /* keys chosen against the table */
	if (r < 0)
		return ZOOM_NONE;
	want.low = UINT16_MAX;
	want.high = 0;
	w->lane[w->n_lanes] = want;
	return w->n_lanes++;
}

static struct zoomed_gpu gpu_of(const struct zoom *w, const struct zoomed_lane *l)
{
	const struct zoomed_process *p = &w->process[l->process];
	uint32_t i;

	for (i = 0; i < p->n_gpus; i++)
		if (p->gpu[i].device == l->device)
			return p->gpu[i];
	return (struct zoomed_gpu){l->device, l->device, "", ""};
}

static uint32_t ordinal_of(const struct zoom *w, const struct zoomed_lane *l)
{
	return gpu_of(w, l).ordinal;
}

/* Threads before GPUs, the main thread first; a stream's scopes stand above it. */
static int lane_order(const void *a, const void *b, void *arg)
{
	const struct zoom *w = arg;
	const struct zoomed_lane *x = &w->lane[*(const uint32_t *)a],
				 *y = &w->lane[*(const uint32_t *)b];
	const int64_t pid = w->process[x->process].p.pid;
	const bool x_gpu = x->device != ZOOM_NONE, y_gpu = y->device != ZOOM_NONE;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x_gpu != y_gpu)
		return x_gpu ? 1 : -1;
	if (!x_gpu && (x->number == pid) != (y->number == pid))
		return x->number == pid ? -1 : 1;
	if (x_gpu && ordinal_of(w, x) != ordinal_of(w, y))
		return ordinal_of(w, x) < ordinal_of(w, y) ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->kind != y->kind)
		return (x->kind == ZOOM_PROJECTED) != (y->kind == ZOOM_PROJECTED)
			       ? (x->kind == ZOOM_PROJECTED ? -1 : 1)
			       : (x->kind < y->kind ? -1 : 1);
	return 0;
}

/* A lane that stands beside its thread's. */
static bool is_beside(uint8_t kind)
{
	return kind == ZOOM_SUMMED || kind == ZOOM_SYNCS;
}

static const char *lane_name(struct zoom *w, const struct zoomed_lane *l)
{
	const struct trace_process *p = &w->process[l->process].p;
	char thread[THREAD_NAME_MAX];
	const char *own = is_beside(l->kind) ? w->lane[l->of].own : l->own;
	const char *name = thread_name(p->command, p->pid, l->number, own, thread);
	const struct zoomed_gpu gpu = gpu_of(w, l);
	char stream[GPU_STREAM_WORDS];
	struct text words = {.n = 0};

	gpu_stream_words(gpu.streams, l->number, 0, stream);
	if (l->kind == ZOOM_STREAM)
		text_fmt(&words, "GPU %u%s%s %s", gpu.ordinal, *gpu.label != '\0' ? " " : "",
			gpu.label, stream);
	else if (l->kind == ZOOM_SUMMED)
		text_fmt(&words, "summed of %s", name);
	else if (l->kind == ZOOM_SYNCS)
		text_fmt(&words, "syncs of %s", name);
	else if (l->kind == ZOOM_PROJECTED)
		text_fmt(&words, "scopes on GPU %u %s", gpu.ordinal, stream);
	else
		text_fmt(&words, l->kind == ZOOM_TASKS ? "tasks of %s" : "%s", name);
	name = words.failed ? NULL : profile_text(w->l.p, words.s, words.n);
	text_fini(&words);
	return name;
}

/* A thread that only launched has a lane of one row: its launches are points on it. */
static int show_lane(struct zoom *w, uint32_t at, uint32_t place, struct err *e)
{
	struct zoomed_lane *l = &w->lane[at];
	struct zoom_lane *s = &w->show[place];

	l->low = l->low > l->high ? 0 : l->low;
	l->shown = place;
	l->rows =
		(uint16_t)(l->high - l->low < (int)ROWS_MAX ? l->high - l->low + 1 : (int)ROWS_MAX);
	l->rows = w->n_rows + l->rows > ROWS_ALL_MAX ? 1 : l->rows;
	l->first_row = w->n_rows;
	w->n_rows += l->rows;
	*s = (struct zoom_lane){.id = place,
		.parent = ZOOM_NONE,
		.kind = l->kind,
		.rows = l->rows,
		.name = lane_name(w, l),
		.process = l->process,
		.device = l->device == ZOOM_NONE ? ZOOM_NONE : ordinal_of(w, l),
		.number = l->number,
		.events = l->events};
	return s->name == NULL ? zoom_no_memory(e) : 0;
}

/* Each stream that scopes stand above gets a lane for them. */
static int add_projected(struct zoom *w, struct err *e)
{
	const uint32_t n = w->n_lanes;
	uint32_t i, at;

	for (i = 0; i < n; i++) {
		struct zoomed_lane l = w->lane[i];
		const uint16_t most = w->process[l.process].deepest,
			       deepest = l.deepest < most ? l.deepest : most;

		if (l.kind != ZOOM_STREAM || deepest == 0)
			continue;
		l.kind = ZOOM_PROJECTED;
		l.events = 0;
		l.free_at = NULL;
		l.n_free_at = 0;
		at = zoom_lane_of(w, l);
		if (at == ZOOM_NONE)
			return zoom_no_memory(e);
		if (w->lane[at].kind == ZOOM_PROJECTED) {
			w->lane[at].low = 0;
			w->lane[at].high = deepest - 1;
			w->lane[at].of = i;
		}
	}
	return 0;
}

int zoom_order_lanes(struct zoom *w, struct err *e)
{
	uint32_t i, *order;
	int r = add_projected(w, e); /* the last to be added */

	order = calloc((size_t)w->n_lanes + 1, sizeof(*order));
	w->show = calloc((size_t)w->n_lanes + 1, sizeof(*w->show));
	if (r < 0 || order == NULL || w->show == NULL) {
		free(order);
		return r < 0 ? r : zoom_no_memory(e);
	}
	for (i = 0; i < w->n_lanes; i++)
		order[i] = i;
	qsort_r(order, w->n_lanes, sizeof(*order), lane_order, w);
	for (i = 0; i < w->n_lanes && r == 0; i++)
		r = show_lane(w, order[i], i, e);
	for (i = 0; i < w->n_lanes && r == 0; i++)
		if (w->lane[i].kind == ZOOM_PROJECTED || is_beside(w->lane[i].kind))
			w->show[w->lane[i].shown].parent = w->lane[w->lane[i].of].shown;
	free(order);
	return r;
}

/* --- the index */

static int add_gpus(struct zoom *w, struct zoomed_process *p, struct err *e)
{
	sqlite3_stmt *st;
	int more, r = load_prepare(&w->l, DEVICES, &st);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 2, p->p.id);
	while ((more = load_step(&w->l, st)) > 0 && p->n_gpus < GPUS_MAX) {
		if (!ROOM_FOR(p->gpu, p->cap_gpus, p->n_gpus)) {
			more = zoom_no_memory(e);
			break;
		}
		p->gpu[p->n_gpus] =
			(struct zoomed_gpu){(uint32_t)load_u64(st, 0), (uint32_t)load_u64(st, 1),
				load_text(&w->l, st, 2), load_text(&w->l, st, 3)};
		if (p->gpu[p->n_gpus].label == NULL || p->gpu[p->n_gpus].streams == NULL) {
			more = zoom_no_memory(e);
			break;
		}
		p->n_gpus++;
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : 0;
}

static int add_chunks(struct zoom *w, uint32_t process, struct err *e)
{
	uint64_t all = 0, kept = 0;
	sqlite3_stmt *st;
	int more, r = load_prepare(&w->l, CHUNKS, &st);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 2, w->process[process].p.id);
	while (r == 0 && (more = load_step(&w->l, st)) != 0) {
		if (more < 0) {
			r = more;
			break;
		}
		all = load_u64(st, 0) + load_u64(st, 1);
		if (sqlite3_column_type(st, 2) != SQLITE_BLOB)
			continue;
		kept += load_u64(st, 1);
		r = zoom_add_chunk(w, process, st, NULL, e);
	}
	(void)sqlite3_finalize(st);
	w->gone += all > kept ? all - kept : 0;
	return r;
}

int zoom_load_process(struct zoom *w, uint32_t at, struct err *e)
{
	struct zoomed_process *p = &w->process[at];
	int r = trace_process_load(&p->p, &w->time, &w->l, w->l.process[at].id);

	if (r < 0)
		return r;
	w->shown_process[at] = (struct zoom_process){
		p->p.id, p->p.pid, p->p.ranked ? p->p.rank : -1, p->p.command};
	p->n_gpus = 0;
	return add_gpus(w, p, e);
}

/* What a session's timeline is: when this changes it has got something, or lost it. */
int zoom_newest(struct zoom *w, int64_t ret[4])
{
	sqlite3_stmt *st;
	int i, more, r = load_prepare(&w->l, NEWEST, &st);

	if (r < 0)
		return r;
	more = load_step(&w->l, st);
	for (i = 0; i < 4 && more > 0; i++)
		ret[i] = sqlite3_column_int64(st, i);
	(void)sqlite3_finalize(st);
	return more < 0 ? more : 0;
}

static int prepare(struct zoom *w, const char *sql, struct sqlite3_stmt **ret)
{
	return load_prepare(&w->l, sql, ret);
}

static int fill(struct zoom *w, struct err *e)
{
	uint32_t i;
	int r;

	w->l.p = profile_new();
	if (w->l.p == NULL)
		return zoom_no_memory(e);
	r = load_head(&w->l);
	if (r == 0)
		r = trace_time_load(&w->time, &w->l);
	if (r == 0)
		r = zoom_newest(w, w->newest);
	if (r == 0)
		r = trace_names_open(&w->names, w->l.db, w->l.p, &w->select, e);
	if (r == 0)
		r = trace_names_colors(&w->names, w->l.session, e);
	trace_names_from(&w->names, w->l.p->head.source);
	if (r == 0)
		r = prepare(w, READ, &w->read);
	if (r == 0)
		r = prepare(w, READ_SUMMARY, &w->read_summary);
	w->process = calloc((size_t)w->l.n_processes + 1, sizeof(*w->process));
	w->shown_process = calloc((size_t)w->l.n_processes + 1, sizeof(*w->shown_process));
	if (r == 0 && (w->process == NULL || w->shown_process == NULL))
		r = zoom_no_memory(e);
	for (i = 0; i < w->l.n_processes && r == 0; i++) {
		r = zoom_load_process(w, i, e);
		if (r == 0)
			r = add_chunks(w, i, e);
	}
	if (r == 0)
		r = zoom_order_counters(w, e);
	return r < 0 ? r : zoom_order_lanes(w, e);
}

int zoom_open(
	struct sqlite3 *db, int64_t session, const char *process, struct zoom **ret, struct err *e)
{
	struct zoom *w = calloc(1, sizeof(*w));
	const bool own_transaction = sqlite3_get_autocommit(db) != 0;
	int r = 0;

	if (w == NULL)
		return zoom_no_memory(e);
	w->select.process = process != NULL ? strdup(process) : NULL;
	w->l = (struct load){.db = db, .session = session, .select = &w->select, .e = e};
	w->t0 = UINT64_MAX;
	w->counter_ns = 1;
	if (process != NULL && w->select.process == NULL)
		r = zoom_no_memory(e);
	if (r == 0 && own_transaction && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		r = err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(db));
	if (r == 0)
		r = fill(w, e);
	if (own_transaction)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	w->l.e = NULL;
	if (r < 0)
		zoom_free(w);
	else
		*ret = w;
	return r;
}

void zoom_free(struct zoom *w)
{
	uint32_t i;

	if (w == NULL)
		return;
	zoom_cache_clear(w);
	free(w->cached);
	zoom_counters_fini(w);
	(void)sqlite3_finalize(w->read);
	(void)sqlite3_finalize(w->read_summary);
	trace_names_fini(&w->names);
	trace_time_fini(&w->time);
	for (i = 0; i < w->n_chunks; i++)
		zoom_chunk_fini(&w->chunk[i]);
	free(w->chunk);
	for (i = 0; w->process != NULL && i < w->l.n_processes; i++)
		free(w->process[i].gpu);
	free(w->process);
	free(w->shown_process);
	table_fini(&w->by_key);
	for (i = 0; i < w->n_lanes; i++)
		free(w->lane[i].free_at);
	free(w->lane);
	free(w->burst);
	free(w->show);
	free(w->path);
	free(w->l.process);
	free(w->l.device);
	profile_free(w->l.p);
	free((void *)(uintptr_t)w->select.process);
	free(w);
}

/* --- what it has */

const struct zoom_lane *zoom_lanes(const struct zoom *w, uint32_t *ret_n)
{
	*ret_n = w->n_lanes;
	return w->show;
}

const struct zoom_process *zoom_processes(const struct zoom *w, uint32_t *ret_n)
{
	*ret_n = w->l.n_processes;
	return w->shown_process;
}

void zoom_range(const struct zoom *w, uint64_t *ret_t0, uint64_t *ret_t1)
{
	*ret_t0 = w->t0 == UINT64_MAX ? 0 : w->t0;
	*ret_t1 = w->t0 == UINT64_MAX ? 1 : w->t1 > w->t0 ? w->t1 : w->t0 + 1;
}

void zoom_state(const struct zoom *w, struct zoom_state *ret)
{
	uint64_t points = 0;
	uint32_t i;

	for (i = 0; i < w->n_counters; i++)
		points += w->counter[i].p.cap;
	*ret = (struct zoom_state){.events = w->events,
		.gone = w->gone,
		.summed = w->summed,
		.memory = w->cached_bytes + w->kept_bytes + w->coarse_bytes +
			  (uint64_t)w->names.cap * sizeof(*w->names.v) +
			  (uint64_t)w->cap_chunks * sizeof(*w->chunk) +
			  (uint64_t)w->cap_bursts * sizeof(*w->burst) +
			  points * sizeof(struct zoom_point),
		.chunks = w->n_chunks,
		.summarised = w->summarised};
}

const char *zoom_name(const struct zoom *w, uint32_t name)
{
	return name < w->names.n ? w->names.v[name].name : "";
}

const struct named_color *zoom_colors(const struct zoom *w, uint32_t *ret_n)
{
	*ret_n = w->names.n_colors;
	return w->names.color;
}

bool *zoom_wanted(const struct zoom *w, const uint32_t *lane, uint32_t n)
{
	bool *wanted = calloc((size_t)w->n_lanes + 1, sizeof(*wanted)),
	     *shown = calloc((size_t)w->n_lanes + 1, sizeof(*shown));
	uint32_t i;

	for (i = 0; shown != NULL && lane != NULL && i < n; i++)
		if (lane[i] < w->n_lanes)
			shown[lane[i]] = true;
	for (i = 0; shown != NULL && wanted != NULL && i < w->n_lanes; i++)
		wanted[i] = lane == NULL || shown[w->lane[i].shown];
	free(shown);
	return wanted;
}

int zoom_check(const struct zoom_ask *a, struct err *e)
{
	if (a->t0 >= a->t1)
		return err_set(e, -EINVAL, "the window ends before it begins");
	if (a->px == 0 || a->px > ZOOM_PX_MAX)
		return err_set(e, -EINVAL, "px is from 1 to %u", ZOOM_PX_MAX);
	return 0;
}
