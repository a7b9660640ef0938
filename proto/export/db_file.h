/* SPDX-License-Identifier: MIT. db_file.h: a database that is made to be written to a stream: in a
 * temporary file ($TMPDIR, else /tmp) that has no name any more. */
#ifndef PROTOND_EXPORT_DB_FILE_H
#define PROTOND_EXPORT_DB_FILE_H

#include <stdio.h>

#include "err.h"

struct sqlite3;

/* Makes the tables; 0 or -errno with words. */
typedef int db_fill_fn(struct sqlite3 *to, void *arg, struct err *e);
int db_file_write(db_fill_fn *fill, void *arg, FILE *to, struct err *e);

#endif
