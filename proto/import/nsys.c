/* SPDX-License-Identifier: MIT. nsys.c: reads what `nsys export --type sqlite` writes. Versions differ
 * in columns and tables: what is not there is not known. The database may be anybody's: it is opened
 * read-only, and of it only plain tables are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu_terms.h"
#include "readers.h"
#include "text.h"

enum nvtx_event { NVTX_MARK = 34, NVTX_PUSHED = 59, NVTX_STARTED = 60 };

struct nsys {
	struct stage *s;
	sqlite3 *db;
	const char *what;
	sqlite3_stmt *row, *put_text, *text;
};

static int wrong(struct nsys *n)
{
	return err_set(n->s->e, -EBADMSG, "%s cannot be read: %s", n->what, sqlite3_errmsg(n->db));
}

/* --- rows of a table */

static bool has(struct nsys *n, const char *table, const char *column)
{
	sqlite3_stmt *q;
	bool found;

	if (sqlite3_prepare_v2(n->db,
		    "SELECT 1 FROM pragma_table_info(?1) WHERE name=?2 AND (SELECT type FROM"
		    " sqlite_schema WHERE name=?1)='table'",
		    -1, &q, NULL) != SQLITE_OK)
		return false;
	(void)sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(q, 2, column, -1, SQLITE_STATIC);
	found = sqlite3_step(q) == SQLITE_ROW;
	(void)sqlite3_finalize(q);
	return found;
}

typedef int row_fn(struct nsys *n);

/* Each row, with these columns in this order, NULL where there is none such; a table without the
 * first of them is none of nsys'. */
static int each(struct nsys *n, const char *table, const char *const *columns, row_fn *row)
{
	struct text t = {0};
	uint32_t i;
	char *sql;
	int rc = SQLITE_DONE, r = 0;

	if (!has(n, table, columns[0]))
		return 0;
	for (i = 0; columns[i] != NULL; i++)
		text_fmt(&t, "%s%s", i == 0 ? "SELECT " : ",",
			has(n, table, columns[i]) ? columns[i] : "NULL");
	text_fmt(&t, " FROM %s", table);
	if (text_take(&t, &sql, &(size_t){0}) < 0)
		return stage_no_memory(n->s);
	if (sqlite3_prepare_v2(n->db, sql, -1, &n->row, NULL) != SQLITE_OK)
		r = wrong(n);
	free(sql);
	while (r == 0 && (rc = sqlite3_step(n->row)) == SQLITE_ROW)
		r = row(n);
	if (r == 0 && rc != SQLITE_DONE)
		r = wrong(n);
	(void)sqlite3_finalize(n->row);
	n->row = NULL;
	return r;
}

static int64_t number(struct nsys *n, int i)
{
	return sqlite3_column_int64(n->row, i);
}

static bool known(struct nsys *n, int i)
{
	return sqlite3_column_type(n->row, i) == SQLITE_INTEGER;
}

static uint32_t number32(struct nsys *n, int i)
{
	const int64_t v = number(n, i);

	return v < 0 ? 0 : v < UINT32_MAX ? (uint32_t)v : UINT32_MAX - 1;
}

static uint32_t stream_at(struct nsys *n, int i)
{
	return known(n, i) ? stage_stream(number(n, i)) : UINT32_MAX;
}

static uint64_t event_at(struct nsys *n, int i)
{
	const uint32_t id = stream_at(n, i);

	return id < UINT32_MAX ? id : 0;
}

/* --- names */

static int name_of(struct nsys *n, const void *text, int bytes, uint32_t *ret)
{
	return stage_name(n->s, text != NULL ? text : "", text != NULL ? (size_t)bytes : 0, ret)
		       ? 0
		       : stage_no_memory(n->s);
}

static int on_text(struct nsys *n)
{
	const void *text = sqlite3_column_text(n->row, 1);
	uint32_t name;
	int rc, r = name_of(n, text, sqlite3_column_bytes(n->row, 1), &name);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(n->put_text, 1, number(n, 0));
	(void)sqlite3_bind_int64(n->put_text, 2, name);
	rc = sqlite3_step(n->put_text);
	(void)sqlite3_reset(n->put_text);
	return rc == SQLITE_DONE ? 0 : stage_wrong(n->s);
}

/* The text of StringIds that column i names; else `other`. */
static uint32_t text_at(struct nsys *n, int i, uint32_t other)
{
	uint32_t name = other;

	if (!known(n, i))
		return other;
	(void)sqlite3_bind_int64(n->text, 1, number(n, i));
	if (sqlite3_step(n->text) == SQLITE_ROW)
		name = (uint32_t)sqlite3_column_int64(n->text, 0);
	(void)sqlite3_reset(n->text);
	return name;
}

/* --- processes and threads: 24 bits each of a global number */

static int process_of(struct nsys *n, int i, uint32_t *ret)
{
	char pid[16];
	uint32_t key;

	(void)snprintf(pid, sizeof(pid), "%u", (unsigned)(number(n, i) >> 24 & 0xffffff));
	if (!stage_name(n->s, pid, strlen(pid), &key) || !stage_process(n->s, key, ret))
		return stage_no_memory(n->s);
	n->s->process[*ret].owner = *ret;
	return 0;
}

static int thread_of(struct nsys *n, int i, uint32_t *ret)
{
	uint32_t process, key;
	char tid[16];
	int r = process_of(n, i, &process);

	(void)snprintf(tid, sizeof(tid), "%u", (unsigned)(number(n, i) & 0xffffff));
	if (r == 0 && (!stage_name(n->s, tid, strlen(tid), &key) ||
			      !stage_thread(n->s, process, key, ret)))
		r = stage_no_memory(n->s);
	return r;
}

static int on_thread_name(struct nsys *n)
{
	uint32_t thread;
	int r = thread_of(n, 1, &thread);

	if (r == 0)
		n->s->thread[thread].title = text_at(n, 0, STAGE_NONE);
	return r;
}

static int on_process(struct nsys *n)
{
	uint32_t process;
	int r = process_of(n, 0, &process);

	if (r == 0)
		r = name_of(n, sqlite3_column_text(n->row, 1), sqlite3_column_bytes(n->row, 1),
			&n->s->process[process].title);
	return r;
}

/* --- events */

static int on_call(struct nsys *n)
{
	struct stage_slice x = {.kind = SLICE_API,
		.begin = number(n, 0),
		.end = number(n, 1),
		.correlation = known(n, 2) ? number(n, 2) : -1,
		.name = text_at(n, 4, 0),
		.node = STAGE_NONE};
	int r = thread_of(n, 3, &x.thread);

	n->s->taken.events++;
	return r < 0 ? r : stage_slice(n->s, &x);
}

static int on_range(struct nsys *n)
{
	const int64_t type = number(n, 2);
	struct stage_slice x = {.kind = SLICE_SCOPE,
		.begin = number(n, 0),
		.end = number(n, 1),
		.correlation = -1,
		.node = STAGE_NONE,
		.flags = type == NVTX_STARTED ? TRACE_SPAN : 0};
	int r;

	n->s->taken.events++;
	if (type != NVTX_PUSHED && type != NVTX_STARTED) {
		n->s->taken.left[type == NVTX_MARK ? LEFT_INSTANTS : LEFT_UNNAMED]++;
		return 0;
	}
	if (!known(n, 1)) {
		n->s->taken.left[LEFT_OPEN]++;
		return 0;
	}
	r = thread_of(n, 5, &x.thread);
	if (r == 0 && sqlite3_column_type(n->row, 3) == SQLITE_TEXT)
		r = name_of(n, sqlite3_column_text(n->row, 3), sqlite3_column_bytes(n->row, 3),
			&x.name);
	else if (r == 0)
		x.name = text_at(n, 4, 0);
	if (r == 0 && type == NVTX_STARTED && !stage_child(n->s, 0, NODE_SCOPE, x.name, &x.node))
		r = stage_no_memory(n->s);
	return r < 0 ? r : stage_slice(n->s, &x);
}

#define WORK "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

/* What the first columns of each kind of work are. */
static int work_of(struct nsys *n, struct stage_op *o)
{
	o->start = number(n, 0);
	o->end = known(n, 1) ? number(n, 1) : INT64_MIN;
	o->device = number32(n, 2);
	o->context = number32(n, 3);
	o->stream = number32(n, 4);
	o->correlation = known(n, 5) ? number(n, 5) : -1;
	o->node = o->config = o->thread = STAGE_NONE;
	n->s->taken.events++;
	return process_of(n, 6, &o->process);
}

static int on_kernel(struct nsys *n)
{
	struct trace_config g;
	struct stage_op o = {.flags = 0};
	int i, r = work_of(n, &o);

	if (r < 0)
		return r;
	o.name = text_at(n, 7, text_at(n, 8, 0));
	o.class = gpu_kernel_is_comm(n->s->name[o.name].s) ? CLASS_COMM : CLASS_COMPUTE;
	o.flags = known(n, 18) && number(n, 18) != 0 ? TRACE_GRAPH : 0;
	for (i = 0; i < 3; i++) {
		g.grid[i] = number32(n, 9 + i);
		g.block[i] = number32(n, 12 + i);
	}
	g.registers = number32(n, 15);
	g.static_shared = number32(n, 16);
	g.dynamic_shared = number32(n, 17);
	if (known(n, 9) && !stage_config(n->s, &g, &o.config))
		return stage_no_memory(n->s);
	return stage_op(n->s, &o);
}

static int on_memory(struct nsys *n, uint8_t class)
{
	struct stage_op o = {.class = class, .bytes = (uint64_t)number(n, 7) & INT64_MAX};
	int r = work_of(n, &o);

	if (r == 0)
		r = name_of(
			n, gpu_classes[class].leaf, (int)strlen(gpu_classes[class].leaf), &o.name);
	return r < 0 ? r : stage_op(n->s, &o);
}

static int on_sync(struct nsys *n)
{
	/* CUpti_ActivitySynchronizationType */
	static const uint8_t classes[] = {CLASS_CPU, CLASS_EVENT_SYNC, CLASS_STREAM_WAIT,
		CLASS_STREAM_SYNC, CLASS_DEVICE_SYNC};
	const uint32_t type = number32(n, 6);
	struct stage_sync x = {.begin = number(n, 0),
		.end = known(n, 1) ? number(n, 1) : INT64_MIN,
		.event = event_at(n, 5),
		.correlation = number(n, 2),
		.class = type < sizeof(classes) ? classes[type] : CLASS_CPU};
	int r = process_of(n, 3, &x.process);

	n->s->taken.events++;
	x.stream = x.class == CLASS_DEVICE_SYNC ? UINT32_MAX : stream_at(n, 4);
	return r < 0 ? r : stage_sync(n->s, &x);
}

static int on_record(struct nsys *n)
{
	struct stage_sync x = {
		.stream = stream_at(n, 2), .event = event_at(n, 3), .correlation = number(n, 0)};
	int r = process_of(n, 1, &x.process);

	n->s->taken.events++;
	return r < 0 ? r : stage_recorded(n->s, &x);
}

static int on_copy(struct nsys *n)
{
	/* CUpti_ActivityMemcpyKind */
	static const uint8_t classes[] = {CLASS_OTHER, CLASS_H2D, CLASS_D2H, CLASS_H2D, CLASS_D2H,
		CLASS_D2D, CLASS_D2D, CLASS_D2D, CLASS_D2D, CLASS_OTHER, CLASS_P2P};
	const uint32_t kind = number32(n, 8);

	return on_memory(n, kind < sizeof(classes) ? classes[kind] : CLASS_OTHER);
}

static int on_set(struct nsys *n)
{
	return on_memory(n, CLASS_MEMSET);
}

/* --- the machine */

static int on_gpu(struct nsys *n)
{
	struct stage_device *d = stage_device(n->s, number32(n, 0));
	const char *name = (const char *)sqlite3_column_text(n->row, 1);

	if (d == NULL)
		return 0; /* more than a machine has */
	(void)snprintf(d->name, sizeof(d->name), "%s", name != NULL ? name : "");
	d->num_sms = number32(n, 2);
	d->arch = number32(n, 3) % 1000 * 10 + number32(n, 4) % 10;
	d->memory_bytes = (uint64_t)number(n, 5) & INT64_MAX;
	return 0;
}

static int on_start(struct nsys *n)
{
	stage_reading(n->s)->base_ns = number(n, 0);
	return 0;
}

static int read_tables(struct nsys *n)
{
	/* clang-format off */
	static const struct {
		const char *table;
		row_fn *row;
		const char *columns[24];
	} tables[] = {
		{"StringIds", on_text, {"id", "value"}},
		{"PROCESSES", on_process, {"globalPid", "name"}},
		{"ThreadNames", on_thread_name, {"nameId", "globalTid"}},
		{"TARGET_INFO_GPU", on_gpu, {"id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory"}},
		{"TARGET_INFO_SESSION_START_TIME", on_start, {"utcEpochNs"}},
		{"CUPTI_ACTIVITY_KIND_RUNTIME", on_call, {"start", "end", "correlationId", "globalTid", "nameId"}},
		{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", on_sync, {"start", "end", "correlationId", "globalPid",
			"streamId", "eventId", "syncType"}},
		{"CUPTI_ACTIVITY_KIND_CUDA_EVENT", on_record, {"correlationId", "globalPid", "streamId", "eventId"}},
		{"NVTX_EVENTS", on_range, {"start", "end", "eventType", "text", "textId", "globalTid"}},
		{"CUPTI_ACTIVITY_KIND_KERNEL", on_kernel, {WORK, "demangledName", "shortName", "gridX",
			"gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
			"staticSharedMemory", "dynamicSharedMemory", "graphNodeId"}},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", on_copy, {WORK, "bytes", "copyKind"}},
		{"CUPTI_ACTIVITY_KIND_MEMSET", on_set, {WORK, "bytes"}},
	};
	/* clang-format on */
	size_t i;
	int r = sqlite3_exec(n->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) ==
				SQLITE_OK
			? 0
			: wrong(n);

	if (r == 0)
		r = stage_run(n->s, "CREATE TABLE scratch.text(id INTEGER PRIMARY KEY, name)");

	if (r == 0)
		r = stage_prepare(
			n->s, "INSERT OR IGNORE INTO scratch.text VALUES(?,?)", &n->put_text);
	if (r == 0)
		r = stage_prepare(n->s, "SELECT name FROM scratch.text WHERE id=?", &n->text);
	for (i = 0; i < sizeof(tables) / sizeof(*tables) && r == 0; i++) {
		stage_read_part(n->s, (double)i / (sizeof(tables) / sizeof(*tables)));
		r = each(n, tables[i].table, tables[i].columns, tables[i].row);
	}
	(void)sqlite3_finalize(n->put_text);
	(void)sqlite3_finalize(n->text);
	return r < 0 ? r
		     : stage_run(n->s, "DROP TABLE scratch.text"); /* another file has its own */
}

/* SQLite reads what is missing of the last page as zeroes, and what stands there as if it were nothing. */
static bool is_cut(int fd)
{
	uint8_t head[18];
	struct stat st;
	unsigned page;

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) || fstat(fd, &st) < 0)
		return false; /* SQLite says it */
	page = (unsigned)head[16] << 8 | head[17];
	return st.st_size % (page > 1 ? page : 65536) != 0;
}

int nsys_read(struct stage *s, int fd, const char *what)
{
	struct nsys n = {.s = s, .what = what};
	char uri[64];
	int r;

	s->source = FROM_NSYS;
	s->whole_micros = false;
	if (is_cut(fd))
		return err_set(s->e, -EBADMSG,
			"%s: it ends too early: what wrote it did not finish", what);
	(void)snprintf(uri, sizeof(uri), "file:/proc/self/fd/%d?immutable=1", fd);
	if (sqlite3_open_v2(uri, &n.db,
		    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK)
		r = wrong(&n);
	else {
		(void)sqlite3_db_config(n.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		(void)sqlite3_db_config(n.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		(void)sqlite3_db_config(n.db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
		(void)sqlite3_exec(
			n.db, "PRAGMA cell_size_check=ON;PRAGMA mmap_size=0", NULL, NULL, NULL);
		r = read_tables(&n);
	}
	(void)sqlite3_close(n.db);
	return r;
}
