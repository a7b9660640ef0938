/* SPDX-License-Identifier: MIT. reading_rows.h: the stored readings of a session, value by value, as they are
 * shown: shares of the time and amounts a second, whatever the width of a reading. */
#ifndef PROTOND_SESSION_READING_ROWS_H
#define PROTOND_SESSION_READING_ROWS_H

#include "reading.h"

struct sqlite3;

#define READING_HOST 4294967295ll
#define READING_NAME 96u

struct reading_value {
	int64_t gpu; /* its number; READING_HOST */
	enum device_quantity q;
	const char *unit;          /* as it is shown */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	double v;
};

/* fn for each, GPU by GPU and in order of time, the host last; its error ends it. A database of before has none.
 * -EBADMSG with words: damaged. */
typedef int reading_fn(void *arg, const struct reading_value *v);
int reading_each(struct sqlite3 *db, int64_t session, reading_fn *fn, void *arg, struct err *e);
/* "GPU 0 power (W)", "host net_rx (bytes/s)"; returns its length. */
size_t reading_name(const struct reading_value *v, char ret[READING_NAME]);

#endif
