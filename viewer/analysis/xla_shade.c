/* SPDX-License-Identifier: MIT. xla_shade.c: a session's operators by the names of XLA's dump, for one
 * connection: a view of its own stands before the table of nodes, as schema_shade() does it. */
#include "xla_shade.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "profile.h"
#include "table.h"

/* clang-format off */
#define NODES "WITH RECURSIVE need(id) AS (SELECT node FROM cell WHERE session=?1 UNION SELECT node FROM metric "      \
	"WHERE session=?1 UNION SELECT n.parent FROM main.node n JOIN need ON n.id=need.id WHERE n.parent<>0) "      \
	"SELECT id, parent, kind, name FROM main.node WHERE id IN (SELECT id FROM need) ORDER BY id"
#define SHADE "CREATE TEMP VIEW node AS SELECT n.id AS id, n.hash AS hash, n.parent AS parent, n.kind AS kind, "      \
	"coalesce((SELECT x.name FROM temp.xla_name x WHERE x.id=n.id), n.name) AS name FROM main.node n"
#define BEGIN "PRAGMA temp_store=MEMORY;CREATE TEMP TABLE xla_name(id INTEGER PRIMARY KEY, name TEXT NOT NULL)"
/* clang-format on */

struct row {
	int64_t id, parent;
	const char *name;
	uint32_t place; /* in the profile; PROFILE_NONE: not there yet */
	uint8_t kind;
};

struct rows {
	struct row *v;
	uint32_t n, cap;
	struct profile *p;
};

static struct row *row_of(struct rows *r, int64_t id)
{
	uint32_t low = 0, high = r->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (r->v[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->n && r->v[low].id == id ? &r->v[low] : NULL;
}

static int read_rows(struct rows *r, sqlite3 *db, int64_t session)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(db, NODES, -1, &q, NULL);
	const char *name;
	bool room = true;

	if (rc != SQLITE_OK)
		return -EIO;
	(void)sqlite3_bind_int64(q, 1, session);
	while (room && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(q, 3);
		name = profile_text(
			r->p, name != NULL ? name : "", name != NULL ? strlen(name) : 0);
		room = name != NULL && ROOM_FOR(r->v, r->cap, r->n);
		if (room)
			r->v[r->n++] =
				(struct row){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
					name, PROFILE_NONE, (uint8_t)sqlite3_column_int(q, 2)};
	}
	(void)sqlite3_finalize(q);
	return !room ? -ENOMEM : rc == SQLITE_DONE ? 0 : -EIO;
}

/* A parent comes before its children. A cycle, which only a forged file has, ends at the root. */
static int add_rows(struct rows *r)
{
	struct row *path[PROFILE_DEPTH_MAX];
	uint32_t i, n, at;

	for (i = 0; i < r->n; i++) {
		struct row *x = &r->v[i];

		for (n = 0; x != NULL && x->place == PROFILE_NONE && n < PROFILE_DEPTH_MAX;
			x = row_of(r, x->parent))
			path[n++] = x;
		at = x != NULL && x->place != PROFILE_NONE ? x->place : 0;
		while (n-- > 0) {
			if (path[n]->place == PROFILE_NONE)
				path[n]->place =
					profile_adopt_node(r->p, at, path[n]->name, path[n]->kind);
			at = path[n]->place;
			if (at == PROFILE_NONE)
				return -ENOMEM;
		}
	}
	return 0;
}

static int put_names(const struct rows *r, sqlite3 *db)
{
	sqlite3_stmt *q;
	uint32_t i;
	int rc = sqlite3_prepare_v2(db, "INSERT INTO temp.xla_name VALUES(?1,?2)", -1, &q, NULL);

	for (i = 0; rc == SQLITE_OK && i < r->n; i++) {
		const char *name = r->p->node[r->v[i].place].name;

		if (strcmp(name, r->v[i].name) == 0)
			continue;
		(void)sqlite3_bind_int64(q, 1, r->v[i].id);
		(void)sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
		rc = sqlite3_step(q) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
		(void)sqlite3_reset(q);
	}
	(void)sqlite3_finalize(q);
	return rc == SQLITE_OK ? 0 : -EIO;
}

int xla_shade(void *shade, struct sqlite3 *db, int64_t session, struct err *e)
{
	struct xla_shade *s = shade;
	struct rows rows = {.p = profile_new()};
	int r = rows.p == NULL ? -ENOMEM : read_rows(&rows, db, session);

	s->done = true;
	if (r == 0)
		r = add_rows(&rows);
	if (r == 0)
		r = xla_dump_name(s->dump, rows.p, &s->named, e);
	if (r == 0 && sqlite3_exec(db, BEGIN, NULL, NULL, NULL) != SQLITE_OK)
		r = -EIO;
	if (r == 0)
		r = put_names(&rows, db);
	if (r == 0 && sqlite3_exec(db, SHADE, NULL, NULL, NULL) != SQLITE_OK)
		r = -EIO;
	profile_free(rows.p);
	free(rows.v);
	if (r == -EIO)
		return err_set(e, r,
			"the names of XLA's dump cannot be put before the session's: %s",
			sqlite3_errmsg(db));
	return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
}
