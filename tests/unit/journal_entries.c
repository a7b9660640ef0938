/* SPDX-License-Identifier: MIT. journal_entries.c: what the journal gives back, from every prefix
 * of a file, from damaged files, after failed writes. */
#include "quick.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "journal.h"

#define N_ENTRIES 9u

static char dir_path[64];
static int dir = -1;

static void setup(void)
{
	(void)snprintf(dir_path, sizeof(dir_path), "%s/protond-journal-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
}

static void empty_dir(void)
{
	DIR *d = opendir(dir_path);
	struct dirent *f;

	ck_assert_ptr_nonnull(d);
	while ((f = readdir(d)) != NULL)
		if (f->d_name[0] == 'j')
			ck_assert_int_eq(unlinkat(dir, f->d_name, 0), 0);
	(void)closedir(d);
}

static void teardown(void)
{
	empty_dir();
	(void)close(dir);
	(void)rmdir(dir_path);
}

static struct journal *reopen(void)
{
	struct journal *j = NULL;
	struct err e = {0};
	int r = journal_open(dir, &j, &e);

	ck_assert_msg(r == 0, "%s", e.text);
	return j;
}

/* Entry i: type and size say who it is, and every payload byte. */
static uint32_t payload_of(uint32_t i)
{
	return i * 37 % 200;
}

static int add(struct journal *j, uint32_t i, uint32_t payload)
{
	uint8_t ring[16];
	void *p;
	int r;

	memset(ring, (int)i, sizeof(ring));
	r = journal_stage(j, (uint16_t)(1 + i % 10), ring, payload, &p);
	if (r < 0)
		return r;
	memset(p, (int)(i + 1), payload);
	return journal_commit(j, payload) == NULL ? -EINVAL : 0;
}

struct seen {
	uint32_t n, stop_at;
	uint32_t ends[64]; /* file offset behind entry i, when it began at 0 */
	uint64_t bytes;
};

static int see(void *arg, const struct journal_entry *e)
{
	struct seen *s = arg;
	uint32_t i = s->n, k, wrong = 0;
	const uint8_t *p = (const uint8_t *)(e + 1);

	if (s->stop_at != 0 && i == s->stop_at)
		return -EPIPE; /* also a word of the reader: must not be taken for its own */
	ck_assert_uint_eq(e->type, 1 + i % 10);
	ck_assert_uint_eq(e->ring[15], (uint8_t)i);
	ck_assert_uint_eq(e->bytes, sizeof(*e) + (payload_of(i) + 7) / 8 * 8);
	for (k = 0; k < e->bytes - sizeof(*e); k++)
		wrong += p[k] != (k < payload_of(i) ? (uint8_t)(i + 1) : 0);
	ck_assert_uint_eq(wrong, 0);
	s->bytes += e->bytes;
	if (i < 64)
		s->ends[i] = (uint32_t)s->bytes;
	s->n++;
	return 0;
}

static struct seen replay_from(struct journal *j, uint64_t position, int want_gap)
{
	struct seen s = {0};
	int gap = 1;

	ck_assert_int_eq(journal_replay(j, position, see, &s, &gap), 0);
	ck_assert_int_eq(gap, want_gap);
	return s;
}

static struct seen make(void)
{
	struct journal *j = reopen();
	struct seen s;
	uint32_t i;

	for (i = 0; i < N_ENTRIES; i++) {
		ck_assert_int_eq(add(j, i, payload_of(i)), 0);
		if (i % 3 == 2)
			ck_assert_int_eq(journal_flush(j), 0);
	}
	s = replay_from(j, 0, 0);
	ck_assert_uint_eq(s.n, N_ENTRIES);
	ck_assert_uint_eq(journal_position(j), (1ull << 32) + s.bytes);
	ck_assert_uint_eq(journal_bytes_since(j, 0), s.bytes);
	ck_assert_uint_eq(journal_bytes_since(j, (1ull << 32) + s.ends[0]), s.bytes - s.ends[0]);
	journal_close(j);
	return s;
}

static uint32_t load(uint8_t *buf, uint32_t cap)
{
	int fd = openat(dir, "journal.1", O_RDONLY);
	ssize_t n = read(fd, buf, cap);

	ck_assert_int_gt(n, 0);
	(void)close(fd);
	return (uint32_t)n;
}

static void save(const uint8_t *buf, uint32_t n)
{
	int fd;

	empty_dir();
	fd = openat(dir, "journal.1", O_CREAT | O_EXCL | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, buf, n), n);
	(void)close(fd);
}

static uint32_t size_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir, name, &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	return (uint32_t)st.st_size;
}

START_TEST(crc_known)
{
	static const uint8_t zeros[32], digits[] = "123456789";
	uint8_t buf[300];
	uint32_t i, n, at;

	ck_assert_uint_eq(crc32c(0, digits, 9), 0xe3069283u);
	ck_assert_uint_eq(crc32c_table(0, digits, 9), 0xe3069283u);
	ck_assert_uint_eq(crc32c(0, zeros, 32), 0x8a9136aau);
	ck_assert_uint_eq(crc32c(crc32c(0, digits, 4), digits + 4, 5), 0xe3069283u);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 167 + (i >> 3));
	for (at = 0; crc32c_has_hw() && at < 9; at++)
		for (n = 0; n + at <= sizeof(buf); n++)
			ck_assert_uint_eq(crc32c_hw(n, buf + at, n), crc32c_table(n, buf + at, n));
}
END_TEST

START_TEST(round_trip)
{
	struct seen s = make();
	struct journal *j = reopen();
	uint32_t i;

	for (i = 0; i < N_ENTRIES; i++) { /* from behind every entry: only what comes later */
		struct seen t = {.n = i + 1};
		int gap = 1;

		ck_assert_int_eq(journal_replay(j, (1ull << 32) + s.ends[i], see, &t, &gap), 0);
		ck_assert_int_eq(gap, 0);
		ck_assert_uint_eq(t.n, N_ENTRIES);
	}
	ck_assert_uint_eq(journal_lost(j), 0);
	journal_close(j);
}
END_TEST

START_TEST(fn_stops_replay)
{
	struct seen s = {.stop_at = 4};
	struct journal *j;
	int gap = 7;

	(void)make();
	j = reopen();
	ck_assert_int_eq(journal_replay(j, 0, see, &s, &gap), -EPIPE);
	ck_assert_uint_eq(s.n, 4);
	ck_assert_int_eq(gap, 7);
	ck_assert_uint_eq(journal_lost(j), 0);
	journal_close(j);
}
END_TEST

/* Whatever a killed daemon left of its last write: the whole entries in it, and nothing else. */
START_TEST(every_prefix)
{
	static uint8_t file[8192];
	struct seen all = make(), s;
	uint32_t n, whole, size = load(file, sizeof(file));
	struct journal *j;

	ck_assert_uint_eq(size, all.bytes);
	for (n = 0; n <= size; n++) {
		for (whole = 0; whole < N_ENTRIES && all.ends[whole] <= n; whole++)
			;
		save(file, n);
		j = reopen();
		s = replay_from(j, 0, 0);
		ck_assert_uint_eq(s.n, whole);
		ck_assert_uint_eq(size_of("journal.1"), s.bytes);
		ck_assert_uint_eq(journal_lost(j), n - s.bytes);
		ck_assert_int_eq(add(j, whole, payload_of(whole)), 0);
		ck_assert_int_eq(journal_flush(j), 0);
		journal_close(j);
		j = reopen();
		ck_assert_uint_eq(replay_from(j, 0, 0).n, whole + 1);
		ck_assert_uint_eq(journal_lost(j), 0);
		journal_close(j);
	}
}
END_TEST

/* One damaged byte anywhere: entries before it, none from it on, and the loss is told; what is
 * appended afterwards is read. */
START_TEST(every_byte_damaged)
{
	static uint8_t file[8192];
	struct seen all = make();
	uint32_t at, whole, size = load(file, sizeof(file));
	struct journal *j;
	uint64_t lost;
	int gap;

	for (at = 0; at < size; at++) {
		struct seen s = {0};

		for (whole = 0; all.ends[whole] <= at; whole++)
			;
		file[at] ^= 0x41;
		save(file, size);
		file[at] ^= 0x41;
		j = reopen();
		ck_assert_int_eq(journal_replay(j, 0, see, &s, &gap), 0);
		ck_assert_uint_eq(s.n, whole);
		lost = journal_lost(j);
		ck_assert_uint_eq(lost, size - s.bytes);
		ck_assert_int_eq(add(j, whole, payload_of(whole)), 0);
		ck_assert_int_eq(journal_flush(j), 0);
		s = (struct seen){0};
		ck_assert_int_eq(journal_replay(j, 0, see, &s, &gap), 0);
		ck_assert_uint_eq(s.n, whole + 1);
		journal_close(j);
	}
}
END_TEST

START_TEST(shrink_and_limits)
{
	struct journal *j = reopen();
	const struct journal_entry *e;
	uint32_t i;
	void *p;
	int r;

	ck_assert_int_eq(journal_stage(j, 1, NULL, JOURNAL_ENTRY_MAX, &p), -EMSGSIZE);
	ck_assert_int_eq(journal_stage(j, 1, NULL, UINT32_MAX, &p), -EMSGSIZE);
	ck_assert_int_eq(journal_stage(j, 3, NULL, 100, &p), 0);
	e = journal_commit(j, 9);
	ck_assert_uint_eq(e->bytes, sizeof(*e) + 16);
	ck_assert_int_eq(journal_stage(j, 3, NULL, 100, &p), 0); /* given up: never written */
	ck_assert_int_eq(journal_flush(j), 0);
	ck_assert_uint_eq(size_of("journal.1"), sizeof(*e) + 16);
	for (i = 0, r = 0; r == 0 && i < 100; i++) { /* the stage has an end */
		r = journal_stage(j, 3, NULL, JOURNAL_ENTRY_MAX - (uint32_t)sizeof(*e), &p);
		if (r == 0)
			ck_assert_ptr_nonnull(journal_commit(j, 1 << 20));
	}
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert_uint_ge(i, 60);
	ck_assert_int_eq(journal_flush(j), 0);
	ck_assert_int_eq(journal_stage(j, 3, NULL, 1, &p), 0);
	ck_assert_uint_eq(journal_position(j) >> 32, 2);
	journal_close(j);
}
END_TEST

static int count(void *arg, const struct journal_entry *e)
{
	uint32_t *n = arg, payload;

	memcpy(&payload, e + 1, sizeof(payload));
	ck_assert_uint_eq(payload, *n);
	(*n)++;
	return 0;
}

static void append_numbered(struct journal *j, uint32_t from, uint32_t to, uint32_t bytes)
{
	void *p;

	for (; from < to; from++) {
		ck_assert_int_eq(journal_stage(j, J_LANE, NULL, bytes, &p), 0);
		memset(p, 0, bytes);
		memcpy(p, &from, sizeof(from));
		ck_assert_ptr_nonnull(journal_commit(j, bytes));
		ck_assert_int_eq(journal_flush(j), 0);
	}
}

START_TEST(segments_and_forget)
{
	struct journal *j = reopen();
	uint32_t n = 0, oldest;
	uint64_t middle, end;
	int gap = 1;

	append_numbered(j, 0, 30, 1u << 20);
	middle = journal_position(j);
	append_numbered(j, 30, 60, 1u << 20);
	end = journal_position(j);
	ck_assert_uint_eq(end >> 32, 4); /* 15 entries of 1 MiB and a bit fit 16 MiB */
	ck_assert_int_eq(journal_replay(j, 0, count, &n, &gap), 0);
	ck_assert_uint_eq(n, 60);
	ck_assert_int_eq(gap, 0);

	journal_forget(j, end, 1ull << 40, NULL, NULL); /* all is wanted */
	ck_assert_int_eq(faccessat(dir, "journal.1", F_OK, 0), 0);
	journal_forget(j, middle, 0, NULL, NULL);
	ck_assert_int_ne(faccessat(dir, "journal.1", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(dir, "journal.2", F_OK, 0), 0);
	journal_close(j);

	j = reopen();
	n = 30;
	ck_assert_int_eq(journal_replay(j, middle, count, &n, &gap), 0);
	ck_assert_uint_eq(n, 60);
	ck_assert_int_eq(gap, 0);
	n = 15;
	ck_assert_int_eq(journal_replay(j, 0, count, &n, &gap), 0); /* older than what there is */
	ck_assert_uint_eq(n, 60);
	ck_assert_int_eq(gap, -ESTALE);
	journal_forget(j, end, 20ull << 20, NULL, NULL); /* the youngest 20 MiB are two segments */
	oldest = faccessat(dir, "journal.2", F_OK, 0) == 0 ? 2 : 3;
	ck_assert_uint_eq(oldest, 3);
	ck_assert_uint_eq(journal_bytes_since(j, end), 0);
	journal_close(j);
}
END_TEST

static int tally(void *arg, const struct journal_entry *e)
{
	uint64_t *sum = arg;
	uint32_t number;

	memcpy(&number, e + 1, sizeof(number));
	*sum += 1ull << 32 | number;
	return 0;
}

/* Damage in one segment costs that segment's rest; a segment that is gone costs itself. */
START_TEST(damage_costs_one_segment)
{
	struct journal *j = reopen();
	uint64_t sum = 0;
	int gap = 0, fd;

	append_numbered(j, 0, 40, 1u << 20); /* 15 in each segment */
	fd = openat(dir, "journal.1", O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 10 * (off_t)((1u << 20) + 40) + 500), 0);
	(void)close(fd);
	ck_assert_int_eq(journal_replay(j, 0, tally, &sum, &gap), 0);
	ck_assert_int_eq(gap, -EBADMSG);
	ck_assert_uint_eq(sum >> 32, 10 + 15 + 10);
	ck_assert_uint_eq(journal_lost(j), 5 * ((1u << 20) + 40));

	ck_assert_int_eq(unlinkat(dir, "journal.2", 0), 0);
	sum = 0;
	journal_close(j);
	j = reopen();
	ck_assert_int_eq(journal_replay(j, 1ull << 32, tally, &sum, &gap), 0);
	ck_assert_int_eq(gap, -EBADMSG); /* the first reason */
	ck_assert_uint_eq(sum >> 32, 10 + 10);
	ck_assert_int_eq(journal_replay(j, 2ull << 32, tally, &sum, &gap), 0);
	ck_assert_int_eq(gap, -ESTALE);
	journal_close(j);
}
END_TEST

/* A reboot empties tmpfs, not the store: what is appended now lies behind the store's position. */
START_TEST(store_is_ahead)
{
	const uint64_t stored = 7ull << 32 | 4711;
	struct journal *j = reopen();
	uint32_t n = 0;
	int gap = 0;

	ck_assert_int_eq(journal_replay(j, stored, count, &n, &gap), 0);
	ck_assert_int_eq(gap, -ESTALE);
	append_numbered(j, 0, 3, 100);
	ck_assert_uint_gt(journal_position(j), stored);
	journal_close(j);
	j = reopen();
	ck_assert_int_eq(journal_replay(j, stored, count, &n, &gap), 0);
	ck_assert_uint_eq(n, 3);
	journal_close(j);
}
END_TEST

/* Flushes while no file may grow beyond `bytes`; Check's own files may, before and after. */
static int flush_within(struct journal *j, uint32_t bytes)
{
	struct rlimit old, small;
	int r;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = bytes;
	(void)setrlimit(RLIMIT_FSIZE, &small);
	r = journal_flush(j);
	(void)setrlimit(RLIMIT_FSIZE, &old);
	return r;
}

START_TEST(no_space)
{
	struct journal *j;
	uint32_t i, failed = 0;
	struct seen s;

	(void)signal(SIGXFSZ, SIG_IGN);
	j = reopen();
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(add(j, i, payload_of(i)), 0);
		failed += flush_within(j, 1001) < 0;
		ck_assert_uint_eq(size_of("journal.1"), (uint32_t)journal_position(j));
	}
	ck_assert_uint_gt(failed, 5);
	s = replay_from(j, 0, 0);
	ck_assert_uint_eq(s.n, 20 - failed);
	ck_assert_int_eq(journal_flush(j), 0);
	ck_assert_uint_eq(replay_from(j, 0, 0).n, 20);
	journal_close(j);
	j = reopen();
	ck_assert_uint_eq(replay_from(j, 0, 0).n, 20);
	ck_assert_uint_eq(journal_lost(j), 0);
	journal_close(j);
}
END_TEST

START_TEST(two_daemons)
{
	struct journal *j = reopen(), *second = NULL;
	struct err e = {0};

	append_numbered(j, 0, 1, 100);
	ck_assert_int_eq(journal_open(dir, &second, &e), -EBUSY);
	ck_assert_ptr_nonnull(strstr(e.text, "journal.1"));
	ck_assert_ptr_nonnull(strstr(e.text, "PROTOND_RUNTIME_DIR"));
	journal_close(j);
	j = reopen();
	journal_close(j);
}
END_TEST

START_TEST(foreign_names)
{
	static const char *const names[] = {"journal.", "journal.0", "journal.01", "journal.x",
		"journal.9x", "journal.4294967296", "journal.99999999999999999999"};
	struct journal *j;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fd = openat(dir, names[i], O_CREAT | O_WRONLY, 0600);
		ck_assert_int_ge(fd, 0);
		(void)close(fd);
	}
	j = reopen();
	ck_assert_uint_eq(journal_position(j), 1ull << 32);
	journal_close(j);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("journal_entries");
	TCase *c = tcase_create("journal");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, crc_known);
	tcase_add_test(c, round_trip);
	tcase_add_test(c, fn_stops_replay);
	tcase_add_test(c, every_prefix);
	tcase_add_test(c, every_byte_damaged);
	tcase_add_test(c, shrink_and_limits);
	tcase_add_test(c, segments_and_forget);
	tcase_add_test(c, damage_costs_one_segment);
	tcase_add_test(c, store_is_ahead);
	tcase_add_test(c, no_space);
	tcase_add_test(c, two_daemons);
	tcase_add_test(c, foreign_names);
	suite_add_tcase(s, c);
	return s;
}
