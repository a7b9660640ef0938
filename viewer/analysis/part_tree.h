/* SPDX-License-Identifier: MIT. part_tree.h: a session's tree with what a part of its timeline has, for those who want no more of
 * window.h. */
#ifndef PROTOND_VIEWER_PART_TREE_H
#define PROTOND_VIEWER_PART_TREE_H

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;

/* arg: a whole struct profile of the session; as window_read(). */
int part_tree_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);

#endif
