/* SPDX-License-Identifier: MIT. store_label.c: what people call a stored session. Worker thread. */
#include <errno.h>
#include <stdio.h>

#include <sqlite3.h>

#include "label.h"
#include "store.h"
#include "store_int.h"
#include "store_sql.h"

struct texts {
	char name[LABEL_NAME], note[LABEL_NOTE], tags[LABEL_TAGS];
};

static void take(sqlite3_stmt *q, int column, char *ret, size_t n)
{
	const char *text = (const char *)sqlite3_column_text(q, column);

	snprintf(ret, n, "%s", text != NULL ? text : "");
}

static int get(sqlite3 *db, int64_t id, struct texts *ret, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, STORE_LABEL_GET, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, id);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		take(q, 0, ret->name, sizeof(ret->name));
		take(q, 1, ret->note, sizeof(ret->note));
		take(q, 2, ret->tags, sizeof(ret->tags));
	}
	(void)sqlite3_finalize(q);
	if (rc == SQLITE_DONE)
		return err_set(e, -ENOENT, "the session has just been deleted");
	return rc == SQLITE_ROW ? 0 : store_fail(db, rc, e);
}

static int put(sqlite3 *db, int64_t id, const struct texts *t, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, STORE_LABEL_PUT, -1, &q, NULL);

	if (rc == SQLITE_OK) {
		(void)sqlite3_bind_int64(q, 1, id);
		(void)sqlite3_bind_text(q, 2, t->name, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(q, 3, t->note, -1, SQLITE_STATIC);
		(void)sqlite3_bind_text(q, 4, t->tags, -1, SQLITE_STATIC);
		rc = sqlite3_step(q);
	}
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : store_fail(db, rc, e);
}

int store_label_session(
	struct sqlite3 *db, int64_t id, enum label_kind kind, const char *text, struct err *e)
{
	struct texts t;
	int r = get(db, id, &t, e);

	if (r == 0 && label_apply(t.name, t.note, t.tags, kind, text) < 0)
		r = err_set(e, -ENOSPC, LABEL_FULL);
	return r < 0 ? r : put(db, id, &t, e);
}
