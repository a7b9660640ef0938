/* SPDX-License-Identifier: MIT. step_row.c: steps as bytes: "PDS1", then one zstd frame: how many names and
 * points there are, the names, when each point was and of how many steps, then what each of these has of
 * which number. */
#include "step_row.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framed.h"
#include "leb.h"

#define VALUE_MAX  (3 * sizeof(double) + LEB_MAX)
#define POINT_MAX  (6 * LEB_MAX + STEP_NAMES * VALUE_MAX)
#define NAMES_MAX  (LEB_MAX + STEP_NAME_BYTES)
#define RAW_MAX    (2 * LEB_MAX + STEP_NAMES * NAMES_MAX + STEP_ROW_POINTS * POINT_MAX)
#define NUMBER_MAX (UINT64_MAX / 4)
#define TIME_MAX   (NUMBER_MAX / 4) /* later ones, which are a lie, count as this */

static const char magic[4] = "PDS1";

static uint8_t *put_double(uint8_t *at, double v)
{
	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

/* Of several steps what they have between them, too. */
static uint8_t *put_value(uint8_t *at, const struct step_point *p, const struct step_value *v)
{
	at = put_double(at, v->mean);
	if (p->n == 1)
		return at;
	at = put_double(put_double(at, v->least), v->most);
	return leb_put(at, v->n);
}

static uint64_t bounded(uint64_t ns)
{
	return ns < TIME_MAX ? ns : TIME_MAX;
}

/* Steps stand in the order in which they ended: one of another thread may have begun before the last. */
static uint64_t apart(uint64_t from, uint64_t to)
{
	return to >= from ? (to - from) * 2 : (from - to) * 2 - 1;
}

static uint8_t *put_point(
	uint8_t *at, const struct step_point *p, uint64_t before, uint64_t before_ns)
{
	const uint64_t begin = bounded(p->begin_ns), end = bounded(p->end_ns);
	uint64_t has = 0;
	uint32_t k;

	for (k = 0; k < STEP_NAMES; k++)
		has |= (uint64_t)(p->v[k].n > 0) << k;
	at = leb_put(at, p->first - before);
	at = leb_put(at, p->n);
	at = leb_put(at, apart(bounded(before_ns), begin));
	at = leb_put(at, end > begin ? end - begin : 0);
	at = leb_put(at, bounded(p->took_ns));
	at = leb_put(at, has);
	for (k = 0; k < STEP_NAMES; k++)
		if (p->v[k].n > 0)
			at = put_value(at, p, &p->v[k]);
	return at;
}

static size_t write_raw(
	uint8_t *raw, const struct step_names *names, const struct step_point *p, uint32_t n)
{
	uint8_t *at = leb_put(leb_put(raw, names->n), n);
	uint32_t i;

	for (i = 0; i < names->n; i++) {
		const size_t bytes = strnlen(names->name[i], STEP_NAME_BYTES - 1);

		at = leb_put(at, bytes);
		memcpy(at, names->name[i], bytes);
		at += bytes;
	}
	for (i = 0; i < n; i++)
		at = put_point(
			at, &p[i], i > 0 ? p[i - 1].first : 0, i > 0 ? p[i - 1].begin_ns : 0);
	return (size_t)(at - raw);
}

int step_row_pack(const struct step_names *names, const struct step_point *p, uint32_t n,
	void **ret, uint32_t *ret_n)
{
	uint8_t *raw = malloc(RAW_MAX);
	int r = -ENOMEM;

	if (raw != NULL)
		r = framed_pack(magic, raw, write_raw(raw, names, p, n), ret, ret_n);
	free(raw);
	return r;
}

/* --- reading */

struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get(struct reader *r)
{
	const uint64_t v = leb_get(&r->at, r->end, &r->bad);

	r->bad |= v > NUMBER_MAX;
	return r->bad ? 0 : v;
}

static uint64_t get_apart(struct reader *r, uint64_t from)
{
	const uint64_t v = get(r), by = v / 2 + (v & 1);

	r->bad |= (v & 1) != 0 && by > from;
	return (v & 1) != 0 ? from - by : from + by;
}

static double get_double(struct reader *r)
{
	double v = 0;

	if ((size_t)(r->end - r->at) < sizeof(v)) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, r->at, sizeof(v));
	r->at += sizeof(v);
	r->bad |= !isfinite(v);
	return r->bad ? 0 : v;
}

static void get_names(struct reader *r, struct step_names *names)
{
	uint32_t i;

	for (i = 0; i < names->n && !r->bad; i++) {
		const uint64_t bytes = get(r);

		r->bad |= bytes >= STEP_NAME_BYTES || bytes > (size_t)(r->end - r->at);
		if (r->bad)
			return;
		memcpy(names->name[i], r->at, bytes);
		names->name[i][bytes] = '\0';
		r->at += bytes;
	}
}

static void get_value(struct reader *r, const struct step_point *p, struct step_value *v)
{
	uint64_t n = 1;

	v->mean = v->least = v->most = get_double(r);
	if (p->n > 1) {
		v->least = get_double(r);
		v->most = get_double(r);
		n = get(r);
	}
	r->bad |= n == 0 || n > p->n;
	v->n = (uint32_t)n;
}

static void get_point(
	struct reader *r, struct step_point *p, const struct step_point *before, uint32_t names)
{
	uint64_t n, has;
	uint32_t k;

	*p = (struct step_point){.first = get(r)};
	p->first += before != NULL ? before->first : 0;
	n = get(r);
	p->begin_ns = get_apart(r, before != NULL ? before->begin_ns : 0);
	p->end_ns = p->begin_ns + get(r);
	p->took_ns = get(r);
	has = get(r);
	r->bad |= n == 0 || n > UINT32_MAX || has >> names != 0 || p->first > NUMBER_MAX ||
		  p->end_ns > NUMBER_MAX;
	p->n = (uint32_t)n;
	for (k = 0; k < names && !r->bad; k++)
		if ((has >> k & 1) != 0)
			get_value(r, p, &p->v[k]);
}

static bool get_all(struct reader *r, struct step_names *names, struct step_point *p, uint32_t *n)
{
	const uint64_t n_names = get(r), n_points = get(r);
	uint32_t i;

	if (r->bad || n_names > STEP_NAMES || n_points > STEP_ROW_POINTS)
		return false;
	names->n = (uint32_t)n_names;
	*n = (uint32_t)n_points;
	get_names(r, names);
	for (i = 0; i < *n && !r->bad; i++)
		get_point(r, &p[i], i > 0 ? &p[i - 1] : NULL, names->n);
	return !r->bad && r->at == r->end;
}

int step_row_unpack(const void *bytes, size_t n, struct step_names *ret_names,
	struct step_point ret[STEP_ROW_POINTS], uint32_t *ret_n, struct err *e)
{
	uint8_t *raw = malloc(RAW_MAX);
	struct reader r;
	size_t got;
	bool ok;

	if (raw == NULL)
		return err_set(e, -ENOMEM, "out of memory for steps");
	got = framed_unpack(magic, bytes, n, raw, RAW_MAX);
	ok = got > 0;
	if (ok) {
		r = (struct reader){raw, raw + got, false};
		ok = get_all(&r, ret_names, ret, ret_n);
	}
	free(raw);
	return ok ? 0 : err_set(e, -EBADMSG, "a row of steps is damaged");
}
