/* SPDX-License-Identifier: MIT. view_hatchet.c: .hatchet files, written and read. */
#include "view_help.h"

static char *write_text(const struct profile *p)
{
	char *s = NULL;
	size_t n = 0;

	ck_assert_int_eq(hatchet_write(p, &s, &n), 0);
	ck_assert_uint_eq(strlen(s), n);
	return s;
}

static struct profile *read_text(const char *s)
{
	struct profile *p = NULL;
	struct err e = {0};

	ck_assert_msg(hatchet_read(s, strlen(s), &p, &e) == 0, "%s", e.text);
	return p;
}

static const char three_lines[] =
	"\n[\n    {\n        \"children\": [\n            {\n                \"children\": [],\n"
	"                \"frame\": {\n                    \"name\": \"k \\\"1\\\"\",\n"
	"                    \"type\": \"function\"\n                },\n"
	"                \"metrics\": {\n                    \"count\": 2,\n"
	"                    \"device_id\": \"0\",\n                    \"device_type\": "
	"\"CUDA\",\n"
	"                    \"time (ns)\": 1664,\n                    \"vec\": [\n"
	"                        1.5,\n                        2.0\n                    ]\n"
	"                }\n            }\n        ],\n        \"frame\": {\n"
	"            \"name\": \"ROOT\",\n            \"type\": \"function\"\n        },\n"
	"        \"metrics\": {\n            \"count\": 0,\n            \"time (ns)\": 0\n        "
	"}\n    },\n"
	"    {\n        \"CUDA\": {\n            \"0\": {\n                \"arch\": \"90\",\n"
	"                \"bus_width\": 6144,\n                \"clock_rate\": 1980000,\n"
	"                \"memory_clock_rate\": 3201000,\n                \"num_sms\": 132\n"
	"            }\n        }\n    }\n]\n";

START_TEST(written_byte_for_byte)
{
	static const double vec[] = {1.5, 2};
	struct profile *p = profile_new();
	uint32_t time = profile_add_metric(p, "time (ns)", KIND_INCLUSIVE);
	uint32_t vector = profile_add_metric(p, "vec", KIND_INCLUSIVE);
	uint32_t count = profile_add_metric(p, "count", KIND_INCLUSIVE);
	uint32_t type = profile_add_metric(p, "device_type", KIND_PROPERTY);
	uint32_t id = profile_add_metric(p, "device_id", KIND_PROPERTY);
	uint32_t k = profile_add_node(p, 0, "k \"1\"", NODE_KERNEL);
	char *s;

	ck_assert_int_eq(profile_set(p, k, time, (struct value){.type = VALUE_U64, .u = 1664}), 0);
	ck_assert_int_eq(profile_set(p, k, count, (struct value){.type = VALUE_I64, .i = 2}), 0);
	ck_assert_int_eq(profile_set(p, k, id, (struct value){.type = VALUE_STR, .s = "0"}), 0);
	ck_assert_int_eq(
		profile_set(p, k, type, (struct value){.type = VALUE_STR, .s = "CUDA"}), 0);
	ck_assert_int_eq(
		profile_set(p, k, vector, (struct value){.type = VALUE_VECTOR, .n = 2, .v = vec}),
		0);
	p->device = calloc(1, sizeof(*p->device));
	p->device[0] = (struct profile_device){.type = "CUDA",
		.id = "0",
		.name = "",
		.arch_text = "90",
		.num_sms = 132,
		.clock_khz = 1980000,
		.memory_clock_khz = 3201000,
		.bus_width = 6144};
	p->n_devices = 1;
	s = write_text(p);
	ck_assert_str_eq(s, three_lines); /* no hint for the vector, none for the properties */
	free(s);
	profile_free(p);
}
END_TEST

START_TEST(read_back_is_the_same)
{
	struct profile *p = read_text(three_lines);
	char *s = write_text(p);

	ck_assert_str_eq(s, three_lines);
	ck_assert_uint_eq(p->metric[profile_find_metric(p, "time (ns)")].kind, KIND_INCLUSIVE);
	ck_assert_uint_eq(p->metric[profile_find_metric(p, "vec")].kind, KIND_EXCLUSIVE);
	ck_assert_uint_eq(p->metric[profile_find_metric(p, "device_id")].kind, KIND_PROPERTY);
	ck_assert_uint_eq(p->device[0].num_sms, 132);
	free(s);
	profile_free(p);
}
END_TEST

START_TEST(a_session_writes_proton_columns)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p, *q;
	struct err e;
	char *s;

	help_train(db);
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	s = write_text(p);
	q = read_text(s);
	ck_assert_uint_eq(q->n_nodes, p->n_nodes);
	ck_assert_int_eq(
		help_value(q, "ROOT", "flops8")->i, 0); /* the hint that makes parents sum */
	ck_assert_int_eq(help_value(q, "ROOT", "time (ns)")->i, 0);
	ck_assert_uint_eq(help_value(q, "ROOT", "cpu_time (ns)")->type, VALUE_NONE);
	ck_assert_uint_eq(help_value(q, "ROOT", "tag")->type, VALUE_NONE);
	ck_assert_int_eq(help_value(q, "sgemm", "time (ns)")->i, 3000);
	ck_assert_str_eq(help_value(q, "sgemm", "device_id")->s, "0");
	ck_assert_uint_eq(q->n_devices, 2);
	free(s);
	profile_free(q);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

#define TREE(metrics, children) \
	"[{\"frame\":{\"name\":\"ROOT\"},\"metrics\":" metrics ",\"children\":" children "},{}]"

START_TEST(odd_files_are_read)
{
	struct profile *p;

	p = read_text(TREE("{}", "[{\"frame\":{\"name\":\"a\"}},{\"frame\":{\"name\":\"a\"}}]"));
	ck_assert_uint_eq(
		p->n_nodes, 3); /* twins stay apart; metrics and children may be missing */
	profile_free(p);
	p = read_text(
		"[{\"frame\":{\"name\":\"R\"},\"metrics\":{\"a\":null,\"b\":18446744073709551615,"
		"\"c\":true,\"b\":7}}]");
	ck_assert_double_eq(help_value(p, "R", "b")->f, 7);
	ck_assert_uint_eq(help_value(p, "R", "c")->type, VALUE_NONE);
	ck_assert_uint_eq(profile_find_metric(p, "a"), PROFILE_NONE);
	profile_free(p);
	p = read_text("[{\"frame\":{\"name\":\"a\\u0000b\"},\"children\":[]},{\"HIP\":{\"0\":{"
		      "\"arch\":942}}}]");
	ck_assert_str_eq(p->node[0].name, "a\xe2\x90\x80"
					  "b");
	ck_assert_str_eq(p->device[0].arch_text, "942");
	profile_free(p);
}
END_TEST

START_TEST(bad_files_are_refused)
{
	static const char *const cases[] = {"", "{}", "[]", "[1]", "[{}]",
		"[{\"frame\":{\"name\":1}}]", "nonsense", TREE("[]", "[]"), TREE("{}", "{}"),
		TREE("{}", "[1]"), TREE("{}", "[{}]"), "[{\"frame\":{\"name\":\"a\"}", "\x92\x83",
		"[{\"frame\":{\"name\":\"\xff\"}}]"};
	struct profile *p = NULL;
	struct err e;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e.text[0] = '\0';
		ck_assert_int_eq(hatchet_read(cases[i], strlen(cases[i]), &p, &e), -EBADMSG);
		ck_assert_msg(strstr(e.text, "not a .hatchet profile") != NULL, "%s", e.text);
		ck_assert_ptr_null(p);
	}
}
END_TEST

/* depth generations below ROOT */
static char *deep(unsigned depth)
{
	static const char open[] = "{\"frame\":{\"name\":\"n\"},\"children\":[", close[] = "]}";
	char *s = malloc((size_t)(depth + 1) * (sizeof(open) + sizeof(close)) + 8), *at = s;
	unsigned i;

	*at++ = '[';
	for (i = 0; i <= depth; i++, at += sizeof(open) - 1)
		memcpy(at, open, sizeof(open));
	for (i = 0; i <= depth; i++, at += sizeof(close) - 1)
		memcpy(at, close, sizeof(close));
	*at++ = ']';
	*at = '\0';
	return s;
}

START_TEST(depth_is_bounded)
{
	struct profile *p = NULL;
	struct err e;
	char *s = deep(900), *t;

	p = read_text(s);
	ck_assert_uint_eq(p->n_nodes, 901);
	t = write_text(p);
	profile_free(p);
	p = read_text(t);
	ck_assert_uint_eq(p->n_nodes, 901);
	profile_free(p);
	free(s);
	free(t);
	s = deep(100000);
	ck_assert_int_eq(hatchet_read(s, strlen(s), &p, &e), -EBADMSG);
	free(s);
}
END_TEST

#define TESTS(X)                           \
	X(written_byte_for_byte)           \
	X(read_back_is_the_same)           \
	X(a_session_writes_proton_columns) \
	X(odd_files_are_read) X(bad_files_are_refused) X(depth_is_bounded)
HELP_MAIN("view_hatchet", TESTS)
