/* SPDX-License-Identifier: MIT. sql_memory.c: holders of memory as tables of SQLite. */
#include "sql_memory.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "holder_rows.h"
#include "schema.h"

#define WHOSE "pid, rank, device, kind"
const char sql_memory_schema[] =
	"CREATE TABLE memory(" WHOSE ", now, blocks, peak, peak_ns, allocs, alloc_bytes, frees, "
	"free_bytes);"
	"CREATE TABLE memory_owners(" WHOSE ", path, now, blocks, peak, peak_blocks, most);"
	"CREATE TABLE memory_points(" WHOSE ", at_ns, least, most, last);"
	"CREATE TABLE memory_tops(" WHOSE ", at_ns, path, now);";

bool sql_memory_has(const char *table)
{
	return strcmp(table, "memory") == 0 || strncmp(table, "memory_", 7) == 0;
}

enum { ALL, OWNERS, POINTS, TOPS, N_TABLES };

struct filling {
	sqlite3 *to, *db;
	sqlite3_stmt *in[N_TABLES];
	const struct holder_row *row;
	char **path; /* [n_owners] */
	struct err *e;
	bool failed;
};

static const char *const inserts[N_TABLES] = {"INSERT INTO memory VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
	"INSERT INTO memory_owners VALUES(?,?,?,?,?,?,?,?,?,?)",
	"INSERT INTO memory_points VALUES(?,?,?,?,?,?,?,?)",
	"INSERT INTO memory_tops VALUES(?,?,?,?,?,?,?)"};

/* Its first columns; the last one that was bound. */
static int begin(struct filling *f, int table, const struct held_account *a)
{
	sqlite3_stmt *st = f->in[table];
	char device[16];

	holder_device(a, device);
	(void)sqlite3_bind_int64(st, 1, f->row->pid);
	if (f->row->rank >= 0)
		(void)sqlite3_bind_int64(st, 2, f->row->rank);
	(void)sqlite3_bind_text(st, 3, device, -1, SQLITE_TRANSIENT);
	(void)sqlite3_bind_text(st, 4, held_kind_words[a->kind], -1, SQLITE_STATIC);
	return 4;
}

static void number(struct filling *f, int table, int *at, uint64_t v)
{
	(void)sqlite3_bind_int64(
		f->in[table], ++*at, v < (uint64_t)INT64_MAX ? (int64_t)v : INT64_MAX);
}

static void end(struct filling *f, int table)
{
	f->failed |= sqlite3_step(f->in[table]) != SQLITE_DONE;
	(void)sqlite3_reset(f->in[table]);
	(void)sqlite3_clear_bindings(f->in[table]);
}

/* CLOCK_REALTIME. */
static uint64_t wall(const struct filling *f, uint64_t ns)
{
	return ns + (uint64_t)f->row->ahead_ns;
}

static void put_account(struct filling *f, const struct held_account *a)
{
	const uint64_t numbers[] = {a->live, a->blocks, a->peak, wall(f, a->peak_ns), a->allocs,
		a->alloc_bytes, a->frees, a->free_bytes};
	int at = begin(f, ALL, a);
	uint32_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		number(f, ALL, &at, numbers[i]);
	end(f, ALL);
	for (i = 0; i < a->n_points; i++) {
		at = begin(f, POINTS, a);
		number(f, POINTS, &at, wall(f, a->point[i].ns));
		number(f, POINTS, &at, a->point[i].least);
		number(f, POINTS, &at, a->point[i].most);
		number(f, POINTS, &at, a->point[i].last);
		end(f, POINTS);
	}
}

static void put_owner(struct filling *f, const struct held_owner *o, const char *path)
{
	const struct holders *h = f->row->h;
	int at = begin(f, OWNERS, h->account[o->account]);

	(void)sqlite3_bind_text(f->in[OWNERS], ++at, path, -1, SQLITE_TRANSIENT);
	number(f, OWNERS, &at, o->live);
	number(f, OWNERS, &at, o->blocks);
	number(f, OWNERS, &at, held_at_peak(h, o));
	number(f, OWNERS, &at, held_blocks_at_peak(h, o));
	number(f, OWNERS, &at, o->most);
	end(f, OWNERS);
}

static void put_tops(struct filling *f, const struct held_account *a)
{
	uint32_t i, k;
	int at;

	for (i = 0; i < a->n_frames; i++)
		for (k = 0; k < a->frame[i].n; k++) {
			at = begin(f, TOPS, a);
			number(f, TOPS, &at, wall(f, a->frame[i].ns));
			(void)sqlite3_bind_text(f->in[TOPS], ++at, f->path[a->frame[i].owner[k]],
				-1, SQLITE_TRANSIENT);
			number(f, TOPS, &at, a->frame[i].live[k]);
			end(f, TOPS);
		}
}

static int on_process(void *arg, const struct holder_row *row)
{
	struct filling *f = arg;
	uint32_t i;
	int r;

	f->row = row;
	r = holder_scopes(f->db, row->h, &f->path, f->e);
	for (i = 0; i < row->h->n_accounts && r == 0; i++) {
		put_account(f, row->h->account[i]);
		if (!held_is_sum(row->h->account[i]->kind))
			put_tops(f, row->h->account[i]);
	}
	for (i = 0; i < row->h->n_owners && r == 0; i++)
		if (row->h->owner[i].most > 0 &&
			!held_is_sum(row->h->account[row->h->owner[i].account]->kind))
			put_owner(f, &row->h->owner[i], f->path[i]);
	holder_scopes_free(row->h, f->path);
	f->path = NULL;
	return r;
}

int sql_memory_fill(void *to, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct filling f = {.to = to, .db = db, .e = e};
	int i, r = 0;

	(void)ret_left;
	f.failed = sqlite3_exec(to, "BEGIN", NULL, NULL, NULL) != SQLITE_OK;
	for (i = 0; i < N_TABLES; i++)
		f.failed |= sqlite3_prepare_v2(to, inserts[i], -1, &f.in[i], NULL) != SQLITE_OK;
	if (!f.failed)
		r = holder_each(db, id, s->process, on_process, &f, e);
	for (i = 0; i < N_TABLES; i++)
		(void)sqlite3_finalize(f.in[i]);
	f.failed |= sqlite3_exec(to, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
	if (r == 0 && f.failed)
		r = err_set(e, -EIO, "the tables of memory cannot be made: %s", schema_errmsg(to));
	return r;
}
