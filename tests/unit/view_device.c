/* SPDX-License-Identifier: MIT. view_device.c: stored readings as series, and as a line of the head. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "profile_rows.h"
#include "reading.h"
#include "schema.h"
#include "series.h"
#include "text.h"

#include "quick.h"

Suite *suite(void);

static void put(
	sqlite3 *db, int64_t gpu, uint32_t number, const struct reading_point *p, uint32_t n)
{
	const struct reading_gpu g = {.name = "H"};
	sqlite3_stmt *st;
	void *bytes;
	uint32_t size;

	ck_assert_int_eq(reading_pack(&g, p, n, &bytes, &size), 0);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "INSERT INTO reading VALUES(1,?1,?2,0,0,?3)", -1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, gpu);
	(void)sqlite3_bind_int64(st, 2, number);
	(void)sqlite3_bind_blob(st, 3, bytes, (int)size, free);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
}

#define BIT(q) (1ull << DEVICE_##q)
enum { SECOND = 1000000000 };

/* Four seconds: 1 980 MHz for two, then 1 000 for two, of which half was held by power. */
static sqlite3 *recorded(void)
{
	struct reading_point p[4] = {{0}}, host = {.begin_ns = SECOND, .end_ns = 3ull * SECOND};
	struct text sql = {0};
	sqlite3 *db;
	char *s;
	size_t n;
	uint32_t i;

	ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
	schema_text(&sql, SCHEMA_VERSION);
	ck_assert_int_eq(text_take(&sql, &s, &n), 0);
	ck_assert_int_eq(sqlite3_exec(db, s, NULL, NULL, NULL), SQLITE_OK);
	free(s);
	for (i = 0; i < 4; i++) {
		p[i].begin_ns = (i + 1) * (uint64_t)SECOND;
		p[i].end_ns = (i + 2) * (uint64_t)SECOND;
		p[i].known = BIT(sm_clock) | BIT(sm_clock_max);
		p[i].value[DEVICE_sm_clock] = i < 2 ? 1980 : 1000;
		p[i].value[DEVICE_sm_clock_max] = 1980;
		if (i % 2 != 0)
			continue; /* a mean is of what was read */
		p[i].known |= BIT(power) | BIT(sm_active) | BIT(temperature) | BIT(memory_used) |
			      BIT(memory_total);
		p[i].value[DEVICE_power] = i == 0 ? 300 : 500;
		p[i].value[DEVICE_sm_active] = 50;
		p[i].value[DEVICE_temperature] = i == 0 ? 71 : 40;
		p[i].value[DEVICE_memory_used] = 1.5f * (1 << 30);
		p[i].value[DEVICE_memory_total] = 2.f * (1 << 30);
	}
	p[1].known |= BIT(held_by_power); /* counters are read each second time */
	p[3].known |= BIT(held_by_power) | BIT(held_by_heat);
	p[3].value[DEVICE_held_by_power] = SECOND;
	p[3].value[DEVICE_held_by_heat] = SECOND / 1000;
	put(db, 0, 0, p, 3);
	put(db, 0, 1, p + 3, 1);
	host.known = BIT(net_rx);
	host.value[DEVICE_net_rx] = 5000;
	put(db, 4294967295, 0, &host, 1);
	return db;
}

static int keep(struct load *l, const char *text)
{
	struct text *t = (struct text *)(void *)l->p;

	text_fmt(t, "%s;", text);
	return 0;
}

START_TEST(what_held_the_clocks_is_said)
{
	struct text t = {0};
	struct load l = {.db = recorded(), .session = 1, .p = (struct profile *)(void *)&t};
	char *s;
	size_t n;

	ck_assert_int_eq(load_held(&l, keep), 0);
	ck_assert_int_eq(text_take(&t, &s, &n), 0);
	ck_assert_str_eq(s, "clocks of GPU 0 held at 1000 of 1980 MHz by power for 25 % of the run;"
			    "GPU: 400 W, 1490 MHz, SMs active 50 %; at most 71 C, 1.5 of 2.0 GiB;");
	free(s);
	l.session = 2;
	ck_assert_int_eq(load_held(&l, keep), 0); /* it would add to t */
	ck_assert_int_eq(sqlite3_exec(l.db, "DROP TABLE reading", NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(load_held(&l, keep), 0); /* a database of before */
	ck_assert_int_eq(text_take(&t, &s, &n), 0);
	ck_assert_str_eq(s, "");
	free(s);
	(void)sqlite3_close(l.db);
}
END_TEST

static const struct series_one *named(const struct series *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (strcmp(s->one[i].name, name) == 0)
			return &s->one[i];
	ck_abort_msg("no series %s", name);
	return NULL;
}

START_TEST(readings_are_series)
{
	sqlite3 *db = recorded();
	struct series *s = calloc(1, sizeof(*s));
	struct err e = {0};
	const struct series_one *one;

	ck_assert(s != NULL && (s->texts = profile_new()) != NULL);
	ck_assert_msg(series_device(s, db, 1, SECOND, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(s->n, 10);
	one = named(s, "GPU 0 sm_clock (MHz)");
	ck_assert(one->n == 4 && one->point[3].v == 1000 && one->point[3].ns == 4ull * SECOND);
	ck_assert_double_eq_tol(named(s, "GPU 0 held_by_power (%)")->point[1].v, 100, 1e-6);
	ck_assert_double_eq_tol(named(s, "host net_rx (bytes/s)")->point[0].v, 2500, 1e-6);
	ck_assert_int_eq(
		sqlite3_exec(db, "UPDATE reading SET bytes=x'00'", NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(series_device(s, db, 1, SECOND, &e), -EBADMSG);
	ck_assert_int_eq(series_device(s, db, 2, SECOND, &e), 0);
	series_free(s);
	(void)sqlite3_close(db);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("device");
	TCase *t = tcase_create("device");

	tcase_add_test(t, what_held_the_clocks_is_said);
	tcase_add_test(t, readings_are_series);
	suite_add_tcase(s, t);
	return s;
}
