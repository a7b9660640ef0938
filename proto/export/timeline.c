/* SPDX-License-Identifier: MIT. timeline.c: a session's timeline: each process with its clock, its
 * devices and its chunks, handed to the format. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holder_rows.h"
#include "path_end.h"
#include "profile_head.h"
#include "table.h"
#include "timeline.h"

#define READING_FLUSH (1u << 18)

/* clang-format off */
#define STATEMENTS(X)                                                                              \
	X(DEVICE, "SELECT device, ordinal, iif(label IS NULL, name, label||' ('||name||')'), uuid, "        \
		"coalesce(streams,'') FROM device WHERE process=?2 AND ?1=?1")                      \
	X(DEVICES, "SELECT DISTINCT ordinal, name, arch, num_sms, memory_bytes FROM device"        \
		" WHERE process IN (SELECT process FROM member WHERE session=?1) ORDER BY ordinal") \
	X(CHUNK, "SELECT first, events, bytes FROM trace WHERE session=?1 AND process=?2"          \
		" ORDER BY number")                                                                \
	X(ALL, "SELECT total(events) FROM trace WHERE session=?1")
/* clang-format on */
enum {
#define X(name, sql) SQL_##name,
	STATEMENTS(X)
#undef X
		SQL_N
};
static const char *const statements[] = {
#define X(name, sql) sql,
	STATEMENTS(X)
#undef X
};

/* --- a process */

typedef int row_fn(struct timeline *w, sqlite3_stmt *st);

static int each_row(struct timeline *w, int which, int64_t process, row_fn *row)
{
	sqlite3_stmt *st;
	int more, r = load_prepare(&w->l, statements[which], &st);

	if (r < 0)
		return r;
	if (process != 0)
		(void)sqlite3_bind_int64(st, 2, process);
	while ((more = load_step(&w->l, st)) > 0) {
		r = row(w, st);
		if (r < 0)
			break;
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

static int on_device(struct timeline *w, sqlite3_stmt *st)
{
	if (ROOM(w, w->gpu, w->cap_gpus, w->n_gpus) < 0)
		return -ENOMEM;
	w->gpu[w->n_gpus] = (struct gpu_seen){.device = sqlite3_column_int64(st, 0),
		.ordinal = (uint32_t)load_u64(st, 1),
		.name = load_text(&w->l, st, 2),
		.streams = load_text(&w->l, st, 4)};
	if (sqlite3_column_bytes(st, 3) == (int)sizeof(w->gpu->uuid))
		memcpy(w->gpu[w->n_gpus].uuid, sqlite3_column_blob(st, 3), sizeof(w->gpu->uuid));
	if (w->gpu[w->n_gpus].name == NULL || w->gpu[w->n_gpus].streams == NULL)
		return timeline_no_memory(w);
	w->n_gpus++;
	return 0;
}

static int on_chunk(struct timeline *w, sqlite3_stmt *st)
{
	const void *bytes = sqlite3_column_blob(st, 2);
	int r;

	w->events = load_u64(st, 0) + load_u64(st, 1);
	if (bytes == NULL)
		return 0;
	w->kept += load_u64(st, 1);
	r = timeline_chunk(w, bytes, (size_t)sqlite3_column_bytes(st, 2));
	return r < 0 ? r : timeline_progress(w, load_u64(st, 1));
}

int timeline_progress(struct timeline *w, uint64_t more)
{
	const struct profile_select *s = w->l.select;

	w->done += more;
	if (s->progress == NULL || s->progress(s->progress_arg, w->done, w->all))
		return 0;
	return err_set(w->l.e, -ECANCELED, "stopped by a signal");
}

static void process_fini(struct timeline *w)
{
	lanes_clear(w->lane, &w->n_lanes);
	w->n_threads = w->n_held = w->n_gpus = 0;
	profile_free(w->texts);
	w->texts = NULL;
}

static int walk_process(struct timeline *w, int64_t id)
{
	int r = trace_process_load(&w->at, &w->time, &w->l, id);

	if (r == 0 && w->form->process != NULL)
		w->form->process(w);
	if (r == 0)
		r = each_row(w, SQL_DEVICE, id, on_device);
	w->events = w->kept = 0;
	if (r == 0)
		r = each_row(w, SQL_CHUNK, id, on_chunk);
	w->left.gone += w->events > w->kept ? w->events - w->kept : 0;
	if (r == 0) {
		timeline_metrics_left(w, true);
		if (w->form->process_end != NULL)
			w->form->process_end(w);
		r = timeline_flush(w);
	}
	process_fini(w);
	return r;
}

/* --- the file */

static int on_device_properties(struct timeline *w, sqlite3_stmt *st)
{
	const struct timeline_device d = {.ordinal = load_u64(st, 0),
		.name = load_text(&w->l, st, 1),
		.arch = load_u64(st, 2),
		.num_sms = load_u64(st, 3),
		.memory_bytes = load_u64(st, 4)};

	if (d.name == NULL)
		return timeline_no_memory(w);
	if (w->form->device != NULL)
		w->form->device(w, &d);
	return 0;
}

static int on_all(struct timeline *w, sqlite3_stmt *st)
{
	w->all = load_u64(st, 0);
	return 0;
}

struct reading_walk {
	struct timeline *w;
	int64_t gpu;
	uint32_t track[DEVICE_N], n_tracks; /* track: + 1; 0: none yet */
	char name[HOLDER_NAME];             /* of an account; track[0] is its */
};

static int on_reading(void *arg, const struct reading_value *v)
{
	struct reading_walk *a = arg;
	struct timeline *w = a->w;
	const struct profile_select *s = w->l.select;
	struct timeline_reading r = {.value = v, .first = false};
	char name[READING_NAME];

	if ((int64_t)v->end_ns <= w->time.base_ns)
		return 0;
	r.begin_ns = (int64_t)v->begin_ns > w->time.base_ns
			     ? v->begin_ns - (uint64_t)w->time.base_ns
			     : 0;
	r.end_ns = v->end_ns - (uint64_t)w->time.base_ns;
	if (s->to_ns != 0 && (r.end_ns < s->from_ns || r.begin_ns > s->to_ns))
		return 0;
	if (a->gpu != v->gpu)
		memset(a->track, 0, sizeof(a->track));
	a->gpu = v->gpu;
	r.first = a->track[v->q] == 0;
	if (r.first)
		a->track[v->q] = ++a->n_tracks;
	r.track = a->track[v->q] - 1;
	(void)reading_name(v, name);
	r.name = name;
	w->form->reading(w, &r);
	return w->out.n > READING_FLUSH ? timeline_flush(w) : 0;
}

static int on_held(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	struct reading_walk *a = arg;
	struct timeline *w = a->w;
	const struct profile_select *s = w->l.select;
	const struct reading_value v = {.unit = "bytes", .v = (double)bytes};
	const int64_t base = w->time.base_ns;
	struct timeline_reading r = {.value = &v, .name = a->name, .first = a->track[0] == 0};

	if ((int64_t)end_ns < base)
		return 0;
	r.begin_ns = (int64_t)begin_ns > base ? begin_ns - (uint64_t)base : 0;
	r.end_ns = end_ns - (uint64_t)base;
	if (s->to_ns != 0 && (r.end_ns < s->from_ns || r.begin_ns > s->to_ns))
		return 0;
	if (r.first)
		a->track[0] = ++a->n_tracks;
	r.track = a->track[0] - 1;
	w->form->reading(w, &r);
	return w->out.n > READING_FLUSH ? timeline_flush(w) : 0;
}

static int on_holders(void *arg, const struct holder_row *row)
{
	struct reading_walk *a = arg;
	uint32_t i;
	int r = 0;

	for (i = 0; i < row->h->n_accounts && r == 0; i++) {
		(void)holder_name(row, row->h->account[i], a->name);
		a->track[0] = 0;
		r = holder_values(row->h->account[i], on_held, a);
	}
	return r;
}

/* What the GPUs and their host read, and what is held of memory. */
static int walk_readings(struct timeline *w)
{
	struct reading_walk a = {.w = w, .gpu = READING_HOST + 1};
	int r = reading_each(w->l.db, w->l.session, on_reading, &a, w->l.e);

	if (r == 0)
		r = holder_each(
			w->l.db, w->l.session, w->l.select->process, on_holders, &a, w->l.e);
	return r;
}

static int walk_all(struct timeline *w)
{
	uint32_t i;
	int r = load_head(&w->l);

	if (r == 0)
		r = trace_time_load(&w->time, &w->l);
	if (r == 0)
		r = each_row(w, SQL_ALL, 0, on_all);
	w->zero_ns = w->time.base_ns + w->time.ahead_ns;
	if (r == 0) {
		if (w->form->open != NULL)
			w->form->open(w);
		r = each_row(w, SQL_DEVICES, 0, on_device_properties);
		if (w->form->opened != NULL)
			w->form->opened(w);
	}
	if (r == 0)
		r = trace_names_open(&w->names, w->l.db, w->l.p, w->l.select, w->l.e);
	if (r == 0)
		r = trace_names_colors(&w->names, w->l.session, w->l.e);
	for (i = 0; i < w->l.n_processes && r == 0; i++)
		r = walk_process(w, w->l.process[i].id);
	if (r == 0 && w->form->reading != NULL)
		r = walk_readings(w);
	if (r == 0 && w->form->close != NULL)
		w->form->close(w);
	return r < 0 ? r : timeline_flush(w);
}

static void walk_fini(struct timeline *w)
{
	trace_names_fini(&w->names);
	trace_time_fini(&w->time);
	text_fini(&w->out);
	process_fini(w);
	free(w->lane);
	free(w->thread);
	free(w->held);
	free(w->taken);
	free(w->gpu);
	free(w->node);
	free(w->step);
	free(w->l.process);
	free(w->l.device);
	profile_free(w->l.p);
}

static int walk(const struct timeline_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, FILE *to, struct export_left *ret_left, struct err *e)
{
	static const struct profile_select all;
	struct timeline w = {.form = form,
		.mine = mine,
		.l = {.db = db, .session = id, .select = s != NULL ? s : &all, .e = e},
		.to = to};
	const bool own_transaction = sqlite3_get_autocommit(db) != 0;
	int r = 0;

	w.l.p = profile_new();
	if (w.l.p == NULL)
		return err_set(e, -ENOMEM, "out of memory for the timeline");
	if (own_transaction && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		r = err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(db));
	if (r == 0)
		r = walk_all(&w);
	if (own_transaction)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (r == 0 && ret_left != NULL)
		*ret_left = w.left;
	walk_fini(&w);
	return r;
}

/* --- steps */

static bool ends_in(const struct timeline *w, uint32_t node, const char *words)
{
	struct path_end e = path_end_of(words);
	enum path_end_is is = PATH_END_MORE;
	uint32_t i, deep = 0;

	for (i = node; is == PATH_END_MORE && i != PROFILE_NONE && deep++ < TRACE_DEPTH_MAX;
		i = w->known[i].parent)
		if (i == node || node_is_scope(w->known[i].kind))
			is = path_end_take(&e, w->known[i].name);
	return is == PATH_END_YES;
}

bool timeline_step(struct timeline *w, uint32_t node)
{
	const char *scope = w->l.select->scope;

	if (scope == NULL)
		return timeline_is_step(w->known[node].name);
	if (!ZEROED_FOR(w->step, w->cap_step, node + 1))
		return ends_in(w, node, scope); /* without memory of it */
	if (w->step[node] == 0)
		w->step[node] = ends_in(w, node, scope) ? 2 : 1;
	return w->step[node] == 2;
}

struct steps {
	uint32_t first, last, n, most; /* n: of this process; most: of any */
	uint64_t from_ns, to_ns;       /* to_ns 0: none of them so far */
};

static void steps_process(struct timeline *w)
{
	((struct steps *)w->mine)->n = 0;
}

static void steps_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct steps *f = w->mine;

	if ((s->flags & TRACE_CALL) != 0 || !timeline_step(w, s->node))
		return;
	f->n++;
	f->most = f->n > f->most ? f->n : f->most;
	if (f->n < f->first || f->n > f->last)
		return;
	f->from_ns = f->to_ns == 0 || s->begin_ns < f->from_ns ? s->begin_ns : f->from_ns;
	f->to_ns = s->end_ns > f->to_ns ? s->end_ns : f->to_ns;
}

/* *ret: the selection with the steps' window in it. */
static int find_steps(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct profile_select *ret, struct err *e)
{
	static const struct timeline_form form = {.process = steps_process, .scope = steps_scope};
	struct steps f = {.first = s->first_step, .last = s->last_step};
	int r;

	*ret = *s;
	ret->last_step = 0;
	ret->show = NULL;
	ret->progress = NULL;
	ret->file = false;
	r = walk(&form, &f, db, id, ret, NULL, NULL, e);
	ret->show = s->show;
	ret->progress = s->progress;
	ret->file = s->file;
	if (r < 0)
		return r;
	if (f.to_ns == 0)
		return err_set(e, -ENOENT,
			"no step %u: the timeline has %u (scopes named `step`, "
			"`step N` or `ProfilerStep#N`)",
			f.first, f.most);
	ret->from_ns = f.from_ns;
	ret->to_ns = f.to_ns;
	return 0;
}

int timeline_write(const struct timeline_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, FILE *to, struct export_left *ret_left, struct err *e)
{
	struct profile_select steps;
	int r = 0;

	if (s != NULL && s->last_step != 0) {
		if (s->every_ns == 0)
			r = find_steps(db, id, s, &steps, e);
		else {
			steps = *s;
			steps.from_ns = select_every(s, s->first_step - 1);
			steps.to_ns = select_every(s, s->last_step);
			steps.last_step = 0;
		}
		s = &steps;
	}
	return r < 0 ? r : walk(form, mine, db, id, s, to, ret_left, e);
}
