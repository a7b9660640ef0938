/* SPDX-License-Identifier: MIT. device_sums.c: readings of GPUs and host, added up. */
#include "device_sums.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "reading.h"

#define ROWS "SELECT gpu, bytes FROM reading WHERE session=?1 ORDER BY gpu, number"

static void add_point(
	struct device_of_sums *d, const struct reading_point *p, const struct span *in)
{
	const double ns = (double)(p->end_ns - p->begin_ns);
	struct device_sum *s;
	uint32_t q;

	if (p->end_ns <= p->begin_ns || p->end_ns <= in->begin || p->begin_ns >= in->end)
		return;
	d->all_ns += ns;
	for (q = 0; q < DEVICE_N; q++) {
		if ((p->known >> q & 1) == 0)
			continue;
		s = &d->of[q];
		s->most =
			s->known_ns == 0 ? (double)p->value[q] : fmax(s->most, (double)p->value[q]);
		s->last = (double)p->value[q];
		s->sum += (double)p->value[q];
		s->mean += ((double)p->value[q] - s->mean) * ns / (s->known_ns + ns);
		/* A counter's rise is since the reading before that has it. */
		s->known_ns = device_words(q)->merge == MERGE_SUM ? d->all_ns : s->known_ns + ns;
	}
}

static int add_row(struct device_sums *s, sqlite3_stmt *st, const struct span *in, struct err *e)
{
	const uint32_t gpu = (uint32_t)sqlite3_column_int64(st, 0);
	struct reading_point p[READINGS_MAX];
	struct reading_gpu words;
	uint32_t n, i;
	int r = reading_unpack(
		sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), &words, p, &n, e);

	if (r < 0)
		return r;
	if (s->n == 0 || s->one[s->n - 1].gpu != gpu) {
		if (s->n == DEVICE_SUMS_MAX) {
			s->left_out++;
			return 0;
		}
		s->one[s->n++].gpu = gpu;
	}
	for (i = 0; i < n; i++)
		add_point(&s->one[s->n - 1], &p[i], in);
	return 0;
}

int device_sums_read(struct sqlite3 *db, int64_t id, const struct span *in,
	struct device_sums **ret, struct err *e)
{
	struct device_sums *s = calloc(1, sizeof(*s));
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (s == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	/* A database of before has no such table. */
	if (sqlite3_prepare_v2(db, ROWS, -1, &st, NULL) == SQLITE_OK) {
		(void)sqlite3_bind_int64(st, 1, id);
		while (r == 0 && sqlite3_step(st) == SQLITE_ROW)
			r = add_row(s, st, in, e);
	}
	(void)sqlite3_finalize(st);
	if (r == 0 && s->n == 0)
		r = err_set(e, -ENODATA, "nothing was measured of GPUs and their host");
	if (r < 0)
		free(s);
	else
		*ret = s;
	return r;
}
