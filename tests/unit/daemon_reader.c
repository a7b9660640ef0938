/* SPDX-License-Identifier: MIT. daemon_reader.c: every rule of a ring file (docs/ring.md) broken
 * once, and the reader's answer. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon_fake.h"
#include "reader.h"

static struct reader_expect expect_all(void)
{
	static struct ring_header h;

	h = fake_header();
	return (struct reader_expect){.uid = (uint32_t)geteuid(),
		.pid_start = h.pid_start,
		.uuid = h.uuid,
		.store = fake_store,
		.boot_id = fake_boot};
}

/* --- V2-V4: one field wrong --- */

#define FIELD(f) offsetof(struct ring_header, f), sizeof(((struct ring_header *)0)->f)
static const struct header_case {
	const char *label;
	size_t offset, bytes;
	uint64_t value;
	int want;
} header_cases[] = {
	{"lawful", FIELD(pad0), 0, 0},
	{"no magic", FIELD(magic), 0, -EBADMSG},
	{"the control file's magic", FIELD(magic), RING_CTL_MAGIC, -EBADMSG},
	{"newer major ABI", FIELD(abi), RING_ABI + 0x10000, -EPROTO},
	{"newer minor ABI", FIELD(abi), RING_ABI + 1, 0},
	{"header too short", FIELD(header_bytes), sizeof(struct ring_header) - 8, -EBADMSG},
	{"header beyond its page", FIELD(header_bytes), RING_PAGE + 8, -EBADMSG},
	{"header grown", FIELD(header_bytes), sizeof(struct ring_header) + 64, 0},
	{"clock 0", FIELD(clock), 0, -EBADMSG},
	{"clock 3", FIELD(clock), 3, -EBADMSG},
	{"no lanes", FIELD(n_lanes), 0, -EBADMSG},
	{"lanes beyond", FIELD(n_lanes), RING_LANES_MAX + 1, -EBADMSG},
	{"one lane more than the file", FIELD(n_lanes), FAKE_LANES + 1, -EBADMSG},
	{"lane not a power of two", FIELD(lane_bytes), FAKE_BYTES + 4096, -EBADMSG},
	{"lane too small", FIELD(lane_bytes), FAKE_BYTES / 2, -EBADMSG},
	{"lane too large", FIELD(lane_bytes), RING_LANE_BYTES_MAX * 2ull, -EBADMSG},
	{"paths too few", FIELD(path_cap), PATH_OTHER_RESERVE, -EBADMSG},
	{"paths beyond", FIELD(path_cap), RING_PATHS_MAX + 1, -EBADMSG},
	{"names too few", FIELD(name_cap), 1, -EBADMSG},
	{"names beyond", FIELD(name_cap), RING_NAMES_MAX + 1, -EBADMSG},
	{"text too small", FIELD(name_bytes_cap), NAME_BYTES_MAX - 1, -EBADMSG},
	{"text beyond", FIELD(name_bytes_cap), RING_NAME_BYTES_MAX + 1ull, -EBADMSG},
	{"no configs", FIELD(config_cap), 0, -EBADMSG},
	{"configs beyond", FIELD(config_cap), RING_CONFIGS_MAX + 1, -EBADMSG},
	{"no devices", FIELD(device_cap), 0, -EBADMSG},
	{"devices beyond", FIELD(device_cap), RING_DEVICES_MAX + 1, -EBADMSG},
	{"file size too small", FIELD(file_bytes), 4096, -EBADMSG},
	{"file size huge", FIELD(file_bytes), UINT64_MAX, -EBADMSG},
	{"another uid", FIELD(uid), 0x7fffffff, -EBADMSG},
	{"another process", FIELD(pid_start), 1, -ESTALE},
	{"another ring's uuid", FIELD(uuid), 77, -EBADMSG},
	{"another store", FIELD(store), 77, -EXDEV},
	{"another boot", FIELD(boot_id), 77, -ESTALE},
	{"the pid is only a hint", FIELD(pid), 1, 0},
};

START_TEST(test_header)
{
	const struct header_case *c = &header_cases[_i];
	const struct reader_expect x = expect_all();
	struct ring_header h = fake_header();
	const uint64_t file_bytes = h.file_bytes;
	struct ring_layout l;
	struct err e = {0};

	memcpy((uint8_t *)&h + c->offset, &c->value, c->bytes < 8 ? c->bytes : 8);
	ck_assert_msg(reader_check(&h, file_bytes, &x, &l, &e) == c->want, "%s: %d %s", c->label,
		e.code, e.text);
	ck_assert_msg((e.text[0] != '\0') == (c->want != 0), "%s: words", c->label);
}
END_TEST

START_TEST(test_header_zero_uuid)
{
	struct reader_expect x = expect_all();
	struct ring_header h = fake_header();
	struct ring_layout l;
	struct err e = {0};

	memset(h.uuid, 0, sizeof(h.uuid));
	x.uuid = NULL;
	ck_assert_int_eq(reader_check(&h, h.file_bytes, &x, &l, &e), -EBADMSG);
}
END_TEST

/* --- V1, V2: the file --- */

static int open_fd(int fd, const struct reader_expect *x)
{
	struct reader r = {0};
	struct err e = {0};
	int n = reader_open(fd, x, &r, &e);

	ck_assert_int_eq(n, e.code);
	if (n == 0)
		reader_close(&r);
	return n;
}

START_TEST(test_file)
{
	struct reader_expect x = expect_all();
	struct fake f = fake_new();
	int p[2];

	ck_assert_int_eq(open_fd(dup(f.fd), &x), 0);
	x.uid++;
	ck_assert_int_eq(open_fd(f.fd, &x), -EACCES);
	x.uid--;
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(open_fd(p[0], &x), -EBADMSG); /* no regular file */
	ck_assert_int_eq(open_fd(p[1], &x), -EBADF);   /* cannot be read */
	ck_assert_int_eq(open_fd(open("/proc/self/status", O_RDONLY), &x), -EMEDIUMTYPE);
	ck_assert_int_eq(open_fd(open("/proc/self", O_PATH), &x), -EBADF);
	ck_assert_int_eq(ftruncate(f.fd, (off_t)f.l.file_bytes - 4096), 0);
	ck_assert_int_eq(open_fd(f.fd, &x), -EBADMSG); /* short */
	ck_assert_int_eq(ftruncate(f.fd, 100), 0);
	ck_assert_int_eq(open_fd(f.fd, &x), -EBADMSG); /* no header even */
	ck_assert_int_eq(ftruncate(f.fd, 4ll << 30), 0);
	ck_assert_int_eq(open_fd(f.fd, &x), -EBADMSG); /* beyond the ceiling */
	fake_free(&f);
}
END_TEST

/* V14: the job truncates while we read. */
START_TEST(test_truncated_later)
{
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct reader r;
	struct ring_counts counts;
	uint8_t buf[64];
	bool moved;

	fake_scope(&f, 0, 1, 1, 2);
	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	ck_assert_int_eq(reader_lanes(&r, false, &moved), 0);
	ck_assert_int_eq(ftruncate(f.fd, 4096), 0);
	ck_assert_int_eq(reader_lanes(&r, false, &moved), -EIO);
	ck_assert_int_eq(reader_copy(&r, 0, 0, 24, buf), -EIO);
	ck_assert_int_eq(reader_counts(&r, &counts), -EIO);
	reader_close(&r);
	fake_free(&f);
}
END_TEST

/* --- V6: tails --- */

START_TEST(test_tails)
{
	static const struct {
		uint64_t head, seen, tail;
		bool good;
	} cases[] = {
		{0, 0, 0, true},
		{0, 0, 24, true},
		{0, 0, FAKE_BYTES, true},
		{0, 0, FAKE_BYTES + 8, false}, /* more than the lane holds */
		{0, 0, 20, false},             /* not a multiple of 8 */
		{48, 72, 72, true},
		{48, 72, 64, false}, /* backwards */
		{48, 48, 24, false}, /* behind head */
		{0, 0, UINT64_MAX - 7, false},
		{UINT64_MAX - 7, UINT64_MAX - 7, 8, false},
	};
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct reader r;
	bool moved;
	size_t i;

	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.lane[3].head = cases[i].head;
		r.lane[3].tail = cases[i].seen;
		r.lane[3].bad = 0;
		fake_lane(&f, 3)->tail = cases[i].tail;
		ck_assert_int_eq(reader_lanes(&r, false, &moved), 0);
		ck_assert_msg((r.lane[3].bad == 0) == cases[i].good, "case %zu", i);
		ck_assert_msg(r.lane[3].tail == (cases[i].good ? cases[i].tail : cases[i].seen),
			"case %zu", i);
		ck_assert_msg(
			moved == (cases[i].good && cases[i].tail != cases[i].seen), "case %zu", i);
	}
	/* Read again, and lawful: nothing is held against it. */
	r.lane[3].head = 0;
	r.lane[3].bad = READER_BAD_TAIL;
	r.lane[3].tail = 0;
	fake_lane(&f, 3)->tail = 24;
	ck_assert_int_eq(reader_lanes(&r, false, &moved), 0);
	ck_assert_int_eq(r.lane[3].bad, 0);
	reader_close(&r);
	fake_free(&f);
}
END_TEST

/* Lanes are found whatever their order, at the latest by the sweep over all. */
START_TEST(test_lanes_found)
{
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct reader r;
	bool moved;

	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	fake_scope(&f, 2, 1, 1, 2);
	ck_assert_int_eq(reader_lanes(&r, false, &moved), 0);
	ck_assert_uint_eq(r.n_seen, 3);
	fake_scope(&f, FAKE_LANES - 1, 1, 1, 2);
	ck_assert_int_eq(reader_lanes(&r, true, &moved), 0);
	ck_assert_uint_eq(r.n_seen, FAKE_LANES);
	ck_assert(moved);
	reader_close(&r);
	fake_free(&f);
}
END_TEST

/* --- V8-V10: records --- */

#define W(bytes, type, lap) REC_HDR(bytes, type, lap, 0, 5)
static const struct walk_case {
	const char *label;
	uint64_t from;
	uint64_t h[3]; /* first words of records of 24 bytes, one behind the other */
	uint32_t bytes;
	uint32_t reached, mark_end;
	bool broken;
} walk_cases[] = {
	{"three scopes", 0, {W(24, 1, 0), W(24, 1, 0), W(24, 1, 0)}, 72, 72, 0, false},
	{"in a later lap", 5 * FAKE_BYTES + 48, {W(24, 1, 5), W(24, 1, 5), W(24, 1, 5)}, 72, 72, 0,
		false},
	{"lap 261 is lap 5", 261ull * FAKE_BYTES, {W(24, 1, 5), W(24, 1, 5), W(24, 1, 5)}, 72, 72,
		0, false},
	{"cut inside a record", 0, {W(24, 1, 0), W(24, 1, 0), W(24, 1, 0)}, 64, 48, 0, false},
	{"stale lap", FAKE_BYTES, {W(24, 1, 1), W(24, 1, 0), W(24, 1, 1)}, 72, 24, 0, true},
	{"length 0", 0, {W(24, 1, 0), W(0, 1, 0), W(24, 1, 0)}, 72, 24, 0, true},
	{"shorter than its type", 0, {W(24, 1, 0), W(24, REC_LAUNCH, 0), W(24, 1, 0)}, 72, 24, 0,
		true},
	{"longer than its type", 0, {W(48, 1, 0), 0, W(24, 1, 0)}, 72, 72, 0, false},
	{"unknown type", 0, {W(24, 200, 0), W(24, 99, 0), W(24, 1, 0)}, 72, 72, 0, false},
	{"unknown type of 8 bytes", 0, {W(24, 1, 0), W(24, 1, 0), W(8, 99, 0)}, 56, 56, 0, false},
	{"over the lap's end", FAKE_BYTES - 24, {W(24, 1, 0), W(24, 1, 1), W(24, 1, 1)}, 72, 72, 0,
		false},
	{"across the lap's end", FAKE_BYTES - 16, {W(24, 1, 0), 0, 0}, 72, 0, 0, true},
	{"a pad to the lap's end", FAKE_BYTES - 24,
		{REC_HDR(0, REC_PAD, 0, 0, 24), W(24, 1, 1), W(24, 1, 1)}, 72, 72, 0, false},
	{"a pad that is too short", FAKE_BYTES - 48,
		{REC_HDR(0, REC_PAD, 0, 0, 24), W(24, 1, 0), W(24, 1, 1)}, 72, 0, 0, true},
	{"a pad beyond the lap's end", FAKE_BYTES - 24,
		{REC_HDR(0, REC_PAD, 0, 0, 48), W(24, 1, 1), W(24, 1, 1)}, 72, 0, 0, true},
	{"a pad with a length", FAKE_BYTES - 24,
		{REC_HDR(24, REC_PAD, 0, 0, 24), W(24, 1, 1), W(24, 1, 1)}, 72, 0, 0, true},
	{"zeroes", 0, {W(24, 1, 0), 0, 0}, 72, 24, 0, true},
	{"a session", 0, {W(24, 1, 0), W(48, REC_SESSION, 0), 0}, 72, 24, 0, true},
};

START_TEST(test_walk)
{
	const struct walk_case *c = &walk_cases[_i];
	uint8_t b[72] = {0};
	struct reader_walk w;
	int i;

	for (i = 0; i < 3; i++)
		memcpy(b + 24 * i, &c->h[i], 8);
	w = reader_walk(b, c->bytes, c->from, FAKE_BYTES, c->bytes);
	ck_assert_msg(w.reached == c->reached && w.broken == c->broken && w.whole == c->reached &&
			      w.mark_end == c->mark_end,
		"%s: reached %u whole %u session %u broken %d", c->label, w.reached, w.whole,
		w.mark_end, w.broken);
}
END_TEST

START_TEST(test_walk_session)
{
	struct fake f = fake_new();
	struct reader_walk w;

	fake_scope(&f, 0, 1, 1, 2);
	fake_session(&f, 0, SESSION_START, 0, 1, 3);
	fake_scope(&f, 0, 1, 4, 5);
	w = reader_walk(fake_at(&f, 0, 0), 112, 0, FAKE_BYTES, 24);
	ck_assert_uint_eq(w.whole, 24);
	ck_assert_uint_eq(w.mark_end, 88);
	ck_assert_uint_eq(w.reached, 112);
	fake_free(&f);
}
END_TEST

/* --- V11: tables --- */

START_TEST(test_tables)
{
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct ring_name *names = (struct ring_name *)(void *)(f.mem + f.l.names);
	struct reader r;
	struct reader_extent extent;
	static uint8_t out[READER_TABLE_BYTES];
	struct j_table t;
	uint32_t bytes, n;

	fake_tables(&f);
	(void)fake_name(&f, "abcde");
	names[3] = (struct ring_name){f.h.name_bytes_cap - 4, 5, 0}; /* beyond the text */
	names[4] = (struct ring_name){0, NAME_BYTES_MAX + 1, 0};     /* too long */
	names[5] = (struct ring_name){UINT32_MAX, UINT32_MAX, 0};
	fake_counts(&f)->names = 6;
	fake_counts(&f)->paths = UINT32_MAX; /* more than there are */
	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	ck_assert_int_eq(reader_extent(&r, &extent), 0);
	ck_assert_uint_eq(extent.paths, f.h.path_cap);
	ck_assert_int_eq(reader_table(&r, TABLE_NAMES, &extent, out, sizeof(out), &bytes), 0);
	memcpy(&t, out, sizeof(t));
	ck_assert_uint_eq(t.which, TABLE_NAMES);
	ck_assert_uint_eq(t.n, 6);
	ck_assert_uint_eq(bytes, sizeof(t) + t.text_bytes);
	memcpy(&n, out + sizeof(t) + 4 + 4 + 8, 4); /* behind "" and "(other)" */
	ck_assert_uint_eq(n, 5);
	ck_assert_mem_eq(out + sizeof(t) + 20, "abcde", 5);
	ck_assert_uint_eq(r.bad_names, 3);
	ck_assert(!reader_has_new(&r, TABLE_NAMES, &extent));
	ck_assert_int_eq(
		reader_table(&r, TABLE_NAMES, &extent, out, sizeof(out), &bytes), -ENODATA);
	for (n = 0; reader_has_new(&r, TABLE_PATHS, &extent); n += t.n) {
		ck_assert_int_eq(reader_table(&r, TABLE_PATHS, &extent, out, 65536, &bytes), 0);
		memcpy(&t, out, sizeof(t));
		ck_assert_uint_eq(t.first, n);
		ck_assert_uint_le(bytes, 65536);
	}
	ck_assert_uint_eq(n, f.h.path_cap);
	reader_close(&r);
	fake_free(&f);
}
END_TEST

START_TEST(test_info)
{
	static const char info[] = "command=./train\0cwd=/tmp\0";
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct reader r;
	char out[RING_INFO_BYTES];
	uint32_t bytes;

	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	ck_assert_int_eq(reader_info(&r, out, &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	memcpy(f.mem + f.l.info, info, sizeof(info));
	ck_assert_int_eq(reader_info(&r, out, &bytes), 0);
	ck_assert_uint_eq(bytes, sizeof(info) - 1);
	memset(f.mem + f.l.info, 'x', RING_INFO_BYTES); /* no terminator */
	ck_assert_int_eq(reader_info(&r, out, &bytes), 0);
	ck_assert_uint_eq(bytes, RING_INFO_BYTES);
	ck_assert_int_eq(out[RING_INFO_BYTES - 1], '\0');
	reader_close(&r);
	fake_free(&f);
}
END_TEST

/* --- the now block --- */

START_TEST(test_now)
{
	const struct reader_expect x = expect_all();
	struct fake f = fake_new();
	struct ring_now *now = &fake_lane(&f, 1)->now;
	struct reader r;
	struct j_now out[100];
	uint32_t i;

	for (i = 0; i < 70; i++) {
		now->frame[i % NOW_FRAMES].path = 10 + i;
		now->frame[i % NOW_FRAMES].begin = 1000 + i;
	}
	now->depth = 70;
	ck_assert_int_eq(reader_open(dup(f.fd), &x, &r, NULL), 0);
	ck_assert_uint_eq(reader_now(&r, 1, out, 100), NOW_FRAMES);
	ck_assert_uint_eq(out[0].depth, 6);
	ck_assert_uint_eq(out[0].path, 16);
	ck_assert_uint_eq(out[63].path, 79);
	ck_assert_uint_eq(out[63].begin, 1069);
	now->depth = UINT32_MAX; /* V15: no loop bound */
	ck_assert_uint_eq(reader_now(&r, 1, out, 100), NOW_FRAMES);
	now->depth = 2;
	now->seq = 1; /* it died while it wrote: what is there */
	ck_assert_uint_eq(reader_now(&r, 1, out, 1), 1);
	reader_close(&r);
	fake_free(&f);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_reader");
	TCase *t = tcase_create("reader");

	suite_add_tcase(s, t);
	tcase_add_loop_test(
		t, test_header, 0, (int)(sizeof(header_cases) / sizeof(header_cases[0])));
	tcase_add_test(t, test_header_zero_uuid);
	tcase_add_test(t, test_file);
	tcase_add_test(t, test_truncated_later);
	tcase_add_test(t, test_tails);
	tcase_add_test(t, test_lanes_found);
	tcase_add_loop_test(t, test_walk, 0, (int)(sizeof(walk_cases) / sizeof(walk_cases[0])));
	tcase_add_test(t, test_walk_session);
	tcase_add_test(t, test_tables);
	tcase_add_test(t, test_info);
	tcase_add_test(t, test_now);
	return s;
}
