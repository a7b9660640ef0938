/* SPDX-License-Identifier: MIT. daemon_config.c: the configuration's sources, their order, and the
 * words for each mistake. */
#include "quick.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

static struct daemon_config c;
static char path[64];

static void setup(void)
{
	const int fd = mkstemp(strcpy(path, "/tmp/protond-config-XXXXXX"));

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	ck_assert_int_eq(setenv("XDG_CONFIG_HOME", "/nonexistent", 1), 0);
	(void)unsetenv("PROTOND_AUTO_SESSION");
	(void)unsetenv("PROTOND_COMMIT_MS");
	(void)unsetenv("PROTOND_RUNTIME_DIR");
	(void)unsetenv("PROTOND_DB");
}

static void teardown(void)
{
	(void)unlink(path);
	config_free(&c);
}

static void put(const char *text, size_t bytes)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, bytes, f), bytes);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(test_lines_for_jobs)
{
	static const char good[] =
		"job.torch_ops = 1\njob.sample_rate = 0.1\nbottlenecks.jitter.threshold = 5\n";
	static const char bad[] = "job.torch_opps = 1\n";
	struct err e;

	put(good, sizeof(good) - 1);
	ck_assert_int_eq(config_load(&c, path, true, &e), 0);
	config_free(&c);
	put(bad, sizeof(bad) - 1);
	ck_assert_int_eq(config_load(&c, path, true, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "job.torch_opps"));
}
END_TEST

START_TEST(test_defaults)
{
	struct err e = {0};

	ck_assert_int_eq(config_load(&c, NULL, true, &e), 0);
	ck_assert_uint_eq(c.commit_ms, 1000);
	ck_assert_uint_eq(c.journal_mb, 64);
	ck_assert_str_eq(c.auto_session, "scopes");
	ck_assert_str_eq(c.db, "");
}
END_TEST

START_TEST(test_order)
{
	static const char text[] =
		"# a comment\n\n  commit_ms = 250  \nauto_session=off\r\ndb = /a b/c.db";
	enum auto_mode mode;
	struct err e = {0};

	put(text, sizeof(text) - 1);
	ck_assert_int_eq(setenv("PROTOND_COMMIT_MS", "125", 1), 0);
	ck_assert_msg(config_load(&c, path, true, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(c.commit_ms, 125); /* the variable wins over the file */
	ck_assert_str_eq(c.db, "/a b/c.db");
	ck_assert_int_eq(config_auto(&c, &mode, &e), 0);
	ck_assert_int_eq(mode, AUTO_OFF);
}
END_TEST

START_TEST(test_a_variables_db_is_of_where_it_was_set)
{
	char want[PATH_MAX + 16];
	struct err e = {0};

	put("", 0);
	ck_assert_ptr_nonnull(getcwd(want, PATH_MAX));
	(void)strcat(want, "/a/foo.db");
	ck_assert_int_eq(setenv("PROTOND_DB", "a/foo.db", 1), 0);
	ck_assert_msg(config_load(&c, path, true, &e) == 0, "%s", e.text);
	ck_assert_str_eq(c.db, want);
}
END_TEST

static const struct bad_case {
	const char *text, *words; /* words: what the message must have */
} bad_cases[] = {
	{"commit_ms = 10\ncomit_ms = 10\n", ":2: unknown key 'comit_ms'"},
	{"nonsense\n", ":1: no '=' in 'nonsense'"},
	{"\n\ncommit_ms = soon\n", ":3: commit_ms = 'soon' is not a whole number"},
	{"commit_ms = -1\n", ":1: commit_ms"},
	{"commit_ms = 1 s\n", ":1: commit_ms"},
	{"commit_ms = 99999999999999999999\n", ":1: commit_ms"},
	{"commit_ms =\n", ":1: commit_ms"},
	{"commit_ms = 0\n", "at least 1"},
	{"lanes = 1025\n", "at most 1024"},
	{"lane_kb = 100\n", "a power of two from 64 to 16384"},
	{"lane_kb = 32\n", "a power of two from 64 to 16384"},
	{"lane_kb = 4294967360\n", "a power of two from 64 to 16384"},
	{"auto_session = yes\n", "not one of off, scopes, full"},
	{"db = foo.db\n", "db = 'foo.db' does not begin with /"},
	{"runtime_dir = run\n", "runtime_dir = 'run' does not begin with /"},
};

START_TEST(test_bad)
{
	const struct bad_case *b = &bad_cases[_i];
	struct err e = {0};

	put(b->text, strlen(b->text));
	ck_assert_int_eq(config_load(&c, path, true, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, b->words) != NULL, "%s", e.text);
}
END_TEST

START_TEST(test_bad_sources)
{
	static char nul[] = "db = a\0b\n", line[6000];
	struct err e = {0};

	put(nul, sizeof(nul) - 1);
	ck_assert_int_eq(config_load(&c, path, true, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "NUL"));
	memset(line, 'x', sizeof(line));
	put(line, sizeof(line));
	ck_assert_int_eq(config_load(&c, path, true, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "longer than"));
	ck_assert_int_eq(config_load(&c, "/nonexistent/protond.conf", true, &e), -ENOENT);
	ck_assert_int_eq(
		config_load(&c, "/dev/null", true, &e), -EINVAL); /* nor a FIFO, which would hang */
	put("", 0);
	ck_assert_int_eq(setenv("PROTOND_COMMIT_MS", "fast", 1), 0);
	ck_assert_int_eq(config_load(&c, path, true, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "PROTOND_COMMIT_MS"));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_config");
	TCase *t = tcase_create("config");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_defaults);
	tcase_add_test(t, test_order);
	tcase_add_test(t, test_a_variables_db_is_of_where_it_was_set);
	tcase_add_loop_test(t, test_bad, 0, (int)(sizeof(bad_cases) / sizeof(bad_cases[0])));
	tcase_add_test(t, test_bad_sources);
	tcase_add_test(t, test_lines_for_jobs);
	return s;
}
