/* SPDX-License-Identifier: MIT. protond.c: the format protond: a portable session file, which every
 * tool of ours reads as it reads a session. */
#include <sqlite3.h>

#include "db_file.h"
#include "export_format.h"
#include "portable.h"
#include "schema.h"

struct from {
	struct sqlite3 *db;
	int64_t id;
};

static int fill(struct sqlite3 *to, void *arg, struct err *e)
{
	const struct from *f = arg;
	const int rc = portable_fill(f->db, f->id, true, to, e);

	if (rc == SQLITE_OK)
		return 0;
	return e->code != 0 ? e->code
			    : err_set(e, rc == SQLITE_FULL ? -ENOSPC : -EIO,
				      "the session cannot be copied: %s", schema_errmsg(to));
}

int protond_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	struct from f = {db, id};
	const bool own = sqlite3_get_autocommit(db) != 0;
	int r;

	if (ret_left != NULL)
		*ret_left = (struct export_left){0};
	if (s != NULL && (s->process != NULL || s->one_phase || s->to_ns != 0 || s->last_step != 0))
		return err_set(e, -EINVAL,
			"a portable session is whole: --process, --phase, --window and --step go "
			"with what is made "
			"of it later");
	if (own && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(db));
	r = db_file_write(fill, &f, to, e);
	if (own)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	return r;
}
