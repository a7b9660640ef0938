/* SPDX-License-Identifier: MIT. view_words.c: protonctl's table, command lines, names and words. */
#include "quick.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec.h"
#include "human.h"
#include "json.h"
#include "paths.h"
#include "protonctl_file.h"
#include "protonctl_help.h"
#include "protonctl_options.h"
#include "protonctl_table.h"
#include "spark.h"

/* --- the table --- */

START_TEST(table_is_whole)
{
	const struct command *c = commands[_i];
	const struct option_def *o, *p;
	size_t n = 0, k;

	ck_assert(c->help == NULL ||
		  (c->examples[0] != '\0' && c->examples[strlen(c->examples) - 1] == '\n'));
	ck_assert_ptr_eq(command_find(commands, c->name), c); /* no name twice */
	ck_assert(c->alias == NULL || command_find(commands, c->alias) == c);
	for (o = c->options; o->name != NULL; o++, n++) {
		for (p = c->options; p != o; p++)
			ck_assert(
				strcmp(p->name, o->name) != 0 && (o->key == 0 || p->key != o->key));
		for (p = common_options; p->name != NULL; p++)
			ck_assert(
				strcmp(p->name, o->name) != 0 && (o->key == 0 || p->key != o->key));
	}
	for (k = 0; common_options[k].name != NULL; k++)
		n++;
	ck_assert_uint_le(n, CTL_OPTIONS_MAX);
}
END_TEST

static int parse(struct ctl *c, const char *name, char **argv)
{
	int argc = 0;

	*c = (struct ctl){.table = commands, .cmd = command_find(commands, name)};
	while (argv[argc] != NULL)
		argc++;
	return ctl_parse(c, argc, argv);
}

START_TEST(line_of_run)
{
	char *argv[] = {(char[]){"run"}, (char[]){"-n"}, (char[]){"x"}, (char[]){"--force"},
		(char[]){"ls"}, (char[]){"-l"}, (char[]){"--json"}, NULL};
	struct ctl c;

	ck_assert_int_eq(parse(&c, "run", argv), -1);
	ck_assert_str_eq(ctl_option(&c, "name"), "x");
	ck_assert_str_eq(ctl_option(&c, "force"), "");
	ck_assert_ptr_null(ctl_option(&c, "output"));
	ck_assert(!c.json); /* the program's, not ours */
	ck_assert_int_eq(c.argc, 3);
	ck_assert_str_eq(c.argv[0], "ls");
	ck_assert_str_eq(c.argv[2], "--json");
}
END_TEST

START_TEST(line_of_start)
{
	char *argv[] = {
		(char[]){"start"}, (char[]){"NAME"}, (char[]){"--json"}, (char[]){"--pid=7"}, NULL};
	struct ctl c;

	ck_assert_int_eq(parse(&c, "start", argv), -1); /* options may stand behind */
	ck_assert(c.json);
	ck_assert_str_eq(ctl_option(&c, "pid"), "7");
	ck_assert_int_eq(c.argc, 1);
	ck_assert_str_eq(c.argv[0], "NAME");
}
END_TEST

/* Words of a list may come one by one; of another option the last one holds. */
START_TEST(line_of_lists)
{
	char *argv[] = {(char[]){"start"}, (char[]){"x"}, (char[]){"-s"}, (char[]){"cpu"},
		(char[]){"-b"}, (char[]){"cupti"}, (char[]){"--switches=sync,queue"},
		(char[]){"-b"}, (char[]){"none"}, (char[]){"-sops"}, NULL};
	char *many[64] = {(char[]){"start"}, (char[]){"x"}},
	     *word = (char[]){"-scpu,cpu,cpu,cpu,cpu,cpu"};
	struct ctl c;
	size_t i;

	ck_assert_int_eq(parse(&c, "start", argv), CTL_GO);
	ck_assert_str_eq(ctl_option(&c, "switches"), "cpu,sync,queue,ops");
	ck_assert_str_eq(ctl_option(&c, "backend"), "none");
	for (i = 2; i < 63; i++)
		many[i] = word;
	ck_assert_int_eq(parse(&c, "start", many), CTL_USAGE);
}
END_TEST

/* clang-format off */
static const struct { const char *word[4]; int want; } bad_lines[] = {
	{{"start"}, CTL_USAGE}, {{"start", "a", "b"}, CTL_USAGE}, {{"stop", "--nope"}, CTL_USAGE},
	{{"start", "a", "--pid"}, CTL_USAGE}, {{"sessions", "x"}, CTL_USAGE}, {{"stop", "-z"}, CTL_USAGE},
	{{"run"}, CTL_RUN_FAILED}, {{"run", "--nope", "ls"}, CTL_RUN_FAILED},
};
/* clang-format on */

START_TEST(bad_line_is_usage)
{
	char *argv[5] = {NULL}, word[4][16];
	struct ctl c;
	int i;

	for (i = 0; i < 4 && bad_lines[_i].word[i] != NULL; i++) {
		(void)snprintf(word[i], sizeof(word[i]), "%s", bad_lines[_i].word[i]);
		argv[i] = word[i];
	}
	ck_assert_int_eq(parse(&c, bad_lines[_i].word[0], argv), bad_lines[_i].want);
}
END_TEST

START_TEST(bad_option_is_guessed)
{
	char *near[] = {(char[]){"start"}, (char[]){"--macth"}, NULL},
	     *far[] = {(char[]){"start"}, (char[]){"--else"}, NULL};
	struct ctl c;

	ck_assert_int_eq(parse(&c, "start", near), CTL_USAGE);
	ck_assert_str_eq(c.err.text, "unknown option --macth; did you mean --match?");
	ck_assert_int_eq(parse(&c, "start", far), CTL_USAGE);
	ck_assert_str_eq(c.err.text, "unknown option --else");
}
END_TEST

/* --- names --- */

/* clang-format off */
static const struct { const char *text, *want; int code; } names[] = {
	{"plain", "plain", 0}, {"p%p", "p42", 0}, {"%q{CTL_X}-%%", "value-%", 0}, {"%q{CTL_NONE}", "", 0},
	{"%", NULL, -EINVAL}, {"%z", NULL, -EINVAL}, {"%q{CTL_X", NULL, -EINVAL}, {"%qCTL_X", NULL, -EINVAL},
	{"0123456789012345678901234567890123456789", NULL, -ENAMETOOLONG},
	{"%q{CTL_LONG}", NULL, -ENAMETOOLONG},
};
/* clang-format on */

START_TEST(name_expands)
{
	char got[32], host[256];
	struct err e;
	int r;

	ck_assert_int_eq(setenv("CTL_X", "value", 1), 0);
	ck_assert_int_eq(setenv("CTL_LONG", "0123456789012345678901234567890123456789", 1), 0);
	(void)unsetenv("CTL_NONE");
	r = expand_name(names[_i].text, 42, got, sizeof(got), &e);
	ck_assert_int_eq(r, names[_i].code);
	if (r == 0)
		ck_assert_str_eq(got, names[_i].want);
	ck_assert_int_eq(expand_name("%h", 1, host, sizeof(host), &e), 0);
	ck_assert_str_ne(host, "");
}
END_TEST

/* --- other people's text --- */

/* clang-format off */
static const struct { const char *text; size_t n; const char *want; } texts[] = {
	{"plain", 0, "plain"}, {"\033[31mred", 0, "?[31mred"}, {"a\nb\tc\rd", 0, "a?b?c?d"}, {"\x7f", 0, "?"},
	{"gr\xc3\xbc\xc3\x9f", 0, "gr\xc3\xbc\xc3\x9f"}, {"\xc2\x9b" "31m", 0, "?31m"}, /* C1's CSI */
	{"\xff\xfe", 0, "??"}, {"\xc3", 0, "?"}, {"\xed\xa0\x80", 0, "???"}, {"\xc0\xaf", 0, "??"},
	{"0123456789", 8, "01234..."}, {"0123456", 8, "0123456"}, {"01234567", 8, "01234567"},
};
/* clang-format on */

START_TEST(text_is_tame)
{
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);

	text_put(f, texts[_i].text, texts[_i].n);
	(void)fclose(f);
	ck_assert_str_eq(got, texts[_i].want);
	free(got);
}
END_TEST

START_TEST(json_of_values)
{
	static const char want[] =
		"{\"s\":\"a\\\"b\\\\\\u001b\\ufffd\",\"u\":18446744073709551615,\"i\":-5,"
		"\"b\":\"00ff\",\"f\":0.5,\"nan\":null,\"t\":true,\"l\":[1,null]}";
	struct wire_buf b;
	struct wire_msg m;
	struct err e;
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);

	wire_buf_init(&b, 4096);
	wire_response(&b, 1);
	wire_map(&b);
	wire_kv_str(&b, "s", "a\"b\\\033\xff");
	wire_kv_u64(&b, "u", UINT64_MAX);
	wire_kv_i64(&b, "i", -5);
	wire_kv_bin(&b, "b", "\x00\xff", 2);
	wire_kv_f64(&b, "f", 0.5);
	wire_kv_f64(&b, "nan", __builtin_nan(""));
	wire_kv_bool(&b, "t", true);
	wire_str(&b, "l");
	wire_array(&b);
	wire_u64(&b, 1);
	wire_nil(&b);
	ck_assert_int_eq(wire_frame_end(&b), 0);
	ck_assert_int_eq(wire_parse(b.bytes + WIRE_HEADER, b.n - WIRE_HEADER, &m, &e), 0);
	json_value(f, m.result);
	(void)fclose(f);
	ck_assert_str_eq(got, want);
	free(got);
	wire_msg_free(&m);
	wire_buf_free(&b);
}
END_TEST

START_TEST(numbers_for_people)
{
	char text[32];
	uint64_t v = 7;

	text_duration(0.0000015, text);
	ck_assert_str_eq(text, "1.5 us");
	text_duration(61, text);
	ck_assert_str_eq(text, "61.00 s");
	text_duration(7199, text);
	ck_assert_str_eq(text, "119 min 59 s");
	text_bytes(1536, text);
	ck_assert_str_eq(text, "1.5 KiB");
	ck_assert(!text_u64("", 10, &v) && !text_u64("-1", 10, &v) && !text_u64("11", 10, &v) &&
		  !text_u64("5x", 10, &v) && !text_u64("99999999999999999999", UINT64_MAX, &v));
	ck_assert_uint_eq(v, 7);
	ck_assert(text_u64("10", 10, &v) && v == 10);
}
END_TEST

static void one_wrong(void *arg, const char *words)
{
	(void)snprintf(arg, 256, "%s", words);
}

START_TEST(wrong_variables)
{
	static const struct {
		const char *name, *value, *words; /* words NULL: it is right */
	} cases[] = {{"PROTOND_RUNTIME_DIR", "here", "an absolute path"},
		{"PROTOND_RUNTIME_DIR", "/here", NULL}, {"PROTOND_DISABLE", "off", "0 or 1"},
		{"PROTOND_TORCH_OPS", "off", NULL}, {"PROTOND_GPU", "On", "one of: none armed on"},
		{"PROTOND_GPU", "", NULL}, {"PROTOND_STALL_MS", "-1", "a whole number"},
		{"PROTOND_SAMPLE_RATE", "1e-1", NULL}, {"PROTOND_SAMPLE_RATE", "nan", "0 to 1"},
		{"PROTOND_SAMPLE_RATE", "1.5", "0 to 1"}, {"PROTOND_HOOK", "torch,,triton", NULL},
		{"PROTOND_HOOK", "torch;triton", "some of"}, {"PROTOND_RAW_DUMP", "x y", NULL}};
	char words[256];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		words[0] = '\0';
		(void)setenv(cases[i].name, cases[i].value, 1);
		job_options_check(one_wrong, words);
		ck_assert_msg(cases[i].words == NULL ? words[0] == '\0'
						     : strstr(words, cases[i].words) != NULL,
			"%s=%s: %s", cases[i].name, cases[i].value, words);
		(void)unsetenv(cases[i].name);
	}
}
END_TEST

/* clang-format off */
static const struct { const char *word[4], *want; } unknown[] = {
	{{"stauts"}, "did you mean 'status'?"}, {{"sesions"}, "'sessions'"}, {{"finalise"}, "'finalize'"},
	{{"rnu", "ls"}, "'run'"}, {{"exprot"}, "did you mean 'protonview export'?"},
	{{"something else entirely, and long"}, "long'. `protonctl help`"},
	{{"tree"}, "that is protonview's: `protonview tree`"},
	{{"export", "my run", "-o", "it's"}, "`protonview export 'my run' -o 'it'\\''s'`"},
	{{"flat", "\033[2J"}, "`protonview flat '?[2J'`"},
};
/* clang-format on */

START_TEST(did_you_mean)
{
	char *argv[6] = {(char[]){"protonctl"}}, *got, word[4][40];
	size_t n;
	int argc;
	FILE *f = open_memstream(&got, &n);

	for (argc = 1; argc < 5 && unknown[_i].word[argc - 1] != NULL; argc++) {
		(void)snprintf(word[argc - 1], sizeof(word[0]), "%s", unknown[_i].word[argc - 1]);
		argv[argc] = word[argc - 1];
	}
	help_unknown(f, argc, argv);
	(void)fclose(f);
	ck_assert_msg(strstr(got, unknown[_i].want) != NULL, "%s", got);
	free(got);
}
END_TEST

static int n_commands(void)
{
	int n = 0;

	while (commands[n] != NULL)
		n++;
	return n;
}

/* unit/main.c: a daemon that the user runs is none of the tests'. */
START_TEST(places_of_the_tests)
{
	char place[128];

	ck_assert_int_eq(paths_runtime(0, place, sizeof(place)), 0);
	ck_assert_str_eq(place, "/nonexistent/protond");
	ck_assert_int_eq(paths_runtime(1, place, sizeof(place)), -ENOENT);
	ck_assert_int_eq(paths_db(0, place, sizeof(place)), 0);
	ck_assert_str_eq(place, "/nonexistent/protond.db");
}
END_TEST

/* One that towers over the others is an arrow, and they are seen; many that differ are as they are. */
START_TEST(a_tall_bar)
{
	static const double tall[] = {1, 2, 1, 2, 1, 2, 900, 1, 2, 1},
			    all[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct text t = {0};

	spark(&t, tall, 10, 0, spark_top(tall, 10, 0, 900), false);
	spark(&t, tall, 10, 0, 900, true);
	spark(&t, all, 8, 1, spark_top(all, 8, 1, 8), false);
	text_char(&t, '\0');
	ck_assert_str_eq(t.s, ".-.-.-^.-."
			      "▁▁▁▁▁▁█▁▁▁"
			      "_.,-=+*#");
	text_fini(&t);
	ck_assert(spark_top(tall, 0, 0, 5) == 5 && spark_top((double[]){3, 3}, 2, 3, 3) == 3);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_words");
	TCase *t = tcase_create("all");

	tcase_add_loop_test(t, table_is_whole, 0, n_commands());
	tcase_add_test(t, line_of_run);
	tcase_add_test(t, line_of_start);
	tcase_add_test(t, line_of_lists);
	tcase_add_loop_test(
		t, bad_line_is_usage, 0, (int)(sizeof(bad_lines) / sizeof(bad_lines[0])));
	tcase_add_loop_test(t, name_expands, 0, (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_loop_test(t, text_is_tame, 0, (int)(sizeof(texts) / sizeof(texts[0])));
	tcase_add_test(t, json_of_values);
	tcase_add_test(t, a_tall_bar);
	tcase_add_test(t, numbers_for_people);
	tcase_add_test(t, wrong_variables);
	tcase_add_test(t, bad_option_is_guessed);
	tcase_add_loop_test(t, did_you_mean, 0, (int)(sizeof(unknown) / sizeof(unknown[0])));
	tcase_add_test(t, places_of_the_tests);
	suite_add_tcase(s, t);
	return s;
}
