/* SPDX-License-Identifier: MIT. sheet.h: the result of an analysis as a table on a screen or as the rows of an envelope: each value
 * is said once. For protonview_*.c. */
#ifndef PROTOND_VIEWER_SHEET_H
#define PROTOND_VIEWER_SHEET_H

#include <math.h>

#include "grid.h"
#include "print_json.h"
#include "protonview_verb.h"

/* How a number is shown; the envelope has it as it is, in the unit that it says. */
enum sheet_as {
	SHEET_TEXT,
	SHEET_COUNT,
	SHEET_MS,      /* of ns */
	SHEET_US,      /* of ns */
	SHEET_PERCENT, /* of a share */
	SHEET_BYTES,   /* as MB */
	SHEET_NUMBER,  /* some four digits */
};

struct sheet_column {
	const char *key,
		*head; /* in the envelope; on the screen, with the unit; NULL: not there, a key of texts alone */
	enum sheet_as as;
	uint8_t least, leaves; /* as grid_column */
};

struct sheet {
	struct run *run;
	const struct sheet_column *column;
	uint32_t n, at; /* at: the next cell */
	bool json;
	struct grid grid;
	struct grid_column shown[GRID_COLUMNS_MAX];
	struct text notes;
};

/* kind: the verb; p: the session's head. */
void sheet_open(struct sheet *s, struct run *run, const char *kind, const struct profile *p,
	const struct sheet_column *c, uint32_t n);
/* The same with further members of the envelope's data, "key":value each, parted by commas; NULL: none. */
void sheet_open_with(struct sheet *s, struct run *run, const char *kind, const struct profile *p,
	const struct sheet_column *c, uint32_t n, const char *members);
/* The next value, row by row. NULL or NAN: none. */
void sheet_text(struct sheet *s, const char *v);
void sheet_number(struct sheet *s, double v);
/* A line below the table, or a warning of the envelope. */
void sheet_note(struct sheet *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sheet_close(struct sheet *s, const struct profile *p);

/* Both of the first source of the command line: the session's head, and what `read` makes of its timeline; *ret_p is the
 * caller's. */
typedef int sheet_read_fn(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
int sheet_source(struct run *run, sheet_read_fn *read, void *arg, struct profile **ret_p);
/* Its tree; of a part of it (window.h), what that has of it. */
int sheet_profile(struct run *run, struct profile **ret_p);

#endif
