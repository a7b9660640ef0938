/* SPDX-License-Identifier: MIT. view_steps.c: what steps were told, of a session without a timeline, as series. */
#include "view_help.h"

#include "export_format.h"
#include "metrics_peak.h"
#include "series.h"
#include "step_row.h"
#include "steps.h"
#include "throughput.h"

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

/* Twelve steps of 1 ms behind one of 10 ms; each has 32 samples and 2e9 flops, of rank 1 half as many. */
static void put_paced(sqlite3 *db, int process, double part)
{
	static const struct step_names names = {.n = 2, .name = {"samples (inc)", "flops16"}};
	struct step_point p[13];
	uint64_t at = 1000000;
	uint32_t i;

	memset(p, 0, sizeof(p));
	for (i = 0; i < 13; i++) {
		p[i] = (struct step_point){.first = i + 1,
			.begin_ns = at,
			.n = 1,
			.took_ns = i == 0 ? 10000000 : 1000000};
		p[i].end_ns = at + p[i].took_ns;
		at = p[i].end_ns + 500000;
		p[i].v[0] = (struct step_value){.mean = 32 * part, .least = 1, .most = 32, .n = 1};
		p[i].v[1] = (struct step_value){.mean = 2e9 * part, .least = 1, .most = 1, .n = 1};
	}
	put_row(db, process, &names, p, 13);
}

static sqlite3 *paced(void)
{
	sqlite3 *db = help_db(":memory:");

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_process(db, 2, 200, "1", "NULL", 2, "");
	help_session(db, 7, "paced", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1),(7,2)");
	put_paced(db, 1, 1);
	put_paced(db, 2, 0.5);
	return db;
}

START_TEST(rates_leave_the_warm_up_out)
{
	const struct profile_select all = {0}, some = {.first_step = 3, .last_step = 4};
	sqlite3 *db = paced();
	struct step_rates r, by_steps;
	struct steps *s;
	struct err e = {0};

	ck_assert_int_eq(step_rates_load(db, 7, NULL, &r, &e), 0);
	ck_assert(r.steps == 26 && r.warm == 2);
	ck_assert_double_eq_tol(r.a_s[RATE_STEPS], 2000, 1e-6);
	ck_assert_double_eq_tol(r.a_s[RATE_SAMPLES], 48000, 1e-6);
	ck_assert_double_eq_tol(r.a_s[RATE_FLOPS16], 3e12, 1);
	ck_assert(r.told[RATE_SAMPLES] == 2 && r.told[RATE_TOKENS] == 0);
	ck_assert_int_eq(step_rates_load(db, 7, "1", &r, &e), 0);
	ck_assert(r.steps == 13 && r.told[RATE_SAMPLES] == 1);
	ck_assert_double_eq_tol(r.a_s[RATE_SAMPLES], 16000, 1e-6);

	ck_assert_int_eq(steps_stored(db, 7, &all, &s, &e), 0);
	ck_assert(s->n == 26 && s->stored && !s->thinned && s->n_processes == 2);
	ck_assert(s->step[0].warm && !s->step[1].warm && s->step[13].warm);
	ck_assert_str_eq(s->value_name[0], "samples (inc)");
	ck_assert(s->value[0][12] == 32 && s->value[0][13] == 16);
	throughput_rates(s, UINT32_MAX, &by_steps);
	ck_assert_double_eq_tol(by_steps.a_s[RATE_SAMPLES], 48000, 1e-6);
	ck_assert(by_steps.steps == 26 && by_steps.warm == 2);
	steps_free(s);
	ck_assert_int_eq(steps_stored(db, 7, &some, &s, &e), 0);
	ck_assert(s->n == 4 && s->step[0].number == 3 && s->step[1].number == 4);
	steps_free(s);
	sqlite3_close(db);
}
END_TEST

START_TEST(mfu_is_of_the_gpus_that_worked)
{
	struct profile_device gpu[2] = {{.type = "CUDA",
						.id = "0",
						.arch = 90,
						.arch_text = "90",
						.num_sms = 132,
						.clock_khz = 1980000,
						.busy_ns = 1},
		{.type = "CUDA",
			.id = "1",
			.arch = 90,
			.arch_text = "90",
			.num_sms = 132,
			.clock_khz = 1980000,
			.busy_ns = 1}};
	struct profile p = {.n_devices = 2, .device = gpu, .head.n_processes = 2};
	struct step_rates r = {.steps = 20, .a_s[RATE_STEPS] = 10, .told[RATE_STEPS] = 2};
	struct throughput t;
	struct err e = {0};
	double peak;

	ck_assert_int_eq(peak_flops(&gpu[0], 16, &peak, &e), 0);
	throughput_of(&p, &r, &t);
	ck_assert(t.iterations == 10 && isnan(t.samples) && isnan(t.mfu) && t.why.code == 0);
	r.a_s[RATE_FLOPS16] = peak;
	r.told[RATE_FLOPS16] = 2;
	throughput_of(&p, &r, &t);
	ck_assert_double_eq_tol(t.mfu, 0.5, 1e-9);
	r.told[RATE_STEPS] = 1; /* one process alone: its GPU */
	throughput_of(&p, &r, &t);
	ck_assert_double_eq_tol(t.mfu, 1, 1e-9);
	gpu[1].num_sms = 114; /* another card */
	throughput_of(&p, &r, &t);
	ck_assert(isnan(t.mfu) && t.why.code != 0 && t.flops == peak);
	gpu[1].num_sms = 132;
	r.told[RATE_FLOPS] = 1;
	throughput_of(&p, &r, &t);
	ck_assert(isnan(t.mfu) && strstr(t.why.text, "no width") != NULL);
}
END_TEST

/* Ten requests of 4 ms, one each ms: 10 in 13 ms. */
START_TEST(requests_go_on_at_once)
{
	static const struct step_names names = {.n = 0};
	struct step_point p[10];
	sqlite3 *db = help_db(":memory:");
	struct step_rates r, by_steps;
	struct steps *s;
	struct err e = {0};
	uint32_t i;

	memset(p, 0, sizeof(p));
	for (i = 0; i < 10; i++)
		p[i] = (struct step_point){.first = i + 1,
			.begin_ns = (i + 1) * 1000000ull,
			.end_ns = (i + 5) * 1000000ull,
			.took_ns = 4000000,
			.n = 1};
	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_session(db, 7, "server", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1)");
	put_row(db, 1, &names, p, 10);
	ck_assert_int_eq(step_rates_load(db, 7, NULL, &r, &e), 0);
	ck_assert_double_eq_tol(r.a_s[RATE_STEPS], 10 / 0.013, 1e-6);
	ck_assert_int_eq(steps_stored(db, 7, &(struct profile_select){0}, &s, &e), 0);
	throughput_rates(s, 0, &by_steps);
	ck_assert_double_eq_tol(by_steps.a_s[RATE_STEPS], 10 / 0.013, 1e-6);
	steps_free(s);
	sqlite3_close(db);
}
END_TEST

START_TEST(names_of_rates)
{
	ck_assert_int_eq(step_rate_of("samples"), RATE_SAMPLES);
	ck_assert_int_eq(step_rate_of("tokens (tokens)(inc)"), RATE_TOKENS);
	ck_assert_int_eq(step_rate_of("flops"), RATE_FLOPS);
	ck_assert_int_eq(step_rate_of("flops16 (inc)"), RATE_FLOPS16);
	ck_assert_int_eq(step_rate_of("samples_seen"), RATE_MAX);
	ck_assert_int_eq(step_rate_of("sample"), RATE_MAX);
	ck_assert_int_eq(step_rate_of(""), RATE_MAX);
}
END_TEST

START_TEST(damaged_steps_do_not_hide_a_session)
{
	sqlite3 *db = paced();
	struct profile *p;
	struct err e = {0};
	uint32_t i;

	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_uint_eq(p->head.rates.steps, 26);
	profile_free(p);
	help_exec(db, "UPDATE step SET bytes = x'0011'");
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_uint_eq(p->head.rates.steps, 0);
	for (i = 0; i < p->head.n_notes && strstr(p->head.notes[i], "steps are damaged") == NULL;
		i++)
		;
	ck_assert_uint_lt(i, p->head.n_notes);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

#define TESTS(X)                          \
	X(numbers_of_steps_are_series)    \
	X(rates_leave_the_warm_up_out)    \
	X(mfu_is_of_the_gpus_that_worked) \
	X(names_of_rates) X(requests_go_on_at_once) X(damaged_steps_do_not_hide_a_session)
HELP_SUITE("view_steps", TESTS)
