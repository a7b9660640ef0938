/* SPDX-License-Identifier: MIT. session.c: the rows of the session, but for its timeline: SQLite
 * sums what place.c left by node. */
#include "placing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clockmap.h"
#include "hist.h"
#include "nodehash.h"
#include "rows.h"
#include "schema.h"
#include "text.h"

#define SESSION      1
#define YEAR_2000_NS 946684800000000000 /* what is before has no date: its clock began elsewhere */

/* --- sums that SQLite does not have */

struct total {
	uint64_t ns;
};

static void total_step(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct total *t = sqlite3_aggregate_context(c, sizeof(*t));

	(void)n;
	if (t != NULL && __builtin_add_overflow(t->ns, (uint64_t)sqlite3_value_int64(v[0]), &t->ns))
		t->ns = UINT64_MAX;
}

static void total_end(sqlite3_context *c)
{
	const struct total *t = sqlite3_aggregate_context(c, 0);

	sqlite3_result_int64(c, t == NULL ? 0 : t->ns < INT64_MAX ? (int64_t)t->ns : INT64_MAX);
}

static void buckets_step(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct hist_counts *h = sqlite3_aggregate_context(c, sizeof(*h));
	const uint32_t b = hist_bucket((uint64_t)sqlite3_value_int64(v[0]));

	(void)n;
	if (h == NULL)
		return;
	hist_reach(h, b, b + 1);
	h->count[b]++;
}

static void buckets_end(sqlite3_context *c)
{
	const struct hist_counts *h = sqlite3_aggregate_context(c, 0);
	uint8_t *bytes;

	if (h == NULL)
		return;
	bytes = malloc(HIST_PACKED_MAX(h->n));
	if (bytes == NULL)
		sqlite3_result_error_nomem(c);
	else
		sqlite3_result_blob64(c, bytes, hist_pack(h, bytes), free);
}

static int make_sums(struct stage *s)
{
	if (sqlite3_create_function(s->db, "total_ns", 1, SQLITE_UTF8, NULL, NULL, total_step,
		    total_end) != SQLITE_OK ||
		sqlite3_create_function(s->db, "buckets_of", 1, SQLITE_UTF8, NULL, NULL,
			buckets_step, buckets_end) != SQLITE_OK)
		return stage_wrong(s);
	return 0;
}

/* --- tables */

/* clang-format off */
#define CELL "INSERT INTO main.cell(session,process,segment,node,device,class,count,sum_ns,min_ns,max_ns," \
	"bytes,untimed,open,buckets) SELECT 1,process+1,0,node+1,"
/* A scope that was open at the end is in the sum, and not in the count. */
#define ENDED " FILTER (WHERE (flags & 8) = 0)"
static const char *const sums[] = {
	CELL "-1,class,count(*)" ENDED ",total_ns(end-begin),coalesce(min(end-begin)" ENDED ",0),"
	"coalesce(max(end-begin)" ENDED ",0),0,0,count(*)-count(*)" ENDED ",buckets_of(end-begin)" ENDED
	" FROM scratch.scope GROUP BY process,node,class",
	CELL "device,class,count(*),total_ns(end-start),min(end-start),max(end-start),total_ns(bytes),0,0,"
	"buckets_of(end-start) FROM scratch.work GROUP BY process,node,device,class",
	"INSERT INTO main.config(session,process,node,config,grid_x,grid_y,grid_z,block_x,block_y,block_z,"
	"registers,static_shared,dynamic_shared,count) SELECT 1,process+1,node+1,config,x,y,z,bx,by,bz,regs,"
	"fixed,dynamic,count(*) FROM scratch.work JOIN scratch.config c ON c.id=config"
	" GROUP BY process,node,config",
};
/* clang-format on */
_Static_assert(TRACE_OPEN == 8, "as in ENDED");

static int put_row(struct stage *s, enum table_id table, sqlite3_stmt **ret)
{
	struct text t = {0};
	uint32_t i;
	char *sql;
	int r;

	text_fmt(&t, "INSERT INTO main.[%s](", schema_tables[table].name);
	schema_names(&t, table);
	text_str(&t, ") VALUES(?");
	for (i = 1; i < schema_tables[table].n_columns; i++)
		text_str(&t, ",?");
	text_char(&t, ')');
	if (text_take(&t, &sql, &(size_t){0}) < 0)
		return stage_no_memory(s);
	r = stage_prepare(s, sql, ret);
	free(sql);
	return r;
}

static int put_done(struct stage *s, sqlite3_stmt *q)
{
	const int rc = sqlite3_step(q);

	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : stage_wrong(s);
}

static int put_nodes(struct stage *s)
{
	sqlite3_stmt *q = NULL;
	uint32_t i;
	int rc = SQLITE_DONE,
	    r = stage_prepare(
		    s, "INSERT INTO main.node(id,hash,parent,kind,name) VALUES(?,?,?,?,?)", &q);

	for (i = 0; r == 0 && i < s->n_nodes && rc == SQLITE_DONE; i++) {
		const struct stage_node *n = &s->node[i];

		(void)sqlite3_bind_int64(q, 1, (int64_t)i + 1);
		(void)sqlite3_bind_blob(q, 2, n->hash, 16, SQLITE_STATIC);
		(void)sqlite3_bind_int64(q, 3, i == 0 ? 0 : (int64_t)n->parent + 1);
		(void)sqlite3_bind_int(q, 4, n->kind);
		(void)sqlite3_bind_text(
			q, 5, s->name[n->name].s, (int)s->name[n->name].n, SQLITE_STATIC);
		rc = sqlite3_step(q);
		(void)sqlite3_reset(q);
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = stage_wrong(s);
	(void)sqlite3_finalize(q);
	return r;
}

static int put_configs(struct stage *s)
{
	sqlite3_stmt *q = NULL;
	uint32_t i, k;
	int rc = SQLITE_DONE,
	    r = stage_run(s, "CREATE TABLE scratch.config(id INTEGER PRIMARY KEY,x,y,z,bx,by,bz,"
			     "regs,fixed,dynamic)");

	if (r == 0)
		r = stage_prepare(s, "INSERT INTO scratch.config VALUES(?,?,?,?,?,?,?,?,?,?)", &q);
	for (i = 0; r == 0 && i < s->n_configs && rc == SQLITE_DONE; i++) {
		uint32_t v[9];

		memcpy(v, &s->config[i], sizeof(v));
		(void)sqlite3_bind_int64(q, 1, i);
		for (k = 0; k < 9; k++)
			(void)sqlite3_bind_int64(q, (int)k + 2, v[k]);
		rc = sqlite3_step(q);
		(void)sqlite3_reset(q);
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = stage_wrong(s);
	(void)sqlite3_finalize(q);
	return r;
}
_Static_assert(sizeof(struct trace_config) == 9 * sizeof(uint32_t), "as put_configs() takes it");

/* --- processes and their devices */

static const char *title_of(const struct stage *s, const struct stage_process *p, const char *other)
{
	return p->title != STAGE_NONE ? s->name[p->title].s : other;
}

static int put_process(struct place *p, uint32_t i, int64_t shift)
{
	struct stage *s = p->s;
	const struct stage_process *from = &s->process[i];
	const struct stage_file *file = &s->file[from->file];
	const int64_t rank = from->rank >= 0 ? from->rank : file->rank;
	struct row_process row = {.id = i + 1,
		.pid = from->pid,
		.ns_pid = from->pid,
		.uid = geteuid(),
		.rank = rank >= 0 && rank < INT32_MAX ? (int32_t)rank : -1,
		.local_rank = -1,
		.world_size =
			file->world > 0 && file->world < INT32_MAX ? (int32_t)file->world : -1,
		.started_ns = p->low + shift,
		.ended_ns = p->high + shift,
		.end_reason = END_EXITED,
		.source = s->source,
		.gpu_state = GPU_ON,
		.created_clock = (uint64_t)(p->low + shift),
		.created_monotonic_ns = (uint64_t)(p->low + shift),
		.created_realtime_ns = (uint64_t)(p->low + shift)};
	struct row_io x = {0};
	sqlite3_stmt *q;
	int r;

	row.command = strdup(title_of(s, from, file->name));
	r = row.command == NULL ? stage_no_memory(s) : put_row(s, TABLE_process, &q);
	if (getrandom(row.ring, sizeof(row.ring), 0) != (ssize_t)sizeof(row.ring))
		row.ring[0] = (uint8_t)i;
	if (r == 0) {
		(void)row_put_process(&x, q, &row);
		r = put_done(s, q);
	}
	free(row.command);
	return r;
}

/* One GPU is the same one for all processes of a file; whether it is another file's none of them says. */
static int put_gpu(struct place *p, const struct place_gpu *g, int64_t shift)
{
	struct row_device d = {.process = g->process + 1,
		.device = g->busy->device,
		.ordinal = g->busy->device,
		.type = 1};
	const struct stage_device *known = NULL;
	struct row_io x = {0};
	sqlite3_stmt *q = NULL;
	uint64_t ns[PART_MAX], all;
	uint32_t i;
	int r;

	all = busy_parts(g->busy, ns);
	for (i = 0; i < p->s->n_devices; i++)
		if (p->s->device[i].ordinal == g->busy->device)
			known = &p->s->device[i];
	memcpy(d.uuid, "of file ", 8);
	memcpy(d.uuid + 8, &p->s->process[g->process].file, sizeof(uint32_t));
	memcpy(d.uuid + 12, &g->busy->device, sizeof(g->busy->device));
	if (known != NULL) {
		d.arch = known->arch;
		d.num_sms = known->num_sms;
		d.clock_khz = known->clock_khz;
		d.memory_clock_khz = known->memory_clock_khz;
		d.bus_width = known->bus_width;
		d.type = known->type != 0 ? known->type : d.type;
		d.memory_bytes = known->memory_bytes;
		memcpy(d.name, known->name, sizeof(d.name));
	}
	r = put_row(p->s, TABLE_device, &q);
	if (r < 0)
		return r;
	(void)row_put_device(&x, q, &d);
	r = put_done(p->s, q);
	if (r == 0)
		r = put_row(p->s, TABLE_busy, &q);
	if (r < 0)
		return r;
	(void)row_put_busy(&x, q,
		&(struct row_busy){.session = SESSION,
			.process = g->process + 1,
			.device = g->busy->device,
			.busy_ns = all,
			.first_ns = place_busy_time((int64_t)g->busy->first_ns) + (uint64_t)shift,
			.last_ns = place_busy_time((int64_t)g->busy->last_ns) + (uint64_t)shift,
#define X(name, column, ...) .column = ns[PART_##name],
			GPU_PARTS_STORED(X)
#undef X
		});
	return put_done(p->s, q);
}

/* --- the session */

static uint32_t first_process(const struct stage *s)
{
	uint32_t i;

	for (i = 0; i < s->n_processes && s->process[i].id == 0; i++)
		;
	return i;
}

static int put_session(struct place *p, int64_t shift, const struct import_options *o)
{
	const struct stage *s = p->s;
	struct row_session row = {.id = SESSION,
		.uid = geteuid(),
		.source = SOURCE_IMPORT,
		.data = s->source == FROM_HATCHET ? SESSION_TREE : SESSION_BOTH,
		.state = SESSION_IS_FINALIZED,
		.match = MATCH_PID,
		.switches = s->taken.calls > 0 ? SWITCH_SYNC : 0,
		.job_number = UINT32_MAX,
		.pid = s->process[first_process(s)].pid,
		.gpu = p->n_gpus > 0 ? SESSION_GPU_WANTED : SESSION_GPU_NONE,
		.created_ns = p->low + shift,
		.active_ns = (uint64_t)(p->high - p->low),
		.launches = s->taken.matched + s->taken.unmatched,
		.matched = s->taken.matched};
	struct row_io x = {0};
	struct timespec now = {0};
	sqlite3_stmt *q;
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (row.created_ns < YEAR_2000_NS)
		row.created_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	row.finalized_ns = row.created_ns + (p->high - p->low);
	(void)snprintf(row.name, sizeof(row.name), "%s", o->name);
	(void)snprintf(row.command, sizeof(row.command), "%s", o->in->file);
	if (getrandom(row.uuid, sizeof(row.uuid), 0) != (ssize_t)sizeof(row.uuid))
		return err_set(p->s->e, neg_errno(), "no random numbers");
	r = put_row(p->s, TABLE_session, &q);
	if (r < 0)
		return r;
	(void)row_put_session(&x, q, &row);
	return put_done(p->s, q);
}

static int put_note(struct stage *s, uint32_t number, const char *text)
{
	struct row_note row = {.session = SESSION, .number = number};
	struct row_io x = {0};
	sqlite3_stmt *q;
	int r = put_row(s, TABLE_note, &q);

	if (r < 0)
		return r;
	(void)snprintf(row.text, sizeof(row.text), "%s", text);
	(void)row_put_note(&x, q, &row);
	return put_done(s, q);
}

static int put_notes(struct stage *s, const struct import_options *o)
{
	char text[256];
	uint32_t i;
	int r, n;

	n = snprintf(text, sizeof(text), "imported from %.200s", o->in->file);
	if (o->n_files > 1)
		(void)snprintf(text + n, sizeof(text) - (size_t)n, " and %u file%s more",
			o->n_files - 1, o->n_files > 2 ? "s" : "");
	r = put_note(s, 0, text);
	for (i = 0; i < LEFT_MAX && r == 0; i++) {
		if (s->taken.left[i] == 0)
			continue;
		(void)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)s->taken.left[i],
			import_left_words[i]);
		r = put_note(s, i + 1, text);
	}
	return r;
}

static int put_spans(struct place *p, int64_t shift)
{
	char sql[512];

	(void)snprintf(sql, sizeof(sql),
		"INSERT INTO main.active VALUES(1,%lld,%lld);"
		"INSERT INTO main.segment VALUES(1,0,%lld,%lld);"
		"INSERT INTO main.member SELECT 1,id FROM main.process;"
		"INSERT INTO main.meta(key,value) VALUES('portable',1),"
		"('store_uuid',randomblob(16))",
		(long long)(p->low + shift), (long long)(p->high + shift),
		(long long)(p->low + shift), (long long)(p->high + shift));
	return stage_run(p->s, sql);
}

/* The file's base, unless times would then be none of a clock: they begin at 0, or where they do. */
static int64_t shift_of(const struct place *p)
{
	const int64_t base = p->s->file->base_ns;
	int64_t end;

	if (base < 0 || __builtin_add_overflow(p->high, base, &end) ||
		end > (int64_t)CLOCK_NS_MAX || p->low + base < 0)
		return p->low < 0 ? -p->low : 0;
	return base;
}

int session_write(struct place *p, const struct import_options *o)
{
	const int64_t shift = shift_of(p);
	struct stage *s = p->s;
	size_t i;
	int r = put_nodes(s);

	if (r == 0)
		r = put_configs(s);
	if (r == 0)
		r = make_sums(s);
	for (i = 0; i < sizeof(sums) / sizeof(*sums) && r == 0; i++)
		r = stage_run(s, sums[i]);
	for (i = 0; i < s->n_processes && r == 0; i++)
		if (s->process[i].id != 0)
			r = put_process(p, (uint32_t)i, shift);
	for (i = 0; i < p->n_gpus && r == 0; i++)
		r = put_gpu(p, &p->gpu[i], shift);
	if (r == 0)
		r = put_session(p, shift, o);
	if (r == 0)
		r = put_notes(s, o);
	if (r == 0)
		r = put_spans(p, shift);
	if (r == 0)
		r = memory_write(p, shift);
	return r < 0 ? r : timeline_write_chunks(p, shift);
}
