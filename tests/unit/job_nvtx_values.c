/* SPDX-License-Identifier: MIT. job_nvtx_values.c: what NVTX's ranges say beside their names: values
 * in names, and payloads. */
#include "job_nvtx.h"

#include "range_name.h"

/* --- names with values in them --- */

/* "NAME|KEY=VALUE|..." of a name; numbers in (). */
static const char *read_name(const char *text, size_t n)
{
	static char ret[2048];
	struct range_name r;
	uint32_t used;

	if (!range_name_read(text, (uint32_t)n, &r))
		return "";
	used = range_name_text(&r, ret, 1024);
	for (uint32_t i = 0; i < r.n; i++) {
		const struct range_value *v = &r.value[i];

		used += (uint32_t)snprintf(
			ret + used, sizeof(ret) - used, "|%.*s=", (int)v->key.n, v->key.s);
		used += v->is_number ? (uint32_t)snprintf(ret + used, sizeof(ret) - used, "(%lld)",
					       (long long)v->number)
				     : (uint32_t)snprintf(ret + used, sizeof(ret) - used, "%.*s",
					       (int)v->text.n, v->text.s);
	}
	ret[used] = '\0';
	return ret;
}

START_TEST(names_with_values)
{
	static const char *const cases[][2] = {
		{"linear, op_id = 12, seq = 17, sizes = [[1,2],[3]]",
			"linear|op_id=(12)|seq=(17)|sizes=[[1,2],[3]]"},
		{"aten::mm, sizes = [[2, 3], [3, 2]]", "aten::mm|sizes=[[2, 3], [3, 2]]"},
		{"aten::add, seq = 1, op_id = 4, sizes = [[], []], input_op_ids = [(3,0)]",
			"aten::add|seq=(1)|op_id=(4)|sizes=[[], []]|input_op_ids=[(3,0)]"},
		{"f(a, b), seq = -1", "f(a, b)|seq=(-1)"},
		{"x, seq = 1234567890123456789", "x|seq=1234567890123456789"},
		{"train#step_num=3#", "train|step_num=(3)"},
		{"XlaModule:#hlo_module=jit_step,program_id=3#", "jit_step|program_id=(3)"},
		{"XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=3#",
			"jit_step|prefix=jit(step)/jit(main)|program_id=(3)"},
		{"Thunk:#name=dot_general[dims=(((1,), (0,)), precision=None],hlo_op=fusion.3,"
		 "unique_hlo_op_id=17#",
			"fusion.3|name=dot_general[dims=(((1,), (0,)), "
			"precision=None]|unique_hlo_op_id=(17)"},
		{"Thunk:#hlo_op=command_buffer_1#", "command_buffer_1"},
		{"XlaCompile:#module=jit_f,program_id=12#", "XlaCompile: jit_f|program_id=(12)"},
		{"TSL:x#hlo_op=,hlo_module=m#", "m|hlo_op="},
		{"#module=jit_step,program_id=3#", "jit_step|program_id=(3)"},
		/* none of ours: as they are */
		{"loss, x = 3", ""},
		{", seq = 3", ""},
		{"x, seq = ", ""},
		{"#", ""},
		{"##", ""},
		{"a#b#", ""},
		{"a#=b#", ""},
		{"issue #3", ""},
		{"#n=1#", ""},
		{"", ""},
	};
	char many[1024] = "m#";
	struct range_name r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t n = 0, all = strlen(cases[i][0]); n <= all; n++) {
			char *cut = malloc(all + 1 - n); /* of no byte more than it has */

			memcpy(cut, cases[i][0] + n, all - n);
			if (n == 0)
				ck_assert_str_eq(read_name(cut, all), cases[i][1]);
			else
				(void)read_name(cut, all - n);
			free(cut);
		}
	for (int i = 0; i < 20; i++)
		(void)snprintf(many + strlen(many), 20, "%sk%d=1", i > 0 ? "," : "", i);
	(void)strcat(many, "#");
	ck_assert(range_name_read(many, (uint32_t)strlen(many), &r));
	ck_assert_uint_eq(r.n, RANGE_VALUES);
	ck_assert_uint_eq(r.left, 20 - RANGE_VALUES);
}
END_TEST

/* A loop with a number in its name is one node, whichever way the name comes. */
START_TEST(a_loop_is_one_scope)
{
	struct seen s[] = {
		{"linear", 0, 0}, {"jit_step", 0, 0}, {"jit_step/fusion.3", 0, 0}, {NULL, 0, 0}};
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 3};
	const void *domain;
	char text[80];
	uint64_t id;

	ready();
	ck_assert_uint_eq(attach(), 1);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(text, sizeof(text), "linear, op_id = %d, seq = %d, sizes = [[1]]", i,
			10 + i);
		ck_assert_int_eq(nvtx.push_a(text), 0);
		ck_assert_int_eq(nvtx.pop(), 0);
	}
	id = nvtx.start_a("linear, seq = 20"); /* of the span, wherever its thread stands */
	t_enter(t_new("other"));
	nvtx.end(id);
	t_exit();
	domain = nvtx.domain("TSL");
	ex.message = nvtx.string(domain, "XlaModule:#hlo_module=jit_step,program_id=3#");
	ck_assert_int_eq(nvtx.domain_push(domain, &ex), 0);
	ex.message = nvtx.string(domain, "Thunk:#name=mul,hlo_op=fusion.3,unique_hlo_op_id=9#");
	ck_assert_int_eq(nvtx.domain_push(domain, &ex), 1);
	ck_assert_int_eq(nvtx.pop(), 1);
	ck_assert_int_eq(nvtx.pop(), 0);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told,
		"op_id (pty)@linear=0;seq (pty)@linear=10;sizes (pty)@linear=[[1]];"
		"op_id (pty)@linear=1;seq (pty)@linear=11;sizes (pty)@linear=[[1]];"
		"op_id (pty)@linear=2;seq (pty)@linear=12;sizes (pty)@linear=[[1]];"
		"seq (pty)@linear=20;program_id (pty)@jit_step=3;"
		"op_name (pty)@jit_step/fusion.3=mul;unique_hlo_op_id (pty)@jit_step/fusion.3=9;");
	ck_assert_uint_eq(s[0].count, 4);
	ck_assert_uint_eq(s[1].count, 1);
	ck_assert_uint_eq(s[2].count, 1);
	ck_assert_uint_eq(t_v.lost, 0);
}
END_TEST

/* Handles that are nobody's, or another's, are looked into by none. */
START_TEST(handles_of_others)
{
	static const char not_ours[] = "not ours";
	struct seen s[] = {{"(other)", 0, 0}, {"there", 0, 0}, {NULL, 0, 0}};
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 3};
	const uintptr_t odd[] = {0, 1, 3, 0x20001, (uintptr_t)not_ours, (uintptr_t)not_ours | 1,
		UINTPTR_MAX, 0x7d9aull << 48, 0x7d9affffffffffffull};
	const void *domain, *string;

	ready();
	ck_assert_uint_eq(attach(), 1);
	domain = nvtx.domain("ours");
	string = nvtx.string(domain, "there");
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		ex.message = (const void *)odd[i];
		ck_assert_int_eq(nvtx.domain_push(domain, &ex), 0);
		ck_assert_int_eq(nvtx.pop(), 0);
		ex.message = string;
		ck_assert_int_eq(nvtx.domain_push((const void *)odd[i], &ex), 0);
		ck_assert_int_eq(nvtx.pop(), 0);
	}
	ex.message = domain; /* a domain is no string */
	ck_assert_int_eq(nvtx.domain_push(string, &ex), 0);
	ck_assert_int_eq(nvtx.pop(), 0);
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, sizeof(odd) / sizeof(*odd) + 1);
	ck_assert_uint_eq(s[1].count, sizeof(odd) / sizeof(*odd));
}
END_TEST

static uint32_t interned;

static uint32_t intern_counted(const char *text, uint32_t bytes)
{
	if (*text == '[') /* all are one, for there is no room for so many in a test */
		interned++;
	return t_intern(*text == '[' ? "[" : text, *text == '[' ? 1 : bytes);
}

/* A property has so many different texts; what comes after them is counted. */
START_TEST(texts_without_end)
{
	struct seen s[] = {{"x", 0, 0}, {NULL, 0, 0}};
	char text[64];
	uint32_t given = 0;

	t_host.intern = intern_counted;
	ready();
	ck_assert_uint_eq(attach(), 1);
	interned = 0;
	for (int i = 0; i < 8192; i++) {
		(void)snprintf(text, sizeof(text), "x, sizes = [[%d]]", i);
		ck_assert_int_eq(nvtx.push_a(text), 0);
		ck_assert_int_eq(nvtx.pop(), 0);
		given += i == 4000 ? interned : 0;
	}
	ck_assert_uint_gt(given, 3000);
	ck_assert_uint_le(interned, 4096);
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 8192);
	ck_assert_uint_eq(t_v.lost + interned, 8192);
}
END_TEST

/* --- payloads with a schema, as NCCL has them --- */

struct entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct schema {
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct entry *entry;
	size_t n, bytes, pack;
	uint64_t id;
	const void *extension;
};

static struct {
	uint64_t (*schema)(const void *, const void *), (*words)(const void *, const void *);
	int (*push)(const void *, const void *, size_t), (*pop)(const void *, const void *, size_t);
	void (*mark)(const void *, const void *, size_t);
	uint64_t (*start)(const void *, const void *, size_t);
	void (*end)(const void *, uint64_t, const void *, size_t);
} extension;

static void extend(void)
{
	intptr_t slot[18] = {0};
	struct {
		size_t id, n;
		intptr_t *slot;
	} segment = {0, 18, slot};
	struct {
		uint16_t nvtx, bytes, module, compat;
		size_t segments;
		void *segment;
	} module = {3, sizeof(module), 2, 1, 1, &segment};

	ready();
	ck_assert_uint_eq(attach(), 1);
	ck_assert_uint_eq(t_e->nvtx_extension(&module), 1);
	memcpy(&extension.schema, &slot[0], sizeof(slot[0]));
	memcpy(&extension.words, &slot[1], sizeof(slot[0]));
	memcpy(&extension.mark, &slot[2], sizeof(slot[0]));
	memcpy(&extension.push, &slot[3], sizeof(slot[0]));
	memcpy(&extension.pop, &slot[4], sizeof(slot[0]));
	memcpy(&extension.start, &slot[5], sizeof(slot[0]));
	memcpy(&extension.end, &slot[6], sizeof(slot[0]));
}

struct nccl {
	uint64_t comm;
	size_t bytes;
	int root;
	float part;
	const char *text;
	int16_t few[2];
};

START_TEST(payloads_with_a_schema)
{
	const struct entry e[] = {{0, 18, "Communicator", NULL, 0, 0, NULL, NULL},
		{0, 22, "Message size [bytes]", NULL, 0, offsetof(struct nccl, bytes), NULL, NULL},
		{0, 5, "Root", NULL, 0, 0, NULL, NULL}, /* where it must be */
		{0, 19, "Part", NULL, 0, offsetof(struct nccl, part), NULL, NULL},
		{1 << 10, 75, "Text", NULL, 0, offsetof(struct nccl, text), NULL, NULL},
		{1 << 4, 13, "an array", NULL, 2, offsetof(struct nccl, few), NULL, NULL},
		{0, 1u << 24, "an enum", NULL, 0, 4, NULL, NULL},
		{2, 18, "a pointer", NULL, 0, 8, NULL, NULL},
		{0, 18, NULL, NULL, 0, 8, NULL, NULL}};
	struct schema schema = {1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8, "s", 1, 0, e,
		sizeof(e) / sizeof(*e), sizeof(struct nccl), 0, 1 << 24, NULL};
	struct seen s[] = {{"ex", 0, 0}, {"in it", 0, 0}, {"m", 0, 0}, {"", 0, 0}, {NULL, 0, 0}};
	const struct nccl comm = {7, 4096, -1, 0.5f, "in it", {1, 2}};
	struct data d[] = {{1 << 24, sizeof(comm), &comm}, {1 << 24, SIZE_MAX, &comm},
		{1 << 24, 16, &comm}, {5, 8, &comm}, {1 << 24, 8, NULL}};
	struct attributes ex = {
		.version = 3, .size = sizeof(ex), .type = 1, .message = "ex", .reserved = 1};
	const void *domain;

	extend();
	domain = nvtx.domain("NCCL");
	ck_assert_uint_eq(extension.schema(domain, &schema), 1 << 24);
	ck_assert_uint_eq(extension.schema(domain, &schema), 1 << 24);
	ex.payload_type = (int32_t)0xdfbd0009;
	ex.payload = (uintptr_t)&d[0];
	ck_assert_int_eq(nvtx.domain_push(domain, &ex), 0);
	ck_assert_int_eq(extension.pop(domain, &d[0], 1), 0); /* the same once more */
	ex.payload_type = 0;
	ck_assert_int_eq(nvtx.domain_push(domain, &ex), 0);
	ck_assert_int_eq(extension.pop(domain, &d[2], 1), 0); /* cut behind the bytes */
	ck_assert_int_eq(extension.push(domain, &d[1], 1), 0);
	ck_assert_int_eq(extension.pop(domain, NULL, 0), 0);
	extension.mark(domain, &d[3], 2);                    /* a plain number; nothing there */
	ck_assert_int_eq(extension.push(NULL, &d[0], 1), 0); /* another domain's */
	ck_assert_int_eq(extension.pop(NULL, &d[0], 1), 0);
	schema.fields = 1 << 5;
	ck_assert_uint_eq(extension.schema(domain, &schema), 0);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told,
		"Communicator (pty)@ex=7;Message size (bytes)@ex=4096;Root (pty)@ex=-1;"
		"Part@ex=0.50;an array (pty)@ex=[1,2];payload (pty)@ex=4096;"
		"Communicator (pty)@ex=7;Message size (bytes)@ex=4096;payload (pty)@ex=4096;"
		"Communicator (pty)@in it=7;Message size (bytes)@in it=4096;Root (pty)@in it=-1;"
		"Part@in it=0.50;an array (pty)@in it=[1,2];payload (pty)@in it=4096;"
		"payload@=7;");
	/* In each: the enumeration, which is none, and what a pointer says; then what lies behind the
	 * bytes, three; another domain's. */
	ck_assert_uint_eq(t_v.lost, 2 + 2 + 2 + 3 + 1);
	ck_assert_uint_eq(s[0].count, 2);
	ck_assert_uint_eq(s[1].count, 1);
	schema.fields = 1 << 4 | 1 << 5; /* a number of ours for each, while there is room */
	for (int i = 0; i < 63; i++)
		ck_assert_uint_ge(extension.schema(domain, &schema), 1ull << 32);
	ck_assert_uint_eq(extension.schema(domain, &schema), 0);
}
END_TEST

struct inner {
	uint32_t rank;
	uint16_t way;
	uint16_t pad;
};

struct outer {
	uint64_t n;
	struct inner in;
	uint8_t mode, bits;
	size_t sent[3];
	const int32_t *many;
	const void *string;
	int32_t rest[]; /* n of them */
};

struct word {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct words {
	uint64_t fields;
	const char *name;
	const struct word *word;
	size_t n, bytes;
	uint64_t id;
	const void *extension;
};

#define WORDS_OF(w, size)                                                               \
	{                                                                               \
		1 << 2 | 1 << 3 | 1 << 4, "e", w, sizeof(w) / sizeof(*w), size, 0, NULL \
	}
#define ALL_OF(e)                                                                     \
	{                                                                             \
		1 << 4 | 1 << 5, NULL, 1, 0, e, sizeof(e) / sizeof(*e), 0, 0, 0, NULL \
	}

/* Enumerations are words, a schema in a schema is "outer.inner", of an array of sizes the sum, of
 * others their beginning; an array behind a pointer must lie in the same event's payloads. */
START_TEST(arrays_words_and_schemas_in_schemas)
{
	static const struct word ways[] = {{"ring", 1, 0}, {"tree", 2, 0}},
				 flags[] = {{"a", 1, 1}, {"b", 2, 1}, {"c", 4, 1}};
	const struct words way = WORDS_OF(ways, 2), bit = WORDS_OF(flags, 1);
	struct seen s[] = {{"span", 0, 0}, {NULL, 0, 0}};
	const void *domain, *string;
	uint64_t id, ways_id, flags_id, inner_id;
	int32_t many[10] = {0, 1, 2, 3, -4, 5, 6, 7, 8, 9};
	struct outer *o = malloc(sizeof(*o) + 2 * sizeof(o->rest[0])); /* and no byte more */
	struct data d[] = {{0, sizeof(*o) + 2 * sizeof(o->rest[0]), o}, {1022, sizeof(many), many},
		{0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL}, {0, 0, NULL},
		{0, 0, NULL}};

	extend();
	domain = nvtx.domain("D");
	string = nvtx.string(domain, "\nfile.py:3[f]");
	ways_id = extension.words(domain, &way);
	flags_id = extension.words(domain, &bit);
	{
		const struct entry in[] = {{0, 16, "rank", NULL, 0, 0, NULL, NULL},
			{0, ways_id, "way", NULL, 0, 0, NULL, NULL}};
		struct schema inner = ALL_OF(in);

		inner_id = extension.schema(domain, &inner);
	}
	{
		const struct entry out[] = {{1 << 9, 18, "n", NULL, 0, 0, NULL, NULL},
			{0, inner_id, "in", NULL, 0, 0, NULL, NULL},
			{0, flags_id, "mode", NULL, 0, offsetof(struct outer, mode), NULL, NULL},
			{0, flags_id, "bits", NULL, 0, 0, NULL, NULL},
			{1 << 4, 22, "sent (bytes)", NULL, 3, 0, NULL, NULL},
			{2 | 1 << 4, 15, "many", NULL, 10, 0, NULL, NULL},
			{0, 80, "where", NULL, 0, 0, NULL, NULL},
			{3 << 4, 15, "rest", NULL, 0, 0, NULL, NULL},
			{0, 15, "behind it", NULL, 0, 0, NULL, NULL}};
		struct schema outer = ALL_OF(out);

		outer.type = 2;
		d[0].schema = extension.schema(domain, &outer);
	}
	*o = (struct outer){2, {5, 2, 0}, 5, 8, {10, 20, 30}, many, string};
	o->rest[0] = 7;
	o->rest[1] = -8;
	id = extension.start(domain, d, 2);
	extension.end(domain, id, d, 2); /* once */
	ck_assert_uint_eq(t_v.lost, 0);
	o->n = 3;           /* more than there are bytes for */
	o->many = many + 1; /* its end is not in it */
	o->in.way = 3;
	o->string = many;
	extension.end(domain, extension.start(domain, NULL, 0), d, 9);
	o->n = UINT64_MAX;
	o->many = (const int32_t *)(uintptr_t)0x1000;
	o->string = NULL;
	extension.mark(domain, d, 1);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told,
		"in.rank (pty)@=5;in.way (pty)@=tree;mode (pty)@=a|c;bits (pty)@=8;"
		"sent (bytes)@=60;many (pty)@=[0,1,2,3,-4,5,6,7,..];where (pty)@=file.py:3[f];"
		"rest (pty)@=[7,-8];"
		"in.rank (pty)@=5;in.way (pty)@=3;mode (pty)@=a|c;bits (pty)@=8;"
		"sent (bytes)@=60;"
		"in.rank (pty)@=5;in.way (pty)@=3;mode (pty)@=a|c;bits (pty)@=8;"
		"sent (bytes)@=60;");
	/* What stands behind the array each time; then array, pointer, handle, the ninth payload; then
	 * array and pointer. */
	ck_assert_uint_eq(t_v.lost, 1 + 1 + 4 + 1 + 2);
	free(o);
}
END_TEST

static void random_bytes(unsigned char *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)rand();
}

/* Whatever a schema says, no byte is read that its payload does not have (asan), and nothing is
 * written but what is true of the ring. */
START_TEST(schemas_of_anything)
{
	static const uint64_t flags[] = {
		0, 0, 0, 2, 1 << 4, 2 << 4, 3 << 4, 4 << 4, 1 << 9, 1 << 2, 2 | 1 << 4, 2 | 3 << 4};
	static const uint64_t types[] = {0, 1, 5, 10, 18, 19, 21, 22, 23, 42, 80, 100, 1 << 24,
		1ull << 32, (1ull << 32) + 1, (1ull << 32) + 5, 1ull << 33, UINT64_MAX};
	struct entry e[12];
	struct schema schema = ALL_OF(e);
	struct seen s[] = {{NULL, 0, 0}};
	uint64_t ids[64];
	uint32_t n = 0;

	srand((unsigned)_i);
	extend();
	for (; n < 64; n++) {
		for (size_t k = 0; k < 12; k++)
			e[k] = (struct entry){flags[(size_t)rand() % 12],
				types[(size_t)rand() % 18], "x", NULL,
				rand() % 3 == 0 ? (uint64_t)rand() << (rand() % 33)
						: (uint64_t)rand() % 5,
				rand() % 3 == 0 ? (uint64_t)rand() % 64 : 0, NULL, NULL};
		schema.type = 1 + (uint64_t)rand() % 4;
		ids[n] = extension.schema(NULL, &schema);
	}
	for (int i = 0; i < 300; i++) {
		const size_t bytes = (size_t)rand() % 80;
		unsigned char *at = malloc(bytes > 0 ? bytes : 1);
		struct data d = {ids[(size_t)rand() % n], bytes, at};

		random_bytes(at, bytes);
		extension.mark(NULL, &d, 1);
		free(at);
	}
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(t_v.bad, 0);
}
END_TEST

/* By its name in its domain, else by its number; of a started range, too. */
START_TEST(categories)
{
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 1, .message = "ex"};
	struct seen s[] = {{NULL, 0, 0}};
	void (*name)(uint32_t, const char *), (*name_in)(const void *, uint32_t, const char *);
	const void *domain;

	ready();
	ck_assert_uint_eq(attach(), 1);
	memcpy(&name, &slots[0][12], sizeof(name));
	memcpy(&name_in, &slots[1][8], sizeof(name_in));
	domain = nvtx.domain("d");
	name(7, "io");
	name(0, "none has it");
	name_in(domain, 7, "compute");
	told[0] = '\0';
	ex.pad[0] = 7;
	nvtx.mark_ex(&ex);
	nvtx.domain_mark(domain, &ex);
	ex.pad[0] = 8;
	nvtx.mark_ex(&ex);
	name(8, "later");
	nvtx.mark_ex(&ex);
	ex.pad[0] = 0;
	nvtx.mark_ex(&ex);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told, "category (pty)@ex=io;category (pty)@ex=compute;category (pty)@ex=8;"
			       "category (pty)@ex=later;");
	for (uint32_t i = 0; i < 100; i++)
		name(1000 + i, "one of many");
	told[0] = '\0';
	ex.pad[0] = 1060;
	nvtx.mark_ex(&ex);
	ex.pad[0] = 1061;
	nvtx.mark_ex(&ex);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told, "category (pty)@ex=one of many;category (pty)@ex=1061;");
}
END_TEST

/* A name's, told once for what sessions there are, and when it is another. */
START_TEST(colours)
{
	struct attributes ex = {.version = 3, .size = sizeof(ex), .type = 1, .message = "ex"};
	struct attributes other = ex;
	struct seen s[] = {{NULL, 0, 0}};
	struct ring_ctl *ctl;

	ready();
	ck_assert_uint_eq(attach(), 1);
	told[0] = '\0';
	other.message = "other";
	other.pad[1] = ex.pad[1] = 1; /* ARGB */
	ex.pad[2] = 0xff00c0de;
	other.pad[2] = 0x7f0000ff;
	for (int i = 0; i < 100; i++) {
		nvtx.mark_ex(&ex);
		nvtx.mark_ex(&other);
	}
	ex.pad[2] = 0xff123456;
	nvtx.mark_ex(&ex);
	ex.pad[1] = 0; /* it says nothing of colours then */
	ex.pad[2] = 0;
	nvtx.mark_ex(&ex);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told, "color (pty)@ex=#00c0de;color (pty)@other=#0000ff;"
			       "color (pty)@ex=#123456;");
	told[0] = '\0';
	ctl = (struct ring_ctl *)((uintptr_t)t_v.ctl - offsetof(struct ring_ctl, lane));
	ctl->sums++; /* a session begins */
	nvtx.mark_ex(&other);
	nvtx.mark_ex(&other);
	(void)view_walk(&t_v, told_fn, s);
	ck_assert_str_eq(told, "color (pty)@other=#0000ff;");
}
END_TEST

static void values(TCase *c)
{
	tcase_add_test(c, categories);
	tcase_add_test(c, colours);
	tcase_add_test(c, names_with_values);
	tcase_add_test(c, a_loop_is_one_scope);
	tcase_add_test(c, handles_of_others);
	tcase_add_test(c, texts_without_end);
	tcase_add_test(c, payloads_with_a_schema);
	tcase_add_test(c, arrays_words_and_schemas_in_schemas);
	tcase_add_loop_test(c, schemas_of_anything, 0, 4);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {values, NULL};

	return t_suite("job_nvtx_values", all);
}
