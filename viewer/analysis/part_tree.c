/* SPDX-License-Identifier: MIT. part_tree.c: a part of a timeline as a tree. */
#include "part_tree.h"

#include "window.h"

int part_tree_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct window w = {.p = arg};

	return window_read(&w, db, id, s, ret_left, e);
}
