/* SPDX-License-Identifier: MIT. store_portable.c: a session as a portable file, made in memory.
 * Worker thread. */
#include "portable.h"
#include "store_int.h"

int store_portable(sqlite3 *db, int64_t id, bool timeline, unsigned char **ret, int64_t *ret_bytes,
	struct err *e)
{
	struct err why = {0};
	sqlite3 *to = NULL;
	int r, rc = sqlite3_open_v2(":memory:", &to,
		       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	r = rc == SQLITE_OK ? store_exec(db, "BEGIN", e) : store_fail(to, rc, e);
	if (r == 0) {
		rc = portable_fill(db, id, timeline, to, &why);
		(void)store_exec(db, "COMMIT", NULL);
		if (rc != SQLITE_OK)
			r = why.code == -ENOENT ? err_set(e, why.code, "%s", why.text)
			    : why.code != 0     ? err_set(e, store_errno(db, rc), "%s", why.text)
						: store_fail(to, rc, e);
	}
	if (r == 0) {
		sqlite3_int64 bytes;

		*ret = sqlite3_serialize(to, "main", &bytes, 0);
		*ret_bytes = bytes;
		if (*ret == NULL)
			r = err_set(e, -ENOMEM, "out of memory for the portable file");
	}
	(void)sqlite3_close_v2(to);
	return r;
}
