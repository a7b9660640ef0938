/* SPDX-License-Identifier: MIT. series_device.c: what GPUs and their host did, as series. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "reading_rows.h"
#include "series.h"
#include "table.h"

#define BASE                                                                                    \
	"SELECT min(created_monotonic_ns) FROM process WHERE id IN (SELECT process FROM member" \
	" WHERE session=?1)"

struct adding {
	struct series *s;
	int64_t base_ns;
	int64_t gpu;
	uint32_t one[DEVICE_N]; /* place + 1 of this GPU's series; 0: none yet */
	uint32_t room[DEVICE_N];
	struct err *e;
};

static int no_memory(struct adding *a)
{
	return err_set(a->e, -ENOMEM, "out of memory");
}

static int begin_series(struct adding *a, const struct reading_value *v)
{
	struct series *s = a->s;
	char name[READING_NAME];
	const size_t n = reading_name(v, name);

	if (!ROOM_FOR(s->one, s->cap, s->n))
		return no_memory(a);
	s->one[s->n] = (struct series_one){.name = profile_text(s->texts, name, n), .rank = -1};
	a->one[v->q] = s->n + 1;
	a->room[v->q] = 0;
	return s->one[s->n++].name != NULL ? 0 : no_memory(a);
}

static int add_value(void *arg, const struct reading_value *v)
{
	struct adding *a = arg;
	struct series_one *one;
	int r;

	if (a->gpu != v->gpu)
		memset(a->one, 0, sizeof(a->one));
	a->gpu = v->gpu;
	if (a->one[v->q] == 0) {
		if (a->s->n == SERIES_MAX) {
			a->s->left_out++;
			return 0;
		}
		r = begin_series(a, v);
		if (r < 0)
			return r;
	}
	one = &a->s->one[a->one[v->q] - 1];
	one->told++;
	if (one->n == SERIES_READ) {
		one->left_out++;
		return 0;
	}
	if (!ROOM_FOR(one->point, a->room[v->q], one->n))
		return no_memory(a);
	one->point[one->n++] = (struct series_point){
		v->end_ns > (uint64_t)a->base_ns ? v->end_ns - (uint64_t)a->base_ns : 0, v->v};
	return 0;
}

int64_t series_base(struct sqlite3 *db, int64_t id)
{
	sqlite3_stmt *st = NULL;
	int64_t ns = 0;

	if (sqlite3_prepare_v2(db, BASE, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_int64(st, 1, id);
	if (sqlite3_step(st) == SQLITE_ROW)
		ns = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return ns;
}

int series_device(struct series *s, struct sqlite3 *db, int64_t id, int64_t base_ns, struct err *e)
{
	struct adding a = {.s = s,
		.base_ns = base_ns != 0 ? base_ns : series_base(db, id),
		.gpu = READING_HOST + 1,
		.e = e};

	return reading_each(db, id, add_value, &a, e);
}

int series_of_devices(struct sqlite3 *db, int64_t id, struct series **ret, struct err *e)
{
	struct series *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (s != NULL && (s->texts = profile_new()) != NULL)
		r = series_device(s, db, id, 0, e);
	else
		err_set(e, r, "out of memory");
	if (r < 0)
		series_free(s);
	else
		*ret = s;
	return r;
}
