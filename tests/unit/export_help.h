/* SPDX-License-Identifier: MIT. export_help.h: what a format writes of a timeline, for tests. */
#ifndef EXPORT_HELP_H
#define EXPORT_HELP_H

#include "quick.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export_format.h"

/* Whether the file of session 7 has these words. left: what it says it left out; NULL. */
static inline bool help_file_has(
	export_timeline_fn *write, sqlite3 *db, struct export_left *left, const char *words)
{
	struct export_left none;
	struct err e = {0};
	char *bytes;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);
	bool has;

	ck_assert_int_eq(write(db, 7, NULL, f, left != NULL ? left : &none, &e), 0);
	ck_assert_int_eq(fclose(f), 0);
	has = memmem(bytes, n, words, strlen(words)) != NULL;
	free(bytes);
	return has;
}

#endif
