/* SPDX-License-Identifier: MIT. alone_readings.c: what a helper says is checked; readings become rows, of a
 * bounded number; rows come back as they were, and no other bytes do. */
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "device_msg.h"
#include "reading.h"
#include "readings.h"

#include "quick.h"

Suite *suite(void);

static struct device_reading of(uint32_t gpu, uint64_t begin_ns, uint64_t end_ns)
{
	return (struct device_reading){.head = {DEVICE_MAGIC, DEVICE_READING},
		.gpu = gpu,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.name = "H"};
}

static void set(struct device_reading *r, enum device_quantity q, double v)
{
	r->value[q] = v;
	r->known |= 1ull << q;
}

enum { NOW = 100 };
static const struct lie {
	const char *what;
	size_t at;
	uint32_t value;
} lies[] = {{"nothing", offsetof(struct device_reading, pad0), 7},
	{"magic", offsetof(struct device_reading, head.magic), 0},
	{"kind", offsetof(struct device_reading, head.kind), DEVICE_TROUBLE},
	{"gpu", offsetof(struct device_reading, gpu), DEVICE_GPUS_MAX},
	{"the host has no power", offsetof(struct device_reading, gpu), DEVICE_HOST},
	{"processes", offsetof(struct device_reading, n_processes), DEVICE_PROCESSES + 1},
	{"time backwards", offsetof(struct device_reading, begin_ns), 20},
	{"time to come", offsetof(struct device_reading, end_ns), NOW + 1},
	{"unknown quantity", offsetof(struct device_reading, known) + 4, 1u << 31},
	{"not a number", offsetof(struct device_reading, value[DEVICE_power]) + 4, 0x7ff80000},
	{"negative", offsetof(struct device_reading, value[DEVICE_power]) + 4, 0xc0590000}};

START_TEST(lies_are_refused)
{
	struct device_reading r = of(0, 10, 20);

	set(&r, DEVICE_power, 100);
	memset(r.name, 'x', sizeof(r.name) - 1);
	memcpy((char *)&r + lies[_i].at, &lies[_i].value, 4);
	ck_assert_msg(device_reading_is_sane(&r, sizeof(r), NOW) == (_i == 0), "%s", lies[_i].what);
	ck_assert(!device_reading_is_sane(&r, sizeof(r) - 1, NOW));
	memset(r.name, 'x', sizeof(r.name));
	ck_assert(!device_reading_is_sane(&r, sizeof(r), NOW));
}
END_TEST

static uint32_t unpack(const struct row_reading *row, struct reading_point *ret)
{
	struct reading_gpu g;
	uint32_t n = 0;

	ck_assert_int_eq(reading_unpack(row->bytes, row->n, &g, ret, &n, NULL), 0);
	ck_assert_str_eq(g.name, "H");
	return n;
}

START_TEST(rows_come_back_and_nothing_else_does)
{
	struct readings all = {0};
	struct reading_point p[READINGS_MAX];
	struct device_reading r = of(3, 1000, 2000);
	struct batch b = {0};
	struct row_reading *row;
	struct reading_gpu g;
	uint32_t i, n;

	set(&r, DEVICE_power, 700.5);
	ck_assert(readings_take(&all, &r));
	r = of(3, 2000, 3000);
	set(&r, DEVICE_sm_clock, 1410);
	ck_assert(readings_take(&all, &r));
	ck_assert(readings_put(&all, &b, 9));
	ck_assert_uint_eq(b.reading.n, 1);
	row = &b.reading.row[0];
	ck_assert(row->session == 9 && row->gpu == 3 && row->number == 0);
	ck_assert(row->begin_ns == 1000 && row->end_ns == 3000);
	ck_assert_uint_eq(unpack(row, p), 2);
	ck_assert(p[0].known == 1ull << DEVICE_power && p[0].value[DEVICE_power] == 700.5f);
	ck_assert(p[1].known == 1ull << DEVICE_sm_clock && p[1].value[DEVICE_sm_clock] == 1410);
	ck_assert(p[1].begin_ns == 2000 && p[1].end_ns == 3000);
	for (i = 0; i < row->n;
		i++) /* no shorter one is read, and none that is another reads out of bounds */
		ck_assert_int_eq(reading_unpack(row->bytes, i, &g, p, &n, NULL), -EBADMSG);
	for (i = 0; i < row->n; i++) {
		((uint8_t *)row->bytes)[i] ^= 0x55;
		(void)reading_unpack(row->bytes, row->n, &g, p, &n, NULL);
		((uint8_t *)row->bytes)[i] ^= 0x55;
	}
	batch_free(&b);
	readings_fini(&all);
}
END_TEST

/* However long it is: halves of a session's readings are told by means, maxima and sums. */
START_TEST(a_long_session_has_few_rows_and_the_same_sums)
{
	enum { ALL = READINGS_MAX * READING_ROWS * 3 };
	struct readings all = {0};
	struct reading_point p[READINGS_MAX];
	uint32_t i, k, n, rows = 0;
	double held = 0, mean = 0;
	uint64_t length = 0;

	for (i = 0; i < ALL; i++) {
		struct device_reading r = of(0, 10 + i, 11 + i);
		struct batch b = {0};

		set(&r, DEVICE_held_by_power, 2);
		set(&r, DEVICE_power, i % 2 == 0 ? 100 : 300);
		set(&r, DEVICE_temperature, i % 2 == 0 ? 30 : 70);
		ck_assert(readings_take(&all, &r));
		if ((i + 1) % READINGS_MAX != 0)
			continue;
		ck_assert(readings_put(&all, &b, 1));
		n = unpack(&b.reading.row[0], p);
		ck_assert_uint_eq(b.reading.row[0].number, rows);
		readings_clean(&all);
		for (k = 0; all.of[0]->n == 0 && k < n; k++) {
			held += (double)p[k].value[DEVICE_held_by_power];
			length += p[k].end_ns - p[k].begin_ns;
			mean += (double)p[k].value[DEVICE_power] *
				(double)(p[k].end_ns - p[k].begin_ns);
			ck_assert(rows < READING_ROWS || p[k].value[DEVICE_temperature] == 70);
		}
		rows += all.of[0]->n == 0;
		batch_free(&b);
	}
	ck_assert_uint_eq(
		rows, 2 * READING_ROWS); /* a third of it at full width, the rest by twos */
	ck_assert(length == ALL && held == 2. * ALL && mean == 200. * ALL);
	readings_fini(&all);
}
END_TEST

START_TEST(what_is_stored_stays_after_a_restart)
{
	struct readings all = {0};
	struct device_reading r = of(DEVICE_HOST, 1000, 2000);
	struct batch b = {0};

	set(&r, DEVICE_net_rx, 5);
	ck_assert(readings_restore(&all, DEVICE_HOST, 4) && readings_restore(&all, DEVICE_HOST, 2));
	ck_assert(readings_put(&all, &b, 1) && b.reading.n == 0);
	ck_assert(readings_take(&all, &r) && readings_put(&all, &b, 1));
	ck_assert(b.reading.n == 1 && b.reading.row[0].number == 5);
	readings_clean(&all);
	r = of(DEVICE_HOST, 1500,
		2500); /* it overlaps: a helper that lies, or a clock that began anew */
	set(&r, DEVICE_net_rx, 5);
	ck_assert(readings_take(&all, &r) && all.of[0]->n == 1 && !all.of[0]->dirty);
	batch_free(&b);
	readings_fini(&all);
}
END_TEST

START_TEST(more_gpus_than_there_is_room_for_are_left_out)
{
	struct readings all = {0};
	uint32_t i;

	for (i = 0; i < DEVICE_GPUS_MAX; i++) {
		struct device_reading r = of(i, 1, 2);

		ck_assert(readings_take(&all, &r));
	}
	ck_assert_uint_eq(all.n, READING_OF);
	readings_fini(&all);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("readings");
	TCase *t = tcase_create("readings");

	tcase_add_loop_test(t, lies_are_refused, 0, (int)(sizeof(lies) / sizeof(*lies)));
	tcase_add_test(t, rows_come_back_and_nothing_else_does);
	tcase_add_test(t, a_long_session_has_few_rows_and_the_same_sums);
	tcase_add_test(t, what_is_stored_stays_after_a_restart);
	tcase_add_test(t, more_gpus_than_there_is_room_for_are_left_out);
	suite_add_tcase(s, t);
	return s;
}
