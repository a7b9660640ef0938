/* SPDX-License-Identifier: MIT. db_file.c: a database that is written to a stream. */
#include "db_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema.h"

static int copy(int fd, FILE *to, struct err *e)
{
	char bytes[8192];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		at += n;
		if (fwrite(bytes, 1, (size_t)n, to) != (size_t)n)
			return err_set(
				e, neg_errno(), "the file cannot be written: %s", strerror(errno));
	}
	return n < 0 ? err_set(e, neg_errno(), "the temporary file cannot be read: %s",
			       strerror(errno))
		     : 0;
}

static int fill_at(const char *path, db_fill_fn *fill, void *arg, struct err *e)
{
	sqlite3 *db = NULL;
	int r = 0;

	/* Nobody reads it before it is whole. */
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
		sqlite3_exec(db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF", NULL, NULL,
			NULL) != SQLITE_OK)
		r = err_set(e, -EIO, "a temporary database cannot be made: %s", schema_errmsg(db));
	(void)unlink(path); /* whatever ends us leaves nothing */
	if (r == 0)
		r = fill(db, arg, e);
	if (sqlite3_close(db) != SQLITE_OK && r == 0)
		r = err_set(e, -EIO, "a temporary database cannot be closed");
	return r;
}

int db_file_write(db_fill_fn *fill, void *arg, FILE *to, struct err *e)
{
	const char *dir = secure_getenv("TMPDIR");
	char path[512];
	int fd, r;

	if ((size_t)snprintf(path, sizeof(path), "%s/protond.XXXXXX", dir != NULL ? dir : "/tmp") >=
		sizeof(path))
		return err_set(e, -ENAMETOOLONG, "TMPDIR is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, neg_errno(),
			"no temporary file in %s: %s; set TMPDIR to a folder with room",
			dir != NULL ? dir : "/tmp", strerror(errno));
	r = fill_at(path, fill, arg, e);
	if (r == 0)
		r = copy(fd, to, e);
	close(fd);
	return r;
}
