/* SPDX-License-Identifier: MIT. sql_tables.c: a session as tables of SQLite. */
#include "sql_tables.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "loss_terms.h"
#include "parts.h"
#include "schema.h"
#include "sql_memory.h"
#include "tree_rows.h"

/* clang-format off */
#define PATHS                                                                                       \
	" JOIN timeline_path p ON p.node = t.node"
#define OPERATION                                                                                   \
	"t.operation, t.pid, t.rank, t.gpu, t.context, t.stream, t.lane, t.class, p.name, p.path,"      \
	" t.start_ns, t.end_ns, t.end_ns - t.start_ns AS dur_ns, t.correlation, t.graph, t.launch_ns,"  \
	" t.tid"
#define PART(name, column, ...) ", " #column
static const char schema[] =
	"CREATE TABLE session(id, name, uuid, state, source, command, created_ns, duration_ns, processes,"
	" launches, matched, unmatched, sql_version);"
	"CREATE TABLE metrics(node, name, value);"
	"CREATE TABLE devices(type, id, name, arch, sms, clock_khz, memory_clock_khz, bus_width, busy_ns"
	GPU_PARTS(PART) ");"
	"CREATE TABLE losses(cause, words, count);"
	"CREATE TABLE timeline_path(node INTEGER PRIMARY KEY, name, path);"
	"CREATE TABLE timeline_scope(scope INTEGER PRIMARY KEY, pid, rank, tid, node, begin_ns, end_ns,"
	" task, open, began_before, unwound, class, stream, event, correlation);"
	"CREATE TABLE timeline_value(scope, pid, tid, node, at_ns, name, value);"
	"CREATE TABLE timeline_operation(operation INTEGER PRIMARY KEY, pid, rank, gpu, context, stream, lane,"
	" class, node, start_ns, end_ns, bytes, correlation, graph, first, launch_ns, tid, grid_x, grid_y,"
	" grid_z, block_x, block_y, block_z, registers, static_shared, dynamic_shared);"
	"CREATE TABLE timeline_thread(pid, rank, tid, name);"
	"CREATE TABLE timeline_burst(pid, rank, tid, begin_ns, end_ns, events);"
	"CREATE TABLE timeline_parts(scope, pid, rank, gpu, active_ns" GPU_PARTS(PART) ");"
	"CREATE VIEW scopes AS SELECT t.scope, t.pid, t.rank, t.tid, p.name, p.path, t.begin_ns, t.end_ns,"
	" t.end_ns - t.begin_ns AS dur_ns, t.task, t.open, t.began_before, t.unwound"
	" FROM timeline_scope t" PATHS " WHERE t.class IS NULL;"
	"CREATE VIEW calls AS SELECT t.pid, t.rank, t.tid, t.class, p.name, p.path, t.begin_ns, t.end_ns,"
	" t.end_ns - t.begin_ns AS dur_ns, t.stream, t.event, t.correlation"
	" FROM timeline_scope t" PATHS " WHERE t.class IS NOT NULL;"
	"CREATE VIEW kernels AS SELECT " OPERATION ", t.grid_x, t.grid_y, t.grid_z, t.block_x, t.block_y,"
	" t.block_z, t.registers, t.static_shared, t.dynamic_shared"
	" FROM timeline_operation t" PATHS " WHERE t.class IN ('compute', 'comm');"
	"CREATE VIEW copies AS SELECT " OPERATION ", t.bytes"
	" FROM timeline_operation t" PATHS " WHERE t.class NOT IN ('compute', 'comm');"
	"CREATE VIEW launches AS SELECT t.operation, t.pid, t.rank, t.tid, t.launch_ns, t.correlation, t.graph,"
	" p.name, p.path, t.start_ns - t.launch_ns AS delay_ns"
	" FROM timeline_operation t" PATHS " WHERE t.first;"
	"CREATE VIEW steps AS SELECT row_number() OVER (PARTITION BY pid ORDER BY begin_ns) AS step, *"
	" FROM scopes WHERE name = 'step' OR name GLOB 'step [0-9]*' OR name GLOB 'ProfilerStep#[0-9]*';"
	"CREATE VIEW step_parts AS SELECT s.step, t.scope, t.pid, t.rank, t.gpu, s.begin_ns, s.end_ns, t.active_ns"
	GPU_PARTS(PART) " FROM timeline_parts t JOIN steps s ON s.scope = t.scope;"
	"CREATE VIEW scope_values AS SELECT t.scope, t.pid, t.tid, p.name AS scope_name, p.path, t.at_ns,"
	" t.name, t.value FROM timeline_value t" PATHS ";"
	"CREATE VIEW threads AS SELECT * FROM timeline_thread;"
	"CREATE VIEW bursts AS SELECT * FROM timeline_burst;";
/* clang-format on */

static int wrong(sqlite3 *to, struct err *e)
{
	return err_set(e, sqlite3_errcode(to) == SQLITE_FULL ? -ENOSPC : -EIO,
		"the tables cannot be made: %s", schema_errmsg(to));
}

static int exec(sqlite3 *to, const char *sql, struct err *e)
{
	return sqlite3_exec(to, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : wrong(to, e);
}

/* --- a row, value by value */

struct insert {
	sqlite3 *to;
	sqlite3_stmt *st;
	int at;
	bool failed;
};

static void insert_open(struct insert *i, sqlite3 *to, const char *table, unsigned columns)
{
	struct text t = {0};
	char *sql;

	*i = (struct insert){.to = to};
	text_fmt(&t, "INSERT INTO %s VALUES(?", table);
	while (columns-- > 1)
		text_str(&t, ",?");
	text_char(&t, ')');
	if (text_take(&t, &sql, &(size_t){0}) < 0) {
		i->failed = true;
		return;
	}
	i->failed = sqlite3_prepare_v2(to, sql, -1, &i->st, NULL) != SQLITE_OK;
	free(sql);
}

static void put_text(struct insert *i, const char *s)
{
	if (s != NULL)
		(void)sqlite3_bind_text(i->st, ++i->at, s, -1, SQLITE_TRANSIENT);
	else
		(void)sqlite3_bind_null(i->st, ++i->at);
}

static void put_i64(struct insert *i, int64_t v)
{
	(void)sqlite3_bind_int64(i->st, ++i->at, v);
}

/* Of what SQLite has no number for. */
static void put_u64(struct insert *i, uint64_t v)
{
	put_i64(i, v < (uint64_t)INT64_MAX ? (int64_t)v : INT64_MAX);
}

static void put_f64(struct insert *i, double v)
{
	(void)sqlite3_bind_double(i->st, ++i->at, v);
}

static void put_null(struct insert *i)
{
	(void)sqlite3_bind_null(i->st, ++i->at);
}

static void put_value(struct insert *i, const struct value *v)
{
	if (v->type == VALUE_I64)
		put_i64(i, v->i);
	else if (v->type == VALUE_U64)
		put_u64(i, v->u);
	else if (v->type == VALUE_F64)
		put_f64(i, v->f);
	else
		put_text(i, v->type == VALUE_STR ? v->s : NULL);
}

static void put_row(struct insert *i)
{
	if (i->st == NULL || sqlite3_step(i->st) != SQLITE_DONE)
		i->failed = true;
	(void)sqlite3_reset(i->st);
	i->at = 0;
}

static int insert_close(struct insert *i, struct err *e)
{
	const int r = i->failed ? wrong(i->to, e) : 0;

	(void)sqlite3_finalize(i->st);
	*i = (struct insert){0};
	return r;
}

/* --- nodes, and kernels by name: the tables of tree_rows.h */

struct table {
	struct insert in;
	const char *name;
	struct text sql;
	unsigned columns;
};

static void table_column(struct rows *r, const char *name, const char *unit, const char *type)
{
	struct table *t = r->arg;

	(void)type;
	text_fmt(&t->sql, "%s%s%s%s", t->columns++ > 0 ? ", " : "", name, *unit != '\0' ? "_" : "",
		unit);
}

static void table_heads_end(struct rows *r)
{
	struct table *t = r->arg;
	struct text whole = {0};
	char *sql;

	text_fmt(&whole, "CREATE TABLE %s(", t->name);
	text_add(&whole, t->sql.s, t->sql.n);
	text_char(&whole, ')');
	if (text_take(&whole, &sql, &(size_t){0}) < 0) {
		t->in.failed = true;
		return;
	}
	if (sqlite3_exec(t->in.to, sql, NULL, NULL, NULL) == SQLITE_OK)
		insert_open(&t->in, t->in.to, t->name, t->columns);
	else
		t->in.failed = true;
	free(sql);
}

static void table_end_row(struct table *t)
{
	if (t->in.at > 0)
		put_row(&t->in);
}

static void table_begin(struct rows *r)
{
	table_end_row(r->arg);
}

static void table_text(struct rows *r, const char *s)
{
	put_text(&((struct table *)r->arg)->in, s);
}

static void table_number(struct rows *r, const struct value *v)
{
	put_value(&((struct table *)r->arg)->in, v);
}

static void table_rows_end(struct rows *r)
{
	table_end_row(r->arg);
}

static int table_fill(
	sqlite3 *to, const char *name, rows_fn *rows, const struct profile *p, struct err *e)
{
	static const struct rows_form form = {table_column, table_begin, table_text, table_number,
		table_heads_end, table_rows_end};
	struct table t = {.in.to = to, .name = name};
	struct rows r = {.form = &form, .fixed = true, .arg = &t};
	int ret = rows(p, &r);

	text_fini(&t.sql);
	if (ret < 0) {
		(void)insert_close(&t.in, e);
		return err_set(e, ret, "out of memory");
	}
	return insert_close(&t.in, e);
}

int sql_tables_make(sqlite3 *to, struct err *e)
{
	struct profile *none = profile_new();
	int r = exec(to, schema, e);

	if (r == 0)
		r = exec(to, sql_memory_schema, e);
	if (none == NULL)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = table_fill(to, "nodes", rows_nodes, none, e);
	if (r == 0)
		r = table_fill(to, "kernel_names", rows_kernels, none, e);
	profile_free(none);
	return r;
}

/* --- the tree's other tables */

static int fill_session(sqlite3 *to, const struct profile_head *h, struct err *e)
{
	struct insert i;

	insert_open(&i, to, "session", 13);
	put_u64(&i, h->id);
	put_text(&i, h->name);
	put_text(&i, h->uuid);
	put_text(&i, h->state);
	put_text(&i, h->source);
	put_text(&i, h->command);
	put_i64(&i, h->created_ns);
	put_u64(&i, h->duration_ns);
	put_u64(&i, h->n_processes);
	put_u64(&i, h->launches);
	put_u64(&i, h->matched);
	put_u64(&i, h->unmatched);
	put_i64(&i, SQL_TABLES_VERSION);
	put_row(&i);
	return insert_close(&i, e);
}

static int fill_metrics(sqlite3 *to, const struct profile *p, struct err *e)
{
	struct insert i;

	insert_open(&i, to, "metrics", 3);
	for (uint32_t n = 0; n < p->n_nodes; n++)
		for (uint32_t m = 0; m < p->n_metrics; m++) {
			const struct value *v = profile_value(p, n, m);

			if (v->type == VALUE_NONE || v->type == VALUE_VECTOR ||
				rows_has(p->metric[m].name))
				continue;
			put_u64(&i, n);
			put_text(&i, p->metric[m].name);
			put_value(&i, v);
			put_row(&i);
		}
	return insert_close(&i, e);
}

static int fill_devices(sqlite3 *to, const struct profile *p, struct err *e)
{
	struct insert i;

	insert_open(&i, to, "devices", 9 + PART_MAX);
	for (uint32_t n = 0; n < p->n_devices; n++) {
		const struct profile_device *d = &p->device[n];

		put_text(&i, d->type);
		put_text(&i, d->id);
		put_text(&i, d->name);
		put_text(&i, d->arch_text);
		put_u64(&i, d->num_sms);
		put_u64(&i, d->clock_khz);
		put_u64(&i, d->memory_clock_khz);
		put_u64(&i, d->bus_width);
		put_u64(&i, d->busy_ns);
		for (uint32_t k = 0; k < PART_MAX; k++)
			if (d->has_parts)
				put_u64(&i, d->part_ns[k]);
			else
				put_null(&i);
		put_row(&i);
	}
	return insert_close(&i, e);
}

static int fill_losses(sqlite3 *to, const struct profile_head *h, struct err *e)
{
	struct insert i;

	insert_open(&i, to, "losses", 3);
	for (uint32_t n = 0; n < h->n_losses; n++) {
		put_u64(&i, h->losses[n].cause);
		put_text(&i, loss_words(h->losses[n].cause));
		put_u64(&i, h->losses[n].count);
		put_row(&i);
	}
	return insert_close(&i, e);
}

int sql_tables_tree(sqlite3 *to, const struct profile *p, struct err *e)
{
	int r = exec(to, "BEGIN; DROP TABLE nodes; DROP TABLE kernel_names", e);

	if (r == 0)
		r = table_fill(to, "nodes", rows_nodes, p, e);
	if (r == 0)
		r = table_fill(to, "kernel_names", rows_kernels, p, e);
	if (r == 0)
		r = fill_session(to, &p->head, e);
	if (r == 0)
		r = fill_metrics(to, p, e);
	if (r == 0)
		r = fill_devices(to, p, e);
	if (r == 0)
		r = fill_losses(to, &p->head, e);
	return r < 0 ? r : exec(to, "COMMIT", e);
}

/* --- the timeline's */

bool sql_tables_of_timeline(const char *table)
{
	return strncmp(table, "timeline_", 9) == 0;
}

struct filler {
	struct insert path, scope, value, operation, thread, part, burst;
	int64_t n_scopes, n_operations;
	struct parts parts;
	struct step { /* of the process at hand */
		int64_t scope;
		struct span at;
	} * step;
	uint32_t n_steps, cap_steps;
	bool whole; /* all operations of the timeline are seen, so that parts can be told */
	bool failed;
};

static struct filler *filler(struct timeline *w)
{
	return w->mine;
}

static void put_rank(struct insert *i, const struct timeline *w)
{
	put_i64(i, w->at.pid);
	if (w->at.ranked)
		put_i64(i, w->at.rank);
	else
		put_null(i);
}

/* Once for each node: names down to it, "/" between them. */
static void put_path(struct timeline *w, uint32_t node)
{
	struct insert *i = &filler(w)->path;
	uint32_t up[TRACE_DEPTH_MAX], n;
	struct text t = {0};

	if (w->known[node].told)
		return;
	w->known[node].told = true;
	n = trace_names_path(&w->names, node, up);
	while (n-- > 0) {
		if (w->known[up[n]].kind == NODE_ROOT)
			continue;
		text_str(&t, w->known[up[n]].name);
		text_str(&t, n > 0 ? "/" : "");
	}
	put_u64(i, node);
	put_text(i, w->known[node].name);
	(void)sqlite3_bind_text(i->st, ++i->at, t.n > 0 ? t.s : "", (int)t.n, SQLITE_TRANSIENT);
	put_row(i);
	text_fini(&t);
}

static uint64_t wall_ns(const struct timeline *w, uint64_t ns)
{
	return (uint64_t)w->zero_ns + ns;
}

static void put_scope_value(
	struct timeline *w, const struct held *h, int64_t scope, uint32_t node, uint64_t ns)
{
	struct insert *i = &filler(w)->value;
	double f;

	put_path(w, node);
	if (scope > 0)
		put_i64(i, scope);
	else
		put_null(i);
	put_i64(i, w->at.pid);
	put_u64(i, h->tid);
	put_u64(i, node);
	put_u64(i, wall_ns(w, ns));
	put_text(i, h->name);
	memcpy(&f, &h->bits, sizeof(f));
	if (h->type == VALUE_STR)
		put_text(i, h->text);
	else if (h->type == VALUE_F64)
		put_f64(i, f);
	else if (h->type == VALUE_I64)
		put_i64(i, (int64_t)h->bits);
	else
		put_u64(i, h->bits);
	put_row(i);
}

static void put_call(struct insert *i, const struct trace_call *c)
{
	if (c != NULL)
		put_text(i, gpu_classes[c->class].word);
	else
		put_null(i);
	if (c != NULL && c->stream != UINT32_MAX)
		put_u64(i, c->stream);
	else
		put_null(i);
	if (c != NULL && c->event != 0)
		put_u64(i, c->event);
	else
		put_null(i);
	if (c != NULL)
		put_u64(i, c->correlation);
	else
		put_null(i);
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct filler *f = filler(w);
	struct insert *i = &f->scope;

	put_path(w, s->node);
	put_i64(i, ++f->n_scopes);
	put_rank(i, w);
	put_u64(i, s->tid);
	put_u64(i, s->node);
	put_u64(i, wall_ns(w, s->begin_ns));
	put_u64(i, wall_ns(w, s->end_ns));
	put_i64(i, (s->flags & TRACE_SPAN) != 0);
	put_i64(i, (s->flags & TRACE_OPEN) != 0);
	put_i64(i, (s->flags & TRACE_BEGAN_BEFORE) != 0);
	put_i64(i, (s->flags & TRACE_UNWOUND) != 0);
	put_call(i, (s->flags & TRACE_CALL) != 0 ? &s->call : NULL);
	put_row(i);
	parts_seen(&f->parts, s->end_ns);
	if (f->whole && timeline_is_step(w->known[s->node].name)) {
		if (ROOM(w, f->step, f->cap_steps, f->n_steps) < 0)
			f->failed = true;
		else
			f->step[f->n_steps++] =
				(struct step){f->n_scopes, {s->begin_ns, s->end_ns}};
	}
	for (uint32_t k = 0; k < s->n_metrics; k++)
		put_scope_value(w, &w->held[w->taken[k]], f->n_scopes, s->node, s->begin_ns);
}

static void on_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	put_scope_value(w, h, 0, h->node, ns);
}

static void put_config(struct insert *i, const struct trace_config *c)
{
	for (unsigned k = 0; k < 9 && c == NULL; k++)
		put_null(i);
	if (c == NULL)
		return;
	for (unsigned k = 0; k < 3; k++)
		put_u64(i, c->grid[k]);
	for (unsigned k = 0; k < 3; k++)
		put_u64(i, c->block[k]);
	put_u64(i, c->registers);
	put_u64(i, c->static_shared);
	put_u64(i, c->dynamic_shared);
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	const bool launched = (o->op->flags & TRACE_UNLAUNCHED) == 0;
	struct filler *f = filler(w);
	struct insert *i = &f->operation;

	put_path(w, o->node);
	put_i64(i, ++f->n_operations);
	put_rank(i, w);
	put_u64(i, o->gpu->ordinal);
	put_u64(i, o->stream->context);
	put_u64(i, o->stream->stream);
	put_u64(i, o->lane);
	put_text(i, gpu_classes[o->op->class].word);
	put_u64(i, o->node);
	put_u64(i, wall_ns(w, o->start_ns));
	put_u64(i, wall_ns(w, o->end_ns));
	put_u64(i, o->op->bytes);
	if (launched)
		put_u64(i, o->op->correlation);
	else
		put_null(i);
	put_i64(i, (o->op->flags & TRACE_GRAPH) != 0);
	put_i64(i, o->launch);
	if (o->launch) {
		put_u64(i, wall_ns(w, o->launch_ns));
		put_u64(i, o->tid);
	} else {
		put_null(i);
		put_null(i);
	}
	put_config(i, o->config);
	put_row(i);
	f->failed |= f->whole && !parts_op(&f->parts, o);
}

static void on_burst(struct timeline *w, const struct timeline_burst *b)
{
	struct insert *i = &filler(w)->burst;

	put_rank(i, w);
	put_u64(i, b->tid);
	put_u64(i, wall_ns(w, b->begin_ns));
	put_u64(i, wall_ns(w, b->end_ns));
	put_u64(i, b->n);
	put_row(i);
}

static void on_open(struct timeline *w)
{
	filler(w)->failed |= parts_open(&filler(w)->parts, w) < 0;
}

static void on_process(struct timeline *w)
{
	parts_process(&filler(w)->parts);
	filler(w)->n_steps = 0;
}

/* What a GPU did in a step. */
static void put_part(struct timeline *w, const struct step *s, const struct parts_gpu *g)
{
	struct insert *i = &filler(w)->part;
	const struct gpu_seen *seen = timeline_gpu(w, g->device);
	uint64_t part[PART_MAX] = {0};
	const uint64_t active = parts_window(&filler(w)->parts, g, &s->at, part);

	put_i64(i, s->scope);
	put_rank(i, w);
	put_u64(i, seen != NULL ? seen->ordinal : g->device);
	put_u64(i, active);
	for (uint32_t k = 0; k < PART_MAX; k++)
		put_u64(i, part[k]);
	put_row(i);
}

static void on_process_end(struct timeline *w)
{
	struct filler *f = filler(w);
	struct insert *i = &f->thread;

	f->failed |= !parts_settle(&f->parts, w);
	for (uint32_t s = 0; s < f->n_steps && !f->failed; s++)
		for (uint32_t k = 0; k < f->parts.n_gpus; k++)
			put_part(w, &f->step[s], &f->parts.gpu[k]);

	for (uint32_t k = 0; k < w->n_threads; k++) {
		put_rank(i, w);
		put_u64(i, w->thread[k].tid);
		put_text(i, w->thread[k].name);
		put_row(i);
	}
}

int sql_tables_timeline(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.metric = on_metric,
		.burst = on_burst,
		.process_end = on_process_end};
	struct filler f = {.whole = s->to_ns == 0 && s->last_step == 0 && !s->one_phase};
	struct insert *const all[] = {
		&f.path, &f.scope, &f.value, &f.operation, &f.thread, &f.part, &f.burst};
	sqlite3 *to = arg;
	int r = exec(to, "BEGIN", e);

	if (r < 0)
		return r;
	insert_open(&f.path, to, "timeline_path", 3);
	insert_open(&f.scope, to, "timeline_scope", 15);
	insert_open(&f.value, to, "timeline_value", 7);
	insert_open(&f.operation, to, "timeline_operation", 26);
	insert_open(&f.thread, to, "timeline_thread", 4);
	insert_open(&f.part, to, "timeline_parts", 5 + PART_MAX);
	insert_open(&f.burst, to, "timeline_burst", 6);
	r = timeline_write(&form, &f, db, id, s, NULL, ret_left, e);
	if (r == 0 && f.failed)
		r = err_set(e, -ENOMEM, "out of memory");
	parts_fini(&f.parts);
	free(f.step);
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (r == 0)
			r = insert_close(all[i], e);
		else
			(void)insert_close(all[i], NULL);
	if (r < 0)
		(void)sqlite3_exec(to, "ROLLBACK", NULL, NULL, NULL);
	return r < 0 ? r : exec(to, "COMMIT", e);
}
