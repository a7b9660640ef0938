/* SPDX-License-Identifier: MIT. timeline.c: a session's timeline: each process with its clock, its
 * devices and its chunks, handed to the format. */
#include <inttypes.h>
#include <stdio.h>

#include "profile_head.h"
#include "timeline.h"

#define COMM_MAX 15u /* bytes of a thread's name */

#define CLOCK_TSC 1 /* process.clock and anchor.ring_clock: the ring's clock is the TSC */
#define AROUND_NS "60000000000"
/* The session and its oldest process: a clock that is set back makes either the earlier one. */
#define BOTH                                                                           \
	"session s, (SELECT min(created_realtime_ns) created_realtime_ns FROM process" \
	" WHERE id IN (SELECT process FROM member WHERE session=?1)) p WHERE s.id=?1"

/* clang-format off */
#define STATEMENTS(X)                                                                              \
	X(PROCESS, "SELECT pid, rank, command, clock, tsc_khz, created_clock, created_monotonic_ns,"   \
		" created_realtime_ns FROM process WHERE id=?2 AND ?1=?1")                             \
	X(BASE, "SELECT min(created_monotonic_ns), min(created_realtime_ns) FROM process"          \
		" WHERE id IN (SELECT process FROM member WHERE session=?1)")                      \
	X(ANCHOR, "SELECT clock, monotonic_ns, realtime_ns, error_ns, ring_clock FROM anchor"      \
		" WHERE realtime_ns BETWEEN (SELECT min(s.created_ns,p.created_realtime_ns)-" AROUND_NS \
		" FROM " BOTH ") AND (SELECT"                                                      \
		" coalesce(max(s.finalized_ns,p.created_realtime_ns)+" AROUND_NS ",9223372036854775807)" \
		" FROM " BOTH ") ORDER BY realtime_ns")                                            \
	X(DEVICE, "SELECT device, ordinal, name FROM device WHERE process=?2 AND ?1=?1")           \
	X(DEVICES, "SELECT DISTINCT ordinal, name, arch, num_sms, memory_bytes FROM device"        \
		" WHERE process IN (SELECT process FROM member WHERE session=?1) ORDER BY ordinal") \
	X(CHUNK, "SELECT first, events, bytes FROM trace WHERE session=?1 AND process=?2"          \
		" ORDER BY number")                                                                \
	X(FIRST, "SELECT bytes, min(number) FROM trace WHERE session=?1 AND bytes IS NOT NULL"     \
		" GROUP BY process")                                                               \
	X(ANY, "SELECT 1 FROM trace WHERE session=?1")                                             \
	X(NODE, "SELECT n.name, n.kind, p.hash FROM node n LEFT JOIN node p ON p.id=n.parent"      \
		" WHERE n.hash=?1")
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
		.name = load_text(&w->l, st, 2)};
	if (w->gpu[w->n_gpus].name == NULL)
		return timeline_no_memory(w);
	w->n_gpus++;
	return 0;
}

static int on_chunk(struct timeline *w, sqlite3_stmt *st)
{
	const void *bytes = sqlite3_column_blob(st, 2);

	w->events = load_u64(st, 0) + load_u64(st, 1);
	if (bytes == NULL)
		return 0;
	w->kept += load_u64(st, 1);
	return timeline_chunk(w, bytes, (size_t)sqlite3_column_bytes(st, 2));
}

/* Its clock, its names. */
static int on_process(struct timeline *w, sqlite3_stmt *st)
{
	const bool tsc = sqlite3_column_int(st, 3) == CLOCK_TSC;
	w->pid = (int64_t)load_u64(st, 0);
	w->own_anchor[0] = (struct anchor){load_u64(st, 5), load_u64(st, 6), load_u64(st, 7), 0};
	w->own = (struct anchors){.v = w->own_anchor, .n = 1, .cap = 2};
	if (w->tsc.n == 1) /* two make a slope */
		anchors_add(&w->own, &w->tsc.v[0]);
	clockmap_use(&w->clock,
		!tsc            ? NULL
		: w->tsc.n >= 2 ? &w->tsc
				: &w->own,
		(uint32_t)load_u64(st, 4));
	w->command = load_text(&w->l, st, 2);
	if (w->command == NULL)
		return timeline_no_memory(w);
	w->ranked = sqlite3_column_type(st, 1) != SQLITE_NULL;
	w->rank = sqlite3_column_int64(st, 1);
	if (w->form->process != NULL)
		w->form->process(w);
	return 0;
}

/* What a thread is called that has no name of its own: the kernel cuts it. */
static bool is_program(const struct timeline *w, const char *name)
{
	const char *end = strchrnul(w->command, ' '),
		   *slash = memrchr(w->command, '/', (size_t)(end - w->command)),
		   *base = slash != NULL ? slash + 1 : w->command;
	const size_t n = (size_t)(end - base) < COMM_MAX ? (size_t)(end - base) : COMM_MAX;

	return strlen(name) == n && memcmp(base, name, n) == 0;
}

const char *timeline_thread_name(
	const struct timeline *w, const struct named *t, char ret[TIMELINE_THREAD])
{
	if (t->name != NULL && !is_program(w, t->name))
		return t->name;
	if (t->tid == w->pid)
		return "main thread";
	snprintf(ret, TIMELINE_THREAD, "thread %u", t->tid);
	return ret;
}

static void process_fini(struct timeline *w)
{
	while (w->n_lanes > 0)
		free(w->lane[--w->n_lanes].end);
	w->n_threads = w->n_held = w->n_gpus = 0;
	profile_free(w->texts);
	w->texts = NULL;
}

static int walk_process(struct timeline *w, int64_t id)
{
	int r = each_row(w, SQL_PROCESS, id, on_process);

	if (r == 0)
		r = each_row(w, SQL_DEVICE, id, on_device);
	w->events = w->kept = 0;
	if (r == 0)
		r = each_row(w, SQL_CHUNK, id, on_chunk);
	w->gone += w->events > w->kept ? w->events - w->kept : 0;
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

static int on_base(struct timeline *w, sqlite3_stmt *st)
{
	const uint64_t mono = load_u64(st, 0), real = load_u64(st, 1);

	w->base_ns = (int64_t)(mono < CLOCK_NS_MAX ? mono : CLOCK_NS_MAX);
	w->ahead_ns = (int64_t)(real < CLOCK_NS_MAX ? real : CLOCK_NS_MAX) - w->base_ns;
	return 0;
}

/* A replay's operations ran before its process began. */
static int on_first(struct timeline *w, sqlite3_stmt *st)
{
	struct trace_chunk c;
	uint32_t i;
	int64_t at;
	int r = trace_chunk_read(
		sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), &c, w->l.e);

	if (r < 0)
		return r;
	for (i = 0; i < c.n[TRACE_N_OPS]; i++) {
		at = timeline_real_to_mono(w, c.op[i].start);
		w->base_ns = at < w->base_ns ? at : w->base_ns;
	}
	trace_chunk_fini(&c);
	return 0;
}

static int on_anchor(struct timeline *w, sqlite3_stmt *st)
{
	const struct anchor a = {
		load_u64(st, 0), load_u64(st, 1), load_u64(st, 2), load_u64(st, 3)};
	struct anchors *to = sqlite3_column_int(st, 4) == CLOCK_TSC ? &w->tsc : &w->mono;

	if (ROOM(w, to->v, to->cap, to->n) < 0)
		return -ENOMEM;
	anchors_add(to, &a);
	return 0;
}

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

static int on_any(struct timeline *w, sqlite3_stmt *st)
{
	(void)st;
	w->any = true;
	return 0;
}

static int walk_all(struct timeline *w)
{
	uint32_t i;
	int r = load_head(&w->l);

	if (r == 0 && sqlite3_table_column_metadata(w->l.db, NULL, "trace", NULL, NULL, NULL, NULL,
			      NULL, NULL) == SQLITE_OK) /* a file of schema 1 has no such table */
		r = each_row(w, SQL_ANY, 0, on_any);
	if (r == 0 && !w->any)
		r = err_set(w->l.e, -ENODATA,
			"session %lld has no timeline; record one with `protonctl run -d trace -- "
			"CMD`",
			(long long)w->l.session);
	if (r == 0)
		r = each_row(w, SQL_BASE, 0, on_base);
	if (r == 0)
		r = each_row(w, SQL_ANCHOR, 0, on_anchor);
	w->wall = w->tsc.n > 0 ? &w->tsc : &w->mono;
	if (r == 0)
		r = each_row(w, SQL_FIRST, 0, on_first);
	if (r == 0) {
		if (w->form->open != NULL)
			w->form->open(w);
		r = each_row(w, SQL_DEVICES, 0, on_device_properties);
		if (w->form->opened != NULL)
			w->form->opened(w);
	}
	if (r == 0 && sqlite3_prepare_v2(w->l.db, statements[SQL_NODE], -1, &w->node_by_hash,
			      NULL) != SQLITE_OK)
		r = err_set(
			w->l.e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(w->l.db));
	for (i = 0; i < w->l.n_processes && r == 0; i++)
		r = walk_process(w, w->l.process[i].id);
	if (r == 0 && w->form->close != NULL)
		w->form->close(w);
	return r < 0 ? r : timeline_flush(w);
}

static void walk_fini(struct timeline *w)
{
	(void)sqlite3_finalize(w->node_by_hash);
	text_fini(&w->out);
	free(w->tsc.v);
	free(w->mono.v);
	free(w->known);
	free(w->known_map);
	process_fini(w);
	free(w->lane);
	free(w->thread);
	free(w->held);
	free(w->taken);
	free(w->gpu);
	free(w->node);
	free(w->l.process);
	free(w->l.device);
	profile_free(w->l.p);
}

static int walk(const struct timeline_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, FILE *to, uint64_t *ret_gone, struct err *e)
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
	if (r == 0 && ret_gone != NULL)
		*ret_gone = w.gone;
	walk_fini(&w);
	return r;
}

/* --- steps */

bool timeline_is_step(const char *name)
{
	const char *digits = strncmp(name, "ProfilerStep#", 13) == 0 ? name + 13
			     : strncmp(name, "step ", 5) == 0        ? name + 5
								     : NULL;

	return digits != NULL ? *digits >= '0' && *digits <= '9' : strcmp(name, "step") == 0;
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

	if (!timeline_is_step(w->known[s->node].name))
		return;
	f->n++;
	f->most = f->n > f->most ? f->n : f->most;
	if (f->n < f->first || f->n > f->last)
		return;
	f->from_ns = f->to_ns == 0 || s->begin_ns < f->from_ns ? s->begin_ns : f->from_ns;
	f->to_ns = s->end_ns > f->to_ns ? s->end_ns : f->to_ns;
}

static void steps_op(struct timeline *w, const struct timeline_op *o)
{
	(void)w;
	(void)o;
}

/* *ret: the selection with the steps' window in it. */
static int find_steps(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct profile_select *ret, struct err *e)
{
	static const struct timeline_form form = {
		.process = steps_process, .scope = steps_scope, .op = steps_op};
	struct steps f = {.first = s->first_step, .last = s->last_step};
	int r;

	*ret = *s;
	ret->last_step = 0;
	ret->show = NULL;
	ret->file = false;
	r = walk(&form, &f, db, id, ret, NULL, NULL, e);
	ret->show = s->show;
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
	const struct profile_select *s, FILE *to, uint64_t *ret_gone, struct err *e)
{
	struct profile_select steps;
	int r = 0;

	if (s != NULL && s->last_step != 0) {
		r = find_steps(db, id, s, &steps, e);
		s = &steps;
	}
	return r < 0 ? r : walk(form, mine, db, id, s, to, ret_gone, e);
}
