/* SPDX-License-Identifier: MIT. holding.c: who holds memory, out of a store. */
#include "holding.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step_rows.h"
#include "table.h"
#include "text.h"

#define ROWS                                                                                      \
	"SELECT m.bytes, p.id, p.pid, coalesce(p.rank,-1), p.created_monotonic_ns FROM memory m"  \
	" JOIN process p ON p.id=m.process WHERE m.session=?1 AND (?2 IS NULL OR (substr(?2,1,4)" \
	"='pid:' AND p.pid=CAST(substr(?2,5) AS INTEGER)) OR (substr(?2,1,4)<>'pid:' AND"         \
	" p.rank=CAST(?2 AS INTEGER))) ORDER BY p.id"
#define ABOVE                                                                                   \
	"WITH RECURSIVE up(id,parent,name,depth) AS (SELECT id,parent,name,0 FROM node WHERE "  \
	"hash=?1 UNION ALL SELECT n.id,n.parent,n.name,up.depth+1 FROM node n JOIN up ON n.id=" \
	"up.parent WHERE up.depth<1000) SELECT name FROM up WHERE parent<>0 ORDER BY depth DESC"
#define DEVICES  "SELECT device, ordinal FROM device WHERE process=?1"
#define ORDINALS 256u

static void holding_fini(struct holding *x)
{
	uint32_t i;

	for (i = 0; x->scope != NULL && i < x->h.n_owners; i++)
		free(x->scope[i]);
	free(x->scope);
	free(x->step);
	holders_fini(&x->h);
}

static bool is_other(const struct held_owner *o)
{
	static const uint8_t none[16];

	return memcmp(o->hash, none, sizeof(none)) == 0;
}

static char *scope_of(sqlite3_stmt *above, const struct held_owner *o)
{
	struct text t = {0};
	uint32_t seen = 0;
	char *ret;
	size_t n;

	(void)sqlite3_reset(above);
	(void)sqlite3_bind_blob(above, 1, o->hash, sizeof(o->hash), SQLITE_STATIC);
	for (; !is_other(o) && sqlite3_step(above) == SQLITE_ROW; seen++)
		text_fmt(&t, "%s%s", seen > 0 ? "/" : "",
			(const char *)sqlite3_column_text(above, 0));
	if (is_other(o))
		text_str(&t, "(other)");
	return text_take(&t, &ret, &n) == 0 ? ret : NULL;
}

static int read_scopes(sqlite3 *db, struct holding *x, struct err *e)
{
	sqlite3_stmt *above = NULL;
	uint32_t i;
	int r = 0;

	x->scope = calloc(x->h.n_owners + 1, sizeof(*x->scope));
	if (x->scope == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	if (sqlite3_prepare_v2(db, ABOVE, -1, &above, NULL) != SQLITE_OK)
		return err_set(e, -EBADMSG, "its nodes cannot be read: %s", sqlite3_errmsg(db));
	for (i = 0; i < x->h.n_owners && r == 0; i++) {
		x->scope[i] = scope_of(above, &x->h.owner[i]);
		r = x->scope[i] == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
	}
	(void)sqlite3_finalize(above);
	return r;
}

/* Devices by the number that CUDA gives them, as far as the process told it. */
static void name_devices(sqlite3 *db, struct holding *x)
{
	sqlite3_stmt *q = NULL;
	uint32_t ordinal[ORDINALS], i;

	for (i = 0; i < ORDINALS; i++)
		ordinal[i] = i;
	if (sqlite3_prepare_v2(db, DEVICES, -1, &q, NULL) == SQLITE_OK) {
		(void)sqlite3_bind_int64(q, 1, x->process);
		while (sqlite3_step(q) == SQLITE_ROW) {
			const int64_t device = sqlite3_column_int64(q, 0);

			if (device >= 0 && device < ORDINALS)
				ordinal[device] = (uint32_t)sqlite3_column_int64(q, 1);
		}
	}
	(void)sqlite3_finalize(q);
	for (i = 0; i < x->h.n_accounts; i++)
		if (x->h.account[i]->device < ORDINALS)
			x->h.account[i]->device = ordinal[x->h.account[i]->device];
}

static int on_step(void *arg, const struct step_seen *s)
{
	struct holding *x = arg;
	const struct step_point *p = s->point;

	if (s->process != x->process || x->n_steps == HOLDING_STEPS)
		return 0;
	if (!ROOM_FOR(x->step, x->cap_steps, x->n_steps))
		return -ENOMEM;
	x->step[x->n_steps++] = (struct holding_step){p->begin_ns, p->end_ns, p->first, p->n};
	return 0;
}

static void find_end(struct holding *x)
{
	uint32_t i;

	for (i = 0; i < x->h.n_accounts; i++) {
		const struct held_account *a = x->h.account[i];
		const uint64_t ns = a->n_points > 0 ? a->point[a->n_points - 1].ns : 0;

		x->end_ns = ns > x->end_ns ? ns : x->end_ns;
	}
}

static int read_one(sqlite3 *db, int64_t session, sqlite3_stmt *q, struct holding *x, struct err *e)
{
	const void *bytes = sqlite3_column_blob(q, 0);
	int r;

	*x = (struct holding){.process = sqlite3_column_int64(q, 1),
		.pid = sqlite3_column_int64(q, 2),
		.rank = sqlite3_column_int64(q, 3),
		.base_ns = sqlite3_column_int64(q, 4)};
	r = holders_unpack(bytes, (size_t)sqlite3_column_bytes(q, 0), &x->h, e);
	if (r == 0)
		r = read_scopes(db, x, e);
	if (r < 0)
		return r;
	name_devices(db, x);
	find_end(x);
	r = step_each(db, session, NULL, on_step, x, e);
	return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
}

int holding_each(struct sqlite3 *db, int64_t session, const char *process, holding_fn *fn,
	void *arg, struct err *e)
{
	sqlite3_stmt *q = NULL;
	struct holding x;
	int r = 0;

	if (sqlite3_prepare_v2(db, ROWS, -1, &q, NULL) != SQLITE_OK)
		return 0; /* of a database of before */
	(void)sqlite3_bind_int64(q, 1, session);
	if (process != NULL)
		(void)sqlite3_bind_text(q, 2, process, -1, SQLITE_STATIC);
	while (r == 0 && sqlite3_step(q) == SQLITE_ROW) {
		r = read_one(db, session, q, &x, e);
		if (r == 0)
			r = fn(arg, &x);
		holding_fini(&x);
	}
	(void)sqlite3_finalize(q);
	return r;
}

void holding_device(const struct held_account *a, char ret[16])
{
	if (a->device == HELD_HOST || a->kind == HELD_PINNED)
		(void)snprintf(ret, 16, "host");
	else
		(void)snprintf(ret, 16, "cuda:%u", a->device);
}

uint64_t holding_at(const struct held_account *a, uint64_t ns)
{
	uint32_t low = 0, high = a->n_points, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (a->point[mid].ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? 0 : a->point[low - 1].last;
}

/* The most between them. */
static uint64_t most_in(const struct held_account *a, uint64_t from, uint64_t to)
{
	uint64_t most = holding_at(a, from);
	uint32_t i;

	for (i = 0; i < a->n_points; i++)
		if (a->point[i].ns >= from && a->point[i].ns <= to && a->point[i].most > most)
			most = a->point[i].most;
	return most;
}

/* Least squares of y over its place. */
static void line(const double *y, uint32_t n, struct holding_growth *ret)
{
	const double mean_x = (n - 1) / 2.0;
	double mean_y = 0, xx = 0, xy = 0, rest = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		mean_y += y[i] / n;
	for (i = 0; i < n; i++) {
		xx += (i - mean_x) * (i - mean_x);
		xy += (i - mean_x) * (y[i] - mean_y);
	}
	ret->slope = xy / xx;
	for (i = 0; i < n; i++) {
		const double off = y[i] - mean_y - ret->slope * (i - mean_x);

		rest += off * off;
	}
	ret->error = sqrt(rest / (n - 2) / xx);
}

/* Steps of a point that is of several lie between its ends. */
static uint32_t values(const struct holding *x, const struct held_account *a, uint64_t first,
	uint64_t last, double *y, uint64_t *ret_from, uint64_t *ret_to)
{
	uint32_t i, k, n = 0;

	for (i = 0; i < x->n_steps; i++) {
		const struct holding_step *s = &x->step[i];

		for (k = 0; k < s->n && n < HOLDING_STEPS; k++) {
			const uint64_t number = s->first + k;
			const uint64_t end =
				s->begin_ns +
				(uint64_t)((double)(s->end_ns - s->begin_ns) * (k + 1) / s->n);

			if (number < first || (last != 0 && number > last))
				continue;
			*ret_from = n == 0 ? s->begin_ns : *ret_from;
			*ret_to = end;
			y[n++] = (double)holding_at(a, end);
		}
	}
	return n;
}

void holding_growth(const struct holding *x, const struct held_account *a, uint32_t first,
	uint32_t last, struct holding_growth *ret)
{
	double *y = malloc(HOLDING_STEPS * sizeof(*y));
	uint64_t from = 0, to = 0;
	uint32_t n, warm;

	*ret = (struct holding_growth){0};
	if (y == NULL)
		return;
	n = values(x, a, first, last, y, &from, &to);
	warm = first <= 1 && n > HOLDING_WARM_UP ? HOLDING_WARM_UP : 0;
	ret->all = n;
	ret->steps = n - warm;
	if (n > 0) {
		ret->at_first = (uint64_t)y[0];
		ret->at_last = (uint64_t)y[n - 1];
		ret->most = most_in(a, from, to);
		ret->g = growth_of(y, n);
	}
	if (ret->steps >= HOLDING_LEAST)
		line(y + warm, ret->steps, ret);
	free(y);
}
