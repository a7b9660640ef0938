/* SPDX-License-Identifier: MIT. timeline_reading.c: a timeline is read for an analysis. */
#include "timeline_reading.h"

#include <math.h>
#include <string.h>

int reading_run(const struct timeline_form *form, void *mine, const bool *failed,
	struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	int r = *failed ? 0 : timeline_write(form, mine, db, id, s, NULL, ret_left, e);

	return r == 0 && *failed ? err_set(e, -ENOMEM, "out of memory") : r;
}

double reading_number(const struct held *h)
{
	double f;

	memcpy(&f, &h->bits, sizeof(f));
	return h->type == VALUE_F64   ? f
	       : h->type == VALUE_I64 ? (double)(int64_t)h->bits
	       : h->type == VALUE_U64 ? (double)h->bits
				      : (double)NAN;
}
