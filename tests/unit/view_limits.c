/* SPDX-License-Identifier: MIT. view_limits.c: the rules' limits out of protond.conf and of --set, with a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quick.h"
#include "rule_limits.h"

static char folder[] = "/tmp/view_limits.XXXXXX", path[64];

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/protond.conf", folder);
	ck_assert_int_eq(setenv("XDG_CONFIG_HOME", folder, 1), 0);
}

static void teardown(void)
{
	(void)unlink(path);
	(void)rmdir(folder);
	(void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static void say(const char *words)
{
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(words, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* The limits of --set @FILE, from the table's. */
static int set(struct rule_settings *s, struct err *e)
{
	char words[80];

	rule_defaults(s);
	(void)snprintf(words, sizeof(words), "@%s", path);
	return rule_limits_set(s, words, e);
}

/* Also of a machine that has /etc/protond.conf: only what the user's says of these keys counts. */
START_TEST(a_users_file)
{
	struct rule_settings s;
	struct err e;

	say("# the daemon's and a job's lines are not ours\n"
	    "max_mb = nonsense\n\n"
	    "  bottlenecks.jitter.threshold=33\n"
	    "bottlenecks.severity.high = 40\n"
	    "bottlenecks.severity.medium = 7");
	ck_assert_int_eq(rule_limits_usual(&s, &e), 0);
	ck_assert(s.threshold[RULE_jitter] == 33 && s.high == 40 && s.medium == 7);
}
END_TEST

START_TEST(no_file)
{
	struct rule_settings s, table;
	struct err e;

	if (access("/etc/protond.conf", F_OK) == 0)
		return;
	rule_defaults(&table);
	ck_assert_int_eq(rule_limits_usual(&s, &e), 0);
	ck_assert_mem_eq(&s, &table, sizeof(s));
	ck_assert_int_eq(set(&s, &e), -ENOENT); /* one that is asked for must be there */
	ck_assert_ptr_nonnull(strstr(e.text, path));
}
END_TEST

START_TEST(a_file_of_the_command_line)
{
	struct rule_settings s;
	struct err e;

	say("jitter.threshold = 12\nbottlenecks.data_loader.threshold=2\n# done\n");
	ck_assert_int_eq(set(&s, &e), 0);
	ck_assert(s.threshold[RULE_jitter] == 12 && s.threshold[RULE_data_loader] == 2);
	ck_assert_int_eq(rule_limits_set(&s, "jitter.threshold=13,severity.high=50", &e), 0);
	ck_assert(s.threshold[RULE_jitter] == 13 && s.high == 50);
}
END_TEST

static const struct {
	const char *file, *words; /* words: of the error */
} wrong[] = {
	{"jitter.threshold = 1\nno such line\n", ":2: no '=' in 'no such line'"},
	{"jitter.threshold = 1, severity.high = 2\n", ":1: one limit a line"},
	{"\n\nbottlenecks.nothing.threshold = 1\n", ":3: --set: there is no 'nothing.threshold"},
	{"jitter.threshold = much\n", ":1: --set:"},
};

START_TEST(a_file_that_is_wrong)
{
	struct rule_settings s;
	struct err e;

	say(wrong[_i].file);
	ck_assert_int_eq(set(&s, &e), -EINVAL);
	ck_assert_msg(strstr(e.text, wrong[_i].words) != NULL, "%s", e.text);
}
END_TEST

START_TEST(a_line_without_an_end)
{
	struct rule_settings s;
	struct err e;
	FILE *f = fopen(path, "we");
	int i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < 9000; i++)
		ck_assert_int_eq(fputc('x', f), 'x');
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(set(&s, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "longer than 4096 bytes"));
}
END_TEST

/* Reading it would wait for a writer that never comes. */
START_TEST(no_file_but_a_pipe)
{
	struct rule_settings s;
	struct err e;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(set(&s, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.text, "not a regular file"));
	ck_assert_int_eq(rule_limits_usual(&s, &e), -EINVAL);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("limits");
	TCase *t = tcase_create("limits");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_users_file);
	tcase_add_test(t, no_file);
	tcase_add_test(t, a_file_of_the_command_line);
	tcase_add_loop_test(t, a_file_that_is_wrong, 0, sizeof(wrong) / sizeof(*wrong));
	tcase_add_test(t, a_line_without_an_end);
	tcase_add_test(t, no_file_but_a_pipe);
	suite_add_tcase(s, t);
	return s;
}
