/* SPDX-License-Identifier: MIT. sql_memory.h: who holds memory, as tables of an SQLite database of its own. Part of the
 * contract of sql_tables.h. */
#ifndef PROTOND_EXPORT_SQL_MEMORY_H
#define PROTOND_EXPORT_SQL_MEMORY_H

#include "err.h"
#include "profile.h"

struct export_left;
struct sqlite3;

extern const char sql_memory_schema[]; /* its tables, empty */
bool sql_memory_has(const char *table);
/* Of a session of db. As export_timeline_fn. */
int sql_memory_fill(void *to, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);

#endif
