/* SPDX-License-Identifier: MIT. recover.h: what can be read of a damaged database, as a database of
 * today's schema. */
#ifndef PROTOND_VIEWER_RECOVER_H
#define PROTOND_VIEWER_RECOVER_H

#include <stdbool.h>

#include "err.h"
#include "tables.h"

struct sqlite3;

struct recovered_table {
	uint64_t rows;   /* copied */
	uint64_t broken; /* found, but not whole, or against the table's rules */
	uint64_t pages;  /* that cannot be read: of rows, or of pages of rows */
	bool gone;       /* where it begins is not known */
	bool left_out;   /* only the daemon that wrote it can go on with it */
};

/* Of each session what it lacks, in words; NULL: nothing. */
typedef void recovered_fn(void *arg, int64_t id, const char *name, const char *lacks);

struct recover {
	recovered_fn *session;
	void *arg;
	struct recovered_table table[TABLE_MAX]; /* the answer */
};

/* Copies the rows of the file into the empty database `to`. Each session is finalized there, and
 * its column `recovered` and a note say whether it is whole. -EBADMSG: the file is not protond's, or its first page is lost. */
int recover(const char *from, struct sqlite3 *to, struct recover *r, struct err *e);

#endif
