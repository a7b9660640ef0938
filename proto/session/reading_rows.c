/* SPDX-License-Identifier: MIT. reading_rows.c: stored readings, value by value. */
#include "reading_rows.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define ROWS "SELECT gpu, bytes FROM reading WHERE session=?1 ORDER BY gpu, number"

/* A counter's rise is told by the time in which it rose. */
static void show(struct reading_value *v)
{
	const struct device_quantity_words *w = device_words(v->q);
	const double ns = (double)(v->end_ns - v->begin_ns);

	v->unit = w->unit;
	if (w->merge == MERGE_SUM && strcmp(w->unit, "ns") == 0) {
		v->unit = "%";
		v->v *= 100 / ns;
	} else if (w->merge == MERGE_SUM && strcmp(w->unit, "bytes") == 0) {
		v->unit = "bytes/s";
		v->v *= 1e9 / ns;
	}
}

static int each_value(int64_t gpu, const struct reading_point *p, reading_fn *fn, void *arg)
{
	struct reading_value v;
	uint32_t q;
	int r = 0;

	for (q = 0; q < DEVICE_N && r == 0 && p->end_ns > p->begin_ns; q++) {
		if ((p->known >> q & 1) == 0)
			continue;
		v = (struct reading_value){.gpu = gpu,
			.q = (enum device_quantity)q,
			.begin_ns = p->begin_ns,
			.end_ns = p->end_ns,
			.v = (double)p->value[q]};
		show(&v);
		r = fn(arg, &v);
	}
	return r;
}

int reading_each(struct sqlite3 *db, int64_t session, reading_fn *fn, void *arg, struct err *e)
{
	struct reading_point p[READINGS_MAX];
	struct reading_gpu gpu;
	sqlite3_stmt *st;
	uint32_t n, i;
	int r = 0;

	if (sqlite3_prepare_v2(db, ROWS, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(st, 1, session);
	while (r == 0 && sqlite3_step(st) == SQLITE_ROW) {
		r = reading_unpack(sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1),
			&gpu, p, &n, e);
		for (i = 0; r == 0 && i < n; i++)
			r = each_value(sqlite3_column_int64(st, 0), &p[i], fn, arg);
	}
	(void)sqlite3_finalize(st);
	return r;
}

size_t reading_name(const struct reading_value *v, char ret[READING_NAME])
{
	const struct device_quantity_words *w = device_words(v->q);
	int n;

	if (w->of == DEVICE_OF_HOST)
		n = snprintf(ret, READING_NAME, "host %s (%s)", w->name, v->unit);
	else
		n = snprintf(ret, READING_NAME, "GPU %lld %s%s%s%s", (long long)v->gpu, w->name,
			*v->unit != '\0' ? " (" : "", v->unit, *v->unit != '\0' ? ")" : "");
	return (size_t)n;
}
