/* SPDX-License-Identifier: MIT. view_steps.c: what steps were told, of a session without a timeline, as series. */
#include "view_help.h"

#include "export_format.h"
#include "series.h"
#include "step_row.h"

static void put_row(sqlite3 *db, int process, const struct step_names *names,
	const struct step_point *p, uint32_t n)
{
	sqlite3_stmt *st;
	uint32_t bytes_n;
	void *bytes;

	ck_assert_int_eq(step_row_pack(names, p, n, &bytes, &bytes_n), 0);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "INSERT INTO step VALUES(7,?1,0,3,0,0,?2)", -1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int(st, 1, process);
	(void)sqlite3_bind_blob(st, 2, bytes, (int)bytes_n, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	free(bytes);
}

static sqlite3 *session(void)
{
	static const struct step_names names = {.n = 2, .name = {"loss", "tokens"}};
	struct step_point p[2] = {{.first = 1, .begin_ns = 1000, .end_ns = 2000, .n = 1},
		{.first = 2, .begin_ns = 2000, .end_ns = 4000, .n = 2}};
	sqlite3 *db = help_db(":memory:");

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_process(db, 2, 200, "1", "NULL", 2, "");
	help_session(db, 7, "told", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1),(7,2)");
	p[0].v[0] = (struct step_value){.mean = 5, .least = 5, .most = 5, .n = 1};
	p[1].v[0] = (struct step_value){.mean = 3, .least = 2, .most = 4, .n = 2};
	p[1].v[1] = (struct step_value){.mean = 64, .least = 64, .most = 64, .n = 2};
	put_row(db, 1, &names, p, 2);
	put_row(db, 2, &names, p, 1);
	return db;
}

START_TEST(numbers_of_steps_are_series)
{
	const struct profile_select all = {0}, one = {.process = "1"}, pid = {.process = "pid:100"};
	sqlite3 *db = session();
	struct export_left left;
	struct series *s;
	struct err e = {0};

	ck_assert_msg(series_read(db, 7, &all, &left, &s, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(s->n, 3);
	ck_assert_str_eq(s->one[0].name, "loss");
	ck_assert(s->one[0].rank == 0 && s->one[0].n == 2 && s->one[0].told == 3);
	ck_assert(s->one[0].point[0].v == 5 && s->one[0].point[1].v == 3);
	ck_assert(s->one[0].point[1].ns > s->one[0].point[0].ns);
	ck_assert_str_eq(s->one[1].name, "tokens");
	ck_assert(s->one[1].n == 1 && s->one[1].point[0].v == 64);
	ck_assert(s->one[2].rank == 1 && s->one[2].n == 1);
	series_free(s);
	ck_assert_int_eq(series_read(db, 7, &one, &left, &s, &e), 0);
	ck_assert(s->n == 1 && s->one[0].rank == 1);
	series_free(s);
	ck_assert_int_eq(series_read(db, 7, &pid, &left, &s, &e), 0);
	ck_assert(s->n == 2 && s->one[0].pid == 100);
	series_free(s);
	help_exec(db, "UPDATE step SET bytes = x'0011'");
	ck_assert_int_eq(series_read(db, 7, &all, &left, &s, &e), -EBADMSG);
	help_exec(db, "DROP TABLE step"); /* of before */
	ck_assert_int_eq(series_read(db, 7, &all, &left, &s, &e), -ENODATA);
	sqlite3_close(db);
}
END_TEST

#define TESTS(X) X(numbers_of_steps_are_series)
HELP_SUITE("view_steps", TESTS)
