/* SPDX-License-Identifier: MIT. sql_tables.h: a session as tables of an SQLite database of its own,
 * for `protonview sql` and the format sqlite. docs/sql.md is the contract: columns are added, never changed. */
#ifndef PROTOND_EXPORT_SQL_TABLES_H
#define PROTOND_EXPORT_SQL_TABLES_H

#include "err.h"
#include "profile.h"

struct export_left;
struct sqlite3;

#define SQL_TABLES_VERSION 1

/* All tables and views, empty. */
int sql_tables_make(struct sqlite3 *to, struct err *e);
/* What the tree has. */
int sql_tables_tree(struct sqlite3 *to, const struct profile *p, struct err *e);
/* Whether a table holds what only a timeline has. */
bool sql_tables_of_timeline(const char *table);
/* The timeline of a session of db. As export_timeline_fn. */
int sql_tables_timeline(void *to, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);

#endif
