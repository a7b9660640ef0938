/* SPDX-License-Identifier: MIT. sorted.c: a session's timeline in order of time.
 *
 * A timeline has a scope when it ends and an operation when it was delivered. Here each is a row of a
 * temporary database, and SQLite sorts them, in files where they are many. Once all are there, and
 * before the timeline's walk closes, they are handed to the form. */
#include "sorted.h"

#include <sqlite3.h>
#include <stdio.h>

#include "chrome_events.h"
#include "schema.h"

#define FLUSH_BYTES   (1u << 18)
#define PROGRESS_ROWS 4096u

/* clang-format off */
static const char tables[] =
	"PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;PRAGMA temp_store=FILE;PRAGMA cache_size=-16384;"
	"BEGIN;CREATE TABLE event(process, thread, at, kind, length, depth, lane, start, record, vals)";
#define EVENTS    "SELECT record, vals, kind FROM event ORDER BY process, "
/* An outer scope before what is inside, a scope before what is launched in it. */
#define ORDER     "at, kind, length DESC, depth"
#define LANES     "SELECT record FROM event WHERE kind=1 ORDER BY lane, start"
/* clang-format on */
enum kind { KIND_SCOPE, KIND_OP, KIND_BURST };
_Static_assert(KIND_OP == 1, "LANES");

static struct sorted *sorted(struct timeline *w)
{
	return w->mine;
}

/* The first failure stands; the rest of the walk does nothing. */
static void wrong(struct sorted *s)
{
	const int code = sqlite3_errcode(s->db);

	if (s->r == 0)
		s->r = err_set(s->w->l.e,
			code == SQLITE_FULL    ? -ENOSPC
			: code == SQLITE_NOMEM ? -ENOMEM
					       : -EIO,
			"the events cannot be sorted: %s; they wait in a temporary file: "
			"SQLITE_TMPDIR names its folder",
			schema_errmsg(s->db));
}

static void no_memory(struct sorted *s)
{
	if (s->r == 0)
		s->r = timeline_no_memory(s->w);
}

/* --- lists */

struct thread_key {
	const struct sorted *s;
	uint32_t tid;
};

static bool same_thread(const void *arg, uint32_t at)
{
	const struct thread_key *k = arg;

	return k->s->thread[at].tid == k->tid && k->s->thread[at].process + 1 == k->s->n_processes;
}

static uint32_t thread_of(struct sorted *s, uint32_t tid)
{
	const struct thread_key key = {s, tid};
	const uint32_t hash = table_mix(s->n_processes, tid);
	uint32_t at = table_find(&s->threads, hash, same_thread, &key);

	if (at != TABLE_NONE)
		return at;
	if (!ROOM_FOR(s->thread, s->cap_threads, s->n_threads) ||
		table_add(&s->threads, hash, s->n_threads) < 0) {
		no_memory(s);
		return SORTED_NONE;
	}
	s->thread[s->n_threads] = (struct sorted_thread){.process = s->n_processes - 1, .tid = tid};
	return s->n_threads++;
}

struct lane_key {
	const struct sorted *s;
	struct sorted_lane lane;
};

static bool same_lane(const void *arg, uint32_t at)
{
	const struct lane_key *k = arg;
	const struct sorted_lane *x = &k->s->lane[at];

	return x->gpu == k->lane.gpu && x->stream == k->lane.stream && x->lane == k->lane.lane;
}

static uint32_t gpu_lane(struct sorted *s, const struct timeline_op *o)
{
	const struct lane_key key = {
		s, {s->of_gpus + (uint32_t)(o->gpu - s->w->gpu), o->stream->stream, o->lane}};
	const uint32_t hash = table_mix(key.lane.gpu, (uint64_t)o->stream->stream << 32 | o->lane);
	uint32_t at = table_find(&s->lanes, hash, same_lane, &key);

	if (at != TABLE_NONE)
		return at;
	if (!ROOM_FOR(s->lane, s->cap_lanes, s->n_lanes) ||
		table_add(&s->lanes, hash, s->n_lanes) < 0) {
		no_memory(s);
		return 0;
	}
	s->lane[s->n_lanes] = key.lane;
	return s->n_lanes++;
}

/* --- rows */

static void add(struct sorted *s, const int64_t *v, int n, const void *record, size_t bytes)
{
	int i;

	for (i = 0; i < n; i++)
		(void)sqlite3_bind_int64(s->add, i + 1, v[i]);
	(void)sqlite3_bind_blob(s->add, 9, record, (int)bytes, SQLITE_TRANSIENT);
	if (s->values.n > 0)
		(void)sqlite3_bind_text(
			s->add, 10, s->values.s, (int)s->values.n, SQLITE_TRANSIENT);
	if (s->r == 0 && sqlite3_step(s->add) != SQLITE_DONE)
		wrong(s);
	(void)sqlite3_reset(s->add);
	(void)sqlite3_clear_bindings(s->add);
}

static uint32_t depth_of(const struct timeline *w, uint32_t node)
{
	uint32_t n = 0;

	for (; node != PROFILE_NONE && n < TRACE_DEPTH_MAX; node = w->known[node].parent)
		n++;
	return n;
}

static void on_scope(struct timeline *w, const struct timeline_scope *x)
{
	struct sorted *s = sorted(w);
	const struct sorted_scope row = {.begin_ns = x->begin_ns,
		.end_ns = x->end_ns,
		.node = x->node,
		.thread = thread_of(s, x->tid),
		.flags = x->flags,
		.call = x->call};

	chrome_taken(w, &s->values, x->n_metrics);
	s->values.failed |= s->values.n > INT32_MAX;
	if (s->values.failed)
		no_memory(s);
	else
		add(s,
			(int64_t[]){s->n_processes, row.thread, (int64_t)row.begin_ns, KIND_SCOPE,
				(int64_t)(row.end_ns - row.begin_ns), depth_of(w, row.node)},
			6, &row, sizeof(row));
	s->values.n = 0;
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct sorted *s = sorted(w);
	const bool launched = (o->op->flags & TRACE_UNLAUNCHED) == 0;
	struct sorted_op row = {.start_ns = o->start_ns,
		.end_ns = o->end_ns,
		.launch_ns = o->launch_ns,
		.bytes = o->op->bytes,
		.node = o->node,
		.thread = launched ? thread_of(s, o->tid) : SORTED_NONE,
		.lane = gpu_lane(s, o),
		.correlation = o->op->correlation,
		.context = o->stream->context,
		.class = o->op->class,
		.flags = o->op->flags,
		.configured = o->config != NULL};

	if (o->config != NULL)
		row.config = *o->config;
	add(s,
		(int64_t[]){s->n_processes, row.thread,
			(int64_t)(launched ? row.launch_ns : row.start_ns), KIND_OP, 0, 0, row.lane,
			(int64_t)row.start_ns},
		8, &row, sizeof(row));
}

static void on_burst(struct timeline *w, const struct timeline_burst *b)
{
	struct sorted *s = sorted(w);
	const struct sorted_burst row = {b->begin_ns, b->end_ns, b->n, thread_of(s, b->tid)};

	if (s->form->burst != NULL)
		add(s, (int64_t[]){s->n_processes, row.thread, (int64_t)row.begin_ns, KIND_BURST},
			4, &row, sizeof(row));
}

static void on_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	(void)h;
	(void)ns;
	sorted(w)->loose++;
}

static void on_device(struct timeline *w, const struct timeline_device *d)
{
	struct sorted *s = sorted(w);

	if (ROOM_FOR(s->device, s->cap_devices, s->n_devices))
		s->device[s->n_devices++] = *d;
	else
		no_memory(s);
}

static void on_process(struct timeline *w)
{
	struct sorted *s = sorted(w);

	s->of_gpus = s->n_gpus;
	if (!ROOM_FOR(s->process, s->cap_processes, s->n_processes)) {
		no_memory(s);
		return;
	}
	s->process[s->n_processes++] = (struct sorted_process){.pid = w->at.pid,
		.rank = w->at.rank,
		.ranked = w->at.ranked,
		.command = w->at.command};
}

static void on_process_end(struct timeline *w)
{
	struct sorted *s = sorted(w);
	char words[THREAD_NAME_MAX];
	uint32_t i;

	for (i = 0; i < w->n_gpus; i++) {
		if (!ROOM_FOR(s->gpu, s->cap_gpus, s->n_gpus)) {
			no_memory(s);
			return;
		}
		s->gpu[s->n_gpus++] = (struct sorted_gpu){.process = s->n_processes - 1,
			.ordinal = w->gpu[i].ordinal,
			.pid = w->gpu[i].pid,
			.name = w->gpu[i].name,
			.streams = w->gpu[i].streams};
	}
	for (i = 0; i < w->n_threads; i++) {
		const uint32_t at = thread_of(s, w->thread[i].tid);
		const char *name = thread_name(
			w->at.command, w->at.pid, w->thread[i].tid, w->thread[i].name, words);

		name = at == SORTED_NONE ? NULL : profile_text(w->l.p, name, strlen(name));
		if (name == NULL) {
			no_memory(s);
			return;
		}
		s->thread[at].name = name;
	}
}

/* --- in order */

/* After each row; told now and then. */
static void flush(struct sorted *s)
{
	if (s->r == 0 && ++s->rows % PROGRESS_ROWS == 0)
		s->r = timeline_progress(s->w, PROGRESS_ROWS);
	if (s->r == 0 && s->w->out.n > FLUSH_BYTES)
		s->r = timeline_flush(s->w);
}

static void end_top(struct sorted *s, struct sorted_stack *k)
{
	if (s->form->scope_end != NULL)
		s->form->scope_end(s, &k->v[k->n - 1]);
	k->n--;
}

/* What is over on this thread at ns: a scope that ends then has what is launched then. */
static void end_until(struct sorted *s, uint32_t thread, uint64_t ns, bool is_op)
{
	struct sorted_stack *k = s->open[thread];
	uint32_t i;

	for (i = 0; i < s->thread[thread].lanes; i++)
		while (k[i].n > 0 && k[i].v[k[i].n - 1].end_ns < ns + !is_op)
			end_top(s, &k[i]);
}

static void end_threads(struct sorted *s, uint32_t from, uint32_t to)
{
	for (; from < to && from < s->n_threads; from++) {
		for (uint32_t i = 0; i < s->thread[from].lanes; i++)
			while (s->open[from][i].n > 0)
				end_top(s, &s->open[from][i]);
		if (s->form->thread_end != NULL && s->r == 0)
			s->form->thread_end(s, from);
	}
}

/* The first lane in which it stands in all of what is open. Over the ceiling: the last one. */
static struct sorted_stack *stack_of(struct sorted *s, struct sorted_scope *x)
{
	struct sorted_thread *t = &s->thread[x->thread];
	struct sorted_stack *k = s->open[x->thread];
	uint32_t i = (x->flags & TRACE_SPAN) != 0;

	for (; i < t->lanes && i + 1 < LANES_MAX; i++)
		if (k[i].n == 0 || k[i].v[k[i].n - 1].end_ns >= x->end_ns)
			break;
	if (i >= t->lanes) {
		k = reallocarray(k, i + 1, sizeof(*k));
		if (k == NULL)
			return NULL;
		memset(&k[t->lanes], 0, (i + 1 - t->lanes) * sizeof(*k));
		s->open[x->thread] = k;
		t->lanes = i + 1;
	}
	x->lane = i;
	return ROOM_FOR(k[i].v, k[i].cap, k[i].n) ? &k[i] : NULL;
}

static void begin(struct sorted *s, const struct sorted_scope *row, const char *values)
{
	struct sorted_scope x = *row;
	struct sorted_stack *k;

	end_until(s, x.thread, x.begin_ns, false);
	k = stack_of(s, &x);
	if (k == NULL) {
		no_memory(s);
		return;
	}
	x.values = values;
	if (s->form->scope != NULL)
		s->form->scope(s, &x);
	x.values = NULL; /* the row's */
	k->v[k->n++] = x;
}

/* Threads are handed over in the order of their rows: those in between have no event. */
static void turn_to(struct sorted *s, uint32_t thread, uint32_t *ended)
{
	if (!s->form->by_thread || thread == SORTED_NONE)
		return;
	end_threads(s, *ended, thread);
	*ended = thread;
}

static void on_row(struct sorted *s, sqlite3_stmt *st, uint32_t *ended)
{
	const void *record = sqlite3_column_blob(st, 0);
	const int kind = sqlite3_column_int(st, 2);

	if (kind == KIND_OP) {
		struct sorted_op o;

		memcpy(&o, record, sizeof(o));
		turn_to(s, o.thread, ended);
		if (o.thread != SORTED_NONE)
			end_until(s, o.thread, o.launch_ns, true);
		if (s->form->op != NULL)
			s->form->op(s, &o);
	} else if (kind == KIND_BURST) {
		struct sorted_burst b;

		memcpy(&b, record, sizeof(b));
		turn_to(s, b.thread, ended);
		s->form->burst(s, &b);
	} else {
		struct sorted_scope x;

		memcpy(&x, record, sizeof(x));
		turn_to(s, x.thread, ended);
		begin(s, &x, (const char *)sqlite3_column_text(st, 1));
	}
	flush(s);
}

static void walk_events(struct sorted *s)
{
	sqlite3_stmt *st = NULL;
	uint32_t ended = 0;
	int rc = sqlite3_prepare_v2(
		s->db, s->form->by_thread ? EVENTS "thread, " ORDER : EVENTS ORDER, -1, &st, NULL);

	while (s->r == 0 && rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			break;
		on_row(s, st, &ended);
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE && rc != SQLITE_OK)
		wrong(s);
	(void)sqlite3_finalize(st);
	end_threads(s, ended, s->n_threads);
}

static void walk_lanes(struct sorted *s)
{
	sqlite3_stmt *st = NULL;
	struct sorted_op o;
	int rc = sqlite3_prepare_v2(s->db, LANES, -1, &st, NULL);

	while (s->r == 0 && rc == SQLITE_OK) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			break;
		memcpy(&o, sqlite3_column_blob(st, 0), sizeof(o));
		s->form->lane_op(s, &o);
		flush(s);
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE && rc != SQLITE_OK)
		wrong(s);
	(void)sqlite3_finalize(st);
}

int64_t sorted_step(struct sorted *s, const struct sorted_scope *x)
{
	const char *name = s->w->known[x->node].name;
	int64_t *last = &s->process[s->thread[x->thread].process].steps;
	uint32_t up = s->w->known[x->node].parent;
	static const char key[] = "\"" STEP_OWN "\":\"";
	const char *digits, *own;

	if ((x->flags & TRACE_SPAN) != 0 || !timeline_is_step(name))
		return -1;
	for (unsigned d = 0; up != PROFILE_NONE && d < TRACE_DEPTH_MAX; d++) {
		if (timeline_is_step(s->w->known[up].name))
			return -1;
		up = s->w->known[up].parent;
	}
	digits = name + strcspn(name, "0123456789");
	if (*digits == '\0' && x->values != NULL && (own = strstr(x->values, key)) != NULL)
		digits = own + sizeof(key) - 1;
	*last = *digits != '\0' ? strtoll(digits, NULL, 10) : *last + 1;
	return *last;
}

static void on_close(struct timeline *w)
{
	struct sorted *s = sorted(w);

	(void)sqlite3_finalize(s->add);
	s->add = NULL;
	s->open = calloc((size_t)s->n_threads + 1, sizeof(*s->open));
	if (s->open == NULL)
		no_memory(s);
	if (s->r == 0 && s->form->open != NULL)
		s->form->open(s);
	if (s->r == 0)
		walk_events(s);
	if (s->r == 0 && s->form->lanes)
		walk_lanes(s);
	if (s->r == 0 && s->form->close != NULL)
		s->form->close(s);
}

/* --- all of it */

static void on_open(struct timeline *w)
{
	sorted(w)->w = w;
	w->all *= sorted(w)->form->lanes ? 3 : 2; /* each is walked over again */
}

static void sorted_fini(struct sorted *s)
{
	uint32_t i, k;

	for (i = 0; s->open != NULL && i < s->n_threads; i++) {
		for (k = 0; k < s->thread[i].lanes; k++)
			free(s->open[i][k].v);
		free(s->open[i]);
	}
	free(s->open);
	free(s->process);
	free(s->thread);
	free(s->gpu);
	free(s->lane);
	free(s->device);
	table_fini(&s->threads);
	table_fini(&s->lanes);
	text_fini(&s->values);
	(void)sqlite3_finalize(s->add);
	(void)sqlite3_close(s->db);
}

int sorted_write(const struct sorted_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *select, FILE *to, struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form collect = {.open = on_open,
		.device = on_device,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.metric = on_metric,
		.burst = on_burst,
		.process_end = on_process_end,
		.close = on_close};
	struct sorted s = {.form = form, .mine = mine};
	int r;

	if (sqlite3_open_v2("", &s.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
			SQLITE_OK ||
		sqlite3_exec(s.db, tables, NULL, NULL, NULL) != SQLITE_OK ||
		sqlite3_prepare_v2(s.db, "INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?,?)", -1,
			&s.add, NULL) != SQLITE_OK)
		r = err_set(e, -EIO, "no temporary database to sort events in: %s",
			sqlite3_errmsg(s.db));
	else
		r = timeline_write(&collect, &s, db, id, select, to, ret_left, e);
	sorted_fini(&s);
	return r < 0 ? r : s.r;
}
