/* SPDX-License-Identifier: MIT. series_device.c: what GPUs and their host did, as series: shares of
 * the time and amounts a second, whatever the width of a reading. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reading.h"
#include "series.h"
#include "table.h"

#define HOST 4294967295ll
#define BASE                                                                                    \
	"SELECT min(created_monotonic_ns) FROM process WHERE id IN (SELECT process FROM member" \
	" WHERE session=?1)"
#define ROWS "SELECT gpu, bytes FROM reading WHERE session=?1 ORDER BY gpu, number"

struct adding {
	struct series *s;
	int64_t base_ns;
	int64_t gpu;
	uint32_t one[DEVICE_N]; /* place + 1 of this GPU's series; 0: none yet */
	uint32_t room[DEVICE_N];
};

/* A counter's rise is told by the time in which it rose. */
static double shown(
	const struct device_quantity_words *w, double v, double ns, const char **ret_unit)
{
	*ret_unit = w->unit;
	if (w->merge == MERGE_SUM && strcmp(w->unit, "ns") == 0) {
		*ret_unit = "%";
		return 100 * v / ns;
	}
	if (w->merge == MERGE_SUM && strcmp(w->unit, "bytes") == 0) {
		*ret_unit = "bytes/s";
		return 1e9 * v / ns;
	}
	return v;
}

static bool begin_series(struct adding *a, uint32_t q, const char *unit)
{
	const struct device_quantity_words *w = device_words(q);
	struct series *s = a->s;
	char name[96];
	int n;

	if (!ROOM_FOR(s->one, s->cap, s->n))
		return false;
	if (w->of == DEVICE_OF_HOST)
		n = snprintf(name, sizeof(name), "host %s (%s)", w->name, unit);
	else
		n = snprintf(name, sizeof(name), "GPU %lld %s%s%s%s", (long long)a->gpu, w->name,
			*unit != '\0' ? " (" : "", unit, *unit != '\0' ? ")" : "");
	s->one[s->n] =
		(struct series_one){.name = profile_text(s->texts, name, (size_t)n), .rank = -1};
	a->one[q] = s->n + 1;
	a->room[q] = 0;
	return s->one[s->n++].name != NULL;
}

static bool add_value(struct adding *a, uint32_t q, const struct reading_point *p)
{
	const char *unit;
	const double v = shown(
		device_words(q), (double)p->value[q], (double)(p->end_ns - p->begin_ns), &unit);
	struct series_one *one;

	if (a->one[q] == 0) {
		if (a->s->n == SERIES_MAX) {
			a->s->left_out++;
			return true;
		}
		if (!begin_series(a, q, unit))
			return false;
	}
	one = &a->s->one[a->one[q] - 1];
	one->told++;
	if (one->n == SERIES_READ) {
		one->left_out++;
		return true;
	}
	if (!ROOM_FOR(one->point, a->room[q], one->n))
		return false;
	one->point[one->n++] = (struct series_point){
		p->end_ns > (uint64_t)a->base_ns ? p->end_ns - (uint64_t)a->base_ns : 0, v};
	return true;
}

static int add_row(struct adding *a, sqlite3_stmt *st, struct err *e)
{
	struct reading_point p[READINGS_MAX];
	struct reading_gpu gpu;
	uint32_t n, i, q;
	int r = reading_unpack(
		sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), &gpu, p, &n, e);

	if (r < 0)
		return r;
	if (a->gpu != sqlite3_column_int64(st, 0))
		memset(a->one, 0, sizeof(a->one));
	a->gpu = sqlite3_column_int64(st, 0);
	for (i = 0; i < n; i++)
		for (q = 0; q < DEVICE_N; q++)
			if ((p[i].known >> q & 1) != 0 && p[i].end_ns > p[i].begin_ns &&
				!add_value(a, q, &p[i]))
				return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

int series_device(struct series *s, struct sqlite3 *db, int64_t id, int64_t base_ns, struct err *e)
{
	struct adding a = {.s = s, .base_ns = base_ns, .gpu = HOST + 1};
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (base_ns == 0 && sqlite3_prepare_v2(db, BASE, -1, &st, NULL) == SQLITE_OK) {
		(void)sqlite3_bind_int64(st, 1, id);
		if (sqlite3_step(st) == SQLITE_ROW)
			a.base_ns = sqlite3_column_int64(st, 0);
		(void)sqlite3_finalize(st);
	}
	/* A database of before has no such table, and no readings. */
	if (sqlite3_prepare_v2(db, ROWS, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(st, 1, id);
	while (r == 0 && sqlite3_step(st) == SQLITE_ROW)
		r = add_row(&a, st, e);
	(void)sqlite3_finalize(st);
	return r;
}
