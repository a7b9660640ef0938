/* SPDX-License-Identifier: MIT. job_table.c: tests of the ring's tables and their laws, and of NVTX
 * ranges, which are names from outside. */
#include "job_engine.h"

#include <sys/wait.h>

static void ready(void)
{
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static uint32_t named(const char *prefix, uint32_t i)
{
	char s[64];

	return agent_name(s, (size_t)snprintf(s, sizeof(s), "%s %u", prefix, i));
}

START_TEST(names_are_interned)
{
	static char big[65536];
	uint32_t a, b;

	ready();
	ck_assert_uint_eq(agent_name("", 0), NAME_NONE);
	ck_assert_uint_eq(agent_name("(other)", 7), NAME_OTHER);
	a = agent_name("a\0b", 3);
	ck_assert_uint_ne(a, agent_name("a\0c", 3));
	ck_assert_uint_eq(a, agent_name("a\0b", 3));
	memset(big, 'x', sizeof(big));
	a = agent_name(big, sizeof(big));
	big[40000] = 'y';
	b = agent_name(big, sizeof(big));
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(t_v.c->names_cut, 2);
	ck_assert_uint_eq(strlen(view_name(&t_v, a)), NAME_BYTES_MAX);
	ck_assert_int_eq(view_name(&t_v, a)[NAME_BYTES_MAX - 17], '~');
	ck_assert_uint_ne(agent_name(big, NAME_BYTES_MAX), b);
	ck_assert_uint_eq(t_v.c->names_cut, 2);
}
END_TEST

START_TEST(names_for_ever)
{
	ready();
	for (uint32_t i = 0; i < 70000; i++)
		(void)named("step", i);
	ck_assert_uint_eq(t_v.c->names, RING_NAMES);
	ck_assert_uint_ge(t_v.c->names_refused, 70000 - RING_NAMES);
	ck_assert_uint_eq(named("step", 70001), NAME_OTHER);
	ck_assert_uint_ne(named("step", 7), NAME_OTHER);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(text_runs_out)
{
	static char text[NAME_BYTES_MAX];
	uint32_t full = 0;

	ready();
	memset(text, 't', sizeof(text));
	for (uint32_t i = 0; i < RING_NAME_BYTES / NAME_BYTES_MAX + 10; i++) {
		memcpy(text, &i, sizeof(i));
		full += agent_name(text, sizeof(text)) == NAME_OTHER;
	}
	ck_assert_uint_ge(full, 10);
	ck_assert_uint_le(t_v.c->name_bytes, RING_NAME_BYTES);
	ck_assert_uint_eq(t_v.c->names_refused, full);
}
END_TEST

START_TEST(too_many_children)
{
	uint32_t parent, other = 0;

	ready();
	parent = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("p", 1));
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX + 100; i++)
		other = agent_path_child(parent, PATH_KIND_SCOPE, named("step", i));
	ck_assert_str_eq(view_where(&t_v, other), "p/(other)");
	ck_assert_uint_eq(t_v.c->paths_refused, 100);
	/* below it the tree goes on, and other parents are as before */
	other = agent_path_child(other, PATH_KIND_SCOPE, agent_name("x", 1));
	ck_assert_str_eq(view_where(&t_v, other), "p/(other)/x");
	ck_assert_str_eq(
		view_where(&t_v, agent_path_child(PATH_ROOT, PATH_KIND_STATE, NAME_NONE)), "[]");
	view_check_tables(&t_v);
}
END_TEST

/* Once a parent, or the table, is full, what finds no place takes no lock. */
START_TEST(surplus_takes_no_lock)
{
	uint32_t parent, beside, other, n;
	sigset_t mask;

	ready();
	parent = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("p", 1));
	beside = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("q", 1));
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX; i++)
		n = agent_path_child(parent, PATH_KIND_SCOPE, named("step", i));
	other = agent_path_child(parent, PATH_KIND_SCOPE, agent_name("x", 1));
	agent_lock_tables(&mask); /* whoever asks for it now waits for ever */
	ck_assert_uint_eq(agent_path_child(parent, PATH_KIND_SCOPE, agent_name("q", 1)), other);
	ck_assert_uint_eq(agent_path_child(parent, PATH_KIND_STATE, NAME_NONE), other);
	ck_assert_uint_eq(
		agent_path_child(parent, PATH_KIND_SCOPE, named("step", PATH_CHILDREN_MAX - 1)), n);
	agent_unlock_tables(&mask);
	ck_assert_uint_eq(t_v.c->paths_refused, 3);
	for (n = beside; t_v.c->paths_refused == 3; n = parent)
		for (uint32_t i = 0; i < PATH_CHILDREN_MAX && t_v.c->paths_refused == 3; i++) {
			const uint32_t at = agent_path_child(n, PATH_KIND_SCOPE, named("step", i));

			parent = i == 0 ? at : parent;
		}
	other = agent_path_child(beside, PATH_KIND_STATE, NAME_NONE);
	ck_assert_str_eq(view_where(&t_v, other), "q/(other)");
	ck_assert_uint_eq(agent_path_child(other, PATH_KIND_STATE, NAME_NONE), other);
	agent_lock_tables(&mask);
	ck_assert_uint_eq(agent_path_child(beside, PATH_KIND_OP, NAME_NONE), other);
	ck_assert_uint_eq(agent_path_child(other, PATH_KIND_OP, NAME_NONE), other);
	agent_unlock_tables(&mask);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(paths_for_ever)
{
	uint32_t p = PATH_ROOT, last = 0;

	ready();
	for (uint32_t i = 0; i < 40; i++) {
		p = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("parent", i));
		for (uint32_t j = 0; j < 2000; j++)
			last = agent_path_child(p, PATH_KIND_SCOPE, named("child", j));
	}
	ck_assert_uint_le(t_v.c->paths, RING_PATHS);
	ck_assert_str_eq(view_where(&t_v, last), "(other)");
	ck_assert_uint_gt(t_v.c->paths_refused, 10000);
	/* in a full table each parent still gets its (other), and an (other) none of its own */
	for (uint32_t id = 2; id < RING_PATHS - PATH_OTHER_RESERVE; id += 15)
		last = agent_path_child(id, PATH_KIND_SCOPE, agent_name("new", 3));
	ck_assert_uint_gt(t_v.c->paths, RING_PATHS - PATH_OTHER_RESERVE + 3500);
	ck_assert_uint_eq(agent_path_child(last, PATH_KIND_SCOPE, agent_name("new", 3)), last);
	for (uint32_t id = 2; id < RING_PATHS - PATH_OTHER_RESERVE; id++)
		last = agent_path_child(id, PATH_KIND_SCOPE, agent_name("newer", 5));
	ck_assert_uint_eq(t_v.c->paths, RING_PATHS);
	ck_assert_uint_eq(
		agent_path_child(2, PATH_KIND_SCOPE, agent_name("newest", 6)) < RING_PATHS, 1);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(deepest)
{
	uint32_t p = PATH_ROOT;

	ready();
	for (uint32_t i = 0; i < PATH_DEPTH_MAX + 20; i++)
		p = agent_path_child(p, PATH_KIND_SCOPE, named("d", i));
	ck_assert_uint_eq(view_path(&t_v, p)->depth, PATH_DEPTH_MAX);
	ck_assert_uint_eq(agent_path_child(p, PATH_KIND_OP, NAME_NONE), p);
	ck_assert_uint_eq(agent_path_child(UINT32_MAX, PATH_KIND_SCOPE, named("d", 0)),
		agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("d", 0)));
	view_check_tables(&t_v);
}
END_TEST

START_TEST(configurations_and_devices)
{
	struct ring_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	struct ring_device d = {.ordinal = 1, .type = DEVICE_CUDA};

	ready();
	ck_assert_uint_eq(agent_config(&c), 0);
	for (uint32_t i = 1; i < RING_CONFIGS; i++) {
		c.grid[0] = i + 1;
		ck_assert_uint_eq(agent_config(&c), i);
	}
	c.grid[0] = 1;
	ck_assert_uint_eq(agent_config(&c), 0);
	c.grid[0] = 1u << 20;
	ck_assert_uint_eq(agent_config(&c), UINT32_MAX);
	for (uint8_t i = 0; i < RING_DEVICES; i++) {
		d.uuid[0] = i;
		ck_assert_uint_eq(agent_device(&d), i);
	}
	d.uuid[0] = 3;
	ck_assert_uint_eq(agent_device(&d), 3);
	d.uuid[1] = 1;
	ck_assert_uint_eq(agent_device(&d), UINT16_MAX);
}
END_TEST

/* --- several threads at the same tables --- */

enum { SAME = 3000 };
static uint32_t got[4][SAME];

static void *inserts(void *p)
{
	uint32_t *mine = p;

	for (uint32_t i = 0; i < SAME; i++)
		mine[i] = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("same", i));
	return NULL;
}

START_TEST(threads_agree)
{
	pthread_t th[4];

	ready();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&th[i], NULL, inserts, got[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(th[i], NULL), 0);
	for (int i = 1; i < 4; i++)
		ck_assert_mem_eq(got[i], got[0], sizeof(got[0]));
	ck_assert_uint_eq(t_v.c->paths, 2 + SAME);
	view_check_tables(&t_v);
}
END_TEST

/* --- scopes that find the tables full: counted each time --- */

START_TEST(surplus_scopes_are_counted)
{
	struct seen s[] = {{"(other)", 50, 0}, {NULL, 0, 0}};
	uint32_t name;

	ready();
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX; i++)
		(void)agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("step", i));
	ck_assert_uint_eq(t_v.c->paths_refused, 0);
	name = t_new("surplus");
	for (int i = 0; i < 40; i++) {
		t_enter(name);
		t_exit();
	}
	for (int i = 0; i < 10; i++) {
		t_enter(0); /* the process-local table was full */
		t_exit();
	}
	s[0].count = 0;
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 50);
	ck_assert_uint_eq(t_v.c->paths_refused, 40);
	ck_assert_uint_eq(t_v.c->names_refused, 10);
}
END_TEST

/* --- NVTX --- */

static void (*slots[2][17])(void);
static void (**table[2][17])(void);

static int get_table(int module, void (****ret)(void), unsigned *ret_size)
{
	const int m = module == 1 ? 0 : 1;

	for (unsigned i = 1; i < 16; i++)
		table[m][i] = &slots[m][i];
	*ret = table[m];
	*ret_size = 16;
	return module == 1 || module == 5;
}

static const struct {
	size_t bytes;
	int (*table)(int, void (****)(void), unsigned *);
} callbacks = {sizeof(callbacks), get_table};

static const void *export_table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

START_TEST(nvtx_ranges)
{
	struct seen s[] = {{"a", 0, 0}, {"a/\xc3\xa9t\xc3\xa9", 0, 0}, {"a/ex", 0, 0},
		{"a/ex/reg", 0, 0}, {"a/aten::mm", 0, 0}, {NULL, 0, 0}};
	const struct {
		uint16_t version, size;
		uint32_t pad[3];
		int32_t payload_type, reserved;
		uint64_t payload;
		int32_t type;
		const void *message;
	} ex = {3, 48, {0}, 0, 0, 0, 1, "ex"};
	const void *(*get)(uint32_t) = export_table;
	void *fn;
	int (*push_a)(const char *), (*push_w)(const wchar_t *), (*push_ex)(const void *),
		(*pop)(void);
	int (*domain_push)(const void *, const void *), (*domain_pop)(const void *);
	const void *(*string_a)(const void *, const char *);
	const void *domain;

	_Static_assert(sizeof(ex) == 48, "as NVTX has it");
	t_open(NULL, true);
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_ex, &slots[0][8], sizeof(fn));
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&push_w, &slots[0][10], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	memcpy(&domain_push, &slots[1][4], sizeof(fn));
	memcpy(&domain_pop, &slots[1][5], sizeof(fn));
	memcpy(&string_a, &slots[1][10], sizeof(fn));
	ck_assert(slots[0][1] == NULL &&
		  slots[0][4] == NULL); /* marks and start/end are left alone */
	ck_assert_int_eq(pop(), -2);
	ck_assert_int_eq(push_a("a"), 0); /* before anything is recorded */
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_int_eq(push_w(L"\u00e9t\u00e9"), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_ex(&ex), 1);
	domain = string_a(NULL, "domain");
	{
		struct {
			unsigned char first[40];
			const void *message;
		} reg;

		memcpy(reg.first, &ex, 40);
		reg.first[32] = 3;
		reg.message = string_a(domain, "reg");
		ck_assert_int_eq(domain_push(domain, &reg), 2);
	}
	ck_assert_int_eq(domain_pop(domain), 2);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_a("aten::mm, seq = 17, op_id = 4, sizes = [[2, 3], [3, 2]]"), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(push_a("aten::mm, op_id = 5"), 1);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(pop(), 0);
	(void)view_walk(&t_v, seen_fn, s);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(s[i].count, 1);
	ck_assert_uint_eq(s[4].count, 2);
	ck_assert_uint_eq(t_e->nvtx(NULL), 0);
}
END_TEST

/* JAX compiles: passes are one scope, wherever they stand in one another, and programs of one name
 * are one. */
START_TEST(nvtx_passes_of_xla)
{
	struct seen s[] = {{"XlaCompile:#module=jit_f", 0, 0},
		{"XlaCompile:#module=jit_f/XlaPass", 0, 0},
		{"XlaCompile:#module=jit_f/XlaPass/own", 0, 0},
		{"XlaCompile:#module=jit_f/XlaPass/own/XlaPass", 0, 0},
		{"XlaCompile:#module=jit_f/XlaPass/XlaPass", 0, 0}, {NULL, 0, 0}};
	const void *(*get)(uint32_t) = export_table;
	int (*push_a)(const char *), (*pop)(void);
	char text[80];
	void *fn;

	t_open(NULL, true);
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(text, sizeof(text), "XlaCompile:#module=jit_f,program_id=%d#", i);
		ck_assert_int_eq(push_a(text), 0);
		(void)snprintf(text, sizeof(text),
			"XlaPassPipeline:#name=%d,module=m,program_id=%d#", i, i);
		ck_assert_int_eq(push_a(text), 1);
		(void)snprintf(
			text, sizeof(text), "XlaPass:#name=p%d,module=m,program_id=%d#", i, i);
		for (int k = 2; k < 5; k++)
			ck_assert_int_eq(push_a(text), k);
		ck_assert_int_eq(pop(), 4);
		ck_assert_int_eq(push_a("own"), 4);
		ck_assert_int_eq(push_a(text), 5);
		for (int k = 5; k >= 0; k--)
			ck_assert_int_eq(pop(), k);
	}
	ck_assert_uint_eq(t_thread()->depth, 0);
	(void)view_walk(&t_v, seen_fn, s);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(s[i].count, 300);
	ck_assert_uint_eq(s[4].count, 0);
}
END_TEST

static void unwind(uint32_t depth)
{
	t_e->scope_unwind(t_thread(), depth);
}

/* Scopes are left by name or by depth: ranges that were open in them are closed then, and their
 * pops, which come all the same, close nothing else. */
START_TEST(nvtx_ranges_that_were_unwound)
{
	struct seen s[] = {{"b", 0, 0}, {"b/in b", 0, 0}, {"in b", 0, 0}, {NULL, 0, 0}};
	const void *(*get)(uint32_t) = export_table;
	int (*push_a)(const char *), (*pop)(void);
	uint32_t a = t_new("a"), b = t_new("b"), in_b = t_new("in b");
	void *fn;

	ready();
	memcpy(&fn, &get, sizeof(fn));
	ck_assert_uint_eq(t_e->nvtx(fn), 1);
	memcpy(&push_a, &slots[0][9], sizeof(fn));
	memcpy(&pop, &slots[0][11], sizeof(fn));
	t_enter(a);
	ck_assert_int_eq(push_a("over the end of a"), 0);
	unwind(0);
	t_enter(b);
	ck_assert_int_eq(pop(), 0);
	ck_assert_uint_eq(t_thread()->depth, 1);
	t_enter(in_b);
	t_exit();
	ck_assert_int_eq(push_a("outer"), 0);
	ck_assert_int_eq(push_a("inner"), 1);
	unwind(1);
	t_enter(in_b); /* where "outer" was */
	ck_assert_int_eq(push_a("last"), 2);
	ck_assert_int_eq(pop(), 2);
	ck_assert_uint_eq(t_thread()->depth, 2);
	ck_assert_int_eq(pop(), 1);
	ck_assert_int_eq(pop(), 0);
	ck_assert_int_eq(pop(), -2);
	ck_assert_uint_eq(t_thread()->depth, 2);
	for (int i = 0; i < 20; i++) /* deeper than there are marks */
		ck_assert_int_eq(push_a("deep"), i);
	for (int i = 20; i-- > 0;)
		ck_assert_int_eq(pop(), i);
	ck_assert_uint_eq(t_thread()->depth, 2);
	unwind(0);
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 1);
	ck_assert_uint_eq(s[1].count, 2);
	ck_assert_uint_eq(s[2].count, 0);
}
END_TEST

/* A program with this environment, for the agent reads it as the kernel has it. */
START_TEST(nvtx_can_be_off)
{
	static const struct {
		const char *set;
		int attached;
	} cases[] = {{"TRITON_ENABLE_NVTX=0", 0}, {"TRITON_ENABLE_NVTX=False", 0},
		{"TRITON_ENABLE_NVTX=Yes", 1}, {"TRITON_ENABLE_NVTX=", 1}, {"OTHER=0", 1}};
	const pid_t child = fork();
	int status = -1;

	if (child == 0) {
		(void)execle("/proc/self/exe", "job_table", NULL,
			(const char *const[]){cases[_i].set, "PD_JOB_TABLE=nvtx", NULL});
		_exit(9);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), cases[_i].attached);
}
END_TEST

static void tables(TCase *c)
{
	tcase_add_test(c, names_are_interned);
	tcase_add_test(c, names_for_ever);
	tcase_add_test(c, text_runs_out);
	tcase_add_test(c, too_many_children);
	tcase_add_test(c, surplus_takes_no_lock);
	tcase_add_test(c, paths_for_ever);
	tcase_add_test(c, deepest);
	tcase_add_test(c, configurations_and_devices);
	tcase_add_test(c, threads_agree);
	tcase_add_test(c, surplus_scopes_are_counted);
	tcase_add_test(c, nvtx_ranges);
	tcase_add_test(c, nvtx_passes_of_xla);
	tcase_add_test(c, nvtx_ranges_that_were_unwound);
	tcase_add_loop_test(c, nvtx_can_be_off, 0, 5);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {tables, NULL};
	const void *(*get)(uint32_t) = export_table;
	void *fn;

	if (getenv("PD_JOB_TABLE") != NULL) { /* nvtx_can_be_off() */
		t_e = protond_engine_v1();
		t_e->host(&t_host);
		memcpy(&fn, &get, sizeof(fn));
		exit((int)t_e->nvtx(fn));
	}

	return t_suite("job_table", all);
}
