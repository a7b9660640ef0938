/* SPDX-License-Identifier: MIT. web_series.c: numbers over time, in columns. */
#include "series.h"
#include "web_ask.h"
#include "zoom.h"

struct wanted {
	struct series *s;
	bool told; /* some number was, as far as is known */
};

static int read_series(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct wanted *w = arg;

	return w->told ? series_read(db, id, s, ret_left, &w->s, e)
		       : series_of_devices(db, id, &w->s, e);
}

/* Summaries say so: 10 M events without one take 1.6 s to walk over. */
static bool is_told(struct web_ask *a)
{
	uint64_t left_out;
	struct zoom *z;
	uint32_t n;

	if (web_zoom(a, &z) < 0) {
		a->run->e = (struct err){0};
		return true; /* whoever reads it says what is wrong */
	}
	(void)zoom_counters(z, &n, &left_out);
	return n > 0 || left_out > 0;
}

/* "allocated (bytes)": the unit is what stands in the brackets. */
static void put_one(struct text *t, const struct series_one *one)
{
	char name[256], unit[64];
	uint32_t i;

	metric_bare(one->name, name, sizeof(name));
	metric_unit(one->name, unit, sizeof(unit));
	json_open(t, '{');
	json_key_str(t, "name", name);
	json_key_str(t, "unit", unit);
	json_key(t, "process");
	if (one->pid != 0)
		text_fmt(t, "%lld", (long long)one->pid);
	else
		text_str(t, "null");
	json_key(t, "rank");
	if (one->rank >= 0)
		text_fmt(t, "%lld", (long long)one->rank);
	else
		text_str(t, "null");
	json_key_u64(t, "told", one->told);
	json_in(t, "t", '[');
	for (i = 0; i < one->n; i++)
		json_f64(t, (double)one->point[i].ns);
	json_close(t, ']');
	json_in(t, "v", '[');
	for (i = 0; i < one->n; i++)
		json_f64(t, one->point[i].v);
	json_close(t, ']');
	json_close(t, '}');
}

int web_series(struct web_ask *a)
{
	struct text *t = &a->to->body;
	struct wanted w = {.told = is_told(a)};
	const struct series *s;
	uint64_t lost = 0;
	uint32_t i;
	int r = web_db(a, read_series, &w, NULL);

	if (r < 0)
		return r;
	s = w.s;
	text_char(t, '{');
	json_in(t, "series", '[');
	for (i = 0; i < s->n; i++) {
		put_one(t, &s->one[i]);
		lost += s->one[i].left_out;
	}
	json_close(t, ']');
	if (lost > 0 || s->left_out > 0)
		warning_add(&a->run->warnings,
			"%llu numbers are left out: more than %u of one metric, or of more than %u "
			"metrics",
			(unsigned long long)(lost + s->left_out), SERIES_READ, SERIES_MAX);
	web_warnings(a);
	text_char(t, '}');
	series_free(w.s);
	return 0;
}
