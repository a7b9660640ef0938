/* SPDX-License-Identifier: MIT. step_rows.c: stored steps. */
#include "step_rows.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define ROWS                                                                                  \
	"SELECT s.bytes, p.id, p.pid, coalesce(p.rank,-1) FROM step s JOIN process p ON p.id" \
	" = s.process WHERE s.session=?1 AND (?2 IS NULL OR (substr(?2,1,4)='pid:' AND"       \
	" p.pid=CAST(substr(?2,5) AS INTEGER)) OR (substr(?2,1,4)<>'pid:' AND"                \
	" p.rank=CAST(?2 AS INTEGER))) ORDER BY p.id, s.number"

struct row { /* too large for a stack that others share */
	struct step_names names;
	struct step_point point[STEP_ROW_POINTS];
};

static int each_point(sqlite3_stmt *st, struct row *row, step_fn *fn, void *arg, struct err *e)
{
	struct step_seen s = {.process = sqlite3_column_int64(st, 1),
		.pid = sqlite3_column_int64(st, 2),
		.rank = sqlite3_column_int64(st, 3),
		.names = &row->names};
	uint32_t n = 0, i;
	int r = step_row_unpack(sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
		&row->names, row->point, &n, e);

	for (i = 0; i < n && r == 0; i++) {
		s.point = &row->point[i];
		r = fn(arg, &s);
	}
	return r;
}

int step_each(struct sqlite3 *db, int64_t session, const char *process, step_fn *fn, void *arg,
	struct err *e)
{
	struct row *row = malloc(sizeof(*row));
	sqlite3_stmt *st;
	int r = 0;

	if (row == NULL)
		return err_set(e, -ENOMEM, "out of memory for steps");
	if (sqlite3_prepare_v2(db, ROWS, -1, &st, NULL) != SQLITE_OK) {
		free(row);
		return 0;
	}
	(void)sqlite3_bind_int64(st, 1, session);
	if (process != NULL)
		(void)sqlite3_bind_text(st, 2, process, -1, SQLITE_STATIC);
	while (r == 0 && sqlite3_step(st) == SQLITE_ROW)
		r = each_point(st, row, fn, arg, e);
	(void)sqlite3_finalize(st);
	free(row);
	return r;
}
