/* SPDX-License-Identifier: MIT. schema.h: the tables of a store, of a portable session file, and of
 * what the daemon answers with, made from the columns in tables.h.
 *
 * A column that was added to a list is added to a database that lacks it by whoever may write there
 * (schema_mend()), and has its default for whoever only reads (schema_shade()). A database may have
 * columns that this program does not know: nobody says SELECT * or INSERT without names. Only what
 * cannot be done so is a step of user_version.
 */
#ifndef PROTOND_SESSION_SCHEMA_H
#define PROTOND_SESSION_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

struct sqlite3;
struct text;

#define SCHEMA_APPLICATION_ID 0x50524f54 /* "PROT" */
#define SCHEMA_VERSION        2          /* user_version; 1: without `trace` */

/* What a row takes of the file, on average, with its part of pages and indexes: for
 * session.stored_bytes. */
#define BYTES_OF_SESSION 2048
#define BYTES_OF_CELL    80
#define BYTES_OF_METRIC  80

struct schema_column {
	const char *name, *kind, *sql; /* kind: as in tables.h; sql: its declaration */
};
struct schema_table {
	const char *name, *key, *options; /* key: "", or columns of a PRIMARY KEY */
	const struct schema_column *column;
	uint32_t n_columns;
};
extern const struct schema_table schema_tables[TABLE_MAX]; /* those of rows; `meta` is there, too */

/* A statement each for all tables of a version, 1 or SCHEMA_VERSION: "CREATE TABLE …;…". */
void schema_text(struct text *t, uint32_t version);
/* The columns of a table in the order of row_put_*(): "[a],[b]"; and as row_get_*() takes them. */
void schema_names(struct text *t, enum table_id table);
void schema_select(struct text *t, enum table_id table);

/* Makes the tables and columns that a database lacks, in the caller's transaction: a fresh one gets
 * all. `look`: makes nothing. *ret_lacks: there was something to make. SQLITE_…; an old database
 * whose missing column may not be NULL and has no DEFAULT is SQLITE_ERROR. */
int schema_mend(struct sqlite3 *db, bool look, bool *ret_lacks);
/* For a connection that only reads: a table that lacks columns which may be missing is hidden by a
 * view of the same name, of this connection alone, that has them. SQLITE_…. */
int schema_shade(struct sqlite3 *db);
/* Both for one table, which need not be one of ours. */
int schema_mend_table(struct sqlite3 *db, const struct schema_table *t, bool look, bool *ret_lacks);
int schema_shade_table(struct sqlite3 *db, const struct schema_table *t);

/* What went wrong with a database that is written; in the system's words where SQLite has none, as of
 * a limit on file sizes. Valid until the next call. */
const char *schema_errmsg(struct sqlite3 *db);

/* A file system, by statfs(), on which no database can be. */
bool schema_fs_is_remote(long magic);

#define SCHEMA_STRING(x) #x
#define SCHEMA_NUMBER(x) SCHEMA_STRING(x)

/* Whether a session s is over with nothing in it: its rows take nothing. A database whose sizes are
 * not known yet has none. */
#define SCHEMA_SESSION_EMPTY                                               \
	"(s.state IN ('finalized', 'interrupted') AND s.launches = 0 AND " \
	"coalesce(s.stored_bytes, 0) = " SCHEMA_NUMBER(BYTES_OF_SESSION) ")"

/* Of which class a session s is where a selector leaves a choice (enum session_choice). */
#define SCHEMA_SESSION_CLASS "(2 * " SCHEMA_SESSION_EMPTY " + (s.source = 'auto'))"
#define SCHEMA_SESSION_HAS_PID(pid)                                                               \
	"s.id IN (SELECT m.session FROM member m JOIN process p ON p.id = m.process WHERE p.pid " \
	"= " pid ")"
#define SCHEMA_SESSION_HAS_TAG(tag) "instr(' ' || s.tags || ' ', ' ' || " tag " || ' ') > 0"

/* What a session s recorded: its first process's command; before there is one, what is waited for.
 */
#define SCHEMA_SESSION_COMMAND                                                      \
	"coalesce(nullif((SELECT p.command FROM member m JOIN process p ON p.id = " \
	"m.process"                                                                 \
	" WHERE m.session = s.id ORDER BY m.process LIMIT 1), ''), s.command)"

#endif
