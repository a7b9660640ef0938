/* SPDX-License-Identifier: MIT. fuzz_database.h: the databases of fuzz_database.c: a lawful one,
 * made by a fold with a job in it, copies of it under other schemas, and what an input changes in
 * them. */
#ifndef FUZZ_DATABASE_H
#define FUZZ_DATABASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "fuzz_profile.h"
#include "record.h"
#include "schema.h"
#include "store_int.h"
#include "text.h"
#include "trace.h"

#define TABLES_MAX  32
#define COLUMNS_MAX 40
#define LANE_BYTES  RING_LANE_BYTES_MIN

enum { COPY_STRICT, COPY_LOOSE, COPY_OLD, COPIES };

struct table {
	char name[32], column[COLUMNS_MAX][32];
	int n_columns;
	int64_t n_rows;
	sqlite3_stmt *get[COLUMNS_MAX], *set[COLUMNS_MAX], *more[COLUMNS_MAX], *drop;
};

struct copy {
	sqlite3 *db;
	struct store_db store;
	struct table table[TABLES_MAX];
	int n_tables;
};

static struct copy copies[COPIES];
static unsigned char *image; /* of the lawful one, as a file */
static size_t image_bytes;

/* --- the input */

struct input {
	const uint8_t *p;
	size_t n;
	bool tall; /* nodes_tall() was: once is enough */
};

static uint64_t input_take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	bytes = bytes < in->n ? bytes : in->n;
	memcpy(&v, in->p, bytes);
	in->p += bytes;
	in->n -= bytes;
	return v;
}

static uint8_t input_u8(struct input *in)
{
	return (uint8_t)input_take(in, 1);
}

static size_t input_bytes(struct input *in, const uint8_t **ret)
{
	size_t n = input_u8(in);

	n = n < in->n ? n : in->n;
	*ret = in->p;
	in->p += n;
	in->n -= n;
	return n;
}

/* --- a job, as entries of a journal */

static int apply(
	struct fold *f, uint16_t type, const uint8_t ring[16], const void *payload, size_t bytes)
{
	static uint64_t ns = 1000;
	const size_t whole = sizeof(struct journal_entry) + ((bytes + 7) & ~(size_t)7);
	struct journal_entry *e = calloc(1, whole);
	int r;

	MUST(e != NULL);
	*e = (struct journal_entry){.magic = JOURNAL_MAGIC,
		.type = type,
		.bytes = (uint32_t)whole,
		.mono_ns = ns += 1000};
	if (ring != NULL)
		memcpy(e->ring, ring, 16);
	memcpy(e + 1, payload, bytes);
	r = fold_apply(f, e);
	free(e);
	MUST(r == 0 || r == -ENOSPC);
	return r;
}

static void apply_verb(struct fold *f, enum verb what, const uint8_t session[16], uint8_t data)
{
	struct j_verb v = {.verb = what, .match = MATCH_USER, .mono_ns = 10, .data = data};

	memcpy(v.session, session, 16);
	memcpy(v.name, "train", 6);
	apply(f, J_VERB, NULL, &v, sizeof(v));
}

static void apply_tables(struct fold *f, const uint8_t ring[16])
{
	static const char text[] =
		"\1\0\0\0a\0\0\0\4\0\0\0nccl\5\0\0\0m(pt)\0\0\0\1\0\0\0\xff\0\0\0";
	struct {
		struct j_table t;
		uint8_t bytes[sizeof(text)];
	} names = {{TABLE_NAMES, 2, 4, sizeof(text) - 1}, {0}};
	struct {
		struct j_table t;
		struct ring_path path[3];
	} paths = {{TABLE_PATHS, 2, 3, 0},
		{{0, 2, PATH_KIND_SCOPE, 1, 0}, {2, 5, PATH_KIND_SCOPE, 2, 0},
			{2, 2, PATH_KIND_OP, 2, 0}}};
	struct {
		struct j_table t;
		struct ring_config c;
	} config = {{TABLE_CONFIGS, 0, 1, 0}, {{1, 2, 3}, {4, 5, 6}, 7, 8, 9, 10, {0}}};
	struct {
		struct j_table t;
		struct ring_device d;
	} device = {{TABLE_DEVICES, 0, 1, 0}, {.type = DEVICE_CUDA, .arch = 90, .name = "H"}};

	memcpy(names.bytes, text, sizeof(text));
	apply(f, J_TABLE, ring, &names, sizeof(names.t) + sizeof(text) - 1);
	apply(f, J_TABLE, ring, &paths, sizeof(paths));
	apply(f, J_TABLE, ring, &config, sizeof(config));
	apply(f, J_TABLE, ring, &device, sizeof(device));
}

/* A little of all that a thread records, at a position where every lane size begins a lap. */
static void apply_lane(struct fold *f, const uint8_t ring[16], uint64_t from, uint32_t lane_bytes)
{
	const uint8_t lap = (uint8_t)(from / lane_bytes);
	const struct {
		struct j_lane l;
		struct rec_thread thread;
		struct rec_scope scope, other;
		struct rec_launch launch, waits;
		struct rec_kernel kernel;
		struct rec_copy copy;
		struct rec_metric number, word;
	} e = {
		.l = {.bytes = sizeof(e) - sizeof(e.l), .from = from, .generation = 1, .tid = 4712},
		.thread = {REC_HDR(24, REC_THREAD, lap, 0, 2), 10, 4712, 1},
		.scope = {REC_HDR(24, REC_SCOPE, lap, 0, 2), 20, 90},
		.other = {REC_HDR(24, REC_SCOPE, lap, 0, 3), 30, 60},
		.launch = {REC_HDR(32, REC_LAUNCH, lap, 0, 2), 40, 1, 3, 0, 1, 0},
		.waits = {REC_HDR(32, REC_LAUNCH, lap, 0, 3), 50, 2, 3, 0, 1, 0},
		.kernel = {.hdr = REC_HDR(64, REC_KERNEL, lap, 0, 3),
			.start = 100,
			.end = 200,
			.correlation = 1,
			.epoch = 1},
		.copy = {.hdr = REC_HDR(64, REC_COPY, lap, 0, COPY_H2D),
			.start = 100,
			.end = 150,
			.correlation = 3,
			.epoch = 1,
			.bytes = 4096},
		.number = {REC_HDR(32, REC_METRIC, lap, METRIC_I64, 2), 60, 5, 4, 0},
		.word = {REC_HDR(32, REC_METRIC, lap, METRIC_STR, 3), 60, 2, 2, 0},
	};

	apply(f, J_LANE, ring, &e, sizeof(e));
}

static struct fold *fold_with_a_job(void)
{
	static const char info[] = "command=python train.py\0rank=0";
	const uint8_t ring[16] = {1}, done[16] = {1, 1}, live[16] = {2, 2};
	const struct ring_counts counts = {.paths_refused = 3};
	const struct j_now now = {.tid = 4712, .path = 2, .begin = 70};
	const struct j_anchor a = {100, 100, 1700000000000000000, 1, RING_CLOCK_TSC, 0};
	struct {
		struct j_process p;
		char info[sizeof(info)];
	} e = {.p = {.clock = RING_CLOCK_TSC,
		       .pid = 4711,
		       .n_lanes = 4,
		       .lane_bytes = LANE_BYTES,
		       .created_clock = 1,
		       .tsc_khz = 1000000,
		       .info_bytes = sizeof(info)}};
	struct fold *f;

	MUST(fold_new(NULL, &f) == 0);
	memcpy(e.info, info, sizeof(info));
	apply(f, J_PROCESS, ring, &e, sizeof(e));
	apply(f, J_ANCHOR, NULL, &a, sizeof(a));
	apply_tables(f, ring);
	apply_verb(f, VERB_START, done, 2);
	apply_verb(f, VERB_START, live, 2);
	apply_lane(f, ring, 0, LANE_BYTES);
	apply(f, J_NOW, ring, &now, sizeof(now));
	apply(f, J_COUNTS, ring, &counts, sizeof(counts));
	apply_verb(f, VERB_FINALIZE, done, 0);
	apply_verb(f, VERB_FINALIZED, done, 0);
	return f;
}

/* --- copies of the database */

static void must_exec(sqlite3 *db, const char *sql)
{
	char *words = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &words) == SQLITE_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", sql, words);
	abort();
}

static void cut(char *text, const char *what)
{
	const size_t n = strlen(what);
	char *at;

	while ((at = strstr(text, what)) != NULL)
		memmove(at, at + n, strlen(at + n) + 1);
}

/* ", PRIMARY KEY(a, b)" of a table. */
static void cut_keys(char *text)
{
	char *at, *end;

	while ((at = strstr(text, "PRIMARY KEY(")) != NULL) {
		end = strchr(at, ')') + 1;
		while (at[-1] == ' ' || at[-1] == ',')
			at--;
		memmove(at, end, strlen(end) + 1);
	}
}

static sqlite3 *db_new(bool strict, int version)
{
	struct text schema = {0};
	char *text, pragma[96];
	sqlite3 *db;
	size_t n;

	schema_text(&schema, (uint32_t)version);
	MUST(text_take(&schema, &text, &n) == 0 && sqlite3_open(":memory:", &db) == SQLITE_OK);
	cut(text, ", WITHOUT ROWID"); /* each row is found by its number */
	if (!strict) {
		cut(text, " STRICT");
		cut(text, " NOT NULL");
		cut(text, " UNIQUE");
		cut_keys(text);
		cut(text, " PRIMARY KEY");
	}
	must_exec(db, text);
	(void)snprintf(pragma, sizeof(pragma), "PRAGMA application_id=%d;PRAGMA user_version=%d",
		SCHEMA_APPLICATION_ID, version);
	must_exec(db, pragma);
	free(text);
	return db;
}

static void tables_list(struct copy *c)
{
	sqlite3_stmt *q, *columns;
	struct table *t;

	MUST(sqlite3_prepare_v2(c->db,
		     "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY rowid", -1, &q,
		     NULL) == SQLITE_OK);
	MUST(sqlite3_prepare_v2(c->db, "SELECT name FROM pragma_table_info(?1)", -1, &columns,
		     NULL) == SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW) {
		MUST(c->n_tables < TABLES_MAX);
		t = &c->table[c->n_tables++];
		(void)snprintf(
			t->name, sizeof(t->name), "%s", (const char *)sqlite3_column_text(q, 0));
		(void)sqlite3_bind_text(columns, 1, t->name, -1, SQLITE_STATIC);
		while (sqlite3_step(columns) == SQLITE_ROW) {
			MUST(t->n_columns < COLUMNS_MAX);
			(void)snprintf(t->column[t->n_columns++], sizeof(t->column[0]), "%s",
				(const char *)sqlite3_column_text(columns, 0));
		}
		(void)sqlite3_reset(columns);
	}
	(void)sqlite3_finalize(columns);
	(void)sqlite3_finalize(q);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *format, const char *a, const char *b)
{
	sqlite3_stmt *q = NULL;
	char sql[1024];

	(void)snprintf(sql, sizeof(sql), format, a, b);
	MUST(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK);
	return q;
}

static void rows_copy(struct copy *c, sqlite3 *from)
{
	sqlite3_stmt *read, *write;
	char marks[COLUMNS_MAX * 2 + 1];
	struct table *t;
	int i;

	for (t = c->table; t < c->table + c->n_tables; t++) {
		memset(marks, 0, sizeof(marks));
		for (i = 0; i < t->n_columns; i++)
			memcpy(marks + 2 * i, i == 0 ? "? " : ",?", 2);
		read = prepare(from, "SELECT * FROM %s%s", t->name, "");
		write = prepare(c->db, "INSERT INTO %s VALUES(%s)", t->name, marks);
		while (sqlite3_step(read) == SQLITE_ROW) {
			for (i = 0; i < t->n_columns; i++)
				(void)sqlite3_bind_value(
					write, i + 1, sqlite3_column_value(read, i));
			MUST(sqlite3_step(write) == SQLITE_DONE);
			(void)sqlite3_reset(write);
			t->n_rows++;
		}
		(void)sqlite3_finalize(read);
		(void)sqlite3_finalize(write);
	}
}

/* As store_db_open() does; where keys lack, what writes by them cannot be prepared. */
static void store_make(struct store_db *d, sqlite3 *db)
{
	static char path[] = "fuzz.db";

	*d = (struct store_db){.magic = STORE_DB_MAGIC,
		.owner = pthread_self(),
		.db = db,
		.path = path,
		.lock_fd = -1};
	(void)store_prepare(d);
}

static void copies_make(void)
{
	struct fold *f = fold_with_a_job();
	struct batch b = {0};
	static struct store_db store;
	struct err e = {0};
	sqlite3_int64 bytes;
	sqlite3 *base = db_new(true, SCHEMA_VERSION);
	int i;

	store_make(&store, base);
	MUST(fold_collect(f, &b) == 0 && store_rows_put(&store, &b, &e) == 0 && e.code == 0);
	batch_free(&b);
	fold_free(f);
	for (i = 0; i < COPIES; i++) {
		copies[i].db = db_new(i == COPY_STRICT, i == COPY_OLD ? 1 : 2);
		tables_list(&copies[i]);
		rows_copy(&copies[i], base);
		store_make(&copies[i].store, copies[i].db);
	}
	image = sqlite3_serialize(base, "main", &bytes, 0);
	MUST(image != NULL);
	image_bytes = (size_t)bytes;
}

/* --- what is changed in one */

static const int64_t odd_numbers[] = {
	INT64_MIN, INT64_MAX, -1, 0, INT32_MAX, UINT32_MAX, 1ll << 40, 65536};
#define ODD (sizeof(odd_numbers) / sizeof(odd_numbers[0]))

static void bind_any(sqlite3_stmt *q, int at, struct input *in)
{
	const uint8_t tag = input_u8(in), *p;
	size_t n;
	double f;
	uint64_t v;

	switch (tag % 8) {
	case 0:
		(void)sqlite3_bind_null(q, at);
		return;
	case 1:
		(void)sqlite3_bind_int64(q, at, (int8_t)input_u8(in));
		return;
	case 2:
		(void)sqlite3_bind_int64(q, at, (int64_t)input_take(in, 8));
		return;
	case 3:
		v = input_take(in, 8);
		memcpy(&f, &v, sizeof(f));
		(void)sqlite3_bind_double(q, at, f);
		return;
	case 4:
		n = input_bytes(in, &p);
		(void)sqlite3_bind_text(q, at, (const char *)p, (int)n, SQLITE_TRANSIENT);
		return;
	case 5:
		n = input_bytes(in, &p);
		(void)sqlite3_bind_blob(q, at, p, (int)n, SQLITE_TRANSIENT);
		return;
	case 6: /* up to a MiB of it */
		(void)sqlite3_bind_zeroblob(q, at, 1 << (tag / 8 % 21));
		return;
	default:
		(void)sqlite3_bind_int64(q, at, odd_numbers[tag / 8 % ODD]);
		return;
	}
}

/* A constraint may refuse it. */
static void step(sqlite3_stmt *q)
{
	(void)sqlite3_step(q);
	(void)sqlite3_reset(q);
	(void)sqlite3_clear_bindings(q);
}

static void cell_set(struct copy *c, struct table *t, int column, int64_t row, struct input *in)
{
	if (t->set[column] == NULL)
		t->set[column] = prepare(c->db, "UPDATE %s SET \"%s\"=?1 WHERE rowid=?2", t->name,
			t->column[column]);
	bind_any(t->set[column], 1, in);
	(void)sqlite3_bind_int64(t->set[column], 2, row);
	step(t->set[column]);
}

/* Some bytes of what is there. */
static void cell_poke(struct copy *c, struct table *t, int column, int64_t row, struct input *in)
{
	const uint8_t *p;
	size_t at = input_u8(in), n = input_bytes(in, &p), have;
	uint8_t *bytes;
	sqlite3_stmt *get;

	if (t->get[column] == NULL)
		t->get[column] = prepare(c->db, "SELECT \"%2$s\" FROM %1$s WHERE rowid=?1", t->name,
			t->column[column]);
	get = t->get[column];
	(void)sqlite3_bind_int64(get, 1, row);
	have = sqlite3_step(get) == SQLITE_ROW ? (size_t)sqlite3_column_bytes(get, 0) : 0;
	bytes = malloc(have + 1);
	MUST(bytes != NULL);
	if (have > 0)
		memcpy(bytes, sqlite3_column_blob(get, 0), have);
	(void)sqlite3_reset(get);
	if (have > at)
		memcpy(bytes + at, p, n < have - at ? n : have - at);
	if (t->set[column] == NULL)
		t->set[column] = prepare(c->db, "UPDATE %s SET \"%s\"=?1 WHERE rowid=?2", t->name,
			t->column[column]);
	(void)sqlite3_bind_blob(t->set[column], 1, bytes, (int)have, SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(t->set[column], 2, row);
	step(t->set[column]);
	free(bytes);
}

/* One more row, like another but for one cell. */
static void row_more(struct copy *c, struct table *t, int column, int64_t row, struct input *in)
{
	char list[1024];
	int i, at = 0;

	for (i = 0; i < t->n_columns; i++)
		at += snprintf(list + at, sizeof(list) - (size_t)at,
			i == column ? "%s?1" : "%s\"%s\"", i == 0 ? "" : ",", t->column[i]);
	if (t->more[column] == NULL) {
		char sql[1200];

		(void)snprintf(sql, sizeof(sql),
			"INSERT OR IGNORE INTO %s SELECT %s FROM %s WHERE rowid=?2", t->name, list,
			t->name);
		MUST(sqlite3_prepare_v2(c->db, sql, -1, &t->more[column], NULL) == SQLITE_OK);
	}
	bind_any(t->more[column], 1, in);
	(void)sqlite3_bind_int64(t->more[column], 2, row);
	step(t->more[column]);
}

static void row_drop(struct copy *c, struct table *t, int64_t row)
{
	if (t->drop == NULL)
		t->drop = prepare(c->db, "DELETE FROM %s WHERE %s=?1", t->name, "rowid");
	(void)sqlite3_bind_int64(t->drop, 1, row);
	step(t->drop);
}

/* A path of many nodes, the last of them with a cell: or a cycle of them. */
static void nodes_tall(struct copy *c, struct input *in)
{
	const uint32_t n = 8u << input_u8(in) % 9;
	char sql[512];

	(void)snprintf(sql, sizeof(sql),
		"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i+1 FROM n WHERE i<%u) "
		"INSERT INTO node(id,hash,parent,kind,name) "
		"SELECT i,CAST(printf('%%016d',i) AS BLOB),CASE WHEN i=1000 THEN %u ELSE i-1 "
		"END,1,'n' FROM n;"
		"INSERT OR IGNORE INTO cell SELECT session,process,segment,%u,device,class,count,"
		"sum_ns,min_ns,max_ns,bytes,untimed,open,hist,buckets FROM cell WHERE class=0 "
		"LIMIT 4",
		1000 + n, input_u8(in) % 2 == 0 ? 1 : 1000 + n, 1000 + n);
	if (!in->tall)
		(void)sqlite3_exec(c->db, sql, NULL, NULL, NULL);
	in->tall = true;
}

/* Another number for a node, a session or a process, wherever it stands. */
static void renumber(struct copy *c, struct input *in)
{
	static const struct {
		const char *column, *tables;
	} of[][2] = {{{"id", "node"}, {"node", "cell metric config"}},
		{{"id", "session"},
			{"session",
				"member active segment cell metric config busy trace loss note"}},
		{{"id", "process"},
			{"process", "member cell metric config device busy trace loss note lane "
				    "pending"}}};
	const uint8_t what = input_u8(in) % 3;
	const int64_t from = 1 + input_u8(in) % 5;
	int64_t to = (int64_t)input_take(in, 8);
	char sql[160], tables[128], *rest, *table;
	int i;

	to = to >= 0 && to < 256 ? odd_numbers[(size_t)to % ODD] : to;
	for (i = 0; i < 2; i++) {
		(void)snprintf(tables, sizeof(tables), "%s", of[what][i].tables);
		for (rest = tables; (table = strsep(&rest, " ")) != NULL;) {
			(void)snprintf(sql, sizeof(sql),
				"UPDATE OR IGNORE %s SET %s=%lld WHERE %s=%lld", table,
				of[what][i].column, (long long)to, of[what][i].column,
				(long long)from);
			(void)sqlite3_exec(c->db, sql, NULL, NULL, NULL);
		}
	}
	if (what == 0) {
		(void)snprintf(sql, sizeof(sql), "UPDATE node SET parent=%lld WHERE parent=%lld",
			(long long)to, (long long)from);
		(void)sqlite3_exec(c->db, sql, NULL, NULL, NULL);
	}
}

/* --- timelines: places mostly in range, everything else anything */

static void chunk_lists(struct trace_pack *k, struct input *in)
{
	const uint8_t *p;
	uint8_t hash[16] = {0};
	uint32_t i, n;

	for (n = input_u8(in) % 4, i = 0; i < n; i++) {
		hash[0] = input_u8(in);
		MUST(trace_pack_node(k, hash));
	}
	for (n = input_u8(in) % 4, i = 0; i < n; i++)
		MUST(trace_pack_thread(
			k, &(struct trace_thread){input_u8(in),
				   input_u8(in) % 4 == 0 ? TRACE_NONE : input_u8(in) % 3}));
	for (n = input_u8(in) % 3, i = 0; i < n; i++)
		MUST(trace_pack_stream(k, &(struct trace_stream){input_u8(in),
						  (uint32_t)input_take(in, 4), input_u8(in)}));
	for (n = input_u8(in) % 3, i = 0; i < n; i++)
		MUST(trace_pack_config(k, &(struct trace_config){.registers = input_u8(in)}));
	for (n = input_u8(in) % 5, i = 0; i < n; i++) {
		const uint32_t bytes = (uint32_t)input_bytes(in, &p);

		MUST(trace_pack_text(k, (const char *)p, bytes));
	}
}

static uint64_t a_time(struct input *in)
{
	const uint8_t tag = input_u8(in);

	return tag < 250 ? (uint64_t)tag * 10 : input_take(in, 8);
}

/* The packer believes a thread's and a stream's place; nodes, names and configurations are the
 * reader's to check. */
static void chunk_event(struct trace_pack *k, struct input *in)
{
	const uint32_t *n = k->n;
	const uint8_t tag = input_u8(in), where = input_u8(in);
	const uint64_t at = a_time(in), end = at + a_time(in);
	const uint32_t segment = tag / 4 % 3, node = where / 16 % 8;
	uint32_t thread, stream;

	if (n[TRACE_N_THREADS] == 0 || n[TRACE_N_STREAMS] == 0)
		return;
	thread = where % n[TRACE_N_THREADS];
	stream = where / 4 % n[TRACE_N_STREAMS];
	if (tag % 4 < 2)
		MUST(trace_pack_scope(k, &(struct trace_scope){at, end > at ? end : at, thread,
						 node, segment, input_u8(in) % 16}));
	else if (tag % 4 == 2)
		MUST(trace_pack_op(
			k, &(struct trace_op){.launched = a_time(in),
				   .start = at,
				   .end = end > at ? end : at,
				   .bytes = a_time(in),
				   .correlation = input_u8(in),
				   .thread = thread,
				   .node = node,
				   .segment = segment,
				   .stream = stream,
				   .config = tag / 16 % 2 != 0 ? TRACE_NONE : 0,
				   .class = (uint8_t)(1 + input_u8(in) % (CLASS_MAX - 1)),
				   .flags = input_u8(in) % 8}));
	else
		MUST(trace_pack_metric(
			k, &(struct trace_metric){at, input_take(in, 8), thread, node, segment,
				   input_u8(in) % 5, (uint8_t)(1 + input_u8(in) % 4)}));
}

static void timeline_set(struct copy *c, int64_t row, struct input *in)
{
	struct trace_pack k = {.raw = 0};
	uint32_t i, n_events = input_u8(in) % 32, n;
	sqlite3_stmt *q = prepare(c->db, "UPDATE %s SET %s=?1 WHERE rowid=?2", "trace", "bytes");
	void *bytes;

	chunk_lists(&k, in);
	for (i = 0; i < n_events && in->n > 0; i++)
		chunk_event(&k, in);
	MUST(trace_pack_seal(&k, &bytes, &n) == 0);
	(void)sqlite3_bind_blob(q, 1, bytes, (int)n, SQLITE_STATIC);
	(void)sqlite3_bind_int64(q, 2, row);
	step(q);
	(void)sqlite3_finalize(q);
	free(bytes);
	trace_pack_fini(&k);
}

static void change(struct copy *c, struct input *in)
{
	const uint8_t what = input_u8(in);
	struct table *t = &c->table[input_u8(in) % c->n_tables];
	const int64_t row = 1 + input_u8(in) % (t->n_rows + 3);
	const int column = input_u8(in) % t->n_columns;

	switch (what % 8) {
	case 0:
		renumber(c, in);
		return;
	case 1:
	case 2:
		cell_set(c, t, column, row, in);
		return;
	case 3:
		cell_poke(c, t, column, row, in);
		return;
	case 4:
		row_more(c, t, column, row, in);
		return;
	case 5:
		row_drop(c, t, row);
		return;
	case 6:
		nodes_tall(c, in);
		return;
	default:
		if (c != &copies[COPY_OLD])
			timeline_set(c, 1 + row % 2, in);
		return;
	}
}

#endif
