/* SPDX-License-Identifier: MIT. profile_scan.h: the rows of a store's large tables, a hundred thousand of a session: from
 * the pages of the database, or where that cannot be, from SQLite. In the order of keys, either way. */
#ifndef PROTOND_SESSION_PROFILE_SCAN_H
#define PROTOND_SESSION_PROFILE_SCAN_H

#include "btree.h"
#include "profile_rows.h"

struct scan; /* opaque: only profile_scan.c looks inside */

/* Columns, in the order of tables.h: CELL_sum_ns. */
#define C(name, kind, a, sql) CELL_##name,
enum cell_column { COLUMNS_cell(C) };
#undef C
#define C(name, kind, a, sql) METRIC_##name,
enum metric_column { COLUMNS_metric(C) };
#undef C
#define C(name, kind, a, sql) CONFIG_##name,
enum config_column { COLUMNS_config(C) };
#undef C
#define C(name, kind, a, sql) NODE_##name,
enum node_column { COLUMNS_node(C) };
#undef C

struct scan_columns {
	enum table_id table;
	uint64_t want; /* a bit each */
};

enum scan_where {
	SCAN_SESSION, /* rows of session `low` */
	SCAN_PROCESS, /* of session `low` and process `high` */
	SCAN_ID,      /* with row ids from `low` to `high` */
};

typedef int scan_fn(
	void *arg, const struct field *v); /* by column, those that are wanted; < 0 ends it */

/* In a transaction; pages: not by SQLite where it has read nothing yet. -ENOMEM. */
int scan_open(struct load *l, bool pages, struct scan **ret);
void scan_close(struct scan *s); /* NULL is fine */
/* What fn said, or words in l->e. -EAGAIN: of the pages some cannot be read: only SQLite can say why. */
int scan_rows(struct scan *s, const struct scan_columns *c, enum scan_where where, int64_t low,
	int64_t high, scan_fn *fn, void *arg);

static inline int64_t field_i64(const struct field *f)
{
	return f->type == FIELD_I64 ? f->i : 0;
}

static inline uint64_t field_u64(const struct field *f) /* negative: 0 */
{
	return f->type == FIELD_I64 && f->i > 0 ? (uint64_t)f->i : 0;
}

#endif
