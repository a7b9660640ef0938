/* SPDX-License-Identifier: MIT. timeline_reading.h: what analyses of a timeline share. For series.c and
 * steps.c. */
#ifndef PROTOND_VIEWER_TIMELINE_READING_H
#define PROTOND_VIEWER_TIMELINE_READING_H

#include "profile.h"
#include "timeline.h"

/* Reads a session's timeline by `form`, as timeline_write(). *failed is set by the form's functions:
 * they ran out of memory. */
int reading_run(const struct timeline_form *form, void *mine, const bool *failed,
	struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
double reading_number(const struct held *h); /* NAN: it is not a number */

#endif
