/* SPDX-License-Identifier: MIT. view_zoom_refresh.c: a timeline that goes on while it is looked at. */
#include "zoom_made.h"

/* As the daemon stores it: chunks come one by one, the last one of a process grows; now and then the
 * clocks are read beside each other, a chunk leaves, or a process comes. After each step a timeline
 * that went on is what one is that is opened then. */
static void same_timelines(struct zoom *w, struct zoom *f)
{
	uint32_t i, k, n, n_f;
	uint64_t t[4], left[2];
	struct zoom_state s, s_f;
	const struct zoom_lane *a = zoom_lanes(w, &n), *b = zoom_lanes(f, &n_f);
	const struct zoom_counter *c, *c_f;
	struct zoom_tile x, y;
	struct err e;

	ck_assert_uint_eq(n, n_f);
	for (i = 0; i < n; i++) {
		ck_assert_str_eq(a[i].name, b[i].name);
		ck_assert_msg(a[i].rows == b[i].rows, "%s: %u rows, not %u", a[i].name, a[i].rows,
			b[i].rows);
		ck_assert_uint_eq(a[i].events, b[i].events);
	}
	zoom_range(w, &t[0], &t[1]);
	zoom_range(f, &t[2], &t[3]);
	ck_assert_msg(t[0] == t[2] && t[1] == t[3], "%llu to %llu, not %llu to %llu",
		(unsigned long long)t[0], (unsigned long long)t[1], (unsigned long long)t[2],
		(unsigned long long)t[3]);
	zoom_state(w, &s);
	zoom_state(f, &s_f);
	ck_assert(s.events == s_f.events && s.gone == s_f.gone && s.summed == s_f.summed &&
		  s.chunks == s_f.chunks && s.summarised == s_f.summarised);
	c = zoom_counters(w, &n, &left[0]);
	c_f = zoom_counters(f, &n_f, &left[1]);
	ck_assert(n == n_f && left[0] == left[1]);
	for (i = 0; i < n; i++) {
		for (k = 0; k < n; k++)
			if (c_f[k].process == c[i].process && strcmp(c_f[k].name, c[i].name) == 0)
				break;
		ck_assert(k < n && c_f[k].told == c[i].told && c_f[k].min == c[i].min &&
			  c_f[k].max == c[i].max);
	}
	for (i = 0; i < 12; i++) {
		const uint64_t length = (t[1] - t[0]) >> below(20), at = draw() % (t[1] - t[0]);
		const struct zoom_ask ask = {
			.t0 = t[0] + at, .t1 = t[0] + at + length + 1, .px = 1 + below(2000)};

		ck_assert_int_eq(zoom_slices(w, &ask, &x, &e), 0);
		ck_assert_int_eq(zoom_slices(f, &ask, &y, &e), 0);
		if (x.merge_ns != y.merge_ns) { /* the other one has to read more */
			zoom_tile_fini(&x);
			zoom_tile_fini(&y);
			continue;
		}
		ck_assert_uint_eq(x.n, y.n);
		for (k = 0; k < x.n; k++)
			ck_assert(x.slice[k].start_ns == y.slice[k].start_ns &&
				  x.slice[k].end_ns == y.slice[k].end_ns &&
				  x.slice[k].count == y.slice[k].count &&
				  x.slice[k].lane == y.slice[k].lane &&
				  x.slice[k].depth == y.slice[k].depth &&
				  x.slice[k].event == y.slice[k].event &&
				  strcmp(zoom_name(w, x.slice[k].name),
					  zoom_name(f, y.slice[k].name)) == 0);
		zoom_tile_fini(&x);
		zoom_tile_fini(&y);
	}
}

START_TEST(goes_on)
{
	sqlite3 *db;
	struct zoom *w = NULL, *fresh;
	struct err e;
	bool changed;
	uint32_t step, kept = 0;
	struct zoom *before;
	char sql[512];

	seed = 5 + (uint64_t)_i * 104729;
	growing = true;
	db = any_session(6000, _i % 2 == 0);
	help_exec(db, "CREATE TABLE later AS SELECT *, 1 whole FROM trace UNION ALL"
		      " SELECT *, 0 whole FROM part ORDER BY process, number, events, whole;"
		      "ALTER TABLE later DROP COLUMN whole; DELETE FROM trace;");
	for (step = 0; step < 40; step++) {
		const uint32_t process = step < 3 ? 1 : 1 + below(2);

		(void)snprintf(sql, sizeof(sql),
			"INSERT OR REPLACE INTO trace SELECT * FROM later WHERE process=%u ORDER "
			"BY number "
			"LIMIT 1;"
			"DELETE FROM later WHERE rowid=(SELECT rowid FROM later WHERE process=%u"
			" ORDER BY rowid LIMIT 1)",
			process, process);
		help_exec(db, sql);
		if (step == 25)
			help_exec(db, "DELETE FROM trace WHERE number=0");
		if (step % 3 == 2 && step < 20) { /* the clocks, of which one was set meanwhile */
			(void)snprintf(sql, sizeof(sql),
				"INSERT INTO anchor(clock,monotonic_ns,realtime_ns,error_ns,"
				"ring_clock) VALUES(%u,%u,%u,1,2)",
				step * 300000, step * 300000,
				step * 300000 + (step > 9 ? 5000000 : 0));
			help_exec(db, sql);
		}
		if (w == NULL) {
			ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
			continue;
		}
		before = w;
		ck_assert_msg(zoom_refresh(&w, &changed, &e) == 0, "%s", e.text);
		kept += changed && before == w;
		ck_assert_int_eq(zoom_open(db, 7, NULL, &fresh, &e), 0);
		if (changed)
			same_timelines(w, fresh);
		zoom_free(fresh);
	}
	ck_assert_uint_gt(kept, 0);
	zoom_free(w);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("zoom_refresh");
	TCase *tc = tcase_create("refresh");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, goes_on, 0, rounds(8));
	suite_add_tcase(s, tc);
	return s;
}
