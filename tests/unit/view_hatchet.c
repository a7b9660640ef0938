/* SPDX-License-Identifier: MIT. view_hatchet.c: .hatchet files, written and read. */
#include "export_format.h"
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

	ck_assert_msg(export_read(s, strlen(s), &p, &e) == 0, "%s", e.text);
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

/* Of a session whose files are Proton's: kernels with their scopes, and what the program measured. */
START_TEST(a_session_of_mode_proton)
{
	static const char *const ours[] = {
		"calls", "cpu_time (ns)", "copies", "copy_bytes", "copy_time (ns)", "untimed"};
	static const char *const theirs[] = {
		"time (ns)", "count", "device_id", "device_type", "flops8", "loss", "tag"};
	const struct profile_select file = {.lean = true, .file = true}, tree = {.lean = true};
	sqlite3 *db = help_db(":memory:");
	struct profile *p, *q;
	struct err e;
	char *s;
	size_t i;

	help_train(db);
	help_exec(db, _i == 0 ? "UPDATE session SET mode = 'proton'"
			      : "UPDATE session SET mode = 'proton-3.6'");
	ck_assert_int_eq(profile_load(db, 7, &file, &p, &e), 0);
	s = write_text(p);
	q = read_text(s);
	for (i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		ck_assert_uint_eq(profile_find_metric(q, ours[i]), PROFILE_NONE);
	for (i = 0; i < sizeof(theirs) / sizeof(*theirs); i++)
		ck_assert_uint_ne(profile_find_metric(q, theirs[i]), PROFILE_NONE);
	ck_assert_uint_eq(q->n_nodes, 5); /* ROOT, step, forward, sgemm, nccl: no copy */
	ck_assert_ptr_null(strstr(s, "memcpy"));
	ck_assert_int_eq(help_value(q, "ROOT", "time (ns)")->i, 0);
	ck_assert_int_eq(help_value(q, "ROOT", "flops8")->i, 0);
	free(s);
	profile_free(q);
	profile_free(p);
	ck_assert_int_eq(profile_load(db, 7, &tree, &p, &e), 0); /* what is shown is all there is */
	ck_assert_uint_ne(profile_find_metric(p, "calls"), PROFILE_NONE);
	ck_assert_uint_eq(p->n_nodes, 6);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* NaN is a text in the database, and no number in a file. */
START_TEST(a_sum_that_is_nan)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	struct err e;
	char *s;

	help_train(db);
	help_exec(db, "INSERT INTO metric "
		      "VALUES(7,1,0,11,'odd',0,'nan',1),(7,1,0,12,'word',2,'nan',1),(7,1,0,12,'"
		      "none',2,x'',1)");
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_uint_eq(help_value(p, "step", "odd")->type, VALUE_F64);
	ck_assert_str_eq(help_value(p, "forward", "word")->s, "nan");
	ck_assert_uint_eq(help_value(p, "forward", "none")->type, VALUE_F64);
	s = write_text(p);
	ck_assert_ptr_nonnull(strstr(s, "\"odd\": null"));
	ck_assert_ptr_nonnull(strstr(s, "\"none\": null"));
	ck_assert_ptr_nonnull(strstr(s, "\"odd\": 0")); /* ROOT's: it is summed */
	free(s);
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
		ck_assert_int_eq(export_read(cases[i], strlen(cases[i]), &p, &e), -EBADMSG);
		ck_assert_msg(strstr(e.text, "not a .hatchet") != NULL, "%s", e.text);
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
	ck_assert_int_eq(export_read(s, strlen(s), &p, &e), -EBADMSG);
	free(s);
}
END_TEST

/* --- MessagePack */

static char *packed(const struct profile *p, size_t *ret_n)
{
	char *s = NULL;

	ck_assert_int_eq(hatchet_msgpack_write(p, &s, ret_n), 0);
	return s;
}

/* As Proton's writer lays it out: kinds and order of keys, the shortest numbers. */
START_TEST(msgpack_byte_for_byte)
{
	static const char want[] = "\x92\x83\xa5"
				   "frame\x82\xa4name\xa4ROOT\xa4type\xa8"
				   "function"
				   "\xa7metrics\x82\xa9time (ns)\x00\xa5"
				   "count\x00\xa8"
				   "children\x91"
				   "\x83\xa5"
				   "frame\x82\xa4name\xa1k\xa4type\xa8"
				   "function"
				   "\xa7metrics\x87\xa9time (ns)\xcd\x06\x80\xa5"
				   "count\x01\xa9"
				   "device_id\xa1"
				   "0\xab"
				   "device_type\xa4"
				   "CUDA\xa5"
				   "a_pty\xcb\x3f\xf8\0\0\0\0\0\0\xa5"
				   "bytes\xff\xa1v\x92\x01\x02"
				   "\xa8"
				   "children\x90"
				   "\x81\xa4"
				   "CUDA\x81\xa1"
				   "0\x85\xaa"
				   "clock_rate\xce\x00\x1e\x36\x60\xb1memory_clock_rate"
				   "\xce\x00\x30\xd7\xe8\xa9"
				   "bus_width\xcd\x18\x00\xa4"
				   "arch\xa2"
				   "90\xa7num_sms\xcc\x84";
	struct profile *p = profile_new();
	const uint32_t k = profile_add_node(p, 0, "k", NODE_KERNEL);
	static const struct {
		const char *name;
		uint8_t kind;
		struct value v;
	} given[] = {{"v[0]", KIND_EXCLUSIVE, {.type = VALUE_I64, .i = 1}},
		{"v[1]", KIND_EXCLUSIVE, {.type = VALUE_I64, .i = 2}},
		{"a_pty", KIND_PROPERTY, {.type = VALUE_F64, .f = 1.5}},
		{"bytes", KIND_EXCLUSIVE, {.type = VALUE_I64, .i = -1}},
		{"device_type", KIND_PROPERTY, {.type = VALUE_STR, .s = "CUDA"}},
		{"count", KIND_INCLUSIVE, {.type = VALUE_U64, .u = 1}},
		{"device_id", KIND_PROPERTY, {.type = VALUE_STR, .s = "0"}},
		{"time (ns)", KIND_INCLUSIVE, {.type = VALUE_U64, .u = 1664}}};
	struct profile_device d = {.type = "CUDA",
		.id = "0",
		.arch_text = "90",
		.num_sms = 132,
		.clock_khz = 1980000,
		.memory_clock_khz = 3201000,
		.bus_width = 6144};
	char *bytes;
	size_t n, i;

	for (i = 0; i < sizeof(given) / sizeof(*given); i++)
		ck_assert_int_eq(
			profile_set(p, k, profile_add_metric(p, given[i].name, given[i].kind),
				given[i].v),
			0);
	p->device = &d;
	p->n_devices = 1;
	bytes = packed(p, &n);
	ck_assert_uint_eq(n, sizeof(want) - 1);
	ck_assert_mem_eq(bytes, want, n);
	free(bytes);
	p->device = NULL;
	p->n_devices = 0;
	profile_free(p);
}
END_TEST

START_TEST(the_deepest_tree_is_read_back)
{
	struct profile *p = profile_new(), *q = NULL;
	const uint32_t vec = profile_add_metric(p, "vec", KIND_INCLUSIVE);
	static const double two[] = {1, 2};
	struct err e = {0};
	uint32_t at = 0;
	char *s;
	size_t n;

	while (p->node[at].depth < PROFILE_DEPTH_MAX)
		at = profile_add_node(p, at, "d", NODE_SCOPE);
	ck_assert_int_eq(
		profile_set(p, at, vec, (struct value){.type = VALUE_VECTOR, .n = 2, .v = two}), 0);
	s = write_text(p);
	q = read_text(s);
	ck_assert_uint_eq(q->n_nodes, p->n_nodes);
	profile_free(q);
	free(s);
	ck_assert_int_eq(hatchet_msgpack_write(p, &s, &n), 0);
	ck_assert_msg(export_read(s, n, &q, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(q->n_nodes, p->n_nodes);
	profile_free(q);
	free(s);
	profile_free(p);
}
END_TEST

START_TEST(msgpack_is_the_same_tree)
{
	char *s = deep(900), *again, *first, *bytes;
	const char *text = _i == 0 ? three_lines : s;
	struct profile *p = read_text(text), *q = NULL;
	struct err e;
	size_t n;

	first = write_text(p);
	bytes = packed(p, &n);
	ck_assert_msg(export_read(bytes, n, &q, &e) == 0, "%s", e.text);
	again = write_text(q);
	ck_assert_str_eq(again, first);
	profile_free(p);
	profile_free(q);
	free(s);
	free(first);
	free(again);
	free(bytes);
}
END_TEST

#define KEY(k) "\xa7metrics\x81\xa1m" k
#define NODE(m)        \
	"\x91\x82\xa5" \
	"frame\x81\xa4name\xa1R" KEY(m)

START_TEST(each_type_of_msgpack)
{
	static const struct {
		const char *bytes;
		size_t n;
		double want;
	} cases[] = {
#define X(m, want) {NODE(m), sizeof(NODE(m)) - 1, want},
		X("\x7f", 127) X("\xe0", -32) X("\xcc\xff", 255) X("\xcd\x01\x00", 256)
			X("\xce\xff\xff\xff\xff", 4294967295.0) X(
				"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", 9223372036854775808.0)
				X("\xd0\x80", -128) X("\xd1\xff\xfe", -2) X("\xd2\x80\x00\x00\x00",
					-2147483648.0) X("\xd3\xff\xff\xff\xff\xff\xff\xff\xff", -1)
					X("\xca\x3f\xc0\x00\x00", 1.5)
						X("\xcb\x40\x04\x00\x00\x00\x00\x00\x00", 2.5)
#undef X
	};
	struct profile *p = NULL;
	const struct value *v;
	struct err e;

	ck_assert_msg(export_read(cases[_i].bytes, cases[_i].n, &p, &e) == 0, "%s", e.text);
	v = help_value(p, "R", "m");
	ck_assert_double_eq(v->type == VALUE_I64 ? (double)v->i : v->f, cases[_i].want);
	profile_free(p);
}
END_TEST

START_TEST(bad_msgpack_is_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
#define X(m) {NODE(m), sizeof(NODE(m)) - 1},
		X("\xc1") X("\xc4\x01z") X("\xc7\x01\x05z")
			X("\xd4\x05z") /* no such type in a profile */
		X("\xa2z") X("\xdb\xff\xff\xff\xff")
			X("\xdd\xff\xff\xff\xff\xc0") /* promises more */
		X("\xdf\xff\xff\xff\xff\xa1z\xc0") X("\xcf\x01") X("\x81\x01\x02") X("\xa1\xff")
			X("\x01\x02") /* something behind */
#undef X
	};
	struct profile *p = NULL;
	struct err e = {0};

	ck_assert_int_eq(export_read(cases[_i].bytes, cases[_i].n, &p, &e), -EBADMSG);
	ck_assert_msg(strstr(e.text, "not a .hatchet_msgpack profile") != NULL, "%s", e.text);
	ck_assert_ptr_null(p);
}
END_TEST

/* A job may give such a value: what is written is read, in both formats without it. */
START_TEST(what_is_not_finite_is_no_value)
{
	static const double values[] = {INFINITY, -INFINITY, NAN};
	struct profile *p = profile_new(), *q = NULL;
	uint32_t m = profile_add_metric(p, "m", KIND_INCLUSIVE), i;
	char *text, *bytes;
	struct err e;
	size_t n;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(profile_set(p, profile_add_node(p, 0, "n", NODE_SCOPE), m,
					 (struct value){.type = VALUE_F64, .f = values[i]}),
			0);
	text = write_text(p);
	bytes = packed(p, &n);
	profile_free(p);
	ck_assert_msg(export_read(bytes, n, &q, &e) == 0, "%s", e.text);
	p = read_text(text);
	for (i = 1; i <= 3; i++) {
		ck_assert_uint_eq(profile_value(p, i, 0)->type, VALUE_NONE);
		ck_assert_uint_eq(profile_value(q, i, 0)->type, VALUE_NONE);
	}
	profile_free(p);
	profile_free(q);
	free(text);
	free(bytes);
}
END_TEST

START_TEST(a_hole_in_a_vector_is_no_zero)
{
	struct profile *p = read_text(TREE("{}", "[{\"frame\":{\"name\":\"a\"},\"metrics\":{"
						 "\"v\":[1.5,null,2.5]}}]"));
	char *s = write_text(p);

	ck_assert_ptr_nonnull(strstr(s, "1.5,\n                        null,\n"));
	free(s);
	profile_free(p);
}
END_TEST

START_TEST(cut_and_damaged_msgpack)
{
	struct profile *p = read_text(three_lines), *q;
	struct err e;
	char *bytes, *copy;
	size_t n, i;

	bytes = packed(p, &n);
	profile_free(p);
	for (i = 1; i < n; i++) { /* of exact size, so that a sanitizer sees a byte too many */
		copy = malloc(i);
		memcpy(copy, bytes, i);
		ck_assert_int_eq(export_read(copy, i, &q, &e), -EBADMSG);
		free(copy);
	}
	for (i = 0; i < n * 8; i++) {
		copy = malloc(n);
		memcpy(copy, bytes, n);
		copy[i / 8] ^= (char)(1 << i % 8);
		if (export_read(copy, n, &q, &e) == 0)
			profile_free(q);
		free(copy);
	}
	memset(bytes, 0x91, n); /* lists in lists */
	bytes = realloc(bytes, 1 << 20);
	memset(bytes, 0x91, 1 << 20);
	ck_assert_int_eq(export_read(bytes, 1 << 20, &q, &e), -EBADMSG);
	free(bytes);
}
END_TEST

/* --- vectors, whose elements are metrics of their own until a file is written */

static void set_metric(struct profile *p, uint32_t node, const char *name, int64_t v)
{
	const uint32_t m = profile_add_metric(p, name, KIND_INCLUSIVE);

	ck_assert_int_eq(profile_set(p, node, m, (struct value){.type = VALUE_I64, .i = v}), 0);
}

START_TEST(elements_are_a_list_in_a_file)
{
	struct profile *p = profile_new(), *q;
	uint32_t a = profile_add_node(p, 0, "a", NODE_SCOPE),
		 b = profile_add_node(p, 0, "b", NODE_SCOPE);
	const struct value *v;
	char *s;
	int i;
	static const char *const elements[] = {"v[0] (bytes)", "v[1] (bytes)", "v[2] (bytes)"};

	for (i = 0; i < 3; i++)
		set_metric(p, a, elements[i], i + 10);
	set_metric(p, b, elements[0], 20); /* shorter there */
	set_metric(p, a, "one[0]", 5);
	set_metric(p, a, "gap[0]", 1); /* these are no vectors: */
	set_metric(p, a, "gap[2]", 3);
	set_metric(p, a, "both", 1);
	set_metric(p, a, "both[0]", 2);
	set_metric(p, a, "late[0]", 1);
	set_metric(p, b, "late[1]", 1);
	set_metric(p, a, "odd[00]", 1);
	set_metric(p, a, "[0]", 1);
	s = write_text(p);
	q = read_text(s);
	v = help_value(q, "a", "v (bytes)");
	ck_assert_uint_eq(v->type, VALUE_VECTOR);
	ck_assert_uint_eq(v->n, 3);
	ck_assert_double_eq(v->v[2], 12);
	ck_assert_uint_eq(help_value(q, "b", "v (bytes)")->n, 1);
	ck_assert_uint_eq(help_value(q, "a", "one")->type, VALUE_VECTOR);
	ck_assert_ptr_nonnull(
		strstr(s, "\"v (bytes)\": [\n                        10,\n")); /* whole */
	ck_assert_uint_eq(help_value(q, "ROOT", "gap")->type + 0u, VALUE_NONE);
	ck_assert_uint_eq(profile_find_metric(q, "v[0] (bytes)"), PROFILE_NONE);
	for (i = 0; i < 5; i++) {
		static const char *const plain[] = {
			"gap[2]", "both[0]", "late[0]", "odd[00]", "[0]"};

		ck_assert_uint_ne(profile_find_metric(q, plain[i]), PROFILE_NONE);
	}
	free(s);
	profile_free(p);
	profile_free(q);
}
END_TEST

/* A row of FORMATS is a format that works, and that people are told of. */
START_TEST(each_format_is_whole)
{
	const enum format i = (enum format)_i;
	const struct export_format *f = &export_formats[i];
	char file[64];

	ck_assert_str_eq(f->name, format_names[i]);
	ck_assert_int_eq((f->tree != NULL) + (f->timeline != NULL) + (f->folder != NULL), 1);
	ck_assert(f->tree == NULL || !format_needs_timeline(i));
	ck_assert((f->sniff == NULL) == (f->read == NULL));
	ck_assert_uint_eq(format_of(f->name), i);
	snprintf(file, sizeof(file), "x.y/z.%s", f->ending);
	ck_assert_uint_eq(format_of_file(file), i);
	ck_assert_ptr_nonnull(strstr(FORMAT_FILES, file + 5));
	snprintf(file, sizeof(file), "x.y/a.b.%s", f->name);
	ck_assert_uint_eq(format_of_file(file), i == FORMAT_json ? FORMAT_chrome_trace : i);
	snprintf(file, sizeof(file), " %s", f->name);
	ck_assert_ptr_nonnull(strstr(FORMAT_WORDS, file));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_hatchet");
	TCase *c = tcase_create("files");

	tcase_add_test(c, written_byte_for_byte);
	tcase_add_test(c, read_back_is_the_same);
	tcase_add_test(c, a_session_writes_proton_columns);
	tcase_add_loop_test(c, a_session_of_mode_proton, 0, 2);
	tcase_add_test(c, a_sum_that_is_nan);
	tcase_add_test(c, msgpack_byte_for_byte);
	tcase_add_test(c, odd_files_are_read);
	tcase_add_test(c, bad_files_are_refused);
	tcase_add_test(c, depth_is_bounded);
	tcase_add_test(c, the_deepest_tree_is_read_back);
	tcase_add_loop_test(c, msgpack_is_the_same_tree, 0, 2);
	tcase_add_loop_test(c, each_type_of_msgpack, 0, 12);
	tcase_add_loop_test(c, bad_msgpack_is_refused, 0, 12);
	tcase_add_test(c, what_is_not_finite_is_no_value);
	tcase_add_test(c, a_hole_in_a_vector_is_no_zero);
	tcase_add_test(c, cut_and_damaged_msgpack);
	tcase_add_test(c, elements_are_a_list_in_a_file);
	tcase_add_loop_test(c, each_format_is_whole, 0, FORMAT_COUNT);
	suite_add_tcase(s, c);
	return s;
}
